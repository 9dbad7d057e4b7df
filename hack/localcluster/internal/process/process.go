// Package process starts, finds and ends the programs that a local cluster
// consists of.
//
// Nothing may outlive the cluster, however it ends. Three things see to that:
//
//   - Every program is started with a parent-death signal, so the kernel kills
//     it when localcluster dies.
//   - Every program carries a marker in its environment, which its descendants
//     inherit. Sweep kills all that carry it. That also reaches processes that
//     left their group or lost their parent, as the end of a container's
//     process namespace would.
//   - A keeper (see Keep) sweeps when localcluster itself was killed.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// sweepLimit bounds how long Sweep goes on when killed processes do not go away.
const sweepLimit = 10 * time.Second

// spawnThread hands jobs to one goroutine that never leaves its OS thread. The
// kernel sends the parent-death signal when the thread that forked ends, not
// when the process does, so that thread must live as long as the process.
var spawnThread = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// Start starts cmd in a process group of its own; the kernel kills it when this
// process dies. The caller waits for it as usual.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error, 1)
	spawnThread() <- func() { started <- cmd.Start() }
	return <-started
}

// Find returns the processes whose environment, as it was when they were
// executed, has the entry marker ("NAME=value"). The calling process is left out.
func Find(marker string) []int {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var pids []int
	for _, path := range environs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() || !carries(pid, marker) {
			continue
		}
		pids = append(pids, pid)
	}
	return pids
}

// carries reports whether a live process has the marker. Processes of other
// users and those that ended meanwhile cannot be read and do not.
func carries(pid int, marker string) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == marker {
			return true
		}
	}
	return false
}

// Sweep kills every process that carries marker and returns when none is left.
// It fails if some are still there after ten seconds.
func Sweep(marker string) error {
	deadline := time.Now().Add(sweepLimit)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		pids := Find(marker)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v were killed but do not end; look at them with ps", pids)
		}
		for _, pid := range pids {
			kill(pid, marker)
		}
		time.Sleep(wait)
	}
}

// kill ends one process. The handle is taken before the marker is read again,
// so a pid that was given to another process meanwhile is not hit.
func kill(pid int, marker string) {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if carries(pid, marker) {
		_ = handle.Kill() // It ended by itself: just as well.
	}
}

// StartTime returns when a process was started, in clock ticks since boot.
// Together with the pid it names a process for good. It fails with
// os.ErrNotExist if there is no such process.
func StartTime(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) {
		return 0, os.ErrNotExist
	}
	if err != nil {
		return 0, err
	}
	// The second field is the program's name in parentheses and may hold
	// anything; the third is the state.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("/proc/%d/stat cannot be understood", pid)
	}
	if fields[0] == "Z" {
		return 0, os.ErrNotExist
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
