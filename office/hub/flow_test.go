package hub_test

// This file tests what a connection does with a peer that sends too much, too little, or in a form that nobody agreed on.

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/hub"
)

// write sends frames until there were enough, or the connection ends.
func write(peer *websocket.Conn, kind int, text string, frames int) {
	for n := 0; n != frames; n++ {
		if peer.WriteMessage(kind, []byte(text)) != nil {
			return
		}
	}
}

func TestABacklogOfThousandsIsSlowedButNeitherCutNorTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.SetQuiet(2 * time.Second)
		conn.Open([]byte("welcome"))
		go func() { _, _ = heard(peer) }()
		beside := sweeping(conn, office)
		start := time.Now()
		const lines = 5_000
		write(peer, websocket.TextMessage, "a line of a journal", lines)
		if took := time.Since(start).Round(time.Second); took != 20*time.Second {
			t.Errorf("it took %v; the first thousand are free, and then it is 200 a second", took)
		}
		time.Sleep(time.Minute) // it goes on living, by its pongs
		synctest.Wait()
		select {
		case <-office.done:
			t.Errorf("the connection ended with %v", office.end)
		default:
		}
		_ = peer.Close()
		beside.Wait()
		if len(office.frames) != lines {
			t.Errorf("the office read %d frames, not %d", len(office.frames), lines)
		}
	})
}

func TestAFloodIsSlowedAndThenCutWithAReason(t *testing.T) {
	for _, test := range []struct {
		name  string
		flood func(peer *websocket.Conn)
		most  int // of frames that the office reads
	}{
		{"of frames", func(peer *websocket.Conn) { write(peer, websocket.TextMessage, "x", -1) }, 61_001},
		{"of pings", func(peer *websocket.Conn) {
			for peer.WriteControl(websocket.PingMessage, nil, time.Time{}) == nil {
				continue
			}
		}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, peer := pair(t)
				office := serve(conn)
				conn.Open([]byte("welcome"))
				go test.flood(peer)
				_, end := heard(peer)
				wantClose(t, end, websocket.ClosePolicyViolation, "more than 200 frames a second for 5m0s: send less, then connect again")
				_ = peer.Close()
				<-office.done
				if office.after < 5*time.Minute || office.after > 5*time.Minute+20*time.Second {
					t.Errorf("it was cut after %v, not after five minutes", office.after)
				}
				if n := len(office.frames) + len(office.errs); n > test.most {
					t.Errorf("the office read %d frames in that time, more than %d", n, test.most)
				}
				if test.most > 0 && !errors.Is(office.end, hub.ErrFlood) {
					t.Errorf("the reader ended with %v", office.end)
				}
			})
		})
	}
}

func TestLargeFramesAreSlowedSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome"))
		go func() { _, _ = heard(peer) }()
		start := time.Now()
		write(peer, websocket.TextMessage, strings.Repeat("x", 2*maxFrame), 20) // too large, and they count all the same
		if took := time.Since(start); took < 5*time.Second || took > 10*time.Second {
			t.Errorf("40 MiB took %v", took)
		}
		_ = peer.Close()
		<-office.done
	})
}

func TestASlowedPeerCanBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome"))
		go write(peer, websocket.TextMessage, strings.Repeat("x", maxFrame), -1)
		go func() {
			time.Sleep(8 * time.Second) // the first five are free
			conn.Close(hub.CodeDropped, "reconnect")
		}()
		_, end := heard(peer)
		wantClose(t, end, hub.CodeDropped, "reconnect")
		_ = peer.Close()
		<-office.done
		if office.after > 13*time.Second {
			t.Errorf("its reader ended only after %v", office.after)
		}
	})
}

func TestAQuietPeerHearsAPingBeforeProxiesCutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.SetQuiet(10 * time.Minute) // as with a heartbeat of five minutes
		conn.Open([]byte("welcome"))
		last, longest := time.Now(), time.Duration(0)
		answer := peer.PingHandler()
		peer.SetPingHandler(func(text string) error {
			longest = max(longest, time.Since(last))
			last = time.Now()
			return answer(text)
		})
		var hearing sync.WaitGroup
		hearing.Go(func() { _, _ = heard(peer) })
		beside := sweeping(conn, office)
		time.Sleep(10 * time.Minute)
		_ = peer.Close()
		beside.Wait()
		hearing.Wait()
		if longest < time.Second || longest > 25*time.Second {
			t.Errorf("the longest silence was %v; proxies cut after 30 s", longest)
		}
	})
}

func TestAPingOfThePeersShowsThatItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome"))
		pongs := make(chan string, 100)
		peer.SetPongHandler(func(text string) error { pongs <- text; return nil })
		go func() { _, _ = heard(peer) }()
		for range 30 {
			if err := peer.WriteControl(websocket.PingMessage, []byte("are you there?"), time.Time{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(quiet / 3)
		}
		synctest.Wait()
		if len(pongs) != 30 || <-pongs != "are you there?" {
			t.Errorf("%d of 30 pings were answered", len(pongs))
		}
		_ = peer.Close()
		<-office.done
		if office.after != 10*quiet {
			t.Errorf("the connection ended after %v with %v", office.after, office.end)
		}
	})
}

func TestCompressionThatNobodyAgreedOnEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, peer := pair(t)
		office := serve(conn)
		conn.Open([]byte("welcome"))
		go func() { _, _ = peer.NetConn().Write([]byte{0x80 | 0x40 | 1, 0x80, 1, 2, 3, 4}) }() // a text frame whose RSV1 says compressed
		_, end := heard(peer)
		var closing *websocket.CloseError
		if !errors.As(end, &closing) || closing.Code != websocket.CloseProtocolError {
			t.Errorf("the connection ended with %v", end)
		}
		<-office.done
		if len(office.frames) > 0 {
			t.Errorf("the office read %q", office.frames)
		}
	})
}
