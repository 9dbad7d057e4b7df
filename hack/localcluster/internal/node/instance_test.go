package node

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utilexec "k8s.io/utils/exec"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/process"
)

// shell is a plan that runs a shell script.
func shell(t *testing.T, script string) plan {
	t.Helper()
	id := newContainerID()
	return plan{
		id: id, command: []string{"sh", "-c", script}, dir: t.TempDir(),
		env:     []string{"PATH=" + os.Getenv("PATH"), containerVariable + "=" + id, "GREETING=hello"},
		logPath: filepath.Join(t.TempDir(), "0.log"),
	}
}

// finish waits for the end of an instance.
func finish(t *testing.T, i *instance) {
	t.Helper()
	select {
	case <-i.exited:
	case <-time.After(time.Minute):
		t.Fatal("the container does not end")
	}
}

func TestInstanceExitCode(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   int32
	}{
		"success":                 {"exit 0", 0},
		"its own code":            {"exit 7", 7},
		"128 and the signal":      {"kill -KILL $$", 137},
		"128 and another signal":  {"kill -TERM $$", 143},
		"a signal that it caught": {"trap 'exit 3' TERM; kill -TERM $$", 3},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := shell(t, test.script).start()
			if err != nil {
				t.Fatal(err)
			}
			finish(t, i)
			if i.exitCode != test.want {
				t.Errorf("exit code %d, want %d", i.exitCode, test.want)
			}
		})
	}
}

func TestInstanceEndsWhatItsMainProcessLeftBehind(t *testing.T) {
	// One child in the group, one in a session of its own without a parent.
	i, err := shell(t, "sleep 1000 & setsid sleep 1000 & exit 0").start()
	if err != nil {
		t.Fatal(err)
	}
	finish(t, i)
	if left := process.Find(containerVariable + "=" + i.id); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestInstanceLogsLinesWithStreamAndTime(t *testing.T) {
	i, err := shell(t, "echo $GREETING; echo oops >&2; printf 'no newline'").start()
	if err != nil {
		t.Fatal(err)
	}
	finish(t, i)
	log, err := os.ReadFile(i.logPath)
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z (stdout|stderr) F (.*)$`)
	got := map[string][]string{}
	for line := range strings.Lines(string(log)) {
		fields := entry.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if fields == nil {
			t.Fatalf("log line %q is not in a kubelet's format", line)
		}
		got[fields[1]] = append(got[fields[1]], fields[2])
	}
	if diff := cmp.Diff(map[string][]string{"stdout": {"hello", "no newline"}, "stderr": {"oops"}}, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestInstanceThatCannotStartSaysWhy(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ program, want string }{
		"a name that is in no folder of PATH": {"no-such-program", `exec: "no-such-program": executable file not found in $PATH`},
		"a path where nothing is":             {"/no/such", `exec: "/no/such": stat /no/such: no such file or directory`},
		"a file that is no program":           {plain, `permission denied`},
		"a folder":                            {"/tmp", `is a directory`},
	} {
		t.Run(name, func(t *testing.T) {
			planned := shell(t, "")
			planned.command = []string{test.program}
			if _, err := planned.start(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestExecRunsBesideTheMainProcess(t *testing.T) {
	i, err := shell(t, "sleep 1000").start()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	err = i.exec(context.Background(), []string{"sh", "-c", "cat; echo $GREETING; echo oops >&2; exit 5"}, strings.NewReader("input "), &stdout, &stderr)
	var exit utilexec.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 5 {
		t.Errorf("error %v, want exit status 5", err)
	}
	if diff := cmp.Diff([]string{"input hello\n", "oops\n"}, []string{stdout.String(), stderr.String()}); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if err := i.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	finish(t, i)
}
