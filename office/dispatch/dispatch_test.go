package dispatch

// These tests hold every decision about an item as a table: what it was, what came, what it is.

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

// item builds a queued item of ada, changed by edits.
func item(edits ...func(*model.Item)) model.Item {
	it := model.Item{
		ID: "i1", Namespace: "ns", Name: "fix", CreatedAt: t0, State: protocol.StateQueued, Assignee: "ada",
		Spec: model.ItemSpec{Generation: 1, Hash: "h1", Team: "shop", Person: "ada", Kind: "task", Title: "Fix it"},
	}
	for _, edit := range edits {
		edit(&it)
	}
	return it
}

func ofRole(it *model.Item)    { it.Spec.Person, it.Spec.Role, it.Assignee = "", "dev", "" }
func isOffered(it *model.Item) { *it = Offer(*it, "ada", t0) }
func isActive(it *model.Item) {
	isOffered(it)
	out, err := Accept(*it, "ada", protocol.Accept{WorkItemID: it.ID, Runtime: "command"}, t0)
	if err != nil {
		panic(err)
	}
	*it = out.Item
}
func isDone(it *model.Item) {
	isActive(it)
	out, _ := HandBack(*it, "ada", protocol.Handback{Status: protocol.HandbackDone, ToReview: []string{"pr"}}, false, t0)
	*it = out.Item
}

func TestHandBack(t *testing.T) {
	for name, tc := range map[string]struct {
		item     model.Item
		hb       protocol.Handback
		noReview bool
		state    protocol.WorkItemState
		reason   string
		outcome  model.RoundOutcome
		front    bool
	}{
		"done with something to review is done": {
			item(isActive), protocol.Handback{Status: protocol.HandbackDone, ToReview: []string{"pr"}}, false,
			protocol.StateDone, model.ReasonDone, model.OutcomeDone, false},
		"done with nothing to review is blocked and says why": {
			item(isActive), protocol.Handback{Status: protocol.HandbackDone}, false,
			protocol.StateBlocked, model.ReasonNothingToReview, model.OutcomeBlocked, false},
		"done of a kind that needs no review is done": {
			item(isActive), protocol.Handback{Status: protocol.HandbackDone}, true,
			protocol.StateDone, model.ReasonDone, model.OutcomeDone, false},
		"silent is done": {
			item(isActive), protocol.Handback{Status: protocol.HandbackSilent}, false,
			protocol.StateDone, model.ReasonSilent, model.OutcomeSilent, false},
		"waiting waits": {
			item(isActive), protocol.Handback{Status: protocol.HandbackWaiting}, false,
			protocol.StateWaiting, model.ReasonWaiting, model.OutcomeWaiting, false},
		"blocked is blocked": {
			item(isActive), protocol.Handback{Status: protocol.HandbackBlocked}, false,
			protocol.StateBlocked, model.ReasonBlocked, model.OutcomeBlocked, false},
		"interrupted goes to the front of the queue and spends no attempt": {
			item(isActive), protocol.Handback{Status: protocol.HandbackInterrupted}, false,
			protocol.StateQueued, "", model.OutcomeInterrupted, true},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := HandBack(tc.item, "ada", tc.hb, tc.noReview, at(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if out.Item.State != tc.state || out.Item.End.Reason != tc.reason || out.Item.Front != tc.front {
				t.Errorf("item is %s (%s), front %v; want %s (%s), front %v",
					out.Item.State, out.Item.End.Reason, out.Item.Front, tc.state, tc.reason, tc.front)
			}
			if out.Item.Round != nil || out.Ended == nil || out.Ended.Outcome != tc.outcome || !out.Ended.EndedAt.Equal(at(time.Minute)) {
				t.Errorf("round is %+v, ended %+v; want it ended as %s", out.Item.Round, out.Ended, tc.outcome)
			}
			if out.Item.Failures != 0 {
				t.Errorf("a hand-back counted as a failure")
			}
			again, err := HandBack(out.Item, "ada", tc.hb, tc.noReview, at(2*time.Minute))
			if err != nil || again.Changed || !cmp.Equal(again.Item, out.Item) {
				t.Errorf("the hand-back again changed the item or was refused: %v %v", again.Changed, err)
			}
		})
	}
}

