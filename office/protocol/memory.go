package protocol

// This file holds what a person keeps and looks up: documents, notes, current
// work, pull requests, logs, history and usage.

// NoteChange is what happened to a person's notes.
type NoteChange string

// The changes of notes.
const (
	// NoteAdded wrote a new note.
	NoteAdded NoteChange = "added"
	// NoteUpdated wrote a note anew.
	NoteUpdated NoteChange = "updated"
	// NoteRemoved took a note away.
	NoteRemoved NoteChange = "removed"
	// NoteMigrated moved the notes from the home into the knowledge base.
	NoteMigrated NoteChange = "migrated"
	// NoteEditIgnored found a version by someone who is not trusted, and does
	// not use it.
	NoteEditIgnored NoteChange = "edit_ignored"
)

func (NoteChange) values() []string {
	return []string{
		string(NoteAdded), string(NoteUpdated), string(NoteRemoved),
		string(NoteMigrated), string(NoteEditIgnored),
	}
}

// TicketStatus is the state that every tracker's own states are mapped to.
type TicketStatus string

// The states of a ticket.
const (
	// TicketStatusBacklog is not planned yet.
	TicketStatusBacklog TicketStatus = "backlog"
	// TicketStatusReady can be begun.
	TicketStatusReady TicketStatus = "ready"
	// TicketStatusActive is worked on.
	TicketStatusActive TicketStatus = "active"
	// TicketStatusReview waits for somebody to look at it.
	TicketStatusReview TicketStatus = "review"
	// TicketStatusBlocked cannot go on.
	TicketStatusBlocked TicketStatus = "blocked"
	// TicketStatusDone is finished.
	TicketStatusDone TicketStatus = "done"
	// TicketStatusCanceled is given up.
	TicketStatusCanceled TicketStatus = "canceled"
)

func (TicketStatus) values() []string {
	return []string{
		string(TicketStatusBacklog), string(TicketStatusReady), string(TicketStatusActive), string(TicketStatusReview),
		string(TicketStatusBlocked), string(TicketStatusDone), string(TicketStatusCanceled),
	}
}

// AuthorKind is what sort of author a pull request has.
type AuthorKind string

// The kinds of authors.
const (
	// AuthorHuman is somebody of flesh.
	AuthorHuman AuthorKind = "human"
	// AuthorAgent is a person of the team.
	AuthorAgent AuthorKind = "agent"
	// AuthorBot is a program that is no person of the team.
	AuthorBot AuthorKind = "bot"
)

func (AuthorKind) values() []string {
	return []string{string(AuthorHuman), string(AuthorAgent), string(AuthorBot)}
}

// PullFilter chooses pull requests by their state.
type PullFilter string

// The filters. Merged and closed ones are kept for a while only.
const (
	// ListOpen chooses open ones.
	ListOpen PullFilter = "open"
	// ListMerged chooses merged ones.
	ListMerged PullFilter = "merged"
	// ListClosed chooses those that were closed without a merge.
	ListClosed PullFilter = "closed"
	// ListAll chooses all of them.
	ListAll PullFilter = "all"
)

func (PullFilter) values() []string {
	return []string{string(ListOpen), string(ListMerged), string(ListClosed), string(ListAll)}
}

// DocLink announces a document that its author made for a ticket. Sent by the
// agent; answered by [Ack] or [Error]. The author then gets what others remark
// on it as work, and the ticket gets a link.
type DocLink struct {
	// WorkItemID is the item that the document was written in.
	WorkItemID string `json:"workItemId"`
	// Doc is the document.
	Doc Doc `json:"doc"`
	// Ticket is the ticket's key, if it is not the item's own.
	Ticket string `json:"ticket,omitzero"`
}

// Doc is a page of the knowledge base.
type Doc struct {
	// ID is the knowledge base's id of it.
	ID string `json:"id"`
	// Title is the page's title.
	Title string `json:"title"`
	// URL is the page's address, absolute.
	URL string `json:"url" wire:"url"`
}

