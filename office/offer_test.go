package office_test

// These tests look at what an offer brings along.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

func TestFeedbackJoinsAQueuedRoundAndWhatComesWhileItRunsTheOneAfter(t *testing.T) {
	b, a := pulled(t)
	b.apply("other")
	a.take("other") // so that fix stays queued
	for i := range 3 {
		b.event(workstate.EventPullCommented, fmt.Sprint("queued", i), onPull(fmt.Sprint("q", i), "Grace", fmt.Sprint("queued ", i)))
	}
	a.ok(done("other"))
	first := a.take("fix")
	for i := range 3 {
		b.event(workstate.EventPullCommented, fmt.Sprint("running", i), onPull(fmt.Sprint("r", i), "Grace", fmt.Sprint("running ", i)))
	}
	a.ok(done("fix"))
	second := a.take("fix")
	for name, tc := range map[string]struct {
		offer protocol.Offer
		word  string
	}{"the queued round": {first, "queued"}, "the round after": {second, "running"}} {
		f := tc.offer.Context.Feedback
		if len(f) != 3 {
			t.Fatalf("%s has %d pieces of feedback", name, len(f))
		}
		for i := range f {
			if want := fmt.Sprint(tc.word, " ", i); f[i].Body != want {
				t.Errorf("%s: piece %d is %q, want %q", name, i, f[i].Body, want)
			}
		}
	}
	a.ok(done("fix"))
	a.quiet()
}

func TestTheWakeIsCutToTheLimitsOfTheTeamAndCountsWhatIsLeftOut(t *testing.T) {
	b := open(t, taking, func(team *model.Team) {
		team.Config.Pipeline.Context = protocol.TeamContext{BodyChars: 20, Comments: 1, Reviews: 1, Threads: 1, Messages: 1, Items: 3}
	})
	a, _ := b.connect("ada")
	b.event(workstate.EventTicketChanged, "t", ticket12("Nobody can log in.", "Nobody can log in anywhere.", `"status"`, `"parent":"ACME-1","status"`))
	b.event(workstate.EventTicketChanged, "parent", ticket12("ACME-12", "ACME-1"))
	for n := 12; n < 16; n++ {
		b.event(workstate.EventPullChanged, fmt.Sprint("p", n), shopPull("12", fmt.Sprint(n), "fix-login", fmt.Sprint("acme-12-", n), `"ada"`, `"mallory"`))
	}
	for i := range 3 {
		b.event(workstate.EventTicketCommented, fmt.Sprint("c", i), onTicket(fmt.Sprint(i), "mallory", fmt.Sprint("comment ", i)))
		b.event(workstate.EventPullReviewComment, fmt.Sprint("i", i), fmt.Sprintf(`{"repo":"acme/shop","number":15,"author":{"login":"Grace"},`+
			`"comment":{"id":"%d","path":"a.go","line":7,"body":"inline %d","threadId":"t%d"}}`, i, i, i))
	}
	b.apply("fix", aboutTicket("ACME-12"))
	wake := a.take("fix").Context.Wake
	if wake == nil || len(wake.Tickets) != 1 || len(wake.PRs) != 2 || wake.Omitted == nil || *wake.Omitted != 3 {
		t.Fatalf("the wake is %+v", wake)
	}
	ticket, pr := wake.Tickets[0], wake.PRs[0]
	if ticket.Why.Role != protocol.WhySubject || ticket.Description != "Nobody can log in a…" {
		t.Errorf("the ticket is %+v", ticket)
	}
	if c := ticket.Comments; len(c) != 1 || c[0].Body != "comment 2" || *ticket.MoreComments != 2 {
		t.Errorf("its comments are %+v", c)
	}
	if r := ticket.Reviews; len(r) != 1 || r[0].Body != "inline 2" || r[0].PR != "acme/shop#15" || *r[0].Line != 7 || *ticket.MoreReviews != 2 {
		t.Errorf("its reviews are %+v", r)
	}
	if pr.Ref != "acme/shop#15" || pr.Why.Role != protocol.WhyLinked || pr.Why.Source != "ACME-12" || pr.UnresolvedThreads != 3 || len(pr.Threads) != 1 || pr.Threads[0].Body != "inline 2" {
		t.Errorf("the pull request is %+v", pr)
	}
	if wake.Merge != nil || wake.FailedChecks != nil {
		t.Error("the wake tells of a merge")
	}
}

