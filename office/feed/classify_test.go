package feed_test

import (
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

// This file tests which kind a record has.

func TestEveryRecordIsClassifiedToItsKind(t *testing.T) {
	for _, r := range feedtest.Records() {
		if got := feed.Classify(r.Source, r.Format, r.Type, r.Payload); got != r.Kind {
			t.Errorf("%s %s is %s, want %s: %s", r.Format, r.Type, got, r.Kind, r.Payload)
		}
	}
}

func TestClassify(t *testing.T) {
	const text = `{"type":"text","text":"x"}`
	assistant := func(content string) string {
		return `{"type":"assistant","message":{"type":"message","role":"assistant","model":"m","content":[` + content + `]}}`
	}
	item := func(item string) string {
		return `{"method":"item/started","params":{"threadId":"a","turnId":"b","item":` + item + `}}`
	}
	command := func(status string) string {
		return item(`{"type":"commandExecution","id":"c","command":"ls","cwd":"/","commandActions":[],"status":"` + status + `"}`)
	}
	for _, c := range []struct {
		name, source, format, typ, payload string
		want                               feed.Kind
	}{
		{"a message of known blocks is known", "claude_code", "claude_jsonl@1", "assistant", assistant(text), feed.KindClaudeCode},
		{"a message without blocks is known", "claude_code", "claude_jsonl@1", "assistant", assistant(``), feed.KindClaudeCode},
		{"a new block makes its message unknown", "claude_code", "claude_jsonl@1", "assistant", assistant(text + `,{"type":"canvas"}`),
			feed.KindUnknown},
		{"a block without its type makes its message unknown", "claude_code", "claude_jsonl@1", "assistant", assistant(`{"text":"x"}`),
			feed.KindUnknown},
		{"a block whose type is no string makes its message unknown", "claude_code", "claude_jsonl@1", "assistant",
			assistant(`{"type":1,"text":"x"}`), feed.KindUnknown},
		{"a block's type may come last", "claude_code", "claude_jsonl@1", "assistant", assistant(`{"text":"x","more":[{}],"type":"text"}`),
			feed.KindClaudeCode},
		{"escapes in names and words count as what they stand for", "claude_code", "claude_jsonl@1", "assistant",
			strings.ReplaceAll(assistant(text), `t`, `\u0074`), feed.KindClaudeCode},
		{"a member that comes twice makes it unknown", "claude_code", "claude_jsonl@1", "assistant",
			assistant(`{"type":"text","text":"x","text":"y"}`), feed.KindUnknown},
		{"a member that no schema names may come twice", "claude_code", "claude_jsonl@1", "assistant",
			assistant(`{"type":"text","text":"x","z":1,"z":2}`), feed.KindClaudeCode},
		{"a member in other letters is another member", "claude_code", "claude_jsonl@1", "assistant",
			assistant(`{"Type":"canvas","type":"text","text":"x"}`), feed.KindClaudeCode},
		{"the rate limit's payload has a name of its own", "claude_code", "claude_jsonl@1", "rate_limit",
			`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}`, feed.KindClaudeCode},
		{"the record's name in a rate limit's payload is unknown", "claude_code", "claude_jsonl@1", "rate_limit",
			`{"type":"rate_limit","rate_limit_info":{"status":"allowed"}}`, feed.KindUnknown},
		{"the payload's name as a record type is unknown", "claude_code", "claude_jsonl@1", "rate_limit_event",
			`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}`, feed.KindUnknown},
		{"a system message of a new subtype is known", "claude_code", "claude_jsonl@1", "system", `{"type":"system","subtype":"sang_a_song"}`,
			feed.KindClaudeCode},
		{"a system message without subtype is unknown", "claude_code", "claude_jsonl@1", "system", `{"type":"system"}`, feed.KindUnknown},
		{"a user message in the assistant's role is unknown", "claude_code", "claude_jsonl@1", "user",
			`{"type":"user","message":{"role":"assistant","content":"x"}}`, feed.KindUnknown},
		{"a command's status is one of four", "codex", "codex_app_server@1", "item/started", command("declined"), feed.KindCodexAppServer},
		{"a new status of a command is unknown", "codex", "codex_app_server@1", "item/started", command("paused"), feed.KindUnknown},
		{"a new item is unknown", "codex", "codex_app_server@1", "item/started", item(`{"type":"song","id":"s"}`), feed.KindUnknown},
		{"a method other than the record's type is unknown", "codex", "codex_app_server@1", "item/completed", command("completed"),
			feed.KindUnknown},
		{"a tool call's arguments may be null but not missing", "codex", "codex_app_server@1", "item/started",
			item(`{"type":"mcpToolCall","id":"i","server":"s","tool":"t","status":"completed"}`), feed.KindUnknown},
		{"a new item within a turn is unknown", "codex", "codex_app_server@1", "turn/started",
			`{"method":"turn/started","params":{"threadId":"a","turn":{"id":"t","status":"inProgress","items":[{"type":"song","id":"s"}]}}}`,
			feed.KindUnknown},
		{"an item's type in the words of today is unknown in the old format", "codex", "codex_jsonl@1", "item.started",
			`{"type":"item.started","item":{"type":"commandExecution"}}`, feed.KindUnknown},
		{"the one closed object takes nothing more", "claude_code", "claude_sdk@1", "assistant",
			`{"kind":"assistant","model":"m","cache_creation":{"ephemeral_1d_input_tokens":1}}`, feed.KindUnknown},
		{"a whole number may be written with a fraction of zero", "lifecycle", "ellipsis_lifecycle@1", "turn_started",
			`{"turn_id":"t","turn_index":2.0}`, feed.KindPlatform},
		{"a fraction is no whole number", "lifecycle", "ellipsis_lifecycle@1", "turn_started", `{"turn_id":"t","turn_index":2.5}`,
			feed.KindUnknown},
		{"another source is unknown", "codex", "claude_jsonl@1", "system", `{"type":"system","subtype":"init"}`, feed.KindUnknown},
		{"another version of the format is unknown", "claude_code", "claude_jsonl@2", "system", `{"type":"system","subtype":"init"}`,
			feed.KindUnknown},
		{"a platform event of old is unknown", "lifecycle", "ellipsis_lifecycle@1", "sandbox_ready", `{}`, feed.KindUnknown},
		{"white space around the payload is nothing", "lifecycle", "ellipsis_lifecycle@1", "session_closed", " {\n} ", feed.KindPlatform},
		{"broken JSON is unknown", "lifecycle", "ellipsis_lifecycle@1", "session_closed", `{"a":}`, feed.KindUnknown},
		{"a payload with something behind it is unknown", "lifecycle", "ellipsis_lifecycle@1", "session_closed", `{} {}`, feed.KindUnknown},
		{"nothing is unknown", "lifecycle", "ellipsis_lifecycle@1", "session_closed", ``, feed.KindUnknown},
		{"an array is unknown", "lifecycle", "ellipsis_lifecycle@1", "session_closed", `[]`, feed.KindUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := feed.Classify(c.source, c.format, c.typ, []byte(c.payload)); got != c.want {
				t.Errorf("it is %s, want %s: %s", got, c.want, c.payload)
			}
		})
	}
}
