package storetest

// This file tests what appends to a feed promise: once each, in order, all or none.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

func testSpoolRepeats(t *testing.T, f *feedSuite) {
	upload := func(from int64, texts ...string) store.Appended {
		t.Helper()
		return f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: spooled(from, texts...)})
	}
	did := upload(1, "a", "b", "c")
	same(t, "the first upload", told(t, did.Records), "a b c")
	same(t, "how far the spool is", did.SpoolSeq, int64(3))
	for _, test := range []struct {
		name    string
		from    int64
		texts   string
		stored  string
		durable int64
	}{
		{"the same again", 1, "a b c", "", 3},
		{"a part of it", 2, "b", "", 3},
		{"the end of it and more", 3, "c d e", "d e", 5},
		{"all of it from the beginning and more", 1, "a b c d e f", "f", 6},
		{"only more", 7, "g", "g", 7},
	} {
		did := upload(test.from, strings.Fields(test.texts)...)
		same(t, test.name, told(t, did.Records), test.stored)
		same(t, test.name+": how far the spool is", did.SpoolSeq, test.durable)
		same(t, test.name+": how far it says it is", f.uploaded(t, "session", "spool"), test.durable)
		f.reopen(t)
	}
	did = f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: append(spooled(8, "h", "i"), spooled(8, "h", "i", "j")...)})
	same(t, "a batch that repeats itself", told(t, did.Records), "h i j")
	same(t, "all", told(t, f.read(t, "session", 0, 0, 0)), "a b c d e f g h i j")
}

func testSpoolGap(t *testing.T, f *feedSuite) {
	refused := func(name string, entries []store.FeedEntry) {
		t.Helper()
		before, head := f.uploaded(t, "session", "spool"), f.head(t, "session")
		did, err := f.Append(context.Background(), store.Batch{Ref: refOf("session"), Spool: "spool", Entries: entries})
		if !errors.Is(err, store.ErrGap) || len(did.Records) > 0 {
			t.Errorf("%s gave %v and %v, want ErrGap", name, did, err)
		}
		same(t, name+": how far the spool is", f.uploaded(t, "session", "spool"), before)
		same(t, name+": the session", f.head(t, "session"), head)
	}
	refused("a gap in what is the first of the spool", append(spooled(1, "a"), spooled(3, "c")...))
	f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: spooled(1, "a")})
	refused("a gap before the first", spooled(3, "c"))
	refused("a gap after some", append(spooled(1, "a", "b"), spooled(4, "d")...))
	refused("a step back after more, and a gap", append(spooled(2, "b", "c"), append(spooled(1, "a"), spooled(5, "e")...)...))
	f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: spooled(1, "a", "b", "c")})
	same(t, "what is there in the end", told(t, f.read(t, "session", 0, 0, 0)), "a b c")
}

// testSpoolGoesOn has a spool that another session saw the beginning of.
func testSpoolGoesOn(t *testing.T, f *feedSuite) {
	upload := func(session string, from int64, texts ...string) store.Appended {
		t.Helper()
		return f.append(t, store.Batch{Ref: refOf(session), Spool: "spool", Entries: spooled(from, texts...)})
	}
	upload("first", 1, "a", "b", "c")
	did := upload("second", 4, "d", "e")
	same(t, "what the next session has", told(t, did.Records), "d e")
	same(t, "where that begins", did.Records[0].Seq, int64(1))
	same(t, "how far the spool is for it", f.uploaded(t, "second", "spool"), int64(5))
	same(t, "how far it is for the first", f.uploaded(t, "first", "spool"), int64(3))
	f.reopen(t)
	same(t, "what is uploaded again, and more", told(t, upload("second", 3, "c", "d", "e", "f").Records), "f")
	_, err := f.Append(context.Background(), store.Batch{Ref: refOf("second"), Spool: "spool", Entries: spooled(8, "h")})
	if !errors.Is(err, store.ErrGap) {
		t.Errorf("a gap after that gave %v, want ErrGap", err)
	}
}

