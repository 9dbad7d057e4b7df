package sqlite

// This file measures the feed: every record is on disk before it is counted.

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/store/storetest"
)

// BenchmarkFeedAppends has 1, 50 and 500 writers who each append a record of some 950 bytes to a session of their own, wait until it is
// durable, and begin again. It reports records (records/s) and fsyncs (fsyncs/s) a second, and an append's latency in milliseconds.
func BenchmarkFeedAppends(b *testing.B) {
	for _, writers := range []int{1, 50, 500} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			var fsyncs atomic.Int64
			f, err := OpenFeed(filepath.Join(b.TempDir(), "bench.feed"), FeedOptions{Store: "bench", OnCommit: func(int, time.Duration, error) {
				fsyncs.Add(1)
			}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() {
				if err := f.Close(); err != nil {
					b.Error(err)
				}
			})
			b.ResetTimer()
			took, elapsed, err := storetest.Appends(context.Background(), f, 0, writers, b.N)
			b.StopTimer()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/elapsed.Seconds(), "records/s")
			b.ReportMetric(float64(fsyncs.Load())/elapsed.Seconds(), "fsyncs/s")
			for _, p := range []int{50, 99} {
				b.ReportMetric(float64(took[(len(took)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
			}
		})
	}
}
