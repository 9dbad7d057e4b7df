package office

// This file knows since when people are away.

import (
	"sync"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
)

// presence remembers when people went away and which agent they last had. Who never connected to this office is away since it
// opened, so that a restart of the office is no absence of theirs.
type presence struct {
	mu     sync.Mutex
	opened time.Time
	people map[model.PersonKey]seen
}

type seen struct {
	awayAt  time.Time
	version string
}

func (p *presence) init(now time.Time) {
	p.opened = now
	p.people = map[model.PersonKey]seen{}
}

func (p *presence) left(key model.PersonKey, version string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.people[key] = seen{awayAt: now, version: version}
}

func (p *presence) last(key model.PersonKey) seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.people[key]; ok {
		return s
	}
	return seen{awayAt: p.opened}
}

func (p *presence) forget(key model.PersonKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.people, key)
}
