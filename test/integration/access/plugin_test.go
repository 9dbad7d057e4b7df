package access_test

// This file has a user at a terminal: kubectl bullpen, with a token of a real API server and the roles of the documentation, reaches a real
// office through a real port-forward. What it does not have is a node: the test plays the kubelet's part, and the manager's pod is an object
// that runs nothing.

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/tunnel/tunneltest"
	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/pki"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

// town is a cluster with a manager in one namespace and a team in another.
type town struct {
	t *testing.T
	// manager is the namespace of the manager, shop that of the team, home the folder of its user's kubeconfig.
	manager, shop, home string
	// program is the plugin.
	program   string
	office    *office.Office
	feed      *sqlite.Feed
	forwarder *tunneltest.Forwarder
	item      *api.WorkItem
}

// newTown starts an office, and makes what a manager and a team make of a cluster.
func newTown(t *testing.T) *town {
	w := &town{t: t, manager: cluster.Namespace(t), shop: cluster.Namespace(t), home: t.TempDir()}
	name := fmt.Sprintf("bullpen-office.%s.svc", w.manager)
	tlsData, _, _, err := pki.Plan(nil, []string{name}, time.Now())
	w.must(err)
	pair, err := tls.X509KeyPair(tlsData[pki.CertKey], tlsData[pki.PrivateKeyKey])
	w.must(err)
	a := start(t, manager(t, cluster, "role.yaml", "sessions.yaml"))
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "office.db"), sqlite.Options{})
	w.must(err)
	w.feed, err = sqlite.OpenFeed(filepath.Join(t.TempDir(), "office.db.feed"), sqlite.FeedOptions{Store: st.ID()})
	w.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.office, err = office.New(office.Options{
		Store: st, Feed: w.feed, Access: a, Listener: listener, TLS: a.TLS(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.office.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		w.must(errors.Join(<-ended, w.feed.Close(), st.Close()))
	})
	<-w.office.Listening()
	w.populate(name, string(tlsData[pki.BundleKey]))
	w.build()
	return w
}

func (w *town) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *town) create(o client.Object) {
	w.t.Helper()
	w.must(cluster.Client.Create(w.t.Context(), o))
}

// populate makes the objects: the manager's Service, ConfigMap and pod on a node whose kubelet the test is, and a work item.
func (w *town) populate(name, ca string) {
	_, port, err := net.SplitHostPort(w.office.Addr().String())
	w.must(err)
	w.forwarder = &tunneltest.Forwarder{Dial: func(string) (net.Conn, error) { return net.Dial("tcp", "127.0.0.1:"+port) }}
	kubelet := httptest.NewTLSServer(w.forwarder)
	w.t.Cleanup(func() { w.forwarder.Cut(); kubelet.Close() })
	_, kubeletPort, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	w.must(err)
	number, err := strconv.Atoi(kubeletPort)
	w.must(err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + w.manager}}
	w.create(node)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	w.must(cluster.Client.Status().Update(w.t.Context(), node))

	labels := map[string]string{"app": "manager"}
	w.create(&corev1.Service{ObjectMeta: w.named("bullpen-office"), Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: 8443, TargetPort: intstr.FromString("office")}},
	}})
	w.create(&corev1.ConfigMap{ObjectMeta: w.named("bullpen-office"), Data: map[string]string{"url": "https://" + name + ":8443", "ca.crt": ca}})
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		pod := &corev1.Pod{ObjectMeta: w.named("manager-" + strings.ToLower(string(ready)))}
		pod.Labels = labels
		pod.Spec = corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{
			Name: "manager", Image: "x", Ports: []corev1.ContainerPort{{Name: "office", ContainerPort: 8443}},
		}}}
		w.create(pod)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		w.must(cluster.Client.Status().Update(w.t.Context(), pod))
	}

	team := model.Team{
		UID: "team", NamespaceUID: uid(w.t, w.shop), Key: model.TeamKey{Namespace: w.shop, Name: "core"}, Policy: dispatch.DefaultPolicy(),
		Config: protocol.DefaultTeamConfig(),
	}
	w.must(w.office.SyncTeam(w.t.Context(), team))
	w.item = &api.WorkItem{ObjectMeta: metav1.ObjectMeta{Namespace: w.shop, Name: "fix-login"}, Spec: api.WorkItemSpec{Team: "core", Person: "ada", Title: "Mend it"}}
	w.create(w.item)
	_, err = w.office.SyncItem(w.t.Context(), model.ItemFacts{
		ID: string(w.item.UID), Namespace: w.shop, Name: "fix-login", CreatedAt: time.Now(),
		Spec: model.ItemSpec{Team: "core", Person: "ada", Title: "Mend it", Kind: "task", Attempts: 1},
	})
	w.must(err)
}

