package dispatch

// This file decides what the office does about one person by itself: end a round, or make the next offer.

import (
	"fmt"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
)

// OfferTimeout is how long a connected agent may leave an offer unanswered before it counts as declined.
const OfferTimeout = 2 * time.Minute

// Snapshot is all that a decision about one person looks at.
type Snapshot struct {
	// Team is nil where the office knows no such team.
	Team   *model.Team
	Person model.Person
	// Connected says that the agent is there, since ConnectedAt; AwayAt is since when it is not.
	Connected   bool
	ConnectedAt time.Time
	AwayAt      time.Time
	// PausedUntil is when usage stops holding the person back; see PausedUntil.
	PausedUntil time.Time
	// Current is the item that the person has an offer of or runs.
	Current *model.Item
	// Queue has the first candidates in order; NextAt is when one that backs off comes up.
	Queue  []model.Item
	NextAt time.Time
	// Spent is what budgets are held against.
	Spent Spent
}

// Plan is what is to be done about the person.
type Plan struct {
	// Put are items to store. Ended is the round that ended with the item, which is then the only one.
	Put   []model.Item
	Ended *model.Round
	// Offer is the item (also in Put) to be offered now.
	Offer *model.Item
	// Further says that none of the candidates can be offered, but one behind them might.
	Further bool
	// Drop says that the agent must end a run that it has: its connection is closed, with this reason.
	Drop string
	// WakeAt is when to look again though nothing happened; zero is never.
	WakeAt time.Time
}

// Empty says whether there is nothing to do now.
func (p Plan) Empty() bool { return len(p.Put) == 0 && p.Drop == "" }

// Next decides for one person at one time.
func Next(s Snapshot, now time.Time) Plan {
	if s.Current != nil {
		if s.Current.Round.Accepted() {
			return running(s, now)
		}
		return offered(s, now)
	}
	return idle(s, now)
}

// running ends the round that takes too long, that a budget ends, or whose program is gone.
func running(s Snapshot, now time.Time) Plan {
	it, policy := *s.Current, s.policy()
	var plan Plan
	if why := s.Spent.stops(s.budgets(), it); why.Reason != "" {
		out := stopped(it, why, now)
		return Plan{Put: []model.Item{out.Item}, Ended: out.Ended, Drop: "a usage budget ended the round"}
	}
	if limit := it.Spec.Timeout; limit > 0 {
		at := it.Round.AcceptedAt.Add(limit)
		if !now.Before(at) {
			out := timeout(it, policy, now)
			return Plan{Put: []model.Item{out.Item}, Ended: out.Ended, Drop: "the round took too long and was ended"}
		}
		plan.wake(at)
	}
	if !s.Connected {
		at := s.AwayAt.Add(policy.LostAfter)
		if !now.Before(at) {
			out := lost(it, policy, fmt.Sprintf("The agent was away for %s in the middle of the round.", policy.LostAfter), now)
			return Plan{Put: []model.Item{out.Item}, Ended: out.Ended, Drop: "the round was lost"}
		}
		plan.wake(at)
	}
	if seen, died := s.incarnation(); seen {
		round := *it.Round
		round.Incarnation = s.Person.Incarnation
		it.Round = &round
		if died {
			it.LostRounds++
			if it.LostRounds > policy.MaxLostRounds {
				ended := end(&it, model.OutcomeLost, "The agent's program died in the middle of the round.", now)
				blockLost(&it, policy, now)
				return Plan{Put: []model.Item{it}, Ended: ended, Drop: "too many rounds of the item were lost"}
			}
		}
		plan.Put = []model.Item{it}
	}
	return plan
}

// incarnation says whether the agent's container is another one than was last seen in this round, and whether the one before
// died in it. A container that started before the round was accepted is the one that accepted it, seen late.
func (s Snapshot) incarnation() (seen, died bool) {
	round := s.Current.Round
	if s.Person.Incarnation == "" || s.Person.Incarnation == round.Incarnation {
		return false, false
	}
	return true, s.Person.IncarnationAt.After(round.AcceptedAt)
}

// offered takes an offer back that the agent does not answer. One that connects is sent the offer again, and has its time anew.
func offered(s Snapshot, now time.Time) Plan {
	it, policy := *s.Current, s.policy()
	sent := it.Round.OfferedAt
	if s.ConnectedAt.After(sent) {
		sent = s.ConnectedAt
	}
	at, reason := sent.Add(OfferTimeout), "The agent did not answer the offer."
	if !s.Connected {
		at, reason = s.AwayAt.Add(policy.LostAfter), "The agent went away before it answered the offer."
	}
	if now.Before(at) {
		return Plan{WakeAt: at}
	}
	out, err := Decline(it, it.Assignee, reason, policy, now)
	if err != nil {
		return Plan{}
	}
	plan := Plan{Put: []model.Item{out.Item}, Ended: out.Ended}
	if s.Connected {
		plan.Drop = "an offer was left unanswered"
	}
	return plan
}

// idle offers the first item of the queue that may run.
func idle(s Snapshot, now time.Time) Plan {
	if !s.Connected || s.Team == nil || s.Team.Suspended || s.Person.Suspended || s.Person.Draining {
		return Plan{}
	}
	if now.Before(s.PausedUntil) {
		return Plan{WakeAt: s.PausedUntil}
	}
	plan := Plan{Further: true}
	plan.wake(s.NextAt)
	for i, it := range s.Queue {
		if it.Question != nil && it.Question.Asker == s.Person.Key.Handle {
			continue // asked of the person's own role
		}
		if why := s.Spent.exceeds(s.budgets(), it); why.Reason != "" {
			others := why.Scope == model.BudgetPerson && it.Assignee == "" // somebody else of the role may have room
			if it.Hold != why && !others {
				it.Hold = why
				plan.Put = append(plan.Put, it)
			}
			// Of a budget of the team or the person, what is behind has no more room.
			plan.Further = plan.Further && why.Scope == model.BudgetItem
			continue
		}
		offer := Offer(it, s.Person.Key.Handle, now)
		plan.Put = append(plan.Put, offer)
		plan.Put = append(plan.Put, s.Spent.freed(s.budgets(), s.Queue[i+1:])...)
		plan.Offer, plan.Further = &offer, false
		plan.wake(now.Add(OfferTimeout))
		return plan
	}
	return plan
}

func (p *Plan) wake(at time.Time) {
	if !at.IsZero() && (p.WakeAt.IsZero() || at.Before(p.WakeAt)) {
		p.WakeAt = at
	}
}

// policy is the team's, or the defaults where the team is gone: a round that runs goes on under them.
func (s Snapshot) policy() model.Policy {
	if s.Team != nil {
		return s.Team.Policy
	}
	return DefaultPolicy()
}

// budgets are the team's, none where the team is gone.
func (s Snapshot) budgets() []model.Budget {
	if s.Team == nil {
		return nil
	}
	return s.Team.Usage.Budgets
}

// DefaultPolicy has the values that a team gets which declares none.
func DefaultPolicy() model.Policy {
	return model.Policy{
		Heartbeat: 15 * time.Second, Attempts: 3, MaxLostRounds: 3, LostAfter: 10 * time.Minute,
		BackoffInitial: 10 * time.Second, BackoffMax: 1000 * time.Second,
	}
}
