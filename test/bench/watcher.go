package main

// This file sees the status of work items as a user's tool does, by a watch.

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// watcher knows when each item was first seen done. A watch that the API server ends is begun again.
type watcher struct {
	stop    context.CancelFunc
	mu      sync.Mutex
	done    map[string]time.Time
	changed *sync.Cond
	stopped bool
}

func watchItems(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*watcher, error) {
	items, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{stop: cancel, done: map[string]time.Time{}}
	w.changed = sync.NewCond(&w.mu)
	context.AfterFunc(ctx, w.end)
	go func() { _ = items.Start(ctx) }() // it ends with ctx, and then has nothing to say
	informer, err := items.GetInformer(ctx, &api.WorkItem{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: w.see, UpdateFunc: func(_, item any) { w.see(item) },
		})
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return w, nil
}

func (w *watcher) see(object any) {
	item, ok := object.(*api.WorkItem)
	if !ok || item.Status.State != api.WorkItemState(protocol.StateDone) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, seen := w.done[item.Name]; !seen {
		w.done[item.Name] = time.Now()
		w.changed.Broadcast()
	}
}

// end lets nobody wait any more.
func (w *watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.changed.Broadcast()
}

// await gives when the item was first seen done.
func (w *watcher) await(name string) (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if at, ok := w.done[name]; ok {
			return at, nil
		}
		if w.stopped {
			return time.Time{}, context.Canceled
		}
		w.changed.Wait()
	}
}
