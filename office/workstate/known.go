package workstate

// This file merges what an event says into what is known: an older event that comes late changes nothing, and what an event does not
// speak of stays.

import (
	"slices"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// NextTicket gives the ticket after an event of that time. It says false where a newer event was taken in already.
func NextTicket(known *model.Ticket, d TicketChanged, assignee string, team model.TeamKey, at time.Time) (model.Ticket, bool) {
	if known != nil && known.AsOf.After(at) {
		return *known, false
	}
	return model.Ticket{
		Team: team, Key: d.Key, Title: d.Title, URL: d.URL, Status: d.Status, Assignee: assignee, Description: d.Description,
		Parent: d.Parent, UpdatedAt: at, AsOf: at,
	}, true
}

// NextPull gives the pull request after an event of that time; now is when the office heard of it. It says false where a newer event was
// taken in already. An author whom the office knows to be a person of the team, because the agent told that it opened it, stays where the
// code host names a stranger: it knows that person under a login of its own.
func NextPull(known *model.Pull, d PullChanged, author Who, keys Keys, team model.TeamKey, at, now time.Time) (model.Pull, bool) {
	if known != nil && known.AsOf.After(at) {
		return *known, false
	}
	next := model.Pull{CI: protocol.ChecksNone, OpenedAt: at}
	old := model.Pull{}
	if known != nil {
		next, old = *known, *known
	}
	next.Team, next.Ref, next.Repo, next.Number = team, PullRef(d.Repo, d.Number), d.Repo, d.Number
	next.Title, next.URL, next.State, next.Draft, next.Head, next.Base = d.Title, d.URL, d.State, d.Draft, d.Head, d.Base
	next.Mergeable, next.UpdatedAt, next.AsOf = d.Mergeable, now, at
	if next.Mergeable == "" {
		next.Mergeable = protocol.MergeableUnknown
	}
	if opened, err := protocol.ParseTime(d.OpenedAt); d.OpenedAt != "" && err == nil {
		next.OpenedAt = opened
	}
	if old.AuthorKind != protocol.AuthorAgent || author.Trusted() {
		next.Author, next.AuthorKind = author.Name, authorKind(author, d.Bot)
	}
	renamed := old.Head != d.Head || old.Title != d.Title
	switch key := TicketOf(PullText{Repo: d.Repo, Head: d.Head, Title: d.Title, Body: d.Body}, keys); {
	case d.Ticket != "":
		next.Ticket = d.Ticket
	case key != "" && (old.Ticket == "" || renamed && old.Head != ""):
		next.Ticket = key
	}
	return next, true
}

func authorKind(author Who, bot bool) protocol.AuthorKind {
	switch {
	case author.Person != "":
		return protocol.AuthorAgent
	case bot:
		return protocol.AuthorBot
	}
	return protocol.AuthorHuman
}

// MadePull is a pull request that a person of the team says to have opened, before any event told of it.
func MadePull(team model.TeamKey, repo string, number int, url, author string, now time.Time) model.Pull {
	return model.Pull{
		Team: team, Ref: PullRef(repo, number), Repo: repo, Number: number, URL: url, State: protocol.PullOpen, Author: author,
		AuthorKind: protocol.AuthorAgent, CI: protocol.ChecksNone, Mergeable: protocol.MergeableUnknown, OpenedAt: now, UpdatedAt: now,
	}
}

// mostTold bounds how many sets of failing checks somebody is woken for until the checks go well.
const mostTold = 10

// NextChecks gives the pull request after its checks were told, and whether its author is to be woken: when they turn to failure, with a
// set of failing checks that nobody was woken for since they last went well at another commit. So checks that come again and again, or
// that fail and pass in turn at one commit, cost no rounds, nor does an agent that never gets them to pass.
func NextChecks(p model.Pull, d PullChecks, at, now time.Time) (next model.Pull, fresh, wake bool) {
	if p.ChecksAsOf.After(at) {
		return p, false, false
	}
	p.CI, p.Failing, p.Checked, p.ChecksAsOf, p.UpdatedAt = d.State, nil, d.SHA, at, now
	if d.State != protocol.ChecksFailure {
		if d.State == protocol.ChecksSuccess && d.SHA != p.ToldAt {
			p.Told, p.ToldAt = nil, ""
		}
		return p, true, false
	}
	for _, c := range d.Failing {
		p.Failing = append(p.Failing, c.Name)
	}
	slices.Sort(p.Failing)
	p.Failing = slices.Compact(p.Failing)
	set := strings.Join(p.Failing, "\n")
	if p.State != protocol.PullOpen || slices.Contains(p.Told, set) || len(p.Told) >= mostTold {
		return p, true, false
	}
	p.Told, p.ToldAt = append(slices.Clone(p.Told), set), d.SHA
	return p, true, true
}

// Failures writes failing checks as the body of feedback.
func Failures(ref string, d PullChecks) string {
	var b strings.Builder
	b.WriteString("Checks of " + ref + " fail at " + d.SHA + ".")
	for _, c := range d.Failing {
		b.WriteString("\n- " + c.Name)
		if c.URL != "" {
			b.WriteString(" (" + c.URL + ")")
		}
		if c.Summary != "" {
			b.WriteString(": " + Cut(c.Summary, 1000))
		}
	}
	return b.String()
}

// Unresolved counts the threads of reviews that are open, of all remarks at a pull request.
func Unresolved(remarks []model.Remark) int {
	open := map[string]bool{}
	for _, r := range remarks {
		if r.ThreadID != "" && !r.Resolved {
			open[r.ThreadID] = true
		}
	}
	return len(open)
}

// RemarkID is the id of a remark at its place: a code host numbers comments, reviews and inline comments apart from each other, so the
// same number may come more than once.
func RemarkID(eventType, id string) string {
	switch eventType {
	case EventPullReviewed:
		return "review/" + id
	case EventPullReviewComment:
		return "inline/" + id
	}
	return id
}

// SaidKey recognises the feedback that a remark is.
func SaidKey(place model.Place, remarkID string) string {
	return "said/" + string(place.Type) + "/" + place.Ref + "/" + remarkID
}
