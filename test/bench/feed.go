package main

// This file measures the feed of session records: appends that wait for the disk, and reads, of few records and of ten million.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
	"github.com/bullpen-dev/bullpen/office/store/storetest"
)

// The large feed: sessions side by side, of so many records each, every second of which is closed. behind is how far back a watcher begins.
const (
	largeSessions  = 50_000
	largeOfSession = 200
	behind         = 100_000
)

// openFeed opens the feed at path, which belongs to the benchmarks.
func openFeed(path string) (*sqlite.Feed, error) {
	return sqlite.OpenFeed(path, sqlite.FeedOptions{Store: "benchmarks"})
}

// measureFeedAppends has 1, 50 and 500 writers wait for the disk, and then reads far behind.
func measureFeedAppends(ctx context.Context, s *session) (all result, err error) {
	f, err := openFeed(filepath.Join(s.dir, fmt.Sprintf("feed-%d.db", s.unique())))
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	first := 0
	for _, load := range []struct{ writers, records int }{{1, 1_000}, {50, 60_000}, {500, 100_000}} {
		records := s.scale(load.records, 20*load.writers)
		s.progress("%d records by %d writers", records, load.writers)
		name := fmt.Sprintf("records appended, %d writers", load.writers)
		if load.writers == 1 {
			name = "records appended, 1 writer"
		}
		if err := all.appends(ctx, f, name, first, load.writers, records); err != nil {
			return all, err
		}
		first += load.writers
	}
	return all, all.readBehind(ctx, f, s.scale(behind, 1_000))
}

// appends measures appends to sessions from FeedSession(first) on. The design has an aim for fifty writers.
func (all *result) appends(ctx context.Context, f store.Feed, name string, first, writers, records int) error {
	took, elapsed, err := storetest.Appends(ctx, f, first, writers, records)
	if err != nil {
		return err
	}
	latency := spreadOf(name, took)
	perSecond := figure{name: name, unit: "/s", value: float64(records) / elapsed.Seconds()}
	all.spreads = append(all.spreads, latency)
	if writers != 50 {
		all.figures = append(all.figures, perSecond)
		return nil
	}
	perSecond.aim, perSecond.atLeast = 15_000, true
	all.figures = append(all.figures, perSecond, figure{name: name + ", p99", unit: "ms", value: latency.p99, aim: 25})
	return nil
}

// readBehind reads a session from its beginning, as an office does for a watcher who comes back.
func (all *result) readBehind(ctx context.Context, f store.Feed, records int) error {
	const session = 1_000_000 // which nobody has appended to
	if err := storetest.FillFeed(ctx, f, session, 1, records, nil); err != nil {
		return err
	}
	start, next := time.Now(), int64(0)
	for {
		page, err := f.Read(ctx, storetest.FeedSession(session).ID, next, 1000, 1<<20)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			if next++; r.Seq != next {
				return fmt.Errorf("a record has the place %d, not %d", r.Seq, next)
			}
		}
	}
	if next != int64(records) {
		return fmt.Errorf("%d records were read, not %d", next, records)
	}
	all.figures = append(all.figures, figure{
		name: fmt.Sprintf("read %s records behind, from the feed", number(float64(records))), unit: "/s",
		value: float64(records) / time.Since(start).Seconds(), aim: 50_000, atLeast: true,
	})
	return nil
}

// measureFeedLarge does the same, and more, in a feed of ten million records, which the first run of the session fills.
func measureFeedLarge(ctx context.Context, s *session) (all result, err error) {
	sessions := s.scale(largeSessions, 60)
	f, err := s.withLargeFeed(ctx, sessions)
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	of := fmt.Sprintf(" among %s", number(float64(sessions*largeOfSession)))
	s.largeRuns++
	err = errors.Join(
		all.appends(ctx, f, "records appended"+of+", 50 writers", sessions+50*s.largeRuns, 50, s.scale(60_000, 500)),
		all.readSome(ctx, f, of, sessions, s.scale(2_000, 20)),
		all.trimSome(ctx, f, of, sessions, s.largeRuns, s.scale(100, 5)),
	)
	if err != nil {
		return all, err
	}
	if err := f.Close(); err != nil {
		return all, err
	}
	start := time.Now()
	if f, err = openFeed(s.large); err != nil {
		return all, err
	}
	all.figures = append(all.figures, figure{name: "opening a feed" + of, unit: "ms", value: float64(time.Since(start).Microseconds()) / 1000})
	return all, all.measureFile(ctx, f, s.large, of)
}

