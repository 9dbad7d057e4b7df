package agent

// These tests are about the records of sessions: what a real agent uploads of its rounds, in which order, and what it keeps to itself.

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// ended reads the end of a turn.
func ended(t *testing.T, e feed.Entry) turnEnd {
	t.Helper()
	if e.Type != feed.TypeTurnEnded || e.Source != feed.SourceLifecycle || e.Format != feed.FormatLifecycle {
		t.Fatalf("the last record is %+v", e)
	}
	var end turnEnd
	if err := json.Unmarshal(e.Payload, &end); err != nil {
		t.Fatal(err)
	}
	return end
}

// whole waits until the office has the end of so many turns of an item, and returns all of its entries.
func (o *office) whole(item string, turns int) []feed.Entry {
	o.t.Helper()
	var list []feed.Entry
	eventually(o.t, "the office has the turn's end", func() bool {
		list = o.records.Entries(item)
		return count(list, feed.TypeTurnEnded) >= turns
	})
	return list
}

func count(list []feed.Entry, kind string) int {
	n := 0
	for _, e := range list {
		if e.Type == kind {
			n++
		}
	}
	return n
}

func kinds(list []feed.Entry) []string {
	var out []string
	for _, e := range list {
		if n := len(out); n == 0 || out[n-1] != e.Type {
			out = append(out, e.Type)
		}
	}
	return out
}

