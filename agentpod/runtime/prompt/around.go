package prompt

// This file writes what is around the work: the journal, links, and the tickets, pull requests, documents and threads that the office
// knows.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// around is all that is around the work.
func around(round runtime.Round, o Options) string {
	c := round.Offer.Context
	parts := []string{
		journal(c.Journal, round.Person.Handle, o),
		conversation(c.Conversation),
	}
	if !o.Resumes {
		parts = append(parts, origin(round.Offer.WorkItem.Origin), subjects(c.Subjects), links(c.Links))
	}
	if c.Wake != nil {
		parts = append(parts, wake(*c.Wake)...)
	}
	for i, part := range parts {
		parts[i] = cut(part, maxSection, o.OfferFile)
	}
	text := join("\n\n", parts...)
	if text != "" && o.OfferFile != "" {
		text += "\n\nAll of it as JSON is in the file " + o.OfferFile + "."
	}
	return text
}

// journal is what was written down about the item. A session that goes on knows what it wrote itself.
func journal(entries []protocol.JournalEntry, me string, o Options) string {
	if len(entries) < 2 {
		return ""
	}
	var told []protocol.JournalEntry
	for _, e := range entries[1:] {
		if !o.Resumes || e.Author != me {
			told = append(told, e)
		}
	}
	if len(told) == 0 {
		return ""
	}
	var p page
	p.section("Journal of the item")
	if o.Resumes {
		p.line("What others wrote into it, the latest last. You may know the earlier entries.\n")
	} else {
		p.line("What was written into it since it was asked, the latest last.\n")
	}
	if left := len(told) - maxJournal; left > 0 {
		p.line("%d earlier entries are left out.\n", left)
		told = told[left:]
	}
	for _, e := range told {
		p.line("%s, %s:\n%s\n", oneLine(e.Author), oneLine(e.At), quote(e.Text))
	}
	return p.String()
}

func conversation(entries []protocol.ConversationEntry) string {
	return each("The conversation before that", entries, func(p *page, e protocol.ConversationEntry) {
		p.line("%s, %s%s:\n%s\n", oneLine(e.Author), oneLine(e.At), when(e.State != "", ", "+oneLine(e.State)), quote(e.Body))
	})
}

func origin(from *protocol.Origin) string {
	if from == nil {
		return ""
	}
	var p page
	p.section("Where it came from")
	p.line("%s asked in chat (channel %s, thread %s).", oneLine(cmp.Or(from.Requester.Name, from.Requester.ID)), oneLine(from.Channel),
		oneLine(from.Thread))
	if from.About != nil {
		p.line("It belongs with the earlier item %s (%s), which is %s.", oneLine(from.About.Title), oneLine(from.About.ID), from.About.State)
	}
	for _, f := range from.Files {
		p.line("- a file: %s, %s, %d bytes", oneLine(f.Name), oneLine(f.MIMEType), f.Size)
	}
	return p.String()
}

func subjects(list []protocol.Subject) string {
	return each("What it concerns", list, func(p *page, s protocol.Subject) {
		p.line("- %s", join(", ", oneLine(s.Type+" "+s.Ref), oneLine(s.Title), oneLine(s.URL), string(s.State),
			when(s.HeadRef != "", "branch "+oneLine(s.HeadRef)), when(s.BaseRef != "", "into "+oneLine(s.BaseRef)),
			when(s.Own != nil && *s.Own, "opened by you")))
	})
}

func links(list []protocol.Link) string {
	return each("Links", list, func(p *page, l protocol.Link) {
		p.line("- %s", join(", ", oneLine(l.Title), oneLine(l.URL)))
	})
}

// wake is the state of the work around the item, a part for each sort of thing.
func wake(w protocol.Wake) []string {
	parts := []string{tickets(w.Tickets), pulls(w.PRs), docs(w.Docs), chats(w.Chats), failedChecks(w.FailedChecks), merge(w.Merge)}
	if w.Omitted != nil && *w.Omitted > 0 {
		parts = append(parts, fmt.Sprintf("%d more things around the work are left out.", *w.Omitted))
	}
	return parts
}

