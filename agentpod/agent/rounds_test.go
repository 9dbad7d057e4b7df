package agent

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// words writes actions down in a few words.
func words(acts []action) []string {
	var list []string
	for _, act := range acts {
		switch act := act.(type) {
		case take:
			list = append(list, "take "+act.item.id)
		case accept:
			list = append(list, "accept "+act.id)
		case decline:
			list = append(list, "decline "+act.id)
		case save:
			list = append(list, fmt.Sprintf("save %s %s", act.item.id, act.item.phase))
		case start:
			list = append(list, fmt.Sprintf("start %s round %d resumed=%v", act.item.id, act.item.round, act.resumed))
		case stop:
			list = append(list, fmt.Sprintf("stop soon=%v", act.soon))
		case post:
			switch m := act.message.(type) {
			case protocol.Handback:
				list = append(list, fmt.Sprintf("handback %s %s", m.WorkItemID, m.Status))
			default:
				list = append(list, string(m.Type()))
			}
		}
	}
	return list
}

func anOffer(id string) offered {
	return offered{protocol.Offer{WorkItem: protocol.WorkItem{ID: id}}, []byte("{}"), "offer of " + id}
}

func handback(id string, status protocol.HandbackStatus) protocol.Handback {
	return protocol.Handback{WorkItemID: id, Status: status}
}

// step is one event and what should follow from it.
type step struct {
	name string
	do   func(m *machine) []action
	want []string
}

func offerOf(id string, want ...string) step {
	return step{"offer " + id, func(m *machine) []action { return m.offer(anOffer(id)) }, want}
}

func acceptedRound(seq int, want ...string) step {
	return step{"accepted", func(m *machine) []action { return m.accepted(seq) }, want}
}

func welcomeWith(resume []string, want ...string) step {
	return step{fmt.Sprintf("welcome %v", resume), func(m *machine) []action { return m.welcome(resume) }, want}
}

func endedRound(seq int, ending protocol.Message, want ...string) step {
	return step{"the run ends", func(m *machine) []action { return m.ended(seq, ending, nil) }, want}
}

func delivery(message protocol.Message, refusal *protocol.Error, want ...string) step {
	return step{"an answer", func(m *machine) []action { return m.delivered(message, 1, refusal) }, want}
}

