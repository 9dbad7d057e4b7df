package agent

// This file keeps the agent connected: it dials, says hello, reads, and decides when to dial again. Per connection there is
// one reader and one writer with a bounded queue.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// queueSize is how many frames may wait for the writer. The agent itself has only a few in flight, so a full queue means
// that the office does not read.
const queueSize = 256

// writeWait is how long one frame may take to be written.
const writeWait = 10 * time.Second

// endpoint gives the URL of the agent endpoint of a team.
func endpoint(base, namespace, team string) (string, error) {
	u, err := officeURL(base, "v1", "teams", namespace, team, "agent")
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// officeURL gives a URL of the office for WebSockets, of a path's parts below its base.
func officeURL(base string, path ...string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "https", "wss":
		u.Scheme = "wss"
	case "http", "ws":
		u.Scheme = "ws"
	default:
		return nil, fmt.Errorf("the URL needs the scheme https or http, not %q", u.Scheme)
	}
	if u.Host == "" {
		return nil, errors.New("the URL names no host")
	}
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	return u.JoinPath(path...), nil
}

// dialer opens connections to the office. Token and CA are read each time, so that new ones need no restart.
type dialer struct {
	tokenFile, caFile, version string
	// timeout is how long a dial may take.
	timeout time.Duration
}

func (a *Agent) dialer() dialer {
	return dialer{
		tokenFile: a.cfg.TokenFile, caFile: a.cfg.CAFile, version: a.cfg.Version, timeout: a.cfg.timing.welcome,
	}
}

