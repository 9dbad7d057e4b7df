package main

// This file has kubectl bullpen usage: tokens and cost, and how much is left of each budget.

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

func (c *cli) usage() *cobra.Command {
	by := "person"
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show tokens and cost, and how much is left of each budget",
		Long: "Show tokens and cost, and how much is left of each budget.\n\n" +
			"Costs are at list prices, in US dollars. By item and model, what deleted items used is not in it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"person", "item", "model"}, by) {
				return fmt.Errorf("--by is person, item or model, not %q", by)
			}
			w, err := c.load(cmd.Context())
			if err != nil {
				return err
			}
			view := usageOf(w, by)
			if c.output == "json" {
				return printJSON(c.out, view)
			}
			return view.print(c.out, w.namespace == "", c.wide())
		},
	}
	cmd.Flags().StringVar(&by, "by", by, "what to add up by: person, item or model")
	c.outputs(cmd, "json", "wide")
	return cmd
}

// usageView is what usage shows.
type usageView struct {
	Teams []usageLine `json:"teams"`
	// By says what the lines are: person, item or model.
	By      string       `json:"by"`
	Lines   []usageLine  `json:"lines"`
	Budgets []budgetLine `json:"budgets"`
}

type usageLine struct {
	Namespace string          `json:"namespace"`
	Team      string          `json:"team"`
	Name      string          `json:"name"`
	Usage     api.UsageStatus `json:"usage"`
}

// budgetLine is one bound of a budget for one object.
type budgetLine struct {
	Namespace string `json:"namespace"`
	Team      string `json:"team"`
	Scope     string `json:"scope"`
	Name      string `json:"name"`
	// Unit is tokens or USD; the amounts are decimals in it.
	Unit  string `json:"unit"`
	Used  string `json:"used"`
	Bound string `json:"bound"`
	Left  string `json:"left"`
	// State is ok, warned, used up or stopped. Unknown says that unpriced tokens are not in it.
	State   string `json:"state"`
	Unknown bool   `json:"unknown,omitempty"`
}

func usageOf(w *world, by string) usageView {
	view := usageView{Teams: []usageLine{}, By: by, Lines: []usageLine{}, Budgets: []budgetLine{}}
	for _, t := range w.teams.Items {
		view.Teams = append(view.Teams, usageLine{t.Namespace, t.Name, t.Name, t.Status.Usage})
		view.Budgets = append(view.Budgets, budgetsOf(w, &t)...)
	}
	switch by {
	case "person":
		for _, p := range w.people.Items {
			view.add(usageLine{p.Namespace, string(p.Spec.Team), p.Name, p.Status.Usage})
		}
	case "item":
		for _, it := range w.items.Items {
			view.add(usageLine{it.Namespace, string(it.Spec.Team), it.Name, it.Status.Usage})
		}
	case "model":
		for _, it := range w.items.Items {
			for _, m := range it.Status.Models {
				view.add(usageLine{it.Namespace, string(it.Spec.Team), m.Model, m.UsageStatus})
			}
		}
	}
	slices.SortStableFunc(view.Lines, func(a, b usageLine) int {
		return cmp.Or(cmp.Compare(b.Usage.Tokens, a.Usage.Tokens), cmp.Compare(a.Name, b.Name))
	})
	return view
}

// add adds usage to the line of that name. Who used nothing has none.
func (v *usageView) add(l usageLine) {
	if l.Usage.Tokens == 0 && l.Usage.CostUSD == "" {
		return
	}
	at := slices.IndexFunc(v.Lines, func(o usageLine) bool {
		return o.Namespace == l.Namespace && o.Team == l.Team && o.Name == l.Name
	})
	if at < 0 {
		v.Lines = append(v.Lines, l)
		return
	}
	sum := &v.Lines[at].Usage
	sum.InputTokens += l.Usage.InputTokens
	sum.OutputTokens += l.Usage.OutputTokens
	sum.CacheReadTokens += l.Usage.CacheReadTokens
	sum.CacheCreationTokens += l.Usage.CacheCreationTokens
	sum.Tokens += l.Usage.Tokens
	sum.UnpricedTokens += l.Usage.UnpricedTokens
	if sum.CostUSD != "" || l.Usage.CostUSD != "" {
		sum.CostUSD = decimal(amount(sum.CostUSD) + amount(l.Usage.CostUSD))
	}
}

