package mainline

// This file follows items through their lives where nothing breaks.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// ofUser is what belongs to the user of an object.
type ofUser struct {
	Spec                any
	Generation          int64
	Labels, Annotations map[string]string
	Finalizers          []string
	Owners              []metav1.OwnerReference
}

// usersPart lists what belongs to users, by kind and name.
func (w *world) usersPart() map[string]ofUser {
	w.Helper()
	parts := map[string]ofUser{}
	add := func(kind string, o client.Object, spec any) {
		parts[kind+"/"+o.GetName()] = ofUser{
			spec, o.GetGeneration(), o.GetLabels(), o.GetAnnotations(), o.GetFinalizers(), o.GetOwnerReferences(),
		}
	}
	var teams api.TeamList
	var people api.PersonList
	var items api.WorkItemList
	for _, list := range []client.ObjectList{&teams, &people, &items} {
		w.must(cluster.admin.List(w.Context(), list, client.InNamespace(w.namespace)))
	}
	for i := range teams.Items {
		add("Team", &teams.Items[i], teams.Items[i].Spec)
	}
	for i := range people.Items {
		add("Person", &people.Items[i], people.Items[i].Spec)
	}
	for i := range items.Items {
		add("WorkItem", &items.Items[i], items.Items[i].Spec)
	}
	return parts
}

// This test has a manager that watches all namespaces, so it does not run beside the others.
func TestAppliedWorkIsDoneByAgentsThatReallyDoIt(t *testing.T) {
	w := &world{T: t}
	w.makeNamespace()
	manifest, err := os.ReadFile(filepath.Join("testdata", "team.yaml"))
	w.must(err)
	apply := exec.CommandContext(t.Context(), cluster.kubectl, "--kubeconfig", cluster.state("kubeconfig"), //nolint:gosec // ours
		"--namespace", w.namespace, "apply", "--server-side", "-f", "-")
	apply.Stdin = strings.NewReader(strings.ReplaceAll(string(manifest), "REPOSITORY", "file://"+cluster.repository()))
	if output, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, output)
	}
	before := w.usersPart()
	if len(before) != 6 {
		t.Fatalf("%d objects were applied, not 6", len(before))
	}

	// The manager comes after the objects, as it may.
	w.manager = newManager(t, w.namespace, "")
	w.manager.start()

	for name, handle := range map[string]string{"for-ada": "ada", "for-grace": "gh", "for-anybody": ""} {
		item := &api.WorkItem{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		w.state(item, protocol.StateDone)
		status := item.Status
		if handle != "" && status.Person != handle {
			t.Errorf("%s was done by %q, not %q", name, status.Person, handle)
		}
		if status.Person != "ada" && status.Person != "gh" {
			t.Errorf("%s was done by %q, who is not of the team", name, status.Person)
		}
		branch := status.Person + "-" + string(item.UID)
		if want := "pushed " + branch; status.Summary != want || status.Progress != want {
			t.Errorf("%s has the summary %q and the progress %q, not %q", name, status.Summary, status.Progress, want)
		}
		want := api.UsageStatus{InputTokens: 100, OutputTokens: 100, Tokens: 200, CostUSD: "0.25"}
		if diff := cmp.Diff(want, status.Usage); diff != "" {
			t.Errorf("%s has another usage (-want +got):\n%s", name, diff)
		}
		if status.Rounds != 1 || status.Failures != 0 || status.LostRounds != 0 || status.FinishedAt == nil {
			t.Errorf("%s has %d rounds, %d failures, %d lost rounds, finished at %v", name, status.Rounds, status.Failures,
				status.LostRounds, status.FinishedAt)
		}
		if !apimeta.IsStatusConditionTrue(status.Conditions, api.ConditionComplete) {
			t.Errorf("%s is not Complete: %v", name, status.Conditions)
		}
		// The change is in the repository, made by that person.
		author, err := cluster.git(t.Context(), "-C", cluster.repository(), "log", "-1", "--format=%an", branch)
		if err != nil || author != status.Person {
			t.Errorf("the last commit of branch %s is by %q (%v)", branch, author, err)
		}
		text, err := cluster.git(t.Context(), "-C", cluster.repository(), "show", branch+":README")
		if want := "A site.\n" + status.Person + " was here"; err != nil || text != want {
			t.Errorf("README of branch %s is %q, not %q (%v)", branch, text, want, err)
		}
		// And the item's folder is in that person's home.
		person := &api.Person{ObjectMeta: metav1.ObjectMeta{Name: map[string]string{"ada": "ada", "gh": "grace"}[status.Person]}}
		found, err := filepath.Glob(filepath.Join(w.home(person), ".bullpen", "*", string(item.UID), "began"))
		if err != nil || len(found) != 1 {
			t.Errorf("%s has left %q in its folder (%v)", name, found, err)
		}
		if diff := cmp.Diff([]string{"round=1 resumed=false session=none"}, w.notes(item).starts()); diff != "" {
			t.Errorf("%s was not started once (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(before, w.usersPart()); diff != "" {
		t.Errorf("what belongs to users was changed (-before +after):\n%s", diff)
	}
	for _, name := range []string{"ada", "grace"} {
		w.personIs(&api.Person{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}, "idle")
	}
}

func TestAPersonWorksOneItemAtATimeByPriorityAndThenByAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(2 * time.Second)
	ada := w.person("ada")
	busy := w.item("busy", "ada", "quiet")
	w.notes(busy).wait("holds", 1)
	third := w.item("third", "ada", "quick", priority(20))
	first := w.item("first", "ada", "quick", priority(-5))
	second := w.item("second", "ada", "quick", priority(10))
	// Ages are in whole seconds.
	eventually(t, soon, func() error {
		if time.Since(third.CreationTimestamp.Time) < time.Second {
			return errors.New("the second is not over")
		}
		return nil
	})
	fourth := w.item("fourth", "ada", "quick", priority(20))
	queue := []*api.WorkItem{first, second, third, fourth}
	for _, item := range queue {
		w.state(item, protocol.StateQueued)
	}
	eventually(t, soon, func() error {
		if err := w.reload(ada); err != nil {
			return err
		}
		if ada.Status.State != "working" || ada.Status.CurrentItem != "busy" || ada.Status.Queued != 4 {
			return fmt.Errorf("ada is %s on %q, with %d queued", ada.Status.State, ada.Status.CurrentItem, ada.Status.Queued)
		}
		return nil
	})
	w.notes(busy).letGo()
	before := w.notes(busy).wait("end", 1).at
	for _, item := range queue {
		w.state(item, protocol.StateDone)
		start, end := w.notes(item).wait("start", 1).at, w.notes(item).wait("end", 1).at
		if !start.After(before) {
			t.Errorf("%s was started at %s, before the end at %s of the one before it", item.Name, start, before)
		}
		before = end
	}
}

func TestAnItemWaitsForWhatItDependsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(2 * time.Second)
	w.person("ada")
	w.person("bob")
	after := w.item("after", "bob", "quick", func(s *api.WorkItemSpec) { s.DependsOn = []string{"before"} })
	w.itemIs(after, func(item *api.WorkItem) error {
		if got := reason(item); got != api.ReasonDependencyNotFound {
			return fmt.Errorf("the reason is %q, not %q", got, api.ReasonDependencyNotFound)
		}
		return nil
	})
	before := w.item("before", "ada", "quiet")
	w.notes(before).wait("holds", 1)
	w.itemIs(after, func(item *api.WorkItem) error {
		if got := reason(item); got != api.ReasonDependencyPending || item.Status.State != "queued" {
			return fmt.Errorf("the reason is %q, not %q, and the state %s", got, api.ReasonDependencyPending, item.Status.State)
		}
		return nil
	})
	w.notes(before).letGo()
	w.state(before, protocol.StateDone)
	w.state(after, protocol.StateDone)
	if end, start := w.notes(before).wait("end", 1).at, w.notes(after).wait("start", 1).at; !start.After(end) {
		t.Errorf("the item was started at %s, before what it depends on ended at %s", start, end)
	}
}

