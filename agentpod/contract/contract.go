// Package contract is what the agent's pod and the agent agree on: environment names, ports and exit codes.
//
// The pod's builder sets these, the agent reads them; the agent knows no path but from its environment.
package contract

// Environment of the agent's process.
const (
	// EnvHome is the only place that lasts.
	EnvHome = "HOME"
	// EnvOfficeURL is the base URL of the office with scheme https (or http), without a path; the agent adds
	// /v1/teams/{namespace}/{team}/agent.
	EnvOfficeURL = "BULLPEN_OFFICE_URL"
	// EnvNamespace and EnvTeam name the team.
	EnvNamespace = "BULLPEN_NAMESPACE"
	EnvTeam      = "BULLPEN_TEAM"
	// EnvPerson is the handle.
	EnvPerson = "BULLPEN_PERSON"
	// EnvTokenFile and EnvCAFile are paths of the agent's token and of the office's CA bundle (PEM). Both may change while the
	// agent runs; it reads them at every dial.
	EnvTokenFile = "BULLPEN_TOKEN_FILE"
	EnvCAFile    = "BULLPEN_CA_FILE"
	// EnvRuntime is claude, codex or command.
	EnvRuntime = "BULLPEN_RUNTIME"
	// EnvModel is the model that the runtime is told to use; empty leaves it to the runtime.
	EnvModel = "BULLPEN_MODEL"
	// EnvCommand is the program of the command runtime with its arguments, as a JSON list of strings.
	EnvCommand = "BULLPEN_COMMAND"
	// EnvGitCredentials is the folder with a folder of credentials for each repository that has some: the keys of its Secret as files
	// (username and password, or token, or ssh-privatekey with known_hosts). They may change at any time; they are read for each use.
	EnvGitCredentials = "BULLPEN_GIT_CREDENTIALS"
	// EnvSecretFiles are the folders, separated by colons, whose files are secrets: their values are masked in records, as are those of
	// the variables that EnvSecretVars names, separated by commas; a name with a * at its end is the beginning of many, and one with a !
	// before it is no secret whatever else names it, as are the contract's own and what every process has (PATH, HOME, …).
	EnvSecretFiles = "BULLPEN_SECRET_FILES"
	EnvSecretVars  = "BULLPEN_SECRET_VARS"
	// EnvSpoolRoom is the most MiB that records may take in the home until the office has them; without it a quarter of the file system,
	// and at most 1024.
	EnvSpoolRoom = "BULLPEN_SPOOL_MIB"
	// EnvTmp is a folder for what need not last.
	EnvTmp = "TMPDIR"
	// EnvGrace is how many seconds the agent may take to hand back and end after SIGTERM; without it, 25. It has to be less
	// than the pod's grace period.
	EnvGrace = "BULLPEN_GRACE_SECONDS"
	// EnvLog is the form of the agent's log on standard error: json (the default) or text.
	EnvLog = "BULLPEN_LOG"
)

// Environment of a program that the command runtime runs, on top of the agent's own without its token.
const (
	// EnvItemID and EnvItemDir name the work item and its folder, which is also the working directory, unless that is the checkout of the
	// team's one repository.
	EnvItemID  = "BULLPEN_ITEM_ID"
	EnvItemDir = "BULLPEN_ITEM_DIR"
	// EnvResultFile is where the program may leave its result, as JSON: summary, status, links, toReview, usage, sessionId.
	EnvResultFile = "BULLPEN_RESULT_FILE"
	// EnvRound counts the rounds of the item that this home has seen, from 1.
	EnvRound = "BULLPEN_ROUND"
	// EnvSession is the runtime session to resume; not set if there is none.
	EnvSession = "BULLPEN_SESSION_ID"
	// EnvResumed is "true" in a round that an earlier process of the agent had begun; not set otherwise.
	EnvResumed = "BULLPEN_RESUMED"
	// EnvTeamFile is the team config as JSON, EnvTeamPage the same to read, as Markdown.
	EnvTeamFile = "BULLPEN_TEAM_FILE"
	EnvTeamPage = "BULLPEN_TEAM_PAGE"
	// EnvBaseDir is the folder that the hook build_base filled; not set without that hook.
	EnvBaseDir = "BULLPEN_BASE_DIR"
)

// Environment of every program that the agent runs: the runtime's and the hooks'.
const (
	// EnvSocket is the unix socket on which the agent answers the programs of its pod; ost speaks to it. Not set where the
	// agent could open none.
	EnvSocket = "BULLPEN_SOCKET"
	// EnvNotesFile is the page with the person's notes. "ost note" writes it, and nobody else should.
	EnvNotesFile = "BULLPEN_NOTES_FILE"
)

// Environment of the hooks that do what the office asks for outside of rounds.
const (
	// EnvActID and EnvReportID name the act that on_act makes and the report that on_report posts.
	EnvActID    = "BULLPEN_ACT_ID"
	EnvReportID = "BULLPEN_REPORT_ID"
	// EnvActRetry and EnvReportRetry are "true" when an earlier run of the hook for the same id did not end, or ended badly;
	// not set otherwise. What that run did before it ended may be done.
	EnvActRetry    = "BULLPEN_ACT_RETRY"
	EnvReportRetry = "BULLPEN_REPORT_RETRY"
)

// Exit codes of the agent.
const (
	// ExitOK: stopped by SIGTERM. An agent that was replaced by another one of the same person, or that the office refuses,
	// does not exit, because the kubelet would start it again: it stays, the former idle, the latter trying slowly.
	ExitOK = 0
	// ExitError: something in the pod does not work, such as a home that cannot be written.
	ExitError = 1
	// ExitConfig: the environment is wrong; a restart will not help.
	ExitConfig = 2
)

// Names inside the pod.
const (
	// ContainerName of the agent's container.
	ContainerName = "agent"
	// HomeVolume, TokenVolume and TmpVolume are the pod's volumes.
	HomeVolume  = "home"
	TokenVolume = "bullpen-agent"
	TmpVolume   = "tmp"
	// HomePath, TokenPath and TmpPath are where they are mounted.
	HomePath  = "/home/agent"
	TokenPath = "/var/run/bullpen"
	TmpPath   = "/tmp"
	// GitCredentialsPath has a folder for each Secret with credentials of a repository; see EnvGitCredentials.
	GitCredentialsPath = "/var/run/bullpen-git"
	// TokenKey and CAKey are the keys of the agent's Secret.
	TokenKey = "token"
	CAKey    = "ca.crt"
	// AgentBinary is the agent in its image.
	AgentBinary = "/usr/local/bin/bullpen-agent"
	// CLIName is the command that programs speak to the agent with. It stands beside the agent in its image, and the agent
	// puts its folder first on the PATH of what it runs.
	CLIName = "ost"
)
