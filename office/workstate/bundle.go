package workstate

// This file builds the wake bundle of an offer from what was gathered.

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Said is what was said at a place: the latest remarks, oldest first, and how many there are in all.
type Said struct {
	Remarks []model.Remark
	Total   int
}

// Snapshot is what a bundle is built from.
type Snapshot struct {
	// Nodes are the places in it, nearest first; Omitted counts those that did not fit.
	Nodes   []Node
	Omitted int
	// Focus is the key of the ticket that is worked on.
	Focus   string
	Tickets map[string]model.Ticket
	Pulls   map[string]model.Pull
	Docs    map[string]model.Doc
	Threads map[string]model.Thread
	// Open has the open pull requests of a repository, for what is stacked on what.
	Open map[string][]model.Pull
	Said map[model.Place]Said
	// Implementing are the pull requests of the ticket that is worked on and of its parent, open and merged ones.
	Implementing []model.Pull
}

// Bundle builds the bundle within the limits of its lists and texts. It is nil where there is nothing to tell.
func Bundle(s Snapshot, limits protocol.TeamContext) *protocol.Wake {
	if len(s.Nodes) == 0 && s.Omitted == 0 {
		return nil
	}
	b := bundle{s, limits}
	wake := &protocol.Wake{
		Tickets: []protocol.WakeTicket{}, PRs: []protocol.WakePull{}, Docs: []protocol.WakeDoc{}, Chats: []protocol.WakeChat{},
		Omitted: count(s.Omitted),
	}
	for _, n := range s.Nodes {
		switch n.Place.Type {
		case model.RefTicket:
			wake.Tickets = append(wake.Tickets, b.ticket(n))
		case model.RefPull:
			wake.PRs = append(wake.PRs, b.pull(n))
		case model.RefDoc:
			d := s.Docs[n.Place.Ref]
			wake.Docs = append(wake.Docs, protocol.WakeDoc{ID: d.ID, Title: d.Title, URL: d.URL, Ticket: d.Ticket, Why: why(n)})
		case model.RefThread:
			wake.Chats = append(wake.Chats, b.chat(n))
		}
	}
	return wake
}

type bundle struct {
	Snapshot
	limits protocol.TeamContext
}

