package hub_test

// This file tests who is connected.

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/hub"
)

// peer is somebody with a name and no connection.
type peer struct{ name string }

func (p *peer) Conn() *hub.Conn { return nil }

func TestAKeyHasOnePeerTheNewest(t *testing.T) {
	h := hub.New[string, *peer]()
	older, newer, other := &peer{"older"}, &peer{"newer"}, &peer{"other"}

	if _, replaced := h.Put("ada", older); replaced {
		t.Error("the first one replaced somebody")
	}
	if old, replaced := h.Put("ada", newer); !replaced || old != older {
		t.Errorf("the newer one replaced %v", old)
	}
	h.Put("bob", other)
	if h.Remove("ada", older) {
		t.Error("who was replaced took the newer one out")
	}
	if current, ok := h.Get("ada"); !ok || current != newer {
		t.Errorf("ada is %v", current)
	}
	if h.Len() != 2 {
		t.Errorf("there are %d peers", h.Len())
	}
	var each, all []string
	h.Each(func(p *peer) { each = append(each, p.name) })
	for _, p := range h.All() {
		all = append(all, p.name)
	}
	for _, names := range [][]string{each, all} {
		slices.Sort(names)
		if diff := cmp.Diff([]string{"newer", "other"}, names); diff != "" {
			t.Error(diff)
		}
	}

	if !h.Remove("ada", newer) || h.Remove("ada", newer) {
		t.Error("the current one does not leave exactly once")
	}
	if _, ok := h.Get("ada"); ok || h.Len() != 1 {
		t.Error("ada is still there")
	}
}
