// Package feedtest has made-up session events for tests: a record of every type, a session object in which nothing is null, and frames.
// What a record says of itself is written by hand, so that it can be held against what package feed makes of the payload.
package feedtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// SessionID is the session of all records, Turn their turn and Message the message that they answer.
const (
	SessionID = "s1-lamp-7f3a"
	Turn      = SessionID + "-t0"
	Message   = "m-41"
)

// Start is when the first record was made; each one is a second and a quarter after the one before.
var Start = time.Date(2027, time.March, 4, 5, 6, 7, 0, time.UTC)

// sample is a record without what all records have.
type sample struct {
	kind     feed.Kind
	source   string
	format   string
	typ      string
	payload  string
	tools    []string
	tokens   *feed.TokensInfo
	cost     *int64
	duration *int64
	model    string
	message  string
	noTurn   bool
}

// Records gives a record of every type that the schema knows, with every kind of block and item, and some that are unknown. Their places
// are 1, 2, 3 and so on. They are independent messages, no transcript.
func Records() []feed.Record {
	var records []feed.Record
	for i, s := range slices.Concat(platform, claude, codex, claudeSDK, codexJSONL, unknown) {
		records = append(records, s.record(int64(i+1)))
	}
	return records
}

// Encoded gives the records as JSON.
func Encoded() [][]byte {
	var out [][]byte
	for _, r := range Records() {
		out = append(out, feed.AppendRecord(nil, &r))
	}
	return out
}

func (s sample) record(seq int64) feed.Record {
	r := feed.Record{
		Kind: s.kind, Source: s.source, Format: s.format, Type: s.typ, ID: fmt.Sprintf("rec-%03d", seq), SessionID: SessionID, FeedSeq: seq,
		Payload: json.RawMessage(s.payload), Tools: slices.Clone(s.tools), CreatedAt: Start.Add(time.Duration(seq-1) * 1250 * time.Millisecond),
	}
	if s.tokens != nil {
		r.Tokens = new(*s.tokens)
	}
	if s.cost != nil {
		r.Cost = new(*s.cost)
	}
	if s.duration != nil {
		r.Duration = new(*s.duration)
	}
	if s.model != "" {
		r.Model = new(s.model)
	}
	if s.message != "" {
		r.MessageID = new(s.message)
	}
	if !s.noTurn {
		r.TurnID = new(Turn)
	}
	return r
}

func lifecycle(typ, payload string) sample {
	return sample{kind: feed.KindPlatform, source: feed.SourceLifecycle, format: feed.FormatLifecycle, typ: typ, payload: payload}
}

func of(s sample, message string) sample {
	s.message = message
	return s
}

func noTurn(s sample) sample {
	s.noTurn = true
	return s
}

var platform = []sample{
	of(lifecycle(feed.TypeMessageReceived, `{"message_id":"m-41","turn_id":"s1-lamp-7f3a-t0",`+
		`"body":"Swap the lamp <east> & log it\nbefore dusk.",`+
		`"author":"Noor","sender_attribution_type":"slack_user","sender_attribution_id":"U77","closes_session":false}`), Message),
	of(lifecycle(feed.TypeMessageReceived, `{"message_id":"m-42","body":""}`), "m-42"),
	lifecycle(feed.TypeEnvironmentPhase, `{"phase":"setup","status":"started","step":"build_base","duration_ms":null,"detail":null}`),
	lifecycle(feed.TypeEnvironmentPhase, `{"phase":"hooks","status":"failed","step":"before_start","duration_ms":912,`+
		`"detail":{"exit_code":3}}`),
	lifecycle(feed.TypeEnvironmentOutput, `{"phase":"clone","step":"harbour/lights","stream":"stderr","chunk":2,`+
		`"lines":["remote: 14 objects",""]}`),
	lifecycle(feed.TypeEnvironmentReady, `{"repositories":["harbour/lights","harbour/charts"],"duration_ms":5120}`),
	lifecycle(feed.TypeTurnStarted, `{"turn_id":"s1-lamp-7f3a-t0","turn_index":0}`),
	of(lifecycle(feed.TypeMessageDelivered, `{"message_id":"m-41","turn_id":"s1-lamp-7f3a-t0"}`), Message),
	lifecycle(feed.TypeTurnEnded, `{"turn_id":"s1-lamp-7f3a-t0","turn_index":0,"status":"failed","reason":"blocked",`+
		`"detail":"The tower is locked.",`+
		`"duration_ms":61000}`),
	of(lifecycle(feed.TypeMessageRequeued, `{"message_id":"m-41","turn_id":"s1-lamp-7f3a-t0","requeued_turn_id":"s1-lamp-7f3a-t1"}`), Message),
	noTurn(lifecycle(feed.TypeSessionClosed, `{}`)),
}

