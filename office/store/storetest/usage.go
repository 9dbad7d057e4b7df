package storetest

// This file tests what budgets and prices ask the ledger for.

import (
	"fmt"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

func testRecentRounds(t *testing.T, s *suite) {
	recent := func(key model.TeamKey) model.Rounds {
		return read(t, s, func(r store.Reader) (model.Rounds, error) { return r.RecentRounds(key) })
	}
	same(t, "rounds before any", recent(core), model.Rounds{})

	s.put(t, item("fix"), item("more"))
	add := func(team model.TeamKey, id string, round int, session string, tokens, cost int64) {
		e := model.LedgerEntry{ItemID: id, Round: round, Team: team, Person: "ada", Session: session, Model: "m",
			Usage: model.Usage{InputTokens: tokens - 3, OutputTokens: 1, CacheReadTokens: 1, CacheCreationTokens: 1, CostMicroUSD: cost, CostKnown: cost > 0}}
		s.update(t, func(tx store.Tx) error { return tx.AddUsage(e, e.Usage, epoch) })
	}
	add(core, "fix", 1, "s1", 10, 5)
	add(core, "fix", 1, "s2", 20, 0) // the same round, in another session
	add(core, "fix", 2, "s2", 30, 0)
	add(core, "more", 1, "s3", 40, 7)
	add(other, "more", 2, "s3", 1000, 1000)
	same(t, "rounds of the team", recent(core), model.Rounds{Rounds: 3, Priced: 2, Tokens: 100, CostMicroUSD: 12})
	same(t, "rounds of the other team", recent(other), model.Rounds{Rounds: 1, Priced: 1, Tokens: 1000, CostMicroUSD: 1000})

	for n := range 300 {
		add(core, "more", 10+n, "s4", 50, 9)
	}
	latest := recent(core)
	if latest.Rounds < 20 || latest.Rounds >= 300 || latest.Tokens != 50*latest.Rounds || latest.CostMicroUSD != 9*latest.Rounds {
		t.Errorf("after many rounds the latest are %+v", latest)
	}
}

func testUnpriced(t *testing.T, s *suite) {
	list := func() (found []string) {
		entries := read(t, s, func(r store.Reader) ([]model.LedgerEntry, error) { return r.Unpriced(core) })
		for _, e := range entries {
			u := e.Usage
			found = append(found, fmt.Sprintf("%s round %d of %s, a %s in %s on %s: %d %d %d %d, %d unpriced", e.ItemID, e.Round, e.Person, e.Kind,
				e.Session, e.Model, u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheCreationTokens, u.UnpricedTokens))
		}
		return found
	}
	s.put(t, item("fix"))
	add := func(team model.TeamKey, round int, on string, u model.Usage) {
		e := model.LedgerEntry{ItemID: "fix", Round: round, Team: team, Person: "ada", Kind: "task", Session: "s", Model: on, Usage: u}
		s.update(t, func(tx store.Tx) error { return tx.AddUsage(e, e.Usage, epoch) })
	}
	unknown := func(n int64) model.Usage { u := used(n); u.CostMicroUSD, u.UnpricedTokens = 0, u.Tokens(); return u }
	priced := used(5)
	priced.CostKnown = true
	add(core, 1, "priced", priced)
	add(core, 1, "house", unknown(1))
	add(core, 2, "house", unknown(2))
	add(other, 1, "house", unknown(4))
	same(t, "usage without a price", list(), []string{"fix round 2 of ada, a task in s on house: 3 30 300 3000, 3333 unpriced"})

	add(core, 3, "house", model.Usage{CostMicroUSD: 9, CostKnown: true, UnpricedTokens: -1111})
	same(t, "usage of which a part was told", list(), []string{"fix round 3 of ada, a task in s on house: 3 30 300 3000, 2222 unpriced"})

	add(core, 3, "house", model.Usage{CostMicroUSD: 9, CostKnown: true, UnpricedTokens: -2222})
	same(t, "usage whose cost was told", list(), []string(nil))
}
