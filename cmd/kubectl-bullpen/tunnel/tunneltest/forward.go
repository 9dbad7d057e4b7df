// Package tunneltest plays a kubelet's part in port-forwards, for tests: it takes the streams of a request and joins them to a real port.
package tunneltest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Forwarder serves port-forwards by SPDY.
type Forwarder struct {
	// Dial opens a connection to a port of the pod; an error of it is told to who asked.
	Dial func(port string) (net.Conn, error)

	mu    sync.Mutex
	conns []httpstream.Connection
	total int
}

// Requests counts the port-forwards that were begun.
func (f *Forwarder) Requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// Cut ends all port-forwards.
func (f *Forwarder) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.conns = nil
}

// ServeHTTP serves one request until its connection ends.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	streams := make(chan httpstream.Stream, 10)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if conn == nil {
		return // it has answered
	}
	defer conn.Close() //nolint:errcheck // it is over either way
	conn.SetIdleTimeout(time.Hour)
	f.mu.Lock()
	f.conns = append(f.conns, conn)
	f.total++
	f.mu.Unlock()
	problems := map[string]httpstream.Stream{}
	for {
		select {
		case <-conn.CloseChan():
			return
		case s := <-streams:
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				problems[id] = s
				continue
			}
			go f.join(s, problems[id])
			delete(problems, id)
		}
	}
}

// join copies between a stream and a port.
func (f *Forwarder) join(data, problems httpstream.Stream) {
	defer problems.Close() //nolint:errcheck // it is over either way
	defer data.Close()     //nolint:errcheck // it is over either way
	port := data.Headers().Get(corev1.PortHeader)
	conn, err := f.Dial(port)
	if err != nil {
		_, _ = fmt.Fprintf(problems, "an error occurred forwarding to port %s: %v", port, err)
		return
	}
	defer conn.Close() //nolint:errcheck // it is over either way
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(data, conn); done <- struct{}{} }()
	go func() { _, _ = io.Copy(conn, data); done <- struct{}{} }()
	<-done
}
