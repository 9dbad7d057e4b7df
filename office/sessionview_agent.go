package office

// This file shows whom a session was started for, with which runtime, and where it works.

import (
	"cmp"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
)

// The runtimes that have options in the contract.
const (
	runtimeClaude = "claude"
	runtimeCodex  = "codex"
)

// modelUnset stands for the model where the runtime chooses it and has not told yet which.
const modelUnset = "default"

// agentVersion is the version of the schema of people.
const agentVersion = "bullpen.dev/v1alpha1"

// noPermissions are those of every session: Bullpen mints no credentials. What an agent may touch is up to the Secrets that it is given.
var noPermissions = feed.Permissions{}

// prompt is the first message: the title, and what the work item asks in detail.
func (f frozen) prompt() string {
	if f.Item.Body == "" {
		return f.Item.Title
	}
	return f.Item.Title + "\n\n" + f.Item.Body
}

// runtime gives the options of the runtime: of one of both, or of neither.
func (v sessionView) runtime() (*feed.ClaudeCodeOptions, *feed.CodexOptions) {
	return v.frozen.runtime(v.session.Model)
}

// runtime gives the options with the model that the runtime told, where none was asked for.
func (f frozen) runtime(told string) (*feed.ClaudeCodeOptions, *feed.CodexOptions) {
	p := f.Person
	modelID, prompt := cmp.Or(p.Model, told, modelUnset), f.prompt()
	switch p.Runtime {
	case runtimeClaude:
		o := &feed.ClaudeCodeOptions{Model: modelID, FallbackModel: orNil(p.Fallback), Prompt: &prompt}
		if p.Effort != "none" { // which Claude Code does not have
			o.Effort = orNil(p.Effort)
		}
		if p.MaxTurns > 0 {
			o.MaxTurns = new(int64(p.MaxTurns))
		}
		return o, nil
	case runtimeCodex:
		return nil, &feed.CodexOptions{Model: modelID, Effort: orNil(p.Effort), Prompt: &prompt}
	}
	return nil, nil
}

// agent is the person whom the session was started for; nil while nobody has it.
func (v sessionView) agent() *feed.Agent {
	f := v.frozen
	if f.Person.Handle == "" {
		return nil
	}
	a := &feed.Agent{Config: feed.AgentConfig{
		About: feed.AgentAbout{
			Version: agentVersion, Kind: feed.KindAgent, Name: orNil(f.Person.Name), Description: orNil(f.Person.RoleSummary), Enabled: true,
			Metadata: feed.AgentMetadata{Annotations: f.annotations()},
		},
		Session: feed.SessionConfig{
			Conversation: feed.ConversationConfig{Interactive: v.session.Interactive}, Environment: feed.Whole(f.environment()),
			Permissions: noPermissions, Metadata: feed.Map[string]{metaNamespace: v.session.Namespace, metaTeam: v.session.Team},
		},
	}}
	a.Config.Session.ClaudeCode, a.Config.Session.Codex = f.runtime(v.session.Model)
	for _, b := range f.Budgets {
		if usd := float64(b.CostMicroUSD) / 1e6; b.Scope == model.BudgetItem {
			if least := a.Config.Session.Budget.Session; least == nil || usd < *least {
				a.Config.Session.Budget.Session = &usd
			}
		}
	}
	return a
}

// annotations are what the contract has no field for.
func (f frozen) annotations() feed.Map[string] {
	m := feed.Map[string]{}
	for key, value := range map[string]string{
		"handle": f.Person.Handle, "role": f.Person.Role, "role-title": f.Person.RoleTitle, "instructions": f.Person.Instructions,
		"runtime": f.Person.Runtime, "command": f.Person.Command, "allowed-tools": strings.Join(f.Person.AllowedTools, ","),
		"approvals": f.Person.Approvals, "tools": strings.Join(f.Person.Tools, ","), "trigger": f.Item.Trigger,
	} {
		if value != "" {
			m["bullpen.dev/"+key] = value
		}
	}
	return m
}

// environment is where the session works, as it was when it started.
func (v sessionView) environment() feed.Environment {
	e := feed.Environment{EnvironmentConfig: v.frozen.environment()}
	source := feed.EnvironmentPlatformDefault
	if v.frozen.declared() {
		source = feed.EnvironmentAgent
	}
	e.Source = &source
	return e
}

// declared says whether team or person say anything of the environment.
func (f frozen) declared() bool {
	return f.Person.OwnEnvironment || len(f.Repositories) > 0 || len(f.MCPServers) > 0 || f.Hooks != (frozenHooks{})
}

func (f frozen) environment() feed.EnvironmentConfig {
	e := feed.EnvironmentConfig{Hooks: f.Hooks.object()}
	for _, r := range f.Repositories {
		e.Repositories = append(e.Repositories, feed.Repository{Name: r.Name, Owner: orNil(r.Owner), Ref: orNil(r.Ref)})
	}
	for _, name := range f.Variables {
		e.Variables = append(e.Variables, feed.Variable{Name: name})
	}
	for _, s := range f.MCPServers {
		e.MCPServers = append(e.MCPServers, feed.MCPServer{
			Name: s.Name, Command: s.Command, Args: s.Args, Env: hidden(s.Env), URL: s.URL, Headers: hidden(s.Headers),
		})
	}
	if f.Timeout > 0 {
		e.Compute.Timeout = new(feed.Whole(timeLimit(f.Timeout)))
	}
	return e
}

// hiddenValue stands for a value that can be a secret.
const hiddenValue = "***"

// hidden names what has values without telling them.
func hidden(names []string) map[string]string {
	m := make(map[string]string, len(names))
	for _, name := range names {
		m[name] = hiddenValue
	}
	return m
}

// timeLimit splits a duration, rounded up to seconds.
func timeLimit(d time.Duration) feed.TimeLimit {
	seconds := int64((d + time.Second - 1) / time.Second)
	return feed.TimeLimit{Hours: new(seconds / 3600), Minutes: new(seconds / 60 % 60), Seconds: new(seconds % 60)}
}

func (h frozenHooks) object() feed.Hooks {
	var o feed.Hooks
	if h.BuildBase != "" {
		base := feed.BuildBase{Run: h.BuildBase}
		if h.Inputs != nil {
			base.Inputs = new(feed.List[string](*h.Inputs))
		}
		o.BuildBase = new(feed.Whole(base))
	}
	if h.AfterCheckout != "" {
		o.AfterCheckout = new(feed.Whole(feed.Hook{Run: h.AfterCheckout}))
	}
	if h.BeforeStart != "" {
		o.BeforeStart = new(feed.Whole(feed.Hook{Run: h.BeforeStart}))
	}
	return o
}
