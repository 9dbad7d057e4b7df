// Package mainline tests the whole main line as users run it: kubectl apply, the real manager, a real control plane with
// scheduler and controllers, and agents in pods, which the local cluster's node runs as processes of this machine.
//
// One cluster serves all tests. Each test has a namespace and a manager of its own, so that managers can be killed side by
// side. The agents run testdata/worker, whose notes say what really happened (notes_test.go). Nothing listens but on loopback,
// and nothing is left: no process, no folder, also after a failure or an interrupt.
package mainline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// cluster is the one that all tests share.
var cluster *testCluster

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	// These tests wait far more than they compute.
	parallel := false
	flag.Visit(func(f *flag.Flag) { parallel = parallel || f.Name == "test.parallel" })
	if !parallel {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := startCluster(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the local cluster for the tests does not start:", err)
		return 1
	}
	cluster = c
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	select {
	case code = <-ended:
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr, "interrupted: the cluster of the tests is stopped")
		code = 1
	}
	if err := c.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the local cluster of the tests does not stop as it should:", err)
		code = 1
	}
	return code
}

// eventually calls check until it gives nil, and fails the test with its last error if that takes longer than limit.
func eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	if err := poll(t.Context(), limit, check); err != nil {
		t.Fatalf("after %s: %v", limit, err)
	}
}

// soon bounds what should happen at once, on a machine that may be busy.
const soon = 60 * time.Second

// poll calls check until it gives nil, and gives its last error when ctx ends or the limit is over.
func poll(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// moduleRoot is the folder of the nearest go.mod above the package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("there is no go.mod above the working directory: run the tests from within the repository")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
