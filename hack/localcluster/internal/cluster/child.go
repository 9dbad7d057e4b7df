package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/process"
)

// stopLimit is how long a program of the control plane gets to stop by itself.
// What it would still do is of no use: its state goes with it.
const stopLimit = 3 * time.Second

// A child is a running program of the control plane.
type child struct {
	name, log string
	cmd       *exec.Cmd
	// done is closed when the program has ended; err may be read then.
	done chan struct{}
	err  error
}

// startChild runs a program with its output in a log file.
func startChild(bin, log, marker string, args []string) (*child, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Env = append(os.Environ(), marker)
	c := &child{name: filepath.Base(bin), log: log, cmd: cmd, done: make(chan struct{})}
	if err := process.Start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// failure describes how a program that should run has ended, with the end of
// its log.
func (c *child) failure() error {
	return fmt.Errorf("%s ended: %w; the end of %s:\n%s", c.name, errOrExit(c.err), c.log, tail(c.log, 15))
}

// stop ends the program, gently at first, and waits for it.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // It may have ended already.
	select {
	case <-c.done:
		return
	case <-time.After(stopLimit):
	}
	_ = c.cmd.Process.Kill()
	<-c.done
}

// waitFor calls probe until it succeeds. It gives up when ctx ends or the
// program does.
func (c *child) waitFor(ctx context.Context, probe func(context.Context) error) error {
	var last error
	for {
		if last = probe(ctx); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; see %s", c.name, last, c.log)
		case <-c.done:
			return c.failure()
		case <-time.After(25 * time.Millisecond):
		}
	}
}

func errOrExit(err error) error {
	if err == nil {
		return fmt.Errorf("exit status 0")
	}
	return err
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
