package codex

// This file follows a turn by what the app-server tells of it.

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// The statuses of turns and items that matter here.
const (
	statusCompleted = "completed"
	statusFailed    = "failed"
)

// turn is what is known of the turn that runs.
type turn struct {
	id string
	// client is the id that the runtime gave its user message, echo which message of the offer that repeats, item which item it became.
	client string
	echo   *int
	item   string
	// status is empty while the turn runs.
	status string
	// failure is why it failed, as the turn or the last error that is not retried says.
	failure *failure
	// pending are the commands, and the threads of other agents, that have begun and not ended.
	pending map[string]bool
	// answer is the last message of the agent that is no commentary, said the last one of all.
	answer, said string
	// calls counts how often the model was called, again says that it is or will be called once more. asked says that it called a tool
	// since its usage was told last.
	calls        int
	again, asked bool
}

// notification is what the runtime reads of notifications. Params of different methods share it: each has some of the members.
type notification struct {
	ThreadID string      `json:"threadId"`
	TurnID   string      `json:"turnId"`
	Item     *item       `json:"item"`
	Turn     *turnView   `json:"turn"`
	Error    *failure    `json:"error"`
	Retry    bool        `json:"willRetry"`
	Usage    *usageView  `json:"tokenUsage"`
	Limits   *limitsView `json:"rateLimits"`
	ToModel  string      `json:"toModel"`
}

// turnView is what the runtime reads of a turn.
type turnView struct {
	ID     string   `json:"id"`
	Status string   `json:"status"`
	Error  *failure `json:"error"`
}

// item is what the runtime reads of an item.
type item struct {
	Type     string  `json:"type"`
	ID       string  `json:"id"`
	ClientID *string `json:"clientId"`
	Status   string  `json:"status"`
	// Text and Phase are an agent's message.
	Text  string `json:"text"`
	Phase string `json:"phase"`
	// Command and Actions are a command's.
	Command string `json:"command"`
	Actions []struct {
		Command string `json:"command"`
	} `json:"commandActions"`
	Changes []struct {
		Path string `json:"path"`
	} `json:"changes"`
	Server    string   `json:"server"`
	Tool      string   `json:"tool"`
	Query     string   `json:"query"`
	Model     string   `json:"model"`
	Receivers []string `json:"receiverThreadIds"`
}

// trouble takes an error: one that is retried people are shown, the last one that is not may be why the turn fails.
func (t *talk) trouble(n notification) {
	switch {
	case n.ThreadID != t.thread || n.Error == nil:
	case n.Retry:
		t.sink.Progress(clip(n.Error.said(), maxProgress))
	default:
		t.turn.failure = n.Error
	}
}

// serverView is what the runtime reads of how an MCP server starts.
type serverView struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Error  string `json:"error"`
}

// serverStarts tells of an MCP server that cannot be used. The model goes on without it.
func (t *talk) serverStarts(m *message) {
	var s serverView
	if err := json.Unmarshal(m.Params, &s); err == nil && s.Status == statusFailed {
		t.log.Warn("an MCP server cannot be used", "server", s.Name, "error", s.Error)
		t.sink.Progress(clip("The MCP server "+s.Name+" cannot be used: "+s.Error, maxProgress))
	}
}

// notice takes from a notification what the runtime itself has to know.
func (t *talk) notice(m *message) {
	if m.Method == "mcpServer/startupStatus/updated" {
		t.serverStarts(m)
		return
	}
	var n notification
	if err := json.Unmarshal(m.Params, &n); err != nil {
		t.log.Debug("a notification of codex is not understood", "method", m.Method, "error", err)
		return
	}
	switch m.Method {
	case "turn/started":
		t.turnStarted(n)
	case "turn/completed":
		t.turnCompleted(n)
	case "item/started":
		t.itemStarted(n)
	case "item/completed":
		t.itemCompleted(n)
	case "error":
		t.trouble(n)
	case "thread/tokenUsage/updated":
		t.used(n)
	case "account/rateLimits/updated":
		if n.Limits != nil && t.windows.merge(*n.Limits) {
			t.sink.Usage(t.windows.list(time.Now()))
		}
	case "model/rerouted":
		if n.ThreadID == t.thread && n.ToModel != "" {
			t.model = n.ToModel
			t.sink.Session(t.thread, t.model)
		}
	}
}

