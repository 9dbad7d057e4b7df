package runtimes

// This file drives a whole work item with each runtime: what people see while it is worked and afterwards, and that nothing is lost or
// counted twice when the agent is stopped or killed in its middle. The tests of each runtime are in item_claude_test.go and
// item_codex_test.go.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

// paint changes a file, commits and pushes it.
const paint = "printf red > paint.txt && git add paint.txt && git commit -q -m 'Paint it' && git push -q origin HEAD"

// turnEnded says whether a session object shows the end of a turn.
func turnEnded(index int64, status string) func(feed.Session) bool {
	return func(s feed.Session) bool { return s.Turn != nil && s.Turn.Index == index && s.Turn.Status == status }
}

// ofType says whether a record has a type.
func ofType(kind string) func(feed.Record) bool {
	return func(r feed.Record) bool { return r.Type == kind }
}

// first is the shape of the feed up to the end of the first round, in a home that has the repository not yet.
var first = []string{"message_received", "clone started", "clone completed", "environment_ready", "turn_started", "message_delivered", "native"}

// later is the shape of a further round's beginning.
var later = []string{"restore started", "restore completed", "environment_ready", "turn_started", "message_delivered", "native"}

func worksAnItem(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	began := modelstub.Usage{Input: 1200, CacheCreation: 300, Output: 80}
	ended := modelstub.Usage{Input: 40, CacheRead: 1500, Output: 7}
	w := newWorld(t, k,
		modelstub.Step{Thinking: "Which colour is best", Text: "I paint it red, and push that.", Gate: gate, Usage: began,
			Tools: []modelstub.ToolCall{k.command(t, paint)}},
		modelstub.Step{Text: "The shed is red.", Usage: ended},
	)
	w.ask()
	v := w.watch()
	w.startAgent()

	// While the model's answer waits in its middle, people see what there is of it.
	w.reached(gate)
	v.await("thinking and text while they are written", func(frames []feed.Frame) bool {
		return delta(frames, feed.DeltaThinking, "Which colour") >= 0 && delta(frames, feed.DeltaText, "I paint it") >= 0
	})
	if frames := v.await("records", func([]feed.Frame) bool { return true }); record(frames, w.says("I paint it red, and push that.")) >= 0 {
		t.Error("the answer was complete before it was")
	}
	gate.Open()
	frames := v.await("the end of the turn", func(frames []feed.Frame) bool {
		return sessionFrame(frames, turnEnded(0, feed.TurnStatusCompleted)) >= 0
	})
	if at := record(frames, ofType(feed.TypeTurnEnded)); at < 0 || at > sessionFrame(frames, turnEnded(0, feed.TurnStatusCompleted)) {
		t.Error("the session showed the turn's end before its records")
	}
	w.until("the item is done", func() bool { return w.item().State == protocol.StateDone })

	records := w.records()
	if diff := cmp.Diff(append(slices.Clone(first), "turn_ended completed"), w.shape(records)); diff != "" {
		t.Error(diff)
	}
	received := *records[0].MessageID
	if diff := cmp.Diff([]string{received}, w.echoes(records, w.session().Turn.ID)); diff != "" {
		t.Errorf("the runtime's echo: %s", diff)
	}
	for _, text := range []string{"I paint it red, and push that.", "The shed is red."} {
		if n := w.times(records, text); n != 1 {
			t.Errorf("%d records say %q", n, text)
		}
	}
	if !slices.ContainsFunc(records, func(r feed.Record) bool { return k.thought(r.Payload) == "Which colour is best" }) {
		t.Error("no record has the thinking")
	}
	if !slices.ContainsFunc(records, func(r feed.Record) bool { return slices.Contains(r.Tools, "Bash") }) {
		t.Error("no record names the tool that was used")
	}
	w.kept(records, v)
	w.usedExactly(began, ended)
	w.pushed()
	w.fits()
}

