package feed

// This file reads the historical messages of Codex in the form of today's.

import "encoding/json"

// jsonlWords are today's words for those of codex_jsonl@1: of notifications, items and statuses.
var jsonlWords = map[string]string{
	"thread.started": CodexThreadStarted, "turn.started": CodexTurnStarted,
	"turn.completed": CodexTurnCompleted, "turn.failed": CodexTurnCompleted,
	"item.started": CodexItemStarted, "item.updated": CodexItemUpdated, "item.completed": CodexItemCompleted,
	"agent_message": ItemAgentMessage, "command_execution": ItemCommandExecution, "file_change": ItemFileChange,
	"mcp_tool_call": ItemMCPToolCall, "web_search": ItemWebSearch, "in_progress": "inProgress",
}

func today(word string) string {
	if now, ok := jsonlWords[word]; ok {
		return now
	}
	return word
}

type jsonlMessage struct {
	Type     string        `json:"type"`
	ThreadID string        `json:"thread_id"`
	Message  string        `json:"message"`
	Error    *CodexFailure `json:"error"`
	Item     *jsonlItem    `json:"item"`
	Usage    *jsonlUsage   `json:"usage"`
}

type jsonlItem struct {
	Type             string        `json:"type"`
	ID               string        `json:"id"`
	Status           string        `json:"status"`
	Text             string        `json:"text"`
	Summary          string        `json:"summary"`
	Command          string        `json:"command"`
	AggregatedOutput *string       `json:"aggregated_output"`
	ExitCode         *int64        `json:"exit_code"`
	Changes          []CodexChange `json:"changes"`
	Query            string        `json:"query"`
	Server           string        `json:"server"`
	Tool             string        `json:"tool"`
	Message          string        `json:"message"`
}

type jsonlUsage struct {
	InputTokens           int64 `json:"input_tokens"`
	OutputTokens          int64 `json:"output_tokens"`
	CachedInputTokens     int64 `json:"cached_input_tokens"`
	CacheWriteInputTokens int64 `json:"cache_write_input_tokens"`
	ReasoningOutputTokens int64 `json:"reasoning_output_tokens"`
}

// JSONLNotification reads a payload of codex_jsonl@1 as the notification of today that tells the same. The usage of a turn's end becomes
// the last usage of the thread.
func JSONLNotification(payload []byte) (CodexNotification, error) {
	var old jsonlMessage
	err := json.Unmarshal(payload, &old)
	n := CodexNotification{Method: today(old.Type), Params: CodexParams{ThreadID: old.ThreadID}}
	switch old.Type {
	case "thread.started":
		n.Params.Thread = &CodexThread{ID: old.ThreadID}
	case "turn.started":
		n.Params.Turn = &CodexTurn{Status: "inProgress"}
	case "turn.completed":
		n.Params.Turn = &CodexTurn{Status: "completed"}
	case "turn.failed":
		n.Params.Turn = &CodexTurn{Status: "failed", Error: old.Error}
	case "error":
		n.Params.Error = &CodexFailure{Message: old.Message}
	}
	if u := old.Usage; u != nil {
		n.Params.TokenUsage = &CodexThreadUsage{Last: CodexUsage{
			InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedInputTokens: u.CachedInputTokens,
			CacheWriteInputTokens: u.CacheWriteInputTokens, ReasoningOutputTokens: u.ReasoningOutputTokens,
			TotalTokens: u.InputTokens + u.OutputTokens,
		}}
	}
	if old.Item != nil {
		n.Params.Item = old.Item.today()
	}
	return n, err
}

func (i *jsonlItem) today() *CodexItem {
	item := &CodexItem{
		Type: today(i.Type), ID: i.ID, Status: today(i.Status), Text: i.Text, Command: i.Command, AggregatedOutput: i.AggregatedOutput,
		ExitCode: i.ExitCode, Changes: i.Changes, Query: i.Query, Server: i.Server, Tool: i.Tool,
	}
	if i.Type == ItemReasoning {
		for _, text := range []string{i.Summary, i.Text} {
			if text != "" && item.Summary == nil {
				item.Summary = []string{text}
			}
		}
		item.Text = ""
	}
	if i.Message != "" {
		item.Text = i.Message
	}
	return item
}
