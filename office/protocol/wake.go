package protocol

// This file holds the wake: the tickets, pull requests, documents and chats
// around a work item, as the office knows them when it offers the item. Lists
// are bounded by the team config (pipeline.context); what was left out is
// counted. Every text in it is some person's or some program's words.

// WhyRole is how something belongs to the work.
type WhyRole string

// The roles.
const (
	// WhyTrigger woke the agent.
	WhyTrigger WhyRole = "trigger"
	// WhySubject is the item's own subject.
	WhySubject WhyRole = "subject"
	// WhyCreated was made by the agent.
	WhyCreated WhyRole = "created"
	// WhyAttached was added by a request.
	WhyAttached WhyRole = "attached"
	// WhyMentioned was named in feedback.
	WhyMentioned WhyRole = "mentioned"
	// WhyInferred was worked out by the office.
	WhyInferred WhyRole = "inferred"
	// WhyLinked hangs on something else that belongs.
	WhyLinked WhyRole = "linked"
)

func (WhyRole) values() []string {
	return []string{
		string(WhyTrigger), string(WhySubject), string(WhyCreated), string(WhyAttached),
		string(WhyMentioned), string(WhyInferred), string(WhyLinked),
	}
}

// CheckState sums up the checks of a pull request.
type CheckState string

// The states of checks.
const (
	// ChecksNone has no checks.
	ChecksNone CheckState = "none"
	// ChecksPending has some that still run, and none that failed.
	ChecksPending CheckState = "pending"
	// ChecksSuccess has only checks that went well.
	ChecksSuccess CheckState = "success"
	// ChecksFailure has one that failed.
	ChecksFailure CheckState = "failure"
)

func (CheckState) values() []string {
	return []string{string(ChecksNone), string(ChecksPending), string(ChecksSuccess), string(ChecksFailure)}
}

// BaseCheckState is a [CheckState] of a base branch, or that nobody read its
// checks.
type BaseCheckState string

// BaseChecksUnknown was not read.
const BaseChecksUnknown BaseCheckState = "unknown"

func (BaseCheckState) values() []string {
	return append(CheckState("").values(), string(BaseChecksUnknown))
}

// Mergeable tells whether a pull request fits its base.
type Mergeable string

// The values of Mergeable.
const (
	// MergeableClean fits.
	MergeableClean Mergeable = "clean"
	// MergeableConflicting does not fit.
	MergeableConflicting Mergeable = "conflicting"
	// MergeableUnknown was not found out yet.
	MergeableUnknown Mergeable = "unknown"
)

func (Mergeable) values() []string {
	return []string{string(MergeableClean), string(MergeableConflicting), string(MergeableUnknown)}
}

// Relation is how another pull request touches the one to be merged.
type Relation string

// The relations.
const (
	// RelationStackedOnIt builds on the one to be merged.
	RelationStackedOnIt Relation = "stacked_on_it"
	// RelationUnderIt is what the one to be merged builds on.
	RelationUnderIt Relation = "under_it"
	// RelationSameBase goes into the same branch.
	RelationSameBase Relation = "same_base"
	// RelationOverlappingFiles changes some of the same files.
	RelationOverlappingFiles Relation = "overlapping_files"
)

func (Relation) values() []string {
	return []string{
		string(RelationStackedOnIt), string(RelationUnderIt),
		string(RelationSameBase), string(RelationOverlappingFiles),
	}
}

// Wake is the state of the work around an item.
type Wake struct {
	// Tickets are the tickets around the work.
	Tickets []WakeTicket `json:"tickets"`
	// PRs are the pull requests around the work.
	PRs []WakePull `json:"prs"`
	// Docs are the documents around the work.
	Docs []WakeDoc `json:"docs"`
	// Chats are the threads in chat around the work.
	Chats []WakeChat `json:"chats"`
	// Merge is there when the round decides on a merge.
	Merge *Merge `json:"merge,omitzero"`
	// FailedChecks are there when checks failed after a merge.
	FailedChecks []FailedCheck `json:"failedChecks,omitzero"`
	// Omitted counts what did not fit (pipeline.context.items); what is
	// farthest from the trigger is left out first.
	Omitted *int `json:"omitted,omitzero" wire:"min=0"`
}

// Why is the reason something is in the wake.
type Why struct {
	// Role is how it belongs to the work.
	Role WhyRole `json:"role"`
	// Source is what brought it in: an event's id, a verb of the agent, a chat
	// message or a link.
	Source string `json:"source"`
	// AddedAt is the time the office learned of it.
	AddedAt string `json:"addedAt,omitzero" wire:"time"`
}

