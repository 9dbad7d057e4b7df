package ost

// These tests hold the command against its page, and against agents that answer badly or not at all. What the commands send is
// tested with a real agent, in agentpod/agent.

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// commands returns every command that does something, by its synopsis.
func commands(c *cobra.Command) map[string]*cobra.Command {
	found := map[string]*cobra.Command{}
	for _, sub := range c.Commands() {
		switch {
		case sub.Name() == "help":
		case sub.HasSubCommands():
			for synopsis, leaf := range commands(sub) {
				found[synopsis] = leaf
			}
		default:
			found[synopsis(sub)] = sub
		}
	}
	return found
}

func TestThePageHasEveryCommandAndFlagAndNoOther(t *testing.T) {
	page, err := os.ReadFile("../../docs/ost.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile("(?m)^### `(ost [^`]+)`$")
	flag := regexp.MustCompile("`--([a-z-]+)")
	tree := commands(Command())
	if len(tree) < 30 {
		t.Fatalf("only %d commands were found", len(tree))
	}
	at := heading.FindAllStringSubmatchIndex(string(page), -1)
	described := map[string]string{}
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		section, _, _ := strings.Cut(string(page[m[1]:end]), "\n## ")
		described[string(page[m[2]:m[3]])] = section
	}
	for synopsis, c := range tree {
		section, ok := described[synopsis]
		if !ok {
			t.Errorf("docs/ost.md has no section %q", synopsis)
			continue
		}
		var want, got []string
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				want = append(want, f.Name)
			}
		})
		for _, m := range flag.FindAllStringSubmatch(section, -1) {
			if !slices.Contains(got, m[1]) {
				got = append(got, m[1])
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the flags of %q (-) and those on its section (+) differ:\n%s", synopsis, diff)
		}
		if c.Short == "" || c.RunE == nil || strings.HasSuffix(c.Short, "..") {
			t.Errorf("%q has no description or does nothing", synopsis)
		}
	}
	for synopsis := range described {
		if tree[synopsis] == nil {
			t.Errorf("docs/ost.md describes %q, which is no command", synopsis)
		}
	}
}

func TestThePageAndTheHelpHaveTheExitCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/ost.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []int{ExitOK, ExitRefused, ExitUsage, ExitNoAgent, ExitAway}
	for what, codes := range map[string][][]string{
		"docs/ost.md": regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(string(page), -1),
		"ost help":    regexp.MustCompile(`(?m)^ +(\d+)  [a-z]`).FindAllStringSubmatch(rootLong, -1),
	} {
		var got []int
		for _, m := range codes {
			n, _ := strconv.Atoi(m[1])
			got = append(got, n)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}

// stub is an agent that answers as a test says.
type stub struct {
	t      *testing.T
	socket string
	// asked are the requests: method, path and body.
	asked []string
	dir   string
}

// newStub serves each path with a status and a body; an empty body hangs up.
func newStub(t *testing.T, answers map[string]string) *stub {
	t.Helper()
	dir, err := os.MkdirTemp("", "bp") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &stub{t: t, socket: filepath.Join(dir, "s"), dir: dir}
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		s.asked = append(s.asked, r.Method+" "+r.URL.Path+" "+body.String())
		status, text, _ := strings.Cut(answers[r.URL.Path], " ")
		if text == "" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		code, _ := strconv.Atoi(status)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// ran is a run of the command.
type ran struct {
	exit        int
	out, errOut string
}

func (s *stub) run(args ...string) ran { return run(s.t, s.socket, "", args...) }

func run(t *testing.T, socket, input string, args ...string) ran {
	t.Helper()
	env := map[string]string{contract.EnvSocket: socket, contract.EnvItemID: "i"}
	var out, errOut bytes.Buffer
	exit := Main(t.Context(), args, Streams{In: strings.NewReader(input), Out: &out, Err: &errOut},
		func(name string) string { return env[name] }, "1.2.3")
	return ran{exit, strings.TrimSpace(out.String()), strings.TrimSpace(errOut.String())}
}

func TestExitCodesFollowFromWhatTheAgentSays(t *testing.T) {
	const refusal = `{"type":"error","payload":{"code":"failed","message":"because"}}`
	for name, test := range map[string]struct {
		answer string
		exit   int
		words  string
	}{
		"an answer":                        {`200 {"type":"ack","payload":{}}`, ExitOK, ""},
		"queued":                           {`202 {"queued":true}`, ExitOK, ""},
		"a refusal of the office":          {"200 " + refusal, ExitRefused, "ost: because (failed)"},
		"a refusal of the agent's own":     {"422 " + refusal, ExitRefused, "ost: because (failed)"},
		"a message that is not understood": {"400 " + refusal, ExitUsage, "ost: because\nSee \"ost answer --help\"."},
		"a message that may not be sent":   {"403 " + refusal, ExitUsage, "ost: because\nSee \"ost answer --help\"."},
		"a message that is too large":      {"413 " + refusal, ExitUsage, "ost: because\nSee \"ost answer --help\"."},
		"too much at once":                 {"429 " + refusal, ExitAway, "ost: because"},
		"an office that is away":           {"503 " + refusal, ExitAway, "ost: because"},
		"an answer that is none":           {"502 " + refusal, ExitAway, "ost: because"},
		"nonsense":                         {"200 hello", ExitAway, "ost: the agent's answer cannot be read (200 OK): "},
		"an error without words":           {"500 {}", ExitAway, "ost: the agent answered 500 Internal Server Error"},
		"an agent that ends":               {"", ExitAway, "ost: the agent ended before it answered: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, map[string]string{"/v1/messages/answer": test.answer})
			r := s.run("answer", "yes")
			if r.exit != test.exit || !strings.HasPrefix(r.errOut, test.words) || test.words == "" && r.errOut != "" {
				t.Errorf("exit code %d, %q", r.exit, r.errOut)
			}
			if asJSON := s.run("answer", "yes", "--json"); (asJSON.exit != ExitOK) != strings.HasPrefix(asJSON.out, fmt.Sprintf(`{"error":{"exit":%d,`, test.exit)) {
				t.Errorf("as JSON: %q", asJSON.out)
			}
		})
	}
}

func TestWithoutAnAgentTheCommandSaysSo(t *testing.T) {
	for name, test := range map[string]struct{ socket, words string }{
		"no socket is named":       {"", "ost: BULLPEN_SOCKET is not set"},
		"nobody is at the socket":  {filepath.Join(t.TempDir(), "s"), "ost: no agent answers at "},
		"the socket is no socket":  {"/dev/null", "ost: no agent answers at /dev/null"},
		"the socket's name is bad": {strings.Repeat("x", 200), "ost: no agent answers at "},
	} {
		if r := run(t, test.socket, "", "roster"); r.exit != ExitNoAgent || !strings.HasPrefix(r.errOut, test.words) {
			t.Errorf("%s: exit code %d, %q", name, r.exit, r.errOut)
		}
	}
}

func TestWhatIsWrongWithACommandIsSaidBeforeAnythingIsSent(t *testing.T) {
	s := newStub(t, nil)
	for args, want := range map[string]string{
		"dance":                           `ost has no command "dance"`,
		"pr":                              "ost pr needs one of check, list, made, open",
		"pr|dance":                        `ost pr has no command "dance"`,
		"ask|bob":                         "that makes 1 argument; the command is: ost ask PERSON QUESTION",
		"roster|now":                      "that makes 1 argument; the command is: ost roster",
		"roster|--loud":                   "unknown flag: --loud",
		"work|move|j|done":                `the state must be one of queued, blocked, canceled, not "done"`,
		"work|place|j|first":              `the place must be one of next, last, before, after, not "first"`,
		"work|place|j|before":             "before which item?",
		"work|place|j|next|k":             "next needs no other item",
		"pr|made|shop|12":                 `name the repository as OWNER/REPO, not "shop"`,
		"pr|made|acme/|12":                `name the repository as OWNER/REPO, not "acme/"`,
		"pr|made|acme/shop|twelve":        `"twelve" is no number of a pull request`,
		"pr|made|acme/shop|0":             `"0" is no number of a pull request`,
		"pr|list|--state|new":             `--state must be one of open, merged, closed, all, not "new"`,
		"pr|list|--limit|all":             `invalid argument "all" for "--limit" flag`,
		"chat|report|done":                `the kind must be one of ack, result, blocked, failed, not "done"`,
		"chat|receive|m|C|U|x|--file|{":   "--file must be a JSON object",
		"note|migrated|--doc-id|d":        "if any flags in the group [doc-id doc-title doc-url] are set they must all be set",
		"send|dance":                      `the protocol has no message "dance"`,
		"send|roster|{":                   "the payload is not JSON",
		"journal|x|--item|":               "which work item? Name it with --item, or set BULLPEN_ITEM_ID",
		"pr|check|--title|t|--body|b|now": "that makes 1 argument; the command is: ost pr check",
	} {
		r := s.run(strings.Split(args, "|")...)
		if r.exit != ExitUsage || !strings.Contains(r.errOut, want) || r.out != "" {
			t.Errorf("%s: exit code %d, %q%q", args, r.exit, r.errOut, r.out)
		}
	}
	if len(s.asked) > 0 {
		t.Errorf("the agent was asked %v", s.asked)
	}
}

func TestTextsComeFromStandardInputForADash(t *testing.T) {
	s := newStub(t, map[string]string{"/v1/messages/journal": `200 {"type":"ack","payload":{}}`})
	if r := run(t, s.socket, "line <1>\n\nline 2\n\n", "journal", "-"); r.exit != ExitOK {
		t.Errorf("%+v", r)
	}
	if want := `POST /v1/messages/journal {"workItemId":"i","text":"line <1>\n\nline 2"}`; len(s.asked) != 1 || s.asked[0] != want {
		t.Errorf("asked %v", s.asked)
	}
	if r := run(t, s.socket, strings.Repeat("x", maxText+1), "journal", "-"); r.exit != ExitUsage || !strings.Contains(r.errOut, "more than") {
		t.Errorf("too long a text: %+v", r)
	}
}

func TestHelpAndVersionNeedNoAgent(t *testing.T) {
	for args, want := range map[string]string{
		"":             "Exit codes:",
		"help":         "Exit codes:",
		"--help":       "Your team:",
		"help|pr|open": "nothing is opened",
		"--version":    "ost version 1.2.3",
	} {
		var list []string
		if args != "" {
			list = strings.Split(args, "|")
		}
		if r := run(t, "", "", list...); r.exit != ExitOK || !strings.Contains(r.out, want) {
			t.Errorf("ost %s: %+v", args, r)
		}
	}
}

func TestMayNotOpen(t *testing.T) {
	pulls := func(states ...protocol.PullState) (list []protocol.TicketPull) {
		for i, s := range states {
			list = append(list, protocol.TicketPull{Ref: fmt.Sprintf("acme/shop#%d", i), State: s})
		}
		return list
	}
	for name, test := range map[string]struct {
		found protocol.TicketPrsResult
		want  string
	}{
		"no ticket":                   {protocol.TicketPrsResult{PRs: pulls(protocol.PullOpen)}, ""},
		"a ticket that was not read":  {protocol.TicketPrsResult{Ticket: "T"}, ""},
		"a ticket in review":          {protocol.TicketPrsResult{Ticket: "T", Status: protocol.TicketStatusReview}, ""},
		"a ticket with ended ones":    {protocol.TicketPrsResult{Ticket: "T", PRs: pulls(protocol.PullMerged, protocol.PullClosed)}, ""},
		"a ticket with an open one":   {protocol.TicketPrsResult{Ticket: "T", PRs: pulls(protocol.PullMerged, protocol.PullOpen)}, "has an open pull request already, acme/shop#1"},
		"a ticket that is done":       {protocol.TicketPrsResult{Ticket: "T", Status: protocol.TicketStatusDone}, "ticket T is done"},
		"a ticket that was given up":  {protocol.TicketPrsResult{Ticket: "T", Status: protocol.TicketStatusCanceled}, "ticket T is canceled"},
		"a ticket that is blocked":    {protocol.TicketPrsResult{Ticket: "T", Status: protocol.TicketStatusBlocked}, ""},
		"a done one with an open one": {protocol.TicketPrsResult{Ticket: "T", Status: protocol.TicketStatusDone, PRs: pulls(protocol.PullOpen)}, "is done"},
	} {
		if got := mayNotOpen(test.found); (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// clone makes a bare repository with a commit on main, and goes into a clone of it that is on a branch of its own with
// another commit. It returns what git says in the bare one.
func clone(t *testing.T) func(args ...string) string {
	t.Helper()
	root := t.TempDir()
	git := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, entry := range []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost",
	} {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	bare, work := filepath.Join(root, "bare"), filepath.Join(root, "work")
	git(root, "init", "-q", "--bare", "-b", "main", bare)
	git(root, "init", "-q", "-b", "main", work)
	git(work, "commit", "-q", "--allow-empty", "-m", "First")
	git(work, "push", "-q", bare, "main")
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}
	git(root, "clone", "-q", bare, work)
	git(work, "switch", "-q", "-c", "SHOP-1-fix")
	git(work, "commit", "-q", "--allow-empty", "-m", "Fix it", "-m", "Closes SHOP-1.")
	t.Chdir(work)
	return func(args ...string) string { return git(bare, args...) }
}

const ticketPath = "/v1/messages/ticket_prs"

func TestOpenPushesTheBranchAndSaysWhatIsLeft(t *testing.T) {
	bare := clone(t)
	s := newStub(t, map[string]string{ticketPath: `200 {"type":"ticket_prs_result","payload":{"ticket":"SHOP-1","status":"active","prs":[]}}`})
	if err := os.WriteFile("new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.run("pr", "open")
	commit := bare("rev-parse", "--short", "SHOP-1-fix")
	want := ran{ExitOK, "pushed SHOP-1-fix (" + commit + ") to origin\n" +
		"No pull request was opened: this office has no code host. Open it there, then record it:\n" +
		"  ost pr made OWNER/REPO NUMBER --ticket SHOP-1", "1 change is not committed, and so not pushed"}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(ran{})); diff != "" {
		t.Error(diff)
	}
	asked := `POST /v1/messages/ticket_prs {"headRef":"SHOP-1-fix","title":"Fix it","body":"Closes SHOP-1."}`
	if diff := cmp.Diff([]string{asked}, s.asked); diff != "" {
		t.Error(diff)
	}
	r = s.run("pr", "open", "--json", "--title", "Mine", "--body", "Own words")
	if want := `{"pushed":{"remote":"origin","branch":"SHOP-1-fix","commit":"` + commit + `"},"ticket":"SHOP-1","pullRequest":null}`; r.out != want {
		t.Errorf("as JSON: %+v", r)
	}
	if want := `{"headRef":"SHOP-1-fix","title":"Mine","body":"Own words"}`; !strings.HasSuffix(s.asked[1], want) {
		t.Errorf("asked %s", s.asked[1])
	}
}

func TestOpenPushesNothingWhereNoPullRequestMayBe(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		args   []string
		exit   int
		words  string
	}{
		"the ticket has an open one": {
			`200 {"type":"ticket_prs_result","payload":{"ticket":"SHOP-1","prs":[{"ref":"acme/shop#9","number":9,"title":"t","state":"open","authorKind":"agent"}]}}`,
			nil, ExitRefused, "has an open pull request already, acme/shop#9"},
		"the office is away":      {`503 {"type":"error","payload":{"code":"failed","message":"away"}}`, nil, ExitAway, "away"},
		"the office refuses":      {`200 {"type":"error","payload":{"code":"invalid","message":"no"}}`, nil, ExitRefused, "no (invalid)"},
		"the branch is main":      {`200 {"type":"ticket_prs_result","payload":{"prs":[]}}`, []string{"--branch", "main"}, ExitRefused, "main is the default branch of origin"},
		"the branch is not there": {`200 {"type":"ticket_prs_result","payload":{"prs":[]}}`, []string{"--branch", "none", "--title", "t"}, ExitRefused, "git rev-parse failed"},
		"the remote is not there": {`200 {"type":"ticket_prs_result","payload":{"prs":[]}}`, []string{"--remote", "none"}, ExitRefused, "git push failed"},
	} {
		t.Run(name, func(t *testing.T) {
			bare := clone(t)
			s := newStub(t, map[string]string{ticketPath: test.answer})
			r := s.run(append([]string{"pr", "open"}, test.args...)...)
			if r.exit != test.exit || !strings.Contains(r.errOut, test.words) || r.out != "" {
				t.Errorf("%+v", r)
			}
			if branches := bare("branch", "--format=%(refname:short)"); branches != "main" {
				t.Errorf("branches that were pushed: %s", branches)
			}
		})
	}
}

func TestOpenWithAnOfficeThatKeepsNoTicketsOnlyPushes(t *testing.T) {
	bare := clone(t)
	s := newStub(t, map[string]string{ticketPath: `200 {"type":"error","payload":{"code":"unsupported","message":"no tickets here"}}`})
	r := s.run("pr", "open")
	if r.exit != ExitOK || r.errOut != "the office keeps no tickets, so their rules were not checked" || !strings.HasSuffix(r.out, "ost pr made OWNER/REPO NUMBER") {
		t.Errorf("%+v", r)
	}
	bare("rev-parse", "SHOP-1-fix")
}

func TestAPullRequestNeedsABranch(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GIT_CEILING_DIRECTORIES", "/")
	s := newStub(t, nil)
	for _, args := range [][]string{{"pr", "open"}, {"pr", "check"}} {
		if r := s.run(args...); r.exit != ExitUsage || !strings.Contains(r.errOut, "there is no current branch here") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := s.run("pr", "check", "--branch", "b"); r.exit != ExitUsage || !strings.Contains(r.errOut, "say what the pull request is with --title") {
		t.Errorf("%+v", r)
	}
}

func TestCheckEndsWith1WhereNoOtherPullRequestMayBe(t *testing.T) {
	s := newStub(t, map[string]string{ticketPath: `200 {"type":"ticket_prs_result","payload":{"ticket":"SHOP-1","status":"done","prs":[]}}`})
	want := ran{ExitRefused, "ticket SHOP-1, done", "ost: ticket SHOP-1 is done, so it gets no new pull request: make a ticket of its own for what is left"}
	if diff := cmp.Diff(want, s.run("pr", "check", "--branch", "b", "--title", "t"), cmp.AllowUnexported(ran{})); diff != "" {
		t.Error(diff)
	}
	if r := s.run("pr", "check", "--branch", "b", "--title", "t", "--json"); r.exit != ExitRefused || r.out != `{"ticket":"SHOP-1","status":"done","prs":[]}` {
		t.Errorf("as JSON: %+v", r)
	}
}
