package office

// This file finds somebody for what is free: an item that anybody of its role may take, and room in a team's budgets. It looks at people
// one after the other, in a fixed order, so that who gets it is no matter of luck, and at no more than it has to.

import (
	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
)

// fill looks at those of an item's role who are free, until one of them has it. Where none can have it yet, all of them know when to look
// again.
func (w *work) fill(id string) error {
	it, err := w.tx.Item(id)
	if err != nil || !isOpening(it) {
		return err
	}
	people, err := w.tx.InRole(it.TeamKey(), it.Spec.Role)
	if err != nil {
		return err
	}
	busy, err := w.busy(it.TeamKey())
	if err != nil {
		return err
	}
	for _, key := range people {
		if !w.free(key, busy) {
			continue
		}
		changed, err := w.look(key)
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		if it, err = w.tx.Item(id); err != nil || !isOpening(it) {
			return err
		}
	}
	return nil
}

// refill gives the room that a round left in the budgets of a team to those whose items wait for it, in the order in which these run. Where
// there is none, it tells them why, if that is something new.
func (w *work) refill(key model.TeamKey) error {
	it, err := found(w.tx.NextHeld(key, nil))
	if err != nil || it == nil {
		return err
	}
	hold, err := w.teamHold(key)
	var busy map[string]bool
	seen := map[model.Queue]bool{}
	for ; err == nil && it != nil; it, err = found(w.tx.NextHeld(key, it)) {
		if seen[it.Queue()] {
			continue
		}
		if hold.Reason != "" && it.Hold == hold {
			return nil // and so are those of all others
		}
		if busy == nil {
			if busy, err = w.busy(key); err != nil {
				return err
			}
		}
		seen[it.Queue()] = true
		if hold, err = w.refillQueue(key, it.Queue(), busy, hold); err != nil {
			return err
		}
	}
	return err
}

// refillQueue looks at those who are free for a queue, until there is no more room. hold is why there is none, before and after.
func (w *work) refillQueue(key model.TeamKey, queue model.Queue, busy map[string]bool, hold model.Why) (model.Why, error) {
	people := []model.PersonKey{{Team: key, Handle: queue.Person}}
	if queue.Person == "" {
		var err error
		if people, err = w.tx.InRole(key, queue.Role); err != nil {
			return hold, err
		}
	}
	for _, person := range people {
		if !w.free(person, busy) {
			continue
		}
		busy[person.Handle] = true // or has nothing to take
		changed, err := w.look(person)
		if err == nil && changed && hold.Reason == "" {
			hold, err = w.teamHold(key)
		}
		if err != nil || hold.Reason != "" {
			return hold, err
		}
	}
	return hold, nil
}

// busy are the handles of those of a team who have a round.
func (w *work) busy(key model.TeamKey) (map[string]bool, error) {
	handles, err := w.tx.Busy(key)
	return setOf(handles), err
}

// free says whether a person is connected and none of the busy.
func (w *work) free(key model.PersonKey, busy map[string]bool) bool {
	_, connected := w.o.hub.Get(key)
	return connected && !busy[key.Handle]
}

// teamHold says why the budgets of a team as a whole have no room for a further round; a zero Why is that they have.
func (w *work) teamHold(key model.TeamKey) (model.Why, error) {
	team, err := found(w.tx.Team(key))
	if err != nil || team == nil {
		return model.Why{}, err
	}
	spent, err := w.spent(model.PersonKey{Team: key})
	return spent.TeamHold(team.Usage.Budgets), err
}

// spent gathers what budgets are held against.
func (w *work) spent(key model.PersonKey) (dispatch.Spent, error) {
	var s dispatch.Spent
	err := w.used(&s, key)
	if err != nil {
		return s, err
	}
	if s.TeamRunning, s.PersonRunning, err = w.tx.RunningRounds(key); err != nil {
		return s, err
	}
	s.Recent, err = w.tx.RecentRounds(key.Team)
	return s, err
}

// used gathers the usage alone: what rounds are stopped for.
func (w *work) used(s *dispatch.Spent, key model.PersonKey) (err error) {
	if s.Team, err = w.tx.TeamUsage(key.Team); err != nil {
		return err
	}
	s.Person, err = w.tx.PersonUsage(key)
	return err
}
