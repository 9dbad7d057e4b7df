package dispatch

// This file gives an item its place in a person's queue.

import (
	"slices"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Place gives the item that is put at a position among the others of its person's queue, which come in their order and without the item.
// One that is offered already is no place to go to, but keeps its own: nothing goes before it. It fails with a sentence for the agent where
// the position names no item of the queue.
func Place(it model.Item, others []model.Item, to protocol.Position, relativeTo string) (model.Item, *protocol.WireError) {
	free := func(o model.Item) bool { return o.Round == nil }
	at := 0 // the item goes before others[at]
	switch to {
	case protocol.PositionNext:
		if at = slices.IndexFunc(others, free); at < 0 {
			at = len(others)
		}
	case protocol.PositionLast:
		at = len(others)
	case protocol.PositionBefore, protocol.PositionAfter:
		if relativeTo == "" {
			return it, protocol.Errorf(protocol.CodeInvalid, "relativeTo is missing: position %s needs the queued item to go %s", to, to)
		}
		if relativeTo == it.ID {
			return it, protocol.Errorf(protocol.CodeInvalid, "relativeTo is the item itself: name another queued item")
		}
		at = slices.IndexFunc(others, func(o model.Item) bool { return o.ID == relativeTo && free(o) })
		if at < 0 {
			return it, protocol.Errorf(protocol.CodeInvalid, "relativeTo names no queued item of yours: work_list shows what is queued")
		}
		if to == protocol.PositionAfter {
			at++
		}
	}
	if len(others) == 0 {
		return it, nil // the only one is where it should be
	}
	it.Front, it.Place = place(others, at)
	return it, nil
}

// place is a rank between others[at-1] and others[at].
func place(others []model.Item, at int) (front bool, rank *model.Rank) {
	if at == 0 {
		first := others[0]
		r := first.Rank()
		return first.Front, &model.Rank{Priority: r.Priority, Key: between("", r.Key)}
	}
	before := others[at-1]
	lower := before.Rank()
	upper := ""
	if at < len(others) {
		next := others[at]
		if r := next.Rank(); next.Front == before.Front && r.Priority == lower.Priority {
			upper = r.Key
		}
	}
	return before.Front, &model.Rank{Priority: lower.Priority, Key: between(lower.Key, upper)}
}

// The digits of keys: from the lowest to the highest byte that a key made here has.
const (
	lowest  = '!'
	highest = '~'
)

// between gives a key above lower and below upper, compared as bytes; an empty upper is no bound. There is always one, as no key ends
// with the lowest digit: keys are those of model.Item.Rank, or were made here.
func between(lower, upper string) string {
	var key []byte
	bounded := upper != ""
	for i := 0; ; i++ {
		lo, hi := byte(lowest), byte(highest)+1
		if i < len(lower) {
			lo = lower[i]
		}
		if bounded && i < len(upper) {
			hi = upper[i]
		}
		switch {
		case lo >= hi: // the same digit, so far
			key = append(key, lo)
		case hi-lo > 1:
			return string(append(key, lo+(hi-lo)/2))
		default: // neighbours: below upper from here on, whatever follows
			key = append(key, lo)
			bounded = false
		}
	}
}
