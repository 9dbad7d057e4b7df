package claude

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestARoundFromBeginningToEnd(t *testing.T) {
	round := newRound(t)
	sink := &recorder{}
	got, err := fakeRuntime(t, `
		begin
		echo '{"type":"control_request","request_id":"c","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}'
		read -r answer
		printf %s "$answer" > answer.json
		printf '%s ' "$@" > arguments
		cp "$BULLPEN_RESULT_FILE" . 2>/dev/null
		finish`).Run(t.Context(), round, sink)
	if err != nil || got.Failed != "" || got.Status != protocol.HandbackDone || got.Summary != "All is well." {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(got.Usage) != 1 || got.Usage[0].Session != one || got.Usage[0].Models["m-1"].InputTokens != 3 {
		t.Errorf("usage %+v", got.Usage)
	}
	answer, err := os.ReadFile(filepath.Join(round.Dir, "answer.json"))
	if err != nil || !strings.Contains(string(answer), `"behavior":"allow"`) {
		t.Errorf("the answer is %s, %v", answer, err)
	}
	if args, err := os.ReadFile(filepath.Join(round.Dir, "arguments")); err != nil || strings.Contains(string(args), "--mcp-config") {
		t.Errorf("arguments %s, %v", args, err)
	}
	if sink.early != 0 || len(sink.records) != 3 || sink.records[1].Echo == nil || *sink.records[1].Echo != 0 {
		t.Errorf("records %+v", sink.records)
	}
	for _, name := range []string{"system.md", "offer.json"} {
		info, err := os.Stat(filepath.Join(round.Scratch, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

func TestAResultOfAnEarlierTryIsNotTaken(t *testing.T) {
	round := newRound(t)
	if err := os.WriteFile(filepath.Join(round.Scratch, "result.json"), []byte(`{"status":"blocked"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := fakeRuntime(t, `begin; finish`).Run(t.Context(), round, &recorder{})
	if err != nil || got.Status != protocol.HandbackDone {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestProcessesThatMisbehaveEndTheRound(t *testing.T) {
	for name, test := range map[string]struct {
		script, failed string
	}{
		"it says nothing and ends":                    {`echo "bad config" >&2; exit 2`, "Claude Code ended before it had answered: exit status 2: bad config"},
		"it ends in the middle":                       {`begin; exit 0`, "Claude Code ended before it had answered: exit status 0"},
		"it reads nothing":                            {`exec <&-; sleep 0.1; exit 7`, "Claude Code ended before it had answered: exit status 7"},
		"it answers, and does not end with its input": {`begin; (finish); sleep 1000`, ""},
		"it answers, and ignores SIGTERM":             {`trap '' TERM; begin; (finish); while :; do sleep 0.05; done`, ""},
		"its background work spoils the result": {`begin; finish; echo nonsense > "$BULLPEN_RESULT_FILE"; (finish)`,
			"Claude Code finished, but the result that the model left cannot be used: it is no JSON object: invalid character 'o' in literal null (expecting 'u')"},
		"it never repeats the message":      {`read -r x; (finish); sleep 1000`, ""},
		"it leaves a child with its output": {`begin; sleep 1000 & finish`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			round := newRound(t)
			round.Grace = 200 * time.Millisecond
			c := fakeRuntime(t, test.script)
			c.linger = 100 * time.Millisecond
			begun := time.Now()
			got, err := c.Run(t.Context(), round, &recorder{})
			if err != nil || got.Failed != test.failed || (test.failed == "") != (got.Summary == "All is well.") {
				t.Errorf("%+v, %v", got, err)
			}
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestALargeMessageArrivesWhole(t *testing.T) {
	round := newRound(t)
	asks := strings.Repeat("0123456789abcdef", 8<<10)
	round.Offer.Context.Journal[0].Text = asks
	got, err := fakeRuntime(t, `begin; printf %s "$first" > said.json; finish`).Run(t.Context(), round, &recorder{})
	if err != nil || got.Failed != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	data, err := os.ReadFile(filepath.Join(round.Dir, "said.json"))
	var said userMessage
	if err := errors.Join(err, json.Unmarshal(data, &said)); err != nil || !strings.Contains(said.Message.Content[0].Text, asks) {
		t.Errorf("%d bytes arrived, %v", len(data), err)
	}
}

func TestALargeLineIsOneRecord(t *testing.T) {
	sink := &recorder{}
	got, err := fakeRuntime(t, `begin
		printf '{"type":"user","big":"'; head -c 9000000 /dev/zero | tr '\0' x; echo '"}'
		finish`).Run(t.Context(), newRound(t), sink)
	if err != nil || got.Failed != "" || len(sink.records) != 4 || len(sink.records[2].Payload) != 9000000+len(`{"type":"user","big":""}`) {
		t.Errorf("%+v, %v, %d records", got, err, len(sink.records))
	}
}

func TestALineBeyondAllBoundsIsCutAndKept(t *testing.T) {
	var got []outputLine
	text := "short\r\n\n" + strings.Repeat("x", 50) + "\nend"
	eachLine(io.NopCloser(strings.NewReader(text)), 10, func(l outputLine) { got = append(got, l) })
	want := []outputLine{{[]byte("short"), 5}, {[]byte("xxxxxxxxxx"), 51}, {[]byte("end"), 3}}
	for i := range want {
		if i >= len(got) || string(got[i].text) != string(want[i].text) || got[i].whole != want[i].whole {
			t.Fatalf("line %d: %+v", i, got)
		}
	}
}

// stops stops a round at its first record.
func stops(stop func()) *recorder { return &recorder{onRecord: func(runtime.Record) { stop() }} }

func TestARoundThatIsToStop(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   runtime.Result
	}{
		"is interrupted first, so that all is told": {`begin; read -r asked
			printf %s "$asked" > asked.json
			echo '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"` + one + `","modelUsage":{"m-1":{"inputTokens":9,"costUSD":0.5}}}'
			cat > /dev/null; echo whole > ended`,
			runtime.Result{Status: "interrupted", Summary: "The round was cut short before Claude Code said anything."}},
		"gets SIGTERM where that does not help": {`trap 'echo whole > ended; exit 0' TERM; begin; while :; do sleep 0.01; done`,
			runtime.Result{Status: "interrupted", Summary: "The round was cut short before Claude Code said anything."}},
		"has finished if it finishes in time": {`begin; read -r asked; (finish); echo whole > ended`,
			runtime.Result{Status: "done", Summary: "All is well."}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			round := newRound(t)
			round.Grace = 4 * time.Second
			got, err := fakeRuntime(t, test.script).Run(ctx, round, stops(stop))
			if err != nil || got.Status != test.want.Status || got.Summary != test.want.Summary || got.Failed != "" {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := os.Stat(filepath.Join(round.Dir, "ended")); err != nil {
				t.Errorf("it was killed: %v", err)
			}
			if strings.Contains(test.script, "asked.json") {
				asked, err := os.ReadFile(filepath.Join(round.Dir, "asked.json"))
				if err != nil || !strings.Contains(string(asked), `"subtype":"interrupt"`) {
					t.Errorf("asked %s, %v", asked, err)
				}
				if len(got.Usage) != 1 || got.Usage[0].Models["m-1"].InputTokens != 9 {
					t.Errorf("usage %+v", got.Usage)
				}
			}
		})
	}
}

func TestALostSessionIsStartedAnewOnce(t *testing.T) {
	lose := `for a; do case $a in --resume=*) echo "No conversation found with session ID: x" >&2; exit 1;; esac; done; `
	round := newRound(t)
	round.SessionID = two
	sink := &recorder{}
	got, err := fakeRuntime(t, lose+`begin; finish`).Run(t.Context(), round, sink)
	if err != nil || got.Status != protocol.HandbackDone || len(sink.journal) != 1 || !strings.Contains(sink.journal[0], two) {
		t.Errorf("%+v, %v, %q", got, err, sink.journal)
	}
	sink = &recorder{}
	got, err = fakeRuntime(t, `echo "No conversation found with session ID: x" >&2; exit 1`).Run(t.Context(), round, sink)
	if err != nil || got.Status == protocol.HandbackDone || len(sink.journal) != 1 {
		t.Errorf("again and again: %+v, %v, %q", got, err, sink.journal)
	}
}

func TestRoundsThatLimitsEndDoNotFollowEachOtherAtOnce(t *testing.T) {
	c := fakeRuntime(t, `begin; echo '{"type":"result","is_error":true,"api_error_status":429,"result":"Too many."}'; cat >/dev/null`)
	c.pause = 300 * time.Millisecond
	sink := &recorder{}
	begun := time.Now()
	for range 2 {
		if got, err := c.Run(t.Context(), newRound(t), sink); err != nil || got.Status != protocol.HandbackInterrupted {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if took := time.Since(begun); took < c.pause {
		t.Errorf("two rounds took %s", took)
	}
	if len(sink.windows) != 2 || sink.windows[1][0] != (protocol.UsageWindow{Name: "requests", Utilization: 1}) {
		t.Errorf("windows %+v", sink.windows)
	}
	ctx, stop := context.WithCancel(t.Context())
	c.pause = time.Hour
	sink.onRecord = func(r runtime.Record) {
		if r.Type == "result" {
			time.AfterFunc(50*time.Millisecond, stop)
		}
	}
	if got, err := c.Run(ctx, newRound(t), sink); err != nil || got.Status != protocol.HandbackInterrupted {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestARoundThatCannotBeSetUpIsAnError(t *testing.T) {
	round := newRound(t)
	round.Scratch = filepath.Join(round.Scratch, "missing")
	if _, err := fakeRuntime(t, `finish`).Run(t.Context(), round, &recorder{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	c := &Claude{Program: "/no/such/claude", Home: t.TempDir(), Log: logTo(t)}
	if _, err := c.Run(t.Context(), newRound(t), &recorder{}); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("%v", err)
	}
}
