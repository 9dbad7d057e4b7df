package v1alpha1

// This file has the types that Team and Person share: names, the agent settings, usage and references.

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// RuntimeName names the program that does the thinking.
//
// +kubebuilder:validation:Enum=claude;codex;command
type RuntimeName string

// The runtimes.
const (
	RuntimeClaude  RuntimeName = "claude"
	RuntimeCodex   RuntimeName = "codex"
	RuntimeCommand RuntimeName = "command"
)

// Handle names a person within a team, in chat and on the wire.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="a handle has at most 40 lower-case letters, digits and '-', and begins and ends with a letter or digit"
type Handle string

// RoleName names a role of a team.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="a role name has at most 40 lower-case letters, digits and '-', and begins and ends with a letter or digit"
type RoleName string

// ObjectName is the name of another object in the same namespace. Each field of this type bounds its length itself.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="an object name has lower-case letters, digits, '-' and '.', and begins and ends with a letter or digit"
type ObjectName string

// AgentSettings say what an agent's pod is made of. A Person's settings override its Team's, field by field. Lists and maps
// with keys (imagePullSecrets, env, secrets, nodeSelector), home and hooks are joined by key; command, resources, tolerations
// and patches are replaced as a whole. A change takes effect with the next pod, which is made between rounds (see
// policies.rollout.maxWait), unless the field says otherwise.
type AgentSettings struct {
	// Image is the container image of the agent. Without it, the operator's own agent image runs.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=500
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+:[a-f0-9]{32,128})?$')",message="image is the reference of a container image, for example registry.example.com/team/agent:1.2"
	Image string `json:"image,omitempty"`

	// ImagePullPolicy is the pull policy of the image.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets name Secrets of type dockerconfigjson in the person's namespace.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	ImagePullSecrets []ObjectName `json:"imagePullSecrets,omitempty"`

	// Runtime is the program that does the thinking. Default: command.
	//
	// +optional
	Runtime RuntimeName `json:"runtime,omitempty"`

	// Model is the model that the runtime is told to use. Empty leaves it to the runtime.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^\\\\s-][^\\\\s]*)?$')",message="model is a model's name without blanks, and does not begin with '-'"
	Model string `json:"model,omitempty"`

	// Effort is how hard the model thinks. Empty leaves it to the runtime. Agents hear of a change at their next welcome and use it from
	// the next round on; no new pod is needed.
	//
	// +optional
	// +kubebuilder:validation:Enum=none;low;medium;high;xhigh;max
	Effort string `json:"effort,omitempty"`

	// FallbackModel is used while the model is overloaded, by runtimes that can. A change takes effect as that of effort.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^\\\\s-][^\\\\s]*)?$')",message="fallbackModel is a model's name without blanks, and does not begin with '-'"
	FallbackModel string `json:"fallbackModel,omitempty"`

	// MaxTurns is the most model calls of one round, by runtimes that can count them. A change takes effect as that of effort.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxTurns *int32 `json:"maxTurns,omitempty"`

	// AllowedTools are the tools that the runtime may use without being asked, in its own words, for example Bash(git:*). Without any,
	// approvals decides about all. A change takes effect as that of effort.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=300
	AllowedTools []string `json:"allowedTools,omitempty"`

	// Approvals says what a runtime is told that asks for permission: Allow (the default; the pod is the sandbox) or Deny. A change takes
	// effect as that of effort.
	//
	// +optional
	Approvals ApprovalPolicy `json:"approvals,omitempty"`

	// MCPServers are servers of the Model Context Protocol for the runtime. A change takes effect as that of effort.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	MCPServers []MCPServer `json:"mcpServers,omitempty"`

	// Command is the program of the command runtime and its arguments, without a shell. It runs in the item's folder, with
	// the offer as JSON on its standard input.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0].trim() != ''",message="command begins with the program to run: its first entry must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.map(argument, argument.size()).sum() <= 32768",message="command may have 32768 characters in all: put longer texts into a file"
	Command []string `json:"command,omitempty"`

	// Resources are requests and limits of the agent's container. Default: requests of 100m CPU and 256Mi memory, and a limit
	// of 2Gi memory.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.claims)",message="resources.claims is not supported: give resources.requests and resources.limits"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || ['cpu', 'memory', 'ephemeral-storage'].all(name, !(name in self.requests) || isQuantity(string(self.requests[name])) && !quantity(string(self.requests[name])).isLessThan(quantity('0')))",message="resources.requests has quantities of zero or more, for example cpu: 500m and memory: 1Gi"
	// +kubebuilder:validation:XValidation:rule="!has(self.limits) || ['cpu', 'memory', 'ephemeral-storage'].all(name, !(name in self.limits) || isQuantity(string(self.limits[name])) && !quantity(string(self.limits[name])).isLessThan(quantity('0')))",message="resources.limits has quantities of zero or more, for example cpu: 2 and memory: 4Gi"
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || ['cpu', 'memory', 'ephemeral-storage'].all(name, !(name in self.requests) || !(name in self.limits) || !isQuantity(string(self.requests[name])) || !isQuantity(string(self.limits[name])) || !quantity(string(self.requests[name])).isGreaterThan(quantity(string(self.limits[name]))))",message="resources.requests must not be greater than resources.limits"
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Home is the agent's home volume.
	//
	// +optional
	Home *HomeSettings `json:"home,omitempty"`

	// Env are environment variables of the agent. HOME, TMPDIR and names that begin with BULLPEN_ are the operator's own.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []EnvVar `json:"env,omitempty"`

	// Secrets are Secrets of the person's namespace whose keys become environment variables or files of the agent.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.mountPath) || self.exists_one(b, has(b.mountPath) && b.mountPath == a.mountPath))",message="secrets need a mountPath each: two of them name the same"
	Secrets []SecretUse `json:"secrets,omitempty"`

	// Hooks are shell scripts that prepare the environment of an item.
	//
	// +optional
	Hooks *EnvironmentHooks `json:"hooks,omitempty"`

	// NodeSelector must match a node's labels for the pod to run there.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=12
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() > 0 && key.size() <= 317 && !key.matches('[^\\\\w./-]'))",message="nodeSelector has label keys, for example topology.kubernetes.io/zone"
	// +kubebuilder:validation:XValidation:rule="self.all(key, self[key].size() <= 63 && !self[key].matches('[^\\\\w.-]'))",message="nodeSelector has label values of at most 63 letters, digits, '-', '_' and '.'"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations let the pod run on tainted nodes.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, (!has(t.operator) || t.operator in ['', 'Equal', 'Exists']) && (!has(t.effect) || t.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute']))",message="tolerations have operator Equal or Exists, and effect NoSchedule, PreferNoSchedule or NoExecute"
	// +kubebuilder:validation:XValidation:rule="self.all(t, has(t.operator) && t.operator == 'Exists' ? !has(t.value) || t.value == '' : has(t.key) && t.key != '')",message="tolerations with operator Exists have no value, those with operator Equal have a key"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.tolerationSeconds) || has(t.effect) && t.effect == 'NoExecute')",message="tolerations with tolerationSeconds have effect NoExecute"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// RuntimeClassName chooses the container runtime, for example a sandboxed one.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$')",message="runtimeClassName is the name of a RuntimeClass: lower-case letters, digits, '-' and '.'"
	RuntimeClassName string `json:"runtimeClassName,omitempty"`

	// Patches are kustomize patches (strategic merge or JSON 6902, as YAML) of the pod and the home's claim. Identity,
	// owner and the security floor are checked again after them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Patches []Patch `json:"patches,omitempty"`
}