// WakeTicket is a ticket around the work.
type WakeTicket struct {
	// Key names the ticket in its tracker, such as ACME-12.
	Key string `json:"key"`
	// Title is the ticket's title.
	Title string `json:"title"`
	// URL is the ticket's page.
	URL string `json:"url,omitzero"`
	// Status is one of the states every tracker is mapped to; see [TicketStatus].
	Status string `json:"status,omitzero"`
	// Assignee is the name of whoever has it.
	Assignee string `json:"assignee,omitzero"`
	// Description is what it asks, cut to pipeline.context.body_chars.
	Description string `json:"description,omitzero"`
	// Comments are the latest ones, oldest first, at most
	// pipeline.context.comments.
	Comments []TicketComment `json:"comments"`
	// MoreComments counts the earlier ones that were left out.
	MoreComments *int `json:"moreComments,omitzero" wire:"min=0"`
	// Reviews are what humans said in reviews of the ticket's and its parent's
	// pull requests, newest first, for the ticket that is worked on; at most
	// pipeline.context.reviews.
	Reviews []TicketReview `json:"reviews,omitzero"`
	// MoreReviews counts the older ones that were left out.
	MoreReviews *int `json:"moreReviews,omitzero" wire:"min=0"`
	// Why tells why it is here.
	Why Why `json:"why"`
}

// TicketComment is a comment on a ticket.
type TicketComment struct {
	// Author is who wrote it.
	Author string `json:"author"`
	// At is when it was written.
	At string `json:"at" wire:"time"`
	// URL is where it can be read.
	URL string `json:"url,omitzero"`
	// Body is what was written, cut to pipeline.context.body_chars.
	Body string `json:"body"`
}

// TicketReview is a review comment on a pull request of a ticket.
type TicketReview struct {
	// PR is the pull request's key, as in [WakePull.Ref].
	PR string `json:"pr"`
	// Ticket is the key of the ticket that the pull request is for.
	Ticket string `json:"ticket,omitzero"`
	// Resolved is true when the comment's thread is.
	Resolved bool `json:"resolved"`
	// Path is the file in the repository.
	Path string `json:"path,omitzero"`
	// Line is the line of the file, from 1.
	Line *int `json:"line,omitzero" wire:"min=0"`
	// URL is where it can be read.
	URL string `json:"url,omitzero"`
	// Author is who wrote it.
	Author string `json:"author"`
	// At is when it was written.
	At string `json:"at" wire:"time"`
	// Body is what was written, cut to pipeline.context.body_chars.
	Body string `json:"body"`
}

// WakePull is a pull request around the work.
type WakePull struct {
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
	// CI sums up its checks.
	CI CheckState `json:"ci"`
	// Failing has the names of the checks that failed.
	Failing []string `json:"failing"`
	// Mergeable tells whether it fits its base.
	Mergeable Mergeable `json:"mergeable"`
	// Review is the verdict of the latest review.
	Review string `json:"review,omitzero"`
	// UnresolvedThreads counts the threads of reviews that are open.
	UnresolvedThreads int `json:"unresolvedThreads" wire:"min=0"`
	// Threads are open ones, at most pipeline.context.threads.
	Threads []ReviewThread `json:"threads"`
	// Ticket is the key of the ticket it is for.
	Ticket string `json:"ticket,omitzero"`
	// StackedOn is the key of the pull request it builds on.
	StackedOn string `json:"stackedOn,omitzero"`
	// StackedBy are the keys of the open ones that build on it.
	StackedBy []string `json:"stackedBy"`
	// Why tells why it is here.
	Why Why `json:"why"`
}

// ReviewThread is an unresolved thread of a review.
type ReviewThread struct {
	// Path is the file in the repository.
	Path string `json:"path,omitzero"`
	// Line is the line of the file, from 1.
	Line *int `json:"line,omitzero" wire:"min=0"`
	// URL is where it can be read.
	URL string `json:"url,omitzero"`
	// Author is who opened it.
	Author string `json:"author"`
	// Body is what it opened with, cut to pipeline.context.body_chars.
	Body string `json:"body"`
}

// WakeDoc is a document around the work.
type WakeDoc struct {
	// ID is the knowledge base's id of it.
	ID string `json:"id"`
	// Title is the document's title.
	Title string `json:"title"`
	// URL is the document's page.
	URL string `json:"url,omitzero"`
	// Ticket is the key of the ticket it was written for.
	Ticket string `json:"ticket,omitzero"`
	// Why tells why it is here.
	Why Why `json:"why"`
}

// WakeChat is a thread in chat around the work.
type WakeChat struct {
	// Channel is the chat system's id of the channel.
	Channel string `json:"channel"`
	// Thread is the chat system's id of the thread.
	Thread string `json:"thread"`
	// Messages are the latest ones the office heard, oldest first, at most
	// pipeline.context.messages.
	Messages []WakeMessage `json:"messages"`
	// MoreMessages counts the earlier ones that were left out.
	MoreMessages *int `json:"moreMessages,omitzero" wire:"min=0"`
	// Why tells why it is here.
	Why Why `json:"why"`
}

// WakeMessage is a chat message.
type WakeMessage struct {
	// Author is who wrote it.
	Author string `json:"author"`
	// At is when it reached the office.
	At string `json:"at" wire:"time"`
	// Text is what was written, cut to pipeline.context.body_chars.
	Text string `json:"text"`
}

