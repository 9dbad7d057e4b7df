package office

// This file has what agents tell of what they made, and what they ask about the past and about the world outside.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

// Limits of what is asked and told here.
const (
	maxKey     = 300
	maxListed  = 200
	maxMoments = 100
	// maxTickets bounds how many sub-tickets one answer adds up.
	maxTickets = 1000
)

// checkKey refuses what cannot be the key of a ticket or the id of a document.
func checkKey(field, key string) error {
	if key == "" || len(key) > maxKey || oneLine(key, maxKey) != key {
		return protocol.Errorf(protocol.CodeInvalid, "%s must be a key of 1 to %d bytes in one line", field, maxKey)
	}
	return nil
}

func (r request) workMade(m protocol.WorkMade) (protocol.Message, error) {
	var places []model.Place
	if m.PR == nil && m.Ticket == "" {
		return nil, protocol.Errorf(protocol.CodeInvalid, "name what was made: a ticket, or a pull request with the ticket that it is for")
	}
	if m.PR != nil {
		repo := m.PR.Repo.Owner + "/" + m.PR.Repo.Name
		ref := workstate.PullRef(repo, m.PR.Number)
		if t, err := workstate.ParseTarget(ref); err != nil || t.Repo != repo {
			return nil, protocol.Errorf(protocol.CodeInvalid, "pr.repo must be an owner and a name as in acme/shop, not %q", cut(repo, 100))
		}
		places = append(places, model.Place{Type: model.RefPull, Ref: ref})
	}
	if m.Ticket != "" {
		if err := checkKey("ticket", m.Ticket); err != nil {
			return nil, err
		}
		places = append(places, model.Place{Type: model.RefTicket, Ref: m.Ticket})
	}
	return nil, r.onceOnRun(m.WorkItemID, func(w *work, it *model.Item) error {
		if m.PR != nil {
			if err := w.opened(r.p.key, *m.PR, places[0].Ref, m.Ticket); err != nil {
				return err
			}
		}
		return w.made(it, "work_made", places...)
	})
}

// opened keeps a pull request that the person says to have opened.
func (w *work) opened(key model.PersonKey, made protocol.MadePull, ref, ticket string) error {
	known, err := found(w.tx.Pull(key.Team, ref))
	if err != nil {
		return err
	}
	pull := workstate.MadePull(key.Team, made.Repo.Owner+"/"+made.Repo.Name, made.Number, made.URL, key.Handle, w.now)
	if known != nil {
		directory, err := directoryOf(w.tx, key.Team)
		if err != nil {
			return err
		}
		// A stranger may be the person itself, under a login of the code host's.
		if who := directory.Who(workstate.Actor{Login: known.Author}); who.Trusted() && who.Person != key.Handle {
			return protocol.Errorf(protocol.CodeInvalid, "pull request %s was opened by %s", ref, known.Author)
		}
		pull = *known
		pull.Author, pull.AuthorKind, pull.URL = key.Handle, protocol.AuthorAgent, cmp.Or(known.URL, made.URL)
	}
	pull.Ticket = cmp.Or(ticket, pull.Ticket)
	return w.tx.PutPull(pull)
}

// made notes what the agent made in the round that it runs: the item has to do with it from now on, and a hand-back has it to review.
func (w *work) made(it *model.Item, verb string, places ...model.Place) error {
	round := *it.Round
	for _, place := range places {
		err := w.tx.PutRef(model.Ref{ItemID: it.ID, Place: place, Role: protocol.WhyCreated, Source: verb, AddedAt: w.now, Round: round.Number})
		if err != nil {
			return err
		}
		if !slices.Contains(round.Produced, place.Ref) {
			round.Produced = append(slices.Clone(round.Produced), place.Ref)
		}
	}
	it.Round = &round
	return w.put(it)
}

func (r request) docLink(m protocol.DocLink) (protocol.Message, error) {
	err := checkKey("doc.id", m.Doc.ID)
	if err == nil && m.Ticket != "" {
		err = checkKey("ticket", m.Ticket)
	}
	if err != nil {
		return nil, err
	}
	return nil, r.onceOnRun(m.WorkItemID, func(w *work, it *model.Item) error {
		ticket := m.Ticket
		if ticket == "" {
			places, err := placesOf(w.tx, *it)
			if err != nil {
				return err
			}
			for _, place := range places {
				if place.Type == model.RefTicket && ticket == "" {
					ticket = place.Ref
				}
			}
		}
		if err := w.wrote(r.p.key, m.Doc, ticket); err != nil {
			return err
		}
		if err := w.made(it, "doc_link", model.Place{Type: model.RefDoc, Ref: m.Doc.ID}); err != nil || ticket == "" {
			return err
		}
		id := fmt.Sprintf("doc/%s/%s/%s", it.ID, m.Doc.ID, ticket)
		return w.act(id, r.p.key, it.ID, nil, op{Op: "link_doc", Ticket: ticket, Doc: &m.Doc})
	})
}

