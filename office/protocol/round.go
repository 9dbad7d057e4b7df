package protocol

// This file holds what an agent says during one round of a work item, from
// taking it to handing it back.

// WorkItemState is where a work item stands.
type WorkItemState string

// The states of a work item.
const (
	// StateQueued waits for its person.
	StateQueued WorkItemState = "queued"
	// StateActive is accepted and running.
	StateActive WorkItemState = "active"
	// StateWaiting goes on when an answer, feedback or a move comes.
	StateWaiting WorkItemState = "waiting"
	// StateBlocked needs a human.
	StateBlocked WorkItemState = "blocked"
	// StateDone is finished.
	StateDone WorkItemState = "done"
	// StateCanceled is given up.
	StateCanceled WorkItemState = "canceled"
)

// HandbackStatus is how a round ended.
type HandbackStatus string

// The ways a round ends.
const (
	// HandbackDone finished with something to look at.
	HandbackDone HandbackStatus = "done"
	// HandbackWaiting cannot go on before something else happens.
	HandbackWaiting HandbackStatus = "waiting"
	// HandbackBlocked is stuck and needs a human.
	HandbackBlocked HandbackStatus = "blocked"
	// HandbackSilent finished with nothing to pass on; the ticket goes back to
	// where the round found it.
	HandbackSilent HandbackStatus = "silent"
	// HandbackInterrupted ended early because the agent shuts down. The item is
	// the next to be offered, with its session.
	HandbackInterrupted HandbackStatus = "interrupted"
)

func (HandbackStatus) values() []string {
	return []string{
		string(HandbackDone), string(HandbackWaiting), string(HandbackBlocked),
		string(HandbackSilent), string(HandbackInterrupted),
	}
}

// Accept takes an offered item. Sent by the agent; answered by [Ack] or
// [Error]. To accept one's own running item again is harmless.
type Accept struct {
	// WorkItemID is the item that was offered.
	WorkItemID string `json:"workItemId"`
	// Runtime is the program that will run the round, such as claude.
	Runtime string `json:"runtime"`
	// Model is the model as the team config names it, perhaps an alias; empty
	// where the runtime chooses.
	Model string `json:"model"`
}

// Decline puts an offered item back into the queue. Sent by the agent; answered
// by [Ack] or [Error].
type Decline struct {
	// WorkItemID is the item that was offered.
	WorkItemID string `json:"workItemId"`
	// Reason is why the agent cannot take the item now.
	Reason string `json:"reason"`
}

// Progress is one line about where the run stands, for people to see. Sent by
// the agent; answered by [Ack] or [Error].
type Progress struct {
	// WorkItemID is the item that is running.
	WorkItemID string `json:"workItemId"`
	// Text is the line. It replaces the one before.
	Text string `json:"text"`
}

// Session stores which session of the runtime works on the item, so that the
// item's next round resumes it. Sent by the agent; answered by [Ack] or
// [Error]. An item has one session and shares it with no other.
type Session struct {
	// WorkItemID is the item that is running.
	WorkItemID string `json:"workItemId"`
	// SessionID is the runtime's own name of the session.
	SessionID string `json:"sessionId"`
	// Model is the full model id, when the runtime tells what it really uses.
	Model string `json:"model,omitzero"`
}

// Usage reports how full the usage windows of the person's subscription are.
// Sent by the agent; answered by [Ack] or [Error]. It replaces the person's
// earlier report, and counts for everyone on the same subscription.
type Usage struct {
	// Windows are all that the runtime knows of.
	Windows []UsageWindow `json:"windows"`
}

// UsageWindow is one limit of the model's provider.
type UsageWindow struct {
	// Name is the limit's name, such as five_hour.
	Name string `json:"name"`
	// Utilization is the part that is used: 0 none, 1 all of it.
	Utilization float64 `json:"utilization" wire:"min=0"`
	// ResetsAt is when the window starts over.
	ResetsAt string `json:"resetsAt,omitzero" wire:"time"`
}

// Journal adds one entry to the item's journal, which the item's later rounds
// read. Sent by the agent; answered by [Ack] or [Error].
type Journal struct {
	// WorkItemID is the item that is running.
	WorkItemID string `json:"workItemId"`
	// Text is the entry.
	Text string `json:"text"`
}

// Handback ends a round. Sent by the agent; answered by [Ack] or [Error]. It
// may be repeated: the first one counts, and its repeats are acknowledged.
type Handback struct {
	// WorkItemID is the item whose round ends.
	WorkItemID string `json:"workItemId"`
	// Summary tells what was done and decided, and what is open.
	Summary string `json:"summary"`
	// Links are the pull requests, documents and tickets the round touched.
	Links []Link `json:"links"`
	// Status is how the round ended.
	Status HandbackStatus `json:"status"`
	// ToReview is, of a done round, what the agent found that is ready to look
	// at, or that needs no look. Without it a done round with nothing to review
	// counts as blocked.
	ToReview []string `json:"toReview,omitzero"`
	// Usage is what the round's sessions used; more than one if a session was
	// lost and started anew.
	Usage []SessionUsage `json:"usage,omitzero"`
}

// Fail ends a round that could not be worked. Sent by the agent; answered by
// [Ack] or [Error].
type Fail struct {
	// WorkItemID is the item whose round ends.
	WorkItemID string `json:"workItemId"`
	// Reason is a sentence for the person who will look into it.
	Reason string `json:"reason"`
	// Usage is as in [Handback].
	Usage []SessionUsage `json:"usage,omitzero"`
}

// SessionUsage is what one session of a runtime used since it began, earlier
// rounds included. The office counts what is new since the last report.
type SessionUsage struct {
	// Session is the runtime's own name of the session.
	Session string `json:"session"`
	// Models has the running totals by model id.
	Models map[string]ModelUsage `json:"models"`
}

// ModelUsage is what one model used in a session. The four counts are disjoint
// and add up to all tokens. A count that is absent is 0. Where Claude Code has
// a name of its own for a field that name is read too, and never written.
type ModelUsage struct {
	// InputTokens is how many the model read that were in no cache.
	InputTokens int64 `json:"inputTokens" wire:"optional,min=0"`
	// OutputTokens is how many the model wrote.
	OutputTokens int64 `json:"outputTokens" wire:"optional,min=0"`
	// CacheReadTokens is how many were read from the provider's cache.
	CacheReadTokens int64 `json:"cacheReadTokens" wire:"optional,min=0,alias=cacheReadInputTokens"`
	// CacheCreationTokens is how many were put into the provider's cache.
	CacheCreationTokens int64 `json:"cacheCreationTokens" wire:"optional,min=0,alias=cacheCreationInputTokens"`
	// CostUSD is the cost at list prices in US dollars; absent is unknown.
	CostUSD *float64 `json:"costUsd,omitzero" wire:"min=0,alias=costUSD"`
}

// Type returns TypeAccept.
func (Accept) Type() Type { return TypeAccept }

// Type returns TypeDecline.
func (Decline) Type() Type { return TypeDecline }

// Type returns TypeProgress.
func (Progress) Type() Type { return TypeProgress }

// Type returns TypeSession.
func (Session) Type() Type { return TypeSession }

// Type returns TypeUsage.
func (Usage) Type() Type { return TypeUsage }

// Type returns TypeJournal.
func (Journal) Type() Type { return TypeJournal }

// Type returns TypeHandback.
func (Handback) Type() Type { return TypeHandback }

// Type returns TypeFail.
func (Fail) Type() Type { return TypeFail }
