package sqlite

// This file keeps the index of the past: a file of its own beside the store, with words and no text. It is derived: one that is missing,
// damaged, of another release, or not of this store's life is made anew. So full-text search costs the writer nothing but a note, and
// cannot harm the store. A goroutine follows the notes a moment behind, many at once, which costs a fraction of what one after
// another would.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

const (
	// indexVersion changes with indexSchema, with the marks, and with what text a moment has. To merge segments late takes a fifth less
	// time in all than FTS5's default.
	indexVersion = 1
	indexSchema  = `
		CREATE TABLE state (only INTEGER PRIMARY KEY CHECK (only = 1), store TEXT NOT NULL, seq INTEGER NOT NULL) STRICT;
		CREATE VIRTUAL TABLE past USING fts5 (
			text, content = '', contentless_delete = 1, tokenize = "porter unicode61 remove_diacritics 2"
		);
		INSERT INTO past (past, rank) VALUES ('automerge', 8);`
	// indexAtOnce is how many notes are taken in one transaction, trimAfter how many that were taken may stay in the store.
	indexAtOnce = 8192
	trimAfter   = 4096
)

// indexer follows the notes of a store.
type indexer struct {
	// main reads the store, past writes the index.
	main, past *conn
	// seq is the last note that it has taken, trimmed the last of those that the store has dropped.
	seq, trimmed int64
}

func pathOfPast(path string) string { return path + ".past" }

// openIndexer opens the index of the store at path, and makes it anew where it is of no use. writer may write to the store.
func openIndexer(path, id string, writer *conn) (x *indexer, err error) {
	x = &indexer{}
	if x.main, err = connect(path, slices.Concat(common, reading)...); err == nil && !x.use(path, id) {
		err = x.makeAnew(path, id, writer)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the index of the store %s: %w", path, err), x.close())
	}
	return x, nil
}

// use opens the index that there is, if it is of use. Why it is not does not matter: it can be made from the store.
func (x *indexer) use(path, id string) bool {
	var err error
	if x.past, err = openPast(path); err != nil {
		return false
	}
	if x.seq, err = x.fits(id); err != nil {
		_ = x.past.close()
		x.past = nil
	}
	return err == nil
}