func claudeCode(typ, payload string) sample {
	return sample{kind: feed.KindClaudeCode, source: feed.SourceClaudeCode, format: feed.FormatClaudeJSONL, typ: typ, payload: payload}
}

var claude = []sample{
	claudeCode(feed.ClaudeSystem, `{"type":"system","subtype":"init","cwd":"/home/noor/lights","tools":["Bash","Edit"],"model":"beacon-4-1",`+
		`"session_id":"aa0e","uuid":"u-1","mcp_servers":[{"name":"tides","status":"connected"}]}`),
	claudeCode(feed.ClaudeSystem, `{"subtype":"compact_boundary","type":"system","compact_metadata":{"trigger":"auto","pre_tokens":151000}}`),
	of(claudeCode(feed.ClaudeUser, `{"type":"user","isReplay":true,"message":{"role":"user","content":"Swap the lamp."},`+
		`"session_id":"aa0e"}`), Message),
	claudeCode(feed.ClaudeUser, `{"type":"user","message":{"role":"user","content":[{"tool_use_id":"tu-1","type":"tool_result","content":`+
		`[{"type":"text","text":"lamp.txt"},{"type":"image","source":{"data":"aGk="}}]},{"type":"tool_result","tool_use_id":"tu-2",`+
		`"is_error":true,`+
		`"content":null},{"type":"text","text":"go on"}]},"parent_tool_use_id":"tu-0","uuid":null}`),
	{
		kind: feed.KindClaudeCode, source: feed.SourceClaudeCode, format: feed.FormatClaudeJSONL, typ: feed.ClaudeAssistant,
		payload: `{"type":"assistant","message":{"id":"msg-9","type":"message","role":"assistant","model":"beacon-4-1","content":[` +
			`{"type":"thinking","thinking":"East first.","signature":"c2ln"},{"type":"text","text":"I look at both lamps."},` +
			`{"type":"tool_use","id":"tu-1","name":"Bash","input":{"command":"ls -1 lamps && date"}},` +
			`{"type":"tool_use","id":"tu-2","name":"mcp__tides__next","input":{}},{"type":"tool_use","id":"tu-3","name":"Bash"},` +
			`{"type":"server_tool_use","id":"su-1","name":"web_search","input":{"query":"dusk"}},` +
			`{"type":"server_tool_result","tool_use_id":"su-1","content":{"hits":9007199254740993}}],"stop_reason":"tool_use",` +
			`"stop_sequence":null,` +
			`"usage":{"input_tokens":31,"output_tokens":207,"cache_read_input_tokens":14002,"cache_creation_input_tokens":655,` +
			`"cache_creation":{"ephemeral_5m_input_tokens":655},"service_tier":"standard"}},"parent_tool_use_id":null,"session_id":"aa0e",` +
			`"uuid":"u-4"}`,
		tools:  []string{"Bash", "mcp__tides__next", "web_search"},
		tokens: &feed.TokensInfo{InputTokens: 31, OutputTokens: 207, CacheReadTokens: 14002, CacheCreationTokens: 655},
		model:  "beacon-4-1",
	},
	{
		kind: feed.KindClaudeCode, source: feed.SourceClaudeCode, format: feed.FormatClaudeJSONL, typ: feed.ClaudeAssistant,
		payload: `{"type":"assistant","error":"rate_limit","message":{"type":"message","role":"assistant","model":"<synthetic>",` +
			`"content":[{"type":"text","text":"Limit reached."}],"usage":null}}`,
	},
	claudeCode(feed.ClaudeRateLimit, `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","rateLimitType":"seven_day",`+
		`"utilization":0.91,"resetsAt":1804136400,"overageStatus":"rejected","overageResetsAt":null,"overageDisabledReason":"none"},`+
		`"uuid":"u-5"}`),
	{
		kind: feed.KindClaudeCode, source: feed.SourceClaudeCode, format: feed.FormatClaudeJSONL, typ: feed.ClaudeResult,
		payload: `{"type":"result","subtype":"success","is_error":false,"num_turns":3,"duration_ms":48211,"duration_api_ms":40007,` +
			`"result":"Both lamps burn.","total_cost_usd":0.123455,"usage":{"input_tokens":90,"output_tokens":411,"cache_read_input_tokens":30100,` +
			`"cache_creation_input_tokens":702},"modelUsage":{"beacon-4-1":{"inputTokens":90,"outputTokens":411,"costUSD":0.123455}},` +
			`"structured_output":{"lamps":2},"stop_reason":"end_turn","session_id":"aa0e","uuid":"u-6"}`,
		tokens: &feed.TokensInfo{InputTokens: 90, OutputTokens: 411, CacheReadTokens: 30100, CacheCreationTokens: 702},
		cost:   new(int64(12346)), duration: new(int64(48211)),
	},
	{
		kind: feed.KindClaudeCode, source: feed.SourceClaudeCode, format: feed.FormatClaudeJSONL, typ: feed.ClaudeResult,
		payload: `{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":1,"duration_ms":35,"duration_api_ms":0,` +
			`"errors":["the tower is locked"],"total_cost_usd":null}`,
		duration: new(int64(35)),
	},
	claudeCode(feed.ClaudeConversationReset, `{"type":"conversation_reset","new_conversation_id":"bb1f","session_id":"aa0e","uuid":"u-7"}`),
}

