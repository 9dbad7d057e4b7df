package workstate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func ticketAt(key string) model.Place { return model.Place{Type: model.RefTicket, Ref: key} }
func prAt(ref string) model.Place     { return model.Place{Type: model.RefPull, Ref: ref} }
func docAt(id string) model.Place     { return model.Place{Type: model.RefDoc, Ref: id} }
func chatAt(ref string) model.Place   { return model.Place{Type: model.RefThread, Ref: ref} }

// lines writes nodes as lines of role, place and source.
func lines(nodes []Node) string {
	var list []string
	for _, n := range nodes {
		list = append(list, fmt.Sprintf("%s %s from %s", n.Role, n.Place.Ref, n.Source))
	}
	return strings.Join(list, "\n")
}

func TestWhatAnItemHasToDoWithComesNearestFirst(t *testing.T) {
	a := Around{
		Item: model.Item{
			Spec: model.ItemSpec{Subject: &protocol.Subject{Type: "ticket", Ref: "ACME-1"}}, Origin: &protocol.Origin{Channel: "C", Thread: "T"},
		},
		Refs: []model.Ref{
			{Place: prAt("acme/shop#9"), Role: protocol.WhyInferred, Source: "ev-9"},
			{Place: docAt("d1"), Role: protocol.WhyAttached, Source: "work_attach"},
			{Place: prAt("acme/shop#7"), Role: protocol.WhyCreated, Source: "work_made"},
			{Place: ticketAt("ACME-1"), Role: protocol.WhyTrigger, Source: "ev-1"},
		},
		Threads:   []model.Thread{{Channel: "C", Thread: "T"}, {Channel: "C", Thread: "U"}},
		Mentioned: []Node{{Place: ticketAt("ACME-5"), Role: protocol.WhyMentioned, Source: "ev-2"}, {Place: ticketAt("ACME-1"), Role: protocol.WhyMentioned}},
	}
	if diff := cmp.Diff(`trigger ACME-1 from ev-1
trigger C/T from chat_message
created acme/shop#7 from work_made
attached d1 from work_attach
attached C/U from chat_message
mentioned ACME-5 from ev-2
inferred acme/shop#9 from ev-9`, lines(Roots(a))); diff != "" {
		t.Errorf("in the first round: want -, got +:\n%s", diff)
	}
	a.Item.Rounds = 1
	a.Feedback = []model.Feedback{
		{Place: prAt("acme/shop#7"), Source: "ev-3", Feedback: protocol.Feedback{Kind: protocol.FeedbackReview}},
		{Feedback: protocol.Feedback{Kind: protocol.FeedbackBlocked}},
	}
	if diff := cmp.Diff(`trigger acme/shop#7 from ev-3
subject ACME-1 from work item
attached d1 from work_attach
attached C/T from chat_message
attached C/U from chat_message
mentioned ACME-5 from ev-2
inferred acme/shop#9 from ev-9`, lines(Roots(a))); diff != "" {
		t.Errorf("in a later round: want -, got +:\n%s", diff)
	}
	if got := Roots(Around{Item: model.Item{Spec: model.ItemSpec{Subject: &protocol.Subject{Type: "file", Ref: "x"}}}}); len(got) != 0 {
		t.Errorf("a subject that the office knows nothing of gives %v", got)
	}
}

// world is a graph of places; those that are no key are not known.
type world map[model.Place][]model.Place

func (w world) Known(p model.Place) (bool, error) { _, known := w[p]; return known, nil }
func (w world) Linked(p model.Place) ([]model.Place, error) {
	if p.Ref == "broken" {
		return nil, errors.New("broken")
	}
	return w[p], nil
}

