package claude

// This file counts what a session used, right to the token.
//
// Claude Code tells totals with every result. Where they begin depends on its version: at zero with each process, or with what it knows
// of the session's earlier ones. So a process that resumes is given an opening message, which the model is not asked about: its result has
// the totals before any call, and what comes on top is the process's own. What earlier processes used is kept in a file.
//
// Between results there are the calls of the model themselves: each repeats its usage with every part of its message, and knows what it
// wrote only at its end, so the last figures of each message count, once. A result has all calls that came to their end; one that was cut
// short without an end is in none, and is added.

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// total is what was used of a model.
type total struct {
	Input         int64   `json:"input"`
	Output        int64   `json:"output"`
	CacheRead     int64   `json:"cacheRead"`
	CacheCreation int64   `json:"cacheCreation"`
	CostUSD       float64 `json:"costUsd"`
	// Uncosted says that there are tokens whose cost Claude Code never told. Then the cost says nothing about the session, and from then
	// on the office goes by list prices.
	Uncosted bool `json:"uncosted,omitempty"`
}

func (t total) plus(u total) total {
	return total{
		Input: t.Input + u.Input, Output: t.Output + u.Output, CacheRead: t.CacheRead + u.CacheRead,
		CacheCreation: t.CacheCreation + u.CacheCreation, CostUSD: t.CostUSD + u.CostUSD, Uncosted: t.Uncosted || u.Uncosted,
	}
}

// since is what came on top of u.
func (t total) since(u total) total {
	return total{
		Input: t.Input - u.Input, Output: t.Output - u.Output, CacheRead: t.CacheRead - u.CacheRead,
		CacheCreation: t.CacheCreation - u.CacheCreation, CostUSD: t.CostUSD - u.CostUSD, Uncosted: t.Uncosted,
	}
}

// atLeast is the larger of both, figure by figure. Nothing is less than zero.
func (t total) atLeast(u total) total {
	return total{
		Input: max(t.Input, u.Input, 0), Output: max(t.Output, u.Output, 0), CacheRead: max(t.CacheRead, u.CacheRead, 0),
		CacheCreation: max(t.CacheCreation, u.CacheCreation, 0), CostUSD: max(t.CostUSD, u.CostUSD, 0), Uncosted: t.Uncosted,
	}
}

// call is one call of the model.
type call struct {
	model string
	used  total
	// streamed says that its beginning was seen in the stream, done that its end was.
	streamed, done bool
}

// meter counts what one process uses.
type meter struct {
	// base is what the session used before.
	base map[string]total
	// before are the totals that Claude Code told before the process's first call; told are its totals as the last result has them, without
	// those; cut is what calls used that are in no result.
	before, told, cut map[string]total
	// begun says that totals are no longer those from before.
	begun bool
	// calls are those since the last result, by the message's id, and current the one that is streamed.
	calls   map[string]*call
	current *call
}

// newMeter is the meter of a process. One that resumes is told totals before its first call.
func newMeter(resumes bool) *meter {
	return &meter{begun: !resumes, before: map[string]total{}, told: map[string]total{}, cut: map[string]total{}, calls: map[string]*call{}}
}

// call gives the call of a message.
func (m *meter) call(c *content) *call {
	if c == nil || c.ID == "" || c.Model == synthetic {
		return nil
	}
	m.begun = true
	one := m.calls[c.ID]
	if one == nil {
		one = &call{model: c.Model}
		m.calls[c.ID] = one
	}
	return one
}

// begins takes the beginning of a streamed message.
func (m *meter) begins(c *content) {
	if m.current = m.call(c); m.current != nil {
		m.current.streamed = true
		m.current.used.take(c.Usage)
	}
}

// ends takes the figures at the end of the message that is streamed.
func (m *meter) ends(u *callUsage) {
	if m.current != nil {
		m.current.used.take(u)
		m.current.done = true
	}
}

// part takes a finished part of a message. Its figures are those of the beginning, so they count only where the stream has not told better.
func (m *meter) part(c *content) {
	if one := m.call(c); one != nil && !one.streamed {
		one.used.take(c.Usage)
	}
}