func appServer(method, params string, tools ...string) sample {
	return sample{
		kind: feed.KindCodexAppServer, source: feed.SourceCodex, format: feed.FormatCodexAppServer, typ: method,
		payload: `{"method":"` + method + `","params":` + params + `}`, tools: tools,
	}
}

func item(method, item string, tools ...string) sample {
	return appServer(method, `{"threadId":"th-3","turnId":"nt-8","item":`+item+`}`, tools...)
}

var codex = []sample{
	appServer(feed.CodexThreadStarted, `{"thread":{"id":"th-3","cliVersion":"0.201.4","modelProvider":"stand-in","cwd":"/home/noor/lights",`+
		`"preview":"","turns":[{"id":"nt-7","status":"interrupted","items":[{"type":"agentMessage","id":"it-0","text":"…"}],"error":null}]}}`),
	appServer(feed.CodexTurnStarted, `{"threadId":"th-3","turn":{"id":"nt-8","status":"inProgress","items":[],"error":null,`+
		`"startedAt":1804136401}}`),
	of(item(feed.CodexItemCompleted, `{"type":"userMessage","id":"it-1","clientId":null,"content":[{"type":"text","text":"Swap the lamp.",`+
		`"text_elements":[{"byteRange":{"start":0,"end":4}}]},{"type":"localImage","path":"/tmp/lamp.png","detail":"low"}]}`), Message),
	item(feed.CodexItemCompleted, `{"type":"reasoning","id":"it-2","summary":["**Looking east**"],"content":[]}`),
	item(feed.CodexItemCompleted, `{"type":"plan","id":"it-3","text":"1. look 2. swap"}`),
	item(feed.CodexItemStarted, `{"type":"commandExecution","id":"it-4","command":"ls lamps","cwd":"/home/noor/lights","processId":"81",`+
		`"commandActions":[{"type":"listFiles","command":"ls lamps","path":"lamps"}],"status":"inProgress"}`, feed.ToolBash),
	item(feed.CodexItemCompleted, `{"type":"commandExecution","id":"it-4","command":"ls lamps","cwd":"/home/noor/lights","commandActions":[],`+
		`"status":"failed","aggregatedOutput":"ls: lamps: none\n","exitCode":2,"durationMs":17}`, feed.ToolBash),
	item(feed.CodexItemCompleted, `{"type":"fileChange","id":"it-5","changes":[{"path":"log.md","kind":{"type":"update","move_path":null},`+
		`"diff":"@@ -1 +1 @@\n-dark\n+lit\n"}],"status":"completed"}`, feed.ToolEdit),
	item(feed.CodexItemCompleted, `{"type":"webSearch","id":"it-6","query":"dusk today","action":{"type":"search","query":"dusk today"}}`,
		feed.ToolWebSearch),
	item(feed.CodexItemCompleted, `{"type":"mcpToolCall","id":"it-7","server":"tides","tool":"next","status":"completed",`+
		`"arguments":{"port":"east"},`+
		`"appContext":{"connectorId":"c-1","appName":"Tides","actionName":null},"result":{"content":[{"type":"text","text":"04:12"}],`+
		`"structuredContent":{"at":"04:12"},"_meta":null},"error":null,"durationMs":88}`, "mcp__tides__next"),
	item(feed.CodexItemStarted, `{"type":"mcpToolCall","id":"it-8","server":"tides","tool":"next","status":"failed","arguments":null,`+
		`"error":{"message":"no such port"}}`, "mcp__tides__next"),
	item(feed.CodexItemCompleted, `{"type":"contextCompaction","id":"it-9"}`),
	item(feed.CodexItemCompleted, `{"type":"agentMessage","id":"it-10","text":"Both lamps burn.","phase":"final_answer"}`),
	{
		kind: feed.KindCodexAppServer, source: feed.SourceCodex, format: feed.FormatCodexAppServer, typ: feed.CodexTokenUsage,
		payload: `{"method":"thread/tokenUsage/updated","params":{"threadId":"th-3","turnId":"nt-8","tokenUsage":{"total":{"inputTokens":9100,` +
			`"outputTokens":333,"cachedInputTokens":6000,"cacheWriteInputTokens":500,"reasoningOutputTokens":120,"totalTokens":9433},"last":` +
			`{"inputTokens":4100,"outputTokens":133,"cachedInputTokens":3000,"cacheWriteInputTokens":250,"reasoningOutputTokens":20,` +
			`"totalTokens":4233},"modelContextWindow":200000}}}`,
		tokens: &feed.TokensInfo{InputTokens: 850, OutputTokens: 133, CacheReadTokens: 3000, CacheCreationTokens: 250},
	},
	appServer(feed.CodexError, `{"threadId":"th-3","turnId":"nt-8","willRetry":false,"error":{"message":"The tower does not answer.",`+
		`"additionalDetails":"after 5 tries","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":502}}}}`),
	appServer(feed.CodexTurnCompleted, `{"threadId":"th-3","turn":{"id":"nt-8","status":"failed","items":[],`+
		`"error":{"message":"The tower does not answer.","codexErrorInfo":"serverOverloaded"}}}`),
}