// testSpoolWithKeys has records of the office between those of a spool.
func testSpoolWithKeys(t *testing.T, f *feedSuite) {
	before := func(key, text string) store.FeedEntry { return store.FeedEntry{Key: key, Record: spoken(text)} }
	upload := func(entries ...store.FeedEntry) string {
		t.Helper()
		return told(t, f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: entries}).Records)
	}
	entries := spooled(1, "a", "b", "c")
	same(t, "some between", upload(before("one", "x"), entries[0], entries[1], before("two", "y"), entries[2]), "x a b y c")
	same(t, "the same again", upload(before("one", "x"), entries[0], entries[1], before("two", "y"), entries[2]), "")
	same(t, "one alone", upload(before("three", "z")), "z")
	same(t, "how far the spool is", f.uploaded(t, "session", "spool"), int64(3))
	_, err := f.Append(context.Background(), store.Batch{Ref: refOf("session"), Spool: "spool", Entries: append(
		[]store.FeedEntry{before("four", "never")}, spooled(5, "e")...)})
	if !errors.Is(err, store.ErrGap) {
		t.Errorf("a gap after one gave %v, want ErrGap", err)
	}
	same(t, "what is there in the end", told(t, f.read(t, "session", 0, 0, 0)), "x a b y c z")
}

func testSpoolWithoutRecords(t *testing.T, f *feedSuite) {
	did := f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: []store.FeedEntry{{SpoolSeq: 1}, {SpoolSeq: 2}}})
	same(t, "what was stored", did, store.Appended{SpoolSeq: 2})
	same(t, "the session", f.head(t, "session"), store.Head{})
	f.reopen(t)
	same(t, "how far the spool is", f.uploaded(t, "session", "spool"), int64(2))
	did = f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: []store.FeedEntry{
		{SpoolSeq: 2}, {SpoolSeq: 3, Record: spoken("a")}, {SpoolSeq: 4}, {SpoolSeq: 5, Record: spoken("b")},
	}})
	same(t, "the records", told(t, did.Records), "a b")
	same(t, "the last place", did.Records[1].Seq, int64(2))
	same(t, "how far the spool is then", did.SpoolSeq, int64(5))
}

func testSpools(t *testing.T, f *feedSuite) {
	upload := func(session, spool string, from int64, texts ...string) {
		t.Helper()
		f.append(t, store.Batch{Ref: refOf(session), Spool: spool, Entries: spooled(from, texts...)})
	}
	upload("session", "first", 1, "a", "b")
	upload("session", "second", 1, "c")
	f.append(t, store.Batch{Ref: refOf("session"), Entries: texts("office")})
	upload("other", "first", 1, "x")
	upload("session", "first", 2, "b", "d")
	upload("session", "second", 1, "c", "e")
	same(t, "the records", told(t, f.read(t, "session", 0, 0, 0)), "a b c office d e")
	same(t, "how far the first is", f.uploaded(t, "session", "first"), int64(3))
	same(t, "how far the second is", f.uploaded(t, "session", "second"), int64(2))
	same(t, "how far the other session's is", f.uploaded(t, "other", "first"), int64(1))
	same(t, "how far an unknown one is", f.uploaded(t, "session", "third"), int64(0))
}

func testKeys(t *testing.T, f *feedSuite) {
	keyed := func(key, text string) store.FeedEntry { return store.FeedEntry{Key: key, Record: spoken(text)} }
	office := func(entries ...store.FeedEntry) string {
		t.Helper()
		return told(t, f.append(t, store.Batch{Ref: refOf("session"), Entries: entries}).Records)
	}
	same(t, "new keys", office(keyed("one", "a"), keyed("two", "b"), keyed("", "c")), "a b c")
	same(t, "a repeat, and what has no key", office(keyed("one", "a"), keyed("", "c"), keyed("three", "d")), "c d")
	same(t, "a repeat in its own batch", office(keyed("four", "e"), keyed("four", "again")), "e")
	f.reopen(t)
	same(t, "a repeat after opening again", office(keyed("four", "e"), keyed("one", "a")), "")
	did := f.append(t, store.Batch{Ref: refOf("session"), Spool: "spool", Entries: []store.FeedEntry{
		{SpoolSeq: 1, Key: "one", Record: spoken("repeat of the office")}, {SpoolSeq: 2, Key: "five", Record: spoken("f")},
	}})
	same(t, "a repeat in a spool", told(t, did.Records), "f")
	same(t, "how far the spool is", did.SpoolSeq, int64(2))
	same(t, "the same key in another session",
		told(t, f.append(t, store.Batch{Ref: refOf("other"), Entries: []store.FeedEntry{keyed("one", "x")}}).Records), "x")
	same(t, "all", told(t, f.read(t, "session", 0, 0, 0)), "a b c c d e f")
	same(t, "where they are", f.placed(t, "session", "one", "two", "three", "four", "five", "six", ""),
		map[string]int64{"one": 1, "two": 2, "three": 5, "four": 6, "five": 7})
}

