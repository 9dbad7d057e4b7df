package modelstub

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// message asks for a message. The caller closes the body.
func message(t *testing.T, ctx context.Context, s *Server) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/messages?beta=true", strings.NewReader(`{"model":"m","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// eventsOf reads a stream as lines: the event's name, and its data where want names it.
func eventsOf(t *testing.T, body io.Reader, want ...string) (lines []string, err error) {
	t.Helper()
	input := bufio.NewScanner(body)
	name := ""
	for input.Scan() {
		if n, ok := strings.CutPrefix(input.Text(), "event: "); ok {
			name = n
			lines = append(lines, n)
		}
		data, ok := strings.CutPrefix(input.Text(), "data: ")
		if !ok {
			continue
		}
		var event struct {
			Type  string          `json:"type"`
			Delta json.RawMessage `json:"delta"`
			Usage json.RawMessage `json:"usage"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil || event.Type != name {
			t.Errorf("event %s has the data %s, %v", name, data, err)
		}
		for _, w := range want {
			if w == name {
				lines[len(lines)-1] += " " + string(event.Delta) + string(event.Usage)
			}
		}
	}
	return lines, input.Err()
}

func TestAMessageIsStreamedAsTheScriptSays(t *testing.T) {
	s := New(Step{
		Thinking: "Hm.", Text: "Hallo Welt", Fragment: 6, Tools: []ToolCall{{ID: "t1", Name: "Bash", Input: json.RawMessage(`{"a":1}`)}},
		Usage: Usage{Input: 5, CacheRead: 3, CacheCreation: 2, Output: 9}, Header: map[string]string{"x-limit": "7"},
		Raw: []Event{{Name: "ping", Data: `{"type":"ping"}`}},
	})
	defer s.Close()
	answer := message(t, t.Context(), s)
	defer answer.Body.Close()
	if answer.Header.Get("X-Limit") != "7" {
		t.Error("the header is missing")
	}
	got, err := eventsOf(t, answer.Body, "content_block_delta", "message_delta")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"message_start",
		"content_block_start", `content_block_delta {"thinking":"Hm.","type":"thinking_delta"}`,
		`content_block_delta {"signature":"c2lnbmVkIGJ5IHRoZSBzdHVi","type":"signature_delta"}`, "content_block_stop",
		"content_block_start", `content_block_delta {"text":"Hallo ","type":"text_delta"}`, `content_block_delta {"text":"Welt","type":"text_delta"}`,
		"content_block_stop",
		"content_block_start", `content_block_delta {"partial_json":"{\"a\":1","type":"input_json_delta"}`,
		`content_block_delta {"partial_json":"}","type":"input_json_delta"}`, "content_block_stop",
		"ping",
		`message_delta {"stop_reason":"tool_use","stop_sequence":null}{"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"input_tokens":5,"output_tokens":9}`,
		"message_stop",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalsAndTheEndOfTheScript(t *testing.T) {
	s := New(Step{Refusal: &Refusal{Status: 529, Message: "full"}, Header: map[string]string{"retry-after": "1"}}, Step{Refusal: &Refusal{Status: 502, Body: "<html>"}})
	defer s.Close()
	for _, want := range []string{
		`529 {"error":{"message":"full","type":"overloaded_error"},"type":"error"}`, `502 <html>`,
		`400 {"error":{"message":"the script of this stand-in is at its end","type":"invalid_request_error"},"type":"error"}`,
	} {
		answer := message(t, t.Context(), s)
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := answer.Status[:4] + string(body); err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if s.Left() != -1 {
		t.Errorf("%d steps are left", s.Left())
	}
	s.Add(Step{Text: "more"})
	if len(s.Answered()) != 2 || len(s.Requests()) != 3 {
		t.Errorf("%d of %d requests took a step", len(s.Answered()), len(s.Requests()))
	}
}

func TestAStepMayBeForSomeRequestsOnly(t *testing.T) {
	odd := func(body []byte) bool { return strings.Contains(string(body), "odd") }
	s := New(Step{Text: "for the odd one", Match: odd}, Step{Text: "one"}, Step{Text: "two"})
	defer s.Close()
	for _, step := range []int{1, 2, -1} {
		answer := message(t, t.Context(), s)
		answer.Body.Close()
		if all := s.Requests(); all[len(all)-1].Step != step {
			t.Errorf("got step %d, want %d", all[len(all)-1].Step, step)
		}
	}
	answer, err := http.Post(s.URL+"/v1/messages", "application/json", strings.NewReader(`{"model":"odd"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if all := s.Requests(); all[3].Step != 0 {
		t.Errorf("the odd one got step %d", all[3].Step)
	}
}

func TestWhatIsAskedBesideTakesNoStep(t *testing.T) {
	s := New(Step{Text: "x"})
	defer s.Close()
	for path, want := range map[string]int{"/v1/messages/count_tokens": 200, "/v1/something": 404} {
		answer, err := http.Post(s.URL+path, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	answer, err := http.Head(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || s.Left() != 1 || len(s.Requests()) != 3 {
		t.Errorf("%d, %d steps are left, %d requests", answer.StatusCode, s.Left(), len(s.Requests()))
	}
}

func TestAGateHoldsAnAnswerInItsMiddle(t *testing.T) {
	gate := NewGate()
	s := New(Step{Text: "first and second", Fragment: 5, Gate: gate})
	defer s.Close()
	answer := message(t, t.Context(), s)
	defer answer.Body.Close()
	<-gate.Reached()
	gate.Open()
	lines, err := eventsOf(t, answer.Body)
	if err != nil || len(lines) != 9 || lines[8] != "message_stop" {
		t.Errorf("%v, %v", lines, err)
	}
}

func TestAnAnswerEndsWithItsClientOrWhereItIsCut(t *testing.T) {
	gate := NewGate()
	s := New(Step{Text: "first and second", Gate: gate}, Step{Text: "first and second", Fragment: 5, Cut: true})
	defer s.Close()
	ctx, leave := context.WithCancel(t.Context())
	answer := message(t, ctx, s)
	<-gate.Reached()
	leave() // Close would wait for the answer if it did not end
	answer.Body.Close()

	answer = message(t, t.Context(), s)
	defer answer.Body.Close()
	lines, err := eventsOf(t, answer.Body)
	if err == nil || len(lines) != 3 {
		t.Errorf("%v, %v", lines, err)
	}
}
