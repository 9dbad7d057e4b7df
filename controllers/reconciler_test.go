package controllers

// This file tests what the reconcilers share.

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

func TestOutcome(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	tests := map[string]struct {
		err   error
		after time.Duration
		want  time.Duration
		back  bool
	}{
		"without an error, after the wait":                    {want: time.Minute},
		"a conflict, soon":                                    {err: fmt.Errorf("write: %w", apierrors.NewConflict(pods, "x", errors.New("y"))), want: staleWait},
		"a stale cache, soon":                                 {err: errStale, want: staleWait},
		"something that went away, soon":                      {err: apierrors.NewNotFound(pods, "x"), want: staleWait},
		"what a user must mend, later":                        {err: errors.Join(&problem{reason: "x"}), want: mendWait},
		"what a user must mend, sooner where that was wanted": {err: &problem{reason: "x"}, after: time.Second, want: time.Second},
		"anything else, with backoff":                         {err: errors.New("x"), back: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := outcome(test.err, cmp.Or(test.after, time.Minute))
			if result.RequeueAfter != test.want || (err != nil) != test.back {
				t.Errorf("%v, %v", result, err)
			}
		})
	}
}

func TestPace(t *testing.T) {
	p, key := newPace(), objectKey{kind: "x"}
	if wait := p.wait(key, noon, time.Second); wait != 0 {
		t.Errorf("the first time waits %s", wait)
	}
	p.wrote(key, noon)
	if wait := p.wait(key, noon.Add(300*time.Millisecond), time.Second); wait != 700*time.Millisecond {
		t.Errorf("soon after, it waits %s", wait)
	}
	if wait := p.wait(key, noon.Add(time.Minute), time.Second); wait != 0 {
		t.Errorf("later it waits %s", wait)
	}
	p.forget(key)
	if wait := p.wait(key, noon, time.Second); wait != 0 {
		t.Errorf("forgotten, it waits %s", wait)
	}
}

func TestSooner(t *testing.T) {
	for _, test := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 3, 3}, {3, 5, 3}, {-1, 5, 5}} {
		if got := sooner(test.a, test.b); got != test.want {
			t.Errorf("of %d and %d it is %d", test.a, test.b, got)
		}
	}
}

func TestDollars(t *testing.T) {
	for micro, want := range map[int64]string{0: "0.00", 1: "0.000001", 10_000: "0.01", 1_250_000: "1.25", 1_200_000: "1.20", 12_345_678: "12.345678", 5_000_000: "5.00"} {
		text := dollars(micro)
		if text != want {
			t.Errorf("%d is %s, not %s", micro, text, want)
		}
		if back, known := microUSD(text); back != micro || !known {
			t.Errorf("%s is read as %d, %v", text, back, known)
		}
	}
	for _, text := range []string{"", "x", ".5", "1.2345678"} {
		if _, known := microUSD(text); known {
			t.Errorf("%q is read as a cost", text)
		}
	}
}

func TestUsageThereAndBack(t *testing.T) {
	for _, usage := range []model.Usage{{}, {InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheCreationTokens: 4, CostMicroUSD: 5, CostKnown: true}, {CostKnown: true}} {
		if diff := gocmp.Diff(usage, usageOf(usageStatus(usage))); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
	}
}

func TestSetConditions(t *testing.T) {
	before := metav1.NewTime(noon.Add(-time.Hour))
	old := []metav1.Condition{
		{Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: "A", LastTransitionTime: before},
		{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: "B", LastTransitionTime: before},
	}
	got := setConditions(old, 7, noon, condition(api.ConditionReady, true, "C", "m"), condition(api.ConditionFailed, true, "D", "m"))
	want := []metav1.Condition{
		{Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: "C", Message: "m", ObservedGeneration: 7, LastTransitionTime: before},
		{Type: api.ConditionFailed, Status: metav1.ConditionTrue, Reason: "D", Message: "m", ObservedGeneration: 7, LastTransitionTime: metav1.NewTime(noon)},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if old[0].Reason != "A" || len(old) != 2 {
		t.Error("the old conditions were changed")
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text  string
		runes int
		want  string
	}{{"short", 10, "short"}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"a\xffb", 5, "a\uFFFDb"}} {
		if got := cut(test.text, test.runes); got != test.want {
			t.Errorf("%q is cut to %q", test.text, got)
		}
	}
}
