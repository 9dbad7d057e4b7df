package feed

// This file has the agent of the session object: whom a session was started for, as it was configured then.

// Agent is the configuration that a session was started from.
type Agent struct {
	// ID of the agent, which may have changed since; nil where it is not kept under one.
	ID     *string     `json:"id"`
	Config AgentConfig `json:"config"`
}

// AgentConfig is an agent's definition, frozen when the session was made.
type AgentConfig struct {
	About AgentAbout `json:"ellipsis"`
	// Trigger is what starts sessions of the agent by itself.
	Trigger *Trigger      `json:"trigger"`
	Input   *AgentInput   `json:"input"`
	Session SessionConfig `json:"session"`
}

// KindAgent is the kind of every AgentAbout.
const KindAgent = "agent"

// AgentAbout says which agent it is.
type AgentAbout struct {
	Version string `json:"version"`
	// Kind is KindAgent.
	Kind        string        `json:"kind"`
	Name        *string       `json:"name"`
	Description *string       `json:"description"`
	Enabled     bool          `json:"enabled"`
	Metadata    AgentMetadata `json:"metadata"`
}

// AgentMetadata is what users attach to an agent.
type AgentMetadata struct {
	Labels      List[string] `json:"labels"`
	Annotations Map[string]  `json:"annotations"`
}

// AgentInput is what a start of the agent takes.
type AgentInput struct {
	JSONSchema map[string]any `json:"json_schema"`
	Message    *string        `json:"message"`
}

// SessionConfig is how the agent's sessions are made.
type SessionConfig struct {
	Budget       BudgetConfig       `json:"budget"`
	ClaudeCode   *ClaudeCodeOptions `json:"claude_code"`
	Codex        *CodexOptions      `json:"codex"`
	Conversation ConversationConfig `json:"conversation"`
	// Environment is described in place, or the name of a saved one as a string. One of both has to be filled.
	Environment StringOr[EnvironmentConfig] `json:"environment"`
	Metadata    Map[string]                 `json:"metadata"`
	Output      *Output                     `json:"output"`
	Permissions Permissions                 `json:"permissions"`
	Skills      List[Skill]                 `json:"skills"`
}

// BudgetConfig bounds what an agent spends, in US dollars: in one session, and in the last 1, 7 and 28 days. Nil does not bound.
type BudgetConfig struct {
	Session *float64 `json:"session"`
	Day     *float64 `json:"day"`
	Week    *float64 `json:"week"`
	Month   *float64 `json:"month"`
}

// ConversationConfig says whether a session stays open after its first turn.
type ConversationConfig struct {
	Interactive bool `json:"interactive"`
}

// ClaudeCodeOptions are the options of a session on Claude Code.
type ClaudeCodeOptions struct {
	Model string `json:"model"`
	// Effort is low, medium, high, xhigh or max.
	Effort        *string `json:"effort"`
	FallbackModel *string `json:"fallback_model"`
	// MaxTurns is above 0.
	MaxTurns *int64        `json:"max_turns"`
	Settings *SettingsFile `json:"settings"`
	// Prompt is the first message.
	Prompt *string `json:"prompt"`
}

// SettingsFile is where the runtime's settings are.
type SettingsFile struct {
	Path       string      `json:"path"`
	Repository *Repository `json:"repository"`
}

// CodexOptions are the options of a session on Codex.
type CodexOptions struct {
	Model string `json:"model"`
	// Effort is none, low, medium, high, xhigh or max.
	Effort *string `json:"effort"`
	// Prompt is the first message.
	Prompt *string `json:"prompt"`
}

// Skill is a folder with instructions that the runtime can use.
type Skill struct {
	Path       string      `json:"path"`
	Repository *Repository `json:"repository"`
}
