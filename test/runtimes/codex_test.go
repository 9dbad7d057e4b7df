package runtimes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/codex"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

// A model that Codex does not know gets its plain tools; one that it knows has a tool of its own for patches.
const (
	plainModel = "stand-in-1"
	patchModel = "gpt-5.5"
)

// codexKey is the variable that has the key of the tests' model provider.
const codexKey = "STAND_IN_KEY"

// codexBench is a bench whose Codex asks a stand-in. more is further configuration of the user.
func codexBench(t *testing.T, model *modelstub.Server, more string, env ...string) (*bench, *codex.Codex) {
	t.Helper()
	b := newBench(t, append([]string{codexKey + "=made-up"}, env...)...)
	b.configure(t, model, more)
	return b, &codex.Codex{Program: program(t, "codex"), Env: b.env, Version: "test", Log: logTo(t)}
}

// configure writes the user's config.toml.
func (b *bench) configure(t *testing.T, model *modelstub.Server, more string) {
	t.Helper()
	home := filepath.Join(b.home, ".codex")
	config := fmt.Sprintf("model_provider = \"stand-in\"\n%s\n[model_providers.stand-in]\nname = \"Stand-in\"\nbase_url = %q\n"+
		"wire_api = \"responses\"\nenv_key = %q\nrequest_max_retries = 2\nstream_max_retries = 2\n", more, model.URL+"/v1", codexKey)
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// codexRound is a first round on the plain model.
func (b *bench) codexRound(t *testing.T, asks string) runtime.Round {
	t.Helper()
	round := b.round(t, asks)
	round.Model = plainModel
	return round
}

// codexNext is a round that goes on with a thread.
func (b *bench) codexNext(t *testing.T, thread, said string) runtime.Round {
	t.Helper()
	round := b.next(t, thread, said)
	round.Model = plainModel
	return round
}

// shell is a call of Codex's tool for commands.
func shell(t *testing.T, command string) modelstub.ToolCall {
	return call(t, "exec_command", map[string]any{"cmd": command, "yield_time_ms": 20_000})
}

// background is a command that goes on when the model does.
func background(t *testing.T, command string) modelstub.ToolCall {
	return call(t, "exec_command", map[string]any{"cmd": command, "yield_time_ms": 250})
}

// steps are answers of the model that end with one in words.
func steps(last string, calls ...modelstub.ToolCall) []modelstub.Step {
	var all []modelstub.Step
	for _, c := range calls {
		all = append(all, modelstub.Step{Tools: []modelstub.ToolCall{c}, Usage: modelstub.Usage{Input: 100, Output: 10}})
	}
	return append(all, modelstub.Step{Text: last, Usage: modelstub.Usage{Input: 100, Output: 10}})
}

// codexTotals are the tokens that a thread used, by model.
func codexTotals(t *testing.T, got runtime.Result, thread string) map[string]protocol.ModelUsage {
	t.Helper()
	for _, usage := range got.Usage {
		if usage.Session == thread {
			return usage.Models
		}
	}
	t.Fatalf("usage %+v has no thread %s", got.Usage, thread)
	return nil
}

// asked is what a request told the model: the texts of its input, those of developers first.
func asked(t *testing.T, r modelstub.Request) string {
	t.Helper()
	var body struct {
		Input []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Output  json.RawMessage `json:"output"`
		} `json:"input"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, item := range body.Input {
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(item.Content, &parts) == nil {
			for _, part := range parts {
				fmt.Fprintf(&text, "%s: %s\n", item.Role, part.Text)
			}
		}
		if len(item.Output) > 0 {
			fmt.Fprintf(&text, "output: %s\n", item.Output)
		}
	}
	return text.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestCodexWorksARoundThatChangesAFile(t *testing.T) {
	model := play(t,
		modelstub.Step{
			Thinking: "**Reading** the order\nIn detail.\n---\n**Writing** the file", Text: "I write the file now.", Fragment: 7,
			Tools: []modelstub.ToolCall{shell(t, `printf 'made in %s' "$BULLPEN_ITEM" > made.txt; basename "$BULLPEN_RESULT_FILE"`)},
			Usage: modelstub.Usage{Input: 100, CacheRead: 40, CacheCreation: 9, Output: 30, Reasoning: 12},
		},
		modelstub.Step{Text: "The file is there.", Usage: modelstub.Usage{Input: 20, CacheRead: 150, Output: 5}},
	)
	b, c := codexBench(t, model, "", "BULLPEN_ITEM=item-1")
	round := b.codexRound(t, "Please make the file.")
	round.Person.Effort = "low"
	got, sink := run(t, c, round)

	if text := read(t, filepath.Join(b.dir, "made.txt")); text != "made in item-1" {
		t.Errorf("the file says %q", text)
	}
	if got.Failed != "" || got.Status != protocol.HandbackDone || got.Summary != "The file is there." {
		t.Errorf("the round ended as %+v", got)
	}
	want := map[string]protocol.ModelUsage{plainModel: {InputTokens: 120, CacheReadTokens: 190, CacheCreationTokens: 9, OutputTokens: 35}}
	if diff := cmp.Diff(want, codexTotals(t, got, sink.session())); diff != "" {
		t.Error(diff)
	}
	if sink.sessions[0][1] != plainModel {
		t.Errorf("the session's model is %q", sink.sessions[0][1])
	}
	if text := sink.text(); text != "I write the file now.The file is there." {
		t.Errorf("watchers saw %q", text)
	}
	thoughts := sink.thinking()
	if !slices.Contains(thoughts, "**Reading** the order") || thoughts[len(thoughts)-1] != "**Writing** the file" ||
		slices.ContainsFunc(thoughts, func(s string) bool { return strings.Contains(s, "detail") || strings.Contains(s, "\n") }) {
		t.Errorf("watchers saw the thoughts %q", thoughts)
	}
	first, second := asked(t, model.Answered()[0]), asked(t, model.Answered()[1])
	for _, words := range []string{"developer: ## Who you are", "You are Ada", "user: # A thing to do", "Please make the file."} {
		if !strings.Contains(first, words) {
			t.Errorf("the model was not told %q:\n%s", words, first)
		}
	}
	if !strings.Contains(second, "result.json") {
		t.Errorf("the command did not have the result file:\n%s", second)
	}
	if !bytes.Contains(model.Answered()[0].Body, []byte(`"effort":"low"`)) {
		t.Error("the model was not told the effort")
	}
}

func TestCodexsNotificationsBecomeRecordsByteForByte(t *testing.T) {
	model := play(t, modelstub.Step{Thinking: "A thought", Text: "One moment.", Tools: []modelstub.ToolCall{shell(t, "echo out")}}, modelstub.Step{Text: "Done."})
	b, c := codexBench(t, model, "")
	// A program in between keeps what Codex prints.
	printed := filepath.Join(b.home, "printed")
	between := filepath.Join(b.home, "between")
	script := fmt.Sprintf("#!/bin/sh\nexec 3>&1\n%q \"$@\" | tee %q >&3\n", c.Program, printed)
	if err := os.WriteFile(between, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Program = between
	_, sink := run(t, c, b.codexRound(t, "Work."))

	var want []string
	for _, line := range strings.Split(strings.TrimSpace(read(t, printed)), "\n") {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(line, err)
		}
		if m.Method != "" && m.ID == nil && !strings.HasSuffix(strings.ToLower(m.Method), "delta") && m.Method != "item/reasoning/summaryPartAdded" {
			want = append(want, line)
		}
	}
	var payloads, types []string
	echoes := 0
	for _, r := range sink.records {
		payloads, types = append(payloads, string(r.Payload)), append(types, r.Type)
		if r.Source != feed.SourceCodex || r.Format != feed.FormatCodexAppServer {
			t.Errorf("a record of %s %s", r.Source, r.Format)
		}
		if r.Echo != nil {
			if *r.Echo != 0 || !strings.Contains(string(r.Payload), `"type":"userMessage"`) {
				t.Errorf("echo %d of %s", *r.Echo, r.Payload)
			}
			echoes++
		}
	}
	if diff := cmp.Diff(want, payloads); diff != "" {
		t.Error(diff)
	}
	for _, kind := range []string{
		"remoteControl/status/changed", "thread/started", "turn/started", "item/started", "item/completed", "thread/tokenUsage/updated",
		"thread/status/changed", "turn/completed",
	} {
		if !slices.Contains(types, kind) {
			t.Errorf("no record %s in %q", kind, types)
		}
	}
	if echoes != 2 {
		t.Errorf("%d records repeat the message, not its beginning and its end", echoes)
	}
}

func TestCodexReadsWhatTheRepositorySaysAndTheUsersConfigurationStaysAsItIs(t *testing.T) {
	for approvals, want := range map[string]bool{"allow": true, "deny": false} {
		t.Run(approvals, func(t *testing.T) {
			model := play(t, modelstub.Step{Text: "Read."})
			b, c := codexBench(t, model, "")
			git := func(args ...string) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", b.dir, "-c", "user.name=a", "-c", "user.email=a@localhost"}, args...)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %q: %v: %s", args, err, out)
				}
			}
			if err := os.WriteFile(filepath.Join(b.dir, "AGENTS.md"), []byte("Indent with tabs here.\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			git("init", "-q")
			git("add", "-A")
			git("commit", "-q", "-m", "Begin")
			tree := filepath.Join(t.TempDir(), "tree")
			git("worktree", "add", "-q", tree, "-b", "work")
			file := filepath.Join(b.home, ".codex", "config.toml")
			before := read(t, file)
			round := b.codexRound(t, "Read the rules.")
			round.Workdir, round.Person.Approvals = tree, approvals
			run(t, c, round)
			if told := asked(t, model.Answered()[0]); strings.Contains(told, "Indent with tabs here.") != want {
				t.Errorf("the model was told\n%s", told)
			}
			if after := read(t, file); after != before {
				t.Errorf("the user's configuration has become\n%s", after)
			}
		})
	}
}

func TestCodexResumesAndItsUsageAddsUp(t *testing.T) {
	model := play(t,
		modelstub.Step{Text: "First.", Usage: modelstub.Usage{Input: 100, CacheRead: 11, Output: 10}},
		modelstub.Step{Text: "Second.", Usage: modelstub.Usage{Input: 20, CacheRead: 111, Output: 5}},
		modelstub.Step{Text: "Third.", Usage: modelstub.Usage{Input: 3, CacheRead: 130, Output: 2}},
	)
	b, c := codexBench(t, model, "")
	got, sink := run(t, c, b.codexRound(t, "Begin."))
	thread := sink.session()
	want := map[string]protocol.ModelUsage{plainModel: {InputTokens: 100, CacheReadTokens: 11, OutputTokens: 10}}
	if diff := cmp.Diff(want, codexTotals(t, got, thread)); diff != "" {
		t.Error(diff)
	}

	round := b.codexNext(t, thread, "Please make it blue.")
	round.Offer.Context.Feedback = append(round.Offer.Context.Feedback, protocol.Feedback{
		Actor: "linus", Kind: protocol.FeedbackReview, State: "changes_requested", Body: "And round.",
	})
	got, sink = run(t, c, round)
	if sink.session() != thread || got.Summary != "Second." {
		t.Errorf("thread %s went on as %s: %+v", thread, sink.session(), got)
	}
	want = map[string]protocol.ModelUsage{plainModel: {InputTokens: 120, CacheReadTokens: 122, OutputTokens: 15}}
	if diff := cmp.Diff(want, codexTotals(t, got, thread)); diff != "" {
		t.Error(diff)
	}
	// Both messages are one to Codex, which repeats them as the first of them.
	if diff := cmp.Diff([]int{1, 1}, sink.echoes()); diff != "" {
		t.Error(diff)
	}
	told := asked(t, model.Answered()[1])
	for _, words := range []string{"Begin.", "First.", "Please make it blue.", "And round."} {
		if !strings.Contains(told, words) {
			t.Errorf("the model was not told %q:\n%s", words, told)
		}
	}

	// Another model's tokens are its own, also after a new life of the agent.
	again := &codex.Codex{Program: c.Program, Env: b.env, Log: logTo(t)}
	round = b.codexNext(t, thread, "And now quickly.")
	round.Model = patchModel
	got, sink = run(t, again, round)
	want = map[string]protocol.ModelUsage{
		plainModel: {InputTokens: 120, CacheReadTokens: 122, OutputTokens: 15},
		patchModel: {InputTokens: 3, CacheReadTokens: 130, OutputTokens: 2},
	}
	if diff := cmp.Diff(want, codexTotals(t, got, thread)); diff != "" {
		t.Error(diff)
	}
	if last := sink.sessions[len(sink.sessions)-1]; last != [2]string{thread, patchModel} {
		t.Errorf("the session is %v", last)
	}
}

func TestCodexIsToldInstructionsThatChanged(t *testing.T) {
	model := play(t, modelstub.Step{Text: "1"}, modelstub.Step{Text: "2"}, modelstub.Step{Text: "3"})
	b, c := codexBench(t, model, `developer_instructions = "The user's own words."`)
	round := b.codexRound(t, "Begin.")
	round.Role = &protocol.TeamRole{Name: "dev", Instructions: "Write short commits."}
	scratch := round.Scratch
	_, sink := run(t, c, round)
	thread := sink.session()
	for _, instructions := range []string{"Write short commits.", "Write long commits."} {
		round = b.codexNext(t, thread, "Go on.")
		round.Scratch = scratch // an item's is the same in every round
		round.Role = &protocol.TeamRole{Name: "dev", Instructions: instructions}
		run(t, c, round)
	}
	answered := model.Answered()
	if told := asked(t, answered[0]); !strings.Contains(told, "The user's own words.") || !strings.Contains(told, "Write short commits.") {
		t.Errorf("at first the model was told\n%s", told)
	}
	if told := asked(t, answered[1]); strings.Contains(told, "have changed") {
		t.Errorf("nothing has changed, and the model was told\n%s", told)
	}
	told := asked(t, answered[2])
	if !strings.Contains(told, "developer: Your instructions have changed.") || !strings.Contains(told, "Write long commits.") {
		t.Errorf("the model was not told what has changed:\n%s", told)
	}
}

func TestCodexIsInterruptedAndGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		step  func(t *testing.T, gate *modelstub.Gate) modelstub.Step
		ready func(r *recorder) bool
		usage int64
	}{
		"in the middle of a slow answer": {
			func(_ *testing.T, gate *modelstub.Gate) modelstub.Step {
				return modelstub.Step{Text: "It takes a long time to say all of this.", Gate: gate}
			},
			func(r *recorder) bool {
				return slices.ContainsFunc(r.deltas, func(d feed.Delta) bool { return d.Text != nil })
			},
			0,
		},
		"in the middle of a command": {
			func(t *testing.T, _ *modelstub.Gate) modelstub.Step {
				return modelstub.Step{Tools: []modelstub.ToolCall{shell(t, "echo $$ > pid; exec sleep 1000")}, Usage: modelstub.Usage{Input: 50, Output: 5}}
			},
			func(r *recorder) bool {
				return slices.ContainsFunc(r.progress, func(s string) bool { return strings.HasPrefix(s, "$ echo") })
			},
			50,
		},
	} {
		t.Run(name, func(t *testing.T) {
			gate := modelstub.NewGate()
			model := play(t, test.step(t, gate), modelstub.Step{Text: "Now it is done.", Usage: modelstub.Usage{Input: 7, Output: 1}})
			b, c := codexBench(t, model, "")
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			sink := newRecorder(t)
			go func() {
				sink.await("the middle", func() bool { return test.ready(sink) })
				stop()
			}()
			round := b.codexRound(t, "Work long.")
			began := time.Now()
			got, err := c.Run(ctx, round, sink)
			if err != nil || got.Status != protocol.HandbackInterrupted || got.Failed != "" {
				t.Fatalf("the round ended as %+v, %v", got, err)
			}
			if took := time.Since(began); took > patience {
				t.Errorf("it took %v", took)
			}
			completed := sink.ofType("turn/completed")
			if len(completed) != 1 || !bytes.Contains(completed[0], []byte(`"status":"interrupted"`)) {
				t.Errorf("the turn was not interrupted in order: %s", completed)
			}
			if left := processesIn(t, b.home); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
			if test.usage > 0 {
				if used := codexTotals(t, got, sink.session())[plainModel]; used.InputTokens != test.usage {
					t.Errorf("usage %+v", used)
				}
			}

			next := b.codexNext(t, sink.session(), "")
			interrupted := true
			next.Offer.Interrupted = &interrupted
			got, again := run(t, c, next)
			if got.Summary != "Now it is done." || again.session() != sink.session() {
				t.Errorf("it went on as %+v in %s", got, again.session())
			}
			if used := codexTotals(t, got, sink.session())[plainModel]; used.InputTokens != test.usage+7 {
				t.Errorf("usage %+v", used)
			}
			if told := asked(t, model.Answered()[1]); !strings.Contains(told, "Work long.") || !strings.Contains(told, "cut short") {
				t.Errorf("the model was told\n%s", told)
			}
		})
	}
}

func TestACodexThatIsKilledFailsTheRoundAndItsThreadGoesOn(t *testing.T) {
	gate := modelstub.NewGate()
	model := play(t,
		modelstub.Step{Tools: []modelstub.ToolCall{shell(t, "true")}, Usage: modelstub.Usage{Input: 50, Output: 5}},
		modelstub.Step{Text: "Half of an answer that is not finished.", Gate: gate},
		modelstub.Step{Text: "Here again.", Usage: modelstub.Usage{Input: 7, Output: 1}},
	)
	b, c := codexBench(t, model, "")
	go func() {
		<-gate.Reached()
		for _, pid := range processesIn(t, b.home) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // some of them die with the first one
		}
	}()
	got, sink := run(t, c, b.codexRound(t, "Work."))
	if !strings.Contains(got.Failed, "ended in the middle of the turn: killed by signal SIGKILL") {
		t.Errorf("the round ended as %+v", got)
	}
	got, again := run(t, c, b.codexNext(t, sink.session(), "Go on."))
	if got.Summary != "Here again." || again.session() != sink.session() {
		t.Errorf("it went on as %+v in %s", got, again.session())
	}
	if used := codexTotals(t, got, sink.session())[plainModel]; used.InputTokens != 57 || used.OutputTokens != 6 {
		t.Errorf("usage %+v", used)
	}
}

func TestALostThreadOfCodexStartsAnewWithTheJournal(t *testing.T) {
	for name, thread := range map[string]string{"that Codex does not have": "01a00000-0000-7000-8000-000000000000", "that is none": "nonsense"} {
		t.Run(name, func(t *testing.T) {
			model := play(t, modelstub.Step{Text: "Found my way.", Usage: modelstub.Usage{Input: 5, Output: 1}})
			b, c := codexBench(t, model, "")
			round := b.codexNext(t, thread, "Please make it blue.")
			round.Offer.Context.Journal = append(round.Offer.Context.Journal,
				protocol.JournalEntry{At: "2026-03-01T11:00:00.000Z", Author: "ada", Text: "The shed is in yard.go."})
			got, sink := run(t, c, round)
			if got.Summary != "Found my way." || sink.session() == thread {
				t.Errorf("it went on as %+v in %s", got, sink.session())
			}
			told := asked(t, model.Answered()[0])
			for _, words := range []string{"What was asked at first.", "The shed is in yard.go.", "Please make it blue.", "conversation is lost"} {
				if !strings.Contains(told, words) {
					t.Errorf("the model was not told %q:\n%s", words, told)
				}
			}
			if len(sink.journal) != 1 || !strings.Contains(sink.journal[0], thread) {
				t.Errorf("the journal has %q", sink.journal)
			}
		})
	}
}

func TestCodexsApprovalsAreAnsweredByThePolicy(t *testing.T) {
	patch := "*** Begin Patch\n*** Add File: new.txt\n+made\n*** End Patch\n"
	for name, test := range map[string]struct {
		approvals string
		tools     []string
		config    string
		model     string
		call      modelstub.ToolCall
		made      string
		denied    bool
	}{
		"a command is denied": {"deny", nil, "", plainModel, shell(t, "touch new.txt"), "new.txt", true},
		"a command of those that are allowed in any case": {"deny", []string{"exec_command(touch:*)"}, "", plainModel,
			shell(t, "touch new.txt"), "new.txt", false},
		"two commands in one are not the allowed one": {"deny", []string{"exec_command(true:*)"}, "", plainModel,
			shell(t, "true && touch new.txt"), "new.txt", true},
		"a patch is allowed":                               {"allow", nil, `sandbox_mode = "read-only"`, patchModel, call(t, "apply_patch", patch), "new.txt", false},
		"a patch is denied":                                {"deny", nil, "", patchModel, call(t, "apply_patch", patch), "new.txt", true},
		"a patch of a tool that may":                       {"deny", []string{"apply_patch"}, "", patchModel, call(t, "apply_patch", patch), "new.txt", false},
		"a command out of the sandbox that the user wants": {"allow", nil, `sandbox_mode = "read-only"`, plainModel, escalated(t, "touch new.txt"), "new.txt", false},
		"the command of the team may run":                  {"deny", nil, "", plainModel, shell(t, "ost progress thinking"), "ost-ran", false},
	} {
		t.Run(name, func(t *testing.T) {
			all := steps("That is that.", test.call)
			model := play(t, all...)
			b, c := codexBench(t, model, test.config)
			bin := filepath.Join(b.home, "bin")
			if err := os.Mkdir(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(bin, "ost"), []byte("#!/bin/sh\ntouch ost-ran\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			b.env = append(b.env, "PATH="+bin+":"+os.Getenv("PATH"))
			round := b.round(t, "Try.")
			round.Model, round.Person.Approvals, round.Person.AllowedTools = test.model, test.approvals, test.tools
			got, sink := run(t, c, round)
			if got.Summary != "That is that." {
				t.Errorf("the round ended as %+v", got)
			}
			_, err := os.Stat(filepath.Join(b.dir, test.made))
			if (err != nil) != test.denied {
				t.Errorf("denied: %v, but the file: %v; the model was told\n%s", test.denied, err, asked(t, model.Answered()[1]))
			}
			if n := len(sink.ofType("serverRequest/resolved")); n == 0 {
				t.Error("Codex asked nothing")
			}
			for _, r := range sink.records {
				if strings.HasSuffix(r.Type, "requestApproval") {
					t.Errorf("a question is a record: %s", r.Payload)
				}
			}
		})
	}
}

// escalated is a command that the model wants to run outside of the sandbox.
func escalated(t *testing.T, command string) modelstub.ToolCall {
	return call(t, "exec_command", map[string]any{
		"cmd": command, "yield_time_ms": 20_000, "sandbox_permissions": "require_escalated", "justification": "May I?",
	})
}

func TestCodexUsesMCPServersAndNoSecretIsWritten(t *testing.T) {
	const secret = "open-sesame-7261"
	for name, test := range map[string]struct {
		approvals string
		tools     []string
		want      string
	}{
		"allowed":                {"allow", nil, "the secret is " + secret},
		"denied":                 {"deny", nil, "user rejected MCP tool call"},
		"allowed in any case":    {"deny", []string{"mcp__probe"}, "the secret is " + secret},
		"one tool in any case":   {"deny", []string{"mcp__probe__tell"}, "the secret is " + secret},
		"another tool, however":  {"deny", []string{"mcp__probe__ask"}, "user rejected MCP tool call"},
		"allowed where not said": {"", nil, "the secret is " + secret},
	} {
		t.Run(name, func(t *testing.T) {
			gate := modelstub.NewGate()
			model := play(t, modelstub.Step{Tools: []modelstub.ToolCall{call(t, "tell", map[string]any{})}}, modelstub.Step{Text: "Told.", Gate: gate})
			b, c := codexBench(t, model, "", "VAULT_KEY="+secret)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			round := b.codexRound(t, "Ask the probe.")
			round.Person.Approvals, round.Person.AllowedTools = test.approvals, test.tools
			round.Person.MCPServers = []protocol.TeamMCPServer{{
				Name: "probe", Command: self, Env: map[string]string{envRole: roleMCP, mcpSecret: "${VAULT_KEY}"},
			}}
			seen := make(chan []string, 1)
			go func() {
				defer gate.Open()
				<-gate.Reached()
				var inArguments []string
				defer func() { seen <- inArguments }()
				for _, pid := range processesIn(t, b.home) {
					if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(line, []byte(secret)) {
						inArguments = append(inArguments, string(line))
					}
				}
			}()
			got, _ := run(t, c, round)
			if got.Summary != "Told." {
				t.Errorf("the round ended as %+v", got)
			}
			if told := asked(t, model.Answered()[1]); !strings.Contains(told, test.want) {
				t.Errorf("the model was told\n%s", told)
			}
			if inArguments := <-seen; len(inArguments) > 0 {
				t.Errorf("the secret is in the arguments %q", inArguments)
			}
			// The model heard the secret where it was allowed; a server that was configured with it and never called keeps it from the disk.
			if test.want != "the secret is "+secret {
				for _, file := range filesWith(t, b.home, secret) {
					t.Errorf("the secret is in %s", file)
				}
			}
		})
	}
}

func TestAVariableThatAnMCPServerWantsHasToBeThere(t *testing.T) {
	model := play(t)
	b, c := codexBench(t, model, "")
	round := b.codexRound(t, "Ask the probe.")
	round.Person.MCPServers = []protocol.TeamMCPServer{{Name: "probe", Command: "true", Env: map[string]string{"A": "${NOT_THERE}"}}}
	got, _ := run(t, c, round)
	if !strings.Contains(got.Failed, "the MCP server probe: A refers to the variable NOT_THERE") {
		t.Errorf("the round ended as %+v", got)
	}
}

// filesWith lists the files below a folder that have a text in them.
func filesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// codexLimits are headers that say how full the account's windows are.
func codexLimits(primary, secondary int, reset time.Time) map[string]string {
	return map[string]string{
		"x-codex-primary-used-percent": fmt.Sprint(primary), "x-codex-primary-window-minutes": "300",
		"x-codex-primary-reset-at":       fmt.Sprint(reset.Unix()),
		"x-codex-secondary-used-percent": fmt.Sprint(secondary), "x-codex-secondary-window-minutes": "10080",
		"x-codex-secondary-reset-at": fmt.Sprint(reset.Unix()),
	}
}

func TestCodexsLimits(t *testing.T) {
	reset := time.Now().Add(time.Hour).Truncate(time.Second)
	at := protocol.FormatTime(reset)
	model := play(t,
		modelstub.Step{Text: "Fine.", Header: codexLimits(42, 7, reset)},
		modelstub.Step{
			Refusal: &modelstub.Refusal{Status: 429, Body: fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"full","resets_at":%d}}`, reset.Unix())},
			Header:  codexLimits(100, 8, reset),
		},
		modelstub.Step{Text: "On it goes."},
	)
	b, c := codexBench(t, model, "")
	_, sink := run(t, c, b.codexRound(t, "Work."))
	want := []protocol.UsageWindow{{Name: "five_hour", Utilization: 0.42, ResetsAt: at}, {Name: "weekly", Utilization: 0.07, ResetsAt: at}}
	if diff := cmp.Diff([][]protocol.UsageWindow{want}, sink.windows); diff != "" {
		t.Error(diff)
	}

	got, limited := run(t, c, b.codexNext(t, sink.session(), "More."))
	if got.Failed != "" || got.Status != protocol.HandbackInterrupted || !strings.Contains(got.Summary, "limit of the model's provider was reached") {
		t.Errorf("the round ended as %+v", got)
	}
	want = []protocol.UsageWindow{{Name: "five_hour", Utilization: 1, ResetsAt: at}, {Name: "weekly", Utilization: 0.08, ResetsAt: at}}
	if diff := cmp.Diff(want, limited.windows[len(limited.windows)-1]); diff != "" {
		t.Error(diff)
	}
	if got, _ = run(t, c, b.codexNext(t, sink.session(), "")); got.Summary != "On it goes." {
		t.Errorf("it went on as %+v", got)
	}
}