func TestMessagesAboutItemsThatAreNotRunning(t *testing.T) {
	canceled := Cancel(item(isActive), canceledByUser, t0).Item
	for name, tc := range map[string]struct {
		item   model.Item
		person string
		do     func(model.Item, string) *protocol.WireError
		want   protocol.Code
	}{
		"accepting somebody else's item is unknown_item":      {item(isOffered), "bob", accept, protocol.CodeUnknownItem},
		"accepting an item that was never offered is invalid": {item(), "ada", accept, protocol.CodeInvalid},
		"accepting a canceled item is invalid":                {canceled, "ada", accept, protocol.CodeInvalid},
		"accepting the own running item again is fine":        {item(isActive), "ada", accept, ""},
		"declining a running item is invalid":                 {item(isActive), "ada", decline, protocol.CodeInvalid},
		"progress on a queued item is invalid":                {item(), "ada", Running, protocol.CodeInvalid},
		"progress on an offered item is invalid":              {item(isOffered), "ada", Running, protocol.CodeInvalid},
		"progress on a running item is fine":                  {item(isActive), "ada", Running, ""},
		"progress on somebody else's item is unknown_item":    {item(isActive), "bob", Running, protocol.CodeUnknownItem},
		"a hand-back of an item never accepted is invalid":    {item(isOffered), "ada", handback, protocol.CodeInvalid},
		"a hand-back of a canceled run is acknowledged":       {canceled, "ada", handback, ""},
		"a fail of somebody else's item is unknown_item":      {item(isActive), "bob", fail, protocol.CodeUnknownItem},
	} {
		t.Run(name, func(t *testing.T) {
			var got protocol.Code
			if err := tc.do(tc.item, tc.person); err != nil {
				got = err.Code
			}
			if got != tc.want {
				t.Errorf("error code %q, want %q", got, tc.want)
			}
		})
	}
}

func accept(it model.Item, person string) *protocol.WireError {
	_, err := Accept(it, person, protocol.Accept{}, t0)
	return err
}
func decline(it model.Item, person string) *protocol.WireError {
	_, err := Decline(it, person, "busy", DefaultPolicy(), t0)
	return err
}
func handback(it model.Item, person string) *protocol.WireError {
	_, err := HandBack(it, person, protocol.Handback{Status: protocol.HandbackDone}, false, t0)
	return err
}
func fail(it model.Item, person string) *protocol.WireError {
	_, err := Fail(it, person, "no", DefaultPolicy(), t0)
	return err
}

func TestFailuresBackOffAndThenBlock(t *testing.T) {
	policy := DefaultPolicy()
	it := item(func(it *model.Item) { it.Spec.Attempts = 3 })
	now := t0
	for n, wait := range []time.Duration{10 * time.Second, 20 * time.Second} {
		isActive(&it)
		out, err := Fail(it, "ada", "tests fail", policy, now)
		if err != nil {
			t.Fatal(err)
		}
		it = out.Item
		if it.State != protocol.StateQueued || !it.NotBefore.Equal(now.Add(wait)) || it.Failures != n+1 {
			t.Fatalf("after failure %d: %s, not before %s, %d failures", n+1, it.State, it.NotBefore, it.Failures)
		}
		now = it.NotBefore
	}
	isActive(&it)
	out, _ := Fail(it, "ada", "tests fail", policy, now)
	if out.Item.State != protocol.StateBlocked || out.Item.End.Reason != model.ReasonAttemptsExhausted {
		t.Errorf("after the last attempt: %s (%s)", out.Item.State, out.Item.End.Reason)
	}
	if !strings.Contains(out.Item.End.Message, "3 of 3") || !strings.Contains(out.Item.End.Message, "tests fail") {
		t.Errorf("the message does not say how often and why: %s", out.Item.End.Message)
	}
}

func TestADeclinedRoleItemIsFreeForOthersUntilItRan(t *testing.T) {
	never := item(ofRole, isOffered)
	out, _ := Decline(never, "ada", "busy", DefaultPolicy(), t0)
	if out.Item.Assignee != "" || out.Item.NotBefore.IsZero() || out.Item.State != protocol.StateQueued {
		t.Errorf("declined before it ran: assignee %q, not before %s, %s", out.Item.Assignee, out.Item.NotBefore, out.Item.State)
	}
	ran := item(ofRole, isActive)
	back, _ := HandBack(ran, "ada", protocol.Handback{Status: protocol.HandbackInterrupted}, false, t0)
	out, _ = Decline(Offer(back.Item, "ada", t0), "ada", "busy", DefaultPolicy(), t0)
	if out.Item.Assignee != "ada" {
		t.Errorf("declined after it ran: assignee %q, want ada", out.Item.Assignee)
	}
}

