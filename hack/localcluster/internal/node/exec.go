package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	utilexec "k8s.io/utils/exec"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/process"
)

// runInContainer serves kubectl exec. There is no terminal: with -t, a program
// gets plain streams.
func (n *Node) runInContainer(ctx context.Context, namespace, pod, name string, words []string, attach api.AttachIO) error {
	w := n.find(namespace, pod)
	if w == nil {
		return errdefs.NotFoundf("pod %s/%s is not on this node", namespace, pod)
	}
	c := w.container(name)
	if c == nil {
		return errdefs.NotFoundf("pod %s/%s has no container %s", namespace, pod, name)
	}
	i := c.running()
	if i == nil {
		return errdefs.InvalidInputf("container %s of pod %s/%s is not running", name, namespace, pod)
	}
	stderr := attach.Stderr()
	if attach.TTY() || stderr == nil {
		stderr = attach.Stdout() // A terminal has one stream.
	}
	return i.exec(ctx, words, attach.Stdin(), writerOrDiscard(attach.Stdout()), writerOrDiscard(stderr))
}

// exec runs a command beside the main process until it ends or ctx does. The
// error of one that failed has its exit code, see utilexec.ExitError.
func (i *instance) exec(ctx context.Context, words []string, stdin io.Reader, stdout, stderr io.Writer) error {
	cmd, err := i.build(i.paths.arguments(words))
	if err != nil {
		return utilexec.CodeExitError{Err: err, Code: 127}
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// Something left behind may hold the streams open.
	cmd.WaitDelay = time.Second
	if stdin != nil {
		// A pipe of our own: waiting for the command must not wait for its input.
		pipe, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(pipe, stdin) // The command may end before its input does.
			_ = pipe.Close()
		}()
	}
	if err := process.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", words[0], err)
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: int(exitCode(exit.ProcessState))}
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

func writerOrDiscard(w io.WriteCloser) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