// withLargeFeed opens the feed of that many sessions.
func (s *session) withLargeFeed(ctx context.Context, sessions int) (*sqlite.Feed, error) {
	fill := s.large == ""
	if fill {
		// A record has some 950 bytes, and the file is at most half as large again.
		if err := haveRoom(s.dir, int64(sessions)*largeOfSession*1500); err != nil {
			return nil, err
		}
		s.large = filepath.Join(s.dir, "large.db")
	}
	f, err := openFeed(s.large)
	if err != nil || !fill {
		return f, err
	}
	s.progress("%d records are written", sessions*largeOfSession)
	start := time.Now()
	if err := storetest.FillFeed(ctx, f, 0, sessions, largeOfSession, func(n int) bool { return n%2 == 0 }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	took := time.Since(start)
	s.progress("they were written in %v, %s a second", took.Round(time.Second), number(float64(sessions*largeOfSession)/took.Seconds()))
	return f, nil
}

// haveRoom says what to do if a folder's disk has no room for that many bytes.
func haveRoom(folder string, bytes int64) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return err
	}
	if free := int64(disk.Bavail) * disk.Bsize; free < bytes {
		return fmt.Errorf("the disk of %s has %d MiB free, and this benchmark needs %d: set TMPDIR to a folder with more",
			folder, free>>20, bytes>>20)
	}
	return nil
}

// readSome reads the first and the last fifty records of random sessions.
func (all *result) readSome(ctx context.Context, f store.Feed, of string, sessions, reads int) error {
	random := rand.New(rand.NewPCG(1, 2)) // the same sessions in every run
	for _, part := range []string{"first", "last"} {
		var took []time.Duration
		for range reads {
			session := storetest.FeedSession(random.IntN(sessions)).ID
			start := time.Now()
			after := int64(0)
			if part == "last" {
				head, err := f.Head(ctx, session)
				if err != nil {
					return err
				}
				after = max(0, head.Latest-50)
			}
			if _, err := f.Read(ctx, session, after, 50, 1<<20); err != nil {
				return err
			}
			took = append(took, time.Since(start))
		}
		all.spreads = append(all.spreads, spreadOf("the "+part+" fifty records of a session"+of, took))
	}
	return nil
}

// trimSome trims closed sessions, one after another. Every run has sessions of its own.
func (all *result) trimSome(ctx context.Context, f store.Feed, of string, sessions, run, trims int) error {
	var took []time.Duration
	for n := range trims {
		// Session 2k was closed at the second 2k; every run trims on from where the last one stopped.
		at := int64((run-1)*trims+n)*2 + 1
		if at >= int64(sessions) {
			return fmt.Errorf("there are no more closed sessions for run %d", run)
		}
		start := time.Now()
		did, err := f.Trim(ctx, store.Limits{
			Namespace: storetest.Team.Namespace, Team: storetest.Team.Name, ClosedBefore: time.Unix(at, 0),
		})
		if err != nil || did.Sessions != 1 || did.Records != largeOfSession+1 {
			return errors.Join(err, fmt.Errorf("a trim removed %+v", did))
		}
		took = append(took, time.Since(start))
	}
	all.spreads = append(all.spreads, spreadOf("trim of a closed session"+of, took))
	return nil
}

// measureFile says what a record takes on the disk.
func (all *result) measureFile(ctx context.Context, f store.Feed, path, of string) error {
	size, err := f.Size(ctx, storetest.Team.Namespace, storetest.Team.Name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	all.figures = append(all.figures,
		figure{name: "records" + of + ", all their bytes", unit: "MiB", value: float64(size >> 20)},
		figure{name: "the file of the records" + of, unit: "MiB", value: float64(info.Size() >> 20)})
	return nil
}
