package sqlite

// This file opens and closes a store, and runs transactions for its callers.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/store"
)

// Options tune a store. The zero value is good.
type Options struct {
	// Readers is how many Views run at once; 0 is 4.
	Readers int
	// OnCommit, if set, hears of each group commit: how many Updates it held, how long it took from its first to the end of
	// the fsync, and why it failed. It runs on the writer's goroutine, so it must be quick.
	OnCommit func(jobs int, took time.Duration, err error)

	// retryEvery is how often a store that cannot write tries again; 0 is a second.
	retryEvery time.Duration
	// gatherFor is how long a group commit takes in more Updates; 0 is 10 ms.
	gatherFor time.Duration
	// indexAfter is how long the indexer gathers what it takes in at once; 0 is 250 ms. Until then a search looks through it.
	indexAfter time.Duration
	// onIndex, if set, hears of each step of the indexer: which note it has come to, or why it cannot go on. It runs on the
	// indexer's goroutine.
	onIndex func(seq int64, err error)
}

// The settings of every connection, of the writer and of readers. Caches are in KiB.
var (
	common  = []string{"busy_timeout = 5000", "foreign_keys = ON", "trusted_schema = OFF", "temp_store = MEMORY"}
	writing = []string{"synchronous = FULL", "cache_size = -16384", "wal_autocheckpoint = 4000", "journal_size_limit = 67108864"}
	reading = []string{"query_only = ON", "cache_size = -4096"}
)

// Store is an open store. Its methods may be called by many goroutines.
type Store struct {
	file    file
	path    string
	id      string
	options Options
	lock    *lock
	// readers are the connections that no View uses; opened counts all.
	readers chan *conn
	opened  int

	// writer runs Updates; closing ends what waits for anything.
	writer    *writer
	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error

	// indexer belongs to its goroutine, which hears of commits by noted and closes followed when it ends. behind is why it could not
	// go on, if it could not.
	indexer  *indexer
	noted    chan struct{}
	followed chan struct{}
	behind   atomic.Pointer[error]
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the file at path, and makes file and folder, readable by their owner only, where they are missing.
// It fails if another process has the store, and if the file is damaged, not a store, or of a newer release; each error
// says what to do.
func Open(path string, options Options) (*Store, error) {
	if options.Readers <= 0 {
		options.Readers = 4
	}
	options.retryEvery = cmp.Or(options.retryEvery, time.Second)
	options.indexAfter = cmp.Or(options.indexAfter, 250*time.Millisecond)
	f := file{storeKind, path}
	if err := f.makeFolder(); err != nil {
		return nil, err
	}
	lock, err := f.takeLock()
	if err != nil {
		return nil, err
	}
	s := &Store{
		file:    f,
		path:    path,
		options: options,
		lock:    lock,
		readers: make(chan *conn, options.Readers),

		noted:    make(chan struct{}, 1),
		followed: make(chan struct{}),
	}
	s.behind.Store(new(error))
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.release(false))
	}
	go s.writer.write()
	go s.follow()
	return s, nil
}

func (s *Store) open() (err error) {
	if err := s.file.make(); err != nil {
		return err
	}
	c, err := connect(s.path, common...)
	if err != nil {
		return s.file.damaged(err)
	}
	s.writer = newWriter(s.file, c, writerOptions{
		onCommit: s.options.OnCommit, retryEvery: s.options.retryEvery, gatherFor: s.options.gatherFor, after: s.nudge,
	})
	s.closing = s.writer.closing
	c.home = s
	if err := (preparation{search: !s.lock.untouched(s.path), first: newStore, settings: writing}).prepare(c, s.file); err != nil {
		return err
	}
	for range s.options.Readers {
		c, err := connect(s.path, slices.Concat(common, reading)...)
		if err != nil {
			return fmt.Errorf("open %s for reading: %w", s.file, err)
		}
		c.home = s
		s.readers <- c
		s.opened++
	}
	err = c.run(readID, func(row *sqlite3.Stmt) error {
		s.id = row.ColumnText(0)
		return nil
	})
	if err != nil {
		return err
	}
	if s.indexer, err = openIndexer(s.path, s.id, c); err != nil {
		return err
	}
	return settleFiles(s.path, s.path+"-wal", s.path+"-shm", pathOfPast(s.path)+"-wal", pathOfPast(s.path)+"-shm")
}

// nudge tells the indexer that there may be something to follow.
func (s *Store) nudge(error) {
	select {
	case s.noted <- struct{}{}:
	default: // it knows already
	}
}

// ID implements store.Store.
func (s *Store) ID() string { return s.id }

// Healthy implements store.Store.
func (s *Store) Healthy() error { return s.writer.healthy() }

// View implements store.Store.
func (s *Store) View(ctx context.Context, fn func(store.Reader) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := s.borrow(ctx)
	if err != nil {
		return err
	}
	defer func() { s.readers <- c }()
	if err := c.run(beginRead, nil); err != nil {
		return err
	}
	old := c.db.SetInterrupt(ctx)
	r := &reader{c: c}
	defer func() {
		r.over = true
		c.db.SetInterrupt(old)
		err = errors.Join(err, c.undo())
	}()
	if err = fn(r); err != nil && ctx.Err() != nil && errors.Is(err, sqlite3.INTERRUPT) {
		err = ctx.Err()
	}
	return err
}

// borrow waits for a reader's connection.
func (s *Store) borrow(ctx context.Context) (*conn, error) {
	select {
	case <-s.closing:
		return nil, store.ErrClosed
	default:
	}
	select {
	case c := <-s.readers:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.closing:
		return nil, store.ErrClosed
	}
}

// Close implements store.Store. Updates and Views that have begun end first; those that have not get store.ErrClosed.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.writer.close()
		<-s.followed
		s.closeErr = s.release(true)
	})
	return s.closeErr
}

// release closes what is open: readers first, so that the writer's end empties the write-ahead log, and the lock last. A store that
// was open is closed well.
func (s *Store) release(well bool) (err error) {
	for range s.opened {
		err = errors.Join(err, (<-s.readers).close())
	}
	if s.indexer != nil {
		err = errors.Join(err, s.indexer.close())
	}
	if s.writer != nil {
		err = errors.Join(err, s.writer.c.close())
	}
	if err == nil && well {
		err = s.lock.signOff(s.path)
	}
	return errors.Join(err, s.lock.release())
}
