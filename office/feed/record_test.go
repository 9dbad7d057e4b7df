package feed_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

// This file tests how records are written and read.

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	for _, r := range feedtest.Records() {
		data := feed.AppendRecord(nil, &r)
		got, err := feed.DecodeRecord(data)
		if err != nil {
			t.Errorf("%v in %s", err, data)
			continue
		}
		if !reflect.DeepEqual(got, r) {
			t.Errorf("read %+v\nwrote %+v", got, r)
		}
		if !bytes.Equal(got.Payload, r.Payload) {
			t.Errorf("the payload %s became %s", r.Payload, got.Payload)
		}
		if again := feed.AppendRecord(nil, &got); !bytes.Equal(again, data) {
			t.Errorf("written again it differs:\n%s\n%s", data, again)
		}
	}
}

func TestARecordHasItsFieldsInTheContractsOrder(t *testing.T) {
	r := feedtest.Records()[0]
	r.Extra = json.RawMessage(` { "lamp": 1 , "lamp":2 } `)
	got := string(feed.AppendRecord([]byte("before "), &r))
	want := `before {"kind":"platform","source":"lifecycle","record_format":"ellipsis_lifecycle@1","record_type":"message_received",` +
		`"id":"rec-001","session_id":"s1-lamp-7f3a","turn_id":"s1-lamp-7f3a-t0","session_message_id":"m-41","feed_seq":1,"payload":` +
		string(r.Payload) + `,"tools":null,"tokens_info":null,"cost":null,"duration":null,"model":null,` +
		`"created_at":"2027-03-04T05:06:07Z","lamp": 1 , "lamp":2}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAppendRecord(t *testing.T) {
	for _, c := range []struct {
		name string
		in   feed.Record
		want string
	}{
		{"a time has a fraction only where there is one, and is in UTC",
			feed.Record{CreatedAt: time.Date(2027, 3, 4, 5, 6, 7, 120_000_000, time.FixedZone("", 3600))}, `"created_at":"2027-03-04T04:06:07.12Z"`},
		{"an empty payload is an empty object", feed.Record{}, `"payload":{},`},
		{"no tools are null", feed.Record{}, `"tools":null,`},
		{"an empty list of tools is empty", feed.Record{Tools: []string{}}, `"tools":[],`},
		{"only what JSON demands is escaped", feed.Record{ID: "<a&b> \"\\\n\r\t\x01\x7f é\u2028"},
			`"id":"<a&b> \"\\\n\r\t\u0001` + "\x7f é\u2028" + `",`},
		{"what is no UTF-8 becomes the sign for that", feed.Record{ID: "a\xffb\xc3"}, `"id":"a` + "\uFFFDb\uFFFD" + `",`},
		{"a cost in dollars keeps its digits", feed.Record{Tokens: &feed.TokensInfo{CostUSD: 0.1234567890123}}, `"cost_usd":0.1234567890123}`},
		{"an empty extra adds nothing", feed.Record{Extra: json.RawMessage(`{ }`)}, `Z"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := feed.AppendRecord(nil, &c.in)
			if !bytes.Contains(got, []byte(c.want)) || !json.Valid(got) {
				t.Errorf("%s lacks %s, or is no JSON", got, c.want)
			}
		})
	}
}

func TestARecordInsideOfAnotherValueIsReadAndWritten(t *testing.T) {
	in := struct{ R feed.Record }{feedtest.Records()[5]}
	in.R.Extra = json.RawMessage(`{"lamp":1}`)
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out := in
	out.R = feed.Record{}
	if err := json.Unmarshal(data, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%v, read %+v out of %s", err, out, data)
	}
	if err := json.Unmarshal([]byte(`{"R":{}}`), &out); err == nil {
		t.Error("a record without fields was read")
	}
}