func TestTheMachine(t *testing.T) {
	working := []step{
		offerOf("a", "take a"),
		acceptedRound(1, "save a started", "start a round 1 resumed=false"),
	}
	stored := func(phases map[string]phase) map[string]*item {
		items := map[string]*item{}
		for id, p := range phases {
			items[id] = &item{id: id, phase: p}
			if p != phaseOffered {
				items[id].round = 1
			}
		}
		return items
	}
	invalid := &protocol.Error{Code: protocol.CodeInvalid}
	for _, test := range []struct {
		name  string
		items map[string]*item
		steps []step
	}{
		{"a round from offer to delivery", nil, slices.Concat(working, []step{
			endedRound(1, handback("a", "done"), "handback a done", "save a ended"),
			delivery(handback("a", "done"), nil),
			offerOf("a", "take a"),
			acceptedRound(2, "save a started", "start a round 2 resumed=false"),
		})},
		{"an offer waits for the last hand-back to arrive", nil, slices.Concat(working, []step{
			endedRound(1, handback("a", "done"), "handback a done", "save a ended"),
			offerOf("a"),
			delivery(handback("a", "done"), nil, "take a"),
		})},
		{"of two offers that wait the last one counts", nil, slices.Concat(working, []step{
			endedRound(1, handback("a", "done"), "handback a done", "save a ended"),
			offerOf("b"),
			offerOf("c", "decline b"),
			delivery(handback("a", "done"), nil, "take c"),
		})},
		{"an offer that waits is forgotten with its connection", nil, slices.Concat(working, []step{
			endedRound(1, handback("a", "done"), "handback a done", "save a ended"),
			offerOf("b"),
			{"offline", func(m *machine) []action { m.offline(); return nil }, nil},
			delivery(handback("a", "done"), nil),
		})},
		{"an unacknowledged accept that the office does not know is forgotten", nil, []step{
			offerOf("a", "take a"),
			welcomeWith(nil),
			offerOf("a", "take a"),
			acceptedRound(2, "save a started", "start a round 1 resumed=false"),
		}},
		{"an unacknowledged accept that the office knows starts the round", nil, []step{
			offerOf("a", "take a"),
			welcomeWith([]string{"a"}, "save a started", "start a round 1 resumed=false"),
			acceptedRound(1),
		}},
		{"an accept of an earlier round starts nothing", nil, slices.Concat(working, []step{
			endedRound(1, handback("a", "done"), "handback a done", "save a ended"),
			delivery(handback("a", "done"), nil),
			offerOf("b", "take b"),
			acceptedRound(1),
		})},
		{"what an earlier process ran goes on", stored(map[string]phase{"a": phaseStarted, "b": phaseEnded}), []step{
			welcomeWith([]string{"a"}, "save a started", "start a round 1 resumed=true"),
		}},
		{"what an earlier process accepted starts", stored(map[string]phase{"a": phaseOffered}), []step{
			welcomeWith([]string{"a"}, "save a started", "start a round 1 resumed=false"),
		}},
		{"what an earlier process ran and the office dropped is forgotten", stored(map[string]phase{"a": phaseStarted}), []step{
			welcomeWith(nil, "save a ended"),
		}},
		{"two items to go on with run one after the other", stored(map[string]phase{"a": phaseStarted, "b": phaseStarted}), []step{
			welcomeWith([]string{"a", "b"}, "save a started", "start a round 1 resumed=true"),
			endedRound(1, handback("a", "done"), "handback a done", "save a ended", "save b started", "start b round 1 resumed=true"),
		}},
		{"a drop during the shutdown stops nothing twice", nil, slices.Concat(working, []step{
			{"drain", (*machine).drain, []string{"stop soon=false"}},
			welcomeWith(nil, "save a ended"),
			endedRound(1, handback("a", "interrupted")),
		})},
		{"the shutdown hands back what it has not begun", stored(map[string]phase{"a": phaseStarted}), []step{
			{"drain", (*machine).drain, nil},
			welcomeWith([]string{"a"}, "handback a interrupted", "save a ended"),
		}},
		{"offers during the shutdown are declined, and after the hand-back left for the next life", nil, slices.Concat(working, []step{
			{"drain", (*machine).drain, []string{"stop soon=false"}},
			offerOf("b", "decline b"),
			endedRound(1, handback("a", "interrupted"), "handback a interrupted", "save a ended"),
			offerOf("a"),
			delivery(handback("a", "interrupted"), nil),
		})},
		{"a dropped item that is listed again runs again after its end", nil, slices.Concat(working, []step{
			welcomeWith(nil, "save a ended", "stop soon=true"),
			welcomeWith([]string{"a"}),
			endedRound(1, handback("a", "interrupted"), "save a started", "start a round 1 resumed=true"),
		})},
		{"a refused journal line ends the round", nil, slices.Concat(working, []step{
			delivery(protocol.Journal{WorkItemID: "a"}, invalid, "save a ended", "stop soon=true"),
			delivery(protocol.Journal{WorkItemID: "a"}, invalid),
		})},
		{"a refused hand-back is given up", nil, slices.Concat(working, []step{
			endedRound(1, handback("a", "done"), "handback a done", "save a ended"),
			delivery(handback("a", "done"), invalid),
			offerOf("b", "take b"),
		})},
		{"a fail that cannot be read is given up", nil, slices.Concat(working, []step{
			endedRound(1, protocol.Fail{WorkItemID: "a"}, "fail", "save a ended"),
			delivery(protocol.Fail{WorkItemID: "a"}, &protocol.Error{Code: protocol.CodeInvalidMessage}),
		})},
		{"an agent that was replaced says nothing more", nil, slices.Concat(working, []step{
			{"replaced", (*machine).giveWay, []string{"stop soon=true"}},
			endedRound(1, handback("a", "interrupted")),
		})},
		{"an unfit agent declines but accepts what it has", nil, slices.Concat(working, []step{
			{"unfit", func(m *machine) []action { m.unfit = "no program"; return nil }, nil},
			offerOf("a", "accept a"),
			endedRound(1, handback("a", "done"), "handback a done", "save a ended"),
			delivery(handback("a", "done"), nil),
			offerOf("b", "decline b"),
		})},
		{"an offer that cannot be saved leaves the agent free", nil, []step{
			offerOf("a", "take a"),
			{"the disk is full", (*machine).takeFailed, nil},
			offerOf("b", "take b"),
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			items := test.items
			if items == nil {
				items = map[string]*item{}
			}
			m := newMachine(items)
			m.online = true
			for _, s := range test.steps {
				if diff := cmp.Diff(s.want, words(s.do(m))); diff != "" {
					t.Fatalf("%s: %s", s.name, diff)
				}
			}
		})
	}
}
