package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A report is what is known about a pod on this node; its status follows from
// it.
type report struct {
	pod *corev1.Pod
	// written is the status that the node wrote last. The object may be behind.
	written    corev1.PodStatus
	init, main []corev1.ContainerStatus
	startTime  time.Time
	// volumesReady tells that containers could be started.
	volumesReady bool
	// reason and message are set if the node ended the pod by itself.
	reason, message string
	// ended tells that nothing of the pod runs or will run again.
	ended bool
}

// status makes the pod's status: what the report says, and what others wrote.
func (r report) status(now time.Time) corev1.PodStatus {
	status := *r.written.DeepCopy()
	status.InitContainerStatuses = slices.Clone(r.init)
	status.ContainerStatuses = slices.Clone(r.main)
	if r.ended {
		endAll(status.InitContainerStatuses)
		endAll(status.ContainerStatuses)
	}
	status.Phase = r.phase(status)
	status.Reason, status.Message = r.reason, r.message
	status.ObservedGeneration = r.pod.Generation
	start := metav1.NewTime(r.startTime)
	status.StartTime = &start
	status.HostIP, status.PodIP = address, address
	status.HostIPs = []corev1.HostIP{{IP: address}}
	status.PodIPs = []corev1.PodIP{{IP: address}}
	for _, condition := range r.conditions(status) {
		setCondition(&status, condition, r.pod.Generation, now)
	}
	return status
}

// endAll gives containers of an ended pod that wait an end: the one they had
// last, or an unknown one.
func endAll(statuses []corev1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		s.Ready = false
		s.Started = new(bool)
		if s.State.Waiting == nil {
			continue
		}
		if s.LastTerminationState.Terminated != nil {
			s.State = corev1.ContainerState{Terminated: s.LastTerminationState.Terminated}
			s.LastTerminationState = corev1.ContainerState{}
			continue
		}
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown",
			Message: "The container had not started when the pod was terminated",
		}}
	}
}

// phase follows a kubelet's rules.
func (r report) phase(status corev1.PodStatus) corev1.PodPhase {
	if r.reason != "" {
		return corev1.PodFailed
	}
	if !r.ended && !r.initialized(status.InitContainerStatuses) {
		return corev1.PodPending
	}
	var waiting, running, stopped, succeeded int
	for _, s := range status.ContainerStatuses {
		end := s.State.Terminated
		switch {
		case s.State.Running != nil:
			running++
			continue
		case end == nil && s.LastTerminationState.Terminated == nil:
			waiting++
			continue
		}
		stopped++
		if end != nil && end.ExitCode == 0 {
			succeeded++
		}
	}
	switch {
	case r.ended && stopped == succeeded && failed(status.InitContainerStatuses) == "":
		return corev1.PodSucceeded
	case r.ended:
		return corev1.PodFailed
	case waiting > 0:
		return corev1.PodPending
	default:
		return corev1.PodRunning
	}
}

// initialized reports whether the main containers may start.
func (r report) initialized(statuses []corev1.ContainerStatus) bool {
	return len(r.uninitialized(statuses)) == 0
}

// uninitialized names the init containers that are not done; a sidecar is once
// it has started.
func (r report) uninitialized(statuses []corev1.ContainerStatus) []string {
	var names []string
	for i, s := range statuses {
		done := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		if isSidecar(&r.pod.Spec.InitContainers[i]) {
			done = s.Started != nil && *s.Started || s.State.Terminated != nil
		}
		if !done {
			names = append(names, s.Name)
		}
	}
	return names
}

// failed names an init container that ended badly.
func failed(statuses []corev1.ContainerStatus) string {
	for _, s := range statuses {
		if s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 {
			return s.Name
		}
	}
	return ""
}

// conditions are those of a pod that its node writes.
func (r report) conditions(status corev1.PodStatus) []corev1.PodCondition {
	var unready []string
	for _, s := range status.ContainerStatuses {
		if !s.Ready {
			unready = append(unready, s.Name)
		}
	}
	completed := status.Phase == corev1.PodSucceeded
	initialized := named(corev1.PodInitialized, "ContainersNotInitialized", "containers with incomplete status", r.uninitialized(status.InitContainerStatuses))
	containersReady := named(corev1.ContainersReady, "ContainersNotReady", "containers with unready status", unready)
	if completed {
		initialized = corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: "PodCompleted"}
		containersReady = corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	}
	ready := containersReady
	ready.Type = corev1.PodReady
	if gate := r.closedGate(); gate != "" && ready.Status == corev1.ConditionTrue {
		ready.Status, ready.Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
		ready.Message = fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist or is not true", gate)
	}
	sandbox := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}
	if r.volumesReady && !r.ended {
		sandbox.Status = corev1.ConditionTrue
	}
	return []corev1.PodCondition{sandbox, initialized, ready, containersReady}
}

// closedGate returns a readiness gate of the pod that is not true.
func (r report) closedGate() string {
	for _, gate := range r.pod.Spec.ReadinessGates {
		open := slices.ContainsFunc(r.pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !open {
			return string(gate.ConditionType)
		}
	}
	return ""
}

// named is a condition that is true unless there are names to complain about.
func named(kind corev1.PodConditionType, reason, text string, names []string) corev1.PodCondition {
	if len(names) == 0 {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason,
		Message: fmt.Sprintf("%s: [%s]", text, strings.Join(names, " ")),
	}
}

// setCondition replaces a condition; the time of its last change stays if its
// status does.
func setCondition(status *corev1.PodStatus, condition corev1.PodCondition, generation int64, now time.Time) {
	condition.ObservedGeneration = generation
	condition.LastTransitionTime = metav1.NewTime(now)
	for i, old := range status.Conditions {
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions[i] = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}
