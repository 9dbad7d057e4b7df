// Package controllers turns objects into facts for the office, and what the office knows into pods and status.
//
// There is one file for each kind: it gathers all it needs, decides by a pure function, applies, and writes status once, if it
// changed. Controllers reach the office only through the interface in this file.
package controllers

import (
	"context"

	"github.com/bullpen-dev/bullpen/office/model"
)

// Office is what the controllers need from the office. Its methods are safe for concurrent use; an error means that the store
// could not take the fact, and the call is to be repeated.
type Office interface {
	// StoreID identifies the store's life.
	StoreID() string

	// SyncTeam tells the team as declared; ForgetTeam that it is gone.
	SyncTeam(ctx context.Context, team model.Team) error
	ForgetTeam(ctx context.Context, key model.TeamKey) error
	// Team is what there is to show of a team; people are counted by their controllers' views.
	Team(ctx context.Context, key model.TeamKey) (model.TeamView, error)

	// SyncPerson tells the person as declared, with its token's hash and what its pod looks like; ForgetPerson that it is gone.
	SyncPerson(ctx context.Context, person model.Person) error
	ForgetPerson(ctx context.Context, uid string) error
	// Person is what there is to show of a person.
	Person(ctx context.Context, key model.PersonKey) (model.PersonView, error)

	// SyncItem tells the item as declared and as its status last recorded it, and gives what there is to show. It is idempotent.
	SyncItem(ctx context.Context, facts model.ItemFacts) (model.ItemView, error)
	// ForgetItem tells that the object is gone: an unfinished item is canceled, a running round ended. expired says that
	// its TTL removes it: then it leaves a tombstone, or where it is not finished (any more), nothing changes and model.ErrUnfinished
	// says so. Told again, it changes nothing, whatever expired says then.
	ForgetItem(ctx context.Context, uid string, expired bool) error

	// Unborn gives the item of that name that began in the office and has no object yet; nil where there is none. SyncItem with its
	// object's facts makes the object known. Abandon cancels an item that cannot have one.
	Unborn(ctx context.Context, namespace, name string) (*model.Item, error)
	Abandon(ctx context.Context, id, reason string) error

	// Retain tells every object that exists, once the caches are synced: what the store knows beyond was deleted meanwhile.
	Retain(ctx context.Context, live model.Live) error

	// Changes delivers objects whose view changed. Repeats are merged; the reader must keep up only roughly.
	Changes() <-chan model.Change
}