func testEnded(t *testing.T, f *feedSuite) {
	one, two := "turn-1", "turn-2"
	quoted := spoken("quoted")
	quoted.Type, quoted.TurnID = feed.TypeTurnEnded, &two
	f.append(t, store.Batch{Ref: refOf("session"), Entries: []store.FeedEntry{
		{Record: event(feed.TypeTurnStarted, 0, &one)}, {Record: event(feed.TypeTurnEnded, 0, nil)}, {Record: quoted},
		{Key: two, Record: spoken("whose key is the name of a turn")},
	}})
	for _, turn := range []string{one, two, ""} {
		same(t, fmt.Sprintf("whether the turn %q has ended", turn), f.ended(t, "session", turn), false)
	}
	for range 2 { // to say it twice does no harm
		f.append(t, store.Batch{Ref: refOf("session"), Entries: []store.FeedEntry{{Record: event(feed.TypeTurnEnded, 0, &one)}}})
		same(t, "whether it has ended", f.ended(t, "session", one), true)
	}
	same(t, "whether the other one has", f.ended(t, "session", two), false)
	same(t, "whether it has in another session", f.ended(t, "other", one), false)
	same(t, "a turn is no key", f.placed(t, "session", one), map[string]int64{})
}

func testClosing(t *testing.T, f *feedSuite) {
	quoted := spoken("quoted")
	quoted.Type = feed.TypeSessionClosed
	f.append(t, store.Batch{Ref: refOf("session"), Entries: []store.FeedEntry{{Record: quoted}}})
	same(t, "whether it is closed", f.head(t, "session").Closed, false)
	f.append(t, store.Batch{Ref: refOf("session"), Entries: []store.FeedEntry{{Record: event(feed.TypeSessionClosed, 9, nil)}}})
	same(t, "whether it is closed after the platform said so", f.head(t, "session").Closed, true)
	same(t, "what comes later", told(t, f.append(t, store.Batch{Ref: refOf("session"), Entries: texts("late")}).Records), "late")
	f.reopen(t)
	h := f.head(t, "session")
	same(t, "the session after that", []any{h.Closed, h.Latest}, []any{true, int64(3)})
}

func testReadBounds(t *testing.T, f *feedSuite) {
	var all []string
	for n := range 50 {
		all = append(all, strings.Repeat("x", n*7))
	}
	f.append(t, store.Batch{Ref: refOf("session"), Entries: texts(all...)})
	f.append(t, store.Batch{Ref: refOf("session-after"), Entries: texts("of another session")})
	whole := f.read(t, "session", 0, 0, 0)
	same(t, "all of them", len(whole), 50)
	for _, limit := range []int{1, 7, 49, 50, 51, 1000} {
		same(t, fmt.Sprint("at most ", limit), f.read(t, "session", 0, limit, 0), whole[:min(limit, 50)])
	}
	for n := 1; n <= 50; n += 7 {
		bytes := int(bytesOf(whole[:n]))
		same(t, fmt.Sprint("just the bytes of ", n), f.read(t, "session", 0, 0, bytes), whole[:n])
		same(t, fmt.Sprint("one byte less than those of ", n), f.read(t, "session", 0, 0, bytes-1), whole[:max(n-1, 1)])
		same(t, fmt.Sprint("both bounds at ", n), f.read(t, "session", 0, 3, bytes), whole[:min(n, 3)])
	}
	same(t, "one record, however large", f.read(t, "session", 20, 0, 1), whole[20:21])
}

func testLargeRecords(t *testing.T, f *feedSuite) {
	text := strings.Repeat("a long text ", feed.MaxRecord/12-10)
	f.append(t, store.Batch{Ref: refOf("session"), Entries: texts("before", text, "between", text+"!", "after")})
	f.reopen(t)
	all := f.read(t, "session", 0, 0, 0)
	if got := told(t, all); got != "before "+text+" between "+text+"! after" {
		t.Errorf("the records have %d bytes of text that differ", len(got))
	}
	same(t, "what has room in twelve megabytes", len(f.read(t, "session", 0, 0, 12<<20)), 3)
}

