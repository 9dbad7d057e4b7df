package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestBackoffNext(t *testing.T) {
	backoff := Backoff{Initial: 2 * time.Second, Max: 30 * time.Second}
	for name, test := range map[string]struct {
		previous, ran, want time.Duration
	}{
		"the first restart is at once":                  {none, 0, 0},
		"the second waits for the initial time":         {0, 0, 2 * time.Second},
		"each further one waits twice as long":          {2 * time.Second, time.Second, 4 * time.Second},
		"up to the longest wait":                        {16 * time.Second, time.Second, 30 * time.Second},
		"and not longer":                                {30 * time.Second, time.Second, 30 * time.Second},
		"a container that ran for long starts over":     {30 * time.Second, time.Minute, 0},
		"one that ran for less than that goes on so":    {4 * time.Second, 59 * time.Second, 8 * time.Second},
		"the first restart is at once after a long run": {none, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := backoff.next(test.previous, test.ran); got != test.want {
				t.Errorf("next(%s, %s) = %s, want %s", test.previous, test.ran, got, test.want)
			}
		})
	}
}

func TestBackoffWaitsOfAContainerThatAlwaysCrashes(t *testing.T) {
	backoff := Backoff{Initial: 2 * time.Second, Max: 30 * time.Second}
	var waits []time.Duration
	for wait := none; len(waits) < 7; waits = append(waits, wait) {
		wait = backoff.next(wait, 0)
	}
	seconds := time.Second
	want := []time.Duration{0, 2 * seconds, 4 * seconds, 8 * seconds, 16 * seconds, 30 * seconds, 30 * seconds}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

func TestRestarts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	never := corev1.ContainerRestartPolicy("Never")
	for name, test := range map[string]struct {
		pod  corev1.RestartPolicy
		own  *corev1.ContainerRestartPolicy
		init bool
		code int32
		want bool
	}{
		"Always starts a container that succeeded":         {pod: corev1.RestartPolicyAlways, want: true},
		"Always starts a container that failed":            {pod: corev1.RestartPolicyAlways, code: 1, want: true},
		"no policy means Always":                           {want: true},
		"OnFailure leaves a container that succeeded":      {pod: corev1.RestartPolicyOnFailure},
		"OnFailure starts a container that was killed":     {pod: corev1.RestartPolicyOnFailure, code: 137, want: true},
		"Never leaves a container that failed":             {pod: corev1.RestartPolicyNever, code: 1},
		"an init container that succeeded is done":         {pod: corev1.RestartPolicyAlways, init: true},
		"an init container that failed is tried again":     {pod: corev1.RestartPolicyAlways, init: true, code: 1, want: true},
		"an init container of a Never pod has one try":     {pod: corev1.RestartPolicyNever, init: true, code: 1},
		"a sidecar is started again whatever its pod says": {pod: corev1.RestartPolicyNever, own: &always, init: true, want: true},
		"a container's own policy comes first":             {pod: corev1.RestartPolicyAlways, own: &never, code: 1},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: test.pod}}
			policy := policyOf(pod, &corev1.Container{RestartPolicy: test.own}, test.init)
			if got := restarts(policy, test.code); got != test.want {
				t.Errorf("restarts(%s, %d) = %t, want %t", policy, test.code, got, test.want)
			}
		})
	}
}

func TestTally(t *testing.T) {
	probe := &corev1.Probe{SuccessThreshold: 2, FailureThreshold: 3}
	for name, test := range map[string]struct {
		results []bool
		want    verdict
	}{
		"one success of two decides nothing":             {[]bool{true}, undecided},
		"enough successes in a row are health":           {[]bool{true, true}, healthy},
		"a failure between makes successes count anew":   {[]bool{true, false, true}, undecided},
		"failures up to the threshold decide nothing":    {[]bool{false, false}, undecided},
		"enough failures in a row are the end of health": {[]bool{true, true, false, false, false}, unhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			var counted tally
			var got verdict
			for _, result := range test.results {
				counted, got = counted.add(result, probe)
			}
			if got != test.want {
				t.Errorf("verdict of %v = %d, want %d", test.results, got, test.want)
			}
		})
	}
}
