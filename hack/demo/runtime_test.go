package main

// This file tests what thinks in the demo.

import (
	"errors"
	"maps"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheDemoThinksWithWhatThereIs(t *testing.T) {
	for name, test := range map[string]struct {
		env      map[string]string
		programs []string
		want     string
		passed   map[string]string
	}{
		"nothing":                    {},
		"a key without the program":  {env: map[string]string{"ANTHROPIC_API_KEY": "k"}},
		"a program without a key":    {programs: []string{"claude", "codex"}},
		"Claude Code with its key":   {map[string]string{"ANTHROPIC_API_KEY": "k"}, []string{"claude"}, "claude", map[string]string{"ANTHROPIC_API_KEY": "k"}},
		"Codex with its key":         {map[string]string{"OPENAI_API_KEY": "o"}, []string{"claude", "codex"}, "codex", map[string]string{"OPENAI_API_KEY": "o"}},
		"both, and another endpoint": {map[string]string{"OPENAI_API_KEY": "o", "CLAUDE_CODE_OAUTH_TOKEN": "c", "ANTHROPIC_BASE_URL": "u"}, []string{"claude", "codex"}, "claude", map[string]string{"CLAUDE_CODE_OAUTH_TOKEN": "c", "ANTHROPIC_BASE_URL": "u"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, env, ok := choose(func(n string) string { return test.env[n] }, func(program string) (string, error) {
				for _, p := range test.programs {
					if p == program {
						return "/bin/" + p, nil
					}
				}
				return "", errors.New("not found")
			})
			if got.runtime != test.want || ok != (test.want != "") || !maps.Equal(env, test.passed) {
				t.Errorf("%q thinks with %v", got.runtime, env)
			}
		})
	}
}

func TestTheTeamOfAModelHasItsKeysInASecretOnly(t *testing.T) {
	file, err := os.Open("../../config/samples/demo/team.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	objects, err := readObjects(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := withModel(objects, thinkers[0], map[string]string{"ANTHROPIC_API_KEY": "very-secret"}, "/srv/greeter.git")
	if err != nil || len(got) != len(objects)+1 {
		t.Fatalf("%d objects became %d: %v", len(objects), len(got), err)
	}
	for i, o := range got {
		switch o.GetKind() {
		case "Secret":
			if v, _, _ := unstructured.NestedString(o.Object, "stringData", "ANTHROPIC_API_KEY"); v != "very-secret" || got[i+1].GetKind() != "Team" {
				t.Errorf("the secret is %v, before %s", o.Object, got[i+1].GetKind())
			}
		case "Team":
			runtime, _, _ := unstructured.NestedString(o.Object, "spec", "agent", "runtime")
			_, command, _ := unstructured.NestedSlice(o.Object, "spec", "agent", "command")
			if runtime != "claude" || command {
				t.Errorf("the team runs %s, with a command: %v", runtime, command)
			}
		}
	}
}
