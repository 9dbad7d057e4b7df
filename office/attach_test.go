package office_test

// These tests have a chat session add its request to work that there is already.

import (
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

func TestARequestIsAddedToExistingWork(t *testing.T) {
	b, a := pulled(t)
	b.event(workstate.EventTicketChanged, "t", ticket12())
	b.event(workstate.EventPullChanged, "p", shopPull(`"base"`, `"ticket":"ACME-12","base"`))
	answered[protocol.ChatMessageResult](a, said("m1", "", "Also mend the logout"))
	session := a.takeNext().WorkItem.ID
	b.apply("other")
	for _, target := range []string{"12", "#12", "acme/shop#12", "https://git.example.com/acme/shop/pull/12"} {
		got := answered[protocol.WorkAttachResult](a, protocol.WorkAttach{WorkItemID: session, Target: target}) // the same each time
		if got.Item.ID != "uid-fix" || got.Item.Status != protocol.StateQueued || got.URL != "https://tracker.example.com/browse/ACME-12" {
			t.Errorf("%s: the item is %+v with %s", target, got.Item, got.URL)
		}
		if !got.Waiting || len(got.Work) != 1 || got.Work[0].ID != "uid-other" {
			t.Errorf("%s: waiting %v among %+v", target, got.Waiting, got.Work)
		}
		if pr := got.Attached.PR; pr == nil || pr.Ref != "acme/shop#12" || pr.HeadRef != "fix-login" || !*pr.Own {
			t.Errorf("%s: attached to %+v", target, pr)
		}
		if ticket := got.Attached.Ticket; ticket == nil || ticket.Ref != "ACME-12" || ticket.Title != "Login fails" {
			t.Errorf("%s: attached to %+v", target, ticket)
		}
	}
	got := answered[protocol.WorkAttachResult](a, protocol.WorkAttach{WorkItemID: session, Target: "#12", Request: "And the icon"})
	if got.Item.ID != "uid-fix" {
		t.Errorf("a second request went to %+v", got.Item)
	}
	a.refused(protocol.WorkCheck{WorkItemID: session, Request: "and the ICON"}, protocol.CodeInvalid) // it is filed
	a.handBack(session, protocol.HandbackDone)
	a.take("other") // the requester has not said where the request goes, so it stands last
	a.ok(done("other"))
	offer := a.take("fix")
	f := offer.Context.Feedback
	if len(f) != 2 || f[0].Kind != protocol.FeedbackChat || f[0].Actor != "grace" || f[0].Body != "Also mend the logout" || f[1].Body != "And the icon" {
		t.Errorf("the feedback is %+v", f)
	}
	if chats := offer.Context.Wake.Chats; len(chats) != 1 || chats[0].Thread != "m1" || chats[0].Why.Role != protocol.WhyTrigger || chats[0].Messages[0].Text != "Also mend the logout" {
		t.Errorf("the wake's chats are %+v", chats)
	}
	a.ok(done("fix"))
	// The thread is the item's now: a reply in it begins a session about the item, and its result is reported there.
	report := answered[protocol.ChatReportResult](a, protocol.ChatReport{WorkItemID: "uid-fix", Kind: protocol.TellResult})
	if !report.Post || len(report.Threads) != 1 || report.Threads[0].Thread != "m1" {
		t.Errorf("the report is %+v", report)
	}
}

func TestALongMessageIsAddedWhole(t *testing.T) {
	b, a := pulled(t)
	b.event(workstate.EventPullChanged, "p", shopPull())
	long := "Also mend the logout. " + strings.Repeat("It never ends. ", 200)
	answered[protocol.ChatMessageResult](a, said("m1", "", long))
	session := a.takeNext().WorkItem.ID
	for range 2 {
		if got := answered[protocol.WorkAttachResult](a, protocol.WorkAttach{WorkItemID: session, Target: "#12"}); got.Item.ID != "uid-fix" {
			t.Errorf("it went to %+v", got.Item)
		}
	}
	a.handBack(session, protocol.HandbackDone)
	if f := a.take("fix").Context.Feedback; len(f) != 1 || f[0].Body != strings.TrimSpace(long) {
		t.Errorf("the feedback is %+v", f)
	}
}

func TestARequestIsAddedToWorkThatNoItemCarries(t *testing.T) {
	for name, tc := range map[string]struct{ target, kind string }{
		"a ticket that the person has":             {"acme-12", "ticket"},
		"a pull request that the person opened":    {"#12", "review_feedback"},
		"a ticket by its page in the tracker":      {"https://tracker.example.com/browse/ACME-12", "ticket"},
		"a pull request by its key":                {"acme/shop#12", "review_feedback"},
		"a ticket that has a page without its key": {"https://board.example.com/c/77", "ticket"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, taking)
			a, session := b.converse("Also mend the logout")
			page := "https://tracker.example.com/browse/ACME-12"
			if strings.Contains(tc.target, "board") {
				page = tc.target + "/"
			}
			b.event(workstate.EventTicketChanged, "t", ticket12("https://tracker.example.com/browse/ACME-12", page, `"status"`, `"assignee":{"login":"ada"},"by":{"login":"ada"},"status"`))
			b.event(workstate.EventPullChanged, "p", shopPull())
			got := answered[protocol.WorkAttachResult](a, protocol.WorkAttach{WorkItemID: session.WorkItem.ID, Target: tc.target})
			if got.Item.Kind != tc.kind || got.Waiting || len(got.Work) != 0 {
				t.Errorf("the item is %+v, waiting %v", got.Item, got.Waiting)
			}
			a.handBack(session.WorkItem.ID, protocol.HandbackDone)
			offer := a.takeNext()
			if offer.WorkItem.ID != got.Item.ID || offer.WorkItem.Trigger != protocol.TriggerHuman || offer.WorkItem.Origin == nil || len(offer.Context.Feedback) != 1 {
				t.Errorf("the offer is %+v", offer)
			}
		})
	}
}

