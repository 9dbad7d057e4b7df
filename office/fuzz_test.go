package office_test

// This file lets chance speak to the office. A program is a string of bytes, each step of which is one thing that an agent, its network or
// a user does: right, wrong, repeated, out of order, or not the protocol at all. After each step must hold: every request has exactly one
// answer and nothing else has any, the connection is open unless the protocol closes it, and nobody else is disturbed.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// program is a run of a string of bytes against an office of its own.
type program struct {
	*bench
	code []byte
	ada  *agent
	bob  *agent
	// sent are the frames of all of ada's connections, owed the answers that are due on the current one by request.
	sent [][]byte
	owed map[string]int
	// dropped says that the office may close the connection, for it took something from ada.
	dropped bool
	ids     int
	// offered is the last item that ada was offered.
	offered string
	items   int
}

func FuzzConnection(f *testing.F) {
	for _, code := range programs() {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code []byte) { runProgram(t, code) })
}

func TestAConnectionThatIsDrivenByChanceHoldsTheRules(t *testing.T) {
	seed := uint64(rand.Int64())
	if s := os.Getenv("FUZZ_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	chance := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		code := make([]byte, 60)
		for i := range code {
			code[i] = byte(chance.Uint32())
		}
		if !t.Run("", func(t *testing.T) { runProgram(t, code) }) {
			t.Fatalf("FUZZ_SEED=%d runs the same programs again; this one was %q", seed, code)
		}
	}
}

// programs are seeds: every message about different items, before and during a round, and repeated; and some stories.
func programs() [][]byte {
	var all [][]byte
	for first := 0; first < len(utterances); first += 8 {
		var code []byte
		for _, item := range []byte{0, 1, 2} {
			for n := first; n < min(first+8, len(utterances)); n++ {
				code = append(code, stepApply, stepSay, byte(n), item, stepAccept, stepSay, byte(n), item, stepRepeat, 0)
			}
		}
		all = append(all, code)
	}
	return append(all,
		[]byte{stepApply, stepAccept, stepVanish, stepRepeat, 0, stepHandBack, stepRepeat, 0, stepApply, stepAccept, stepRepeat, 1},
		[]byte{stepApply, stepAccept, stepReplace, stepHandBack, stepReplace, stepRepeat, 0, stepRepeat, 1},
		[]byte{stepApply, stepAccept, stepCancel, stepHandBack, stepApply, stepCancel, stepAccept},
		[]byte{stepGarbage, 5, 'h', 'e', 'l', 'l', 'o', stepGarbage, 2, '{', '}', stepGarbage, 0, stepBinary, stepCutOff, 3, 40, stepAnswer, 0, stepAnswer, 1, stepAnswer, 2},
		[]byte{stepBadHello, stepApply, stepBadHello, stepAccept, stepPing, stepBadHello, stepHandBack},
	)
}

// The steps of a program.
const (
	stepSay = iota
	stepRepeat
	stepGarbage
	stepBinary
	stepCutOff
	stepAnswer
	stepVanish
	stepReplace
	stepBadHello
	stepPing
	stepApply
	stepCancel
	stepAccept
	stepHandBack
	steps
)

func runProgram(t *testing.T, code []byte) {
	if len(code) > 300 { // else the flow control would be what is tested
		code = code[:300]
	}
	p := &program{bench: open(t), code: code, owed: map[string]int{}}
	p.bob, _ = p.connect("bob")
	p.reconnect()
	for len(p.code) > 0 {
		p.step()
		p.settle()
	}
	if p.bob.request(protocol.Ping{}).Type() != protocol.TypePong {
		t.Error("somebody else is not answered any more")
	}
	if last, _ := p.connect("ada"); last.request(protocol.Ping{}).Type() != protocol.TypePong {
		t.Error("the office lets nobody in any more")
	}
}

// take gives the next number of the program, below n.
func (p *program) take(n int) int {
	if len(p.code) == 0 {
		return 0
	}
	b := int(p.code[0]) % n
	p.code = p.code[1:]
	return b
}

