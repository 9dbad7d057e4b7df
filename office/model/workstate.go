package model

// This file has what the office knows of the world outside: tickets, pull requests, documents, what people said about them, and how
// work items refer to them.

import (
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// RefType says what a Ref points at. The words are those of subjects and of recalled places.
type RefType string

// The types of refs.
const (
	RefTicket RefType = "ticket"
	RefPull   RefType = "pr"
	RefDoc    RefType = "doc"
	// RefThread is a chat thread; its ref is made by ThreadRef.
	RefThread RefType = "chat_thread"
)

// Place names one ticket, pull request, document or chat thread of a team.
type Place struct {
	Type RefType
	// Ref is a ticket's key, a pull request's key (acme/shop#12), a document's id, or what ThreadRef gives.
	Ref string
}

// ThreadRef is the ref of a chat thread.
func ThreadRef(channel, thread string) string { return channel + "/" + thread }

// Ref is why a work item has to do with a place. An item has one ref to a place: the first that was put stays.
type Ref struct {
	ItemID string
	Place  Place
	// Role and Source are what the wake bundle says: how it belongs, and what added it.
	Role    protocol.WhyRole
	Source  string
	AddedAt time.Time
	// Round is the round in which the item's agent made it; 0 for others.
	Round int
}

// Thread is a chat thread that an item reports to.
type Thread struct {
	ItemID string
	// Person is the handle of the agent that hears and answers in it.
	Person      string
	Channel     string
	Thread      string
	Requester   protocol.Requester
	Direct      bool
	Participant bool
	At          time.Time
}

// Ticket is a ticket of a tracker as the office last heard of it.
type Ticket struct {
	Team        TeamKey
	Key         string
	Title       string
	URL         string
	Status      protocol.TicketStatus
	Assignee    string
	Description string
	// Parent is the key of the ticket that this one is a part of.
	Parent    string
	UpdatedAt time.Time
	// AsOf is the time of the event that told this: an older one that comes late changes nothing. Zero where no event did.
	AsOf time.Time
}

// Open says whether the ticket can still get work.
func (t Ticket) Open() bool {
	return t.Status != protocol.TicketStatusDone && t.Status != protocol.TicketStatusCanceled
}

// Pull is a pull request as the office last heard of it.
type Pull struct {
	Team TeamKey
	// Ref is the office's key: owner/repo#number.
	Ref    string
	Repo   string
	Number int
	Title  string
	URL    string
	State  protocol.PullState
	Draft  bool
	// Author is the handle of a person of the team, else the login at the code host.
	Author     string
	AuthorKind protocol.AuthorKind
	Head       string
	Base       string
	CI         protocol.CheckState
	Failing    []string
	Mergeable  protocol.Mergeable
	// Review is the verdict of the latest review.
	Review string
	// UnresolvedThreads counts the threads of reviews that are open.
	UnresolvedThreads int
	// Ticket is the key of the ticket that it implements.
	Ticket    string
	OpenedAt  time.Time
	UpdatedAt time.Time
	// AsOf is the time of the event that told this, without its checks: an older one that comes late changes nothing. Zero where no
	// event did.
	AsOf time.Time
	// Checked is the commit whose checks CI and Failing are of, ChecksAsOf the time of the event that told them.
	Checked    string
	ChecksAsOf time.Time
	// Told has the sets of failing checks that somebody was woken for since the checks last went well, ToldAt the last commit of them.
	Told   []string
	ToldAt string
}

// Doc is a document of the knowledge base.
type Doc struct {
	Team  TeamKey
	ID    string
	Title string
	URL   string
	// Ticket is the one it was written for, Author the handle of who wrote it.
	Ticket    string
	Author    string
	UpdatedAt time.Time
}

// Remark is something said at a place: a comment, a review, an inline comment, a chat message.
type Remark struct {
	Team  TeamKey
	Place Place
	// ID is unique at the place. What comes again under it replaces what was there.
	ID string
	// Kind is the type of the event that brought it, such as ticket.commented, pr.reviewed or chat.message.
	Kind   string
	Author string
	At     time.Time
	Body   string
	URL    string
	// State is a review's verdict.
	State string
	// Path, Line and ThreadID place an inline comment; Resolved says that its thread is.
	Path     string
	Line     int
	ThreadID string
	Resolved bool
	// AnchorText is what a comment on a document is anchored to.
	AnchorText string
	// ReviewID is the review that an inline comment is part of.
	ReviewID string
	// Human says that a trusted human wrote it.
	Human bool
	// Files came with a chat message.
	Files []protocol.File
}

// Event is something that happened outside, as it was taken in, with what the office made of it.
type Event struct {
	Team TeamKey
	// Source and ID identify it: the same again is a repeat.
	Source string
	ID     string
	Type   string
	At     time.Time
	// Data is the event's payload as it came.
	Data protocol.Raw
	// Trace has a line for each thing that the office did about it, and for what became of that.
	Trace []string
}

// Act is a list of changes that a person's agent is to make with its own credentials.
type Act struct {
	ID     string
	Person PersonKey
	// ItemID is the item it is about, Event (source and id) what caused it; both may be empty.
	ItemID      string
	EventSource string
	EventID     string
	Ops         []protocol.Raw
	CreatedAt   time.Time
	// AnsweredAt is when the agent told what became of it.
	AnsweredAt time.Time
	OK         bool
	Results    []string
	Error      string
}

// Report is how an item ended, for its agent to post to whoever asked.
type Report struct {
	ID     string
	Person PersonKey
	ItemID string
	Kind   protocol.ReportKind
	Text   string
	// NotBefore gives the agent that handed back the time to ask for the report itself.
	NotBefore time.Time
	CreatedAt time.Time
	// SentAt is when it first left for the agent, PostedAt when the agent confirmed it, or took it upon itself to post it.
	SentAt   time.Time
	PostedAt time.Time
}

// Feedback is one thing that was said about an item. N orders all feedback, and never repeats.
type Feedback struct {
	N      int64
	ItemID string
	At     time.Time
	// Key recognises a repeat for the same item.
	Key string
	// Source is what brought it: an event's id. Empty for a chat message, whose id is the feedback's CommentID, and for a colleague.
	Source string
	// Place is where it was said; empty for feedback from nowhere.
	Place    Place
	Feedback protocol.Feedback
	// ClosesSession says that whoever said it wants to say no more: the session closes with the turn that answers it.
	ClosesSession bool
}

// Moment is something of a person's past that a search found.
type Moment struct {
	At   time.Time
	Kind string
	// Where is nil for what happened nowhere.
	Where *protocol.Place
	Who   string
	// Excerpt is the text around the match, at most some 200 characters.
	Excerpt string
	URL     string
}

// Recall is a search of a person's past.
type Recall struct {
	Person PersonKey
	// Query is the caller's: words, "phrases", or, -word.
	Query string
	// With has the names under which the other one is known; About the place. Empty ones do not restrict.
	With  []string
	About Place
	Since time.Time
	Limit int
}

// PullFilter chooses pull requests. Empty fields do not restrict.
type PullFilter struct {
	State  protocol.PullFilter
	Author string
	Ticket string
	Repo   string
	Limit  int
}

// TicketShare is what one person used in rounds of one kind on one model for a ticket.
type TicketShare struct {
	Person string
	Model  string
	Kind   string
	Usage  Usage
	// Runs counts the rounds that it was used in.
	Runs int
}

// TicketRuns counts the accepted rounds of one person and kind for a ticket.
type TicketRuns struct {
	Person string
	Kind   string
	Runs   int
}
