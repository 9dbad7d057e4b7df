package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// Reasons that a kubelet gives for a container that waits or could not start.
const (
	reasonPodInitializing  = "PodInitializing"
	reasonCreating         = "ContainerCreating"
	reasonErrImagePull     = "ErrImagePull"
	reasonImagePullBackOff = "ImagePullBackOff"
	reasonConfigError      = "CreateContainerConfigError"
	reasonCreateError      = "CreateContainerError"
	reasonRunError         = "RunContainerError"
	reasonCrashLoop        = "CrashLoopBackOff"
	reasonStartError       = "StartError"
)

// configRetry is the wait before a container whose configuration is incomplete is
// looked at again.
const configRetry = time.Second

// exitStartError is the exit code of a container whose command could not be run.
const exitStartError = 128

// A container is one of a pod's containers. Its run method drives it; everybody
// may read its status.
type container struct {
	pod  *podWorker
	name string
	init bool
	// changed receives when the pod wants another image.
	changed chan struct{}
	// startedUp is closed when the container has started for the first time.
	startedUp   chan struct{}
	startedOnce sync.Once

	mu       sync.Mutex
	status   corev1.ContainerStatus
	current  *instance
	attempts int
	// logs are the files and container IDs of the current and the previous run.
	logs [2]logRef
}

type logRef struct{ path, id string }

// A life tells a container when to stop: stopping ends when it should, killing
// when it must.
type life struct {
	stopping, killing context.Context
}

// ended reports whether the container should not start any more.
func (l life) ended() bool { return l.stopping.Err() != nil }

// sleep waits and reports whether the container may go on then.
func (l life) sleep(wait time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-l.stopping.Done():
	}
	return !l.ended()
}

func newContainer(pod *podWorker, spec *corev1.Container, init bool) *container {
	reason := reasonCreating
	if init || len(pod.pod.Load().Spec.InitContainers) > 0 {
		reason = reasonPodInitializing
	}
	return &container{
		pod: pod, name: spec.Name, init: init, changed: make(chan struct{}, 1), startedUp: make(chan struct{}),
		status: corev1.ContainerStatus{
			Name: spec.Name, Image: spec.Image, Started: new(bool),
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		},
	}
}

// spec returns what the pod wants of the container now: its image can change.
func (c *container) spec() *corev1.Container {
	spec := &c.pod.pod.Load().Spec
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			if list[i].Name == c.name {
				return &list[i]
			}
		}
	}
	return nil // Containers of a pod cannot be removed.
}

// A notReady is why a container waits instead of starting.
type notReady struct {
	reason string
	err    error
}

func (e *notReady) Error() string { return e.err.Error() }

// run starts the container, and again as its pod's policy says. It returns when
// the container is done for good or its life has ended.
func (c *container) run(l life) {
	wait, pulls := none, none
	for !l.ended() {
		planned, err := c.prepare()
		var waiting *notReady
		if errors.As(err, &waiting) {
			if !c.hold(l, waiting, &pulls) {
				return
			}
			continue
		}
		end := c.once(l, planned)
		if end.again {
			continue
		}
		if l.ended() || !restarts(c.policy(), end.code) {
			return
		}
		wait = c.pod.node.Backoff.next(wait, end.ran)
		if wait > 0 && !c.crashLoop(l, wait) {
			return
		}
	}
}

// hold shows why the container cannot start and waits before the next try.
func (c *container) hold(l life, why *notReady, pulls *time.Duration) bool {
	c.pod.event(corev1.EventTypeWarning, "Failed", "Container %s: %s: %s", c.name, why.reason, why.err)
	c.wait(why.reason, why.err.Error())
	if why.reason != reasonErrImagePull {
		return l.sleep(configRetry, c.changed)
	}
	// A kubelet shows the error and then that it waits.
	if !l.sleep(configRetry, c.changed) {
		return false
	}
	*pulls = max(c.pod.node.Backoff.next(*pulls, 0), configRetry)
	c.wait(reasonImagePullBackOff, fmt.Sprintf("Back-off pulling image %q: %s: %s", c.spec().Image, why.reason, why.err))
	return l.sleep(*pulls, c.changed)
}

