package agent

// These tests are about errands: acts and reports, that the office has the agent do itself by the team's hooks.

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// hooked is a team with hooks for errands.
func hooked(t *testing.T, onAct, onReport string) protocol.Raw {
	t.Helper()
	config := protocol.DefaultTeamConfig()
	config.Name = "web"
	config.People = []protocol.TeamPerson{{Handle: "ada", Runtime: "command"}}
	config.Environment.Hooks = protocol.TeamHooks{OnAct: onAct, OnReport: onReport}
	raw, err := config.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func anAct(id string, ops ...string) protocol.Act {
	act := protocol.Act{ID: id, Ops: []protocol.Raw{}}
	for _, op := range ops {
		act.Ops = append(act.Ops, protocol.Raw(op))
	}
	return act
}

func aReport(id string) protocol.Report {
	return protocol.Report{
		ID: id, WorkItemID: "item-of-" + id, Kind: protocol.ReportResult, Text: "It is <done>.", Requester: "U1",
		Links:   []protocol.Link{{URL: "https://t.example.com/SHOP-1"}},
		Threads: []protocol.Thread{{Channel: "C1", Thread: "m0", Requester: protocol.Requester{ID: "U1"}}},
	}
}

// logging is a hook that notes its runs in the home, with what it was given.
const logging = `cat > input; id=$BULLPEN_ACT_ID$BULLPEN_REPORT_ID
	echo "$id again=$BULLPEN_ACT_RETRY$BULLPEN_REPORT_RETRY" >> "$HOME/runs"; cp input "$HOME/$id.json"
	`

func (p *place) runs() string { return content(filepath.Join(p.home, "runs")) }

// errandWelcome is a welcome with errands in it.
func (p *peer) errandWelcome(team protocol.Raw, acts []protocol.Act, reports []protocol.Report) {
	p.send(p.hello, protocol.Welcome{
		ProtocolVersion: protocol.Version, HeartbeatMs: 60_000, Team: team, Resume: []string{}, Acts: acts, Reports: reports,
	})
}

func TestActsAreMadeInOrderBesideARoundAndAnswered(t *testing.T) {
	o := newOffice(t)
	o.team = hooked(t, logging+`echo "moved $id"; echo; echo "commented"; echo noise >&2`, "")
	p := newPlace(t, o, untilGo)
	p.start()
	office, _ := o.arrive()
	office.errandWelcome(o.team, []protocol.Act{anAct("a1", `{"op":"move","n":1.50,"to":"<done>"}`), anAct("a2")}, nil)
	office.accepted("i")
	eventually(t, "the round runs", func() bool { return content(p.file("i", "starts")) == "start" })
	office.send("", anAct("a3"))
	for _, id := range []string{"a1", "a2", "a3"} {
		result := expect[protocol.ActResult](office)
		want := protocol.ActResult{ID: id, OK: true, Results: []string{"moved " + id, "commented"}}
		if diff := cmp.Diff(want, result.message); diff != "" {
			t.Error(diff)
		}
		office.ack(result.id)
	}
	if got, want := p.runs(), "a1 again=\na2 again=\na3 again="; got != want {
		t.Errorf("the hook ran: %q", got)
	}
	if got, want := content(filepath.Join(p.home, "a1.json")), `{"id":"a1","ops":[{"op":"move","n":1.50,"to":"<done>"}]}`; got != want {
		t.Errorf("the hook was given %s", got)
	}
	if !alive(t, p.file("i", "pid")) {
		t.Error("the round ended")
	}
}

func TestAnActIsMadeOnceAndAnsweredUntilTheOfficeKnows(t *testing.T) {
	o := newOffice(t)
	o.team = hooked(t, logging+`echo made`, "")
	p := newPlace(t, o, "true")
	p.start()
	office, _ := o.arrive()
	act := anAct("round/i/1") // an id that is no name of a file
	office.errandWelcome(o.team, []protocol.Act{act}, nil)
	office.send("", act)
	first := expect[protocol.ActResult](office) // and no answer
	office.send("", act)
	_ = office.ws.Close()
	office, _ = o.arrive()
	office.errandWelcome(o.team, []protocol.Act{act}, nil)
	second := expect[protocol.ActResult](office)
	if first.id != second.id || !cmp.Equal(first.message, second.message) {
		t.Errorf("the repeat is %+v, not %+v", second, first)
	}
	office.ack(second.id)
	office.send("", act) // an office that was restored from a backup
	third := expect[protocol.ActResult](office)
	if diff := cmp.Diff(first.message, third.message); diff != "" {
		t.Error(diff)
	}
	office.ack(third.id)
	eventually(t, "no other answer is on its way", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.home, ".bullpen/state/outbox/*"))
		return len(files) == 0
	})
	if got := len(strings.Split(p.runs(), "\n")); got != 1 {
		t.Errorf("it was made %d times", got)
	}
}

