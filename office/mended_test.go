package office_test

// These tests hold the office to what once went wrong at the edges: backups, reconnects, people who are deleted, queues whose first items
// cannot run, objects of items that began in the office, and effects that left in another order than their transactions.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/hub"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// recorded is a status of an item that is newer than what the store has of it.
func (b *bench) recorded(name string, rec model.Recorded) func(*model.ItemFacts) {
	rec.StoreID, rec.Revision = b.office.StoreID(), b.item(name).Revision+100
	return func(f *model.ItemFacts) { f.Recorded = rec }
}

// rounds reads the rounds of an item.
func (b *bench) rounds(name string) (rounds []model.Round) {
	b.t.Helper()
	b.must(b.store.View(b.t.Context(), func(r storeReader) (err error) {
		rounds, err = r.Rounds("uid-" + name)
		return err
	}))
	return rounds
}

func TestAnItemRestoredOverARoundThatABackupHasOpenLocksNobodyOut(t *testing.T) {
	later := model.Recorded{State: protocol.StateQueued, Assignee: "ada", Rounds: 3, SessionID: "s-3"}
	t.Run("while its person is away", func(t *testing.T) {
		b := open(t)
		ada, _ := b.connect("ada")
		b.apply("fix")
		ada.take("fix")
		_ = ada.ws.Close()
		b.awaitState("ada", model.PersonOffline)
		b.apply("fix", b.recorded("fix", later))
		again, welcome := b.connect("ada")
		if len(welcome.Resume) != 0 {
			t.Errorf("ada is to go on with %v", welcome.Resume)
		}
		if offer := again.take("fix"); offer.SessionID != "s-3" {
			t.Errorf("it goes on in session %q", offer.SessionID)
		}
	})
	t.Run("while its person runs it", func(t *testing.T) {
		b := open(t)
		ada, _ := b.connect("ada")
		b.apply("fix")
		ada.take("fix")
		b.apply("fix", b.recorded("fix", later))
		if code := ada.closed(); code != hub.CodeDropped {
			t.Errorf("the connection ended with %d", code)
		}
		again, _ := b.connect("ada")
		again.take("fix")
		rounds := b.rounds("fix")
		if len(rounds) != 2 || rounds[0].Outcome != model.OutcomeLost || rounds[0].EndedAt.IsZero() || rounds[1].Number != 4 {
			t.Errorf("the rounds are %+v", rounds)
		}
	})
	t.Run("that its status knows as done", func(t *testing.T) {
		b := open(t)
		ada, _ := b.connect("ada")
		b.apply("fix")
		ada.take("fix")
		b.apply("fix", b.recorded("fix", model.Recorded{State: protocol.StateDone, Assignee: "ada", Rounds: 1, FinishedAt: time.Now()}))
		ada.closed()
		again, welcome := b.connect("ada")
		again.quiet()
		if it := b.item("fix"); it.State != protocol.StateDone || len(welcome.Resume) != 0 {
			t.Errorf("it is %s, and resumed: %v", it.State, welcome.Resume)
		}
	})
}

func TestNoNumberOfARoundIsGivenTwiceAfterAnOlderBackup(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	b.apply("fix")
	for range 3 {
		ada.offer()
		ada.ok(protocol.Decline{WorkItemID: "uid-fix", Reason: "not now"})
	}
	ada.take("fix")
	ada.handBack("uid-fix", protocol.HandbackInterrupted)
	ada.take("fix")
	ada.handBack("uid-fix", protocol.HandbackWaiting)
	before := len(b.rounds("fix"))
	b.apply("fix", b.recorded("fix", model.Recorded{State: protocol.StateQueued, Assignee: "ada", Rounds: 2}))
	ada.take("fix")
	if rounds := b.rounds("fix"); len(rounds) != before+1 {
		t.Errorf("of %d rounds and one more there are %d", before, len(rounds))
	}
}

