package spool

// This file decides when queues are brought to the office: a goroutine for each item with something to upload, one connection at a time,
// the oldest queue first. connection.go has what happens on one.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Dial opens a connection to the ingest endpoint of an item, for the spool of an id, whose entries are about an offer. A *RefusedError
// says that the office answered and did not agree.
type Dial func(ctx context.Context, item, spool, offer string) (*websocket.Conn, error)

// RefusedError is an office's refusal to take an item's records.
type RefusedError struct {
	// Status is that of HTTP.
	Status int
	Err    error
}

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns what the dialer said.
func (e *RefusedError) Unwrap() error { return e.Err }

// Times are an uploader's.
type Times struct {
	// First and Most bound the pause between tries, RefusedFirst and RefusedMost that after a refusal. Keep is how long an office that the
	// agent is connected to may refuse an item's records before they are dropped.
	First, Most               time.Duration
	RefusedFirst, RefusedMost time.Duration
	Keep                      time.Duration
	// Answer is how long the office may take for its first frame, Write how long a frame may take to be written, and Stall how long
	// entries may be under way without one being stored.
	Answer, Write, Stall time.Duration
	// Ping is how often the office is pinged, Silence how long nothing may come from it.
	Ping, Silence time.Duration
	// Delta is the least time between two deltas.
	Delta time.Duration
}

// DefaultTimes are what agents use.
var DefaultTimes = Times{
	First: 250 * time.Millisecond, Most: 30 * time.Second,
	RefusedFirst: 30 * time.Second, RefusedMost: 10 * time.Minute, Keep: 2 * time.Hour,
	Answer: 10 * time.Second, Write: 30 * time.Second, Stall: 2 * time.Minute,
	Ping: 20 * time.Second, Silence: time.Minute,
	Delta: 40 * time.Millisecond,
}

const (
	// maxOld is how many connections there may be for items that nobody works on now.
	maxOld = 4
	// lasting is how long a connection has to last for the pauses between tries to start over.
	lasting = 10 * time.Second
	// maxNonsense is how often the office may find the same entries wrong before they are dropped.
	maxNonsense = 5
)

// Uploader brings a spool's queues to the office.
type Uploader struct {
	spool *Spool
	dial  Dial
	times Times
	log   *slog.Logger
	// moved is called when an upload got further or failed; it must not wait.
	moved func()
	// old has a place for each connection about an item that nobody works on now.
	old chan struct{}

	mu      sync.Mutex
	ctx     context.Context
	workers map[string]*worker
	begun   sync.WaitGroup
	// online says that the agent is connected, so that a refusal is about the item and not about the agent.
	online bool
}

// worker uploads the queues of one item.
type worker struct {
	u    *Uploader
	item string
	// wake says that a queue has more, again that it is worth to try now.
	wake, again chan struct{}
	// failing says that the last try failed. It is guarded by the uploader's mu.
	failing bool
	// failures and refusals count tries in a row, nonsense how often the office found entries wrong; refused adds up how long the office
	// has refused while the agent was connected, and refusedAt is the last time, zero if the agent was not.
	failures, refusals, nonsense int
	refused                      time.Duration
	refusedAt                    time.Time
}

// NewUploader makes the uploader of a spool. moved is called, from any goroutine, when an upload got further or failed.
func NewUploader(s *Spool, dial Dial, times Times, moved func(), log *slog.Logger) *Uploader {
	return &Uploader{
		spool: s, dial: dial, times: times, log: log, moved: moved,
		old: make(chan struct{}, maxOld), workers: map[string]*worker{},
	}
}

// Run uploads until ctx ends. It returns when no connection is left.
func (u *Uploader) Run(ctx context.Context) {
	u.mu.Lock()
	u.ctx = ctx
	u.mu.Unlock()
	u.spool.mu.Lock()
	u.spool.told = u.look
	u.spool.mu.Unlock()
	for _, q := range u.spool.all() {
		u.look(q)
	}
	<-ctx.Done()
	u.spool.mu.Lock()
	u.spool.told = nil
	u.spool.mu.Unlock()
	u.begun.Wait()
}

// look sees to it that a queue is uploaded.
func (u *Uploader) look(q *Queue) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.workers[q.meta.Item]
	if w == nil {
		if u.ctx.Err() != nil || !q.hasMore() {
			return
		}
		w = &worker{u: u, item: q.meta.Item, wake: make(chan struct{}, 1), again: make(chan struct{}, 1)}
		u.workers[w.item] = w
		ctx := u.ctx
		u.begun.Go(func() { w.run(ctx) })
	}
	poke(w.wake)
}

// Online says whether the agent is connected to the office. A connection is a reason to try at once what failed.
func (u *Uploader) Online(online bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.online = online
	if !online {
		return
	}
	for _, w := range u.workers {
		poke(w.again)
	}
}

