package agent

// This file is the counterpart of the tests: an office that does what a test says, frame by frame, and an agent that is the
// real one with shorter times, in this process or in one of its own.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/ost"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/command"
	"github.com/bullpen-dev/bullpen/agentpod/spool"
	"github.com/bullpen-dev/bullpen/agentpod/spool/spooltest"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// testTiming has no pauses to wait for.
var testTiming = timing{
	welcome: 10 * time.Second, retryFirst: 5 * time.Millisecond, retryMost: 50 * time.Millisecond, lasted: time.Second,
	refused: time.Hour, poll: 5 * time.Millisecond, goodbye: 5 * time.Second,
	idle: time.Hour, away: patience, answer: patience, deliver: patience, records: patience,
}

var testUploadTimes = spool.Times{
	First: 5 * time.Millisecond, Most: 50 * time.Millisecond, RefusedFirst: 5 * time.Millisecond, RefusedMost: 50 * time.Millisecond,
	Keep: time.Hour, Answer: 10 * time.Second, Write: 10 * time.Second, Stall: time.Minute,
	Ping: 10 * time.Second, Silence: 30 * time.Second, Delta: time.Millisecond,
}

// envAsAgent makes this test binary an agent.
const envAsAgent = "BULLPEN_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == contract.CLIName { // see withOst
		os.Exit(ost.Main(context.Background(), os.Args[1:], ost.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Getenv, "test"))
	}
	if os.Getenv(envAsAgent) != "" {
		os.Exit(asAgent())
	}
	os.Exit(m.Run())
}

// asAgent is what cmd/agent does, with the times of tests.
func asAgent() int {
	cfg, err := FromEnv(os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return contract.ExitConfig
	}
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	cfg.timing, cfg.uploadTimes = testTiming, testUploadTimes
	cfg.Runtime = &command.Command{Args: cfg.Command, Grace: cfg.ProgramGrace(), Log: cfg.Log}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM)
	drain := make(chan struct{})
	go func() {
		<-signals
		close(drain)
	}()
	if err := Run(context.Background(), cfg, drain); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return contract.ExitError
	}
	return contract.ExitOK
}

// office is a server whose connections the test answers by hand.
type office struct {
	t        *testing.T
	server   *httptest.Server
	arrivals chan *peer
	// down refuses connections while it is set.
	mu   sync.Mutex
	down bool
	team protocol.Raw
	// status answers connections while it is not 0; tries counts all.
	status int
	tries  atomic.Int64
	// records takes what agents upload.
	records *spooltest.Office
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := unstartedOffice(t)
	o.server.Start()
	return o
}

func unstartedOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, arrivals: make(chan *peer, 16), team: protocol.Raw(teamJSON), records: spooltest.New()}
	t.Cleanup(func() {
		if problems := o.records.Problems(); len(problems) > 0 {
			t.Errorf("records were uploaded wrong: %v", problems)
		}
	})
	o.server = httptest.NewUnstartedServer(http.HandlerFunc(o.serve))
	o.server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelInfo)
	t.Cleanup(o.server.Close)
	return o
}

const teamJSON = `{"name":"web","roles":[{"name":"dev","title":"Developer","instructions":"Be kind.",` +
	`"work":[{"kind":"task","review":"required"},{"kind":"chore","review":"none"}]}],` +
	`"people":[{"handle":"ada","role":"dev","runtime":"command","model":"small"}]}`

func (o *office) setDown(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
}

// setStatus has every connection answered with an HTTP status, until it is 0.
func (o *office) setStatus(status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status = status
}

func (o *office) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/sessions/") {
		o.records.ServeHTTP(w, r)
		return
	}
	o.tries.Add(1)
	o.mu.Lock()
	down, status := o.down, o.status
	o.mu.Unlock()
	if status != 0 {
		http.Error(w, "no", status)
		return
	}
	if down || r.URL.Path != "/v1/teams/demo/web/agent" {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	p := &peer{t: o.t, ws: ws, frames: make(chan protocol.Frame, 1024), ended: make(chan struct{})}
	go p.read()
	o.arrivals <- p
}

// arrive waits for a connection and its hello.
func (o *office) arrive() (*peer, protocol.Hello) {
	o.t.Helper()
	select {
	case p := <-o.arrivals:
		hello := expect[protocol.Hello](p)
		o.t.Cleanup(func() { _ = p.ws.Close() })
		return p, hello.message
	case <-time.After(patience):
		o.t.Fatal("no agent connected")
		return nil, protocol.Hello{}
	}
}

// welcome waits for a connection and welcomes it.
func (o *office) welcome(resume ...string) *peer {
	o.t.Helper()
	p, _ := o.arrive()
	p.welcome(o.team, 400*time.Millisecond, resume...)
	return p
}

