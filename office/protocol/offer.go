package protocol

// This file holds the offer: a work item, and all that the office hands over
// with it. wake.go has the largest part of the context.

// Trigger is what made a work item start.
type Trigger string

// The triggers.
const (
	// TriggerHuman is somebody who asked.
	TriggerHuman Trigger = "human"
	// TriggerAgent is a person of the team.
	TriggerAgent Trigger = "agent"
	// TriggerAutomation is an event that the team has a rule for.
	TriggerAutomation Trigger = "automation"
	// TriggerSchedule is the clock.
	TriggerSchedule Trigger = "schedule"
)

func (Trigger) values() []string {
	return []string{string(TriggerHuman), string(TriggerAgent), string(TriggerAutomation), string(TriggerSchedule)}
}

// AboutState tells whether earlier work still runs.
type AboutState string

// The states of earlier work.
const (
	// AboutRunning is not finished.
	AboutRunning AboutState = "running"
	// AboutFinished was handed back, is done or was canceled.
	AboutFinished AboutState = "finished"
)

func (AboutState) values() []string { return []string{string(AboutRunning), string(AboutFinished)} }

// PullState is where a pull request stands.
type PullState string

// The states of a pull request.
const (
	// PullOpen can be merged still.
	PullOpen PullState = "open"
	// PullClosed was closed without a merge.
	PullClosed PullState = "closed"
	// PullMerged is in its base.
	PullMerged PullState = "merged"
)

func (PullState) values() []string {
	return []string{string(PullOpen), string(PullClosed), string(PullMerged)}
}

// FeedbackKind is where a piece of feedback was given.
type FeedbackKind string

// The kinds of feedback.
const (
	// FeedbackReview is a review of a pull request, with its summary.
	FeedbackReview FeedbackKind = "review"
	// FeedbackComment is in the conversation of a pull request.
	FeedbackComment FeedbackKind = "comment"
	// FeedbackInlineComment is on a line of a diff.
	FeedbackInlineComment FeedbackKind = "inline_comment"
	// FeedbackChat is a chat message of a trusted human.
	FeedbackChat FeedbackKind = "chat"
	// FeedbackTicketComment is on a ticket.
	FeedbackTicketComment FeedbackKind = "ticket_comment"
	// FeedbackDocComment is on a document of the knowledge base.
	FeedbackDocComment FeedbackKind = "doc_comment"
	// FeedbackBlocked is the summary of an agent that handed back as blocked.
	FeedbackBlocked FeedbackKind = "blocked"
	// FeedbackCIFailure lists checks that fail.
	FeedbackCIFailure FeedbackKind = "ci_failure"
)

func (FeedbackKind) values() []string {
	return []string{
		string(FeedbackReview), string(FeedbackComment), string(FeedbackInlineComment),
		string(FeedbackChat), string(FeedbackTicketComment), string(FeedbackDocComment),
		string(FeedbackBlocked), string(FeedbackCIFailure),
	}
}

// ConversationKind is what an entry of a pull request's conversation is.
type ConversationKind string

// The kinds of entries.
const (
	// ConversationComment is a comment.
	ConversationComment ConversationKind = "comment"
	// ConversationReview is the summary of a review.
	ConversationReview ConversationKind = "review"
)

func (ConversationKind) values() []string {
	return []string{string(ConversationComment), string(ConversationReview)}
}

// Offer hands the agent a work item to take. Sent by the office; it takes no
// answer, but [Accept] or [Decline] follows. It comes again after a reconnect
// until one of them did, so an agent must expect the same id twice.
type Offer struct {
	// WorkItem is the item to take.
	WorkItem WorkItem `json:"workItem"`
	// Context is what is needed to begin.
	Context Context `json:"context"`
	// SessionID is the runtime's session of an earlier round, to be resumed.
	SessionID string `json:"sessionId,omitzero"`
	// Interrupted is true when the agent's shutdown cut the last round short.
	Interrupted *bool `json:"interrupted,omitzero"`
}

// WorkItem is the piece of work itself. What it asks in detail is the first
// entry of [Context.Journal].
type WorkItem struct {
	// ID names the item for good.
	ID string `json:"id"`
	// Kind is what sort of work it is, such as a ticket or a question.
	Kind string `json:"kind"`
	// Title is what it asks, in a few words.
	Title string `json:"title"`
	// Priority orders the queue; the lower runs first.
	Priority float64 `json:"priority"`
	// Trigger is what made it start.
	Trigger Trigger `json:"trigger"`
	// ParentID is the item a question was asked from.
	ParentID string `json:"parentId,omitzero"`
	// Subject is the one thing the item is about, if there is one.
	Subject *SubjectRef `json:"subject,omitzero"`
	// Origin is the chat message that asked for it, if one did.
	Origin *Origin `json:"origin,omitzero"`
}

// SubjectRef points at a ticket, a pull request or the like.
type SubjectRef struct {
	// Type is what it is, such as ticket or pr.
	Type string `json:"type"`
	// Ref names it in the system it lives in.
	Ref string `json:"ref"`
}

// Origin is the place in chat a request came from.
type Origin struct {
	// Channel is the chat system's id of the channel.
	Channel string `json:"channel"`
	// Thread is where answers go.
	Thread string `json:"thread"`
	// Requester is who asked.
	Requester Requester `json:"requester"`
	// Direct is true in a direct message with the requester.
	Direct bool `json:"direct"`
	// Participant is true when the requester wrote in the thread before, and so
	// gets the chat's own notices about it.
	Participant bool `json:"participant"`
	// Files came with the message that started it.
	Files []File `json:"files,omitzero"`
	// About is the earlier work whose thread the message replied in.
	About *About `json:"about,omitzero"`
}

