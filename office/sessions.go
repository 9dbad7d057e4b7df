package office

// This file has the session endpoints over HTTP: who may use them, and how a session and its records are read. Lists are in sessions_list.go,
// what people do to sessions in sessions_say.go, the stream in stream.go. docs/sessions.md tells users of them.

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// Limits of the session endpoints. docs/sessions.md tells them.
const (
	// usualSessions and mostSessions are how many sessions a page has, usualRecords and mostRecords how many records.
	usualSessions, mostSessions = 50, 200
	usualRecords, mostRecords   = 200, 1000
	// mostPage is how many bytes of sessions or records a page has, if it is more than one.
	mostPage = 4 << 20
	// mostMessage is how many bytes a request with a message has.
	mostMessage = 512 << 10
	// mostReaders is how many pages are made and written at a time; others wait for readerPatience.
	mostReaders    = 32
	readerPatience = 5 * time.Second
	// requestTime is how long a request may take as a whole.
	requestTime = time.Minute
)

// The subresources of work items that stand for what can be done with their sessions.
const (
	deedSession = "session"
	deedMessage = "message"
	deedStop    = "stop"
)

// sessionRoutes adds the session endpoints.
func (o *Office) sessionRoutes(mux *http.ServeMux) {
	o.live.open(o)
	mux.Handle("/v1/sessions", o.endpoint(methods{http.MethodGet: o.listSessions}))
	mux.Handle("/v1/sessions/{id}", o.endpoint(methods{http.MethodGet: o.getSession}))
	mux.Handle("/v1/sessions/{id}/records", o.endpoint(methods{http.MethodGet: o.getRecords}))
	mux.Handle("/v1/sessions/{id}/messages", o.endpoint(methods{http.MethodPost: o.postMessage}))
	mux.Handle("/v1/sessions/{id}/stop", o.endpoint(methods{http.MethodPost: o.postStop}))
	mux.HandleFunc("/v1/sessions/{id}/stream", o.serveStream)
	mux.HandleFunc("/v1/sessions/", func(w http.ResponseWriter, r *http.Request) {
		o.tell(w, r, wrong(http.StatusNotFound, "there is nothing here; see /v1/sessions"))
	})
}

// methods has what an endpoint does.
type methods map[string]func(w http.ResponseWriter, r *http.Request, user User) error

// endpoint lets in who may ask at all, and answers with a problem where something is wrong.
func (o *Office) endpoint(do methods) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTime)
		defer cancel()
		r = r.WithContext(ctx)
		defer enteringOf(ctx).entered()
		limits := http.NewResponseController(w)
		_ = limits.SetReadDeadline(time.Now().Add(requestTime)) // the server sets its own for the next request
		_ = limits.SetWriteDeadline(time.Now().Add(2 * requestTime))
		defer limits.SetWriteDeadline(time.Time{}) //nolint:errcheck // it could be set
		if err := o.serve(w, r, do); err != nil {
			o.tell(w, r, err)
		}
	})
}

func (o *Office) serve(w http.ResponseWriter, r *http.Request, do methods) error {
	if err := o.sameOrigin(w, r); err != nil {
		return err
	}
	allowed := make([]string, 0, len(do)+1)
	for method := range do {
		allowed = append(allowed, method)
	}
	if do[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	if r.Method == http.MethodOptions {
		o.preflight(w, allowed)
		return nil
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	act := do[method]
	if act == nil {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return wrong(http.StatusMethodNotAllowed, "%s is not possible here; possible are: %s", r.Method, strings.Join(allowed, ", "))
	}
	user, err := o.authenticateUser(r)
	if err != nil {
		return err
	}
	return act(w, r, user)
}

// sameOrigin refuses what a page of somebody else has a browser ask for. Who is no browser sends no Origin.
func (o *Office) sameOrigin(w http.ResponseWriter, r *http.Request) error {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	u, err := url.Parse(origins[0])
	if err == nil && len(origins) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host) {
		return nil
	}
	if len(origins) == 1 && slices.Contains(o.opts.AllowedOrigins, origins[0]) {
		w.Header().Set("Access-Control-Allow-Origin", origins[0])
		w.Header().Add("Vary", "Origin")
		return nil
	}
	return wrong(http.StatusForbidden, "pages of %q may not use this office: an administrator can allow their origin", shorten(origins[0]))
}

// preflight tells the browser of an allowed page what it may send.
func (o *Office) preflight(w http.ResponseWriter, allowed []string) {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if w.Header().Get("Access-Control-Allow-Origin") != "" {
		w.Header().Set("Access-Control-Allow-Methods", strings.Join(allowed, ", "))
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		w.Header().Set("Access-Control-Max-Age", "600")
	}
	w.WriteHeader(http.StatusNoContent)
}

// authenticateUser finds out who sends a request.
func (o *Office) authenticateUser(r *http.Request) (User, error) {
	if o.opts.Feed == nil {
		return User{}, wrong(http.StatusServiceUnavailable, "this office keeps no sessions: it was started without a place for their records")
	}
	if o.opts.Access == nil {
		return User{}, wrong(http.StatusServiceUnavailable, "the session API is off: this office cannot ask Kubernetes who may use it. "+
			"The manager's log says what it needs")
	}
	user, err := o.opts.Access.Authenticate(r)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return user, wrong(http.StatusUnauthorized, "send a token that the cluster knows as Authorization: Bearer, or a client certificate of "+
			"the cluster")
	case err != nil:
		o.log.Warn("It could not be found out who sends a request", "error", err)
		return user, later(http.StatusServiceUnavailable, 5, "it cannot be found out now who you are: %v", err)
	}
	return user, nil
}

