package hub_test

// This file tests one connection: what leaves in which order, what ends it, and that nobody waits for a peer that does not read. The
// connections are pipes without any buffer, and time is that of the bubble a test runs in.

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/hub"
)

const (
	// quiet is how long a peer may show no life, maxFrame the limit of frames, in these tests.
	quiet    = time.Minute
	maxFrame = 1 << 20
)

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.conns) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// pair makes a connection: the office's side, and the peer's.
func pair(t *testing.T) (*hub.Conn, *websocket.Conn) {
	t.Helper()
	listener, conns := &pipes{conns: make(chan net.Conn)}, make(chan *hub.Conn, 1)
	upgrader := websocket.Upgrader{WriteBufferPool: &sync.Pool{}}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		conns <- hub.NewConn(ws, maxFrame, quiet)
	})}
	go func() { _ = server.Serve(listener) }()
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		listener.conns <- theirs
		return ours, nil
	}}
	peer, response, err := dialer.Dial("ws://office/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	conn := <-conns
	t.Cleanup(func() {
		conn.Release()
		_ = peer.Close()
		_ = server.Close()
	})
	return conn, peer
}

// reader is the office's reader of a connection, as the office runs one.
type reader struct {
	frames []string
	errs   []error
	// end is why it ended, after how long.
	end   error
	after time.Duration
	done  chan struct{}
}

// serve reads a connection to its end.
func serve(conn *hub.Conn) *reader {
	r := &reader{done: make(chan struct{})}
	start := time.Now()
	go func() {
		defer close(r.done)
		defer conn.Release()
		for {
			frame, err := conn.Read(nil)
			switch {
			case err == nil:
				r.frames = append(r.frames, string(frame))
			case errors.Is(err, hub.ErrTooLarge) || errors.Is(err, hub.ErrBinary):
				r.errs = append(r.errs, err)
			default:
				r.end, r.after = err, time.Since(start)
				return
			}
		}
	}()
	return r
}

// heard gives all frames that the peer gets until the end, and how it ended.
func heard(peer *websocket.Conn) (frames []string, end error) {
	for {
		_, data, err := peer.ReadMessage()
		if err != nil {
			return frames, err
		}
		frames = append(frames, string(data))
	}
}

// wantClose checks that a connection ended with a close of that code and reason.
func wantClose(t *testing.T, end error, code int, reason string) {
	t.Helper()
	var closing *websocket.CloseError
	if !errors.As(end, &closing) || closing.Code != code || closing.Text != reason {
		t.Errorf("the connection ended with %v, not with code %d and %q", end, code, reason)
	}
}

func wantTimeout(t *testing.T, end error) {
	t.Helper()
	var timeout net.Error
	if !errors.As(end, &timeout) || !timeout.Timeout() {
		t.Errorf("the connection ended with %v, not with a timeout", end)
	}
}

func send(c *hub.Conn, frames ...string) {
	for _, f := range frames {
		c.Send([]byte(f))
	}
}

