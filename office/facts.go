package office

// This file takes the facts that controllers tell. Each method is idempotent and costs no write where nothing changed.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// SyncTeam takes the team as declared.
func (o *Office) SyncTeam(ctx context.Context, team model.Team) error {
	old, err := view(ctx, o.store, func(r store.Reader) (model.Team, error) { return r.Team(team.Key) })
	if err != nil || (old != nil && reflect.DeepEqual(*old, team)) {
		return err
	}
	err = o.change(ctx, func(w *work) error {
		if err := errors.Join(w.tx.PutTeam(team), w.reprice(team)); err != nil {
			return err
		}
		w.showTeam(team.Key)
		return w.teamChanged(team.Key)
	})
	if err == nil {
		o.configChanged(team.Key)
	}
	return err
}

// ForgetTeam takes that the team is gone: its people get no offers.
func (o *Office) ForgetTeam(ctx context.Context, key model.TeamKey) error {
	err := o.change(ctx, func(w *work) error {
		if err := w.tx.DeleteTeam(key); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		return w.teamChanged(key)
	})
	if err == nil {
		o.configs.invalidate(key)
	}
	return err
}

// reholdTeam looks again at whether the items of a team can run.
func (w *work) reholdTeam(key model.TeamKey) error {
	ids, err := w.tx.Unfinished(key)
	if err != nil {
		return err
	}
	return w.rehold(ids)
}

// teamChanged looks again at everything of a team.
func (w *work) teamChanged(key model.TeamKey) error {
	if err := w.reholdTeam(key); err != nil {
		return err
	}
	people, err := w.tx.People(key)
	for _, p := range people {
		w.touchPerson(p.Key)
	}
	return err
}

// configChanged has agents hear of a changed team config, once it has settled.
func (o *Office) configChanged(key model.TeamKey) {
	o.configs.invalidate(key)
	o.stale.AddAfter(key, o.opts.ConfigSettle)
}

// SyncPerson takes the person as declared, with its token's hash and its pod's incarnation.
func (o *Office) SyncPerson(ctx context.Context, person model.Person) error {
	old, err := view(ctx, o.store, func(r store.Reader) (model.Person, error) { return r.Person(person.UID) })
	if err != nil || (old != nil && reflect.DeepEqual(*old, person)) {
		return err
	}
	err = o.change(ctx, func(w *work) error {
		if err := w.tx.PutPerson(person); err != nil {
			return err
		}
		w.touchPerson(person.Key)
		if old != nil && old.Role == person.Role {
			return nil
		}
		return w.reholdTeam(person.Key.Team) // items may wait for this handle or role
	})
	if err != nil {
		return err
	}
	if old == nil || !sameInConfig(*old, person) {
		o.configChanged(person.Key.Team)
	}
	if old != nil && old.TokenHash != person.TokenHash {
		o.log.Info("A person's token changed; its next connection needs the new one", "person", person.Key.String())
	}
	return nil
}

// sameInConfig says whether the team config shows both alike.
func sameInConfig(a, b model.Person) bool {
	for _, p := range []*model.Person{&a, &b} {
		p.Suspended, p.Draining, p.TokenHash, p.Subscription = false, false, [32]byte{}, ""
		p.Incarnation, p.IncarnationAt = "", p.CreatedAt
	}
	return reflect.DeepEqual(a, b)
}

// ForgetPerson takes that the person is gone: its round is interrupted, its items wait for a person of that handle, or for anybody of their
// role.
func (o *Office) ForgetPerson(ctx context.Context, uid string) error {
	var gone *model.Person
	err := o.change(ctx, func(w *work) error {
		var err error
		if gone, err = found(w.tx.Person(uid)); err != nil || gone == nil {
			return err
		}
		current, err := found(w.tx.Current(gone.Key))
		if err != nil {
			return err
		}
		if err := w.tx.DeletePerson(uid); err != nil {
			return err
		}
		if current != nil {
			if err := w.apply(current.State, dispatch.PersonGone(*current, w.now)); err != nil {
				return err
			}
		}
		if err := w.releaseItems(gone.Key); err != nil {
			return err
		}
		w.showTeam(gone.Key.Team)
		return w.reholdTeam(gone.Key.Team)
	})
	if err != nil || gone == nil {
		return err
	}
	o.presence.forget(gone.Key)
	if p, ok := o.hub.Get(gone.Key); ok {
		p.conn.Close(protocol.CloseAuthFailed, "the person was deleted")
	}
	o.configChanged(gone.Key.Team)
	return nil
}

