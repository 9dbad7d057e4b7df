package office

// This file has deltas: pieces of what a runtime is writing. They are merged for a moment, sent to whoever is up to date, and forgotten.

import (
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// mostDeltas is how many delta frames wait for watchers; a watcher that is slower misses some. keepDeltas is for how long.
	mostDeltas = 64
	keepDeltas = 2 * time.Second
	// mostMerged is how many bytes of text become one delta, mostWaiting how many deltas wait to be sent.
	mostMerged  = 32 << 10
	mostWaiting = 32
)

// deltas are those of a topic.
type deltas struct {
	// waiting are yet to be sent, in order; due says that a timer is set to send them, sent is when some last were.
	waiting []waitingDelta
	due     bool
	sent    time.Time
	// frames are numbered up to number, the latest last.
	frames []deltaFrame
	number int64
}

type waitingDelta struct {
	turn  string
	delta feed.Delta
}

// deltaFrame is a delta that was sent when the feed had records up to a place.
type deltaFrame struct {
	number int64
	place  int64
	at     time.Time
	frame  outgoingFrame
}

// delta takes a piece of what the runtime is writing. The first after a pause is sent at once.
func (t *topic) delta(turn string, d feed.Delta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.deltas.merge(turn, d)
	wait := t.l.opts.DeltaEvery - now.Sub(t.deltas.sent)
	if wait <= 0 || t.deltas.full() {
		t.flush(now)
		return
	}
	if !t.deltas.due {
		t.deltas.due = true
		time.AfterFunc(wait, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.deltas.due = false
			t.flush(time.Now())
		})
	}
}

// merge adds a delta to those that wait: a text goes on, a thinking takes the place of the one before.
func (d *deltas) merge(turn string, next feed.Delta) {
	if n := len(d.waiting); n > 0 {
		last := &d.waiting[n-1]
		same := last.turn == turn && last.delta.Kind == next.Kind
		if same && (next.Kind == feed.DeltaText || next.Kind == feed.DeltaThinking) {
			if next.OutputTokens != nil {
				last.delta.OutputTokens = next.OutputTokens
			}
			switch {
			case next.Text == nil:
			case last.delta.Text == nil || next.Kind == feed.DeltaThinking:
				last.delta.Text = next.Text
			default:
				joined := *last.delta.Text + *next.Text
				last.delta.Text = &joined
			}
			return
		}
	}
	d.waiting = append(d.waiting, waitingDelta{turn, next})
}

// full says whether so much waits that it is to be sent now.
func (d *deltas) full() bool {
	n := len(d.waiting)
	if n == 0 {
		return false
	}
	last := d.waiting[n-1].delta.Text
	return n >= mostWaiting || last != nil && len(*last) >= mostMerged
}

// flush makes frames of the deltas that wait, and wakes the watchers. The lock is held.
func (t *topic) flush(now time.Time) {
	d := &t.deltas
	if len(d.waiting) == 0 {
		return
	}
	for _, w := range d.waiting {
		raw := feed.AppendDelta(nil, w.turn, w.delta)
		out := outgoingFrame{kind: feed.FrameDelta, size: len(raw), raw: raw}
		if len(t.watchers) > 1 {
			out.raw, out.shared = prepared(raw)
		}
		d.number++
		d.frames = append(d.frames, deltaFrame{number: d.number, place: t.head, at: now, frame: out})
	}
	if over := len(d.frames) - mostDeltas; over > 0 {
		d.frames = append([]deltaFrame(nil), d.frames[over:]...)
	}
	d.waiting, d.sent = nil, now
	t.wake()
}

// after adds the frames that a watcher is to be sent now: those that belong between the records that it has and those that come next. What
// belongs before its records is old, and left out.
func (d *deltas) after(w *watcher, frames []outgoingFrame) []outgoingFrame {
	for _, f := range d.frames {
		if f.number <= w.delta {
			continue
		}
		if f.place > w.cursor {
			break
		}
		w.delta = f.number
		if f.place == w.cursor {
			frames = append(frames, f.frame)
		}
	}
	return frames
}

// tidy forgets what watchers had the time to take.
func (d *deltas) tidy(now time.Time) {
	old := 0
	for old < len(d.frames) && now.Sub(d.frames[old].at) > keepDeltas {
		old++
	}
	if old > 0 {
		d.frames = append([]deltaFrame(nil), d.frames[old:]...)
	}
}
