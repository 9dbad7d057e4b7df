package sqlite

// This file measures lists of sessions among a million of them, and what a change of one costs.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// benchSession is one of a million: in 20 namespaces, with 5 teams each, of 20 people each; one of 1,000 is open, all of them of one team.
func benchSession(n int) model.Session {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	s := model.Session{
		ID: model.SessionID("life", fmt.Sprint("item-", n), 1), ItemID: "item",
		Namespace: fmt.Sprint("space-", n%20), Team: fmt.Sprint("team-", n/20%5), Name: fmt.Sprint("fix-", n), Person: fmt.Sprint("person-", n/100%20), State: "done", CreatedAt: at, UpdatedAt: at, ClosedAt: at, Turns: 1,
		Source: "api", Model: "some-model", Summary: "All is well, the tests pass and the pull request is open.", SummaryAt: at,
		Turn: &model.Turn{ID: "turn", Round: 1, Messages: []string{"message"}, Status: model.TurnCompleted, StartedAt: at, EndedAt: at},
	}
	if n%1000 == 0 {
		s.ClosedAt, s.State = time.Time{}, "active"
	}
	return s
}

// BenchmarkSessions lists the first fifty and fifty in the middle, in a View of its own, and changes sessions, in an Update of its own.
func BenchmarkSessions(b *testing.B) {
	if testing.Short() {
		b.Skip("fills a store for a minute")
	}
	s := benchStore(b, Options{})
	start := time.Now()
	for first := 0; first < million; first += 250 {
		if err := s.Update(context.Background(), func(tx store.Tx) error {
			for n := first; n < first+250; n++ {
				if err := tx.PutSession(benchSession(n)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("a million sessions were written in %v", time.Since(start).Round(time.Second))
	recent := func(n int) model.Session { return benchSession(million - 1 - n*7919%10_000) }
	middle := benchSession(million / 2)
	for _, q := range []struct {
		name   string
		filter model.SessionFilter
	}{
		{"all", model.SessionFilter{}},
		{"namespace", model.SessionFilter{Namespace: "space-3"}},
		{"team", model.SessionFilter{Namespace: "space-3", Team: "team-2"}},
		{"person", model.SessionFilter{Namespace: "space-3", Team: "team-2", Person: "person-7"}},
		{"person everywhere", model.SessionFilter{Person: "person-7"}},
		{"nobody anywhere", model.SessionFilter{Person: "zoe"}},
		{"item by name", model.SessionFilter{Namespace: "space-3", Item: "fix-500003"}},
		{"open", model.SessionFilter{Namespace: "space-0", Open: true}},
		{"open of a team without", model.SessionFilter{Namespace: "space-3", Team: "team-2", Open: true}},
		{"closed", model.SessionFilter{Namespace: "space-3", Closed: true}},
		{"a state that is rare", model.SessionFilter{Namespace: "space-0", State: "active"}},
		{"a state that nothing has", model.SessionFilter{State: "waiting"}},
	} {
		for _, at := range []string{"first", "middle"} {
			b.Run(q.name+"/"+at, func(b *testing.B) {
				if at == "middle" {
					q.filter.BeforeAt, q.filter.BeforeID = middle.CreatedAt, middle.ID
				}
				found := 0
				for b.Loop() {
					if err := s.View(context.Background(), func(r store.Reader) error {
						sessions, err := r.Sessions(q.filter, 50)
						found = len(sessions)
						return err
					}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(found), "found")
			})
		}
	}
	for _, w := range []struct {
		name  string
		write func(tx store.Tx, n int) error
	}{
		{"nothing", func(store.Tx, int) error { return nil }},
		{"make a session", func(tx store.Tx, n int) error { return tx.PutSession(benchSession(million + n)) }},
		{"change its summary", func(tx store.Tx, n int) error {
			s := recent(n)
			s.Summary = fmt.Sprint("step ", n)
			return tx.PutSession(s)
		}},
		{"change its state", func(tx store.Tx, n int) error {
			s := recent(n)
			s.State = fmt.Sprint("state ", n%3)
			return tx.PutSession(s)
		}},
		{"a message and its record", func(tx store.Tx, n int) error {
			s := recent(n)
			if err := tx.PutMessage(model.Message{SessionID: s.ID, ID: fmt.Sprint("m", n), Body: s.Summary}); err != nil {
				return err
			}
			return tx.Emit(&model.Emitted{Key: "key"})
		}},
	} {
		b.Run("write/"+w.name, func(b *testing.B) { // a hundred in one update: the disk is not what is measured
			n := 0
			for n < b.N {
				if err := s.Update(context.Background(), func(tx store.Tx) error {
					for range min(100, b.N-n) {
						if err := w.write(tx, n); err != nil {
							return err
						}
						n++
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
