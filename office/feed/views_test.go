package feed_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

// This file tests the views of payloads, for those who render and those who write them.

func TestEveryModeledPayloadCanBeRead(t *testing.T) {
	for _, r := range feedtest.Records() {
		var err error
		var is string
		switch r.Format {
		case feed.FormatClaudeJSONL:
			var m feed.ClaudeMessage
			m, err = feed.Decode[feed.ClaudeMessage](r.Payload)
			is = strings.TrimSuffix(m.Type, "_event")
			r.Type = strings.TrimSuffix(r.Type, "_event")
		case feed.FormatClaudeSDK:
			var m feed.ClaudeMessage
			m, err = feed.SDKMessage(r.Payload)
			is = strings.TrimSuffix(m.Type, "_event")
		case feed.FormatCodexAppServer:
			var n feed.CodexNotification
			n, err = feed.Decode[feed.CodexNotification](r.Payload)
			is = n.Method
		case feed.FormatCodexJSONL:
			var n feed.CodexNotification
			n, err = feed.JSONLNotification(r.Payload)
			is = strings.ReplaceAll(n.Method, "/", ".")
			r.Type = strings.Replace(r.Type, "failed", "completed", 1)
		default:
			continue
		}
		if err != nil || is != r.Type {
			t.Errorf("%s %s was read as %s: %v", r.Format, r.Type, is, err)
		}
	}
}

func TestThePlatformsPayloadsAreReadAsTheyWereWritten(t *testing.T) {
	for typ, payload := range map[string]any{
		feed.TypeMessageReceived: &feed.MessageReceived{
			MessageID: "m", TurnID: new("t"), Body: "<b>", Author: new("Noor"), SenderAttributionType: new("slack_user"),
			SenderAttributionID: new("U"),
			ClosesSession:       true,
		},
		feed.TypeMessageDelivered: &feed.MessageDelivered{MessageID: "m", TurnID: "t"},
		feed.TypeMessageRequeued:  &feed.MessageRequeued{MessageID: "m", TurnID: "t", RequeuedTurnID: new("u")},
		feed.TypeEnvironmentPhase: &feed.EnvironmentPhase{
			Phase: feed.PhaseSetup, Status: feed.PhaseFailed, Step: new(feed.StepBuildBase), DurationMS: new(int64(5)),
			Detail: map[string]any{"a": "b"},
		},
		feed.TypeEnvironmentOutput: &feed.EnvironmentOutput{Phase: feed.PhaseClone, Step: new("a/b"), Stream: feed.Stderr, Chunk: 3,
			Lines: []string{"x", ""}},
		feed.TypeEnvironmentReady: &feed.EnvironmentReady{Repositories: []string{"a/b"}, DurationMS: new(int64(5))},
		feed.TypeTurnStarted:      &feed.TurnStarted{TurnID: "t", TurnIndex: 2},
		feed.TypeTurnEnded: &feed.TurnEnded{
			TurnID: "t", TurnIndex: 2, Status: feed.TurnStatusFailed, Reason: new("blocked"), Detail: new("d"), DurationMS: new(int64(5)),
		},
		feed.TypeSessionClosed: &feed.SessionClosed{},
	} {
		data, err := feed.MarshalPayload(payload)
		if err != nil {
			t.Fatal(err)
		}
		if got := feed.Classify(feed.SourceLifecycle, feed.FormatLifecycle, typ, data); got != feed.KindPlatform {
			t.Errorf("%s is of kind %s: %s", typ, got, data)
		}
		got := reflect.New(reflect.TypeOf(payload).Elem()).Interface()
		if err := json.Unmarshal(data, got); err != nil || !reflect.DeepEqual(got, payload) {
			t.Errorf("%v, read %+v out of %s", err, got, data)
		}
		// What a writer leaves out fits as well.
		zero, err := feed.MarshalPayload(reflect.New(reflect.TypeOf(payload).Elem()).Interface())
		if err != nil || feed.Classify(feed.SourceLifecycle, feed.FormatLifecycle, typ, zero) != feed.KindPlatform {
			t.Errorf("an empty %s does not fit: %s, %v", typ, zero, err)
		}
	}
}

func payloadOf(t *testing.T, format, typ, part string) json.RawMessage {
	t.Helper()
	for _, r := range feedtest.Records() {
		if r.Format == format && r.Type == typ && strings.Contains(string(r.Payload), part) {
			return r.Payload
		}
	}
	t.Fatalf("no sample %s %s has %s", format, typ, part)
	return nil
}