// crashLoop shows that the container waits for its restart, and waits.
func (c *container) crashLoop(l life, wait time.Duration) bool {
	pod := c.pod.pod.Load()
	c.pod.event(corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s_%s(%s)", c.name, pod.Name, pod.Namespace, pod.UID)
	c.wait(reasonCrashLoop, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", wait, c.name, pod.Name, pod.Namespace, pod.UID))
	return l.sleep(wait, c.changed)
}

// prepare finds the image and makes environment and command.
func (c *container) prepare() (plan, error) {
	spec := c.spec()
	image, err := c.pod.node.Images.pull(spec.Image)
	if err != nil {
		return plan{}, &notReady{reasonErrImagePull, err}
	}
	variables, err := c.pod.environment(spec)
	if err != nil {
		return plan{}, &notReady{reasonConfigError, err}
	}
	mounts, err := mountsOf(spec, c.pod.folders(), variables)
	if err != nil {
		return plan{}, &notReady{reasonConfigError, err}
	}
	message, err := c.freshMessageFile()
	if err != nil {
		return plan{}, &notReady{reasonCreateError, err}
	}
	if spec.TerminationMessagePath != "" {
		mounts = append(mounts, mount{path: spec.TerminationMessagePath, target: message})
	}
	t := newTranslator(image, mounts)
	words, err := commandOf(spec, image, variables)
	if err != nil {
		return plan{}, &notReady{reasonCreateError, err}
	}
	id := newContainerID()
	return plan{
		id:      id,
		command: t.arguments(words),
		env:     processEnv(c.pod.defaults(id, t), variables, t),
		dir:     workingDir(spec, t, c.pod.home()),
		paths:   t,
		logPath: c.pod.path("logs", c.name, strconv.Itoa(c.attempts)+".log"),
	}, nil
}

// commandOf returns the words to run, with variables expanded and paths as the
// pod wrote them.
func commandOf(spec *corev1.Container, image string, variables map[string]string) ([]string, error) {
	words := expandAll(spec.Command, variables)
	if len(words) == 0 {
		var err error
		if words, err = entrypoint(image); err != nil {
			return nil, err
		}
	}
	words = append(words, expandAll(spec.Args, variables)...)
	if len(words) == 0 {
		return nil, fmt.Errorf("no command specified: the pod has none and the image %s has no %s", spec.Image, entrypointFile)
	}
	return words, nil
}

// workingDir is where the container starts: what the pod says, as a mount or a
// folder of the image, or its home.
func workingDir(spec *corev1.Container, t translator, home string) string {
	if spec.WorkingDir == "" {
		return home
	}
	return t.argument(spec.WorkingDir)
}

// policy is the container's restart policy.
func (c *container) policy() corev1.RestartPolicy {
	return policyOf(c.pod.pod.Load(), c.spec(), c.init)
}

// An outcome is how one run of a container ended.
type outcome struct {
	code int32
	ran  time.Duration
	// again tells that the pod wants another image: no failure to wait after.
	again bool
}

// once runs the container once.
func (c *container) once(l life, planned plan) outcome {
	i, err := planned.start()
	if err != nil {
		c.failedToStart(planned, err)
		return outcome{code: exitStartError}
	}
	c.started(i)
	probing, stopProbes := context.WithCancel(l.stopping)
	unhealthy := c.probe(probing, i)
	again := false
	select {
	case <-i.exited:
	case <-l.stopping.Done():
		c.terminate(i, l.killing, "Stopping container "+c.name)
	case why := <-unhealthy:
		c.terminateWithin(i, l, fmt.Sprintf("Container %s failed %s probe, will be restarted", c.name, why))
	case <-c.changed:
		again = true
		c.terminateWithin(i, l, fmt.Sprintf("Container %s definition changed, will be restarted", c.name))
	}
	stopProbes()
	<-i.exited
	c.ended(i)
	return outcome{code: i.exitCode, ran: i.finishedAt.Sub(i.startedAt), again: again && !l.ended()}
}

// terminateWithin ends an instance within the pod's own grace period.
func (c *container) terminateWithin(i *instance, l life, why string) {
	killing, cancel := context.WithTimeout(l.killing, gracePeriod(c.pod.pod.Load()))
	defer cancel()
	c.terminate(i, killing, why)
}

// terminate asks the main process to end and kills it when killing ends.
func (c *container) terminate(i *instance, killing context.Context, why string) {
	c.pod.event(corev1.EventTypeNormal, "Killing", "%s", why)
	c.preStop(i, killing)
	// As a container runtime does, only the main process is told. What it started
	// is its own to end, or is killed after it.
	_ = i.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-i.exited:
	case <-killing.Done():
		_ = i.cmd.Process.Kill()
		<-i.exited
	}
}

// preStop runs the pod's hook before the container is told to end.
func (c *container) preStop(i *instance, killing context.Context) {
	spec := c.spec()
	if spec.Lifecycle == nil || spec.Lifecycle.PreStop == nil {
		return
	}
	ctx, cancel := context.WithCancel(killing)
	defer cancel()
	go func() {
		select {
		case <-i.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := c.hook(ctx, i, spec.Lifecycle.PreStop); err != nil && killing.Err() == nil {
		c.pod.event(corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook of container %s failed: %s", c.name, err)
	}
}

// snapshot returns the container's status.
func (c *container) snapshot() corev1.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.status.DeepCopy()
}

// change edits the status and lets the pod publish it.
func (c *container) change(edit func(*corev1.ContainerStatus)) {
	c.mu.Lock()
	edit(&c.status)
	c.mu.Unlock()
	c.pod.touch()
}

// wait shows that the container waits; how it ended last stays visible.
func (c *container) wait(reason, message string) {
	c.change(func(s *corev1.ContainerStatus) {
		if s.State.Terminated != nil {
			s.LastTerminationState = corev1.ContainerState{Terminated: s.State.Terminated}
		}
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	})
}

// begin counts an attempt and keeps the log of the one before.
func (c *container) begin(s *corev1.ContainerStatus, p plan) {
	if s.State.Terminated != nil {
		s.LastTerminationState = corev1.ContainerState{Terminated: s.State.Terminated}
	}
	s.RestartCount = int32(c.attempts)
	c.attempts++
	if c.logs[1].path != "" {
		_ = os.Remove(c.logs[1].path) // Only two are kept.
	}
	c.logs[1], c.logs[0] = c.logs[0], logRef{path: p.logPath, id: p.id}
	s.Image = c.spec().Image
	s.ImageID = "localcluster://" + c.spec().Image
	s.ContainerID = containerID(p.id)
}

func (c *container) started(i *instance) {
	spec := c.spec()
	c.notePID(i)
	c.pod.event(corev1.EventTypeNormal, "Started", "Container %s started", c.name)
	c.change(func(s *corev1.ContainerStatus) {
		c.begin(s, i.plan)
		c.current = i
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(i.startedAt)}}
		started := spec.StartupProbe == nil
		s.Started = &started
		s.Ready = started && spec.ReadinessProbe == nil && (!c.init || isSidecar(spec))
	})
}

func (c *container) ended(i *instance) {
	spec := c.spec()
	c.change(func(s *corev1.ContainerStatus) {
		c.current = nil
		end := &corev1.ContainerStateTerminated{
			ExitCode: i.exitCode, Reason: "Completed", ContainerID: containerID(i.id),
			StartedAt: metav1.NewTime(i.startedAt), FinishedAt: metav1.NewTime(i.finishedAt),
			Message: terminationMessage(spec, c.messageFile(), i.logPath, i.exitCode != 0),
		}
		if i.exitCode != 0 {
			end.Reason = "Error"
		}
		s.State = corev1.ContainerState{Terminated: end}
		s.Started = new(bool)
		s.Ready = c.init && i.exitCode == 0
	})
}

// failedToStart records an attempt whose command could not be run.
func (c *container) failedToStart(p plan, err error) {
	c.pod.event(corev1.EventTypeWarning, "Failed", "Error: %s", err)
	now := metav1.Now()
	c.change(func(s *corev1.ContainerStatus) {
		c.begin(s, p)
		end := &corev1.ContainerStateTerminated{
			ExitCode: exitStartError, Reason: reasonStartError, Message: err.Error(),
			StartedAt: metav1.Unix(0, 0), FinishedAt: now, ContainerID: containerID(p.id),
		}
		s.State = corev1.ContainerState{Terminated: end}
		s.Started = new(bool)
		s.Ready = false
	})
	if restarts(c.policy(), exitStartError) {
		c.wait(reasonRunError, err.Error()) // Until the next attempt.
	}
}

// isRunning reports whether the run with the container ID id goes on.
func (c *container) isRunning(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current != nil && c.current.id == id
}

// running returns the current run, if there is one.
func (c *container) running() *instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// logOf returns the log file of the current or last run, or of the one before it.
func (c *container) logOf(previous bool) (path, id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ref := c.logs[0]
	if previous {
		ref = c.logs[1]
	}
	if ref.path != "" {
		return ref.path, ref.id, nil
	}
	if previous {
		return "", "", fmt.Errorf("previous terminated container %q not found", c.name)
	}
	reason := reasonCreating
	if c.status.State.Waiting != nil {
		reason = c.status.State.Waiting.Reason
	}
	return "", "", fmt.Errorf("container %q is waiting to start: %s", c.name, reason)
}

func (c *container) messageFile() string { return c.pod.path("messages", c.name) }

// freshMessageFile makes the empty file for the container's last words.
func (c *container) freshMessageFile() (string, error) {
	path := c.messageFile()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, nil, 0o666)
}

// notePID writes the main process's ID to a file, for tests and developers who
// want to send it a signal.
func (c *container) notePID(i *instance) {
	path := c.pod.path("pids", c.name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(strconv.Itoa(i.cmd.Process.Pid)), 0o644)
	}
	if err != nil {
		klog.ErrorS(err, "The process ID of a container was not written", "path", path)
	}
}

// newContainerID makes an ID of the length that container runtimes use.
func newContainerID() string {
	var id [32]byte
	_, _ = rand.Read(id[:]) // It never fails.
	return hex.EncodeToString(id[:])
}

func containerID(id string) string { return "localcluster://" + id }
