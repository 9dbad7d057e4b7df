package sqlite

// This file tests the file of the index: when it is kept, when it is made anew, and that it harms nobody.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// tell puts an item of somebody's into the store, whose title is a word and a number.
func tell(t *testing.T, s store.Store, n int) {
	t.Helper()
	item := model.Item{
		ID: fmt.Sprint("item-", n), Namespace: somebody.Team.Namespace, Name: fmt.Sprint("item-", n), CreatedAt: time.Unix(int64(n), 0),
		Spec: model.ItemSpec{Team: somebody.Team.Name, Person: somebody.Handle, Title: fmt.Sprint("word ", n)},
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutItem(&item) }); err != nil {
		t.Fatal(err)
	}
}

// found searches for the word, and gives the numbers, the latest first.
func found(t *testing.T, s store.Store) string {
	t.Helper()
	var all []string
	err := s.View(t.Context(), func(r store.Reader) error {
		moments, _, err := r.Recall(model.Recall{Person: somebody, Query: "word"})
		for _, m := range moments {
			all = append(all, strings.TrimPrefix(m.Excerpt, "word "))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// change runs SQL in the index of a store that is closed.
func change(t *testing.T, path, sql string) {
	t.Helper()
	if err := alter(path, sql); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheIndexIsKeptOrMadeAnew(t *testing.T) {
	latest, older := filepath.Join(t.TempDir(), "office.db"), filepath.Join(t.TempDir(), "office.db")
	for _, n := range []int{1, 3} {
		s := openIndexed(t, latest, Options{Readers: 1})
		tell(t, s, n)
		tell(t, s, n+1)
		found(t, s) // waits for the index
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			copyFile(t, latest, older)
			copyFile(t, pathOfPast(latest), pathOfPast(older))
		}
	}
	for _, test := range []struct {
		name string
		// between happens to the closed store.
		between func(t *testing.T, path string)
		kept    bool
		want    string
	}{
		{"nothing happened", func(*testing.T, string) {}, true, "4 3 2 1"},
		{"it is missing", func(t *testing.T, path string) {
			if err := os.Remove(pathOfPast(path)); err != nil {
				t.Fatal(err)
			}
		}, false, "4 3 2 1"},
		{"it is no database", func(t *testing.T, path string) {
			if err := os.WriteFile(pathOfPast(path), []byte(strings.Repeat("junk ", 5000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, false, "4 3 2 1"},
		{"it is empty", func(t *testing.T, path string) {
			if err := os.Truncate(pathOfPast(path), 0); err != nil {
				t.Fatal(err)
			}
		}, false, "4 3 2 1"},
		{"it is of another release", func(t *testing.T, path string) { change(t, path, "PRAGMA user_version = 99") }, false, "4 3 2 1"},
		{"it is another store's", func(t *testing.T, path string) { change(t, path, "UPDATE state SET store = 'other'") }, false, "4 3 2 1"},
		{"it lacks its state", func(t *testing.T, path string) { change(t, path, "DELETE FROM state") }, false, "4 3 2 1"},
		{"it is older, and the store has all notes since", func(t *testing.T, path string) {
			copyFile(t, pathOfPast(older), pathOfPast(path))
		}, true, "4 3 2 1"},
		{"it is older, and the store has dropped notes since", func(t *testing.T, path string) {
			copyFile(t, pathOfPast(older), pathOfPast(path))
			c, err := connect(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.run(trimChanges, nil, int64(4)); err != nil {
				t.Fatal(err)
			}
			if err := c.close(); err != nil {
				t.Fatal(err)
			}
		}, false, "4 3 2 1"},
		{"the store is an older one", func(t *testing.T, path string) { copyFile(t, older, path) }, false, "2 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "office.db")
			copyFile(t, latest, path)
			copyFile(t, pathOfPast(latest), pathOfPast(path))
			test.between(t, path)
			_ = alter(path, "CREATE TABLE seen_before (n INTEGER)") // what is no database is not kept in any case
			s := openIndexed(t, path, Options{Readers: 1})
			if got := found(t, s); got != test.want {
				t.Errorf("a search finds %s, want %s", got, test.want)
			}
			tell(t, s, 9)
			if got := found(t, s); got != "9 "+test.want {
				t.Errorf("with one more a search finds %s, want 9 %s", got, test.want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if kept := alter(path, "DROP TABLE seen_before") == nil; kept != test.kept {
				t.Errorf("the index was kept: %t, want %t", kept, test.kept)
			}
		})
	}
}

// alter runs SQL in the index of a store that is closed, if that is a database.
func alter(path, sql string) error {
	c, err := connectIndex(pathOfPast(path))
	if err == nil {
		err = errors.Join(c.db.Exec(sql), c.close())
	}
	return err
}

func TestNotesAreTrimmedOnceTheIndexHasThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db")
	s := openIndexed(t, path, Options{})
	tell(t, s, 1)
	lines := func(n int, text string) {
		t.Helper()
		if err := s.Update(t.Context(), func(tx store.Tx) error {
			for range n {
				if err := tx.AppendJournal(model.JournalEntry{ItemID: "item-1", At: time.Unix(5, 0), Text: text}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		found(t, s)
	}
	lines(trimAfter, "line")
	lines(1, "word 2") // the notes before this one are gone by now, or go with it
	if got := found(t, s); got != "2 1" {
		t.Errorf("a search finds %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	notes, err := c.integer("SELECT count(*) FROM changes")
	if err != nil {
		t.Fatal(err)
	}
	if notes < 1 || notes > 2 {
		t.Errorf("%d notes are left", notes)
	}
	if got := found(t, openIndexed(t, path, Options{})); got != "2 1" {
		t.Errorf("after opening again a search finds %s", got)
	}
}

// TestAnIndexThatCannotGrowHarmsNobody fills the index's file to its limit.
func TestAnIndexThatCannotGrowHarmsNobody(t *testing.T) {
	opened, limited, failed := make(chan *Store, 1), make(chan struct{}), make(chan error, 1)
	begun := false
	s := fresh(t, Options{indexAfter: time.Nanosecond, retryEvery: time.Millisecond, onIndex: func(_ int64, err error) {
		if !begun {
			begun = true
			defer close(limited)
			// SQLite takes the present size for the limit
			if err := (<-opened).indexer.past.query("PRAGMA max_page_count = 1", func(*sqlite3.Stmt) {}); err != nil {
				t.Error(err)
			}
		}
		if err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	}})
	opened <- s
	<-limited
	for n := range 20 {
		tell(t, s, n)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		return tx.AppendJournal(model.JournalEntry{ItemID: "item-1", At: time.Unix(99, 0), Text: "word " + strings.Repeat("of many ", 20_000)})
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, sqlite3.FULL) {
		t.Errorf("the indexer failed with %v", err)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("the store says of itself %v", err)
	}
	if got := found(t, s); !strings.HasPrefix(got, "of many") || !strings.HasSuffix(got, " 3 2 1 0") {
		t.Errorf("a search finds %s", got)
	}
	if err := s.explainIndex(); !strings.Contains(err.Error(), "make room") || !strings.Contains(err.Error(), pathOfPast(s.path)) {
		t.Errorf("the store says of its index %v", err)
	}
}

func TestASearchIsRefusedWhileTheIndexIsFarBehind(t *testing.T) {
	s := fresh(t, Options{indexAfter: time.Hour})
	tell(t, s, 1)
	search := func() error {
		return s.View(context.Background(), func(r store.Reader) error {
			_, _, err := r.Recall(model.Recall{Person: somebody, Query: "word"})
			return err
		})
	}
	if err := s.Update(t.Context(), func(update store.Tx) error {
		return update.(*tx).c.db.Exec(fmt.Sprintf(
			"INSERT INTO changes (n) WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < %d) SELECT n FROM many",
			maxFresh))
	}); err != nil {
		t.Fatal(err)
	}
	if err := search(); err == nil || !strings.Contains(err.Error(), "try again in a minute") {
		t.Errorf("the search gave %v", err)
	}
}

// TestWhatChangedSinceItWasIndexedIsFoundOnceAsItIs has an index that stands still while the store goes on.
func TestWhatChangedSinceItWasIndexedIsFoundOnceAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db")
	first := openIndexed(t, path, Options{})
	for n := range 6 {
		tell(t, first, 10*n)
	}
	found(t, first) // waits for the index
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{}, 100)
	s := open(t, path, Options{indexAfter: time.Hour, onIndex: func(int64, error) { begun <- struct{}{} }})
	<-begun
	tell(t, s, 25)
	tell(t, s, 99)
	if err := s.Update(t.Context(), func(tx store.Tx) error {
		for id, change := range map[string]func(*model.Item){
			"item-10": func(i *model.Item) { i.Spec.Title += " once more" },
			"item-20": func(i *model.Item) { i.Spec.Title = "nothing" },
			"item-30": func(i *model.Item) { i.Assignee = "bob" },
			"item-40": func(i *model.Item) { i.CreatedAt = time.Unix(5, 0) },
		} {
			i, err := tx.Item(id)
			if err != nil {
				return err
			}
			change(&i)
			if err := tx.PutItem(&i); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := found(t, s), "99 50 25 10 once more 40 0"; got != want {
		t.Errorf("a search finds %s, want %s", got, want)
	}
}

func TestAMomentTakesTheNextFreeNumber(t *testing.T) {
	s := fresh(t, Options{})
	if err := s.Update(t.Context(), func(update store.Tx) error {
		x := update.(*tx)
		for _, taken := range []int64{7_000_000, 7_999_999, 8_000_000, 8_000_001, 20_000_000} {
			if err := x.write(writeMoment, nil, taken, fromItem, "none", nil); err != nil {
				return err
			}
		}
		for at, want := range map[time.Duration]int64{
			6_999_999: 6_999_999, 7_000_000: 8_000_002, 7_000_001: 7_000_001, 8_000_000: 8_000_002, 20_000_000: 20_000_001,
		} {
			got, err := x.freeMoment(time.Unix(0, 0).Add(at*time.Microsecond + 999))
			if got != want || err != nil {
				t.Errorf("what happens after %d µs gets the moment %d (%v), want %d", at, got, err, want)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