// preparing is a team with the hook before_start.
func preparing(t *testing.T, script string) protocol.Raw {
	t.Helper()
	config := protocol.DefaultTeamConfig()
	config.Name = "web"
	config.People = []protocol.TeamPerson{{Handle: "ada", Runtime: "command"}}
	config.Environment.Hooks = protocol.TeamHooks{BeforeStart: script}
	raw, err := config.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestARoundIsRecordedFromItsPreparationToItsEnd(t *testing.T) {
	o := newOffice(t)
	o.team = preparing(t, "echo preparing; echo trouble >&2")
	p := newPlace(t, o, `echo one; echo two >&2; echo '{"summary":"S"}' > "$BULLPEN_RESULT_FILE"`)
	p.start()
	office := o.welcome()
	office.offer("i")
	office.ack(expect[protocol.Accept](office).id)
	handback := expect[protocol.Handback](office)
	list := o.records.Entries("i") // the records are there before the hand-back is
	want := []string{
		feed.TypeEnvironmentPhase, feed.TypeEnvironmentOutput, feed.TypeEnvironmentPhase, feed.TypeEnvironmentReady,
		feed.TypeTurnStarted, feed.TypeMessageDelivered, "stdout", "stderr", "result", feed.TypeTurnEnded,
	}
	got := kinds(list)
	if i := slices.Index(got, "stderr"); i >= 0 && got[i+1] == "stdout" { // two pipes have no order
		got[i], got[i+1] = got[i+1], got[i]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	offer := list[0].Offer
	for i, e := range list {
		if e.Seq != int64(i+1) || e.Offer != offer || !strings.HasPrefix(offer, "o") || time.Since(e.At) > time.Minute {
			t.Errorf("entry %d is %+v", i, e)
		}
	}
	for kind, want := range map[string]string{
		feed.TypeTurnStarted: `{}`, feed.TypeMessageDelivered: `{}`, "stdout": `{"lines":["one"]}`, "stderr": `{"lines":["two"]}`,
		"result": `{"exit":"exit status 0","result":{"summary":"S"}}`,
	} {
		i := slices.IndexFunc(list, func(e feed.Entry) bool { return e.Type == kind })
		if i < 0 || string(list[i].Payload) != want {
			t.Errorf("%s: %s", kind, list[max(i, 0)].Payload)
		}
	}
	end := ended(t, list[len(list)-1])
	if end.Status != "completed" || end.Reason != nil || end.Detail != nil || end.DurationMS < 0 {
		t.Errorf("the end is %+v", end)
	}
	if keys := members(t, list[len(list)-1].Payload); !cmp.Equal(keys, []string{"detail", "duration_ms", "reason", "status"}) {
		t.Errorf("the end has %v", keys)
	}
	office.ack(handback.id)
	for _, token := range o.records.Tokens() {
		if token != "Bearer secret" {
			t.Errorf("it came with %q", token)
		}
	}
	eventually(t, "an idle agent has no second connection", func() bool { return o.records.Open() == 0 })
	left, err := filepath.Glob(filepath.Join(p.home, ".bullpen/spool/*/*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the spool: %v, %v", left, err)
	}
}

func members(t *testing.T, payload []byte) []string {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal(payload, &object); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func TestChunksOfOutputAreCountedWithinTheirStep(t *testing.T) {
	o := newOffice(t)
	o.team = preparing(t, `for i in 1 2 3; do echo "line $i"; sleep 0.3; done`)
	newPlace(t, o, "true").start()
	office := o.welcome()
	office.accepted("i")
	office.ack(expect[protocol.Handback](office).id)
	next := int64(0)
	for _, e := range o.whole("i", 1) {
		if e.Type != feed.TypeEnvironmentOutput {
			continue
		}
		var out feed.EnvironmentOutput
		if err := json.Unmarshal(e.Payload, &out); err != nil {
			t.Fatal(err)
		}
		if out.Chunk != next || out.Phase != feed.PhaseHooks || out.Step == nil || *out.Step != feed.StepBeforeStart || len(out.Lines) == 0 {
			t.Errorf("chunk %d is %s", next, e.Payload)
		}
		next++
	}
	if next < 2 {
		t.Errorf("only %d chunks", next)
	}
}

func TestHowATurnEnds(t *testing.T) {
	text := func(s string) *string { return &s }
	leaves := func(status string) string {
		return `echo '{"status":"` + status + `","summary":"S"}' > "$BULLPEN_RESULT_FILE"`
	}
	for name, test := range map[string]struct {
		team   protocol.Raw
		script string
		want   turnEnd
		starts int
	}{
		"done":        {nil, leaves("done"), turnEnd{Status: "completed"}, 1},
		"waiting":     {nil, leaves("waiting"), turnEnd{Status: "completed"}, 1},
		"silent":      {nil, leaves("silent"), turnEnd{Status: "completed"}, 1},
		"blocked":     {nil, leaves("blocked"), turnEnd{Status: "failed", Reason: text("blocked"), Detail: text("S")}, 1},
		"interrupted": {nil, leaves("interrupted"), turnEnd{Status: "cancelled", Reason: text("interrupted")}, 1},
		"failed":      {nil, "echo no >&2; exit 3", turnEnd{Status: "failed", Reason: text("error"), Detail: text("exit status 3: no")}, 1},
		"a hook that fails": {preparing(t, "echo broken >&2; exit 1"), "true",
			turnEnd{Status: "failed", Reason: text("lifecycle_hook_failed")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			if test.team != nil {
				o.team = test.team
			}
			newPlace(t, o, test.script).start()
			office := o.welcome()
			office.accepted("i")
			list := o.whole("i", 1)
			end := ended(t, list[len(list)-1])
			end.DurationMS = 0
			if test.want.Detail == nil && test.starts == 0 {
				end.Detail = nil // the hook's words
			}
			if diff := cmp.Diff(test.want, end); diff != "" {
				t.Error(diff)
			}
			if n := count(list, feed.TypeTurnStarted); n != test.starts {
				t.Errorf("the turn started %d times", n)
			}
		})
	}
}

func TestTheHandBackWaitsForItsRecordsAndNotForEver(t *testing.T) {
	o := newOffice(t)
	o.records.Mute(true)
	newPlace(t, o, "echo bye").start(func(c *Config) { c.timing.records = time.Hour })
	office := o.welcome()
	office.accepted("i")
	o.whole("i", 1)
	for range 5 { // the office has the records, but has not said that it keeps them
		expect[protocol.Heartbeat](office)
	}
	if n := len(all[protocol.Handback](office)); n > 0 {
		t.Error("the hand-back did not wait")
	}
	o.records.Mute(false)
	office.ack(expect[protocol.Handback](office).id)

	o.records.Mute(true)
	o = newOffice(t)
	o.records.Mute(true)
	newPlace(t, o, "echo bye").start(func(c *Config) { c.timing.records = 50 * time.Millisecond })
	office = o.welcome()
	office.accepted("i")
	office.ack(expect[protocol.Handback](office).id)
}

func TestAnOfficeWithoutRecordsGetsItsHandBackAtOnce(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusUnauthorized, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			o := newOffice(t)
			o.records.Refuse(status)
			p := newPlace(t, o, "echo bye")
			a := p.start(func(c *Config) { c.timing.records = time.Hour })
			office := o.welcome()
			for _, id := range []string{"i", "j"} {
				office.accepted(id)
				office.ack(expect[protocol.Handback](office).id)
			}
			a.stop()
			a.wait()
			// A newer office gets the records from the next life.
			o.records.Refuse(0)
			p.start()
			o.welcome()
			o.whole("i", 1)
			o.whole("j", 1)
		})
	}
}

