package runtimes

// This file is who watches a session: a client of the stream that remembers every frame, and what there is to read in the records.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// watcher keeps what it is sent.
type watcher struct {
	t  *testing.T
	ws *websocket.Conn

	mu      sync.Mutex
	changed *sync.Cond
	frames  []feed.Frame
	raw     []string
	problem string
}

// watch opens a stream of the item's session from its beginning, and ends it with the test.
func (w *world) watch() *watcher {
	w.t.Helper()
	url := "ws" + strings.TrimPrefix(w.url, "http") + "/v1/sessions/" + w.session().ID + "/stream?protocol=6&after_seq=0"
	ws, _, err := websocket.DefaultDialer.DialContext(w.t.Context(), url, nil)
	must(w.t, err)
	v := &watcher{t: w.t, ws: ws}
	v.changed = sync.NewCond(&v.mu)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		v.read()
	}()
	w.t.Cleanup(func() {
		_ = ws.Close()
		<-ended
		if v.problem != "" {
			w.t.Error(v.problem)
		}
	})
	return v
}

// read takes frames until the connection ends.
func (v *watcher) read() {
	last := int64(0)
	for {
		_, data, err := v.ws.ReadMessage()
		if err != nil {
			return
		}
		frame, err := feed.DecodeFrame(data)
		v.mu.Lock()
		if err != nil {
			v.problem = fmt.Sprintf("a frame cannot be read: %v: %s", err, data)
		}
		if list, ok := frame.(feed.RecordsAppend); ok {
			for _, r := range list.Records {
				if r.FeedSeq != last+1 {
					v.problem = fmt.Sprintf("a watcher got record %d after %d", r.FeedSeq, last)
				}
				last = r.FeedSeq
			}
		}
		v.frames, v.raw = append(v.frames, frame), append(v.raw, string(data))
		v.changed.Broadcast()
		v.mu.Unlock()
	}
}

// await waits until something holds of the frames, and gives them as they are then.
func (v *watcher) await(what string, holds func(frames []feed.Frame) bool) []feed.Frame {
	v.t.Helper()
	deadline := time.Now().Add(patience)
	late := time.AfterFunc(patience, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.changed.Broadcast()
	})
	defer late.Stop()
	v.mu.Lock()
	defer v.mu.Unlock()
	for !holds(v.frames) {
		if v.problem != "" || !time.Now().Before(deadline) {
			for _, raw := range v.raw {
				v.t.Logf("%.300s", raw)
			}
			v.t.Fatalf("the watcher did not see %s in these %d frames %s", what, len(v.frames), v.problem)
		}
		v.changed.Wait()
	}
	return v.frames[:len(v.frames):len(v.frames)]
}

// delta is the place of the first delta of a kind whose text, with those before it, begins with a text; -1 where none came.
func delta(frames []feed.Frame, kind, beginning string) int {
	var text strings.Builder
	for i, f := range frames {
		d, ok := f.(feed.DeltaFrame)
		if !ok || d.Kind != kind || d.Text == nil {
			continue
		}
		if kind == feed.DeltaThinking {
			text.Reset() // it replaces the one before
		}
		text.WriteString(*d.Text)
		if strings.Contains(text.String(), beginning) {
			return i
		}
	}
	return -1
}

// record is the place of the first frame with a record that fits; -1 where none came.
func record(frames []feed.Frame, fits func(feed.Record) bool) int {
	for i, f := range frames {
		if list, ok := f.(feed.RecordsAppend); ok {
			for _, r := range list.Records {
				if fits(r) {
					return i
				}
			}
		}
	}
	return -1
}

// sessionFrame is the place of the first frame with a session object that fits; -1 where none came.
func sessionFrame(frames []feed.Frame, fits func(feed.Session) bool) int {
	for i, f := range frames {
		if s, ok := f.(feed.SessionFrame); ok && fits(s.Session) {
			return i
		}
	}
	return -1
}

// records are all of the item's session, as the office keeps them.
func (w *world) records() []feed.Record {
	w.t.Helper()
	stored, err := w.feed.Read(context.Background(), w.session().ID, 0, 100_000, 1<<30)
	must(w.t, err)
	var list []feed.Record
	for i, s := range stored {
		r, err := feed.DecodeRecord(s.JSON)
		must(w.t, err)
		if r.FeedSeq != int64(i)+1 {
			w.t.Errorf("record %d has the place %d", i+1, r.FeedSeq)
		}
		list = append(list, r)
	}
	return list
}

// outline is a feed for people.
func outline(records []feed.Record) string {
	var text strings.Builder
	end := func(id *string) string {
		if id == nil {
			return "-"
		}
		return (*id)[strings.LastIndexByte(*id, '-')+1:]
	}
	for _, r := range records {
		fmt.Fprintf(&text, "%3d %s %s %s %s %s %.200s\n",
			r.FeedSeq, r.CreatedAt.Format("05.000"), end(r.TurnID), end(r.MessageID), r.Source, r.Type, r.Payload)
	}
	return text.String()
}

// shape is a feed in short: the types of the platform's records, with steps and statuses, and one word for each run of the runtime's
// records.
func (w *world) shape(records []feed.Record) []string {
	w.t.Helper()
	var shape []string
	for _, r := range records {
		word := r.Type
		switch {
		case r.Source == w.kit.source && r.Format == w.kit.format:
			word = "native"
			if len(shape) > 0 && shape[len(shape)-1] == word {
				continue
			}
		case r.Type == feed.TypeEnvironmentOutput:
			continue // git says what it likes
		case r.Type == feed.TypeEnvironmentPhase:
			var p feed.EnvironmentPhase
			must(w.t, json.Unmarshal(r.Payload, &p))
			word = p.Phase + " " + p.Status
		case r.Type == feed.TypeTurnEnded:
			var p feed.TurnEnded
			must(w.t, json.Unmarshal(r.Payload, &p))
			word += " " + p.Status
			if p.Reason != nil {
				word += " " + *p.Reason
			}
		}
		shape = append(shape, word)
	}
	return shape
}

// times counts the completed records with a text of the model.
func (w *world) times(records []feed.Record, text string) int {
	n := 0
	for _, r := range records {
		if r.Source == w.kit.source && w.kit.said(r.Payload) == text {
			n++
		}
	}
	return n
}

// echoes are the messages that native records of a turn repeat, each once.
func (w *world) echoes(records []feed.Record, turn string) []string {
	var ids []string
	for _, r := range records {
		if r.Source == w.kit.source && r.MessageID != nil && r.TurnID != nil && *r.TurnID == turn {
			if len(ids) == 0 || ids[len(ids)-1] != *r.MessageID {
				ids = append(ids, *r.MessageID)
			}
		}
	}
	return ids
}
