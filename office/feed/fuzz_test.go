package feed_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
)

// This file lets chance write records, payloads and frames.

// FuzzDecodeRecord holds whatever comes to three rules: no panic; what is taken is JSON and comes back the same, its payload to the byte;
// and what is refused has a reason.
func FuzzDecodeRecord(f *testing.F) {
	for _, data := range feedtest.Encoded() {
		f.Add(data)
	}
	f.Add([]byte(whole(`"feed_seq":7`, `"b\u0061":1,"feed_seq":7.0,"ba":{"x":1.50}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := feed.DecodeRecord(data)
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a reason")
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("what is no JSON was taken")
		}
		again := feed.AppendRecord(nil, &r)
		back, err := feed.DecodeRecord(again)
		if err != nil {
			t.Fatalf("it does not come back: %v in %s", err, again)
		}
		if !reflect.DeepEqual(back, r) || !bytes.Equal(back.Payload, r.Payload) {
			t.Fatalf("it came back as %+v, was %+v", back, r)
		}
	})
}

// FuzzClassify holds whatever is uploaded to three rules: no panic; what has a kind is a payload that can be stored, unless it is no UTF-8;
// and the record that it becomes comes back with what was derived.
func FuzzClassify(f *testing.F) {
	for _, r := range feedtest.Records() {
		f.Add(r.Source, r.Format, r.Type, []byte(r.Payload))
	}
	f.Fuzz(func(t *testing.T, source, format, recordType string, payload []byte) {
		r := feed.Record{Kind: feed.Classify(source, format, recordType, payload), Source: source, Format: format, Type: recordType,
			Payload: payload}
		feed.Derive(&r)
		if r.Kind != feed.KindUnknown && !json.Valid(payload) {
			t.Fatalf("what is no JSON is of kind %s", r.Kind)
		}
		if feed.CheckPayload(payload) != nil {
			return
		}
		if !json.Valid(payload) {
			t.Fatal("what is no JSON was taken as payload")
		}
		data := feed.AppendRecord(nil, &r)
		back, err := feed.DecodeRecord(data)
		if err != nil {
			t.Fatalf("it does not come back: %v in %s", err, data)
		}
		if !bytes.Equal(back.Payload, bytes.TrimSpace(payload)) || !reflect.DeepEqual(back.Tokens, r.Tokens) || !reflect.DeepEqual(back.Tools,
			r.Tools) {
			t.Fatalf("it came back as %+v, was %+v", back, r)
		}
	})
}

// FuzzDecodeFrame holds whatever a server sends to one rule: a frame or a reason.
func FuzzDecodeFrame(f *testing.F) {
	for _, data := range frames(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if frame, err := feed.DecodeFrame(data); (frame == nil) == (err == nil) {
			t.Errorf("%v and %v", frame, err)
		}
	})
}
