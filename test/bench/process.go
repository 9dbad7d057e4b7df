package main

// This file runs programs beside the benchmark, and reads what the kernel knows of a process.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// graceful is how long a program may take to end after SIGTERM.
const graceful = 20 * time.Second

// program is a running child.
type program struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// run starts a program whose output goes to out. It ends with ctx, or by stop.
func run(ctx context.Context, out io.Writer, env []string, path string, args ...string) (*program, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = graceful
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	p := &program{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended matters only while somebody waits for it to become ready
	}()
	return p, nil
}

// stop ends the program, and waits for that.
func (p *program) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case <-p.done:
		return err
	case <-time.After(graceful):
		return errors.Join(err, p.cmd.Process.Kill())
	}
}

// await tries until it succeeds, the program ends, or ctx does.
func (p *program) await(ctx context.Context, what string, try func() error) error {
	var last error // says more than that the time is over
	for {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s: %s ended: %s", what, p.cmd.Path, p.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), last))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// resident is how much memory of this process is in RAM, in bytes.
func resident() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("memory is read from /proc, which Linux has: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/self/statm is %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// peak is the most memory of this process that was in RAM since forgetPeak, in bytes.
func peak() (int64, error) {
	var kib int64
	if _, err := fmt.Sscanf(field("/proc/self/status", "VmHWM"), "%d kB", &kib); err != nil {
		return 0, fmt.Errorf("VmHWM of /proc/self/status: %w", err)
	}
	return kib << 10, nil
}

// forgetPeak has the kernel begin a new peak at what is in RAM now.
func forgetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// processorTime is how long a process has used processors, of all cores together.
func processorTime(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("processor time is read from /proc, which Linux has: %w", err)
	}
	// The second field is the program's name, in brackets; user and system time are the 14th and the 15th, in hundredths of a second.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s is %q", path, text)
	}
	user, badUser := strconv.ParseInt(fields[11], 10, 64)
	system, badSystem := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(badUser, badSystem)
}
