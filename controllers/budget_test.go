package controllers

// This file tests how usage and budgets stand in a status.

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

func TestUsageInStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		usage model.Usage
		want  api.UsageStatus
	}{
		"none": {model.Usage{}, api.UsageStatus{}},
		"a known cost": {model.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheCreationTokens: 4, CostMicroUSD: 1_234_500, CostKnown: true},
			api.UsageStatus{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheCreationTokens: 4, Tokens: 10, CostUSD: "1.2345"}},
		"a cost of nothing":          {model.Usage{InputTokens: 1, CostKnown: true}, api.UsageStatus{InputTokens: 1, Tokens: 1, CostUSD: "0.00"}},
		"unknown is not zero":        {model.Usage{InputTokens: 9, UnpricedTokens: 9}, api.UsageStatus{InputTokens: 9, Tokens: 9, UnpricedTokens: 9}},
		"a part of which is unknown": {model.Usage{InputTokens: 9, CostMicroUSD: 70_000, CostKnown: true, UnpricedTokens: 4}, api.UsageStatus{InputTokens: 9, Tokens: 9, CostUSD: "0.07", UnpricedTokens: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			got := usageStatus(tc.usage)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if back := usageOf(got); back != tc.usage {
				t.Errorf("a store that takes it from status has %+v, not %+v", back, tc.usage)
			}
		})
	}
}

func TestUsageOfAnOlderStatusIsUnknownWhereNoCostStands(t *testing.T) {
	got := usageOf(api.UsageStatus{InputTokens: 5, OutputTokens: 2, Tokens: 7})
	if want := (model.Usage{InputTokens: 5, OutputTokens: 2, UnpricedTokens: 7}); got != want {
		t.Errorf("it is %+v", got)
	}
}

func TestABudgetWarningIsToldOnce(t *testing.T) {
	warning := func(reason string) []metav1.Condition {
		return budgetCondition(model.Why{Reason: reason, Message: "m"})
	}
	for name, tc := range map[string]struct {
		before, after []metav1.Condition
		want          string
	}{
		"when it comes":         {nil, warning(api.ReasonBudgetNearlyUsed), "Warning BudgetNearlyUsed m"},
		"not while it stays":    {warning(api.ReasonBudgetNearlyUsed), warning(api.ReasonBudgetNearlyUsed), ""},
		"when it becomes worse": {warning(api.ReasonBudgetNearlyUsed), warning(api.ReasonBudgetUsedUp), "Warning BudgetUsedUp m"},
		"not when it goes":      {warning(api.ReasonBudgetUsedUp), nil, ""},
		"not without any":       {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(4)
			r := &reconciler{events: recorder}
			r.tellBudget(&api.Team{}, tc.before, tc.after)
			got := ""
			select {
			case got = <-recorder.Events:
			default:
			}
			if got != tc.want {
				t.Errorf("the event is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAWarningStaysWhileTheOfficeCannotBeAsked(t *testing.T) {
	old := budgetCondition(model.Why{Reason: api.ReasonBudgetUsedUp, Message: "m"})
	if diff := cmp.Diff(old, personBudget(nil, old)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if got := personBudget(&model.PersonView{}, old); got != nil {
		t.Errorf("an office that warns of nothing leaves %+v", got)
	}
	team := &api.Team{Status: api.TeamStatus{Conditions: old}}
	status := teamStatus(team, model.TeamView{}, nil, nil, errStale, noon)
	if len(status.Conditions) != 2 {
		t.Errorf("the conditions are %+v", status.Conditions)
	}
	status = teamStatus(team, model.TeamView{}, nil, nil, nil, noon)
	if len(status.Conditions) != 1 {
		t.Errorf("the conditions are %+v", status.Conditions)
	}
}
