package claude

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// paths are those of a round, made up.
var paths = files{offer: "/s/offer.json", system: "/s/system.md", mcp: "/s/mcp.json", result: "/s/result.json"}

// always are the arguments of every process.
func always(more ...string) []string {
	args := []string{
		"--print", "--input-format=stream-json", "--output-format=stream-json", "--verbose", "--include-partial-messages",
		"--replay-user-messages", "--permission-prompt-tool=stdio", "--append-system-prompt-file=/s/system.md",
	}
	return append(args, more...)
}

func TestArguments(t *testing.T) {
	for name, test := range map[string]struct {
		round runtime.Round
		want  []string
	}{
		"nothing said": {runtime.Round{}, always("--permission-mode=bypassPermissions")},
		"all said": {
			runtime.Round{
				SessionID: one, Model: "m", Person: protocol.TeamPerson{
					FallbackModel: "f", Effort: "high", MaxTurns: 30, Approvals: "allow", AllowedTools: []string{"Read"},
					MCPServers: []protocol.TeamMCPServer{{Name: "x"}},
				},
			},
			always("--resume="+one, "--model=m", "--fallback-model=f", "--effort=high", "--max-turns=30", "--mcp-config=/s/mcp.json",
				"--permission-mode=bypassPermissions"),
		},
		"approvals denied": {
			runtime.Round{
				Dir: "/item", Workdir: "/item/a", Worktrees: []runtime.Worktree{{Dir: "/item/a"}, {Dir: "/item/b"}},
				Person: protocol.TeamPerson{Approvals: "deny", AllowedTools: []string{"Bash(git *)", "--model=evil"}, Effort: "none"},
			},
			always("--permission-mode=default", "--allowedTools=Bash(ost:*)", "--allowedTools=Edit(//s/result.json)",
				"--allowedTools=Bash(git *)", "--allowedTools=--model=evil", "--add-dir=/item", "--add-dir=/item/b"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := arguments(test.round, paths)
			got = slices.DeleteFunc(got, func(a string) bool { return strings.HasPrefix(a, "--disallowedTools=") })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, tool := range []string{"AskUserQuestion", "ScheduleWakeup"} {
		if !slices.Contains(arguments(runtime.Round{}, paths), "--disallowedTools="+tool) {
			t.Errorf("%s is offered", tool)
		}
	}
}

func TestEnvironment(t *testing.T) {
	round := runtime.Round{Env: []string{"HOME=/h", "DISABLE_TELEMETRY=0", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "A=b"}}
	want := []string{
		"HOME=/h", "DISABLE_TELEMETRY=0", "A=b", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_ERROR_REPORTING=1", "IS_SANDBOX=1", "CLAUDE_CONFIG_DIR=/h/.claude", "BULLPEN_RESULT_FILE=/s/result.json",
	}
	if diff := cmp.Diff(want, environment(round, paths)); diff != "" {
		t.Error(diff)
	}
	round.Person.Effort = "none"
	round.Env = append(round.Env, "CLAUDE_CONFIG_DIR=/elsewhere")
	got := environment(round, paths)
	if !slices.Contains(got, "MAX_THINKING_TOKENS=0") || slices.Contains(got, "CLAUDE_CONFIG_DIR=/h/.claude") {
		t.Errorf("%q", got)
	}
}

func TestMCPConfigHasNoValuesOfVariables(t *testing.T) {
	got, err := mcpConfig([]protocol.TeamMCPServer{
		{Name: "files", Command: "serve", Args: []string{"--root", "${HOME}"}, Env: map[string]string{"TOKEN": "${TOKEN}"}},
		{Name: "web", URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"mcpServers":{"files":{"type":"stdio","command":"serve","args":["--root","${HOME}"],"env":{"TOKEN":"${TOKEN}"}},` +
		`"web":{"type":"http","url":"https://example.com/mcp","headers":{"Authorization":"Bearer ${TOKEN}"}}}}`
	if string(got) != want {
		t.Errorf("%s", got)
	}
}

func TestRequestsAreAnsweredByPolicy(t *testing.T) {
	response := func(body string) string { return `{"type":"control_response","response":` + body + `}` }
	for name, test := range map[string]struct {
		request string
		deny    bool
		want    string
	}{
		"a tool": {`{"subtype":"can_use_tool","tool_name":"Bash","input":{"n":12345678901234567890}}`, false,
			response(`{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{"n":12345678901234567890}}}`)},
		"a tool without input": {`{"subtype":"can_use_tool","tool_name":"Bash"}`, false,
			response(`{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{}}}`)},
		"a tool, denied": {`{"subtype":"can_use_tool","tool_name":"Bash","input":{}}`, true,
			response(`{"subtype":"success","request_id":"r","response":{"behavior":"deny","message":` + compact(t, denied) + `}}`)},
		"a question": {`{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{}}`, false,
			response(`{"subtype":"success","request_id":"r","response":{"behavior":"deny","message":` + compact(t, nobody) + `}}`)},
		"what an MCP server wants to know": {`{"subtype":"elicitation"}`, false,
			response(`{"subtype":"success","request_id":"r","response":{"action":"decline"}}`)},
		"something of tomorrow": {`{"subtype":"sing"}`, false,
			response(`{"subtype":"error","request_id":"r","error":"this agent does not answer requests of the kind sing"}`)},
		"nothing": {`null`, false, response(`{"subtype":"error","request_id":"r","error":"the request is empty"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newSession(t)
			s.policy.deny = test.deny
			s.hears(`{"type":"control_request","request_id":"r","request":` + test.request + `}`)
			if len(s.out) != 1 || string(s.out[0]) != test.want+"\n" {
				t.Errorf("%q", s.out)
			}
		})
	}
}
