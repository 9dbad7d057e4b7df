package modelstub

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ask sends a request for a response and gives the data of its events, or the body of a refusal.
func ask(t *testing.T, s *Server, body string) (int, []map[string]any) {
	t.Helper()
	answer, err := http.Post(s.URL+"/v1/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var events []map[string]any
	add := func(data string) {
		var event map[string]any
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		events = append(events, event)
	}
	if answer.StatusCode != http.StatusOK {
		data, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		add(string(data))
		return answer.StatusCode, events
	}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			add(data)
		}
	}
	return answer.StatusCode, events
}

// of gives the events of a type.
func of(events []map[string]any, kind string) []map[string]any {
	var list []map[string]any
	for _, e := range events {
		if e["type"] == kind {
			list = append(list, e)
		}
	}
	return list
}

func TestAResponseIsStreamedAsTheScriptSays(t *testing.T) {
	s := New(Step{
		Thinking: "Look first.\n---\nThen act.", Text: "Grüße an alle", Fragment: 6,
		Tools: []ToolCall{
			{ID: "c1", Name: "run", Input: json.RawMessage(`{"cmd":"ls"}`)}, {ID: "c2", Name: "patch", Input: json.RawMessage(`"free\ntext"`)},
			{ID: "c3", Name: "inner", Input: json.RawMessage(`{}`)},
		},
		Usage:  Usage{Input: 5, CacheRead: 7, CacheCreation: 11, Output: 13, Reasoning: 3},
		Header: map[string]string{"X-Told": "yes"},
	})
	defer s.Close()
	status, events := ask(t, s, `{"model":"m","stream":true,"tools":[{"type":"function","name":"run"},{"type":"custom","name":"patch"},
		{"type":"namespace","name":"space","tools":[{"type":"function","name":"inner"}]}]}`)
	if status != http.StatusOK {
		t.Fatal(status, events)
	}
	var text string
	for _, e := range of(events, "response.output_text.delta") {
		text += e["delta"].(string)
	}
	if text != "Grüße an alle" {
		t.Errorf("the pieces make %q", text)
	}
	if n := len(of(events, "response.reasoning_summary_part.added")); n != 2 {
		t.Errorf("%d sections of reasoning", n)
	}
	var items []any
	for _, e := range of(events, "response.output_item.done") {
		item := e["item"].(map[string]any)
		items = append(items, []any{item["type"], item["call_id"], item["namespace"], item["arguments"], item["input"]})
	}
	want := []any{
		[]any{"reasoning", nil, nil, nil, nil}, []any{"message", nil, nil, nil, nil},
		[]any{"function_call", "c1", nil, `{"cmd":"ls"}`, nil}, []any{"custom_tool_call", "c2", nil, nil, "free\ntext"},
		[]any{"function_call", "c3", "space", "{}", nil},
	}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Error(diff)
	}
	done := of(events, "response.completed")
	if len(done) != 1 || events[len(events)-1]["type"] != "response.completed" {
		t.Fatalf("the end is %v", events[len(events)-1])
	}
	used := done[0]["response"].(map[string]any)["usage"].(map[string]any)
	if used["input_tokens"] != 23.0 || used["output_tokens"] != 13.0 || used["total_tokens"] != 36.0 {
		t.Errorf("usage %v", used)
	}
	if s.Left() != 0 || len(s.Answered()) != 1 {
		t.Errorf("%d steps left, %d answered", s.Left(), len(s.Answered()))
	}
}

func TestWhatTheScriptCannotAnswerIsRefused(t *testing.T) {
	s := New(
		Step{Tools: []ToolCall{{Name: "fly", Input: json.RawMessage(`{}`)}}},
		Step{Refusal: &Refusal{Status: 503, Message: "busy"}},
		Step{Refusal: &Refusal{Status: 429, Type: "usage_limit_reached", Message: "full"}},
		Step{Refusal: &Refusal{Status: 418, Body: `{"odd":true}`}},
	)
	defer s.Close()
	for _, want := range []struct {
		status int
		words  string
	}{
		{400, "fly, which the request does not declare; it has run"}, {503, `"code":"server_error"`},
		{429, `"code":"usage_limit_reached"`}, {418, `"odd":true`}, {400, "the script of this stand-in is at its end"},
	} {
		status, events := ask(t, s, `{"model":"m","tools":[{"type":"function","name":"run"}]}`)
		said, err := json.Marshal(events)
		if err != nil || status != want.status || !strings.Contains(string(said), want.words) {
			t.Errorf("got %d %s, want %d %s", status, said, want.status, want.words)
		}
	}
	if s.Left() != -1 {
		t.Errorf("%d steps left", s.Left())
	}
}

func TestAnAnswerWaitsAtItsGateAndIsCutOff(t *testing.T) {
	gate := NewGate()
	s := New(Step{Text: "abcdef", Fragment: 3, Gate: gate}, Step{Text: "abcdef", Fragment: 3, Cut: true})
	defer s.Close()
	go func() {
		<-gate.Reached()
		gate.Open()
	}()
	if _, events := ask(t, s, `{"model":"m"}`); len(of(events, "response.completed")) != 1 {
		t.Errorf("the answer behind the gate is %v", events)
	}
	_, events := ask(t, s, `{"model":"m"}`)
	if n := len(of(events, "response.output_text.delta")); n != 1 || len(of(events, "response.completed")) != 0 {
		t.Errorf("an answer that is cut off has %d pieces: %v", n, events)
	}
}
