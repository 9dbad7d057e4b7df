package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestClaim(t *testing.T) {
	for name, test := range map[string]struct {
		fill    func(t *testing.T, s state)
		wantErr bool
	}{
		"a folder that is not there": {fill: func(*testing.T, state) {}},
		"an empty folder": {fill: func(t *testing.T, s state) {
			if err := os.MkdirAll(string(s), 0o755); err != nil {
				t.Fatal(err)
			}
		}},
		"a folder with somebody's files": {wantErr: true, fill: func(t *testing.T, s state) {
			write(t, s.path("thesis.txt"), "")
		}},
		"what a cluster left whose process is gone": {fill: func(t *testing.T, s state) {
			write(t, s.identityFile(), `{"id":"old","pid":1,"startTime":0}`)
			write(t, s.path("etcd", "member"), "data")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(filepath.Join(t.TempDir(), "state"))
			test.fill(t, s)
			id, err := s.claim()
			if (err != nil) != test.wantErr {
				t.Fatalf("claim: %v, want an error: %t", err, test.wantErr)
			}
			if err != nil {
				return
			}
			if !id.alive() {
				t.Error("the process that claimed the folder is not seen as alive")
			}
			if _, err := os.Stat(s.path("etcd")); err == nil {
				t.Error("the data of the old cluster is still there")
			}
			if _, err := s.claim(); !errors.Is(err, errRunning) {
				t.Errorf("second claim: %v, want %v", err, errRunning)
			}
		})
	}
}

func TestDownLeavesAFolderThatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "thesis.txt"), "")
	if err := Down(dir, 0); err == nil {
		t.Error("Down succeeded on a folder that no cluster made")
	}
	if _, err := os.Stat(filepath.Join(dir, "thesis.txt")); err != nil {
		t.Errorf("a file in it is gone: %v", err)
	}
}

func TestIsReady(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		want bool
	}{
		"nothing yet":                  {"", false},
		"steps only":                   {"etcd answers (0.4 s)\n", false},
		"the line":                     {"etcd answers (0.4 s)\nready /state/kubeconfig\n", true},
		"half of the line":             {"ready /state/kube", false},
		"the word within another line": {"not ready yet\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isReady([]byte(test.log)); got != test.want {
				t.Errorf("isReady(%q) = %t, want %t", test.log, got, test.want)
			}
		})
	}
}

func TestFreePortsAreDifferent(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if port < firstPort || port >= lastPort || seen[port] {
			t.Errorf("port %d of %v is out of range or given twice", port, ports)
		}
		seen[port] = true
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}
