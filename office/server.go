package office

// This file has the HTTP side: the agent endpoint, and hello, which makes a connection a person's.

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/web"
)

const (
	// helloTimeout is how long a new connection has until its hello.
	helloTimeout = 10 * time.Second
	// hungHeartbeats is how many heartbeats a working agent may miss.
	hungHeartbeats = 4
)

// upgrader keeps a connection's own buffers small: frames are read in pieces, and write buffers are shared.
var upgrader = websocket.Upgrader{ReadBufferSize: 1024, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{}}

func (o *Office) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/teams/{namespace}/{team}/agent", o.serveAgent)
	mux.HandleFunc("POST /v1/teams/{namespace}/{team}/events", o.serveEvents)
	mux.HandleFunc("GET /v1/sessions/{id}/ingest", o.serveIngest)
	o.sessionRoutes(mux)
	mux.HandleFunc("GET /v1/protocol/schema", serveSchema())
	page := web.Handler()
	mux.Handle("GET /{$}", page)
	mux.Handle("GET /assets/", page)
	return mux
}

// peer is a connected person.
type peer struct {
	conn        *hub.Conn
	key         model.PersonKey
	version     string
	connectedAt time.Time
	config      [sha256.Size]byte
	heartbeat   time.Duration
	// running is the id of the item that the person runs; beat is when it last showed life on it, in unix nanoseconds.
	running atomic.Pointer[string]
	beat    atomic.Int64
	// acts are the ids of acts that wait until others are answered. They belong to the goroutine that reads the connection.
	acts []string
	// ids numbers the frames that the office sends on its own.
	ids atomic.Uint64
}

// Conn is the person's connection.
func (p *peer) Conn() *hub.Conn { return p.conn }

// runs notes which item the person runs; empty for none.
func (p *peer) runs(id string) {
	if old := p.running.Swap(&id); old == nil || *old != id {
		p.beat.Store(time.Now().UnixNano())
	}
}

func (p *peer) isRunning(id string) bool {
	running := p.running.Load()
	return running != nil && id != "" && *running == id
}

// hung says whether the person works but has not shown life on it for too long.
func (p *peer) hung(now time.Time) bool {
	running := p.running.Load()
	return running != nil && *running != "" && now.UnixNano()-p.beat.Load() > int64(hungHeartbeats*p.heartbeat)
}

func (p *peer) nextID() string { return "o" + strconv.FormatUint(p.ids.Add(1), 10) }

// serveAgent upgrades and hands the connection to a goroutine of its own, so that what the HTTP server holds for a request is freed.
func (o *Office) serveAgent(w http.ResponseWriter, r *http.Request) {
	team := model.TeamKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("team")}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader answered
	}
	go o.serveConn(hub.NewConn(ws, protocol.MaxFrame, helloTimeout), team, enteringOf(r.Context()))
}

// serveConn reads a connection, which came through the gate as that one, to its end.
func (o *Office) serveConn(conn *hub.Conn, team model.TeamKey, through *entering) {
	defer conn.Release()
	ctx := context.Background()
	p := o.hello(ctx, conn, team)
	through.entered()
	if p == nil {
		conn.Drain()
		return
	}
	defer o.leave(p)
	o.log.Info("An agent connected", "person", p.key.String(), "agent", p.version)
	for {
		data, err := conn.Read(nil)
		if errors.Is(err, hub.ErrTooLarge) || errors.Is(err, hub.ErrBinary) {
			o.answer(p, "", protocol.Errorf(protocol.CodeMalformed, "%v; frames are JSON text of at most %d bytes", err, protocol.MaxFrame))
			continue
		}
		if err != nil {
			o.log.Info("An agent's connection ended", "person", p.key.String(), "why", err.Error())
			return
		}
		if current, ok := o.hub.Get(p.key); !ok || current != p {
			continue // replaced: its later frames are dropped
		}
		o.receive(ctx, p, data)
	}
}

// hello reads the first message and makes the connection the person's, or refuses it and gives nil.
func (o *Office) hello(ctx context.Context, conn *hub.Conn, team model.TeamKey) *peer {
	data, err := conn.Read(nil)
	if err != nil {
		if errors.Is(err, hub.ErrTooLarge) || errors.Is(err, hub.ErrBinary) {
			o.refuse(conn, "", protocol.Errorf(protocol.CodeUnauthenticated, "the first message must be hello"), websocket.ClosePolicyViolation)
		}
		return nil
	}
	frame, werr := protocol.Decode(data)
	if werr != nil {
		o.refuse(conn, werr.RequestID, protocol.Errorf(protocol.CodeUnauthenticated, "the first message must be hello: %s", werr.Message), websocket.ClosePolicyViolation)
		return nil
	}
	hello, ok := frame.Message.(protocol.Hello)
	if !ok {
		o.refuse(conn, frame.ID, protocol.Errorf(protocol.CodeUnauthenticated, "the first message must be hello, not %s", frame.Message.Type()), websocket.ClosePolicyViolation)
		return nil
	}
	if hello.ProtocolVersion != protocol.Version {
		o.refuse(conn, frame.ID, protocol.Errorf(protocol.CodeVersionMismatch, "this office speaks protocol version %d, the agent %d: "+
			"run an agent of the office's release", protocol.Version, hello.ProtocolVersion), protocol.CloseVersionMismatch)
		return nil
	}
	key := model.PersonKey{Team: team, Handle: hello.Person}
	person, werr := o.authenticate(ctx, key, hello.Token)
	if werr != nil {
		code := protocol.CloseAuthFailed
		if werr.Code == protocol.CodeFailed {
			code = websocket.CloseTryAgainLater
		}
		o.refuse(conn, frame.ID, werr, code)
		return nil
	}
	return o.welcome(ctx, conn, person, hello, frame.ID)
}

