package feed_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// This file holds the package and the JSON Schema to each other, in a library of somebody else's.

// validators gives the part of the schema at a JSON pointer, with the formats checked, too.
func validators(t testing.TB) func(pointer string) (validate func(v any) error) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const url = "urn:bullpen:session-events:6"
	if err := c.AddResource(url, parsed(t, feed.Schema())); err != nil {
		t.Fatal(err)
	}
	return func(pointer string) func(any) error {
		s, err := c.Compile(url + "#" + pointer)
		if err != nil {
			t.Fatalf("the schema is not valid: %v", err)
		}
		if s.DraftVersion != 2020 {
			t.Fatalf("the schema is of draft %d", s.DraftVersion)
		}
		return s.Validate
	}
}

// parsed is JSON as the validator wants it, with its numbers as they are.
func parsed(t testing.TB, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// payloadSchemas gives what the schema says of the payload of each record type that is modeled.
func payloadSchemas(t testing.TB) map[[3]string]func(any) error {
	t.Helper()
	at := validators(t)
	var schema struct {
		Defs struct {
			Record struct {
				OneOf []struct {
					Properties map[string]struct{ Const string }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(feed.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	out := map[[3]string]func(any) error{}
	for i, v := range schema.Defs.Record.OneOf {
		p := v.Properties
		if p["kind"].Const != string(feed.KindUnknown) {
			key := [3]string{p["source"].Const, p["record_format"].Const, p["record_type"].Const}
			out[key] = at(fmt.Sprintf("/$defs/record/oneOf/%d/properties/payload", i))
		}
	}
	return out
}

func TestTheSchemaHasEveryRecordTypeOfTheContract(t *testing.T) {
	want := map[string][]string{
		feed.FormatLifecycle: {
			"environment_output", "environment_phase", "environment_ready", "message_delivered", "message_received", "message_requeued",
			"session_closed", "turn_ended", "turn_started",
		},
		feed.FormatClaudeJSONL: {"assistant", "conversation_reset", "rate_limit", "result", "system", "user"},
		feed.FormatCodexAppServer: {
			"error", "item/completed", "item/started", "thread/started", "thread/tokenUsage/updated", "turn/completed", "turn/started",
		},
		feed.FormatClaudeSDK: {"assistant", "rate_limit", "result", "system", "user"},
		feed.FormatCodexJSONL: {
			"error", "item.completed", "item.started", "item.updated", "thread.started", "turn.completed", "turn.failed", "turn.started",
		},
	}
	got := map[string][]string{}
	for key := range payloadSchemas(t) {
		got[key[1]] = append(got[key[1]], key[2])
	}
	for format, types := range want {
		slices.Sort(got[format])
		if !slices.Equal(got[format], types) {
			t.Errorf("%s has %q, want %q", format, got[format], types)
		}
	}
	if len(got) != len(want) {
		t.Errorf("formats: %v", slices.Sorted(maps.Keys(got)))
	}
}

// required are the members that the contract requires of each part of a payload, at its top level.
var required = map[string]string{
	"platform.message_received":                  "message_id body",
	"platform.environment_phase":                 "phase status",
	"platform.environment_output":                "phase chunk lines",
	"platform.environment_ready":                 "repositories",
	"platform.turn_started":                      "turn_id turn_index",
	"platform.message_delivered":                 "message_id turn_id",
	"platform.turn_ended":                        "turn_id turn_index status",
	"platform.message_requeued":                  "message_id turn_id",
	"platform.session_closed":                    "",
	"block.text":                                 "type text",
	"block.thinking":                             "type thinking signature",
	"block.tool_use":                             "type id name",
	"block.tool_result":                          "type tool_use_id",
	"block.server_tool_use":                      "type id name",
	"block.server_tool_result":                   "type tool_use_id",
	"claude.usage":                               "",
	"claude_jsonl.system":                        "type subtype",
	"claude_jsonl.user":                          "type message",
	"claude_jsonl.assistant":                     "type message",
	"claude_jsonl.rate_limit":                    "type rate_limit_info",
	"claude_jsonl.result":                        "type subtype is_error num_turns duration_ms duration_api_ms",
	"claude_jsonl.conversation_reset":            "type new_conversation_id",
	"codex.input.text":                           "type text",
	"codex.input.localImage":                     "type path",
	"codex.item.userMessage":                     "type id content",
	"codex.item.agentMessage":                    "type id text",
	"codex.item.reasoning":                       "type id",
	"codex.item.plan":                            "type id text",
	"codex.item.commandExecution":                "type id command cwd commandActions status",
	"codex.item.fileChange":                      "type id changes status",
	"codex.item.webSearch":                       "type id query",
	"codex.item.mcpToolCall":                     "type id server tool arguments status",
	"codex.item.contextCompaction":               "type id",
	"codex.turn":                                 "id status items",
	"codex.usage":                                "inputTokens outputTokens cachedInputTokens reasoningOutputTokens totalTokens",
	"codex_app_server.thread.started":            "method params",
	"codex_app_server.turn.started":              "method params",
	"codex_app_server.item.started":              "method params",
	"codex_app_server.item.completed":            "method params",
	"codex_app_server.thread.tokenUsage.updated": "method params",
	"codex_app_server.error":                     "method params",
	"codex_app_server.turn.completed":            "method params",
	"claude_sdk.usage":                           "",
	"claude_sdk.system":                          "kind subtype",
	"claude_sdk.user":                            "kind content",
	"claude_sdk.assistant":                       "kind model",
	"claude_sdk.result":                          "kind subtype is_error num_turns duration_ms duration_api_ms",
	"claude_sdk.rate_limit":                      "kind status",
	"codex_jsonl.item.agent_message":             "type",
	"codex_jsonl.item.reasoning":                 "type",
	"codex_jsonl.item.command_execution":         "type",
	"codex_jsonl.item.file_change":               "type",
	"codex_jsonl.item.mcp_tool_call":             "type",
	"codex_jsonl.item.web_search":                "type",
	"codex_jsonl.item.todo_list":                 "type",
	"codex_jsonl.item.error":                     "type",
	"codex_jsonl.thread.started":                 "type",
	"codex_jsonl.turn.started":                   "type",
	"codex_jsonl.item.started":                   "type item",
	"codex_jsonl.item.updated":                   "type item",
	"codex_jsonl.item.completed":                 "type item",
	"codex_jsonl.turn.completed":                 "type",
	"codex_jsonl.turn.failed":                    "type",
	"codex_jsonl.error":                          "type",
	"claude_code_options":                        "model effort fallback_model max_turns settings prompt",
	"codex_options":                              "model effort prompt",
}

func TestTheSchemaRequiresWhatTheContractDoes(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Required   []string
			Properties map[string]any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(feed.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for name, members := range required {
		if got := strings.Join(schema.Defs[name].Required, " "); got != members {
			t.Errorf("%s requires %q, want %q", name, got, members)
		}
	}
	for name, def := range schema.Defs {
		part, _, _ := strings.Cut(name, ".")
		known := slices.Contains([]string{"platform", "block", "claude", "claude_jsonl", "claude_sdk", "codex", "codex_app_server",
			"codex_jsonl"}, part)
		if _, named := required[name]; known && def.Properties != nil && !named {
			t.Errorf("nobody says what %s requires", name)
		}
	}
}

func TestTheSamplesHaveEveryRecordTypeBlockAndItem(t *testing.T) {
	types := map[[3]string]bool{}
	for _, r := range feedtest.Records() {
		if r.Kind != feed.KindUnknown {
			types[[3]string{r.Source, r.Format, r.Type}] = true
		}
	}
	for key := range payloadSchemas(t) {
		if !types[key] {
			t.Errorf("no sample of %v", key)
		}
	}
	all := bytes.Join(feedtest.Encoded(), nil)
	for _, name := range []string{
		feed.BlockText, feed.BlockThinking, feed.BlockToolUse, feed.BlockToolResult, feed.BlockServerToolUse, feed.BlockServerToolResult,
		feed.ItemUserMessage, feed.ItemAgentMessage, feed.ItemReasoning, feed.ItemPlan, feed.ItemCommandExecution, feed.ItemFileChange,
		feed.ItemWebSearch, feed.ItemMCPToolCall, feed.ItemContextCompaction, "localImage",
		"agent_message", "command_execution", "file_change", "mcp_tool_call", "web_search", feed.ItemTodoList,
	} {
		if !bytes.Contains(all, []byte(`"type":"`+name+`"`)) {
			t.Errorf("no sample has a %s", name)
		}
	}
}

func TestEveryRecordFitsTheSchema(t *testing.T) {
	validate := validators(t)("/$defs/record")
	for _, data := range feedtest.Encoded() {
		if err := validate(parsed(t, data)); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// oddities are values that are put in the place of others.
var oddities = []string{`null`, `true`, `7`, `-0`, `7.0`, `7.5`, `70e-1`, `75e-1`, `1e20`, `""`, `"text"`, `"lit"`, `[]`, `[1]`, `[{}]`,
	`["x"]`, `{}`, `{"type":"text"}`}

// mutate calls f with the payload changed in every way at one place: each member left out, each value replaced by each oddity, and each
// object with one more member.
func mutate(t testing.TB, v any, f func()) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			was := v[name]
			delete(v, name)
			f()
			for _, odd := range oddities {
				v[name] = parsed(t, []byte(odd))
				f()
			}
			v[name] = was
			mutate(t, was, f)
		}
		v["of no schema"] = json.Number("1")
		f()
		delete(v, "of no schema")
	case []any:
		for i, was := range v {
			for _, odd := range oddities {
				v[i] = parsed(t, []byte(odd))
				f()
			}
			v[i] = was
			mutate(t, was, f)
		}
	}
}

// agree holds Classify and the schema to each other about one payload.
func agree(t testing.TB, r *feed.Record, kind feed.Kind, validate func(any) error, payload any) bool {
	t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	got, invalid := feed.Classify(r.Source, r.Format, r.Type, data), validate(payload)
	if want := feed.KindUnknown; invalid == nil && got != kind || invalid != nil && got != want {
		t.Errorf("%s %s: Classify says %s, the schema says %v of %s", r.Format, r.Type, got, invalid, data)
	}
	return invalid == nil
}

func TestClassifyAndTheSchemaAgreeOnEveryChangeOfAPayload(t *testing.T) {
	schemas, valid, invalid := payloadSchemas(t), 0, 0
	for _, r := range feedtest.Records() {
		validate := schemas[[3]string{r.Source, r.Format, r.Type}]
		if r.Kind == feed.KindUnknown || validate == nil {
			continue
		}
		// The payload stands in an array, so that it is replaced itself, too.
		root := []any{parsed(t, r.Payload)}
		mutate(t, root, func() {
			if agree(t, &r, r.Kind, validate, root[0]) {
				valid++
			} else {
				invalid++
			}
		})
	}
	if valid < 2000 || invalid < 2000 {
		t.Errorf("%d changed payloads fit and %d do not: both have to be many, or this tests nothing", valid, invalid)
	}
}

func TestClassifyAndTheSchemaAgreeOnManyChangesAtOnce(t *testing.T) {
	schemas := payloadSchemas(t)
	random := rand.New(rand.NewPCG(41, 6))
	records := feedtest.Records()
	for range 4000 {
		r := records[random.IntN(len(records))]
		validate := schemas[[3]string{r.Source, r.Format, r.Type}]
		if validate == nil {
			continue
		}
		kind := r.Kind
		if kind == feed.KindUnknown {
			kind = kindOf[r.Format]
		}
		payload := parsed(t, r.Payload)
		for range 1 + random.IntN(3) {
			mingle(t, random, payload, records)
		}
		agree(t, &r, kind, validate, payload)
	}
}

var kindOf = map[string]feed.Kind{
	feed.FormatLifecycle: feed.KindPlatform, feed.FormatClaudeJSONL: feed.KindClaudeCode, feed.FormatCodexAppServer: feed.KindCodexAppServer,
	feed.FormatClaudeSDK: feed.KindClaudeSDK, feed.FormatCodexJSONL: feed.KindCodex,
}

// mingle puts a value out of another payload, or an oddity, somewhere into the payload.
func mingle(t testing.TB, random *rand.Rand, payload any, records []feed.Record) {
	t.Helper()
	value := parsed(t, []byte(oddities[random.IntN(len(oddities))]))
	if random.IntN(2) == 0 {
		other := places(parsed(t, records[random.IntN(len(records))].Payload))
		if len(other) > 0 {
			value = other[random.IntN(len(other))].get()
		}
	}
	if all := places(payload); len(all) > 0 {
		all[random.IntN(len(all))].set(value)
	}
}

// place is somewhere in a value.
type place struct {
	get func() any
	set func(any)
}

func places(v any) []place {
	var out []place
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, place{func() any { return v[name] }, func(x any) { v[name] = x }})
			out = append(out, places(v[name])...)
		}
	case []any:
		for i := range v {
			out = append(out, place{func() any { return v[i] }, func(x any) { v[i] = x }})
			out = append(out, places(v[i])...)
		}
	}
	return out
}
