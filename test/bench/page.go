package main

// This file writes the page.

import (
	"bytes"
	_ "embed"
	"io"
	"text/template"
)

//go:embed page.md.tmpl
var pageText string

// page is what the template has.
type page struct {
	Machine  machine
	Date     string
	Runs     int
	Quick    bool
	Sections []section
}

// section is a benchmark on the page.
type section struct {
	Name, Title string
	// Loads are the load averages before each run.
	Loads   []string
	Figures []line
	Spreads []spreadLine
}

// line is a figure, as text.
type line struct{ What, Value, Between, Aim, Verdict string }

// spreadLine is a spread, as text.
type spreadLine struct{ What, Count, P50, P90, P99, Max string }

// fill makes the section's tables of its runs.
func (s *section) fill(runs []result) {
	all := medians(runs)
	for i, f := range all.figures {
		lowest, highest := extremes(runs, i)
		s.Figures = append(s.Figures, line{
			What: f.name, Value: withUnit(f.value, f.unit), Between: number(lowest) + " … " + number(highest), Aim: f.wants(), Verdict: f.verdict(),
		})
	}
	for _, d := range all.spreads {
		s.Spreads = append(s.Spreads, spreadLine{
			What: d.name, Count: number(float64(d.count)),
			P50: withUnit(d.p50, d.unit), P90: withUnit(d.p90, d.unit), P99: withUnit(d.p99, d.unit), Max: withUnit(d.max, d.unit),
		})
	}
}

func withUnit(v float64, unit string) string {
	if unit == "" {
		return number(v)
	}
	return number(v) + " " + unit
}

// Aimed are the figures for which the design has an aim.
func (p page) Aimed() []line {
	var all []line
	for _, s := range p.Sections {
		for _, l := range s.Figures {
			if l.Aim != "" {
				all = append(all, l)
			}
		}
	}
	return all
}

// write writes the page.
func (p page) write(w io.Writer) error {
	t := template.New("page")
	// about gives the template's text about a benchmark; there must be one.
	t.Funcs(template.FuncMap{"about": func(name string) (string, error) {
		var text bytes.Buffer
		err := t.ExecuteTemplate(&text, "about "+name, p)
		return text.String(), err
	}})
	if _, err := t.Parse(pageText); err != nil {
		return err
	}
	return t.Execute(w, p)
}
