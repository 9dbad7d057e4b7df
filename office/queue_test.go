package office_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// queue lists the names of the agent's queued items in the order of work_list.
func (a *agent) queue() []string {
	a.b.t.Helper()
	var names []string
	for _, ref := range answered[protocol.WorkListResult](a, protocol.WorkList{}).Items {
		if ref.Status == protocol.StateQueued {
			names = append(names, a.b.itemByID(ref.ID).Name)
		}
	}
	return names
}

func TestAPersonPutsItsQueueInOrder(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("running")
	a.take("running")
	b.apply("a")
	b.apply("b")
	b.apply("urgent", func(f *model.ItemFacts) { f.Spec.Priority = 1 })
	place := func(name string, position protocol.Position, relative string) {
		t.Helper()
		if relative != "" {
			relative = "uid-" + relative
		}
		got := answered[protocol.WorkMoveResult](a, protocol.WorkPlace{WorkItemID: "uid-" + name, Position: position, RelativeTo: relative})
		if got.Item.ID != "uid-"+name || got.Item.Status != protocol.StateQueued {
			t.Errorf("placed: %+v", got.Item)
		}
	}
	want := func(names ...string) {
		t.Helper()
		if got := a.queue(); !slices.Equal(got, names) {
			t.Errorf("the queue is %v, want %v", got, names)
		}
	}
	want("urgent", "a", "b")
	place("b", protocol.PositionNext, "")
	want("b", "urgent", "a")
	place("urgent", protocol.PositionLast, "")
	want("b", "a", "urgent")
	place("b", protocol.PositionAfter, "a")
	want("a", "b", "urgent")
	place("urgent", protocol.PositionBefore, "b")
	want("a", "urgent", "b")
	b.restart()
	a, _ = b.connect("ada")
	want("a", "urgent", "b")
	b.apply("b", func(f *model.ItemFacts) { f.Spec.Priority, f.Spec.Generation, f.Spec.Hash = 0, 2, "changed" })
	want("b", "a", "urgent") // the user's priority is the later word
	a.handBack("uid-running", protocol.HandbackDone)
	for _, name := range []string{"b", "a", "urgent"} {
		a.take(name)
		a.handBack("uid-"+name, protocol.HandbackDone)
	}
}

func TestPlacesThatAreRefused(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("running")
	a.take("running")
	b.apply("a")
	b.apply("of-bob", func(f *model.ItemFacts) { f.Spec.Person = "bob" })
	for name, tc := range map[string]struct {
		m    protocol.WorkPlace
		code protocol.Code
	}{
		"an item that runs":           {protocol.WorkPlace{WorkItemID: "uid-running", Position: "next"}, protocol.CodeInvalid},
		"somebody else's item":        {protocol.WorkPlace{WorkItemID: "uid-of-bob", Position: "next"}, protocol.CodeUnknownItem},
		"an item that does not exist": {protocol.WorkPlace{WorkItemID: "nothing", Position: "next"}, protocol.CodeUnknownItem},
		"before nothing":              {protocol.WorkPlace{WorkItemID: "uid-a", Position: "before"}, protocol.CodeInvalid},
		"after an item that runs":     {protocol.WorkPlace{WorkItemID: "uid-a", Position: "after", RelativeTo: "uid-running"}, protocol.CodeInvalid},
		"before somebody else's":      {protocol.WorkPlace{WorkItemID: "uid-a", Position: "before", RelativeTo: "uid-of-bob"}, protocol.CodeInvalid},
		"before the very item":        {protocol.WorkPlace{WorkItemID: "uid-a", Position: "before", RelativeTo: "uid-a"}, protocol.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) { a.refused(tc.m, tc.code) })
	}
}

func TestAPersonMovesItsItems(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("running")
	a.take("running")
	b.apply("later")
	move := func(name string, to protocol.MoveStatus) protocol.WorkItemState {
		t.Helper()
		return answered[protocol.WorkMoveResult](a, protocol.WorkMove{WorkItemID: "uid-" + name, Status: to}).Item.Status
	}
	if got := move("later", protocol.MoveBlocked); got != protocol.StateBlocked {
		t.Errorf("moved to blocked, but is %s", got)
	}
	if it := b.item("later"); it.End.Reason != model.ReasonMoved || it.End.Message == "" {
		t.Errorf("it is blocked for %+v", it.End)
	}
	if got := move("later", protocol.MoveBlocked); got != protocol.StateBlocked {
		t.Errorf("moved twice, it is %s", got)
	}
	if got := move("later", protocol.MoveQueued); got != protocol.StateQueued {
		t.Errorf("moved back, but is %s", got)
	}
	a.refused(protocol.WorkMove{WorkItemID: "uid-running", Status: protocol.MoveCanceled}, protocol.CodeInvalid)
	a.refused(protocol.WorkMove{WorkItemID: "nothing", Status: protocol.MoveQueued}, protocol.CodeUnknownItem)
	a.handBack("uid-running", protocol.HandbackDone)
	a.refused(protocol.WorkMove{WorkItemID: "uid-running", Status: protocol.MoveQueued}, protocol.CodeInvalid)
	a.take("later")
	a.handBack("uid-later", protocol.HandbackWaiting)
	if got := move("later", protocol.MoveQueued); got != protocol.StateQueued { // what waits goes on by a move
		t.Errorf("moved on, but is %s", got)
	}
	a.take("later")
	a.handBack("uid-later", protocol.HandbackWaiting)
	if got := move("later", protocol.MoveCanceled); got != protocol.StateCanceled {
		t.Errorf("canceled, but is %s", got)
	}
	a.quiet()
	bob, _ := b.connect("bob")
	bob.refused(protocol.WorkMove{WorkItemID: "uid-later", Status: protocol.MoveQueued}, protocol.CodeUnknownItem)
	states := answered[protocol.WorkStatusResult](bob, protocol.WorkStatus{WorkItemIDs: []string{"uid-later", "nothing"}}).Items
	if len(states) != 2 || states[0].State != protocol.ItemNotYours || states[1].State != protocol.ItemUnknown {
		t.Errorf("bob is told %+v", states)
	}
}