func (p *program) step() {
	switch p.take(steps) {
	case stepSay:
		kind := p.take(len(utterances))
		p.say(utterances[kind](p.item()))
		p.dropped = p.dropped || kind == 0
	case stepRepeat:
		if n := len(p.sent); n > 0 {
			p.send(p.sent[n-1-p.take(n)])
		}
	case stepGarbage:
		n := min(p.take(40), len(p.code))
		garbage := p.code[:n]
		p.code = p.code[n:]
		p.send(garbage)
	case stepBinary:
		p.owed[""]++
		p.must(p.ada.ws.WriteMessage(websocket.BinaryMessage, p.code))
	case stepCutOff:
		data, _ := protocol.Encode(protocol.Frame{ID: p.newID(), Message: utterances[p.take(len(utterances))](p.item())})
		p.send(data[:p.take(len(data))])
	case stepAnswer:
		m := []protocol.Message{protocol.Pong{}, protocol.Error{Code: protocol.CodeInvalid, Message: "no"}, protocol.Ack{}}[p.take(3)]
		data, err := protocol.Encode(protocol.Frame{ID: p.newID(), ReplyTo: "o1", Message: m})
		p.must(err)
		p.send(data)
	case stepVanish:
		p.must(p.ada.ws.Close())
		p.reconnect()
	case stepReplace:
		p.replace()
	case stepBadHello:
		p.badHello()
	case stepPing:
		p.must(p.ada.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(patience)))
	case stepApply:
		p.items++
		p.apply(fmt.Sprint("item-", p.items))
	case stepCancel:
		if p.items > 0 {
			p.apply(fmt.Sprint("item-", p.items), func(f *model.ItemFacts) { f.Spec.Cancel = true })
			p.dropped = true
		}
	case stepAccept:
		p.say(protocol.Accept{WorkItemID: p.offered, Runtime: "command"})
	case stepHandBack:
		p.say(protocol.Handback{WorkItemID: p.offered, Status: protocol.HandbackDone, Summary: "done", Links: []protocol.Link{}, ToReview: []string{"x"}})
	}
}

// item is the id of what ada was offered, of an item of hers, or of nothing.
func (p *program) item() string {
	return []string{p.offered, "uid-item-1", "nothing"}[p.take(3)]
}

func (p *program) newID() string {
	p.ids++
	return fmt.Sprint("p", p.ids)
}

func (p *program) say(m protocol.Message) {
	data, err := protocol.Encode(protocol.Frame{ID: p.newID(), Message: m})
	p.must(err)
	p.send(data)
}

// send sends a frame, and notes what has to be answered.
func (p *program) send(data []byte) {
	p.sent = append(p.sent, data)
	frame, werr := protocol.Decode(data)
	switch {
	case werr != nil:
		p.owed[werr.RequestID]++
	case frame.Message.Type() != protocol.TypePong && frame.Message.Type() != protocol.TypeError:
		p.owed[frame.ID]++
	}
	p.must(p.ada.ws.WriteMessage(websocket.TextMessage, data))
}

// settle reads until all that was sent must have been answered, and checks that it was.
func (p *program) settle() {
	p.t.Helper()
	sync := p.newID()
	data, err := protocol.Encode(protocol.Frame{ID: sync, Message: protocol.Ping{}})
	p.must(err)
	p.owed[sync]++
	err = p.ada.ws.WriteMessage(websocket.TextMessage, data)
	for err == nil && p.owed[sync] > 0 {
		err = p.hear(p.ada)
	}
	var closed *websocket.CloseError
	if p.dropped && errors.As(err, &closed) && closed.Code == hub.CodeDropped {
		p.reconnect()
		return
	}
	p.must(err)
	for id, n := range p.owed {
		if n != 0 {
			p.t.Fatalf("%d answers to %q are missing", n, id)
		}
	}
}

// hear reads one frame.
func (p *program) hear(from *agent) error {
	p.t.Helper()
	p.must(from.ws.SetReadDeadline(time.Now().Add(patience)))
	_, data, err := from.ws.ReadMessage()
	if err != nil {
		return err
	}
	f, werr := protocol.Decode(data)
	if werr != nil {
		p.t.Fatalf("the office sent what it must not: %v in %s", werr, data)
	}
	if spec, _ := protocol.SpecOf(f.Message.Type()); spec.SentBy == protocol.Agent {
		p.t.Fatalf("the office sent what only an agent sends: %s", data)
	}
	if offer, ok := f.Message.(protocol.Offer); ok {
		p.offered = offer.WorkItem.ID
	}
	unasked := f.Message.Type() == protocol.TypeOffer || f.Message.Type() == protocol.TypeAct || f.Message.Type() == protocol.TypeReports
	if unasked && f.ReplyTo == "" {
		return nil
	}
	if p.owed[f.ReplyTo]--; p.owed[f.ReplyTo] < 0 {
		p.t.Fatalf("nothing was owed that %s answers", data)
	}
	return nil
}

