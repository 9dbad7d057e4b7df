package access

// This file tells a namespace from one of the same name that was there before.

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// namespaces knows which UIDs namespaces have. It asks for the one that somebody wants to look into, a second ago at the longest: a watch
// on all of them would cost memory for those that nobody looks into, and could lag behind without an end while its connection is broken.
type namespaces struct {
	client  coreclient.NamespaceInterface
	ask     *asker
	known   *cache.LRUExpireCache
	running singleflight.Group
}

func newNamespaces(client coreclient.NamespaceInterface, ask *asker) *namespaces {
	return &namespaces{client: client, ask: ask, known: cache.NewLRUExpireCache(remembered)}
}

// is says whether the namespace of that name is the one with that UID, and if not, why.
func (n *namespaces) is(ctx context.Context, name, uid string) (bool, string, error) {
	live, err := shared(ctx, n.known, &n.running, name, func(ctx context.Context) (uid string, keep time.Duration, err error) {
		err = n.ask.ask(ctx, "get namespaces", func(ctx context.Context) error {
			namespace, err := n.client.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			uid = string(namespace.GetUID())
			return err
		})
		return uid, namespaceTTL, err
	})
	switch {
	case err != nil:
		return false, "", err
	case live == "":
		return false, fmt.Sprintf("the namespace %s is gone, and nobody may use what was in it", name), nil
	case live != uid:
		return false, fmt.Sprintf("the namespace %s was made again since, and what was in the one before is not in this one", name), nil
	}
	return true, "", nil
}
