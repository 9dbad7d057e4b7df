package cloudevents

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// binaryHeader has the headers of a whole event in binary mode, changed by pairs of names and values; an empty value removes one.
func binaryHeader(pairs ...string) http.Header {
	h := http.Header{}
	all := append([]string{
		"Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "https://git.example.com/acme/shop",
		"Ce-Type", "pr.changed",
	}, pairs...)
	for i := 0; i < len(all); i += 2 {
		h.Set(all[i], all[i+1])
		if all[i+1] == "" {
			h.Del(all[i])
		}
	}
	return h
}

func contentType(media string) http.Header { return http.Header{"Content-Type": {media}} }

const whole = `{"specversion":"1.0","id":"1","source":"/acme","type":"pr.changed","time":"2026-01-31T09:30:00Z","data":{"a":1}}`

func TestEventsAreReadInEveryMode(t *testing.T) {
	at := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)
	event := Event{ID: "1", Source: "/acme", Type: "pr.changed", Time: at, Data: []byte(`{"a":1}`), At: "data"}
	inBatch := func(n string) Event { e := event; e.At = n + ".data"; return e }
	for name, tc := range map[string]struct {
		header http.Header
		body   string
		want   []Event
	}{
		"structured":                      {contentType("application/cloudevents+json"), whole, []Event{event}},
		"structured, with a charset":      {contentType("application/cloudevents+json; charset=UTF-8"), whole, []Event{event}},
		"structured, data in base64":      {contentType("application/cloudevents+json"), strings.Replace(whole, `"data":{"a":1}`, `"data_base64":"`+base64.StdEncoding.EncodeToString([]byte(`{"a":1}`))+`"`, 1), []Event{event}},
		"structured, with extensions":     {contentType("application/cloudevents+json"), strings.Replace(whole, `"data"`, `"traceparent":"x","subject":"y","data"`, 1), []Event{event}},
		"structured, with another +json":  {contentType("application/cloudevents+json"), strings.Replace(whole, `"data"`, `"datacontenttype":"application/vnd.acme+json","data"`, 1), []Event{event}},
		"a batch of two":                  {contentType("application/cloudevents-batch+json"), "[" + whole + "," + whole + "]\n", []Event{inBatch("[0]"), inBatch("[1]")}},
		"an empty batch":                  {contentType("application/cloudevents-batch+json"), "[]", []Event{}},
		"binary":                          {binaryHeader("Ce-Source", "/acme", "Ce-Time", "2026-01-31T09:30:00Z"), `{"a":1}`, []Event{event}},
		"binary, percent-encoded":         {binaryHeader("Ce-Id", "caf%C3%A9%20%22", "Ce-Source", "/acme"), "", []Event{{ID: `café "`, Source: "/acme", Type: "pr.changed", At: "data"}}},
		"an event without data and time":  {contentType("application/cloudevents+json"), `{"specversion":"1.0","id":"1","source":"/acme","type":"x"}`, []Event{{ID: "1", Source: "/acme", Type: "x", At: "data"}}},
		"an event whose data is null":     {contentType("application/cloudevents+json"), `{"specversion":"1.0","id":"1","source":"/acme","type":"x","data":null}`, []Event{{ID: "1", Source: "/acme", Type: "x", At: "data"}}},
		"a time with an offset and nanos": {binaryHeader("Ce-Source", "/acme", "Ce-Time", "2026-01-31T10:30:00.5+01:00"), "1", []Event{{ID: "1", Source: "/acme", Type: "pr.changed", Time: at.Add(500 * time.Millisecond), Data: []byte("1"), At: "data"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.header, []byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoEventIsRefusedWithItsPlace(t *testing.T) {
	structured, batch := contentType("application/cloudevents+json"), contentType("application/cloudevents-batch+json")
	edit := func(old, with string) string { return strings.Replace(whole, old, with, 1) }
	for name, tc := range map[string]struct {
		header http.Header
		body   string
		kind   error
		says   string
	}{
		"no media type":                      {http.Header{}, whole, ErrMediaType, "application/cloudevents+json"},
		"plain JSON without ce- headers":     {contentType("application/json"), whole, ErrMediaType, "ce-specversion"},
		"a format that is not JSON":          {contentType("application/cloudevents+avro"), whole, ErrMediaType, "JSON"},
		"another charset":                    {contentType("application/cloudevents+json; charset=latin1"), whole, ErrMediaType, "utf-8"},
		"binary data that is not JSON":       {binaryHeader("Content-Type", "text/xml"), "<a/>", ErrMediaType, "text/xml"},
		"structured data that is not JSON":   {structured, edit(`"data"`, `"datacontenttype":"text/xml","data"`), ErrMediaType, "datacontenttype"},
		"binary data that is broken":         {binaryHeader(), `{"a":`, nil, "data must be JSON"},
		"base64 of something else than JSON": {structured, edit(`"data":{"a":1}`, `"data_base64":"AAAA"`), nil, "data must be JSON"},
		"what is not base64":                 {structured, edit(`"data":{"a":1}`, `"data_base64":"?"`), nil, "data_base64"},
		"two kinds of data":                  {structured, edit(`"data"`, `"data_base64":"MQ==","data"`), nil, "data_base64"},
		"a key twice":                        {structured, edit(`"id"`, `"type":"x","id"`), nil, "type"},
		"trailing data":                      {structured, whole + "{}", nil, ""},
		"a list where one event is expected": {structured, "[" + whole + "]", nil, "object"},
		"no id":                              {structured, edit(`"id":"1",`, ""), nil, "id is required"},
		"an empty id":                        {structured, edit(`"id":"1"`, `"id":""`), nil, "id must not be empty"},
		"an id of the wrong type":            {structured, edit(`"id":"1"`, `"id":1`), nil, "id must be a string"},
		"an id that is too long":             {structured, edit(`"id":"1"`, `"id":"`+strings.Repeat("x", 1001)+`"`), nil, "id has at most"},
		"no source":                          {binaryHeader("Ce-Source", ""), "{}", nil, "ce-source must not be empty"},
		"a source that is no URI":            {structured, edit(`"/acme"`, `"ht tp://[x"`), nil, "source must be a URI"},
		"a version of the future":            {structured, edit(`"1.0"`, `"2.0"`), nil, "specversion must be 1.0"},
		"a time that is none":                {structured, edit("2026-01-31T09:30:00Z", "yesterday"), nil, "time"},
		"a time in a header that is none":    {binaryHeader("Ce-Time", "yesterday"), "{}", nil, "ce-time"},
		"a header that is not UTF-8":         {binaryHeader("Ce-Id", "%ff"), "{}", nil, "ce-id"},
		"a header twice":                     {func() http.Header { h := binaryHeader(); h.Add("Ce-Id", "2"); return h }(), "{}", nil, "ce-id is there more than once"},
		"a batch that is an object":          {batch, whole, nil, "list"},
		"a batch that does not end":          {batch, "[" + whole, nil, "[1]"},
		"a batch with something after it":    {batch, "[]{}", nil, "after the batch"},
		"a bad event in a batch":             {batch, "[" + whole + `,{"specversion":"1.0"}]`, nil, "[1].id is required"},
		"a batch that is too long":           {batch, "[" + strings.Repeat(whole+",", MaxBatch) + whole + "]", ErrTooLarge, "500"},
		"an event that is too large":         {structured, edit(`{"a":1}`, `"`+strings.Repeat("x", MaxEvent)+`"`), ErrTooLarge, "1048576"},
		"binary data that is too large":      {binaryHeader(), `"` + strings.Repeat("x", MaxEvent) + `"`, ErrTooLarge, "1048576"},
		"a request that is too large":        {structured, strings.Repeat(" ", MaxBody+1), ErrTooLarge, "request"},
		"an event that is too deep":          {structured, edit(`{"a":1}`, strings.Repeat("[", 5000)+strings.Repeat("]", 5000)), nil, "nest"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.header, []byte(tc.body))
			switch {
			case err == nil:
				t.Fatalf("it was taken as %+v", got)
			case tc.kind != nil && !errors.Is(err, tc.kind):
				t.Errorf("the error is %v, want %v", err, tc.kind)
			case tc.kind == nil && (errors.Is(err, ErrMediaType) || errors.Is(err, ErrTooLarge)):
				t.Errorf("the error is %v, want one about the content", err)
			case !strings.Contains(err.Error(), tc.says):
				t.Errorf("the error is %q, and does not say %q", err, tc.says)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("application/cloudevents+json", []byte(whole))
	f.Add("application/cloudevents-batch+json", []byte("["+whole+"]"))
	f.Add("application/json", []byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, media string, body []byte) {
		events, err := Parse(binaryHeader("Content-Type", media), body)
		if err != nil {
			return
		}
		for _, e := range events {
			if e.ID == "" || e.Source == "" || e.Type == "" || e.At == "" || len(e.Data) > MaxEvent {
				t.Errorf("%q gave %+v", body, e)
			}
		}
	})
}