// releaseItems lets anybody of their role have the unfinished items that a person had, unless somebody else has the handle now.
func (w *work) releaseItems(key model.PersonKey) error {
	heir, err := found(w.tx.PersonByKey(key))
	if err != nil || heir != nil {
		return err
	}
	items, err := w.tx.ItemsOf(key, false, 0)
	if err != nil {
		return err
	}
	for _, it := range items {
		if it.Spec.Person != "" || it.Round != nil {
			continue
		}
		it.Assignee = ""
		if err := w.put(&it); err != nil {
			return err
		}
	}
	return nil
}

// SyncItem takes the item as declared and as its status recorded it, and gives what there is to show.
func (o *Office) SyncItem(ctx context.Context, facts model.ItemFacts) (model.ItemView, error) {
	old, err := view(ctx, o.store, func(r store.Reader) (model.Item, error) { return r.ItemByObject(facts.ID) })
	if err != nil {
		return model.ItemView{}, err
	}
	id := ""
	if old != nil {
		id = old.ID
	}
	if old == nil || dispatch.Reconcile(old, nil, facts, o.store.ID(), o.now()).Changed {
		if err := o.change(ctx, func(w *work) (err error) {
			id, err = w.syncItem(facts)
			return err
		}); err != nil {
			return model.ItemView{}, err
		}
	}
	return o.itemView(ctx, id)
}

// syncItem brings the store's item in line with its object, and gives the item's id.
func (w *work) syncItem(facts model.ItemFacts) (string, error) {
	id, birth, err := identify(w.tx, facts)
	if err != nil {
		return "", err
	}
	facts.ID = id
	existing, err := found(w.tx.Item(id))
	if err != nil {
		return "", err
	}
	if facts.Spec.ParentID, err = parentID(w.tx, facts); err != nil {
		return "", err
	}
	tombstone, err := w.tombstone(existing, facts)
	if err != nil {
		return "", err
	}
	rec := dispatch.Reconcile(existing, tombstone, facts, w.o.store.ID(), w.now)
	born := existing != nil && birth != nil && (existing.Birth == nil || *birth != *existing.Birth) // its object is new
	if !rec.Changed && !born {
		return id, nil
	}
	rec.Item.Birth, rec.Changed = birth, true
	if err := w.endSynced(existing, rec); err != nil {
		return "", err
	}
	before := protocol.WorkItemState("")
	if existing != nil {
		before = existing.State
	}
	if err := w.apply(before, rec.Outcome); err != nil {
		return "", err
	}
	if rec.Restored && facts.Recorded.StoreID != w.o.store.ID() {
		w.tx.of(id).otherLife = shortLife(facts.Recorded.StoreID)
	}
	if rec.Restored {
		if err := errors.Join(w.restoreUsage(rec.Item, facts.Recorded), w.restoreThread(rec.Item)); err != nil {
			return "", err
		}
	}
	return id, w.rehold([]string{id})
}

// endSynced ends the run of an item that its user canceled, and the round of one that was restored over an older backup.
func (w *work) endSynced(existing *model.Item, rec dispatch.Reconciled) error {
	reason := "the work item was canceled"
	if rec.Lost != nil {
		reason = "the work item was restored from its status"
		if err := w.endRound(*rec.Lost, rec.Item); err != nil {
			return err
		}
	}
	if existing != nil && existing.Round.Accepted() && (rec.Ended != nil || rec.Lost != nil) {
		w.endRun(*existing, reason)
	}
	return nil
}

// parentID gives the id of the item that an item was split from. Its object tells the parent's name and its object's UID, which is no
// item's id where the parent began here.
func parentID(r store.Reader, facts model.ItemFacts) (string, error) {
	spec := facts.Spec
	if spec.Parent == "" && spec.ParentID == "" {
		return "", nil
	}
	var parent *model.Item
	var err error
	if spec.ParentID != "" {
		parent, err = found(r.ItemByObject(spec.ParentID))
	} else {
		parent, err = found(r.LatestByName(facts.Namespace, spec.Parent))
	}
	if err != nil {
		return "", err
	}
	if parent != nil {
		return parent.ID, nil
	}
	return cmp.Or(facts.ParentBornID, spec.ParentID), nil // the office is yet to hear of it
}

// tombstone gives the item that an expired object of the same name and spec left, nil where none did.
func (w *work) tombstone(existing *model.Item, facts model.ItemFacts) (*model.Item, error) {
	if existing != nil {
		return nil, nil
	}
	id, err := found(w.tx.Tombstone(facts.Namespace, facts.Name, facts.Spec.Hash))
	if err != nil || id == nil {
		return nil, err
	}
	return found(w.tx.Item(*id))
}

// endRun has the agent that runs the item end it: its connection is dropped, and its next welcome does not list the item.
func (w *work) endRun(it model.Item, reason string) {
	if p, ok := w.o.hub.Get(model.PersonKey{Team: it.TeamKey(), Handle: it.Round.Person}); ok {
		w.drop(p, reason)
	}
}

