package dispatch

// These tests hold budgets in their order: they warn, then no further round starts, then running rounds are ended.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// used is usage of so many tokens at so many millionths of a dollar.
func used(tokens, micro int64) model.Usage {
	return model.Usage{InputTokens: tokens, CostMicroUSD: micro, CostKnown: true}
}

// offers counts the rounds that start side by side, for people who ask one after another before any of their rounds has ended.
func offers(budget model.Budget, spent Spent, people int) int {
	t := team()
	t.Usage.Budgets = []model.Budget{budget}
	started := 0
	for range people {
		plan := Next(Snapshot{Team: t, Person: ada(), Connected: true, Queue: []model.Item{item()}, Spent: spent}, t0)
		if plan.Offer != nil {
			started++
			spent.TeamRunning++
		}
	}
	return started
}

func TestParallelRoundsCannotAllPassOneBudgetCheck(t *testing.T) {
	tokens := model.Budget{Scope: model.BudgetTeam, Tokens: 1000}
	declared := model.Budget{Scope: model.BudgetTeam, Tokens: 1000, ReserveTokens: 250}
	dollars := model.Budget{Scope: model.BudgetTeam, CostMicroUSD: 10_000_000}
	recent := model.Rounds{Rounds: 10, Priced: 10, Tokens: 3000, CostMicroUSD: 40_000_000} // 300 tokens and 4 dollars each
	for name, tc := range map[string]struct {
		budget model.Budget
		spent  Spent
		want   int
	}{
		"a declared reserve is needed by each round":                       {declared, Spent{}, 4},
		"a declared reserve leaves a rest unused":                          {declared, Spent{Team: used(300, 0)}, 2},
		"a declared reserve goes before what recent rounds used":           {declared, Spent{Recent: recent}, 4},
		"without one, what recent rounds used is set aside for each":       {tokens, Spent{Recent: recent}, 4},
		"the last round may start as long as anything is left":             {tokens, Spent{Team: used(999, 0), Recent: recent}, 1},
		"nothing left starts nothing":                                      {tokens, Spent{Team: used(1000, 0), Recent: recent}, 0},
		"before the first round has ended, a hundredth of the bound is":    {tokens, Spent{}, 100},
		"the same holds in dollars":                                        {dollars, Spent{Recent: recent}, 3},
		"rounds whose cost nobody knows say nothing of what the next cost": {dollars, Spent{Recent: model.Rounds{Rounds: 10, Tokens: 3000}}, 100},
		"a reserve that is larger than the budget starts nothing": {
			model.Budget{Scope: model.BudgetTeam, Tokens: 1000, ReserveTokens: 1 << 62}, Spent{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := offers(tc.budget, tc.spent, 200); got != tc.want {
				t.Errorf("%d rounds of 200 started side by side, want %d", got, tc.want)
			}
		})
	}
}

func TestBudgetsOfAPersonAndAnItemAreUsedToTheEnd(t *testing.T) {
	recent := model.Rounds{Rounds: 1, Tokens: 900}
	for name, tc := range map[string]struct {
		scope model.BudgetScope
		it    model.Item
		spent Spent
		want  bool
	}{
		"a person runs one round at a time, so nothing is set aside": {model.BudgetPerson, item(), Spent{Person: used(950, 0), Recent: recent}, true},
		"a person's budget that is used up":                          {model.BudgetPerson, item(), Spent{Person: used(1000, 0), Recent: recent}, false},
		"so does an item":                                            {model.BudgetItem, item(func(it *model.Item) { it.Usage = used(950, 0) }), Spent{Recent: recent}, true},
		"an item's budget that is used up":                           {model.BudgetItem, item(func(it *model.Item) { it.Usage = used(1000, 0) }), Spent{Recent: recent}, false},
		"the others' usage is none of its own":                       {model.BudgetPerson, item(), Spent{Team: used(9999, 0), TeamRunning: 50, Recent: recent}, true},
	} {
		t.Run(name, func(t *testing.T) {
			budgeted := team()
			budgeted.Usage.Budgets = []model.Budget{{Scope: tc.scope, Tokens: 1000}}
			plan := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Queue: []model.Item{tc.it}, Spent: tc.spent}, t0)
			if (plan.Offer != nil) != tc.want {
				t.Errorf("offered %v, want %v", plan.Offer != nil, tc.want)
			}
		})
	}
}

