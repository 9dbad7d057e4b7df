package mainline

// This file counts writes to the API server, in its own audit log.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// statusWrites gives what the manager wrote to the status of each item, by name, write by write.
func (w *world) statusWrites() map[string][]string {
	w.Helper()
	patches := map[string][]string{}
	for _, event := range w.writes("workitems/status") {
		patches[event.ObjectRef.Name] = append(patches[event.ObjectRef.Name], string(event.RequestObject.Raw))
	}
	return patches
}

// leavesUsersPartAlone checks that the manager wrote nothing of a Team, a Person or a WorkItem but its status.
func (w *world) leavesUsersPartAlone() {
	w.Helper()
	for _, resource := range []string{"workitems", "people", "teams"} {
		for _, event := range w.writes(resource) {
			w.Errorf("the manager sent a %s of %s %s", event.Verb, resource, event.ObjectRef.Name)
		}
	}
}

func TestAnItemWithOneRoundCostsAtMostThreeStatusWritesAndARestartOfTheManagerNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(time.Second)
	ada := w.person("ada")
	bob := w.person("bob")
	// They come at once with their team and people, as from one file: one that says all there is to say in its round, one that is
	// asked of a role, and some that follow each other fast.
	items := []*api.WorkItem{w.item("by-role", "", "quick", func(s *api.WorkItemSpec) { s.Role = roleName })}
	for n := range 5 {
		items = append(items, w.item(fmt.Sprintf("queued-%d", n), "ada", "quick"))
	}
	held := w.holding("held", "bob", 0)
	items = append(items, held)
	w.notes(held).letGo()
	for _, item := range items {
		w.state(item, protocol.StateDone)
	}
	for _, person := range []*api.Person{ada, bob} {
		w.personIs(person, "idle")
	}
	written := w.statusWrites()
	for _, item := range items {
		if patches := written[item.Name]; len(patches) < 1 || len(patches) > 3 {
			t.Errorf("the status of %s was written %d times, not once to three times:\n%s", item.Name, len(patches),
				strings.Join(patches, "\n"))
		}
	}

	// A new manager looks at everything again. When it has done new work, it has.
	w.manager.stop()
	w.manager.start()
	after := w.item("after", "ada", "quick")
	w.state(after, protocol.StateDone)
	for _, person := range []*api.Person{ada, bob} {
		w.personIs(person, "idle")
	}
	rewritten := w.statusWrites()
	for _, item := range items {
		if diff := cmp.Diff(written[item.Name], rewritten[item.Name]); diff != "" {
			t.Errorf("a restart of the manager cost writes to the status of %s, which was done (-before +after):\n%s", item.Name, diff)
		}
	}
	w.leavesUsersPartAlone()
}

// A heartbeat costs no write, however often it comes: what counts is the number of heartbeats, of which a person with a heartbeat of
// one second owes 60 in a minute. So this test lets more than that pass, of people who work and of people who do not; there are
// several of them, so that it takes less than a minute, at a pace at which a busy machine cuts no connection. And it lasts
// longer than the longest time for which a write is held back (30 s, for progress), so that nothing is just postponed beyond its
// end.
func TestHeartbeatsCostNoWrite(t *testing.T) {
	t.Parallel()
	const heartbeats, atLeast = 60, 35 * time.Second
	w := newWorld(t)
	team := w.team(2 * time.Second)
	ada := w.person("ada")
	people := []*api.Person{ada, w.person("bob"), w.person("cleo"), w.person("dana")}
	item := w.item("quiet", "ada", "quiet")
	w.notes(item).wait("holds", 1)
	w.state(item, protocol.StateActive)
	w.personIs(ada, "working")
	for _, person := range people[1:] {
		w.personIs(person, "idle")
	}
	eventually(t, soon, func() error {
		if err := w.reload(team); err != nil {
			return err
		}
		if s := team.Status; s.People.Working != 1 || s.People.Idle != 3 || s.WorkItems.Active != 1 {
			return fmt.Errorf("the team counts %+v and %+v", s.People, s.WorkItems)
		}
		return nil
	})
	// The doctors' reports are in as well.
	w.manager.answered(len(people), "doctor_report", "ok")
	for _, person := range people {
		eventually(t, soon, func() error {
			if err := w.reload(person); err != nil || len(person.Status.Conditions) < 2 {
				return errors.Join(err, fmt.Errorf("%s has the conditions %v", person.Name, person.Status.Conditions))
			}
			return nil
		})
	}

	begin, beats := time.Now(), w.manager.messages("heartbeat", "ok")
	before := w.allWrites()
	eventually(t, atLeast+soon, func() error {
		n, took := w.manager.messages("heartbeat", "ok")-beats, time.Since(begin)
		if n < heartbeats || took < atLeast {
			return fmt.Errorf("%d heartbeats in %s", n, took)
		}
		return nil
	})
	t.Logf("%d heartbeats in %s", w.manager.messages("heartbeat", "ok")-beats, time.Since(begin).Round(time.Second))
	if diff := cmp.Diff(before, w.allWrites()); diff != "" {
		t.Errorf("heartbeats cost writes (-before +after):\n%s", diff)
	}
	w.notes(item).letGo()
	w.state(item, protocol.StateDone)
	w.leavesUsersPartAlone()
}

// allWrites counts what the manager wrote in the test's namespace, by resource.
func (w *world) allWrites() map[string]int {
	w.Helper()
	counts := map[string]int{}
	for _, resource := range []string{
		"pods", "secrets", "serviceaccounts", "persistentvolumeclaims", "workitems/status", "people/status", "teams/status",
	} {
		counts[resource] = len(w.writes(resource))
	}
	if counts["pods"] != 4 || counts["workitems/status"] == 0 {
		w.Errorf("the audit log is not what this test reads it as: it has %v", counts)
	}
	return counts
}
