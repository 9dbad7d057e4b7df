package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestSweepEndsAllThatCarryTheMarkerAndNothingElse(t *testing.T) {
	marker := fmt.Sprintf("LOCALCLUSTER_TEST=%d-%s", os.Getpid(), t.Name())
	marked := exec.Command("sh", "-c", "sleep 1000 & setsid sleep 1000 & wait")
	marked.Env = append(os.Environ(), marker)
	other := exec.Command("sleep", "1000")
	other.Env = append(os.Environ(), marker+"-not")
	for _, cmd := range []*exec.Cmd{marked, other} {
		if err := Start(cmd); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- marked.Wait() }()
	if err := Sweep(marker); err != nil {
		t.Fatal(err)
	}
	<-ended
	if left := Find(marker); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, err := StartTime(other.Process.Pid); err != nil {
		t.Errorf("a process without the marker was ended: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait() // It was killed.
}

func TestKeepSweepsWhenTheGuardedProcessIsGone(t *testing.T) {
	marker := fmt.Sprintf("LOCALCLUSTER_TEST=%d-%s", os.Getpid(), t.Name())
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), marker)
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// A reader at its end is a pipe whose other end is gone.
	if err := Keep(strings.NewReader(""), marker); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the marked process ended by itself, want it killed")
	}
}

func TestStartTimeTellsProcessesApart(t *testing.T) {
	own, err := StartTime(os.Getpid())
	if err != nil || own == 0 {
		t.Fatalf("StartTime of this process = %d, %v", own, err)
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := StartTime(cmd.Process.Pid); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("StartTime of a process that ended: %v, want os.ErrNotExist", err)
	}
}
