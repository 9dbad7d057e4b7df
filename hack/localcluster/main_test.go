// This file has the test of localcluster as its users run it: the program is
// built, and used through its commands, its kubeconfig and kubectl.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/process"
)

// limit is how long anything may take before the test gives up on it.
const limit = time.Minute

// manifests are a pod with a volume that lasts and a secret. Its program takes all
// paths from its environment, as the node asks for.
const manifests = `
apiVersion: v1
kind: Secret
metadata: {name: ada-agent}
stringData: {token: first}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ada-home}
spec: {accessModes: [ReadWriteOncePod], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: ada-agent}
spec:
  terminationGracePeriodSeconds: 30
  containers:
  - name: agent
    image: bullpen/agent:test
    args: ["--home=/home/agent"]
    env:
    - {name: TOKEN_FILE, value: /etc/agent/token}
    - {name: TOKEN, valueFrom: {secretKeyRef: {name: ada-agent, key: token}}}
    volumeMounts:
    - {name: home, mountPath: /home/agent}
    - {name: secret, mountPath: /etc/agent, readOnly: true}
  volumes:
  - {name: home, persistentVolumeClaim: {claimName: ada-home}}
  - {name: secret, secret: {secretName: ada-agent}}
`

// program is what the image runs: it counts its starts in its home, shows its
// secret whenever that changes, and takes its time to end.
const program = `#!/bin/sh
home=${1#--home=}
echo start >> "$home/starts"
trap 'sleep 0.2; echo ended > "$home/ended"; exit 0' TERM
echo "started $(wc -l < "$home/starts") with $TOKEN"
shown=
while true; do
  token=$(cat "$TOKEN_FILE")
  [ "$token" = "$shown" ] || echo "token $token"
  shown=$token
  sleep 0.05
done
`