func (d dialer) token() (string, error) {
	data, err := os.ReadFile(d.tokenFile)
	if err != nil {
		return "", fmt.Errorf("the token cannot be read: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("the token file %s is empty", d.tokenFile)
	}
	return token, nil
}

// dial opens a WebSocket; where the office answers something else, it returns that HTTP status too. There is no proxy between an agent and
// its office, whatever the environment says for other programs.
func (d dialer) dial(ctx context.Context, address string, header http.Header) (ws *websocket.Conn, status int, err error) {
	w := websocket.Dialer{HandshakeTimeout: d.timeout, ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10}
	if d.caFile != "" {
		pem, err := os.ReadFile(d.caFile)
		if err != nil {
			return nil, 0, fmt.Errorf("the office's CA cannot be read: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, 0, fmt.Errorf("the file %s holds no certificate in PEM", d.caFile)
		}
		w.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	header = header.Clone()
	header.Set("User-Agent", "bullpen-agent/"+d.version)
	ws, resp, err := w.DialContext(ctx, address, header) //nolint:bodyclose // the dialer has read it
	if err != nil && resp != nil {
		return nil, resp.StatusCode, fmt.Errorf("%w: the office answered %s", err, resp.Status)
	}
	return ws, 0, err
}

// end is how a connection ended.
type end int

const (
	// endLost: anything that a later try may mend.
	endLost end = iota
	// endRestart: the office asked to connect again.
	endRestart
	// endAuth and endVersion: refused; only another token, or another release, helps.
	endAuth
	endVersion
	// endReplaced: another agent serves this person.
	endReplaced
)

// endOf tells from the close code, and from the error before it if the code did not arrive.
func endOf(err error, refused protocol.Code) end {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		switch closed.Code {
		case protocol.CloseAuthFailed:
			return endAuth
		case protocol.CloseVersionMismatch:
			return endVersion
		case protocol.CloseReplaced:
			return endReplaced
		case websocket.CloseServiceRestart:
			return endRestart
		}
	}
	switch refused {
	case protocol.CodeAuthFailed:
		return endAuth
	case protocol.CodeVersionMismatch:
		return endVersion
	case protocol.CodeReplaced:
		return endReplaced
	}
	return endLost
}

// timing has the agent's times; tests have shorter ones.
type timing struct {
	// welcome is how long dialing may take, and how long the office may take to answer hello.
	welcome time.Duration
	// retryFirst and retryMost bound the pause between tries; lasted is how long a connection has to last for the
	// pauses to start over.
	retryFirst, retryMost, lasted time.Duration
	// refused is the pause after the office refused the token or the version; poll is how often a changed token is looked
	// for meanwhile.
	refused, poll time.Duration
	// goodbye is how long a close may take.
	goodbye time.Duration
	// idle is the longest that a connection may carry nothing, however rare the office's heartbeats are: what stands between
	// the two sides cuts a connection that is silent for half a minute.
	idle time.Duration
	// away is how long a question of a program waits for a connection, answer how long for its answer, and deliver how long
	// a message that is kept on disk anyway. See programs.go.
	away, answer, deliver time.Duration
	// records is how long the end of a round waits for the records before it, while they are on their way.
	records time.Duration
}

var defaultTiming = timing{
	welcome:    10 * time.Second,
	retryFirst: 250 * time.Millisecond, retryMost: 30 * time.Second, lasted: 10 * time.Second,
	refused: 30 * time.Second, poll: time.Second,
	goodbye: 2 * time.Second,
	idle:    20 * time.Second,
	away:    5 * time.Second, answer: 30 * time.Second, deliver: 10 * time.Second,
	records: 5 * time.Second,
}

// retry decides when to dial again.
type retry struct {
	timing   timing
	failures int
	restarts int
}

// after returns the pause after a connection that was welcome for the given time; 0 if it never was.
func (r *retry) after(e end, welcome time.Duration, random float64) time.Duration {
	if welcome >= r.timing.lasted {
		r.failures, r.restarts = 0, 0
	}
	if e == endRestart && welcome > 0 && r.restarts < 3 {
		r.restarts++ // the office wants to be called at once, but not by an agent that spins
		return 0
	}
	r.failures++
	if e == endAuth || e == endVersion {
		return r.timing.refused/2 + time.Duration(float64(r.timing.refused/2)*random)
	}
	return backoff(r.failures-1, r.timing.retryFirst, r.timing.retryMost, random)
}

// connector keeps one connection. Its callbacks run on its own goroutine.
type connector struct {
	dialer
	url    string
	person string
	log    *slog.Logger
	timing timing
	nextID func() string

	// connected, received and lost tell of a connection; replaced of the end of all.
	connected func(l *link, id string, w protocol.Welcome)
	received  func(*link, protocol.Frame, json.RawMessage)
	lost      func(*link)
	replaced  func()
}

// run keeps the agent connected until ctx ends or another agent takes over.
func (c *connector) run(ctx context.Context) {
	again := retry{timing: c.timing}
	for ctx.Err() == nil {
		token, welcome, e, err := c.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if e == endReplaced {
			c.log.Error("another agent of this person connected; this one stays away until it is restarted")
			c.replaced()
			return
		}
		pause := again.after(e, welcome, rand.Float64())
		c.log.Warn("not connected to the office", "error", err, "retryIn", pause.Round(time.Millisecond).String())
		c.wait(ctx, pause, token)
	}
}

// wait waits for the pause to end; a token other than the refused one ends it early.
func (c *connector) wait(ctx context.Context, pause time.Duration, refused string) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	poll := time.NewTicker(c.timing.poll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-poll.C:
			if token, err := c.token(); err == nil && refused != "" && token != refused {
				return
			}
		}
	}
}

