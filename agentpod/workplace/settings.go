package workplace

// This file writes the settings of git that the agent's own git and that of every program in a round obey: who the author is, and
// whom to ask for credentials. None of them holds a secret.
//
// They come as the system's settings (GIT_CONFIG_SYSTEM), which the user's own in the home and in the environment overrule. The other
// way, GIT_CONFIG_COUNT, does not reach submodules, and some runtimes hide variables with KEY in their names from what they run, which
// leaves git with a count and no settings. The clones in the home name the part about credentials themselves, so that no helper of the
// home's can keep a password that it was never meant to see.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// The words by which the agent's own program serves git.
const (
	// CommandCredential has it answer as a credential helper.
	CommandCredential = "git-credential"
	// CommandSSH has it run ssh with the key of the repository in question.
	CommandSSH = "git-ssh"
)

// The files in the folder of the settings.
const (
	settingsFile    = "config"
	credentialsFile = "credentials"
	helperFile      = "repositories.json"
	knownHostsFile  = "known_hosts"
)

// systemConfig is where most systems have their settings of git.
const systemConfig = "/etc/gitconfig"

// helperConfig is what the credential helper has to know.
type helperConfig struct {
	// Folder is the one with a folder of credentials for each repository that has some.
	Folder       string             `json:"folder"`
	Repositories []helperRepository `json:"repositories"`
}

// helperRepository is a repository with credentials.
type helperRepository struct {
	URL string `json:"url"`
	// Credentials is the name of its folder.
	Credentials string `json:"credentials"`
}

// settings is the folder of the settings.
func (p *Place) settings() string { return filepath.Join(p.Root, "git") }

// writeSettings writes the settings for a team, and returns the environment with what points to them.
func (p *Place) writeSettings(team protocol.TeamConfig, env []string) ([]string, error) {
	dir := p.settings()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the settings of git cannot be written: %w", err)
	}
	helper := helperConfig{Folder: p.Credentials, Repositories: []helperRepository{}}
	for _, r := range team.Repositories {
		if r.Credentials != "" {
			helper.Repositories = append(helper.Repositories, helperRepository{r.URL, r.Credentials})
		}
	}
	data, err := json.Marshal(helper)
	if err != nil {
		return nil, err
	}
	name, email := p.author(team)
	earlier := systemConfig
	if own, ok := lookup(env, envSystemConfig); ok && own != "" && own != filepath.Join(dir, settingsFile) {
		earlier = own
	}
	if err := errors.Join(
		replaceFile(filepath.Join(dir, helperFile), data),
		replaceFile(filepath.Join(dir, credentialsFile), p.credentialSettings(helper, usesSSH(team.Repositories))),
		replaceFile(filepath.Join(dir, settingsFile), mainSettings(earlier, filepath.Join(dir, credentialsFile), name, email)),
	); err != nil {
		return nil, fmt.Errorf("the settings of git cannot be written: %w", err)
	}
	return p.gitEnv(usesSSH(team.Repositories), env), nil
}

const (
	envSystemConfig = "GIT_CONFIG_SYSTEM"
	envSSHCommand   = "GIT_SSH_COMMAND"
	envSSHVariant   = "GIT_SSH_VARIANT"
	envPrompt       = "GIT_TERMINAL_PROMPT"
)

// gitEnv is the environment with what points git to the settings. What the user says of ssh stays.
func (p *Place) gitEnv(ssh bool, env []string) []string {
	out := without(env, envSystemConfig, envPrompt)
	out = append(out, envSystemConfig+"="+filepath.Join(p.settings(), settingsFile), envPrompt+"=0")
	if _, own := lookup(env, envSSHCommand); !own && ssh {
		out = append(out, envSSHCommand+"="+p.helperCommand(CommandSSH), envSSHVariant+"=ssh")
	}
	return out
}

// helperCommand is the shell command that runs the agent's program for git.
func (p *Place) helperCommand(command string) string {
	return shellQuote(p.Helper) + " " + command + " " + shellQuote(p.settings())
}

// author is who makes commits.
func (p *Place) author(team protocol.TeamConfig) (name, email string) {
	name = p.Person
	for _, person := range team.People {
		if person.Handle == p.Person && person.Name != "" {
			name = person.Name
		}
	}
	return name, strings.ToLower(fmt.Sprintf("%s@%s.%s.bullpen.invalid", p.Person, team.Name, p.Namespace))
}

// mainSettings are those of the system, and above them what every program of a round gets.
func mainSettings(earlier, credentials, name, email string) []byte {
	var b bytes.Buffer
	b.WriteString("# The agent writes this file before each round. Settings of your own belong into ~/.gitconfig, which overrules it.\n")
	section(&b, "include", "", "path", earlier)
	section(&b, "user", "", "name", name, "email", email)
	section(&b, "push", "", "default", "current", "autoSetupRemote", "true")
	// What goes on in the background would be killed with the program that began it.
	section(&b, "gc", "", "autoDetach", "false")
	section(&b, "maintenance", "", "autoDetach", "false")
	section(&b, "include", "", "path", credentials)
	return b.Bytes()
}

// credentialSettings name the helper for each repository with credentials, and for nothing else. An empty helper takes away those that
// were named before it. A repository goes by its URL with .git and without. Where one is reached by ssh, that runs by the agent's program.
func (p *Place) credentialSettings(helper helperConfig, ssh bool) []byte {
	var b bytes.Buffer
	b.WriteString("# The agent writes this file before each round. It says whom git asks for credentials, and holds none.\n")
	for _, r := range helper.Repositories {
		at, err := parseRemote(r.URL)
		if err != nil || !at.web() {
			continue
		}
		bare := strings.TrimSuffix(strings.TrimRight(r.URL, "/"), ".git")
		for _, address := range []string{bare, bare + ".git"} {
			section(&b, "credential", address, "helper", "", "helper", "!"+p.helperCommand(CommandCredential), "useHttpPath", "true")
		}
	}
	if ssh {
		section(&b, "core", "", "sshCommand", p.helperCommand(CommandSSH))
		section(&b, "ssh", "", "variant", "ssh")
	}
	return b.Bytes()
}

// section writes a section of settings, with names and values by turns.
func section(b *bytes.Buffer, name, sub string, pairs ...string) {
	if sub != "" {
		sub = ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + `"`
	}
	fmt.Fprintf(b, "[%s%s]\n", name, sub)
	for i := 0; i+1 < len(pairs); i += 2 {
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\x00", "").Replace(pairs[i+1])
		fmt.Fprintf(b, "\t%s = \"%s\"\n", pairs[i], value)
	}
}

// shellQuote makes one word of a text for a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// lookup finds a variable; of several of a name the last counts.
func lookup(env []string, name string) (string, bool) {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// without gives a copy of an environment without some variables.
func without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// replaceFile writes a file so that readers see the old content or the new one. What is in it already is not written again.
func replaceFile(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return disk.Swap(path, data)
}

// workdirOf is where the programs of a round run: the checkout, where the item has exactly one, else its folder.
func workdirOf(round runtime.Round) string {
	if len(round.Worktrees) == 1 {
		return round.Worktrees[0].Dir
	}
	return round.Dir
}
