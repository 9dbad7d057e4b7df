package storetest

// This file tests retention: what a trim of a feed removes, and what stays.

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

// conversation appends a session of so many records, which is closed in the end, n seconds after the epoch, if n is not negative. It gives
// the bytes that it has.
func (f *feedSuite) conversation(t *testing.T, ref feed.SessionRef, records, n int) int64 {
	t.Helper()
	var all []string
	for k := range records {
		all = append(all, fmt.Sprint("text ", k))
	}
	b := store.Batch{Ref: ref, Spool: "spool", Entries: spooled(1, all...)}
	if n >= 0 {
		b.Entries = append(b.Entries, store.FeedEntry{SpoolSeq: int64(records + 1), Record: event(feed.TypeSessionClosed, n, nil)})
	}
	f.append(t, b)
	return f.head(t, ref.ID).Bytes
}

// left lists which of these sessions have records.
func (f *feedSuite) left(t *testing.T, sessions string) string {
	t.Helper()
	var all []string
	for _, session := range strings.Fields(sessions) {
		if len(f.read(t, session, 0, 1, 0)) > 0 {
			all = append(all, session)
		}
	}
	return strings.Join(all, " ")
}

// ofCore are limits of the team core.
func ofCore(before time.Time, bytes int64) store.Limits {
	return store.Limits{Namespace: core.Namespace, Team: core.Name, ClosedBefore: before, Bytes: bytes}
}

func testTrimByAge(t *testing.T, f *feedSuite) {
	const sessions = "a b c d open"
	// Not in the order in which they were closed.
	sizes := map[string]int64{}
	for session, closed := range map[string]int{"a": 30, "b": 10, "c": 20, "d": 40, "open": -1} {
		sizes[session] = f.conversation(t, refOf(session), 3, closed)
	}
	total := f.size(t, core)
	same(t, "a trim before anything was closed", f.trim(t, ofCore(after(10), 0)), store.Trimmed{})
	same(t, "a trim between", f.trim(t, ofCore(after(21), 0)), store.Trimmed{Sessions: 2, Records: 8, Bytes: sizes["b"] + sizes["c"]})
	same(t, "what is left", f.left(t, sessions), "a d open")
	same(t, "the size", f.size(t, core), total-sizes["b"]-sizes["c"])
	same(t, "the same again", f.trim(t, ofCore(after(21), 0)), store.Trimmed{})
	f.reopen(t)
	same(t, "a trim after all", f.trim(t, ofCore(after(1000), 0)), store.Trimmed{Sessions: 2, Records: 8, Bytes: sizes["a"] + sizes["d"]})
	same(t, "what is left of that", f.left(t, sessions), "open")
	same(t, "the size of that", f.size(t, core), sizes["open"])
	same(t, "the open session", told(t, f.read(t, "open", 0, 0, 0)), "text 0 text 1 text 2")
}

func testTrimBySize(t *testing.T, f *feedSuite) {
	const sessions = "a b c open"
	f.conversation(t, refOf("a"), 10, 3)
	b := f.conversation(t, refOf("b"), 10, 1)
	c := f.conversation(t, refOf("c"), 10, 2)
	f.conversation(t, refOf("open"), 10, -1)
	total := f.size(t, core)
	same(t, "a trim to the size that it has", f.trim(t, ofCore(time.Time{}, total)), store.Trimmed{})
	same(t, "a trim to a byte less", f.trim(t, ofCore(time.Time{}, total-1)), store.Trimmed{Sessions: 1, Records: 11, Bytes: b})
	same(t, "what is left", f.left(t, sessions), "a c open")
	same(t, "both limits", f.trim(t, ofCore(after(3), total)), store.Trimmed{Sessions: 1, Records: 11, Bytes: c})
	same(t, "what is left of that", f.left(t, sessions), "a open")
	did := f.trim(t, ofCore(time.Time{}, 1))
	same(t, "a trim to nothing", did.Sessions, 1)
	same(t, "an open session loses nothing", f.left(t, sessions), "open")
	same(t, "its places", f.head(t, "open").Earliest, int64(1))
}