// once holds one connection from dial to end. It returns the token that it used, so that another one is noticed.
func (c *connector) once(ctx context.Context) (token string, welcomeFor time.Duration, e end, err error) {
	token, err = c.token()
	if err != nil {
		return "", 0, endLost, err
	}
	ws, _, err := c.dial(ctx, c.url, http.Header{})
	if err != nil {
		return token, 0, endLost, err
	}
	l := newLink(ws, c.timing.goodbye)
	stop := context.AfterFunc(ctx, func() { _ = ws.Close() })
	defer stop()
	defer l.kill()

	id, welcome, refused, err := c.greet(l, token)
	if err != nil {
		return token, 0, endOf(err, refused), fmt.Errorf("the office did not welcome this agent: %w", err)
	}
	began := time.Now()
	l.silence(heartbeatOf(welcome))
	var writer sync.WaitGroup
	writer.Go(l.write)
	c.connected(l, id, welcome)
	refused, err = c.read(l)
	l.kill()
	writer.Wait()
	c.lost(l)
	return token, time.Since(began), endOf(err, refused), err
}

// heartbeatOf gives the heartbeat that a welcome asks for, within reason.
func heartbeatOf(w protocol.Welcome) time.Duration {
	return min(max(time.Duration(w.HeartbeatMs)*time.Millisecond, 50*time.Millisecond), time.Hour)
}

// greet says hello and waits for welcome, of which it returns the id too. It returns the code of an error that came instead.
func (c *connector) greet(l *link, token string) (string, protocol.Welcome, protocol.Code, error) {
	deadline := time.Now().Add(c.timing.welcome)
	_ = l.ws.SetReadDeadline(deadline)
	_ = l.ws.SetWriteDeadline(deadline)
	hello, err := protocol.Encode(protocol.Frame{ID: c.nextID(), Message: protocol.Hello{
		Person: c.person, Token: token, ProtocolVersion: protocol.Version, AgentVersion: c.version,
	}})
	if err != nil {
		return "", protocol.Welcome{}, "", err
	}
	if err := l.ws.WriteMessage(websocket.TextMessage, hello); err != nil {
		return "", protocol.Welcome{}, "", err
	}
	var refused protocol.Code
	var why error
	for {
		_, data, err := l.ws.ReadMessage()
		if err != nil {
			return "", protocol.Welcome{}, refused, errors.Join(why, err)
		}
		frame, werr := protocol.Decode(data)
		if werr != nil {
			return "", protocol.Welcome{}, refused, fmt.Errorf("its answer to hello cannot be read: %w", werr)
		}
		switch m := frame.Message.(type) {
		case protocol.Welcome:
			if m.ProtocolVersion != protocol.Version {
				return frame.ID, m, protocol.CodeVersionMismatch,
					fmt.Errorf("it speaks version %d of the protocol, this agent %d", m.ProtocolVersion, protocol.Version)
			}
			return frame.ID, m, "", nil
		case protocol.Error:
			refused, why = m.Code, m.Err() // the close that follows may say more
		}
	}
}

// read hands frames on until the connection ends. It returns the code of the last error that was about the connection.
func (c *connector) read(l *link) (protocol.Code, error) {
	var refused protocol.Code
	for {
		_, data, err := l.ws.ReadMessage()
		if err != nil {
			return refused, err
		}
		l.alive()
		frame, werr := protocol.Decode(data)
		if werr != nil {
			c.log.Warn("a message of the office was not understood", "error", werr)
			c.misunderstood(l, data, werr)
			continue
		}
		if m, ok := frame.Message.(protocol.Error); ok && frame.ReplyTo == "" {
			refused = m.Code
		}
		if _, ok := frame.Message.(protocol.Ping); ok {
			c.answer(l, protocol.Frame{ID: c.nextID(), ReplyTo: frame.ID, Message: protocol.Pong{}})
			continue
		}
		c.received(l, frame, payloadOf(frame, data))
	}
}

func (c *connector) answer(l *link, f protocol.Frame) {
	data, err := protocol.Encode(f)
	if err != nil {
		c.log.Error("an answer cannot be encoded", "type", f.Message.Type(), "error", err)
		return
	}
	l.send(data)
}

