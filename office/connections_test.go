package office_test

// These tests put between agent and office what stands there in real clusters: proxies that cut idle sockets, networks that end without
// a word, sockets that leak. Each carries what users of comparable systems reported.

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// wire is a proxy in front of the office, as a load balancer is one.
type wire struct {
	url string
	// idle is how long nothing may pass in either direction before a connection is cut; 0 does not.
	idle time.Duration
	// gone stops what passes, in both directions, while every socket stays open.
	gone atomic.Bool
	cut  atomic.Int32

	mu   sync.Mutex
	open []net.Conn
}

// sever ends what is open, as a network does that breaks: without a close.
func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

// through puts a wire in front of the office. Agents that dial later go through it.
func (b *bench) through(idle time.Duration) *wire {
	b.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	return b.wired(listener, idle)
}

func (b *bench) wired(listener net.Listener, idle time.Duration) *wire {
	b.t.Helper()
	b.t.Cleanup(func() { _ = listener.Close() })
	w := &wire{url: "ws://" + listener.Addr().String(), idle: idle}
	office := strings.TrimPrefix(b.url, "ws://")
	go func() {
		for {
			agent, err := listener.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.open = append(w.open, agent)
			w.mu.Unlock()
			go w.pass(agent, office)
		}
	}()
	b.url = w.url
	return w
}

// pass moves bytes in both directions until one side ends or nothing moved for too long.
func (w *wire) pass(agent net.Conn, office string) {
	defer func() { _ = agent.Close() }()
	far, err := net.Dial("tcp", office)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	moved, ended := make(chan struct{}, 1), make(chan struct{}, 2)
	move := func(to, from net.Conn) {
		defer func() { ended <- struct{}{} }()
		for buf := make([]byte, 32<<10); ; {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if w.gone.Load() {
				continue
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	}
	go move(far, agent)
	go move(agent, far)
	for {
		var tooLong <-chan time.Time
		if w.idle > 0 {
			tooLong = time.After(w.idle)
		}
		select {
		case <-ended:
			return
		case <-moved:
		case <-tooLong:
			w.cut.Add(1)
			return
		}
	}
}

// listen reads what comes, and so answers pings, until the connection ends; it gives how it ended.
func (a *agent) listen() <-chan error {
	ended := make(chan error, 1)
	go func() {
		for {
			if _, _, err := a.ws.ReadMessage(); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// awaitState waits until a person is shown in that state.
func (b *bench) awaitState(handle string, want model.PersonState) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		v, err := b.office.Person(b.t.Context(), model.PersonKey{Team: shop, Handle: handle})
		b.must(err)
		if v.State == want {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s is %s, not %s", handle, v.State, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// beats sets the heartbeat of the team.
func beats(every time.Duration) func(*model.Team) {
	return func(team *model.Team) { team.Policy.Heartbeat = every }
}

func TestASocketBehindALoadBalancerDoesNotHangBecauseItIsPinged(t *testing.T) {
	b := open(t, beats(time.Second))
	balancer := b.through(2 * time.Second) // as 30 s are to the usual heartbeat
	a, _ := b.connect("ada")
	ended := a.listen()
	// The agent says nothing at all, for several times as long as the balancer bears.
	select {
	case err := <-ended:
		t.Fatalf("the idle connection ended: %v", err)
	case <-time.After(5 * time.Second):
	}
	if n := balancer.cut.Load(); n > 0 {
		t.Errorf("the balancer cut %d connections", n)
	}
	b.awaitState("ada", model.PersonIdle)
}

func TestAProxyThatCutsIdleSocketsCutsOneThatNobodyPings(t *testing.T) { // so the test above can fail
	b := open(t, beats(time.Hour))
	balancer := b.through(500 * time.Millisecond)
	a, _ := b.connect("ada")
	if err := <-a.listen(); err == nil || balancer.cut.Load() != 1 {
		t.Errorf("it ended with %v after %d cuts", err, balancer.cut.Load())
	}
}

func TestAnIdleAgentWhoseNetworkIsGoneWithoutAWordIsNoticed(t *testing.T) {
	b := open(t, beats(400*time.Millisecond))
	network := b.through(0)
	a, _ := b.connect("ada")
	a.listen()
	b.awaitState("ada", model.PersonIdle)
	network.gone.Store(true)
	b.awaitState("ada", model.PersonOffline)
}

func TestAWorkingAgentWhoseNetworkIsGoneWithoutAWordIsNoticedAndGoesOn(t *testing.T) {
	b := open(t, beats(400*time.Millisecond))
	b.apply("fix")
	network := b.through(0)
	a, _ := b.connect("ada")
	a.take("fix")
	network.gone.Store(true)
	stop, beating := make(chan struct{}), sync.WaitGroup{}
	beating.Go(func() { // the agent believes that it is heard
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				data, _ := protocol.Encode(protocol.Frame{ID: fmt.Sprint("lost-", n), Message: protocol.Heartbeat{WorkItemID: "uid-fix"}})
				_ = a.ws.WriteMessage(websocket.TextMessage, data)
			}
		}
	})
	b.awaitState("ada", model.PersonOffline)
	close(stop)
	beating.Wait()
	network.gone.Store(false)
	again, welcome := b.connect("ada")
	if !slices.Equal(welcome.Resume, []string{"uid-fix"}) {
		t.Errorf("resume is %v", welcome.Resume)
	}
	again.ok(done("fix"))
	if it := b.item("fix"); it.Rounds != 1 || it.LostRounds != 0 {
		t.Errorf("%d rounds, %d of them lost", it.Rounds, it.LostRounds)
	}
}

func TestHeartbeatsOfALeakedSocketAreNoActivity(t *testing.T) {
	b := open(t, beats(250*time.Millisecond))
	b.apply("fix")
	leaked, _ := b.connect("ada")
	leaked.take("fix")
	current, _ := b.connect("ada")
	stop, beating := make(chan struct{}), sync.WaitGroup{}
	beating.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				data, _ := protocol.Encode(protocol.Frame{ID: fmt.Sprint("leaked-", n), Message: protocol.Heartbeat{WorkItemID: "uid-fix"}})
				_ = leaked.ws.WriteMessage(websocket.TextMessage, data)
			}
		}
	})
	// The newer connection lives, by its pongs, but nobody works on the item: the older one's heartbeats are not taken for that.
	if code := current.closed(); code != hub.CodeDropped {
		t.Errorf("the connection of a person that does not work ended with %d", code)
	}
	close(stop)
	beating.Wait()
	if code := leaked.closed(); code != protocol.CloseReplaced {
		t.Errorf("the leaked socket ended with %d", code)
	}
}

