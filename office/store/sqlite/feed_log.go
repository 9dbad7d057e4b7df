package sqlite

// This file keeps the logs of a feed, where records are until they are packed. To append there changes a page or two for many records,
// while to add each to the others of its session would change a page for each.

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/store"
)

// feedLog is which log grows, and how many bytes of records each has.
type feedLog struct {
	active int
	bytes  [2]int64
}

// logRow is about how many bytes a row has beside its record.
const logRow = 20

// logEntry is a row of a log.
type logEntry struct {
	session, place, spool, seq int64
	json                       []byte
}

// write writes to the log what the session has got beyond it: records that are not packed, and how far a spool is, if that is not nil.
func (m *feedMemory) write(s *feedSession, spool *feedSpool) error {
	m.changed[s] = true
	fresh := s.tail[s.logged:]
	for n, r := range fresh {
		of := spool
		if n < len(fresh)-1 {
			of = nil // all of a batch is durable together, so the last row tells
		}
		if err := m.writeLog(s, of, r.Seq, r.JSON); err != nil {
			return err
		}
	}
	s.logged = len(s.tail)
	// What is settled at the end of the transaction tells of the spool, too.
	if len(fresh) > 0 || spool == nil || m.settled[s] {
		return nil
	}
	return m.writeLog(s, spool, 0, nil)
}

func (m *feedMemory) writeLog(s *feedSession, spool *feedSpool, place int64, json []byte) error {
	var n any
	seq := int64(0)
	if spool != nil {
		n, seq = spool.n, spool.seq
	}
	if err := m.c.run(writeLog[m.log.active], nil, s.n, place, n, seq, json); err != nil {
		return err
	}
	m.log.bytes[m.log.active] += int64(len(json)) + logRow
	if !s.logs {
		s.logs, s.log = true, m.log.active
		m.waiting[s.log][s.id] = true
	}
	return nil
}

// pack packs what the session has in the logs.
func (m *feedMemory) pack(s *feedSession) error {
	m.changed[s], m.settled[s] = true, true
	if s.logs {
		delete(m.waiting[s.log], s.id)
		s.logs = false
	}
	if len(s.tail) == 0 {
		return nil
	}
	records, err := m.withSmall(s)
	if err != nil {
		return err
	}
	p, err := m.packer.pack(records)
	if err != nil {
		return err
	}
	if s.latest-int64(len(s.tail)) >= p.first { // what was packed is packed anew
		if err := m.c.run(dropPacks, nil, recordNumber(s.n, p.first), recordNumber(s.n, s.latest)); err != nil {
			return err
		}
	}
	s.tail, s.tailBytes, s.logged = nil, 0, 0
	return m.c.run(writePack, nil, recordNumber(s.n, p.first), p.records, p.bytes, p.deflated, p.data)
}

// withSmall gives the session's records that are not packed, and before them those of its last packs as long as both are small, and a pack
// is no larger than twice what comes after it: so a session that gets little at a time has few packs, and each record is packed anew a few
// times only.
func (m *feedMemory) withSmall(s *feedSession) (records []store.Stored, err error) {
	before, bytes, enough := s.latest-int64(len(s.tail)), s.tailBytes, m.limits.packBytes/8
	if bytes >= enough {
		return s.tail, nil
	}
	var small [][]store.Stored
	err = m.c.run(lastPacks, func(row *sqlite3.Stmt) error {
		size := row.ColumnInt64(2)
		if bytes >= enough || size >= enough || size > 2*bytes {
			return errEnough // and the data is not read
		}
		records, err := scanPack(row).unpack()
		if err != nil {
			return errEnough // it stays as it is: who reads it is told, and the session goes on
		}
		small = append(small, records)
		bytes += size
		return nil
	}, recordNumber(s.n, 0), recordNumber(s.n, before))
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	slices.Reverse(small)
	return slices.Concat(append(small, s.tail)...), nil
}

