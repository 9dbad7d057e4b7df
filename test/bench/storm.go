package main

// This file measures a storm: everybody connects at the same moment, and again when the office was killed.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The backoff of agents: each waits a random part of what doubles from retryFirst to retryMost.
const (
	retryFirst = 250 * time.Millisecond
	retryMost  = 30 * time.Second
)

// storm is a crowd of agents that connect, and connect again, as real ones do.
type storm struct {
	ctx     context.Context
	current atomic.Pointer[officeProcess]
	// lost counts the dials that came to nothing, or the connections that did.
	lost atomic.Int64

	mu sync.Mutex
	// welcomed has how long after begin each agent was welcome for the first time.
	begin    time.Time
	welcomed map[int]time.Duration
	all      sync.WaitGroup
}

// measureStorm has everybody dial at once, without the jitter of a first start, and then kills the office.
func measureStorm(ctx context.Context, s *session) (all result, err error) {
	err = withOffice(ctx, s, true, stormers, func(p *officeProcess, n int) error {
		until, hangUp := context.WithCancel(ctx)
		st := &storm{ctx: until}
		first := *p // p becomes the next office below, while agents still dial this one
		st.current.Store(&first)
		defer st.all.Wait()
		defer hangUp()
		if err := p.forget(); err != nil {
			return err
		}
		s.progress("%d agents connect at once", n)
		st.clear()
		for i := range n {
			st.all.Go(func() { st.agent(i) })
		}
		took, err := st.wait(n)
		if err != nil {
			return err
		}
		read, err := p.read(false)
		if err != nil {
			return err
		}
		who := number(float64(n)) + " agents"
		all.figures = append(all.figures,
			figure{name: who + " connect at once, TLS, until the last welcome", unit: "s", value: took[n-1].Seconds()},
			figure{name: "welcomes per second in it", unit: "/s", value: float64(n) / took[n-1].Seconds()},
			figure{name: "dials that had to be made again in it", unit: "", value: float64(st.lost.Load())},
			figure{name: "resident memory of the office at its peak in it", unit: "MiB", value: float64(read.Peak) / (1 << 20)})
		all.spreads = append(all.spreads, spreadOf("from the first dial to an agent's welcome, "+who+" at once", took))

		s.progress("the office is killed, and starts again")
		st.clear()
		next, err := p.crash(ctx)
		if err != nil {
			return err
		}
		*p = *next // whoever stops the office stops this one
		st.current.Store(next)
		if took, err = st.wait(n); err != nil {
			return err
		}
		all.figures = append(all.figures,
			figure{name: fmt.Sprintf("kill -9 of the office of %s, until 99 %% are back", who), unit: "s", value: took[(n*99+99)/100-1].Seconds(), aim: 30},
			figure{name: "the same, until all are back", unit: "s", value: took[n-1].Seconds()})
		all.spreads = append(all.spreads, spreadOf("from the kill to an agent's next welcome, "+who, took))
		return nil
	})
	return all, err
}

// clear begins to count anew.
func (st *storm) clear() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.begin, st.welcomed = time.Now(), map[int]time.Duration{}
	st.lost.Store(0)
}

// wait gives how long it took each of n agents, shortest first, once all are welcome.
func (st *storm) wait(n int) ([]time.Duration, error) {
	deadline := time.Now().Add(5 * time.Minute)
	for {
		st.mu.Lock()
		came := len(st.welcomed)
		st.mu.Unlock()
		switch {
		case came == n:
			return slices.Sorted(maps.Values(st.welcomed)), nil
		case time.Now().After(deadline):
			return nil, fmt.Errorf("only %d of %d agents are welcome after five minutes", came, n)
		case st.ctx.Err() != nil:
			return nil, st.ctx.Err()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// agent keeps the n-th person connected until the storm is over.
func (st *storm) agent(n int) {
	for wait := retryFirst; st.ctx.Err() == nil; wait = min(2*wait, retryMost) {
		a, err := st.current.Load().connect(st.ctx, n)
		if err == nil {
			st.mu.Lock()
			if _, before := st.welcomed[n]; !before {
				st.welcomed[n] = time.Since(st.begin)
			}
			st.mu.Unlock()
			stop := context.AfterFunc(st.ctx, func() { _ = a.ws.Close() })
			listen(a)
			stop()
			_ = a.ws.Close()
			wait = retryFirst
		}
		if !errors.Is(err, context.Canceled) {
			st.lost.Add(1)
		}
		select {
		case <-st.ctx.Done():
		case <-time.After(rand.N(wait)):
		}
	}
}
