// Package process runs the programs of a runtime so that none of them outlives its round.
//
// A program runs in a process group of its own and dies with the agent (the kernel kills it when the agent is killed).
// Whatever it started carries a mark in its environment, so that children that left the group are found too: at the end of
// the program, and by the agent's next life, which reads the mark from a record in the home. It is for Linux.
package process

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
)

// EnvMark is the environment variable that every process of a program inherits.
const EnvMark = "BULLPEN_RUN"

// Options say what to run.
type Options struct {
	// Args is the program and its arguments. Relative names are searched in PATH.
	Args []string
	Dir  string
	Env  []string
	// Stdin, Stdout and Stderr are the program's own files; nil is /dev/null.
	Stdin, Stdout, Stderr *os.File
	// Record is the file in which the program is noted while it runs, for EndRecorded. Empty notes nothing.
	Record string
	// Grace is how long the program may take to end after SIGTERM before it is killed.
	Grace time.Duration
	// Begun, where it is set, is called once the program runs.
	Begun func()
}

// Exit is how a program ended.
type Exit struct {
	// Code is the exit status; -1 after a signal.
	Code int
	// Signal that ended the program, or 0.
	Signal syscall.Signal
}

// String says how the program ended, for people.
func (e Exit) String() string {
	if e.Signal != 0 {
		return "killed by signal " + unix.SignalName(e.Signal)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// OK says whether the program ended well.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == 0 }

// record is what EndRecorded needs to know.
type record struct {
	Mark  string `json:"mark"`
	Group int    `json:"group"`
}

// Run runs a program until it ends, or until ctx does: then its group gets SIGTERM, and after the grace SIGKILL. When Run
// returns, no process of the program is left. The error means that it could not be started or watched.
func Run(ctx context.Context, o Options) (Exit, error) {
	if len(o.Args) == 0 {
		return Exit{}, errors.New("there is no program to run")
	}
	type outcome struct {
		exit Exit
		err  error
	}
	ended := make(chan outcome, 1)
	// The kernel takes the death of the thread that started a child for the death of its parent, so this thread has
	// to live as long as the program. A goroutine that is locked to it and blocks until the end sees to that.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		exit, err := run(ctx, o)
		ended <- outcome{exit, err}
	}()
	end := <-ended
	return end.exit, end.err
}

func run(ctx context.Context, o Options) (Exit, error) {
	mark := rand.Text()
	cmd := exec.Command(o.Args[0], o.Args[1:]...)
	cmd.Dir = o.Dir
	cmd.Env = append(o.Env[:len(o.Env):len(o.Env)], EnvMark+"="+mark)
	// A typed nil in an interface would not be nil to exec.
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	if o.Stdout != nil {
		cmd.Stdout = o.Stdout
	}
	if o.Stderr != nil {
		cmd.Stderr = o.Stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// The mark is noted before the program starts: a crash between the two must not leave an unknown program behind.
	if err := note(o.Record, record{Mark: mark}); err != nil {
		return Exit{}, err
	}
	if err := cmd.Start(); err != nil {
		return Exit{}, errors.Join(fmt.Errorf("%s cannot be started: %w", o.Args[0], err), forget(o.Record))
	}
	noted := note(o.Record, record{Mark: mark, Group: cmd.Process.Pid})
	if o.Begun != nil {
		o.Begun()
	}

	done := make(chan struct{})
	go stopWhenDone(ctx, cmd.Process.Pid, o.Grace, done)
	exit, err := wait(cmd)
	close(done)
	sweepErr := sweep(record{Mark: mark})
	if sweepErr == nil {
		sweepErr = forget(o.Record)
	}
	return exit, errors.Join(err, noted, sweepErr)
}

// stopWhenDone ends the group when ctx ends, unless the program ended before.
func stopWhenDone(ctx context.Context, group int, grace time.Duration, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}

// wait waits for the program, kills the rest of its group while the program's own entry still holds the group's number,
// and only then lets go of that number.
func wait(cmd *exec.Cmd) (Exit, error) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			break
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	err := cmd.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return Exit{}, fmt.Errorf("waiting for %s: %w", cmd.Path, err)
	}
	exit := Exit{Code: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal()
	}
	return exit, nil
}

// EndRecorded kills what is left of the program that a record notes, waits until it is gone and removes the record. A
// record that is not there, or is not one, notes nothing.
func EndRecorded(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var r record
	if json.Unmarshal(data, &r) == nil && r.Mark != "" {
		if err := sweep(r); err != nil {
			return err
		}
	}
	return forget(path)
}

// note writes a record so that it is there whole or not at all. A crash of the machine ends the program too, so there is
// no need to wait for the disk.
func note(path string, r record) error {
	if path == "" {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return disk.Swap(path, data)
}

func forget(path string) error {
	if path == "" {
		return nil
	}
	return disk.Remove(path)
}
