package controllers

// This file decides on the life of a person's pod: when it is made, replaced, and left alone.

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

// remakeAfter is how old a failed pod must be before it is made anew, so that a node which refuses it is not hammered.
const remakeAfter = 10 * time.Second

// podPlan says what becomes of the pod.
type podPlan struct {
	create *corev1.Pod
	remove *corev1.Pod
	// reason and why tell a removal as an event.
	reason, why string
	// pending is why the pod that runs waits to be replaced; empty if it does not.
	pending string
	// wait is when to decide again; 0 is when something changes.
	wait time.Duration
}

// planPod decides. made is the error of making the other objects: without them there is no new pod.
func planPod(s *personSnapshot, want *wanted, view *model.PersonView, made error, now time.Time) podPlan {
	pod := s.pod
	switch {
	case pod == nil:
		if want.pod == nil || made != nil || homeIsGoing(s) {
			return podPlan{}
		}
		return podPlan{create: want.pod}
	case !isOurs(s.person, pod):
		return podPlan{}
	case pod.DeletionTimestamp != nil:
		return podPlan{wait: max(0, lostAt(pod).Sub(now))}
	case s.rival != "":
		return podPlan{remove: pod, reason: api.ReasonHandleTaken, why: "another person has the handle"}
	case want.pod == nil:
		return podPlan{}
	case ended(pod):
		if wait := pod.CreationTimestamp.Add(remakeAfter).Sub(now); wait > 0 {
			return podPlan{wait: wait}
		}
		return podPlan{remove: pod, reason: "PodEnded", why: "it ended: " + podMessage(pod)}
	case outdated(pod, want.pod):
		return planRollout(s, view, now)
	}
	return podPlan{}
}

// planRollout replaces an outdated pod between rounds, or when the round took longer than rollout.maxWait allows.
func planRollout(s *personSnapshot, view *model.PersonView, now time.Time) podPlan {
	rollout := podPlan{remove: s.pod, reason: "PodOutdated", why: "the settings of its person or team changed"}
	if view != nil && !view.Busy {
		return rollout
	}
	since := now
	if c := apimeta.FindStatusCondition(s.person.Status.Conditions, api.ConditionRolloutPending); c != nil {
		since = c.LastTransitionTime.Time
	}
	maxWait := duration(s.team.Spec.Policies.Rollout.MaxWait, defaultMaxWait)
	deadline := since.Add(maxWait)
	if !now.Before(deadline) {
		return rollout
	}
	return podPlan{wait: deadline.Sub(now), pending: fmt.Sprintf(
		"The pod is to be replaced; it waits for the end of the running round, at most %s.", maxWait)}
}

// draining says that the person gets no offers because its pod is on its way out.
func draining(s *personSnapshot, want *wanted) bool {
	pod := s.pod
	if pod == nil {
		return false
	}
	return pod.DeletionTimestamp != nil || ended(pod) || (want.pod != nil && outdated(pod, want.pod))
}

func outdated(pod, want *corev1.Pod) bool {
	return pod.Annotations[api.AnnotationPodHash] != want.Annotations[api.AnnotationPodHash]
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func homeIsGoing(s *personSnapshot) bool { return s.home != nil && s.home.DeletionTimestamp != nil }

// incarnation identifies the run of the agent's container, and when it began; empty while it does not run.
func incarnation(pod *corev1.Pod) (id string, since time.Time) {
	if pod == nil {
		return "", time.Time{}
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.Name == contract.ContainerName && status.State.Running != nil {
			return fmt.Sprintf("%s/%d", pod.UID, status.RestartCount), status.State.Running.StartedAt.UTC()
		}
	}
	return "", time.Time{}
}

// applyPod does what was planned. The next pod is made when the one before is gone: never are there two.
func (r *personReconciler) applyPod(ctx context.Context, s *personSnapshot, plan podPlan) error {
	if plan.create != nil {
		if err := r.create(ctx, s.person, plan.create); err != nil {
			return err
		}
		r.events.Eventf(s.person, plan.create, corev1.EventTypeNormal, "PodCreated", "CreatePod", "Made pod %s", plan.create.Name)
	}
	if plan.remove != nil {
		err := r.client.Delete(ctx, plan.remove, client.Preconditions{UID: &plan.remove.UID})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		r.events.Eventf(s.person, plan.remove, corev1.EventTypeNormal, plan.reason, "DeletePod", "Deleted pod %s: %s", plan.remove.Name, plan.why)
	}
	return nil
}
