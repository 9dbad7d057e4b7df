// Package web tests the web page of the office as its users see it: in a real Chromium, on a real office with a real store, with agents that
// speak the protocol. Whatever the browser complains about fails the test.
package web

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/test/web/browser"
	"github.com/bullpen-dev/bullpen/test/web/stage"
)

// chromium is shared by the tests: each has a tab with a profile of its own.
var chromium *browser.Browser

// mainT lets the browser end after the last test.
type mainT struct{ cleanups []func() }

func (m *mainT) Helper()          {}
func (m *mainT) Cleanup(f func()) { m.cleanups = append(m.cleanups, f) }
func (m *mainT) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	m.end()
	os.Exit(1)
}

func (m *mainT) end() {
	for _, f := range m.cleanups {
		f()
	}
	m.cleanups = nil
}

func TestMain(m *testing.M) {
	t := &mainT{}
	chromium = browser.Open(t)
	code := m.Run()
	t.end()
	os.Exit(code)
}

// open opens the page of an office, without anybody signed in. What the browser complains about at the end fails the test, but for what it
// provoked.
func open(t *testing.T, s *stage.Stage, provoked ...string) *browser.Page {
	t.Helper()
	p := chromium.Page(t, 1280, 800)
	t.Cleanup(func() {
		for _, c := range p.Complaints(provoked...) {
			t.Errorf("the browser complains: %s", c)
		}
	})
	p.Go(s.URL() + "/")
	p.Dark(false)
	return p
}

// signedIn opens the page and signs in, with a namespace chosen.
func signedIn(t *testing.T, s *stage.Stage, token string, provoked ...string) *browser.Page {
	t.Helper()
	p := open(t, s, provoked...)
	p.Shows("h1", "Watch your agents work")
	p.Eval(`localStorage.setItem('bullpen.namespace', 'web')`)
	p.Type(token + "\r")
	p.Shows("h1", "Sessions")
	return p
}

// working opens a session that runs, with its turn begun.
func working(t *testing.T, s *stage.Stage, name string, edits ...func(*model.ItemFacts)) (*stage.Agent, string) {
	t.Helper()
	ada := s.Connect("ada")
	item := s.Item(name, "ada", edits...)
	ada.Take()
	ada.Begin()
	return ada, s.Session(item).ID
}

// visit opens a session in the page and waits until it is live.
func visit(p *browser.Page, session string) {
	p.Eval(fmt.Sprintf(`void (location.hash = '#/s/' + encodeURIComponent(%q))`, session))
	p.Shows(".connection-live", "live")
}

func TestSigningIn(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	s.Item("first", "ada")
	p := open(t, s, "401", "403")
	p.Shows("h1", "Watch your agents work")
	p.Type("token-of-somebody-else\r")
	p.Shows("[role=alert]", "does not know this token")
	p.Fill("#token", "Bearer "+stage.TokenAll+"\r")
	p.Shows("h1", "Sessions")
	p.Shows(".empty", "no sessions in namespace default")
	p.Fill("#namespace", "secret\r")
	p.Shows("[role=alert]", "you may not list workitems/session of bullpen.dev in namespace secret")
	p.Fill("#namespace", "web\r")
	p.Shows("table a", "Title of first")
	if where := p.Eval(`location.href + document.cookie + JSON.stringify(localStorage)`); strings.Contains(where, "token-of") {
		t.Errorf("the token is where it must not be: %s", where)
	}
	p.Eval(`void location.reload()`)
	p.Shows("table a", "Title of first")
	s.Expire(stage.TokenAll)
	p.Shows("[role=alert]", "does not accept this token any more")
	p.Fill("#token", stage.TokenReader+"\r")
	p.Shows("table a", "Title of first")
	p.Click("#sign-out")
	p.Shows("h1", "Watch your agents work")
	if left := p.Eval(`sessionStorage.length`); left != "0" {
		t.Errorf("after signing out %s things are kept", left)
	}
}