func testTrimOtherTeams(t *testing.T, f *feedSuite) {
	f.conversation(t, refOf("mine"), 3, 1)
	f.conversation(t, feed.SessionRef{ID: "theirs", Namespace: other.Namespace, Team: other.Name}, 3, 1)
	f.conversation(t, feed.SessionRef{ID: "elsewhere", Namespace: "elsewhere", Team: core.Name}, 3, 1)
	same(t, "a trim without limits", f.trim(t, store.Limits{Namespace: core.Namespace, Team: core.Name}), store.Trimmed{})
	f.trim(t, ofCore(after(1000), 1))
	same(t, "what is left", f.left(t, "mine theirs elsewhere"), "theirs elsewhere")
}

func testAfterTrim(t *testing.T, f *feedSuite) {
	turn := "turn"
	f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: []store.FeedEntry{
		{SpoolSeq: 1, Record: spoken("a"), Key: "key"}, {SpoolSeq: 2, Record: event(feed.TypeTurnEnded, 1, &turn)},
	}})
	f.append(t, store.Batch{Ref: refOf("session"), Entries: []store.FeedEntry{{Key: "end", Record: event(feed.TypeSessionClosed, 2, nil)}}})
	f.append(t, store.Batch{Ref: refOf("session"), Entries: texts("late")})
	f.conversation(t, refOf("open"), 1, -1)
	same(t, "the trim", f.trim(t, ofCore(after(3), 0)).Records, int64(4))
	for range 2 {
		same(t, "its head", f.head(t, "session"), store.Head{Latest: 4, Closed: true})
		same(t, "its records", f.read(t, "session", 0, 0, 0), []store.Stored{})
		same(t, "what was uploaded", f.uploaded(t, "session", "spool"), int64(2))
		same(t, "where its keys were", f.placed(t, "session", "key", "end"), map[string]int64{"key": 1, "end": 3})
		same(t, "whether its turn has ended", f.ended(t, "session", turn), true)
		did := f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: []store.FeedEntry{
			{SpoolSeq: 1, Record: spoken("a"), Key: "key"}, {SpoolSeq: 2, Record: event(feed.TypeTurnEnded, 1, &turn)},
		}})
		same(t, "what an upload of it stores", did, store.Appended{SpoolSeq: 2})
		f.reopen(t)
	}
	did := f.append(t, store.Batch{Ref: refOf("session"), Entries: texts("later")})
	same(t, "the place of what comes then", did.Records[0].Seq, int64(5))
	same(t, "its head with that", f.head(t, "session"), store.Head{Earliest: 5, Latest: 5, Bytes: bytesOf(did.Records), Closed: true})
	same(t, "a trim of that", f.trim(t, ofCore(after(3), 0)), store.Trimmed{Sessions: 1, Records: 1, Bytes: bytesOf(did.Records)})
	same(t, "the size", f.size(t, core), f.head(t, "open").Bytes)
}

// testTrimBesideWriters trims sessions of more records, and of larger ones, than one step removes.
func testTrimBesideWriters(t *testing.T, f *feedSuite) {
	f.conversation(t, refOf("many"), 3000, 1)
	long := strings.Repeat("x", 3<<20)
	f.append(t, store.Batch{Ref: refOf("large"), Entries: texts(long, long+long[:2<<20], long)})
	f.append(t, store.Batch{Ref: refOf("large"), Entries: []store.FeedEntry{{Record: event(feed.TypeSessionClosed, 2, nil)}}})
	size := f.size(t, core)
	var all sync.WaitGroup
	done := make(chan struct{})
	wrote := 0
	all.Go(func() {
		for {
			if _, err := f.Append(context.Background(), store.Batch{Ref: refOf("beside"), Entries: texts("a text")}); err != nil {
				t.Error(err)
			}
			wrote++
			select {
			case <-done:
				return
			default:
			}
		}
	})
	did := f.trim(t, ofCore(after(10), 0))
	close(done)
	all.Wait()
	same(t, "the trim", did, store.Trimmed{Sessions: 2, Records: 3005, Bytes: size})
	beside := f.head(t, "beside")
	same(t, "what was written beside it", beside.Latest, int64(wrote))
	same(t, "the size", f.size(t, core), beside.Bytes)
	same(t, "what is left", f.left(t, "many large beside"), "beside")
}
