package access

// This file asks the API server the two questions: whose is this token, and may they do that.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/bullpen-dev/bullpen/office"
)

// group and resource are what sessions belong to, in the words of roles.
const (
	apiGroup = "bullpen.dev"
	resource = "workitems"
)

// UnavailableError says that it could not be found out who somebody is or what they may do. Its text is for users: it says what is wrong
// and what to do, and nothing about the inside of the cluster.
type UnavailableError struct {
	// Problem is a sentence about what is wrong.
	Problem string
	// Cause is what the API server or the way to it said.
	Cause error
}

// Error is the problem without the cause.
func (e *UnavailableError) Error() string { return e.Problem }

// Unwrap is the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// unavailable says what is wrong with asking, where right is the permission that the question needs.
func unavailable(right string, err error) error {
	var already *UnavailableError
	switch {
	case errors.As(err, &already):
		return already
	case apierrors.IsForbidden(err):
		return &UnavailableError{Problem: "the manager may not " + right + ": an administrator has to apply config/rbac/sessions.yaml", Cause: err}
	case apierrors.IsUnauthorized(err):
		return &UnavailableError{Problem: "the Kubernetes API server does not accept the manager's own credentials; try again soon", Cause: err}
	}
	return &UnavailableError{Problem: "the Kubernetes API server cannot be asked right now; try again soon", Cause: err}
}

// asker bounds the questions to the API server in time, and how many there are side by side: what asks without credentials that are
// remembered costs a question, and may not become a flood there.
type asker struct {
	timeout time.Duration
	free    chan struct{}
}

func (a *asker) ask(ctx context.Context, right string, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	select {
	case a.free <- struct{}{}:
		defer func() { <-a.free }()
	case <-ctx.Done():
		return &UnavailableError{Problem: "too many people ask for sessions at the same time; try again soon", Cause: ctx.Err()}
	}
	if err := question(ctx); err != nil {
		return unavailable(right, err)
	}
	return nil
}

// tokens finds out whose a token is. It implements authenticator.Token.
type tokens struct {
	client authenticationclient.TokenReviewInterface
	ask    *asker
}

// AuthenticateToken gives no error for a token that is nobody's, so that this is remembered too.
func (t *tokens) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if len(token) > maxToken {
		return nil, false, nil
	}
	var review *authenticationv1.TokenReview
	err := t.ask.ask(ctx, "create tokenreviews", func(ctx context.Context) (err error) {
		review, err = t.client.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		return err
	})
	if err != nil || !review.Status.Authenticated || review.Status.User.Username == "" {
		return nil, false, err
	}
	u := review.Status.User
	info := &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: make(map[string][]string, len(u.Extra))}
	for key, values := range u.Extra {
		info.Extra[key] = values
	}
	return &authenticator.Response{User: info}, true, nil
}

// verdict is what the API server said about a deed.
type verdict struct {
	allowed bool
	reason  string
}

// deeds finds out what users may do.
type deeds struct {
	client      authorizationclient.SubjectAccessReviewInterface
	ask         *asker
	allow, deny time.Duration
	known       *cache.LRUExpireCache
	running     singleflight.Group
}

func newDeeds(client authorizationclient.SubjectAccessReviewInterface, ask *asker, allow, deny time.Duration) *deeds {
	return &deeds{client: client, ask: ask, allow: allow, deny: deny, known: cache.NewLRUExpireCache(remembered)}
}

func (d *deeds) allowed(ctx context.Context, who office.User, deed office.Deed) (bool, string, error) {
	spec := reviewOf(who, deed)
	key, err := json.Marshal(spec)
	if err != nil {
		return false, "", fmt.Errorf("access: %w", err)
	}
	v, err := shared(ctx, d.known, &d.running, string(key), func(ctx context.Context) (v verdict, keep time.Duration, err error) {
		var review *authorizationv1.SubjectAccessReview
		err = d.ask.ask(ctx, "create subjectaccessreviews", func(ctx context.Context) (err error) {
			review, err = d.client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return verdict{}, 0, err
		}
		if review.Status.Allowed && !review.Status.Denied {
			return verdict{allowed: true, reason: review.Status.Reason}, d.allow, nil
		}
		return verdict{reason: refusal(who, review.Status)}, d.deny, nil
	})
	return v.allowed, v.reason, err
}

// reviewOf is the question whether somebody may do that.
func reviewOf(who office.User, deed office.Deed) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: who.Name, UID: who.UID, Groups: who.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: apiGroup, Resource: resource, Subresource: deed.Subresource, Verb: deed.Verb, Namespace: deed.Namespace, Name: deed.Name,
		},
	}
	if len(who.Extra) > 0 {
		spec.Extra = make(map[string]authorizationv1.ExtraValue, len(who.Extra))
		for key, values := range who.Extra {
			spec.Extra[key] = values
		}
	}
	return spec
}

// refusal is the authorizer's reason, which is mostly silent about what it does not know of.
func refusal(who office.User, status authorizationv1.SubjectAccessReviewStatus) string {
	if reason := strings.TrimSpace(cmp.Or(status.Reason, status.EvaluationError)); reason != "" {
		return reason
	}
	return "no role of " + who.Name + " allows it"
}

// shared gives what is remembered under the key, or asks, once for all who want to know at the same time, and remembers for as long as
// the answer says. Errors are not remembered. Who gives up waiting does not end the question of the others.
func shared[T any](ctx context.Context, known *cache.LRUExpireCache, running *singleflight.Group, key string,
	ask func(ctx context.Context) (answer T, keep time.Duration, err error)) (T, error) {
	if answer, ok := known.Get(key); ok {
		return answer.(T), nil
	}
	var none T
	result := running.DoChan(key, func() (any, error) {
		answer, keep, err := ask(context.WithoutCancel(ctx))
		if err != nil {
			return none, err
		}
		known.Add(key, answer, keep)
		return answer, nil
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(T), nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