// says says whether a record is the model's completed answer.
func (w *world) says(text string) func(feed.Record) bool {
	return func(r feed.Record) bool { return r.Source == w.kit.source && w.kit.said(r.Payload) == text }
}

// kept checks that those who watched, and those who read, have the same records to the byte, and that each fits the schema.
func (w *world) kept(records []feed.Record, v *watcher) {
	w.t.Helper()
	last := records[len(records)-1].FeedSeq
	var seen []json.RawMessage
	for _, f := range v.await("all records", func(frames []feed.Frame) bool {
		return record(frames, func(r feed.Record) bool { return r.FeedSeq == last }) >= 0
	}) {
		if list, ok := f.(feed.RecordsAppend); ok {
			seen = append(seen, list.Raw...)
		}
	}
	var page struct {
		Records []json.RawMessage `json:"records"`
	}
	must(w.t, json.Unmarshal(w.http(200, "GET", "/records?limit=1000", nil), &page))
	if len(seen) != len(records) || len(page.Records) != len(records) {
		w.t.Fatalf("watched %d records, read %d, of %d", len(seen), len(page.Records), len(records))
	}
	ids := map[string]bool{}
	for i, r := range records {
		if !bytes.Equal(seen[i], page.Records[i]) {
			w.t.Errorf("record %d was watched as %s and read as %s", i+1, seen[i], page.Records[i])
		}
		known := r.Source != w.kit.source || r.MessageID != nil || w.kit.said(r.Payload)+w.kit.thought(r.Payload) != "" || len(r.Tools) > 0
		if r.Kind == feed.KindUnknown && known || ids[r.ID] {
			w.t.Errorf("record %d of type %s is unknown, or a second one of its id: %.300s", r.FeedSeq, r.Type, r.Payload)
		}
		ids[r.ID] = true
		w.valid("record", page.Records[i])
	}
}

// valid checks JSON against a part of the schema of the session events.
func (w *world) valid(part string, data []byte) {
	w.t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(feed.Schema()))
	must(w.t, err)
	must(w.t, compiler.AddResource("urn:schema", schema))
	compiled, err := compiler.Compile("urn:schema#/$defs/" + part)
	must(w.t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	must(w.t, err)
	if err := compiled.Validate(value); err != nil {
		w.t.Errorf("a %s does not fit the schema: %v: %.400s", part, err, data)
	}
}

// object reads the session object.
func (w *world) object() (s feed.Session) {
	w.t.Helper()
	data := w.http(200, "GET", "", nil)
	must(w.t, json.Unmarshal(data, &s))
	return s
}

// usedExactly checks what was used, wherever it is kept: these answers and nothing else.
func (w *world) usedExactly(answers ...modelstub.Usage) {
	w.t.Helper()
	sum := used(answers...)
	want := model.Usage{InputTokens: sum.Input, OutputTokens: sum.Output, CacheReadTokens: sum.CacheRead, CacheCreationTokens: sum.CacheCreation}
	cost := w.kit.microUSD(sum)
	check := func(where string, got model.Usage) {
		w.t.Helper()
		if cost > 0 != got.CostKnown || math.Abs(float64(got.CostMicroUSD)-cost) > 2 {
			w.t.Errorf("%s costs %d millionths of a dollar, not %v", where, got.CostMicroUSD, cost)
		}
		got.CostMicroUSD, got.CostKnown, got.UnpricedTokens = 0, false, 0
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Errorf("%s: %s", where, diff)
		}
	}
	must(w.t, w.store.View(context.Background(), func(r store.Reader) error {
		models, err := r.ItemModels(itemID)
		must(w.t, err)
		if len(models) != 1 || models[0].Model != w.kit.model {
			w.t.Fatalf("the ledger has the models %+v", models)
		}
		check("the ledger", models[0].Usage)
		person, err := r.PersonUsage(thePerson)
		check("the person", person)
		return err
	}))
	check("the item", w.item().Usage)
	s := w.object()
	tokens := feed.Tokens{
		Input: sum.Input, Output: sum.Output, CacheRead: sum.CacheRead, CacheCreation: sum.CacheCreation,
		Total: sum.Input + sum.Output + sum.CacheRead + sum.CacheCreation, Model: w.kit.model,
	}
	if diff := cmp.Diff(tokens, s.Tokens); diff != "" {
		w.t.Errorf("the session object: %s", diff)
	}
	if math.Abs(float64(s.Cost.LLM)-cost/10) > 1 || s.Cost.Total != s.Cost.LLM {
		w.t.Errorf("the session object costs %+v millicents, not %v", s.Cost, cost/10)
	}
}

