package storetest

// This file tests sessions, their messages, and the records that the office writes itself.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// session is an open one of ada, the first of an item whose id and name are equal, made n seconds after the epoch.
func session(item string, n int, changes ...func(*model.Session)) model.Session {
	s := model.Session{
		ID: model.SessionID("life", item, 1), ItemID: item, Namespace: core.Namespace, Team: core.Name, Name: item, Person: "ada",
		State: "queued", CreatedAt: after(n),
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// sessionIDs lists the ids of sessions that a filter chooses.
func sessionIDs(t *testing.T, s *suite, f model.SessionFilter, limit int) (ids []string) {
	t.Helper()
	for _, found := range read(t, s, func(r store.Reader) ([]model.Session, error) { return r.Sessions(f, limit) }) {
		ids = append(ids, found.ID)
	}
	return ids
}

func testSession(t *testing.T, s *suite) {
	s.put(t, item("fix"))
	first := full[model.Session]()
	first.ID, first.ItemID = model.SessionID("life", "fix", 1), "fix"
	get := func(r store.Reader) (model.Session, error) { return r.Session(first.ID) }
	of := func(r store.Reader) (model.Session, error) { return r.SessionOf("fix") }
	missing(t, s, "a session before it is put", get)
	missing(t, s, "an item's session before it has one", of)
	each(t, s, store.Tx.PutSession, session("fix", 7), first)
	same(t, "the session, put over another", read(t, s, get), first)
	first.Summary, first.Turns = "further", 12
	each(t, s, store.Tx.PutSession, first)
	same(t, "the session with a change that no list shows", read(t, s, get), first)

	var later []model.Session
	for n := 2; n <= 11; n++ { // more than one digit
		next := session("fix", 100-n, func(s *model.Session) { s.ID = model.SessionID("life", "fix", n) })
		later = append(later, next)
	}
	slices.Reverse(later)
	each(t, s, store.Tx.PutSession, later...)
	same(t, "the latest session of the item", read(t, s, of), later[0])
	s.reopen(t)
	same(t, "the session after opening again", read(t, s, get), first)
	missing(t, s, "the session of another item", func(r store.Reader) (model.Session, error) { return r.SessionOf("other") })
}

func testSessionFilters(t *testing.T, s *suite) {
	closed := func(s *model.Session) { s.ClosedAt = after(1000) }
	ids := map[string]string{}
	all := []model.Session{
		session("a", 1, closed),
		session("b", 2, func(s *model.Session) { s.Person, s.State = "bob", "active" }),
		session("c", 3, closed, func(s *model.Session) { s.State, s.Person = "done", "" }),
		session("d", 4, func(s *model.Session) { s.Team = other.Name }),
		session("e", 5, func(s *model.Session) { s.Namespace = "elsewhere" }),
		session("f", 5, func(s *model.Session) { s.Name = "named" }),
		session("g", 6, closed, func(s *model.Session) { s.Namespace, s.Name = "elsewhere", "named" }),
		session("a2", 7, func(s *model.Session) { s.ID, s.ItemID, s.Name = model.SessionID("life", "a", 2), "a", "a" }),
	}
	for _, one := range all {
		s.put(t, item(one.ItemID))
		ids[one.ID] = one.ItemID
	}
	ids[model.SessionID("life", "a", 2)] = "a2"
	each(t, s, store.Tx.PutSession, all...)
	// What it is listed by changes.
	all[0].Person, all[0].State = "eve", "canceled"
	each(t, s, store.Tx.PutSession, all[0])
	of := core.Namespace
	for _, test := range []struct {
		name   string
		filter model.SessionFilter
		want   string
	}{
		{"all", model.SessionFilter{}, "a2 g f e d c b a"},
		{"a namespace's", model.SessionFilter{Namespace: of}, "a2 f d c b a"},
		{"a team's", model.SessionFilter{Namespace: of, Team: core.Name}, "a2 f c b a"},
		{"those of a team's name everywhere", model.SessionFilter{Team: core.Name}, "a2 g f e c b a"},
		{"a person's", model.SessionFilter{Namespace: of, Team: core.Name, Person: "ada"}, "a2 f"},
		{"those of a handle in a namespace", model.SessionFilter{Namespace: of, Person: "ada"}, "a2 f d"},
		{"those of a handle everywhere", model.SessionFilter{Person: "ada"}, "a2 g f e d"},
		{"those whose person changed", model.SessionFilter{Namespace: of, Person: "eve"}, "a"},
		{"nobody's", model.SessionFilter{Namespace: of, Person: "zoe"}, ""},
		{"an item's, by id", model.SessionFilter{Namespace: of, Item: "a"}, "a2 a"},
		{"an item's, by name", model.SessionFilter{Namespace: of, Item: "named"}, "f"},
		{"an item's, by name everywhere", model.SessionFilter{Item: "named"}, "g f"},
		{"an item's, by name and id", model.SessionFilter{Item: "f"}, "f"},
		{"an item's in another namespace", model.SessionFilter{Namespace: "elsewhere", Item: "a"}, ""},
		{"an item's that are open", model.SessionFilter{Item: "a", Open: true}, "a2"},
		{"an item's that are closed", model.SessionFilter{Item: "a", Closed: true}, "a"},
		{"open ones", model.SessionFilter{Open: true}, "a2 f e d b"},
		{"a namespace's open ones", model.SessionFilter{Namespace: of, Open: true}, "a2 f d b"},
		{"closed ones", model.SessionFilter{Closed: true}, "g c a"},
		{"a team's closed ones", model.SessionFilter{Namespace: of, Team: core.Name, Closed: true}, "c a"},
		{"open and closed ones", model.SessionFilter{Open: true, Closed: true}, ""},
		{"those in a state", model.SessionFilter{Namespace: of, State: "queued"}, "a2 f d"},
		{"a team's in a state", model.SessionFilter{Namespace: of, Team: core.Name, State: "canceled"}, "a"},
		{"a person's in a state", model.SessionFilter{Namespace: of, Person: "bob", State: "active"}, "b"},
		{"those since a time", model.SessionFilter{Since: after(5)}, "a2 g f e"},
		{"those until a time", model.SessionFilter{Until: after(5)}, "d c b a"},
		{"a namespace's between times", model.SessionFilter{Namespace: of, Since: after(2), Until: after(6)}, "f d c b"},
		{"an item's since a time", model.SessionFilter{Item: "a", Since: after(2)}, "a2"},
		{"those after a cursor", model.SessionFilter{BeforeAt: after(5), BeforeID: all[5].ID}, "e d c b a"},
		{"those after a cursor, until an earlier time", model.SessionFilter{BeforeAt: after(5), BeforeID: all[5].ID, Until: after(3)}, "b a"},
		{"those after a cursor, until a later time", model.SessionFilter{BeforeAt: after(4), BeforeID: all[3].ID, Until: after(7)}, "c b a"},
	} {
		got := []string{}
		for _, id := range sessionIDs(t, s, test.filter, 0) {
			got = append(got, ids[id])
		}
		same(t, test.name, got, strings.Fields(test.want))
	}
}

func testSessionCursor(t *testing.T, s *suite) {
	var all []model.Session
	for n := range 40 {
		id := fmt.Sprintf("item-%02d", n)
		s.put(t, item(id))
		all = append(all, session(id, n/7, func(s *model.Session) { // some made at one moment
			if n%3 == 0 {
				s.ClosedAt = after(900)
			}
		}))
	}
	each(t, s, store.Tx.PutSession, all...)
	whole := sessionIDs(t, s, model.SessionFilter{}, 0)
	want := slices.Clone(all)
	slices.SortFunc(want, func(a, b model.Session) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.ID, a.ID))
	})
	for n, id := range whole {
		same(t, fmt.Sprint("the session at ", n), id, want[n].ID)
	}
	for _, f := range []model.SessionFilter{
		{}, {Namespace: core.Namespace}, {Namespace: core.Namespace, Team: core.Name}, {Namespace: core.Namespace, Person: "ada"},
	} {
		for _, limit := range []int{1, 3, 40} {
			var got []string
			for range len(all) + 1 {
				page := read(t, s, func(r store.Reader) ([]model.Session, error) { return r.Sessions(f, limit) })
				if len(page) == 0 {
					break
				}
				for _, one := range page {
					got = append(got, one.ID)
				}
				last := page[len(page)-1]
				f.BeforeAt, f.BeforeID = last.CreatedAt, last.ID
			}
			f.BeforeAt, f.BeforeID = time.Time{}, ""
			same(t, fmt.Sprintf("the sessions of %+v by pages of %d", f, limit), got, whole)
		}
	}
}

