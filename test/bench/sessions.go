package main

// This file measures sessions end to end: records from an agent's upload to the feed, and from the feed to those who watch.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

// newsroom is an office with people who have sessions, and everybody may watch.
type newsroom struct {
	office  *office.Office
	feed    *timedFeed
	url     string
	release func() error
	agents  []*agent
}

// timedFeed tells when the last append was durable.
type timedFeed struct {
	store.Feed
	durable atomic.Int64
}

func (f *timedFeed) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	done, err := f.Feed.Append(ctx, b)
	f.durable.Store(time.Now().UnixNano())
	return done, err
}

// everybody lets everybody do everything.
type everybody struct{}

func (everybody) Authenticate(*http.Request) (office.User, error) {
	return office.User{Name: "bench"}, nil
}

func (everybody) Allowed(context.Context, office.User, office.Deed) (bool, string, error) {
	return true, "", nil
}

// openNewsroom opens an office in this process, with so many people who each have accepted an item.
func openNewsroom(ctx context.Context, s *session, people int) (*newsroom, error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("newsroom-%d", s.unique()))
	st, err := sqlite.Open(filepath.Join(dir, "office.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	records, err := sqlite.OpenFeed(filepath.Join(dir, "office.db.feed"), sqlite.FeedOptions{Store: st.ID()})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, records.Close(), st.Close())
	}
	n := &newsroom{feed: &timedFeed{Feed: records}, url: "ws://" + listener.Addr().String()}
	o, err := office.New(office.Options{Store: st, Feed: n.feed, Access: everybody{}, Listener: listener})
	if err != nil {
		return nil, errors.Join(err, listener.Close(), records.Close(), st.Close())
	}
	n.office = o
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- o.Start(ctx) }()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-o.Changes():
			}
		}
	}()
	n.release = func() error {
		for _, a := range n.agents {
			_ = a.ws.Close()
		}
		cancel()
		return errors.Join(<-ended, records.Close(), st.Close())
	}
	if err := n.staff(ctx, people); err != nil {
		return nil, errors.Join(err, n.release())
	}
	return n, nil
}

// staff connects people and has each accept an item.
func (n *newsroom) staff(ctx context.Context, people int) error {
	if err := populate(ctx, n.office, people); err != nil {
		return err
	}
	for i := range people {
		team, handle := who(i)
		_, err := n.office.SyncItem(ctx, model.ItemFacts{
			ID: itemOf(i), Namespace: "bench", Name: itemOf(i), CreatedAt: time.Now(),
			Spec: model.ItemSpec{Hash: itemOf(i), Team: team, Person: handle, Kind: "task", Title: "Watch", Trigger: protocol.TriggerHuman},
		})
		if err != nil {
			return err
		}
		a, err := connect(ctx, agentURL("http"+strings.TrimPrefix(n.url, "ws"), "bench", team), nil, handle, "token-"+handle)
		if err != nil {
			return err
		}
		n.agents = append(n.agents, a)
		if err := a.acceptFirst(); err != nil {
			return err
		}
	}
	return nil
}

func itemOf(n int) string { return "item-" + strconv.Itoa(n) }

// acceptFirst waits for an offer, and accepts it.
func (a *agent) acceptFirst() error {
	for {
		frame, err := a.read()
		if err != nil {
			return err
		}
		switch m := frame.Message.(type) {
		case protocol.Offer:
			if _, err := a.send(protocol.Accept{WorkItemID: m.WorkItem.ID, Runtime: "command"}); err != nil {
				return err
			}
		case protocol.Ack:
			return nil
		}
	}
}

// upload is the agent's side of an upload.
type upload struct {
	ws    *websocket.Conn
	offer string
	seq   int64
}

func (n *newsroom) upload(ctx context.Context, person int) (*upload, error) {
	_, handle := who(person)
	header := http.Header{"Authorization": {"Bearer token-" + handle}}
	ws, response, err := websocket.DefaultDialer.DialContext(ctx, n.url+"/v1/sessions/"+itemOf(person)+"/ingest?spool=bench&person="+handle, header)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close() // it has none
	u := &upload{ws: ws, offer: model.OfferID(itemOf(person), 1)}
	var ready feed.Ready
	if err := ws.ReadJSON(&ready); err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	u.seq = ready.Seq
	return u, nil
}

// put uploads records of that payload, and waits until they are durable.
func (u *upload) put(count int, payload json.RawMessage) error {
	entries := make([]feed.Entry, count)
	for i := range entries {
		u.seq++
		entries[i] = feed.Entry{
			Seq: u.seq, Offer: u.offer, At: time.Now(), Source: feed.SourceCommand, Format: feed.FormatCommand, Type: "stdout", Payload: payload,
		}
	}
	if err := u.ws.WriteMessage(websocket.TextMessage, feedtest.Upload(entries...)); err != nil {
		return err
	}
	for {
		var stored feed.Stored
		if err := u.ws.ReadJSON(&stored); err != nil {
			return err
		}
		if stored.Seq >= u.seq {
			return nil
		}
	}
}

