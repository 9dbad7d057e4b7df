package main

// This file starts what the demo runs on, and stops it.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// agentImage is the name under which the cluster's node finds the agent's folder.
const agentImage = "bullpen.dev/agent:demo"

// project is what the team works on: a small Go module with a test.
var project = map[string]string{
	"go.mod": "module example.com/greeter\n\ngo 1.24\n",
	"greet.go": `// Package greeter greets people.
package greeter

var greetings = map[string]string{"en": "Hello"}

// Greet greets somebody in a language; in English where it knows no better.
func Greet(lang, name string) string {
	greeting, ok := greetings[lang]
	if !ok {
		greeting = greetings["en"]
	}
	return greeting + ", " + name + "!"
}
`,
	"greet_test.go": `package greeter

import "testing"

func TestEnglish(t *testing.T) {
	if got := Greet("en", "Ada"); got != "Hello, Ada!" {
		t.Errorf("got %q", got)
	}
}
`,
	"README.md": "# Greeter\n\nGreets people.\n",
}

// makeRepository makes the repository anew: a bare one with one commit on main.
func (d *demo) makeRepository(ctx context.Context) error {
	for _, path := range []string{d.repository(), filepath.Join(d.dir, "seed")} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	seed := filepath.Join(d.dir, "seed")
	if err := os.MkdirAll(seed, 0o755); err != nil {
		return err
	}
	for name, text := range project {
		if err := os.WriteFile(filepath.Join(seed, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=grace", "-c", "user.email=grace@demo.invalid", "commit", "-qm", "Greet people in English"},
		{"clone", "-q", "--bare", seed, d.repository()},
	} {
		if err := d.quiet(ctx, "git", append([]string{"-C", seed}, args...)...); err != nil {
			return err
		}
	}
	return os.RemoveAll(seed)
}

// startCluster starts the local cluster, or takes the one that an earlier demo left running.
func (d *demo) startCluster(ctx context.Context) error {
	if d.quiet(ctx, d.kubectl(), "--kubeconfig", d.kubeconfig(), "--request-timeout=2s", "get", "--raw", "/readyz") == nil {
		return nil
	}
	_ = d.stopManager()
	image := filepath.Join(d.dir, "image")
	if err := d.makeImage(image); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, d.localcluster, "up", "--detach", "--bin", d.kubernetes, "--state", filepath.Join(d.dir, "cluster"),
		"--image", agentImage+"="+image, "--pass-env", "DEMO_REPOSITORY", "--pass-env", "GOCACHE", "--pass-env", "GOFLAGS", "--pass-env", "GOPROXY", "--pass-env", "CGO_ENABLED")
	goCache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOCACHE: %w", err)
	}
	// The agents build with the machine's build cache and with the flags that filled it, and fetch nothing.
	cmd.Env = append(os.Environ(), "DEMO_REPOSITORY="+d.repository(), "GOCACHE="+strings.TrimSpace(string(goCache)),
		"GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0", "GOPROXY=off")
	return loud(cmd)
}

// makeImage lays out the agent's image as a folder.
func (d *demo) makeImage(image string) error {
	programs := filepath.Join(image, "usr", "local", "bin")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"bullpen-agent", "ost", "demo-worker"} {
		target := filepath.Join(programs, name)
		if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.Link(filepath.Join(d.bin, name), target); err == nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(d.bin, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) installCRDs(ctx context.Context) error {
	if err := d.kube(ctx, "apply", "--server-side", "-f", "config/crd/bases"); err != nil {
		return err
	}
	return d.kube(ctx, "wait", "--for=condition=Established", "--timeout=30s", "-f", "config/crd/bases")
}

// startManager starts the manager as a process of its own, in place of the one of an earlier demo.
func (d *demo) startManager(ctx context.Context) error {
	if err := d.stopManager(); err != nil {
		return err
	}
	if err := d.clear(ctx); err != nil {
		return err
	}
	office, err := freePort()
	if err != nil {
		return err
	}
	d.office = "https://" + office
	health, err := freePort()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(d.dir, "manager.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if err := d.kube(ctx, "apply", "--server-side", "-f", "config/samples/demo/operator-namespace.yaml"); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(d.bin, "bullpen-manager"), "--kubeconfig", d.kubeconfig(), "--office-namespace", "bullpen-system",
		"--office-address", office, "--office-url", "https://"+office, "--health-address", health, "--metrics-address", "0",
		"--data-dir", filepath.Join(d.dir, "data"), "--agent-image", agentImage, "--log-format", "text")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	begun, err := startTime(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("the manager ended at once; see %s", log.Name())
	}
	if err := os.WriteFile(d.pidFile(), []byte(fmt.Sprintf("%d %s\n", cmd.Process.Pid, begun)), 0o644); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if answer, err := http.Get("http://" + health + "/readyz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the manager ended, see %s: %w", log.Name(), err)
		case <-ctx.Done():
			return fmt.Errorf("the manager is not ready; see %s", log.Name())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// clear removes what an earlier demo left in the cluster: its objects, and what the operator made for them, which the cluster's garbage
// collector would only get to in a while.
func (d *demo) clear(ctx context.Context) error {
	if err := d.kube(ctx, "-n", "demo", "delete", "workitems,people,teams", "--all", "--timeout=30s"); err != nil {
		return err
	}
	return d.kube(ctx, "-n", "demo", "delete", "pods,persistentvolumeclaims,secrets,serviceaccounts",
		"-l", "app.kubernetes.io/managed-by=bullpen", "--grace-period=1", "--timeout=30s")
}

func (d *demo) pidFile() string { return filepath.Join(d.dir, "manager.pid") }

// stopManager stops the manager of an earlier demo. The process is known by its id and its start time, so that another process with
// the same id is left alone.
func (d *demo) stopManager() error {
	data, err := os.ReadFile(d.pidFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	id, begun, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	pid, err := strconv.Atoi(id)
	if err != nil {
		return fmt.Errorf("%s is damaged: remove it", d.pidFile())
	}
	for sent := false; ; sent = true {
		if now, err := startTime(pid); err != nil || now != begun {
			return os.Remove(d.pidFile())
		}
		if !sent {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				return err
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// startTime is when a process started, in the kernel's ticks, as an identity beside its id. A zombie has ended.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 || fields[0] == "Z" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[19], nil
}

func (d *demo) applySamples(ctx context.Context) error {
	if err := d.applyTeam(ctx); err != nil {
		return err
	}
	return d.kube(ctx, "apply", "--server-side", "--validate=strict", "-f", filepath.Join(d.samples, "workitems.yaml"))
}

// down stops everything and removes the folder.
func (d *demo) down(ctx context.Context) error {
	var err error
	if d.dir, err = filepath.Abs(d.dir); err != nil {
		return err
	}
	if err := d.stopManager(); err != nil {
		return err
	}
	cluster := filepath.Join(d.dir, "cluster")
	if _, err := os.Stat(cluster); err == nil {
		if err := loud(exec.CommandContext(ctx, d.localcluster, "down", "--state", cluster)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	fmt.Println("The demo is down.")
	return nil
}

// kube runs kubectl against the demo's cluster.
func (d *demo) kube(ctx context.Context, args ...string) error {
	return d.quiet(ctx, d.kubectl(), append([]string{"--kubeconfig", d.kubeconfig()}, args...)...)
}

// quiet runs a program and shows its output only where it fails.
func (d *demo) quiet(ctx context.Context, name string, args ...string) error {
	return loud(exec.CommandContext(ctx, name, args...))
}

func loud(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}

// freePort finds a free port on loopback.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
