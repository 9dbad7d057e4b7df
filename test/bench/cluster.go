package main

// This file runs Bullpen for real: etcd and a Kubernetes API server, and the manager beside them, on loopback.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	namespace = "bench"
	team      = "bench"
	// ready is how long anything may take to start.
	ready = 2 * time.Minute
)

// cluster is a running control plane with a manager.
type cluster struct {
	client  client.Client
	office  string
	parts   []*program
	manager *program
	logs    []*os.File
	watcher *watcher
	agents  []*agent
	working sync.WaitGroup
	// offered has, by the item's UID, who waits for its offer.
	mu      sync.Mutex
	offered map[string]time.Time
	heard   *sync.Cond
	broken  error
}

// startCluster starts all of it in a new folder, and connects an agent for each of so many people.
func startCluster(ctx context.Context, s *session, people int) (*cluster, error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("c%d", s.unique()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	binary, err := s.buildManager(ctx)
	if err != nil {
		return nil, err
	}
	c := &cluster{offered: map[string]time.Time{}}
	c.heard = sync.NewCond(&c.mu)
	starting, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	s.progress("starting etcd, the API server and the manager")
	err = c.start(ctx, starting, s, dir, binary)
	if err == nil {
		s.progress("connecting %d agents", people)
		err = c.hire(ctx, starting, people)
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) start(ctx, starting context.Context, s *session, dir, binary string) error {
	kubeconfig, err := c.startControlPlane(ctx, starting, s, dir)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	if err := c.install(starting, config, s.root); err != nil {
		return err
	}
	if err := c.startManager(ctx, dir, kubeconfig, binary); err != nil {
		return err
	}
	c.watcher, err = watchItems(ctx, config, c.client.Scheme())
	return err
}

// startControlPlane gives the path of an administrator's kubeconfig.
func (c *cluster) startControlPlane(ctx, starting context.Context, s *session, dir string) (string, error) {
	log, err := c.log(dir, "control-plane")
	if err != nil {
		return "", err
	}
	state := filepath.Join(dir, "k")
	// The local cluster does not wait for the disk, unlike a cluster that lasts; figures must.
	plane, err := run(ctx, log, nil, s.localcluster, "up", "--control-plane-only", "--bin", s.kubernetes, "--state", state,
		"--arg", "etcd=--unsafe-no-fsync=false")
	if err != nil {
		return "", fmt.Errorf("%w (run make localcluster)", err)
	}
	c.parts = append(c.parts, plane)
	kubeconfig := filepath.Join(state, "kubeconfig")
	return kubeconfig, plane.await(starting, "the control plane does not start; see "+log.Name(), func() error {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		direct, err := client.New(config, client.Options{})
		if err != nil {
			return err
		}
		return direct.List(starting, &corev1.NamespaceList{})
	})
}

func (c *cluster) log(dir, name string) (*os.File, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err == nil {
		c.logs = append(c.logs, log)
	}
	return log, err
}

// install makes the kinds and the namespace known.
func (c *cluster) install(ctx context.Context, config *rest.Config, root string) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return err
	}
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Scheme: scheme, Paths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfPathMissing: true, MaxTime: ready,
	})
	if err != nil {
		return err
	}
	if c.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// buildManager builds the manager, once in a session.
func (s *session) buildManager(ctx context.Context) (string, error) {
	binary := filepath.Join(s.dir, "bullpen-manager")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	s.progress("building the manager")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/manager")
	build.Dir = s.root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the manager: %w\n%s", err, out)
	}
	return binary, nil
}

func (c *cluster) startManager(ctx context.Context, dir, kubeconfig, binary string) error {
	log, err := c.log(dir, "manager")
	if err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	c.office = "https://" + address
	manager, err := run(ctx, log, []string{"KUBECONFIG=" + kubeconfig}, binary,
		"--agent-image", "agent:bench", "--office-address", address, "--office-url", c.office, "--office-namespace", namespace,
		"--namespaces", namespace, "--data-dir", filepath.Join(dir, "data"), "--metrics-address", "0", "--health-address", "0")
	if err == nil {
		c.parts, c.manager = append(c.parts, manager), manager
	}
	return err
}

// managerTime is how long the manager has used processors.
func (c *cluster) managerTime() (time.Duration, error) {
	return processorTime(c.manager.cmd.Process.Pid)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// hire makes a team and people, and connects an agent for each; there is no node, so their pods stay pending.
func (c *cluster) hire(ctx, starting context.Context, people int) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	if err := c.client.Create(starting, &api.Team{ObjectMeta: meta(team)}); err != nil {
		return err
	}
	for n := range people {
		person := &api.Person{ObjectMeta: meta(handleOf(n)), Spec: api.PersonSpec{Team: team}}
		if err := c.client.Create(starting, person); err != nil {
			return err
		}
	}
	for n := range people {
		err := c.manager.await(starting, "agent "+handleOf(n)+" does not connect; see "+c.logs[len(c.logs)-1].Name(), func() error {
			return c.connect(starting, handleOf(n))
		})
		if err != nil {
			return err
		}
	}
	// A new person changes the team config, for which idle agents are told to reconnect once it has settled.
	time.Sleep(3 * time.Second)
	hangUp(c.agents)
	c.agents = c.agents[:0]
	for n := range people {
		if err := c.connect(starting, handleOf(n)); err != nil {
			return err
		}
	}
	for _, a := range c.agents {
		c.working.Go(func() {
			if err := a.work(c.hear); ctx.Err() == nil {
				c.fail(err)
			}
		})
	}
	return nil
}

func handleOf(n int) string { return fmt.Sprintf("person-%d", n) }

// connect connects an agent with the token from its Secret.
func (c *cluster) connect(ctx context.Context, handle string) error {
	var secret corev1.Secret
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: handle + "-agent"}, &secret); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return fmt.Errorf("the Secret of %s has no CA yet", handle)
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	a, err := connect(ctx, agentURL(c.office, namespace, team), config, handle, string(secret.Data["token"]))
	if err == nil {
		c.agents = append(c.agents, a)
	}
	return err
}

// hear notes when an offer arrived.
func (c *cluster) hear(item string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offered[item] = at
	c.heard.Broadcast()
}

// fail ends every wait for an offer.
func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = err
	c.heard.Broadcast()
}

// awaitOffer gives when the item was offered.
func (c *cluster) awaitOffer(item string) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if at, ok := c.offered[item]; ok || c.broken != nil {
			return at, c.broken
		}
		c.heard.Wait()
	}
}

// create makes a work item for a person.
func (c *cluster) create(ctx context.Context, name, person string) (*api.WorkItem, error) {
	item := &api.WorkItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: api.WorkItemSpec{
			Team: team, Person: api.Handle(person), Title: "Work of " + person, Body: "Do what there is to do.", Trigger: string(protocol.TriggerHuman),
		},
	}
	return item, c.client.Create(ctx, item)
}

// stop ends everything, the last started first.
func (c *cluster) stop() error {
	var err error
	c.fail(context.Canceled)
	if c.watcher != nil {
		c.watcher.stop()
	}
	hangUp(c.agents)
	c.working.Wait()
	for n := len(c.parts) - 1; n >= 0; n-- {
		err = errors.Join(err, c.parts[n].stop())
	}
	for _, log := range c.logs {
		err = errors.Join(err, log.Close())
	}
	return err
}
