package claude

// This file follows one process through its output: each line becomes a record, a delta or an answer, and changes what is known about
// the round. Nothing here waits for anything.

import (
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/google/uuid"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/prompt"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/result"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// session is what is known about the conversation with one process. One goroutine uses it.
type session struct {
	sink   runtime.Sink
	log    *slog.Logger
	ledger ledger
	policy policy
	// resultFile is where the model may leave a result.
	resultFile string
	// limit takes what is heard of the subscription's limits.
	limit func(protocol.UsageWindow)

	// out are lines for the process that are not sent yet.
	out [][]byte
	// sent are the messages that were given to the process and that it has not repeated yet, by their ids.
	sent map[string]*int

	// id is the session's, model the one that it has; told says that the sink knows both. first is the id that the process began with.
	id, model, first string
	meter            *meter
	live             live

	// last is the latest result, nil before any; complete says that the round's messages are all answered by it.
	last     *message
	complete bool
	// problem is what the last message is about that Claude Code made up itself, lastText the last words of the model.
	problem  string
	lastText string
	// agents are the other agents that run beside the conversation.
	agents map[string]bool
	// limited says that a limit was reached, and nothing was answered since.
	limited bool
	// said is what the result file says, corrected that the model was asked to mend it, and bad what is wrong with it still.
	said      result.Result
	corrected bool
	bad       error
}

// userMessage is a line that gives the process a message.
type userMessage struct {
	Type    string     `json:"type"`
	UUID    string     `json:"uuid"`
	Parent  *string    `json:"parent_tool_use_id"`
	Message apiMessage `json:"message"`
	// ShouldQuery is false for a message that the model is to read together with the next one.
	ShouldQuery *bool `json:"shouldQuery,omitempty"`
}

type apiMessage struct {
	Role    string    `json:"role"`
	Content []apiText `json:"content"`
}

type apiText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// opening is what a process that resumes is told first, so that its totals before any call are known; see the meter.
const opening = "The next round begins."

// say queues messages for the process. The model reads them at once and answers them together.
func (s *session) say(messages []prompt.Message) {
	for i, m := range messages {
		line := userMessage{
			Type: typeUser, UUID: uuid.NewString(),
			Message: apiMessage{Role: "user", Content: []apiText{{Type: "text", Text: m.Text}}},
		}
		if i < len(messages)-1 {
			line.ShouldQuery = new(bool)
		}
		s.sent[line.UUID] = m.Echo
		s.send(line)
	}
	s.complete = false
}

// send queues a line.
func (s *session) send(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.log.Error("a line for Claude Code cannot be made", "error", err)
		return
	}
	s.out = append(s.out, append(data, '\n'))
}

// interrupt asks the process to stop what it does. It answers with a result.
func (s *session) interrupt() {
	s.send(map[string]any{
		"type": typeControlRequest, "request_id": uuid.NewString(), "request": map[string]string{"subtype": "interrupt"},
	})
}

// line takes a line of the output, of whole bytes, of which some may be missing at its end.
func (s *session) line(line []byte, whole int) {
	m, ok := parse(line)
	if !ok || whole > len(line) {
		s.log.Warn("a line of Claude Code is no message", "line", shorten(string(line)), "bytes", whole)
		s.sink.Started()
		s.sink.Record(unreadable(line[:min(len(line), maxUnreadable)], whole))
		return
	}
	if r, ok := record(line, m); ok {
		r.Echo = s.echo(m)
		s.sink.Started()
		s.sink.Record(r)
	}
	s.named(m)
	s.take(m)
}

// maxUnreadable is how much is kept of a line that is no message.
const maxUnreadable = 64 << 10

// echo says which message of the offer a user message repeats.
func (s *session) echo(m message) *int {
	if m.Type != typeUser {
		return nil
	}
	echo, ours := s.sent[m.UUID]
	if !ours {
		return nil
	}
	delete(s.sent, m.UUID)
	return echo
}

