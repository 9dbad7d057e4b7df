package claude

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// recorder is a sink that remembers.
type recorder struct {
	mu       sync.Mutex
	started  int
	records  []runtime.Record
	deltas   []string
	progress []string
	journal  []string
	sessions []string
	windows  [][]protocol.UsageWindow
	// early are the records that came before the start.
	early int
	// onRecord is called with each record.
	onRecord func(runtime.Record)
}

func (r *recorder) with(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *recorder) Progress(text string) { r.with(func() { r.progress = append(r.progress, text) }) }
func (r *recorder) Journal(text string)  { r.with(func() { r.journal = append(r.journal, text) }) }
func (r *recorder) Started()             { r.with(func() { r.started++ }) }

func (r *recorder) Session(id, model string) {
	r.with(func() { r.sessions = append(r.sessions, id+" "+model) })
}

func (r *recorder) Usage(w []protocol.UsageWindow) {
	r.with(func() { r.windows = append(r.windows, w) })
}

func (r *recorder) Record(record runtime.Record) {
	r.with(func() {
		if r.started == 0 {
			r.early++
		}
		r.records = append(r.records, record)
	})
	if r.onRecord != nil {
		r.onRecord(record)
	}
}

// Delta keeps a delta as a line to compare.
func (r *recorder) Delta(d feed.Delta) {
	line := d.Kind
	if d.Text != nil {
		line += fmt.Sprintf(" %q", *d.Text)
	}
	if d.OutputTokens != nil {
		line += fmt.Sprintf(" %d tokens", *d.OutputTokens)
	}
	r.with(func() { r.deltas = append(r.deltas, line) })
}

// logTo has a log in the test's output.
func logTo(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// newSession is a session of a round whose messages are not given yet.
func newSession(t *testing.T) (*session, *recorder) {
	t.Helper()
	sink := &recorder{}
	dir := t.TempDir()
	return &session{
		sink: sink, log: logTo(t), ledger: ledger{dir: filepath.Join(dir, "ledger")}, resultFile: filepath.Join(dir, "result.json"),
		limit: func(w protocol.UsageWindow) { sink.Usage([]protocol.UsageWindow{w}) },
		sent:  map[string]*int{}, agents: map[string]bool{}, meter: newMeter(false), live: live{show: sink.Delta},
	}, sink
}

// hears gives lines to a session.
func (s *session) hears(lines ...string) {
	for _, line := range lines {
		s.line([]byte(line), len(line))
	}
}

// Ids of native sessions.
const (
	one = "0b54c3f8-3c6e-4b6f-9a5c-0f5f0f4e7a01"
	two = "0b54c3f8-3c6e-4b6f-9a5c-0f5f0f4e7a02"
)

// fake writes a program in sh that plays Claude Code. It begins with functions: begin reads the first message, says the init line and
// repeats the message; finish says a result, and ends with its input.
func fake(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claude")
	functions := `#!/bin/sh
begin() {
	read -r first
	id=$(printf %s "$first" | sed 's/.*"uuid":"\([^"]*\)".*/\1/')
	echo '{"type":"system","subtype":"init","session_id":"` + one + `","model":"m-1"}'
	echo "{\"type\":\"user\",\"uuid\":\"$id\",\"session_id\":\"` + one + `\",\"isReplay\":true,\"message\":{\"role\":\"user\",\"content\":\"x\"}}"
}
finish() {
	echo '{"type":"result","subtype":"success","is_error":false,"result":"All is well.","session_id":"` + one + `","modelUsage":{"m-1":{"inputTokens":3,"outputTokens":2,"costUSD":0.5}}}'
	cat > /dev/null
}
`
	if err := os.WriteFile(path, []byte(functions+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// fakeRuntime is a runtime with such a program.
func fakeRuntime(t *testing.T, script string) *Claude {
	t.Helper()
	return &Claude{Program: fake(t, script), Home: t.TempDir(), Log: logTo(t)}
}

func newRound(t *testing.T) runtime.Round {
	t.Helper()
	dir := t.TempDir()
	return runtime.Round{
		Offer: protocol.Offer{
			WorkItem: protocol.WorkItem{ID: "i", Kind: "task", Title: "T"},
			Context:  protocol.Context{Journal: []protocol.JournalEntry{{Author: "grace", Text: "Do it."}}},
		},
		Payload: []byte(`{}`), Number: 1, Dir: dir, Workdir: dir, Scratch: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Person: protocol.TeamPerson{Handle: "ada"}, Grace: time.Minute,
	}
}

// compact is the JSON of a value.
func compact(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}
