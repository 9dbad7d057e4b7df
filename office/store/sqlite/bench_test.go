package sqlite

// This file measures durable commits: every Update is on disk before it is counted.

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/storetest"
)

// BenchmarkDurableCommits has 1, 50 and 500 writers who each append a row of 300 bytes, wait until it is durable, and begin
// again. It reports Updates (ups/s) and fsyncs (fsyncs/s) a second, and an Update's latency in milliseconds.
func BenchmarkDurableCommits(b *testing.B) {
	for _, writers := range []int{1, 50, 500} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) { benchmarkCommits(b, writers) })
	}
}

func benchmarkCommits(b *testing.B, writers int) {
	var fsyncs atomic.Int64
	s := benchStore(b, Options{OnCommit: func(int, time.Duration, error) { fsyncs.Add(1) }})
	fsyncs.Store(0)
	b.ResetTimer()
	latencies, elapsed, err := storetest.Commits(context.Background(), s, writers, b.N)
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/elapsed.Seconds(), "ups/s")
	b.ReportMetric(float64(fsyncs.Load())/elapsed.Seconds(), "fsyncs/s")
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(latencies[(len(latencies)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}

// BenchmarkViewItem reads one item by id while nobody writes.
func BenchmarkViewItem(b *testing.B) {
	s := benchStore(b, Options{})
	for b.Loop() {
		if err := s.View(context.Background(), func(r store.Reader) error { _, err := r.Item("item"); return err }); err != nil {
			b.Fatal(err)
		}
	}
}

// benchStore is a store with one item in it, on the disk that TMPDIR names.
func benchStore(b *testing.B, o Options) *Store {
	b.Helper()
	s, err := Open(filepath.Join(b.TempDir(), "bench.db"), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	item := model.Item{
		ID: "item", Namespace: "office", Name: "item", State: protocol.StateQueued,
		Spec: model.ItemSpec{Team: "core", Person: "ada", Title: "an item", Body: strings.Repeat("do this; ", 100)},
	}
	if err := s.Update(context.Background(), func(tx store.Tx) error { return tx.PutItem(&item) }); err != nil {
		b.Fatal(err)
	}
	return s
}
