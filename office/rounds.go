package office

// This file has what an agent says about a round: that it takes it, how it goes, and how it ends.

import (
	"crypto/sha256"
	"errors"
	"time"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

func (r request) accept(m protocol.Accept) (protocol.Message, error) {
	if err := errors.Join(short("runtime", m.Runtime, maxName), short("model", m.Model, maxName)); err != nil {
		return nil, err
	}
	return nil, r.onItem(m.WorkItemID, func(w *work, it model.Item) (dispatch.Outcome, error) {
		out, err := outcome(dispatch.Accept(it, r.p.key.Handle, m, w.now))
		if err != nil || !out.Changed {
			return out, err
		}
		// What the round found, so that a silent hand-back can put it back.
		ticket, err := w.ticketOf(it)
		if ticket != nil {
			out.Item.Round.TicketStatus = ticket.Status
		}
		return out, err
	})
}

func (r request) decline(m protocol.Decline) (protocol.Message, error) {
	return nil, r.onItem(m.WorkItemID, func(w *work, it model.Item) (dispatch.Outcome, error) {
		if first, err := w.first(r.p, it, r.f); err != nil || !first {
			return dispatch.Outcome{Item: it}, err
		}
		policy, err := w.policy(it)
		if err != nil {
			return dispatch.Outcome{}, err
		}
		return outcome(dispatch.Decline(it, r.p.key.Handle, m.Reason, policy, w.now))
	})
}

// heartbeat shows life. It writes nothing, and reads the store only for an item that is not known to run.
func (r request) heartbeat(m protocol.Heartbeat) (protocol.Message, error) {
	if m.WorkItemID == "" {
		return protocol.Ack{}, nil
	}
	if !r.p.isRunning(m.WorkItemID) {
		return r.read(func(tx store.Reader) (protocol.Message, error) {
			_, err := running(tx, r.p, m.WorkItemID)
			return protocol.Ack{}, err
		})
	}
	r.p.beat.Store(time.Now().UnixNano())
	return protocol.Ack{}, nil
}

func (r request) progress(m protocol.Progress) (protocol.Message, error) {
	return nil, r.onRun(m.WorkItemID, func(w *work, it *model.Item) error {
		it.Progress, it.ProgressAt = cut(m.Text, maxProgress), w.now
		return nil
	})
}

func (r request) session(m protocol.Session) (protocol.Message, error) {
	if err := errors.Join(short("sessionId", m.SessionID, maxSessionID), short("model", m.Model, maxName)); err != nil {
		return nil, err
	}
	return nil, r.onRun(m.WorkItemID, func(_ *work, it *model.Item) error {
		it.SessionID, it.SessionModel = m.SessionID, m.Model
		return nil
	})
}

func (r request) journal(m protocol.Journal) (protocol.Message, error) {
	return nil, r.onceOnRun(m.WorkItemID, func(w *work, it *model.Item) error {
		return w.tx.AppendJournal(model.JournalEntry{ItemID: it.ID, At: w.now, Author: r.p.key.Handle, Text: m.Text})
	})
}

func (r request) handback(m protocol.Handback) (protocol.Message, error) {
	r.o.awaitRecords(r.ctx, m.WorkItemID)
	return nil, r.endOfRound(m.WorkItemID, m.Usage, func(w *work, it model.Item) (dispatch.Outcome, error) {
		noReview, err := w.noReview(r.p, it)
		if err != nil {
			return dispatch.Outcome{}, err
		}
		return outcome(dispatch.HandBack(it, r.p.key.Handle, m, noReview, w.now))
	})
}

func (r request) fail(m protocol.Fail) (protocol.Message, error) {
	r.o.awaitRecords(r.ctx, m.WorkItemID)
	return nil, r.endOfRound(m.WorkItemID, m.Usage, func(w *work, it model.Item) (dispatch.Outcome, error) {
		policy, err := w.policy(it)
		if err != nil {
			return dispatch.Outcome{}, err
		}
		return outcome(dispatch.Fail(it, r.p.key.Handle, m.Reason, policy, w.now))
	})
}

// onceOnRun does something about an item that the person runs now, unless the message repeats one that was taken.
func (r request) onceOnRun(id string, do func(*work, *model.Item) error) error {
	return r.change(func(w *work) error {
		it, err := itemOf(w.tx, r.p, id)
		if err != nil {
			return err
		}
		if first, err := w.first(r.p, it, r.f); err != nil || !first {
			return err
		}
		if _, err := running(w.tx, r.p, id); err != nil {
			return err
		}
		r.p.beat.Store(time.Now().UnixNano())
		return do(w, &it)
	})
}

// noReview says whether the person's role declares the item's kind to finish without a review.
func (w *work) noReview(p *peer, it model.Item) (bool, error) {
	team, err := found(w.tx.Team(p.key.Team))
	if err != nil || team == nil {
		return false, err
	}
	person, err := found(w.tx.PersonByKey(p.key))
	if err != nil || person == nil {
		return false, err
	}
	return needsNoReview(team.Config, person.Role, it.Spec.Kind), nil
}

// first says whether the message comes for the first time: the same id and payload from the same person is a repeat. Somebody
// else's item is refused before anything of it is remembered.
func (w *work) first(p *peer, it model.Item, f protocol.Frame) (bool, error) {
	if it.Assignee != p.key.Handle {
		return false, protocol.Errorf(protocol.CodeUnknownItem, "you have no work item %s", it.ID)
	}
	data, err := protocol.Encode(protocol.Frame{ID: f.ID, Message: f.Message})
	if err != nil {
		return false, err
	}
	return w.tx.FirstTime(it.ID, sha256.Sum256(append([]byte(p.key.String()+"\x00"), data...)), w.now)
}

// onItem changes an item by a pure decision.
func (r request) onItem(id string, decide func(*work, model.Item) (dispatch.Outcome, error)) error {
	return r.change(func(w *work) error {
		it, err := itemOf(w.tx, r.p, id)
		if err != nil {
			return err
		}
		out, err := decide(w, it)
		if err != nil {
			return err
		}
		if out.Changed && out.Item.Round.Accepted() {
			if err := w.tx.PutRound(*out.Item.Round); err != nil {
				return err
			}
		}
		return w.apply(it.State, out)
	})
}

// onRun changes an item that the person runs now.
func (r request) onRun(id string, edit func(*work, *model.Item) error) error {
	err := r.change(func(w *work) error {
		it, err := running(w.tx, r.p, id)
		if err != nil {
			return err
		}
		if err := edit(w, &it); err != nil {
			return err
		}
		w.changed[model.Change{Kind: model.ChangedItem, Namespace: it.Namespace, Name: it.Name}] = struct{}{}
		return w.tx.PutItem(&it)
	})
	if err == nil {
		r.p.beat.Store(time.Now().UnixNano())
	}
	return err
}
