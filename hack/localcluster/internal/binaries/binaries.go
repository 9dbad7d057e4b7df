// Package binaries makes sure that the programs of a control plane are in a
// folder: built from their Go modules, or linked to copies the machine has.
//
// What a program was built from is read from the program itself, so there is no
// stamp that could say something else. A second call finds everything in place
// and returns at once.
package binaries

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/mod/modfile"
)

// Names of the programs in the folder.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
)

// program is one of the programs and where it comes from.
type program struct {
	name, module, pkg string
	// inAssets tells that KUBEBUILDER_ASSETS has one too.
	inAssets bool
}

// programs is in the order of building: a control plane without a node needs
// the first two only.
var programs = []program{
	{name: Etcd, module: etcdModule, pkg: etcdModule, inAssets: true},
	{name: APIServer, module: kubernetesModule, pkg: kubernetesModule + "/cmd/kube-apiserver", inAssets: true},
	{name: ControllerManager, module: kubernetesModule, pkg: kubernetesModule + "/cmd/kube-controller-manager"},
	{name: Scheduler, module: kubernetesModule, pkg: kubernetesModule + "/cmd/kube-scheduler"},
	{name: Kubectl, module: kubernetesModule, pkg: kubernetesModule + "/cmd/kubectl", inAssets: true},
}

// Options say where programs go and where they may come from.
type Options struct {
	// Dir receives the programs. It is made if missing.
	Dir string
	// Module has the go.mod and go.sum that pin the versions.
	Module fs.FS
	// Assets is a folder with etcd, kube-apiserver and kubectl to use instead
	// of building them; empty if there is none.
	Assets string
	// BuildKubectl builds kubectl even if there is one in PATH.
	BuildKubectl bool
	// Out receives progress.
	Out io.Writer
}

// plan is what is to be done for one program.
type plan struct {
	program
	// link is the file to link to; if it is empty, the program is built.
	link string
}

// Ensure builds or links what is missing in the folder. Calls for one folder
// wait for each other, also across processes.
func Ensure(ctx context.Context, o Options) error {
	versions, err := pinned(o.Module)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(o.Dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()

	var todo []plan
	for _, p := range programs {
		link, err := existing(p, o)
		if err != nil {
			return err
		}
		if !inPlace(filepath.Join(o.Dir, p.name), p, link, versions[p.module]) {
			todo = append(todo, plan{program: p, link: link})
		}
	}
	if len(todo) == 0 {
		return nil
	}
	module, err := unpack(o.Module)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(module) }()
	for i, p := range todo {
		step := newStep(o.Out, fmt.Sprintf("[%d/%d] %s", i+1, len(todo), p.name))
		if err := step.run(func() error { return place(ctx, p, o.Dir, module, versions) }); err != nil {
			return err
		}
	}
	return nil
}

// Missing names those of the wanted programs that are not in the folder.
func Missing(dir string, names ...string) []string {
	var missing []string
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			missing = append(missing, name)
		}
	}
	return missing
}

// existing returns a program on this machine to link to, or nothing.
func existing(p program, o Options) (string, error) {
	if o.Assets != "" && p.inAssets {
		path, err := filepath.Abs(filepath.Join(o.Assets, p.name))
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("KUBEBUILDER_ASSETS is set but has no %s: %w; unset it to build one", p.name, err)
		}
		return path, nil
	}
	if p.name != Kubectl || o.BuildKubectl {
		return "", nil
	}
	path, err := exec.LookPath(p.name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if filepath.Dir(path) == filepath.Clean(o.Dir) {
		return "", nil // The folder itself is in PATH.
	}
	return path, nil
}

// inPlace reports whether path is the wanted link, or, without a link, a
// program built from the pinned version.
func inPlace(path string, p program, link, version string) bool {
	target, err := os.Readlink(path)
	if link != "" || err == nil {
		return err == nil && target == link
	}
	info, err := buildinfo.ReadFile(path)
	return err == nil && info.Path == p.pkg && info.Main.Version == version
}

// place links or builds one program. It never leaves half of one.
func place(ctx context.Context, p plan, dir, module string, versions map[string]string) error {
	path := filepath.Join(dir, p.name)
	fresh := filepath.Join(dir, "."+p.name)
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if p.link != "" {
		if err := os.Symlink(p.link, fresh); err != nil {
			return err
		}
		return os.Rename(fresh, path)
	}
	absolute, err := filepath.Abs(fresh)
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath",
		"-ldflags", ldflags(versions[kubernetesModule]), "-o", absolute, p.pkg)
	build.Dir = module
	// A workspace or flags of the caller must not change what is built.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false")
	// The go command's own children end with it, in its group.
	build.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	build.Cancel = func() error { return syscall.Kill(-build.Process.Pid, syscall.SIGTERM) }
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", p.pkg, err, output)
	}
	return os.Rename(fresh, path)
}

// ldflags sets the version that Kubernetes programs report; without it clients
// would see v0.0.0-master.
func ldflags(version string) string {
	const pkg = "k8s.io/component-base/version."
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := []string{"-s", "-w"}
	for _, set := range [][2]string{
		{"gitVersion", version}, {"gitMajor", major}, {"gitMinor", minor}, {"gitTreeState", "clean"},
	} {
		flags = append(flags, "-X", pkg+set[0]+"="+set[1])
	}
	return strings.Join(flags, " ")
}

// pinned reads the versions of the modules that the programs come from.
func pinned(module fs.FS) (map[string]string, error) {
	data, err := fs.ReadFile(module, "go.mod")
	if err != nil {
		return nil, err
	}
	file, err := modfile.ParseLax("go.mod", data, nil)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, require := range file.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	for _, path := range []string{kubernetesModule, etcdModule} {
		if versions[path] == "" {
			return nil, fmt.Errorf("go.mod does not require %s", path)
		}
	}
	return versions, nil
}

// unpack lays the module files into a new temporary folder to build from.
func unpack(module fs.FS) (string, error) {
	dir, err := os.MkdirTemp("", "localcluster-build-")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, module); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// lock takes the folder's lock and returns what gives it back.
func lock(path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
