package office

// This file makes records of what agents upload: it fills in what only the office knows, and derives the envelope from the payload.

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// roundTurn is the turn of a round, with its session.
type roundTurn struct {
	session  model.Session
	round    int
	turn     string
	index    int
	messages []string
}

// maxDetail is the most characters of why a turn ended.
const maxDetail = 20_000

// maxParents bounds how many earlier sessions of an item are looked through for a turn.
const maxParents = 8

// turn finds the turn of the round that was accepted from an offer; nil where nobody remembers it. When it is first asked for, the feed gets
// what the office has to say before the turn.
func (u *upload) turn(ctx context.Context, offer string) (*roundTurn, error) {
	if t, ok := u.turns[offer]; ok {
		return t, nil
	}
	item, round, ok := model.RoundOfOffer(offer)
	if !ok || item != u.item {
		return nil, &uploadError{"offer is not the id of an offer of this work item"}
	}
	if err := u.o.emits.drain(ctx); err != nil {
		return nil, err
	}
	var t *roundTurn
	err := u.o.store.View(ctx, func(r store.Reader) error {
		if err := u.own(r, round); err != nil {
			return err
		}
		s, err := found(r.SessionOf(item))
		for range maxParents {
			if err != nil || s == nil {
				return err
			}
			if turn := s.OfRound(round); turn != nil {
				t = &roundTurn{session: *s, round: round, turn: turn.ID, index: turn.Index, messages: turn.Messages}
				return nil
			}
			s, err = found(r.Session(s.ParentID))
		}
		return err
	})
	if err == nil {
		u.turns[offer] = t
	}
	return t, err
}

// own refuses the round of somebody else: whoever ran an item before may still tell of their own rounds, and of no other.
func (u *upload) own(r store.Reader, number int) error {
	rounds, err := r.Rounds(u.item)
	for _, round := range rounds {
		if round.Number == number && round.Accepted() && round.Person != u.person {
			return &uploadError{"offer is that of somebody else's round"}
		}
	}
	return err
}

// store appends entries, those of one session at once, and acknowledges them.
func (u *upload) store(ctx context.Context, entries []feed.Entry) error {
	var batch store.Batch
	flush := func() error {
		if len(batch.Entries) == 0 {
			return nil
		}
		done, err := u.o.opts.Feed.Append(ctx, batch)
		if err != nil {
			return err
		}
		u.o.live.appended(batch.Ref.ID, done.Records)
		u.o.uploads.stored(u.item)
		batch.Entries = nil
		return u.send(feed.Stored{Type: feed.IngestStored, Seq: done.SpoolSeq})
	}
	for i := range entries {
		t, err := u.turn(ctx, entries[i].Offer)
		if err != nil {
			return err
		}
		s := u.session
		if t != nil {
			s = t.session
		}
		if batch.Ref.ID != s.ID {
			if err := flush(); err != nil {
				return err
			}
			batch.Ref, batch.Spool = feed.SessionRef{ID: s.ID, Namespace: s.Namespace, Team: s.Team}, u.spool
		}
		list, err := u.records(ctx, t, s, &entries[i])
		if err != nil {
			return err
		}
		batch.Entries = append(batch.Entries, list...)
	}
	return flush()
}

// records makes what there is to append of an entry; the last one carries the entry's sequence.
func (u *upload) records(ctx context.Context, t *roundTurn, s model.Session, e *feed.Entry) ([]store.FeedEntry, error) {
	if e.Seq <= 0 {
		return nil, &uploadError{"an entry needs a sequence above 0"}
	}
	if err := feed.CheckPayload(e.Payload); err != nil {
		return nil, &uploadError{"a payload is not what it should be: " + err.Error()}
	}
	if e.Format == feed.FormatState {
		return []store.FeedEntry{{SpoolSeq: e.Seq}}, u.state(ctx, t, s, e)
	}
	r := feed.Record{Source: e.Source, Format: e.Format, Type: e.Type, SessionID: s.ID, Payload: e.Payload, CreatedAt: u.at(e.At)}
	if t != nil {
		r.TurnID = &t.turn
	}
	if e.Source == feed.SourceLifecycle || e.Format == feed.FormatLifecycle {
		return u.lifecycle(ctx, t, r, e)
	}
	if t != nil && e.Echo != nil {
		r.MessageID = echoed(t.messages, *e.Echo)
	}
	return []store.FeedEntry{{Record: derived(r), SpoolSeq: e.Seq}}, nil
}

func derived(r feed.Record) *feed.Record {
	r.Kind = feed.Classify(r.Source, r.Format, r.Type, r.Payload)
	feed.Derive(&r)
	return &r
}

// at is when something happened as the agent says, unless its clock is in the future.
func (u *upload) at(told time.Time) time.Time {
	now := u.o.now()
	if told.IsZero() || told.After(now.Add(time.Minute)) {
		return now
	}
	return told
}

