package spool

// This file reads a queue's entries from the disk, in order, while others are added.

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// maxBatch is the most entries of one frame, maxBatchBytes the most bytes, unless one entry has more.
	maxBatch      = 256
	maxBatchBytes = 1 << 20
)

// typeMissing is the type of a state that says nothing: it takes the place of an entry that cannot be read.
const typeMissing = "missing"

// cursor is a place in a queue's segments. It is for one goroutine.
type cursor struct {
	q *Queue
	// file is the segment that begins with first; the entry at offset has the sequence seq.
	file               *os.File
	first, seq, offset int64
}

func (c *cursor) close() {
	if c.file != nil {
		_ = c.file.Close() // only read from
		c.file = nil
	}
}

// read returns the JSON of entries from a sequence on, up to another one, at most so many and about so many bytes, but at least one. It may
// return fewer than there are, but none only if there is none. Entries that the disk has lost are replaced, so that each has its sequence.
func (c *cursor) read(from, to int64, most int, bytes int) ([][]byte, error) {
	g, ok := c.q.segmentOf(from)
	if !ok || to < from {
		return nil, nil
	}
	if err := c.seek(g, from); err != nil {
		return nil, err
	}
	lines := bufio.NewReaderSize(io.NewSectionReader(c.file, c.offset, g.size-c.offset), 64<<10)
	var list [][]byte
	for bytes > 0 && len(list) < most && c.seq <= to && c.seq < g.end() {
		line, err := lines.ReadBytes('\n')
		over := errors.Is(err, io.EOF)
		if err != nil && !over {
			return nil, err
		}
		seq, entry, ok := parseLine(line)
		switch {
		case over:
			seq = g.end()
		case !ok || seq < c.seq:
			c.offset += int64(len(line)) // it leaves a gap
			continue
		}
		list = append(list, c.missing(seq, from, to, most-len(list))...)
		if c.seq < seq || over || c.seq > to || len(list) == most {
			break // the line's turn comes with the next read
		}
		c.offset += int64(len(line))
		if c.seq++; seq >= from {
			list = append(list, entry)
			bytes -= len(entry)
		}
	}
	return list, nil
}

// seek has the cursor stand in a segment, at a sequence or before it.
func (c *cursor) seek(g segment, seq int64) error {
	if c.file != nil && c.first == g.first && c.seq <= seq {
		return nil
	}
	c.close()
	f, err := os.Open(c.q.segmentPath(g.first))
	if err != nil {
		return err
	}
	c.file, c.first, c.seq, c.offset = f, g.first, g.first, 0
	return nil
}

// missing stands for the entries before a sequence that the disk should have and has not, as far as they are wanted: a record that says so,
// and nothing for each of the others.
func (c *cursor) missing(before, from, to int64, most int) [][]byte {
	var list [][]byte
	for ; c.seq < before && c.seq <= to && len(list) < most; c.seq++ {
		switch {
		case c.seq < from:
		case len(list) == 0:
			c.q.s.log.Error("spooled records were damaged on the disk", "item", c.q.meta.Item, "from", c.seq, "count", before-c.seq)
			list = append(list, missingNote(before-c.seq))
		default:
			list = append(list, entryOf(feed.Entry{At: time.Now(), Format: feed.FormatState, Type: typeMissing, Payload: json.RawMessage("{}")}))
		}
	}
	return list
}

// missingNote is the entry in the place of entries that were damaged.
func missingNote(count int64) []byte {
	now := time.Now().UTC()
	return entryOf(dropped(Dropped{Count: count, Since: now, Until: now}, now))
}

// entryOf is the JSON of an entry of the spool's own.
func entryOf(e feed.Entry) []byte {
	entry, err := encode(e)
	if err != nil {
		panic(fmt.Sprintf("an entry of plain data does not encode: %v", err))
	}
	return entry
}

// segmentOf finds the segment that has a sequence.
func (q *Queue) segmentOf(seq int64) (segment, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, g := range q.segments {
		if seq >= g.first && seq < g.end() {
			return g, true
		}
	}
	return segment{}, false
}
