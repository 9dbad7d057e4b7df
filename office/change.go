package office

// This file is the one way in which anything changes: a transaction of the store that ends by deciding what the people it
// touched do next, and effects that leave once it is durable.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// candidates is how many items of a queue a decision looks at first: more than one only where it cannot offer the first ones. Where it can
// offer none of them, it looks at so many times as many.
const (
	candidates     = 16
	moreCandidates = 4
)

// work is one transaction, with what follows from it.
type work struct {
	o   *Office
	tx  *cache
	now time.Time
	// people are yet to be advanced, and waiting has the same as a set. openings are the ids of items that anybody of their role may take;
	// freed are the teams in which a round has ended, and with it what their budgets had set aside for it.
	people   []model.PersonKey
	waiting  map[model.PersonKey]bool
	openings []string
	freed    []model.TeamKey
	// changed are the views to tell of, after runs once the transaction is durable, in its turn.
	changed map[model.Change]struct{}
	after   []func()
	// redeliver sends an offer again that is outstanding: the person has just connected.
	redeliver bool
}

// change runs fn as one durable transaction and then lets its effects leave: first the answer to whoever asked for the change, if
// given, then what it means for others. They leave after those of all transactions that ran before, and must not wait for anything. On an
// error nothing happened and nothing leaves.
func (o *Office) change(ctx context.Context, fn func(w *work) error, answer ...func()) error {
	var w *work
	var t *turn
	defer func() {
		if t != nil {
			t.end()
		}
	}()
	err := o.store.Update(ctx, func(tx store.Tx) error {
		t = o.turns.next()
		w = &work{o: o, tx: newCache(tx), now: o.now(), waiting: map[model.PersonKey]bool{}, changed: map[model.Change]struct{}{}}
		if err := fn(w); err != nil {
			return err
		}
		if err := w.settle(); err != nil {
			return err
		}
		return w.converse()
	})
	if err != nil {
		return err
	}
	t.wait()
	for _, f := range append(answer, w.after...) {
		f()
	}
	for change := range w.changed {
		o.changed.Add(change)
	}
	return nil
}

