package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func TestLdflagsSetTheVersionThatClientsSee(t *testing.T) {
	got := ldflags("v1.37.2")
	for _, want := range []string{"version.gitVersion=v1.37.2", "version.gitMajor=1", "version.gitMinor=37"} {
		if !strings.Contains(got, want) {
			t.Errorf("ldflags %q lack %s", got, want)
		}
	}
}

func TestPinned(t *testing.T) {
	for name, test := range map[string]struct {
		mod     string
		wantErr bool
	}{
		"both modules are required": {mod: "module m\nrequire (\n\tk8s.io/kubernetes v1.2.3\n\tgo.etcd.io/etcd/server/v3 v3.4.5 // indirect\n)\n"},
		"one is missing":            {mod: "module m\nrequire k8s.io/kubernetes v1.2.3\n", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			versions, err := pinned(fstest.MapFS{"go.mod": {Data: []byte(test.mod)}})
			if (err != nil) != test.wantErr {
				t.Fatalf("pinned: %v, want an error: %t", err, test.wantErr)
			}
			if err == nil && (versions[kubernetesModule] != "v1.2.3" || versions[etcdModule] != "v3.4.5") {
				t.Errorf("versions %v", versions)
			}
		})
	}
}

func TestInPlace(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/assets/etcd", link); err != nil {
		t.Fatal(err)
	}
	// This test is a Go program, but none of the wanted ones.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path, link string
		want       bool
	}{
		"the wanted link":                        {link, "/assets/etcd", true},
		"a link to something else":               {link, "/other/etcd", false},
		"a link where a built program is wanted": {link, "", false},
		"another program":                        {self, "", false},
		"a built program where a link is wanted": {self, "/assets/etcd", false},
		"nothing":                                {filepath.Join(dir, "none"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inPlace(test.path, programs[0], test.link, "v3.7.3"); got != test.want {
				t.Errorf("inPlace = %t, want %t", got, test.want)
			}
		})
	}
}

func TestExisting(t *testing.T) {
	assets := t.TempDir()
	if err := os.WriteFile(filepath.Join(assets, Etcd), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	etcd, apiServer, manager := programs[0], programs[1], programs[2]
	if got, err := existing(etcd, Options{Assets: assets}); err != nil || got != filepath.Join(assets, Etcd) {
		t.Errorf("etcd from the assets: %q, %v", got, err)
	}
	if _, err := existing(apiServer, Options{Assets: assets}); err == nil {
		t.Error("assets without kube-apiserver were accepted")
	}
	if got, err := existing(manager, Options{Assets: assets}); err != nil || got != "" {
		t.Errorf("kube-controller-manager, which assets never have: %q, %v", got, err)
	}
}
