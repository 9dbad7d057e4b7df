package storetest

// This file holds a feed to a model of it: random appends with repeats, gaps and keys, reads, trims, and openings.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// randomFeeds is how many random feeds a run of the test tries, unless -rapid.checks says otherwise, and randomDeeds how much happens to
// each, on average.
const (
	randomFeeds = "25"
	randomDeeds = "60"
)

// feedModel is what a feed must be, and the feed.
type feedModel struct {
	t        *rapid.T
	f        *feedSuite
	sessions map[string]*sessionModel
}

// sessionModel is what a feed must have of a session.
type sessionModel struct {
	team     model.TeamKey
	records  []recordModel // from the first on, also those that were trimmed
	trimmed  int
	spools   map[string]int64
	keys     map[string]int64
	ended    map[string]bool
	closed   bool
	closedAt int
	// began orders sessions that were closed at one time.
	began int
}

// recordModel is a record: the payload that it was given, and the JSON that the feed made.
type recordModel struct {
	payload string
	json    string
}

func (s *sessionModel) bytes() (n int64) {
	for _, r := range s.records[s.trimmed:] {
		n += int64(len(r.json))
	}
	return n
}

func testFeedModel(t *testing.T, f *feedSuite) {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": randomFeeds, "rapid.steps": randomDeeds} {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		place := t.TempDir()
		m := &feedModel{t: rt, f: &feedSuite{Feed: f.open(t, place), open: f.open, place: place}, sessions: map[string]*sessionModel{}}
		defer func() {
			if err := m.f.Close(); err != nil {
				rt.Error(err)
			}
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"append": m.append,
			"more":   m.append, // most of the time
			"trim":   m.trim,
			"reopen": func(*rapid.T) { m.f.reopen(t) },
			"":       m.check,
		})
	})
}

// team is the team of a session, whose id says it.
func teamOf(session string) model.TeamKey {
	if session[0] == 'o' {
		return other
	}
	return core
}

// append appends a random batch.
func (m *feedModel) append(t *rapid.T) {
	session := rapid.SampledFrom([]string{"a", "b", "c", "o1", "o2"}).Draw(t, "session")
	spool := rapid.SampledFrom([]string{"", "first", "second"}).Draw(t, "spool")
	s := m.sessions[session]
	if s == nil {
		s = &sessionModel{
			team: teamOf(session), spools: map[string]int64{}, keys: map[string]int64{}, ended: map[string]bool{}, began: len(m.sessions),
		}
	}
	b := m.batch(t, session, spool, s)
	did, err := m.f.Append(context.Background(), b)
	want, gap := s.apply(b)
	if gap != errors.Is(err, store.ErrGap) || err != nil && !gap {
		t.Fatalf("the append gave %v; a gap: %t", err, gap)
	}
	if gap {
		return
	}
	if len(did.Records) != len(want) || spool != "" && did.SpoolSeq != s.spools[spool] {
		t.Fatalf("%d records were stored up to %d, want %d up to %d", len(did.Records), did.SpoolSeq, len(want), s.spools[spool])
	}
	for n, at := range want {
		r := &s.records[at]
		r.json = string(did.Records[n].JSON)
		decoded, err := feed.DecodeRecord(did.Records[n].JSON)
		if err != nil || decoded.FeedSeq != int64(at+1) || did.Records[n].Seq != int64(at+1) || string(decoded.Payload) != r.payload {
			t.Fatalf("at %d there is %s (%v), want the payload %s", at+1, r.json, err, r.payload)
		}
	}
	if len(s.records) > 0 || len(s.spools) > 0 {
		m.sessions[session] = s
	}
}

// batch makes a random batch for a session, of a spool or of the office's own.
func (m *feedModel) batch(t *rapid.T, session, spool string, s *sessionModel) store.Batch {
	ref := feed.SessionRef{ID: session, Namespace: s.team.Namespace, Team: s.team.Name}
	b := store.Batch{Ref: ref, Spool: spool}
	seq := max(1, s.spools[spool]+1+int64(rapid.IntRange(-4, 1).Draw(t, "from")))
	for range rapid.IntRange(0, 6).Draw(t, "entries") {
		e := store.FeedEntry{Record: m.record(t)}
		if rapid.IntRange(0, 2).Draw(t, "keyed") == 0 {
			e.Key = rapid.SampledFrom([]string{"k1", "k2", "k3", "k4", "k5", "k6", "k7"}).Draw(t, "key")
		}
		if spool != "" && (e.Key == "" || rapid.Bool().Draw(t, "in the spool")) {
			e.SpoolSeq = seq
			seq++
			if rapid.IntRange(0, 30).Draw(t, "gap") == 0 {
				seq++
			}
			if rapid.IntRange(0, 9).Draw(t, "state") == 0 {
				e.Record = nil
			}
		}
		b.Entries = append(b.Entries, e)
	}
	return b
}

// record makes a random record.
func (m *feedModel) record(t *rapid.T) *feed.Record {
	switch rapid.IntRange(0, 15).Draw(t, "kind") {
	case 0:
		return event(feed.TypeSessionClosed, rapid.IntRange(1, 9).Draw(t, "closed"), nil)
	case 1, 2:
		turn := rapid.SampledFrom([]string{"t1", "t2", "t3"}).Draw(t, "turn")
		return event(feed.TypeTurnEnded, 0, &turn)
	}
	r := spoken(fmt.Sprint(rapid.Uint32().Draw(t, "text")))
	r.Payload = json.RawMessage(string(r.Payload[:len(r.Payload)-1]) + fmt.Sprintf(`,"pad":"%*d"}`, rapid.IntRange(0, 9000).Draw(t, "pad"), 1))
	return r
}

