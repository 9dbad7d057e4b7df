// Package env gives integration tests a real Kubernetes API server: etcd and kube-apiserver as processes on loopback, with
// Bullpen's CRDs installed.
//
// One control plane serves all tests of a package; each test works in a namespace of its own, so tests can run in parallel:
//
//	var cluster *env.Env
//
//	func TestMain(m *testing.M) { env.Main(m, &cluster) }
//
//	func TestSomething(t *testing.T) {
//		namespace := cluster.Namespace(t)
//		err := cluster.Client.Create(t.Context(), &v1alpha1.Team{...})
//	}
//
// There is no controller manager, no scheduler and no node: nothing is garbage-collected, and a deleted namespace stays. A test
// whose binaries are missing fails and says how to build them; it never skips.
package env

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// Env is a running control plane. Its fields are read-only.
type Env struct {
	// Config reaches the API server as an administrator, without client-side rate limits.
	Config *rest.Config
	// Client is an administrator's client, without a cache.
	Client client.Client
	// Scheme knows Kubernetes' own kinds and Bullpen's.
	Scheme *runtime.Scheme
	// Root is the folder of the module.
	Root string

	plane    *envtest.Environment
	dir      string
	auditLog string
}

// Option changes how a control plane is started.
type Option func(*options)

type options struct{ audit bool }

// WithAudit keeps an audit log of every request, at level Metadata; see [Env.AuditEvents].
func WithAudit() Option { return func(o *options) { o.audit = true } }

// Main starts a control plane, runs the tests of a package with it, stops it, and exits. It is all that a TestMain needs.
func Main(m *testing.M, into **Env, opts ...Option) {
	os.Exit(run(m, into, opts))
}

func run(m *testing.M, into **Env, opts []Option) (code int) {
	e, err := Start(opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the control plane for the tests does not start:", err)
		return 1
	}
	defer func() {
		if err := e.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "the control plane of the tests does not stop:", err)
			code = 1
		}
	}()
	*into = e
	return m.Run()
}

// Start starts a control plane. The caller must call Stop, also after a failed test. Tests of a package share one through
// [Main].
func Start(opts ...Option) (*Env, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	assets, err := assetsDir(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bullpen-env-")
	if err != nil {
		return nil, err
	}
	e := &Env{Scheme: runtime.NewScheme(), Root: root, dir: dir}
	if err := e.start(assets, o); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// patience is how long a step of starting or stopping may take.
const patience = 2 * time.Minute

func (e *Env) start(assets string, o options) error {
	if err := errors.Join(clientgoscheme.AddToScheme(e.Scheme), api.AddToScheme(e.Scheme)); err != nil {
		return err
	}
	existing := false
	plane := &envtest.Environment{
		Scheme:                e.Scheme,
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     []string{filepath.Join(e.Root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		UseExistingCluster:    &existing,
		// Generous, for machines that compile at the same time.
		ControlPlaneStartTimeout: patience,
		ControlPlaneStopTimeout:  patience,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: patience},
	}
	// The output is only shown where the start fails.
	var output bytes.Buffer
	plane.ControlPlane.GetAPIServer().Err = &output
	plane.ControlPlane.GetAPIServer().Out = &output
	if o.audit {
		if err := e.enableAudit(plane); err != nil {
			return err
		}
	}
	e.plane = plane
	config, err := plane.Start()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, lastLines(output.String(), 20))
	}
	config.QPS = -1
	e.Config = config
	e.Client, err = client.New(config, client.Options{Scheme: e.Scheme})
	return err
}

// Stop ends the processes and removes all files of the control plane.
func (e *Env) Stop() error {
	var err error
	if e.plane != nil {
		err = e.plane.Stop()
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}

// Namespace makes a namespace for the test, with a name that no other has.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("no namespace for the test: %v", err)
	}
	return namespace.Name
}

// User gives a config that reaches the API server as a user of that name and those groups, who may do what RBAC allows.
func (e *Env) User(t testing.TB, name string, groups ...string) *rest.Config {
	t.Helper()
	user, err := e.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		t.Fatalf("no user %q: %v", name, err)
	}
	return user.Config()
}

// Kubeconfig writes an administrator's kubeconfig, for programs that run beside the test, and gives its path. It goes with the
// test.
func (e *Env) Kubeconfig(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, e.plane.KubeConfig, 0o600); err != nil {
		t.Fatalf("no kubeconfig: %v", err)
	}
	return path
}

// moduleRoot is the folder of the nearest go.mod above the working directory, which is the package's folder in tests.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("there is no go.mod above %s: run the tests from within the repository", dir)
		}
	}
}

// assetsDir is the folder of etcd and kube-apiserver: KUBEBUILDER_ASSETS, else where the Makefile builds them.
func assetsDir(root string) (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	switch {
	case dir == "":
		dir = filepath.Join(root, ".cache", "k8s")
	case !filepath.IsAbs(dir):
		dir = filepath.Join(root, dir)
	}
	for _, binary := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(dir, binary)); err != nil {
			return "", fmt.Errorf("there is no %s in %s: run make localcluster, "+
				"or set KUBEBUILDER_ASSETS to a folder that has etcd and kube-apiserver", binary, dir)
		}
	}
	return dir, nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
