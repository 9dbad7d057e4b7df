// Package store is the interface of the office's memory: everything that happened, durable before it is acknowledged.
//
// One store belongs to one office at a time. All changes go through Update, whose functions run one after another; an
// Update that returned nil is on disk. Backends live in folders below and pass the one suite in storetest.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// ErrNotFound says that the store has no such thing. Test for it with errors.Is.
var ErrNotFound = errors.New("not in the store")

// ErrQuery is what a search gets whose query cannot be understood; the text around it says why. Test for it with errors.Is.
var ErrQuery = errors.New("the query cannot be understood")

// ErrClosed is what a transaction gets that did not begin before the store was closed.
var ErrClosed = errors.New("the store is closed")

// Store is durable memory with one writer and many readers.
type Store interface {
	// ID identifies this store's life: a new or another store has another one.
	ID() string
	// Update runs fn in a transaction. When it returns nil, what fn did is durable; when it returns an error (of fn, of the
	// commit, or of ctx before fn began), nothing of it happened. fn may run beside others in one group commit, each of
	// which sees the effects of those before it; it must not keep tx, nor call Update itself, which would wait for ever. An
	// error of the disk fails the Update even if fn drops it. A panic of fn is its caller's.
	Update(ctx context.Context, fn func(tx Tx) error) error
	// View runs fn on a consistent snapshot of what is committed. A read that ctx ends gives ctx's error.
	View(ctx context.Context, fn func(r Reader) error) error
	// Healthy is nil while the last commit succeeded, else why it did not. A store that could not write tries again by
	// itself until it can, also when nobody calls Update.
	Healthy() error
	// Close ends the store after what is running; it releases it for another office.
	Close() error
}

