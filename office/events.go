package office

// This file does what events from outside mean: the office's picture of the world follows them, and what people say reaches whoever owns
// the work. These are the office's default decisions; docs/events.md tells them.

import (
	"fmt"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

// telling is one event being taken in.
type telling struct {
	*work
	team      model.TeamKey
	directory workstate.Directory
	event     *model.Event
	// at is when it happened, never later than now.
	at time.Time
}

// note adds a line to the event's trace.
func (t *telling) note(format string, args ...any) {
	t.event.Trace = append(t.event.Trace, fmt.Sprintf(format, args...))
}

// happened does what the event's data means.
func (t *telling) happened(data workstate.Data) error {
	switch d := data.(type) {
	case *workstate.TicketChanged:
		return t.ticketChanged(*d)
	case *workstate.TicketCommented:
		return t.ticketCommented(*d)
	case *workstate.PullChanged:
		return t.pullChanged(*d)
	case *workstate.PullCommented:
		return t.pullCommented(*d)
	case *workstate.PullReviewed:
		return t.pullReviewed(*d)
	case *workstate.PullReviewComment:
		return t.pullReviewComment(*d)
	case *workstate.ThreadChanged:
		return t.threadChanged(*d)
	case *workstate.PullChecks:
		return t.pullChecks(*d)
	case *workstate.DocChanged:
		return t.docChanged(*d)
	case *workstate.DocCommented:
		return t.docCommented(*d)
	}
	t.note("events of type %s are kept, and change nothing", cut(t.event.Type, 100))
	return nil
}

func (t *telling) ticketChanged(d workstate.TicketChanged) error {
	known, err := found(t.tx.Ticket(t.team, d.Key))
	if err != nil {
		return err
	}
	var assignee workstate.Who
	if d.Assignee != nil {
		assignee = t.directory.Who(*d.Assignee)
	}
	ticket, fresh := workstate.NextTicket(known, d, assignee.Name, t.team, t.at)
	if !fresh {
		t.note("ticket %s: older than what is known, nothing changed", d.Key)
		return nil
	}
	if err := t.tx.PutTicket(ticket); err != nil {
		return err
	}
	was := model.Ticket{}
	if known != nil {
		was = *known
	}
	if was.Status == ticket.Status {
		t.note("ticket %s is %s", ticket.Key, ticket.Status)
	} else {
		t.note("ticket %s: %s became %s", ticket.Key, orNew(string(was.Status)), ticket.Status)
	}
	if ticket.Status == protocol.TicketStatusReview && was.Status != ticket.Status {
		if err := t.inReview(ticket); err != nil {
			return err
		}
	}
	if assignee.Person == "" || was.Assignee == ticket.Assignee || !ticket.Open() {
		return nil
	}
	return t.assigned(ticket, assignee.Person, d.By)
}

func orNew(status string) string {
	if status == "" {
		return "new, it"
	}
	return status
}

// inReview hands a ticket over to whoever asked for the items that made it.
func (t *telling) inReview(ticket model.Ticket) error {
	ids, err := t.tx.ItemsAbout(t.team, model.Place{Type: model.RefTicket, Ref: ticket.Key})
	for _, id := range ids {
		it, err := t.tx.Item(id)
		if err != nil {
			return err
		}
		if err := t.handOver(it, t.event); err != nil {
			return err
		}
	}
	return err
}

// assigned wakes the person to whom a ticket was assigned, unless it did that itself, or has open work on it.
func (t *telling) assigned(ticket model.Ticket, handle string, by *workstate.Actor) error {
	requester := ""
	if by != nil {
		who := t.directory.Who(*by)
		if who.Person == handle {
			t.note("%s took %s itself", handle, ticket.Key)
			return nil
		}
		requester = who.Name
	}
	place := model.Place{Type: model.RefTicket, Ref: ticket.Key}
	carrier, err := t.carrier(t.team, handle, place)
	if err != nil {
		return err
	}
	if carrier != nil && !carrier.Finished() {
		t.note("assigned to %s, who has it as %s", handle, describe(*carrier))
		return nil
	}
	_, err = t.begin(handle, model.KindAssigned, place, requester, ticket.Description)
	return err
}

// begin makes an item about a place, for a person.
func (t *telling) begin(handle, kind string, place model.Place, requester, body string) (model.Item, error) {
	subject := protocol.Subject{Type: string(place.Type), Ref: place.Ref}
	var err error
	if place.Type == model.RefDoc {
		doc, err := found(t.tx.Doc(t.team, place.Ref))
		if err != nil {
			return model.Item{}, err
		}
		if doc != nil {
			subject.Title, subject.URL = doc.Title, doc.URL
		}
	} else if subject, err = subjectOf(t.tx, t.team, place, handle); err != nil {
		return model.Item{}, err
	}
	title := titleOf(subject)
	if kind == model.KindReviewFeedback {
		title = "Feedback on " + title
		body = "Answer the feedback on your work: " + titleOf(subject)
	}
	it, err := t.bear(model.Item{
		ID: bornID(t.team, kind, handle, string(place.Type), place.Ref, t.event.Source, t.event.ID), Namespace: t.team.Namespace,
		Spec: model.ItemSpec{
			Team: t.team.Name, Person: handle, Kind: kind, Title: title, Body: body, Requester: requester, Trigger: protocol.TriggerAutomation,
			Subject: &subject,
		},
	})
	if err == nil {
		err = t.tx.PutRef(model.Ref{ItemID: it.ID, Place: place, Role: protocol.WhyTrigger, Source: t.event.ID, AddedAt: t.now})
	}
	t.note("began %s for %s", describe(it), handle)
	return it, err
}

func (t *telling) ticketCommented(d workstate.TicketCommented) error {
	place := model.Place{Type: model.RefTicket, Ref: d.Ticket}
	who := t.directory.Who(d.Comment.Author)
	said, err := t.keep(t.remark(place, d.Comment, who))
	if err != nil {
		return err
	}
	ticket, err := found(t.tx.Ticket(t.team, d.Ticket))
	if err != nil {
		return err
	}
	owner := owner{kind: model.KindAssigned, places: []model.Place{place}}
	if ticket != nil {
		owner.person, owner.over = t.directory.Who(workstate.Actor{Login: ticket.Assignee}).Person, !ticket.Open()
		owner.body = ticket.Description
	}
	return t.tell(owner, who, said, protocol.Feedback{Kind: protocol.FeedbackTicketComment, CommentID: d.Comment.ID})
}

// remark is what a comment says, as it is kept.
func (t *telling) remark(place model.Place, c workstate.Comment, who workstate.Who) model.Remark {
	return model.Remark{
		Team: t.team, Place: place, ID: workstate.RemarkID(t.event.Type, c.ID), Kind: t.event.Type, Author: who.Name, At: t.when(c.At),
		Body: c.Body, URL: c.URL, Human: who.Human,
	}
}

// keep stores a remark. One that comes again, because it was edited, stays where it is in its conversation.
func (t *telling) keep(said model.Remark) (model.Remark, error) {
	known, err := found(t.tx.Remark(t.team, said.Place, said.ID))
	if err != nil {
		return said, err
	}
	if known != nil {
		said.At = known.At
	}
	return said, t.tx.PutRemark(said)
}

// when is the time that a field tells, else that of the event.
func (t *telling) when(field string) time.Time {
	if at, err := protocol.ParseTime(field); err == nil {
		return at
	}
	return t.at
}

func (t *telling) pullChanged(d workstate.PullChanged) error {
	ref := workstate.PullRef(d.Repo, d.Number)
	known, err := found(t.tx.Pull(t.team, ref))
	if err != nil {
		return err
	}
	var failure error
	keys, err := keysOf(t.tx, t.team, &failure)
	if err != nil {
		return err
	}
	pull, fresh := workstate.NextPull(known, d, t.directory.Who(d.Author), keys, t.team, t.at, t.now)
	if failure != nil {
		return failure
	}
	if !fresh {
		t.note("pull request %s: older than what is known, nothing changed", ref)
		return nil
	}
	t.note("pull request %s of %s is %s", ref, pull.Author, pull.State)
	if pull.Ticket != "" && (known == nil || known.Ticket != pull.Ticket) {
		t.note("it belongs to ticket %s", pull.Ticket)
	}
	return t.tx.PutPull(pull)
}

func (t *telling) pullCommented(d workstate.PullCommented) error {
	who := t.directory.Who(d.Comment.Author)
	place := model.Place{Type: model.RefPull, Ref: workstate.PullRef(d.Repo, d.Number)}
	said, err := t.keep(t.remark(place, d.Comment, who))
	if err != nil {
		return err
	}
	owner, err := t.ownerOfPull(place)
	if err != nil {
		return err
	}
	return t.tell(owner, who, said, protocol.Feedback{Kind: protocol.FeedbackComment, CommentID: d.Comment.ID})
}

func (t *telling) pullReviewed(d workstate.PullReviewed) error {
	review := d.Review
	who := t.directory.Who(review.Author)
	place := model.Place{Type: model.RefPull, Ref: workstate.PullRef(d.Repo, d.Number)}
	said := t.remark(place, workstate.Comment{ID: review.ID, Author: review.Author, Body: review.Body, URL: review.URL, At: review.At}, who)
	said.State = review.State
	said, err := t.keep(said)
	if err != nil {
		return err
	}
	feedback := protocol.Feedback{Kind: protocol.FeedbackReview, State: review.State}
	for _, c := range review.Comments {
		feedback.Comments = append(feedback.Comments, inlineComment(c))
	}
	if _, err := t.putInline(place, who, said.At, review.ID, review.Comments...); err != nil {
		return err
	}
	if err := t.editPull(place, func(p *model.Pull) { p.Review = review.State }); err != nil {
		return err
	}
	owner, err := t.ownerOfPull(place)
	if err != nil {
		return err
	}
	return t.tell(owner, who, said, feedback)
}

func (t *telling) pullReviewComment(d workstate.PullReviewComment) error {
	who := t.directory.Who(d.Author)
	place := model.Place{Type: model.RefPull, Ref: workstate.PullRef(d.Repo, d.Number)}
	known, err := found(t.tx.Remark(t.team, place, workstate.RemarkID(workstate.EventPullReviewComment, d.Comment.ID)))
	if err != nil {
		return err
	}
	said, err := t.putInline(place, who, t.when(d.At), d.ReviewID, d.Comment)
	if err != nil {
		return err
	}
	if err := t.editPull(place, nil); err != nil {
		return err
	}
	if known != nil {
		t.note("the comment came before, by itself or with its review")
		return nil
	}
	owner, err := t.ownerOfPull(place)
	if err != nil {
		return err
	}
	return t.tell(owner, who, said[0], protocol.Feedback{
		Kind: protocol.FeedbackInlineComment, CommentID: d.Comment.ID, Comments: []protocol.InlineComment{inlineComment(d.Comment)},
	})
}

// putInline keeps comments on lines of a diff, and gives them as they are kept: what was known of them before stays, and in a thread that
// is resolved they are, too.
func (t *telling) putInline(place model.Place, who workstate.Who, at time.Time, reviewID string,
	comments ...workstate.ReviewComment) ([]model.Remark, error) {
	known, _, err := t.tx.Remarks(t.team, place, 0)
	if err != nil {
		return nil, err
	}
	kept := make([]model.Remark, 0, len(comments))
	for _, c := range comments {
		m := model.Remark{
			Team: t.team, Place: place, ID: workstate.RemarkID(workstate.EventPullReviewComment, c.ID), Kind: workstate.EventPullReviewComment,
			Author: who.Name, At: at, Body: c.Body, URL: c.URL, Path: c.Path, Line: c.Line, ThreadID: c.ThreadID, ReviewID: reviewID, Human: who.Human,
		}
		for _, k := range known {
			if m.ThreadID != "" && k.ThreadID == m.ThreadID {
				m.Resolved = k.Resolved
			}
			if k.ID == m.ID {
				m.At = k.At
				if m.ReviewID == "" {
					m.ReviewID = k.ReviewID
				}
			}
		}
		if err := t.tx.PutRemark(m); err != nil {
			return nil, err
		}
		kept = append(kept, m)
	}
	return kept, nil
}

func inlineComment(c workstate.ReviewComment) protocol.InlineComment {
	inline := protocol.InlineComment{ID: c.ID, Path: c.Path, Body: c.Body, URL: c.URL, ThreadID: c.ThreadID}
	if c.Line > 0 {
		inline.Line = &c.Line
	}
	return inline
}

// editPull changes what is known of a pull request after something was said at it. Of one that no event told of, nothing is.
func (t *telling) editPull(place model.Place, edit func(*model.Pull)) error {
	pull, err := found(t.tx.Pull(t.team, place.Ref))
	if err != nil || pull == nil {
		return err
	}
	if edit != nil {
		edit(pull)
	}
	said, _, err := t.tx.Remarks(t.team, place, 0)
	if err != nil {
		return err
	}
	pull.UnresolvedThreads, pull.UpdatedAt = workstate.Unresolved(said), t.now
	return t.tx.PutPull(*pull)
}

func (t *telling) threadChanged(d workstate.ThreadChanged) error {
	place := model.Place{Type: model.RefPull, Ref: workstate.PullRef(d.Repo, d.Number)}
	resolved := t.event.Type == workstate.EventThreadResolved
	if err := t.tx.ResolveThread(t.team, place, d.ThreadID, resolved); err != nil {
		return err
	}
	if resolved {
		t.note("a thread of %s is resolved", place.Ref)
	} else {
		t.note("a thread of %s is open again", place.Ref)
	}
	return t.editPull(place, nil)
}

func (t *telling) pullChecks(d workstate.PullChecks) error {
	place := model.Place{Type: model.RefPull, Ref: workstate.PullRef(d.Repo, d.Number)}
	pull, err := found(t.tx.Pull(t.team, place.Ref))
	if err != nil {
		return err
	}
	if pull == nil {
		t.note("pull request %s is not known: send %s first", place.Ref, workstate.EventPullChanged)
		return nil
	}
	next, fresh, wake := workstate.NextChecks(*pull, d, t.at, t.now)
	if !fresh {
		t.note("checks of %s: older than what is known, nothing changed", place.Ref)
		return nil
	}
	t.note("checks of %s: %s", place.Ref, d.State)
	if err := t.tx.PutPull(next); err != nil || !wake {
		return err
	}
	owner, err := t.ownerOfPull(place)
	if err != nil {
		return err
	}
	body := workstate.Failures(place.Ref, d)
	return t.deliver(owner, workstate.Who{}, model.Feedback{
		Place: place, Source: t.event.ID,
		Feedback: protocol.Feedback{Actor: "checks", Kind: protocol.FeedbackCIFailure, URL: next.URL, At: protocol.FormatTime(t.at), Body: body},
	})
}

func (t *telling) docChanged(d workstate.DocChanged) error {
	known, err := found(t.tx.Doc(t.team, d.ID))
	if err != nil {
		return err
	}
	doc := model.Doc{Team: t.team, ID: d.ID, Title: d.Title, URL: d.URL, Ticket: d.Ticket, UpdatedAt: t.at}
	if known != nil {
		doc.Author = known.Author
	}
	if d.Author != nil {
		if who := t.directory.Who(*d.Author); who.Person != "" || doc.Author == "" {
			doc.Author = who.Name
		}
	}
	t.note("document %s: %s", d.ID, d.Title)
	return t.tx.PutDoc(doc)
}

func (t *telling) docCommented(d workstate.DocCommented) error {
	place := model.Place{Type: model.RefDoc, Ref: d.Doc}
	who := t.directory.Who(d.Comment.Author)
	said := t.remark(place, d.Comment, who)
	said.AnchorText = d.AnchorText
	said, err := t.keep(said)
	if err != nil {
		return err
	}
	doc, err := found(t.tx.Doc(t.team, d.Doc))
	if err != nil {
		return err
	}
	owner := owner{kind: model.KindReviewFeedback, places: []model.Place{place}}
	if doc != nil {
		owner.person = t.directory.Who(workstate.Actor{Login: doc.Author}).Person
	}
	return t.tell(owner, who, said, protocol.Feedback{
		Kind: protocol.FeedbackDocComment, CommentID: d.Comment.ID, DocID: d.Doc, AnchorText: d.AnchorText,
	})
}

// owner is who the work at a place belongs to.
type owner struct {
	// person is the handle of who opened the pull request, has the ticket or wrote the document; empty where that is nobody of the team.
	person string
	// places are where to look for the item that carries the work; kind is the kind of a new one, about the first place, and body what it
	// asks.
	places []model.Place
	kind   string
	body   string
	// over says that the work is finished: nothing that is said about it starts a round.
	over bool
}

// ownerOfPull finds who a pull request belongs to: its author, if that is a person of the team.
func (t *telling) ownerOfPull(place model.Place) (owner, error) {
	o := owner{kind: model.KindReviewFeedback, places: []model.Place{place}}
	pull, err := found(t.tx.Pull(t.team, place.Ref))
	if err != nil || pull == nil {
		return o, err
	}
	o.over = pull.State != protocol.PullOpen
	if pull.AuthorKind == protocol.AuthorAgent {
		o.person = pull.Author
		if pull.Ticket != "" {
			o.places = append(o.places, model.Place{Type: model.RefTicket, Ref: pull.Ticket})
		}
	}
	return o, nil
}

// tell gives what somebody said to whoever owns the work, if they may be woken by it.
func (t *telling) tell(o owner, who workstate.Who, said model.Remark, f protocol.Feedback) error {
	if !who.Trusted() {
		t.note("%s is neither a human nor a person of the team: kept, nobody is woken", cut(who.Name, 100))
		return nil
	}
	f.Actor, f.URL, f.At, f.Body = who.Name, said.URL, protocol.FormatTime(t.at), said.Body
	return t.deliver(o, who, model.Feedback{
		Key: workstate.SaidKey(said.Place, said.ID), Source: t.event.ID, Place: said.Place, Feedback: f,
	})
}

// deliver gives feedback to the item that carries the work, or to a new one of whoever owns it.
func (t *telling) deliver(o owner, who workstate.Who, f model.Feedback) error {
	switch {
	case o.over:
		t.note("%s is finished: nobody is woken", f.Place.Ref)
		return nil
	case who.Person != "" && who.Person == o.person:
		t.note("%s said it: nobody is woken", who.Person)
		return nil
	}
	it, err := t.carrier(t.team, o.person, o.places...)
	if err != nil {
		return err
	}
	switch {
	case it == nil && o.person == "":
		t.note("nobody of the team owns %s: nobody is woken", f.Place.Ref)
		return nil
	case it != nil && who.Person != "" && it.Assignee == who.Person:
		t.note("%s said it, at work of its own: nobody is woken", who.Person)
		return nil
	case it == nil:
		begun, err := t.begin(o.person, o.kind, o.places[0], who.Name, o.body)
		if err != nil {
			return err
		}
		it = &begun
	}
	added, err := t.hear(it.ID, f, who.Human)
	if err != nil {
		return err
	}
	if !added {
		t.note("%s has it already", describe(*it))
		return nil
	}
	t.note("feedback to %s", describe(*it))
	return t.inferred(*it, f.Place)
}

// inferred notes that an item has to do with a pull request whose ticket is its work.
func (t *telling) inferred(it model.Item, place model.Place) error {
	if place.Type != model.RefPull {
		return nil
	}
	if carries, err := t.carries(it, place); err != nil || carries {
		return err
	}
	return t.tx.PutRef(model.Ref{ItemID: it.ID, Place: place, Role: protocol.WhyInferred, Source: t.event.ID, AddedAt: t.now})
}
