package storetest

// This file tests tickets, pull requests, documents and remarks.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// each puts things in one Update.
func each[T any](t *testing.T, s *suite, put func(store.Tx, T) error, all ...T) {
	t.Helper()
	s.update(t, func(tx store.Tx) error {
		for _, v := range all {
			if err := put(tx, v); err != nil {
				return err
			}
		}
		return nil
	})
}

func testTickets(t *testing.T, s *suite) {
	whole := full[model.Ticket]()
	whole.Team, whole.Key, whole.Assignee, whole.Parent, whole.Status = core, "ACME-2", "ada", "ACME-1", protocol.TicketStatusDone
	get := func(r store.Reader) (model.Ticket, error) { return r.Ticket(core, "ACME-2") }
	missing(t, s, "a ticket before it is put", get)
	ticket := func(key, assignee, parent string, status protocol.TicketStatus) model.Ticket {
		return model.Ticket{Team: core, Key: key, Assignee: assignee, Parent: parent, Status: status}
	}
	open, canceled := protocol.TicketStatusActive, protocol.TicketStatusCanceled
	elsewhere := ticket("ACME-9", "ada", "ACME-1", open)
	elsewhere.Team = other
	each(t, s, store.Tx.PutTicket,
		ticket("ACME-2", "bob", "", open), whole, ticket("ACME-4", "ada", "ACME-1", open), ticket("ACME-3", "ada@acme.test", "", open),
		ticket("ACME-1", "", "", open), ticket("ACME-5", "ada", "", canceled), ticket("ACME-6", "bob", "", open),
		ticket("acme/shop#12", "", "", open), ticket("notes", "", "", open), elsewhere)
	same(t, "the ticket", read(t, s, get), whole)

	keys := func(get func(store.Reader) ([]model.Ticket, error)) (keys []string) {
		for _, k := range read(t, s, get) {
			keys = append(keys, k.Key)
		}
		return keys
	}
	of := func(names ...string) []string {
		return keys(func(r store.Reader) ([]model.Ticket, error) { return r.TicketsOf(core, names) })
	}
	under := func(key string) []string {
		return keys(func(r store.Reader) ([]model.Ticket, error) { return r.SubTickets(core, key) })
	}
	same(t, "the open ones of ada's names, by key", of("ada", "ada@acme.test"), []string{"ACME-3", "ACME-4"})
	same(t, "those of no name", of(), []string{})
	same(t, "those of nobody", of("zoe"), []string{})
	same(t, "the parts, by key", under("ACME-1"), []string{"ACME-2", "ACME-4"})
	same(t, "the parts of one without, and of none", [][]string{under("ACME-6"), under("")}, [][]string{{}, {}})
	same(t, "what stands before the numbers", read(t, s, func(r store.Reader) ([]string, error) { return r.TicketPrefixes(core) }),
		[]string{"ACME", "acme/shop"})
}

func testPulls(t *testing.T, s *suite) {
	whole := full[model.Pull]()
	whole.Team, whole.Ref, whole.State, whole.OpenedAt = core, "acme/shop#1", protocol.PullOpen, after(1)
	get := func(r store.Reader) (model.Pull, error) { return r.Pull(core, "acme/shop#1") }
	missing(t, s, "a pull request before it is put", get)
	pull := func(n int, state protocol.PullState, opened, updated int) model.Pull {
		return model.Pull{
			Team: core, Ref: fmt.Sprint("acme/shop#", n), Number: n, Repo: "acme/shop", State: state,
			OpenedAt: after(opened), UpdatedAt: after(updated),
		}
	}
	merged, closed := pull(4, protocol.PullMerged, 1, 90), pull(5, protocol.PullClosed, 99, 95)
	merged.Author, merged.Ticket = "ada", "ACME-1"
	closed.Repo = "acme/site"
	young := pull(3, protocol.PullOpen, 9, 9)
	young.Author = "ada"
	elsewhere := pull(6, protocol.PullOpen, 1, 1)
	elsewhere.Team = other
	each(t, s, store.Tx.PutPull, pull(1, protocol.PullClosed, 0, 0), whole, merged, closed, pull(2, protocol.PullOpen, 5, 200), young, elsewhere)
	same(t, "the pull request", read(t, s, get), whole)

	more := 0
	list := func(f model.PullFilter) (refs []string) {
		t.Helper()
		pulls := read(t, s, func(r store.Reader) (pulls []model.Pull, err error) {
			pulls, more, err = r.Pulls(core, f)
			return pulls, err
		})
		for _, p := range pulls {
			refs = append(refs, strings.TrimPrefix(p.Ref, "acme/shop"))
		}
		return refs
	}
	all := []string{"#3", "#2", "#1", "#5", "#4"}
	same(t, "all, the newest open one first, then those that ended last", list(model.PullFilter{}), all)
	same(t, "all by name", list(model.PullFilter{State: protocol.ListAll, Limit: 5}), all)
	same(t, "what is beyond that", more, 0)
	same(t, "the first two", list(model.PullFilter{Limit: 2}), all[:2])
	same(t, "what is beyond these", more, 3)
	for _, test := range []struct {
		name   string
		filter model.PullFilter
		want   []string
	}{
		{"open ones", model.PullFilter{State: protocol.ListOpen}, []string{"#3", "#2", "#1"}},
		{"merged ones", model.PullFilter{State: protocol.ListMerged}, []string{"#4"}},
		{"closed ones", model.PullFilter{State: protocol.ListClosed}, []string{"#5"}},
		{"those of ada", model.PullFilter{Author: "ada"}, []string{"#3", "#4"}},
		{"those for a ticket", model.PullFilter{Ticket: "ACME-1"}, []string{"#4"}},
		{"those of a repository", model.PullFilter{Repo: "acme/site"}, []string{"#5"}},
		{"those that match all of it", model.PullFilter{State: protocol.ListOpen, Author: "ada", Repo: "acme/shop"}, []string{"#3"}},
		{"none", model.PullFilter{Author: "zoe"}, []string{}},
	} {
		same(t, test.name, list(test.filter), test.want)
	}
	same(t, "the first of ada's", list(model.PullFilter{Author: "ada", Limit: 1}), []string{"#3"})
	same(t, "what is beyond it", more, 1)
}

