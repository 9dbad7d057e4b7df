package apitest_test

// This file tests the shape of the API: everything is bounded, lists say how they merge, and everything is described.

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// foreign are schemas of Kubernetes' own types, which bring their own bounds, descriptions and list types, or none.
func foreign(path string) bool {
	for _, own := range []string{".spec.agent.resources.", ".spec.agent.tolerations[]", ".status.conditions[]", ".metadata", ".apiVersion", ".kind"} {
		if strings.HasPrefix(path, own) {
			return true
		}
	}
	return false
}

func TestTheSchemasFollowTheRulesOfTheAPI(t *testing.T) {
	for _, crd := range crds(t) {
		walk("", schemaOf(t, crd), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if foreign(path) {
				return
			}
			for _, problem := range problems(path, schema) {
				t.Errorf("%s%s %s", crd.Spec.Names.Kind, path, problem)
			}
		})
	}
}

func problems(path string, schema *apiextensionsv1.JSONSchemaProps) (found []string) {
	is := func(wrong bool, problem string) {
		if wrong {
			found = append(found, problem)
		}
	}
	bounded := schema.MaxLength != nil || len(schema.Enum) > 0 || schema.Format == "date-time"
	element := strings.HasSuffix(path, "[]") || strings.HasSuffix(path, "{}")
	// The bounds of a map's values are in a rule of the map, because its values are plain strings.
	mapValue := strings.HasSuffix(path, "{}")

	is(schema.Type == "string" && !bounded && !mapValue, "is a string without a maxLength")
	is(schema.Type == "number", "is a floating-point number")
	is(schema.Type == "array" && schema.MaxItems == nil, "is a list without maxItems")
	is(schema.Type == "array" && schema.XListType == nil, "is a list that does not say how it merges")
	is(schema.AdditionalProperties != nil && schema.MaxProperties == nil, "is a map without maxProperties")
	is(schema.AdditionalProperties != nil && len(schema.XValidations) == 0, "is a map without a rule that bounds its keys and values")
	is(schema.XPreserveUnknownFields != nil, "keeps unknown fields")
	is(schema.Pattern != "", "has a pattern, which refuses without a sentence: use a rule")
	is(schema.Description == "" && !element, "has no description")
	return found
}

func TestTheKindsAreServedAsTheDocumentationSays(t *testing.T) {
	for _, crd := range crds(t) {
		version, names := crd.Spec.Versions[0], crd.Spec.Names
		if version.Name != "v1alpha1" || !version.Served || !version.Storage {
			t.Errorf("%s: version %s is not the one that is served and stored", crd.Name, version.Name)
		}
		if crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			t.Errorf("%s is not namespaced", crd.Name)
		}
		if len(names.Categories) != 1 || names.Categories[0] != "bullpen" {
			t.Errorf("%s is in the categories %v, not in bullpen alone", crd.Name, names.Categories)
		}
		if version.Subresources == nil || version.Subresources.Status == nil {
			t.Errorf("%s has no status subresource", crd.Name)
		}
	}
}
