package feed

// This file has views of the messages of Claude Code, for those who render them: Decode[ClaudeMessage] reads any payload of claude_jsonl@1,
// and SDKMessage gives the historical ones of claude_sdk@1 the same form.

import "encoding/json"

// The record types of Claude Code. A record of type rate_limit has a payload of type rate_limit_event.
const (
	ClaudeSystem            = "system"
	ClaudeUser              = "user"
	ClaudeAssistant         = "assistant"
	ClaudeRateLimit         = "rate_limit"
	ClaudeRateLimitEvent    = "rate_limit_event"
	ClaudeResult            = "result"
	ClaudeConversationReset = "conversation_reset"
)

// ClaudeMessage is any message of Claude Code; which fields are filled follows from Type.
type ClaudeMessage struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	UUID      string `json:"uuid"`
	// ParentToolUseID is the tool use that a subagent's message belongs to.
	ParentToolUseID *string `json:"parent_tool_use_id"`
	// IsReplay says that a user message is an echo.
	IsReplay bool `json:"isReplay"`
	// Error of an assistant message.
	Error *string `json:"error"`
	// Message of user and assistant.
	Message ClaudeContent `json:"message"`
	// RateLimit of rate_limit_event.
	RateLimit ClaudeRateLimitInfo `json:"rate_limit_info"`
	// NewConversationID of conversation_reset.
	NewConversationID string `json:"new_conversation_id"`
	ClaudeOutcome
}

// ClaudeOutcome is what a result says.
type ClaudeOutcome struct {
	IsError          bool            `json:"is_error"`
	NumTurns         int64           `json:"num_turns"`
	DurationMS       int64           `json:"duration_ms"`
	DurationAPIMS    int64           `json:"duration_api_ms"`
	Result           *string         `json:"result"`
	Errors           []string        `json:"errors"`
	StopReason       *string         `json:"stop_reason"`
	StructuredOutput json.RawMessage `json:"structured_output"`
	// TotalCostUSD is what the process cost so far.
	TotalCostUSD *float64                    `json:"total_cost_usd"`
	Usage        *ClaudeUsage                `json:"usage"`
	ModelUsage   map[string]ClaudeModelUsage `json:"modelUsage"`
}

// ClaudeContent is the message inside of a message.
type ClaudeContent struct {
	ID         string       `json:"id"`
	Role       string       `json:"role"`
	Model      string       `json:"model"`
	Content    Blocks       `json:"content"`
	StopReason *string      `json:"stop_reason"`
	Usage      *ClaudeUsage `json:"usage"`
}

// ClaudeUsage is the tokens of one model call. The four counts are apart.
type ClaudeUsage struct {
	InputTokens         int64   `json:"input_tokens"`
	OutputTokens        int64   `json:"output_tokens"`
	CacheReadTokens     int64   `json:"cache_read_input_tokens"`
	CacheCreationTokens int64   `json:"cache_creation_input_tokens"`
	NumTurns            int64   `json:"num_turns"`
	CostUSD             float64 `json:"cost_usd"`
}

// ClaudeModelUsage is what a result says of one model, since the process began.
type ClaudeModelUsage struct {
	InputTokens         int64   `json:"inputTokens"`
	OutputTokens        int64   `json:"outputTokens"`
	CacheReadTokens     int64   `json:"cacheReadInputTokens"`
	CacheCreationTokens int64   `json:"cacheCreationInputTokens"`
	CostUSD             float64 `json:"costUSD"`
}

// ClaudeRateLimitInfo is how far a usage limit is used. Times are in seconds since 1970.
type ClaudeRateLimitInfo struct {
	Status        string `json:"status"`
	RateLimitType string `json:"rateLimitType"`
	// Utilization is from 0 to 1.
	Utilization           *float64 `json:"utilization"`
	ResetsAt              *int64   `json:"resetsAt"`
	OverageStatus         *string  `json:"overageStatus"`
	OverageResetsAt       *int64   `json:"overageResetsAt"`
	OverageDisabledReason *string  `json:"overageDisabledReason"`
}

