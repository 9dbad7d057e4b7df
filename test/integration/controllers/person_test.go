package controllers_test

// This file tests the Person controller: a person's objects, and the life of its pod.

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

func TestAPersonGetsItsObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	before := w.person("ada", func(p *api.Person) {
		p.Labels = map[string]string{"argocd.argoproj.io/instance": "app"}
		p.Spec.Role = "developer"
	})
	w.runningPod("ada-agent")

	var secret corev1.Secret
	var account corev1.ServiceAccount
	var home corev1.PersistentVolumeClaim
	var pod corev1.Pod
	for name, object := range map[string]client.Object{"ada-home": &home} {
		w.mustGet(name, object)
	}
	for _, object := range []client.Object{&secret, &account, &pod} {
		w.mustGet("ada-agent", object)
		if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != before.UID {
			t.Errorf("%T is owned by %v", object, owner)
		}
	}
	for _, object := range []client.Object{&secret, &account, &home, &pod} {
		if _, copied := object.GetLabels()["argocd.argoproj.io/instance"]; copied {
			t.Errorf("%T has the user's label", object)
		}
	}
	if metav1.GetControllerOf(&home) != nil || home.Annotations[api.AnnotationHomeOf] != "ada" {
		t.Errorf("the home is %v", home.ObjectMeta)
	}
	token, err := base64.RawURLEncoding.DecodeString(string(secret.Data["token"]))
	if err != nil || len(token) != 32 || string(secret.Data["ca.crt"]) != "first-ca" {
		t.Errorf("the Secret has a token of %d bytes (%v) and the CA %q", len(token), err, secret.Data["ca.crt"])
	}
	w.eventually("the office knows the running agent", func() error {
		person, err := w.office.personOf(string(before.UID))
		if err != nil {
			return err
		}
		if person.TokenHash != sha256.Sum256(secret.Data["token"]) || person.Role != "developer" || person.Draining ||
			person.Incarnation != string(pod.UID)+"/0" || person.IncarnationAt.IsZero() {
			return fmt.Errorf("it is %+v", person)
		}
		return nil
	})
	w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonAgentOffline)
	w.office.showPerson(w.namespace, "ada", connected)
	after := w.personHas("ada", api.ConditionReady, metav1.ConditionTrue, api.ReasonReady)
	if diff := cmp.Diff(before.Spec, after.Spec) + cmp.Diff(before.Labels, after.Labels) + cmp.Diff(before.Annotations, after.Annotations); diff != "" {
		t.Errorf("the user's part of the person changed:\n%s", diff)
	}
	if after.Generation != before.Generation || after.Status.State != "idle" || after.Status.Store.ID != storeID {
		t.Errorf("generation %d, status %+v", after.Generation, after.Status)
	}
}

func TestATokenIsMintedOnceAndTheCAKeptUpToDate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	person := w.person("ada")
	pod := w.runningPod("ada-agent")
	secret := &corev1.Secret{}
	w.mustGet("ada-agent", secret)
	token := string(secret.Data["token"])

	w.stop()
	w.start()
	w.ca.rotate("first-ca second-ca")
	w.eventually("the new CA in the Secret", func() error {
		w.mustGet("ada-agent", secret)
		if string(secret.Data["ca.crt"]) != "first-ca second-ca" {
			return fmt.Errorf("it has %s", secret.Data["ca.crt"])
		}
		return nil
	})
	if string(secret.Data["token"]) != token {
		t.Fatal("the token was minted anew")
	}
	w.change("ada-agent", secret, func() { secret.Data["token"] = []byte("short") })
	w.eventually("a new token in the Secret and in the office", func() error {
		w.mustGet("ada-agent", secret)
		known, err := w.office.personOf(string(person.UID))
		if got := string(secret.Data["token"]); len(got) < 43 || got == token || known.TokenHash != sha256.Sum256([]byte(got)) {
			return fmt.Errorf("it is %q: %w", got, err)
		}
		return nil
	})
	same := &corev1.Pod{}
	w.mustGet("ada-agent", same)
	if same.UID != pod.UID {
		t.Error("the pod was replaced because the Secret changed")
	}
}

