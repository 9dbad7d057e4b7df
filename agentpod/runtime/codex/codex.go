// Package codex is the runtime that has Codex do the work: each round starts one `codex app-server` and speaks JSON-RPC with it over its
// standard input and output.
//
// The flow of a round: initialize, config/read (what the user's own configuration decides), account/read and, where a key is given in the
// environment, account/login/start; then thread/resume or thread/start, and turn/start with the round's messages. What the app-server
// tells (its notifications) goes to the session's feed byte for byte, except for streaming fragments, of which text and readable summaries
// of reasoning become live deltas. What it asks (approvals, input, tokens) is answered at once by the person's policy, so that nothing
// waits for somebody who is not there; questions and answers are no records, the items they are about are. When the round's context ends,
// the turn is interrupted, and then the process.
//
// The session id is that of the thread. A thread that cannot be resumed is lost: another one begins, with the item's journal.
//
// The pod is the sandbox: commands run without another one, unless the user's config.toml in CODEX_HOME ($HOME/.codex) names a sandbox
// or a permission profile. Nothing of what the runtime decides is written into the user's configuration; it goes along with the requests.
// So do the MCP servers with their secrets, which stand on no disk and in no command line.
package codex

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/prompt"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/result"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Name of the runtime.
const Name = "codex"

// Codex is the runtime. Its rounds may not overlap.
type Codex struct {
	// Program is the codex to run; empty is the one on PATH.
	Program string
	// Env is the environment in which the doctor looks; rounds bring their own.
	Env []string
	// Grace is how long Codex may take to end when a round's context ends and the round does not say.
	Grace time.Duration
	// Version is the agent's, which Codex is told.
	Version string
	Log     *slog.Logger

	// windows are those of the account, as last heard of.
	windows limits
	// limited is when a limit last ended a round.
	limited time.Time
	// pause is how long a round waits at its end that a limit ends soon after another one; limitPause if it is 0.
	pause time.Duration
}

var _ runtime.Runtime = (*Codex)(nil)

// Name returns the runtime's name.
func (c *Codex) Name() string { return Name }

func (c *Codex) program() string { return cmp.Or(c.Program, "codex") }

// defaultGrace is the grace where nobody says one.
const defaultGrace = 15 * time.Second

// Run works one round.
func (c *Codex) Run(ctx context.Context, round runtime.Round, sink runtime.Sink) (runtime.Result, error) {
	round.Grace = cmp.Or(round.Grace, c.Grace, defaultGrace)
	if round.Workdir == "" {
		round.Workdir = round.Dir
	}
	if c.windows == nil {
		c.windows = limits{}
	}
	files := filesOf(round)
	if err := os.WriteFile(files.offer, round.Payload, 0o600); err != nil {
		return runtime.Result{}, err
	}
	round.Env = append(round.Env[:len(round.Env):len(round.Env)], contract.EnvResultFile+"="+files.result)
	t := &talk{
		codex: c, round: round, sink: sink, files: files, log: c.Log.With("item", round.Offer.WorkItem.ID),
		memories: memoriesOf(round.Env), memory: &memory{}, windows: c.windows,
		policy: policyOf(round.Person, files.result),
	}
	t.memories.prune(time.Now(), t.log)
	return t.work(ctx)
}

// files of a round.
type files struct{ offer, result string }

func filesOf(round runtime.Round) files {
	return files{offer: filepath.Join(round.Scratch, "offer.json"), result: filepath.Join(round.Scratch, "result.json")}
}

// work runs the round from its first request to its result.
func (t *talk) work(ctx context.Context) (runtime.Result, error) {
	server, err := t.codex.serve(t.round, t.log)
	if err != nil {
		return runtime.Result{}, err
	}
	t.server = server
	end := t.converse(ctx)
	// Whoever is in a hurry waits for no orderly end.
	server.stop(ctx.Err() != nil, t.take)
	t.releaseHeld()
	t.memory.save(t.log)
	if end.kind == endLimited {
		t.codex.slowDown(ctx)
	}
	return t.conclude(end), nil
}

// converse holds the conversation of the round and says how it ended.
func (t *talk) converse(ctx context.Context) ending {
	if end, ok := t.open(ctx); !ok {
		return end
	}
	input := t.input()
	for follow := 0; ; follow++ {
		end := t.turnOf(ctx, input)
		text, again := t.followUp(end)
		if !again || follow == maxFollowUps {
			return end
		}
		input = turnInput{texts: []string{text}}
	}
}