func team() *model.Team {
	return &model.Team{
		Key: model.TeamKey{Namespace: "ns", Name: "shop"}, Policy: DefaultPolicy(),
		Config: protocol.TeamConfig{Name: "shop", Roles: []protocol.TeamRole{{Name: "dev"}}},
	}
}

func ada() model.Person {
	return model.Person{UID: "p1", Name: "ada", Role: "dev", Key: model.PersonKey{Team: model.TeamKey{Namespace: "ns", Name: "shop"}, Handle: "ada"}}
}

func current(it model.Item) *model.Item { return &it }

func TestNext(t *testing.T) {
	second := item(func(it *model.Item) { it.ID = "i2" })
	died := ada()
	died.Incarnation, died.IncarnationAt = "pod/1", at(time.Minute)
	for name, tc := range map[string]struct {
		snapshot Snapshot
		now      time.Time
		// offers is the id offered, state and reason those of the first item put, wake when to look again.
		offers, reason string
		state          protocol.WorkItemState
		drop           bool
		wake           time.Time
		lost           int
	}{
		"an idle person is offered the first of the queue": {
			snapshot: Snapshot{Team: team(), Person: ada(), Connected: true, Queue: []model.Item{item(), second}},
			offers:   "i1", state: protocol.StateQueued, wake: at(OfferTimeout)},
		"who is not connected gets nothing": {
			snapshot: Snapshot{Team: team(), Person: ada(), AwayAt: t0, Queue: []model.Item{item()}}},
		"who has no team gets nothing": {
			snapshot: Snapshot{Person: ada(), Connected: true, Queue: []model.Item{item()}}},
		"a suspended person gets nothing": {
			snapshot: Snapshot{Team: team(), Person: model.Person{Suspended: true}, Connected: true, Queue: []model.Item{item()}}},
		"a person whose pod is to be replaced gets nothing": {
			snapshot: Snapshot{Team: team(), Person: model.Person{Draining: true}, Connected: true, Queue: []model.Item{item()}}},
		"usage pauses until the window resets": {
			snapshot: Snapshot{Team: team(), Person: ada(), Connected: true, PausedUntil: at(time.Hour), Queue: []model.Item{item()}},
			wake:     at(time.Hour)},
		"a backoff is waited for": {
			snapshot: Snapshot{Team: team(), Person: ada(), Connected: true, NextAt: at(time.Minute)}, wake: at(time.Minute)},
		"a person with an outstanding offer gets no second one": {
			snapshot: Snapshot{Team: team(), Person: ada(), Connected: true, Current: current(item(isOffered)), Queue: []model.Item{second}},
			wake:     at(OfferTimeout)},
		"an offer that is not answered counts as declined and the agent reconnects": {
			snapshot: Snapshot{Team: team(), Person: ada(), Connected: true, Current: current(item(isOffered))},
			now:      at(OfferTimeout), state: protocol.StateQueued, drop: true},
		"a person at work gets no second item": {
			snapshot: Snapshot{Team: team(), Person: ada(), Connected: true, Current: current(item(isActive)), Queue: []model.Item{second}}},
		"a round that takes too long fails and is ended": {
			snapshot: Snapshot{Team: team(), Person: ada(), Connected: true, Current: current(item(func(it *model.Item) { it.Spec.Timeout = time.Minute }, isActive))},
			now:      at(time.Minute), state: protocol.StateQueued, drop: true},
		"a round with a timeout is looked at again in time": {
			snapshot: Snapshot{Team: team(), Person: ada(), Connected: true, Current: current(item(func(it *model.Item) { it.Spec.Timeout = time.Minute }, isActive))},
			wake:     at(time.Minute)},
		"a short absence ends no round": {
			snapshot: Snapshot{Team: team(), Person: ada(), AwayAt: t0, Current: current(item(isActive))}, wake: at(10 * time.Minute)},
		"a long absence loses the round": {
			snapshot: Snapshot{Team: team(), Person: ada(), AwayAt: t0, Current: current(item(isActive))},
			now:      at(10 * time.Minute), state: protocol.StateQueued, drop: true, lost: 1},
		"a container that started in the middle of the round counts as lost, and the round goes on": {
			snapshot: Snapshot{Team: team(), Person: died, Connected: true, Current: current(item(isActive))},
			state:    protocol.StateActive, lost: 1},
		"the container that accepted the round, seen late, loses nothing": {
			snapshot: Snapshot{Team: team(), Person: model.Person{Incarnation: "pod/0", IncarnationAt: at(-time.Second)}, Connected: true, Current: current(item(isActive))},
			state:    protocol.StateActive},
		"too many lost rounds block the item": {
			snapshot: Snapshot{Team: team(), Person: died, Connected: true, Current: current(item(isActive, func(it *model.Item) { it.LostRounds = 3 }))},
			state:    protocol.StateBlocked, reason: model.ReasonRoundsLost, drop: true, lost: 4},
	} {
		t.Run(name, func(t *testing.T) {
			now := tc.now
			if now.IsZero() {
				now = t0
			}
			plan := Next(tc.snapshot, now)
			offered := ""
			if plan.Offer != nil {
				offered = plan.Offer.ID
			}
			if offered != tc.offers || (plan.Drop != "") != tc.drop || !plan.WakeAt.Equal(tc.wake) {
				t.Errorf("offers %q, drop %q, wake %s; want %q, %v, %s", offered, plan.Drop, plan.WakeAt, tc.offers, tc.drop, tc.wake)
			}
			if tc.state == "" {
				if !plan.Empty() {
					t.Fatalf("want nothing to do, got %+v", plan)
				}
				return
			}
			if len(plan.Put) != 1 {
				t.Fatalf("want one item put, got %+v", plan.Put)
			}
			if it := plan.Put[0]; it.State != tc.state || it.End.Reason != tc.reason || it.LostRounds != tc.lost {
				t.Errorf("item is %s (%s), %d lost; want %s (%s), %d", it.State, it.End.Reason, it.LostRounds, tc.state, tc.reason, tc.lost)
			}
		})
	}
}