func TestARestartedAgentWithAnOldTokenIsToldSoAndIsLetInWithTheNewOne(t *testing.T) {
	b := open(t)
	hello := protocol.Hello{Person: "ada", Token: "token-ada", ProtocolVersion: protocol.Version, AgentVersion: "test"}
	rotated := person("ada")
	rotated.TokenHash = person("bob").TokenHash
	b.must(b.office.SyncPerson(t.Context(), rotated))
	old := b.dial()
	if got, ok := old.request(hello).(protocol.Error); !ok || got.Code != protocol.CodeAuthFailed || !strings.Contains(got.Message, "Secret") {
		t.Errorf("the old token was answered with %+v; it should say where the token is", got)
	}
	if code := old.closed(); code != protocol.CloseAuthFailed {
		t.Errorf("closed with %d", code)
	}
	hello.Token = "token-bob"
	if got, ok := b.dial().request(hello).(protocol.Welcome); !ok {
		t.Errorf("the new token was answered with %+v", got)
	}
}

func TestAnOutboxOfMoreThanAThousandLinesIsSlowedAndDeliveredWhole(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	a.take("fix")
	const lines = 1500
	var sending sync.WaitGroup
	sending.Go(func() { // all at once, without waiting for an answer
		for n := range lines {
			data, _ := protocol.Encode(protocol.Frame{ID: fmt.Sprint("line-", n), Message: protocol.Journal{WorkItemID: "uid-fix", Text: fmt.Sprint(n)}})
			if err := a.ws.WriteMessage(websocket.TextMessage, data); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for n := range lines {
		if f := a.read(); f.ReplyTo != fmt.Sprint("line-", n) || f.Message.Type() != protocol.TypeAck {
			t.Fatalf("line %d was answered with %+v", n, f)
		}
	}
	sending.Wait()
	b.must(b.store.View(t.Context(), func(r store.Reader) error {
		journal, err := r.Journal("uid-fix")
		if len(journal) != lines {
			t.Errorf("%d lines were kept", len(journal))
		}
		return err
	}))
}

func TestCompressionIsNotGivenToAClientThatOffersIt(t *testing.T) {
	b := open(t)
	dialer := websocket.Dialer{EnableCompression: true}
	ws, response, err := dialer.Dial(b.url+"/v1/teams/"+shop.String()+"/agent", http.Header{})
	b.must(err)
	defer func() { _ = ws.Close() }()
	b.must(response.Body.Close())
	if extensions := response.Header.Values("Sec-WebSocket-Extensions"); len(extensions) > 0 {
		t.Errorf("the office agreed to %v", extensions)
	}
	a := &agent{b: b, ws: ws}
	a.request(protocol.Hello{Person: "ada", Token: "token-ada", ProtocolVersion: protocol.Version, AgentVersion: "test"})
	a.quiet()
}

func TestAPeerThatDoesNotReadItsAnswersIsCutAndDelaysNobody(t *testing.T) {
	b := open(t, beats(time.Minute))
	deaf, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	b.must(deaf.ws.NetConn().(*net.TCPConn).SetReadBuffer(4096))
	var many protocol.WorkStatus // whose answer is as large as the request
	for n := range 900 {
		many.WorkItemIDs = append(many.WorkItemIDs, fmt.Sprintf("%0500d", n))
	}
	data, err := protocol.Encode(protocol.Frame{ID: "many", Message: many})
	b.must(err)
	for sent := 0; deaf.ws.WriteMessage(websocket.TextMessage, data) == nil; sent++ {
		if sent == 100 {
			t.Fatalf("%d MiB of answers were not read, and the connection is still there", sent/2)
		}
		bob.quiet()
	}
	b.awaitState("ada", model.PersonOffline)
}
