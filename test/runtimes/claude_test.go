package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/claude"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

// sonnet is a model that Claude Code knows the price of.
const sonnet = "claude-sonnet-4-5"

// claudeBench is a bench whose Claude Code asks a stand-in.
func claudeBench(t *testing.T, model *modelstub.Server, env ...string) (*bench, *claude.Claude) {
	t.Helper()
	b := newBench(t, append([]string{"ANTHROPIC_BASE_URL=" + model.URL, "ANTHROPIC_API_KEY=made-up"}, env...)...)
	return b, &claude.Claude{Program: program(t, "claude"), Home: b.home, Env: b.env, Log: logTo(t)}
}

// run works a round to its end.
func run(t *testing.T, r runtime.Runtime, round runtime.Round) (runtime.Result, *recorder) {
	t.Helper()
	sink := newRecorder(t)
	return runWith(t, r, round, sink), sink
}

func runWith(t *testing.T, r runtime.Runtime, round runtime.Round, sink *recorder) runtime.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if round.Model == "" {
		round.Model = sonnet
	}
	got, err := r.Run(ctx, round, sink)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatal("the round did not end in time")
	}
	return got
}

// bash is a call of Claude Code's tool for commands.
func bash(t *testing.T, command string) modelstub.ToolCall {
	return call(t, "Bash", map[string]any{"command": command, "description": "run a command"})
}

func call(t *testing.T, name string, input any) modelstub.ToolCall {
	t.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return modelstub.ToolCall{Name: name, Input: data}
}

// totals are the tokens of a session of one model, without the cost.
func totals(t *testing.T, got runtime.Result, session, model string) protocol.ModelUsage {
	t.Helper()
	if len(got.Usage) != 1 || got.Usage[0].Session != session || len(got.Usage[0].Models) != 1 {
		t.Fatalf("usage %+v, not that of session %s alone", got.Usage, session)
	}
	used, ok := got.Usage[0].Models[model]
	if !ok {
		t.Fatalf("usage %+v, not that of %s", got.Usage, model)
	}
	if used.CostUSD == nil || *used.CostUSD <= 0 {
		t.Errorf("no cost of %s", model)
	}
	used.CostUSD = nil
	return used
}

func TestClaudeWorksARoundThatChangesAFile(t *testing.T) {
	t.Parallel()
	thought := "Look at the file first.\nThen write."
	model := play(t,
		modelstub.Step{Thinking: thought, Text: "I write the file now.",
			Tools: []modelstub.ToolCall{bash(t, "printf made > made.txt")},
			Usage: modelstub.Usage{Input: 1200, CacheCreation: 300, Output: 80}},
		modelstub.Step{Text: "The file is there.", Usage: modelstub.Usage{Input: 40, CacheRead: 1500, Output: 7}},
	)
	b, c := claudeBench(t, model)
	got, sink := run(t, c, b.round(t, "Make the file made.txt."))

	if data, err := os.ReadFile(filepath.Join(b.dir, "made.txt")); err != nil || string(data) != "made" {
		t.Errorf("the file has %q, %v", data, err)
	}
	if got.Failed != "" || got.Status != protocol.HandbackDone || got.Summary != "The file is there." {
		t.Errorf("the round ended as %+v", got)
	}
	want := protocol.ModelUsage{InputTokens: 1240, CacheReadTokens: 1500, CacheCreationTokens: 300, OutputTokens: 87}
	if diff := cmp.Diff(want, totals(t, got, sink.session(), sonnet)); diff != "" {
		t.Error(diff)
	}
	if text := sink.text(); text != "I write the file now.The file is there." {
		t.Errorf("watchers saw %q", text)
	}
	if last := sink.thinking(); len(last) < 2 || last[len(last)-2] != "Look at the file first." || last[len(last)-1] != "" {
		t.Errorf("watchers saw the thinking %q", last)
	}
	var tokens []int64
	for _, d := range sink.deltas {
		if d.Kind == feed.DeltaText && d.OutputTokens != nil {
			tokens = append(tokens, *d.OutputTokens)
		}
	}
	if !slices.Contains(tokens, 80) || tokens[len(tokens)-1] != 7 {
		t.Errorf("watchers saw counts of tokens %v", tokens)
	}
	if !slices.Contains(sink.progress, "Bash: run a command") {
		t.Errorf("progress %q", sink.progress)
	}
	if diff := cmp.Diff([]int{0}, sink.echoes()); diff != "" {
		t.Error(diff)
	}
	types := map[string]int{}
	for _, r := range sink.records {
		types[r.Type]++
		if r.Source != feed.SourceClaudeCode || r.Format != feed.FormatClaudeJSONL {
			t.Errorf("a record of %s %s", r.Source, r.Format)
		}
	}
	if types["system"] == 0 || types["user"] != 2 || types["assistant"] != 4 || types["result"] != 1 || types["stream_event"] != 0 {
		t.Errorf("records %v", types)
	}
	// The model was told who it is and what to do.
	asked := string(model.Answered()[0].Body)
	for _, words := range []string{"You are Ada (ada), of the team The shop.", "# A thing to do", "Make the file made.txt."} {
		if !strings.Contains(asked, words) {
			t.Errorf("the model was not told: %s", words)
		}
	}
}