// count is a number that is absent where it is zero.
func count(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

func why(n Node) protocol.Why {
	w := protocol.Why{Role: n.Role, Source: n.Source}
	if !n.AddedAt.IsZero() {
		w.AddedAt = protocol.FormatTime(n.AddedAt)
	}
	return w
}

func (b bundle) cut(text string) string { return Cut(text, b.limits.BodyChars) }

// latest gives the last of a list, at most limit, and how many of all are left out.
func latest[T any](list []T, total, limit int) ([]T, *int) {
	kept := list[max(0, len(list)-limit):]
	return kept, count(total - len(kept))
}

func (b bundle) ticket(n Node) protocol.WakeTicket {
	t := b.Tickets[n.Place.Ref]
	out := protocol.WakeTicket{
		Key: t.Key, Title: t.Title, URL: t.URL, Status: string(t.Status), Assignee: t.Assignee, Description: b.cut(t.Description),
		Comments: []protocol.TicketComment{}, Why: why(n),
	}
	said := b.Said[n.Place]
	remarks, more := latest(said.Remarks, said.Total, b.limits.Comments)
	out.MoreComments = more
	for _, r := range remarks {
		out.Comments = append(out.Comments, protocol.TicketComment{
			Author: r.Author, At: protocol.FormatTime(r.At), URL: r.URL, Body: b.cut(r.Body),
		})
	}
	if t.Key == b.Focus {
		out.Reviews, out.MoreReviews = b.reviews()
	}
	return out
}

// reviews lists what was said in reviews of the pull requests of the ticket that is worked on, newest first: all of a thread that a human
// opened, and of any other what humans said.
func (b bundle) reviews() ([]protocol.TicketReview, *int) {
	type found struct {
		model.Remark
		pull model.Pull
	}
	var all []found
	for _, p := range b.Implementing {
		opened := map[string]bool{} // threads, and whether a human opened them
		for _, r := range b.Said[model.Place{Type: model.RefPull, Ref: p.Ref}].Remarks {
			if r.Path == "" && r.ThreadID == "" {
				continue // no review comment, but a part of the conversation
			}
			human, known := opened[r.ThreadID]
			if !known && r.ThreadID != "" {
				human = r.Human
				opened[r.ThreadID] = human
			}
			if human || r.Human {
				all = append(all, found{r, p})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.At.Compare(a.At) })
	var reviews []protocol.TicketReview
	for _, f := range all[:min(len(all), b.limits.Reviews)] {
		reviews = append(reviews, protocol.TicketReview{
			PR: f.pull.Ref, Ticket: f.pull.Ticket, Resolved: f.Resolved, Path: f.Path, Line: count(f.Line), URL: f.URL, Author: f.Author,
			At: protocol.FormatTime(f.At), Body: b.cut(f.Body),
		})
	}
	return reviews, count(len(all) - len(reviews))
}

// Title is what to call a pull request for people: its title, else its key.
func Title(p model.Pull) string {
	if p.Title == "" {
		return p.Ref
	}
	return p.Title
}

func (b bundle) pull(n Node) protocol.WakePull {
	p := b.Pulls[n.Place.Ref]
	out := protocol.WakePull{
		Ref: p.Ref, Number: p.Number, Title: Title(p), URL: p.URL, State: cmp.Or(p.State, protocol.PullOpen), Draft: p.Draft,
		CI: cmp.Or(p.CI, protocol.ChecksNone), Failing: []string{}, Mergeable: cmp.Or(p.Mergeable, protocol.MergeableUnknown),
		Review: p.Review, UnresolvedThreads: p.UnresolvedThreads, Threads: b.threads(n.Place), Ticket: p.Ticket,
		StackedBy: []string{}, Why: why(n),
	}
	out.Failing = append(out.Failing, p.Failing...)
	out.StackedOn, out.StackedBy = Stack(p, b.Open[p.Repo])
	return out
}

// Stack tells which of a repository's open pull requests a pull request builds on, and which build on it: one's head is the other's base.
func Stack(p model.Pull, open []model.Pull) (on string, by []string) {
	by = []string{}
	for _, o := range open {
		switch {
		case o.Ref == p.Ref || o.Repo != p.Repo || o.State != protocol.PullOpen || o.Head == o.Base:
		case o.Head != "" && o.Head == p.Base && on == "":
			on = o.Ref
		case p.Head != "" && o.Base == p.Head:
			by = append(by, o.Ref)
		}
	}
	return on, by
}

// threads lists the latest unresolved threads of a pull request's reviews, oldest first, each with what it opened with.
func (b bundle) threads(place model.Place) []protocol.ReviewThread {
	var open []protocol.ReviewThread
	seen := map[string]bool{}
	for _, r := range b.Said[place].Remarks {
		if r.ThreadID == "" || r.Resolved || seen[r.ThreadID] {
			continue
		}
		seen[r.ThreadID] = true
		open = append(open, protocol.ReviewThread{Path: r.Path, Line: count(r.Line), URL: r.URL, Author: r.Author, Body: b.cut(r.Body)})
	}
	kept, _ := latest(open, len(open), b.limits.Threads)
	return append([]protocol.ReviewThread{}, kept...)
}

func (b bundle) chat(n Node) protocol.WakeChat {
	t, known := b.Threads[n.Place.Ref]
	if !known {
		t.Channel, t.Thread, _ = strings.Cut(n.Place.Ref, "/")
	}
	out := protocol.WakeChat{Channel: t.Channel, Thread: t.Thread, Messages: []protocol.WakeMessage{}, Why: why(n)}
	said := b.Said[n.Place]
	remarks, more := latest(said.Remarks, said.Total, b.limits.Messages)
	out.MoreMessages = more
	for _, r := range remarks {
		out.Messages = append(out.Messages, protocol.WakeMessage{Author: r.Author, At: protocol.FormatTime(r.At), Text: b.cut(r.Body)})
	}
	return out
}

// mostConversation is how many entries of a conversation come before feedback, mostEntry how many characters each has.
const (
	mostConversation = 5
	mostEntry        = 1000
)

// Conversation gives the few entries of a pull request's conversation before the first feedback that is a part of it, oldest first. It is
// empty where the round was started by anything else. said has the remarks at the places of such feedback.
func Conversation(feedback []model.Feedback, said map[model.Place]Said, limits protocol.TeamContext) []protocol.ConversationEntry {
	first, ok := ConversationStart(feedback)
	if !ok {
		return nil
	}
	var entries []protocol.ConversationEntry
	for _, r := range said[first.Place].Remarks {
		if SaidKey(first.Place, r.ID) == first.Key {
			break
		}
		kind := protocol.ConversationComment
		switch {
		case r.Kind == EventPullReviewed && r.Path == "":
			kind = protocol.ConversationReview
		case r.Kind != EventPullCommented:
			continue
		}
		entries = append(entries, protocol.ConversationEntry{
			Kind: kind, Author: r.Author, At: protocol.FormatTime(r.At), State: r.State, URL: r.URL,
			Body: Cut(r.Body, min(mostEntry, limits.BodyChars)),
		})
	}
	return entries[max(0, len(entries)-mostConversation):]
}

// ConversationStart gives the first feedback that is a part of a pull request's conversation: a comment in it, or the summary of a review.
func ConversationStart(feedback []model.Feedback) (model.Feedback, bool) {
	for _, f := range feedback {
		if k := f.Feedback.Kind; f.Place.Type == model.RefPull && (k == protocol.FeedbackComment || k == protocol.FeedbackReview) {
			return f, true
		}
	}
	return model.Feedback{}, false
}
