// Package controllers_test runs the controllers on a real API server, with an office in memory. There is no kubelet and no
// garbage collector: tests play the former by writing pod status.
package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/controllers"
	"github.com/bullpen-dev/bullpen/test/integration/env"
)

var cluster *env.Env

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	env.Main(m, &cluster, env.WithAudit())
}

var operator = podspec.Operator{Image: "bullpen-agent:test", OfficeURL: "https://bullpen-office.bullpen.svc:8443"}

// world is a namespace with controllers that watch it, and their office.
type world struct {
	t         *testing.T
	namespace string
	office    *memoryOffice
	// theOffice is what the controllers speak to: office, unless a test has another.
	theOffice controllers.Office
	ca        *memoryCA
	clock     *clock
	stop      func()
}

// newWorld starts controllers in a namespace of their own.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, namespace: cluster.Namespace(t), office: newMemoryOffice(), ca: newMemoryCA("first-ca"), clock: &clock{}}
	w.theOffice = w.office
	w.start()
	return w
}

// managers is the group of users that have the manager's role and nothing else.
const managers = "bullpen-managers"

var (
	grant    sync.Once
	granted  *rest.Config
	errGrant error
)

// managerConfig reaches the API server with the rights of config/rbac, so that every test also shows that they are enough.
func managerConfig(t *testing.T) *rest.Config {
	t.Helper()
	grant.Do(func() {
		granted = cluster.User(t, "bullpen-manager", managers)
		errGrant = grantRole(context.Background())
	})
	if errGrant != nil {
		t.Fatal(errGrant)
	}
	return rest.CopyConfig(granted)
}

func grantRole(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(cluster.Root, "config", "rbac", "role.yaml"))
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		if strings.Contains(document, "kind: ClusterRole") {
			if err := yaml.UnmarshalStrict([]byte(document), role); err != nil {
				return err
			}
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: managers}},
	}
	return errors.Join(cluster.Client.Create(ctx, role), cluster.Client.Create(ctx, binding))
}

// start runs a manager until stop or the end of the test.
func (w *world) start() {
	w.t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(managerConfig(w.t), ctrl.Options{
		Scheme: cluster.Scheme,
		Cache: cache.Options{
			ByObject:          controllers.CacheByObject(),
			DefaultNamespaces: map[string]cache.Config{w.namespace: {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
		},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	err = controllers.Setup(mgr, controllers.Options{Office: w.theOffice, Operator: operator, CA: w.ca, Now: w.clock.now})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager ended with %v", err)
		}
	}
	w.t.Cleanup(w.stop)
}

// clock is the real one, moved ahead.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// eventually waits until check is nil.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	if err := cluster.Client.Create(w.t.Context(), object); err != nil {
		w.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

func (w *world) get(name string, into client.Object) error {
	return cluster.Client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, into)
}

func (w *world) mustGet(name string, into client.Object) {
	w.t.Helper()
	if err := w.get(name, into); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(object client.Object, options ...client.DeleteOption) {
	w.t.Helper()
	if err := cluster.Client.Delete(w.t.Context(), object, options...); err != nil {
		w.t.Fatalf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// change reads an object and writes it changed.
func (w *world) change(name string, object client.Object, edit func()) {
	w.t.Helper()
	w.eventually("change "+name, func() error {
		if err := w.get(name, object); err != nil {
			return err
		}
		edit()
		return cluster.Client.Update(w.t.Context(), object)
	})
}

// changePod writes a pod's status, as a kubelet does.
func (w *world) changePod(name string, edit func(*corev1.Pod)) {
	w.t.Helper()
	w.eventually("write the status of pod "+name, func() error {
		pod := &corev1.Pod{}
		if err := w.get(name, pod); err != nil {
			return err
		}
		edit(pod)
		return cluster.Client.Status().Update(w.t.Context(), pod)
	})
}

// schedule gives a pod a node, as a scheduler does: deleted, it then stays until its node has confirmed.
func (w *world) schedule(pod *corev1.Pod, node string) {
	w.t.Helper()
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := cluster.Client.SubResource("binding").Create(w.t.Context(), pod, binding); err != nil {
		w.t.Fatal(err)
	}
}

// confirmGone removes a terminating pod, as a kubelet does in the end.
func (w *world) confirmGone(pod *corev1.Pod) {
	w.t.Helper()
	w.delete(pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
}

func (w *world) team(name string, edit ...func(*api.Team)) *api.Team {
	w.t.Helper()
	team := &api.Team{ObjectMeta: w.meta(name)}
	for _, e := range edit {
		e(team)
	}
	w.create(team)
	return team
}

func (w *world) person(name string, edit ...func(*api.Person)) *api.Person {
	w.t.Helper()
	person := &api.Person{ObjectMeta: w.meta(name), Spec: api.PersonSpec{Team: "core"}}
	for _, e := range edit {
		e(person)
	}
	w.create(person)
	return person
}

func (w *world) item(name string, edit ...func(*api.WorkItem)) *api.WorkItem {
	w.t.Helper()
	item := &api.WorkItem{ObjectMeta: w.meta(name), Spec: api.WorkItemSpec{Team: "core", Person: "ada", Title: "Do it"}}
	for _, e := range edit {
		e(item)
	}
	w.create(item)
	return item
}

// runningPod waits for a person's pod and starts it.
func (w *world) runningPod(name string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{}
	w.eventually("a pod "+name, func() error { return w.get(name, pod) })
	w.changePod(name, running)
	return pod
}

func running(pod *corev1.Pod) {
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "agent", Image: "x", ImageID: "x",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Truncate(time.Second))}},
	}}
}