func TestForeignObjectsAreLeftAlone(t *testing.T) {
	t.Parallel()
	ours := map[string]string{api.LabelManagedBy: api.LabelManagedByValue}
	container := []corev1.Container{{Name: "x", Image: "x"}}
	tests := map[string]client.Object{
		"a Secret":                           &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ada-agent"}, StringData: map[string]string{"token": strings.Repeat("x", 50)}},
		"a Secret with our label":            &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ada-agent", Labels: ours}},
		"a ServiceAccount":                   &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "ada-agent"}},
		"a Pod":                              &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ada-agent"}, Spec: corev1.PodSpec{Containers: container}},
		"a Pod with our label":               &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ada-agent", Labels: ours}, Spec: corev1.PodSpec{Containers: container}},
		"a PersistentVolumeClaim":            claim(nil, nil),
		"a home that was another person's":   claim(ours, map[string]string{api.AnnotationHomeOf: "bob"}),
		"a claim with our label and no mark": claim(ours, nil),
	}
	for name, foreign := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			foreign.SetNamespace(w.namespace)
			w.create(foreign)
			version := foreign.GetResourceVersion()
			w.team("core")
			w.person("ada")
			w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonNotOurs)
			person := w.personHas("ada", api.ConditionStalled, metav1.ConditionTrue, api.ReasonNotOurs)
			if message := person.Status.Conditions[0].Message; !strings.Contains(message, foreign.GetName()) {
				t.Errorf("the message does not name the object: %s", message)
			}
			w.mustGet(foreign.GetName(), foreign)
			if foreign.GetResourceVersion() != version {
				t.Errorf("the object was changed: %v", foreign)
			}
			w.change(foreign.GetName(), foreign, func() { foreign.SetFinalizers(nil) }) // the volume protection's part
			w.delete(foreign, client.GracePeriodSeconds(0))
			w.change("ada", person, func() { person.Annotations = map[string]string{"poke": "1"} })
			w.runningPod("ada-agent")
			w.personHas("ada", api.ConditionStalled, "", "")
		})
	}
}

func claim(labels, annotations map[string]string) client.Object {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "ada-home", Labels: maps.Clone(labels), Annotations: annotations},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func TestTwoPeopleWithOneHandle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	older := w.person("ada")
	w.runningPod("ada-agent")
	// Creation times count in seconds; the younger one must be younger by the API server's clock.
	w.eventually("a second has passed", func() error {
		if time.Since(older.CreationTimestamp.Time) < 1100*time.Millisecond {
			return errors.New("not yet")
		}
		return nil
	})
	younger := w.person("ada-two", func(p *api.Person) { p.Spec.Handle = "ada" })
	w.personHas("ada-two", api.ConditionStalled, metav1.ConditionTrue, api.ReasonHandleTaken)
	if err := w.get("ada-two-agent", &corev1.Pod{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the younger one has a pod (%v)", err)
	}
	if _, err := w.office.personOf(string(younger.UID)); err == nil {
		t.Error("the office knows the younger one")
	}
	w.delete(older)
	w.runningPod("ada-two-agent")
	w.personHas("ada-two", api.ConditionStalled, "", "")
	w.eventually("the office knows the one and not the other", func() error {
		_, err := w.office.personOf(string(younger.UID))
		if w.office.count("ForgetPerson %s", older.UID) == 0 {
			return errors.New("the older one is not forgotten")
		}
		return err
	})
}

func TestPodTroubleIsToldInWords(t *testing.T) {
	t.Parallel()
	waiting := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", Image: "bad/image", ImageID: "x",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
	}
	tests := map[string]struct {
		kubelet func(*corev1.Pod)
		reason  string
		words   []string
		stalled bool
	}{
		"no node takes it": {
			kubelet: func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
					Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient memory."}}
			},
			reason: api.ReasonUnschedulable, words: []string{"Insufficient memory"},
		},
		"its image cannot be pulled": {
			kubelet: waiting("ImagePullBackOff", "manifest unknown"), reason: api.ReasonImagePull, stalled: true,
			words: []string{"bad/image", "manifest unknown"},
		},
		"a Secret that it needs is missing": {
			kubelet: waiting("CreateContainerConfigError", `secret "git" not found`), reason: api.ReasonContainerConfig, stalled: true,
			words: []string{`secret "git" not found`},
		},
		"it crashes again and again": {
			kubelet: func(p *corev1.Pod) {
				waiting("CrashLoopBackOff", "back-off")(p)
				p.Status.ContainerStatuses[0].RestartCount = 7
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
					ExitCode: 3, Reason: "Error", Message: "no such file: config.json"}
			},
			reason: api.ReasonCrashLoop, stalled: true, words: []string{"7 restarts", "exit code 3", "config.json"},
		},
		"it is out of memory": {
			kubelet: func(p *corev1.Pod) {
				waiting("CrashLoopBackOff", "back-off")(p)
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
					ExitCode: 137, Reason: "OOMKilled"}
			},
			reason: api.ReasonCrashLoop, stalled: true, words: []string{"more memory", "OOMKilled"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.team("core")
			w.person("ada")
			w.eventually("a pod", func() error { return w.get("ada-agent", &corev1.Pod{}) })
			w.bindHome("ada-home")
			w.changePod("ada-agent", test.kubelet)
			person := w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, test.reason)
			for _, word := range test.words {
				if message := person.Status.Conditions[0].Message; !strings.Contains(message, word) {
					t.Errorf("%q is not in %q", word, message)
				}
			}
			stalled := metav1.ConditionStatus("")
			if test.stalled {
				stalled = metav1.ConditionTrue
			}
			if err := has(person.Status.Conditions, api.ConditionStalled, stalled, test.reason); err != nil {
				t.Error(err)
			}
			w.changePod("ada-agent", running)
			w.office.showPerson(w.namespace, "ada", connected)
			w.personHas("ada", api.ConditionReady, metav1.ConditionTrue, api.ReasonReady)
		})
	}
}

