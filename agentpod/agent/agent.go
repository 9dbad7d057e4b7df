// Package agent is the process in an agent's pod: it connects to the office, takes one work item at a time, has the runtime
// work it, and hands it back.
//
// One goroutine, the loop in Run, owns all state. Everything else (the connection, the runtime, the doctor) tells it what
// happened by passing functions to do. What to do about work items is decided in rounds.go, without I/O; what must not be
// lost goes through the outbox. docs/agent.md describes the behaviour for users.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/bullpen-dev/bullpen/agentpod/mask"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/agentpod/spool"
	"github.com/bullpen-dev/bullpen/agentpod/workplace"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Agent is one running agent. All fields belong to the loop.
type Agent struct {
	cfg     Config
	log     *slog.Logger
	home    *home
	ids     *ids
	machine *machine
	outbox  outbox

	// todo takes what others want done in the loop; gone is closed when the loop has ended.
	todo chan func()
	gone chan struct{}

	// link is the connection, nil while there is none; asked are the requests on it that have no answer yet.
	link      *link
	asked     map[string]request
	heartbeat time.Duration
	beat      *time.Ticker
	beatEvery time.Duration
	// lost is closed when the link ended.
	lost chan struct{}

	run   *run
	team  team
	place *workplace.Place
	// mask masks what is told, spool keeps records and uploads brings them to the office. The latter two are nil in a home that has no
	// place for them.
	mask    *mask.Masker
	spool   *spool.Spool
	uploads *spool.Uploader
	// heldBack is the letter that waits for records, since heldSince.
	heldBack  uint64
	heldSince time.Time
	// held are requests of programs that are not sent yet; waiting are the programs that wait for anything.
	held    []held
	waiting map[*waiter]struct{}
	notes   notebook
	// acts and reports are the errands; errandCancel ends a hook that is at work on one.
	acts, reports *errands
	errandCancel  map[errandKind]context.CancelFunc
	saidNoHook    bool
	// latest holds what only counts in its last form, by type, until it is sent; one of a type is under way at a time.
	latest map[protocol.Type]request
	// runtimeProblem is why the runtime cannot work, as its doctor sees it; doorProblem why programs cannot speak to the agent.
	runtimeProblem, doorProblem string

	draining bool
	hurried  bool
	replaced bool
}

// request is a message without a place in the outbox.
type request struct {
	message protocol.Message
	// seq is the round it is about, or 0.
	seq int
	// fromOutbox says that it is the outbox's first letter.
	fromOutbox bool
	// waiter is the program that waits for the answer, if one does.
	waiter *waiter
	at     time.Time
}

// run is the runtime at work.
type run struct {
	seq    int
	id     string
	cancel context.CancelFunc
	record string
	turn   *turn
}

// Run is the agent's life. It begins to shut down when drain is closed, or at the latest when ctx ends: then it ends its
// program at once and leaves what was not delivered on disk. It returns nil after a shutdown.
func Run(ctx context.Context, cfg Config, drain <-chan struct{}) error {
	cfg = cfg.fill()
	a := &Agent{
		cfg: cfg, log: cfg.Log, ids: newIDs(),
		todo: make(chan func(), 64), gone: make(chan struct{}),
		asked: map[string]request{}, latest: map[protocol.Type]request{}, waiting: map[*waiter]struct{}{},
		acts: newErrands(kindAct), reports: newErrands(kindReport), errandCancel: map[errandKind]context.CancelFunc{},
		heartbeat: time.Minute,
	}
	url, err := endpoint(cfg.OfficeURL, cfg.Namespace, cfg.Team)
	if err != nil {
		return err
	}
	if err := a.wakeUp(ctx, drain); err != nil {
		return err
	}
	defer a.home.close() //nolint:errcheck // the lock goes with the process
	defer a.openDoor()()
	defer a.runUploads()()

	connected, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	connector := &connector{
		dialer: a.dialer(), url: url, person: cfg.Person, log: cfg.Log, timing: cfg.timing, nextID: newIDs().next,
		connected: func(l *link, id string, w protocol.Welcome) { a.do(func() { a.onWelcome(l, id, w) }) },
		received: func(l *link, f protocol.Frame, payload json.RawMessage) {
			a.do(func() { a.onFrame(l, f, payload) })
		},
		lost:     func(l *link) { a.do(func() { a.onLost(l) }) },
		replaced: func() { a.do(a.onReplaced) },
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		connector.run(connected)
	}()
	a.loop(ctx, drain)
	a.sayGoodbye()
	a.tellAll()
	close(a.gone)
	hangUp()
	<-ended
	return nil
}

