package claude

// This file reads what Claude Code prints: which lines are records, and of each only what the runtime needs to know.

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// The types of lines. All but the fragments and what belongs to the conversation of the two programs are records.
const (
	typeSystem    = "system"
	typeUser      = "user"
	typeAssistant = "assistant"
	typeResult    = "result"
	typeRateLimit = "rate_limit_event"

	typeStream          = "stream_event"
	typeControlRequest  = "control_request"
	typeControlResponse = "control_response"
	typeControlCancel   = "control_cancel_request"
	typeKeepAlive       = "keep_alive"
)

const (
	// recordRateLimit is how the record of a typeRateLimit is called.
	recordRateLimit = "rate_limit"
	// recordUnreadable is the record of a line that is no message.
	recordUnreadable = "unreadable"

	subtypeInit  = "init"
	subtypeRetry = "api_retry"
	// These tell of tasks that run beside the conversation.
	subtypeTaskStarted  = "task_started"
	subtypeTaskUpdated  = "task_updated"
	subtypeTaskNotified = "task_notification"
	// taskAgent is the type of a task that is another agent.
	taskAgent = "local_agent"
	// subtypeThinking comes with every fragment of thinking, and is one itself.
	subtypeThinking = "thinking_tokens"
	// synthetic is the model of messages that Claude Code made up itself.
	synthetic = "<synthetic>"
)

// message is a line, as far as the runtime reads it. Which fields there are depends on the type.
type message struct {
	Type      string  `json:"type"`
	Subtype   string  `json:"subtype"`
	UUID      string  `json:"uuid"`
	SessionID string  `json:"session_id"`
	Parent    *string `json:"parent_tool_use_id"`

	// Of system/init.
	Model      string      `json:"model"`
	MCPServers []mcpStatus `json:"mcp_servers"`

	// Of system/api_retry.
	Attempt     int     `json:"attempt"`
	MaxRetries  int     `json:"max_retries"`
	RetryDelay  float64 `json:"retry_delay_ms"`
	ErrorStatus int     `json:"error_status"`

	// Of system/task_started, task_updated and task_notification.
	TaskID   string `json:"task_id"`
	TaskType string `json:"task_type"`
	Status   string `json:"status"`
	Patch    struct {
		Status string `json:"status"`
	} `json:"patch"`

	// Of system/thinking_tokens.
	EstimatedTokens *int64 `json:"estimated_tokens"`

	// Of user and assistant messages. Error names what an assistant message is about that Claude Code made up.
	Message *content        `json:"message"`
	Error   json.RawMessage `json:"error"`

	// Of result.
	IsError    bool                  `json:"is_error"`
	APIStatus  int                   `json:"api_error_status"`
	Result     string                `json:"result"`
	Errors     []string              `json:"errors"`
	NumTurns   int                   `json:"num_turns"`
	ModelUsage map[string]modelUsage `json:"modelUsage"`

	// Of rate_limit_event.
	RateLimit *rateLimit `json:"rate_limit_info"`

	// Of stream_event.
	Event *streamEvent `json:"event"`

	// Of control_request.
	RequestID string          `json:"request_id"`
	Request   *controlRequest `json:"request"`
}

// mcpStatus is how a server of the Model Context Protocol is doing.
type mcpStatus struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// content is the message of the API in a user or assistant message.
type content struct {
	ID    string `json:"id"`
	Model string `json:"model"`
	// Content is a text or a list of blocks.
	Content json.RawMessage `json:"content"`
	Usage   *callUsage      `json:"usage"`
}

// block is a part of a message.
type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// blocks are the parts of a message; none where its content is a text.
func (c *content) blocks() []block {
	if c == nil {
		return nil
	}
	var list []block
	if json.Unmarshal(c.Content, &list) != nil {
		return nil
	}
	return list
}

// callUsage is what one call of the model used, as far as it is told: a field that is not there says nothing.
type callUsage struct {
	Input         *int64 `json:"input_tokens"`
	Output        *int64 `json:"output_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
}

// modelUsage is what a process used of a model so far.
type modelUsage struct {
	Input         int64    `json:"inputTokens"`
	Output        int64    `json:"outputTokens"`
	CacheRead     int64    `json:"cacheReadInputTokens"`
	CacheCreation int64    `json:"cacheCreationInputTokens"`
	CostUSD       *float64 `json:"costUSD"`
}

// rateLimit is how a limit of the subscription stands.
type rateLimit struct {
	Status      string   `json:"status"`
	Type        string   `json:"rateLimitType"`
	Utilization *float64 `json:"utilization"`
	ResetsAt    *float64 `json:"resetsAt"`
}

// streamEvent is an event of the API's stream.
type streamEvent struct {
	Type    string     `json:"type"`
	Message *content   `json:"message"`
	Block   *block     `json:"content_block"`
	Usage   *callUsage `json:"usage"`
	Delta   *struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
	} `json:"delta"`
}

// controlRequest is what Claude Code asks of the runtime.
type controlRequest struct {
	Subtype  string          `json:"subtype"`
	ToolName string          `json:"tool_name"`
	Input    json.RawMessage `json:"input"`
}

// parse reads a line. ok is false where it is no JSON object. A field of another kind than the runtime knows is left out.
func parse(line []byte) (m message, ok bool) {
	if len(line) == 0 || line[0] != '{' || !json.Valid(line) || !utf8.Valid(line) {
		return message{}, false
	}
	_ = json.Unmarshal(line, &m) // it is valid, and goes on behind a field that it cannot read
	return m, true
}

// record is the record of a line, whose bytes it takes; ok is false where it is none.
func record(line []byte, m message) (r runtime.Record, ok bool) {
	switch m.Type {
	case typeStream, typeControlRequest, typeControlResponse, typeControlCancel, typeKeepAlive:
		return runtime.Record{}, false
	case typeSystem:
		if m.Subtype == subtypeThinking {
			return runtime.Record{}, false
		}
	}
	name := m.Type
	switch name {
	case typeRateLimit:
		name = recordRateLimit
	case "":
		name = "untyped"
	}
	return runtime.Record{Source: feed.SourceClaudeCode, Format: feed.FormatClaudeJSONL, Type: name, Payload: line}, true
}

// unreadable is the record of a line that is no message: lost to programs, but not to people.
func unreadable(line []byte, whole int) runtime.Record {
	text := strings.ToValidUTF8(string(line), "�")
	if whole > len(line) {
		text += "…"
	}
	payload, _ := json.Marshal(struct { // strings and numbers can be encoded
		Text  string `json:"text"`
		Bytes int    `json:"bytes"`
	}{text, whole})
	return runtime.Record{Source: feed.SourceClaudeCode, Format: feed.FormatClaudeJSONL, Type: recordUnreadable, Payload: payload}
}