// named takes the names of the session and of its model.
func (s *session) named(m message) {
	init := m.Type == typeSystem && m.Subtype == subtypeInit
	if m.SessionID == "" || m.Type == typeControlRequest || (m.SessionID == s.id && (!init || m.Model == s.model)) {
		return
	}
	if s.first == "" {
		s.first = m.SessionID
		base, err := s.ledger.load(m.SessionID)
		if err != nil {
			s.log.Error("the session's usage of this round is counted, but not on top of what it used before", "error", err)
		}
		s.meter.base = base
	}
	if lost(m) {
		return // it names a session that is not there
	}
	s.id = m.SessionID
	if init && m.Model != "" {
		s.model = m.Model
	}
	s.sink.Session(s.id, s.model)
}

// take takes what a message says about the round.
func (s *session) take(m message) {
	switch m.Type {
	case typeSystem:
		s.system(m)
	case typeAssistant:
		s.assistant(m)
	case typeStream:
		if m.Event != nil {
			s.stream(m)
		}
	case typeResult:
		s.result(m)
	case typeRateLimit:
		if m.RateLimit != nil {
			s.limited = s.limited || m.RateLimit.Status == limitRejected
			if w, ok := window(*m.RateLimit); ok {
				s.limit(w)
			}
		}
	case typeControlRequest:
		s.asked(m)
	}
}

func (s *session) system(m message) {
	switch m.Subtype {
	case subtypeInit:
		for _, server := range m.MCPServers {
			if server.Status == "failed" || server.Status == "needs-auth" {
				s.log.Warn("an MCP server cannot be used", "server", server.Name, "status", server.Status)
				s.sink.Progress(shorten("The MCP server " + server.Name + " cannot be used: " + server.Status))
			}
		}
	case subtypeTaskStarted:
		if m.TaskType == taskAgent {
			s.agents[m.TaskID] = true
		}
	case subtypeTaskUpdated, subtypeTaskNotified:
		switch m.Status + m.Patch.Status {
		case "", "running", "pending":
		default:
			delete(s.agents, m.TaskID)
		}
	case subtypeRetry:
		s.sink.Progress(retry(m))
	case subtypeThinking:
		if m.EstimatedTokens != nil && m.Parent == nil {
			s.live.tokens(*m.EstimatedTokens)
		}
	}
}

func (s *session) assistant(m message) {
	s.meter.part(m.Message)
	if m.Message == nil || m.Parent != nil {
		return // what another agent says to the model is for the model
	}
	s.problem = ""
	if m.Message.Model == synthetic {
		s.problem = "unknown"
		_ = json.Unmarshal(m.Error, &s.problem) // one of another kind is unknown
	} else {
		s.limited = false
	}
	for _, b := range m.Message.blocks() {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			s.lastText = strings.TrimSpace(b.Text)
		}
		if text := progress(b); text != "" {
			s.sink.Progress(text)
		}
	}
}

func (s *session) stream(m message) {
	if m.Parent != nil {
		return
	}
	switch m.Event.Type {
	case "message_start":
		s.meter.begins(m.Event.Message)
		s.keep()
	case "message_delta":
		s.meter.ends(m.Event.Usage)
		s.keep()
	}
	s.live.event(m.Event)
}

// result takes the end of a native turn. The round's is the first one after all its messages were read.
func (s *session) result(m message) {
	s.meter.result(m.ModelUsage)
	s.keep()
	s.live.clear()
	s.last = &m
	if len(s.sent) > 0 && !m.IsError {
		return // the rest is read next
	}
	s.complete = true
	if m.IsError {
		return
	}
	said, err := readResult(s.resultFile)
	s.said, s.bad = said, err
	if err == nil || s.corrected {
		return
	}
	s.corrected = true
	s.log.Warn("the model's result file cannot be used; it is asked to mend it", "error", err)
	s.say([]prompt.Message{{Text: "The file " + s.resultFile + " cannot be used: " + err.Error() + ". Write it again, or remove it, " +
		"and then finish with your message about the round again."}})
}

// keep keeps what the session used so far, so that it is not lost with the agent.
func (s *session) keep() {
	if err := s.ledger.save(s.first, s.meter.totals()); err != nil {
		s.log.Error("what the session used cannot be kept in the home", "error", err)
	}
}

// asked answers what Claude Code asks of the runtime, so that it never waits for an answer.
func (s *session) asked(m message) {
	if m.Request == nil {
		s.send(refusal(m.RequestID, "the request is empty"))
		return
	}
	s.send(s.policy.answer(m.RequestID, *m.Request))
}
