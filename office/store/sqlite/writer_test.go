package sqlite

// This file tests the writer where it is hard: full disks, a commit that fails under many, panics, and kill -9.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// commits hears of group commits.
type commits chan error

// options make a store that tries again at once, and tells of every commit.
func (c commits) options() Options {
	return Options{retryEvery: time.Millisecond, OnCommit: func(_ int, _ time.Duration, err error) {
		select {
		case c <- err:
		default:
		}
	}}
}

// awaitHealth waits until the store has written by itself.
func (c commits) awaitHealth() {
	for err := range c {
		if err == nil {
			return
		}
	}
}

// whileHeld runs during with the writer standing still inside an Update, so that what during starts waits for one commit.
func whileHeld(t *testing.T, s *Store, during func(tx *tx)) {
	t.Helper()
	if err := s.Update(t.Context(), func(t store.Tx) error { during(t.(*tx)); return nil }); err != nil {
		t.Fatal(err)
	}
}

func big(id string) *model.Item {
	return &model.Item{ID: id, Namespace: "office", Name: id, Summary: strings.Repeat("a long text ", 20_000)}
}

func TestAFullDatabaseRecoversByItself(t *testing.T) {
	heard := make(commits, 100)
	s := fresh(t, heard.options())
	if err := s.Update(t.Context(), putItem(s, "before")); err != nil {
		t.Fatal(err)
	}
	limit := func(sql string) {
		t.Helper()
		whileHeld(t, s, func(tx *tx) {
			if err := tx.c.query(sql, func(*sqlite3.Stmt) {}); err != nil {
				t.Error(err)
			}
		})
	}
	limit("PRAGMA max_page_count = 1") // SQLite takes the present size instead
	err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutItem(big("too-big")) })
	if !errors.Is(err, sqlite3.FULL) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("got the error %v, want one that says that the disk is full", err)
	}
	if err := s.Healthy(); !errors.Is(err, sqlite3.FULL) {
		t.Errorf("the store says of itself %v", err)
	}
	swallowed := s.Update(t.Context(), func(tx store.Tx) error {
		_ = tx.PutItem(big("swallowed"))
		_ = putItem(s, "after-it")(tx) // it would have room
		return nil
	})
	if !errors.Is(swallowed, sqlite3.FULL) {
		t.Errorf("an update that ignored the error gave %v", swallowed)
	}
	if hasItem(t, s, "too-big") || hasItem(t, s, "swallowed") || hasItem(t, s, "after-it") {
		t.Error("an update that failed left something")
	}

	limit("PRAGMA max_page_count = 1000000")
	heard.awaitHealth()
	if err := s.Healthy(); err != nil {
		t.Errorf("the store says of itself %v", err)
	}
	if err := s.Update(t.Context(), func(tx store.Tx) error { return tx.PutItem(big("too-big")) }); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestACommitThatFailsAcknowledgesNobody lets the operating system refuse to make the write-ahead log longer, while many
