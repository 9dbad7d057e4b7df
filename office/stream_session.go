package office

// This file has the session object as those who watch it see it change. Changes that come close together are shown together, but for how a
// turn ended: whoever waits for an answer waits for that, so each end is shown, and only when the records of the turn are there.

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

const (
	// holdPoll is how often the feed is asked for the end of a turn, where no hint tells of it.
	holdPoll = 250 * time.Millisecond
	// showAgain is how soon a session that could not be read is read again.
	showAgain = time.Second
	// mostEnds is how many ends of turns a topic remembers the places of.
	mostEnds = 64
)

// objects are the session objects that a topic's watchers are sent. They belong to the topic's lock.
type objects struct {
	// dirty says that the session may look different, following that somebody looks; stir has them look at once.
	dirty     bool
	following bool
	stir      chan struct{}
	// list has what some watchers may not have, numbered up to number, the latest last.
	list   []object
	number int64
	// ended says that the conversation is over, and its feed closed.
	ended bool
	// ends are the places of records that ended turns, by turn.
	ends map[string]int64
}

// object is a session object to send.
type object struct {
	number int64
	// place is that of a record which comes before the object.
	place int64
	// final says that it shows how a turn ended, so that no later one takes its place.
	final bool
	frame outgoingFrame
}

// showed is what watchers were shown. It belongs to whoever holds the topic's showing.
type showed struct {
	begun bool
	// turn is the index of the last turn whose end was shown.
	turn int
	body []byte
	at   time.Time
	// held is since when the ends of turns wait for their records.
	held map[string]time.Time
}

// changed says that the session may look different.
func (t *topic) changed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirty = true
	if !t.following {
		t.following = true
		go t.follow()
		return
	}
	t.stirUp()
}

// stirUp has whoever follows the session look at it now. The lock is held.
func (t *topic) stirUp() {
	select {
	case t.stir <- struct{}{}:
	default:
	}
}

// follow shows how the session changes, until there is nothing new.
func (t *topic) follow() {
	for t.take() {
		wait, err := t.show()
		if err != nil {
			t.l.o.log.Warn("A session could not be shown to those who watch it; it is tried again", "session", t.session, "error", err)
			wait = showAgain
		}
		if wait > 0 && !t.pause(wait) {
			return
		}
	}
}

// take says whether there is something to show.
func (t *topic) take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.dirty {
		t.following = false
	}
	was := t.dirty
	t.dirty = false
	return was
}

// pause waits until the session is to be looked at again, and says whether anybody still watches.
func (t *topic) pause(wait time.Duration) bool {
	t.mu.Lock()
	t.dirty = true
	t.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.stir:
	case <-timer.C:
	case <-t.over:
		return false
	case <-t.l.o.lifetime.Done():
		return false
	}
	return true
}

// show sends what is new of the session. What has to wait is to be looked at again after so long.
func (t *topic) show() (again time.Duration, err error) {
	t.showing.Lock()
	defer t.showing.Unlock()
	if !t.showed.begun {
		return 0, nil // the first snapshot shows it
	}
	ctx, cancel := context.WithTimeout(t.l.o.lifetime, readTime)
	defer cancel()
	v, err := t.l.o.viewSession(ctx, t.session)
	if err != nil {
		return 0, err
	}
	head, err := t.l.o.opts.Feed.Head(ctx, t.session)
	if err != nil {
		return 0, err
	}
	for _, turn := range v.ended(t.showed.turn) {
		place, ready, err := t.endOf(ctx, turn, head)
		if err != nil {
			return 0, err
		}
		if !ready {
			return holdPoll, nil
		}
		if err := t.publish(v, &turn, place, true); err != nil {
			return 0, err
		}
		t.showed.turn = turn.Index
		delete(t.showed.held, turn.ID)
	}
	if wait := t.l.opts.SessionEvery - time.Since(t.showed.at); wait > 0 && !t.urgent(v) {
		return wait, nil
	}
	err = t.publish(v, current(v.session), 0, false)
	t.close(v, head)
	return 0, err
}

// ended lists the turns of a session that have come to their end, after one of an index.
func (v sessionView) ended(after int) []model.Turn {
	var list []model.Turn
	for _, turn := range v.session.Past {
		if turn.Status.Final() && turn.Index > after {
			list = append(list, turn)
		}
	}
	if turn := v.session.Turn; turn != nil && turn.Status.Final() && turn.Index > after {
		list = append(list, *turn)
	}
	return list
}

// lastEnded is the index of the last turn that has come to its end, -1 where none has.
func (v sessionView) lastEnded() int {
	last := -1
	for _, turn := range v.ended(-1) {
		last = max(last, turn.Index)
	}
	return last
}

// urgent says whether a change is shown without waiting for others: the conversation is closed.
func (t *topic) urgent(v sessionView) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !v.session.ClosedAt.IsZero() && !t.ended
}

// endOf says which place the end of a turn has in the feed, and whether it can be shown: its records are there, or nobody sends them.
func (t *topic) endOf(ctx context.Context, turn model.Turn, head store.Head) (place int64, ready bool, err error) {
	t.mu.Lock()
	place, seen := t.ends[turn.ID]
	t.mu.Unlock()
	if seen {
		return place, true, nil
	}
	if turn.Round == 0 {
		return head.Latest, true, nil // it never ran
	}
	ended, err := t.l.o.opts.Feed.Ended(ctx, t.session, turn.ID)
	if err != nil {
		return 0, false, err
	}
	if ended {
		head, err = t.l.o.opts.Feed.Head(ctx, t.session) // the one from before may be older than the end
		return head.Latest, err == nil, err
	}
	if !t.l.o.uploading(t.session) {
		return head.Latest, true, nil
	}
	since, held := t.showed.held[turn.ID]
	if !held {
		since = time.Now()
		t.showed.held[turn.ID] = since
	}
	return head.Latest, time.Since(since) >= t.l.opts.HoldEnds, nil
}