// rotate empties a log that is long, some sessions at a time, while the other one grows.
func (m *feedMemory) rotate() error {
	idle := 1 - m.log.active
	full := m.log.bytes[m.log.active] >= m.limits.logBytes
	if m.log.bytes[idle] > 0 {
		// Faster than the other one grows.
		left := max(m.limits.stepBytes, 2*(m.log.bytes[m.log.active]-m.durable.bytes[m.log.active]))
		for id := range m.waiting[idle] {
			s, err := m.session(id)
			if err != nil {
				return err
			}
			left -= s.tailBytes
			if err := m.pack(s); err != nil {
				return err
			}
			if left <= 0 && !full {
				return nil
			}
		}
		if err := m.c.run(clearLog[idle], nil); err != nil {
			return err
		}
		m.log.bytes[idle] = 0
	}
	if !full {
		return nil
	}
	m.log.active = idle
	return m.c.run(activateLog, nil, idle)
}

// replay reads what the logs have, when a feed is opened.
func (m *feedMemory) replay() error {
	if err := m.c.run(readFeed, func(row *sqlite3.Stmt) error { m.log.active = row.ColumnInt(1) & 1; return nil }); err != nil {
		return err
	}
	byNumber := map[int64]*feedSession{}
	for _, log := range []int{1 - m.log.active, m.log.active} {
		var entries []logEntry
		if err := m.c.run(readLog[log], func(row *sqlite3.Stmt) error {
			entries = append(entries, logEntry{
				session: row.ColumnInt64(0), place: row.ColumnInt64(1), spool: row.ColumnInt64(2), seq: row.ColumnInt64(3),
				json: bytes.Clone(row.ColumnRawBlob(4)),
			})
			return nil
		}); err != nil {
			return err
		}
		for _, e := range entries {
			s := byNumber[e.session]
			if s == nil {
				var err error
				if s, err = m.numbered(e.session); err != nil {
					return err
				}
				byNumber[e.session] = s
			}
			m.log.bytes[log] += int64(len(e.json)) + logRow
			if err := m.again(s, log, e); err != nil {
				return err
			}
		}
	}
	m.ended(nil)
	return nil
}

// numbered gives the session of a number, which there must be.
func (m *feedMemory) numbered(n int64) (*feedSession, error) {
	id := ""
	if err := m.c.run(nameFeedSession, func(row *sqlite3.Stmt) error { id = row.ColumnText(0); return nil }, n); err != nil {
		return nil, err
	}
	s, err := m.session(id)
	if err == nil && s == nil {
		err = fmt.Errorf("there is something of a session %d, which is unknown", n)
	}
	return s, err
}

// again takes an entry of a log.
func (m *feedMemory) again(s *feedSession, log int, e logEntry) error {
	fresh := e.place > s.latest
	if e.place > s.latest+1 {
		return fmt.Errorf("the log has the record %d of session %s after %d", e.place, s.id, s.latest)
	}
	if fresh {
		s.tail = append(s.tail, store.Stored{Seq: e.place, JSON: e.json})
		s.tailBytes += int64(len(e.json))
		s.bytes += int64(len(e.json)) // the team's size is settled with every commit
		s.logged, s.latest = len(s.tail), e.place
	}
	if e.spool != 0 {
		spool, err := m.spoolNumbered(s, e.spool)
		if err != nil {
			return err
		}
		if e.seq > spool.seq {
			spool.seq, fresh = e.seq, true
		}
	}
	if fresh && !s.logs {
		s.logs, s.log = true, log
		m.waiting[log][s.id] = true
	}
	if fresh {
		m.changed[s] = true
	}
	return nil
}

// spoolNumbered gives the session's spool of a number.
func (m *feedMemory) spoolNumbered(s *feedSession, n int64) (*feedSpool, error) {
	name := ""
	if err := m.c.run(readSpool, func(row *sqlite3.Stmt) error { name = row.ColumnText(0); return nil }, n); err != nil {
		return nil, err
	}
	spool, err := m.spool(s, name)
	if err == nil && spool.n != n {
		err = fmt.Errorf("the log has something of the spool %d of session %s, which is unknown", n, s.id)
	}
	return spool, err
}