func TestAnOfferIsDeliveredAgainAfterMinutesAway(t *testing.T) {
	var ahead atomic.Int64
	b := openWith(t, func(o *office.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	ada, _ := b.connect("ada")
	b.apply("fix")
	ada.offer()
	_ = ada.ws.Close()
	b.awaitState("ada", model.PersonOffline)
	ahead.Store(int64(dispatch.OfferTimeout + time.Minute)) // and lostAfter is longer
	again, _ := b.connect("ada")
	again.take("fix")
	again.quiet()
	if it := b.item("fix"); it.State != protocol.StateActive || it.Offers != 1 {
		t.Errorf("it is %s after %d offers", it.State, it.Offers)
	}
}

func TestAnItemThatRunsAgainDoesNotExpire(t *testing.T) {
	b := open(t)
	ada, offer := b.converse("Can you help?")
	id := offer.WorkItem.ID
	answered[protocol.ChatMessageResult](ada, said("m2", "m1", "It is urgent."))
	chat := b.itemByID(id)
	_, err := b.office.SyncItem(t.Context(), factsOf(chat.Name, func(f *model.ItemFacts) { f.ID, f.BornID, f.Spec = "object", id, chat.Spec }))
	b.must(err)
	ada.ok(protocol.Handback{WorkItemID: id, Status: protocol.HandbackDone, Summary: "Sure.", Links: []protocol.Link{}})
	// It was done for a moment, and whoever saw that takes it for expired.
	if err := b.office.ForgetItem(t.Context(), "object", true); !errors.Is(err, model.ErrUnfinished) {
		t.Errorf("the office took it: %v", err)
	}
	if again := ada.takeNext(); again.WorkItem.ID != id {
		t.Errorf("offered %s", again.WorkItem.ID)
	}
	ada.ok(protocol.Handback{WorkItemID: id, Status: protocol.HandbackDone, Summary: "Done.", Links: []protocol.Link{}})
	b.must(b.office.ForgetItem(t.Context(), "object", true))
	if it := b.itemByID(id); it.State != protocol.StateDone || !it.Gone {
		t.Errorf("once it has expired it is %s, gone %v", it.State, it.Gone)
	}
}

func TestItemsThatCannotRunDoNotStarveThoseBehindThem(t *testing.T) {
	const many = 70 // more than any decision looks at first, and then
	t.Run("questions to the own role", func(t *testing.T) {
		b := open(t)
		ada, _ := b.connect("ada")
		for i := range many {
			answered[protocol.AskResult](ada, protocol.Ask{To: "dev", Question: fmt.Sprintf("question %d", i)})
		}
		b.apply("fix")
		ada.take("fix")
	})
	t.Run("items that used their own budgets up", func(t *testing.T) {
		b := open(t)
		ada, _ := b.connect("ada")
		for i := range many {
			name := fmt.Sprintf("used-up-%d", i)
			b.apply(name)
			ada.take(name)
			hb := tokens(done(name), 500)
			hb.Status = protocol.HandbackWaiting
			ada.ok(hb)
		}
		b.apply("first")
		ada.take("first")
		for i := range many {
			answered[protocol.WorkMoveResult](ada, protocol.WorkMove{WorkItemID: fmt.Sprintf("uid-used-up-%d", i), Status: protocol.MoveQueued})
		}
		b.resync(budgeted(model.Budget{Scope: model.BudgetItem, Tokens: 100}))
		b.apply("last", func(f *model.ItemFacts) { f.Spec.Priority = 500 })
		ada.handBack("uid-first", protocol.HandbackDone)
		ada.take("last")
		if it := b.item(fmt.Sprintf("used-up-%d", many-1)); it.Hold.Reason != model.ReasonBudgetExhausted {
			t.Errorf("one before it is held for %+v", it.Hold)
		}
	})
}

// objectOf gives the facts of the object of an item that began in the office, as a controller reads them.
func objectOf(it model.Item, uid string, edits ...func(*model.ItemFacts)) model.ItemFacts {
	return factsOf(it.Name, append([]func(*model.ItemFacts){func(f *model.ItemFacts) {
		f.ID, f.BornID, f.Spec = uid, it.ID, it.Spec
		f.Spec.Generation, f.Spec.ParentID = 1, ""
	}}, edits...)...)
}

func TestAParentThatBeganInTheOfficeIsKnownByItsObject(t *testing.T) {
	for name, parent := range map[string]func(*model.ItemFacts){
		"whose UID is told":  func(f *model.ItemFacts) { f.Spec.ParentID = "object-chat" },
		"whose name is told": func(*model.ItemFacts) {},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			ada, session := b.converse("Can you help?")
			chat := session.WorkItem.ID
			_, err := b.office.SyncItem(t.Context(), objectOf(b.itemByID(chat), "object-chat"))
			b.must(err)
			asked := answered[protocol.AskResult](ada, protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: chat})
			_, err = b.office.SyncItem(t.Context(), objectOf(b.itemByID(asked.ID), "object-question", parent))
			b.must(err)
			ada.handBack(chat, protocol.HandbackWaiting)
			bob, _ := b.connect("bob")
			if offer := bob.takeNext(); offer.WorkItem.ParentID != chat {
				t.Errorf("bob is told of the parent %q, not %s", offer.WorkItem.ParentID, chat)
			}
			bob.handBack(asked.ID, protocol.HandbackBlocked)
			if again := ada.takeNext(); again.WorkItem.ID != chat || len(again.Context.Feedback) == 0 {
				t.Errorf("ada goes on with %s and the feedback %+v", again.WorkItem.ID, again.Context.Feedback)
			}
		})
	}
}

