package feed

// This file reads records, strictly: a record whose envelope lacks something is none.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// CheckPayload says what is wrong with a payload that came from outside: it has to be a JSON object in UTF-8 of at most MaxRecord bytes.
// nil means that AppendRecord can copy it.
func CheckPayload(payload []byte) error {
	switch {
	case len(payload) > MaxRecord:
		return fmt.Errorf("the payload has %d bytes, %d are the most: put a note in its place", len(payload), MaxRecord)
	case !utf8.Valid(payload):
		return errors.New("the payload is not UTF-8: WebSocket clients could not read it")
	}
	if start := skipSpace(payload, 0); start == len(payload) || payload[start] != '{' {
		return errors.New("the payload is no JSON object")
	}
	if !whole(payload) {
		return errors.New("the payload is no valid JSON")
	}
	return nil
}

// The fields of a record's envelope, in the contract's order.
const (
	fieldKind = iota
	fieldSource
	fieldFormat
	fieldType
	fieldID
	fieldSessionID
	fieldTurnID
	fieldMessageID
	fieldFeedSeq
	fieldPayload
	fieldTools
	fieldTokens
	fieldCost
	fieldDuration
	fieldModel
	fieldCreatedAt
)

var envelope = [...]string{
	fieldKind:      "kind",
	fieldSource:    "source",
	fieldFormat:    "record_format",
	fieldType:      "record_type",
	fieldID:        "id",
	fieldSessionID: "session_id",
	fieldTurnID:    "turn_id",
	fieldMessageID: "session_message_id",
	fieldFeedSeq:   "feed_seq",
	fieldPayload:   "payload",
	fieldTools:     "tools",
	fieldTokens:    "tokens_info",
	fieldCost:      "cost",
	fieldDuration:  "duration",
	fieldModel:     "model",
	fieldCreatedAt: "created_at",
}

// DecodeRecord reads a record. All fields of the envelope have to be there, once, and of their type; others are kept in Extra as they came.
// The record's payload is a part of data: who uses data again copies the payload first.
func DecodeRecord(data []byte) (Record, error) {
	var r Record
	m := members{data: data, pos: skipSpace(data, 0)}
	var seen uint32
	next := 0
	for m.next() {
		field := envelopeField(m.key, next)
		if field < 0 {
			keepExtra(&r, &m)
			continue
		}
		if seen&(1<<field) != 0 {
			return r, fmt.Errorf("the record's field %s is there twice", envelope[field])
		}
		seen |= 1 << field
		next = field + 1
		start := m.pos
		if !m.skip() {
			break
		}
		if err := r.set(field, data[start:m.pos]); err != nil {
			return r, fmt.Errorf("the record's field %s: %w", envelope[field], err)
		}
	}
	if !m.ok() || skipSpace(data, m.pos) != len(data) {
		return r, fmt.Errorf("the record is no JSON object: it breaks at byte %d", m.pos)
	}
	if r.Extra != nil {
		r.Extra = append(r.Extra, '}')
	}
	return r, missingFields(seen)
}

// UnmarshalJSON is DecodeRecord with a payload of its own.
func (r *Record) UnmarshalJSON(data []byte) error {
	decoded, err := DecodeRecord(data)
	if err != nil {
		return err
	}
	decoded.Payload = bytes.Clone(decoded.Payload)
	*r = decoded
	return nil
}

// envelopeField gives the field's place in the envelope, -1 for none. next is where it is if the record keeps to the contract's order.
func envelopeField(key token, next int) int {
	if next < len(envelope) && key.is(envelope[next]) {
		return next
	}
	for i, name := range envelope {
		if key.is(name) {
			return i
		}
	}
	return -1
}

func keepExtra(r *Record, m *members) {
	key, start := m.key, m.pos
	if !m.skip() {
		return
	}
	if r.Extra == nil {
		r.Extra = append(r.Extra, '{')
	} else {
		r.Extra = append(r.Extra, ',')
	}
	r.Extra = append(append(append(r.Extra, '"'), key.raw...), '"', ':')
	r.Extra = append(r.Extra, m.data[start:m.pos]...)
}

