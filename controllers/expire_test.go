package controllers

// This file tests what becomes of an item whose cached status says that its time is over.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// oneItem is an office that knows one item.
type oneItem struct {
	Office
	item   model.Item
	forget error
	facts  model.ItemFacts
}

func (o *oneItem) ForgetItem(context.Context, string, bool) error { return o.forget }

func (o *oneItem) SyncItem(_ context.Context, facts model.ItemFacts) (model.ItemView, error) {
	o.facts = facts
	return model.ItemView{Item: o.item, StoreID: "s"}, nil
}

// itemsOf makes a reconciler of items whose cache holds these objects.
func itemsOf(t *testing.T, office Office, objects ...client.Object) *itemReconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	synced := make(chan struct{})
	close(synced)
	return &itemReconciler{graves: &graves{}, reconciler: reconciler{
		client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&api.WorkItem{}).Build(),
		office: office, events: events.NewFakeRecorder(4), now: func() time.Time { return noon }, synced: synced, writes: newPace(),
	}}
}

func (r *itemReconciler) reconcileOne(t *testing.T) error {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "fix"}})
	return err
}

func TestAnItemWhoseTimeIsOverGoesUnlessTheOfficeKnowsThatItRunsAgain(t *testing.T) {
	broken := errors.New("the disk is full")
	for name, test := range map[string]struct {
		forget error
		goes   bool
		state  protocol.WorkItemState
		fails  error
	}{
		"it is finished":                    {nil, true, "", nil},
		"it runs again":                     {fmt.Errorf("work item ns/fix: %w", model.ErrUnfinished), false, protocol.StateQueued, nil},
		"the office cannot take that it is": {broken, false, protocol.StateDone, broken},
	} {
		t.Run(name, func(t *testing.T) {
			ttl := int32(60)
			r := itemsOf(t, &oneItem{item: model.Item{State: protocol.StateQueued}, forget: test.forget}, &api.WorkItem{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fix", UID: "uid-fix"},
				Spec:       api.WorkItemSpec{Team: "shop", Title: "Fix it", TTLSecondsAfterFinished: &ttl},
				Status:     api.WorkItemStatus{State: "done", FinishedAt: &metav1.Time{Time: noon.Add(-time.Hour)}},
			})
			if err := r.reconcileOne(t); !errors.Is(err, test.fails) {
				t.Errorf("the reconcile ended with %v", err)
			}
			var left api.WorkItem
			err := r.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "fix"}, &left)
			if gone := apierrors.IsNotFound(err); gone != test.goes || left.Status.State != api.WorkItemState(test.state) {
				t.Errorf("gone: %v (%v), state %q", gone, err, left.Status.State)
			}
		})
	}
}

func TestTheOfficeHearsOfAParentByItsObjectAndByTheItemThatThatIsOf(t *testing.T) {
	parent := func(edit func(*api.WorkItem)) *api.WorkItem {
		p := &api.WorkItem{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat-1", UID: "uid-chat"}}
		edit(p)
		return p
	}
	type told struct{ UID, BornID string }
	for name, test := range map[string]struct {
		parent *api.WorkItem
		want   told
	}{
		"that a user made": {parent(func(*api.WorkItem) {}), told{UID: "uid-chat"}},
		"that began in the office": {parent(func(p *api.WorkItem) {
			p.Labels, p.Annotations = map[string]string{api.LabelManagedBy: api.LabelManagedByValue}, map[string]string{api.AnnotationItemID: "born-1"}
		}), told{UID: "uid-chat", BornID: "born-1"}},
		"that does not exist": {&api.WorkItem{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}, told{}},
	} {
		t.Run(name, func(t *testing.T) {
			office := &oneItem{}
			r := itemsOf(t, office, test.parent, &api.WorkItem{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fix", UID: "uid-fix"},
				Spec:       api.WorkItemSpec{Team: "shop", Title: "Fix it", Parent: "chat-1"},
			})
			if err := r.reconcileOne(t); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, told{office.facts.Spec.ParentID, office.facts.ParentBornID}); diff != "" {
				t.Errorf("want -, told +:\n%s", diff)
			}
		})
	}
}
