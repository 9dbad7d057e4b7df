package office_test

// This file has what the tests of the office share: an office on a real store, served on loopback, and an agent's side of a
// connection that speaks frames.

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

// patience bounds every wait of a test; nothing waits for it in the good case.
const patience = 20 * time.Second

var shop = model.TeamKey{Namespace: "ns", Name: "shop"}

// bench is an office under test.
type bench struct {
	t      *testing.T
	path   string
	store  store.Store
	feed   store.Feed
	office *office.Office
	url    string
	stop   func()
	// options edits what each office is made of.
	options func(*office.Options)
	// sockets are the agents' sides of connections.
	sockets []*websocket.Conn
	// logs has all that the office logged, metrics its registry.
	logs    *lockedBuffer
	metrics *prometheus.Registry
}

// lockedBuffer keeps what is written to it and shows it in the test's output.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
	to   io.Writer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	return l.to.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// open starts an office on a new store, with a team that has ada and bob.
func open(t *testing.T, edits ...func(*model.Team)) *bench {
	t.Helper()
	return openWith(t, func(*office.Options) {}, edits...)
}

// openWith starts an office that is made of other things.
func openWith(t *testing.T, options func(*office.Options), edits ...func(*model.Team)) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "office.db"), options: options}
	b.start()
	t.Cleanup(func() { b.stop() })
	team := model.Team{
		UID: "team-1", Key: shop, Policy: dispatch.DefaultPolicy(), Usage: model.UsagePolicy{PauseAt: 0.95},
		Config: protocol.DefaultTeamConfig(),
	}
	team.Policy.BackoffInitial, team.Policy.BackoffMax = 5*time.Millisecond, 20*time.Millisecond
	team.Config.Name = shop.Name
	team.Config.Roles = []protocol.TeamRole{{Name: "dev", Title: "Developer", Work: []protocol.TeamWork{{Kind: "chore", Review: protocol.ReviewNone}}}}
	for _, edit := range edits {
		edit(&team)
	}
	b.must(b.office.SyncTeam(t.Context(), team))
	b.must(b.office.SyncPerson(t.Context(), person("ada")))
	b.must(b.office.SyncPerson(t.Context(), person("bob")))
	return b
}

// start opens the store at the bench's path and serves an office on it.
func (b *bench) start() {
	b.t.Helper()
	st, err := sqlite.Open(b.path, sqlite.Options{})
	b.must(err)
	records, err := sqlite.OpenFeed(b.path+".feed", sqlite.FeedOptions{Store: st.ID()})
	b.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	b.logs, b.metrics = &lockedBuffer{to: b.t.Output()}, prometheus.NewRegistry()
	options := office.Options{
		Store: st, Feed: records, Listener: listener, ConfigSettle: time.Millisecond, Metrics: b.metrics,
		Logger: slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	b.options(&options)
	o, err := office.New(options)
	b.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Start(ctx) }()
	<-o.Listening()
	go func() {
		for {
			select {
			case <-o.Changes():
			case <-ctx.Done():
				return
			}
		}
	}()
	b.store, b.feed, b.office, b.url = st, records, o, "ws://"+listener.Addr().String()
	b.stop = func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("the office ended with %v", err)
		}
		b.must(errors.Join(records.Close(), st.Close()))
		b.stop = func() {}
	}
}

