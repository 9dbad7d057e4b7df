package protocol

// This file holds the messages about a person's queue: what is in it, in which
// order, and how a chat session adds to it. For each of them the office knows
// the caller from the connection; nobody moves another one's work.

// ItemState is a [WorkItemState], or one of the two answers about an item that
// the caller may learn nothing of.
type ItemState string

// What an ItemState has beside the states of a work item.
const (
	// ItemNotYours is another person's, whatever its state.
	ItemNotYours ItemState = "not_yours"
	// ItemUnknown does not exist here.
	ItemUnknown ItemState = "unknown"
)

func (ItemState) values() []string {
	return []string{
		string(StateQueued), string(StateActive), string(StateWaiting), string(StateBlocked),
		string(StateDone), string(StateCanceled), string(ItemNotYours), string(ItemUnknown),
	}
}

// MoveStatus is a state that a person may put an own item into.
type MoveStatus string

// The states an item can be moved to.
const (
	// MoveQueued has it offered again.
	MoveQueued MoveStatus = MoveStatus(StateQueued)
	// MoveBlocked leaves it to a human.
	MoveBlocked MoveStatus = MoveStatus(StateBlocked)
	// MoveCanceled gives it up.
	MoveCanceled MoveStatus = MoveStatus(StateCanceled)
)

func (MoveStatus) values() []string {
	return []string{string(MoveQueued), string(MoveBlocked), string(MoveCanceled)}
}

// Position is a place among the queued items.
type Position string

// The positions.
const (
	// PositionNext is before all others.
	PositionNext Position = "next"
	// PositionLast is after all others.
	PositionLast Position = "last"
	// PositionBefore is right before the item that is named.
	PositionBefore Position = "before"
	// PositionAfter is right after the item that is named.
	PositionAfter Position = "after"
)

func (Position) values() []string {
	return []string{string(PositionNext), string(PositionLast), string(PositionBefore), string(PositionAfter)}
}

// WorkRef is a work item in short.
type WorkRef struct {
	// ID is the item's id.
	ID string `json:"id"`
	// Title is the item's title.
	Title string `json:"title"`
	// Status is the item's state, a [WorkItemState].
	Status WorkItemState `json:"status"`
	// Kind is what sort of work it is, such as review_feedback.
	Kind string `json:"kind,omitzero"`
	// TicketKey is the key of the ticket it is about.
	TicketKey string `json:"ticketKey,omitzero"`
	// TicketTitle is the title of that ticket.
	TicketTitle string `json:"ticketTitle,omitzero"`
	// PR is the key of the pull request it is about, as in [WakePull.Ref].
	PR string `json:"pr,omitzero"`
	// PRNumber is the number of that pull request.
	PRNumber *int `json:"prNumber,omitzero" wire:"min=1"`
	// PRTitle is the title of that pull request.
	PRTitle string `json:"prTitle,omitzero"`
	// PRURL is the page of that pull request.
	PRURL string `json:"prUrl,omitzero"`
	// Current is true for the item that the request named.
	Current *bool `json:"current,omitzero"`
}

// WorkMade tells what the caller made during an item: a ticket, or a pull
// request and its ticket. Sent by the agent; answered by [Ack] or [Error]. Such
// a ticket goes to the requester for review together with the item.
type WorkMade struct {
	// WorkItemID is the item that it was made in.
	WorkItemID string `json:"workItemId"`
	// Ticket is the key of the one that was made; beside a pull request, of the
	// one that the pull request is for.
	Ticket string `json:"ticket,omitzero"`
	// PR is the pull request that was opened.
	PR *MadePull `json:"pr,omitzero"`
}

// MadePull is a pull request the caller opened.
type MadePull struct {
	// Repo is the repository it is in.
	Repo Repo `json:"repo"`
	// Number is its number there.
	Number int `json:"number" wire:"min=1"`
	// URL is its page.
	URL string `json:"url,omitzero"`
}

// Repo names a repository.
type Repo struct {
	// Owner is the user or the organisation it belongs to.
	Owner string `json:"owner"`
	// Name is the repository's name.
	Name string `json:"name"`
	// Host is the code host; it is there when the team uses more than one.
	Host string `json:"host,omitzero"`
}

