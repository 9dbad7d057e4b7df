// Package docs holds the project's pages to what is there: links lead somewhere, commands exist. The YAML in them is applied to a real
// API server by test/integration/apitest.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	link       = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)
	makeTarget = regexp.MustCompile("(?m)(?:^|[`(])make ([a-z][a-z0-9-]*)")
	rule       = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	room       = regexp.MustCompile("(?m)^\\| `([a-z][a-z0-9/]*)`")
)

// pages gives every page by its path from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found[strings.TrimPrefix(path, root+"/")] = string(text)
		}
	}
	if len(found) < 8 {
		t.Fatalf("only %d pages were found; is the test in its place?", len(found))
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

func TestMakeTargetsThatAreNamedExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range rule.FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
	}
	for page, text := range pages(t) {
		for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s names make %s, which the Makefile does not have", page, m[1])
			}
		}
	}
}

func TestTheMapOfTheArchitectureNamesFoldersThatExist(t *testing.T) {
	text := pages(t)["docs/architecture.md"]
	rooms := room.FindAllStringSubmatch(text, -1)
	if len(rooms) < 10 {
		t.Fatalf("the map has only %d rooms", len(rooms))
	}
	for _, m := range rooms {
		if info, err := os.Stat(filepath.Join(root, m[1])); err != nil || !info.IsDir() {
			t.Errorf("the map names %s, which is no folder", m[1])
		}
	}
}
