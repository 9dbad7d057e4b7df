package feed

// This file has the session object as watchers see it: what is known of a session beside its records. The parts of it are in the files
// object_*.go. Every field is always written; what is unknown is null, what is empty is [] or {}. Times are written in the zone that they
// carry: fill them in UTC.

import "time"

// Session is the session object. Its zero value encodes, but is no valid session: Source and Conversation.State have to be filled.
type Session struct {
	ID           string       `json:"id"`
	Conversation Conversation `json:"conversation"`
	// Turn is the one in progress, or the latest one; nil until the session has a message.
	Turn      *Turn     `json:"turn"`
	Archived  *Archived `json:"archived"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// Source says where the session came from; one of the Origin constants.
	Source string `json:"source"`
	// Event is what happened outside that started the session; nil for direct and scheduled starts.
	Event  *Event `json:"event"`
	Cost   Cost   `json:"cost"`
	Tokens Tokens `json:"tokens"`
	// Parent is the session that this one continues.
	Parent *Parent `json:"parent"`
	// Attribution is whom the session is attributed to; its fields are nil where that is nobody the contract has a word for.
	Attribution Attribution `json:"attribution"`
	// Budget is the most that the session may spend, in US dollars.
	Budget float64 `json:"budget"`
	// Agent is whom the session was started for, as it was then.
	Agent       *Agent      `json:"agent"`
	Handler     *Handler    `json:"handler"`
	Environment Environment `json:"environment"`
	Metadata    Map[string] `json:"metadata"`
	// Git is what the session did to git, nil where nothing was ever looked at.
	Git         *Git        `json:"git"`
	Summary     *Summary    `json:"summary"`
	Permissions Permissions `json:"permissions"`
	Skills      List[Skill] `json:"skills"`
	// Output is what the session's last answer has to look like.
	Output *Output `json:"output"`
	// ClaudeCode and Codex are the options of the runtime. At most one is set; both are nil for other runtimes.
	ClaudeCode *ClaudeCodeOptions `json:"claude_code"`
	Codex      *CodexOptions      `json:"codex"`
}

// Where sessions come from.
const (
	OriginReact      = "react"
	OriginCodeReview = "code_review"
	OriginWeb        = "web"
	OriginAPI        = "api"
	OriginCLI        = "cli"
	OriginMention    = "mention"
	OriginCron       = "cron"
)

// The states of a conversation.
const (
	ConversationOpen   = "open"
	ConversationClosed = "closed"
)

// Conversation says whether a session takes messages.
type Conversation struct {
	// State is ConversationOpen or, for good, ConversationClosed.
	State string `json:"state"`
	// Interactive says that the session stays open after its first turn.
	Interactive bool `json:"interactive"`
	// Warm says that an agent can begin with a message at once; a hint.
	Warm      bool      `json:"warm"`
	Prompting Prompting `json:"prompting"`
}

// Why a conversation takes no direct message.
const (
	BlockedMentionSurface  = "mention_surface"
	BlockedNonInteractive  = "non_interactive"
	BlockedSingleTurn      = "harness_single_turn"
	BlockedBudgetExhausted = "budget_exhausted"
	BlockedClosed          = "closed"
)

// Prompting says whether a session takes direct messages, and why not. Whether one caller may send them is another question.
type Prompting struct {
	Enabled bool `json:"enabled"`
	// BlockedReason is one of the Blocked constants, nil where messages are taken.
	BlockedReason *string `json:"blocked_reason"`
	// Detail explains it to people.
	Detail *string `json:"detail"`
	// SurfaceName is where to speak instead, such as the name of a chat.
	SurfaceName *string `json:"surface_name"`
}

// The statuses of a turn. The last four are final.
const (
	TurnStatusPending   = "pending"
	TurnStatusRunning   = "running"
	TurnStatusCompleted = "completed"
	TurnStatusFailed    = "failed"
	TurnStatusStopped   = "stopped"
	TurnStatusCancelled = "cancelled"
)

// Turn is the messages that one round answers, and what came of them.
type Turn struct {
	ID string `json:"id"`
	// Index counts the turns of the session from 0.
	Index int64 `json:"index"`
	// Status is one of the TurnStatus constants.
	Status string `json:"status"`
	// Reason is why it failed or was cancelled, nil on any other status. The schema lists the words.
	Reason *string `json:"reason"`
	// Detail explains it to people.
	Detail *string `json:"detail"`
	// Stopped says that somebody asked to stop it.
	Stopped *Stopped `json:"stopped"`
	// CreatedAt is when its message came, StartedAt when the runtime began on it, EndedAt when it reached its final status.
	CreatedAt time.Time  `json:"created_at"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Cost      Cost       `json:"cost"`
	Tokens    Tokens     `json:"tokens"`
}

