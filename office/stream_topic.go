package office

// This file has a topic: a session that is watched, with what its watchers share. A frame is encoded once for all who need it.

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

const (
	// mostFrame is how many bytes of records a frame has, if it is more than one; mostInFrame how many records.
	mostFrame   = 256 << 10
	mostInFrame = 2000
	// Where mostLoaded bytes wait to be written to watchers that are behind, further frames have smallFrame.
	mostLoaded = 64 << 20
	smallFrame = 16 << 10
	// mostTail and mostTailed bound what a topic keeps of the latest records, in bytes and records; keepTail for how long.
	mostTail   = 512 << 10
	mostTailed = 4096
	keepTail   = 2 * time.Second
	// mostFrames is how many encoded frames it keeps beside.
	mostFrames = 8
	// refreshEvery is how often a session is looked at though nothing told of a change: whether its agent is connected, whether a budget
	// has room, whether a hint was lost.
	refreshEvery = 30 * time.Second
	// readTime is how long a read for watchers may take.
	readTime = 30 * time.Second
)

// topic is a session that is watched.
type topic struct {
	l       *live
	session string
	// joined counts watchers; it belongs to the live's lock. over is closed when the last one left.
	joined int
	over   chan struct{}

	// showing is held by whoever makes a session object; see stream_session.go.
	showing sync.Mutex
	showed  showed

	mu       sync.Mutex
	watchers map[*watcher]struct{}
	// head is the last place that is known to be taken.
	head int64
	// tail are the latest records in order without a gap, up to head or before; tailed is when the last one came.
	tail      []store.Stored
	tailBytes int
	tailed    time.Time
	// frames are encoded from the tail or from the feed, the latest last; reads are going on, by the place after which they read.
	frames []*recordsFrame
	reads  map[int64]*reading
	deltas deltas
	objects
	// refreshed is when the session was last looked at.
	refreshed time.Time
}

func newTopic(l *live, session string) *topic {
	return &topic{
		l: l, session: session, over: make(chan struct{}), watchers: map[*watcher]struct{}{}, reads: map[int64]*reading{}, refreshed: time.Now(),
		objects: objects{stir: make(chan struct{}, 1), ends: map[string]int64{}},
	}
}

// recordsFrame is a frame of records. raw is for few watchers, shared for many.
type recordsFrame struct {
	first, last int64
	size        int
	raw         []byte
	shared      *websocket.PreparedMessage
}

// reading is a read of the feed that is going on; done is closed when frame and err are there.
type reading struct {
	done  chan struct{}
	frame *recordsFrame
	err   error
}

// append takes records that are durable, and wakes the watchers.
func (t *topic) append(records []store.Stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush(time.Now()) // what was written before them is shown before them
	t.noteEnds(records)
	first, last := records[0].Seq, records[len(records)-1].Seq
	inOrder := last-first == int64(len(records)-1)
	switch n := len(t.tail); {
	case !inOrder:
		t.tail, t.tailBytes = nil, 0 // the feed has them
	case n > 0 && first <= t.tail[n-1].Seq:
		// A hint that comes late: what it tells of is in the feed, before what the tail has.
	case n == 0 || first > t.tail[n-1].Seq+1:
		t.tail, t.tailBytes = nil, 0
		fallthrough
	default:
		t.tail = append(t.tail, records...)
		for _, r := range records {
			t.tailBytes += len(r.JSON)
		}
		t.cutTail()
	}
	t.tailed = time.Now()
	t.head = max(t.head, last)
	t.wake()
}

// cutTail keeps the tail within its bounds, but for its last record. The lock is held.
func (t *topic) cutTail() {
	drop := 0
	for n := len(t.tail); drop < n-1 && (t.tailBytes > mostTail || n-drop > mostTailed); drop++ {
		t.tailBytes -= len(t.tail[drop].JSON)
	}
	if drop > 0 {
		t.tail = append([]store.Stored(nil), t.tail[drop:]...)
	}
}

// wake has every watcher look at what there is to send. The lock is held.
func (t *topic) wake() {
	for w := range t.watchers {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}
}

// step is what a watcher does next: send frames, and then read the feed, end, or wait.
type step struct {
	frames []outgoingFrame
	read   bool
	done   bool
}

// outgoingFrame is a frame to send, of a type.
type outgoingFrame struct {
	kind   string
	size   int
	raw    []byte
	shared *websocket.PreparedMessage
}

