package mainline

// This file reads the notes that the worker keeps of what really happened, and steers it.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// notes are those of one item.
type notes struct {
	t   *testing.T
	dir string
}

// note is one line: when, what, and the rest of it.
type note struct {
	at   time.Time
	what string
	rest string
}

func (w *world) notes(item *api.WorkItem) notes {
	w.Helper()
	if item.UID == "" {
		w.Fatalf("item %s was not created", item.Name)
	}
	return notes{w.T, cluster.path("notes", string(item.UID))}
}

// all gives the notes of a kind, oldest first. There are none before the program started.
func (n notes) all(what string) []note {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.t.Fatal(err)
	}
	var found []note
	for line := range strings.Lines(string(text)) {
		stamp, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		nanoseconds, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil {
			n.t.Fatalf("a note cannot be read: %q", line)
		}
		name, rest, _ := strings.Cut(said, " ")
		if name == what {
			found = append(found, note{time.Unix(0, nanoseconds), name, rest})
		}
	}
	return found
}

// wait waits for the n-th note of a kind, from 1.
func (n notes) wait(what string, number int) note {
	n.t.Helper()
	var found []note
	eventually(n.t, soon, func() error {
		if found = n.all(what); len(found) < number {
			return fmt.Errorf("the program noted %q %d times, not %d", what, len(found), number)
		}
		return nil
	})
	return found[number-1]
}

// starts says how the program's starts were told apart, oldest first, and that none ran beside another.
func (n notes) starts() []string {
	n.t.Helper()
	if overlaps := n.all("overlap"); len(overlaps) > 0 {
		n.t.Errorf("%d times a program of the item was started while another one ran", len(overlaps))
	}
	var starts []string
	for _, start := range n.all("start") {
		starts = append(starts, start.rest)
	}
	return starts
}

// put makes a file by which the program is told something.
func (n notes) put(name, text string) {
	n.t.Helper()
	fresh := filepath.Join(n.dir, "."+name)
	err := os.MkdirAll(n.dir, 0o755)
	if err == nil {
		err = os.WriteFile(fresh, []byte(text), 0o600)
	}
	if err == nil {
		err = os.Rename(fresh, filepath.Join(n.dir, name))
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// letGo lets a program end that holds.
func (n notes) letGo() { n.put("go", "") }

// over waits until neither the program nor anything it started is left, and gives when that was.
func (n notes) over(limit time.Duration) time.Time {
	n.t.Helper()
	file, err := os.Open(filepath.Join(n.dir, "lock"))
	if err != nil {
		n.t.Fatalf("the program never started: %v", err)
	}
	defer file.Close() //nolint:errcheck // only read from
	eventually(n.t, limit, func() error {
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return fmt.Errorf("the program or something that it started still runs: %w", err)
		}
		return nil
	})
	return time.Now()
}

// runs says whether the program, or something that it started, runs.
func (n notes) runs() bool {
	n.t.Helper()
	file, err := os.Open(filepath.Join(n.dir, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		n.t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read from
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}