// take takes the figures that are there.
func (t *total) take(u *callUsage) {
	if u == nil {
		return
	}
	for _, f := range []struct {
		to   *int64
		from *int64
	}{{&t.Input, u.Input}, {&t.Output, u.Output}, {&t.CacheRead, u.CacheRead}, {&t.CacheCreation, u.CacheCreation}} {
		if f.from != nil {
			*f.to = max(0, *f.from)
		}
	}
}

// result takes the totals of a result. They never shrink.
func (m *meter) result(models map[string]modelUsage) {
	for name, u := range models {
		now := total{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheCreation: u.CacheCreation, Uncosted: u.CostUSD == nil}
		if u.CostUSD != nil {
			now.CostUSD = *u.CostUSD
		}
		if !m.begun {
			m.before[name] = now
			continue
		}
		m.told[name] = now.since(m.before[name]).atLeast(m.told[name])
	}
	for _, one := range m.calls {
		if one.streamed && !one.done {
			cut := one.used
			cut.Uncosted = cut != total{} // no result has its cost
			m.cut[one.model] = m.cut[one.model].plus(cut)
		}
	}
	m.calls, m.current = map[string]*call{}, nil
}

// totals are those of the session up to now.
func (m *meter) totals() map[string]total {
	sum := map[string]total{}
	for _, part := range []map[string]total{m.base, m.told, m.cut} {
		for name, t := range part {
			sum[name] = sum[name].plus(t)
		}
	}
	for _, one := range m.calls {
		used := one.used
		used.Uncosted = used != total{}
		sum[one.model] = sum[one.model].plus(used)
	}
	for name, t := range sum {
		if t == (total{}) {
			delete(sum, name)
		}
	}
	return sum
}

// usage is what a session used, for the office; nothing where it used nothing.
func usage(session string, totals map[string]total) []protocol.SessionUsage {
	if session == "" || len(totals) == 0 {
		return nil
	}
	models := map[string]protocol.ModelUsage{}
	for name, t := range totals {
		m := protocol.ModelUsage{
			InputTokens: t.Input, OutputTokens: t.Output, CacheReadTokens: t.CacheRead, CacheCreationTokens: t.CacheCreation,
		}
		if !t.Uncosted {
			m.CostUSD = &t.CostUSD
		}
		models[name] = m
	}
	return []protocol.SessionUsage{{Session: session, Models: models}}
}

// ledger keeps the totals of sessions, a file for each, below the home.
type ledger struct{ dir string }

// keepTotals is how long the totals of a session are kept that nobody resumes. Claude Code itself forgets a conversation earlier.
const keepTotals = 365 * 24 * time.Hour

// file is the file of a session; ok is false where the id is none of Claude Code's.
func (l ledger) file(session string) (path string, ok bool) {
	id, err := uuid.Parse(session)
	return filepath.Join(l.dir, id.String()+".json"), err == nil
}

// load gives what a session used up to now.
func (l ledger) load(session string) (map[string]total, error) {
	path, ok := l.file(session)
	if !ok {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var totals map[string]total
	if err == nil {
		err = json.Unmarshal(data, &totals)
	}
	if err != nil {
		return nil, fmt.Errorf("what session %s used before cannot be read: %w", session, err)
	}
	return totals, nil
}

// save keeps what a session used.
func (l ledger) save(session string, totals map[string]total) error {
	path, ok := l.file(session)
	if !ok || len(totals) == 0 {
		return nil
	}
	data, err := json.Marshal(totals)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return disk.Swap(path, data)
}

// prune removes the totals of sessions that nobody resumed for long.
func (l ledger) prune(now time.Time, log *slog.Logger) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return // there is none yet
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) < keepTotals {
			continue
		}
		if err := os.Remove(filepath.Join(l.dir, entry.Name())); err != nil {
			log.Warn("the totals of an old session cannot be removed", "error", err)
		}
	}
}
