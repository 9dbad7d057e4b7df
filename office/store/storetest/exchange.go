package storetest

// This file tests what is said about items and what crosses between the office and the world.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// The places of the tests.
var (
	ticketPlace = model.Place{Type: model.RefTicket, Ref: "ACME-1"}
	pullPlace   = model.Place{Type: model.RefPull, Ref: "acme/shop#7"}
	docPlace    = model.Place{Type: model.RefDoc, Ref: "d1"}
)

// born makes an item one that began in the office; objectUID is empty while it has no object.
func born(objectUID string) func(*model.Item) {
	return func(i *model.Item) { i.Birth = &model.Birth{ObjectUID: objectUID} }
}

// createdAt makes an item that many seconds younger than the epoch.
func createdAt(n int) func(*model.Item) { return func(i *model.Item) { i.CreatedAt = after(n) } }

// about gives an item a subject.
func about(p model.Place) func(*model.Item) {
	return func(i *model.Item) { i.Spec.Subject = &protocol.Subject{Type: string(p.Type), Ref: p.Ref} }
}

func inTeam(key model.TeamKey) func(*model.Item) {
	return func(i *model.Item) { i.Namespace, i.Spec.Team = key.Namespace, key.Name }
}

func testUnborn(t *testing.T, s *suite) {
	ask := func() []string { return names(read(t, s, store.Reader.Unborn)) }
	object := func(uid string) func(store.Reader) (model.Item, error) {
		return func(r store.Reader) (model.Item, error) { return r.ItemByObject(uid) }
	}
	late := item("late", born(""), createdAt(9))
	s.put(t, late, item("early", born(""), createdAt(1)), item("told", born("uid-told")), item("a-user's"), item("gone", born(""), gone))
	same(t, "those without an object, oldest first", ask(), []string{"early", "late"})
	missing(t, s, "an object that nobody made", object("late"))
	same(t, "the items of objects", []string{read(t, s, object("uid-told")).ID, read(t, s, object("a-user's")).ID}, []string{"told", "a-user's"})
	live := read(t, s, store.Reader.LiveItems)
	slices.Sort(live)
	same(t, "the objects of live items", live, []string{"a-user's", "uid-told"})

	late.Birth.ObjectUID = "uid-late"
	s.put(t, late)
	same(t, "those without then", ask(), []string{"early"})
	same(t, "its item", read(t, s, object("uid-late")).ID, "late")
	late.Gone = true
	s.put(t, late)
	same(t, "its item once it is gone", read(t, s, object("uid-late")).ID, "late")
}

func testFeedback(t *testing.T, s *suite) {
	s.put(t, item("fix"), item("more"))
	add := func(f model.Feedback, want bool) model.Feedback {
		t.Helper()
		s.update(t, func(tx store.Tx) error {
			before := f
			fresh, err := tx.AppendFeedback(&f)
			if fresh != want {
				t.Errorf("feedback %q of %s is new: %t, want %t", f.Key, f.ItemID, fresh, want)
			}
			if !fresh {
				same(t, "feedback that was not stored", f, before)
			}
			return err
		})
		return f
	}
	whole := full[model.Feedback]()
	whole.ItemID, whole.N = "fix", 0
	first := add(whole, true)
	add(whole, false)
	whole.ItemID = "more"
	elsewhere := add(whole, true)
	plain := add(model.Feedback{ItemID: "fix", At: epoch}, true)
	again := add(model.Feedback{ItemID: "fix", At: epoch}, true)
	if !slices.IsSorted([]int64{1, first.N, elsewhere.N, plain.N, again.N}) || first.N == elsewhere.N || plain.N == again.N {
		t.Errorf("feedback has the numbers %d, %d, %d and %d", first.N, elsewhere.N, plain.N, again.N)
	}
	list := func(id string, after int64) []model.Feedback {
		return read(t, s, func(r store.Reader) ([]model.Feedback, error) { return r.Feedback(id, after) })
	}
	same(t, "feedback of the item", list("fix", 0), []model.Feedback{first, plain, again})
	same(t, "feedback after the first", list("fix", first.N), []model.Feedback{plain, again})
	same(t, "feedback after the last", list("fix", again.N), []model.Feedback{})
	same(t, "feedback of another", list("more", 0), []model.Feedback{elsewhere})
}

