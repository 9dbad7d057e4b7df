package v1alpha1

// This file has the kind Team.

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TeamSpec is a team: its roles, its humans, what its agents are made of, and how their work is run.
type TeamSpec struct {
	// DisplayName is what people call the team. Default: the object's name. Agents hear of a change at their next welcome.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	DisplayName string `json:"displayName,omitempty"`

	// Roles are the roles that people of the team can have. Agents hear of a change at their next welcome.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.map(role, has(role.instructions) ? role.instructions.size() : 0).sum() <= 131072",message="roles may have instructions of 131072 characters in all: put longer texts into a repository"
	Roles []Role `json:"roles,omitempty"`

	// Humans are the trusted people of flesh. Agents hear of a change at their next welcome.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=200
	Humans []Human `json:"humans,omitempty"`

	// Repositories are what the team works on. Agents hear of a change at their next welcome.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Repositories []Repository `json:"repositories,omitempty"`

	// Agent has the defaults of every person's agent.
	//
	// +optional
	Agent AgentSettings `json:"agent,omitempty"`

	// Usage says when usage holds work back.
	//
	// +optional
	// +kubebuilder:default={}
	Usage UsagePolicy `json:"usage,omitempty"`

	// Policies say how rounds are run.
	//
	// +optional
	// +kubebuilder:default={}
	Policies Policies `json:"policies,omitempty"`

	// Pipeline says what agents hear of what happens outside.
	//
	// +optional
	Pipeline Pipeline `json:"pipeline,omitempty"`

	// Sessions says how long the records of sessions are kept.
	//
	// +optional
	Sessions SessionsPolicy `json:"sessions,omitempty"`

	// Events says who may send events to the office: what happened in a tracker, at a code host or in a chat. Without it, the
	// office takes none.
	//
	// +optional
	Events *Events `json:"events,omitempty"`

	// Suspend stops new offers to the whole team; rounds that run go on.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Role is a role within a team.
type Role struct {
	// Name of the role; people and work items refer to it.
	Name RoleName `json:"name"`

	// Title is shown to people, for example Developer.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	Title string `json:"title,omitempty"`

	// Summary says in one line what the role does.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Summary string `json:"summary,omitempty"`

	// Instructions are the role's prompt.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Instructions string `json:"instructions,omitempty"`

	// Work lists the kinds of work that the role takes on. A kind that is not listed needs a review.
	//
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=32
	Work []WorkKind `json:"work,omitempty"`
}

// WorkKind is a kind of work of a role.
type WorkKind struct {
	// Kind as work items name it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9_-]*[a-z0-9])?$')",message="kind has lower-case letters, digits, '-' and '_', begins with a letter, and ends with a letter or digit"
	Kind string `json:"kind"`

	// Review says whether a finished item must name something to review: Required (the default) or None.
	//
	// +optional
	// +kubebuilder:default=Required
	// +kubebuilder:validation:Enum=Required;None
	Review ReviewPolicy `json:"review,omitempty"`
}

// ReviewPolicy says whether a kind of work ends with something to review.
type ReviewPolicy string

// The review policies.
const (
	ReviewRequired ReviewPolicy = "Required"
	ReviewNone     ReviewPolicy = "None"
)

// Human is a trusted person of flesh.
type Human struct {
	// Name of the human.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.trim() != '' && !self.matches('[\\\\r\\\\n]')",message="the name of a human is one line, and not blank"
	Name string `json:"name"`

	// Identities maps a system (for example github, slack) to the human's id there.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(system, system.size() > 0 && system.size() <= 63 && self[system].size() > 0 && self[system].size() <= 200)",message="identities maps names of systems (at most 63 characters, for example github) to ids (at most 200)"
	Identities map[string]string `json:"identities,omitempty"`
}

// Repository is a Git repository of the team.
type Repository struct {
	// Name by which agents know it; also its folder.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!self.contains('.')",message="the name of a repository has lower-case letters, digits and '-'"
	Name ObjectName `json:"name"`

	// URL to clone from. Credentials never belong in it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^((https?|ssh|git|file)://|/|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)[^\\\\s]+$')",message="url is what git clones: https://, ssh://, git:// or file://, user@host:path, or an absolute path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[a-z]+://[^/]*:[^/]*@') && !self.matches('^https?://[^/]*@')",message="url must not hold a user, token or password: name the Secret that has it as credentialsSecret"
	URL string `json:"url"`

	// DefaultBranch that work starts from. Default: the remote's HEAD.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_][^\\\\s~^:?*\\\\[\\\\\\\\]*)?$') && !self.contains('..')",message="defaultBranch is the name of a branch, for example main"
	DefaultBranch string `json:"defaultBranch,omitempty"`

	// CredentialsSecret names a Secret of the team's namespace with what git needs for this URL: username and password, or token, or
	// ssh-privatekey with, better, known_hosts. Agents read it anew for each use of git, so a renewed one is there for the next push. A
	// Secret that another repository names too is the same one. A change takes effect with the next pod.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CredentialsSecret ObjectName `json:"credentialsSecret,omitempty"`
}

// UsagePolicy says when usage holds work back.
type UsagePolicy struct {
	// TrackCost shows tokens and cost to agents.
	//
	// +optional
	TrackCost bool `json:"trackCost,omitempty"`

	// PauseAtPercent is how full, in percent, a usage window may be before the person, and everyone who shares its
	// subscription, pauses until the window's reset. 0 never pauses.
	//
	// +optional
	// +kubebuilder:default=95
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	PauseAtPercent *int32 `json:"pauseAtPercent,omitempty"`

	// Budgets bound usage. Near its bound people are warned, at it no further round starts in its scope, and beyond it running
	// rounds can be ended.
	//
	// +optional
	// +listType=map
	// +listMapKey=scope
	// +kubebuilder:validation:MaxItems=3
	Budgets []Budget `json:"budgets,omitempty"`

	// Prices say what models cost whose runtime does not tell it. They go before the operator's own list prices, and take effect at
	// once, also for usage whose cost was unknown until now.
	//
	// +optional
	// +listType=map
	// +listMapKey=model
	// +kubebuilder:validation:MaxItems=64
	Prices []Price `json:"prices,omitempty"`
}

// Price is what a million tokens of a model cost, in US dollars.
type Price struct {
	// Model is a model's id as the runtime reports it, or with a * at its end the beginning of many.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s*]*[*]?$')",message="model is a model's id without blanks, or its beginning with a * after it, for example house-*"
	Model string `json:"model"`

	// InputUSD is the price of a million tokens of input, for example "3" or "0.25".
	InputUSD Dollars `json:"inputUSD"`

	// OutputUSD is the price of a million tokens of output.
	OutputUSD Dollars `json:"outputUSD"`

	// CacheReadUSD is the price of a million tokens that are read from a prompt cache. Default: that of input.
	//
	// +optional
	CacheReadUSD Dollars `json:"cacheReadUSD,omitempty"`

	// CacheCreationUSD is the price of a million tokens that are written to a prompt cache. Default: that of input.
	//
	// +optional
	CacheCreationUSD Dollars `json:"cacheCreationUSD,omitempty"`
}

// Dollars is an amount in US dollars.
//
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,9}([.][0-9]{1,6})?$')",message="a price in US dollars is a decimal of at most six digits after the point, in quotes, for example \"0.25\""
type Dollars string

