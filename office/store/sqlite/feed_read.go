package sqlite

// This file reads a feed.

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/store"
)

// read runs statements on a reader's connection. An error says what to do about it.
func (f *Feed) read(ctx context.Context, fn func(c *conn) error) error {
	c, err := f.borrow(ctx)
	if err != nil {
		return err
	}
	defer f.give(c)
	old := c.db.SetInterrupt(ctx)
	defer c.db.SetInterrupt(old)
	err = fn(c)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, sqlite3.INTERRUPT):
		return ctx.Err()
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB), errors.Is(err, errPack):
		return fmt.Errorf("%s cannot be read: the file is damaged: stop the office and %s (%w)", f.file, f.file.remedy, err)
	}
	return fmt.Errorf("%s cannot be read: look at the disk and the system's log (%w)", f.file, err)
}

// Read implements store.Feed. What a feed keeps in memory is looked at first: it has no gap to what is packed by then, only more of it.
func (f *Feed) Read(ctx context.Context, session string, after int64, limit, maxBytes int) ([]store.Stored, error) {
	if err := f.usable(ctx); err != nil {
		return nil, err
	}
	r := &feedRead{after: min(max(after, 0), maxPlace), before: maxPlace + 1, limit: limit, maxBytes: maxBytes}
	v := f.view.get(session)
	if v != nil {
		r.before = v.latest - int64(len(v.tail)) + 1
	}
	if r.after+1 < r.before {
		if err := f.read(ctx, func(c *conn) error {
			n := int64(0)
			if err := c.number(findFeedSession, &n, session); err != nil || n == 0 {
				return err
			}
			return r.packs(c, n)
		}); err != nil {
			return nil, err
		}
	}
	if v != nil {
		r.before = maxPlace + 1
		r.add(v.tail)
	}
	return r.records, nil
}

// feedRead is a read on its way: records at places after one and before another, within bounds.
type feedRead struct {
	after, before   int64
	limit, maxBytes int
	records         []store.Stored
	bytes           int
	full            bool
}

// packs reads what is packed.
func (r *feedRead) packs(c *conn, session int64) error {
	err := c.run(readPacks, func(row *sqlite3.Stmt) error {
		p := scanPack(row)
		if p.first+p.records-1 <= r.after {
			return nil
		}
		records, err := p.unpack()
		if err != nil {
			return fmt.Errorf("session %d at %d: %w", session, p.first, err)
		}
		if r.add(records); r.full {
			return errEnough
		}
		return nil
	}, recordNumber(session, 0), recordNumber(session, r.after+1), recordNumber(session, r.before-1))
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// add takes those of the records that are wanted.
func (r *feedRead) add(records []store.Stored) {
	for _, s := range records {
		if s.Seq <= r.after || s.Seq >= r.before {
			continue
		}
		r.full = r.full || r.limit > 0 && len(r.records) == r.limit ||
			r.maxBytes > 0 && len(r.records) > 0 && r.bytes+len(s.JSON) > r.maxBytes
		if r.full {
			return
		}
		r.records = append(r.records, s)
		r.bytes += len(s.JSON)
	}
}

// Head implements store.Feed.
func (f *Feed) Head(ctx context.Context, session string) (h store.Head, err error) {
	if err := f.usable(ctx); err != nil {
		return store.Head{}, err
	}
	if v := f.view.get(session); v != nil {
		h = store.Head{Earliest: v.first, Latest: v.latest, Bytes: v.bytes, Closed: v.closed}
	} else if err := f.read(ctx, func(c *conn) error {
		return c.run(loadFeedSession, func(row *sqlite3.Stmt) error {
			h = store.Head{
				Earliest: row.ColumnInt64(2), Latest: row.ColumnInt64(3), Bytes: row.ColumnInt64(4), Closed: row.ColumnType(5) != sqlite3.NULL,
			}
			return nil
		}, session)
	}); err != nil {
		return store.Head{}, err
	}
	if h.Earliest > h.Latest {
		h.Earliest = 0
	}
	return h, nil
}

// Uploaded implements store.Feed.
func (f *Feed) Uploaded(ctx context.Context, session, spool string) (seq int64, err error) {
	if err := f.usable(ctx); err != nil {
		return 0, err
	}
	if v := f.view.get(session); v != nil {
		if seq, known := v.uploaded(spool); known {
			return seq, nil
		}
	}
	err = f.read(ctx, func(c *conn) error { return c.number(findSpool, &seq, session, spool) })
	return seq, err
}

// Placed implements store.Feed. Records that a trim removed keep their places.
func (f *Feed) Placed(ctx context.Context, session string, keys []string) (map[string]int64, error) {
	places := map[string]int64{}
	err := f.read(ctx, func(c *conn) error {
		for _, key := range keys {
			place, err := f.marked(c, session, keyMark(key))
			if err != nil {
				return err
			}
			if place != 0 {
				places[key] = place
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return places, nil
}

// Ended implements store.Feed. A turn whose records a trim removed has ended.
func (f *Feed) Ended(ctx context.Context, session, turn string) (ended bool, err error) {
	err = f.read(ctx, func(c *conn) error {
		place, err := f.marked(c, session, turnMark(turn))
		ended = place != 0
		return err
	})
	return ended, err
}

// marked gives the place of a mark, 0 where there is none. A commit is seen in the file a moment before it is seen in the view: what tells
// of a record does not come before the record.
func (f *Feed) marked(c *conn, session string, mark []byte) (place int64, err error) {
	if err := c.number(findMark, &place, session, mark); err != nil || place == 0 {
		return 0, err
	}
	latest := int64(0)
	if v := f.view.get(session); v != nil {
		latest = v.latest
	} else if err := c.run(loadFeedSession, func(row *sqlite3.Stmt) error { latest = row.ColumnInt64(3); return nil }, session); err != nil {
		return 0, err
	}
	if place > latest {
		return 0, nil
	}
	return place, nil
}

// Size implements store.Feed.
func (f *Feed) Size(ctx context.Context, namespace, team string) (size int64, err error) {
	err = f.read(ctx, func(c *conn) error {
		return c.run(findTeam, func(row *sqlite3.Stmt) error { size = row.ColumnInt64(1); return nil }, namespace, team)
	})
	return size, err
}

// number reads the first column of a row into n, which stays as it is if there is none.
func (c *conn) number(s *statement, n *int64, args ...any) error {
	return c.run(s, func(row *sqlite3.Stmt) error { *n = row.ColumnInt64(0); return nil }, args...)
}
