package feed

// This file reads the frames of the stream, for watchers.

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Frame is one message of the stream: a Snapshot, RecordsAppend, SessionFrame, DeltaFrame, Heartbeat, Done, ErrorFrame or UnknownFrame.
type Frame interface {
	// FrameType is the frame's type on the wire.
	FrameType() string
}

// Snapshot is the first frame.
type Snapshot struct {
	Protocol int `json:"protocol"`
	// EarliestFeedSeq is the first place that is kept, nil where the session has no record.
	EarliestFeedSeq *int64         `json:"earliest_feed_seq"`
	Session         Session        `json:"session"`
	Messages        []InboxMessage `json:"messages"`
}

// RecordsAppend carries records in the order of their places.
type RecordsAppend struct {
	Records []Record
	// Raw has each record as it came.
	Raw []json.RawMessage
}

// SessionFrame says what the session object is now.
type SessionFrame struct {
	Session Session `json:"session"`
}

// DeltaFrame is a piece of what the runtime is writing. TurnID is nil where nobody knows it.
type DeltaFrame struct {
	TurnID *string `json:"turn_id"`
	Delta
}

// Heartbeat says that the stream is alive.
type Heartbeat struct {
	TS time.Time `json:"ts"`
}

// Done says that the conversation is over and everything was sent.
type Done struct{}

// ErrorFrame says why the server is about to close the stream.
type ErrorFrame struct {
	Message string `json:"message"`
}

// UnknownFrame is a frame of a type that this package does not know. Watchers ignore it.
type UnknownFrame struct {
	Type string
	Raw  json.RawMessage
}

// FrameType of the frame.
func (Snapshot) FrameType() string { return FrameSnapshot }

// FrameType of the frame.
func (RecordsAppend) FrameType() string { return FrameRecordsAppend }

// FrameType of the frame.
func (SessionFrame) FrameType() string { return FrameSession }

// FrameType of the frame.
func (DeltaFrame) FrameType() string { return FrameDelta }

// FrameType of the frame.
func (Heartbeat) FrameType() string { return FrameHeartbeat }

// FrameType of the frame.
func (Done) FrameType() string { return FrameDone }

// FrameType of the frame.
func (ErrorFrame) FrameType() string { return FrameError }

// FrameType of the frame, as it came.
func (u UnknownFrame) FrameType() string { return u.Type }

// DecodeFrame reads a frame. One of a type that it does not know is an UnknownFrame and no error. Records and what is raw are parts of
// data: who uses data again copies them first.
func DecodeFrame(data []byte) (Frame, error) {
	if !whole(data) {
		return nil, errors.New("the frame is no valid JSON")
	}
	typ := str(pick(data, "type")[0])
	switch typ {
	case FrameSnapshot:
		return readFrame[Snapshot](data)
	case FrameRecordsAppend:
		return readRecordsAppend(data)
	case FrameSession:
		return readFrame[SessionFrame](data)
	case FrameDelta:
		return readFrame[DeltaFrame](data)
	case FrameHeartbeat:
		return readFrame[Heartbeat](data)
	case FrameDone:
		return Done{}, nil
	case FrameError:
		return readFrame[ErrorFrame](data)
	case "":
		return nil, errors.New("the frame is no object with a type")
	}
	return UnknownFrame{typ, data}, nil
}

func readFrame[T Frame](data []byte) (Frame, error) {
	var frame T
	if err := json.Unmarshal(data, &frame); err != nil {
		return nil, fmt.Errorf("a frame of type %s: %w", frame.FrameType(), err)
	}
	return frame, nil
}

func readRecordsAppend(data []byte) (Frame, error) {
	list := pick(data, "records")[0]
	if len(list) == 0 || list[0] != '[' {
		return nil, errors.New("a frame of type records_append has no array of records")
	}
	var frame RecordsAppend
	e := elements{data: list}
	for e.next() {
		start := e.pos
		if !e.skip() {
			break
		}
		raw := list[start:e.pos:e.pos]
		record, err := DecodeRecord(raw)
		if err != nil {
			return nil, fmt.Errorf("record %d of a frame of type records_append: %w", len(frame.Records)+1, err)
		}
		frame.Records = append(frame.Records, record)
		frame.Raw = append(frame.Raw, raw)
	}
	return frame, nil
}