func (t *talk) turnStarted(n notification) {
	switch {
	case n.Turn == nil:
	case n.ThreadID != t.thread:
		t.turn.pending[n.ThreadID] = true // another agent that Codex started
	case t.turn.id == "":
		t.turn.id = n.Turn.ID
	}
}

func (t *talk) turnCompleted(n notification) {
	if n.ThreadID != t.thread {
		delete(t.turn.pending, n.ThreadID)
		return
	}
	if n.Turn == nil || t.turn.id != "" && n.Turn.ID != t.turn.id {
		return
	}
	t.turn.status = n.Turn.Status
	if n.Turn.Error != nil {
		t.turn.failure = n.Turn.Error
	}
}

// isTool says whether the model is called again once the item has ended.
func (i *item) isTool() bool {
	switch i.Type {
	case "commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "collabAgentToolCall", "functionCallOutput", "imageView":
		return true
	}
	return false
}

// calling follows the calls of the model by the items that they make. A call tells its usage after what it says and before the next one;
// a tool may begin on either side of that, so what a call says first ends the tools before it.
func (t *turn) calling(i *item) {
	switch {
	case i.isTool():
		t.asked = true
	case i.Type == "agentMessage" || i.Type == "reasoning":
		t.asked = false
	default:
		return
	}
	if t.calls > 0 {
		t.again = true
	}
}

func (t *talk) itemStarted(n notification) {
	if n.Item == nil || n.ThreadID != t.thread {
		return
	}
	if n.Item.Type == "commandExecution" {
		t.turn.pending[n.Item.ID] = true
	}
	if n.Item.Type == "fileChange" {
		t.policy.changes(n.Item)
	}
	t.turn.calling(n.Item)
	if line := progressOf(*n.Item); line != "" {
		t.sink.Progress(line)
	}
}

func (t *talk) itemCompleted(n notification) {
	if n.Item == nil || n.ThreadID != t.thread {
		return
	}
	delete(t.turn.pending, n.Item.ID)
	switch n.Item.Type {
	case "agentMessage":
		t.turn.said = n.Item.Text
		if n.Item.Phase != "commentary" {
			t.turn.answer = n.Item.Text
		}
		if line := progressOf(*n.Item); line != "" {
			t.sink.Progress(line)
		}
	case "collabAgentToolCall":
		for _, other := range n.Item.Receivers {
			if n.Item.Model != "" {
				t.models[other] = n.Item.Model
			}
		}
	}
}

// lastWords is what the agent said last, or said as its answer.
func (t *talk) lastWords() string { return cmp.Or(t.turn.answer, t.turn.said) }

// record puts a notification into the feed.
func (t *talk) record(m *message) {
	t.sink.Record(runtime.Record{
		Source: feed.SourceCodex, Format: feed.FormatCodexAppServer, Type: m.Method, Payload: m.line, Echo: t.echoOf(m),
	})
}

// echoOf says which message of the offer a record repeats. An item of a user message names the id that it was sent with; where a version
// of Codex does not, the first one of the turn is it.
func (t *talk) echoOf(m *message) *int {
	if m.Method != "item/started" && m.Method != "item/completed" || t.turn.echo == nil {
		return nil
	}
	var n notification
	if err := json.Unmarshal(m.Params, &n); err != nil || n.Item == nil || n.Item.Type != "userMessage" || n.ThreadID != t.thread {
		return nil
	}
	if n.Item.ClientID != nil && *n.Item.ClientID != "" {
		if *n.Item.ClientID == t.turn.client {
			return t.turn.echo
		}
		return nil
	}
	if t.turn.item == "" {
		t.turn.item = n.Item.ID
	}
	if n.Item.ID == t.turn.item {
		return t.turn.echo
	}
	return nil
}

// strange keeps what is no message of the protocol.
func (t *talk) strange(m *message) {
	t.log.Warn("codex printed what is no message", "why", m.odd, "line", clip(string(m.line), maxLogged))
	payload, err := encode(map[string]string{"line": string(m.line), "why": m.odd})
	if err != nil || !t.started {
		return
	}
	t.sink.Record(runtime.Record{
		Source: feed.SourceCodex, Format: feed.FormatCodexAppServer, Type: "bullpen/unreadable", Payload: payload[:len(payload)-1],
	})
}
