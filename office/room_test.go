package office_test

// These tests hold the office to finding somebody for what is free, in a fair order, without looking at everybody.

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// counting is a store that counts how often a transaction looks at somebody, and adds a team's usage up.
type counting struct {
	store.Store
	looks, sums *atomic.Int64
}

func (s counting) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error { return fn(countingTx{tx, s}) })
}

type countingTx struct {
	store.Tx
	s counting
}

func (t countingTx) PersonByKey(key model.PersonKey) (model.Person, error) {
	t.s.looks.Add(1)
	return t.Tx.PersonByKey(key)
}

func (t countingTx) TeamUsage(key model.TeamKey) (model.Usage, error) {
	t.s.sums.Add(1)
	return t.Tx.TeamUsage(key)
}

func (t countingTx) RecentRounds(key model.TeamKey) (model.Rounds, error) {
	t.s.sums.Add(1)
	return t.Tx.RecentRounds(key)
}

// hire adds people to the team, and connects them.
func (b *bench) hire(handles ...string) map[string]*agent {
	b.t.Helper()
	agents := map[string]*agent{}
	for _, handle := range handles {
		b.must(b.office.SyncPerson(b.t.Context(), person(handle)))
	}
	for _, handle := range handles { // once the team config is as it stays
		agents[handle], _ = b.connect(handle)
	}
	return agents
}

func TestNoMorePeopleAreLookedAtThanItConcerns(t *testing.T) {
	const others = 60
	ofRole := func(f *model.ItemFacts) { f.Spec.Person, f.Spec.Role = "", "dev" }
	roomy := model.Budget{Scope: model.BudgetTeam, Tokens: 1_000_000, ReserveTokens: 1, StopAt: 2}
	tight := model.Budget{Scope: model.BudgetTeam, Tokens: 1000, ReserveTokens: 1000, StopAt: 2}
	handBack := func(b *bench, ada *agent) { ada.ok(tokens(done("fix"), 10)) }
	for name, tc := range map[string]struct {
		budget model.Budget
		// before sets up what the others are at, after ada has taken her item.
		before func(b *bench, handle string, a *agent)
		do     func(b *bench, ada *agent)
	}{
		"a hand-back while the others are idle": {roomy, func(*bench, string, *agent) {}, handBack},
		"a hand-back while the others run and have more to do": {roomy, func(b *bench, handle string, a *agent) {
			b.apply("of-"+handle, of(handle))
			a.take("of-" + handle)
			b.apply("more-of-"+handle, of(handle))
		}, handBack},
		"a hand-back while the budget holds the others": {tight, func(b *bench, handle string, _ *agent) {
			b.apply("of-"+handle, of(handle))
		}, handBack},
		"an item for the role of others who are idle": {roomy, func(*bench, string, *agent) {}, func(b *bench, _ *agent) {
			b.apply("role", ofRole)
		}},
		"an item for the role of others who run": {roomy, func(b *bench, handle string, a *agent) {
			b.apply("of-"+handle, of(handle))
			a.take("of-" + handle)
		}, func(b *bench, _ *agent) { b.apply("role", ofRole) }},
	} {
		t.Run(name, func(t *testing.T) {
			var looks, sums atomic.Int64
			b := openWith(t, func(o *office.Options) { o.Store = counting{o.Store, &looks, &sums} }, budgeted(tc.budget))
			var handles []string
			for i := range others {
				handles = append(handles, fmt.Sprintf("other-%02d", i))
			}
			agents := b.hire(handles...)
			ada, _ := b.connect("ada")
			b.apply("fix")
			ada.take("fix")
			for _, handle := range handles {
				tc.before(b, handle, agents[handle])
			}
			looks.Store(0)
			sums.Store(0)
			tc.do(b, ada)
			if looks, sums := looks.Load(), sums.Load(); looks > 10 || sums > 10 {
				t.Errorf("with %d others, %d looks at people and %d sums of usage", others, looks, sums)
			}
		})
	}
}

func TestRoomInABudgetGoesToWhatRunsFirst(t *testing.T) {
	b := open(t, budgeted(model.Budget{Scope: model.BudgetTeam, Tokens: 1000, ReserveTokens: 600}))
	agents := b.hire("ada", "bob", "cyd", "dan")
	priority := func(n int32) func(*model.ItemFacts) { return func(f *model.ItemFacts) { f.Spec.Priority = n } }
	b.apply("first")
	agents["ada"].take("first")
	b.apply("second", priority(90)) // hers, too
	b.apply("low", of("bob"), priority(200))
	b.apply("high", of("dan"), priority(10))
	b.apply("any", priority(50), func(f *model.ItemFacts) { f.Spec.Person, f.Spec.Role = "", "dev" })
	for _, name := range []string{"low", "high", "any"} {
		if it := b.item(name); it.Hold.Reason != model.ReasonBudgetExhausted || it.Hold.Scope != model.BudgetTeam {
			t.Fatalf("%s is held for %+v", name, it.Hold)
		}
	}
	agents["ada"].ok(done("first"))
	agents["dan"].take("high")
	agents["dan"].ok(done("high"))
	// Nobody has what is next: it goes to the first of its role who is free.
	agents["ada"].take("any")
	agents["ada"].ok(done("any"))
	agents["ada"].take("second")
	agents["ada"].ok(done("second"))
	agents["bob"].take("low")
}

func TestAHeldItemSaysWhenItsBudgetIsUsedUp(t *testing.T) {
	b := open(t, budgeted(model.Budget{Scope: model.BudgetTeam, Tokens: 1000, ReserveTokens: 1000}))
	handles := []string{"bob", "cyd", "dan"}
	b.hire(handles...)
	ada, _ := b.connect("ada")
	b.apply("fix")
	ada.take("fix")
	for _, handle := range handles {
		b.apply("of-"+handle, of(handle))
	}
	said := func(part string) (list []string) {
		for _, handle := range handles {
			if strings.Contains(b.item("of-"+handle).Hold.Message, part) {
				list = append(list, handle)
			}
		}
		return list
	}
	if diff := cmp.Diff(handles, said("set aside")); diff != "" {
		t.Errorf("while the one round runs, want -, got +:\n%s", diff)
	}
	ada.ok(tokens(protocol.Handback{
		WorkItemID: "uid-fix", Status: protocol.HandbackWaiting, Summary: "x", Links: []protocol.Link{},
	}, 1000))
	if diff := cmp.Diff(handles, said("is used up")); diff != "" {
		t.Errorf("after it used the budget up, want -, got +:\n%s", diff)
	}
}
