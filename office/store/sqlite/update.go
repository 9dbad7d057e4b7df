package sqlite

// This file runs Updates of a store: each on its caller's goroutine while the writer stands by, within a savepoint of its own.

import (
	"context"
	"errors"

	"github.com/bullpen-dev/bullpen/office/store"
)

var errPanicked = errors.New("the function of this update did not return")

// job is one Update on its way through the writer.
type job struct {
	// turn gives the connection to the caller to run its function with; nil if there is no transaction to run it in.
	turn chan *conn
	// ran gives it back, with the function's error.
	ran chan error
	// outcome is what Update returns.
	outcome chan error
}

// Update implements store.Store. It must not be called inside of another Update: it would wait for itself.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	j := &job{turn: make(chan *conn), ran: make(chan error), outcome: make(chan error, 1)}
	if err := s.writer.hand(ctx, j); err != nil {
		return err
	}
	if c := <-j.turn; c != nil {
		j.call(c, fn)
	}
	return <-j.outcome
}

// call runs fn on the caller's goroutine while the writer waits. It gives the connection back even if fn does not return.
func (j *job) call(c *conn, fn func(store.Tx) error) {
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

// run implements task: if the caller's function fails, only its own changes are undone.
func (j *job) run(c *conn) error {
	if c == nil {
		close(j.turn)
		return nil
	}
	if err := c.run(savepoint, nil); err != nil {
		close(j.turn)
		return err
	}
	j.turn <- c
	err := <-j.ran
	if c.db.GetAutocommit() { // SQLite gave up the whole transaction
		return err
	}
	if err != nil {
		if undo := c.run(rollbackSave, nil); undo != nil {
			return errors.Join(err, undo)
		}
	}
	return errors.Join(err, c.run(releaseSave, nil))
}

func (j *job) answer(err error) { j.outcome <- err }
