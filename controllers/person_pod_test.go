package controllers

// This file tests the decisions on the life of a pod and the words for its trouble.

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func anAda() *api.Person {
	return &api.Person{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "ada", UID: "ada-uid", Generation: 3, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec:       api.PersonSpec{Team: "core"},
	}
}

// aSnapshot is of a person with everything in place, changed by edits.
func aSnapshot(t *testing.T, edits ...func(*personSnapshot)) *personSnapshot {
	t.Helper()
	s := &personSnapshot{
		person:   anAda(),
		team:     &api.Team{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "core"}},
		caBundle: []byte("ca"),
	}
	s.secret = podspec.Secret(s.person, strings.Repeat("t", minTokenLength), s.caBundle)
	s.account = podspec.ServiceAccount(s.person)
	settings := podspec.Settings(s.team.Spec.Agent, s.person.Spec.Agent)
	var err error
	if s.home, err = podspec.Home(s.person, settings); err != nil {
		t.Fatal(err)
	}
	s.home.Status.Phase = corev1.ClaimBound
	if s.pod, err = podspec.Pod(s.person, settings, testOperator); err != nil {
		t.Fatal(err)
	}
	s.pod.UID = "pod-uid"
	s.pod.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	s.pod.Status.Phase = corev1.PodRunning
	for _, edit := range edits {
		edit(s)
	}
	return s
}

var testOperator = podspec.Operator{Image: "agent:1", OfficeURL: "https://office:8443"}

func outdatedPod(s *personSnapshot) { s.pod.Annotations[api.AnnotationPodHash] = "older" }
func withoutPod(s *personSnapshot)  { s.pod = nil }
func terminatingPod(s *personSnapshot) {
	s.pod.DeletionTimestamp = &metav1.Time{Time: noon.Add(-30 * time.Second)}
}
func failedPod(s *personSnapshot) { s.pod.Status.Phase = corev1.PodFailed }

func pendingSince(t time.Time) func(*personSnapshot) {
	return func(s *personSnapshot) {
		s.person.Status.Conditions = []metav1.Condition{{
			Type: api.ConditionRolloutPending, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(t),
		}}
	}
}

func TestPlanPod(t *testing.T) {
	idle, busy := &model.PersonView{Connected: true}, &model.PersonView{Connected: true, Busy: true}
	tests := map[string]struct {
		edits  []func(*personSnapshot)
		view   *model.PersonView
		made   error
		create bool
		remove bool
		// pending says that a rollout waits.
		pending  bool
		wait     time.Duration
		draining bool
	}{
		"a pod as it should be stays":              {view: idle},
		"a missing pod is made":                    {edits: []func(*personSnapshot){withoutPod}, create: true},
		"a missing pod is made without the office": {edits: []func(*personSnapshot){withoutPod}, view: nil, create: true},
		"no pod is made where its Secret could not be": {
			edits: []func(*personSnapshot){withoutPod}, made: errors.New("no"),
		},
		"no pod is made while its home is being deleted": {
			edits: []func(*personSnapshot){withoutPod, func(s *personSnapshot) { s.home.DeletionTimestamp = &metav1.Time{Time: noon} }},
		},
		"no pod is made without a team": {edits: []func(*personSnapshot){withoutPod, func(s *personSnapshot) { s.team = nil }}},
		"without a team, a pod stays":   {edits: []func(*personSnapshot){outdatedPod, func(s *personSnapshot) { s.team = nil }}},
		"an unreadable Secret rolls no pod": {
			edits: []func(*personSnapshot){outdatedPod, func(s *personSnapshot) { s.secret, s.secretErr = nil, errors.New("forbidden") }}, view: idle,
		},
		"another person's handle takes the pod away": {
			edits: []func(*personSnapshot){func(s *personSnapshot) { s.rival = "older" }}, remove: true,
		},
		"between rounds, an outdated pod goes": {edits: []func(*personSnapshot){outdatedPod}, view: idle, remove: true, draining: true},
		"in the middle of a round, an outdated pod waits an hour": {
			edits: []func(*personSnapshot){outdatedPod}, view: busy, pending: true, wait: time.Hour, draining: true,
		},
		"the wait goes on since it began": {
			edits: []func(*personSnapshot){outdatedPod, pendingSince(noon.Add(-20 * time.Minute))}, view: busy, pending: true,
			wait: 40 * time.Minute, draining: true,
		},
		"after maxWait, the round is interrupted": {
			edits: []func(*personSnapshot){outdatedPod, pendingSince(noon.Add(-time.Hour))}, view: busy, remove: true, draining: true,
		},
		"with a maxWait of 0, at once": {
			edits: []func(*personSnapshot){outdatedPod, func(s *personSnapshot) {
				s.team.Spec.Policies.Rollout.MaxWait = &metav1.Duration{}
			}}, view: busy, remove: true, draining: true,
		},
		"without an answer of the office, an outdated pod waits": {
			edits: []func(*personSnapshot){outdatedPod}, pending: true, wait: time.Hour, draining: true,
		},
		"a terminating pod is left to its node": {
			edits: []func(*personSnapshot){terminatingPod, outdatedPod}, view: idle, wait: 30 * time.Second, draining: true,
		},
		"an evicted pod is made anew": {edits: []func(*personSnapshot){failedPod}, view: idle, remove: true, draining: true},
		"a pod that failed right after its start waits a little": {
			edits: []func(*personSnapshot){failedPod, func(s *personSnapshot) { s.pod.CreationTimestamp = metav1.NewTime(noon.Add(-3 * time.Second)) }},
			wait:  7 * time.Second, draining: true,
		},
		"somebody else's pod is not touched": {
			edits: []func(*personSnapshot){outdatedPod, func(s *personSnapshot) { s.pod.OwnerReferences = nil }}, view: idle,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := aSnapshot(t, test.edits...)
			want := planObjects(s, testOperator)
			got := planPod(s, want, test.view, test.made, noon)
			if (got.create != nil) != test.create || (got.remove != nil) != test.remove || (got.pending != "") != test.pending || got.wait != test.wait {
				t.Errorf("the plan is %+v", got)
			}
			if d := draining(s, want); d != test.draining {
				t.Errorf("draining is %v", d)
			}
		})
	}
}

