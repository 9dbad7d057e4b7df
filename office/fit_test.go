package office

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

// draftWith is the draft of a small item, changed by edits.
func draftWith(edits ...func(*draft)) *draft {
	const at = "2026-01-31T09:30:00.000Z"
	d := &draft{
		id: "offer-fix-1", request: protocol.JournalEntry{At: at, Author: "grace", Text: "Mend the login."},
		journal: []protocol.JournalEntry{{At: at, Author: "ada", Text: "the first entry"}, {At: at, Author: "ada", Text: "the last entry"}},
		offer: protocol.Offer{
			WorkItem: protocol.WorkItem{ID: "fix", Kind: "task", Title: "Fix", Trigger: protocol.TriggerHuman},
			Context: protocol.Context{
				Subjects: []protocol.Subject{{Type: "ticket", Ref: "ACME-1"}}, Links: []protocol.Link{{URL: "https://x.example"}},
				Feedback: []protocol.Feedback{{Actor: "grace", Kind: protocol.FeedbackChat, Body: "older"}, {Actor: "grace", Kind: protocol.FeedbackChat, Body: "newest"}},
			},
		},
	}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

// many gives n of something.
func many[T any](n int, one func(i int) T) []T {
	var list []T
	for i := range n {
		list = append(list, one(i))
	}
	return list
}

func TestAnOfferIsCutToAFrameFarthestFirstAndSaysWhatIsLeftOut(t *testing.T) {
	long := strings.Repeat("x", 2000)
	entry := func(int) protocol.JournalEntry {
		return protocol.JournalEntry{At: "2026-01-31T09:30:00.000Z", Author: "ada", Text: long}
	}
	withWake := func(d *draft) {
		d.wake = wake{limits: protocol.TeamContext{BodyChars: 5000}, Snapshot: workstate.Snapshot{Omitted: 2, Tickets: map[string]model.Ticket{}}}
		for i := range 1000 {
			key := fmt.Sprint("ACME-", i)
			d.wake.Tickets[key] = model.Ticket{Key: key, Description: long}
			d.wake.Nodes = append(d.wake.Nodes, workstate.Node{Place: model.Place{Type: model.RefTicket, Ref: key}, Role: protocol.WhyLinked})
		}
	}
	journal := func(d *draft) { d.journal = append(many(1000, entry), d.journal...) }
	feedback := func(n, size int) func(*draft) {
		return func(d *draft) {
			d.offer.Context.Feedback = append(many(n, func(int) protocol.Feedback {
				return protocol.Feedback{Actor: "grace", Kind: protocol.FeedbackReview, Body: strings.Repeat("y", size)}
			}), d.offer.Context.Feedback...)
		}
	}
	all := func(o protocol.Offer) bool {
		c := o.Context
		return c.Feedback[len(c.Feedback)-1].Body == "newest" && c.Journal[len(c.Journal)-1].Text == "the last entry" && len(c.Links) == 1
	}
	left := func(o protocol.Offer) string {
		if len(o.Context.Journal) > 1 && o.Context.Journal[1].Author == "office" {
			return o.Context.Journal[1].Text
		}
		return ""
	}
	for name, tc := range map[string]struct {
		draft *draft
		want  func(protocol.Offer) bool
	}{
		"what fits stays whole": {draftWith(), func(o protocol.Offer) bool { return all(o) && len(o.Context.Journal) == 3 && left(o) == "" }},
		"what is linked goes first": {draftWith(withWake), func(o protocol.Offer) bool {
			w := o.Context.Wake
			return all(o) && left(o) == "" && len(w.Tickets) > 200 && w.Tickets[0].Key == "ACME-0" && *w.Omitted == 2+1000-len(w.Tickets)
		}},
		"then the journal of earlier work": {draftWith(withWake, func(d *draft) { d.earlier = many(1000, entry) }), func(o protocol.Offer) bool {
			return all(o) && *o.Context.Wake.Omitted == 1002 && strings.Contains(left(o), "entries of the journal of earlier work are left out")
		}},
		"then older entries of the journal": {draftWith(journal), func(o protocol.Offer) bool {
			n := len(o.Context.Journal)
			return all(o) && n > 200 && strings.HasPrefix(left(o), fmt.Sprint(1004-n, " earlier entries of the journal are left out"))
		}},
		"feedback goes last of all, the oldest first": {draftWith(withWake, journal, feedback(1000, 2000)), func(o protocol.Offer) bool {
			f := o.Context.Feedback
			return len(f) > 200 && f[len(f)-1].Body == "newest" && f[len(f)-2].Body == "older" && strings.Contains(left(o), fmt.Sprint(1002-len(f), " older pieces of feedback")) &&
				strings.Contains(left(o), "1002 earlier entries of the journal")
		}},
		"one piece of feedback that is larger than a frame is cut": {draftWith(func(d *draft) {
			d.offer.Context.Feedback = []protocol.Feedback{{Actor: "grace", Kind: protocol.FeedbackChat, Body: strings.Repeat("é", 1<<20)}}
		}), func(o protocol.Offer) bool {
			return strings.HasSuffix(o.Context.Feedback[0].Body, "é…") && strings.Contains(left(o), "texts, cut")
		}},
		"a review with more comments than a frame takes": {draftWith(func(d *draft) {
			d.offer.Context.Feedback = []protocol.Feedback{{Actor: "grace", Kind: protocol.FeedbackReview, Comments: many(1000, func(i int) protocol.InlineComment {
				return protocol.InlineComment{ID: fmt.Sprint(i), Path: "a.go", Body: long}
			})}}
		}), func(o protocol.Offer) bool {
			c := o.Context.Feedback[0].Comments
			return len(c) > 200 && c[len(c)-1].ID == "999" && strings.Contains(left(o), "inline comments")
		}},
		"links, subjects and files": {draftWith(func(d *draft) {
			d.offer.Context.Links = many(1000, func(int) protocol.Link { return protocol.Link{URL: "https://x.example/" + long} })
			d.offer.Context.Subjects = many(1000, func(i int) protocol.Subject { return protocol.Subject{Type: "pr", Ref: fmt.Sprint(i), Title: long} })
			d.offer.WorkItem.Origin = &protocol.Origin{Files: many(1000, func(int) protocol.File { return protocol.File{URL: long} })}
		}), func(o protocol.Offer) bool {
			return o.Context.Feedback[1].Body == "newest" && o.Context.Subjects[0].Ref == "0" && len(o.Context.Links) == 0 && strings.Contains(left(o), "1000 links")
		}},
		"a request that is larger than a frame is cut at the very end": {draftWith(journal, func(d *draft) { d.request.Text = strings.Repeat("\x01", 262144) }), func(o protocol.Offer) bool {
			return len(o.Context.Journal) == 2 && len(o.Context.Journal[0].Text) > 100_000 && strings.Contains(left(o), "texts, cut")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			frame, err := tc.draft.fit()
			if err != nil {
				t.Fatal(err)
			}
			if len(frame) > protocol.MaxFrame {
				t.Fatalf("the frame has %d bytes", len(frame))
			}
			f, werr := protocol.Decode(frame)
			if werr != nil {
				t.Fatal(werr)
			}
			offer := f.Message.(protocol.Offer)
			if offer.Context.Journal[0].Author != "grace" {
				t.Errorf("the request is not the first entry")
			}
			if !tc.want(offer) {
				c := offer.Context
				t.Errorf("kept are %d entries, %d feedback, %d links, %d subjects; it says %q", len(c.Journal), len(c.Feedback), len(c.Links), len(c.Subjects), left(offer))
			}
		})
	}
}

// plain reads what an item without anything around it takes. Any other read fails the test: the embedded Reader is nil.
type plain struct {
	store.Reader
	reads int
}

func (p *plain) Journal(string) ([]model.JournalEntry, error) { p.reads++; return nil, nil }
func (p *plain) Refs(string) ([]model.Ref, error)             { p.reads++; return nil, nil }
func (p *plain) Threads(string) ([]model.Thread, error)       { p.reads++; return nil, nil }

func TestAnItemWithoutRefsIsOfferedForAHandfulOfReads(t *testing.T) {
	r := &plain{}
	d, err := draftOf(r, model.Item{ID: "fix", CreatedAt: time.Unix(1, 0), Round: &model.Round{Number: 1}, Spec: model.ItemSpec{Title: "Fix"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.reads > 5 {
		t.Errorf("it took %d reads", r.reads)
	}
	d.render()
	if c := d.offer.Context; c.Wake != nil || len(c.Subjects) != 0 || c.Subjects == nil || c.Links == nil || len(c.Journal) != 1 || c.Feedback != nil || c.Conversation != nil {
		t.Errorf("its context is %+v", c)
	}
}
