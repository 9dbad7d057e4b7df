// Package cluster runs a Kubernetes cluster on loopback: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler as child processes; the volume
// provisioner and the node within this process.
//
// Everything it writes is below one state folder, which belongs to one run: a
// new cluster starts empty.
package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/binaries"
	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/node"
	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/process"
	"github.com/bullpen-dev/bullpen/hack/localcluster/internal/volumes"
)

// NodeName is the name of the only node.
const NodeName = "localcluster"

// startLimit is how long each program may take until it answers.
const startLimit = 90 * time.Second

// errRunning says that the state folder is in use.
var errRunning = errors.New("a local cluster is running")

// Options describe a cluster.
type Options struct {
	// Bin has the programs, see package binaries.
	Bin string
	// State is the state folder.
	State string
	// ControlPlaneOnly leaves out all but etcd and the API server.
	ControlPlaneOnly bool
	// Args are further arguments of programs of the control plane, by name.
	Args map[string][]string
	// Node describes the node; its folder, client and certificates are filled in.
	Node node.Config
	// Keeper are the arguments that make this program a keeper; the marker is
	// added to them.
	Keeper []string
	// Out receives a line for each step.
	Out io.Writer
}

// running is a cluster that runs or is on its way.
type running struct {
	Options
	state    state
	id       identity
	ports    ports
	creds    credentials
	start    time.Time
	children []*child
	// failed receives the error of whatever ends though it should run.
	failed chan error
	// background are the parts within this process, in the order of their start.
	background []part
}

// A part is something that runs in this process until it is stopped.
type part struct {
	cancel context.CancelFunc
	done   <-chan struct{}
}

// Run starts a cluster, writes its kubeconfig, prints "ready" and the file's
// path, and serves until ctx ends. Then it stops the pods as a node that is
// drained would, and everything else. It returns nil if ctx ended it, and an
// error with the end of the log in question if something else did.
func Run(ctx context.Context, o Options) error {
	dir, err := filepath.Abs(o.State)
	if err != nil {
		return err
	}
	if missing := binaries.Missing(o.Bin, o.programs()...); len(missing) > 0 {
		return fmt.Errorf("%s has no %s; run first: localcluster build --bin %s", o.Bin, strings.Join(missing, ", "), o.Bin)
	}
	s := state(dir)
	id, err := s.claim()
	if err != nil {
		return err
	}
	closeLog, err := logTo(s.log("node"))
	if err != nil {
		return err
	}
	defer closeLog()
	keeper, err := process.StartKeeper(append(o.Keeper, id.marker())...)
	if err != nil {
		return err
	}
	c := &running{Options: o, state: s, id: id, start: time.Now(), failed: make(chan error, 8)}
	if err = c.serve(ctx); ctx.Err() != nil {
		err = nil // It was to end: what failed because of that does not matter.
	}
	c.stop()
	return errors.Join(err, keeper.Dismiss())
}

// logTo sends what the parts within this process log to a file.
func logTo(path string) (func(), error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	klog.LogToStderr(false)
	klog.SetOutput(file)
	return func() {
		klog.Flush()
		_ = file.Close()
	}, nil
}

// programs are those that these options need.
func (o Options) programs() []string {
	if o.ControlPlaneOnly {
		return []string{binaries.Etcd, binaries.APIServer}
	}
	return []string{binaries.Etcd, binaries.APIServer, binaries.ControllerManager, binaries.Scheduler}
}

// serve brings everything up and waits for the end.
func (c *running) serve(ctx context.Context) error {
	if err := c.bringUp(ctx); err != nil {
		return err
	}
	c.say("ready %s", c.state.kubeconfig())
	select {
	case <-ctx.Done():
		return nil
	case err := <-c.failed:
		return err
	}
}

func (c *running) bringUp(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	admin, err := c.creds.rest(userAdmin, groupMasters)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	if err := c.startStore(ctx, client); err != nil {
		return err
	}
	if !c.ControlPlaneOnly {
		if err := c.startWorkers(ctx, client); err != nil {
			return err
		}
	}
	// The file is written last: where it is, the cluster answers.
	return c.creds.write(c.state.kubeconfig(), userAdmin, groupMasters)
}

// prepare makes ports, certificates and the components' client configurations.
func (c *running) prepare() error {
	var err error
	if c.ports, err = newPorts(); err != nil {
		return err
	}
	authority, err := writePKI(c.state, c.start)
	if err != nil {
		return err
	}
	c.creds = credentials{authority: authority, server: loopback(c.ports.apiServer), now: c.start}
	for name, user := range map[string]string{
		binaries.ControllerManager: userControllerManager,
		binaries.Scheduler:         userScheduler,
	} {
		if err := c.creds.write(c.state.user(name), user); err != nil {
			return err
		}
	}
	return nil
}

