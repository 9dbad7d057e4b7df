package main

// This file measures searches of a person's past.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
	"github.com/bullpen-dev/bullpen/office/store/storetest"
)

// moments is how many rows are searched.
const moments = 1_000_000

// measureRecall searches as ada, who has half of all moments.
func measureRecall(ctx context.Context, s *session) (all result, err error) {
	n := s.scale(moments, 40_000)
	st, err := s.withPast(ctx, n)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	for _, search := range []struct{ name, query string }{
		{"a rare word", "xylophone"},
		{"the most frequent word", storetest.Word(0)},
		{"a phrase", `"needle in a haystack"`},
		{"one word or another", "xylophone or " + storetest.Word(5000)},
	} {
		var took []time.Duration
		for range s.scale(500, 20) {
			start := time.Now()
			found, err := recall(ctx, st, search.query, 20)
			if err != nil {
				return all, err
			}
			if took = append(took, time.Since(start)); found == 0 {
				return all, fmt.Errorf("nothing was found for %s", search.query)
			}
		}
		d := spreadOf(fmt.Sprintf("recall among %s moments: %s", number(float64(n)), search.name), took)
		all.spreads = append(all.spreads, d)
		all.figures = append(all.figures, figure{name: d.name + ", p99", unit: "ms", value: d.p99, aim: 100})
	}
	return all, nil
}

// withPast opens the store with that many moments, which the first run of the session fills.
func (s *session) withPast(ctx context.Context, n int) (*sqlite.Store, error) {
	fill := s.past == ""
	if fill {
		s.past = filepath.Join(s.dir, "past.db")
	}
	st, err := sqlite.Open(s.past, sqlite.Options{})
	if err != nil || !fill {
		return st, err
	}
	s.progress("%d moments are written", n)
	start := time.Now()
	if err := storetest.FillMoments(ctx, st, n); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	wrote := time.Since(start)
	// The index follows the writes. Every 20,000th moment has this word, and is ada's.
	for found := 0; found < n/20_000; time.Sleep(50 * time.Millisecond) {
		if found, err = recall(ctx, st, "xylophone", n); err != nil && time.Since(start) > wrote+10*time.Minute {
			return nil, errors.Join(err, st.Close())
		}
	}
	s.progress("they were written in %v, and can be found after %v", wrote.Round(time.Second), time.Since(start).Round(time.Second))
	return st, nil
}

// recall searches, and counts what it found.
func recall(ctx context.Context, st *sqlite.Store, query string, limit int) (found int, err error) {
	err = st.View(ctx, func(r store.Reader) error {
		moments, _, err := r.Recall(model.Recall{Person: model.PersonKey{Team: storetest.Team, Handle: "ada"}, Query: query, Limit: limit})
		found = len(moments)
		return err
	})
	return found, err
}