// apply does to the model what an append does to a feed. It says which records are new.
func (s *sessionModel) apply(b store.Batch) (stored []int, gap bool) {
	last := s.spools[b.Spool]
	var entries []store.FeedEntry
	for _, e := range b.Entries {
		switch {
		case b.Spool == "" || e.SpoolSeq == 0:
			entries = append(entries, e)
		case e.SpoolSeq == last+1 || last == 0:
			entries = append(entries, e)
			last = e.SpoolSeq
		case e.SpoolSeq > last:
			return nil, true
		}
	}
	if last > 0 {
		s.spools[b.Spool] = last
	}
	for _, e := range entries {
		if e.Record == nil || s.keys[e.Key] != 0 {
			continue
		}
		stored = append(stored, len(s.records))
		s.records = append(s.records, recordModel{payload: string(e.Record.Payload)})
		if e.Key != "" {
			s.keys[e.Key] = int64(len(s.records))
		}
		switch {
		case e.Record.Type == feed.TypeTurnEnded:
			s.ended[*e.Record.TurnID] = true
		case e.Record.Type == feed.TypeSessionClosed && !s.closed:
			s.closed, s.closedAt = true, int(e.Record.CreatedAt.Sub(epoch).Seconds())
		}
	}
	return stored, false
}

// trim trims with random limits.
func (m *feedModel) trim(t *rapid.T) {
	team := rapid.SampledFrom([]model.TeamKey{core, other}).Draw(t, "team")
	size := m.size(team)
	l := store.Limits{Namespace: team.Namespace, Team: team.Name}
	before := rapid.IntRange(0, 10).Draw(t, "before")
	if before > 0 {
		l.ClosedBefore = after(before)
	}
	l.Bytes = int64(rapid.IntRange(0, 12).Draw(t, "tenths")) * size / 10
	did, err := m.f.Trim(context.Background(), l)
	if err != nil {
		t.Fatal(err)
	}
	var want store.Trimmed
	for _, s := range m.closed(team) {
		// What is left of a session that was trimmed before goes whatever the limits are.
		if s.trimmed == 0 && (before == 0 || s.closedAt >= before) && (l.Bytes == 0 || size <= l.Bytes) {
			break
		}
		want.Sessions++
		want.Records += int64(len(s.records) - s.trimmed)
		want.Bytes += s.bytes()
		size -= s.bytes()
		s.trimmed = len(s.records)
	}
	if did != want {
		t.Fatalf("a trim with %+v did %+v, want %+v", l, did, want)
	}
}

// closed lists the closed sessions of a team that have records, as they are to be trimmed.
func (m *feedModel) closed(team model.TeamKey) (all []*sessionModel) {
	for _, s := range m.sessions {
		if s.team == team && s.closed && s.trimmed < len(s.records) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *sessionModel) int { return cmp.Or(a.closedAt-b.closedAt, a.began-b.began) })
	return all
}

func (m *feedModel) size(team model.TeamKey) (n int64) {
	for _, s := range m.sessions {
		if s.team == team {
			n += s.bytes()
		}
	}
	return n
}

// check compares all of the feed with the model.
func (m *feedModel) check(t *rapid.T) {
	ctx := context.Background()
	for _, team := range []model.TeamKey{core, other} {
		if size, err := m.f.Size(ctx, team.Namespace, team.Name); err != nil || size != m.size(team) {
			t.Fatalf("%v has %d bytes (%v), want %d", team, size, err, m.size(team))
		}
	}
	for _, session := range slices.Sorted(maps.Keys(m.sessions)) {
		m.checkSession(t, session, m.sessions[session])
	}
}

func (m *feedModel) checkSession(t *rapid.T, session string, s *sessionModel) {
	ctx := context.Background()
	want := store.Head{Latest: int64(len(s.records)), Bytes: s.bytes(), Closed: s.closed}
	if s.trimmed < len(s.records) {
		want.Earliest = int64(s.trimmed + 1)
	}
	if head, err := m.f.Head(ctx, session); err != nil || head != want {
		t.Fatalf("the head of %s is %+v (%v), want %+v", session, head, err, want)
	}
	after := rapid.IntRange(0, len(s.records)).Draw(t, "after")
	all, err := m.f.Read(ctx, session, int64(after), 0, 0)
	kept := s.records[max(after, s.trimmed):]
	if err != nil || len(all) != len(kept) {
		t.Fatalf("%s has %d records after %d (%v), want %d", session, len(all), after, err, len(kept))
	}
	for n, r := range all {
		if string(r.JSON) != kept[n].json || r.Seq != int64(len(s.records)-len(kept)+n+1) {
			t.Fatalf("%s has at %d %s, want %s", session, r.Seq, r.JSON, kept[n].json)
		}
	}
	places, err := m.f.Placed(ctx, session, []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7"})
	if err != nil || !maps.Equal(places, s.keys) {
		t.Fatalf("the keys of %s are at %v (%v), want %v", session, places, err, s.keys)
	}
	for _, spool := range []string{"first", "second"} {
		if seq, err := m.f.Uploaded(ctx, session, spool); err != nil || seq != s.spools[spool] {
			t.Fatalf("the spool %s of %s is at %d (%v), want %d", spool, session, seq, err, s.spools[spool])
		}
	}
	for _, turn := range []string{"t1", "t2", "t3"} {
		if ended, err := m.f.Ended(ctx, session, turn); err != nil || ended != s.ended[turn] {
			t.Fatalf("the turn %s of %s has ended: %t (%v), want %t", turn, session, ended, err, s.ended[turn])
		}
	}
}
