package feed

// This file fills in the fields of the envelope that repeat what the payload says.

import "slices"

// The names of tools that are not the runtime's own: what Codex does is told in the words of Claude Code, as the contract does for its
// commands, so that one watcher understands both.
const (
	ToolBash      = "Bash"
	ToolEdit      = "Edit"
	ToolWebSearch = "WebSearch"
)

// Derive fills in what the record's payload tells of itself; what it does not tell becomes nil:
//
//	Tools     the tools that a message of the model uses, each once, in order; of Codex the tool that stands for an item: Bash for a command,
//	          Edit for a change of files, WebSearch, and mcp__SERVER__TOOL for a tool of an MCP server
//	Tokens    the usage of the one model call or turn that the payload is about, no token twice: Codex counts cached tokens in its input,
//	          which are taken off it here. Of a Codex thread's usage it is the last call's. NumTurns and CostUSD are those of the usage
//	          itself, 0 where it has none
//	Cost      what a result says that it cost, in millicents, half up
//	Duration  what a result says that it took, in milliseconds
//	Model     the model that wrote a message; nil for messages that the runtime made up itself
//
// The fields tell of this record only. They do not add up over a session: Claude Code repeats a message's usage with each part of it, and
// Codex repeats the last call's. Payloads of kind unknown are read as well: that one part of a message is new makes its usage no less true.
func Derive(r *Record) {
	r.Tools, r.Tokens, r.Cost, r.Duration, r.Model = nil, nil, nil, nil, nil
	if !whole(r.Payload) {
		return
	}
	switch {
	case r.Source == SourceClaudeCode && r.Format == FormatClaudeJSONL:
		deriveClaude(r)
	case r.Source == SourceClaudeCode && r.Format == FormatClaudeSDK:
		deriveClaudeSDK(r)
	case r.Source == SourceCodex && r.Format == FormatCodexAppServer:
		deriveCodex(r)
	case r.Source == SourceCodex && r.Format == FormatCodexJSONL:
		deriveCodexJSONL(r)
	}
}

func deriveClaude(r *Record) {
	switch r.Type {
	case "assistant":
		message := pick(r.Payload, "message")[0]
		m := pick(message, "content", "usage", "model")
		r.Tools, r.Tokens, r.Model = toolUses(m[0]), claudeTokens(m[1]), claudeModel(m[2])
	case "result":
		deriveResult(r, "total_cost_usd")
	}
}

func deriveClaudeSDK(r *Record) {
	switch r.Type {
	case "assistant":
		m := pick(r.Payload, "content", "usage", "model")
		r.Tools, r.Tokens, r.Model = toolUses(m[0]), claudeTokens(m[1]), claudeModel(m[2])
	case "result":
		deriveResult(r, "cost_usd")
	}
}

func deriveResult(r *Record, costField string) {
	m := pick(r.Payload, "usage", "duration_ms", costField)
	r.Tokens, r.Duration = claudeTokens(m[0]), optionalInt(m[1])
	if cost := m[2]; len(cost) > 0 && isNumber(cost) {
		if n, ok := millicents(cost); ok {
			r.Cost = &n
		}
	}
}

func deriveCodex(r *Record) {
	params := pick(r.Payload, "params")[0]
	switch r.Type {
	case "item/started", "item/completed":
		r.Tools = itemTools(pick(params, "item")[0], "commandExecution", "fileChange", "mcpToolCall", "webSearch")
	case "thread/tokenUsage/updated":
		last := pick(pick(params, "tokenUsage")[0], "last")[0]
		r.Tokens = codexTokens(last, "inputTokens", "outputTokens", "cachedInputTokens", "cacheWriteInputTokens")
	}
}