func TestRequestsThatAreNotAdded(t *testing.T) {
	for name, tc := range map[string]struct {
		events    []string // kind and data in turn
		carried   string   // a ticket that an item of ada's is about
		target    string
		confirmed bool
		code      protocol.Code // empty: it is added
		says      string
	}{
		"to a ticket that a colleague has": {
			[]string{workstate.EventTicketChanged, ticket12(`"status"`, `"assignee":{"login":"bob"},"status"`)}, "ACME-12", "ACME-12", true, protocol.CodeInvalid, "not your work"},
		"to a ticket that nobody has": {
			[]string{workstate.EventTicketChanged, ticket12()}, "", "ACME-12", true, protocol.CodeInvalid, "not your work"},
		"to a ticket that a human has, where ada works on it": {
			[]string{workstate.EventTicketChanged, ticket12(`"status"`, `"assignee":{"login":"grace-h"},"status"`)}, "ACME-12", "ACME-12", false, "", ""},
		"to a colleague's pull request": {
			[]string{workstate.EventPullChanged, shopPull(`"ada"`, `"bob"`)}, "", "#12", true, protocol.CodeInvalid, "not your work"},
		"to a human's pull request": {
			[]string{workstate.EventPullChanged, shopPull(`"ada"`, `"grace-h"`)}, "", "#12", true, protocol.CodeInvalid, "not your work"},
		"to a merged pull request": {
			[]string{workstate.EventPullChanged, shopPull(`"open"`, `"merged"`)}, "", "#12", true, protocol.CodeInvalid, "is merged"},
		"to a closed pull request": {
			[]string{workstate.EventPullChanged, shopPull(`"open"`, `"closed"`)}, "", "#12", true, protocol.CodeInvalid, "is closed"},
		"to a ticket that is done": {
			[]string{workstate.EventTicketChanged, ticket12("ready", "done")}, "ACME-12", "ACME-12", true, protocol.CodeInvalid, "is done"},
		"to a ticket that was given up": {
			[]string{workstate.EventTicketChanged, ticket12("ready", "canceled")}, "ACME-12", "ACME-12", true, protocol.CodeInvalid, "is canceled"},
		"to a pull request that was reviewed": {
			[]string{workstate.EventPullChanged, shopPull(), workstate.EventPullReviewed, review("mallory")}, "", "#12", false, protocol.CodeInvalid, "in review"},
		"to a pull request that was reviewed, once confirmed": {
			[]string{workstate.EventPullChanged, shopPull(), workstate.EventPullReviewed, review("mallory")}, "", "#12", true, "", ""},
		"to a draft that was reviewed": {
			[]string{workstate.EventPullChanged, shopPull(`"base"`, `"draft":true,"base"`), workstate.EventPullReviewed, review("mallory")}, "", "#12", false, "", ""},
		"to a pull request whose ticket is in review": {
			[]string{workstate.EventTicketChanged, ticket12("ready", "review"), workstate.EventPullChanged, shopPull("fix-login", "acme-12")}, "", "#12", false, protocol.CodeInvalid, "in review"},
		"to a ticket in review": {
			[]string{workstate.EventTicketChanged, ticket12("ready", "review")}, "ACME-12", "ACME-12", false, protocol.CodeInvalid, "in review"},
		"to a ticket in review, once confirmed": {
			[]string{workstate.EventTicketChanged, ticket12("ready", "review")}, "ACME-12", "ACME-12", true, "", ""},
		"to what nobody knows":           {nil, "", "OPS-77", true, protocol.CodeNotFound, "not known"},
		"to a number that nobody knows":  {nil, "", "#77", true, protocol.CodeNotFound, "not known"},
		"to a number with many meanings": {[]string{workstate.EventPullChanged, shopPull(), workstate.EventPullChanged, shopPull("acme/shop", "acme/web")}, "", "#12", true, protocol.CodeInvalid, "acme/shop#12, acme/web#12"},
		"to nothing":                     {nil, "", " ", true, protocol.CodeInvalid, "target"},
		"to a document":                  {[]string{workstate.EventDocChanged, `{"id":"d-88","title":"x","author":{"login":"ada"}}`}, "", "d-88", true, protocol.CodeInvalid, "is a document"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, taking)
			a, session := b.converse("Also mend the logout")
			if tc.carried != "" {
				b.apply("fix", aboutTicket(tc.carried))
			}
			for i := 0; i < len(tc.events); i += 2 {
				b.event(tc.events[i], string(rune('a'+i)), tc.events[i+1])
			}
			before := b.openItems(t)
			answer := a.request(protocol.WorkAttach{WorkItemID: session.WorkItem.ID, Target: tc.target, Confirmed: &tc.confirmed})
			got, refused := answer.(protocol.Error)
			switch {
			case tc.code == "" && refused:
				t.Fatalf("it was refused: %+v", got)
			case tc.code == "":
			case got.Code != tc.code || !strings.Contains(got.Message, tc.says):
				t.Errorf("answered with %+v, want %s with %q", answer, tc.code, tc.says)
			case b.openItems(t) != before:
				t.Errorf("there were %d open items, and are %d", before, b.openItems(t))
			}
		})
	}
}