func TestClaudesLinesAreRecordsByteForByte(t *testing.T) {
	t.Parallel()
	model := play(t,
		modelstub.Step{Thinking: "Hm, <this> & that.", Text: "Ich übe: \u2028 <b>", Tools: []modelstub.ToolCall{bash(t, "echo '\"é\"'; echo oops >&2; false")},
			Usage: modelstub.Usage{Input: 10, Output: 4}},
		modelstub.Step{Text: "So.", Usage: modelstub.Usage{Input: 10, Output: 4}},
	)
	b, c := claudeBench(t, model)
	said := filepath.Join(b.home, "said")
	wrapper := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\n'"+c.Program+"' \"$@\" | tee '"+said+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Program = wrapper
	_, sink := run(t, c, b.round(t, "Say something odd."))
	data, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for line := range strings.Lines(string(data)) {
		var m struct{ Type, Subtype string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if m.Type != "stream_event" && !strings.HasPrefix(m.Type, "control_") && m.Subtype != "thinking_tokens" {
			want = append(want, strings.TrimSuffix(line, "\n"))
		}
	}
	for _, r := range sink.records {
		got = append(got, string(r.Payload))
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 6 {
		t.Errorf("%d records\n%s", len(want), diff)
	}
}

func TestClaudeResumesAndItsUsageAddsUp(t *testing.T) {
	t.Parallel()
	model := play(t,
		modelstub.Step{Text: "First.", Usage: modelstub.Usage{Input: 100, CacheCreation: 11, Output: 10}},
		modelstub.Step{Text: "Second.", Usage: modelstub.Usage{Input: 20, CacheRead: 111, Output: 5}},
		modelstub.Step{Text: "Third.", Usage: modelstub.Usage{Input: 3, CacheRead: 130, Output: 2}},
	)
	b, c := claudeBench(t, model)
	_, sink := run(t, c, b.round(t, "Begin."))
	session := sink.session()

	round := b.next(t, session, "Please make it blue.")
	round.Offer.Context.Feedback = append(round.Offer.Context.Feedback, protocol.Feedback{
		Actor: "linus", Kind: protocol.FeedbackReview, State: "changes_requested", Body: "And round.",
	})
	got, sink := run(t, c, round)
	if sink.session() != session || got.Summary != "Second." {
		t.Errorf("session %s went on as %s: %+v", session, sink.session(), got)
	}
	want := protocol.ModelUsage{InputTokens: 120, CacheReadTokens: 111, CacheCreationTokens: 11, OutputTokens: 15}
	if diff := cmp.Diff(want, totals(t, got, session, sonnet)); diff != "" {
		t.Error(diff)
	}
	// Both messages were repeated as what they are, and answered together.
	if diff := cmp.Diff([]int{1, 2}, sink.echoes()); diff != "" {
		t.Error(diff)
	}
	asked := string(model.Answered()[1].Body)
	for _, words := range []string{"Begin.", "First.", "Please make it blue.", "And round."} {
		if !strings.Contains(asked, words) {
			t.Errorf("the model was not told: %s", words)
		}
	}

	// Another process of the agent knows what the session used before.
	again := &claude.Claude{Program: c.Program, Home: b.home, Env: b.env, Log: logTo(t)}
	got, _ = run(t, again, b.next(t, session, "Thanks."))
	want = protocol.ModelUsage{InputTokens: 123, CacheReadTokens: 241, CacheCreationTokens: 11, OutputTokens: 17}
	if diff := cmp.Diff(want, totals(t, got, session, sonnet)); diff != "" {
		t.Error(diff)
	}
}

func TestClaudeStartsALostSessionAnew(t *testing.T) {
	t.Parallel()
	model := play(t, modelstub.Step{Text: "Done again.", Usage: modelstub.Usage{Input: 9, Output: 4}})
	b, c := claudeBench(t, model)
	const gone = "6a1f0f4e-90a5-4d5e-8c39-0d8f3f1b2c11"
	round := b.next(t, gone, "Please make it blue.")
	round.Offer.Context.Journal = append(round.Offer.Context.Journal,
		protocol.JournalEntry{At: "2026-03-01T11:00:00.000Z", Author: "ada", Text: "Made it red on branch x."})
	got, sink := run(t, c, round)
	if got.Failed != "" || got.Summary != "Done again." || sink.session() == gone {
		t.Errorf("%+v in session %s", got, sink.session())
	}
	if len(sink.journal) != 1 || !strings.Contains(sink.journal[0], gone) {
		t.Errorf("journal %q", sink.journal)
	}
	totals(t, got, sink.session(), sonnet)
	asked := string(model.Answered()[0].Body)
	for _, words := range []string{"What was asked at first.", "Made it red on branch x.", "Please make it blue."} {
		if !strings.Contains(asked, words) {
			t.Errorf("the model was not told: %s", words)
		}
	}
	if diff := cmp.Diff([]int{0, 1}, sink.echoes()); diff != "" {
		t.Error(diff)
	}
}

func TestClaudeIsInterruptedAndGoesOn(t *testing.T) {
	t.Parallel()
	gate := modelstub.NewGate()
	model := play(t,
		modelstub.Step{Text: "I begin with a long answer that will not come to its end.", Gate: gate,
			Usage: modelstub.Usage{Input: 500, CacheRead: 5, Output: 90}},
		modelstub.Step{Text: "Now it is done.", Usage: modelstub.Usage{Input: 30, Output: 6}},
	)
	b, c := claudeBench(t, model)
	round := b.round(t, "Write much.")
	round.Model = sonnet
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sink := newRecorder(t)
	go func() {
		<-gate.Reached()
		sink.await("the first words", func() bool { return len(sink.deltas) > 0 })
		stop()
	}()
	begun := time.Now()
	got, err := c.Run(ctx, round, sink)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > patience {
		t.Errorf("it took %s to stop", took)
	}
	if got.Failed != "" || got.Status != protocol.HandbackInterrupted || !strings.Contains(got.Summary, "I begin") {
		t.Errorf("%+v", got)
	}
	session := sink.session()
	// The call that was cut short has used what it read, and something of what it would have written; versions of Claude Code guess how much.
	used := got.Usage[0].Models[sonnet]
	written := used.OutputTokens
	if used.InputTokens != 500 || used.CacheReadTokens != 5 || written < 1 || written >= 90 || got.Usage[0].Session != session {
		t.Errorf("usage %+v", got.Usage)
	}
	if left := processesIn(t, b.home); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}

	yes := true
	round = b.next(t, session, "")
	round.Offer.Interrupted = &yes
	got, sink = run(t, c, round)
	if got.Status != protocol.HandbackDone || got.Summary != "Now it is done." || sink.session() != session {
		t.Errorf("%+v in session %s", got, sink.session())
	}
	used = got.Usage[0].Models[sonnet]
	if used.InputTokens != 530 || used.CacheReadTokens != 5 || used.OutputTokens != written+6 {
		t.Errorf("usage %+v", got.Usage)
	}
	asked := string(model.Answered()[1].Body)
	for _, words := range []string{"Write much.", "Your last round was cut short"} {
		if !strings.Contains(asked, words) {
			t.Errorf("the model was not told: %s", words)
		}
	}
}

func TestClaudeThatIsKilledKeepsWhatItUsed(t *testing.T) {
	t.Parallel()
	gate := modelstub.NewGate()
	model := play(t,
		modelstub.Step{Text: "One step.", Tools: []modelstub.ToolCall{bash(t, "true")}, Usage: modelstub.Usage{Input: 70, Output: 8}},
		modelstub.Step{Text: "A second one that hangs.", Gate: gate, Usage: modelstub.Usage{Input: 90, Output: 50}},
		modelstub.Step{Text: "Fine.", Usage: modelstub.Usage{Input: 6, Output: 3}},
	)
	b, c := claudeBench(t, model)
	sink := newRecorder(t)
	go func() {
		<-gate.Reached()
		sink.await("the second answer", func() bool {
			return slices.ContainsFunc(sink.deltas, func(d feed.Delta) bool { return d.Text != nil && strings.HasPrefix(*d.Text, "A second") })
		})
		for _, pid := range processesIn(t, b.home) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}()
	got := runWith(t, c, b.round(t, "Go."), sink)
	if !strings.Contains(got.Failed, "SIGKILL") {
		t.Errorf("%+v", got)
	}
	session := sink.session()
	used := got.Usage[0].Models[sonnet]
	if used.InputTokens != 70+90 || used.OutputTokens != 8+1 || used.CostUSD != nil {
		t.Errorf("usage %+v", used)
	}
	got, _ = run(t, c, b.next(t, session, "Again."))
	used = got.Usage[0].Models[sonnet]
	if got.Summary != "Fine." || used.InputTokens != 160+6 || used.OutputTokens != 9+3 || used.CostUSD != nil {
		t.Errorf("%+v", got)
	}
}

func TestClaudeNeverWaitsForPermission(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.txt")
	for name, test := range map[string]struct {
		person  protocol.TeamPerson
		command string
		made    bool
	}{
		"approvals are given if nothing is said":       {protocol.TeamPerson{}, "printf x > " + outside, true},
		"denied, what nothing allows":                  {protocol.TeamPerson{Approvals: "deny"}, "printf x > " + outside, false},
		"denied, but this tool is allowed":             {protocol.TeamPerson{Approvals: "deny", AllowedTools: []string{"Bash(touch made.txt)"}}, "touch made.txt", true},
		"denied, and a list cannot pass for an option": {protocol.TeamPerson{Approvals: "deny", AllowedTools: []string{"--dangerously-skip-permissions"}}, "printf x > " + outside, false},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(outside)
			model := play(t,
				modelstub.Step{Text: "I try.", Tools: []modelstub.ToolCall{bash(t, test.command)}, Usage: modelstub.Usage{Input: 10, Output: 4}},
				modelstub.Step{Text: "So be it.", Usage: modelstub.Usage{Input: 10, Output: 4}},
			)
			b, c := claudeBench(t, model)
			round := b.round(t, "Try it.")
			test.person.Handle = "ada"
			round.Person = test.person
			got, sink := run(t, c, round)
			if got.Summary != "So be it." {
				t.Errorf("%+v", got)
			}
			_, err := os.Stat(outside)
			if errors.Is(err, fs.ErrNotExist) {
				_, err = os.Stat(filepath.Join(b.dir, "made.txt"))
			}
			if made := err == nil; made != test.made {
				t.Errorf("the file was made: %v", made)
			}
			denied := strings.Contains(string(model.Answered()[1].Body), "The team does not allow this tool here")
			if denied == test.made {
				t.Errorf("the model was told that it was denied: %v", denied)
			}
			for _, r := range sink.records {
				if strings.HasPrefix(r.Type, "control_") {
					t.Errorf("a record of the talk with the program: %s", r.Payload)
				}
			}
		})
	}
}

