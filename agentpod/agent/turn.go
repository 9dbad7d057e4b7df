package agent

// This file writes the records of a round's turn into the spool: what the environment's preparation and the runtime tell, and around it
// how the turn began and ended. What it writes is masked first.

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/bullpen-dev/bullpen/agentpod/mask"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/spool"
	"github.com/bullpen-dev/bullpen/agentpod/workplace"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// turn is the records of one round. Its methods wait for no network, and may be called from any goroutine.
type turn struct {
	mask *mask.Masker
	// queue takes the records; nil where there is none: a round of an earlier release's offer, or a home without a spool.
	queue *spool.Queue
	begun atomic.Bool

	mu sync.Mutex
	// chunks counts the outputs of each step.
	chunks map[[2]string]int64
	// text is what the runtime is writing.
	text *mask.Stream
}

var _ workplace.Reporter = (*turn)(nil)

// newTurn begins the records of an item's round.
func (a *Agent) newTurn(it item) *turn {
	t := &turn{mask: a.mask, chunks: map[[2]string]int64{}, text: a.mask.Stream()}
	if a.spool != nil && it.offerID != "" {
		t.queue = a.spool.Begin(it.id, it.offerID)
	}
	return t
}

// put masks a payload and spools the record.
func (t *turn) put(source, format, kind string, echo *int, payload any) {
	if t.queue != nil {
		t.queue.Append(t.entry(source, format, kind, echo, payload))
	}
}

func (t *turn) entry(source, format, kind string, echo *int, payload any) feed.Entry {
	// What is too large to be kept is left out before it is masked, which takes many times its size in memory.
	e := spool.Fitting(feed.Entry{At: time.Now(), Source: source, Format: format, Type: kind, Echo: echo, Payload: encodePayload(payload)})
	e.Payload = t.mask.JSON(e.Payload)
	return e
}

