package agent

// These tests are about the beginnings and ends of agents and of their connections.

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestHelloSaysWhoConnects(t *testing.T) {
	o := newOffice(t)
	newPlace(t, o, "true").start(func(c *Config) { c.Version = "1.2.3" })
	_, hello := o.arrive()
	want := protocol.Hello{Person: "ada", Token: "secret", ProtocolVersion: 3, AgentVersion: "1.2.3"}
	if diff := cmp.Diff(want, hello); diff != "" {
		t.Error(diff)
	}
}

func TestKilledInTheMiddleOfARoundTheAgentGoesOnWithIt(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `
		echo "run $BULLPEN_ROUND resumed=$BULLPEN_RESUMED session=$BULLPEN_SESSION_ID" >> runs
		echo "::session s-1"
		setsid sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 0.01; done' &
		`+untilGo)
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	office.ack(expect[protocol.Session](office).id)
	eventually(t, "the program and its child run", func() bool {
		return content(p.file("i", "starts")) == "start" && content(p.file("i", "child")) != ""
	})
	eventually(t, "the session left the outbox", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.home, ".bullpen/state/outbox/*"))
		return len(files) == 0
	})
	first := p.file("i", "first")
	child := p.file("i", "first-child")
	p.write(first, content(p.file("i", "pid")))
	p.write(child, content(p.file("i", "child")))
	kill9(t, agent)
	eventually(t, "the program died with the agent", func() bool { return !alive(t, first) })

	p.spawn()
	office = o.welcome("i")
	eventually(t, "the program runs again", func() bool { return content(p.file("i", "starts")) == "start\nstart" })
	if alive(t, child) {
		t.Error("a child of the first run runs beside the second")
	}
	p.write(p.file("i", "go"), "")
	office.ack(expect[protocol.Handback](office).id)
	want := "run 1 resumed= session=\nrun 1 resumed=true session=s-1"
	if got := content(p.file("i", "runs")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(all[protocol.Handback](office)); n != 1 {
		t.Errorf("%d hand-backs", n)
	}
}

func TestKilledBeforeItsHandBackIsAcknowledgedTheAgentSaysItAgain(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo run >> runs; echo "::journal line"; echo bye`)
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	journal := expect[protocol.Journal](office)
	office.ack(journal.id)
	first := expect[protocol.Handback](office)
	kill9(t, agent)

	p.spawn()
	office = o.welcome("i")
	again := expect[protocol.Handback](office)
	if first.id != again.id {
		t.Errorf("the ids differ: %s and %s", first.id, again.id)
	}
	if diff := cmp.Diff(first.message, again.message); diff != "" {
		t.Error(diff)
	}
	office.ack(again.id)
	office.accepted("next")
	expect[protocol.Handback](office)
	if got := content(p.file("i", "runs")); got != "run" {
		t.Errorf("the program ran: %q", got)
	}
	for _, j := range all[protocol.Journal](office) {
		if j.WorkItemID == "i" {
			t.Error("the acknowledged journal line came again")
		}
	}
}

func TestKilledBeforeItsAcceptIsAcknowledgedTheAgentTakesTheRoundUp(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo "$BULLPEN_ROUND $BULLPEN_RESUMED" >> runs; cat > offer`)
	agent := p.spawn()
	office := o.welcome()
	office.offer("i")
	expect[protocol.Accept](office)
	kill9(t, agent)
	p.spawn()
	office = o.welcome("i")
	expect[protocol.Handback](office)
	if got := content(p.file("i", "runs")); got != "1" {
		t.Errorf("runs: %q", got)
	}
	if got := content(p.file("i", "offer")); !strings.Contains(got, "Do i") {
		t.Errorf("the offer was %q", got)
	}
}