func testMessages(t *testing.T, s *suite) {
	s.put(t, item("fix"), item("more"))
	fix, more := session("fix", 1), session("more", 2)
	each(t, s, store.Tx.PutSession, fix, more)
	whole := full[model.Message]()
	whole.SessionID, whole.ID = fix.ID, "m2"
	said := func(session, id, body string) model.Message {
		return model.Message{SessionID: session, ID: id, Body: body, CreatedAt: epoch}
	}
	each(t, s, store.Tx.PutMessage, said(fix.ID, "m1", "first"), said(fix.ID, "m2", "second"), said(more.ID, "m2", "of another"), whole)
	get := func(session string, ids ...string) []model.Message {
		return read(t, s, func(r store.Reader) ([]model.Message, error) { return r.Messages(session, ids) })
	}
	same(t, "messages", get(fix.ID, "m2", "none", "m1"), []model.Message{whole, said(fix.ID, "m1", "first")})
	same(t, "those of another session", get(more.ID, "m1", "m2"), []model.Message{said(more.ID, "m2", "of another")})
	same(t, "none", get(fix.ID), []model.Message{})
}

func testFrozen(t *testing.T, s *suite) {
	get := func(hash string) func(store.Reader) ([]byte, error) {
		return func(r store.Reader) ([]byte, error) { return r.Frozen(hash) }
	}
	missing(t, s, "what was not put", get("h1"))
	put := func(hash string, body []byte) {
		s.update(t, func(tx store.Tx) error { return tx.PutFrozen(hash, body) })
	}
	put("h1", []byte("{\"a\":1}\x00\xff"))
	put("h1", []byte("another"))
	put("h2", nil)
	same(t, "what was put first", string(read(t, s, get("h1"))), "{\"a\":1}\x00\xff")
	same(t, "nothing at all", len(read(t, s, get("h2"))), 0)
}