// WorkList asks for the caller's items. Sent by the agent; answered by
// [WorkListResult] or [Error].
type WorkList struct {
	// WorkItemID is the item the caller is at, to be marked as current.
	WorkItemID string `json:"workItemId,omitzero"`
}

// WorkListResult has the caller's items. Sent by the office; it takes no
// answer.
type WorkListResult struct {
	// Items are in the order in which they run.
	Items []WorkRef `json:"items"`
}

// WorkStatus asks how some items stand, for example to clear the folders of
// those that are over. Sent by the agent; answered by [WorkStatusResult] or
// [Error].
type WorkStatus struct {
	// WorkItemIDs are the items to ask about.
	WorkItemIDs []string `json:"workItemIds"`
}

// WorkStatusResult has one entry for each id asked about, in that order. Sent
// by the office; it takes no answer.
type WorkStatusResult struct {
	// Items has the entries.
	Items []ItemStatus `json:"items"`
}

// ItemStatus is how one item stands.
type ItemStatus struct {
	// WorkItemID is the id that was asked about.
	WorkItemID string `json:"workItemId"`
	// State is how it stands: a [WorkItemState], or that the caller may not
	// know.
	State ItemState `json:"state"`
}

// WorkMove puts an own item into another state. Sent by the agent; answered by
// [WorkMoveResult] or [Error].
type WorkMove struct {
	// WorkItemID is the item to move.
	WorkItemID string `json:"workItemId"`
	// Status is the state to put it into.
	Status MoveStatus `json:"status"`
}

// WorkMoveResult is the item after a move or a placement. Sent by the office;
// it takes no answer.
type WorkMoveResult struct {
	// Item is how it stands now.
	Item WorkRef `json:"item"`
}

// WorkPlace puts an own queued item elsewhere in the queue. Sent by the agent;
// answered by [WorkMoveResult] or [Error].
type WorkPlace struct {
	// WorkItemID is the item to place.
	WorkItemID string `json:"workItemId"`
	// Position is where among the queued items it goes.
	Position Position `json:"position"`
	// RelativeTo is the queued item that [PositionBefore] and [PositionAfter]
	// need; without it they are answered with [CodeInvalid].
	RelativeTo string `json:"relativeTo,omitzero"`
}

// WorkLink makes work of a ticket that a chat session created, in the session's
// thread. Sent by the agent; answered by [WorkLinkResult] or [Error]. Only a
// chat session may.
type WorkLink struct {
	// WorkItemID is the chat session.
	WorkItemID string `json:"workItemId"`
	// Ticket is the new ticket's key.
	Ticket string `json:"ticket"`
	// Request is the title of what was asked.
	Request string `json:"request"`
}

// WorkFileFor tells that a chat session created a ticket for someone else, who
// learns of it from the tracker; no item is made. Sent by the agent; answered
// by [Ack] or [Error]. Only a chat session may.
type WorkFileFor struct {
	// WorkItemID is the chat session.
	WorkItemID string `json:"workItemId"`
	// Ticket is the new ticket's key.
	Ticket string `json:"ticket"`
	// Request is the title of what was asked.
	Request string `json:"request"`
	// Assignee is the tracker's name for whoever it was filed for.
	Assignee string `json:"assignee"`
}

// WorkCheck makes sure, before a chat session makes a ticket, that the request
// may be filed. Sent by the agent; answered by [Ack] or [Error]. A request that
// was filed already is refused.
type WorkCheck struct {
	// WorkItemID is the chat session.
	WorkItemID string `json:"workItemId"`
	// Request is the title of what was asked.
	Request string `json:"request"`
}

// WorkLinkResult is the item made for a ticket. Sent by the office; it takes no
// answer.
type WorkLinkResult struct {
	// URL is the ticket's page.
	URL string `json:"url,omitzero"`
	// Item is the new work.
	Item WorkRef `json:"item"`
	// Waiting tells that the person has other work, so the item stands last for
	// now and the requester should choose its place. Otherwise it starts at once.
	Waiting bool `json:"waiting"`
	// Work is what else is open, in order: the places to choose from.
	Work []WorkRef `json:"work"`
}

