package transcript

// This file has made-up sessions for the tests: what a watcher receives, in order.

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

var began = time.Date(2028, time.February, 29, 9, 15, 0, 0, time.UTC)

// story is a session that is told record by record.
type story struct {
	records []feed.Record
	session feed.Session
}

func newStory(session feed.Session) *story {
	session.CreatedAt = began
	return &story{session: session}
}

func (s *story) add(source, format, typ, payload string, edit ...func(*feed.Record)) *story {
	n := int64(len(s.records) + 1)
	r := feed.Record{
		Source: source, Format: format, Type: typ, ID: fmt.Sprintf("r%d", n), SessionID: s.session.ID, FeedSeq: n,
		Payload: json.RawMessage(payload), CreatedAt: began.Add(time.Duration(n) * 1300 * time.Millisecond),
	}
	for _, e := range edit {
		e(&r)
	}
	s.records = append(s.records, r)
	return s
}

func (s *story) life(typ, payload string) *story {
	return s.add(feed.SourceLifecycle, feed.FormatLifecycle, typ, payload)
}

func (s *story) claude(typ, payload string) *story {
	return s.add(feed.SourceClaudeCode, feed.FormatClaudeJSONL, typ, payload)
}

func (s *story) codex(method, params string) *story {
	return s.add(feed.SourceCodex, feed.FormatCodexAppServer, method, fmt.Sprintf(`{"method":%q,"params":%s}`, method, params))
}

func (s *story) command(typ, payload string) *story {
	return s.add(feed.SourceCommand, feed.FormatCommand, typ, payload)
}

// assistant is a message of Claude with these blocks.
func (s *story) assistant(blocks ...string) *story {
	return s.claude("assistant", `{"type":"assistant","message":{"type":"message","role":"assistant","model":"opus","content":[`+
		strings.Join(blocks, ",")+`]},"parent_tool_use_id":null}`)
}

// user is a message to Claude with these blocks.
func (s *story) user(blocks ...string) *story {
	return s.claude("user", `{"type":"user","message":{"role":"user","content":[`+strings.Join(blocks, ",")+`]}}`)
}

// text, thinking, use and result are blocks.
func text(t string) string { return block(map[string]any{"type": "text", "text": t}) }
func thinking(t string) string {
	return block(map[string]any{"type": "thinking", "thinking": t, "signature": "x"})
}
func use(id, name string, input map[string]any) string {
	return block(map[string]any{"type": "tool_use", "id": id, "name": name, "input": input})
}
func toolResult(id, content string, failed bool) string {
	return block(map[string]any{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed})
}

func block(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func numbered(n int, what string) string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf("%s %d", what, i+1))
	}
	return strings.Join(lines, "\n")
}

func echoes(message string) func(*feed.Record) {
	return func(r *feed.Record) { r.MessageID = &message }
}