func TestWhatLeavesAndInWhichOrder(t *testing.T) {
	for _, test := range []struct {
		name   string
		do     func(c *hub.Conn)
		frames []string
		code   int
		reason string
	}{
		{
			"frames leave in the order in which they were sent, and a close after them",
			func(c *hub.Conn) {
				c.Open([]byte("welcome"))
				send(c, "1", "2", "3")
				c.Close(hub.CodeDropped, "reconnect")
			},
			[]string{"welcome", "1", "2", "3"}, hub.CodeDropped, "reconnect",
		},
		{
			"frames that were sent before Open come after the first one",
			func(c *hub.Conn) {
				send(c, "1", "2")
				synctest.Wait()
				c.Open([]byte("welcome"))
				send(c, "3")
				c.Close(hub.CodeDropped, "reconnect")
			},
			[]string{"welcome", "1", "2", "3"}, hub.CodeDropped, "reconnect",
		},
		{
			"a connection that never opened ends without the frames that waited for that",
			func(c *hub.Conn) {
				send(c, "1", "2")
				c.Close(hub.CodeDropped, "reconnect")
				c.Open([]byte("welcome"))
			},
			nil, hub.CodeDropped, "reconnect",
		},
		{
			"a failure before Open is one frame and the close",
			func(c *hub.Conn) {
				send(c, "1", "2")
				c.Fail([]byte("error"), 4401, "auth_failed")
				c.Open([]byte("welcome"))
				send(c, "3")
			},
			[]string{"error"}, 4401, "auth_failed",
		},
		{
			"a failure overtakes what a slow peer has not got yet, and nothing comes after it",
			func(c *hub.Conn) {
				c.Open([]byte("welcome"))
				synctest.Wait() // the writer waits for the peer to read the first frame
				send(c, "1", "2")
				c.Fail([]byte("error"), 4409, "replaced")
				send(c, "3")
			},
			[]string{"welcome", "error"}, 4409, "replaced",
		},
		{
			"of two ends the first one counts",
			func(c *hub.Conn) {
				c.Fail([]byte("error"), 4409, "replaced")
				c.Fail([]byte("another"), 4401, "auth_failed")
				c.Close(hub.CodeDropped, "reconnect")
			},
			[]string{"error"}, 4409, "replaced",
		},
		{
			"a failure after a close does not come",
			func(c *hub.Conn) {
				c.Open([]byte("welcome"))
				c.Close(hub.CodeDropped, "reconnect")
				c.Fail([]byte("error"), 4409, "replaced")
			},
			[]string{"welcome"}, hub.CodeDropped, "reconnect",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, peer := pair(t)
				office := serve(conn)
				test.do(conn)
				frames, end := heard(peer)
				if diff := cmp.Diff(test.frames, frames); diff != "" {
					t.Errorf("the peer got other frames:\n%s", diff)
				}
				wantClose(t, end, test.code, test.reason)
				<-office.done
				if conn.Send([]byte("late")) {
					t.Error("a closed connection takes a frame")
				}
				if conn.Close(hub.CodeDropped, "again") {
					t.Error("a closed connection says that it was open")
				}
			})
		})
	}
}

func TestASlowReaderIsCutAndDelaysNobody(t *testing.T) {
	for _, test := range []struct {
		name  string
		frame string
		fits  int // in the queue of the slow one, and the one that its writer has
	}{
		{"by the number of frames that wait for it", "x", 1 + 1024},
		{"by the number of bytes that wait for it", strings.Repeat("x", 1<<20), 1 + 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				slow, _ := pair(t)
				fast, reads := pair(t)
				slowOffice, fastOffice := serve(slow), serve(fast)
				slow.Open([]byte("welcome"))
				fast.Open([]byte("welcome"))
				got := 0
				go func() {
					for {
						if _, _, err := reads.ReadMessage(); err != nil {
							return
						}
						got++
					}
				}()
				synctest.Wait()
				taken := 0
				for range test.fits + 10 {
					if slow.Send([]byte(test.frame)) {
						taken++
					}
					if !fast.Send([]byte(test.frame)) {
						t.Fatal("the fast one was cut")
					}
					synctest.Wait()
				}
				<-slowOffice.done
				if want := test.fits - 1; taken != want {
					t.Errorf("the queue of the slow one took %d frames, not %d", taken, want)
				}
				if want := 1 + test.fits + 10; got != want {
					t.Errorf("the fast one got %d frames, not %d", got, want)
				}
				if waited := time.Since(start); waited != 0 {
					t.Errorf("somebody waited %v", waited)
				}
				select {
				case <-fastOffice.done:
					t.Errorf("the fast one ended with %v", fastOffice.end)
				default:
				}
			})
		})
	}
}

func TestAWriteThatIsNotTakenEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome")) // nobody reads it
		<-office.done
		if office.after >= quiet {
			t.Errorf("the connection was cut only after %v, by its silence", office.after)
		}
		if conn.Send([]byte("x")) {
			t.Error("a connection that was cut takes a frame")
		}
	})
}

