package codex

// This file keeps, in the home, what the rounds of a thread have to know of each other: what it used, model by model. Codex
// tells one running total of a thread, whatever models worked in it, tells it again when the thread is resumed, and may begin it anew. So
// what is new in it is added up here, for the model that it was used with.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// memories are the folder of all memories.
type memories struct{ dir string }

func memoriesOf(env []string) memories {
	home := lookup(env, "HOME")
	if home == "" {
		return memories{} // nothing is kept
	}
	return memories{filepath.Join(home, ".bullpen", Name)}
}

// keepMemories is how long memories are kept of threads that nobody resumes.
const keepMemories = 365 * 24 * time.Hour

// memory is what is kept of a thread. Losing it costs little: totals then count from those that Codex tells.
type memory struct {
	// path is its file; an empty one is not kept.
	path string
	// System is the digest of the instructions that the thread was given last.
	System string `json:"system"`
	// Spent says that the thread has no room for another turn.
	Spent bool `json:"spent,omitempty"`
	// Limited is the usage window that the runtime made up because Codex told none, while it counts.
	Limited string `json:"limited,omitempty"`
	// Ledgers are what was used, by the ids of threads: this one's, and those of other agents that Codex started in it.
	Ledgers map[string]*ledger `json:"ledgers"`
}

// ledger is what one thread used.
type ledger struct {
	// Model worked in the thread last.
	Model string `json:"model"`
	// Seen is the running total that was told last.
	Seen counts `json:"seen"`
	// Models has the sums by model.
	Models map[string]counts `json:"models"`
	// touched says that this round was told of it.
	touched bool
}

// counts are tokens, each in one of them only.
type counts struct {
	Input         int64 `json:"input"`
	CacheRead     int64 `json:"cacheRead"`
	CacheCreation int64 `json:"cacheCreation"`
	Output        int64 `json:"output"`
}

func (c counts) plus(d counts) counts {
	return counts{c.Input + d.Input, c.CacheRead + d.CacheRead, c.CacheCreation + d.CacheCreation, c.Output + d.Output}
}

func (c counts) minus(d counts) counts {
	return counts{c.Input - d.Input, c.CacheRead - d.CacheRead, c.CacheCreation - d.CacheCreation, c.Output - d.Output}
}

// negative says whether any count is below 0.
func (c counts) negative() bool { return min(c.Input, c.CacheRead, c.CacheCreation, c.Output) < 0 }

// usageView is a thread's usage as the app-server tells it.
type usageView struct {
	Total tokensView `json:"total"`
	Last  tokensView `json:"last"`
}

// tokensView are tokens as Codex counts them: those of the cache are input too.
type tokensView struct {
	Input      int64 `json:"inputTokens"`
	Cached     int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
}

// counts makes the four add up.
func (v tokensView) counts() counts {
	return counts{
		Input: max(0, v.Input-v.Cached-v.CacheWrite), CacheRead: v.Cached, CacheCreation: v.CacheWrite, Output: v.Output,
	}
}

// threadID is what the id of a thread looks like that can name a file.
var threadID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// recall reads the memory of a thread. One that is not there, or cannot be read, is empty.
func (all memories) recall(thread string) *memory {
	m := &memory{}
	if all.dir != "" && threadID.MatchString(thread) {
		path := filepath.Join(all.dir, thread+".json")
		if data, err := os.ReadFile(path); err != nil || json.Unmarshal(data, m) != nil {
			m = &memory{}
		}
		m.path = path
	}
	if m.Ledgers == nil {
		m.Ledgers = map[string]*ledger{}
	}
	for id, l := range m.Ledgers {
		if l == nil {
			delete(m.Ledgers, id)
		} else if l.Models == nil {
			l.Models = map[string]counts{}
		}
	}
	return m
}

// save writes the memory so that it is there whole or not at all.
func (m *memory) save(log *slog.Logger) {
	if m.path == "" {
		return
	}
	data, err := json.Marshal(m)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(m.path), 0o700)
	}
	if err == nil {
		err = disk.Swap(m.path, data)
	}
	if err != nil {
		log.Warn("what the thread used cannot be noted; a change of the model may be counted wrongly", "error", err)
	}
}

// prune removes the memories of threads that nobody resumed for long.
func (all memories) prune(now time.Time, log *slog.Logger) {
	entries, err := os.ReadDir(all.dir)
	if err != nil {
		return // there are none yet
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) < keepMemories {
			continue
		}
		if err := os.Remove(filepath.Join(all.dir, entry.Name())); err != nil {
			log.Warn("the memory of an old thread cannot be removed", "error", err)
		}
	}
}

// digest names a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// changed says whether the thread was given other instructions than these.
func (m *memory) changed(system string) bool { return m.System != "" && m.System != system }

// count takes a thread's usage. Of the round's own thread the first total counts whole; that of another agent may have begun with what the
// thread had used that it was made from, so there only its last call does. earlier says that it was used before this round.
func (m *memory) count(thread, model string, own, earlier bool, usage usageView) {
	total := usage.Total.counts()
	l := m.Ledgers[thread]
	if l == nil {
		l = &ledger{Models: map[string]counts{}}
		if before := total.minus(usage.Last.counts()); !own && !before.negative() {
			l.Seen = before
		}
		m.Ledgers[thread] = l
	}
	l.touched = true
	fresh := total.minus(l.Seen)
	if fresh.negative() {
		fresh = total // it began anew
	}
	l.Seen = total
	if earlier {
		model = cmp.Or(l.Model, model)
	}
	l.Model = model
	if fresh != (counts{}) {
		l.Models[model] = l.Models[model].plus(fresh)
	}
}

// usage gives the running totals of the threads that this round was told of.
func (m *memory) usage() []protocol.SessionUsage {
	var all []protocol.SessionUsage
	for id, l := range m.Ledgers {
		if !l.touched || len(l.Models) == 0 {
			continue
		}
		models := map[string]protocol.ModelUsage{}
		for name, c := range l.Models {
			models[name] = protocol.ModelUsage{
				InputTokens: c.Input, OutputTokens: c.Output, CacheReadTokens: c.CacheRead, CacheCreationTokens: c.CacheCreation,
			}
		}
		all = append(all, protocol.SessionUsage{Session: id, Models: models})
	}
	slices.SortFunc(all, func(a, b protocol.SessionUsage) int { return strings.Compare(a.Session, b.Session) })
	return all
}
