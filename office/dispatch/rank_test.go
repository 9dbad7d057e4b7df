package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// inOrder sorts as the store does.
func inOrder(items []model.Item) []string {
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b model.Item) int {
		ra, rb := a.Rank(), b.Rank()
		switch {
		case a.Front != b.Front && a.Front:
			return -1
		case a.Front != b.Front:
			return 1
		case ra.Priority != rb.Priority:
			return int(ra.Priority) - int(rb.Priority)
		case ra.Key < rb.Key:
			return -1
		}
		return 1
	})
	var names []string
	for _, it := range items {
		names = append(names, it.ID)
	}
	return names
}

// TestPlacesAreKept moves items about a queue in any way, and compares with a list in which they are moved as one would by hand.
func TestPlacesAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []model.Item
		for i := range rapid.IntRange(1, 8).Draw(t, "items") {
			it := model.Item{ID: fmt.Sprintf("i%d", i), CreatedAt: time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "age")), 0)}
			it.Spec.Priority = int32(rapid.IntRange(1, 3).Draw(t, "priority"))
			it.Front = rapid.IntRange(0, 4).Draw(t, "front") == 0
			items = append(items, it)
		}
		for range rapid.IntRange(1, 60).Draw(t, "moves") {
			order := inOrder(items)
			byID := func(id string) *model.Item {
				return &items[slices.IndexFunc(items, func(it model.Item) bool { return it.ID == id })]
			}
			moved := rapid.SampledFrom(order).Draw(t, "moved")
			rest := slices.DeleteFunc(slices.Clone(order), func(id string) bool { return id == moved })
			to := rapid.SampledFrom([]protocol.Position{"next", "last", "before", "after"}).Draw(t, "to")
			relative, at := "", 0
			if len(rest) > 0 {
				relative = rapid.SampledFrom(rest).Draw(t, "relative")
				at = map[protocol.Position]int{
					"next": 0, "last": len(rest), "before": slices.Index(rest, relative), "after": slices.Index(rest, relative) + 1,
				}[to]
			} else if to == "before" || to == "after" {
				continue
			}
			var others []model.Item
			for _, id := range rest {
				others = append(others, *byID(id))
			}
			placed, werr := Place(*byID(moved), others, to, relative)
			if werr != nil {
				t.Fatal(werr)
			}
			*byID(moved) = placed
			if got, want := inOrder(items), slices.Insert(rest, at, moved); !slices.Equal(got, want) {
				t.Fatalf("moving %s %s %s gives %v, want %v", moved, to, relative, got, want)
			}
		}
	})
}

func TestAPlaceThatDoesNotExistIsRefused(t *testing.T) {
	it, other := model.Item{ID: "a"}, model.Item{ID: "b"}
	for name, tc := range map[string]struct {
		to       protocol.Position
		relative string
	}{
		"before nothing":           {"before", ""},
		"after nothing":            {"after", ""},
		"before itself":            {"before", "a"},
		"after what is not queued": {"after", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, werr := Place(it, []model.Item{other}, tc.to, tc.relative); werr == nil || werr.Code != protocol.CodeInvalid {
				t.Errorf("answered with %v, want invalid", werr)
			}
		})
	}
}
