// Package spooltest is the office's side of the upload of records, for tests: it keeps what agents upload as the real one does, by spool
// and sequence, and does what a test says with connections.
package spooltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// Frame is something that an agent sent: an entry or a delta.
type Frame struct {
	Item, Spool string
	Entry       *feed.Entry
	Delta       *feed.LiveDelta
}

// Office takes uploads. Its fields are for one goroutine at a time, before connections come; its methods for any.
type Office struct {
	mu sync.Mutex
	// spools has the last sequence of each spool; frames all that was kept, in order.
	spools map[string]int64
	frames []Frame
	// problems are what agents did wrong.
	problems []string
	open     map[*websocket.Conn]string
	dials    int
	tokens   []string
	largest  int

	status    int
	cutAfter  int
	cutEach   bool
	mute      bool
	unsaid    []func()
	closeCode int
}

// New makes an office without any record.
func New() *Office { return &Office{spools: map[string]int64{}, open: map[*websocket.Conn]string{}} }

// ServeHTTP takes uploads at /v1/sessions/{id}/ingest.
func (o *Office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "v1" || parts[1] != "sessions" || parts[3] != "ingest" {
		http.NotFound(w, r)
		return
	}
	o.mu.Lock()
	o.dials++
	o.tokens = append(o.tokens, r.Header.Get("Authorization"))
	status, code := o.status, o.closeCode
	o.mu.Unlock()
	if status != 0 {
		http.Error(w, "no", status)
		return
	}
	ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close() //nolint:errcheck // it is over either way
	if code != 0 {
		_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "because the test says so"), time.Now().Add(time.Second))
		return
	}
	o.serve(ws, parts[2], r.URL.Query().Get("spool"))
}

func (o *Office) serve(ws *websocket.Conn, item, spool string) {
	var writes sync.Mutex
	send := func(frame any) {
		writes.Lock()
		defer writes.Unlock()
		_ = ws.WriteJSON(frame) // an agent that is gone shows elsewhere
	}
	o.mu.Lock()
	o.open[ws] = item
	had := o.spools[spool]
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.open, ws)
	}()
	send(feed.Ready{Type: feed.IngestReady, SessionID: "s1-test-" + item, Seq: had})
	for {
		_, data, err := ws.ReadMessage()
		if err != nil {
			return
		}
		stored, ok := o.take(item, spool, data)
		if !ok {
			return // in the middle, without a word
		}
		if stored == 0 {
			continue
		}
		say := func() { send(feed.Stored{Type: feed.IngestStored, Seq: stored}) }
		o.mu.Lock()
		if o.mute {
			o.unsaid = append(o.unsaid, say)
			say = func() {}
		}
		o.mu.Unlock()
		say()
	}
}

// take keeps a frame. It returns the last sequence that is kept, 0 for a delta; ok is false where the connection is to be cut.
func (o *Office) take(item, spool string, data []byte) (stored int64, ok bool) {
	var frame struct {
		Type    string       `json:"type"`
		Entries []feed.Entry `json:"entries"`
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := json.Unmarshal(data, &frame); err != nil {
		o.problems = append(o.problems, err.Error())
		return 0, false
	}
	o.largest = max(o.largest, len(data))
	if o.cutEach {
		return 0, false
	}
	if o.cutAfter > 0 {
		if o.cutAfter--; o.cutAfter == 0 {
			return 0, false
		}
	}
	if frame.Type == feed.IngestDelta {
		var delta feed.LiveDelta
		if err := json.Unmarshal(data, &delta); err != nil {
			o.problems = append(o.problems, err.Error())
			return 0, false
		}
		o.frames = append(o.frames, Frame{Item: item, Spool: spool, Delta: &delta})
		return 0, true
	}
	if len(frame.Entries) == 0 || len(frame.Entries) > 256 {
		o.problems = append(o.problems, fmt.Sprintf("an upload of %d entries", len(frame.Entries)))
	}
	for i := range frame.Entries {
		e := frame.Entries[i]
		switch last := o.spools[spool]; {
		case e.Seq <= last:
			continue
		case e.Seq > last+1:
			o.problems = append(o.problems, fmt.Sprintf("sequence %d after %d", e.Seq, last))
			return 0, false
		}
		o.spools[spool] = e.Seq
		o.frames = append(o.frames, Frame{Item: item, Spool: spool, Entry: &e})
	}
	return o.spools[spool], true
}

// Refuse answers connections with an HTTP status, until it is 0.
func (o *Office) Refuse(status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status = status
}

// CloseWith closes connections at once with a code, until it is 0.
func (o *Office) CloseWith(code int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeCode = code
}

// CutAfter cuts a connection instead of taking the n-th frame from now.
func (o *Office) CutAfter(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cutAfter = n
}

// CutEach cuts each connection at its first frame.
func (o *Office) CutEach(cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cutEach = cut
}

// Mute keeps what is to be said of stored entries back, until it is called with false.
func (o *Office) Mute(mute bool) {
	o.mu.Lock()
	o.mute = mute
	unsaid := o.unsaid
	if !mute {
		o.unsaid = nil
	}
	o.mu.Unlock()
	if !mute {
		for _, say := range unsaid {
			say()
		}
	}
}

// Forget has the office lose a spool's records: the last sequence becomes n.
func (o *Office) Forget(spool string, n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spools[spool] = n
}

// CutAll cuts the connections that are open.
func (o *Office) CutAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ws := range o.open {
		_ = ws.Close()
	}
}

// Frames returns what an item's agent sent, in order.
func (o *Office) Frames(item string) []Frame {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.frames), func(f Frame) bool { return f.Item != item })
}

// Entries returns the entries of an item, in order.
func (o *Office) Entries(item string) []feed.Entry {
	var list []feed.Entry
	for _, f := range o.Frames(item) {
		if f.Entry != nil {
			list = append(list, *f.Entry)
		}
	}
	return list
}

// Types returns the types of an item's entries, in order.
func (o *Office) Types(item string) []string {
	var list []string
	for _, e := range o.Entries(item) {
		list = append(list, e.Type)
	}
	return list
}

// Open counts the connections that are open.
func (o *Office) Open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open)
}

// Dials counts the connections that were tried.
func (o *Office) Dials() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dials
}

// Tokens are the authorizations of the connections that were tried.
func (o *Office) Tokens() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.tokens)
}

// Largest is the size of the largest frame.
func (o *Office) Largest() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.largest
}

// Problems are what agents did wrong.
func (o *Office) Problems() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.problems)
}
