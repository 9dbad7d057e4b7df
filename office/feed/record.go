// Package feed has the session events as types: the records that a session's feed holds, the frames that a watcher receives, the
// session object, and what an agent uploads.
//
// A record is an envelope around a payload. The payload of a runtime's message is kept as the runtime wrote it: unknown fields, the order
// of keys and numbers of any size go through unchanged, so payloads are raw JSON here and the types beside them are views for those who
// read. What the schema does not know is of kind unknown and keeps its place. The package depends on nothing but the standard library.
//
// Where to find what:
//
//	Record, AppendRecord, DecodeRecord       the envelope: encode.go, decode.go
//	Classify, Derive                         which kind a payload is, and the fields of the envelope that repeat it
//	Schema                                   the JSON Schema of everything here, which Classify follows
//	MessageReceived and the other payloads   the platform's own events: platform.go
//	ClaudeMessage, CodexNotification         views of what the runtimes say: claude.go, codex.go, codex_jsonl.go
//	Session                                  the session object: object*.go, session.go
//	AppendSnapshot and others, DecodeFrame   the stream of protocol 6: frame.go, frame_decode.go
//	Entry, Upload and others                 the record upload: ingest.go
//
// The formats have their version in their name. claude_jsonl@1, codex_app_server@1 and ellipsis_lifecycle@1 are written today; claude_sdk@1
// and codex_jsonl@1 are read only.
package feed

import (
	"encoding/json"
	"time"
)

// Kind selects the variant of a record: how its payload can be read.
type Kind string

// The kinds of records.
const (
	KindPlatform       Kind = "platform"
	KindClaudeCode     Kind = "claude_code"
	KindCodexAppServer Kind = "codex_app_server"
	KindClaudeSDK      Kind = "claude_sdk"
	KindCodex          Kind = "codex"
	KindUnknown        Kind = "unknown"
)

// The producers of records. A runtime without a format of its own is its own source, and its records are unknown.
const (
	SourceLifecycle  = "lifecycle"
	SourceClaudeCode = "claude_code"
	SourceCodex      = "codex"
	SourceCommand    = "command"
)

// The formats of payloads. New records have the first three; the others are those of older sessions.
const (
	FormatLifecycle      = "ellipsis_lifecycle@1"
	FormatClaudeJSONL    = "claude_jsonl@1"
	FormatCodexAppServer = "codex_app_server@1"
	FormatClaudeSDK      = "claude_sdk@1"
	FormatCodexJSONL     = "codex_jsonl@1"
	// FormatCommand is that of what the command runtime's program says; no schema knows it.
	FormatCommand = "bullpen_command@1"
)

// The record types of the platform's own events.
const (
	TypeMessageReceived   = "message_received"
	TypeMessageDelivered  = "message_delivered"
	TypeMessageRequeued   = "message_requeued"
	TypeEnvironmentPhase  = "environment_phase"
	TypeEnvironmentOutput = "environment_output"
	TypeEnvironmentReady  = "environment_ready"
	TypeTurnStarted       = "turn_started"
	TypeTurnEnded         = "turn_ended"
	TypeSessionClosed     = "session_closed"
)

// Record is one entry of a session's feed.
type Record struct {
	Kind   Kind   `json:"kind"`
	Source string `json:"source"`
	Format string `json:"record_format"`
	// Type identifies the event within its format.
	Type string `json:"record_type"`
	// ID is unique among all records.
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	// TurnID is the turn that the record belongs to, nil for none.
	TurnID *string `json:"turn_id"`
	// MessageID is the message that the record receives, delivers, requeues or echoes, nil for none.
	MessageID *string `json:"session_message_id"`
	// FeedSeq is the record's place in the feed, from 1 without a gap, and the cursor of a watcher that resumes.
	FeedSeq int64 `json:"feed_seq"`
	// Payload is a JSON object.
	Payload json.RawMessage `json:"payload"`
	// Tools are the names of the tools that the record uses.
	Tools  []string    `json:"tools"`
	Tokens *TokensInfo `json:"tokens_info"`
	// Cost in millicents (thousandths of a US cent), nil where the record tells none.
	Cost *int64 `json:"cost"`
	// Duration in milliseconds, nil where the record tells none.
	Duration  *int64    `json:"duration"`
	Model     *string   `json:"model"`
	CreatedAt time.Time `json:"created_at"`
	// Extra is a JSON object of the fields that a record came with and that this package does not know; nil where there are none.
	Extra json.RawMessage `json:"-"`
}

// TokensInfo is what one record tells of usage.
type TokensInfo struct {
	InputTokens         int64   `json:"input_tokens"`
	OutputTokens        int64   `json:"output_tokens"`
	CacheReadTokens     int64   `json:"cache_read_input_tokens"`
	CacheCreationTokens int64   `json:"cache_creation_input_tokens"`
	NumTurns            int64   `json:"num_turns"`
	CostUSD             float64 `json:"cost_usd"`
}

// MaxRecord is the most bytes of one record's payload. An agent puts a note in the place of a larger one.
const MaxRecord = 8 << 20
