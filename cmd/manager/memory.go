package main

// This file opens what the office remembers by: its store, and beside it the records of sessions.

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/store/sqlite"
)

// memory is the office's, until close.
type memory struct {
	store *sqlite.Store
	feed  *sqlite.Feed
}

// openMemory opens both in the folder.
func openMemory(dir string) (*memory, error) {
	path := filepath.Join(dir, "office.db")
	st, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	records, err := sqlite.OpenFeed(path+".feed", sqlite.FeedOptions{Store: st.ID()})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return &memory{store: st, feed: records}, nil
}

// close ends the feed before the store that it belongs to.
func (m *memory) close() error { return errors.Join(m.feed.Close(), m.store.Close()) }

// feedLook is how often it is looked at whether records can be written.
const feedLook = 5 * time.Second

// feedWatch says whether records of sessions can be written: by a metric, and in the log when that changes. It is a Runnable. That they cannot
// does not make the manager unready, unlike the store: agents keep their records until they can be, and work goes on.
type feedWatch struct {
	feed store.Feed
	log  *slog.Logger
}

// NeedLeaderElection says that there is something to watch as soon as the feed is open.
func (w *feedWatch) NeedLeaderElection() bool { return false }

// register registers the metric.
func (w *feedWatch) register(r prometheus.Registerer) error {
	return r.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bullpen_office_feed_healthy", Help: "1 while the records of sessions can be written, 0 while they cannot.",
	}, func() float64 {
		if w.feed.Healthy() != nil {
			return 0
		}
		return 1
	}))
}

// Start watches until ctx ends.
func (w *feedWatch) Start(ctx context.Context) error {
	ticker := time.NewTicker(feedLook)
	defer ticker.Stop()
	for sick := false; ; {
		err := w.feed.Healthy()
		switch {
		case err != nil && !sick:
			w.log.Error("The records of sessions cannot be written; agents keep them until they can", "error", err)
		case err == nil && sick:
			w.log.Info("The records of sessions can be written again")
		}
		sick = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
