package codex

// This file decides how a conversation ended, and says it in words that help.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// endKind is how a conversation ended.
type endKind int

const (
	// endCompleted: the turn came to its end.
	endCompleted endKind = iota
	// endStopped: the round's context ended.
	endStopped
	// endLimited: a limit of the account was reached; the round goes on when it resets.
	endLimited
	// endFailed: it could not be worked.
	endFailed
)

// ending is how a conversation ended, with what there is to say about it.
type ending struct {
	kind    endKind
	words   string
	failure failure
}

// failure is an error as Codex tells it.
type failure struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
	Details string          `json:"additionalDetails"`
}

// Kinds of failures that matter here, in Codex's words.
const (
	usageLimitExceeded    = "usageLimitExceeded"
	rateLimitExceeded     = "rateLimitExceeded"
	contextWindowExceeded = "contextWindowExceeded"
	unauthorized          = "unauthorized"
	modelNotFound         = "modelNotFound"
)

// kind is what sort of failure it is, and the status of HTTP that it comes from; empty and 0 where Codex does not say.
func (f failure) kind() (name string, status int) {
	if json.Unmarshal(f.Info, &name) == nil {
		return name, 0
	}
	var object map[string]struct {
		Status *int `json:"httpStatusCode"`
	}
	if json.Unmarshal(f.Info, &object) == nil {
		for key, value := range object {
			name = key
			if value.Status != nil {
				status = *value.Status
			}
		}
	}
	return name, status
}

// overloaded says whether another model may do.
func (f failure) overloaded() bool {
	name, status := f.kind()
	return name == "serverOverloaded" || name == "policyCapacityUnavailable" || status == http.StatusServiceUnavailable
}

// limited says whether a limit of the account is the reason, and the name of a window for it.
func (f failure) limited() (window string, limited bool) {
	name, status := f.kind()
	switch {
	case name == usageLimitExceeded:
		return windowUsage, true
	case name == rateLimitExceeded, status == http.StatusTooManyRequests:
		return windowRequests, true
	}
	return "", false
}

// refused says whether the credential was.
func (f failure) refused() bool {
	name, status := f.kind()
	return name == unauthorized || status == http.StatusUnauthorized || status == http.StatusForbidden
}

// said is what Codex says about it.
func (f failure) said() string {
	text := cmp.Or(f.Message, "it does not say why")
	if f.Details != "" && !strings.Contains(text, f.Details) {
		text += " (" + f.Details + ")"
	}
	return clip(strings.TrimRight(text, ". \n"), maxReason)
}

// maxReason is the most characters of what Codex says that go into a reason.
const maxReason = 1000

// endOf says how a turn ended that came to an end.
func (t *talk) endOf() ending {
	var f failure
	if t.turn.failure != nil {
		f = *t.turn.failure
	}
	switch t.turn.status {
	case statusCompleted:
		t.unlimited()
		return ending{kind: endCompleted}
	case statusFailed:
		if window, limited := f.limited(); limited {
			return t.limitReached(window, f)
		}
		return ending{kind: endFailed, words: t.why(f), failure: f}
	}
	return ending{kind: endFailed, failure: f, words: "Codex ended the turn as " + t.turn.status + ": " + f.said()}
}

// why says why a turn failed, and what to do about it.
func (t *talk) why(f failure) string {
	name, _ := f.kind()
	switch {
	case f.refused():
		return fmt.Sprintf("the model's provider refused %s: %s. Give the agent one that works: CODEX_API_KEY or OPENAI_API_KEY in its "+
			"environment, or a login in %s", t.credential(), f.said(), homeOf(t.round.Env))
	case name == contextWindowExceeded:
		t.memory.Spent = true
		return "the conversation has become too long for the model: " + f.said() +
			". The next attempt begins another one, with the item's journal"
	case name == modelNotFound:
		return fmt.Sprintf("the model %s is not there: %s. Name another one in the person's spec.model, or leave that out", t.model, f.said())
	}
	return "the turn failed: " + f.said()
}

