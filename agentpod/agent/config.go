package agent

// This file reads the agent's environment.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/spool"
)

// Config is what an agent is told by its pod.
type Config struct {
	// Home is the folder that lasts; the agent's own files are in .bullpen below it.
	Home string
	// OfficeURL is the office's base URL with scheme https or http.
	OfficeURL string
	// Namespace, Team and Person say who the agent is.
	Namespace, Team, Person string
	// TokenFile and CAFile are read at every dial. Without CAFile the system's CAs count.
	TokenFile, CAFile string
	// Model is used where the team config names none for the person.
	Model string
	// RuntimeName is the runtime that the environment asks for, and Command the program of the command runtime.
	RuntimeName string
	Command     []string
	// Runtime works the rounds.
	Runtime runtime.Runtime
	// Env is the environment of the programs, which get the socket and the PATH of ost on top.
	Env []string
	// Tmp is a folder for what need not last.
	Tmp string
	// CLIDir is the folder of ost, put first on the programs' PATH; empty where there is none.
	CLIDir string
	// SpoolRoom is the most bytes that records may take in the home until the office has them; 0 is a quarter of its file system, and at
	// most 1 GiB.
	SpoolRoom int64
	// Secrets are masked in what the agent tells. Its own token always is.
	Secrets Secrets
	// Version of the agent.
	Version string
	// Grace is how long the agent may take to hand back and end after SIGTERM.
	Grace time.Duration
	Log   *slog.Logger

	timing      timing
	uploadTimes spool.Times
	// keep is how long the folder of a finished item stays; clean is how often the office is asked about them.
	keep, clean time.Duration
	// recheck is how often a runtime that is not fit is checked again, and a report that could not be posted is tried again.
	recheck time.Duration
	// hookWait is how long a hook may take to make an act or to post a report.
	hookWait time.Duration
}

// defaultGrace leaves room within a pod's usual grace period of 60 s.
const defaultGrace = 25 * time.Second

// ProgramGrace is the part of the grace that a program may take to end; the rest is for the hand-back.
func (c Config) ProgramGrace() time.Duration { return c.Grace * 3 / 5 }

// secretEnv are variables that are not for programs, or that only this agent may set for them.
var secretEnv = []string{
	contract.EnvTokenFile, contract.EnvCAFile, contract.EnvCommand, contract.EnvGrace, contract.EnvLog,
	contract.EnvSocket, contract.EnvNotesFile, contract.EnvItemID, contract.EnvSpoolRoom, contract.EnvSecretFiles, contract.EnvSecretVars,
}

// FromEnv reads the environment, given as in os.Environ. Its error names everything that is wrong. Runtime, Version and Log
// are left to the caller.
func FromEnv(environ []string) (Config, error) {
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	var problems []error
	need := func(name string) string {
		if env[name] == "" {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
		return env[name]
	}
	c := Config{
		Home:        need(contract.EnvHome),
		OfficeURL:   need(contract.EnvOfficeURL),
		Namespace:   need(contract.EnvNamespace),
		Team:        need(contract.EnvTeam),
		Person:      need(contract.EnvPerson),
		TokenFile:   need(contract.EnvTokenFile),
		CAFile:      env[contract.EnvCAFile],
		Model:       env[contract.EnvModel],
		RuntimeName: need(contract.EnvRuntime),
		Grace:       defaultGrace,
		Env:         withoutSecrets(environ),
		Tmp:         cmp.Or(env[contract.EnvTmp], "/tmp"),
		Secrets:     secretsFrom(env),
	}
	if c.Home != "" && !filepath.IsAbs(c.Home) {
		problems = append(problems, fmt.Errorf("%s must be an absolute path, not %q", contract.EnvHome, c.Home))
	}
	if c.OfficeURL != "" {
		if _, err := endpoint(c.OfficeURL, c.Namespace, c.Team); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", contract.EnvOfficeURL, err))
		}
	}
	if value := env[contract.EnvGrace]; value != "" {
		seconds, err := strconv.Atoi(value)
		if err != nil || seconds < 1 {
			problems = append(problems, fmt.Errorf("%s must be a whole number of seconds above 0, not %q", contract.EnvGrace, value))
		}
		c.Grace = time.Duration(seconds) * time.Second
	}
	if value := env[contract.EnvSpoolRoom]; value != "" {
		mebibytes, err := strconv.ParseInt(value, 10, 32)
		if err != nil || mebibytes < 1 {
			problems = append(problems, fmt.Errorf("%s must be a whole number of MiB above 0, not %q", contract.EnvSpoolRoom, value))
		}
		c.SpoolRoom = mebibytes << 20
	}
	if value := env[contract.EnvCommand]; value != "" {
		if err := json.Unmarshal([]byte(value), &c.Command); err != nil || len(c.Command) == 0 || c.Command[0] == "" {
			problems = append(problems,
				fmt.Errorf(`%s must be a JSON list of a program and its arguments, such as ["python3","work.py"]`, contract.EnvCommand))
		}
	}
	return c, errors.Join(problems...)
}

func withoutSecrets(environ []string) []string {
	var kept []string
next:
	for _, entry := range environ {
		for _, name := range secretEnv {
			if strings.HasPrefix(entry, name+"=") {
				continue next
			}
		}
		kept = append(kept, entry)
	}
	return kept
}

// programEnv is the environment of the programs with what the agent has for them: its socket, the notes, and ost on the PATH.
// An empty socket or folder is one that is not there.
func programEnv(env []string, socket, notes, cliDir string) []string {
	const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	path := "PATH=" + usualPath
	var kept []string
	for _, entry := range env {
		if cliDir != "" && strings.HasPrefix(entry, "PATH=") {
			path = entry
			continue
		}
		kept = append(kept, entry)
	}
	if cliDir != "" {
		kept = append(kept, "PATH="+cliDir+":"+strings.TrimPrefix(path, "PATH="))
	}
	if socket != "" {
		kept = append(kept, contract.EnvSocket+"="+socket)
	}
	return append(kept, contract.EnvNotesFile+"="+notes)
}

// fill sets what the environment does not say.
func (c Config) fill() Config {
	if c.Grace <= 0 {
		c.Grace = defaultGrace
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	}
	if c.timing == (timing{}) {
		c.timing = defaultTiming
	}
	if c.uploadTimes == (spool.Times{}) {
		c.uploadTimes = spool.DefaultTimes
	}
	if c.keep == 0 {
		c.keep = 24 * time.Hour
	}
	if c.clean == 0 {
		c.clean = time.Hour
	}
	if c.recheck == 0 {
		c.recheck = time.Minute
	}
	if c.hookWait == 0 {
		c.hookWait = 5 * time.Minute
	}
	return c
}
