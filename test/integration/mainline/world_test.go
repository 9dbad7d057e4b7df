package mainline

// This file makes the world of a test: a namespace with a manager, a team, its people and their work. When a test failed, it
// shows what can be known about it.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/test/integration/env"
)

const (
	teamName = "site"
	roleName = "maker"
)

// world is a namespace with a manager.
type world struct {
	*testing.T
	namespace string
	manager   *manager
}

// newWorld makes a namespace with a manager of its own, that is up.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t}
	w.makeNamespace()
	w.manager = newManager(t, w.namespace, w.namespace)
	w.manager.start()
	return w
}

// makeNamespace makes one that no other test has. It goes after the test, without a wait.
func (w *world) makeNamespace() {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	w.must(cluster.admin.Create(w.Context(), namespace))
	w.namespace = namespace.Name
	w.Cleanup(func() {
		if w.Failed() {
			w.show()
		}
		// The agents have no office any more to hand back to, and are not waited for.
		ctx := context.Background()
		err := cluster.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(w.namespace), client.GracePeriodSeconds(0))
		if err := errors.Join(err, cluster.admin.Delete(ctx, namespace)); err != nil {
			w.Errorf("the namespace cannot be removed: %v", err)
		}
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// team makes the team. Its kinds of work, which are the worker's, need no review.
func (w *world) team(heartbeat time.Duration, edits ...func(*api.TeamSpec)) *api.Team {
	w.Helper()
	role := api.Role{Name: roleName, Title: "Maker"}
	for _, kind := range []string{"commit", "quick", "hold", "quiet", "flaky", "broken", "asking", "assigned"} {
		role.Work = append(role.Work, api.WorkKind{Kind: kind, Review: api.ReviewNone})
	}
	team := &api.Team{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: teamName},
		Spec: api.TeamSpec{
			Roles:        []api.Role{role},
			Repositories: []api.Repository{{Name: "site", URL: "file://" + cluster.repository()}},
			Agent:        api.AgentSettings{Command: []string{"worker"}},
			Policies: api.Policies{
				Heartbeat: &metav1.Duration{Duration: heartbeat},
				Backoff:   &metav1.Duration{Duration: 500 * time.Millisecond},
			},
		},
	}
	for _, edit := range edits {
		edit(&team.Spec)
	}
	w.must(cluster.admin.Create(w.Context(), team))
	return team
}

// person makes one. Its pod comes by itself.
func (w *world) person(name string) *api.Person {
	w.Helper()
	person := &api.Person{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       api.PersonSpec{Team: teamName, Role: roleName},
	}
	w.must(cluster.admin.Create(w.Context(), person))
	return person
}

// item makes a work item of a kind for a person.
func (w *world) item(name, person, kind string, edits ...func(*api.WorkItemSpec)) *api.WorkItem {
	w.Helper()
	item := &api.WorkItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       api.WorkItemSpec{Team: teamName, Person: api.Handle(person), Kind: kind, Title: "Work on " + name},
	}
	for _, edit := range edits {
		edit(&item.Spec)
	}
	w.must(cluster.admin.Create(w.Context(), item))
	return item
}

func priority(n int32) func(*api.WorkItemSpec) {
	return func(s *api.WorkItemSpec) { s.Priority = ptr.To(n) }
}

func attempts(n int32) func(*api.WorkItemSpec) {
	return func(s *api.WorkItemSpec) { s.Attempts = ptr.To(n) }
}

// edit changes an object's spec as its user does.
func (w *world) edit(o client.Object, change func()) {
	w.Helper()
	before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	change()
	w.must(cluster.admin.Patch(w.Context(), o, client.MergeFrom(before)))
}

func (w *world) reload(o client.Object) error {
	return cluster.admin.Get(w.Context(), client.ObjectKeyFromObject(o), o)
}

// itemIs waits until an item's status is what check wants, and has it in item then.
func (w *world) itemIs(item *api.WorkItem, check func(*api.WorkItem) error) {
	w.Helper()
	eventually(w.T, soon, func() error {
		if err := w.reload(item); err != nil {
			return err
		}
		if err := check(item); err != nil {
			return fmt.Errorf("item %s: %w", item.Name, err)
		}
		return nil
	})
}

// state waits for a state of an item.
func (w *world) state(item *api.WorkItem, state protocol.WorkItemState) {
	w.Helper()
	w.itemIs(item, func(item *api.WorkItem) error {
		if item.Status.State != api.WorkItemState(state) {
			return fmt.Errorf("it is %q, not %q", item.Status.State, state)
		}
		return nil
	})
}

