package access

// These tests ask a small API server that says what a test wants. test/integration/access asks a real one.

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/bullpen-dev/bullpen/office"
)

// apiServer answers reviews and knows namespaces.
type apiServer struct {
	*httptest.Server
	mu sync.Mutex
	// tokens say whose a token is, roles what a user may do ("ada get session"), namespaces which UID a name has.
	tokens     map[string]string
	roles      map[string]bool
	namespaces map[string]string
	// status, if set, is what every question is answered with; hold, if set, keeps answers back until it is closed.
	status int
	hold   chan struct{}
	// asked counts the questions by their resource, atOnce is the most there were side by side.
	asked         map[string]int
	running, most atomic.Int64
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{tokens: map[string]string{}, roles: map[string]bool{}, namespaces: map[string]string{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	running := s.running.Add(1)
	defer s.running.Add(-1)
	for most := s.most.Load(); running > most && !s.most.CompareAndSwap(most, running); most = s.most.Load() {
	}
	s.mu.Lock()
	hold, status := s.hold, s.status
	path := strings.Split(r.URL.Path, "/")
	what := path[len(path)-1]
	if strings.Contains(r.URL.Path, "/namespaces/") {
		what = "namespaces"
	}
	s.asked[what]++
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if status != 0 {
		answer(w, status, metav1.Status{Status: "Failure", Code: int32(status), Reason: metav1.StatusReason(strings.ReplaceAll(http.StatusText(status), " ", "")),
			Message: "10.0.0.1 said so", TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch what {
	case "tokenreviews":
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		if name := s.tokens[review.Spec.Token]; name != "" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: name, UID: "uid-of-" + name, Groups: []string{"system:authenticated"}, Extra: map[string]authenticationv1.ExtraValue{"via": {"test"}},
			}}
		} else {
			review.Status.Error = "invalid bearer token"
		}
		answer(w, http.StatusCreated, review)
	case "subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		a := review.Spec.ResourceAttributes
		review.Status.Allowed = a.Group == "bullpen.dev" && a.Resource == "workitems" && s.roles[review.Spec.User+" "+a.Verb+" "+a.Subresource]
		answer(w, http.StatusCreated, review)
	case "selfsubjectaccessreviews":
		var review authorizationv1.SelfSubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Allowed = s.roles["manager "+review.Spec.ResourceAttributes.Verb+" "+review.Spec.ResourceAttributes.Resource]
		answer(w, http.StatusCreated, review)
	case "namespaces":
		uid, ok := s.namespaces[path[len(path)-1]]
		if !ok {
			answer(w, http.StatusNotFound, metav1.Status{Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound,
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}})
			return
		}
		answer(w, http.StatusOK, metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: path[len(path)-1], UID: types.UID(uid)}})
	}
}

func answer(w http.ResponseWriter, status int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object)
}