// reconnect gives ada a connection. What was owed on the one before will not come.
func (p *program) reconnect() {
	p.t.Helper()
	p.ada, _ = p.connect("ada")
	clear(p.owed)
	p.dropped = false
	for _, f := range p.ada.inbox {
		if offer, ok := f.Message.(protocol.Offer); ok {
			p.offered = offer.WorkItem.ID
		}
	}
	p.ada.inbox = nil
}

// replace connects once more: the older connection is told, and closed.
func (p *program) replace() {
	p.t.Helper()
	p.settle()
	old := p.ada
	p.reconnect()
	told := false
	for {
		p.must(old.ws.SetReadDeadline(time.Now().Add(patience)))
		_, data, err := old.ws.ReadMessage()
		if err != nil {
			if !told || !websocket.IsCloseError(err, protocol.CloseReplaced) {
				p.t.Fatalf("the older connection was told: %v, and ended with %v", told, err)
			}
			return
		}
		f, _ := protocol.Decode(data)
		replaced, ok := f.Message.(protocol.Error)
		told = ok && replaced.Code == protocol.CodeReplaced
	}
}

// badHello comes from elsewhere, and must be refused.
func (p *program) badHello() {
	p.t.Helper()
	stranger := p.dial()
	id := stranger.send(protocol.Hello{Person: "ada", Token: "token-eve", ProtocolVersion: protocol.Version})
	if got, ok := stranger.reply(id).(protocol.Error); !ok || got.Code != protocol.CodeAuthFailed {
		p.t.Fatalf("a stranger was answered with %+v", got)
	}
	if code := stranger.closed(); code != protocol.CloseAuthFailed {
		p.t.Fatalf("a stranger's connection was closed with %d", code)
	}
}