// bindHome gives a claim a volume, as a provisioner does.
func (w *world) bindHome(name string) {
	w.t.Helper()
	w.eventually("bind "+name, func() error {
		home := &corev1.PersistentVolumeClaim{}
		if err := w.get(name, home); err != nil {
			return err
		}
		home.Status.Phase = corev1.ClaimBound
		return cluster.Client.Status().Update(w.t.Context(), home)
	})
}

func TestAHomeThatIsNotBoundIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	w.person("ada")
	person := w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonVolumePending)
	if message := person.Status.Conditions[0].Message; !strings.Contains(message, "no storage class") {
		t.Errorf("the message is %q", message)
	}
	w.bindHome("ada-home")
	w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonPodPending)
}

func TestARefusedPodIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	quota := &corev1.ResourceQuota{ObjectMeta: w.meta("none"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	w.create(quota)
	quota.Status.Hard = quota.Spec.Hard
	quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := cluster.Client.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	w.team("core")
	w.person("ada")
	person := w.personHas("ada", api.ConditionStalled, metav1.ConditionTrue, api.ReasonPodRefused)
	if message := person.Status.Conditions[0].Message; !strings.Contains(message, "exceeded quota") {
		t.Errorf("the message is %q", message)
	}
}

func TestAPatchThatBreaksARuleIsToldAndKeepsThePod(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	person := w.person("ada")
	pod := w.runningPod("ada-agent")
	w.change("ada", person, func() {
		person.Spec.Agent.Patches = []api.Patch{{Target: "Pod", Patch: "spec:\n  hostNetwork: true\n"}}
	})
	w.personHas("ada", api.ConditionStalled, metav1.ConditionTrue, api.ReasonInvalidPatch)
	same := &corev1.Pod{}
	w.mustGet("ada-agent", same)
	if same.UID != pod.UID || same.DeletionTimestamp != nil {
		t.Error("the pod did not stay")
	}
}

func TestARolloutWaitsForTheRunningRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	person := w.person("ada")
	pod := w.runningPod("ada-agent")
	w.schedule(pod, "node-1")
	w.office.showPerson(w.namespace, "ada", func(v *model.PersonView) { connected(v); v.Busy = true })
	w.change("ada", person, func() { person.Spec.Agent.Image = "other:1" })

	w.personHas("ada", api.ConditionRolloutPending, metav1.ConditionTrue, api.ReasonBetweenRounds)
	if known, err := w.office.personOf(string(person.UID)); err != nil || !known.Draining {
		t.Errorf("the office still offers (%v)", err)
	}
	same := &corev1.Pod{}
	w.mustGet("ada-agent", same)
	if same.UID != pod.UID || same.DeletionTimestamp != nil {
		t.Fatal("the pod did not wait for the round")
	}
	w.office.showPerson(w.namespace, "ada", func(v *model.PersonView) { v.Busy = false })
	w.eventually("the pod ends", func() error {
		w.mustGet("ada-agent", same)
		if same.DeletionTimestamp == nil {
			return errors.New("not yet")
		}
		return nil
	})
	w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonPodTerminating)
	if same.UID != pod.UID {
		t.Error("there was a second pod while the first one was ending")
	}
	w.confirmGone(same)
	w.eventually("the new pod", func() error {
		next := &corev1.Pod{}
		if err := w.get("ada-agent", next); err != nil {
			return err
		}
		if next.UID == pod.UID || next.Spec.Containers[0].Image != "other:1" {
			return fmt.Errorf("it is %s with %s", next.UID, next.Spec.Containers[0].Image)
		}
		return nil
	})
	w.personHas("ada", api.ConditionRolloutPending, "", "")
	w.eventually("the office offers again", func() error {
		known, err := w.office.personOf(string(person.UID))
		if err == nil && known.Draining {
			err = errors.New("still draining")
		}
		return err
	})
}

func TestARolloutWaitsNoLongerThanMaxWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core", func(team *api.Team) {
		team.Spec.Policies.Rollout.MaxWait = &metav1.Duration{Duration: 10 * time.Minute}
	})
	person := w.person("ada")
	pod := w.runningPod("ada-agent")
	w.office.showPerson(w.namespace, "ada", func(v *model.PersonView) { connected(v); v.Busy = true })
	w.change("ada", person, func() { person.Spec.Agent.Model = "other" })
	w.personHas("ada", api.ConditionRolloutPending, metav1.ConditionTrue, api.ReasonBetweenRounds)
	w.clock.advance(11 * time.Minute)
	w.office.showPerson(w.namespace, "ada", func(*model.PersonView) {})
	w.eventually("another pod", func() error {
		next := &corev1.Pod{}
		if err := w.get("ada-agent", next); err != nil {
			return err
		}
		if next.UID == pod.UID {
			return errors.New("the old one is still there")
		}
		return nil
	})
}

// TestARolloutSeesAnOfferThatLeftAtTheLastMoment has the office offer a round in the very moment in which it is told to drain.
func TestARolloutSeesAnOfferThatLeftAtTheLastMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	person := w.person("ada")
	pod := w.runningPod("ada-agent")
	w.office.showPerson(w.namespace, "ada", connected)
	w.personHas("ada", api.ConditionReady, metav1.ConditionTrue, api.ReasonReady)
	key := model.PersonKey{Team: model.TeamKey{Namespace: w.namespace, Name: "core"}, Handle: "ada"}
	w.office.with(func() {
		w.office.onSyncPerson = func(p model.Person) {
			if p.Draining {
				w.office.with(func() {
					w.office.persons[key] = model.PersonView{Connected: true, State: model.PersonWorking, Busy: true}
				})
			}
		}
	})
	w.change("ada", person, func() { person.Spec.Agent.Image = "other:1" })
	w.personHas("ada", api.ConditionRolloutPending, metav1.ConditionTrue, api.ReasonBetweenRounds)
	same := &corev1.Pod{}
	w.mustGet("ada-agent", same)
	if same.UID != pod.UID {
		t.Error("the pod was replaced in the middle of a round")
	}
}

func TestATerminatingPodOnALostNodeIsNeverForcedAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	w.person("ada")
	pod := w.runningPod("ada-agent")
	w.schedule(pod, "node-1")
	w.delete(pod)
	w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonPodTerminating)
	w.clock.advance(10 * time.Minute)
	w.office.showPerson(w.namespace, "ada", connected)
	person := w.personHas("ada", api.ConditionStalled, metav1.ConditionTrue, api.ReasonNodeLost)
	if message := person.Status.Conditions[0].Message; !strings.Contains(message, "node-1") {
		t.Errorf("the message is %q", message)
	}
	w.mustGet("ada-agent", pod)
}

func TestAnEvictedPodIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	w.person("ada")
	pod := w.runningPod("ada-agent")
	w.clock.advance(time.Minute)
	w.changePod("ada-agent", func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
	})
	w.eventually("another pod", func() error {
		next := &corev1.Pod{}
		if err := w.get("ada-agent", next); err != nil {
			return err
		}
		if next.UID == pod.UID {
			return errors.New("the old one is still there")
		}
		return nil
	})
}

func TestWithoutATeamAPersonKeepsItsPodAndWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("bob")
	w.personHas("bob", api.ConditionReady, metav1.ConditionFalse, api.ReasonTeamNotFound)
	team := w.team("core", func(team *api.Team) { team.Spec.Agent.Image = "team:1" })
	pod := w.runningPod("bob-agent")
	w.personHas("bob", api.ConditionReady, metav1.ConditionFalse, api.ReasonAgentOffline)
	w.delete(team)
	w.personHas("bob", api.ConditionReady, metav1.ConditionFalse, api.ReasonTeamNotFound)
	same := &corev1.Pod{}
	w.mustGet("bob-agent", same)
	if same.UID != pod.UID || same.DeletionTimestamp != nil {
		t.Error("the pod did not stay")
	}
	w.eventually("the office forgets the team", func() error {
		if w.office.count("ForgetTeam core") == 0 {
			return errors.New("it does not")
		}
		return nil
	})
}