func TestKilledWhileTheItemIsCanceledTheAgentEndsWhatIsLeft(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	kill9(t, agent)
	p.spawn()
	office = o.welcome()
	office.accepted("next")
	p.write(p.file("next", "go"), "")
	if got := expect[protocol.Handback](office).message.WorkItemID; got != "next" {
		t.Errorf("%s was handed back", got)
	}
	if alive(t, p.file("i", "pid")) || content(p.file("i", "starts")) != "start" {
		t.Error("the canceled item runs")
	}
}

func TestSIGTERMHandsTheRoundBackAsInterrupted(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `
		trap 'echo term > got; exit 1' TERM
		echo '::usage {"session":"s","models":{"m":{"outputTokens":3}}}'
		echo half way
		`+untilGo)
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	handback := expect[protocol.Handback](office)
	want := protocol.Handback{
		WorkItemID: "i", Status: protocol.HandbackInterrupted, Summary: "half way", Links: []protocol.Link{},
		Usage: []protocol.SessionUsage{{Session: "s", Models: map[string]protocol.ModelUsage{"m": {OutputTokens: 3}}}},
	}
	if diff := cmp.Diff(want, handback.message); diff != "" {
		t.Error(diff)
	}
	if got := content(p.file("i", "got")); got != "term" {
		t.Error("the program got no SIGTERM")
	}
	office.offer("i") // for the agent's next life: to decline it would delay it
	office.ack(handback.id)
	if err := office.untilEnd(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the connection ended with %v", err)
	}
	if err := agent.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	if len(all[protocol.Decline](office)) > 0 || len(all[protocol.Accept](office)) > 1 {
		t.Errorf("the late offer was answered: %v", office.types())
	}
}

func TestAProgramThatFinishesAfterSIGTERMIsHandedBackAsItSays(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `
		trap 'echo "{\"status\":\"done\",\"summary\":\"just made it\"}" > "$BULLPEN_RESULT_FILE"; exit 0' TERM
		`+untilGo)
	a := p.start()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	a.stop()
	handback := expect[protocol.Handback](office)
	if handback.message.Status != protocol.HandbackDone || handback.message.Summary != "just made it" {
		t.Errorf("handed back %+v", handback.message)
	}
	office.ack(handback.id)
	a.wait()
}

func TestWithoutTheOfficeTheHandBackWaitsInTheHome(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	a := p.start(func(c *Config) { c.Grace = 2 * time.Second })
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	o.setDown(true)
	_ = office.ws.Close()
	a.stop()
	a.wait()
	if alive(t, p.file("i", "pid")) {
		t.Error("the program outlives its agent")
	}
	o.setDown(false)
	p.start()
	office = o.welcome("i")
	if got := expect[protocol.Handback](office).message; got.Status != protocol.HandbackInterrupted {
		t.Errorf("handed back %+v", got)
	}
}

func TestASecondSignalEndsAtOnceAndLosesNothing(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `trap "" TERM`+untilGo)
	a := p.start(func(c *Config) { c.Grace = time.Hour })
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	a.stop()
	a.now()
	a.wait()
	if alive(t, p.file("i", "pid")) {
		t.Error("the program outlives its agent")
	}
	p.start()
	office = o.welcome("i")
	if got := expect[protocol.Handback](office).message; got.Status != protocol.HandbackInterrupted {
		t.Errorf("handed back %+v", got)
	}
}

func TestAProgramThatIgnoresSIGTERMIsKilledWithinTheGrace(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `trap "" TERM`+untilGo)
	p.env[contract.EnvGrace] = "1"
	a := p.start()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	a.stop()
	handback := expect[protocol.Handback](office)
	if handback.message.Status != protocol.HandbackInterrupted {
		t.Errorf("handed back %+v", handback.message)
	}
	office.ack(handback.id)
	a.wait()
}

func TestSIGTERMWhileTheAcceptIsUnderWayHandsBackWithoutARun(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	a := p.start()
	office := o.welcome()
	office.offer("i")
	accept := expect[protocol.Accept](office)
	a.stop()
	office.offer("other")
	expect[protocol.Decline](office) // the shutdown has begun
	office.ack(accept.id)
	handback := expect[protocol.Handback](office)
	if handback.message.Status != protocol.HandbackInterrupted || handback.message.WorkItemID != "i" {
		t.Errorf("handed back %+v", handback.message)
	}
	if content(p.file("i", "starts")) != "" {
		t.Error("the program ran")
	}
}

