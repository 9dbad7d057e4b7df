package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime/prompt"
)

func TestRecordsAreTheLinesByteForByte(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"a known one with more than is known": {
			`{"z":1, "type":"system","subtype":"init","n":9007199254740993.10,"new":{"b":[1,  2],"a":null},"text":"<&>\u2028é"}`, "system"},
		"the limit is called as in the contract": {`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}`, "rate_limit"},
		"a type of tomorrow":                     {`{"type":"daydream","about":"sheep"}`, "daydream"},
		"a known type with other fields":         {`{"type":"result","is_error":"perhaps","modelUsage":[1],"result":{"a":1}}`, "result"},
		"a type that is no text":                 {`{"type":7}`, "untyped"},
		"no type at all":                         {`{}`, "untyped"},
		"the same name twice":                    {`{"type":"user","type":"assistant"}`, "assistant"},
	} {
		t.Run(name, func(t *testing.T) {
			s, sink := newSession(t)
			s.hears(test.line)
			if len(sink.records) != 1 || sink.early != 0 {
				t.Fatalf("%d records, %d before the start", len(sink.records), sink.early)
			}
			if got := sink.records[0]; string(got.Payload) != test.line || got.Type != test.want {
				t.Errorf("%s: %s", got.Type, got.Payload)
			}
		})
	}
}

func TestFragmentsAndTheTalkOfTheProgramsAreNoRecords(t *testing.T) {
	s, sink := newSession(t)
	s.hears(
		`{"type":"stream_event","event":{"type":"ping"}}`,
		`{"type":"stream_event"}`,
		`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash"}}`,
		`{"type":"control_response","response":{}}`,
		`{"type":"control_cancel_request","request_id":"r"}`,
		`{"type":"keep_alive"}`,
		`{"type":"system","subtype":"thinking_tokens","estimated_tokens":12}`,
	)
	if len(sink.records) != 0 || sink.started != 0 {
		t.Errorf("records %v", sink.records)
	}
	if diff := cmp.Diff([]string{"text 12 tokens"}, sink.deltas); diff != "" {
		t.Error(diff)
	}
}

func TestLinesThatAreNoMessageAreKept(t *testing.T) {
	long := strings.Repeat("x", maxUnreadable+5)
	for name, test := range map[string]struct {
		line  string
		whole int
		text  string
	}{
		"words":                   {"Warning: no such thing", 22, "Warning: no such thing"},
		"a list":                  {`[{"type":"user"}]`, 17, `[{"type":"user"}]`},
		"half an object":          {`{"type":"us`, 11, `{"type":"us`},
		"bytes that are no text":  {"{\"type\":\"user\",\"t\":\"\xff\"}", 23, "{\"type\":\"user\",\"t\":\"�\"}"},
		"an object that was cut":  {`{"type":"user"}`, 100, `{"type":"user"}…`},
		"a very long one is less": {long, len(long), long[:maxUnreadable] + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			s, sink := newSession(t)
			s.line([]byte(test.line), test.whole)
			if len(sink.records) != 1 || sink.records[0].Type != "unreadable" {
				t.Fatalf("records %v", sink.records)
			}
			var got struct {
				Text  string
				Bytes int
			}
			if err := json.Unmarshal(sink.records[0].Payload, &got); err != nil || got.Text != test.text || got.Bytes != test.whole {
				t.Errorf("%s, %v", sink.records[0].Payload, err)
			}
		})
	}
}

func TestEchoesCarryTheMessageTheyRepeat(t *testing.T) {
	s, sink := newSession(t)
	zero, three := 0, 3
	s.say([]prompt.Message{{Text: "first", Echo: &zero}, {Text: "on"}, {Text: "third", Echo: &three}})
	var ids []string
	for i, line := range s.out {
		var said userMessage
		if err := json.Unmarshal(line, &said); err != nil {
			t.Fatal(err)
		}
		if query := said.ShouldQuery == nil || *said.ShouldQuery; query != (i == 2) {
			t.Errorf("message %d asks for an answer: %v", i, query)
		}
		ids = append(ids, said.UUID)
	}
	s.hears(
		`{"type":"user","uuid":"`+ids[0]+`","isReplay":true}`,
		`{"type":"user","uuid":"someone-else's","isReplay":true}`,
		`{"type":"assistant","uuid":"`+ids[2]+`"}`,
		`{"type":"user","uuid":"`+ids[1]+`"}`,
		`{"type":"user","uuid":"`+ids[2]+`"}`,
		`{"type":"user","uuid":"`+ids[2]+`"}`,
	)
	var got []string
	for _, r := range sink.records {
		got = append(got, compact(t, r.Echo))
	}
	if diff := cmp.Diff([]string{"0", "null", "null", "null", "3", "null"}, got); diff != "" {
		t.Error(diff)
	}
}
