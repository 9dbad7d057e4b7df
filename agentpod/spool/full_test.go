package spool

// These tests are about disks without room. They run in a process of their own, with a small file system that only it sees.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// envSmall names the folder on which a process of this test has a small file system.
const envSmall = "BULLPEN_TEST_SMALL"

// smallSize is the size of the small file system.
const smallSize = 2 << 20

// onSmall runs the calling test once more in a process that has a file system of smallSize, and returns the folder in that process. In the
// first process it returns false, and the test is over.
func onSmall(t *testing.T) (string, bool) {
	t.Helper()
	if dir := os.Getenv(envSmall); dir != "" {
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatalf("mounts cannot be kept from others: %v", err)
		}
		if err := unix.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallSize)); err != nil {
			t.Fatalf("a small file system cannot be mounted: %v", err)
		}
		return dir, true
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), envSmall+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in the process with a small file system: %v\n%s", err, out)
	}
	return "", false
}

// ballast fills the file system that a folder is on, but for some bytes.
func ballast(t *testing.T, dir string, leave int) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(chunk)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(max(0, info.Size()-int64(leave))); err != nil {
		t.Fatal(err)
	}
}

func drop(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
}

// notes are what the records about lost ones add up to.
func notes(t *testing.T, list []feed.Entry) (count int64, notes int) {
	t.Helper()
	for _, e := range list {
		if e.Type != TypeDropped {
			continue
		}
		var d Dropped
		if err := json.Unmarshal(e.Payload, &d); err != nil {
			t.Fatal(err)
		}
		if e.Source != SourceSpool || e.Format != FormatSpool || d.Count <= 0 || d.Since.IsZero() || d.Until.Before(d.Since) {
			t.Errorf("a note says %+v in %+v", d, e)
		}
		count += d.Count
		notes++
	}
	return count, notes
}

func TestOnAFullDiskRecordsAreCountedAndTheEndGetsThrough(t *testing.T) {
	dir, ok := onSmall(t)
	if !ok {
		return
	}
	s := open(t, filepath.Join(dir, "spool"))
	defer s.Close()
	q := s.Begin("i", "r1-i")
	q.Append(text(1))
	ballast(t, dir, 0)
	const lost = 500
	for range lost {
		q.Append(sized(5000))
	}
	q.Append(lifecycle(feed.TypeEnvironmentReady, `{"repositories":[]}`))
	q.End(theEnd)
	got := all(t, q)
	kinds := types(got)
	count, n := notes(t, got)
	stored := int64(0)
	for _, e := range got {
		if len(e.Payload) == 5000 {
			stored++
		}
	}
	if stored+count != lost {
		t.Errorf("%d are stored and %d are told to be lost, of %d; %v", stored, count, lost, kinds)
	}
	if last := kinds[len(kinds)-1]; last != feed.TypeTurnEnded {
		t.Errorf("the last record is %s", last)
	}
	if n == 0 || kinds[len(kinds)-2] != feed.TypeEnvironmentReady {
		t.Errorf("got %v", kinds)
	}
	next := s.Begin("j", "r1-j") // another round, on the disk that is still full
	next.Append(lifecycle(feed.TypeTurnStarted, `{}`))
	next.Append(sized(100_000))
	next.End(theEnd)
	if got := strings.Join(types(all(t, next)), " "); got != "turn_started records_dropped turn_ended" {
		t.Errorf("the next round has %s", got)
	}
}

func TestWhenThereIsRoomAgainRecordsGoOnAfterOneNote(t *testing.T) {
	dir, ok := onSmall(t)
	if !ok {
		return
	}
	s := open(t, filepath.Join(dir, "spool"))
	defer s.Close()
	q := s.Begin("i", "r1-i")
	ballast(t, dir, 64<<10)
	added := 0
	for range 100 {
		q.Append(sized(4000))
		added++
	}
	drop(t, dir)
	eventually(t, "the note is written without a further record", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.pending) == 0
	})
	q.Append(text(1))
	got := all(t, q)
	count, n := notes(t, got)
	if n != 1 || int(count)+len(got)-2 != added {
		t.Errorf("%d notes about %d, beside %d records of %d", n, count, len(got)-2, added)
	}
	if kinds := types(got); kinds[len(kinds)-2] != TypeDropped || kinds[len(kinds)-1] != "stdout" {
		t.Errorf("it ends with %v", kinds[len(kinds)-2:])
	}
	eventually(t, "the reserve is there again", s.reserve)
}

func TestWithoutAnyRoomTheEndWaitsInMemory(t *testing.T) {
	dir, ok := onSmall(t)
	if !ok {
		return
	}
	s := open(t, filepath.Join(dir, "spool"))
	defer s.Close()
	q := s.Begin("i", "r1-i")
	if !s.release() {
		t.Fatal("there is no reserve")
	}
	ballast(t, dir, 0)
	for range 30 {
		q.Append(sized(3000))
	}
	q.End(theEnd)
	if q.acknowledge(q.next - 1) {
		t.Error("gone, though its end is not written")
	}
	drop(t, dir)
	eventually(t, "the end is written", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.pending) == 0
	})
	kinds := types(all(t, q))
	if last := kinds[len(kinds)-1]; last != feed.TypeTurnEnded {
		t.Errorf("the last record is %s", last)
	}
}

func TestARoundCanBeginOnAFullDisk(t *testing.T) {
	dir, ok := onSmall(t)
	if !ok {
		return
	}
	s := open(t, filepath.Join(dir, "spool"))
	s.release()
	ballast(t, dir, 0)
	q := s.Begin("i", "r1-i")
	q.Start(lifecycle(feed.TypeTurnStarted, "{}"))
	q.Append(text(1))
	drop(t, dir)
	eventually(t, "what waited is written", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.pending) == 0
	})
	q.End(theEnd)
	if got := types(all(t, q)); len(got) != 3 || got[0] != feed.TypeTurnStarted || got[1] != TypeDropped || got[2] != feed.TypeTurnEnded {
		t.Errorf("got %v", got)
	}
	s.Close()
	s = open(t, filepath.Join(dir, "spool"))
	defer s.Close()
	if len(s.Left()) != 0 || len(s.all()) != 1 {
		t.Errorf("the next life finds %d queues, left are %v", len(s.all()), s.Left())
	}
}

func TestTheSpoolTakesNoMoreThanItsRoom(t *testing.T) {
	dir := t.TempDir()
	const room = 300_000
	s := open(t, dir, func(o *Options) { o.Room = room })
	defer s.Close()
	q := s.Begin("i", "r1-i")
	for range 100 {
		q.Append(sized(10_000))
	}
	if size := sizeOf(t, dir); size > room+reserveSize+10_000 {
		t.Errorf("it takes %d bytes", size)
	}
	q.Append(lifecycle(feed.TypeEnvironmentReady, `{}`))
	kept := all(t, q)
	if count, n := notes(t, kept); int(count)+len(kept)-1-n != 100 {
		t.Errorf("%d lost, %d kept, with %d notes", count, len(kept), n)
	}
	q.End(theEnd)
	q.acknowledge(q.next - 1)
	next := s.Begin("j", "r1-j")
	next.Append(sized(200_000))
	if got := types(all(t, next)); len(got) != 1 || got[0] != "stdout" {
		t.Errorf("after the office took what was there: %v", got)
	}
}

func sizeOf(t *testing.T, dir string) int64 {
	t.Helper()
	var size int64
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
