package claude

// This file decides how Claude Code is called: its arguments, its environment and its file of MCP servers.

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// useless are tools of Claude Code that do no good in a round: nobody answers questions or approves plans in the middle of one, nothing
// wakes a session after it, and the item's checkouts are made already.
var useless = []string{
	"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "CronCreate", "CronDelete", "CronList", "ScheduleWakeup",
	"EnterWorktree", "ExitWorktree",
}

// deny is the value of TeamPerson.Approvals that refuses what asks for permission. Anything else allows it: the pod is the sandbox.
const deny = "deny"

// arguments are those of one process. Each value is in one argument with its flag, so that none can pass for a flag itself.
func arguments(round runtime.Round, f files) []string {
	args := []string{
		"--print", "--input-format=stream-json", "--output-format=stream-json", "--verbose", "--include-partial-messages",
		"--replay-user-messages", "--permission-prompt-tool=stdio", "--append-system-prompt-file=" + f.system,
	}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag+"="+value)
		}
	}
	person := round.Person
	add("--resume", round.SessionID)
	add("--model", round.Model)
	add("--fallback-model", person.FallbackModel)
	if person.Effort != effortNone {
		add("--effort", person.Effort)
	}
	if person.MaxTurns > 0 {
		add("--max-turns", strconv.Itoa(person.MaxTurns))
	}
	if len(person.MCPServers) > 0 {
		add("--mcp-config", f.mcp)
	}
	for _, tool := range useless {
		add("--disallowedTools", tool)
	}
	if person.Approvals != deny {
		return append(args, "--permission-mode=bypassPermissions")
	}
	args = append(args, "--permission-mode=default")
	// What a round cannot do without: to speak to its team, and to say how it ended.
	for _, tool := range append([]string{"Bash(" + contract.CLIName + ":*)", "Edit(/" + f.result + ")"}, person.AllowedTools...) {
		add("--allowedTools", tool)
	}
	for _, dir := range folders(round) {
		add("--add-dir", dir)
	}
	return args
}

// folders are those that the round's files are in, beside the working directory.
func folders(round runtime.Round) []string {
	dirs := []string{round.Dir}
	for _, w := range round.Worktrees {
		dirs = append(dirs, w.Dir)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" || dir == round.Workdir })
}

// effortNone is the effort without thinking. Claude Code has no word for it, but a variable.
const effortNone = "none"

// nested are variables by which Claude Code knows that it was started by itself; it refuses to run so.
var nested = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"}

// environment is that of a process. What the pod's environment says itself stays as it is.
func environment(round runtime.Round, f files) []string {
	set := map[string]string{}
	env := make([]string, 0, len(round.Env)+8)
	for _, entry := range round.Env {
		name, value, _ := strings.Cut(entry, "=")
		if !slices.Contains(nested, name) {
			set[name] = value
			env = append(env, entry)
		}
	}
	add := func(name, value string) {
		if _, there := set[name]; !there {
			env = append(env, name+"="+value)
		}
	}
	// The image has its version, and nobody can be asked for an update.
	add("DISABLE_AUTOUPDATER", "1")
	add("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
	add("DISABLE_TELEMETRY", "1")
	add("DISABLE_ERROR_REPORTING", "1")
	// Without it Claude Code does not work without permissions as root; the pod is the sandbox.
	add("IS_SANDBOX", "1")
	add("CLAUDE_CONFIG_DIR", set["HOME"]+"/.claude")
	if round.Person.Effort == effortNone {
		add("MAX_THINKING_TOKENS", "0")
	}
	return append(env, resultEnv(f))
}

// mcpServer is a server as Claude Code's file of them has it. Claude Code itself puts variables in place of ${NAME}, so no secret is
// written.
type mcpServer struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// mcpConfig is the file of a person's MCP servers.
func mcpConfig(servers []protocol.TeamMCPServer) ([]byte, error) {
	config := map[string]mcpServer{}
	for _, s := range servers {
		server := mcpServer{Type: "stdio", Command: s.Command, Args: s.Args, Env: s.Env}
		if s.URL != "" {
			server = mcpServer{Type: "http", URL: s.URL, Headers: s.Headers}
		}
		config[s.Name] = server
	}
	return json.Marshal(map[string]any{"mcpServers": config})
}
