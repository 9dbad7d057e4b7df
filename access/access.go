// Package access lets Kubernetes decide who may use a session. The office serves sessions itself, beside the Kubernetes API server, but
// keeps no users, roles or tokens: it asks the API server who sends a request and whether they may do that (delegated authentication and
// authorization), so that the roles of a cluster hold for sessions too.
//
// A request is of somebody if it brings one of these:
//   - a bearer token that the API server knows (TokenReview);
//   - a client certificate of the cluster's client CA, which is kept up to date from the ConfigMap extension-apiserver-authentication;
//   - the token as WebSocket subprotocol base64url.bearer.authorization.k8s.io.TOKEN beside another subprotocol, for browsers, which
//     cannot set headers there.
//
// Nobody is anonymous here. Headers of front proxies are ignored, and a request that asks for impersonation is refused.
//
// What somebody may do is a SubjectAccessReview on a subresource of a work item: get or list of workitems/session, create of
// workitems/message or of workitems/stop, in the group bullpen.dev. Where the deed names the UID of a namespace, the namespace that has the
// name now must have that UID: one that was made again under an old name gives no access to what was in its predecessor, and of one that
// is gone nobody reads anything any more.
//
// Answers are remembered briefly: who has a token for 10 s, what is allowed for a minute, what is not for 10 s, and the UID of a namespace
// for a second. When the API server cannot be asked, what is remembered still counts; everything else is an error, never an answer.
package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bullpen-dev/bullpen/office"
)

// How long answers are remembered, at most how many of them, and how long and how often at a time the API server is asked.
const (
	tokenTTL     = 10 * time.Second
	allowTTL     = time.Minute
	denyTTL      = 10 * time.Second
	namespaceTTL = time.Second
	// remembered bounds each memory but that of tokens, whose entries are few because the API server limits how many are asked about.
	remembered  = 8192
	askTimeout  = 5 * time.Second
	askAtATime  = 64
	maxToken    = 64 << 10
	warnAtMost  = 10 * time.Second
	checkPeriod = time.Minute
)

// Options are what an Access is made of.
type Options struct {
	// Logger takes what is wrong with asking; nil drops it.
	Logger *slog.Logger
	// AllowTTL and DenyTTL are how long an answer about what somebody may do is remembered; 0 is a minute and 10 s.
	AllowTTL, DenyTTL time.Duration
	// TokenTTL is how long it is remembered whose a token is, or that it is nobody's; 0 is 10 s.
	TokenTTL time.Duration
	// AskTimeout bounds one question to the API server; 0 is 5 s.
	AskTimeout time.Duration
}

// Access asks the Kubernetes API server. It implements office.Access, and is a Runnable of the manager: only while it runs are client
// certificates known.
type Access struct {
	client     kubernetes.Interface
	log        *slog.Logger
	clientCA   *dynamiccertificates.ConfigMapCAController
	how        []authenticator.Request
	deeds      *deeds
	namespaces *namespaces

	mu     sync.Mutex
	warned time.Time
}

var _ office.Access = (*Access)(nil)

// New makes an Access that asks the API server of the config, as the manager: its account must be bound to the ClusterRole
// system:auth-delegator, to the Role extension-apiserver-authentication-reader in kube-system, and to a role that may get namespaces.
func New(config *rest.Config, o Options) (*Access, error) {
	orDefault := func(d *time.Duration, usual time.Duration) {
		if *d == 0 {
			*d = usual
		}
	}
	orDefault(&o.AllowTTL, allowTTL)
	orDefault(&o.DenyTTL, denyTTL)
	orDefault(&o.TokenTTL, tokenTTL)
	orDefault(&o.AskTimeout, askTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // what bounds the questions is how many there are at a time
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("access: make a client: %w", err)
	}
	clientCA, err := dynamiccertificates.NewDynamicCAFromConfigMapController("session-client-ca", authNamespace, authConfigMap, authKey, client)
	if err != nil {
		return nil, fmt.Errorf("access: follow the cluster's client CA: %w", err)
	}
	ask := &asker{timeout: o.AskTimeout, free: make(chan struct{}, askAtATime)}
	tokens := tokencache.New(&tokens{client: client.AuthenticationV1().TokenReviews(), ask: ask}, false, o.TokenTTL, o.TokenTTL)
	return &Access{
		client:   client,
		log:      o.Logger,
		clientCA: clientCA,
		how: []authenticator.Request{
			bearertoken.New(tokens),
			websocket.NewProtocolAuthenticator(tokens),
			group.NewAuthenticatedGroupAdder(x509.NewDynamic(clientCA.VerifyOptions, x509.CommonNameUserConversion)),
		},
		deeds:      newDeeds(client.AuthorizationV1().SubjectAccessReviews(), ask, o.AllowTTL, o.DenyTTL),
		namespaces: newNamespaces(client.CoreV1().Namespaces(), ask),
	}, nil
}