// openDoor opens the socket for programs and tells their environment of it. An agent without it can still work rounds. The
// function that it returns closes the socket.
func (a *Agent) openDoor() func() {
	d, err := openDoor(a.home.root, a.cfg.Tmp, a.handler(), a.log)
	socket := ""
	if err != nil {
		a.log.Error("the socket for programs cannot be opened, so they cannot use ost", "error", err)
		a.doorProblem = err.Error()
	} else {
		socket = d.path
	}
	a.cfg.Env = programEnv(a.cfg.Env, socket, a.home.notesPage(), a.cfg.CLIDir)
	return func() {
		if d != nil {
			d.close()
		}
	}
}

// wakeUp opens the home and reads what an earlier life left.
func (a *Agent) wakeUp(ctx context.Context, drain <-chan struct{}) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-drain:
			cancel()
		case <-waiting.Done():
		}
	}()
	var err error
	if a.home, err = openHome(waiting, a.cfg.Home, a.log); err != nil {
		return err
	}
	a.place = a.newPlace()
	items, err := a.home.loadItems()
	if err != nil {
		return errors.Join(fmt.Errorf("the home cannot be read: %w", err), a.home.close())
	}
	a.machine = newMachine(items)
	a.outbox = outbox{home: a.home, log: a.log}
	err = errors.Join(a.outbox.load(), a.home.loadDeeds(a.acts, a.reports))
	if err == nil {
		a.notes, err = a.home.loadNotes()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the home cannot be read: %w", err), a.home.close())
	}
	for _, l := range a.outbox.letters {
		if id, ends := endedItem(l.message); ends {
			a.machine.endings[id]++
		}
	}
	a.team.raw, a.team.config = a.home.loadTeam()
	a.openSpool()
	return nil
}

// do has the loop do something, unless it has ended.
func (a *Agent) do(f func()) {
	select {
	case a.todo <- f:
	case <-a.gone:
	}
}

// loop runs until the agent has shut down.
func (a *Agent) loop(ctx context.Context, drain <-chan struct{}) {
	a.beatEvery = time.Minute
	a.beat = time.NewTicker(a.beatEvery)
	defer a.beat.Stop()
	clean := time.NewTicker(a.cfg.clean)
	defer clean.Stop()
	recheck := time.NewTicker(a.cfg.recheck)
	defer recheck.Stop()
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	var grace <-chan time.Time
	now := ctx.Done()
	for !a.finished() {
		select {
		case f := <-a.todo:
			f()
		case <-a.beat.C:
			a.onBeat()
		case <-clean.C:
			a.askAbout()
		case <-recheck.C:
			if a.runtimeProblem != "" {
				a.examine()
			}
			a.runErrands()
		case <-again.C:
		case <-drain:
			drain = nil
			grace = time.After(a.cfg.Grace)
			a.drain()
		case <-grace:
			a.log.Warn("the grace period is over; what was not delivered stays in the home for the next start")
			a.hurry()
		case <-now:
			now = nil
			a.hurry()
		}
		again.Reset(a.flush(time.Now()))
		a.setBeat()
	}
}

// finished says whether nothing is left to do before the end.
func (a *Agent) finished() bool {
	switch {
	case !a.draining || a.run != nil || a.errandsRunning():
		return false
	case a.hurried || a.replaced:
		return true
	}
	return a.machine.idle() && a.outbox.empty() && !a.waitsFor(protocol.TypeDecline)
}

func (a *Agent) waitsFor(t protocol.Type) bool {
	for _, r := range a.asked {
		if r.message.Type() == t && r.waiter == nil {
			return true
		}
	}
	return false
}

// drain begins the shutdown.
func (a *Agent) drain() {
	if a.draining {
		return
	}
	a.draining = true
	a.log.Info("shutting down", "working", a.machine.busyWith())
	a.perform(a.machine.drain())
	// An errand gets the time that a program has: to cut it short is to do some of it twice.
	time.AfterFunc(a.cfg.ProgramGrace(), func() { a.do(a.stopErrands) })
}

// soonest is the most time that a program gets to end when its round counts no more.
const soonest = 5 * time.Second