func TestSessionsAreListedFilteredAndKeptUpToDate(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada", "bob")
	for i := range 60 {
		s.Item(fmt.Sprintf("old-%d", i), "bob")
	}
	ada := s.Connect("ada")
	s.Item("lamp", "ada")
	ada.Take()
	ada.Begin()
	p := signedIn(t, s, stage.TokenAll)
	p.Until(`document.querySelectorAll('tbody tr').length === 50`)
	p.Click(".page > .quiet")
	p.Until(`document.querySelectorAll('tbody tr').length === 61`)
	p.Fill("#person", "ada\r")
	p.Until(`document.querySelectorAll('tbody tr').length === 1`)
	p.Shows("tbody td", "active")
	p.Shows("tbody td", "1 running")
	cost := 0.25
	ada.End(protocol.HandbackDone, model.TurnCompleted, protocol.SessionUsage{Session: "r1", Models: map[string]protocol.ModelUsage{
		"claude-sonnet-5": {InputTokens: 1200, OutputTokens: 300, CostUSD: &cost},
	}})
	p.Shows("tbody td", "done")
	p.Shows("tbody td", "1.5k")
	p.Shows("tbody td", "$0.25")
	p.Eval(`void ((document.querySelector('#state').value = 'queued'), document.querySelector('#state').dispatchEvent(new Event('change', {bubbles: true})))`)
	p.Shows(".empty", "No session fits the filter")
	p.Eval(`void (location.hash = '#/work')`)
	p.Shows(".board-row h2", "ada")
	p.Shows(".board-row h2", "bob")
	p.Shows(".card-done a", "Title of lamp")
	p.Until(`document.querySelectorAll('.card-queued').length === 60`)
}

func TestASessionIsWatchedAsItRuns(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	ada, session := working(t, s, "lamp")
	p := signedIn(t, s, stage.TokenAll)
	visit(p, session)
	p.Shows(".block-message", "Body of lamp")
	p.Shows(".block-turn", "Turn 1")

	ada.Delta(feed.DeltaThinking, "Where is the switch?")
	p.Shows(".live-thought", "Where is the switch?")
	ada.Delta(feed.DeltaThinking, "Behind the door")
	p.Until(`document.querySelector('.live-thought').innerText === '∴ Behind the door'`)
	ada.Delta(feed.DeltaText, "The lamp is ")
	ada.Delta(feed.DeltaText, "on a **timer**.")
	p.Until(`document.querySelector('.live-text').innerText.includes('The lamp is on a timer.')`)
	p.Until(`document.querySelector('.live-thought').hidden`)
	ada.Says(stage.Text("The lamp is on a **timer**."))
	p.Shows(".block-text strong", "timer")
	p.Until(`document.querySelector('.live-text').hidden && document.body.innerText.split('The lamp is on a').length === 2`)

	ada.Says(stage.Tool("t1", "Bash", map[string]any{"command": "cat lamp.conf", "description": "Read the lamp"}))
	p.Shows(".block-tool .outcome", "runs")
	ada.Gives("t1", "timer = 7\nbulb = led\n", false)
	p.Shows(".block-tool .outcome", "2 lines")
	if text := p.Text(".block-tool"); strings.Contains(text, "bulb") {
		t.Errorf("the result is not folded: %s", text)
	}
	p.Click(".block-tool summary")
	p.Shows(".block-tool pre", "bulb = led")
	p.Shows(".block-tool pre", "Read the lamp")

	ada.Lifecycle(feed.TypeEnvironmentPhase, feed.EnvironmentPhase{Phase: "setup", Status: "started"})
	ada.Lifecycle(feed.TypeEnvironmentOutput, feed.EnvironmentOutput{Phase: "setup", Stream: "stdout", Lines: []string{"fetching bulbs"}})
	p.Shows(".block-step .outcome", "started · 1 line")
	ada.Send(ada.Record("claude_code", "claude_jsonl@9", "riddle", `{"type":"riddle","n":123456789012345678901}`))
	p.Shows(".block-unknown", "claude_code · riddle")
	p.Click(".block-unknown summary")
	p.Shows(".block-unknown pre", "123456789012345678901")

	ada.Claude(feed.ClaudeRateLimit, `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","utilization":1}}`)
	p.Shows(".block-limit", "no more is allowed")
	branch := "item/lamp"
	ada.Git(feed.Git{Repos: []feed.GitRepo{{FullName: "acme/lamp", RemoteBranch: &branch, CommitsTotal: 1, Commits: []feed.GitCommit{
		{SHA: "0123456789abcdef", Subject: "Set the timer", Pushed: true},
	}}}})
	p.Shows(".repo", "item/lamp")
	p.Shows(".commits", "0123456 Set the timer")
	p.Shows(".facts", "Claude Code claude-sonnet-5")
	ada.End(protocol.HandbackDone, model.TurnCompleted)
	p.Shows(".block-turn-end", "Turn 1 completed")
	p.Shows(".session-head .badge", "done")
}

