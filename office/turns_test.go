package office

// This file tests that turns come one after another, in the order in which they were given.

import (
	"slices"
	"sync"
	"testing"
)

func TestTurnsComeInTheirOrderWhoeverIsReadyFirst(t *testing.T) {
	var all turns
	var mu sync.Mutex
	var order []int
	var done sync.WaitGroup
	given := make([]*turn, 100)
	for i := range given {
		given[i] = all.next()
	}
	for i := len(given) - 1; i >= 0; i-- {
		done.Go(func() {
			defer given[i].end()
			if i%3 == 0 {
				return // its transaction failed: nothing leaves
			}
			given[i].wait()
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
	}
	done.Wait()
	if len(order) != 66 || !slices.IsSorted(order) {
		t.Errorf("the order was %v", order)
	}
}