func TestALimitOfCodexWithoutAWindowPausesToo(t *testing.T) {
	refusal := &modelstub.Refusal{Status: 429, Body: `{"error":{"type":"tokens","code":"rate_limit_exceeded","message":"Too many tokens in a minute."}}`}
	model := play(t,
		modelstub.Step{Refusal: refusal}, modelstub.Step{Text: "On it goes."}, modelstub.Step{Text: "And on."},
	)
	b, c := codexBench(t, model, "")
	got, sink := run(t, c, b.codexRound(t, "Work."))
	if got.Failed != "" || got.Status != protocol.HandbackInterrupted {
		t.Errorf("the round ended as %+v", got)
	}
	if diff := cmp.Diff([][]protocol.UsageWindow{{{Name: "requests", Utilization: 1}}}, sink.windows); diff != "" {
		t.Error(diff)
	}
	// A new life of the agent takes it back, once.
	again := &codex.Codex{Program: c.Program, Env: b.env, Log: logTo(t)}
	_, next := run(t, again, b.codexNext(t, sink.session(), ""))
	if diff := cmp.Diff([][]protocol.UsageWindow{{{Name: "requests"}}}, next.windows); diff != "" {
		t.Error(diff)
	}
	if _, last := run(t, again, b.codexNext(t, sink.session(), "More.")); len(last.windows) > 0 {
		t.Errorf("windows %v", last.windows)
	}
}

