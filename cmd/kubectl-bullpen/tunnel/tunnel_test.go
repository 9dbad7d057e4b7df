package tunnel_test

// These tests forward through a small API server that knows SPDY alone, so that the way back from WebSockets is taken.
// test/integration/access goes through a real one.

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/tunnel"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/tunnel/tunneltest"
)

// echo is a port that gives back what it gets.
func echo(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// api is an API server that forwards to the address.
func api(t *testing.T, address string) (*rest.Config, *tunneltest.Forwarder) {
	forwarder := &tunneltest.Forwarder{Dial: func(port string) (net.Conn, error) {
		if port != "8443" {
			return nil, fmt.Errorf("nobody listens at %s", port)
		}
		return net.Dial("tcp", address)
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer good":
			http.Error(w, "who are you", http.StatusUnauthorized)
		case r.URL.Path != "/api/v1/namespaces/ops/pods/manager-0/portforward":
			http.NotFound(w, r)
		case r.Method != http.MethodPost:
			http.Error(w, "WebSockets are not spoken here", http.StatusBadRequest)
		default:
			forwarder.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { forwarder.Cut(); server.Close() })
	return &rest.Config{Host: server.URL, BearerToken: "good"}, forwarder
}

func find(target tunnel.Target) func(context.Context) (tunnel.Target, error) {
	return func(context.Context) (tunnel.Target, error) { return target, nil }
}

var manager = tunnel.Target{Namespace: "ops", Pod: "manager-0", Port: 8443}

func dial(t *testing.T, d *tunnel.Dialer) net.Conn {
	t.Helper()
	conn, err := d.DialContext(t.Context(), "tcp", "wherever:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// speak sends a text through and wants it back.
func speak(conn net.Conn, text string) error {
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(conn, text)
		sent <- err
	}()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != text {
		return fmt.Errorf("what came back differs")
	}
	return <-sent
}

func TestConnectionsShareOnePortForward(t *testing.T) {
	config, forwarder := api(t, echo(t))
	d := tunnel.New(config, find(manager))
	defer d.Close() //nolint:errcheck // the test is over
	random := make([]byte, 300<<10)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 8 {
		conn := dial(t, d)
		group.Go(func() {
			if err := speak(conn, string(random[i:])); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := forwarder.Requests(); n != 1 {
		t.Errorf("there were %d port-forwards", n)
	}
}

func TestALostPortForwardIsMadeAgain(t *testing.T) {
	config, forwarder := api(t, echo(t))
	looked := 0
	d := tunnel.New(config, func(context.Context) (tunnel.Target, error) { looked++; return manager, nil })
	defer d.Close() //nolint:errcheck // the test is over
	conn := dial(t, d)
	if err := speak(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	forwarder.Cut()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the cut, a read gives %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		again, err := d.DialContext(t.Context(), "tcp", "x:1")
		if err == nil {
			if err = speak(again, "hello again"); err == nil {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if looked != 2 || forwarder.Requests() != 2 {
		t.Errorf("the pod was looked for %d times, and there were %d port-forwards", looked, forwarder.Requests())
	}
}

func TestDeadlinesHold(t *testing.T) {
	config, _ := api(t, echo(t))
	d := tunnel.New(config, find(manager))
	defer d.Close() //nolint:errcheck // the test is over
	conn := dial(t, d)
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read gives %v", err)
	}
	if err := speak(conn, "still there"); err != nil {
		t.Error(err)
	}
}

func TestTheOtherSideEndsAConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.WriteString(conn, "bye")
			_ = conn.Close()
		}
	}()
	config, _ := api(t, listener.Addr().String())
	d := tunnel.New(config, find(manager))
	defer d.Close() //nolint:errcheck // the test is over
	conn := dial(t, d)
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, []byte("bye")) {
		t.Errorf("it gives %q, %v", got, err)
	}
}

func TestWhatCannotBeForwarded(t *testing.T) {
	for name, test := range map[string]struct {
		target tunnel.Target
		token  string
		find   error
		says   string
	}{
		"a pod that is not there":     {target: tunnel.Target{Namespace: "ops", Pod: "manager-1", Port: 8443}, token: "good", says: "forward port 8443 of the pod ops/manager-1"},
		"one may not":                 {target: manager, token: "bad", says: "forward port 8443 of the pod ops/manager-0"},
		"no manager":                  {token: "good", find: errors.New("no manager is ready"), says: "no manager is ready"},
		"a port where nobody listens": {target: tunnel.Target{Namespace: "ops", Pod: "manager-0", Port: 9}, token: "good", says: "nobody listens at 9"},
	} {
		t.Run(name, func(t *testing.T) {
			config, _ := api(t, echo(t))
			config.BearerToken = test.token
			d := tunnel.New(config, func(context.Context) (tunnel.Target, error) { return test.target, test.find })
			defer d.Close() //nolint:errcheck // the test is over
			conn, err := d.DialContext(t.Context(), "tcp", "x:1")
			if err == nil {
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				_, err = conn.Read(make([]byte, 1))
			}
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	// An API server that does not answer is not waited for longer than the caller wants.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test is over
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	d := tunnel.New(&rest.Config{Host: "http://" + silent.Addr().String()}, find(manager))
	if _, err := d.DialContext(ctx, "tcp", "x:1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}
