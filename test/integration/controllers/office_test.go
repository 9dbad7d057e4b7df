package controllers_test

// This file has the office and the CA that the controllers under test speak to.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const storeID = "store-1"

// memoryOffice keeps what it is told, in memory, and shows what a test says.
type memoryOffice struct {
	changes chan model.Change

	mu       sync.Mutex
	teams    map[model.TeamKey]model.Team
	people   map[string]model.Person
	facts    map[string]model.ItemFacts
	views    map[string]model.ItemView
	persons  map[model.PersonKey]model.PersonView
	team     model.TeamView
	retained []model.Live
	// calls counts calls by name and object; log has them in order.
	calls map[string]int
	log   []string
	// failing is what every call but Retain returns.
	failing error
	// onSyncPerson runs before a SyncPerson returns, without the lock.
	onSyncPerson func(model.Person)
}

func newMemoryOffice() *memoryOffice {
	return &memoryOffice{
		changes: make(chan model.Change, 1000),
		teams:   map[model.TeamKey]model.Team{},
		people:  map[string]model.Person{},
		facts:   map[string]model.ItemFacts{},
		views:   map[string]model.ItemView{},
		persons: map[model.PersonKey]model.PersonView{},
		calls:   map[string]int{},
	}
}

func (o *memoryOffice) called(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	o.calls[call]++
	o.log = append(o.log, call)
	return o.failing
}

func (o *memoryOffice) StoreID() string { return storeID }

func (o *memoryOffice) SyncTeam(_ context.Context, team model.Team) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.called("SyncTeam %s", team.Key.Name); err != nil {
		return err
	}
	o.teams[team.Key] = team
	return nil
}

func (o *memoryOffice) ForgetTeam(_ context.Context, key model.TeamKey) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.teams, key)
	return o.called("ForgetTeam %s", key.Name)
}

func (o *memoryOffice) Team(context.Context, model.TeamKey) (model.TeamView, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	view := o.team
	view.StoreID = storeID
	return view, o.failing
}

func (o *memoryOffice) SyncPerson(_ context.Context, person model.Person) error {
	o.mu.Lock()
	hook := o.onSyncPerson
	err := o.called("SyncPerson %s", person.Name)
	if err == nil {
		o.people[person.UID] = person
	}
	o.mu.Unlock()
	if hook != nil {
		hook(person)
	}
	return err
}

func (o *memoryOffice) ForgetPerson(_ context.Context, uid string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.people, uid)
	return o.called("ForgetPerson %s", uid)
}

func (o *memoryOffice) Person(_ context.Context, key model.PersonKey) (model.PersonView, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	view, known := o.persons[key]
	if !known {
		view.State = model.PersonOffline
	}
	view.StoreID = storeID
	return view, o.failing
}

func (o *memoryOffice) SyncItem(_ context.Context, facts model.ItemFacts) (model.ItemView, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.called("SyncItem %s", facts.Name); err != nil {
		return model.ItemView{}, err
	}
	o.facts[facts.ID] = facts
	view, known := o.views[facts.ID]
	if !known {
		view = model.ItemView{StoreID: storeID, Item: model.Item{
			ID: facts.ID, Namespace: facts.Namespace, Name: facts.Name, State: protocol.StateQueued, Revision: 1,
		}}
	}
	view.Spec = facts.Spec
	o.views[facts.ID] = view
	return view, nil
}

func (o *memoryOffice) Unborn(context.Context, string, string) (*model.Item, error) { return nil, nil }

func (o *memoryOffice) Abandon(context.Context, string, string) error { return nil }

func (o *memoryOffice) ForgetItem(_ context.Context, uid string, expired bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.called("ForgetItem %s %v", uid, expired)
}

func (o *memoryOffice) Retain(_ context.Context, live model.Live) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.Sort(live.Items)
	o.retained = append(o.retained, live)
	o.log = append(o.log, "Retain")
	return nil
}

func (o *memoryOffice) Changes() <-chan model.Change { return o.changes }

// with runs f with the office locked.
func (o *memoryOffice) with(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

func (o *memoryOffice) count(format string, args ...any) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[fmt.Sprintf(format, args...)]
}

// showItem changes an item's view and tells of it.
func (o *memoryOffice) showItem(uid string, edit func(*model.ItemView)) {
	o.mu.Lock()
	view := o.views[uid]
	edit(&view)
	view.Revision++
	o.views[uid] = view
	o.mu.Unlock()
	o.changes <- model.Change{Kind: model.ChangedItem, Namespace: view.Namespace, Name: view.Name}
}

// showPerson changes a person's view and tells of it.
func (o *memoryOffice) showPerson(namespace, handle string, edit func(*model.PersonView)) {
	key := model.PersonKey{Team: model.TeamKey{Namespace: namespace, Name: "core"}, Handle: handle}
	o.mu.Lock()
	view := o.persons[key]
	edit(&view)
	o.persons[key] = view
	o.mu.Unlock()
	o.changes <- model.Change{Kind: model.ChangedPerson, Namespace: namespace, Name: handle}
}

func connected(v *model.PersonView) { v.Connected, v.State = true, model.PersonIdle }

func (o *memoryOffice) personOf(uid string) (model.Person, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p, ok := o.people[uid]; ok {
		return p, nil
	}
	return model.Person{}, errors.New("the office does not know the person")
}

// memoryCA is a CASource.
type memoryCA struct {
	mu      sync.Mutex
	bundle  string
	changed chan struct{}
}

func newMemoryCA(bundle string) *memoryCA {
	return &memoryCA{bundle: bundle, changed: make(chan struct{}, 1)}
}

func (c *memoryCA) CABundle() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []byte(c.bundle), nil
}

func (c *memoryCA) BundleChanged() <-chan struct{} { return c.changed }

func (c *memoryCA) rotate(bundle string) {
	c.mu.Lock()
	c.bundle = bundle
	c.mu.Unlock()
	c.changed <- struct{}{}
}
