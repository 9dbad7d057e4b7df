package workstate

// This file tells who somebody outside is: a person of the team, a human whom the team trusts, or a stranger.

import (
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Actor is somebody, as a system outside names them.
type Actor struct {
	// Login is the name that the system has for them.
	Login string `json:"login"`
	// System is the system's name, as in the identities of the team's humans, such as github. Where it is given, a human is known by the
	// identity in that system alone; where it is not, by name or any identity.
	System string `json:"system,omitzero"`
	// Person is the handle of the person of the team who it is, where the sender of the event knows.
	Person string `json:"person,omitzero"`
}

// Who is who an actor turned out to be.
type Who struct {
	// Name is the handle of a person of the team, else the login.
	Name string
	// Person is the handle of a person of the team; empty for others.
	Person string
	// Human says that it is a human whom the team trusts.
	Human bool
}

// Trusted says whether what they say may start work.
func (w Who) Trusted() bool { return w.Human || w.Person != "" }

// Directory is everybody whom a team knows.
type Directory struct {
	Humans []protocol.TeamHuman
	People []model.Person
}

// Who finds out who an actor is. Names are compared without regard to case, as code hosts and trackers do.
func (d Directory) Who(a Actor) Who {
	if p := d.person(a); p != "" {
		return Who{Name: p, Person: p}
	}
	for _, h := range d.Humans {
		if isHuman(h, a) {
			return Who{Name: a.Login, Human: true}
		}
	}
	return Who{Name: a.Login}
}

func (d Directory) person(a Actor) string {
	for _, p := range d.People {
		// A login in a named system is an account that anybody may have registered there, so it is nobody's handle.
		if a.Person == p.Key.Handle || (a.Person == "" && a.System == "" && same(a.Login, p.Key.Handle)) {
			return p.Key.Handle
		}
	}
	return ""
}

func isHuman(h protocol.TeamHuman, a Actor) bool {
	if a.System != "" {
		id, known := h.Identities[a.System]
		return known && same(id, a.Login)
	}
	if same(h.Name, a.Login) {
		return true
	}
	for _, id := range h.Identities {
		if same(id, a.Login) {
			return true
		}
	}
	return false
}

func same(a, b string) bool { return a != "" && strings.EqualFold(a, b) }

// Names lists the names under which somebody is known: a human's name and identities, or a person's handle and display name. Who is
// neither is known by the name that was given.
func (d Directory) Names(name string) []string {
	for _, p := range d.People {
		if same(name, p.Key.Handle) || same(name, p.DisplayName) {
			return NamesOf(p)
		}
	}
	for _, h := range d.Humans {
		if isHuman(h, Actor{Login: name}) {
			names := []string{h.Name}
			for _, id := range h.Identities {
				names = append(names, id)
			}
			return names
		}
	}
	return []string{name}
}

// NamesOf lists the names of a person: the handle, and the name that people use.
func NamesOf(p model.Person) []string {
	names := []string{p.Key.Handle}
	if p.DisplayName != "" && p.DisplayName != p.Key.Handle {
		names = append(names, p.DisplayName)
	}
	return names
}
