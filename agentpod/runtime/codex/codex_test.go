package codex

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// quiet has the log in the test's output.
func quiet(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// recorder is a sink that remembers.
type recorder struct {
	started  int
	early    int
	records  []runtime.Record
	deltas   []feed.Delta
	journal  []string
	sessions []string
	windows  [][]protocol.UsageWindow
	// at is called with each record.
	at func(runtime.Record)
}

func (r *recorder) Progress(string) {}
func (r *recorder) Journal(text string) {
	r.journal = append(r.journal, text)
}
func (r *recorder) Session(id, model string) { r.sessions = append(r.sessions, id+" "+model) }
func (r *recorder) Delta(d feed.Delta)       { r.deltas = append(r.deltas, d) }
func (r *recorder) Started()                 { r.started++ }
func (r *recorder) Usage(w []protocol.UsageWindow) {
	r.windows = append(r.windows, slices.Clone(w))
}

func (r *recorder) Record(record runtime.Record) {
	if r.started == 0 {
		r.early++
	}
	r.records = append(r.records, record)
	if r.at != nil {
		r.at(record)
	}
}

// run plays a round.
func (s *stage) run(t *testing.T) (runtime.Result, *recorder) {
	t.Helper()
	sink := &recorder{}
	got, err := s.codex.Run(t.Context(), s.round, sink)
	if err != nil {
		t.Fatal(err)
	}
	if sink.early > 0 || sink.started > 1 {
		t.Errorf("%d records before the start, which was told %d times", sink.early, sink.started)
	}
	return got, sink
}

func TestEveryNotificationIsARecordAsItCame(t *testing.T) {
	odd := []string{
		`{"jsonrpc":"2.0","method":"some/new/thing","params":{"z":1,"a":9007199254740993,"m":1.50,"t":"<é> \u00e9"},"emittedAtMs":1}`,
		`{"params":null,"method":"bare"}`,
		`{"method":"item/completed","params":{"threadId":"t1","item":{"type":"aNewOne","id":"x","more":{"deep":[1e400]}}}}`,
		`{"method":"turn/plan/updated","params":{"plan":[{"step":"one"}]}}`,
		`{"method":"item/completed","params":"not an object"}`,
	}
	fragments := []string{
		`{"method":"item/agentMessage/delta","params":{"threadId":"t1","itemId":"a","delta":"Hel"}}`,
		`{"method":"item/reasoning/textDelta","params":{"threadId":"t1","delta":"raw"}}`,
		`{"method":"item/commandExecution/outputDelta","params":{"threadId":"t1","delta":"out"}}`,
		`{"method":"item/plan/delta","params":{"threadId":"t1","delta":"p"}}`,
		`{"method":"thread/realtime/transcript/delta","params":{"delta":"r"}}`,
		`{"method":"item/fileChange/patchUpdated","params":{"threadId":"t1"}}`,
		`{"method":"item/agentMessage/delta","params":{"threadId":"another","itemId":"b","delta":"not this"}}`,
	}
	before := `{"method":"remoteControl/status/changed","params":{"status":"disabled"}}`
	turn := slices.Concat(odd, fragments, completed("Hello."))
	got, sink := newStage(t, usual(turn, script{"initialize": {{before, `{"id":$ID,"result":{}}`}}})).run(t)
	if got.Status != protocol.HandbackDone || got.Summary != "Hello." {
		t.Errorf("%+v", got)
	}
	var payloads []string
	for _, r := range sink.records {
		payloads = append(payloads, string(r.Payload))
		if r.Source != feed.SourceCodex || r.Format != feed.FormatCodexAppServer {
			t.Errorf("a record of %s %s", r.Source, r.Format)
		}
	}
	if diff := cmp.Diff(slices.Concat([]string{before}, odd, completed("Hello.")), payloads); diff != "" {
		t.Error(diff)
	}
	if len(sink.deltas) != 1 || *sink.deltas[0].Text != "Hel" {
		t.Errorf("deltas %+v", sink.deltas)
	}
}

func TestWhatIsNoMessageIsKeptAsSuch(t *testing.T) {
	turn := append([]string{"Welcome to Codex!", `[1,2]`, `{"neither":true}`}, completed("Done.")...)
	got, sink := newStage(t, usual(turn, nil)).run(t)
	if got.Summary != "Done." {
		t.Errorf("%+v", got)
	}
	var kept []string
	for _, r := range sink.records {
		if r.Type == "bullpen/unreadable" {
			var payload map[string]string
			if err := json.Unmarshal(r.Payload, &payload); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, payload["line"])
		}
	}
	if diff := cmp.Diff([]string{"Welcome to Codex!", `[1,2]`, `{"neither":true}`}, kept); diff != "" {
		t.Error(diff)
	}
}

