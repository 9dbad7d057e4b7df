package main

// This file measures what connections cost: memory at rest, and processor time of heartbeats.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// people is how many connections there are at rest, stormers how many come in a storm.
const (
	people   = 2_000
	stormers = 10_000
)

// withOffice runs against an office of that many people in a process of its own.
func withOffice(ctx context.Context, s *session, tls bool, people int, use func(p *officeProcess, n int) error) error {
	n := s.scale(people, teamSize)
	dir := filepath.Join(s.dir, fmt.Sprintf("office-%d", s.unique()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	p, err := startOffice(ctx, officeSettings{Dir: dir, TLS: tls, People: n})
	if err != nil {
		return err
	}
	return errors.Join(use(p, n), p.stop())
}

// connectAll connects n people, at most atOnce at a time. What comes after their welcomes is left to then, which may be nil.
func connectAll(ctx context.Context, p *officeProcess, n, atOnce int, then func(*agent)) ([]*agent, error) {
	agents := make([]*agent, n)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() (err error) {
			agents[i], err = p.connect(ctx, i)
			if err == nil && then != nil {
				go then(agents[i])
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		hangUp(agents)
		return nil, err
	}
	return agents, nil
}

func hangUp(agents []*agent) {
	for _, a := range agents {
		if a != nil {
			_ = a.ws.Close()
		}
	}
}

// measureMemory compares an office with and without idle connections that beat.
func measureMemory(ctx context.Context, s *session) (result, error) {
	var all result
	for _, kind := range []struct {
		name string
		tls  bool
		aim  float64
	}{{"plain", false, 16}, {"TLS", true, 32}} {
		err := withOffice(ctx, s, kind.tls, people, func(p *officeProcess, n int) error {
			s.progress("%d idle connections, %s", n, kind.name)
			before, after, err := atRest(ctx, s, p, n, kind.name)
			if err != nil {
				return err
			}
			perConnection := float64(after.Resident-before.Resident) / float64(n) / 1024
			goroutines := float64(after.Goroutines-before.Goroutines) / float64(n)
			all.figures = append(all.figures,
				figure{name: "resident memory per idle connection, " + kind.name, unit: "KiB", value: perConnection, aim: kind.aim},
				figure{name: "goroutines per idle connection, " + kind.name, unit: "", value: goroutines, aim: 2})
			return nil
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// atRest reads the office before n connections, and while they are idle.
func atRest(ctx context.Context, s *session, p *officeProcess, n int, name string) (before, after reading, err error) {
	// What an office allocates once, with its first connections, belongs to none of them.
	first, err := connectAll(ctx, p, min(n, teamSize), teamSize, nil)
	if err != nil {
		return before, after, err
	}
	hangUp(first)
	if before, err = settled(p); err != nil {
		return before, after, err
	}
	agents, err := connectAll(ctx, p, n, 16, listen)
	if err != nil {
		return before, after, err
	}
	defer hangUp(agents)
	if err := beat(ctx, agents, s.period(3*beatEvery)); err != nil {
		return before, after, err
	}
	if after, err = p.read(true); err != nil || s.profiles == "" {
		return before, after, err
	}
	return before, after, p.profile(filepath.Join(s.profiles, "memory-"+name+".pb.gz"))
}

// settled reads the office once nobody is connected any more.
func settled(p *officeProcess) (reading, error) {
	last, err := p.read(true)
	for err == nil {
		time.Sleep(200 * time.Millisecond)
		var next reading
		if next, err = p.read(true); err == nil && next.Goroutines == last.Goroutines {
			return next, nil
		}
		last = next
	}
	return last, err
}

// listen reads what comes, and so answers pings, until the connection ends.
func listen(a *agent) {
	for {
		if _, err := a.read(); err != nil {
			return
		}
	}
}

// beat sends a heartbeat of each agent in every beat's time, spread evenly, for that long.
func beat(ctx context.Context, agents []*agent, period time.Duration) error {
	tick := time.NewTicker(beatEvery / time.Duration(len(agents)))
	defer tick.Stop()
	end := time.After(period)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-tick.C:
			if _, err := agents[n%len(agents)].send(protocol.Heartbeat{}); err != nil {
				return err
			}
		}
	}
}

// measureHeartbeats has agents beat as fast as they are answered, and counts what one second of processor time is good for. There are so
// many of them that the office slows none down.
func measureHeartbeats(ctx context.Context, s *session) (all result, err error) {
	err = withOffice(ctx, s, true, people, func(p *officeProcess, n int) error {
		const speakers = 256
		s.progress("heartbeats of %d agents", min(n, speakers))
		agents, err := connectAll(ctx, p, min(n, speakers), 16, nil)
		if err != nil {
			return err
		}
		defer hangUp(agents)
		before, err := p.read(false)
		if err != nil {
			return err
		}
		start := time.Now()
		answered, took, err := beatHard(agents, s.period(5*time.Second))
		elapsed := time.Since(start)
		if err != nil {
			return err
		}
		after, err := p.read(false)
		if err != nil {
			return err
		}
		used := (after.Processor - before.Processor).Seconds()
		all.spreads = []spread{spreadOf(fmt.Sprintf("heartbeat to its ack, TLS, %d agents without a pause", len(agents)), took)}
		all.figures = []figure{
			{name: "heartbeats answered per second of one core, TLS", unit: "/s", value: float64(answered) / used},
			{name: "heartbeats answered per second, clients on the same cores, TLS", unit: "/s", value: float64(answered) / elapsed.Seconds()},
		}
		return nil
	})
	return all, err
}

// beatHard has each agent send its next heartbeat when the last one was answered.
func beatHard(agents []*agent, period time.Duration) (answered int64, took []time.Duration, err error) {
	var group errgroup.Group
	var count atomic.Int64
	var lock sync.Mutex
	end := time.Now().Add(period)
	for _, a := range agents {
		group.Go(func() error {
			var own []time.Duration
			for start := time.Now(); start.Before(end); start = time.Now() {
				if _, err := a.send(protocol.Heartbeat{}); err != nil {
					return err
				}
				if _, err := a.read(); err != nil {
					return err
				}
				own = append(own, time.Since(start))
				count.Add(1)
			}
			lock.Lock()
			defer lock.Unlock()
			took = append(took, own...)
			return nil
		})
	}
	err = group.Wait()
	return count.Load(), took, err
}