func testDocs(t *testing.T, s *suite) {
	whole := full[model.Doc]()
	whole.Team, whole.ID, whole.Ticket = core, "b", "ACME-1"
	get := func(r store.Reader) (model.Doc, error) { return r.Doc(core, "b") }
	missing(t, s, "a document before it is put", get)
	first := model.Doc{Team: core, ID: "a", Ticket: "ACME-1"}
	each(t, s, store.Tx.PutDoc, model.Doc{Team: core, ID: "b", Ticket: "ACME-2"}, whole, first,
		model.Doc{Team: core, ID: "c"}, model.Doc{Team: other, ID: "d", Ticket: "ACME-1"})
	same(t, "the document", read(t, s, get), whole)
	of := func(ticket string) []model.Doc {
		return read(t, s, func(r store.Reader) ([]model.Doc, error) { return r.DocsFor(core, ticket) })
	}
	same(t, "those for a ticket, by id", of("ACME-1"), []model.Doc{first, whole})
	same(t, "those for another", of("ACME-2"), []model.Doc{})
}

func testRemarks(t *testing.T, s *suite) {
	whole := full[model.Remark]()
	whole.Team, whole.Place, whole.ID, whole.At = core, pullPlace, "b", after(5)
	remark := func(id string, at int, text string) model.Remark {
		return model.Remark{Team: core, Place: pullPlace, ID: id, At: after(at), Body: text}
	}
	get := func(team model.TeamKey, place model.Place, id string) func(store.Reader) (model.Remark, error) {
		return func(r store.Reader) (model.Remark, error) { return r.Remark(team, place, id) }
	}
	missing(t, s, "a remark before it is put", get(core, pullPlace, "b"))
	elsewhere, otherTeam := remark("b", 1, "on the ticket"), remark("b", 1, "of another team")
	elsewhere.Place, otherTeam.Team = ticketPlace, other
	each(t, s, store.Tx.PutRemark, remark("b", 1, "before it was edited"), whole, remark("c", 9, "last"), remark("a", 1, "first"),
		remark("d", 5, "as old as another"), elsewhere, otherTeam)
	same(t, "the remark", read(t, s, get(core, pullPlace, "b")), whole)
	same(t, "the one of the same id elsewhere", read(t, s, get(core, ticketPlace, "b")), elsewhere)

	total := 0
	list := func(limit int) (ids []string) {
		remarks := read(t, s, func(r store.Reader) (remarks []model.Remark, err error) {
			remarks, total, err = r.Remarks(core, pullPlace, limit)
			return remarks, err
		})
		for _, m := range remarks {
			ids = append(ids, m.ID)
		}
		return ids
	}
	same(t, "all, oldest first", list(0), []string{"a", "b", "d", "c"})
	same(t, "the latest two", list(2), []string{"d", "c"})
	same(t, "all there are", total, 4)
}

func testResolveThread(t *testing.T, s *suite) {
	remark := func(place model.Place, id, thread string) model.Remark {
		return model.Remark{Team: core, Place: place, ID: id, ThreadID: thread}
	}
	each(t, s, store.Tx.PutRemark, remark(pullPlace, "a", "t1"), remark(pullPlace, "b", "t1"), remark(pullPlace, "c", "t2"),
		remark(pullPlace, "d", ""), remark(docPlace, "a", "t1"))
	resolved := func(place model.Place) (ids []string) {
		remarks := read(t, s, func(r store.Reader) ([]model.Remark, error) {
			remarks, _, err := r.Remarks(core, place, 0)
			return remarks, err
		})
		for _, m := range remarks {
			if m.Resolved {
				ids = append(ids, m.ID)
			}
		}
		return ids
	}
	set := func(thread string, to bool) {
		t.Helper()
		s.update(t, func(tx store.Tx) error { return tx.ResolveThread(core, pullPlace, thread, to) })
	}
	set("t1", true)
	set("", true)
	set("unknown", true)
	same(t, "the resolved ones", [][]string{resolved(pullPlace), resolved(docPlace)}, [][]string{{"a", "b"}, {}})
	set("t1", false)
	same(t, "after it was opened again", resolved(pullPlace), []string{})
}
