package sqlite

// This file answers store.Reader, inside a read transaction or a write one.

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// documents says how structs are written: without zero values, so that a document is short and comes back as it was.
var documents = json.JoinOptions(
	json.OmitZeroStructFields(true),
	jsonv1.FormatDurationAsNano(true),
	jsontext.AllowInvalidUTF8(true),
)

// errOver meets the one who keeps a Reader or a Tx beyond its function.
var errOver = errors.New("the transaction is over: a Reader or Tx is valid only inside the function it was given to")

// reader is a transaction in progress.
type reader struct {
	c *conn
	// over is set when the function returned.
	over bool
	// bad is the first error that was the disk's or the file's. SQLite may have ended the transaction with it, so nothing
	// runs after it.
	bad error
}

var _ store.Reader = (*reader)(nil)

// run executes a statement within the transaction.
func (r *reader) run(s *statement, row func(*sqlite3.Stmt) error, args ...any) error {
	if r.over {
		return errOver
	}
	if r.bad != nil {
		return r.bad
	}
	err := r.c.run(s, row, args...)
	if cannotWrite(err) {
		r.bad = err
	}
	return err
}

// list gives what get makes of each row; it is never nil.
func list[T any](r *reader, s *statement, get func(*sqlite3.Stmt) (T, error), args ...any) ([]T, error) {
	all := []T{}
	err := r.run(s, func(row *sqlite3.Stmt) error {
		v, err := get(row)
		all = append(all, v)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// one gives what get makes of the first row, and store.ErrNotFound if there is none.
func one[T any](r *reader, s *statement, get func(*sqlite3.Stmt) (T, error), args ...any) (T, error) {
	all, err := list(r, s, get, args...)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", s.name, store.ErrNotFound)
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// document reads the JSON document in a row's first column.
func document[T any](row *sqlite3.Stmt) (v T, err error) {
	err = json.Unmarshal(row.ColumnRawText(0), &v, documents)
	return v, err
}

func word(row *sqlite3.Stmt) (string, error) { return row.ColumnText(0), nil }

func number(row *sqlite3.Stmt) (int64, error) { return row.ColumnInt64(0), nil }

// usage reads the seven columns of an amount of usage; NULL, the sum of no rows, is zero.
func usage(row *sqlite3.Stmt) (model.Usage, error) {
	return model.Usage{
		InputTokens:         row.ColumnInt64(0),
		OutputTokens:        row.ColumnInt64(1),
		CacheReadTokens:     row.ColumnInt64(2),
		CacheCreationTokens: row.ColumnInt64(3),
		CostMicroUSD:        row.ColumnInt64(4),
		CostKnown:           row.ColumnBool(5),
		UnpricedTokens:      row.ColumnInt64(6),
	}, nil
}

// orZero turns "not found" into a zero value.
func orZero[T any](v T, err error) (T, error) {
	if errors.Is(err, store.ErrNotFound) {
		return v, nil
	}
	return v, err
}

// nanos is a time as a column holds it.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// fromNanos is the time that a column holds.
func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// bound is a limit as SQLite takes it, where none is negative.
func bound(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit
}

func (r *reader) Revision() (int64, error) { return one(r, readRevision, number) }

func (r *reader) Team(key model.TeamKey) (model.Team, error) {
	return one(r, readTeam, document[model.Team], key.Namespace, key.Name)
}

func (r *reader) Teams() ([]model.Team, error) { return list(r, listTeams, document[model.Team]) }

func (r *reader) Person(uid string) (model.Person, error) {
	return one(r, readPerson, document[model.Person], uid)
}

func (r *reader) PersonByKey(key model.PersonKey) (model.Person, error) {
	return one(r, findPerson, document[model.Person], key.Team.Namespace, key.Team.Name, key.Handle)
}

func (r *reader) People(team model.TeamKey) ([]model.Person, error) {
	return list(r, listPeople, document[model.Person], team.Namespace, team.Name)
}

func (r *reader) AllPeople() ([]model.Person, error) { return list(r, listAll, document[model.Person]) }

func (r *reader) Item(id string) (model.Item, error) {
	return one(r, readItem, document[model.Item], id)
}

func (r *reader) ItemByName(namespace, name string) (model.Item, error) {
	return one(r, findItem, document[model.Item], namespace, name)
}

func (r *reader) Current(key model.PersonKey) (model.Item, error) {
	return one(r, findHeld, document[model.Item], key.Team.Namespace, key.Team.Name, key.Handle)
}

func (r *reader) ItemByObject(uid string) (model.Item, error) {
	return one(r, findObject, document[model.Item], uid)
}

func (r *reader) LatestByName(namespace, name string) (model.Item, error) {
	return one(r, findLatest, document[model.Item], namespace, name)
}

func (r *reader) Candidates(
	key model.PersonKey, role string, now time.Time, limit int,
) (items []model.Item, next time.Time, err error) {
	var anyone any // NULL matches no queue
	if role != "" {
		anyone = queueOf("", role)
	}
	at := []any{key.Team.Namespace, key.Team.Name, queueOf(key.Handle, role), anyone, nanos(now)}
	soonest, err := one(r, nextCandidate, number, at...)
	if err != nil {
		return nil, time.Time{}, err
	}
	items, err = list(r, candidates, document[model.Item], append(at, bound(limit))...)
	return items, fromNanos(soonest), err
}

func (r *reader) NextHeld(team model.TeamKey, after *model.Item) (model.Item, error) {
	at := []any{-1, 0, "", ""} // before all
	if after != nil {
		rank := after.Rank()
		at = []any{place(after), int64(rank.Priority), rank.Key, after.ID}
	}
	return one(r, nextHeld, document[model.Item], append([]any{team.Namespace, team.Name}, at...)...)
}

func (r *reader) ItemsOf(key model.PersonKey, all bool, limit int) ([]model.Item, error) {
	s := listOpen
	if all {
		s = listOwn
	}
	return list(r, s, document[model.Item], key.Team.Namespace, key.Team.Name, key.Handle, bound(limit))
}

func (r *reader) Queued(key model.PersonKey) (int, error) {
	n, err := one(r, countQueued, number, key.Team.Namespace, key.Team.Name, key.Handle)
	return int(n), err
}

func (r *reader) Unfinished(team model.TeamKey) ([]string, error) {
	return list(r, listUnfinished, word, team.Namespace, team.Name)
}

func (r *reader) CountItems(team model.TeamKey) (map[protocol.WorkItemState]int, error) {
	counts := map[protocol.WorkItemState]int{}
	err := r.run(countStates, func(row *sqlite3.Stmt) error {
		counts[protocol.WorkItemState(row.ColumnText(0))] = row.ColumnInt(1)
		return nil
	}, team.Namespace, team.Name)
	return counts, err
}

func (r *reader) LiveItems() ([]string, error) { return list(r, listLive, word) }

func (r *reader) Dependents(namespace, name string) ([]string, error) {
	return list(r, listDependents, word, namespace, name)
}

func (r *reader) Tombstone(namespace, name, hash string) (string, error) {
	return one(r, findTombstone, word, namespace, name, hash)
}

func (r *reader) Rounds(itemID string) ([]model.Round, error) {
	return list(r, listRounds, document[model.Round], itemID)
}

func (r *reader) Journal(itemID string) ([]model.JournalEntry, error) {
	return list(r, listJournal, journalEntry, itemID)
}

func journalEntry(row *sqlite3.Stmt) (model.JournalEntry, error) {
	return model.JournalEntry{
		ItemID: row.ColumnText(0),
		At:     fromNanos(row.ColumnInt64(1)),
		Author: row.ColumnText(2),
		Text:   row.ColumnText(3),
	}, nil
}

func (r *reader) SessionTotals(itemID, session, modelID string) (model.Usage, error) {
	return orZero(one(r, readTotals, usage, itemID, session, modelID))
}

func (r *reader) ItemModels(itemID string) ([]model.ModelUsage, error) {
	return list(r, sumModels, func(row *sqlite3.Stmt) (model.ModelUsage, error) {
		u, err := usage(row)
		return model.ModelUsage{Model: row.ColumnText(7), Usage: u}, err
	}, itemID)
}

func (r *reader) PersonUsage(key model.PersonKey) (model.Usage, error) {
	return orZero(one(r, sumPerson, usage, key.Team.Namespace, key.Team.Name, key.Handle))
}

func (r *reader) TeamUsage(key model.TeamKey) (model.Usage, error) {
	return one(r, sumTeam, usage, key.Namespace, key.Name)
}

func (r *reader) RunningRounds(key model.PersonKey) (team, person int, err error) {
	err = r.run(countHeld, func(row *sqlite3.Stmt) error {
		team, person = row.ColumnInt(0), row.ColumnInt(1)
		return nil
	}, key.Team.Namespace, key.Team.Name, key.Handle)
	return team, person, err
}

func (r *reader) Busy(team model.TeamKey) ([]string, error) {
	return list(r, listHolders, word, team.Namespace, team.Name)
}

func (r *reader) Windows(team model.TeamKey, subscription string) (model.Windows, error) {
	return one(r, readWindows, document[model.Windows], team.Namespace, team.Name, subscription)
}

func (r *reader) Doctor(personUID string) (model.Doctor, error) {
	return one(r, readDoctor, document[model.Doctor], personUID)
}

func (r *reader) Seen(itemID string, key [32]byte) (bool, error) {
	found := false
	err := r.run(readSeen, func(*sqlite3.Stmt) error {
		found = true
		return nil
	}, itemID, key[:])
	return found, err
}
