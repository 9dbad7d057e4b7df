// Package storetest is the one test suite of store.Store. Every backend passes it.
package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// Open opens the store that lives under the name of place, which is an empty folder at first. The same place is the same
// store again, once it was closed. It fails the test if it cannot.
type Open func(t *testing.T, place string) store.Store

// Run holds a backend to the interface.
func Run(t *testing.T, open Open) {
	run(t, open, []sentence{
		{"a store keeps its id and another store has another one", testIdentity},
		{"what was committed is there after closing and opening again", testReopen},
		{"a closed store runs nothing", testClosed},

		{"an update that fails leaves nothing, not even a revision", testFailedUpdate},
		{"an update that panics leaves nothing and panics at its caller", testPanic},
		{"an update whose context is over does not run", testCanceledUpdate},
		{"a context that ends while the update runs does not hide its outcome", testContextEndsLate},
		{"a transaction that was kept is of no use", testKept},
		{"an update sees what it wrote, and a view only what is committed", testIsolation},
		{"a view sees one moment, whatever is committed beside it", testSnapshot},
		{"updates side by side lose nothing, and the failed ones among them take nobody along", testConcurrent},

		{"a team comes back whole", testTeams},
		{"a person comes back whole", testPeople},
		{"of two people with one handle the older one has it", testTwoPeopleOneHandle},
		{"a doctor's report goes with its person", testDoctor},
		{"usage windows are the subscription's last", testWindows},

		{"an item comes back whole, with a new revision at each change", testItemComesBack},
		{"a name finds the live item, or the last one that was gone", testItemNames},
		{"a person has one round at a time", testCurrent},
		{"candidates are what can be offered now, in the order in which they run", testCandidates},
		{"candidates with a limit are the first ones", testCandidateLimit},
		{"what a team's budget holds comes in the order in which it runs", testNextHeld},
		{"a person's items are those it has or is asked for", testItemsOf},
		{"items are counted and listed by state", testCounts},
		{"dependents are unfinished and live", testDependents},
		{"a tombstone remembers what a TTL removed", testTombstones},
		{"an item that began in the office has no object until it is told", testUnborn},
		{"an item that was put somewhere stands there", testRank},

		{"rounds come in order, and an item has one open one", testRounds},
		{"a journal comes in the order in which it was written", testJournal},
		{"the ledger adds up by model, person and team", testLedger},
		{"a session's totals are the last that were told", testSessionTotals},
		{"what recent rounds used adds up by round, of one team", testRecentRounds},
		{"usage without a price is listed until its cost is known", testUnpriced},
		{"a message is new once per item", testFirstTime},
		{"what belongs to an unknown item is refused", testUnknownItem},

		{"feedback has numbers that grow, and a key counts once per item", testFeedback},
		{"an item has one ref to a place, the first that was put", testRefs},
		{"items about a place have a ref to it or it is their subject", testItemsAbout},
		{"a chat thread finds the items that its hearer has there", testThreads},
		{"an event is new once per team and source", testEvents},
		{"acts are open until they are answered", testActs},
		{"reports are open until they are posted", testReports},
		{"a ticket's usage is that of all items about it, by person, model and kind", testTicketUsage},

		{"tickets are found by assignee and parent", testTickets},
		{"pull requests come open ones first and can be filtered", testPulls},
		{"documents are found by their ticket", testDocs},
		{"the latest remarks at a place come in their order", testRemarks},
		{"the remarks of a thread are resolved together", testResolveThread},

		{"a session comes back whole, and an item's is the latest", testSession},
		{"sessions are listed from the latest made one on, as a filter chooses", testSessionFilters},
		{"a list of sessions goes on after any of them", testSessionCursor},
		{"messages come in the order in which they are asked for", testMessages},
		{"what sessions were started with is kept once", testFrozen},
		{"the office's records wait in order, with numbers that grow", testEmitted},
	})
	RunRecall(t, open)
}

// sentence is something that a store promises, and its test.
type sentence struct {
	name string
	test func(t *testing.T, s *suite)
}

func run(t *testing.T, open Open, sentences []sentence) {
	for _, s := range sentences {
		t.Run(s.name, func(t *testing.T) { s.test(t, newSuite(t, open)) })
	}
}

// suite is a fresh store, and where it lives.
type suite struct {
	store.Store
	open  Open
	place string
}

func newSuite(t *testing.T, open Open) *suite {
	t.Helper()
	s := &suite{open: open, place: t.TempDir()}
	s.Store = open(t, s.place)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reopen closes the store and opens it again.
func (s *suite) reopen(t *testing.T) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Store = s.open(t, s.place)
}

// update runs fn in an Update that has to succeed.
func (s *suite) update(t *testing.T, fn func(tx store.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// put stores items in one Update, and sets their revisions.
func (s *suite) put(t *testing.T, items ...*model.Item) {
	t.Helper()
	s.update(t, func(tx store.Tx) error {
		for _, i := range items {
			if err := tx.PutItem(i); err != nil {
				return err
			}
		}
		return nil
	})
}

// refuse checks that an Update fails, and not for want of what it refers to.
func (s *suite) refuse(t *testing.T, why string, fn func(tx store.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("%s: the update gave %v, want it refused", why, err)
	}
}

// read gives what get reads in a View that has to succeed.
func read[T any](t *testing.T, s store.Store, get func(r store.Reader) (T, error)) (v T) {
	t.Helper()
	err := s.View(context.Background(), func(r store.Reader) (err error) {
		v, err = get(r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// missing checks that get finds nothing.
func missing[T any](t *testing.T, s store.Store, what string, get func(r store.Reader) (T, error)) {
	t.Helper()
	err := s.View(context.Background(), func(r store.Reader) error {
		_, err := get(r)
		return err
	})
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%s: got the error %v, want ErrNotFound", what, err)
	}
}

// same compares, taking no slice for an empty one: both are "none".
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) { // which is quick for many bytes
		return
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// The cast of the tests.
var (
	core  = model.TeamKey{Namespace: "office", Name: "core"}
	other = model.TeamKey{Namespace: "office", Name: "other"}
	ada   = model.PersonKey{Team: core, Handle: "ada"}
	bob   = model.PersonKey{Team: core, Handle: "bob"}
	epoch = time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)
)

// after is a time n seconds after the epoch of the tests.
func after(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// item is a queued item of ada, changed by the changes; its id is its name.
func item(name string, changes ...func(*model.Item)) *model.Item {
	i := &model.Item{
		ID: name, Namespace: core.Namespace, Name: name, CreatedAt: epoch, State: protocol.StateQueued,
		Spec: model.ItemSpec{Team: core.Name, Person: "ada", Title: name},
	}
	for _, change := range changes {
		change(i)
	}
	return i
}

func inState(s protocol.WorkItemState) func(*model.Item) { return func(i *model.Item) { i.State = s } }

func gone(i *model.Item) { i.Gone = true }

// ofRole makes an item one for anyone of the role.
func ofRole(role string) func(*model.Item) {
	return func(i *model.Item) { i.Spec.Person, i.Spec.Role = "", role }
}

func names(items []model.Item) []string {
	all := []string{}
	for _, i := range items {
		all = append(all, i.Name)
	}
	return all
}