func TestAWalkGoesBreadthFirstForAFewLinks(t *testing.T) {
	w := world{
		ticketAt("ACME-1"): {prAt("#1"), prAt("#2"), ticketAt("ACME-0")}, prAt("#1"): {ticketAt("ACME-1"), prAt("#3")},
		prAt("#2"): nil, prAt("#3"): {prAt("#4")}, prAt("#4"): nil, ticketAt("ACME-0"): {ticketAt("ACME-1"), ticketAt("ACME-2"), ticketAt("gone")},
		ticketAt("ACME-2"): nil, docAt("d"): nil,
	}
	roots := []Node{
		{Place: ticketAt("ACME-1"), Role: protocol.WhySubject, Source: "work item"}, {Place: prAt("unknown"), Role: protocol.WhyCreated},
		{Place: docAt("d"), Role: protocol.WhyAttached, Source: "x"},
	}
	nodes, err := Walk(roots, w, 20)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`subject ACME-1 from work item
attached d from x
linked #1 from ACME-1
linked #2 from ACME-1
linked ACME-0 from ACME-1
linked #3 from #1
linked ACME-2 from ACME-0`, lines(nodes)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if _, err := Walk([]Node{{Place: ticketAt("broken")}}, world{ticketAt("broken"): nil}, 20); err == nil {
		t.Error("an error of the store is dropped")
	}
	if few, err := Walk(roots, w, 4); err != nil || len(few) != 5 { // two roots, and all that is linked to the first
		t.Errorf("where four are enough, it finds %s (%v)", lines(few), err)
	}
	var many []Node
	big := world{}
	for i := range 3 * walkMost {
		p := ticketAt(fmt.Sprint("ACME-", i))
		big[p], many = nil, append(many, Node{Place: p})
	}
	if nodes, _ := Walk(many, big, 20); len(nodes) != walkMost {
		t.Errorf("a walk looked at %d places", len(nodes))
	}
}

