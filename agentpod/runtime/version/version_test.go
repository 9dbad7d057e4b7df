package version_test

// This file tests what is a version, and which of two is older.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime/version"
)

func TestVersionsAreReadAndCompared(t *testing.T) {
	var list []version.Version
	for _, text := range []string{"0.160.0", "0.160.1", "0.171.0", "1.0.0"} {
		v, ok := version.Parse(text)
		if !ok || v.String() != text {
			t.Errorf("%q is %v, %t", text, v, ok)
		}
		list = append(list, v)
	}
	if !slices.IsSortedFunc(list, func(a, b version.Version) int {
		switch {
		case a.Before(b):
			return -1
		case b.Before(a):
			return 1
		}
		return 0
	}) {
		t.Error("versions are out of order")
	}
	for _, text := range []string{"", "1", "1.2", "1.2.3.4", "1.2.x", "1.-2.3", "v1.2.3"} {
		if v, ok := version.Parse(text); ok {
			t.Errorf("%q is taken for %s", text, v)
		}
	}
}

func TestAProgramSaysItsVersionInTime(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	write := func(script string) {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	write(`echo "$1 of $NAME"`)
	if said, err := version.Said(t.Context(), program, []string{"NAME=it"}, time.Minute); err != nil || strings.TrimSpace(said) != "--version of it" {
		t.Errorf("%q, %v", said, err)
	}
	write("exec sleep 60")
	if said, err := version.Said(t.Context(), program, os.Environ(), 20*time.Millisecond); err == nil {
		t.Errorf("a program that says nothing said %q", said)
	}
}
