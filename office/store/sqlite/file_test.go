package sqlite

// This file tests what a store is on disk: who may read it, who has it, and which files are refused.

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ncruces/go-sqlite3"
)

func TestFilesAreTheOwnersOnly(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "here")
	open(t, filepath.Join(folder, "office.db"), Options{})
	want := map[string]fs.FileMode{"office.db": 0o600, "office.db-wal": 0o600, "office.db-shm": 0o600, "office.db.lock": 0o600,
		"office.db.past": 0o600, "office.db.past-wal": 0o600, "office.db.past-shm": 0o600}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(want) {
		t.Errorf("the folder has %v", entries)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want[e.Name()] {
			t.Errorf("%s has the mode %v, want %v", e.Name(), info.Mode(), want[e.Name()])
		}
	}
}

func TestSettingsThatDurabilityNeeds(t *testing.T) {
	s := fresh(t, Options{})
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		got := ""
		if err := s.writer.c.query("PRAGMA "+pragma, func(row *sqlite3.Stmt) { got = row.ColumnText(0) }); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	c := <-s.readers
	defer func() { s.readers <- c }()
	if err := c.db.Exec("DELETE FROM items"); err == nil {
		t.Error("a reader's connection can write")
	}
}

func TestASecondOfficeIsToldWhoHasTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db")
	first := open(t, path, Options{})
	_, err := Open(path, Options{})
	if err == nil {
		t.Fatal("a second office opened the store")
	}
	for _, want := range []string{path, fmt.Sprintf("process %d on ", os.Getpid()), "a store of its own"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if err := first.Update(t.Context(), putItem(first, "still")); err != nil {
		t.Errorf("the first office was disturbed: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, path, Options{})
	if !hasItem(t, second, "still") || second.ID() != first.ID() {
		t.Error("the next office has another store")
	}
}

func TestClosingLeavesOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db")
	s := open(t, path, Options{})
	if err := s.Update(t.Context(), putItem(s, "fix")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("the write-ahead log was not taken into the database")
	}
}

// TestRefusedFiles opens what is no store of this release. The file stays as it was, byte by byte, and the lock is free.
func TestRefusedFiles(t *testing.T) {
	text := func(content string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"a short text", text("hello"), "damaged or no SQLite database"},
		{"a long text", text(strings.Repeat("hello ", 5000)), "damaged or no SQLite database"},
		{"a store whose pages were overwritten", overwrite(2), "damaged or no SQLite database"},
		{"a store whose last page was overwritten", overwrite(-1), "damaged or no SQLite database"},
		{"a store that was cut off", cutOff, "damaged or no SQLite database"},
		{"a store of a newer release", edit("PRAGMA user_version = 1000"), "schema version 1000, written by a newer release"},
		{"a newer store that a crash left in its log", crashed("PRAGMA user_version = 1000"), "schema version 1000"},
		{"a database of another program", edit("PRAGMA application_id = 7"), "another program (application id 0x7)"},
		{"a database without a mark", edit("PRAGMA application_id = 0; PRAGMA user_version = 0"), "another program"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "office.db")
			test.make(t, path)
			before := contents(t, path)
			_, err := Open(path, Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got the error %v, want one with %q", err, test.want)
			}
			if !strings.Contains(strings.ToLower(err.Error()), "nothing was changed") {
				t.Errorf("the error does not say that nothing was changed: %v", err)
			}
			if !bytes.Equal(before, contents(t, path)) {
				t.Error("the file was changed")
			}
			l, err := (file{storeKind, path}).takeLock()
			if err != nil {
				t.Fatalf("the lock is not free: %v", err)
			}
			if err := l.release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAFileIsReadOverUnlessNobodyTouchedIt damages the last page of a store, and lets the file look as if it had not been written to.
func TestAFileIsReadOverUnlessNobodyTouchedIt(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(t *testing.T, path string)
		read   bool
	}{
		{"closed well", closedStore, false},
		{"left by a crash", func(t *testing.T, path string) {
			closedStore(t, path)
			l, err := (file{storeKind, path}).takeLock() // and never signed off
			if err != nil {
				t.Fatal(err)
			}
			if err := l.release(); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "office.db")
			test.before(t, path)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			content := contents(t, path)
			copy(content[len(content)-4096:], bytes.Repeat([]byte("junk"), 1024))
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			s, err := Open(path, Options{})
			if read := err != nil && strings.Contains(err.Error(), "damaged"); read != test.read {
				t.Errorf("the file was read over: %t (%v)", read, err)
			}
			if err == nil {
				_ = s.Close() // of a damaged store
			}
		})
	}
}

