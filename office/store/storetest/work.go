package storetest

// This file tests what is kept of the work on an item: rounds, journal, usage and the keys of messages.

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

func testRounds(t *testing.T, s *suite) {
	s.put(t, item("fix"), item("more"))
	put := func(r model.Round) func(store.Tx) error { return func(tx store.Tx) error { return tx.PutRound(r) } }
	whole := full[model.Round]()
	whole.ItemID, whole.Number = "fix", 2
	first := model.Round{ItemID: "fix", Number: 1, Person: "ada", OfferedAt: epoch}
	s.update(t, put(first))
	s.refuse(t, "a second open round", put(model.Round{ItemID: "fix", Number: 2, OfferedAt: epoch}))
	s.update(t, put(model.Round{ItemID: "more", Number: 1, OfferedAt: epoch}))
	first.EndedAt, first.Outcome = after(1), model.OutcomeLost
	s.update(t, put(first))
	s.update(t, put(whole))
	last := model.Round{ItemID: "fix", Number: 10, OfferedAt: after(2)}
	s.update(t, put(last))
	same(t, "the rounds", read(t, s, func(r store.Reader) ([]model.Round, error) { return r.Rounds("fix") }),
		[]model.Round{first, whole, last})
	same(t, "the rounds of an item without", read(t, s, func(r store.Reader) ([]model.Round, error) { return r.Rounds("none") }),
		[]model.Round{})
}

func testJournal(t *testing.T, s *suite) {
	s.put(t, item("fix"), item("more"))
	whole := full[model.JournalEntry]()
	whole.ItemID = "fix"
	entries := []model.JournalEntry{whole, {ItemID: "fix", At: after(9), Author: "ada", Text: "late"}, {ItemID: "fix", Text: "ü\x00\n"}}
	for _, e := range entries {
		s.update(t, func(tx store.Tx) error {
			if err := tx.AppendJournal(model.JournalEntry{ItemID: "more", Text: "another's"}); err != nil {
				return err
			}
			return tx.AppendJournal(e)
		})
	}
	same(t, "the journal", read(t, s, func(r store.Reader) ([]model.JournalEntry, error) { return r.Journal("fix") }), entries)
}

// used is usage whose five first amounts tell themselves apart.
func used(n int64) model.Usage {
	return model.Usage{InputTokens: n, OutputTokens: 10 * n, CacheReadTokens: 100 * n, CacheCreationTokens: 1000 * n, CostMicroUSD: 7 * n}
}

