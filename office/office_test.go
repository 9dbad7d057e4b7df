package office_test

// These tests drive the office as agents do, over real connections and a real store.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

func TestAnItemThroughItsWholeLife(t *testing.T) {
	b := open(t)
	a, welcome := b.connect("ada")
	if welcome.ProtocolVersion != 3 || welcome.HeartbeatMs != 15000 || len(welcome.Resume) != 0 {
		t.Errorf("welcome is %+v", welcome)
	}
	config, err := protocol.ParseTeamConfig(welcome.Team)
	b.must(err)
	if len(config.People) != 2 || config.People[0].Handle != "ada" {
		t.Errorf("the config's people are %+v", config.People)
	}
	if v := b.apply("fix"); v.State != protocol.StateQueued || v.Assignee != "ada" {
		t.Errorf("applied: %s of %q", v.State, v.Assignee)
	}
	offer := a.take("fix")
	if offer.WorkItem.Title != "Title of fix" || offer.Context.Journal[0].Text != "Body of fix" || offer.Context.Journal[0].Author != "grace" {
		t.Errorf("the offer is %+v", offer)
	}
	a.ok(protocol.Heartbeat{WorkItemID: "uid-fix"})
	a.ok(protocol.Progress{WorkItemID: "uid-fix", Text: "cloning"})
	a.ok(protocol.Session{WorkItemID: "uid-fix", SessionID: "s1", Model: "m"})
	a.ok(protocol.Journal{WorkItemID: "uid-fix", Text: "the cause is a race"})
	if it := b.item("fix"); it.State != protocol.StateActive || it.Progress != "cloning" || it.SessionID != "s1" || it.Rounds != 1 {
		t.Errorf("running: %+v", it)
	}
	a.ok(done("fix"))
	it := b.item("fix")
	if it.State != protocol.StateDone || it.Summary != "did fix" || it.Round != nil || it.FinishedAt.IsZero() {
		t.Errorf("done: %+v", it)
	}
	a.quiet()
}

func TestHelloIsRefused(t *testing.T) {
	hello := protocol.Hello{Person: "ada", Token: "token-ada", ProtocolVersion: 3, AgentVersion: "test"}
	for name, tc := range map[string]struct {
		first protocol.Message
		code  protocol.Code
		close int
	}{
		"a wrong token":                {edit(hello, func(h *protocol.Hello) { h.Token = "token-bob" }), protocol.CodeAuthFailed, 4401},
		"an unknown person":            {edit(hello, func(h *protocol.Hello) { h.Person = "eve" }), protocol.CodeAuthFailed, 4401},
		"an empty token":               {edit(hello, func(h *protocol.Hello) { h.Token = "" }), protocol.CodeAuthFailed, 4401},
		"another protocol version":     {edit(hello, func(h *protocol.Hello) { h.ProtocolVersion = 4 }), protocol.CodeVersionMismatch, 4426},
		"anything else before a hello": {protocol.Ping{}, protocol.CodeUnauthenticated, websocket.ClosePolicyViolation},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			good, _ := b.connect("ada")
			a := b.dial()
			got, ok := a.reply(a.send(tc.first)).(protocol.Error)
			if !ok || got.Code != tc.code {
				t.Errorf("answered with %+v, want error %s", got, tc.code)
			}
			if strings.Contains(got.Message, "token-") {
				t.Errorf("the answer tells of the token: %s", got.Message)
			}
			if code := a.closed(); code != tc.close {
				t.Errorf("closed with %d, want %d", code, tc.close)
			}
			good.quiet() // a bad hello disturbs nobody
			if n := b.counted("bullpen_office_auth_failures_total", "reason", string(tc.code)); n != 1 {
				t.Errorf("the metric counts %v refusals", n)
			}
			if log := b.logs.String(); strings.Contains(log, "token-") {
				t.Errorf("the log tells of a token: %s", log)
			}
		})
	}
}

