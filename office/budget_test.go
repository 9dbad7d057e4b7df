package office_test

// These tests hold usage and budgets through the whole office: what agents report, what is counted, who gets an offer, who is stopped.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// using is a hand-back with running totals of one session, model by model.
func using(hb protocol.Handback, session string, models map[string]protocol.ModelUsage) protocol.Handback {
	hb.Usage = []protocol.SessionUsage{{Session: session, Models: models}}
	return hb
}

// tokens reports so many tokens of a model that nobody has a price for.
func tokens(hb protocol.Handback, n int64) protocol.Handback {
	return using(hb, "s-"+hb.WorkItemID, map[string]protocol.ModelUsage{"house": {InputTokens: n}})
}

func budgeted(budgets ...model.Budget) func(*model.Team) {
	return func(t *model.Team) { t.Usage.Budgets = budgets }
}

// resync tells the office the team as it knows it, changed.
func (b *bench) resync(edit func(*model.Team)) {
	b.t.Helper()
	var team model.Team
	b.must(b.store.View(b.t.Context(), func(r store.Reader) (err error) {
		team, err = r.Team(shop)
		return err
	}))
	edit(&team)
	b.must(b.office.SyncTeam(b.t.Context(), team))
}

func (b *bench) teamView() model.TeamView {
	b.t.Helper()
	v, err := b.office.Team(b.t.Context(), shop)
	b.must(err)
	return v
}

func (b *bench) personView(handle string) model.PersonView {
	b.t.Helper()
	v, err := b.office.Person(b.t.Context(), model.PersonKey{Team: shop, Handle: handle})
	b.must(err)
	return v
}

func of(handle string) func(*model.ItemFacts) {
	return func(f *model.ItemFacts) { f.Spec.Person = handle }
}

func TestParallelRoundsCannotAllPassOneBudgetCheck(t *testing.T) {
	b := open(t, budgeted(model.Budget{Scope: model.BudgetTeam, Tokens: 1000}))
	handles := []string{"ada", "bob", "cyd", "dan"}
	agents := map[string]*agent{}
	for _, handle := range handles {
		b.must(b.office.SyncPerson(t.Context(), person(handle)))
	}
	for _, handle := range handles {
		agents[handle], _ = b.connect(handle)
	}
	b.apply("first")
	agents["ada"].take("first")
	agents["ada"].ok(tokens(done("first"), 400))

	started := func() (list []string) {
		for _, handle := range handles {
			it := b.item("of-" + handle)
			if (it.Round != nil) == (it.Hold.Reason == model.ReasonBudgetExhausted) {
				t.Errorf("%s: round %v, held for %q", it.Name, it.Round != nil, it.Hold.Reason)
			}
			if it.Round != nil {
				list = append(list, handle)
			}
		}
		return list
	}
	for _, handle := range handles {
		b.apply("of-"+handle, of(handle))
	}
	// 600 tokens are left, and the round before took 400: two rounds start, as two could take 800.
	if diff := cmp.Diff([]string{"ada", "bob"}, started()); diff != "" {
		t.Fatalf("who started, want -, got +:\n%s", diff)
	}
	// One that ends makes room, by what it took.
	agents["ada"].take("of-ada")
	agents["ada"].ok(tokens(done("of-ada"), 100))
	agents["cyd"].take("of-cyd")
	if it := b.item("of-dan"); it.Hold.Reason != model.ReasonBudgetExhausted || !strings.Contains(it.Hold.Message, "1000 tokens, has too little left") {
		t.Errorf("dan's item is held for %+v", it.Hold)
	}
}