func (w *town) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.manager, Name: name}
}

// give gives a service account of the team's namespace the roles of the documentation, and a kubeconfig.
func (w *town) give(name string, roles ...string) (kubeconfig string) {
	w.t.Helper()
	for _, role := range roles {
		switch role := documented(w.t, role).(type) {
		case *rbacv1.ClusterRole:
			role.Name += "-" + w.shop + "-" + name
			w.create(role)
			w.bind(w.shop, name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name})
		case *rbacv1.Role:
			role.Namespace = w.manager
			role.Name += "-" + name
			w.create(role)
			w.bind(w.manager, name, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name})
		}
	}
	kubeconfig = filepath.Join(w.home, name)
	w.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cluster.Config.Host, CertificateAuthorityData: cluster.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: cluster.Token(w.t, w.shop, name)}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: w.shop}},
		CurrentContext: "x",
	}, kubeconfig))
	return kubeconfig
}

func (w *town) bind(namespace, name string, ref rbacv1.RoleRef) {
	w.t.Helper()
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name}, RoleRef: ref, Subjects: []rbacv1.Subject{account(w.shop, name)},
	})
}

// documented is a role of the plugin's page.
func documented(t *testing.T, name string) client.Object {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(cluster.Root, "docs", "kubectl-bullpen.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		var role client.Object = &rbacv1.ClusterRole{}
		if strings.Contains(block[1], "kind: Role\n") {
			role = &rbacv1.Role{}
		}
		if err := yaml.UnmarshalStrict([]byte(block[1]), role); err != nil {
			t.Fatal(err)
		}
		if role.GetName() == name {
			return role
		}
	}
	t.Fatalf("the page has no role %s", name)
	return nil
}

// build builds kubectl-bullpen.
func (w *town) build() {
	w.t.Helper()
	w.program = filepath.Join(w.t.TempDir(), "kubectl-bullpen")
	build := exec.CommandContext(w.t.Context(), "go", "build", "-o", w.program, "./cmd/kubectl-bullpen")
	build.Dir, build.Env = cluster.Root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if output, err := build.CombinedOutput(); err != nil {
		w.t.Fatalf("%v\n%s", err, output)
	}
}

// plugin makes a command of kubectl-bullpen as the user of the kubeconfig.
func (w *town) plugin(kubeconfig string, args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), w.program, append(args, "--office-namespace", w.manager)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Cancel = func() error { return cmd.Process.Kill() }
	return cmd
}