// settle gives the room that became free in budgets to those who wait for it, and then advances everybody whom the transaction touched, and
// whom that touches; last it finds somebody for the items that anybody of a role may take.
func (w *work) settle() error {
	for {
		var err error
		switch {
		case len(w.freed) > 0:
			key := w.freed[0]
			w.freed = w.freed[1:]
			err = w.refill(key)
		case len(w.people) > 0:
			key := w.people[0]
			w.people = w.people[1:]
			delete(w.waiting, key)
			_, err = w.look(key)
		case len(w.openings) > 0:
			id := w.openings[0]
			w.openings = w.openings[1:]
			err = w.fill(id)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// touchPerson has the person looked at before the transaction ends, and its view shown.
func (w *work) touchPerson(key model.PersonKey) {
	if key.Handle != "" && !w.waiting[key] {
		w.waiting[key] = true
		w.people = append(w.people, key)
	}
}

// showPerson tells of a changed view of the person, and of its team.
func (w *work) showPerson(p model.Person) {
	w.changed[model.Change{Kind: model.ChangedPerson, Namespace: p.Key.Team.Namespace, Name: p.Name}] = struct{}{}
	w.showTeam(p.Key.Team)
}

func (w *work) showTeam(key model.TeamKey) {
	w.changed[model.Change{Kind: model.ChangedTeam, Namespace: key.Namespace, Name: key.Name}] = struct{}{}
}

// put stores an item and follows up on what its change means for others.
func (w *work) put(it *model.Item) error {
	if err := w.tx.PutItem(it); err != nil {
		return err
	}
	w.changed[model.Change{Kind: model.ChangedItem, Namespace: it.Namespace, Name: it.Name}] = struct{}{}
	w.showTeam(it.TeamKey())
	if it.Assignee != "" {
		w.touchPerson(model.PersonKey{Team: it.TeamKey(), Handle: it.Assignee})
		return nil
	}
	if isOpening(*it) {
		w.openings = append(w.openings, it.ID)
	}
	return nil
}

// isOpening says whether anybody of its role may take the item, at once or later.
func isOpening(it model.Item) bool {
	return it.Assignee == "" && it.State == protocol.StateQueued && it.Hold.Reason == "" && !it.Gone
}

// apply stores what a message or an event made of an item: the item, the round that ended, and what depends on it.
func (w *work) apply(before protocol.WorkItemState, out dispatch.Outcome) error {
	if !out.Changed {
		return nil
	}
	if out.Ended != nil {
		if err := w.endRound(*out.Ended, out.Item); err != nil {
			return err
		}
	}
	if err := w.freeAgain(before, &out.Item); err != nil {
		return err
	}
	if err := w.put(&out.Item); err != nil {
		return err
	}
	moved := out.Item.State != before && (before != "" || out.Ended != nil) // and not stored for the first time
	if moved {
		if err := w.endQuestion(&out.Item); err != nil {
			return err
		}
	}
	if err := w.conclude(out); err != nil {
		return err
	}
	if moved {
		if err := w.tellParent(out.Item); err != nil {
			return err
		}
	}
	if out.Item.State != before {
		return w.reholdDependents(out.Item)
	}
	return nil
}

// freeAgain lets anybody of its role have an item that starts over, if the person who had it was deleted meanwhile.
func (w *work) freeAgain(before protocol.WorkItemState, it *model.Item) error {
	if before == "" || before == it.State || it.State != protocol.StateQueued || it.Assignee == "" || it.Spec.Person != "" {
		return nil
	}
	person, err := found(w.tx.PersonByKey(model.PersonKey{Team: it.TeamKey(), Handle: it.Assignee}))
	if person == nil && err == nil {
		it.Assignee = ""
	}
	return err
}

// conclude follows up on a round that has ended: the tracker is brought in line, whoever asked is told where the item has come to an end,
// and what was said meanwhile starts the next round.
func (w *work) conclude(out dispatch.Outcome) error {
	it := out.Item
	if out.Ended == nil || out.Ended.AcceptedAt.IsZero() {
		return nil
	}
	if err := w.actAfter(it, *out.Ended); err != nil {
		return err
	}
	if it.State == protocol.StateQueued || it.State == protocol.StateCanceled {
		return nil
	}
	if err := w.report(it, *out.Ended); err != nil {
		return err
	}
	if out.Ended.Answered {
		if again := dispatch.Answered(it); again.Changed {
			return w.apply(it.State, again)
		}
	}
	again, err := w.heardMeanwhile(it, *out.Ended)
	if err != nil {
		return err
	}
	return w.apply(it.State, again)
}

// endRound stores a round that ended, and looks at those whom it held back: its person, and whom the team's budgets have room for now.
func (w *work) endRound(r model.Round, it model.Item) error {
	if err := w.tx.PutRound(r); err != nil {
		return err
	}
	w.after = append(w.after, func() { w.o.metrics.rounds.WithLabelValues(string(r.Outcome)).Inc() })
	w.touchPerson(model.PersonKey{Team: it.TeamKey(), Handle: r.Person})
	if !slices.Contains(w.freed, it.TeamKey()) {
		w.freed = append(w.freed, it.TeamKey())
	}
	return nil
}

// reholdDependents looks again at the items that depend on one whose state changed.
func (w *work) reholdDependents(it model.Item) error {
	ids, err := w.tx.Dependents(it.Namespace, it.Name)
	if err != nil {
		return err
	}
	return w.rehold(ids)
}

// rehold looks again at whether the items can run.
func (w *work) rehold(ids []string) error {
	for _, id := range ids {
		it, err := w.tx.Item(id)
		if err != nil {
			return err
		}
		world, err := w.world(it)
		if err != nil {
			return err
		}
		held, changed := dispatch.Hold(it, world, w.now)
		if !changed {
			continue
		}
		if err := w.apply(it.State, dispatch.Outcome{Item: held, Changed: true}); err != nil {
			return err
		}
	}
	return nil
}

// world gathers what an item refers to.
func (w *work) world(it model.Item) (dispatch.World, error) {
	var world dispatch.World
	team, err := found(w.tx.Team(it.TeamKey()))
	if err != nil || team == nil {
		return world, err
	}
	world.Team = team
	if it.Spec.Person != "" {
		person, err := found(w.tx.PersonByKey(model.PersonKey{Team: it.TeamKey(), Handle: it.Spec.Person}))
		if err != nil {
			return world, err
		}
		world.PersonKnown = person != nil
	} else {
		people, err := w.tx.InRole(it.TeamKey(), it.Spec.Role)
		if err != nil {
			return world, err
		}
		for _, p := range people {
			if it.Question == nil || it.Question.Asker != p.Handle {
				world.InRole++
			}
		}
	}
	return world, w.dependencies(it, &world)
}

func (w *work) dependencies(it model.Item, world *dispatch.World) error {
	if len(it.Spec.DependsOn) == 0 {
		return nil
	}
	for _, name := range it.Spec.DependsOn {
		dep, err := found(w.tx.LatestByName(it.Namespace, name))
		if err != nil {
			return err
		}
		world.Dependencies = append(world.Dependencies, dispatch.Dependency{Name: name, Item: dep})
	}
	var failure error
	world.Cycle = dispatch.Cycle(it.Name, func(name string) []string {
		if name == it.Name {
			return it.Spec.DependsOn
		}
		other, err := found(w.tx.ItemByName(it.Namespace, name))
		if err != nil {
			failure = err
		}
		if other == nil || other.Finished() {
			return nil
		}
		return other.Spec.DependsOn
	})
	return failure
}

// look advances one person.
func (w *work) look(key model.PersonKey) (bool, error) {
	changed, err := w.advance(key)
	if err != nil {
		err = fmt.Errorf("person %s: %w", key, err)
	}
	return changed, err
}

// advance decides what one person does next, and does it. It says whether there was anything to do.
func (w *work) advance(key model.PersonKey) (bool, error) {
	person, err := found(w.tx.PersonByKey(key))
	if err != nil || person == nil {
		return false, err
	}
	p, connected := w.o.hub.Get(key)
	snapshot, err := w.snapshot(*person, p)
	if err != nil {
		return false, err
	}
	w.showPerson(*person)
	if connected && snapshot.Current == nil && w.o.configs.changed(key.Team, p.config) {
		w.drop(p, "the team config changed: reconnect")
		return false, nil
	}
	plan, err := w.next(&snapshot)
	if err != nil {
		return false, err
	}
	for i := range plan.Put {
		if err := w.putPlanned(&plan, i); err != nil {
			return false, err
		}
	}
	if wait := plan.WakeAt; !wait.IsZero() {
		w.after = append(w.after, func() { w.o.due.AddAfter(key, wait.Sub(w.now)) })
	}
	if !connected {
		return !plan.Empty(), nil
	}
	if err := w.deliverReports(p); err != nil {
		return false, err
	}
	return !plan.Empty(), w.follow(p, snapshot.Current, plan)
}

// next decides, with as many candidates as it takes to find one that can be offered.
func (w *work) next(s *dispatch.Snapshot) (dispatch.Plan, error) {
	plan := dispatch.Next(*s, w.now)
	for limit := candidates; plan.Further && len(s.Queue) == limit; {
		limit *= moreCandidates
		if err := w.queue(s, limit); err != nil {
			return plan, err
		}
		plan = dispatch.Next(*s, w.now)
	}
	return plan, nil
}

// follow keeps the connection in line with the plan: what it runs, and an outstanding offer after a reconnect.
func (w *work) follow(p *peer, current *model.Item, plan dispatch.Plan) error {
	running := ""
	if current != nil && current.Round.Accepted() && plan.Ended == nil {
		running = current.ID
	}
	w.after = append(w.after, func() { p.runs(running) })
	if plan.Drop != "" {
		w.drop(p, plan.Drop)
	}
	if w.redeliver && current != nil && !current.Round.Accepted() && plan.Empty() {
		it := *current
		round, err := w.withFeedback(it)
		if err != nil {
			return err
		}
		if round.FeedbackUpTo != it.Round.FeedbackUpTo {
			if err := w.putOffered(&it, round); err != nil {
				return err
			}
		}
		return w.send(p, it)
	}
	return nil
}

// withFeedback gives the offered round of an item, with all the feedback that waits for one.
func (w *work) withFeedback(it model.Item) (model.Round, error) {
	feedback, err := w.tx.Feedback(it.ID, it.FeedbackSeen)
	round := *it.Round
	if len(feedback) > 0 {
		round.FeedbackUpTo = feedback[len(feedback)-1].N
	}
	return round, err
}

// putOffered stores an item with its offered round.
func (w *work) putOffered(it *model.Item, round model.Round) error {
	it.Round = &round
	if err := w.tx.PutRound(round); err != nil {
		return err
	}
	return w.tx.PutItem(it)
}

// putPlanned stores the i-th item of a plan; the offered one also as a new round, to leave once that is durable.
func (w *work) putPlanned(plan *dispatch.Plan, i int) error {
	it := plan.Put[i]
	if plan.Offer == nil || plan.Offer.ID != it.ID {
		// Ended or held: followed up like any other change, so that others may take the item and the person the next one.
		return w.apply("", dispatch.Outcome{Item: it, Ended: plan.Ended, Changed: true})
	}
	round, err := w.withFeedback(it)
	if err != nil {
		return err
	}
	if err := w.putOffered(&it, round); err != nil {
		return err
	}
	w.showTeam(it.TeamKey())
	w.after = append(w.after, func() { w.o.metrics.offers.Inc() })
	p, connected := w.o.hub.Get(model.PersonKey{Team: it.TeamKey(), Handle: it.Assignee})
	if !connected {
		return nil // offered again when it connects
	}
	return w.send(p, it)
}

// send has the offer of an item leave once the transaction is durable.
func (w *work) send(p *peer, it model.Item) error {
	frame, err := w.offer(it)
	if err != nil {
		return err
	}
	w.after = append(w.after, func() { p.conn.Send(frame) })
	return nil
}

// drop closes a connection once the transaction is durable: the agent reconnects and ends what welcome does not list.
func (w *work) drop(p *peer, reason string) {
	w.after = append(w.after, func() { p.conn.Close(hub.CodeDropped, reason) })
}

// snapshot gathers all that the decision about a person looks at. p is its connection, nil where there is none.
func (w *work) snapshot(person model.Person, p *peer) (dispatch.Snapshot, error) {
	s := dispatch.Snapshot{Person: person, Connected: p != nil, AwayAt: w.o.presence.last(person.Key).awayAt}
	if p != nil {
		s.ConnectedAt = p.connectedAt
	}
	var err error
	if s.Team, err = found(w.tx.Team(person.Key.Team)); err != nil {
		return s, err
	}
	if s.Current, err = found(w.tx.Current(person.Key)); err != nil {
		return s, err
	}
	if s.Current != nil {
		if s.Team != nil && s.Current.Round.Accepted() && dispatch.Stops(s.Team.Usage.Budgets) {
			err = w.used(&s.Spent, person.Key)
		}
		return s, err
	}
	if p == nil || s.Team == nil {
		return s, nil
	}
	windows, err := found(w.tx.Windows(person.Key.Team, subscription(person)))
	if err != nil {
		return s, err
	}
	if windows != nil {
		s.PausedUntil, _ = dispatch.PausedUntil(*windows, s.Team.Usage.PauseAt, w.now)
	}
	if err = w.queue(&s, candidates); err != nil {
		return s, err
	}
	if len(s.Team.Usage.Budgets) > 0 && len(s.Queue) > 0 {
		s.Spent, err = w.spent(person.Key)
	}
	return s, err
}

// queue gathers the first candidates of a person.
func (w *work) queue(s *dispatch.Snapshot, limit int) (err error) {
	s.Queue, s.NextAt, err = w.tx.Candidates(s.Person.Key, s.Person.Role, w.now, limit)
	return err
}

// subscription is the account that a person's usage windows belong to: a shared one, or the person's own.
func subscription(p model.Person) string {
	if p.Subscription != "" {
		return "shared/" + p.Subscription
	}
	return "person/" + p.Key.Handle
}

// found turns the store's ErrNotFound into nil.
func found[T any](v T, err error) (*T, error) {
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}