// whole is a record as JSON, with one part of it replaced.
func whole(old, with string) string {
	const record = `{"kind":"unknown","source":"command","record_format":"f@1","record_type":"t","id":"i","session_id":"s","turn_id":null,` +
		`"session_message_id":null,"feed_seq":7,"payload":{"a":1},"tools":null,"tokens_info":null,"cost":null,"duration":null,"model":null,` +
		`"created_at":"2027-03-04T05:06:07Z"}`
	if !strings.Contains(record, old) {
		panic(old)
	}
	return strings.Replace(record, old, with, 1)
}

func TestDecodeRecordTakes(t *testing.T) {
	for _, c := range []struct {
		name, old, with string
		is              func(r feed.Record) bool
	}{
		{"fields in any order and white space", `{"kind":"unknown",`, " {\n\"extra\" : [ 1, 2 ] , \"kind\"\t:\r\"unknown\", ",
			func(r feed.Record) bool { return r.Kind == feed.KindUnknown && string(r.Extra) == `{"extra":[ 1, 2 ]}` }},
		{"several unknown fields as they are, also twice", `"feed_seq":7`, `"b\u0061":1,"feed_seq":7,"ba":{"x":1.50}`,
			func(r feed.Record) bool { return string(r.Extra) == `{"b\u0061":1,"ba":{"x":1.50}}` }},
		{"escapes", `"id":"i"`, `"\u0069d":"\u00e9\ud83d\ude00\/\b\f"`, func(r feed.Record) bool { return r.ID == "é😀/\b\f" }},
		{"an integer with a fraction of zero", `"feed_seq":7`, `"feed_seq":7.0`, func(r feed.Record) bool { return r.FeedSeq == 7 }},
		{"an integer with an exponent", `"cost":null`, `"cost":12e2`, func(r feed.Record) bool { return *r.Cost == 1200 }},
		{"the largest integer", `"feed_seq":7`, `"feed_seq":9223372036854775807`, func(r feed.Record) bool { return r.FeedSeq == 1<<63-1 }},
		{"a kind of tomorrow", `"kind":"unknown"`, `"kind":"poem"`, func(r feed.Record) bool { return r.Kind == "poem" }},
		{"a time of another zone", `05:06:07Z`, `05:06:07.5+02:00`, func(r feed.Record) bool {
			return r.CreatedAt.Equal(time.Date(2027, 3, 4, 3, 6, 7, 500_000_000, time.UTC))
		}},
		{"usage with fields left out", `"tokens_info":null`, `"tokens_info":{"output_tokens":3}`, func(r feed.Record) bool {
			return *r.Tokens == feed.TokensInfo{OutputTokens: 3}
		}},
		{"an empty list of tools as one", `"tools":null`, `"tools":[]`, func(r feed.Record) bool { return r.Tools != nil && len(r.Tools) == 0 }},
		{"a payload as it is", `{"a":1}`, "{ \"a\" : 1.000000000000000000001,\"\\u0061\":\"<\xff>\"}", func(r feed.Record) bool {
			return string(r.Payload) == "{ \"a\" : 1.000000000000000000001,\"\\u0061\":\"<\xff>\"}"
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := whole(c.old, c.with)
			r, err := feed.DecodeRecord([]byte(data))
			if err != nil || !c.is(r) {
				t.Errorf("%v: %+v out of %s", err, r, data)
			}
			again, err := feed.DecodeRecord(feed.AppendRecord(nil, &r))
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Errorf("%v: it came back as %+v", err, again)
			}
		})
	}
}