func testLedger(t *testing.T, s *suite) {
	person := func(key model.PersonKey) model.Usage {
		return read(t, s, func(r store.Reader) (model.Usage, error) { return r.PersonUsage(key) })
	}
	team := func(key model.TeamKey) model.Usage {
		return read(t, s, func(r store.Reader) (model.Usage, error) { return r.TeamUsage(key) })
	}
	models := func(id string) []model.ModelUsage {
		return read(t, s, func(r store.Reader) ([]model.ModelUsage, error) { return r.ItemModels(id) })
	}
	same(t, "usage before any", []model.Usage{person(ada), team(core)}, []model.Usage{{}, {}})
	same(t, "models before any", models("fix"), []model.ModelUsage{})

	s.put(t, item("fix"), item("more"))
	costly := used(4)
	costly.CostKnown = true
	for _, e := range []model.LedgerEntry{
		{ItemID: "fix", Round: 1, Team: core, Person: "ada", Session: "s1", Model: "small", Usage: used(1)},
		{ItemID: "fix", Round: 2, Team: core, Person: "bob", Session: "s2", Model: "small", Usage: used(2)},
		{ItemID: "fix", Round: 2, Team: core, Person: "bob", Session: "s2", Model: "large", Usage: costly},
		{ItemID: "more", Round: 1, Team: core, Person: "ada", Session: "s1", Model: "small", Usage: used(8)},
		{ItemID: "more", Round: 1, Team: other, Person: "ada", Session: "s1", Model: "small", Usage: used(16)},
	} {
		s.update(t, func(tx store.Tx) error { return tx.AddUsage(e, e.Usage, epoch) })
	}
	known := func(n int64) model.Usage { u := used(n); u.CostKnown = true; return u }
	same(t, "usage of ada", person(ada), used(9))
	same(t, "usage of bob, a part of whose cost is known", person(bob), known(6))
	same(t, "usage of the team", team(core), known(15))
	same(t, "usage of the other team", team(other), used(16))
	same(t, "models of the item, largest first", models("fix"),
		[]model.ModelUsage{{Model: "large", Usage: known(4)}, {Model: "small", Usage: used(3)}})

	err := s.Update(context.Background(), func(tx store.Tx) error {
		e := model.LedgerEntry{ItemID: "fix", Team: core, Person: "ada", Usage: used(1)}
		if err := tx.AddUsage(e, e.Usage, epoch); err != nil {
			return err
		}
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	same(t, "usage of ada after an update that failed", person(ada), used(9))
}

func testSessionTotals(t *testing.T, s *suite) {
	s.put(t, item("fix"), item("more"))
	get := func(id, session, m string) model.Usage {
		return read(t, s, func(r store.Reader) (model.Usage, error) { return r.SessionTotals(id, session, m) })
	}
	same(t, "totals before any", get("fix", "s", "m"), model.Usage{})
	whole := full[model.Usage]()
	for _, totals := range []model.Usage{used(5), whole} {
		s.update(t, func(tx store.Tx) error {
			return tx.AddUsage(model.LedgerEntry{ItemID: "fix", Session: "s", Model: "m", Usage: used(1)}, totals, epoch)
		})
	}
	same(t, "the totals", get("fix", "s", "m"), whole)
	same(t, "totals of another item, session and model",
		[]model.Usage{get("more", "s", "m"), get("fix", "s2", "m"), get("fix", "s", "m2")}, make([]model.Usage, 3))
}

func testFirstTime(t *testing.T, s *suite) {
	s.put(t, item("fix"), item("more"))
	first := func(id string, key byte) (first bool) {
		s.update(t, func(tx store.Tx) (err error) {
			first, err = tx.FirstTime(id, [32]byte{31: key}, epoch)
			return err
		})
		return first
	}
	same(t, "a key, again, another key, another item",
		[]bool{first("fix", 1), first("fix", 1), first("fix", 2), first("more", 1)}, []bool{true, false, true, true})
	s.reopen(t)
	same(t, "after opening again", []bool{first("fix", 1), first("more", 2)}, []bool{false, true})
	seen := func(id string, key byte) bool {
		return read(t, s, func(r store.Reader) (bool, error) { return r.Seen(id, [32]byte{31: key}) })
	}
	same(t, "seen: a key, one that was never given, one of another item", []bool{seen("fix", 1), seen("fix", 3), seen("more", 3)}, []bool{true, false, false})
}

func testUnknownItem(t *testing.T, s *suite) {
	for name, write := range map[string]func(store.Tx) error{
		"PutRound":      func(tx store.Tx) error { return tx.PutRound(model.Round{ItemID: "none", Number: 1}) },
		"AppendJournal": func(tx store.Tx) error { return tx.AppendJournal(model.JournalEntry{ItemID: "none"}) },
		"AddUsage": func(tx store.Tx) error {
			return tx.AddUsage(model.LedgerEntry{ItemID: "none"}, model.Usage{}, epoch)
		},
		"FirstTime": func(tx store.Tx) error { _, err := tx.FirstTime("none", [32]byte{}, epoch); return err },
		"AppendFeedback": func(tx store.Tx) error {
			_, err := tx.AppendFeedback(&model.Feedback{ItemID: "none", Key: "k"})
			return err
		},
		"PutRef":     func(tx store.Tx) error { return tx.PutRef(model.Ref{ItemID: "none", Place: ticketPlace}) },
		"LinkThread": func(tx store.Tx) error { return tx.LinkThread(model.Thread{ItemID: "none", Channel: "c"}) },
		"PutAct":     func(tx store.Tx) error { return tx.PutAct(model.Act{ID: "a", Person: ada, ItemID: "none"}) },
		"PutReport":  func(tx store.Tx) error { return tx.PutReport(model.Report{ID: "r", Person: ada, ItemID: "none"}) },
		"Bury":       func(tx store.Tx) error { return tx.Bury("none") },
		"PutDoctor":  func(tx store.Tx) error { return tx.PutDoctor("none", model.Doctor{At: epoch}) },
	} {
		if err := s.Update(context.Background(), write); !errors.Is(err, store.ErrNotFound) {
			t.Error(fmt.Sprint(name, " of something unknown gave ", err, ", want ErrNotFound"))
		}
	}
}
