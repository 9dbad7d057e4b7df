package dispatch

// These tests hold decisions to what once went wrong at their edges: reconnects, candidates that cannot be offered, older backups.

import (
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestAnOfferHasItsTimeAnewAfterAReconnect(t *testing.T) {
	for name, tc := range map[string]struct {
		connected, now time.Time
		declined       bool
		wake           time.Time
	}{
		"connected before the offer, in time":                 {at(-time.Hour), at(time.Minute), false, at(OfferTimeout)},
		"connected before the offer, too late":                {at(-time.Hour), at(OfferTimeout), true, time.Time{}},
		"connected again after the offer's time was over":     {at(3 * time.Minute), at(3 * time.Minute), false, at(3*time.Minute + OfferTimeout)},
		"connected again, and still no answer after the time": {at(3 * time.Minute), at(3*time.Minute + OfferTimeout), true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Next(Snapshot{Team: team(), Person: ada(), Connected: true, ConnectedAt: tc.connected, Current: current(item(isOffered))}, tc.now)
			if declined := plan.Ended != nil; declined != tc.declined || (plan.Drop != "") != tc.declined || !plan.WakeAt.Equal(tc.wake) {
				t.Errorf("declined %v, drop %q, wake %s; want %v, wake %s", declined, plan.Drop, plan.WakeAt, tc.declined, tc.wake)
			}
		})
	}
}

func TestOneLooksFurtherOnlyWhereSomethingBehindMightRun(t *testing.T) {
	budgets := func(list ...model.Budget) *model.Team {
		t := team()
		t.Usage.Budgets = list
		return t
	}
	ofAll := model.Budget{Scope: model.BudgetTeam, Tokens: 100}
	ofOne := model.Budget{Scope: model.BudgetPerson, Tokens: 100}
	ofItem := model.Budget{Scope: model.BudgetItem, Tokens: 100}
	own := item(func(it *model.Item) { it.Question = &model.Question{Asker: ada().Key.Handle} })
	spent := item(func(it *model.Item) { it.Usage = used(100, 0) })
	for name, tc := range map[string]struct {
		team  *model.Team
		spent Spent
		queue []model.Item
		want  bool
	}{
		"past questions of one's own":                      {team(), Spent{}, []model.Item{own, own}, true},
		"past items that used their own budget up":         {budgets(ofItem), Spent{}, []model.Item{spent, own}, true},
		"not past an item that is offered":                 {budgets(ofItem), Spent{}, []model.Item{spent, item()}, false},
		"not past a used up budget of the team":            {budgets(ofItem, ofAll), Spent{Team: used(100, 0)}, []model.Item{spent, item()}, false},
		"not past a used up budget of the person":          {budgets(ofOne), Spent{Person: used(100, 0)}, []model.Item{item()}, false},
		"not past one either that others of the role have": {budgets(ofOne), Spent{Person: used(100, 0)}, []model.Item{item(ofRole)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Team: tc.team, Person: ada(), Connected: true, Queue: tc.queue, Spent: tc.spent}
			if plan := Next(s, t0); plan.Further != tc.want {
				t.Errorf("further: %v", plan.Further)
			}
			s.Connected = false
			if plan := Next(s, t0); plan.Further {
				t.Error("who is away looks further")
			}
		})
	}
}

func TestAnItemRestoredOverAnOpenRoundEndsIt(t *testing.T) {
	newer := func(rounds int) model.ItemFacts {
		return facts(func(f *model.ItemFacts) {
			f.Recorded = model.Recorded{StoreID: "store", Revision: 9, State: protocol.StateQueued, Rounds: rounds}
		})
	}
	declined := item(isActive)
	declined.Round, declined.State, declined.Offers = nil, protocol.StateQueued, 7
	for name, tc := range map[string]struct {
		existing model.Item
		rounds   int
		lost     bool
		offers   int
	}{
		"of which the status knows more rounds":      {item(isActive), 3, true, 3},
		"that is offered":                            {item(isOffered), 3, true, 3},
		"of which the store knows more offers":       {declined, 3, false, 7},
		"between rounds, of which both know as many": {declined, 7, false, 7},
	} {
		t.Run(name, func(t *testing.T) {
			got := Reconcile(&tc.existing, nil, newer(tc.rounds), "store", at(time.Hour))
			if got.Item.Round != nil || got.Item.Offers != tc.offers || got.Ended != nil {
				t.Errorf("round %+v, %d offers, ended %+v; want none, %d", got.Item.Round, got.Item.Offers, got.Ended, tc.offers)
			}
			if lost := got.Lost; (lost != nil) != tc.lost || (lost != nil && (lost.Outcome != model.OutcomeLost || !lost.EndedAt.Equal(at(time.Hour)))) {
				t.Errorf("the lost round is %+v", lost)
			}
		})
	}
}

func TestTheTeamsOwnBudgetsHoldAndStopEverybody(t *testing.T) {
	budgets := []model.Budget{
		{Scope: model.BudgetPerson, Tokens: 1, StopAt: 2}, {Scope: model.BudgetItem, Tokens: 1, StopAt: 2},
		{Scope: model.BudgetTeam, Tokens: 1000, ReserveTokens: 400, StopAt: 1.5},
	}
	for name, tc := range map[string]struct {
		spent       Spent
		held, stops bool
	}{
		"room":                           {Spent{Team: used(200, 0), TeamRunning: 1, Person: used(50, 0)}, false, false},
		"what runs takes the rest":       {Spent{Team: used(200, 0), TeamRunning: 2}, true, false},
		"used up":                        {Spent{Team: used(1000, 0)}, true, false},
		"so much used that rounds end":   {Spent{Team: used(1500, 0)}, true, true},
		"the person's own is none of it": {Spent{Person: used(50, 0)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			hold := tc.spent.TeamHold(budgets)
			if held := hold.Reason != ""; held != tc.held || (held && hold.Scope != model.BudgetTeam) || tc.spent.TeamStops(budgets) != tc.stops {
				t.Errorf("held for %+v, stops: %v", hold, tc.spent.TeamStops(budgets))
			}
		})
	}
}

func TestAParentThatComesAfterTheItemIsTaken(t *testing.T) {
	with := func(parentID string) model.ItemFacts {
		return facts(func(f *model.ItemFacts) { f.Spec.ParentID = parentID })
	}
	existing := item()
	got := Reconcile(&existing, nil, with("p1"), "store", t0)
	if !got.Changed || got.Item.Spec.ParentID != "p1" {
		t.Errorf("changed %v, parent %q", got.Changed, got.Item.Spec.ParentID)
	}
	if again := Reconcile(&got.Item, nil, with("p1"), "store", t0); again.Changed {
		t.Error("told again, it changes the item")
	}
	if gone := Reconcile(&got.Item, nil, with(""), "store", t0); gone.Changed || gone.Item.Spec.ParentID != "p1" {
		t.Errorf("once its object is gone: changed %v, parent %q", gone.Changed, gone.Item.Spec.ParentID)
	}
}
