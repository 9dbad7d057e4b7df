package hub

// This file has one connection: its reader, its bounded writer, and how it ends.

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Limits of a connection.
const (
	// maxQueuedFrames and maxQueuedBytes bound what waits for a peer that does not read.
	maxQueuedFrames = 1024
	maxQueuedBytes  = 8 << 20
	// writeTimeout bounds one write; closeTimeout the wait for the peer's answer to a close.
	writeTimeout = 10 * time.Second
	closeTimeout = 2 * time.Second
	// discardLimit is how much of a frame that is too large is read over before the peer is cut.
	discardLimit = 16 << 20
)

// ErrTooLarge says that a frame was larger than the limit. It was read over, and the connection goes on.
var ErrTooLarge = errors.New("the frame is larger than the limit")

// ErrBinary says that a frame was not text. It was read over, and the connection goes on.
var ErrBinary = errors.New("the frame is binary; only text frames are understood")

// CodeDropped is the close code by which the office ends a connection so that the agent reconnects at once, to end what its next
// welcome does not list: 1012, service restart, in the registry of RFC 6455.
const CodeDropped = websocket.CloseServiceRestart

// Conn is one WebSocket connection. Its reader calls Read; everybody may call Send and Close.
type Conn struct {
	ws *websocket.Conn
	// quiet is how long the peer may show no life.
	quiet    time.Duration
	maxFrame int64
	// heard and pinged are unix nanoseconds of the last frame or pong read, and of the last ping sent.
	heard  atomic.Int64
	pinged atomic.Int64

	mu      sync.Mutex
	queue   []outgoing
	bytes   int
	writing bool
	// held keeps the writer from starting until Open, so that nothing leaves before the first frame.
	held   bool
	closed bool
}

// outgoing is a frame, or with a code the close of the connection.
type outgoing struct {
	frame  []byte
	code   int
	reason string
}

// NewConn wraps a connection. Frames over maxFrame bytes are refused, and a peer that shows no life for quiet is cut. Nothing is
// sent before Open, except a close.
func NewConn(ws *websocket.Conn, maxFrame int64, quiet time.Duration) *Conn {
	c := &Conn{ws: ws, quiet: quiet, maxFrame: maxFrame, held: true}
	c.alive(time.Now())
	ws.SetPongHandler(func(string) error { c.alive(time.Now()); return nil })
	return c
}

// SetQuiet changes how long the peer may show no life.
func (c *Conn) SetQuiet(quiet time.Duration) {
	c.mu.Lock()
	c.quiet = quiet
	c.mu.Unlock()
	c.alive(time.Now())
}

func (c *Conn) alive(now time.Time) {
	c.heard.Store(now.UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed { // the deadline of a closing connection stands
		_ = c.ws.SetReadDeadline(now.Add(c.quiet))
	}
}

// Read waits for the next frame and appends it to buf. ErrTooLarge and ErrBinary leave the connection usable; every other
// error is its end. Only one goroutine may read.
func (c *Conn) Read(buf []byte) ([]byte, error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return nil, err
	}
	c.alive(time.Now())
	if kind != websocket.TextMessage {
		return nil, c.readOver(r, ErrBinary)
	}
	frame, err := appendAll(buf, io.LimitReader(r, c.maxFrame+1))
	if err != nil {
		return nil, err
	}
	if int64(len(frame)-len(buf)) > c.maxFrame {
		return nil, c.readOver(r, ErrTooLarge)
	}
	c.alive(time.Now())
	return frame, nil
}

// readOver drops the rest of a frame, so that the connection can go on; a frame without end ends it.
func (c *Conn) readOver(r io.Reader, why error) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, discardLimit))
	if err != nil {
		return err
	}
	if n == discardLimit {
		c.Close(websocket.CloseMessageTooBig, "frames are limited")
		return websocket.ErrReadLimit
	}
	return why
}

func appendAll(buf []byte, r io.Reader) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Open lets frames leave: first this one, then those that were sent before.
func (c *Conn) Open(first []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.held = false
	c.queue = append([]outgoing{{frame: first}}, c.queue...)
	c.bytes += len(first)
	c.startWriter()
}

// Send queues a frame and returns at once. It says false when the connection is closed; a peer whose queue is full is cut.
func (c *Conn) Send(frame []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if len(c.queue) >= maxQueuedFrames || c.bytes+len(frame) > maxQueuedBytes {
		c.closed = true
		c.queue = nil
		go func() { _ = c.ws.Close() }()
		return false
	}
	c.queue = append(c.queue, outgoing{frame: frame})
	c.bytes += len(frame)
	c.startWriter()
	return true
}

// Close ends the connection with a close code after what is queued. Later frames and closes are dropped.
func (c *Conn) Close(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	c.held = false
	c.queue = append(c.queue, outgoing{code: code, reason: reason})
	c.startWriter()
}

// Fail sends one last frame, before all that is queued and also before Open, and ends the connection.
func (c *Conn) Fail(last []byte, code int, reason string) {
	c.mu.Lock()
	c.queue = append([]outgoing{{frame: last}}, c.queue...)
	c.mu.Unlock()
	c.Close(code, reason)
}

// startWriter runs the writer where there is work for it and none runs yet. The lock is held.
func (c *Conn) startWriter() {
	if c.writing || c.held || len(c.queue) == 0 {
		return
	}
	c.writing = true
	go c.write()
}

// write sends what is queued until there is nothing more.
func (c *Conn) write() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.writing = false
			c.queue = nil
			c.mu.Unlock()
			return
		}
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.bytes -= len(next.frame)
		c.mu.Unlock()
		if !c.writeOne(next) {
			return
		}
	}
}

func (c *Conn) writeOne(out outgoing) bool {
	now := time.Now()
	if out.frame == nil {
		message := websocket.FormatCloseMessage(out.code, cutReason(out.reason))
		_ = c.ws.WriteControl(websocket.CloseMessage, message, now.Add(closeTimeout))
		// The reader sees the peer's answer, or the deadline, and then takes the connection down.
		_ = c.ws.SetReadDeadline(now.Add(closeTimeout))
		return false
	}
	_ = c.ws.SetWriteDeadline(now.Add(writeTimeout))
	if err := c.ws.WriteMessage(websocket.TextMessage, out.frame); err != nil {
		c.abort()
		return false
	}
	return true
}

// abort takes the connection down without a word; its reader then ends.
func (c *Conn) abort() {
	c.mu.Lock()
	c.closed = true
	c.queue = nil
	c.mu.Unlock()
	_ = c.ws.Close()
}

// Release frees the connection after its reader has ended.
func (c *Conn) Release() { c.abort() }

// PingIfDue sends a WebSocket ping when the peer has been quiet for a quarter of its silence limit. It does not block. One caller
// serves all connections at a regular interval, so that an idle one needs no timer of its own.
func (c *Conn) PingIfDue(now time.Time) {
	c.mu.Lock()
	busy, quiet := c.writing || c.closed || c.held, c.quiet
	c.mu.Unlock()
	due := now.Add(-quiet / 4).UnixNano()
	if busy || c.heard.Load() > due || c.pinged.Load() > due {
		return
	}
	c.pinged.Store(now.UnixNano())
	_ = c.ws.WriteControl(websocket.PingMessage, nil, now.Add(time.Millisecond))
}

// cutReason keeps a close reason within the 123 bytes that a control frame has for it.
func cutReason(s string) string {
	const limit = 123
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut]
}

// Drain reads a connection that is being closed to its end, so that the last frames reach the peer.
func (c *Conn) Drain() {
	for {
		if _, _, err := c.ws.NextReader(); err != nil {
			return
		}
	}
}