// startStore starts etcd and the API server and waits until the latter is ready.
func (c *running) startStore(ctx context.Context, client kubernetes.Interface) error {
	etcd, err := c.launch(binaries.Etcd, etcdArgs(c.state, c.ports))
	if err != nil {
		return err
	}
	if err := c.await(ctx, etcd, listens(c.ports.etcd)); err != nil {
		return err
	}
	server, err := c.launch(binaries.APIServer, apiServerArgs(c.state, c.ports))
	if err != nil {
		return err
	}
	return c.await(ctx, server, func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startWorkers starts what acts on objects and waits until all of it does.
func (c *running) startWorkers(ctx context.Context, client kubernetes.Interface) error {
	manager, err := c.launch(binaries.ControllerManager, controllerManagerArgs(c.state, c.ports))
	if err != nil {
		return err
	}
	scheduler, err := c.launch(binaries.Scheduler, schedulerArgs(c.state, c.ports))
	if err != nil {
		return err
	}
	provisioner, err := volumes.New(client, c.state.volumes())
	if err != nil {
		return err
	}
	c.background = append(c.background, c.goPart(ctx, provisioner.Run))
	if err := volumes.EnsureClass(ctx, client); err != nil {
		return err
	}
	if err := c.startNode(ctx); err != nil {
		return err
	}
	c.say("node answers")
	if err := c.await(ctx, scheduler, answers(c.ports.scheduler, "/readyz")); err != nil {
		return err
	}
	return c.await(ctx, manager, func(ctx context.Context) error { return takesPods(ctx, client) })
}

// takesPods succeeds once the controllers have done what a first pod waits for:
// its service account, and a node that is no longer tainted as a new one.
func takesPods(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return errors.New("the default service account is not there yet")
	}
	if err != nil {
		return err
	}
	registered, err := client.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(registered.Spec.Taints) > 0 {
		return fmt.Errorf("the node is still tainted %s", registered.Spec.Taints[0].Key)
	}
	return nil
}

func (c *running) startNode(ctx context.Context) error {
	rest, err := c.creds.rest(userNode, groupMasters)
	if err != nil {
		return err
	}
	config := c.Node
	config.Name = NodeName
	config.Client = rest
	config.PodDir = c.state.pods()
	config.Marker = c.id.marker()
	config.APIServerPort = c.ports.apiServer
	config.Kubelet = node.Endpoint{
		Port: c.ports.kubelet,
		Cert: c.state.pki("node.crt"), Key: c.state.pki("node.key"), ClientCA: c.state.pki("ca.crt"),
		ClientName: userKubeletClient,
	}
	n, err := node.New(config)
	if err != nil {
		return err
	}
	c.background = append(c.background, c.goPart(ctx, n.Run))
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case <-n.Ready():
		return nil
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the node does not get ready: %w; see %s", ctx.Err(), c.state.log("node"))
	}
}

// goPart runs f apart from ctx's end: parts are stopped in their order.
func (c *running) goPart(ctx context.Context, f func(context.Context) error) part {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil && ctx.Err() == nil {
			c.fail(err)
		}
	}()
	return part{cancel: cancel, done: done}
}

// launch starts a program and watches that it goes on.
func (c *running) launch(name string, args []string) (*child, error) {
	bin, err := filepath.Abs(filepath.Join(c.Bin, name))
	if err != nil {
		return nil, err
	}
	started, err := startChild(bin, c.state.log(name), c.id.marker(), append(args, c.Args[name]...))
	if err != nil {
		return nil, err
	}
	c.children = append(c.children, started)
	go func() {
		<-started.done
		c.fail(started.failure())
	}()
	return started, nil
}

// fail notes an error; the first one is what counts.
func (c *running) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

func (c *running) await(ctx context.Context, started *child, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := started.waitFor(ctx, probe); err != nil {
		return err
	}
	c.say("%s answers", started.name)
	return nil
}

// stop ends everything. Scheduler and controllers go first, so that nothing
// replaces the pods that the node stops next; the API server is there to the
// last, so that their end is written down.
func (c *running) stop() {
	for _, name := range []string{binaries.Scheduler, binaries.ControllerManager} {
		c.stopChild(name)
	}
	for i := len(c.background) - 1; i >= 0; i-- {
		c.background[i].cancel()
		<-c.background[i].done
	}
	for _, name := range []string{binaries.APIServer, binaries.Etcd} {
		c.stopChild(name)
	}
}

func (c *running) stopChild(name string) {
	for _, started := range c.children {
		if started.name == name {
			started.stop()
		}
	}
}

// say prints one line of progress.
func (c *running) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !strings.HasPrefix(line, "ready ") {
		line += fmt.Sprintf(" (%.1f s)", time.Since(c.start).Seconds())
	}
	_, _ = fmt.Fprintln(c.Out, line)
}

// listens succeeds once a TLS handshake reaches a server, which need not like us.
func listens(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		dialer := tls.Dialer{Config: probeTLS()}
		conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// answers succeeds once a server says that it is ready.
func answers(port int, path string) func(context.Context) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: probeTLS(), DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, loopback(port)+path, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s says %s", path, response.Status)
		}
		return nil
	}
}

// probeTLS is for questions that carry no secret and whose answers are not
// trusted with anything.
func probeTLS() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
}
