package sqlite

// This file opens a store that a release of schema 1 wrote.

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// olderStore makes a store of schema 1 with something in every table.
func olderStore(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "office.db")
	if err := (file{storeKind, path}).make(); err != nil {
		t.Fatal(err)
	}
	steps, err := migrations(migrationFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile("testdata/schema1.sql")
	if err != nil {
		t.Fatal(err)
	}
	c, err := connect(path, "journal_mode = WAL")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{steps[0], string(rows)} {
		if err := c.db.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAStoreOfSchema1HasEverythingThatANewOneHas(t *testing.T) {
	s := openIndexed(t, olderStore(t), Options{})
	same(t, "the store's id", s.ID(), "8f81724d-9b38-4d89-9720-1961900def0c")
	core := model.TeamKey{Namespace: "office", Name: "core"}
	ada := model.PersonKey{Team: core, Handle: "ada"}
	err := s.View(t.Context(), func(r store.Reader) error {
		items, err := r.ItemsOf(ada, true, 0)
		if err != nil {
			return err
		}
		names := []string{}
		for _, i := range items {
			names = append(names, i.Name)
		}
		same(t, "ada's queue", names, []string{"front", "first", "untimed", "second", "third"})
		usage, err := r.PersonUsage(ada)
		if err != nil {
			return err
		}
		same(t, "ada's usage", usage, model.Usage{
			InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheCreationTokens: 4, CostMicroUSD: 5, CostKnown: true,
		})
		shares, runs, err := r.TicketUsage(core, "ACME-7")
		if err != nil {
			return err
		}
		same(t, "the ticket's usage", shares, []model.TicketShare{{Person: "ada", Model: "m", Kind: "task", Usage: usage, Runs: 1}})
		same(t, "the ticket's rounds", runs, []model.TicketRuns{{Person: "ada", Kind: "task", Runs: 1}})
		about, err := r.ItemsAbout(core, model.Place{Type: model.RefTicket, Ref: "ACME-7"})
		if err != nil {
			return err
		}
		same(t, "the items about it", about, []string{"uid-third"})
		for query, want := range map[string][]string{
			"title":       {"front", "first", "third", "second", "done"},
			"body second": {"second"},
			"line":        {"journal line 2", "journal line 1", "journal line 0"},
			"summary":     {"All is well in the summary."},
		} {
			moments, _, err := r.Recall(model.Recall{Person: ada, Query: query})
			if err != nil {
				return err
			}
			got := []string{}
			for _, m := range moments {
				got = append(got, m.Excerpt)
			}
			for n, name := range want {
				if query == "title" || query == "body second" {
					want[n] = "Title of " + name + " The body of " + name + "."
				}
			}
			same(t, "what is found of "+query, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	moments, err := s.indexer.main.integer("SELECT count(*) FROM moments")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "moments: seven items, three lines and the one outcome that says something", moments, int64(11))
}

// TestMigratedRanksAreThoseOfItems holds the SQL of the migration to the arithmetic of the model.
func TestMigratedRanksAreThoseOfItems(t *testing.T) {
	s := open(t, olderStore(t), Options{})
	c := <-s.readers
	defer func() { s.readers <- c }()
	seen := 0
	if err := c.query("SELECT doc, priority, rank, moment FROM items", func(row *sqlite3.Stmt) {
		i, err := document[model.Item](row)
		if err != nil {
			t.Error(err)
		}
		seen++
		same(t, "the rank of "+i.Name, model.Rank{Priority: int32(row.ColumnInt64(1)), Key: row.ColumnText(2)}, i.Rank())
		if at := nanos(i.CreatedAt) / 1000; row.ColumnInt64(3) < at || row.ColumnInt64(3) > at+10 {
			t.Errorf("the moment of %s is %d, want one from %d on", i.Name, row.ColumnInt64(3), at)
		}
	}); err != nil {
		t.Fatal(err)
	}
	same(t, "items", seen, 7)
}
