package office_test

// This file has what the tests of sessions share: a guard that says who may do what, requests over HTTP, and a watcher's side of a stream.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Users of the tests: all may do everything, readers may read only, lists needs no name, nobody nothing.
const (
	tokenAll    = "token-of-all"
	tokenReader = "token-of-reader"
	tokenTalker = "token-of-talker"
	tokenNobody = "token-of-nobody"
)

// guard is an office.Access with rights that a test changes.
type guard struct {
	mu     sync.Mutex
	rights map[string][]string
	// uids are those of the namespaces that there are now; others have none.
	uids map[string]string
	// down says that Kubernetes does not answer.
	down bool
	// invalid are tokens that were valid once.
	invalid map[string]bool
	asked   int
}

func newGuard() *guard {
	return &guard{
		rights: map[string][]string{
			"all": {"get session", "list session", "create message", "create stop"}, "reader": {"get session", "list session"},
			"talker": {"create message"}, "nobody": nil,
		},
		uids: map[string]string{}, invalid: map[string]bool{},
	}
}

func (g *guard) change(edit func(*guard)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit(g)
}

func (g *guard) Authenticate(r *http.Request) (office.User, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return office.User{}, errors.New("the API server does not answer")
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, protocol := range websocket.Subprotocols(r) {
		if carried, ok := strings.CutPrefix(protocol, "base64url.bearer.authorization.k8s.io."); ok {
			token = carried
		}
	}
	name, ok := strings.CutPrefix(token, "token-of-")
	if _, known := g.rights[name]; !ok || !known || g.invalid[token] {
		return office.User{}, office.ErrUnauthenticated
	}
	r.Header.Del("Authorization") // as the library of Kubernetes does
	return office.User{Name: name}, nil
}

func (g *guard) Allowed(_ context.Context, user office.User, deed office.Deed) (bool, string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	if g.down {
		return false, "", errors.New("the API server does not answer")
	}
	if uid, known := g.uids[deed.Namespace]; known && deed.NamespaceUID != "" && deed.NamespaceUID != uid {
		return false, "the namespace is another one now", nil
	}
	for _, right := range g.rights[user.Name] {
		if right == deed.Verb+" "+deed.Subresource {
			return true, "", nil
		}
	}
	return false, "no role of " + user.Name + " says so", nil
}

// openSessions starts an office whose sessions the guard guards.
func openSessions(t *testing.T, edits ...func(*office.Options)) (*bench, *guard) {
	t.Helper()
	g := newGuard()
	b := openWith(t, func(o *office.Options) {
		o.Access = g
		for _, edit := range edits {
			edit(o)
		}
	})
	return b, g
}

// answer is an HTTP answer with its body read.
type answer struct {
	*http.Response
	body []byte
}

// into reads the body as JSON.
func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("the body is no such JSON: %v: %s", err, a.body)
	}
}

// problem is what a problem says.
type problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	BlockedReason                 string `json:"blocked_reason"`
}

