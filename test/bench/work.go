package main

// This file measures work items on a real API server: how soon an applied one is offered, and how many live through their whole life.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// pause lets the office and the API server come to rest between two items.
	pause = 30 * time.Millisecond
	// warmUp is how many items are not counted.
	warmUp = 20
	// rate is how many items a second the design asks for.
	rate = 60
)

// measureOffer applies items one after another, each when the one before is done and shown as done.
func measureOffer(ctx context.Context, s *session) (all result, err error) {
	c, err := startCluster(ctx, s, 1)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	items := s.scale(300, 5)
	s.progress("%d items, one after another", items)
	var called, applied, returned, done []time.Duration
	for n := range warmUp + items {
		name := fmt.Sprintf("item-%d", n)
		start := time.Now()
		item, err := c.create(ctx, name, handleOf(0))
		created := time.Now()
		if err != nil {
			return all, err
		}
		offered, err := c.awaitOffer(string(item.UID))
		if err != nil {
			return all, err
		}
		finished, err := c.watcher.await(name)
		if err != nil {
			return all, err
		}
		if n >= warmUp {
			called = append(called, created.Sub(start))
			applied = append(applied, offered.Sub(start))
			returned = append(returned, max(0, offered.Sub(created)))
			done = append(done, finished.Sub(start))
		}
		time.Sleep(pause)
	}
	offer := spreadOf("the call that creates the item, to the offer at the agent", applied)
	all.spreads = []spread{offer,
		spreadOf("that call alone, which is the API server's and etcd's", called),
		spreadOf("that call's return, to the offer at the agent", returned),
		spreadOf("the call, to done in the item's status at a watcher", done)}
	all.figures = []figure{
		{name: "apply to offer, idle, p50", unit: "ms", value: offer.p50, aim: 15},
		{name: "apply to offer, idle, p99", unit: "ms", value: offer.p99, aim: 50},
	}
	return all, nil
}

// measureLife has eight people work: at the rate that the design asks for, and as fast as it goes.
func measureLife(ctx context.Context, s *session) (all result, err error) {
	const people = 8
	c, err := startCluster(ctx, s, people)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if _, err := c.lives(ctx, "warm", warmUp, people, 0); err != nil {
		return all, err
	}
	items := s.scale(500, 16)
	s.progress("%d items of %d people, %d a second", items, people, rate)
	before, err := c.managerTime()
	if err != nil {
		return all, err
	}
	paced, err := c.lives(ctx, "paced", items, people, time.Second/rate)
	if err != nil {
		return all, err
	}
	after, err := c.managerTime()
	if err != nil {
		return all, err
	}
	s.progress("%d items of %d people, all at once", items, people)
	flood, err := c.lives(ctx, "flood", items, people, 0)
	if err != nil {
		return all, err
	}
	life := spreadOf(fmt.Sprintf("apply to done in status, %d items a second", rate), paced.done)
	all.spreads = []spread{
		spreadOf(fmt.Sprintf("apply to offer, %d items a second", rate), paced.offered), life,
		spreadOf(fmt.Sprintf("apply to offer, %d items applied at once", items), flood.offered),
		spreadOf(fmt.Sprintf("apply to done in status, %d items applied at once", items), flood.done),
	}
	all.figures = []figure{
		{name: "items through their whole life, all applied at once", unit: "/s", value: flood.perSecond(), aim: rate, atLeast: true},
		{name: fmt.Sprintf("items through their whole life, applied %d a second", rate), unit: "/s", value: paced.perSecond()},
		{name: fmt.Sprintf("apply to done in status at %d items a second, p99", rate), unit: "ms", value: life.p99, aim: 500},
		{name: "processor time of the manager for an item's whole life", unit: "ms", value: float64((after - before).Milliseconds()) / float64(items)},
	}
	return all, nil
}

// lives is how long items took, each from its creation, and how long all of them did.
type lives struct {
	offered, done []time.Duration
	elapsed       time.Duration
}

func (l lives) perSecond() float64 { return float64(len(l.done)) / l.elapsed.Seconds() }

// lives applies items, one each interval, or without one with as many calls side by side as there are people, and sees each done.
func (c *cluster) lives(ctx context.Context, name string, items, people int, interval time.Duration) (lives, error) {
	all := lives{offered: make([]time.Duration, items), done: make([]time.Duration, items)}
	var group errgroup.Group
	callers := make(chan struct{}, people)
	begin := time.Now()
	for n := range items {
		if interval > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(n) * interval)))
		} else {
			callers <- struct{}{}
		}
		group.Go(func() error {
			itemName := fmt.Sprintf("%s-%d", name, n)
			start := time.Now()
			item, err := c.create(ctx, itemName, handleOf(n%people))
			if interval == 0 {
				<-callers
			}
			if err != nil {
				return err
			}
			offered, notOffered := c.awaitOffer(string(item.UID))
			finished, notDone := c.watcher.await(itemName)
			all.offered[n], all.done[n] = offered.Sub(start), finished.Sub(start)
			return errors.Join(notOffered, notDone)
		})
	}
	err := group.Wait()
	all.elapsed = time.Since(begin)
	return all, err
}