func TestAMessageOfClaudeCodeIsRead(t *testing.T) {
	m, err := feed.Decode[feed.ClaudeMessage](payloadOf(t, feed.FormatClaudeJSONL, "assistant", `"tu-2"`))
	if err != nil || len(m.Message.Content) != 7 || m.Message.ID != "msg-9" || m.Message.Usage.CacheReadTokens != 14002 {
		t.Fatalf("%v, read %+v", err, m)
	}
	blocks := m.Message.Content
	if blocks[0].Thinking != "East first." || blocks[1].Text != "I look at both lamps." || blocks[2].Name != "Bash" ||
		string(blocks[2].Input) != `{"command":"ls -1 lamps && date"}` || blocks[6].ToolUseID != "su-1" {
		t.Errorf("read %+v", blocks)
	}
	m, err = feed.Decode[feed.ClaudeMessage](payloadOf(t, feed.FormatClaudeJSONL, "user", `"tool_result"`))
	if blocks = m.Message.Content; err != nil || blocks[0].ResultText() != "lamp.txt" || blocks[1].ResultText() != "" || !blocks[1].IsError {
		t.Errorf("%v, read %+v", err, blocks)
	}
	m, err = feed.Decode[feed.ClaudeMessage](payloadOf(t, feed.FormatClaudeJSONL, "user", `"isReplay"`))
	if want := (feed.Blocks{{Type: feed.BlockText, Text: "Swap the lamp."}}); err != nil || !m.IsReplay ||
		!reflect.DeepEqual(m.Message.Content, want) {
		t.Errorf("%v, read %+v", err, m)
	}
	m, err = feed.Decode[feed.ClaudeMessage](payloadOf(t, feed.FormatClaudeJSONL, "result", `0.123455`))
	if err != nil || m.NumTurns != 3 || *m.TotalCostUSD != 0.123455 || m.ModelUsage["beacon-4-1"].OutputTokens != 411 ||
		*m.Result != "Both lamps burn." {
		t.Errorf("%v, read %+v", err, m)
	}
}

func TestANewBlockDoesNotKeepTheOthersFromBeingRead(t *testing.T) {
	m, err := feed.Decode[feed.ClaudeMessage]([]byte(`{"type":"assistant","message":{"content":[{"type":"canvas","text":{"x":1}},7,null,` +
		`{"type":"hologram"},{"type":"text","text":"lit"}]}}`))
	want := feed.Blocks{{}, {Type: "hologram"}, {Type: feed.BlockText, Text: "lit"}}
	if err != nil || !reflect.DeepEqual(m.Message.Content, want) {
		t.Errorf("%v, read %+v", err, m.Message.Content)
	}
}

func TestTheResultOfAToolIsTextOrBlocks(t *testing.T) {
	for in, want := range map[string]string{
		`"a\nb"`: "a\nb", `[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]`: "a\nb", `null`: "", `{}`: "", ``: "",
	} {
		if got := (feed.Block{Content: json.RawMessage(in)}).ResultText(); got != want {
			t.Errorf("%s is read as %q, want %q", in, got, want)
		}
	}
}

func TestAMessageOfTheClaudeSDKIsReadInTodaysForm(t *testing.T) {
	m, err := feed.SDKMessage(payloadOf(t, feed.FormatClaudeSDK, "assistant", `"tu-9"`))
	if err != nil || m.Message.ID != "msg-2" || m.Message.Model != "beacon-3" || m.Message.Content[0].Name != "Read" ||
		m.Message.Usage.OutputTokens != 6 {
		t.Errorf("%v, read %+v", err, m)
	}
	m, err = feed.SDKMessage(payloadOf(t, feed.FormatClaudeSDK, "result", `0.000004`))
	if err != nil || *m.TotalCostUSD != 0.000004 || m.NumTurns != 9 || !m.IsError || m.Errors[0] != "too many turns" {
		t.Errorf("%v, read %+v", err, m)
	}
	m, err = feed.SDKMessage(payloadOf(t, feed.FormatClaudeSDK, "rate_limit", ``))
	if err != nil || m.Type != feed.ClaudeRateLimitEvent || m.RateLimit.Status != "rejected" || *m.RateLimit.ResetsAt != 1700000000 {
		t.Errorf("%v, read %+v", err, m)
	}
}

