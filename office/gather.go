package office

// This file gathers what the office knows around a work item, for the wake bundle of its offer. What to gather, and what becomes of it, is
// decided in package workstate.

import (
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

// Bounds of what is read for one offer.
const (
	// mostRemarks is how many of the latest remarks at a pull request are looked at for its threads, reviews and conversation.
	mostRemarks = 300
	// mostPulls is how many pull requests of a ticket, and how many open ones of a repository, are looked at.
	mostPulls = 100
)

// wake is what the wake bundle is built from, and its limits.
type wake struct {
	workstate.Snapshot
	limits protocol.TeamContext
}

// gather reads what is around an item. An item that has to do with nothing costs no more than the reads that tell so.
func gather(r store.Reader, it model.Item, refs []model.Ref, feedback []model.Feedback) (wake, error) {
	threads, err := r.Threads(it.ID)
	if err != nil || (it.Spec.Subject == nil && len(refs) == 0 && len(threads) == 0 && len(feedback) == 0) {
		return wake{}, err
	}
	g := gatherer{r: r, team: it.TeamKey(), pullsOf: map[string][]model.Pull{}}
	g.Snapshot = workstate.Snapshot{
		Tickets: map[string]model.Ticket{}, Pulls: map[string]model.Pull{}, Docs: map[string]model.Doc{}, Threads: map[string]model.Thread{},
		Open: map[string][]model.Pull{}, Said: map[model.Place]workstate.Said{},
	}
	if g.limits, err = contextLimits(r, g.team); err != nil {
		return wake{}, err
	}
	for _, t := range threads {
		g.Threads[model.ThreadRef(t.Channel, t.Thread)] = t
	}
	mentioned, err := g.mentioned(feedback)
	if err != nil {
		return wake{}, err
	}
	roots := workstate.Roots(workstate.Around{Item: it, Refs: refs, Threads: threads, Feedback: feedback, Mentioned: mentioned})
	if g.Nodes, err = workstate.Walk(roots, &g, g.limits.Items); err != nil {
		return wake{}, err
	}
	if most := g.limits.Items; len(g.Nodes) > most {
		g.Omitted, g.Nodes = len(g.Nodes)-most, g.Nodes[:most]
	}
	g.Focus = workstate.Focus(it, g.Nodes, func(ref string) *model.Pull {
		if p, known := g.Pulls[ref]; known {
			return &p
		}
		return nil
	})
	return g.wake, g.details()
}

// contextLimits are those of the team, or the defaults where it is gone.
func contextLimits(r store.Reader, key model.TeamKey) (protocol.TeamContext, error) {
	team, err := found(r.Team(key))
	if err != nil || team == nil {
		return protocol.DefaultTeamConfig().Pipeline.Context, err
	}
	return team.Config.Pipeline.Context, nil
}

// gatherer reads the places of a walk, and keeps what it read.
type gatherer struct {
	wake
	r       store.Reader
	team    model.TeamKey
	pullsOf map[string][]model.Pull // by ticket
}

// Known says whether the office knows the place.
func (g *gatherer) Known(place model.Place) (bool, error) {
	switch place.Type {
	case model.RefTicket:
		t, err := g.ticket(place.Ref)
		return t != nil, err
	case model.RefPull:
		if _, known := g.Pulls[place.Ref]; known {
			return true, nil
		}
		p, err := found(g.r.Pull(g.team, place.Ref))
		if p != nil {
			g.Pulls[p.Ref] = *p
		}
		return p != nil, err
	case model.RefDoc:
		if _, known := g.Docs[place.Ref]; known {
			return true, nil
		}
		d, err := found(g.r.Doc(g.team, place.Ref))
		if d != nil {
			g.Docs[d.ID] = *d
		}
		return d != nil, err
	case model.RefThread:
		return true, nil
	}
	return false, nil
}

func (g *gatherer) ticket(key string) (*model.Ticket, error) {
	if t, known := g.Tickets[key]; known {
		return &t, nil
	}
	t, err := found(g.r.Ticket(g.team, key))
	if t != nil {
		g.Tickets[key] = *t
	}
	return t, err
}

// Linked lists what is linked to a place: a ticket has pull requests, documents, a parent and sub-tickets; a pull request has a ticket and
// what it is stacked with; a document has a ticket.
func (g *gatherer) Linked(place model.Place) ([]model.Place, error) {
	switch place.Type {
	case model.RefTicket:
		return g.linkedToTicket(place.Ref)
	case model.RefPull:
		p := g.Pulls[place.Ref]
		open, err := g.openOf(p.Repo)
		if err != nil {
			return nil, err
		}
		places := ticketPlace(p.Ticket)
		on, by := workstate.Stack(p, open)
		if on != "" {
			by = append([]string{on}, by...)
		}
		for _, ref := range by {
			places = append(places, model.Place{Type: model.RefPull, Ref: ref})
		}
		return places, nil
	case model.RefDoc:
		return ticketPlace(g.Docs[place.Ref].Ticket), nil
	case model.RefThread:
	}
	return nil, nil
}

func ticketPlace(key string) []model.Place {
	if key == "" {
		return nil
	}
	return []model.Place{{Type: model.RefTicket, Ref: key}}
}

func (g *gatherer) linkedToTicket(key string) ([]model.Place, error) {
	pulls, err := g.pulls(key)
	if err != nil {
		return nil, err
	}
	var places []model.Place
	for _, p := range pulls {
		g.Pulls[p.Ref] = p
		places = append(places, model.Place{Type: model.RefPull, Ref: p.Ref})
	}
	docs, err := g.r.DocsFor(g.team, key)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		g.Docs[d.ID] = d
		places = append(places, model.Place{Type: model.RefDoc, Ref: d.ID})
	}
	places = append(places, ticketPlace(g.Tickets[key].Parent)...)
	parts, err := g.r.SubTickets(g.team, key)
	for _, t := range parts {
		g.Tickets[t.Key] = t
		places = append(places, ticketPlace(t.Key)...)
	}
	return places, err
}