func TestClaudeIsToldThatNobodyAnswersQuestions(t *testing.T) {
	t.Parallel()
	model := play(t,
		modelstub.Step{Tools: []modelstub.ToolCall{call(t, "AskUserQuestion", map[string]any{"questions": []any{}})}, Usage: modelstub.Usage{Input: 10, Output: 4}},
		modelstub.Step{Text: "Then I decide.", Usage: modelstub.Usage{Input: 10, Output: 4}},
	)
	b, c := claudeBench(t, model)
	got, _ := run(t, c, b.round(t, "Ask."))
	if got.Summary != "Then I decide." {
		t.Errorf("%+v", got)
	}
	var asked struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(model.Answered()[0].Body, &asked); err != nil {
		t.Fatal(err)
	}
	for _, tool := range asked.Tools {
		if slices.Contains([]string{"AskUserQuestion", "ScheduleWakeup", "CronCreate", "ExitPlanMode"}, tool.Name) {
			t.Errorf("the model was offered the tool %s", tool.Name)
		}
	}
}

func TestClaudeEndsAtItsMostTurns(t *testing.T) {
	t.Parallel()
	step := modelstub.Step{Text: "On and on.", Tools: []modelstub.ToolCall{bash(t, "true")}, Usage: modelstub.Usage{Input: 10, Output: 4}}
	model := play(t, step, step)
	b, c := claudeBench(t, model)
	round := b.round(t, "Never end.")
	round.Person.MaxTurns = 2
	got, sink := run(t, c, round)
	if !strings.Contains(got.Failed, "2 model calls (maxTurns)") {
		t.Errorf("%+v", got)
	}
	if used := totals(t, got, sink.session(), sonnet); used.InputTokens != 20 || used.OutputTokens != 8 {
		t.Errorf("usage %+v", used)
	}
}

