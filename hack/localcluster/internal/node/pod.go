package node

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/klog/v2"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/folder"
)

const (
	// volumeRefresh is how often volumes are looked at without a reason, for the
	// sake of tokens that expire.
	volumeRefresh = time.Minute
	// retryInterval is the wait after a failure that is not the pod's fault.
	retryInterval = 200 * time.Millisecond
)

// A podWorker has one pod on this node, from when it was seen to when its object
// is deleted.
//
// The goroutine of run drives it; containers, the volumes' refresh and the
// publishing of the status have goroutines of their own.
type podWorker struct {
	node *Node
	// pod is the object as last seen.
	pod atomic.Pointer[corev1.Pod]
	dir string

	init, main []*container
	volumes    podVolumes

	// stopping ends when the containers are to stop, killing when they are to be
	// killed, gone when the object is to be deleted or is deleted.
	stopping, killing, gone contextEnd
	// dirty asks for the status to be published, refresh for the volumes to be
	// looked at.
	dirty, refresh chan struct{}
	// done is closed when the worker has nothing more to do.
	done chan struct{}

	mu        sync.Mutex
	killAt    time.Time
	killTimer *time.Timer
	dirs      map[string]string
	report    report
	// deleted tells that the object is gone.
	deleted bool

	// published is the status as last written; only publish uses it.
	published corev1.PodStatus
}

// A contextEnd is a context and what ends it.
type contextEnd struct {
	context.Context
	end context.CancelFunc
}

func newContextEnd() contextEnd {
	ctx, cancel := context.WithCancel(context.Background())
	return contextEnd{ctx, cancel}
}

func newPodWorker(n *Node, pod *corev1.Pod) *podWorker {
	w := &podWorker{
		node:     n,
		dir:      filepath.Join(n.PodDir, folderName(pod)),
		stopping: newContextEnd(), killing: newContextEnd(), gone: newContextEnd(),
		dirty: make(chan struct{}, 1), refresh: make(chan struct{}, 1), done: make(chan struct{}),
		report:    report{startTime: time.Now()},
		published: pod.Status,
	}
	w.pod.Store(pod)
	w.volumes = podVolumes{
		dir: w.path("volumes"), client: n.client, sources: n, allocatable: n.allocatable(), tokens: map[string]token{},
	}
	for i := range pod.Spec.InitContainers {
		w.init = append(w.init, newContainer(w, &pod.Spec.InitContainers[i], true))
	}
	for i := range pod.Spec.Containers {
		w.main = append(w.main, newContainer(w, &pod.Spec.Containers[i], false))
	}
	return w
}

// folderName says whose folder it is and is short, since programs put sockets
// below it.
func folderName(pod *corev1.Pod) string {
	uid, _, _ := strings.Cut(string(pod.UID), "-")
	return pod.Namespace + "_" + pod.Name + "_" + uid
}

func (w *podWorker) path(elements ...string) string {
	return filepath.Join(append([]string{w.dir}, elements...)...)
}

// home is where containers start and what HOME is unless the pod says otherwise.
func (w *podWorker) home() string { return w.path("home") }

func (w *podWorker) container(name string) *container {
	for _, c := range slices.Concat(w.main, w.init) {
		if c.name == name {
			return c
		}
	}
	return nil
}

// update takes note of a new version of the object.
func (w *podWorker) update(pod *corev1.Pod) {
	old := w.pod.Swap(pod)
	for _, c := range slices.Concat(w.main, w.init) {
		if image(old, c.name) != image(pod, c.name) {
			poke(c.changed)
		}
	}
	if !maps.Equal(old.Labels, pod.Labels) || !maps.Equal(old.Annotations, pod.Annotations) {
		poke(w.refresh) // Volumes may show them.
	}
	w.touch()
	if pod.DeletionTimestamp != nil {
		w.gone.end()
		w.stop(time.Duration(value(pod.DeletionGracePeriodSeconds)) * time.Second)
	}
}

// forget takes note that the object is gone: nothing of it may run any more.
func (w *podWorker) forget() {
	w.mu.Lock()
	w.deleted = true
	w.mu.Unlock()
	w.gone.end()
	w.stop(0)
}

// stop ends the containers within grace. A later call can shorten the time that
// is left, as a second kubectl delete does.
func (w *podWorker) stop(grace time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := time.Now().Add(grace)
	if w.killTimer == nil {
		w.killAt, w.killTimer = at, time.AfterFunc(grace, w.killing.end)
	} else if at.Before(w.killAt) {
		w.killAt = at
		w.killTimer.Reset(grace)
	}
	w.stopping.end()
}

