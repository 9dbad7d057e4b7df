package main

// This file prints tables and JSON, and writes numbers for people.

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// table is what a command prints. Columns whose header ends with * are for -o wide alone, those with ? are left out where they are empty.
type table struct {
	header []string
	rows   [][]string
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table, as kubectl does.
func (t *table) print(out io.Writer, wide bool) error {
	shown := make([]bool, len(t.header))
	for i, name := range t.header {
		switch {
		case strings.HasSuffix(name, "*"):
			shown[i] = wide
		case strings.HasSuffix(name, "?"):
			for _, row := range t.rows {
				shown[i] = shown[i] || row[i] != ""
			}
		default:
			shown[i] = true
		}
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	for n, row := range append([][]string{t.header}, t.rows...) {
		var cells []string
		for i, cell := range row {
			if n == 0 {
				cell = strings.TrimRight(cell, "*?")
			}
			if shown[i] {
				cells = append(cells, cell)
			}
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// printJSON writes a value for programs.
func printJSON(out io.Writer, v any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// short writes a count so that it can be taken in at a glance: 950, 12k, 8.4M.
func short(n int64) string {
	switch {
	case n < 1_000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1_000)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1fM", float64(n/100_000)/10)
	}
	return fmt.Sprintf("%.1fG", float64(n/100_000_000)/10)
}

// cost writes what usage cost, to the cent: nothing where nothing was used, unknown where nobody knows, and ≥ where a part is unknown.
func cost(u api.UsageStatus) string {
	switch {
	case u.CostUSD == "" && u.Tokens > 0:
		return "unknown"
	case u.CostUSD == "":
		return ""
	case u.UnpricedTokens > 0:
		return "≥" + cents(amount(u.CostUSD))
	}
	return cents(amount(u.CostUSD))
}

// amount reads a decimal of a status.
func amount(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // what is no number is no cost
	return n
}

// cents writes an amount in US dollars for people.
func cents(n float64) string { return fmt.Sprintf("%.2f", n) }

// decimal writes an amount as a status has it: to the millionth, with two digits after the point at least.
func decimal(n float64) string {
	text := fmt.Sprintf("%.6f", n)
	at := len(text) - 4
	return text[:at] + strings.TrimRight(text[at:], "0")
}

// count writes a number, and nothing for none.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// until says how long it is to a time, roughly.
func until(at, now time.Time) string {
	switch d := at.Sub(now); {
	case d <= 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
