package office_test

// These tests hold the session objects that the office shows against the contract's schema, and against what happened.

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// contract compiles parts of the contract's schema, each once: that takes a while.
var contract = map[string]func() (*jsonschema.Schema, error){
	"session": sync.OnceValues(func() (*jsonschema.Schema, error) { return compiled("session") }),
	"frame":   sync.OnceValues(func() (*jsonschema.Schema, error) { return compiled("frame") }),
}

func compiled(part string) (*jsonschema.Schema, error) {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(feed.Schema()))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("urn:contract", schema); err != nil {
		return nil, err
	}
	return c.Compile("urn:contract#/$defs/" + part)
}

// fits checks a document against a part of the contract's schema.
func fits(t *testing.T, part string, document []byte) {
	t.Helper()
	schema, err := contract[part]()
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatalf("no JSON: %v: %s", err, document)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("it does not fit the contract: %v\n%s", err, document)
	}
}

// object reads a session over HTTP, which has to fit the contract.
func (b *bench) object(id string) feed.Session {
	b.t.Helper()
	a := b.ask(tokenAll, http.MethodGet, "/v1/sessions/"+id, "")
	if a.StatusCode != http.StatusOK {
		b.t.Fatalf("the session was answered with %d %s", a.StatusCode, a.body)
	}
	fits(b.t, "session", a.body)
	var s feed.Session
	a.into(b.t, &s)
	return s
}

// harbour gives a team all that a session object tells of.
func harbour(team *model.Team) {
	taking(team)
	team.Config.Roles = []protocol.TeamRole{{Name: "dev", Title: "Developer", Summary: "Writes the code.", Instructions: "Test first."}}
	team.Config.Repositories = []protocol.TeamRepository{
		{Name: "lights", URL: "https://github.com/harbour/lights.git", DefaultBranch: "main"}, {Name: "local", URL: "file:///srv/git/local"},
		{Name: "tools", URL: "git@git.example.com:deep/group/tools.git"},
	}
	team.Config.Environment.Hooks = protocol.TeamHooks{
		BuildBase: "make deps", BuildBaseInputs: []string{"lights/go.sum"}, AfterCheckout: "make build", BeforeStart: "make serve",
	}
	team.Usage.Budgets = []model.Budget{{Scope: model.BudgetItem, CostMicroUSD: 2_500_000}, {Scope: model.BudgetTeam, CostMicroUSD: 90_000_000}}
}

// keeper is a person with all that a runtime is told.
func keeper(runtime string) model.Person {
	p := person("ada")
	p.DisplayName, p.Runtime, p.Model, p.Effort, p.FallbackModel, p.MaxTurns = "Ada", runtime, "beacon-4", "high", "beacon-3", 40
	p.AllowedTools, p.Approvals = []string{"Bash", "Edit"}, "deny"
	p.MCPServers = []protocol.TeamMCPServer{
		{Name: "tides", Command: "tides-mcp", Args: []string{"--east"}, Env: map[string]string{"TIDES_KEY": "${TIDES_SECRET}", "PLAIN": "hunter2"}},
		{Name: "stars", URL: "https://eve:hunter2@stars.example/mcp?key=hunter2", Headers: map[string]string{"Authorization": "Bearer ${STARS_TOKEN}"}},
	}
	return p
}

