package model

// This file has the reasons that the office gives for where an item is. They are the same words as the API's condition
// reasons, which a test holds together.

// Reasons of Item.Hold: why a queued item cannot be offered, whoever is idle. All heal by themselves.
const (
	ReasonTeamNotFound       = "TeamNotFound"
	ReasonPersonNotFound     = "PersonNotFound"
	ReasonRoleNotFound       = "RoleNotFound"
	ReasonNobodyInRole       = "NobodyInRole"
	ReasonDependencyPending  = "DependencyPending"
	ReasonDependencyNotFound = "DependencyNotFound"
	ReasonDependencyCycle    = "DependencyCycle"
	ReasonBudgetExhausted    = "BudgetExhausted"
)

// Reasons of Item.End: why an item is done, waiting, blocked or canceled.
const (
	ReasonDone              = "Done"
	ReasonSilent            = "Silent"
	ReasonWaiting           = "Waiting"
	ReasonBlocked           = "Blocked"
	ReasonNothingToReview   = "NothingToReview"
	ReasonAttemptsExhausted = "AttemptsExhausted"
	ReasonRoundsLost        = "RoundsLost"
	ReasonDependencyFailed  = "DependencyFailed"
	ReasonCanceled          = "Canceled"
	ReasonMoved             = "Moved"
	ReasonBudgetStopped     = "BudgetStopped"
	ReasonStopped           = "Stopped"
)

// Reasons of a warning about a budget, the worst first.
const (
	ReasonBudgetUsedUp     = "BudgetUsedUp"
	ReasonBudgetNearlyUsed = "BudgetNearlyUsed"
	ReasonCostUnknown      = "CostUnknown"
)
