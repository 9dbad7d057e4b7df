package sqlite

// This file tests that usage which an older release counted says what of its cost is unknown.

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

func TestUsageOfAnOlderReleaseIsUnknownWhereNoCostWasTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db")
	if err := (file{storeKind, path}).make(); err != nil {
		t.Fatal(err)
	}
	steps, err := migrations(migrationFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate(c, storeKind.application, steps[:1], 0, newStore); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`INSERT INTO items (id, namespace, name, team, who, queue, state, open, ready, place, priority, not_before, created_at, gone, hash, revision, doc)
			VALUES ('fix', 'ns', 'fix', 'core', 'ada', 'person/ada', 'done', 0, 0, 1, 100, 0, 1, 0, 'h', 1, '{"ID":"fix","Usage":{"InputTokens":30}}')`,
		`INSERT INTO ledger (item, round, namespace, team, person, kind, session, model, at, input, output, cache_read, cache_creation, cost, cost_known)
			VALUES ('fix', 1, 'ns', 'core', 'ada', 'task', 's', 'm', 1, 5, 3, 2, 0, 0, 0), ('fix', 1, 'ns', 'core', 'ada', 'task', 's', 'n', 1, 20, 0, 0, 0, 7, 1)`,
		`INSERT INTO usage_sums (namespace, team, person, input, output, cache_read, cache_creation, cost, cost_known) VALUES ('ns', 'core', 'ada', 25, 3, 2, 0, 7, 1)`,
		`INSERT INTO session_totals (item, session, model, input, output, cache_read, cache_creation, cost, cost_known)
			VALUES ('fix', 's', 'm', 5, 3, 2, 0, 0, 0), ('fix', 's', 'n', 20, 0, 0, 0, 7, 1)`,
	} {
		if err := c.db.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}

	var got [4]model.Usage
	err = open(t, path, Options{}).View(t.Context(), func(r store.Reader) (err error) {
		if got[0], err = r.SessionTotals("fix", "s", "m"); err != nil {
			return err
		}
		if got[1], err = r.SessionTotals("fix", "s", "n"); err != nil {
			return err
		}
		if got[2], err = r.TeamUsage(model.TeamKey{Namespace: "ns", Name: "core"}); err != nil {
			return err
		}
		it, err := r.Item("fix")
		got[3] = it.Usage
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := [4]model.Usage{
		{InputTokens: 5, OutputTokens: 3, CacheReadTokens: 2, UnpricedTokens: 10},
		{InputTokens: 20, CostMicroUSD: 7, CostKnown: true},
		{InputTokens: 25, OutputTokens: 3, CacheReadTokens: 2, CostMicroUSD: 7, CostKnown: true, UnpricedTokens: 10},
		{InputTokens: 30, UnpricedTokens: 10},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}
