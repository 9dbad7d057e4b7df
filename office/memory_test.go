package office_test

// These tests tell the office what agents made, and ask it about the past and the world outside.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

// shopPR is the pull request acme/shop#n as an agent names it.
func shopPR(n int) *protocol.MadePull {
	return &protocol.MadePull{Repo: protocol.Repo{Owner: "acme", Name: "shop"}, Number: n, URL: fmt.Sprint("https://git.example.com/acme/shop/pull/", n)}
}

// nothingToReview is a hand-back as done that names nothing.
func nothingToReview(name string) protocol.Handback {
	hb := done(name)
	hb.ToReview = nil
	return hb
}

func TestWhatAnAgentMadeIsNotedOnItsItemAndPassesTheGate(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	b.apply("fix")
	a.take("fix")
	made := protocol.WorkMade{WorkItemID: "uid-fix", Ticket: "ACME-12", PR: shopPR(12)}
	a.sendAs("m-made", made)
	a.reply("m-made")
	a.sendAs("m-made", made) // repeated
	if _, ok := a.reply("m-made").(protocol.Ack); !ok {
		t.Error("the repeated message was not acknowledged")
	}
	a.ok(made)
	if got := b.item("fix").Round.Produced; len(got) != 2 || got[0] != "acme/shop#12" || got[1] != "ACME-12" {
		t.Errorf("the round made %q", got)
	}
	prs := answered[protocol.PrListResult](a, protocol.PrList{State: protocol.ListOpen, Author: "ada", Limit: 9}).PRs
	if len(prs) != 1 || prs[0].Ref != "acme/shop#12" || prs[0].Ticket != "ACME-12" || prs[0].Title != "acme/shop#12" || prs[0].CI != protocol.ChecksNone {
		t.Errorf("the pull requests are %+v", prs)
	}
	a.ok(nothingToReview("fix"))
	if it := b.item("fix"); it.State != protocol.StateDone {
		t.Errorf("the item is %s: %s", it.State, it.End.Message)
	}
	// What an earlier round made is nothing that this one has to show.
	b.event(workstate.EventPullCommented, "1", onPull("1", "Grace", "Why?"))
	a.take("fix")
	a.ok(nothingToReview("fix"))
	if it := b.item("fix"); it.State != protocol.StateBlocked || it.End.Reason != model.ReasonNothingToReview {
		t.Errorf("the item is %s: %s", it.State, it.End.Reason)
	}
}

func TestWhatAnAgentMadeIsRefused(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	b.apply("theirs", of("bob"))
	bob.take("theirs")
	bob.ok(protocol.WorkMade{WorkItemID: "uid-theirs", PR: shopPR(7)})
	b.event(workstate.EventPullChanged, "1", shopPull("12", "8", `"ada"`, `"grace-h"`))
	b.event(workstate.EventPullChanged, "2", shopPull("12", "9", `"ada"`, `"acme-bot"`))
	b.apply("fix")
	a.refused(protocol.WorkMade{WorkItemID: "uid-fix", Ticket: "ACME-1"}, protocol.CodeInvalid) // offered, not accepted
	a.take("fix")
	b.apply("later")
	for name, tc := range map[string]struct {
		made protocol.WorkMade
		code protocol.Code
	}{
		"nothing":                                {protocol.WorkMade{WorkItemID: "uid-fix"}, protocol.CodeInvalid},
		"in a queued item":                       {protocol.WorkMade{WorkItemID: "uid-later", Ticket: "ACME-1"}, protocol.CodeInvalid},
		"in somebody else's item":                {protocol.WorkMade{WorkItemID: "uid-theirs", Ticket: "ACME-1"}, protocol.CodeUnknownItem},
		"in no item":                             {protocol.WorkMade{WorkItemID: "uid-none", Ticket: "ACME-1"}, protocol.CodeUnknownItem},
		"a ticket without a key":                 {protocol.WorkMade{WorkItemID: "uid-fix", Ticket: " \n"}, protocol.CodeInvalid},
		"a ticket with a key that is no key":     {protocol.WorkMade{WorkItemID: "uid-fix", Ticket: strings.Repeat("x", 301)}, protocol.CodeInvalid},
		"a repository that is none":              {protocol.WorkMade{WorkItemID: "uid-fix", PR: &protocol.MadePull{Repo: protocol.Repo{Owner: "a b", Name: "#"}, Number: 1}}, protocol.CodeInvalid},
		"a repository without an owner":          {protocol.WorkMade{WorkItemID: "uid-fix", PR: &protocol.MadePull{Repo: protocol.Repo{Name: "x"}, Number: 1}}, protocol.CodeInvalid},
		"a pull request that a colleague opened": {protocol.WorkMade{WorkItemID: "uid-fix", PR: shopPR(7)}, protocol.CodeInvalid},
		"a pull request that a human opened":     {protocol.WorkMade{WorkItemID: "uid-fix", PR: shopPR(8)}, protocol.CodeInvalid},
	} {
		t.Run(name, func(_ *testing.T) { a.refused(tc.made, tc.code) })
	}
	if got := b.item("fix").Round.Produced; len(got) != 0 {
		t.Errorf("refused messages left %q", got)
	}
	a.ok(protocol.WorkMade{WorkItemID: "uid-fix", PR: shopPR(9)}) // who opened it at the code host is nobody that the team knows: ada
	if prs := answered[protocol.PrListResult](a, protocol.PrList{State: protocol.ListOpen, Author: "ada", Limit: 9}).PRs; len(prs) != 1 || prs[0].Number != 9 {
		t.Errorf("ada's pull requests are %+v", prs)
	}
}