func TestAnAgentThatWasReplacedEndsItsRunAndStaysAway(t *testing.T) {
	for name, replace := range map[string]func(*peer){
		"with the close code":    func(p *peer) { p.close(protocol.CloseReplaced) },
		"with the error's code":  func(p *peer) { p.send("", protocol.Error{Code: protocol.CodeReplaced, Message: "x"}); _ = p.ws.Close() },
		"in the answer to hello": nil,
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			p := newPlace(t, o, untilGo)
			a := p.start()
			office := o.welcome()
			office.accepted("i")
			eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
			if replace != nil {
				replace(office)
			} else {
				office.close(websocket.CloseGoingAway)
				office, _ = o.arrive()
				office.close(protocol.CloseReplaced)
			}
			eventually(t, "the program is gone", func() bool { return !alive(t, p.file("i", "pid")) })
			eventually(t, "the log says so", func() bool { return strings.Contains(a.logs.String(), "stays away") })
			select {
			case <-o.arrivals:
				t.Error("it came back")
			case <-a.done:
				t.Error("it ended")
			default:
			}
			a.stop()
			a.wait()
			select {
			case <-o.arrivals:
				t.Error("it came back")
			default:
			}
		})
	}
}

func TestARefusedAgentTriesAgainWhenItsTokenChanges(t *testing.T) {
	for name, refuse := range map[string]func(*peer){
		"by token":   func(p *peer) { p.refuse(p.hello, protocol.CodeAuthFailed); p.close(protocol.CloseAuthFailed) },
		"by version": func(p *peer) { p.refuse(p.hello, protocol.CodeVersionMismatch); p.close(protocol.CloseVersionMismatch) },
		"by an error whose close is lost": func(p *peer) {
			p.refuse(p.hello, protocol.CodeAuthFailed)
			_ = p.ws.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			p := newPlace(t, o, "true")
			a := p.start() // a refused agent of the tests would wait for an hour
			office, _ := o.arrive()
			refuse(office)
			eventually(t, "the log says so", func() bool { return strings.Contains(a.logs.String(), "not connected to the office") })
			p.write(p.token, "renewed")
			office, hello := o.arrive()
			if hello.Token != "renewed" {
				t.Errorf("the token was %q", hello.Token)
			}
			office.welcome(o.team, time.Second)
			expect[protocol.DoctorReport](office)
			if log := a.logs.String(); strings.Contains(log, "secret") || strings.Contains(log, "renewed") {
				t.Error("the log has a token")
			}
		})
	}
}

func TestATokenThatComesLateIsNoTrouble(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "true")
	if err := os.Remove(p.token); err != nil {
		t.Fatal(err)
	}
	a := p.start()
	eventually(t, "the log says so", func() bool { return strings.Contains(a.logs.String(), "the token cannot be read") })
	p.write(p.token, "late")
	if _, hello := o.arrive(); hello.Token != "late" {
		t.Errorf("the token was %q", hello.Token)
	}
}

func TestTheCAIsReadAtEveryDial(t *testing.T) {
	o := unstartedOffice(t)
	o.server.StartTLS()
	p := newPlace(t, o, "true")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	p.env[contract.EnvCAFile] = ca
	p.write(ca, "no certificate")
	a := p.start()
	eventually(t, "the log says so", func() bool { return strings.Contains(a.logs.String(), "holds no certificate in PEM") })
	p.write(ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.server.Certificate().Raw})))
	expect[protocol.DoctorReport](o.welcome())
}

