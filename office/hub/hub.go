// Package hub knows who is connected: one connection for each person, each with one reader and one bounded writer.
//
// A connection that is idle costs one goroutine, its reader's; a writer runs only while there is something to write. A peer that
// does not read is cut and never waited for; one that sends too fast is read slowly, and cut when it does not stop (pace.go). WebSocket
// pings keep proxies from cutting quiet connections, and their pongs, like any other frame, show that the peer is there: one that shows
// nothing for two heartbeats is cut.
package hub

import "sync"

// Peer is whoever has a connection.
type Peer interface {
	comparable
	// Conn is the peer's connection.
	Conn() *Conn
}

// Hub is the set of connected peers by key.
type Hub[K comparable, P Peer] struct {
	mu    sync.RWMutex
	peers map[K]P
}

// New makes an empty hub.
func New[K comparable, P Peer]() *Hub[K, P] { return &Hub[K, P]{peers: map[K]P{}} }

// Put makes the peer the key's only one and gives the one it replaces, if there was one.
func (h *Hub[K, P]) Put(key K, p P) (old P, replaced bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, replaced = h.peers[key]
	h.peers[key] = p
	return old, replaced
}

// Remove takes the peer out and says whether it was the key's current one.
func (h *Hub[K, P]) Remove(key K, p P) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if current, ok := h.peers[key]; !ok || current != p {
		return false
	}
	delete(h.peers, key)
	return true
}

// Get gives the key's peer.
func (h *Hub[K, P]) Get(key K) (P, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	p, ok := h.peers[key]
	return p, ok
}

// Len counts the peers.
func (h *Hub[K, P]) Len() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.peers)
}

// All gives every peer, in no order.
func (h *Hub[K, P]) All() []P {
	h.mu.RLock()
	defer h.mu.RUnlock()
	all := make([]P, 0, len(h.peers))
	for _, p := range h.peers {
		all = append(all, p)
	}
	return all
}

// Each calls f for every peer, in no order. f must not block, and must not call the hub.
func (h *Hub[K, P]) Each(f func(P)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, p := range h.peers {
		f(p)
	}
}