func TestASessionAboutEarlierWorkBringsItsJournalAndSubjects(t *testing.T) {
	_, a := pulled(t)
	answered[protocol.ChatMessageResult](a, said("m1", "", "Mend the logout too"))
	session := a.takeNext().WorkItem.ID
	answered[protocol.WorkAttachResult](a, protocol.WorkAttach{WorkItemID: session, Target: "#12"})
	a.handBack(session, protocol.HandbackDone)
	a.take("fix")
	a.ok(protocol.Journal{WorkItemID: "uid-fix", Text: "the cause is a race"})
	a.ok(done("fix"))
	answered[protocol.ChatMessageResult](a, said("m2", "m1", "What was it?"))
	offer := a.takeNext()
	if about := offer.WorkItem.Origin.About; about == nil || about.ID != "uid-fix" {
		t.Fatalf("the session is about %+v", about)
	}
	texts := []string{}
	for _, e := range offer.Context.Journal {
		texts = append(texts, e.Text)
	}
	if len(texts) != 3 || texts[0] != "What was it?" || !strings.Contains(texts[1], "Body of fix") || texts[2] != "the cause is a race" {
		t.Errorf("the journal is %q", texts)
	}
	if s := offer.Context.Subjects; len(s) != 1 || s[0].Ref != "acme/shop#12" {
		t.Errorf("the subjects are %+v", s)
	}
}

func TestASubjectThatTheOfficeNeverHeardOfIsShownAsItsUserWroteIt(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	written := protocol.Subject{Type: "pr", Ref: "acme/shop#12", Title: "Mend login", URL: "https://git.example.com/acme/shop/pull/12", HeadRef: "fix"}
	b.apply("fix", func(f *model.ItemFacts) { f.Spec.Subject = &written })
	offer := a.take("fix")
	if s := offer.Context.Subjects; len(s) != 1 || s[0].Title != written.Title || s[0].URL != written.URL || s[0].HeadRef != "fix" || s[0].Own != nil {
		t.Errorf("the subjects are %+v", s)
	}
	if offer.Context.Wake != nil {
		t.Errorf("the wake is %+v", offer.Context.Wake)
	}
	a.ok(done("fix"))
	b.apply("file", func(f *model.ItemFacts) {
		f.Spec.Subject = &protocol.Subject{Type: "file", Ref: "README.md", Title: "The page"}
	})
	if s := a.take("file").Context.Subjects; len(s) != 1 || s[0].Type != "file" || s[0].Title != "The page" {
		t.Errorf("the subjects are %+v", s)
	}
}

func TestAWholeOfferFitsAFrameWhateverWasSaid(t *testing.T) {
	b, a := pulled(t)
	b.apply("other")
	a.take("other")
	for i := range 5 {
		b.event(workstate.EventPullCommented, fmt.Sprint(i), onPull(fmt.Sprint(i), "Grace", strings.Repeat("x", 400_000)+fmt.Sprint(i)))
	}
	a.ok(done("other"))
	offer := a.take("fix")
	f := offer.Context.Feedback
	if n := len(f); n == 0 || n == 5 || !strings.HasSuffix(f[n-1].Body, "x4") {
		t.Errorf("%d pieces of feedback are left", n)
	}
	if note := offer.Context.Journal[1]; note.Author != "office" || !strings.Contains(note.Text, "older pieces of feedback") {
		t.Errorf("what is left out is told as %+v", note)
	}
}
