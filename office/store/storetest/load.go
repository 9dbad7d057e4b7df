package storetest

// This file puts a load on a store, for benchmarks.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// Commits has writers who each append an entry of 300 bytes of prose to a journal, wait until it is durable, and begin again, until there
// are that many updates. It gives how long each update took, shortest first, and how long all of them took.
func Commits(ctx context.Context, s store.Store, writers, updates int) (took []time.Duration, elapsed time.Duration, err error) {
	item := model.Item{
		ID: "commits", Namespace: "office", Name: "commits", State: protocol.StateQueued,
		Spec: model.ItemSpec{Team: "core", Person: "ada", Title: "an item", Body: strings.Repeat("do this; ", 100)},
	}
	if err := s.Update(ctx, func(tx store.Tx) error { return tx.PutItem(&item) }); err != nil {
		return nil, 0, err
	}
	var left atomic.Int64
	left.Store(int64(updates))
	each, failures, texts := make([][]time.Duration, writers), make([]error, writers), make([]string, 1000)
	text := newProse(1)
	for n := range texts {
		texts[n] = text.sentence(300)
	}
	begin := time.Now()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for failures[w] == nil {
				n := left.Add(-1)
				if n < 0 {
					return
				}
				start := time.Now()
				entry := model.JournalEntry{ItemID: item.ID, At: start, Author: "ada", Text: texts[n%1000]}
				failures[w] = s.Update(ctx, func(tx store.Tx) error { return tx.AppendJournal(entry) })
				each[w] = append(each[w], time.Since(start))
			}
		})
	}
	all.Wait()
	elapsed = time.Since(begin)
	took = slices.Concat(each...)
	slices.Sort(took)
	return took, elapsed, errors.Join(failures...)
}

// Team is the team that the loads of this file are of.
var Team = model.TeamKey{Namespace: "office", Name: "core"}

// FillMoments writes that many moments into the pasts of people of Team, a minute apart: items and lines of their journals, twenty to an
// item, of some 120 bytes of prose each. ada has half of them, p1 to p49 share the others, but for one item of every 5,000, which few has.
// Every 20,000th line has the word xylophone in it, and the one after it the phrase "needle in a haystack"; the words needle and haystack
// stand apart in every hundredth.
func FillMoments(ctx context.Context, s store.Store, moments int) error {
	const ofItem, atOnce = 20, 200
	text := newProse(3)
	begin := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Minute) }
	for first := 0; first < moments; first += ofItem * atOnce {
		err := s.Update(ctx, func(tx store.Tx) error {
			for n := first; n < min(moments, first+ofItem*atOnce); n++ {
				id := fmt.Sprint("moments-", n/ofItem)
				line := text.sentence(120)
				switch {
				case n%20_000 == 7:
					line += "some xylophones"
				case n%20_000 == 8:
					line += "a needle in a haystack"
				case n%100 == 9:
					line += "haystack of a needle"
				}
				var err error
				if n%ofItem == 0 {
					err = tx.PutItem(&model.Item{
						ID: id, Namespace: Team.Namespace, Name: id, CreatedAt: at(n), State: protocol.StateDone,
						Spec: model.ItemSpec{Team: Team.Name, Person: whose(n / ofItem), Title: line},
					})
				} else {
					err = tx.AppendJournal(model.JournalEntry{ItemID: id, At: at(n), Author: whose(n / ofItem), Text: line})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// whose says who has an item of FillMoments.
func whose(item int) string {
	switch {
	case item%5_000 == 1:
		return "few"
	case item%2 == 0:
		return "ada"
	}
	return fmt.Sprint("p", 1+item/2%49)
}
