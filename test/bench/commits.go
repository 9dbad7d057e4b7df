package main

// This file measures durable commits of the embedded store.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/bullpen-dev/bullpen/office/store/sqlite"
	"github.com/bullpen-dev/bullpen/office/store/storetest"
)

// measureCommits has 1, 50 and 500 writers wait for the disk.
func measureCommits(ctx context.Context, s *session) (result, error) {
	var all result
	for _, load := range []struct{ writers, updates int }{{1, 1_000}, {50, 40_000}, {500, 100_000}} {
		updates := s.scale(load.updates, 20*load.writers)
		s.progress("%d updates by %d writers", updates, load.writers)
		one, err := commitsWith(ctx, s, load.writers, updates)
		if err != nil {
			return all, err
		}
		all.figures = append(all.figures, one.figures...)
		all.spreads = append(all.spreads, one.spreads...)
	}
	return all, nil
}

func commitsWith(ctx context.Context, s *session, writers, updates int) (all result, err error) {
	store, err := sqlite.Open(filepath.Join(s.dir, fmt.Sprintf("commits-%d.db", s.unique())), sqlite.Options{})
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	took, elapsed, err := storetest.Commits(ctx, store, writers, updates)
	if err != nil {
		return all, err
	}
	name := fmt.Sprintf("durable commits, %d writers", writers)
	if writers == 1 {
		name = "durable commits, 1 writer"
	}
	all.spreads = []spread{spreadOf(name, took)}
	all.figures = []figure{{name: name, unit: "/s", value: float64(updates) / elapsed.Seconds()}}
	return all, nil
}