func tickets(list []protocol.WakeTicket) string {
	return each("Tickets", list, func(p *page, t protocol.WakeTicket) {
		p.line("### %s\n", join(", ", oneLine(t.Key+" "+t.Title), oneLine(t.Status), oneLine(t.URL),
			when(t.Assignee != "", "assigned to "+oneLine(t.Assignee))))
		if t.Description != "" {
			p.line("%s\n", quote(t.Description))
		}
		more(p, t.MoreComments, "earlier comments")
		for _, c := range t.Comments {
			p.line("%s, %s:\n%s\n", oneLine(c.Author), oneLine(c.At), quote(c.Body))
		}
		for _, r := range t.Reviews {
			p.line("%s on %s%s, %s%s:\n%s\n", oneLine(r.Author), oneLine(join(" ", r.PR, r.Path)), lineOf(r.Line), oneLine(r.At),
				when(r.Resolved, ", resolved"), quote(r.Body))
		}
		more(p, t.MoreReviews, "older remarks of reviews")
	})
}

func pulls(list []protocol.WakePull) string {
	return each("Pull requests", list, func(p *page, r protocol.WakePull) {
		p.line("### %s\n", join(", ", oneLine(r.Ref+" "+r.Title), string(r.State)+when(r.Draft, " draft"), oneLine(r.URL)))
		failing := when(len(r.Failing) > 0, " ("+oneLine(strings.Join(r.Failing, ", "))+")")
		p.line("checks: %s%s; mergeable: %s%s%s%s\n", r.CI, failing, r.Mergeable,
			when(r.Review != "", "; review: "+oneLine(r.Review)), when(r.Ticket != "", "; for "+oneLine(r.Ticket)),
			when(r.StackedOn != "", "; built on "+oneLine(r.StackedOn)))
		for _, t := range r.Threads {
			p.line("%s at %s%s:\n%s\n", oneLine(t.Author), oneLine(t.Path), lineOf(t.Line), quote(t.Body))
		}
		if left := r.UnresolvedThreads - len(r.Threads); left > 0 {
			more(p, &left, "open threads")
		}
	})
}

func docs(list []protocol.WakeDoc) string {
	return each("Documents", list, func(p *page, d protocol.WakeDoc) {
		p.line("- %s", join(", ", oneLine(d.Title), oneLine(d.URL), when(d.Ticket != "", "for "+oneLine(d.Ticket))))
	})
}

func chats(list []protocol.WakeChat) string {
	return each("Threads in chat", list, func(p *page, c protocol.WakeChat) {
		p.line("### %s, thread %s\n", oneLine(c.Channel), oneLine(c.Thread))
		more(p, c.MoreMessages, "earlier messages")
		for _, m := range c.Messages {
			p.line("%s, %s:\n%s\n", oneLine(m.Author), oneLine(m.At), quote(m.Text))
		}
	})
}

func failedChecks(list []protocol.FailedCheck) string {
	return each("Checks that failed after a merge", list, func(p *page, c protocol.FailedCheck) {
		p.line("### %s\n", join(", ", oneLine(c.Name), "merged with "+oneLine(c.PR), oneLine(c.URL),
			when(c.TimedOut != nil && *c.TimedOut, "not ended in time"), oneLine(c.Note)))
		for _, s := range c.Steps {
			p.line("The end of the step %s:\n%s\n", oneLine(s.Name), quote(strings.Join(s.Lines, "\n")))
		}
	})
}

// merge is what a decision to merge rests on: figures and names, best read as they are.
func merge(m *protocol.Merge) string {
	if m == nil {
		return ""
	}
	var p page
	p.section("The merge to decide on")
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "" // it was decoded from JSON
	}
	p.line("%s", quote(string(data)))
	return p.String()
}

// more says how much was left out.
func more(p *page, n *int, what string) {
	if n != nil && *n > 0 {
		p.line("%d %s are left out.\n", *n, what)
	}
}
