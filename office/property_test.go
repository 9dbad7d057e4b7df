package office_test

// This file drives a real office and a real store with random agents: they connect, vanish, take each other's place, send again what
// they had sent, and late what they should have sent before, while the office restarts and users cancel. Whatever happens: no item is
// lost, none is at two people, none is handed back twice, every request gets exactly one answer, and usage adds up. The feeds of the
// sessions are whole too: see property_feed_test.go.

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"pgregory.net/rapid"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// randomWorlds is how many random worlds a run of the test plays, unless -rapid.checks says otherwise, and randomSteps how much happens in
// each, on average.
const (
	randomWorlds = "15"
	randomSteps  = "70"
)

// letter is a message that an agent keeps until it is answered: it is sent again after every reconnect, as it was.
type letter struct {
	id      string
	message protocol.Message
}

// actor is one random agent. It follows the contract, if not kindly.
type actor struct {
	handle string
	ws     *websocket.Conn
	next   int
	// open are the ids of requests on this connection without an answer; seen are those that had one.
	open, seen map[string]bool
	answers    map[string]protocol.Message
	// offers are those not answered; runs are items whose accept was acknowledged and which were not handed back.
	offers []string
	runs   []string
	// outbox has what must arrive, sent what did.
	outbox, sent []letter
}

// world is what the test knows must be true.
type world struct {
	t *rapid.T
	b *bench
	// actors by handle; items by id, in the order of their making.
	actors []*actor
	items  []string
	// canceled are items that a user canceled. totals are the running totals of each item's session; endings counts the hand-backs and
	// fails of each item that an agent sent while it ran the item.
	canceled map[string]bool
	totals   map[string]model.Usage
	endings  map[string]int
	// spools are the records of rounds, by the ids of their offers; said counts what was said.
	spools map[string]*spooled
	said   int
}

func TestRandomAgentsLoseNothingAndDoNothingTwice(t *testing.T) {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": randomWorlds, "rapid.steps": randomSteps} {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{t: rt, canceled: map[string]bool{}, totals: map[string]model.Usage{}, endings: map[string]int{}, spools: map[string]*spooled{}}
		w.b = openWith(t, func(o *office.Options) { o.Access = newGuard() }, func(team *model.Team) {
			team.Policy.BackoffInitial, team.Policy.BackoffMax = time.Millisecond, time.Millisecond
		})
		defer w.close()
		for _, handle := range []string{"ada", "bob"} {
			w.actors = append(w.actors, &actor{handle: handle})
		}
		rt.Repeat(weighted(map[string]func(*rapid.T){
			"1 a user applies an item":            w.apply,
			"1 a user cancels an item":            w.cancel,
			"3 an agent connects":                 w.connect,
			"2 an agent vanishes":                 w.vanish,
			"6 an agent takes an offer":           w.take,
			"1 an agent declines an offer":        w.decline,
			"2 an agent shows life":               w.live,
			"6 an agent hands back":               w.handBack,
			"4 an agent uploads records":          w.upload,
			"2 an agent uploads what was left":    w.uploadLate,
			"2 somebody says something":           w.say,
			"5 an agent repeats what it had sent": w.repeat,
			"2 an agent moves its waiting items":  w.move,
			"1 an agent says what makes no sense": w.nonsense,
			"1 the office restarts":               w.restart,
		}, w.check))
		w.finish()
	})
}

// weighted gives actions as often as the number in front of their names says, and check after each.
func weighted(actions map[string]func(*rapid.T), check func(*rapid.T)) map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){"": check}
	for name, do := range actions {
		times, what, _ := strings.Cut(name, " ")
		n, _ := strconv.Atoi(times)
		for i := range n {
			all[fmt.Sprintf("%s (%d)", what, i+1)] = do
		}
	}
	return all
}

func (w *world) close() {
	for _, a := range w.actors {
		a.drop()
	}
	w.b.stop()
}

func (w *world) some(label string, fits func(*actor) bool) *actor {
	var list []*actor
	for _, a := range w.actors {
		if fits(a) {
			list = append(list, a)
		}
	}
	if len(list) == 0 {
		w.t.Skip("nobody")
	}
	return rapid.SampledFrom(list).Draw(w.t, label)
}