func TestALineThatIsTooLongIsToldOf(t *testing.T) {
	var got []int
	var lines []string
	text := "short\n" + strings.Repeat("x", 100_000) + "\r\n\nlast"
	eachLine(strings.NewReader(text), 50, func(line []byte, size int) bool {
		got, lines = append(got, size), append(lines, string(line))
		return true
	})
	if diff := cmp.Diff([]int{5, 100_000, 4}, got); diff != "" || lines[0] != "short" || lines[2] != "last" || len(lines[1]) > 50 {
		t.Errorf("%s %q", diff, lines)
	}
}

func TestTheMessageThatAUserItemRepeatsIsFoundByItsIDOrItsPlace(t *testing.T) {
	user := func(id, client string) string {
		return `{"method":"item/completed","params":{"threadId":"t1","turnId":"u1","item":{"type":"userMessage","id":"` + id + `"` + client + `,"content":[]}}}`
	}
	for name, test := range map[string]struct {
		lines []string
		want  []string
	}{
		"an older Codex names no id: the first one": {[]string{user("x", `,"clientId":null`), user("x", ""), user("y", "")}, []string{"x", "x"}},
		"an id of somebody else":                    {[]string{user("x", `,"clientId":"other"`), user("y", `,"clientId":"another"`)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, sink := newStage(t, usual(append(test.lines, completed("Done.")...), nil)).run(t)
			var echoes []string
			for _, r := range sink.records {
				if r.Echo != nil {
					var m struct {
						Params struct{ Item struct{ ID string } }
					}
					if err := json.Unmarshal(r.Payload, &m); err != nil || *r.Echo != 0 {
						t.Errorf("echo %d, %v", *r.Echo, err)
					}
					echoes = append(echoes, m.Params.Item.ID)
				}
			}
			if diff := cmp.Diff(test.want, echoes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryRequestIsAnswered(t *testing.T) {
	questions := []string{
		`{"id":"q1","method":"item/tool/requestUserInput","params":{"questions":[{"id":"color","question":"Which?"}]}}`,
		`{"id":2,"method":"account/chatgptAuthTokens/refresh","params":{"reason":"unauthorized"}}`,
		`{"id":3,"method":"attestation/generate","params":{}}`,
		`{"id":4,"method":"something/of/tomorrow","params":[1]}`,
		`{"id":5,"method":"item/permissions/requestApproval","params":{"permissions":{"network":{"enabled":true},"fileSystem":null}}}`,
		`{"id":6,"method":"item/tool/call","params":{"tool":"fly"}}`,
		`{"id":7,"method":"mcpServer/elicitation/request","params":{"serverName":"s","mode":"form","requestedSchema":{"properties":{"name":{}}}}}`,
		`{"id":8,"method":"mcpServer/elicitation/request","params":{"serverName":"s","mode":"url","url":"https://example.com"}}`,
		`{"id":9,"method":"execCommandApproval","params":{"command":["ls"]}}`,
		`{"id":10,"method":"applyPatchApproval","params":{}}`,
	}
	answered := make([][]string, len(questions)) // the turn ends with the last answer
	answered[len(questions)-1] = completed("Done.")
	s := newStage(t, usual(questions, script{"answer": answered}))
	got, sink := s.run(t)
	if got.Summary != "Done." || len(sink.records) != 2 {
		t.Errorf("%+v, %d records", got, len(sink.records))
	}
	answers := s.heard(t, "")
	for i, want := range []string{
		`{"id":"q1","result":{"answers":{"color":{"answers":["Nobody is there`, `{"id":2,"error":{"code":-32601`, `{"id":3,"error":`, `{"id":4,"error":`,
		`{"id":5,"result":{"permissions":{"network":{"enabled":true}},"scope":"turn"}}`, `{"id":6,"result":{"contentItems":[{"text":"There is no such tool`,
		`{"id":7,"result":{"_meta":null,"action":"decline"`, `{"id":8,"result":{"_meta":null,"action":"decline"`,
		`{"id":9,"result":{"decision":"approved"}}`, `{"id":10,"result":{"decision":"approved"}}`,
	} {
		if i >= len(answers) || !strings.HasPrefix(answers[i], want) {
			t.Errorf("want %s, got %q", want, answers)
			break
		}
	}
}

func TestAnAppServerThatDoesNotWorkFailsTheRoundWithItsWords(t *testing.T) {
	for name, test := range map[string]struct {
		script  script
		want    string
		started int
	}{
		"it ends at once": {script{"initialize": {{"!say \x1b[31mError:\x1b[0m config.toml is odd", "!exit 3"}}},
			"codex app-server ended before it could begin: exit status 3: Error: config.toml is odd", 0},
		"it refuses the thread": {script{"initialize": {{`{"id":$ID,"result":{}}`}}, "thread/start": {{`{"id":$ID,"error":{"code":-32600,"message":"no such provider"}}`}}},
			"Codex cannot begin: thread/start: no such provider", 0},
		"it refuses the turn": {usual(nil, script{"turn/start": {{`{"id":$ID,"error":{"code":-32600,"message":"no effort of that name"}}`}}}),
			"Codex cannot begin: turn/start: no effort of that name", 0},
		"it ends in the middle": {usual([]string{"!say out of memory", "!exit 137"}, nil),
			"codex app-server ended in the middle of the turn: exit status 137: out of memory", 1},
		"it interrupts the turn itself": {usual([]string{`{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"interrupted"}}}`}, nil),
			"Codex ended the turn as interrupted: it does not say why", 1},
		"the turn fails with no more than an error before": {usual([]string{
			`{"method":"error","params":{"threadId":"t1","turnId":"u1","willRetry":false,"error":{"message":"A policy.","codexErrorInfo":"cyberPolicy","additionalDetails":"See the page."}}}`,
			`{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"failed","error":null}}}`}, nil),
			"the turn failed: A policy. (See the page.)", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, sink := newStage(t, test.script).run(t)
			if !strings.HasPrefix(got.Failed, test.want) || got.Status != "" || sink.started != test.started {
				t.Errorf("%+v, started %d times", got, sink.started)
			}
		})
	}
}

func TestACodexThatIsNotThereFailsTheRound(t *testing.T) {
	s := newStage(t, nil)
	s.codex.Program = "/no/such/codex"
	got, _ := s.run(t)
	if !strings.Contains(got.Failed, "/no/such/codex cannot be started") {
		t.Errorf("%+v", got)
	}
}

func TestAStopBeforeTheTurnBeginsStartsNothing(t *testing.T) {
	s := newStage(t, usual(nil, script{"thread/start": {{`{"method":"warning","params":{"message":"hm"}}`, "!wait never"}}}))
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	sink := &recorder{}
	got, err := s.codex.Run(ctx, s.round, sink)
	if err != nil || got.Status != protocol.HandbackInterrupted || got.Failed != "" || sink.started != 0 || len(sink.records) != 0 {
		t.Errorf("%+v, %v, %d records", got, err, len(sink.records))
	}
}

func TestACodexThatIgnoresEverythingIsKilledWithinTheGrace(t *testing.T) {
	s := newStage(t, usual([]string{`{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}`, "!stay"}, nil))
	s.round.Grace = 400 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sink := &recorder{at: func(runtime.Record) { stop() }}
	done := make(chan runtime.Result)
	go func() {
		got, err := s.codex.Run(ctx, s.round, sink)
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	select {
	case got := <-done:
		if got.Status != protocol.HandbackInterrupted || got.Failed != "" {
			t.Errorf("%+v", got)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the round does not end")
	}
}

func TestATurnThatEndsWhileItIsStoppedIsDone(t *testing.T) {
	s := newStage(t, usual([]string{`{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}`},
		script{"turn/interrupt": {append([]string{`{"id":$ID,"error":{"code":-32600,"message":"no active turn"}}`}, completed("Just in time.")...)}}))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	got, err := s.codex.Run(ctx, s.round, &recorder{at: func(runtime.Record) { stop() }})
	if err != nil || got.Status != protocol.HandbackDone || got.Summary != "Just in time." {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnOldCodexWithoutConfigReadRunsInThePodAsItsSandbox(t *testing.T) {
	s := newStage(t, usual(completed("Done."), script{"config/read": {{`{"id":$ID,"error":{"code":-32601,"message":"unknown"}}`}}}))
	if got, _ := s.run(t); got.Summary != "Done." {
		t.Fatalf("%+v", got)
	}
	for _, words := range []string{`"sandbox":"danger-full-access"`, `"approvalPolicy":"on-request"`, `"allow_login_shell":false`} {
		if start := s.heard(t, "thread/start"); !strings.Contains(start[0], words) {
			t.Errorf("%s is not in %s", words, start[0])
		}
	}
}

func TestWhatTheUserConfiguredIsLeftAsItIs(t *testing.T) {
	said := `{"id":$ID,"result":{"config":{},"origins":{"sandbox_mode":{"name":{"type":"user"}},"approval_policy":{"name":{"type":"user"}},` +
		`"allow_login_shell":{"name":{"type":"user"}},"features.shell_snapshot":{"name":{"type":"user"}},"projects./w.trust_level":{"name":{"type":"user"}}}}}`
	s := newStage(t, usual(completed("Done."), script{"config/read": {{said}}}))
	s.run(t)
	start := s.heard(t, "thread/start")[0]
	for _, word := range []string{"sandbox", "approvalPolicy", "allow_login_shell", "shell_snapshot", "trust_level"} {
		if strings.Contains(start, word) {
			t.Errorf("%s is in %s", word, start)
		}
	}
}

func TestAThreadThatIsThereButCannotBeResumedIsTriedAgainAndThenLeft(t *testing.T) {
	refused := []string{`{"id":$ID,"error":{"code":-32600,"message":"thread 0a already has an active writer"}}`}
	for name, test := range map[string]struct {
		there bool
		tries [][]string
		want  string
	}{
		"it can be on the second try": {true, [][]string{refused, {`{"id":$ID,"result":{"thread":{"id":"t1"},"model":"m1"}}`}}, "t1 m1"},
		"it never can":                {true, [][]string{refused}, "t1 m1"},
		"it is not there":             {false, [][]string{refused}, "t1 m1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, usual(completed("Done."), script{"thread/resume": test.tries}))
			s.round.SessionID = "0a"
			if test.there {
				dir := filepath.Join(homeOf(s.round.Env), "sessions", "2026", "03", "01")
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "rollout-2026-0a.jsonl"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, sink := s.run(t)
			if got.Summary != "Done." || sink.sessions[len(sink.sessions)-1] != test.want {
				t.Errorf("%+v, sessions %q", got, sink.sessions)
			}
			tries, lost := len(s.heard(t, "thread/resume")), len(s.heard(t, "thread/start"))
			wantTries, wantLost := 1, 1
			if test.there {
				wantTries = resumeTries
			}
			if len(test.tries) > 1 {
				wantTries, wantLost = 2, 0
			}
			if tries != wantTries || lost != wantLost || len(sink.journal) != wantLost {
				t.Errorf("%d tries, %d threads begun, journal %q", tries, lost, sink.journal)
			}
		})
	}
}

func TestTotalsThatAreToldAgainOrBeginAnewCountOnce(t *testing.T) {
	usage := func(thread, turn string, in, cached, out, lastIn, lastOut int) string {
		return `{"method":"thread/tokenUsage/updated","params":{"threadId":"` + thread + `","turnId":"` + turn + `","tokenUsage":{"total":` +
			tokens(in, cached, out) + `,"last":` + tokens(lastIn, 0, lastOut) + `}}}`
	}
	turn := slices.Concat([]string{
		usage("t1", "u1", 100, 40, 10, 100, 10),
		usage("t1", "u1", 100, 40, 10, 100, 10), // again
		usage("t1", "u1", 250, 90, 30, 150, 20),
		usage("t1", "u1", 0, 0, 0, 0, 0), // the thread's count began anew
		usage("t1", "u1", 7, 0, 1, 7, 1),
		usage("t2", "v1", 1005, 0, 102, 5, 2), // another agent that began with the totals of the one that started it
		usage("t2", "v1", 1009, 0, 103, 4, 1),
	}, completed("Done."))
	got, sink := newStage(t, usual(turn, nil)).run(t)
	want := []protocol.SessionUsage{
		{Session: "t1", Models: map[string]protocol.ModelUsage{"m1": {InputTokens: 167, CacheReadTokens: 90, OutputTokens: 31}}},
		{Session: "t2", Models: map[string]protocol.ModelUsage{"m1": {InputTokens: 9, OutputTokens: 3}}},
	}
	if diff := cmp.Diff(want, got.Usage); diff != "" {
		t.Error(diff)
	}
	var counts []int64
	for _, d := range sink.deltas {
		if d.Text == nil {
			counts = append(counts, *d.OutputTokens)
		}
	}
	if diff := cmp.Diff([]int64{10, 10, 20, 0, 1}, counts); diff != "" {
		t.Error(diff)
	}
}

func tokens(in, cached, out int) string {
	data, err := json.Marshal(map[string]int{"inputTokens": in, "cachedInputTokens": cached, "outputTokens": out, "totalTokens": in + out})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestCommentaryIsNoAnswerUnlessThereIsNoOther(t *testing.T) {
	say := func(text, phase string) string {
		return `{"method":"item/completed","params":{"threadId":"t1","turnId":"u1","item":{"type":"agentMessage","id":"a","text":"` + text + `","phase":"` + phase + `"}}}`
	}
	end := `{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}`
	for want, lines := range map[string][]string{
		"The answer.":  {say("The answer.", "final_answer"), say("Still here.", "commentary")},
		"On my way.":   {say("On my way.", "commentary")},
		"Last of two.": {say("First of two.", ""), say("Last of two.", "")},
		"Codex completed the turn without a final message.": nil,
	} {
		if got, _ := newStage(t, usual(append(lines, end), nil)).run(t); got.Summary != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

func TestOtherAgentsAndCommandsHoldACompletedTurnForAWhile(t *testing.T) {
	turn := slices.Concat([]string{
		`{"method":"turn/started","params":{"threadId":"t2","turn":{"id":"v1"}}}`,
		`{"method":"item/started","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","command":"make"}}}`,
	}, completed("Done."), []string{"!wait go",
		`{"method":"item/completed","params":{"threadId":"t1","item":{"type":"commandExecution","id":"c1","aggregatedOutput":"late"}}}`,
		`{"method":"turn/completed","params":{"threadId":"t2","turn":{"id":"v1","status":"completed"}}}`,
	})
	s := newStage(t, usual(turn, nil))
	sink := &recorder{at: func(r runtime.Record) {
		if r.Type == "turn/completed" {
			if err := os.WriteFile(filepath.Join(filepath.Dir(s.path), "go"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}}
	got, err := s.codex.Run(t.Context(), s.round, sink)
	if err != nil || got.Summary != "Done." {
		t.Errorf("%+v, %v", got, err)
	}
	if last := sink.records[len(sink.records)-1]; !bytes.Contains(last.Payload, []byte(`"threadId":"t2"`)) || len(sink.records) != 6 {
		t.Errorf("%d records, the last one is %s", len(sink.records), last.Payload)
	}
}

func TestASecondRoundThatALimitEndsSoonWaits(t *testing.T) {
	full := []string{
		`{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"failed","error":{"message":"full","codexErrorInfo":"usageLimitExceeded"}}}}`,
	}
	read := `{"id":$ID,"result":{"rateLimits":{"limitId":"codex","primary":{"usedPercent":100,"windowDurationMins":300,"resetsAt":4102444800}},"rateLimitsByLimitId":null}}`
	s := newStage(t, usual(full, script{"account/rateLimits/read": {{read}}}))
	s.codex.pause = 200 * time.Millisecond
	for i, least := range []time.Duration{0, 200 * time.Millisecond} {
		began := time.Now()
		got, sink := s.run(t)
		if got.Status != protocol.HandbackInterrupted || got.Failed != "" || time.Since(began) < least {
			t.Errorf("round %d ended after %v as %+v", i, time.Since(began), got)
		}
		want := []protocol.UsageWindow{{Name: "five_hour", Utilization: 1, ResetsAt: "2100-01-01T00:00:00.000Z"}}
		if len(sink.windows) != 1 || !cmp.Equal(want, sink.windows[0]) {
			t.Errorf("round %d told the windows %v", i, sink.windows)
		}
	}
}
