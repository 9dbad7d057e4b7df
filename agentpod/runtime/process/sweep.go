package process

// This file finds the processes of a program by the mark in their environment.

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// sweepWait is how long killed processes may take to go.
const sweepWait = 5 * time.Second

// sweep kills every process that carries the mark, and the recorded group if one of them is in it. A process can fork
// while it is being looked for, so it looks again until none is left.
func sweep(r record) error {
	deadline := time.Now().Add(sweepWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		pids := marked(r.Mark)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of an ended program do not die", pids)
		}
		for _, pid := range pids {
			if group, err := syscall.Getpgid(pid); err == nil && group == r.Group && group > 1 {
				_ = syscall.Kill(-group, syscall.SIGKILL)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(pause)
	}
}

// marked lists the living processes that carry the mark. A zombie has no environment, so it does not count.
func marked(mark string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	want := []byte(EnvMark + "=" + mark)
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil {
			continue // gone, or someone else's
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if bytes.Equal(variable, want) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
