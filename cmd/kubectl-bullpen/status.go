package main

// This file has kubectl bullpen status: teams and people at a glance, and what needs somebody.

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

func (c *cli) status() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show teams and people at a glance, and what needs somebody",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := c.load(cmd.Context())
			if err != nil {
				return err
			}
			view := statusOf(w, c.now())
			if c.output == "json" {
				return printJSON(c.out, view)
			}
			return view.print(c.out, c.wide())
		},
	}
	c.outputs(cmd, "json", "wide")
	return cmd
}

// statusView is what status shows.
type statusView struct {
	Teams  []teamLine   `json:"teams"`
	People []personLine `json:"people"`
	// Notes are what needs somebody.
	Notes []note `json:"notes"`
	many  bool
}

type teamLine struct {
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Ready     string          `json:"ready"`
	Reason    string          `json:"reason"`
	People    string          `json:"people"`
	Items     api.ItemCounts  `json:"workItems"`
	Usage     api.UsageStatus `json:"usage"`
}

type personLine struct {
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Team      string          `json:"team"`
	Role      string          `json:"role,omitempty"`
	State     string          `json:"state"`
	Reason    string          `json:"reason"`
	Item      string          `json:"currentItem,omitempty"`
	Queued    int32           `json:"queued"`
	Doctor    string          `json:"doctor"`
	Paused    string          `json:"pausedFor,omitempty"`
	Runtime   string          `json:"runtime,omitempty"`
	Model     string          `json:"model,omitempty"`
	Usage     api.UsageStatus `json:"usage"`
}

// note says what is not as it should be about one object.
type note struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

func statusOf(w *world, now time.Time) statusView {
	view := statusView{Teams: []teamLine{}, People: []personLine{}, Notes: []note{}, many: w.namespace == ""}
	for i := range w.teams.Items {
		t := &w.teams.Items[i]
		status, reason := readiness(t.Status.Conditions)
		view.Teams = append(view.Teams, teamLine{
			Namespace: t.Namespace, Name: t.Name, Ready: status, Reason: reason, People: t.Status.People.Summary,
			Items: t.Status.WorkItems, Usage: t.Status.Usage,
		})
		view.note("team", t.ObjectMeta, t.Status.Conditions)
	}
	for i := range w.people.Items {
		p := &w.people.Items[i]
		_, reason := readiness(p.Status.Conditions)
		line := personLine{
			Namespace: p.Namespace, Name: p.Name, Team: string(p.Spec.Team), Role: string(p.Spec.Role), State: string(p.Status.State), Reason: reason,
			Item: p.Status.CurrentItem, Queued: p.Status.Queued, Doctor: doctorIn(p), Runtime: string(p.Status.Runtime), Model: p.Status.Model,
			Usage: p.Status.Usage,
		}
		if at := p.Status.PausedUntil; at != nil {
			line.Paused = until(at.Time, now)
		}
		view.People = append(view.People, line)
		view.note("person", p.ObjectMeta, p.Status.Conditions)
	}
	for i := range w.items.Items {
		it := &w.items.Items[i]
		if is(it.Status.Conditions, api.ConditionStalled) {
			view.note("workitem", it.ObjectMeta, it.Status.Conditions)
		}
	}
	return view
}

// note notes what the conditions of an object say that is not as it should be.
func (v *statusView) note(kind string, o metav1.ObjectMeta, conditions []metav1.Condition) {
	for _, c := range conditions {
		wrong := c.Status == metav1.ConditionFalse
		switch c.Type {
		case api.ConditionReady, api.ConditionDoctor, api.ConditionEvents:
		case api.ConditionBudgetWarning:
			wrong = !wrong
		default:
			continue // Stalled and Failed repeat what Ready says
		}
		if wrong {
			v.Notes = append(v.Notes, note{Namespace: o.Namespace, Kind: kind, Name: o.Name, Reason: c.Reason, Message: c.Message})
		}
	}
}

// readiness is the status and the reason of the condition Ready.
func readiness(conditions []metav1.Condition) (status, reason string) {
	c := apimeta.FindStatusCondition(conditions, api.ConditionReady)
	if c == nil {
		return "Unknown", "NotSeenYet"
	}
	return string(c.Status), c.Reason
}

// doctorIn says in a word what a person's checks say.
func doctorIn(p *api.Person) string {
	fails, warns := 0, 0
	for _, check := range p.Status.Doctor {
		if check.Status == "fail" {
			fails++
		} else {
			warns++
		}
	}
	switch {
	case fails > 0:
		return fmt.Sprintf("%d fail", fails)
	case warns > 0:
		return fmt.Sprintf("%d warn", warns)
	case apimeta.FindStatusCondition(p.Status.Conditions, api.ConditionDoctor) == nil:
		return "no report"
	}
	return "ok"
}

func (v *statusView) print(out io.Writer, wide bool) error {
	teams := newTable("NAMESPACE?", "TEAM", "READY", "PEOPLE", "QUEUED", "ACTIVE", "WAITING", "BLOCKED", "DONE", "TOKENS", "COST", "REASON*")
	for _, t := range v.Teams {
		teams.row(v.namespace(t.Namespace), t.Name, t.Ready, t.People, fmt.Sprint(t.Items.Queued), fmt.Sprint(t.Items.Active),
			fmt.Sprint(t.Items.Waiting), fmt.Sprint(t.Items.Blocked), fmt.Sprint(t.Items.Done), short(t.Usage.Tokens), cost(t.Usage), t.Reason)
	}
	people := newTable("NAMESPACE?", "PERSON", "TEAM", "ROLE?", "STATE", "ITEM?", "QUEUED", "DOCTOR", "PAUSED-FOR?", "TOKENS", "COST",
		"RUNTIME*", "MODEL*", "REASON*")
	for _, p := range v.People {
		people.row(v.namespace(p.Namespace), p.Name, p.Team, p.Role, p.State, p.Item, fmt.Sprint(p.Queued), p.Doctor, p.Paused,
			short(p.Usage.Tokens), cost(p.Usage), p.Runtime, p.Model, p.Reason)
	}
	if err := printAll(out, wide, teams, people); err != nil {
		return err
	}
	for i, n := range v.Notes {
		if i == 0 {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		name := n.Name
		if v.many {
			name = n.Namespace + "/" + n.Name
		}
		if _, err := fmt.Fprintf(out, "! %s %s: %s: %s\n", n.Kind, name, n.Reason, n.Message); err != nil {
			return err
		}
	}
	return nil
}

// namespace is what the column says: nothing where all is in one.
func (v *statusView) namespace(name string) string {
	if !v.many {
		return ""
	}
	return name
}

// printAll prints the tables that have rows, with a line between them.
func printAll(out io.Writer, wide bool, tables ...*table) error {
	first := true
	for _, t := range tables {
		if len(t.rows) == 0 {
			continue
		}
		if !first {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		first = false
		if err := t.print(out, wide); err != nil {
			return err
		}
	}
	return nil
}