// stop has the runtime end its program.
func (a *Agent) stop(act stop) {
	r := a.run
	if r == nil || r.seq != act.seq {
		return
	}
	r.cancel()
	if act.soon {
		time.AfterFunc(min(soonest, a.heartbeat), func() { a.do(func() { a.kill(r) }) })
	}
}

// kill ends a program at once, unless its run has ended. The runtime sees it end.
func (a *Agent) kill(r *run) {
	if r == nil || a.run != r {
		return
	}
	if err := process.EndRecorded(r.record); err != nil {
		a.log.Error("the program cannot be ended", "item", r.id, "error", err)
	}
}

// hurry ends the shutdown: the program is killed, and what it leaves is kept on disk.
func (a *Agent) hurry() {
	a.drain()
	a.hurried = true
	a.kill(a.run)
	a.killErrands()
}

// sayGoodbye closes the connection in order and waits a little for it.
func (a *Agent) sayGoodbye() {
	if a.link == nil {
		return
	}
	lost := a.lost
	a.link.bye()
	limit := time.After(a.cfg.timing.goodbye)
	for {
		select {
		case f := <-a.todo:
			f()
		case <-lost:
			return
		case <-limit:
			return
		}
	}
}

// onWelcome begins work on a new connection.
func (a *Agent) onWelcome(l *link, id string, w protocol.Welcome) {
	a.log.Info("connected to the office", "resume", w.Resume, "heartbeatMs", w.HeartbeatMs)
	a.link, a.lost = l, make(chan struct{})
	a.heartbeat = heartbeatOf(w)
	a.team.pending, a.team.pendingID = w.Team, id
	a.takeTeam()
	a.perform(a.machine.welcome(w.Resume))
	a.endLeftTurns()
	a.online(true)
	a.onActs(w.Acts)
	a.onReports(w.Reports)
	a.askAbout()
}

// onLost ends a connection. What was under way on it is sent again on the next one.
func (a *Agent) onLost(l *link) {
	if a.link != l {
		return
	}
	for _, r := range a.asked {
		if r.waiter != nil {
			if !r.fromOutbox {
				a.tell(r.waiter, connLost)
			}
			continue
		}
		c := a.machine.current
		stale := r.seq != 0 && (c == nil || c.seq != r.seq)
		if _, newer := a.latest[r.message.Type()]; !newer && !stale && keepsLatest(r.message) {
			a.latest[r.message.Type()] = r
		}
	}
	clear(a.asked)
	a.hurryWaits()
	a.link = nil
	a.online(false)
	close(a.lost)
	a.outbox.offline()
	a.machine.offline()
}

// keepsLatest says whether a message counts only in its last form, but should arrive.
func keepsLatest(m protocol.Message) bool {
	switch m.(type) {
	case protocol.Progress, protocol.Usage, protocol.DoctorReport:
		return true
	}
	return false
}

// onReplaced ends the work of an agent that another one took the place of.
func (a *Agent) onReplaced() {
	a.replaced = true
	a.perform(a.machine.giveWay())
	a.stopErrands()
}

// onFrame takes what the office sent.
func (a *Agent) onFrame(l *link, f protocol.Frame, payload json.RawMessage) {
	if l != a.link {
		return
	}
	if f.ReplyTo != "" {
		if r, ok := a.asked[f.ReplyTo]; ok {
			delete(a.asked, f.ReplyTo)
			a.onAnswer(r, f.Message, payload)
		}
		return
	}
	switch m := f.Message.(type) {
	case protocol.Offer:
		a.log.Info("offered", "item", m.WorkItem.ID, "kind", m.WorkItem.Kind, "title", m.WorkItem.Title)
		a.perform(a.machine.offer(offered{m, payload, f.ID}))
	case protocol.Act:
		a.onActs([]protocol.Act{m})
	case protocol.Reports:
		a.onReports(m.Reports)
	case protocol.Error:
		a.log.Warn("the office reports an error", "code", m.Code, "message", m.Message)
	case protocol.Pong, protocol.Ack:
		// Answers to nothing.
	default:
		a.sendError(f.ID, protocol.CodeUnsupported, fmt.Sprintf("this agent does nothing about %s", m.Type()))
	}
}

