package office

// This file adds the request of a chat session to work that the person already has.

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

func (r request) workAttach(m protocol.WorkAttach) (protocol.Message, error) {
	// Which work is meant is read before the transaction: a bare number takes a look at all pull requests.
	var target model.Place
	err := r.o.store.View(r.ctx, func(tx store.Reader) error {
		if _, err := session(tx, r.p, m.WorkItemID); err != nil {
			return err
		}
		var err error
		target, err = resolve(tx, r.p.key, "target", m.Target)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.reply(func(w *work) (protocol.Message, error) {
		at, err := session(w.tx, r.p, m.WorkItemID)
		if err != nil {
			return nil, err
		}
		existing, err := existingWork(w.tx, r.p.key, target)
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(cmp.Or(m.Request, at.Spec.Body))
		it, err := w.attach(r.p.key, at, existing, text, m.Confirmed != nil && *m.Confirmed)
		if err != nil {
			return nil, err
		}
		filing, err := w.filing(at, it)
		if err != nil {
			return nil, err
		}
		attached, err := existing.attached(w.tx, r.p.key)
		result := protocol.WorkAttachResult{Item: filing.item, Waiting: filing.waiting, Work: filing.work, Attached: attached}
		if attached.Ticket != nil {
			result.URL = attached.Ticket.URL
		}
		return result, err
	})
}

// existing is work that a request is added to: a ticket, or a pull request with the ticket that it is for.
type existing struct {
	place  model.Place
	ticket *model.Ticket
	pull   *model.Pull
	// owner is the handle of the person of the team who opened the pull request, or has the ticket; empty where nobody of the team has.
	owner string
}

// existingWork reads the work at a place.
func existingWork(r store.Reader, key model.PersonKey, place model.Place) (existing, error) {
	e := existing{place: place}
	ticket := place.Ref
	switch place.Type {
	case model.RefTicket:
	case model.RefPull:
		pull, err := found(r.Pull(key.Team, place.Ref))
		if err != nil || pull == nil {
			return e, err
		}
		e.pull, ticket = pull, pull.Ticket
		if pull.AuthorKind == protocol.AuthorAgent {
			e.owner = pull.Author
		}
	default:
		return e, protocol.Errorf(protocol.CodeInvalid, "target %s is a document: a request can be added to a ticket or a pull request", place.Ref)
	}
	if ticket == "" {
		return e, nil
	}
	var err error
	if e.ticket, err = found(r.Ticket(key.Team, ticket)); err != nil || e.ticket == nil || e.pull != nil {
		return e, err
	}
	person, err := found(r.PersonByKey(model.PersonKey{Team: key.Team, Handle: e.ticket.Assignee}))
	if person != nil {
		e.owner = person.Key.Handle
	}
	return e, err
}

// refuse says why a request cannot be added to the work: it is somebody else's, it is over, or it is in review and the requester has not
// agreed. carried says that one of the person's items is the work on it.
func (e existing) refuse(handle string, carried, confirmed bool) error {
	name := e.place.Ref
	switch {
	case e.ticket == nil && e.pull == nil && !carried:
		return protocol.Errorf(protocol.CodeNotFound, "target: %s is not known to the office, nor is work on it", name)
	case e.owner != handle && (e.owner != "" || !carried):
		return protocol.Errorf(protocol.CodeInvalid, "%s is not your work: file the request as work of its own, or ask who has it", name)
	case e.pull != nil && e.pull.State != protocol.PullOpen:
		return protocol.Errorf(protocol.CodeInvalid, "pull request %s is %s: file the request as work of its own", name, e.pull.State)
	case e.pull == nil && e.ticket != nil && !e.ticket.Open():
		return protocol.Errorf(protocol.CodeInvalid, "ticket %s is %s: file the request as work of its own", name, e.ticket.Status)
	case e.inReview() && !confirmed:
		return protocol.Errorf(protocol.CodeInvalid, "%s is in review: ask the requester in the thread whether the request belongs to it, "+
			"and attach it with confirmed once they said so", name)
	}
	return nil
}

// inReview says whether people look at the work now: its ticket waits for that, or a pull request that is no draft was reviewed.
func (e existing) inReview() bool {
	if e.pull != nil && e.pull.Draft {
		return false
	}
	return e.pull != nil && e.pull.Review != "" || e.ticket != nil && e.ticket.Status == protocol.TicketStatusReview
}

// attached describes the work to the agent.
func (e existing) attached(r store.Reader, key model.PersonKey) (protocol.Attached, error) {
	var a protocol.Attached
	if e.pull != nil {
		pull, err := subjectOf(r, key.Team, e.place, key.Handle)
		if err != nil {
			return a, err
		}
		a.PR = &pull
	}
	ticket := model.Place{Type: model.RefTicket, Ref: e.place.Ref}
	if e.pull != nil {
		ticket.Ref = e.pull.Ticket
	}
	if ticket.Ref == "" {
		return a, nil
	}
	subject, err := subjectOf(r, key.Team, ticket, key.Handle)
	a.Ticket = &subject
	return a, err
}

// attach makes a request feedback on the item that carries existing work, or on a new item about it, and has that item report to the
// session's threads. The same request again gives the same item.
func (w *work) attach(key model.PersonKey, at model.Item, e existing, text string, confirmed bool) (model.Item, error) {
	title := oneLine(text, maxRequest)
	if known := filed(at, title); known != nil && known.Ticket == e.place.Ref && known.ItemID != "" {
		return w.tx.Item(known.ItemID)
	}
	if err := mayFile(at, title); err != nil {
		return model.Item{}, err
	}
	carrier, err := w.carrier(key.Team, key.Handle, e.places()...)
	if err != nil {
		return model.Item{}, err
	}
	if err := e.refuse(key.Handle, carrier != nil, confirmed); err != nil {
		return model.Item{}, err
	}
	if carrier == nil {
		if carrier, err = w.bearAbout(key, e, at); err != nil {
			return model.Item{}, err
		}
	}
	if err := w.addRequest(at, *carrier, e.place, text); err != nil {
		return model.Item{}, err
	}
	if carrier.State != protocol.StateQueued {
		if err := w.standLast(at, carrier.ID); err != nil {
			return model.Item{}, err
		}
	}
	at.Filed = append(at.Filed, model.Filed{Request: title, Ticket: e.place.Ref, ItemID: carrier.ID})
	if err := w.put(&at); err != nil {
		return model.Item{}, err
	}
	return w.tx.Item(carrier.ID)
}

// addRequest gives the item that carries work the request of a session, and the session's threads.
func (w *work) addRequest(at, carrier model.Item, place model.Place, text string) error {
	err := w.tx.PutRef(model.Ref{ItemID: carrier.ID, Place: place, Role: protocol.WhyAttached, Source: "work_attach", AddedAt: w.now})
	if err != nil {
		return err
	}
	if err := w.shareThreads(at, carrier); err != nil {
		return err
	}
	thread := model.Place{Type: model.RefThread, Ref: model.ThreadRef(at.Origin.Channel, at.Origin.Thread)}
	_, err = w.hear(carrier.ID, model.Feedback{
		Key: "attach/" + at.ID + "/" + place.Ref + "/" + oneLine(text, maxRequest), Source: "work_attach", Place: thread,
		Feedback: protocol.Feedback{
			Actor: cmp.Or(at.Origin.Requester.Name, at.Origin.Requester.ID), Kind: protocol.FeedbackChat, At: protocol.FormatTime(w.now), Body: text,
		},
	}, true)
	return err
}

// standLast puts an item that has just been queued behind the person's other work, until the requester says where it goes.
func (w *work) standLast(session model.Item, id string) error {
	others, err := w.otherWork(session, id)
	if err != nil || len(others) == 0 {
		return err
	}
	it, err := w.tx.Item(id)
	if err != nil || it.State != protocol.StateQueued || it.Round != nil {
		return err
	}
	if err := w.place(&it, protocol.PositionLast, ""); err != nil {
		return err
	}
	return w.put(&it)
}

// maxRequest is how many characters of an attached request its session keeps, to know it again.
const maxRequest = 1000

// places are where to look for the item that carries the work: the pull request, then its ticket.
func (e existing) places() []model.Place {
	if e.pull == nil || e.pull.Ticket == "" {
		return []model.Place{e.place}
	}
	return []model.Place{e.place, {Type: model.RefTicket, Ref: e.pull.Ticket}}
}

// bearAbout makes an item about work that is the person's and that no item carries.
func (w *work) bearAbout(key model.PersonKey, e existing, at model.Item) (*model.Item, error) {
	subject, err := subjectOf(w.tx, key.Team, e.place, key.Handle)
	if err != nil {
		return nil, err
	}
	kind := model.KindTicket
	if e.pull != nil {
		kind = model.KindReviewFeedback
	}
	origin := *at.Origin
	origin.Files, origin.About = nil, nil
	it, err := w.bear(model.Item{
		ID: bornID(key.Team, "attached", at.ID, string(e.place.Type), e.place.Ref), Namespace: at.Namespace, Origin: &origin,
		Spec: model.ItemSpec{
			Team: key.Team.Name, Person: key.Handle, Kind: kind, Title: titleOf(subject), Requester: at.Spec.Requester, Trigger: protocol.TriggerHuman,
			Subject: &subject, Body: fmt.Sprintf("Go on with %s: the feedback says what is asked.", titleOf(subject)),
		},
	})
	if err != nil {
		return nil, err
	}
	return &it, w.standLast(at, it.ID)
}

// titleOf names a ticket or a pull request: ACME-12: Checkout fails.
func titleOf(s protocol.Subject) string {
	if s.Title == "" {
		return s.Ref
	}
	return s.Ref + ": " + s.Title
}

// carrier finds the item that carries the work at one of the places, the first place first: the latest one with it as its subject, or with
// a ref to it that makes it the item's own, which is neither canceled nor a conversation. handle, if given, is of whom it must be.
func (w *work) carrier(team model.TeamKey, handle string, places ...model.Place) (*model.Item, error) {
	for _, place := range places {
		ids, err := w.tx.ItemsAbout(team, place)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			it, err := w.tx.Item(id)
			if err != nil {
				return nil, err
			}
			if it.State == protocol.StateCanceled || it.IsChat() || it.Question != nil || (handle != "" && it.Assignee != handle) {
				continue
			}
			carries, err := w.carries(it, place)
			if err != nil {
				return nil, err
			}
			if carries {
				return &it, nil
			}
		}
	}
	return nil, nil
}

func (w *work) carries(it model.Item, place model.Place) (bool, error) {
	if s := it.Spec.Subject; s != nil && s.Ref == place.Ref && s.Type == string(place.Type) {
		return true, nil
	}
	refs, err := w.tx.Refs(it.ID)
	for _, ref := range refs {
		if ref.Place == place {
			return workstate.Carries(ref.Role), err
		}
	}
	return false, err
}
