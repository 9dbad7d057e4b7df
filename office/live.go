package office

// This file tells those who watch sessions what happens, as it happens. What is told here is a hint: a watcher is sent what the feed has after
// its cursor, so nothing is lost or repeated where a hint comes late, twice or not at all. See stream.go.

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

// live is where what happens meets who watches. None of its methods that tell something waits for a watcher. Its zero value has none.
type live struct {
	o        *Office
	opts     StreamOptions
	upgrader websocket.Upgrader
	// readers has a place for each page of records or sessions that is made.
	readers chan struct{}
	// loaded is how many bytes of records were read for watchers that are behind, and are not written yet.
	loaded atomic.Int64
	// streams counts the goroutines of watchers.
	streams sync.WaitGroup

	mu       sync.RWMutex
	topics   map[string]*topic
	watchers int
	sweeping bool
}

// open prepares for watchers.
func (l *live) open(o *Office) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o != nil {
		return
	}
	l.o, l.opts, l.topics = o, o.opts.Streams.filled(), map[string]*topic{}
	l.readers = make(chan struct{}, mostReaders)
	l.upgrader = websocket.Upgrader{
		ReadBufferSize: 512, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{}, Subprotocols: []string{streamSubprotocol},
		CheckOrigin: func(*http.Request) bool { return true }, // sameOrigin did
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			o.tell(w, r, wrong(status, "%v", reason))
		},
	}
}

// appended tells of records that are durable. Calls about one session can come out of the order of the records' places.
func (l *live) appended(session string, records []store.Stored) {
	if t := l.topic(session); t != nil && len(records) > 0 {
		t.append(records)
	}
}

// delta passes on a piece of what the runtime is writing.
func (l *live) delta(session, turn string, d feed.Delta) {
	if t := l.topic(session); t != nil {
		t.delta(turn, d)
	}
}

// changed says that the session object may look different now.
func (l *live) changed(session string) {
	if t := l.topic(session); t != nil {
		t.changed()
	}
}

// topic gives the session's topic, nil where nobody watches it.
func (l *live) topic(session string) *topic {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.topics[session]
}

// admit counts one more watcher, and says false where there are too many.
func (l *live) admit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watchers >= l.opts.MaxWatchers {
		return false
	}
	l.watchers++
	l.o.metrics.streams.watchers.Inc()
	return true
}

// dismiss counts one watcher less.
func (l *live) dismiss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers--
	l.o.metrics.streams.watchers.Dec()
}

// join gives the session's topic to one more watcher, until leave.
func (l *live) join(session string) *topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[session]
	if t == nil {
		t = newTopic(l, session)
		l.topics[session] = t
	}
	t.joined++
	if !l.sweeping {
		l.sweeping = true
		go l.sweep()
	}
	return t
}

// leave forgets the topic with its last watcher.
func (l *live) leave(t *topic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.joined--; t.joined == 0 {
		delete(l.topics, t.session)
		close(t.over)
	}
}

// sweepEvery is how often topics are looked at for what nobody needs any more.
const sweepEvery = time.Second

// sweep tidies the topics up as long as there are any.
func (l *live) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for now := range tick.C {
		l.mu.Lock()
		all := make([]*topic, 0, len(l.topics))
		for _, t := range l.topics {
			all = append(all, t)
		}
		l.sweeping = len(all) > 0
		l.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, t := range all {
			if t.tidy(now) {
				t.changed()
			}
		}
	}
}

// drained waits until the watchers have heard that the office ends, at most until ctx ends.
func (l *live) drained(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		l.streams.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// reader waits for a place to make a page in, and gives what frees it.
func (l *live) reader(ctx context.Context) (func(), error) {
	timer := time.NewTimer(readerPatience)
	defer timer.Stop()
	select {
	case l.readers <- struct{}{}:
		return func() { <-l.readers }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, later(http.StatusTooManyRequests, 2, "too many ask for sessions and records at once: try again later")
	}
}
