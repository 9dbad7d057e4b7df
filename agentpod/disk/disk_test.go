package disk_test

// This file tests that files are replaced whole or not at all, and that everything can be removed.

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
)

func content(path string) string {
	data, _ := os.ReadFile(path) // none of what is not there
	return string(data)
}

func TestAFileIsReplacedOrLeftAsItIs(t *testing.T) {
	for name, write := range map[string]func(string, []byte) error{"Write": disk.Write, "Swap": disk.Swap} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			for _, text := range []string{"one", "two"} {
				if err := write(path, []byte(text)); err != nil || content(path) != text {
					t.Errorf("%q, %v", content(path), err)
				}
			}
			if err := os.Mkdir(filepath.Join(filepath.Dir(path), disk.TmpPrefix+"f"), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := write(path, []byte("three")); err == nil || content(path) != "two" {
				t.Errorf("a failed write left %q, %v", content(path), err)
			}
		})
	}
}

func TestNothingIsRemovedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), disk.Remove(path), disk.Remove(path)); err != nil {
		t.Error(err)
	}
}

func TestRemoveTreeRemovesWhatMayNotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a/b/file"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"a/b", "a"} {
		if err := os.Chmod(filepath.Join(dir, p), 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.RemoveTree(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}