// misunderstood takes a frame that could not be decoded. The office is told, unless the frame was meant as an error: those are
// never answered. A request that the frame answered has its answer all the same: there will be no other, and a newer office
// may use words that this agent does not know.
func (c *connector) misunderstood(l *link, data []byte, werr *protocol.WireError) {
	var envelope struct {
		ReplyTo string `json:"replyTo"`
		Type    string `json:"type"`
	}
	known := json.Unmarshal(data, &envelope) == nil
	if !known || envelope.Type != string(protocol.TypeError) {
		c.answer(l, werr.Reply(c.nextID()))
	}
	if known && envelope.ReplyTo != "" {
		c.received(l, protocol.Frame{ReplyTo: envelope.ReplyTo, Message: protocol.Error{
			Code: protocol.CodeUnsupported, Message: "the office's answer was not understood: " + werr.Message,
		}}, nil)
	}
}

// payloadOf returns the payload of an offer or of an answer as it came, and of other messages nothing.
func payloadOf(f protocol.Frame, data []byte) json.RawMessage {
	if _, offer := f.Message.(protocol.Offer); !offer && f.ReplyTo == "" {
		return nil
	}
	var envelope struct {
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(data, &envelope) != nil {
		return nil
	}
	return bytes.Clone(envelope.Payload)
}

// link is one connection.
type link struct {
	ws      *websocket.Conn
	goodbye time.Duration

	out     chan []byte
	stopped chan struct{} // closed by kill
	leave   chan struct{} // closed by bye
	once    struct{ kill, bye sync.Once }

	mu    sync.Mutex
	quiet time.Duration // how long the office may be silent
}

func newLink(ws *websocket.Conn, goodbye time.Duration) *link {
	l := &link{
		ws: ws, goodbye: goodbye,
		out: make(chan []byte, queueSize), stopped: make(chan struct{}), leave: make(chan struct{}),
	}
	// Decode answers a frame that is a little too large; only what nobody should send ends the connection.
	ws.SetReadLimit(4 * protocol.MaxFrame)
	ws.SetPingHandler(func(data string) error {
		l.alive()
		err := ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWait))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	return l
}

// silence sets how long nothing may come: two heartbeats, each of which the office answers.
func (l *link) silence(heartbeat time.Duration) {
	l.mu.Lock()
	l.quiet = 2 * heartbeat
	l.mu.Unlock()
	l.alive()
}

// alive notes that something came.
func (l *link) alive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quiet > 0 {
		_ = l.ws.SetReadDeadline(time.Now().Add(l.quiet))
	}
}

// send queues a frame. A full queue ends the connection: what matters is in the outbox.
func (l *link) send(frame []byte) {
	select {
	case l.out <- frame:
	default:
		l.kill()
	}
}

// bye sends what is queued, closes the connection in order and waits a little for the office to do the same.
func (l *link) bye() { l.once.bye.Do(func() { close(l.leave) }) }

// kill ends the connection at once.
func (l *link) kill() {
	l.once.kill.Do(func() {
		close(l.stopped)
		_ = l.ws.Close()
	})
}

// write writes until the connection ends.
func (l *link) write() {
	for {
		select {
		case frame := <-l.out:
			if !l.writeFrame(frame) {
				return
			}
		case <-l.leave:
			l.writeRest()
			return
		case <-l.stopped:
			return
		}
	}
}

func (l *link) writeFrame(frame []byte) bool {
	_ = l.ws.SetWriteDeadline(time.Now().Add(writeWait))
	if err := l.ws.WriteMessage(websocket.TextMessage, frame); err != nil {
		l.kill()
		return false
	}
	return true
}

// writeRest writes what is queued and then the close.
func (l *link) writeRest() {
	for {
		select {
		case frame := <-l.out:
			if !l.writeFrame(frame) {
				return
			}
			continue
		default:
		}
		break
	}
	deadline := time.Now().Add(l.goodbye)
	_ = l.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), deadline)
	l.mu.Lock()
	l.quiet = 0
	l.mu.Unlock()
	_ = l.ws.SetReadDeadline(deadline)
}
