package office_test

// This file has tests for what users of comparable systems report: work that is lost, or done twice.

import (
	"fmt"
	"sync"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestAFailedTaskIsTriedAgainAtOnceAndItsRetryIsNotBlockedByAnything(t *testing.T) {
	b := open(t, func(team *model.Team) { team.Policy.Attempts = 2 })
	a, _ := b.connect("ada")
	b.apply("fix")
	for range 2 {
		a.take("fix")
		a.ok(protocol.Fail{WorkItemID: fixID, Reason: "no disk"})
	}
	if it := b.item("fix"); it.State != protocol.StateBlocked {
		t.Fatalf("after its attempts it is %s", it.State)
	}
	b.apply("fix", func(f *model.ItemFacts) { f.Spec.Generation, f.Spec.Rerun = 2, "again" })
	a.take("fix")
	a.ok(done("fix"))
}

func TestAnAgentThatFinishesWithoutACommitOrAPushIsNotDone(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("fix")
	a.take("fix")
	a.ok(protocol.Handback{WorkItemID: fixID, Status: protocol.HandbackDone, Summary: "all done!", Links: []protocol.Link{}})
	if it := b.item("fix"); it.State != protocol.StateBlocked || it.End.Reason != model.ReasonNothingToReview || it.Summary != "all done!" {
		t.Errorf("handed back as done without anything, it is %s: %+v, %q", it.State, it.End, it.Summary)
	}
}

func TestAClosedItemIsNotWorkedAgainAfterARestart(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("fix")
	a.take("fix")
	a.ok(done("fix"))
	for range 2 {
		b.restart()
		b.apply("fix")
		a, _ = b.connect("ada")
		a.quiet()
	}
	if it := b.item("fix"); it.State != protocol.StateDone || it.Rounds != 1 {
		t.Errorf("it is %s after %d rounds", it.State, it.Rounds)
	}
}

func TestWorkThatWasPushedBeforeItsHandBackWasLostIsNotInvisible(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("fix")
	a.take("fix")
	pr := &protocol.MadePull{Repo: protocol.Repo{Owner: "acme", Name: "shop"}, Number: 7, URL: "https://code.example/7"}
	a.ok(protocol.WorkMade{WorkItemID: fixID, PR: pr})
	a.ok(protocol.Handback{WorkItemID: fixID, Status: protocol.HandbackInterrupted, Summary: "killed", Links: []protocol.Link{}})
	offer := a.take("fix")
	found := false
	for _, s := range offer.Context.Subjects {
		found = found || (s.Type == "pr" && s.Ref == "acme/shop#7" && s.URL == pr.URL)
	}
	if !found {
		t.Errorf("the next round does not hear of the pull request: %+v", offer.Context.Subjects)
	}
}

func TestADroppedConnectionIsNotTheEndOfASession(t *testing.T) {
	b := open(t)
	b.apply("fix")
	a, _ := b.connect("ada")
	a.take("fix")
	a.ok(protocol.Session{WorkItemID: fixID, SessionID: "s1"})
	for range 7 {
		_ = a.ws.Close()
		var welcome protocol.Welcome
		if a, welcome = b.connect("ada"); len(welcome.Resume) != 1 {
			t.Fatalf("resume is %v", welcome.Resume)
		}
		a.ok(protocol.Heartbeat{WorkItemID: fixID})
	}
	a.ok(done("fix"))
	if it := b.item("fix"); it.State != protocol.StateDone || it.SessionID != "s1" || it.LostRounds != 0 {
		t.Errorf("it is %s, session %q, %d rounds lost", it.State, it.SessionID, it.LostRounds)
	}
}

func TestTwoTasksAreNeverAssignedToOneAgentNorOneTaskToTwo(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	const items = 24
	var applying sync.WaitGroup
	for i := range items {
		applying.Go(func() {
			_, err := b.office.SyncItem(t.Context(), factsOf(fmt.Sprintf("i%d", i), func(f *model.ItemFacts) { f.Spec.Person, f.Spec.Role = "", "dev" }))
			if err != nil {
				t.Error(err)
			}
		})
	}
	taken := map[string]bool{}
	for len(taken) < items {
		for _, a := range []*agent{ada, bob} {
			answered[protocol.Pong](a, protocol.Ping{})
			var offers []protocol.Offer
			for _, f := range a.inbox {
				offers = append(offers, f.Message.(protocol.Offer))
			}
			a.inbox = nil
			if len(offers) > 1 {
				t.Fatalf("offered at once: %+v", offers)
			}
			for _, offer := range offers {
				id := offer.WorkItem.ID
				if taken[id] {
					t.Fatalf("%s was given to somebody before", id)
				}
				taken[id] = true
				a.ok(protocol.Accept{WorkItemID: id, Runtime: "command"})
				a.handBack(id, protocol.HandbackDone)
			}
		}
	}
	applying.Wait()
	if rounds := b.counted("bullpen_office_rounds_total", "outcome", "done"); rounds != items {
		t.Errorf("%v rounds for %d items", rounds, items)
	}
}