// budgetsOf are the bounds of a team's budgets, with what is held against each. Items that used nothing have none.
func budgetsOf(w *world, t *api.Team) (lines []budgetLine) {
	for _, b := range t.Spec.Usage.Budgets {
		switch b.Scope {
		case "Team":
			lines = append(lines, boundsOf(t, b, t.Name, t.Status.Usage)...)
		case "Person":
			for _, p := range w.people.Items {
				if p.Namespace == t.Namespace && string(p.Spec.Team) == t.Name {
					lines = append(lines, boundsOf(t, b, p.Name, p.Status.Usage)...)
				}
			}
		case "WorkItem":
			for _, it := range w.items.Items {
				finished := it.Status.State == "done" || it.Status.State == "canceled"
				if it.Namespace == t.Namespace && string(it.Spec.Team) == t.Name && !finished && it.Status.Usage.Tokens > 0 {
					lines = append(lines, boundsOf(t, b, it.Name, it.Status.Usage)...)
				}
			}
		}
	}
	return lines
}

func boundsOf(t *api.Team, b api.Budget, name string, u api.UsageStatus) (lines []budgetLine) {
	line := budgetLine{Namespace: t.Namespace, Team: t.Name, Scope: b.Scope, Name: name}
	if b.Tokens != nil {
		l := line
		l.Unit, l.Used, l.Bound, l.Left = "tokens", fmt.Sprint(u.Tokens), fmt.Sprint(*b.Tokens), fmt.Sprint(*b.Tokens-u.Tokens)
		l.State = stateOf(b, float64(u.Tokens)/float64(*b.Tokens))
		lines = append(lines, l)
	}
	if b.CostUSD != nil {
		l, used, bound := line, amount(u.CostUSD), b.CostUSD.AsApproximateFloat64()
		l.Unit, l.Used, l.Bound, l.Left = "USD", decimal(used), decimal(bound), decimal(bound-used)
		l.State, l.Unknown = stateOf(b, used/bound), u.UnpricedTokens > 0
		lines = append(lines, l)
	}
	return lines
}

// stateOf says how far a budget has come, of which a fraction is used.
func stateOf(b api.Budget, used float64) string {
	warn := int32(80)
	if b.WarnAtPercent != nil {
		warn = *b.WarnAtPercent
	}
	switch {
	case b.StopAtPercent != nil && used >= float64(*b.StopAtPercent)/100:
		return "stopped"
	case used >= 1:
		return "used up"
	case warn > 0 && used >= float64(warn)/100:
		return "warned"
	}
	return "ok"
}

func (v *usageView) print(out io.Writer, many, wide bool) error {
	lines := func(name string, list []usageLine) *table {
		t := newTable("NAMESPACE?", name, "OF?", "TOKENS", "COST", "UNPRICED?", "INPUT*", "OUTPUT*", "CACHE-READ*", "CACHE-CREATION*")
		for _, l := range list {
			team := l.Team
			if name == "TEAM" {
				team = ""
			}
			u := l.Usage
			t.row(in(l.Namespace, many), l.Name, team, fmt.Sprint(u.Tokens), cost(u), count(u.UnpricedTokens), fmt.Sprint(u.InputTokens),
				fmt.Sprint(u.OutputTokens), fmt.Sprint(u.CacheReadTokens), fmt.Sprint(u.CacheCreationTokens))
		}
		return t
	}
	budgets := newTable("NAMESPACE?", "BUDGET", "OF", "USED", "BOUND", "LEFT", "UNIT", "STATE")
	for _, b := range v.Budgets {
		used, bound, left := b.Used, b.Bound, b.Left
		if b.Unit == "USD" {
			used, bound, left = cents(amount(used)), cents(amount(bound)), cents(amount(left))
		}
		if b.Unknown {
			used, left = "≥"+used, "≤"+left
		}
		budgets.row(in(b.Namespace, many), b.Scope, b.Name, used, bound, left, b.Unit, b.State)
	}
	names := map[string]string{"person": "PERSON", "item": "ITEM", "model": "MODEL"}
	return printAll(out, wide, lines("TEAM", v.Teams), lines(names[v.By], v.Lines), budgets)
}

// in is a namespace for a column that is only there where there are many.
func in(namespace string, many bool) string {
	if many {
		return namespace
	}
	return ""
}
