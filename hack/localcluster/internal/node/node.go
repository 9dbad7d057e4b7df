package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	vk "github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// callLimit bounds a call of the API server.
const callLimit = 10 * time.Second

// Config describes a node.
type Config struct {
	// Name of the node object.
	Name string
	// Client reaches the API server; its user may do everything.
	Client *rest.Config
	// PodDir gets a folder for each pod.
	PodDir string
	// Images are the images that the node has.
	Images Images
	// PodCapacity is how many pods fit.
	PodCapacity int
	// PassEnv names variables of this process that containers get too.
	PassEnv []string
	// Backoff is for containers that end again and again.
	Backoff Backoff
	// Marker is an environment entry for all processes of containers.
	Marker string
	// APIServerPort is told to containers in KUBERNETES_SERVICE_PORT.
	APIServerPort int
	// Kubelet is where the API server asks for logs and exec.
	Kubelet Endpoint
}

// An Endpoint is a TLS server on loopback that lets one client in.
type Endpoint struct {
	Port int
	// Cert and Key are files with the serving certificate, ClientCA with the
	// authority of clients.
	Cert, Key, ClientCA string
	// ClientName is the common name of the client that is let in.
	ClientName string
}

// Node runs pods. Make it with New.
type Node struct {
	Config
	client    kubernetes.Interface
	recorder  record.EventRecorder
	events    record.EventBroadcaster
	factories []informers.SharedInformerFactory
	ready     chan struct{}
	// stopped is closed when the node stops.
	stopped chan struct{}

	mu      sync.Mutex
	workers map[types.UID]*podWorker
}

// New makes a node; Run starts it.
func New(config Config) (*Node, error) {
	client, err := kubernetes.NewForConfig(config.Client)
	if err != nil {
		return nil, err
	}
	events := record.NewBroadcaster()
	n := &Node{
		Config:   config,
		client:   client,
		events:   events,
		recorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "localcluster", Host: config.Name}),
		ready:    make(chan struct{}),
		stopped:  make(chan struct{}),
		workers:  map[types.UID]*podWorker{},
	}
	return n, n.listen()
}

// listen registers for pods of this node and for what their volumes show.
func (n *Node) listen() error {
	mine := fields.OneTermEqualSelector("spec.nodeName", n.Name).String()
	pods := informers.NewSharedInformerFactoryWithOptions(n.client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = mine }))
	objects := informers.NewSharedInformerFactory(n.client, 0)
	n.factories = []informers.SharedInformerFactory{pods, objects}

	_, err := pods.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.sync(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { n.sync(object.(*corev1.Pod)) },
		DeleteFunc: n.deleted,
	})
	if err != nil {
		return err
	}
	secrets, configMaps := objects.Core().V1().Secrets().Informer(), objects.Core().V1().ConfigMaps().Informer()
	for kind, informer := range map[string]cache.SharedIndexInformer{"Secret": secrets, "ConfigMap": configMaps} {
		changed := func(object any) {
			if o, ok := object.(metav1.Object); ok {
				n.objectChanged(kind, o.GetNamespace(), o.GetName())
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed,
		}); err != nil {
			return err
		}
	}
	return nil
}

// Ready is closed when the node is registered and takes pods.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Run serves until ctx ends. Then it stops all pods within their grace periods and
// returns when none of their processes is left.
func (n *Node) Run(ctx context.Context) error {
	// All but the pods goes on while these stop.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	n.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: n.client.CoreV1().Events("")})
	defer n.events.Shutdown()

	server, err := n.serveKubelet()
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()

	for _, factory := range n.factories {
		factory.Start(serving.Done())
	}
	for _, factory := range n.factories {
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("read %s: %w", kind, context.Cause(ctx))
			}
		}
	}
	controller, err := vk.NewNodeController(vk.NaiveNodeProvider{}, n.object(), n.client.CoreV1().Nodes(),
		vk.WithNodeEnableLeaseV1(n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease), vk.DefaultLeaseDuration))
	if err != nil {
		return err
	}
	go func() { _ = controller.Run(serving) }() // Its error is asked for below.
	select {
	case <-controller.Ready():
		close(n.ready)
	case <-controller.Done():
		return fmt.Errorf("register the node: %w", controller.Err())
	case <-ctx.Done():
	}
	select {
	case <-ctx.Done():
	case <-controller.Done():
		err = controller.Err()
	}
	n.stopPods()
	stop()
	<-controller.Done()
	return err
}

// stopPods ends all pods and waits for them.
func (n *Node) stopPods() {
	n.mu.Lock()
	close(n.stopped)
	workers := make([]*podWorker, 0, len(n.workers))
	for _, w := range n.workers {
		workers = append(workers, w)
	}
	n.mu.Unlock()
	for _, w := range workers {
		w.stop(gracePeriod(w.pod.Load()))
	}
	for _, w := range workers {
		<-w.done
	}
}

