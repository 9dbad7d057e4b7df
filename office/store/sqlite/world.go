package sqlite

// This file keeps the world as the office last heard of it: tickets, pull requests, documents and remarks.

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

func (r *reader) Ticket(team model.TeamKey, key string) (model.Ticket, error) {
	return one(r, readTicket, document[model.Ticket], team.Namespace, team.Name, key)
}

func (r *reader) TicketsOf(team model.TeamKey, assignees []string) ([]model.Ticket, error) {
	names, err := json.Marshal(assignees)
	if err != nil {
		return nil, err
	}
	return list(r, listTickets, document[model.Ticket], team.Namespace, team.Name, text(names))
}

func (r *reader) SubTickets(team model.TeamKey, parent string) ([]model.Ticket, error) {
	return list(r, listSubTickets, document[model.Ticket], team.Namespace, team.Name, parent)
}

func (r *reader) TicketPrefixes(team model.TeamKey) ([]string, error) {
	return list(r, listPrefixes, word, team.Namespace, team.Name)
}

func (t *tx) PutTicket(k model.Ticket) error {
	return t.put(writeTicket, k, k.Team.Namespace, k.Team.Name, k.Key, orNull(ticketPrefix(k.Key)), k.Assignee, k.Parent, k.Open())
}

// ticketPrefix is what stands before the number of a ticket's key, without the sign between them: ACME of ACME-12, acme/shop
// of acme/shop#12. It is empty where a key has no such form.
func ticketPrefix(key string) string {
	before := strings.TrimRight(key, "0123456789")
	if before == key || before == "" {
		return ""
	}
	return strings.TrimRight(before, "-#")
}

func (r *reader) Pull(team model.TeamKey, ref string) (model.Pull, error) {
	return one(r, readPull, document[model.Pull], team.Namespace, team.Name, ref)
}

func (r *reader) Pulls(team model.TeamKey, f model.PullFilter) (pulls []model.Pull, more int, err error) {
	state, first, last := string(f.State), 0, 1 // open ones have not ended
	switch f.State {
	case protocol.ListAll:
		state = ""
	case protocol.ListOpen:
		last = 0
	case protocol.ListMerged, protocol.ListClosed:
		first = 1
	}
	listing, counting := listPulls, countPulls
	if f.Ticket != "" {
		listing, counting = listTicketPulls, countTicketPulls
	}
	that := []any{team.Namespace, team.Name, first, last, state, f.Author, f.Ticket, f.Repo}
	if pulls, err = list(r, listing, document[model.Pull], append(that, bound(f.Limit))...); err != nil {
		return nil, 0, err
	}
	if f.Limit <= 0 || len(pulls) < f.Limit {
		return pulls, 0, nil
	}
	all, err := one(r, counting, number, that...)
	return pulls, int(all) - len(pulls), err
}

func (t *tx) PutPull(p model.Pull) error {
	ended := p.State != protocol.PullOpen
	at := p.OpenedAt
	if ended {
		at = p.UpdatedAt
	}
	return t.put(writePull, p, p.Team.Namespace, p.Team.Name, p.Ref, string(p.State), ended, nanos(at), p.Author, p.Ticket, p.Repo)
}

func (r *reader) Doc(team model.TeamKey, id string) (model.Doc, error) {
	return one(r, readDoc, document[model.Doc], team.Namespace, team.Name, id)
}

func (r *reader) DocsFor(team model.TeamKey, ticket string) ([]model.Doc, error) {
	return list(r, listDocs, document[model.Doc], team.Namespace, team.Name, ticket)
}

func (t *tx) PutDoc(d model.Doc) error {
	return t.put(writeDoc, d, d.Team.Namespace, d.Team.Name, d.ID, d.Ticket)
}

func (r *reader) Remarks(team model.TeamKey, place model.Place, limit int) (remarks []model.Remark, total int, err error) {
	if remarks, err = list(r, latestRemarks, document[model.Remark], append(at(team, place), bound(limit))...); err != nil {
		return nil, 0, err
	}
	slices.Reverse(remarks)
	all, err := one(r, countRemarks, number, at(team, place)...)
	return remarks, int(all), err
}

func (r *reader) Remark(team model.TeamKey, place model.Place, id string) (model.Remark, error) {
	return one(r, readRemark, document[model.Remark], append(at(team, place), id)...)
}

// knownRemark is a remark as the store has it, and its moment.
type knownRemark struct {
	model.Remark
	moment int64
}

func (t *tx) PutRemark(m model.Remark) error {
	before, err := one(&t.reader, readKnownRemark, func(row *sqlite3.Stmt) (knownRemark, error) {
		m, err := document[model.Remark](row)
		return knownRemark{m, row.ColumnInt64(1)}, err
	}, append(at(m.Team, m.Place), m.ID)...)
	fresh := errors.Is(err, store.ErrNotFound)
	if err != nil && !fresh {
		return err
	}
	moment, moved := before.moment, fresh || !before.At.Equal(m.At)
	if moved {
		if moment, err = t.freeMoment(m.At); err != nil {
			return err
		}
	}
	doc, err := marshal(writeRemark, m)
	if err != nil {
		return err
	}
	n := int64(0)
	err = t.write(writeRemark, func(row *sqlite3.Stmt) error { n = row.ColumnInt64(0); return nil },
		append(at(m.Team, m.Place), m.ID, nanos(m.At), m.ThreadID, moment, doc)...)
	switch {
	case err != nil:
		return err
	case moved && !fresh:
		return errors.Join(t.vanished(before.moment), t.addMoment(moment, fromRemark, nil, n))
	case moved:
		return t.addMoment(moment, fromRemark, nil, n)
	case before.Body != m.Body || before.Author != m.Author:
		return t.changed(moment)
	}
	return nil
}

func (t *tx) ResolveThread(team model.TeamKey, place model.Place, threadID string, resolved bool) error {
	remarks, err := list(&t.reader, listThreadRemarks, document[model.Remark], append(at(team, place), threadID)...)
	if err != nil {
		return err
	}
	for _, m := range remarks {
		m.Resolved = resolved
		if err := t.PutRemark(m); err != nil {
			return err
		}
	}
	return nil
}
