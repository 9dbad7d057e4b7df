package office

// This file answers what agents send: each request gets exactly one response, after what it asks for is durable. What is done about each
// kind of message is in the files named after what they are about.

import (
	"context"
	"errors"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// Limits of what one message may leave behind.
const (
	maxProgress  = 1000
	maxSessionID = 1000
	maxWindows   = 16
	maxName      = 200
	maxWorkList  = 200
	maxAsked     = 5000
	maxWire      = 300  // ids and names of other systems
	maxText      = 1000 // titles and names that people chose
)

// receive handles one frame.
func (o *Office) receive(ctx context.Context, p *peer, data []byte) {
	frame, werr := protocol.Decode(data)
	if werr != nil {
		o.metrics.messages.WithLabelValues("", string(werr.Code)).Inc()
		o.answer(p, werr.RequestID, werr)
		return
	}
	kind := string(frame.Message.Type())
	r := request{o: o, ctx: ctx, p: p, f: frame}
	reply, err := r.handle()
	if err != nil {
		werr := o.wireError(p, kind, err)
		o.metrics.messages.WithLabelValues(kind, string(werr.Code)).Inc()
		o.answer(p, frame.ID, werr)
		return
	}
	o.metrics.messages.WithLabelValues(kind, "ok").Inc()
	if reply != nil {
		o.respond(p, frame.ID, reply)
	}
}

// wireError is what an agent is told of an error: its own doing as it is, the office's trouble without its details.
func (o *Office) wireError(p *peer, kind string, err error) *protocol.WireError {
	var werr *protocol.WireError
	if errors.As(err, &werr) {
		return werr
	}
	if errors.Is(err, store.ErrNotFound) {
		return protocol.Errorf(protocol.CodeNotFound, "what this needs is not there (any more): the team, the person or the item was deleted")
	}
	o.log.Error("A message could not be stored", "person", p.key.String(), "type", kind, "error", err)
	return protocol.Errorf(protocol.CodeFailed, "the office cannot store this now, nothing of it was kept: send it again later")
}

// request is one message being answered.
type request struct {
	o   *Office
	ctx context.Context
	p   *peer
	f   protocol.Frame
}

// change runs a transaction and acknowledges the request once that is durable, before anything that follows from it leaves: the ack of
// a hand-back comes before the next offer.
func (r request) change(fn func(w *work) error) error {
	return r.o.change(r.ctx, fn, func() { r.o.respond(r.p, r.f.ID, protocol.Ack{}) })
}

// reply runs a transaction and answers with what it gives, once that is durable.
func (r request) reply(fn func(w *work) (protocol.Message, error)) (protocol.Message, error) {
	var answer protocol.Message
	err := r.o.change(r.ctx, func(w *work) (err error) {
		answer, err = fn(w)
		return err
	}, func() { r.o.respond(r.p, r.f.ID, answer) })
	return nil, err
}

// read answers from a snapshot of the store.
func (r request) read(fn func(store.Reader) (protocol.Message, error)) (answer protocol.Message, err error) {
	err = r.o.store.View(r.ctx, func(tx store.Reader) error {
		answer, err = fn(tx)
		return err
	})
	return answer, err
}

// handler gives the response to one kind of message; nil where it takes none, or has it already.
type handler func(request) (protocol.Message, error)

// on makes a handler of a method that takes the message by its type.
func on[M protocol.Message](method func(request, M) (protocol.Message, error)) handler {
	return func(r request) (protocol.Message, error) { return method(r, r.f.Message.(M)) }
}

// handlers has what is done about each message that an agent may send.
var handlers = map[protocol.Type]handler{
	protocol.TypePing: func(request) (protocol.Message, error) { return protocol.Pong{}, nil },
	// Nobody asked, and an error is never answered with an error.
	protocol.TypePong:  func(request) (protocol.Message, error) { return nil, nil },
	protocol.TypeError: func(request) (protocol.Message, error) { return nil, nil },
	protocol.TypeHello: func(request) (protocol.Message, error) {
		return nil, protocol.Errorf(protocol.CodeInvalid, "hello was said already on this connection")
	},

	protocol.TypeAccept:    on(request.accept),
	protocol.TypeDecline:   on(request.decline),
	protocol.TypeHeartbeat: on(request.heartbeat),
	protocol.TypeProgress:  on(request.progress),
	protocol.TypeSession:   on(request.session),
	protocol.TypeJournal:   on(request.journal),
	protocol.TypeHandback:  on(request.handback),
	protocol.TypeFail:      on(request.fail),
	protocol.TypeUsage:     on(request.usage),

	protocol.TypeRoster:       on(request.roster),
	protocol.TypeDoctorReport: on(request.doctorReport),
	protocol.TypeAsk:          on(request.ask),
	protocol.TypeAnswer:       on(request.answer),

	protocol.TypeWorkList:   on(request.workList),
	protocol.TypeWorkStatus: on(request.workStatus),
	protocol.TypeWorkMove:   on(request.workMove),
	protocol.TypeWorkPlace:  on(request.workPlace),

	protocol.TypeChatMessage: on(request.chatMessage),
	protocol.TypeWorkCheck:   on(request.workCheck),
	protocol.TypeWorkLink:    on(request.workLink),
	protocol.TypeWorkFileFor: on(request.workFileFor),
	protocol.TypeWorkQueue:   on(request.workQueue),
	protocol.TypeWorkAttach:  on(request.workAttach),

	protocol.TypeChatReport:   on(request.chatReport),
	protocol.TypeReportPosted: on(request.reportPosted),
	protocol.TypeActResult:    on(request.actResult),

	protocol.TypeWorkMade:     on(request.workMade),
	protocol.TypeDocLink:      on(request.docLink),
	protocol.TypeNotesChanged: on(request.notesChanged),
	protocol.TypeCurrentWork:  on(request.currentWork),
	protocol.TypeTicketPrs:    on(request.ticketPrs),
	protocol.TypePrList:       on(request.prList),
	protocol.TypeCiLog:        on(request.ciLog),
	protocol.TypeRecall:       on(request.recall),
	protocol.TypeTicketUsage:  on(request.ticketUsage),
}

// handle gives the response to the message.
func (r request) handle() (protocol.Message, error) {
	kind := r.f.Message.Type()
	if handle, ok := handlers[kind]; ok {
		return handle(r)
	}
	return nil, protocol.Errorf(protocol.CodeInvalidMessage, "%s is sent by the office, never by an agent", kind)
}

// outcome makes a plain error of a wire error, which is never a non-nil interface around nil.
func outcome(out dispatch.Outcome, werr *protocol.WireError) (dispatch.Outcome, error) {
	if werr != nil {
		return out, werr
	}
	return out, nil
}

// itemOf gives the item, or unknown_item where there is none or it is another team's: handles are unique within a team only.
func itemOf(r store.Reader, p *peer, id string) (model.Item, error) {
	it, err := found(r.Item(id))
	if err != nil {
		return model.Item{}, err
	}
	if it == nil || it.TeamKey() != p.key.Team {
		return model.Item{}, protocol.Errorf(protocol.CodeUnknownItem, "there is no work item %q", cut(id, 100))
	}
	return *it, nil
}

// running gives the item if the person runs it now.
func running(r store.Reader, p *peer, id string) (model.Item, error) {
	it, err := itemOf(r, p, id)
	if err != nil {
		return it, err
	}
	if werr := dispatch.Running(it, p.key.Handle); werr != nil {
		return it, werr
	}
	return it, nil
}

// policy is that of the item's team, or the defaults where it is gone.
func (w *work) policy(it model.Item) (model.Policy, error) {
	team, err := found(w.tx.Team(it.TeamKey()))
	if err != nil || team == nil {
		return dispatch.DefaultPolicy(), err
	}
	return team.Policy, nil
}

// short refuses a text of more than limit bytes. field is its name in the message.
func short(field, text string, limit int) error {
	if len(text) <= limit {
		return nil
	}
	return protocol.Errorf(protocol.CodeInvalid, "%s has at most %d bytes, not %d", field, limit, len(text))
}

// cut shortens a text to at most limit characters.
func cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
