package office_test

// These tests have the feed and its hints misbehave, and look at what watchers see: everything once and in order, or an end that says why.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

// rumours is a feed whose hints about what was appended come late, twice, in another order, or never.
type rumours struct {
	store.Feed
	mu     sync.Mutex
	random *rand.Rand
	held   [][]store.Stored
	honest atomic.Bool
}

func (r *rumours) Append(ctx context.Context, b store.Batch) (store.Appended, error) {
	done, err := r.Feed.Append(ctx, b)
	if err != nil || r.honest.Load() || len(done.Records) == 0 {
		return done, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.random.IntN(5) {
	case 0: // never
		done.Records = nil
	case 1: // later
		r.held = append(r.held, done.Records)
		done.Records = nil
	case 2: // an older one instead
		if n := len(r.held); n > 0 {
			i := r.random.IntN(n)
			done.Records, r.held = r.held[i], slices.Delete(r.held, i, i+1)
		}
	case 3: // twice
		r.held = append(r.held, done.Records)
	}
	return done, nil
}

func TestHintsThatComeLateTwiceOrNeverChangeNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	faulty := &rumours{random: rand.New(rand.NewPCG(seed, 0))}
	b, _ := openSessions(t, func(o *office.Options) { faulty.Feed = o.Feed; o.Feed = faulty })
	s, _, u := b.working("i1")
	var viewers []*viewer
	for _, after := range []int{0, 0, 1} {
		v := b.watch(s.ID, fmt.Sprintf("protocol=6&after_seq=%d", after))
		v.snapshot()
		v.last = int64(after)
		viewers = append(viewers, v)
	}
	n := int64(1)
	for i := range 300 {
		entries := u.output(1 + i%7)
		u.upload(entries...)
		n += int64(len(entries))
		if i%100 == 99 {
			late := b.watch(s.ID, fmt.Sprintf("protocol=6&after_seq=%d", n/2))
			late.snapshot()
			late.last = n / 2
			viewers = append(viewers, late)
		}
	}
	faulty.honest.Store(true)
	u.upload(u.output(1)...)
	n++
	for _, v := range viewers {
		v.records(n)
	}
}

// brittle is a feed that a test breaks.
type brittle struct {
	store.Feed
	read func(ctx context.Context, session string, after int64, limit, maxBytes int) ([]store.Stored, error)
}

func (f *brittle) Read(ctx context.Context, session string, after int64, limit, maxBytes int) ([]store.Stored, error) {
	if f.read != nil {
		return f.read(ctx, session, after, limit, maxBytes)
	}
	return f.Feed.Read(ctx, session, after, limit, maxBytes)
}

func TestAStreamWhoseFeedFailsEndsAndGoesOnLater(t *testing.T) {
	broken := &brittle{}
	var failing atomic.Bool
	b, _ := openSessions(t, func(o *office.Options) { broken.Feed = o.Feed; o.Feed = broken })
	broken.read = func(ctx context.Context, session string, after int64, limit, maxBytes int) ([]store.Stored, error) {
		if failing.Load() && after > 0 {
			return nil, errors.New("the disk is gone")
		}
		return broken.Feed.Read(ctx, session, after, min(limit, 3), maxBytes)
	}
	s, _, u := b.working("i1")
	u.upload(u.output(8)...)
	failing.Store(true)
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	v.records(3)
	code, _, last := v.ended()
	if failure, ok := last.(feed.ErrorFrame); code != feed.CloseServerError || !ok || failure.Message == "" {
		t.Errorf("it ends with %d after %+v", code, last)
	}
	failing.Store(false)
	again := b.watch(s.ID, fmt.Sprintf("protocol=6&after_seq=%d", v.last))
	again.snapshot()
	again.last = v.last
	again.records(9)
}

func TestAGapThatOpensWhileAStreamIsReadIsTold(t *testing.T) {
	trimmed := &brittle{}
	b, _ := openSessions(t, func(o *office.Options) { trimmed.Feed = o.Feed; o.Feed = trimmed })
	for name, gap := range map[string]func(all []store.Stored) []store.Stored{
		"in the middle":   func(all []store.Stored) []store.Stored { return all[min(2, len(all)):] },
		"down to the end": func([]store.Stored) []store.Stored { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			item := "i" + name[:2]
			b.apply(item)
			b.records("uid-"+item, 1)
			s := b.sessionOf("uid-" + item)
			var batch store.Batch
			batch.Ref = feed.SessionRef{ID: s.ID, Namespace: s.Namespace, Team: s.Team}
			for range 9 {
				batch.Entries = append(batch.Entries, store.FeedEntry{Record: &feed.Record{
					Kind: feed.KindUnknown, Source: feed.SourceCommand, Format: feed.FormatCommand, Type: "stdout", SessionID: s.ID, CreatedAt: time.Now(),
				}})
			}
			_, err := b.feed.Append(t.Context(), batch)
			b.must(err)
			trimmed.read = func(ctx context.Context, session string, after int64, _, maxBytes int) ([]store.Stored, error) {
				all, err := trimmed.Feed.Read(ctx, session, after, 3, maxBytes)
				if after > 0 {
					all = gap(all)
				}
				return all, err
			}
			v := b.watch(s.ID, "protocol=6")
			v.snapshot()
			v.records(3)
			if code, reason, last := v.ended(); code != feed.CloseServerError || last.FrameType() != feed.FrameError {
				t.Errorf("it ends with %d %q after %+v", code, reason, last)
			}
		})
	}
}

func TestASessionWhoseRecordsAreGoneSaysSo(t *testing.T) {
	b, _ := openSessions(t)
	s, ada, u := b.working("i1", chore)
	u.finish(ada, "i1")
	b.records("uid-i1", 3)
	_, err := b.feed.Trim(t.Context(), store.Limits{Namespace: s.Namespace, Team: s.Team, ClosedBefore: time.Now().Add(time.Hour)})
	b.must(err)
	v := b.watch(s.ID, "protocol=6&after_seq=1")
	if first := v.snapshot(); first.EarliestFeedSeq != nil || first.Session.Conversation.State != feed.ConversationClosed {
		t.Errorf("the snapshot is %+v", first)
	}
	if code, _, last := v.ended(); code != feed.CloseNormal || last.FrameType() != feed.FrameDone {
		t.Errorf("it ends with %d after %+v", code, last)
	}
	a := b.ask(tokenAll, "GET", "/v1/sessions/"+s.ID+"/records", "")
	if string(a.body) != `{"records":[],"next_cursor":null,"earliest_feed_seq":null}` {
		t.Errorf("its records are %s", a.body)
	}
}
