package storetest

// This file tests searches of a person's past.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// recallTests are the sentences about searches.
var recallTests = []sentence{
	{"a search tells when, where, who and what of each kind of moment", testRecallKinds},
	{"words match in any form, phrases whole, either of two, and not what is left out", testRecallWords},
	{"a query without a word to look for is refused with advice", testRecallRefused},
	{"moments come newest first, and more says that there are older ones", testRecallOrder},
	{"what happened at one instant is found, each of it", testRecallOneInstant},
	{"a person's past is that of its items, whoever had them before", testRecallWhoseItems},
	{"a person's past has what was said where its items refer to, also before they did", testRecallWhosePlaces},
	{"a person's past has the chat threads that it hears", testRecallWhoseThreads},
	{"a search can be for what had to do with somebody", testRecallWith},
	{"a search can be for what is about a place", testRecallAbout},
	{"a search can be for what happened since", testRecallSince},
	{"what was changed is found as it is", testRecallChanges},
	{"a search in an update sees what it wrote, and one that failed leaves nothing to find", testRecallInUpdate},
	{"what is in the past stays there", testRecallStays},
	{"text of any kind can be kept and searched", testRecallAnyText},
}

// RunRecall runs the part of Run that is about searches.
func RunRecall(t *testing.T, open Open) { run(t, open, recallTests) }

// recall searches ada's past for a query, changed by the changes.
func recall(t *testing.T, s store.Store, query string, changes ...func(*model.Recall)) (moments []model.Moment, more bool) {
	t.Helper()
	q := model.Recall{Person: ada, Query: query}
	for _, change := range changes {
		change(&q)
	}
	moments = read(t, s, func(r store.Reader) (found []model.Moment, err error) {
		found, more, err = r.Recall(q)
		return found, err
	})
	return moments, more
}

// excerpts searches ada's past and gives the excerpts.
func excerpts(t *testing.T, s store.Store, query string, changes ...func(*model.Recall)) []string {
	t.Helper()
	all := []string{}
	moments, _ := recall(t, s, query, changes...)
	for _, m := range moments {
		all = append(all, m.Excerpt)
	}
	return all
}

func as(key model.PersonKey) func(*model.Recall) { return func(q *model.Recall) { q.Person = key } }

// titled gives an item a title, and a time that many seconds after the epoch.
func titled(title string, at int) func(*model.Item) {
	return func(i *model.Item) { i.Spec.Title, i.CreatedAt = title, after(at) }
}

// journal appends texts to an item's journal, a second apart.
func journal(t *testing.T, s *suite, id string, at int, texts ...string) {
	t.Helper()
	s.update(t, func(tx store.Tx) error {
		for n, text := range texts {
			if err := tx.AppendJournal(model.JournalEntry{ItemID: id, At: after(at + n), Author: "ada", Text: text}); err != nil {
				return err
			}
		}
		return nil
	})
}

func said(place model.Place, id string, at int, author, body string) model.Remark {
	return model.Remark{Team: core, Place: place, ID: id, Kind: "ticket.commented", At: after(at), Author: author, Body: body}
}