func TestPodTrouble(t *testing.T) {
	container := func(status corev1.ContainerStatus) func(*personSnapshot) {
		return func(s *personSnapshot) {
			status.Name, status.Image = "agent", "agent:1"
			s.pod.Status.Phase, s.pod.Status.ContainerStatuses = corev1.PodPending, []corev1.ContainerStatus{status}
		}
	}
	waiting := func(reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}}}
	}
	crashed := func(last corev1.ContainerStateTerminated) corev1.ContainerStatus {
		status := waiting("CrashLoopBackOff")
		status.RestartCount, status.LastTerminationState.Terminated = 4, &last
		return status
	}
	tests := map[string]struct {
		edit    func(*personSnapshot)
		reason  string
		words   []string
		stalled bool
	}{
		"a running pod has none": {edit: func(*personSnapshot) {}},
		"no pod yet":             {edit: withoutPod, reason: api.ReasonPodPending},
		"no pod because the home goes": {edit: func(s *personSnapshot) {
			s.pod, s.home.DeletionTimestamp = nil, &metav1.Time{Time: noon}
		}, reason: api.ReasonVolumePending, words: []string{"ada-home", "deleted"}},
		"a pod that ends": {edit: terminatingPod, reason: api.ReasonPodTerminating},
		"a node that is lost": {edit: func(s *personSnapshot) {
			s.pod.DeletionTimestamp, s.pod.Spec.NodeName = &metav1.Time{Time: noon.Add(-time.Minute)}, "n1"
		}, reason: api.ReasonNodeLost, stalled: true, words: []string{"Node n1", "2026-05-01T11:59:00Z"}},
		"an evicted pod": {edit: func(s *personSnapshot) {
			s.pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on\nmemory"}
		}, reason: api.ReasonPodPending, words: []string{"Evicted: low on memory"}},
		"a volume that is gone": {edit: func(s *personSnapshot) {
			s.home.Status.Phase, s.home.Spec.VolumeName = corev1.ClaimLost, "pv-1"
		}, reason: api.ReasonVolumePending, stalled: true, words: []string{"pv-1"}},
		"a volume that is being made": {edit: func(s *personSnapshot) {
			s.pod.Status.Phase = corev1.PodPending
			s.home.Status.Phase, s.home.Annotations[selectedNode] = corev1.ClaimPending, "n1"
			fast := "fast"
			s.home.Spec.StorageClassName = &fast
		}, reason: api.ReasonVolumePending, words: []string{"class fast"}},
		"no storage class": {edit: func(s *personSnapshot) {
			s.pod.Status.Phase, s.home.Status.Phase = corev1.PodPending, corev1.ClaimPending
		},
			reason: api.ReasonVolumePending, words: []string{"no default"}},
		"an image name that is none": {edit: container(waiting("InvalidImageName")), reason: api.ReasonImagePull, stalled: true, words: []string{"agent:1", "because"}},
		"an image that is not there": {edit: container(waiting("ErrImagePull")), reason: api.ReasonImagePull, stalled: true},
		"a container without its config": {edit: container(waiting("CreateContainerConfigError")), reason: api.ReasonContainerConfig,
			stalled: true, words: []string{"because"}},
		"a container that cannot start":  {edit: container(waiting("RunContainerError")), reason: api.ReasonContainerStart, stalled: true},
		"a container that is being made": {edit: container(waiting("ContainerCreating")), reason: api.ReasonPodPending},
		"a wrong environment": {edit: container(crashed(corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"})),
			reason: api.ReasonCrashLoop, stalled: true, words: []string{"4 restarts", "environment", "exit code 2"}},
		"a signal": {edit: container(crashed(corev1.ContainerStateTerminated{ExitCode: 139, Signal: 11, Reason: "Error"})),
			reason: api.ReasonCrashLoop, stalled: true, words: []string{"signal 11"}},
		"a crash between two runs": {edit: container(corev1.ContainerStatus{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "oops"}}}), reason: api.ReasonPodPending, words: []string{"exit code 1", "oops"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := aSnapshot(t, test.edit)
			got := podTrouble(s.pod, s.home, noon)
			if got == nil {
				got = &problem{}
			}
			if got.reason != test.reason || got.stalled != test.stalled {
				t.Errorf("it is %+v", got)
			}
			for _, word := range test.words {
				if !strings.Contains(got.message, word) {
					t.Errorf("%q is not in %q", word, got.message)
				}
			}
		})
	}
}

