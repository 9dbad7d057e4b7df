package feed

// This file has views of the messages of Codex, for those who render them: Decode[CodexNotification] reads any payload of
// codex_app_server@1, and JSONLNotification gives the historical ones of codex_jsonl@1 the same form.

import "encoding/json"

// The methods of Codex that the schema knows, which are the types of its records.
const (
	CodexThreadStarted = "thread/started"
	CodexTurnStarted   = "turn/started"
	CodexItemStarted   = "item/started"
	CodexItemUpdated   = "item/updated" // of historical records only
	CodexItemCompleted = "item/completed"
	CodexTokenUsage    = "thread/tokenUsage/updated"
	CodexError         = "error"
	CodexTurnCompleted = "turn/completed"
)

// CodexNotification is any message of Codex; which fields of its parameters are filled follows from Method.
type CodexNotification struct {
	Method string      `json:"method"`
	Params CodexParams `json:"params"`
}

// CodexParams are the parameters of a CodexNotification.
type CodexParams struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	// Thread of thread/started.
	Thread *CodexThread `json:"thread"`
	// Turn of turn/started and turn/completed.
	Turn *CodexTurn `json:"turn"`
	// Item of item/started and item/completed.
	Item *CodexItem `json:"item"`
	// TokenUsage of thread/tokenUsage/updated.
	TokenUsage *CodexThreadUsage `json:"tokenUsage"`
	// Error and WillRetry of error.
	Error     *CodexFailure `json:"error"`
	WillRetry bool          `json:"willRetry"`
}

// CodexThread is a conversation of Codex.
type CodexThread struct {
	ID            string `json:"id"`
	CLIVersion    string `json:"cliVersion"`
	ModelProvider string `json:"modelProvider"`
	CWD           string `json:"cwd"`
}

// CodexTurn is a turn of Codex's own counting. Status is inProgress, completed, failed or interrupted.
type CodexTurn struct {
	ID     string        `json:"id"`
	Status string        `json:"status"`
	Items  []CodexItem   `json:"items"`
	Error  *CodexFailure `json:"error"`
}

// CodexFailure is what went wrong.
type CodexFailure struct {
	Message           string  `json:"message"`
	AdditionalDetails *string `json:"additionalDetails"`
	// Info is a word, or an object with one.
	Info json.RawMessage `json:"codexErrorInfo"`
}

// CodexThreadUsage is the usage of a thread: in all, and of the last model call.
type CodexThreadUsage struct {
	Total              CodexUsage `json:"total"`
	Last               CodexUsage `json:"last"`
	ModelContextWindow *int64     `json:"modelContextWindow"`
}

// CodexUsage is token counts as Codex counts: InputTokens has the cached ones in it. Apart takes them out.
type CodexUsage struct {
	InputTokens           int64 `json:"inputTokens"`
	OutputTokens          int64 `json:"outputTokens"`
	CachedInputTokens     int64 `json:"cachedInputTokens"`
	CacheWriteInputTokens int64 `json:"cacheWriteInputTokens"`
	ReasoningOutputTokens int64 `json:"reasoningOutputTokens"`
	TotalTokens           int64 `json:"totalTokens"`
}

// Apart gives the usage with no token counted twice. Reasoning is a part of the output already.
func (u CodexUsage) Apart() TokensInfo {
	return TokensInfo{
		InputTokens: max(0, u.InputTokens-u.CachedInputTokens-u.CacheWriteInputTokens), OutputTokens: u.OutputTokens,
		CacheReadTokens: u.CachedInputTokens, CacheCreationTokens: u.CacheWriteInputTokens,
	}
}

// The types of items.
const (
	ItemUserMessage       = "userMessage"
	ItemAgentMessage      = "agentMessage"
	ItemReasoning         = "reasoning"
	ItemPlan              = "plan"
	ItemCommandExecution  = "commandExecution"
	ItemFileChange        = "fileChange"
	ItemWebSearch         = "webSearch"
	ItemMCPToolCall       = "mcpToolCall"
	ItemContextCompaction = "contextCompaction"
	// ItemTodoList and ItemError are of historical records only.
	ItemTodoList = "todo_list"
	ItemError    = "error"
)

// CodexItem is a piece of a thread; which fields are filled follows from Type.
type CodexItem struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	// Status is inProgress, completed, failed or declined.
	Status string `json:"status"`
	// Text of agentMessage and plan; Phase of agentMessage is commentary or final_answer.
	Text  string  `json:"text"`
	Phase *string `json:"phase"`
	// Summary of reasoning.
	Summary []string `json:"summary"`
	// Content of userMessage, as Input; of reasoning it is an array of strings.
	Content json.RawMessage `json:"content"`
	// Command and what came of it, of commandExecution. Times are in milliseconds.
	Command          string  `json:"command"`
	CWD              string  `json:"cwd"`
	AggregatedOutput *string `json:"aggregatedOutput"`
	ExitCode         *int64  `json:"exitCode"`
	DurationMS       *int64  `json:"durationMs"`
	// Changes of fileChange.
	Changes []CodexChange `json:"changes"`
	// Query of webSearch.
	Query string `json:"query"`
	// Server, Tool, Arguments, Result and Error of mcpToolCall.
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    *CodexMCPResult `json:"result"`
	Error     *CodexMCPError  `json:"error"`
}

// CodexChange is a change of one file.
type CodexChange struct {
	Path string     `json:"path"`
	Diff string     `json:"diff"`
	Kind ChangeKind `json:"kind"`
}

// ChangeKind is add, delete or update.
type ChangeKind string

// UnmarshalJSON reads the kind of today's changes, which is the type of an object, and of historical ones, which is a string.
func (k *ChangeKind) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(k))
	}
	var kind struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(data, &kind)
	*k = ChangeKind(kind.Type)
	return err
}

// CodexMCPResult is what a tool of an MCP server gave.
type CodexMCPResult struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
}

// CodexMCPError is why a tool of an MCP server gave nothing.
type CodexMCPError struct {
	Message string `json:"message"`
}

// CodexInput is a piece of a userMessage: text, or localImage with a path.
type CodexInput struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Path string `json:"path"`
}

// Input is the content of a userMessage, nil for other items.
func (i CodexItem) Input() []CodexInput {
	if i.Type != ItemUserMessage {
		return nil
	}
	input, err := Decode[[]CodexInput](i.Content)
	if err != nil {
		return nil
	}
	return input
}