func TestDecodeRecordRefuses(t *testing.T) {
	for _, c := range []struct{ name, old, with, want string }{
		{"a field that is not there", `"turn_id":null,`, ``, `the record lacks the fields ["turn_id"]`},
		{"several that are not there", `"tools":null,"tokens_info":null,`, ``, `the record lacks the fields ["tools" "tokens_info"]`},
		{"a field that is there twice", `"id":"i"`, `"id":"i","id":"i"`, "the record's field id is there twice"},
		{"a number for a string", `"kind":"unknown"`, `"kind":1`, "the record's field kind: it is no string"},
		{"null where something has to be", `"id":"i"`, `"id":null`, "the record's field id: it is no string"},
		{"a number for a nullable string", `"model":null`, `"model":7`, "the record's field model: it is no string and not null"},
		{"an array as payload", `{"a":1}`, `[]`, "the record's field payload: it is no object"},
		{"a fraction as place", `"feed_seq":7`, `"feed_seq":7.5`, "the record's field feed_seq: it is no integer of at most 64 bits"},
		{"a place of more than 64 bits", `"feed_seq":7`, `"feed_seq":9223372036854775808`, "feed_seq: it is no integer of at most 64 bits"},
		{"a string for a cost", `"cost":null`, `"cost":"1"`, "the record's field cost: it is no integer of at most 64 bits and not null"},
		{"tools that are no strings", `"tools":null`, `"tools":["a",1]`, "the record's field tools: element 1: it is no string"},
		{"tools that are no list", `"tools":null`, `"tools":"Bash"`, "the record's field tools: it is no array"},
		{"usage with a field too much", `"tokens_info":null`, `"tokens_info":{"lamps":1}`, "tokens_info: lamps: the contract has no such field"},
		{"usage that is no object", `"tokens_info":null`, `"tokens_info":[]`, "the record's field tokens_info: it is no object"},
		{"usage with a cost that is no number", `"tokens_info":null`, `"tokens_info":{"cost_usd":null}`, "cost_usd: it is no number"},
		{"a day as time", `2027-03-04T05:06:07Z`, `2027-03-04`, "the record's field created_at: it is no time as in RFC 3339"},
		{"half a character", `"id":"i"`, `"id":"\ud83d"`, "the record's field id: it is no valid Unicode"},
		{"half a character before something else", `"id":"i"`, `"id":"\ud83d\u0041"`, "the record's field id: it is no valid Unicode"},
		{"bytes that are no UTF-8", `"id":"i"`, "\"id\":\"\xff\"", "the record's field id: it is no valid Unicode"},
		{"something behind it", `07Z"}`, `07Z"} 1`, "the record is no JSON object"},
		{"an end that is missing", `07Z"}`, `07Z"`, "the record is no JSON object"},
		{"a comma too much", `07Z"}`, `07Z",}`, "the record is no JSON object"},
		{"a payload that is broken", `{"a":1}`, `{"a":01}`, "the record is no JSON object"},
		{"a line break in a string", `"id":"i"`, "\"id\":\"\n\"", "the record is no JSON object"},
		{"an escape that is none", `"id":"i"`, `"id":"\x"`, "the record is no JSON object"},
		{"nesting without an end", `{"a":1}`, `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
			"the record is no JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := whole(c.old, c.with)
			if r, err := feed.DecodeRecord([]byte(data)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s; read %+v", err, c.want, r)
			}
		})
	}
	for _, data := range []string{``, ` `, `null`, `[]`, `"{}"`, `{`, `{"kind"`, `{"kind":`, `{"kind":"x"`} {
		if _, err := feed.DecodeRecord([]byte(data)); err == nil {
			t.Errorf("%q was read", data)
		}
	}
}

func TestCheckPayload(t *testing.T) {
	for _, c := range []struct{ name, payload, want string }{
		{"an object is fine", " {\"a\": [1, 2e5, \"é\\u0000\"]}\n", ""},
		{"nothing is no object", "", "the payload is no JSON object"},
		{"an array is no object", "[]", "the payload is no JSON object"},
		{"JSON has to be whole", `{"a":1`, "the payload is no valid JSON"},
		{"nothing may follow", `{} {}`, "the payload is no valid JSON"},
		{"other encodings are refused", "{\"a\":\"\xe9\"}", "the payload is not UTF-8"},
		{"the most is still taken", `{"a":"` + strings.Repeat("x", feed.MaxRecord-8) + `"}`, ""},
		{"more than the most is not", `{"a":"` + strings.Repeat("x", feed.MaxRecord-7) + `"}`,
			"the payload has 8388609 bytes, 8388608 are the most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := feed.CheckPayload([]byte(c.payload))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
