package dispatch

// This file decides when usage holds work back: full usage windows pause people, budgets warn, then hold items, then end rounds.

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// unknownReset is how long a full window pauses people when its reset time was not reported.
const unknownReset = 5 * time.Minute

// PausedUntil is when the last of the windows that are full at now resets, and that window's name. It is zero where none is full,
// or where pauseAt is 0.
func PausedUntil(w model.Windows, pauseAt float64, now time.Time) (time.Time, string) {
	var until time.Time
	var name string
	if pauseAt <= 0 {
		return until, name
	}
	for _, window := range w.Windows {
		if window.Utilization < pauseAt {
			continue
		}
		reset := window.ResetsAt
		if reset.IsZero() {
			reset = w.At.Add(unknownReset)
		}
		if reset.After(now) && reset.After(until) {
			until, name = reset, window.Name
		}
	}
	return until, name
}

// Spent is the usage that budgets are held against, with the rounds that are offered or running.
type Spent struct {
	Team          model.Usage
	Person        model.Usage
	TeamRunning   int
	PersonRunning int
	// Recent are the team's latest rounds: what one that runs will likely use.
	Recent model.Rounds
}

// exceeds says why one more round of the item would not fit into a budget. Each running round has its reserve set aside, so that rounds
// side by side cannot all pass one check.
func (s Spent) exceeds(budgets []model.Budget, it model.Item) model.Why {
	for _, b := range budgets {
		for _, a := range s.amounts(b, it) {
			if !a.room() {
				return model.Why{Reason: model.ReasonBudgetExhausted, Message: a.hold(b.Scope), Scope: b.Scope}
			}
		}
	}
	return model.Why{}
}

// stops says why a round of the item that runs is to be ended.
func (s Spent) stops(budgets []model.Budget, it model.Item) model.Why {
	for _, b := range budgets {
		for _, a := range s.amounts(b, it) {
			if a.reached(b.StopAt) {
				return model.Why{Reason: model.ReasonBudgetStopped, Message: fmt.Sprintf(
					"The budget of scope %s ended the round: %s. Raise it in the team's usage.budgets, then set spec.rerun.", b.Scope, a.share())}
			}
		}
	}
	return model.Why{}
}

// TeamHold says why the team's own budgets have no room for a further round, whoever takes it; a zero Why is that they have.
func (s Spent) TeamHold(budgets []model.Budget) model.Why {
	return s.exceeds(ofTeam(budgets), model.Item{})
}

// TeamStops says whether the team's own budgets end all rounds that run.
func (s Spent) TeamStops(budgets []model.Budget) bool {
	return s.stops(ofTeam(budgets), model.Item{}).Reason != ""
}

// ofTeam are those of the budgets that bound the team as a whole.
func ofTeam(budgets []model.Budget) []model.Budget {
	var list []model.Budget
	for _, b := range budgets {
		if b.Scope == model.BudgetTeam {
			list = append(list, b)
		}
	}
	return list
}

// Stops says whether any of the budgets ends rounds, if enough is used.
func Stops(budgets []model.Budget) bool {
	return slices.ContainsFunc(budgets, func(b model.Budget) bool { return b.StopAt > 0 })
}

// freed gives those of the items, held by a budget, for which there is room again beside one more round.
func (s Spent) freed(budgets []model.Budget, items []model.Item) []model.Item {
	s.TeamRunning++
	s.PersonRunning++
	var free []model.Item
	for _, it := range items {
		if it.Hold.Reason != model.ReasonBudgetExhausted {
			continue
		}
		if s.exceeds(budgets, it).Reason == "" {
			it.Hold = model.Why{}
			free = append(free, it)
		}
	}
	return free
}

// stopped ends a round that a budget ends. The item waits for its user.
func stopped(it model.Item, why model.Why, now time.Time) Outcome {
	ended := end(&it, model.OutcomeStopped, why.Message, now)
	settle(&it, protocol.StateBlocked, why, now)
	return Outcome{Item: it, Ended: ended, Changed: true}
}

// BudgetWarning says what people are to know of the budgets of one scope, of which so much is used; a zero Why is nothing.
func BudgetWarning(budgets []model.Budget, scope model.BudgetScope, used model.Usage) model.Why {
	var why model.Why
	for _, b := range budgets {
		if b.Scope != scope || b.WarnAt <= 0 {
			continue
		}
		var full, near, blind []string
		for _, a := range amounts(b, used) {
			switch {
			case a.reached(1):
				full = append(full, a.share())
			case a.reached(b.WarnAt):
				near = append(near, a.share())
			}
			if text := a.unknown(); text != "" {
				blind = append(blind, text)
			}
		}
		then := ""
		if b.StopAt > 0 {
			then = fmt.Sprintf(" From %d %% on running rounds are ended.", percent(b.StopAt))
		}
		switch {
		case len(full) > 0:
			why = model.Why{Reason: model.ReasonBudgetUsedUp, Message: fmt.Sprintf(
				"The budget of scope %s is used up: %s. No further round starts in it.%s Raise it in the team's usage.budgets.",
				scope, strings.Join(full, ", "), then)}
		case len(near) > 0:
			why = model.Why{Reason: model.ReasonBudgetNearlyUsed, Message: fmt.Sprintf(
				"The budget of scope %s is nearly used up: %s. At 100 %% no further round starts in it.%s", scope, strings.Join(near, ", "), then)}
		case len(blind) > 0:
			why = model.Why{Reason: model.ReasonCostUnknown, Message: fmt.Sprintf("The budget of scope %s cannot be held in full.", scope)}
		}
		why.Message += strings.Join(blind, "")
	}
	return why
}

