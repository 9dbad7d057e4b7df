package protocol

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
)

// This file holds the team config, the value of Welcome.Team. Its schema is
// Bullpen's own. It names no secret and holds none. An agent reads what it
// knows and ignores the rest, so an office may be newer than its agents.

// Review says whether a kind of work ends in something that is looked at.
type Review string

// The values of Review.
const (
	// ReviewRequired takes a done round as blocked if there is nothing to
	// review.
	ReviewRequired Review = "required"
	// ReviewNone finishes without.
	ReviewNone Review = "none"
)

func (Review) values() []string { return []string{string(ReviewRequired), string(ReviewNone)} }

// TeamConfig is what an agent has to know about its team.
type TeamConfig struct {
	// Name is the team's name, unique where it lives.
	Name string `json:"name"`
	// DisplayName is for people; the name if nothing else is given.
	DisplayName string `json:"display_name" wire:"optional"`
	// Roles are those its people have.
	Roles []TeamRole `json:"roles" wire:"optional"`
	// People are its agents, the reader of this among them.
	People []TeamPerson `json:"people" wire:"optional"`
	// Humans are those it trusts.
	Humans []TeamHuman `json:"humans" wire:"optional"`
	// Repositories are those it works on.
	Repositories []TeamRepository `json:"repositories" wire:"optional"`
	// Usage is how usage is kept and limited.
	Usage TeamUsage `json:"usage" wire:"optional"`
	// Policies are the limits of rounds.
	Policies TeamPolicies `json:"policies" wire:"optional"`
	// Pipeline is how events become work.
	Pipeline TeamPipeline `json:"pipeline" wire:"optional"`
	// Environment is how agents prepare the place they work in.
	Environment TeamEnvironment `json:"environment" wire:"optional"`
}

// TeamRole is a role people have.
type TeamRole struct {
	// Name is the role's name, unique in the team.
	Name string `json:"name"`
	// Title is how the role is shown, such as Developer.
	Title string `json:"title,omitzero"`
	// Summary is a line about what the role does.
	Summary string `json:"summary,omitzero"`
	// Instructions are what the runtime is told beside the work itself.
	Instructions string `json:"instructions,omitzero"`
	// Work has the kinds of work the role does.
	Work []TeamWork `json:"work" wire:"optional"`
}

// TeamWork is a kind of work of a role.
type TeamWork struct {
	// Kind is that of a work item.
	Kind string `json:"kind"`
	// Review says whether it ends in something to look at; required if not
	// given.
	Review Review `json:"review" wire:"optional"`
}

// TeamPerson is a person of the team.
type TeamPerson struct {
	// Handle is the person's name on the wire, unique in the team.
	Handle string `json:"handle"`
	// Name is for people; the handle if nothing else is given.
	Name string `json:"name" wire:"optional"`
	// Role is the name of one of the roles, or empty.
	Role string `json:"role,omitzero"`
	// Runtime is the program that runs the person's rounds.
	Runtime string `json:"runtime"`
	// Model is the runtime's name for a model; empty leaves it to the runtime.
	Model string `json:"model,omitzero"`
	// Effort is how hard the model thinks: none, low, medium, high, xhigh or max; empty leaves it to the runtime.
	Effort string `json:"effort,omitzero"`
	// FallbackModel is used while the model is overloaded, where the runtime can.
	FallbackModel string `json:"fallback_model,omitzero"`
	// MaxTurns is the most model calls of a round; 0 is no bound.
	MaxTurns int `json:"max_turns,omitzero"`
	// AllowedTools are the only tools that the runtime may use without being asked, in its own words; empty allows all.
	AllowedTools []string `json:"allowed_tools,omitzero"`
	// Approvals says what the runtime is told when it asks for permission: allow, or deny.
	Approvals string `json:"approvals,omitzero"`
	// MCPServers are servers of the Model Context Protocol that the runtime starts or calls.
	MCPServers []TeamMCPServer `json:"mcp_servers,omitzero"`
	// Command is the program of the command runtime, with its arguments.
	Command []string `json:"command,omitzero"`
	// Environment replaces the team's, if it is there.
	Environment *TeamEnvironment `json:"environment,omitzero"`
	// Tools are programs that must be found in PATH.
	Tools []string `json:"tools,omitzero"`
	// Services are addresses that must answer.
	Services []TeamService `json:"services,omitzero"`
}