func TestCodexTriesErrorsOfTheServerAgain(t *testing.T) {
	model := play(t,
		modelstub.Step{Refusal: &modelstub.Refusal{Status: 500, Message: "broken"}},
		modelstub.Step{Text: "A start that is cut off", Cut: true},
		modelstub.Step{Text: "There.", Usage: modelstub.Usage{Input: 10, Output: 1}},
	)
	b, c := codexBench(t, model, "")
	got, sink := run(t, c, b.codexRound(t, "Work."))
	if got.Failed != "" || got.Summary != "There." {
		t.Errorf("the round ended as %+v", got)
	}
	if used := codexTotals(t, got, sink.session())[plainModel]; used.InputTokens != 10 {
		t.Errorf("usage %+v", used)
	}
	if errors := sink.ofType("error"); len(errors) == 0 || !bytes.Contains(errors[0], []byte(`"willRetry":true`)) {
		t.Errorf("the record does not tell of the error: %s", errors)
	}
	if !slices.ContainsFunc(sink.progress, func(s string) bool { return strings.HasPrefix(s, "Reconnecting... 1/2") }) {
		t.Errorf("people saw %q", sink.progress)
	}
}

func TestCodexsErrorsSayWhatHelps(t *testing.T) {
	for name, test := range map[string]struct {
		refusal modelstub.Refusal
		want    string
	}{
		"a key that is wrong": {modelstub.Refusal{Status: 401, Message: "Incorrect key."}, "refused the key in " + codexKey},
		"a model that is not there": {modelstub.Refusal{Status: 404, Type: "model_not_found", Message: "No such model."},
			"the model " + plainModel + " is not there"},
		"a bad request":        {modelstub.Refusal{Status: 400, Message: "That is no request."}, "That is no request."},
		"a server that is out": {modelstub.Refusal{Status: 500, Message: "broken"}, "the turn failed"},
	} {
		t.Run(name, func(t *testing.T) {
			model := modelstub.New()
			defer model.Close()
			for range 12 {
				model.Add(modelstub.Step{Refusal: &test.refusal})
			}
			b, c := codexBench(t, model, "")
			got, sink := run(t, c, b.codexRound(t, "Work."))
			if !strings.Contains(got.Failed, test.want) || got.Status != "" {
				t.Errorf("the round ended as %+v", got)
			}
			if errors := sink.ofType("error"); len(errors) == 0 || !bytes.Contains(errors[len(errors)-1], []byte(`"willRetry":false`)) {
				t.Errorf("the record does not tell of the error: %s", errors)
			}
		})
	}
}

