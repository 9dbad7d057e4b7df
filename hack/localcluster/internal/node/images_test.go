package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImagesFind(t *testing.T) {
	images := Images{"agent": "/a", "agent:v2": "/a2", "registry:5000/team/tool": "/t", "exact:latest": "/e"}
	for name, test := range map[string]struct{ ref, want string }{
		"a reference without a tag stands for any tag":        {"agent:v1", "/a"},
		"a reference with the tag comes first":                {"agent:v2", "/a2"},
		"a digest is looked up by its name":                   {"agent@sha256:0123", "/a"},
		"a tag and a digest are looked up by the name":        {"agent:v1@sha256:0123", "/a"},
		"a port of the registry is no tag":                    {"registry:5000/team/tool", "/t"},
		"a tag after a registry with a port is one":           {"registry:5000/team/tool:v1", "/t"},
		"without a tag, latest is meant":                      {"exact", "/e"},
		"another tag than the one that was given is unknown":  {"exact:v1", ""},
		"a name that was not given is unknown":                {"other", ""},
		"a name that only begins like a given one is unknown": {"agents:v1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := images.find(test.ref); got != test.want {
				t.Errorf("find(%q) = %q, want %q", test.ref, got, test.want)
			}
		})
	}
}

func TestParseImages(t *testing.T) {
	got, err := ParseImages([]string{"agent=/img", "a/b:c=/other=x"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Images{"agent": "/img", "a/b:c": "/other=x"}, got); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"agent", "=dir", "agent="} {
		if _, err := ParseImages([]string{bad}); err == nil {
			t.Errorf("ParseImages(%q) succeeded, want an error", bad)
		}
	}
}

func TestEntrypoint(t *testing.T) {
	for name, test := range map[string]struct {
		file    string
		want    []string
		wantErr bool
	}{
		"an array is the command":           {file: `["/bin/agent","run"]`, want: []string{"/bin/agent", "run"}},
		"no file is no command":             {},
		"anything but an array is an error": {file: `"/bin/agent"`, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			image := t.TempDir()
			if test.file != "" {
				if err := os.WriteFile(filepath.Join(image, entrypointFile), []byte(test.file), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := entrypoint(image)
			if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.wantErr {
				t.Errorf("entrypoint: error %v, want one: %t; command (-want +got):\n%s", err, test.wantErr, diff)
			}
		})
	}
}
