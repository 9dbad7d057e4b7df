// Package cloudevents reads CloudEvents 1.0 out of HTTP requests, in binary, structured and batch mode, with data in JSON.
//
// It is as strict as the agent protocol: no key twice, no invalid UTF-8, no trailing data, and errors that name the field. Attributes
// beyond those of the specification are allowed and ignored.
package cloudevents

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Limits of a request.
const (
	// MaxEvent is the most bytes of one event, MaxBody of a request.
	MaxEvent = 1 << 20
	MaxBody  = 4 << 20
	// MaxBatch is the most events of a batch.
	MaxBatch = 500
	// maxAttribute is the most bytes of an attribute.
	maxAttribute = 1000
)

// Media types of the specification.
const (
	typeStructured = "application/cloudevents+json"
	typeBatch      = "application/cloudevents-batch+json"
)

// Event is one event.
type Event struct {
	ID     string
	Source string
	Type   string
	// Time is when it happened; zero where the event does not say.
	Time time.Time
	// Data is JSON; nil where the event has none.
	Data []byte
	// At is the path of the event's data in the request, for errors: data, or [2].data in a batch.
	At string
}

// ErrMediaType says that a request is of a media type that is not understood, ErrTooLarge that one of the limits is exceeded. Every other
// error is about the content.
var (
	ErrMediaType = errors.New("the media type is not understood")
	ErrTooLarge  = errors.New("too large")
)

// Parse reads the events of a request. A batch may be empty.
func Parse(header http.Header, body []byte) ([]Event, error) {
	if len(body) > MaxBody {
		return nil, fmt.Errorf("the request is %w: it has at most %d bytes", ErrTooLarge, MaxBody)
	}
	media, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("%w: Content-Type is missing or cannot be read; send %s, %s, or ce- headers with application/json",
			ErrMediaType, typeStructured, typeBatch)
	}
	if c := params["charset"]; c != "" && !strings.EqualFold(c, "utf-8") {
		return nil, fmt.Errorf("%w: the charset must be utf-8, not %q", ErrMediaType, cut(c))
	}
	switch {
	case media == typeBatch:
		return batch(body)
	case media == typeStructured:
		e, err := structured(body, "")
		return []Event{e}, err
	case strings.HasPrefix(media, "application/cloudevents"):
		return nil, fmt.Errorf("%w: of the formats of CloudEvents only JSON is read, not %q", ErrMediaType, cut(media))
	}
	e, err := binary(header, media, body)
	return []Event{e}, err
}

// envelope is an event in structured mode.
type envelope struct {
	ID              string       `json:"id"`
	Source          string       `json:"source"`
	SpecVersion     string       `json:"specversion"`
	Type            string       `json:"type"`
	Time            string       `json:"time,omitzero" wire:"time"`
	DataContentType string       `json:"datacontenttype,omitzero"`
	Data            protocol.Raw `json:"data,omitzero"`
	DataBase64      string       `json:"data_base64,omitzero"`
}

func structured(body []byte, at string) (Event, error) {
	if len(body) > MaxEvent {
		return Event{}, fmt.Errorf("event %s is %w: it has at most %d bytes", at, ErrTooLarge, MaxEvent)
	}
	var e envelope
	if werr := protocol.DecodeObject(body, at, &e); werr != nil {
		return Event{}, errors.New(werr.Message)
	}
	if at != "" {
		at += "."
	}
	data := []byte(e.Data)
	if e.DataBase64 != "" {
		var err error
		if data, err = base64.StdEncoding.DecodeString(e.DataBase64); err != nil || e.Data != nil {
			return Event{}, fmt.Errorf("%sdata_base64 must be base64, and there must be no data beside it", at)
		}
	}
	if e.DataContentType != "" && !isJSON(e.DataContentType) {
		return Event{}, fmt.Errorf("%w: %sdatacontenttype must be application/json, not %q", ErrMediaType, at, cut(e.DataContentType))
	}
	return e.event(data, at)
}

// event checks what is common to all modes.
func (e envelope) event(data []byte, at string) (Event, error) {
	if e.SpecVersion != "1.0" {
		return Event{}, fmt.Errorf("%sspecversion must be 1.0, not %q", at, cut(e.SpecVersion))
	}
	for _, a := range []struct{ name, value string }{{"id", e.ID}, {"source", e.Source}, {"type", e.Type}} {
		switch {
		case a.value == "":
			return Event{}, fmt.Errorf("%s%s must not be empty", at, a.name)
		case len(a.value) > maxAttribute:
			return Event{}, fmt.Errorf("%s%s has at most %d bytes, not %d", at, a.name, maxAttribute, len(a.value))
		}
	}
	if _, err := url.Parse(e.Source); err != nil {
		return Event{}, fmt.Errorf("%ssource must be a URI reference, such as https://git.example.com/acme/shop", at)
	}
	if data != nil && !jsontext.Value(data).IsValid() {
		return Event{}, fmt.Errorf("%sdata must be JSON in UTF-8, without a key twice", strings.TrimPrefix(at, "ce-"))
	}
	event := Event{ID: e.ID, Source: e.Source, Type: e.Type, Data: data, At: at + "data"}
	if e.Time != "" {
		t, err := protocol.ParseTime(e.Time)
		if err != nil {
			return Event{}, fmt.Errorf("%stime: %w", at, err)
		}
		event.Time = t
	}
	return event, nil
}

func batch(body []byte) ([]Event, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginArray {
		return nil, errors.New("a batch is a JSON list of events")
	}
	events := []Event{}
	for dec.PeekKind() != jsontext.KindEndArray {
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("[%d] is no JSON: %w", len(events), err)
		}
		if len(events) == MaxBatch {
			return nil, fmt.Errorf("the batch is %w: it has at most %d events", ErrTooLarge, MaxBatch)
		}
		e, err := structured(raw, fmt.Sprintf("[%d]", len(events)))
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, fmt.Errorf("the batch does not end: %w", err)
	}
	if len(bytes.TrimSpace(body[dec.InputOffset():])) > 0 {
		return nil, errors.New("there is data after the batch")
	}
	return events, nil
}

// binary reads an event whose attributes are headers and whose data is the body.
func binary(header http.Header, media string, body []byte) (Event, error) {
	if len(body) > MaxEvent {
		return Event{}, fmt.Errorf("the event is %w: it has at most %d bytes", ErrTooLarge, MaxEvent)
	}
	if header.Get("Ce-Specversion") == "" {
		return Event{}, fmt.Errorf("%w: there is no ce-specversion header, and the Content-Type is neither %s nor %s", ErrMediaType, typeStructured, typeBatch)
	}
	if !isJSON(media) {
		return Event{}, fmt.Errorf("%w: the data must be application/json, not %q", ErrMediaType, cut(media))
	}
	var e envelope
	for name, to := range map[string]*string{
		"id": &e.ID, "source": &e.Source, "specversion": &e.SpecVersion, "type": &e.Type, "time": &e.Time,
	} {
		values := header.Values("Ce-" + name)
		if len(values) > 1 {
			return Event{}, fmt.Errorf("header ce-%s is there more than once", name)
		}
		value, err := url.PathUnescape(header.Get("Ce-" + name))
		if err != nil || !utf8.ValidString(value) {
			return Event{}, fmt.Errorf("header ce-%s must be UTF-8, with what is no plain ASCII percent-encoded", name)
		}
		*to = value
	}
	if len(body) == 0 {
		body = nil
	}
	event, err := e.event(body, "ce-")
	event.At = "data"
	return event, err
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}

// cut keeps what a stranger sent from filling an answer.
func cut(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}