// reason gives the reason of an item's Ready condition.
func reason(item *api.WorkItem) string {
	if c := apimeta.FindStatusCondition(item.Status.Conditions, api.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// personIs waits until the status of a person says that state.
func (w *world) personIs(person *api.Person, state string) {
	w.Helper()
	eventually(w.T, soon, func() error {
		if err := w.reload(person); err != nil {
			return err
		}
		if person.Status.State != api.PersonState(state) {
			return fmt.Errorf("person %s is %q, not %q", person.Name, person.Status.State, state)
		}
		return nil
	})
}

// pod gives the pod of a person's agent.
func (w *world) pod(person *api.Person) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{}
	w.must(cluster.admin.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: podspec.AgentName(person.Name)}, pod))
	return pod
}

// home is the folder that is the home of a person's agent.
func (w *world) home(person *api.Person) string {
	w.Helper()
	found, err := filepath.Glob(cluster.state("volumes", w.namespace+"_"+podspec.HomeName(person.Name)+"_*"))
	if err != nil || len(found) != 1 {
		w.Fatalf("the home of %s is not one folder but %q (%v)", person.Name, found, err)
	}
	return found[0]
}

// homeHas waits until a file that the agent keeps for itself has the text.
func (w *world) homeHas(person *api.Person, text string) {
	w.Helper()
	own := filepath.Join(w.home(person), ".bullpen")
	eventually(w.T, soon, func() error {
		found := errors.New("the agent of " + person.Name + " keeps nowhere: " + text)
		err := filepath.WalkDir(own, func(path string, entry os.DirEntry, _ error) error {
			if entry == nil || !entry.Type().IsRegular() {
				return nil
			}
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), text) {
				found = nil
			}
			return nil
		})
		return errors.Join(err, found)
	})
}

// killAgent ends the process of a person's agent as a crash does.
func (w *world) killAgent(person *api.Person) {
	w.Helper()
	pod := w.pod(person)
	uid, _, _ := strings.Cut(string(pod.UID), "-")
	text, err := os.ReadFile(cluster.state("pods", pod.Namespace+"_"+pod.Name+"_"+uid, "pids", "agent"))
	w.must(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	w.must(err)
	if !carries(pid, dirVariable+"="+cluster.dir, "BULLPEN_NAMESPACE="+w.namespace, "BULLPEN_PERSON="+person.HandleOrName()) {
		w.Fatalf("process %d is not the agent of %s", pid, person.Name)
	}
	w.must(syscall.Kill(pid, syscall.SIGKILL))
}

// restarted waits until the agent's container runs again.
func (w *world) restarted(person *api.Person) {
	w.Helper()
	eventually(w.T, soon, func() error {
		for _, status := range w.pod(person).Status.ContainerStatuses {
			if status.RestartCount > 0 && status.State.Running != nil {
				return nil
			}
		}
		return fmt.Errorf("the agent of %s was not restarted", person.Name)
	})
}

// writes lists what the manager wrote to a resource in the test's namespace, and succeeded.
func (w *world) writes(resource string) []auditv1.Event {
	w.Helper()
	events, err := env.ReadAuditLog(cluster.auditLog(), env.Writes(w.namespace, resource))
	w.must(err)
	return events
}

// show tells what can be known of a test that failed.
func (w *world) show() {
	w.tail("the manager's log", w.manager.logFile(), 60)
	logs, _ := filepath.Glob(cluster.state("pods", w.namespace+"_*", "logs", "*", "*.log"))
	for _, log := range logs {
		w.tail("the log "+log, log, 40)
	}
	found, _ := filepath.Glob(cluster.path("notes", "*", "log"))
	var items api.WorkItemList
	for _, list := range []client.ObjectList{&api.TeamList{}, &api.PersonList{}, &items, &corev1.PodList{}} {
		if err := cluster.admin.List(context.Background(), list, client.InNamespace(w.namespace)); err != nil {
			w.Logf("objects cannot be listed: %v", err)
			continue
		}
		_ = apimeta.EachListItem(list, func(o runtime.Object) error {
			if object, ok := o.(client.Object); ok {
				object.SetManagedFields(nil)
			}
			text, err := yaml.Marshal(o)
			w.Logf("%T:\n%s", o, text)
			return err
		})
	}
	for _, item := range items.Items {
		for _, path := range found {
			if filepath.Base(filepath.Dir(path)) == string(item.UID) {
				w.tail("the notes of "+item.Name, path, 20)
			}
		}
	}
}

func (w *world) tail(what, path string, lines int) {
	text, err := os.ReadFile(path)
	if err != nil {
		w.Logf("%s cannot be read: %v", what, err)
		return
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	w.Logf("the end of %s:\n%s", what, strings.Join(all[max(0, len(all)-lines):], "\n"))
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
