package controllers

// This file starts the exchange with the office: it tells once which objects exist, and then carries the office's changes to
// the controllers.

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

// syncer is a Runnable that tells the office every object that exists, so that what was deleted while no manager ran ends.
// No controller tells the office of an object before: one that was made in between would look deleted.
type syncer struct {
	client client.Client
	office Office
	// namespaces are those that the cache holds; nil is all.
	namespaces []string
	done       chan struct{}
}

// Start lists and tells until it succeeded.
func (s *syncer) Start(ctx context.Context) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Cap: 10 * time.Second, Steps: 1 << 30}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		if err := s.sync(ctx); err != nil {
			log.FromContext(ctx).Error(err, "The office could not be told which objects exist; trying again")
			return false, nil
		}
		return true, nil
	})
	switch {
	case err == nil:
		close(s.done)
	case ctx.Err() == nil:
		return err
	}
	return nil // the manager stops
}

func (s *syncer) sync(ctx context.Context) error {
	var teams api.TeamList
	var people api.PersonList
	var items api.WorkItemList
	for _, list := range []client.ObjectList{&teams, &people, &items} {
		if err := s.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
	}
	live := model.Live{Namespaces: s.namespaces}
	for i := range teams.Items {
		live.Teams = append(live.Teams, model.TeamKey{Namespace: teams.Items[i].Namespace, Name: teams.Items[i].Name})
	}
	for i := range people.Items {
		live.People = append(live.People, string(people.Items[i].UID))
	}
	for i := range items.Items {
		live.Items = append(live.Items, string(items.Items[i].UID))
	}
	return s.office.Retain(ctx, live)
}

// router is a Runnable that carries the office's changes to the queues of the controllers.
type router struct {
	office Office
	mu     sync.Mutex
	queues map[model.ChangeKind]queue
}

func newRouter(office Office) *router {
	return &router{office: office, queues: make(map[model.ChangeKind]queue)}
}

// source makes a controller look at objects of the kind that changed in the office. What changes before the controller
// started is covered by its first look at every object.
func (r *router) source(kind model.ChangeKind) source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queues[kind] = q
		return nil
	})
}

// settle is how long changes of one object are gathered before its controller looks. An item's are shown at once; a person's or a
// team's come with every step of every item, and their status is not written that often anyway.
func settle(kind model.ChangeKind) time.Duration {
	if kind == model.ChangedItem {
		return 0
	}
	return 200 * time.Millisecond
}

// Start carries changes until ctx ends.
func (r *router) Start(ctx context.Context) error {
	changes := r.office.Changes()
	for {
		select {
		case <-ctx.Done():
			return nil
		case change, open := <-changes:
			if !open {
				return nil
			}
			r.mu.Lock()
			q := r.queues[change.Kind]
			r.mu.Unlock()
			if q != nil {
				name := types.NamespacedName{Namespace: change.Namespace, Name: change.Name}
				q.AddAfter(reconcile.Request{NamespacedName: name}, settle(change.Kind))
			}
		}
	}
}