// pushed checks that the work is at the remote, and that session and hand-back say so.
func (w *world) pushed() {
	w.t.Helper()
	s, it := w.object(), w.item()
	if s.Git == nil || len(s.Git.Repos) != 1 {
		w.t.Fatalf("the session's git is %+v", s.Git)
	}
	repo := s.Git.Repos[0]
	if repo.FullName != "garden/shed" || repo.RemoteBranch == nil || !strings.HasPrefix(*repo.RemoteBranch, "bullpen/ada/paint-the-shed-") ||
		len(repo.LocalUncommittedFiles) != 0 || repo.CommitsTotal != 1 || len(repo.Commits) != 1 || repo.Commits[0].Subject != "Paint it" ||
		!repo.Commits[0].Pushed || repo.RemoteCommit == nil || *repo.RemoteCommit != repo.Commits[0].SHA {
		w.t.Fatalf("the session's repository is %+v", repo)
	}
	if at := w.git(w.remote, "rev-parse", *repo.RemoteBranch); at != *repo.RemoteCommit {
		w.t.Errorf("the remote's branch is at %s", at)
	}
	if text := w.git(w.remote, "show", *repo.RemoteBranch+":paint.txt"); text != "red" {
		w.t.Errorf("the file at the remote says %q", text)
	}
	if len(it.Links) != 1 || !strings.Contains(it.Links[0].URL, "/garden/shed/compare/main...bullpen/ada/paint-the-shed-") {
		w.t.Errorf("the links of the hand-back are %+v", it.Links)
	}
	if len(it.ToReview) != 1 || !strings.HasPrefix(it.ToReview[0], "1 commit on branch bullpen/ada/") || it.Summary != "The shed is red." {
		w.t.Errorf("handed back: %q, to review %q", it.Summary, it.ToReview)
	}
}

// fits checks the session object against the schema, and that it says what it can.
func (w *world) fits() {
	w.t.Helper()
	w.valid("session", w.http(200, "GET", "", nil))
	s := w.object()
	options := s.ClaudeCode != nil && s.ClaudeCode.Model == w.kit.model || s.Codex != nil && s.Codex.Model == w.kit.model
	if s.Agent == nil || !options || s.Budget != 5 || s.Summary == nil || s.Turn == nil || s.Turn.Tokens != s.Tokens ||
		!s.Conversation.Prompting.Enabled || s.Conversation.State != feed.ConversationOpen {
		w.t.Errorf("the session object is %s", w.http(200, "GET", "", nil))
	}
}