func TestAnItemThatFailsIsTriedAgainLaterAndIsBlockedInTheEndUntilItsUserRunsItAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	backoff := 500 * time.Millisecond
	w.team(2*time.Second, func(s *api.TeamSpec) { s.Policies.Backoff = &metav1.Duration{Duration: backoff} })
	ada := w.person("ada")
	w.person("bob")
	flaky := w.item("flaky", "ada", "flaky", attempts(3))
	broken := w.item("broken", "bob", "broken", attempts(2))

	w.state(flaky, protocol.StateDone)
	if s := flaky.Status; s.Rounds != 3 || s.Failures != 2 || s.LostRounds != 0 || s.Summary != "third time lucky" {
		t.Errorf("after two failures it has %d rounds, %d failures, %d lost rounds and the summary %q", s.Rounds, s.Failures,
			s.LostRounds, s.Summary)
	}
	pauses(t, w.notes(flaky), backoff, 2*backoff)

	w.state(broken, protocol.StateBlocked)
	if s := broken.Status; reason(broken) != api.ReasonAttemptsExhausted || s.Rounds != 2 || s.Failures != 2 ||
		!strings.Contains(s.Progress, "it is broken") || !apimeta.IsStatusConditionTrue(s.Conditions, api.ConditionFailed) {
		t.Errorf("after its attempts it has the reason %q, %d rounds, %d failures, and says %q", reason(broken), s.Rounds, s.Failures,
			s.Progress)
	}
	pauses(t, w.notes(broken), backoff)
	w.notes(broken).put("mended", "")
	w.edit(broken, func() { broken.Spec.Rerun = "1" })
	w.state(broken, protocol.StateDone)
	if s := broken.Status; s.Rounds != 3 || s.Failures != 0 || s.Rerun != "1" || s.Summary != "mended" {
		t.Errorf("run again it has %d rounds, %d failures, rerun %q and the summary %q", s.Rounds, s.Failures, s.Rerun, s.Summary)
	}
	if starts := w.notes(broken).starts(); len(starts) != 3 {
		t.Errorf("it was started %d times, not 3: %q", len(starts), starts)
	}
	w.personIs(ada, "idle")
	if pods := w.pod(ada).Status; pods.Phase != corev1.PodRunning || pods.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("failing work has touched the agent's pod: %s", pods.Phase)
	}
}

// pauses checks that at least so much time was between a failure and the next start.
func pauses(t *testing.T, n notes, least ...time.Duration) {
	t.Helper()
	starts, failures := n.all("start"), n.all("fails")
	if len(starts) < len(least)+1 || len(failures) < len(least) {
		t.Errorf("the program noted %d starts and %d failures, which leaves no %d pauses", len(starts), len(failures), len(least))
		return
	}
	for i, pause := range least {
		if got := starts[i+1].at.Sub(failures[i].at); got < pause {
			t.Errorf("after failure %d it was started again after %s, not %s", i+1, got, pause)
		}
	}
}