// TeamMCPServer is a server of the Model Context Protocol: a program with arguments and environment, or a URL with headers. Values of
// Env and Headers may refer to variables of the agent's environment as ${NAME}, so that no secret stands here.
type TeamMCPServer struct {
	// Name is unique among the person's servers.
	Name string `json:"name"`
	// Command is the program to start; empty for a server that is called.
	Command string `json:"command,omitzero"`
	// Args are the program's arguments.
	Args []string `json:"args,omitzero"`
	// Env are variables of the program, on top of the agent's own.
	Env map[string]string `json:"env,omitzero"`
	// URL is the address to call; empty for a program.
	URL string `json:"url,omitzero"`
	// Headers go with each call.
	Headers map[string]string `json:"headers,omitzero"`
}

// TeamService is something in the network that a person needs.
type TeamService struct {
	// Name is for people.
	Name string `json:"name"`
	// Address is host:port.
	Address string `json:"address"`
}

// TeamHuman is a human the team trusts.
type TeamHuman struct {
	// Name is the human's name.
	Name string `json:"name"`
	// Identities are the human's ids by system, such as github.
	Identities map[string]string `json:"identities,omitzero"`
}

// TeamRepository is a repository the team works on.
type TeamRepository struct {
	// Name is the repository's name, unique in the team.
	Name string `json:"name"`
	// URL is what git clones from; it holds no credentials.
	URL string `json:"url"`
	// DefaultBranch is the one that work starts from, such as main.
	DefaultBranch string `json:"default_branch,omitzero"`
	// Credentials is the folder of this repository's credentials below that of all (BULLPEN_GIT_CREDENTIALS); empty where it has none.
	Credentials string `json:"credentials,omitzero"`
}

// TeamUsage is how usage is kept and limited.
type TeamUsage struct {
	// TrackCost shows agents the tokens and cost of tickets.
	TrackCost bool `json:"track_cost" wire:"optional"`
	// PauseAt is the utilization of a usage window, at most 1, from which a
	// person pauses until the window resets; 0 never pauses.
	PauseAt float64 `json:"pause_at" wire:"optional"`
}

// TeamPolicies are the limits of rounds.
type TeamPolicies struct {
	// Attempts is how often an item may fail before it is blocked.
	Attempts int `json:"attempts" wire:"optional"`
	// HeartbeatMs is the longest time between heartbeats, in milliseconds.
	HeartbeatMs int `json:"heartbeat_ms" wire:"optional"`
	// MaxLostRounds is how many rounds of an item may end without a hand-back
	// before it is blocked.
	MaxLostRounds int `json:"max_lost_rounds" wire:"optional"`
	// MergeChecks is about the checks that run after a merge.
	MergeChecks TeamMergeChecks `json:"merge_checks" wire:"optional"`
}

// TeamMergeChecks is about the checks that run after a merge.
type TeamMergeChecks struct {
	// TimeoutMinutes is how long they may take.
	TimeoutMinutes int `json:"timeout_minutes" wire:"optional"`
}

// TeamPipeline is how events become work.
type TeamPipeline struct {
	// Context bounds what an offer brings along.
	Context TeamContext `json:"context" wire:"optional"`
}

