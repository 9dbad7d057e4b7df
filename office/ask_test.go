package office_test

import (
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestAQuestionReachesWhoeverIsAskedAndItsAnswerTheAsker(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	b.apply("fix")
	ada.take("fix")
	question := protocol.Ask{To: "bob", Question: "Which port?\nThe one of the shop.", WorkItemID: "uid-fix"}
	asked := answered[protocol.AskResult](ada, question)
	if asked.Status != protocol.AskPending || asked.To != "bob" || asked.ID == "" {
		t.Errorf("asked: %+v", asked)
	}
	if again := answered[protocol.AskResult](ada, question); again != asked {
		t.Errorf("the same question again is %+v, want %+v", again, asked)
	}
	if other := answered[protocol.AskResult](ada, protocol.Ask{To: "bob", Question: "Which host?", WorkItemID: "uid-fix"}); other.ID == asked.ID {
		t.Error("another question has the same id")
	}
	offer := bob.takeNext()
	if w := offer.WorkItem; w.ID != asked.ID || w.Kind != "question" || w.ParentID != "uid-fix" || w.Title != "Which port?" || w.Trigger != protocol.TriggerAgent {
		t.Errorf("offered: %+v", w)
	}
	if first := offer.Context.Journal[0]; first.Author != "ada" || first.Text != question.Question {
		t.Errorf("the question's body is %+v", first)
	}
	ada.handBack("uid-fix", protocol.HandbackWaiting)
	if it := b.item("fix"); it.State != protocol.StateWaiting {
		t.Fatalf("the asker's item is %s", it.State)
	}
	bob.ok(protocol.Answer{QuestionID: asked.ID, Answer: "8443"})
	resumed := ada.take("fix")
	if last := resumed.Context.Journal[len(resumed.Context.Journal)-1]; last.Author != "bob" || !strings.Contains(last.Text, "8443") {
		t.Errorf("the asker's journal ends with %+v", last)
	}
	if got := answered[protocol.AskResult](ada, question); got.Status != protocol.AskAnswered || got.Answer != "8443" {
		t.Errorf("asked again after the answer: %+v", got)
	}
	bob.ok(protocol.Handback{WorkItemID: asked.ID, Status: protocol.HandbackDone, Summary: "told", Links: []protocol.Link{}})
	if it := b.itemByID(asked.ID); it.State != protocol.StateDone {
		t.Errorf("a question needs nothing to review, but is %s: %s", it.State, it.End.Message)
	}
	if n := len(b.journal("uid-fix")); n != 1 {
		t.Errorf("the asker's journal has %d entries, want the one answer", n)
	}
}

func TestAQuestionToARoleGoesToAnotherOneOfIt(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	asked := answered[protocol.AskResult](ada, protocol.Ask{To: "dev", Question: "Who knows the tests?"})
	ada.quiet() // never to the asker
	bob, _ := b.connect("bob")
	if offer := bob.takeNext(); offer.WorkItem.ID != asked.ID {
		t.Errorf("offered %s, want the question %s", offer.WorkItem.ID, asked.ID)
	}
}

func TestAQuestionThatWasHandedBackWithoutAnAnswerIsAnsweredByTheSummary(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	question := protocol.Ask{To: "bob", Question: "Which port?"}
	asked := answered[protocol.AskResult](ada, question)
	bob.takeNext()
	bob.ok(protocol.Handback{WorkItemID: asked.ID, Status: protocol.HandbackDone, Summary: "It is 8443.", Links: []protocol.Link{}})
	if got := answered[protocol.AskResult](ada, question); got.Status != protocol.AskAnswered || got.Answer != "It is 8443." {
		t.Errorf("asked again: %+v", got)
	}
}

func TestAStuckColleagueIsFeedbackToWhoeverAsked(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	b.apply("fix")
	ada.take("fix")
	asked := answered[protocol.AskResult](ada, protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: "uid-fix"})
	ada.handBack("uid-fix", protocol.HandbackWaiting)
	bob.takeNext()
	bob.ok(protocol.Handback{WorkItemID: asked.ID, Status: protocol.HandbackBlocked, Summary: "I cannot see the ports", Links: []protocol.Link{}})
	offer := ada.take("fix")
	if f := offer.Context.Feedback; len(f) != 1 || f[0].Kind != protocol.FeedbackBlocked || f[0].Actor != "bob" || !strings.Contains(f[0].Body, "cannot see the ports") {
		t.Errorf("the feedback is %+v", f)
	}
}