func TestAThreadWithoutRoomIsLeft(t *testing.T) {
	failed := modelstub.Event{Data: `{"type":"response.failed","response":{"id":"r","error":{"code":"context_length_exceeded","message":"too long"}}}`}
	model := play(t,
		modelstub.Step{Text: "First.", Usage: modelstub.Usage{Input: 100, Output: 10}},
		modelstub.Step{Raw: []modelstub.Event{failed}},
		modelstub.Step{Text: "Anew.", Usage: modelstub.Usage{Input: 7, Output: 1}},
	)
	b, c := codexBench(t, model, "")
	_, sink := run(t, c, b.codexRound(t, "Begin."))
	thread := sink.session()
	got, _ := run(t, c, b.codexNext(t, thread, "More."))
	if !strings.Contains(got.Failed, "too long for the model") {
		t.Errorf("the round ended as %+v", got)
	}
	if used := codexTotals(t, got, thread)[plainModel]; used.InputTokens != 100 || used.OutputTokens != 10 {
		t.Errorf("usage %+v", used)
	}
	got, sink = run(t, c, b.codexNext(t, thread, "More."))
	if got.Summary != "Anew." || sink.session() == thread {
		t.Errorf("it went on as %+v in %s", got, sink.session())
	}
}

func TestCodexFallsBackToAnotherModel(t *testing.T) {
	model := play(t,
		modelstub.Step{Refusal: &modelstub.Refusal{Status: 503, Type: "server_is_overloaded", Message: "busy"}},
		modelstub.Step{Refusal: &modelstub.Refusal{Status: 503, Type: "server_is_overloaded", Message: "busy"}},
		modelstub.Step{Refusal: &modelstub.Refusal{Status: 503, Type: "server_is_overloaded", Message: "busy"}},
		modelstub.Step{Text: "The other one.", Usage: modelstub.Usage{Input: 3, Output: 1}},
	)
	b, c := codexBench(t, model, "")
	round := b.codexRound(t, "Work.")
	round.Person.FallbackModel = "stand-in-2"
	got, sink := run(t, c, round)
	if got.Summary != "The other one." {
		t.Errorf("the round ended as %+v", got)
	}
	want := map[string]protocol.ModelUsage{"stand-in-2": {InputTokens: 3, OutputTokens: 1}}
	if diff := cmp.Diff(want, codexTotals(t, got, sink.session())); diff != "" {
		t.Error(diff)
	}
}

