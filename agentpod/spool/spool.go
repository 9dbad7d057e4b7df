// Package spool keeps what an agent records of its rounds in the home until the office has it, and brings it there.
//
// Each round has a queue: a folder with segments, files of lines to which entries are only ever added. Adding waits for the disk's cache
// and for nothing else; the disk itself is waited for in the background, every 200 ms, and at once at the end of a turn. An Uploader reads
// the lines from the disk and sends them on a connection of its own, so an office that is away for hours costs room on the disk and no
// memory. Segments that the office has are removed, and a queue when the office has all of it and its turn is over.
//
// A queue is written by one life of the agent only. The next life uploads what it left, and goes on with its turn in a queue of its own; so
// it does not matter how much of the last lines the disk kept when the machine broke down. What a kill cut in the middle of a line is cut
// off.
//
// When the disk is full, or the spool has all the room it may have, entries are lost: deltas, which are never kept, then records. They are
// counted, and as soon as there is room again a record says how many are missing, and since when. The entries that a session cannot do
// without, above all the end of a turn, have a reserve: a file that is there to be removed.
package spool

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// mostRoom is the most bytes a spool takes if nobody says otherwise; and it takes no more than one part in roomPart of the file system.
	mostRoom = 1 << 30
	roomPart = 4
	// reserveSize is the size of the file that makes room for what must get through.
	reserveSize = 256 << 10
	reserveName = "reserve"
	// syncEvery is how long entries may wait for the disk, and fullPause how long nothing is tried on a disk that was full.
	syncEvery = 200 * time.Millisecond
	fullPause = time.Second
)

// Options say how a spool works. The zero value will do.
type Options struct {
	// Room is the most bytes that entries take on the disk; 0 is a quarter of the file system, and at most 1 GiB.
	Room int64
	Log  *slog.Logger
}

// Spool is all queues of a home. Its methods may be called from any goroutine.
type Spool struct {
	dir  string
	room int64
	log  *slog.Logger

	mu sync.Mutex
	// queues are those that are not removed, the oldest first; number is that of the latest.
	queues []*Queue
	number int64
	// used are the bytes of all segments; reserved says that the reserve is there.
	used     int64
	reserved bool
	// told, if it is set, hears of queues with something to upload.
	told func(*Queue)

	// kick wakes the goroutine that brings entries to the disk soon, hurry has it do that now.
	kick    chan struct{}
	hurry   chan struct{}
	stop    chan struct{}
	stopped chan struct{}
}

// Open opens a folder, which it makes, and what earlier lives left in it. The error means that the folder cannot be used.
func Open(dir string, o Options) (*Spool, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("the spool cannot be used: %w", err)
	}
	s := &Spool{
		dir: dir, room: o.Room, log: o.Log,
		kick: make(chan struct{}, 1), hurry: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	if s.room <= 0 {
		s.room = roomOf(dir)
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("the spool cannot be read: %w", err)
	}
	s.reserve()
	go s.care()
	return s, nil
}

// roomOf is how much a spool takes of the file system that a folder is on.
func roomOf(dir string) int64 {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil || stat.Bsize <= 0 {
		return mostRoom
	}
	return int64(min(uint64(mostRoom), stat.Blocks*uint64(stat.Bsize)/roomPart))
}

// load reads the queues that are there.
func (s *Spool) load() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		number, err := strconv.ParseInt(entry.Name(), 10, 64)
		if err != nil || !entry.IsDir() {
			continue
		}
		s.number = max(s.number, number)
		q, err := s.loadQueue(number)
		switch {
		case errors.Is(err, os.ErrNotExist): // a crash when it was made or removed
			if err := os.RemoveAll(s.path(number)); err != nil {
				return err
			}
		case err != nil:
			s.log.Error("a queue of records cannot be read and is set aside", "queue", s.path(number), "error", err)
			if err := os.Rename(s.path(number), s.path(number)+".bad"); err != nil {
				return err
			}
		default:
			s.queues = append(s.queues, q)
		}
	}
	slices.SortFunc(s.queues, func(a, b *Queue) int { return int(a.number - b.number) })
	return nil
}

func (s *Spool) path(number int64) string { return filepath.Join(s.dir, fmt.Sprintf("%012d", number)) }

// Begin begins the queue of a round: the item that it is about, and the id of the offer that it was accepted from. It takes the place of
// the queues that earlier lives left of the same turn, and knows what they had. On a disk that is full it begins all the same.
func (s *Spool) Begin(item, offer string) *Queue {
	q := &Queue{
		s: s, next: 1, first: 1, live: true,
		meta: meta{ID: newID(), Item: item, Offer: offer, Begun: time.Now().UTC()},
	}
	var before []*Queue
	for _, other := range s.all() {
		if other.meta.Item != item || other.meta.Offer != offer {
			continue
		}
		if open, started, begun := other.turn(); open {
			before = append(before, other)
			q.meta.Started = q.meta.Started || started
			if begun.Before(q.meta.Begun) {
				q.meta.Begun = begun
			}
		}
	}
	s.mu.Lock()
	s.number++
	q.number = s.number
	s.queues = append(s.queues, q)
	s.mu.Unlock()
	q.make()
	for _, other := range before {
		other.giveWay()
	}
	return q
}

// Turn is a turn that has not come to its end.
type Turn struct{ Item, Offer string }

// Left lists the turns that earlier lives, or queues that were left, have not ended, the oldest first.
func (s *Spool) Left() []Turn {
	var left []Turn
	live := map[Turn]bool{}
	for _, q := range s.all() {
		t := Turn{q.meta.Item, q.meta.Offer}
		open, _, _ := q.turn()
		switch {
		case open && q.isLive():
			live[t] = true
		case open && !slices.Contains(left, t):
			left = append(left, t)
		}
	}
	return slices.DeleteFunc(left, func(t Turn) bool { return live[t] })
}

// Close brings what there is to the disk. Queues must not be added to any more.
func (s *Spool) Close() {
	close(s.stop)
	<-s.stopped
	for _, q := range s.all() {
		q.close()
	}
}

func (s *Spool) all() []*Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queues)
}

// care brings entries to the disk in the background, and tries again what the disk did not take.
func (s *Spool) care() {
	defer close(s.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.kick:
		case <-s.hurry:
			poke(s.hurry) // for the next wait
		case <-timer.C:
		}
		wait := time.NewTimer(syncEvery)
		select {
		case <-s.stop:
			wait.Stop()
			return
		case <-s.hurry:
			wait.Stop()
		case <-wait.C:
		}
		full := false
		for _, q := range s.all() {
			full = q.tend() || full
		}
		switch {
		case full:
			timer.Reset(fullPause)
		case !s.reserve():
			timer.Reset(time.Minute)
		default:
			timer.Reset(time.Hour)
		}
	}
}

// poke wakes whoever waits for a channel with room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// tell has the uploader look at a queue.
func (s *Spool) tell(q *Queue) {
	s.mu.Lock()
	told := s.told
	s.mu.Unlock()
	if told != nil {
		told(q)
	}
}

// take takes room for bytes, and says whether there is any. What must get through may have the reserve's too.
func (s *Spool) take(bytes int64, must bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.room
	if must {
		room += reserveSize
	}
	if s.used+bytes > room {
		return false
	}
	s.used += bytes
	return true
}

// giveBack gives room back.
func (s *Spool) giveBack(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= bytes
}

// remove forgets a queue whose folder is gone.
func (s *Spool) remove(q *Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues = slices.DeleteFunc(s.queues, func(other *Queue) bool { return other == q })
}

// newID is an id that no other home makes.
func newID() string { return strings.ToLower(rand.Text()) }
