package access_test

// This file tests who a request is from and what they may do.

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bullpen-dev/bullpen/access"
	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/test/integration/env"
)

// readSession is the deed of reading a session of a work item in the namespace as it is now.
func readSession(t *testing.T, namespace string) office.Deed {
	return office.Deed{Verb: "get", Subresource: "session", Namespace: namespace, NamespaceUID: uid(t, namespace), Name: "fix-login"}
}

func TestTokensOfServiceAccounts(t *testing.T) {
	namespace := cluster.Namespace(t)
	a := start(t, manager(t, cluster, "role.yaml", "sessions.yaml"))
	server := serve(t, a, readSession(t, namespace))
	allow(t, namespace, account(namespace, "reader"), "get", "workitems/session")
	allow(t, namespace, account(namespace, "speaker"), "create", "workitems/message")
	allow(t, namespace, account(namespace, "user"), "get", "workitems")
	reader := cluster.Token(t, namespace, "reader")
	name := "system:serviceaccount:" + namespace + ":reader"
	for title, test := range map[string]struct {
		token  string
		status int
		says   string
	}{
		"with a role":                         {reader, http.StatusOK, name},
		"reissued by the API server's key":    {cluster.Reissued(t, reader), http.StatusOK, name},
		"with a role for something else":      {cluster.Token(t, namespace, "speaker"), http.StatusForbidden, "no role of system:serviceaccount:" + namespace + ":speaker"},
		"who may get the item, not a session": {cluster.Token(t, namespace, "user"), http.StatusForbidden, ":user allows it"},
		"without a role":                      {cluster.Token(t, namespace, "stranger"), http.StatusForbidden, ":stranger allows it"},
		"no token":                            {"", http.StatusUnauthorized, "send a bearer token"},
		"a bad token":                         {reader[:len(reader)-4] + "AAAA", http.StatusUnauthorized, "invalid bearer token"},
		"an expired token":                    {cluster.Expired(t, reader), http.StatusUnauthorized, "invalid bearer token"},
		"not a token at all":                  {"let-me-in", http.StatusUnauthorized, "invalid bearer token"},
	} {
		t.Run(title, func(t *testing.T) {
			if status, body := get(t, dial(t, server), server.URL, test.token); status != test.status || !strings.Contains(body, test.says) {
				t.Errorf("it gets %d: %s\nnot %d: %s", status, body, test.status, test.says)
			}
		})
	}
}

func TestClientCertificates(t *testing.T) {
	namespace := cluster.Namespace(t)
	a := start(t, manager(t, cluster, "role.yaml", "sessions.yaml"))
	server := serve(t, a, readSession(t, namespace))
	allow(t, namespace, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers-" + namespace}, "get", "workitems/session")
	certificate := func(name string, groups ...string) tls.Certificate {
		config := cluster.User(t, name, groups...)
		pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	grace := certificate("grace", "readers-"+namespace)
	eventually(t, func() error { // until the cluster's client CA is known
		if status, body := get(t, dial(t, server, grace), server.URL, ""); status != http.StatusOK || body != "grace" {
			return fmt.Errorf("the certificate gets %d: %s", status, body)
		}
		return nil
	})
	for title, test := range map[string]struct {
		certificates []tls.Certificate
		token        string
		status       int
	}{
		"of a group with a role":             {[]tls.Certificate{grace}, "", http.StatusOK},
		"of no group with a role":            {[]tls.Certificate{certificate("mallory")}, "", http.StatusForbidden},
		"of another CA":                      {[]tls.Certificate{server.TLS.Certificates[0]}, "", http.StatusUnauthorized},
		"no certificate":                     {nil, "", http.StatusUnauthorized},
		"one with a token, which counts":     {[]tls.Certificate{grace}, cluster.Token(t, namespace, "stranger"), http.StatusForbidden},
		"one with a bad token, which is not": {[]tls.Certificate{grace}, "bad", http.StatusOK},
	} {
		t.Run(title, func(t *testing.T) {
			if status, body := get(t, dial(t, server, test.certificates...), server.URL, test.token); status != test.status {
				t.Errorf("it gets %d: %s, not %d", status, body, test.status)
			}
		})
	}
}

func TestARoleThatIsGivenOrTakenIsSeenSoon(t *testing.T) {
	namespace := cluster.Namespace(t)
	a := start(t, manager(t, cluster, "role.yaml", "sessions.yaml"))
	server := serve(t, a, readSession(t, namespace))
	token := cluster.Token(t, namespace, "reader")
	becomes := func(want int, within time.Duration) {
		t.Helper()
		began := time.Now()
		eventually(t, func() error {
			if status, body := get(t, dial(t, server), server.URL, token); status != want {
				return fmt.Errorf("it gets %d: %s, not %d", status, body, want)
			}
			return nil
		})
		if took := time.Since(began); took > within+10*time.Second {
			t.Errorf("it took %s, not about %s", took, within)
		}
	}
	becomes(http.StatusForbidden, 0)
	refuse := allow(t, namespace, account(namespace, "reader"), "get", "workitems/session")
	becomes(http.StatusOK, denyTTL)
	refuse()
	becomes(http.StatusForbidden, allowTTL)
	// An account that is gone takes its tokens with it.
	allow(t, namespace, account(namespace, "reader"), "get", "workitems/session")
	becomes(http.StatusOK, denyTTL)
	if err := cluster.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "reader"}}); err != nil {
		t.Fatal(err)
	}
	becomes(http.StatusUnauthorized, denyTTL)
}

