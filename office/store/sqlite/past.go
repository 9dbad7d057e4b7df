package sqlite

// This file searches a person's past. Every moment has a row in the index, whose number is its time, so that the newest come first
// without sorting. The row has the words of the text, and marks: words that no text can have, for whose past it is in, with whom it
// has to do and what it is about. So FTS5 finds one person's moments among everybody's as it finds two words in one text, by
// skipping. What is noted and not yet in the index is taken into one in memory, for the one search.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// registerSearch gives a connection full-text search, and two functions: first_match(past) tells which word of a row the first match
// begins with, excerpt(past, text, word) cuts text around that word.
func registerSearch(db *sqlite3.Conn) error {
	return fts5.RegisterCustom(db, func(api *fts5.API) error {
		return errors.Join(api.CreateFunction("first_match", firstMatch), api.CreateFunction("excerpt", cutAround))
	})
}

func firstMatch(fts fts5.Context, ctx sqlite3.Context, _ ...sqlite3.Value) {
	n, err := fts.InstCount()
	first := 0
	if err == nil && n > 0 {
		_, _, first, err = fts.Inst(0)
	}
	if err != nil {
		ctx.ResultError(err)
		return
	}
	ctx.ResultInt(first)
}

// errFound ends the reading of a text.
var errFound = errors.New("found")

func cutAround(fts fts5.Context, ctx sqlite3.Context, arg ...sqlite3.Value) {
	text, word, at := plain(arg[0].Text()), arg[1].Int(), 0
	err := fts.Tokenize(text, "", func(_ fts5.TokenFlag, _ string, start, _ int) error {
		at = start
		if word--; word < 0 {
			return errFound
		}
		return nil
	})
	if err != nil && word >= 0 {
		ctx.ResultError(err)
		return
	}
	ctx.ResultText(excerpt(text, at))
}

// hit is a moment that matches, and which of its words the match begins with.
type hit struct {
	n    int64
	word int
}

// search is one search in progress.
type search struct {
	*loader
	q     model.Recall
	words query
	// fresh are the moments that the index does not have as they are now.
	fresh map[int64]bool
	// scratch is an index of those of fresh that can match.
	scratch *conn

	found []model.Moment
	more  bool
}

// errEnough ends a search that has found all it may give.
var errEnough = errors.New("enough was found")

func (r *reader) Recall(q model.Recall) (moments []model.Moment, more bool, err error) {
	words, err := parseQuery(q.Query)
	if err != nil {
		return nil, false, err
	}
	s := &search{loader: r.loader(), q: q, words: words, found: []model.Moment{}}
	marks, err := s.restrictions()
	if err != nil {
		return nil, false, err
	}
	past, err := r.c.openPast()
	if err != nil {
		return nil, false, err
	}
	past.db.SetInterrupt(r.c.db.GetInterrupt())
	if err := past.run(beginRead, nil); err != nil {
		return nil, false, err
	}
	defer func() {
		past.db.SetInterrupt(context.Background())
		err = errors.Join(err, past.undo())
	}()
	hits, err := s.searchFresh(past, marks)
	if err != nil {
		return nil, false, err
	}
	err = past.run(searchPast, func(row *sqlite3.Stmt) error {
		h := hit{row.ColumnInt64(0), row.ColumnInt(1)}
		for len(hits) > 0 && hits[0].n > h.n {
			if err := s.take(s.scratch, hits[0]); err != nil {
				return err
			}
			hits = hits[1:]
		}
		if s.fresh[h.n] {
			return nil
		}
		return s.take(past, h)
	}, words.expression(marks...), s.oldest())
	for ; err == nil && len(hits) > 0; hits = hits[1:] {
		err = s.take(s.scratch, hits[0])
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, false, err
	}
	return s.found, s.more, nil
}

// oldest is the lowest number that a moment of the search can have.
func (s *search) oldest() int64 {
	if s.q.Since.IsZero() {
		return -1 << 63
	}
	return s.q.Since.UnixMicro()
}

// restrictions are lists of marks, of each of which a moment must have one.
func (s *search) restrictions() (all [][]string, err error) {
	all = [][]string{{ownerMark(s.q.Person)}}
	if len(s.q.With) > 0 {
		var names []string
		for _, name := range s.q.With {
			names = append(names, nameMark(name))
		}
		all = append(all, names)
	}
	if s.q.About != (model.Place{}) {
		ids, err := list(s.r, listOwnAbout, word, append(at(s.q.Person.Team, s.q.About), s.q.Person.Handle)...)
		if err != nil {
			return nil, err
		}
		scopes := []string{placeMark(s.q.Person.Team, s.q.About)}
		for _, id := range ids {
			scopes = append(scopes, itemMark(id))
		}
		all = append(all, scopes)
	}
	return all, nil
}

// maxFresh bounds what a search looks through one by one.
const maxFresh = 20_000

