package protocol

// This file holds what a person keeps and looks up: documents, notes, current
// work, pull requests, logs, history and usage.

// NoteChange is what happened to a person's notes.
type NoteChange string

// The changes of notes.
const (
	NoteAdded   NoteChange = "added"
	NoteUpdated NoteChange = "updated"
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
	TicketStatusBacklog  TicketStatus = "backlog"
	TicketStatusReady    TicketStatus = "ready"
	TicketStatusActive   TicketStatus = "active"
	TicketStatusReview   TicketStatus = "review"
	TicketStatusBlocked  TicketStatus = "blocked"
	TicketStatusDone     TicketStatus = "done"
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
	AuthorHuman AuthorKind = "human"
	AuthorAgent AuthorKind = "agent"
	AuthorBot   AuthorKind = "bot"
)

func (AuthorKind) values() []string {
	return []string{string(AuthorHuman), string(AuthorAgent), string(AuthorBot)}
}

// PullFilter chooses pull requests by their state.
type PullFilter string

// The filters. Merged and closed ones are kept for a while only.
const (
	ListOpen   PullFilter = "open"
	ListMerged PullFilter = "merged"
	ListClosed PullFilter = "closed"
	ListAll    PullFilter = "all"
)

func (PullFilter) values() []string {
	return []string{string(ListOpen), string(ListMerged), string(ListClosed), string(ListAll)}
}

// DocLink announces a document that its author made for a ticket. Sent by the
// agent; answered by Ack or Error. The author then gets what others remark on
// it as work, and the ticket gets a link.
type DocLink struct {
	WorkItemID string `json:"workItemId"`
	Doc        Doc    `json:"doc"`
	// Ticket is the ticket's key, if it is not the item's own.
	Ticket string `json:"ticket,omitzero"`
}

// Doc is a page of the knowledge base.
type Doc struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// URL is absolute.
	URL string `json:"url" wire:"url"`
}

// NotesChanged tells that the caller's notes changed. Sent by the agent;
// answered by Ack or Error.
type NotesChanged struct {
	Change NoteChange `json:"change"`
	// Note is the text of the note that was added, changed or removed; of a
	// changed one, the new text.
	Note string `json:"note,omitzero"`
	// Count is how many notes were migrated.
	Count *int `json:"count,omitzero"`
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
	At      string `json:"at"`
	Version string `json:"version"`
}

// CurrentWork asks what the person has open, so that a chat session knows it.
// Sent by the agent; answered by CurrentWorkResult or Error.
type CurrentWork struct{}

// CurrentWorkResult is the caller's open work in words. Sent by the office.
type CurrentWorkResult struct {
	Text string `json:"text"`
}

// TicketPrs looks up, before a pull request is opened, the ticket it would
// belong to: a ticket has one open pull request at a time, and a finished one
// has no new ones. Sent by the agent; answered by TicketPrsResult or Error.
type TicketPrs struct {
	// HeadRef is the branch it would be opened from.
	HeadRef string `json:"headRef"`
	Title   string `json:"title"`
	Body    string `json:"body"`
}

// TicketPrsResult is that ticket, and the pull requests it has. Sent by the
// office.
type TicketPrsResult struct {
	// Ticket is found by the branch, else the title, else a closing word in the
	// body; a mere mention does not count. Absent if none is found.
	Ticket string `json:"ticket,omitzero"`
	// Status may be a little old; absent if the ticket was never read.
	Status TicketStatus `json:"status,omitzero"`
	// PRs are in any state.
	PRs []TicketPull `json:"prs"`
}

// TicketPull is a pull request of a ticket.
type TicketPull struct {
	// Ref is the office's key, such as acme/shop#12.
	Ref        string     `json:"ref"`
	Number     int        `json:"number"`
	Title      string     `json:"title"`
	URL        string     `json:"url,omitzero"`
	State      PullState  `json:"state"`
	AuthorKind AuthorKind `json:"authorKind"`
}

// PrList searches the pull requests the team knows. Sent by the agent;
// answered by PrListResult or Error.
type PrList struct {
	State PullFilter `json:"state"`
	// Author is a handle or a login of the code host.
	Author string `json:"author,omitzero"`
	// Ticket is the key of the ticket they are for.
	Ticket string `json:"ticket,omitzero"`
	// Repo is owner/name.
	Repo string `json:"repo,omitzero"`
	// Limit is the most to return.
	Limit int `json:"limit"`
}

// PrListResult has the pull requests that match: open ones first, the newest
// first, then those that ended, the latest first. Sent by the office.
type PrListResult struct {
	PRs []ListedPull `json:"prs"`
	// More counts the matches beyond the limit.
	More int `json:"more"`
}