func isTerminatedAndGoesOn(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	began := modelstub.Usage{Input: 500, CacheCreation: 30, Output: 20}
	cut := modelstub.Usage{Input: 90, CacheRead: 5, Output: 60}
	ended := modelstub.Usage{Input: 33, CacheRead: 600, Output: 6}
	w := newWorld(t, k,
		modelstub.Step{Text: "First I paint it.", Tools: []modelstub.ToolCall{k.command(t, paint)}, Usage: began},
		modelstub.Step{Text: "Now comes a long story that is not told to its end.", Gate: gate, Usage: cut},
		modelstub.Step{Text: "The shed is red.", Usage: ended},
	)
	w.ask()
	v := w.watch()
	w.startAgent()
	w.reached(gate)
	v.await("the story's beginning", func(frames []feed.Frame) bool { return delta(frames, feed.DeltaText, "Now comes") >= 0 })
	w.terminate()
	v.await("the end of the turn", func(frames []feed.Frame) bool {
		return sessionFrame(frames, func(s feed.Session) bool { return s.Turn != nil && s.Turn.Index == 1 }) >= 0 ||
			sessionFrame(frames, turnEnded(0, feed.TurnStatusCancelled)) >= 0
	})
	if it := w.item(); it.State != protocol.StateQueued || it.Failures != 0 || it.LostRounds != 0 {
		t.Errorf("after the interruption the item is %+v", it)
	}

	w.reincarnate()
	w.startAgent()
	w.until("the item is done", func() bool { return w.item().State == protocol.StateDone })
	records := w.records()
	want := slices.Concat(first, []string{"turn_ended cancelled interrupted", "message_requeued"}, later, []string{"turn_ended completed"})
	if diff := cmp.Diff(want, w.shape(records)); diff != "" {
		t.Error(diff)
	}
	if rounds := w.item().Rounds; rounds != 2 {
		t.Errorf("the item had %d rounds", rounds)
	}
	w.wentOn(records)
	w.queuedAgain(records)
	w.usedExactly(began, k.cut(cut), ended)
	w.kept(records, v)
}

// wentOn checks that the item's work went on where it was cut short.
func (w *world) wentOn(records []feed.Record) {
	w.t.Helper()
	if it := w.item(); it.Failures != 0 || it.Summary != "The shed is red." {
		w.t.Errorf("the item is %+v", it)
	}
	for _, text := range []string{"First I paint it.", "The shed is red."} {
		if n := w.times(records, text); n != 1 {
			w.t.Errorf("%d records say %q", n, text)
		}
	}
	asked := string(w.model.Answered()[2].Body)
	for _, words := range []string{itemBody, "First I paint it.", "cut short"} {
		if !strings.Contains(asked, words) {
			w.t.Errorf("the model was not told: %s", words)
		}
	}
	w.pushed()
}

// queuedAgain checks that the item's message went from the first turn, which was cut short, to the second one.
func (w *world) queuedAgain(records []feed.Record) {
	w.t.Helper()
	at, end := slices.IndexFunc(records, ofType(feed.TypeMessageRequeued)), slices.IndexFunc(records, ofType(feed.TypeTurnEnded))
	if at < 0 || end < 0 {
		w.t.Fatal("no turn ended, or no message was queued again")
	}
	requeued, err := feed.Decode[feed.MessageRequeued](records[at].Payload)
	must(w.t, err)
	turn := w.session().Turn
	if requeued.MessageID != *records[0].MessageID || requeued.TurnID != *records[end].TurnID || requeued.RequeuedTurnID == nil ||
		*requeued.RequeuedTurnID != turn.ID || *records[at].TurnID != turn.ID || turn.Index != 1 {
		w.t.Errorf("queued again: %+v, in the turn %s", requeued, *records[at].TurnID)
	}
}

func isKilledAndGoesOn(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	began := modelstub.Usage{Input: 500, CacheCreation: 30, Output: 20}
	cut := modelstub.Usage{Input: 90, CacheRead: 5, Output: 60}
	ended := modelstub.Usage{Input: 33, CacheRead: 600, Output: 6}
	w := newWorld(t, k,
		modelstub.Step{Text: "First I paint it.", Tools: []modelstub.ToolCall{k.command(t, paint)}, Usage: began},
		modelstub.Step{Text: "Now comes a long story that is not told to its end.", Gate: gate, Usage: cut},
		modelstub.Step{Text: "The shed is red.", Usage: ended},
	)
	w.ask()
	v := w.watch()
	w.startAgent()
	w.reached(gate)
	v.await("the story's beginning", func(frames []feed.Frame) bool { return delta(frames, feed.DeltaText, "Now comes") >= 0 })
	w.kill()
	w.reincarnate()
	w.startAgent()
	w.until("the item is done", func() bool { return w.item().State == protocol.StateDone })
	records := w.records()
	// The round goes on in its turn: the office counts that its program died, and gives it up when that happens too often.
	again := slices.DeleteFunc(slices.Clone(later), func(word string) bool {
		return word == feed.TypeTurnStarted || word == feed.TypeMessageDelivered
	})
	if diff := cmp.Diff(slices.Concat(first, again, []string{"turn_ended completed"}), w.shape(records)); diff != "" {
		t.Error(diff)
	}
	if it := w.item(); it.Rounds != 1 || it.LostRounds != 1 {
		t.Errorf("the item is %+v", it)
	}
	w.wentOn(records)
	w.usedExactly(began, k.cut(cut), ended)
	w.kept(records, v)
}

