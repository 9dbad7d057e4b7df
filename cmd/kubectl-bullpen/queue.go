package main

// This file has kubectl bullpen queue: the order in which each person's items run, and what holds them.

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

func (c *cli) queue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue [PERSON]",
		Short: "Show in which order the items of each person run, and what holds them",
		Long: "Show in which order the items of each person run, and what holds them.\n\n" +
			"Items that anyone of a role may take stand in a queue of their own. With PERSON, the name or handle of one, they stand\n" +
			"among the person's own, where this person would take them.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := c.load(cmd.Context())
			if err != nil {
				return err
			}
			view, err := queueOf(w, strings.Join(args, ""))
			if err != nil {
				return err
			}
			if c.output == "json" {
				return printJSON(c.out, view)
			}
			return printQueues(c.out, view, w.namespace == "", c.wide())
		},
	}
	c.outputs(cmd, "json", "wide")
	return cmd
}

// queueView is one queue: of a person, or of a role whose items nobody has yet.
type queueView struct {
	Namespace string      `json:"namespace"`
	Team      string      `json:"team"`
	Person    string      `json:"person,omitempty"`
	Role      string      `json:"role,omitempty"`
	Items     []queueLine `json:"items"`
}

type queueLine struct {
	// Position counts from 1 what is to run, and is 0 for what waits for something else first.
	Position int    `json:"position"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Priority int32  `json:"priority"`
	Kind     string `json:"kind"`
	// Role is that of an item in a person's queue that anyone of it may take.
	Role  string `json:"role,omitempty"`
	Why   string `json:"why,omitempty"`
	Title string `json:"title"`
	order string
}

// queueOf sorts the unfinished items into queues. With a person, there is that person's alone.
func queueOf(w *world, person string) ([]queueView, error) {
	people, err := w.only(person)
	if err != nil {
		return nil, err
	}
	queues := []queueView{}
	for _, p := range people {
		queue := queueView{Namespace: p.Namespace, Team: string(p.Spec.Team), Person: p.HandleOrName(), Items: []queueLine{}}
		for i := range w.items.Items {
			it := &w.items.Items[i]
			if it.Namespace != p.Namespace || it.Spec.Team != p.Spec.Team {
				continue
			}
			who := holder(it)
			if who == p.HandleOrName() || (person != "" && who == "" && it.Spec.Role == p.Spec.Role && it.Spec.Role != "") {
				queue.add(it)
			}
		}
		queue.number()
		queues = append(queues, queue)
	}
	if person != "" {
		return queues, nil
	}
	return append(queues, roleQueues(w)...), nil
}

// roleQueues are those of items that nobody has yet.
func roleQueues(w *world) []queueView {
	var queues []queueView
	for i := range w.items.Items {
		it := &w.items.Items[i]
		if holder(it) != "" {
			continue
		}
		same := func(q queueView) bool {
			return q.Namespace == it.Namespace && q.Team == string(it.Spec.Team) && q.Role == string(it.Spec.Role)
		}
		at := slices.IndexFunc(queues, same)
		if at < 0 {
			at = len(queues)
			queues = append(queues, queueView{Namespace: it.Namespace, Team: string(it.Spec.Team), Role: string(it.Spec.Role)})
		}
		queues[at].add(it)
	}
	queues = slices.DeleteFunc(queues, func(q queueView) bool { return len(q.Items) == 0 })
	for i := range queues {
		queues[i].number()
	}
	return queues
}

// holder is the handle of who has the item, or is asked for.
func holder(it *api.WorkItem) string { return cmp.Or(it.Status.Person, string(it.Spec.Person)) }

// add takes an unfinished item in.
func (q *queueView) add(it *api.WorkItem) {
	state := cmp.Or(string(it.Status.State), "queued")
	if state == "done" || state == "canceled" {
		return
	}
	line := queueLine{Name: it.Name, State: state, Kind: it.Spec.Kind, Title: it.Spec.Title}
	switch {
	case it.Status.Priority != nil:
		line.Priority = *it.Status.Priority
	case it.Spec.Priority != nil:
		line.Priority = *it.Spec.Priority
	}
	if holder(it) == "" && q.Role == "" {
		line.Role = string(it.Spec.Role)
	}
	// What stands before the first / is whose queue it is; without an order yet, the item comes last.
	_, line.order, _ = strings.Cut(cmp.Or(it.Status.Order, "/~"), "/")
	if ready := apimeta.FindStatusCondition(it.Status.Conditions, api.ConditionReady); ready != nil && state != "active" && ready.Reason != api.ReasonAccepted {
		line.Why = ready.Reason + ": " + ready.Message
	}
	q.Items = append(q.Items, line)
}

// number sorts a queue: what runs, then what is to run, then what waits for something else first.
func (q *queueView) number() {
	rank := map[string]int{"active": 0, "queued": 1}
	of := func(l queueLine) int {
		if n, known := rank[l.State]; known {
			return n
		}
		return 2
	}
	slices.SortStableFunc(q.Items, func(a, b queueLine) int {
		return cmp.Or(cmp.Compare(of(a), of(b)), cmp.Compare(a.order, b.order))
	})
	for i := range q.Items {
		if of(q.Items[i]) < 2 {
			q.Items[i].Position = i + 1
		}
	}
}

func printQueues(out io.Writer, queues []queueView, many, wide bool) error {
	for i, q := range queues {
		who := "person " + q.Person
		if q.Role != "" {
			who = "anyone of role " + q.Role
		}
		where := "team " + q.Team
		if many {
			where += " in namespace " + q.Namespace
		}
		line := ""
		if i > 0 {
			line = "\n"
		}
		if _, err := fmt.Fprintf(out, "%s%s, %s\n", line, who, where); err != nil {
			return err
		}
		if len(q.Items) == 0 {
			if _, err := fmt.Fprintln(out, "nothing to do"); err != nil {
				return err
			}
			continue
		}
		t := newTable("POSITION", "ITEM", "STATE", "PRIO", "KIND", "ROLE?", "TITLE*", "WHY?")
		for _, l := range q.Items {
			position := "-"
			if l.Position > 0 {
				position = fmt.Sprint(l.Position)
			}
			t.row(position, l.Name, l.State, fmt.Sprint(l.Priority), l.Kind, l.Role, l.Title, l.Why)
		}
		if err := t.print(out, wide); err != nil {
			return err
		}
	}
	return nil
}
