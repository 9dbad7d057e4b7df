package spool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/agentpod/spool/spooltest"
	"github.com/bullpen-dev/bullpen/office/feed"
)

var quick = Times{
	First: time.Millisecond, Most: 20 * time.Millisecond, RefusedFirst: 5 * time.Millisecond, RefusedMost: 20 * time.Millisecond,
	Keep: time.Hour, Answer: patience, Write: patience, Stall: patience, Ping: 20 * time.Millisecond, Silence: patience,
	Delta: time.Millisecond,
}

// world is an office and an uploader.
type world struct {
	*spooltest.Office
	t      *testing.T
	spool  *Spool
	up     *Uploader
	moved  atomic.Int64
	log    *logs
	cancel context.CancelFunc
	ended  chan struct{}
	url    string
}

func newWorld(t *testing.T, dir string, change ...func(*Times)) *world {
	t.Helper()
	w := &world{Office: spooltest.New(), t: t, log: &logs{}}
	server := httptest.NewServer(w.Office)
	t.Cleanup(server.Close)
	w.url = "ws" + strings.TrimPrefix(server.URL, "http")
	w.live(dir, change...)
	t.Cleanup(func() {
		w.die()
		if problems := w.Problems(); len(problems) > 0 {
			t.Errorf("the agent did wrong: %v", problems)
		}
		if t.Failed() {
			t.Logf("the log:\n%s", w.log)
		}
	})
	return w
}

// live begins a life of the agent.
func (w *world) live(dir string, change ...func(*Times)) {
	w.t.Helper()
	times := quick
	for _, c := range change {
		c(&times)
	}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	w.spool = open(w.t, dir, func(o *Options) { o.Log = log })
	dial := func(ctx context.Context, item, spool, offer string) (*websocket.Conn, error) {
		query := url.Values{"spool": {spool}, "person": {"ada"}, "offer": {offer}}
		ws, resp, err := websocket.DefaultDialer.DialContext(ctx, w.url+"/v1/sessions/"+item+"/ingest?"+query.Encode(), nil)
		if err != nil && resp != nil {
			return nil, &RefusedError{Status: resp.StatusCode, Err: err}
		}
		return ws, err
	}
	w.up = NewUploader(w.spool, dial, times, func() { w.moved.Add(1) }, log)
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.ended = cancel, make(chan struct{})
	ended := w.ended
	go func() {
		defer close(ended)
		w.up.Run(ctx)
	}()
}

// die ends it.
func (w *world) die() {
	if w.cancel == nil {
		return
	}
	w.cancel()
	select {
	case <-w.ended:
	case <-time.After(patience):
		w.t.Error("the uploader did not end")
	}
	w.spool.Close()
	w.cancel = nil
}

// has waits until the office has so many entries of an item.
func (w *world) has(item string, n int) []feed.Entry {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("the office has %d records of %s", n, item), func() bool { return len(w.Entries(item)) >= n })
	return w.Entries(item)
}

func (w *world) gone() {
	w.t.Helper()
	eventually(w.t, "the spool is empty", func() bool { return len(w.spool.all()) == 0 })
}

func TestARoundIsUploadedWhileItRunsAndItsConnectionEndsWithIt(t *testing.T) {
	w := newWorld(t, t.TempDir())
	q := w.spool.Begin("i", "r1-i")
	if w.Dials() != 0 {
		t.Error("it dialed with nothing to say")
	}
	q.Append(text(1))
	w.has("i", 1)
	q.Append(text(2))
	got := w.has("i", 2)
	if got[1].Seq != 2 || got[1].Offer != "r1-i" || string(got[1].Payload) != `{"lines":["line 2"]}` {
		t.Errorf("got %+v", got[1])
	}
	if w.Open() != 1 || w.Dials() != 1 {
		t.Errorf("%d connections, after %d dials", w.Open(), w.Dials())
	}
	q.End(theEnd)
	w.has("i", 3)
	w.gone()
	eventually(t, "the connection is closed", func() bool { return w.Open() == 0 })
	if waits, soon := w.up.Waits("i"); waits || soon {
		t.Errorf("waits %v, soon %v", waits, soon)
	}
	if w.Dials() != 1 {
		t.Errorf("%d dials", w.Dials())
	}
}

