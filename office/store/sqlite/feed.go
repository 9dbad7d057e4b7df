package sqlite

// This file opens and closes a feed, a file of its own beside the store: the records of sessions.
//
// A record goes to the end of a log first, beside whatever else was appended, and stays in memory, where readers find it (feedView). Once a
// session has some dozens of them, they become one compressed row, a pack; and what stays behind in a log that has grown long is packed
// then, so that the log can be emptied. So an append changes about as many pages as its bytes fill, packs are few and found by number, and
// no index grows with records. What the writer knows of sessions it keeps in memory (feedMemory), and so reads nothing for most appends.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/store"
)

// FeedOptions tune a feed.
type FeedOptions struct {
	// Store is the id of the store that the feed belongs to.
	Store string
	// Readers is how many reads run at once; 0 is 4.
	Readers int
	// OnCommit, if set, hears of each group commit: how many appends and steps of a trim it held, how long it took from its first to the end
	// of the fsync, and why it failed. It runs on the writer's goroutine, so it must be quick.
	OnCommit func(appends int, took time.Duration, err error)

	// retryEvery and gatherFor are as those of Options.
	retryEvery, gatherFor time.Duration
	// limits are for the memory; zero ones are replaced by the usual ones.
	limits feedLimits
}

// usualLimits keep at most some 16 MiB of records in memory.
var usualLimits = feedLimits{sessions: 10_000, packBytes: 64 << 10, logBytes: 8 << 20, stepBytes: 256 << 10}

// The settings of an empty feed, and of its writer. Pages that retention frees can be given back (see vacuum). A checkpoint, which somebody
// has to wait for, comes once in 32 MiB.
var (
	feedBegin   = []string{"auto_vacuum = INCREMENTAL"}
	feedWriting = []string{"synchronous = FULL", "cache_size = -16384", "wal_autocheckpoint = 8000", "journal_size_limit = 67108864"}
)

// Feed is an open feed. Its methods may be called by many goroutines.
type Feed struct {
	file    file
	options FeedOptions
	lock    *lock
	writer  *writer
	// view is what readers see of the logs; memory belongs to the writer's goroutine.
	view   *feedView
	memory *feedMemory
	// readers are the connections that no read uses; opened counts all.
	readers   chan *conn
	opened    int
	closeOnce sync.Once
	closeErr  error
}

var _ store.Feed = (*Feed)(nil)

// OpenFeed opens the feed in the file at path, and makes file and folder, readable by their owner only, where they are missing. It fails
// if another process has the feed, and if the file is damaged, no feed, of another store or of a newer release; each error says what to do.
func OpenFeed(path string, options FeedOptions) (*Feed, error) {
	if options.Store == "" {
		return nil, errors.New("a feed belongs to a store: FeedOptions.Store is empty")
	}
	if options.Readers <= 0 {
		options.Readers = 4
	}
	if options.limits == (feedLimits{}) {
		options.limits = usualLimits
	}
	f := &Feed{file: file{feedKind, path}, options: options, readers: make(chan *conn, options.Readers), view: newFeedView()}
	if err := f.file.makeFolder(); err != nil {
		return nil, err
	}
	var err error
	if f.lock, err = f.file.takeLock(); err != nil {
		return nil, err
	}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, f.release())
	}
	go f.writer.write()
	return f, nil
}

func (f *Feed) open() error {
	path := f.file.path
	if err := f.file.make(); err != nil {
		return err
	}
	c, err := connect(path, common...)
	if err != nil {
		return f.file.damaged(err)
	}
	f.memory = newFeedMemory(c, f.view, f.options.limits)
	f.writer = newWriter(f.file, c, writerOptions{
		onCommit: f.options.OnCommit, retryEvery: f.options.retryEvery, gatherFor: f.options.gatherFor,
		before: f.memory.flush, after: f.memory.ended,
	})
	p := preparation{accept: f.accept, begin: feedBegin, settings: feedWriting, first: func(c *conn) error {
		return c.run(writeFeed, nil, f.options.Store)
	}}
	if err := p.prepare(c, f.file); err != nil {
		return err
	}
	if err := f.memory.replay(); err != nil {
		_, leave := c.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true)
		return errors.Join(f.file.damaged(err), leave)
	}
	for range f.options.Readers {
		c, err := connect(path, slices.Concat(common, reading)...)
		if err != nil {
			return fmt.Errorf("open %s for reading: %w", f.file, err)
		}
		f.readers <- c
		f.opened++
	}
	return settleFiles(path, path+"-wal", path+"-shm")
}