func TestFramesThatAreNotUnderstoodKeepTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		for _, m := range []struct {
			kind int
			text string
		}{
			{websocket.TextMessage, "first"},
			{websocket.TextMessage, strings.Repeat("x", maxFrame+1)},
			{websocket.TextMessage, strings.Repeat("y", maxFrame)},
			{websocket.BinaryMessage, "binary"},
			{websocket.BinaryMessage, strings.Repeat("z", maxFrame+1)},
			{websocket.TextMessage, ""},
			{websocket.TextMessage, "last"},
		} {
			if err := peer.WriteMessage(m.kind, []byte(m.text)); err != nil {
				t.Fatal(err)
			}
		}
		_ = peer.Close()
		<-office.done
		if diff := cmp.Diff([]string{"first", strings.Repeat("y", maxFrame), "", "last"}, office.frames); diff != "" {
			t.Errorf("the office read other frames:\n%.300s", diff)
		}
		want := fmt.Sprint([]error{hub.ErrTooLarge, hub.ErrBinary, hub.ErrBinary})
		if got := fmt.Sprint(office.errs); got != want {
			t.Errorf("the office noticed %s, not %s", got, want)
		}
	})
}

func TestAFrameWithoutEndEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		go func() {
			w, err := peer.NextWriter(websocket.TextMessage)
			for piece := []byte(strings.Repeat("x", 64<<10)); err == nil; {
				_, err = w.Write(piece)
			}
		}()
		_, end := heard(peer)
		wantClose(t, end, websocket.CloseMessageTooBig, "frames are limited")
		<-office.done
		if len(office.frames) > 0 {
			t.Error("the office took a part of the frame for a frame")
		}
	})
}

// sweeping sweeps beside the test, which must wait for its end.
func sweeping(conn *hub.Conn, office *reader) *sync.WaitGroup {
	var beside sync.WaitGroup
	beside.Go(func() { sweep(conn, office) })
	return &beside
}

// sweep pings when it is due, as the office does, until the connection ends.
func sweep(conn *hub.Conn, office *reader) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-office.done:
			return
		case now := <-tick.C:
			time.Sleep(50 * time.Millisecond) // a sweep over many connections comes late to the last of them
			conn.PingIfDue(now)
		}
	}
}

func TestAHalfOpenPeerIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome"))
		if _, _, err := peer.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		// The kernel of a peer that is gone still takes what is written, for a while.
		go func() { _, _ = io.Copy(io.Discard, peer.NetConn()) }()
		sweep(conn, office)
		wantTimeout(t, office.end)
		if office.after != quiet {
			t.Errorf("it took %v to notice, not %v", office.after, quiet)
		}
	})
}

func TestAPeerThatAnswersPingsStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome"))
		pings := 0
		answer := peer.PingHandler()
		peer.SetPingHandler(func(text string) error { pings++; return answer(text) })
		go func() { _, _ = heard(peer) }()
		beside := sweeping(conn, office)
		time.Sleep(10 * quiet)
		synctest.Wait()
		select {
		case <-office.done:
			t.Fatalf("the connection ended with %v", office.end)
		default:
		}
		if pings < 30 || pings > 40 {
			t.Errorf("%d pings in ten times the limit of silence; four in each are enough", pings)
		}
		_ = peer.Close()
		beside.Wait()
	})
}

func TestAPeerThatSendsFramesIsNotPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome"))
		peer.SetPingHandler(func(string) error { t.Error("a ping came"); return nil })
		go func() { _, _ = heard(peer) }()
		beside := sweeping(conn, office)
		for range 50 {
			time.Sleep(quiet / 5)
			if err := peer.WriteMessage(websocket.TextMessage, []byte("heartbeat")); err != nil {
				t.Fatal(err)
			}
		}
		_ = peer.Close()
		beside.Wait()
	})
}

func TestPongsDoNotBuyTimeBeforeOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		for peer.WriteControl(websocket.PongMessage, nil, time.Time{}) == nil {
			time.Sleep(quiet / 10)
		}
		<-office.done
		wantTimeout(t, office.end)
		if office.after != quiet {
			t.Errorf("a peer that says nothing but pong was kept for %v, not for %v", office.after, quiet)
		}
	})
}

func TestAChangedLimitOfSilenceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := pair(t)
		office := serve(conn)
		time.Sleep(quiet / 2)
		conn.SetQuiet(2 * quiet)
		<-office.done
		if want := quiet/2 + 2*quiet; office.after != want {
			t.Errorf("the peer was cut after %v, not %v", office.after, want)
		}
	})
}

func TestAPeerThatDoesNotAnswerACloseIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome"))
		peer.SetCloseHandler(func(int, string) error { return nil })
		go func() { _, _ = heard(peer) }()
		conn.Close(hub.CodeDropped, "reconnect")
		for range 30 { // what it sends buys no time
			_ = peer.WriteMessage(websocket.TextMessage, []byte("x"))
			time.Sleep(time.Second)
		}
		_ = peer.Close()
		<-office.done
		if office.after > 10*time.Second {
			t.Errorf("the connection was held for %v", office.after)
		}
	})
}

func TestAReasonFitsIntoAClose(t *testing.T) {
	for _, test := range []struct{ name, reason, want string }{
		{"a short one stays", "reconnect", "reconnect"},
		{"the longest that fits stays", strings.Repeat("x", 123), strings.Repeat("x", 123)},
		{"a longer one is cut", strings.Repeat("x", 500), strings.Repeat("x", 123)},
		{"a letter is not cut in two", strings.Repeat("x", 122) + "ääää", strings.Repeat("x", 122)},
		{"a letter that fits stays", strings.Repeat("x", 121) + "ääää", strings.Repeat("x", 121) + "ä"},
		{"none is none", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, peer := pair(t)
				office := serve(conn)
				conn.Close(hub.CodeDropped, test.reason)
				_, end := heard(peer)
				wantClose(t, end, hub.CodeDropped, test.want)
				if !utf8.ValidString(test.want) {
					t.Error("the reason is no text")
				}
				<-office.done
			})
		})
	}
}

// TestEverybodyAtOnce lets many senders, a pinger, a chatty peer and an end meet, for the race detector; what came must still be in order.
func TestEverybodyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		const senders, each = 8, 100
		var all sync.WaitGroup
		for s := range senders {
			all.Go(func() {
				for n := range each {
					conn.Send(fmt.Appendf(nil, "%d %d", s, n))
				}
			})
		}
		for range 2 {
			all.Go(func() {
				for n := range each {
					conn.PingIfDue(time.Now().Add(time.Duration(n) * quiet))
					conn.SetQuiet(quiet)
				}
			})
		}
		all.Go(func() {
			for range each {
				if err := peer.WriteMessage(websocket.TextMessage, []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
		conn.Open([]byte("welcome"))
		go func() {
			all.Wait()
			conn.Close(hub.CodeDropped, "reconnect")
			conn.Fail([]byte("error"), 4409, "replaced")
		}()
		frames, end := heard(peer)
		<-office.done
		wantClose(t, end, hub.CodeDropped, "reconnect")
		if len(frames) != 1+senders*each || frames[0] != "welcome" {
			t.Fatalf("%d frames came, the first of them %q", len(frames), frames[0])
		}
		next := [senders]int{}
		for _, f := range frames[1:] {
			var s, n int
			if _, err := fmt.Sscanf(f, "%d %d", &s, &n); err != nil || n != next[s] {
				t.Fatalf("the frame %q came when %d was the sender's next", f, next[s])
			}
			next[s]++
		}
		if len(office.frames) != each {
			t.Errorf("the office read %d frames, not %d", len(office.frames), each)
		}
	})
}
