package mainline

// This file starts and stops the cluster: the programs, the image, the CRDs, and the account that managers run under.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

const (
	// agentImage is the image of all agents.
	agentImage = "bullpen.dev/agent:test"
	// dirVariable tells the worker where the tests' folder is, and marks every process of this run.
	dirVariable = "MAINLINE_DIR"
	// managerUser is who managers are to the API server: an account with the permissions of config/rbac, and no others.
	managerUser = "system:serviceaccount:bullpen:bullpen-manager"
	// clusterStart bounds the start of the cluster, stopLimit its end.
	clusterStart = 2 * time.Minute
	stopLimit    = 90 * time.Second
)

// auditPolicy records what managers write, once, when it was answered. Leases and events are not among what is counted.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: None
    resources:
      - {group: "", resources: [events]}
      - {group: events.k8s.io}
      - {group: coordination.k8s.io}
  - level: Request # with what was written
    users: ["` + managerUser + `"]
    verbs: [create, update, patch, delete, deletecollection]
    resources:
      - {group: bullpen.dev, resources: ["*/status"]}
  - level: Metadata
    users: ["` + managerUser + `"]
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
`

// testCluster is the local cluster with everything that is needed to run managers on it.
type testCluster struct {
	// root is the module's folder, dir has all files of this run. Its name is short because sockets are below it.
	root, dir string
	// managerBinary is the program of the manager, kubectl that of the user.
	managerBinary, kubectl string
	// admin may do everything, without client-side rate limits.
	admin  client.Client
	config *rest.Config
	up     *exec.Cmd
	ended  chan error
}

func startCluster(ctx context.Context) (*testCluster, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bp")
	if err != nil {
		return nil, err
	}
	c := &testCluster{root: root, dir: dir}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *testCluster) start(ctx context.Context) error {
	if err := c.makeImage(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterStart)
	defer cancel()
	if err := c.makeRepository(ctx); err != nil {
		return err
	}
	if err := c.bringUp(ctx); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	if _, err := envtest.InstallCRDs(c.config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(c.root, "config", "crd", "bases")}, ErrorIfPathMissing: true,
	}); err != nil {
		return fmt.Errorf("install the CRDs: %w", err)
	}
	return c.makeManagerUser(ctx)
}

// path is a path in the folder of this run.
func (c *testCluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

// makeImage puts the agent and the worker into the folder that is the agents' image, and finds or builds the manager.
func (c *testCluster) makeImage(ctx context.Context) error {
	bin := c.path("image", "usr", "local", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	worker, err := os.ReadFile(filepath.Join("testdata", "worker"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bin, "worker"), worker, 0o755); err != nil {
		return err
	}
	c.managerBinary = c.path("bullpen-manager")
	return errors.Join(
		c.program(ctx, "manager", c.managerBinary),
		c.program(ctx, "agent", filepath.Join(bin, "bullpen-agent")),
		c.program(ctx, "ost", filepath.Join(bin, "ost")),
	)
}

// program copies what make has built, or builds it. Only under make is bin known to be up to date, and what runs here must not
// change when something is built meanwhile.
func (c *testCluster) program(ctx context.Context, name, out string) error {
	made := filepath.Join(c.root, "bin", filepath.Base(out))
	if _, err := os.Stat(made); err == nil && os.Getenv("LOCALCLUSTER") != "" {
		return copyFile(made, out)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, "./cmd/"+name) //nolint:gosec // our own arguments
	build.Dir = c.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the %s: %w\n%s", name, err, output)
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read from
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// repository is the bare git repository that agents clone and push to.
func (c *testCluster) repository() string { return c.path("site.git") }

func (c *testCluster) makeRepository(ctx context.Context) error {
	clone := c.path("site")
	if err := os.MkdirAll(clone, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(clone, "README"), []byte("A site.\n"), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", clone},
		{"-C", clone, "add", "README"},
		{"-C", clone, "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "Say what this is"},
		{"clone", "-q", "--bare", clone, c.repository()},
	} {
		if _, err := c.git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (c *testCluster) git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", args...).CombinedOutput() //nolint:gosec // the tests' own arguments
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}

// auditLog is where kube-apiserver notes what managers wrote.
func (c *testCluster) auditLog() string { return c.path("audit.log") }

// state is a path in the state folder of the local cluster.
func (c *testCluster) state(elements ...string) string {
	return c.path(append([]string{"s"}, elements...)...)
}

// bringUp starts the local cluster and waits until it is ready.
func (c *testCluster) bringUp(ctx context.Context) error {
	program, binaries := os.Getenv("LOCALCLUSTER"), os.Getenv("LOCALCLUSTER_BIN")
	if program == "" {
		program = filepath.Join(c.root, ".cache", "localcluster")
	}
	if binaries == "" {
		binaries = filepath.Join(c.root, ".cache", "k8s")
	}
	for _, file := range []string{program, filepath.Join(binaries, "kube-scheduler"), filepath.Join(binaries, "kubectl")} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w: run make localcluster first, or the tests by make test", err)
		}
	}
	c.kubectl = filepath.Join(binaries, "kubectl")
	policy := c.path("audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	c.up = exec.Command(program, "up", "--bin", binaries, "--state", c.state(), //nolint:gosec // our own program
		"--image", agentImage+"="+c.path("image"),
		"--pass-env", dirVariable,
		"--arg", "kube-apiserver=--audit-policy-file="+policy,
		"--arg", "kube-apiserver=--audit-log-path="+c.auditLog(),
		// An event is in the log before its request is answered.
		"--arg", "kube-apiserver=--audit-log-mode=blocking",
		"--arg", "kube-apiserver=--audit-log-maxsize=0",
	)
	c.up.Env = append(os.Environ(), dirVariable+"="+c.dir)
	ready, told := make(chan struct{}), &bytes.Buffer{}
	output, err := c.up.StdoutPipe()
	if err != nil {
		return err
	}
	c.up.Stderr = os.Stderr
	if err := spawn(c.up, syscall.SIGTERM); err != nil {
		return err
	}
	c.ended = make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready ") {
				close(ready)
				continue
			}
			fmt.Fprintln(told, lines.Text())
		}
		c.ended <- c.up.Wait()
		close(c.ended)
	}()
	select {
	case <-ready:
		return nil
	case err := <-c.ended:
		return fmt.Errorf("localcluster ended: %w\n%s", orExit(err), told)
	case <-ctx.Done():
		return fmt.Errorf("localcluster was not ready within %s", clusterStart)
	}
}

func orExit(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// starter starts processes on one thread that never ends, because the kernel takes the end of the thread that started a child
// for the end of its parent.
var starter = func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
}()

// spawn starts a program in a group of its own that gets a signal when this process is gone, however it ends.
func spawn(cmd *exec.Cmd, orphaned syscall.Signal) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphaned}
	started := make(chan error)
	starter <- func() { started <- cmd.Start() }
	return <-started
}

func (c *testCluster) connect() error {
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.state("kubeconfig")); err != nil {
		return err
	}
	c.config.QPS = -1
	scheme := kruntime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return err
	}
	c.admin, err = client.New(c.config, client.Options{Scheme: scheme})
	return err
}

// makeManagerUser makes the account of managers, with the roles of config/rbac, and a kubeconfig that has its token.
func (c *testCluster) makeManagerUser(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "bullpen", Name: "bullpen-manager"}}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	clusterRole, role, err := c.managerRoles()
	if err != nil {
		return err
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: account.Namespace}}, account, clusterRole, role,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account.Name}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole.Name},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		},
	} {
		if err := c.admin.Create(ctx, o); err != nil {
			return fmt.Errorf("make %T %s: %w", o, o.GetName(), err)
		}
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
	if err := c.admin.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("make a token for the manager: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthorityData: c.config.CAData}
	config.AuthInfos["manager"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["manager"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: "manager"}
	config.CurrentContext = "manager"
	return clientcmd.WriteToFile(*config, c.managerConfig())
}

// managerConfig is the kubeconfig of managers.
func (c *testCluster) managerConfig() string { return c.path("manager.kubeconfig") }

func (c *testCluster) managerRoles() (*rbacv1.ClusterRole, *rbacv1.Role, error) {
	text, err := os.ReadFile(filepath.Join(c.root, "config", "rbac", "role.yaml"))
	if err != nil {
		return nil, nil, err
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	clusterRole, role := &rbacv1.ClusterRole{}, &rbacv1.Role{}
	if err := errors.Join(decoder.Decode(clusterRole), decoder.Decode(role)); err != nil {
		return nil, nil, fmt.Errorf("read config/rbac/role.yaml: %w", err)
	}
	return clusterRole, role, nil
}

// stop ends the cluster, removes all files, and says if a process of this run is left.
func (c *testCluster) stop() error {
	var err error
	if c.up != nil && c.up.Process != nil {
		_ = c.up.Process.Signal(syscall.SIGTERM) // It may have ended already.
		select {
		case ended := <-c.ended:
			if ended != nil {
				err = fmt.Errorf("localcluster: %w", ended)
			}
		case <-time.After(stopLimit):
			err = errors.Join(fmt.Errorf("localcluster did not stop within %s", stopLimit), c.up.Process.Kill())
			<-c.ended
		}
	}
	mark := dirVariable + "=" + c.dir
	left := poll(context.Background(), 10*time.Second, func() error {
		if pids := carrying(mark); len(pids) > 0 {
			return fmt.Errorf("processes %v of the tests are left", pids)
		}
		return nil
	})
	if left != nil {
		for _, pid := range carrying(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return errors.Join(err, left, os.RemoveAll(c.dir))
}

// carrying lists the processes that have all those entries in their environment.
func carrying(entries ...string) []int {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err == nil && pid != os.Getpid() && carries(pid, entries...) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// carries says whether a process has all those entries in its environment.
func carries(pid int, entries ...string) bool {
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false // gone, or somebody else's
	}
	has := map[string]bool{}
	for entry := range strings.SplitSeq(string(environ), "\x00") {
		has[entry] = true
	}
	for _, entry := range entries {
		if !has[entry] {
			return false
		}
	}
	return true
}
