package sqlite

// This file appends records to a feed. Which entries of a batch are new is decided before anything is written, so that a batch is refused
// without harm to those that share its commit; what goes wrong after that fails all of them.

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

// appending is one Append on its way through the writer.
type appending struct {
	memory *feedMemory
	batch  store.Batch
	result store.Appended
	done   chan error
}

// Append implements store.Feed. It gives a record its session, its place, and the id that is made of both.
func (f *Feed) Append(ctx context.Context, batch store.Batch) (store.Appended, error) {
	if err := valid(batch); err != nil {
		return store.Appended{}, err
	}
	a := &appending{memory: f.memory, batch: batch, done: make(chan error, 1)}
	if err := f.writer.hand(ctx, a); err != nil {
		return store.Appended{}, err
	}
	if err := <-a.done; err != nil {
		return store.Appended{}, err
	}
	return a.result, nil
}

// valid says what is wrong with a batch whatever the feed has.
func valid(b store.Batch) error {
	if b.Ref.ID == "" {
		return errors.New("append to the feed: the batch names no session")
	}
	for _, e := range b.Entries {
		if e.Record != nil && len(e.Record.Payload) > feed.MaxRecord {
			return fmt.Errorf("append to the feed: a payload of %d bytes is over the %d bytes that a record may have",
				len(e.Record.Payload), feed.MaxRecord)
		}
		if b.Spool != "" && (e.SpoolSeq < 0 || e.SpoolSeq == 0 && e.Key == "") {
			return fmt.Errorf("append to the feed: an entry of the spool %s has the sequence %d and no key, but they begin with 1",
				b.Spool, e.SpoolSeq)
		}
	}
	return nil
}

// newEntries leaves out the entries that are durable, the last of which is uploaded (0: the session has not seen the spool), and gives the
// last one that will be.
func newEntries(b store.Batch, uploaded int64) (entries []store.FeedEntry, last int64, err error) {
	if b.Spool == "" {
		return b.Entries, 0, nil
	}
	last = uploaded
	for _, e := range b.Entries {
		switch {
		case e.SpoolSeq == 0:
			entries = append(entries, e) // its key says whether it is new
		case e.SpoolSeq <= last:
		case e.SpoolSeq == last+1 || last == 0:
			entries = append(entries, e)
			last = e.SpoolSeq
		default:
			return nil, 0, fmt.Errorf("append to the feed: the spool %s of session %s comes with entry %d, and the last one that is durable "+
				"is %d: %w", b.Spool, b.Ref.ID, e.SpoolSeq, uploaded, store.ErrGap)
		}
	}
	return entries, last, nil
}

// answer implements task.
func (a *appending) answer(err error) { a.done <- err }

// run implements task.
func (a *appending) run(c *conn) error {
	if c == nil {
		return nil
	}
	b, m := a.batch, a.memory
	s, err := m.session(b.Ref.ID)
	if err != nil {
		return err
	}
	spool := &feedSpool{}
	if s != nil && b.Spool != "" {
		if spool, err = m.spool(s, b.Spool); err != nil {
			return err
		}
	}
	entries, last, err := newEntries(b, spool.seq)
	if err != nil {
		return err
	}
	a.result.SpoolSeq = last
	if len(entries) == 0 {
		return nil
	}
	if s != nil && s.latest+int64(len(entries)) > maxPlace {
		return fmt.Errorf("append to the feed: session %s has %d records and can have no more", b.Ref.ID, s.latest)
	}
	if err := a.write(s, entries, last); err != nil {
		return spoiled{err}
	}
	return nil
}

// write stores entries that are new. s is nil if the session is.
func (a *appending) write(s *feedSession, entries []store.FeedEntry, last int64) (err error) {
	b, m := a.batch, a.memory
	if s == nil {
		if s, err = m.add(b.Ref); err != nil {
			return err
		}
	}
	var spool *feedSpool
	if b.Spool != "" {
		if spool, err = m.spool(s, b.Spool); err != nil {
			return err
		}
		if spool.n == 0 {
			if err := m.c.run(addSpool, nil, s.n, b.Spool); err != nil {
				return err
			}
			spool.n = m.c.db.LastInsertRowID()
		}
		spool.seq = last
	}
	for _, e := range entries {
		if e.Record == nil {
			continue
		}
		stored, err := m.take(s, e)
		if err != nil {
			return err
		}
		if stored.Seq != 0 {
			a.result.Records = append(a.result.Records, stored)
		}
	}
	if s.closed {
		return m.pack(s) // hardly anything comes after it, and a trim looks at packs alone
	}
	return m.write(s, spool)
}

// take gives a record its place, unless there is one with its key; then it gives nothing.
func (m *feedMemory) take(s *feedSession, e store.FeedEntry) (store.Stored, error) {
	place := s.latest + 1
	if e.Key != "" {
		if err := m.c.run(writeMark, nil, s.n, keyMark(e.Key), place); err != nil {
			return store.Stored{}, err
		}
		if m.c.db.Changes() == 0 {
			return store.Stored{}, nil
		}
	}
	r := *e.Record
	r.SessionID, r.FeedSeq, r.ID = s.id, place, recordID(s.id, place)
	stored := store.Stored{Seq: place, JSON: feed.AppendRecord(make([]byte, 0, len(r.Payload)+3*len(s.id)+512), &r)}
	if r.Format == feed.FormatLifecycle {
		if err := m.tell(s, &r); err != nil {
			return store.Stored{}, err
		}
	}
	s.latest = place
	s.tail = append(s.tail, stored)
	s.tailBytes += int64(len(stored.JSON))
	m.resize(s, int64(len(stored.JSON)))
	if s.tailBytes >= m.limits.packBytes {
		return stored, m.pack(s)
	}
	return stored, nil
}

// tell remembers what a record of the platform says about its session.
func (m *feedMemory) tell(s *feedSession, r *feed.Record) error {
	switch {
	case r.Type == feed.TypeTurnEnded && r.TurnID != nil:
		return m.c.run(writeMark, nil, s.n, turnMark(*r.TurnID), r.FeedSeq)
	case r.Type == feed.TypeSessionClosed && !s.closed:
		s.closed, s.closedAt = true, nanos(r.CreatedAt)
	}
	return nil
}

// recordID is the id of a session's record: ids of sessions are unique, and so are places in one.
func recordID(session string, place int64) string {
	return session + "-" + strconv.FormatInt(place, 10)
}

// keyMark and turnMark are what a session remembers of a key, and of a turn that has ended.
func keyMark(key string) []byte { return hashMark("key", key) }

func turnMark(turn string) []byte { return hashMark("turn", turn) }

func hashMark(kind, of string) []byte {
	sum := sha256.Sum256([]byte(kind + "\x00" + of))
	return sum[:16]
}