// checkedSessions is how many sessions accept looks at.
const checkedSessions = 100

// accept looks whether the feed is this store's and in order. To read over what can be hundreds of gigabytes, as is done with a store,
// would take an hour. What is looked for instead is what copies, restores and power cuts do: a file that was cut off, which SQLite sees by
// itself, and a file and a write-ahead log that do not belong together, so that the sessions that were begun last do not have the records
// that they should; then replay reads all of the two logs of records. Damage further inside is told when something is read that it hit.
func (f *Feed) accept(c *conn) error {
	whose := ""
	if err := c.run(readFeed, func(row *sqlite3.Stmt) error { whose = row.ColumnText(0); return nil }); err != nil {
		return f.file.damaged(err)
	}
	if whose != f.options.Store {
		return fmt.Errorf("%s belongs to the store %s and not to the store %s; nothing was changed. Give the office the store that was kept "+
			"with it, or move the feed away to go on with an empty one", f.file, whose, f.options.Store)
	}
	type ends struct{ session, first, latest int64 }
	var last []ends
	if err := c.run(lastHeads, func(row *sqlite3.Stmt) error {
		last = append(last, ends{row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnInt64(2)})
		return nil
	}, checkedSessions); err != nil {
		return f.file.damaged(err)
	}
	for _, e := range last {
		// Without records, first is the place after the latest.
		first, latest := e.latest+1, e.latest
		if err := c.run(packEnds, func(row *sqlite3.Stmt) error {
			if row.ColumnType(0) != sqlite3.NULL {
				first, latest = row.ColumnInt64(0)&maxPlace, row.ColumnInt64(1)&maxPlace
			}
			return nil
		}, recordNumber(e.session, 0), recordNumber(e.session, maxPlace)); err != nil {
			return f.file.damaged(err)
		}
		if first != e.first || latest != e.latest {
			return f.file.damaged(fmt.Errorf("session %d has records from %d to %d, and should have them from %d to %d",
				e.session, first, latest, e.first, e.latest))
		}
	}
	return nil
}

// Healthy implements store.Feed.
func (f *Feed) Healthy() error { return f.writer.healthy() }

// Close implements store.Feed. What has begun ends first; what has not gets store.ErrClosed.
func (f *Feed) Close() error {
	f.closeOnce.Do(func() {
		f.writer.close()
		f.closeErr = f.release()
	})
	return f.closeErr
}

// release closes what is open: readers first, so that the writer's end empties the write-ahead log, and the lock last.
func (f *Feed) release() (err error) {
	for range f.opened {
		err = errors.Join(err, (<-f.readers).close())
	}
	if f.writer != nil {
		err = errors.Join(err, f.writer.c.close())
	}
	return errors.Join(err, f.lock.release())
}

// usable says why nothing can be read, if nothing can.
func (f *Feed) usable(ctx context.Context) error {
	select {
	case <-f.writer.closing:
		return store.ErrClosed
	default:
		return ctx.Err()
	}
}

// borrow waits for a reader's connection, which give takes back.
func (f *Feed) borrow(ctx context.Context) (*conn, error) {
	if err := f.usable(ctx); err != nil {
		return nil, err
	}
	select {
	case c := <-f.readers:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-f.writer.closing:
		return nil, store.ErrClosed
	}
}

func (f *Feed) give(c *conn) { f.readers <- c }