// claudeStory is an item that Claude works on in two turns, with a subagent, a failing tool and a message in between.
func claudeStory() *story {
	s := newStory(feed.Session{
		ID: "s1-pier-01", ClaudeCode: &feed.ClaudeCodeOptions{Model: "opus"},
		Metadata: feed.Map[string]{"work_item": "tide-table", "person": "ada-lovelace"},
		Agent:    &feed.Agent{Config: feed.AgentConfig{About: feed.AgentAbout{Name: new("ada")}}},
	})
	s.life("message_received", `{"message_id":"m1","turn_id":"t1","body":"The harbour's tide table is an hour late in summer.\n\nFind out why, and mend it. It may have to do with the `+
		`clocks that change in March: the code that reads them is older than everything else here.\n","author":"grace","closes_session":false}`)
	s.life("environment_phase", `{"phase":"clone","status":"started","step":"harbour/tides","duration_ms":null,"detail":null}`)
	s.life("environment_output", block(map[string]any{"phase": "clone", "step": "harbour/tides", "stream": "stderr", "chunk": 0, "lines": []string{
		"Cloning into 'tides'...", "Receiving objects:  10%\rReceiving objects: 100%", "done."}}))
	s.life("environment_phase", `{"phase":"clone","status":"completed","step":"harbour/tides","duration_ms":2310,"detail":null}`)
	s.life("environment_phase", `{"phase":"setup","status":"started","step":"build_base"}`)
	s.life("environment_output", block(map[string]any{"phase": "setup", "step": "build_base", "chunk": 0, "stream": "stdout", "lines": strings.Split(numbered(4, "fetched"), "\n")}))
	s.life("environment_output", block(map[string]any{"phase": "setup", "step": "build_base", "chunk": 1, "stream": "stdout", "lines": strings.Split(numbered(90, "built"), "\n")}))
	s.life("environment_phase", `{"phase":"setup","status":"completed","step":"build_base","duration_ms":61200}`)
	s.life("environment_phase", `{"phase":"restore","status":"completed","step":null,"duration_ms":12,"detail":{"reused":true,"base":"b-7"}}`)
	s.life("environment_ready", `{"repositories":["harbour/tides"],"duration_ms":63900}`)
	s.life("turn_started", `{"turn_id":"t1","turn_index":0}`)
	s.life("message_delivered", `{"message_id":"m1","turn_id":"t1"}`)
	s.claude("system", `{"type":"system","subtype":"init","model":"opus","cwd":"/home/agent/tides","tools":["Bash","Edit"]}`)
	s.claude("system", `{"type":"system","subtype":"hook_started"}`)
	s.add(feed.SourceClaudeCode, feed.FormatClaudeJSONL, "user", `{"type":"user","isReplay":true,"message":{"role":"user","content":"The harbour's tide table is an hour late in summer."}}`, echoes("m1"))
	s.assistant(thinking("**Where the clock is read**\nIt is in tide.go."))
	s.assistant(text("I'll look for where the local time is made. The table is an hour late only between March and October, so it is the clock and not the moon."))
	s.assistant(use("u1", "Bash", map[string]any{"command": "grep -rn 'time.Local' . \\\n  --include='*.go'", "description": "find it"}))
	s.user(toolResult("u1", numbered(17, "tide.go:4: t.In(time.Local) //"), false))
	s.assistant(use("u2", "Read", map[string]any{"file_path": "/home/agent/tides/tide.go"}), use("u3", "mcp__charts__lookup", map[string]any{"port": "Brest", "years": []int{2027, 2028}}))
	s.user(toolResult("u2", "package tides\n", false))
	s.user(toolResult("u3", "the chart server is closed", true))
	s.claude("assistant", `{"type":"assistant","parent_tool_use_id":"u9","message":{"type":"message","role":"assistant","model":"haiku","content":[`+
		use("v1", "Glob", map[string]any{"pattern": "**/*_test.go"})+`]}}`)
	s.claude("user", `{"type":"user","parent_tool_use_id":"u9","message":{"role":"user","content":[`+toolResult("v1", "tide_test.go", false)+`]}}`)
	s.claude("rate_limit", `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","rateLimitType":"five_hour","utilization":0.3,"resetsAt":1835500000}}`)
	s.claude("rate_limit", `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","rateLimitType":"five_hour","utilization":0.91,"resetsAt":1835500000}}`)
	s.claude("rate_limit", `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","rateLimitType":"five_hour","utilization":0.92,"resetsAt":1835500000}}`)
	s.assistant(text("Mended:\n\n- `tide.go` reads the port's own zone\n- a test for the last Sunday in March"))
	s.claude("system", `{"type":"system","subtype":"vcs_state_changed","kind":"push","cwd":"/home/agent/tides"}`)
	s.claude("result", `{"type":"result","subtype":"success","is_error":false,"num_turns":4,"duration_ms":81000,"duration_api_ms":60000,"result":"Mended","total_cost_usd":0.4211}`)
	s.life("turn_ended", `{"turn_id":"t1","turn_index":0,"status":"completed","reason":null,"detail":null,"duration_ms":81400}`)
	s.life("message_received", `{"message_id":"m2","turn_id":"t2","body":"And the southern ports?","author":null,"closes_session":true}`)
	s.life("turn_started", `{"turn_id":"t2","turn_index":1}`)
	s.assistant(text("They have no summer time that differs."))
	s.claude("result", `{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":40,"duration_ms":5,"duration_api_ms":4,"errors":["40 turns were not enough"]}`)
	s.life("turn_ended", `{"turn_id":"t2","turn_index":1,"status":"failed","reason":"blocked","detail":"I need the key of the chart server.","duration_ms":4100}`)
	s.life("session_closed", `{}`)
	s.session.Conversation.State = feed.ConversationClosed
	s.session.Cost = feed.Cost{LLM: 42_110, Total: 42_110}
	s.session.Tokens = feed.Tokens{Input: 12_345, Output: 2_100, CacheRead: 98_000, CacheCreation: 4_000, Total: 116_445, Model: "opus"}
	return s
}