// NeedLeaderElection says that access is ready before its manager leads.
func (a *Access) NeedLeaderElection() bool { return false }

// Start follows the cluster's client CA and looks whether the API server lets itself be asked, until ctx ends.
func (a *Access) Start(ctx context.Context) error {
	go a.check(ctx)
	a.clientCA.Run(ctx, 1)
	return nil
}

// Authenticate finds out who sends the request. Without credentials, or with ones that nobody vouches for, the error is
// office.ErrUnauthenticated and says what is wrong; where it cannot be found out, it is an *UnavailableError. The request stays as it is, so
// that the same one can be asked about again.
func (a *Access) Authenticate(r *http.Request) (office.User, error) {
	if header := impersonates(r.Header); header != "" {
		return office.User{}, fmt.Errorf("%w: the header %s is not served here: nobody can act as somebody else", office.ErrUnauthenticated, header)
	}
	problem := errors.New("send a bearer token of the cluster, or a client certificate")
	var unavailable *UnavailableError
	for _, how := range a.how {
		// What authenticates takes the token out of the request.
		copied := r.WithContext(r.Context())
		copied.Header = r.Header.Clone()
		response, ok, err := how.AuthenticateRequest(copied)
		if ok && err == nil {
			u := response.User
			return office.User{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}, nil
		}
		if err != nil && !errors.As(err, &unavailable) {
			problem = err
		}
	}
	switch {
	case r.Context().Err() != nil:
		return office.User{}, r.Context().Err()
	case unavailable != nil:
		return office.User{}, a.warn(unavailable)
	}
	return office.User{}, fmt.Errorf("%w: %w", office.ErrUnauthenticated, problem)
}

// Allowed says whether the user may do that now, and if not, why. Where it cannot be found out, the error is an *UnavailableError.
func (a *Access) Allowed(ctx context.Context, user office.User, deed office.Deed) (allowed bool, reason string, err error) {
	allowed, reason, err = a.deeds.allowed(ctx, user, deed)
	if err == nil && allowed && deed.NamespaceUID != "" {
		allowed, reason, err = a.namespaces.is(ctx, deed.Namespace, deed.NamespaceUID)
	}
	var unavailable *UnavailableError
	if errors.As(err, &unavailable) {
		err = a.warn(unavailable)
	}
	if err != nil {
		return false, "", err
	}
	return allowed, reason, nil
}

// impersonates gives the header by which a request asks to count as somebody else's; empty where it does not. To drop it silently would
// show more than somebody asked for who tries out what another one may see.
func impersonates(header http.Header) string {
	for name := range header {
		if len(name) > len(impersonate) && name[:len(impersonate)] == impersonate {
			return name
		}
	}
	return ""
}

// impersonate begins the names of those headers, as net/http writes them.
const impersonate = "Impersonate-"

// warn logs why the API server cannot be asked, with the cause that users are not told, and not for every request.
func (a *Access) warn(err *UnavailableError) error {
	a.mu.Lock()
	again := time.Since(a.warned) >= warnAtMost
	if again {
		a.warned = time.Now()
	}
	a.mu.Unlock()
	if again {
		a.log.Warn("Nobody can use sessions, because the Kubernetes API server cannot be asked", "problem", err.Error(), "error", err.Cause)
	}
	return err
}
