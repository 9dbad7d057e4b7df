package office

// This file keeps sessions in line with their items: each transaction ends by following what it did to items with their sessions, as package
// dispatch decides.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// converse follows every item that the transaction touched with its session.
func (w *work) converse() error {
	if w.o.opts.Feed == nil {
		return nil
	}
	for len(w.tx.order) > 0 {
		id := w.tx.order[0]
		w.tx.order = w.tx.order[1:]
		if err := w.converseAbout(id, w.tx.happened[id]); err != nil {
			return err
		}
		delete(w.tx.happened, id)
	}
	return nil
}

func (w *work) converseAbout(id string, what *happening) error {
	if what.item == nil {
		it, err := w.tx.Item(id)
		if err != nil {
			return err
		}
		what.item = &it
	}
	before, err := found(w.tx.SessionOf(id))
	if err != nil {
		return err
	}
	h := dispatch.Happened{
		Item: *what.item, Life: w.o.life(), OtherLife: what.otherLife, Before: before, Ended: what.ended, Heard: what.heard,
	}
	if n := what.noted; n != nil && n.Author != what.item.Assignee {
		h.Noted = n
	}
	if before != nil {
		w.after = append(w.after, func() { w.o.live.changed(before.ID) })
	}
	if h.Once, err = w.once(*what.item); err != nil {
		return err
	}
	team, err := found(w.tx.Team(what.item.TeamKey()))
	if err != nil {
		return err
	}
	if team != nil {
		h.NamespaceUID = team.NamespaceUID
	}
	return w.keep(dispatch.Converse(h, w.now), what.item, team)
}

// keep stores what follows for an item's sessions, and has watchers hear of it.
func (w *work) keep(c dispatch.Conversation, it *model.Item, team *model.Team) error {
	if c.Claimed && team != nil {
		if err := w.freeze(&c.Sessions[len(c.Sessions)-1], it, *team); err != nil {
			return err
		}
	}
	for _, s := range c.Sessions {
		if err := w.tx.PutSession(s); err != nil {
			return err
		}
		w.after = append(w.after, func() { w.o.live.changed(s.ID) })
	}
	for _, m := range c.Messages {
		if err := w.tx.PutMessage(m); err != nil {
			return err
		}
	}
	for i := range c.Emitted {
		if err := w.tx.Emit(&c.Emitted[i]); err != nil {
			return err
		}
	}
	if len(c.Emitted) > 0 {
		w.after = append(w.after, w.o.emits.wake)
	}
	return nil
}

// freeze keeps what a session is started with, when its first round is.
func (w *work) freeze(s *model.Session, it *model.Item, team model.Team) error {
	if s.Frozen != "" {
		return nil
	}
	person, err := found(w.tx.PersonByKey(model.PersonKey{Team: team.Key, Handle: it.Assignee}))
	if err != nil || person == nil {
		return err
	}
	body, err := json.Marshal(freeze(team, *person, *it))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	s.Frozen = hex.EncodeToString(sum[:])
	return w.tx.PutFrozen(s.Frozen, body)
}

// once says whether the item's kind finishes without a review, so that no further round comes once it is done.
func (w *work) once(it model.Item) (bool, error) {
	if it.Spec.Kind == model.KindQuestion || it.IsChat() {
		return true, nil
	}
	role := it.Spec.Role
	if who := cmp.Or(it.Assignee, it.Spec.Person); who != "" {
		person, err := found(w.tx.PersonByKey(model.PersonKey{Team: it.TeamKey(), Handle: who}))
		if err != nil {
			return false, err
		}
		if person != nil {
			role = person.Role
		}
	}
	team, err := found(w.tx.Team(it.TeamKey()))
	if err != nil || team == nil {
		return false, err
	}
	return needsNoReview(team.Config, role, it.Spec.Kind), nil
}

// needsNoReview says whether a role finishes a kind of work without a review.
func needsNoReview(config protocol.TeamConfig, role, kind string) bool {
	for _, r := range config.Roles {
		if r.Name != role {
			continue
		}
		return slices.ContainsFunc(r.Work, func(k protocol.TeamWork) bool { return k.Kind == kind && k.Review == protocol.ReviewNone })
	}
	return false
}

// findSession finds a session by its own id, or the latest one of an item by the item's.
func findSession(r store.Reader, id string) (*model.Session, error) {
	s, err := found(r.Session(id))
	if err != nil || s != nil {
		return s, err
	}
	return found(r.SessionOf(id))
}

// editSession changes a session in a transaction of its own; edit says whether there is anything to store.
func (o *Office) editSession(ctx context.Context, id string, edit func(s *model.Session) bool) error {
	return o.change(ctx, func(w *work) error {
		s, err := w.tx.Session(id)
		if err != nil || !edit(&s) {
			return err
		}
		s.UpdatedAt = w.now
		w.after = append(w.after, func() { w.o.live.changed(s.ID) })
		return w.tx.PutSession(s)
	})
}
