package storetest

// This file puts a load on a store, for benchmarks.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// Commits has writers who each append an entry of 300 bytes to a journal, wait until it is durable, and begin again, until there
// are that many updates. It gives how long each update took, shortest first, and how long all of them took.
func Commits(ctx context.Context, s store.Store, writers, updates int) (took []time.Duration, elapsed time.Duration, err error) {
	item := model.Item{
		ID: "commits", Namespace: "office", Name: "commits", State: protocol.StateQueued,
		Spec: model.ItemSpec{Team: "core", Person: "ada", Title: "an item", Body: strings.Repeat("do this; ", 100)},
	}
	if err := s.Update(ctx, func(tx store.Tx) error { return tx.PutItem(&item) }); err != nil {
		return nil, 0, err
	}
	entry := model.JournalEntry{ItemID: item.ID, At: time.Unix(1, 0), Author: "ada", Text: strings.Repeat("x", 300)}
	var left atomic.Int64
	left.Store(int64(updates))
	each, failures := make([][]time.Duration, writers), make([]error, writers)
	begin := time.Now()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for left.Add(-1) >= 0 && failures[w] == nil {
				start := time.Now()
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