// TeamContext bounds the context of an offer.
type TeamContext struct {
	// BodyChars is the most characters of one text.
	BodyChars int `json:"body_chars" wire:"optional"`
	// Comments is the most comments of one ticket.
	Comments int `json:"comments" wire:"optional"`
	// Reviews is the most review comments of one ticket.
	Reviews int `json:"reviews" wire:"optional"`
	// Threads is the most review threads of one pull request.
	Threads int `json:"threads" wire:"optional"`
	// Messages is the most messages of one chat thread.
	Messages int `json:"messages" wire:"optional"`
	// Items is the most tickets, pull requests, documents and chats in all.
	Items int `json:"items" wire:"optional"`
}

// TeamEnvironment is how an agent prepares the place it works in.
type TeamEnvironment struct {
	// Hooks are scripts that run at certain times.
	Hooks TeamHooks `json:"hooks" wire:"optional"`
}

// TeamHooks are shell scripts; an empty one does not run.
type TeamHooks struct {
	// BuildBase makes what all items share; it runs again when its text changes.
	BuildBase string `json:"build_base,omitzero"`
	// BuildBaseInputs are the files, as repository/path, that the base is made of: it is built again when one of them changes. nil is
	// every source change, an empty list none.
	BuildBaseInputs []string `json:"build_base_inputs,omitzero"`
	// AfterCheckout runs in a fresh work folder.
	AfterCheckout string `json:"after_checkout,omitzero"`
	// BeforeStart runs before every round.
	BeforeStart string `json:"before_start,omitzero"`
	// OnAct makes the changes of an [Act], which it gets as JSON on its standard
	// input; each line it prints is one of [ActResult.Results].
	OnAct string `json:"on_act,omitzero"`
	// OnReport posts a [Report], which it gets as JSON on its standard input.
	OnReport string `json:"on_report,omitzero"`
}

// DefaultTeamConfig returns what a team has where its config says nothing.
func DefaultTeamConfig() TeamConfig {
	return TeamConfig{
		Usage: TeamUsage{PauseAt: 0.95},
		Policies: TeamPolicies{
			Attempts: 3, HeartbeatMs: 15_000, MaxLostRounds: 3,
			MergeChecks: TeamMergeChecks{TimeoutMinutes: 60},
		},
		Pipeline: TeamPipeline{Context: TeamContext{
			BodyChars: 4000, Comments: 10, Reviews: 20, Threads: 20, Messages: 20, Items: 20,
		}},
	}
}

// ParseTeamConfig reads a team config, fills in the defaults and validates it.
// The error has a line for everything that is wrong, each naming its field.
func ParseTeamConfig(raw Raw) (TeamConfig, error) {
	c := DefaultTeamConfig()
	if tooDeep(raw) {
		return TeamConfig{}, fmt.Errorf("team may nest %d levels; this one is deeper", MaxDepth)
	}
	if werr := decodeValue(raw, "team", &c); werr != nil {
		return TeamConfig{}, errors.New(werr.Message)
	}
	c.fill()
	if err := c.Validate(); err != nil {
		return TeamConfig{}, err
	}
	return c, nil
}

// fill sets the defaults that depend on other fields.
func (c *TeamConfig) fill() {
	if c.DisplayName == "" {
		c.DisplayName = c.Name
	}
	for i := range c.People {
		if p := &c.People[i]; p.Name == "" {
			p.Name = p.Handle
		}
	}
	for i := range c.Roles {
		for j := range c.Roles[i].Work {
			if w := &c.Roles[i].Work[j]; w.Review == "" {
				w.Review = ReviewRequired
			}
		}
	}
}

// Encode returns the JSON of the config: the same config, the same bytes.
func (c TeamConfig) Encode() (Raw, error) {
	b, err := json.Marshal(c, encodeOptions)
	if err != nil {
		return nil, fmt.Errorf("protocol: the team config cannot be encoded: %w", err)
	}
	return b, nil
}

