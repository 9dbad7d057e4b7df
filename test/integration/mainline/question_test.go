package mainline

// This file follows a question from one agent's program to another's, by way of objects that everybody sees.

import (
	"fmt"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestAQuestionIsAWorkItemThatEverybodySeesAndItsAnswerLetsTheAskerGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team(2 * time.Second)
	w.personIs(w.person("ada"), "idle")
	bob := w.person("bob")
	w.edit(bob, func() { bob.Spec.Suspend = true })
	w.personIs(bob, "paused")
	item := w.item("fix", "ada", "asking")
	w.state(item, protocol.StateWaiting)

	var questions api.WorkItemList
	question := func() error {
		if err := cluster.admin.List(t.Context(), &questions, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if len(questions.Items) != 2 {
			return fmt.Errorf("there are %d items, not the asker's and the question", len(questions.Items))
		}
		return nil
	}
	eventually(t, soon, question)
	asked := &questions.Items[0]
	if asked.Name == item.Name {
		asked = &questions.Items[1]
	}
	if s := asked.Spec; s.Kind != "question" || s.Person != "bob" || s.Title != "Which port?" || s.Requester != "ada" || s.Parent != item.Name {
		t.Errorf("the question is %+v", s)
	}
	w.state(asked, protocol.StateQueued)

	w.edit(bob, func() { bob.Spec.Suspend = false })
	w.state(asked, protocol.StateDone)
	w.itemIs(item, func(item *api.WorkItem) error {
		if item.Status.Summary != "the port is 8443" || !apimeta.IsStatusConditionTrue(item.Status.Conditions, api.ConditionComplete) {
			return fmt.Errorf("it is %s: %q", item.Status.State, item.Status.Summary)
		}
		return nil
	})
	if item.Status.Rounds != 2 {
		t.Errorf("it took %d rounds", item.Status.Rounds)
	}
	// Deleting the object of a question cancels it for good: it is not made again, also not after a restart.
	w.must(cluster.admin.Delete(t.Context(), asked))
	w.manager.kill()
	w.manager.start()
	other := w.item("other", "bob", "quick")
	w.state(other, protocol.StateDone)
	if err := w.reload(asked); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the question that was deleted is there again (%v)", err)
	}
}