// maxFollowUps is how many further turns the runtime itself asks for in one round.
const maxFollowUps = 2

// open gets the app-server to the point where a turn can start. It returns false with how the round ended where it cannot.
func (t *talk) open(ctx context.Context) (ending, bool) {
	for _, step := range []func(context.Context) error{t.initialize, t.readConfig, t.signIn, t.openThread} {
		if err := step(ctx); err != nil {
			return t.notBegun(ctx, err), false
		}
	}
	return ending{}, true
}

// input composes the messages of the round. Codex repeats them as one, which counts as the first of them; where a conversation was lost, as
// the first that the round answers, and not as what was asked when the item began, which is only told again.
func (t *talk) input() turnInput {
	var in turnInput
	for i, m := range t.prompt.Messages {
		toldAgain := t.round.SessionID != "" && in.echo != nil && *in.echo == 0
		if i == 0 || toldAgain && m.Echo != nil {
			in.echo = m.Echo
		}
		in.texts = append(in.texts, m.Text)
	}
	return in
}

// compose composes what the model is told.
func (t *talk) compose(resumes bool) {
	t.prompt = prompt.Compose(t.round, prompt.Options{Resumes: resumes, ResultFile: t.files.result, OfferFile: t.files.offer})
}

// followUp says whether one more turn can save the round, and with which message: when the model is overloaded and the person has another
// one, and when the result file that the model left cannot be used.
func (t *talk) followUp(end ending) (string, bool) {
	switch {
	case end.kind == endFailed && end.failure.overloaded() && t.round.Person.FallbackModel != "" && !t.fellBack:
		t.fellBack = true
		t.log.Info("the model is overloaded, going on with the fallback", "model", t.model, "fallback", t.round.Person.FallbackModel)
		t.model = t.round.Person.FallbackModel
		return "The model that worked on this was overloaded. Go on where it stopped.", true
	case end.kind == endCompleted && !t.mended:
		if _, err := readResult(t.files.result); err != nil {
			t.mended = true
			return "The result file " + t.files.result + " cannot be used: " + err.Error() + ". Write it anew, or remove it, and then " +
				"finish with your final message again.", true
		}
	}
	return "", false
}

// conclude makes the hand-back of how the conversation ended.
func (t *talk) conclude(end ending) runtime.Result {
	r := runtime.Result{Usage: t.memory.usage()}
	said := clip(t.lastWords(), maxSummary)
	switch end.kind {
	case endStopped:
		r.Status, r.Summary = protocol.HandbackInterrupted, "The round was cut short before Codex said anything."
		if said != "" {
			r.Summary = "The round was cut short. The last words were: " + said
		}
	case endLimited:
		r.Status, r.Summary = protocol.HandbackInterrupted, end.words
	case endFailed:
		r.Failed = end.words
	case endCompleted:
		t.completed(&r, said)
	}
	return r
}

// readResult reads what the model left. It may not say that the round was interrupted: that would give it rounds without end.
func readResult(path string) (result.Result, error) {
	r, err := result.Read(path)
	if err == nil && r.Status == protocol.HandbackInterrupted {
		err = errors.New("status must be done, waiting, blocked or silent")
	}
	return r, err
}

// maxSummary is the most characters of the last message that a hand-back has.
const maxSummary = 30_000

// completed takes the result that the model left, and its last message.
func (t *talk) completed(r *runtime.Result, said string) {
	found, err := readResult(t.files.result)
	if err != nil {
		r.Failed = "the turn was completed, but the result file that it left cannot be used: " + err.Error()
		return
	}
	r.Status, r.Links, r.ToReview = found.Status, found.Links, found.ToReview
	if r.Status == "" {
		r.Status = protocol.HandbackDone
	}
	r.Summary = cmp.Or(found.Summary, said, "Codex completed the turn without a final message.")
}

// limitPause is the pause between two rounds that a limit ends. A person whose limit is reached gets no offers until it is over; but
// where the team has that turned off, offers would come without end.
const limitPause = time.Minute

// slowDown waits at the end of a round that a limit ended, if one did shortly before.
func (c *Codex) slowDown(ctx context.Context) {
	pause := c.pause
	if pause == 0 {
		pause = limitPause
	}
	if !c.limited.IsZero() && time.Since(c.limited) < 2*pause {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	c.limited = time.Now()
}
