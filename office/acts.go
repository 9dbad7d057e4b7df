package office

// This file has acts: changes in the tracker and the knowledge base that a person's agent makes with its own credentials, and tells of.

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// maxOpenActs is how many unanswered acts a connection is sent at once; each answer brings a further one.
const maxOpenActs = 500

// op is one change of an act. Which fields it has depends on Op; docs/protocol.md lists them.
type op struct {
	// Op is one of move, assign, comment, parent, link_pr, link_doc and set_field.
	Op     string        `json:"op"`
	Ticket string        `json:"ticket,omitzero"`
	Status string        `json:"status,omitzero"`
	To     string        `json:"to,omitzero"`
	Body   string        `json:"body,omitzero"`
	Parent string        `json:"parent,omitzero"`
	PR     string        `json:"pr,omitzero"`
	Doc    *protocol.Doc `json:"doc,omitzero"`
	Field  string        `json:"field,omitzero"`
	Value  any           `json:"value,omitzero"`
}

// act has the person make changes. id names their cause, so that the same cause gives one act. event is what caused them, or nil.
func (w *work) act(id string, key model.PersonKey, itemID string, event *model.Event, ops ...op) error {
	if len(ops) == 0 || key.Handle == "" {
		return nil
	}
	known, err := found(w.tx.Act(key.Team, id))
	if err != nil || known != nil {
		return err
	}
	act := model.Act{ID: id, Person: key, ItemID: itemID, CreatedAt: w.now}
	if event != nil {
		act.EventSource, act.EventID = event.Source, event.ID
	}
	for _, o := range ops {
		raw, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("op %s of act %s: %w", o.Op, id, err)
		}
		act.Ops = append(act.Ops, raw)
	}
	if err := w.tx.PutAct(act); err != nil {
		return err
	}
	p, connected := w.o.hub.Get(key)
	if !connected {
		return nil // it stands in the next welcome
	}
	w.leave(p, protocol.Act{ID: act.ID, Ops: act.Ops})
	return nil
}

// openActs lists what the person's agent has not answered, for its welcome. What a frame does not take follows the welcome.
func (w *work) openActs(p *peer) ([]protocol.Act, error) {
	acts, err := w.tx.OpenActs(p.key)
	if err != nil {
		return nil, err
	}
	var list []protocol.Act
	size := 0
	for _, a := range acts[:min(len(acts), maxOpenActs)] {
		act := protocol.Act{ID: a.ID, Ops: a.Ops}
		for _, raw := range a.Ops {
			size += len(raw)
		}
		if size <= maxBatch {
			list = append(list, act)
			continue
		}
		w.leave(p, act)
	}
	p.acts = nil
	for _, a := range acts[min(len(acts), maxOpenActs):] {
		p.acts = append(p.acts, a.ID)
	}
	return list, nil
}

func (r request) actResult(m protocol.ActResult) (protocol.Message, error) {
	return nil, r.change(func(w *work) error {
		act, err := found(w.tx.Act(r.p.key.Team, m.ID))
		if err != nil {
			return err
		}
		if act == nil || act.Person != r.p.key {
			return protocol.Errorf(protocol.CodeNotFound, "you have no act %q", cut(m.ID, 100))
		}
		if err := w.nextAct(r.p); err != nil {
			return err
		}
		if !act.AnsweredAt.IsZero() {
			return nil
		}
		act.AnsweredAt, act.OK, act.Results, act.Error = w.now, m.OK, m.Results, m.Error
		if err := w.tx.PutAct(*act); err != nil {
			return err
		}
		return w.traceAct(*act)
	})
}

// nextAct sends one of the acts for which there was no room in the welcome.
func (w *work) nextAct(p *peer) error {
	if len(p.acts) == 0 {
		return nil
	}
	act, err := found(w.tx.Act(p.key.Team, p.acts[0]))
	if err != nil {
		return err
	}
	p.acts = p.acts[1:]
	if act != nil && act.AnsweredAt.IsZero() {
		w.leave(p, protocol.Act{ID: act.ID, Ops: act.Ops})
	}
	return nil
}