func TestADocumentIsLinkedOnItsTicketByAnAct(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("fix", aboutTicket("ACME-12"))
	a.take("fix")
	doc := protocol.Doc{ID: "d-88", Title: "How login works", URL: "https://docs.example.com/d/88"}
	linked := func() string {
		t.Helper()
		act := a.wait(func(f protocol.Frame) bool { return f.Message.Type() == protocol.TypeAct }).Message.(protocol.Act)
		if len(act.Ops) != 1 {
			t.Fatalf("the act has %d changes", len(act.Ops))
		}
		return string(act.Ops[0])
	}
	a.ok(protocol.DocLink{WorkItemID: "uid-fix", Doc: doc})
	if op := linked(); !strings.Contains(op, `"link_doc"`) || !strings.Contains(op, `"ticket":"ACME-12"`) || !strings.Contains(op, doc.URL) {
		t.Errorf("the act's change is %s", op)
	}
	a.ok(protocol.DocLink{WorkItemID: "uid-fix", Doc: doc}) // the same again: one act
	a.ok(protocol.DocLink{WorkItemID: "uid-fix", Doc: doc, Ticket: "OPS-1"})
	if op := linked(); !strings.Contains(op, `"ticket":"OPS-1"`) {
		t.Errorf("the second act's change is %s", op)
	}
	a.quiet()
	a.ok(nothingToReview("fix"))
	if it := b.item("fix"); it.State != protocol.StateDone {
		t.Errorf("a document is nothing to review: %s", it.End.Message)
	}
	b.apply("free")
	a.take("free")
	a.ok(protocol.DocLink{WorkItemID: "uid-free", Doc: doc}) // no ticket, nothing to link it on
	a.quiet()
	a.refused(protocol.DocLink{WorkItemID: "uid-fix", Doc: doc}, protocol.CodeInvalid)
	a.refused(protocol.DocLink{WorkItemID: "uid-none", Doc: doc}, protocol.CodeUnknownItem)
	a.refused(protocol.DocLink{WorkItemID: "uid-free", Doc: edit(doc, func(d *protocol.Doc) { d.ID = "" })}, protocol.CodeInvalid)
	a.refused(protocol.DocLink{WorkItemID: "uid-free", Doc: doc, Ticket: "\t"}, protocol.CodeInvalid)
}