func TestSpeakingAndStopping(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	ada, session := working(t, s, "lamp")
	p := signedIn(t, s, stage.TokenAll)
	visit(p, session)
	p.Fill("#say", "Please use a dimmer.")
	p.Click(".speak .primary")
	p.Shows(".block-message", "Please use a dimmer.")
	p.Until(`document.querySelector('#say').value === ''`)

	p.Click(".session-acts .danger")
	p.Shows("dialog h2", "Stop this work?")
	p.Type("\x1b")
	p.Until(`!document.querySelector('dialog').open`)
	if turn := s.Session("uid-lamp").Turn; turn.Status != model.TurnRunning || !turn.StoppedAt.IsZero() {
		t.Fatalf("the work was stopped without a yes: %+v", turn)
	}
	p.Click(".session-acts .danger")
	p.Click("dialog .danger")
	p.Shows(".session-acts .danger:disabled", "Stopping")
	ada.Lifecycle(feed.TypeTurnEnded, feed.TurnEnded{Status: string(model.TurnStopped)})
	p.Shows(".facts", "stopped")
	p.Shows(".block-turn-end", "Turn 1 stopped")
	p.Until(`!document.querySelector('.session-acts .danger').checkVisibility()`)
	if turn := s.Session("uid-lamp").Turn; turn.StoppedAt.IsZero() || turn.StoppedBy != "grace" {
		t.Errorf("nobody stopped %+v", turn)
	}
}

func TestWhoMayOnlyReadIsToldSo(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	_, session := working(t, s, "lamp")
	p := signedIn(t, s, stage.TokenReader, "403")
	visit(p, session)
	p.Fill("#say", "Hello?")
	p.Click(".speak .primary")
	p.Shows("#say-problem", "you may not create workitems/message")
	if kept := p.Eval(`document.querySelector('#say').value`); kept != `"Hello?"` {
		t.Errorf("what was written is lost: %s", kept)
	}
}

func TestASessionThatTakesNoMessagesSaysWhy(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	ada, session := working(t, s, "sweep", func(f *model.ItemFacts) { f.Spec.Kind = "chore" })
	p := signedIn(t, s, stage.TokenAll)
	visit(p, session)
	p.Shows("#say-note", "ends with its first turn")
	p.Until(`document.querySelector('#say').disabled && document.querySelector('.speak .primary').disabled`)
	ada.End(protocol.HandbackDone, model.TurnCompleted)
	p.Shows(".block-note", "The session was closed.")
	p.Shows(".connection", "ended")
	p.Shows("#say-note", "the session is closed")
}

func TestAnOfficeThatRestartsLeavesNoGapAndNoRepeat(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	ada, session := working(t, s, "lamp")
	p := signedIn(t, s, stage.TokenAll, "WebSocket", "ERR_CONNECTION", "Failed to load resource")
	visit(p, session)
	say := func(n int) { ada.Says(stage.Text(fmt.Sprintf("line %d.", n))) }
	for n := range 20 {
		say(n)
	}
	p.Shows(".block-text", "line 19.")
	ada.Delta(feed.DeltaText, "half a sen")
	p.Shows(".live-text", "half a sen")
	s.Stop()
	p.Shows(".connection-waiting", "not connected")
	s.Start()
	ada.Resume()
	for n := 20; n < 40; n++ {
		say(n)
	}
	p.Shows(".block-text", "line 39.")
	p.Shows(".connection-live", "live")
	var lines []string
	if err := json.Unmarshal([]byte(p.Eval(`[...document.querySelectorAll('.block-text')].map((e) => e.innerText.trim())`)), &lines); err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		if want := fmt.Sprintf("line %d.", n); n >= len(lines) || lines[n] != want {
			t.Fatalf("line %d is not %q: %q", n, want, lines)
		}
	}
	if len(lines) != 40 {
		t.Errorf("there are %d lines, not 40", len(lines))
	}
	p.Until(`document.querySelector('.live-text').hidden`)
}

func TestAStreamThatIsRefusedAsksForAnotherToken(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	_, session := working(t, s, "lamp")
	p := signedIn(t, s, stage.TokenAll, "WebSocket", "ERR_CONNECTION", "Failed to load resource")
	visit(p, session)
	s.Expire(stage.TokenAll)
	s.Stop()
	s.Start()
	p.Shows("[role=alert]", "does not accept this token any more")
	p.Type(stage.TokenReader + "\r")
	p.Shows(".connection-live", "live")
	p.Shows(".block-message", "Body of lamp")
	p.Eval(`void (location.hash = '#/s/there-is-none')`)
	p.Shows("[role=alert]", "there is no such session, or you may not read it")
}

