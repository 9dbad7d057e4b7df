package feed

// This file has the payloads of the platform's own events. Those who write such records marshal these structs, those who read them use
// Decode. All payloads may have more fields than these.
//
//	message_received     a message entered the session, and the turn that answers it was made
//	environment_phase    a phase of the environment's preparation started, completed or failed
//	environment_output   lines that a step of it printed
//	environment_ready    the environment is prepared, the runtime starts
//	turn_started         the runtime began on the turn's messages
//	message_delivered    the runtime began on a message
//	turn_ended           the turn reached its final status
//	message_requeued     the turn ended without an answer to a message, which waits for another turn
//	session_closed       no message comes any more; the payload is empty

// MessageReceived is the payload of message_received.
type MessageReceived struct {
	MessageID string `json:"message_id"`
	// TurnID is the turn that will answer the message.
	TurnID *string `json:"turn_id"`
	Body   string  `json:"body"`
	// Author is a name for people, nil where nobody knows it.
	Author *string `json:"author"`
	// SenderAttributionType and SenderAttributionID name the sender at its service, as in Attribution; nil for others.
	SenderAttributionType *string `json:"sender_attribution_type"`
	SenderAttributionID   *string `json:"sender_attribution_id"`
	// ClosesSession says that no message comes after this one.
	ClosesSession bool `json:"closes_session"`
}

// MessageDelivered is the payload of message_delivered.
type MessageDelivered struct {
	MessageID string `json:"message_id"`
	TurnID    string `json:"turn_id"`
}

// MessageRequeued is the payload of message_requeued. TurnID is the turn that ended; the envelope carries the new one.
type MessageRequeued struct {
	MessageID string `json:"message_id"`
	TurnID    string `json:"turn_id"`
	// RequeuedTurnID is the turn that the message waits for now.
	RequeuedTurnID *string `json:"requeued_turn_id"`
}

// The phases of an environment's preparation. Readers show others as they are.
const (
	PhaseImage    = "image"
	PhaseClone    = "clone"
	PhaseSetup    = "setup"
	PhaseSnapshot = "snapshot"
	PhaseRestore  = "restore"
	PhaseHooks    = "hooks"
)

// The statuses of a phase.
const (
	PhaseStarted   = "started"
	PhaseCompleted = "completed"
	PhaseFailed    = "failed"
)

// The steps of the phases setup and hooks. A step of clone is the repository's name.
const (
	StepBuildBase     = "build_base"
	StepAfterCheckout = "after_checkout"
	StepBeforeStart   = "before_start"
)

// EnvironmentPhase is the payload of environment_phase.
type EnvironmentPhase struct {
	Phase  string  `json:"phase"`
	Status string  `json:"status"`
	Step   *string `json:"step"`
	// DurationMS is how long the phase took, in milliseconds, nil where it only started.
	DurationMS *int64 `json:"duration_ms"`
	// Detail says more about it, for people and programs, nil where there is nothing.
	Detail map[string]any `json:"detail"`
}

// The streams of a step's output.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// EnvironmentOutput is the payload of environment_output: some lines of a step's output.
type EnvironmentOutput struct {
	Phase  string  `json:"phase"`
	Step   *string `json:"step"`
	Stream string  `json:"stream"`
	// Chunk numbers the payloads of one step from 0.
	Chunk int64        `json:"chunk"`
	Lines List[string] `json:"lines"`
}

// EnvironmentReady is the payload of environment_ready.
type EnvironmentReady struct {
	Repositories List[string] `json:"repositories"`
	// DurationMS is how long the whole preparation took, in milliseconds.
	DurationMS *int64 `json:"duration_ms"`
}

// TurnStarted is the payload of turn_started.
type TurnStarted struct {
	TurnID string `json:"turn_id"`
	// TurnIndex counts the turns of the session from 0.
	TurnIndex int64 `json:"turn_index"`
}

// TurnEnded is the payload of turn_ended. Status, reason and detail are those of the turn in the session object.
type TurnEnded struct {
	TurnID    string  `json:"turn_id"`
	TurnIndex int64   `json:"turn_index"`
	Status    string  `json:"status"`
	Reason    *string `json:"reason"`
	Detail    *string `json:"detail"`
	// DurationMS is how long the turn ran, in milliseconds, nil where it never started.
	DurationMS *int64 `json:"duration_ms"`
}

// SessionClosed is the payload of session_closed.
type SessionClosed struct{}
