package dispatch

// This file tests what happens to an item makes of its session.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// talk walks an item and its session through what happens, one transaction each.
type talk struct {
	t        *testing.T
	it       model.Item
	session  *model.Session
	sessions []string
	feedback int64
	once     bool
	now      time.Time
	records  []feed.Record
	bodies   map[string]string
	authors  map[string]string
}

func newTalk(t *testing.T) *talk {
	now := time.Date(2027, 2, 3, 4, 5, 6, 0, time.UTC)
	k := &talk{t: t, now: now, bodies: map[string]string{}, authors: map[string]string{}, it: model.Item{
		ID: "uid-1", Namespace: "lab", Name: "mend", CreatedAt: now, State: protocol.StateQueued,
		Spec: model.ItemSpec{Team: "core", Person: "ada", Kind: "task", Title: "Mend the gate", Body: "It squeaks."}, Assignee: "ada",
	}}
	k.happens(Happened{})
	return k
}

func (k *talk) happens(h Happened) {
	k.t.Helper()
	k.now = k.now.Add(time.Second)
	h.Item, h.Life, h.Before, h.Once, h.NamespaceUID = k.it, "life0001", k.session, k.once, "ns-uid"
	c := Converse(h, k.now)
	for _, s := range c.Sessions {
		copied := roundTrip(k.t, s)
		k.session = &copied
		if len(k.sessions) == 0 || k.sessions[len(k.sessions)-1] != s.ID {
			k.sessions = append(k.sessions, s.ID)
		}
	}
	for _, m := range c.Messages {
		k.bodies[m.ID], k.authors[m.ID] = m.Body, m.Author
	}
	keys := map[string]bool{}
	for _, e := range c.Emitted {
		if keys[e.Key] {
			k.t.Fatalf("two records have the key %s", e.Key)
		}
		keys[e.Key] = true
		k.records = append(k.records, e.Record)
	}
}