func TestTheReaderStaysWhereTheyScrolled(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	ada, session := working(t, s, "long")
	var many []feed.Entry
	for n := range 2300 {
		many = append(many, ada.Record("command", feed.FormatCommand, "note", fmt.Sprintf(`{"n":%d}`, n)))
	}
	for len(many) > 0 {
		n := min(500, len(many))
		ada.Send(many[:n]...)
		many = many[n:]
	}
	last := s.Latest(session)
	p := signedIn(t, s, stage.TokenAll)
	visit(p, session)
	count := `document.querySelectorAll('.log > .block').length`
	p.Until(fmt.Sprintf(`document.querySelector('.log').lastElementChild?.dataset.key === '%d.0'`, last))
	p.Until(count + ` === 400`)
	atEnd := `(() => { const s = document.querySelector('.scroller'); return s.scrollHeight - s.scrollTop - s.clientHeight < 4; })()`
	p.Until(atEnd)

	p.Eval(`void (document.querySelector('.scroller').scrollTop -= 2000)`)
	p.Shows(".latest", "Latest")
	top := `(() => { const t = document.querySelector('.scroller').getBoundingClientRect().top; return [...document.querySelectorAll('.log > .block')].find((b) => b.getBoundingClientRect().bottom > t).dataset.key; })()`
	before := p.Eval(top)
	ada.Says(stage.Text("something new at the end"))
	p.Until(`document.querySelector('.log').innerText.includes('something new at the end')`)
	if after := p.Eval(top); after != before {
		t.Errorf("the reader was at %s and is at %s", before, after)
	}
	// Back to the beginning, by what the page has and then by what the office has.
	p.Eval(`void (document.querySelector('.scroller').scrollTop = 0)`)
	for range 40 {
		if p.Eval(`document.querySelector('.earlier') === null`) == "true" {
			break
		}
		was := p.Eval(`document.querySelector('.log > .block').dataset.key`)
		p.Eval(`document.querySelector('.earlier').click()`)
		p.Until(fmt.Sprintf(`document.querySelector('.log > .block').dataset.key !== %s`, was))
	}
	p.Shows(".before", "The session begins here.")
	p.Shows(".block-message", "Body of long")
	if n := p.Eval(count + ` <= 1000`); n != "true" {
		t.Errorf("the page has %s blocks", p.Eval(count))
	}
	p.Click(".latest")
	p.Until(atEnd)
	p.Shows(".block-text", "something new at the end")
}

func TestWhatAnAgentSaysStaysText(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	evil := `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script><a href="javascript:window.hacked=3">x</a>`
	ada, session := working(t, s, "trap", func(f *model.ItemFacts) { f.Spec.Title = "T " + evil; f.Spec.Body = "B " + evil })
	p := signedIn(t, s, stage.TokenAll)
	p.Shows("table a", "T <img src=x onerror=")
	visit(p, session)
	ada.Progress(evil)
	ada.Says(stage.Text(evil+"\n[click](javascript:window.hacked=4) [ok](https://example.com/ok)\n```\n"+evil+"\n```"), stage.Thinking(evil+"\nmore"),
		stage.Tool("t1", evil, map[string]any{"command": evil, evil: evil}))
	ada.Gives("t1", evil, true)
	ada.Lifecycle(feed.TypeEnvironmentPhase, map[string]any{"phase": evil, "status": evil, "step": evil, "detail": map[string]any{evil: evil}})
	ada.Lifecycle(feed.TypeEnvironmentOutput, map[string]any{"phase": evil, "stream": evil, "chunk": 0, "lines": []string{evil}})
	ada.Send(ada.Record(evil, evil, evil, map[string]any{evil: evil}))
	ada.Send(ada.Record(feed.SourceClaudeCode, feed.FormatClaudeJSONL, "assistant", `{"type":"assistant","message":{"content":[null,7,{"type":["x"]},{"type":"text","text":{}}]}}`))
	ada.Send(ada.Record(feed.SourceCodex, feed.FormatCodexAppServer, "item/completed", `{"method":"item/completed","params":{"item":{"type":"commandExecution","command":{},"changes":7}}}`))
	ada.Claude(feed.ClaudeResult, map[string]any{"type": "result", "subtype": evil, "is_error": true, "result": evil, "errors": []string{evil}})
	title := evil
	ada.Git(feed.Git{Repos: []feed.GitRepo{{FullName: evil, RemoteBranch: &title, PRs: []feed.GitPR{{Number: 1, Title: &title, URL: "javascript:window.hacked=5"}},
		Commits: []feed.GitCommit{{SHA: evil, Subject: evil}}}}})
	ada.Delta(feed.DeltaText, evil)
	p.Shows(".live-text", "<script>")
	p.Shows(".repo", "<img")
	p.Eval(`document.querySelectorAll('.log details').forEach((d) => { d.open = true; })`)
	p.Shows(".block-tool pre.failed", "onerror")
	ada.Delta(feed.DeltaThinking, evil)
	p.Shows(".live-thought", "<img")
	p.Eval(`void (location.hash = '#/work')`)
	p.Shows(".card a", "T <img")
	visit(p, session)
	if got := p.Eval(`[window.hacked, document.querySelectorAll('main img, main script').length, [...document.querySelectorAll('main a')].map((a) => a.href)]`); got != `[null,0,["https://example.com/ok"]]` {
		t.Errorf("the page has %s", got)
	}
	rel := p.Eval(`document.querySelector('main a').rel + ' ' + document.querySelector('main a').target`)
	if rel != `"noopener noreferrer _blank"` {
		t.Errorf("the link is opened as %s", rel)
	}
}

func TestTheKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	ada, _ := working(t, s, "lamp")
	ada.Says(stage.Tool("t1", "Bash", map[string]any{"command": "ls"}))
	ada.Gives("t1", "bulb\nshade", false)
	p := signedIn(t, s, stage.TokenAll)
	p.Shows("table a", "Title of lamp")
	tabTo := func(selector string) {
		t.Helper()
		for range 40 {
			if p.Eval(fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) == "true" {
				if p.Eval(`getComputedStyle(document.activeElement).outlineStyle !== 'none'`) != "true" {
					t.Errorf("the focus on %s cannot be seen", selector)
				}
				return
			}
			p.Type("\t")
		}
		t.Fatalf("no way leads to %s", selector)
	}
	tabTo("table a")
	p.Type("\r")
	p.Shows(".connection-live", "live")
	p.Shows(".block-tool", "Bash")
	tabTo(".block-tool summary")
	p.Type("\r")
	p.Shows(".block-tool pre", "shade")
	tabTo("#say")
	p.Type("Typed by hand")
	tabTo(".speak .primary")
	p.Type("\r")
	p.Shows(".block-message", "Typed by hand")
	if landmarks := p.Eval(`['header.bar', 'nav[aria-label]', 'main', 'aside[aria-label]', '[role=log][aria-live=polite]'].filter((s) => !document.querySelector(s))`); landmarks != "[]" {
		t.Errorf("there is no %s", landmarks)
	}
	if unlabelled := p.Eval(`[...document.querySelectorAll('input, textarea, select')].filter((e) => !e.labels?.length).map((e) => e.id)`); unlabelled != "[]" {
		t.Errorf("fields without a label: %s", unlabelled)
	}
}

func TestEverySizeAndBothColorsAreReadable(t *testing.T) {
	t.Parallel()
	s := stage.Open(t, "ada")
	ada, session := working(t, s, "lamp", func(f *model.ItemFacts) { f.Spec.Title = strings.Repeat("averyveryverylongword", 8) })
	ada.Says(stage.Text("```\n"+strings.Repeat("x", 400)+"\n```\n"+strings.Repeat("y", 400)), stage.Tool("t1", "Bash", map[string]any{"command": strings.Repeat("z", 400)}))
	p := signedIn(t, s, stage.TokenAll)
	for _, at := range []string{"#/sessions", "#/work", "#/s/" + session} {
		p.Eval(fmt.Sprintf(`void (location.hash = %q)`, at))
		p.Shows("main", "averyveryverylongword")
		for _, width := range []int64{360, 768, 1280, 1600} {
			p.Size(width, 800)
			for _, dark := range []bool{false, true} {
				p.Dark(dark)
				if wide := p.Eval(`document.documentElement.scrollWidth - innerWidth`); wide != "0" {
					t.Errorf("%s at %d is %s pixels too wide", at[:6], width, wide)
				}
				if low := p.Eval(lowContrast); low != "[]" {
					t.Errorf("%s, dark %v: too little contrast: %s", at[:6], dark, low)
				}
				if len(p.Picture()) < 5000 {
					t.Errorf("%s at %d: there is nothing to see", at[:6], width)
				}
			}
		}
	}
}

// lowContrast lists texts whose color has less than 4.5 : 1 to what is behind them, as WCAG counts.
const lowContrast = `(() => {
  const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c; } return [255, 255, 255, 1]; };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || e.disabled || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push(e.tagName + '.' + e.className + ' ' + ratio.toFixed(2));
  }
  return bad;
})()`