func TestBudgetsHoldItemsAndCountRoundsThatRun(t *testing.T) {
	budgeted := team()
	budgeted.Usage.Budgets = []model.Budget{{Scope: model.BudgetTeam, Tokens: 1000, ReserveTokens: 300}}
	for name, tc := range map[string]struct {
		spent Spent
		offer bool
	}{
		"room for one round is offered":                       {Spent{Team: model.Usage{InputTokens: 100}}, true},
		"what runs has its reserve set aside":                 {Spent{Team: model.Usage{InputTokens: 100}, TeamRunning: 2}, true},
		"parallel rounds cannot all pass one check":           {Spent{Team: model.Usage{InputTokens: 100}, TeamRunning: 3}, false},
		"a spent budget holds":                                {Spent{Team: model.Usage{InputTokens: 1000}}, false},
		"usage of another scope does not count in this scope": {Spent{Person: model.Usage{InputTokens: 5000}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Queue: []model.Item{item()}, Spent: tc.spent}, t0)
			if (plan.Offer != nil) != tc.offer {
				t.Errorf("offered %v, want %v", plan.Offer != nil, tc.offer)
			}
			if !tc.offer && plan.Put[0].Hold.Reason != model.ReasonBudgetExhausted {
				t.Errorf("held for %q", plan.Put[0].Hold.Reason)
			}
		})
	}
}

func TestPausedUntil(t *testing.T) {
	windows := model.Windows{At: t0, Windows: []model.Window{
		{Name: "five_hour", Utilization: 0.96, ResetsAt: at(time.Hour)},
		{Name: "seven_day", Utilization: 0.5, ResetsAt: at(24 * time.Hour)},
	}}
	if until, by := PausedUntil(windows, 0.95, t0); !until.Equal(at(time.Hour)) || by != "five_hour" {
		t.Errorf("paused until %s by %q", until, by)
	}
	if until, _ := PausedUntil(windows, 0.95, at(time.Hour)); !until.IsZero() {
		t.Errorf("still paused after the reset: %s", until)
	}
	if until, _ := PausedUntil(windows, 0, t0); !until.IsZero() {
		t.Errorf("paused though pauseAt is 0")
	}
}