func TestClaudeCallsAnMCPServerAndNoSecretIsWritten(t *testing.T) {
	t.Parallel()
	const secret = "sesame-opens-this"
	model := play(t,
		modelstub.Step{Text: "I call it.", Tools: []modelstub.ToolCall{call(t, "mcp__probe__tell", map[string]any{})}, Usage: modelstub.Usage{Input: 10, Output: 4}},
		modelstub.Step{Text: "Now I know.", Tools: []modelstub.ToolCall{bash(t, "cp $BULLPEN_RESULT_FILE/../mcp.json . 2>/dev/null || cp $(dirname $BULLPEN_RESULT_FILE)/mcp.json .")},
			Usage: modelstub.Usage{Input: 10, Output: 4}},
		modelstub.Step{Text: "Done.", Usage: modelstub.Usage{Input: 10, Output: 4}},
	)
	b, c := claudeBench(t, model, "VAULT_TOKEN="+secret)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	round := b.round(t, "Call the server.")
	round.Person.MCPServers = []protocol.TeamMCPServer{{
		Name: "probe", Command: self, Env: map[string]string{envRole: roleMCP, mcpSecret: "${VAULT_TOKEN}"},
	}}
	got, _ := run(t, c, round)
	if got.Summary != "Done." {
		t.Errorf("%+v", got)
	}
	if asked := string(model.Answered()[1].Body); !strings.Contains(asked, "the secret is "+secret) {
		t.Error("the server did not answer the model, or without the variable")
	}
	file := filepath.Join(b.dir, "mcp.json")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(config), "${VAULT_TOKEN}") || strings.Contains(string(config), secret) {
		t.Errorf("the file of servers is %s, %v", config, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v", info.Mode())
	}
}