// ApprovalPolicy says what a runtime is told that asks for permission: Allow or Deny.
//
// +kubebuilder:validation:Enum=Allow;Deny
type ApprovalPolicy string

// The approval policies.
const (
	ApprovalsAllow ApprovalPolicy = "Allow"
	ApprovalsDeny  ApprovalPolicy = "Deny"
)

// MCPServer is a server of the Model Context Protocol: a program that the runtime starts, or a URL that it calls.
//
// +kubebuilder:validation:XValidation:rule="has(self.command) != has(self.url)",message="give exactly one of command and url"
// +kubebuilder:validation:XValidation:rule="has(self.command) || !has(self.args) && !has(self.env)",message="args and env belong to a server with a command"
// +kubebuilder:validation:XValidation:rule="has(self.url) || !has(self.headers)",message="headers belong to a server with a url"
type MCPServer struct {
	// Name of the server; the runtime's names of its tools begin with it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="the name of a server has letters, digits, '-' and '_'"
	Name string `json:"name"`

	// Command is the program.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Command string `json:"command,omitempty"`

	// Args are the program's arguments.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Args []string `json:"args,omitempty"`

	// Env are variables of the program. A value may refer to the agent's own variables as ${NAME}: that is how it gets a secret.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Env []EnvVar `json:"env,omitempty"`

	// URL is the server's address, for servers that speak HTTP.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^\\\\s]+$') && !self.matches('^https?://[^/]*@')",message="url begins with http:// or https://, and has no user or password"
	URL string `json:"url,omitempty"`

	// Headers are sent with each request to the URL. A value may refer to the agent's variables as ${NAME}.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Headers []Header `json:"headers,omitempty"`
}