// pulls lists the pull requests of a ticket, once.
func (g *gatherer) pulls(ticket string) ([]model.Pull, error) {
	if pulls, known := g.pullsOf[ticket]; known {
		return pulls, nil
	}
	pulls, _, err := g.r.Pulls(g.team, model.PullFilter{State: protocol.ListAll, Ticket: ticket, Limit: mostPulls})
	g.pullsOf[ticket] = pulls
	return pulls, err
}

// openOf lists the open pull requests of a repository, once.
func (g *gatherer) openOf(repo string) ([]model.Pull, error) {
	if open, known := g.Open[repo]; known {
		return open, nil
	}
	open, _, err := g.r.Pulls(g.team, model.PullFilter{State: protocol.ListOpen, Repo: repo, Limit: mostPulls})
	g.Open[repo] = open
	return open, err
}

// mentioned finds what the feedback names.
func (g *gatherer) mentioned(feedback []model.Feedback) ([]workstate.Node, error) {
	var nodes []workstate.Node
	for _, f := range feedback {
		for _, target := range workstate.Mentions(f.Feedback.Body) {
			place, err := target.Resolve(workstate.Lookup{
				Ticket: g.ticket,
				Pull:   func(ref string) (*model.Pull, error) { return found(g.r.Pull(g.team, ref)) },
				Doc:    func(string) (*model.Doc, error) { return nil, nil },
				Linked: func(string) (model.Place, error) { return model.Place{}, nil },
			})
			if unresolved(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			nodes = append(nodes, workstate.Node{Place: place, Role: protocol.WhyMentioned, Source: mentionSource(f), AddedAt: f.At})
		}
	}
	return nodes, nil
}

// mentionSource is what named something: the event that brought the feedback, else the comment.
func mentionSource(f model.Feedback) string {
	if f.Source != "" {
		return f.Source
	}
	return string(f.Feedback.Kind) + " " + f.Feedback.CommentID
}

// details reads what was said at the places that made it into the bundle.
func (g *gatherer) details() error {
	for _, n := range g.Nodes {
		limit := 0
		switch n.Place.Type {
		case model.RefTicket:
			limit = g.limits.Comments
		case model.RefThread:
			limit = g.limits.Messages
		case model.RefPull:
			limit = mostRemarks
			if _, err := g.openOf(g.Pulls[n.Place.Ref].Repo); err != nil {
				return err
			}
		case model.RefDoc:
			continue
		}
		if err := g.said(n.Place, limit); err != nil {
			return err
		}
		if n.Place.Type == model.RefTicket && n.Place.Ref == g.Focus {
			if err := g.implementing(g.Tickets[g.Focus]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gatherer) said(place model.Place, limit int) error {
	if _, known := g.Said[place]; known {
		return nil
	}
	// A limit of zero would be none; what is beyond the team's is cut later.
	remarks, total, err := g.r.Remarks(g.team, place, max(1, limit))
	g.Said[place] = workstate.Said{Remarks: remarks, Total: total}
	return err
}

// implementing reads the reviews of the pull requests of the ticket that is worked on, and of its parent.
func (g *gatherer) implementing(t model.Ticket) error {
	for _, key := range []string{t.Key, t.Parent} {
		if key == "" {
			continue
		}
		pulls, err := g.pulls(key)
		if err != nil {
			return err
		}
		for _, p := range pulls {
			if p.State == protocol.PullClosed {
				continue
			}
			g.Implementing = append(g.Implementing, p)
			if err := g.said(model.Place{Type: model.RefPull, Ref: p.Ref}, mostRemarks); err != nil {
				return err
			}
		}
	}
	return nil
}

// conversation reads the few entries before the first feedback that is a part of a pull request's conversation.
func conversation(r store.Reader, team model.TeamKey, feedback []model.Feedback,
	limits protocol.TeamContext) ([]protocol.ConversationEntry, error) {
	first, ok := workstate.ConversationStart(feedback)
	if !ok {
		return nil, nil
	}
	remarks, total, err := r.Remarks(team, first.Place, mostRemarks)
	if err != nil {
		return nil, err
	}
	said := map[model.Place]workstate.Said{first.Place: {Remarks: remarks, Total: total}}
	return workstate.Conversation(feedback, said, limits), nil
}