func TestWhyAnActFailed(t *testing.T) {
	for name, test := range map[string]struct {
		hook    string
		results []string
		problem string
	}{
		"the last words of the hook": {`echo moved; echo "no such ticket" >&2; exit 3`, []string{"moved"}, "no such ticket"},
		"no words":                   {`exit 3`, []string{}, "the hook on_act ended with exit status 3 and said nothing on its standard error"},
		"a signal":                   {`kill -KILL $$`, []string{}, "the hook on_act ended with killed by signal SIGKILL and said nothing on its standard error"},
		"a hook that hangs":          {`echo moved; echo waiting >&2; trap "" TERM; while :; do sleep 0.01; done`, []string{"moved"}, "the hook on_act took too long and was ended: waiting"},
		"no hook":                    {"", []string{}, "Give the team a hook on_act"},
		"a flood":                    {`yes | head -n 100000; echo end >&2; exit 1`, nil, "end"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.team = hooked(t, test.hook, "")
			newPlace(t, o, "echo bye").start(func(c *Config) { c.hookWait = time.Second })
			office, _ := o.arrive()
			office.errandWelcome(o.team, []protocol.Act{anAct("a")}, nil)
			result := expect[protocol.ActResult](office)
			if m := result.message; m.OK || !strings.Contains(m.Error, test.problem) || test.results != nil && !cmp.Equal(test.results, m.Results) {
				t.Errorf("answered %.300v", m)
			}
			if test.results == nil && len(result.message.Results) != maxResults {
				t.Errorf("%d results", len(result.message.Results))
			}
			office.ack(result.id)
			office.accepted("i") // the agent is none the worse for it
			expect[protocol.Handback](office)
		})
	}
}

func TestKilledInTheMiddleOfAnActTheAgentMakesItAgainAndSaysSo(t *testing.T) {
	o := newOffice(t)
	o.team = hooked(t, logging+`echo $$ > "$HOME/pid"; until [ -e "$HOME/go" ]; do sleep 0.01; done; echo made`, "")
	p := newPlace(t, o, "true")
	agent := p.spawn()
	office, _ := o.arrive()
	office.errandWelcome(o.team, []protocol.Act{anAct("a")}, nil)
	eventually(t, "the hook runs", func() bool { return content(filepath.Join(p.home, "pid")) != "" })
	p.write(filepath.Join(p.home, "first"), content(filepath.Join(p.home, "pid")))
	kill9(t, agent)
	eventually(t, "the hook died with the agent", func() bool { return !alive(t, filepath.Join(p.home, "first")) })
	p.spawn()
	office, _ = o.arrive()
	office.errandWelcome(o.team, []protocol.Act{anAct("a")}, nil)
	eventually(t, "the hook runs again", func() bool { return p.runs() == "a again=\na again=true" })
	p.write(filepath.Join(p.home, "go"), "")
	if m := expect[protocol.ActResult](office).message; !m.OK {
		t.Errorf("answered %+v", m)
	}
}

