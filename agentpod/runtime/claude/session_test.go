package claude

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime/prompt"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestWatchersSeeTheAnswerBeingWritten(t *testing.T) {
	event := func(e string) string { return `{"type":"stream_event","session_id":"` + one + `","event":` + e + `}` }
	s, sink := newSession(t)
	s.hears(
		event(`{"type":"message_start","message":{"id":"a","model":"m"}}`),
		event(`{"type":"content_block_start","content_block":{"type":"thinking"}}`),
		event(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"\nLook"}}`),
		event(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":" here.\nAnd"}}`),
		event(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":" there.\n"}}`),
		event(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"\n*"}}`),
		event(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"*Now the tests**\nmore"}}`),
		event(`{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"x"}}`),
		event(`{"type":"content_block_start","content_block":{"type":"text"}}`),
		event(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Al"}}`),
		`{"type":"stream_event","parent_tool_use_id":"t","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"a helper's"}}}`,
		event(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"l good"}}`),
		event(`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}`),
		event(`{"type":"message_delta","usage":{"output_tokens":42}}`),
		event(`{"type":"message_stop"}`),
	)
	want := []string{
		`thinking "Look"`, `thinking "Look here."`, `thinking "**Now the tests**"`, `thinking ""`,
		`text "Al"`, `text "l good"`, `text 42 tokens`,
	}
	if diff := cmp.Diff(want, sink.deltas); diff != "" {
		t.Error(diff)
	}
}

func TestTheSessionIsToldOnceAndAgainWhenItChanges(t *testing.T) {
	s, sink := newSession(t)
	s.hears(
		`{"type":"system","subtype":"hook_started","session_id":"`+one+`"}`,
		`{"type":"system","subtype":"init","session_id":"`+one+`","model":"m-1"}`,
		`{"type":"assistant","session_id":"`+one+`"}`,
		`{"type":"system","subtype":"init","session_id":"`+one+`","model":"m-1"}`,
		`{"type":"system","subtype":"init","session_id":"`+two+`","model":"m-2"}`,
	)
	if diff := cmp.Diff([]string{one + " ", one + " m-1", two + " m-2"}, sink.sessions); diff != "" {
		t.Error(diff)
	}
	if s.first != one {
		t.Errorf("the usage is counted for %s", s.first)
	}
}

func TestASessionThatIsNotThereIsNotTold(t *testing.T) {
	s, sink := newSession(t)
	s.hears(`{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"` + one + `","errors":["No conversation found with session ID: ` + one + `"]}`)
	if len(sink.sessions) != 0 {
		t.Errorf("told %q", sink.sessions)
	}
}

func TestPeopleSeeWhatIsDone(t *testing.T) {
	s, sink := newSession(t)
	long := ""
	for range 300 {
		long += "é"
	}
	s.hears(
		`{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"text","text":"\n I begin.\nWith this."},{"type":"tool_use","name":"Bash","input":{"command":"make all\nmake test","description":"build it"}}]}}`,
		`{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"tool_use","name":"Read","input":{"file_path":"/a/b.go"}},{"type":"tool_use","name":"Odd","input":[1]},{"type":"thinking","thinking":"hm"}]}}`,
		`{"type":"assistant","parent_tool_use_id":"t","message":{"id":"b","model":"m","content":[{"type":"text","text":"a helper"}]}}`,
		`{"type":"assistant","message":{"id":"c","model":"m","content":"a text"}}`,
		`{"type":"assistant","message":{"id":"d","model":"m","content":[{"type":"text","text":"`+long+`"}]}}`,
		`{"type":"system","subtype":"api_retry","attempt":3,"max_retries":10,"retry_delay_ms":4800.5,"error_status":529,"error":"overloaded"}`,
		`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"retry_delay_ms":500,"error_status":null}`,
		`{"type":"system","subtype":"init","mcp_servers":[{"name":"good","status":"connected"},{"name":"bad","status":"failed"}]}`,
	)
	want := []string{
		"I begin.", "Bash: build it", "Read: /a/b.go", "Odd", long[:2*(maxProgress-1)] + "…",
		"The model's API answered with status 529; try 3 of 10 follows in 5 s",
		"The model's API cannot be reached; try 1 of 2 follows in 0 s",
		"The MCP server bad cannot be used: failed",
	}
	if diff := cmp.Diff(want, sink.progress); diff != "" {
		t.Error(diff)
	}
}

func TestTheRoundIsCompleteWhenItsLastMessageIsAnswered(t *testing.T) {
	const good, bad = `{"type":"result","is_error":false,"result":"r"}`, `{"type":"result","is_error":true,"result":"r"}`
	s, _ := newSession(t)
	s.say([]prompt.Message{{Text: "a"}, {Text: "b"}})
	if s.hears(good); s.complete {
		t.Error("complete with both messages unread")
	}
	for id := range s.sent {
		s.hears(`{"type":"user","uuid":"` + id + `"}`)
	}
	if s.complete {
		t.Error("complete without an answer")
	}
	if s.hears(good); !s.complete {
		t.Error("not complete with all answered")
	}

	s, _ = newSession(t)
	s.say([]prompt.Message{{Text: "a"}})
	if s.hears(bad); !s.complete {
		t.Error("an error does not end it")
	}
}

func TestAResultFileThatCannotBeUsedIsMendedOnce(t *testing.T) {
	const done = `{"type":"result","is_error":false,"result":"r"}`
	s, _ := newSession(t)
	write := func(text string) {
		if err := os.WriteFile(s.resultFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"status":"over"}`)
	if s.hears(done); s.complete || len(s.out) != 1 {
		t.Fatalf("complete %v, %d lines to send", s.complete, len(s.out))
	}
	s.sent = map[string]*int{}
	write(`{"status":"blocked"}`)
	if s.hears(done); !s.complete || s.bad != nil || s.said.Status != protocol.HandbackBlocked || len(s.out) != 1 {
		t.Errorf("complete %v, %v, %+v", s.complete, s.bad, s.said)
	}
	write(`nonsense`)
	if s.hears(done); !s.complete || s.bad == nil || len(s.out) != 1 {
		t.Errorf("a second time: complete %v, %v, %d lines", s.complete, s.bad, len(s.out))
	}
}

func TestLimitsAreHeard(t *testing.T) {
	s, sink := newSession(t)
	s.hears(
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","rateLimitType":"five_hour","resetsAt":1772366400}}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","rateLimitType":"seven_day","resetsAt":1772366400,"utilization":0.81}}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","resetsAt":1772366400,"utilization":0.99}}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}`,
		`{"type":"rate_limit_event"}`,
	)
	want := [][]protocol.UsageWindow{
		{{Name: "seven_day", Utilization: 0.81, ResetsAt: "2026-03-01T12:00:00.000Z"}},
		{{Name: "five_hour", Utilization: 1, ResetsAt: "2026-03-01T12:00:00.000Z"}},
	}
	if diff := cmp.Diff(want, sink.windows); diff != "" {
		t.Error(diff)
	}
	if !s.limited {
		t.Error("the limit is not remembered")
	}
	if s.hears(`{"type":"assistant","message":{"id":"a","model":"m","content":[]}}`); s.limited {
		t.Error("an answer came, so the limit did not end the round")
	}
}
