package main

// This file sees that every benchmark runs and that the page is whole. It judges no figure.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	if settings := os.Getenv(officeEnv); settings != "" {
		exit(beOffice(settings))
	}
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func TestAQuickRunWritesThePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	if err := bench(t.Context(), options{page: path, runs: 1, quick: true}, t.Output()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range benchmarks {
		_, section, found := strings.Cut(string(text), "\n## "+b.title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, "--only "+b.name) || !strings.Contains(section, "| figure | median |") {
			t.Errorf("the page has no whole section %q:\n%s", b.title, section)
		}
	}
	for _, wrong := range []string{"NaN", "–", "<no value>", "unknown"} {
		if strings.Contains(string(text), wrong) {
			t.Errorf("the page says %q:\n%s", wrong, text)
		}
	}
	if !strings.Contains(string(text), "mean nothing") {
		t.Error("the page of a quick run does not say that it is one")
	}
}

func TestMistakesInFlagsAreSaid(t *testing.T) {
	for _, test := range []struct {
		name string
		o    options
		says string
	}{
		{"an unknown benchmark", options{only: "speed", runs: 1}, "there are commits, uploads"},
		{"a page of only one benchmark", options{only: "offer", page: "x.md", runs: 1}, "--out needs all"},
		{"no runs", options{}, "--runs is at least 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := choose(test.o); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got the error %v, not one with %q", err, test.says)
			}
		})
	}
}

func TestASpreadHasTheRanksOfItsName(t *testing.T) {
	var took []time.Duration
	for ms := 200; ms > 0; ms-- {
		took = append(took, time.Duration(ms)*time.Millisecond)
	}
	want := spread{name: "x", unit: "ms", count: 200, p50: 100, p90: 180, p99: 198, max: 200}
	if diff := cmp.Diff(want, spreadOf("x", took), cmp.AllowUnexported(spread{})); diff != "" {
		t.Error(diff)
	}
	if one := spreadOf("x", took[:1]); one.p50 != 200 || one.p99 != 200 {
		t.Errorf("the ranks of a single sample are %+v", one)
	}
}

func TestRunsBecomeTheirMedians(t *testing.T) {
	var runs []result
	for _, v := range []float64{9, 1, 5} {
		runs = append(runs, result{figures: []figure{{name: "f", value: v}}, spreads: []spread{{name: "s", p50: v, p90: v + 1, p99: v + 2, max: 10 - v}}})
	}
	want := result{figures: []figure{{name: "f", value: 5}}, spreads: []spread{{name: "s", p50: 5, p90: 6, p99: 7, max: 5}}}
	if diff := cmp.Diff(want, medians(runs), cmp.AllowUnexported(result{}, figure{}, spread{})); diff != "" {
		t.Error(diff)
	}
	if lowest, highest := extremes(runs, 0); lowest != 1 || highest != 9 {
		t.Errorf("the extremes are %v and %v", lowest, highest)
	}
	if even := medianOf(runs[:2], func(r result) float64 { return r.figures[0].value }); even != 5 {
		t.Errorf("the median of 9 and 1 is %v", even)
	}
}

func TestAVerdictComparesWithTheAim(t *testing.T) {
	for _, test := range []struct {
		name string
		f    figure
		want string
	}{
		{"below a limit meets it", figure{value: 5, aim: 10}, "meets (0.50× of the aim)"},
		{"at a limit meets it", figure{value: 10, aim: 10}, "meets (1.00× of the aim)"},
		{"above a limit misses it", figure{value: 25, aim: 10}, "misses (2.50× of the aim)"},
		{"above a target meets it", figure{value: 250, aim: 10, atLeast: true}, "meets (25× of the aim)"},
		{"below a target misses it", figure{value: 9, aim: 10, atLeast: true}, "misses (0.90× of the aim)"},
		{"without an aim there is none", figure{value: 9}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.f.verdict(); got != test.want {
				t.Errorf("the verdict is %q, not %q", got, test.want)
			}
		})
	}
}

func TestNumbersAreShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 2: "2", 0.4567: "0.46", 12.345: "12.3", 123.4: "123", 999: "999", 1234.5: "1,234", 1234567: "1,234,567", -2500: "-2,500",
	} {
		if got := number(v); got != want {
			t.Errorf("%v is written %q, not %q", v, got, want)
		}
	}
}