func sdk(typ, payload string) sample {
	return sample{kind: feed.KindClaudeSDK, source: feed.SourceClaudeCode, format: feed.FormatClaudeSDK, typ: typ, payload: payload}
}

var claudeSDK = []sample{
	sdk("system", `{"kind":"system","subtype":"init","data":{"cwd":"/srv/lights"},"session_id":"old-1","uuid":null}`),
	sdk("user", `{"kind":"user","content":[{"type":"tool_result","tool_use_id":"tu-9","content":"ok"}],"parent_tool_use_id":null}`),
	{
		kind: feed.KindClaudeSDK, source: feed.SourceClaudeCode, format: feed.FormatClaudeSDK, typ: "assistant",
		payload: `{"kind":"assistant","model":"beacon-3","content":[{"type":"tool_use","id":"tu-9","name":"Read",` +
			`"input":{"file_path":"log.md"}}],` +
			`"message_id":"msg-2","stop_reason":null,"usage":{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":7,` +
			`"cache_creation_input_tokens":8,"num_turns":2,"cost_usd":0.0625},"cache_creation":{"ephemeral_1h_input_tokens":8}}`,
		tools:  []string{"Read"},
		tokens: &feed.TokensInfo{InputTokens: 5, OutputTokens: 6, CacheReadTokens: 7, CacheCreationTokens: 8, NumTurns: 2, CostUSD: 0.0625},
		model:  "beacon-3",
	},
	{
		kind: feed.KindClaudeSDK, source: feed.SourceClaudeCode, format: feed.FormatClaudeSDK, typ: "result",
		payload: `{"kind":"result","subtype":"error_max_turns","is_error":true,"num_turns":9,"duration_ms":1200,"duration_api_ms":1100,` +
			`"api_error_status":529,"errors":["too many turns"],"cost_usd":0.000004,"usage":{},"model_usage":{"beacon-3":{}}}`,
		tokens: &feed.TokensInfo{}, cost: new(int64(0)), duration: new(int64(1200)),
	},
	sdk("rate_limit", `{"kind":"rate_limit","status":"rejected","rate_limit_type":"five_hour","utilization":1,"resets_at":1700000000,`+
		`"uuid":"u"}`),
}

func jsonl(typ, rest string, tools ...string) sample {
	return sample{
		kind: feed.KindCodex, source: feed.SourceCodex, format: feed.FormatCodexJSONL, typ: typ,
		payload: `{"type":"` + typ + `"` + rest + `}`, tools: tools,
	}
}