// makeAnew begins an empty index in place of whatever there is, and notes all that happened.
func (x *indexer) makeAnew(path, id string, writer *conn) (err error) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(pathOfPast(path) + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if x.past, err = openPast(path); err != nil {
		return err
	}
	if _, x.seq, err = x.notes(); err != nil {
		return err
	}
	if err := x.past.run(begin, nil); err != nil {
		return err
	}
	err = x.past.db.Exec(indexSchema + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", storeKind.application, indexVersion))
	if err == nil {
		err = x.past.run(writeState, nil, id, x.seq)
	}
	if err == nil {
		err = writer.run(noteAll, nil)
	}
	if err == nil {
		err = x.past.run(commit, nil)
	}
	return errors.Join(err, x.past.undo())
}

// openPast opens the file of the index for writing.
func openPast(path string) (*conn, error) {
	if err := (file{storeKind, pathOfPast(path)}).make(); err != nil {
		return nil, err
	}
	return connectIndex(pathOfPast(path), slices.Concat(common, []string{"journal_mode = WAL"}, writing)...)
}

// errOther is why an index is made anew.
var errOther = errors.New("the index is not of this store")

// fits gives the last note that the index has, if the index is of this release and has just what the store does not note any more.
func (x *indexer) fits(id string) (seq int64, err error) {
	version, err := x.past.integer("PRAGMA user_version")
	if err != nil || version != indexVersion {
		return 0, errors.Join(errOther, err)
	}
	whose := ""
	if err := x.past.run(readState, func(row *sqlite3.Stmt) error {
		whose, seq = row.ColumnText(0), row.ColumnInt64(1)
		return nil
	}); err != nil {
		return 0, err
	}
	first, last, err := x.notes()
	if err != nil || whose != id || seq < first-1 || seq > last {
		return 0, errors.Join(errOther, err)
	}
	return seq, nil
}

// notes gives the first and the last note that the store has; without any, zero was the last.
func (x *indexer) notes() (first, last int64, err error) {
	err = x.main.run(boundChanges, func(row *sqlite3.Stmt) error {
		first, last = row.ColumnInt64(0), row.ColumnInt64(1)
		return nil
	})
	return first, last, err
}

func (x *indexer) close() (err error) {
	for _, c := range []*conn{x.main, x.past} {
		if c != nil {
			err = errors.Join(err, c.close())
		}
	}
	return err
}

// follow is the indexer's goroutine: it takes notes until the store closes.
func (s *Store) follow() {
	defer close(s.followed)
	wait := time.Duration(0) // what an earlier life left comes first
	for {
		select {
		case <-s.closing:
			return
		case <-time.After(wait):
		}
		took, trouble := s.indexer.step()
		s.behind.Store(&trouble)
		if s.options.onIndex != nil {
			s.options.onIndex(s.indexer.seq, trouble)
		}
		err := trouble
		if err == nil {
			err = s.trim()
		}
		switch {
		case err != nil:
			wait = s.options.retryEvery
		case took == indexAtOnce:
			wait = 0
		default:
			wait = s.options.indexAfter
			select {
			case <-s.closing:
				return
			case <-s.noted:
			}
		}
	}
}

// trim drops notes that the index has, if they are many.
func (s *Store) trim() error {
	x := s.indexer
	if x.seq-x.trimmed < trimAfter {
		return nil
	}
	err := s.Update(context.Background(), func(t store.Tx) error { return t.(*tx).write(trimChanges, nil, x.seq) })
	if err == nil {
		x.trimmed = x.seq
	}
	return err
}

// explainIndex says what to do where the index is behind.
func (s *Store) explainIndex() error {
	if err := *s.behind.Load(); err != nil {
		return fmt.Errorf("the past cannot be searched: its index cannot be kept (make room on the disk; or delete the file %s and start "+
			"the office again, which makes it anew): %w", pathOfPast(s.path), err)
	}
	return errors.New("the past cannot be searched now: its index is being made; try again in a minute")
}

// step takes notes into the index, in one transaction, and says how many.
func (x *indexer) step() (took int, err error) {
	defer func() { err = errors.Join(err, x.past.undo(), x.main.undo()) }()
	if err := x.main.run(beginRead, nil); err != nil {
		return 0, err
	}
	r := &reader{c: x.main}
	last, changed := x.seq, map[int64]bool{}
	if err := r.run(listChanges, func(row *sqlite3.Stmt) error {
		took++
		last = row.ColumnInt64(0)
		changed[row.ColumnInt64(1)] = true
		return nil
	}, x.seq, indexAtOnce); err != nil || took == 0 {
		return 0, err
	}
	if err := x.past.run(begin, nil); err != nil {
		return 0, err
	}
	l := r.loader()
	for _, n := range slices.Sorted(maps.Keys(changed)) {
		if err := x.index(l, n); err != nil {
			return 0, err
		}
	}
	if err := x.past.run(advanceState, nil, last); err != nil {
		return 0, err
	}
	if err := x.past.run(commit, nil); err != nil {
		return 0, err
	}
	x.seq = last
	return took, nil
}

// index brings one moment in the index up to date.
func (x *indexer) index(l *loader, n int64) error {
	p, err := l.load(n)
	if errors.Is(err, store.ErrNotFound) {
		return x.past.run(dropPast, nil, n)
	}
	if err != nil {
		return err
	}
	marks, err := l.marks(p)
	if err != nil {
		return err
	}
	return x.past.run(writePast, nil, n, plain(p.text)+" "+strings.Join(marks, " "))
}

// marks are the marks of a moment.
func (l *loader) marks(m memory) (all []string, err error) {
	key := marked{id: m.item.ID, team: m.team, place: m.place}
	all, known := l.shared[key]
	if !known {
		if m.place == (model.Place{}) {
			all = itemMarks(&m.item)
		} else if all, err = l.r.placeMarks(m.team, m.place); err != nil {
			return nil, err
		}
		l.shared[key] = slices.Clip(all)
	}
	if m.Who != "" {
		if l.names[m.Who] == "" {
			l.names[m.Who] = nameMark(m.Who)
		}
		all = append(all, l.names[m.Who])
	}
	return all, nil
}

// itemMarks are what all moments of an item have.
func itemMarks(i *model.Item) []string {
	all := []string{itemMark(i.ID)}
	if handle := who(i); handle != "" {
		all = append(all, ownerMark(model.PersonKey{Team: i.TeamKey(), Handle: handle}))
	}
	for _, name := range askers(i) {
		all = append(all, nameMark(name))
	}
	return all
}

// placeMarks are what all remarks at a place have.
func (r *reader) placeMarks(team model.TeamKey, p model.Place) ([]string, error) {
	all := []string{placeMark(team, p)}
	owners, err := r.owners(team, p)
	for _, handle := range owners {
		all = append(all, ownerMark(model.PersonKey{Team: team, Handle: handle}))
	}
	return all, err
}

// memory is a moment with all that it is found by.
type memory struct {
	model.Moment
	text string
	// item is whose it is; where that is none, place is where it was said.
	item  model.Item
	team  model.TeamKey
	place model.Place
}

// loader reads moments, and remembers what many of them share.
type loader struct {
	r      *reader
	items  map[string]model.Item
	shared map[marked][]string
	names  map[string]string
}

// marked is an item, or a place, whose moments share marks.
type marked struct {
	id    string
	team  model.TeamKey
	place model.Place
}

func (r *reader) loader() *loader {
	return &loader{r: r, items: map[string]model.Item{}, shared: map[marked][]string{}, names: map[string]string{}}
}

func (l *loader) item(id string) (i model.Item, err error) {
	i, ok := l.items[id]
	if !ok {
		if i, err = l.r.Item(id); err == nil {
			l.items[id] = i
		}
	}
	return i, err
}

// load reads a moment. Where and Excerpt are left empty.
func (l *loader) load(n int64) (m memory, err error) {
	var source, id string
	var of int64
	if _, err = one(l.r, readMoment, func(row *sqlite3.Stmt) (bool, error) {
		source, id, of = row.ColumnText(0), row.ColumnText(1), row.ColumnInt64(2)
		return true, nil
	}, n); err != nil {
		return memory{}, err
	}
	switch source {
	case fromItem:
		m.item, err = l.item(id)
		m.Moment = model.Moment{At: m.item.CreatedAt, Kind: fromItem, Who: m.item.Spec.Requester}
		m.text = m.item.Spec.Title + "\n" + m.item.Spec.Body
	case fromJournal:
		var e model.JournalEntry
		if e, err = one(l.r, readJournal, journalEntry, of); err == nil {
			m.item, err = l.item(e.ItemID)
		}
		m.Moment, m.text = model.Moment{At: e.At, Kind: fromJournal, Who: e.Author}, e.Text
	case fromRound:
		var r model.Round
		if r, err = one(l.r, readRound, document[model.Round], id, of); err == nil {
			m.item, err = l.item(id)
		}
		m.Moment, m.text = model.Moment{At: r.EndedAt, Kind: fromRound, Who: r.Person}, r.Summary
	case fromRemark:
		var r model.Remark
		r, err = one(l.r, readRemarkN, document[model.Remark], of)
		m.team, m.place = r.Team, r.Place
		m.Moment, m.text = model.Moment{At: r.At, Kind: r.Kind, Who: r.Author, URL: r.URL}, r.Body
	case fromFeedback:
		var f model.Feedback
		if f, err = one(l.r, readFeedbackN, document[model.Feedback], of); err == nil {
			m.item, err = l.item(f.ItemID)
		}
		m.Moment = model.Moment{At: f.At, Kind: fromFeedback, Who: f.Feedback.Actor, URL: f.Feedback.URL}
		m.text = feedbackText(f.Feedback)
	default:
		err = fmt.Errorf("the store has a moment of an unknown source %q", source)
	}
	return m, err
}

// feedbackText is all that feedback says.
func feedbackText(f protocol.Feedback) string {
	all := []string{f.Body}
	for _, c := range f.Comments {
		all = append(all, c.Body)
	}
	return strings.Join(all, "\n")
}
