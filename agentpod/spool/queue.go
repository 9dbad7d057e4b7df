package spool

// This file adds entries to a queue and ends it. What a queue has on disk is in store.go, how it is read in read.go.

import (
	"os"
	"slices"
	"sync"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// maxPending bounds the entries that wait in memory for a disk that takes none.
const maxPending = 1000

// Queue has the entries of one round, of one life of the agent. Its methods may be called from any goroutine, and wait for no network.
type Queue struct {
	s      *Spool
	number int64

	mu   sync.Mutex
	meta meta
	// made says that the folder is there, removed that it is gone for good.
	made, removed bool
	// segments are the files, the oldest first; file is the open one, if it is open; next is the sequence of the next entry.
	segments []segment
	file     *os.File
	next     int64
	// first is the sequence of the first entry that is still there, acked the last that the office has.
	first, acked int64
	// live says that entries are added; ended that the last one was the end of the turn.
	live, ended bool
	// unsynced are files that are not on the disk yet, beside the open one, which is not if dirty is set; newFile says that their folder
	// does not have them for sure, newFolder the same of the folder.
	unsynced                  []*os.File
	dirty, newFile, newFolder bool
	// pending waits for room on the disk until retryAt, in order.
	pending []pending
	retryAt time.Time
	// troubled says that the log was told that the disk takes nothing.
	troubled bool

	deltas deltas
}

// meta is what a queue's folder says about it.
type meta struct {
	// ID is the spool's id for the office, and Base what is subtracted from sequences for it.
	ID   string `json:"id"`
	Base int64  `json:"base,omitempty"`
	// Item and Offer say which round it is; they do not change.
	Item  string `json:"item"`
	Offer string `json:"offer"`
	// Begun is when its turn was begun; Started says that turn_started was spooled; Over that another queue has the turn now.
	Begun   time.Time `json:"begun"`
	Started bool      `json:"started,omitempty"`
	Over    bool      `json:"over,omitempty"`
}

// pending is the JSON of an entry that waits, or with lost set the note about those that are lost here.
type pending struct {
	entry []byte
	lost  *Dropped
	vital bool
}

// Append adds an entry. An entry that comes after the end, or whose payload is none, is left out.
func (q *Queue) Append(e feed.Entry) { q.add(func() bool { return true }, e) }

// Start adds the entries that begin the turn, unless it was begun, by whichever life of the agent. It says whether it did.
func (q *Queue) Start(entries ...feed.Entry) bool {
	begin := func() bool {
		if q.meta.Started {
			return false
		}
		q.meta.Started = true
		return true
	}
	if !q.add(begin, entries...) {
		return false
	}
	// After the entries, for a crash in between is noticed: see lookBack.
	q.mu.Lock()
	defer q.mu.Unlock()
	q.saveMeta()
	return true
}

// End adds the last entry, and has all brought to the disk.
func (q *Queue) End(e feed.Entry) {
	end := func() bool {
		q.ended = true
		return true
	}
	if q.add(end, e) {
		poke(q.s.hurry)
	}
}

// add adds entries, if first agrees. It says whether it did.
func (q *Queue) add(first func() bool, entries ...feed.Entry) bool {
	var list []pending
	for _, e := range entries {
		if e.At.IsZero() {
			e.At = time.Now()
		}
		entry, err := encode(e)
		if err != nil {
			q.s.log.Error("a record is left out", "item", q.meta.Item, "error", err)
			continue
		}
		list = append(list, pending{entry: entry, vital: vital(e)})
	}
	if !q.putAll(first, list) {
		return false
	}
	poke(q.s.kick)
	q.s.tell(q)
	return true
}

func (q *Queue) putAll(first func() bool, list []pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.live || !first() {
		return false
	}
	for _, p := range list {
		q.put(p, time.Now())
	}
	q.live = !q.ended
	return true
}

// Leave says that no more entries come, though the turn has not ended: it is for another agent, or a later life, to end.
func (q *Queue) Leave() {
	q.mu.Lock()
	q.live = false
	q.mu.Unlock()
	q.s.tell(q)
}

// Begun is when the turn was begun, by whichever life of the agent.
func (q *Queue) Begun() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.meta.Begun
}

// put writes an entry, or has it wait, or counts it as lost.
func (q *Queue) put(p pending, now time.Time) {
	try := p.vital || !now.Before(q.retryAt)
	if try && q.flush(p.vital) && q.write(p.entry, p.vital) {
		return
	}
	if try {
		q.retryAt = now.Add(fullPause)
	}
	if p.vital && len(q.pending) < maxPending {
		q.pending = append(q.pending, p)
		return
	}
	if n := len(q.pending); n > 0 && q.pending[n-1].lost != nil {
		q.pending[n-1].lost.Count++
		q.pending[n-1].lost.Until = now.UTC()
		return
	}
	q.pending = append(q.pending, pending{lost: &Dropped{Count: 1, Since: now.UTC(), Until: now.UTC()}})
}

// flush writes what waits, and says whether all of it is written. What must get through, also what comes after it, takes it along.
func (q *Queue) flush(must bool) bool {
	must = must || slices.ContainsFunc(q.pending, func(p pending) bool { return p.vital })
	for len(q.pending) > 0 {
		p := q.pending[0]
		if p.lost != nil {
			p.entry = entryOf(dropped(*p.lost, time.Now()))
		}
		if !q.write(p.entry, must) {
			return false
		}
		if p.lost != nil {
			q.s.log.Warn("records were lost because the disk was full", "item", q.meta.Item, "count", p.lost.Count)
		}
		q.pending = q.pending[1:]
	}
	return true
}

// tend tries again what waits and brings the rest to the disk. It says whether something still waits.
func (q *Queue) tend() bool {
	q.mu.Lock()
	wrote := false
	if len(q.pending) > 0 && !q.removed && !time.Now().Before(q.retryAt) {
		before := q.next
		if !q.flush(false) {
			q.retryAt = time.Now().Add(fullPause)
		}
		wrote = q.next != before
	}
	waits := len(q.pending) > 0 && !q.removed
	q.mu.Unlock()
	q.sync()
	if wrote {
		q.s.tell(q)
	}
	return waits
}

// turn says whether the turn is open as far as this queue goes, whether it was started, and when it was begun.
func (q *Queue) turn() (open, started bool, begun time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.ended && !q.meta.Over && !q.removed, q.meta.Started, q.meta.Begun
}

func (q *Queue) isLive() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.live
}

// giveWay says that another queue has the turn.
func (q *Queue) giveWay() {
	q.mu.Lock()
	q.live, q.meta.Over = false, true
	q.saveMeta()
	q.mu.Unlock()
	q.s.tell(q)
}
