package office

// This file decides whether a session takes a message of a human, and says why not. The session object says it, and the answer to whoever
// speaks all the same.

import (
	"cmp"
	"fmt"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
)

// refusedError says why a session takes no message. reason is one of the feed's Blocked constants; surface is where to speak instead, empty
// where that is nowhere.
type refusedError struct{ reason, detail, surface string }

// Error is the detail.
func (e *refusedError) Error() string { return e.detail }

// surfaceChat names the chat in which a chat session is held.
const surfaceChat = "chat"

// refusal says why the session of the item takes no message; nil where it takes one. Whether somebody may send one is another question.
func refusal(s model.Session, it model.Item, budgets []model.Budget) *refusedError {
	switch {
	case !s.ClosedAt.IsZero():
		return &refusedError{reason: feed.BlockedClosed, detail: "the session is closed: make a new work item, or set spec.rerun of this one"}
	case s.Closing:
		return &refusedError{reason: feed.BlockedClosed, detail: "a message was taken that closes the session: make a new work item"}
	case it.IsChat():
		return &refusedError{feed.BlockedMentionSurface, "the session is held in a chat thread: answer there", surfaceChat}
	case !s.Interactive:
		return &refusedError{reason: feed.BlockedNonInteractive, detail: fmt.Sprintf(
			"work of kind %s ends with its first turn, without a review: make a new work item for what comes after", cmp.Or(it.Spec.Kind, "?"))}
	case it.Hold.Reason == model.ReasonBudgetExhausted:
		return &refusedError{reason: feed.BlockedBudgetExhausted, detail: it.Hold.Message}
	case usedUp(budgets, it.Usage):
		return &refusedError{reason: feed.BlockedBudgetExhausted, detail: "the budget of the work item is used up: raise it in the team's usage.budgets"}
	}
	return nil
}

// usedUp says whether a budget of a single item has nothing left.
func usedUp(budgets []model.Budget, used model.Usage) bool {
	for _, b := range budgets {
		if b.Scope != model.BudgetItem {
			continue
		}
		if b.Tokens > 0 && used.Tokens() >= b.Tokens || b.CostMicroUSD > 0 && used.CostMicroUSD >= b.CostMicroUSD {
			return true
		}
	}
	return false
}
