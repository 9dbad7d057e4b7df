package office

// This file tests how many are let in at a time, in the time of a bubble.

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is a listener in front of which everybody stands already.
type crowd struct{ closed chan struct{} }

func (c *crowd) Accept() (net.Conn, error) {
	select {
	case <-c.closed:
		return nil, net.ErrClosed
	default:
	}
	ours, _ := net.Pipe()
	return ours, nil
}

func (c *crowd) Close() error {
	close(c.closed)
	return nil
}

func (c *crowd) Addr() net.Addr { return &net.UnixAddr{Name: "crowd", Net: "pipe"} }

// opened is a gate with its crowd, and those who were let in so far.
func opened(t *testing.T) (*gate, <-chan *entering) {
	t.Helper()
	g, in := newGate(&crowd{closed: make(chan struct{})}), make(chan *entering, 10*entrances)
	ended := make(chan error, 1)
	go func() {
		for {
			c, err := g.Accept()
			if err != nil {
				ended <- err
				return
			}
			in <- c.(*entering)
		}
	}()
	t.Cleanup(func() {
		_ = g.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed gate says %v", err)
		}
		for len(in) > 0 {
			_ = (<-in).Close()
		}
	})
	return g, in
}

func TestAStormIsLetInAFewAtATime(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(first *entering)
		in   int
	}{
		{"others wait while the first ones dawdle", func(*entering) {}, entrances},
		{"one that has said hello makes room", func(e *entering) { e.entered() }, entrances + 1},
		{"once", func(e *entering) { e.entered(); e.entered() }, entrances + 1},
		{"one that ends makes room", func(e *entering) { _ = e.Close() }, entrances + 1},
		{"once, also if it had said hello", func(e *entering) { e.entered(); _ = e.Close() }, entrances + 1},
		{"a second before their time nobody has made room", func(*entering) { time.Sleep(entranceTime - time.Second) }, entrances},
		{"those who take too long do not keep others out", func(*entering) { time.Sleep(entranceTime + time.Second) }, 2 * entrances},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, in := opened(t)
				synctest.Wait()
				first := <-in
				test.do(first)
				synctest.Wait()
				if got := 1 + len(in); got != test.in {
					t.Errorf("%d were let in, not %d", got, test.in)
				}
				_ = first.Close()
			})
		})
	}
}

func TestWhoeverCameThroughNoGateIsLetBe(_ *testing.T) {
	var e *entering
	e.entered()
}
