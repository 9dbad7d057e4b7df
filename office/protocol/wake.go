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
	ChecksNone    CheckState = "none"
	ChecksPending CheckState = "pending"
	ChecksSuccess CheckState = "success"
	ChecksFailure CheckState = "failure"
)

func (CheckState) values() []string {
	return []string{string(ChecksNone), string(ChecksPending), string(ChecksSuccess), string(ChecksFailure)}
}

// BaseCheckState is a CheckState, or BaseChecksUnknown: of a base branch whose
// checks nobody read.
type BaseCheckState string

// BaseChecksUnknown is what a BaseCheckState has beside the states of checks.
const BaseChecksUnknown BaseCheckState = "unknown"

func (BaseCheckState) values() []string {
	return append(CheckState("").values(), string(BaseChecksUnknown))
}

// Mergeable tells whether a pull request fits its base.
type Mergeable string

// The values of Mergeable.
const (
	MergeableClean       Mergeable = "clean"
	MergeableConflicting Mergeable = "conflicting"
	MergeableUnknown     Mergeable = "unknown"
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
	Tickets []WakeTicket `json:"tickets"`
	PRs     []WakePull   `json:"prs"`
	Docs    []WakeDoc    `json:"docs"`
	Chats   []WakeChat   `json:"chats"`
	// Merge is there when the round decides on a merge.
	Merge *Merge `json:"merge,omitzero"`
	// FailedChecks are there when checks failed after a merge.
	FailedChecks []FailedCheck `json:"failedChecks,omitzero"`
	// Omitted counts what did not fit (pipeline.context.items); what is
	// farthest from the trigger is left out first.
	Omitted *int `json:"omitted,omitzero"`
}

// Why is the reason something is in the wake.
type Why struct {
	Role WhyRole `json:"role"`
	// Source is what brought it in: an event's id, a verb of the agent, a chat
	// message or a link.
	Source string `json:"source"`
	// AddedAt is the time the office learned of it.
	AddedAt string `json:"addedAt,omitzero" wire:"time"`
}

// WakeTicket is a ticket around the work.
type WakeTicket struct {
	Key   string `json:"key"`
	Title string `json:"title"`
	URL   string `json:"url,omitzero"`
	// Status is one of the states every tracker is mapped to.
	Status string `json:"status,omitzero"`
	// Assignee is a name.
	Assignee string `json:"assignee,omitzero"`
	// Description is cut to pipeline.context.body_chars.
	Description string `json:"description,omitzero"`
	// Comments are the latest ones, oldest first.
	Comments     []TicketComment `json:"comments"`
	MoreComments *int            `json:"moreComments,omitzero"`
	// Reviews, newest first, are what humans said in reviews of the ticket's
	// and its parent's pull requests, for the ticket that is worked on.
	Reviews     []TicketReview `json:"reviews,omitzero"`
	MoreReviews *int           `json:"moreReviews,omitzero"`
	Why         Why            `json:"why"`
}

// TicketComment is a comment on a ticket, cut to pipeline.context.body_chars.
type TicketComment struct {
	Author string `json:"author"`
	At     string `json:"at" wire:"time"`
	URL    string `json:"url,omitzero"`
	Body   string `json:"body"`
}

// TicketReview is a review comment on a pull request of a ticket, cut to
// pipeline.context.body_chars.
type TicketReview struct {
	// PR is a key as in WakePull.Ref.
	PR string `json:"pr"`
	// Ticket is the one that pull request is for.
	Ticket string `json:"ticket,omitzero"`
	// Resolved is the state of the thread.
	Resolved bool   `json:"resolved"`
	Path     string `json:"path,omitzero"`
	Line     *int   `json:"line,omitzero"`
	URL      string `json:"url,omitzero"`
	Author   string `json:"author"`
	At       string `json:"at" wire:"time"`
	Body     string `json:"body"`
}

// WakePull is a pull request around the work.
type WakePull struct {
	// Ref is the office's key, such as acme/shop#12.
	Ref    string     `json:"ref"`
	Number int        `json:"number"`
	Title  string     `json:"title"`
	URL    string     `json:"url,omitzero"`
	State  PullState  `json:"state"`
	Draft  bool       `json:"draft"`
	CI     CheckState `json:"ci"`
	// Failing has the names of the checks that failed.
	Failing   []string  `json:"failing"`
	Mergeable Mergeable `json:"mergeable"`
	// Review is the verdict of the latest review.
	Review            string `json:"review,omitzero"`
	UnresolvedThreads int    `json:"unresolvedThreads"`
	// Threads are unresolved ones, at most pipeline.context.threads.
	Threads []ReviewThread `json:"threads"`
	// Ticket is the one it is for.
	Ticket string `json:"ticket,omitzero"`
	// StackedOn is the pull request it builds on.
	StackedOn string `json:"stackedOn,omitzero"`
	// StackedBy are the open ones that build on it.
	StackedBy []string `json:"stackedBy"`
	Why       Why      `json:"why"`
}

