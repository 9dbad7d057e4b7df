package sqlite

// This file answers store.Tx: what a transaction writes.

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// tx is a write transaction in progress.
type tx struct {
	reader
}

var _ store.Tx = (*tx)(nil)

// put executes a statement whose last argument is v's document.
func (t *tx) put(s *statement, v any, args ...any) error {
	doc, err := marshal(s, v)
	if err != nil {
		return err
	}
	return t.write(s, nil, append(args, doc)...)
}

// marshal gives v's document.
func marshal(s *statement, v any) (text, error) {
	doc, err := json.Marshal(v, documents)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return text(doc), nil
}

// write executes a statement, and calls row, which may be nil, as run does. What it refers to must be in the store.
func (t *tx) write(s *statement, row func(*sqlite3.Stmt) error, args ...any) error {
	err := t.run(s, row, args...)
	if errors.Is(err, sqlite3.CONSTRAINT_FOREIGNKEY) {
		return fmt.Errorf("%s: what it belongs to is %w", s.name, store.ErrNotFound)
	}
	return err
}

func (t *tx) PutTeam(team model.Team) error {
	return t.put(writeTeam, team, team.Key.Namespace, team.Key.Name)
}

func (t *tx) DeleteTeam(key model.TeamKey) error {
	return t.write(deleteTeam, nil, key.Namespace, key.Name)
}

func (t *tx) PutPerson(p model.Person) error {
	return t.put(writePerson, p, p.UID, p.Key.Team.Namespace, p.Key.Team.Name, p.Key.Handle, nanos(p.CreatedAt))
}

func (t *tx) DeletePerson(uid string) error { return t.write(deletePerson, nil, uid) }

func (t *tx) PutItem(i *model.Item) error {
	next, err := one(&t.reader, advanceRevision, number)
	if err != nil {
		return err
	}
	stored := *i
	stored.Revision = next
	digest := digest(&stored)
	moment, then, err := t.noteItem(&stored, digest)
	if err != nil {
		return err
	}
	if err := t.putRow(&stored, moment, digest); err != nil {
		return err
	}
	i.Revision = next
	return errors.Join(then(), t.putDependencies(i))
}

func (t *tx) putRow(i *model.Item, moment, digest int64) error {
	who := who(i)
	var holder, subjectType, subjectRef any
	if i.Round != nil {
		holder = i.Round.Person
	}
	if s := i.Spec.Subject; s != nil {
		subjectType, subjectRef = s.Type, s.Ref
	}
	rank := i.Rank()
	err := t.put(writeItem, i, i.ID, i.Namespace, i.Name, i.Spec.Team, who, queueOf(who, i.Spec.Role), string(i.State),
		!i.Finished(), ready(i), holder, place(i), int64(rank.Priority), nanos(i.NotBefore), nanos(i.CreatedAt), i.Gone, i.Spec.Hash, i.Revision,
		rank.Key, i.Spec.Kind, subjectType, subjectRef, object(i), moment, digest, heldByTeam(i))
	if errors.Is(err, sqlite3.CONSTRAINT_UNIQUE) {
		return fmt.Errorf("item %s/%s cannot have a round of %s, who has one of another item", i.Namespace, i.Name, i.Round.Person)
	}
	return err
}

// place is 0 for an item that goes before all others of its queue.
func place(i *model.Item) int {
	if i.Front {
		return 0
	}
	return 1
}

// queueOf names the queue that an item waits in: the one of its person, or while nobody has it, the one of its role.
func queueOf(who, role string) string {
	if who != "" {
		return "person/" + who
	}
	return "role/" + role
}

// ready says whether the item can be offered as soon as its NotBefore has passed. A budget does not count as a hold: it is
// looked at with each offer.
func ready(i *model.Item) bool {
	held := i.Hold != model.Why{} && i.Hold.Reason != model.ReasonBudgetExhausted
	return i.State == protocol.StateQueued && !held && i.Round == nil && !i.Gone
}

