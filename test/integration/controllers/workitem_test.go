package controllers_test

// This file tests the WorkItem controller: facts in, status out, within its budget of writes.

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func inState(state protocol.WorkItemState) func(*api.WorkItem) error {
	return func(i *api.WorkItem) error {
		if i.Status.State != api.WorkItemState(state) {
			return fmt.Errorf("it is %q", i.Status.State)
		}
		return nil
	}
}

func TestAnItemOfOneRoundCostsThreeStatusWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.item("one", func(i *api.WorkItem) { i.Labels = map[string]string{"team": "x"}; i.Spec.Body = "All of it" })
	uid := string(before.UID)
	w.itemHas("one", inState(protocol.StateQueued))
	started := time.Now().Truncate(time.Second)
	w.office.showItem(uid, func(v *model.ItemView) { v.Assignee = "ada" }) // offered
	w.office.showItem(uid, func(v *model.ItemView) { v.State, v.Rounds, v.StartedAt = protocol.StateActive, 1, started })
	w.itemHas("one", inState(protocol.StateActive))
	for n := range 50 {
		w.office.showItem(uid, func(v *model.ItemView) { v.Progress, v.SessionID = fmt.Sprintf("step %d", n), "session" })
	}
	w.office.showItem(uid, func(v *model.ItemView) {
		v.State, v.FinishedAt = protocol.StateDone, started.Add(time.Second)
		v.End = model.Why{Reason: model.ReasonDone, Message: "The agent handed it back."}
		v.Summary = "It works.\n" + strings.Repeat("é", 5000)
		v.Links = make([]protocol.Link, 20)
		for i := range v.Links {
			v.Links[i].URL = fmt.Sprintf("https://example.com/%d", i)
		}
		v.Usage = model.Usage{InputTokens: 10, OutputTokens: 5, CostMicroUSD: 1_250_000, CostKnown: true}
		v.Models = []model.ModelUsage{{Model: "m", Usage: v.Usage}}
	})
	after := w.itemHas("one", inState(protocol.StateDone))

	if writes := w.writes("workitems/status"); writes > 3 {
		t.Errorf("its life cost %d status writes", writes)
	}
	s := after.Status
	if s.Person != "ada" || s.Rounds != 1 || s.SessionID != "session" || len(s.Links) != 16 || len([]rune(s.Summary)) != 4096 ||
		s.Usage.Tokens != 15 || s.Usage.CostUSD != "1.25" || len(s.Models) != 1 || !s.StartedAt.Time.Equal(started) ||
		s.Store.ID != storeID || s.Store.Revision == 0 || s.ObservedGeneration != after.Generation {
		t.Errorf("the status is %+v", s)
	}
	for kind, status := range map[string]metav1.ConditionStatus{
		api.ConditionReady: metav1.ConditionTrue, api.ConditionComplete: metav1.ConditionTrue, api.ConditionFailed: "", api.ConditionStalled: "",
	} {
		if err := has(s.Conditions, kind, status, api.ReasonDone); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(before.Spec, after.Spec) + cmp.Diff(before.Labels, after.Labels) + cmp.Diff(before.Annotations, after.Annotations); diff != "" {
		t.Errorf("the user's part of the item changed:\n%s", diff)
	}
}

func TestProgressIsShownEveryHalfMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	uid := string(w.item("one").UID)
	w.itemHas("one", inState(protocol.StateQueued))
	w.office.showItem(uid, func(v *model.ItemView) { v.State = protocol.StateActive })
	w.itemHas("one", inState(protocol.StateActive))
	before, looks := w.writes("workitems/status"), w.office.count("SyncItem one")
	for n := range 20 {
		w.office.showItem(uid, func(v *model.ItemView) { v.Progress = fmt.Sprintf("step %d", n) })
		w.eventually("the controller looks", func() error {
			if w.office.count("SyncItem one") <= looks+n {
				return errors.New("it does not")
			}
			return nil
		})
	}
	if writes := w.writes("workitems/status") - before; writes != 0 {
		t.Errorf("20 lines of progress within half a minute cost %d writes", writes)
	}
	w.clock.advance(31 * time.Second)
	w.office.showItem(uid, func(v *model.ItemView) { v.Progress = "last step" })
	w.itemHas("one", func(i *api.WorkItem) error {
		if i.Status.Progress != "last step" {
			return fmt.Errorf("it shows %q", i.Status.Progress)
		}
		return nil
	})
	if writes := w.writes("workitems/status") - before; writes != 1 {
		t.Errorf("the refresh cost %d writes", writes)
	}
}

func TestWhatHoldsAnItemIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	uid := string(w.item("one").UID)
	w.itemHas("one", inState(protocol.StateQueued))
	tests := []struct {
		name                           string
		state                          protocol.WorkItemState
		hold, end                      string
		ready, failed, stalled, finish metav1.ConditionStatus
	}{
		{name: "nobody of that name yet", state: protocol.StateQueued, hold: model.ReasonPersonNotFound, ready: metav1.ConditionFalse},
		{name: "it waits for itself", state: protocol.StateQueued, hold: model.ReasonDependencyCycle, ready: metav1.ConditionFalse, stalled: metav1.ConditionTrue},
		{name: "it waits for something outside", state: protocol.StateWaiting, end: model.ReasonWaiting, ready: metav1.ConditionTrue},
		{name: "it failed too often", state: protocol.StateBlocked, end: model.ReasonAttemptsExhausted,
			ready: metav1.ConditionFalse, failed: metav1.ConditionTrue, stalled: metav1.ConditionTrue},
		{name: "it was canceled", state: protocol.StateCanceled, end: model.ReasonCanceled, ready: metav1.ConditionTrue, failed: metav1.ConditionTrue},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w.office.showItem(uid, func(v *model.ItemView) {
				v.State, v.Hold, v.End = test.state, model.Why{Reason: test.hold, Message: test.name}, model.Why{Reason: test.end, Message: test.name}
			})
			reason := test.hold + test.end
			w.itemHas("one", func(i *api.WorkItem) error {
				return errors.Join(
					has(i.Status.Conditions, api.ConditionReady, test.ready, reason),
					has(i.Status.Conditions, api.ConditionFailed, test.failed, reason),
					has(i.Status.Conditions, api.ConditionStalled, test.stalled, reason),
					has(i.Status.Conditions, api.ConditionComplete, "", ""),
				)
			})
		})
	}
}

func TestAnItemThatTheOfficeCannotTakeSaysSoAndHeals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.office.with(func() { w.office.failing = errors.New("disk full") })
	w.item("one")
	w.itemHas("one", func(i *api.WorkItem) error {
		return has(i.Status.Conditions, api.ConditionReady, metav1.ConditionFalse, api.ReasonOfficeUnavailable)
	})
	w.office.with(func() { w.office.failing = nil })
	w.itemHas("one", func(i *api.WorkItem) error {
		return has(i.Status.Conditions, api.ConditionReady, metav1.ConditionTrue, api.ReasonAccepted)
	})
}