// codexStory has everything that Codex tells of.
func codexStory() *story {
	s := newStory(feed.Session{ID: "s2-pier-02", Metadata: feed.Map[string]{"person": "lin"}, Codex: &feed.CodexOptions{Model: "gpt-next"}})
	s.life("message_received", `{"message_id":"m1","turn_id":"t1","body":"Paint the `+"`buoy`"+`.","author":"lin"}`)
	s.life("turn_started", `{"turn_id":"t1","turn_index":0}`)
	s.codex("thread/started", `{"thread":{"id":"th","cliVersion":"1.2.3","cwd":"/home/agent/buoys","modelProvider":"p"}}`)
	s.codex("thread/status/changed", `{"threadId":"th","status":{"type":"active"}}`)
	s.codex("turn/started", `{"threadId":"th","turn":{"id":"x","items":[],"status":"inProgress"}}`)
	s.add(feed.SourceCodex, feed.FormatCodexAppServer, "item/completed",
		`{"method":"item/completed","params":{"threadId":"th","turnId":"x","item":{"type":"userMessage","id":"i0","content":[{"type":"text","text":"Paint the buoy."}]}}}`, echoes("m1"))
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"reasoning","id":"i1","summary":["**Which colour**\n\nRed or green.","**Where it lies**"],"content":[]}}`)
	s.codex("item/started", `{"threadId":"th","turnId":"x","item":{"type":"commandExecution","id":"i2","command":"make paint","commandActions":[],"cwd":"/","status":"inProgress"}}`)
	s.codex("item/completed", block(map[string]any{"threadId": "th", "turnId": "x", "item": map[string]any{"type": "commandExecution", "id": "i2", "command": "make paint",
		"commandActions": []int{}, "cwd": "/", "status": "failed", "exitCode": 2, "aggregatedOutput": numbered(7, "stroke") + "\nno paint\n"}}))
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"fileChange","id":"i3","status":"completed","changes":[{"path":"/home/agent/buoys/red.go","kind":{"type":"add"},"diff":"+package red\n"},`+
		`{"path":"old.go","kind":{"type":"delete"},"diff":"-package old\n"}]}}`)
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"webSearch","id":"i4","query":"IALA region B"}}`)
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"mcpToolCall","id":"i5","server":"charts","tool":"find","status":"failed","arguments":{"name":"Fastnet"},"error":{"message":"no such chart"}}}`)
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"mcpToolCall","id":"i6","server":"charts","tool":"find","status":"completed","arguments":{},"result":{"content":[{"type":"text","text":"51°23'N"}]}}}`)
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"commandExecution","id":"i7","command":"rm -rf /","commandActions":[],"cwd":"/","status":"declined"}}`)
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"contextCompaction","id":"i8"}}`)
	s.codex("error", `{"threadId":"th","turnId":"x","error":{"message":"the line was busy","additionalDetails":"503"},"willRetry":true}`)
	s.codex("account/rateLimits/updated", `{"rateLimits":{"limitId":"codex","primary":{"usedPercent":100,"windowDurationMins":300,"resetsAt":1835500000},"secondary":null}}`)
	s.codex("thread/tokenUsage/updated", `{"threadId":"th","turnId":"x","tokenUsage":{"total":{},"last":{}}}`)
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"plan","id":"i9","text":"1. buy paint\n2. paint"}}`)
	s.codex("item/completed", `{"threadId":"th","turnId":"x","item":{"type":"agentMessage","id":"i10","text":"It is green to starboard now."}}`)
	s.codex("turn/completed", `{"threadId":"th","turn":{"id":"x","items":[],"status":"failed","error":{"message":"the paint ran out"}}}`)
	s.life("turn_ended", `{"turn_id":"t1","turn_index":0,"status":"cancelled","reason":"interrupted","duration_ms":62000}`)
	s.life("message_requeued", `{"message_id":"m1","turn_id":"t1","requeued_turn_id":"t2"}`)
	s.session.Conversation.State = feed.ConversationOpen
	s.session.Turn = &feed.Turn{ID: "t2", Index: 1, Status: feed.TurnStatusPending}
	s.session.Tokens = feed.Tokens{Input: 900, Output: 100, Total: 1_000}
	s.session.Cost = feed.Cost{Total: 730}
	return s
}