func testSizes(t *testing.T, f *feedSuite) {
	of := func(session, team string) feed.SessionRef {
		return feed.SessionRef{ID: session, Namespace: core.Namespace, Team: team}
	}
	sizes := map[string]int64{}
	for n := range 30 {
		session, team := fmt.Sprint("session-", n%5), []string{core.Name, other.Name}[n%5%2]
		did := f.append(t, store.Batch{Ref: of(session, team), Entries: texts("a text", strings.Repeat("y", n*100))})
		sizes[session] += bytesOf(did.Records)
		sizes[team] += bytesOf(did.Records)
		if n == 15 {
			f.reopen(t)
		}
	}
	for n := range 5 {
		session := fmt.Sprint("session-", n)
		same(t, "the size of "+session, f.head(t, session).Bytes, sizes[session])
	}
	same(t, "the size of the team", f.size(t, core), sizes[core.Name])
	same(t, "the size of the other team", f.size(t, other), sizes[other.Name])
	did := f.append(t, store.Batch{Ref: of("session-0", other.Name), Entries: texts("it stays where it was")})
	same(t, "the size of the team of a session whose batch names another", f.size(t, core), sizes[core.Name]+bytesOf(did.Records))
}

// testConcurrentAppends has agents that upload each record to one session, again and again from somewhere before, while the office appends
// to the same sessions and others read them.
func testConcurrentAppends(t *testing.T, f *feedSuite) {
	const sessions, records = 8, 60
	var all, readers sync.WaitGroup
	done := make(chan struct{})
	for s := range sessions {
		session := fmt.Sprint("session-", s)
		all.Go(func() { uploadClumsily(t, f, session, records, s) })
		all.Go(func() {
			for n := range records / 2 {
				for range 2 { // each twice
					_, err := f.Append(context.Background(), store.Batch{Ref: refOf(session), Entries: []store.FeedEntry{
						{Key: fmt.Sprint("key ", n), Record: spoken("office")},
					}})
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
		readers.Go(func() {
			for after := int64(0); ; {
				select {
				case <-done:
					return
				default:
				}
				got, err := f.Read(context.Background(), session, after, 10, 0)
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range got {
					if after++; r.Seq != after {
						t.Errorf("a reader of %s got the place %d after %d", session, r.Seq, after-1)
						return
					}
				}
			}
		})
	}
	all.Wait()
	close(done)
	readers.Wait()
	for s := range sessions {
		session := fmt.Sprint("session-", s)
		stored := f.read(t, session, 0, 0, 0)
		same(t, "how many records "+session+" has", len(stored), records+records/2)
		next := 0
		for _, text := range strings.Fields(told(t, stored)) {
			if text == "office" {
				continue
			}
			same(t, "the next record of the spool of "+session, text, fmt.Sprint(next))
			next++
		}
	}
}

// uploadClumsily uploads numbered records, each time from some records before those that are known to be durable.
func uploadClumsily(t *testing.T, f *feedSuite, session string, records, seed int) {
	durable := int64(0)
	for n := 0; durable < int64(records); n++ {
		from := max(1, durable+1-int64(n*7+seed)%4)
		var all []string
		for seq := from; seq <= min(durable+int64(n%3)+1, int64(records)); seq++ {
			all = append(all, fmt.Sprint(seq-1))
		}
		did, err := f.Append(context.Background(), store.Batch{Ref: refOf(session), Spool: "spool", Entries: spooled(from, all...)})
		if err != nil {
			t.Error(err)
			return
		}
		durable = did.SpoolSeq
	}
}

// testHeardOf has readers who wait for the end of a turn, and for a key, and then look for the record.
func testHeardOf(t *testing.T, f *feedSuite) {
	const turns = 150
	var all sync.WaitGroup
	turn := func(n int64) string { return fmt.Sprint("turn-", n) }
	all.Go(func() {
		for n := int64(1); n <= turns; n++ {
			id := turn(n)
			if _, err := f.Append(context.Background(), store.Batch{Ref: refOf("session"), Entries: []store.FeedEntry{
				{Key: id, Record: event(feed.TypeTurnEnded, 0, &id)},
			}}); err != nil {
				t.Error(err)
			}
		}
	})
	for _, heard := range []func(id string) (bool, error){
		func(id string) (bool, error) { return f.Ended(context.Background(), "session", id) },
		func(id string) (bool, error) {
			places, err := f.Placed(context.Background(), "session", []string{id})
			return places[id] != 0, err
		},
	} {
		all.Go(func() {
			for n := int64(1); n <= turns && !t.Failed(); {
				if ok, err := heard(turn(n)); err != nil {
					t.Error(err)
				} else if !ok {
					continue
				}
				if got, err := f.Read(context.Background(), "session", n-1, 1, 0); err != nil || len(got) != 1 {
					t.Errorf("record %d was told of, and there is %v (%v)", n, got, err)
				}
				n++
			}
		})
	}
	all.Wait()
}
