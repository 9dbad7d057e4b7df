package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objects are sources held in memory, by name.
type objects struct {
	secrets    map[string]map[string][]byte
	configMaps map[string]map[string]string
}

func (o objects) secret(_, name string) (*corev1.Secret, error) {
	data, ok := o.secrets[name]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
	}
	return &corev1.Secret{Data: data}, nil
}

func (o objects) configMap(_, name string) (*corev1.ConfigMap, error) {
	data, ok := o.configMaps[name]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("configmap"), name)
	}
	return &corev1.ConfigMap{Data: data}, nil
}

func ref(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func fromSecret(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref(name), Key: key, Optional: &optional}}
}

func fromConfigMap(name, key string, optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref(name), Key: key, Optional: &optional}}
}

func fromField(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func TestEnvironment(t *testing.T) {
	yes := true
	for name, test := range map[string]struct {
		from    []corev1.EnvFromSource
		env     []corev1.EnvVar
		want    map[string]string
		wantErr string
	}{
		"a value refers to variables before it": {
			env:  []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)$(C)"}, {Name: "C", Value: "3"}},
			want: map[string]string{"A": "1", "B": "1$(C)", "C": "3"},
		},
		"two dollars are one": {
			env:  []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$$(A)"}},
			want: map[string]string{"A": "1", "B": "$(A)"},
		},
		"a value refers to the variables that any container gets": {
			env:  []corev1.EnvVar{{Name: "URL", Value: "https://$(HOST)"}},
			want: map[string]string{"URL": "https://127.0.0.1"},
		},
		"the pod's own variable hides one that any container gets": {
			env:  []corev1.EnvVar{{Name: "HOST", Value: "mine"}},
			want: map[string]string{"HOST": "mine"},
		},
		"a key of a secret and one of a config map": {
			env:  []corev1.EnvVar{{Name: "A", ValueFrom: fromSecret("s", "token", false)}, {Name: "B", ValueFrom: fromConfigMap("c", "level", false)}},
			want: map[string]string{"A": "t0", "B": "high"},
		},
		"all keys of both, with a prefix, and env after them": {
			from: []corev1.EnvFromSource{
				{Prefix: "S_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("s")}},
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("c")}},
			},
			env:  []corev1.EnvVar{{Name: "level", Value: "$(S_token)"}},
			want: map[string]string{"S_token": "t0", "level": "t0"},
		},
		"fields and resources of the pod": {
			env: []corev1.EnvVar{
				{Name: "NAME", ValueFrom: fromField("metadata.name")},
				{Name: "LABEL", ValueFrom: fromField("metadata.labels['app']")},
				{Name: "IP", ValueFrom: fromField("status.podIP")},
				{Name: "NODE", ValueFrom: fromField("spec.nodeName")},
				{Name: "MEMORY", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}}},
			},
			want: map[string]string{"NAME": "ada-agent", "LABEL": "agent", "IP": "127.0.0.1", "NODE": "here", "MEMORY": "64"},
		},
		"what is optional and not there is left out": {
			from: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("nope"), Optional: &yes}}},
			env: []corev1.EnvVar{
				{Name: "A", ValueFrom: fromSecret("nope", "token", true)}, {Name: "B", ValueFrom: fromSecret("s", "nope", true)},
				{Name: "C", ValueFrom: fromConfigMap("nope", "level", true)},
			},
			want: map[string]string{},
		},
		"a secret that is not there": {
			env:     []corev1.EnvVar{{Name: "A", ValueFrom: fromSecret("nope", "token", false)}},
			wantErr: `secret "nope" not found`,
		},
		"a config map that is not there": {
			from:    []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("nope")}}},
			wantErr: `configmap "nope" not found`,
		},
		"a key that is not in the secret": {
			env:     []corev1.EnvVar{{Name: "A", ValueFrom: fromSecret("s", "nope", false)}},
			wantErr: "couldn't find key nope in Secret team/s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			container := &corev1.Container{
				Name: "agent", EnvFrom: test.from, Env: test.env,
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
			}
			got, err := environ{
				pod: &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "ada-agent", Labels: map[string]string{"app": "agent"}},
					Spec:       corev1.PodSpec{NodeName: "here", Containers: []corev1.Container{*container}},
				},
				container: container,
				sources: objects{
					secrets:    map[string]map[string][]byte{"s": {"token": []byte("t0")}},
					configMaps: map[string]map[string]string{"c": {"level": "high"}},
				},
				services: map[string]string{"HOST": "127.0.0.1"},
			}.resolve()
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if test.want["HOST"] == "" {
				test.want["HOST"] = "127.0.0.1"
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProcessEnvTranslatesTheValuesOfThePodOnly(t *testing.T) {
	paths := newTranslator("", []mount{{"/home/agent", "/state/home"}})
	got := processEnv(
		map[string]string{"HOME": "/state/pods/1/home", "GOCACHE": "/home/agent/.cache"},
		map[string]string{"HOME": "/home/agent", "FILE": "/home/agent/x"}, paths)
	want := []string{"FILE=/state/home/x", "GOCACHE=/home/agent/.cache", "HOME=/state/home"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
