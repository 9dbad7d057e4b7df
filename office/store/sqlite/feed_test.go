package sqlite

// This file holds the feed to the suite of its interface, and tests what it is on disk.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/storetest"
)

// tinyLimits make a feed pack and change logs all the time, and remember next to nothing.
var tinyLimits = feedLimits{sessions: 2, packBytes: 16_000, logBytes: 6_000, stepBytes: 500}

func TestFeed(t *testing.T) {
	for name, limits := range map[string]feedLimits{"usual": {}, "tiny": tinyLimits} {
		t.Run(name, func(t *testing.T) {
			storetest.RunFeed(t, func(t *testing.T, place string) store.Feed {
				t.Helper()
				return openFeed(t, filepath.Join(place, "office.db.feed"), FeedOptions{limits: limits})
			})
		})
	}
}

// openFeed opens a feed that has to open, and closes it after the test.
func openFeed(t *testing.T, path string, o FeedOptions) *Feed {
	t.Helper()
	if o.Store == "" {
		o.Store = "the store"
	}
	f, err := OpenFeed(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// freshFeed opens a new feed.
func freshFeed(t *testing.T, o FeedOptions) *Feed {
	t.Helper()
	return openFeed(t, filepath.Join(t.TempDir(), "office.db.feed"), o)
}

// sessionNamed is a session of the team that the tests of this package have.
func sessionNamed(id string) feed.SessionRef {
	return feed.SessionRef{ID: id, Namespace: "office", Team: "core"}
}

// line is a record with a text and so many bytes that no compression makes less.
func line(text string, noise int) *feed.Record {
	pad := make([]byte, noise)
	for n := range pad {
		pad[n] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[rand.IntN(64)]
	}
	return &feed.Record{
		Kind: feed.KindClaudeCode, Source: feed.SourceClaudeCode, Format: feed.FormatClaudeJSONL, Type: "assistant",
		Payload: json.RawMessage(fmt.Sprintf(`{"text":%q,"pad":%q}`, text, pad)),
	}
}

// lastLine is the record that closes a session.
func lastLine() *feed.Record {
	return &feed.Record{
		Kind: feed.KindPlatform, Source: feed.SourceLifecycle, Format: feed.FormatLifecycle, Type: feed.TypeSessionClosed,
		Payload: json.RawMessage(`{}`),
	}
}

// lines appends records of a spool, from that sequence on.
func lines(from int64, records ...*feed.Record) (entries []store.FeedEntry) {
	for n, r := range records {
		entries = append(entries, store.FeedEntry{SpoolSeq: from + int64(n), Record: r})
	}
	return entries
}

// texts lists the texts of a session's records.
func texts(t *testing.T, f *Feed, session string) string {
	t.Helper()
	records, err := f.Read(t.Context(), session, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range records {
		r, err := feed.DecodeRecord(s.JSON)
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Text string }
		if err := json.Unmarshal(r.Payload, &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Text)
	}
	return strings.Join(all, " ")
}

func TestFilesOfAFeedAreTheOwnersOnly(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "here")
	f := openFeed(t, filepath.Join(folder, "office.db.feed"), FeedOptions{})
	if _, err := f.Append(t.Context(), store.Batch{Ref: sessionNamed("session"), Entries: lines(0, line("a", 0))}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 4 {
		t.Errorf("the folder has %v", entries)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != fs.FileMode(0o600) {
			t.Errorf("%s has the mode %v", e.Name(), info.Mode())
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "office.db.feed-wal")); err == nil {
		t.Error("the write-ahead log was not taken into the file")
	}
}

func TestSettingsThatAFeedNeeds(t *testing.T) {
	f := freshFeed(t, FeedOptions{})
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "auto_vacuum": "2"} {
		got := ""
		if err := f.writer.c.query("PRAGMA "+pragma, func(row *sqlite3.Stmt) { got = row.ColumnText(0) }); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestASecondOfficeIsToldWhoHasTheFeed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db.feed")
	openFeed(t, path, FeedOptions{})
	_, err := OpenFeed(path, FeedOptions{Store: "the store"})
	for _, want := range []string{"the feed " + path, fmt.Sprintf("process %d on ", os.Getpid()), "a feed of its own"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestAFeedWithoutAStoreIsRefused(t *testing.T) {
	if _, err := OpenFeed(filepath.Join(t.TempDir(), "x"), FeedOptions{}); err == nil || !strings.Contains(err.Error(), "FeedOptions.Store") {
		t.Errorf("got the error %v", err)
	}
}

// closedFeed makes a feed with records in packs and in its logs, and closes it.
func closedFeed(t *testing.T, path string) {
	t.Helper()
	f := openFeed(t, path, FeedOptions{limits: tinyLimits})
	for n := range 60 {
		session := fmt.Sprint("session-", n%7)
		if _, err := f.Append(t.Context(), store.Batch{Ref: sessionNamed(session), Entries: lines(0, line(fmt.Sprint(n), 300))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedFeeds opens what is no feed of this store and this release. The file stays as it was, byte by byte, and the lock is free.
func TestRefusedFeeds(t *testing.T) {
	change := func(sql string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			closedFeed(t, path)
			changeFile(t, path, sql)
		}
	}
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"a text", func(t *testing.T, path string) {
			writeFile(t, path, []byte(strings.Repeat("hello ", 5000)))
		}, "damaged or no SQLite database"},
		{"a store", closedStore, "another program"},
		{"a feed of a newer release", change("PRAGMA user_version = 1000"), "schema version 1000, written by a newer release"},
		{"a feed of another store", change("UPDATE feed SET store = 'elsewhere'"), "the store elsewhere and not to the store the store"},
		{"a feed that was cut off", func(t *testing.T, path string) {
			closedFeed(t, path)
			if err := os.Truncate(path, int64(len(contents(t, path))-4096)); err != nil {
				t.Fatal(err)
			}
		}, "damaged or no SQLite database"},
		{"a feed whose first page was overwritten", func(t *testing.T, path string) {
			closedFeed(t, path)
			all := contents(t, path)
			copy(all[100:4096], bytes.Repeat([]byte("junk"), 1000))
			writeFile(t, path, all)
		}, "damaged or no SQLite database"},
		{"a feed that has lost the end of a session", change("DELETE FROM packs WHERE n = (SELECT max(n) FROM packs)"), "should have them from"},
		{"a feed that has lost the beginning of a session", change("DELETE FROM packs WHERE n = (SELECT min(n) FROM packs)"),
			"should have them from"},
		{"a feed that has lost some of its log", func(t *testing.T, path string) {
			f := openFeed(t, path, FeedOptions{})
			for n := range int64(3) {
				if err := upload(f, "session", n+1, line("a", 0)); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			changeFile(t, path, "DELETE FROM log0 WHERE place = 2")
		}, "the log has the record 3 of session session after 1"},
		{"a feed that has lost a session", change("DELETE FROM sessions WHERE n = 3"), "session 3, which is unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "office.db.feed")
			test.make(t, path)
			before := contents(t, path)
			_, err := OpenFeed(path, FeedOptions{Store: "the store"})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got the error %v, want one with %q", err, test.want)
			}
			if !strings.Contains(strings.ToLower(err.Error()), "nothing was changed") {
				t.Errorf("the error does not say that nothing was changed: %v", err)
			}
			if !bytes.Equal(before, contents(t, path)) {
				t.Error("the file was changed")
			}
			l, err := (file{feedKind, path}).takeLock()
			if err != nil {
				t.Fatalf("the lock is not free: %v", err)
			}
			if err := l.release(); err != nil {
				t.Error(err)
			}
		})
	}
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// changeFile runs SQL in a file that nobody has open.
func changeFile(t *testing.T, path, sql string) {
	t.Helper()
	c, err := connect(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.db.Exec(sql); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
}

func TestAReadOfADamagedPackSaysWhatToDo(t *testing.T) {
	for name, sql := range map[string]string{
		"cut off":        "UPDATE packs SET data = substr(data, 1, length(data) / 2)",
		"changed":        "UPDATE packs SET data = zeroblob(length(data))",
		"of fewer":       "UPDATE packs SET records = records - 1",
		"of more":        "UPDATE packs SET records = records + 1",
		"not compressed": "UPDATE packs SET deflated = 1 - deflated",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "office.db.feed")
			closedFeed(t, path)
			// Not the last ones of sessions, which are looked at when it is opened.
			changeFile(t, path, sql+" WHERE n < (SELECT max(later.n) FROM packs AS later WHERE later.n >> 32 = packs.n >> 32)")
			// Almost everything is small, and would be packed anew with what comes.
			f := openFeed(t, path, FeedOptions{limits: feedLimits{sessions: 2, packBytes: 1 << 20, logBytes: 3000, stepBytes: 500}})
			for n := range 60 {
				entries := lines(0, line(fmt.Sprint(n), 100))
				if _, err := f.Append(t.Context(), store.Batch{Ref: sessionNamed("session-0"), Entries: entries}); err != nil {
					t.Fatalf("the session does not go on: %v", err)
				}
			}
			_, err := f.Read(t.Context(), "session-0", 0, 0, 0)
			if err == nil || !strings.Contains(err.Error(), "the file is damaged") || !strings.Contains(err.Error(), "from a backup") {
				t.Errorf("got the error %v", err)
			}
			if _, err := f.Append(t.Context(), store.Batch{Ref: sessionNamed("another"), Entries: lines(0, line("a", 0))}); err != nil {
				t.Errorf("the feed does not go on: %v", err)
			}
			if got := texts(t, f, "another"); got != "a" {
				t.Errorf("another session has %q", got)
			}
		})
	}
}

func TestATrimGivesSpaceBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db.feed")
	f := openFeed(t, path, FeedOptions{})
	kept := 0
	for n := range 12 {
		entries := lines(1, line("a", 2<<20), line("b", 2<<20))
		if n%4 != 0 {
			entries = append(entries, lines(3, lastLine())...)
		} else {
			kept++
		}
		b := store.Batch{Ref: sessionNamed(fmt.Sprint("session-", n)), Spool: "spool", Entries: entries}
		if _, err := f.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	did, err := f.Trim(t.Context(), store.Limits{Namespace: "office", Team: "core", Bytes: 1})
	if err != nil || did.Sessions != 12-kept {
		t.Fatalf("the trim did %+v (%v)", did, err)
	}
	for n := range 12 {
		want := ""
		if n%4 == 0 {
			want = "a b"
		}
		if got := texts(t, f, fmt.Sprint("session-", n)); got != want {
			t.Errorf("session %d has %q, want %q", n, got, want)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// What is kept, and the pages that stay free for what comes.
	if most := int64(kept)*4<<20 + keepPages*4096 + 1<<20; info.Size() > most {
		t.Errorf("the file has %d bytes, want at most %d", info.Size(), most)
	}
	openFeed(t, path, FeedOptions{})
}