// There is no controller here that empties and removes a namespace, so the test plays it.
func TestANamespaceThatWasMadeAgainReadsNothingOfItsPredecessor(t *testing.T) {
	name := cluster.Namespace(t)
	a := start(t, manager(t, cluster, "role.yaml", "sessions.yaml"))
	old := serve(t, a, readSession(t, name))
	// The role is the cluster's: it outlives the namespace, as that of an administrator does.
	admin := cluster.Token(t, "default", "admin-"+name)
	role := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admin-" + name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{account("default", "admin-"+name)},
	}
	if err := cluster.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	wants := func(url string, want int, says string) {
		t.Helper()
		eventually(t, func() error {
			c := dial(t, old)
			c.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true // each server has its own certificate
			if status, body := get(t, c, url, admin); status != want || !strings.Contains(body, says) {
				return fmt.Errorf("it gets %d: %s, not %d: %s", status, body, want, says)
			}
			return nil
		})
	}
	wants(old.URL, http.StatusOK, "admin-"+name)

	namespace := &corev1.Namespace{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	wants(old.URL, http.StatusOK, "admin-"+name) // while it goes, it is still itself
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Spec.Finalizers = nil
	if err := cluster.Client.SubResource("finalize").Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, namespace); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace is not gone: %w", err)
		}
		return nil
	})
	wants(old.URL, http.StatusForbidden, "is gone")

	if err := cluster.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	wants(old.URL, http.StatusForbidden, "was made again")
	young := serve(t, a, readSession(t, name))
	wants(young.URL, http.StatusOK, "admin-"+name)
	wants(old.URL, http.StatusForbidden, "was made again")
}

func TestABrowsersToken(t *testing.T) {
	namespace := cluster.Namespace(t)
	a := start(t, manager(t, cluster, "role.yaml", "sessions.yaml"))
	server := serve(t, a, readSession(t, namespace))
	allow(t, namespace, account(namespace, "reader"), "get", "workitems/session")
	subprotocol := func(token string) string {
		return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
	}
	for title, test := range map[string]struct {
		token  string
		status int
	}{
		"of somebody with a role":    {cluster.Token(t, namespace, "reader"), http.StatusOK},
		"of somebody without a role": {cluster.Token(t, namespace, "stranger"), http.StatusForbidden},
		"a bad one":                  {"bad", http.StatusUnauthorized},
	} {
		t.Run(title, func(t *testing.T) {
			dialer := websocket.Dialer{TLSClientConfig: server.Client().Transport.(*http.Transport).TLSClientConfig,
				Subprotocols: []string{subprotocol(test.token), "v6.stream.bullpen.dev"}}
			// The server answers without an upgrade, which is what the test reads.
			_, response, err := dialer.DialContext(t.Context(), strings.Replace(server.URL, "https", "wss", 1), nil)
			if response == nil || response.StatusCode != test.status {
				t.Errorf("it gets %v, %v, not %d", response, err, test.status)
			}
		})
	}
}

func TestWithoutPermissionNobodyIsLetIn(t *testing.T) {
	own, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			if err := own.Stop(); err != nil {
				t.Error(err)
			}
		}
	})
	config := manager(t, own) // an account without any role
	a := start(t, config)
	deed := office.Deed{Verb: "get", Subresource: "session", Namespace: "default", Name: "fix-login"}
	server := serve(t, a, deed)
	reader := own.Token(t, "default", "reader")
	missing, err := a.Missing(t.Context())
	if err != nil || len(missing) != 4 {
		t.Errorf("%q is missing, %v", missing, err)
	}
	if status, body := get(t, dial(t, server), server.URL, reader); status != http.StatusServiceUnavailable || !strings.Contains(body, "config/rbac/sessions.yaml") {
		t.Errorf("it gets %d: %s", status, body)
	}

	// The bindings are applied while the manager runs.
	manager(t, own, "role.yaml", "sessions.yaml")
	eventually(t, func() error {
		missing, err := a.Missing(t.Context())
		if err != nil || len(missing) > 0 {
			return fmt.Errorf("%q is missing, %w", missing, err)
		}
		return nil
	})
	eventually(t, func() error {
		if status, body := get(t, dial(t, server), server.URL, reader); status != http.StatusForbidden {
			return fmt.Errorf("it gets %d: %s", status, body)
		}
		return nil
	})

	// Then the API server goes away.
	stopped = true
	if err := own.Stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // until what is remembered about the token is forgotten
		status, body := get(t, dial(t, server), server.URL, reader)
		if status == http.StatusOK {
			t.Fatal("somebody is let in though nobody said so")
		}
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "cannot be asked right now") {
			return fmt.Errorf("it gets %d: %s", status, body)
		}
		return nil
	})
	var unavailable *access.UnavailableError
	if _, _, err := a.Allowed(t.Context(), office.User{Name: "grace"}, deed); !errors.As(err, &unavailable) {
		t.Errorf("the error is %v", err)
	}
}