// set changes what the server answers.
func (s *apiServer) set(change func(*apiServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *apiServer) count(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[resource]
}

func newAccess(t *testing.T, s *apiServer, o Options) *Access {
	t.Helper()
	a, err := New(&rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// request is one with these headers, name and value by turns.
func request(t *testing.T, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/sessions", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func subprotocol(token string) string {
	return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
}

func TestWhoSendsARequest(t *testing.T) {
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket"}
	for name, test := range map[string]struct {
		headers []string
		status  int
		// user is who it is; refused and unavailable are parts of errors.
		user, refused, unavailable string
	}{
		"a token that the API server knows":             {headers: []string{"Authorization", "Bearer good"}, user: "ada"},
		"a token that it does not know":                 {headers: []string{"Authorization", "Bearer bad"}, refused: "invalid bearer token"},
		"no credentials":                                {refused: "send a bearer token"},
		"a password":                                    {headers: []string{"Authorization", "Basic YWRhOmFkYQ=="}, refused: "send a bearer token"},
		"a token longer than any":                       {headers: []string{"Authorization", "Bearer " + strings.Repeat("x", maxToken+1)}, refused: "invalid bearer token"},
		"a browser's subprotocol":                       {headers: append(upgrade, "Sec-WebSocket-Protocol", subprotocol("good")+", v6.stream.bullpen.dev"), user: "ada"},
		"a browser's subprotocol with a bad token":      {headers: append(upgrade, "Sec-WebSocket-Protocol", subprotocol("bad")+", v6.stream.bullpen.dev"), refused: "invalid bearer token"},
		"a browser's subprotocol alone":                 {headers: append(upgrade, "Sec-WebSocket-Protocol", subprotocol("good")), refused: "missing additional subprotocol"},
		"the subprotocol without an upgrade":            {headers: []string{"Sec-WebSocket-Protocol", subprotocol("good") + ", v6.stream.bullpen.dev"}, refused: "send a bearer token"},
		"the headers of a front proxy":                  {headers: []string{"X-Remote-User", "ada", "X-Remote-Group", "system:masters"}, refused: "send a bearer token"},
		"a good token that asks for impersonation":      {headers: []string{"Authorization", "Bearer good", "Impersonate-User", "grace"}, refused: "Impersonate-User"},
		"impersonation of extra fields":                 {headers: []string{"Authorization", "Bearer good", "impersonate-extra-scopes", "all"}, refused: "nobody can act as somebody else"},
		"the API server has an error":                   {headers: []string{"Authorization", "Bearer good"}, status: 500, unavailable: "cannot be asked right now"},
		"the API server does not let the manager ask":   {headers: []string{"Authorization", "Bearer good"}, status: 403, unavailable: "config/rbac/sessions.yaml"},
		"the API server does not know the manager":      {headers: []string{"Authorization", "Bearer good"}, status: 401, unavailable: "the manager's own credentials"},
		"the API server is away, but there is no token": {status: 500, refused: "send a bearer token"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.tokens["good"], server.status = "ada", test.status
			a := newAccess(t, server, Options{})
			r := request(t, test.headers...)
			for range 2 { // the second time, the request must still have all it had
				user, err := a.Authenticate(r)
				var unavailable *UnavailableError
				switch {
				case test.user != "":
					if err != nil || user.Name != test.user || user.UID != "uid-of-ada" || user.Extra["via"][0] != "test" || user.Groups[0] != "system:authenticated" {
						t.Errorf("it is of %+v, %v", user, err)
					}
				case test.refused != "":
					if !errors.Is(err, office.ErrUnauthenticated) || !strings.Contains(err.Error(), test.refused) {
						t.Errorf("the error is %v, which is not %q", err, test.refused)
					}
				case !errors.As(err, &unavailable) || errors.Is(err, office.ErrUnauthenticated) || !strings.Contains(err.Error(), test.unavailable):
					t.Errorf("the error is %v, not that it cannot be found out: %q", err, test.unavailable)
				case strings.Contains(err.Error(), "10.0.0.1"):
					t.Errorf("the error tells of the inside of the cluster: %v", err)
				}
			}
		})
	}
}

func TestWhatSomebodyMayDo(t *testing.T) {
	ada := office.User{Name: "ada"}
	read := office.Deed{Verb: "get", Subresource: "session", Namespace: "shop", NamespaceUID: "1", Name: "fix-login"}
	for name, test := range map[string]struct {
		edit    func(*apiServer, *office.Deed)
		allowed bool
		// reason and unavailable are parts of what is said.
		reason, unavailable string
	}{
		"with a role":                             {allowed: true},
		"without a role":                          {edit: func(_ *apiServer, d *office.Deed) { d.Verb, d.Subresource = "create", "message" }, reason: "no role of ada allows it"},
		"without a role for all namespaces":       {edit: func(_ *apiServer, d *office.Deed) { *d = office.Deed{Verb: "list", Subresource: "session"} }, reason: "no role of ada allows it"},
		"with a role, and no namespace is meant":  {edit: func(_ *apiServer, d *office.Deed) { d.NamespaceUID = "" }, allowed: true},
		"in a namespace that was made again":      {edit: func(s *apiServer, _ *office.Deed) { s.namespaces["shop"] = "2" }, reason: "was made again"},
		"in a namespace that is gone":             {edit: func(s *apiServer, _ *office.Deed) { delete(s.namespaces, "shop") }, reason: "is gone"},
		"while the API server has an error":       {edit: func(s *apiServer, _ *office.Deed) { s.status = 503 }, unavailable: "cannot be asked right now"},
		"while the manager may not ask":           {edit: func(s *apiServer, _ *office.Deed) { s.status = 403 }, unavailable: "may not create subjectaccessreviews"},
		"while nothing listens at the API server": {edit: func(s *apiServer, _ *office.Deed) { s.CloseClientConnections(); s.Listener.Close() }, unavailable: "cannot be asked right now"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t)
			server.roles["ada get session"], server.namespaces["shop"] = true, "1"
			deed := read
			if test.edit != nil {
				test.edit(server, &deed)
			}
			allowed, reason, err := newAccess(t, server, Options{}).Allowed(t.Context(), ada, deed)
			var unavailable *UnavailableError
			switch {
			case allowed != test.allowed:
				t.Errorf("allowed is %v: %s, %v", allowed, reason, err)
			case test.unavailable != "" && (!errors.As(err, &unavailable) || !strings.Contains(err.Error(), test.unavailable)):
				t.Errorf("the error is %v, not %q", err, test.unavailable)
			case test.unavailable == "" && (err != nil || !strings.Contains(reason, test.reason)):
				t.Errorf("the reason is %q, %v, not %q", reason, err, test.reason)
			}
		})
	}
}

