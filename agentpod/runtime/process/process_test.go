package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envAsParent makes this test binary run the script in it, as an agent that can be killed.
const envAsParent = "BULLPEN_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if script := os.Getenv(envAsParent); script != "" {
		exit, err := Run(context.Background(), Options{
			Args: []string{"/bin/sh", "-c", script}, Env: os.Environ(), Record: os.Getenv("RECORD"),
		})
		fmt.Println(exit, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const patience = 20 * time.Second

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

// alive says whether the process with the number in a file runs.
func alive(t *testing.T, path string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func written(paths ...string) func() bool {
	return func() bool {
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				return false
			}
		}
		return true
	}
}

// stopOnce stops when a condition holds.
func stopOnce(ctx context.Context, stop func(), holds func() bool) {
	for !holds() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	stop()
}

// children are scripts that start something which tries to outlive the program.
var children = map[string]string{
	"a child in the group":            `sh -c 'echo $$ > child; while :; do sleep 0.01; done' &`,
	"a child that ignores SIGTERM":    `sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 0.01; done' &`,
	"a child in a session of its own": `setsid sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 0.01; done' &`,
	"an orphan in another session":    `(setsid sh -c 'echo $$ > child; while :; do sleep 0.01; done' &);`,
}

func TestNothingOutlivesAProgram(t *testing.T) {
	for name, child := range children {
		t.Run(name+" when the program ends by itself", func(t *testing.T) {
			dir := t.TempDir()
			record := filepath.Join(dir, "record")
			exit, err := Run(t.Context(), Options{
				Args: []string{"/bin/sh", "-c", child + ` until [ -s child ]; do sleep 0.01; done; [ -s record ] && exit 7`},
				Dir:  dir, Env: os.Environ(), Record: record,
			})
			if err != nil || exit.Code != 7 || exit.OK() || exit.String() != "exit status 7" {
				t.Errorf("got %+v, %v", exit, err)
			}
			if alive(t, filepath.Join(dir, "child")) {
				t.Error("the child runs")
			}
			if _, err := os.Stat(record); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the record is still there: %v", err)
			}
		})
		t.Run(name+" when the program is stopped", func(t *testing.T) {
			dir := t.TempDir()
			ctx, stop := context.WithCancel(t.Context())
			go stopOnce(ctx, stop, written(filepath.Join(dir, "child")))
			exit, err := Run(ctx, Options{
				Args: []string{"/bin/sh", "-c", child + ` while :; do sleep 0.01; done`},
				Dir:  dir, Env: os.Environ(), Grace: time.Hour,
			})
			if err != nil || exit.Signal != syscall.SIGTERM || exit.OK() || exit.String() != "killed by signal SIGTERM" {
				t.Errorf("got %+v, %v", exit, err)
			}
			if alive(t, filepath.Join(dir, "child")) {
				t.Error("the child runs")
			}
		})
	}
}

func TestAProgramThatIgnoresSIGTERMIsKilledAfterTheGrace(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	go stopOnce(ctx, stop, written(filepath.Join(dir, "ready")))
	exit, err := Run(ctx, Options{
		Args: []string{"/bin/sh", "-c", `trap "" TERM; echo yes > ready; while :; do sleep 0.01; done`},
		Dir:  dir, Env: os.Environ(), Grace: time.Millisecond,
	})
	if err != nil || exit.Signal != syscall.SIGKILL {
		t.Errorf("got %+v, %v", exit, err)
	}
}

func TestAProgramDiesWithItsAgentAndTheNextLifeEndsTheRest(t *testing.T) {
	for name, child := range children {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			agent := exec.Command(self)
			agent.Dir = dir
			agent.Env = append(os.Environ(), "RECORD="+filepath.Join(dir, "record"),
				envAsParent+"="+child+` echo $$ > program; while :; do sleep 0.01; done`)
			if err := agent.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "all run", written(filepath.Join(dir, "child"), filepath.Join(dir, "program")))
			if err := agent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = agent.Wait()
			eventually(t, "the program is gone", func() bool { return !alive(t, filepath.Join(dir, "program")) })
			if err := EndRecorded(filepath.Join(dir, "record")); err != nil {
				t.Error(err)
			}
			if alive(t, filepath.Join(dir, "child")) {
				t.Error("the child runs")
			}
			if _, err := os.Stat(filepath.Join(dir, "record")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the record is still there: %v", err)
			}
		})
	}
}

func TestOthersAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	record := filepath.Join(dir, "record")
	for _, text := range []string{"", "{", `{"mark":"","group":1}`, fmt.Sprintf(`{"mark":"other","group":%d}`, syscall.Getpgrp())} {
		if err := os.WriteFile(record, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := EndRecorded(record); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := EndRecorded(filepath.Join(dir, "nothing")); err != nil {
		t.Error(err)
	}
}

func TestAProgramThatCannotBeStartedIsAnError(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{nil, {"/no/such/program"}, {dir}} {
		if _, err := Run(t.Context(), Options{Args: args, Record: filepath.Join(dir, "record")}); err == nil {
			t.Errorf("%v was run", args)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("%v left %v", args, left)
		}
	}
}

func TestAProgramWithoutFilesReadsAndWritesNothing(t *testing.T) {
	exit, err := Run(t.Context(), Options{Args: []string{"/bin/sh", "-c", `read line; echo out; echo err >&2; [ -z "$line" ]`}})
	if err != nil || !exit.OK() {
		t.Errorf("got %+v, %v", exit, err)
	}
}