// heldByTeam says whether nothing but a budget of the team as a whole, and its NotBefore, keeps the item from being offered.
func heldByTeam(i *model.Item) bool { return ready(i) && i.Hold.Scope == model.BudgetTeam }

// object is the UID of the item's object, NULL if there is none yet.
func object(i *model.Item) any {
	if i.Birth != nil {
		return orNull(i.Birth.ObjectUID)
	}
	return i.ID
}

func (t *tx) putDependencies(i *model.Item) error {
	if err := t.write(clearDependencies, nil, i.ID); err != nil {
		return err
	}
	if i.Finished() || i.Gone {
		return nil
	}
	for _, name := range i.Spec.DependsOn {
		if err := t.write(writeDependency, nil, i.Namespace, name, i.ID); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) Bury(id string) error {
	i, err := t.Item(id)
	if err != nil {
		return err
	}
	if !i.Finished() {
		return fmt.Errorf("item %s/%s is %s: only done and canceled items are buried", i.Namespace, i.Name, i.State)
	}
	i.Gone = true
	if err := t.PutItem(&i); err != nil {
		return err
	}
	return t.write(buryItem, nil, id)
}

func (t *tx) PutRound(r model.Round) error {
	doc, err := marshal(writeRound, r)
	if err != nil {
		return err
	}
	var moment int64
	var known bool
	err = t.write(writeRound, func(row *sqlite3.Stmt) error {
		moment, known = row.ColumnInt64(0), row.ColumnType(0) != sqlite3.NULL
		return nil
	}, r.ItemID, r.Number, r.EndedAt.IsZero(), r.Person, r.Accepted(), doc)
	if errors.Is(err, sqlite3.CONSTRAINT_UNIQUE) {
		return fmt.Errorf("item %s cannot open round %d while another round of it is open", r.ItemID, r.Number)
	}
	if err != nil || !known && (r.EndedAt.IsZero() || r.Summary == "") {
		return err
	}
	if known {
		return t.changed(moment)
	}
	if moment, err = t.happened(r.EndedAt, fromRound, r.ItemID, r.Number); err != nil {
		return err
	}
	return t.write(setRoundMoment, nil, moment, r.ItemID, r.Number)
}

func (t *tx) AppendJournal(e model.JournalEntry) error {
	moment, err := t.freeMoment(e.At)
	if err != nil {
		return err
	}
	if err := t.write(writeJournal, nil, e.ItemID, nanos(e.At), e.Author, e.Text, moment); err != nil {
		return err
	}
	return t.addMoment(moment, fromJournal, nil, t.c.db.LastInsertRowID())
}

func (t *tx) AddUsage(e model.LedgerEntry, totals model.Usage, at time.Time) error {
	ledger := []any{e.ItemID, e.Round, e.Team.Namespace, e.Team.Name, e.Person, e.Kind, e.Session, e.Model, nanos(at)}
	if err := t.write(writeLedger, nil, append(ledger, amounts(e.Usage)...)...); err != nil {
		return err
	}
	sum := []any{e.Team.Namespace, e.Team.Name, e.Person}
	if err := t.write(addSum, nil, append(sum, amounts(e.Usage)...)...); err != nil {
		return err
	}
	last := []any{e.ItemID, e.Session, e.Model}
	return t.write(writeTotals, nil, append(last, amounts(totals)...)...)
}

// amounts are the seven columns of an amount of usage.
func amounts(u model.Usage) []any {
	return []any{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheCreationTokens, u.CostMicroUSD, u.CostKnown, u.UnpricedTokens}
}

func (t *tx) PutWindows(w model.Windows) error {
	return t.put(writeWindows, w, w.Team.Namespace, w.Team.Name, w.Subscription)
}

func (t *tx) PutDoctor(personUID string, d model.Doctor) error {
	return t.put(writeDoctor, d, personUID)
}

func (t *tx) FirstTime(itemID string, key [32]byte, at time.Time) (bool, error) {
	if err := t.write(rememberFirst, nil, itemID, key[:], nanos(at)); err != nil {
		return false, err
	}
	return t.c.db.Changes() == 1, nil
}
