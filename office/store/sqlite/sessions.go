package sqlite

// This file keeps sessions, their messages, and the records that the office writes itself.

import (
	"bytes"
	"errors"
	"math"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

var (
	readSession = stmt("read a session", `SELECT doc FROM sessions WHERE id = ?`)
	findSession = stmt("find an item's session", `SELECT doc FROM sessions WHERE item = ? ORDER BY number DESC LIMIT 1`)
	// Most changes of a session leave alone what it is listed by, and so the indexes.
	changeSession = stmt("write a session", `UPDATE sessions SET doc = ?10 WHERE id = ?1 AND item = ?2 AND namespace = ?3 AND team = ?4
		AND name = ?5 AND person = ?6 AND state = ?7 AND open = ?8 AND created_at = ?9`)
	writeSession = stmt("write a session", `INSERT INTO sessions
		(id, item, namespace, team, name, person, state, open, created_at, doc, number)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET item = excluded.item, namespace = excluded.namespace, team = excluded.team, name = excluded.name,
		person = excluded.person, state = excluded.state, open = excluded.open, created_at = excluded.created_at, doc = excluded.doc`)

	// The narrowest index that a filter allows.
	listSessions          = stmt("list sessions", sessionsThat(``))
	listNamespaceSessions = stmt("list sessions of a namespace", sessionsThat(`namespace = ?6 AND `))
	listTeamSessions      = stmt("list sessions of a team", sessionsThat(`namespace = ?6 AND team = ?7 AND `))
	listPersonSessions    = stmt("list sessions of a person", sessionsThat(`namespace = ?6 AND person = ?8 AND `))
	listStateSessions     = stmt("list sessions in a state", sessionsThat(`namespace = ?6 AND state = ?9 AND `))
	listItemSessions      = stmt("list sessions of an item", `SELECT doc FROM sessions
		WHERE rowid IN (SELECT rowid FROM sessions WHERE item = ?10 UNION ALL SELECT rowid FROM sessions WHERE name = ?10)
		AND iif(open, ?1, ?2) AND `+sessionsWithin+` ORDER BY created_at DESC, id DESC LIMIT ?11`)

	readMessage  = stmt("read a message", `SELECT doc FROM messages WHERE session = ? AND id = ?`)
	writeMessage = stmt("write a message", `INSERT INTO messages (session, id, doc) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET doc = excluded.doc`)

	readFrozen  = stmt("read what a session was started with", `SELECT body FROM frozen WHERE hash = ?`)
	writeFrozen = stmt("write what a session was started with", `INSERT INTO frozen (hash, body) VALUES (?, ?) ON CONFLICT DO NOTHING`)

	listEmitted = stmt("list the office's records", `SELECT n, key, session, namespace, team, record FROM emitted
		WHERE n > ? ORDER BY n LIMIT ?`)
	emitRecord  = stmt("write a record", `INSERT INTO emitted (key, session, namespace, team, record) VALUES (?, ?, ?, ?, ?)`)
	dropEmitted = stmt("drop the office's records", `DELETE FROM emitted WHERE n <= ?`)
)

// sessionsWithin are the sessions before a cursor, not older than a time, of an optional state, namespace, team and person.
const sessionsWithin = `(created_at, id) < (?3, ?4) AND created_at >= ?5 AND (?9 = '' OR state = ?9)
	AND (?6 = '' OR namespace = ?6) AND (?7 = '' OR team = ?7) AND (?8 = '' OR person = ?8)`

// sessionsThat lists sessions in the order of an index that begins with the columns of the condition: open ones and closed ones, as two
// lists in order that become one.
func sessionsThat(condition string) string {
	list := `SELECT doc, created_at, id FROM sessions WHERE ` + condition
	return list + `open = 1 AND ?1 AND ` + sessionsWithin + ` UNION ALL ` + list + `open = 0 AND ?2 AND ` + sessionsWithin +
		` ORDER BY created_at DESC, id DESC LIMIT ?11`
}

func (r *reader) Session(id string) (model.Session, error) {
	return one(r, readSession, document[model.Session], id)
}

func (r *reader) SessionOf(itemID string) (model.Session, error) {
	return one(r, findSession, document[model.Session], itemID)
}

func (r *reader) Sessions(f model.SessionFilter, limit int) ([]model.Session, error) {
	before, id := int64(math.MaxInt64), ""
	if !f.BeforeAt.IsZero() || f.BeforeID != "" {
		before, id = nanos(f.BeforeAt), f.BeforeID
	}
	if until := nanos(f.Until); until != 0 && until <= before {
		before, id = until, ""
	}
	since := int64(math.MinInt64)
	if !f.Since.IsZero() {
		since = nanos(f.Since)
	}
	s := listSessions
	switch {
	case f.Item != "":
		s = listItemSessions
	case f.Namespace != "" && f.Person != "":
		s = listPersonSessions
	case f.Namespace != "" && f.State != "":
		s = listStateSessions
	case f.Namespace != "" && f.Team != "":
		s = listTeamSessions
	case f.Namespace != "":
		s = listNamespaceSessions
	}
	return list(r, s, document[model.Session],
		!f.Closed, !f.Open, before, id, since, f.Namespace, f.Team, f.Person, f.State, f.Item, bound(limit))
}

func (t *tx) PutSession(s model.Session) error {
	doc, err := marshal(writeSession, s)
	if err != nil {
		return err
	}
	columns := []any{s.ID, s.ItemID, s.Namespace, s.Team, s.Name, s.Person, s.State, s.ClosedAt.IsZero(), nanos(s.CreatedAt), doc}
	if err := t.write(changeSession, nil, columns...); err != nil || t.c.db.Changes() == 1 {
		return err
	}
	_, number, _ := model.ItemOfSession(s.ID) // 0 where the id is none
	return t.write(writeSession, nil, append(columns, number)...)
}

func (r *reader) Messages(sessionID string, ids []string) ([]model.Message, error) {
	all := make([]model.Message, 0, len(ids))
	for _, id := range ids {
		m, err := one(r, readMessage, document[model.Message], sessionID, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func (t *tx) PutMessage(m model.Message) error {
	return t.put(writeMessage, m, m.SessionID, m.ID)
}

func (r *reader) Frozen(hash string) ([]byte, error) {
	return one(r, readFrozen, func(row *sqlite3.Stmt) ([]byte, error) { return row.ColumnBlob(0, []byte{}), nil }, hash)
}

func (t *tx) PutFrozen(hash string, body []byte) error {
	if body == nil {
		body = []byte{} // nil would be NULL
	}
	return t.write(writeFrozen, nil, hash, body)
}

func (r *reader) Emitted(after int64, limit int) ([]model.Emitted, error) {
	return list(r, listEmitted, func(row *sqlite3.Stmt) (e model.Emitted, err error) {
		e.N, e.Key = row.ColumnInt64(0), row.ColumnText(1)
		e.Ref = feed.SessionRef{ID: row.ColumnText(2), Namespace: row.ColumnText(3), Team: row.ColumnText(4)}
		e.Record, err = feed.DecodeRecord(bytes.Clone(row.ColumnRawText(5)))
		return e, err
	}, after, bound(limit))
}

func (t *tx) Emit(e *model.Emitted) error {
	record := text(feed.AppendRecord(nil, &e.Record))
	if err := t.write(emitRecord, nil, e.Key, e.Ref.ID, e.Ref.Namespace, e.Ref.Team, record); err != nil {
		return err
	}
	e.N = t.c.db.LastInsertRowID()
	return nil
}

func (t *tx) DropEmitted(upTo int64) error { return t.write(dropEmitted, nil, upTo) }
