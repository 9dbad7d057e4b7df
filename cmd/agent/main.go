// Command agent (bullpen-agent) is the process in an agent's pod. It reads its environment, which package contract lists,
// connects to the office and works what it is offered. docs/agent.md describes it.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/bullpen-dev/bullpen/agentpod/agent"
	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/mask"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/claude"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/codex"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/command"
	"github.com/bullpen-dev/bullpen/agentpod/workplace"
)

// version is set by the linker; without that, it is the module's.
var version string

func main() {
	if len(os.Args) > 1 {
		os.Exit(options(os.Args[1:]))
	}
	if os.Getpid() == 1 {
		os.Exit(runAsInit())
	}
	os.Exit(run())
}

// options answers --version, and git, which runs this program when it needs credentials; everything else comes from the environment.
func options(args []string) int {
	switch args[0] {
	case workplace.CommandCredential:
		return workplace.Credential(args[1:], os.Stdin, os.Stdout, os.Stderr)
	case workplace.CommandSSH:
		return workplace.SSH(args[1:], os.Stderr)
	}
	if len(args) == 1 && (args[0] == "--version" || args[0] == "version") {
		fmt.Println("bullpen-agent", versionOf())
		return contract.ExitOK
	}
	fmt.Fprintf(os.Stderr, "bullpen-agent takes no arguments but --version; everything else comes from the environment. Not understood: %q\n", args)
	return contract.ExitConfig
}

func versionOf() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// run is the agent itself.
func run() int {
	form := os.Getenv(contract.EnvLog)
	log := newLog(form, os.Stderr)
	cfg, err := agent.FromEnv(os.Environ())
	if err == nil {
		// What the runtimes' programs write to their standard error is logged, and logs leave the pod too.
		secrets := mask.New(append(cfg.Secrets.Paths[:len(cfg.Secrets.Paths):len(cfg.Secrets.Paths)], cfg.TokenFile), cfg.Secrets.Values, nil)
		log = newLog(form, secrets.Writer(os.Stderr))
		err = chooseRuntime(&cfg, log)
	}
	if err != nil {
		log.Error("the environment is not that of an agent's pod", "error", err)
		return contract.ExitConfig
	}
	cfg.Version, cfg.Log, cfg.CLIDir = versionOf(), log, cliDir()

	// The first signal asks the agent to hand back and end, a second one to end at once.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	drain := make(chan struct{})
	ctx, now := context.WithCancel(context.Background())
	defer now()
	go func() {
		<-signals
		close(drain)
		<-signals
		log.Warn("a second signal: ending at once")
		now()
	}()
	if err := agent.Run(ctx, cfg, drain); err != nil {
		log.Error("the agent cannot work", "error", err)
		return contract.ExitError
	}
	log.Info("the agent has ended")
	return contract.ExitOK
}

// cliDir is the folder of ost, if that stands beside this program; empty if not.
func cliDir() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return cliBeside(self)
}

func cliBeside(program string) string {
	dir := filepath.Dir(program)
	if info, err := os.Stat(filepath.Join(dir, contract.CLIName)); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return dir
}

// newLog writes to w: JSON, or with form "text" lines to read.
func newLog(form string, w io.Writer) *slog.Logger {
	if form == "text" {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}

// chooseRuntime sets the runtime that the environment names.
func chooseRuntime(cfg *agent.Config, log *slog.Logger) error {
	switch cfg.RuntimeName {
	case command.Name:
		if len(cfg.Command) == 0 {
			return fmt.Errorf(`%s is not set; the runtime %s needs a program, such as ["python3","work.py"]`,
				contract.EnvCommand, command.Name)
		}
		cfg.Runtime = &command.Command{Args: cfg.Command, Grace: cfg.ProgramGrace(), Log: log}
		return nil
	case claude.Name:
		cfg.Runtime = &claude.Claude{Home: cfg.Home, Env: cfg.Env, Log: log}
		return nil
	case codex.Name:
		cfg.Runtime = &codex.Codex{Env: cfg.Env, Grace: cfg.ProgramGrace(), Version: versionOf(), Log: log}
		return nil
	default:
		return fmt.Errorf("%s is %q; this agent has the runtimes %s", contract.EnvRuntime, cfg.RuntimeName,
			strings.Join([]string{command.Name, claude.Name, codex.Name}, ", "))
	}
}
