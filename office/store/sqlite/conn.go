package sqlite

// This file has a connection: its settings, its compiled statements, and how arguments and rows cross.

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// statement is SQL that every connection compiles once. Name says what it does, for errors.
type statement struct {
	name string
	sql  string
	// in is the file that it is for.
	in where
	// slot is the place of the compiled statement in a connection.
	slot int
}

// where says which of the files a statement is for.
type where int

const (
	inStore where = iota
	inIndex
	inFeed
)

// statements are all there are, by slot.
var statements []*statement

// stmt declares a statement.
func stmt(name, sql string) *statement {
	s := &statement{name: name, sql: sql, slot: len(statements)}
	statements = append(statements, s)
	return s
}

// indexStmt declares a statement for the index, feedStmt one for the feed.
func indexStmt(name, sql string) *statement { return stmtIn(inIndex, name, sql) }

func feedStmt(name, sql string) *statement { return stmtIn(inFeed, name, sql) }

func stmtIn(in where, name, sql string) *statement {
	s := stmt(name, sql)
	s.in = in
	return s
}

// text is a JSON document or other bytes that are bound as text.
type text []byte

// conn is one connection to the database. One goroutine uses it at a time.
type conn struct {
	db       *sqlite3.Conn
	compiled []*sqlite3.Stmt
	// home is whose connection it is, nil for those to other files than the store's.
	home *Store
	// past is a connection to the index, scratch an index in memory, once a search has needed them; see past.go.
	past, scratch *conn
}

// connect opens the database, which exists, and applies the settings.
func connect(path string, pragmas ...string) (*conn, error) {
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, compiled: make([]*sqlite3.Stmt, len(statements))}
	for _, p := range pragmas {
		if err := db.Exec("PRAGMA " + p); err != nil {
			return nil, errors.Join(fmt.Errorf("set %s: %w", p, err), c.close())
		}
	}
	return c, nil
}

// connectIndex is connect to an index.
func connectIndex(path string, pragmas ...string) (*conn, error) {
	c, err := connect(path, pragmas...)
	if err != nil {
		return nil, err
	}
	if err := registerSearch(c.db); err != nil {
		return nil, errors.Join(fmt.Errorf("set up full-text search: %w", err), c.close())
	}
	return c, nil
}

// close ends the connection. Statements end with it.
func (c *conn) close() error {
	for _, s := range c.compiled {
		if s != nil {
			_ = s.Close() // it repeats the error of the statement's last step, which was told then
		}
	}
	err := c.db.Close()
	for _, more := range []*conn{c.past, c.scratch} {
		if more != nil {
			err = errors.Join(err, more.close())
		}
	}
	return err
}

// run executes s and calls row, which may be nil, for each row of the result. A row is valid until row returns.
func (c *conn) run(s *statement, row func(*sqlite3.Stmt) error, args ...any) error {
	if err := c.step(s, row, args); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

func (c *conn) step(s *statement, row func(*sqlite3.Stmt) error, args []any) (err error) {
	st := c.compiled[s.slot]
	if st == nil {
		if st, _, err = c.db.PrepareFlags(s.sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return err
		}
		c.compiled[s.slot] = st
	}
	for i, a := range args {
		if err := bind(st, i+1, a); err != nil {
			return err
		}
	}
	if row == nil {
		return st.Exec()
	}
	defer func() { err = errors.Join(err, ignoreRepeat(err, st.Reset())) }()
	for st.Step() {
		if err := row(st); err != nil {
			return err
		}
	}
	return st.Err()
}

// ignoreRepeat drops the error of a reset if the step before it failed: it is the same one again.
func ignoreRepeat(step, reset error) error {
	if step == nil {
		return reset
	}
	return nil //nolint:nilerr // the step's error is told already
}

func bind(st *sqlite3.Stmt, i int, arg any) error {
	switch a := arg.(type) {
	case nil:
		return st.BindNull(i)
	case string:
		return st.BindText(i, a)
	case text:
		return st.BindRawText(i, a)
	case []byte:
		return st.BindBlob(i, a)
	case int:
		return st.BindInt(i, a)
	case int64:
		return st.BindInt64(i, a)
	case bool:
		return st.BindBool(i, a)
	default:
		return fmt.Errorf("argument %d has type %T, which the store does not bind", i, arg)
	}
}

// undo ends the transaction, if one is open, without a trace.
func (c *conn) undo() error {
	if c.db.GetAutocommit() {
		return nil
	}
	return c.run(rollback, nil)
}

// integer reads the one number that a statement without arguments gives.
func (c *conn) integer(sql string) (n int64, err error) {
	err = c.query(sql, func(row *sqlite3.Stmt) { n = row.ColumnInt64(0) })
	return n, err
}

// query runs SQL that is used once, such as a pragma.
func (c *conn) query(sql string, row func(*sqlite3.Stmt)) error {
	st, _, err := c.db.Prepare(sql)
	if err != nil {
		return err
	}
	for st.Step() {
		row(st)
	}
	return errors.Join(st.Err(), st.Close())
}

// cannotWrite says whether an error is the disk's or the file's rather than the caller's.
func cannotWrite(err error) bool {
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return false
	}
	switch code {
	case sqlite3.FULL, sqlite3.IOERR, sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.READONLY, sqlite3.CANTOPEN, sqlite3.NOMEM,
		sqlite3.BUSY, sqlite3.LOCKED, sqlite3.PROTOCOL:
		return true
	}
	return false
}
