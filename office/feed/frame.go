package feed

// This file has the frames of the stream, GET /v1/sessions/{id}/stream, as those who write them see them.
//
// A watcher dials with protocol=6 and, to resume, after_seq=N: the last place that it has. The server sends one frame per WebSocket text
// message. The first is snapshot, with the session as it is now; records that are kept follow in records_append frames, and then, as they
// come, records_append, session and delta. Only records_append moves the watcher's cursor, to the feed_seq of its last record. A cursor
// before earliest_feed_seq - 1 tells the watcher that what came between is no longer kept. A heartbeat follows 20 seconds of quiet. done
// says that the conversation is over and everything was sent, and the server closes normally; error says why it closes abnormally.

import (
	"strconv"
	"time"
)

// StreamProtocol is the version of the stream that this package speaks.
const StreamProtocol = 6

// HeartbeatAfter is how long a stream is quiet before a heartbeat.
const HeartbeatAfter = 20 * time.Second

// The types of the stream's frames. Watchers ignore others.
const (
	FrameSnapshot      = "snapshot"
	FrameRecordsAppend = "records_append"
	FrameSession       = "session"
	FrameDelta         = "delta"
	FrameHeartbeat     = "heartbeat"
	FrameDone          = "done"
	FrameError         = "error"
)

// The codes with which the server closes a stream. After those that are terminal a watcher that dials again in the same way gets the same
// answer; after the others it resumes from its cursor, later each time that it fails.
const (
	// CloseNormal follows done: terminal, the session is over.
	CloseNormal = 1000
	// CloseUnknownProtocol: terminal, the server does not speak the version that was asked for. The reason lists those that it does.
	CloseUnknownProtocol = 1002
	// CloseNoProtocol: terminal, the watcher named no version.
	CloseNoProtocol = 1003
	// CloseNotAuthorized: terminal until the user's credentials or permissions change.
	CloseNotAuthorized = 1008
	// CloseServerError: reconnect.
	CloseServerError = 1011
	// CloseOverCapacity: reconnect, but not at once. A watcher that read too slowly gets it too.
	CloseOverCapacity = 1013
)

// CloseIsTerminal says that a watcher whose stream was closed with the code does not dial again by itself.
func CloseIsTerminal(code int) bool {
	switch code {
	case CloseNormal, CloseUnknownProtocol, CloseNoProtocol, CloseNotAuthorized:
		return true
	}
	return false
}

// MarshalSession encodes the session object, for AppendSnapshot and AppendSession, and to see whether it changed.
func MarshalSession(s *Session) ([]byte, error) { return marshal(s) }

// AppendSnapshot writes a snapshot frame. earliest is the first place that is kept, 0 where the session has no record; session is an
// encoded session object; messages are those that no turn has begun with.
func AppendSnapshot(dst []byte, earliest int64, session []byte, messages []InboxMessage) ([]byte, error) {
	inbox, err := marshal(List[InboxMessage](messages))
	if err != nil {
		return dst, err
	}
	dst = append(dst, `{"type":"snapshot","protocol":`...)
	dst = strconv.AppendInt(dst, StreamProtocol, 10)
	dst = append(dst, `,"earliest_feed_seq":`...)
	if earliest > 0 {
		dst = strconv.AppendInt(dst, earliest, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"session":`...)
	dst = append(dst, session...)
	dst = append(dst, `,"messages":`...)
	dst = append(dst, inbox...)
	return append(dst, '}'), nil
}

// AppendRecords writes a records_append frame of encoded records, which are in order.
func AppendRecords(dst []byte, records [][]byte) []byte {
	dst = append(dst, `{"type":"records_append","records":[`...)
	for i, record := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, record...)
	}
	return append(dst, "]}"...)
}

// AppendSession writes a session frame of an encoded session object.
func AppendSession(dst, session []byte) []byte {
	dst = append(dst, `{"type":"session","session":`...)
	dst = append(dst, session...)
	return append(dst, '}')
}

// AppendDelta writes a delta frame. turn is empty where nobody knows it. The text of a thinking delta is cut.
func AppendDelta(dst []byte, turn string, d Delta) []byte {
	dst = append(dst, `{"type":"delta","turn_id":`...)
	if turn == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendString(dst, turn)
	}
	dst = append(dst, `,"kind":`...)
	dst = appendString(dst, d.Kind)
	dst = append(dst, `,"text":`...)
	switch {
	case d.Text == nil:
		dst = append(dst, "null"...)
	case d.Kind == DeltaThinking:
		dst = appendString(dst, CutThinking(*d.Text))
	default:
		dst = appendString(dst, *d.Text)
	}
	dst = append(dst, `,"output_tokens":`...)
	return append(appendInt(dst, d.OutputTokens), '}')
}

// AppendHeartbeat writes a heartbeat frame with the server's time.
func AppendHeartbeat(dst []byte, now time.Time) []byte {
	dst = append(dst, `{"type":"heartbeat","ts":`...)
	dst = appendTime(dst, now)
	return append(dst, '}')
}

// AppendDone writes a done frame.
func AppendDone(dst []byte) []byte { return append(dst, `{"type":"done"}`...) }

// AppendError writes an error frame with what to tell people.
func AppendError(dst []byte, message string) []byte {
	dst = append(dst, `{"type":"error","message":`...)
	dst = appendString(dst, message)
	return append(dst, '}')
}

// CutThinking cuts the text of a thinking delta to its first line, and that to MaxThinking characters. Line breaks before the first
// character that can be seen do not count, so that a text is empty only if it says nothing.
func CutThinking(text string) string {
	start := 0
	for start < len(text) && (text[start] == '\n' || text[start] == '\r') {
		start++
	}
	text = text[start:]
	n := 0
	for i, r := range text {
		if r == '\n' || r == '\r' || n == MaxThinking {
			return text[:i]
		}
		n++
	}
	return text
}
