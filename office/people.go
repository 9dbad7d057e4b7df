package office

// This file has who is on the team, and how they are.

import (
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

func (r request) roster(protocol.Roster) (protocol.Message, error) {
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		team, err := tx.Team(r.p.key.Team)
		if err != nil {
			return nil, err
		}
		people, err := tx.People(r.p.key.Team)
		if err != nil {
			return nil, err
		}
		roles := map[string]protocol.TeamRole{}
		for _, role := range team.Config.Roles {
			roles[role.Name] = role
		}
		result := protocol.RosterResult{Members: []protocol.Member{}}
		for _, person := range people {
			view, current, err := r.o.view(tx, person, r.o.now())
			if err != nil {
				return nil, err
			}
			member := protocol.Member{
				Handle: person.Key.Handle, Name: person.DisplayName, Role: person.Role,
				Title: roles[person.Role].Title, Summary: roles[person.Role].Summary,
				Status: protocol.MemberStatus(view.State), Usage: busiest(view.Windows, view.WindowsAt, r.o.now()),
			}
			if current != nil {
				member.Current = current.Spec.Title
			}
			result.Members = append(result.Members, member)
		}
		for _, h := range team.Config.Humans {
			result.Humans = append(result.Humans, protocol.RosterHuman{Name: h.Name})
		}
		return result, nil
	})
}

// recently is how long a usage window counts whose reset nobody told.
const recently = time.Hour

// busiest is the fullest usage window that has not been reset since; nil where there is none.
func busiest(windows []model.Window, at, now time.Time) *protocol.MemberUsage {
	var most *protocol.MemberUsage
	for _, w := range windows {
		over := w.ResetsAt
		if over.IsZero() {
			over = at.Add(recently)
		}
		if !over.After(now) || (most != nil && w.Utilization <= most.Utilization) {
			continue
		}
		most = &protocol.MemberUsage{Window: w.Name, Utilization: w.Utilization}
		if !w.ResetsAt.IsZero() {
			most.ResetsAt = protocol.FormatTime(w.ResetsAt)
		}
	}
	return most
}

func (r request) doctorReport(m protocol.DoctorReport) (protocol.Message, error) {
	return nil, r.change(func(w *work) error {
		person, err := w.tx.PersonByKey(r.p.key)
		if err != nil {
			return err
		}
		w.showPerson(person)
		return w.tx.PutDoctor(person.UID, model.Doctor{At: w.now, Checks: m.Checks})
	})
}
