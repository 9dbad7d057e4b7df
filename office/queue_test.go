package office_test

import (
	"slices"
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
