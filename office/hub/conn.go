package hub

// This file has one connection: its reader, its bounded writer, and how it ends.

import (
	"errors"
	"fmt"
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
	// slowStep is the longest that a slowed reader sleeps before it looks whether the connection is closed.
	slowStep = 100 * time.Millisecond
	// longestSilence is how long nothing is sent to a quiet peer: proxies cut connections that are idle for 30 to 60 s.
	longestSilence = 20 * time.Second
)

// ErrTooLarge says that a frame was larger than the limit. It was read over, and the connection goes on.
var ErrTooLarge = errors.New("the frame is larger than the limit")

// ErrBinary says that a frame was not text. It was read over, and the connection goes on.
var ErrBinary = errors.New("the frame is binary; only text frames are understood")

// ErrFlood says that the peer sent faster than it may for too long; see pace.go. It is told, and the connection ends.
var ErrFlood = errors.New("the peer sends too much")

// CodeDropped is the close code by which the office ends a connection so that the agent reconnects at once, to end what its next
// welcome does not list: 1012, service restart, in the registry of RFC 6455.
const CodeDropped = websocket.CloseServiceRestart

// Conn is one WebSocket connection. Its reader calls Read; everybody may call Send and Close.
type Conn struct {
	ws       *websocket.Conn
	maxFrame int64
	// pace is the reader's own.
	pace pace
	// heard is when the last frame or pong was read, in unix nanoseconds.
	heard atomic.Int64

	mu sync.Mutex
	// quiet is how long the peer may show no life.
	quiet time.Duration
	// pinged is when the last ping was sent, in unix nanoseconds.
	pinged  int64
	queue   []outgoing
	bytes   int
	writing bool
	// held keeps the writer from starting until Open, so that nothing leaves before the first frame.
	held   bool
	closed bool
}

// outgoing is a frame, a ping, or with a code the close of the connection.
type outgoing struct {
	frame  []byte
	ping   bool
	code   int
	reason string
}

// NewConn wraps a connection. Frames over maxFrame bytes are refused, and a peer that shows no life for quiet is cut. Nothing is
// sent before Open, except a close.
func NewConn(ws *websocket.Conn, maxFrame int64, quiet time.Duration) *Conn {
	c := &Conn{ws: ws, quiet: quiet, maxFrame: maxFrame, held: true}
	c.alive(time.Now())
	ws.SetPingHandler(func(data string) error { c.ping(data); return nil })
	ws.SetPongHandler(func(string) error { c.pong(); return nil })
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

// ping answers a ping of the peer's, which shows that it is there.
func (c *Conn) ping(data string) {
	if c.admit(len(data)) {
		_ = c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout)) // who takes no pong will show no life either
		c.controlled()
	}
}

// pong notes the answer to a ping; or one that nobody asked for.
func (c *Conn) pong() {
	if c.admit(0) {
		c.controlled()
	}
}

// controlled is alive after a ping or a pong. A peer that only sends those before its hello gains no time by them.
func (c *Conn) controlled() {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if !held {
		c.alive(time.Now())
	}
}

// admit accounts for what the peer sent, and returns when more may be read; false says that the peer was cut for it. What comes after
// the connection was closed costs nothing: it is read for a moment only, until the peer has heard of the end.
func (c *Conn) admit(size int) bool {
	wait, cut := c.pace.take(time.Now(), size)
	if cut {
		return !c.Close(websocket.ClosePolicyViolation, tooMuch)
	}
	for ; wait > 0 && !c.isClosed(); wait -= slowStep {
		c.controlled() // that nothing is heard of it is our own doing
		time.Sleep(min(wait, slowStep))
	}
	return true
}

