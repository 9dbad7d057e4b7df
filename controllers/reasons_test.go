package controllers

// This file holds the office's reasons to the API's: the same words, declared where users look for them.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func TestEveryReasonOfTheOfficeIsDeclaredInTheAPI(t *testing.T) {
	declared := reasonsIn(t, "../api/v1alpha1/conditions.go")
	reasons := reasonsIn(t, "../office/model/reasons.go")
	if len(reasons) < 10 {
		t.Fatalf("only %d reasons were found", len(reasons))
	}
	for name, value := range reasons {
		if declared[name] != value {
			t.Errorf("model.%s is %s, the API has %q", name, value, declared[name])
		}
	}
}

// reasonsIn reads the constants of a file whose names begin with Reason.
func reasonsIn(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			found[spec.Names[0].Name] = spec.Values[0].(*ast.BasicLit).Value
		}
		return true
	})
	return found
}