func TestNotesStayPrivate(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("theirs", of("bob"))
	page := &protocol.Doc{ID: "notes", Title: "Notes", URL: "https://docs.example.com/n"}
	a.ok(protocol.NotesChanged{Change: protocol.NoteAdded, Note: "the password is swordfish", Doc: page})
	a.ok(protocol.NotesChanged{Change: protocol.NoteMigrated, Count: new(7)})
	a.ok(protocol.NotesChanged{Change: protocol.NoteEditIgnored, Edit: &protocol.NoteEdit{Author: "mallory", At: "noon", Version: "v9"}})
	a.refused(protocol.NotesChanged{Change: protocol.NoteAdded, WorkItemID: "uid-none"}, protocol.CodeUnknownItem)
	a.refused(protocol.NotesChanged{Change: protocol.NoteAdded, WorkItemID: "uid-theirs"}, protocol.CodeUnknownItem)
	a.refused(protocol.NotesChanged{Change: protocol.NoteAdded, Doc: &protocol.Doc{URL: "https://x.example"}}, protocol.CodeInvalid)
	log := b.logs.String()
	for _, want := range []string{"change=added bytes=25", "change=migrated bytes=0 count=7", "author=mallory version=v9"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	if strings.Contains(log, "swordfish") {
		t.Error("the log tells of a note")
	}
	b.must(b.store.View(t.Context(), func(r store.Reader) error {
		if doc, err := r.Doc(shop, "notes"); err != nil || doc.Author != "ada" {
			t.Errorf("the page is %+v (%v)", doc, err)
		}
		return nil
	}))
	if got := answered[protocol.RecallResult](a, protocol.Recall{Query: "swordfish", Limit: 5}); len(got.Moments) != 0 {
		t.Errorf("the note is recalled: %+v", got)
	}
}

func TestCurrentWorkTellsOfOpenTicketsAndPullRequests(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	if got := answered[protocol.CurrentWorkResult](a, protocol.CurrentWork{}).Text; !strings.Contains(got, "no open tickets") {
		t.Errorf("of nothing: %q", got)
	}
	b.event(workstate.EventTicketChanged, "1", ticket12(`"status"`, `"assignee":{"login":"ada"},"by":{"login":"ada"},"status"`))
	b.event(workstate.EventTicketChanged, "2", ticket12("ACME-12", "ACME-13", "ready", "done", `"status"`, `"assignee":{"login":"ada"},"status"`))
	b.event(workstate.EventTicketChanged, "3", ticket12("ACME-12", "ACME-14", `"status"`, `"assignee":{"login":"bob"},"by":{"login":"bob"},"status"`))
	b.event(workstate.EventPullChanged, "4", shopPull())
	b.event(workstate.EventPullChanged, "5", shopPull("12", "13", `"open"`, `"merged"`))
	b.apply("fix")
	got := answered[protocol.CurrentWorkResult](a, protocol.CurrentWork{}).Text
	for _, want := range []string{"ACME-12 (ready): Login fails", "acme/shop#12", "Title of fix"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not tell of %s: %s", want, got)
		}
	}
	for _, other := range []string{"ACME-13", "ACME-14", "acme/shop#13"} {
		if strings.Contains(got, other) {
			t.Errorf("it tells of %s: %s", other, got)
		}
	}
}

func TestTheTicketOfAPullRequestThatIsAboutToBeOpened(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	ask := func(head, title, body string) protocol.TicketPrsResult {
		t.Helper()
		return answered[protocol.TicketPrsResult](a, protocol.TicketPrs{HeadRef: head, Title: title, Body: body})
	}
	if got := ask("feature/acme-12-x", "", ""); got.Ticket != "ACME-12" || got.Status != "" || got.PRs == nil {
		t.Errorf("where nothing is known: %+v", got)
	}
	b.event(workstate.EventTicketChanged, "1", ticket12("ready", "done"))
	b.event(workstate.EventTicketChanged, "2", ticket12("ACME-12", "acme/web#3"))
	b.event(workstate.EventPullChanged, "3", shopPull("fix-login", "acme-12", `"open"`, `"merged"`))
	b.event(workstate.EventPullChanged, "4", shopPull("12", "13", "fix-login", "acme-12-again", `"ada"`, `"mallory"`))
	got := ask("acme-12", "", "")
	if got.Ticket != "ACME-12" || got.Status != protocol.TicketStatusDone || len(got.PRs) != 2 || got.PRs[0].Ref != "acme/shop#13" ||
		got.PRs[0].AuthorKind != protocol.AuthorHuman || got.PRs[1].State != protocol.PullMerged || got.PRs[1].AuthorKind != protocol.AuthorAgent {
		t.Errorf("it has %+v", got)
	}
	if got := ask("main", "x", "see ACME-12"); got.Ticket != "" || len(got.PRs) != 0 {
		t.Errorf("a mention gives %+v", got)
	}
	if got := ask("main", "UTF-8", "fixes #3"); got.Ticket != "acme/web#3" {
		t.Errorf("the number of a known ticket gives %+v", got)
	}
}

