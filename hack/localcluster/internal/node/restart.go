package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Backoff is how long containers that end again and again wait before their next
// start.
type Backoff struct {
	// Initial is the wait before the second restart; the first one is at once.
	// It doubles with each further restart up to Max.
	Initial, Max time.Duration
}

// next returns the wait after the one before. A container that ran for twice the
// longest wait starts over: none means that there was no restart yet.
func (b Backoff) next(previous time.Duration, ran time.Duration) time.Duration {
	switch {
	case previous == none || ran >= 2*b.Max:
		return 0
	case previous == 0:
		return min(b.Initial, b.Max)
	default:
		return min(2*previous, b.Max)
	}
}

// none is the wait of a container that was not restarted yet.
const none time.Duration = -1

// restarts reports whether a container that ended with code is started again.
func restarts(policy corev1.RestartPolicy, code int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return code != 0
	default:
		return true
	}
}

// policyOf returns the restart policy of a container. An init container that
// succeeded is done, whatever its pod's policy, unless it is a sidecar.
func policyOf(pod *corev1.Pod, container *corev1.Container, init bool) corev1.RestartPolicy {
	if container.RestartPolicy != nil {
		return corev1.RestartPolicy(*container.RestartPolicy)
	}
	if init && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return corev1.RestartPolicyOnFailure
	}
	return pod.Spec.RestartPolicy
}

// isSidecar reports whether an init container runs beside the main ones.
func isSidecar(container *corev1.Container) bool {
	return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
