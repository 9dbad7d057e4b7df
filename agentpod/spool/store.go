package spool

// This file has a queue's folder: a file that says what the queue is, and segments, each named by the sequence of its first entry.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// segmentSize is when a segment is full.
	segmentSize = 1 << 20
	metaName    = "queue.json"
	segmentExt  = ".log"
)

// segment is one file of a queue: count entries, the first of which has the sequence first.
type segment struct {
	first, count, size int64
}

// end is the sequence after the last one.
func (g segment) end() int64 { return g.first + g.count }

func (q *Queue) path() string { return q.s.path(q.number) }

func (q *Queue) segmentPath(first int64) string {
	return filepath.Join(q.path(), fmt.Sprintf("%015d", first)+segmentExt)
}

// make makes the folder. If the disk does not take it now, the first entry tries again.
func (q *Queue) make() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready(true)
}

// ready says whether the folder is there, and makes it if it can.
func (q *Queue) ready(must bool) bool {
	if q.made || q.removed {
		return q.made && !q.removed
	}
	data, err := json.Marshal(q.meta)
	if err == nil {
		err = q.retry(must, func() error {
			if err := os.MkdirAll(q.path(), 0o750); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(q.path(), metaName), data, 0o600)
		})
	}
	q.made = err == nil
	q.newFolder = q.made
	if err != nil {
		q.complain(err)
	}
	return q.made
}

// saveMeta writes what the folder says about the queue.
func (q *Queue) saveMeta() {
	if q.removed || !q.made {
		return
	}
	data, err := json.Marshal(q.meta)
	if err == nil {
		err = q.retry(true, func() error { return disk.Write(filepath.Join(q.path(), metaName), data) })
	}
	if err != nil {
		q.complain(err)
	}
}

// retry does something once more without the reserve, if it must be done.
func (q *Queue) retry(must bool, do func() error) error {
	err := do()
	if err != nil && must && q.s.release() {
		err = do()
	}
	return err
}

// complain tells the log that the disk takes nothing, until it does.
func (q *Queue) complain(err error) {
	if !q.troubled {
		q.s.log.Error("records cannot be written to the home; those that are lost are counted", "item", q.meta.Item, "error", err)
	}
	q.troubled = true
}

var (
	errNoRoom    = errors.New("the spool has no room: the office has not taken what is in it")
	errNoReserve = errors.New("the disk of the home is full")
)

// write adds an entry to the last segment, and says whether it did. What must be written may use the reserve.
func (q *Queue) write(entry []byte, must bool) bool {
	if !must && !q.s.reserve() { // what the reserve left is for what must get through
		q.complain(errNoReserve)
		return false
	}
	if !q.ready(must) {
		return false
	}
	line := lineOf(q.next, entry)
	if !q.s.take(int64(len(line)), must) {
		q.complain(errNoRoom)
		return false
	}
	err := q.retry(must, func() error { return q.writeOnce(line) })
	if err != nil {
		q.s.giveBack(int64(len(line)))
		q.complain(err)
		return false
	}
	if q.troubled {
		q.s.log.Info("records can be written to the home again", "item", q.meta.Item)
	}
	last := &q.segments[len(q.segments)-1]
	last.size += int64(len(line))
	last.count++
	q.next++
	q.dirty, q.troubled = true, false
	return true
}

func (q *Queue) writeOnce(line []byte) error {
	n := len(q.segments)
	if n == 0 || q.file == nil || q.segments[n-1].size > 0 && q.segments[n-1].size+int64(len(line)) > segmentSize {
		if err := q.newSegment(); err != nil {
			return err
		}
		n = len(q.segments)
	}
	size := q.segments[n-1].size
	if _, err := q.file.WriteAt(line, size); err != nil {
		return errors.Join(err, q.file.Truncate(size))
	}
	return nil
}

