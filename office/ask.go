package office

// This file carries questions between people: a question is a work item of whoever is asked.

import (
	"cmp"
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
		if it, err = w.bear(it); err != nil {
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
	case q == nil:
		return nil, protocol.Errorf(protocol.CodeInvalid, "this question is not known as one any more: ask it in other words")
	case !q.AnsweredAt.IsZero():
		return protocol.AskResult{ID: it.ID, To: q.To, Status: protocol.AskAnswered, Answer: q.Answer}, nil
	case it.Gone || it.Finished():
		return nil, protocol.Errorf(protocol.CodeInvalid, "this question ended without an answer: ask it in other words, or somebody else")
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
		if !it.Question.AnsweredAt.IsZero() {
			return protocol.Errorf(protocol.CodeInvalid, "this question is answered already: hand it back")
		}
		return w.answered(it, m.Answer)
	})
}

// answered keeps the answer of a question, and tells the asker.
func (w *work) answered(it *model.Item, answer string) error {
	q := *it.Question
	q.Answer, q.AnsweredBy, q.AnsweredAt = answer, it.Assignee, w.now
	it.Question = &q
	if err := w.put(it); err != nil {
		return err
	}
	return w.tellAsker(*it, q.AnsweredBy, fmt.Sprintf("Answer to %q: %s", cut(q.Text, 500), q.Answer))
}

// tellAsker writes what became of a question into the journal of the asker's item, and lets that item go on: at once if it waits, or when
// its round is handed back as waiting, as that round may not have known.
func (w *work) tellAsker(it model.Item, author, text string) error {
	if it.Question.AskerItem == "" {
		return nil
	}
	at, err := found(w.tx.Item(it.Question.AskerItem))
	if err != nil || at == nil || at.Gone {
		return err
	}
	if err := w.tx.AppendJournal(model.JournalEntry{ItemID: at.ID, At: w.now, Author: author, Text: text}); err != nil {
		return err
	}
	if at.Round != nil {
		round := *at.Round
		round.Answered = true
		at.Round = &round
		return w.tx.PutItem(at)
	}
	if err := w.apply(at.State, dispatch.Answered(*at)); err != nil {
		return err
	}
	return w.rehold([]string{at.ID})
}

// endQuestion follows up on a question that has come to an end: where nobody answered it, the summary of its hand-back is the answer, and
// without one the asker hears that there is none. So nobody waits for ever.
func (w *work) endQuestion(it *model.Item) error {
	if it.Question == nil || !it.Question.AnsweredAt.IsZero() || !it.Finished() {
		return nil
	}
	if it.State == protocol.StateDone && it.Summary != "" {
		return w.answered(it, it.Summary)
	}
	return w.tellAsker(*it, cmp.Or(it.Assignee, "office"), fmt.Sprintf("Your question %q ended without an answer: %s", cut(it.Question.Text, 500), it.End.Message))
}