func TestPlanObjects(t *testing.T) {
	kinds := func(steps []step) []string {
		var list []string
		for _, s := range steps {
			verb := "create "
			if s.old != nil {
				verb = "patch "
			}
			list = append(list, verb+kindOf(s.object))
		}
		return list
	}
	tests := map[string]struct {
		edit    func(*personSnapshot)
		steps   []string
		problem string
		// minted says that the token is a new one, unknown that there is none.
		minted, unknown bool
	}{
		"nothing to do": {edit: func(*personSnapshot) {}},
		"everything is missing": {edit: func(s *personSnapshot) { s.secret, s.account, s.home, s.pod = nil, nil, nil, nil },
			steps: []string{"create Secret", "create ServiceAccount", "create PersistentVolumeClaim"}, minted: true},
		"another CA":        {edit: func(s *personSnapshot) { s.caBundle = []byte("other") }, steps: []string{"patch Secret"}},
		"no token":          {edit: func(s *personSnapshot) { delete(s.secret.Data, "token") }, steps: []string{"patch Secret"}, minted: true},
		"a token too short": {edit: func(s *personSnapshot) { s.secret.Data["token"] = []byte("x") }, steps: []string{"patch Secret"}, minted: true},
		"an empty Secret":   {edit: func(s *personSnapshot) { s.secret.Data = nil }, steps: []string{"patch Secret"}, minted: true},
		"a home that is to grow": {edit: func(s *personSnapshot) {
			size := s.home.Spec.Resources.Requests[corev1.ResourceStorage].DeepCopy()
			size.Add(size)
			s.person.Spec.Agent.Home = &api.HomeSettings{Size: &size}
		}, steps: []string{"patch PersistentVolumeClaim"}},
		"a home never shrinks": {edit: func(s *personSnapshot) {
			size := s.home.Spec.Resources.Requests[corev1.ResourceStorage].DeepCopy()
			size.Set(1 << 20)
			s.person.Spec.Agent.Home = &api.HomeSettings{Size: &size}
		}},
		"a home that is to go with its person": {edit: func(s *personSnapshot) {
			s.person.Spec.Agent.Home = &api.HomeSettings{Retention: api.DeleteHome}
		}, steps: []string{"patch PersistentVolumeClaim"}},
		"a home that is going is left": {edit: func(s *personSnapshot) {
			s.home.DeletionTimestamp = &metav1.Time{Time: noon}
			s.person.Spec.Agent.Home = &api.HomeSettings{Retention: api.DeleteHome}
		}},
		"the CA is not there yet": {edit: func(s *personSnapshot) { s.caErr = errors.New("none") }, problem: api.ReasonOfficeUnavailable},
		"a Secret that cannot be read": {edit: func(s *personSnapshot) { s.secret, s.secretErr = nil, errors.New("no") },
			problem: api.ReasonSecretUnreadable, unknown: true},
		"a foreign Secret": {edit: func(s *personSnapshot) { s.secret.OwnerReferences = nil }, problem: api.ReasonNotOurs, unknown: true},
		"the Secret of the person before": {edit: func(s *personSnapshot) { s.secret.OwnerReferences[0].UID = "another" },
			problem: api.ReasonPodTerminating, unknown: true},
		"a home of another name": {edit: func(s *personSnapshot) { s.home.Annotations[api.AnnotationHomeOf] = "bob" }, problem: api.ReasonNotOurs},
		"a handle that is taken": {edit: func(s *personSnapshot) { s.rival = "older" }, problem: api.ReasonHandleTaken},
		"no team":                {edit: func(s *personSnapshot) { s.team = nil }, problem: api.ReasonTeamNotFound},
		"a patch that breaks a rule": {edit: func(s *personSnapshot) {
			s.person.Spec.Agent.Patches = []api.Patch{{Target: "Pod", Patch: "spec:\n  hostPID: true\n"}}
		}, problem: api.ReasonInvalidPatch},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := aSnapshot(t, test.edit)
			w := planObjects(s, testOperator)
			if got := kinds(w.steps); !slices.Equal(got, test.steps) {
				t.Errorf("the steps are %v", got)
			}
			reason := ""
			if w.problem != nil {
				reason = w.problem.reason
			}
			if reason != test.problem {
				t.Errorf("the problem is %+v", w.problem)
			}
			if (w.pod == nil) != (test.problem != "") {
				t.Errorf("the pod is %v", w.pod)
			}
			old := strings.Repeat("t", minTokenLength)
			if (w.token == "") != test.unknown || (w.token != old && !test.unknown) != test.minted {
				t.Errorf("the token is %q", w.token)
			}
			if test.minted && len(w.token) != minTokenLength {
				t.Errorf("a new token has %d characters", len(w.token))
			}
		})
	}
}