// newSegment begins a segment. The one before is brought to the disk in the background.
func (q *Queue) newSegment() error {
	f, err := os.OpenFile(q.segmentPath(q.next), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if q.file != nil {
		q.unsynced = append(q.unsynced, q.file)
	}
	if n := len(q.segments); n > 0 && q.segments[n-1].count == 0 {
		q.segments = q.segments[:n-1] // it has the same name
	}
	q.file, q.newFile = f, true
	q.segments = append(q.segments, segment{first: q.next})
	return nil
}

// sync brings what was written to the disk.
func (q *Queue) sync() {
	q.mu.Lock()
	old, current, file, folder := q.unsynced, q.file, q.newFile, q.newFolder
	if !q.dirty {
		current = nil
	}
	q.unsynced, q.dirty, q.newFile, q.newFolder = nil, false, false, false
	q.mu.Unlock()
	var err error
	if folder {
		err = errors.Join(disk.Sync(filepath.Join(q.path(), metaName)), disk.Sync(q.s.dir))
	}
	for _, f := range old {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if current != nil {
		err = errors.Join(err, current.Sync())
	}
	if file || folder {
		err = errors.Join(err, disk.Sync(q.path()))
	}
	if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, fs.ErrNotExist) {
		q.s.log.Error("records may not be on the disk of the home", "item", q.meta.Item, "error", err)
	}
}

// close brings all to the disk and closes the files.
func (q *Queue) close() {
	q.tend()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.live = false
	if q.file != nil {
		_ = q.file.Close() // it is synced
		q.file = nil
	}
}

// acknowledge takes that the office has the entries up to a sequence, and removes what it need not be kept for. It says whether the queue
// has nothing more to say, ever, and is gone.
func (q *Queue) acknowledge(seq int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.acked = max(q.acked, min(seq, q.next-1))
	for len(q.segments) > 1 && q.segments[0].end() <= q.acked+1 {
		g := q.segments[0]
		if err := disk.Remove(q.segmentPath(g.first)); err != nil {
			q.s.log.Error("uploaded records cannot be removed from the home", "item", q.meta.Item, "error", err)
			return false
		}
		q.s.giveBack(g.size)
		q.segments = slices.Clone(q.segments[1:])
		q.first = q.segments[0].first
	}
	if !q.drained() {
		return false
	}
	q.destroy()
	return true
}

// drained says whether the office has everything that ever comes.
func (q *Queue) drained() bool {
	return !q.removed && (q.ended || q.meta.Over) && len(q.pending) == 0 && q.acked == q.next-1
}

// destroy removes the queue. What says what it is goes first: a queue without its entries would look like one whose turn is open.
func (q *Queue) destroy() {
	for _, f := range append(q.unsynced, q.file) {
		if f != nil {
			_ = f.Close() // nobody needs what it has
		}
	}
	q.unsynced, q.file, q.dirty, q.newFile, q.live, q.removed, q.pending = nil, nil, false, false, false, true, nil
	if err := errors.Join(disk.Remove(filepath.Join(q.path(), metaName)), os.RemoveAll(q.path())); err != nil {
		q.s.log.Error("uploaded records cannot be removed from the home", "item", q.meta.Item, "error", err)
	}
	for _, g := range q.segments {
		q.s.giveBack(g.size)
	}
	q.segments = nil
	q.s.remove(q)
}

// renew gives the queue another id, for an office that asks for entries that are gone: what is left is a spool of its own.
func (q *Queue) renew() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.meta.ID, q.meta.Base, q.acked = newID(), q.first-1, q.first-1
	q.saveMeta()
}

// loadQueue reads a queue that an earlier life left. os.ErrNotExist says that it was never made, or is half removed.
func (s *Spool) loadQueue(number int64) (*Queue, error) {
	q := &Queue{s: s, number: number, made: true, first: 1, next: 1}
	data, err := os.ReadFile(filepath.Join(q.path(), metaName))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &q.meta); err != nil {
		return nil, err
	}
	if q.meta.ID == "" || q.meta.Item == "" || q.meta.Offer == "" {
		return nil, fmt.Errorf("%s does not say which round it is", metaName)
	}
	if err := q.loadSegments(); err != nil {
		return nil, err
	}
	if n := len(q.segments); n > 0 {
		q.first, q.next = q.segments[0].first, q.segments[n-1].end()
	}
	q.acked = q.first - 1
	for _, g := range q.segments {
		s.used += g.size
	}
	return q, q.lookBack()
}

// loadSegments finds the segments, and cuts off what the last one has beyond its last whole line.
func (q *Queue) loadSegments() error {
	entries, err := os.ReadDir(q.path())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		first, err := strconv.ParseInt(strings.TrimSuffix(entry.Name(), segmentExt), 10, 64)
		if err != nil || filepath.Ext(entry.Name()) != segmentExt {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		q.segments = append(q.segments, segment{first: first, size: info.Size()})
	}
	slices.SortFunc(q.segments, func(a, b segment) int { return int(a.first - b.first) })
	for i := range q.segments {
		if i+1 < len(q.segments) {
			q.segments[i].count = q.segments[i+1].first - q.segments[i].first
			continue
		}
		if err := q.cut(&q.segments[i]); err != nil {
			return err
		}
	}
	return nil
}

// cut cuts a segment after its last whole line, and counts the lines.
func (q *Queue) cut(g *segment) error {
	data, err := os.ReadFile(q.segmentPath(g.first))
	if err != nil {
		return err
	}
	end := 0
	for at := 0; at < len(data); {
		length := bytes.IndexByte(data[at:], '\n')
		if length < 0 {
			break
		}
		at += length + 1
		if seq, _, ok := parseLine(data[at-length-1 : at]); ok && seq >= g.first {
			end, g.count = at, seq-g.first+1
		}
	}
	g.size = int64(end)
	if end == len(data) {
		return nil
	}
	q.s.log.Warn("the end of the spooled records was cut when the agent was killed", "item", q.meta.Item, "bytes", len(data)-end)
	return os.Truncate(q.segmentPath(g.first), int64(end))
}

// lookBack finds out what the entries say about the turn.
func (q *Queue) lookBack() error {
	c := cursor{q: q}
	defer c.close()
	if q.next > q.first {
		list, err := c.read(q.next-1, q.next-1, 1, 1)
		if err != nil {
			return err
		}
		q.ended = len(list) == 1 && isLifecycle(list[0], feed.TypeTurnEnded)
	}
	for seq := q.first; seq < q.next && !q.meta.Started; {
		list, err := c.read(seq, q.next-1, maxBatch, maxBatchBytes)
		if err != nil {
			return err
		}
		for _, entry := range list {
			q.meta.Started = q.meta.Started || isLifecycle(entry, feed.TypeTurnStarted)
		}
		seq += int64(len(list))
	}
	return nil
}
