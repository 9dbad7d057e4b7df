package command

// These tests are about the records of what a program says.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// recorded runs a script and returns what it left in the feed.
func recorded(t *testing.T, script string) []runtime.Record {
	t.Helper()
	sink := &recorder{}
	if _, err := shell(script).Run(t.Context(), newRound(t), sink); err != nil {
		t.Fatal(err)
	}
	if sink.started != 1 {
		t.Errorf("the turn was started %d times", sink.started)
	}
	for _, r := range sink.records {
		if r.Source != feed.SourceCommand || r.Format != feed.FormatCommand || !json.Valid(r.Payload) {
			t.Errorf("got %+v", r)
		}
	}
	return sink.records
}

// linesOf returns the lines of one stream, and in how many records they are.
func linesOf(t *testing.T, records []runtime.Record, kind string) (lines []string, count int) {
	t.Helper()
	for _, r := range records {
		if r.Type != kind {
			continue
		}
		var payload linesRecord
		if err := json.Unmarshal(r.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		lines, count = append(lines, payload.Lines...), count+1
	}
	return lines, count
}

func TestLinesAreRecordedAsTheyCame(t *testing.T) {
	records := recorded(t, `
		echo "  two blanks before"; echo; echo "::journal a line with a mark"; printf 'a\rb\r\n'; printf '\377<&>"\n'; printf 'without an end'
		echo "trouble" >&2; echo >&2; echo "more" >&2`)
	out, _ := linesOf(t, records, typeStdout)
	want := []string{"  two blanks before", "", "::journal a line with a mark", "a\rb", "�<&>\"", "without an end"}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
	err, _ := linesOf(t, records, typeStderr)
	if diff := cmp.Diff([]string{"trouble", "", "more"}, err); diff != "" {
		t.Error(diff)
	}
	if last := records[len(records)-1]; last.Type != typeResult {
		t.Errorf("the last record is %s", last.Type)
	}
}

func TestLinesThatComeTogetherShareARecord(t *testing.T) {
	lines, count := linesOf(t, recorded(t, `i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "line $i"; done`), typeStdout)
	if len(lines) != 3000 || lines[2999] != "line 3000" || count < 3000/maxLines || count > 300 {
		t.Errorf("%d lines in %d records", len(lines), count)
	}
}

func TestARecordOfLinesIsNeverLarge(t *testing.T) {
	records := recorded(t, `i=0; while [ $i -lt 20 ]; do i=$((i+1)); head -c 50000 /dev/zero | tr '\0' 'x'; echo; done; head -c 3000000 /dev/zero | tr '\0' 'y'; echo`)
	lines, _ := linesOf(t, records, typeStdout)
	if len(lines) != 21 || len(lines[20]) != maxLine {
		t.Errorf("%d lines, the last of %d bytes", len(lines), len(lines[len(lines)-1]))
	}
	for _, r := range records {
		if len(r.Payload) > maxLine+100 {
			t.Errorf("a record of %d bytes", len(r.Payload))
		}
	}
}

func TestALineIsRecordedWhileTheProgramRuns(t *testing.T) {
	sink := &recorder{}
	round := newRound(t)
	done := make(chan error, 1)
	go func() {
		_, err := shell(`echo early; until [ -e go ]; do sleep 0.01; done`).Run(t.Context(), round, sink)
		done <- err
	}()
	limit := time.After(20 * time.Second)
	for seen := false; !seen; {
		sink.mu.Lock()
		seen = len(sink.records) > 0
		sink.mu.Unlock()
		select {
		case err := <-done:
			t.Fatalf("the program ended before its line came: %v", err)
		case <-limit:
			t.Fatal("the line does not come while the program runs")
		case <-time.After(time.Millisecond):
		}
	}
	if err := os.WriteFile(filepath.Join(round.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheResultIsRecordedAsTheProgramLeftIt(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"none":               {`true`, `{"exit":"exit status 0","result":null}`},
		"a result":           {leaves(`{"summary":"<S>","links":[],"n":1.50}`), `{"exit":"exit status 0","result":{"summary":"<S>","links":[],"n":1.50}}`},
		"a failure":          {leaves(`{"status":"done"}`) + `exit 3`, `{"exit":"exit status 3","result":{"status":"done"}}`},
		"a signal":           {`kill -KILL $$`, `{"exit":"killed by signal SIGKILL","result":null}`},
		"what is no JSON":    {leaves(`nonsense`), `{"exit":"exit status 0","result":null,"unusable":"nonsense"}`},
		"what is no object":  {leaves(`[1]`), `{"exit":"exit status 0","result":null,"unusable":"[1]"}`},
		"an empty file":      {`: > "$BULLPEN_RESULT_FILE"`, `{"exit":"exit status 0","result":null,"unusable":""}`},
		"too much of a file": {`head -c 9000 /dev/zero | tr '\0' 'x' > "$BULLPEN_RESULT_FILE"`, fmt.Sprintf(`{"exit":"exit status 0","result":null,"unusable":%q}`, strings.Repeat("x", 4<<10)+"…")},
	} {
		records := recorded(t, test.script)
		i := slices.IndexFunc(records, func(r runtime.Record) bool { return r.Type == typeResult })
		if i < 0 || string(records[i].Payload) != test.want {
			t.Errorf("%s: %s", name, records[max(i, 0)].Payload)
		}
	}
}

func TestAProgramThatCannotBeStartedStartsNoTurn(t *testing.T) {
	sink := &recorder{}
	c := shell("true")
	c.Args = []string{"/no/such/program"}
	if _, err := c.Run(t.Context(), newRound(t), sink); err == nil {
		t.Error("it ran")
	}
	if sink.started != 0 || len(sink.records) != 0 {
		t.Errorf("started %d times, recorded %v", sink.started, sink.records)
	}
}

func TestAProgramRunsInItsOneCheckout(t *testing.T) {
	round := newRound(t)
	round.Workdir = t.TempDir()
	sink := &recorder{}
	got, err := shell(`pwd`).Run(t.Context(), round, sink)
	if err != nil || got.Summary != round.Workdir {
		t.Errorf("it ran in %s, not in %s: %v", got.Summary, round.Workdir, err)
	}
}
