// Package access_test lets a real API server decide who may use a session: with tokens and client certificates that it gave, and roles
// that it knows. The manager's account has the permissions of config/rbac and no others.
package access_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bullpen-dev/bullpen/access"
	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/test/integration/env"
)

var cluster *env.Env

func TestMain(m *testing.M) { env.Main(m, &cluster) }

// The times for which these tests remember answers.
const (
	allowTTL = 2 * time.Second
	denyTTL  = time.Second
)

// soon bounds what should happen at once, on a machine that may be busy.
const soon = 60 * time.Second

// eventually calls check until it gives nil, and fails the test with its last error if that takes longer than soon.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(soon)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", soon, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// manager gives a config of a manager of the cluster, with the permissions of the files of config/rbac.
func manager(t *testing.T, e *env.Env, files ...string) *rest.Config {
	t.Helper()
	for _, namespace := range []string{"bullpen", "kube-system"} {
		err := e.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	token := e.Token(t, "bullpen", "bullpen-manager")
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(e.Root, "config", "rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Client.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
	}
	if len(files) > 0 {
		bindManager(t, e)
	}
	return &rest.Config{Host: e.Config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: e.Config.CAData}, BearerToken: token}
}

// bindManager binds the manager's account to its role.
func bindManager(t *testing.T, e *env.Env) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bullpen-manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bullpen-manager"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "bullpen", Name: "bullpen-manager"}},
	}
	if err := e.Client.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// start runs an Access until the end of the test.
func start(t *testing.T, config *rest.Config) *access.Access {
	t.Helper()
	a, err := access.New(config, access.Options{AllowTTL: allowTTL, DenyTTL: denyTTL, TokenTTL: denyTTL})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}

// serve serves, over TLS as the office does, whether a request may read a session of a namespace: 200 with who it is, 401, 403, or 503.
func serve(t *testing.T, a *access.Access, deed office.Deed) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := a.Authenticate(r)
		switch {
		case errors.Is(err, office.ErrUnauthenticated):
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		allowed, reason, err := a.Allowed(r.Context(), user, deed)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case !allowed:
			http.Error(w, reason, http.StatusForbidden)
		default:
			fmt.Fprint(w, user.Name)
		}
	}))
	pair := httptest.NewTLSServer(nil)
	pair.Close()
	server.TLS = a.TLS(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: pair.TLS.Certificates})
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// dial makes a client of the server, with a certificate or without.
func dial(t *testing.T, server *httptest.Server, certificates ...tls.Certificate) *http.Client {
	t.Helper()
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.Certificates = certificates
	transport := &http.Transport{TLSClientConfig: config, DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: soon}
}

// get asks the server, with a token or without.
func get(t *testing.T, c *http.Client, url, token string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// allow gives a subject a role in the namespace, and gives what takes it away again.
func allow(t *testing.T, namespace string, subject rbacv1.Subject, verb, resource string) (refuse func()) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "reader-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"bullpen.dev"}, Resources: []string{resource}, Verbs: []string{verb}}},
	}
	if err := cluster.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	if err := cluster.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := cluster.Client.Delete(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// uid is the UID that a namespace has now.
func uid(t *testing.T, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil {
		t.Fatal(err)
	}
	return string(namespace.UID)
}
