package dispatch

// This file moves an item between rounds: what somebody said starts its next one, or its person moves it.

import (
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Hear queues an item for which feedback came, where that starts a next round: one that waits, is done, or is stuck in a way that words
// can help with. An item that is queued or runs has the feedback in its next offer. human says that somebody of flesh gave it: only that
// gives an item new attempts which used its own up.
func Hear(it model.Item, human bool) Outcome {
	switch it.State {
	case protocol.StateWaiting, protocol.StateDone:
	case protocol.StateBlocked:
		switch it.End.Reason {
		case model.ReasonBlocked, model.ReasonNothingToReview:
		case model.ReasonAttemptsExhausted, model.ReasonRoundsLost, model.ReasonMoved:
			if !human {
				return Outcome{Item: it}
			}
		default:
			return Outcome{Item: it}
		}
	default:
		return Outcome{Item: it}
	}
	requeue(&it)
	return Outcome{Item: it, Changed: true}
}

// Answered queues an item that waits: a question of its agent's was answered.
func Answered(it model.Item) Outcome {
	if it.State != protocol.StateWaiting {
		return Outcome{Item: it}
	}
	requeue(&it)
	return Outcome{Item: it, Changed: true}
}

// Move puts an item where its person wants it. Moving an item to where it is changes nothing.
func Move(it model.Item, person string, to protocol.MoveStatus, now time.Time) (Outcome, *protocol.WireError) {
	if err := own(it, person); err != nil {
		return Outcome{}, err
	}
	if it.State == protocol.WorkItemState(to) && it.Round == nil {
		return Outcome{Item: it}, nil
	}
	switch {
	case it.Round.Accepted():
		return Outcome{}, protocol.Errorf(protocol.CodeInvalid, "work item %s is running: hand it back, as blocked, waiting or silent, instead of moving it", it.ID)
	case it.Finished():
		return Outcome{}, protocol.Errorf(protocol.CodeInvalid, "work item %s is %s: only its user can start it again, with spec.rerun", it.ID, it.State)
	case to == protocol.MoveQueued && it.Round != nil:
		return Outcome{Item: it}, nil // offered: it is queued
	}
	if to == protocol.MoveQueued {
		requeue(&it)
		return Outcome{Item: it, Changed: true}, nil
	}
	why := model.Why{Reason: model.ReasonMoved, Message: person + " moved it to " + string(to) + "."}
	ended := end(&it, model.OutcomeDeclined, why.Message, now)
	settle(&it, protocol.WorkItemState(to), why, now)
	return Outcome{Item: it, Ended: ended, Changed: true}, nil
}
