package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/process"
)

// containerVariable marks all processes of one container.
const containerVariable = "LOCALCLUSTER_CONTAINER"

// drainLimit is how long output may come after all processes have ended. Only a
// process that hid its marker can hold the stream open.
const drainLimit = time.Second

// A plan is what it takes to start a container.
type plan struct {
	id      string
	command []string
	env     []string
	dir     string
	logPath string
	// paths translates further commands that run in the container.
	paths translator
}

// An instance is one run of a container.
type instance struct {
	plan
	cmd       *exec.Cmd
	startedAt time.Time
	// exited is closed when all its processes are gone; exitCode and finishedAt
	// may be read then.
	exited     chan struct{}
	exitCode   int32
	finishedAt time.Time
}

// start runs a plan. An error says, in a container runtime's words, why it cannot.
func (p plan) start() (*instance, error) {
	log, err := createLog(p.logPath)
	if err != nil {
		return nil, err
	}
	cmd, err := p.build(p.command)
	if err != nil {
		log.close()
		return nil, err
	}
	streams, drained, err := connect(cmd, log)
	if err != nil {
		log.close()
		return nil, err
	}
	i := &instance{plan: p, cmd: cmd, startedAt: time.Now(), exited: make(chan struct{})}
	err = process.Start(cmd)
	for _, stream := range streams.children {
		_ = stream.Close()
	}
	if err != nil {
		<-drained
		streams.close()
		log.close()
		return nil, fmt.Errorf("failed to start container process: %w", err)
	}
	go i.reap(streams, drained, log)
	return i, nil
}

// reap waits for the main process, ends what it left behind, and keeps the last
// of its output.
func (i *instance) reap(streams *streams, drained <-chan struct{}, log *logFile) {
	_ = i.cmd.Wait() // How it ended is in ProcessState.
	i.finishedAt = time.Now()
	i.exitCode = exitCode(i.cmd.ProcessState)
	if err := process.Sweep(containerVariable + "=" + i.id); err != nil {
		klog.ErrorS(err, "Processes of a container are left", "container", i.id)
	}
	select {
	case <-drained:
	case <-time.After(drainLimit):
	}
	streams.close()
	<-drained
	log.close()
	close(i.exited)
}

// build makes the command of one of the container's processes.
func (p plan) build(words []string) (*exec.Cmd, error) {
	path, err := lookPath(words[0], p.env)
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: path, Args: words, Env: p.env, Dir: p.dir}, nil
}

// exitCode is a process's exit code, or 128 and the signal that killed it.
func exitCode(state *os.ProcessState) int32 {
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(state.ExitCode())
}

// streams are the ends of a process's output.
type streams struct {
	// children are the ends that the process gets.
	children []*os.File
	own      []*os.File
	once     sync.Once
}

func (s *streams) close() {
	s.once.Do(func() {
		for _, file := range s.own {
			_ = file.Close()
		}
	})
}

// connect sends a process's output to a log. drained is closed when both streams
// have ended.
func connect(cmd *exec.Cmd, log *logFile) (*streams, <-chan struct{}, error) {
	s := &streams{}
	var copying sync.WaitGroup
	for _, name := range []string{"stdout", "stderr"} {
		read, write, err := os.Pipe()
		if err != nil {
			s.close()
			for _, child := range s.children {
				_ = child.Close()
			}
			return nil, nil, err
		}
		s.own, s.children = append(s.own, read), append(s.children, write)
		copying.Go(func() { log.copy(name, read) })
	}
	cmd.Stdout, cmd.Stderr = s.children[0], s.children[1]
	drained := make(chan struct{})
	go func() {
		copying.Wait()
		close(drained)
	}()
	return s, drained, nil
}

// lookPath finds a program as the container would: by its path, or in the PATH of
// its environment.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("exec: %q: stat %s: no such file or directory", name, name)
		case err != nil:
			return "", fmt.Errorf("exec: %q: %w", name, err)
		case info.IsDir():
			return "", fmt.Errorf("exec: %q: is a directory", name)
		case info.Mode()&0o111 == 0:
			return "", fmt.Errorf("exec: %q: permission denied", name)
		}
		return name, nil
	}
	for _, entry := range env {
		path, isPath := strings.CutPrefix(entry, "PATH=")
		if !isPath {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			candidate := filepath.Join(dir, name)
			if info, err := os.Stat(candidate); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return candidate, nil
			}
		}
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", name)
}
