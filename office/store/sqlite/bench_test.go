package sqlite

// This file measures durable commits: every Update is on disk before it is counted.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// million is how many moments BenchmarkRecall searches.
const million = 1_000_000

// BenchmarkRecall searches the pasts of three people with half, a hundredth and a few thousandths of a thousandth of a million moments,
// for twenty moments each time, in a View of its own. It reports the median and the 99th percentile of 200 searches and more.
func BenchmarkRecall(b *testing.B) {
	if testing.Short() {
		b.Skip("fills a store for a minute")
	}
	s := filled(b)
	since := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, handle := range []string{"ada", "p7", "few"} {
		for _, q := range []struct {
			name  string
			query model.Recall
		}{
			{"rare word", model.Recall{Query: "xylophone"}},
			{"frequent word", model.Recall{Query: storetest.Word(0)}},
			{"middling word", model.Recall{Query: storetest.Word(1000)}},
			{"unknown word", model.Recall{Query: "nosuchword"}},
			{"rare phrase", model.Recall{Query: `"needle in a haystack"`}},
			{"frequent phrase", model.Recall{Query: `"` + storetest.Word(0) + " " + storetest.Word(1) + `"`}},
			{"or", model.Recall{Query: "xylophone or " + storetest.Word(5000)}},
			{"or of frequent words", model.Recall{Query: storetest.Word(2) + " or " + storetest.Word(1)}},
			{"three words", model.Recall{Query: storetest.Word(0) + " " + storetest.Word(20) + " " + storetest.Word(100)}},
			{"left out", model.Recall{Query: storetest.Word(1) + " -" + storetest.Word(0)}},
			{"with a teammate", model.Recall{Query: storetest.Word(0), With: []string{handle}}},
			{"since", model.Recall{Query: storetest.Word(50), Since: since.Add(million * time.Minute * 99 / 100)}},
		} {
			b.Run(handle+"/"+q.name, func(b *testing.B) {
				q.query.Person, q.query.Limit = model.PersonKey{Team: storetest.Team, Handle: handle}, 20
				var took []time.Duration
				found := 0
				for b.Loop() {
					start := time.Now()
					err := s.View(context.Background(), func(r store.Reader) error {
						moments, _, err := r.Recall(q.query)
						found = len(moments)
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				for _, p := range []int{50, 99} {
					b.ReportMetric(float64(took[(len(took)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
				}
				b.ReportMetric(float64(found), "found")
			})
		}
	}
}

// filled is a store with a million moments, all in its index.
func filled(b *testing.B) *Store {
	b.Helper()
	done := make(chan int64, 1000)
	s := benchStore(b, Options{onIndex: func(seq int64, _ error) { done <- seq }})
	start := time.Now()
	if err := storetest.FillMoments(context.Background(), s, million); err != nil {
		b.Fatal(err)
	}
	wrote := time.Since(start)
	for seq := range done {
		if seq > million { // the store's own item is one more
			break
		}
	}
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		return info.Size() >> 20
	}
	b.Logf("a million moments were written in %v and indexed in %v; the store has %d MiB, its index %d MiB", wrote.Round(time.Second),
		time.Since(start).Round(time.Second), size(s.path), size(pathOfPast(s.path)))
	return s
}
