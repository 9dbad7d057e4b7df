package sqlite

// This file holds the store to the suite of its interface, and its statements to their indexes.

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

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
		listUnfinished: "B-TREE",
	}
	s := fresh(t, Options{})
	for _, st := range statements {
		t.Run(fmt.Sprintf("%02d %s", st.slot, st.name), func(t *testing.T) {
			err := s.writer.query("EXPLAIN QUERY PLAN "+st.sql, func(row *sqlite3.Stmt) {
				step := row.ColumnText(3)
				for _, bad := range []string{"SCAN", "B-TREE"} {
					if strings.Contains(step, bad) && !strings.Contains(may[st], bad) && !strings.Contains(step, "CONSTANT ROW") {
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
