package feed_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

// This file tests the fields of the envelope that repeat what the payload says.

func TestEveryRecordDerivesWhatItSaysOfItself(t *testing.T) {
	for _, want := range feedtest.Records() {
		got := want
		// What is there before does not count.
		got.Tools, got.Tokens, got.Cost, got.Duration, got.Model = []string{"x"}, &feed.TokensInfo{NumTurns: 9}, new(int64(9)), new(int64(9)),
			new("x")
		feed.Derive(&got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("derived %s\nwant    %s", feed.AppendRecord(nil, &got), feed.AppendRecord(nil, &want))
		}
	}
}

func TestDerive(t *testing.T) {
	result := func(cost string) string {
		return `{"type":"result","subtype":"success","total_cost_usd":` + cost + `,"duration_ms":5}`
	}
	usage := func(usage string) string { return `{"message":{"model":"m","usage":` + usage + `}}` }
	const claude, codex, jsonl = feed.FormatClaudeJSONL, feed.FormatCodexAppServer, feed.FormatCodexJSONL
	for _, c := range []struct{ name, format, typ, payload, want string }{
		{"half a millicent is rounded up", claude, "result", result(`0.000005`), `[null,null,1,5,null]`},
		{"less than half is rounded down", claude, "result", result(`0.0000049999999999999999`), `[null,null,0,5,null]`},
		{"a cost with an exponent is read", claude, "result", result(`1.2345675E-1`), `[null,null,12346,5,null]`},
		{"whole dollars are read", claude, "result", result(`37`), `[null,null,3700000,5,null]`},
		{"a cost that is no number is not known", claude, "result", result(`"1"`), `[null,null,null,5,null]`},
		{"a negative cost is not known", claude, "result", result(`-1`), `[null,null,null,5,null]`},
		{"an absurd cost is not known", claude, "result", result(`1e99999999999`), `[null,null,null,5,null]`},
		{"a cost of next to nothing is nothing", claude, "result", result(`1e-99999999999`), `[null,null,0,5,null]`},
		{"a duration with a fraction is not known", claude, "result", `{"duration_ms":1.5,"total_cost_usd":null}`, `[null,null,null,null,null]`},
		{"usage that leaves counts out has none of them", claude, "assistant", usage(`{"output_tokens":4,"cache_read_input_tokens":null}`),
			`[null,[0,4,0,0,0,0],null,null,"m"]`},
		{"usage with a count that is none is not known", claude, "assistant", usage(`{"output_tokens":4,"input_tokens":"5"}`),
			`[null,null,null,null,"m"]`},
		{"negative usage is not known", claude, "assistant", usage(`{"output_tokens":-4}`), `[null,null,null,null,"m"]`},
		{"null usage is not known", claude, "assistant", usage(`null`), `[null,null,null,null,"m"]`},
		{"what tells of tools in a user's message uses none", claude, "user",
			`{"message":{"content":[{"type":"tool_use","name":"Bash"}],"usage":{}}}`, `[null,null,null,null,null]`},
		{"the tools that a runtime has are not used by its first message", claude, "system", `{"tools":["Bash"],"model":"m"}`,
			`[null,null,null,null,null]`},
		{"a tool without a name is none", claude, "assistant", `{"message":{"content":[{"type":"tool_use","name":7},{"type":"tool_use"},"x"]}}`,
			`[null,null,null,null,null]`},
		{"cached tokens are no input", jsonl, "turn.completed", `{"usage":{"input_tokens":10,"cached_input_tokens":4,` +
			`"cache_write_input_tokens":5}}`, `[null,[1,0,4,5,0,0],null,null,null]`},
		{"more cached tokens than input leave no input", jsonl, "turn.completed", `{"usage":{"input_tokens":3,"cached_input_tokens":4}}`,
			`[null,[0,0,4,0,0,0],null,null,null]`},
		{"a turn without usage has none", jsonl, "turn.completed", `{"usage":null}`, `[null,null,null,null,null]`},
		{"a thread's usage is the last call's", codex, "thread/tokenUsage/updated",
			`{"params":{"tokenUsage":{"total":{"inputTokens":900},"last":{"inputTokens":9,"outputTokens":1}}}}`,
			`[null,[9,1,0,0,0,0],null,null,null]`},
		{"a tool of an unnamed server has no name", jsonl, "item.started", `{"item":{"type":"mcp_tool_call","tool":"next","server":null}}`,
			`[null,null,null,null,null]`},
		{"a plan is no tool", jsonl, "item.started", `{"item":{"type":"todo_list"}}`, `[null,null,null,null,null]`},
		{"of a member that comes twice the last counts", claude, "assistant", `{"message":{"model":"a"},"message":{"model":"b"}}`,
			`[null,null,null,null,"b"]`},
		{"broken JSON tells nothing", claude, "assistant", `{"message":{"model":"a"}`, `[null,null,null,null,null]`},
		{"no payload tells nothing", claude, "assistant", ``, `[null,null,null,null,null]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := feed.Record{Source: feed.SourceCodex, Format: c.format, Type: c.typ, Payload: json.RawMessage(c.payload)}
			if c.format == claude {
				r.Source = feed.SourceClaudeCode
			}
			feed.Derive(&r)
			if got := derived(t, r); got != c.want {
				t.Errorf("derived %s, want %s out of %s", got, c.want, c.payload)
			}
		})
	}
}

// derived is what was derived, in brief: tools, tokens, cost, duration, model.
func derived(t *testing.T, r feed.Record) string {
	t.Helper()
	var tokens []float64
	if k := r.Tokens; k != nil {
		tokens = []float64{
			float64(k.InputTokens), float64(k.OutputTokens), float64(k.CacheReadTokens), float64(k.CacheCreationTokens), float64(k.NumTurns),
			k.CostUSD,
		}
	}
	data, err := json.Marshal([]any{r.Tools, tokens, r.Cost, r.Duration, r.Model})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