// Reader reads the store. Every method that names one thing returns ErrNotFound where there is none; sums and counts of
// nothing are zero, lists of nothing empty. A limit that is not positive is none.
type Reader interface {
	// Revision is the number of the last change to an item; it only grows.
	Revision() (int64, error)

	Team(key model.TeamKey) (model.Team, error)
	Teams() ([]model.Team, error)

	Person(uid string) (model.Person, error)
	// PersonByKey finds who has the handle: of two people with one handle, the older object (then the lower UID).
	PersonByKey(key model.PersonKey) (model.Person, error)
	// People lists a team's people, by handle.
	People(team model.TeamKey) ([]model.Person, error)
	// AllPeople lists everybody, by team and handle.
	AllPeople() ([]model.Person, error)

	Item(id string) (model.Item, error)
	// ItemByName finds the live item of that name; a Gone one is not found. If an object was made again before its
	// predecessor's deletion was noticed, the newer one is found.
	ItemByName(namespace, name string) (model.Item, error)
	// Current gives the item that the person has an offer of or runs (Round != nil, and of that person), at most one by
	// construction.
	Current(key model.PersonKey) (model.Item, error)
	// LatestByName finds the live item of that name, else the one of that name that was gone last.
	LatestByName(namespace, name string) (model.Item, error)
	// Candidates gives the queued items without a round which this person may be offered at now: its own (assigned to it, or
	// asked of it), and those of its role (if that is not empty) that nobody has. Left out are items with a NotBefore
	// after now, and items with a hold, except the hold model.ReasonBudgetExhausted. In the order in which they run: front
	// first, then by Item.Rank. next is the earliest NotBefore after now among those that only their
	// NotBefore left out; zero is none.
	Candidates(key model.PersonKey, role string, now time.Time, limit int) (items []model.Item, next time.Time, err error)
	// NextHeld gives the item after that one, in the order in which they run, among those of the team that its budgets as a whole hold:
	// nothing else, but for their NotBefore, keeps them from being offered. nil is before the first.
	NextHeld(team model.TeamKey, after *model.Item) (model.Item, error)
	// ItemsOf lists the items that the person has: assigned to it, or asked of it and assigned to nobody. Without gone ones,
	// and without done and canceled ones unless all is true; in the order in which they run; at most limit.
	ItemsOf(key model.PersonKey, all bool, limit int) ([]model.Item, error)
	// Queued counts those of ItemsOf that are queued, also if held or offered.
	Queued(key model.PersonKey) (int, error)
	// Unfinished lists ids of a team's items that are neither done nor canceled nor gone.
	Unfinished(team model.TeamKey) ([]string, error)
	// CountItems counts a team's items by state, without gone ones.
	CountItems(team model.TeamKey) (map[protocol.WorkItemState]int, error)
	// ItemByObject finds the item whose object has the UID: its id is the UID, or Birth.ObjectUID is.
	ItemByObject(uid string) (model.Item, error)
	// LiveItems lists the UIDs of the objects of all items that are not gone: Birth.ObjectUID of those that have a Birth, without
	// those that have no object yet, and the ids of the others.
	LiveItems() ([]string, error)
	// Dependents lists ids of unfinished items of the namespace that depend on the item of that name.
	Dependents(namespace, name string) ([]string, error)
	// Tombstone finds the id of the last Gone item with that name and spec hash whose TTL removed it.
	Tombstone(namespace, name, hash string) (string, error)

	// Rounds lists an item's rounds, oldest first.
	Rounds(itemID string) ([]model.Round, error)
	// Journal lists an item's journal, oldest first.
	Journal(itemID string) ([]model.JournalEntry, error)

	// SessionTotals gives the last running totals of one session and model of an item; zero where none were reported.
	SessionTotals(itemID, session, modelID string) (model.Usage, error)
	// ItemModels adds an item's ledger up by model, largest token count first.
	ItemModels(itemID string) ([]model.ModelUsage, error)
	// PersonUsage and TeamUsage add the ledger up.
	PersonUsage(key model.PersonKey) (model.Usage, error)
	TeamUsage(key model.TeamKey) (model.Usage, error)
	// RecentRounds adds up what the team's latest rounds used, of some dozens.
	RecentRounds(team model.TeamKey) (model.Rounds, error)
	// Unpriced lists the team's usage whose cost nobody knows, added up by item, session and model. The tokens of an entry are those
	// that were counted without a cost, its UnpricedTokens as many of them as are still without one.
	Unpriced(team model.TeamKey) ([]model.LedgerEntry, error)
	// RunningRounds counts the items of the team, and of them those of the person, that have a round.
	RunningRounds(key model.PersonKey) (team, person int, err error)
	// Busy lists the handles of those of the team who have a round.
	Busy(team model.TeamKey) ([]string, error)

	// TicketUsage adds up what the rounds of all items used that are about the ticket, by person, model and kind: those whose subject
	// it is, and those with a ref to it. runs counts their accepted rounds by person and kind (Model empty, Usage zero).
	TicketUsage(team model.TeamKey, ticket string) (shares []model.TicketShare, runs []model.TicketRuns, err error)

	// Unborn lists items of Birth without an object, oldest first: neither gone nor told to have one.
	Unborn() ([]model.Item, error)

	// Feedback lists an item's feedback with a number above after, in order.
	Feedback(itemID string, after int64) ([]model.Feedback, error)

	// Refs lists an item's refs, in the order in which they were put.
	Refs(itemID string) ([]model.Ref, error)
	// ItemsAbout lists ids of the team's items that have a ref to the place or whose subject it is, without gone ones; latest created first.
	ItemsAbout(team model.TeamKey, place model.Place) ([]string, error)

	// Threads lists the chat threads of an item, in the order in which they were linked.
	Threads(itemID string) ([]model.Thread, error)
	// ItemsInThread lists ids of the items linked to a thread that the person hears, also gone ones; the latest linked first.
	ItemsInThread(key model.PersonKey, channel, thread string) ([]string, error)

	// Event gives an event that was taken in.
	Event(team model.TeamKey, source, id string) (model.Event, error)

	// Act gives an act; OpenActs lists those that the person has not answered, oldest first.
	Act(team model.TeamKey, id string) (model.Act, error)
	OpenActs(key model.PersonKey) ([]model.Act, error)

	// Report gives a report; OpenReports lists those that the person has not confirmed, oldest first.
	Report(id string) (model.Report, error)
	OpenReports(key model.PersonKey) ([]model.Report, error)
	// DueReports lists those that were neither sent nor confirmed, by NotBefore, at most limit.
	DueReports(key model.PersonKey, limit int) ([]model.Report, error)

	Ticket(team model.TeamKey, key string) (model.Ticket, error)
	// TicketsOf lists the open tickets assigned to any of these names; SubTickets those whose parent is the ticket. By key.
	TicketsOf(team model.TeamKey, assignees []string) ([]model.Ticket, error)
	SubTickets(team model.TeamKey, parent string) ([]model.Ticket, error)
	// TicketPrefixes lists what stands before the number in the keys of known tickets, such as ACME.
	TicketPrefixes(team model.TeamKey) ([]string, error)

	Pull(team model.TeamKey, ref string) (model.Pull, error)
	// Pulls lists pull requests: open ones first, the newest first, then those that ended, the latest first. more counts the matches
	// beyond the limit.
	Pulls(team model.TeamKey, filter model.PullFilter) (pulls []model.Pull, more int, err error)

	Doc(team model.TeamKey, id string) (model.Doc, error)
	// DocsFor lists the documents written for a ticket, by id.
	DocsFor(team model.TeamKey, ticket string) ([]model.Doc, error)

	// Remarks lists the latest remarks at a place, oldest first, at most limit, and counts all there are.
	Remarks(team model.TeamKey, place model.Place, limit int) (remarks []model.Remark, total int, err error)
	Remark(team model.TeamKey, place model.Place, id string) (model.Remark, error)

	// Recall searches what the person has to do with: its items (title, body, feedback from nowhere else, and how their rounds ended),
	// their journals, the remarks at places that they refer to, and what was said in its chat threads, whenever it was linked to them. A
	// query is words, in any form, "phrases", alternatives with or between two of them, and -words or -"phrases" to leave out. Newest
	// first, to the microsecond; more says that older ones match too. A query without anything to look for, or otherwise
	// not to be understood, gives ErrQuery. A search may also be refused for a while after a store lost what it searches with.
	Recall(q model.Recall) (moments []model.Moment, more bool, err error)

	// Seen says whether FirstTime was given the key for this item.
	Seen(itemID string, key [32]byte) (bool, error)

	// Session gives a session, SessionOf the latest one of an item.
	Session(id string) (model.Session, error)
	SessionOf(itemID string) (model.Session, error)
	// Sessions lists sessions, the latest made first, then by id downwards, at most limit.
	Sessions(filter model.SessionFilter, limit int) ([]model.Session, error)
	// Messages gives those of a session's messages that have these ids, in that order; ids without a message are left out.
	Messages(sessionID string, ids []string) ([]model.Message, error)
	// Frozen gives what was stored under a hash.
	Frozen(hash string) ([]byte, error)
	// Emitted lists the records that wait to be appended to feeds, with a number above after, in order, at most limit.
	Emitted(after int64, limit int) ([]model.Emitted, error)

	// Windows gives the last usage report of a subscription.
	Windows(team model.TeamKey, subscription string) (model.Windows, error)
	// Doctor gives a person's last report.
	Doctor(personUID string) (model.Doctor, error)
}