func TestCluster(t *testing.T) {
	c := newTestCluster(t)
	c.run(c.program, "up", "--detach", "--bin", c.bin, "--state", c.state, "--image", "bullpen/agent="+c.image)
	t.Cleanup(func() {
		// For a test that failed on its way; the last step has done it else.
		if err := exec.Command(c.program, "down", "--state", c.state).Run(); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	c.connect()

	c.apply(manifests)
	c.eventually("the pod runs", func() error { return c.podIs(func(s podState) bool { return s.ready && s.restarts == 0 }) })
	c.eventually("kubectl logs shows what it printed", func() error { return c.logged("started 1 with first") })
	c.eventually("the file of the secret is there", func() error { return c.logged("token first") })

	c.run(c.kubectl, "--kubeconfig", c.kubeconfig(), "patch", "secret", "ada-agent", "-p", `{"stringData":{"token":"second"}}`)
	c.eventually("a new value of the secret reaches the program", func() error { return c.logged("token second") })

	if err := syscall.Kill(c.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.eventually("a killed container is started again, and says how it ended", func() error {
		return c.podIs(func(s podState) bool { return s.ready && s.restarts == 1 && s.lastExit == 137 })
	})
	c.eventually("its volume has outlived it, and its environment is made anew", func() error { return c.logged("started 2 with second") })
	home := c.onlyFolder("volumes")

	c.run(c.kubectl, "--kubeconfig", c.kubeconfig(), "delete", "pod", "ada-agent", "--timeout=1m")
	if data, err := os.ReadFile(filepath.Join(home, "ended")); err != nil || string(data) != "ended\n" {
		t.Errorf("the pod is gone, but its program did not finish on SIGTERM: %q, %v", data, err)
	}
	c.run(c.kubectl, "--kubeconfig", c.kubeconfig(), "delete", "pvc", "ada-home", "--timeout=1m")
	c.eventually("the folder of a deleted claim is gone", func() error { return c.isGone(home) })

	// A pod that is there when the cluster goes down goes with it.
	c.apply(manifests)
	c.eventually("the pod runs again", func() error { return c.podIs(func(s podState) bool { return s.ready }) })
	marker := c.marker()
	c.run(c.program, "down", "--state", c.state)
	if left := process.Find(marker); len(left) > 0 {
		t.Errorf("processes %v outlived the cluster", left)
	}
	if err := c.isGone(c.state); err != nil {
		t.Error(err)
	}
}

func TestKilledClusterLeavesNoProcess(t *testing.T) {
	c := newTestCluster(t)
	c.run(c.program, "up", "--detach", "--bin", c.bin, "--state", c.state, "--control-plane-only")
	marker, serving := c.marker(), c.identity().PID
	if len(process.Find(marker)) == 0 {
		t.Fatal("no process of the cluster carries its marker")
	}
	if err := syscall.Kill(serving, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.eventually("all of its processes are gone", func() error {
		if left := process.Find(marker); len(left) > 0 {
			return fmt.Errorf("processes %v are left", left)
		}
		return nil
	})
	c.run(c.program, "down", "--state", c.state)
	if err := c.isGone(c.state); err != nil {
		t.Error(err)
	}
}

// testCluster is a cluster and what a test does with it.
type testCluster struct {
	*testing.T
	program, bin, state, image, kubectl string
	client                              *kubernetes.Clientset
}

// newTestCluster builds the program and makes sure that those of the control plane
// are there: in the folder named by LOCALCLUSTER_BIN, or else in the project's
// cache.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	// A data race ends the program, and so the test.
	t.Setenv("GORACE", "halt_on_error=1")
	c := &testCluster{T: t, bin: os.Getenv("LOCALCLUSTER_BIN"), image: t.TempDir()}
	if c.bin == "" {
		c.bin = filepath.Join("..", "..", ".cache", "k8s")
	}
	dir := t.TempDir()
	c.program, c.state, c.kubectl = filepath.Join(dir, "localcluster"), filepath.Join(dir, "s"), filepath.Join(c.bin, "kubectl")
	c.run("go", append([]string{"build", "-o", c.program}, raceFlag()...)...)
	c.run(c.program, "build", "--bin", c.bin)
	for name, content := range map[string]string{"bin/agent": program, ".entrypoint": `["/bin/agent"]`} {
		path := filepath.Join(c.image, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// raceFlag makes the program look for data races if the test does.
func raceFlag() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, setting := range info.Settings {
		if setting.Key == "-race" && setting.Value == "true" {
			return []string{"-race", "."}
		}
	}
	return []string{"."}
}

func (c *testCluster) kubeconfig() string { return filepath.Join(c.state, "kubeconfig") }

// run runs a command that must succeed and returns its output.
func (c *testCluster) run(name string, args ...string) string {
	c.Helper()
	output, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		c.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return string(output)
}

func (c *testCluster) apply(manifests string) {
	c.Helper()
	cmd := exec.Command(c.kubectl, "--kubeconfig", c.kubeconfig(), "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(manifests)
	if output, err := cmd.CombinedOutput(); err != nil {
		c.Fatalf("kubectl apply: %v\n%s", err, output)
	}
}

func (c *testCluster) connect() {
	c.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		c.Fatal(err)
	}
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		c.Fatal(err)
	}
}

// eventually waits until what is said holds.
func (c *testCluster) eventually(said string, holds func() error) {
	c.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.Fatalf("not so: %s: %v\n%s", said, err, c.nodeLog())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (c *testCluster) nodeLog() []byte {
	log, err := os.ReadFile(filepath.Join(c.state, "log", "node.log"))
	if err != nil {
		return nil
	}
	return log
}

// podState is what a test asks about the pod.
type podState struct {
	ready              bool
	restarts, lastExit int32
}

func (c *testCluster) podIs(wanted func(podState) bool) error {
	pod, err := c.client.CoreV1().Pods("default").Get(context.Background(), "ada-agent", metav1.GetOptions{})
	if err != nil {
		return err
	}
	var s podState
	for _, status := range pod.Status.ContainerStatuses {
		s.ready, s.restarts = status.Ready, status.RestartCount
		if end := status.LastTerminationState.Terminated; end != nil {
			s.lastExit = end.ExitCode
		}
	}
	if pod.Status.Phase != corev1.PodRunning || !wanted(s) {
		return fmt.Errorf("the pod is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
	}
	return nil
}

// logged asks kubectl for the log and looks for a line.
func (c *testCluster) logged(line string) error {
	output, err := exec.Command(c.kubectl, "--kubeconfig", c.kubeconfig(), "logs", "ada-agent").CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl logs: %w: %s", err, output)
	}
	if !bytes.Contains(append([]byte("\n"), output...), []byte("\n"+line+"\n")) {
		return fmt.Errorf("no line %q in:\n%s", line, output)
	}
	return nil
}

// pid is that of the container's main process.
func (c *testCluster) pid() int {
	c.Helper()
	data, err := os.ReadFile(filepath.Join(c.onlyFolder("pods"), "pids", "agent"))
	if err != nil {
		c.Fatal(err)
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil {
		c.Fatal(err)
	}
	return pid
}

// onlyFolder returns the one folder that is in a folder of the state.
func (c *testCluster) onlyFolder(name string) string {
	c.Helper()
	entries, err := os.ReadDir(filepath.Join(c.state, name))
	if err != nil || len(entries) != 1 {
		c.Fatalf("%s has %d entries, want 1: %v", name, len(entries), err)
	}
	return filepath.Join(c.state, name, entries[0].Name())
}

// identity is what the state folder says about who serves it.
type identity struct {
	ID  string `json:"id"`
	PID int    `json:"pid"`
}

func (c *testCluster) identity() identity {
	c.Helper()
	data, err := os.ReadFile(filepath.Join(c.state, "localcluster.json"))
	if err != nil {
		c.Fatal(err)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		c.Fatal(err)
	}
	return id
}

// marker is the entry in the environment of all processes of the cluster.
func (c *testCluster) marker() string { return "LOCALCLUSTER_ID=" + c.identity().ID }

func (c *testCluster) isGone(path string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(fmt.Errorf("%s is still there", path), err)
}
