package storetest

// This file tests teams and people, their reports and usage windows.

import (
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

func testTeams(t *testing.T, s *suite) {
	whole := full[model.Team]()
	whole.Key = core
	second := model.Team{UID: "second", Key: other}
	get := func(r store.Reader) (model.Team, error) { return r.Team(core) }
	missing(t, s, "a team before it is put", get)
	s.update(t, func(tx store.Tx) error {
		if err := tx.PutTeam(second); err != nil {
			return err
		}
		return tx.PutTeam(model.Team{Key: core})
	})
	s.update(t, func(tx store.Tx) error { return tx.PutTeam(whole) })
	same(t, "the team", read(t, s, get), whole)
	same(t, "the teams, by name", read(t, s, store.Reader.Teams), []model.Team{whole, second})
	s.update(t, func(tx store.Tx) error { return tx.DeleteTeam(core) })
	s.update(t, func(tx store.Tx) error { return tx.DeleteTeam(core) }) // deleting nothing is fine
	missing(t, s, "a deleted team", get)
	same(t, "the teams left", read(t, s, store.Reader.Teams), []model.Team{second})
}

// putPeople stores people in one Update.
func putPeople(t *testing.T, s *suite, people ...model.Person) {
	t.Helper()
	s.update(t, func(tx store.Tx) error {
		for _, p := range people {
			if err := tx.PutPerson(p); err != nil {
				return err
			}
		}
		return nil
	})
}

func testPeople(t *testing.T, s *suite) {
	whole := full[model.Person]()
	whole.UID, whole.Key = "uid-ada", ada
	b := model.Person{UID: "uid-bob", Key: bob, CreatedAt: epoch}
	a2 := model.Person{UID: "uid-ada-2", Key: model.PersonKey{Team: other, Handle: "ada"}}
	missing(t, s, "a person before it is put", func(r store.Reader) (model.Person, error) { return r.Person("uid-ada") })
	putPeople(t, s, b, a2, model.Person{UID: "uid-ada", Key: model.PersonKey{Team: other, Handle: "zoe"}})
	putPeople(t, s, whole)
	same(t, "the person", read(t, s, func(r store.Reader) (model.Person, error) { return r.Person("uid-ada") }), whole)
	same(t, "the person by key", read(t, s, func(r store.Reader) (model.Person, error) { return r.PersonByKey(ada) }), whole)
	missing(t, s, "the person's earlier key", func(r store.Reader) (model.Person, error) {
		return r.PersonByKey(model.PersonKey{Team: other, Handle: "zoe"})
	})
	same(t, "the team's people, by handle",
		read(t, s, func(r store.Reader) ([]model.Person, error) { return r.People(core) }), []model.Person{whole, b})
	same(t, "everybody, by team and handle", read(t, s, store.Reader.AllPeople), []model.Person{whole, b, a2})
	s.update(t, func(tx store.Tx) error { return tx.DeletePerson("uid-ada") })
	missing(t, s, "a deleted person", func(r store.Reader) (model.Person, error) { return r.PersonByKey(ada) })
}

func testTwoPeopleOneHandle(t *testing.T, s *suite) {
	younger := model.Person{UID: "a-younger", Key: ada, CreatedAt: after(1)}
	older := model.Person{UID: "b-older", Key: ada, CreatedAt: after(0)}
	get := func(r store.Reader) (model.Person, error) { return r.PersonByKey(ada) }
	putPeople(t, s, younger, older)
	same(t, "the one who has the handle", read(t, s, get), older)
	s.update(t, func(tx store.Tx) error { return tx.DeletePerson("b-older") })
	same(t, "the one who has it then", read(t, s, get), younger)
}

func testDoctor(t *testing.T, s *suite) {
	get := func(r store.Reader) (model.Doctor, error) { return r.Doctor("uid") }
	whole := full[model.Doctor]()
	putPeople(t, s, model.Person{UID: "uid", Key: ada})
	missing(t, s, "a report before it is put", get)
	s.update(t, func(tx store.Tx) error { return tx.PutDoctor("uid", model.Doctor{At: epoch}) })
	s.update(t, func(tx store.Tx) error { return tx.PutDoctor("uid", whole) })
	putPeople(t, s, model.Person{UID: "uid", Key: ada, Role: "engineer"})
	same(t, "the report, after its person changed", read(t, s, get), whole)
	s.update(t, func(tx store.Tx) error { return tx.DeletePerson("uid") })
	missing(t, s, "the report of a deleted person", get)
}

func testWindows(t *testing.T, s *suite) {
	whole := full[model.Windows]()
	whole.Team, whole.Subscription = core, "shared"
	get := func(team model.TeamKey) func(store.Reader) (model.Windows, error) {
		return func(r store.Reader) (model.Windows, error) { return r.Windows(team, "shared") }
	}
	missing(t, s, "windows before they are put", get(core))
	s.update(t, func(tx store.Tx) error { return tx.PutWindows(model.Windows{Team: core, Subscription: "shared"}) })
	s.update(t, func(tx store.Tx) error { return tx.PutWindows(whole) })
	same(t, "the windows", read(t, s, get(core)), whole)
	missing(t, s, "windows of the same name in another team", get(other))
}