// echoed is the message that a native echo repeats: 0 is what the item asks, n the n-th feedback.
func echoed(messages []string, n int) *string {
	var asked, feedback []string
	for _, id := range messages {
		if _, ok := model.FeedbackOfMessage(id); ok {
			feedback = append(feedback, id)
		} else {
			asked = append(asked, id)
		}
	}
	slices.SortFunc(feedback, func(a, b string) int {
		x, _ := model.FeedbackOfMessage(a)
		y, _ := model.FeedbackOfMessage(b)
		return cmp.Compare(x, y)
	})
	switch {
	case n == 0 && len(asked) > 0:
		return &asked[0]
	case n > 0 && n <= len(feedback):
		return &feedback[n-1]
	}
	return nil
}

// lifecycle makes the platform's records that agents write; a turn begins and ends once, whoever says so again. An agent cannot write those of
// the office: they become records of its own.
func (u *upload) lifecycle(ctx context.Context, t *roundTurn, r feed.Record, e *feed.Entry) ([]store.FeedEntry, error) {
	one := func(r feed.Record, key string) ([]store.FeedEntry, error) {
		return []store.FeedEntry{{Record: derived(r), SpoolSeq: e.Seq, Key: key}}, nil
	}
	switch {
	case e.Source != feed.SourceLifecycle || e.Format != feed.FormatLifecycle:
	case strings.HasPrefix(e.Type, "environment_"):
		return one(r, "")
	case t == nil:
	case e.Type == feed.TypeTurnStarted:
		r.Payload = encoded(feed.TurnStarted{TurnID: t.turn, TurnIndex: int64(t.index)})
		if err := u.started(ctx, t, r.CreatedAt); err != nil {
			return nil, err
		}
		return one(r, "started/"+t.turn)
	case e.Type == feed.TypeMessageDelivered:
		var list []store.FeedEntry
		for _, id := range t.messages {
			r := r
			r.MessageID, r.Payload = &id, encoded(feed.MessageDelivered{MessageID: id, TurnID: t.turn})
			list = append(list, store.FeedEntry{Record: derived(r), Key: deliveredKey(t.turn, id)})
		}
		return append(list, store.FeedEntry{SpoolSeq: e.Seq}), nil
	case e.Type == feed.TypeTurnEnded:
		payload, err := u.ended(ctx, t, r, e)
		if err != nil {
			return nil, err
		}
		r.Payload = payload
		return one(r, "ended/"+t.turn)
	}
	r.Source, r.Format = "agent", "bullpen_agent@1" // so that nobody, the feed neither, takes it for the platform's
	return one(r, "")
}

// deliveredKey is the key under which the feed has the record that the runtime began with a message.
func deliveredKey(turn, message string) string { return "delivered/" + turn + "/" + message }

func encoded(payload any) json.RawMessage {
	body, err := feed.MarshalPayload(payload)
	if err != nil {
		panic("a payload of plain data does not encode: " + err.Error())
	}
	return body
}

// started has the session show that its turn runs.
func (u *upload) started(ctx context.Context, t *roundTurn, at time.Time) error {
	return u.o.editSession(ctx, t.session.ID, func(s *model.Session) bool {
		if s.Turn == nil || s.Turn.ID != t.turn || s.Turn.Status != model.TurnPending {
			return false
		}
		s.Turn.Status, s.Turn.StartedAt = model.TurnRunning, at
		return true
	})
}

// ended fills in the end of a turn. A round that the office ended is as the office says; of others the agent's word is kept, for the session
// to show once the round is handed back.
func (u *upload) ended(ctx context.Context, t *roundTurn, r feed.Record, e *feed.Entry) (json.RawMessage, error) {
	var told feed.TurnEnded
	if err := json.Unmarshal(e.Payload, &told); err != nil {
		return nil, &uploadError{"turn_ended is not what it should be: " + err.Error()}
	}
	told.TurnID, told.TurnIndex = t.turn, int64(t.index)
	end := model.TurnEnd{
		Status: model.TurnStatus(told.Status), Reason: cut(ptr.Deref(told.Reason, ""), maxName), Detail: cut(ptr.Deref(told.Detail, ""), maxDetail), At: r.CreatedAt,
	}
	if !end.Status.Final() {
		return nil, &uploadError{"turn_ended needs a final status"}
	}
	err := u.o.editSession(ctx, t.session.ID, func(s *model.Session) bool {
		turn := s.OfRound(t.round)
		if turn == nil {
			return false
		}
		if turn.Status.Final() {
			end.Status, end.Reason, end.Detail = turn.Status, turn.Reason, turn.Detail
			return false
		}
		turn.Told = &end
		return true
	})
	told.Status, told.Reason, told.Detail = string(end.Status), orNil(end.Reason), orNil(end.Detail)
	return encoded(told), err
}

// orNil gives nil for an empty text.
func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// state takes what an agent says about the session beside its records. What comes late, of an earlier round, is no longer so.
func (u *upload) state(ctx context.Context, t *roundTurn, s model.Session, e *feed.Entry) error {
	if e.Type != feed.StateGit {
		return nil // of a newer release
	}
	var git feed.Git
	if err := json.Unmarshal(e.Payload, &git); err != nil {
		return &uploadError{"the state of git is not what it should be: " + err.Error()}
	}
	return u.o.editSession(ctx, s.ID, func(s *model.Session) bool {
		if last := s.LastRun(); t != nil && last != nil && last.ID != t.turn {
			return false
		}
		s.Git = &git
		return true
	})
}