func TestAnswersAreRememberedForAWhile(t *testing.T) {
	server := newAPIServer(t)
	server.tokens["good"], server.roles["ada get session"], server.namespaces["shop"] = "ada", true, "1"
	a := newAccess(t, server, Options{})
	ada, deed := office.User{Name: "ada"}, office.Deed{Verb: "get", Subresource: "session", Namespace: "shop", NamespaceUID: "1", Name: "x"}
	for range 5 {
		if _, err := a.Authenticate(request(t, "Authorization", "Bearer good")); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Authenticate(request(t, "Authorization", "Bearer bad")); err == nil {
			t.Fatal("a bad token is somebody's")
		}
		if allowed, _, err := a.Allowed(t.Context(), ada, deed); !allowed || err != nil {
			t.Fatal(allowed, err)
		}
		refused := deed
		refused.Verb = "list"
		if allowed, _, err := a.Allowed(t.Context(), ada, refused); allowed || err != nil {
			t.Fatal(allowed, err)
		}
	}
	if n := server.count("tokenreviews"); n != 2 {
		t.Errorf("two tokens were asked about %d times", n)
	}
	if n := server.count("subjectaccessreviews"); n != 2 {
		t.Errorf("two deeds were asked about %d times", n)
	}
	// What is remembered outlives a short absence of the API server; what is not, is no answer.
	server.set(func(s *apiServer) { s.status = 500 })
	if allowed, _, err := a.Allowed(t.Context(), ada, office.Deed{Verb: "get", Subresource: "session", Namespace: "shop", Name: "x"}); !allowed || err != nil {
		t.Errorf("what is remembered is %v, %v", allowed, err)
	}
	if allowed, _, err := a.Allowed(t.Context(), office.User{Name: "grace"}, deed); allowed || err == nil {
		t.Errorf("what is not remembered is %v, %v", allowed, err)
	}
}

func TestAnErrorIsNotRemembered(t *testing.T) {
	server := newAPIServer(t)
	server.roles["ada get session"], server.status = true, 500
	a := newAccess(t, server, Options{})
	deed := office.Deed{Verb: "get", Subresource: "session", Namespace: "shop"}
	if _, _, err := a.Allowed(t.Context(), office.User{Name: "ada"}, deed); err == nil {
		t.Fatal("there is no error")
	}
	server.set(func(s *apiServer) { s.status = 0 })
	if allowed, _, err := a.Allowed(t.Context(), office.User{Name: "ada"}, deed); !allowed || err != nil {
		t.Errorf("allowed is %v, %v", allowed, err)
	}
}

func TestAnswersGetOld(t *testing.T) {
	server := newAPIServer(t)
	server.roles["ada get session"] = true
	a := newAccess(t, server, Options{AllowTTL: time.Millisecond, DenyTTL: time.Millisecond})
	deed := office.Deed{Verb: "get", Subresource: "session", Namespace: "shop"}
	becomes := func(want bool) {
		t.Helper()
		server.set(func(s *apiServer) { s.roles["ada get session"] = want })
		for deadline := time.Now().Add(10 * time.Second); ; {
			allowed, _, err := a.Allowed(t.Context(), office.User{Name: "ada"}, deed)
			if err == nil && allowed == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("allowed stays %v, %v", allowed, err)
			}
		}
	}
	becomes(true)
	becomes(false)
	becomes(true)
}

