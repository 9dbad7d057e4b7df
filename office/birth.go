package office

// This file makes items that begin in the office: questions, chat sessions, what they file, and what events start. Such an item runs at
// once, under an id of the office's; a controller then makes its WorkItem object, once.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// Limits of what an item that begins here takes over from a message, so that its object is within those of the API.
const (
	maxTitle     = 200
	maxBody      = 100_000
	maxRequester = 90
)

// Priorities of items behind which somebody waits right now; lower runs first.
const (
	priorityChat     = 10
	priorityQuestion = 20
	priorityDefault  = 100
)

// bornID is the id of an item that begins here: the same parts give the same id, so that the same cause gives one item.
func bornID(team model.TeamKey, parts ...string) string {
	sum := sha256.Sum256([]byte(team.String() + "\x00" + strings.Join(parts, "\x00")))
	id := uuid.UUID(sum[:16])
	id[6] = id[6]&0x0f | 0x80 // version 8: of one's own making
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// bear stores an item that begins here, unless there is one of this id, and gives what is stored. What is not set gets the default.
func (w *work) bear(it model.Item) (model.Item, error) {
	existing, err := found(w.tx.Item(it.ID))
	if err != nil {
		return it, err
	}
	if existing != nil {
		return *existing, nil
	}
	it.Name = it.Spec.Kind + "-" + strings.ReplaceAll(it.ID, "-", "")[:12]
	it.Name = strings.ReplaceAll(it.Name, "_", "-")
	it.CreatedAt, it.State, it.Birth = w.now, protocol.StateQueued, &model.Birth{}
	it.Assignee = it.Spec.Person
	it.Spec.Title, it.Spec.Body = oneLine(it.Spec.Title, maxTitle), cut(it.Spec.Body, maxBody)
	it.Spec.Title = cmp.Or(it.Spec.Title, it.Spec.Kind)
	it.Spec.Requester = oneLine(it.Spec.Requester, maxRequester)
	if it.Spec.Priority == 0 {
		it.Spec.Priority = priorityDefault
	}
	if err := w.put(&it); err != nil {
		return it, err
	}
	if err := w.rehold([]string{it.ID}); err != nil {
		return it, err
	}
	return w.tx.Item(it.ID)
}

// oneLine makes a text fit for a title: one line of printable characters, cut.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	return cut(s, limit)
}

// firstLine is the first line with text of a message.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = oneLine(line, 100); line != "" {
			return line
		}
	}
	return ""
}

// Unborn gives the item of that name that began in the office and whose object is yet to be made; nil where there is none.
func (o *Office) Unborn(ctx context.Context, namespace, name string) (*model.Item, error) {
	it, err := view(ctx, o.store, func(r store.Reader) (model.Item, error) { return r.ItemByName(namespace, name) })
	if err != nil || it == nil || it.Birth == nil || it.Birth.ObjectUID != "" {
		return nil, err
	}
	return it, nil
}

// Abandon cancels an item that began here and whose object cannot be made.
func (o *Office) Abandon(ctx context.Context, id, reason string) error {
	return o.change(ctx, func(w *work) error {
		it, err := found(w.tx.Item(id))
		if err != nil || it == nil || it.Gone || it.Birth == nil || it.Birth.ObjectUID != "" {
			return err
		}
		return w.cancelForGood(*it, "Canceled: "+reason+".")
	})
}

// announceUnborn has the controllers look at the items whose objects are yet to be made: an earlier life of the office made them.
func (o *Office) announceUnborn(ctx context.Context) error {
	return o.store.View(ctx, func(r store.Reader) error {
		items, err := r.Unborn()
		for _, it := range items {
			o.changed.Add(model.Change{Kind: model.ChangedItem, Namespace: it.Namespace, Name: it.Name})
		}
		return err
	})
}

// identify gives the id under which the store has, or is to have, the item of an object: the object's UID, or for an object that was made
// for an item which began here, that item's id. An object that names an item which is not its own is an item of its own.
func identify(r store.Reader, facts model.ItemFacts) (id string, birth *model.Birth, err error) {
	it, err := found(r.ItemByObject(facts.ID))
	if err != nil {
		return "", nil, err
	}
	if it != nil {
		return it.ID, it.Birth, nil
	}
	if facts.BornID == "" {
		return facts.ID, nil, nil
	}
	it, err = found(r.Item(facts.BornID))
	switch {
	case err != nil:
		return "", nil, err
	case it == nil && facts.Recorded.StoreID != "":
		return facts.BornID, &model.Birth{ObjectUID: facts.ID}, nil // of another life of the store
	case it != nil && it.Birth != nil && it.Birth.ObjectUID == "" && !it.Gone && it.Namespace == facts.Namespace && it.Name == facts.Name:
		return it.ID, &model.Birth{ObjectUID: facts.ID}, nil
	}
	return facts.ID, nil, nil
}

// describe names an item for a sentence.
func describe(it model.Item) string { return fmt.Sprintf("%q (%s)", it.Spec.Title, it.Name) }