func TestAHomeWithoutPlaceForASpoolWorksAllTheSame(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "echo bye")
	p.write(filepath.Join(p.home, ".bullpen/spool"), "in the way")
	p.start()
	office := o.welcome()
	office.accepted("i")
	expect[protocol.Handback](office)
	if n := o.records.Dials(); n > 0 {
		t.Errorf("%d connections", n)
	}
}

func TestKilledInTheMiddleTheTurnGoesOnInTheNextLife(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `echo "run resumed=$BULLPEN_RESUMED"`+untilGo)
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the office has what the program said", func() bool { return count(o.records.Entries("i"), "stdout") > 0 })
	kill9(t, agent)
	p.spawn()
	office = o.welcome("i")
	eventually(t, "the program runs again", func() bool { return content(p.file("i", "starts")) == "start\nstart" })
	p.write(p.file("i", "go"), "")
	office.ack(expect[protocol.Handback](office).id)
	list := o.whole("i", 1)
	if n := count(list, feed.TypeTurnStarted); n != 1 {
		t.Errorf("the turn started %d times: %v", n, kinds(list))
	}
	if n := count(list, feed.TypeTurnEnded); n != 1 || ended(t, list[len(list)-1]).Status != "completed" {
		t.Errorf("the turn ended %d times: %v", n, kinds(list))
	}
	said := ""
	for _, e := range list {
		if e.Type == "stdout" {
			said += string(e.Payload)
		}
		if e.Offer != list[0].Offer {
			t.Errorf("an entry is about %s, the first about %s", e.Offer, list[0].Offer)
		}
	}
	if !strings.Contains(said, `"run resumed="`) || !strings.Contains(said, `"run resumed=true"`) {
		t.Errorf("said: %s", said)
	}
}

func TestKilledAndNotCountedOnTheTurnEndsBeforeTheNextOneBegins(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the office has the turn's beginning", func() bool { return count(o.records.Entries("i"), feed.TypeTurnStarted) > 0 })
	kill9(t, agent)
	p.spawn()
	office = o.welcome()
	p.write(p.file("i", "go"), "")
	office.accepted("i")
	office.ack(expect[protocol.Handback](office).id)
	list := o.whole("i", 2)
	first := slices.IndexFunc(list, func(e feed.Entry) bool { return e.Type == feed.TypeTurnEnded })
	end := ended(t, list[first])
	if end.Status != "cancelled" || end.Reason == nil || *end.Reason != "interrupted" {
		t.Errorf("the turn that was left ended with %+v", end)
	}
	for i, e := range list {
		if (e.Offer == list[0].Offer) != (i <= first) {
			t.Errorf("entry %d of %d is about %s", i, len(list), e.Offer)
		}
	}
	if n := count(list, feed.TypeTurnStarted); n != 2 {
		t.Errorf("%d turns started", n)
	}
}