func TestRoundsOfAnItemAreUploadedInOrder(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.Refuse(http.StatusServiceUnavailable)
	for round := range 5 {
		q := w.spool.Begin("i", fmt.Sprintf("r%d-i", round))
		for n := range 300 {
			q.Append(text(n))
		}
		q.End(theEnd)
	}
	other := w.spool.Begin("j", "r1-j")
	other.End(theEnd)
	w.Refuse(0)
	got := w.has("i", 5*301)
	for i, e := range got {
		if want := fmt.Sprintf("r%d-i", i/301); e.Offer != want || e.Seq != int64(i%301+1) {
			t.Fatalf("entry %d is %d of %s", i, e.Seq, e.Offer)
		}
	}
	w.has("j", 1)
	w.gone()
}

func TestConnectionsThatAreCutLoseAndDoubleNothing(t *testing.T) {
	w := newWorld(t, t.TempDir())
	q := w.spool.Begin("i", "r1-i")
	const count = 5000
	stop := make(chan struct{})
	var cutter sync.WaitGroup
	cutter.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(random.IntN(20)) * time.Millisecond):
			}
			if random.IntN(2) == 0 {
				w.CutAll()
			} else {
				w.CutAfter(1 + random.IntN(3))
			}
		}
	})
	for n := range count {
		q.Append(text(n))
		if n%500 == 0 {
			time.Sleep(5 * time.Millisecond) // so that it takes long enough to be cut
		}
	}
	q.End(theEnd)
	w.has("i", count/2)
	close(stop)
	cutter.Wait()
	w.CutAfter(0)
	got := w.has("i", count+1)
	for i, e := range got[:count] {
		if want := fmt.Sprintf(`{"lines":["line %d"]}`, i); string(e.Payload) != want {
			t.Fatalf("record %d is %s", i, e.Payload)
		}
	}
	if len(got) != count+1 || got[count].Type != feed.TypeTurnEnded {
		t.Errorf("%d records, the last is %s", len(got), got[len(got)-1].Type)
	}
	w.gone()
}

func TestTheNextLifeUploadsWhatIsLeftAndClosesItsConnection(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.Refuse(http.StatusServiceUnavailable)
	ended := w.spool.Begin("ended", "r1-ended")
	ended.Append(text(1))
	ended.End(theEnd)
	q := w.spool.Begin("open", "r1-open")
	q.Append(text(1))
	w.die()
	w.Refuse(0)
	w.live(dir)
	w.has("ended", 2)
	w.has("open", 1)
	eventually(t, "no connection is left", func() bool { return w.Open() == 0 })
	if left := w.spool.Left(); !cmp.Equal(left, []Turn{{"open", "r1-open"}}) {
		t.Errorf("left are %v", left)
	}
	w.spool.Begin("open", "r1-open").End(theEnd)
	w.has("open", 2)
	w.gone()
}

func TestAnOfficeThatIsAwayForLongCostsNoRecordAndLittleMemory(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.Refuse(http.StatusBadGateway)
	q := w.spool.Begin("i", "r1-i")
	const count = 100
	for range count {
		q.Append(sized(50_000)) // 5 MB
	}
	if waits, soon := w.up.Waits("i"); !waits || soon && w.Dials() > 3 {
		t.Errorf("waits %v, soon %v", waits, soon)
	}
	eventually(t, "it is known not to come soon", func() bool { _, soon := w.up.Waits("i"); return !soon })
	if n := len(q.deltas.list) + len(q.pending); n > 0 {
		t.Errorf("%d entries are in memory", n)
	}
	w.Refuse(0)
	w.up.Online(true)
	w.has("i", count)
	if w.Largest() > maxBatchBytes+100_000 {
		t.Errorf("a frame has %d bytes", w.Largest())
	}
	if waits, soon := w.up.Waits("i"); waits && !soon {
		t.Errorf("waits %v, soon %v", waits, soon)
	}
}

func TestOneLargeRecordGoesAlone(t *testing.T) {
	w := newWorld(t, t.TempDir())
	q := w.spool.Begin("i", "r1-i")
	w.Refuse(http.StatusBadGateway)
	q.Append(text(1))
	q.Append(sized(feed.MaxRecord))
	q.Append(text(2))
	w.Refuse(0)
	got := w.has("i", 3)
	if len(got[1].Payload) != feed.MaxRecord || w.Largest() > feed.MaxRecord+1<<20 {
		t.Errorf("%d bytes, in a frame of %d", len(got[1].Payload), w.Largest())
	}
}

