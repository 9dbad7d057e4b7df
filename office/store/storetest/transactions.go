package storetest

// This file tests what transactions promise.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

var errRefused = errors.New("refused by the test")

func testIdentity(t *testing.T, s *suite) {
	id := s.ID()
	s.reopen(t)
	if s.ID() != id || id == "" {
		t.Errorf("the store's id was %q and is %q after opening it again", id, s.ID())
	}
	if second := newSuite(t, s.open); second.ID() == id {
		t.Errorf("two stores have the id %s", id)
	}
}

func testReopen(t *testing.T, s *suite) {
	i := item("fix")
	s.put(t, i)
	s.reopen(t)
	same(t, "the item", read(t, s, func(r store.Reader) (model.Item, error) { return r.Item("fix") }), *i)
	same(t, "the revision", read(t, s, store.Reader.Revision), i.Revision)
	later := item("later")
	s.put(t, later)
	if later.Revision <= i.Revision {
		t.Errorf("the revision %d after opening again does not follow %d", later.Revision, i.Revision)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("the store is not healthy: %v", err)
	}
}

func testClosed(t *testing.T, s *suite) {
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing it twice: %v", err)
	}
	ran := false
	for what, err := range map[string]error{
		"Update": s.Update(context.Background(), func(store.Tx) error { ran = true; return nil }),
		"View":   s.View(context.Background(), func(store.Reader) error { ran = true; return nil }),
	} {
		if !errors.Is(err, store.ErrClosed) || ran {
			t.Errorf("%s of a closed store gave %v (ran: %t), want ErrClosed and not to run", what, err, ran)
		}
	}
}

func testFailedUpdate(t *testing.T, s *suite) {
	s.put(t, item("before"))
	revision := read(t, s, store.Reader.Revision)
	err := s.Update(context.Background(), func(tx store.Tx) error {
		if err := tx.PutItem(item("never")); err != nil {
			return err
		}
		if first, err := tx.FirstTime("before", [32]byte{1}, epoch); err != nil || !first {
			return fmt.Errorf("first time %t: %w", first, err)
		}
		return errRefused
	})
	if !errors.Is(err, errRefused) {
		t.Errorf("the update gave %v, want its function's error", err)
	}
	missing(t, s, "the item", func(r store.Reader) (model.Item, error) { return r.Item("never") })
	same(t, "the revision", read(t, s, store.Reader.Revision), revision)
	s.update(t, func(tx store.Tx) error {
		first, err := tx.FirstTime("before", [32]byte{1}, epoch)
		if !first {
			t.Error("a key of a failed update is remembered")
		}
		return err
	})
}

func testPanic(t *testing.T, s *suite) {
	func() {
		defer func() {
			if v := recover(); v != "on purpose" {
				t.Errorf("recovered %v, want the update's panic", v)
			}
		}()
		_ = s.Update(context.Background(), func(tx store.Tx) error {
			if err := tx.PutItem(item("never")); err != nil {
				return err
			}
			panic("on purpose")
		})
	}()
	missing(t, s, "the item", func(r store.Reader) (model.Item, error) { return r.Item("never") })
	s.put(t, item("next")) // the store goes on
}

func testCanceledUpdate(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ran := false
	for what, err := range map[string]error{
		"Update": s.Update(ctx, func(store.Tx) error { ran = true; return nil }),
		"View":   s.View(ctx, func(store.Reader) error { ran = true; return nil }),
	} {
		if !errors.Is(err, context.Canceled) || ran {
			t.Errorf("%s gave %v (ran: %t), want context.Canceled and not to run", what, err, ran)
		}
	}
}

func testContextEndsLate(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(context.Background())
	err := s.Update(ctx, func(tx store.Tx) error {
		cancel()
		return tx.PutItem(item("done"))
	})
	if err != nil {
		t.Errorf("the update gave %v, but it ran", err)
	}
	read(t, s, func(r store.Reader) (model.Item, error) { return r.Item("done") })
}

func testKept(t *testing.T, s *suite) {
	var kept store.Tx
	s.update(t, func(tx store.Tx) error { kept = tx; return nil })
	if err := kept.PutItem(item("late")); err == nil {
		t.Error("a kept transaction wrote")
	}
	var reader store.Reader
	if err := s.View(context.Background(), func(r store.Reader) error { reader = r; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Revision(); err == nil {
		t.Error("a kept reader read")
	}
	missing(t, s, "the item", func(r store.Reader) (model.Item, error) { return r.Item("late") })
}

func testIsolation(t *testing.T, s *suite) {
	s.update(t, func(tx store.Tx) error {
		if err := tx.PutItem(item("fix")); err != nil {
			return err
		}
		if _, err := tx.ItemByName(core.Namespace, "fix"); err != nil {
			t.Errorf("the update does not see what it wrote: %v", err)
		}
		missing(t, s, "the item before the commit", func(r store.Reader) (model.Item, error) { return r.Item("fix") })
		return nil
	})
	read(t, s, func(r store.Reader) (model.Item, error) { return r.Item("fix") })
}

func testSnapshot(t *testing.T, s *suite) {
	s.put(t, item("first"))
	err := s.View(context.Background(), func(r store.Reader) error {
		before, err := r.LiveItems()
		if err != nil {
			return err
		}
		s.put(t, item("second"))
		after, err := r.LiveItems()
		same(t, "the items of one view", after, before)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the items of the next view", len(read(t, s, store.Reader.LiveItems)), 2)
}

// testConcurrent has writers that each move one item forward again and again. Every third time the function fails after it
// wrote. Meanwhile readers check that revision and items are of one moment.
func testConcurrent(t *testing.T, s *suite) {
	const writers, steps = 24, 20
	for w := range writers {
		s.put(t, item(fmt.Sprint("item-", w)))
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() { advance(t, s, fmt.Sprint("item-", w), steps) })
	}
	for range 4 {
		all.Go(func() {
			for range steps {
				checkMoment(t, s, writers)
			}
		})
	}
	all.Wait()
	total := 0
	for w := range writers {
		got := read(t, s, func(r store.Reader) (model.Item, error) { return r.Item(fmt.Sprint("item-", w)) })
		same(t, "the steps of "+got.Name, got.Failures, steps-(steps+2)/3)
		total += got.Failures
	}
	same(t, "the revision", read(t, s, store.Reader.Revision), int64(writers+total))
}

func advance(t *testing.T, s *suite, id string, steps int) {
	for step := range steps {
		err := s.Update(context.Background(), func(tx store.Tx) error {
			i, err := tx.Item(id)
			if err != nil {
				return err
			}
			i.Failures++
			if err := tx.PutItem(&i); err != nil {
				return err
			}
			if step%3 == 0 {
				return errRefused
			}
			return nil
		})
		if refused := step%3 == 0; refused != errors.Is(err, errRefused) || (err != nil && !refused) {
			t.Errorf("step %d of %s gave %v", step, id, err)
		}
	}
}

// checkMoment checks that the revision is the sum of all steps that the same view shows.
func checkMoment(t *testing.T, s *suite, items int) {
	err := s.View(context.Background(), func(r store.Reader) error {
		revision, err := r.Revision()
		if err != nil {
			return err
		}
		sum := items
		for w := range items {
			i, err := r.Item(fmt.Sprint("item-", w))
			if err != nil {
				return err
			}
			sum += i.Failures
		}
		if int64(sum) != revision {
			t.Errorf("a view shows the revision %d and items of %d", revision, sum)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