// say speaks into the session, and gives the message's id.
func (w *world) say(body string) string {
	w.t.Helper()
	var m feed.InboxMessage
	must(w.t, json.Unmarshal(w.http(201, "POST", "/messages", map[string]string{"body": body}), &m))
	return m.ID
}

func startsALostSessionAnew(t *testing.T, k kit) {
	one := modelstub.Usage{Input: 70, Output: 9}
	two := modelstub.Usage{Input: 80, Output: 4}
	w := newWorld(t, k,
		modelstub.Step{Text: "It is red.", Tools: []modelstub.ToolCall{k.command(t, paint+` && ost journal "Painted it with two coats."`)}, Usage: one},
		modelstub.Step{Text: "The shed is red."},
		modelstub.Step{Text: "It stays red.", Usage: two},
	)
	w.ask()
	w.startAgent()
	w.until("the first round's end", func() bool { return w.item().State == protocol.StateDone })
	before := w.item().SessionID
	kept := filepath.Join(w.home, k.conversations)
	if entries, err := os.ReadDir(kept); err != nil || len(entries) == 0 {
		t.Fatalf("the runtime keeps no conversations in %s: %v", kept, err)
	}
	must(t, os.RemoveAll(kept))
	said := w.say("Which colour does it have now?")
	w.until("the second round's end", func() bool { it := w.item(); return it.State == protocol.StateDone && it.Rounds == 2 })

	it := w.item()
	if it.SessionID == before || it.Summary != "It stays red." || it.Failures != 0 {
		t.Errorf("the runtime's session was %s, and the item is %+v", before, it)
	}
	if !slices.ContainsFunc(w.journal(), func(s string) bool { return strings.Contains(s, "is lost") && strings.Contains(s, before) }) {
		t.Errorf("the journal does not say that the session was lost: %q", w.journal())
	}
	asked := string(w.model.Answered()[2].Body)
	for _, words := range []string{itemBody, "Painted it with two coats.", "Which colour does it have now?"} {
		if !strings.Contains(asked, words) {
			t.Errorf("the model was not told: %s", words)
		}
	}
	if echoes := w.echoes(w.records(), w.session().Turn.ID); !slices.Contains(echoes, said) {
		t.Errorf("the runtime's echoes are of %q, not of %s", echoes, said)
	}
	w.usedExactly(one, two)
}

