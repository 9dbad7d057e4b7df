package controllers

// This file makes the WorkItem objects of items that began in the office, so that kubectl lists all the work there is. An object is made
// once: deleting it cancels its item for good.

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

// +kubebuilder:rbac:groups=bullpen.dev,resources=workitems,verbs=create

// bornTTL is how long the object of a question or a chat session stays after its end.
const bornTTL = 7 * 24 * 3600

// bear makes the object of an item that began in the office under this name and has none yet, and gives it; nil where there is no such
// item. The office hears of the object at once, before anybody could delete it unnoticed.
func (r *itemReconciler) bear(ctx context.Context, req ctrl.Request) (*api.WorkItem, error) {
	item, err := r.office.Unborn(ctx, req.Namespace, req.Name)
	if err != nil || item == nil {
		return nil, err
	}
	object := bornObject(item)
	err = r.client.Create(ctx, object)
	switch {
	case err == nil:
		return object, nil
	case apierrors.IsAlreadyExists(err):
		return nil, errStale // the cache will show it
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		// Nothing can begin in a namespace that ends: it is as if the object was deleted.
		return nil, r.office.Abandon(ctx, item.ID, "its namespace is being deleted")
	case apierrors.IsInvalid(err):
		log.FromContext(ctx).Error(err, "An item that began in the office has no valid object, so it is canceled", "item", item.ID)
		return nil, r.office.Abandon(ctx, item.ID, fmt.Sprintf("its WorkItem was refused: %v", err))
	}
	return nil, err
}

// bornObject is the object of an item that began in the office.
func bornObject(it *model.Item) *api.WorkItem {
	spec := it.Spec
	object := &api.WorkItem{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   it.Namespace,
			Name:        it.Name,
			Labels:      map[string]string{api.LabelManagedBy: api.LabelManagedByValue, api.LabelTeam: spec.Team},
			Annotations: map[string]string{api.AnnotationItemID: it.ID},
		},
		Spec: api.WorkItemSpec{
			Team:      api.ObjectName(spec.Team),
			Person:    api.Handle(spec.Person),
			Role:      api.RoleName(spec.Role),
			Kind:      spec.Kind,
			Title:     spec.Title,
			Body:      spec.Body,
			Requester: spec.Requester,
			Priority:  ptr.To(spec.Priority),
			Trigger:   string(spec.Trigger),
			Parent:    spec.Parent,
		},
	}
	if s := spec.Subject; s != nil {
		object.Spec.Subject = &api.Subject{Type: s.Type, Ref: s.Ref, Title: s.Title, URL: s.URL}
	}
	if spec.Kind == model.KindQuestion || spec.Kind == model.KindChat {
		object.Spec.TTLSecondsAfterFinished = ptr.To[int32](bornTTL)
	}
	return object
}

// bornID is the id of the item that an object was made for; empty for objects of users.
func bornID(item *api.WorkItem) string {
	if item.Labels[api.LabelManagedBy] != api.LabelManagedByValue {
		return ""
	}
	return item.Annotations[api.AnnotationItemID]
}