// commandStory is a program's, with what goes wrong on the way, and records that nobody knows.
func commandStory() *story {
	s := newStory(feed.Session{ID: "s1-pier-03", Parent: &feed.Parent{SessionID: new("s0-pier-03")}})
	s.life("message_received", `{"message_id":"m1","turn_id":"t1","body":"`+strings.Repeat(`line\n`, 30)+`","author":"lin"}`)
	s.life("environment_phase", `{"phase":"setup","status":"started","step":"after_checkout"}`)
	s.life("environment_output", block(map[string]any{"phase": "setup", "step": "after_checkout", "chunk": 0, "lines": strings.Split(numbered(40, "step"), "\n")}))
	s.life("environment_phase", `{"phase":"setup","status":"failed","step":"after_checkout","duration_ms":900,"detail":{"error":"exit status 1"}}`)
	s.life("environment_phase", `{"phase":"polish","status":"shining","step":"brass"}`)
	s.life("turn_started", `{"turn_id":"t1","turn_index":0}`)
	s.command("stdout", `{"lines":["one","two \u001b[31mred\u001b[0m \u001b]0;owned\u0007three"]}`)
	s.command("stderr", `{"lines":["careful\u202egnp.exe"]}`)
	s.command("result", `{"exit":"exit status 0","result":{"status":"done","summary":"All is well.","links":[]}}`)
	s.command("result", `{"exit":"signal: killed","result":null,"unusable":"{ \"status\""}`)
	s.add(feed.SourceCommand, "bullpen_spool@1", "stdout", `{"omitted_format":"bullpen_command@1","omitted_bytes":9000000,"reason":"a record may have at most 8388608 bytes"}`)
	s.add(feed.SourceClaudeCode, feed.FormatClaudeJSONL, "unreadable", `{"text":"panic: \u001b[31moh\nno","bytes":12}`)
	s.add(feed.SourceCodex, feed.FormatCodexAppServer, "bullpen/unreadable", `{"line":"warning: <x>","why":"no JSON"}`)
	s.add("bullpen", "bullpen_spool@1", "records_dropped", `{"count":1234,"since":"2028-02-29T09:15:00Z","until":"2028-02-29T09:16:00Z"}`)
	s.add("robot", "robot@9", "beep\nboop", `{"what":1}`)
	s.life("turn_started", `{"turn_id":7}`)
	s.life("tea_break", `{}`)
	s.life("turn_ended", `{"turn_id":"t1","turn_index":0,"status":"stopped","reason":null,"detail":"by lin","duration_ms":null}`)
	s.session.Conversation.State = feed.ConversationOpen
	s.session.Turn = &feed.Turn{ID: "t1", Status: feed.TurnStatusStopped}
	return s
}

// oldStory is of the formats of older sessions.
func oldStory() *story {
	s := newStory(feed.Session{ID: "s1-pier-04"})
	old := func(typ, payload string) {
		s.add(feed.SourceClaudeCode, feed.FormatClaudeSDK, typ, payload)
	}
	old("system", `{"kind":"system","subtype":"init","data":{"model":"opus-old"}}`)
	old("user", `{"kind":"user","content":"Count the gulls."}`)
	old("assistant", `{"kind":"assistant","model":"opus-old","content":[{"type":"text","text":"There are two."},{"type":"tool_use","id":"g1","name":"Bash","input":{"command":"wc -l gulls"}}]}`)
	old("user", `{"kind":"user","content":[{"type":"tool_result","tool_use_id":"g1","content":[{"type":"text","text":"2 gulls"}]}]}`)
	old("rate_limit", `{"kind":"rate_limit","status":"rejected","rate_limit_type":"seven_day","utilization":1.0,"resets_at":1835500000}`)
	old("result", `{"kind":"result","subtype":"error_during_execution","is_error":true,"num_turns":1,"duration_ms":1,"duration_api_ms":1,"errors":["the gulls flew"]}`)
	line := func(typ, payload string) { s.add(feed.SourceCodex, feed.FormatCodexJSONL, typ, payload) }
	line("thread.started", `{"type":"thread.started","thread_id":"t"}`)
	line("item.started", `{"type":"item.started","item":{"id":"c1","type":"command_execution","command":"ls","status":"in_progress","aggregated_output":""}}`)
	line("item.updated", `{"type":"item.updated","item":{"id":"c1","type":"command_execution","command":"ls","status":"in_progress","aggregated_output":"a"}}`)
	line("item.completed", `{"type":"item.completed","item":{"id":"c1","type":"command_execution","command":"ls","status":"completed","aggregated_output":"a\nb","exit_code":0}}`)
	line("item.completed", `{"type":"item.completed","item":{"id":"a1","type":"agent_message","text":"Both are there."}}`)
	line("item.completed", `{"type":"item.completed","item":{"id":"e1","type":"error","message":"a wave came"}}`)
	line("turn.failed", `{"type":"turn.failed","error":{"message":"and took them"}}`)
	return s
}

func stories() map[string]*story {
	return map[string]*story{"claude": claudeStory(), "codex": codexStory(), "command": commandStory(), "old": oldStory()}
}

// tell shows a whole story without what was live.
func tell(p *Printer, s *story) string {
	var out strings.Builder
	out.WriteString(p.Begin(&s.session, 1, 0))
	for i := range s.records {
		out.WriteString(p.Record(&s.records[i]))
	}
	out.WriteString(p.Session(&s.session))
	out.WriteString(p.End())
	return out.String()
}