func testRefs(t *testing.T, s *suite) {
	s.put(t, item("fix"), item("more"))
	whole := full[model.Ref]()
	whole.ItemID, whole.Place = "fix", pullPlace
	second := model.Ref{ItemID: "fix", Place: ticketPlace, Source: "first"}
	repeat := second
	repeat.Source = "second"
	for _, ref := range []model.Ref{whole, second, repeat, {ItemID: "more", Place: ticketPlace}} {
		s.update(t, func(tx store.Tx) error { return tx.PutRef(ref) })
	}
	list := func(id string) []model.Ref {
		return read(t, s, func(r store.Reader) ([]model.Ref, error) { return r.Refs(id) })
	}
	same(t, "the refs, in the order in which they were put", list("fix"), []model.Ref{whole, second})
	same(t, "the refs of another", list("more"), []model.Ref{{ItemID: "more", Place: ticketPlace}})
	same(t, "the refs of none", list("none"), []model.Ref{})
}

func testItemsAbout(t *testing.T, s *suite) {
	s.put(t,
		item("subject", about(ticketPlace), createdAt(2)), item("ref", createdAt(3)), item("both", about(ticketPlace), createdAt(1)),
		item("other-subject", about(pullPlace)), item("neither"),
		item("gone", about(ticketPlace), gone), item("gone-ref", gone),
		item("other-team", about(ticketPlace), inTeam(other)), item("other-team-ref", inTeam(other)),
		item("same-ref-of-another-type", about(model.Place{Type: model.RefDoc, Ref: ticketPlace.Ref})),
	)
	s.update(t, func(tx store.Tx) error {
		for _, id := range []string{"ref", "both", "gone-ref", "other-team-ref"} {
			if err := tx.PutRef(model.Ref{ItemID: id, Place: ticketPlace}); err != nil {
				return err
			}
		}
		return nil
	})
	ask := func(team model.TeamKey, place model.Place) []string {
		return read(t, s, func(r store.Reader) ([]string, error) { return r.ItemsAbout(team, place) })
	}
	same(t, "about the ticket, latest first", ask(core, ticketPlace), []string{"ref", "subject", "both"})
	same(t, "about the pull request", ask(core, pullPlace), []string{"other-subject"})
	same(t, "about nothing known", ask(core, docPlace), []string{})
	got := ask(other, ticketPlace)
	slices.Sort(got)
	same(t, "about the ticket of the other team", got, []string{"other-team", "other-team-ref"})

	s.put(t, item("subject", about(docPlace)))
	same(t, "after the subject changed", ask(core, ticketPlace), []string{"ref", "both"})
}

func testThreads(t *testing.T, s *suite) {
	s.put(t, item("fix"), item("more"), item("gone"), item("elsewhere", inTeam(other)))
	whole := full[model.Thread]()
	whole.ItemID, whole.Person, whole.Channel, whole.Thread = "fix", "ada", "c", "1"
	link := func(th model.Thread) { t.Helper(); s.update(t, func(tx store.Tx) error { return tx.LinkThread(th) }) }
	link(whole)
	link(model.Thread{ItemID: "fix", Person: "ada", Channel: "c", Thread: "1"}) // it has this one
	second := model.Thread{ItemID: "fix", Person: "bob", Channel: "c", Thread: "2"}
	link(second)
	link(model.Thread{ItemID: "gone", Person: "ada", Channel: "c", Thread: "1"})
	link(model.Thread{ItemID: "more", Person: "ada", Channel: "c", Thread: "1"})
	link(model.Thread{ItemID: "elsewhere", Person: "ada", Channel: "c", Thread: "1"})
	s.put(t, item("gone", gone))
	same(t, "the threads, in the order in which they were linked",
		read(t, s, func(r store.Reader) ([]model.Thread, error) { return r.Threads("fix") }), []model.Thread{whole, second})
	same(t, "the threads of none", read(t, s, func(r store.Reader) ([]model.Thread, error) { return r.Threads("none") }), []model.Thread{})
	ask := func(key model.PersonKey, thread string) []string {
		return read(t, s, func(r store.Reader) ([]string, error) { return r.ItemsInThread(key, "c", thread) })
	}
	same(t, "what ada hears in it, the latest first", ask(ada, "1"), []string{"more", "gone", "fix"})
	same(t, "what bob hears in it, and in the other", [][]string{ask(bob, "1"), ask(bob, "2")}, [][]string{{}, {"fix"}})
}