func TestSubscriptionUsersBudgetTokensNotDollars(t *testing.T) {
	unpriced := model.Usage{InputTokens: 1000, UnpricedTokens: 1000}
	tokens := []model.Budget{{Scope: model.BudgetTeam, Tokens: 1000, WarnAt: 0.8}}
	dollars := []model.Budget{{Scope: model.BudgetTeam, CostMicroUSD: 1_000_000, WarnAt: 0.8}}
	if why := (Spent{Team: unpriced}).exceeds(tokens, item()); why.Reason != model.ReasonBudgetExhausted {
		t.Error("a budget in tokens does not hold where no price is known")
	}
	if why := (Spent{Team: unpriced}).exceeds(dollars, item()); why.Reason != "" {
		t.Errorf("a budget in dollars holds for tokens whose cost nobody knows: %s", why.Message)
	}
	warning := BudgetWarning(dollars, model.BudgetTeam, unpriced)
	if warning.Reason != model.ReasonCostUnknown || !strings.Contains(warning.Message, "1000 tokens") || !strings.Contains(warning.Message, "usage.prices") {
		t.Errorf("what a budget in dollars cannot count is not told: %+v", warning)
	}
	part := used(500, 2_000_000)
	part.UnpricedTokens = 300
	if why := (Spent{Team: part}).exceeds(dollars, item()); !strings.Contains(why.Message, "nobody knows the cost") {
		t.Errorf("the hold does not say what it could not count: %+v", why)
	}
}

func TestAHoldSaysWhatIsMissingAndDoesNotChangeWithEachRound(t *testing.T) {
	dollars := model.Budget{Scope: model.BudgetTeam, CostMicroUSD: 12_500_000, ReserveMicroUSD: 500_000}
	tokens := model.Budget{Scope: model.BudgetTeam, Tokens: 1000}
	for name, tc := range map[string]struct {
		budget model.Budget
		spents []Spent
		want   string
	}{
		"used up": {tokens, []Spent{{Team: used(1000, 0)}, {Team: used(1100, 0), TeamRunning: 3}},
			"The budget of scope Team, 1000 tokens, is used up. Raise it in the team's usage.budgets."},
		"less left than the reserve": {dollars, []Spent{{Team: used(0, 12_100_000)}, {Team: used(0, 11_000_000), TeamRunning: 3}},
			"The budget of scope Team, 12.50 USD, has less left than the 0.50 USD that are set aside for each round. Raise it in the team's usage.budgets."},
		"others run": {tokens, []Spent{{Team: used(995, 0), TeamRunning: 1}, {Team: used(900, 0), TeamRunning: 10}},
			"The budget of scope Team, 1000 tokens, has too little left for a further round beside those that run. Raise it in the team's usage.budgets."},
	} {
		t.Run(name, func(t *testing.T) {
			budgeted := team()
			budgeted.Usage.Budgets = []model.Budget{tc.budget}
			it := item()
			for n, spent := range tc.spents {
				plan := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Queue: []model.Item{it}, Spent: spent}, t0)
				if n == 0 && len(plan.Put) == 1 {
					it = plan.Put[0]
				} else if !plan.Empty() {
					t.Errorf("the item is written again: %+v", plan)
				}
			}
			if it.Hold.Message != tc.want {
				t.Errorf("the hold says %q, want %q", it.Hold.Message, tc.want)
			}
		})
	}
}

func TestABudgetWarnsThenPausesThenStops(t *testing.T) {
	budgets := []model.Budget{{Scope: model.BudgetTeam, Tokens: 1000, WarnAt: 0.8, StopAt: 1.2}}
	budgeted := team()
	budgeted.Usage.Budgets = budgets
	for _, tc := range []struct {
		tokens  int64
		warning string
		offers  bool
		stops   bool
	}{
		{799, "", true, false},
		{800, model.ReasonBudgetNearlyUsed, true, false},
		{999, model.ReasonBudgetNearlyUsed, true, false},
		{1000, model.ReasonBudgetUsedUp, false, false},
		{1199, model.ReasonBudgetUsedUp, false, false},
		{1200, model.ReasonBudgetUsedUp, false, true},
	} {
		t.Run(fmt.Sprint(tc.tokens), func(t *testing.T) {
			spent := Spent{Team: used(tc.tokens, 0)}
			warning := BudgetWarning(budgets, model.BudgetTeam, spent.Team)
			if warning.Reason != tc.warning || (warning.Message == "") != (tc.warning == "") {
				t.Errorf("the warning is %+v, want %q", warning, tc.warning)
			}
			if tc.warning != "" && !strings.Contains(warning.Message, "120 %") {
				t.Errorf("it does not say when rounds are ended: %s", warning.Message)
			}
			next := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Queue: []model.Item{item()}, Spent: spent}, t0)
			if (next.Offer != nil) != tc.offers {
				t.Errorf("offered %v, want %v", next.Offer != nil, tc.offers)
			}
			running := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Current: current(item(isActive)), Spent: spent}, t0)
			if (running.Drop != "") != tc.stops {
				t.Fatalf("the running round is ended: %v, want %v", running.Drop != "", tc.stops)
			}
			if !tc.stops {
				return
			}
			it := running.Put[0]
			if it.State != protocol.StateBlocked || it.End.Reason != model.ReasonBudgetStopped || !strings.Contains(it.End.Message, "spec.rerun") {
				t.Errorf("the item is %s (%s: %s)", it.State, it.End.Reason, it.End.Message)
			}
			if running.Ended == nil || running.Ended.Outcome != model.OutcomeStopped || it.Failures != 0 {
				t.Errorf("the round ended as %+v, %d failures", running.Ended, it.Failures)
			}
		})
	}
}

