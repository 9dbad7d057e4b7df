package codex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime/version"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestWhatThePolicyAllows(t *testing.T) {
	const result = "/scratch/result.json"
	command := func(commands ...string) string {
		var actions []map[string]string
		for _, c := range commands {
			actions = append(actions, map[string]string{"type": "unknown", "command": c})
		}
		data, err := json.Marshal(map[string]any{"commandActions": actions})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const (
		commands = "item/commandExecution/requestApproval"
		patches  = "item/fileChange/requestApproval"
		servers  = "mcpServer/elicitation/request"
	)
	tell := `{"serverName":"probe","mode":"form","_meta":{"tool_name":"tell"},"requestedSchema":{"properties":{}}}`
	for name, test := range map[string]struct {
		approvals string
		tools     []string
		method    string
		params    string
		want      bool
	}{
		"anything where all is allowed":          {"allow", nil, commands, command("rm -rf /"), true},
		"where nothing is said, too":             {"", nil, commands, command("rm -rf /"), true},
		"no command where all is denied":         {"deny", nil, commands, command("ls"), false},
		"but the team's own":                     {"deny", nil, commands, command("ost ask bob 'Which?'"), true},
		"the team's command alone":               {"deny", nil, commands, command("ost"), true},
		"not a command that begins like it":      {"deny", nil, commands, command("ostrich run"), false},
		"not with another one behind it":         {"deny", nil, commands, command("ost note add x; rm -rf /"), false},
		"nor in it":                              {"deny", nil, commands, command("ost note add $(rm -rf /)"), false},
		"nor beside it":                          {"deny", nil, commands, command("ost me", "rm -rf /"), false},
		"nor on a line of its own":               {"deny", nil, commands, command("ost me\nrm -rf /"), false},
		"a command of those that are named":      {"deny", []string{"exec_command(git status:*)"}, commands, command("git status -s"), true},
		"not another one":                        {"deny", []string{"exec_command(git status:*)"}, commands, command("git push"), false},
		"all commands":                           {"deny", []string{"exec_command"}, commands, command("git push"), true},
		"a name of another runtime is not Codex": {"deny", []string{"Bash"}, commands, command("git push"), false},
		"a question without a command":           {"deny", []string{"exec_command(git:*)"}, commands, `{}`, false},
		"one that is not understood":             {"deny", []string{"exec_command(git:*)"}, commands, `[]`, false},
		"no patch where all is denied":           {"deny", nil, patches, `{"itemId":"other"}`, false},
		"but that of the result file":            {"deny", nil, patches, `{"itemId":"result"}`, true},
		"not together with another file":         {"deny", nil, patches, `{"itemId":"both"}`, false},
		"not one that nobody told of":            {"deny", nil, patches, `{"itemId":"unknown"}`, false},
		"patches":                                {"deny", []string{"apply_patch"}, patches, `{"itemId":"other"}`, true},
		"a server":                               {"deny", []string{"mcp__probe"}, servers, tell, true},
		"a tool of a server":                     {"deny", []string{"mcp__probe__tell"}, servers, tell, true},
		"not another server":                     {"deny", []string{"mcp__pro"}, servers, tell, false},
		"permissions":                            {"deny", []string{"request_permissions"}, "item/permissions/requestApproval", `{}`, true},
		"no permissions":                         {"deny", nil, "item/permissions/requestApproval", `{}`, false},
		"no command of an old Codex":             {"deny", nil, "execCommandApproval", `{}`, false},
		"no patch of an old Codex":               {"deny", nil, "applyPatchApproval", `{}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := policyOf(protocol.TeamPerson{Approvals: test.approvals, AllowedTools: test.tools}, result)
			for id, paths := range map[string][]string{"result": {result}, "other": {"/etc/passwd"}, "both": {result, "/etc/passwd"}} {
				var i item
				i.ID = id
				for _, path := range paths {
					i.Changes = append(i.Changes, struct {
						Path string `json:"path"`
					}{path})
				}
				p.changes(&i)
			}
			answer, refused := p.answer(test.method, json.RawMessage(test.params))
			if refused != nil || allows(answer) != test.want {
				t.Errorf("%+v, %v", answer, refused)
			}
		})
	}
}

func TestWindowsHaveTheNamesOfTheirLengths(t *testing.T) {
	minutes := func(n int64) *int64 { return &n }
	now := time.Unix(1_000_000, 0)
	l := limits{}
	if l.merge(limitsView{ID: "codex"}) {
		t.Error("an update without windows has some")
	}
	l[windowRequests] = protocol.UsageWindow{Name: windowRequests, Utilization: 1}
	l.merge(limitsView{ID: "codex", Primary: &windowView{UsedPercent: 12.5, Minutes: minutes(300), ResetsAt: minutes(1_000_100)},
		Secondary: &windowView{UsedPercent: 101, Minutes: minutes(10080)}})
	l.merge(limitsView{ID: "codex", Primary: nil, Secondary: &windowView{UsedPercent: 99, Minutes: minutes(10080)}})
	l.merge(limitsView{ID: "special", Name: "A special model", Primary: &windowView{UsedPercent: -1, Minutes: minutes(77)}, Secondary: &windowView{}})
	want := []protocol.UsageWindow{
		{Name: "A special model_77_minutes"}, {Name: "A special model_secondary"},
		{Name: "five_hour", Utilization: 0.125, ResetsAt: "1970-01-12T13:48:20.000Z"}, {Name: "weekly", Utilization: 0.99},
	}
	if diff := cmp.Diff(want, l.list(now)); diff != "" {
		t.Error(diff)
	}
	if l.full(now) {
		t.Error("no window is full")
	}
	if windows := l.list(now.Add(time.Hour)); len(windows) != 3 {
		t.Errorf("a window that has started over is still told: %v", windows)
	}
	long := limitsView{ID: strings.Repeat("é", 300), Primary: &windowView{}}
	l.merge(long)
	for name := range l {
		if len(name) > 200 {
			t.Errorf("the office does not take a name of %d bytes", len(name))
		}
	}
}

func TestThoughtsAreTheFirstLineOfTheirSection(t *testing.T) {
	var th thinking
	var shown []string
	for _, f := range []fragmentView{
		{ItemID: "a", Delta: "**Rea"}, {ItemID: "a", Delta: "ding**\nthe"}, {ItemID: "a", Delta: " rest\nand more"},
		{ItemID: "a", Section: 1, Delta: "\n\n"}, {ItemID: "a", Section: 1, Delta: "Next"}, {ItemID: "b", Delta: "Other"},
		{ItemID: "b", Delta: strings.Repeat("é", 2*feed.MaxThinking)}, {ItemID: "b", Delta: "no more"},
	} {
		if text, changed := th.add(f); changed {
			shown = append(shown, text)
		}
	}
	want := []string{"**Rea", "**Reading**", "Next", "Other", "Other" + strings.Repeat("é", feed.MaxThinking-5)}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	th.begin(fragmentView{ItemID: "b", Section: 1})
	if text, changed := th.add(fragmentView{ItemID: "b", Section: 1, Delta: "Anew"}); !changed || text != "Anew" {
		t.Errorf("a new section goes on with %q", text)
	}
}

func TestProgressOfItems(t *testing.T) {
	for payload, want := range map[string]string{
		`{"type":"commandExecution","command":"/bin/bash -lc 'go test ./...'","commandActions":[{"command":"go test ./..."}]}`:           "$ go test ./...",
		`{"type":"commandExecution","command":"/bin/bash -c 'cat a | wc\n -l'","commandActions":[{"command":"cat a"},{"command":"wc"}]}`: "$ cat a | wc -l",
		`{"type":"commandExecution","command":"make all"}`:                                                                               "$ make all",
		`{"type":"fileChange","changes":[{"path":"/w/a.go"},{"path":"/w/b/c.go"}]}`:                                                      "changing a.go, c.go",
		`{"type":"mcpToolCall","server":"docs","tool":"search"}`:                                                                         "using search of docs",
		`{"type":"webSearch","query":"go generics"}`:                                                                                     "searching the web: go generics",
		`{"type":"agentMessage","text":"I look\nat it."}`:                                                                                "I look at it.",
		`{"type":"reasoning"}`: "",
		`{"type":"aNewOne"}`:   "",
	} {
		var i item
		if err := json.Unmarshal([]byte(payload), &i); err != nil {
			t.Fatal(err)
		}
		if got := progressOf(i); got != want {
			t.Errorf("%s: got %q, want %q", payload, got, want)
		}
	}
	if got := clip(strings.Repeat("x", 3)+"\xff", 3); got != "xxx…" {
		t.Errorf("got %q", got)
	}
}

func TestFailuresAreToldApart(t *testing.T) {
	for info, want := range map[string]string{
		`"usageLimitExceeded"`: "limited", `"rateLimitExceeded"`: "limited",
		`{"responseTooManyFailedAttempts":{"httpStatusCode":429}}`: "limited",
		`"serverOverloaded"`: "overloaded", `{"httpConnectionFailed":{"httpStatusCode":503}}`: "overloaded",
		`"unauthorized"`: "refused", `{"httpConnectionFailed":{"httpStatusCode":401}}`: "refused",
		`{"responseStreamDisconnected":{"httpStatusCode":403}}`: "refused",
		`"other"`: "", `"aNewOne"`: "", `null`: "", ``: "", `{"aNewOne":{"httpStatusCode":null}}`: "", `[1]`: "", `{"aNewOne":7}`: "",
	} {
		f := failure{Message: "m", Info: json.RawMessage(info)}
		var got []string
		if _, limited := f.limited(); limited {
			got = append(got, "limited")
		}
		if f.overloaded() {
			got = append(got, "overloaded")
		}
		if f.refused() {
			got = append(got, "refused")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is %q, want %q", info, got, want)
		}
	}
}

func TestAMemoryOutlivesTheAgentAndItsLossCostsLittle(t *testing.T) {
	home := t.TempDir()
	all := memoriesOf([]string{"HOME=" + home})
	usage := func(in int64) usageView { return usageView{Total: tokensView{Input: in}, Last: tokensView{Input: in}} }

	m := all.recall("0a-1")
	m.System = "digest"
	m.count("0a-1", "m1", true, false, usage(100))
	m.save(quiet(t))
	m = all.recall("0a-1")
	if m.changed("digest") || !m.changed("another") || len(m.usage()) != 0 {
		t.Errorf("%+v is remembered, and tells the usage %v of no round", m, m.usage())
	}
	// What the thread used in a round that was not told of its end counts for the model that it had then.
	m.count("0a-1", "m2", true, true, usage(130))
	m.count("0a-1", "m2", true, false, usage(135))
	want := []protocol.SessionUsage{{Session: "0a-1", Models: map[string]protocol.ModelUsage{"m1": {InputTokens: 130}, "m2": {InputTokens: 5}}}}
	if diff := cmp.Diff(want, m.usage()); diff != "" {
		t.Error(diff)
	}

	path := filepath.Join(home, ".bullpen", Name, "0a-1.json")
	for _, bad := range []string{"", "{", `{"ledgers":{"x":null,"y":{}}}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		m = all.recall("0a-1")
		m.count("0a-1", "m1", true, true, usage(100))
		m.count("y", "m1", false, false, usage(1))
		if got := m.usage(); len(got) != 2 || got[0].Models["m1"].InputTokens != 100 {
			t.Errorf("after %q: %+v", bad, got)
		}
	}
	for _, odd := range []string{"", "../../etc/passwd", "a/b", strings.Repeat("a", 100)} {
		m := all.recall(odd)
		m.save(quiet(t))
		if m.path != "" {
			t.Errorf("%q has the file %s", odd, m.path)
		}
	}
	old := time.Now().Add(-2 * keepMemories)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	all.prune(time.Now(), quiet(t))
	if _, err := os.Stat(path); err == nil {
		t.Error("an old memory is kept")
	}
}

func TestServersGetTheirVariables(t *testing.T) {
	env := []string{"TOKEN=old", "TOKEN=secret", "EMPTY="}
	got, err := mcpServers([]protocol.TeamMCPServer{
		{Name: "one", Command: "run", Args: []string{"-x", "${TOKEN}"}, Env: map[string]string{"A": "Bearer ${TOKEN}", "B": "${NONE:-plain}", "C": "$TOKEN"}},
		{Name: "two", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "${TOKEN}"}},
	}, env)
	want := map[string]any{
		"one": map[string]any{"command": "run", "args": []string{"-x", "${TOKEN}"},
			"env": map[string]string{"A": "Bearer secret", "B": "plain", "C": "$TOKEN"}},
		"two": map[string]any{"url": "https://example.com/mcp", "http_headers": map[string]string{"X-Key": "secret"}},
	}
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v, %s", err, cmp.Diff(want, got))
	}
	for _, name := range []string{"NONE", "EMPTY"} {
		_, err := mcpServers([]protocol.TeamMCPServer{{Name: "one", Headers: map[string]string{"H": "${" + name + "}"}, URL: "u"}}, env)
		if err == nil || !strings.Contains(err.Error(), "the MCP server one: H refers to the variable "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]version.Version{"codex-cli 0.171.0\n": {0, 171, 0}, "codex 1.2.3-beta.4": {1, 2, 3}} {
		if got, ok := parseVersion(text); !ok || got != want {
			t.Errorf("%q is %v", text, got)
		}
	}
	if _, ok := parseVersion("codex of the day"); ok {
		t.Error("that is no version")
	}
}

func TestTheDoctorTellsWhatIsWrongWithTheProgram(t *testing.T) {
	for said, want := range map[string]string{
		"codex-cli 0.100.0": "is version 0.100.0, and the least is " + minVersion.String(), "hello": "names no version",
	} {
		s := newStage(t, script{"--version": {{said}}})
		checks := s.codex.Doctor(t.Context())
		if len(checks) != 1 || checks[0].Status != protocol.CheckFail || !strings.Contains(checks[0].Detail, want) || checks[0].Fix == "" {
			t.Errorf("%q: %+v", said, checks)
		}
	}
	s := newStage(t, usual(nil, script{"--version": {{"codex-cli 9.9.9"}}, "initialize": {{"!say broken", "!exit 4"}}}))
	checks := s.codex.Doctor(t.Context())
	if len(checks) != 1 || !strings.Contains(checks[0].Detail, "its app-server does not work") || !strings.Contains(checks[0].Detail, "exit status 4: broken") {
		t.Errorf("%+v", checks)
	}
}

func TestColorsAreNoWords(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[2m2026\x1b[0m \x1b[31mERROR\x1b[0m x": "2026 ERROR x", "plain": "plain", "\x1b[": "", "a\x1b[3": "a", " \xff ": "�",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
