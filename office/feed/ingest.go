package feed

// This file has the frames of the record upload, GET /v1/sessions/{id}/ingest: how an agent's spool reaches the office.
//
// The agent dials with its token as bearer token and with the query parameters person (its handle), spool (an id that the agent made for the
// spool when it began; a home that was lost makes another) and offer (the id of the offer whose round the spool is of). {id} is the id of the work item, or of one of its sessions.
// The office answers with one Ready, which says how far it has this spool. Then the agent sends Upload frames with entries in the order
// of their sequence, without a gap, beginning at or before the next one that the office needs; what the office has it skips. It answers
// with Stored once they are durable. Entries are of the agent's own rounds, and a second start or end of a turn is left out. Beside them go Delta frames, which are never stored or acknowledged. The office answers nothing else;
// either side may close, and the agent begins again from Ready.

import (
	"encoding/json"
	"time"
)

// The types of the frames of the record upload.
const (
	IngestReady  = "ready"
	IngestUpload = "upload"
	IngestStored = "stored"
	IngestDelta  = "delta"
)

// Ready is the office's first frame.
type Ready struct {
	Type string `json:"type"`
	// SessionID is the session that the records go to.
	SessionID string `json:"session_id"`
	// Seq is the last sequence of this spool that is durable, 0 for none.
	Seq int64 `json:"seq"`
}

// Upload carries entries of a spool.
type Upload struct {
	Type    string  `json:"type"`
	Entries []Entry `json:"entries"`
}

// Stored says that the entries up to Seq are durable.
type Stored struct {
	Type string `json:"type"`
	Seq  int64  `json:"seq"`
}

// Entry is one record as an agent uploads it. The office fills in what only it knows: the session, the place in the feed, the turn, and
// in the payloads of turn_started, message_delivered and turn_ended the ids of turn and messages, which the agent leaves out. The other
// fields of the envelope it derives from the payload.
type Entry struct {
	// Seq numbers the entries of a spool from 1 without a gap.
	Seq int64 `json:"seq"`
	// Offer is the id of the offer frame that the round was accepted from: whose turn the record belongs to.
	Offer string `json:"offer"`
	// At is when it happened.
	At     time.Time `json:"at"`
	Source string    `json:"source"`
	Format string    `json:"record_format"`
	Type   string    `json:"record_type"`
	// Echo says which message a native user echo repeats: 0 is what the item asks (the first entry of the offer's journal), n the n-th
	// feedback of the offer, counted from 1; nil where it repeats none.
	Echo *int `json:"echo,omitempty"`
	// Payload is a JSON object of at most MaxRecord bytes.
	Payload json.RawMessage `json:"payload"`
}

// LiveDelta is a piece of what the runtime is writing, for those who watch now.
type LiveDelta struct {
	Type  string `json:"type"`
	Offer string `json:"offer"`
	Delta Delta  `json:"delta"`
}

// FormatState is the format of entries that are not records: the office takes what they say about the session, and gives them no place in
// the feed. Their types are StateGit (the payload is a Git).
const (
	FormatState = "bullpen_state@1"
	StateGit    = "git"
)

// The kinds of deltas. Watchers ignore others.
const (
	DeltaText     = "text"
	DeltaThinking = "thinking"
)

// Delta is a piece of a live answer. Of kind text it is a fragment to append; of kind thinking the first line of the readable summary's
// current section, at most MaxThinking characters, which replaces the one before, and clears it where it is empty.
type Delta struct {
	Kind string `json:"kind"`
	// Text is nil where only the count of tokens changed.
	Text *string `json:"text"`
	// OutputTokens that the current answer has so far, nil where they are not known.
	OutputTokens *int64 `json:"output_tokens"`
}

// MaxThinking is the most characters of a thinking delta.
const MaxThinking = 512