func (n *Node) isStopped() bool {
	select {
	case <-n.stopped:
		return true
	default:
		return false
	}
}

// sync takes note of a pod.
func (n *Node) sync(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w, known := n.workers[pod.UID]
	if !known {
		if n.isStopped() {
			return
		}
		w = newPodWorker(n, pod)
		n.workers[pod.UID] = w
	}
	w.update(pod)
	if !known {
		go w.run()
	}
}

// deleted takes note that a pod's object is gone.
func (n *Node) deleted(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	w := n.workers[pod.UID]
	n.mu.Unlock()
	if w == nil {
		return
	}
	w.forget()
	go func() {
		<-w.done
		n.mu.Lock()
		delete(n.workers, pod.UID)
		n.mu.Unlock()
	}()
}

// objectChanged wakes the pods that show an object.
func (n *Node) objectChanged(kind, namespace, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.workers {
		if pod := w.pod.Load(); pod.Namespace == namespace && refersTo(pod, kind, name) {
			poke(w.refresh)
		}
	}
}

// find returns the pod of a name; of several, the one that is not being deleted.
func (n *Node) find(namespace, name string) *podWorker {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found *podWorker
	for _, w := range n.workers {
		pod := w.pod.Load()
		if pod.Namespace != namespace || pod.Name != name {
			continue
		}
		if found == nil || pod.DeletionTimestamp == nil {
			found = w
		}
	}
	return found
}

// secret reads a secret as it is now: a watch may be behind, and what a process
// gets at its start it keeps.
func (n *Node) secret(namespace, name string) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	secret, err := n.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	return secret, asKubelet(err, "secret", name)
}

// configMap reads a config map as it is now.
func (n *Node) configMap(namespace, name string) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	configMap, err := n.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	return configMap, asKubelet(err, "configmap", name)
}

// asKubelet words the error about a missing object as users know it from pods.
func asKubelet(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(corev1.Resource(kind), name)
	}
	return err
}

// serviceEnv tells containers where the API server is.
func (n *Node) serviceEnv() map[string]string {
	return map[string]string{
		"KUBERNETES_SERVICE_HOST": address,
		"KUBERNETES_SERVICE_PORT": strconv.Itoa(n.APIServerPort),
	}
}

// allocatable is what the scheduler may give away. Nothing enforces requests and
// limits, so there is plenty of everything but pods.
func (n *Node) allocatable() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             *resource.NewQuantity(int64(n.PodCapacity), resource.DecimalSI),
	}
}

// object is the node as it registers itself.
func (n *Node) object() *corev1.Node {
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name,
			Labels: map[string]string{
				corev1.LabelHostname:   n.Name,
				corev1.LabelOSStable:   runtime.GOOS,
				corev1.LabelArchStable: runtime.GOARCH,
			},
		},
		Status: corev1.NodeStatus{
			Phase:       corev1.NodeRunning,
			Capacity:    n.allocatable(),
			Allocatable: n.allocatable(),
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "containers run as local processes"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "NotMeasured", ""),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "NotMeasured", ""),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "NotMeasured", ""),
			},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: address},
				{Type: corev1.NodeHostName, Address: "localhost"},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(n.Kubelet.Port)}},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
				KubeletVersion: kubeletVersion(), ContainerRuntimeVersion: "localcluster://1",
			},
		},
	}
}

// kubeletVersion is that of the kubelet packages in this program.
func kubeletVersion() string {
	const module = "k8s.io/kubernetes"
	info, _ := debug.ReadBuildInfo() // Without it, the version is unknown.
	if info != nil {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				return dependency.Version
			}
		}
	}
	return "v0.0.0-unknown"
}

// serveKubelet answers the API server's questions for logs and exec.
func (n *Node) serveKubelet() (*http.Server, error) {
	config, err := n.Kubelet.tls()
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(n.Kubelet.Port)), config)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		ReadHeaderTimeout: 30 * time.Second,
		Handler: api.PodHandler(api.PodHandlerConfig{
			GetContainerLogs: n.containerLogs,
			RunInContainer:   n.runInContainer,
			GetPods:          n.pods, GetPodsFromKubernetes: n.pods,
			// A stream may be silent for as long as its user likes.
			StreamIdleTimeout: 4 * time.Hour,
		}, false),
	}
	go func() { _ = server.Serve(listener) }() // Until it is closed.
	return server, nil
}

// tls lets the API server in and nobody else: the endpoint runs commands.
func (e Endpoint) tls() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(e.Cert, e.Key)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(e.ClientCA)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", e.ClientCA)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.PeerCertificates[0].Subject.CommonName != e.ClientName {
				return errors.New("only the API server may call the node")
			}
			return nil
		},
	}, nil
}

func (n *Node) pods(context.Context) ([]*corev1.Pod, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(n.workers))
	for _, w := range n.workers {
		pods = append(pods, w.pod.Load())
	}
	return pods, nil
}