func TestABudgetStopsRunningRounds(t *testing.T) {
	b := open(t, budgeted(model.Budget{Scope: model.BudgetTeam, Tokens: 1000, WarnAt: 0.8, StopAt: 1.2}))
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	b.apply("one")
	b.apply("two", of("bob"))
	ada.take("one")
	bob.take("two")
	bob.ok(protocol.Session{WorkItemID: "uid-two", SessionID: "s-uid-two"})
	ada.ok(tokens(done("one"), 1199))
	bob.quiet() // used up, but not to be stopped yet

	b.apply("three", func(f *model.ItemFacts) { f.Spec.Priority = 1 })
	if it := b.item("three"); it.Hold.Reason != model.ReasonBudgetExhausted {
		t.Errorf("a further round starts: %+v", it)
	}
	// A late report of what ada's round used is the last straw.
	ada.ok(tokens(done("one"), 1250))
	if code := bob.closed(); code != hub.CodeDropped {
		t.Errorf("bob's connection ended with %d", code)
	}
	it := b.item("two")
	if it.State != protocol.StateBlocked || it.End.Reason != model.ReasonBudgetStopped || it.Round != nil || it.FinishedAt.IsZero() {
		t.Fatalf("bob's item is %s (%+v), round %+v", it.State, it.End, it.Round)
	}
	again, welcome := b.connect("bob")
	if len(welcome.Resume) != 0 {
		t.Errorf("bob is to go on with %+v", welcome.Resume)
	}
	again.ok(tokens(done("two"), 300)) // what the ended run used is counted, and changes nothing else
	if it := b.item("two"); it.State != protocol.StateBlocked || it.Usage.Tokens() != 300 {
		t.Errorf("after its late hand-back the item is %s with %d tokens", it.State, it.Usage.Tokens())
	}

	b.apply("two", of("bob"), func(f *model.ItemFacts) { f.Spec.Rerun, f.Spec.Generation = "1", 2 })
	if it := b.item("two"); it.State != protocol.StateQueued || it.Hold.Reason != model.ReasonBudgetExhausted {
		t.Errorf("rerun under the same budget it is %s, held for %q", it.State, it.Hold.Reason)
	}
	b.resync(budgeted(model.Budget{Scope: model.BudgetTeam, Tokens: 5000, WarnAt: 0.8, StopAt: 1.2}))
	if offer := again.take("two"); offer.SessionID != "s-uid-two" {
		t.Errorf("it goes on in session %q", offer.SessionID)
	}
}

func TestALoweredBudgetStopsRunningRoundsOfItsScope(t *testing.T) {
	for name, tc := range map[string]struct {
		scope model.BudgetScope
		// stops has who of ada, whose earlier round used 500 tokens, and bob is stopped.
		ada, bob bool
	}{
		"of the team":   {model.BudgetTeam, true, true},
		"of the person": {model.BudgetPerson, true, false},
		"of the item":   {model.BudgetItem, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			ada, _ := b.connect("ada")
			bob, _ := b.connect("bob")
			b.apply("one")
			ada.take("one")
			hb := tokens(done("one"), 500)
			hb.Status = protocol.HandbackInterrupted
			ada.ok(hb)
			ada.take("one")
			b.apply("two", of("bob"))
			bob.take("two")
			b.resync(budgeted(model.Budget{Scope: tc.scope, Tokens: 100, StopAt: 2}))
			for id, want := range map[string]bool{"one": tc.ada, "two": tc.bob} {
				if it := b.item(id); (it.End.Reason == model.ReasonBudgetStopped) != want {
					t.Errorf("%s is %s (%s), stopped: want %v", id, it.State, it.End.Reason, want)
				}
			}
		})
	}
}

func TestBudgetWarningsAreShownInTheirScopeAndGoAway(t *testing.T) {
	budgets := []model.Budget{
		{Scope: model.BudgetTeam, Tokens: 2000, WarnAt: 0.8}, {Scope: model.BudgetPerson, Tokens: 1000, WarnAt: 0.8}, {Scope: model.BudgetItem, Tokens: 500, WarnAt: 0.8},
	}
	b := open(t, budgeted(budgets...))
	ada, _ := b.connect("ada")
	b.apply("one")
	ada.take("one")
	hb := tokens(done("one"), 1000)
	hb.Status = protocol.HandbackWaiting
	ada.ok(hb)
	shown := func() []string {
		return []string{b.teamView().BudgetWarning.Reason, b.personView("ada").BudgetWarning.Reason, b.personView("bob").BudgetWarning.Reason,
			b.apply("one").BudgetWarning.Reason}
	}
	if diff := cmp.Diff([]string{"", model.ReasonBudgetUsedUp, "", model.ReasonBudgetUsedUp}, shown()); diff != "" {
		t.Errorf("of team, ada, bob and the item, want -, got +:\n%s", diff)
	}
	b.resync(func(t *model.Team) {
		for i := range t.Usage.Budgets {
			t.Usage.Budgets[i].Tokens = 1200
		}
	})
	if diff := cmp.Diff([]string{model.ReasonBudgetNearlyUsed, model.ReasonBudgetNearlyUsed, "", model.ReasonBudgetNearlyUsed}, shown()); diff != "" {
		t.Errorf("after the change, want -, got +:\n%s", diff)
	}
	b.resync(budgeted())
	if diff := cmp.Diff([]string{"", "", "", ""}, shown()); diff != "" {
		t.Errorf("without budgets, want -, got +:\n%s", diff)
	}
}