// ListedPull is a pull request, as of UpdatedAt.
type ListedPull struct {
	// Ref is the office's key, such as acme/shop#12.
	Ref    string    `json:"ref"`
	Number int       `json:"number"`
	Title  string    `json:"title"`
	URL    string    `json:"url,omitzero"`
	State  PullState `json:"state"`
	Draft  bool      `json:"draft"`
	// Author is a handle, or a login of the code host.
	Author    string     `json:"author"`
	CI        CheckState `json:"ci"`
	Mergeable Mergeable  `json:"mergeable"`
	// Review is the verdict of the latest review.
	Review            string `json:"review,omitzero"`
	UnresolvedThreads int    `json:"unresolvedThreads"`
	Ticket            string `json:"ticket,omitzero"`
	// UpdatedAt is when the office read it.
	UpdatedAt string `json:"updatedAt"`
}

// CiLog fetches why a check failed; the agent needs no access to the CI for it.
// Sent by the agent; answered by CiLogResult or Error.
type CiLog struct {
	// URL is the check's page.
	URL string `json:"url"`
	// Lines is how many of a failed step's last lines are wanted.
	Lines int `json:"lines"`
}

// CiLogResult is the failed steps of a check. Sent by the office.
type CiLogResult struct {
	// Repo is owner/name.
	Repo string `json:"repo"`
	// Steps is empty when the log shows no failed one.
	Steps []LogStep `json:"steps"`
}

// Recall searches the caller's own past: items, journals, outcomes, events on
// what the work refers to, chat. Sent by the agent; answered by RecallResult or
// Error.
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
	Limit int `json:"limit"`
}

// RecallResult has the moments found, newest first. Sent by the office.
type RecallResult struct {
	Moments []Moment `json:"moments"`
	// More is true when older ones match too.
	More bool `json:"more"`
}

// Moment is something that happened.
type Moment struct {
	At string `json:"at" wire:"time"`
	// Kind is item, journal, outcome, or the type of an event such as
	// ticket.commented.
	Kind  string `json:"kind"`
	Where *Place `json:"where,omitzero"`
	// Who said or did it.
	Who string `json:"who,omitzero"`
	// Excerpt is the text around the match, in its author's words.
	Excerpt string `json:"excerpt"`
	// URL is the moment's own page.
	URL string `json:"url,omitzero"`
}

// Place is where a moment happened.
type Place struct {
	// Type is one of chat_thread, doc, pr and ticket.
	Type  string `json:"type"`
	Ref   string `json:"ref"`
	Title string `json:"title,omitzero"`
	URL   string `json:"url,omitzero"`
}

// TicketUsage asks what the work on a ticket used. Sent by the agent; answered
// by TicketUsageResult or Error. Refused where the team config says that usage
// is not tracked (usage.track_cost).
type TicketUsage struct {
	// Ticket is the ticket's key.
	Ticket string `json:"ticket"`
}

// TicketUsageResult is what the work on a ticket used. Sent by the office.
type TicketUsageResult struct {
	Ticket string `json:"ticket"`
	// Own is every run of every item that is about the ticket.
	Own UsageTotals `json:"own"`
	// Total is Own and the totals of the sub-tickets.
	Total      UsageTotals      `json:"total"`
	SubTickets []SubTicketUsage `json:"subTickets"`
	// The shares split Own three ways, each with the dearest first.
	ByPerson []UsageShare `json:"byPerson"`
	ByModel  []UsageShare `json:"byModel"`
	ByKind   []UsageShare `json:"byKind"`
}

// UsageTotals is what some runs used.
type UsageTotals struct {
	InputTokens         int64 `json:"inputTokens"`
	OutputTokens        int64 `json:"outputTokens"`
	CacheReadTokens     int64 `json:"cacheReadTokens"`
	CacheCreationTokens int64 `json:"cacheCreationTokens"`
	// Tokens is the sum of the four.
	Tokens int64 `json:"tokens"`
	// CostUSD is the cost at list prices in US dollars. A subscription bills
	// otherwise.
	CostUSD float64 `json:"costUsd"`
	// Runs counts the runs.
	Runs int `json:"runs"`
}

// SubTicketUsage is the total of a sub-ticket.
type SubTicketUsage struct {
	Ticket string      `json:"ticket"`
	Total  UsageTotals `json:"total"`
}

// UsageShare is a part of the usage.
type UsageShare struct {
	// Key is a handle, a model id or a kind of work.
	Key    string      `json:"key"`
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
