package controllers

// This file tells the office which namespace a team is in: one that was made again under the same name is another one, and reads nothing of
// what its predecessor did.

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// namespaceUIDs remembers the UID of each team's namespace: an object never changes its namespace, so one read a team is enough.
type namespaceUIDs struct {
	mu   sync.Mutex
	byID map[types.UID]types.UID
}

// of gives the UID of the namespace that an object is in; empty where the manager may not read namespaces.
func (n *namespaceUIDs) of(ctx context.Context, live client.Reader, object client.Object) (types.UID, error) {
	n.mu.Lock()
	known, ok := n.byID[object.GetUID()]
	n.mu.Unlock()
	if ok {
		return known, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := live.Get(ctx, client.ObjectKey{Name: object.GetNamespace()}, namespace)
	if refused(err) {
		return "", nil
	}
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byID[object.GetUID()] = namespace.UID
	return namespace.UID, nil
}

// forget drops what nobody will ask for again, once there is too much of it: it is read again where it is needed.
func (n *namespaceUIDs) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	const most = 10_000
	if len(n.byID) > most {
		clear(n.byID)
	}
}