func TestABudgetWithoutAStopEndsNoRound(t *testing.T) {
	budgeted := team()
	budgeted.Usage.Budgets = []model.Budget{{Scope: model.BudgetTeam, Tokens: 1, WarnAt: 0.8}}
	plan := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Current: current(item(isActive)), Spent: Spent{Team: used(1_000_000, 0)}}, t0)
	if !plan.Empty() {
		t.Errorf("want nothing to do, got %+v", plan)
	}
	if Stops(budgeted.Usage.Budgets) {
		t.Error("it says that the budget ends rounds")
	}
}

func TestAStoppedItemRunsAgainOnceItsBudgetIsRaised(t *testing.T) {
	it := stopped(item(isActive), model.Why{Reason: model.ReasonBudgetStopped}, t0).Item
	f := facts(func(f *model.ItemFacts) { f.Spec.Rerun = "raised"; f.Spec.Generation = 2 })
	again := Reconcile(&it, nil, f, "store", at(time.Minute)).Item
	if again.State != protocol.StateQueued || again.End.Reason != "" {
		t.Fatalf("a rerun leaves it %s (%s)", again.State, again.End.Reason)
	}
	for limit, want := range map[int64]bool{1000: false, 2000: true} {
		budgeted := team()
		budgeted.Usage.Budgets = []model.Budget{{Scope: model.BudgetTeam, Tokens: limit, StopAt: 1.2}}
		plan := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Queue: []model.Item{again}, Spent: Spent{Team: used(1500, 0)}}, t0)
		if (plan.Offer != nil) != want {
			t.Errorf("with a bound of %d it is offered: %v", limit, plan.Offer != nil)
		}
	}
}

func TestBudgetWarningIsOfItsScopeAndGoesAway(t *testing.T) {
	budgets := []model.Budget{
		{Scope: model.BudgetPerson, Tokens: 100, CostMicroUSD: 5_000_000, WarnAt: 0.5},
		{Scope: model.BudgetItem, Tokens: 100},
	}
	for name, tc := range map[string]struct {
		scope model.BudgetScope
		used  model.Usage
		want  model.Why
	}{
		"below both bounds":       {model.BudgetPerson, used(49, 0), model.Why{}},
		"of another scope":        {model.BudgetTeam, used(100, 0), model.Why{}},
		"of a budget that is not": {model.BudgetItem, used(100, 0), model.Why{}},
		"the worse of both bounds is told": {model.BudgetPerson, used(60, 6_000_000), model.Why{Reason: model.ReasonBudgetUsedUp,
			Message: "The budget of scope Person is used up: 6.00 of 5.00 USD (120 %). No further round starts in it. Raise it in the team's usage.budgets."}},
		"near both bounds": {model.BudgetPerson, used(60, 2_500_000), model.Why{Reason: model.ReasonBudgetNearlyUsed,
			Message: "The budget of scope Person is nearly used up: 60 of 100 tokens (60 %), 2.50 of 5.00 USD (50 %). At 100 % no further round starts in it."}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, BudgetWarning(budgets, tc.scope, tc.used)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestAHoldForABudgetGoesWhenThereIsRoomAgain(t *testing.T) {
	held := func(id string, used model.Usage) model.Item {
		return item(func(it *model.Item) {
			it.ID, it.Usage, it.Hold = id, used, model.Why{Reason: model.ReasonBudgetExhausted, Message: "of yesterday"}
		})
	}
	budgeted := team()
	budgeted.Usage.Budgets = []model.Budget{{Scope: model.BudgetItem, Tokens: 100}}
	queue := []model.Item{item(), held("i2", used(10, 0)), held("i3", used(100, 0))}
	plan := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Queue: queue}, t0)
	var put []string
	for _, it := range plan.Put {
		put = append(put, it.ID+" "+it.Hold.Reason)
	}
	if diff := cmp.Diff([]string{"i1 ", "i2 "}, put); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestAPersonsBudgetDoesNotHoldWhatOthersOfTheRoleMayTake(t *testing.T) {
	budgeted := team()
	budgeted.Usage.Budgets = []model.Budget{{Scope: model.BudgetPerson, Tokens: 100}}
	plan := Next(Snapshot{Team: budgeted, Person: ada(), Connected: true, Queue: []model.Item{item(ofRole)}, Spent: Spent{Person: used(100, 0)}}, t0)
	if !plan.Empty() {
		t.Errorf("want nothing to do, got %+v", plan.Put)
	}
}

func TestAnEmptyQueueStartsNothing(t *testing.T) {
	for name, s := range map[string]Snapshot{
		"without budgets": {Team: team(), Person: ada(), Connected: true},
		"with budgets": {Team: func() *model.Team {
			t := team()
			t.Usage.Budgets = []model.Budget{{Scope: model.BudgetTeam, Tokens: 5, WarnAt: 0.8, StopAt: 2}}
			return t
		}(), Person: ada(), Connected: true, Spent: Spent{Team: used(9, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			if plan := Next(s, t0); !plan.Empty() || !plan.WakeAt.IsZero() {
				t.Errorf("an idle person is not left alone: %+v", plan)
			}
		})
	}
}