// The types of blocks.
const (
	BlockText             = "text"
	BlockThinking         = "thinking"
	BlockToolUse          = "tool_use"
	BlockToolResult       = "tool_result"
	BlockServerToolUse    = "server_tool_use"
	BlockServerToolResult = "server_tool_result"
)

// Block is a piece of a message's content; which fields are filled follows from Type.
type Block struct {
	Type string `json:"type"`
	// Text of text, Thinking of thinking.
	Text     string `json:"text"`
	Thinking string `json:"thinking"`
	// ID, Name and Input of a tool_use.
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// ToolUseID, Content and IsError of a tool_result.
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// ResultText is the text of a tool's result: the string that it is, or the texts in it, one a line.
func (b Block) ResultText() string {
	blocks, err := Decode[Blocks](b.Content)
	if err != nil {
		return ""
	}
	text := ""
	for _, part := range blocks {
		if part.Type == BlockText && part.Text != "" {
			if text != "" {
				text += "\n"
			}
			text += part.Text
		}
	}
	return text
}

// Blocks is a message's content. A string is read as one block of text. A block that does not fit is passed over, and the rest is read.
type Blocks []Block

// UnmarshalJSON reads a string, an array of blocks, or null.
func (b *Blocks) UnmarshalJSON(data []byte) error {
	*b = nil
	if len(data) > 0 && data[0] == '"' {
		block := Block{Type: BlockText}
		err := json.Unmarshal(data, &block.Text)
		*b = Blocks{block}
		return err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	for _, one := range raw {
		var block Block
		if json.Unmarshal(one, &block) == nil {
			*b = append(*b, block)
		}
	}
	return nil
}

// SDKMessage reads a payload of claude_sdk@1 as the message of Claude Code that it tells of.
func SDKMessage(payload []byte) (ClaudeMessage, error) {
	var sdk struct {
		Kind            string       `json:"kind"`
		Subtype         string       `json:"subtype"`
		SessionID       string       `json:"session_id"`
		UUID            string       `json:"uuid"`
		ParentToolUseID *string      `json:"parent_tool_use_id"`
		Error           *string      `json:"error"`
		MessageID       string       `json:"message_id"`
		Model           string       `json:"model"`
		Content         Blocks       `json:"content"`
		Usage           *ClaudeUsage `json:"usage"`
		StopReason      *string      `json:"stop_reason"`
		Status          string       `json:"status"`
		RateLimitType   string       `json:"rate_limit_type"`
		Utilization     *float64     `json:"utilization"`
		ResetsAt        *int64       `json:"resets_at"`
		CostUSD         *float64     `json:"cost_usd"`
	}
	err := json.Unmarshal(payload, &sdk)
	m := ClaudeMessage{
		Type: sdk.Kind, Subtype: sdk.Subtype, SessionID: sdk.SessionID, UUID: sdk.UUID, ParentToolUseID: sdk.ParentToolUseID, Error: sdk.Error,
		Message: ClaudeContent{
			ID: sdk.MessageID, Role: sdk.Kind, Model: sdk.Model, Content: sdk.Content, StopReason: sdk.StopReason, Usage: sdk.Usage,
		},
	}
	switch sdk.Kind {
	case ClaudeRateLimit:
		m.Type = ClaudeRateLimitEvent
		m.RateLimit = ClaudeRateLimitInfo{
			Status: sdk.Status, RateLimitType: sdk.RateLimitType, Utilization: sdk.Utilization, ResetsAt: sdk.ResetsAt,
		}
	case ClaudeResult:
		m.Message = ClaudeContent{}
		outcome, outcomeErr := Decode[ClaudeOutcome](payload)
		m.ClaudeOutcome = outcome
		m.TotalCostUSD = sdk.CostUSD
		if err == nil {
			err = outcomeErr
		}
	case ClaudeSystem:
		m.Message = ClaudeContent{}
	}
	return m, err
}