func missingFields(seen uint32) error {
	var missing []string
	for i, name := range envelope {
		if seen&(1<<i) == 0 {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return fmt.Errorf("the record lacks the fields %q", missing)
	}
	return nil
}

// set reads the value of a field of the envelope, by its place there.
func (r *Record) set(field int, value []byte) (err error) {
	switch field {
	case fieldKind:
		var kind string
		kind, err = readString(value)
		r.Kind = Kind(kind)
	case fieldSource:
		r.Source, err = readString(value)
	case fieldFormat:
		r.Format, err = readString(value)
	case fieldType:
		r.Type, err = readString(value)
	case fieldID:
		r.ID, err = readString(value)
	case fieldSessionID:
		r.SessionID, err = readString(value)
	case fieldTurnID:
		r.TurnID, err = readNullable(value, readString)
	case fieldMessageID:
		r.MessageID, err = readNullable(value, readString)
	case fieldFeedSeq:
		r.FeedSeq, err = readInt(value)
	case fieldPayload:
		if value[0] != '{' {
			return errors.New("it is no object")
		}
		r.Payload = value
	default:
		return r.setDerived(field, value)
	}
	return err
}

func (r *Record) setDerived(field int, value []byte) (err error) {
	switch field {
	case fieldTools:
		var tools *[]string
		if tools, err = readNullable(value, readStrings); tools != nil {
			r.Tools = *tools
		}
	case fieldTokens:
		r.Tokens, err = readNullable(value, readTokens)
	case fieldCost:
		r.Cost, err = readNullable(value, readInt)
	case fieldDuration:
		r.Duration, err = readNullable(value, readInt)
	case fieldModel:
		r.Model, err = readNullable(value, readString)
	case fieldCreatedAt:
		r.CreatedAt, err = readTime(value)
	}
	return err
}

// words are strings that most records have, so that they need no memory of their own.
var words = func() map[string]string {
	m := map[string]string{}
	for _, w := range []string{
		string(KindPlatform), string(KindClaudeCode), string(KindCodexAppServer), string(KindClaudeSDK), string(KindCodex), string(KindUnknown),
		SourceLifecycle, SourceCommand,
		FormatLifecycle, FormatClaudeJSONL, FormatCodexAppServer, FormatClaudeSDK, FormatCodexJSONL, FormatCommand,
		TypeMessageReceived, TypeMessageDelivered, TypeMessageRequeued, TypeEnvironmentPhase, TypeEnvironmentOutput, TypeEnvironmentReady,
		TypeTurnStarted, TypeTurnEnded, TypeSessionClosed,
		"system", "user", "assistant", "result", "rate_limit", "item/started", "item/completed", "thread/tokenUsage/updated",
	} {
		m[w] = w
	}
	return m
}()

func readString(value []byte) (string, error) {
	t, _, ok := scanString(value, 0)
	if !ok {
		return "", errors.New("it is no string")
	}
	if !t.escaped {
		if w, known := words[string(t.raw)]; known {
			return w, nil
		}
	}
	s, ok := t.text()
	if !ok {
		return "", errors.New("it is no valid Unicode")
	}
	return s, nil
}

// readNullable reads a value or null.
func readNullable[T any](value []byte, read func([]byte) (T, error)) (*T, error) {
	if value[0] == 'n' {
		return nil, nil
	}
	v, err := read(value)
	if err != nil {
		return nil, fmt.Errorf("%w and not null", err)
	}
	return &v, nil
}

func isNumber(value []byte) bool { return isDigit(value[0]) || value[0] == '-' }

func readInt(value []byte) (int64, error) {
	if isNumber(value) {
		if n, ok := parseInt(value); ok {
			return n, nil
		}
	}
	return 0, errors.New("it is no integer of at most 64 bits")
}

func readFloat(value []byte) (float64, error) {
	if !isNumber(value) {
		return 0, errors.New("it is no number")
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0, errors.New("it is no number of at most 64 bits")
	}
	return f, nil
}

func readTime(value []byte) (time.Time, error) {
	s, err := readString(value)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, errors.New("it is no time as in RFC 3339")
	}
	return t.UTC(), nil
}

func readStrings(value []byte) ([]string, error) {
	if value[0] != '[' {
		return nil, errors.New("it is no array")
	}
	list := []string{}
	e := elements{data: value}
	for e.next() {
		start := e.pos
		if !e.skip() {
			break
		}
		s, err := readString(value[start:e.pos])
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", len(list), err)
		}
		list = append(list, s)
	}
	return list, nil
}

// readTokens reads tokens_info. What it leaves out is 0; nothing else may be in it.
func readTokens(value []byte) (TokensInfo, error) {
	var t TokensInfo
	if value[0] != '{' {
		return t, errors.New("it is no object")
	}
	m := members{data: value}
	for m.next() {
		key, start := m.key, m.pos
		if !m.skip() {
			break
		}
		if err := t.set(key, value[start:m.pos]); err != nil {
			return t, fmt.Errorf("%s: %w", key.raw, err)
		}
	}
	return t, nil
}

func (t *TokensInfo) set(key token, value []byte) (err error) {
	switch {
	case key.is("input_tokens"):
		t.InputTokens, err = readInt(value)
	case key.is("output_tokens"):
		t.OutputTokens, err = readInt(value)
	case key.is("cache_read_input_tokens"):
		t.CacheReadTokens, err = readInt(value)
	case key.is("cache_creation_input_tokens"):
		t.CacheCreationTokens, err = readInt(value)
	case key.is("num_turns"):
		t.NumTurns, err = readInt(value)
	case key.is("cost_usd"):
		t.CostUSD, err = readFloat(value)
	default:
		err = errors.New("the contract has no such field")
	}
	return err
}

// Decode reads a payload into one of this package's structs, which are views: what they do not name is passed over, and what a payload
// does not have keeps its zero value. A payload with a value of another type gives an error beside what could be read. Payloads of
// records of kind unknown may be read in the same way, for what there is.
func Decode[T any](payload []byte) (T, error) {
	var t T
	err := json.Unmarshal(payload, &t)
	return t, err
}
