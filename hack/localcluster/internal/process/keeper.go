package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// A Keeper is a small process beside localcluster that sweeps when localcluster
// is gone, even if it was killed.
type Keeper struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

// StartKeeper runs this program once more as the keeper of marker. args are the
// arguments that make it call Keep.
func StartKeeper(args ...string) (*Keeper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	// A group of its own, so that Ctrl-C in a terminal does not end it first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the keeper process: %w", err)
	}
	return &Keeper{cmd: cmd, pipe: pipe}, nil
}

// Dismiss makes the keeper sweep now and waits until it has.
func (k *Keeper) Dismiss() error {
	if err := k.pipe.Close(); err != nil {
		return err
	}
	return k.cmd.Wait()
}

// Keep blocks until alive, the other end of which the guarded process holds,
// is closed; then it sweeps marker.
func Keep(alive io.Reader, marker string) error {
	// What ends the read does not matter: the guarded process is gone.
	_, _ = io.Copy(io.Discard, alive)
	return Sweep(marker)
}