func TestItemsOfCodexAreRead(t *testing.T) {
	read := func(part string) feed.CodexItem {
		n, err := feed.Decode[feed.CodexNotification](payloadOf(t, feed.FormatCodexAppServer, feed.CodexItemCompleted, part))
		if err != nil || n.Params.Item == nil {
			t.Fatalf("%v in %s", err, part)
		}
		return *n.Params.Item
	}
	if i := read(`"exitCode":2`); i.Command != "ls lamps" || *i.ExitCode != 2 || *i.DurationMS != 17 ||
		*i.AggregatedOutput != "ls: lamps: none\n" {
		t.Errorf("read %+v", i)
	}
	if i := read(`"fileChange"`); i.Changes[0].Path != "log.md" || i.Changes[0].Kind != "update" || !strings.HasPrefix(i.Changes[0].Diff,
		"@@") {
		t.Errorf("read %+v", i)
	}
	if i := read(`"userMessage"`); !reflect.DeepEqual(i.Input(), []feed.CodexInput{{Type: "text", Text: "Swap the lamp."},
		{Type: "localImage", Path: "/tmp/lamp.png"}}) {
		t.Errorf("read %+v", i.Input())
	}
	if i := read(`"reasoning"`); i.Summary[0] != "**Looking east**" || i.Input() != nil {
		t.Errorf("read %+v", i)
	}
	if i := read(`"04:12"`); i.Server != "tides" || string(i.Arguments) != `{"port":"east"}` || len(i.Result.Content) != 1 {
		t.Errorf("read %+v", i)
	}
	n, err := feed.Decode[feed.CodexNotification](payloadOf(t, feed.FormatCodexAppServer, feed.CodexTokenUsage, ``))
	if want := (feed.TokensInfo{InputTokens: 2600, OutputTokens: 333, CacheReadTokens: 6000, CacheCreationTokens: 500}); err != nil ||
		n.Params.TokenUsage.Total.Apart() != want {
		t.Errorf("%v, read %+v", err, n.Params.TokenUsage)
	}
}

func TestHistoricalItemsOfCodexAreReadInTodaysForm(t *testing.T) {
	for part, want := range map[string]feed.CodexItem{
		`"exit_code"`: {Type: feed.ItemCommandExecution, ID: "i0", Status: "completed", Command: "make lamp", AggregatedOutput: new("lit"),
			ExitCode: new(int64(0))},
		`"file_change"`: {Type: feed.ItemFileChange, ID: "i2", Status: "completed", Changes: []feed.CodexChange{{Path: "log.md",
			Kind: "update"}}},
		`"mcp_tool_call"`: {Type: feed.ItemMCPToolCall, ID: "i3", Status: "completed", Server: "tides", Tool: "next"},
		`"web_search"`:    {Type: feed.ItemWebSearch, ID: "i4", Query: "dusk"},
		`"reasoning"`:     {Type: feed.ItemReasoning, ID: "i5", Summary: []string{"East first."}},
		`"agent_message"`: {Type: feed.ItemAgentMessage, ID: "i6", Text: "Both lamps burn."},
		`"error"`:         {Type: feed.ItemError, ID: "i7", Text: "a lamp flickers"},
	} {
		n, err := feed.JSONLNotification(payloadOf(t, feed.FormatCodexJSONL, "item.completed", part))
		if err != nil || n.Method != feed.CodexItemCompleted || !reflect.DeepEqual(*n.Params.Item, want) {
			t.Errorf("%v, %s was read as %+v", err, part, n.Params.Item)
		}
	}
	n, err := feed.JSONLNotification(payloadOf(t, feed.FormatCodexJSONL, "turn.completed", ``))
	if want := (feed.TokensInfo{InputTokens: 60, OutputTokens: 12, CacheReadTokens: 640}); err != nil ||
		n.Params.TokenUsage.Last.Apart() != want {
		t.Errorf("%v, read %+v", err, n.Params.TokenUsage)
	}
	n, err = feed.JSONLNotification(payloadOf(t, feed.FormatCodexJSONL, "turn.failed", ``))
	if err != nil || n.Params.Turn.Status != "failed" || n.Params.Turn.Error.Message != "The tower does not answer." {
		t.Errorf("%v, read %+v", err, n.Params)
	}
}