func TestQuestionsAndAnswersThatAreRefused(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	b.apply("fix")
	ada.take("fix")
	asked := answered[protocol.AskResult](ada, protocol.Ask{To: "bob", Question: "Which port?"})
	ada.refused(protocol.Ask{To: "eve", Question: "Hello?"}, protocol.CodeNotFound)
	ada.refused(protocol.Ask{To: "ada", Question: "Hello?"}, protocol.CodeInvalid)
	ada.refused(protocol.Ask{To: "bob", Question: "  "}, protocol.CodeInvalid)
	ada.refused(protocol.Ask{To: "bob", Question: "Hello?", WorkItemID: "nothing"}, protocol.CodeUnknownItem)
	bob.refused(protocol.Ask{To: "ada", Question: "Hello?", WorkItemID: "uid-fix"}, protocol.CodeUnknownItem)
	ada.refused(protocol.Answer{QuestionID: "uid-fix", Answer: "42"}, protocol.CodeInvalid)
	ada.refused(protocol.Answer{QuestionID: asked.ID, Answer: "42"}, protocol.CodeUnknownItem)
	bob.refused(protocol.Answer{QuestionID: asked.ID, Answer: "42"}, protocol.CodeInvalid) // not accepted yet
	bob.takeNext()
	bob.refused(protocol.Answer{QuestionID: asked.ID, Answer: ""}, protocol.CodeInvalid)
	bob.ok(protocol.Answer{QuestionID: asked.ID, Answer: "42"})
}

func TestTheObjectOfAQuestionIsTheQuestionAndDeletingItCancelsItForGood(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	question := protocol.Ask{To: "bob", Question: "Which port?"}
	asked := answered[protocol.AskResult](ada, question)
	it := b.itemByID(asked.ID)
	unborn, err := b.office.Unborn(t.Context(), it.Namespace, it.Name)
	b.must(err)
	if unborn == nil || unborn.ID != asked.ID {
		t.Fatalf("the item without an object is %+v", unborn)
	}
	facts := factsOf(it.Name, func(f *model.ItemFacts) {
		f.ID, f.BornID, f.Spec = "object-1", asked.ID, it.Spec
		f.Spec.Generation = 1
	})
	view, err := b.office.SyncItem(t.Context(), facts)
	b.must(err)
	if view.ID != asked.ID || view.Question == nil {
		t.Errorf("the object shows %+v", view.Item)
	}
	if unborn, err = b.office.Unborn(t.Context(), it.Namespace, it.Name); err != nil || unborn != nil {
		t.Errorf("it has an object, but is unborn: %+v, %v", unborn, err)
	}
	forged := facts
	forged.ID, forged.Name = "object-2", "forged"
	view, err = b.office.SyncItem(t.Context(), forged)
	b.must(err)
	if view.ID != "object-2" {
		t.Errorf("an object that names an item which is not its own shows %s", view.ID)
	}
	b.must(b.office.ForgetItem(t.Context(), "object-1", false))
	if it := b.itemByID(asked.ID); it.State != protocol.StateCanceled || !it.Gone {
		t.Errorf("after the deletion: %s, gone %v", it.State, it.Gone)
	}
	if unborn, err = b.office.Unborn(t.Context(), it.Namespace, it.Name); err != nil || unborn != nil {
		t.Errorf("a deleted object would be made again: %+v, %v", unborn, err)
	}
	ada.refused(question, protocol.CodeInvalid)
	b.must(b.office.Retain(t.Context(), model.Live{Teams: []model.TeamKey{shop}, People: []string{"uid-ada", "uid-bob"}, Items: []string{"object-2"}}))
	if it := b.itemByID("object-2"); it.Gone {
		t.Error("an object that exists was forgotten")
	}
}

