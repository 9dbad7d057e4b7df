// Package sessionstest has an office for tests of those who use its session endpoints. It speaks as docs/sessions.md says, and does what a
// test wants: it cuts streams, refuses, and ends them with any code.
package sessionstest

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// Office serves one session. Its fields may be changed by Change.
type Office struct {
	*httptest.Server
	mu sync.Mutex
	// Session is the one that there is; Item is the id and ItemName the name of its work item.
	Session        feed.Session
	Item, ItemName string
	// Records are the session's, encoded, whose places are those beginning with Earliest.
	Records  [][]byte
	Earliest int64
	// Users are who may do anything, by the Authorization header or the common name of their certificate.
	Users []string
	// Refuse answers a request for a path that ends like this with a problem.
	Refuse map[string]Problem
	// Stream, if set, serves the n-th stream, from 0, in place of Serve.
	Stream func(n int, s *Stream)
	// Said and Stopped are what it was asked for.
	Said    []Said
	Stopped int
	// Asked are the paths and queries of all requests.
	Asked   []string
	streams int
}

// Said is a message that the office took.
type Said struct {
	Body   string `json:"body"`
	Closes bool   `json:"closes_session"`
}

// Problem is an answer that refuses.
type Problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Blocked string `json:"blocked_reason,omitempty"`
}

// New serves until the end of the test. It takes whoever sends "Bearer good".
func New(t testing.TB) *Office {
	o := &Office{Users: []string{"Bearer good"}, Refuse: map[string]Problem{}, Earliest: 1, Item: "item-1", ItemName: "fix-login"}
	o.Session.ID = "s1-item-1"
	o.Session.Conversation.State = feed.ConversationOpen
	o.Session.Source = feed.OriginAPI
	o.Server = httptest.NewUnstartedServer(o)
	o.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert}
	o.StartTLS()
	t.Cleanup(o.Close)
	return o
}

// Address is the office's URL.
func (o *Office) Address() *url.URL {
	u, err := url.Parse(o.URL)
	if err != nil {
		panic(err)
	}
	return u
}

// CA is the certificate by which the office is known, PEM.
func (o *Office) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.Certificate().Raw})
}

// Change changes the office.
func (o *Office) Change(change func(*Office)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(o)
}

// Add adds a record to the session.
func (o *Office) Add(source, format, typ, payload string) {
	o.Change(func(o *Office) {
		n := o.Earliest + int64(len(o.Records))
		o.Records = append(o.Records, feed.AppendRecord(nil, &feed.Record{
			Kind: feed.Classify(source, format, typ, []byte(payload)), Source: source, Format: format, Type: typ, ID: fmt.Sprintf("r%d", n),
			SessionID: o.Session.ID, FeedSeq: n, Payload: json.RawMessage(payload), CreatedAt: time.Date(2028, 2, 29, 9, 0, int(n%60), 0, time.UTC),
		}))
	})
}

// Streams counts the streams that were opened.
func (o *Office) Streams() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.streams
}

// ServeHTTP answers a request.
func (o *Office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Asked = append(o.Asked, r.URL.RequestURI())
	who := r.Header.Get("Authorization")
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		who = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	if !slices.Contains(o.Users, who) {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			o.upgrade(w, r, func(_ int, s *Stream) { s.Fail(feed.CloseNotAuthorized, "send a token that the cluster knows") })
			return
		}
		o.problem(w, Problem{Status: http.StatusUnauthorized, Detail: "send a token that the cluster knows"})
		return
	}
	for end, p := range o.Refuse {
		if strings.HasSuffix(r.URL.Path, end) {
			o.problem(w, p)
			return
		}
	}
	switch path := r.Method + " " + r.URL.Path; {
	case path == "GET /v1/sessions":
		o.list(w, r)
	case o.is(path, "GET", ""):
		o.answer(w, http.StatusOK, o.Session)
	case o.is(path, "GET", "/records"):
		o.page(w, r)
	case o.is(path, "GET", "/stream"):
		serve := o.Stream
		if serve == nil {
			serve = func(_ int, s *Stream) { s.Serve() }
		}
		o.upgrade(w, r, serve)
	case o.is(path, "POST", "/messages"):
		var said Said
		if err := json.NewDecoder(r.Body).Decode(&said); err != nil {
			o.problem(w, Problem{Status: http.StatusBadRequest, Detail: err.Error()})
			return
		}
		o.Said = append(o.Said, said)
		turn := "t9"
		o.answer(w, http.StatusAccepted, feed.InboxMessage{ID: "m9", SessionID: o.Session.ID, TurnID: &turn, Body: said.Body, Status: feed.InboxPending,
			CreatedAt: time.Date(2028, 2, 29, 9, 0, 0, 0, time.UTC)})
	case o.is(path, "POST", "/stop"):
		o.Stopped++
		w.WriteHeader(http.StatusAccepted)
	default:
		o.problem(w, Problem{Status: http.StatusNotFound, Detail: "there is no such session, or you may not read it"})
	}
}

