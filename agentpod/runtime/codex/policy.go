package codex

// This file answers what the app-server asks. Nobody is there to be asked, so every question is answered at once.

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// policy is how a person's approvals are answered.
type policy struct {
	// allow allows what is asked for.
	allow bool
	// tools are those that are allowed in any case, in Codex's own words: exec_command, or exec_command(git:*) for commands that begin
	// with the word git; apply_patch; request_permissions; mcp__SERVER, or mcp__SERVER__TOOL.
	tools []string
	// result is the file that the model may write in any case.
	result string
	// patches are the files that changes are about, by the ids of their items.
	patches map[string][]string
}

// deny is the value of TeamPerson.Approvals that refuses what asks for permission. Anything else allows it: the pod is the sandbox.
const deny = "deny"

// policyOf is the policy of a person. What a round cannot do without is always allowed: to speak to the team, and to say how it ended.
func policyOf(person protocol.TeamPerson, result string) policy {
	return policy{
		allow: person.Approvals != deny, tools: append([]string{toolCommand + "(" + contract.CLIName + ":*)"}, person.AllowedTools...),
		result: result, patches: map[string][]string{},
	}
}

// trust is whether Codex trusts the folder of the round. It reads the AGENTS.md of a folder that it trusts, and a configuration of its own
// there, which can start programs without being asked: so it does not where things are denied. Codex itself would trust the folder, and
// note that in the user's configuration.
func (p policy) trust() string {
	if p.allow {
		return "trusted"
	}
	return "untrusted"
}

// The tools of Codex that ask, by the names that the model knows them by.
const (
	toolCommand     = "exec_command"
	toolPatch       = "apply_patch"
	toolPermissions = "request_permissions"
)

// allows says whether a tool may be used, by any of its names.
func (p policy) allows(names ...string) bool {
	return p.allow || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(p.tools, name) })
}

// allowsCommands says whether commands may be run.
func (p policy) allowsCommands(commands []string) bool {
	return p.allows(toolCommand) || len(commands) > 0 && !slices.ContainsFunc(commands, func(command string) bool {
		return !slices.ContainsFunc(p.tools, func(tool string) bool { return matches(tool, command) })
	})
}

// shellSigns are characters with which one command can become several, or another one.
const shellSigns = ";|&$`()<>\n\\"

// matches says whether a command is one of those that a tool such as exec_command(git:*) stands for.
func matches(tool, command string) bool {
	prefix, ok := strings.CutPrefix(tool, toolCommand+"(")
	if !ok {
		return false
	}
	prefix, ok = strings.CutSuffix(prefix, ":*)")
	command = strings.TrimSpace(command)
	return ok && prefix != "" && !strings.ContainsAny(command, shellSigns) && (command == prefix || strings.HasPrefix(command, prefix+" "))
}

// changes notes the files of a change that may be asked about: the question names only its item.
func (p policy) changes(i *item) {
	var paths []string
	for _, c := range i.Changes {
		paths = append(paths, c.Path)
	}
	p.patches[i.ID] = paths
}

// allowsPatch says whether the files of a change may be changed.
func (p policy) allowsPatch(item string) bool {
	paths := p.patches[item]
	return p.allows(toolPatch) || len(paths) > 0 && !slices.ContainsFunc(paths, func(path string) bool { return path != p.result })
}

// verdict is the answer to a question that allows or denies.
type verdict struct {
	allowed bool
	answer  any
}

// MarshalJSON is that of the answer.
func (v verdict) MarshalJSON() ([]byte, error) { return json.Marshal(v.answer) }

// allows says whether an answer allows something.
func allows(answer any) bool {
	v, ok := answer.(verdict)
	return ok && v.allowed
}

// choose gives the answer of a verdict.
func choose(allowed bool, yes, no any) verdict {
	if allowed {
		return verdict{true, yes}
	}
	return verdict{false, no}
}

// deniedBecause is what a model is told where the protocol has a place for it.
const deniedBecause = "The team's policy does not allow this, and nobody is there to be asked. Find another way, or end the round as " +
	"blocked."

// question is what the runtime reads of the requests of the app-server.
type question struct {
	ItemID  string `json:"itemId"`
	Actions []struct {
		Command string `json:"command"`
	} `json:"commandActions"`
	Permissions map[string]json.RawMessage `json:"permissions"`
	Questions   []struct {
		ID string `json:"id"`
	} `json:"questions"`
	Server string `json:"serverName"`
	Mode   string `json:"mode"`
	Meta   struct {
		Tool string `json:"tool_name"`
	} `json:"_meta"`
	Schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	} `json:"requestedSchema"`
}

// answer is the answer to a request, or the refusal of one that this client does not know.
func (p policy) answer(method string, params json.RawMessage) (any, *rpcError) {
	var q question
	if err := json.Unmarshal(params, &q); err != nil {
		q = question{} // what is not understood is allowed only where everything is
	}
	decision := func(allowed bool, yes, no any) (any, *rpcError) {
		return choose(allowed, map[string]any{"decision": yes}, map[string]any{"decision": no}), nil
	}
	rejected := map[string]any{"denied": map[string]string{"rejection": deniedBecause}}
	switch method {
	case "item/commandExecution/requestApproval":
		return decision(p.allowsCommands(q.commands()), "accept", "decline")
	case "item/fileChange/requestApproval":
		return decision(p.allowsPatch(q.ItemID), "accept", "decline")
	case "execCommandApproval":
		return decision(p.allows(toolCommand), "approved", rejected)
	case "applyPatchApproval":
		return decision(p.allows(toolPatch), "approved", rejected)
	case "item/permissions/requestApproval":
		return p.permissions(q), nil
	case "mcpServer/elicitation/request":
		return p.elicitation(q), nil
	case "item/tool/requestUserInput":
		return userInput(q), nil
	case "item/tool/call":
		return map[string]any{
			"contentItems": []any{map[string]string{"type": "inputText", "text": "There is no such tool here."}}, "success": false,
		}, nil
	}
	return nil, &rpcError{Code: unknownMethod, Message: "bullpen does not answer " + method + ": nobody is there who could"}
}

// commands are those that a question is about.
func (q question) commands() []string {
	var commands []string
	for _, a := range q.Actions {
		commands = append(commands, a.Command)
	}
	return commands
}

// permissions grants what is asked for, for the turn, or nothing.
func (p policy) permissions(q question) verdict {
	granted := map[string]json.RawMessage{}
	allowed := p.allows(toolPermissions)
	if allowed {
		for name, permission := range q.Permissions {
			if given(permission) {
				granted[name] = permission
			}
		}
	}
	return verdict{allowed, map[string]any{"permissions": granted, "scope": "turn"}}
}

// elicitation answers what an MCP server asks for. Codex asks the same way whether a tool of a server may be used, and that the policy
// decides; what only a person could fill in or open is declined.
func (p policy) elicitation(q question) verdict {
	server := "mcp__" + q.Server
	allowed := q.Mode == "form" && len(q.Schema.Properties) == 0 && p.allows(server, server+"__"+q.Meta.Tool)
	return choose(allowed,
		map[string]any{"action": "accept", "content": map[string]any{}, "_meta": nil},
		map[string]any{"action": "decline", "content": nil, "_meta": nil})
}

// userInput answers questions to a user.
func userInput(q question) any {
	answers := map[string]any{}
	for _, one := range q.Questions {
		answers[one.ID] = map[string]any{"answers": []string{
			"Nobody is there to answer. Decide it yourself and say what you decided; what only a teammate knows, ask with `ost ask`.",
		}}
	}
	return map[string]any{"answers": answers}
}
