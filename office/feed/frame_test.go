package feed_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

// This file tests the frames of the stream, written and read.

func frames(t testing.TB) map[string][]byte {
	t.Helper()
	all, err := feedtest.Frames()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFramesFitTheSchema(t *testing.T) {
	validate := validators(t)("/$defs/frame")
	all := frames(t)
	all["a snapshot of nothing"], _ = feed.AppendSnapshot(nil, 0, encoded(t, feedtest.EmptySession()), nil)
	if !strings.HasPrefix(string(all["a snapshot of nothing"]), `{"type":"snapshot","protocol":6,"earliest_feed_seq":null,"session":{`) {
		t.Errorf("without records there is no first one: %s", all["a snapshot of nothing"])
	}
	all["no records"] = feed.AppendRecords(nil, nil)
	all["a delta of nothing"] = feed.AppendDelta(nil, "", feed.Delta{Kind: "of tomorrow"})
	for name, data := range all {
		if err := validate(parsed(t, data)); err != nil {
			t.Errorf("%s: %v in %s", name, err, data)
		}
	}
	for name, data := range map[string]string{
		"a snapshot without protocol":     strings.Replace(string(all[feed.FrameSnapshot]), `"protocol":6,`, ``, 1),
		"a snapshot without a session":    `{"type":"snapshot","protocol":6,"earliest_feed_seq":1,"messages":[],"session":null}`,
		"a record that lacks something":   strings.Replace(string(all[feed.FrameRecordsAppend]), `"turn_id":null,`, ``, 1),
		"a record of the wrong kind":      strings.Replace(string(all[feed.FrameRecordsAppend]), `"claude_code"`, `"claude_sdk"`, 1),
		"a delta without its turn":        `{"type":"delta","kind":"text","text":"a","output_tokens":null}`,
		"a heartbeat at no time":          `{"type":"heartbeat","ts":"noon"}`,
		"an error that says nothing":      `{"type":"error","message":null}`,
		"a frame that the contract lacks": `{"type":"poem"}`,
	} {
		if validate(parsed(t, []byte(data))) == nil {
			t.Errorf("%s fits: %.200s", name, data)
		}
	}
}

func TestEveryFrameIsReadAsItWasWritten(t *testing.T) {
	records := feedtest.Records()
	want := map[string]feed.Frame{
		feed.FrameSnapshot: feed.Snapshot{
			Protocol: feed.StreamProtocol, EarliestFeedSeq: new(int64(3)), Session: feedtest.Session(), Messages: feedtest.InboxMessages(),
		},
		feed.FrameSession: feed.SessionFrame{Session: feedtest.Session()},
		feed.FrameDelta: feed.DeltaFrame{TurnID: new(feedtest.Turn), Delta: feed.Delta{Kind: feed.DeltaText, Text: new("Both <lamps>"),
			OutputTokens: new(int64(7))}},
		feed.FrameHeartbeat: feed.Heartbeat{TS: feedtest.Start},
		feed.FrameDone:      feed.Done{},
		feed.FrameError:     feed.ErrorFrame{Message: "The office is closing."},
	}
	for name, data := range frames(t) {
		got, err := feed.DecodeFrame(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.FrameType() != name {
			t.Errorf("a frame of type %s says that it is %s", name, got.FrameType())
		}
		if appended, ok := got.(feed.RecordsAppend); ok {
			if !reflect.DeepEqual(appended.Records, records) {
				t.Errorf("read %+v", appended.Records)
			}
			for i, raw := range appended.Raw {
				if string(raw) != string(feedtest.Encoded()[i]) {
					t.Errorf("record %d came as %s", i, raw)
				}
			}
			continue
		}
		if snapshot, ok := got.(feed.Snapshot); ok {
			// A message without images is read with an empty list of them.
			for i := range snapshot.Messages {
				if len(snapshot.Messages[i].Images) == 0 {
					snapshot.Messages[i].Images = nil
				}
			}
		}
		if !reflect.DeepEqual(got, want[name]) {
			t.Errorf("%s: read %+v\nwant %+v", name, got, want[name])
		}
	}
}

func TestDeltas(t *testing.T) {
	for _, c := range []struct {
		name, turn string
		in         feed.Delta
		want       string
	}{
		{"a fragment of text is as it is", "t1", feed.Delta{Kind: feed.DeltaText, Text: new("a\n<b>")},
			`{"type":"delta","turn_id":"t1","kind":"text","text":"a\n<b>","output_tokens":null}`},
		{"a count can come alone", "t1", feed.Delta{Kind: feed.DeltaText, OutputTokens: new(int64(0))},
			`{"type":"delta","turn_id":"t1","kind":"text","text":null,"output_tokens":0}`},
		{"an empty thought clears", "", feed.Delta{Kind: feed.DeltaThinking, Text: new("")},
			`{"type":"delta","turn_id":null,"kind":"thinking","text":"","output_tokens":null}`},
		{"a thought is cut to its first line", "t1", feed.Delta{Kind: feed.DeltaThinking, Text: new("**Look**\nmore")},
			`{"type":"delta","turn_id":"t1","kind":"thinking","text":"**Look**","output_tokens":null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(feed.AppendDelta(nil, c.turn, c.in)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestCutThinking(t *testing.T) {
	long := strings.Repeat("é", feed.MaxThinking)
	for _, c := range []struct{ name, in, want string }{
		{"one line stays", "**Look east**", "**Look east**"},
		{"of more the first stays", "one\ntwo", "one"},
		{"other line ends count too", "one\r\ntwo", "one"},
		{"line ends before the first line do not count", "\n\r\none\n", "one"},
		{"nothing is nothing", "", ""},
		{"only line ends are nothing", "\n\n", ""},
		{"512 characters stay, however many bytes they have", long, long},
		{"the 513th goes", long + "x", long},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := feed.CutThinking(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDecodeFrame(t *testing.T) {
	frame, err := feed.DecodeFrame([]byte(` {"type":"poem","lines":[1e400]}`))
	if u, ok := frame.(feed.UnknownFrame); err != nil || !ok || u.FrameType() != "poem" ||
		string(u.Raw) != ` {"type":"poem","lines":[1e400]}` {
		t.Errorf("a frame of tomorrow was read as %v, %v", frame, err)
	}
	delta, err := feed.DecodeFrame([]byte(`{"type":"delta","turn_id":null,"kind":"song","text":null,"output_tokens":null,"more":1}`))
	if d, ok := delta.(feed.DeltaFrame); err != nil || !ok || d.Kind != "song" {
		t.Errorf("a delta of tomorrow was read as %v, %v", delta, err)
	}
	for _, c := range []struct{ name, in, want string }{
		{"no JSON", `{"type":"done"`, "the frame is no valid JSON"},
		{"no type", `{"kind":"done"}`, "the frame is no object with a type"},
		{"a type that is no string", `{"type":7}`, "the frame is no object with a type"},
		{"no object", `[]`, "the frame is no object with a type"},
		{"records that are none", `{"type":"records_append","records":{}}`, "a frame of type records_append has no array of records"},
		{"a record that lacks something", `{"type":"records_append","records":[{}]}`,
			"record 1 of a frame of type records_append: the record lacks"},
		{"a time that is none", `{"type":"heartbeat","ts":1}`, "a frame of type heartbeat:"},
		{"a session that is none", `{"type":"session","session":{"id":7}}`, "a frame of type session:"},
	} {
		if frame, err := feed.DecodeFrame([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %s", c.name, frame, err, c.want)
		}
	}
}

func TestCloseCodes(t *testing.T) {
	for code, terminal := range map[int]bool{
		feed.CloseNormal: true, feed.CloseUnknownProtocol: true, feed.CloseNoProtocol: true, feed.CloseNotAuthorized: true,
		feed.CloseServerError: false, feed.CloseOverCapacity: false, 1001: false, 1006: false,
	} {
		if feed.CloseIsTerminal(code) != terminal {
			t.Errorf("after %d a watcher stays away: %v", code, !terminal)
		}
	}
}