// counted reads a counter of the office.
func (b *bench) counted(name, label, value string) float64 {
	b.t.Helper()
	families, err := b.metrics.Gather()
	b.must(err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

func edit[T any](v T, f func(*T)) T {
	f(&v)
	return v
}

func TestWhatIsNotUnderstoodIsAnsweredAndTheConnectionKept(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	for name, tc := range map[string]struct {
		frame   string
		replyTo string
		code    protocol.Code
	}{
		"not JSON":              {`{"id":`, "", protocol.CodeMalformed},
		"an unknown type":       {`{"id":"x1","type":"dance","payload":{}}`, "x1", protocol.CodeUnknownType},
		"a payload that is off": {`{"id":"x2","type":"progress","payload":{"workItemId":7}}`, "x2", protocol.CodeInvalidMessage},
		"what only the office sends": {
			`{"id":"x3","type":"reports","payload":{"reports":[]}}`, "x3", protocol.CodeInvalidMessage},
		"what this office does not do": {`{"id":"x4","type":"ci_log","payload":{"url":"https://ci.example/1","lines":10}}`, "x4", protocol.CodeUnsupported},
		"a second hello": {
			`{"id":"x5","type":"hello","payload":{"person":"ada","token":"t","protocolVersion":3,"agentVersion":"v"}}`, "x5", protocol.CodeInvalid},
		"a frame over the limit": {`{"id":"` + strings.Repeat("x", protocol.MaxFrame) + `"}`, "", protocol.CodeMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			b.must(a.ws.WriteMessage(websocket.TextMessage, []byte(tc.frame)))
			f := a.read()
			if got, ok := f.Message.(protocol.Error); !ok || got.Code != tc.code || f.ReplyTo != tc.replyTo {
				t.Errorf("answered %q with %+v, want %q %s", f.ReplyTo, f.Message, tc.replyTo, tc.code)
			}
		})
	}
	b.must(a.ws.WriteMessage(websocket.BinaryMessage, []byte("x")))
	if got, ok := a.read().Message.(protocol.Error); !ok || got.Code != protocol.CodeMalformed {
		t.Errorf("a binary frame was answered with %+v", got)
	}
	a.sendAs("e1", protocol.Error{Code: protocol.CodeFailed, Message: "no"})
	a.quiet() // an error is never answered with an error
}

func TestOneRoundAtATimeByPriorityThenAge(t *testing.T) {
	b := open(t)
	for _, item := range []struct {
		name     string
		priority int32
		age      time.Duration
	}{{"late", 100, 0}, {"old", 100, time.Hour}, {"urgent", 1, 0}} {
		b.apply(item.name, func(f *model.ItemFacts) {
			f.Spec.Priority = item.priority
			f.CreatedAt = f.CreatedAt.Add(-item.age)
		})
	}
	a, _ := b.connect("ada")
	for _, name := range []string{"urgent", "old", "late"} {
		a.take(name)
		a.quiet()
		a.ok(done(name))
	}
}

func TestAnOfferThatWasNotAcceptedComesAgainAfterAReconnectAndARestart(t *testing.T) {
	b := open(t)
	b.apply("fix")
	first, _ := b.connect("ada")
	offer := first.offer()
	b.must(first.ws.Close())
	second, welcome := b.connect("ada")
	if again := second.offer(); again.WorkItem.ID != offer.WorkItem.ID || len(welcome.Resume) != 0 {
		t.Errorf("offered %s again, resume %v", again.WorkItem.ID, welcome.Resume)
	}
	b.restart()
	third, _ := b.connect("ada")
	third.take("fix")
	third.ok(done("fix"))
	if it := b.item("fix"); it.Offers != 1 || it.Rounds != 1 {
		t.Errorf("%d offers, %d rounds; want one of each", it.Offers, it.Rounds)
	}
}

func TestAnAcceptedItemStandsInResumeAfterAReconnectAndARestart(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	a.take("fix")
	a.ok(protocol.Journal{WorkItemID: "uid-fix", Text: "half done"})
	b.restart()
	a, welcome := b.connect("ada")
	if !slices.Equal(welcome.Resume, []string{"uid-fix"}) {
		t.Fatalf("resume is %v", welcome.Resume)
	}
	a.ok(protocol.Accept{WorkItemID: "uid-fix", Runtime: "command"}) // harmless
	a.ok(done("fix"))
	if it := b.item("fix"); it.Rounds != 1 || it.LostRounds != 0 || it.State != protocol.StateDone {
		t.Errorf("%d rounds, %d lost, %s", it.Rounds, it.LostRounds, it.State)
	}
}

func TestRepeatsCountOnce(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	a.take("fix")
	ack := func(id string, m protocol.Message) {
		t.Helper()
		a.sendAs(id, m)
		if _, ok := a.reply(id).(protocol.Ack); !ok {
			t.Fatalf("%s %s was not acknowledged", id, m.Type())
		}
	}
	line := protocol.Journal{WorkItemID: "uid-fix", Text: "the cause is a race"}
	ack("r1", line)
	ack("r1", line)
	b.restart()
	a, _ = b.connect("ada")
	ack("r1", line)
	ack("r2", line) // another message that says the same
	cost := 0.5
	hb := done("fix")
	hb.Usage = []protocol.SessionUsage{{Session: "s1", Models: map[string]protocol.ModelUsage{"m": {InputTokens: 100, OutputTokens: 10, CostUSD: &cost}}}}
	ack("r3", hb)
	ack("r3", hb)
	b.restart()
	a, _ = b.connect("ada")
	ack("r3", hb)
	ack("r4", hb) // a hand-back under a new id is late, and its usage is known already
	it := b.item("fix")
	if it.Usage != (model.Usage{InputTokens: 100, OutputTokens: 10, CostMicroUSD: 500000, CostKnown: true}) || it.State != protocol.StateDone {
		t.Errorf("%s, usage %+v", it.State, it.Usage)
	}
	b.must(b.store.View(t.Context(), func(r store.Reader) error {
		journal, err := r.Journal("uid-fix")
		rounds, err2 := r.Rounds("uid-fix")
		if len(journal) != 2 || len(rounds) != 1 {
			t.Errorf("%d journal entries, %d rounds; want 2 and 1 (%v %v)", len(journal), len(rounds), err, err2)
		}
		return nil
	}))
}

func TestARepeatedHandBackAfterTheNextAcceptChangesNothing(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	a.take("fix")
	interrupted := protocol.Handback{WorkItemID: "uid-fix", Status: protocol.HandbackInterrupted, Summary: "stopping", Links: []protocol.Link{}}
	a.sendAs("h1", interrupted)
	a.reply("h1")
	a.take("fix")
	a.sendAs("h1", interrupted)
	if _, ok := a.reply("h1").(protocol.Ack); !ok {
		t.Fatal("the repeat was not acknowledged")
	}
	if it := b.item("fix"); it.State != protocol.StateActive || it.Rounds != 2 {
		t.Errorf("%s after %d rounds", it.State, it.Rounds)
	}
}

func TestUsageOfAResumedSessionCountsOnlyWhatIsNew(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	usage := func(session string, in int64) []protocol.SessionUsage {
		return []protocol.SessionUsage{{Session: session, Models: map[string]protocol.ModelUsage{"m": {InputTokens: in}}}}
	}
	a.take("fix")
	a.ok(protocol.Handback{WorkItemID: "uid-fix", Status: protocol.HandbackInterrupted, Links: []protocol.Link{}, Usage: usage("s1", 100)})
	a.take("fix")
	a.ok(protocol.Fail{WorkItemID: "uid-fix", Reason: "no", Usage: append(usage("s1", 150), usage("s2", 30)...)})
	a.take("fix")
	hb := done("fix")
	hb.Usage = usage("s2", 20) // older than the last report
	a.ok(hb)
	if it := b.item("fix"); it.Usage.InputTokens != 180 || it.Usage.CostKnown {
		t.Errorf("%d tokens, cost known %v; want 180, false", it.Usage.InputTokens, it.Usage.CostKnown)
	}
}

func TestAnInterruptedItemGoesOnFirstWithItsSession(t *testing.T) {
	b := open(t)
	b.apply("low", func(f *model.ItemFacts) { f.Spec.Priority = 500 })
	a, _ := b.connect("ada")
	a.take("low")
	a.ok(protocol.Session{WorkItemID: "uid-low", SessionID: "s1"})
	b.apply("urgent", func(f *model.ItemFacts) { f.Spec.Priority = 1 })
	a.ok(protocol.Handback{WorkItemID: "uid-low", Status: protocol.HandbackInterrupted, Links: []protocol.Link{}})
	offer := a.take("low")
	if offer.SessionID != "s1" || offer.Interrupted == nil || !*offer.Interrupted {
		t.Errorf("offered with session %q, interrupted %v", offer.SessionID, offer.Interrupted)
	}
	if it := b.item("low"); it.Failures != 0 || it.LostRounds != 0 {
		t.Errorf("%d failures, %d lost rounds", it.Failures, it.LostRounds)
	}
}

func TestASecondConnectionReplacesTheFirst(t *testing.T) {
	b := open(t)
	b.apply("fix")
	first, _ := b.connect("ada")
	first.take("fix")
	second, welcome := b.connect("ada")
	if code := first.closed(); code != protocol.CloseReplaced {
		t.Errorf("the first one closed with %d", code)
	}
	if n := len(first.inbox); n == 0 || first.inbox[n-1].Message.(protocol.Error).Code != protocol.CodeReplaced {
		t.Errorf("the first one was not told: %+v", first.inbox)
	}
	if !slices.Equal(welcome.Resume, []string{"uid-fix"}) {
		t.Errorf("resume is %v", welcome.Resume)
	}
	second.ok(done("fix"))
}

func TestDeclineGoesBackToTheQueueAndTheRoundIsKept(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	a.offer()
	a.ok(protocol.Decline{WorkItemID: "uid-fix", Reason: "disk full"})
	a.take("fix") // after the backoff
	b.must(b.store.View(t.Context(), func(r store.Reader) error {
		rounds, err := r.Rounds("uid-fix")
		if len(rounds) != 2 || rounds[0].Outcome != model.OutcomeDeclined || rounds[0].Summary != "disk full" {
			t.Errorf("rounds are %+v", rounds)
		}
		return err
	}))
}

func TestARoleItemGoesToOnePersonAndStays(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	for _, name := range []string{"one", "two"} {
		b.apply(name, func(f *model.ItemFacts) { f.Spec.Person, f.Spec.Role = "", "dev" })
	}
	ida, idb := ada.offer().WorkItem.ID, bob.offer().WorkItem.ID
	if ida == idb {
		t.Fatalf("both were offered %s", ida)
	}
	ada.ok(protocol.Accept{WorkItemID: ida})
	ada.refused(protocol.Accept{WorkItemID: idb}, protocol.CodeUnknownItem)
	ada.refused(protocol.Handback{WorkItemID: idb, Status: protocol.HandbackDone, Links: []protocol.Link{}}, protocol.CodeUnknownItem)
	got := ada.request(protocol.WorkStatus{WorkItemIDs: []string{ida, idb, "nope"}}).(protocol.WorkStatusResult)
	states := []protocol.ItemState{got.Items[0].State, got.Items[1].State, got.Items[2].State}
	if !slices.Equal(states, []protocol.ItemState{"active", "not_yours", "unknown"}) {
		t.Errorf("work_status says %v", states)
	}
}

func TestAnItemOfAnotherTeamIsUnknownToAPersonOfTheSameHandle(t *testing.T) {
	b := open(t)
	elsewhere := model.TeamKey{Namespace: "ns", Name: "elsewhere"}
	team := model.Team{UID: "team-2", Key: elsewhere, Policy: dispatch.DefaultPolicy(), Config: protocol.DefaultTeamConfig()}
	team.Config.Name = elsewhere.Name
	b.must(b.office.SyncTeam(t.Context(), team))
	namesake := person("ada")
	namesake.UID, namesake.Name, namesake.Key.Team = "uid-ada-2", "ada-2", elsewhere
	b.must(b.office.SyncPerson(t.Context(), namesake))
	b.apply("theirs", func(f *model.ItemFacts) { f.Spec.Team = elsewhere.Name })
	other := b.dialTeam(elsewhere)
	other.reply(other.send(protocol.Hello{Person: "ada", Token: "token-ada", ProtocolVersion: protocol.Version, AgentVersion: "test"}))
	other.offer()
	a, _ := b.connect("ada")
	for _, m := range []protocol.Message{
		protocol.Accept{WorkItemID: "uid-theirs"},
		protocol.Decline{WorkItemID: "uid-theirs", Reason: "no"},
		protocol.Heartbeat{WorkItemID: "uid-theirs"},
		protocol.Progress{WorkItemID: "uid-theirs", Text: "x"},
		protocol.Journal{WorkItemID: "uid-theirs", Text: "x"},
		protocol.Fail{WorkItemID: "uid-theirs", Reason: "x"},
		done("theirs"),
	} {
		a.refused(m, protocol.CodeUnknownItem)
	}
	other.ok(protocol.Accept{WorkItemID: "uid-theirs", Runtime: "command"})
}

func TestCancelInTheMiddleOfARoundDropsTheConnection(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	a.take("fix")
	v := b.apply("fix", func(f *model.ItemFacts) { f.Spec.Generation, f.Spec.Cancel = 2, true })
	if v.State != protocol.StateCanceled {
		t.Fatalf("canceled item is %s", v.State)
	}
	if code := a.closed(); code != hub.CodeDropped {
		t.Errorf("closed with %d", code)
	}
	a, welcome := b.connect("ada")
	if len(welcome.Resume) != 0 {
		t.Errorf("resume is %v", welcome.Resume)
	}
	a.refused(protocol.Progress{WorkItemID: "uid-fix", Text: "still at it"}, protocol.CodeInvalid)
	a.refused(protocol.Heartbeat{WorkItemID: "uid-fix"}, protocol.CodeInvalid)
	late := done("fix")
	late.Usage = []protocol.SessionUsage{{Session: "s", Models: map[string]protocol.ModelUsage{"m": {OutputTokens: 7}}}}
	a.ok(late)
	if it := b.item("fix"); it.State != protocol.StateCanceled || it.Usage.OutputTokens != 7 {
		t.Errorf("after a late hand-back: %s, %d tokens; want canceled, 7", it.State, it.Usage.OutputTokens)
	}
}

func TestDeletionAndTimeoutEndTheRound(t *testing.T) {
	b := open(t)
	b.apply("slow", func(f *model.ItemFacts) { f.Spec.Timeout, f.Spec.Attempts = 50*time.Millisecond, 1 })
	a, _ := b.connect("ada")
	a.take("slow")
	if code := a.closed(); code != hub.CodeDropped {
		t.Errorf("the timeout closed with %d", code)
	}
	if it := b.item("slow"); it.State != protocol.StateBlocked || it.End.Reason != model.ReasonAttemptsExhausted {
		t.Errorf("timed out: %s (%s)", it.State, it.End.Reason)
	}
	b.apply("gone")
	a, _ = b.connect("ada")
	a.take("gone")
	b.must(b.office.ForgetItem(t.Context(), "uid-gone", false))
	if code := a.closed(); code != hub.CodeDropped {
		t.Errorf("the deletion closed with %d", code)
	}
	if it := b.item("gone"); it.State != protocol.StateCanceled || !it.Gone {
		t.Errorf("deleted: %s, gone %v", it.State, it.Gone)
	}
}

func TestDeletionsWhileTheOfficeWasDownAreFound(t *testing.T) {
	b := open(t)
	b.apply("kept")
	b.apply("gone")
	b.restart()
	b.must(b.office.Retain(t.Context(), model.Live{Namespaces: []string{"elsewhere"}}))
	if it := b.item("gone"); it.Gone {
		t.Error("what is in a namespace that nobody looked at was taken for deleted")
	}
	b.must(b.office.Retain(t.Context(), model.Live{Teams: []model.TeamKey{shop}, People: []string{"uid-ada"}, Items: []string{"uid-kept"}}))
	if it := b.item("gone"); !it.Gone || it.State != protocol.StateCanceled {
		t.Errorf("gone: %s, %v", it.State, it.Gone)
	}
	if it := b.item("kept"); it.Gone || it.State != protocol.StateQueued {
		t.Errorf("kept: %s, %v", it.State, it.Gone)
	}
	a := b.dial()
	if got := a.reply(a.send(protocol.Hello{Person: "bob", Token: "token-bob", ProtocolVersion: 3, AgentVersion: "t"})); got.(protocol.Error).Code != protocol.CodeAuthFailed {
		t.Errorf("bob, who is gone, got %+v", got)
	}
}

func TestAnItemThatItsTTLRemovedDoesNotRunAgainWhenItIsAppliedAgain(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	a.take("fix")
	a.ok(done("fix"))
	for _, expired := range []bool{true, true, false} { // a repeat changes nothing, nor does the deletion that follows
		b.must(b.office.ForgetItem(t.Context(), "uid-fix", expired))
	}
	again := func(f *model.ItemFacts) { f.ID = "uid-fix-again" }
	if v := b.apply("fix", again); v.State != protocol.StateDone || v.Summary != "did fix" || v.Rounds != 1 {
		t.Errorf("applied again: %s, %q, %d rounds", v.State, v.Summary, v.Rounds)
	}
	a.quiet()
	other := func(f *model.ItemFacts) { f.ID, f.Spec.Hash = "uid-fix-other", "another spec" }
	b.must(b.office.ForgetItem(t.Context(), "uid-fix-again", false))
	if v := b.apply("fix", other); v.State != protocol.StateQueued {
		t.Errorf("another spec under the same name is %s", v.State)
	}
}

func TestDependenciesOrderWork(t *testing.T) {
	b := open(t)
	v := b.apply("second", func(f *model.ItemFacts) { f.Spec.DependsOn = []string{"first"}; f.Spec.Priority = 1 })
	if v.Hold.Reason != model.ReasonDependencyNotFound {
		t.Errorf("held for %q", v.Hold.Reason)
	}
	a, _ := b.connect("ada")
	a.quiet()
	b.apply("first")
	if it := b.item("second"); it.Hold.Reason != model.ReasonDependencyPending {
		t.Errorf("held for %q", it.Hold.Reason)
	}
	a.take("first")
	a.ok(done("first"))
	a.take("second")
}

func TestWhatIsMissingHealsWhenItComes(t *testing.T) {
	b := open(t)
	v := b.apply("later", func(f *model.ItemFacts) { f.Spec.Person = "eve" })
	if v.Hold.Reason != model.ReasonPersonNotFound {
		t.Fatalf("held for %q", v.Hold.Reason)
	}
	b.must(b.office.SyncPerson(t.Context(), person("eve")))
	if it := b.item("later"); it.Hold.Reason != "" {
		t.Errorf("still held for %q", it.Hold.Reason)
	}
	eve, _ := b.connect("eve")
	eve.take("later")
	b.must(b.office.ForgetPerson(t.Context(), "uid-eve"))
	it := b.item("later")
	if it.Hold.Reason != model.ReasonPersonNotFound || it.State != protocol.StateQueued || it.Round != nil {
		t.Errorf("after the person went: %s, held for %q", it.State, it.Hold.Reason)
	}
	eve.closed()
	b.must(b.office.SyncPerson(t.Context(), person("eve")))
	eve, _ = b.connect("eve")
	eve.take("later")
}

func TestAFullUsageWindowPausesEverybodyOfTheSubscription(t *testing.T) {
	b := open(t)
	for _, handle := range []string{"ada", "bob"} {
		p := person(handle)
		p.Subscription = "max"
		b.must(b.office.SyncPerson(t.Context(), p))
	}
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	reset := time.Now().Add(700 * time.Millisecond)
	ada.ok(protocol.Usage{Windows: []protocol.UsageWindow{{Name: "five_hour", Utilization: 0.97, ResetsAt: protocol.FormatTime(reset)}}})
	b.apply("fix", func(f *model.ItemFacts) { f.Spec.Person = "bob" })
	bob.quiet()
	v, err := b.office.Person(t.Context(), model.PersonKey{Team: shop, Handle: "bob"})
	b.must(err)
	if v.State != model.PersonPaused || v.PausedBy != "five_hour" {
		t.Errorf("bob is %s by %q", v.State, v.PausedBy)
	}
	bob.take("fix")
	if time.Now().Before(reset.Truncate(time.Millisecond)) {
		t.Error("bob got work before the window reset")
	}
}

func TestAChangedConfigReachesTheIdleByReconnectAndTheBusyAfterTheirRound(t *testing.T) {
	b := open(t)
	b.apply("fix")
	ada, _ := b.connect("ada")
	ada.take("fix")
	bob, _ := b.connect("bob")
	var team model.Team
	b.must(b.store.View(t.Context(), func(r store.Reader) (err error) { team, err = r.Team(shop); return err }))
	team.Config.Roles[0].Instructions = "Write tests first."
	b.must(b.office.SyncTeam(t.Context(), team))
	if code := bob.closed(); code != hub.CodeDropped {
		t.Errorf("idle bob closed with %d", code)
	}
	ada.quiet()
	ada.ok(done("fix"))
	if code := ada.closed(); code != hub.CodeDropped {
		t.Errorf("ada closed with %d after the round", code)
	}
	_, welcome := b.connect("ada")
	config, err := protocol.ParseTeamConfig(welcome.Team)
	b.must(err)
	if config.Roles[0].Instructions != "Write tests first." {
		t.Errorf("the new welcome says %+v", config.Roles)
	}
}

func TestRosterAndWorkList(t *testing.T) {
	b := open(t)
	b.apply("fix")
	b.apply("next")
	ada, _ := b.connect("ada")
	ada.take("fix")
	ada.refused(protocol.Usage{Windows: []protocol.UsageWindow{{Name: "a"}, {Name: "a"}}}, protocol.CodeInvalid)
	ada.refused(protocol.Usage{Windows: []protocol.UsageWindow{{Name: strings.Repeat("a", 300)}}}, protocol.CodeInvalid)
	ada.refused(protocol.Session{WorkItemID: "uid-fix", SessionID: strings.Repeat("s", 2000)}, protocol.CodeInvalid)
	ada.ok(protocol.Usage{Windows: []protocol.UsageWindow{{Name: "a", Utilization: 0.2}, {Name: "b", Utilization: 0.4}}})
	roster := ada.request(protocol.Roster{}).(protocol.RosterResult)
	if m := roster.Members; len(m) != 2 || m[0].Status != protocol.MemberWorking || m[0].Current != "Title of fix" || m[0].Title != "Developer" ||
		m[0].Usage.Window != "b" || m[1].Status != protocol.MemberOffline {
		t.Errorf("the roster is %+v", roster.Members)
	}
	list := ada.request(protocol.WorkList{WorkItemID: "uid-fix"}).(protocol.WorkListResult)
	if i := list.Items; len(i) != 2 || i[0].ID != "uid-fix" || i[0].Current == nil || i[0].Status != protocol.StateActive || i[1].Status != protocol.StateQueued {
		t.Errorf("the list is %+v", list.Items)
	}
}

func TestADoctorReportReplacesTheEarlierOne(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	a.ok(protocol.DoctorReport{Checks: []protocol.DoctorCheck{{Name: "Tools", Status: "fail", Detail: "no go", Fix: "install go"}, {Name: "Room", Status: "ok", Detail: "fine"}}})
	a.ok(protocol.DoctorReport{Checks: []protocol.DoctorCheck{{Name: "Tools", Status: "ok", Detail: "all there"}}})
	v, err := b.office.Person(t.Context(), model.PersonKey{Team: shop, Handle: "ada"})
	b.must(err)
	if v.Doctor == nil || len(v.Doctor.Checks) != 1 || v.Doctor.Checks[0].Status != "ok" {
		t.Errorf("the doctor says %+v", v.Doctor)
	}
}

func TestAKindThatNeedsNoReviewFinishesWithoutOne(t *testing.T) {
	b := open(t)
	b.apply("tidy", func(f *model.ItemFacts) { f.Spec.Kind = "chore" })
	b.apply("fix", func(f *model.ItemFacts) { f.Spec.Priority = 200 })
	a, _ := b.connect("ada")
	for _, name := range []string{"tidy", "fix"} {
		a.take(name)
		hb := done(name)
		hb.ToReview = nil
		a.ok(hb)
	}
	if it := b.item("tidy"); it.State != protocol.StateDone {
		t.Errorf("the chore is %s", it.State)
	}
	if it := b.item("fix"); it.State != protocol.StateBlocked || it.End.Reason != model.ReasonNothingToReview {
		t.Errorf("the task is %s (%s)", it.State, it.End.Reason)
	}
}

func TestABodyThatNearlyFillsAFrameStillGoesOut(t *testing.T) {
	b := open(t)
	b.apply("big", func(f *model.ItemFacts) { f.Spec.Body = strings.Repeat("é", 262144) })
	a, _ := b.connect("ada")
	a.take("big")
	for range 4 {
		a.ok(protocol.Journal{WorkItemID: "uid-big", Text: strings.Repeat("x", 400_000)})
	}
	a.ok(protocol.Handback{WorkItemID: "uid-big", Status: protocol.HandbackInterrupted, Links: []protocol.Link{}})
	offer := a.take("big")
	journal := offer.Context.Journal
	if len(journal[0].Text) != 2*262144 || journal[1].Author != "office" || len(journal) >= 6 {
		t.Errorf("%d entries, first of %d bytes, second by %s", len(journal), len(journal[0].Text), journal[1].Author)
	}
}

func TestAnAgentThatWorksWithoutAHeartbeatIsCut(t *testing.T) {
	b := open(t, func(team *model.Team) { team.Policy.Heartbeat = 250 * time.Millisecond })
	b.apply("fix")
	a, _ := b.connect("ada")
	a.take("fix")
	// Reading answers the office's pings, so the connection is alive; the work is not.
	if code := a.closed(); code != hub.CodeDropped {
		t.Errorf("closed with %d", code)
	}
	if it := b.item("fix"); it.State != protocol.StateActive {
		t.Errorf("the round ended: %s", it.State)
	}
}

func TestAPeerThatIsGoneWithoutAWordIsNoticed(t *testing.T) {
	b := open(t, func(team *model.Team) { team.Policy.Heartbeat = 250 * time.Millisecond })
	a, _ := b.connect("ada")
	_ = a // never reads again, so no ping is answered
	deadline := time.Now().Add(patience)
	for {
		v, err := b.office.Person(t.Context(), model.PersonKey{Team: shop, Handle: "ada"})
		b.must(err)
		if v.State == model.PersonOffline {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the office still thinks ada is there")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
