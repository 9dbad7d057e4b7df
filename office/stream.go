package office

// This file has the stream of a session, GET /v1/sessions/{id}/stream: who may watch, and how a stream begins and ends. What is sent is in
// stream_watcher.go, what watchers of one session share in stream_topic.go. docs/sessions.md tells users of it.
//
// A watcher has a cursor, the place of the last record that it was sent, and is sent what the feed has after it: from memory where that is
// enough, else read from the feed. It has no queue, so one that reads slowly costs what it is being sent and no more, and makes nobody
// wait. The connection is made before anything is checked but its origin, because browsers do not see why one was refused.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

// StreamOptions bound the streams of sessions. Zero values stand for the defaults.
type StreamOptions struct {
	// MaxWatchers is how many streams may be open; 20,000 by default.
	MaxWatchers int
	// Heartbeat is how long a stream is quiet before a heartbeat; 20 s by default.
	Heartbeat time.Duration
	// Recheck is how often it is asked whether a watcher may still watch; 1 min by default. Reauthenticate is how often the credentials
	// that it came with are checked again; 30 min by default.
	Recheck        time.Duration
	Reauthenticate time.Duration
	// Stall is how long a watcher may take nothing of what is sent to it, plus a second for each 64 KiB of the frame; 20 s by default.
	Stall time.Duration
	// SessionEvery is the shortest time between two session frames, 100 ms by default, and DeltaEvery between two batches of deltas, 50 ms.
	SessionEvery time.Duration
	DeltaEvery   time.Duration
	// HoldEnds is how long the end of a turn waits for the turn's last records; 10 s by default.
	HoldEnds time.Duration
}

func (s StreamOptions) filled() StreamOptions {
	s.MaxWatchers = cmp.Or(s.MaxWatchers, 20_000)
	s.Heartbeat = cmp.Or(s.Heartbeat, feed.HeartbeatAfter)
	s.Recheck = cmp.Or(s.Recheck, time.Minute)
	s.Reauthenticate = cmp.Or(s.Reauthenticate, 30*time.Minute)
	s.Stall = cmp.Or(s.Stall, 20*time.Second)
	s.SessionEvery = cmp.Or(s.SessionEvery, 100*time.Millisecond)
	s.DeltaEvery = cmp.Or(s.DeltaEvery, 50*time.Millisecond)
	s.HoldEnds = cmp.Or(s.HoldEnds, 10*time.Second)
	return s
}

const (
	// streamSubprotocol is what browsers name beside the subprotocol that carries their token: a server has to choose one that is no secret.
	streamSubprotocol = "v6.stream.bullpen.dev"
	// admissionTime is how long it may take to find out whether somebody may watch.
	admissionTime = 15 * time.Second
)

// watching is what a watcher asked for, without what the HTTP server holds for a request.
type watching struct {
	session     string
	query       string
	credentials *http.Request
}

// serveStream upgrades and hands the connection to a goroutine of its own, so that what the HTTP server holds for a request is freed.
func (o *Office) serveStream(w http.ResponseWriter, r *http.Request) {
	err := o.sameOrigin(w, r)
	switch {
	case err != nil:
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		err = wrong(http.StatusMethodNotAllowed, "a stream is a WebSocket, which begins with GET, not %s", r.Method)
	case !websocket.IsWebSocketUpgrade(r):
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		err = wrong(http.StatusUpgradeRequired, "a stream is a WebSocket: dial it with a client of that protocol, or read .../records")
	}
	if err != nil {
		o.tell(w, r, err)
		return
	}
	a := watching{session: r.PathValue("id"), query: r.URL.RawQuery, credentials: credentialsOf(r)}
	ws, err := o.live.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader answered
	}
	through := enteringOf(r.Context())
	o.live.streams.Add(1)
	go o.stream(ws, a, through)
}

// credentialHeaders are those by which a request shows who sends it, and that it is a WebSocket's.
var credentialHeaders = []string{"Authorization", "Connection", "Upgrade", "Sec-Websocket-Protocol"}

// credentialsOf is a request with nothing but what shows who sends it.
func credentialsOf(r *http.Request) *http.Request {
	c := &http.Request{
		Method: r.Method, URL: &url.URL{Path: r.URL.Path}, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Host: r.Host,
		RemoteAddr: r.RemoteAddr, TLS: r.TLS, Header: http.Header{},
	}
	for name, values := range r.Header {
		if slices.Contains(credentialHeaders, name) || strings.HasPrefix(name, "Impersonate-") {
			c.Header[name] = slices.Clone(values)
		}
	}
	return c
}

// copyOf gives credentials to somebody who may change them.
func (a watching) copyOf(ctx context.Context) *http.Request { return a.credentials.Clone(ctx) }

// ending is how a stream ends.
type ending struct {
	// code is a close code, 0 for a connection that takes no close.
	code int
	// reason is for programmers, message for people: the error frame before an abnormal close.
	reason, message string
	// cut is why a connection without a close ended.
	cut string
}