// searchFresh searches what the index does not have yet, newest first.
func (s *search) searchFresh(past *conn, marks [][]string) (hits []hit, err error) {
	seq := int64(0)
	if err := past.run(readState, func(row *sqlite3.Stmt) error { seq = row.ColumnInt64(1); return nil }); err != nil {
		return nil, err
	}
	noted, err := list(s.r, listChanges, func(row *sqlite3.Stmt) (int64, error) { return row.ColumnInt64(1), nil }, seq, maxFresh)
	if err != nil {
		return nil, err
	}
	if len(noted) == maxFresh {
		return nil, s.r.c.home.explainIndex()
	}
	s.fresh = map[int64]bool{}
	texts := map[int64]string{}
	for _, n := range noted {
		if s.fresh[n] || n < s.oldest() {
			continue
		}
		s.fresh[n] = true
		if text, err := s.textIf(n, marks); err != nil {
			return nil, err
		} else if text != "" {
			texts[n] = text
		}
	}
	if len(texts) == 0 {
		return nil, nil
	}
	if s.scratch, err = s.r.c.openScratch(); err != nil {
		return nil, err
	}
	if err := s.scratch.run(begin, nil); err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(texts)) {
		if err := s.scratch.run(writePast, nil, n, plain(texts[n])); err != nil {
			return nil, errors.Join(err, s.scratch.undo())
		}
	}
	if err := s.scratch.run(commit, nil); err != nil {
		return nil, errors.Join(err, s.scratch.undo())
	}
	err = s.scratch.run(searchPast, func(row *sqlite3.Stmt) error {
		hits = append(hits, hit{row.ColumnInt64(0), row.ColumnInt(1)})
		return nil
	}, s.words.expression(), int64(-1<<63))
	return hits, err
}

// textIf gives the text of a moment that has one of each of marks, else nothing.
func (s *search) textIf(n int64, marks [][]string) (string, error) {
	p, err := orZero(s.load(n)) // one that vanished has no text
	if err != nil || p.text == "" {
		return "", err
	}
	has, err := s.marks(p)
	if err != nil {
		return "", err
	}
	for _, one := range marks {
		if !slices.ContainsFunc(one, func(m string) bool { return slices.Contains(has, m) }) {
			return "", nil
		}
	}
	return p.text, nil
}

// take adds a moment that matches in the index of c.
func (s *search) take(c *conn, h hit) error {
	p, err := s.load(h.n)
	if errors.Is(err, store.ErrNotFound) {
		return nil // the index is ahead of this view
	}
	if err != nil || p.At.Before(s.q.Since) {
		return err
	}
	if s.q.Limit > 0 && len(s.found) == s.q.Limit {
		s.more = true
		return errEnough
	}
	m := p.Moment
	if m.Where, err = s.where(p); err != nil {
		return err
	}
	if err := c.run(cutExcerpt, func(row *sqlite3.Stmt) error {
		m.Excerpt = row.ColumnText(0)
		return nil
	}, p.text, h.word, h.n); err != nil {
		return err
	}
	s.found = append(s.found, m)
	return nil
}

// where is where a moment happened, nil where that is no place.
func (s *search) where(m memory) (*protocol.Place, error) {
	team, place := m.team, m.place
	w := protocol.Place{}
	if place == (model.Place{}) {
		var ok bool
		if place, ok = subject(&m.item); !ok {
			return nil, nil
		}
		team = m.item.TeamKey()
		w.Title, w.URL = m.item.Spec.Subject.Title, m.item.Spec.Subject.URL
	}
	w.Type, w.Ref = string(place.Type), place.Ref
	title, url, err := s.r.describe(team, place)
	if err != nil {
		return nil, err
	}
	if title != "" {
		w.Title = title
	}
	if url != "" {
		w.URL = url
	}
	return &w, nil
}

// describe gives what a place is called and its address, empty where the store does not know it.
func (r *reader) describe(team model.TeamKey, p model.Place) (title, url string, err error) {
	switch p.Type {
	case model.RefTicket:
		k, err := orZero(r.Ticket(team, p.Ref))
		return k.Title, k.URL, err
	case model.RefPull:
		k, err := orZero(r.Pull(team, p.Ref))
		return k.Title, k.URL, err
	case model.RefDoc:
		k, err := orZero(r.Doc(team, p.Ref))
		return k.Title, k.URL, err
	}
	return "", "", nil
}

// openPast gives the connection's connection to the index, for reading.
func (c *conn) openPast() (_ *conn, err error) {
	if c.past == nil {
		c.past, err = connectIndex(pathOfPast(c.home.path), slices.Concat(common, reading)...)
	}
	if err != nil {
		return nil, fmt.Errorf("open the index of the store %s: %w", c.home.path, err)
	}
	return c.past, nil
}

// openScratch gives the connection's index in memory, empty.
func (c *conn) openScratch() (*conn, error) {
	if c.scratch != nil {
		return c.scratch, c.scratch.run(clearPast, nil)
	}
	s, err := connectIndex(":memory:")
	if err == nil {
		if err = s.db.Exec(indexSchema); err == nil {
			c.scratch = s
			return s, nil
		}
		err = errors.Join(err, s.close())
	}
	return nil, fmt.Errorf("search what is not indexed yet: %w", err)
}