// tooMuch is the reason that a peer who floods is given.
var tooMuch = fmt.Sprintf("more than %d frames a second for %v: send less, then connect again", rate, patience)

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Read waits for the next frame and appends it to buf, and for its time, where the peer sends too fast. ErrTooLarge and ErrBinary leave
// the connection usable; every other error is its end. Only one goroutine may read.
func (c *Conn) Read(buf []byte) ([]byte, error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return nil, err
	}
	c.alive(time.Now())
	if kind != websocket.TextMessage {
		return nil, c.readOver(r, 0, ErrBinary)
	}
	frame, err := appendAll(buf, io.LimitReader(r, c.maxFrame+1))
	if err != nil {
		return nil, err
	}
	if int64(len(frame)-len(buf)) > c.maxFrame {
		return nil, c.readOver(r, len(frame)-len(buf), ErrTooLarge)
	}
	c.alive(time.Now())
	if !c.admit(len(frame) - len(buf)) {
		return nil, c.flooded()
	}
	return frame, nil
}

// flooded lets the close of a peer that was just cut leave: whoever reads is about to release the connection.
func (c *Conn) flooded() error {
	c.Drain()
	return ErrFlood
}

// readOver drops the rest of a frame of which so much was read, so that the connection can go on; a frame without end ends it.
func (c *Conn) readOver(r io.Reader, read int, why error) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, discardLimit))
	if err != nil {
		return err
	}
	if n == discardLimit {
		c.Close(websocket.CloseMessageTooBig, "frames are limited")
		c.Drain() // whoever reads is about to release the connection, and the close must leave before
		return websocket.ErrReadLimit
	}
	c.alive(time.Now())
	if !c.admit(read + int(n)) {
		return c.flooded()
	}
	return why
}

// firstRead is room for nearly every frame, so that a buffer seldom grows.
const firstRead = 512

func appendAll(buf []byte, r io.Reader) ([]byte, error) {
	if cap(buf) == 0 {
		buf = make([]byte, 0, firstRead)
	}
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
		c.queue, c.bytes = nil, 0
		go func() { _ = c.ws.Close() }()
		return false
	}
	c.queue = append(c.queue, outgoing{frame: frame})
	c.bytes += len(frame)
	c.startWriter()
	return true
}

// Close ends the connection with a close code after what is queued, and says whether it was open until now. Later frames and closes
// are dropped; so are frames that wait for an Open that now never comes.
func (c *Conn) Close(code int, reason string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.queue, c.bytes = nil, 0
	}
	return c.end(outgoing{code: code, reason: reason})
}

// Fail ends the connection with one last frame and a close code, also before Open. What is queued is dropped: the peer is to see why it
// ends, and nothing after it.
func (c *Conn) Fail(last []byte, code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.queue, c.bytes = nil, len(last)
		c.end(outgoing{frame: last}, outgoing{code: code, reason: reason})
	}
}

// end queues the last of what leaves, and says whether there was none yet. The lock is held.
func (c *Conn) end(last ...outgoing) bool {
	if c.closed {
		return false
	}
	c.closed = true
	c.held = false
	c.queue = append(c.queue, last...)
	c.startWriter()
	return true
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
		c.queue[0] = outgoing{} // the frame is not kept by the queue's array
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
	if out.ping {
		if err := c.ws.WriteControl(websocket.PingMessage, nil, now.Add(writeTimeout)); err != nil {
			c.abort()
			return false
		}
		return true
	}
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
	c.queue, c.bytes = nil, 0
	c.mu.Unlock()
	_ = c.ws.Close()
}

// Release frees the connection after its reader has ended.
func (c *Conn) Release() { c.abort() }

// PingIfDue sends a WebSocket ping when the peer has been quiet for a quarter of its silence limit, or for as long as proxies bear. It
// does not block: the writer sends it. One caller serves all connections at a regular interval, so that an idle one needs no timer of its own.
func (c *Conn) PingIfDue(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := now.Add(-min(c.quiet/4, longestSilence)).UnixNano()
	if c.writing || c.closed || c.held || c.heard.Load() > due || c.pinged > due {
		return
	}
	c.pinged = now.UnixNano()
	c.queue = append(c.queue, outgoing{ping: true})
	c.startWriter()
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
