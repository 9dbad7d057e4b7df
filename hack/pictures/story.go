package main

// This file has what happens in the pictures: a team at work, and one session to look at.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/test/web/stage"
)

// shown is the session that the pictures show.
type shown struct {
	id    string
	agent *stage.Agent
	// last are the words that it writes when the picture is made.
	last string
}

// titled makes an item of that title, made so long ago.
func titled(title, body string, ago time.Duration) func(*model.ItemFacts) {
	return func(f *model.ItemFacts) {
		f.Spec.Title, f.Spec.Body = title, body
		f.CreatedAt = time.Now().Add(-ago).UTC().Truncate(time.Second)
	}
}

// used is what a round used.
func used(session string, input, output, cached int64, cost float64) protocol.SessionUsage {
	return protocol.SessionUsage{Session: session, Models: map[string]protocol.ModelUsage{
		"claude-sonnet-5": {InputTokens: input, OutputTokens: output, CacheReadTokens: cached, CostUSD: &cost},
	}}
}

// play has the team work, and gives the session to look at.
func play(s *stage.Stage) *shown {
	brian, chen, dana := s.Connect("brian"), s.Connect("chen"), s.Connect("dana")
	round := func(a *stage.Agent, person, name, title string, ago time.Duration, status protocol.HandbackStatus, turn model.TurnStatus, usage protocol.SessionUsage) {
		s.Item(name, person, titled(title, "", ago))
		a.Take()
		a.Begin()
		a.End(status, turn, usage)
	}
	round(brian, "brian", "search-synonyms", "Find sneakers when people search for trainers", 26*time.Hour, protocol.HandbackDone, model.TurnCompleted, used("b1", 48_200, 9100, 910_000, 0.93))
	round(chen, "chen", "image-sizes", "Serve product images in three sizes", 9*time.Hour, protocol.HandbackDone, model.TurnCompleted, used("c1", 30_900, 12_400, 505_000, 0.61))
	round(dana, "dana", "tax-rates", "Take tax rates from the new service", 5*time.Hour, protocol.HandbackBlocked, model.TurnFailed, used("d1", 12_000, 2800, 88_000, 0.16))
	round(brian, "brian", "order-export", "Export orders as CSV for accounting", 3*time.Hour, protocol.HandbackWaiting, model.TurnCompleted, used("b2", 21_300, 4600, 240_000, 0.32))
	s.Item("flaky-checkout", "brian", titled("Make the checkout test reliable", "", 70*time.Minute))
	brian.Take()
	brian.Begin()
	brian.Progress("Ran the test 200 times; it fails when the clock passes midnight in the fixture.")
	s.Item("gift-cards", "brian", titled("Let customers pay with gift cards", "", 40*time.Minute))
	s.Item("go-upgrade", "chen", titled("Upgrade to the latest Go release", "", 31*time.Minute))
	chen.Take()
	chen.Begin()
	chen.Progress("Two linters complain about loop variables; fixing them.")
	return cart(s)
}

