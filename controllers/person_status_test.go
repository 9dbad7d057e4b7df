package controllers

// This file tests the projection of a person into its status.

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestPersonConditions(t *testing.T) {
	connected := &model.PersonView{Connected: true, State: model.PersonIdle}
	failing := &model.Doctor{Checks: []protocol.DoctorCheck{
		{Name: "git", Status: protocol.CheckFail}, {Name: "room", Status: protocol.CheckWarn}, {Name: "go", Status: protocol.CheckOK},
	}}
	tests := map[string]struct {
		edit func(*personSnapshot)
		view *model.PersonView
		errs personErrors
		// want has type=status/reason of every condition.
		want  []string
		state model.PersonState
	}{
		"ready": {view: connected, want: []string{"Ready=True/Ready"}, state: model.PersonIdle},
		"suspended": {edit: func(s *personSnapshot) { s.person.Spec.Suspend = true }, view: connected,
			want: []string{"Ready=True/Suspended"}, state: model.PersonIdle},
		"not connected": {view: &model.PersonView{State: model.PersonOffline}, want: []string{"Ready=False/AgentOffline"}, state: model.PersonOffline},
		"no team":       {edit: func(s *personSnapshot) { s.team = nil }, want: []string{"Ready=False/TeamNotFound"}, state: model.PersonOffline},
		"the handle is taken": {edit: func(s *personSnapshot) { s.rival = "older" },
			want: []string{"Ready=False/HandleTaken", "Stalled=True/HandleTaken"}, state: model.PersonOffline},
		"the office has trouble": {errs: personErrors{office: errors.New("disk full")}, want: []string{"Ready=False/OfficeUnavailable"}, state: model.PersonWorking},
		"the API server has trouble": {errs: personErrors{objects: errors.New("timeout")}, view: connected,
			want: []string{"Ready=False/PodPending"}, state: model.PersonIdle},
		"a refused pod": {edit: withoutPod, view: connected, errs: personErrors{objects: &problem{reason: api.ReasonPodRefused, message: "quota", stalled: true}},
			want: []string{"Ready=False/PodRefused", "Stalled=True/PodRefused"}, state: model.PersonIdle},
		"a rollout that waits": {edit: outdatedPod, view: &model.PersonView{Connected: true, Busy: true, State: model.PersonWorking},
			want: []string{"Ready=True/Ready", "RolloutPending=True/WaitingForRound"}, state: model.PersonWorking},
		"checks that failed": {view: &model.PersonView{Connected: true, State: model.PersonIdle, Doctor: failing},
			want: []string{"Ready=True/Ready", "DoctorOK=False/ChecksFailed"}, state: model.PersonIdle},
		"checks that passed": {view: &model.PersonView{Connected: true, State: model.PersonIdle, Doctor: &model.Doctor{}},
			want: []string{"Ready=True/Ready", "DoctorOK=True/ChecksPassed"}, state: model.PersonIdle},
		"a report stays known while the agent is away": {
			edit: func(s *personSnapshot) {
				s.person.Status.Conditions = setConditions(nil, 3, noon, condition(api.ConditionDoctor, false, api.ReasonDoctorChecksFailed, "x"))
			},
			view: &model.PersonView{State: model.PersonOffline}, want: []string{"DoctorOK=False/ChecksFailed", "Ready=False/AgentOffline"}, state: model.PersonOffline},
		"a budget that is nearly used up": {
			view: &model.PersonView{Connected: true, State: model.PersonIdle, BudgetWarning: model.Why{Reason: api.ReasonBudgetNearlyUsed, Message: "m"}},
			want: []string{"Ready=True/Ready", "BudgetWarning=True/BudgetNearlyUsed"}, state: model.PersonIdle},
		"what is over goes": {
			edit: func(s *personSnapshot) {
				s.person.Status.Conditions = append(s.person.Status.Conditions, condition(api.ConditionStalled, true, "x", "x"))
			},
			view: connected, want: []string{"Ready=True/Ready"}, state: model.PersonIdle},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := aSnapshot(t)
			s.person.Status.State = api.PersonState(model.PersonWorking)
			if test.edit != nil {
				test.edit(s)
			}
			want := planObjects(s, testOperator)
			pod := planPod(s, want, test.view, test.errs.objects, noon)
			if want.problem != nil {
				test.errs.objects = want.problem
			}
			got := personStatus(s, want, test.view, pod, test.errs, noon)
			var conditions []string
			for _, c := range got.Conditions {
				conditions = append(conditions, c.Type+"="+string(c.Status)+"/"+c.Reason)
				if c.ObservedGeneration != s.person.Generation || c.LastTransitionTime.IsZero() {
					t.Errorf("%s is of generation %d since %s", c.Type, c.ObservedGeneration, c.LastTransitionTime)
				}
			}
			if diff := cmp.Diff(test.want, conditions); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if got.State != api.PersonState(test.state) {
				t.Errorf("the state is %q", got.State)
			}
		})
	}
}

func TestPersonStatusShowsTheView(t *testing.T) {
	s := aSnapshot(t)
	view := &model.PersonView{
		State: model.PersonPaused, Connected: true, AgentVersion: "1.2", CurrentItem: "one", Queued: 2, PausedUntil: noon.Add(time.Hour),
		Usage:   model.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheCreationTokens: 4},
		Windows: []model.Window{{Name: "five_hour", Utilization: 0.966, ResetsAt: noon.Add(time.Hour)}},
		Doctor:  &model.Doctor{Checks: []protocol.DoctorCheck{{Name: "git", Status: protocol.CheckFail, Detail: "none", Fix: "install it"}, {Name: "go", Status: protocol.CheckOK}}},
		StoreID: "s",
	}
	got := personStatus(s, planObjects(s, testOperator), view, podPlan{}, personErrors{}, noon)
	later := metav1.NewTime(noon.Add(time.Hour))
	want := api.PersonStatus{
		ObservedGeneration: 3, State: "paused", CurrentItem: "one", Queued: 2, PausedUntil: &later, AgentVersion: "1.2", Runtime: "command",
		Windows: []api.UsageWindow{{Name: "five_hour", UsedPercent: 97, ResetsAt: &later}},
		Doctor:  []api.DoctorCheck{{Name: "git", Status: "fail", Detail: "none", Fix: "install it"}},
		Usage:   api.UsageStatus{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheCreationTokens: 4, Tokens: 10},
		Store:   api.StoreRef{ID: "s"},
	}
	got.Conditions = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestPersonFacts(t *testing.T) {
	s := aSnapshot(t, func(s *personSnapshot) {
		s.person.Spec.Agent.Hooks = &api.EnvironmentHooks{BeforeStart: "own"}
		s.team.Spec.Agent.Hooks = &api.EnvironmentHooks{BuildBase: "team"}
		s.person.Spec.Services = []api.Service{{Name: "db", Address: "db:5432"}}
	})
	got := personFacts(s, planObjects(s, testOperator))
	want := model.Person{
		UID: "ada-uid", Key: model.PersonKey{Team: model.TeamKey{Namespace: "dev", Name: "core"}, Handle: "ada"}, Name: "ada", DisplayName: "ada",
		Runtime: "command", Approvals: "allow", Services: []protocol.TeamService{{Name: "db", Address: "db:5432"}}, TokenHash: got.TokenHash,
		Environment: &protocol.TeamEnvironment{Hooks: protocol.TeamHooks{BuildBase: "team", BeforeStart: "own"}},
		CreatedAt:   noon.Add(-time.Hour),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}
