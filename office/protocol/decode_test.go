package protocol

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

func TestDecodeReadsWhatIsMeant(t *testing.T) {
	tests := map[string]struct {
		frame string
		want  Frame
	}{
		"members may come in any order": {
			`{"payload":{"workItemId":"w1","text":"building"},"type":"progress","id":"m1"}`,
			Frame{ID: "m1", Message: Progress{WorkItemID: "w1", Text: "building"}},
		},
		"an absent payload is an empty object": {`{"id":"m1","type":"ping"}`, Frame{ID: "m1", Message: Ping{}}},
		"a null payload is an absent one":      {`{"id":"m1","type":"heartbeat","payload":null}`, Frame{ID: "m1", Message: Heartbeat{}}},
		"a null replyTo is an absent one":      {`{"id":"m1","replyTo":null,"type":"ack"}`, Frame{ID: "m1", Message: Ack{}}},
		"unknown members are ignored, whatever they hold": {
			`{"id":"m1","type":"ack","v":4,"payload":{"more":[{"a":1},null,"x"]}}`, Frame{ID: "m1", Message: Ack{}},
		},
		"space around the frame is no matter": {" \r\n{ \"id\" : \"m1\" , \"type\":\"ack\" }\t\n", Frame{ID: "m1", Message: Ack{}}},
		"names and texts may be escaped": {
			`{"\u0069d":"m\u0031","type":"pro\u0067ress","payload":{"workItem\u0049d":"w","text":"a\n\"\ud83d\ude00\""}}`,
			Frame{ID: "m1", Message: Progress{WorkItemID: "w", Text: "a\n\"😀\""}},
		},
		"names differ by case": {
			`{"id":"m1","type":"heartbeat","payload":{"workitemid":"x"}}`, Frame{ID: "m1", Message: Heartbeat{}},
		},
		"an integer may be written with an exponent or a zero fraction": {
			`{"id":"m1","type":"ci_log","payload":{"url":"","lines":2.0e1}}`,
			Frame{ID: "m1", Message: CiLog{Lines: 20}},
		},
		"a number keeps its fraction": {
			`{"id":"m1","type":"usage","payload":{"windows":[{"name":"five_hour","utilization":0.25}]}}`,
			Frame{ID: "m1", Message: Usage{Windows: []UsageWindow{{Name: "five_hour", Utilization: 0.25}}}},
		},
		"an empty list is there, an absent one is not": {
			`{"id":"m1","type":"handback","payload":{"workItemId":"w","summary":"s","links":[],"status":"done","toReview":[]}}`,
			Frame{ID: "m1", Message: Handback{
				WorkItemID: "w", Summary: "s", Links: []Link{}, Status: HandbackDone, ToReview: []string{},
			}},
		},
		"false is there, absent is not": {
			`{"id":"m1","type":"work_attach","payload":{"workItemId":"w","target":"#1","confirmed":false}}`,
			Frame{ID: "m1", Message: WorkAttach{WorkItemID: "w", Target: "#1", Confirmed: new(false)}},
		},
		"usage by the contract's names": {
			usageFrame(`{"inputTokens":1,"outputTokens":2,"cacheReadTokens":3,"cacheCreationTokens":4,"costUsd":0}`),
			usageOf(ModelUsage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheCreationTokens: 4, CostUSD: new(0.0)}),
		},
		"usage by Claude Code's names, with fields of its own": {
			usageFrame(`{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheCreationInputTokens":4,` +
				`"costUSD":0.5,"webSearchRequests":9,"contextWindow":200000}`),
			usageOf(ModelUsage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheCreationTokens: 4, CostUSD: new(0.5)}),
		},
		"usage whose cost is not known": {usageFrame(`{"inputTokens":1}`), usageOf(ModelUsage{InputTokens: 1})},
		"usage whose cost is null":      {usageFrame(`{"inputTokens":1,"costUsd":null}`), usageOf(ModelUsage{InputTokens: 1})},
		"the team config is kept byte for byte": {
			`{"id":"m1","type":"welcome","payload":{"protocolVersion":3,"heartbeatMs":15000,"team":{ "name" : "a", "x":1.50 },"resume":["w1"]}}`,
			Frame{ID: "m1", Message: Welcome{
				ProtocolVersion: 3, HeartbeatMs: 15000, Team: Raw(`{ "name" : "a", "x":1.50 }`), Resume: []string{"w1"},
			}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, werr := Decode([]byte(tt.frame))
			if werr != nil {
				t.Fatal(werr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

// A newer peer's members are kept in what the office hands on: through the
// decoder, the store's JSON, and the message that carries them next.
func TestUnknownMembersAreKeptWhereTheyArePassedOn(t *testing.T) {
	const (
		requester = `{"id":"U1","name":"Grace","pronouns":"she","team":{"id":7,"of":[1.50,null]}}`
		file      = `{"id":"F1","name":"a.png","mimetype":"image/png","size":3,"url":"x","sha256":"00","\u00fcber":true}`
		link      = `{"url":"https://a.b/c","title":"t","icon":null}`
	)
	f, werr := Decode([]byte(`{"id":"m1","type":"chat_message","payload":{"messageId":"1","channel":"C","text":"", "direct":false,
		"participant":false, "later":1, "author":` + requester + `, "files":[` + file + `,` + strings.ReplaceAll(file, "F1", "F2") + `]}}`))
	if werr != nil {
		t.Fatal(werr)
	}
	said := f.Message.(ChatMessage)
	f, werr = Decode([]byte(`{"id":"m2","type":"handback","payload":{"workItemId":"w","summary":"","status":"done","links":[` + link + `]}}`))
	if werr != nil {
		t.Fatal(werr)
	}
	stored := struct {
		Origin Origin
		Links  []Link
	}{Origin{Channel: "C", Requester: said.Author, Files: said.Files}, f.Message.(Handback).Links}
	data, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	stored.Origin, stored.Links = Origin{}, nil
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	sent, err := Encode(Frame{ID: "o1", Message: Offer{
		WorkItem: WorkItem{ID: "w", Kind: "chat", Trigger: TriggerHuman, Origin: &stored.Origin}, Context: Context{Links: stored.Links},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{requester, file, strings.ReplaceAll(file, "F1", "F2"), link} {
		want = strings.ReplaceAll(want, `\u00fc`, "ü")
		if !strings.Contains(string(sent), want) {
			t.Errorf("%s is not in the offer:\n%s", want, sent)
		}
	}
	if strings.Contains(string(data), "later") {
		t.Errorf("a member of a message that is not passed on is kept: %s", data)
	}
}

func usageFrame(models string) string {
	return `{"id":"m1","type":"fail","payload":{"workItemId":"w","reason":"r","usage":[{"session":"s","models":{"big":` + models + `}}]}}`
}

func usageOf(u ModelUsage) Frame {
	return Frame{ID: "m1", Message: Fail{
		WorkItemID: "w", Reason: "r",
		Usage: []SessionUsage{{Session: "s", Models: map[string]ModelUsage{"big": u}}},
	}}
}

func TestDecodeRefusesWithASentenceThatNamesTheField(t *testing.T) {
	tests := map[string]struct {
		frame string
		want  WireError
	}{
		"nothing at all": {"", WireError{Code: CodeMalformed, Message: "the frame is not JSON: it ends too early"}},
		"a frame that is cut off": {
			`{"id":"m1","type":"ack"`,
			WireError{Code: CodeMalformed, Message: "the frame is not JSON: it ends too early", RequestID: "m1"},
		},
		"a list instead of an object": {
			`[1]`, WireError{Code: CodeMalformed, Message: "the frame must be an object, not a list"},
		},
		"a second frame behind the first": {
			`{"id":"m1","type":"ack"}{"id":"m2","type":"ack"}`,
			WireError{Code: CodeMalformed, Message: "something follows the JSON object", RequestID: "m1"},
		},
		"a name twice in the envelope": {
			`{"id":"m1","id":"m2","type":"ack"}`,
			WireError{Code: CodeMalformed, Message: "id is there twice", Path: "id", RequestID: "m1"},
		},
		"a name twice in the payload, once escaped": {
			`{"id":"m1","type":"heartbeat","payload":{"workItemId":"a","workItemI\u0064":"b"}}`,
			WireError{Code: CodeMalformed, Message: "payload.workItemId is there twice", Path: "payload.workItemId", RequestID: "m1"},
		},
		"a name twice in a value that is passed on": {
			`{"id":"m1","type":"act","payload":{"id":"a","ops":[{"k":1,"k":2}]}}`,
			WireError{Code: CodeMalformed, Message: "payload.ops[0].k is there twice", Path: "payload.ops[0].k", RequestID: "m1"},
		},
		"a text that is not UTF-8": {
			"{\"id\":\"m1\",\"type\":\"ack\",\"payload\":{\"x\":\"\xff\"}}",
			WireError{Code: CodeMalformed, Message: "the frame is not JSON in UTF-8 at byte 40", Path: "payload.x", RequestID: "m1"},
		},
		"half of a surrogate pair": {
			`{"id":"m1","type":"ack","payload":{"x":"\ud83d"}}`,
			WireError{
				Code: CodeMalformed, Path: "payload.x", RequestID: "m1",
				Message: "the frame is not JSON in UTF-8 at byte 40",
			},
		},
		"no id": {`{"type":"ack"}`, WireError{Code: CodeMalformed, Message: "id is required", Path: "id"}},
		"an empty id": {
			`{"id":"","type":"ack"}`, WireError{Code: CodeMalformed, Message: "id must have 1 to 1024 bytes, not 0", Path: "id"},
		},
		"an id that would not fit into an answer": {
			`{"id":"` + strings.Repeat("i", MaxID+1) + `","type":"ack"}`,
			WireError{Code: CodeMalformed, Message: "id must have 1 to 1024 bytes, not 1025", Path: "id"},
		},
		"an id that is a number": {
			`{"id":1,"type":"ack"}`, WireError{Code: CodeMalformed, Message: "id must be a string, not a number", Path: "id"},
		},
		"no type": {
			`{"id":"m1"}`, WireError{Code: CodeMalformed, Message: "type is required", Path: "type", RequestID: "m1"},
		},
		"a type that nobody knows": {
			`{"id":"m1","type":"teleport"}`,
			WireError{Code: CodeUnknownType, Message: `type "teleport" is not in version 3 of the protocol`, Path: "type", RequestID: "m1"},
		},
		"a payload that is a list": {
			`{"id":"m1","type":"ack","payload":[]}`,
			WireError{Code: CodeInvalidMessage, Message: "payload must be an object, not a list", Path: "payload", RequestID: "m1"},
		},
		"a fraction where an integer belongs": {
			`{"id":"m1","type":"ci_log","payload":{"url":"u","lines":1.5}}`,
			WireError{
				Code: CodeInvalidMessage, Path: "payload.lines", RequestID: "m1",
				Message: "ci_log: payload.lines must be an integer, not 1.5",
			},
		},
		"an integer that fits nowhere": {
			`{"id":"m1","type":"ci_log","payload":{"url":"u","lines":9223372036854775808}}`,
			WireError{
				Code: CodeInvalidMessage, Path: "payload.lines", RequestID: "m1",
				Message: "ci_log: payload.lines must be an integer of at most 53 bits, not 9223372036854775808",
			},
		},
		"a count that is negative": {
			usageFrame(`{"inputTokens":-1}`),
			WireError{
				Code: CodeInvalidMessage, Path: "payload.usage[0].models.big.inputTokens", RequestID: "m1",
				Message: "fail: payload.usage[0].models.big.inputTokens must be at least 0, not -1",
			},
		},
		"a negative integer that fits nowhere": {
			`{"id":"m1","type":"ci_log","payload":{"url":"u","lines":-1e400}}`,
			WireError{
				Code: CodeInvalidMessage, Path: "payload.lines", RequestID: "m1",
				Message: "ci_log: payload.lines must be at least 0, not -1e400",
			},
		},
		"a cost that is negative, by Claude Code's name": {
			usageFrame(`{"costUSD":-0.5}`),
			WireError{
				Code: CodeInvalidMessage, Path: "payload.usage[0].models.big.costUSD", RequestID: "m1",
				Message: "fail: payload.usage[0].models.big.costUSD must be at least 0, not -0.5",
			},
		},
		"a name twice among members that are passed on": {
			`{"id":"m1","type":"handback","payload":{"workItemId":"w","summary":"","status":"done","links":[{"url":"https://a.b","x":1,"x":2}]}}`,
			WireError{
				Code: CodeMalformed, Path: "payload.links[0].x", RequestID: "m1", Message: "payload.links[0].x is there twice",
			},
		},
		"a number that fits nowhere": {
			`{"id":"m1","type":"usage","payload":{"windows":[{"name":"n","utilization":1e999}]}}`,
			WireError{
				Code: CodeInvalidMessage, Path: "payload.windows[0].utilization", RequestID: "m1",
				Message: "usage: payload.windows[0].utilization must be a number that fits 64 bits, not 1e999",
			},
		},
		"a status that is none": {
			`{"id":"m1","type":"handback","payload":{"workItemId":"w","summary":"","links":[],"status":"finished"}}`,
			WireError{
				Code: CodeInvalidMessage, Path: "payload.status", RequestID: "m1",
				Message: `handback: payload.status must be done, waiting, blocked, silent or interrupted, not "finished"`,
			},
		},
		"a link without a host": {
			`{"id":"m1","type":"handback","payload":{"workItemId":"w","summary":"","links":[{"url":"https://a.b"},{"url":"/c"}],"status":"done"}}`,
			WireError{
				Code: CodeInvalidMessage, Path: "payload.links[1].url", RequestID: "m1",
				Message: "handback: payload.links[1].url must be an absolute URL such as https://example.com/page",
			},
		},
		"one count under both of its names": {
			usageFrame(`{"cacheReadTokens":1,"cacheReadInputTokens":2}`),
			WireError{
				Code: CodeInvalidMessage, Path: "payload.usage[0].models.big.cacheReadInputTokens", RequestID: "m1",
				Message: "fail: payload.usage[0].models.big.cacheReadInputTokens is cacheReadTokens under a second name",
			},
		},
		"a token is never repeated": {
			`{"id":"m1","type":"hello","payload":{"token":["s3cret"]}}`,
			WireError{
				Code: CodeInvalidMessage, Path: "payload.token", RequestID: "m1",
				Message: "hello: payload.token must be a string, not a list",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, werr := Decode([]byte(tt.frame))
			if werr == nil {
				t.Fatalf("taken as %+v", f)
			}
			if diff := cmp.Diff(tt.want, *werr); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func TestTimesAreISO8601(t *testing.T) {
	const since, at = "date", "time"
	tests := map[string]struct{ value, takenAs string }{
		"UTC":                               {"2026-01-31T09:30:00Z", "both"},
		"milliseconds":                      {"2026-01-31T09:30:00.123Z", "both"},
		"an offset":                         {"2026-01-31T09:30:00+02:00", "both"},
		"an offset without a colon":         {"2026-01-31T09:30:00.5+0200", "both"},
		"no seconds":                        {"2026-01-31T09:30Z", "both"},
		"a day is no point in time":         {"2026-01-31", since},
		"a time without a zone is no point": {"2026-01-31T09:30:00", since},
		"a day that does not exist":         {"2026-02-30", "none"},
		"words":                             {"yesterday", "none"},
		"nothing":                           {"", "none"},
		"seconds since 1970":                {"1769851800", "none"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for format, want := range map[string]bool{
				since: tt.takenAs == since || tt.takenAs == "both",
				at:    tt.takenAs == at || tt.takenAs == "both",
			} {
				if complaint := checkFormat(format, tt.value); (complaint == "") != want {
					t.Errorf("as %s: %q; want it taken: %v", format, complaint, want)
				}
			}
		})
	}
}

func TestTimesComeBackAsTheyWere(t *testing.T) {
	at := time.Date(2026, 1, 31, 9, 30, 0, 123e6, time.FixedZone("", 3600))
	s := FormatTime(at)
	if want := "2026-01-31T08:30:00.123Z"; s != want {
		t.Errorf("FormatTime = %q, want %q", s, want)
	}
	if got, err := ParseTime(s); err != nil || !got.Equal(at) {
		t.Errorf("ParseTime = %v, %v, want %v", got, err, at)
	}
}

func TestLimitsOfAFrame(t *testing.T) {
	text := func(n int) string {
		const head, tail = `{"id":"m1","type":"journal","payload":{"workItemId":"w","text":"`, `"}}`
		return head + strings.Repeat("a", n-len(head)-len(tail)) + tail
	}
	nested := func(depth int) string {
		// The envelope, the payload and the list of ops are three levels.
		inner := strings.Repeat("[", depth-3) + strings.Repeat("]", depth-3)
		return `{"id":"m1","type":"act","payload":{"id":"a","ops":[` + inner + `]}}`
	}
	tests := map[string]struct {
		frame string
		want  string
	}{
		"1 MiB is taken":        {text(MaxFrame), ""},
		"one byte more is not":  {text(MaxFrame + 1), "a frame may have 1048576 bytes; this one has 1048577"},
		"64 levels are taken":   {nested(MaxDepth), ""},
		"one level more is not": {nested(MaxDepth + 1), "a frame may nest 64 levels; this one is deeper"},
		"brackets in a text are no levels": {
			`{"id":"m1","type":"journal","payload":{"workItemId":"w","text":"\"` + strings.Repeat("[", 100) + `"}}`, "",
		},
		"a million brackets are refused early": {strings.Repeat("[", MaxFrame), "a frame may nest 64 levels; this one is deeper"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, werr := Decode([]byte(tt.frame))
			switch {
			case tt.want == "" && werr != nil:
				t.Error(werr)
			case tt.want != "" && (werr == nil || werr.Code != CodeMalformed || werr.Message != tt.want):
				t.Errorf("got %v, want malformed: %s", werr, tt.want)
			}
		})
	}
}

func TestDecodeKeepsNothingOfTheFrame(t *testing.T) {
	frame := []byte(`{"id":"m1","type":"act","payload":{"id":"a1","ops":[{"op":"move"}]}}`)
	got, werr := Decode(frame)
	if werr != nil {
		t.Fatal(werr)
	}
	for i := range frame {
		frame[i] = 'x'
	}
	want := Frame{ID: "m1", Message: Act{ID: "a1", Ops: []Raw{Raw(`{"op":"move"}`)}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestEncode(t *testing.T) {
	tests := map[string]struct {
		frame Frame
		want  string
	}{
		"what is absent is not written": {
			Frame{ID: "m1", Message: Heartbeat{}}, `{"id":"m1","type":"heartbeat","payload":{}}`,
		},
		"required lists are never null": {
			Frame{ID: "m1", ReplyTo: "m0", Message: WorkLinkResult{Item: WorkRef{ID: "w", Title: "t", Status: StateQueued}}},
			`{"id":"m1","replyTo":"m0","type":"work_link_result","payload":{"item":{"id":"w","title":"t","status":"queued"},"waiting":false,"work":[]}}`,
		},
		"a pointer to a message is a message": {
			Frame{ID: "m1", Message: &Progress{WorkItemID: "w", Text: "<b> & 😀"}},
			`{"id":"m1","type":"progress","payload":{"workItemId":"w","text":"<b> & 😀"}}`,
		},
		"what is not UTF-8 is marked": {
			Frame{ID: "m1", Message: Journal{WorkItemID: "w", Text: "a\xffb"}},
			`{"id":"m1","type":"journal","payload":{"workItemId":"w","text":"a` + "\uFFFD" + `b"}}`,
		},
		"models stand in order": {
			Frame{ID: "m1", Message: Fail{WorkItemID: "w", Reason: "r", Usage: []SessionUsage{{Session: "s", Models: map[string]ModelUsage{
				"b": {InputTokens: 1}, "a": {CostUSD: new(0.0)},
			}}}}},
			`{"id":"m1","type":"fail","payload":{"workItemId":"w","reason":"r","usage":[{"session":"s","models":{` +
				`"a":{"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheCreationTokens":0,"costUsd":0},` +
				`"b":{"inputTokens":1,"outputTokens":0,"cacheReadTokens":0,"cacheCreationTokens":0}}}]}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Encode(tt.frame)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	fits := Journal{WorkItemID: "w", Text: strings.Repeat("a", MaxFrame-len(`{"id":"m1","type":"journal","payload":{"workItemId":"w","text":""}}`))}
	if b, err := Encode(Frame{ID: "m1", Message: fits}); err != nil || len(b) != MaxFrame {
		t.Errorf("a frame of exactly 1 MiB: %d bytes, %v", len(b), err)
	}
	fits.Text += "a"
	if _, err := Encode(Frame{ID: "m1", Message: fits}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a frame of one byte more: %v, want ErrTooLarge", err)
	}
	for name, f := range map[string]Frame{
		"no id":                           {Message: Ack{}},
		"no message":                      {ID: "m1"},
		"a team config that is no JSON":   {ID: "m1", Message: Welcome{Team: Raw(`{`)}},
		"a welcome without a team config": {ID: "m1", Message: Welcome{}},
		"an op with a name twice":         {ID: "m1", Message: Act{ID: "a", Ops: []Raw{Raw(`{"k":1,"k":2}`)}}},
		"a status that is none":           {ID: "m1", Message: WorkMove{WorkItemID: "w", Status: "done"}},
		"a link that is no URL": {ID: "m1", Message: Handback{
			WorkItemID: "w", Summary: "s", Status: HandbackDone, Links: []Link{{URL: "shop#12"}},
		}},
	} {
		if b, err := Encode(f); err == nil {
			t.Errorf("%s is encoded as %s", name, b)
		}
	}
}

func TestAnErrorIsAnsweredToTheRequest(t *testing.T) {
	_, werr := Decode([]byte(`{"id":"m5","type":"teleport"}`))
	want := Frame{ID: "o9", ReplyTo: "m5", Message: Error{
		Code: CodeUnknownType, Message: `type "teleport" is not in version 3 of the protocol`,
	}}
	if diff := cmp.Diff(want, werr.Reply("o9")); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	var back *WireError
	if err := werr.Reply("o9").Message.(Error).Err(); !errors.As(err, &back) || back.Code != CodeUnknownType {
		t.Errorf("received as %v, want a WireError of code unknown_type", err)
	}
}

func BenchmarkDecode(b *testing.B) {
	rows := rowsByMessage(b)
	for name, frame := range map[string][]byte{
		"heartbeat":  []byte(`{"id":"m1042","type":"heartbeat","payload":{"workItemId":"7f0c1de2-9a51-4b6e-8a35-0d6c2b1f9e47"}}`),
		"handback":   frameOf(b, "handback", document(rows["handback"], true)),
		"full offer": frameOf(b, "offer", document(rows["offer"], true)),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				if _, werr := Decode(frame); werr != nil {
					b.Fatal(werr)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, m := range map[string]Message{
		"heartbeat": Heartbeat{WorkItemID: "7f0c1de2-9a51-4b6e-8a35-0d6c2b1f9e47"},
		"ack":       Ack{},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Encode(Frame{ID: "m1042", ReplyTo: "o77", Message: m}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
