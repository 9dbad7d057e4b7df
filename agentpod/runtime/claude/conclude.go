package claude

// This file decides how a round ended.

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/result"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// ending is how an attempt ended.
type ending struct {
	result runtime.Result
	// lost says that the session to resume is not there; limited that a limit of the subscription ended the round.
	lost, limited bool
}

// lostSession is in the error about a session that is not there.
const lostSession = "No conversation found"

// lost says whether a message is a result that says that the session is not there.
func lost(m message) bool {
	return m.Type == typeResult && m.IsError && strings.Contains(strings.Join(m.Errors, "\n"), lostSession)
}

// readResult reads what a model left. It may not say that the round was interrupted: that would give it rounds without end.
func readResult(path string) (result.Result, error) {
	r, err := result.Read(path)
	if err == nil && r.Status == protocol.HandbackInterrupted {
		err = errors.New("status must be done, waiting, blocked or silent")
	}
	return r, err
}

// apiLimit is the status of the API for too many requests.
const apiLimit = 429

// conclude says how the attempt ended, of which s is all that was heard. stopped says that the round was to stop, and lastError is the last
// line on standard error.
func (s *session) conclude(exit process.Exit, stopped bool, lastError string) ending {
	r := runtime.Result{Usage: usage(s.first, s.meter.totals())}
	last := s.last
	switch {
	case last != nil && lost(*last), last == nil && strings.Contains(lastError, lostSession):
		return ending{lost: true}
	case s.complete && !last.IsError:
		r = s.handback(r, *last)
	case stopped:
		r.Status = protocol.HandbackInterrupted
		r.Summary = cutShort(s.lastText)
	case s.reachedLimit():
		r.Status = protocol.HandbackInterrupted
		r.Summary = "A usage limit was reached: " + cmp.Or(last.Result, s.lastText) + " The item goes on when it is over."
		return ending{result: r, limited: true}
	case last != nil && last.IsError:
		r.Failed = s.failure(*last)
	default:
		r.Failed = "Claude Code ended before it had answered: " + exit.String() + after(lastError)
	}
	return ending{result: r}
}

// reachedLimit says whether the last result is that a limit was reached.
func (s *session) reachedLimit() bool {
	return s.last != nil && s.last.IsError && (s.last.APIStatus == apiLimit || s.problem == "rate_limit" || s.limited)
}

// handback is that of a round that came to its end.
func (s *session) handback(r runtime.Result, last message) runtime.Result {
	if s.bad != nil {
		r.Failed = "Claude Code finished, but the result that the model left cannot be used: " + s.bad.Error()
		return r
	}
	r.Status = s.said.Status
	if r.Status == "" {
		r.Status = protocol.HandbackDone
	}
	r.Summary = clip(cmp.Or(s.said.Summary, strings.TrimSpace(last.Result), s.lastText, "Claude Code finished without a word."))
	r.Links, r.ToReview = s.said.Links, s.said.ToReview
	return r
}

// cutShort is the summary of a round that was stopped.
func cutShort(lastText string) string {
	if lastText == "" {
		return "The round was cut short before Claude Code said anything."
	}
	return clip("The round was cut short. The last words were: " + lastText)
}

// advice is what helps with a problem, by the name that Claude Code gives it.
var advice = map[string]string{
	"authentication_failed": "Claude Code could not sign in. Check ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in the person's Secrets",
	"oauth_org_not_allowed": "Claude Code's login is not allowed by its organization. Give the person another credential",
	"billing_error":         "The account cannot pay for the model. Add credit, or give the person another credential",
	"model_not_found":       "The model cannot be used. Set another one as the person's model",
	"max_output_tokens":     "An answer of the model became too long. Set CLAUDE_CODE_MAX_OUTPUT_TOKENS to allow longer ones",
	"server_error":          "The model's API had an error and went on having it; the round is tried again later",
	"overloaded":            "The model's API is overloaded; the round is tried again later, or set a fallbackModel",
}

// failure says why a round failed, and what helps.
func (s *session) failure(last message) string {
	said := cmp.Or(strings.TrimSpace(last.Result), strings.Join(last.Errors, "; "), s.lastText)
	if last.Subtype == "error_max_turns" {
		return fmt.Sprintf("The round used up its %d model calls (maxTurns) before it was done. Its session is kept and goes on in the next try.",
			max(last.NumTurns-1, 1))
	}
	problem := s.problem
	if last.APIStatus == 529 {
		problem = "overloaded"
	}
	if help := advice[problem]; help != "" {
		return clip(help + after(said))
	}
	if last.APIStatus != 0 {
		return clip(fmt.Sprintf("The model's API refused the request with status %d%s", last.APIStatus, after(said)))
	}
	return clip("Claude Code ended with an error" + after(cmp.Or(said, last.Subtype)))
}

// maxSummary is the most bytes of what is told about the end of a round.
const maxSummary = 32 << 10

// clip cuts a text to maxSummary.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= maxSummary {
		return text
	}
	return strings.ToValidUTF8(text[:maxSummary], "") + "…"
}

func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
