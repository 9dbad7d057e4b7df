package sqlite

// This file keeps what is said about items and what crosses between the office and the world: feedback, refs, chat threads,
// events, acts and reports.

import (
	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
)

func (r *reader) Unborn() ([]model.Item, error) { return list(r, listUnborn, document[model.Item]) }

func (r *reader) Feedback(itemID string, after int64) ([]model.Feedback, error) {
	return list(r, listFeedback, func(row *sqlite3.Stmt) (model.Feedback, error) {
		f, err := document[model.Feedback](row)
		f.N = row.ColumnInt64(1)
		return f, err
	}, itemID, after)
}

func (t *tx) AppendFeedback(f *model.Feedback) (bool, error) {
	stored := *f
	stored.N = 0 // the column has it
	doc, err := marshal(writeFeedback, stored)
	if err != nil {
		return false, err
	}
	var moment any
	if f.Place == (model.Place{}) { // else a remark has it
		if moment, err = t.freeMoment(f.At); err != nil {
			return false, err
		}
	}
	n := int64(0)
	err = t.write(writeFeedback, func(row *sqlite3.Stmt) error { n = row.ColumnInt64(0); return nil }, f.ItemID, f.Key, moment, doc)
	if err != nil || n == 0 {
		return false, err
	}
	f.N = n
	if moment, ok := moment.(int64); ok {
		err = t.addMoment(moment, fromFeedback, nil, n)
	}
	return true, err
}

func (r *reader) Refs(itemID string) ([]model.Ref, error) {
	return list(r, listRefs, document[model.Ref], itemID)
}

func (t *tx) PutRef(ref model.Ref) error {
	then, err := t.watchItem(ref.ItemID, ref.Place)
	if err != nil {
		return err
	}
	if err := t.put(writeRef, ref, ref.ItemID, string(ref.Place.Type), ref.Place.Ref); err != nil {
		return err
	}
	return then()
}

func (r *reader) ItemsAbout(team model.TeamKey, place model.Place) ([]string, error) {
	return list(r, listAbout, word, at(team, place)...)
}

// at are the four columns of a place.
func at(team model.TeamKey, place model.Place) []any {
	return []any{team.Namespace, team.Name, string(place.Type), place.Ref}
}

func (r *reader) Threads(itemID string) ([]model.Thread, error) {
	return list(r, listThreads, document[model.Thread], itemID)
}

func (r *reader) ItemsInThread(key model.PersonKey, channel, thread string) ([]string, error) {
	return list(r, listInThread, word, model.ThreadRef(channel, thread), key.Handle, channel, key.Team.Namespace, key.Team.Name)
}

func (t *tx) LinkThread(th model.Thread) error {
	place := model.Place{Type: model.RefThread, Ref: model.ThreadRef(th.Channel, th.Thread)}
	then, err := t.watchItem(th.ItemID, place)
	if err != nil {
		return err
	}
	if err := t.put(writeThread, th, th.ItemID, th.Person, th.Channel, th.Thread, place.Ref); err != nil {
		return err
	}
	return then()
}

func (r *reader) Event(team model.TeamKey, source, id string) (model.Event, error) {
	return one(r, readEvent, document[model.Event], team.Namespace, team.Name, source, id)
}

func (t *tx) FirstEvent(e model.Event) (bool, error) {
	err := t.put(firstEvent, e, e.Team.Namespace, e.Team.Name, e.Source, e.ID)
	return err == nil && t.c.db.Changes() == 1, err
}

func (t *tx) PutEvent(e model.Event) error {
	return t.put(writeEvent, e, e.Team.Namespace, e.Team.Name, e.Source, e.ID)
}

func (r *reader) Act(team model.TeamKey, id string) (model.Act, error) {
	return one(r, readAct, document[model.Act], team.Namespace, team.Name, id)
}

func (r *reader) OpenActs(key model.PersonKey) ([]model.Act, error) {
	return list(r, listActs, document[model.Act], key.Team.Namespace, key.Team.Name, key.Handle)
}

func (t *tx) PutAct(a model.Act) error {
	return t.put(writeAct, a, a.Person.Team.Namespace, a.Person.Team.Name, a.ID, a.Person.Handle, orNull(a.ItemID),
		nanos(a.CreatedAt), a.AnsweredAt.IsZero())
}

func (r *reader) Report(id string) (model.Report, error) {
	return one(r, readReport, document[model.Report], id)
}

func (r *reader) OpenReports(key model.PersonKey) ([]model.Report, error) {
	return list(r, listReports, document[model.Report], key.Team.Namespace, key.Team.Name, key.Handle)
}

func (r *reader) DueReports(key model.PersonKey, limit int) ([]model.Report, error) {
	return list(r, listDue, document[model.Report], key.Team.Namespace, key.Team.Name, key.Handle, bound(limit))
}

func (t *tx) PutReport(p model.Report) error {
	var due any
	if p.SentAt.IsZero() && p.PostedAt.IsZero() {
		due = nanos(p.NotBefore)
	}
	return t.put(writeReport, p, p.ID, p.Person.Team.Namespace, p.Person.Team.Name, p.Person.Handle, orNull(p.ItemID),
		nanos(p.CreatedAt), p.PostedAt.IsZero(), due)
}

// orNull turns "none" into NULL, which refers to nothing.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (r *reader) TicketUsage(team model.TeamKey, ticket string) ([]model.TicketShare, []model.TicketRuns, error) {
	place := at(team, model.Place{Type: model.RefTicket, Ref: ticket})
	shares, err := list(r, sumTicket, func(row *sqlite3.Stmt) (model.TicketShare, error) {
		u, err := usage(row)
		return model.TicketShare{Person: row.ColumnText(7), Model: row.ColumnText(8), Kind: row.ColumnText(9), Usage: u, Runs: row.ColumnInt(10)}, err
	}, place...)
	if err != nil {
		return nil, nil, err
	}
	runs, err := list(r, countTicket, func(row *sqlite3.Stmt) (model.TicketRuns, error) {
		return model.TicketRuns{Person: row.ColumnText(0), Kind: row.ColumnText(1), Runs: row.ColumnInt(2)}, nil
	}, place...)
	return shares, runs, err
}
