// Package claude is the runtime that works rounds with Claude Code. Each round is one process of its command-line program, which is
// spoken to in JSON lines both ways: the round's messages go in, and what it prints is kept as records, shown as it is written, and
// read for usage, limits and the end of the round. docs/agent.md describes it for those who build images.
package claude

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Name of the runtime.
const Name = "claude"

// Claude is the runtime. Its rounds may not overlap.
type Claude struct {
	// Program is Claude Code's command, claude if it is empty.
	Program string
	// Home is the person's home: a login of Claude Code may be in it, and the runtime keeps what sessions used below .bullpen there.
	Home string
	// Env is the agent's environment, for the doctor; a round brings its own.
	Env []string
	// Log gets what the program writes to its standard error, and what of its output is no message.
	Log *slog.Logger

	mu sync.Mutex
	// windows are the limits of the subscription as last heard of.
	windows []protocol.UsageWindow
	// limited is when a limit last ended a round.
	limited time.Time
	// pause is how long a round waits at its end that a limit ends soon after another one; limitPause if it is 0.
	pause time.Duration
	// linger is how long a process may be quiet once it has answered; lingerWait and leavingWait if it is 0.
	linger time.Duration
}

var _ runtime.Runtime = (*Claude)(nil)

// Name returns the runtime's name.
func (c *Claude) Name() string { return Name }

// program is the command.
func (c *Claude) program() string {
	if c.Program == "" {
		return "claude"
	}
	return c.Program
}

// Run works a round with Claude Code. A session that it no longer has is started anew, from the journal.
func (c *Claude) Run(ctx context.Context, round runtime.Round, sink runtime.Sink) (runtime.Result, error) {
	if round.Workdir == "" {
		round.Workdir = round.Dir
	}
	ledger := ledger{dir: filepath.Join(c.Home, ".bullpen", Name)}
	ledger.prune(time.Now(), c.Log)
	end, err := c.attempt(ctx, round, sink, ledger)
	if err == nil && end.lost && ctx.Err() == nil {
		c.Log.Warn("a session is lost; it is started anew", "item", round.Offer.WorkItem.ID, "session", round.SessionID)
		sink.Journal("The conversation of the earlier rounds (session " + round.SessionID + ") is lost. " +
			"This round started anew, from the journal.")
		round.SessionID = ""
		end, err = c.attempt(ctx, round, sink, ledger)
	}
	if err != nil {
		return runtime.Result{}, err
	}
	if end.limited {
		c.slowDown(ctx)
	}
	return end.result, nil
}

// limitPause is the pause between two rounds that a limit ends. A person whose limit is reached gets no offers until it is over; but
// where the team has that turned off, offers would come without end.
const limitPause = time.Minute

// slowDown waits at the end of a round that a limit ended, if one did shortly before.
func (c *Claude) slowDown(ctx context.Context) {
	c.mu.Lock()
	pause := c.pause
	if pause == 0 {
		pause = limitPause
	}
	again := !c.limited.IsZero() && time.Since(c.limited) < 2*pause
	c.mu.Unlock()
	if again {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	c.limited = time.Now()
	c.mu.Unlock()
}

// files are those of a round in its scratch folder.
type files struct{ offer, system, mcp, result string }

func filesOf(round runtime.Round) files {
	at := func(name string) string { return filepath.Join(round.Scratch, name) }
	return files{offer: at("offer.json"), system: at("system.md"), mcp: at("mcp.json"), result: at("result.json")}
}

// resultEnv is the variable that names the result file to what the model runs.
func resultEnv(f files) string { return contract.EnvResultFile + "=" + f.result }
