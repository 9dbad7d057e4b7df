package controllers

// This file projects what is known of a person into its status.

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	maxWindows  = 16
	maxChecks   = 32
	detailRunes = 500
)

// personErrors are what went wrong on the way: with the person's objects (a *problem is worded for users), and with the office.
type personErrors struct{ objects, office error }

// personStatus is the status of a person. Where the office could not be asked, what it said before stays.
func personStatus(s *personSnapshot, want *wanted, view *model.PersonView, pod podPlan, errs personErrors, now time.Time) api.PersonStatus {
	status := *s.person.Status.DeepCopy()
	status.ObservedGeneration = s.person.Generation
	status.Runtime = want.settings.Runtime
	status.Model = want.settings.Model
	switch {
	case view != nil:
		showView(&status, view)
	case errs.office == nil:
		// The office has no such person, or none that could work.
		status.State, status.CurrentItem, status.Queued, status.PausedUntil = api.PersonState(model.PersonOffline), "", 0, nil
	}
	wanted := readiness(s, view, pod, errs, now)
	if pod.pending != "" {
		wanted = append(wanted, condition(api.ConditionRolloutPending, true, api.ReasonBetweenRounds, pod.pending))
	}
	if c := doctorCondition(view, s.person.Status.Conditions); c != nil {
		wanted = append(wanted, *c)
	}
	wanted = append(wanted, personBudget(view, s.person.Status.Conditions)...)
	status.Conditions = setConditions(s.person.Status.Conditions, s.person.Generation, now, wanted...)
	return status
}

// personBudget is the warning about the person's budget; without an office to ask, it stays as it is.
func personBudget(view *model.PersonView, old []metav1.Condition) []metav1.Condition {
	if view != nil {
		return budgetCondition(view.BudgetWarning)
	}
	if warning := apimeta.FindStatusCondition(old, api.ConditionBudgetWarning); warning != nil {
		return []metav1.Condition{*warning}
	}
	return nil
}

func showView(status *api.PersonStatus, view *model.PersonView) {
	status.State = api.PersonState(view.State)
	status.CurrentItem = view.CurrentItem
	status.Queued = int32(view.Queued)
	status.PausedUntil = stampOf(view.PausedUntil)
	if view.AgentVersion != "" {
		status.AgentVersion = cut(view.AgentVersion, 100)
	}
	status.Usage = usageStatus(view.Usage)
	status.Store = api.StoreRef{ID: view.StoreID}
	status.Windows = nil
	for _, w := range view.Windows[:min(len(view.Windows), maxWindows)] {
		status.Windows = append(status.Windows, api.UsageWindow{
			Name: w.Name, UsedPercent: int32(math.Round(w.Utilization * 100)), ResetsAt: stampOf(w.ResetsAt),
		})
	}
	status.Doctor = nil
	for _, c := range failedChecks(view.Doctor) {
		status.Doctor = append(status.Doctor, api.DoctorCheck{
			Name: cut(c.Name, detailRunes), Status: string(c.Status), Detail: cut(c.Detail, detailRunes), Fix: cut(c.Fix, detailRunes),
		})
	}
}

// readiness gives Ready, and Stalled where a user must mend something. What lies deeper is told first.
func readiness(s *personSnapshot, view *model.PersonView, pod podPlan, errs personErrors, now time.Time) []metav1.Condition {
	if p := trouble(s, view, pod, errs, now); p != nil {
		conditions := []metav1.Condition{condition(api.ConditionReady, false, p.reason, p.message)}
		if p.stalled {
			conditions = append(conditions, condition(api.ConditionStalled, true, p.reason, p.message))
		}
		return conditions
	}
	if s.person.Spec.Suspend {
		return []metav1.Condition{condition(api.ConditionReady, true, api.ReasonSuspended,
			"The agent is connected; no new rounds start while spec.suspend is true.")}
	}
	return []metav1.Condition{condition(api.ConditionReady, true, api.ReasonReady, "The agent is connected.")}
}

func trouble(s *personSnapshot, view *model.PersonView, pod podPlan, errs personErrors, now time.Time) *problem {
	var p *problem
	if errors.As(errs.objects, &p) {
		return p
	}
	if errs.objects != nil {
		return &problem{reason: api.ReasonPodPending, message: fmt.Sprintf("The API server could not be written to: %v", errs.objects)}
	}
	if pod.remove != nil {
		return &problem{reason: api.ReasonPodTerminating, message: fmt.Sprintf("Pod %s is replaced: %s.", pod.remove.Name, pod.why)}
	}
	if pod.create != nil {
		return &problem{reason: api.ReasonPodPending, message: fmt.Sprintf("Pod %s is not started yet.", pod.create.Name)}
	}
	if p := podTrouble(s.pod, s.home, now); p != nil {
		return p
	}
	if errs.office != nil {
		return &problem{reason: api.ReasonOfficeUnavailable, message: officeMessage}
	}
	if view == nil || !view.Connected {
		return &problem{reason: api.ReasonAgentOffline, message: fmt.Sprintf(
			"Pod %s runs, but its agent is not connected to the office; see its log.", s.pod.Name)}
	}
	return nil
}

// failedChecks are those of a doctor's report that are not ok.
func failedChecks(doctor *model.Doctor) []protocol.DoctorCheck {
	var failed []protocol.DoctorCheck
	if doctor == nil {
		return nil
	}
	for _, c := range doctor.Checks {
		if c.Status != protocol.CheckOK && len(failed) < maxChecks {
			failed = append(failed, c)
		}
	}
	return failed
}

// doctorCondition sums the doctor's report up; without a report, or without an office to ask, the condition stays as it is.
func doctorCondition(view *model.PersonView, old []metav1.Condition) *metav1.Condition {
	if view == nil || view.Doctor == nil {
		for i := range old {
			if old[i].Type == api.ConditionDoctor {
				return &old[i]
			}
		}
		return nil
	}
	var names []string
	for _, c := range failedChecks(view.Doctor) {
		if c.Status == protocol.CheckFail {
			names = append(names, c.Name)
		}
	}
	c := condition(api.ConditionDoctor, true, api.ReasonDoctorChecksPassed, "The agent's checks of its environment passed.")
	if len(names) > 0 {
		c = condition(api.ConditionDoctor, false, api.ReasonDoctorChecksFailed,
			fmt.Sprintf("Failed: %s. See status.doctor for what to change.", strings.Join(names, ", ")))
	}
	return &c
}
