package controllers

// This file puts the controllers into a manager.

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// CASource has the CA bundle by which agents trust the office.
type CASource interface {
	// CABundle is PEM, never empty without an error.
	CABundle() ([]byte, error)
	// BundleChanged delivers after the bundle changed. It has one reader.
	BundleChanged() <-chan struct{}
}

// Options say what the controllers work with.
type Options struct {
	Office   Office
	Operator podspec.Operator
	CA       CASource
	// Namespaces are those that the manager's cache holds; nil is all. What the office knows of others is left alone.
	Namespaces []string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Concurrency is how many objects of a kind are reconciled side by side; 0 is 32. Most of that time is spent waiting for the API
	// server to take a status, and a new item must not wait behind it for its offer.
	Concurrency int
}

// reporter is the name under which events are reported.
const reporter = "bullpen-manager"

// Setup puts the controllers of Team, Person and WorkItem into the manager, with what tells them of the office's changes and
// the office of what was deleted. The manager's cache must have been made with CacheByObject.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Concurrency = cmp.Or(o.Concurrency, 32)
	if err := addIndexes(mgr); err != nil {
		return err
	}
	people, err := newGraves(mgr, &api.Person{})
	if err != nil {
		return err
	}
	items, err := newGraves(mgr, &api.WorkItem{})
	if err != nil {
		return err
	}
	sync := &syncer{client: mgr.GetClient(), office: o.Office, namespaces: o.Namespaces, done: make(chan struct{})}
	changes := newRouter(o.Office)
	for _, runnable := range []interface{ Start(context.Context) error }{sync, changes} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	base := reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), office: o.Office, events: mgr.GetEventRecorder(reporter),
		now: o.Now, started: o.Now(), synced: sync.done, writes: newPace(),
	}
	if err := setupTeams(mgr, base, changes, o); err != nil {
		return fmt.Errorf("set up the Team controller: %w", err)
	}
	if err := setupPeople(mgr, base, people, changes, o); err != nil {
		return fmt.Errorf("set up the Person controller: %w", err)
	}
	if err := setupItems(mgr, base, items, changes, o); err != nil {
		return fmt.Errorf("set up the WorkItem controller: %w", err)
	}
	return nil
}

// CacheByObject restricts the manager's cache to objects that the operator made itself: nobody else's Secrets and pods are
// ever held in its memory.
func CacheByObject() map[client.Object]cache.ByObject {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{api.LabelManagedBy: api.LabelManagedByValue})}
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}:                ours,
		&corev1.ServiceAccount{}:        ours,
		&corev1.PersistentVolumeClaim{}: ours,
		&corev1.Pod{}:                   ours,
	}
}

// Fields by which the cache finds people.
const (
	indexTeam   = "team"
	indexHandle = "team/handle"
)

func handleKey(p *api.Person) string { return string(p.Spec.Team) + "/" + p.HandleOrName() }

func addIndexes(mgr ctrl.Manager) error {
	indexes := map[string]func(*api.Person) string{
		indexTeam:   func(p *api.Person) string { return string(p.Spec.Team) },
		indexHandle: handleKey,
	}
	for field, value := range indexes {
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &api.Person{}, field, func(o client.Object) []string {
			return []string{value(o.(*api.Person))}
		})
		if err != nil {
			return fmt.Errorf("index people by %s: %w", field, err)
		}
	}
	return nil
}