// restoreThread links an item to the chat thread that it came from.
func (w *work) restoreThread(it model.Item) error {
	o := it.Origin
	if o == nil {
		return nil
	}
	return w.tx.LinkThread(model.Thread{
		ItemID: it.ID, Person: it.Assignee, Channel: o.Channel, Thread: o.Thread, Requester: o.Requester, Direct: o.Direct,
		Participant: o.Participant, At: w.now,
	})
}

// restoreUsage starts the ledger of an item from the totals in its status.
func (w *work) restoreUsage(it model.Item, rec model.Recorded) error {
	for _, m := range rec.Models {
		last, err := w.tx.SessionTotals(it.ID, rec.SessionID, m.Model)
		if err != nil {
			return err
		}
		entry := model.LedgerEntry{
			ItemID: it.ID, Round: it.Offers, Team: it.TeamKey(), Person: it.Assignee, Kind: it.Spec.Kind,
			Session: rec.SessionID, Model: m.Model, Usage: m.Usage.Since(last),
		}
		if entry.Usage == (model.Usage{}) {
			continue
		}
		if err := w.tx.AddUsage(entry, m.Usage.Max(last), w.now); err != nil {
			return err
		}
	}
	return nil
}

// ForgetItem takes that the object of that UID is gone. expired says that its TTL removes it: where its item is not finished (any more),
// nothing changes, and model.ErrUnfinished says so.
func (o *Office) ForgetItem(ctx context.Context, uid string, expired bool) error {
	return o.change(ctx, func(w *work) error { return w.forgetItem(uid, expired) })
}

func (w *work) forgetItem(uid string, expired bool) error {
	it, err := found(w.tx.ItemByObject(uid))
	if err != nil || it == nil || it.Gone {
		return err
	}
	switch {
	case !expired:
		return w.cancelForGood(*it, "The WorkItem was deleted.")
	case !it.Finished():
		return fmt.Errorf("work item %s/%s is %s: %w", it.Namespace, it.Name, it.State, model.ErrUnfinished)
	}
	return w.tx.Bury(it.ID)
}

// cancelForGood cancels an item that has no object, and never will have one.
func (w *work) cancelForGood(it model.Item, message string) error {
	running := it.Round.Accepted()
	out := dispatch.Cancel(it, model.Why{Reason: model.ReasonCanceled, Message: message}, w.now)
	if running {
		w.endRun(it, "the work item was deleted")
	}
	out.Item.Gone, out.Changed = true, true
	if err := w.apply(it.State, out); err != nil {
		return err
	}
	return w.reholdDependents(out.Item)
}

// Retain forgets everything that is not live, in the namespaces that were looked at.
func (o *Office) Retain(ctx context.Context, live model.Live) error {
	var gone model.Live
	err := o.store.View(ctx, func(r store.Reader) (err error) {
		gone, err = notLive(r, live)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range gone.Items {
		err = errors.Join(err, o.ForgetItem(ctx, id, false))
	}
	for _, uid := range gone.People {
		err = errors.Join(err, o.ForgetPerson(ctx, uid))
	}
	for _, key := range gone.Teams {
		err = errors.Join(err, o.ForgetTeam(ctx, key))
	}
	return err
}

// notLive finds what the store knows, but does not exist.
func notLive(r store.Reader, live model.Live) (model.Live, error) {
	var gone model.Live
	looked := func(namespace string) bool {
		return live.Namespaces == nil || slices.Contains(live.Namespaces, namespace)
	}
	teams, err := r.Teams()
	if err != nil {
		return gone, err
	}
	for _, t := range teams {
		if looked(t.Key.Namespace) && !slices.Contains(live.Teams, t.Key) {
			gone.Teams = append(gone.Teams, t.Key)
		}
	}
	people, err := r.AllPeople()
	if err != nil {
		return gone, err
	}
	existing := setOf(live.People)
	for _, p := range people {
		if looked(p.Key.Team.Namespace) && !existing[p.UID] {
			gone.People = append(gone.People, p.UID)
		}
	}
	ids, err := r.LiveItems()
	if err != nil {
		return gone, err
	}
	existing = setOf(live.Items)
	for _, id := range ids {
		if existing[id] {
			continue
		}
		it, err := r.ItemByObject(id)
		if err != nil {
			return gone, err
		}
		if looked(it.Namespace) {
			gone.Items = append(gone.Items, id)
		}
	}
	return gone, nil
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

// view reads one thing, nil where the store has none.
func view[T any](ctx context.Context, s store.Store, read func(store.Reader) (T, error)) (v *T, err error) {
	err = s.View(ctx, func(r store.Reader) (err error) {
		v, err = found(read(r))
		return err
	})
	return v, err
}