func testEvents(t *testing.T, s *suite) {
	whole := full[model.Event]()
	whole.Team, whole.Source, whole.ID = core, "tracker", "1"
	whole.Data = protocol.Raw(`{"n":1.50,"text":"ü"}`)
	get := func(team model.TeamKey, source, id string) func(store.Reader) (model.Event, error) {
		return func(r store.Reader) (model.Event, error) { return r.Event(team, source, id) }
	}
	missing(t, s, "an event before it came", get(core, "tracker", "1"))
	first := func(e model.Event) (first bool) {
		s.update(t, func(tx store.Tx) (err error) { first, err = tx.FirstEvent(e); return err })
		return first
	}
	changed := whole
	changed.Trace = []string{"another"}
	same(t, "the event, and again", []bool{first(whole), first(changed)}, []bool{true, false})
	same(t, "the event", read(t, s, get(core, "tracker", "1")), whole)
	s.update(t, func(tx store.Tx) error { return tx.PutEvent(changed) })
	same(t, "the event with another trace", read(t, s, get(core, "tracker", "1")), changed)
	s.update(t, func(tx store.Tx) error { return tx.PutEvent(model.Event{Team: core, Source: "tracker", ID: "put"}) })
	same(t, "an event that was put, another source, another team", []bool{
		first(model.Event{Team: core, Source: "tracker", ID: "put"}), first(model.Event{Team: core, Source: "chat", ID: "1"}),
		first(model.Event{Team: other, Source: "tracker", ID: "1"}),
	}, []bool{false, true, true})
}

func testActs(t *testing.T, s *suite) {
	s.put(t, item("fix"))
	whole := full[model.Act]()
	whole.ID, whole.Person, whole.ItemID, whole.Ops = "whole", ada, "fix", []protocol.Raw{protocol.Raw(`{"op":"comment"}`)}
	put := func(acts ...model.Act) {
		t.Helper()
		s.update(t, func(tx store.Tx) error {
			for _, a := range acts {
				if err := tx.PutAct(a); err != nil {
					return err
				}
			}
			return nil
		})
	}
	get := func(r store.Reader) (model.Act, error) { return r.Act(core, "whole") }
	open := func(key model.PersonKey) (ids []string) {
		for _, a := range read(t, s, func(r store.Reader) ([]model.Act, error) { return r.OpenActs(key) }) {
			ids = append(ids, a.ID)
		}
		return ids
	}
	missing(t, s, "an act before it is put", get)
	late := model.Act{ID: "late", Person: ada, CreatedAt: after(5)}
	put(whole, late, model.Act{ID: "early", Person: ada, CreatedAt: after(1)}, model.Act{ID: "second", Person: ada, CreatedAt: after(1)},
		model.Act{ID: "of-bob", Person: bob}, model.Act{ID: "late", Person: model.PersonKey{Team: other, Handle: "ada"}})
	same(t, "the act", read(t, s, get), whole)
	missing(t, s, "the act in another team", func(r store.Reader) (model.Act, error) { return r.Act(other, "whole") })
	same(t, "what ada has not answered, oldest first", open(ada), []string{"early", "second", "late"})
	late.AnsweredAt, late.Error = after(9), "no such comment"
	put(late)
	same(t, "after an answer", open(ada), []string{"early", "second"})
	same(t, "the answer", read(t, s, func(r store.Reader) (model.Act, error) { return r.Act(core, "late") }), late)
	same(t, "what the others have not answered", [][]string{open(bob), open(model.PersonKey{Team: other, Handle: "ada"})},
		[][]string{{"of-bob"}, {"late"}})
}