// somePayload is of some hundred bytes, as most messages of runtimes are.
func somePayload(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"n":%d,"lines":[%q]}`, n, strings.Repeat("a line of output as programs print it ", 10)))
}

// measureRecords has agents upload one record after another, each acknowledged when it is durable.
func measureRecords(ctx context.Context, s *session) (all result, err error) {
	const writers = 50
	n, err := openNewsroom(ctx, s, writers)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, n.release()) }()
	each := s.scale(1_000, 20)
	s.progress("%d records each from %d agents, one at a time", each, writers)
	took := make([][]time.Duration, writers)
	var group sync.WaitGroup
	failures := make([]error, writers)
	began := time.Now()
	for w := range writers {
		u, err := n.upload(ctx, w)
		if err != nil {
			return all, err
		}
		defer u.ws.Close() //nolint:errcheck // it is over
		group.Go(func() {
			for i := range each {
				at := time.Now()
				if failures[w] = u.put(1, somePayload(i)); failures[w] != nil {
					return
				}
				took[w] = append(took[w], time.Since(at))
			}
		})
	}
	group.Wait()
	elapsed := time.Since(began)
	if err := errors.Join(failures...); err != nil {
		return all, err
	}
	var every []time.Duration
	for _, list := range took {
		every = append(every, list...)
	}
	latency := spreadOf("record uploaded and acknowledged, 50 agents", every)
	all.spreads = []spread{latency}
	all.figures = []figure{
		{name: "records uploaded and acknowledged, 50 agents", unit: "/s", value: float64(len(every)) / elapsed.Seconds()},
		{name: "record uploaded and acknowledged, 50 agents, p99", unit: "ms", value: latency.p99},
	}
	return all, nil
}

// watch opens a stream, and gives each frame to take until that says that it is enough.
func (n *newsroom) watch(ctx context.Context, item string, after int64, take func(frame []byte) (enough bool)) (*websocket.Conn, func() error, error) {
	ws, response, err := websocket.DefaultDialer.DialContext(ctx, n.url+"/v1/sessions/"+item+"/stream?protocol=6&after_seq="+strconv.FormatInt(after, 10), nil)
	if err != nil {
		return nil, nil, err
	}
	_ = response.Body.Close() // it has none
	run := func() error {
		for {
			_, data, err := ws.ReadMessage()
			if err != nil {
				return err
			}
			if take(data) {
				return nil
			}
		}
	}
	return ws, run, nil
}

var appendFrame = []byte(`{"type":"records_append"`)

// measureWatchers has 1,000 people watch one session, and looks how long after a record is durable the last of them has it.
func measureWatchers(ctx context.Context, s *session) (all result, err error) {
	n, err := openNewsroom(ctx, s, 1)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, n.release()) }()
	watchers, records := s.scale(1_000, 20), s.scale(300, 10)
	s.progress("%d watchers of one session, %d records", watchers, records)
	u, err := n.upload(ctx, 0)
	if err != nil {
		return all, err
	}
	defer u.ws.Close() //nolint:errcheck // it is over
	var seen atomic.Int64
	arrived := make(chan time.Time, 1)
	for range watchers {
		ready := make(chan struct{})
		first := true
		ws, run, err := n.watch(ctx, itemOf(0), 0, func(frame []byte) bool {
			if first {
				first = false
				close(ready)
			}
			if bytes.HasPrefix(frame, appendFrame) && bytes.Contains(frame, []byte(`"stdout"`)) && seen.Add(1) == int64(watchers) {
				arrived <- time.Now()
			}
			return false
		})
		if err != nil {
			return all, err
		}
		defer ws.Close() //nolint:errcheck // it is over
		go func() { _ = run() }()
		<-ready
	}
	var took []time.Duration
	for i := range records {
		seen.Store(0)
		if err := u.put(1, somePayload(i)); err != nil {
			return all, err
		}
		durable := time.Unix(0, n.feed.durable.Load())
		select {
		case at := <-arrived:
			took = append(took, at.Sub(durable))
		case <-time.After(time.Minute):
			return all, fmt.Errorf("%d of %d watchers have record %d after a minute", seen.Load(), watchers, i)
		}
	}
	latency := spreadOf("from durable to the last of 1,000 watchers", took)
	all.spreads = []spread{latency}
	all.figures = []figure{{name: "from durable to the last of 1,000 watchers, p99", unit: "ms", value: latency.p99, aim: 50}}
	return all, nil
}

// measureResume has a watcher resume 100,000 records behind.
func measureResume(ctx context.Context, s *session) (all result, err error) {
	n, err := openNewsroom(ctx, s, 1)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, n.release()) }()
	records := s.scale(100_000, 1_000)
	s.progress("a session of %d records", records)
	u, err := n.upload(ctx, 0)
	if err != nil {
		return all, err
	}
	defer u.ws.Close() //nolint:errcheck // it is over
	for left := records; left > 0; left -= 500 {
		if err := u.put(500, somePayload(left)); err != nil {
			return all, err
		}
	}
	began := time.Now()
	var next int64 = 1
	var wrong error
	ws, run, err := n.watch(ctx, itemOf(0), 0, func(frame []byte) bool {
		if !bytes.HasPrefix(frame, appendFrame) {
			return false
		}
		for rest := frame; wrong == nil; next++ {
			at := bytes.Index(rest, []byte(`"feed_seq":`))
			if at < 0 {
				break
			}
			rest = rest[at+len(`"feed_seq":`):]
			digits := rest[:bytes.IndexByte(rest, ',')]
			if got, err := strconv.ParseInt(string(digits), 10, 64); err != nil || got != next {
				wrong = fmt.Errorf("after record %d came %s: there is a gap, or a repeat", next-1, digits)
			}
		}
		return wrong != nil || next > int64(records)
	})
	if err != nil {
		return all, err
	}
	defer ws.Close() //nolint:errcheck // it is over
	if err := errors.Join(run(), wrong); err != nil {
		return all, err
	}
	elapsed := time.Since(began)
	all.figures = []figure{{name: "resume 100,000 records behind", unit: "records/s", value: float64(records) / elapsed.Seconds(), aim: 50_000, atLeast: true}}
	return all, nil
}