// restart ends the office and opens it again. Nobody of the test reads the closing of its connection, so they are closed before: the
// office need not wait for their answers.
func (b *bench) restart() {
	for _, ws := range b.sockets {
		_ = ws.Close()
	}
	b.sockets = nil
	b.stop()
	b.start()
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func person(handle string) model.Person {
	return model.Person{
		UID: "uid-" + handle, Name: handle, Key: model.PersonKey{Team: shop, Handle: handle}, DisplayName: handle,
		Role: "dev", Runtime: "command", TokenHash: sha256.Sum256([]byte("token-" + handle)), CreatedAt: time.Unix(1, 0).UTC(),
	}
}

// factsOf describes an item of ada, changed by edits.
func factsOf(name string, edits ...func(*model.ItemFacts)) model.ItemFacts {
	f := model.ItemFacts{ID: "uid-" + name, Namespace: "ns", Name: name, CreatedAt: time.Now().UTC().Truncate(time.Second)}
	f.Spec = model.ItemSpec{
		Generation: 1, Hash: "hash-" + name, Team: "shop", Person: "ada", Kind: "task", Title: "Title of " + name,
		Body: "Body of " + name, Requester: "grace", Priority: 100, Trigger: protocol.TriggerHuman,
	}
	for _, edit := range edits {
		edit(&f)
	}
	return f
}

func (b *bench) apply(name string, edits ...func(*model.ItemFacts)) model.ItemView {
	b.t.Helper()
	v, err := b.office.SyncItem(b.t.Context(), factsOf(name, edits...))
	b.must(err)
	return v
}

// item reads an item from the store.
func (b *bench) item(name string) model.Item {
	b.t.Helper()
	var it model.Item
	b.must(b.store.View(b.t.Context(), func(r store.Reader) (err error) {
		it, err = r.Item("uid-" + name)
		return err
	}))
	return it
}

// itemByID reads an item from the store by its id.
func (b *bench) itemByID(id string) model.Item {
	b.t.Helper()
	var it model.Item
	b.must(b.store.View(b.t.Context(), func(r store.Reader) (err error) {
		it, err = r.Item(id)
		return err
	}))
	return it
}

// journal reads the texts of an item's journal.
func (b *bench) journal(id string) []string {
	b.t.Helper()
	var texts []string
	b.must(b.store.View(b.t.Context(), func(r store.Reader) error {
		entries, err := r.Journal(id)
		for _, e := range entries {
			texts = append(texts, e.Author+": "+e.Text)
		}
		return err
	}))
	return texts
}

// agent is the agent's side of one connection.
type agent struct {
	b    *bench
	ws   *websocket.Conn
	next int
	// inbox has frames that were read while waiting for others.
	inbox []protocol.Frame
}

// dial opens a connection without a hello.
func (b *bench) dial() *agent { return b.dialTeam(shop) }

func (b *bench) dialTeam(team model.TeamKey) *agent {
	b.t.Helper()
	ws, _, err := websocket.DefaultDialer.Dial(b.url+"/v1/teams/"+team.String()+"/agent", nil)
	b.must(err)
	b.t.Cleanup(func() { _ = ws.Close() })
	b.sockets = append(b.sockets, ws)
	return &agent{b: b, ws: ws}
}

// connect says hello and gives the welcome.
func (b *bench) connect(handle string) (*agent, protocol.Welcome) {
	b.t.Helper()
	a := b.dial()
	id := a.send(protocol.Hello{Person: handle, Token: "token-" + handle, ProtocolVersion: protocol.Version, AgentVersion: "test"})
	w, ok := a.reply(id).(protocol.Welcome)
	if !ok {
		b.t.Fatalf("no welcome")
	}
	return a, w
}

func (a *agent) send(m protocol.Message) string {
	a.next++
	id := fmt.Sprintf("m%d", a.next)
	a.sendAs(id, m)
	return id
}

func (a *agent) sendAs(id string, m protocol.Message) {
	a.b.t.Helper()
	data, err := protocol.Encode(protocol.Frame{ID: id, Message: m})
	a.b.must(err)
	a.b.must(a.ws.WriteMessage(websocket.TextMessage, data))
}

func (a *agent) read() protocol.Frame {
	a.b.t.Helper()
	a.b.must(a.ws.SetReadDeadline(time.Now().Add(patience)))
	_, data, err := a.ws.ReadMessage()
	a.b.must(err)
	f, werr := protocol.Decode(data)
	if werr != nil {
		a.b.t.Fatalf("the office sent what it must not: %v in %s", werr, data)
	}
	return f
}

// wait gives the first frame, read or yet to come, that fits.
func (a *agent) wait(fits func(protocol.Frame) bool) protocol.Frame {
	a.b.t.Helper()
	for i, f := range a.inbox {
		if fits(f) {
			a.inbox = append(a.inbox[:i], a.inbox[i+1:]...)
			return f
		}
	}
	for {
		f := a.read()
		if fits(f) {
			return f
		}
		a.inbox = append(a.inbox, f)
	}
}

// reply waits for the answer to a request.
func (a *agent) reply(id string) protocol.Message {
	a.b.t.Helper()
	return a.wait(func(f protocol.Frame) bool { return f.ReplyTo == id }).Message
}

func (a *agent) request(m protocol.Message) protocol.Message {
	a.b.t.Helper()
	return a.reply(a.send(m))
}

// ok sends a request that must be acknowledged.
func (a *agent) ok(m protocol.Message) {
	a.b.t.Helper()
	if got, isAck := a.request(m).(protocol.Ack); !isAck {
		a.b.t.Fatalf("%s was answered with %+v, not with ack", m.Type(), got)
	}
}

// refused sends a request that must get an error of that code.
func (a *agent) refused(m protocol.Message, code protocol.Code) {
	a.b.t.Helper()
	if got, isError := a.request(m).(protocol.Error); !isError || got.Code != code {
		a.b.t.Fatalf("%s was answered with %+v, not with error %s", m.Type(), got, code)
	}
}

// offer waits for an offer.
func (a *agent) offer() protocol.Offer {
	a.b.t.Helper()
	return a.wait(func(f protocol.Frame) bool { return f.Message.Type() == protocol.TypeOffer }).Message.(protocol.Offer)
}

// take waits for the offer of the item and accepts it.
func (a *agent) take(name string) protocol.Offer {
	a.b.t.Helper()
	offer := a.offer()
	if offer.WorkItem.ID != "uid-"+name {
		a.b.t.Fatalf("offered %s, want uid-%s", offer.WorkItem.ID, name)
	}
	a.ok(protocol.Accept{WorkItemID: offer.WorkItem.ID, Runtime: "command"})
	return offer
}

// takeNext waits for any offer and accepts it.
func (a *agent) takeNext() protocol.Offer {
	a.b.t.Helper()
	offer := a.offer()
	a.ok(protocol.Accept{WorkItemID: offer.WorkItem.ID, Runtime: "command"})
	return offer
}

// answered sends a request that must get a result of type M.
func answered[M protocol.Message](a *agent, m protocol.Message) M {
	a.b.t.Helper()
	answer := a.request(m)
	got, ok := answer.(M)
	if !ok {
		a.b.t.Fatalf("%s was answered with %s %+v", m.Type(), answer.Type(), answer)
	}
	return got
}

// handBack ends the round of an item as the status says.
func (a *agent) handBack(id string, status protocol.HandbackStatus) {
	a.b.t.Helper()
	a.ok(protocol.Handback{WorkItemID: id, Status: status, Summary: "handed back as " + string(status), Links: []protocol.Link{}, ToReview: []string{"a branch"}})
}

// quiet checks that nothing came by the time that a ping is answered.
func (a *agent) quiet() {
	a.b.t.Helper()
	if _, ok := a.request(protocol.Ping{}).(protocol.Pong); !ok {
		a.b.t.Fatal("no pong")
	}
	if len(a.inbox) > 0 {
		a.b.t.Fatalf("unexpected frames: %+v", a.inbox)
	}
}

// closed waits for the end of the connection and gives its code.
func (a *agent) closed() int {
	a.b.t.Helper()
	a.b.must(a.ws.SetReadDeadline(time.Now().Add(patience)))
	for {
		_, data, err := a.ws.ReadMessage()
		var closed *websocket.CloseError
		if err == nil {
			if f, werr := protocol.Decode(data); werr == nil {
				a.inbox = append(a.inbox, f)
			}
			continue
		}
		if !errors.As(err, &closed) {
			a.b.t.Fatalf("the connection ended without a close: %v", err)
		}
		return closed.Code
	}
}

func done(name string) protocol.Handback {
	return protocol.Handback{
		WorkItemID: "uid-" + name, Status: protocol.HandbackDone, Summary: "did " + name, Links: []protocol.Link{},
		ToReview: []string{"branch " + name},
	}
}

// What transactions of a test read and write.
type (
	storeReader = store.Reader
	storeTx     = store.Tx
)

// raw sends a frame as it is.
func (a *agent) raw(frame string) {
	a.b.t.Helper()
	a.b.must(a.ws.WriteMessage(websocket.TextMessage, []byte(frame)))
}

// failedWith waits for an error in reply to a frame, or to none, that has the code.
func (a *agent) failedWith(replyTo string, code protocol.Code) {
	a.b.t.Helper()
	f := a.wait(func(f protocol.Frame) bool { return f.ReplyTo == replyTo && f.Message.Type() == protocol.TypeError })
	if got := f.Message.(protocol.Error); got.Code != code {
		a.b.t.Fatalf("the error is %+v, not %s", got, code)
	}
}
