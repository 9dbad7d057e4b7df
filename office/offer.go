package office

// This file builds an offer: the item with its context, from what the store has.

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// offer encodes the offer of an item, within the limit of a frame.
func (w *work) offer(it model.Item) ([]byte, error) {
	d, err := draftOf(w.tx, it)
	if err != nil {
		return nil, err
	}
	return d.fit()
}

// draftOf gathers what an offer of the item brings along.
func draftOf(r store.Reader, it model.Item) (*draft, error) {
	entries, err := r.Journal(it.ID)
	if err != nil {
		return nil, err
	}
	feedback, err := feedbackOf(r, it)
	if err != nil {
		return nil, err
	}
	d := &draft{
		request: protocol.JournalEntry{
			At: protocol.FormatTime(it.CreatedAt), Author: cmp.Or(it.Spec.Requester, "requester"), Text: cmp.Or(it.Spec.Body, it.Spec.Title),
		},
		journal: journalOf(entries),
		// The id is the round's, so that an offer that arrives twice is the same frame.
		id: model.OfferID(it.ID, it.Round.Number),
		offer: protocol.Offer{
			WorkItem: protocol.WorkItem{
				ID: it.ID, Kind: it.Spec.Kind, Title: it.Spec.Title, Priority: float64(it.Spec.Priority), Trigger: it.Spec.Trigger,
				ParentID: it.Spec.ParentID, Origin: it.Origin,
			},
			Context:   protocol.Context{Subjects: []protocol.Subject{}, Links: append([]protocol.Link{}, it.Links...)},
			SessionID: it.SessionID,
		},
	}
	if it.Interrupted {
		d.offer.Interrupted = new(true)
	}
	if s := it.Spec.Subject; s != nil {
		d.offer.WorkItem.Subject = &protocol.SubjectRef{Type: s.Type, Ref: s.Ref}
	}
	for _, f := range feedback {
		d.offer.Context.Feedback = append(d.offer.Context.Feedback, f.Feedback)
	}
	refs, err := r.Refs(it.ID)
	if err != nil {
		return nil, err
	}
	if err := d.subjects(r, it, it); err != nil {
		return nil, err
	}
	if err := d.earlierWork(r, it); err != nil {
		return nil, err
	}
	if d.wake, err = gather(r, it, refs, feedback); err != nil {
		return nil, err
	}
	d.offer.Context.Conversation, err = conversation(r, it.TeamKey(), feedback, d.wake.limits)
	return d, err
}

// feedbackOf lists the feedback that the offered round has to answer, oldest first.
func feedbackOf(r store.Reader, it model.Item) ([]model.Feedback, error) {
	if it.Round.FeedbackUpTo <= it.FeedbackSeen {
		return nil, nil
	}
	feedback, err := r.Feedback(it.ID, it.FeedbackSeen)
	return slices.DeleteFunc(feedback, func(f model.Feedback) bool { return f.N > it.Round.FeedbackUpTo }), err
}

func journalOf(entries []model.JournalEntry) []protocol.JournalEntry {
	list := make([]protocol.JournalEntry, 0, len(entries))
	for _, e := range entries {
		list = append(list, protocol.JournalEntry{At: protocol.FormatTime(e.At), Author: e.Author, Text: e.Text})
	}
	return list
}

// subjects adds the tickets and pull requests that about has to do with, and its documents as links. to is the item that is offered.
func (d *draft) subjects(r store.Reader, about, to model.Item) error {
	places, err := placesOf(r, about)
	if err != nil {
		return err
	}
	if s := about.Spec.Subject; s != nil && len(places) > 0 && !isPlace(places[0]) {
		d.addSubject(*s) // something that the office knows nothing of
	}
	for _, place := range places {
		if place.Type == model.RefDoc {
			page, err := pageOf(r, about, place)
			if err != nil {
				return err
			}
			d.addLink(page)
		}
		if place.Type != model.RefTicket && place.Type != model.RefPull {
			continue
		}
		subject, err := subjectOf(r, to.TeamKey(), place, to.Assignee)
		if err != nil {
			return err
		}
		if s := about.Spec.Subject; s != nil && s.Ref == place.Ref && s.Type == string(place.Type) {
			if place.Type == model.RefPull && subject.State == "" {
				subject = *s // all that is known is what the item's user wrote
			}
			subject.Title, subject.URL = cmp.Or(subject.Title, s.Title), cmp.Or(subject.URL, s.URL)
		}
		d.addSubject(subject)
	}
	return nil
}

func isPlace(p model.Place) bool {
	return p.Type == model.RefTicket || p.Type == model.RefPull || p.Type == model.RefDoc
}

func (d *draft) addSubject(s protocol.Subject) {
	known := func(o protocol.Subject) bool { return o.Type == s.Type && o.Ref == s.Ref }
	if c := &d.offer.Context; !slices.ContainsFunc(c.Subjects, known) {
		c.Subjects = append(c.Subjects, s)
	}
}

// addLink adds a page, if its address is absolute: another one is no link on the wire.
func (d *draft) addLink(l protocol.Link) {
	known := func(o protocol.Link) bool { return o.URL == l.URL }
	if c := &d.offer.Context; absolute(l.URL) && !slices.ContainsFunc(c.Links, known) {
		c.Links = append(c.Links, l)
	}
}

// absolute says whether a link may go over the wire.
func absolute(link string) bool {
	u, err := url.Parse(link)
	return err == nil && u.IsAbs() && u.Host != ""
}

// subjectOf describes a ticket or a pull request as the office knows it. person is the handle of whom it is described to.
func subjectOf(r store.Reader, team model.TeamKey, place model.Place, person string) (protocol.Subject, error) {
	s := protocol.Subject{Type: string(place.Type), Ref: place.Ref}
	if place.Type == model.RefTicket {
		ticket, err := found(r.Ticket(team, place.Ref))
		if ticket != nil {
			s.Title, s.URL = ticket.Title, ticket.URL
		}
		return s, err
	}
	pull, err := found(r.Pull(team, place.Ref))
	if pull != nil {
		s.Title, s.URL, s.HeadRef, s.BaseRef, s.State = pull.Title, pull.URL, pull.Head, pull.Base, pull.State
		s.Draft, s.Own = new(pull.Draft), new(pull.Author == person)
	}
	return s, err
}

// earlierWork adds what belongs to the work in whose thread a chat message replied: its tickets, pull requests and journal.
func (d *draft) earlierWork(r store.Reader, it model.Item) error {
	if it.Origin == nil || it.Origin.About == nil {
		return nil
	}
	about, err := found(r.Item(it.Origin.About.ID))
	if err != nil || about == nil || about.TeamKey() != it.TeamKey() {
		return err
	}
	if err := d.subjects(r, *about, it); err != nil {
		return err
	}
	entries, err := r.Journal(about.ID)
	if err != nil {
		return err
	}
	d.earlier = append(d.earlier, protocol.JournalEntry{
		At: protocol.FormatTime(about.CreatedAt), Author: cmp.Or(about.Spec.Requester, "requester"),
		Text: fmt.Sprintf("Earlier work in this thread, %q: %s", about.Spec.Title, cmp.Or(about.Spec.Body, about.Spec.Title)),
	})
	d.earlier = append(d.earlier, journalOf(entries)...)
	return nil
}