var codexJSONL = []sample{
	jsonl("thread.started", `,"thread_id":"old-th"`),
	jsonl("turn.started", ``),
	jsonl("item.started", `,"item":{"id":"i0","type":"command_execution","command":"make lamp","status":"in_progress"}`, feed.ToolBash),
	jsonl("item.updated", `,"item":{"id":"i1","type":"todo_list","items":[{"text":"look","completed":true}]}`),
	jsonl("item.completed", `,"item":{"id":"i0","type":"command_execution","command":"make lamp","aggregated_output":"lit","exit_code":0,`+
		`"status":"completed"}`, feed.ToolBash),
	jsonl("item.completed", `,"item":{"id":"i2","type":"file_change","changes":[{"path":"log.md","kind":"update"}],"status":"completed"}`,
		feed.ToolEdit),
	jsonl("item.completed", `,"item":{"id":"i3","type":"mcp_tool_call","server":"tides","tool":"next","status":"completed"}`,
		"mcp__tides__next"),
	jsonl("item.completed", `,"item":{"id":"i4","type":"web_search","query":"dusk"}`, feed.ToolWebSearch),
	jsonl("item.completed", `,"item":{"id":"i5","type":"reasoning","text":"East first.","summary":null}`),
	jsonl("item.completed", `,"item":{"id":"i6","type":"agent_message","text":"Both lamps burn."}`),
	jsonl("item.completed", `,"item":{"id":"i7","type":"error","message":"a lamp flickers"}`),
	{
		kind: feed.KindCodex, source: feed.SourceCodex, format: feed.FormatCodexJSONL, typ: "turn.completed",
		payload: `{"type":"turn.completed","usage":{"input_tokens":700,"cached_input_tokens":640,"output_tokens":12,` +
			`"reasoning_output_tokens":3}}`,
		tokens: &feed.TokensInfo{InputTokens: 60, OutputTokens: 12, CacheReadTokens: 640},
	},
	jsonl("turn.failed", `,"error":{"message":"The tower does not answer."}`),
	jsonl("error", `,"message":"The tower does not answer."`),
}

// unknown is what no schema knows: what other runtimes say, new messages, and messages with a part that is new.
var unknown = []sample{
	{
		kind: feed.KindUnknown, source: feed.SourceCommand, format: feed.FormatCommand, typ: "output",
		payload: `{ "line" : "lamp \u2028 <lit> & warm", "n": 123456789012345678901234567890.50, "\u006e": -0, "deep": [[[{}]]] }`,
	},
	noTurn(sample{
		kind: feed.KindUnknown, source: feed.SourceCodex, format: feed.FormatCodexAppServer, typ: "account/rateLimits/updated",
		payload: `{"method":"account/rateLimits/updated","params":{"rateLimits":{"primary":{"usedPercent":41,"windowDurationMins":300}}}}`,
	}),
	{
		kind: feed.KindUnknown, source: feed.SourceCodex, format: feed.FormatCodexAppServer, typ: feed.CodexItemCompleted,
		payload: `{"method":"item/completed","params":{"threadId":"th-3","turnId":"nt-8","item":{"type":"imageView","id":"it-11",` +
			`"path":"a.png"}}}`,
	},
	{
		kind: feed.KindUnknown, source: feed.SourceClaudeCode, format: feed.FormatClaudeJSONL, typ: feed.ClaudeAssistant,
		payload: `{"type":"assistant","message":{"type":"message","role":"assistant","model":"beacon-4-1",` +
			`"content":[{"type":"redacted_thinking",` +
			`"data":"eA=="},{"type":"tool_use","id":"tu-5","name":"Edit","input":{}}],"usage":{"input_tokens":1,"output_tokens":2}}}`,
		tools: []string{"Edit"}, tokens: &feed.TokensInfo{InputTokens: 1, OutputTokens: 2}, model: "beacon-4-1",
	},
	{
		kind: feed.KindUnknown, source: feed.SourceClaudeCode, format: feed.FormatClaudeJSONL, typ: "stream_event",
		payload: `{"type":"stream_event","event":{"type":"message_stop"}}`,
	},
	{
		kind: feed.KindUnknown, source: feed.SourceLifecycle, format: feed.FormatLifecycle, typ: "sandbox_cold_start",
		payload: `{"image":"tower:3"}`,
	},
}