// authenticate checks a token against the person's, in constant time. Who does not exist and whose token is wrong get one answer.
func (o *Office) authenticate(ctx context.Context, key model.PersonKey, token string) (model.Person, *protocol.WireError) {
	var person *model.Person
	err := o.store.View(ctx, func(r store.Reader) (err error) {
		person, err = found(r.PersonByKey(key))
		return err
	})
	if err != nil {
		o.log.Error("The store could not be read at hello", "person", key.String(), "error", err)
		return model.Person{}, protocol.Errorf(protocol.CodeFailed, "the office cannot read its store now: try again later")
	}
	sum := sha256.Sum256([]byte(token))
	var want [sha256.Size]byte
	if person != nil {
		want = person.TokenHash
	}
	if subtle.ConstantTimeCompare(sum[:], want[:]) != 1 || person == nil {
		return model.Person{}, protocol.Errorf(protocol.CodeAuthFailed, "no such person in team %s, or a wrong token: "+
			"the token is in the Secret of the person's agent", key.Team)
	}
	return *person, nil
}

// refuse answers a hello with an error and closes.
func (o *Office) refuse(conn *hub.Conn, replyTo string, werr *protocol.WireError, code int) {
	o.metrics.authFailures.WithLabelValues(string(werr.Code)).Inc()
	o.log.Info("A connection was refused", "code", string(werr.Code))
	frame, err := protocol.Encode(protocol.Frame{ID: "o0", ReplyTo: replyTo, Message: protocol.Error{Code: werr.Code, Message: werr.Message}})
	if err == nil {
		conn.Fail(frame, code, string(werr.Code))
	}
}

// welcome puts the person into the hub first, so that nothing that changes from now on is missed, and then says what is.
func (o *Office) welcome(ctx context.Context, conn *hub.Conn, person model.Person, hello protocol.Hello, replyTo string) *peer {
	p := &peer{conn: conn, key: person.Key, version: hello.AgentVersion, connectedAt: o.now()}
	cfg, err := o.configs.get(ctx, person.Key.Team)
	if errors.Is(err, store.ErrNotFound) {
		o.refuse(conn, replyTo, protocol.Errorf(protocol.CodeFailed, "team %s does not exist (yet): try again later", person.Key.Team), websocket.CloseTryAgainLater)
		return nil
	}
	if err != nil {
		o.log.Error("The team config could not be rendered", "team", person.Key.Team.String(), "error", err)
		o.refuse(conn, replyTo, protocol.Errorf(protocol.CodeFailed, "the office cannot render the team config: try again later"), websocket.CloseTryAgainLater)
		return nil
	}
	p.config, p.heartbeat = cfg.sum, time.Duration(cfg.heartbeat)*time.Millisecond
	conn.SetQuiet(2 * p.heartbeat)
	if old, replaced := o.hub.Put(p.key, p); replaced {
		o.replace(old)
	}
	welcome := protocol.Welcome{ProtocolVersion: protocol.Version, HeartbeatMs: cfg.heartbeat, Team: cfg.raw, Resume: []string{}}
	err = o.change(ctx, func(w *work) error {
		w.redeliver = true
		w.touchPerson(p.key)
		current, err := found(w.tx.Current(p.key))
		if err != nil {
			return err
		}
		welcome.Resume = welcome.Resume[:0]
		if current != nil && current.Round.Accepted() {
			welcome.Resume = append(welcome.Resume, current.ID)
		}
		if welcome.Acts, err = w.openActs(p); err != nil {
			return err
		}
		welcome.Reports, err = w.openReports(p)
		return err
	})
	if err == nil {
		var frame []byte
		if frame, err = protocol.Encode(protocol.Frame{ID: p.nextID(), ReplyTo: replyTo, Message: welcome}); err == nil {
			conn.Open(frame)
			return p
		}
	}
	o.log.Error("An agent could not be welcomed", "person", p.key.String(), "error", err)
	o.refuse(conn, replyTo, protocol.Errorf(protocol.CodeFailed, "the office cannot store this now: try again later"), websocket.CloseTryAgainLater)
	o.leave(p)
	return nil
}

// replace tells a connection that a newer one took its place.
func (o *Office) replace(old *peer) {
	o.metrics.replaced.Inc()
	frame, err := protocol.Encode(protocol.Frame{ID: old.nextID(), Message: protocol.Error{
		Code: protocol.CodeReplaced, Message: "another agent connected as " + old.key.Handle + "; this one must not reconnect by itself",
	}})
	if err == nil {
		old.conn.Fail(frame, protocol.CloseReplaced, "replaced")
	}
}

// leave takes a connection out of the hub when its reader ended.
func (o *Office) leave(p *peer) {
	if !o.hub.Remove(p.key, p) {
		return // replaced
	}
	o.presence.left(p.key, p.version, o.now())
	o.due.Add(p.key)
}

// answer sends the one response to a request.
func (o *Office) answer(p *peer, replyTo string, werr *protocol.WireError) {
	o.respond(p, replyTo, protocol.Error{Code: werr.Code, Message: werr.Message})
}

func (o *Office) respond(p *peer, replyTo string, m protocol.Message) {
	frame, err := protocol.Encode(protocol.Frame{ID: p.nextID(), ReplyTo: replyTo, Message: m})
	if err != nil {
		o.log.Error("An answer could not be encoded", "person", p.key.String(), "type", string(m.Type()), "error", err)
		frame, err = protocol.Encode(protocol.Frame{ID: p.nextID(), ReplyTo: replyTo, Message: protocol.Error{
			Code: protocol.CodeFailed, Message: "the answer is larger than a frame may be",
		}})
		if err != nil {
			return
		}
	}
	p.conn.Send(frame)
}
