package spool

// This file passes on what a runtime is writing, to whoever watches now. It is never kept: while the office is away, or behind, it is
// dropped.

import (
	"unicode/utf8"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// maxBehind is how many entries may wait to be sent for deltas still to be of use; maxDeltas and maxDeltaText bound those that wait.
	maxBehind    = 512
	maxDeltas    = 64
	maxDeltaText = 64 << 10
)

// deltas are the pieces that wait to be sent, each after an entry, so that watchers get both in order.
type deltas struct {
	// wanted says that somebody takes them; sent is the last entry that was sent.
	wanted bool
	sent   int64
	list   []delta
}

type delta struct {
	after int64
	feed.Delta
}

// Delta passes a piece on, or drops it.
func (q *Queue) Delta(d feed.Delta) {
	if d.Text != nil && !utf8.ValidString(*d.Text) {
		return
	}
	q.mu.Lock()
	taken := q.live && q.deltas.add(delta{q.next - 1, d})
	q.mu.Unlock()
	if taken {
		q.s.tell(q)
	}
}

func (l *deltas) add(d delta) bool {
	if !l.wanted || d.after-l.sent > maxBehind {
		return false
	}
	if n := len(l.list); n > 0 && l.list[n-1].after == d.after && l.list[n-1].Kind == d.Kind {
		l.list[n-1].Delta = joined(l.list[n-1].Delta, d.Delta)
	} else {
		l.list = append(l.list, d)
	}
	text := 0
	for _, waits := range l.list {
		if waits.Text != nil {
			text += len(*waits.Text)
		}
	}
	if len(l.list) > maxDeltas || text > maxDeltaText {
		l.list = nil
	}
	return true
}

// joined is two pieces of one kind as one.
func joined(a, b feed.Delta) feed.Delta {
	j := feed.Delta{Kind: a.Kind, Text: a.Text, OutputTokens: a.OutputTokens}
	if b.OutputTokens != nil {
		j.OutputTokens = b.OutputTokens
	}
	switch {
	case b.Text == nil:
	case a.Text != nil && a.Kind == feed.DeltaText:
		text := *a.Text + *b.Text
		j.Text = &text
	default:
		j.Text = b.Text
	}
	return j
}

// watch begins to take pieces for the office, which has the entries up to one, or with ok unset ends it.
func (q *Queue) watch(sent int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deltas = deltas{wanted: ok, sent: sent}
}

// ahead says what is to be sent: the sequence of the last entry, and of the one after which the first delta is to be sent; the latter is
// past the former if no delta waits. Both are of one moment, so that no entry overtakes a delta that came before it.
func (q *Queue) ahead() (last, delta int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last = q.next - 1
	if len(q.deltas.list) == 0 {
		return last, last + 1
	}
	return last, q.deltas.list[0].after
}

// takeDelta takes the first delta that waits. ok is false if there is none, or if entries that came after it were sent.
func (q *Queue) takeDelta(sent int64) (d feed.Delta, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.deltas
	if len(l.list) == 0 {
		return feed.Delta{}, false
	}
	first := l.list[0]
	l.list = l.list[1:]
	return first.Delta, first.after == sent
}

// sent notes how far entries were sent.
func (q *Queue) sent(seq int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deltas.sent = seq
}