// has says that a condition has a status and a reason; a status of "" wants it absent.
func has(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) error {
	for _, c := range conditions {
		if c.Type != kind {
			continue
		}
		if c.Status == status && c.Reason == reason {
			return nil
		}
		return fmt.Errorf("%s is %s/%s (%s), not %s/%s", kind, c.Status, c.Reason, c.Message, status, reason)
	}
	if status == "" {
		return nil
	}
	return fmt.Errorf("there is no condition %s, only %v", kind, conditions)
}

func (w *world) personHas(name, kind string, status metav1.ConditionStatus, reason string) *api.Person {
	w.t.Helper()
	person := &api.Person{}
	w.eventually(fmt.Sprintf("%s of person %s", kind, name), func() error {
		if err := w.get(name, person); err != nil {
			return err
		}
		return has(person.Status.Conditions, kind, status, reason)
	})
	return person
}

func (w *world) itemHas(name string, check func(*api.WorkItem) error) *api.WorkItem {
	w.t.Helper()
	item := &api.WorkItem{}
	w.eventually("status of item "+name, func() error {
		item = &api.WorkItem{}
		if err := w.get(name, item); err != nil {
			return err
		}
		return check(item)
	})
	return item
}

// writes counts successful writes to resources of the namespace.
func (w *world) writes(resources ...string) int {
	w.t.Helper()
	n := 0
	for _, resource := range resources {
		n += len(cluster.AuditEvents(w.t, env.Writes(w.namespace, resource)))
	}
	return n
}

// allWrites lists successful writes of the namespace, but of events.
func (w *world) allWrites() []string {
	w.t.Helper()
	var list []string
	for _, e := range cluster.AuditEvents(w.t, func(e *auditv1.Event) bool {
		return e.ObjectRef != nil && e.ObjectRef.Namespace == w.namespace && e.ObjectRef.Resource != "events" &&
			env.Writes(w.namespace, resourceOf(e))(e)
	}) {
		list = append(list, e.Verb+" "+resourceOf(&e)+" "+e.ObjectRef.Name)
	}
	return list
}

func resourceOf(e *auditv1.Event) string {
	if e.ObjectRef.Subresource != "" {
		return e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
	}
	return e.ObjectRef.Resource
}
