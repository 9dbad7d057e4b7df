package office

// This file has what a session is started with, kept as it was at its first round, so that a later change of team or person does not change
// what was.

import (
	"cmp"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// frozen is what a session is started with. No value of a variable or of a header is in it: those can be secrets.
type frozen struct {
	Person       frozenPerson       `json:"person"`
	Repositories []frozenRepository `json:"repositories,omitempty"`
	Hooks        frozenHooks        `json:"hooks"`
	MCPServers   []frozenMCPServer  `json:"mcp_servers,omitempty"`
	// Variables are the names of variables of the agent's environment that the MCP servers refer to.
	Variables []string `json:"variables,omitempty"`
	// Timeout bounds one round, 0 does not.
	Timeout time.Duration  `json:"timeout,omitempty"`
	Budgets []frozenBudget `json:"budgets,omitempty"`
	Item    frozenItem     `json:"item"`
}

// frozenPerson is who has the session.
type frozenPerson struct {
	Handle       string `json:"handle"`
	Name         string `json:"name,omitempty"`
	Role         string `json:"role,omitempty"`
	RoleTitle    string `json:"role_title,omitempty"`
	RoleSummary  string `json:"role_summary,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	Runtime      string `json:"runtime"`
	Model        string `json:"model,omitempty"`
	Effort       string `json:"effort,omitempty"`
	Fallback     string `json:"fallback_model,omitempty"`
	MaxTurns     int    `json:"max_turns,omitempty"`
	// AllowedTools and Approvals are what the runtime may do by itself; Tools are programs that must be there.
	AllowedTools []string `json:"allowed_tools,omitempty"`
	Approvals    string   `json:"approvals,omitempty"`
	Tools        []string `json:"tools,omitempty"`
	// Command is the program of the command runtime, without its arguments.
	Command string `json:"command,omitempty"`
	// OwnEnvironment says that the hooks are the person's own, not the team's.
	OwnEnvironment bool `json:"own_environment,omitempty"`
}

// frozenRepository is one that the session works on.
type frozenRepository struct {
	Name  string `json:"name"`
	Owner string `json:"owner,omitempty"`
	Ref   string `json:"ref,omitempty"`
}

// frozenHooks are the scripts that prepare the environment. Inputs is nil for every source change.
type frozenHooks struct {
	BuildBase     string    `json:"build_base,omitempty"`
	Inputs        *[]string `json:"inputs,omitempty"`
	AfterCheckout string    `json:"after_checkout,omitempty"`
	BeforeStart   string    `json:"before_start,omitempty"`
}

// frozenMCPServer is a server with the names of its variables and headers.
type frozenMCPServer struct {
	Name    string   `json:"name"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Env     []string `json:"env,omitempty"`
	URL     string   `json:"url,omitempty"`
	Headers []string `json:"headers,omitempty"`
}

// frozenBudget bounds what is spent, in millionths of a US dollar.
type frozenBudget struct {
	Scope        model.BudgetScope `json:"scope"`
	CostMicroUSD int64             `json:"cost_micro_usd"`
}

// frozenItem is what the work item asked for.
type frozenItem struct {
	Kind      string `json:"kind"`
	Title     string `json:"title"`
	Body      string `json:"body,omitempty"`
	Requester string `json:"requester,omitempty"`
	Trigger   string `json:"trigger,omitempty"`
}

// freeze takes what a session of the item is started with.
func freeze(team model.Team, person model.Person, item model.Item) frozen {
	f := frozen{
		Person:  freezePerson(team, person),
		Hooks:   freezeHooks(team, person),
		Timeout: item.Spec.Timeout,
		Item: frozenItem{
			Kind: item.Spec.Kind, Title: item.Spec.Title, Body: item.Spec.Body, Requester: item.Spec.Requester, Trigger: string(item.Spec.Trigger),
		},
	}
	for _, r := range team.Config.Repositories {
		owner, name := ownerOf(r)
		f.Repositories = append(f.Repositories, frozenRepository{Name: name, Owner: owner, Ref: r.DefaultBranch})
	}
	for _, s := range person.MCPServers {
		f.MCPServers = append(f.MCPServers, frozenMCPServer{
			Name: s.Name, Command: s.Command, Args: s.Args, Env: sortedKeys(s.Env), URL: withoutSecrets(s.URL), Headers: sortedKeys(s.Headers),
		})
		f.Variables = append(f.Variables, referred(s)...)
	}
	slices.Sort(f.Variables)
	f.Variables = slices.Compact(f.Variables)
	for _, b := range team.Usage.Budgets {
		if b.CostMicroUSD > 0 {
			f.Budgets = append(f.Budgets, frozenBudget{Scope: b.Scope, CostMicroUSD: b.CostMicroUSD})
		}
	}
	return f
}

func freezePerson(team model.Team, person model.Person) frozenPerson {
	p := frozenPerson{
		Handle: person.Key.Handle, Name: cmp.Or(person.DisplayName, person.Key.Handle), Role: person.Role, Runtime: person.Runtime,
		Model: person.Model, Effort: person.Effort, Fallback: person.FallbackModel, MaxTurns: person.MaxTurns,
		AllowedTools: person.AllowedTools, Approvals: person.Approvals, Tools: person.Tools, OwnEnvironment: person.Environment != nil,
	}
	if len(person.Command) > 0 {
		p.Command = person.Command[0]
	}
	for _, r := range team.Config.Roles {
		if r.Name == person.Role {
			p.RoleTitle, p.RoleSummary, p.Instructions = r.Title, r.Summary, r.Instructions
		}
	}
	return p
}

func freezeHooks(team model.Team, person model.Person) frozenHooks {
	hooks := team.Config.Environment.Hooks
	if person.Environment != nil {
		hooks = person.Environment.Hooks
	}
	f := frozenHooks{BuildBase: hooks.BuildBase, AfterCheckout: hooks.AfterCheckout, BeforeStart: hooks.BeforeStart}
	if hooks.BuildBaseInputs != nil {
		f.Inputs = &hooks.BuildBaseInputs
	}
	return f
}

// ownerOf takes owner and name out of a repository's URL, as a code host writes it; where it has no owner, the name is the team's.
func ownerOf(r protocol.TeamRepository) (owner, name string) {
	var at string
	if u, err := url.Parse(r.URL); err == nil && u.Host != "" {
		at = u.Path
	} else if host, after, found := strings.Cut(r.URL, ":"); found && strings.Contains(host, "@") { // git@host:owner/name
		at = after
	}
	at = strings.TrimSuffix(strings.Trim(at, "/"), ".git")
	dir, base := path.Split(at)
	dir = strings.Trim(dir, "/")
	if dir == "" || base == "" {
		return "", r.Name
	}
	return dir, base
}

// withoutSecrets takes out of a URL what can hold a secret: the user, the query and the fragment.
func withoutSecrets(s string) string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment = nil, "", "", ""
	return u.String()
}

// reference is how a value refers to a variable of the agent's environment.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// referred lists the variables that a server's configuration refers to.
func referred(s protocol.TeamMCPServer) []string {
	var names []string
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, value := range values {
			for _, match := range reference.FindAllStringSubmatch(value, -1) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
