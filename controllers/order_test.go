package controllers

// This file tests that status.order sorts as the queue runs, however the sorter compares texts.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// queued builds an item of ada.
func queued(name string, edit ...func(*model.Item)) model.Item {
	it := model.Item{ID: name, Name: name, State: protocol.StateQueued, Assignee: "ada", CreatedAt: noon, Spec: model.ItemSpec{Priority: 100, Person: "ada"}}
	for _, e := range edit {
		e(&it)
	}
	return it
}

func TestOrderSortsAsTheQueueRuns(t *testing.T) {
	priority := func(n int32) func(*model.Item) { return func(it *model.Item) { it.Spec.Priority = n } }
	items := []model.Item{ // in the order in which they run
		queued("interrupted", priority(500), func(it *model.Item) { it.Front = true }),
		queued("interrupted-later", priority(500), func(it *model.Item) { it.Front, it.CreatedAt = true, noon.Add(time.Second) }),
		queued("very-urgent", priority(-1_000_000)),
		queued("urgent", priority(-3)),
		queued("before-ten", priority(9)),
		queued("ten", priority(10)),
		queued("put-first", func(it *model.Item) { it.Place = &model.Rank{Priority: 100, Key: "!"} }),
		queued("10-of-the-same-second"),
		queued("9-of-the-same-second"),
		queued("a-of-the-same-second"),
		queued("put-between", func(it *model.Item) {
			it.Place = &model.Rank{Priority: 100, Key: queuedKey("a-of-the-same-second") + "P"}
		}),
		queued("later", func(it *model.Item) { it.CreatedAt = noon.Add(time.Second) }),
		queued("last", priority(1_000_000)),
	}
	var want []string
	for i := range items {
		want = append(want, items[i].Name)
	}
	for name, less := range map[string]func(a, b string) int{"compared as bytes": strings.Compare, "compared as kubectl does": natural} {
		t.Run(name, func(t *testing.T) {
			shuffled := slices.Clone(items)
			rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			slices.SortFunc(shuffled, func(a, b model.Item) int { return less(order(&a), order(&b)) })
			var got []string
			for i := range shuffled {
				got = append(got, shuffled[i].Name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func queuedKey(name string) string {
	it := queued(name)
	return it.Rank().Key
}

// natural compares texts as kubectl's --sort-by does: runs of digits as numbers, and digits before everything else.
func natural(a, b string) int {
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	for a != "" && b != "" {
		if digit(a[0]) && digit(b[0]) {
			na, nb := strings.IndexFunc(a+"x", func(r rune) bool { return !digit(byte(r)) }), strings.IndexFunc(b+"x", func(r rune) bool { return !digit(byte(r)) })
			width := max(na, nb)
			if c := strings.Compare(fmt.Sprintf("%0*s", width, a[:na]), fmt.Sprintf("%0*s", width, b[:nb])); c != 0 {
				return c
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			if digit(a[0]) != digit(b[0]) {
				if digit(a[0]) {
					return -1
				}
				return 1
			}
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func TestOrderKeepsQueuesTogetherAndIsGoneAtTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		item  model.Item
		begin string
	}{
		"of a person":                      {queued("x"), "person.ada/1/1000100/"},
		"of a role that nobody took":       {queued("x", func(it *model.Item) { it.Assignee, it.Spec.Person, it.Spec.Role = "", "", "dev" }), "role.dev/1/1000100/"},
		"of a role that somebody took":     {queued("x", func(it *model.Item) { it.Assignee, it.Spec.Person, it.Spec.Role = "bob", "", "dev" }), "person.bob/1/1000100/"},
		"interrupted":                      {queued("x", func(it *model.Item) { it.Front = true }), "person.ada/0/1000100/"},
		"put elsewhere":                    {queued("x", func(it *model.Item) { it.Place = &model.Rank{Priority: -7, Key: "!"} }), "person.ada/1/0999993/cb"},
		"waiting":                          {queued("x", func(it *model.Item) { it.State = protocol.StateWaiting }), "person.ada/1/"},
		"done":                             {queued("x", func(it *model.Item) { it.State = protocol.StateDone }), ""},
		"canceled":                         {queued("x", func(it *model.Item) { it.State = protocol.StateCanceled }), ""},
		"with a key that is out of bounds": {queued("x", func(it *model.Item) { it.Place = &model.Rank{Key: strings.Repeat("k", 5000)} }), "person.ada/1/1000000/gl"},
	} {
		t.Run(name, func(t *testing.T) {
			got := order(&tc.item)
			if !strings.HasPrefix(got, tc.begin) || (got == "") != (tc.begin == "") || len(got) > 512 {
				t.Errorf("the order is %q, want %q at its beginning", got, tc.begin)
			}
		})
	}
}
