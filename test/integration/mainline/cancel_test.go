package mainline

// This file ends rounds from outside: by spec.cancel, by deletion, and by spec.timeout.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestARoundThatIsEndedFromOutsideEndsItsProgramWithinTwoHeartbeats(t *testing.T) {
	t.Parallel()
	const heartbeat = 2 * time.Second
	const timeout = 3 * time.Second
	w := newWorld(t)
	w.team(heartbeat)
	people := []*api.Person{w.person("ada"), w.person("bob"), w.person("cleo")}
	canceled := w.holding("canceled", "ada", 0)
	deleted := w.holding("deleted", "bob", 1)
	for _, person := range people[:2] {
		w.personIs(person, "working")
	}

	// A negative time, of clocks that are read one after the other, is none.
	inTime := func(what string, took time.Duration) {
		t.Logf("the program ended %s %s", took.Round(time.Millisecond), what)
		if limit := 2 * heartbeat; took > limit {
			t.Errorf("the program ended %s %s, which is more than %s", took, what, limit)
		}
	}
	asked := time.Now()
	w.edit(canceled, func() { canceled.Spec.Cancel = true })
	inTime("after spec.cancel", w.notes(canceled).over(soon).Sub(asked))
	asked = time.Now()
	w.must(cluster.admin.Delete(t.Context(), deleted))
	inTime("after the deletion", w.notes(deleted).over(soon).Sub(asked))

	late := w.item("late", "cleo", "quiet", attempts(1), func(s *api.WorkItemSpec) {
		s.Timeout = &metav1.Duration{Duration: timeout}
	})
	started := w.notes(late).wait("start", 1).at
	inTime("after spec.timeout", w.notes(late).over(soon).Sub(started)-timeout)

	w.state(canceled, protocol.StateCanceled)
	if got := reason(canceled); got != api.ReasonCanceled {
		t.Errorf("the canceled item has the reason %q", got)
	}
	w.state(late, protocol.StateBlocked)
	if got := reason(late); got != api.ReasonAttemptsExhausted || !strings.Contains(late.Status.Progress, "spec.timeout (3s)") {
		t.Errorf("the item that took too long has the reason %q and says %q", got, late.Status.Progress)
	}
	eventually(t, soon, func() error {
		if err := w.reload(deleted); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the deleted object is still there (%w)", err)
		}
		return nil
	})

	// Everybody is free, and takes the next item.
	for _, person := range people {
		w.personIs(person, "idle")
		next := w.item("next-of-"+person.Name, person.Name, "quick")
		w.state(next, protocol.StateDone)
	}
	for _, item := range []*api.WorkItem{canceled, deleted, late} {
		if starts := w.notes(item).starts(); len(starts) != 1 {
			t.Errorf("%s was started %d times, not once", item.Name, len(starts))
		}
		if ends := w.notes(item).all("end"); len(ends) != 0 {
			t.Errorf("the program of %s came to its own end", item.Name)
		}
	}
	w.manager.stop()
	h := w.manager.history(string(deleted.UID))
	if h.item.State != protocol.StateCanceled || !h.item.Gone || len(h.rounds) != 1 || h.rounds[0].Outcome != model.OutcomeCanceled {
		t.Errorf("the store has the deleted item as %s, gone %t, with the rounds %+v", h.item.State, h.item.Gone, h.rounds)
	}
	// What was used until then counts, also of a round that nobody waits for any more.
	for _, item := range []*api.WorkItem{canceled, deleted} {
		if used := w.manager.history(string(item.UID)).usage.Tokens(); used != 200 {
			t.Errorf("the store has %d tokens for the %s item, not 200", used, item.Name)
		}
	}
}