// NotesChanged tells that the caller's notes changed. Sent by the agent;
// answered by [Ack] or [Error].
type NotesChanged struct {
	// Change is what happened.
	Change NoteChange `json:"change"`
	// Note is the text of the note that was added, changed or removed; of a
	// changed one, the new text.
	Note string `json:"note,omitzero"`
	// Count is how many notes were migrated.
	Count *int `json:"count,omitzero" wire:"min=0"`
	// Doc is the page of the notes, if they are not in the home. Its owner gets
	// what others remark on it as work.
	Doc *Doc `json:"doc,omitzero"`
	// Edit is the version that is ignored.
	Edit *NoteEdit `json:"edit,omitzero"`
	// WorkItemID is the item the caller was working on.
	WorkItemID string `json:"workItemId,omitzero"`
}

// NoteEdit is a version of the notes that is not used.
type NoteEdit struct {
	// Author is the knowledge base's name for them.
	Author string `json:"author"`
	// At is when it was written, in the knowledge base's form.
	At string `json:"at"`
	// Version is the knowledge base's name of it.
	Version string `json:"version"`
}

// CurrentWork asks what the person has open, so that a chat session knows it.
// Sent by the agent; answered by [CurrentWorkResult] or [Error].
type CurrentWork struct{}

// CurrentWorkResult is the caller's open work in words. Sent by the office; it
// takes no answer.
type CurrentWorkResult struct {
	// Text lists the open tickets and pull requests.
	Text string `json:"text"`
}

// TicketPrs looks up, before a pull request is opened, the ticket it would
// belong to: a ticket has one open pull request at a time, and a finished one
// has no new ones. Sent by the agent; answered by [TicketPrsResult] or [Error].
type TicketPrs struct {
	// HeadRef is the branch it would be opened from.
	HeadRef string `json:"headRef"`
	// Title is the one it would have.
	Title string `json:"title"`
	// Body is the description it would have.
	Body string `json:"body"`
}

// TicketPrsResult is that ticket, and the pull requests it has. Sent by the
// office; it takes no answer.
type TicketPrsResult struct {
	// Ticket is its key. It is found by the branch, else the title, else a
	// closing word in the body; a mere mention does not count. Absent if none is
	// found.
	Ticket string `json:"ticket,omitzero"`
	// Status is the ticket's, perhaps a little old; absent if the ticket was
	// never read.
	Status TicketStatus `json:"status,omitzero"`
	// PRs are those the ticket has, in any state.
	PRs []TicketPull `json:"prs"`
}

// TicketPull is a pull request of a ticket.
type TicketPull struct {
	// Ref is the office's key, such as acme/shop#12.
	Ref string `json:"ref"`
	// Number is its number in its repository.
	Number int `json:"number" wire:"min=1"`
	// Title is the pull request's title.
	Title string `json:"title"`
	// URL is its page.
	URL string `json:"url,omitzero"`
	// State is where it stands.
	State PullState `json:"state"`
	// AuthorKind is what sort of author opened it.
	AuthorKind AuthorKind `json:"authorKind"`
}

// PrList searches the pull requests the team knows. Sent by the agent; answered
// by [PrListResult] or [Error].
type PrList struct {
	// State chooses by where they stand.
	State PullFilter `json:"state"`
	// Author is a handle or a login of the code host.
	Author string `json:"author,omitzero"`
	// Ticket is the key of the ticket they are for.
	Ticket string `json:"ticket,omitzero"`
	// Repo is the repository they are in, owner/name.
	Repo string `json:"repo,omitzero"`
	// Limit is the most to return.
	Limit int `json:"limit" wire:"min=0"`
}

// PrListResult has the pull requests that match: open ones first, the newest
// first, then those that ended, the latest first. Sent by the office; it takes
// no answer.
type PrListResult struct {
	// PRs are the first of those that match.
	PRs []ListedPull `json:"prs"`
	// More counts the matches beyond the limit.
	More int `json:"more" wire:"min=0"`
}

