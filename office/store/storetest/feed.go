package storetest

// This file has the one test suite of store.Feed, and what its tests share.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// OpenFeed opens the feed that lives under the name of place, which is an empty folder at first. The same place is the same feed again,
// once it was closed. It fails the test if it cannot.
type OpenFeed func(t *testing.T, place string) store.Feed

// RunFeed holds a backend to the interface.
func RunFeed(t *testing.T, open OpenFeed) {
	for _, s := range []struct {
		name string
		test func(t *testing.T, f *feedSuite)
	}{
		{"a feed has nothing of a session that it does not know", testUnknownSession},
		{"a record comes back as it was, with its session, its place and an id of its own", testRecordComesBack},
		{"records are numbered on without a gap, in each session by itself", testPlaces},
		{"what was appended is there after closing and opening again", testFeedReopen},
		{"a batch that cannot be understood is refused", testFeedRefuses},
		{"a closed feed does nothing", testFeedClosed},
		{"what begins after its context is over does not run", testFeedCanceled},

		{"what a spool has uploaded is not stored again", testSpoolRepeats},
		{"a spool with a gap is refused, with all of its batch", testSpoolGap},
		{"a spool goes on in the next session, wherever it is", testSpoolGoesOn},
		{"records with a key can stand between those of a spool", testSpoolWithKeys},
		{"entries that are no records move their spool on", testSpoolWithoutRecords},
		{"every spool of a session has a sequence of its own", testSpools},
		{"a key counts once in its session, wherever it comes from", testKeys},
		{"a turn has ended when the platform says so", testEnded},
		{"a session is closed when the platform says so", testClosing},

		{"a read is bounded by count and by size, and gives one record at least", testReadBounds},
		{"large records come back whole", testLargeRecords},
		{"sizes add up by session and team", testSizes},

		{"a trim by age removes what was closed before", testTrimByAge},
		{"a trim by size removes what was closed first, whole sessions", testTrimBySize},
		{"a trim is of one team, and without limits of none", testTrimOtherTeams},
		{"what a session was is known after its records are gone", testAfterTrim},
		{"a trim of many records goes on while others write", testTrimBesideWriters},

		{"appends side by side lose nothing and leave no gap", testConcurrentAppends},
		{"who hears of a record finds it", testHeardOf},
		{"whatever happens, the feed is what a model of it is", testFeedModel},
	} {
		t.Run(s.name, func(t *testing.T) { s.test(t, newFeedSuite(t, open)) })
	}
}

// feedSuite is a fresh feed, and where it lives.
type feedSuite struct {
	store.Feed
	open  OpenFeed
	place string
}

func newFeedSuite(t *testing.T, open OpenFeed) *feedSuite {
	t.Helper()
	f := &feedSuite{open: open, place: t.TempDir()}
	f.Feed = open(t, f.place)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// reopen closes the feed and opens it again.
func (f *feedSuite) reopen(t *testing.T) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.Feed = f.open(t, f.place)
}

