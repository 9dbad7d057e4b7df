package main

// This file is for containers, where the agent is process 1: orphans of its programs become its children, and somebody has
// to reap them. To do that beside exec.Cmd's own waits in one process is hard to get right; so process 1 only reaps and passes
// signals on, and the agent is its child.

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
)

// runAsInit starts this program again, reaps until that child has ended, and returns its exit code.
func runAsInit() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bullpen-agent: cannot find its own file:", err)
		return contract.ExitError
	}
	child, err := os.StartProcess(self, os.Args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bullpen-agent: cannot start itself:", err)
		return contract.ExitError
	}
	pid := child.Pid
	go func() {
		for s := range signals {
			// By number: reap takes the child away behind the back of os.Process. Until it does, the number is the child's,
			// and after it this process ends.
			_ = syscall.Kill(pid, s.(syscall.Signal))
		}
	}()
	return reap(pid)
}

// reap waits for every child until the one that matters has ended, and returns its exit code as a shell gives it.
func reap(pid int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			fmt.Fprintln(os.Stderr, "bullpen-agent: cannot wait for the agent:", err)
			return contract.ExitError
		case ended != pid:
		case status.Signaled():
			return 128 + int(status.Signal())
		case status.Exited():
			return status.ExitStatus()
		}
	}
}