func (a *Agent) sendError(replyTo string, code protocol.Code, message string) {
	f := protocol.Errorf(code, "%s", message)
	f.RequestID = replyTo
	data, err := protocol.Encode(f.Reply(a.ids.next()))
	if err != nil || a.link == nil {
		return
	}
	a.link.send(data)
}

// refusalIn returns the error that an answer is, and logs it; nil if it is none.
func (a *Agent) refusalIn(r request, answer protocol.Message) *protocol.Error {
	e, ok := answer.(protocol.Error)
	if !ok {
		return nil
	}
	level := slog.LevelWarn
	if e.Code == protocol.CodeUnsupported || r.waiter != nil && a.waits(r.waiter) {
		level = slog.LevelInfo
	}
	a.log.Log(context.Background(), level, "the office refused a message", "type", r.message.Type(),
		"code", e.Code, "message", e.Message)
	return &e
}

// onAnswer takes the answer to a request.
func (a *Agent) onAnswer(r request, answer protocol.Message, payload json.RawMessage) {
	refusal := a.refusalIn(r, answer)
	again := refusal != nil && refusal.Code == protocol.CodeFailed
	if r.waiter != nil {
		if !r.fromOutbox || !again { // else it is sent again, and the program waits on
			a.tellAnswer(r, answer, jsontext.Value(payload))
		}
		if !r.fromOutbox {
			return
		}
	}
	switch m := r.message.(type) {
	case protocol.Accept:
		switch {
		case refusal == nil:
			a.perform(a.machine.accepted(r.seq))
		case !again: // else the next heartbeat tries again
			a.perform(a.machine.refused(r.seq))
		}
	case protocol.Heartbeat, protocol.Progress:
		if refusal != nil && notOurs(refusal.Code) && r.seq != 0 {
			a.perform(a.machine.refused(r.seq))
		}
	case protocol.WorkStatus:
		if result, ok := answer.(protocol.WorkStatusResult); ok {
			a.forget(result)
		}
	case protocol.DoctorReport:
		if again {
			a.keep(m, 0)
		}
	default:
		if r.fromOutbox {
			a.onDelivery(r, refusal, again)
		}
	}
}

// onDelivery takes the answer to the outbox's first letter. again says that it is to be sent once more.
func (a *Agent) onDelivery(r request, refusal *protocol.Error, again bool) {
	a.outbox.answered(again, time.Now())
	if again {
		return
	}
	a.perform(a.machine.delivered(r.message, r.seq, refusal))
	if refusal != nil {
		a.unmade(r.message)
	}
}

// onBeat shows life, and cares for what the office has not answered.
func (a *Agent) onBeat() {
	if a.link == nil {
		return
	}
	now := time.Now()
	for _, r := range a.asked {
		if r.waiter != nil && !r.fromOutbox {
			continue // the program is told when it has waited long enough
		}
		if now.Sub(r.at) > max(4*a.heartbeat, a.cfg.timing.refused) {
			a.log.Warn("the office does not answer a message; connecting again", "type", r.message.Type())
			a.link.kill()
			return
		}
	}
	if id, seq, ok := a.machine.accepting(); ok && !a.waitsFor(protocol.TypeAccept) {
		a.sendAccept(id, seq)
	}
	beat := protocol.Heartbeat{WorkItemID: a.machine.busyWith()}
	seq := 0
	if beat.WorkItemID != "" {
		seq = a.machine.current.seq
	}
	a.ask(beat, seq)
}

// setBeat keeps the heartbeat's pace: twice as often as it must be while working, calmer else, and never so rare that the
// connection looks idle to what it goes through.
func (a *Agent) setBeat() {
	every := a.heartbeat * 3 / 4
	if a.machine.busyWith() != "" {
		every = a.heartbeat / 2
	}
	every = min(every, a.cfg.timing.idle)
	if every != a.beatEvery {
		a.beatEvery = every
		a.beat.Reset(every)
	}
}

// ask sends a request, if there is a connection.
func (a *Agent) ask(m protocol.Message, seq int) {
	if a.link == nil {
		return
	}
	id := a.ids.next()
	data, err := encode(id, m)
	if err != nil {
		a.log.Error("a message cannot be sent", "type", m.Type(), "error", err)
		return
	}
	a.asked[id] = request{message: m, seq: seq, at: time.Now()}
	a.link.send(data)
}

func (a *Agent) sendAccept(id string, seq int) {
	a.ask(protocol.Accept{WorkItemID: id, Runtime: a.cfg.Runtime.Name(), Model: a.model()}, seq)
}