func TestCommandsOfCodexThatRunOn(t *testing.T) {
	t.Run("end in the record when they end soon", func(t *testing.T) {
		model := play(t, steps("Started it.", background(t, "while [ ! -e go ]; do sleep 0.02; done; echo at last"))...)
		b, c := codexBench(t, model, "")
		sink := newRecorder(t)
		go func() {
			sink.await("the turn's end", func() bool {
				return slices.ContainsFunc(sink.records, func(r runtime.Record) bool { return r.Type == "turn/completed" })
			})
			if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}()
		if _, err := c.Run(t.Context(), b.codexRound(t, "Begin it."), sink); err != nil {
			t.Fatal(err)
		}
		types := []string{}
		late := false
		for _, r := range sink.records {
			types = append(types, r.Type)
			if r.Type == "item/completed" && bytes.Contains(r.Payload, []byte("at last")) && slices.Contains(types, "turn/completed") {
				late = true
			}
		}
		if !late {
			t.Errorf("the command's end does not follow that of the turn: %q", types)
		}
	})
	t.Run("do not hold the round when they do not", func(t *testing.T) {
		model := play(t, steps("Started it.", background(t, "exec sleep 1000"))...)
		b, c := codexBench(t, model, "")
		began := time.Now()
		got, _ := run(t, c, b.codexRound(t, "Begin it."))
		if got.Summary != "Started it." || time.Since(began) > patience {
			t.Errorf("after %v the round ended as %+v", time.Since(began), got)
		}
		if left := processesIn(t, b.home); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
	})
}