// fail ends a pod that the node gives up, with a reason for its status.
func (w *podWorker) fail(reason, message string) {
	w.mu.Lock()
	if w.report.reason == "" {
		w.report.reason, w.report.message = reason, message
	}
	w.mu.Unlock()
	w.stop(gracePeriod(w.pod.Load()))
}

// run takes the pod through its life.
func (w *podWorker) run() {
	defer close(w.done)
	if terminal(w.pod.Load().Status.Phase) {
		w.stopping.end()
	}
	publishing := w.publishInBackground()
	if deadline := w.pod.Load().Spec.ActiveDeadlineSeconds; deadline != nil {
		timer := time.AfterFunc(time.Duration(*deadline)*time.Second, func() {
			w.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
		})
		defer timer.Stop()
	}
	w.runContainers()
	w.mu.Lock()
	w.report.ended = true
	w.mu.Unlock()
	publishing.finish()

	select {
	case <-w.gone.Done(): // A pod that has ended stays until then, for its logs.
		w.remove()
	case <-w.node.stopped:
	}
}

// runContainers mounts volumes and runs all containers until none is left.
func (w *podWorker) runContainers() {
	if !w.mount() {
		return
	}
	refreshing := make(chan struct{})
	stopRefresh := newContextEnd()
	go func() {
		defer close(refreshing)
		w.keepVolumesFresh(stopRefresh)
	}()
	defer func() {
		stopRefresh.end()
		<-refreshing
	}()

	// Sidecars stop after the main containers.
	sidecarStop := newContextEnd()
	var sidecars, mains sync.WaitGroup
	if w.initialize(&sidecars, life{sidecarStop, w.killing}) {
		for _, c := range w.main {
			c.wait(reasonCreating, "")
			mains.Go(func() { c.run(life{w.stopping, w.killing}) })
		}
		mains.Wait()
	}
	w.stop(gracePeriod(w.pod.Load()))
	sidecarStop.end()
	sidecars.Wait()
}

// initialize runs the init containers in their order. It reports whether the main
// ones may start.
func (w *podWorker) initialize(sidecars *sync.WaitGroup, sidecarLife life) bool {
	for i, c := range w.init {
		if isSidecar(&w.pod.Load().Spec.InitContainers[i]) {
			sidecars.Go(func() { c.run(sidecarLife) })
			if !c.awaitStarted(w.stopping) {
				return false
			}
			continue
		}
		c.run(life{w.stopping, w.killing})
		end := c.snapshot().State.Terminated
		if w.stopping.Err() != nil || end == nil || end.ExitCode != 0 {
			return false
		}
	}
	return w.stopping.Err() == nil
}

// mount makes the pod's folder and its volumes. It tries until it can and reports
// false if the pod is to stop before.
func (w *podWorker) mount() bool {
	said := ""
	for w.stopping.Err() == nil {
		err := w.mountOnce()
		if err == nil {
			return true
		}
		if message := err.Error(); message != said {
			said = message
			w.event(corev1.EventTypeWarning, "FailedMount", "MountVolume.SetUp failed for %s", message)
		}
		l := life{stopping: w.stopping}
		l.sleep(configRetry, w.refresh)
	}
	return false
}

func (w *podWorker) mountOnce() error {
	for _, dir := range []string{w.home(), w.path("tmp"), w.path("volumes")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	dirs, err := w.volumes.prepare(w.stopping, w.pod.Load(), time.Now())
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.dirs = dirs
	w.report.volumesReady = true
	w.mu.Unlock()
	w.touch()
	return nil
}

// keepVolumesFresh brings volumes up to date when an object they show changed.
func (w *podWorker) keepVolumesFresh(ctx context.Context) {
	ticker := time.NewTicker(volumeRefresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.refresh:
		}
		// What is there stays if an object is gone; a kubelet does the same.
		if _, err := w.volumes.prepare(ctx, w.pod.Load(), time.Now()); err != nil && ctx.Err() == nil {
			klog.V(2).InfoS("Volumes were not refreshed", "pod", klog.KObj(w.pod.Load()), "err", err)
		}
	}
}

func (w *podWorker) folders() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dirs
}

// environment returns the variables that the pod gives to a container.
func (w *podWorker) environment(spec *corev1.Container) (map[string]string, error) {
	return environ{
		pod: w.pod.Load(), container: spec, sources: w.node,
		allocatable: w.node.allocatable(), services: w.node.serviceEnv(),
	}.resolve()
}

