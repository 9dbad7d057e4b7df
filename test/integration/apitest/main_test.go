// Package apitest_test proves on a real API server what the API promises: what is refused and with which sentence, what is
// defaulted, what never changes, how appliers share an object, and that every example of the documentation applies.
package apitest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/test/integration/env"
)

var cluster *env.Env

func TestMain(m *testing.M) { env.Main(m, &cluster) }

// strict is a client that validates fields strictly, as kubectl does.
func strict() client.Client {
	return client.WithFieldValidation(cluster.Client, metav1.FieldValidationStrict)
}

// bases are right manifests, the smallest of their kind. Test cases lay their own fields over them.
var bases = map[string]string{
	"Team":     `metadata: {name: core}`,
	"Person":   `{metadata: {name: ada}, spec: {team: core}}`,
	"WorkItem": `{metadata: {name: fix-login}, spec: {team: core, person: ada, title: Fix the login}}`,
}

// manifest is the base of a kind with the fields of over laid over it; null takes a field away.
func manifest(t *testing.T, kind, over string) *unstructured.Unstructured {
	t.Helper()
	object := parse(t, bases[kind])
	overlay(object, parse(t, over))
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
	return u
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("the test's own YAML is wrong: %v\n%s", err, text)
	}
	return object
}

func overlay(base, over map[string]any) {
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		below, hasMap := base[key].(map[string]any)
		switch {
		case value == nil:
			delete(base, key)
		case isMap && hasMap:
			overlay(below, inner)
		default:
			base[key] = value
		}
	}
}

// checkRefusal wants an error with a cause at the field that contains the sentence.
func checkRefusal(t *testing.T, err error, field, sentence string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it was accepted, not refused with %s: %q", field, sentence)
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("it was refused for another reason than its content: %v", err)
	}
	var got []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Field == field && strings.Contains(cause.Message, sentence) {
				return
			}
			got = append(got, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
		}
	}
	t.Errorf("the refusal does not say %q at %s, but\n  %s", sentence, field, strings.Join(got, "\n  "))
}