// limitHeaders are those of the API for a subscription whose window of five hours is so full.
func limitHeaders(status string, utilization float64, resets time.Time) map[string]string {
	const prefix = "anthropic-ratelimit-unified-"
	at := strconv.FormatInt(resets.Unix(), 10)
	h := map[string]string{
		prefix + "status": status, prefix + "reset": at, prefix + "representative-claim": "five_hour",
		prefix + "5h-utilization": fmt.Sprint(utilization), prefix + "5h-reset": at,
	}
	if status == "allowed_warning" {
		h[prefix+"5h-surpassed-threshold"] = "0.9"
	}
	return h
}

func TestClaudeTellsHowFullTheSubscriptionIs(t *testing.T) {
	t.Parallel()
	resets := time.Now().Add(90 * time.Minute).Truncate(time.Second)
	model := play(t, modelstub.Step{Text: "Fine.", Usage: modelstub.Usage{Input: 10, Output: 4}, Header: limitHeaders("allowed_warning", 0.93, resets)})
	b, c := claudeBench(t, model)
	b.env = append(slices.DeleteFunc(b.env, func(e string) bool { return strings.HasPrefix(e, "ANTHROPIC_API_KEY=") }), "CLAUDE_CODE_OAUTH_TOKEN=made-up")
	got, sink := run(t, c, b.round(t, "Go."))
	if got.Summary != "Fine." {
		t.Errorf("%+v", got)
	}
	want := []protocol.UsageWindow{{Name: "five_hour", Utilization: 0.93, ResetsAt: protocol.FormatTime(resets)}}
	if len(sink.windows) == 0 || !cmp.Equal(want, sink.windows[len(sink.windows)-1]) {
		t.Errorf("windows %+v, want %+v", sink.windows, want)
	}
	if len(sink.ofType("rate_limit")) == 0 {
		t.Error("no record of the limit")
	}
}