// amount is one bound of a budget and what is held against it, in tokens or in millionths of a US dollar.
type amount struct {
	limit int64
	used  int64
	// unpriced are tokens that a bound in dollars cannot count.
	unpriced int64
	// running rounds have a reserve each set aside. A declared one is what a further round needs too, one that the office estimates is
	// not: there has to be something left, but nobody knows how much it takes.
	running  int64
	reserve  int64
	declared bool
	dollars  bool
}

// amounts gives the bounds of a budget that there are.
func amounts(b model.Budget, used model.Usage) []amount {
	var list []amount
	if b.Tokens > 0 {
		list = append(list, amount{limit: b.Tokens, used: used.Tokens(), reserve: b.ReserveTokens})
	}
	if b.CostMicroUSD > 0 {
		list = append(list, amount{limit: b.CostMicroUSD, used: used.CostMicroUSD, reserve: b.ReserveMicroUSD,
			unpriced: used.UnpricedTokens, dollars: true})
	}
	return list
}

// amounts gives the bounds of a budget for one more round of the item.
func (s Spent) amounts(b model.Budget, it model.Item) []amount {
	used, running := s.Team, s.TeamRunning
	switch b.Scope {
	case model.BudgetPerson:
		used, running = s.Person, s.PersonRunning
	case model.BudgetItem:
		used, running = it.Usage, 0
	}
	list := amounts(b, used)
	tokens, microUSD := s.Recent.Mean()
	for i := range list {
		a := &list[i]
		a.running = int64(running)
		if a.declared = a.reserve > 0; !a.declared {
			a.reserve = max(tokens, a.limit/100, 1)
			if a.dollars {
				a.reserve = max(microUSD, a.limit/100, 1)
			}
		}
	}
	return list
}

// room says whether a further round fits.
func (a amount) room() bool {
	left := a.limit - a.used
	switch {
	case left <= 0:
		return false
	case a.declared:
		return a.running < left/a.reserve
	}
	return a.running <= (left-1)/a.reserve
}

// reached says whether a fraction of the bound is used; 0 is never.
func (a amount) reached(fraction float64) bool {
	return fraction > 0 && float64(a.used) >= fraction*float64(a.limit)
}

// share says how much is used.
func (a amount) share() string {
	part := percent(float64(a.used) / float64(a.limit))
	if a.dollars {
		return fmt.Sprintf("%s of %s (%d %%)", usd(a.used), a.text(a.limit), part)
	}
	return fmt.Sprintf("%d of %s (%d %%)", a.used, a.text(a.limit), part)
}

// hold says why there is no room. It has no number that changes with each round: an item that waits is not written for that.
func (a amount) hold(scope model.BudgetScope) string {
	why := "has too little left for a further round beside those that run"
	switch {
	case a.used >= a.limit:
		why = "is used up"
	case a.declared:
		why = fmt.Sprintf("has less left than the %s that are set aside for each round", a.text(a.reserve))
	}
	text := fmt.Sprintf("The budget of scope %s, %s, %s. Raise it in the team's usage.budgets.", scope, a.text(a.limit), why)
	if a.unpriced > 0 {
		text += " More is used than it counts: of some tokens nobody knows the cost."
	}
	return text
}

// text writes a number in the bound's unit.
func (a amount) text(n int64) string {
	if a.dollars {
		return usd(n) + " USD"
	}
	return fmt.Sprintf("%d tokens", n)
}

// unknown says what a bound in dollars cannot count.
func (a amount) unknown() string {
	if a.unpriced <= 0 {
		return ""
	}
	return fmt.Sprintf(" Not counted in it is the cost of %d tokens, which nobody knows: give the price of their models in the team's "+
		"usage.prices, or a budget in tokens.", a.unpriced)
}

// percent is a fraction in percent, rounded down.
func percent(fraction float64) int64 { return int64(fraction*100 + 1e-9) }

// usd writes an amount with cents, or with more where it is less than one.
func usd(micro int64) string {
	if micro != 0 && micro < 10_000 && micro > -10_000 {
		return fmt.Sprintf("%.6f", float64(micro)/1e6)
	}
	return fmt.Sprintf("%.2f", float64(micro)/1e6)
}