// ListedPull is a pull request, as the office last read it.
type ListedPull struct {
	// Ref is the office's key, such as acme/shop#12.
	Ref string `json:"ref"`
	// Number is its number in its repository.
	Number int `json:"number" wire:"min=1"`
	// Title is the pull request's title.
	Title string `json:"title"`
	// URL is its page.
	URL string `json:"url,omitzero"`
	// State is where it stands.
	State PullState `json:"state"`
	// Draft is true while it is not meant to be reviewed.
	Draft bool `json:"draft"`
	// Author is a handle, or a login of the code host.
	Author string `json:"author"`
	// CI sums up its checks.
	CI CheckState `json:"ci"`
	// Mergeable tells whether it fits its base.
	Mergeable Mergeable `json:"mergeable"`
	// Review is the verdict of the latest review.
	Review string `json:"review,omitzero"`
	// UnresolvedThreads counts the threads of reviews that are open.
	UnresolvedThreads int `json:"unresolvedThreads" wire:"min=0"`
	// Ticket is the key of the ticket it is for.
	Ticket string `json:"ticket,omitzero"`
	// UpdatedAt is when the office read it.
	UpdatedAt string `json:"updatedAt"`
}

// CiLog fetches why a check failed; the agent needs no access to the CI for it.
// Sent by the agent; answered by [CiLogResult] or [Error].
type CiLog struct {
	// URL is the check's page.
	URL string `json:"url"`
	// Lines is how many of a failed step's last lines are wanted.
	Lines int `json:"lines" wire:"min=0"`
}

// CiLogResult is the failed steps of a check. Sent by the office; it takes no
// answer.
type CiLogResult struct {
	// Repo is the repository of the check, owner/name.
	Repo string `json:"repo"`
	// Steps is empty when the log shows no failed one.
	Steps []LogStep `json:"steps"`
}

// Recall searches the caller's own past: items, journals, outcomes, events on
// what the work refers to, chat. Sent by the agent; answered by [RecallResult]
// or [Error].
type Recall struct {
	// Query has words, all of which must match in any form; "phrases" in
	// quotes; or between two terms; -word for what must not be there.
	Query string `json:"query"`
	// With keeps the moments with one person: a handle, or a human by name or
	// identity.
	With string `json:"with,omitzero"`
	// About keeps the moments about a ticket, a pull request or a document.
	About string `json:"about,omitzero"`
	// Since keeps the moments from this time or day on.
	Since string `json:"since,omitzero" wire:"date"`
	// Limit is the most to return.
	Limit int `json:"limit" wire:"min=0"`
}

// RecallResult has the moments found. Sent by the office; it takes no answer.
type RecallResult struct {
	// Moments are the newest that match, newest first.
	Moments []Moment `json:"moments"`
	// More is true when older ones match too.
	More bool `json:"more"`
}

// Moment is something that happened.
type Moment struct {
	// At is when it happened.
	At string `json:"at" wire:"time"`
	// Kind is item, journal, outcome, or the type of an event such as
	// ticket.commented.
	Kind string `json:"kind"`
	// Where is the place it happened at, if there is one.
	Where *Place `json:"where,omitzero"`
	// Who is whoever said or did it.
	Who string `json:"who,omitzero"`
	// Excerpt is the text around the match, in its author's words.
	Excerpt string `json:"excerpt"`
	// URL is the moment's own page.
	URL string `json:"url,omitzero"`
}

// Place is where a moment happened.
type Place struct {
	// Type is one of chat_thread, doc, pr and ticket.
	Type string `json:"type"`
	// Ref names it in the system it lives in.
	Ref string `json:"ref"`
	// Title is for people.
	Title string `json:"title,omitzero"`
	// URL is its page.
	URL string `json:"url,omitzero"`
}

// TicketUsage asks what the work on a ticket used. Sent by the agent; answered
// by [TicketUsageResult] or [Error]. Refused where the team config says that
// usage is not tracked (usage.track_cost).
type TicketUsage struct {
	// Ticket is the ticket's key.
	Ticket string `json:"ticket"`
}

