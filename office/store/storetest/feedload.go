package storetest

// This file puts a load on a feed, for benchmarks.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// FeedSession is the n-th session of a load, whose id is as long as those of an office. It is one of Team's.
func FeedSession(n int) feed.SessionRef {
	item := fmt.Sprintf("5f0c3e12-77aa-4b3e-9d51-%012d", n)
	return feed.SessionRef{
		ID: model.SessionID("0b9d6a58-3c1f-4e0a-8f3a-6c2d7e9b1a40", item, 1), Namespace: Team.Namespace, Team: Team.Name,
	}
}

// feedLoad makes records of a load: with a payload of 500 bytes of prose, they have some 950 bytes.
type feedLoad struct{ payloads []json.RawMessage }

func newFeedLoad() *feedLoad {
	text := newProse(7)
	l := &feedLoad{}
	for range 1000 {
		l.payloads = append(l.payloads, json.RawMessage(fmt.Sprintf(`{"type":"assistant","text":"%s"}`, text.sentence(470))))
	}
	return l
}

// record is the n-th record of a session.
func (l *feedLoad) record(session string, n int) *feed.Record {
	turn := model.TurnID(session, 1)
	return &feed.Record{
		Kind: feed.KindClaudeCode, Source: feed.SourceClaudeCode, Format: feed.FormatClaudeJSONL, Type: "assistant", TurnID: &turn,
		Payload: l.payloads[n%len(l.payloads)], CreatedAt: time.Date(2030, 1, 1, 0, 0, n%86400, 0, time.UTC),
	}
}

// Appends has writers who each append a record to a session of their own, wait until it is durable, and begin again, until there are that
// many. The first session is FeedSession(first). It gives how long each append took, shortest first, and how long all of them took.
func Appends(ctx context.Context, f store.Feed, first, writers, records int) (took []time.Duration, elapsed time.Duration, err error) {
	load := newFeedLoad()
	var left atomic.Int64
	left.Store(int64(records))
	each, failures := make([][]time.Duration, writers), make([]error, writers)
	begin := time.Now()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			ref := FeedSession(first + w)
			for n := 1; failures[w] == nil && left.Add(-1) >= 0; n++ {
				start := time.Now()
				_, failures[w] = f.Append(ctx, store.Batch{
					Ref: ref, Spool: "the only one", Entries: []store.FeedEntry{{SpoolSeq: int64(n), Record: load.record(ref.ID, n)}},
				})
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

// FillFeed appends records to so many sessions from FeedSession(first) on, ofSession to each. As in an office, the sessions of fifty people
// grow side by side, by some records at a time. If closed is not nil, it says which sessions are closed in the end, by one record more; the
// n-th was closed n seconds after 1970.
func FillFeed(ctx context.Context, f store.Feed, first, sessions, ofSession int, closed func(n int) bool) error {
	const sideBySide, batch, writers = 50, 20, 4
	load := newFeedLoad()
	failures := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := w * sideBySide; n < sessions && failures[w] == nil; n += writers * sideBySide {
				failures[w] = load.fill(ctx, f, first+n, min(sideBySide, sessions-n), ofSession, batch, closed)
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// fill has some sessions grow side by side.
func (l *feedLoad) fill(ctx context.Context, f store.Feed, first, sessions, ofSession, batch int, closed func(n int) bool) error {
	for from := 0; from < ofSession; from += batch {
		for s := first; s < first+sessions; s++ {
			b := store.Batch{Ref: FeedSession(s), Spool: "the only one"}
			for n := from; n < min(from+batch, ofSession); n++ {
				b.Entries = append(b.Entries, store.FeedEntry{SpoolSeq: int64(n + 1), Record: l.record(b.Ref.ID, n)})
			}
			if from+batch >= ofSession && closed != nil && closed(s) {
				b.Entries = append(b.Entries, store.FeedEntry{SpoolSeq: int64(ofSession + 1), Record: closing(time.Unix(int64(s), 0))})
			}
			if _, err := f.Append(ctx, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// closing is the record that closes a session.
func closing(at time.Time) *feed.Record {
	return &feed.Record{
		Kind: feed.KindPlatform, Source: feed.SourceLifecycle, Format: feed.FormatLifecycle, Type: feed.TypeSessionClosed,
		Payload: json.RawMessage(`{}`), CreatedAt: at,
	}
}