func deriveCodexJSONL(r *Record) {
	switch r.Type {
	case "item.started", "item.updated", "item.completed":
		r.Tools = itemTools(pick(r.Payload, "item")[0], "command_execution", "file_change", "mcp_tool_call", "web_search")
	case "turn.completed":
		usage := pick(r.Payload, "usage")[0]
		r.Tokens = codexTokens(usage, "input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
	}
}

// toolUses are the names of the tools that blocks of content use.
func toolUses(content []byte) []string {
	if len(content) == 0 || content[0] != '[' {
		return nil
	}
	var tools []string
	e := elements{data: content}
	for e.next() {
		start := e.pos
		if !e.skip() {
			break
		}
		block := pick(content[start:e.pos], "type", "name")
		if kind := str(block[0]); kind != BlockToolUse && kind != BlockServerToolUse {
			continue
		}
		if tool := str(block[1]); tool != "" && !slices.Contains(tools, tool) {
			tools = append(tools, tool)
		}
	}
	return tools
}

// itemTools is the tool that an item of Codex stands for.
func itemTools(item []byte, command, change, mcp, search string) []string {
	m := pick(item, "type", "server", "tool")
	switch str(m[0]) {
	case command:
		return []string{ToolBash}
	case change:
		return []string{ToolEdit}
	case search:
		return []string{ToolWebSearch}
	case mcp:
		if server, tool := str(m[1]), str(m[2]); server != "" && tool != "" {
			return []string{"mcp__" + server + "__" + tool}
		}
	}
	return nil
}

// claudeModel is the model of a message. What Claude Code writes itself, such as an error of the API, has a model in angle brackets.
func claudeModel(value []byte) *string {
	model := str(value)
	if model == "" || model[0] == '<' {
		return nil
	}
	return &model
}

// claudeTokens reads a usage in which the four counts are apart.
func claudeTokens(usage []byte) *TokensInfo {
	if len(usage) == 0 || usage[0] != '{' {
		return nil
	}
	m := pick(usage, "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "num_turns", "cost_usd")
	var t TokensInfo
	for i, to := range []*int64{&t.InputTokens, &t.OutputTokens, &t.CacheReadTokens, &t.CacheCreationTokens, &t.NumTurns} {
		if !readCount(m[i], to) {
			return nil
		}
	}
	if cost := m[5]; len(cost) > 0 && isNumber(cost) {
		t.CostUSD, _ = readFloat(cost)
	}
	return &t
}

// codexTokens reads a usage whose input has the cached tokens in it.
func codexTokens(usage []byte, inField, outField, readField, writeField string) *TokensInfo {
	if len(usage) == 0 || usage[0] != '{' {
		return nil
	}
	m := pick(usage, inField, outField, readField, writeField)
	var t TokensInfo
	for i, to := range []*int64{&t.InputTokens, &t.OutputTokens, &t.CacheReadTokens, &t.CacheCreationTokens} {
		if !readCount(m[i], to) {
			return nil
		}
	}
	t.InputTokens = max(0, t.InputTokens-t.CacheReadTokens-t.CacheCreationTokens)
	return &t
}

// readCount reads a count, which stays 0 where there is none or it is null. ok is false for anything that is no count.
func readCount(value []byte, to *int64) (ok bool) {
	if len(value) == 0 || value[0] == 'n' {
		return true
	}
	n, err := readInt(value)
	*to = n
	return err == nil && n >= 0
}

func optionalInt(value []byte) *int64 {
	if len(value) == 0 {
		return nil
	}
	n, err := readInt(value)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// str is the value of a string, empty for anything else.
func str(value []byte) string {
	if len(value) == 0 || value[0] != '"' {
		return ""
	}
	s, err := readString(value)
	if err != nil {
		return ""
	}
	return s
}

// mostPicked is the most members that one pick finds.
const mostPicked = 6

// pick gives the values of an object's members in the order of their names, nil for one that is not there, of several the last. What is no
// object has no members. The data is valid JSON.
func pick(object []byte, names ...string) (values [mostPicked][]byte) {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return values
	}
	m := members{data: object, pos: i}
	for m.next() {
		key, start := m.key, m.pos
		if !m.skip() {
			break
		}
		for n, name := range names {
			if key.is(name) {
				values[n] = object[start:m.pos]
			}
		}
	}
	return values
}