// Budget is an upper bound of usage in its scope.
//
// +kubebuilder:validation:XValidation:rule="!has(self.reserveTokens) || self.reserveTokens == 0 || has(self.tokens)",message="reserveTokens needs tokens: it is set aside from them"
// +kubebuilder:validation:XValidation:rule="!has(self.reserveUSD) || has(self.costUSD)",message="reserveUSD needs costUSD: it is set aside from it"
// +kubebuilder:validation:XValidation:rule="has(self.tokens) || has(self.costUSD)",message="a budget needs tokens or costUSD (or both)"
type Budget struct {
	// Scope: Team for all its work together, Person for each person, WorkItem for each item.
	//
	// +kubebuilder:validation:Enum=Team;Person;WorkItem
	Scope string `json:"scope"`

	// Tokens bounds all tokens added up.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Tokens *int64 `json:"tokens,omitempty"`

	// CostUSD bounds the cost in US dollars at list prices, for example "25" or "12.50"; quote it where it has a fraction.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",message="costUSD is a decimal above zero, in quotes, for example \"12.50\""
	CostUSD *resource.Quantity `json:"costUSD,omitempty"`

	// WarnAtPercent is how much of a bound, in percent, may be used before the condition BudgetWarning tells of it. 0 never warns.
	//
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	WarnAtPercent *int32 `json:"warnAtPercent,omitempty"`

	// StopAtPercent is how much of a bound, in percent, may be used before the rounds that run in its scope are ended, and their
	// items blocked. Default: never.
	//
	// +optional
	// +kubebuilder:validation:Minimum=101
	// +kubebuilder:validation:Maximum=10000
	StopAtPercent *int32 `json:"stopAtPercent,omitempty"`

	// ReserveTokens are set aside for every round that is offered or running. Default: what the team's latest rounds used on
	// average, at least a hundredth of the bound, and only for rounds that run already.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReserveTokens int64 `json:"reserveTokens,omitempty"`

	// ReserveUSD is set aside for every round that is offered or running, in US dollars. Default: as for reserveTokens.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))",message="reserveUSD is a decimal of zero or more, in quotes, for example \"0.50\""
	ReserveUSD *resource.Quantity `json:"reserveUSD,omitempty"`
}

