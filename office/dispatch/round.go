package dispatch

// This file carries an item through one round: offer, accept, and each of the ways in which it can end.

import (
	"fmt"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Outcome is what a message or an event made of an item.
type Outcome struct {
	Item model.Item
	// Ended is the round that ended with it, nil where none did.
	Ended *model.Round
	// Changed is false where the message repeats what is so already.
	Changed bool
}

// Offer makes the item the person's current one: its next round is offered.
func Offer(it model.Item, person string, now time.Time) model.Item {
	it.Offers++
	it.Assignee = person
	it.Hold = model.Why{}
	it.Round = &model.Round{ItemID: it.ID, Number: it.Offers, Person: person, OfferedAt: now, SessionID: it.SessionID}
	return it
}

// Accept takes an offer. Accepting one's own running item again changes nothing.
func Accept(it model.Item, person string, a protocol.Accept, now time.Time) (Outcome, *protocol.WireError) {
	if err := own(it, person); err != nil {
		return Outcome{}, err
	}
	if it.Round == nil {
		return Outcome{}, notActive(it, "cannot be accepted: it is not offered to you")
	}
	if it.Round.Accepted() {
		return Outcome{Item: it}, nil
	}
	round := *it.Round
	round.AcceptedAt, round.Runtime, round.Model = now, a.Runtime, a.Model
	it.Round = &round
	it.State = protocol.StateActive
	it.Rounds++
	it.Declines = 0
	it.Front, it.Interrupted, it.Place = false, false, nil // a place in the queue is given up with leaving it
	it.NotBefore, it.FinishedAt = time.Time{}, time.Time{}
	it.Hold, it.End = model.Why{}, model.Why{}
	it.Progress, it.ProgressAt = "", time.Time{}
	if it.StartedAt.IsZero() {
		it.StartedAt = now
	}
	return Outcome{Item: it, Changed: true}, nil
}

// Decline gives an offer back to the queue; the next one waits longer each time. An item that was asked of a role and never
// ran is free for others of the role.
func Decline(it model.Item, person, reason string, policy model.Policy, now time.Time) (Outcome, *protocol.WireError) {
	if err := own(it, person); err != nil {
		return Outcome{}, err
	}
	if it.Round == nil {
		return Outcome{}, notActive(it, "cannot be declined: it is not offered to you")
	}
	if it.Round.Accepted() {
		return Outcome{}, protocol.Errorf(protocol.CodeInvalid,
			"work item %s is accepted: hand it back or fail it instead of declining", it.ID)
	}
	ended := end(&it, model.OutcomeDeclined, reason, now)
	it.Declines++
	it.NotBefore = now.Add(Backoff(policy, it.Declines))
	it.Progress, it.ProgressAt = fmt.Sprintf("%s declined it: %s", person, reason), now
	release(&it)
	return Outcome{Item: it, Ended: ended, Changed: true}, nil
}

// passes says whether a hand-back as done has something to review, or needs nothing. noReview says that the role declares the item's
// kind to finish without a review.
func passes(it model.Item, hb protocol.Handback, noReview bool) bool {
	return noReview || len(hb.ToReview) > 0 || it.Spec.Kind == model.KindQuestion || (it.Spec.Kind == model.KindChat && it.Birth != nil) || len(it.Round.Produced) > 0
}

// HandBack ends a round as the agent says. A done one needs something to review: named in it, or made in this round as far as the office
// knows. A late hand-back, of a round that the office ended already, changes nothing.
func HandBack(it model.Item, person string, hb protocol.Handback, noReview bool, now time.Time) (Outcome, *protocol.WireError) {
	if late, err := late(it, person); late || err != nil {
		return Outcome{Item: it}, err
	}
	outcome, state := model.OutcomeDone, protocol.StateDone
	why := model.Why{Reason: model.ReasonDone, Message: hb.Summary}
	switch hb.Status {
	case protocol.HandbackDone:
		if !passes(it, hb, noReview) {
			outcome, state = model.OutcomeBlocked, protocol.StateBlocked
			why = model.Why{Reason: model.ReasonNothingToReview, Message: "The agent handed the item back as done, but named nothing " +
				"to review and made nothing that the office knows of. Look at its summary; set spec.rerun to let it go on. " +
				"Kinds of work that need no review are declared in the role (work[].review: None)."}
		}
	case protocol.HandbackSilent:
		outcome, why.Reason = model.OutcomeSilent, model.ReasonSilent
	case protocol.HandbackWaiting:
		outcome, state, why.Reason = model.OutcomeWaiting, protocol.StateWaiting, model.ReasonWaiting
	case protocol.HandbackBlocked:
		outcome, state, why.Reason = model.OutcomeBlocked, protocol.StateBlocked, model.ReasonBlocked
	case protocol.HandbackInterrupted:
		ended := end(&it, model.OutcomeInterrupted, hb.Summary, now)
		it.Front, it.Interrupted = true, true
		it.Summary = hb.Summary
		return Outcome{Item: it, Ended: ended, Changed: true}, nil
	}
	ended := end(&it, outcome, hb.Summary, now)
	ended.ToReview = hb.ToReview
	it.Summary, it.Links, it.ToReview = hb.Summary, hb.Links, hb.ToReview
	it.FeedbackSeen = max(it.FeedbackSeen, ended.FeedbackUpTo)
	settle(&it, state, why, now)
	return Outcome{Item: it, Ended: ended, Changed: true}, nil
}

// Fail ends a round that could not be done: the item is tried again later, or blocked when its attempts are used up.
func Fail(it model.Item, person, reason string, policy model.Policy, now time.Time) (Outcome, *protocol.WireError) {
	if late, err := late(it, person); late || err != nil {
		return Outcome{Item: it}, err
	}
	ended := end(&it, model.OutcomeFailed, reason, now)
	failed(&it, reason, policy, now)
	return Outcome{Item: it, Ended: ended, Changed: true}, nil
}

// Cancel ends the item for good.
func Cancel(it model.Item, why model.Why, now time.Time) Outcome {
	if it.Finished() {
		return Outcome{Item: it}
	}
	ended := end(&it, model.OutcomeCanceled, why.Message, now)
	settle(&it, protocol.StateCanceled, why, now)
	return Outcome{Item: it, Ended: ended, Changed: true}
}

// Stop ends the round that runs because somebody wants it to end: the item waits for what they say next. An item without a round that runs
// is left as it is.
func Stop(it model.Item, by string, now time.Time) Outcome {
	if !it.Round.Accepted() {
		return Outcome{Item: it}
	}
	why := model.Why{Reason: model.ReasonStopped, Message: by + " stopped it."}
	ended := end(&it, model.OutcomeStopped, why.Message, now)
	ended.StoppedBy = by
	it.FeedbackSeen = max(it.FeedbackSeen, ended.FeedbackUpTo)
	settle(&it, protocol.StateWaiting, why, now)
	return Outcome{Item: it, Ended: ended, Changed: true}
}

// Running checks that the person runs the item now: what progress, journal, session and heartbeat ask for.
func Running(it model.Item, person string) *protocol.WireError {
	if err := own(it, person); err != nil {
		return err
	}
	if it.State != protocol.StateActive || !it.Round.Accepted() {
		return notActive(it, "is not running: end its run")
	}
	return nil
}

// timeout ends a round that took longer than the item allows; it counts as a failure.
func timeout(it model.Item, policy model.Policy, now time.Time) Outcome {
	reason := fmt.Sprintf("The round took longer than spec.timeout (%s).", it.Spec.Timeout)
	ended := end(&it, model.OutcomeTimeout, reason, now)
	failed(&it, reason, policy, now)
	return Outcome{Item: it, Ended: ended, Changed: true}
}

// lost ends a round whose agent is gone.
func lost(it model.Item, policy model.Policy, reason string, now time.Time) Outcome {
	ended := end(&it, model.OutcomeLost, reason, now)
	it.LostRounds++
	it.Front, it.Interrupted = true, true
	if it.LostRounds > policy.MaxLostRounds {
		blockLost(&it, policy, now)
	}
	return Outcome{Item: it, Ended: ended, Changed: true}
}

func blockLost(it *model.Item, policy model.Policy, now time.Time) {
	settle(it, protocol.StateBlocked, model.Why{Reason: model.ReasonRoundsLost, Message: fmt.Sprintf(
		"%d rounds ended without a hand-back, more than the %d that policies.maxLostRounds allows. See why the agent's "+
			"program dies (kubectl describe its pod), then set spec.rerun.", it.LostRounds, policy.MaxLostRounds)}, now)
}

// failed counts a failure and queues the item again, or blocks it.
func failed(it *model.Item, reason string, policy model.Policy, now time.Time) {
	it.Failures++
	it.Summary = reason
	attempts := it.Spec.Attempts
	if attempts == 0 {
		attempts = policy.Attempts
	}
	if it.Failures >= attempts {
		settle(it, protocol.StateBlocked, model.Why{Reason: model.ReasonAttemptsExhausted, Message: fmt.Sprintf(
			"Failed %d of %d times, last: %s", it.Failures, attempts, reason)}, now)
		return
	}
	it.NotBefore = now.Add(Backoff(policy, it.Failures))
	it.Progress, it.ProgressAt = fmt.Sprintf("failed %d of %d times: %s", it.Failures, attempts, reason), now
}

// end takes the round off the item, which is queued again, and gives the ended round; nil where there is none.
func end(it *model.Item, outcome model.RoundOutcome, summary string, now time.Time) *model.Round {
	it.State = protocol.StateQueued
	it.Progress, it.ProgressAt = "", time.Time{}
	if it.Round == nil {
		return nil
	}
	round := *it.Round
	round.EndedAt, round.Outcome, round.Summary, round.SessionID = now, outcome, summary, it.SessionID
	it.Round = nil
	return &round
}

// settle puts an item between rounds into a state that only something new moves it out of.
func settle(it *model.Item, state protocol.WorkItemState, why model.Why, now time.Time) {
	it.State, it.End = state, why
	it.Hold, it.NotBefore = model.Why{}, time.Time{}
	it.Front, it.Interrupted, it.Place = false, false, nil
	it.Progress, it.ProgressAt = "", time.Time{}
	it.FinishedAt = time.Time{}
	if state != protocol.StateWaiting {
		it.FinishedAt = now
	}
}

// requeue starts the item over with fresh counts, keeping its session, summary and usage.
func requeue(it *model.Item) {
	it.State = protocol.StateQueued
	it.Hold, it.End = model.Why{}, model.Why{}
	it.Failures, it.LostRounds, it.Declines = 0, 0, 0
	it.NotBefore, it.FinishedAt = time.Time{}, time.Time{}
}

// release lets others of the role have an item that its assignee never ran.
func release(it *model.Item) {
	if it.Rounds == 0 && it.Spec.Person == "" {
		it.Assignee = ""
	}
}

// own refuses messages about an item that is someone else's, without telling more of it.
func own(it model.Item, person string) *protocol.WireError {
	if it.Assignee != person {
		return protocol.Errorf(protocol.CodeUnknownItem, "you have no work item %s", it.ID)
	}
	return nil
}

// late says whether a hand-back comes after the office ended the round. An item that the person never ran is invalid.
func late(it model.Item, person string) (bool, *protocol.WireError) {
	if err := own(it, person); err != nil {
		return false, err
	}
	if it.Round.Accepted() {
		return false, nil
	}
	if it.Rounds == 0 {
		return false, notActive(it, "was never accepted by you: accept it first")
	}
	return true, nil
}

func notActive(it model.Item, what string) *protocol.WireError {
	return protocol.Errorf(protocol.CodeInvalid, "work item %s %s (it is %s)", it.ID, what, it.State)
}

// Backoff is the wait after the n-th failure or decline in a row, n from 1: it doubles each time, within the policy's bounds.
func Backoff(policy model.Policy, n int) time.Duration {
	d := policy.BackoffInitial
	for i := 1; i < n && d < policy.BackoffMax; i++ {
		d *= 2
	}
	return min(d, max(policy.BackoffMax, policy.BackoffInitial))
}

// PersonGone ends the round of a person who was deleted: the item waits for a person of that handle, or for anyone of its role.
func PersonGone(it model.Item, now time.Time) Outcome {
	ended := end(&it, model.OutcomeInterrupted, "The person was deleted.", now)
	it.Front, it.Interrupted = true, true
	it.Assignee = it.Spec.Person
	return Outcome{Item: it, Ended: ended, Changed: true}
}