func pausesAtALimit(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	one := modelstub.Usage{Input: 70, Output: 9}
	two := modelstub.Usage{Input: 80, Output: 4}
	w := newWorld(t, k, modelstub.Step{Text: "First I look at it.", Gate: gate, Usage: one, Tools: []modelstub.ToolCall{k.command(t, "true")}})
	w.ask()
	w.startAgent()
	w.reached(gate)
	resets := time.Now().Add(8 * time.Second).Truncate(time.Second)
	w.model.Add(k.limit(resets), modelstub.Step{Text: "On it goes.", Tools: []modelstub.ToolCall{k.command(t, paint)}}, modelstub.Step{Text: "The shed is red.", Usage: two})
	gate.Open()

	w.until("the person is paused", func() bool {
		p, err := w.office.Person(t.Context(), thePerson)
		must(t, err)
		return p.State == model.PersonPaused
	})
	p, err := w.office.Person(t.Context(), thePerson)
	must(t, err)
	w.until("the round's end", func() bool { return w.item().State == protocol.StateQueued })
	it := w.item()
	if !p.PausedUntil.Equal(resets) || p.PausedBy != "five_hour" {
		t.Errorf("the person is paused by %s until %s, not until %s", p.PausedBy, p.PausedUntil, resets)
	}
	if it.Failures != 0 || it.LostRounds != 0 || it.Rounds != 1 {
		t.Errorf("the item is %+v", it)
	}
	w.until("the item is done", func() bool { return w.item().State == protocol.StateDone })
	records := w.records()
	want := slices.Concat(first, []string{"turn_ended cancelled interrupted", "message_requeued"}, later, []string{"turn_ended completed"})
	if diff := cmp.Diff(want, w.shape(records)); diff != "" {
		t.Error(diff)
	}
	second := slices.IndexFunc(records, func(r feed.Record) bool { return r.Type == feed.TypeTurnStarted && *r.TurnID == w.session().Turn.ID })
	if second < 0 || records[second].CreatedAt.Before(resets) {
		t.Errorf("the second turn began before %s", resets)
	}
	if it := w.item(); it.Offers != 2 || it.Failures != 0 || it.Summary != "The shed is red." {
		t.Errorf("the item is %+v", it)
	}
	w.usedExactly(one, two)
}

func keepsASecret(t *testing.T, k kit) {
	const secret = "sw0rdf1sh-and-9-lives"
	w := newWorld(t, k)
	file := filepath.Join(w.secrets, "password")
	write(t, file, secret+"\n")
	tell := fmt.Sprintf(`cat %[1]s; ost journal "It is $(cat %[1]s)."; ost progress "Is it $(cat %[1]s)?"`, file)
	w.model.Add(
		modelstub.Step{Thinking: "Is it " + secret + " or not?", Text: "I look whether it is " + secret + " indeed, or not.",
			Tools: []modelstub.ToolCall{k.command(t, tell)}},
		modelstub.Step{Text: "The password is " + secret + ", so remember " + secret + "."},
	)
	w.ask()
	v := w.watch()
	w.startAgent()
	frames := v.await("the end of the turn", func(frames []feed.Frame) bool {
		return sessionFrame(frames, turnEnded(0, feed.TurnStatusCompleted)) >= 0
	})

	if asked := string(w.model.Answered()[1].Body); !strings.Contains(asked, secret) {
		t.Errorf("the tool did not print the secret: %s", tail(asked, 2000))
	}
	if journal := w.journal(); len(journal) == 0 || !strings.HasPrefix(journal[0], "ada: It is ") {
		t.Errorf("the journal says %q", journal)
	}
	if !strings.HasPrefix(w.item().Summary, "The password is ") && !strings.Contains(w.item().Summary, "\nThe password is ") {
		t.Errorf("the hand-back says %q", w.item().Summary)
	}
	if at := delta(frames, feed.DeltaText, "I look whether it is "); at < 0 {
		t.Error("people did not see the text around the secret while it was written")
	}
	// A part of it would do to find out that it got out.
	part := secret[:7]
	var shown strings.Builder
	for _, f := range frames {
		if d, ok := f.(feed.DeltaFrame); ok && d.Text != nil {
			shown.WriteString(*d.Text)
		}
	}
	v.mu.Lock()
	texts := map[string]string{
		"frames of the stream": strings.Join(v.raw, "\n"), "deltas": shown.String(), "the agent's log": w.agentLogs.String(), "the office's log": w.officeLog.String(),
		"the records": string(w.http(200, "GET", "/records?limit=1000", nil)), "the session object": string(w.http(200, "GET", "", nil)),
	}
	v.mu.Unlock()
	must(t, filepath.WalkDir(w.folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			data, err := os.ReadFile(path)
			texts[path] = string(data)
			return err
		}
		return err
	}))
	for where, text := range texts {
		if at := strings.Index(text, part); at >= 0 {
			t.Errorf("%s: the secret is in it: %q", where, text[max(0, at-200):min(len(text), at+60)])
		}
	}
}