func TestTheOfficeHearsWhatAnItemSaysAndWhatItsStatusRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attempts, priority := int32(5), int32(7)
	parent := w.item("parent")
	item := w.item("one", func(i *api.WorkItem) {
		i.Spec = api.WorkItemSpec{
			Team: "core", Role: "developer", Title: "T", Body: "B", Parent: "parent", DependsOn: []string{"parent"}, Attempts: &attempts,
			Priority: &priority, Timeout: &metav1.Duration{Duration: time.Hour}, Subject: &api.Subject{Type: "ticket", Ref: "X-1"},
		}
	})
	w.itemHas("one", inState(protocol.StateQueued))
	facts := func() (f model.ItemFacts) {
		w.office.with(func() { f = w.office.facts[string(item.UID)] })
		return f
	}
	want := model.ItemSpec{
		Generation: 1, Team: "core", Role: "developer", Kind: "task", Title: "T", Body: "B", Requester: "requester", Priority: 7,
		Trigger: protocol.TriggerHuman, Subject: &protocol.Subject{Type: "ticket", Ref: "X-1"}, Parent: "parent", ParentID: string(parent.UID),
		DependsOn: []string{"parent"}, Attempts: 5, Timeout: time.Hour,
	}
	got := facts()
	want.Hash = got.Spec.Hash
	if diff := cmp.Diff(want, got.Spec); diff != "" || got.Spec.Hash == "" {
		t.Errorf("the spec: want -, got +:\n%s", diff)
	}

	finished := time.Now().Truncate(time.Second).UTC()
	usage := model.Usage{InputTokens: 3, CostMicroUSD: 20_000, CostKnown: true}
	w.office.showItem(string(item.UID), func(v *model.ItemView) {
		v.State, v.Assignee, v.Rounds, v.Failures, v.LostRounds = protocol.StateDone, "ada", 3, 1, 1
		v.SessionID, v.Summary, v.FinishedAt, v.Usage = "s", "done", finished, usage
		v.End = model.Why{Reason: model.ReasonSilent, Message: "Nothing to say."}
		v.Models = []model.ModelUsage{{Model: "m", Usage: usage}}
	})
	w.itemHas("one", inState(protocol.StateDone))
	w.eventually("the office hears of the recorded status", func() error {
		got := facts().Recorded
		wantRecorded := model.Recorded{
			StoreID: storeID, Revision: got.Revision, State: protocol.StateDone, End: model.Why{Reason: model.ReasonSilent, Message: "Nothing to say."},
			Assignee: "ada", Rounds: 3, Failures: 1, LostRounds: 1, SessionID: "s", Summary: "done", Usage: usage, FinishedAt: finished,
			Models: []model.ModelUsage{{Model: "m", Usage: usage}},
		}
		if diff := cmp.Diff(wantRecorded, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestAFinishedItemGoesAfterItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ttl := int32(60)
	item := w.item("one", func(i *api.WorkItem) { i.Spec.TTLSecondsAfterFinished = &ttl })
	uid := string(item.UID)
	w.itemHas("one", inState(protocol.StateQueued))
	w.office.showItem(uid, func(v *model.ItemView) { v.State, v.FinishedAt = protocol.StateDone, w.clock.now() })
	w.itemHas("one", inState(protocol.StateDone))
	if n := w.office.count("ForgetItem %s true", uid); n != 0 {
		t.Fatal("it went at once")
	}
	w.clock.advance(61 * time.Second)
	w.office.showItem(uid, func(*model.ItemView) {})
	w.eventually("the item is gone", func() error {
		if err := w.get("one", &api.WorkItem{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	// More than once where the cache does not show the deletion yet; the office takes a repeat for what it is.
	if n := w.office.count("ForgetItem %s true", uid); n == 0 {
		t.Error("the office was not told that it expired")
	}
}

func TestADeletedItemIsCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.item("one")
	w.itemHas("one", inState(protocol.StateQueued))
	w.delete(first)
	second := w.item("one")
	w.eventually("the first one is canceled and the second is not", func() error {
		if w.office.count("ForgetItem %s false", first.UID) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	w.itemHas("one", inState(protocol.StateQueued))
	if n := w.office.count("ForgetItem %s false", second.UID); n != 0 {
		t.Error("the second one was canceled")
	}
}

func TestWhatWasDeletedWhileNoManagerRan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	person := w.person("ada")
	kept, deleted := w.item("kept"), w.item("deleted")
	for _, name := range []string{"kept", "deleted"} {
		w.itemHas(name, inState(protocol.StateQueued))
	}
	w.stop()
	w.delete(deleted)
	w.office.with(func() { w.office.retained, w.office.log, w.office.calls = nil, nil, map[string]int{} })
	w.start()
	w.eventually("the kept item is looked at", func() error {
		if w.office.count("SyncItem kept") == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	w.office.with(func() {
		want := []model.Live{{
			Teams: []model.TeamKey{{Namespace: w.namespace, Name: "core"}}, People: []string{string(person.UID)}, Items: []string{string(kept.UID)},
		}}
		if diff := cmp.Diff(want, w.office.retained); diff != "" {
			t.Errorf("what is live: want -, got +:\n%s", diff)
		}
		if len(w.office.log) == 0 || w.office.log[0] != "Retain" {
			t.Errorf("the office heard something before it knew what is live: %v", w.office.log)
		}
	})
}

// The order in status is read by kubectl, which compares texts in its own way.
func TestKubectlSortsItemsAsTheyRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	urgent, usual := int32(9), int32(100)
	// In the order in which they run. Those of one second run by their ids, whose digits are no numbers.
	items := []struct {
		name string
		edit func(*api.WorkItem)
		view func(*model.ItemView)
	}{
		{"interrupted", nil, func(v *model.ItemView) { v.Front = true }},
		{"urgent", func(i *api.WorkItem) { i.Spec.Priority = &urgent }, func(*model.ItemView) {}},
		{"placed-first", nil, func(v *model.ItemView) { v.Place = &model.Rank{Priority: usual, Key: "!"} }},
		{"ten", nil, func(v *model.ItemView) { v.ID = "10-x" }},
		{"nine", nil, func(v *model.ItemView) { v.ID = "9-x" }},
		{"placed-after-nine", nil, func(v *model.ItemView) {
			nine := model.Item{ID: "9-x", CreatedAt: noon, Spec: model.ItemSpec{Priority: usual}}
			v.Place = &model.Rank{Priority: usual, Key: nine.Rank().Key + "P"}
		}},
		{"letter", nil, func(v *model.ItemView) { v.ID = "a-x" }},
		{"later", nil, func(v *model.ItemView) { v.CreatedAt = noon.Add(time.Second) }},
		{"for-a-role", func(i *api.WorkItem) { i.Spec.Person, i.Spec.Role = "", "developer" }, func(v *model.ItemView) { v.Assignee = "" }},
	}
	var want []string
	for _, it := range items {
		want = append(want, it.name)
		made := w.item(it.name, func(i *api.WorkItem) {
			if it.edit != nil {
				it.edit(i)
			}
		})
		w.office.showItem(string(made.UID), func(v *model.ItemView) {
			v.State, v.Assignee, v.CreatedAt, v.Namespace, v.Name, v.StoreID = protocol.StateQueued, "ada", noon, w.namespace, it.name, storeID
			it.view(v)
		})
	}
	kubeconfig := cluster.Kubeconfig(t)
	w.eventually("kubectl sorts the items", func() error {
		kubectl := exec.CommandContext(t.Context(), kubectlPath(t), "--kubeconfig", kubeconfig, "-n", w.namespace, "get", "workitems",
			"--sort-by=.status.order", "--no-headers", "-o", "custom-columns=NAME:.metadata.name,ORDER:.status.order")
		output, err := kubectl.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		var got []string
		for line := range strings.Lines(string(output)) {
			name, order := strings.Fields(line)[0], strings.Fields(line)[1]
			if order == "<none>" {
				return fmt.Errorf("%s has no order yet", name)
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s\n%s", diff, output)
		}
		return nil
	})
}

// kubectlPath is the machine's kubectl, or the one that was built beside the API server.
func kubectlPath(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("kubectl"); err == nil {
		return path
	}
	for _, dir := range []string{os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join(cluster.Root, ".cache", "k8s")} {
		if path := filepath.Join(dir, "kubectl"); dir != "" {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	t.Fatal("there is no kubectl: run make localcluster, which builds one")
	return ""
}