// limitReached tells that a limit of the account is reached. The office then pauses the person until the limit's window resets, or for a
// while where nobody says when it does, and the item, handed back as interrupted, goes on first, without an attempt spent.
func (t *talk) limitReached(window string, f failure) ending {
	now := time.Now()
	if !t.windows.full(now) {
		t.readLimits()
	}
	if !t.windows.full(now) {
		t.windows[window] = protocol.UsageWindow{Name: window, Utilization: 1}
		t.memory.Limited = window
	}
	t.sink.Usage(t.windows.list(now))
	words := "A limit of the model's provider was reached: " + f.said() + ". The item goes on when it is over."
	return ending{kind: endLimited, failure: f, words: words}
}

// readLimits asks for the account's windows. Only OpenAI's own accounts have any.
func (t *talk) readLimits() {
	ctx, cancel := context.WithTimeout(context.Background(), limitsWait)
	defer cancel()
	var answer struct {
		One limitsView            `json:"rateLimits"`
		All map[string]limitsView `json:"rateLimitsByLimitId"`
	}
	if err := t.call(ctx, "account/rateLimits/read", map[string]any{}, &answer); err != nil {
		t.log.Debug("the account's limits cannot be read", "error", err)
		return
	}
	t.windows.merge(answer.One)
	for _, one := range answer.All {
		t.windows.merge(one)
	}
}

// limitsWait is how long the account's limits may take to be read.
const limitsWait = 10 * time.Second

// unlimited takes back a window that was made up, now that a turn came to its end: in this life of the agent or, as the memory says, in
// an earlier one.
func (t *talk) unlimited() {
	made := cmp.Or(t.windows.unmake(), t.memory.Limited)
	t.memory.Limited = ""
	if made == "" {
		return
	}
	windows := t.windows.list(time.Now())
	if len(windows) == 0 {
		windows = []protocol.UsageWindow{{Name: made}} // it is empty now
	}
	t.sink.Usage(windows)
}

// notBegun says how a round ended whose turn could not be started.
func (t *talk) notBegun(ctx context.Context, err error) ending {
	switch {
	case ctx.Err() != nil:
		return ending{kind: endStopped}
	case errors.Is(err, errGone):
		return ending{kind: endFailed, words: "codex app-server ended before it could begin: " + t.server.whyGone()}
	case errors.Is(err, errTimeout):
		return ending{kind: endFailed, words: fmt.Sprintf("codex app-server does not answer: %v within %v", err, answerWait)}
	}
	return ending{kind: endFailed, words: "Codex cannot begin: " + clip(err.Error(), maxReason)}
}

// gone says how a round ended whose app-server ended in its middle.
func (t *talk) gone(ctx context.Context) ending {
	if ctx.Err() != nil {
		return ending{kind: endStopped}
	}
	return ending{kind: endFailed, words: "codex app-server ended in the middle of the turn: " + t.server.whyGone()}
}

// boundReached says that the person's bound of model calls is reached.
func (t *talk) boundReached() ending {
	return ending{kind: endFailed, words: fmt.Sprintf("the round used up its %d model calls (maxTurns) before it was done. Its session is kept "+
		"and goes on in the next try", t.round.Person.MaxTurns)}
}

// used takes what a thread used.
func (t *talk) used(n notification) {
	if n.Usage == nil {
		return
	}
	own := n.ThreadID == t.thread
	model := t.model
	if !own {
		model = cmp.Or(t.models[n.ThreadID], t.model)
	}
	t.memory.count(n.ThreadID, model, own, own && t.turns == 0, *n.Usage)
	t.memory.save(t.log)
	if !own || t.turn.id == "" || n.TurnID != t.turn.id {
		return
	}
	t.turn.calls++
	t.turn.again, t.turn.asked = t.turn.asked, false
	if t.started {
		tokens := n.Usage.Last.Output
		t.sink.Delta(feed.Delta{Kind: feed.DeltaText, OutputTokens: &tokens})
	}
}