func testReports(t *testing.T, s *suite) {
	s.put(t, item("fix"))
	whole := full[model.Report]()
	whole.ID, whole.Person, whole.ItemID = "whole", ada, "fix"
	put := func(reports ...model.Report) {
		t.Helper()
		s.update(t, func(tx store.Tx) error {
			for _, p := range reports {
				if err := tx.PutReport(p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	get := func(r store.Reader) (model.Report, error) { return r.Report("whole") }
	open := func(key model.PersonKey) (ids []string) {
		for _, p := range read(t, s, func(r store.Reader) ([]model.Report, error) { return r.OpenReports(key) }) {
			ids = append(ids, p.ID)
		}
		return ids
	}
	missing(t, s, "a report before it is put", get)
	late := model.Report{ID: "late", Person: ada, ItemID: "fix", CreatedAt: after(5)}
	put(whole, late, model.Report{ID: "early", Person: ada, ItemID: "fix", CreatedAt: after(1), NotBefore: after(99)},
		model.Report{ID: "of-bob", Person: bob, ItemID: "fix"})
	same(t, "the report", read(t, s, get), whole)
	same(t, "what ada has not confirmed, oldest first", open(ada), []string{"early", "late"})
	due := func(limit int) (ids []string) {
		for _, p := range read(t, s, func(r store.Reader) ([]model.Report, error) { return r.DueReports(ada, limit) }) {
			ids = append(ids, p.ID)
		}
		return ids
	}
	same(t, "what ada is to be sent, by when", [][]string{due(0), due(1)}, [][]string{{"late", "early"}, {"late"}})
	early := model.Report{ID: "early", Person: ada, ItemID: "fix", CreatedAt: after(1), NotBefore: after(99), SentAt: after(99)}
	put(early)
	same(t, "after one was sent", due(0), []string{"late"})
	late.PostedAt = after(9)
	put(late)
	same(t, "after a confirmation", open(ada), []string{"early"})
	same(t, "what bob has not confirmed", open(bob), []string{"of-bob"})
}

func testTicketUsage(t *testing.T, s *suite) {
	s.put(t,
		item("subject", about(ticketPlace), func(i *model.Item) { i.Spec.Kind = "ticket" }),
		item("ref", func(i *model.Item) { i.Spec.Kind = "chat" }),
		item("gone", about(ticketPlace), gone, func(i *model.Item) { i.Spec.Kind = "ticket" }),
		item("unrelated"), item("elsewhere", about(ticketPlace), inTeam(other)),
	)
	known := used(4)
	known.CostKnown, known.UnpricedTokens = true, 3
	s.update(t, func(tx store.Tx) error {
		for _, ref := range []string{"ref", "subject"} { // the subject's is no second count
			if err := tx.PutRef(model.Ref{ItemID: ref, Place: ticketPlace}); err != nil {
				return err
			}
		}
		for n, e := range []model.LedgerEntry{
			{ItemID: "subject", Person: "ada", Kind: "ticket", Model: "small", Usage: used(1)},
			{ItemID: "subject", Person: "ada", Kind: "ticket", Model: "small", Usage: known},
			{ItemID: "subject", Person: "ada", Kind: "ticket", Model: "large", Usage: used(2)},
			{ItemID: "gone", Person: "ada", Kind: "ticket", Model: "small", Usage: used(8)},
			{ItemID: "ref", Person: "bob", Kind: "chat", Model: "small", Usage: used(16)},
			{ItemID: "unrelated", Person: "ada", Kind: "ticket", Model: "small", Usage: used(32)},
			{ItemID: "elsewhere", Person: "ada", Kind: "ticket", Model: "small", Usage: used(64)},
		} {
			e.Team, e.Session, e.Round = core, fmt.Sprint("session-", n), 1
			if err := tx.AddUsage(e, e.Usage, epoch); err != nil {
				return err
			}
		}
		for n, r := range []model.Round{
			{ItemID: "subject", Person: "ada", AcceptedAt: epoch}, {ItemID: "subject", Person: "bob", AcceptedAt: epoch},
			{ItemID: "subject", Person: "bob"}, // declined
			{ItemID: "gone", Person: "ada", AcceptedAt: epoch}, {ItemID: "ref", Person: "bob", AcceptedAt: epoch},
			{ItemID: "unrelated", Person: "ada", AcceptedAt: epoch}, {ItemID: "elsewhere", Person: "ada", AcceptedAt: epoch},
		} {
			r.Number, r.EndedAt = n+1, epoch
			if err := tx.PutRound(r); err != nil {
				return err
			}
		}
		return nil
	})
	ask := func(ticket string) (shares []model.TicketShare, runs []model.TicketRuns) {
		runs = read(t, s, func(r store.Reader) (runs []model.TicketRuns, err error) {
			shares, runs, err = r.TicketUsage(core, ticket)
			return runs, err
		})
		slices.SortFunc(shares, func(a, b model.TicketShare) int { return strings.Compare(a.Person+a.Model, b.Person+b.Model) })
		slices.SortFunc(runs, func(a, b model.TicketRuns) int { return strings.Compare(a.Person+a.Kind, b.Person+b.Kind) })
		return shares, runs
	}
	shares, runs := ask("ACME-1")
	sum := used(13)
	sum.CostKnown, sum.UnpricedTokens = true, 3
	same(t, "the shares", shares, []model.TicketShare{
		{Person: "ada", Model: "large", Kind: "ticket", Usage: used(2), Runs: 1},
		{Person: "ada", Model: "small", Kind: "ticket", Usage: sum, Runs: 2}, // two sessions of one round are one run
		{Person: "bob", Model: "small", Kind: "chat", Usage: used(16), Runs: 1},
	})
	same(t, "the accepted rounds", runs, []model.TicketRuns{
		{Person: "ada", Kind: "ticket", Runs: 2}, {Person: "bob", Kind: "chat", Runs: 1}, {Person: "bob", Kind: "ticket", Runs: 1},
	})
	shares, runs = ask("ACME-2")
	same(t, "usage of an unknown ticket", []any{shares, runs}, []any{[]model.TicketShare{}, []model.TicketRuns{}})
}