func TestOlderRival(t *testing.T) {
	at := func(uid types.UID, second int) api.Person {
		return api.Person{ObjectMeta: metav1.ObjectMeta{Name: "p-" + string(uid), UID: uid, CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(second) * time.Second))}}
	}
	tests := map[string]struct {
		same []api.Person
		want string
	}{
		"alone":                                  {same: []api.Person{at("m", 5)}},
		"the only older one":                     {same: []api.Person{at("m", 5), at("z", 1)}, want: "p-z"},
		"a younger one does not matter":          {same: []api.Person{at("m", 5), at("a", 9)}},
		"of the same second, the lower UID":      {same: []api.Person{at("m", 5), at("a", 5)}, want: "p-a"},
		"of the same second, not the higher UID": {same: []api.Person{at("m", 5), at("z", 5)}},
		"the oldest of many":                     {same: []api.Person{at("z", 4), at("m", 5), at("a", 3)}, want: "p-a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			me := at("m", 5)
			if got := olderRival(&me, test.same); got != test.want {
				t.Errorf("it is %q", got)
			}
		})
	}
}

func TestIncarnation(t *testing.T) {
	since := metav1.NewTime(noon)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "sidecar", RestartCount: 9, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "agent", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}},
	}}}
	if id, at := incarnation(pod); id != "u/2" || !at.Equal(noon) {
		t.Errorf("a running agent is %q since %s", id, at)
	}
	pod.Status.ContainerStatuses[1].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	if id, _ := incarnation(pod); id != "" {
		t.Errorf("an agent that does not run is %q", id)
	}
	if id, _ := incarnation(nil); id != "" {
		t.Errorf("no pod is %q", id)
	}
}
