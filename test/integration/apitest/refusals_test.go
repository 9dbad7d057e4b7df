package apitest_test

// This file tests what is refused at admission: each wrong manifest, the field that the refusal names, and its sentence.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

type refusal struct {
	name, kind, over string
	field, sentence  string
}

var (
	long = func(n int) string { return strings.Repeat("x", n) }

	nameRule = "metadata.name of a %s has at most %d lower-case letters, digits and '-'"
)

// refusals are wrong in one way each. A sentence is part of the message, or all of it.
var refusals = []refusal{
	// Team
	{"a team whose name has a dot", "Team", `metadata: {name: core.eu}`,
		"<nil>", fmt.Sprintf(nameRule, "Team", 63)},
	{"a team whose name is too long", "Team", `metadata: {name: ` + long(64) + `}`,
		"<nil>", fmt.Sprintf(nameRule, "Team", 63)},
	{"a display name that is too long", "Team", `spec: {displayName: ` + long(101) + `}`,
		"spec.displayName", "may not be more than 100"},
	{"a role without a name", "Team", `spec: {roles: [{title: Developer}]}`,
		"spec.roles[0].name", "Required value"},
	{"a role with a bad name", "Team", `spec: {roles: [{name: Lead Developer}]}`,
		"spec.roles[0].name", "a role name has at most 40 lower-case letters, digits and '-'"},
	{"two roles of one name", "Team", `spec: {roles: [{name: dev}, {name: dev}]}`,
		"spec.roles[1]", "Duplicate value"},
	{"more roles than a team may have", "Team", `spec: {roles: [` + strings.Repeat("{name: a}, ", 33) + `]}`,
		"spec.roles", "must have at most 32 items"},
	{"instructions that no welcome could carry", "Team", `spec: {roles: [` + manyInstructions(5, 30000) + `]}`,
		"spec.roles", "roles may have instructions of 131072 characters in all"},
	{"a kind of work with a blank", "Team", `spec: {roles: [{name: dev, work: [{kind: code review}]}]}`,
		"spec.roles[0].work[0].kind", "kind has lower-case letters, digits, '-' and '_', begins with a letter"},
	{"one kind of work twice in a role", "Team", `spec: {roles: [{name: dev, work: [{kind: task}, {kind: task}]}]}`,
		"spec.roles[0].work[1]", "Duplicate value"},
	{"a review policy that is none", "Team", `spec: {roles: [{name: dev, work: [{kind: task, review: Maybe}]}]}`,
		"spec.roles[0].work[0].review", `supported values: "Required", "None"`},
	{"a human with a blank name", "Team", `spec: {humans: [{name: " "}]}`,
		"spec.humans[0].name", "the name of a human is one line, and not blank"},
	{"a human without an id in a system", "Team", `spec: {humans: [{name: Grace, identities: {github: ""}}]}`,
		"spec.humans[0].identities", "identities maps names of systems (at most 63 characters, for example github) to ids"},
	{"a repository URL with a password", "Team", `spec: {repositories: [{name: shop, url: "https://bot:s3cret@example.com/shop.git"}]}`,
		"spec.repositories[0].url", "url must not hold a user, token or password"},
	{"a repository URL with a token for its user", "Team", `spec: {repositories: [{name: shop, url: "https://ghp_s3cret@example.com/shop.git"}]}`,
		"spec.repositories[0].url", "name the Secret that has it as credentialsSecret"},
	{"a repository URL that runs a program", "Team", `spec: {repositories: [{name: shop, url: "ext::sh -c id"}]}`,
		"spec.repositories[0].url", "url is what git clones: https://, ssh://"},
	{"a repository URL that git takes for an option", "Team", `spec: {repositories: [{name: shop, url: "--upload-pack=id"}]}`,
		"spec.repositories[0].url", "url is what git clones: https://, ssh://"},
	{"a repository whose name is no folder of its own", "Team", `spec: {repositories: [{name: a.b, url: /srv/shop.git}]}`,
		"spec.repositories[0].name", "the name of a repository has lower-case letters, digits and '-'"},
	{"a branch that git takes for an option", "Team", `spec: {repositories: [{name: shop, url: /srv/shop.git, defaultBranch: --help}]}`,
		"spec.repositories[0].defaultBranch", "defaultBranch is the name of a branch, for example main"},
	{"a retention of seconds", "Team", `spec: {sessions: {retention: {maxAge: 10s}}}`,
		"spec.sessions.retention.maxAge", "maxAge is a duration between 1m and 87600h"},
	{"a retention of a few bytes", "Team", `spec: {sessions: {retention: {maxSize: 10}}}`,
		"spec.sessions.retention.maxSize", "maxSize is a quantity of at least 1Mi"},
	{"an effort that no model has", "Team", `spec: {agent: {effort: extreme}}`,
		"spec.agent.effort", `supported values: "none", "low"`},
	{"a fallback model that a runtime takes for an option", "Team", `spec: {agent: {fallbackModel: --help}}`,
		"spec.agent.fallbackModel", "does not begin with '-'"},
	{"no model call at all", "Team", `spec: {agent: {maxTurns: 0}}`,
		"spec.agent.maxTurns", "should be greater than or equal to 1"},
	{"approvals that nobody gives", "Team", `spec: {agent: {approvals: Ask}}`,
		"spec.agent.approvals", `supported values: "Allow", "Deny"`},
	{"an MCP server that is two", "Team", `spec: {agent: {mcpServers: [{name: a, command: b, url: "http://c"}]}}`,
		"spec.agent.mcpServers[0]", "give exactly one of command and url"},
	{"an MCP server that is none", "Team", `spec: {agent: {mcpServers: [{name: a}]}}`,
		"spec.agent.mcpServers[0]", "give exactly one of command and url"},
	{"headers of an MCP server that is a program", "Team", `spec: {agent: {mcpServers: [{name: a, command: b, headers: [{name: X}]}]}}`,
		"spec.agent.mcpServers[0]", "headers belong to a server with a url"},
	{"arguments of an MCP server that is a URL", "Team", `spec: {agent: {mcpServers: [{name: a, url: "http://c", args: [d]}]}}`,
		"spec.agent.mcpServers[0]", "args and env belong to a server with a command"},
	{"a password in the URL of an MCP server", "Team", `spec: {agent: {mcpServers: [{name: a, url: "https://bot:s3cret@c"}]}}`,
		"spec.agent.mcpServers[0].url", "has no user or password"},
	{"an MCP server with a blank in its name", "Team", `spec: {agent: {mcpServers: [{name: a b, command: c}]}}`,
		"spec.agent.mcpServers[0].name", "the name of a server has letters, digits, '-' and '_'"},
	{"a header with a blank in its name", "Team", `spec: {agent: {mcpServers: [{name: a, url: "http://c", headers: [{name: a b}]}]}}`,
		"spec.agent.mcpServers[0].headers[0].name", "the name of a header has letters, digits and '-'"},
	{"an input of buildBase that leaves its repository", "Team", `spec: {agent: {hooks: {buildBaseInputs: [shop/../x]}}}`,
		"spec.agent.hooks.buildBaseInputs[0]", "an input is a repository's name and a path in it"},
	{"a usage window that pauses above 100 percent", "Team", `spec: {usage: {pauseAtPercent: 101}}`,
		"spec.usage.pauseAtPercent", "should be less than or equal to 100"},
	{"a budget without a bound", "Team", `spec: {usage: {budgets: [{scope: Team}]}}`,
		"spec.usage.budgets[0]", "a budget needs tokens or costUSD (or both)"},
	{"a budget of nothing", "Team", `spec: {usage: {budgets: [{scope: Team, costUSD: 0}]}}`,
		"spec.usage.budgets[0].costUSD", "costUSD is a decimal above zero, in quotes, for example \"12.50\""},
	{"a budget that is no number", "Team", `spec: {usage: {budgets: [{scope: Team, costUSD: 25 dollars}]}}`,
		"spec.usage.budgets[0].costUSD", "costUSD is a decimal above zero"},
	{"a budget with a fraction, without quotes", "Team", `spec: {usage: {budgets: [{scope: Team, costUSD: 12.5}]}}`,
		"spec.usage.budgets[0].costUSD", "must be of type integer,string"},
	{"a budget of no tokens", "Team", `spec: {usage: {budgets: [{scope: Team, tokens: 0}]}}`,
		"spec.usage.budgets[0].tokens", "should be greater than or equal to 1"},
	{"a budget of an unknown scope", "Team", `spec: {usage: {budgets: [{scope: Cluster, tokens: 5}]}}`,
		"spec.usage.budgets[0].scope", `supported values: "Team", "Person", "WorkItem"`},
	{"two budgets of one scope", "Team", `spec: {usage: {budgets: [{scope: Team, tokens: 5}, {scope: Team, tokens: 6}]}}`,
		"spec.usage.budgets[1]", "Duplicate value"},
	{"a reserve of tokens without their bound", "Team", `spec: {usage: {budgets: [{scope: Team, costUSD: 5, reserveTokens: 5}]}}`,
		"spec.usage.budgets[0]", "reserveTokens needs tokens: it is set aside from them"},
	{"a reserve of money without its bound", "Team", `spec: {usage: {budgets: [{scope: Team, tokens: 5, reserveUSD: 1}]}}`,
		"spec.usage.budgets[0]", "reserveUSD needs costUSD: it is set aside from it"},
	{"a reserve below zero", "Team", `spec: {usage: {budgets: [{scope: Team, costUSD: 5, reserveUSD: -1}]}}`,
		"spec.usage.budgets[0].reserveUSD", "reserveUSD is a decimal of zero or more, in quotes"},
	{"a budget that stops before it is used up", "Team", `spec: {usage: {budgets: [{scope: Team, tokens: 5, stopAtPercent: 100}]}}`,
		"spec.usage.budgets[0].stopAtPercent", "should be greater than or equal to 101"},
	{"a budget that warns after it is used up", "Team", `spec: {usage: {budgets: [{scope: Team, tokens: 5, warnAtPercent: 101}]}}`,
		"spec.usage.budgets[0].warnAtPercent", "should be less than or equal to 100"},
	{"a price without a model", "Team", `spec: {usage: {prices: [{inputUSD: "1", outputUSD: "1"}]}}`,
		"spec.usage.prices[0].model", "Required value"},
	{"a price of a model with a star in its middle", "Team", `spec: {usage: {prices: [{model: "a*b", inputUSD: "1", outputUSD: "1"}]}}`,
		"spec.usage.prices[0].model", "model is a model's id without blanks, or its beginning with a * after it"},
	{"a price of a model with a blank", "Team", `spec: {usage: {prices: [{model: "a b", inputUSD: "1", outputUSD: "1"}]}}`,
		"spec.usage.prices[0].model", "model is a model's id without blanks, or its beginning with a * after it"},
	{"two prices of a model", "Team", `spec: {usage: {prices: [{model: a, inputUSD: "1", outputUSD: "1"}, {model: a, inputUSD: "2", outputUSD: "1"}]}}`,
		"spec.usage.prices[1]", "Duplicate value"},
	{"a price without what output costs", "Team", `spec: {usage: {prices: [{model: a, inputUSD: "1"}]}}`,
		"spec.usage.prices[0].outputUSD", "Required value"},
	{"a price below zero", "Team", `spec: {usage: {prices: [{model: a, inputUSD: "-1", outputUSD: "1"}]}}`,
		"spec.usage.prices[0].inputUSD", "a price in US dollars is a decimal of at most six digits after the point, in quotes"},
	{"a price that is no number", "Team", `spec: {usage: {prices: [{model: a, inputUSD: "1", outputUSD: much}]}}`,
		"spec.usage.prices[0].outputUSD", "a price in US dollars is a decimal of at most six digits after the point, in quotes"},
	{"a price of a cache in other words", "Team", `spec: {usage: {prices: [{model: a, inputUSD: "1", outputUSD: "1", cacheReadUSD: 10 cents}]}}`,
		"spec.usage.prices[0].cacheReadUSD", "a price in US dollars is a decimal of at most six digits after the point, in quotes"},
	{"a price without quotes", "Team", `spec: {usage: {prices: [{model: a, inputUSD: "1", outputUSD: 1.5}]}}`,
		"spec.usage.prices[0].outputUSD", "must be of type string"},
	{"a context of texts without characters", "Team", `spec: {pipeline: {context: {bodyChars: 0}}}`,
		"spec.pipeline.context.bodyChars", "should be greater than or equal to 1"},
	{"a context of fewer than no comments", "Team", `spec: {pipeline: {context: {comments: -1}}}`,
		"spec.pipeline.context.comments", "should be greater than or equal to 0"},
	{"a context of more than any agent reads", "Team", `spec: {pipeline: {context: {items: 1001}}}`,
		"spec.pipeline.context.items", "should be less than or equal to 1000"},
	{"events without a token", "Team", `spec: {events: {}}`,
		"spec.events.tokenSecret", "Required value"},
	{"events with a token under no key", "Team", `spec: {events: {tokenSecret: {name: events}}}`,
		"spec.events.tokenSecret.key", "Required value"},
	{"events with a token under a key that cannot be", "Team", `spec: {events: {tokenSecret: {name: events, key: a/b}}}`,
		"spec.events.tokenSecret.key", "a key of a Secret has letters, digits"},
	{"events with a token in a Secret that cannot be", "Team", `spec: {events: {tokenSecret: {name: My_Events, key: a}}}`,
		"spec.events.tokenSecret.name", "an object name has lower-case letters"},
	{"attempts below one", "Team", `spec: {policies: {attempts: 0}}`,
		"spec.policies.attempts", "should be greater than or equal to 1"},
	{"a heartbeat that is too quick", "Team", `spec: {policies: {heartbeat: 10ms}}`,
		"spec.policies.heartbeat", "heartbeat is a duration between 200ms and 5m, for example 15s"},
	{"a heartbeat without a unit", "Team", `spec: {policies: {heartbeat: "15"}}`,
		"spec.policies.heartbeat", "heartbeat is a duration between 200ms and 5m, for example 15s"},
	{"a heartbeat below zero", "Team", `spec: {policies: {heartbeat: -15s}}`,
		"spec.policies.heartbeat", "heartbeat is a duration between 200ms and 5m, for example 15s"},
	{"a loss that is declared too late", "Team", `spec: {policies: {lostAfter: 25h}}`,
		"spec.policies.lostAfter", "lostAfter is a duration between 1s and 24h"},
	{"a backoff that is too long", "Team", `spec: {policies: {backoff: 61m}}`,
		"spec.policies.backoff", "backoff is a duration between 100ms and 1h"},
	{"a rollout that waits for more than a week", "Team", `spec: {policies: {rollout: {maxWait: 169h}}}`,
		"spec.policies.rollout.maxWait", "maxWait is a duration between 0s and 168h"},
	{"a number that is a text", "Team", `spec: {policies: {attempts: three}}`,
		"spec.policies.attempts", `must be of type integer: "string"`},

	// The agent's settings, which Team and Person share
	{"an image with a blank", "Team", `spec: {agent: {image: "my agent:1"}}`,
		"spec.agent.image", "image is the reference of a container image"},
	{"an image in upper case", "Team", `spec: {agent: {image: example.com/Agent}}`,
		"spec.agent.image", "image is the reference of a container image"},
	{"a pull policy that is none", "Team", `spec: {agent: {imagePullPolicy: Sometimes}}`,
		"spec.agent.imagePullPolicy", `supported values: "Always", "IfNotPresent", "Never"`},
	{"one pull secret twice", "Team", `spec: {agent: {imagePullSecrets: [registry, registry]}}`,
		"spec.agent.imagePullSecrets[1]", "Duplicate value"},
	{"a pull secret whose name cannot be", "Team", `spec: {agent: {imagePullSecrets: [My_Registry]}}`,
		"spec.agent.imagePullSecrets[0]", "an object name has lower-case letters, digits, '-' and '.'"},
	{"a runtime that is none", "Team", `spec: {agent: {runtime: cobol}}`,
		"spec.agent.runtime", `supported values: "claude", "codex", "command"`},
	{"a model that is an option", "Team", `spec: {agent: {model: --yolo}}`,
		"spec.agent.model", "model is a model's name without blanks, and does not begin with '-'"},
	{"a command without a program", "Team", `spec: {agent: {command: ["", work]}}`,
		"spec.agent.command", "command begins with the program to run: its first entry must not be empty"},
	{"a command that no environment could carry", "Team",
		`spec: {agent: {command: [` + strings.TrimSuffix(strings.Repeat(long(4000)+", ", 9), ", ") + `]}}`,
		"spec.agent.command", "command may have 32768 characters in all: put longer texts into a file"},
	{"a memory limit that is no quantity", "Team", `spec: {agent: {resources: {limits: {memory: lots}}}}`,
		"spec.agent.resources", "resources.limits has quantities of zero or more"},
	{"a CPU request below zero", "Team", `spec: {agent: {resources: {requests: {cpu: -1}}}}`,
		"spec.agent.resources", "resources.requests has quantities of zero or more"},
	{"a request above its limit", "Team", `spec: {agent: {resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}}`,
		"spec.agent.resources", "resources.requests must not be greater than resources.limits"},
	{"claims of devices", "Team", `spec: {agent: {resources: {claims: [{name: gpu}]}}}`,
		"spec.agent.resources", "resources.claims is not supported: give resources.requests and resources.limits"},
	{"a home that is no quantity", "Team", `spec: {agent: {home: {size: big}}}`,
		"spec.agent.home.size", "size is a quantity of at least 1Mi, for example 10Gi"},
	{"a home of nothing", "Team", `spec: {agent: {home: {size: "0"}}}`,
		"spec.agent.home.size", "size is a quantity of at least 1Mi, for example 10Gi"},
	{"a home below zero", "Person", `spec: {agent: {home: {size: -10Gi}}}`,
		"spec.agent.home.size", "size is a quantity of at least 1Mi, for example 10Gi"},
	{"a home whose unit was forgotten", "Person", `spec: {agent: {home: {size: 10}}}`,
		"spec.agent.home.size", "size is a quantity of at least 1Mi, for example 10Gi"},
	{"a storage class whose name cannot be", "Person", `spec: {agent: {home: {storageClassName: Fast SSD}}}`,
		"spec.agent.home.storageClassName", "storageClassName is the name of a StorageClass"},
	{"an access mode that shares the home", "Person", `spec: {agent: {home: {accessMode: ReadWriteMany}}}`,
		"spec.agent.home.accessMode", `supported values: "ReadWriteOncePod", "ReadWriteOnce"`},
	{"a retention that is none", "Person", `spec: {agent: {home: {retention: Recycle}}}`,
		"spec.agent.home.retention", `supported values: "Retain", "Delete"`},
	{"a variable whose name has a dash", "Person", `spec: {agent: {env: [{name: LOG-LEVEL, value: debug}]}}`,
		"spec.agent.env[0].name", "a variable name has letters, digits and '_', and does not begin with a digit"},
	{"the variable HOME", "Person", `spec: {agent: {env: [{name: HOME, value: /root}]}}`,
		"spec.agent.env[0].name", "HOME, TMPDIR and names that begin with BULLPEN_ are set by the operator: choose another name"},
	{"the variable TMPDIR", "Person", `spec: {agent: {env: [{name: TMPDIR, value: /var}]}}`,
		"spec.agent.env[0].name", "HOME, TMPDIR and names that begin with BULLPEN_ are set by the operator"},
	{"a variable of the operator", "Person", `spec: {agent: {env: [{name: BULLPEN_OFFICE_URL, value: "https://example.com"}]}}`,
		"spec.agent.env[0].name", "HOME, TMPDIR and names that begin with BULLPEN_ are set by the operator"},
	{"one variable twice", "Person", `spec: {agent: {env: [{name: A, value: b}, {name: A, value: c}]}}`,
		"spec.agent.env[1]", "Duplicate value"},
	{"a Secret as variables and as files", "Person", `spec: {agent: {secrets: [{name: git, envPrefix: GIT_, mountPath: /etc/git}]}}`,
		"spec.agent.secrets[0]", "envPrefix and mountPath exclude each other: the keys of a Secret become variables or files"},
	{"a prefix that begins with a digit", "Person", `spec: {agent: {secrets: [{name: git, envPrefix: 1st_}]}}`,
		"spec.agent.secrets[0].envPrefix", "envPrefix has letters, digits and '_', and does not begin with a digit"},
	{"a prefix of the operator", "Person", `spec: {agent: {secrets: [{name: git, envPrefix: BULLPEN_}]}}`,
		"spec.agent.secrets[0].envPrefix", "envPrefix must not begin with BULLPEN_: those variables are the operator's"},
	{"a relative mount path", "Person", `spec: {agent: {secrets: [{name: git, mountPath: etc/git}]}}`,
		"spec.agent.secrets[0].mountPath", "mountPath is an absolute path without '..'"},
	{"a mount path that goes up", "Person", `spec: {agent: {secrets: [{name: git, mountPath: /etc/../home}]}}`,
		"spec.agent.secrets[0].mountPath", "mountPath is an absolute path without '..'"},
	{"a mount path over the root", "Person", `spec: {agent: {secrets: [{name: git, mountPath: /}]}}`,
		"spec.agent.secrets[0].mountPath", "mountPath is an absolute path without '..'"},
	{"a mount path over the home", "Person", `spec: {agent: {secrets: [{name: git, mountPath: /home/agent}]}}`,
		"spec.agent.secrets[0].mountPath", "mountPath must not cover /home/agent, /tmp or /var/run/bullpen: they are the operator's"},
	{"a mount path over a parent of the token", "Person", `spec: {agent: {secrets: [{name: git, mountPath: /var/run}]}}`,
		"spec.agent.secrets[0].mountPath", "mountPath must not cover /home/agent, /tmp or /var/run/bullpen"},
	{"a mount path beside the token", "Person", `spec: {agent: {secrets: [{name: git, mountPath: /var/run/bullpen/git}]}}`,
		"spec.agent.secrets[0].mountPath", "mountPath must not cover /home/agent, /tmp or /var/run/bullpen"},
	{"two Secrets at one mount path", "Person", `spec: {agent: {secrets: [{name: a, mountPath: /etc/git}, {name: b, mountPath: /etc/git}]}}`,
		"spec.agent.secrets", "secrets need a mountPath each: two of them name the same"},
	{"one Secret twice", "Person", `spec: {agent: {secrets: [{name: git}, {name: git, envPrefix: GIT_}]}}`,
		"spec.agent.secrets[1]", "Duplicate value"},
	{"a node selector whose key has a blank", "Person", `spec: {agent: {nodeSelector: {"disk type": ssd}}}`,
		"spec.agent.nodeSelector", "nodeSelector has label keys, for example topology.kubernetes.io/zone"},
	{"a node selector whose value has a blank", "Person", `spec: {agent: {nodeSelector: {disk: very fast}}}`,
		"spec.agent.nodeSelector", "nodeSelector has label values of at most 63 letters, digits, '-', '_' and '.'"},
	{"a toleration with an unknown effect", "Person", `spec: {agent: {tolerations: [{key: gpu, operator: Exists, effect: NoSleep}]}}`,
		"spec.agent.tolerations", "tolerations have operator Equal or Exists, and effect NoSchedule, PreferNoSchedule or NoExecute"},
	{"a toleration of whatever has the value", "Person", `spec: {agent: {tolerations: [{key: gpu, operator: Exists, value: "yes"}]}}`,
		"spec.agent.tolerations", "tolerations with operator Exists have no value, those with operator Equal have a key"},
	{"a toleration for a time of what does not evict", "Person",
		`spec: {agent: {tolerations: [{key: gpu, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}]}}`,
		"spec.agent.tolerations", "tolerations with tolerationSeconds have effect NoExecute"},
	{"a runtime class whose name cannot be", "Person", `spec: {agent: {runtimeClassName: gVisor}}`,
		"spec.agent.runtimeClassName", "runtimeClassName is the name of a RuntimeClass"},
	{"a patch of another kind", "Person", `spec: {agent: {patches: [{target: Secret, patch: "data: {}"}]}}`,
		"spec.agent.patches[0].target", `supported values: "Pod", "PersistentVolumeClaim"`},
	{"an empty patch", "Person", `spec: {agent: {patches: [{target: Pod, patch: ""}]}}`,
		"spec.agent.patches[0].patch", "should be at least 1 chars long"},

	// Person
	{"a person whose name leaves no room for its pod's", "Person", `{metadata: {name: ` + long(58) + `}, spec: {handle: ada}}`,
		"<nil>", fmt.Sprintf(nameRule, "Person", 57)},
	{"a person whose name is too long for a handle", "Person", `metadata: {name: ` + long(41) + `}`,
		"spec.handle", "spec.handle is needed where metadata.name is longer than 40 characters"},
	{"a person without a team", "Person", `spec: {team: null}`,
		"spec.team", "Required value"},
	{"a person without a spec", "Person", `spec: null`,
		"spec", "Required value"},
	{"a person of a team that cannot be", "Person", `spec: {team: core.eu}`,
		"spec.team", "team is the name of a Team: at most 63 lower-case letters, digits and '-'"},
	{"a handle in upper case", "Person", `spec: {handle: Ada}`,
		"spec.handle", "a handle has at most 40 lower-case letters, digits and '-', and begins and ends with a letter or digit"},
	{"a handle that ends with a dash", "Person", `spec: {handle: ada-}`,
		"spec.handle", "a handle has at most 40 lower-case letters, digits and '-'"},
	{"a handle that is too long", "Person", `spec: {handle: ` + long(41) + `}`,
		"spec.handle", "may not be more than 40"},
	{"a subscription with a blank", "Person", `spec: {subscription: team max}`,
		"spec.subscription", "subscription has letters, digits, '@', '.', '-' and '_'"},
	{"a tool with its folder", "Person", `spec: {tools: [git, /usr/bin/make]}`,
		"spec.tools[1]", "a tool is the name of a program without its folder, for example git"},
	{"one tool twice", "Person", `spec: {tools: [git, git]}`,
		"spec.tools[1]", "Duplicate value"},
	{"a service with a blank name", "Person", `spec: {services: [{name: " ", address: "db:5432"}]}`,
		"spec.services[0].name", "the name of a service is one line, and not blank"},
	{"a service without a port", "Person", `spec: {services: [{name: db, address: db.example.com}]}`,
		"spec.services[0].address", "address is host:port, for example db.example.com:5432"},
	{"a service with a port that cannot be", "Person", `spec: {services: [{name: db, address: "db:65536"}]}`,
		"spec.services[0].address", "address is host:port, for example db.example.com:5432"},
	{"a service with a URL for its address", "Person", `spec: {services: [{name: web, address: "https://example.com:443"}]}`,
		"spec.services[0].address", "address is host:port, for example db.example.com:5432"},

	// WorkItem
	{"both person and role", "WorkItem", `spec: {role: dev}`,
		"spec", "give exactly one of spec.person and spec.role"},
	{"neither person nor role", "WorkItem", `spec: {person: null}`,
		"spec", "give exactly one of spec.person and spec.role"},
	{"a person who cannot be", "WorkItem", `spec: {person: "@ada"}`,
		"spec.person", "a handle has at most 40 lower-case letters, digits and '-'"},
	{"an item without a title", "WorkItem", `spec: {title: null}`,
		"spec.title", "Required value"},
	{"a blank title", "WorkItem", `spec: {title: "  "}`,
		"spec.title", "title is one line, and not blank: details belong into body"},
	{"a title of two lines", "WorkItem", `spec: {title: "Fix\nthe login"}`,
		"spec.title", "title is one line, and not blank: details belong into body"},
	{"a body that no frame could carry", "WorkItem", `spec: {body: ` + strings.Repeat("𝄞", 140_000) + `}`,
		"spec.body", "body may have 512 KiB: put longer texts into a repository"},
	{"a team that cannot be", "WorkItem", `spec: {team: core.eu}`,
		"spec.team", "team is the name of a Team: at most 63 lower-case letters, digits and '-'"},
	{"a kind with a blank", "WorkItem", `spec: {kind: Code review}`,
		"spec.kind", "kind has lower-case letters, digits, '-' and '_', begins with a letter"},
	{"a priority that is a word", "WorkItem", `spec: {priority: high}`,
		"spec.priority", `must be of type integer: "string"`},
	{"a priority out of range", "WorkItem", `spec: {priority: 1000001}`,
		"spec.priority", "should be less than or equal to 1000000"},
	{"a trigger that is none", "WorkItem", `spec: {trigger: cron}`,
		"spec.trigger", `supported values: "human", "agent", "automation", "schedule"`},
	{"a subject without a reference", "WorkItem", `spec: {subject: {type: ticket}}`,
		"spec.subject.ref", "Required value"},
	{"a subject whose URL runs a script", "WorkItem", `spec: {subject: {type: ticket, ref: "1", url: "javascript:alert(1)"}}`,
		"spec.subject.url", "url is an absolute https or http URL, for example https://example.com/tickets/1"},
	{"a subject whose URL is relative", "WorkItem", `spec: {subject: {type: ticket, ref: "1", url: /tickets/1}}`,
		"spec.subject.url", "url is an absolute https or http URL"},
	{"an item split from itself", "WorkItem", `spec: {parent: fix-login}`,
		"spec.parent", "spec.parent must not be the item itself"},
	{"an item split from what cannot be", "WorkItem", `spec: {parent: Fix login}`,
		"spec.parent", "parent is the name of a WorkItem"},
	{"an item that waits for itself", "WorkItem", `spec: {dependsOn: [design, fix-login]}`,
		"spec.dependsOn", "spec.dependsOn must not have the item itself"},
	{"an item that waits for what cannot be", "WorkItem", `spec: {dependsOn: [core/design]}`,
		"spec.dependsOn[0]", "dependsOn has names of WorkItems"},
	{"one dependency twice", "WorkItem", `spec: {dependsOn: [design, design]}`,
		"spec.dependsOn[1]", "Duplicate value"},
	{"more attempts than an item may have", "WorkItem", `spec: {attempts: 101}`,
		"spec.attempts", "should be less than or equal to 100"},
	{"a timeout that is too short", "WorkItem", `spec: {timeout: 10ms}`,
		"spec.timeout", "timeout is a duration between 1s and 720h, for example 2h"},
	{"a timeout in days", "WorkItem", `spec: {timeout: 2d}`,
		"spec.timeout", "timeout is a duration between 1s and 720h, for example 2h"},
	{"a timeout that is too long to be a duration at all", "WorkItem", `spec: {timeout: 999999h999999h}`,
		"spec.timeout", "timeout is a duration between 1s and 720h, for example 2h"},
	{"a TTL below zero", "WorkItem", `spec: {ttlSecondsAfterFinished: -1}`,
		"spec.ttlSecondsAfterFinished", "should be greater than or equal to 0"},
}