func TestAHomeOutlivesItsPersonAndIsTakenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	first := w.person("ada")
	w.runningPod("ada-agent")
	home := &corev1.PersistentVolumeClaim{}
	w.mustGet("ada-home", home)
	w.delete(first)
	w.eventually("the office forgets the person", func() error {
		if w.office.count("ForgetPerson %s", first.UID) == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	second := w.person("ada")
	w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonPodTerminating)
	// The garbage collector's part.
	for _, object := range []client.Object{
		&corev1.Pod{ObjectMeta: w.meta("ada-agent")}, &corev1.Secret{ObjectMeta: w.meta("ada-agent")},
		&corev1.ServiceAccount{ObjectMeta: w.meta("ada-agent")},
	} {
		w.delete(object, client.GracePeriodSeconds(0))
	}
	pod := &corev1.Pod{}
	w.eventually("the second person's pod", func() error {
		if err := w.get("ada-agent", pod); err != nil {
			return err
		}
		if !metav1.IsControlledBy(pod, second) {
			return errors.New("it is the first one's")
		}
		return nil
	})
	same := &corev1.PersistentVolumeClaim{}
	w.mustGet("ada-home", same)
	if same.UID != home.UID {
		t.Error("the home is another one")
	}

	w.change("ada", second, func() { second.Spec.Agent.Home = &api.HomeSettings{Retention: api.DeleteHome} })
	w.eventually("the home goes with its person", func() error {
		w.mustGet("ada-home", same)
		if !metav1.IsControlledBy(same, second) {
			return errors.New("it has no owner")
		}
		return nil
	})
	w.change("ada", second, func() { second.Spec.Agent.Home = nil })
	w.eventually("the home stays again", func() error {
		w.mustGet("ada-home", same)
		if len(same.OwnerReferences) > 0 {
			return errors.New("it has an owner")
		}
		return nil
	})
}

func TestStatusOfAPersonIsWrittenOnceASecondAtMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	w.person("ada")
	w.runningPod("ada-agent")
	w.personHas("ada", api.ConditionReady, metav1.ConditionFalse, api.ReasonAgentOffline)
	before, start := w.writes("people/status"), time.Now()
	for i := range 200 {
		w.office.showPerson(w.namespace, "ada", func(v *model.PersonView) { connected(v); v.Queued = i + 1 })
		time.Sleep(10 * time.Millisecond)
	}
	w.eventually("the last count", func() error {
		person := &api.Person{}
		w.mustGet("ada", person)
		if person.Status.Queued != 200 {
			return fmt.Errorf("it shows %d", person.Status.Queued)
		}
		return nil
	})
	seconds := int(time.Since(start)/time.Second) + 2
	if writes := w.writes("people/status") - before; writes > seconds {
		t.Errorf("200 changes in less than %d seconds cost %d writes", seconds, writes)
	}
}

func TestARestartWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core", func(team *api.Team) {
		team.Spec.Agent.Patches = []api.Patch{{Target: "Pod", Patch: "metadata:\n  labels:\n    a: b\n"}}
	})
	for _, name := range []string{"ada", "bob"} {
		w.person(name)
		w.runningPod(name + "-agent")
		w.office.showPerson(w.namespace, name, connected)
		w.personHas(name, api.ConditionReady, metav1.ConditionTrue, api.ReasonReady)
	}
	item := w.item("one")
	w.itemHas("one", func(i *api.WorkItem) error {
		return has(i.Status.Conditions, api.ConditionReady, metav1.ConditionTrue, api.ReasonAccepted)
	})
	w.eventually("the team counts its people", func() error {
		team := &api.Team{}
		w.mustGet("core", team)
		if team.Status.People.Idle != 2 {
			return fmt.Errorf("it counts %+v", team.Status.People)
		}
		return nil
	})
	w.stop()
	before := w.allWrites()
	w.office.with(func() { w.office.calls = map[string]int{} })
	w.start()
	w.eventually("everything was looked at", func() error {
		for _, call := range []string{"SyncTeam core", "SyncPerson ada", "SyncPerson bob", "SyncItem " + item.Name} {
			if w.office.count("%s", call) == 0 {
				return errors.New(call + " is missing")
			}
		}
		return nil
	})
	w.stop()
	if diff := cmp.Diff(before, w.allWrites()); diff != "" {
		t.Errorf("the restart wrote:\n%s", diff)
	}
}
