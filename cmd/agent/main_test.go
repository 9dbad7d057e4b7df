package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
)

// envRole makes this test binary the agent, or plays process 1 and its child.
const envRole = "BULLPEN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "agent":
		os.Args = append(os.Args[:1], strings.Fields(os.Getenv("ARGS"))...)
		main()
	case "init":
		// Orphans come to this process, as to process 1 of a container.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			panic(err)
		}
		if err := os.Setenv(envRole, os.Getenv("CHILD")); err != nil {
			panic(err)
		}
		os.Exit(runAsInit())
	case "orphans":
		os.Exit(makeOrphans())
	case "signaled":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		fmt.Println("ready")
		<-signals
		os.Exit(9)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	default:
		os.Exit(m.Run())
	}
}

// makeOrphans leaves children without a parent and ends once each is gone, also as a zombie.
func makeOrphans() int {
	for range 5 {
		out, err := exec.Command("/bin/sh", "-c", "sleep 0.01 >/dev/null & echo $!").Output()
		if err != nil {
			return 1
		}
		orphan := "/proc/" + strings.TrimSpace(string(out))
		for {
			if _, err := os.Stat(orphan); errors.Is(err, os.ErrNotExist) {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return 7
}

// again runs this binary in a role.
func again(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	return cmd
}

func TestProcessOneReapsOrphansAndPassesTheEndOn(t *testing.T) {
	for name, test := range map[string]struct {
		child string
		want  int
	}{
		"an agent with orphans":   {"orphans", 7},
		"an agent that is killed": {"killed", 128 + 9},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := again(t, envRole+"=init", "CHILD="+test.child)
			err := cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != test.want {
				t.Errorf("exit code %d, want %d (%v)", got, test.want, err)
			}
		})
	}
}

func TestProcessOnePassesSignalsOn(t *testing.T) {
	cmd := again(t, envRole+"=init", "CHILD=signaled")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := out.Read(line); err != nil || string(line) != "ready\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 9 {
		t.Errorf("exit code %d", got)
	}
}

func TestExitCodesAndTheirWords(t *testing.T) {
	home := t.TempDir()
	pod := []string{
		"HOME=" + home, "BULLPEN_OFFICE_URL=http://127.0.0.1:1", "BULLPEN_NAMESPACE=demo", "BULLPEN_TEAM=web",
		"BULLPEN_PERSON=ada", "BULLPEN_TOKEN_FILE=/none", "BULLPEN_RUNTIME=command", `BULLPEN_COMMAND=["true"]`,
	}
	for name, test := range map[string]struct {
		env   []string
		code  int
		words string
	}{
		"its version":           {[]string{"ARGS=--version"}, contract.ExitOK, "bullpen-agent "},
		"an argument":           {[]string{"ARGS=--help me"}, contract.ExitConfig, "takes no arguments but --version"},
		"no environment":        {nil, contract.ExitConfig, "BULLPEN_PERSON is not set"},
		"an unknown runtime":    {append(pod, "BULLPEN_RUNTIME=abacus"), contract.ExitConfig, `BULLPEN_RUNTIME is \"abacus\"`},
		"a missing program":     {append(pod, "BULLPEN_COMMAND="), contract.ExitConfig, "BULLPEN_COMMAND is not set"},
		"a home that is a file": {append(pod, "HOME=/dev/null"), contract.ExitError, "the home cannot be used"},
		"no secret in its log": {
			append(pod, "API_TOKEN=hunter2-hunter2", "BULLPEN_SECRET_VARS=API_TOKEN", "BULLPEN_RUNTIME=hunter2-hunter2"),
			contract.ExitConfig, `BULLPEN_RUNTIME is \"***\"`,
		},
		"its log as text": {append(pod, "HOME=/dev/null", "BULLPEN_LOG=text"), contract.ExitError, `level=ERROR msg="the agent cannot work"`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := again(t, append([]string{envRole + "=agent"}, test.env...)...)
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			err := cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != test.code || !strings.Contains(said.String(), test.words) {
				t.Errorf("exit code %d (%v), said %s", got, err, said.String())
			}
		})
	}
}

func TestProgramsGetOstWhereItStandsBesideTheAgent(t *testing.T) {
	dir := t.TempDir()
	agent, cli := filepath.Join(dir, "bullpen-agent"), filepath.Join(dir, contract.CLIName)
	if got := cliBeside(agent); got != "" {
		t.Errorf("without ost: %q", got)
	}
	if err := os.Mkdir(cli, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := cliBeside(agent); got != "" {
		t.Errorf("a folder is no command: %q", got)
	}
	if err := errors.Join(os.Remove(cli), os.WriteFile(cli, nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	if got := cliBeside(agent); got != dir {
		t.Errorf("got %q, want %q", got, dir)
	}
}

func TestSIGTERMEndsAnAgentThatNeverReachedItsOffice(t *testing.T) {
	cmd := again(t, envRole+"=agent", "HOME="+t.TempDir(), "BULLPEN_OFFICE_URL=http://127.0.0.1:1", "BULLPEN_NAMESPACE=demo",
		"BULLPEN_TEAM=web", "BULLPEN_PERSON=ada", "BULLPEN_TOKEN_FILE=/none", "BULLPEN_RUNTIME=command", `BULLPEN_COMMAND=["true"]`)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Read(make([]byte, 1)); err != nil { // it runs: its first try has failed
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	_, _ = rest.ReadFrom(log)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, rest.String())
	}
}
