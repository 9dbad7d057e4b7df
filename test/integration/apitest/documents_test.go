package apitest_test

// This file tests the documentation: its examples apply, its tables name every field, default and reason, and nothing else.

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pages are the pages of the kinds.
var pages = map[string]string{"Team": "docs/teams.md", "Person": "docs/people.md", "WorkItem": "docs/workitems.md"}

// example is one YAML document of a file.
type example struct {
	name   string
	object *unstructured.Unstructured
}

func TestExamplesOfTheDocumentationApply(t *testing.T) {
	files := []string{filepath.Join(cluster.Root, "README.md")}
	more, err := filepath.Glob(filepath.Join(cluster.Root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a page that is not written yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range fencedYAML(string(text)) {
			for _, e := range examples(t, fmt.Sprintf("%s block %d", filepath.Base(file), i+1), block) {
				if e.object.GroupVersionKind().Group != "bullpen.dev" {
					continue // settings of other programs
				}
				kinds[e.object.GetKind()]++
				applies(t, e)
			}
		}
	}
	for kind, page := range pages {
		if kinds[kind] < 2 {
			t.Errorf("%s has not a small and a full example of a %s", page, kind)
		}
	}
}

func TestSamplesApply(t *testing.T) {
	found := 0
	err := filepath.WalkDir(filepath.Join(cluster.Root, "config", "samples"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || entry.Name() == "kustomization.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, e := range examples(t, entry.Name(), string(text)) {
			found++
			applies(t, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 3 {
		t.Errorf("there are only %d samples", found)
	}
}

// applies applies an example the way kubectl does, in a namespace of its own.
func applies(t *testing.T, e example) {
	t.Run(fmt.Sprintf("%s: %s %s", e.name, e.object.GetKind(), e.object.GetName()), func(t *testing.T) {
		mapping, err := cluster.Client.RESTMapper().RESTMapping(e.object.GroupVersionKind().GroupKind(), e.object.GroupVersionKind().Version)
		if err != nil {
			t.Fatalf("%s %s is not served: %v", e.object.GetAPIVersion(), e.object.GetKind(), err)
		}
		if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
			e.object.SetNamespace(cluster.Namespace(t))
		}
		err = strict().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(e.object), client.FieldOwner("kubectl"))
		if err != nil {
			t.Error(err)
		}
	})
}

// fencedYAML gives the contents of the blocks that begin with ```yaml.
func fencedYAML(markdown string) (blocks []string) {
	for _, match := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(markdown, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// examples gives the documents of a text that are manifests.
func examples(t *testing.T, name, text string) (list []example) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%s is no YAML: %v", name, err)
		}
		if object.GetAPIVersion() != "" && object.GetKind() != "" {
			list = append(list, example{name, object})
		}
	}
}

// firstCells gives the code that begins each table row of a page, and the row.
func firstCells(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Root, page))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)`.*$").FindAllStringSubmatch(string(text), -1) {
		rows[match[1]] = match[0]
	}
	return rows
}

func TestEveryFieldIsDocumentedAndNoOther(t *testing.T) {
	for _, crd := range crds(t) {
		kind := crd.Spec.Names.Kind
		rows := firstCells(t, pages[kind])
		fields := map[string]*apiextensionsv1.JSONSchemaProps{}
		walk("", schemaOf(t, crd), func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if strings.HasPrefix(path, ".spec.") {
				fields[path[1:]] = schema
			}
		})
		for path, schema := range fields {
			leaf := len(schema.Properties) == 0 && (schema.Items == nil || len(schema.Items.Schema.Properties) == 0)
			if leaf && !covered(rows, path) {
				t.Errorf("%s does not document %s", pages[kind], path)
			}
			row, documented := rows[path]
			if documented && schema.Default != nil && !strings.Contains(row, strings.Trim(string(schema.Default.Raw), `"`)) {
				t.Errorf("%s does not say that the default of %s is %s", pages[kind], path, schema.Default.Raw)
			}
		}
		for path := range rows {
			if _, known := fields[path]; strings.HasPrefix(path, "spec.") && !known {
				t.Errorf("%s documents %s, which does not exist", pages[kind], path)
			}
		}
	}
}

// covered says whether a row is about the field, or about one that holds it.
func covered(rows map[string]string, path string) bool {
	for row := range rows {
		if rest, found := strings.CutPrefix(path, row); found && (rest == "" || strings.ContainsAny(rest[:1], ".[{")) {
			return true
		}
	}
	return false
}

// The reasons are what users search for. Each stands in a table with what to do.
func TestEveryReasonIsDocumentedAndNoOther(t *testing.T) {
	var documented []string
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(cluster.Root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile("(?m)^\\| `[A-Z][^|]*\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(string(text), -1) {
			documented = append(documented, match[1])
		}
	}
	constants := reasons(t)
	if len(constants) < 30 {
		t.Fatalf("only %d reasons were found in the API", len(constants))
	}
	for _, reason := range constants {
		if !slices.Contains(documented, reason) {
			t.Errorf("the reason %s is on no page", reason)
		}
	}
	for _, reason := range documented {
		if !slices.Contains(constants, reason) {
			t.Errorf("the reason %s is documented, but no constant of the API", reason)
		}
	}
}

// reasons reads the values of the API's constants whose names begin with Reason.
func reasons(t *testing.T) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(cluster.Root, "api", "v1alpha1", "conditions.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			values = append(values, strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`))
		}
		return true
	})
	return values
}
