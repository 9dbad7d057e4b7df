package dispatch

// This file says why an item cannot run, whoever is idle: what it names does not exist, or what it depends on is not done.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// World is what an item refers to, as the office knows it.
type World struct {
	// Team is nil where there is none.
	Team *model.Team
	// PersonKnown says that the handle asked for exists, InRole how many people have the role asked for.
	PersonKnown bool
	InRole      int
	// Dependencies are the items named in dependsOn, in its order.
	Dependencies []Dependency
	// Cycle are the names along which the item waits for itself, empty where it does not.
	Cycle []string
}

// Dependency is an item that another one depends on. Item is nil where no item of that name was ever there.
type Dependency struct {
	Name string
	Item *model.Item
}

// Hold brings an item between rounds in line with the world: it sets or clears its hold, and blocks it when a dependency failed.
// It says whether the item changed.
func Hold(it model.Item, w World, now time.Time) (model.Item, bool) {
	failedBefore := it.State == protocol.StateBlocked && it.End.Reason == model.ReasonDependencyFailed
	if it.Round != nil || (it.State != protocol.StateQueued && !failedBefore) {
		return it, false
	}
	why := w.why(it.Spec)
	if why.Reason == model.ReasonDependencyFailed {
		if failedBefore && it.End == why {
			return it, false
		}
		settle(&it, protocol.StateBlocked, why, now)
		return it, true
	}
	if failedBefore {
		it.State, it.End, it.FinishedAt = protocol.StateQueued, model.Why{}, time.Time{}
	}
	if it.Hold.Reason == model.ReasonBudgetExhausted && why.Reason == "" {
		return it, failedBefore
	}
	changed := failedBefore || it.Hold != why
	it.Hold = why
	return it, changed
}

func (w World) why(spec model.ItemSpec) model.Why {
	if w.Team == nil {
		return model.Why{Reason: model.ReasonTeamNotFound, Message: fmt.Sprintf(
			"There is no Team %q in this namespace. The item runs when it comes.", spec.Team)}
	}
	if spec.Person != "" && !w.PersonKnown {
		return model.Why{Reason: model.ReasonPersonNotFound, Message: fmt.Sprintf(
			"Team %q has nobody with the handle %q. The item runs when the person comes.", spec.Team, spec.Person)}
	}
	if spec.Role != "" && !slices.ContainsFunc(w.Team.Config.Roles, func(r protocol.TeamRole) bool { return r.Name == spec.Role }) {
		return model.Why{Reason: model.ReasonRoleNotFound, Message: fmt.Sprintf(
			"Team %q has no role %q. The item runs when the team gets it.", spec.Team, spec.Role)}
	}
	if spec.Role != "" && w.InRole == 0 {
		return model.Why{Reason: model.ReasonNobodyInRole, Message: fmt.Sprintf(
			"Nobody of team %q has the role %q. The item runs when somebody does.", spec.Team, spec.Role)}
	}
	if len(w.Cycle) > 0 {
		return model.Why{Reason: model.ReasonDependencyCycle, Message: fmt.Sprintf(
			"The item waits for itself: %s. Change dependsOn of one of them.", strings.Join(w.Cycle, " -> "))}
	}
	return w.dependencies()
}

func (w World) dependencies() model.Why {
	var pending model.Why
	for _, d := range w.Dependencies {
		switch {
		case d.Item == nil:
			if pending.Reason == "" {
				pending = model.Why{Reason: model.ReasonDependencyNotFound, Message: fmt.Sprintf(
					"dependsOn names %q, which does not exist yet.", d.Name)}
			}
		case d.Item.State == protocol.StateDone:
		case d.Item.Gone:
			return model.Why{Reason: model.ReasonDependencyFailed, Message: fmt.Sprintf(
				"dependsOn names %q, which was deleted before it was done. Take it out of dependsOn, or make it again.", d.Name)}
		case d.Item.State == protocol.StateCanceled:
			return model.Why{Reason: model.ReasonDependencyFailed, Message: fmt.Sprintf(
				"dependsOn names %q, which was canceled. Take it out of dependsOn, or run it again with spec.rerun.", d.Name)}
		default:
			if pending.Reason == "" {
				pending = model.Why{Reason: model.ReasonDependencyPending, Message: fmt.Sprintf(
					"Waits for %q, which is %s.", d.Name, d.Item.State)}
			}
		}
	}
	return pending
}

// Cycle finds a way along dependencies from an item back to itself, as the names along it; nil where there is none. edges
// gives the names that an item depends on.
func Cycle(start string, edges func(name string) []string) []string {
	seen := map[string]bool{}
	var walk func(name string, path []string) []string
	walk = func(name string, path []string) []string {
		for _, next := range edges(name) {
			if next == start {
				return append(slices.Clone(path), next)
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if found := walk(next, append(path, next)); found != nil {
				return found
			}
		}
		return nil
	}
	return walk(start, []string{start})
}