func TestWhatHasNoObjectYetIsNotForgottenAtTheStart(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	asked := answered[protocol.AskResult](ada, protocol.Ask{To: "bob", Question: "Which port?"})
	b.must(b.office.Retain(t.Context(), model.Live{Teams: []model.TeamKey{shop}, People: []string{"uid-ada", "uid-bob"}}))
	if it := b.itemByID(asked.ID); it.Gone || it.State != protocol.StateQueued {
		t.Errorf("the question is %s, gone %v", it.State, it.Gone)
	}
}

func TestAnAnswerThatComesWhileTheAskerStillWorksIsNotMissed(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	b.apply("fix")
	ada.take("fix")
	asked := answered[protocol.AskResult](ada, protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: fixID})
	bob.takeNext()
	bob.ok(protocol.Answer{QuestionID: asked.ID, Answer: "8443"})
	bob.refused(protocol.Answer{QuestionID: asked.ID, Answer: "443"}, protocol.CodeInvalid)
	ada.handBack(fixID, protocol.HandbackWaiting) // for the answer, which it has not seen
	offer := ada.take("fix")
	if last := offer.Context.Journal[len(offer.Context.Journal)-1]; !strings.Contains(last.Text, "8443") {
		t.Errorf("the journal ends with %+v", last)
	}
	ada.handBack(fixID, protocol.HandbackWaiting)
	ada.quiet() // once only
}

func TestAQuestionThatEndsWithoutAnAnswerLetsTheAskerGoOn(t *testing.T) {
	for name, end := range map[string]func(*bench, *agent, string){
		"handed back without a word": func(_ *bench, bob *agent, id string) {
			bob.ok(protocol.Accept{WorkItemID: id, Runtime: "command"})
			bob.ok(protocol.Handback{WorkItemID: id, Status: protocol.HandbackDone, Links: []protocol.Link{}})
		},
		"handed back silently": func(_ *bench, bob *agent, id string) {
			bob.ok(protocol.Accept{WorkItemID: id, Runtime: "command"})
			bob.ok(protocol.Handback{WorkItemID: id, Status: protocol.HandbackSilent, Links: []protocol.Link{}})
		},
		"its object deleted": func(b *bench, _ *agent, id string) {
			it := b.itemByID(id)
			facts := factsOf(it.Name, func(f *model.ItemFacts) { f.ID, f.BornID, f.Spec = "object", id, it.Spec })
			_, err := b.office.SyncItem(b.t.Context(), facts)
			b.must(err)
			b.must(b.office.ForgetItem(b.t.Context(), "object", false))
		},
		"canceled by whoever was asked": func(_ *bench, bob *agent, id string) {
			answered[protocol.WorkMoveResult](bob, protocol.WorkMove{WorkItemID: id, Status: protocol.MoveCanceled})
		},
		"put aside by whoever was asked": func(_ *bench, bob *agent, id string) {
			answered[protocol.WorkMoveResult](bob, protocol.WorkMove{WorkItemID: id, Status: protocol.MoveBlocked})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			ada, _ := b.connect("ada")
			bob, _ := b.connect("bob")
			b.apply("fix")
			ada.take("fix")
			asked := answered[protocol.AskResult](ada, protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: fixID})
			bob.offer()
			ada.handBack(fixID, protocol.HandbackWaiting)
			end(b, bob, asked.ID)
			offer := ada.take("fix")
			if len(offer.Context.Journal) < 2 && len(offer.Context.Feedback) == 0 {
				t.Errorf("the asker is not told: %+v", offer.Context)
			}
		})
	}
}

func TestItemsThatAreEachOthersParentsDoNotStartEachOtherForEver(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	parent := func(name string) func(*model.ItemFacts) {
		return func(f *model.ItemFacts) { f.Spec.Parent, f.Spec.ParentID = name, "uid-"+name }
	}
	b.apply("a", parent("b"))
	b.apply("b", parent("a"))
	b.apply("self", parent("self"))
	for _, name := range []string{"a", "b", "self"} {
		a.take(name)
		a.handBack("uid-"+name, protocol.HandbackBlocked)
	}
	a.quiet()
}