// encodePayload makes JSON without escapes that only pages need. JSON stays as it is.
func encodePayload(payload any) json.RawMessage {
	if raw, ok := payload.(json.RawMessage); ok {
		return raw
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(payload) != nil {
		return json.RawMessage("{}") // a detail that has no JSON form
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// platform spools an event of the platform.
func (t *turn) platform(kind string, payload any) {
	t.put(feed.SourceLifecycle, feed.FormatLifecycle, kind, nil, payload)
}

// nothing is a payload without members: the office fills in the ids that only it knows.
var nothing = json.RawMessage("{}")

// Started says that the runtime began on the messages of the round.
func (t *turn) Started() {
	if t.queue == nil || t.begun.Swap(true) {
		return
	}
	t.queue.Start(
		t.entry(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeTurnStarted, nil, nothing),
		t.entry(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeMessageDelivered, nil, nothing),
	)
}

// Record spools a message of the runtime.
func (t *turn) Record(r runtime.Record) {
	t.Started()
	t.mu.Lock()
	t.text.Reset() // it has what was shown of the text
	t.mu.Unlock()
	t.put(r.Source, r.Format, r.Type, r.Echo, r.Payload)
}

// Delta shows a piece of what the runtime is writing, or nothing, if nobody can see it now.
func (t *turn) Delta(d feed.Delta) {
	if t.queue == nil {
		return
	}
	if d.Text != nil {
		shown := t.shown(d.Kind, *d.Text)
		if shown == "" && d.Kind == feed.DeltaText && d.OutputTokens == nil {
			return // all of it waits
		}
		d.Text = &shown
		if shown == "" && d.Kind == feed.DeltaText {
			d.Text = nil
		}
	}
	t.queue.Delta(d)
}

// shown is what may be seen of a delta's text.
func (t *turn) shown(kind, text string) string {
	text = strings.ToValidUTF8(text, "�")
	if kind != feed.DeltaThinking {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.text.Write(text)
	}
	// It comes again and again, each time with more: what may be half of a secret is left out.
	line, _, _ := strings.Cut(t.mask.Stream().Write(text), "\n")
	if utf8.RuneCountInString(line) > feed.MaxThinking {
		line = string([]rune(line)[:feed.MaxThinking])
	}
	return line
}

// Phase spools that a step of the preparation started, completed or failed.
func (t *turn) Phase(phase, status, step string, took time.Duration, detail map[string]any) {
	p := feed.EnvironmentPhase{Phase: phase, Status: status, Step: stepOf(step), Detail: detail}
	if status != feed.PhaseStarted {
		p.DurationMS = milliseconds(took)
	}
	t.platform(feed.TypeEnvironmentPhase, p)
}

// Output spools lines that a step printed.
func (t *turn) Output(phase, step, stream string, lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock() // until it is spooled: chunks come in their order
	key := [2]string{phase, step}
	n := t.chunks[key]
	t.chunks[key] = n + 1
	t.platform(feed.TypeEnvironmentOutput, feed.EnvironmentOutput{
		Phase: phase, Step: stepOf(step), Stream: stream, Chunk: n, Lines: lines,
	})
}

// Ready spools that the place is prepared.
func (t *turn) Ready(repositories []string, took time.Duration) {
	t.platform(feed.TypeEnvironmentReady, feed.EnvironmentReady{Repositories: repositories, DurationMS: milliseconds(took)})
}

func stepOf(step string) *string {
	if step == "" {
		return nil
	}
	return &step
}

func milliseconds(d time.Duration) *int64 {
	ms := d.Milliseconds()
	return &ms
}

// git spools how the round left the checkouts.
func (t *turn) git(g feed.Git) { t.put("", feed.FormatState, feed.StateGit, nil, g) }

// end spools the end of the turn, its last record.
func (t *turn) end(e turnEnd) {
	if t.queue == nil {
		return
	}
	if e.Detail != nil {
		detail := cutText(t.mask.Text(*e.Detail), maxDetail)
		e.Detail = &detail
	}
	e.DurationMS = max(0, time.Since(t.queue.Begun()).Milliseconds())
	t.queue.End(t.entry(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeTurnEnded, nil, e))
}

// leave lets the turn go: another agent has it.
func (t *turn) leave() {
	if t.queue != nil {
		t.queue.Leave()
	}
}

// turnEnd is the payload of turn_ended without the ids that only the office knows.
type turnEnd struct {
	Status     string  `json:"status"`
	Reason     *string `json:"reason"`
	Detail     *string `json:"detail"`
	DurationMS int64   `json:"duration_ms"`
}

// The statuses of a turn's end, and the reasons of those that have one.
const (
	turnCompleted = "completed"
	turnFailed    = "failed"
	turnCancelled = "cancelled"

	reasonError       = "error"
	reasonBlocked     = "blocked"
	reasonInterrupted = "interrupted"
)

// maxDetail is the most bytes of the detail of a turn's end.
const maxDetail = 4 << 10

// endOfTurn says how a turn ends by the message that ends its round; nil is a round that the office no longer counts on. failure is the
// reason of a round that failed, if it is known better than that.
func endOfTurn(ending protocol.Message, failure string) turnEnd {
	e := turnEnd{Status: turnCompleted}
	because := func(status, reason, detail string) {
		e.Status, e.Reason = status, &reason
		if detail != "" {
			e.Detail = &detail
		}
	}
	switch m := ending.(type) {
	case protocol.Handback:
		switch m.Status {
		case protocol.HandbackBlocked:
			because(turnFailed, reasonBlocked, m.Summary)
		case protocol.HandbackInterrupted:
			because(turnCancelled, reasonInterrupted, "")
		case protocol.HandbackDone, protocol.HandbackWaiting, protocol.HandbackSilent:
		}
	case protocol.Fail:
		if failure == "" {
			failure = reasonError
		}
		because(turnFailed, failure, m.Reason)
	default:
		because(turnCancelled, reasonInterrupted, "")
	}
	return e
}
