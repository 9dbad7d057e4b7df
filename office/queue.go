package office

// This file answers about a person's queue, and lets the person change it.

import (
	"slices"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

func (r request) workList(m protocol.WorkList) (protocol.Message, error) {
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		items, err := tx.ItemsOf(r.p.key, false, maxWorkList)
		if err != nil {
			return nil, err
		}
		refs, err := workRefs(tx, items, m.WorkItemID)
		return protocol.WorkListResult{Items: refs}, err
	})
}

func (r request) workStatus(m protocol.WorkStatus) (protocol.Message, error) {
	if len(m.WorkItemIDs) > maxAsked {
		return nil, protocol.Errorf(protocol.CodeInvalid, "at most %d items at once, not %d: ask in parts", maxAsked, len(m.WorkItemIDs))
	}
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		result := protocol.WorkStatusResult{}
		for _, id := range m.WorkItemIDs {
			it, err := found(tx.Item(id))
			if err != nil {
				return nil, err
			}
			status := protocol.ItemStatus{WorkItemID: id, State: protocol.ItemUnknown}
			switch {
			case it == nil:
			case it.Assignee != r.p.key.Handle || it.TeamKey() != r.p.key.Team:
				status.State = protocol.ItemNotYours
			default:
				status.State = protocol.ItemState(it.State)
			}
			result.Items = append(result.Items, status)
		}
		return result, nil
	})
}

func (r request) workMove(m protocol.WorkMove) (protocol.Message, error) {
	return r.reply(func(w *work) (protocol.Message, error) {
		it, err := itemOf(w.tx, r.p, m.WorkItemID)
		if err != nil {
			return nil, err
		}
		if first, err := w.first(r.p, it, r.f); err != nil || !first {
			return w.moved(it.ID, err)
		}
		out, err := outcome(dispatch.Move(it, r.p.key.Handle, m.Status, w.now))
		if err != nil {
			return nil, err
		}
		if err := w.apply(it.State, out); err != nil {
			return nil, err
		}
		return w.moved(it.ID, w.rehold([]string{it.ID})) // it may wait for something again
	})
}

func (r request) workPlace(m protocol.WorkPlace) (protocol.Message, error) {
	return r.reply(func(w *work) (protocol.Message, error) {
		it, err := itemOf(w.tx, r.p, m.WorkItemID)
		if err != nil {
			return nil, err
		}
		if first, err := w.first(r.p, it, r.f); err != nil || !first {
			return w.moved(it.ID, err)
		}
		if it.State != protocol.StateQueued || it.Round != nil {
			return nil, protocol.Errorf(protocol.CodeInvalid, "work item %s is not in the queue: it is %s%s", it.ID, it.State, offeredNow(it))
		}
		if err := w.place(&it, m.Position, m.RelativeTo); err != nil {
			return nil, err
		}
		return w.moved(it.ID, w.put(&it))
	})
}

func offeredNow(it model.Item) string {
	if it.Round != nil && !it.Round.Accepted() {
		return " and offered to you now"
	}
	return ""
}

// place gives the item, which is not stored yet, a place among the queued ones of its person.
func (w *work) place(it *model.Item, to protocol.Position, relativeTo string) error {
	items, err := w.tx.ItemsOf(model.PersonKey{Team: it.TeamKey(), Handle: it.Assignee}, false, 0)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(items, func(o model.Item) bool {
		return o.ID == it.ID || o.State != protocol.StateQueued
	})
	placed, werr := dispatch.Place(*it, others, to, relativeTo)
	if werr != nil {
		return werr
	}
	*it = placed
	return nil
}

// moved answers with the item as it is now, if nothing went wrong.
func (w *work) moved(id string, err error) (protocol.Message, error) {
	if err != nil {
		return nil, err
	}
	it, err := w.tx.Item(id)
	if err != nil {
		return nil, err
	}
	refs, err := workRefs(w.tx, []model.Item{it}, "")
	if err != nil {
		return nil, err
	}
	return protocol.WorkMoveResult{Item: refs[0]}, nil
}

// workRefs shows items in short. current is the id of the one to be marked.
func workRefs(r store.Reader, items []model.Item, current string) ([]protocol.WorkRef, error) {
	refs := make([]protocol.WorkRef, 0, len(items))
	for _, it := range items {
		ref := protocol.WorkRef{ID: it.ID, Title: it.Spec.Title, Status: it.State, Kind: it.Spec.Kind}
		if it.ID == current {
			ref.Current = new(true)
		}
		if err := about(r, it, &ref); err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// about adds the ticket and the pull request that an item is about: its subject, else what it has most to do with.
func about(r store.Reader, it model.Item, ref *protocol.WorkRef) error {
	places, err := placesOf(r, it)
	if err != nil {
		return err
	}
	for _, place := range places {
		switch {
		case place.Type == model.RefTicket && ref.TicketKey == "":
			ref.TicketKey = place.Ref
			ticket, err := found(r.Ticket(it.TeamKey(), place.Ref))
			if err != nil {
				return err
			}
			if ticket != nil {
				ref.TicketTitle = ticket.Title
			} else if s := it.Spec.Subject; s != nil && s.Ref == place.Ref {
				ref.TicketTitle = s.Title
			}
		case place.Type == model.RefPull && ref.PR == "":
			ref.PR = place.Ref
			pull, err := found(r.Pull(it.TeamKey(), place.Ref))
			if err != nil {
				return err
			}
			if pull != nil {
				ref.PRNumber, ref.PRTitle, ref.PRURL = &pull.Number, pull.Title, pull.URL
			}
		}
	}
	return nil
}

// placesOf lists the tickets, pull requests and documents that an item has to do with, its subject first.
func placesOf(r store.Reader, it model.Item) ([]model.Place, error) {
	var places []model.Place
	if s := it.Spec.Subject; s != nil {
		places = append(places, model.Place{Type: model.RefType(s.Type), Ref: s.Ref})
	}
	refs, err := r.Refs(it.ID)
	for _, ref := range refs {
		if !slices.Contains(places, ref.Place) {
			places = append(places, ref.Place)
		}
	}
	return places, err
}