func TestARepeatedMoveChangesNothingAgain(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("running")
	a.take("running")
	b.apply("a")
	b.apply("b")
	for id, m := range map[string]protocol.Message{
		"place-1": protocol.WorkPlace{WorkItemID: "uid-b", Position: protocol.PositionNext},
		"move-1":  protocol.WorkMove{WorkItemID: "uid-a", Status: protocol.MoveBlocked},
	} {
		a.sendAs(id, m)
		a.reply(id)
		undo := protocol.Message(protocol.WorkMove{WorkItemID: "uid-a", Status: protocol.MoveQueued})
		if m.Type() == protocol.TypeWorkPlace {
			undo = protocol.WorkPlace{WorkItemID: "uid-b", Position: protocol.PositionLast}
		}
		answered[protocol.WorkMoveResult](a, undo)
		_ = a.ws.Close()
		a, _ = b.connect("ada")
		a.sendAs(id, m)
		if got, ok := a.reply(id).(protocol.WorkMoveResult); !ok || got.Item.Status != protocol.StateQueued {
			t.Errorf("%s again was answered with %+v", m.Type(), got)
		}
		if got := a.queue(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("after %s again the queue is %v", m.Type(), got)
		}
	}
}

func TestARepeatedDeclineDeclinesNoOtherOffer(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("fix")
	a.offer()
	a.sendAs("decline-1", protocol.Decline{WorkItemID: fixID, Reason: "no disk"})
	a.reply("decline-1")
	a.offer()
	a.sendAs("decline-1", protocol.Decline{WorkItemID: fixID, Reason: "no disk"})
	if _, ok := a.reply("decline-1").(protocol.Ack); !ok {
		t.Error("a repeated decline was refused")
	}
	if it := b.item("fix"); it.Round == nil || it.Declines != 1 {
		t.Errorf("declined %d times, round %+v", it.Declines, it.Round)
	}
	a.ok(protocol.Accept{WorkItemID: fixID, Runtime: "command"})
}

func TestAPlaceIsGivenUpWithLeavingTheQueueAndNoneIsBeforeAnOffer(t *testing.T) {
	b := open(t)
	b.apply("first", func(f *model.ItemFacts) { f.Spec.Priority = 1 })
	b.apply("a")
	b.apply("b")
	b.apply("slow", func(f *model.ItemFacts) { f.Spec.Priority = 900 })
	a, _ := b.connect("ada")
	if offer := a.offer(); offer.WorkItem.ID != "uid-first" {
		t.Fatalf("offered %s", offer.WorkItem.ID)
	}
	a.refused(protocol.WorkPlace{WorkItemID: "uid-first", Position: protocol.PositionLast}, protocol.CodeInvalid)
	a.refused(protocol.WorkPlace{WorkItemID: "uid-b", Position: protocol.PositionBefore, RelativeTo: "uid-first"}, protocol.CodeInvalid)
	answered[protocol.WorkMoveResult](a, protocol.WorkPlace{WorkItemID: "uid-b", Position: protocol.PositionNext})
	answered[protocol.WorkMoveResult](a, protocol.WorkPlace{WorkItemID: "uid-a", Position: protocol.PositionLast})
	if got := a.queue(); !slices.Equal(got, []string{"first", "b", "slow", "a"}) {
		t.Errorf("the queue is %v", got)
	}
	a.ok(protocol.Accept{WorkItemID: "uid-first", Runtime: "command"})
	a.handBack("uid-first", protocol.HandbackDone)
	for _, name := range []string{"b", "slow", "a"} {
		a.take(name)
		a.handBack("uid-"+name, protocol.HandbackWaiting)
	}
	for _, name := range []string{"slow", "a"} { // they run again by priority: their places are gone
		answered[protocol.WorkMoveResult](a, protocol.WorkMove{WorkItemID: "uid-" + name, Status: protocol.MoveBlocked})
	}
	b.apply("running", func(f *model.ItemFacts) { f.Spec.Priority = 1 })
	a.take("running")
	for _, name := range []string{"slow", "a"} {
		answered[protocol.WorkMoveResult](a, protocol.WorkMove{WorkItemID: "uid-" + name, Status: protocol.MoveQueued})
	}
	if got := a.queue(); !slices.Equal(got, []string{"a", "slow"}) {
		t.Errorf("after another round the queue is %v", got)
	}
}

func TestWhatIsTooMuchForOneMessageIsRefusedWithALimit(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	long := strings.Repeat("x", 5000)
	grown := said("m1", "", "Hello")
	grown.Author.ID = long
	files := said("m1", "", "Hello")
	files.Files = make([]protocol.File, 51)
	b.apply("fix")
	a.offer()
	for name, m := range map[string]protocol.Message{
		"a status of too many items":  protocol.WorkStatus{WorkItemIDs: make([]string, 5001)},
		"an author with a long id":    grown,
		"a message with many files":   files,
		"a long channel":              protocol.ChatMessage{MessageID: "m1", Channel: long, Text: "x", Author: grace},
		"a message without an author": protocol.ChatMessage{MessageID: "m1", Channel: "C1", Text: "x"},
		"a long runtime":              protocol.Accept{WorkItemID: fixID, Runtime: long},
		"a long question":             protocol.Ask{To: "bob", Question: strings.Repeat("x", 100_001)},
	} {
		t.Run(name, func(t *testing.T) { a.refused(m, protocol.CodeInvalid) })
	}
}
