package office

// This file has what follows from transactions leave in the order in which they ran. Each caller lets its own effects leave, and callers of
// one group commit wake up in any order; but what an agent hears of, and what the office takes it to be at, is what was decided last.

import "sync"

// turns gives transactions their turns to let their effects leave.
type turns struct {
	mu   sync.Mutex
	last *turn
}

// turn is one transaction's. It must end, whatever became of the transaction: who comes after waits for it.
type turn struct {
	before, over chan struct{}
}

// next gives the turn after the last one. Whoever calls it inside a transaction gets it in the order of the commits.
func (t *turns) next() *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := &turn{over: make(chan struct{})}
	if t.last != nil {
		next.before = t.last.over
	}
	t.last = next
	return next
}

// wait returns when all turns before are over.
func (t *turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

// end lets the next one have its turn, after those before.
func (t *turn) end() {
	t.wait()
	close(t.over)
}