// Header is one header of an HTTP request.
type Header struct {
	// Name of the header.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="the name of a header has letters, digits and '-'"
	Name string `json:"name"`

	// Value of the header. Secrets do not belong here: refer to a variable as ${NAME}.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`
}

// HomeSettings describe the volume that an agent keeps.
type HomeSettings struct {
	// Size is the requested size. Default: 10Gi. A home grows where its storage class can, and never shrinks.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="size is a quantity of at least 1Mi, for example 10Gi"
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName is the class of the volume; without it, the cluster's default. Only for a new home.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$')",message="storageClassName is the name of a StorageClass: lower-case letters, digits, '-' and '.'"
	StorageClassName *string `json:"storageClassName,omitempty"`

	// AccessMode of the volume. Default: ReadWriteOncePod. Only for a new home.
	//
	// +optional
	// +kubebuilder:validation:Enum=ReadWriteOncePod;ReadWriteOnce
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`

	// Retention says what becomes of the home when its person is deleted. Default: Retain. A change takes effect at once.
	//
	// +optional
	// +kubebuilder:validation:Enum=Retain;Delete
	Retention HomeRetention `json:"retention,omitempty"`
}

// HomeRetention says what becomes of a home when its person is deleted: Retain or Delete.
type HomeRetention string

// The retentions of a home.
const (
	RetainHome HomeRetention = "Retain"
	DeleteHome HomeRetention = "Delete"
)

// EnvVar is one environment variable with a plain value.
type EnvVar struct {
	// Name of the variable.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="a variable name has letters, digits and '_', and does not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('BULLPEN_') && !(self in ['HOME', 'TMPDIR'])",message="HOME, TMPDIR and names that begin with BULLPEN_ are set by the operator: choose another name"
	Name string `json:"name"`

	// Value of the variable. Secrets do not belong here: use secrets.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Value string `json:"value,omitempty"`
}

// SecretUse gives an agent a Secret by name.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.envPrefix) && has(self.mountPath))",message="envPrefix and mountPath exclude each other: the keys of a Secret become variables or files"
type SecretUse struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MaxLength=253
	Name ObjectName `json:"name"`

	// EnvPrefix is put before each key to form the variable's name. Without mountPath, keys become variables. A Secret's
	// change reaches variables with the next pod.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z_][A-Za-z0-9_]*)?$')",message="envPrefix has letters, digits and '_', and does not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('BULLPEN_')",message="envPrefix must not begin with BULLPEN_: those variables are the operator's"
	EnvPrefix string `json:"envPrefix,omitempty"`

	// MountPath is the folder in which each key becomes a file, kept up to date when the Secret changes.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[A-Za-z0-9_@%+.-]+)+$') && !self.matches('/[.][.]?(/|$)')",message="mountPath is an absolute path without '..' or a '/' at its end, for example /var/run/secrets/git"
	// +kubebuilder:validation:XValidation:rule="!['/home/agent', '/var/run/bullpen', '/tmp'].exists(own, own == self || own.startsWith(self + '/')) && !self.startsWith('/var/run/bullpen/')",message="mountPath must not cover /home/agent, /tmp or /var/run/bullpen: they are the operator's"
	MountPath string `json:"mountPath,omitempty"`
}

// EnvironmentHooks are shell scripts, run by the agent in the item's folder. Agents hear of a change at their next welcome
// and use it from the next round on; no new pod is needed.
type EnvironmentHooks struct {
	// BuildBase prepares what items share, cached by its own text.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	BuildBase string `json:"buildBase,omitempty"`

	// BuildBaseInputs are the files that buildBase depends on, as repository/path: it runs again when one of them changes. Without this
	// field, any change of the sources runs it again; an empty list says that it depends on none.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9][a-z0-9-]*/[^/].*$') && !self.contains('..')",message="an input is a repository's name and a path in it, for example app/go.sum"
	BuildBaseInputs []string `json:"buildBaseInputs,omitzero"`

	// AfterCheckout runs once after an item's folder was made.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	AfterCheckout string `json:"afterCheckout,omitempty"`

	// BeforeStart runs before every round.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	BeforeStart string `json:"beforeStart,omitempty"`

	// OnAct makes a change that the office asks for in a tracker or a knowledge base, with the agent's own credentials. It gets
	// the act as JSON on its standard input; each line that it prints is the result of one operation.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	OnAct string `json:"onAct,omitempty"`

	// OnReport posts how an item ended to whoever asked for it. It gets the report as JSON on its standard input.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	OnReport string `json:"onReport,omitempty"`
}

// Patch is one kustomize patch.
type Patch struct {
	// Target is the object that the patch applies to.
	//
	// +kubebuilder:validation:Enum=Pod;PersistentVolumeClaim
	Target string `json:"target"`

	// Patch is a strategic merge patch or a list of JSON 6902 operations, as YAML.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Patch string `json:"patch"`
}

// UsageStatus is usage in sum. Cost is at API list prices: what the runtime told, else what the price of the model gives. It is absent
// where nothing is known, and a lower bound where there are unpriced tokens.
type UsageStatus struct {
	// InputTokens read by models, without cached ones.
	//
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`
	// OutputTokens written by models.
	//
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// CacheReadTokens read from a prompt cache.
	//
	// +optional
	CacheReadTokens int64 `json:"cacheReadTokens,omitempty"`
	// CacheCreationTokens written to a prompt cache.
	//
	// +optional
	CacheCreationTokens int64 `json:"cacheCreationTokens,omitempty"`
	// Tokens adds the four counts up.
	//
	// +optional
	Tokens int64 `json:"tokens,omitempty"`
	// CostUSD in US dollars, as a decimal.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	CostUSD string `json:"costUSD,omitempty"`
	// UnpricedTokens are those of the tokens whose cost nobody knows: their runtime told none, and there is no price of their
	// model. See the team's usage.prices.
	//
	// +optional
	UnpricedTokens int64 `json:"unpricedTokens,omitempty"`
}

// ModelUsageStatus is the usage of one model.
type ModelUsageStatus struct {
	// Model id as the runtime reports it.
	//
	// +kubebuilder:validation:MaxLength=256
	Model       string `json:"model"`
	UsageStatus `json:",inline"`
}

// StoreRef says which life of the office store a status was read from.
type StoreRef struct {
	// ID of the store.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id,omitempty"`
	// Revision of the store at the last change of this object.
	//
	// +optional
	Revision int64 `json:"revision,omitempty"`
}
