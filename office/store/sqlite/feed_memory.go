package sqlite

// This file has what the writer of a feed knows of the sessions, spools and teams that it writes to, so that most appends read nothing.

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

// feedMemory belongs to the writer's goroutine. It is what the file and the view have, with what the open transaction has changed; all of
// that can be forgotten if the transaction fails.
type feedMemory struct {
	c      *conn
	view   *feedView
	limits feedLimits
	packer packer

	sessions map[string]*feedSession
	teams    map[int64]*feedTeam
	log      feedLog
	// durable is what log was after the last commit.
	durable feedLog
	// waiting are the ids of sessions that have something in a log which is not packed.
	waiting [2]map[string]bool
	// What the open transaction has changed: sessions in any way, those whose head and spools are to be written, and teams.
	changed map[*feedSession]bool
	settled map[*feedSession]bool
	resized map[*feedTeam]bool
}

// feedLimits bound what is kept in memory and in the logs.
type feedLimits struct {
	// sessions are remembered, some megabytes.
	sessions int
	// A session's records are packed once they have packBytes. A log is packed and emptied once it has logBytes: all of both logs is in
	// memory, and is read when a feed is opened. Each commit packs stepBytes for that.
	packBytes, logBytes, stepBytes int64
}

// feedSession is a session as the writer knows it.
type feedSession struct {
	n                    int64
	id                   string
	team                 *feedTeam
	first, latest, bytes int64
	closed               bool
	closedAt             int64
	// tail are the records that are not packed, logged how many of them the logs have.
	tail      []store.Stored
	tailBytes int64
	logged    int
	// logs says whether a log has something of the session that is not packed, and log which one has the first of it.
	logs bool
	log  int
	// spools are those that were asked for.
	spools []feedSpool
}

// feedSpool is a spool and its last sequence.
type feedSpool struct {
	n    int64
	name string
	seq  int64
}

type feedTeam struct{ n, bytes int64 }

func newFeedMemory(c *conn, view *feedView, limits feedLimits) *feedMemory {
	m := &feedMemory{c: c, view: view, limits: limits}
	m.forget()
	return m
}

// forget goes back to what is durable.
func (m *feedMemory) forget() {
	m.sessions, m.teams = map[string]*feedSession{}, map[int64]*feedTeam{}
	m.changed, m.settled, m.resized = map[*feedSession]bool{}, map[*feedSession]bool{}, map[*feedTeam]bool{}
	m.log = m.durable
	m.waiting = m.view.waiting()
}

// session gives the session, nil if the feed has none.
func (m *feedMemory) session(id string) (*feedSession, error) {
	if s := m.sessions[id]; s != nil {
		return s, nil
	}
	var s *feedSession
	var team int64
	if v := m.view.get(id); v != nil {
		s, team = v.session(id), v.team
	} else if err := m.c.run(loadFeedSession, func(row *sqlite3.Stmt) error {
		s = &feedSession{
			id: id, n: row.ColumnInt64(0), first: row.ColumnInt64(2), latest: row.ColumnInt64(3), bytes: row.ColumnInt64(4),
			closed: row.ColumnType(5) != sqlite3.NULL, closedAt: row.ColumnInt64(5),
		}
		team = row.ColumnInt64(1)
		return nil
	}, id); err != nil || s == nil {
		return nil, err
	}
	if s.team = m.teams[team]; s.team == nil {
		s.team = &feedTeam{n: team}
		if err := m.c.number(readTeamBytes, &s.team.bytes, team); err != nil {
			return nil, err
		}
		m.teams[team] = s.team
	}
	m.sessions[id] = s
	return s, nil
}

// add begins a session. It is the team's of its first batch, whatever later ones say.
func (m *feedMemory) add(ref feed.SessionRef) (*feedSession, error) {
	team, err := m.team(ref.Namespace, ref.Team)
	if err != nil {
		return nil, err
	}
	if team == nil {
		if err := m.c.run(addTeam, nil, ref.Namespace, ref.Team); err != nil {
			return nil, err
		}
		team = &feedTeam{n: m.c.db.LastInsertRowID()}
		m.teams[team.n] = team
	}
	if err := m.c.run(addFeedSession, nil, ref.ID, team.n); err != nil {
		return nil, err
	}
	s := &feedSession{n: m.c.db.LastInsertRowID(), id: ref.ID, team: team, first: 1}
	if s.n > maxSession {
		return nil, fmt.Errorf("the feed has %d sessions and can have no more: move it away to go on with an empty one", maxSession)
	}
	m.sessions[ref.ID] = s
	m.settled[s] = true
	return s, nil
}

// team gives the team, nil if the feed has none.
func (m *feedMemory) team(namespace, name string) (team *feedTeam, err error) {
	err = m.c.run(findTeam, func(row *sqlite3.Stmt) error {
		n := row.ColumnInt64(0)
		if team = m.teams[n]; team == nil {
			team = &feedTeam{n: n, bytes: row.ColumnInt64(1)}
			m.teams[n] = team
		}
		return nil
	}, namespace, name)
	return team, err
}

// spool gives a spool of the session; its number is 0 if the session has none of that name.
func (m *feedMemory) spool(s *feedSession, name string) (*feedSpool, error) {
	for n := range s.spools {
		if s.spools[n].name == name {
			return &s.spools[n], nil
		}
	}
	found := feedSpool{name: name}
	if err := m.c.run(loadSpool, func(row *sqlite3.Stmt) error {
		found.n, found.seq = row.ColumnInt64(0), row.ColumnInt64(1)
		return nil
	}, s.n, name); err != nil {
		return nil, err
	}
	s.spools = append(s.spools, found)
	return &s.spools[len(s.spools)-1], nil
}

// resize counts bytes that came or went.
func (m *feedMemory) resize(s *feedSession, bytes int64) {
	s.bytes += bytes
	s.team.bytes += bytes
	m.resized[s.team] = true
}

// flush writes what the transaction has left to its end.
func (m *feedMemory) flush() error {
	if err := m.rotate(); err != nil {
		return err
	}
	for s := range m.settled {
		if err := m.settle(s); err != nil {
			return err
		}
	}
	for t := range m.resized {
		if err := m.c.run(sizeTeam, nil, t.bytes, t.n); err != nil {
			return err
		}
	}
	return nil
}

// settle writes what is known of a session but for what the logs have.
func (m *feedMemory) settle(s *feedSession) error {
	var closed any
	if s.closed {
		closed = s.closedAt
	}
	if err := m.c.run(writeHead, nil, s.n, s.first, s.latest-int64(len(s.tail)), s.bytes-s.tailBytes, closed); err != nil {
		return err
	}
	for _, spool := range s.spools {
		if spool.n == 0 {
			continue
		}
		if err := m.c.run(writeSpool, nil, spool.seq, spool.n); err != nil {
			return err
		}
	}
	if !s.closed || s.first > s.latest {
		return nil
	}
	return m.c.run(writeClosing, nil, s.team.n, s.closedAt, s.n)
}

// ended hears how a group commit ended: readers see what is durable, and what is not is forgotten.
func (m *feedMemory) ended(err error) {
	if err != nil {
		m.forget()
		return
	}
	m.durable = m.log
	m.view.publish(m.changed)
	clear(m.changed)
	clear(m.settled)
	clear(m.resized)
	if len(m.sessions) > m.limits.sessions {
		clear(m.sessions)
	}
}
