package dispatch

// This file brings the store's item in line with its object: a new one, a changed spec, or a status that knows more than the
// store because the store was lost, swapped or restored from an older backup.

import (
	"cmp"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Reconciled is an item in line with its object.
type Reconciled struct {
	Outcome
	// Restored says that the item was taken from its status: its usage by model starts from there.
	Restored bool
	// Lost is the round that an older backup has open, of an item that was restored over it; nil where there is none. How it ended is
	// known in the status only, so nothing follows from its end.
	Lost *model.Round
}

// Reconcile gives the item as it must be. existing is the store's item or nil; tombstone is the item that an expired object of the
// same name and spec left, or nil.
func Reconcile(existing, tombstone *model.Item, facts model.ItemFacts, storeID string, now time.Time) Reconciled {
	switch {
	case existing == nil && facts.Recorded.StoreID != "":
		return Reconciled{Outcome: Outcome{Item: restore(facts, now), Changed: true}, Restored: true}
	case existing == nil:
		return Reconciled{Outcome: Outcome{Item: create(tombstone, facts), Changed: true}}
	case facts.Recorded.StoreID == storeID && facts.Recorded.Revision > existing.Revision:
		it, older := restore(facts, now), *existing
		lost := end(&older, model.OutcomeLost, "The store was restored from a backup that is older than the end of the round.", now)
		it.Offers = max(it.Offers, existing.Offers) // no number of a round is given twice
		it.Place, it.Origin, it.Question, it.Filed, it.FeedbackSeen = existing.Place, existing.Origin, existing.Question, existing.Filed, existing.FeedbackSeen
		return Reconciled{Outcome: Outcome{Item: it, Changed: true}, Restored: true, Lost: lost}
	}
	return Reconciled{Outcome: update(*existing, facts, now)}
}

// create makes an item that nobody has worked on, or one with the outcome of its tombstone.
func create(tombstone *model.Item, facts model.ItemFacts) model.Item {
	it := blank(facts)
	if tombstone != nil {
		it.State, it.End = tombstone.State, tombstone.End
		it.Assignee, it.Rounds, it.Offers = tombstone.Assignee, tombstone.Rounds, tombstone.Offers
		it.Summary, it.Links, it.ToReview = tombstone.Summary, tombstone.Links, tombstone.ToReview
		it.StartedAt, it.FinishedAt = tombstone.StartedAt, tombstone.FinishedAt
		return it
	}
	if facts.Spec.Cancel {
		settle(&it, protocol.StateCanceled, canceledByUser, facts.CreatedAt)
	}
	return it
}

// restore makes the item from what its status recorded. Finished work stays finished; what was under way is queued again,
// first of all, with its session.
func restore(facts model.ItemFacts, now time.Time) model.Item {
	it, rec := blank(facts), facts.Recorded
	it.Assignee, it.Rounds, it.Offers = cmp.Or(rec.Assignee, it.Assignee), rec.Rounds, rec.Rounds
	it.Failures, it.LostRounds = rec.Failures, rec.LostRounds
	it.SessionID, it.Summary, it.Links, it.Usage = rec.SessionID, rec.Summary, rec.Links, rec.Usage
	it.StartedAt = rec.StartedAt
	if facts.BornID != "" && it.Spec.Kind == model.KindQuestion {
		// All that a question is stands in its object.
		it.Question = &model.Question{
			Asker: it.Spec.Requester, AskerItem: it.Spec.ParentID, To: cmp.Or(it.Spec.Person, it.Spec.Role), Text: it.Spec.Body,
		}
		if rec.State == protocol.StateDone {
			it.Question.Answer, it.Question.AnsweredBy, it.Question.AnsweredAt = rec.Summary, it.Assignee, rec.FinishedAt
		}
	}
	it.Origin = facts.Origin
	switch rec.State {
	case protocol.StateDone, protocol.StateCanceled, protocol.StateBlocked, protocol.StateWaiting:
		it.State, it.End, it.FinishedAt = rec.State, rec.End, rec.FinishedAt
	case protocol.StateActive:
		it.Front, it.Interrupted = true, true
	}
	it.Spec.Rerun = rec.Rerun
	return update(it, facts, now).Item
}

func blank(facts model.ItemFacts) model.Item {
	return model.Item{
		ID: facts.ID, Namespace: facts.Namespace, Name: facts.Name, CreatedAt: facts.CreatedAt,
		Spec: facts.Spec, State: protocol.StateQueued, Assignee: facts.Spec.Person,
	}
}

var canceledByUser = model.Why{Reason: model.ReasonCanceled, Message: "Canceled by spec.cancel."}

// update takes over a changed spec: cancel and rerun act at once, the rest reaches the next round.
func update(it model.Item, facts model.ItemFacts, now time.Time) Outcome {
	out := Outcome{Item: it}
	same := it.Spec.Generation == facts.Spec.Generation && it.Spec.Hash == facts.Spec.Hash && it.Spec.Rerun == facts.Spec.Rerun &&
		(it.Spec.ParentID != "" || facts.Spec.ParentID == "") // the parent may come later
	if same && (!facts.Spec.Cancel || it.Finished()) {
		return out
	}
	rerun := facts.Spec.Rerun != "" && facts.Spec.Rerun != it.Spec.Rerun
	if facts.Spec.Priority != it.Spec.Priority {
		out.Item.Place = nil // the user's word is the later one
	}
	out.Item.Spec = facts.Spec
	out.Changed = true
	switch {
	case facts.Spec.Cancel:
		if canceled := Cancel(out.Item, canceledByUser, now); canceled.Changed {
			return canceled
		}
	case rerun && out.Item.Round == nil && out.Item.State != protocol.StateQueued:
		requeue(&out.Item)
	}
	return out
}
