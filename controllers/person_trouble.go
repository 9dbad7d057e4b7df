package controllers

// This file says in words what keeps a person's pod from running.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// lostMargin is how long after a pod's grace period its node may take to say that it is gone.
const lostMargin = time.Minute

// selectedNode is the annotation by which the scheduler says that a volume has been asked for.
const selectedNode = "volume.kubernetes.io/selected-node"

// lostAt is when a terminating pod's node counts as lost. The deletion timestamp includes the grace period.
func lostAt(pod *corev1.Pod) time.Time { return pod.DeletionTimestamp.Add(lostMargin) }

// podTrouble is what keeps the pod from running, or nil.
func podTrouble(pod *corev1.Pod, home *corev1.PersistentVolumeClaim, now time.Time) *problem {
	switch {
	case pod == nil && home != nil && home.DeletionTimestamp != nil:
		return &problem{reason: api.ReasonVolumePending, message: fmt.Sprintf("The home %s is being deleted.", home.Name)}
	case pod == nil:
		return &problem{reason: api.ReasonPodPending, message: "The pod is not made yet."}
	case pod.DeletionTimestamp != nil:
		return terminating(pod, now)
	case ended(pod):
		return &problem{reason: api.ReasonPodPending, message: fmt.Sprintf("Pod %s ended (%s) and is made anew.", pod.Name, podMessage(pod))}
	}
	if home != nil && home.Status.Phase == corev1.ClaimLost {
		return &problem{reason: api.ReasonVolumePending, stalled: true, message: fmt.Sprintf(
			"The volume %s behind the home %s is gone.", home.Spec.VolumeName, home.Name)}
	}
	if pod.Status.Phase == corev1.PodRunning {
		return containersTrouble(pod)
	}
	return startTrouble(pod, home)
}

// startTrouble is what keeps a pod from its start.
func startTrouble(pod *corev1.Pod, home *corev1.PersistentVolumeClaim) *problem {
	for _, p := range []*problem{homeTrouble(home), unscheduled(pod), containersTrouble(pod)} {
		if p != nil {
			return p
		}
	}
	if home != nil && home.Status.Phase == corev1.ClaimPending {
		return &problem{reason: api.ReasonVolumePending, message: fmt.Sprintf("The home %s is not bound to a volume yet.", home.Name)}
	}
	return &problem{reason: api.ReasonPodPending, message: fmt.Sprintf("Pod %s is not started yet.", pod.Name)}
}

func containersTrouble(pod *corev1.Pod) *problem {
	statuses := append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...)
	for i := range statuses {
		if p := containerTrouble(&statuses[i]); p != nil {
			return p
		}
	}
	return nil
}

func terminating(pod *corev1.Pod, now time.Time) *problem {
	if !now.Before(lostAt(pod)) {
		return &problem{reason: api.ReasonNodeLost, stalled: true, message: fmt.Sprintf(
			"Node %s has not confirmed that pod %s ended, which was due at %s. The pod is never forced away, because two could then "+
				"write to one home: bring the node back, or if it is gone for good delete the Node object.",
			cmp.Or(pod.Spec.NodeName, "(none)"), pod.Name, pod.DeletionTimestamp.UTC().Format(time.RFC3339))}
	}
	return &problem{reason: api.ReasonPodTerminating, message: fmt.Sprintf("Pod %s is ending.", pod.Name)}
}

// homeTrouble tells of a home that no waiting will bring.
func homeTrouble(home *corev1.PersistentVolumeClaim) *problem {
	if home == nil {
		return nil
	}
	class := ""
	if home.Spec.StorageClassName != nil {
		class = *home.Spec.StorageClassName
	}
	switch {
	case home.Status.Phase == corev1.ClaimPending && class == "" && home.Spec.VolumeName == "":
		return &problem{reason: api.ReasonVolumePending, message: fmt.Sprintf(
			"The home %s is not bound to a volume: it names no storage class and the cluster has no default one.", home.Name)}
	case home.Status.Phase == corev1.ClaimPending && home.Annotations[selectedNode] != "":
		return &problem{reason: api.ReasonVolumePending, message: fmt.Sprintf(
			"The home %s waits for a volume of storage class %s.", home.Name, class)}
	}
	return nil
}

