package office_test

import (
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

var grace = protocol.Requester{ID: "U1", Name: "grace"}

func said(id, thread, text string) protocol.ChatMessage {
	return protocol.ChatMessage{MessageID: id, Channel: "C1", Thread: thread, Text: text, Author: grace, Participant: thread != ""}
}

// converse has grace write to ada, who takes the session.
func (b *bench) converse(text string) (*agent, protocol.Offer) {
	b.t.Helper()
	a, _ := b.connect("ada")
	answered[protocol.ChatMessageResult](a, said("m1", "", text))
	return a, a.takeNext()
}

func TestAChatMessageBeginsASessionOnce(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	first := said("m1", "", "Can you look at\nthe login page?")
	first.Files = []protocol.File{{ID: "F1", Name: "shot.png", MIMEType: "image/png", Size: 12, URL: "not even a URL"}}
	if got := answered[protocol.ChatMessageResult](a, first); got.Repeated {
		t.Error("the first message was repeated")
	}
	if got := answered[protocol.ChatMessageResult](a, first); !got.Repeated {
		t.Error("the same message again was not recognised")
	}
	b.restart()
	a, _ = b.connect("ada")
	if got := answered[protocol.ChatMessageResult](a, first); !got.Repeated {
		t.Error("the same message after a restart was not recognised")
	}
	offer := a.takeNext()
	w := offer.WorkItem
	if w.Kind != "chat" || w.Title != "Can you look at" || w.Trigger != protocol.TriggerHuman || w.Origin == nil {
		t.Fatalf("the session is %+v", w)
	}
	if o := w.Origin; o.Channel != "C1" || o.Thread != "m1" || o.Requester.ID != grace.ID || o.Requester.Name != grace.Name || len(o.Files) != 1 || o.Files[0].URL != "not even a URL" || o.About != nil {
		t.Errorf("its origin is %+v", o)
	}
	if body := offer.Context.Journal[0]; body.Author != "grace" || !strings.Contains(body.Text, "the login page?") || !strings.Contains(body.Text, "shot.png") {
		t.Errorf("it asks %+v", body)
	}
	a.quiet() // one session, one offer
	bob, _ := b.connect("bob")
	if got := answered[protocol.ChatMessageResult](bob, first); got.Repeated {
		t.Error("bob heard the message for the first time")
	}
}

func TestAReplyBeforeTheEndOfASessionIsFeedbackAndALaterOneANewSession(t *testing.T) {
	b := open(t)
	a, offer := b.converse("Can you help?")
	id := offer.WorkItem.ID
	answered[protocol.ChatMessageResult](a, said("m2", "m1", "It is urgent."))
	answered[protocol.ChatMessageResult](a, said("m3", "m1", "Really."))
	a.quiet() // it runs: what comes waits for its hand-back
	a.ok(protocol.Handback{WorkItemID: id, Status: protocol.HandbackDone, Summary: "Sure.", Links: []protocol.Link{}})
	again := a.takeNext()
	if again.WorkItem.ID != id {
		t.Fatalf("offered %s, want the session again", again.WorkItem.ID)
	}
	if f := again.Context.Feedback; len(f) != 2 || f[0].Body != "It is urgent." || f[1].Body != "Really." || f[0].Kind != protocol.FeedbackChat || f[0].Actor != "grace" {
		t.Errorf("the one round after the hand-back has the feedback %+v", f)
	}
	a.ok(protocol.Handback{WorkItemID: id, Status: protocol.HandbackDone, Summary: "Done.", Links: []protocol.Link{}})
	a.quiet()
	answered[protocol.ChatMessageResult](a, said("m4", "m1", "And another thing"))
	next := a.takeNext()
	if o := next.WorkItem.Origin; next.WorkItem.ID == id || o == nil || o.Thread != "m1" || o.About == nil || o.About.ID != id || o.About.State != protocol.AboutFinished {
		t.Errorf("after the end of the session: %+v, about %+v", next.WorkItem, o.About)
	}
}

func TestASessionFilesWork(t *testing.T) {
	b := open(t)
	a, offer := b.converse("Please fix the login, and tell ops about the disk")
	id := offer.WorkItem.ID
	a.ok(protocol.WorkCheck{WorkItemID: id, Request: "Fix the login"})
	link := protocol.WorkLink{WorkItemID: id, Ticket: "ACME-1", Request: "Fix the login"}
	linked := answered[protocol.WorkLinkResult](a, link)
	if linked.Item.TicketKey != "ACME-1" || linked.Item.Status != protocol.StateQueued || linked.Item.Kind != "ticket" || linked.Waiting || len(linked.Work) != 0 {
		t.Errorf("linked: %+v", linked)
	}
	if again := answered[protocol.WorkLinkResult](a, link); again.Item.ID != linked.Item.ID {
		t.Errorf("the same again made %s, not %s", again.Item.ID, linked.Item.ID)
	}
	a.refused(protocol.WorkCheck{WorkItemID: id, Request: "fix  the LOGIN"}, protocol.CodeInvalid)
	a.refused(protocol.WorkLink{WorkItemID: id, Ticket: "ACME-2", Request: "Fix the login"}, protocol.CodeInvalid)
	fileFor := protocol.WorkFileFor{WorkItemID: id, Ticket: "OPS-1", Request: "The disk is full", Assignee: "ops"}
	a.ok(fileFor)
	a.ok(fileFor)
	a.refused(protocol.WorkQueue{WorkItemID: id, Title: "The disk is full"}, protocol.CodeInvalid)
	queued := answered[protocol.WorkQueueResult](a, protocol.WorkQueue{WorkItemID: id, Title: "Write a summary", Body: "Of all of it"})
	if !queued.Waiting || len(queued.Work) != 1 || queued.Work[0].ID != linked.Item.ID || queued.Item.Kind != "task" {
		t.Errorf("queued: %+v", queued)
	}
	// The requester wants it first.
	answered[protocol.WorkMoveResult](a, protocol.WorkPlace{WorkItemID: queued.Item.ID, Position: protocol.PositionNext})
	a.ok(protocol.Handback{WorkItemID: id, Status: protocol.HandbackDone, Summary: "Filed.", Links: []protocol.Link{}})
	first := a.takeNext()
	if w := first.WorkItem; w.ID != queued.Item.ID || w.Origin == nil || w.Origin.Thread != "m1" || first.Context.Journal[0].Text != "Of all of it" {
		t.Errorf("offered first: %+v", w)
	}
	answered[protocol.ChatMessageResult](a, said("m9", "m1", "How is it going?"))
	a.handBack(queued.Item.ID, protocol.HandbackDone)
	session := a.takeNext()
	if o := session.WorkItem.Origin; session.WorkItem.Kind != "chat" || o.About == nil {
		t.Errorf("a question in the thread of work began %+v", session.WorkItem)
	}
}

func TestOnlyASessionThatRunsFiles(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("fix")
	a.take("fix")
	b.apply("of-bob", func(f *model.ItemFacts) { f.Spec.Person = "bob" })
	for name, ask := range map[string]func(id string) protocol.Message{
		"work_check": func(id string) protocol.Message { return protocol.WorkCheck{WorkItemID: id, Request: "x"} },
		"work_link": func(id string) protocol.Message {
			return protocol.WorkLink{WorkItemID: id, Request: "x", Ticket: "A-1"}
		},
		"work_file_for": func(id string) protocol.Message {
			return protocol.WorkFileFor{WorkItemID: id, Request: "x", Ticket: "A-1", Assignee: "y"}
		},
		"work_queue":  func(id string) protocol.Message { return protocol.WorkQueue{WorkItemID: id, Title: "x"} },
		"work_attach": func(id string) protocol.Message { return protocol.WorkAttach{WorkItemID: id, Target: "A-1"} },
	} {
		t.Run(name, func(t *testing.T) {
			a.refused(ask("uid-fix"), protocol.CodeInvalid)
			a.refused(ask("uid-of-bob"), protocol.CodeUnknownItem)
			a.refused(ask("nothing"), protocol.CodeUnknownItem)
		})
	}
	a.handBack("uid-fix", protocol.HandbackDone)
	session, offer := b.converseAs(a)
	session.handBack(offer.WorkItem.ID, protocol.HandbackDone)
	session.refused(protocol.WorkCheck{WorkItemID: offer.WorkItem.ID, Request: "x"}, protocol.CodeInvalid)
	session.refused(protocol.ChatMessage{MessageID: "m5", Channel: "C1", Author: grace}, protocol.CodeInvalid)
}

// converseAs begins a session on a connection.
func (b *bench) converseAs(a *agent) (*agent, protocol.Offer) {
	b.t.Helper()
	answered[protocol.ChatMessageResult](a, said("c1", "", "Hello"))
	return a, a.takeNext()
}