// Updates are in one commit. Each by itself went well.
func TestACommitThatFailsAcknowledgesNobody(t *testing.T) {
	heard := make(commits, 100)
	path := filepath.Join(t.TempDir(), "office.db")
	s := open(t, path, heard.options())
	if err := s.Update(t.Context(), putItem(s, "before")); err != nil {
		t.Fatal(err)
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	restore := limitFileSize(t, uint64(log.Size())+4096)
	defer restore()

	const writers = 20
	outcomes := make([]error, writers)
	var all sync.WaitGroup
	started := make(chan struct{}, writers)
	first := s.Update(t.Context(), func(tx store.Tx) error {
		for w := range writers {
			all.Go(func() {
				started <- struct{}{}
				outcomes[w] = s.Update(context.Background(), func(tx store.Tx) error { return tx.PutItem(big(fmt.Sprint("item-", w))) })
			})
		}
		for range writers {
			<-started
		}
		return putItem(s, "first")(tx)
	})
	all.Wait()
	for w, err := range append(outcomes, first) {
		if !errors.Is(err, sqlite3.IOERR) && !errors.Is(err, sqlite3.FULL) {
			t.Errorf("update %d of the commit that failed got %v", w, err)
		}
	}
	if err := s.Healthy(); err == nil {
		t.Error("the store says that it is healthy")
	}
	for w := range writers {
		if hasItem(t, s, fmt.Sprint("item-", w)) {
			t.Errorf("item %d is there although its commit failed", w)
		}
	}
	if !hasItem(t, s, "before") || hasItem(t, s, "first") {
		t.Error("the store does not show what was acknowledged, and only that")
	}

	restore()
	heard.awaitHealth()
	if err := s.Update(t.Context(), putItem(s, "after")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, Options{})
	if !hasItem(t, again, "before") || !hasItem(t, again, "after") || hasItem(t, again, "first") || hasItem(t, again, "item-0") {
		t.Error("after opening again the store does not show what was acknowledged, and only that")
	}
}

// limitFileSize bounds how long this process may make a file, until restore is called.
func limitFileSize(t *testing.T, size uint64) (restore func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
			t.Error(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	}
}

func TestWhoWaitsTogetherCommitsTogether(t *testing.T) {
	var lock sync.Mutex
	var sizes []int
	s := fresh(t, Options{gatherFor: time.Hour, OnCommit: func(jobs int, took time.Duration, err error) {
		lock.Lock()
		defer lock.Unlock()
		sizes = append(sizes, jobs)
		if err != nil || took <= 0 {
			t.Errorf("a commit took %v and gave %v", took, err)
		}
	}})
	const writers, each = 64, 10
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				if err := s.Update(context.Background(), putItem(s, fmt.Sprintf("item-%d-%d", w, n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil { // the writer has told of all its commits
		t.Fatal(err)
	}
	sum := 0
	for _, jobs := range sizes {
		sum += jobs
	}
	if sum != writers*each || len(sizes) > sum/4 {
		t.Errorf("%d updates took %d commits of %v", writers*each, len(sizes), sizes)
	}
}

func TestACallerThatEndsInsideItsUpdateLeavesTheWriterAlone(t *testing.T) {
	s := fresh(t, Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Update(context.Background(), func(tx store.Tx) error {
			if err := putItem(s, "never")(tx); err != nil {
				t.Error(err)
			}
			runtime.Goexit() // as t.FailNow does
			return nil
		})
	}()
	<-ended
	if err := s.Update(t.Context(), putItem(s, "next")); err != nil {
		t.Fatal(err)
	}
	if hasItem(t, s, "never") {
		t.Error("the update of a goroutine that ended is there")
	}
}

func TestAPanicInAViewGivesItsConnectionBack(t *testing.T) {
	s := fresh(t, Options{Readers: 1})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		_ = s.View(t.Context(), func(store.Reader) error { panic("on purpose") })
	}()
	if hasItem(t, s, "none") {
		t.Error("there is an item in an empty store")
	}
}

func TestAViewEndsWithItsContext(t *testing.T) {
	s := fresh(t, Options{Readers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	err := s.View(ctx, func(r store.Reader) error {
		cancel()
		_, err := r.LiveItems()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the view gave %v, want context.Canceled", err)
	}
	if hasItem(t, s, "none") { // the only connection works for the next one
		t.Error("there is an item in an empty store")
	}
}

// crashPath names, for the process that is to be killed, the store to write to.
const crashPath = "BULLPEN_TEST_CRASH_STORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(crashPath); path != "" {
		writeUntilKilled(path)
	}
	if path := os.Getenv(crashFeed); path != "" {
		appendUntilKilled(path)
	}
	os.Exit(m.Run())
}

// writeUntilKilled stores items from several goroutines and prints the id of each once it was acknowledged.
func writeUntilKilled(path string) {
	s, err := Open(path, Options{})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	var lock sync.Mutex
	for w := range 8 {
		go func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d-%d", os.Getpid(), w, n)
				err := s.Update(context.Background(), putItem(s, id))
				lock.Lock()
				if err != nil {
					fmt.Println("error:", err)
				} else {
					fmt.Println(id)
				}
				lock.Unlock()
			}
		}()
	}
	select {}
}

// TestKill9LosesNothingAcknowledged kills a writing process again and again, each time after a random number of
// acknowledgements, and looks for everything that was acknowledged to it or to its predecessors.
func TestKill9LosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "office.db")
	acknowledged := map[string]bool{}
	id := ""
	for range 6 {
		for _, item := range killedProcess(t, crashPath, path, 50+rand.IntN(2000)) {
			acknowledged[item] = true
		}
		s := open(t, path, Options{})
		if id == "" {
			id = s.ID()
		}
		if s.ID() != id {
			t.Errorf("the store has become another one")
		}
		checkAfterCrash(t, s, acknowledged)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killedProcess runs a writing process, kills it after that many acknowledgements, and gives all that it printed whole. The variable names
// the file to it, and says what to do.
func killedProcess(t *testing.T, variable, path string, after int) []string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(binary)
	child.Env = append(os.Environ(), variable+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }() // it was killed: that is no news
	var items []string
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return items // what stands without a line's end may be cut
		}
		if strings.HasPrefix(line, "error:") {
			t.Error(line)
		}
		items = append(items, strings.TrimSpace(line))
		if len(items) == after {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
}

func checkAfterCrash(t *testing.T, s *Store, acknowledged map[string]bool) {
	t.Helper()
	var items []string
	var revision int64
	err := s.View(t.Context(), func(r store.Reader) (err error) {
		if items, err = r.LiveItems(); err != nil {
			return err
		}
		revision, err = r.Revision()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, i := range items {
		there[i] = true
	}
	for i := range acknowledged {
		if !there[i] {
			t.Errorf("%s was acknowledged and is lost", i)
		}
	}
	if int64(len(items)) != revision {
		t.Errorf("there are %d items, each written once, but the revision is %d", len(items), revision)
	}
	if len(acknowledged) == 0 {
		t.Error("nothing was acknowledged: the test shows nothing")
	}
}
