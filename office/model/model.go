// Package model holds what the office knows, as plain data: teams, people, work items, rounds, journals and usage.
//
// It is the vocabulary that the store keeps, dispatch decides on and the controllers project into status. It has no
// behaviour beyond arithmetic, no clock and no I/O.
package model

import (
	"cmp"
	"fmt"
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// TeamKey names a team: handles are unique within it.
type TeamKey struct {
	Namespace string
	Name      string
}

// String gives the key as Kubernetes writes it, namespace/name.
func (k TeamKey) String() string { return k.Namespace + "/" + k.Name }

// PersonKey names a person within a team by handle.
type PersonKey struct {
	Team   TeamKey
	Handle string
}

// String gives namespace/team/handle.
func (k PersonKey) String() string { return k.Team.String() + "/" + k.Handle }

// Team is a team as its user declared it, with every default filled in.
type Team struct {
	// UID is the UID of the Team object, NamespaceUID that of its namespace; empty where it could not be read.
	UID          string
	NamespaceUID string
	Key          TeamKey
	// Config is what agents are told in welcome; its people are filled in by the office from the people it knows.
	Config protocol.TeamConfig
	// Suspended stops new offers; rounds that run go on.
	Suspended bool
	Policy    Policy
	Usage     UsagePolicy
	// Retention bounds the records of closed sessions.
	Retention Retention
	// EventsTokenHash is the SHA-256 of the token that events from outside come with; zero takes none.
	EventsTokenHash [32]byte
}

// Retention bounds what is kept of closed sessions; zero values do not.
type Retention struct {
	MaxAge   time.Duration
	MaxBytes int64
}

// Policy says how rounds of a team are run.
type Policy struct {
	// Heartbeat is how often a working agent shows life.
	Heartbeat time.Duration
	// Attempts is how many times an item may fail before it is blocked, where the item does not say.
	Attempts int
	// MaxLostRounds is how many rounds of one item may be lost without a hand-back before it is blocked.
	MaxLostRounds int
	// LostAfter is how long a person may be away in the middle of a round before the round counts as lost.
	LostAfter time.Duration
	// BackoffInitial and BackoffMax bound the wait after a failed or declined round; it doubles each time.
	BackoffInitial time.Duration
	BackoffMax     time.Duration
}

// UsagePolicy says when usage holds work back.
type UsagePolicy struct {
	TrackCost bool
	// PauseAt is the fraction of a usage window at which a person pauses until its reset; 0 never pauses.
	PauseAt float64
	Budgets []Budget
	// Prices are the team's own list prices; they go before the built-in ones.
	Prices []Price
}

// Price is what a million tokens of a model cost, in millionths of a US dollar.
type Price struct {
	// Model is a model id, or with a * at its end the beginning of many.
	Model         string
	Input         int64
	Output        int64
	CacheRead     int64
	CacheCreation int64
}

// BudgetScope says whose usage a budget adds up.
type BudgetScope string

// The scopes of a budget.
const (
	BudgetTeam   BudgetScope = "Team"
	BudgetPerson BudgetScope = "Person"
	BudgetItem   BudgetScope = "WorkItem"
)

// Budget is an upper bound on usage. At its limit no further round is offered in its scope.
type Budget struct {
	Scope BudgetScope
	// Tokens bounds all four token counts added up; 0 is no bound.
	Tokens int64
	// CostMicroUSD bounds the cost in millionths of a US dollar; 0 is no bound.
	CostMicroUSD int64
	// ReserveTokens and ReserveMicroUSD are set aside for each round that is offered or running, so that rounds
	// side by side cannot all pass one check.
	ReserveTokens   int64
	ReserveMicroUSD int64
	// WarnAt and StopAt are fractions of the bounds: from WarnAt on people are warned, from StopAt on running rounds are ended. 0 never.
	WarnAt float64
	StopAt float64
}

// Person is one agent of a team, as its user declared it and as Kubernetes saw its pod.
type Person struct {
	// UID is the UID of the Person object; Name is the object's name.
	UID  string
	Key  PersonKey
	Name string
	// DisplayName is what people call it; the handle where none is given.
	DisplayName string
	Role        string
	Runtime     string
	Model       string
	// Effort, FallbackModel, MaxTurns, AllowedTools, Approvals and MCPServers are what the runtime is told; see protocol.TeamPerson.
	Effort        string
	FallbackModel string
	MaxTurns      int
	AllowedTools  []string
	Approvals     string
	MCPServers    []protocol.TeamMCPServer
	// Subscription is shared by the people whose usage windows are the same; empty means the person's own.
	Subscription string
	// Tools and Services are what the doctor checks.
	Tools    []string
	Services []protocol.TeamService
	// Command is the program of the command runtime; Environment replaces the team's where it is not nil.
	Command     []string
	Environment *protocol.TeamEnvironment
	// Suspended stops new offers to this person.
	Suspended bool
	// Draining stops new offers because the agent's pod waits to be replaced.
	Draining bool
	// TokenHash is the SHA-256 of the agent's token. The token itself is never kept.
	TokenHash [32]byte
	// Incarnation identifies the run of the agent's container as Kubernetes reported it, IncarnationAt is when that run
	// started. A run that started in the middle of a round means that the round's program is gone. Empty is unknown.
	Incarnation   string
	IncarnationAt time.Time
	// CreatedAt is the creation time of the object.
	CreatedAt time.Time
}

// ItemSpec is a work item as its user declared it, defaults filled in.
type ItemSpec struct {
	// Generation is the object's generation that this spec was read at.
	Generation int64
	// Hash identifies the spec for tombstones: equal specs have equal hashes.
	Hash string
	Team string
	// Person is the handle asked for, or empty for anyone with Role.
	Person    string
	Role      string
	Kind      string
	Title     string
	Body      string
	Requester string
	Priority  int32
	Trigger   protocol.Trigger
	Subject   *protocol.Subject
	// Parent is the name of the item this one was split from; ParentID its id where known.
	Parent   string
	ParentID string
	// DependsOn are names of items of the same namespace that must be done first.
	DependsOn []string
	// Attempts is how often the item may fail before it is blocked; 0 leaves it to the team's policy.
	Attempts int
	// Timeout bounds one round; 0 does not.
	Timeout time.Duration
	Cancel  bool
	// Rerun queues a finished item again when it changes.
	Rerun string
}

// Item is a work item: its spec and all that happened to it, in sum.
type Item struct {
	// ID is the UID of the WorkItem object.
	ID        string
	Namespace string
	Name      string
	CreatedAt time.Time
	Spec      ItemSpec

	State protocol.WorkItemState
	// Hold says why a queued item cannot be offered, whoever is idle. Its zero value means that it can.
	Hold Why
	// End says why the item is where it is, for blocked, waiting, canceled and done.
	End Why
	// Assignee is the handle of the person who has the item; for an item asked of a role, from its first offer on.
	Assignee string
	// Front puts the item before all others of its person: an interrupted one goes on first.
	Front bool
	// Place is where the item was put in its person's queue; nil leaves it to priority and age. See Rank.
	Place *Rank
	// NotBefore is the earliest time of the next offer; zero is at once.
	NotBefore time.Time
	// Round is the round that is offered or running, nil between rounds.
	Round *Round
	// Offers counts offers, and so numbers the rounds; Rounds counts those that were accepted.
	Offers int
	Rounds int
	// Failures, LostRounds and Declines count since the item was queued by its user; an accepted offer clears Declines.
	Failures   int
	LostRounds int
	Declines   int
	// SessionID is the runtime session that a next round resumes.
	SessionID string
	// SessionModel is the concrete model that the session runs on.
	SessionModel string
	// Interrupted says that the last round was cut short by a shutdown of the agent.
	Interrupted bool

	Progress   string
	ProgressAt time.Time
	Summary    string
	Links      []protocol.Link
	ToReview   []string
	Usage      Usage
	// StartedAt is when the first round was accepted, FinishedAt when the item became done, blocked or canceled.
	StartedAt  time.Time
	FinishedAt time.Time
	// FeedbackSeen is the number of the last feedback that a round has dealt with; what is above waits for one.
	FeedbackSeen int64
	// Origin is the chat message that the item came from, nil where none did.
	Origin *protocol.Origin
	// Question is what an item of kind KindQuestion asks; nil for others.
	Question *Question
	// Filed is what a chat session filed.
	Filed []Filed
	// Birth is set on an item that began in the office; see Birth.
	Birth *Birth
	// Gone says that the object was deleted; what happened stays.
	Gone bool
	// Revision is the store's revision at the last change.
	Revision int64
}

// Finished says whether the item is done or canceled: nothing but a rerun moves it.
func (i *Item) Finished() bool {
	return i.State == protocol.StateDone || i.State == protocol.StateCanceled
}

// DefaultRequester is the requester of an item that nobody in particular asked for.
const DefaultRequester = "requester"

// Kinds of items that begin in the office.
const (
	// KindQuestion is a teammate's question.
	KindQuestion = "question"
	// KindChat is a conversation in a chat thread.
	KindChat = "chat"
	// KindTicket is a ticket that a chat session filed as work, KindTask a request that it queued without one.
	KindTicket = "ticket"
	KindTask   = "task"
	// KindAssigned is a ticket that was assigned to the person.
	KindAssigned = "assigned"
	// KindReviewFeedback is a pull request or a document of the person's that somebody said something about, or whose checks fail.
	KindReviewFeedback = "review_feedback"
)

// IsChat says whether the item is a chat session: a conversation that a chat message began.
func (i *Item) IsChat() bool { return i.Spec.Kind == KindChat && i.Origin != nil }

// Birth is what an item has that began in the office: its id is the office's, and a controller makes its object under the item's
// name, once.
type Birth struct {
	// ObjectUID is the UID of the object; empty until there is one.
	ObjectUID string
}

// Question is a question from one person to another.
type Question struct {
	// Asker is the handle of who asks, AskerItem the id of the item that the asker was at, if any.
	Asker     string
	AskerItem string
	// To is the handle or the role that is asked, as the asker wrote it.
	To   string
	Text string
	// Answer is what was answered, by whom and when; AnsweredAt is zero while the question is open.
	Answer     string
	AnsweredBy string
	AnsweredAt time.Time
}

// Filed is a request that a chat session filed.
type Filed struct {
	// Request is its title, Ticket the key of its ticket, if it has one.
	Request string
	Ticket  string
	// Assignee is who it was filed for, if for someone else.
	Assignee string
	// ItemID is the item that carries it, empty where it was filed for someone else.
	ItemID string
}

// Rank is an item's place among others that are not in front: lower priority first, then lower key, compared as bytes.
type Rank struct {
	Priority int32
	Key      string
}

// Rank is the item's place: where it was put, else by its priority and age.
func (i *Item) Rank() Rank {
	if i.Place != nil {
		return *i.Place
	}
	return Rank{Priority: i.Spec.Priority, Key: fmt.Sprintf("%020d/%s", max(0, i.CreatedAt.UnixNano()), i.ID)}
}

// Queue is where items wait: the queue of a person, or of a role while nobody has them. Exactly one is set.
type Queue struct {
	Person string
	Role   string
}

// Queue is the one that the item waits in, when it is queued.
func (i *Item) Queue() Queue {
	if who := cmp.Or(i.Assignee, i.Spec.Person); who != "" {
		return Queue{Person: who}
	}
	return Queue{Role: i.Spec.Role}
}

// TeamKey is the key of the item's team.
func (i *Item) TeamKey() TeamKey { return TeamKey{Namespace: i.Namespace, Name: i.Spec.Team} }

// Why is a machine-readable reason (a constant of the API package) and a sentence for people.
type Why struct {
	Reason  string
	Message string
	// Scope is whose budget it is, of ReasonBudgetExhausted.
	Scope BudgetScope
}

// RoundOutcome says how a round ended.
type RoundOutcome string

// The outcomes of a round: those of a hand-back, and those without one.
const (
	OutcomeDone        RoundOutcome = "done"
	OutcomeWaiting     RoundOutcome = "waiting"
	OutcomeBlocked     RoundOutcome = "blocked"
	OutcomeSilent      RoundOutcome = "silent"
	OutcomeInterrupted RoundOutcome = "interrupted"
	OutcomeFailed      RoundOutcome = "failed"
	OutcomeDeclined    RoundOutcome = "declined"
	OutcomeLost        RoundOutcome = "lost"
	OutcomeTimeout     RoundOutcome = "timeout"
	OutcomeCanceled    RoundOutcome = "canceled"
	OutcomeStopped     RoundOutcome = "stopped"
)

// Round is one offer, accept, run and hand-back of an item.
type Round struct {
	ItemID string
	// Number counts offers of the item from 1.
	Number     int
	Person     string
	OfferedAt  time.Time
	AcceptedAt time.Time
	EndedAt    time.Time
	Outcome    RoundOutcome
	// Summary is the hand-back's summary or the reason of the end.
	Summary   string
	ToReview  []string
	Runtime   string
	Model     string
	SessionID string
	// Incarnation is the run of the agent's container that was last seen in this round.
	Incarnation string
	// FeedbackUpTo is the number of the last feedback that the round's offer had.
	FeedbackUpTo int64
	// Answered says that a question of the item's agent was answered while the round was offered or ran.
	Answered bool
	// Produced is what the agent made in this round, as refs; TicketStatus the status of the item's ticket when it was accepted.
	Produced []string
	// StoppedBy is who stopped it, empty where nobody did.
	StoppedBy    string
	TicketStatus protocol.TicketStatus
	Usage        Usage
}

// Accepted says whether the agent took the offer.
func (r *Round) Accepted() bool { return r != nil && !r.AcceptedAt.IsZero() }

// JournalEntry is one line of an item's journal.
type JournalEntry struct {
	ItemID string
	At     time.Time
	Author string
	Text   string
}

// Window is an LLM usage window as a person's runtime last reported it.
type Window struct {
	Name        string
	Utilization float64
	ResetsAt    time.Time
}

// Windows are the usage windows of one subscription, with when they were reported and by whom.
type Windows struct {
	Team         TeamKey
	Subscription string
	At           time.Time
	By           string
	Windows      []Window
}

// Doctor is a person's last report of its own checks.
type Doctor struct {
	At     time.Time
	Checks []protocol.DoctorCheck
}
