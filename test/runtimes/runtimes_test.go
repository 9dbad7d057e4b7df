// Package runtimes tests the runtimes with the real programs, Claude Code and Codex, against a stand-in for the models that they ask.
// make test-runtimes installs the programs and says in RUNTIMES where they are.
package runtimes

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

// patience is how long a test waits for what has to come.
const patience = time.Minute

// envRole makes this test binary a program that a runtime starts, such as an MCP server.
const envRole = "BULLPEN_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(envRole) == roleMCP {
		serveMCP(os.Stdin, os.Stdout)
		return
	}
	code := m.Run()
	_ = os.RemoveAll(programs.dir) // what is left of it is the system's to remove
	os.Exit(code)
}

// program gives the path of a runtime's program.
func program(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("RUNTIMES")
	if dir == "" {
		t.Fatal("RUNTIMES is not set: run make test-runtimes")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not installed: run make runtimes (%v)", name, err)
	}
	return path
}

// play starts a model that follows a script. At the test's end the script has to be used up, and no more than it.
func play(t *testing.T, steps ...modelstub.Step) *modelstub.Server {
	t.Helper()
	s := modelstub.New(steps...)
	t.Cleanup(func() {
		s.Close()
		if left := s.Left(); left != 0 && !t.Failed() {
			t.Errorf("the script has %d steps left (less than none: more was asked for than it has)", left)
		}
	})
	return s
}

// bench is a home with one work item in it.
type bench struct {
	home, dir string
	env       []string
}

func newBench(t *testing.T, env ...string) *bench {
	t.Helper()
	b := &bench{home: t.TempDir(), dir: t.TempDir()}
	b.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "TMPDIR=" + t.TempDir()}, env...)
	return b
}

// round is a first round of the bench's item that asks for something.
func (b *bench) round(t *testing.T, asks string) runtime.Round {
	t.Helper()
	return runtime.Round{
		Offer: protocol.Offer{
			WorkItem: protocol.WorkItem{ID: "item-1", Kind: "task", Title: "A thing to do", Trigger: protocol.TriggerHuman},
			Context:  protocol.Context{Journal: []protocol.JournalEntry{{At: "2026-03-01T10:00:00.000Z", Author: "grace", Text: asks}}},
		},
		Payload: []byte(`{"workItem":{"id":"item-1"}}`), Number: 1, Dir: b.dir, Workdir: b.dir, Scratch: t.TempDir(),
		ProcessRecord: filepath.Join(b.home, "process"), Env: b.env, Grace: 10 * time.Second,
		Person: protocol.TeamPerson{Handle: "ada", Name: "Ada"},
		Team:   protocol.TeamConfig{Name: "shop", DisplayName: "The shop"},
	}
}

// next is a round after another one: with its session, and something said about the work where said is not empty.
func (b *bench) next(t *testing.T, session, said string) runtime.Round {
	t.Helper()
	r := b.round(t, "What was asked at first.")
	r.Number, r.SessionID = 2, session
	if said != "" {
		r.Offer.Context.Feedback = []protocol.Feedback{{Actor: "grace", Kind: protocol.FeedbackComment, Body: said}}
	}
	return r
}

// logTo has a runtime's log in the test's output.
func logTo(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// recorder is a sink that remembers.
type recorder struct {
	t *testing.T

	mu       sync.Mutex
	changed  *sync.Cond
	started  bool
	records  []runtime.Record
	deltas   []feed.Delta
	progress []string
	journal  []string
	sessions [][2]string
	windows  [][]protocol.UsageWindow
}

func newRecorder(t *testing.T) *recorder {
	r := &recorder{t: t}
	r.changed = sync.NewCond(&r.mu)
	return r
}

func (r *recorder) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	r.changed.Broadcast()
}

func (r *recorder) Progress(text string) { r.change(func() { r.progress = append(r.progress, text) }) }
func (r *recorder) Journal(text string)  { r.change(func() { r.journal = append(r.journal, text) }) }
func (r *recorder) Started()             { r.change(func() { r.started = true }) }
func (r *recorder) Delta(d feed.Delta)   { r.change(func() { r.deltas = append(r.deltas, d) }) }

func (r *recorder) Session(id, model string) {
	r.change(func() { r.sessions = append(r.sessions, [2]string{id, model}) })
}

func (r *recorder) Usage(windows []protocol.UsageWindow) {
	r.change(func() { r.windows = append(r.windows, slices.Clone(windows)) })
}

func (r *recorder) Record(record runtime.Record) {
	r.change(func() {
		if !r.started {
			r.t.Errorf("a record before the start: %s", record.Payload)
		}
		if payload := bytes.TrimSpace(record.Payload); !json.Valid(payload) || payload[0] != '{' {
			r.t.Errorf("a payload that is no JSON object: %s", record.Payload)
		}
		r.records = append(r.records, record)
	})
}

// session is the last session that was told.
func (r *recorder) session() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sessions) == 0 {
		r.t.Fatal("no session was told")
	}
	return r.sessions[len(r.sessions)-1][0]
}

// await waits until something holds of what was told. It is called with each change, one at a time.
func (r *recorder) await(what string, holds func() bool) {
	r.t.Helper()
	late := time.AfterFunc(patience, func() { r.change(func() {}) })
	defer late.Stop()
	deadline := time.Now().Add(patience)
	r.mu.Lock()
	defer r.mu.Unlock()
	for !holds() {
		if !time.Now().Before(deadline) {
			r.t.Fatalf("%s did not come in time; %d records, %d deltas", what, len(r.records), len(r.deltas))
		}
		r.changed.Wait()
	}
}

// ofType are the payloads of the records of a type.
func (r *recorder) ofType(recordType string) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var payloads [][]byte
	for _, record := range r.records {
		if record.Type == recordType {
			payloads = append(payloads, record.Payload)
		}
	}
	return payloads
}

// echoes are the types and echoes of the records that repeat a message of the offer.
func (r *recorder) echoes() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var echoes []int
	for _, record := range r.records {
		if record.Echo != nil {
			echoes = append(echoes, *record.Echo)
		}
	}
	return echoes
}

// text is what watchers saw of the answers.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text bytes.Buffer
	for _, d := range r.deltas {
		if d.Kind == feed.DeltaText && d.Text != nil {
			text.WriteString(*d.Text)
		}
	}
	return text.String()
}

// thinking are the previews of thinking that watchers saw, in order.
func (r *recorder) thinking() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var previews []string
	for _, d := range r.deltas {
		if d.Kind == feed.DeltaThinking && d.Text != nil {
			previews = append(previews, *d.Text)
		}
	}
	return previews
}
