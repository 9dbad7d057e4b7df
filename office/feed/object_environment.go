package feed

// This file has the environment of the session object: where the runtime works, and with what. Values of secrets are never in it.

// How an environment was chosen.
const (
	EnvironmentRequest         = "request"
	EnvironmentAgent           = "agent"
	EnvironmentRepoDefault     = "repo_default"
	EnvironmentAccountDefault  = "account_default"
	EnvironmentPlatformDefault = "platform_default"
)

// Environment is the environment that a session was started with.
type Environment struct {
	// ID of a saved environment, nil for one that was described in place.
	ID *string `json:"id"`
	// Source says how it was chosen: one of the Environment constants, nil for one that the agent's configuration described in place.
	Source *string `json:"source"`
	EnvironmentConfig
}

// EnvironmentConfig is what an environment is made of.
type EnvironmentConfig struct {
	Repositories List[Repository] `json:"repositories"`
	Variables    List[Variable]   `json:"variables"`
	Compute      Compute          `json:"compute"`
	Hooks        Hooks            `json:"hooks"`
	MCPServers   List[MCPServer]  `json:"mcp_servers"`
}

// Repository names a repository. Owner and Ref are nil where the defaults count.
type Repository struct {
	Name  string  `json:"name"`
	Owner *string `json:"owner"`
	Ref   *string `json:"ref"`
}

// Variable is a variable of the environment. Value is nil where it is a secret.
type Variable struct {
	Name  string  `json:"name"`
	Value *string `json:"value"`
}

// Compute is what an environment may use.
type Compute struct {
	// CPU counts processors, from 2 to 32; nil for the default, or where the number is not among them.
	CPU     *int64               `json:"cpu"`
	Memory  *StringOr[Memory]    `json:"memory"`
	Timeout *StringOr[TimeLimit] `json:"timeout"`
}

// Memory is an amount of memory. As a string it has a unit, such as 8Gi.
type Memory struct {
	GB *int64 `json:"gb"`
	MB *int64 `json:"mb"`
}

// TimeLimit is how long a session may take. As a string it has units, such as 2h.
type TimeLimit struct {
	Hours   *int64 `json:"hours"`
	Minutes *int64 `json:"minutes"`
	Seconds *int64 `json:"seconds"`
}

// Hooks are the scripts that prepare an environment, nil where there is none.
type Hooks struct {
	// PostStart and PostClone are scripts of old configurations.
	PostStart *string `json:"post_start"`
	PostClone *string `json:"post_clone"`
	// BuildBase makes what is kept for later sessions.
	BuildBase *StringOr[BuildBase] `json:"build_base"`
	// AfterCheckout runs once the repositories are checked out; what it makes is kept as well.
	AfterCheckout *StringOr[Hook] `json:"after_checkout"`
	// BeforeStart runs each time before the runtime starts.
	BeforeStart *StringOr[Hook] `json:"before_start"`
}

// Hook is a shell script.
type Hook struct {
	Run string `json:"run"`
}

// BuildBase is a shell script whose result is kept as long as its inputs stay the same.
type BuildBase struct {
	Run string `json:"run"`
	// Inputs are the files that it depends on; nil for everything in all repositories, empty for none.
	Inputs *List[string] `json:"inputs"`
}