func manyInstructions(roles, size int) string {
	var list []string
	for i := range roles {
		list = append(list, fmt.Sprintf("{name: r%d, instructions: %s}", i, long(size)))
	}
	return strings.Join(list, ", ")
}

func TestWrongManifestsAreRefused(t *testing.T) {
	namespace := cluster.Namespace(t)
	for _, test := range refusals {
		t.Run(test.name, func(t *testing.T) {
			object := manifest(t, test.kind, test.over)
			object.SetNamespace(namespace)
			err := strict().Create(t.Context(), object, client.DryRunAll)
			checkRefusal(t, err, test.field, test.sentence)
		})
	}
}

func TestUnknownFieldsAreRefusedByStrictValidation(t *testing.T) {
	namespace := cluster.Namespace(t)
	for _, test := range []struct{ name, kind, over, want string }{
		{"a field that is misspelt", "WorkItem", `spec: {tittle: Fix}`, `unknown field "spec.tittle"`},
		{"a field of a list's element", "Team", `spec: {roles: [{name: dev, prompt: Work}]}`, `unknown field "spec.roles[0].prompt"`},
		{"a field of the agent's settings", "Person", `spec: {agent: {memory: 1Gi}}`, `unknown field "spec.agent.memory"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := manifest(t, test.kind, test.over)
			object.SetNamespace(namespace)
			err := strict().Create(t.Context(), object, client.DryRunAll)
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the answer is %v, not a refusal with %s", err, test.want)
			}
		})
	}
}

// Every rule that has a sentence of its own is broken by one of the tests: a rule that nothing breaks may never have worked.
func TestEveryRuleIsBrokenByATest(t *testing.T) {
	broken := func(message string) bool {
		said := func(sentence string) bool { return strings.Contains(message, sentence) }
		return slices.ContainsFunc(refusals, func(r refusal) bool { return said(r.sentence) }) ||
			slices.ContainsFunc(changes, func(c change) bool { return said(c.refusedWith) && c.refusedWith != "" })
	}
	rules := 0
	for _, crd := range crds(t) {
		walk("", schemaOf(t, crd), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			for _, rule := range schema.XValidations {
				rules++
				if rule.Message == "" {
					t.Errorf("%s%s has a rule without a sentence: %s", crd.Spec.Names.Kind, path, rule.Rule)
				} else if !broken(rule.Message) {
					t.Errorf("%s%s: no test breaks the rule %q", crd.Spec.Names.Kind, path, rule.Message)
				}
			}
		})
	}
	if rules < 60 {
		t.Errorf("only %d rules were found in the CRDs", rules)
	}
}

func crds(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(cluster.Root, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("config/crd/bases has not the three CRDs, but %v (%v)", files, err)
	}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, crd)
	}
	return list
}

func schemaOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s has %d versions", crd.Name, len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits a schema and all below it; list elements are [] and map values are {} in the path.
func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for name, property := range schema.Properties {
		walk(path+"."+name, &property, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", schema.Items.Schema, visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(path+"{}", schema.AdditionalProperties.Schema, visit)
	}
}