func TestALimitEndsClaudesRoundAndCostsNoAttempt(t *testing.T) {
	t.Parallel()
	resets := time.Now().Add(90 * time.Minute).Truncate(time.Second)
	refusal := &modelstub.Refusal{Status: http.StatusTooManyRequests, Message: "This request would exceed a limit."}
	for name, test := range map[string]struct {
		credential string
		header     map[string]string
		window     protocol.UsageWindow
	}{
		"of a subscription, with its reset": {"CLAUDE_CODE_OAUTH_TOKEN=made-up", limitHeaders("rejected", 1, resets),
			protocol.UsageWindow{Name: "five_hour", Utilization: 1, ResetsAt: protocol.FormatTime(resets)}},
		"of a key, without one": {"ANTHROPIC_API_KEY=made-up", map[string]string{"retry-after": "0"},
			protocol.UsageWindow{Name: "requests", Utilization: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := []modelstub.Step{{Refusal: refusal, Header: test.header}}
			if strings.HasPrefix(test.credential, "ANTHROPIC_API_KEY") {
				steps = append(steps, steps[0]) // Claude Code tries once more
			}
			model := play(t, append(steps, modelstub.Step{Text: "On it goes.", Usage: modelstub.Usage{Input: 10, Output: 4}})...)
			b, c := claudeBench(t, model)
			b.env = append(slices.DeleteFunc(b.env, func(e string) bool { return strings.HasPrefix(e, "ANTHROPIC_API_KEY=") }),
				test.credential, "CLAUDE_CODE_MAX_RETRIES=1")
			got, sink := run(t, c, b.round(t, "Go."))
			if got.Failed != "" || got.Status != protocol.HandbackInterrupted || !strings.Contains(got.Summary, "limit was reached") {
				t.Errorf("%+v", got)
			}
			if last := sink.windows; len(last) == 0 || !cmp.Equal([]protocol.UsageWindow{test.window}, last[len(last)-1]) {
				t.Errorf("windows %+v", last)
			}
			yes := true
			round := b.next(t, sink.session(), "")
			round.Offer.Interrupted = &yes
			if got, _ := run(t, c, round); got.Summary != "On it goes." {
				t.Errorf("afterwards: %+v", got)
			}
		})
	}
}

func TestClaudeTriesAnOverloadedModelAgain(t *testing.T) {
	t.Parallel()
	model := play(t,
		modelstub.Step{Refusal: &modelstub.Refusal{Status: 529, Message: "Overloaded"}, Header: map[string]string{"retry-after": "0"}},
		modelstub.Step{Refusal: &modelstub.Refusal{Status: 500, Message: "Oops"}, Header: map[string]string{"retry-after": "0"}},
		modelstub.Step{Text: "There it is.", Usage: modelstub.Usage{Input: 10, Output: 4}},
	)
	b, c := claudeBench(t, model)
	got, sink := run(t, c, b.round(t, "Go."))
	if got.Summary != "There it is." {
		t.Errorf("%+v", got)
	}
	if used := totals(t, got, sink.session(), sonnet); used.InputTokens != 10 || used.OutputTokens != 4 {
		t.Errorf("usage %+v", used)
	}
	if !slices.ContainsFunc(sink.progress, func(s string) bool {
		return strings.HasPrefix(s, "The model's API answered with status 529; try 1 of ")
	}) {
		t.Errorf("progress %q", sink.progress)
	}
}