// usages reads what is counted of the item, of ada, and of the team.
func (b *bench) usages(name string) [3]model.Usage {
	b.t.Helper()
	return [3]model.Usage{b.item(name).Usage, b.personView("ada").Usage, b.teamView().Usage}
}

func all(u model.Usage) [3]model.Usage { return [3]model.Usage{u, u, u} }

func TestCostIsToldElsePricedElseUnknown(t *testing.T) {
	cost := 0.5
	opus := protocol.ModelUsage{InputTokens: 1_000_000, OutputTokens: 100_000} // 4 and 2 dollars
	opusUsage := func(micro int64, known bool, unpriced int64) model.Usage {
		return model.Usage{InputTokens: 1_000_000, OutputTokens: 100_000, CostMicroUSD: micro, CostKnown: known, UnpricedTokens: unpriced}
	}
	told := opus
	told.CostUSD = &cost
	own := model.Price{Model: "claude-*", Input: 1_000_000}
	for name, tc := range map[string]struct {
		prices []model.Price
		model  string
		report protocol.ModelUsage
		want   model.Usage
	}{
		"what the runtime tells counts":                {nil, "claude-opus-5-5", told, opusUsage(500_000, true, 0)},
		"what the runtime tells goes before the price": {[]model.Price{own}, "claude-opus-5-5", told, opusUsage(500_000, true, 0)},
		"a list price is next":                         {nil, "claude-opus-5-5", opus, opusUsage(6_000_000, true, 0)},
		"the team's price goes before the list":        {[]model.Price{own}, "claude-opus-5-5", opus, opusUsage(1_000_000, true, 0)},
		"an unknown model's cost is unknown, not zero": {nil, "house", opus, opusUsage(0, false, 1_100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, func(t *model.Team) { t.Usage.Prices = tc.prices })
			ada, _ := b.connect("ada")
			b.apply("one")
			ada.take("one")
			ada.ok(using(done("one"), "s", map[string]protocol.ModelUsage{tc.model: tc.report}))
			if diff := cmp.Diff(all(tc.want), b.usages("one")); diff != "" {
				t.Errorf("of item, person and team, want -, got +:\n%s", diff)
			}
		})
	}
}

func TestAPriceThatComesLaterCountsForWhatHadNone(t *testing.T) {
	b := open(t, budgeted(model.Budget{Scope: model.BudgetTeam, CostMicroUSD: 100_000_000, WarnAt: 0.8}))
	ada, _ := b.connect("ada")
	b.apply("one")
	ada.take("one")
	hb := using(done("one"), "s", map[string]protocol.ModelUsage{"house": {InputTokens: 1000, OutputTokens: 200}})
	hb.Status = protocol.HandbackInterrupted
	ada.ok(hb)
	if why := b.teamView().BudgetWarning; why.Reason != model.ReasonCostUnknown || !strings.Contains(why.Message, "1200 tokens") {
		t.Errorf("the warning is %+v", why)
	}
	b.resync(func(t *model.Team) {
		t.Usage.Prices = []model.Price{{Model: "house", Input: 2_000_000, Output: 10_000_000}}
	})
	want := model.Usage{InputTokens: 1000, OutputTokens: 200, CostMicroUSD: 4000, CostKnown: true}
	if diff := cmp.Diff(all(want), b.usages("one")); diff != "" {
		t.Errorf("of item, person and team, want -, got +:\n%s", diff)
	}
	if why := b.teamView().BudgetWarning; why.Reason != "" {
		t.Errorf("the warning stays: %+v", why)
	}
	b.resync(func(t *model.Team) { t.Config.DisplayName = "changed" }) // counts nothing twice
	ada.take("one")
	ada.ok(using(done("one"), "s", map[string]protocol.ModelUsage{"house": {InputTokens: 1500, OutputTokens: 200}}))
	want.InputTokens, want.CostMicroUSD = 1500, 5000
	if diff := cmp.Diff(all(want), b.usages("one")); diff != "" {
		t.Errorf("after another round, want -, got +:\n%s", diff)
	}
}

