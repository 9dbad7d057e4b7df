package mainline

// This file ends processes in the middle of rounds. Whatever ends, the work ends once, and is counted once.

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// heldUsage is what the kind hold uses in all, in however many rounds and processes.
var heldUsage = model.Usage{InputTokens: 300, OutputTokens: 300, CostMicroUSD: 250_000, CostKnown: true}

// holding makes an item of the kind hold, and waits until the office has heard all that its program says before it holds: a
// session, a journal line and progress. others is how many such items the manager's process has heard before.
func (w *world) holding(name, person string, others int) *api.WorkItem {
	w.Helper()
	item := w.item(name, person, "hold")
	w.notes(item).wait("holds", 1)
	w.manager.answered(others+1, "session", "ok")
	w.manager.answered(others+1, "journal", "ok")
	w.state(item, protocol.StateActive)
	return item
}

// doneOnce checks that an item of the kind hold ended once, and what its status counts.
func (w *world) doneOnce(item *api.WorkItem, rounds, lost int32) {
	w.Helper()
	w.state(item, protocol.StateDone)
	s := item.Status
	if s.Rounds != rounds || s.LostRounds != lost || s.Failures != 0 || s.Summary != "held on" {
		w.Errorf("%s has %d rounds, %d lost rounds, %d failures and the summary %q, not %d, %d, 0 and %q", item.Name, s.Rounds,
			s.LostRounds, s.Failures, s.Summary, rounds, lost, "held on")
	}
	if want := (api.UsageStatus{InputTokens: 300, OutputTokens: 300, Tokens: 600, CostUSD: "0.25"}); s.Usage != want {
		w.Errorf("%s has used %+v, not %+v", item.Name, s.Usage, want)
	}
	if s.SessionID != "s-"+string(item.UID) {
		w.Errorf("%s has the session %q", item.Name, s.SessionID)
	}
}

// recordedOnce checks what the store has of an item of the kind hold: its journal, how its rounds ended, and its usage. The
// manager must be down.
func (w *world) recordedOnce(item *api.WorkItem, journal []string, outcomes ...model.RoundOutcome) {
	w.Helper()
	h := w.manager.history(string(item.UID))
	if h.item.State != protocol.StateDone {
		w.Errorf("the store has %s as %s", item.Name, h.item.State)
	}
	if diff := cmp.Diff(journal, h.journal); diff != "" {
		w.Errorf("the store has another journal of %s (-want +got):\n%s", item.Name, diff)
	}
	var ends []model.RoundOutcome
	for _, round := range h.rounds {
		ends = append(ends, round.Outcome)
	}
	if diff := cmp.Diff(outcomes, ends); diff != "" {
		w.Errorf("the rounds of %s ended in another way (-want +got):\n%s", item.Name, diff)
	}
	if h.usage != heldUsage {
		w.Errorf("the store's ledger has %+v for %s, not %+v", h.usage, item.Name, heldUsage)
	}
}

func TestAKilledManagerLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(time.Second)
	w.person("ada")
	w.person("bob")
	w.person("cleo")
	// One goes on after the manager is back, one says and does all the rest while there is no manager, one does so while the
	// manager has the messages and does not get to them any more.
	later := w.holding("later", "ada", 0)
	alone := w.holding("alone", "bob", 1)
	unread := w.holding("unread", "cleo", 2)

	w.manager.freeze()
	w.notes(unread).put("say", "said to a frozen manager")
	w.homeHas(&api.Person{ObjectMeta: named("cleo")}, "said to a frozen manager")
	w.notes(unread).letGo()
	w.notes(unread).wait("end", 1)
	w.manager.kill()
	w.notes(alone).put("say", "said to nobody")
	w.homeHas(&api.Person{ObjectMeta: named("bob")}, "said to nobody")
	w.notes(alone).letGo()
	w.notes(alone).wait("end", 1)
	w.manager.start()
	w.doneOnce(alone, 1, 0)
	w.doneOnce(unread, 1, 0)
	// Its program never noticed.
	w.state(later, protocol.StateActive)
	if !w.notes(later).runs() {
		t.Error("the program of a round that goes on was ended")
	}
	w.notes(later).letGo()
	w.doneOnce(later, 1, 0)

	for _, item := range []*api.WorkItem{later, alone, unread} {
		if diff := cmp.Diff([]string{"round=1 resumed=false session=none"}, w.notes(item).starts()); diff != "" {
			t.Errorf("%s was not started once (-want +got):\n%s", item.Name, diff)
		}
	}
	w.manager.stop()
	w.recordedOnce(later, []string{"began"}, model.OutcomeDone)
	w.recordedOnce(alone, []string{"began", "said to nobody"}, model.OutcomeDone)
	w.recordedOnce(unread, []string{"began", "said to a frozen manager"}, model.OutcomeDone)
}