// cart plays the session: one turn that is done, and one that runs.
func cart(s *stage.Stage) *shown {
	ada := s.Connect("ada")
	item := s.Item("cart-rounding", "ada", titled("Cart totals are off by one cent",
		"Three items at 0.333 with a 10 % voucher give 0.89 in the cart but 0.90 on the invoice. Find out why, and fix it with a test.", 22*time.Minute))
	ada.Take()
	ada.At, ada.Step = time.Now(), 2*time.Second
	prepare(ada)
	ada.Begin()
	ada.Claude(feed.ClaudeSystem, map[string]any{"type": "system", "subtype": "init", "model": "claude-sonnet-5", "cwd": "/home/agent/storefront"})
	ada.Says(stage.Thinking("**Where the two totals come from**\n\nThe cart and the invoice may round at different times."),
		stage.Text("I start with where both totals are computed."),
		stage.Tool("t1", "Grep", map[string]any{"pattern": "func.*Total", "path": "internal"}),
		stage.Tool("t2", "Bash", map[string]any{"command": "go test ./internal/cart/... -run Total", "description": "Run the tests of totals"}))
	ada.Gives("t1", "internal/cart/total.go:41:func (c *Cart) Total() money.Amount {\ninternal/invoice/lines.go:77:func (l Lines) Total() money.Amount {\n", false)
	ada.Gives("t2", "ok  \tstorefront/internal/cart\t0.412s\n", false)
	ada.Says(stage.Text("The cart rounds **each line** before it takes the voucher off, the invoice rounds the **sum**. `money.Amount` keeps cents only, so a third of a cent is lost per line."),
		stage.Tool("t3", "Edit", map[string]any{"file_path": "internal/cart/total.go", "old_string": "line.Price.Round()", "new_string": "line.Price"}),
		stage.Tool("t4", "Bash", map[string]any{"command": "go test ./internal/..."}))
	ada.Gives("t3", "The file was updated.", false)
	ada.Gives("t4", "--- FAIL: TestVoucherOnShipping (0.00s)\n    voucher_test.go:58: total is 12.35, want 12.34\nFAIL\tstorefront/internal/cart\t0.388s\n", true)
	ada.Says(stage.Text("One old test had the wrong sum written into it. I check it by hand before I change it."),
		stage.Tool("t5", "Bash", map[string]any{"command": "go test ./internal/... && git push -u origin item/cart-rounding"}))
	ada.Gives("t5", "ok  \tstorefront/internal/cart\t0.401s\nok  \tstorefront/internal/invoice\t0.377s\nbranch 'item/cart-rounding' set up to track 'origin/item/cart-rounding'.\n", false)
	ada.Says(stage.Text("Fixed: totals are rounded once, at the end.\n\n- `internal/cart/total.go` sums exact amounts\n- a new test has the three items of the report\n- the pull request is open, all checks pass"))
	branch, commit, title := "item/cart-rounding", "7c1e0b9", "Round cart totals once"
	ada.Git(feed.Git{Repos: []feed.GitRepo{{FullName: "acme/storefront", LocalCommit: &commit, RemoteBranch: &branch, RemoteCommit: &commit, CommitsTotal: 2,
		Commits: []feed.GitCommit{
			{SHA: "7c1e0b9d52", Subject: "Correct the sum in the shipping test", CommittedAt: time.Now(), Pushed: true},
			{SHA: "19af3d4c77", Subject: "Round cart totals once, at the end", CommittedAt: time.Now(), Pushed: true},
		}, PRs: []feed.GitPR{{Number: 412, Title: &title, URL: "https://git.example.com/acme/storefront/pulls/412"}}}}})
	ada.End(protocol.HandbackDone, model.TurnCompleted, used("a1", 38_400, 6900, 412_000, 0.47))
	id := s.Session(item).ID
	say(s, id, "Nice. Does the monthly statement have the same problem?")
	ada.Take()
	ada.Begin()
	ada.Says(stage.Text("I look where statements add up their lines."), stage.Tool("t6", "Bash", map[string]any{"command": "grep -rn 'Round()' internal/statement"}))
	ada.Gives("t6", "internal/statement/month.go:63:\t\tsum += order.Total.Round()\n", false)
	ada.Says(stage.Tool("t7", "Bash", map[string]any{"command": "go test ./internal/statement/... -run Month -count 20"}))
	ada.Progress("Checking whether monthly statements round the same way.")
	return &shown{id: id, agent: ada, last: "It does"}
}

// prepare uploads how the environment came to be.
func prepare(a *stage.Agent) {
	ms := func(n int64) *int64 { return &n }
	step := func(s string) *string { return &s }
	phase := func(phase, name string, took int64, lines ...string) {
		a.Lifecycle(feed.TypeEnvironmentPhase, feed.EnvironmentPhase{Phase: phase, Step: step(name), Status: feed.PhaseStarted})
		if len(lines) > 0 {
			a.Lifecycle(feed.TypeEnvironmentOutput, feed.EnvironmentOutput{Phase: phase, Step: step(name), Stream: feed.Stdout, Lines: lines})
		}
		a.Lifecycle(feed.TypeEnvironmentPhase, feed.EnvironmentPhase{Phase: phase, Step: step(name), Status: feed.PhaseCompleted, DurationMS: ms(took)})
	}
	phase(feed.PhaseClone, "acme/storefront", 1840)
	phase(feed.PhaseHooks, feed.StepAfterCheckout, 5210, "go: downloading 41 modules", "assets are built")
	a.Lifecycle(feed.TypeEnvironmentReady, feed.EnvironmentReady{Repositories: []string{"acme/storefront"}, DurationMS: ms(7100)})
}

// speaks tells what the agent is writing.
func (s *shown) speaks() {
	s.agent.Delta(feed.DeltaText, s.last+": `month.go` rounds every order before it adds them up, so a customer with forty orders can be up to twenty cents off. I fix it in the same")
	s.agent.Delta(feed.DeltaThinking, "One helper for cart, invoice and statement")
}

// say speaks into a session as a user of the API does.
func say(s *stage.Stage, session, text string) {
	body, _ := json.Marshal(map[string]string{"body": text})
	get[map[string]any](s, http.MethodPost, "/v1/sessions/"+session+"/messages", body)
}

// get asks the office, and reads what it answers.
func get[T any](s *stage.Stage, method, path string, body []byte) T {
	var answer T
	r, err := http.NewRequest(method, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		s.T().Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+stage.TokenAll)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.T().Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s was answered with %s: %s", path, response.Status, raw)
	}
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err != nil {
		s.T().Fatal(err)
	}
	return answer
}