func ends(code int, format string, args ...any) *ending {
	text := fmt.Sprintf(format, args...)
	return &ending{code: code, reason: text, message: text}
}

// Error makes an ending an error.
func (e *ending) Error() string { return e.message }

// endingFor makes an ending of any error.
func (o *Office) endingFor(err error) *ending {
	var e *ending
	if errors.As(err, &e) {
		return e
	}
	p := o.problemFor(err)
	switch p.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return ends(feed.CloseNotAuthorized, "%s", p.Detail)
	}
	return ends(feed.CloseServerError, "%s", p.Detail)
}

// beyond refuses a cursor that the feed never gave: it is of another session, or of records that were lost.
func beyond(cursor int64, head store.Head) *ending {
	e := ends(feed.CloseNotAuthorized, "after_seq is %d, but the last record of this session is %d: begin again without after_seq",
		cursor, head.Latest)
	e.reason = "after_seq is beyond the last record"
	return e
}

// stream begins a stream, and goes on with it in a goroutine of its own, whose stack is small: what beginning takes is done once.
func (o *Office) stream(ws *websocket.Conn, a watching, through *entering) {
	w := &watcher{ws: ws, asked: a, woken: make(chan struct{}, 1), gone: make(chan struct{})}
	w.o, w.opts, w.metrics = o, o.live.opts, o.metrics.streams
	go w.listen()
	err := w.enter(o.lifetime)
	through.entered()
	if err != nil {
		w.leave(err)
		return
	}
	go func() { w.leave(w.run(o.lifetime)) }()
}

// enter lets a watcher in and sends its first frame. An error is how its stream ends.
func (w *watcher) enter(ctx context.Context) error {
	if err := w.admit(ctx); err != nil {
		return err
	}
	w.topic = w.o.live.join(w.session.ID)
	return w.begin(ctx)
}

// leave ends a stream for the reason given.
func (w *watcher) leave(err error) {
	defer w.o.live.streams.Done()
	if w.topic != nil {
		w.topic.forget(w)
		w.o.live.leave(w.topic)
		w.o.live.dismiss()
	}
	e := restarting()
	if w.o.lifetime.Err() == nil {
		e = w.o.endingFor(err)
	}
	w.end(e)
	if e.cut == "" && e.code != feed.CloseNormal && e.code != websocket.CloseServiceRestart {
		w.o.log.Info("A stream of a session was ended", "session", w.asked.session, "code", e.code, "why", e.message)
	}
}

// protocols are the versions of the stream that are spoken here.
var protocols = []string{strconv.Itoa(feed.StreamProtocol)}

// parse reads what a watcher asked for.
func (w *watcher) parse() error {
	r := &http.Request{URL: &url.URL{RawQuery: w.asked.query}}
	spoken := "supported: " + strings.Join(protocols, ", ")
	switch version := r.URL.Query().Get("protocol"); {
	case version == "":
		return ends(feed.CloseNoProtocol, "give the query parameter protocol; %s", spoken)
	case !slices.Contains(protocols, version):
		return ends(feed.CloseUnknownProtocol, "protocol %s is not spoken here; %s", cut(version, 20), spoken)
	}
	values, err := query(r, "protocol", "after_seq")
	if err != nil {
		return err
	}
	w.cursor, err = whole(values, "after_seq", 0, 0, 1<<62)
	return err
}

// admit finds out whether the watcher may watch, and counts it. An error is how its stream ends.
func (w *watcher) admit(ctx context.Context) error {
	if err := w.parse(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, admissionTime)
	defer cancel()
	user, err := w.o.authenticateUser(w.asked.copyOf(ctx))
	if err != nil {
		return err
	}
	err = w.o.store.View(ctx, func(r store.Reader) error {
		s, err := findSession(r, w.asked.session)
		if err != nil {
			return err
		}
		if s == nil {
			return errNoSession
		}
		w.session = sessionKey{s.ID, deedOn(*s, "get", deedSession)}
		return nil
	})
	if err != nil {
		return err
	}
	w.user = user
	if err := w.mayWatch(ctx); err != nil {
		return err
	}
	if !w.o.live.admit() {
		return ends(feed.CloseOverCapacity, "too many streams are open here: try again later")
	}
	return nil
}

// sessionKey names a session, and the right to read it.
type sessionKey struct {
	ID   string
	read Deed
}

// mayWatch gives notFound unless the watcher may read its session.
func (w *watcher) mayWatch(ctx context.Context) error {
	ok, _, err := w.o.allowed(ctx, w.user, w.session.read)
	if err == nil && !ok {
		err = notFound()
	}
	return err
}

// sameUser says whether two users are one.
func sameUser(a, b User) bool { return a.Name == b.Name && a.UID == b.UID }
