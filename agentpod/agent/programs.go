package agent

// This file is what becomes of the messages that programs give to the agent, through the socket in door.go. What must not be
// lost goes through the outbox, so it is on disk before anybody is told that it is on its way, keeps its place among the
// round's own messages, and keeps its id until the office answers. What asks for something needs the office.
//
// Everything here belongs to the loop, but submit.

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// route is the way that a program's message takes.
type route int

const (
	// routeAsk: a request whose answer is all there is to it, or that nobody should repeat. It needs the office.
	routeAsk route = iota + 1
	// routeMail: it must not be lost, and goes through the outbox.
	routeMail
	// routeMailInRound: like routeMail, but the office takes it only while the item is worked. So it is kept for an absent
	// office only then.
	routeMailInRound
	// routeLatest: it counts only in its last form.
	routeLatest
)

// routes has every message that a program may send. The others are the agent's own: whoever could send hello, accept or
// handback could end a round behind its back.
var routes = map[protocol.Type]route{
	protocol.TypeAsk:          routeAsk,
	protocol.TypeRoster:       routeAsk,
	protocol.TypeWorkList:     routeAsk,
	protocol.TypeWorkStatus:   routeAsk,
	protocol.TypeWorkMove:     routeAsk,
	protocol.TypeWorkPlace:    routeAsk,
	protocol.TypeWorkLink:     routeAsk,
	protocol.TypeWorkCheck:    routeAsk,
	protocol.TypeWorkQueue:    routeAsk,
	protocol.TypeWorkAttach:   routeAsk,
	protocol.TypeChatReport:   routeAsk,
	protocol.TypeCurrentWork:  routeAsk,
	protocol.TypeTicketPrs:    routeAsk,
	protocol.TypePrList:       routeAsk,
	protocol.TypeCiLog:        routeAsk,
	protocol.TypeRecall:       routeAsk,
	protocol.TypeTicketUsage:  routeAsk,
	protocol.TypeChatMessage:  routeMail,
	protocol.TypeNotesChanged: routeMail,
	protocol.TypeReportPosted: routeMail,
	protocol.TypeAnswer:       routeMailInRound,
	protocol.TypeJournal:      routeMailInRound,
	protocol.TypeWorkMade:     routeMailInRound,
	protocol.TypeWorkFileFor:  routeMailInRound,
	protocol.TypeDocLink:      routeMailInRound,
	protocol.TypeProgress:     routeLatest,
}

// outcome is what a program is told about its message: the office's answer, or that it is queued, or with an HTTP status of
// 400 or more an error of the agent's own.
type outcome struct {
	status  int
	Type    protocol.Type  `json:"type,omitzero"`
	Payload jsontext.Value `json:"payload,omitzero"`
	Queued  bool           `json:"queued,omitzero"`
}

var queued = outcome{status: http.StatusAccepted, Queued: true}

// trouble is an outcome that the agent itself is the cause of.
func trouble(status int, code protocol.Code, format string, args ...any) outcome {
	payload, err := json.Marshal(protocol.Error{Code: code, Message: fmt.Sprintf(format, args...)})
	if err != nil {
		payload = nil // two strings always have a JSON form
	}
	return outcome{status: status, Type: protocol.TypeError, Payload: payload}
}

// away is the outcome of what could not be brought to the office and was not kept.
func away(format string, args ...any) outcome {
	return trouble(http.StatusServiceUnavailable, protocol.CodeFailed, format, args...)
}

var (
	notConnected = away("the office cannot be reached now; nothing was sent, try again later")
	notAnswered  = away("the office has not answered in time; it may have taken the message all the same")
	connLost     = away("the connection was lost before the office answered; it may have taken the message all the same")
	shuttingDown = away("the agent is shutting down; nothing was sent")
)

// waiter is a program that waits for the outcome of its message.
type waiter struct {
	reply chan<- outcome
	// wrap, if there is one, puts the outcome into what the program is told.
	wrap func(outcome) outcome
	// until is when it is told late, if there is nothing better to tell by then.
	until time.Time
	late  outcome
}

// answer tells the program the outcome. There is room for one.
func (w *waiter) answer(out outcome) {
	if w.wrap != nil {
		out = w.wrap(out)
	}
	w.reply <- out
}