func TestCodexsOtherAgentsAreCountedOnce(t *testing.T) {
	for name, fork := range map[string]bool{"that begin with nothing": false, "that begin with the conversation": true} {
		t.Run(name, func(t *testing.T) {
			// The two threads ask side by side, so whose request comes first is open; but the other agent's is answered first.
			gates := []*modelstub.Gate{modelstub.NewGate(), modelstub.NewGate()}
			steps := []modelstub.Step{
				{Tools: []modelstub.ToolCall{shell(t, "true")}, Usage: modelstub.Usage{Input: 1000, Output: 100}},
				{Tools: []modelstub.ToolCall{call(t, "spawn_agent", map[string]any{"message": "Look at it.", "fork_context": fork})},
					Usage: modelstub.Usage{Input: 200, Output: 20}},
				{Text: "One.", Usage: modelstub.Usage{Input: 30, Output: 3}, Gate: gates[0]},
				{Text: "The other.", Usage: modelstub.Usage{Input: 40, Output: 4}, Gate: gates[1]},
				// The first agent may hear of the end of the other one after its own answer, and then answers once more.
				{Text: "I heard.", Usage: modelstub.Usage{Input: 5, Output: 1}},
			}
			model := modelstub.New(steps...)
			defer model.Close()
			b, c := codexBench(t, model, "")
			sink := newRecorder(t)
			go func() {
				<-gates[0].Reached()
				<-gates[1].Reached()
				other, own := 0, 1
				if model.Answered()[2].Header.Get("Thread-Id") == sink.session() {
					other, own = 1, 0
				}
				gates[other].Open()
				sink.await("the end of the other agent", func() bool {
					return slices.ContainsFunc(sink.records, func(r runtime.Record) bool { return r.Type == "turn/completed" })
				})
				gates[own].Open()
			}()
			got, err := c.Run(t.Context(), b.codexRound(t, "Have it looked at."), sink)
			if err != nil || got.Failed != "" || len(got.Usage) != 2 {
				t.Fatalf("the round ended as %+v, %v", got, err)
			}
			want, told := map[string]protocol.ModelUsage{}, map[string]protocol.ModelUsage{}
			for _, r := range model.Answered() {
				used := want[r.Header.Get("Thread-Id")]
				used.InputTokens += steps[r.Step].Usage.Input
				used.OutputTokens += steps[r.Step].Usage.Output
				want[r.Header.Get("Thread-Id")] = used
			}
			for _, usage := range got.Usage {
				told[usage.Session] = usage.Models[plainModel]
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCodexEndsAtItsMostCalls(t *testing.T) {
	t.Run("when it would go on", func(t *testing.T) {
		// A third request may be on its way before the second one's end is told; nobody answers it.
		model := modelstub.New(append(steps("", shell(t, "true"), shell(t, "true"))[:2], modelstub.Step{Text: "never said", Gate: modelstub.NewGate()})...)
		defer model.Close()
		b, c := codexBench(t, model, "")
		round := b.codexRound(t, "Never end.")
		round.Person.MaxTurns = 2
		got, sink := run(t, c, round)
		if !strings.Contains(got.Failed, "2 model calls") {
			t.Errorf("the round ended as %+v", got)
		}
		if used := codexTotals(t, got, sink.session())[plainModel]; used.InputTokens != 200 {
			t.Errorf("usage %+v", used)
		}
	})
	t.Run("but not when the last one is its end", func(t *testing.T) {
		model := play(t, steps("The end.", shell(t, "true"))...)
		b, c := codexBench(t, model, "")
		round := b.codexRound(t, "Do it in two.")
		round.Person.MaxTurns = 2
		if got, _ := run(t, c, round); got.Summary != "The end." {
			t.Errorf("the round ended as %+v", got)
		}
	})
}

func TestCodexsResultFileSaysHowTheRoundEnded(t *testing.T) {
	write := func(text string) modelstub.ToolCall {
		return shell(t, "cat > \"$BULLPEN_RESULT_FILE\" <<'END'\n"+text+"\nEND")
	}
	t.Run("as the model says", func(t *testing.T) {
		model := play(t, steps("I wait.", write(`{"status":"waiting","toReview":["a page"],"links":[{"url":"https://example.com/1"}]}`))...)
		b, c := codexBench(t, model, "")
		got, _ := run(t, c, b.codexRound(t, "Ask Bob."))
		if got.Status != protocol.HandbackWaiting || got.Summary != "I wait." || !cmp.Equal(got.ToReview, []string{"a page"}) || len(got.Links) != 1 {
			t.Errorf("the round ended as %+v", got)
		}
	})
	t.Run("after it was mended", func(t *testing.T) {
		bad := steps("Said so.", write(`{"status":"interrupted"}`))
		model := play(t, append(bad, steps("Mended.", write(`{"status":"blocked","summary":"No key."}`))...)...)
		b, c := codexBench(t, model, "")
		got, sink := run(t, c, b.codexRound(t, "Work."))
		if got.Status != protocol.HandbackBlocked || got.Summary != "No key." {
			t.Errorf("the round ended as %+v", got)
		}
		if told := asked(t, model.Answered()[2]); !strings.Contains(told, "status must be done, waiting, blocked or silent") {
			t.Errorf("the model was told\n%s", told)
		}
		if used := codexTotals(t, got, sink.session())[plainModel]; used.InputTokens != 400 {
			t.Errorf("usage %+v", used)
		}
		if diff := cmp.Diff([]int{0, 0}, sink.echoes()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("not, where it cannot be used", func(t *testing.T) {
		bad := steps("Said so.", write(`{"state":"done"}`))
		model := play(t, append(bad, steps("I see nothing wrong.")...)...)
		b, c := codexBench(t, model, "")
		if got, _ := run(t, c, b.codexRound(t, "Work.")); !strings.Contains(got.Failed, `unknown field "state"`) {
			t.Errorf("the round ended as %+v", got)
		}
	})
}

func TestCodexSignsInWithAKeyOfTheEnvironment(t *testing.T) {
	model := play(t, modelstub.Step{Text: "Hello."}, modelstub.Step{Text: "Hello."})
	b := newBench(t, "OPENAI_API_KEY=made-up-1")
	// A provider that wants OpenAI's login, as OpenAI itself does.
	home := filepath.Join(b.home, ".codex")
	config := fmt.Sprintf("model_provider = \"like-openai\"\n[model_providers.like-openai]\nname = \"Like OpenAI\"\nbase_url = %q\n"+
		"wire_api = \"responses\"\nrequires_openai_auth = true\n", model.URL+"/v1")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &codex.Codex{Program: program(t, "codex"), Env: b.env, Log: logTo(t)}
	for _, key := range []string{"made-up-1", "made-up-2"} {
		if key == "made-up-2" {
			b.env = append(b.env, "CODEX_API_KEY="+key)
		}
		if got, _ := run(t, c, b.codexRound(t, "Say hello.")); got.Summary != "Hello." {
			t.Fatalf("the round ended as %+v", got)
		}
		answered := model.Answered()
		if said := answered[len(answered)-1].Header.Get("Authorization"); said != "Bearer "+key {
			t.Errorf("it signed in with %q", said)
		}
		for _, file := range filesWith(t, b.home, key) {
			t.Errorf("the key is in %s", file)
		}
	}
	// A login goes before the key that others use too.
	if _, err := os.Stat(filepath.Join(home, "auth.json")); err == nil {
		t.Error("the runtime signed in for good")
	}
}

func TestCodexsDoctor(t *testing.T) {
	model := play(t)
	for name, test := range map[string]struct {
		change func(b *bench, c *codex.Codex)
		status []protocol.CheckStatus
		words  string
	}{
		"all is well":        {func(*bench, *codex.Codex) {}, []protocol.CheckStatus{"ok", "ok"}, "needs no login"},
		"the key is not set": {func(_ *bench, c *codex.Codex) { c.Env = append(c.Env, codexKey+"=") }, []protocol.CheckStatus{"ok", "fail"}, codexKey},
		"no login": {func(b *bench, _ *codex.Codex) {
			if err := os.Remove(filepath.Join(b.home, ".codex", "config.toml")); err != nil {
				t.Fatal(err)
			}
		}, []protocol.CheckStatus{"ok", "fail"}, "neither a key"},
		"a key for OpenAI": {func(b *bench, c *codex.Codex) {
			if err := os.Remove(filepath.Join(b.home, ".codex", "config.toml")); err != nil {
				t.Fatal(err)
			}
			c.Env = append(c.Env, "OPENAI_API_KEY=made-up")
		}, []protocol.CheckStatus{"ok", "ok"}, "with the key in OPENAI_API_KEY"},
		"a configuration that is none": {func(b *bench, _ *codex.Codex) {
			if err := os.WriteFile(filepath.Join(b.home, ".codex", "config.toml"), []byte("= what"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []protocol.CheckStatus{"fail"}, "config.toml"},
		"it is not there": {func(_ *bench, c *codex.Codex) { c.Program = "codex-of-nowhere" }, []protocol.CheckStatus{"fail"}, "was not found"},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := codexBench(t, model, "")
			test.change(b, c)
			var got []protocol.CheckStatus
			var said strings.Builder
			for _, check := range c.Doctor(t.Context()) {
				got = append(got, check.Status)
				fmt.Fprintf(&said, "%s: %s. %s\n", check.Name, check.Detail, check.Fix)
				if (check.Status == protocol.CheckFail) != (check.Fix != "") {
					t.Errorf("a check that fails, and only that, says what mends it: %+v", check)
				}
			}
			if !cmp.Equal(got, test.status) || !strings.Contains(said.String(), test.words) {
				t.Errorf("got %v: %s", got, said.String())
			}
			t.Log(said.String())
		})
	}
}