func TestRunningTotalsAreCountedOnceThroughRestartsAndRepeats(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	b.apply("one")
	ada.take("one")
	first := using(done("one"), "s", map[string]protocol.ModelUsage{"house": {InputTokens: 100, OutputTokens: 10}, "small": {InputTokens: 7}})
	first.Status = protocol.HandbackInterrupted
	ada.sendAs("hb-1", first)
	ada.reply("hb-1")
	ada.sendAs("hb-1", first) // the answer was lost
	ada.reply("hb-1")

	b.restart()
	ada, _ = b.connect("ada")
	ada.sendAs("hb-1", first) // and again after a restart of the office
	ada.reply("hb-1")
	ada.take("one")
	second := first // the session was resumed: its totals include the first round
	second.Usage = []protocol.SessionUsage{
		{Session: "s", Models: map[string]protocol.ModelUsage{"house": {InputTokens: 250, OutputTokens: 30}, "small": {InputTokens: 7}}},
		{Session: "s-anew", Models: map[string]protocol.ModelUsage{"house": {InputTokens: 40}}}, // lost in its middle, and started anew
	}
	second.Status, second.ToReview = protocol.HandbackDone, []string{"x"}
	ada.ok(second)
	want := model.Usage{InputTokens: 297, OutputTokens: 30, UnpricedTokens: 327}
	if diff := cmp.Diff(all(want), b.usages("one")); diff != "" {
		t.Errorf("of item, person and team, want -, got +:\n%s", diff)
	}

	// The same id at another item is another session.
	b.apply("two")
	ada.take("two")
	ada.ok(using(done("two"), "s", map[string]protocol.ModelUsage{"house": {InputTokens: 5}}))
	if got := b.item("two").Usage.Tokens(); got != 5 {
		t.Errorf("the other item used %d tokens", got)
	}
	if got := b.teamView().Usage.Tokens(); got != want.Tokens()+5 {
		t.Errorf("the team used %d tokens", got)
	}
}

func TestAnEmptyQueueCostsNoModelCall(t *testing.T) {
	b := open(t, budgeted(model.Budget{Scope: model.BudgetTeam, Tokens: 1000, WarnAt: 0.8, StopAt: 1.2}))
	ada, welcome := b.connect("ada")
	if len(welcome.Resume) != 0 {
		t.Errorf("ada is to go on with %+v", welcome.Resume)
	}
	b.resync(func(t *model.Team) { t.Usage.TrackCost = true }) // a look at everybody
	bob, _ := b.connect("bob")
	ada.quiet()
	bob.quiet()
}

func TestUsageBeyondAllBoundsIsRefused(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	b.apply("one")
	ada.take("one")
	long := strings.Repeat("x", 1001)
	many := map[string]protocol.ModelUsage{}
	for n := range 201 {
		many[fmt.Sprint(n)] = protocol.ModelUsage{InputTokens: 1}
	}
	for name, hb := range map[string]protocol.Handback{
		"a session with a name that long": using(done("one"), long, many),
		"a model with a name that long":   using(done("one"), "s", map[string]protocol.ModelUsage{long: {}}),
		"more totals than a round has":    using(done("one"), "s", many),
	} {
		t.Run(name, func(t *testing.T) {
			ada.refused(hb, protocol.CodeInvalid)
			if it := b.item("one"); it.State != protocol.StateActive || it.Usage != (model.Usage{}) {
				t.Errorf("it left the item %s with %+v", it.State, it.Usage)
			}
		})
	}
	ada.ok(done("one"))
}