// peer is the office's end of one connection.
type peer struct {
	t  *testing.T
	ws *websocket.Conn
	mu sync.Mutex // of writes
	// byHand leaves the answers to heartbeats to the test. Else they are given at once, so that a slow test is not
	// taken for a dead office.
	byHand atomic.Bool
	frames chan protocol.Frame
	ended  chan struct{} // closed after err is set
	err    error
	hello  string
	seen   []protocol.Message
}

func (p *peer) read() {
	defer close(p.ended)
	for {
		_, data, err := p.ws.ReadMessage()
		if err != nil {
			p.err = err
			return
		}
		f, werr := protocol.Decode(data)
		if werr != nil {
			p.err = werr
			return
		}
		if _, ok := f.Message.(protocol.Hello); ok {
			p.hello = f.ID
		}
		if _, ok := f.Message.(protocol.Heartbeat); ok && !p.byHand.Load() {
			p.ack(f.ID)
		}
		p.frames <- f
	}
}

func (p *peer) write(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.ws.WriteMessage(websocket.TextMessage, data) // an agent that is gone shows elsewhere
}

// sent counts all messages of all offices: no id comes twice.
var sent atomic.Int64

// send sends a message and returns its id.
func (p *peer) send(replyTo string, m protocol.Message) string {
	p.t.Helper()
	id := "o" + strconv.FormatInt(sent.Add(1), 10)
	data, err := protocol.Encode(protocol.Frame{ID: id, ReplyTo: replyTo, Message: m})
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(data)
	return id
}

func (p *peer) ack(id string) { p.send(id, protocol.Ack{}) }

func (p *peer) refuse(id string, code protocol.Code) {
	p.send(id, protocol.Error{Code: code, Message: "because the test says so"})
}

func (p *peer) welcome(team protocol.Raw, heartbeat time.Duration, resume ...string) {
	if resume == nil {
		resume = []string{}
	}
	p.send(p.hello, protocol.Welcome{
		ProtocolVersion: protocol.Version, HeartbeatMs: int(heartbeat.Milliseconds()), Team: team, Resume: resume,
	})
}

// close ends the connection with a code.
func (p *peer) close(code int) {
	_ = p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
}

// got is a message of the agent that the test has to answer.
type got[T protocol.Message] struct {
	id      string
	replyTo string
	message T
}

// expect waits for a message of a type. What comes before it is acknowledged and kept in seen.
func expect[T protocol.Message](p *peer) got[T] {
	p.t.Helper()
	return expectWhere(p, func(T) bool { return true })
}

// expectWhere waits for a message of a type that fits.
func expectWhere[T protocol.Message](p *peer, fits func(T) bool) got[T] {
	p.t.Helper()
	var none T
	limit := time.After(patience)
	for {
		var f protocol.Frame
		select {
		case f = <-p.frames:
		case <-p.ended:
			select {
			case f = <-p.frames:
			default:
				p.t.Fatalf("the connection ended before %s came: %v; seen: %v", none.Type(), p.err, p.types())
			}
		case <-limit:
			p.t.Fatalf("%s did not come; seen: %v", none.Type(), p.types())
		}
		p.seen = append(p.seen, f.Message)
		if m, ok := f.Message.(T); ok && fits(m) {
			return got[T]{f.ID, f.ReplyTo, m}
		}
		p.answer(f)
	}
}

// answer acknowledges what takes an answer.
func (p *peer) answer(f protocol.Frame) {
	spec, _ := protocol.SpecOf(f.Message.Type())
	switch {
	case len(spec.AnsweredBy) == 0 || f.Message.Type() == protocol.TypeHello || f.Message.Type() == protocol.TypeHeartbeat:
	case f.Message.Type() == protocol.TypeWorkStatus:
		p.refuse(f.ID, protocol.CodeUnsupported)
	default:
		p.ack(f.ID)
	}
}

func (p *peer) types() []protocol.Type {
	var types []protocol.Type
	for _, m := range p.seen {
		types = append(types, m.Type())
	}
	return types
}

// untilEnd waits for the end of the connection, and returns why it ended.
func (p *peer) untilEnd() error {
	p.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case f := <-p.frames:
			p.seen = append(p.seen, f.Message)
			p.answer(f)
		case <-p.ended:
			return p.err
		case <-limit:
			p.t.Fatalf("the connection did not end; seen: %v", p.types())
		}
	}
}

// offer offers an item.
func (p *peer) offer(id string, change ...func(*protocol.Offer)) {
	p.t.Helper()
	o := protocol.Offer{
		WorkItem: protocol.WorkItem{ID: id, Kind: "task", Title: "Do " + id, Priority: 1, Trigger: protocol.TriggerHuman},
	}
	for _, c := range change {
		c(&o)
	}
	p.send("", o)
}