// A thousand watchers of one user that are checked at the same time are one question, and users beyond the bound wait for their turn.
func TestQuestionsAreSharedAndBounded(t *testing.T) {
	server := newAPIServer(t)
	server.roles["ada get session"] = true
	server.hold = make(chan struct{})
	a := newAccess(t, server, Options{AskTimeout: 20 * time.Second})
	var group sync.WaitGroup
	var allowed atomic.Int64
	ask := func(n int, user office.User, verb string) {
		for range n {
			group.Go(func() {
				if ok, _, err := a.Allowed(t.Context(), user, office.Deed{Verb: verb, Subresource: "session"}); ok && err == nil {
					allowed.Add(1)
				}
			})
		}
	}
	ask(1000, office.User{Name: "ada"}, "get")
	for i := range 3 * askAtATime {
		ask(1, office.User{Name: "somebody", UID: strings.Repeat("x", i)}, "get")
	}
	for deadline := time.Now().Add(10 * time.Second); server.running.Load() < askAtATime && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	close(server.hold)
	group.Wait()
	if allowed.Load() != 1000 {
		t.Errorf("%d of 1000 are allowed", allowed.Load())
	}
	if n := server.count("subjectaccessreviews"); n > 3*askAtATime+10 {
		t.Errorf("it took %d questions", n)
	}
	if most := server.most.Load(); most > askAtATime {
		t.Errorf("there were %d questions side by side", most)
	}
}

func TestAnAPIServerThatHangsIsNoAnswer(t *testing.T) {
	server := newAPIServer(t)
	server.hold = make(chan struct{})
	defer close(server.hold)
	a := newAccess(t, server, Options{AskTimeout: 50 * time.Millisecond})
	var unavailable *UnavailableError
	if _, _, err := a.Allowed(t.Context(), office.User{Name: "ada"}, office.Deed{Verb: "get"}); !errors.As(err, &unavailable) {
		t.Errorf("the error is %v", err)
	}
	if _, err := a.Authenticate(request(t, "Authorization", "Bearer good")); !errors.As(err, &unavailable) {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := a.Allowed(ctx, office.User{Name: "grace"}, office.Deed{Verb: "get"}); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up gets %v", err)
	}
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	server := newAPIServer(t)
	a := newAccess(t, server, Options{})
	for _, step := range []struct{ give, missing string }{
		{"", "create tokenreviews, create subjectaccessreviews, get namespaces, get configmaps kube-system/extension-apiserver-authentication"},
		{"manager create tokenreviews", "create subjectaccessreviews, get namespaces, get configmaps kube-system/extension-apiserver-authentication"},
		{"manager create subjectaccessreviews", "get namespaces, get configmaps kube-system/extension-apiserver-authentication"},
		{"manager get namespaces", "get configmaps kube-system/extension-apiserver-authentication"},
		{"manager get configmaps", ""},
	} {
		server.set(func(s *apiServer) { s.roles[step.give] = true })
		missing, err := a.Missing(t.Context())
		if got := strings.Join(missing, ", "); err != nil || got != step.missing {
			t.Errorf("after %q, %q is missing, %v", step.give, got, err)
		}
	}
	server.set(func(s *apiServer) { s.status = 500 })
	if _, err := a.Missing(t.Context()); err == nil {
		t.Error("without an answer, nothing is missing")
	}
}

func TestTheServerAsksForCertificatesOfTheClustersCA(t *testing.T) {
	var bundle []byte
	base := &tls.Config{MinVersion: tls.VersionTLS13}
	config := withClientCA(base, func() []byte { return bundle })
	if base.ClientAuth != tls.NoClientCert || config.ClientAuth != tls.RequestClientCert || config.MinVersion != tls.VersionTLS13 {
		t.Errorf("the base asks %v, the server %v from %x on", base.ClientAuth, config.ClientAuth, config.MinVersion)
	}
	if before, err := config.GetConfigForClient(nil); before != nil || err != nil {
		t.Errorf("without a CA, it is %v, %v", before, err)
	}
	names := func() int {
		t.Helper()
		c, err := config.GetConfigForClient(nil)
		if err != nil || c.ClientAuth != tls.RequestClientCert || c.GetConfigForClient != nil {
			t.Fatalf("%v, %v", c, err)
		}
		again, _ := config.GetConfigForClient(nil)
		if again != c {
			t.Error("every connection has a configuration of its own")
		}
		return len(c.ClientCAs.Subjects()) //nolint:staticcheck // of a pool that is not the system's
	}
	first := authority(t, "first")
	bundle = first
	if n := names(); n != 1 {
		t.Errorf("%d CAs are named, not 1", n)
	}
	bundle = append(append([]byte{}, first...), authority(t, "second")...)
	if n := names(); n != 2 {
		t.Errorf("%d CAs are named, not 2", n)
	}
}
