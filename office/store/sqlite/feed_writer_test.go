package sqlite

// This file tests appends where it is hard: full disks, a commit that fails under many, and kill -9.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

// deed is a task that a test gives the writer.
type deed struct {
	do   func(c *conn) error
	done chan error
}

func (d deed) run(c *conn) error { return d.do(c) }
func (d deed) answer(err error)  { d.done <- err }

// inWriter runs fn on the writer's goroutine, inside of a transaction.
func inWriter(t *testing.T, f *Feed, fn func(c *conn) error) {
	t.Helper()
	d := deed{do: fn, done: make(chan error, 1)}
	if err := f.do(t.Context(), d, d.done); err != nil {
		t.Fatal(err)
	}
}

// upload appends lines to a session's spool.
func upload(f *Feed, session string, from int64, records ...*feed.Record) error {
	_, err := f.Append(context.Background(), store.Batch{Ref: sessionNamed(session), Spool: "spool", Entries: lines(from, records...)})
	return err
}

func TestAFullFeedRecoversByItself(t *testing.T) {
	heard := make(commits, 100)
	o := heard.options()
	f := freshFeed(t, FeedOptions{OnCommit: o.OnCommit, retryEvery: o.retryEvery})
	if err := upload(f, "session", 1, line("1", 0), line("2", 0)); err != nil {
		t.Fatal(err)
	}
	limit := func(sql string) {
		t.Helper()
		inWriter(t, f, func(c *conn) error { return c.query(sql, func(*sqlite3.Stmt) {}) })
	}
	limit("PRAGMA max_page_count = 1") // SQLite takes the present size instead
	err := upload(f, "session", 3, line("3", 0), line("4", 3<<20))
	if !errors.Is(err, sqlite3.FULL) || !strings.Contains(err.Error(), "the disk is full: make room, and the feed goes on by itself") {
		t.Errorf("got the error %v, want one that says that the disk is full", err)
	}
	if err := upload(f, "new", 1, line("1", 3<<20)); !errors.Is(err, sqlite3.FULL) {
		t.Errorf("a new session got the error %v", err)
	}
	if err := f.Healthy(); !errors.Is(err, sqlite3.FULL) {
		t.Errorf("the feed says of itself %v", err)
	}
	check := func(session, want string) {
		t.Helper()
		if got := texts(t, f, session); got != want {
			t.Errorf("%s has the records %q, want %q", session, got, want)
		}
		uploaded, err := f.Uploaded(t.Context(), session, "spool")
		if latest := int64(len(strings.Fields(want))); err != nil || uploaded != latest {
			t.Errorf("the spool of %s is at %d (%v), want %d", session, uploaded, err, latest)
		}
	}
	check("session", "1 2")
	check("new", "")

	limit("PRAGMA max_page_count = 1000000")
	heard.awaitHealth()
	if err := f.Healthy(); err != nil {
		t.Errorf("the feed says of itself %v", err)
	}
	// The agent comes again with what it has no answer for.
	if err := upload(f, "session", 2, line("2", 0), line("3", 0), line("4", 3<<20), line("5", 0)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if err := upload(f, "new", 1, line("1", 0)); err != nil {
		t.Errorf("with room again: %v", err)
	}
	check("session", "1 2 3 4 5")
	check("new", "1")
}

// TestAFeedsCommitThatFailsAcknowledgesNobody lets the operating system refuse to make the write-ahead log longer, while many appends are
// in one commit. Each by itself went well. Then all of them come again.
func TestAFeedsCommitThatFailsAcknowledgesNobody(t *testing.T) {
	heard := make(commits, 100)
	o := heard.options()
	path := filepath.Join(t.TempDir(), "office.db.feed")
	f := openFeed(t, path, FeedOptions{OnCommit: o.OnCommit, retryEvery: o.retryEvery, limits: tinyLimits})
	const writers = 20
	each := func(from int64, noise int) (failed []error) {
		outcomes := make([]error, writers)
		var all sync.WaitGroup
		started := make(chan struct{}, writers)
		d := deed{done: make(chan error, 1), do: func(*conn) error {
			for w := range writers {
				all.Go(func() {
					started <- struct{}{}
					outcomes[w] = upload(f, fmt.Sprint("session-", w), from, line(fmt.Sprint(from), noise), line(fmt.Sprint(from+1), noise))
				})
			}
			for range writers {
				<-started
			}
			return nil
		}}
		held := f.do(t.Context(), d, d.done)
		all.Wait()
		return append(outcomes, held)
	}
	for _, err := range each(1, 100) {
		if err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	restore := limitFileSize(t, uint64(log.Size())+4096)
	defer restore()
	for w, err := range each(3, 30_000) {
		if !errors.Is(err, sqlite3.IOERR) && !errors.Is(err, sqlite3.FULL) {
			t.Errorf("append %d of the commit that failed got %v", w, err)
		}
	}
	if err := f.Healthy(); err == nil {
		t.Error("the feed says that it is healthy")
	}
	check := func(want string) {
		t.Helper()
		for w := range writers {
			if got := texts(t, f, fmt.Sprint("session-", w)); got != want {
				t.Errorf("session %d has the records %q, want %q", w, got, want)
			}
		}
	}
	check("1 2")
	restore()
	heard.awaitHealth()
	for _, err := range each(3, 30_000) {
		if err != nil {
			t.Error(err)
		}
	}
	check("1 2 3 4")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFeed(t, path, FeedOptions{})
	check("1 2 3 4")
}

// crashFeed names, for the process that is to be killed, the feed to append to.
const crashFeed = "BULLPEN_TEST_CRASH_FEED"

// appendUntilKilled uploads to sessions from several goroutines, which end their sessions now and then, while closed ones are trimmed. It
// prints the session and the last sequence of each upload once that was acknowledged.
func appendUntilKilled(path string) {
	limits := feedLimits{sessions: 5, packBytes: 4 << 10, logBytes: 64 << 10, stepBytes: 8 << 10}
	f, err := OpenFeed(path, FeedOptions{Store: "the store", limits: limits})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	var lock sync.Mutex
	say := func(err error, words ...any) {
		lock.Lock()
		defer lock.Unlock()
		if err != nil {
			words = []any{"error:", err}
		}
		fmt.Println(words...)
	}
	for w := range 8 {
		go func() {
			for life := 0; ; life++ {
				session := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, life)
				seq := int64(0)
				for last := 100 + rand.Int64N(400); seq < last; {
					from := max(1, seq-rand.Int64N(3)) // some again
					var records []*feed.Record
					for seq < last && len(records) < 1+rand.IntN(20) {
						seq = from + int64(len(records))
						records = append(records, line(fmt.Sprint(seq), rand.IntN(500)))
					}
					say(upload(f, session, from, records...), session, seq)
				}
				seq++
				say(upload(f, session, seq, lastLine()), session, seq)
			}
		}()
	}
	for {
		if _, err := f.Trim(context.Background(), store.Limits{Namespace: "office", Team: "core", Bytes: 300_000}); err != nil {
			say(err)
		}
	}
}

// TestKill9LosesNoRecordThatWasAcknowledged kills an appending process again and again, each time after a random number of
// acknowledgements, and looks for everything that was acknowledged to it or to its predecessors.
func TestKill9LosesNoRecordThatWasAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db.feed")
	acknowledged := map[string]int64{}
	for range 6 {
		for _, said := range killedProcess(t, crashFeed, path, 50+rand.IntN(800)) {
			session, last, _ := strings.Cut(said, " ")
			seq, err := strconv.ParseInt(last, 10, 64)
			if err != nil {
				t.Fatalf("the process said %q", said)
			}
			acknowledged[session] = max(acknowledged[session], seq)
		}
		f := openFeed(t, path, FeedOptions{})
		checkFeedAfterCrash(t, f, acknowledged)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(acknowledged) == 0 {
		t.Error("nothing was acknowledged: the test shows nothing")
	}
}

// checkFeedAfterCrash holds each session to what was acknowledged. A record's place is its sequence, because there is nothing else.
func checkFeedAfterCrash(t *testing.T, f *Feed, acknowledged map[string]int64) {
	t.Helper()
	total := int64(0)
	for session, seq := range acknowledged {
		head, err := f.Head(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		uploaded, err := f.Uploaded(t.Context(), session, "spool")
		if err != nil {
			t.Fatal(err)
		}
		if head.Latest < seq || uploaded != head.Latest {
			t.Errorf("%s has records up to %d and an upload up to %d, but %d was acknowledged", session, head.Latest, uploaded, seq)
		}
		records, err := f.Read(t.Context(), session, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		total += head.Bytes
		if !head.Closed && head.Earliest != 1 {
			t.Errorf("%s is open and begins at %d", session, head.Earliest)
		}
		if head.Earliest != 0 && int64(len(records)) != head.Latest-head.Earliest+1 {
			t.Errorf("%s has %d records, and %+v", session, len(records), head)
		}
		bytes := int64(0)
		for n, r := range records {
			bytes += int64(len(r.JSON))
			place := head.Earliest + int64(n)
			record, err := feed.DecodeRecord(r.JSON)
			if err != nil || r.Seq != place || record.FeedSeq != place {
				t.Fatalf("%s has at %d a record for %d, %s (%v)", session, place, r.Seq, r.JSON, err)
			}
			if record.Format != feed.FormatLifecycle && !strings.Contains(string(record.Payload), fmt.Sprintf(`"text":"%d"`, place)) {
				t.Errorf("%s has at %d the payload %s", session, place, record.Payload)
			}
		}
		if bytes != head.Bytes {
			t.Errorf("%s has %d bytes, and says %d", session, bytes, head.Bytes)
		}
	}
	// There may be sessions of which nothing was acknowledged.
	if size, err := f.Size(t.Context(), "office", "core"); err != nil || size < total {
		t.Errorf("the team has %d bytes (%v), its sessions %d", size, err, total)
	}
}
