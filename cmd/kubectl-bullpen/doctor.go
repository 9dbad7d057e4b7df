package main

// This file has kubectl bullpen doctor: every check that is not ok, with its fix.

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

func (c *cli) doctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [PERSON]",
		Short: "Show every check that is not ok, with its fix",
		Long: "Show every check that is not ok, with its fix: those that agents make of their own environment, and whether their pods run\n" +
			"and are connected. It exits with 1 if one of them fails; warnings alone do not.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := c.load(cmd.Context())
			if err != nil {
				return err
			}
			people, err := w.only(strings.Join(args, ""))
			if err != nil {
				return err
			}
			view := doctorOf(people)
			if c.output == "json" {
				err = printJSON(c.out, view)
			} else {
				err = view.print(c.out, w.namespace == "")
			}
			if err == nil && view.Failed > 0 {
				return errFailed
			}
			return err
		},
	}
	c.outputs(cmd, "json")
	return cmd
}

// doctorView is what doctor shows.
type doctorView struct {
	// People counts those that were looked at, Failed the checks that fail, Warned those that warn.
	People int           `json:"people"`
	Failed int           `json:"failed"`
	Warned int           `json:"warned"`
	Checks []doctorCheck `json:"checks"`
}

type doctorCheck struct {
	Namespace string `json:"namespace"`
	Person    string `json:"person"`
	Check     string `json:"check"`
	Status    string `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Fix       string `json:"fix,omitempty"`
}

func doctorOf(people []api.Person) doctorView {
	view := doctorView{People: len(people), Checks: []doctorCheck{}}
	for i := range people {
		p := &people[i]
		for _, check := range append(connection(p), p.Status.Doctor...) {
			if check.Status == "fail" {
				view.Failed++
			} else {
				view.Warned++
			}
			view.Checks = append(view.Checks, doctorCheck{
				Namespace: p.Namespace, Person: p.Name, Check: check.Name, Status: check.Status, Detail: check.Detail, Fix: check.Fix,
			})
		}
	}
	return view
}

// connection is the check that no agent can make of itself: whether it runs and is connected. What passes by itself is a warning.
func connection(p *api.Person) []api.DoctorCheck {
	ready := apimeta.FindStatusCondition(p.Status.Conditions, api.ConditionReady)
	switch {
	case ready == nil:
		return []api.DoctorCheck{{Name: "Agent is connected", Status: "warn", Detail: "The operator has not looked at this person yet.",
			Fix: "See whether the manager runs, and watches this namespace."}}
	case ready.Status != metav1.ConditionTrue:
		status := "warn"
		if is(p.Status.Conditions, api.ConditionStalled) {
			status = "fail"
		}
		return []api.DoctorCheck{{Name: "Agent is connected", Status: status, Detail: ready.Reason + ": " + ready.Message}}
	case apimeta.FindStatusCondition(p.Status.Conditions, api.ConditionDoctor) == nil:
		return []api.DoctorCheck{{Name: "Agent has reported", Status: "warn", Detail: "The agent is connected, but has not told of its checks yet."}}
	}
	return nil
}

func (v *doctorView) print(out io.Writer, many bool) error {
	var text strings.Builder
	for _, c := range v.Checks {
		name := c.Person
		if many {
			name = c.Namespace + "/" + c.Person
		}
		fmt.Fprintf(&text, "%s: %s: %s\n", name, c.Status, c.Check)
		if c.Detail != "" {
			fmt.Fprintf(&text, "  %s\n", c.Detail)
		}
		if c.Fix != "" {
			fmt.Fprintf(&text, "  fix: %s\n", c.Fix)
		}
	}
	switch {
	case v.People == 0:
	case len(v.Checks) == 0:
		fmt.Fprintf(&text, "All checks are ok (%s).\n", number(v.People, "person", "people"))
	default:
		fmt.Fprintf(&text, "\n%s, %s (%s).\n", number(v.Failed, "check fails", "checks fail"), number(v.Warned, "warns", "warn"), number(v.People, "person", "people"))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
