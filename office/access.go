package office

// This file has who may use a session: the office asks, Kubernetes decides. What asks Kubernetes is in package access.

import (
	"context"
	"errors"
	"net/http"
)

// ErrUnauthenticated is what Access.Authenticate gives for a request without credentials that anybody vouches for. Test for it with
// errors.Is; other errors mean that it could not be found out.
var ErrUnauthenticated = errors.New("not authenticated")

// User is who sends a request, as Kubernetes knows them.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Deed is what a user wants to do: a verb (get, list or create) on a subresource (session, message or stop) of a work item, or of all of
// a namespace where Name is empty, or of all namespaces where Namespace is empty too.
type Deed struct {
	Verb        string
	Subresource string
	Namespace   string
	// NamespaceUID is the UID of the namespace that is meant: one that was made again under the same name is another one. Empty means
	// whichever has the name.
	NamespaceUID string
	Name         string
}

// Access says who sends a request and what they may do.
type Access interface {
	// Authenticate finds out who sends the request, by a bearer token, a client certificate, or the token that a browser passes as a
	// WebSocket subprotocol.
	Authenticate(r *http.Request) (User, error)
	// Allowed says whether the user may do that now, and if not, why. Answers are remembered briefly.
	Allowed(ctx context.Context, user User, deed Deed) (allowed bool, reason string, err error)
}