func TestClaudesErrorsSayWhatHelps(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refusal modelstub.Refusal
		want    string
	}{
		"a key that is refused":   {modelstub.Refusal{Status: 401, Message: "invalid x-api-key"}, "Check ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN"},
		"no credit":               {modelstub.Refusal{Status: 400, Message: "Your credit balance is too low to access the Anthropic API."}, "Add credit"},
		"a model that is unknown": {modelstub.Refusal{Status: 404, Message: "model: " + sonnet}, "Set another one as the person's model"},
		"an API that is down":     {modelstub.Refusal{Status: 503, Message: "down"}, "the round is tried again later"},
		"too much load":           {modelstub.Refusal{Status: 529, Message: "Overloaded"}, "overloaded"},
		"a request that is bad":   {modelstub.Refusal{Status: 400, Message: "messages: at least one is odd"}, "messages: at least one is odd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := modelstub.New()
			defer model.Close()
			for range 10 {
				model.Add(modelstub.Step{Refusal: &test.refusal, Header: map[string]string{"retry-after": "0"}})
			}
			b, c := claudeBench(t, model, "CLAUDE_CODE_MAX_RETRIES=1")
			got, _ := run(t, c, b.round(t, "Go."))
			if got.Status != "" || !strings.Contains(got.Failed, test.want) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestClaudesResultFileSaysHowTheRoundEnded(t *testing.T) {
	t.Parallel()
	// A step writes the result where it is not empty.
	type step struct{ writes, says string }
	for name, test := range map[string]struct {
		steps []step
		want  runtime.Result
	}{
		"as the model says": {[]step{
			{writes: `{"status":"waiting","summary":"S","toReview":["branch x"],"links":[{"url":"https://example.com/1","title":"T"}]}`},
			{says: "Said."},
		}, runtime.Result{Status: "waiting", Summary: "S", ToReview: []string{"branch x"}, Links: []protocol.Link{{URL: "https://example.com/1", Title: "T"}}}},
		"after it was asked to mend it": {[]step{
			{writes: `{"status":"finished"}`}, {says: "Said."}, {writes: `{"status":"blocked"}`}, {says: "Mended."},
		}, runtime.Result{Status: "blocked", Summary: "Mended."}},
		"as a failure where it was not mended": {[]step{
			{writes: `{"status":"interrupted"}`}, {says: "Said."}, {says: "It is good as it is."},
		}, runtime.Result{Failed: "Claude Code finished, but the result that the model left cannot be used: status must be done, waiting, blocked or silent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := play(t)
			b, c := claudeBench(t, model)
			round := b.round(t, "Go.")
			round.Person.Approvals = "deny" // to say how it ended is allowed all the same
			file := filepath.Join(round.Scratch, "result.json")
			for _, s := range test.steps {
				step := modelstub.Step{Text: s.says, Usage: modelstub.Usage{Input: 10, Output: 4}}
				if s.writes != "" {
					step.Tools = []modelstub.ToolCall{call(t, "Write", map[string]any{"file_path": file, "content": s.writes})}
				}
				model.Add(step)
			}
			got, _ := run(t, c, round)
			if system := string(model.Answered()[0].Body); !strings.Contains(system, file) {
				t.Error("the model was not told where its result goes")
			}
			got.Usage = nil
			if len(got.Links) == 0 {
				got.Links = nil
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClaudesBackgroundWork(t *testing.T) {
	t.Parallel()
	usage := modelstub.Usage{Input: 10, Output: 4}
	background := func(command string) modelstub.ToolCall {
		return call(t, "Bash", map[string]any{"command": command, "description": "later", "run_in_background": true})
	}
	t.Run("is waited for a while, and its end is answered", func(t *testing.T) {
		model := play(t,
			modelstub.Step{Tools: []modelstub.ToolCall{background("sleep 1; printf x > later.txt")}, Usage: usage},
			modelstub.Step{Text: "I wait.", Usage: usage},
			modelstub.Step{Text: "It is over.", Usage: usage},
		)
		b, c := claudeBench(t, model)
		got, sink := run(t, c, b.round(t, "Go."))
		if got.Summary != "It is over." {
			t.Errorf("%+v", got)
		}
		if used := totals(t, got, sink.session(), sonnet); used.InputTokens != 30 {
			t.Errorf("usage %+v", used)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "later.txt")); err != nil {
			t.Error(err)
		}
	})
	t.Run("does not hold the round if it never ends", func(t *testing.T) {
		model := play(t,
			modelstub.Step{Tools: []modelstub.ToolCall{background("sleep 1000")}, Usage: usage},
			modelstub.Step{Text: "The server runs.", Usage: usage},
		)
		b, c := claudeBench(t, model)
		got, _ := run(t, c, b.round(t, "Go."))
		if got.Summary != "The server runs." {
			t.Errorf("%+v", got)
		}
		if left := processesIn(t, b.home); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
	})
}

func TestClaudesHelpersAreCounted(t *testing.T) {
	t.Parallel()
	ours := func(body []byte) bool { return strings.Contains(string(body), "How a round ends") }
	helpers := func(body []byte) bool { return !ours(body) }
	helper := map[string]any{"description": "look", "prompt": "Look at it.", "subagent_type": "general-purpose", "run_in_background": true}
	model := play(t,
		modelstub.Step{Match: ours, Tools: []modelstub.ToolCall{call(t, "Task", helper)}, Usage: modelstub.Usage{Input: 100, Output: 20}},
		modelstub.Step{Match: ours, Text: "I wait.", Usage: modelstub.Usage{Input: 30, Output: 1}},
		modelstub.Step{Match: helpers, Text: "I looked at it for long.", Fragment: 4, Pause: 200 * time.Millisecond, Usage: modelstub.Usage{Input: 1000, Output: 200}},
		modelstub.Step{Match: ours, Text: "It was looked at.", Usage: modelstub.Usage{Input: 7, Output: 3}},
	)
	b, c := claudeBench(t, model)
	got, sink := run(t, c, b.round(t, "Have it looked at."))
	if got.Summary != "It was looked at." {
		t.Errorf("%+v", got)
	}
	if used := totals(t, got, sink.session(), sonnet); used.InputTokens != 1137 || used.OutputTokens != 224 {
		t.Errorf("usage %+v", used)
	}
}

func TestClaudeIsToldModelAndEffort(t *testing.T) {
	t.Parallel()
	for effort, want := range map[string]string{
		"": "adaptive ", "max": "adaptive max", "low": "adaptive low", "none": "disabled ",
	} {
		t.Run("effort "+effort, func(t *testing.T) {
			t.Parallel()
			model := play(t, modelstub.Step{Text: "Fine.", Usage: modelstub.Usage{Input: 10, Output: 4}})
			b, c := claudeBench(t, model)
			round := b.round(t, "Go.")
			round.Model, round.Person.Effort = "claude-opus-4-6", effort
			run(t, c, round)
			var asked struct {
				Model    string `json:"model"`
				Thinking struct {
					Type string `json:"type"`
				} `json:"thinking"`
				Output struct {
					Effort string `json:"effort"`
				} `json:"output_config"`
			}
			if err := json.Unmarshal(model.Answered()[0].Body, &asked); err != nil {
				t.Fatal(err)
			}
			got := asked.Thinking.Type + " " + asked.Output.Effort
			if effort == "" || effort == "none" {
				got = asked.Thinking.Type + " " // the effort is Claude Code's own then
			}
			if asked.Model != "claude-opus-4-6" || got != want {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

func TestClaudeIsFitWithAKey(t *testing.T) {
	t.Parallel()
	b, c := claudeBench(t, play(t))
	for _, check := range c.Doctor(t.Context()) {
		if check.Status != protocol.CheckOK {
			t.Errorf("%+v", check)
		}
	}
	c.Env = slices.DeleteFunc(b.env, func(e string) bool { return strings.HasPrefix(e, "ANTHROPIC_API_KEY=") })
	if checks := c.Doctor(t.Context()); checks[1].Status != protocol.CheckFail || !strings.Contains(checks[1].Fix, "ANTHROPIC_API_KEY") {
		t.Errorf("without a key: %+v", checks)
	}
}

// processesIn lists the processes whose home is a folder.
func processesIn(t *testing.T, home string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && slices.Contains(strings.Split(string(environ), "\x00"), "HOME="+home) {
			pids = append(pids, pid)
		}
	}
	return pids
}