func testEmitted(t *testing.T, s *suite) {
	var all []model.Emitted
	emit := func(session string) {
		t.Helper()
		e := model.Emitted{
			Key: fmt.Sprint("key of ", len(all)), Ref: feed.SessionRef{ID: session, Namespace: core.Namespace, Team: core.Name},
			Record: full[feed.Record](),
		}
		e.Record.FeedSeq = 0
		// As it was written, whatever it means.
		e.Record.Payload = json.RawMessage(fmt.Sprintf(`{"z":1,"a":[12345678901234567890.50,"<\u003c&\/é"],"n":%d,"a":null}`, len(all)))
		s.update(t, func(tx store.Tx) error { return tx.Emit(&e) })
		if len(all) > 0 && e.N <= all[len(all)-1].N || e.N <= 0 {
			t.Errorf("a record has the number %d after %v", e.N, all)
		}
		all = append(all, e)
	}
	list := func(after int64, limit int) []model.Emitted {
		return read(t, s, func(r store.Reader) ([]model.Emitted, error) { return r.Emitted(after, limit) })
	}
	drop := func(upTo int64) { s.update(t, func(tx store.Tx) error { return tx.DropEmitted(upTo) }) }
	for n := range 4 {
		emit(fmt.Sprint("session-", n%2))
	}
	same(t, "all", list(0, 0), all)
	same(t, "the first two", list(0, 2), all[:2])
	same(t, "those after the second", list(all[1].N, 10), all[2:])
	drop(all[1].N)
	same(t, "those that were not dropped", list(0, 0), all[2:])
	drop(all[3].N)
	same(t, "none", list(0, 0), []model.Emitted{})
	s.reopen(t)
	emit("session-0")
	same(t, "one after all were dropped", list(all[3].N, 0), all[4:])
}
