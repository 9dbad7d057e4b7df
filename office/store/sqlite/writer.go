package sqlite

// This file has the one writer of a file: group commit, and what it does when it cannot write.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/store"
)

// maxTasks bounds a group commit, as writerOptions.gatherFor does, so that the first of it does not wait for long.
const maxTasks = 512

// task is something to write.
type task interface {
	// run does it inside of the open transaction; c is nil if there is none, and then there is nothing to do. An error that is not spoiled
	// left the transaction as it was before, unless that is over.
	run(c *conn) error
	// answer tells who waits what became of it.
	answer(err error)
}

// spoiled is the error of a task that may have left something in the transaction, which nobody may commit any more.
type spoiled struct{ error }

func (s spoiled) Unwrap() error { return s.error }

// writerOptions tune a writer; see Options.
type writerOptions struct {
	onCommit              func(tasks int, took time.Duration, err error)
	retryEvery, gatherFor time.Duration
	// before, if set, writes what a commit has left to the end of it; after, if set, hears how it ended before anybody is answered.
	before func() error
	after  func(err error)
}

// writer is the one goroutine that writes to a file. It takes all tasks that wait into the transaction that is open, so that one fsync
// makes all of them durable, and only then answers.
type writer struct {
	file    file
	options writerOptions
	// tasks hands over what is to be written; the writer takes one only when it will run it.
	tasks chan task
	// closing ends what waits; closed is when the writer has ended.
	closing chan struct{}
	closed  chan struct{}
	trouble atomic.Pointer[error]

	// c belongs to the writer's goroutine.
	c *conn
}

func newWriter(f file, c *conn, o writerOptions) *writer {
	o.retryEvery = cmp.Or(o.retryEvery, time.Second)
	o.gatherFor = cmp.Or(o.gatherFor, 10*time.Millisecond)
	return &writer{file: f, c: c, options: o, tasks: make(chan task), closing: make(chan struct{}), closed: make(chan struct{})}
}

// hand gives the writer a task, which it then runs and answers, whatever becomes of ctx.
func (w *writer) hand(ctx context.Context, t task) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.tasks <- t:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.closing:
		return store.ErrClosed
	}
}

// healthy is nil while the last commit succeeded, else why it did not.
func (w *writer) healthy() error {
	if err := w.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// close ends the writer after the task that runs.
func (w *writer) close() {
	close(w.closing)
	<-w.closed
}

// write is the writer's goroutine.
func (w *writer) write() {
	defer close(w.closed)
	for {
		var retry <-chan time.Time
		if w.healthy() != nil {
			retry = time.After(w.options.retryEvery)
		}
		select {
		case <-w.closing:
			return
		default:
		}
		select {
		case <-w.closing:
			return
		case t := <-w.tasks:
			w.group(t)
		case <-retry:
			w.probe()
		}
	}
}

// outcome is a task that ran, and its own error, known before the commit's.
type outcome struct {
	task
	err error
}

// group runs first and all that wait with it in one transaction, commits, and answers.
func (w *writer) group(first task) {
	start := time.Now()
	ran := []outcome{{task: first}}
	trouble := w.c.run(begin, nil)
	if trouble != nil {
		_ = first.run(nil) // it has nothing to do
	} else {
		ran, trouble = w.gather(first, start)
	}
	failed := w.finish(trouble)
	if failed != nil {
		failed = w.explain(failed)
		trouble = failed
	}
	w.report(len(ran), start, trouble)
	if w.options.after != nil {
		w.options.after(failed)
	}
	for _, o := range ran {
		if failed != nil {
			o.err = failed
		}
		o.answer(o.err)
	}
}

// gather runs first, and whatever comes until nothing does, inside the open transaction. trouble is an error that one of them
// had from disk or file, or that spoiled the transaction, which may be over because of it.
func (w *writer) gather(first task, start time.Time) (ran []outcome, trouble error) {
	for t := first; t != nil; {
		err := t.run(w.c)
		bad := errors.As(err, new(spoiled))
		if cannotWrite(err) || bad {
			err = w.explain(err)
			trouble = err
		}
		ran = append(ran, outcome{t, err})
		if bad || w.c.db.GetAutocommit() || len(ran) == maxTasks || time.Since(start) > w.options.gatherFor {
			break
		}
		t = w.next()
	}
	return ran, trouble
}

// next gives a task that waits. It lets others run once before it gives up, because those who were answered by the last
// commit are about to come back, and a commit costs far more than that.
func (w *writer) next() task {
	for range 2 {
		select {
		case t := <-w.tasks:
			return t
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// finish commits. If that fails, or the transaction is spoiled, or over already, it says why and nothing of it remains.
func (w *writer) finish(trouble error) error {
	if w.c.db.GetAutocommit() {
		if trouble == nil {
			trouble = errors.New("the transaction ended early")
		}
		return trouble
	}
	if errors.As(trouble, new(spoiled)) {
		return errors.Join(trouble, w.c.undo())
	}
	var err error
	if w.options.before != nil {
		err = w.options.before()
	}
	if err == nil {
		err = w.c.run(commit, nil)
	}
	if err != nil {
		return errors.Join(err, w.c.undo())
	}
	return nil
}

// probe tries whether the file can be written again.
func (w *writer) probe() {
	start := time.Now()
	err := w.c.run(begin, nil)
	for _, step := range []*statement{writeProbe, clearProbe} {
		if err == nil {
			err = w.c.run(step, nil)
		}
	}
	if err == nil {
		err = w.finish(nil)
	}
	err = errors.Join(err, w.c.undo())
	w.report(0, start, err)
	if w.options.after != nil {
		w.options.after(err)
	}
}

// report remembers how the writer does.
func (w *writer) report(tasks int, start time.Time, trouble error) {
	if trouble == nil {
		w.trouble.Store(nil)
	} else {
		trouble = w.explain(trouble)
		w.trouble.Store(&trouble)
	}
	if w.options.onCommit != nil {
		w.options.onCommit(tasks, time.Since(start), trouble)
	}
}

// troubleError is an error of disk or file, with what to do about it.
type troubleError struct {
	what, advice string
	err          error
}

func (e *troubleError) Error() string {
	return fmt.Sprintf("%s cannot be written: %s (%v)", e.what, e.advice, e.err)
}

func (e *troubleError) Unwrap() error { return e.err }

// explain says what to do about an error of disk or file.
func (w *writer) explain(err error) error {
	if errors.As(err, new(*troubleError)) {
		return err
	}
	advice := fmt.Sprintf("look at the disk and the system's log; the %s tries again by itself", w.file.noun)
	switch {
	case errors.Is(err, sqlite3.FULL):
		advice = fmt.Sprintf("the disk is full: make room, and the %s goes on by itself", w.file.noun)
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB):
		advice = "the file is damaged: stop the office and " + w.file.remedy
	}
	return &troubleError{what: w.file.String(), advice: advice, err: err}
}
