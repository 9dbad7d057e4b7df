package model

// This file has what crosses between controllers and office: what the controllers tell, and what they are told.

import (
	"errors"
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// ErrUnfinished says that an item cannot have expired, because it is not done or canceled. Test for it with errors.Is.
var ErrUnfinished = errors.New("it is not finished, so it does not expire")

// Recorded is what an item's status says of an earlier life of the store. Where the store does not know better, it wins.
type Recorded struct {
	StoreID    string
	Revision   int64
	State      protocol.WorkItemState
	End        Why
	Assignee   string
	Rounds     int
	Failures   int
	LostRounds int
	SessionID  string
	Summary    string
	Links      []protocol.Link
	Models     []ModelUsage
	Usage      Usage
	StartedAt  time.Time
	FinishedAt time.Time
	Rerun      string
}

// ItemFacts is what a controller knows of a work item: identity, spec and recorded status.
type ItemFacts struct {
	// ID is the UID of the object. BornID is the id of the item that the object says it was made for, empty for a user's.
	ID     string
	BornID string
	// ParentBornID is the same of the parent's object.
	ParentBornID string
	// Origin is the chat message that such an item came from, for a store that does not know it; nil where none did.
	Origin    *protocol.Origin
	Namespace string
	Name      string
	CreatedAt time.Time
	Spec      ItemSpec
	Recorded  Recorded
}

// ItemView is an item as its status shows it.
type ItemView struct {
	Item
	StoreID string
	// Models is the item's usage by model, largest first.
	Models []ModelUsage
	// BudgetWarning says that the item's budget is nearly used up, or more; zero while nobody needs to know.
	BudgetWarning Why
}

// PersonState is the state of a person as roster and status show it.
type PersonState string

// The states of a person.
const (
	PersonIdle    PersonState = "idle"
	PersonWorking PersonState = "working"
	PersonPaused  PersonState = "paused"
	PersonOffline PersonState = "offline"
)

// PersonView is a person as its status shows it.
type PersonView struct {
	State        PersonState
	Connected    bool
	ConnectedAt  time.Time
	AgentVersion string
	// CurrentItem is the name of the WorkItem that the person has an offer of or works on.
	CurrentItem string
	// Busy says that a round is offered or running.
	Busy bool
	// Queued counts the items that wait for this person, without those that only its role could take.
	Queued int
	// Pause says until when, and why, usage holds the person back.
	PausedUntil time.Time
	PausedBy    string
	Usage       Usage
	// BudgetWarning says that the person's budget is nearly used up, or more.
	BudgetWarning Why
	// Windows were reported at WindowsAt.
	Windows   []Window
	WindowsAt time.Time
	Doctor    *Doctor
	StoreID   string
}

// TeamView is a team as its status shows it.
type TeamView struct {
	Usage Usage
	// BudgetWarning says that the team's budget is nearly used up, or more.
	BudgetWarning Why
	// Items counts the team's items by state, without deleted ones.
	Items   map[protocol.WorkItemState]int
	StoreID string
}

// Live names every object that exists: what the store knows beyond it was deleted while nobody watched.
type Live struct {
	// Namespaces are those that were looked at; nil is all. What the store knows of others is left alone.
	Namespaces []string
	Teams      []TeamKey
	People     []string
	Items      []string
}

// ChangeKind says what kind of object a change is about.
type ChangeKind string

// The kinds of changes.
const (
	ChangedItem   ChangeKind = "WorkItem"
	ChangedPerson ChangeKind = "Person"
	ChangedTeam   ChangeKind = "Team"
)

// Change names an object whose view changed, so that its controller looks again.
type Change struct {
	Kind      ChangeKind
	Namespace string
	Name      string
}
