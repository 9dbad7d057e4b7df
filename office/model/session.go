package model

// This file has sessions: the conversation of a work item with its runtime, its turns and messages.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// TurnStatus says where a turn is, in the words of the session events.
type TurnStatus string

// The statuses of a turn. The last four are final.
const (
	TurnPending   TurnStatus = "pending"
	TurnRunning   TurnStatus = "running"
	TurnCompleted TurnStatus = "completed"
	TurnFailed    TurnStatus = "failed"
	TurnStopped   TurnStatus = "stopped"
	TurnCancelled TurnStatus = "cancelled"
)

// Final says whether the turn has come to its end.
func (s TurnStatus) Final() bool {
	switch s {
	case TurnCompleted, TurnFailed, TurnStopped, TurnCancelled:
		return true
	}
	return false
}

// Reasons why a turn failed or was cancelled; other statuses have none.
const (
	TurnReasonError       = "error"
	TurnReasonBlocked     = "blocked"
	TurnReasonBudget      = "budget_hit"
	TurnReasonInterrupted = "interrupted"
)

// Session is the conversation of one work item with its runtime. It is made with its item and outlives it; an item that runs again after
// its session was closed, or whose store was lost, gets another one, whose Parent is the one before.
type Session struct {
	// ID has the item's id in it; see SessionID.
	ID     string
	ItemID string
	// Namespace, Team and Name are the item's; NamespaceUID is the UID of the namespace in which the item was made, empty where nobody
	// knows it.
	Namespace    string
	NamespaceUID string
	Team         string
	Name         string
	ParentID     string
	// Source says where the session came from, in the words of the session events: api, web, cli, mention, cron, react or code_review.
	Source string
	// Person is the handle of who has the item, empty while nobody does.
	Person string
	// State is the item's.
	State string
	// Interactive says that the session stays open after its first turn.
	Interactive bool
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// ClosedAt is when the conversation ended for good, zero while it is open.
	ClosedAt time.Time
	// Turns counts the turns that were made, and so numbers the next one.
	Turns int
	// Turn runs, or is the last one that did; Pending waits for its round. Each is nil where there is none.
	Turn    *Turn
	Pending *Turn
	// Past are turns before Turn, the latest last, at most MaxPast: records of them may still come.
	Past []Turn
	// Usage of the session's rounds, and the model that its tokens went to. UsageBefore is what the item had used before the session began.
	Usage       Usage
	UsageBefore Usage
	Model       string
	// Closing says that a message was taken after which no other comes: the session closes with the turn that answers it.
	Closing bool
	// Frozen is the hash of what the session was started with (store.Reader.Frozen); empty until its first round was accepted.
	Frozen string
	// Git is what the agent last found in its repositories.
	Git *feed.Git
	// Summary is the last progress, and when it was told.
	Summary   string
	SummaryAt time.Time
}

// MaxPast is how many turns a session remembers beyond the one that is shown.
const MaxPast = 16

// OfRound gives the turn of a round, nil where the session does not remember it.
func (s *Session) OfRound(round int) *Turn {
	if s.Turn != nil && s.Turn.Round == round {
		return s.Turn
	}
	for i := range s.Past {
		if s.Past[i].Round == round {
			return &s.Past[i]
		}
	}
	return nil
}

// LastRun gives the last turn that a round ran, nil where there is none: Turn may be one that ended before it got a round.
func (s *Session) LastRun() *Turn {
	switch n := len(s.Past); {
	case s.Turn != nil && s.Turn.Round > 0:
		return s.Turn
	case n > 0:
		return &s.Past[n-1]
	}
	return nil
}