// wrote keeps a document as the person's own: comments on it reach that person.
func (w *work) wrote(key model.PersonKey, doc protocol.Doc, ticket string) error {
	known, err := found(w.tx.Doc(key.Team, doc.ID))
	if err != nil {
		return err
	}
	if known != nil {
		ticket = cmp.Or(ticket, known.Ticket)
	}
	return w.tx.PutDoc(model.Doc{
		Team: key.Team, ID: doc.ID, Title: doc.Title, URL: doc.URL, Ticket: ticket, Author: key.Handle, UpdatedAt: w.now,
	})
}

// notesChanged logs that a person's notes changed. The notes themselves are the person's alone: the office keeps none of them, and logs
// how long they are.
func (r request) notesChanged(m protocol.NotesChanged) (protocol.Message, error) {
	if m.Doc != nil {
		if err := checkKey("doc.id", m.Doc.ID); err != nil {
			return nil, err
		}
	}
	return nil, r.change(func(w *work) error {
		if m.WorkItemID != "" {
			it, err := itemOf(w.tx, r.p, m.WorkItemID)
			if err != nil {
				return err
			}
			if it.Assignee != r.p.key.Handle {
				return protocol.Errorf(protocol.CodeUnknownItem, "you have no work item %s", it.ID)
			}
		}
		w.after = append(w.after, func() { r.logNotes(m) })
		if m.Doc == nil {
			return nil
		}
		return w.wrote(r.p.key, *m.Doc, "")
	})
}

func (r request) logNotes(m protocol.NotesChanged) {
	log := r.o.log.With("person", r.p.key.String(), "change", string(m.Change))
	if m.Edit != nil {
		log.Warn("A version of a person's notes is by somebody it does not trust, and is not used",
			"author", m.Edit.Author, "version", m.Edit.Version)
		return
	}
	count := 0
	if m.Count != nil {
		count = *m.Count
	}
	log.Info("A person's notes changed", "bytes", len(m.Note), "count", count, "item", m.WorkItemID)
}

func (r request) currentWork(protocol.CurrentWork) (protocol.Message, error) {
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		names := []string{r.p.key.Handle}
		person, err := found(tx.PersonByKey(r.p.key))
		if err != nil {
			return nil, err
		}
		if person != nil {
			names = workstate.NamesOf(*person)
		}
		tickets, err := tx.TicketsOf(r.p.key.Team, names)
		if err != nil {
			return nil, err
		}
		pulls, _, err := tx.Pulls(r.p.key.Team, model.PullFilter{State: protocol.ListOpen, Author: r.p.key.Handle, Limit: maxListed})
		if err != nil {
			return nil, err
		}
		items, err := tx.ItemsOf(r.p.key, false, maxWorkList)
		return protocol.CurrentWorkResult{Text: workstate.CurrentWork(tickets, pulls, items)}, err
	})
}

// keysOf is what is known of the keys of a team's tickets. failure has the error of a later look.
func keysOf(r store.Reader, team model.TeamKey, failure *error) (workstate.Keys, error) {
	prefixes, err := r.TicketPrefixes(team)
	return workstate.Keys{Prefixes: prefixes, Known: func(key string) bool {
		ticket, err := found(r.Ticket(team, key))
		*failure = errors.Join(*failure, err)
		return ticket != nil
	}}, err
}

func (r request) ticketPrs(m protocol.TicketPrs) (protocol.Message, error) {
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		result := protocol.TicketPrsResult{PRs: []protocol.TicketPull{}}
		var failure error
		keys, err := keysOf(tx, r.p.key.Team, &failure)
		if err != nil {
			return nil, err
		}
		result.Ticket = workstate.TicketOf(workstate.PullText{Head: m.HeadRef, Title: m.Title, Body: m.Body}, keys)
		if failure != nil || result.Ticket == "" {
			return result, failure
		}
		ticket, err := found(tx.Ticket(r.p.key.Team, result.Ticket))
		if err != nil {
			return nil, err
		}
		if ticket != nil {
			result.Status = ticket.Status
		}
		pulls, _, err := tx.Pulls(r.p.key.Team, model.PullFilter{State: protocol.ListAll, Ticket: result.Ticket, Limit: maxListed})
		for _, p := range pulls {
			result.PRs = append(result.PRs, protocol.TicketPull{
				Ref: p.Ref, Number: p.Number, Title: workstate.Title(p), URL: p.URL, State: p.State, AuthorKind: p.AuthorKind,
			})
		}
		return result, err
	})
}