// Waits says whether records of an item are still to be uploaded, and whether that is to be expected soon: nothing has failed yet.
func (u *Uploader) Waits(item string) (waits, soon bool) {
	for _, q := range u.spool.all() {
		waits = waits || q.meta.Item == item && q.hasMore()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.workers[item]
	return waits, waits && w != nil && !w.failing
}

// run uploads what there is, and ends when there is no more.
func (w *worker) run(ctx context.Context) {
	for {
		q := w.next(ctx)
		if q == nil {
			return
		}
		err := w.once(ctx, q)
		if ctx.Err() != nil {
			continue // next ends it
		}
		if err == nil {
			w.u.moved()
			continue
		}
		if pause := w.failed(q, err); pause > 0 {
			w.pause(ctx, pause)
		}
	}
}

// next finds the queue that is to be uploaded now. Where there is none, the worker is over.
func (w *worker) next(ctx context.Context) *Queue {
	w.u.mu.Lock()
	defer w.u.mu.Unlock()
	if ctx.Err() == nil {
		for _, q := range w.u.spool.all() {
			if q.meta.Item == w.item && q.hasMore() {
				return q
			}
		}
	}
	delete(w.u.workers, w.item)
	return nil
}

// hasMore says whether there is something that the office does not have, or has, and is still kept.
func (q *Queue) hasMore() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.removed && (q.acked < q.next-1 || q.drained())
}

// once uploads a queue over one connection. nil says that there is no more of it now.
func (w *worker) once(ctx context.Context, q *Queue) error {
	if q.acknowledge(0) {
		return nil // there never was anything in it
	}
	if !q.isLive() {
		select {
		case w.u.old <- struct{}{}:
			defer func() { <-w.u.old }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	dialing, cancel := context.WithTimeout(ctx, w.u.times.Answer)
	defer cancel()
	ws, err := w.u.dial(dialing, w.item, q.id(), q.meta.Offer)
	if err != nil {
		return err
	}
	c := &connection{w: w, q: q, ws: ws, times: w.u.times, cursor: cursor{q: q}}
	began := time.Now()
	defer func() {
		if time.Since(began) > lasting {
			w.failures = 0
		}
	}()
	return c.run(ctx)
}

func (q *Queue) id() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.meta.ID
}

// worked notes that the office took something.
func (w *worker) worked() {
	w.failures, w.refusals, w.nonsense, w.refused, w.refusedAt = 0, 0, 0, 0, time.Time{}
	w.setFailing(false)
}

func (w *worker) setFailing(failing bool) {
	w.u.mu.Lock()
	was := w.failing
	w.failing = failing
	w.u.mu.Unlock()
	if was != failing {
		w.u.moved()
	}
}

// errRenewed says that the queue has another id now, with which to begin again.
var errRenewed = errors.New("the office asked for records that it had before; what is left is uploaded as a new spool")

// failed takes why an upload ended, and returns how long to wait before the next.
func (w *worker) failed(q *Queue, err error) time.Duration {
	times := w.u.times
	if errors.Is(err, errRenewed) {
		w.u.log.Warn("records are uploaded anew", "item", w.item, "reason", err)
		if w.failures++; w.failures < 3 {
			return 0
		}
	}
	w.setFailing(true)
	var refused *RefusedError
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &closed) && (closed.Code == websocket.CloseInvalidFramePayloadData || closed.Code == websocket.CloseMessageTooBig):
		w.nonsense++
		w.u.log.Error("the office finds records of this agent wrong", "item", w.item, "error", err)
		if w.nonsense >= maxNonsense && w.drop(q, fmt.Sprintf("the office has found them wrong %d times", w.nonsense)) {
			w.nonsense = 0
			return 0
		}
		return spread(backoff(w.nonsense, times.RefusedFirst, times.RefusedMost))
	case errors.As(err, &refused):
		w.refusals++
		w.noteRefusal(time.Now())
		if w.refused > times.Keep && w.drop(q, fmt.Sprintf("the office has refused them for %s: %v", times.Keep, err)) {
			return 0
		}
		pause := spread(backoff(w.refusals, times.RefusedFirst, times.RefusedMost))
		w.u.log.Warn("the office refuses records", "item", w.item, "error", err, "retryIn", pause.Round(time.Millisecond).String())
		return pause
	}
	w.failures++
	pause := time.Duration(float64(backoff(w.failures, times.First, times.Most)) * rand.Float64())
	w.u.log.Warn("records are not uploaded now", "item", w.item, "error", err, "retryIn", pause.Round(time.Millisecond).String())
	return pause
}

// noteRefusal adds the time since the last refusal, if the agent was connected both times: an agent that the office does not know says
// nothing about the item.
func (w *worker) noteRefusal(now time.Time) {
	w.u.mu.Lock()
	online := w.u.online
	w.u.mu.Unlock()
	switch {
	case !online:
		w.refusedAt = time.Time{}
		return
	case !w.refusedAt.IsZero():
		w.refused += now.Sub(w.refusedAt)
	}
	w.refusedAt = now
}

// drop gives up what the office does not take of a queue, unless the queue is still added to. It says whether it did.
func (w *worker) drop(q *Queue, why string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.live {
		return false
	}
	w.u.log.Error("records are dropped", "item", w.item, "count", q.next-1-q.acked, "reason", why)
	q.destroy()
	return true
}

// pause waits, until it is worth to try again.
func (w *worker) pause(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-w.again:
	}
}

// backoff is the bound of the pause before try n, counted from 1: it doubles.
func backoff(n int, first, most time.Duration) time.Duration {
	if n > 30 {
		return most
	}
	return min(first<<(n-1), most)
}

// spread is a random pause between half of one and all of it.
func spread(pause time.Duration) time.Duration {
	return pause/2 + time.Duration(float64(pause/2)*rand.Float64())
}
