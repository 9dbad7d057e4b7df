package office

// This file keeps a storm of agents from defeating itself. Ten thousand that connect at once share the processor; if all begin, all are
// too slow, run into their time limits, and begin again. So only some at a time are let through their first steps, which takes
// milliseconds each, and the others wait where it costs nothing: in the kernel's queue of connections that nobody accepted yet.

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	// entrances is how many connections may be in their first steps at a time: TLS, upgrade, hello.
	entrances = 256
	// entranceTime is how long one of them counts at most: those who dawdle do not keep the others out.
	entranceTime = 5 * time.Second
)

// gate is a listener that lets some in at a time.
type gate struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newGate(l net.Listener) *gate {
	return &gate{Listener: l, free: make(chan struct{}, entrances), closed: make(chan struct{})}
}

// Accept waits until there is room, and then for a connection.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.free <- struct{}{}:
	case <-g.closed:
		return nil, net.ErrClosed
	}
	c, err := g.Listener.Accept()
	if err != nil {
		<-g.free
		return nil, err
	}
	e := &entering{Conn: c, gate: g}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.timer = time.AfterFunc(entranceTime, e.entered)
	return e, nil
}

// Close lets nobody in any more.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// entering is a connection that came through a gate.
type entering struct {
	net.Conn

	mu    sync.Mutex
	gate  *gate // nil once it is through
	timer *time.Timer
}

// entered makes room for another one. A nil connection came through no gate.
func (e *entering) entered() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gate != nil {
		<-e.gate.free
		e.timer.Stop()
		e.gate, e.timer = nil, nil
	}
}

// Close makes room, too.
func (e *entering) Close() error {
	e.entered()
	return e.Conn.Close()
}

// enteringKey is the key of a request's context under which its connection is.
type enteringKey struct{}

// withEntering remembers, for the requests of a connection, that it may have come through a gate.
func withEntering(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // of TLS
		c = t.NetConn()
	}
	if e, ok := c.(*entering); ok {
		return context.WithValue(ctx, enteringKey{}, e)
	}
	return ctx
}

// enteringOf is the connection of a request's context.
func enteringOf(ctx context.Context) *entering {
	e, _ := ctx.Value(enteringKey{}).(*entering)
	return e
}