// Stopped says when a stop was asked for, and by whom.
type Stopped struct {
	At time.Time `json:"at"`
	By *User     `json:"by"`
}

// Archived says when a session was put away, and by whom. It neither stops nor closes the session.
type Archived struct {
	At time.Time `json:"at"`
	By *User     `json:"by"`
}

// User is a GitHub account. Type is User, Organization, Bot or Mannequin.
type User struct {
	Type      string  `json:"type"`
	ID        int64   `json:"id"`
	Login     string  `json:"login"`
	Name      *string `json:"name"`
	AvatarURL string  `json:"avatar_url"`
}

// Cost in millicents (thousandths of a US cent), by what it was for. Total is the sum.
type Cost struct {
	LLM    int64 `json:"llm"`
	CPU    int64 `json:"cpu"`
	Memory int64 `json:"memory"`
	Fee    int64 `json:"fee"`
	Total  int64 `json:"total"`
}

// Tokens that were used. No token counts twice: Total is the sum of the four. Model is the one that they are attributed to, empty where
// nobody knows it.
type Tokens struct {
	Input         int64  `json:"input"`
	Output        int64  `json:"output"`
	CacheRead     int64  `json:"cache_read"`
	CacheCreation int64  `json:"cache_creation"`
	Total         int64  `json:"total"`
	Model         string `json:"model"`
}

// Parent is the session that another continues.
type Parent struct {
	SessionID *string `json:"session_id"`
}

// The kinds of principals that sessions and messages are attributed to.
const (
	AttributionGitHubUser = "github_user"
	AttributionLinearUser = "linear_user"
	AttributionSlackUser  = "slack_user"
	AttributionAPIKey     = "api_key"
)

// Attribution is a principal of a service.
type Attribution struct {
	// Type is one of the Attribution constants.
	Type *string `json:"type"`
	ID   *string `json:"id"`
	// User is the GitHub account, where it is one.
	User *User `json:"user"`
}

// Handler is what answers the events of a service, as it was when the session started. Service is slack, github, linear or sentry.
type Handler struct {
	ID        string `json:"id"`
	AgentName string `json:"agent_name"`
	Service   string `json:"service"`
	// SHA is a fingerprint of the handler's configuration, no git commit.
	SHA string `json:"sha"`
}

// Summary is the latest line about what a session does, and when it was made.
type Summary struct {
	CreatedAt   *time.Time `json:"created_at"`
	Description string     `json:"description"`
}

// Output is the JSON Schema that the session's last answer obeys.
type Output struct {
	JSONSchema map[string]any `json:"json_schema"`
}

// The statuses of an InboxMessage.
const (
	InboxPending   = "pending"
	InboxDelivered = "delivered"
)

// InboxMessage is a message to a session as a snapshot shows it.
type InboxMessage struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	// TurnID is the turn that answers the message: it is answered when that turn has a final status.
	TurnID *string `json:"turn_id"`
	// Body has a placeholder for each image, such as [Image #1].
	Body string `json:"body"`
	// Author is a name for people.
	Author *string `json:"author"`
	// SenderAttributionType and SenderAttributionID name the sender at its service, as in Attribution; nil for others.
	SenderAttributionType *string `json:"sender_attribution_type"`
	SenderAttributionID   *string `json:"sender_attribution_id"`
	// Status is InboxPending or InboxDelivered.
	Status      string      `json:"status"`
	Images      List[Image] `json:"images"`
	CreatedAt   time.Time   `json:"created_at"`
	DeliveredAt *time.Time  `json:"delivered_at"`
	// FeedSeq is where the message_received stands; it is never a cursor.
	FeedSeq *int64 `json:"feed_seq"`
}

// Image tells of an image of a message. Its bytes are never in the feed.
type Image struct {
	// Index counts from 1.
	Index     int64  `json:"index"`
	MediaType string `json:"media_type"`
	// SizeBytes of the decoded image.
	SizeBytes int64 `json:"size_bytes"`
}