// publish sends the session object with a turn to all watchers, unless they have it.
func (t *topic) publish(v sessionView, turn *model.Turn, place int64, final bool) error {
	body, err := v.encode(turn)
	if err != nil || bytes.Equal(body, t.showed.body) {
		return err
	}
	t.showed.body, t.showed.at = body, time.Now()
	raw := feed.AppendSession(make([]byte, 0, len(body)+64), body)
	o := object{place: place, final: final, frame: outgoingFrame{kind: feed.FrameSession, size: len(raw), raw: raw}}

	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.watchers) > 1 {
		o.frame.raw, o.frame.shared = prepared(raw)
	}
	t.number++
	o.number = t.number
	kept := t.list[:0]
	for _, old := range t.list {
		if old.final {
			kept = append(kept, old)
		}
	}
	clear(t.list[len(kept):])
	t.list = append(kept, o)
	t.head = max(t.head, place)
	t.wake()
	return nil
}

// close notes that the conversation is over, once its feed says so too.
func (t *topic) close(v sessionView, head store.Head) {
	if v.session.ClosedAt.IsZero() || !head.Closed {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head = max(t.head, head.Latest)
	t.ended = true
	t.wake()
}

// after adds the session objects that a watcher is to be sent now.
func (o *objects) after(w *watcher, frames []outgoingFrame) []outgoingFrame {
	for _, next := range o.list {
		if next.number <= w.object {
			continue
		}
		if next.place > w.cursor {
			break
		}
		w.object = next.number
		frames = append(frames, next.frame)
	}
	return frames
}

// tidy forgets what all watchers have.
func (o *objects) tidy(watchers iter.Seq[*watcher]) {
	least := o.number
	for w := range watchers {
		least = min(least, w.object)
	}
	kept := o.list[:0]
	for _, old := range o.list {
		if old.number > least {
			kept = append(kept, old)
		}
	}
	clear(o.list[len(kept):])
	o.list = kept
	if len(o.ends) > mostEnds {
		clear(o.ends) // the feed has them
	}
}

// endOfTurn is what the record of the end of a turn begins with; see feed.AppendRecord.
var endOfTurn = []byte(`{"kind":"` + string(feed.KindPlatform) + `","source":"` + feed.SourceLifecycle + `","record_format":"` +
	feed.FormatLifecycle + `","record_type":"` + feed.TypeTurnEnded + `"`)

// noteEnds remembers where turns ended, and has the session looked at. The lock is held.
func (t *topic) noteEnds(records []store.Stored) {
	for _, r := range records {
		if !bytes.HasPrefix(r.JSON, endOfTurn) {
			continue
		}
		var record struct {
			TurnID string `json:"turn_id"`
		}
		if json.Unmarshal(r.JSON, &record) == nil && record.TurnID != "" {
			t.ends[record.TurnID] = r.Seq
			t.stirUp()
		}
	}
}

// snapshot gives a watcher its first frame, and from then on what changes. It refuses a cursor that the feed never gave.
func (t *topic) snapshot(ctx context.Context, w *watcher) ([]byte, error) {
	t.showing.Lock() // so that nothing older is shown to the watcher afterwards
	defer t.showing.Unlock()
	o := t.l.o
	v, err := o.viewSession(ctx, t.session)
	if err != nil {
		return nil, err
	}
	head, err := o.opts.Feed.Head(ctx, t.session)
	if err != nil {
		return nil, err
	}
	if w.cursor > head.Latest {
		return nil, beyond(w.cursor, head)
	}
	messages, err := o.pendingMessages(ctx, v.session)
	if err != nil {
		return nil, err
	}
	body, err := v.encode(current(v.session))
	if err != nil {
		return nil, err
	}
	if !t.showed.begun {
		t.showed = showed{begun: true, turn: v.lastEnded(), body: body, held: map[string]time.Time{}}
		t.close(v, head) // later it is closed when all watchers were shown that it is
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.head = max(t.head, head.Latest)
	w.earliest, w.object, w.delta = head.Earliest, t.number, t.deltas.number
	t.watchers[w] = struct{}{}
	return feed.AppendSnapshot(nil, head.Earliest, body, messages)
}

// forget takes a watcher out.
func (t *topic) forget(w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watchers, w)
}

// pendingMessages are those of a session that no runtime has begun with.
func (o *Office) pendingMessages(ctx context.Context, s model.Session) ([]feed.InboxMessage, error) {
	var ids []string
	for _, turn := range []*model.Turn{s.Turn, s.Pending} {
		if turn != nil && turn.Status == model.TurnPending {
			ids = append(ids, turn.Messages...)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	var messages []model.Message
	err := o.store.View(ctx, func(r store.Reader) (err error) {
		messages, err = r.Messages(s.ID, ids)
		return err
	})
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(messages))
	for _, m := range messages {
		keys = append(keys, receivedKey(m.ID))
	}
	places, err := o.opts.Feed.Placed(ctx, s.ID, keys)
	if err != nil {
		return nil, err
	}
	list := make([]feed.InboxMessage, 0, len(messages))
	for _, m := range messages {
		var place *int64
		if at, ok := places[receivedKey(m.ID)]; ok {
			place = &at
		}
		list = append(list, inbox(m, place))
	}
	return list, nil
}

// receivedKey is the key under which the feed has the record that a message was received.
func receivedKey(message string) string { return "received/" + message }