// held is a program's request on its way to the office.
type held struct {
	message protocol.Message
	waiter  *waiter
	// after is the number of the outbox's last letter when the request came. What a program said before it asks has to be
	// there first, or the answer would not know of it.
	after uint64
}

// submit gives a program's message to the loop, and waits for its outcome. It may be called from any goroutine.
func (a *Agent) submit(m protocol.Message) outcome {
	return a.await(func(reply chan<- outcome) { a.onProgram(m, &waiter{reply: reply}) })
}

// await has the loop do something that is answered by an outcome. Once the loop has ended, the answer is that the agent shuts
// down.
func (a *Agent) await(f func(reply chan<- outcome)) outcome {
	reply := make(chan outcome, 1)
	a.do(func() { f(reply) })
	select {
	case out := <-reply:
		return out
	case <-a.gone:
	}
	select {
	case out := <-reply:
		return out
	default:
		return shuttingDown
	}
}

// onProgram takes a program's message.
func (a *Agent) onProgram(m protocol.Message, w *waiter) {
	if a.replaced {
		w.answer(away("another agent of this person is connected to the office, so this one has nothing to say"))
		return
	}
	m = a.masked(m)
	switch way := routes[m.Type()]; way {
	case routeMail, routeMailInRound:
		a.mail(m, way == routeMailInRound, w)
	case routeLatest:
		a.say(m, w)
	default:
		a.query(m, w)
	}
}

// mail puts a program's message into the outbox.
func (a *Agent) mail(m protocol.Message, inRound bool, w *waiter) {
	if id := itemOf(m); inRound && a.link == nil && a.machine.busyWith() != id {
		w.answer(away("the office cannot be reached now, and %s is kept for it only while the agent works on the item; "+
			"nothing was sent, try again later", m.Type()))
		return
	}
	if err := a.outbox.entrust(a.ids.next(), m, w); err != nil {
		w.answer(away("the message cannot be kept on disk, so it was not sent: %v", err))
		return
	}
	a.made(m)
	if posted, ok := m.(protocol.ReportPosted); ok {
		a.reportPosted(posted)
	}
	if a.link == nil {
		w.answer(queued)
		return
	}
	a.wait(w, a.cfg.timing.deliver, queued)
}

// say sends a program's line of progress; while the office is away the last one of the round is kept for it, as with the
// lines that the round's program prints.
func (a *Agent) say(m protocol.Message, w *waiter) {
	id := itemOf(m)
	if a.link != nil || id == "" || a.machine.busyWith() != id {
		a.query(m, w)
		return
	}
	a.keep(m, a.machine.current.seq)
	w.answer(queued)
}

// query asks the office for a program.
func (a *Agent) query(m protocol.Message, w *waiter) {
	a.held = append(a.held, held{message: m, waiter: w, after: a.outbox.number})
	if a.link == nil {
		a.wait(w, a.cfg.timing.away, notConnected)
		return
	}
	a.wait(w, a.cfg.timing.answer, notAnswered)
}

// sendHeld sends the requests whose turn has come.
func (a *Agent) sendHeld(now time.Time) {
	a.held = slices.DeleteFunc(a.held, func(h held) bool {
		switch {
		case !a.waits(h.waiter):
			return true
		case a.link == nil || a.outbox.holds(h.after):
			return false
		}
		a.askFor(h, now)
		return true
	})
}

// askFor sends a request whose answer a program waits for.
func (a *Agent) askFor(h held, now time.Time) {
	id := a.ids.next()
	data, err := protocol.Encode(protocol.Frame{ID: id, Message: h.message})
	if err != nil {
		a.tell(h.waiter, tooLarge)
		return
	}
	a.asked[id] = request{message: h.message, waiter: h.waiter, at: now}
	a.link.send(data)
	a.wait(h.waiter, a.cfg.timing.answer, notAnswered)
}

// wait has a program told late after a while, if there is nothing better to tell until then.
func (a *Agent) wait(w *waiter, most time.Duration, late outcome) {
	w.until, w.late = time.Now().Add(most), late
	a.waiting[w] = struct{}{}
}

