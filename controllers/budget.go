package controllers

// This file shows usage, and warnings about budgets: as a condition that goes away by itself, and as an event when it comes.

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

// budgetCondition is the condition that shows a warning: none where there is nothing to warn of.
func budgetCondition(warning model.Why) []metav1.Condition {
	if warning.Reason == "" {
		return nil
	}
	return []metav1.Condition{condition(api.ConditionBudgetWarning, true, warning.Reason, warning.Message)}
}

// tellBudget reports a warning that a written status has and the one before had not, or of another reason.
func (r *reconciler) tellBudget(object client.Object, before, after []metav1.Condition) {
	warning := apimeta.FindStatusCondition(after, api.ConditionBudgetWarning)
	last := apimeta.FindStatusCondition(before, api.ConditionBudgetWarning)
	if warning == nil || (last != nil && last.Reason == warning.Reason) {
		return
	}
	r.events.Eventf(object, nil, corev1.EventTypeWarning, warning.Reason, "Warn", "%s", warning.Message)
}

func usageStatus(u model.Usage) api.UsageStatus {
	status := api.UsageStatus{
		InputTokens:         u.InputTokens,
		OutputTokens:        u.OutputTokens,
		CacheReadTokens:     u.CacheReadTokens,
		CacheCreationTokens: u.CacheCreationTokens,
		Tokens:              u.Tokens(),
		UnpricedTokens:      max(0, u.UnpricedTokens),
	}
	if u.CostKnown {
		status.CostUSD = dollars(u.CostMicroUSD)
	}
	return status
}

func usageOf(s api.UsageStatus) model.Usage {
	micro, known := microUSD(s.CostUSD)
	u := model.Usage{
		InputTokens:         s.InputTokens,
		OutputTokens:        s.OutputTokens,
		CacheReadTokens:     s.CacheReadTokens,
		CacheCreationTokens: s.CacheCreationTokens,
		CostMicroUSD:        micro,
		CostKnown:           known,
		UnpricedTokens:      s.UnpricedTokens,
	}
	if !known {
		u.UnpricedTokens = u.Tokens() // also in a status from before it told of them
	}
	return u
}

// dollars writes millionths of a US dollar as a decimal with at least two digits after the point.
func dollars(micro int64) string {
	text := fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000)
	cents := len(text) - 4
	return text[:cents] + strings.TrimRight(text[cents:], "0")
}

// microUSD reads what dollars wrote.
func microUSD(text string) (micro int64, known bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > 6 {
		return 0, false
	}
	micro, err := strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
	return micro, err == nil && whole != ""
}