// Pipeline says what agents hear of what happens outside.
type Pipeline struct {
	// Context bounds what an offer tells of tickets, pull requests, documents and chats. What is farthest from the item is left
	// out first, and the offer says how much.
	//
	// +optional
	Context ContextLimits `json:"context,omitempty"`
}

// ContextLimits bound what an offer tells of the world. Agents hear of a change with the next offer.
type ContextLimits struct {
	// BodyChars is the most characters of one text. Default: 4000.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	BodyChars *int32 `json:"bodyChars,omitempty"`

	// Comments is the most comments of one ticket, pull request or document. Default: 10.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Comments *int32 `json:"comments,omitempty"`

	// Reviews is the most reviews of one pull request. Default: 20.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Reviews *int32 `json:"reviews,omitempty"`

	// Threads is the most review threads of one pull request. Default: 20.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Threads *int32 `json:"threads,omitempty"`

	// Messages is the most messages of one chat thread. Default: 20.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Messages *int32 `json:"messages,omitempty"`

	// Items is the most tickets, pull requests, documents and chats in all. Default: 20.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Items *int32 `json:"items,omitempty"`
}

// SessionsPolicy says how long the records of sessions are kept.
type SessionsPolicy struct {
	// Retention bounds the records of closed sessions; those of open ones are always kept. A change takes effect within minutes.
	//
	// +optional
	Retention SessionRetention `json:"retention,omitempty"`
}

// SessionRetention bounds what is kept of closed sessions.
type SessionRetention struct {
	// MaxAge is how long the records of a session are kept after it was closed, for example 720h. Default: for ever.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('87600h')",message="maxAge is a duration between 1m and 87600h, for example 720h"
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`

	// MaxSize bounds the bytes of all records of the team: the session that was closed first goes first. Default: no bound.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="maxSize is a quantity of at least 1Mi, for example 20Gi"
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`
}

// Events says who may send events to the office.
type Events struct {
	// TokenSecret has the token that the sender of an event must give. A changed Secret takes effect within half a minute.
	TokenSecret SecretKey `json:"tokenSecret"`
}

// SecretKey names a key of a Secret in the same namespace.
type SecretKey struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MaxLength=253
	Name ObjectName `json:"name"`

	// Key within the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="a key of a Secret has letters, digits, '-', '_' and '.'"
	Key string `json:"key"`
}

// Policies say how rounds are run.
type Policies struct {
	// Attempts is how often an item may fail before it is blocked, where the item does not say.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Attempts int32 `json:"attempts,omitempty"`

	// MaxLostRounds is how many rounds of one item may end without a hand-back (crash, out of memory, node gone) before it
	// is blocked.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxLostRounds int32 `json:"maxLostRounds,omitempty"`

	// Heartbeat is how often a working agent must show life. Agents hear of a change at their next welcome.
	//
	// +optional
	// +kubebuilder:default="15s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$') && duration(self) >= duration('200ms') && duration(self) <= duration('5m')",message="heartbeat is a duration between 200ms and 5m, for example 15s"
	Heartbeat *metav1.Duration `json:"heartbeat,omitempty"`

	// LostAfter is how long a person may be away in the middle of a round before the round counts as lost.
	//
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="lostAfter is a duration between 1s and 24h, for example 10m"
	LostAfter *metav1.Duration `json:"lostAfter,omitempty"`

	// Backoff is the wait after the first failed or declined round; it doubles each time, up to a hundredfold.
	//
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('1h')",message="backoff is a duration between 100ms and 1h, for example 10s"
	Backoff *metav1.Duration `json:"backoff,omitempty"`

	// Rollout says how a pod is replaced when its person or team changed.
	//
	// +optional
	// +kubebuilder:default={}
	Rollout RolloutPolicy `json:"rollout,omitempty"`
}

