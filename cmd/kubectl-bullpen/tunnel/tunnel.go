// Package tunnel dials a port of a pod through the Kubernetes API server, as kubectl port-forward does, but without a port on this machine:
// nobody else here can use it.
package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Target is a port of a pod.
type Target struct {
	Namespace, Pod string
	Port           int
}

// Dialer opens connections to the pod that find gives. All of them go through one connection to the API server, which is made when it is
// first needed, and again, to the pod that find gives then, when it was lost. Its methods may be called by many goroutines.
type Dialer struct {
	config *rest.Config
	find   func(ctx context.Context) (Target, error)

	mu      sync.Mutex
	conn    httpstream.Connection
	target  Target
	request int
}

// New makes a dialer that uses the API server of the config, as its user.
func New(config *rest.Config, find func(ctx context.Context) (Target, error)) *Dialer {
	return &Dialer{config: config, find: find}
}

// DialContext opens a connection to the pod, whatever the address is.
func (d *Dialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, target, request, err := d.connection(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := open(conn, target, request)
	if err != nil {
		d.drop(conn)
		return nil, fmt.Errorf("open a connection to the pod %s/%s through the API server: %w", target.Namespace, target.Pod, err)
	}
	return stream, nil
}

// Close ends all connections.
func (d *Dialer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == nil {
		return nil
	}
	err := d.conn.Close()
	d.conn = nil
	return err
}

// connection is the one to the API server, and the number of the next request on it.
func (d *Dialer) connection(ctx context.Context) (httpstream.Connection, Target, int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		select {
		case <-d.conn.CloseChan():
			d.conn = nil
		default:
		}
	}
	if d.conn == nil {
		target, err := d.find(ctx)
		if err != nil {
			return nil, target, 0, err
		}
		conn, err := forward(ctx, d.config, target)
		if err != nil {
			return nil, target, 0, fmt.Errorf("forward port %d of the pod %s/%s: %w", target.Port, target.Namespace, target.Pod, err)
		}
		d.conn, d.target = conn, target
	}
	d.request++
	return d.conn, d.target, d.request, nil
}

// drop ends a connection to the API server that does not work any more, so that the next dial makes another.
func (d *Dialer) drop(conn httpstream.Connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn == conn {
		d.conn = nil
	}
	_ = conn.Close() // it is lost already
}

// forward makes the connection to the API server: over a WebSocket, and where that is not possible, by SPDY, as kubectl does.
func forward(ctx context.Context, config *rest.Config, target Target) (httpstream.Connection, error) {
	where, err := address(config, target)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	bySPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, where)
	byWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(where, config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialerForStreaming(byWebSocket, bySPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	type result struct {
		conn     httpstream.Connection
		protocol string
		err      error
	}
	dialed := make(chan result, 1)
	go func() {
		conn, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		dialed <- result{conn, protocol, err}
	}()
	select {
	case r := <-dialed:
		if r.err == nil && r.protocol != portforward.PortForwardProtocolV1Name {
			_ = r.conn.Close()
			return nil, fmt.Errorf("the API server speaks %q, not %q", r.protocol, portforward.PortForwardProtocolV1Name)
		}
		return r.conn, r.err
	case <-ctx.Done():
		go func() { // the dialer takes no context
			if r := <-dialed; r.err == nil {
				_ = r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// address is where the API server forwards ports of the pod.
func address(config *rest.Config, target Target) (*url.URL, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return client.Post().Resource("pods").Namespace(target.Namespace).Name(target.Pod).SubResource("portforward").URL(), nil
}

// open opens a connection to the pod's port: two streams, of which the first tells what goes wrong with the second.
func open(conn httpstream.Connection, target Target, request int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(target.Port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(request))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err := conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = problems.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		conn.RemoveStreams(problems)
		return nil, err
	}
	// A stream knows no deadlines, which TLS and WebSockets need; a pipe does.
	here, there := net.Pipe()
	s := &streamConn{Conn: here, told: make(chan struct{})}
	go func() {
		defer close(s.told)
		text, err := io.ReadAll(io.LimitReader(problems, 64<<10))
		switch {
		case len(text) > 0:
			s.problem = errors.New(strings.TrimSpace(string(text)))
		case err != nil:
			s.problem = err
		}
	}()
	go func() {
		_, _ = io.Copy(there, data) // why it ended is told by the other stream
		_ = data.Reset()
		<-s.told
		_ = there.Close()
		conn.RemoveStreams(problems, data)
	}()
	go func() {
		_, _ = io.Copy(data, there)
		_ = data.Close()
	}()
	return s, nil
}

// streamConn is a connection through two streams.
type streamConn struct {
	net.Conn
	// told is closed once problem says what went wrong, if something did.
	told    chan struct{}
	problem error
}

// Read gives at the end what went wrong on the other side, if something did.
func (s *streamConn) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if err != nil && errors.Is(err, io.EOF) {
		<-s.told
		if s.problem != nil {
			err = s.problem
		}
	}
	return n, err
}
