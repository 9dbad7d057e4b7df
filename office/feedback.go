package office

// This file takes feedback: what people and programs say about an item joins its queued round, or starts the next one.

import (
	"fmt"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// hear stores feedback about an item and starts the item's next round, where that is what feedback does: an item that is queued has it
// in that round, one that runs in the one round after its hand-back. It says false for a repeat and for an item that takes none, being
// canceled or gone. human says that somebody of flesh gave it.
func (w *work) hear(id string, f model.Feedback, human bool) (bool, error) {
	it, err := w.tx.Item(id)
	if err != nil {
		return false, err
	}
	if it.Gone || it.State == protocol.StateCanceled {
		return false, nil
	}
	f.ItemID, f.At = id, w.now
	if added, err := w.tx.AppendFeedback(&f); err != nil || !added {
		return false, err
	}
	if err := w.apply(it.State, dispatch.Hear(it, human)); err != nil {
		return false, err
	}
	return true, w.rehold([]string{id})
}

// heardMeanwhile queues an item again whose round has ended while there is feedback that the round's offer did not have.
func (w *work) heardMeanwhile(it model.Item, ended model.Round) (dispatch.Outcome, error) {
	waiting, err := w.tx.Feedback(it.ID, max(it.FeedbackSeen, ended.FeedbackUpTo))
	if err != nil || len(waiting) == 0 {
		return dispatch.Outcome{Item: it}, err
	}
	return dispatch.Hear(it, anyHuman(waiting)), nil
}

// anyHuman says whether some of the feedback is of a kind that only people give: failing checks and stuck colleagues are not.
func anyHuman(feedback []model.Feedback) bool {
	for _, f := range feedback {
		if f.Feedback.Kind != protocol.FeedbackCIFailure && f.Feedback.Kind != protocol.FeedbackBlocked {
			return true
		}
	}
	return false
}

// maxAncestors bounds how far up the items that an item was split from are followed.
const maxAncestors = 32

// tellParent gives an item that became blocked to the one that it was split from as feedback.
func (w *work) tellParent(it model.Item) error {
	if it.State != protocol.StateBlocked || it.Spec.ParentID == "" {
		return nil
	}
	if now, err := w.tx.Item(it.ID); err != nil || now.State != protocol.StateBlocked {
		return err // it goes on already
	}
	parent, err := w.ancestor(it, it.Spec.ParentID)
	if err != nil || parent == nil || parent.Finished() {
		return err
	}
	_, err = w.hear(parent.ID, model.Feedback{
		Key: fmt.Sprintf("blocked/%s/%d", it.ID, it.Revision),
		Feedback: protocol.Feedback{
			Actor: it.Assignee, Kind: protocol.FeedbackBlocked, At: protocol.FormatTime(w.now),
			Body: fmt.Sprintf("%s (%s) is blocked: %s", it.Spec.Title, it.Name, it.End.Message),
		},
	}, false)
	return err
}

// ancestor gives the parent of an item; nil where there is none in its namespace, and where the item is an ancestor of its own: two items
// that are each other's parents would start each other's rounds for ever.
func (w *work) ancestor(it model.Item, parentID string) (*model.Item, error) {
	parent, err := found(w.tx.Item(parentID))
	if err != nil || parent == nil || parent.Namespace != it.Namespace {
		return nil, err
	}
	up := parent
	for range maxAncestors {
		if up == nil || up.Spec.ParentID == "" {
			return parent, nil
		}
		if up.ID == it.ID || up.Spec.ParentID == it.ID {
			return nil, nil
		}
		if up, err = found(w.tx.Item(up.Spec.ParentID)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
