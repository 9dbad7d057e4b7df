package office

// This file renders the team config that agents get in welcome, and notices when it changed.

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// config is a team's config as it goes over the wire.
type config struct {
	raw       protocol.Raw
	sum       [sha256.Size]byte
	heartbeat int
}

// configs keeps rendered configs until something in them changes.
type configs struct {
	store store.Store
	mu    sync.Mutex
	cache map[model.TeamKey]config
	// version counts invalidations, so that a config rendered from older facts is never kept.
	version int64
}

func newConfigs(s store.Store) *configs {
	return &configs{store: s, cache: map[model.TeamKey]config{}}
}

// get gives the team's config; store.ErrNotFound where there is no such team.
func (c *configs) get(ctx context.Context, key model.TeamKey) (config, error) {
	c.mu.Lock()
	cached, ok := c.cache[key]
	version := c.version
	c.mu.Unlock()
	if ok {
		return cached, nil
	}
	var team model.Team
	var people []model.Person
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		if team, err = r.Team(key); err != nil {
			return err
		}
		people, err = r.People(key)
		return err
	})
	if err != nil {
		return config{}, err
	}
	raw, err := render(team, people)
	if err != nil {
		return config{}, err
	}
	fresh := config{raw: raw, sum: sha256.Sum256(raw), heartbeat: int(team.Policy.Heartbeat.Milliseconds())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version == version {
		c.cache[key] = fresh
	}
	return fresh, nil
}

// invalidate forgets the team's config.
func (c *configs) invalidate(key model.TeamKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	delete(c.cache, key)
}

// changed says whether the team's config is known to differ from the one with that sum.
func (c *configs) changed(key model.TeamKey, sum [sha256.Size]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, ok := c.cache[key]
	return ok && cached.sum != sum
}

// render puts the people into the team's config. A person whose role the team does not have (yet) is listed without one.
func render(team model.Team, people []model.Person) (protocol.Raw, error) {
	c := team.Config
	roles := map[string]bool{}
	for _, r := range c.Roles {
		roles[r.Name] = true
	}
	c.People = make([]protocol.TeamPerson, 0, len(people))
	for _, p := range people {
		entry := protocol.TeamPerson{
			Handle: p.Key.Handle, Name: p.DisplayName, Runtime: p.Runtime, Model: p.Model, Tools: p.Tools, Services: p.Services,
			Command: p.Command, Environment: p.Environment, Effort: p.Effort, FallbackModel: p.FallbackModel, MaxTurns: p.MaxTurns,
			AllowedTools: p.AllowedTools, Approvals: p.Approvals, MCPServers: p.MCPServers,
		}
		if roles[p.Role] {
			entry.Role = p.Role
		}
		c.People = append(c.People, entry)
	}
	return c.Encode()
}