// model is the one that the person is configured with.
func (a *Agent) model() string {
	if m := person(a.team.config, a.cfg.Person).Model; m != "" {
		return m
	}
	return a.cfg.Model
}

// keep has a message sent that replaces any earlier one of its type.
func (a *Agent) keep(m protocol.Message, seq int) {
	a.latest[m.Type()] = request{message: a.masked(m), seq: seq}
}

// flush sends what can be sent, and returns when it should be called again at the latest.
func (a *Agent) flush(now time.Time) time.Duration {
	a.sendHeld(now)
	next := a.tellLate(now)
	if a.link == nil || a.replaced {
		return next
	}
	for t, r := range a.latest {
		if !a.waitsFor(t) {
			delete(a.latest, t)
			a.ask(r.message, r.seq)
		}
	}
	if a.holdsWindows() {
		return next
	}
	if wait := a.holdBack(now); wait > 0 {
		return min(wait, next)
	}
	l, ok := a.outbox.next(now)
	if ok {
		a.asked[l.id] = request{message: l.message, seq: l.seq, fromOutbox: true, waiter: l.waiter, at: now}
		a.link.send(l.frame)
	}
	if wait := a.outbox.retryAt.Sub(now); wait > 0 {
		return min(wait, next)
	}
	return next
}

// perform carries out what the machine decided.
func (a *Agent) perform(acts []action) {
	for len(acts) > 0 {
		act := acts[0]
		acts = acts[1:]
		switch act := act.(type) {
		case take:
			acts = append(acts, a.take(act)...)
		case accept:
			a.sendAccept(act.id, a.machine.current.seq)
		case decline:
			a.log.Info("declined", "item", act.id, "reason", act.reason)
			a.ask(protocol.Decline{WorkItemID: act.id, Reason: act.reason}, 0)
		case save:
			if err := a.save(act.item); err != nil {
				a.log.Error("an item cannot be kept on disk", "item", act.item.id, "error", err)
			}
		case start:
			a.start(act)
		case stop:
			a.stop(act)
		case post:
			if err := a.outbox.put(a.ids.next(), a.masked(act.message), act.seq); err != nil {
				a.log.Error("a message cannot be sent", "type", act.message.Type(), "error", err)
			}
		case unstarted:
			a.endUnstarted(act)
		}
	}
}

// take saves an offer and only then accepts it.
func (a *Agent) take(act take) []action {
	seq := a.machine.current.seq
	if err := a.save(act.item); err != nil {
		a.log.Error("an offer cannot be kept on disk", "item", act.item.id, "error", err)
		a.ask(protocol.Decline{
			WorkItemID: act.item.id, Reason: cutText("the agent's home cannot be written: "+err.Error(), 1000),
		}, 0)
		return a.machine.takeFailed()
	}
	a.sendAccept(act.item.id, seq)
	return nil
}

func (a *Agent) save(it item) error {
	it.touched = time.Now().Unix()
	if known := a.machine.items[it.id]; known != nil {
		known.touched = it.touched
	}
	return a.home.saveItem(it)
}

// takeTeam puts the config of the last welcome to use, if no round is running.
func (a *Agent) takeTeam() {
	raw := a.team.pending
	if raw == nil || a.run != nil {
		return
	}
	a.team.pending = nil
	if a.team.taken && a.team.problem == "" && bytes.Equal(raw, a.team.raw) {
		return
	}
	config, err := protocol.ParseTeamConfig(raw)
	if err == nil {
		err = a.home.saveTeam(raw, config, a.cfg.Person, a.cfg.CLIDir != "" && a.doorProblem == "")
	}
	if err != nil {
		a.log.Error("the team config of the office cannot be used; offers are declined", "error", err)
		a.team.problem = cutText("the team config cannot be used: "+err.Error(), 1000)
		a.sendError(a.team.pendingID, protocol.CodeInvalidMessage, a.team.problem)
	} else {
		a.team.raw, a.team.config, a.team.problem, a.team.taken = raw, config, "", true
		a.examine()
	}
	a.judge()
}

// judge tells the machine whether offers can be taken.
func (a *Agent) judge() {
	a.machine.unfit = a.team.problem
	if a.machine.unfit == "" {
		a.machine.unfit = a.runtimeProblem
	}
}
