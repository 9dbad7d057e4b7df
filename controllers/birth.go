package controllers

// This file makes the WorkItem objects of items that began in the office, so that kubectl lists all the work there is. An object is made
// once: deleting it cancels its item for good.

import (
	"context"
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// +kubebuilder:rbac:groups=bullpen.dev,resources=workitems,verbs=create

// bornTTL is how long the object of a question or a chat session stays after its end.
const bornTTL = 7 * 24 * 3600

// Limits of what an object takes over: the API's for a subject's reference, and for an annotation one that leaves room for others.
const (
	maxRef    = 500
	maxOrigin = 64 << 10
)

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
	}
	return nil, fmt.Errorf("make the WorkItem of item %s, which began in the office: %w", item.ID, err)
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
	if s := spec.Subject; s != nil && len(s.Ref) <= maxRef {
		object.Spec.Subject = &api.Subject{Type: s.Type, Ref: s.Ref, Title: cut(s.Title, titleRunes), URL: page(s.URL)}
	}
	if it.Origin != nil {
		if text, err := json.Marshal(it.Origin); err == nil && len(text) <= maxOrigin {
			object.Annotations[api.AnnotationOrigin] = string(text)
		}
	}
	if spec.Kind == model.KindQuestion || spec.Kind == model.KindChat {
		object.Spec.TTLSecondsAfterFinished = ptr.To[int32](bornTTL)
	}
	return object
}

// page is an address as the API takes it, empty where it is none.
func page(address string) string {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || len(address) > maxURL {
		return ""
	}
	return address
}

// bornOrigin is the chat message that the item of an object came from, as its annotation says; nil for objects of users.
func bornOrigin(item *api.WorkItem) *protocol.Origin {
	text := item.Annotations[api.AnnotationOrigin]
	if bornID(item) == "" || text == "" {
		return nil
	}
	var origin protocol.Origin
	if json.Unmarshal([]byte(text), &origin) != nil {
		return nil // somebody changed it
	}
	return &origin
}

// bornID is the id of the item that an object was made for; empty for objects of users.
func bornID(item *api.WorkItem) string {
	if item.Labels[api.LabelManagedBy] != api.LabelManagedByValue {
		return ""
	}
	return item.Annotations[api.AnnotationItemID]
}