// run runs a command line to its end.
func (w *town) run(kubeconfig string, args ...string) (output string, code int) {
	w.t.Helper()
	cmd := w.plugin(kubeconfig, args...)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// session is the item's.
func (w *town) session() string {
	w.t.Helper()
	return model.SessionID(w.office.StoreID()[:8], string(w.item.UID), 1)
}

// append appends a record of a program to the feed, as an agent's upload does.
func (w *town) append(typ, payload string) {
	w.t.Helper()
	_, err := w.feed.Append(w.t.Context(), store.Batch{
		Ref: feed.SessionRef{ID: w.session(), Namespace: w.shop, Team: "core"},
		Entries: []store.FeedEntry{{Record: &feed.Record{
			Kind: feed.KindUnknown, Source: feed.SourceCommand, Format: feed.FormatCommand, Type: typ, SessionID: w.session(), Payload: []byte(payload),
			CreatedAt: time.Now(),
		}}},
	})
	w.must(err)
}

func TestAUserReadsAndSpeaksThroughAPortForward(t *testing.T) {
	w := newTown(t)
	grace := w.give("grace", "bullpen-session-user", "bullpen-office-user")
	w.append(feed.Stdout, `{"lines":["it works"]}`)
	eventually(t, func() error {
		output, code := w.run(grace, "logs", "fix-login")
		if code != 0 || !strings.Contains(output, "it works") || !strings.Contains(output, "Mend it") {
			return fmt.Errorf("it exits with %d:\n%s", code, output)
		}
		return nil
	})

	// Somebody follows, somebody speaks, and the connection breaks in between.
	follow := w.plugin(grace, "logs", "fix-login", "-f")
	shown := &lockedText{}
	follow.Stdout, follow.Stderr = shown, shown
	w.must(follow.Start())
	shows := func(want string) {
		t.Helper()
		eventually(t, func() error {
			if got := shown.String(); !strings.Contains(got, want) {
				return fmt.Errorf("%q is not shown, but\n%s", want, got)
			}
			return nil
		})
	}
	shows("it works")
	for i := range 3 {
		if output, code := w.run(grace, "say", "fix-login", fmt.Sprintf("And the tests, %d?", i)); code != 0 {
			t.Errorf("say exits with %d: %s", code, output)
		}
		shows(fmt.Sprintf("And the tests, %d?", i))
		w.forwarder.Cut()
	}
	if n := w.forwarder.Requests(); n < 7 {
		t.Errorf("there were %d port-forwards, which is too few for seven commands of which one was cut", n)
	}
	if n := strings.Count(shown.String(), "And the tests, 0?"); n != 1 {
		t.Errorf("what was said once is shown %d times:\n%s", n, shown)
	}
	if output, code := w.run(grace, "stop", "fix-login"); code != 0 && !strings.Contains(output, "runs") {
		t.Errorf("stop exits with %d: %s", code, output)
	}
	w.must(follow.Process.Signal(os.Interrupt))
	err := follow.Wait()
	t.Logf("it showed\n%s", shown)
	if follow.ProcessState.ExitCode() != 130 {
		t.Errorf("after an interrupt, it ends with %v:\n%s", err, shown)
	}
}

func TestAUserWithoutARoleHearsWhichOneIsMissing(t *testing.T) {
	w := newTown(t)
	for name, test := range map[string]struct {
		roles []string
		args  []string
		says  string
	}{
		"nobody":   {nil, []string{"logs", "fix-login"}, "name: bullpen-office-user"},
		"visitor":  {[]string{"bullpen-office-user"}, []string{"logs", "fix-login"}, "you may not get workitems/session of bullpen.dev in namespace " + w.shop},
		"outsider": {[]string{"bullpen-session-user"}, []string{"say", "fix-login", "hello"}, "name: bullpen-office-user"},
	} {
		t.Run(name, func(t *testing.T) {
			if output, code := w.run(w.give(name, test.roles...), test.args...); code != 2 || !strings.Contains(output, test.says) {
				t.Errorf("it exits with %d: %s", code, output)
			}
		})
	}
}

// A client certificate goes through the port-forward, because TLS is between the user and the office.
func TestAUserWithACertificate(t *testing.T) {
	w := newTown(t)
	w.append(feed.Stdout, `{"lines":["it works"]}`)
	config := cluster.User(t, "root-of-"+w.shop, "system:masters")
	kubeconfig := filepath.Join(w.home, "root")
	w.must(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: w.shop}},
		CurrentContext: "x",
	}, kubeconfig))
	eventually(t, func() error {
		if output, code := w.run(kubeconfig, "logs", "fix-login"); code != 0 || !strings.Contains(output, "it works") {
			return fmt.Errorf("it exits with %d: %s", code, output)
		}
		return nil
	})
	// And a browser is offered nothing but certificates of that CA.
	conn, err := tls.Dial("tcp", w.office.Addr().String(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, //nolint:gosec // only the offer counts
		GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(info.AcceptableCAs) != 1 {
				t.Errorf("the office names %d CAs", len(info.AcceptableCAs))
			}
			return &tls.Certificate{}, nil
		}})
	w.must(err)
	w.must(conn.Close())
}

// lockedText is what a program prints.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var _ io.Writer = (*lockedText)(nil)