func TestTheTicketThatIsWorkedOn(t *testing.T) {
	pull := func(ref string) *model.Pull {
		if ref == "acme/shop#7" {
			return &model.Pull{Ref: ref, Ticket: "ACME-7"}
		}
		return nil
	}
	subject := func(kind, ref string) model.Item {
		return model.Item{Spec: model.ItemSpec{Subject: &protocol.Subject{Type: kind, Ref: ref}}}
	}
	nodes := []Node{{Place: ticketAt("ACME-3"), Role: protocol.WhyMentioned}, {Place: ticketAt("ACME-4"), Role: protocol.WhyLinked}}
	for name, tc := range map[string]struct {
		it   model.Item
		want string
	}{
		"the subject":                      {subject("ticket", "ACME-1"), "ACME-1"},
		"that of the subject":              {subject("pr", "acme/shop#7"), "ACME-7"},
		"the nearest, unless merely named": {subject("pr", "acme/shop#8"), "ACME-4"},
	} {
		if got := Focus(tc.it, nodes, pull); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := Focus(model.Item{}, nil, pull); got != "" {
		t.Errorf("of an item about nothing it is %q", got)
	}
}

// remarks makes n remarks, one a minute.
func remarks(n int, edit func(i int, r *model.Remark)) []model.Remark {
	var list []model.Remark
	for i := range n {
		r := model.Remark{ID: fmt.Sprint(i), Author: "grace", At: noon.Add(time.Duration(i) * time.Minute), Body: fmt.Sprint("text ", i), Human: true}
		if edit != nil {
			edit(i, &r)
		}
		list = append(list, r)
	}
	return list
}

var limits = protocol.TeamContext{BodyChars: 10, Comments: 2, Reviews: 3, Threads: 2, Messages: 2, Items: 10}

func TestABundleIsCutToItsLimitsWithCounts(t *testing.T) {
	s := Snapshot{
		Nodes: []Node{
			{ticketAt("ACME-1"), protocol.WhySubject, "work item", noon}, {prAt("acme/shop#7"), protocol.WhyCreated, "work_made", time.Time{}},
			{docAt("d1"), protocol.WhyLinked, "ACME-1", time.Time{}}, {chatAt("C/T/1"), protocol.WhyTrigger, "chat_message", noon},
		},
		Omitted: 3,
		Tickets: map[string]model.Ticket{"ACME-1": {Key: "ACME-1", Title: "Login", Status: protocol.TicketStatusActive, Description: "Twelve chars"}},
		Pulls: map[string]model.Pull{"acme/shop#7": {
			Ref: "acme/shop#7", Repo: "acme/shop", Number: 7, State: protocol.PullOpen, Head: "b", Base: "a", CI: protocol.ChecksFailure, Failing: []string{"lint"},
			Mergeable: protocol.MergeableClean, UnresolvedThreads: 3, Ticket: "ACME-1",
		}},
		Docs:    map[string]model.Doc{"d1": {ID: "d1", Title: "Design", URL: "https://docs.example.com/d1"}},
		Threads: map[string]model.Thread{"C/T/1": {Channel: "C/T", Thread: "1"}},
		Open: map[string][]model.Pull{"acme/shop": {
			{Ref: "acme/shop#5", Repo: "acme/shop", State: protocol.PullOpen, Head: "a", Base: "main"},
			{Ref: "acme/shop#8", Repo: "acme/shop", State: protocol.PullOpen, Head: "c", Base: "b"},
			{Ref: "acme/shop#9", Repo: "acme/shop", State: protocol.PullMerged, Head: "d", Base: "b"},
			{Ref: "acme/web#8", Repo: "acme/web", State: protocol.PullOpen, Head: "c", Base: "b"},
		}},
		Said: map[model.Place]Said{
			ticketAt("ACME-1"): {remarks(3, nil), 7},
			chatAt("C/T/1"):    {remarks(2, nil), 2},
			prAt("acme/shop#7"): {remarks(4, func(i int, r *model.Remark) {
				r.ThreadID, r.Path, r.Line, r.Resolved = fmt.Sprint("t", i), "a.go", i, i == 3
			}), 4},
		},
	}
	one, two, three, five := 1, 2, 3, 5
	at := func(minutes int) string { return protocol.FormatTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	want := &protocol.Wake{
		Tickets: []protocol.WakeTicket{{
			Key: "ACME-1", Title: "Login", Status: "active", Description: "Twelve ch…",
			Comments: []protocol.TicketComment{
				{Author: "grace", At: at(1), Body: "text 1"}, {Author: "grace", At: at(2), Body: "text 2"},
			},
			MoreComments: &five,
			Why:          protocol.Why{Role: protocol.WhySubject, Source: "work item", AddedAt: at(0)},
		}},
		PRs: []protocol.WakePull{{
			Ref: "acme/shop#7", Number: 7, Title: "acme/shop#7", State: protocol.PullOpen, CI: protocol.ChecksFailure, Failing: []string{"lint"},
			Mergeable: protocol.MergeableClean, UnresolvedThreads: 3, Ticket: "ACME-1", StackedOn: "acme/shop#5", StackedBy: []string{"acme/shop#8"},
			Threads: []protocol.ReviewThread{
				{Path: "a.go", Line: &one, Author: "grace", Body: "text 1"}, {Path: "a.go", Line: &two, Author: "grace", Body: "text 2"},
			},
			Why: protocol.Why{Role: protocol.WhyCreated, Source: "work_made"},
		}},
		Docs: []protocol.WakeDoc{{ID: "d1", Title: "Design", URL: "https://docs.example.com/d1", Why: protocol.Why{Role: protocol.WhyLinked, Source: "ACME-1"}}},
		Chats: []protocol.WakeChat{{
			Channel: "C/T", Thread: "1", Why: protocol.Why{Role: protocol.WhyTrigger, Source: "chat_message", AddedAt: at(0)},
			Messages: []protocol.WakeMessage{{Author: "grace", At: at(0), Text: "text 0"}, {Author: "grace", At: at(1), Text: "text 1"}},
		}},
		Omitted: &three,
	}
	if diff := cmp.Diff(want, Bundle(s, limits)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	none := Bundle(s, protocol.TeamContext{BodyChars: 10})
	if n := none.Tickets[0].MoreComments; len(none.Tickets[0].Comments) != 0 || n == nil || *n != 7 || len(none.PRs[0].Threads) != 0 {
		t.Errorf("limits of zero leave %+v", none)
	}
	if Bundle(Snapshot{}, limits) != nil {
		t.Error("there is a bundle of nothing")
	}
}

func TestReviewsAreWhatHumansSaidAndWhatWasSaidToThem(t *testing.T) {
	pulls := []model.Pull{{Ref: "acme/shop#7", Ticket: "ACME-1"}, {Ref: "acme/shop#8", Ticket: "ACME-0"}}
	s := Snapshot{
		Nodes: []Node{{Place: ticketAt("ACME-1")}, {Place: ticketAt("ACME-0")}}, Focus: "ACME-1", Implementing: pulls,
		Tickets: map[string]model.Ticket{"ACME-1": {Key: "ACME-1", Parent: "ACME-0"}, "ACME-0": {Key: "ACME-0"}},
		Said: map[model.Place]Said{
			prAt("acme/shop#7"): {Remarks: []model.Remark{
				{ID: "1", At: noon.Add(1), Author: "grace", Human: true, ThreadID: "t1", Path: "a.go", Line: 3, Body: "by a human"},
				{ID: "2", At: noon.Add(2), Author: "bob", ThreadID: "t1", Path: "a.go", Body: "an answer to a human", Resolved: true},
				{ID: "3", At: noon.Add(3), Author: "bob", ThreadID: "t2", Path: "b.go", Body: "by an agent"},
				{ID: "4", At: noon.Add(4), Author: "grace", Human: true, Body: "a part of the conversation"},
			}},
			prAt("acme/shop#8"): {Remarks: []model.Remark{
				{ID: "5", At: noon.Add(5), Author: "bot", ThreadID: "t3", Path: "c.go", Body: "by a program"},
				{ID: "6", At: noon.Add(6), Author: "grace", Human: true, ThreadID: "t3", Path: "c.go", Body: "a human answers"},
			}},
		},
	}
	wake := Bundle(s, protocol.TeamContext{BodyChars: 100, Reviews: 2, Items: 9})

	at := func(n int) string { return protocol.FormatTime(noon.Add(time.Duration(n))) }
	want := []protocol.TicketReview{
		{PR: "acme/shop#8", Ticket: "ACME-0", Path: "c.go", Author: "grace", At: at(6), Body: "a human answers"},
		{PR: "acme/shop#7", Ticket: "ACME-1", Resolved: true, Path: "a.go", Author: "bob", At: at(2), Body: "an answer to a human"},
	}
	if diff := cmp.Diff(want, wake.Tickets[0].Reviews); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if more := wake.Tickets[0].MoreReviews; more == nil || *more != 1 {
		t.Errorf("left out are %v, want 1", more)
	}
	if wake.Tickets[1].Reviews != nil {
		t.Error("a ticket that is not worked on has reviews")
	}
}

func TestTheConversationBeforeAShortRemark(t *testing.T) {
	place := prAt("acme/shop#7")
	entries := remarks(9, func(i int, r *model.Remark) {
		r.Place, r.Kind = place, EventPullCommented
		switch i {
		case 2:
			r.Kind, r.Path = EventPullReviewComment, "a.go"
		case 3:
			r.Kind, r.State, r.ID = EventPullReviewed, ReviewChangesRequested, "review/3"
		}
	})
	said := map[model.Place]Said{place: {entries, 9}}
	bodies := func(feedback ...model.Feedback) string {
		var list []string
		for _, e := range Conversation(feedback, said, limits) {
			list = append(list, fmt.Sprint(e.Kind, " ", e.Body, e.State))
		}
		return strings.Join(list, ", ")
	}
	feedback := func(kind protocol.FeedbackKind, id string) model.Feedback {
		return model.Feedback{Place: place, Key: SaidKey(place, id), Feedback: protocol.Feedback{Kind: kind}}
	}
	for name, tc := range map[string]struct {
		feedback []model.Feedback
		want     string
	}{
		"a comment":                   {[]model.Feedback{feedback(protocol.FeedbackComment, "7")}, "comment text 1, review text 3changes_requested, comment text 4, comment text 5, comment text 6"},
		"a review":                    {[]model.Feedback{feedback(protocol.FeedbackReview, "review/3")}, "comment text 0, comment text 1"},
		"the first of several":        {[]model.Feedback{feedback(protocol.FeedbackComment, "1"), feedback(protocol.FeedbackComment, "8")}, "comment text 0"},
		"the first comment of all":    {[]model.Feedback{feedback(protocol.FeedbackComment, "0")}, ""},
		"an inline comment":           {[]model.Feedback{feedback(protocol.FeedbackInlineComment, "inline/2")}, ""},
		"failing checks":              {[]model.Feedback{feedback(protocol.FeedbackCIFailure, "")}, ""},
		"a comment on something else": {[]model.Feedback{{Place: ticketAt("ACME-1"), Feedback: protocol.Feedback{Kind: protocol.FeedbackTicketComment}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bodies(tc.feedback...); got != tc.want {
				t.Errorf("before it: %s\nwant:      %s", got, tc.want)
			}
		})
	}
}
