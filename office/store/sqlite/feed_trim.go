package sqlite

// This file removes records of closed sessions from a feed, and gives their space back.

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/store"
)

const (
	// A step of a trim removes at most so many packs and, but for a single one, so many bytes: some milliseconds.
	trimPacks = 200
	trimBytes = 8 << 20
	// A step of a vacuum moves at most so many pages.
	vacuumPages = 256
	// keepPages and, of a large file, a keepShare-th of all pages are kept empty for records to come: it costs to move pages, and the file
	// would only grow again.
	keepPages = 1024
	keepShare = 16
)

// Trim implements store.Feed. A crash may leave a session of which only the latest records are there; the next trim begins with it.
func (f *Feed) Trim(ctx context.Context, limits store.Limits) (sum store.Trimmed, err error) {
	for more := true; more; {
		t := &trimming{memory: f.memory, limits: limits, done: make(chan error, 1)}
		if err := f.do(ctx, t, t.done); err != nil {
			return sum, err
		}
		more = t.more
		sum.Sessions += t.result.Sessions
		sum.Records += t.result.Records
		sum.Bytes += t.result.Bytes
	}
	if sum.Records == 0 {
		return sum, nil
	}
	return sum, f.vacuum(ctx)
}

// do has the writer run a task, and waits for its answer.
func (f *Feed) do(ctx context.Context, t task, done <-chan error) error {
	if err := f.writer.hand(ctx, t); err != nil {
		return err
	}
	return <-done
}

// trimming is a step of a trim.
type trimming struct {
	memory *feedMemory
	limits store.Limits
	result store.Trimmed
	// more says that another step may find something.
	more bool
	done chan error
}

// answer implements task.
func (t *trimming) answer(err error) { t.done <- err }

// run implements task.
func (t *trimming) run(c *conn) error {
	if c == nil {
		return nil
	}
	s, err := t.next(c)
	if err != nil || s == nil {
		return err
	}
	t.more = true
	if err := t.remove(c, s); err != nil {
		return spoiled{err}
	}
	return nil
}

// next gives the session to remove records of, nil if there is none.
func (t *trimming) next(c *conn) (*feedSession, error) {
	team, err := t.memory.team(t.limits.Namespace, t.limits.Team)
	if err != nil || team == nil {
		return nil, err
	}
	// What the open transaction has closed is not in the table yet; the next trim finds it.
	var at, n int64
	if err := c.run(firstClosing, func(row *sqlite3.Stmt) error {
		at, n = row.ColumnInt64(0), row.ColumnInt64(1)
		return nil
	}, team.n); err != nil || n == 0 {
		return nil, err
	}
	id := ""
	if err := c.run(nameFeedSession, func(row *sqlite3.Stmt) error { id = row.ColumnText(0); return nil }, n); err != nil {
		return nil, err
	}
	s, err := t.memory.session(id)
	if err != nil || s == nil || !due(s, at, t.limits) {
		return nil, err
	}
	return s, nil
}

// due says whether the records of a session that was closed at a time are to go. What was begun is ended.
func due(s *feedSession, at int64, l store.Limits) bool {
	return s.first > 1 || !l.ClosedBefore.IsZero() && at < nanos(l.ClosedBefore) || l.Bytes > 0 && s.team.bytes > l.Bytes
}

// remove removes the session's first records. All that a closed session has is packed.
func (t *trimming) remove(c *conn, s *feedSession) error {
	// If there are none, the session has lost them, and is over with.
	last, bytes, records := s.latest, s.bytes, int64(0)
	if err := c.run(sizePacks, func(row *sqlite3.Stmt) error {
		size := row.ColumnInt64(2)
		if records == 0 {
			bytes = 0
		} else if bytes+size > trimBytes {
			return errEnough
		}
		last = row.ColumnInt64(0)&maxPlace + row.ColumnInt64(1) - 1
		bytes += size
		records += row.ColumnInt64(1)
		return nil
	}, recordNumber(s.n, s.first), recordNumber(s.n, s.latest), trimPacks); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if err := c.run(dropPacks, nil, recordNumber(s.n, s.first), recordNumber(s.n, last)); err != nil {
		return err
	}
	s.first = last + 1
	t.memory.resize(s, -bytes)
	t.memory.changed[s], t.memory.settled[s] = true, true
	t.result.Records, t.result.Bytes = records, bytes
	if s.first <= s.latest {
		return nil
	}
	t.result.Sessions = 1
	return c.run(dropClosing, nil, s.team.n, s.closedAt, s.n)
}

// vacuum gives free pages at the end of the file back, in small steps, and moves pages from there to free ones.
func (f *Feed) vacuum(ctx context.Context) error {
	for more := true; more; {
		v := &vacuuming{done: make(chan error, 1)}
		if err := f.do(ctx, v, v.done); err != nil {
			return err
		}
		more = v.more
	}
	return nil
}

// vacuuming is a step of a vacuum.
type vacuuming struct {
	more bool
	done chan error
}

// answer implements task.
func (v *vacuuming) answer(err error) { v.done <- err }

// run implements task.
func (v *vacuuming) run(c *conn) error {
	if c == nil {
		return nil
	}
	free, err := c.integer("PRAGMA freelist_count")
	if err != nil {
		return err
	}
	pages, err := c.integer("PRAGMA page_count")
	if err != nil {
		return err
	}
	over := free - max(keepPages, pages/keepShare)
	if over <= 0 {
		return nil
	}
	if _, err := c.integer(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", min(over, vacuumPages))); err != nil {
		return spoiled{err}
	}
	left, err := c.integer("PRAGMA freelist_count")
	v.more = left < free
	return err
}