func TestKilledBetweenTheHandBackAndTheEndOfItsRecordsTheNextLifeWritesIt(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the office has the turn's beginning", func() bool { return count(o.records.Entries("i"), feed.TypeTurnStarted) > 0 })
	kill9(t, agent)
	// What the home has when the hand-back is in the outbox and the item has ended, but the turn has not.
	frame, err := protocol.Encode(protocol.Frame{ID: "h1", Message: protocol.Handback{
		WorkItemID: "i", Status: protocol.HandbackBlocked, Summary: "stuck", Links: []protocol.Link{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.write(filepath.Join(p.home, ".bullpen/state/outbox/00000000000000000009.json"), string(frame))
	path := filepath.Join(p.home, ".bullpen/state/items/i.json")
	var record itemRecord
	if err := json.Unmarshal([]byte(content(path)), &record); err != nil {
		t.Fatal(err)
	}
	record.Phase, record.Ending = phaseEnded, frame
	data, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	p.write(path, string(data))
	p.spawn()
	office = o.welcome("i")
	expect[protocol.Handback](office)
	list := o.records.Entries("i") // before the hand-back
	if end := ended(t, list[len(list)-1]); end.Status != "failed" || *end.Reason != "blocked" || *end.Detail != "stuck" {
		t.Errorf("the turn ended with %+v", end)
	}
}

func TestSIGTERMEndsTheTurnAndDoesNotWaitForASlowOfficeLongerThanItsGrace(t *testing.T) {
	o := newOffice(t)
	o.records.Mute(true)
	p := newPlace(t, o, "echo half way"+untilGo)
	p.env[contract.EnvGrace] = "5"
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	office.ack(expect[protocol.Handback](office).id)
	_ = office.untilEnd()
	if err := agent.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	list := o.whole("i", 1)
	if end := ended(t, list[len(list)-1]); end.Status != "cancelled" || *end.Reason != "interrupted" {
		t.Errorf("the turn ended with %+v", end)
	}
}

func TestARoundThatIsHandedBackUnstartedHasNothingButAnEnd(t *testing.T) {
	o := newOffice(t)
	a := newPlace(t, o, untilGo).start()
	office := o.welcome()
	office.offer("i")
	accept := expect[protocol.Accept](office)
	a.stop()
	office.offer("other")
	office.ack(expect[protocol.Decline](office).id) // the shutdown has begun
	office.ack(accept.id)
	office.ack(expect[protocol.Handback](office).id)
	if got := kinds(o.whole("i", 1)); !cmp.Equal(got, []string{feed.TypeTurnEnded}) {
		t.Errorf("got %v", got)
	}
	a.wait()
}

func TestACanceledRoundsTurnEnds(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	p.start()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	office.close(1012)
	o.welcome()
	list := o.whole("i", 1)
	if end := ended(t, list[len(list)-1]); end.Status != "cancelled" || *end.Reason != "interrupted" {
		t.Errorf("the turn ended with %+v", end)
	}
}

func TestAnAgentThatWasReplacedLeavesTheTurnToTheOther(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	a := p.start()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the office has the turn's beginning", func() bool { return count(o.records.Entries("i"), feed.TypeTurnStarted) > 0 })
	office.close(protocol.CloseReplaced)
	eventually(t, "the program is gone, and its records are there", func() bool {
		return !alive(t, p.file("i", "pid")) && count(o.records.Entries("i"), "result") > 0
	})
	eventually(t, "the connection is closed", func() bool { return o.records.Open() == 0 })
	a.stop()
	a.wait()
	if n := count(o.records.Entries("i"), feed.TypeTurnEnded); n != 0 {
		t.Error("it ended a turn that another agent goes on with")
	}
	p.start()
	o.welcome() // which does not name the item
	o.whole("i", 1)
}

func TestSecretsLeaveThePodInNoForm(t *testing.T) {
	o := newOffice(t)
	dir := t.TempDir()
	p := newPlace(t, o, `
		cat "$SECRET_DIR/key"
		echo "token is $API_TOKEN"
		echo "::journal used $API_TOKEN"
		echo "{\"nested\":\"{\\\"t\\\":\\\"$API_TOKEN\\\"}\"}"
		printf %s "user:$API_TOKEN" | base64 -w0; echo
		echo "agent's own: $(cat "$TOKEN_COPY")"
		echo "ghp_`+strings.Repeat("aB3", 12)+`" >&2
		t=$(printf %s "$API_TOKEN" | sed 's/"/\\"/g')
		echo "{\"summary\":\"with $t\",\"links\":[{\"url\":\"https://example.com/?t=$t\",\"title\":\"$t\"}],\"toReview\":[\"$t\"]}" > "$BULLPEN_RESULT_FILE"
		[ -z "$FAIL" ] || { echo "failed with $API_TOKEN" >&2; exit 1; }`)
	o.team = preparing(t, `echo "hook says $API_TOKEN"`)
	key := "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZn\n", 4) + "-----END OPENSSH PRIVATE KEY-----\n"
	p.write(filepath.Join(dir, "key"), key)
	p.write(p.token, "the-agents-own-token")
	secrets := []string{"tok-\"1&2<3>4-en", "the-agents-own-token", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZn", strings.Repeat("aB3", 12)}
	p.env["API_TOKEN"], p.env["SECRET_DIR"], p.env["TOKEN_COPY"] = `tok-"1&2<3>4-en`, dir, p.token
	p.env[contract.EnvSecretFiles], p.env[contract.EnvSecretVars] = dir, "OTHER,API_*"
	for _, fail := range []string{"", "yes"} {
		p.env["FAIL"] = fail
		a := p.start()
		office := o.welcome()
		office.accepted("i" + fail)
		o.whole("i"+fail, 1)
		var messages []protocol.Message
		if fail == "" {
			end := expect[protocol.Handback](office)
			office.ack(end.id)
			messages = append(messages, end.message)
		} else {
			end := expect[protocol.Fail](office)
			office.ack(end.id)
			messages = append(messages, end.message)
		}
		for _, m := range append(messages, office.seen...) {
			frame, err := protocol.Encode(protocol.Frame{ID: "x", Message: m})
			if err != nil {
				t.Fatal(err)
			}
			if _, hello := m.(protocol.Hello); !hello {
				keepsNone(t, string(m.Type()), frame, secrets)
			}
		}
		for _, e := range o.records.Entries("i" + fail) {
			keepsNone(t, e.Type, e.Payload, secrets)
			if !json.Valid(e.Payload) {
				t.Errorf("%s is no JSON: %s", e.Type, e.Payload)
			}
		}
		if n := len(all[protocol.Journal](office)); n != 1 || all[protocol.Journal](office)[0].Text != "used ***" {
			t.Errorf("the journal has %v", all[protocol.Journal](office))
		}
		a.stop()
		_ = office.untilEnd()
		a.wait()
	}
}

// keepsNone checks that no secret is in JSON, in any of the forms that it may take there.
func keepsNone(t *testing.T, what string, data []byte, secrets []string) {
	t.Helper()
	forms := [][]byte{data}
	var value any
	if json.Unmarshal(data, &value) == nil {
		var walk func(any)
		walk = func(v any) {
			switch v := v.(type) {
			case string:
				forms = append(forms, []byte(v))
				for _, line := range strings.Fields(v) {
					if plain, err := base64.StdEncoding.DecodeString(line); err == nil {
						forms = append(forms, plain)
					}
				}
				var inner any
				if json.Unmarshal([]byte(v), &inner) == nil {
					walk(inner)
				}
			case []any:
				for _, e := range v {
					walk(e)
				}
			case map[string]any:
				for k, e := range v {
					walk(k)
					walk(e)
				}
			}
		}
		walk(value)
	}
	for _, form := range forms {
		for _, secret := range secrets {
			if bytes.Contains(form, []byte(secret)) {
				t.Errorf("%s has the secret %q: %s", what, secret, data)
			}
		}
	}
}

// scripted is a runtime that does what a test says.
type scripted struct {
	run func(ctx context.Context, round runtime.Round, sink runtime.Sink) (runtime.Result, error)
}

func (s scripted) Name() string                                  { return "scripted" }
func (s scripted) Doctor(context.Context) []protocol.DoctorCheck { return nil }
func (s scripted) Run(ctx context.Context, round runtime.Round, sink runtime.Sink) (runtime.Result, error) {
	return s.run(ctx, round, sink)
}

func TestDeltasAreShownWithoutWhatCouldBeSecret(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "")
	p.env["API_TOKEN"], p.env[contract.EnvSecretVars] = "hunter2-hunter2", "API_TOKEN"
	delta := func(kind, text string) feed.Delta { return feed.Delta{Kind: kind, Text: &text} }
	p.start(func(c *Config) {
		c.Runtime = scripted{func(_ context.Context, _ runtime.Round, sink runtime.Sink) (runtime.Result, error) {
			sink.Started()
			eventually(t, "somebody listens", func() bool { return count(o.records.Entries("i"), feed.TypeMessageDelivered) > 0 })
			sink.Delta(delta(feed.DeltaThinking, "is it hunter2-hun"))
			sink.Delta(delta(feed.DeltaThinking, "is it hunter2-hunter2, or\nnot"))
			sink.Delta(delta(feed.DeltaThinking, strings.Repeat("x", 2*feed.MaxThinking)))
			sink.Delta(delta(feed.DeltaThinking, ""))
			for _, piece := range []string{"it ", "is hunt", "er2-", "hunter2 ", "now."} {
				sink.Delta(delta(feed.DeltaText, piece))
			}
			sink.Record(runtime.Record{Source: "claude_code", Format: "claude_jsonl@1", Type: "assistant",
				Payload: json.RawMessage(`{"text":"it is hunter2-hunter2 now."}`)})
			return runtime.Result{Status: protocol.HandbackDone}, nil
		}}
	})
	office := o.welcome()
	office.accepted("i")
	list := o.whole("i", 1)
	said, thought := "", []string{}
	for _, f := range o.records.Frames("i") {
		switch {
		case f.Delta == nil || f.Delta.Delta.Text == nil:
		case f.Delta.Delta.Kind == feed.DeltaText:
			said += *f.Delta.Delta.Text
		default:
			thought = append(thought, *f.Delta.Delta.Text)
		}
	}
	if said != "it is *** now." {
		t.Errorf("said %q", said)
	}
	for _, line := range thought {
		if strings.Contains(line, "hunter2") || len([]rune(line)) > feed.MaxThinking || strings.Contains(line, "\n") {
			t.Errorf("thought %q", line)
		}
	}
	if len(thought) == 0 || thought[len(thought)-1] != "" {
		t.Errorf("the last thought is not cleared: %q", thought)
	}
	i := slices.IndexFunc(list, func(e feed.Entry) bool { return e.Type == "assistant" })
	if i < 0 || string(list[i].Payload) != `{"text":"it is *** now."}` {
		t.Errorf("the record is %v", list)
	}
}

func TestARecordStartsTheTurnIfNothingElseDid(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "")
	p.start(func(c *Config) {
		c.Runtime = scripted{func(_ context.Context, _ runtime.Round, sink runtime.Sink) (runtime.Result, error) {
			one := 1
			sink.Record(runtime.Record{Source: "x", Format: "x@1", Type: "x", Payload: json.RawMessage(`{"n":1.0}`), Echo: &one})
			sink.Started()
			return runtime.Result{Status: protocol.HandbackDone}, nil
		}}
	})
	office := o.welcome()
	office.accepted("i")
	list := o.whole("i", 1)
	if got := kinds(list); !cmp.Equal(got, []string{feed.TypeEnvironmentReady, feed.TypeTurnStarted, feed.TypeMessageDelivered, "x", feed.TypeTurnEnded}) {
		t.Errorf("got %v", got)
	}
	if e := list[3]; e.Echo == nil || *e.Echo != 1 || string(e.Payload) != `{"n":1.0}` {
		t.Errorf("got %+v", e)
	}
}

func TestWhatIsSecretAmongTheVariables(t *testing.T) {
	env := map[string]string{
		"API_TOKEN": "v1", "API_KEY": "v2", "OTHER": "v3", "PLAIN": "v4", "PATH": "/bin", "HOME": "/home/agent", "BULLPEN_TEAM": "web",
		"NODE_VERSION": "22.1.0", "JAVA_HOME": "/opt/java", "SHOP_SERVICE_HOST": "10.0.0.7", "RELEASE": "1.2.3", "DIGITS": "12345678",
		"DB_URL": "postgres://ada:swordfish@db/shop", "PAGE": "https://example.com/", "DB_username": "ada-of-the-team", "EMPTY": "",
	}
	for name, test := range map[string]struct {
		vars string
		want []string
	}{
		"none":                 {"", nil},
		"one by name":          {"API_TOKEN", []string{"v1"}},
		"a beginning":          {"API_*,OTHER", []string{"v1", "v2", "v3"}},
		"one less":             {"API_*,!API_KEY", []string{"v1"}},
		"one less, said first": {"!API_KEY,API_*", []string{"v1"}},
		"all":                  {"*,!PLAIN", []string{"12345678", "postgres://ada:swordfish@db/shop", "v1", "v2", "v3"}},
		"a plain one by name":  {"NODE_VERSION", []string{"22.1.0"}},
		"one that is none":     {"NOTHING,PATH,BULLPEN_*", nil},
	} {
		env[contract.EnvSecretVars] = test.vars
		got := secretsFrom(env).Values
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	env[contract.EnvSecretFiles], env[contract.EnvGitCredentials] = "/a/b::/c", "/git"
	if got := secretsFrom(env).Paths; !cmp.Equal(got, []string{"/a/b", "/c", "/git"}) {
		t.Errorf("paths: %v", got)
	}
}

func TestTheIngestURL(t *testing.T) {
	got, err := ingestURL("https://office:8443/", "ada", "a/b", "s1", "r1-a/b")
	if want := "wss://office:8443/v1/sessions/a%2Fb/ingest?offer=r1-a%2Fb&person=ada&spool=s1"; err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAnItemKeepsTheIDOfItsOffer(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "true")
	p.start()
	office := o.welcome()
	office.accepted("i")
	office.ack(expect[protocol.Handback](office).id)
	data, err := os.ReadFile(filepath.Join(p.home, ".bullpen/state/items/i.json"))
	if err != nil {
		t.Fatal(err)
	}
	it, err := parseItem(data)
	if err != nil || it.offerID == "" || it.offerID != o.whole("i", 1)[0].Offer {
		t.Errorf("got %+v, %v", it, err)
	}
}