func TestAKilledAgentGoesOnWithItsRoundAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(time.Second)
	ada := w.person("ada")
	item := w.holding("held", "ada", 0)
	// Kubernetes tells of a container's start in whole seconds: in the second of the accept itself, the office cannot tell a
	// container that died from one that accepted.
	accepted := w.notes(item).all("start")[0].at
	eventually(t, soon, func() error {
		if time.Now().Truncate(time.Second).After(accepted) {
			return nil
		}
		return errors.New("the second is not over")
	})

	// The agent is killed when the office has a message of its and could not acknowledge it: it must send it again, and the
	// office must know it again.
	w.manager.freeze()
	w.notes(item).put("say", "half done")
	w.homeHas(ada, "half done")
	w.killAgent(ada)
	w.notes(item).over(soon)
	w.manager.thaw()
	w.restarted(ada)

	start := w.notes(item).wait("start", 2)
	if want := "round=1 resumed=true session=s-" + string(item.UID); start.rest != want {
		t.Errorf("the program was started again with %q, not %q", start.rest, want)
	}
	w.manager.answered(2, "session", "ok")
	w.manager.answered(3, "journal", "ok")
	w.notes(item).letGo()
	w.doneOnce(item, 1, 1)
	if starts := w.notes(item).starts(); len(starts) != 2 {
		t.Errorf("the program was started %d times, not twice: %q", len(starts), starts)
	}
	w.personIs(ada, "idle")
	w.manager.stop()
	w.recordedOnce(item, []string{"began", "half done", "went on"}, model.OutcomeDone)
}

func TestWorkGoesOnInANewPodWithItsSessionBeforeAllOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(time.Second)
	ada := w.person("ada")
	item := w.holding("held", "ada", 0)
	urgent := w.item("urgent", "ada", "quick", priority(-100))
	w.state(urgent, protocol.StateQueued)

	old := w.pod(ada)
	w.must(cluster.admin.Delete(t.Context(), old))
	w.notes(item).wait("term", 1)
	start := w.notes(item).wait("start", 2)
	if want := "round=2 resumed=false session=s-" + string(item.UID); start.rest != want {
		t.Errorf("the program was started again with %q, not %q", start.rest, want)
	}
	if starts := w.notes(urgent).starts(); len(starts) != 0 {
		t.Error("another item was started before the one that was interrupted")
	}
	eventually(t, soon, func() error {
		pod := w.pod(ada)
		if pod.UID == old.UID || pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the pod is %s, %s", pod.UID, pod.Status.Phase)
		}
		return nil
	})
	w.notes(item).letGo()
	w.doneOnce(item, 2, 0)
	w.state(urgent, protocol.StateDone)
	if starts := w.notes(item).starts(); len(starts) != 2 {
		t.Errorf("the program was started %d times, not twice: %q", len(starts), starts)
	}
	w.manager.stop()
	w.recordedOnce(item, []string{"began", "began"}, model.OutcomeInterrupted, model.OutcomeDone)
}