func TestPullRequestsAreListedAsAsked(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	b.event(workstate.EventPullChanged, "1", shopPull())
	b.event(workstate.EventPullChanged, "2", shopPull("12", "13", `"ada"`, `"grace-h"`))
	b.event(workstate.EventPullChanged, "3", shopPull("12", "14", "acme/shop", "acme/web", `"base"`, `"ticket":"OPS-1","base"`))
	b.event(workstate.EventPullChanged, "4", shopPull("12", "15", `"open"`, `"merged"`))
	b.event(workstate.EventPullChanged, "5", shopPull("12", "16", `"open"`, `"closed"`))
	for name, tc := range map[string]struct {
		ask  protocol.PrList
		want string
		more int
	}{
		"open ones, newest first": {protocol.PrList{State: protocol.ListOpen, Limit: 9}, "acme/web#14 acme/shop#13 acme/shop#12", 0},
		"all, open ones first":    {protocol.PrList{State: protocol.ListAll, Limit: 1000}, "acme/web#14 acme/shop#13 acme/shop#12 acme/shop#16 acme/shop#15", 0},
		"merged ones":             {protocol.PrList{State: protocol.ListMerged, Limit: 9}, "acme/shop#15", 0},
		"closed ones":             {protocol.PrList{State: protocol.ListClosed, Limit: 9}, "acme/shop#16", 0},
		"of a handle":             {protocol.PrList{State: protocol.ListOpen, Author: "ada", Limit: 9}, "acme/web#14 acme/shop#12", 0},
		"of a login":              {protocol.PrList{State: protocol.ListOpen, Author: "grace-h", Limit: 9}, "acme/shop#13", 0},
		"of a ticket":             {protocol.PrList{State: protocol.ListAll, Ticket: "OPS-1", Limit: 9}, "acme/web#14", 0},
		"of a repository":         {protocol.PrList{State: protocol.ListOpen, Repo: "acme/shop", Limit: 1}, "acme/shop#13", 1},
		"of nobody":               {protocol.PrList{State: protocol.ListAll, Author: "eve", Limit: 9}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := answered[protocol.PrListResult](a, tc.ask)
			refs := []string{}
			for _, p := range got.PRs {
				refs = append(refs, p.Ref)
			}
			if list := strings.Join(refs, " "); list != tc.want || got.More != tc.more {
				t.Errorf("listed are %s and %d more, want %s and %d", list, got.More, tc.want, tc.more)
			}
		})
	}
	a.refused(protocol.PrList{State: protocol.ListOpen}, protocol.CodeInvalid)
}

func TestALogOfACheckCannotBeRead(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	a.refused(protocol.CiLog{URL: "https://ci.example.com/1", Lines: 10}, protocol.CodeUnsupported)
}