func TestUnacknowledgedEntriesAreSentAgain(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.Mute(true)
	q := w.spool.Begin("i", "r1-i")
	q.Append(text(1))
	q.End(theEnd)
	w.has("i", 2)
	if waits, soon := w.up.Waits("i"); !waits || !soon {
		t.Errorf("waits %v, soon %v", waits, soon)
	}
	w.CutAll()
	eventually(t, "it connects again, and hears that all is stored", func() bool { return len(w.spool.all()) == 0 })
	if n := len(w.Entries("i")); n != 2 {
		t.Errorf("%d records", n)
	}
}

func TestAnOfficeThatStoresNothingIsLeft(t *testing.T) {
	w := newWorld(t, t.TempDir(), func(times *Times) { times.Stall = 30 * time.Millisecond })
	w.Mute(true)
	q := w.spool.Begin("i", "r1-i")
	q.Append(text(1))
	eventually(t, "it connects again", func() bool { return w.Dials() > 1 })
}

func TestASilentConnectionIsLeft(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	var dials atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(rw, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		if dials.Add(1) == 1 {
			_ = ws.WriteJSON(feed.Ready{Type: feed.IngestReady})
		}
		<-stuck // it reads nothing, so it answers no ping
	}))
	defer server.Close()
	w := newWorld(t, t.TempDir(), func(times *Times) { times.Silence, times.Answer = 50*time.Millisecond, 50*time.Millisecond })
	w.url = "ws" + strings.TrimPrefix(server.URL, "http")
	w.spool.Begin("i", "r1-i").Append(text(1))
	eventually(t, "it is left, and so is one that says nothing at all", func() bool { return dials.Load() > 2 })
	w.die()
}

func TestAnOfficeThatLostTheBeginningGetsTheRest(t *testing.T) {
	w := newWorld(t, t.TempDir())
	q := w.spool.Begin("i", "r1-i")
	for range 40 {
		q.Append(sized(100_000))
	}
	w.has("i", 40)
	eventually(t, "segments are removed", func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.first > 1 })
	eventually(t, "all is stored", func() bool { waits, _ := w.up.Waits("i"); return !waits })
	before := q.id()
	w.Forget(before, 3)
	w.CutAll()
	q.Append(text(1))
	q.End(theEnd)
	w.gone()
	if !strings.Contains(w.log.String(), "uploaded anew") {
		t.Error("nobody was told")
	}
	frames := w.Frames("i")
	last := frames[len(frames)-1]
	if last.Spool == before || last.Entry.Type != feed.TypeTurnEnded {
		t.Errorf("the last record is %s of spool %s, which was %s", last.Entry.Type, last.Spool, before)
	}
	first := slices.IndexFunc(frames, func(f spooltest.Frame) bool { return f.Spool == last.Spool })
	if frames[first].Entry.Seq != 1 {
		t.Errorf("the new spool begins with %d", frames[first].Entry.Seq)
	}
}

func TestRecordsThatAreRefusedAreTriedSlowlyAndDroppedInTheEnd(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			w := newWorld(t, t.TempDir(), func(times *Times) { times.Keep = 100 * time.Millisecond })
			w.Refuse(status)
			q := w.spool.Begin("i", "r1-i")
			q.Append(text(1))
			q.End(theEnd)
			w.spool.Begin("i", "r2-i").End(theEnd)
			live := w.spool.Begin("i", "r3-i")
			live.Append(text(2))
			dials := w.Dials()
			eventually(t, "an agent that is not connected tries on", func() bool { return w.Dials() > dials+20 })
			if n := len(w.spool.all()); n != 3 {
				t.Fatalf("%d queues are left", n)
			}
			w.up.Online(true)
			eventually(t, "what is over is dropped", func() bool { return len(w.spool.all()) == 1 })
			if !strings.Contains(w.log.String(), "records are dropped") {
				t.Error("the log does not say so")
			}
			w.Refuse(0)
			if got := w.has("i", 1); string(got[0].Payload) != `{"lines":["line 2"]}` {
				t.Errorf("the round that runs lost its record: %s", got[0].Payload)
			}
		})
	}
}

func TestRecordsThatTheOfficeFindsWrongAreDroppedAfterAFewTries(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.CloseWith(websocket.CloseInvalidFramePayloadData)
	q := w.spool.Begin("i", "r1-i")
	q.Append(text(1))
	q.End(theEnd)
	w.gone()
	if n := w.Dials(); n != maxNonsense {
		t.Errorf("%d tries", n)
	}
}

