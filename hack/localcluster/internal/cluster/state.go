package cluster

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/folder"
	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/process"
)

// idVariable is the environment variable that marks all processes of a cluster.
const idVariable = "LOCALCLUSTER_ID"

// identityFile makes a folder a state folder. Without it, nothing is removed.
const identityFile = "localcluster.json"

// errNotOurs says that somebody else uses the state folder.
var errNotOurs = errors.New("this folder was not made by localcluster")

// An identity says which process serves a state folder.
type identity struct {
	// ID is the cluster's own, random.
	ID string `json:"id"`
	// PID and StartTime (clock ticks since boot) name the process for good: a
	// pid alone may have been given to another one.
	PID       int    `json:"pid"`
	StartTime uint64 `json:"startTime"`
}

// marker is the environment entry that all processes of the cluster carry.
func (i identity) marker() string {
	return idVariable + "=" + i.ID
}

// alive reports whether the process that serves the folder still runs.
func (i identity) alive() bool {
	started, err := process.StartTime(i.PID)
	return err == nil && started == i.StartTime
}

// state is a state folder; the methods name what is in it.
type state string

func (s state) path(elements ...string) string {
	return filepath.Join(append([]string{string(s)}, elements...)...)
}

func (s state) kubeconfig() string      { return s.path("kubeconfig") }
func (s state) log(name string) string  { return s.path("log", name+".log") }
func (s state) pki(file string) string  { return s.path("pki", file) }
func (s state) identityFile() string    { return s.path(identityFile) }
func (s state) upLog() string           { return s.log("up") }
func (s state) pods() string            { return s.path("pods") }
func (s state) volumes() string         { return s.path("volumes") }
func (s state) user(name string) string { return s.path("users", name+".kubeconfig") }

// read returns the folder's identity. It fails with fs.ErrNotExist if the folder
// is not one of ours.
func (s state) read() (identity, error) {
	data, err := os.ReadFile(s.identityFile())
	if err != nil {
		return identity{}, err
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return identity{}, fmt.Errorf("read %s: %w", s.identityFile(), err)
	}
	return id, nil
}

// claim empties the folder, which must be missing, empty or left by a cluster
// that ended, and makes it this process's.
func (s state) claim() (identity, error) {
	if err := s.clear(); err != nil {
		return identity{}, err
	}
	for _, dir := range []string{"log", "pki", "users", "pods", "volumes"} {
		// The folder holds the keys to the cluster.
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return identity{}, err
		}
	}
	started, err := process.StartTime(os.Getpid())
	if err != nil {
		return identity{}, err
	}
	id := identity{ID: rand.Text(), PID: os.Getpid(), StartTime: started}
	data, err := json.Marshal(id)
	if err != nil {
		return identity{}, err
	}
	return id, writeFile(s.identityFile(), data)
}

// clear removes what an ended cluster left, and its processes.
func (s state) clear() error {
	id, err := s.read()
	if errors.Is(err, fs.ErrNotExist) {
		return s.mustBeEmpty()
	}
	if err != nil {
		return err
	}
	if id.alive() {
		return fmt.Errorf("%w in %s (pid %d); stop it with: localcluster down --state %s", errRunning, s, id.PID, s)
	}
	return s.remove(id)
}

// mustBeEmpty keeps a mistyped --state from emptying somebody's folder.
func (s state) mustBeEmpty() error {
	err := filepath.WalkDir(string(s), func(path string, entry fs.DirEntry, err error) error {
		// The log of a start in the background is there before the claim.
		if err != nil || path == string(s) || path == filepath.Dir(s.upLog()) || path == s.upLog() {
			return err
		}
		return fmt.Errorf("%w: it has %s; give an empty or a new folder as --state", errNotOurs, entry.Name())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	return nil
}

// remove ends processes that are left and deletes the folder.
func (s state) remove(id identity) error {
	if err := process.Sweep(id.marker()); err != nil {
		return err
	}
	return folder.RemoveAll(string(s))
}

// writeFile writes a file that only its owner may read, whole or not at all.
func writeFile(path string, data []byte) error {
	fresh := path + ".new"
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}
