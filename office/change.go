package office

// This file is the one way in which anything changes: a transaction of the store that ends by deciding what the people it
// touched do next, and effects that leave once it is durable.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// candidates is how many items of a queue one decision looks at: more than one only where budgets hold the first ones back.
const candidates = 16

// work is one transaction, with what follows from it.
type work struct {
	o   *Office
	tx  store.Tx
	now time.Time
	// people are yet to be advanced, and waiting has the same as a set; changed are the views to tell of, after runs once the
	// transaction is durable.
	people  []model.PersonKey
	waiting map[model.PersonKey]bool
	changed map[model.Change]struct{}
	after   []func()
	// redeliver sends an offer again that is outstanding: the person has just connected.
	redeliver bool
}

// change runs fn as one durable transaction and then lets its effects leave: first the answer to whoever asked for the change, if
// given, then what it means for others. On an error nothing happened and nothing leaves.
func (o *Office) change(ctx context.Context, fn func(w *work) error, answer ...func()) error {
	var w *work
	err := o.store.Update(ctx, func(tx store.Tx) error {
		w = &work{o: o, tx: tx, now: o.now(), waiting: map[model.PersonKey]bool{}, changed: map[model.Change]struct{}{}}
		if err := fn(w); err != nil {
			return err
		}
		return w.settle()
	})
	if err != nil {
		return err
	}
	for _, f := range append(answer, w.after...) {
		f()
	}
	for change := range w.changed {
		o.changed.Add(change)
	}
	return nil
}

// settle advances everybody whom the transaction touched, and whom that touches.
func (w *work) settle() error {
	for len(w.people) > 0 {
		key := w.people[0]
		w.people = w.people[1:]
		delete(w.waiting, key)
		if err := w.advance(key); err != nil {
			return fmt.Errorf("person %s: %w", key, err)
		}
	}
	return nil
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
	if it.State == protocol.StateQueued && it.Hold.Reason == "" {
		return w.touchRole(it.TeamKey(), it.Spec.Role)
	}
	return nil
}

// touchRole has the connected people of a role looked at, for an item that any of them may take.
func (w *work) touchRole(team model.TeamKey, role string) error {
	people, err := w.tx.People(team)
	for _, p := range people {
		if _, connected := w.o.hub.Get(p.Key); connected && p.Role == role {
			w.touchPerson(p.Key)
		}
	}
	return err
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

// endRound stores a round that ended, and looks at those whom its budget reserve held back.
func (w *work) endRound(r model.Round, it model.Item) error {
	if err := w.tx.PutRound(r); err != nil {
		return err
	}
	w.after = append(w.after, func() { w.o.metrics.rounds.WithLabelValues(string(r.Outcome)).Inc() })
	team, err := w.tx.Team(it.TeamKey())
	if errors.Is(err, store.ErrNotFound) || (err == nil && len(team.Usage.Budgets) == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	// In a fixed order, so that who gets the room that became free is no matter of luck.
	var people []model.PersonKey
	w.o.hub.Each(func(p *peer) {
		if p.key.Team == it.TeamKey() {
			people = append(people, p.key)
		}
	})
	slices.SortFunc(people, func(a, b model.PersonKey) int { return strings.Compare(a.Handle, b.Handle) })
	for _, key := range people {
		w.touchPerson(key)
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
		people, err := w.tx.People(it.TeamKey())
		if err != nil {
			return world, err
		}
		for _, p := range people {
			if p.Role == it.Spec.Role && (it.Question == nil || it.Question.Asker != p.Key.Handle) {
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

// advance decides what one person does next, and does it.
func (w *work) advance(key model.PersonKey) error {
	person, err := found(w.tx.PersonByKey(key))
	if err != nil || person == nil {
		return err
	}
	p, connected := w.o.hub.Get(key)
	snapshot, err := w.snapshot(*person, connected)
	if err != nil {
		return err
	}
	w.showPerson(*person)
	if connected && snapshot.Current == nil && w.o.configs.changed(key.Team, p.config) {
		w.drop(p, "the team config changed: reconnect")
		return nil
	}
	plan := dispatch.Next(snapshot, w.now)
	for i := range plan.Put {
		if err := w.putPlanned(&plan, i); err != nil {
			return err
		}
	}
	if wait := plan.WakeAt; !wait.IsZero() {
		w.after = append(w.after, func() { w.o.due.AddAfter(key, wait.Sub(w.now)) })
	}
	if !connected {
		return nil
	}
	if err := w.deliverReports(p); err != nil {
		return err
	}
	return w.follow(p, snapshot.Current, plan)
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

// snapshot gathers all that the decision about a person looks at.
func (w *work) snapshot(person model.Person, connected bool) (dispatch.Snapshot, error) {
	s := dispatch.Snapshot{Person: person, Connected: connected, AwayAt: w.o.presence.last(person.Key).awayAt}
	var err error
	if s.Team, err = found(w.tx.Team(person.Key.Team)); err != nil {
		return s, err
	}
	if s.Current, err = found(w.tx.Current(person.Key)); err != nil {
		return s, err
	}
	if s.Current != nil {
		if s.Team != nil && s.Current.Round.Accepted() && dispatch.Stops(s.Team.Usage.Budgets) {
			s.Spent, err = w.spent(person.Key)
		}
		return s, err
	}
	if !connected || s.Team == nil {
		return s, nil
	}
	windows, err := found(w.tx.Windows(person.Key.Team, subscription(person)))
	if err != nil {
		return s, err
	}
	if windows != nil {
		s.PausedUntil, _ = dispatch.PausedUntil(*windows, s.Team.Usage.PauseAt, w.now)
	}
	if s.Queue, s.NextAt, err = w.tx.Candidates(person.Key, person.Role, w.now, candidates); err != nil {
		return s, err
	}
	if len(s.Team.Usage.Budgets) > 0 && len(s.Queue) > 0 {
		s.Spent, err = w.spent(person.Key)
	}
	return s, err
}

// spent gathers what budgets are held against.
func (w *work) spent(key model.PersonKey) (dispatch.Spent, error) {
	var s dispatch.Spent
	var err error
	if s.Team, err = w.tx.TeamUsage(key.Team); err != nil {
		return s, err
	}
	if s.Person, err = w.tx.PersonUsage(key); err != nil {
		return s, err
	}
	if s.TeamRunning, s.PersonRunning, err = w.tx.RunningRounds(key); err != nil {
		return s, err
	}
	s.Recent, err = w.tx.RecentRounds(key.Team)
	return s, err
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