func TestAFullOfficeIsTriedForEver(t *testing.T) {
	w := newWorld(t, t.TempDir(), func(times *Times) { times.Keep = time.Millisecond })
	w.up.Online(true)
	w.CloseWith(websocket.CloseTryAgainLater)
	q := w.spool.Begin("i", "r1-i")
	q.End(theEnd)
	eventually(t, "it tries often", func() bool { return w.Dials() > 20 })
	w.CloseWith(0)
	w.has("i", 1)
	w.gone()
}

func TestPausesGrowThoughTheOfficeTakesTheConnection(t *testing.T) {
	w := newWorld(t, t.TempDir(), func(times *Times) { times.Most = time.Second })
	q := w.spool.Begin("i", "r1-i")
	q.Append(text(1))
	w.has("i", 1)
	eventually(t, "it is stored", func() bool { waits, _ := w.up.Waits("i"); return !waits })
	w.CutEach(true)
	q.Append(text(2))
	long := regexp.MustCompile(`retryIn=([2-9]\d|\d{3})ms`) // the first are of a millisecond at most
	eventually(t, "a pause is long", func() bool { return long.MatchString(w.log.String()) })
}

func TestAWordFromTheOfficeEndsThePause(t *testing.T) {
	w := newWorld(t, t.TempDir(), func(times *Times) {
		times.First, times.Most, times.RefusedFirst, times.RefusedMost = time.Hour, time.Hour, time.Hour, time.Hour
	})
	w.Refuse(http.StatusNotFound)
	q := w.spool.Begin("i", "r1-i")
	q.End(theEnd)
	eventually(t, "it was refused", func() bool { _, soon := w.up.Waits("i"); return w.Dials() == 1 && !soon })
	w.Refuse(0)
	eventually(t, "a connection ends the pause", func() bool { w.up.Online(true); return len(w.spool.all()) == 0 })
}

func fragment(text string) feed.Delta { return feed.Delta{Kind: feed.DeltaText, Text: &text} }

func TestDeltasKeepTheirPlaceBetweenRecords(t *testing.T) {
	w := newWorld(t, t.TempDir())
	q := w.spool.Begin("i", "r1-i")
	q.Delta(fragment("nobody listens yet"))
	q.Append(text(0))
	w.has("i", 1)
	for n := 1; n <= 200; n++ {
		q.Delta(fragment(fmt.Sprint("a", n, " ")))
		q.Delta(fragment(fmt.Sprint("b", n, " ")))
		q.Append(text(n))
		w.has("i", n+1) // or they would be dropped as useless
	}
	said := ""
	n := 0
	for _, f := range w.Frames("i") {
		if f.Delta != nil {
			if f.Delta.Offer != "r1-i" || f.Delta.Delta.Kind != feed.DeltaText {
				t.Errorf("got %+v", f.Delta)
			}
			said += *f.Delta.Delta.Text
			continue
		}
		want := ""
		if n > 0 {
			want = fmt.Sprintf("a%d b%d ", n, n)
		}
		if said != want {
			t.Fatalf("before record %d was said %q", n, said)
		}
		said = ""
		n++
	}
}