func TestRecallFindsWhatAPersonHadToDoWith(t *testing.T) {
	b, a := pulled(t)
	b.event(workstate.EventPullCommented, "0", onPull("0", "mallory", "A zebra crossing?"))
	b.event(workstate.EventPullCommented, "1", onPull("1", "grace-h", "The zebra stripes are wrong."))
	a.take("fix")
	a.ok(protocol.Journal{WorkItemID: "uid-fix", Text: "painted the zebra"})
	a.ok(done("fix"))
	bob, _ := b.connect("bob")
	find := func(m protocol.Recall) string {
		t.Helper()
		m.Limit = 9
		kinds := []string{}
		for _, moment := range answered[protocol.RecallResult](a, m).Moments {
			kinds = append(kinds, moment.Kind)
		}
		return strings.Join(kinds, " ")
	}
	for name, tc := range map[string]struct {
		ask  protocol.Recall
		want string
	}{
		"everything, newest first":    {protocol.Recall{Query: "zebra"}, "journal pr.commented pr.commented"},
		"with a human, by name":       {protocol.Recall{Query: "zebra", With: "grace"}, "journal pr.commented"}, // she asked for the item
		"with a human, by identity":   {protocol.Recall{Query: "zebra", With: "grace-h"}, "journal pr.commented"},
		"with a stranger":             {protocol.Recall{Query: "zebra", With: "mallory"}, "pr.commented"},
		"with somebody else":          {protocol.Recall{Query: "zebra", With: "bob"}, ""},
		"about a pull request":        {protocol.Recall{Query: "zebra", About: "#12"}, "journal pr.commented pr.commented"},
		"about a pull request's page": {protocol.Recall{Query: "stripes", About: "https://git.example.com/acme/shop/pull/12#c1"}, "pr.commented"},
		"since a day to come":         {protocol.Recall{Query: "zebra", Since: "2999-01-01"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := find(tc.ask); got != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
	if got := answered[protocol.RecallResult](a, protocol.Recall{Query: "zebra", Limit: 1}); len(got.Moments) != 1 || !got.More {
		t.Errorf("at most one: %+v", got)
	}
	if got := answered[protocol.RecallResult](bob, protocol.Recall{Query: "zebra", Limit: 9}); len(got.Moments) != 0 {
		t.Errorf("bob recalls %+v", got)
	}
	for name, tc := range map[string]struct {
		ask  protocol.Recall
		code protocol.Code
	}{
		"nothing to look for":          {protocol.Recall{Query: "-zebra", Limit: 9}, protocol.CodeInvalid},
		"no limit":                     {protocol.Recall{Query: "zebra"}, protocol.CodeInvalid},
		"about what nobody knows":      {protocol.Recall{Query: "zebra", About: "#99", Limit: 9}, protocol.CodeNotFound},
		"about what has many meanings": {protocol.Recall{Query: "zebra", About: "#13", Limit: 9}, protocol.CodeInvalid},
		"about nothing":                {protocol.Recall{Query: "zebra", About: " ", Limit: 9}, protocol.CodeInvalid},
	} {
		b.event(workstate.EventPullChanged, "a"+name, shopPull("12", "13"))
		b.event(workstate.EventPullChanged, "b"+name, shopPull("12", "13", "acme/shop", "acme/web"))
		t.Run(name, func(_ *testing.T) { a.refused(tc.ask, tc.code) })
	}
}

func TestTheUsageOfATicketWithItsParts(t *testing.T) {
	b := open(t, taking, func(team *model.Team) { team.Usage.TrackCost = true })
	a, _ := b.connect("ada")
	part := func(key, parent string) string {
		return ticket12("ACME-12", key, `"status"`, `"parent":"`+parent+`","status"`)
	}
	b.event(workstate.EventTicketChanged, "1", part("ACME-1", "ACME-3")) // a circle
	b.event(workstate.EventTicketChanged, "2", part("ACME-2", "ACME-1"))
	b.event(workstate.EventTicketChanged, "3", part("ACME-3", "ACME-2"))
	work := func(name, ticket string, tokens int64, cost *float64) {
		t.Helper()
		b.apply(name, aboutTicket(ticket))
		a.take(name)
		a.ok(using(done(name), "s-"+name, map[string]protocol.ModelUsage{"m-" + name: {InputTokens: tokens, CostUSD: cost}}))
	}
	work("one", "ACME-1", 100, new(1.5))
	work("two", "ACME-2", 10, nil) // nobody knows what it cost
	work("three", "ACME-3", 1, new(0.25))
	got := answered[protocol.TicketUsageResult](a, protocol.TicketUsage{Ticket: "ACME-1"})
	if got.Own.Tokens != 100 || got.Own.CostUSD != 1.5 || got.Own.Runs != 1 || got.Total.Tokens != 111 || got.Total.CostUSD != 1.75 || got.Total.Runs != 3 {
		t.Errorf("it used %+v, in total %+v", got.Own, got.Total)
	}
	if len(got.SubTickets) != 1 || got.SubTickets[0].Ticket != "ACME-2" || got.SubTickets[0].Total.Tokens != 11 {
		t.Errorf("its parts are %+v", got.SubTickets)
	}
	if len(got.ByPerson) != 1 || got.ByPerson[0].Key != "ada" || got.ByModel[0].Key != "m-one" || got.ByModel[0].Totals.Runs != 1 || got.ByKind[0].Key != "task" {
		t.Errorf("its splits are %+v, %+v, %+v", got.ByPerson, got.ByModel, got.ByKind)
	}
	work("unheard", "OPS-1", 5, nil) // a ticket that no event told of
	if got := answered[protocol.TicketUsageResult](a, protocol.TicketUsage{Ticket: "OPS-1"}); got.Own.Tokens != 5 || got.Own.CostUSD != 0 {
		t.Errorf("it used %+v", got.Own)
	}
	a.refused(protocol.TicketUsage{Ticket: "ACME-99"}, protocol.CodeNotFound)
}

func TestTheUsageOfATicketIsNotToldWhereTheTeamDoesNotTrackIt(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	answer, ok := a.request(protocol.TicketUsage{Ticket: "ACME-1"}).(protocol.Error)
	if !ok || answer.Code != protocol.CodeUnsupported || !strings.Contains(answer.Message, "spec.usage.trackCost") {
		t.Errorf("answered with %+v", answer)
	}
}