func TestHold(t *testing.T) {
	whole := World{Team: team(), PersonKnown: true, InRole: 1}
	with := func(edit func(*World)) World { w := whole; edit(&w); return w }
	dep := func(state protocol.WorkItemState, gone bool) []Dependency {
		d := item(func(it *model.Item) { it.Name, it.State, it.Gone = "first", state, gone })
		return []Dependency{{Name: "first", Item: &d}}
	}
	for name, tc := range map[string]struct {
		item  model.Item
		world World
		hold  string
		state protocol.WorkItemState
	}{
		"all there":                       {item(), whole, "", protocol.StateQueued},
		"no team":                         {item(), World{}, model.ReasonTeamNotFound, protocol.StateQueued},
		"no such person":                  {item(), with(func(w *World) { w.PersonKnown = false }), model.ReasonPersonNotFound, protocol.StateQueued},
		"no such role":                    {item(ofRole, func(it *model.Item) { it.Spec.Role = "chef" }), whole, model.ReasonRoleNotFound, protocol.StateQueued},
		"nobody in the role":              {item(ofRole), with(func(w *World) { w.InRole = 0 }), model.ReasonNobodyInRole, protocol.StateQueued},
		"a cycle":                         {item(), with(func(w *World) { w.Cycle = []string{"a", "b", "a"} }), model.ReasonDependencyCycle, protocol.StateQueued},
		"a dependency that is not there":  {item(), with(func(w *World) { w.Dependencies = []Dependency{{Name: "first"}} }), model.ReasonDependencyNotFound, protocol.StateQueued},
		"a dependency that runs":          {item(), with(func(w *World) { w.Dependencies = dep(protocol.StateActive, false) }), model.ReasonDependencyPending, protocol.StateQueued},
		"a dependency that is done":       {item(), with(func(w *World) { w.Dependencies = dep(protocol.StateDone, false) }), "", protocol.StateQueued},
		"one done and removed by its TTL": {item(), with(func(w *World) { w.Dependencies = dep(protocol.StateDone, true) }), "", protocol.StateQueued},
		"a canceled dependency blocks":    {item(), with(func(w *World) { w.Dependencies = dep(protocol.StateCanceled, false) }), "", protocol.StateBlocked},
		"a deleted dependency blocks":     {item(), with(func(w *World) { w.Dependencies = dep(protocol.StateQueued, true) }), "", protocol.StateBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			held, _ := Hold(tc.item, tc.world, t0)
			if held.Hold.Reason != tc.hold || held.State != tc.state {
				t.Errorf("held for %q, %s; want %q, %s", held.Hold.Reason, held.State, tc.hold, tc.state)
			}
			if tc.hold != "" && held.Hold.Message == "" {
				t.Errorf("no sentence for people")
			}
			if again, changed := Hold(held, tc.world, at(time.Minute)); changed {
				t.Errorf("the same world changed the item again: %+v", again)
			}
			if healed, changed := Hold(held, whole, at(time.Minute)); tc.hold != "" && tc.hold != model.ReasonRoleNotFound && (!changed || healed.Hold.Reason != "") {
				t.Errorf("a whole world does not heal the item: %+v", healed.Hold)
			}
		})
	}
}

func TestABlockedDependentRunsAgainWhenItsDependencyDoes(t *testing.T) {
	dep := item(func(it *model.Item) { it.State = protocol.StateCanceled })
	world := World{Team: team(), PersonKnown: true, Dependencies: []Dependency{{Name: "first", Item: &dep}}}
	held, _ := Hold(item(), world, t0)
	if held.State != protocol.StateBlocked || held.End.Reason != model.ReasonDependencyFailed {
		t.Fatalf("%s (%s)", held.State, held.End.Reason)
	}
	dep.State = protocol.StateDone
	healed, changed := Hold(held, world, t0)
	if !changed || healed.State != protocol.StateQueued || healed.End.Reason != "" || !healed.FinishedAt.IsZero() {
		t.Errorf("healed: %s (%s), finished %s", healed.State, healed.End.Reason, healed.FinishedAt)
	}
}

func TestCycle(t *testing.T) {
	graph := map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": {}, "x": {"y"}, "y": {"z"}, "z": {"y", "x"}}
	edges := func(name string) []string { return graph[name] }
	if got := Cycle("a", edges); got != nil {
		t.Errorf("a diamond is no cycle: %v", got)
	}
	if diff := cmp.Diff([]string{"x", "y", "z", "x"}, Cycle("x", edges)); diff != "" {
		t.Error(diff)
	}
}

