package main

// This file has the figures: how they add up over runs, and what is said of them.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// result is what one run of a benchmark measured.
type result struct {
	figures []figure
	spreads []spread
}

// figure is one number, with the design's aim for it where there is one.
type figure struct {
	name  string
	unit  string
	value float64
	// aim is the design's; 0 is none. atLeast says that more is better.
	aim     float64
	atLeast bool
}

// spread is how a number is distributed.
type spread struct {
	name, unit         string
	count              int
	p50, p90, p99, max float64
}

// spreadOf makes a spread, in milliseconds, of how long things took.
func spreadOf(name string, took []time.Duration) spread {
	sorted := slices.Sorted(slices.Values(took))
	at := func(percent int) float64 {
		if len(sorted) == 0 {
			return math.NaN()
		}
		return float64(sorted[(len(sorted)*percent+99)/100-1].Microseconds()) / 1000
	}
	return spread{name: name, unit: "ms", count: len(sorted), p50: at(50), p90: at(90), p99: at(99), max: at(100)}
}

// medians makes one result of several runs: of each number the median.
func medians(runs []result) result {
	var all result
	for i, f := range runs[0].figures {
		f.value = medianOf(runs, func(r result) float64 { return r.figures[i].value })
		all.figures = append(all.figures, f)
	}
	for i, s := range runs[0].spreads {
		s.p50 = medianOf(runs, func(r result) float64 { return r.spreads[i].p50 })
		s.p90 = medianOf(runs, func(r result) float64 { return r.spreads[i].p90 })
		s.p99 = medianOf(runs, func(r result) float64 { return r.spreads[i].p99 })
		s.max = medianOf(runs, func(r result) float64 { return r.spreads[i].max })
		all.spreads = append(all.spreads, s)
	}
	return all
}

func medianOf(runs []result, value func(result) float64) float64 {
	var values []float64
	for _, r := range runs {
		values = append(values, value(r))
	}
	return median(values)
}

// median is the middle one, or the mean of the middle two.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// lowest and highest tell how far apart the runs of a figure were.
func extremes(runs []result, i int) (lowest, highest float64) {
	less := func(a, b result) int { return cmp.Compare(a.figures[i].value, b.figures[i].value) }
	return slices.MinFunc(runs, less).figures[i].value, slices.MaxFunc(runs, less).figures[i].value
}

// verdict says whether a figure meets its aim, and how it compares.
func (f figure) verdict() string {
	if f.aim == 0 {
		return ""
	}
	meets := f.value <= f.aim
	if f.atLeast {
		meets = f.value >= f.aim
	}
	word := "misses"
	if meets {
		word = "meets"
	}
	return fmt.Sprintf("%s (%s of the aim)", word, ratio(f.value/f.aim))
}

// wants writes the aim.
func (f figure) wants() string {
	switch {
	case f.aim == 0:
		return ""
	case f.atLeast:
		return "≥ " + withUnit(f.aim, f.unit)
	default:
		return "≤ " + withUnit(f.aim, f.unit)
	}
}

func ratio(r float64) string {
	if r >= 10 {
		return strconv.FormatFloat(r, 'f', 0, 64) + "×"
	}
	return strconv.FormatFloat(r, 'f', 2, 64) + "×"
}

// number writes a number with three digits that count, and groups of thousands.
func number(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case abs == math.Trunc(abs) && abs < 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case abs < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	digits := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 {
		return "-" + digits
	}
	return digits
}
