package sqlite

// This file notes what the past is made of: everything that happened has a moment, and is noted for the index in the transaction that
// it happened in. indexer.go takes what is noted into the index, and past.go searches.

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// The sources of moments: what table has them.
const (
	fromItem     = "item"
	fromJournal  = "journal"
	fromRound    = "outcome"
	fromRemark   = "remark"
	fromFeedback = "feedback"
)

// mark is a word of the index that says something about a moment. It is letters and digits of which the stemmer leaves all.
func mark(first rune, of ...string) string {
	h := sha256.New()
	for _, s := range of {
		_, _ = fmt.Fprintf(h, "%d %s", len(s), s) // a hash takes everything
	}
	return fmt.Sprintf("%c%d", first, binary.BigEndian.Uint64(h.Sum(nil)))
}

func ownerMark(key model.PersonKey) string {
	return mark(markOwner, key.Team.Namespace, key.Team.Name, key.Handle)
}

func nameMark(name string) string { return mark(markName, strings.ToLower(name)) }

func itemMark(id string) string { return mark(markScope, id) }

func placeMark(team model.TeamKey, p model.Place) string {
	return mark(markScope, team.Namespace, team.Name, string(p.Type), p.Ref)
}

// who is the handle of the person who has the item, or is asked for it while nobody has it.
func who(i *model.Item) string { return cmp.Or(i.Assignee, i.Spec.Person) }

// askers are the names of those who asked for the item.
func askers(i *model.Item) []string {
	names := []string{i.Spec.Requester}
	if q := i.Question; q != nil {
		names = append(names, q.Asker)
	}
	if o := i.Origin; o != nil {
		names = append(names, o.Requester.ID, o.Requester.Name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// digest is a hash of all that the moments of an item are found by.
func digest(i *model.Item) int64 {
	h := fnv.New64a()
	for _, s := range append(askers(i), i.Spec.Title, i.Spec.Body, who(i), i.Namespace, i.Spec.Team) {
		_, _ = fmt.Fprintf(h, "%d %s", len(s), s) // a hash takes everything
	}
	if p, ok := subject(i); ok {
		_, _ = h.Write([]byte(string(p.Type) + " " + p.Ref))
	}
	return int64(h.Sum64())
}

// subject is the place that the item is about, if it is about one.
func subject(i *model.Item) (model.Place, bool) {
	s := i.Spec.Subject
	if s == nil {
		return model.Place{}, false
	}
	p := model.Place{Type: model.RefType(s.Type), Ref: s.Ref}
	switch p.Type {
	case model.RefTicket, model.RefPull, model.RefDoc, model.RefThread:
		return p, true
	}
	return model.Place{}, false
}

// happened gives something that happened a moment, and notes it. Its number is the time in microseconds, or the next that
// is free.
func (t *tx) happened(at time.Time, source string, item, number any) (int64, error) {
	n, err := t.freeMoment(at)
	if err != nil {
		return 0, err
	}
	return n, t.addMoment(n, source, item, number)
}

func (t *tx) freeMoment(at time.Time) (int64, error) {
	const window = 1_000_000 // in which the last moment is looked for
	for from := nanos(at) / 1000; ; from += window {
		n, err := one(&t.reader, findFreeMoment, number, from, from+window)
		if err != nil || n < from+window {
			return n, err
		}
	}
}

func (t *tx) addMoment(n int64, source string, item, number any) error {
	if err := t.write(writeMoment, nil, n, source, item, number); err != nil {
		return err
	}
	return t.changed(n)
}

// changed notes a moment that is new or has changed.
func (t *tx) changed(n int64) error { return t.write(noteMoment, nil, n) }

// vanished takes a moment away. The index drops it later.
func (t *tx) vanished(n int64) error {
	return errors.Join(t.write(deleteMoment, nil, n), t.changed(n))
}

// known is what the store has of an item before it changes.
type known struct {
	moment, digest int64
	createdAt      time.Time
	subject        model.Place
}

// noteItem notes what an item's next version, whose digest is given, changes of the past, and gives its moment. then is to run once that
// version is stored.
func (t *tx) noteItem(i *model.Item, digest int64) (moment int64, then func() error, err error) {
	before, err := one(&t.reader, readKnown, func(row *sqlite3.Stmt) (known, error) {
		return known{
			moment: row.ColumnInt64(0), digest: row.ColumnInt64(1), createdAt: fromNanos(row.ColumnInt64(2)),
			subject: model.Place{Type: model.RefType(row.ColumnText(3)), Ref: row.ColumnText(4)},
		}, nil
	}, i.ID)
	fresh := errors.Is(err, store.ErrNotFound)
	if err != nil && !fresh {
		return 0, nil, err
	}
	if !fresh && before.createdAt.Equal(i.CreatedAt) {
		moment = before.moment
	} else {
		if moment, err = t.happened(i.CreatedAt, fromItem, i.ID, nil); err != nil {
			return 0, nil, err
		}
		if !fresh {
			if err := t.vanished(before.moment); err != nil {
				return 0, nil, err
			}
		}
	}
	if !fresh && before.digest == digest {
		return moment, func() error { return nil }, nil
	}
	if !fresh {
		if err := errors.Join(t.changed(moment), t.write(noteItemsMoments, nil, i.ID)); err != nil {
			return 0, nil, err
		}
	}
	after, _ := subject(i)
	then, err = t.watchRefs(i, before.subject, after)
	return moment, then, err
}

// watchRefs is watch for the places given and all that the item has refs to.
func (t *tx) watchRefs(i *model.Item, places ...model.Place) (then func() error, err error) {
	refs, err := t.Refs(i.ID)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		places = append(places, ref.Place)
	}
	return t.watch(i.TeamKey(), places...)
}

// watch looks in whose past the remarks of places are. then looks again, and notes the remarks of those places where that has changed.
func (t *tx) watch(team model.TeamKey, places ...model.Place) (then func() error, err error) {
	before := map[model.Place][]string{}
	for _, p := range places {
		said, err := one(&t.reader, haveRemarks, number, at(team, p)...)
		if err == nil && said == 1 {
			before[p], err = t.owners(team, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return func() error {
		for p, owners := range before {
			after, err := t.owners(team, p)
			if err == nil && !slices.Equal(owners, after) {
				err = t.write(noteRemarks, nil, at(team, p)...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// watchItem is watch for a place that an item is about to be linked to. An item that the store does not have links nothing.
func (t *tx) watchItem(id string, p model.Place) (then func() error, err error) {
	team, err := orZero(one(&t.reader, readTeamOf, func(row *sqlite3.Stmt) (model.TeamKey, error) {
		return model.TeamKey{Namespace: row.ColumnText(0), Name: row.ColumnText(1)}, nil
	}, id))
	if err != nil {
		return nil, err
	}
	return t.watch(team, p)
}

// owners lists the handles of the people in whose past the remarks of a place are, sorted.
func (r *reader) owners(team model.TeamKey, p model.Place) ([]string, error) {
	return list(r, listOwners, word, at(team, p)...)
}