// Turn is the messages that one round answers.
type Turn struct {
	ID    string
	Index int
	// Round is the number of the round that runs or ran it; 0 while it waits.
	Round int
	// Messages are the ids of its messages, in order.
	Messages  []string
	Status    TurnStatus
	Reason    string
	Detail    string
	CreatedAt time.Time
	StartedAt time.Time
	EndedAt   time.Time
	// Told is the end of the turn as the agent told it in the feed; nil until then.
	Told *TurnEnd
	// StoppedAt is when a human asked to stop it, StoppedBy who; zero and empty where nobody did.
	StoppedAt time.Time
	StoppedBy string
	Usage     Usage
	Model     string
}

// TurnEnd is how a turn ended.
type TurnEnd struct {
	Status TurnStatus
	Reason string
	Detail string
	At     time.Time
}

// Message is something said to a session: what its item asks, feedback, an answer.
type Message struct {
	SessionID string
	ID        string
	TurnID    string
	Body      string
	// Author is a name for people, empty where nobody knows it; AttributionType and AttributionID name the sender at its service
	// (github_user, linear_user, slack_user or api_key), and are empty for others.
	Author          string
	AttributionType string
	AttributionID   string
	// ClosesSession says that no message comes after it.
	ClosesSession bool
	CreatedAt     time.Time
}

// Emitted is a record that the office writes into a feed itself. It is kept with the change that it tells of, and appended to the feed
// once that is durable; N orders them, Key makes the repeat of an append harmless.
type Emitted struct {
	N      int64
	Key    string
	Ref    feed.SessionRef
	Record feed.Record
}

// SessionID is the id of an item's n-th session (from 1) in a life of the store.
func SessionID(life, itemID string, n int) string { return fmt.Sprintf("s%d-%s-%s", n, life, itemID) }

// ItemOfSession takes the item's id and the number out of a session's id; ok is false where it is none.
func ItemOfSession(id string) (itemID string, n int, ok bool) {
	parts := strings.SplitN(id, "-", 3)
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "s") || parts[2] == "" {
		return "", 0, false
	}
	n, err := strconv.Atoi(parts[0][1:])
	return parts[2], n, err == nil && n > 0
}

// TurnID is the id of a session's turn.
func TurnID(sessionID string, index int) string { return fmt.Sprintf("%s-t%d", sessionID, index) }

// FeedbackMessageID is the id of the message that a feedback is in a session.
func FeedbackMessageID(sessionID string, n int64) string { return fmt.Sprintf("%s-f%d", sessionID, n) }

// AskedMessageID is the id of a message that says what the item asks: the n-th time that it starts over, from 0.
func AskedMessageID(sessionID string, n int) string { return fmt.Sprintf("%s-m%d", sessionID, n) }

// FeedbackOfMessage gives the number of the feedback that a message is; ok is false where it is none.
func FeedbackOfMessage(id string) (n int64, ok bool) {
	at := strings.LastIndex(id, "-f")
	if at < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(id[at+2:], 10, 64)
	return n, err == nil
}

// OfferID is the id of the frame that offers a round: agents name the round by it when they upload records.
func OfferID(itemID string, round int) string { return fmt.Sprintf("offer-%s-%d", itemID, round) }

// RoundOfOffer takes the item's id and the round's number out of the id of an offer's frame.
func RoundOfOffer(id string) (itemID string, round int, ok bool) {
	rest, found := strings.CutPrefix(id, "offer-")
	at := strings.LastIndex(rest, "-")
	if !found || at <= 0 {
		return "", 0, false
	}
	round, err := strconv.Atoi(rest[at+1:])
	return rest[:at], round, err == nil && round > 0
}

// SessionFilter chooses sessions. Empty fields choose all.
type SessionFilter struct {
	Namespace string
	Team      string
	Person    string
	// Item is the name or the id of a work item.
	Item string
	// Open chooses open sessions only, Closed closed ones only.
	Open, Closed bool
	// State is a state of the item.
	State string
	// Since and Until bound CreatedAt: at or after, before.
	Since, Until time.Time
	// BeforeAt and BeforeID are the cursor: the session after which the list goes on. The latest made come first.
	BeforeAt time.Time
	BeforeID string
}