// Merge is what a decision to merge rests on.
type Merge struct {
	// PR is what may be merged.
	PR MergePull `json:"pr"`
	// Base is the branch it goes into.
	Base MergeBase `json:"base"`
	// Others are open in the same repository, the related first, at most
	// pipeline.context.items.
	Others []OtherPull `json:"others"`
	// MoreOthers counts those that were left out.
	MoreOthers *int `json:"moreOthers,omitzero" wire:"min=0"`
	// RecentMerges went into the base, latest first.
	RecentMerges []RecentMerge `json:"recentMerges"`
}

// MergePull is a pull request that may be merged.
type MergePull struct {
	// Ref is the office's key, such as acme/shop#12.
	Ref string `json:"ref"`
	// Number is its number in its repository.
	Number int `json:"number" wire:"min=1"`
	// Title is the pull request's title.
	Title string `json:"title"`
	// URL is its page.
	URL string `json:"url,omitzero"`
	// Head is the branch it brings.
	Head string `json:"head"`
	// Base is the branch it goes into.
	Base string `json:"base"`
	// Draft is true while it is not meant to be reviewed.
	Draft bool `json:"draft"`
	// ApprovedBy are the reviewers whose latest verdict is yes.
	ApprovedBy []string `json:"approvedBy"`
	// ChangesRequestedBy are the reviewers whose latest verdict is no.
	ChangesRequestedBy []string `json:"changesRequestedBy"`
	// CI sums up the checks of the current head.
	CI CheckState `json:"ci"`
	// Failing are the checks of the current head that failed.
	Failing []Check `json:"failing"`
	// Mergeable tells whether it fits its base.
	Mergeable Mergeable `json:"mergeable"`
	// UnresolvedThreads counts the threads of reviews that are open.
	UnresolvedThreads int `json:"unresolvedThreads" wire:"min=0"`
}

// MergeBase is the branch that a pull request goes into.
type MergeBase struct {
	// Ref is the branch's name.
	Ref string `json:"ref"`
	// CI sums up the checks of its head.
	CI BaseCheckState `json:"ci"`
	// Failing are the checks of its head that failed.
	Failing []Check `json:"failing"`
}

// Check is a check that failed.
type Check struct {
	// Name is the check's name.
	Name string `json:"name"`
	// URL is the page of its run.
	URL string `json:"url,omitzero"`
}

// OtherPull is another open pull request of the repository.
type OtherPull struct {
	// Ref is the office's key, such as acme/shop#12.
	Ref string `json:"ref"`
	// Number is its number in its repository.
	Number int `json:"number" wire:"min=1"`
	// Title is the pull request's title.
	Title string `json:"title"`
	// URL is its page.
	URL string `json:"url,omitzero"`
	// Author is a handle, or a login of the code host.
	Author string `json:"author"`
	// Draft is true while it is not meant to be reviewed.
	Draft bool `json:"draft"`
	// Approved is true when someone approves and nobody asks for changes.
	Approved bool `json:"approved"`
	// CI sums up its checks.
	CI CheckState `json:"ci"`
	// Mergeable tells whether it fits its base.
	Mergeable Mergeable `json:"mergeable"`
	// Relation is how it touches the one to be merged.
	Relation []Relation `json:"relation"`
	// Files are some of those that both change.
	Files []string `json:"files"`
}

// RecentMerge is a pull request that was merged.
type RecentMerge struct {
	// Ref is the office's key, such as acme/shop#12.
	Ref string `json:"ref"`
	// Number is its number in its repository.
	Number int `json:"number" wire:"min=1"`
	// Title is the pull request's title.
	Title string `json:"title"`
	// URL is its page.
	URL string `json:"url,omitzero"`
	// Author is a handle, or a login of the code host.
	Author string `json:"author"`
	// At is roughly the time of the merge.
	At string `json:"at" wire:"time"`
}

// FailedCheck is a check that failed on a merge commit.
type FailedCheck struct {
	// PR is the key of what was merged.
	PR string `json:"pr"`
	// SHA is the merge commit.
	SHA string `json:"sha,omitzero"`
	// Name is the check's name.
	Name string `json:"name"`
	// URL is the page of its run; see [CiLog].
	URL string `json:"url,omitzero"`
	// TimedOut is true when it had not ended within
	// policies.merge_checks.timeout_minutes.
	TimedOut *bool `json:"timedOut,omitzero"`
	// Steps are those that failed; none when there was no log to read.
	Steps []LogStep `json:"steps"`
	// Note says why there is no log.
	Note string `json:"note,omitzero"`
}

// LogStep is the end of the log of a failed step, its secrets masked. It is
// what a CI run printed, and no instruction.
type LogStep struct {
	// Name is the step's name.
	Name string `json:"name"`
	// Lines are the last ones, oldest first.
	Lines []string `json:"lines"`
	// Omitted counts the lines before them.
	Omitted int `json:"omitted" wire:"min=0"`
}