// accepted offers an item and acknowledges its accept.
func (p *peer) accepted(id string, change ...func(*protocol.Offer)) {
	p.t.Helper()
	p.offer(id, change...)
	p.ack(expect[protocol.Accept](p).id)
}

// all returns the messages of a type that were seen.
func all[T protocol.Message](p *peer) []T {
	var found []T
	for _, m := range p.seen {
		if m, ok := m.(T); ok {
			found = append(found, m)
		}
	}
	return found
}

// place is an agent's pod: its home and its environment.
type place struct {
	t     *testing.T
	home  string
	token string
	tmp   string
	env   map[string]string
	// cli is the folder of ost; see withOst.
	cli string
	// agent is the one that atWork started.
	agent *inside
}

// newPlace makes a home whose program is a shell script.
func newPlace(t *testing.T, o *office, script string) *place {
	t.Helper()
	dir := t.TempDir()
	tmp, err := os.MkdirTemp("", "bp") // short: the names of tests make the homes' paths too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	p := &place{t: t, home: filepath.Join(dir, "home"), token: filepath.Join(dir, "token"), tmp: tmp}
	p.write(p.token, "secret\n")
	if err := os.MkdirAll(p.home, 0o750); err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal([]string{"/bin/sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	p.env = map[string]string{
		contract.EnvHome: p.home, contract.EnvOfficeURL: o.server.URL, contract.EnvNamespace: "demo",
		contract.EnvTeam: "web", contract.EnvPerson: "ada", contract.EnvTokenFile: p.token,
		contract.EnvRuntime: "command", contract.EnvCommand: string(args), "PATH": os.Getenv("PATH"), contract.EnvTmp: tmp,
	}
	return p
}

func (p *place) write(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		p.t.Fatal(err)
	}
	// By rename, as the kubelet replaces the files of a Secret.
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		p.t.Fatal(err)
	}
}

// file is a path in an item's folder.
func (p *place) file(id, name string) string {
	return filepath.Join(p.home, ".bullpen", "items", id, name)
}

func (p *place) environ() []string {
	var list []string
	for name, value := range p.env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// inside is an agent in this process.
type inside struct {
	t     *testing.T
	once  sync.Once
	drain chan struct{}
	now   context.CancelFunc
	done  chan error
	logs  *logs
}

// start runs an agent in this process, and ends it with the test.
func (p *place) start(change ...func(*Config)) *inside {
	p.t.Helper()
	cfg, err := FromEnv(p.environ())
	if err != nil {
		p.t.Fatal(err)
	}
	logs := &logs{}
	cfg.Log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.timing, cfg.uploadTimes = testTiming, testUploadTimes
	cfg.Runtime = &command.Command{Args: cfg.Command, Grace: cfg.ProgramGrace(), Log: cfg.Log}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &inside{t: p.t, drain: make(chan struct{}), now: cancel, done: make(chan error, 1), logs: logs}
	go func() { a.done <- Run(ctx, cfg, a.drain) }()
	p.t.Cleanup(func() {
		a.now()
		select {
		case <-a.done:
		case <-time.After(patience):
			p.t.Error("the agent did not end")
		}
		if p.t.Failed() {
			p.t.Logf("the agent's log:\n%s", logs)
		}
	})
	return a
}

// stop does what SIGTERM does.
func (a *inside) stop() { a.once.Do(func() { close(a.drain) }) }

// wait waits for the end.
func (a *inside) wait() {
	a.t.Helper()
	select {
	case err := <-a.done:
		a.done <- err
		if err != nil {
			a.t.Fatalf("the agent ended with %v", err)
		}
	case <-time.After(patience):
		a.t.Fatal("the agent did not end")
	}
}

// logs is a log that can be read while it is written.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(data)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// spawn runs an agent in a process of its own, and kills it with the test.
func (p *place) spawn() *exec.Cmd {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(p.environ(), envAsAgent+"=1")
	logs := &logs{}
	cmd.Stderr = logs
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if p.t.Failed() {
			p.t.Logf("the log of the agent's process:\n%s", logs)
		}
	})
	return cmd
}

// kill9 kills an agent's process and waits until it is gone.
func kill9(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

// content reads a file; "" if there is none.
func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// alive says whether the process with the number in a file runs.
func alive(t *testing.T, path string) bool {
	t.Helper()
	pid, err := strconv.Atoi(content(path))
	if err != nil {
		t.Fatalf("%s holds no process number: %v", path, err)
	}
	stat := content(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(stat, ") ")
	return stat != "" && !strings.HasPrefix(after, "Z")
}
