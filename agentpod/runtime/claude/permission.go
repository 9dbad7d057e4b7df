package claude

// This file answers what Claude Code asks while it works: mostly for permission to use a tool.

import (
	"encoding/json"
	"slices"
)

// policy says what is allowed that Claude Code asks for.
type policy struct{ deny bool }

// subtypes of requests. What MCP servers want of a user is called an elicitation.
const (
	askTool        = "can_use_tool"
	askElicitation = "elicitation"
)

// nobody is what the model hears when it wants to speak to somebody.
const nobody = "Nobody is there to answer in the middle of a round. Decide it yourself and say so at the end, ask a teammate with " +
	"`ost ask`, or end the round as waiting or blocked."

// denied is what the model hears about a tool that the policy does not allow.
const denied = "The team does not allow this tool here: it is none of the person's allowedTools, and approvals are denied. Do without " +
	"it. If the work cannot be done without it, end the round as blocked and say what is missing."

// controlResponse is a line that answers a request.
type controlResponse struct {
	Type     string          `json:"type"`
	Response controlOutcomes `json:"response"`
}

type controlOutcomes struct {
	Subtype   string `json:"subtype"`
	RequestID string `json:"request_id"`
	Response  any    `json:"response,omitempty"`
	Error     string `json:"error,omitempty"`
}

// permission is the answer to askTool.
type permission struct {
	Behavior     string          `json:"behavior"`
	UpdatedInput json.RawMessage `json:"updatedInput,omitempty"`
	Message      string          `json:"message,omitempty"`
}

// answer answers a request.
func (p policy) answer(id string, r controlRequest) controlResponse {
	switch r.Subtype {
	case askTool:
		return success(id, p.permission(r))
	case askElicitation:
		return success(id, map[string]string{"action": "decline"})
	}
	return refusal(id, "this agent does not answer requests of the kind "+r.Subtype)
}

// permission decides about a tool.
func (p policy) permission(r controlRequest) permission {
	switch {
	case slices.Contains(useless, r.ToolName):
		return permission{Behavior: "deny", Message: nobody}
	case p.deny:
		return permission{Behavior: "deny", Message: denied}
	}
	input := r.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return permission{Behavior: "allow", UpdatedInput: input}
}

func success(id string, response any) controlResponse {
	return controlResponse{Type: typeControlResponse, Response: controlOutcomes{Subtype: "success", RequestID: id, Response: response}}
}

func refusal(id, why string) controlResponse {
	return controlResponse{Type: typeControlResponse, Response: controlOutcomes{Subtype: "error", RequestID: id, Error: why}}
}