// Tx reads and writes. Writes are seen by later reads of the same transaction. What is written about an item or a person
// that the store does not have gives ErrNotFound.
type Tx interface {
	Reader

	PutTeam(model.Team) error
	// DeleteTeam and DeletePerson delete nothing where there is nothing. A person's doctor's report goes with it.
	DeleteTeam(model.TeamKey) error
	PutPerson(model.Person) error
	DeletePerson(uid string) error

	// PutItem stores the item under a new revision, which it sets in the item. It refuses a round of a person who has a
	// round of another item. An item that is put with Gone false has no tombstone.
	PutItem(*model.Item) error
	// Bury marks a finished item gone and leaves a tombstone of its name and spec hash. It refuses an unfinished one.
	Bury(id string) error

	// PutRound stores a round by item and number. It refuses a second open round (EndedAt zero) of one item.
	PutRound(model.Round) error
	AppendJournal(model.JournalEntry) error

	// AddUsage adds an entry to the ledger and remembers totals as the last ones of its item, session and model.
	AddUsage(entry model.LedgerEntry, totals model.Usage, at time.Time) error
	PutWindows(model.Windows) error
	PutDoctor(personUID string, d model.Doctor) error

	// AppendFeedback gives the feedback its number and stores it. It says false, and stores nothing, where the item has feedback with
	// this key; an empty key is never a repeat.
	AppendFeedback(*model.Feedback) (bool, error)
	// PutRef stores a ref unless the item has one to that place; LinkThread a thread unless the item has it, whoever hears it.
	PutRef(model.Ref) error
	LinkThread(model.Thread) error

	// FirstEvent says whether the event was never taken in, and stores it then. PutEvent stores an event, over what the store has of it.
	FirstEvent(model.Event) (bool, error)
	PutEvent(model.Event) error

	// PutAct and PutReport replace what the store has under the same id.
	PutAct(model.Act) error
	PutReport(model.Report) error

	// These replace what the store has under the same key, ref or id. Remarks of one thread are resolved together by ResolveThread.
	PutTicket(model.Ticket) error
	PutPull(model.Pull) error
	PutDoc(model.Doc) error
	PutRemark(model.Remark) error
	ResolveThread(team model.TeamKey, place model.Place, threadID string, resolved bool) error

	// PutSession and PutMessage replace what the store has under the same id; a message's session must be there.
	PutSession(model.Session) error
	PutMessage(model.Message) error
	// PutFrozen stores what sessions were started with, unless it is there.
	PutFrozen(hash string, body []byte) error
	// Emit gives a record that the office writes into a feed its number and keeps it; DropEmitted forgets those up to a number, once the
	// feed has them.
	Emit(*model.Emitted) error
	DropEmitted(upTo int64) error

	// FirstTime says whether the key was never given before for this item, and remembers it: how repeats of a message are
	// recognised, durably.
	FirstTime(itemID string, key [32]byte, at time.Time) (bool, error)
}
