package office

// This file brings the records that the office itself writes from the store, where they are durable with the change that they tell of, into
// the feeds. An append that is repeated, after a crash in between, changes nothing: each record has a key.

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

const (
	// emitBatch is how many records are read from the store at once, emitAbreast how many sessions are appended to at once.
	emitBatch   = 512
	emitAbreast = 32
	// emitForget is how often the store may forget what the feeds have.
	emitForget = time.Second
	// emitRetry is how soon an append that failed is tried again.
	emitRetry = time.Second
)

// How long the end of a conversation waits for the last records of its turn: of an agent that never uploaded any, and of one that did and
// went away.
const (
	closeSoon = 10 * time.Second
	closeLate = 10 * time.Minute
)

// emits moves emitted records into the feeds.
type emits struct {
	o      *Office
	signal chan struct{}
	// began is when this life of the office did.
	began time.Time

	// The rest belongs to whoever holds mu: the runner, or who waits for it.
	mu sync.Mutex
	// last is the number up to which records were looked at; held are those of them that wait for records of an agent.
	last int64
	held []model.Emitted
	// looked is when all that is held was looked at.
	looked time.Time
	// dropped is the number up to which the store was told to forget, at droppedAt.
	dropped   int64
	droppedAt time.Time
}

func newEmits(o *Office) *emits { return &emits{o: o, signal: make(chan struct{}, 1), began: o.now()} }

// wake says that there may be something to move.
func (e *emits) wake() {
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

// run moves records until ctx ends.
func (e *emits) run(ctx context.Context) {
	tick := time.NewTicker(emitRetry)
	defer tick.Stop()
	for {
		if err := e.drain(ctx); err != nil && ctx.Err() == nil {
			e.o.log.Error("Records could not be appended to their sessions; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.signal:
		case <-tick.C:
		}
	}
}

// drain moves everything that is in the store now, but for what has to wait. When it returns nil, the feeds have the rest.
func (e *emits) drain(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := len(e.held)
	for {
		batch, err := e.next(ctx)
		if err != nil {
			return err
		}
		if err := e.move(ctx, batch); err != nil {
			return err
		}
		if len(batch) < emitBatch {
			break
		}
	}
	// Many may be held, and what comes next may come soon: those that were looked at wait for their turn.
	if now := time.Now(); now.Sub(e.looked) >= emitRetry {
		e.looked, known = now, 0
	}
	return errors.Join(e.release(ctx, known), e.forget(ctx))
}

func (e *emits) next(ctx context.Context) (batch []model.Emitted, err error) {
	err = e.o.store.View(ctx, func(r store.Reader) (err error) {
		batch, err = r.Emitted(e.last, emitBatch)
		return err
	})
	return batch, err
}

// move appends records to their sessions, those of one session in order.
func (e *emits) move(ctx context.Context, batch []model.Emitted) error {
	bySession := map[string][]model.Emitted{}
	var held []model.Emitted
	for _, m := range batch {
		if m.Record.Type == feed.TypeSessionClosed {
			held = append(held, m)
			continue
		}
		bySession[m.Ref.ID] = append(bySession[m.Ref.ID], m)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(emitAbreast)
	for _, list := range bySession {
		group.Go(func() error { return e.append(gctx, list) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	e.held = append(e.held, held...)
	if len(batch) > 0 {
		e.last = batch[len(batch)-1].N
	}
	return nil
}

func (e *emits) append(ctx context.Context, list []model.Emitted) error {
	b := store.Batch{Ref: list[0].Ref}
	for i := range list {
		b.Entries = append(b.Entries, store.FeedEntry{Record: &list[i].Record, Key: list[i].Key})
	}
	done, err := e.o.opts.Feed.Append(ctx, b)
	if err == nil {
		e.o.live.appended(b.Ref.ID, done.Records)
	}
	return err
}

// release ends the conversations whose last records have come, or will not come any more, but for the first ones that are held.
func (e *emits) release(ctx context.Context, first int) error {
	rest := e.held[:first:first]
	var failures []error
	for _, m := range e.held[first:] {
		ready, err := e.closes(ctx, m)
		if err == nil && ready {
			if err = e.append(ctx, []model.Emitted{m}); err == nil {
				e.o.live.changed(m.Ref.ID)
				if item, _, ok := model.ItemOfSession(m.Ref.ID); ok {
					e.o.uploads.forget(item)
				}
				continue
			}
		}
		failures = append(failures, err)
		rest = append(rest, m)
	}
	e.held = rest
	return errors.Join(failures...)
}

// closes says whether a conversation that is over can be closed in its feed: the feed has the end of its last turn, or that will not come.
func (e *emits) closes(ctx context.Context, m model.Emitted) (bool, error) {
	s, err := view(ctx, e.o.store, func(r store.Reader) (model.Session, error) { return r.Session(m.Ref.ID) })
	if err != nil || s == nil {
		return err == nil, err
	}
	last := s.LastRun()
	if last == nil {
		return true, nil
	}
	ended, err := e.o.opts.Feed.Ended(ctx, s.ID, last.ID)
	if err != nil || ended {
		return ended, err
	}
	since := s.ClosedAt
	if e.began.After(since) {
		since = e.began // nobody could upload before
	}
	waited := e.o.now().Sub(since)
	if waited >= closeLate || waited < closeSoon {
		return waited >= closeLate, nil
	}
	uploads, err := e.uploads(ctx, s, last)
	return err == nil && !uploads, err
}

// uploads says whether the agent uploads the records of a turn, now or earlier.
func (e *emits) uploads(ctx context.Context, s *model.Session, turn *model.Turn) (bool, error) {
	if e.o.uploads.known(s.ItemID) {
		return true, nil
	}
	keys := make([]string, 0, len(turn.Messages))
	for _, id := range turn.Messages {
		keys = append(keys, deliveredKey(turn.ID, id))
	}
	places, err := e.o.opts.Feed.Placed(ctx, s.ID, keys)
	return len(places) > 0, err
}

// forget has the store forget what the feeds have, now and then.
func (e *emits) forget(ctx context.Context) error {
	upTo := e.last
	for _, m := range e.held {
		upTo = min(upTo, m.N-1)
	}
	now := time.Now()
	if upTo <= e.dropped || now.Sub(e.droppedAt) < emitForget {
		return nil
	}
	if err := e.o.store.Update(ctx, func(tx store.Tx) error { return tx.DropEmitted(upTo) }); err != nil {
		return err
	}
	e.dropped, e.droppedAt = upTo, now
	return nil
}