// contents reads the database and its log.
func contents(t *testing.T, path string) []byte {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return append(all, log...)
}

// closedStore makes a store with something in it, and closes it.
func closedStore(t *testing.T, path string) {
	t.Helper()
	s := open(t, path, Options{})
	for i := range 50 {
		if err := s.Update(t.Context(), putItem(s, fmt.Sprint("item-", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// overwrite damages a store from that page on, counted from the end if negative, and leaves its header alone.
func overwrite(page int64) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		closedStore(t, path)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		from := page * 4096
		if page < 0 {
			from += int64(len(content))
		}
		copy(content[from:], bytes.Repeat([]byte("junk"), len(content)))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func cutOff(t *testing.T, path string) {
	closedStore(t, path)
	if err := os.Truncate(path, 3*4096); err != nil {
		t.Fatal(err)
	}
}

// edit makes a store and changes it as another release or program would.
func edit(sql string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		closedStore(t, path)
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
}

// crashed makes a store whose change is in the log only, as after kill -9.
func crashed(sql string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		closedStore(t, path)
		c, err := connect(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
			t.Fatal(err)
		}
		if err := c.db.Exec(sql); err != nil {
			t.Fatal(err)
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
			t.Fatalf("the change is not in the log: %v", err)
		}
	}
}

func TestAnEmptyFileBecomesAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := open(t, path, Options{}); s.ID() == "" {
		t.Error("the store has no id")
	}
}

func TestMigrations(t *testing.T) {
	one, two := "CREATE TABLE store (only INTEGER, id TEXT, revision INTEGER)", "CREATE TABLE later (n INTEGER)"
	for _, test := range []struct {
		name    string
		steps   []string
		from    int64
		want    int64
		wantErr string
	}{
		{name: "a new file takes all steps", steps: []string{one, two}, want: 2},
		{name: "an older file takes the steps after its own", steps: []string{"this would fail", two}, from: 1, want: 2},
		{name: "a file of this version takes none", steps: []string{"this would fail"}, from: 1, want: 1},
		{name: "a step that fails takes those before it back", steps: []string{one, two, "CREATE nonsense"}, wantErr: "step 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "office.db")
			if err := (file{storeKind, path}).make(); err != nil {
				t.Fatal(err)
			}
			c, err := connect(path, fmt.Sprintf("user_version = %d", test.from))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.close(); err != nil {
					t.Error(err)
				}
			}()
			err = migrate(c, storeKind.application, test.steps, test.from, newStore)
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("got the error %v, want %q", err, test.wantErr)
			}
			version, err := c.integer("PRAGMA user_version")
			if err != nil {
				t.Fatal(err)
			}
			tables, err := c.integer("SELECT count(*) FROM sqlite_schema")
			if err != nil {
				t.Fatal(err)
			}
			if version != test.want || tables != test.want-test.from {
				t.Errorf("the file has version %d and %d tables, want %d and %d", version, tables, test.want, test.want-test.from)
			}
		})
	}
}

func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("SELECT 1")}
	_, err := migrations(fstest.MapFS{"migrations/0001_a.sql": file, "migrations/0003_c.sql": file}, "migrations")
	if err == nil || !strings.Contains(err.Error(), "0002") {
		t.Errorf("a gap was not noticed: %v", err)
	}
}