// append appends a batch, which has to succeed.
func (f *feedSuite) append(t *testing.T, b store.Batch) store.Appended {
	t.Helper()
	did, err := f.Append(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// read reads records, which has to succeed.
func (f *feedSuite) read(t *testing.T, session string, after int64, limit, maxBytes int) []store.Stored {
	t.Helper()
	records, err := f.Read(context.Background(), session, after, limit, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// head, size, uploaded, placed and ended ask the feed, which has to answer.
func (f *feedSuite) head(t *testing.T, session string) store.Head {
	t.Helper()
	h, err := f.Head(context.Background(), session)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (f *feedSuite) size(t *testing.T, team model.TeamKey) int64 {
	t.Helper()
	n, err := f.Size(context.Background(), team.Namespace, team.Name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (f *feedSuite) uploaded(t *testing.T, session, spool string) int64 {
	t.Helper()
	n, err := f.Uploaded(context.Background(), session, spool)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (f *feedSuite) placed(t *testing.T, session string, keys ...string) map[string]int64 {
	t.Helper()
	places, err := f.Placed(context.Background(), session, keys)
	if err != nil {
		t.Fatal(err)
	}
	return places
}

func (f *feedSuite) ended(t *testing.T, session, turn string) bool {
	t.Helper()
	ended, err := f.Ended(context.Background(), session, turn)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

func (f *feedSuite) trim(t *testing.T, l store.Limits) store.Trimmed {
	t.Helper()
	did, err := f.Trim(context.Background(), l)
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// refOf names a session of core.
func refOf(session string) feed.SessionRef {
	return feed.SessionRef{ID: session, Namespace: core.Namespace, Team: core.Name}
}

// spoken is a record of a runtime with a text in it.
func spoken(text string) *feed.Record {
	payload, err := json.Marshal(map[string]string{"type": "assistant", "text": text})
	if err != nil {
		panic(err)
	}
	return &feed.Record{
		Kind: feed.KindClaudeCode, Source: feed.SourceClaudeCode, Format: feed.FormatClaudeJSONL, Type: "assistant", Payload: payload,
		CreatedAt: epoch,
	}
}

// event is a record of the platform, made n seconds after the epoch.
func event(kind string, n int, turn *string) *feed.Record {
	return &feed.Record{
		Kind: feed.KindPlatform, Source: feed.SourceLifecycle, Format: feed.FormatLifecycle, Type: kind, TurnID: turn,
		Payload: json.RawMessage(`{}`), CreatedAt: after(n),
	}
}

// texts are entries without a spool, one for each text.
func texts(all ...string) (entries []store.FeedEntry) {
	for _, text := range all {
		entries = append(entries, store.FeedEntry{Record: spoken(text)})
	}
	return entries
}

// spooled are entries of a spool, from that sequence on, one for each text.
func spooled(from int64, all ...string) []store.FeedEntry {
	entries := texts(all...)
	for n := range entries {
		entries[n].SpoolSeq = from + int64(n)
	}
	return entries
}

// told are the texts of records, as the payloads have them, joined by spaces.
func told(t *testing.T, records []store.Stored) string {
	t.Helper()
	var all []string
	for _, s := range records {
		r, err := feed.DecodeRecord(s.JSON)
		if err != nil {
			t.Fatalf("%s: %v", s.JSON, err)
		}
		var p struct{ Text string }
		if err := json.Unmarshal(r.Payload, &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Text)
	}
	return strings.Join(all, " ")
}

// bytesOf is how many bytes records have.
func bytesOf(records []store.Stored) (n int64) {
	for _, r := range records {
		n += int64(len(r.JSON))
	}
	return n
}

func testUnknownSession(t *testing.T, f *feedSuite) {
	f.append(t, store.Batch{Ref: refOf("another"), Spool: "spool", Entries: []store.FeedEntry{{SpoolSeq: 1, Record: spoken("a"), Key: "key"}}})
	same(t, "its head", f.head(t, "none"), store.Head{})
	same(t, "its records", f.read(t, "none", 0, 10, 0), []store.Stored{})
	same(t, "what was uploaded", f.uploaded(t, "none", "spool"), int64(0))
	same(t, "where its keys are", f.placed(t, "none", "key"), map[string]int64{})
	same(t, "whether its turn has ended", f.ended(t, "none", "turn"), false)
	same(t, "the size of another team", f.size(t, other), int64(0))
	same(t, "what a trim of another team does", f.trim(t, store.Limits{Namespace: "none", Team: "none", Bytes: 1}), store.Trimmed{})
	// To append nothing is nothing.
	same(t, "what an empty batch does", f.append(t, store.Batch{Ref: refOf("none"), Spool: "spool"}), store.Appended{})
	same(t, "its head after that", f.head(t, "none"), store.Head{})
}

func testRecordComesBack(t *testing.T, f *feedSuite) {
	whole := full[feed.Record]()
	// As it was written, whatever it means.
	whole.Payload = json.RawMessage(`{ "z":1,"a":[12345678901234567890.50, "<\u003c&\/é\ud83d\ude00"],` + "\n" + `"":null,"a":1e999}`)
	given := whole
	did := f.append(t, store.Batch{Ref: refOf("session"), Entries: []store.FeedEntry{{Record: &given}}})
	same(t, "the record that was given", given, whole)
	same(t, "what was stored", did.Records, f.read(t, "session", 0, 0, 0))
	r, err := feed.DecodeRecord(did.Records[0].JSON)
	if err != nil {
		t.Fatal(err)
	}
	if r.ID == "" || r.ID == whole.ID {
		t.Errorf("the record has the id %q", r.ID)
	}
	whole.ID, whole.SessionID, whole.FeedSeq = r.ID, "session", 1
	same(t, "the record", r, whole)
	same(t, "its place", did.Records[0].Seq, int64(1))

	seen := map[string]bool{}
	for _, session := range []string{"session", "session-1", "other"} {
		entries := texts(strings.Fields("a b c d e f g h i j k l")...)
		for _, s := range f.append(t, store.Batch{Ref: refOf(session), Entries: entries}).Records {
			r, err := feed.DecodeRecord(s.JSON)
			if err != nil {
				t.Fatal(err)
			}
			if seen[r.ID] || r.FeedSeq != s.Seq {
				t.Errorf("a record at %d has the id %s of another one, or the place %d", s.Seq, r.ID, r.FeedSeq)
			}
			seen[r.ID] = true
		}
	}
}

func testPlaces(t *testing.T, f *feedSuite) {
	next := map[string]int64{}
	for n := range 60 {
		session := fmt.Sprint("session-", n%7%4)
		b := store.Batch{Ref: refOf(session)}
		for k := range 1 + n%3 {
			b.Entries = append(b.Entries, texts(fmt.Sprintf("%d.%d", n, k))...)
		}
		for _, s := range f.append(t, b).Records {
			next[session]++
			same(t, "the next place of "+session, s.Seq, next[session])
		}
	}
	for session, latest := range next {
		h := f.head(t, session)
		all := f.read(t, session, 0, 0, 0)
		same(t, "the head of "+session, h, store.Head{Earliest: 1, Latest: latest, Bytes: bytesOf(all)})
		for n, s := range all {
			same(t, "the places of "+session, s.Seq, int64(n+1))
		}
		same(t, "as many as were given", int64(len(all)), latest)
		same(t, "those from the middle on", f.read(t, session, latest/2, 0, 0), all[latest/2:])
		same(t, "those after the last", f.read(t, session, latest, 0, 0), []store.Stored{})
		same(t, "those far beyond", f.read(t, session, 1<<62, 0, 0), []store.Stored{})
		same(t, "those after less than nothing", f.read(t, session, -1, 1, 0), all[:1])
	}
}

func testFeedReopen(t *testing.T, f *feedSuite) {
	turn := "turn"
	b := store.Batch{Ref: refOf("session"), Spool: "spool", Entries: spooled(1, "a", "b")}
	b.Entries[1].Key = "key"
	b.Entries = append(b.Entries, store.FeedEntry{SpoolSeq: 3, Record: event(feed.TypeTurnEnded, 1, &turn)})
	f.append(t, b)
	records, head, size := f.read(t, "session", 0, 0, 0), f.head(t, "session"), f.size(t, core)
	f.reopen(t)
	same(t, "its records", f.read(t, "session", 0, 0, 0), records)
	same(t, "its head", f.head(t, "session"), head)
	same(t, "the team's size", f.size(t, core), size)
	same(t, "what was uploaded", f.uploaded(t, "session", "spool"), int64(3))
	same(t, "where its key is", f.placed(t, "session", "key"), map[string]int64{"key": 2})
	same(t, "whether its turn has ended", f.ended(t, "session", turn), true)
	if err := f.Healthy(); err != nil {
		t.Errorf("the feed is not healthy: %v", err)
	}
	did := f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: spooled(3, "again", "c")})
	same(t, "what goes on", told(t, did.Records), "c")
	same(t, "its place", did.Records[0].Seq, int64(4))
}

func testFeedRefuses(t *testing.T, f *feedSuite) {
	for name, b := range map[string]store.Batch{
		"no session":         {Entries: texts("a")},
		"a payload too long": {Ref: refOf("session"), Entries: texts(strings.Repeat("x", feed.MaxRecord))},
		"no sequence":        {Ref: refOf("session"), Spool: "spool", Entries: spooled(0, "a", "b")},
		"a sequence below 0": {Ref: refOf("session"), Spool: "spool", Entries: spooled(-1, "a")},
	} {
		if did, err := f.Append(context.Background(), b); err == nil || len(did.Records) > 0 {
			t.Errorf("a batch with %s was taken: %v", name, did)
		}
	}
	same(t, "the session after that", f.head(t, "session"), store.Head{})
}

func testFeedClosed(t *testing.T, f *feedSuite) {
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("closing it twice: %v", err)
	}
	for what, err := range eachCall(context.Background(), f) {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s of a closed feed gave %v, want ErrClosed", what, err)
		}
	}
}

func testFeedCanceled(t *testing.T, f *feedSuite) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for what, err := range eachCall(ctx, f) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s gave %v, want context.Canceled", what, err)
		}
	}
	same(t, "the session after that", f.head(t, "session"), store.Head{})
}

// eachCall calls every method once, and gives their errors.
func eachCall(ctx context.Context, f store.Feed) map[string]error {
	all := map[string]error{}
	_, all["Append"] = f.Append(ctx, store.Batch{Ref: refOf("session"), Entries: texts("a")})
	_, all["Read"] = f.Read(ctx, "session", 0, 1, 1)
	_, all["Head"] = f.Head(ctx, "session")
	_, all["Uploaded"] = f.Uploaded(ctx, "session", "spool")
	_, all["Placed"] = f.Placed(ctx, "session", []string{"key"})
	_, all["Ended"] = f.Ended(ctx, "session", "turn")
	_, all["Trim"] = f.Trim(ctx, store.Limits{Namespace: core.Namespace, Team: core.Name, ClosedBefore: time.Now()})
	_, all["Size"] = f.Size(ctx, core.Namespace, core.Name)
	return all
}
