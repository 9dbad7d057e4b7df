package workstate

// This file writes a person's open work as text, for a chat session to read.

import (
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
)

// CurrentWork tells of a person's open tickets, pull requests and work items, a line each.
func CurrentWork(tickets []model.Ticket, pulls []model.Pull, items []model.Item) string {
	var b strings.Builder
	section := func(title string, n int, line func(i int) string) {
		if n == 0 {
			return
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(title + ":\n")
		for i := range n {
			b.WriteString("- " + line(i) + "\n")
		}
	}
	section("Tickets assigned to you", len(tickets), func(i int) string {
		t := tickets[i]
		return fmt.Sprintf("%s (%s): %s%s", t.Key, t.Status, t.Title, page(t.URL))
	})
	section("Your open pull requests", len(pulls), func(i int) string {
		p := pulls[i]
		return p.Ref + " (" + strings.Join(standing(p), ", ") + "): " + Title(p) + page(p.URL)
	})
	section("Your work items, in the order in which they run", len(items), func(i int) string {
		it := items[i]
		return fmt.Sprintf("%s (%s, %s): %s", it.Name, it.Spec.Kind, it.State, it.Spec.Title)
	})
	if b.Len() == 0 {
		return "You have no open tickets, pull requests or work items."
	}
	return b.String()
}

func page(url string) string {
	if url == "" {
		return ""
	}
	return " <" + url + ">"
}

// standing says how an open pull request stands, in a few words.
func standing(p model.Pull) []string {
	var words []string
	if p.Draft {
		words = append(words, "draft")
	}
	words = append(words, "checks "+string(p.CI))
	if p.Review != "" {
		words = append(words, "review "+p.Review)
	}
	if p.UnresolvedThreads > 0 {
		words = append(words, fmt.Sprintf("%d unresolved threads", p.UnresolvedThreads))
	}
	if p.Ticket != "" {
		words = append(words, "for "+p.Ticket)
	}
	return words
}