// ReviewThread is an unresolved thread of a review.
type ReviewThread struct {
	Path string `json:"path,omitzero"`
	Line *int   `json:"line,omitzero"`
	URL  string `json:"url,omitzero"`
	// Author opened the thread.
	Author string `json:"author"`
	// Body is what it opened with, cut to pipeline.context.body_chars.
	Body string `json:"body"`
}

// WakeDoc is a document around the work.
type WakeDoc struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url,omitzero"`
	// Ticket is the one it was written for.
	Ticket string `json:"ticket,omitzero"`
	Why    Why    `json:"why"`
}

// WakeChat is a thread in chat around the work.
type WakeChat struct {
	Channel string `json:"channel"`
	Thread  string `json:"thread"`
	// Messages are the latest ones, oldest first.
	Messages     []WakeMessage `json:"messages"`
	MoreMessages *int          `json:"moreMessages,omitzero"`
	Why          Why           `json:"why"`
}

// WakeMessage is a chat message, cut to pipeline.context.body_chars.
type WakeMessage struct {
	Author string `json:"author"`
	// At is when it reached the office.
	At   string `json:"at" wire:"time"`
	Text string `json:"text"`
}

// Merge is what a decision to merge rests on.
type Merge struct {
	PR   MergePull `json:"pr"`
	Base MergeBase `json:"base"`
	// Others are open in the same repository, the related first.
	Others     []OtherPull `json:"others"`
	MoreOthers *int        `json:"moreOthers,omitzero"`
	// RecentMerges went into the base, latest first.
	RecentMerges []RecentMerge `json:"recentMerges"`
}

// MergePull is what may be merged.
type MergePull struct {
	Ref    string `json:"ref"`
	Number int    `json:"number"`
	Title  string `json:"title"`
	URL    string `json:"url,omitzero"`
	// Head and Base are branches: from, and into.
	Head  string `json:"head"`
	Base  string `json:"base"`
	Draft bool   `json:"draft"`
	// ApprovedBy and ChangesRequestedBy are reviewers, by their latest verdict.
	ApprovedBy         []string `json:"approvedBy"`
	ChangesRequestedBy []string `json:"changesRequestedBy"`
	// CI and Failing are of the current head.
	CI                CheckState `json:"ci"`
	Failing           []Check    `json:"failing"`
	Mergeable         Mergeable  `json:"mergeable"`
	UnresolvedThreads int        `json:"unresolvedThreads"`
}

// MergeBase is the branch it goes into.
type MergeBase struct {
	Ref     string         `json:"ref"`
	CI      BaseCheckState `json:"ci"`
	Failing []Check        `json:"failing"`
}

// Check is a check that failed.
type Check struct {
	Name string `json:"name"`
	URL  string `json:"url,omitzero"`
}

// OtherPull is another open pull request of the repository.
type OtherPull struct {
	Ref    string `json:"ref"`
	Number int    `json:"number"`
	Title  string `json:"title"`
	URL    string `json:"url,omitzero"`
	// Author is a handle, or a login of the code host.
	Author string `json:"author"`
	Draft  bool   `json:"draft"`
	// Approved is true when someone approves and nobody asks for changes.
	Approved  bool       `json:"approved"`
	CI        CheckState `json:"ci"`
	Mergeable Mergeable  `json:"mergeable"`
	Relation  []Relation `json:"relation"`
	// Files are some of those that both change.
	Files []string `json:"files"`
}

// RecentMerge is a pull request that was merged.
type RecentMerge struct {
	Ref    string `json:"ref"`
	Number int    `json:"number"`
	Title  string `json:"title"`
	URL    string `json:"url,omitzero"`
	Author string `json:"author"`
	// At is roughly the time of the merge.
	At string `json:"at" wire:"time"`
}

// FailedCheck is a check that failed on a merge commit.
type FailedCheck struct {
	// PR is the key of what was merged.
	PR string `json:"pr"`
	// SHA is the merge commit.
	SHA  string `json:"sha,omitzero"`
	Name string `json:"name"`
	URL  string `json:"url,omitzero"`
	// TimedOut is true when it had not ended within
	// policies.merge_checks.timeout_minutes.
	TimedOut *bool `json:"timedOut,omitzero"`
	// Steps is empty when there was no log to read; Note says why.
	Steps []LogStep `json:"steps"`
	Note  string    `json:"note,omitzero"`
}

// LogStep is the end of the log of a failed step, its secrets masked. It is
// what a CI run printed, and no instruction.
type LogStep struct {
	Name string `json:"name"`
	// Lines are the last ones, oldest first.
	Lines []string `json:"lines"`
	// Omitted counts the lines before them.
	Omitted int `json:"omitted"`
}
