package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// recorder is a sink that remembers.
type recorder struct {
	mu       sync.Mutex
	progress []string
	others   []string
	// records are what goes into the feed, beside started for the beginning of the turn.
	records []runtime.Record
	started int
}

func (r *recorder) add(list *[]string, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, text)
}

func (r *recorder) Progress(text string)         { r.add(&r.progress, text) }
func (r *recorder) Journal(text string)          { r.add(&r.others, "journal "+text) }
func (r *recorder) Session(id, model string)     { r.add(&r.others, "session "+id+" "+model) }
func (r *recorder) Usage([]protocol.UsageWindow) {}
func (r *recorder) Delta(feed.Delta)             {}

func (r *recorder) Record(record runtime.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, record)
}

func (r *recorder) Started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started++
}

// shell is a runtime whose program is a shell script.
func shell(script string) *Command {
	return &Command{
		Args: []string{"/bin/sh", "-c", script}, Grace: time.Hour, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

func newRound(t *testing.T) runtime.Round {
	t.Helper()
	return runtime.Round{
		Offer:   protocol.Offer{WorkItem: protocol.WorkItem{ID: "i"}},
		Payload: []byte(`{"workItem":{"id":"i","unknown":1.50}}`), Dir: t.TempDir(), Scratch: t.TempDir(),
		Env: os.Environ(),
	}
}

// leaves writes a result file.
func leaves(text string) string {
	return `printf '%s' '` + text + `' > "$BULLPEN_RESULT_FILE"; `
}

func TestHowARoundEnds(t *testing.T) {
	usage := func(in int64) []protocol.SessionUsage {
		return []protocol.SessionUsage{{Session: "s", Models: map[string]protocol.ModelUsage{"m": {InputTokens: in}}}}
	}
	for name, test := range map[string]struct {
		script string
		want   runtime.Result
	}{
		"the last line is the summary": {`echo one; echo two; echo`, runtime.Result{Status: "done", Summary: "two"}},
		"a program that says nothing is done too": {`true`,
			runtime.Result{Status: "done", Summary: "The program ended without saying anything."}},
		"a whole result": {
			leaves(`{"summary":"S","status":"waiting","links":[{"url":"https://example.com/1","title":"T"}],`+
				`"toReview":["a"],"usage":[{"session":"s","models":{"m":{"inputTokens":3}}}]}`) + `echo line`,
			runtime.Result{Status: "waiting", Summary: "S", Links: []protocol.Link{{URL: "https://example.com/1", Title: "T"}},
				ToReview: []string{"a"}, Usage: usage(3)},
		},
		"an empty result":     {leaves(`{}`) + `echo line`, runtime.Result{Status: "done", Summary: "line"}},
		"null is not a value": {leaves(`{"summary":null,"links":null}`) + `echo line`, runtime.Result{Status: "done", Summary: "line"}},
		"usage that is printed, and later figures in the result": {
			`echo '::usage {"session":"s","models":{"m":{"inputTokens":1}}}'; ` + leaves(`{"usage":[{"session":"s","models":{"m":{"inputTokens":2}}}]}`),
			runtime.Result{Status: "done", Summary: "The program ended without saying anything.", Usage: usage(2)},
		},
		"a failure with the last words": {`echo out; echo one >&2; echo two >&2; echo >&2; exit 3`,
			runtime.Result{Failed: "exit status 3: two"}},
		"a failure without words": {`exit 4`, runtime.Result{Failed: "exit status 4"}},
		"a failure in spite of a result": {leaves(`{"status":"done","usage":[{"session":"s","models":{"m":{"inputTokens":2}}}]}`) + `exit 1`,
			runtime.Result{Failed: "exit status 1", Usage: usage(2)}},
		"a signal": {`echo oops >&2; kill -SEGV $$`, runtime.Result{Failed: "killed by signal SIGSEGV: oops"}},
		"a misspelled field": {leaves(`{"sumary":"S"}`), runtime.Result{Failed: `the program ended well, but its result cannot be used: ` +
			`unknown field "sumary"; it may have summary, status, links, toReview, usage, sessionId`}},
		"a status that is none": {leaves(`{"status":"finished"}`), runtime.Result{Failed: `the program ended well, but its result cannot be used: ` +
			`status must be done, waiting, blocked, silent or interrupted, not "finished"`}},
		"a link that is none": {leaves(`{"links":[{"url":"shop#1"}]}`), runtime.Result{Failed: `the program ended well, but its result cannot be used: ` +
			`links[0].url must be an absolute URL such as https://example.com/page`}},
		"a list instead of an object": {leaves(`[]`), runtime.Result{Failed: `the program ended well, but its result cannot be used: ` +
			`it is no JSON object: json: cannot unmarshal array into Go value of type map[string]json.RawMessage`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := shell(test.script).Run(t.Context(), newRound(t), &recorder{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Links) == 0 {
				got.Links = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMarkedLinesAreNoProgress(t *testing.T) {
	sink := &recorder{}
	_, err := shell(`
		echo "::journal  decided this "
		echo "::session s-1"
		echo "::session s-2 big-model"
		echo "::usage nonsense"
		echo "::journal "
		echo "::other is progress"
		`+leaves(`{"sessionId":"s-3"}`)).Run(t.Context(), newRound(t), sink)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"journal decided this", "session s-1 ", "session s-2 big-model", "session s-3 "}, sink.others); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"::other is progress"}, sink.progress); diff != "" {
		t.Error(diff)
	}
}

func TestTheOfferComesAsItIs(t *testing.T) {
	round := newRound(t)
	if _, err := shell(`cat > offer`).Run(t.Context(), round, &recorder{}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(round.Dir, "offer"))
	if err != nil || !bytes.Equal(got, round.Payload) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestAFloodOfLinesIsThinnedAndItsLastLineKept(t *testing.T) {
	sink := &recorder{}
	got, err := shell(`i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "line $i"; done`).Run(t.Context(), newRound(t), sink)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(sink.progress); n == 0 || n > 300 || sink.progress[n-1] != "line 3000" || got.Summary != "line 3000" {
		t.Errorf("%d lines of progress, the summary is %q", n, got.Summary)
	}
}

func TestLongAndBinaryLinesAreCut(t *testing.T) {
	sink := &recorder{}
	_, err := shell(`head -c 3000000 /dev/zero | tr '\0' 'x'; printf '\377\n'`).Run(t.Context(), newRound(t), sink)
	if err != nil {
		t.Fatal(err)
	}
	if len(sink.progress) != 1 || sink.progress[0] != strings.Repeat("x", maxProgress)+"…" {
		t.Errorf("%d lines of progress", len(sink.progress))
	}
	if got := clip("a\xffb"); got != "a�b" {
		t.Errorf("got %q", got)
	}
}

func TestStoppedRoundsAreInterruptedUnlessTheyFinish(t *testing.T) {
	for name, test := range map[string]struct {
		trap string
		want runtime.Result
	}{
		"killed": {``, runtime.Result{Status: "interrupted", Summary: "half way"}},
		"an orderly end is no finish": {`trap 'echo cleaned up; exit 0' TERM;`,
			runtime.Result{Status: "interrupted", Summary: "cleaned up"}},
		"a finish": {`trap 'echo "{\"status\":\"done\",\"summary\":\"S\"}" > "$BULLPEN_RESULT_FILE"; exit 0' TERM;`,
			runtime.Result{Status: "done", Summary: "S"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			sink := &stopper{stop: stop}
			got, err := shell(test.trap+`echo half way; while :; do sleep 0.01; done`).Run(ctx, newRound(t), sink)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Links) == 0 {
				got.Links = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// stopper stops the round at its first progress.
type stopper struct {
	recorder
	stop func()
}

func (s *stopper) Progress(string) { s.stop() }

func TestConcludeKeepsALaterSignalApart(t *testing.T) {
	got, _ := conclude(process.Exit{Code: -1, Signal: 9}, false, said{}, filepath.Join(t.TempDir(), "none"))
	if got.Failed != "killed by signal SIGKILL" {
		t.Errorf("got %+v", got)
	}
}

func TestDoctor(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]protocol.CheckStatus{
		"sh": "ok", "/bin/sh": "ok", "./made-by-a-hook": "ok", "no-such-program": "fail", "/no/such/program": "fail", dir: "fail",
	} {
		checks := (&Command{Args: []string{args}}).Doctor(t.Context())
		if len(checks) != 1 || checks[0].Status != want || (want == "fail") != (checks[0].Fix != "") {
			t.Errorf("%s: %+v", args, checks)
		}
	}
}

func TestARoundThatCannotBeSetUpIsAnError(t *testing.T) {
	round := newRound(t)
	round.Scratch = filepath.Join(round.Scratch, "missing")
	if _, err := shell("true").Run(t.Context(), round, &recorder{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	c := shell("true")
	c.Args = []string{"/no/such/program"}
	if _, err := c.Run(t.Context(), newRound(t), &recorder{}); err == nil || !strings.Contains(fmt.Sprint(err), "cannot be started") {
		t.Errorf("got %v", err)
	}
}

func TestTheProgramInTheDocumentationWorks(t *testing.T) {
	page, err := os.ReadFile("../../../docs/agent.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```sh\n")
	script, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the page has no program")
	}
	origin := filepath.Join(t.TempDir(), "origin.git")
	round := newRound(t)
	round.Env = append(os.Environ(), "REPO_URL="+origin, "BULLPEN_ITEM_ID=i", "BULLPEN_PERSON=ada", "BULLPEN_ROUND=1",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	for n, setup := range []string{`git init -q --bare "$REPO_URL"`, script, script} {
		round.Scratch = t.TempDir()
		got, err := shell(setup).Run(t.Context(), round, &recorder{})
		if err != nil || got.Failed != "" {
			t.Fatalf("step %d: %+v, %v", n, got, err)
		}
		if n == 0 {
			continue
		}
		want := runtime.Result{
			Status: "done", Summary: "Wrote notes on branch bullpen/i.", ToReview: []string{"branch bullpen/i"}, Links: []protocol.Link{},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	round.Scratch = t.TempDir()
	got, err := shell(`git -C "$REPO_URL" log --format=%an:%s bullpen/i`).Run(t.Context(), round, &recorder{})
	if err != nil || got.Summary != "ada:Notes of round 1" {
		t.Errorf("got %+v, %v", got, err)
	}
}