// defaults are the variables of any container, before those of the pod.
func (w *podWorker) defaults(id string, t translator) map[string]string {
	defaults := map[string]string{}
	for _, name := range w.node.PassEnv {
		if value, ok := os.LookupEnv(name); ok {
			defaults[name] = value
		}
	}
	defaults["PATH"] = searchPath(t.image, os.Getenv("PATH"))
	defaults["HOME"] = w.home()
	defaults["TMPDIR"] = w.path("tmp")
	if tmp := t.text("/tmp"); tmp != "/tmp" {
		defaults["TMPDIR"] = tmp
	}
	defaults["HOSTNAME"] = w.pod.Load().Name
	defaults[containerVariable] = id
	name, value, _ := strings.Cut(w.node.Marker, "=")
	defaults[name] = value
	return defaults
}

// remove deletes the pod's folder and then its object: whoever sees that the
// object is gone can rely on nothing being left.
func (w *podWorker) remove() {
	if err := folder.RemoveAll(w.dir); err != nil {
		klog.ErrorS(err, "The folder of a pod cannot be removed", "dir", w.dir)
	}
	pod := w.pod.Load()
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	for !w.isDeleted() {
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		err := w.node.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
		cancel()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || w.node.isStopped() {
			return
		}
		klog.ErrorS(err, "A pod that has ended cannot be deleted, trying again", "pod", klog.KObj(pod))
		time.Sleep(retryInterval)
	}
}

func (w *podWorker) isDeleted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deleted
}

// touch asks for the status to be published.
func (w *podWorker) touch() { poke(w.dirty) }

// A publisher writes a pod's status in the background.
type publisher struct {
	last chan struct{}
	done chan struct{}
}

// finish writes the last status and returns when it is written.
func (p publisher) finish() {
	close(p.last)
	<-p.done
}

func (w *podWorker) publishInBackground() publisher {
	p := publisher{last: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for {
			select {
			case <-w.dirty:
				if !w.publish() {
					time.Sleep(retryInterval)
					w.touch()
				}
			case <-p.last:
				for !w.publish() {
					time.Sleep(retryInterval)
				}
				return
			}
		}
	}()
	w.touch()
	return p
}

// publish writes the status if it changed. It reports false if that is to be
// tried again.
func (w *podWorker) publish() bool {
	pod := w.pod.Load()
	if w.isDeleted() || terminal(w.published.Phase) {
		return true
	}
	patch, err := statusPatch(pod.UID, w.published, w.currentReport(pod).status(time.Now()))
	if err != nil {
		klog.ErrorS(err, "The status of a pod cannot be encoded", "pod", klog.KObj(pod))
		return true
	}
	if patch == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	updated, err := w.node.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil {
		w.published = updated.Status
		return true
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true // The object is gone, or another one has its name.
	}
	klog.ErrorS(err, "The status of a pod cannot be written, trying again", "pod", klog.KObj(pod))
	return w.node.isStopped()
}

// statusPatch returns the change from one status to another, for the pod of that
// UID only, or nothing if there is none.
func statusPatch(uid types.UID, from, to corev1.PodStatus) ([]byte, error) {
	old, err := json.Marshal(corev1.Pod{Status: from})
	if err != nil {
		return nil, err
	}
	wanted, err := json.Marshal(corev1.Pod{Status: to})
	if err != nil || bytes.Equal(old, wanted) {
		return nil, err
	}
	wanted, err = json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: to})
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, wanted, corev1.Pod{})
}

// currentReport gathers what is known about the pod.
func (w *podWorker) currentReport(pod *corev1.Pod) report {
	w.mu.Lock()
	r := w.report
	w.mu.Unlock()
	r.pod, r.written = pod, w.published
	for _, c := range w.init {
		r.init = append(r.init, c.snapshot())
	}
	for _, c := range w.main {
		r.main = append(r.main, c.snapshot())
	}
	return r
}

// event records an event about the pod.
func (w *podWorker) event(kind, reason, format string, args ...any) {
	w.node.recorder.Eventf(w.pod.Load(), kind, reason, format, args...)
}

// image returns the image that a pod wants for a container.
func image(pod *corev1.Pod, name string) string {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name == name {
			return c.Image
		}
	}
	return ""
}

// gracePeriod is how long a pod's containers may take to end.
func gracePeriod(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// poke wakes the reader of a channel; pokes that were not read yet are one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
