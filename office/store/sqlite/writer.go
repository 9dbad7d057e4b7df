package sqlite

// This file has the one writer: group commit, and what it does when it cannot write.

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/store"
)

// maxJobs bounds a group commit, as Options.gatherFor does, so that the first of it does not wait for long.
const maxJobs = 512

var errPanicked = errors.New("the function of this update did not return")

// job is one Update on its way through the writer.
type job struct {
	// turn gives the connection to the caller to run its function with; nil if there is no transaction to run it in.
	turn chan *conn
	// ran gives it back, with the function's error.
	ran chan error
	// outcome is what Update returns.
	outcome chan error
	// err is the outcome of the job itself, known before the commit's.
	err error
}

func newJob() *job {
	return &job{turn: make(chan *conn), ran: make(chan error), outcome: make(chan error, 1)}
}

// run calls fn on the caller's goroutine while the writer waits. It gives the connection back even if fn does not return.
func (j *job) run(c *conn, fn func(store.Tx) error) {
	t := &tx{reader: reader{c: c}}
	err := errPanicked
	defer func() {
		t.over = true
		if t.bad != nil {
			err = t.bad
		}
		j.ran <- err
	}()
	err = fn(t)
}

// write is the writer's goroutine.
func (s *Store) write() {
	defer close(s.closed)
	for {
		var retry <-chan time.Time
		if s.Healthy() != nil {
			retry = time.After(s.options.retryEvery)
		}
		select {
		case <-s.closing:
			return
		default:
		}
		select {
		case <-s.closing:
			return
		case j := <-s.jobs:
			s.group(j)
		case <-retry:
			s.probe()
		}
	}
}

// group runs first and all that wait with it in one transaction, commits, and answers.
func (s *Store) group(first *job) {
	start := time.Now()
	jobs := []*job{first}
	trouble := s.writer.run(begin, nil)
	if trouble != nil {
		close(first.turn)
	} else {
		jobs, trouble = s.gather(first, start)
	}
	failed := s.finish(trouble)
	if failed != nil {
		failed = s.explain(failed)
		trouble = failed
	}
	s.report(len(jobs), start, trouble)
	select {
	case s.noted <- struct{}{}:
	default: // the indexer knows already
	}
	for _, j := range jobs {
		if failed != nil {
			j.err = failed
		}
		j.outcome <- j.err
	}
}

// gather runs first, and whoever comes until nobody does, inside the open transaction. trouble is an error that one of them
// had from disk or file; the transaction may be over because of it.
func (s *Store) gather(first *job, start time.Time) (jobs []*job, trouble error) {
	for j := first; j != nil; {
		jobs = append(jobs, j)
		j.err = s.runJob(j)
		if cannotWrite(j.err) {
			j.err = s.explain(j.err)
			trouble = j.err
		}
		if s.writer.db.GetAutocommit() || len(jobs) == maxJobs || time.Since(start) > s.options.gatherFor {
			break
		}
		j = s.next()
	}
	return jobs, trouble
}

// next gives a job that waits. It lets others run once before it gives up, because those who were answered by the last
// commit are about to come back, and a commit costs far more than that.
func (s *Store) next() *job {
	for range 2 {
		select {
		case j := <-s.jobs:
			return j
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// runJob lets one caller run its function within a savepoint; if it fails, only its own changes are undone.
func (s *Store) runJob(j *job) error {
	if err := s.writer.run(savepoint, nil); err != nil {
		close(j.turn)
		return err
	}
	j.turn <- s.writer
	err := <-j.ran
	if s.writer.db.GetAutocommit() { // SQLite gave up the whole transaction
		return err
	}
	if err != nil {
		if undo := s.writer.run(rollbackSave, nil); undo != nil {
			return errors.Join(err, undo)
		}
	}
	return errors.Join(err, s.writer.run(releaseSave, nil))
}

// finish commits. If that fails, or the transaction is over already, it says why and nothing of it remains.
func (s *Store) finish(trouble error) error {
	if s.writer.db.GetAutocommit() {
		if trouble == nil {
			trouble = errors.New("the transaction ended early")
		}
		return trouble
	}
	if err := s.writer.run(commit, nil); err != nil {
		return errors.Join(err, s.writer.undo())
	}
	return nil
}

// probe tries whether the store can write again.
func (s *Store) probe() {
	start := time.Now()
	err := s.writer.run(begin, nil)
	for _, step := range []*statement{writeProbe, clearProbe} {
		if err == nil {
			err = s.writer.run(step, nil)
		}
	}
	if err == nil {
		err = s.finish(nil)
	}
	s.report(0, start, errors.Join(err, s.writer.undo()))
}

// report remembers how the store does.
func (s *Store) report(jobs int, start time.Time, trouble error) {
	if trouble == nil {
		s.trouble.Store(nil)
	} else {
		trouble = s.explain(trouble)
		s.trouble.Store(&trouble)
	}
	if s.options.OnCommit != nil {
		s.options.OnCommit(jobs, time.Since(start), trouble)
	}
}

// troubleError is an error of disk or file, with what to do about it.
type troubleError struct {
	path, advice string
	err          error
}

func (e *troubleError) Error() string {
	return fmt.Sprintf("the store %s cannot be written: %s (%v)", e.path, e.advice, e.err)
}

func (e *troubleError) Unwrap() error { return e.err }

// explain says what to do about an error of disk or file.
func (s *Store) explain(err error) error {
	if errors.As(err, new(*troubleError)) {
		return err
	}
	advice := "look at the disk and the system's log; the store tries again by itself"
	switch {
	case errors.Is(err, sqlite3.FULL):
		advice = "the disk is full: make room, and the store goes on by itself"
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB):
		advice = "the file is damaged: stop the office and restore the file from a backup"
	}
	return &troubleError{path: s.path, advice: advice, err: err}
}
