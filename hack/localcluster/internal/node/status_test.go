package node

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func waits(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func runs(ready bool) corev1.ContainerStatus {
	started := true
	return corev1.ContainerStatus{Ready: ready, Started: &started, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func ended(code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
}

func crashLoops(code int32) corev1.ContainerStatus {
	s := waits(reasonCrashLoop)
	s.LastTerminationState = ended(code).State
	return s
}

func TestStatus(t *testing.T) {
	type statuses = []corev1.ContainerStatus
	for name, test := range map[string]struct {
		init, main statuses
		sidecar    bool
		reason     string
		ended      bool
		wantPhase  corev1.PodPhase
		wantReady  corev1.ConditionStatus
	}{
		"a container that was not started yet is pending": {
			main: statuses{waits(reasonCreating)}, wantPhase: corev1.PodPending, wantReady: corev1.ConditionFalse,
		},
		"so is one whose image is not there": {
			main: statuses{waits(reasonImagePullBackOff), runs(true)}, wantPhase: corev1.PodPending, wantReady: corev1.ConditionFalse,
		},
		"all run and are ready": {
			main: statuses{runs(true), runs(true)}, wantPhase: corev1.PodRunning, wantReady: corev1.ConditionTrue,
		},
		"one runs and is not ready": {
			main: statuses{runs(true), runs(false)}, wantPhase: corev1.PodRunning, wantReady: corev1.ConditionFalse,
		},
		"a crash loop is a running pod": {
			main: statuses{crashLoops(1)}, wantPhase: corev1.PodRunning, wantReady: corev1.ConditionFalse,
		},
		"an init container that runs keeps the pod pending": {
			init: statuses{runs(false)}, main: statuses{waits(reasonPodInitializing)}, wantPhase: corev1.PodPending, wantReady: corev1.ConditionFalse,
		},
		"a sidecar that has started does not": {
			init: statuses{runs(true)}, sidecar: true, main: statuses{runs(true)}, wantPhase: corev1.PodRunning, wantReady: corev1.ConditionTrue,
		},
		"all that ended well is a success": {
			main: statuses{ended(0), ended(0)}, ended: true, wantPhase: corev1.PodSucceeded, wantReady: corev1.ConditionFalse,
		},
		"one that failed is a failure": {
			main: statuses{ended(0), ended(137)}, ended: true, wantPhase: corev1.PodFailed, wantReady: corev1.ConditionFalse,
		},
		"an init container that failed for good is a failure": {
			init: statuses{ended(1)}, main: statuses{waits(reasonPodInitializing)}, ended: true, wantPhase: corev1.PodFailed, wantReady: corev1.ConditionFalse,
		},
		"a pod that ended before it started is a failure": {
			main: statuses{waits(reasonCreating)}, ended: true, wantPhase: corev1.PodFailed, wantReady: corev1.ConditionFalse,
		},
		"a pod that the node gave up is a failure": {
			main: statuses{runs(true)}, reason: "DeadlineExceeded", wantPhase: corev1.PodFailed, wantReady: corev1.ConditionTrue,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			for range test.init {
				spec := corev1.Container{}
				if test.sidecar {
					always := corev1.ContainerRestartPolicyAlways
					spec.RestartPolicy = &always
				}
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, spec)
			}
			got := report{pod: pod, init: test.init, main: test.main, reason: test.reason, ended: test.ended}.status(time.Now())
			if got.Phase != test.wantPhase {
				t.Errorf("phase %s, want %s", got.Phase, test.wantPhase)
			}
			if ready := condition(got, corev1.PodReady); ready.Status != test.wantReady {
				t.Errorf("Ready is %s, want %s", ready.Status, test.wantReady)
			}
		})
	}
}

func TestStatusOfAnEndedPodHasNoWaitingContainer(t *testing.T) {
	got := report{pod: &corev1.Pod{}, ended: true, main: []corev1.ContainerStatus{crashLoops(3), waits(reasonCreating)}}.status(time.Now())
	var codes []int32
	for _, s := range got.ContainerStatuses {
		if s.State.Terminated == nil {
			t.Fatalf("container state %+v, want a terminated one", s.State)
		}
		codes = append(codes, s.State.Terminated.ExitCode)
	}
	if diff := cmp.Diff([]int32{3, 137}, codes); diff != "" {
		t.Errorf("exit codes (-want +got):\n%s", diff)
	}
}

func TestStatusKeepsWhatOthersWroteAndTheTimeOfLastChange(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	written := corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: before},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: before},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: before},
	}}
	now := before.Add(time.Hour)
	got := report{pod: &corev1.Pod{}, written: written, main: []corev1.ContainerStatus{runs(true)}}.status(now)
	for kind, want := range map[corev1.PodConditionType]time.Time{
		corev1.PodScheduled: before.Time, corev1.PodInitialized: before.Time, corev1.PodReady: now,
	} {
		if changed := condition(got, kind).LastTransitionTime.Time; !changed.Equal(want) {
			t.Errorf("%s changed at %s, want %s", kind, changed, want)
		}
	}
}

func condition(status corev1.PodStatus, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}