// is says whether a request is about the session, by its id or its item's.
func (o *Office) is(path, method, rest string) bool {
	return path == method+" /v1/sessions/"+o.Session.ID+rest || path == method+" /v1/sessions/"+o.Item+rest
}

func (o *Office) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (o *Office) problem(w http.ResponseWriter, p Problem) {
	if p.Type == "" {
		p.Type = "about:blank"
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

func (o *Office) list(w http.ResponseWriter, r *http.Request) {
	page := struct {
		Sessions []feed.Session `json:"sessions"`
		Next     *string        `json:"next_cursor"`
	}{Sessions: []feed.Session{}}
	if r.URL.Query().Get("item") == o.ItemName {
		page.Sessions = append(page.Sessions, o.Session)
	}
	o.answer(w, http.StatusOK, page)
}

func (o *Office) page(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	records := o.after(after)
	next := "null"
	if len(records) > limit {
		records = records[:limit]
		next = strconv.FormatInt(max(after, o.Earliest-1)+int64(limit), 10)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"records":[%s],"next_cursor":%s,"earliest_feed_seq":%d}`, join(records), next, o.Earliest)
}

func join(records [][]byte) []byte {
	var out []byte
	for i, r := range records {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, r...)
	}
	return out
}

// after are the records after a place.
func (o *Office) after(seq int64) [][]byte {
	from := min(max(0, seq-o.Earliest+1), int64(len(o.Records)))
	return slices.Clone(o.Records[from:])
}

func (o *Office) upgrade(w http.ResponseWriter, r *http.Request, serve func(int, *Stream)) {
	n := o.streams
	o.streams++
	after, _ := strconv.ParseInt(r.URL.Query().Get("after_seq"), 10, 64)
	// With a buffer of its own, the connection outlives the request.
	u := websocket.Upgrader{ReadBufferSize: 4096, WriteBufferSize: 4096}
	conn, err := u.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	s := &Stream{Office: o, Conn: conn, After: after, Query: r.URL.Query(), Gone: make(chan struct{})}
	go func() {
		defer close(s.Gone)
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
	go func() {
		defer conn.Close() //nolint:errcheck // it is over either way
		serve(n, s)
	}()
}

// Stream is one connection of a watcher.
type Stream struct {
	*websocket.Conn
	Office *Office
	// After is the watcher's cursor, Query all that it asked for.
	After int64
	Query url.Values
	// Gone is closed when the watcher has ended the connection.
	Gone chan struct{}
}

// Send sends a frame.
func (s *Stream) Send(frame []byte) bool { return s.WriteMessage(websocket.TextMessage, frame) == nil }

// Greet sends the snapshot.
func (s *Stream) Greet() {
	s.Office.mu.Lock()
	defer s.Office.mu.Unlock()
	encoded, err := feed.MarshalSession(&s.Office.Session)
	if err != nil {
		panic(err)
	}
	frame, err := feed.AppendSnapshot(nil, s.Office.Earliest, encoded, nil)
	if err != nil {
		panic(err)
	}
	s.Send(frame)
}

// Deliver sends what the session has after the cursor, in frames of so many records, and moves the cursor.
func (s *Stream) Deliver(each int) { s.DeliverSome(each, 1<<30) }

// DeliverSome is Deliver of so many records at most.
func (s *Stream) DeliverSome(each, most int) {
	s.Office.mu.Lock()
	records := s.Office.after(s.After)
	records = records[:min(len(records), most)]
	s.After = max(s.After, s.Office.Earliest-1) + int64(len(records))
	s.Office.mu.Unlock()
	for some := range slices.Chunk(records, each) {
		if !s.Send(feed.AppendRecords(nil, some)) {
			return
		}
	}
}

// Serve does what an office does: it delivers what there is and what comes, until the session is closed or the watcher is gone.
func (s *Stream) Serve() {
	s.Greet()
	for {
		s.Office.mu.Lock()
		closed := s.Office.Session.Conversation.State == feed.ConversationClosed
		s.Office.mu.Unlock()
		s.Deliver(100)
		if closed {
			s.Done()
			return
		}
		select {
		case <-s.Gone:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Done ends the stream of a closed session.
func (s *Stream) Done() {
	s.Send(feed.AppendDone(nil))
	s.End(feed.CloseNormal, "")
}

// Fail ends the stream with an error frame and a code.
func (s *Stream) Fail(code int, message string) {
	s.Send(feed.AppendError(nil, message))
	s.End(code, message)
}

// End closes the stream with a code, and waits for the watcher's answer.
func (s *Stream) End(code int, reason string) {
	if s.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(5*time.Second)) != nil {
		return
	}
	select {
	case <-s.Gone:
	case <-time.After(5 * time.Second):
	}
}