// allowed says whether the user may do something, and if not, why.
func (o *Office) allowed(ctx context.Context, user User, deed Deed) (bool, string, error) {
	ok, why, err := o.opts.Access.Allowed(ctx, user, deed)
	if err != nil {
		o.log.Warn("It could not be found out what a user may do", "error", err)
		return false, "", later(http.StatusServiceUnavailable, 5, "it cannot be found out now what you may do: %v", err)
	}
	return ok, why, nil
}

// deedOn is what can be done with a session of an item.
func deedOn(s model.Session, verb, subresource string) Deed {
	return Deed{Verb: verb, Subresource: subresource, Namespace: s.Namespace, NamespaceUID: s.NamespaceUID, Name: s.Name}
}

// mayRead gives notFound unless the user may read the session.
func (o *Office) mayRead(ctx context.Context, user User, s model.Session) error {
	ok, _, err := o.allowed(ctx, user, deedOn(s, "get", deedSession))
	if err == nil && !ok {
		err = notFound()
	}
	return err
}

// may gives a problem unless the user may create a subresource of the session's item. Who may not even read the session does not learn that
// it is there.
func (o *Office) may(ctx context.Context, user User, s model.Session, subresource string) error {
	ok, why, err := o.allowed(ctx, user, deedOn(s, "create", subresource))
	if err != nil || ok {
		return err
	}
	if err := o.mayRead(ctx, user, s); err != nil {
		return err
	}
	return forbidden("create", subresource, s.Namespace, why)
}

// forbidden says which right is missing.
func forbidden(verb, subresource, namespace, why string) *httpProblem {
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in all namespaces: give a namespace that you may use"
	}
	detail := "you may not " + verb + " workitems/" + subresource + " of bullpen.dev " + where
	if why != "" {
		detail += " (" + why + ")"
	}
	return wrong(http.StatusForbidden, "%s", detail)
}

// sessionOf finds the session of a request.
func (o *Office) sessionOf(r *http.Request) (s model.Session, err error) {
	err = o.store.View(r.Context(), func(tx store.Reader) error {
		known, err := findSession(tx, r.PathValue("id"))
		if err != nil {
			return err
		}
		if known == nil {
			return errNoSession
		}
		s = *known
		return nil
	})
	return s, err
}

func (o *Office) getSession(w http.ResponseWriter, r *http.Request, user User) error {
	if _, err := query(r); err != nil {
		return err
	}
	v, err := o.viewSession(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := o.mayRead(r.Context(), user, v.session); err != nil {
		return err
	}
	body, err := v.encode(current(v.session))
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "application/json", body)
	return nil
}

// getRecords gives a page of a session's records.
func (o *Office) getRecords(w http.ResponseWriter, r *http.Request, user User) error {
	values, err := query(r, "cursor", "limit")
	if err != nil {
		return err
	}
	after, err := whole(values, "cursor", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	limit, err := whole(values, "limit", usualRecords, 1, mostRecords)
	if err != nil {
		return err
	}
	s, err := o.sessionOf(r)
	if err != nil {
		return err
	}
	if err := o.mayRead(r.Context(), user, s); err != nil {
		return err
	}
	free, err := o.live.reader(r.Context())
	if err != nil {
		return err
	}
	defer free()
	records, err := o.opts.Feed.Read(r.Context(), s.ID, after, int(limit), mostPage)
	if err != nil {
		return err
	}
	head, err := o.opts.Feed.Head(r.Context(), s.ID)
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, "application/json", recordsPage(records, head))
	return nil
}

// recordsPage encodes a page of records, whose bytes stay as they are.
func recordsPage(records []store.Stored, head store.Head) []byte {
	size := 128
	for _, r := range records {
		size += len(r.JSON) + 1
	}
	body := append(make([]byte, 0, size), `{"records":[`...)
	for i, r := range records {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, r.JSON...)
	}
	next := "null"
	if n := len(records); n > 0 && records[n-1].Seq < head.Latest {
		next = strconv.FormatInt(records[n-1].Seq, 10)
	}
	earliest := "null"
	if head.Earliest > 0 {
		earliest = strconv.FormatInt(head.Earliest, 10)
	}
	body = append(body, `],"next_cursor":`+next+`,"earliest_feed_seq":`+earliest...)
	return append(body, '}')
}