// TicketUsageResult is what the work on a ticket used. Sent by the office; it
// takes no answer.
type TicketUsageResult struct {
	// Ticket is the ticket's key.
	Ticket string `json:"ticket"`
	// Own is every run of every item that is about the ticket.
	Own UsageTotals `json:"own"`
	// Total is the ticket's own and the totals of the sub-tickets.
	Total UsageTotals `json:"total"`
	// SubTickets has the sub-tickets that are in the total.
	SubTickets []SubTicketUsage `json:"subTickets"`
	// ByPerson splits the ticket's own by handle, the dearest first.
	ByPerson []UsageShare `json:"byPerson"`
	// ByModel splits the ticket's own by model id, the dearest first.
	ByModel []UsageShare `json:"byModel"`
	// ByKind splits the ticket's own by kind of work, the dearest first.
	ByKind []UsageShare `json:"byKind"`
}

// UsageTotals is what some runs used.
type UsageTotals struct {
	// InputTokens is how many models read that were in no cache.
	InputTokens int64 `json:"inputTokens" wire:"min=0"`
	// OutputTokens is how many models wrote.
	OutputTokens int64 `json:"outputTokens" wire:"min=0"`
	// CacheReadTokens is how many were read from a provider's cache.
	CacheReadTokens int64 `json:"cacheReadTokens" wire:"min=0"`
	// CacheCreationTokens is how many were put into a provider's cache.
	CacheCreationTokens int64 `json:"cacheCreationTokens" wire:"min=0"`
	// Tokens is the sum of the four.
	Tokens int64 `json:"tokens" wire:"min=0"`
	// CostUSD is the cost at list prices in US dollars. A subscription bills
	// otherwise.
	CostUSD float64 `json:"costUsd" wire:"min=0"`
	// Runs counts the runs.
	Runs int `json:"runs" wire:"min=0"`
}

// SubTicketUsage is the total of a sub-ticket.
type SubTicketUsage struct {
	// Ticket is the sub-ticket's key.
	Ticket string `json:"ticket"`
	// Total is what it and its own sub-tickets used.
	Total UsageTotals `json:"total"`
}

// UsageShare is a part of the usage.
type UsageShare struct {
	// Key is a handle, a model id or a kind of work.
	Key string `json:"key"`
	// Totals is what it used.
	Totals UsageTotals `json:"totals"`
}

// Type returns TypeDocLink.
func (DocLink) Type() Type { return TypeDocLink }

// Type returns TypeNotesChanged.
func (NotesChanged) Type() Type { return TypeNotesChanged }

// Type returns TypeCurrentWork.
func (CurrentWork) Type() Type { return TypeCurrentWork }

// Type returns TypeCurrentWorkResult.
func (CurrentWorkResult) Type() Type { return TypeCurrentWorkResult }

// Type returns TypeTicketPrs.
func (TicketPrs) Type() Type { return TypeTicketPrs }

// Type returns TypeTicketPrsResult.
func (TicketPrsResult) Type() Type { return TypeTicketPrsResult }

// Type returns TypePrList.
func (PrList) Type() Type { return TypePrList }

// Type returns TypePrListResult.
func (PrListResult) Type() Type { return TypePrListResult }

// Type returns TypeCiLog.
func (CiLog) Type() Type { return TypeCiLog }

// Type returns TypeCiLogResult.
func (CiLogResult) Type() Type { return TypeCiLogResult }

// Type returns TypeRecall.
func (Recall) Type() Type { return TypeRecall }

// Type returns TypeRecallResult.
func (RecallResult) Type() Type { return TypeRecallResult }

// Type returns TypeTicketUsage.
func (TicketUsage) Type() Type { return TypeTicketUsage }

// Type returns TypeTicketUsageResult.
func (TicketUsageResult) Type() Type { return TypeTicketUsageResult }
