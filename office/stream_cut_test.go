package office_test

// This file tests that nothing is lost or repeated however often a watcher's connection is cut.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// fragile is a connection that breaks after so many bytes were read, wherever that is in a frame.
type fragile struct {
	net.Conn
	left int
}

var errCut = errors.New("the connection was cut")

func (f *fragile) Read(p []byte) (int, error) {
	if f.left <= 0 {
		_ = f.Close()
		return 0, errCut
	}
	n, err := f.Conn.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// glimpse watches a session from a place on until the connection breaks, or up to the last place, and gives the records that came whole.
func (b *bench) glimpse(session string, after, last int64, lasts int) (records []feed.Record, err error) {
	dialer := websocket.Dialer{NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &fragile{c, lasts}, err
	}}
	header := http.Header{"Authorization": {"Bearer " + tokenAll}}
	ws, _, err := dialer.DialContext(b.t.Context(), b.streamURL(session, fmt.Sprintf("protocol=6&after_seq=%d", after)), header)
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	for after < last {
		_ = ws.SetReadDeadline(time.Now().Add(patience))
		_, data, err := ws.ReadMessage()
		if err != nil {
			return records, err
		}
		frame, err := feed.DecodeFrame(data)
		if err != nil {
			return records, fmt.Errorf("a frame that is none: %w", err)
		}
		if f, ok := frame.(feed.RecordsAppend); ok {
			records = append(records, f.Records...)
			after = f.Records[len(f.Records)-1].FeedSeq
		}
	}
	return records, nil
}

func TestAWatcherThatIsCut200TimesHasEveryRecordOnceAndInOrder(t *testing.T) {
	const cuts, batches, perBatch = 200, 200, 500
	const total = batches * perBatch
	b, _ := openSessions(t)
	s, _, u := b.working("i1")
	b.records("uid-i1", 1)

	var cut atomic.Int64
	failed := make(chan struct{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		for batch := range batches {
			for int64(batch) > cut.Load()+10 { // so that it is written from the first cut to the last
				select {
				case <-failed:
					return
				case <-time.After(time.Millisecond):
				}
			}
			entries := make([]feed.Entry, 0, perBatch)
			for i := range perBatch {
				n := batch*perBatch + i
				entries = append(entries, u.entry(feed.SourceCommand, feed.FormatCommand, "stdout", fmt.Sprintf(`{"n":%d}`, n)))
			}
			u.upload(entries...)
		}
	}()
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	defer close(failed)
	const last = total + 1
	var got []feed.Record
	place := int64(1)
	for place < last {
		lasts := 1 << 40
		if cut.Load() < cuts {
			lasts = 200 + random.IntN(2*perBatch*420) // in the middle of a handshake, a snapshot, a record
		}
		records, err := b.glimpse(s.ID, place, last, lasts)
		got = append(got, records...)
		if len(records) > 0 {
			place = records[len(records)-1].FeedSeq
		}
		switch {
		case err == nil:
		case cut.Load() < cuts && (errors.Is(err, errCut) || errors.Is(err, io.ErrUnexpectedEOF)):
			cut.Add(1)
		default:
			t.Fatalf("after record %d and %d cuts: %v", place, cut.Load(), err)
		}
	}
	<-written
	if n := cut.Load(); n != cuts {
		t.Errorf("it was cut %d times, not %d", n, cuts)
	}
	for i, r := range got {
		if want := fmt.Sprintf(`{"n":%d}`, i); r.FeedSeq != int64(i+2) || string(r.Payload) != want {
			t.Fatalf("record %d stands at %d and is %s, not %s", i, r.FeedSeq, r.Payload, want)
		}
	}
	if len(got) != total {
		t.Errorf("it has %d records, not %d", len(got), total)
	}
}