func TestAnotherCAIsNotTrusted(t *testing.T) {
	o := unstartedOffice(t)
	o.server.StartTLS()
	p := newPlace(t, o, "true")
	a := p.start()
	eventually(t, "the log says so", func() bool { return strings.Contains(a.logs.String(), "unknown authority") })
}

func TestASilentOfficeIsLeftWithinTwoHeartbeats(t *testing.T) {
	o := newOffice(t)
	newPlace(t, o, "true").start()
	office, _ := o.arrive()
	office.byHand.Store(true)
	office.welcome(o.team, 50*time.Millisecond)
	select {
	case <-office.ended:
	case <-time.After(patience):
		t.Fatal("the agent stayed")
	}
	office = o.welcome()
	expect[protocol.Heartbeat](office)
}

func TestPingsOfEitherKindAreAnsweredAndNonsenseIsSurvived(t *testing.T) {
	o := newOffice(t)
	newPlace(t, o, "true").start()
	office := o.welcome()
	ping := office.send("", protocol.Ping{})
	if got := expect[protocol.Pong](office); got.replyTo != ping {
		t.Errorf("pong to %q, want %q", got.replyTo, ping)
	}
	pongs := make(chan string, 1)
	office.ws.SetPongHandler(func(data string) error { pongs <- data; return nil })
	if err := office.ws.WriteControl(websocket.PingMessage, []byte("there?"), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	expect[protocol.Heartbeat](office)
	if got := <-pongs; got != "there?" {
		t.Errorf("the pong says %q", got)
	}
	for _, test := range []struct {
		name, frame string
		code        protocol.Code
		replyTo     string
	}{
		{"no JSON", "hello?", protocol.CodeMalformed, ""},
		{"an unknown type", `{"id":"x1","type":"dance","payload":{}}`, protocol.CodeUnknownType, "x1"},
		{"an offer without an item", `{"id":"x2","type":"offer","payload":{}}`, protocol.CodeInvalidMessage, "x2"},
		{"an answer to nothing", `{"id":"x3","type":"roster_result","payload":{"members":[]}}`, protocol.CodeUnsupported, "x3"},
		{"too large a frame", `{"id":"x4","type":"ping","payload":{"x":"` + strings.Repeat("x", protocol.MaxFrame) + `"}}`,
			protocol.CodeMalformed, ""},
	} {
		office.write([]byte(test.frame))
		got := expect[protocol.Error](office)
		if got.message.Code != test.code || got.replyTo != test.replyTo {
			t.Errorf("%s: answered %s to %q", test.name, got.message.Code, got.replyTo)
		}
	}
	before := len(all[protocol.Error](office))
	office.write([]byte(`{"id":"x5","type":"error","payload":{"code":"nonsense"}}`))
	office.write([]byte(`{"id":"x6","type":"ack","replyTo":"never-asked","payload":{}}`))
	office.send("", protocol.Error{Code: protocol.CodeFailed, Message: "about nothing"})
	ping = office.send("", protocol.Ping{})
	if got := expect[protocol.Pong](office); got.replyTo != ping || len(all[protocol.Error](office)) != before {
		t.Error("an error was answered with an error")
	}
}

func TestTheDoctorReportsWhatIsMissing(t *testing.T) {
	o := newOffice(t)
	address := o.server.Listener.Addr().String()
	o.team = protocol.Raw(`{"name":"web","people":[{"handle":"ada","runtime":"command","tools":["sh","no-such-tool"],` +
		`"services":[{"name":"office","address":"` + address + `"},{"name":"db","address":"127.0.0.1:1"}]}]}`)
	newPlace(t, o, "true").start()
	report := expect[protocol.DoctorReport](o.welcome()).message
	status := map[string]protocol.CheckStatus{}
	for _, c := range report.Checks {
		status[c.Name] = c.Status
		if c.Status != protocol.CheckOK && c.Fix == "" {
			t.Errorf("%s has no fix", c.Name)
		}
		if c.Name == "Tools install" && !strings.Contains(c.Detail, "no-such-tool") {
			t.Errorf("tools: %q", c.Detail)
		}
		if c.Name == "Services answer" && (!strings.Contains(c.Detail, "db") || strings.Contains(c.Detail, "office:")) {
			t.Errorf("services: %q", c.Detail)
		}
	}
	delete(status, "Home has room") // depends on the machine
	want := map[string]protocol.CheckStatus{"Tools install": "fail", "Services answer": "fail", "Command runs": "ok"}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutItsProgramTheAgentDeclinesUntilItIsThere(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "")
	program := filepath.Join(t.TempDir(), "program")
	p.env[contract.EnvCommand] = `["` + program + `"]`
	p.start(func(c *Config) { c.recheck = 5 * time.Millisecond })
	office := o.welcome()
	office.ack(expect[protocol.DoctorReport](office).id)
	office.offer("i")
	decline := expect[protocol.Decline](office)
	if !strings.Contains(decline.message.Reason, program) {
		t.Errorf("declined with %q", decline.message.Reason)
	}
	office.ack(decline.id)
	p.write(program, "#!/bin/sh\necho made it\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	office.ack(expectWhere(office, func(r protocol.DoctorReport) bool { return unfitBecause(r.Checks) == "" }).id)
	office.accepted("i")
	if got := expect[protocol.Handback](office).message.Summary; got != "made it" {
		t.Errorf("summary %q", got)
	}
}

func TestATeamConfigIsTakenBetweenRoundsOnly(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	p.start()
	page := filepath.Join(p.home, ".bullpen/TEAM.md")
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	o.team = protocol.Raw(strings.Replace(teamJSON, "Be kind.", "Be quick.", 1))
	office.close(websocket.CloseServiceRestart)
	office = o.welcome("i")
	expect[protocol.Heartbeat](office)
	if got := content(page); !strings.Contains(got, "Be kind.") {
		t.Errorf("the page changed in the middle of a round: %q", got)
	}
	p.write(p.file("i", "go"), "")
	office.ack(expect[protocol.Handback](office).id)
	if got := content(page); !strings.Contains(got, "Be quick.") {
		t.Errorf("the page did not change: %q", got)
	}
}

func TestATeamConfigThatIsWrongIsAnsweredAndOffersAreDeclined(t *testing.T) {
	o := newOffice(t)
	good := o.team
	o.team = protocol.Raw(`{"name":""}`)
	newPlace(t, o, "true").start()
	office := o.welcome()
	if got := expect[protocol.Error](office).message; got.Code != protocol.CodeInvalidMessage || !strings.Contains(got.Message, "team.name") {
		t.Errorf("answered %+v", got)
	}
	office.offer("i")
	decline := expect[protocol.Decline](office)
	if !strings.Contains(decline.message.Reason, "team.name must not be empty") {
		t.Errorf("declined with %q", decline.message.Reason)
	}
	office.ack(decline.id)
	o.team = good
	office.close(websocket.CloseServiceRestart)
	office = o.welcome()
	office.accepted("i")
	expect[protocol.Handback](office)
}

func TestTwoAgentsNeverShareAHome(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "true")
	first := p.start()
	office := o.welcome()
	second := p.start()
	eventually(t, "the second one waits", func() bool { return strings.Contains(second.logs.String(), "another agent uses this home") })
	first.stop()
	_ = office.untilEnd()
	first.wait()
	expect[protocol.DoctorReport](o.welcome())
}

func TestADamagedFileInTheHomeIsSetAside(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "echo fine")
	bad := []string{
		filepath.Join(p.home, ".bullpen/state/items/x.json"), filepath.Join(p.home, ".bullpen/state/outbox/00000000000000000001.json"),
	}
	for _, path := range bad {
		p.write(path, `{"half":`)
	}
	p.start()
	office := o.welcome()
	office.accepted("i")
	expect[protocol.Handback](office)
	for _, path := range bad {
		if content(path+".bad") == "" {
			t.Errorf("%s was not set aside", path)
		}
	}
}
