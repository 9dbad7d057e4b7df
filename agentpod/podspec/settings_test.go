package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

func ptr[T any](v T) *T { return &v }

func TestSettings(t *testing.T) {
	memory := func(size string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}}
	}
	tests := map[string]struct {
		team, person api.AgentSettings
		// pick shows the part that the case is about.
		pick func(api.AgentSettings) any
		want any
	}{
		"without a runtime, any program is run": {
			pick: func(s api.AgentSettings) any { return s.Runtime }, want: api.RuntimeCommand,
		},
		"a home has a size, a mode and stays": {
			pick: func(s api.AgentSettings) any {
				return []any{s.Home.Size.String(), s.Home.AccessMode, s.Home.Retention}
			},
			want: []any{"10Gi", corev1.ReadWriteOncePod, api.RetainHome},
		},
		"the person's image wins": {
			team: api.AgentSettings{Image: "team:1", Model: "m"}, person: api.AgentSettings{Image: "own:1"},
			pick: func(s api.AgentSettings) any { return []string{s.Image, s.Model} }, want: []string{"own:1", "m"},
		},
		"the home is joined field by field": {
			team:   api.AgentSettings{Home: &api.HomeSettings{Size: ptr(resource.MustParse("5Gi")), StorageClassName: ptr("fast")}},
			person: api.AgentSettings{Home: &api.HomeSettings{Retention: api.DeleteHome}},
			pick: func(s api.AgentSettings) any {
				return []any{s.Home.Size.String(), *s.Home.StorageClassName, s.Home.Retention}
			},
			want: []any{"5Gi", "fast", api.DeleteHome},
		},
		"resources are replaced as a whole, so that requests and limits fit each other": {
			team: api.AgentSettings{Resources: memory("1Gi")}, person: api.AgentSettings{Resources: memory("3Gi")},
			pick: func(s api.AgentSettings) any { return s.Resources.Requests.Memory().String() }, want: "3Gi",
		},
		"variables are joined by name, in the team's order": {
			team:   api.AgentSettings{Env: []api.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "1"}}},
			person: api.AgentSettings{Env: []api.EnvVar{{Name: "C", Value: "2"}, {Name: "A", Value: "2"}}},
			pick:   func(s api.AgentSettings) any { return s.Env },
			want:   []api.EnvVar{{Name: "A", Value: "2"}, {Name: "B", Value: "1"}, {Name: "C", Value: "2"}},
		},
		"secrets are joined by name": {
			team:   api.AgentSettings{Secrets: []api.SecretUse{{Name: "git", EnvPrefix: "GIT_"}}},
			person: api.AgentSettings{Secrets: []api.SecretUse{{Name: "git", MountPath: "/git"}}},
			pick:   func(s api.AgentSettings) any { return s.Secrets },
			want:   []api.SecretUse{{Name: "git", MountPath: "/git"}},
		},
		"a command is replaced as a whole": {
			team: api.AgentSettings{Command: []string{"a", "b"}}, person: api.AgentSettings{Command: []string{"c"}},
			pick: func(s api.AgentSettings) any { return s.Command }, want: []string{"c"},
		},
		"node selectors are joined": {
			team:   api.AgentSettings{NodeSelector: map[string]string{"a": "1", "b": "1"}},
			person: api.AgentSettings{NodeSelector: map[string]string{"b": "2"}},
			pick:   func(s api.AgentSettings) any { return s.NodeSelector },
			want:   map[string]string{"a": "1", "b": "2"},
		},
		"hooks are joined one by one": {
			team:   api.AgentSettings{Hooks: &api.EnvironmentHooks{BuildBase: "team", BeforeStart: "team", OnAct: "team", OnReport: "team"}},
			person: api.AgentSettings{Hooks: &api.EnvironmentHooks{BeforeStart: "own", OnReport: "own"}},
			pick:   func(s api.AgentSettings) any { return s.Hooks },
			want:   &api.EnvironmentHooks{BuildBase: "team", BeforeStart: "own", OnAct: "team", OnReport: "own"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			team, person := test.team.DeepCopy(), test.person.DeepCopy()
			if diff := cmp.Diff(test.want, test.pick(podspec.Settings(test.team, test.person))); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if diff := cmp.Diff(*team, test.team) + cmp.Diff(*person, test.person); diff != "" {
				t.Errorf("the arguments were changed:\n%s", diff)
			}
		})
	}
}
