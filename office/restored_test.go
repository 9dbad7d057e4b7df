package office_test

// This file has what becomes of items whose store was lost: their objects say enough to go on.

import (
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// afterLoss applies the object of an item to an office that never heard of it. The object's status is of another store.
func (b *bench) afterLoss(it model.Item, recorded model.Recorded) model.ItemView {
	b.t.Helper()
	recorded.StoreID = "another store"
	facts := model.ItemFacts{
		ID: "object-of-" + it.Name, BornID: it.ID, Origin: it.Origin, Namespace: it.Namespace, Name: it.Name, CreatedAt: it.CreatedAt, Spec: it.Spec,
		Recorded: recorded,
	}
	facts.Spec.Generation = 1
	view, err := b.office.SyncItem(b.t.Context(), facts)
	b.must(err)
	return view
}

func TestUsageOfALostStoreGoesOnFromTheStatus(t *testing.T) {
	b := open(t)
	used := model.Usage{InputTokens: 70, OutputTokens: 30, CostMicroUSD: 250_000, CostKnown: true}
	b.apply("fix", func(f *model.ItemFacts) {
		f.Recorded = model.Recorded{
			StoreID: "another store", State: protocol.StateActive, Assignee: "ada", Rounds: 1, SessionID: "s1", Usage: used,
			Models: []model.ModelUsage{{Model: "m", Usage: used}},
		}
	})
	a, _ := b.connect("ada")
	if offer := a.take("fix"); offer.SessionID != "s1" || offer.Interrupted == nil {
		t.Errorf("it goes on with %q, interrupted %v", offer.SessionID, offer.Interrupted)
	}
	m := done("fix")
	m.Usage = []protocol.SessionUsage{{Session: "s1", Models: map[string]protocol.ModelUsage{"m": {InputTokens: 100, OutputTokens: 30, CostUSD: new(0.3)}}}}
	a.ok(m)
	if it := b.item("fix"); it.Usage.Tokens() != 130 || it.Usage.CostMicroUSD != 300_000 {
		t.Errorf("the usage is %+v, want the session's last totals once", it.Usage)
	}
	var team model.Usage
	b.must(b.store.View(t.Context(), func(r storeReader) (err error) {
		team, err = r.TeamUsage(shop)
		return err
	}))
	if team.Tokens() != 130 {
		t.Errorf("the team's ledger has %d tokens", team.Tokens())
	}
}

func TestAQuestionOutlivesTheStore(t *testing.T) {
	old := open(t)
	ada, _ := old.connect("ada")
	question := protocol.Ask{To: "bob", Question: "Which port?"}
	pending := protocol.Ask{To: "bob", Question: "Which host?"}
	answeredID := answered[protocol.AskResult](ada, question).ID
	openID := answered[protocol.AskResult](ada, pending).ID
	bob, _ := old.connect("bob")
	bob.takeNext()
	first, second := old.itemByID(answeredID), old.itemByID(openID)

	b := open(t)
	b.afterLoss(first, model.Recorded{State: protocol.StateDone, Summary: "8443", Assignee: "bob", Rounds: 1, FinishedAt: time.Now()})
	b.afterLoss(second, model.Recorded{State: protocol.StateQueued, Assignee: "bob"})
	ada, _ = b.connect("ada")
	if got := answered[protocol.AskResult](ada, question); got.Status != protocol.AskAnswered || got.Answer != "8443" {
		t.Errorf("the answered question is %+v", got)
	}
	if got := answered[protocol.AskResult](ada, pending); got.Status != protocol.AskPending || got.ID != openID {
		t.Errorf("the open question is %+v", got)
	}
	bob, _ = b.connect("bob")
	if offer := bob.takeNext(); offer.WorkItem.ID != openID {
		t.Errorf("offered %s, want the open question", offer.WorkItem.ID)
	}
	bob.ok(protocol.Answer{QuestionID: openID, Answer: "shop"})
}

func TestAChatSessionOutlivesTheStore(t *testing.T) {
	old := open(t)
	_, offer := old.converse("Can you help?")
	it := old.itemByID(offer.WorkItem.ID)

	b := open(t)
	b.afterLoss(it, model.Recorded{State: protocol.StateActive, Assignee: "ada", Rounds: 1, SessionID: "s1"})
	a, _ := b.connect("ada")
	again := a.takeNext()
	if o := again.WorkItem.Origin; again.WorkItem.ID != it.ID || o == nil || o.Thread != "m1" {
		t.Fatalf("offered %+v", again.WorkItem)
	}
	answered[protocol.ChatMessageResult](a, said("m2", "m1", "Are you there?")) // the thread is known
	a.ok(protocol.WorkCheck{WorkItemID: it.ID, Request: "Help"})
	a.ok(handedBack(it.ID, protocol.HandbackDone))
	if got := answered[protocol.ChatReportResult](a, protocol.ChatReport{WorkItemID: it.ID, Kind: protocol.TellResult}); !got.Post || got.Requester != "U1" {
		t.Errorf("leave to tell the requester: %+v", got)
	}
	if offer := a.takeNext(); offer.WorkItem.ID != it.ID || len(offer.Context.Feedback) != 1 {
		t.Errorf("the reply is no feedback of the session: %+v", offer.WorkItem)
	}
}
