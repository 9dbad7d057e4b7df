package codex

// This file holds a round's conversation with the app-server. All of it runs on the goroutine of Run: a call takes what else comes while
// it waits for its answer.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/prompt"
)

const (
	// answerWait is how long the app-server may take for an answer. Resuming a long thread takes a while.
	answerWait = 2 * time.Minute
	// lateWait is how long a completed turn waits for notifications of commands, and of other agents that Codex started.
	lateWait = 2 * time.Second
)

// talk is the conversation of one round.
type talk struct {
	codex  *Codex
	round  runtime.Round
	sink   runtime.Sink
	files  files
	log    *slog.Logger
	server *server
	// memories are those of all threads, memory that of the round's.
	memories memories
	memory   *memory
	policy   policy
	config   settings
	prompt   prompt.Prompt

	// thread is the thread of the round, model what it runs on.
	thread, model string
	// models are those of the threads of other agents that Codex started, as far as it told.
	models map[string]string
	turn   turn
	// started says that the sink was told; until then notifications are held.
	started bool
	held    []*message
	// mark is the beginning of the ids that the runtime gives to user messages.
	mark     string
	turns    int
	thinking thinking
	windows  limits

	fellBack, mended bool
}

// errTimeout is what a call gives that was not answered in time.
var errTimeout = errors.New("it was not answered in time")

// call sends a request and waits for its answer, which is decoded into result unless that is nil. Errors are a *rpcError, errGone,
// errTimeout, that of ctx, or one of decoding, each with the method.
func (t *talk) call(ctx context.Context, method string, params, result any) error {
	err := t.ask(ctx, method, params, result)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

func (t *talk) ask(ctx context.Context, method string, params, result any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id, err := t.server.request(method, params)
	if err != nil {
		return errors.Join(errGone, err)
	}
	timer := time.NewTimer(answerWait)
	defer timer.Stop()
	for {
		select {
		case m, ok := <-t.server.messages:
			switch {
			case !ok:
				return errGone
			case m.Method != "" || string(m.ID) != id:
				t.take(m)
			case m.Error != nil:
				return m.Error
			case result == nil:
				return nil
			default:
				return json.Unmarshal(m.Result, result)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return errTimeout
		}
	}
}

// take takes a message that answers no call.
func (t *talk) take(m *message) {
	switch {
	case m.odd != "":
		t.strange(m)
	case m.Method != "" && m.hasID():
		t.asked(m)
	case m.Method != "":
		t.told(m)
	default:
		t.log.Debug("codex answered a call that nobody waits for", "id", string(m.ID))
	}
}

// asked answers a request by the person's policy.
func (t *talk) asked(m *message) {
	answer, refused := t.policy.answer(m.Method, m.Params)
	t.log.Info("codex asked", "method", m.Method, "allowed", refused == nil && allows(answer))
	if err := t.server.answer(m.ID, answer, refused); err != nil {
		t.log.Warn("an answer cannot be sent to codex", "method", m.Method, "error", err)
	}
}

// told takes a notification: into the feed, unless it is a fragment, and for what the runtime itself has to know.
func (t *talk) told(m *message) {
	if isFragment(m.Method) {
		t.fragment(m)
		return
	}
	if t.started {
		t.record(m)
	} else {
		t.held = append(t.held, m)
	}
	t.notice(m)
}

// begun tells the sink that the turn runs, and what was told before.
func (t *talk) begun() {
	if t.started {
		return
	}
	t.started = true
	t.sink.Started()
	for _, m := range t.held {
		t.record(m)
	}
	t.held = nil
}

// releaseHeld puts into the agent's log what was told in a round that did not begin.
func (t *talk) releaseHeld() {
	for _, m := range t.held {
		t.log.Info("codex", "message", clip(string(m.line), maxLogged))
	}
	t.held = nil
}

// maxLogged is the most characters of a message in the agent's log.
const maxLogged = 2000

// turnInput is what a turn begins with.
type turnInput struct {
	texts []string
	// echo is the message of the offer that the user message repeats, nil for none.
	echo *int
}

// turnOf runs one turn.
func (t *talk) turnOf(ctx context.Context, in turnInput) ending {
	t.turns++
	t.turn = turn{echo: in.echo, client: fmt.Sprintf("%s-%d", t.mark, t.turns), pending: map[string]bool{}}
	t.thinking = thinking{}
	if err := t.startTurn(ctx, in); err != nil {
		return t.notBegun(ctx, err)
	}
	t.begun()
	for t.turn.status == "" {
		if t.tooManyCalls() {
			t.interrupt()
			return t.boundReached()
		}
		select {
		case m, ok := <-t.server.messages:
			if !ok {
				return t.gone(ctx)
			}
			t.take(m)
		case <-ctx.Done():
			t.interrupt()
			if t.turn.status != statusCompleted {
				return ending{kind: endStopped}
			}
		}
	}
	t.settle(ctx)
	return t.endOf()
}

// settle waits for what a completed turn still has to tell, for a bounded time: commands that it left running do not hold it.
func (t *talk) settle(ctx context.Context) {
	if t.turn.status != statusCompleted {
		return
	}
	timer := time.NewTimer(lateWait)
	defer timer.Stop()
	for len(t.turn.pending) > 0 {
		select {
		case m, ok := <-t.server.messages:
			if !ok {
				return
			}
			t.take(m)
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// interrupt asks Codex to end the turn and waits for that, for at most half of the round's grace: the other half is the process's.
func (t *talk) interrupt() {
	ctx, cancel := context.WithTimeout(context.Background(), t.round.Grace/2)
	defer cancel()
	if t.turn.id == "" {
		return
	}
	params := map[string]string{"threadId": t.thread, "turnId": t.turn.id}
	if err := t.call(ctx, "turn/interrupt", params, nil); err != nil {
		t.log.Warn("the turn cannot be interrupted", "error", err)
	}
	for t.turn.status == "" {
		select {
		case m, ok := <-t.server.messages:
			if !ok {
				return
			}
			t.take(m)
		case <-ctx.Done():
			return
		}
	}
}

// tooManyCalls says whether the model would be called more often than the person may in a round.
func (t *talk) tooManyCalls() bool {
	most := t.round.Person.MaxTurns
	return most > 0 && (t.turn.calls > most || t.turn.calls == most && t.turn.again)
}
