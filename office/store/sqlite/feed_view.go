package sqlite

// This file has what readers see of sessions that have records which are not packed.

import (
	"slices"
	"sync"

	"github.com/bullpen-dev/bullpen/office/store"
)

// feedView is what the logs have, as of the last commit. A reader looks here first and then into the file: what it does not find here was
// in the packs before.
type feedView struct {
	lock     sync.RWMutex
	sessions map[string]*viewed
}

// viewed is a session that has something in the logs which is not packed. It never changes, but for what tail has beyond its length.
type viewed struct {
	n, team              int64
	first, latest, bytes int64
	closed               bool
	closedAt             int64
	tail                 []store.Stored
	tailBytes            int64
	log                  int
	spools               []feedSpool
}

func newFeedView() *feedView { return &feedView{sessions: map[string]*viewed{}} }

// get gives the session, nil if all that there is of it is in the file.
func (v *feedView) get(id string) *viewed {
	v.lock.RLock()
	defer v.lock.RUnlock()
	return v.sessions[id]
}

// publish shows sessions as they are now.
func (v *feedView) publish(changed map[*feedSession]bool) {
	if len(changed) == 0 {
		return
	}
	v.lock.Lock()
	defer v.lock.Unlock()
	for s := range changed {
		if !s.logs {
			delete(v.sessions, s.id)
			continue
		}
		v.sessions[s.id] = &viewed{
			n: s.n, team: s.team.n, first: s.first, latest: s.latest, bytes: s.bytes, closed: s.closed, closedAt: s.closedAt,
			tail: s.tail, tailBytes: s.tailBytes, log: s.log, spools: slices.Clone(s.spools),
		}
	}
}

// waiting lists the sessions by the log that has the first of what is not packed of them.
func (v *feedView) waiting() (ids [2]map[string]bool) {
	ids = [2]map[string]bool{{}, {}}
	v.lock.RLock()
	defer v.lock.RUnlock()
	for id, s := range v.sessions {
		ids[s.log][id] = true
	}
	return ids
}

// session gives the session as the writer knows it, but for its team.
func (s *viewed) session(id string) *feedSession {
	return &feedSession{
		id: id, n: s.n, first: s.first, latest: s.latest, bytes: s.bytes, closed: s.closed, closedAt: s.closedAt,
		// A copy, because what was beyond the length may be somebody's.
		tail: slices.Clone(s.tail), tailBytes: s.tailBytes, logged: len(s.tail), logs: true, log: s.log, spools: slices.Clone(s.spools),
	}
}

// uploaded gives the last sequence of a spool, if it is known here.
func (s *viewed) uploaded(spool string) (seq int64, known bool) {
	for _, of := range s.spools {
		if of.name == spool {
			return of.seq, true
		}
	}
	return 0, false
}
