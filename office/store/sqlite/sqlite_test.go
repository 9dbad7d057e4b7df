package sqlite

// This file holds the store to the suite of its interface, and its statements to their indexes.

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, place string) store.Store {
		t.Helper()
		return open(t, filepath.Join(place, "office.db"), Options{})
	})
}

// TestRecall runs searches where the index has everything, and where it has nothing yet.
func TestRecall(t *testing.T) {
	t.Run("indexed", func(t *testing.T) {
		storetest.RunRecall(t, func(t *testing.T, place string) store.Store {
			t.Helper()
			return openIndexed(t, filepath.Join(place, "office.db"), Options{Readers: 1})
		})
	})
	t.Run("not indexed", func(t *testing.T) {
		storetest.RunRecall(t, func(t *testing.T, place string) store.Store {
			t.Helper()
			return open(t, filepath.Join(place, "office.db"), Options{Readers: 1, indexAfter: time.Hour})
		})
	})
}

// indexed is a store whose views begin when all that they see is in the index.
type indexed struct {
	*Store
	lock sync.Mutex
	// more is signaled when the index has all up to the note seq.
	more *sync.Cond
	seq  int64
}

func openIndexed(t *testing.T, path string, o Options) *indexed {
	t.Helper()
	s := &indexed{}
	s.more = sync.NewCond(&s.lock)
	o.indexAfter = time.Nanosecond
	o.onIndex = func(seq int64, _ error) {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.seq = seq
		s.more.Broadcast()
	}
	s.Store = open(t, path, o)
	return s
}

func (s *indexed) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error {
		last := int64(0)
		err := r.(*reader).run(boundChanges, func(row *sqlite3.Stmt) error { last = row.ColumnInt64(1); return nil })
		if err != nil {
			return err
		}
		s.lock.Lock()
		for s.seq < last {
			s.more.Wait()
		}
		s.lock.Unlock()
		return fn(r)
	})
}

// open opens a store that has to open, and closes it after the test.
func open(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fresh opens a new store.
func fresh(t *testing.T, o Options) *Store {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "office.db"), o)
}

// putItem is an Update that stores a small item.
func putItem(s *Store, id string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.PutItem(&model.Item{ID: id, Namespace: "office", Name: id}) }
}

func hasItem(t *testing.T, s *Store, id string) bool {
	t.Helper()
	found := false
	err := s.View(t.Context(), func(r store.Reader) error {
		items, err := r.LiveItems()
		for _, i := range items {
			found = found || i == id
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPlans asks SQLite how it would answer every statement: none may walk through a table or sort what it found, but those
// that are meant to.
func TestPlans(t *testing.T) {
	may := map[*statement]string{
		listTeams:  "SCAN",        // every team
		listAll:    "SCAN|B-TREE", // everybody
		listLive:   "SCAN",        // every live item, once at start
		clearProbe: "SCAN",        // an empty table
		listOwn:    "B-TREE",      // done and open ones of a person, when a human asks
		sumModels:  "B-TREE",      // the few models of one item
		// Ids of four states, in the order of ids.
		listUnfinished:   "B-TREE",
		listUnborn:       "SCAN",        // an index of these few alone
		sumTicket:        "B-TREE",      // the rounds for one ticket, by person, model and kind
		countTicket:      "B-TREE",      // as above
		sumRecent:        "SCAN|B-TREE", // the latest hundred of a team
		listAbout:        "B-TREE",      // the items about one place, by age
		listTickets:      "SCAN|B-TREE", // the names that are asked for, and the open tickets of these, by key
		listOwners:       "B-TREE",      // the few people whom a place concerns
		listOwnAbout:     "B-TREE",      // as listAbout
		listItemSessions: "B-TREE",      // the few sessions of one item
		noteAll:          "SCAN",        // all there is, when the index is made anew
		boundChanges:     "SCAN",        // min and max of a key
		lastHeads:        "SCAN",        // the last hundred, from the end
		readLog[0]:       "SCAN",        // all of it, when a feed is opened
		readLog[1]:       "SCAN",
		clearLog[0]:      "SCAN", // all of it, at once
		clearLog[1]:      "SCAN",
	}
	s := fresh(t, Options{})
	main := <-s.readers
	defer func() { s.readers <- main }()
	past, err := main.openPast()
	if err != nil {
		t.Fatal(err)
	}
	f := freshFeed(t, FeedOptions{})
	records := <-f.readers
	defer f.give(records)
	for _, st := range statements {
		c := map[where]*conn{inStore: main, inIndex: past, inFeed: records}[st.in]
		t.Run(fmt.Sprintf("%02d %s", st.slot, st.name), func(t *testing.T) {
			err := c.query("EXPLAIN QUERY PLAN "+st.sql, func(row *sqlite3.Stmt) {
				step := row.ColumnText(3)
				for _, bad := range []string{"SCAN", "B-TREE"} {
					if strings.Contains(step, bad) && !strings.Contains(may[st], bad) &&
						!strings.Contains(step, "CONSTANT ROW") && !strings.Contains(step, "SCAN past VIRTUAL TABLE") {
						t.Errorf("%s\nis answered by %s", st.sql, step)
					}
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