func TestAQuestionFromALostStoreKnowsWhoAskedBeforeThatIsRestored(t *testing.T) {
	b := open(t)
	ada, session := b.converse("Can you help?")
	chat := b.itemByID(session.WorkItem.ID)
	asked := answered[protocol.AskResult](ada, protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: chat.ID})
	question := b.itemByID(asked.ID)

	after := open(t)
	lost := func(state protocol.WorkItemState, assignee string) func(*model.ItemFacts) {
		return func(f *model.ItemFacts) {
			f.Recorded = model.Recorded{StoreID: "lost", Revision: 9, State: state, Assignee: assignee, Rounds: 1}
		}
	}
	_, err := after.office.SyncItem(t.Context(), objectOf(question, "object-question", lost(protocol.StateQueued, "bob"), func(f *model.ItemFacts) {
		f.Spec.ParentID, f.ParentBornID = "object-chat", chat.ID
	}))
	after.must(err)
	_, err = after.office.SyncItem(t.Context(), objectOf(chat, "object-chat", lost(protocol.StateWaiting, "ada")))
	after.must(err)
	bob, _ := after.connect("bob")
	if offer := bob.takeNext(); offer.WorkItem.ParentID != chat.ID {
		t.Errorf("bob is told of the parent %q, not %s", offer.WorkItem.ParentID, chat.ID)
	}
	bob.ok(protocol.Answer{QuestionID: asked.ID, Answer: "8443"})
	ada, _ = after.connect("ada")
	if again := ada.offer(); again.WorkItem.ID != chat.ID {
		t.Errorf("the answer goes to %s", again.WorkItem.ID)
	}
}

func TestItemsOfARoleAreFreeOnceTheirPersonIsDeleted(t *testing.T) {
	ofRole := func(f *model.ItemFacts) { f.Spec.Person, f.Spec.Role = "", "dev" }
	rerun := func(f *model.ItemFacts) { f.Spec.Rerun, f.Spec.Generation = "1", 2 }
	for name, tc := range map[string]struct {
		ended protocol.HandbackStatus
		// again is what makes the item run again, after its person is gone.
		again func(b *bench)
	}{
		"queued":                       {protocol.HandbackInterrupted, func(*bench) {}},
		"waiting":                      {protocol.HandbackWaiting, func(b *bench) { b.apply("fix", ofRole, rerun) }},
		"blocked":                      {protocol.HandbackBlocked, func(b *bench) { b.apply("fix", ofRole, rerun) }},
		"done, and to be worked again": {protocol.HandbackDone, func(b *bench) { b.apply("fix", ofRole, rerun) }},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			ada, _ := b.connect("ada")
			b.apply("fix", ofRole)
			ada.take("fix")
			b.must(b.office.SyncPerson(t.Context(), suspended("ada"))) // she takes nothing more
			ada.handBack("uid-fix", tc.ended)
			b.must(b.office.ForgetPerson(t.Context(), "uid-ada"))
			bob, _ := b.connect("bob")
			tc.again(b)
			bob.take("fix")
		})
	}
}

func suspended(handle string) model.Person {
	p := person(handle)
	p.Suspended = true
	return p
}

// late is a store whose updates return late where their context says so.
type late struct{ store.Store }

type lateUntil struct{}

func (s late) Update(ctx context.Context, fn func(store.Tx) error) error {
	err := s.Store.Update(ctx, fn)
	if until, ok := ctx.Value(lateUntil{}).(chan struct{}); ok {
		<-until
	}
	return err
}

func TestWhatFollowsLeavesInTheOrderOfTheCommits(t *testing.T) {
	b := openWith(t, func(o *office.Options) { o.Store = late{o.Store} })
	ada, _ := b.connect("ada")
	b.apply("fix")
	ada.take("fix")

	// A fact is taken while ada runs the item, but whoever told it is slow to go on.
	release := make(chan struct{})
	synced := make(chan error, 1)
	go func() {
		_, err := b.office.SyncItem(context.WithValue(b.t.Context(), lateUntil{}, release),
			factsOf("fix", func(f *model.ItemFacts) { f.Spec.Generation, f.Spec.Hash = 2, "hash-2" }))
		synced <- err
	}()
	for b.item("fix").Spec.Generation != 2 {
		time.Sleep(time.Millisecond)
	}
	// Meanwhile she hands it back.
	id := ada.send(done("fix"))
	for b.item("fix").State != protocol.StateDone {
		time.Sleep(time.Millisecond)
	}
	answer := make(chan protocol.Message, 1)
	go func() { answer <- ada.reply(id) }()
	select {
	case m := <-answer:
		t.Errorf("%s left before what follows from an earlier transaction", m.Type())
		answer <- m
	case <-time.After(100 * time.Millisecond):
	}
	close(release)
	<-answer
	b.must(<-synced)
	// The office knows that she is idle: it does not take a heartbeat of the run for one.
	ada.refused(protocol.Heartbeat{WorkItemID: "uid-fix"}, protocol.CodeInvalid)
}
