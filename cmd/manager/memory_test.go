package main

// This file tests how the office's memory is opened, and what is said where records cannot be written.

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bullpen-dev/bullpen/office/store"
)

func TestTheMemoryIsOneFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for range 2 { // once new, once as it was left
		m, err := openMemory(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.store.Healthy(), m.feed.Healthy(), m.close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"office.db", "office.db.feed"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
	// Where one of both cannot be opened, the other one is let go.
	if err := os.WriteFile(filepath.Join(dir, "office.db.feed"), []byte("no feed, but long enough to be looked at as one, which it is not at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openMemory(dir); err == nil {
		t.Fatal("a feed that is none was opened")
	}
	if err := os.Remove(filepath.Join(dir, "office.db.feed")); err != nil {
		t.Fatal(err)
	}
	m, err := openMemory(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
}

type someFeed struct {
	store.Feed
	err error
}

func (f *someFeed) Healthy() error { return f.err }

func TestWhetherRecordsCanBeWrittenIsSaid(t *testing.T) {
	var log bytes.Buffer
	f := &someFeed{}
	w := &feedWatch{feed: f, log: slog.New(slog.NewTextHandler(&log, nil))}
	registry := prometheus.NewRegistry()
	if err := w.register(registry); err != nil {
		t.Fatal(err)
	}
	gauge := func() float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "bullpen_office_feed_healthy" {
			t.Fatal(families, err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	if gauge() != 1 {
		t.Error("a healthy feed is not 1")
	}
	f.err = errors.New("the disk is full")
	if gauge() != 0 {
		t.Error("a sick feed is not 0")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it looks once
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "the disk is full") {
		t.Errorf("the log says %q", log.String())
	}
}
