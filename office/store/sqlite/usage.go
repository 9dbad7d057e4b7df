package sqlite

// This file reads from the ledger what budgets and prices ask for: what a round uses, and what has no price yet.

import (
	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
)

var (
	sumRecent = stmt("add recent rounds up", `SELECT count(DISTINCT item || '/' || round), count(DISTINCT iif(cost_known, item || '/' || round, NULL)),
			sum(input + output + cache_read + cache_creation), sum(cost)
		FROM (SELECT * FROM ledger WHERE namespace = ? AND team = ? ORDER BY n DESC LIMIT 100)`)
	// Entries that take unpriced tokens back, because their cost was told later, have none of their own.
	listUnpriced = stmt("list usage without a price", `SELECT sum(iif(unpriced > 0, input, 0)), sum(iif(unpriced > 0, output, 0)),
			sum(iif(unpriced > 0, cache_read, 0)), sum(iif(unpriced > 0, cache_creation, 0)), 0, 0, sum(unpriced),
			item, max(round), person, kind, session, model
		FROM ledger WHERE namespace = ? AND team = ? AND unpriced <> 0
		GROUP BY item, session, model HAVING sum(unpriced) > 0`)
)

func (r *reader) RecentRounds(team model.TeamKey) (model.Rounds, error) {
	return one(r, sumRecent, func(row *sqlite3.Stmt) (model.Rounds, error) {
		return model.Rounds{
			Rounds: row.ColumnInt64(0), Priced: row.ColumnInt64(1), Tokens: row.ColumnInt64(2), CostMicroUSD: row.ColumnInt64(3),
		}, nil
	}, team.Namespace, team.Name)
}

func (r *reader) Unpriced(team model.TeamKey) ([]model.LedgerEntry, error) {
	return list(r, listUnpriced, func(row *sqlite3.Stmt) (model.LedgerEntry, error) {
		u, err := usage(row)
		return model.LedgerEntry{
			ItemID: row.ColumnText(7), Round: row.ColumnInt(8), Team: team, Person: row.ColumnText(9), Kind: row.ColumnText(10),
			Session: row.ColumnText(11), Model: row.ColumnText(12), Usage: u,
		}, err
	}, team.Namespace, team.Name)
}