func TestAShutdownLetsAnActEndAndBeginsNoOther(t *testing.T) {
	o := newOffice(t)
	o.team = hooked(t, logging+`trap "" TERM; until [ -e "$HOME/go" ]; do sleep 0.01; done; echo made`, "")
	p := newPlace(t, o, "true")
	a := p.start()
	office, _ := o.arrive()
	office.errandWelcome(o.team, []protocol.Act{anAct("a"), anAct("b")}, nil)
	eventually(t, "the hook runs", func() bool { return p.runs() == "a again=" })
	a.stop()
	eventually(t, "the shutdown has begun", func() bool { return strings.Contains(a.logs.String(), "shutting down") })
	p.write(filepath.Join(p.home, "go"), "")
	result := expect[protocol.ActResult](office)
	office.ack(result.id)
	a.wait()
	if got := p.runs(); result.message.ID != "a" || !result.message.OK || got != "a again=" {
		t.Errorf("answered %+v; the hook ran %q", result.message, got)
	}
}

func TestAShutdownCutsAnActShortThatDoesNotEnd(t *testing.T) {
	o := newOffice(t)
	o.team = hooked(t, logging+`while :; do sleep 0.01; done`, "")
	p := newPlace(t, o, "true")
	a := p.start(func(c *Config) { c.Grace = 100 * time.Millisecond })
	office, _ := o.arrive()
	office.errandWelcome(o.team, []protocol.Act{anAct("a")}, nil)
	eventually(t, "the hook runs", func() bool { return p.runs() == "a again=" })
	a.stop()
	a.wait()
	if results := all[protocol.ActResult](office); len(results) > 0 {
		t.Errorf("an act that nobody knows the end of was answered: %+v", results)
	}
	p.start()
	office, _ = o.arrive()
	office.errandWelcome(hooked(t, logging, ""), []protocol.Act{anAct("a")}, nil)
	if m := expect[protocol.ActResult](office).message; !m.OK || p.runs() != "a again=\na again=true" {
		t.Errorf("answered %+v; the hook ran %q", m, p.runs())
	}
}

func TestErrandsUseTheNewestHooksAlsoDuringARound(t *testing.T) {
	p, o, office := atWork(t)
	_ = office.ws.Close()
	office, _ = o.arrive()
	office.send(office.hello, protocol.Welcome{
		ProtocolVersion: protocol.Version, HeartbeatMs: 60_000, Team: hooked(t, "echo made", ""), Resume: []string{"i"},
		Acts: []protocol.Act{anAct("a")},
	})
	if m := expect[protocol.ActResult](office).message; !m.OK {
		t.Errorf("answered %+v", m)
	}
	if got := content(p.file("i", "starts")); got != "start" {
		t.Errorf("the round: %q", got)
	}
}

func TestThePersonsOwnHooksReplaceTheTeams(t *testing.T) {
	o := newOffice(t)
	o.team = protocol.Raw(`{"name":"web","environment":{"hooks":{"on_act":"echo team","before_start":"echo team > hook"}},
		"people":[{"handle":"ada","runtime":"command","environment":{"hooks":{"on_act":"echo own","before_start":"echo own > hook"}}}]}`)
	p := newPlace(t, o, "echo bye")
	p.start()
	office, _ := o.arrive()
	office.errandWelcome(o.team, []protocol.Act{anAct("a")}, nil)
	result := expect[protocol.ActResult](office)
	office.ack(result.id)
	if diff := cmp.Diff([]string{"own"}, result.message.Results); diff != "" {
		t.Error(diff)
	}
	office.accepted("i")
	expect[protocol.Handback](office)
	if got := content(p.file("i", "hook")); got != "own" {
		t.Errorf("before_start was the %s's", got)
	}
}

func TestErrandsWaitForAConfigThatCanBeUsed(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "true")
	p.start()
	office, _ := o.arrive()
	office.errandWelcome(protocol.Raw(`{"people":"none"}`), []protocol.Act{anAct("a")}, nil)
	expect[protocol.Error](office)
	_ = office.ws.Close()
	office, _ = o.arrive()
	office.errandWelcome(hooked(t, logging, ""), []protocol.Act{anAct("a")}, nil)
	if m := expect[protocol.ActResult](office).message; !m.OK || p.runs() != "a again=" {
		t.Errorf("answered %+v; the hook ran %q", m, p.runs())
	}
}

