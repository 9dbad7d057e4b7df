package agent

// This file decides what an agent does with its work items. Nothing here has a clock, a disk or a network: events go in,
// actions come out, and the agent carries them out in order.

import (
	"fmt"
	"slices"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// phase is where an item's last round stands, as the home remembers it.
type phase string

const (
	// phaseOffered: the round was not begun.
	phaseOffered phase = "offered"
	// phaseStarted: the office counts on this agent to finish the round.
	phaseStarted phase = "started"
	// phaseEnded: the round was handed back or given up.
	phaseEnded phase = "ended"
)

// item is what the home remembers of a work item.
type item struct {
	id    string
	phase phase
	// round counts the rounds that were begun here.
	round int
	// session is the runtime session that the round resumes or reported.
	session string
	// offerID is the id of the offer's frame, by which records name the round; empty for what an earlier release took.
	offerID string
	offer   protocol.Offer
	payload []byte // of the offer, as it came
	// ending is how the last round ended: Handback, Fail, or nil if it was given up.
	ending protocol.Message
	// prepared says that the hook for a fresh folder ran.
	prepared bool
	// made is what the round in hand announced to be looked at.
	made []string
	// touched is the Unix time of the last change.
	touched int64
}

// why is why a run was told to stop.
type why int

const (
	goesOn why = iota
	// shutdown: the agent ends; the round is handed back.
	shutdown
	// dropped: the office no longer counts on this run.
	dropped
	// replaced: another agent serves this person.
	replaced
)

// current is the one round the agent has in hand.
type current struct {
	id string
	// seq tells rounds of one process apart.
	seq int
	// running is false while the accept is not acknowledged.
	running bool
	stopped why
}

// The actions.
type (
	// take saves a fresh offer and accepts it; if it cannot be saved, it is declined.
	take struct{ item item }
	// accept says again that an item is taken.
	accept struct{ id string }
	// decline gives an offer back.
	decline struct{ id, reason string }
	// save remembers an item.
	save struct{ item item }
	// start runs the runtime.
	start struct {
		item    item
		seq     int
		resumed bool
	}
	// stop ends the run; with soon set, nobody waits for what it has to say.
	stop struct {
		seq  int
		soon bool
	}
	// post puts a message into the outbox.
	post struct {
		message protocol.Message
		seq     int
	}
	// unstarted tells of a round that was handed back before it was begun.
	unstarted struct {
		item   item
		ending protocol.Message
	}
)

// action is one of the above.
type action any

// machine is the state that decisions are made from.
type machine struct {
	items   map[string]*item
	current *current
	// resumes wait for their turn; next is an offer that does.
	resumes []string
	next    *offered
	// endings counts the messages of the outbox that end a round, by item.
	endings map[string]int
	seq     int
	online  bool
	// draining: the agent shuts down.
	draining bool
	// unfit is why offers are declined; empty if they are not.
	unfit string
}

// offered is an offer with its payload as it came, and the id of its frame.
type offered struct {
	offer   protocol.Offer
	payload []byte
	id      string
}

func newMachine(items map[string]*item) *machine {
	return &machine{items: items, endings: map[string]int{}}
}

// endedItem returns the item whose round a message ends.
func endedItem(m protocol.Message) (string, bool) {
	switch m := m.(type) {
	case protocol.Handback:
		return m.WorkItemID, true
	case protocol.Fail:
		return m.WorkItemID, true
	}
	return "", false
}

// welcome takes the office's list of the items it counts on.
func (m *machine) welcome(resume []string) []action {
	m.online = true
	m.next, m.resumes = nil, nil // offers come again, and the list is new
	var acts []action
	if c := m.current; c != nil && !slices.Contains(resume, c.id) {
		acts = append(acts, m.drop()...)
	}
	for id, it := range m.items {
		if it.phase == phaseStarted && !slices.Contains(resume, id) && !m.has(id) && m.endings[id] == 0 {
			acts = append(acts, m.end(it, nil))
		}
	}
	for _, id := range resume {
		acts = append(acts, m.resume(id)...)
	}
	return append(acts, m.proceed()...)
}

func (m *machine) has(id string) bool { return m.current != nil && m.current.id == id }

// resume takes one id of the list.
func (m *machine) resume(id string) []action {
	it := m.items[id]
	switch {
	case m.has(id) && !m.current.running:
		return m.begin(it)
	case m.has(id) && m.current.stopped != dropped:
		return nil
	case m.endings[id] > 0:
		return nil // the hand-back is on its way
	case it == nil:
		return m.post(protocol.Fail{WorkItemID: id,
			Reason: "The agent's home has no trace of this item. The home volume was lost or replaced, and with it the work."}, 0)
	case it.phase == phaseEnded && it.ending != nil:
		return m.post(it.ending, 0) // the office forgot it
	}
	m.resumes = append(m.resumes, id)
	return nil
}

// drop gives the round in hand up. Offers wait until its program is gone.
func (m *machine) drop() []action {
	c := m.current
	if !c.running {
		m.current = nil
		return nil
	}
	running := c.stopped == goesOn
	c.stopped = dropped
	acts := []action{m.end(m.items[c.id], nil)}
	if running {
		acts = append(acts, stop{c.seq, true})
	}
	return acts
}

// end marks an item's round as ended.
func (m *machine) end(it *item, ending protocol.Message) action {
	it.phase, it.ending = phaseEnded, ending
	return save{*it}
}

// post puts a message into the outbox and counts it if it ends a round.
func (m *machine) post(message protocol.Message, seq int) []action {
	if id, ends := endedItem(message); ends {
		m.endings[id]++
	}
	return []action{post{message, seq}}
}

// offer takes an offer, which may be a repeated one.
func (m *machine) offer(o offered) []action {
	id := o.offer.WorkItem.ID
	c := m.current
	switch {
	case m.draining && c == nil:
		return nil // the connection is about to close; the offer comes again in the agent's next life
	case m.draining:
		return []action{decline{id, "the agent is shutting down"}}
	case c != nil && c.stopped == goesOn && c.id == id:
		return []action{accept{id}}
	case c != nil && c.stopped == goesOn:
		return []action{decline{id, fmt.Sprintf("the agent is working on item %s; it takes one at a time", c.id)}}
	case c != nil || len(m.endings) > 0 || len(m.resumes) > 0:
		return m.hold(o)
	case m.unfit != "":
		return []action{decline{id, m.unfit}}
	}
	return m.take(o)
}

// hold keeps an offer until the earlier round is over on both sides.
func (m *machine) hold(o offered) []action {
	var acts []action
	if n := m.next; n != nil && n.offer.WorkItem.ID != o.offer.WorkItem.ID {
		acts = append(acts, decline{n.offer.WorkItem.ID, "the agent was offered another item since"})
	}
	m.next = &o
	return acts
}

func (m *machine) take(o offered) []action {
	id := o.offer.WorkItem.ID
	it := m.items[id]
	if it == nil {
		it = &item{id: id}
		m.items[id] = it
	}
	it.phase, it.offer, it.payload, it.session, it.ending = phaseOffered, o.offer, o.payload, o.offer.SessionID, nil
	it.offerID, it.made = o.id, nil
	m.seq++
	m.current = &current{id: id, seq: m.seq}
	return []action{take{*it}}
}

// takeFailed tells that the offer in hand could not be saved and was declined.
func (m *machine) takeFailed() []action {
	m.current = nil
	return m.proceed()
}

// accepted tells that the office acknowledged an accept.
func (m *machine) accepted(seq int) []action {
	if c := m.current; c != nil && c.seq == seq && !c.running {
		return m.begin(m.items[c.id])
	}
	return nil
}

// refused tells that the office does not count on the round: it refused the accept, or another message about it.
func (m *machine) refused(seq int) []action {
	if c := m.current; c == nil || c.seq != seq || c.stopped == dropped {
		return nil
	}
	return append(m.drop(), m.proceed()...)
}

// begin starts the round in hand, or hands it back at once if the agent is shutting down.
func (m *machine) begin(it *item) []action {
	if m.draining {
		m.current = nil
		return m.handBackUnstarted(it)
	}
	m.current.running = true
	resumed := it.phase != phaseOffered
	if !resumed {
		it.round++
	}
	it.phase = phaseStarted
	return []action{save{*it}, start{item: *it, seq: m.current.seq, resumed: resumed}}
}

func (m *machine) handBackUnstarted(it *item) []action {
	ending := protocol.Handback{
		WorkItemID: it.id, Status: protocol.HandbackInterrupted, Links: []protocol.Link{},
		Summary: "The agent was shut down before it could go on with this round.",
	}
	return append(m.post(ending, 0), m.end(it, ending), unstarted{*it, ending})
}

// ended takes the end of a run: how it ends on the wire, and what it used.
func (m *machine) ended(seq int, ending protocol.Message, usage []protocol.SessionUsage) []action {
	c := m.current
	if c == nil || c.seq != seq {
		return nil
	}
	m.current = nil
	it := m.items[c.id]
	var acts []action
	switch c.stopped {
	case goesOn, shutdown:
		// The outbox first: an item that has ended in the home has an ending on its way.
		acts = append(m.post(ending, seq), m.end(it, ending))
	case dropped:
		if len(usage) > 0 {
			// The office no longer waits for it, but counts what it cost.
			acts = m.post(protocol.Handback{
				WorkItemID: c.id, Status: protocol.HandbackInterrupted, Links: []protocol.Link{}, Usage: usage,
				Summary: "The round was ended because the office no longer counted on it.",
			}, 0)
		}
	case replaced:
		// The other agent has the item now.
	}
	return append(acts, m.proceed()...)
}

// stoppedWhy says why the run of a round was told to stop, if it was.
func (m *machine) stoppedWhy(seq int) why {
	if c := m.current; c != nil && c.seq == seq {
		return c.stopped
	}
	return dropped
}

// delivered tells that a message left the outbox. A hand-back the office could not read becomes a fail, because its round
// would never end otherwise.
func (m *machine) delivered(message protocol.Message, seq int, refusal *protocol.Error) []action {
	id, ends := endedItem(message)
	if ends {
		if m.endings[id]--; m.endings[id] <= 0 {
			delete(m.endings, id)
		}
	}
	var acts []action
	switch {
	case refusal == nil:
	case ends && unreadable(refusal.Code):
		if _, already := message.(protocol.Fail); !already {
			acts = m.post(protocol.Fail{WorkItemID: id, Reason: "The office could not read the hand-back: " + refusal.Message}, 0)
		}
	case !ends && notOurs(refusal.Code):
		acts = m.refused(seq)
	}
	return append(acts, m.proceed()...)
}

// unreadable says whether an error is about the form of a message.
func unreadable(code protocol.Code) bool {
	return code == protocol.CodeInvalidMessage || code == protocol.CodeMalformed || code == protocol.CodeUnknownType
}

// notOurs says whether an error about an item means that this agent does not have it.
func notOurs(code protocol.Code) bool {
	return code == protocol.CodeInvalid || code == protocol.CodeUnknownItem
}

// proceed goes on with what waits, if nothing is in hand and nothing about an earlier round is on its way.
func (m *machine) proceed() []action {
	var acts []action
	for m.current == nil && len(m.resumes) > 0 {
		it := m.items[m.resumes[0]]
		m.resumes = m.resumes[1:]
		m.seq++
		m.current = &current{id: it.id, seq: m.seq}
		acts = append(acts, m.begin(it)...)
	}
	if m.next == nil || m.current != nil || len(m.endings) > 0 {
		return acts
	}
	next := *m.next
	m.next = nil
	return append(acts, m.offer(next)...)
}

// offline tells that the connection is gone.
func (m *machine) offline() {
	m.online = false
	m.next = nil // it comes again
	if m.draining && m.current != nil && !m.current.running {
		m.current = nil // the office offers it again, or counts on it and says so
	}
}

// drain begins the shutdown.
func (m *machine) drain() []action {
	m.draining = true
	var acts []action
	if n := m.next; n != nil {
		m.next = nil
		acts = append(acts, decline{n.offer.WorkItem.ID, "the agent is shutting down"})
	}
	switch c := m.current; {
	case c == nil:
	case c.running && c.stopped == goesOn:
		c.stopped = shutdown
		acts = append(acts, stop{c.seq, false})
	case !c.running && !m.online:
		m.current = nil // the office offers it again, or counts on it and says so
	}
	return acts
}

// giveWay ends the run because another agent serves this person. The home keeps what it knows.
func (m *machine) giveWay() []action {
	m.offline()
	m.resumes = nil
	c := m.current
	switch {
	case c == nil:
		return nil
	case !c.running:
		m.current = nil
		return nil
	}
	running := c.stopped == goesOn
	c.stopped = replaced
	if running {
		return []action{stop{c.seq, true}}
	}
	return nil
}

// busyWith returns the item whose run the office should hear about.
func (m *machine) busyWith() string {
	if c := m.current; c != nil && c.running && (c.stopped == goesOn || c.stopped == shutdown) {
		return c.id
	}
	return ""
}

// accepting returns the round whose accept is not acknowledged.
func (m *machine) accepting() (id string, seq int, ok bool) {
	if c := m.current; c != nil && !c.running {
		return c.id, c.seq, true
	}
	return "", 0, false
}

// idle says whether nothing is in hand.
func (m *machine) idle() bool { return m.current == nil && len(m.resumes) == 0 }