// ask sends a request. headers are names and values in turn; a body is sent as JSON unless they say otherwise.
func (b *bench) ask(token, method, path, body string, headers ...string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http"+strings.TrimPrefix(b.url, "ws")+path, strings.NewReader(body))
	b.must(err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	b.must(err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	b.must(err)
	return answer{response, read}
}

// refuses sends a request that must be answered with a problem, and gives it.
func (b *bench) refuses(status int, token, method, path, body string, headers ...string) problem {
	b.t.Helper()
	a := b.ask(token, method, path, body, headers...)
	if a.StatusCode != status || a.Header.Get("Content-Type") != "application/problem+json" {
		b.t.Fatalf("%s %s was answered with %d %s: %s, not with problem %d", method, path, a.StatusCode, a.Header.Get("Content-Type"), a.body, status)
	}
	var p problem
	a.into(b.t, &p)
	if p.Status != status || p.Type == "" || p.Title == "" || p.Detail == "" || p.Instance != strings.SplitN(path, "?", 2)[0] {
		b.t.Errorf("the problem is not whole: %s", a.body)
	}
	return p
}

// viewer is a watcher's side of a stream.
type viewer struct {
	b  *bench
	ws *websocket.Conn
	// last is the place of the last record.
	last int64
}

func (b *bench) streamURL(session, query string) string {
	return b.url + "/v1/sessions/" + session + "/stream?" + query
}

// watch opens a stream as a user who may.
func (b *bench) watch(session, query string) *viewer {
	b.t.Helper()
	return b.watchAs(tokenAll, session, query)
}

func (b *bench) watchAs(token, session, query string) *viewer {
	b.t.Helper()
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	ws, response, err := websocket.DefaultDialer.Dial(b.streamURL(session, query), header)
	if err != nil {
		b.t.Fatalf("the stream was refused: %v, %v", err, response)
	}
	b.sockets = append(b.sockets, ws)
	b.t.Cleanup(func() { _ = ws.Close() })
	return &viewer{b: b, ws: ws}
}

// read gives the next frame as it came.
func (v *viewer) read() []byte {
	v.b.t.Helper()
	v.b.must(v.ws.SetReadDeadline(time.Now().Add(patience)))
	kind, data, err := v.ws.ReadMessage()
	v.b.must(err)
	if kind != websocket.TextMessage {
		v.b.t.Fatalf("a frame is no text: %q", data)
	}
	return data
}

// next gives the next frame. Records are checked to follow without a gap.
func (v *viewer) next() feed.Frame {
	v.b.t.Helper()
	frame, err := feed.DecodeFrame(v.read())
	v.b.must(err)
	if batch, ok := frame.(feed.RecordsAppend); ok {
		for _, r := range batch.Records {
			if v.last > 0 && r.FeedSeq != v.last+1 {
				v.b.t.Fatalf("record %d comes after %d", r.FeedSeq, v.last)
			}
			v.last = r.FeedSeq
		}
	}
	return frame
}

// until reads frames up to the first of a kind that fits, and gives it with those before.
func until[F feed.Frame](v *viewer, fits func(F) bool) (F, []feed.Frame) {
	v.b.t.Helper()
	var before []feed.Frame
	for {
		frame := v.next()
		if f, ok := frame.(F); ok && fits(f) {
			return f, before
		}
		before = append(before, frame)
	}
}

func anyOf[F feed.Frame](F) bool { return true }

// snapshot reads the first frame.
func (v *viewer) snapshot() feed.Snapshot {
	v.b.t.Helper()
	frame := v.next()
	s, ok := frame.(feed.Snapshot)
	if !ok {
		v.b.t.Fatalf("the first frame is %s", frame.FrameType())
	}
	return s
}

// records reads until there are records up to a place, and gives them as they came.
func (v *viewer) records(upTo int64) (raw []json.RawMessage) {
	v.b.t.Helper()
	for v.last < upTo {
		if f, ok := v.next().(feed.RecordsAppend); ok {
			raw = append(raw, f.Raw...)
		}
	}
	return raw
}

// ended reads to the end of the stream, and gives how it was closed and the last frame.
func (v *viewer) ended() (code int, reason string, last feed.Frame) {
	v.b.t.Helper()
	for {
		v.b.must(v.ws.SetReadDeadline(time.Now().Add(patience)))
		_, data, err := v.ws.ReadMessage()
		if err == nil {
			last, err = feed.DecodeFrame(bytes.Clone(data))
			v.b.must(err)
			continue
		}
		var closed *websocket.CloseError
		if !errors.As(err, &closed) {
			v.b.t.Fatalf("the stream ended without a close: %v", err)
		}
		return closed.Code, closed.Text, last
	}
}

// working has ada run an item, and gives its session and the upload of its records.
func (b *bench) working(name string, edits ...func(*model.ItemFacts)) (model.Session, *agent, *uploader) {
	b.t.Helper()
	ada, _ := b.connect("ada")
	b.apply(name, edits...)
	ada.take(name)
	u := b.uploads("uid-"+name, "ada", "spool-"+name)
	u.offer = model.OfferID("uid-"+name, 1)
	b.records("uid-"+name, 1) // what the office writes itself comes a moment later
	return b.sessionOf("uid-" + name), ada, u
}

// output makes n entries of a program's output.
func (u *uploader) output(n int) (list []feed.Entry) {
	for range n {
		list = append(list, u.entry(feed.SourceCommand, feed.FormatCommand, "stdout", map[string]any{"line": u.seq}))
	}
	return list
}

// says sends a delta.
func (u *uploader) says(d feed.Delta) {
	u.b.t.Helper()
	u.b.must(u.ws.WriteJSON(feed.LiveDelta{Type: feed.IngestDelta, Offer: u.offer, Delta: d}))
}

// chore makes an item whose kind finishes without a review, so that its session closes.
func chore(f *model.ItemFacts) { f.Spec.Kind = "chore" }

// finish ends the turn and hands the item back.
func (u *uploader) finish(a *agent, name string) {
	u.b.t.Helper()
	u.upload(u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))
	a.handBack("uid-"+name, protocol.HandbackDone)
}