func TestReportsArePostedOnceAndConfirmed(t *testing.T) {
	o := newOffice(t)
	o.team = hooked(t, "", logging)
	p := newPlace(t, o, "true")
	p.start()
	office, _ := o.arrive()
	office.errandWelcome(o.team, nil, []protocol.Report{aReport("r1")})
	office.send("", protocol.Reports{Reports: []protocol.Report{aReport("r1"), aReport("r2")}})
	var first string
	for _, id := range []string{"r1", "r2"} {
		posted := expect[protocol.ReportPosted](office)
		if diff := cmp.Diff(protocol.ReportPosted{WorkItemID: "item-of-" + id, ID: id}, posted.message); diff != "" {
			t.Error(diff)
		}
		if id == "r1" {
			office.ack(posted.id)
		}
		first = posted.id
	}
	_ = office.ws.Close() // the second was not acknowledged
	office, _ = o.arrive()
	office.errandWelcome(o.team, nil, []protocol.Report{aReport("r2")})
	if again := expect[protocol.ReportPosted](office); again.id != first {
		t.Errorf("the repeat has the id %s, not %s", again.id, first)
	}
	if got, want := p.runs(), "r1 again=\nr2 again="; got != want {
		t.Errorf("the hook ran: %q", got)
	}
	var given protocol.Report
	if err := json.Unmarshal([]byte(content(filepath.Join(p.home, "r1.json"))), &given); err != nil {
		t.Fatal(err)
	}
	given.Threads[0].Requester.Extra = nil
	if diff := cmp.Diff(aReport("r1"), given); diff != "" {
		t.Errorf("the hook was given something else:\n%s", diff)
	}
}

func TestAReportThatCannotBePostedIsTriedAgainAndHoldsNoOtherUp(t *testing.T) {
	o := newOffice(t)
	o.team = hooked(t, "", logging+`[ "$id" = r2 ] || [ -e "$HOME/go" ]`)
	p := newPlace(t, o, "true")
	p.start()
	office, _ := o.arrive()
	office.errandWelcome(o.team, nil, []protocol.Report{aReport("r1"), aReport("r2")})
	posted := expect[protocol.ReportPosted](office)
	office.ack(posted.id)
	if posted.message.ID != "r2" {
		t.Errorf("%s was posted", posted.message.ID)
	}
	r := p.ost("reports", "--json")
	if !strings.Contains(r.out, `"id":"r1"`) || strings.Contains(r.out, `"id":"r2"`) {
		t.Errorf("open reports: %s%s", r.out, r.errOut)
	}
	if got, want := p.runs(), "r1 again=\nr2 again="; got != want {
		t.Errorf("the hook ran: %q", got)
	}
}

func TestWithoutAHookProgramsPostReportsAndConfirmThem(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "true")
	a := p.start()
	office, _ := o.arrive()
	office.errandWelcome(o.team, nil, []protocol.Report{aReport("r1"), aReport("r2")})
	office.send("", protocol.Reports{Reports: []protocol.Report{aReport("r1")}})
	ping := office.send("", protocol.Ping{})
	if pong := expect[protocol.Pong](office); pong.replyTo != ping {
		t.Fatal("another pong")
	}
	want := `
r1  result of item item-of-r1
for U1
post in C1, thread m0
  https://t.example.com/SHOP-1
  It is <done>.

r2  result of item item-of-r2
for U1
post in C1, thread m0
  https://t.example.com/SHOP-1
  It is <done>.`
	if r := p.ost("reports"); r.out != strings.TrimSpace(want) {
		t.Errorf("got %s%s", r.out, r.errOut)
	}
	if n := strings.Count(a.logs.String(), "no hook on_report"); n != 1 {
		t.Errorf("the log says %d times that there is no hook", n)
	}
	done := p.behind("report", "posted", "r1")
	posted := expect[protocol.ReportPosted](office)
	if diff := cmp.Diff(protocol.ReportPosted{WorkItemID: "item-of-r1", ID: "r1"}, posted.message); diff != "" {
		t.Error(diff)
	}
	office.ack(posted.id)
	if r := soon(t, done); r.out != "confirmed" {
		t.Errorf("got %+v", r)
	}
	if r := p.ost("reports"); strings.Contains(r.out, "r1") || !strings.Contains(r.out, "r2") {
		t.Errorf("open reports: %s%s", r.out, r.errOut)
	}
	if r := p.ost("report", "posted", "r1"); r.exit != 1 || !strings.Contains(r.errOut, "there is no open report r1") {
		t.Errorf("confirmed twice: %+v", r)
	}
	// What a program has posted, the hook does not post, when there is one.
	_ = office.ws.Close()
	office, _ = o.arrive()
	office.errandWelcome(hooked(t, "", logging), nil, []protocol.Report{aReport("r1"), aReport("r2")})
	for range 2 {
		office.ack(expect[protocol.ReportPosted](office).id)
	}
	if got := p.runs(); got != "r2 again=" {
		t.Errorf("the hook ran: %q", got)
	}
}

