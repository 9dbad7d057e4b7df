package controllers

// This file remembers the UIDs of objects that were deleted. A reconcile request has a name only, and a name may already be
// that of another object.

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// graves holds the UIDs of deleted objects of one kind until the office was told. It watches from the cache's first moment on,
// so that no deletion is missed between the first list and the start of the controller.
type graves struct {
	mu    sync.Mutex
	dead  map[types.NamespacedName][]types.UID
	queue queue
}

func newGraves(mgr ctrl.Manager, kind client.Object) (*graves, error) {
	g := &graves{dead: make(map[types.NamespacedName][]types.UID)}
	informer, err := mgr.GetCache().GetInformer(context.Background(), kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, now any) {
			if before, after := old.(client.Object), now.(client.Object); before.GetUID() != after.GetUID() {
				g.add(before)
			}
		},
		DeleteFunc: func(gone any) {
			if unknown, ok := gone.(toolscache.DeletedFinalStateUnknown); ok {
				gone = unknown.Obj
			}
			if object, ok := gone.(client.Object); ok {
				g.add(object)
			}
		},
	})
	return g, err
}

func (g *graves) add(object client.Object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := client.ObjectKeyFromObject(object)
	g.dead[name] = append(g.dead[name], object.GetUID())
	if g.queue != nil {
		g.queue.Add(reconcile.Request{NamespacedName: name})
	}
}

// source makes a controller look at the names of deleted objects.
func (g *graves) source() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.queue = q
		for name := range g.dead {
			q.Add(reconcile.Request{NamespacedName: name})
		}
		return nil
	})
}

// bury calls forget for every deleted object of that name. Those for which it fails stay.
func (g *graves) bury(ctx context.Context, name types.NamespacedName, forget func(ctx context.Context, uid string) error) error {
	g.mu.Lock()
	dead := slices.Clone(g.dead[name])
	g.mu.Unlock()
	for _, uid := range dead {
		if err := forget(ctx, string(uid)); err != nil {
			return err
		}
		g.mu.Lock()
		g.dead[name] = slices.DeleteFunc(g.dead[name], func(u types.UID) bool { return u == uid })
		if len(g.dead[name]) == 0 {
			delete(g.dead, name)
		}
		g.mu.Unlock()
	}
	return nil
}