// RolloutPolicy says how a pod is replaced.
type RolloutPolicy struct {
	// MaxWait is how long a pod that must be replaced is left to finish its round. Then the round is interrupted and goes on
	// in the new pod.
	//
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="maxWait is a duration between 0s and 168h, for example 1h"
	MaxWait *metav1.Duration `json:"maxWait,omitempty"`
}

// TeamStatus is what there is to see of a team.
type TeamStatus struct {
	// ObservedGeneration is the generation of the spec that the status tells of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, EventsReady, BudgetWarning.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// People counts the team's people: all of them, and by state.
	//
	// +optional
	People PeopleCounts `json:"people,omitempty"`

	// WorkItems counts the team's items by state.
	//
	// +optional
	WorkItems ItemCounts `json:"workItems,omitempty"`

	// Usage of the whole team.
	//
	// +optional
	Usage UsageStatus `json:"usage,omitempty"`

	// Store that the status was read from.
	//
	// +optional
	Store StoreRef `json:"store,omitempty"`
}

// PeopleCounts counts people by state.
type PeopleCounts struct {
	// Total people of the team.
	//
	// +optional
	// +kubebuilder:default=0
	Total int32 `json:"total"`
	// Idle people, who wait for work.
	//
	// +optional
	// +kubebuilder:default=0
	Idle int32 `json:"idle"`
	// Working people.
	//
	// +optional
	// +kubebuilder:default=0
	Working int32 `json:"working"`
	// Paused people, whom usage or their user holds back.
	//
	// +optional
	// +kubebuilder:default=0
	Paused int32 `json:"paused"`
	// Offline people, whose agent is not connected.
	//
	// +optional
	// +kubebuilder:default=0
	Offline int32 `json:"offline"`
	// Summary is working/total, for print columns.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Summary string `json:"summary,omitempty"`
}

// ItemCounts counts work items by state.
type ItemCounts struct {
	// Queued items.
	//
	// +optional
	// +kubebuilder:default=0
	Queued int32 `json:"queued"`
	// Active items.
	//
	// +optional
	// +kubebuilder:default=0
	Active int32 `json:"active"`
	// Waiting items.
	//
	// +optional
	// +kubebuilder:default=0
	Waiting int32 `json:"waiting"`
	// Blocked items.
	//
	// +optional
	// +kubebuilder:default=0
	Blocked int32 `json:"blocked"`
	// Done items.
	//
	// +optional
	// +kubebuilder:default=0
	Done int32 `json:"done"`
	// Canceled items.
	//
	// +optional
	// +kubebuilder:default=0
	Canceled int32 `json:"canceled"`
}

// Team is a team of AI agents and the humans they work with.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=teams,scope=Namespaced,categories=bullpen
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="People",type=string,JSONPath=`.status.people.summary`,description="Working of all people"
// +kubebuilder:printcolumn:name="Queued",type=integer,JSONPath=`.status.workItems.queued`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.workItems.active`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.workItems.waiting`,priority=1
// +kubebuilder:printcolumn:name="Blocked",type=integer,JSONPath=`.status.workItems.blocked`
// +kubebuilder:printcolumn:name="Done",type=integer,JSONPath=`.status.workItems.done`
// +kubebuilder:printcolumn:name="Tokens",type=integer,JSONPath=`.status.usage.tokens`
// +kubebuilder:printcolumn:name="Cost",type=string,JSONPath=`.status.usage.costUSD`,description="US dollars at list prices"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="metadata.name of a Team has at most 63 lower-case letters, digits and '-', and begins and ends with a letter or digit"
type Team struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	//
	// +optional
	// +kubebuilder:default={}
	Spec TeamSpec `json:"spec,omitempty"`
	// Status is what there is.
	//
	// +optional
	Status TeamStatus `json:"status,omitempty"`
}

// TeamList is a list of teams.
//
// +kubebuilder:object:root=true
type TeamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Team `json:"items"`
}