// utterances are all messages, about an item where they are about one. The first is the only one by which ada's connection may be dropped.
var utterances = []func(item string) protocol.Message{
	func(id string) protocol.Message {
		return protocol.WorkMove{WorkItemID: id, Status: protocol.MoveCanceled}
	},
	func(string) protocol.Message {
		return protocol.Hello{Person: "ada", Token: "token-ada", ProtocolVersion: protocol.Version, AgentVersion: "test"}
	},
	func(string) protocol.Message {
		return protocol.Welcome{ProtocolVersion: protocol.Version, HeartbeatMs: 1, Team: protocol.Raw("{}")}
	},
	func(id string) protocol.Message {
		return protocol.Offer{WorkItem: protocol.WorkItem{ID: id, Trigger: protocol.TriggerAgent}}
	},
	func(id string) protocol.Message { return protocol.Accept{WorkItemID: id, Runtime: "command"} },
	func(id string) protocol.Message { return protocol.Decline{WorkItemID: id, Reason: "no"} },
	func(id string) protocol.Message { return protocol.Heartbeat{WorkItemID: id} },
	func(id string) protocol.Message { return protocol.Progress{WorkItemID: id, Text: "on it"} },
	func(id string) protocol.Message { return protocol.Session{WorkItemID: id, SessionID: "s"} },
	func(string) protocol.Message {
		return protocol.Usage{Windows: []protocol.UsageWindow{{Name: "day", Utilization: 0.5}}}
	},
	func(id string) protocol.Message { return protocol.Journal{WorkItemID: id, Text: "a line"} },
	func(id string) protocol.Message {
		return protocol.Handback{WorkItemID: id, Status: protocol.HandbackWaiting, Summary: "later", Links: []protocol.Link{{URL: "https://a.example"}},
			Usage: []protocol.SessionUsage{{Session: "s", Models: map[string]protocol.ModelUsage{"m": {InputTokens: 5}}}}}
	},
	func(id string) protocol.Message { return protocol.Fail{WorkItemID: id, Reason: "no"} },
	func(id string) protocol.Message {
		return protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: id}
	},
	func(id string) protocol.Message {
		return protocol.AskResult{ID: id, To: "bob", Status: protocol.AskPending}
	},
	func(id string) protocol.Message { return protocol.Answer{QuestionID: id, Answer: "80"} },
	func(string) protocol.Message { return protocol.Roster{} },
	func(string) protocol.Message { return protocol.RosterResult{} },
	func(id string) protocol.Message {
		return protocol.WorkMade{WorkItemID: id, Ticket: "ACME-1", PR: &protocol.MadePull{Repo: protocol.Repo{Owner: "acme", Name: "shop"}, Number: 1}}
	},
	func(id string) protocol.Message { return protocol.WorkList{WorkItemID: id} },
	func(string) protocol.Message { return protocol.WorkListResult{} },
	func(id string) protocol.Message { return protocol.WorkStatus{WorkItemIDs: []string{id, id}} },
	func(string) protocol.Message { return protocol.WorkStatusResult{} },
	func(id string) protocol.Message {
		return protocol.WorkMove{WorkItemID: id, Status: protocol.MoveQueued}
	},
	func(string) protocol.Message { return protocol.WorkMoveResult{} },
	func(id string) protocol.Message {
		return protocol.WorkPlace{WorkItemID: id, Position: protocol.PositionAfter, RelativeTo: "uid-item-2"}
	},
	func(id string) protocol.Message {
		return protocol.WorkLink{WorkItemID: id, Ticket: "ACME-1", Request: "yen"}
	},
	func(id string) protocol.Message {
		return protocol.WorkFileFor{WorkItemID: id, Ticket: "ACME-2", Request: "keyboards", Assignee: "grace"}
	},
	func(id string) protocol.Message { return protocol.WorkCheck{WorkItemID: id, Request: "yen"} },
	func(string) protocol.Message { return protocol.WorkLinkResult{} },
	func(id string) protocol.Message { return protocol.WorkQueue{WorkItemID: id, Title: "yen"} },
	func(string) protocol.Message { return protocol.WorkQueueResult{} },
	func(id string) protocol.Message {
		return protocol.WorkAttach{WorkItemID: id, Target: "ACME-1", Confirmed: new(true)}
	},
	func(string) protocol.Message { return protocol.WorkAttachResult{} },
	func(id string) protocol.Message {
		return protocol.ChatMessage{MessageID: "m-" + id, Channel: "C", Thread: "T", Text: "hello", Author: protocol.Requester{ID: "U"}}
	},
	func(string) protocol.Message { return protocol.ChatMessageResult{} },
	func(id string) protocol.Message {
		return protocol.ChatReport{WorkItemID: id, Kind: protocol.TellResult}
	},
	func(string) protocol.Message { return protocol.ChatReportResult{} },
	func(string) protocol.Message { return protocol.Reports{} },
	func(id string) protocol.Message { return protocol.ReportPosted{WorkItemID: id, ID: "r"} },
	func(id string) protocol.Message { return protocol.Act{ID: id} },
	func(id string) protocol.Message { return protocol.ActResult{ID: id, OK: true} },
	func(id string) protocol.Message {
		return protocol.DocLink{WorkItemID: id, Doc: protocol.Doc{ID: "d", Title: "t", URL: "https://wiki.example/d"}}
	},
	func(id string) protocol.Message {
		return protocol.NotesChanged{Change: protocol.NoteAdded, Note: "n", WorkItemID: id}
	},
	func(string) protocol.Message {
		return protocol.DoctorReport{Checks: []protocol.DoctorCheck{{Name: "n", Status: protocol.CheckWarn}}}
	},
	func(string) protocol.Message { return protocol.CurrentWork{} },
	func(string) protocol.Message { return protocol.CurrentWorkResult{} },
	func(string) protocol.Message {
		return protocol.TicketPrs{HeadRef: "acme-1", Title: "t", Body: "Closes ACME-1"}
	},
	func(string) protocol.Message { return protocol.TicketPrsResult{} },
	func(string) protocol.Message { return protocol.PrList{State: protocol.ListAll, Limit: 5} },
	func(string) protocol.Message { return protocol.PrListResult{} },
	func(string) protocol.Message { return protocol.CiLog{URL: "https://ci.example/1", Lines: 5} },
	func(string) protocol.Message { return protocol.CiLogResult{} },
	func(id string) protocol.Message { return protocol.Recall{Query: id + ` or "a line"`, Limit: 5} },
	func(string) protocol.Message { return protocol.RecallResult{} },
	func(string) protocol.Message { return protocol.TicketUsage{Ticket: "ACME-1"} },
	func(string) protocol.Message { return protocol.TicketUsageResult{} },
	func(string) protocol.Message { return protocol.Ack{} },
	func(string) protocol.Message { return protocol.Error{Code: protocol.CodeFailed, Message: "no"} },
	func(string) protocol.Message { return protocol.Ping{} },
	func(string) protocol.Message { return protocol.Pong{} },
}

func TestChanceKnowsEveryMessage(t *testing.T) {
	known := map[protocol.Type]bool{}
	for _, make := range utterances {
		known[make("x").Type()] = true
	}
	for _, s := range protocol.Specs() {
		if !known[s.Type] {
			t.Errorf("%s is never said", s.Type)
		}
	}
}