func testRecallKinds(t *testing.T, s *suite) {
	ticket := item("ticket", titled("Needle in the shop", 1), func(i *model.Item) {
		i.Spec.Body, i.Spec.Requester = "Somebody lost it.", "grace"
		i.Spec.Subject = &protocol.Subject{Type: "ticket", Ref: "ACME-1", Title: "as the item was told", URL: "https://item.test"}
	})
	s.put(t, ticket, item("pull", titled("Pull", 2), about(pullPlace)), item("bare", titled("Bare", 3)))
	each(t, s, store.Tx.PutTicket, model.Ticket{Team: core, Key: "ACME-1", Title: "Shop", URL: "https://tracker.test/1"})
	each(t, s, store.Tx.PutTicket, model.Ticket{Team: other, Key: "ACME-1", Title: "Another team's"})
	remark := said(pullPlace, "r", 7, "linus", "A needle? I saw it.")
	remark.Kind, remark.URL = "pr.reviewed", "https://host.test/r"
	each(t, s, store.Tx.PutRemark, remark, model.Remark{
		Team: core, Place: ticketPlace, ID: "c", Kind: "ticket.commented", At: after(8), Author: "grace", Body: "Any needle yet?",
	})
	s.update(t, func(tx store.Tx) error {
		if err := tx.AppendJournal(model.JournalEntry{ItemID: "bare", At: after(4), Author: "bob", Text: "no needle here"}); err != nil {
			return err
		}
		if err := tx.PutRound(model.Round{ItemID: "ticket", Number: 1, Person: "ada", OfferedAt: after(2), Summary: "a needle, not ended"}); err != nil {
			return err
		}
		if err := tx.PutRound(model.Round{ItemID: "bare", Number: 1, Person: "ada", EndedAt: after(5)}); err != nil {
			return err
		}
		for _, f := range []model.Feedback{
			{ItemID: "ticket", At: after(6), Feedback: protocol.Feedback{
				Actor: "bob", URL: "https://host.test/f", Body: "thanks", Comments: []protocol.InlineComment{{Body: "the needle is blunt"}},
			}},
			{ItemID: "pull", At: after(7), Place: pullPlace, Feedback: protocol.Feedback{Actor: "linus", Body: "A needle? I saw it."}},
		} {
			if _, err := tx.AppendFeedback(&f); err != nil {
				return err
			}
		}
		return nil
	})
	s.update(t, func(tx store.Tx) error {
		return tx.PutRound(model.Round{ItemID: "ticket", Number: 1, Person: "ada", EndedAt: after(9), Summary: "Found the needle."})
	})
	shop := &protocol.Place{Type: "ticket", Ref: "ACME-1", Title: "Shop", URL: "https://tracker.test/1"}
	moments, more := recall(t, s, "needle")
	same(t, "what happened", moments, []model.Moment{
		{At: after(9), Kind: "outcome", Where: shop, Who: "ada", Excerpt: "Found the needle."},
		{At: after(8), Kind: "ticket.commented", Where: shop, Who: "grace", Excerpt: "Any needle yet?"},
		{
			At: after(7), Kind: "pr.reviewed", Where: &protocol.Place{Type: "pr", Ref: "acme/shop#7"}, Who: "linus",
			Excerpt: "A needle? I saw it.", URL: "https://host.test/r",
		},
		{At: after(6), Kind: "feedback", Where: shop, Who: "bob", Excerpt: "thanks the needle is blunt", URL: "https://host.test/f"},
		{At: after(4), Kind: "journal", Who: "bob", Excerpt: "no needle here"},
		{At: after(1), Kind: "item", Where: shop, Who: "grace", Excerpt: "Needle in the shop Somebody lost it."},
	})
	same(t, "more", more, false)
	each(t, s, store.Tx.PutPull, model.Pull{Team: core, Ref: "acme/shop#7", Title: "Sew", URL: "https://host.test/7"})
	moments, _ = recall(t, s, "saw")
	same(t, "where, once it is known", moments[0].Where, &protocol.Place{Type: "pr", Ref: "acme/shop#7", Title: "Sew", URL: "https://host.test/7"})
}