func TestDeltasAreJoinedAndDroppedWhereTheyAreOfNoUse(t *testing.T) {
	text, tokens := func(s string) *string { return &s }, func(n int64) *int64 { return &n }
	for name, test := range map[string]struct{ a, b, want feed.Delta }{
		"text is joined": {feed.Delta{Kind: "text", Text: text("a")}, feed.Delta{Kind: "text", Text: text("b"), OutputTokens: tokens(2)},
			feed.Delta{Kind: "text", Text: text("ab"), OutputTokens: tokens(2)}},
		"a count leaves the text": {feed.Delta{Kind: "text", Text: text("a"), OutputTokens: tokens(1)}, feed.Delta{Kind: "text", OutputTokens: tokens(2)},
			feed.Delta{Kind: "text", Text: text("a"), OutputTokens: tokens(2)}},
		"text follows a count": {feed.Delta{Kind: "text", OutputTokens: tokens(1)}, feed.Delta{Kind: "text", Text: text("b")},
			feed.Delta{Kind: "text", Text: text("b"), OutputTokens: tokens(1)}},
		"thinking replaces": {feed.Delta{Kind: "thinking", Text: text("a")}, feed.Delta{Kind: "thinking", Text: text("b")},
			feed.Delta{Kind: "thinking", Text: text("b")}},
		"thinking is cleared": {feed.Delta{Kind: "thinking", Text: text("a")}, feed.Delta{Kind: "thinking", Text: text("")},
			feed.Delta{Kind: "thinking", Text: text("")}},
		"thinking that only counts": {feed.Delta{Kind: "thinking", Text: text("a")}, feed.Delta{Kind: "thinking", OutputTokens: tokens(5)},
			feed.Delta{Kind: "thinking", Text: text("a"), OutputTokens: tokens(5)}},
	} {
		if diff := cmp.Diff(test.want, joined(test.a, test.b)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var l deltas
	if l.add(delta{0, fragment("x")}) {
		t.Error("taken, though nobody listens")
	}
	l.wanted = true
	for range 3 * maxDeltaText / 1000 {
		l.add(delta{0, fragment(strings.Repeat("x", 1000))})
	}
	size := 0
	for _, d := range l.list {
		size += len(*d.Text)
	}
	if size > maxDeltaText {
		t.Errorf("%d bytes wait", size)
	}
	for n := range int64(10 * maxDeltas) {
		l.add(delta{n, fragment("x")})
	}
	if len(l.list) > maxDeltas {
		t.Errorf("%d pieces wait", len(l.list))
	}
	if l.add(delta{maxBehind + 1, fragment("x")}) {
		t.Error("taken, though the office is far behind")
	}
}

func TestAFloodOfRecordsAndDeltasArrives(t *testing.T) {
	w := newWorld(t, t.TempDir())
	q := w.spool.Begin("i", "r1-i")
	const count = 20_000
	for n := range count {
		q.Append(text(n))
		if n%2000 == 0 {
			w.has("i", n+1) // who is far behind gets no delta
		}
		q.Delta(fragment(fmt.Sprint(n)))
	}
	q.End(theEnd)
	w.has("i", count+1)
	w.gone()
	last, shown := -1, 0
	for _, f := range w.Frames("i") {
		if f.Entry != nil {
			last++
			continue
		}
		shown++
		if *f.Delta.Delta.Text != fmt.Sprint(last) {
			t.Fatalf("after record %d came the delta %s", last, *f.Delta.Delta.Text)
		}
	}
	if shown == 0 {
		t.Error("no delta arrived")
	}
}

func TestWhatEarlierLivesLeftTakesFewConnections(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.Refuse(http.StatusServiceUnavailable)
	for n := range 3 * maxOld {
		q := w.spool.Begin(fmt.Sprint("i", n), "r1")
		q.Append(text(1))
		q.End(theEnd)
	}
	w.die()
	before := w.Dials()
	w.Mute(true)
	w.Refuse(0)
	w.live(dir)
	eventually(t, "some are connected", func() bool { return w.Open() >= maxOld })
	for range 50 {
		time.Sleep(time.Millisecond) // for those that should not come
		if n := w.Dials() - before; n != maxOld {
			t.Fatalf("%d connections", n)
		}
	}
	w.Mute(false)
	w.gone()
	if n := w.Dials() - before; n != 3*maxOld {
		t.Errorf("%d connections in all", n)
	}
}

func TestAnAgentThatEndsLeavesItsConnectionInOrder(t *testing.T) {
	w := newWorld(t, t.TempDir())
	q := w.spool.Begin("i", "r1-i")
	q.Append(text(1))
	w.has("i", 1)
	w.die()
	eventually(t, "the connection is closed", func() bool { return w.Open() == 0 })
}

func TestTheWireFormIsThatOfTheContract(t *testing.T) {
	e := text(1)
	e.At = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	entry, err := encode(e)
	if err != nil {
		t.Fatal(err)
	}
	frame := wire(nil, 7, `r1-"i"`, entry)
	want := `{"seq":7,"offer":"r1-\"i\"","at":"2030-01-02T03:04:05Z","source":"command","record_format":"bullpen_command@1","record_type":"stdout","payload":{"lines":["line 1"]}}`
	if string(frame) != want {
		t.Errorf("got  %s\nwant %s", frame, want)
	}
	var back feed.Entry
	decoder := json.NewDecoder(bytes.NewReader(frame))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&back); err != nil {
		t.Error(err)
	}
}