// roundTrip is what a store does to a session.
func roundTrip(t *testing.T, s model.Session) (out model.Session) {
	t.Helper()
	body, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (k *talk) offered() {
	k.it = Offer(k.it, "ada", k.now)
	k.it.Round.FeedbackUpTo = k.feedback
	k.happens(Happened{})
}

func (k *talk) accepted() {
	out, werr := Accept(k.it, "ada", protocol.Accept{WorkItemID: k.it.ID, Runtime: "claude"}, k.now)
	if werr != nil {
		k.t.Fatal(werr)
	}
	k.it = out.Item
	k.happens(Happened{})
}

func (k *talk) runs() { k.offered(); k.accepted() }

func (k *talk) ends(out Outcome, werr *protocol.WireError) {
	k.t.Helper()
	if werr != nil {
		k.t.Fatal(werr)
	}
	k.it = out.Item
	k.happens(Happened{Ended: []model.Round{*out.Ended}})
}

func (k *talk) handsBack(status protocol.HandbackStatus, summary string) {
	k.t.Helper()
	k.ends(HandBack(k.it, "ada", protocol.Handback{WorkItemID: k.it.ID, Status: status, Summary: summary, ToReview: []string{"x"}}, false, k.now))
}

func (k *talk) hears(body string, closes bool) {
	k.feedback++
	if out := Hear(k.it, true); out.Changed {
		k.it = out.Item
	}
	k.happens(Happened{Heard: []model.Feedback{{N: k.feedback, ClosesSession: closes, Feedback: protocol.Feedback{Actor: "sam", Body: body}}}})
}

// feed shows the records as lines: type, turn, message.
func (k *talk) feed() string {
	var lines []string
	for _, r := range k.records {
		line := r.Type
		for _, p := range []*string{r.TurnID, r.MessageID} {
			if p != nil {
				_, short, _ := strings.Cut(*p, "uid-1-")
				line += " " + short
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// state shows the session in a line.
func (k *talk) state() string {
	s := k.session
	show := func(t *model.Turn) string {
		if t == nil {
			return "none"
		}
		text := fmt.Sprintf("%d %s", t.Index, t.Status)
		if t.Reason != "" {
			text += "/" + t.Reason
		}
		for _, m := range t.Messages {
			_, short, _ := strings.Cut(m, "uid-1-")
			text += " " + short
		}
		return text
	}
	text := show(s.Turn) + "; then " + show(s.Pending)
	if !s.ClosedAt.IsZero() {
		text += "; closed"
	}
	return text
}

func TestASessionFollowsItsItem(t *testing.T) {
	for name, test := range map[string]struct {
		do    func(k *talk)
		feed  string
		state string
	}{
		"a new item has a turn that waits, with what it asks": {
			do: func(*talk) {}, feed: "message_received t0 m0", state: "none; then 0 pending m0",
		},
		"an offer takes nothing yet": {
			do: func(k *talk) { k.offered() }, feed: "message_received t0 m0", state: "none; then 0 pending m0",
		},
		"a round that is taken has the turn, which runs when the agent says so": {
			do: func(k *talk) { k.runs() }, feed: "message_received t0 m0", state: "0 pending m0; then none",
		},
		"a round that is done completes its turn, and the session stays open for a review": {
			do:   func(k *talk) { k.runs(); k.handsBack(protocol.HandbackDone, "mended") },
			feed: "message_received t0 m0", state: "0 completed m0; then none",
		},
		"where the kind needs no review, done closes the session": {
			do:   func(k *talk) { k.once = true; k.runs(); k.handsBack(protocol.HandbackDone, "mended") },
			feed: "message_received t0 m0\nsession_closed", state: "0 completed m0; then none; closed",
		},
		"feedback while it is queued shares its turn": {
			do:   func(k *talk) { k.hears("and oil it", false) },
			feed: "message_received t0 m0\nmessage_received t0 f1", state: "none; then 0 pending m0 f1",
		},
		"feedback while it runs waits for the next turn": {
			do:   func(k *talk) { k.runs(); k.hears("and oil it", false) },
			feed: "message_received t0 m0\nmessage_received t1 f1", state: "0 pending m0; then 1 pending f1",
		},
		"feedback after the offer was made is not in its turn": {
			do:    func(k *talk) { k.offered(); k.hears("late", false); k.accepted() },
			feed:  "message_received t0 m0\nmessage_received t0 f1\nmessage_requeued t1 f1",
			state: "0 pending m0; then 1 pending f1",
		},
		"an interrupted round gives its messages to a new turn": {
			do:    func(k *talk) { k.runs(); k.hears("more", false); k.handsBack(protocol.HandbackInterrupted, "drained") },
			feed:  "message_received t0 m0\nmessage_received t1 f1\nmessage_requeued t1 m0",
			state: "0 cancelled/interrupted m0; then 1 pending m0 f1",
		},
		"a failed round is tried again in a new turn": {
			do: func(k *talk) {
				k.runs()
				k.ends(Fail(k.it, "ada", "no gate", DefaultPolicy(), k.now))
			},
			feed: "message_received t0 m0\nmessage_requeued t1 m0", state: "0 failed/error m0; then 1 pending m0",
		},
		"feedback that no round answered is in the turn of the next one, whose offer has it again": {
			do: func(k *talk) {
				k.it.Spec.Attempts = 1
				k.hears("and oil it", false)
				k.runs()
				k.ends(Fail(k.it, "ada", "no oil", DefaultPolicy(), k.now))
				requeue(&k.it)
				k.happens(Happened{})
				k.runs()
			},
			feed:  "message_received t0 m0\nmessage_received t0 f1\nmessage_received t1 m1\nmessage_requeued t1 f1",
			state: "1 pending f1 m1; then none",
		},
		"feedback that was answered is not": {
			do: func(k *talk) {
				k.hears("and oil it", false)
				k.runs()
				k.handsBack(protocol.HandbackWaiting, "oiled")
				k.hears("and paint it", false)
				k.runs()
			},
			feed:  "message_received t0 m0\nmessage_received t0 f1\nmessage_received t1 f2",
			state: "1 pending f2; then none",
		},
		"the last failure leaves nothing that waits": {
			do: func(k *talk) {
				k.it.Spec.Attempts = 1
				k.runs()
				k.ends(Fail(k.it, "ada", "no gate", DefaultPolicy(), k.now))
			},
			feed: "message_received t0 m0", state: "0 failed/error m0; then none",
		},
		"a blocked round failed": {
			do:   func(k *talk) { k.runs(); k.handsBack(protocol.HandbackBlocked, "no oil") },
			feed: "message_received t0 m0", state: "0 failed/blocked m0; then none",
		},
		"an item that waits goes on with what is said, in a turn of its own": {
			do: func(k *talk) {
				k.runs()
				k.handsBack(protocol.HandbackWaiting, "asked")
				k.hears("yes", false)
				k.runs()
			},
			feed: "message_received t0 m0\nmessage_received t1 f1", state: "1 pending f1; then none",
		},
		"somebody who stops the round gets a stopped turn, and the next message goes on": {
			do: func(k *talk) {
				k.runs()
				k.ends(Stop(k.it, "sam", k.now), nil)
				k.hears("now", false)
			},
			feed: "message_received t0 m0\nmessage_received t1 f1", state: "0 stopped m0; then 1 pending f1",
		},
		"a canceled item closes its session, and nobody answers what waits": {
			do:   func(k *talk) { k.ends0(Cancel(k.it, model.Why{Message: "canceled"}, k.now)) },
			feed: "message_received t0 m0\nsession_closed", state: "0 stopped m0; then none; closed",
		},
		"a message that closes the session closes it after its turn": {
			do: func(k *talk) {
				k.runs()
				k.hears("last", true)
				k.handsBack(protocol.HandbackWaiting, "")
				k.it.State = protocol.StateQueued
				k.happens(Happened{})
				k.runs()
				k.handsBack(protocol.HandbackWaiting, "")
			},
			feed: "message_received t0 m0\nmessage_received t1 f1\nsession_closed", state: "1 completed f1; then none; closed",
		},
		"an item that runs again after its session was closed gets another session": {
			do: func(k *talk) {
				k.once = true
				k.runs()
				k.handsBack(protocol.HandbackDone, "mended")
				requeue(&k.it)
				k.happens(Happened{})
			},
			feed: "message_received t0 m0\nsession_closed\nmessage_received t0 m0", state: "none; then 0 pending m0",
		},
		"an item that starts over in an open session asks again": {
			do: func(k *talk) {
				k.runs()
				k.handsBack(protocol.HandbackDone, "mended")
				requeue(&k.it)
				k.happens(Happened{})
			},
			feed: "message_received t0 m0\nmessage_received t1 m1", state: "0 completed m0; then 1 pending m1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			test.do(k)
			if got := k.feed(); got != test.feed {
				t.Errorf("the office wrote\n%s\nnot\n%s", got, test.feed)
			}
			if got := k.state(); got != test.state {
				t.Errorf("the session is %q, not %q", got, test.state)
			}
		})
	}
}

// ends0 is ends for an item without a round.
func (k *talk) ends0(out Outcome) {
	k.it = out.Item
	k.happens(Happened{})
}

func TestTheTurnsEndIsWhatTheAgentToldInTheFeed(t *testing.T) {
	k := newTalk(t)
	k.runs()
	at := k.now.Add(time.Minute)
	k.session.Turn.Told = &model.TurnEnd{Status: model.TurnFailed, Reason: "tool_call_failed", Detail: "the hammer broke", At: at}
	k.ends(Fail(k.it, "ada", "no gate", DefaultPolicy(), k.now))
	turn := k.session.Turn
	if turn.Reason != "tool_call_failed" || turn.Detail != "the hammer broke" || !turn.EndedAt.Equal(at) {
		t.Errorf("the turn ended as %+v", turn)
	}
}

func TestAnAnswerIsTheMessageOfTheTurnThatGoesOn(t *testing.T) {
	k := newTalk(t)
	k.runs()
	k.handsBack(protocol.HandbackWaiting, "asked bo")
	k.it = Answered(k.it).Item
	k.happens(Happened{Noted: &model.JournalEntry{ItemID: k.it.ID, Author: "bo", Text: "use grease"}})
	id := k.session.Pending.Messages[0]
	if k.bodies[id] != "use grease" || k.authors[id] != "bo" {
		t.Errorf("the message is %q by %q", k.bodies[id], k.authors[id])
	}
}

func TestAnotherStoreBeginsASessionWithItsParent(t *testing.T) {
	it := model.Item{ID: "uid-9", State: protocol.StateQueued, Spec: model.ItemSpec{Title: "x", Person: "ada"}}
	c := Converse(Happened{Item: it, Life: "new00000", OtherLife: "old00000"}, time.Now())
	if got, want := c.Sessions[0].ParentID, model.SessionID("old00000", "uid-9", 1); got != want {
		t.Errorf("the parent is %q, not %q", got, want)
	}
	it.State = protocol.StateDone
	if c := Converse(Happened{Item: it, Life: "new00000", OtherLife: "old00000"}, time.Now()); len(c.Sessions) != 0 {
		t.Errorf("finished work got a session: %+v", c.Sessions)
	}
}

func TestRepeatsOfATransactionChangeNothing(t *testing.T) {
	k := newTalk(t)
	k.runs()
	before := k.session
	n := len(k.records)
	c := Converse(Happened{Item: k.it, Life: "life0001", Before: before, NamespaceUID: "ns-uid"}, k.now.Add(time.Hour))
	if len(c.Sessions) != 0 || len(c.Emitted) != 0 || len(k.records) != n {
		t.Errorf("a transaction that changes nothing stores %+v", c)
	}
}

func TestTheTurnThatRanIsRememberedWhenOneThatWaitedIsShown(t *testing.T) {
	k := newTalk(t)
	k.runs()
	k.hears("more", false)
	k.ends(Cancel(k.it, model.Why{Message: "canceled"}, k.now), nil)
	if got, want := k.state(), "1 stopped f1; then none; closed"; got != want {
		t.Errorf("the session is %q, not %q", got, want)
	}
	ran, last := k.session.OfRound(1), k.session.LastRun()
	if ran == nil || ran.Index != 0 || ran.Status != model.TurnStopped || last == nil || last.ID != ran.ID {
		t.Errorf("of the turn that ran, %+v is remembered; the last that ran is %+v", ran, last)
	}
}

func TestNoMessageIsTooLargeForARecord(t *testing.T) {
	for name, text := range map[string]string{"brackets": "<", "control characters": "\x01", "separators of lines": "\u2028", "bytes that are no text": "\xff"} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.hears(strings.Repeat(text, 4<<20/len(text)), false)
			last := k.records[len(k.records)-1]
			if len(last.Payload) > feed.MaxRecord || len(last.Payload) < 1<<20 {
				t.Errorf("the record has %d bytes", len(last.Payload))
			}
			if err := feed.CheckPayload(last.Payload); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatTheFeedSaysOfATurnsEndStandsThoughTheOfficeEndsTheRound(t *testing.T) {
	ends := map[string]func(k *talk) Outcome{
		"canceled":           func(k *talk) Outcome { return Cancel(k.it, model.Why{Message: "canceled"}, k.now) },
		"stopped":            func(k *talk) Outcome { return Stop(k.it, "sam", k.now) },
		"lost":               func(k *talk) Outcome { return lost(k.it, DefaultPolicy(), "gone", k.now) },
		"timed out":          func(k *talk) Outcome { return timeout(k.it, DefaultPolicy(), k.now) },
		"its person deleted": func(k *talk) Outcome { return PersonGone(k.it, k.now) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			k.runs()
			k.session.Turn.Told = &model.TurnEnd{Status: model.TurnCompleted, At: k.now}
			k.ends(end(k), nil)
			if turn := k.session.Turn; turn.Status != model.TurnCompleted || turn.Reason != "" || !turn.StoppedAt.IsZero() {
				t.Errorf("the turn ended as %+v", turn)
			}
		})
	}
}

func TestASessionOfAnItemThatIsGoneTakesNoNamespaceOver(t *testing.T) {
	k := newTalk(t)
	k.session.NamespaceUID = ""
	k.it = Cancel(k.it, model.Why{Message: "deleted"}, k.now).Item
	k.it.Gone = true
	k.happens(Happened{})
	if uid := k.session.NamespaceUID; uid != "" {
		t.Errorf("the session is of the namespace %q now", uid)
	}
}
