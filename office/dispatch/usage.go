package dispatch

// This file decides when usage holds work back: full usage windows pause people, budgets hold items.

import (
	"fmt"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
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
}

// exceeds says why one more round of the item would not fit into a budget. Each running round has its reserve set aside, and the
// new one needs its own, so that rounds side by side cannot all pass one check.
func (s Spent) exceeds(budgets []model.Budget, it model.Item) model.Why {
	for _, b := range budgets {
		usage, running := s.Team, s.TeamRunning
		switch b.Scope {
		case model.BudgetPerson:
			usage, running = s.Person, s.PersonRunning
		case model.BudgetItem:
			usage, running = it.Usage, 0
		}
		rounds := int64(running + 1)
		if b.Tokens > 0 && (usage.Tokens() >= b.Tokens || usage.Tokens()+rounds*b.ReserveTokens > b.Tokens) {
			return budgetWhy(b, fmt.Sprintf("%d of %d tokens are used", usage.Tokens(), b.Tokens))
		}
		if b.CostMicroUSD > 0 && (usage.CostMicroUSD >= b.CostMicroUSD || usage.CostMicroUSD+rounds*b.ReserveMicroUSD > b.CostMicroUSD) {
			return budgetWhy(b, fmt.Sprintf("%.2f of %.2f USD are used", float64(usage.CostMicroUSD)/1e6, float64(b.CostMicroUSD)/1e6))
		}
	}
	return model.Why{}
}

func budgetWhy(b model.Budget, used string) model.Why {
	return model.Why{Reason: model.ReasonBudgetExhausted, Message: fmt.Sprintf(
		"The budget of scope %s leaves no room for a further round: %s. Raise it in the team's usage.budgets.", b.Scope, used)}
}
