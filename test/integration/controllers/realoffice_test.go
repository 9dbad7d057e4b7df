package controllers_test

// This file runs the controllers against the real office and its store.

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/controllers"
	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

// TestTheRealOfficeHearsEverythingOnce lets the controllers tell the real office everything twice: the second time nothing may
// be written, neither to the store nor to the API server.
func TestTheRealOfficeHearsEverythingOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop()
	var commits atomic.Int64
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "office.db"), sqlite.Options{
		OnCommit: func(int, time.Duration, error) { commits.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	// One that only listens to facts: without Start, it neither listens on a port nor delivers changes by itself.
	theReal, err := office.New(office.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingOffice{Office: theReal, changes: make(chan model.Change, 1)}
	w.theOffice = counted
	w.start()
	w.team("core", func(team *api.Team) {
		team.Spec.Roles = []api.Role{{Name: "developer", Work: []api.WorkKind{{Kind: "task", Review: api.ReviewNone}}}}
		team.Spec.Agent.Hooks = &api.EnvironmentHooks{BeforeStart: "true"}
	})
	w.person("ada", func(p *api.Person) {
		p.Spec.Role, p.Spec.Tools = "developer", []string{"git"}
		p.Spec.Agent.Command = []string{"true"}
		p.Spec.Agent.Hooks = &api.EnvironmentHooks{AfterCheckout: "true"}
		p.Spec.Services = []api.Service{{Name: "db", Address: "db:5432"}}
	})
	w.runningPod("ada-agent")
	w.item("one", func(i *api.WorkItem) {
		i.Spec.Body, i.Spec.Subject = "B", &api.Subject{Type: "ticket", Ref: "X-1", URL: "https://example.com/1"}
	})
	w.item("two", func(i *api.WorkItem) { i.Spec.DependsOn = []string{"one"} })
	w.itemHas("one", inState(protocol.StateQueued))
	w.itemHas("two", func(i *api.WorkItem) error {
		return has(i.Status.Conditions, api.ConditionReady, metav1.ConditionFalse, api.ReasonDependencyPending)
	})
	w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonAgentOffline)
	w.eventually("the team counts", func() error {
		team := &api.Team{}
		w.mustGet("core", team)
		if team.Status.WorkItems.Queued != 2 || team.Status.People.Offline != 1 {
			// Nobody tells of changes here: a look is asked for.
			select {
			case counted.changes <- model.Change{Kind: model.ChangedTeam, Namespace: w.namespace, Name: "core"}:
			default:
			}
			return fmt.Errorf("it is %+v", team.Status)
		}
		return nil
	})
	w.stop()

	before, stored := w.allWrites(), commits.Load()
	counted.syncs.Store(0)
	w.start()
	w.eventually("everything is told again", func() error {
		if n := counted.syncs.Load(); n < 4 {
			return fmt.Errorf("%d facts", n)
		}
		return nil
	})
	w.stop()
	if n := commits.Load() - stored; n != 0 {
		t.Errorf("telling the same facts again cost %d commits", n)
	}
	if after := w.allWrites(); len(after) != len(before) {
		t.Errorf("telling the same facts again wrote %v", after[len(before):])
	}
}

// countingOffice counts the facts that the real office has taken, and lets a test ask for looks.
type countingOffice struct {
	controllers.Office
	syncs   atomic.Int64
	changes chan model.Change
}

func (o *countingOffice) SyncTeam(ctx context.Context, team model.Team) error {
	return o.count(o.Office.SyncTeam(ctx, team))
}

func (o *countingOffice) SyncPerson(ctx context.Context, person model.Person) error {
	return o.count(o.Office.SyncPerson(ctx, person))
}

func (o *countingOffice) SyncItem(ctx context.Context, facts model.ItemFacts) (model.ItemView, error) {
	view, err := o.Office.SyncItem(ctx, facts)
	return view, o.count(err)
}

func (o *countingOffice) count(err error) error {
	if err == nil {
		o.syncs.Add(1)
	}
	return err
}

func (o *countingOffice) Changes() <-chan model.Change { return o.changes }