// traceAct writes what became of an act to the trace of the event that caused it.
func (w *work) traceAct(act model.Act) error {
	if act.EventID == "" {
		return nil
	}
	event, err := found(w.tx.Event(act.Person.Team, act.EventSource, act.EventID))
	if err != nil || event == nil {
		return err
	}
	what := fmt.Sprintf("act %s of %s: %d of %d changes made", act.ID, act.Person.Handle, len(act.Results), len(act.Ops))
	for _, line := range act.Results {
		what += "; " + line
	}
	if !act.OK {
		what += "; then: " + cmp.Or(act.Error, "it failed without a reason")
	}
	event.Trace = append(event.Trace, cut(what, 2000))
	return w.tx.PutEvent(*event)
}

// actAfter has the tracker brought in line with a round that has ended: a silent one leaves its ticket as it found it, tickets that it
// made and that are in review go to whoever asked, and the ticket's usage fields follow.
func (w *work) actAfter(it model.Item, ended model.Round) error {
	key := model.PersonKey{Team: it.TeamKey(), Handle: ended.Person}
	ticket, err := w.ticketOf(it)
	if err != nil {
		return err
	}
	var ops []op
	if ticket != nil && ended.Outcome == model.OutcomeSilent && ended.TicketStatus != "" && ticket.Status != ended.TicketStatus {
		ops = append(ops, op{Op: "move", Ticket: ticket.Key, Status: string(ended.TicketStatus)})
	}
	if ticket != nil && ended.Usage != (model.Usage{}) {
		fields, err := w.usageFields(it.TeamKey(), *ticket)
		if err != nil {
			return err
		}
		ops = append(ops, fields...)
	}
	if err := w.act(fmt.Sprintf("round/%s/%d/%s", it.ID, ended.Number, w.o.life()), key, it.ID, nil, ops...); err != nil {
		return err
	}
	if it.State == protocol.StateDone {
		return w.handOver(it, nil)
	}
	return nil
}

// usageFields sets the usage fields of a ticket, where the team tracks usage.
func (w *work) usageFields(team model.TeamKey, ticket model.Ticket) ([]op, error) {
	t, err := found(w.tx.Team(team))
	if err != nil || t == nil || !t.Usage.TrackCost {
		return nil, err
	}
	shares, _, err := w.tx.TicketUsage(team, ticket.Key)
	if err != nil {
		return nil, err
	}
	var sum model.Usage
	for _, s := range shares {
		sum = sum.Add(s.Usage)
	}
	ops := []op{{Op: "set_field", Ticket: ticket.Key, Field: "tokens", Value: sum.Tokens()}}
	if sum.CostKnown {
		ops = append(ops, op{Op: "set_field", Ticket: ticket.Key, Field: "cost_usd", Value: float64(sum.CostMicroUSD) / 1e6})
	}
	return ops, nil
}

// handOver gives the tickets that the item's agent created, and that are in review, to whoever asked for the item, each once. event is
// what put one into review, or nil.
func (w *work) handOver(it model.Item, event *model.Event) error {
	to := it.Spec.Requester
	if it.Origin != nil {
		to = cmp.Or(it.Origin.Requester.Name, it.Origin.Requester.ID)
	}
	if to == "" || to == model.DefaultRequester || it.State != protocol.StateDone {
		return nil
	}
	refs, err := w.tx.Refs(it.ID)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if ref.Role != protocol.WhyCreated || ref.Place.Type != model.RefTicket {
			continue
		}
		ticket, err := found(w.tx.Ticket(it.TeamKey(), ref.Place.Ref))
		if err != nil {
			return err
		}
		if ticket == nil || ticket.Status != protocol.TicketStatusReview {
			continue
		}
		key := model.PersonKey{Team: it.TeamKey(), Handle: it.Assignee}
		err = w.act(fmt.Sprintf("review/%s/%s", it.ID, ticket.Key), key, it.ID, event, op{Op: "assign", Ticket: ticket.Key, To: to})
		if err != nil {
			return err
		}
	}
	return nil
}

// ticketOf is the ticket that an item is about, as the office last heard of it; nil where it is about none, or about one that nothing was
// ever heard of.
func (w *work) ticketOf(it model.Item) (*model.Ticket, error) {
	places, err := placesOf(w.tx, it)
	if err != nil {
		return nil, err
	}
	for _, place := range places {
		if place.Type == model.RefTicket {
			return found(w.tx.Ticket(it.TeamKey(), place.Ref))
		}
	}
	return nil, nil
}