func TestASessionObjectShowsAllThatIsKnown(t *testing.T) {
	g := newGuard()
	b := openWith(t, func(o *office.Options) { o.Access = g }, harbour)
	b.must(b.office.SyncPerson(t.Context(), keeper("claude")))
	ada, _ := b.connect("ada")
	b.event("pr.changed", "1", `{"repo":"harbour/lights","number":12,"title":"A new lamp","url":"https://github.com/harbour/lights/pull/12",
		"state":"open","author":{"login":"ada"},"head":"lamp","base":"main"}`)
	b.event("pr.reviewed", "2", `{"repo":"harbour/lights","number":12,"review":{"id":"31","author":{"login":"grace-h","system":"github"},
		"state":"changes_requested","body":"It is too dim.","url":"https://github.com/harbour/lights/pull/12#review-31"}}`)
	offer := ada.offer()
	id := offer.WorkItem.ID
	ada.ok(protocol.Accept{WorkItemID: id, Runtime: "claude"})
	u := b.uploads(id, "ada", "spool-1")
	u.offer = model.OfferID(id, 1)
	found := feed.Git{Repos: feed.List[feed.GitRepo]{{FullName: "harbour/lights", LocalCommit: new("c0ffee")}}}
	u.upload(u.lifecycle("turn_started", map[string]any{}),
		u.entry("agent", feed.FormatState, feed.StateGit, found),
		u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))
	ada.ok(protocol.WorkMade{WorkItemID: id, PR: &protocol.MadePull{
		Repo: protocol.Repo{Owner: "harbour", Name: "lights"}, Number: 13, URL: "https://github.com/harbour/lights/pull/13",
	}})
	ada.ok(protocol.Progress{WorkItemID: id, Text: "Swapping\nthe lamp"})
	if running := b.object(id); running.Summary == nil || running.Summary.Description != "Swapping the lamp" || running.Summary.CreatedAt == nil {
		t.Errorf("the summary is %+v", running.Summary)
	}
	ada.ok(protocol.Handback{WorkItemID: id, Status: protocol.HandbackDone, Summary: "brighter", Usage: []protocol.SessionUsage{
		{Session: "c-1", Models: map[string]protocol.ModelUsage{
			"beacon-4": {InputTokens: 100, OutputTokens: 20, CacheReadTokens: 3000, CacheCreationTokens: 400, CostUSD: new(0.0123)},
		}},
	}})

	s := b.object(id)
	wantEvent := feed.GitHubPullRequest{
		Action: "review_submitted", Actor: &feed.Actor{Name: "grace-h"}, Repository: "harbour/lights", Branch: "lamp", Number: 12, Title: "A new lamp",
		URL: "https://github.com/harbour/lights/pull/12#review-31",
	}
	if s.Event == nil || cmp.Diff(feed.EventOf(wantEvent), s.Event.Of) != "" {
		t.Errorf("the event is %+v", s.Event)
	}
	if s.Source != feed.OriginCodeReview || s.Budget != 2.5 || s.Agent == nil || s.ClaudeCode == nil || s.Codex != nil {
		t.Fatalf("the session is of %s, with %v dollars, for %+v, on %+v or %+v", s.Source, s.Budget, s.Agent, s.ClaudeCode, s.Codex)
	}
	if c := *s.ClaudeCode; c.Model != "beacon-4" || *c.Effort != "high" || *c.FallbackModel != "beacon-3" || *c.MaxTurns != 40 ||
		!strings.HasPrefix(*c.Prompt, "Feedback on ") {
		t.Errorf("Claude Code has %+v", c)
	}
	about := s.Agent.Config.About
	if *about.Name != "Ada" || *about.Description != "Writes the code." || about.Metadata.Annotations["bullpen.dev/instructions"] != "Test first." ||
		about.Metadata.Annotations["bullpen.dev/allowed-tools"] != "Bash,Edit" || *s.Agent.Config.Session.Budget.Session != 2.5 {
		t.Errorf("the agent is %+v", s.Agent.Config)
	}
	wantRepositories := feed.List[feed.Repository]{
		{Name: "lights", Owner: new("harbour"), Ref: new("main")}, {Name: "local"}, {Name: "tools", Owner: new("deep/group")},
	}
	if diff := cmp.Diff(wantRepositories, s.Environment.Repositories); diff != "" {
		t.Errorf("the repositories are %s", diff)
	}
	if h := s.Environment.Hooks; h.BuildBase.Value.Run != "make deps" || (*h.BuildBase.Value.Inputs)[0] != "lights/go.sum" ||
		h.AfterCheckout.Value.Run != "make build" || h.BeforeStart.Value.Run != "make serve" || *s.Environment.Source != feed.EnvironmentAgent {
		t.Errorf("the hooks are %+v", h)
	}
	if turn := s.Turn; turn == nil || turn.Status != feed.TurnStatusCompleted || turn.StartedAt == nil || turn.EndedAt == nil ||
		turn.Cost != (feed.Cost{LLM: 1230, Total: 1230}) || turn.Tokens.Total != 3520 || turn.Tokens.CacheRead != 3000 {
		t.Errorf("the turn is %+v", turn)
	}
	if s.Cost.Total != 1230 || s.Tokens.Input != 100 || s.Tokens.Model == "" {
		t.Errorf("it cost %+v for %+v", s.Cost, s.Tokens)
	}
	if s.Git == nil || len(s.Git.Repos) != 1 || len(s.Git.Repos[0].PRs) != 1 || s.Git.Repos[0].PRs[0].Number != 13 {
		t.Errorf("git has %+v", s.Git)
	}
	if !s.Conversation.Warm || !s.Conversation.Interactive || !s.Conversation.Prompting.Enabled || s.Metadata["requester"] != "grace-h" ||
		s.Metadata["person"] != "ada" || s.Metadata["namespace"] != "ns" {
		t.Errorf("the conversation is %+v, the metadata %v", s.Conversation, s.Metadata)
	}
	if raw := b.ask(tokenAll, http.MethodGet, "/v1/sessions/"+id, ""); bytes.Contains(raw.body, []byte("hunter2")) {
		t.Errorf("a secret is in %s", raw.body)
	}
	b.must(ada.ws.Close())
	b.awaitState("ada", model.PersonOffline)
	if b.object(id).Conversation.Warm {
		t.Error("it is warm though its agent is gone")
	}
}