func review(login string) string {
	return `{"repo":"acme/shop","number":12,"review":{"id":"1","author":{"login":"` + login + `"},"state":"commented","body":"Hm."}}`
}

// openItems counts the team's items that are neither done nor canceled.
func (b *bench) openItems(t *testing.T) int {
	t.Helper()
	view, err := b.office.Team(t.Context(), shop)
	b.must(err)
	n := 0
	for state, count := range view.Items {
		if state != protocol.StateDone && state != protocol.StateCanceled {
			n += count
		}
	}
	return n
}

func TestOnlyAChatSessionThatRunsAddsRequests(t *testing.T) {
	b, a := pulled(t)
	b.apply("plain")
	a.take("plain")
	a.refused(protocol.WorkAttach{WorkItemID: "uid-plain", Target: "#12"}, protocol.CodeInvalid)
	a.refused(protocol.WorkAttach{WorkItemID: "uid-none", Target: "#12"}, protocol.CodeUnknownItem)
	a.ok(done("plain"))
	answered[protocol.ChatMessageResult](a, said("m1", "", "Also mend the logout"))
	session := a.offer().WorkItem.ID
	a.refused(protocol.WorkAttach{WorkItemID: session, Target: "#12"}, protocol.CodeInvalid) // not accepted yet
	a.ok(protocol.Accept{WorkItemID: session, Runtime: "command"})
	bob, _ := b.connect("bob")
	bob.refused(protocol.WorkAttach{WorkItemID: session, Target: "#12"}, protocol.CodeUnknownItem)
	if it := b.item("fix"); it.State != protocol.StateDone {
		t.Errorf("the item is %s", it.State)
	}
}