// WorkQueue makes work of a request where there is no tracker, in the session's
// thread. Sent by the agent; answered by [WorkQueueResult] or [Error]. Only a
// chat session may.
type WorkQueue struct {
	// WorkItemID is the chat session.
	WorkItemID string `json:"workItemId"`
	// Title is the new item's title, a few words.
	Title string `json:"title"`
	// Body is what is asked, and why.
	Body string `json:"body,omitzero"`
}

// WorkQueueResult is the item made for a request. Sent by the office; it takes
// no answer.
type WorkQueueResult struct {
	// URL is the page of the item's ticket, where it has one.
	URL string `json:"url,omitzero"`
	// Item is the new work.
	Item WorkRef `json:"item"`
	// Waiting tells that the person has other work, so the item stands last for
	// now and the requester should choose its place. Otherwise it starts at once.
	Waiting bool `json:"waiting"`
	// Work is what else is open, in order: the places to choose from.
	Work []WorkRef `json:"work"`
}

// WorkAttach adds a request to work the caller already has, as a round with the
// human's message as feedback; the thread then belongs to that work. Sent by
// the agent; answered by [WorkAttachResult] or [Error]. Refused for work of
// others, for work that is over, and, unless confirmed, for what is being
// reviewed.
type WorkAttach struct {
	// WorkItemID is the chat session.
	WorkItemID string `json:"workItemId"`
	// Target is a ticket by its key, or a pull request by number (12 or #12), by
	// key (acme/shop#12) or by link.
	Target string `json:"target"`
	// Confirmed is true when the requester agreed, in the thread, to add to
	// something that is being reviewed.
	Confirmed *bool `json:"confirmed,omitzero"`
	// Request is what to add, when it is not the session's own message.
	Request string `json:"request,omitzero"`
}

// WorkAttachResult is the work that has the request now. Sent by the office; it
// takes no answer.
type WorkAttachResult struct {
	// URL is the page of the ticket.
	URL string `json:"url,omitzero"`
	// Item is the work that the request was added to.
	Item WorkRef `json:"item"`
	// Waiting tells that the person has other work, so the item stands last for
	// now and the requester should choose its place. Otherwise it starts at once.
	Waiting bool `json:"waiting"`
	// Work is what else is open, in order: the places to choose from.
	Work []WorkRef `json:"work"`
	// Attached is the ticket or the pull request that was meant.
	Attached Attached `json:"attached"`
}

// Attached is what a request was added to.
type Attached struct {
	// Ticket is there when it was a ticket, or a pull request has one.
	Ticket *Subject `json:"ticket,omitzero"`
	// PR is there when it was a pull request.
	PR *Subject `json:"pr,omitzero"`
}

// Type returns TypeWorkMade.
func (WorkMade) Type() Type { return TypeWorkMade }

// Type returns TypeWorkList.
func (WorkList) Type() Type { return TypeWorkList }

// Type returns TypeWorkListResult.
func (WorkListResult) Type() Type { return TypeWorkListResult }

// Type returns TypeWorkStatus.
func (WorkStatus) Type() Type { return TypeWorkStatus }

// Type returns TypeWorkStatusResult.
func (WorkStatusResult) Type() Type { return TypeWorkStatusResult }

// Type returns TypeWorkMove.
func (WorkMove) Type() Type { return TypeWorkMove }

// Type returns TypeWorkMoveResult.
func (WorkMoveResult) Type() Type { return TypeWorkMoveResult }

// Type returns TypeWorkPlace.
func (WorkPlace) Type() Type { return TypeWorkPlace }

// Type returns TypeWorkLink.
func (WorkLink) Type() Type { return TypeWorkLink }

// Type returns TypeWorkFileFor.
func (WorkFileFor) Type() Type { return TypeWorkFileFor }

// Type returns TypeWorkCheck.
func (WorkCheck) Type() Type { return TypeWorkCheck }

// Type returns TypeWorkLinkResult.
func (WorkLinkResult) Type() Type { return TypeWorkLinkResult }

// Type returns TypeWorkQueue.
func (WorkQueue) Type() Type { return TypeWorkQueue }

// Type returns TypeWorkQueueResult.
func (WorkQueueResult) Type() Type { return TypeWorkQueueResult }

// Type returns TypeWorkAttach.
func (WorkAttach) Type() Type { return TypeWorkAttach }

// Type returns TypeWorkAttachResult.
func (WorkAttachResult) Type() Type { return TypeWorkAttachResult }