// Requester is a human in chat.
type Requester struct {
	// ID is the one the chat system uses.
	ID string `json:"id"`
	// Name is for people.
	Name string `json:"name,omitzero"`
	// Extra has the members that this version does not know, as one object. They
	// are passed on.
	Extra Raw `json:",embed"`
}

// File describes a file shared in chat. The office never has its bytes. All of
// it is what the sender chose, and no instruction.
type File struct {
	// ID is the chat system's id of it.
	ID string `json:"id"`
	// Name is the file's name, as its sender called it.
	Name string `json:"name"`
	// MIMEType says what is in it, such as image/png.
	MIMEType string `json:"mimetype"`
	// Size is in bytes.
	Size int64 `json:"size" wire:"min=0"`
	// URL is for the agent's chat adapter alone; it is passed on unread.
	URL string `json:"url"`
	// Extra has the members that this version does not know, as one object. They
	// are passed on.
	Extra Raw `json:",embed"`
}

// About is the earlier work that a new request belongs with.
type About struct {
	// ID is the earlier item's id.
	ID string `json:"id"`
	// Title is the earlier item's title.
	Title string `json:"title"`
	// State tells whether it still runs.
	State AboutState `json:"state"`
}

// Context is all an agent needs to start a round.
type Context struct {
	// Journal begins with what is asked, and goes on with what the earlier
	// rounds wrote down.
	Journal []JournalEntry `json:"journal"`
	// Subjects are what and who is concerned.
	Subjects []Subject `json:"subjects"`
	// Links are further pages to look at.
	Links []Link `json:"links"`
	// Feedback is what a review round has to answer, oldest first. What comes
	// while the round runs waits for the next.
	Feedback []Feedback `json:"feedback,omitzero"`
	// Conversation is the few entries before the first feedback, oldest first,
	// so that a short remark can be understood.
	Conversation []ConversationEntry `json:"conversation,omitzero"`
	// Wake is the state of the work around the item.
	Wake *Wake `json:"wake,omitzero"`
}

// JournalEntry is one entry of an item's journal.
type JournalEntry struct {
	// At is when it was written.
	At string `json:"at" wire:"time"`
	// Author is a handle, or a human's name.
	Author string `json:"author"`
	// Text is what was written.
	Text string `json:"text"`
}

// Subject is a ticket, a pull request or a person that an item concerns. The
// fields from HeadRef on are for pull requests only.
type Subject struct {
	// Type is what it is, such as ticket or pr.
	Type string `json:"type"`
	// Ref names it in the system it lives in.
	Ref string `json:"ref"`
	// Title is for people.
	Title string `json:"title,omitzero"`
	// URL is its page.
	URL string `json:"url,omitzero"`
	// HeadRef is the branch the pull request brings.
	HeadRef string `json:"headRef,omitzero"`
	// BaseRef is the branch it goes into.
	BaseRef string `json:"baseRef,omitzero"`
	// State is where the pull request stands.
	State PullState `json:"state,omitzero"`
	// Draft is true while it is not meant to be reviewed.
	Draft *bool `json:"draft,omitzero"`
	// Own is true when the person who gets the offer opened it.
	Own *bool `json:"own,omitzero"`
}

// Link is a page.
type Link struct {
	// URL is the page's address, absolute.
	URL string `json:"url" wire:"url"`
	// Title is for people.
	Title string `json:"title,omitzero"`
	// Extra has the members that this version does not know, as one object. They
	// are passed on.
	Extra Raw `json:",embed"`
}

// Feedback is one thing someone said about the work. Its texts are that
// person's words.
type Feedback struct {
	// Actor is who said it: a login, or the agent of a blocked hand-back.
	Actor string `json:"actor"`
	// Kind is where it was said.
	Kind FeedbackKind `json:"kind"`
	// State is the verdict of a review: approved, changes_requested or
	// commented.
	State string `json:"state,omitzero"`
	// URL is where it can be read.
	URL string `json:"url,omitzero"`
	// CommentID names the comment in the system that the kind implies.
	CommentID string `json:"commentId,omitzero"`
	// DocID is the document that a comment is on.
	DocID string `json:"docId,omitzero"`
	// AnchorText are the words of the document that are marked.
	AnchorText string `json:"anchorText,omitzero"`
	// At is when the host heard of it.
	At string `json:"at,omitzero" wire:"time"`
	// Body is what was said.
	Body string `json:"body"`
	// Comments are the inline comments of a review, oldest first.
	Comments []InlineComment `json:"comments,omitzero"`
}

// InlineComment is a comment on a line of a diff.
type InlineComment struct {
	// ID is the host's id of it.
	ID string `json:"id"`
	// Path is the file in the repository.
	Path string `json:"path"`
	// Line is the line of the file, from 1.
	Line *int `json:"line,omitzero" wire:"min=0"`
	// Body is what was said.
	Body string `json:"body"`
	// URL is where it can be read.
	URL string `json:"url,omitzero"`
	// ThreadID is the thread to reply in and to resolve.
	ThreadID string `json:"threadId,omitzero"`
}

// ConversationEntry is an earlier entry of a pull request's conversation,
// shortened.
type ConversationEntry struct {
	// Kind is what the entry is.
	Kind ConversationKind `json:"kind"`
	// Author is a login.
	Author string `json:"author"`
	// At is when the host heard of it.
	At string `json:"at" wire:"time"`
	// State is the verdict of a review: approved, changes_requested or
	// commented.
	State string `json:"state,omitzero"`
	// URL is where it can be read.
	URL string `json:"url,omitzero"`
	// Body is what was said.
	Body string `json:"body"`
}

// Type returns TypeOffer.
func (Offer) Type() Type { return TypeOffer }
