package feed

// This file writes records, and what of JSON the frames need. It never escapes what JSON does not ask for, and copies payloads as they are:
// the standard encoder would escape <, > and & in them and remove white space.

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendRecord writes the record as one JSON object. All fields of the envelope are there, in the contract's order, and after them those of
// Extra; created_at is in UTC. The payload's bytes are copied as they are: who takes payloads from outside checks them with CheckPayload
// first. An empty payload is written as {}.
func AppendRecord(dst []byte, r *Record) []byte {
	dst = append(dst, `{"kind":`...)
	dst = appendString(dst, string(r.Kind))
	dst = append(dst, `,"source":`...)
	dst = appendString(dst, r.Source)
	dst = append(dst, `,"record_format":`...)
	dst = appendString(dst, r.Format)
	dst = append(dst, `,"record_type":`...)
	dst = appendString(dst, r.Type)
	dst = append(dst, `,"id":`...)
	dst = appendString(dst, r.ID)
	dst = append(dst, `,"session_id":`...)
	dst = appendString(dst, r.SessionID)
	dst = append(dst, `,"turn_id":`...)
	dst = appendNullable(dst, r.TurnID)
	dst = append(dst, `,"session_message_id":`...)
	dst = appendNullable(dst, r.MessageID)
	dst = append(dst, `,"feed_seq":`...)
	dst = strconv.AppendInt(dst, r.FeedSeq, 10)
	dst = append(dst, `,"payload":`...)
	dst = appendPayload(dst, r.Payload)
	dst = append(dst, `,"tools":`...)
	dst = appendStrings(dst, r.Tools)
	dst = append(dst, `,"tokens_info":`...)
	dst = appendTokens(dst, r.Tokens)
	dst = append(dst, `,"cost":`...)
	dst = appendInt(dst, r.Cost)
	dst = append(dst, `,"duration":`...)
	dst = appendInt(dst, r.Duration)
	dst = append(dst, `,"model":`...)
	dst = appendNullable(dst, r.Model)
	dst = append(dst, `,"created_at":`...)
	dst = appendTime(dst, r.CreatedAt)
	if extra := bytes.TrimSpace(r.Extra); len(extra) > 2 {
		if members := bytes.TrimSpace(extra[1 : len(extra)-1]); len(members) > 0 {
			dst = append(append(dst, ','), members...)
		}
	}
	return append(dst, '}')
}

// MarshalJSON is AppendRecord, for records inside of other values. The standard encoder that calls it rewrites the payload's white space
// and escapes: use AppendRecord where the bytes count.
func (r Record) MarshalJSON() ([]byte, error) { return AppendRecord(nil, &r), nil }

func appendPayload(dst []byte, payload json.RawMessage) []byte {
	if len(payload) == 0 {
		return append(dst, "{}"...)
	}
	return append(dst, payload...)
}

func appendTokens(dst []byte, t *TokensInfo) []byte {
	if t == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"input_tokens":`...)
	dst = strconv.AppendInt(dst, t.InputTokens, 10)
	dst = append(dst, `,"output_tokens":`...)
	dst = strconv.AppendInt(dst, t.OutputTokens, 10)
	dst = append(dst, `,"cache_read_input_tokens":`...)
	dst = strconv.AppendInt(dst, t.CacheReadTokens, 10)
	dst = append(dst, `,"cache_creation_input_tokens":`...)
	dst = strconv.AppendInt(dst, t.CacheCreationTokens, 10)
	dst = append(dst, `,"num_turns":`...)
	dst = strconv.AppendInt(dst, t.NumTurns, 10)
	dst = append(dst, `,"cost_usd":`...)
	dst = appendFloat(dst, t.CostUSD)
	return append(dst, '}')
}

// appendFloat writes a number so that reading it gives the same one. What is no number is written as 0.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, '0')
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func appendInt(dst []byte, n *int64) []byte {
	if n == nil {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, *n, 10)
}

func appendNullable(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	return appendString(dst, *s)
}

func appendStrings(dst []byte, list []string) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}

// appendTime writes a time in UTC, with a fraction of a second only where there is one.
func appendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}

// appendString writes a string, escaping only what JSON demands. What is no UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// marshal is the standard encoder without its escapes for HTML.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// MarshalPayload encodes a value as the payload of a record, without the standard encoder's escapes for HTML.
func MarshalPayload(v any) (json.RawMessage, error) { return marshal(v) }

// marshalTyped encodes a struct as an object whose first member is its type.
func marshalTyped(typ string, v any) ([]byte, error) {
	data, err := marshal(v)
	if err != nil {
		return nil, err
	}
	out := appendString([]byte(`{"type":`), typ)
	if len(data) > len("{}") {
		out = append(out, ',')
	}
	return append(out, data[1:]...), nil
}