// hurryWaits has those who wait for the office wait no longer than for a connection, because there is none now.
func (a *Agent) hurryWaits() {
	until := time.Now().Add(a.cfg.timing.away)
	for w := range a.waiting {
		if !w.late.Queued {
			w.late = notConnected
		}
		if until.Before(w.until) {
			w.until = until
		}
	}
}

func (a *Agent) waits(w *waiter) bool {
	_, ok := a.waiting[w]
	return ok
}

// tell tells a program the outcome, once.
func (a *Agent) tell(w *waiter, out outcome) {
	if a.waits(w) {
		delete(a.waiting, w)
		w.answer(out)
	}
}

// tellAnswer tells a program what the office answered.
func (a *Agent) tellAnswer(r request, answer protocol.Message, payload jsontext.Value) {
	spec, _ := protocol.SpecOf(r.message.Type())
	if !slices.Contains(spec.AnsweredBy, answer.Type()) {
		a.tell(r.waiter, trouble(http.StatusBadGateway, protocol.CodeFailed, "the office answered %s with %s, which is no answer to it",
			r.message.Type(), answer.Type()))
		return
	}
	if payload == nil { // an answer without one, or one that the agent made of an answer it could not read
		data, err := json.Marshal(answer)
		if err != nil {
			a.log.Error("an answer cannot be passed on", "type", answer.Type(), "error", err)
		}
		payload = data
	}
	a.tell(r.waiter, outcome{status: http.StatusOK, Type: answer.Type(), Payload: payload})
}

// tellLate tells the programs that have waited long enough, and returns when it should be called again.
func (a *Agent) tellLate(now time.Time) time.Duration {
	next := time.Hour
	for w := range a.waiting {
		if wait := w.until.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		a.tell(w, w.late)
	}
	for id, r := range a.asked {
		if r.waiter != nil && !r.fromOutbox && !a.waits(r.waiter) {
			delete(a.asked, id) // an answer that comes now is one to nothing
		}
	}
	return next
}

// tellAll ends every wait, because the loop ends. What is in the outbox stays on disk.
func (a *Agent) tellAll() {
	for w := range a.waiting {
		out := w.late
		if !out.Queued {
			out = shuttingDown
		}
		a.tell(w, out)
	}
}

// made remembers what a program says it made in the round in hand, for the hand-back.
func (a *Agent) made(m protocol.Message) {
	text := madeText(m)
	it := a.machine.items[itemOf(m)]
	if text == "" || it == nil || a.machine.busyWith() != it.id || slices.Contains(it.made, text) {
		return
	}
	it.made = append(it.made[:len(it.made):len(it.made)], text)
	a.perform([]action{save{*it}})
}

// unmade forgets what the office did not take.
func (a *Agent) unmade(m protocol.Message) {
	it := a.machine.items[itemOf(m)]
	if it == nil {
		return
	}
	if at := slices.Index(it.made, madeText(m)); at >= 0 {
		it.made = slices.Concat(it.made[:at], it.made[at+1:])
		a.perform([]action{save{*it}})
	}
}

// madeText says what a message announces for others to look at; empty if it announces nothing.
func madeText(m protocol.Message) string {
	switch m := m.(type) {
	case protocol.WorkMade:
		if m.PR == nil {
			return unless(m.Ticket == "", "ticket "+m.Ticket)
		}
		text := "pull request " + m.PR.Repo.Owner + "/" + m.PR.Repo.Name + "#" + strconv.Itoa(m.PR.Number)
		return text + unless(m.PR.URL == "", ", "+m.PR.URL)
	case protocol.DocLink:
		return "document " + oneLine(m.Doc.Title) + ", " + m.Doc.URL
	}
	return ""
}

// itemOf returns the item that a program's message is about, of those that are kept for it; empty for the others.
func itemOf(m protocol.Message) string {
	switch m := m.(type) {
	case protocol.Answer:
		return m.QuestionID // a question is the item of whoever answers it
	case protocol.Journal:
		return m.WorkItemID
	case protocol.WorkMade:
		return m.WorkItemID
	case protocol.WorkFileFor:
		return m.WorkItemID
	case protocol.DocLink:
		return m.WorkItemID
	case protocol.Progress:
		return m.WorkItemID
	}
	return ""
}