func unscheduled(pod *corev1.Pod) *problem {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &problem{reason: api.ReasonUnschedulable, message: fmt.Sprintf("No node takes pod %s: %s", pod.Name, c.Message)}
		}
	}
	return nil
}

// waitingReasons maps a kubelet's reasons why a container does not start to ours. The rest, for example ContainerCreating, is
// the usual way.
var waitingReasons = map[string]string{
	"ErrImagePull":               api.ReasonImagePull,
	"ImagePullBackOff":           api.ReasonImagePull,
	"InvalidImageName":           api.ReasonImagePull,
	"ErrImageNeverPull":          api.ReasonImagePull,
	"ImageInspectError":          api.ReasonImagePull,
	"RegistryUnavailable":        api.ReasonImagePull,
	"SignatureValidationFailed":  api.ReasonImagePull,
	"CreateContainerConfigError": api.ReasonContainerConfig,
	"CreateContainerError":       api.ReasonContainerStart,
	"RunContainerError":          api.ReasonContainerStart,
	"PreCreateHookError":         api.ReasonContainerStart,
	"PreStartHookError":          api.ReasonContainerStart,
	"PostStartHookError":         api.ReasonContainerStart,
}

func containerTrouble(status *corev1.ContainerStatus) *problem {
	switch {
	case status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff":
		return &problem{reason: api.ReasonCrashLoop, stalled: true, message: fmt.Sprintf(
			"Container %s ends again and again (%d restarts): %s", status.Name, status.RestartCount,
			ending(status.Name, status.LastTerminationState.Terminated))}
	case status.State.Waiting != nil:
		waiting := status.State.Waiting
		reason, known := waitingReasons[waiting.Reason]
		if !known {
			return nil
		}
		what := "cannot start"
		if reason == api.ReasonImagePull {
			what = fmt.Sprintf("has no image: %s cannot be pulled", status.Image)
		}
		return &problem{reason: reason, stalled: true, message: fmt.Sprintf(
			"Container %s %s (%s): %s", status.Name, what, waiting.Reason, waiting.Message)}
	case status.State.Terminated != nil && status.State.Terminated.ExitCode != 0:
		return &problem{reason: api.ReasonPodPending, message: fmt.Sprintf(
			"Container %s is started anew: %s", status.Name, ending(status.Name, status.State.Terminated))}
	}
	return nil
}

// ending says how a container ended.
func ending(container string, t *corev1.ContainerStateTerminated) string {
	if t == nil {
		return "nothing is known of its last end."
	}
	var how string
	switch {
	case t.Reason == "OOMKilled":
		how = fmt.Sprintf("it was killed because it used more memory than resources.limits allow (OOMKilled, exit code %d)", t.ExitCode)
	case t.Signal != 0:
		how = fmt.Sprintf("it was ended by signal %d (%s)", t.Signal, cmp.Or(t.Reason, "no reason given"))
	case container == contract.ContainerName && t.ExitCode == contract.ExitConfig:
		how = fmt.Sprintf("its environment is wrong (exit code %d)", t.ExitCode)
	default:
		how = fmt.Sprintf("it ended with exit code %d (%s)", t.ExitCode, cmp.Or(t.Reason, "no reason given"))
	}
	if message := line(t.Message, 300); message != "" {
		return how + ": " + message
	}
	return how + "."
}

func podMessage(pod *corev1.Pod) string {
	parts := slices.DeleteFunc([]string{pod.Status.Reason, line(pod.Status.Message, 300)}, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return string(pod.Status.Phase)
	}
	return strings.Join(parts, ": ")
}