// next gives what a watcher does next, and counts it as done.
func (t *topic) next(w *watcher) (s step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.frames = t.deltas.after(w, s.frames)
	s.frames = t.after(w, s.frames)
	switch {
	case w.cursor < t.head:
		f := t.frame(w.cursor + 1)
		if f == nil {
			s.read = true
			return s
		}
		s.frames = append(s.frames, f.outgoing())
		w.cursor, w.begun = f.last, true
	case t.ended && w.object == t.number:
		s.done = true
	}
	return s
}

func (f *recordsFrame) outgoing() outgoingFrame {
	return outgoingFrame{kind: feed.FrameRecordsAppend, size: f.size, raw: f.raw, shared: f.shared}
}

// prepared encodes a frame once for many connections. Where that fails, it stays raw.
func prepared(raw []byte) ([]byte, *websocket.PreparedMessage) {
	shared, err := websocket.NewPreparedMessage(websocket.TextMessage, raw)
	if err != nil {
		return raw, nil
	}
	return nil, shared
}

// frame gives a frame that begins with a record, from what the topic has in memory; nil where that is not enough. The lock is held.
func (t *topic) frame(first int64) *recordsFrame {
	for i := len(t.frames) - 1; i >= 0; i-- {
		if t.frames[i].first == first {
			return t.frames[i]
		}
	}
	if len(t.tail) == 0 || first < t.tail[0].Seq || first > t.tail[len(t.tail)-1].Seq {
		return nil
	}
	records, size := t.tail[first-t.tail[0].Seq:], 0
	for i, r := range records {
		if size += len(r.JSON); i > 0 && size > mostFrame || i == mostInFrame {
			records = records[:i]
			break
		}
	}
	f := newRecordsFrame(records)
	if len(t.watchers) > 1 {
		f.raw, f.shared = prepared(f.raw)
	}
	t.remember(f)
	return f
}

// remember keeps a frame for others. The lock is held.
func (t *topic) remember(f *recordsFrame) {
	if len(t.frames) == mostFrames {
		t.frames = append(t.frames[:0], t.frames[1:]...)
	}
	t.frames = append(t.frames, f)
}

func newRecordsFrame(records []store.Stored) *recordsFrame {
	list, size := make([][]byte, 0, len(records)), 64
	for _, r := range records {
		list = append(list, r.JSON)
		size += len(r.JSON) + 1
	}
	raw := feed.AppendRecords(make([]byte, 0, size), list)
	return &recordsFrame{first: records[0].Seq, last: records[len(records)-1].Seq, size: len(raw), raw: raw}
}

// read reads records after a place from the feed. Watchers at the same place share what is read. The frame is nil where there are none.
func (t *topic) read(ctx context.Context, after int64) (*recordsFrame, error) {
	t.mu.Lock()
	r := t.reads[after]
	if r != nil {
		t.mu.Unlock()
		<-r.done // bounded by readTime
		return r.frame, r.err
	}
	r = &reading{done: make(chan struct{})}
	t.reads[after] = r
	t.mu.Unlock()

	r.frame, r.err = t.readFeed(ctx, after)

	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.reads, after)
	close(r.done)
	if r.frame != nil {
		t.head = max(t.head, r.frame.last)
		if r.frame.last == t.head { // others who are as good as up to date can use it
			t.remember(r.frame)
		}
	}
	return r.frame, r.err
}

func (t *topic) readFeed(ctx context.Context, after int64) (*recordsFrame, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	most := mostFrame
	if t.l.loaded.Load() > mostLoaded {
		most = smallFrame
	}
	records, err := t.l.o.opts.Feed.Read(ctx, t.session, after, mostInFrame, most)
	if err != nil {
		return nil, fmt.Errorf("the feed of session %s could not be read after %d: %w", t.session, after, err)
	}
	if len(records) == 0 {
		return nil, nil
	}
	return newRecordsFrame(records), nil
}

// tidy forgets what nobody needs any more, and says whether it is time to look at the session again.
func (t *topic) tidy(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.tailed) > keepTail {
		t.tail, t.tailBytes, t.frames = nil, 0, nil
	}
	t.deltas.tidy(now)
	t.objects.tidy(maps.Keys(t.watchers))
	if now.Sub(t.refreshed) < refreshEvery {
		return false
	}
	t.refreshed = now
	return true
}