func answersAndStops(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	asks := `printf '{"status":"waiting","summary":"Which colour?"}' > "$BULLPEN_RESULT_FILE"`
	one, cut, last := modelstub.Usage{Input: 70, Output: 9}, modelstub.Usage{Input: 90, Output: 40}, modelstub.Usage{Input: 5, Output: 2}
	w := newWorld(t, k,
		modelstub.Step{Text: "I have to ask.", Tools: []modelstub.ToolCall{k.command(t, asks)}, Usage: one},
		modelstub.Step{Text: "I wait."},
		modelstub.Step{Text: "So be it.", Tools: []modelstub.ToolCall{k.command(t, paint)}},
		modelstub.Step{Text: "The shed is red."},
		modelstub.Step{Text: "Once upon a time there was a shed that nobody painted.", Gate: gate, Usage: cut},
		modelstub.Step{Text: "Fine, no story.", Usage: last},
	)
	w.ask()
	v := w.watch()
	w.startAgent()
	w.until("the item waits", func() bool { return w.item().State == protocol.StateWaiting })
	if it := w.item(); it.Summary != "Which colour?" {
		t.Errorf("the hand-back says %q", it.Summary)
	}

	answer := w.say("Red, please.")
	w.until("the answer was worked", func() bool { return w.item().State == protocol.StateDone })
	if echoes := w.echoes(w.records(), w.session().Turn.ID); !slices.Equal(echoes, []string{answer}) {
		t.Errorf("the second turn repeats %q, not %s", echoes, answer)
	}
	if asked := string(w.model.Answered()[2].Body); !strings.Contains(asked, "Red, please.") || !strings.Contains(asked, "I wait.") {
		t.Errorf("the model was not told the answer, or has forgotten the question: %s", tail(asked, 3000))
	}

	w.say("Now tell me a story.")
	w.reached(gate)
	v.await("the story's beginning", func(frames []feed.Frame) bool { return delta(frames, feed.DeltaText, "Once upon") >= 0 })
	w.http(202, "POST", "/stop", nil)
	frames := v.await("the stop", func(frames []feed.Frame) bool { return sessionFrame(frames, turnEnded(2, feed.TurnStatusStopped)) >= 0 })
	stop := sessionFrame(frames, turnEnded(2, feed.TurnStatusStopped))
	if s := frames[stop].(feed.SessionFrame).Session; s.Turn.Stopped == nil || s.Turn.Reason != nil || s.Metadata["stopped_by"] != "grace" {
		t.Errorf("the stopped turn is %+v", s.Turn)
	}
	v.await("the record of the stop", func(frames []feed.Frame) bool {
		return record(frames, func(r feed.Record) bool {
			return r.Type == feed.TypeTurnEnded && strings.Contains(string(r.Payload), `"stopped"`)
		}) >= 0
	})
	w.until("the runtime's end", func() bool { return len(processesIn(t, w.home)) == 1 })
	if state := w.item().State; state != protocol.StateWaiting {
		t.Errorf("the item is %s after the stop", state)
	}

	w.say("No story, please.")
	w.until("the last turn's end", func() bool { it := w.item(); return it.State == protocol.StateDone && it.Rounds == 4 })
	if asked := string(w.model.Answered()[5].Body); !strings.Contains(asked, "No story, please.") || !strings.Contains(asked, "I wait.") {
		t.Errorf("the model was not told, or has forgotten: %s", tail(asked, 3000))
	}
	records := w.records()
	var ends []string
	for _, word := range w.shape(records) {
		if strings.HasPrefix(word, "turn_ended") {
			ends = append(ends, word)
		}
	}
	if diff := cmp.Diff([]string{"turn_ended completed", "turn_ended completed", "turn_ended stopped", "turn_ended completed"}, ends); diff != "" {
		t.Error(diff)
	}
	w.kept(records, v)
	w.usedExactly(one, k.cut(cut), last)
}
