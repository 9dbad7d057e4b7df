package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const pollInterval = 50 * time.Millisecond

// Detach starts this program once more with args, apart from the terminal, and
// returns when the cluster it runs is ready. Its output goes to a log file in the
// state folder and, until then, to out. If a cluster already runs in the folder,
// Detach only waits until that one is ready. If ctx ends before, the start is
// called off.
func Detach(ctx context.Context, dir string, args []string, out io.Writer) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	s := state(absolute)
	err = s.clear()
	if errors.Is(err, errRunning) {
		return attach(ctx, s, out)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.upLog()), 0o700); err != nil {
		return err
	}
	log, err := os.Create(s.upLog())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return follow(ctx, s, cmd.Process, ended, out)
}

// follow copies the log of a cluster that starts to out until it is ready.
func follow(ctx context.Context, s state, started *os.Process, ended <-chan error, out io.Writer) error {
	shown := 0
	for {
		// The log of a start is a few lines.
		log, err := os.ReadFile(s.upLog())
		if err != nil {
			return err
		}
		if _, err := out.Write(log[shown:]); err != nil {
			return err
		}
		shown = len(log)
		if isReady(log) {
			return nil
		}
		select {
		case <-time.After(pollInterval):
		case err := <-ended:
			return fmt.Errorf("the cluster did not start: %w; see %s", errOrExit(err), s.upLog())
		case <-ctx.Done():
			_ = started.Signal(syscall.SIGTERM)
			return errors.Join(ctx.Err(), <-ended)
		}
	}
}

// isReady reports whether a log has the line that says so, whole.
func isReady(log []byte) bool {
	_, line, found := bytes.Cut(append([]byte("\n"), log...), []byte("\nready "))
	return found && bytes.ContainsRune(line, '\n')
}

// attach waits until the cluster that another process started is ready.
func attach(ctx context.Context, s state, out io.Writer) error {
	for !s.hasKubeconfig() {
		id, err := s.read()
		if err != nil || !id.alive() {
			return fmt.Errorf("the cluster that started in %s ended before it was ready; see %s", s, s.upLog())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
	_, err := fmt.Fprintf(out, "already running\nready %s\n", s.kubeconfig())
	return err
}

// hasKubeconfig reports whether the kubeconfig is there, which is written last.
func (s state) hasKubeconfig() bool {
	_, err := os.Stat(s.kubeconfig())
	return err == nil
}

// Down stops the cluster of a state folder, waits at most limit for its pods
// and programs to end, kills what is left, and removes the folder. It returns
// nil if there is no such folder.
func Down(dir string, limit time.Duration) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	s := state(absolute)
	id, err := s.read()
	if errors.Is(err, fs.ErrNotExist) {
		// It is not there, or a start failed before it was claimed.
		if err := s.mustBeEmpty(); err != nil {
			return err
		}
		return os.RemoveAll(absolute)
	}
	if err != nil {
		return err
	}
	if err := end(id, limit); err != nil {
		return err
	}
	return s.remove(id)
}

// end asks the process that serves the cluster to stop and kills it if it takes
// too long. Its keeper, or the caller's sweep, ends the others then.
func end(id identity, limit time.Duration) error {
	serving, err := os.FindProcess(id.PID)
	if err != nil {
		return err
	}
	defer func() { _ = serving.Release() }()
	// The handle was taken first: if this still is the process that wrote the
	// identity, the signal cannot reach another one.
	if !id.alive() {
		return nil
	}
	if err := serving.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", id.PID, err)
	}
	deadline := time.Now().Add(limit)
	for id.alive() {
		if time.Now().After(deadline) {
			if err := serving.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
		}
		time.Sleep(pollInterval)
	}
	return nil
}