func testRecallWords(t *testing.T, s *suite) {
	s.put(t, item("fix"))
	journal(t, s, "fix", 1,
		"1 deployed the new release to the cluster",
		"2 the deployments wait for a release of the notes",
		"3 Release notes were written in the café",
		"4 draft of the release notes",
		"5 it's state-of-the-art; see https://acme.test/a_b?x=1",
		"6 Привет, мир: 世界 größer 🙂",
		"7 \"quoted\" (and) * : ^ + - NEAR words AND more OR NOT less",
	)
	for query, want := range map[string]string{
		"release":                     "4 3 2 1",
		"RELEASES":                    "4 3 2 1",
		"deploying":                   "1", // as FTS stemmers do, deployments are something else
		"deployment":                  "2",
		"cafe":                        "3",
		"CAFÉS":                       "3",
		"großer":                      "6",
		"привет":                      "6",
		"世界":                          "6",
		"release cluster":             "1",
		"cluster release":             "1",
		`"release notes"`:             "4 3",
		`"notes release"`:             "",
		"“release notes” draft":       "4",
		`"release notes" -draft`:      "3",
		`notes -"release notes"`:      "2",
		"cluster or café":             "3 1",
		"cluster OR café or draft":    "4 3 1",
		"release cluster or draft":    "4 1",
		`cluster or "of the notes"`:   "2 1",
		"release cluster or notes -4": "3 2 1",
		"state-of-the-art":            "5",
		"art-of":                      "",
		"it's":                        "5",
		"acme.test/a_b":               "5",
		`unclosed "release notes`:     "",
		`"release notes`:              "4 3",
		"or release":                  "", // without something before it, it is a word
		"NEAR":                        "7",
		"near/2":                      "",
		"more AND":                    "7",
		"text:release":                "",
		"relea*":                      "",
		"rel":                         "",
		"^deployed":                   "1",
		"new + release":               "1",
		"--cluster release":           "4 3 2",
		"nowhere":                     "",
		"release -nowhere":            "4 3 2 1",
		"🙂 release":                   "4 3 2 1",
		"(quoted)":                    "7",
	} {
		got := []string{}
		for _, e := range excerpts(t, s, query) {
			got = append(got, e[:1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\nfinds %q, want %q", query, strings.Join(got, " "), want)
		}
	}
}

func testRecallRefused(t *testing.T, s *suite) {
	for query, advice := range map[string]string{
		"":                           "it has no word",
		"  \t\n":                     "it has no word",
		"🙂 -- ! \"\" “”":             "it has no word",
		"-draft":                     "add a word to look for",
		`-"a draft" -b`:              "add a word to look for",
		"one or -two":                "or stands between two things to look for",
		"-one or two":                "or stands between two things to look for",
		strings.Repeat("long ", 201): "a few words are enough",
	} {
		err := s.View(context.Background(), func(r store.Reader) error {
			_, _, err := r.Recall(model.Recall{Person: ada, Query: query})
			return err
		})
		if !errors.Is(err, store.ErrQuery) || !strings.Contains(err.Error(), advice) {
			t.Errorf("the query %.40q gave %v, want ErrQuery with %q", query, err, advice)
		}
	}
}

func testRecallOrder(t *testing.T, s *suite) {
	s.put(t, item("fix", createdAt(500)), item("more"))
	journal(t, s, "fix", 100, "word a", "word b", "word c")
	journal(t, s, "more", 50, "word d", "word e") // happened earlier, was told later
	at := func(d time.Duration, text string) {
		s.update(t, func(tx store.Tx) error {
			return tx.AppendJournal(model.JournalEntry{ItemID: "fix", At: after(200).Add(d), Text: text})
		})
	}
	at(3*time.Microsecond, "word g")
	at(2*time.Microsecond, "word f")
	at(0, "word before f")
	at(-time.Hour, "word z")
	all := []string{"word g", "word f", "word before f", "word c", "word b", "word a", "word e", "word d", "word z"}
	same(t, "all", excerpts(t, s, "word"), all)
	for limit := 1; limit <= len(all)+1; limit++ {
		moments, more := recall(t, s, "word", func(q *model.Recall) { q.Limit = limit })
		same(t, fmt.Sprint("the limit ", limit), []any{len(moments), more}, []any{min(limit, len(all)), limit < len(all)})
		same(t, "the first", moments[0].Excerpt, "word g")
	}
}

func testRecallOneInstant(t *testing.T, s *suite) {
	s.put(t, item("a", titled("word", 0)), item("b", titled("word", 0)))
	for range 20 {
		journal(t, s, "a", 0, "word")
	}
	s.update(t, func(tx store.Tx) error { return tx.AppendJournal(model.JournalEntry{ItemID: "a", Text: "word"}) }) // at no time
	moments, _ := recall(t, s, "word")
	same(t, "how many", len(moments), 23)
	same(t, "the last, without a time", moments[22].At.IsZero(), true)
}

func testRecallWhoseItems(t *testing.T, s *suite) {
	s.put(t,
		item("asked", titled("word asked", 1)),
		item("has", ofRole("engineer"), titled("word has", 2), func(i *model.Item) { i.Assignee = "ada" }),
		item("of-role", ofRole("engineer"), titled("word of-role", 3)),
		item("of-bob", titled("word of-bob", 4), func(i *model.Item) { i.Spec.Person = "bob" }),
		item("taken", titled("word taken", 5), func(i *model.Item) { i.Assignee = "bob" }),
		item("elsewhere", inTeam(other), titled("word elsewhere", 6)),
		item("other-namespace", inTeam(model.TeamKey{Namespace: "else", Name: "core"}), titled("word other-namespace", 7)),
	)
	same(t, "ada's", excerpts(t, s, "word"), []string{"word has", "word asked"})
	same(t, "bob's", excerpts(t, s, "word", as(bob)), []string{"word taken", "word of-bob"})
	same(t, "the other ada's", excerpts(t, s, "word", as(model.PersonKey{Team: other, Handle: "ada"})), []string{"word elsewhere"})
	same(t, "nobody's", excerpts(t, s, "word", as(model.PersonKey{Team: core})), []string{})

	journal(t, s, "of-role", 10, "word in the journal")
	s.update(t, func(tx store.Tx) error {
		return tx.PutRound(model.Round{ItemID: "of-role", Number: 1, Person: "bob", EndedAt: after(12), Summary: "word declined"})
	})
	given := item("of-role", ofRole("engineer"), titled("word of-role", 3), func(i *model.Item) { i.Assignee = "ada" })
	s.put(t, given)
	same(t, "ada's, who was given one", excerpts(t, s, "word"),
		[]string{"word declined", "word in the journal", "word of-role", "word has", "word asked"})
	given.Assignee = "bob"
	s.put(t, given)
	same(t, "ada's, from whom it was taken", excerpts(t, s, "word"), []string{"word has", "word asked"})
	same(t, "bob's, who has it now", excerpts(t, s, "word", as(bob)),
		[]string{"word declined", "word in the journal", "word taken", "word of-bob", "word of-role"})
}

func testRecallWhosePlaces(t *testing.T, s *suite) {
	s.put(t, item("subject", about(ticketPlace)), item("of-bob", func(i *model.Item) { i.Spec.Person = "bob" }), item("elsewhere", inTeam(other)))
	foreign := said(ticketPlace, "1", 9, "eve", "word of another team")
	foreign.Team = other
	each(t, s, store.Tx.PutRemark, said(ticketPlace, "1", 1, "eve", "word on the ticket"), said(pullPlace, "1", 2, "eve", "word on the pull"),
		said(docPlace, "1", 3, "eve", "word on the document"), foreign)
	both := func() [][]string { return [][]string{excerpts(t, s, "word"), excerpts(t, s, "word", as(bob))} }
	same(t, "ada's and bob's", both(), [][]string{{"word on the ticket"}, {}})

	link := func(id string, p model.Place) {
		t.Helper()
		s.update(t, func(tx store.Tx) error { return tx.PutRef(model.Ref{ItemID: id, Place: p}) })
	}
	link("subject", pullPlace)
	same(t, "with a ref of ada's", both(), [][]string{{"word on the pull", "word on the ticket"}, {}})
	link("of-bob", pullPlace)
	link("of-bob", ticketPlace)
	same(t, "with refs of bob's", both(), [][]string{{"word on the pull", "word on the ticket"}, {"word on the pull", "word on the ticket"}})
	each(t, s, store.Tx.PutRemark, said(pullPlace, "2", 4, "eve", "word for both"))
	same(t, "with a new remark", both(), [][]string{
		{"word for both", "word on the pull", "word on the ticket"}, {"word for both", "word on the pull", "word on the ticket"},
	})
	s.put(t, item("subject", about(docPlace)))
	same(t, "with another subject", both()[0], []string{"word for both", "word on the document", "word on the pull"})
	s.put(t, item("subject", about(docPlace), func(i *model.Item) { i.Assignee = "bob" }))
	same(t, "when bob has it all", both(), [][]string{
		{}, {"word for both", "word on the document", "word on the pull", "word on the ticket"},
	})
	s.put(t, item("late", about(ticketPlace), titled("a late one", 9)))
	same(t, "with a late item of ada's", both()[0], []string{"word on the ticket"})
}

func testRecallWhoseThreads(t *testing.T, s *suite) {
	s.put(t, item("chat", func(i *model.Item) { i.Spec.Person = "bob" }), item("ref"), item("elsewhere", inTeam(other)))
	place := model.Place{Type: model.RefThread, Ref: model.ThreadRef("c", "1")}
	message := said(place, "1", 1, "grace", "word in chat")
	message.Kind = "chat.message"
	each(t, s, store.Tx.PutRemark, message, said(model.Place{Type: model.RefThread, Ref: model.ThreadRef("c", "2")}, "1", 2, "grace", "word aside"))
	same(t, "before anybody hears it", excerpts(t, s, "word"), []string{})
	s.update(t, func(tx store.Tx) error {
		if err := tx.LinkThread(model.Thread{ItemID: "elsewhere", Person: "bob", Channel: "c", Thread: "1"}); err != nil {
			return err
		}
		return tx.LinkThread(model.Thread{ItemID: "chat", Person: "ada", Channel: "c", Thread: "1"})
	})
	moments, _ := recall(t, s, "word")
	same(t, "what ada hears", moments, []model.Moment{{
		At: after(1), Kind: "chat.message", Where: &protocol.Place{Type: "chat_thread", Ref: "c/1"}, Who: "grace", Excerpt: "word in chat",
	}})
	same(t, "what bob does not hear, who has the item", excerpts(t, s, "word", as(bob)), []string{})
}

func testRecallWith(t *testing.T, s *suite) {
	s.put(t,
		item("requested", titled("word requested", 1), func(i *model.Item) { i.Spec.Requester = "Grace Hopper" }),
		item("question", titled("word question", 2), func(i *model.Item) { i.Question = &model.Question{Asker: "bob", To: "ada"} }),
		item("chat", titled("word chat", 3), func(i *model.Item) {
			i.Origin = &protocol.Origin{Requester: protocol.Requester{ID: "U123", Name: "Linus"}}
		}),
		item("alone", titled("word alone", 4), about(ticketPlace)),
	)
	journal(t, s, "requested", 10, "word for her")
	each(t, s, store.Tx.PutRemark, said(ticketPlace, "1", 11, "GRACE HOPPER", "word of hers"), said(ticketPlace, "2", 12, "bob", "word of his"))
	with := func(names ...string) []string {
		return excerpts(t, s, "word", func(q *model.Recall) { q.With = names })
	}
	for _, test := range []struct {
		name string
		with []string
		want []string
	}{
		{"a requester", []string{"grace hopper"}, []string{"word of hers", "word for her", "word requested"}},
		{"a teammate", []string{"BOB"}, []string{"word of his", "word question"}},
		{"a chat's name", []string{"linus"}, []string{"word chat"}},
		{"a chat's identity", []string{"u123", "nobody"}, []string{"word chat"}},
		{"either of two", []string{"bob", "linus"}, []string{"word of his", "word chat", "word question"}},
		{"a part of a name", []string{"grace"}, []string{}},
		{"nobody known", []string{"nobody"}, []string{}},
		{"herself", []string{"ada"}, []string{"word for her"}},
	} {
		same(t, test.name, with(test.with...), test.want)
	}
	each(t, s, store.Tx.PutRemark, said(ticketPlace, "2", 12, "zoe", "word of his"))
	same(t, "somebody who turns out to have written a remark", with("zoe"), []string{"word of his"})
}

func testRecallAbout(t *testing.T, s *suite) {
	s.put(t, item("subject", titled("word subject", 1), about(ticketPlace)), item("ref", titled("word ref", 2)), item("neither", titled("word neither", 3)),
		item("of-bob", titled("word of-bob", 4), about(ticketPlace), func(i *model.Item) { i.Spec.Person = "bob" }),
		item("gone", titled("word gone", 5), about(ticketPlace), gone))
	s.update(t, func(tx store.Tx) error {
		if err := tx.PutRef(model.Ref{ItemID: "ref", Place: ticketPlace}); err != nil {
			return err
		}
		return tx.PutRef(model.Ref{ItemID: "neither", Place: pullPlace})
	})
	journal(t, s, "ref", 10, "word journal")
	journal(t, s, "neither", 11, "word nothing")
	each(t, s, store.Tx.PutRemark, said(ticketPlace, "1", 20, "eve", "word on the ticket"), said(pullPlace, "1", 21, "eve", "word on the pull"))
	on := func(p model.Place) []string { return excerpts(t, s, "word", func(q *model.Recall) { q.About = p }) }
	same(t, "about the ticket", on(ticketPlace), []string{"word on the ticket", "word journal", "word gone", "word ref", "word subject"})
	same(t, "about the pull request", on(pullPlace), []string{"word on the pull", "word nothing", "word neither"})
	same(t, "about something unknown", on(docPlace), []string{})
}

func testRecallSince(t *testing.T, s *suite) {
	s.put(t, item("fix", createdAt(-9)))
	journal(t, s, "fix", 10, "word a", "word b", "word c")
	journal(t, s, "fix", 11, "word b again")
	since := func(at time.Time) []string {
		return excerpts(t, s, "word", func(q *model.Recall) { q.Since = at })
	}
	same(t, "since the second", since(after(11)), []string{"word c", "word b again", "word b"})
	same(t, "since a moment after it", since(after(11).Add(1)), []string{"word c"})
	same(t, "since the last", since(after(12)), []string{"word c"})
	same(t, "since after all", since(after(13)), []string{})
	moments, more := recall(t, s, "word", func(q *model.Recall) { q.Since, q.Limit = after(11), 3 })
	same(t, "with a limit that is just enough", []any{len(moments), more}, []any{3, false})
}

func testRecallChanges(t *testing.T, s *suite) {
	fix := item("fix", titled("before", 1), about(ticketPlace))
	s.put(t, fix)
	fix.Progress = "no other words"
	s.put(t, fix)
	same(t, "an item that was put twice", excerpts(t, s, "before"), []string{"before"})
	fix.Spec.Title, fix.Spec.Body, fix.CreatedAt = "after", "and a body", after(50)
	s.put(t, fix)
	same(t, "the old title, the new one, the body", [][]string{excerpts(t, s, "before"), excerpts(t, s, "after"), excerpts(t, s, "bodies")},
		[][]string{{}, {"after and a body"}, {"after and a body"}})

	comment := said(ticketPlace, "1", 2, "eve", "a typo")
	each(t, s, store.Tx.PutRemark, comment)
	comment.Body = "a correction"
	each(t, s, store.Tx.PutRemark, comment, comment)
	same(t, "the item, which moved, before the remark", excerpts(t, s, "correction or after"), []string{"after and a body", "a correction"})
	same(t, "the remark before and after it was edited", [][]string{excerpts(t, s, "typo"), excerpts(t, s, "correction")}, [][]string{{}, {"a correction"}})
	comment.At = after(60)
	each(t, s, store.Tx.PutRemark, comment)
	moments, _ := recall(t, s, "correction or after")
	same(t, "the order after it moved", []any{len(moments), moments[0].Excerpt, moments[0].At}, []any{2, "a correction", after(60)})
	s.update(t, func(tx store.Tx) error { return tx.ResolveThread(core, ticketPlace, "1", true) })
	same(t, "a resolved one", excerpts(t, s, "correction"), []string{"a correction"})

	round := model.Round{ItemID: "fix", Number: 1, Person: "ada", EndedAt: after(3), Summary: "first words"}
	put := func() { t.Helper(); s.update(t, func(tx store.Tx) error { return tx.PutRound(round) }) }
	put()
	put()
	same(t, "an outcome that was told twice", excerpts(t, s, "words"), []string{"first words"})
	round.Summary = "second thoughts"
	put()
	same(t, "an outcome that was told otherwise", [][]string{excerpts(t, s, "words"), excerpts(t, s, "thought")}, [][]string{{}, {"second thoughts"}})
}

func testRecallInUpdate(t *testing.T, s *suite) {
	s.put(t, item("fix", titled("a word", 1)))
	find := func(tx store.Tx) (found []string) {
		moments, _, err := tx.Recall(model.Recall{Person: ada, Query: "word"})
		if err != nil {
			t.Error(err)
		}
		for _, m := range moments {
			found = append(found, m.Excerpt)
		}
		return found
	}
	err := s.Update(context.Background(), func(tx store.Tx) error {
		if err := tx.AppendJournal(model.JournalEntry{ItemID: "fix", At: after(5), Text: "another word"}); err != nil {
			return err
		}
		same(t, "within the update", find(tx), []string{"another word", "a word"})
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	same(t, "after the update failed", excerpts(t, s, "word"), []string{"a word"})
	s.update(t, func(tx store.Tx) error { same(t, "in the next update", find(tx), []string{"a word"}); return nil })
}

func testRecallStays(t *testing.T, s *suite) {
	s.put(t, item("fix", titled("a word", 1), inState(protocol.StateDone)))
	journal(t, s, "fix", 2, "another word")
	putPeople(t, s, model.Person{UID: "uid", Key: ada})
	s.update(t, func(tx store.Tx) error {
		if err := tx.Bury("fix"); err != nil {
			return err
		}
		return tx.DeletePerson("uid")
	})
	want := []string{"another word", "a word"}
	same(t, "after the item was buried", excerpts(t, s, "word"), want)
	s.reopen(t)
	same(t, "after opening again", excerpts(t, s, "word"), want)
	journal(t, s, "fix", 3, "one more word")
	same(t, "with one more", excerpts(t, s, "word"), append([]string{"one more word"}, want...))
}

func testRecallAnyText(t *testing.T, s *suite) {
	s.put(t, item("fix"))
	long := strings.Repeat("lorem ipsum ", 40)
	for n, text := range []string{
		"", " \n\t ", "word \x00 with a zero", "half a rune \xe2\x82 word", "private \ue000\ue0011\ue002 word", strings.Repeat("word", 100_000),
		strings.Repeat("字", 300) + " word", "🙂🙂 word 👩‍💻", "e\u0301 combined word", long + "word here " + long, "\u202eword in the other direction",
	} {
		journal(t, s, "fix", n, text)
	}
	moments, _ := recall(t, s, "word")
	same(t, "how many", len(moments), 8)
	for _, m := range moments {
		if n := len([]rune(m.Excerpt)); n > 202 || !strings.Contains(m.Excerpt, "word") {
			t.Errorf("the excerpt has %d runes: %s", n, m.Excerpt)
		}
	}
	for query, want := range map[string]int{
		"half rune": 1, "zero": 1, "private": 1, "\ue000\ue0011\ue002": 1, "é": 1, "word\x00zero": 1, strings.Repeat("word ", 200): 8,
		strings.Repeat("字", 300): 1, "字": 0, "\xe2\x82 half": 1, strings.Repeat("x or ", 199) + "word": 8, "word" + strings.Repeat(" -x", 300): 8,
	} {
		if found := excerpts(t, s, query); len(found) != want {
			t.Errorf("%.30q finds %d, want %d", query, len(found), want)
		}
	}
	here := excerpts(t, s, "here")
	if len(here) != 1 || !strings.HasPrefix(here[0], "…") || !strings.HasSuffix(here[0], "…") || !strings.Contains(here[0], "ipsum word here lorem") {
		t.Errorf("an excerpt from the middle is %q", here)
	}
}