func connected(a *actor) bool { return a.ws != nil }

func (w *world) apply(t *rapid.T) {
	if len(w.items)-len(w.canceled) >= 4 {
		t.Skip("enough to do")
	}
	name := fmt.Sprintf("i%d", len(w.items))
	who := rapid.SampledFrom([]string{"ada", "bob", ""}).Draw(t, "person")
	w.b.apply(name, func(f *model.ItemFacts) {
		f.Spec.Person, f.Spec.Attempts = who, 1000
		f.Spec.Priority = int32(rapid.IntRange(1, 3).Draw(t, "priority"))
		if who == "" {
			f.Spec.Role = "dev"
		}
	})
	w.items = append(w.items, "uid-"+name)
}

func (w *world) cancel(t *rapid.T) {
	if len(w.items) == 0 || rapid.IntRange(0, 3).Draw(t, "mercy") > 0 {
		t.Skip("nothing to cancel")
	}
	id := rapid.SampledFrom(w.items).Draw(t, "item")
	it := w.b.itemByID(id)
	facts := model.ItemFacts{ID: id, Namespace: it.Namespace, Name: it.Name, CreatedAt: it.CreatedAt, Spec: it.Spec}
	facts.Spec.Cancel, facts.Spec.Generation = true, facts.Spec.Generation+1
	if _, err := w.b.office.SyncItem(w.b.t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	if !it.Finished() {
		w.canceled[id] = true
	}
}

func (w *world) connect(*rapid.T) {
	a := w.some("connects", func(*actor) bool { return true })
	a.drop() // or takes its own place: the old connection is gone or about to be
	w.hello(a)
}

func (w *world) hello(a *actor) {
	ws, _, err := websocket.DefaultDialer.Dial(w.b.url+"/v1/teams/"+shop.String()+"/agent", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	a.ws, a.open, a.seen, a.answers, a.offers = ws, map[string]bool{}, map[string]bool{}, map[string]protocol.Message{}, nil
	id := w.send(a, "", protocol.Hello{Person: a.handle, Token: "token-" + a.handle, ProtocolVersion: protocol.Version, AgentVersion: "random"})
	welcome, ok := w.answer(a, id).(protocol.Welcome)
	if !ok {
		w.t.Fatalf("%s was not welcomed: %+v", a.handle, a.answers[id])
	}
	// Runs that resume does not name are over, but for those whose hand-back is under way.
	a.runs = slices.DeleteFunc(a.runs, func(id string) bool { return !slices.Contains(welcome.Resume, id) })
	for _, id := range welcome.Resume {
		handed := slices.ContainsFunc(a.outbox, func(l letter) bool { return endedBy(l.message) == id })
		if !slices.Contains(a.runs, id) && !handed {
			a.runs = append(a.runs, id) // the ack of the accept was lost
		}
	}
	w.deliver(a)
}

// deliver sends what must arrive.
func (w *world) deliver(a *actor) {
	for a.ws != nil && len(a.outbox) > 0 {
		l := a.outbox[0]
		w.send(a, l.id, l.message)
		answer := w.answer(a, l.id)
		if answer == nil {
			return
		}
		if e, ok := answer.(protocol.Error); ok && (endedBy(l.message) == "" || !w.canceled[endedBy(l.message)]) {
			w.t.Fatalf("%s %s was refused: %+v", a.handle, l.message.Type(), e)
		}
		a.outbox, a.sent = a.outbox[1:], append(a.sent, l)
	}
}

func endedBy(m protocol.Message) string {
	switch m := m.(type) {
	case protocol.Handback:
		return m.WorkItemID
	case protocol.Fail:
		return m.WorkItemID
	}
	return ""
}

func (w *world) vanish(*rapid.T) {
	a := w.some("vanishes", connected)
	a.drop()
}

func (a *actor) drop() {
	if a.ws != nil {
		_ = a.ws.Close()
		a.ws = nil
	}
}

func (w *world) take(*rapid.T) {
	a := w.some("takes", func(a *actor) bool { return a.ws != nil && len(a.offers) > 0 })
	id := a.offers[0]
	a.offers = a.offers[1:]
	accept := protocol.Accept{WorkItemID: id, Runtime: "command"}
	for range rapid.IntRange(1, 2).Draw(w.t, "times") { // accepting twice is harmless
		if rapid.IntRange(0, 5).Draw(w.t, "vanish") == 0 {
			w.send(a, "", accept)
			a.drop() // the ack is lost
			return
		}
		switch got := w.answer(a, w.send(a, "", accept)).(type) {
		case protocol.Ack:
			if !slices.Contains(a.runs, id) {
				a.runs = append(a.runs, id)
			}
		case protocol.Error:
			if !w.canceled[id] {
				w.t.Fatalf("%s may not accept %s, which was offered: %+v", a.handle, id, got)
			}
		}
	}
}

func (w *world) decline(*rapid.T) {
	a := w.some("declines", func(a *actor) bool { return a.ws != nil && len(a.offers) > 0 })
	id := a.offers[0]
	a.offers = a.offers[1:]
	w.answer(a, w.send(a, "", protocol.Decline{WorkItemID: id, Reason: "not now"}))
}

func (w *world) live(*rapid.T) {
	a := w.some("lives", func(a *actor) bool { return a.ws != nil && len(a.runs) > 0 })
	id := rapid.SampledFrom(a.runs).Draw(w.t, "item")
	a.next++
	a.outbox = append(a.outbox, letter{fmt.Sprintf("%s-%d", a.handle, a.next), protocol.Journal{WorkItemID: id, Text: "a thought"}})
	w.answer(a, w.send(a, "", protocol.Heartbeat{WorkItemID: id}))
	w.answer(a, w.send(a, "", protocol.Progress{WorkItemID: id, Text: "on it"}))
	if w.canceled[id] {
		a.outbox = a.outbox[:len(a.outbox)-1] // it would be refused
	}
	w.deliver(a)
}

func (w *world) handBack(t *rapid.T) {
	a := w.some("hands back", func(a *actor) bool { return len(a.runs) > 0 })
	id := a.runs[0]
	a.runs = a.runs[1:]
	w.spool(a, id).over = true
	if rapid.Bool().Draw(t, "records first") {
		w.bring(w.spool(a, id))
	}
	more := model.Usage{InputTokens: int64(rapid.IntRange(0, 50).Draw(t, "input")), OutputTokens: int64(rapid.IntRange(0, 50).Draw(t, "output"))}
	total := w.totals[id].Add(more)
	w.totals[id] = total
	usage := []protocol.SessionUsage{{Session: "s-" + id, Models: map[string]protocol.ModelUsage{
		"m": {InputTokens: total.InputTokens, OutputTokens: total.OutputTokens, CostUSD: new(0.0)},
	}}}
	var m protocol.Message = protocol.Fail{WorkItemID: id, Reason: "no luck", Usage: usage}
	status := rapid.SampledFrom([]protocol.HandbackStatus{"done", "waiting", "interrupted", "interrupted", "waiting", "silent", "", ""}).Draw(t, "status")
	if status != "" {
		m = protocol.Handback{WorkItemID: id, Status: status, Summary: "so far", Links: []protocol.Link{}, ToReview: []string{"it"}, Usage: usage}
	}
	a.next++
	a.outbox = append(a.outbox, letter{fmt.Sprintf("%s-%d", a.handle, a.next), m})
	w.endings[id]++
	if a.ws != nil && rapid.IntRange(0, 3).Draw(t, "vanish") == 0 {
		l := a.outbox[0]
		w.send(a, l.id, l.message)
		a.drop() // nobody knows whether it arrived
		return
	}
	w.deliver(a)
}

// repeat sends again, late and out of order, what was answered before: nothing may come of it.
func (w *world) repeat(t *rapid.T) {
	a := w.some("repeats", func(a *actor) bool { return a.ws != nil && len(a.sent) > 0 })
	l := rapid.SampledFrom(a.sent).Draw(t, "letter")
	delete(a.seen, l.id)
	w.send(a, l.id, l.message)
	w.answer(a, l.id)
}

func (w *world) move(*rapid.T) {
	a := w.some("moves", connected)
	for _, id := range w.items {
		it := w.b.itemByID(id)
		if it.State == protocol.StateWaiting && it.Assignee == a.handle {
			w.answer(a, w.send(a, "", protocol.WorkMove{WorkItemID: id, Status: protocol.MoveQueued}))
		}
	}
}

func (w *world) nonsense(t *rapid.T) {
	a := w.some("babbles", connected)
	id := "nothing"
	if len(w.items) > 0 {
		id = rapid.SampledFrom(w.items).Draw(t, "item")
	}
	if slices.Contains(a.runs, id) || slices.Contains(a.offers, id) || slices.ContainsFunc(a.outbox, func(l letter) bool { return endedBy(l.message) == id }) {
		t.Skip("it would make sense")
	}
	it := protocol.WorkItemState("")
	if id != "nothing" {
		it = w.b.itemByID(id).State
	}
	m := rapid.SampledFrom([]protocol.Message{
		protocol.Heartbeat{WorkItemID: id}, protocol.Journal{WorkItemID: id, Text: "x"}, protocol.Progress{WorkItemID: id, Text: "x"},
		protocol.Session{WorkItemID: id, SessionID: "stolen"}, protocol.Answer{QuestionID: id, Answer: "x"}, protocol.WorkQueue{WorkItemID: id, Title: "x"},
	}).Draw(t, "message")
	if _, refused := w.answer(a, w.send(a, "", m)).(protocol.Error); !refused && a.ws != nil {
		t.Fatalf("%s may say %s of %s, which is %s and which it does not run", a.handle, m.Type(), id, cmp.Or(it, "nothing"))
	}
}

func (w *world) restart(*rapid.T) {
	for _, a := range w.actors {
		a.drop()
	}
	w.b.restart()
}

// send sends a request. An empty id is a new one.
func (w *world) send(a *actor, id string, m protocol.Message) string {
	if a.ws == nil {
		return ""
	}
	if id == "" {
		a.next++
		id = fmt.Sprintf("%s-%d", a.handle, a.next)
	}
	data, err := protocol.Encode(protocol.Frame{ID: id, Message: m})
	if err != nil {
		w.t.Fatal(err)
	}
	a.open[id] = true
	if err := a.ws.WriteMessage(websocket.TextMessage, data); err != nil {
		a.drop()
	}
	return id
}

// answer waits for the answer to a request; nil where the connection ended first.
func (w *world) answer(a *actor, id string) protocol.Message {
	for a.ws != nil && a.open[id] {
		w.read(a)
	}
	return a.answers[id]
}

// read takes one frame.
func (w *world) read(a *actor) {
	_ = a.ws.SetReadDeadline(time.Now().Add(patience))
	_, data, err := a.ws.ReadMessage()
	if err != nil {
		if !websocket.IsCloseError(err, websocket.CloseServiceRestart) {
			w.t.Fatalf("the connection of %s broke: %v", a.handle, err)
		}
		a.drop()
		return
	}
	f, werr := protocol.Decode(data)
	if werr != nil {
		w.t.Fatalf("the office sent what it must not: %v in %s", werr, data)
	}
	if offer, ok := f.Message.(protocol.Offer); ok {
		id := offer.WorkItem.ID
		if slices.Contains(a.runs, id) {
			w.t.Fatalf("%s is offered %s, which it runs", a.handle, id)
		}
		if !slices.Contains(a.offers, id) {
			a.offers = append(a.offers, id)
		}
		return
	}
	switch {
	case f.ReplyTo == "":
	case a.seen[f.ReplyTo]:
		w.t.Fatalf("request %s of %s was answered twice", f.ReplyTo, a.handle)
	case !a.open[f.ReplyTo]:
		w.t.Fatalf("%s got an answer to %s, which it did not ask", a.handle, f.ReplyTo)
	default:
		delete(a.open, f.ReplyTo)
		a.seen[f.ReplyTo] = true
		a.answers[f.ReplyTo] = f.Message
	}
}

// check asks every connected agent for a sign of life, by which all before it is answered, and looks at the store.
func (w *world) check(t *rapid.T) {
	for _, a := range w.actors {
		if a.ws == nil {
			continue
		}
		w.answer(a, w.send(a, "", protocol.Ping{}))
		if a.ws != nil && len(a.open) > 0 {
			t.Fatalf("%s has no answer to %v", a.handle, slices.Collect(maps.Keys(a.open)))
		}
	}
	holder := map[string]string{}
	for _, id := range w.items {
		it := w.b.itemByID(id)
		if it.Round == nil {
			if it.State == protocol.StateActive {
				t.Fatalf("%s is active without a round", id)
			}
			continue
		}
		if other := holder[it.Round.Person]; other != "" {
			t.Fatalf("%s has %s and %s at once", it.Round.Person, other, id)
		}
		holder[it.Round.Person] = id
	}
	for _, a := range w.actors {
		for _, id := range a.runs {
			it := w.b.itemByID(id)
			if !w.canceled[id] && (it.State != protocol.StateActive || it.Round.Person != a.handle) {
				t.Fatalf("%s runs %s, but the office has it %s at %+v", a.handle, id, it.State, it.Round)
			}
		}
	}
}

// finish has everybody work kindly until nothing is left to do, and counts.
func (w *world) finish() {
	deadline := time.Now().Add(patience)
	for left := true; left; {
		if time.Now().After(deadline) {
			w.t.Fatalf("work is left over: %s", w.unfinished())
		}
		for _, a := range w.actors {
			if a.ws == nil {
				w.hello(a)
			}
			w.settle(a)
		}
		left = w.unfinished() != ""
	}
	w.check(w.t)
	w.count()
	w.feeds()
}

// settle does all that an agent has to do.
func (w *world) settle(a *actor) {
	w.deliver(a)
	for len(a.runs) > 0 && a.ws != nil {
		id := a.runs[0]
		a.runs = a.runs[1:]
		a.next++
		a.outbox = append(a.outbox, letter{fmt.Sprintf("%s-%d", a.handle, a.next), protocol.Handback{
			WorkItemID: id, Status: protocol.HandbackDone, Summary: "done", Links: []protocol.Link{}, ToReview: []string{"it"},
		}})
		w.endings[id]++
		w.deliver(a)
	}
	for len(a.offers) > 0 && a.ws != nil {
		id := a.offers[0]
		a.offers = a.offers[1:]
		if _, ok := w.answer(a, w.send(a, "", protocol.Accept{WorkItemID: id, Runtime: "command"})).(protocol.Ack); ok {
			a.runs = append(a.runs, id)
		}
	}
	for _, id := range w.items {
		if it := w.b.itemByID(id); it.State == protocol.StateWaiting && it.Assignee == a.handle {
			w.answer(a, w.send(a, "", protocol.WorkMove{WorkItemID: id, Status: protocol.MoveQueued}))
		}
	}
	w.answer(a, w.send(a, "", protocol.Ping{}))
}

func (w *world) unfinished() string {
	for _, id := range w.items {
		if it := w.b.itemByID(id); !it.Finished() {
			return fmt.Sprintf("%s is %s of %q, round %+v, not before %s, end %+v", id, it.State, it.Assignee, it.Round, it.NotBefore, it.End)
		}
	}
	return ""
}

// count compares what the store adds up with what happened.
func (w *world) count() {
	var want model.Usage
	for id, total := range w.totals {
		want = want.Add(total)
		if got := w.b.itemByID(id).Usage; got.Tokens() != total.Tokens() {
			w.t.Fatalf("%s used %d tokens, but %d are counted", id, total.Tokens(), got.Tokens())
		}
	}
	err := w.b.store.View(w.b.t.Context(), func(r storeReader) error {
		got, err := r.TeamUsage(shop)
		if err != nil {
			return err
		}
		if got.InputTokens != want.InputTokens || got.OutputTokens != want.OutputTokens {
			w.t.Fatalf("the team used %+v, but %+v is counted", want, got)
		}
		for _, id := range w.items {
			rounds, err := r.Rounds(id)
			if err != nil {
				return err
			}
			handed := 0
			for _, round := range rounds {
				switch round.Outcome {
				case model.OutcomeDone, model.OutcomeWaiting, model.OutcomeInterrupted, model.OutcomeSilent, model.OutcomeFailed:
					handed++
				}
			}
			if handed > w.endings[id] || (!w.canceled[id] && handed != w.endings[id]) {
				w.t.Fatalf("%s was handed back %d times, but %d rounds ended so", id, w.endings[id], handed)
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
