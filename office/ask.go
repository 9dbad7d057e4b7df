package office

// This file carries questions between people: a question is a work item of whoever is asked.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// ask makes a question, or tells how the same one stands: asked by the same person at the same item, of the same one, in the same words.
func (r request) ask(m protocol.Ask) (protocol.Message, error) {
	if strings.TrimSpace(m.Question) == "" {
		return nil, protocol.Errorf(protocol.CodeInvalid, "question is empty: write what you want to know")
	}
	if len(m.Question) > maxBody {
		return nil, protocol.Errorf(protocol.CodeInvalid, "question has at most %d bytes, not %d", maxBody, len(m.Question))
	}
	return r.reply(func(w *work) (protocol.Message, error) {
		id := bornID(r.p.key.Team, model.KindQuestion, r.p.key.Handle, m.WorkItemID, m.To, m.Question)
		known, err := found(w.tx.Item(id))
		if err != nil {
			return nil, err
		}
		if known != nil {
			return asked(*known)
		}
		it := model.Item{ID: id, Namespace: r.p.key.Team.Namespace, Question: &model.Question{
			Asker: r.p.key.Handle, AskerItem: m.WorkItemID, To: m.To, Text: m.Question,
		}}
		it.Spec = model.ItemSpec{
			Team: r.p.key.Team.Name, Kind: model.KindQuestion, Title: firstLine(m.Question), Body: m.Question, Requester: r.p.key.Handle,
			Priority: priorityQuestion, Trigger: protocol.TriggerAgent,
		}
		if err := w.route(&it.Spec, r.p.key, m.To); err != nil {
			return nil, err
		}
		if m.WorkItemID != "" {
			at, err := itemOf(w.tx, r.p, m.WorkItemID)
			if err != nil {
				return nil, err
			}
			if at.Assignee != r.p.key.Handle {
				return nil, protocol.Errorf(protocol.CodeUnknownItem, "you have no work item %s", at.ID)
			}
			it.Spec.Parent, it.Spec.ParentID = at.Name, at.ID
		}
		if it, _, err = w.bear(it); err != nil {
			return nil, err
		}
		return asked(it)
	})
}

// route finds who is asked: a person by handle, else the people of a role.
func (w *work) route(spec *model.ItemSpec, asker model.PersonKey, to string) error {
	people, err := w.tx.People(asker.Team)
	if err != nil {
		return err
	}
	inRole := false
	var names []string
	for _, p := range people {
		switch {
		case p.Key == asker:
			continue
		case p.Key.Handle == to:
			spec.Person = to
			return nil
		}
		inRole = inRole || (to != "" && p.Role == to)
		for _, name := range []string{p.Key.Handle, p.Role} {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if inRole {
		spec.Role = to
		return nil
	}
	if to == asker.Handle {
		return protocol.Errorf(protocol.CodeInvalid, "you cannot ask yourself")
	}
	if len(names) == 0 {
		return protocol.Errorf(protocol.CodeNotFound, "there is nobody else on the team to ask")
	}
	return protocol.Errorf(protocol.CodeNotFound, "nobody on the team has the handle or the role %q; there are: %s", cut(to, 100), strings.Join(names, ", "))
}

// asked tells how a question stands.
func asked(it model.Item) (protocol.Message, error) {
	q := it.Question
	switch {
	case !q.AnsweredAt.IsZero():
		return protocol.AskResult{ID: it.ID, To: q.To, Status: protocol.AskAnswered, Answer: q.Answer}, nil
	case it.Gone || it.State == protocol.StateCanceled:
		return nil, protocol.Errorf(protocol.CodeInvalid, "this question was canceled: ask it in other words, or somebody else")
	}
	return protocol.AskResult{ID: it.ID, To: q.To, Status: protocol.AskPending}, nil
}

func (r request) answer(m protocol.Answer) (protocol.Message, error) {
	if strings.TrimSpace(m.Answer) == "" {
		return nil, protocol.Errorf(protocol.CodeInvalid, "answer is empty")
	}
	return nil, r.onceOnRun(m.QuestionID, func(w *work, it *model.Item) error {
		if it.Question == nil {
			return protocol.Errorf(protocol.CodeInvalid, "work item %s is no question: hand it back instead of answering it", it.ID)
		}
		return w.answered(it, m.Answer)
	})
}

// answered keeps the answer of a question, writes it into the journal of the asker's item, and lets that item go on if it waits.
func (w *work) answered(it *model.Item, answer string) error {
	q := *it.Question
	q.Answer, q.AnsweredBy, q.AnsweredAt = answer, it.Assignee, w.now
	it.Question = &q
	if err := w.put(it); err != nil {
		return err
	}
	if q.AskerItem == "" {
		return nil
	}
	at, err := found(w.tx.Item(q.AskerItem))
	if err != nil || at == nil {
		return err
	}
	err = w.tx.AppendJournal(model.JournalEntry{
		ItemID: at.ID, At: w.now, Author: q.AnsweredBy, Text: fmt.Sprintf("Answer to %q: %s", cut(q.Text, 500), q.Answer),
	})
	if err != nil {
		return err
	}
	if err := w.apply(at.State, dispatch.Answered(*at)); err != nil {
		return err
	}
	return w.rehold([]string{at.ID})
}

// settleQuestion takes the summary of a question's hand-back for its answer where no other one was given, so that nobody waits for ever.
func (w *work) settleQuestion(it *model.Item) error {
	if it.Question == nil || it.State != protocol.StateDone || !it.Question.AnsweredAt.IsZero() || it.Summary == "" {
		return nil
	}
	return w.answered(it, it.Summary)
}