func TestErrandsAsTheyCome(t *testing.T) {
	now := time.Unix(1000, 0)
	e := newErrands(kindAct)
	check := func(what string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	nextID := func(now time.Time) string {
		x, ok := e.next(now)
		if !ok {
			return ""
		}
		return x.id
	}
	check("a new one", e.take("a", nil), verdictNew)
	check("the same while it waits", e.take("a", nil), verdictKnown)
	check("another", e.take("b", nil), verdictNew)
	check("the first is next", nextID(now), "a")
	e.pause("a", now)
	check("an act that waits holds up the later ones", nextID(now), "")
	check("until its pause is over", nextID(now.Add(time.Minute)), "a")
	check("the pause doubles", e.pause("a", now), 2*time.Minute)
	x, _ := e.next(now.Add(time.Hour))
	e.begin(x, &deed{id: "a"})
	check("the same while it runs", e.take("a", nil), verdictKnown)
	check("one at a time", nextID(now.Add(time.Hour)), "")
	e.running = nil
	e.finish("a", protocol.ActResult{ID: "a"})
	check("the same when it is done", e.take("a", nil), verdictAnswer)
	check("then the next", nextID(now), "b")
	e.deeds["c"] = &deed{id: "c"}
	e.take("c", nil)
	check("one that an earlier process began", e.waiting[len(e.waiting)-1].again, true)

	e = newErrands(kindReport)
	e.take("a", nil)
	e.take("b", nil)
	e.pause("a", now)
	check("a report that waits holds nothing up", nextID(now), "b")
}

func TestOnlySoManyErrandsAreRemembered(t *testing.T) {
	e := newErrands(kindAct)
	for i := range 5 {
		e.finish(fmt.Sprint(i), protocol.ActResult{}).at = int64(10 - i)
	}
	e.deeds["begun"] = &deed{id: "begun"}
	if diff := cmp.Diff([]string{"4", "3"}, e.old(3)); diff != "" {
		t.Error(diff)
	}
	if old := e.old(5); len(old) > 0 {
		t.Errorf("within bounds: %v", old)
	}
}

func TestAFullDiskBeginsNoErrand(t *testing.T) {
	o := newOffice(t)
	o.team = hooked(t, logging, "")
	p := newPlace(t, o, "true")
	p.start()
	office, _ := o.arrive()
	office.errandWelcome(o.team, nil, nil)
	expect[protocol.DoctorReport](office)
	folder := filepath.Join(p.home, ".bullpen/state/errands")
	if err := disk.RemoveTree(folder); err != nil {
		t.Fatal(err)
	}
	office.send("", anAct("a"))
	ping := office.send("", protocol.Ping{})
	if pong := expect[protocol.Pong](office); pong.replyTo != ping {
		t.Fatal("another pong")
	}
	if r := p.ost("note", "list"); r.exit != 0 { // the loop has taken the act by now
		t.Errorf("got %+v", r)
	}
	if p.runs() != "" {
		t.Errorf("the hook ran: %q", p.runs())
	}
}
