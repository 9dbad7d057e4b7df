package runtimes

// This file works a whole item with each runtime, and checks what people see of it while it is worked and afterwards, to the record and to
// the token. The tests of each runtime are in item_claude_test.go and item_codex_test.go.

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

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
var first = []string{
	"message_received", "clone started", "clone completed", "environment_ready", "turn_started", "message_delivered", "native",
}

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

// schemas are the parts of the schema of the session events that are checked, compiled once.
var schemas = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(feed.Schema()))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("urn:schema", whole); err != nil {
		return nil, err
	}
	parts := map[string]*jsonschema.Schema{"record": nil, "session": nil}
	for part := range parts {
		if parts[part], err = compiler.Compile("urn:schema#/$defs/" + part); err != nil {
			return nil, err
		}
	}
	return parts, nil
})

// valid checks JSON against a part of the schema of the session events.
func (w *world) valid(part string, data []byte) {
	w.t.Helper()
	parts, err := schemas()
	must(w.t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	must(w.t, err)
	if err := parts[part].Validate(value); err != nil {
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
	want := model.Usage{
		InputTokens: sum.Input, OutputTokens: sum.Output, CacheReadTokens: sum.CacheRead, CacheCreationTokens: sum.CacheCreation,
	}
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
	s := w.object()
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
	w.handedBack()
}

// handedBack checks that the hand-back says what was pushed.
func (w *world) handedBack() {
	w.t.Helper()
	it := w.item()
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