// handlePattern keeps handles usable as names of files and in mentions.
var handlePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Validate returns everything that is wrong with the config, one line each.
func (c TeamConfig) Validate() error {
	var p problems
	p.named("team.name", c.Name)
	for i, r := range c.Roles {
		at := fmt.Sprintf("team.roles[%d]", i)
		p.named(at+".name", r.Name)
		for j, w := range r.Work {
			p.named(fmt.Sprintf("%s.work[%d].kind", at, j), w.Kind)
		}
	}
	for i, h := range c.Humans {
		p.named(fmt.Sprintf("team.humans[%d].name", i), h.Name)
	}
	for i, r := range c.Repositories {
		p.named(fmt.Sprintf("team.repositories[%d].name", i), r.Name)
		p.named(fmt.Sprintf("team.repositories[%d].url", i), r.URL)
	}
	unique(&p, "team.roles", "name", c.Roles, func(r TeamRole) string { return r.Name })
	unique(&p, "team.people", "handle", c.People, func(m TeamPerson) string { return m.Handle })
	unique(&p, "team.repositories", "name", c.Repositories, func(r TeamRepository) string { return r.Name })
	c.validatePeople(&p)
	c.validateNumbers(&p)
	return errors.Join(p...)
}

func (c TeamConfig) validatePeople(p *problems) {
	for i, m := range c.People {
		at := fmt.Sprintf("team.people[%d]", i)
		if !handlePattern.MatchString(m.Handle) {
			p.add("%s.handle must begin with a letter or a digit and have at most 63 letters, digits, dots, "+
				"dashes and underscores, not %q", at, shorten(m.Handle))
		}
		p.named(at+".runtime", m.Runtime)
		if m.Role != "" && !slices.ContainsFunc(c.Roles, func(r TeamRole) bool { return r.Name == m.Role }) {
			p.add("%s.role is %q, which is none of team.roles", at, shorten(m.Role))
		}
		for j, tool := range m.Tools {
			p.named(fmt.Sprintf("%s.tools[%d]", at, j), tool)
		}
		for j, s := range m.Services {
			p.named(fmt.Sprintf("%s.services[%d].name", at, j), s.Name)
			p.named(fmt.Sprintf("%s.services[%d].address", at, j), s.Address)
		}
	}
}

func (c TeamConfig) validateNumbers(p *problems) {
	if at := c.Usage.PauseAt; at < 0 || at > 1 {
		p.add("team.usage.pause_at must be between 0 and 1, not %v", at)
	}
	bounds, limits := c.Pipeline.Context, c.Policies
	for _, n := range []struct {
		path       string
		value, min int
	}{
		{"team.policies.attempts", limits.Attempts, 1},
		{"team.policies.heartbeat_ms", limits.HeartbeatMs, 100},
		{"team.policies.max_lost_rounds", limits.MaxLostRounds, 1},
		{"team.policies.merge_checks.timeout_minutes", limits.MergeChecks.TimeoutMinutes, 1},
		{"team.pipeline.context.body_chars", bounds.BodyChars, 1},
		{"team.pipeline.context.comments", bounds.Comments, 0},
		{"team.pipeline.context.reviews", bounds.Reviews, 0},
		{"team.pipeline.context.threads", bounds.Threads, 0},
		{"team.pipeline.context.messages", bounds.Messages, 0},
		{"team.pipeline.context.items", bounds.Items, 0},
	} {
		if n.value < n.min {
			p.add("%s must be at least %d, not %d", n.path, n.min, n.value)
		}
	}
}

// problems collects sentences.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (p *problems) named(path, value string) {
	if value == "" {
		p.add("%s must not be empty", path)
	}
}

// unique wants every element of a list to have a key of its own.
func unique[T any](p *problems, path, key string, list []T, keyOf func(T) string) {
	first := map[string]int{}
	for i, e := range list {
		k := keyOf(e)
		if j, taken := first[k]; taken {
			p.add("%s[%d].%s is %q, as that of %s[%d]; each needs its own", path, i, key, shorten(k), path, j)
			continue
		}
		first[k] = i
	}
}
