package ost

// This file writes results for people: short, and in columns.

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// table prints rows below a heading. A column that is empty in all of them is left out.
func table(out io.Writer, heading []string, rows [][]string) {
	used := make([]bool, len(heading))
	for _, row := range rows {
		for i, cell := range row {
			used[i] = used[i] || cell != ""
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heading}, rows...) {
		var cells []string
		for i, cell := range row {
			if used[i] {
				cells = append(cells, oneLine(cell))
			}
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush()
}

// oneLine keeps a text from breaking a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// indent writes a text below a line of its own.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// workTable prints work items in their order.
func (a *app) workTable(items []protocol.WorkRef) {
	rows := make([][]string, 0, len(items))
	for _, it := range items {
		mark := ""
		if it.Current != nil && *it.Current {
			mark = "*"
		}
		rows = append(rows, []string{mark, it.ID, string(it.Status), it.Kind, it.TicketKey, it.PR, cmp.Or(it.Title, it.TicketTitle, it.PRTitle)})
	}
	table(a.Out, []string{"", "ID", "STATE", "KIND", "TICKET", "PR", "TITLE"}, rows)
}

// linkLines prints pages.
func (a *app) linkLines(links []protocol.Link) {
	for _, l := range links {
		a.say("  %s", strings.TrimSpace(l.URL+"  "+oneLine(l.Title)))
	}
}

// count writes a number and what there are so many of.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