func facts(edits ...func(*model.ItemFacts)) model.ItemFacts {
	it := item()
	f := model.ItemFacts{ID: it.ID, Namespace: it.Namespace, Name: it.Name, CreatedAt: it.CreatedAt, Spec: it.Spec}
	for _, edit := range edits {
		edit(&f)
	}
	return f
}

func TestReconcile(t *testing.T) {
	recorded := func(state protocol.WorkItemState, revision int64) func(*model.ItemFacts) {
		return func(f *model.ItemFacts) {
			f.Recorded = model.Recorded{StoreID: "old", Revision: revision, State: state, Rounds: 2, SessionID: "s1",
				End: model.Why{Reason: "R"}, Usage: model.Usage{InputTokens: 5}}
		}
	}
	spec := func(edit func(*model.ItemSpec)) func(*model.ItemFacts) {
		return func(f *model.ItemFacts) { f.Spec.Generation++; f.Spec.Hash = "h2"; edit(&f.Spec) }
	}
	done := item(isDone)
	done.Revision = 7
	buried := done
	buried.Gone = true
	for name, tc := range map[string]struct {
		existing, tombstone *model.Item
		facts               model.ItemFacts
		state               protocol.WorkItemState
		session             string
		restored, changed   bool
		ended               model.RoundOutcome
	}{
		"a new item is queued":                         {facts: facts(), state: protocol.StateQueued, changed: true},
		"a new item that is canceled never runs":       {facts: facts(spec(func(s *model.ItemSpec) { s.Cancel = true })), state: protocol.StateCanceled, changed: true},
		"one that its TTL removed shows its outcome":   {tombstone: &buried, facts: facts(), state: protocol.StateDone, changed: true},
		"the same again changes nothing":               {existing: current(item()), facts: facts(), state: protocol.StateQueued},
		"cancel ends a running round":                  {existing: current(item(isActive)), facts: facts(spec(func(s *model.ItemSpec) { s.Cancel = true })), state: protocol.StateCanceled, changed: true, ended: model.OutcomeCanceled},
		"cancel of a done item changes no state":       {existing: &done, facts: facts(spec(func(s *model.ItemSpec) { s.Cancel = true })), state: protocol.StateDone, changed: true},
		"rerun queues a done item again":               {existing: &done, facts: facts(spec(func(s *model.ItemSpec) { s.Rerun = "2" })), state: protocol.StateQueued, changed: true},
		"rerun of a running item waits for nothing":    {existing: current(item(isActive)), facts: facts(spec(func(s *model.ItemSpec) { s.Rerun = "2" })), state: protocol.StateActive, changed: true},
		"a lost store takes finished work from status": {facts: facts(recorded(protocol.StateDone, 9)), state: protocol.StateDone, session: "s1", restored: true, changed: true},
		"a lost store queues unfinished work again":    {facts: facts(recorded(protocol.StateActive, 9)), state: protocol.StateQueued, session: "s1", restored: true, changed: true},
		"a lost store honours a cancel":                {facts: facts(recorded(protocol.StateActive, 9), spec(func(s *model.ItemSpec) { s.Cancel = true })), state: protocol.StateCanceled, session: "s1", restored: true, changed: true},
		"an older backup takes newer work from status": {
			existing: current(item(isActive)), facts: facts(recorded(protocol.StateDone, 9), func(f *model.ItemFacts) { f.Recorded.StoreID = "store" }),
			state: protocol.StateDone, session: "s1", restored: true, changed: true},
		"a status that is behind the store changes nothing": {
			existing: &done, facts: facts(recorded(protocol.StateActive, 3), func(f *model.ItemFacts) { f.Recorded.StoreID = "store" }),
			state: protocol.StateDone},
	} {
		t.Run(name, func(t *testing.T) {
			got := Reconcile(tc.existing, tc.tombstone, tc.facts, "store", at(time.Hour))
			if got.Item.State != tc.state || got.Item.SessionID != tc.session || got.Restored != tc.restored || got.Changed != tc.changed {
				t.Errorf("%s, session %q, restored %v, changed %v; want %s, %q, %v, %v", got.Item.State, got.Item.SessionID,
					got.Restored, got.Changed, tc.state, tc.session, tc.restored, tc.changed)
			}
			if ended := got.Ended; (ended != nil) != (tc.ended != "") || (ended != nil && ended.Outcome != tc.ended) {
				t.Errorf("ended round %+v, want outcome %q", ended, tc.ended)
			}
		})
	}
}