func TestASessionShowsWhatItWasStartedWith(t *testing.T) {
	g := newGuard()
	b := openWith(t, func(o *office.Options) { o.Access = g }, harbour)
	b.apply("early")
	b.apply("i1")
	before := b.object("uid-i1")
	if before.ClaudeCode != nil || before.Codex != nil || before.Turn.Status != feed.TurnStatusPending {
		t.Errorf("before its first round the session has %+v, %+v, %+v", before.ClaudeCode, before.Codex, before.Turn)
	}
	ada, _ := b.connect("ada")
	b.must(b.office.SyncPerson(t.Context(), keeper("codex")))
	ada.take("early")
	changed := keeper("codex")
	changed.Model, changed.Effort = "tide-9", "low"
	b.must(b.office.SyncPerson(t.Context(), changed))
	b.resync(func(team *model.Team) { harbour(team); team.Config.Environment.Hooks.BeforeStart = "make other" })
	s := b.object("uid-early")
	if s.Codex == nil || s.Codex.Model != "beacon-4" || *s.Codex.Effort != "high" || s.Environment.Hooks.BeforeStart.Value.Run != "make serve" {
		t.Errorf("it runs with %+v in %+v", s.Codex, s.Environment.Hooks)
	}
	if now := b.object("uid-i1"); now.Codex == nil || now.Codex.Model != "tide-9" || now.Environment.Hooks.BeforeStart.Value.Run != "make other" {
		t.Errorf("one that did not begin yet has %+v", now.Codex)
	}
}

func TestWhatMostSessionsLookLikeFitsTheContract(t *testing.T) {
	b, _ := openSessions(t)
	b.apply("role", func(f *model.ItemFacts) { f.Spec.Person, f.Spec.Role = "", "dev" })
	b.apply("bounded", func(f *model.ItemFacts) { f.Spec.Timeout = 90*time.Minute + 30*time.Second })
	b.apply("canceled")
	b.apply("canceled", func(f *model.ItemFacts) { f.Spec.Cancel, f.Spec.Generation = true, 2 })
	ada, _ := b.connect("ada")
	ada.request(protocol.ChatMessage{
		MessageID: "1767225600.000100", Channel: "C0LIGHTS77", Text: "Is it dark?", Author: protocol.Requester{ID: "U1", Name: "Grace"}, Direct: true,
	})
	if s := b.object("uid-role"); s.Agent != nil || s.Conversation.Warm || s.Budget != 1_000_000 {
		t.Errorf("a session that nobody has is %+v", s)
	}
	limit := b.object("uid-bounded").Environment.Compute.Timeout
	if limit == nil || *limit.Value.Hours != 1 || *limit.Value.Minutes != 30 || *limit.Value.Seconds != 30 {
		t.Errorf("the time limit is %+v", limit)
	}
	canceled := b.object("uid-canceled")
	if s := canceled; s.Conversation.State != feed.ConversationClosed || s.Turn.Status != feed.TurnStatusStopped || s.Turn.Reason != nil {
		t.Errorf("the canceled one is %+v, %+v", s.Conversation, s.Turn)
	}
	chat := b.list(tokenAll, "namespace=ns&limit=1").Sessions[0]
	chat = b.object(chat.ID)
	message, ok := chat.Event.Of.(feed.SlackMessage)
	if !ok || message.Action != "message" || message.ChannelID != "C0LIGHTS77" || message.MessageTS != "1767225600.000100" || message.ThreadTS != nil {
		t.Errorf("the event of a chat is %+v", chat.Event)
	}
	by := chat.Attribution
	if chat.Source != feed.OriginMention || by.Type == nil || *by.Type != feed.AttributionSlackUser || *by.ID != "U1" {
		t.Errorf("the chat is of %s, by %+v", chat.Source, chat.Attribution)
	}
}

func TestFramesFitTheContract(t *testing.T) {
	b, _ := openSessions(t, func(o *office.Options) { o.Streams.Heartbeat = 200 * time.Millisecond })
	s, ada, u := b.working("i1", chore)
	v := b.watch(s.ID, "protocol=6")
	seen := map[string]bool{}
	check := func() string {
		data := v.read()
		var frame struct{ Type string }
		b.must(json.Unmarshal(data, &frame))
		fits(t, "frame", data)
		seen[frame.Type] = true
		return frame.Type
	}
	for kind := check(); kind != feed.FrameHeartbeat; kind = check() {
	}
	u.says(feed.Delta{Kind: feed.DeltaText, Text: new("Look")})
	for kind := check(); kind != feed.FrameDelta; kind = check() {
	}
	u.upload(u.lifecycle("turn_started", map[string]any{}))
	u.upload(u.output(2)...)
	u.finish(ada, "i1")
	for kind := check(); kind != feed.FrameDone; kind = check() {
	}
	if want := 6; len(seen) != want {
		t.Errorf("frames of these types came: %v", seen)
	}
	v = b.watch("none", "protocol=6")
	if check() != feed.FrameError {
		t.Error("no error came")
	}
}
