package office

// This file reads what there is to show: the views that controllers project into status.

import (
	"context"
	"time"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

func (o *Office) itemView(ctx context.Context, id string) (model.ItemView, error) {
	v := model.ItemView{StoreID: o.store.ID()}
	err := o.store.View(ctx, func(r store.Reader) (err error) {
		if v.Item, err = r.Item(id); err != nil {
			return err
		}
		if v.Models, err = r.ItemModels(id); err != nil || v.Finished() || v.Usage.Tokens() == 0 {
			return err
		}
		v.BudgetWarning, err = budgetWarning(r, v.TeamKey(), model.BudgetItem, v.Usage)
		return err
	})
	return v, err
}

// budgetWarning says what people are to know of a budget of the team, of which so much is used.
func budgetWarning(r store.Reader, key model.TeamKey, scope model.BudgetScope, used model.Usage) (model.Why, error) {
	team, err := found(r.Team(key))
	if err != nil || team == nil {
		return model.Why{}, err
	}
	return dispatch.BudgetWarning(team.Usage.Budgets, scope, used), nil
}

// Team is what there is to show of a team.
func (o *Office) Team(ctx context.Context, key model.TeamKey) (model.TeamView, error) {
	v := model.TeamView{StoreID: o.store.ID()}
	err := o.store.View(ctx, func(r store.Reader) (err error) {
		if v.Items, err = r.CountItems(key); err != nil {
			return err
		}
		if v.Usage, err = r.TeamUsage(key); err != nil {
			return err
		}
		v.BudgetWarning, err = budgetWarning(r, key, model.BudgetTeam, v.Usage)
		return err
	})
	return v, err
}

// Person is what there is to show of a person. Who is not known is offline.
func (o *Office) Person(ctx context.Context, key model.PersonKey) (model.PersonView, error) {
	v := model.PersonView{State: model.PersonOffline, StoreID: o.store.ID()}
	err := o.store.View(ctx, func(r store.Reader) error {
		person, err := found(r.PersonByKey(key))
		if err != nil || person == nil {
			return err
		}
		if v, _, err = o.view(r, *person, o.now()); err != nil {
			return err
		}
		if v.Usage, err = r.PersonUsage(key); err != nil {
			return err
		}
		if v.BudgetWarning, err = budgetWarning(r, key.Team, model.BudgetPerson, v.Usage); err != nil {
			return err
		}
		if v.Queued, err = r.Queued(key); err != nil {
			return err
		}
		v.Doctor, err = found(r.Doctor(person.UID))
		return err
	})
	return v, err
}

// view is the part of a person's view that rosters show too, with the current item.
func (o *Office) view(r store.Reader, person model.Person, now time.Time) (model.PersonView, *model.Item, error) {
	v := model.PersonView{StoreID: o.store.ID(), AgentVersion: o.presence.last(person.Key).version}
	p, connected := o.hub.Get(person.Key)
	if connected {
		v.Connected, v.ConnectedAt, v.AgentVersion = true, p.connectedAt, p.version
	}
	current, err := found(r.Current(person.Key))
	if err != nil {
		return v, nil, err
	}
	if current != nil {
		v.CurrentItem, v.Busy = current.Name, true
	}
	windows, err := found(r.Windows(person.Key.Team, subscription(person)))
	if err != nil {
		return v, nil, err
	}
	team, err := found(r.Team(person.Key.Team))
	if err != nil {
		return v, nil, err
	}
	suspended := person.Suspended
	if team != nil {
		suspended = suspended || team.Suspended
		if windows != nil {
			v.PausedUntil, v.PausedBy = dispatch.PausedUntil(*windows, team.Usage.PauseAt, now)
		}
	}
	if windows != nil {
		v.Windows, v.WindowsAt = windows.Windows, windows.At
	}
	switch {
	case !connected:
		v.State = model.PersonOffline
	case v.Busy:
		v.State = model.PersonWorking
	case suspended || !v.PausedUntil.IsZero():
		v.State = model.PersonPaused
	default:
		v.State = model.PersonIdle
	}
	return v, current, nil
}
