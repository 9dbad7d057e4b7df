package modelstub

// This file is the server: it takes requests, keeps them for the test, and hands out the steps of the script.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// Server plays a model on a loopback address.
type Server struct {
	// URL is the base of both APIs, without a slash at its end: Anthropic's is URL/v1/messages, OpenAI's URL/v1/responses.
	URL string

	http *httptest.Server

	mu       sync.Mutex
	steps    []Step
	requests []Request
	// beyond are the requests that came after the end of the script.
	beyond int
	made   int // ids
}

// Request is one that the server got.
type Request struct {
	Method string
	// Path is with the query.
	Path   string
	Header http.Header
	Body   []byte
	// Step is the number of the step that answered it, from 0; -1 where it took none.
	Step int
}

// New starts a server that plays the steps. Close it.
func New(steps ...Step) *Server {
	s := &Server{steps: steps}
	mux := http.NewServeMux()
	s.anthropic(mux)
	s.openai(mux)
	// What else a runtime asks for is recorded, and is not there.
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s.take(w, r, false) != nil {
			http.NotFound(w, r)
		}
	})
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// Close ends the server and the answers that still run.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Add appends steps to the script.
func (s *Server) Add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
}

// Requests are all that came so far, in their order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Answered are the requests that took a step, in the order in which they came.
func (s *Server) Answered() []Request {
	var answered []Request
	for _, r := range s.Requests() {
		if r.Step >= 0 {
			answered = append(answered, r)
		}
	}
	return answered
}

// Left is how many steps nobody asked for yet. It is negative where more was asked for than the script has.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.steps) - s.taken() - s.beyond
}

// next is the first step that is left for a request, -1 where there is none. The caller holds the lock.
func (s *Server) next(body []byte) int {
	taken := map[int]bool{}
	for _, r := range s.requests {
		taken[r.Step] = true
	}
	for i, step := range s.steps {
		if !taken[i] && (step.Match == nil || step.Match(body)) {
			return i
		}
	}
	return -1
}

// taken is how many steps were taken. The caller holds the lock.
func (s *Server) taken() int {
	n := 0
	for _, r := range s.requests {
		if r.Step >= 0 {
			n++
		}
	}
	return n
}

// exchange is a request with the step that answers it.
type exchange struct {
	Request
	step Step
	// over says that the script has no step for it.
	over bool
}

// maxRequest is the most bytes of a request that the server reads.
const maxRequest = 64 << 20

// take records a request, and gives it the next step if it is one for an answer. It returns nil where the request could not be read.
func (s *Server) take(w http.ResponseWriter, r *http.Request, answer bool) *exchange {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	return s.record(r, body, answer)
}

func (s *Server) record(r *http.Request, body []byte, answer bool) *exchange {
	e := &exchange{Request: Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body, Step: -1}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer {
		e.Step = s.next(body)
		if e.over = e.Step < 0; e.over {
			s.beyond++
		} else {
			e.step = s.steps[e.Step]
		}
	}
	s.requests = append(s.requests, e.Request)
	return e
}

// newID makes an id that is unique in this server.
func (s *Server) newID(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return fmt.Sprintf("%s%06d", prefix, s.made)
}

// stream writes server-sent events at a step's pace.
type stream struct {
	w    http.ResponseWriter
	r    *http.Request
	step Step
	// gone says that the client went away or the step cut it off; nothing is written from then on.
	gone bool
	// passed says that the gate, or the cut, is behind.
	passed bool
}

// begin sends the headers of a stream.
func begin(w http.ResponseWriter, r *http.Request, step Step) *stream {
	for name, value := range step.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, r: r, step: step}
}

// event sends an event whose data is the JSON of v. An empty name sends the data alone.
func (t *stream) event(name string, v any) {
	data, err := encode(v)
	if err != nil {
		panic(fmt.Sprintf("modelstub: an event cannot be encoded: %v", err))
	}
	t.raw(Event{Name: name, Data: string(data)})
}

// raw sends an event as it is.
func (t *stream) raw(e Event) {
	if t.gone || t.r.Context().Err() != nil {
		t.gone = true
		return
	}
	var text bytes.Buffer
	if e.Name != "" {
		fmt.Fprintf(&text, "event: %s\n", e.Name)
	}
	fmt.Fprintf(&text, "data: %s\n\n", e.Data)
	if _, err := t.w.Write(text.Bytes()); err != nil {
		t.gone = true
		return
	}
	_ = http.NewResponseController(t.w).Flush()
}

// pieces calls send with each fragment of a text, with the step's pause between them. The gate and the cut are after the first one.
func (t *stream) pieces(text string, halting bool, send func(string)) {
	for i, piece := range split(text, t.step.Fragment) {
		if i > 0 {
			t.wait(t.step.Pause)
		}
		if t.gone {
			return
		}
		send(piece)
		if halting {
			t.halt()
		}
	}
}

// halt is where the step's gate and its cut are. Only its first call counts.
func (t *stream) halt() {
	if t.passed || t.gone {
		return
	}
	t.passed = true
	if gate := t.step.Gate; gate != nil {
		close(gate.reached)
		select {
		case <-gate.open:
		case <-t.r.Context().Done():
			t.gone = true
			return
		}
	}
	if t.step.Cut {
		panic(http.ErrAbortHandler)
	}
}

// wait waits, unless the client goes away.
func (t *stream) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.r.Context().Done():
		t.gone = true
	}
}

// split cuts a text into fragments of so many characters.
func split(text string, size int) []string {
	if size <= 0 {
		size = 16
	}
	var pieces []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(size, len(runes))
		pieces = append(pieces, string(runes[:n]))
		runes = runes[n:]
	}
	return pieces
}

// encode is JSON as the APIs write it: without escapes for HTML.
func encode(v any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
