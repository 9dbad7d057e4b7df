// Package runtime is the small interface behind which the programs that do the thinking live: command, claude, codex.
//
// An agent runs one round of one item at a time: Run starts the runtime on the offer and returns how the round ended. What a
// runtime is allowed to know comes in Round, and what it tells on the way goes to Sink.
package runtime

import (
	"context"
	"encoding/json"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Round is one round of work for a runtime.
type Round struct {
	// Offer is the item with its context, as it came. Payload is its JSON.
	Offer   protocol.Offer
	Payload []byte
	// Number counts the rounds of the item that this home has seen, from 1.
	Number int
	// Dir is the item's folder, which lasts over rounds and restarts. Scratch is empty at the start of the round and
	// removed after it.
	Dir     string
	Scratch string
	// ProcessRecord is the file in which the runtime notes the program it runs (process.Options.Record), so that the
	// agent's next life, or an agent in a hurry, can end it.
	ProcessRecord string
	// SessionID is the runtime session to resume, or empty.
	SessionID string
	// Resumed says that the same round was already started by an earlier process of this agent.
	Resumed bool
	// Env is the environment of the program, with the item's variables of the contract.
	Env []string
	// Model that the person is configured with; empty leaves it to the runtime.
	Model string
	// Person is who works, as the team config says. Role is its role there, nil where it has none.
	Person protocol.TeamPerson
	Role   *protocol.TeamRole
	// Workdir is where the program runs: the worktree, where the item has exactly one, else Dir. Worktrees are the item's checkouts.
	Workdir   string
	Worktrees []Worktree
	// Grace is how long a program has to end by itself when ctx ended.
	Grace time.Duration
	// Team is the team config that the office gave.
	Team protocol.TeamConfig
}

// Worktree is a repository's checkout for one item, on a branch of its own.
type Worktree struct {
	// Name is the repository's in the team config, URL where it was cloned from.
	Name, URL string
	// Dir is the checkout, Branch its branch, Base the commit that the branch began at.
	Dir, Branch, Base string
}

// Record is a message of the runtime for the session's feed, as it came.
type Record struct {
	// Source, Format and Type are those of feed.Record; Payload is a JSON object.
	Source, Format, Type string
	Payload              json.RawMessage
	// Echo says which message a user message repeats; see feed.Entry.
	Echo *int
}

// Sink takes what a runtime tells while it runs. Its methods do not block for the network and may be called from any
// goroutine, until Run returns.
type Sink interface {
	// Progress shows people a short line.
	Progress(text string)
	// Journal appends a line that later rounds start from.
	Journal(text string)
	// Session says which runtime session works the item, and its concrete model where known.
	Session(id, model string)
	// Record puts a message of the runtime into the session's feed. The bytes are the sink's from then on. Started must come first.
	Record(r Record)
	// Delta shows those who watch a piece of what the runtime is writing. It may be dropped.
	Delta(d feed.Delta)
	// Started says that the runtime has begun on the round's messages: the turn runs. Only its first call counts.
	Started()
	// Usage reports the runtime's usage windows.
	Usage(windows []protocol.UsageWindow)
}

// Result is how a round ended: a hand-back, or with Failed a fail. When ctx ended the round its status is interrupted,
// unless the program finished in time and said how.
type Result struct {
	Status   protocol.HandbackStatus
	Summary  string
	Links    []protocol.Link
	ToReview []string
	Usage    []protocol.SessionUsage
	// Failed is the reason why the item could not be done; empty for a hand-back.
	Failed string
}

// Runtime runs rounds.
type Runtime interface {
	// Name is claude, codex or command.
	Name() string
	// Doctor checks that the runtime can work here, without a model call. While a check of it fails, the agent declines
	// offers with the check's detail.
	Doctor(ctx context.Context) []protocol.DoctorCheck
	// Run works one round until it ends or ctx does. When ctx ends it stops every process it started, gently first, and
	// returns what there is to hand back. It reports trouble of the work in Result.Failed; an error means that the runtime
	// itself is broken, and fails the round too.
	Run(ctx context.Context, round Round, sink Sink) (Result, error)
}