func (r request) prList(m protocol.PrList) (protocol.Message, error) {
	if m.Limit < 1 {
		return nil, protocol.Errorf(protocol.CodeInvalid, "limit must be 1 to %d", maxListed)
	}
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		pulls, more, err := tx.Pulls(r.p.key.Team, model.PullFilter{
			State: m.State, Author: m.Author, Ticket: m.Ticket, Repo: m.Repo, Limit: min(m.Limit, maxListed),
		})
		result := protocol.PrListResult{PRs: []protocol.ListedPull{}, More: more}
		for _, p := range pulls {
			result.PRs = append(result.PRs, protocol.ListedPull{
				Ref: p.Ref, Number: p.Number, Title: workstate.Title(p), URL: p.URL, State: p.State, Draft: p.Draft, Author: p.Author, CI: p.CI,
				Mergeable: p.Mergeable, Review: p.Review, UnresolvedThreads: p.UnresolvedThreads, Ticket: p.Ticket,
				UpdatedAt: protocol.FormatTime(p.UpdatedAt),
			})
		}
		return result, err
	})
}

// ciLog cannot be answered: the office is told of checks, and has no credentials of its own for the code host that ran them.
func (r request) ciLog(m protocol.CiLog) (protocol.Message, error) {
	return nil, protocol.Errorf(protocol.CodeUnsupported, "this office has no access to a code host, so it cannot read logs: open %s, "+
		"or run the check where you work", cut(m.URL, 300))
}

func (r request) recall(m protocol.Recall) (protocol.Message, error) {
	if m.Limit < 1 {
		return nil, protocol.Errorf(protocol.CodeInvalid, "limit must be 1 to %d", maxMoments)
	}
	q := model.Recall{Person: r.p.key, Query: m.Query, Limit: min(m.Limit, maxMoments)}
	if m.Since != "" {
		since, err := protocol.ParseTime(m.Since)
		if err != nil {
			return nil, protocol.Errorf(protocol.CodeInvalid, "since: %v", err)
		}
		q.Since = since
	}
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		if m.With != "" {
			directory, err := directoryOf(tx, r.p.key.Team)
			if err != nil {
				return nil, err
			}
			q.With = directory.Names(strings.TrimSpace(m.With))
		}
		if m.About != "" {
			place, err := resolve(tx, r.p.key, "about", m.About)
			if err != nil {
				return nil, err
			}
			q.About = place
		}
		moments, more, err := tx.Recall(q)
		if errors.Is(err, store.ErrQuery) {
			return nil, protocol.Errorf(protocol.CodeInvalid, "query: %v", err)
		}
		result := protocol.RecallResult{Moments: []protocol.Moment{}, More: more}
		for _, moment := range moments {
			result.Moments = append(result.Moments, protocol.Moment{
				At: protocol.FormatTime(moment.At), Kind: moment.Kind, Where: moment.Where, Who: moment.Who, Excerpt: moment.Excerpt, URL: moment.URL,
			})
		}
		return result, err
	})
}

// directoryOf is everybody whom a team knows.
func directoryOf(r store.Reader, key model.TeamKey) (workstate.Directory, error) {
	team, err := found(r.Team(key))
	if err != nil {
		return workstate.Directory{}, err
	}
	var d workstate.Directory
	if team != nil {
		d.Humans = team.Config.Humans
	}
	d.People, err = r.People(key)
	return d, err
}

func (r request) ticketUsage(m protocol.TicketUsage) (protocol.Message, error) {
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		team, err := tx.Team(r.p.key.Team)
		if err != nil {
			return nil, err
		}
		if !team.Usage.TrackCost {
			return nil, protocol.Errorf(protocol.CodeUnsupported,
				"this team does not track usage: spec.usage.trackCost of Team %s turns it on", team.Key.Name)
		}
		seen := map[string]bool{}
		work, known, err := ticketWork(tx, r.p.key.Team, m.Ticket, seen)
		if err != nil {
			return nil, err
		}
		if !known && len(seen) == 1 {
			return nil, protocol.Errorf(protocol.CodeNotFound, "the office knows no ticket %q, and no work on it", cut(m.Ticket, 100))
		}
		return work.Report(), nil
	})
}

// ticketWork reads what a ticket used, with its sub-tickets, each once: where tickets are parts of each other, the first place counts. It
// says whether there is such a ticket, or work on it.
func ticketWork(r store.Reader, team model.TeamKey, key string, seen map[string]bool) (workstate.TicketWork, bool, error) {
	seen[key] = true
	work := workstate.TicketWork{Key: key}
	var err error
	if work.Shares, work.Runs, err = r.TicketUsage(team, key); err != nil {
		return work, false, err
	}
	ticket, err := found(r.Ticket(team, key))
	if err != nil {
		return work, false, err
	}
	parts, err := r.SubTickets(team, key)
	if err != nil {
		return work, false, err
	}
	for _, t := range parts {
		if seen[t.Key] || len(seen) >= maxTickets {
			continue
		}
		part, _, err := ticketWork(r, team, t.Key, seen)
		if err != nil {
			return work, false, err
		}
		work.Parts = append(work.Parts, part)
	}
	return work, ticket != nil || len(work.Shares) > 0 || len(work.Runs) > 0, nil
}
