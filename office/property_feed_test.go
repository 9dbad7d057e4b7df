package office_test

// This file has the random agents of property_test.go upload the records of their rounds, late, twice and from anywhere, while people say
// something. Whatever happens: places have no gap, each message was received once and is answered in the end, each round that was accepted
// has one turn, and each turn's records stand between its messages and its end.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"pgregory.net/rapid"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// spooled is the records of one round, as its agent keeps them.
type spooled struct {
	item, person, offer string
	entries             []feed.Entry
	// over says that its round was handed back; ended that the end of its turn is among the entries.
	over, ended bool
}

// spool gives the spool of the round that an agent runs.
func (w *world) spool(a *actor, item string) *spooled {
	it := w.b.itemByID(item)
	number := it.Offers
	if it.Round == nil { // it was canceled
		number = max(1, number)
	}
	offer := model.OfferID(item, number)
	if w.spools[offer] == nil {
		s := &spooled{item: item, person: a.handle, offer: offer}
		s.add(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeTurnStarted, `{}`)
		s.add(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeMessageDelivered, `{}`)
		w.spools[offer] = s
	}
	return w.spools[offer]
}

func (s *spooled) add(source, format, kind, payload string) {
	s.entries = append(s.entries, feed.Entry{
		Seq: int64(len(s.entries) + 1), Offer: s.offer, At: time.Now(),
		Source: source, Format: format, Type: kind, Payload: json.RawMessage(payload),
	})
}

func (w *world) upload(t *rapid.T) {
	a := w.some("uploads", func(a *actor) bool { return len(a.runs) > 0 })
	s := w.spool(a, rapid.SampledFrom(a.runs).Draw(t, "item"))
	if s.person != a.handle {
		t.Skip("the item was canceled, and is not its own any more")
	}
	for range rapid.IntRange(0, 3).Draw(t, "outputs") {
		s.add(feed.SourceCommand, feed.FormatCommand, "stdout", fmt.Sprintf(`{"n":%d}`, len(s.entries)))
	}
	w.bring(s)
}

func (w *world) uploadLate(t *rapid.T) {
	if left := w.left(); len(left) > 0 {
		w.bring(rapid.SampledFrom(left).Draw(t, "spool"))
		return
	}
	t.Skip("nothing is left")
}

// left are the spools whose ends the office was not told.
func (w *world) left() (list []*spooled) {
	for _, s := range w.spools {
		if s.over && !s.ended {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *spooled) int {
		return slices.Compare([]string{a.item, a.offer}, []string{b.item, b.offer})
	})
	return list
}

// bring uploads a spool, from an entry that the office may have, and waits until all of it is stored.
func (w *world) bring(s *spooled) {
	if s.over && !s.ended {
		s.ended = true
		s.add(feed.SourceLifecycle, feed.FormatLifecycle, feed.TypeTurnEnded, `{"status":"completed"}`)
	}
	ws, _, err := w.b.dialUpload(s.item, s.person, "spool-"+s.offer+"&offer="+s.offer, "token-"+s.person)
	if err != nil {
		w.t.Fatalf("the upload of %s is refused: %v", s.offer, err)
	}
	defer ws.Close() //nolint:errcheck // it is over
	var ready feed.Ready
	w.frame(ws, &ready)
	from := rapid.Int64Range(0, min(ready.Seq, int64(len(s.entries)-1))).Draw(w.t, "from")
	if err := ws.WriteMessage(websocket.TextMessage, feedtest.Upload(s.entries[from:]...)); err != nil {
		w.t.Fatal(err)
	}
	var stored feed.Stored
	for stored.Seq < int64(len(s.entries)) {
		w.frame(ws, &stored)
	}
}

func (w *world) frame(ws *websocket.Conn, into any) {
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	if err := ws.ReadJSON(into); err != nil {
		w.t.Fatalf("the office did not take an upload: %v", err)
	}
}

func (w *world) say(t *rapid.T) {
	if len(w.items) == 0 {
		t.Skip("there is nothing to speak about")
	}
	id := rapid.SampledFrom(w.items).Draw(t, "item")
	if w.canceled[id] || w.b.itemByID(id).State == protocol.StateBlocked || w.said >= 5 {
		t.Skip("enough was said")
	}
	w.said++
	body := fmt.Sprintf(`{"body":"word %d"}`, w.said)
	got := w.b.ask(tokenAll, http.MethodPost, "/v1/sessions/"+id+"/messages", body, "Content-Type", "application/json")
	if got.StatusCode != http.StatusCreated {
		t.Fatalf("the message about %s was answered with %d %s", id, got.StatusCode, got.body)
	}
}

// feeds brings what is left, and looks at the feed of each session.
func (w *world) feeds() {
	for _, s := range w.spools {
		s.over = true
	}
	for _, s := range w.left() {
		w.bring(s)
	}
	for _, id := range w.items {
		s := w.b.sessionOf(id)
		if s.ParentID != "" {
			w.t.Fatalf("%s got another session", id)
		}
		f := feedRead{w: w, s: s, at: map[string]string{}, began: map[string]bool{}, over: map[string]string{}}
		w.received(s)
		for _, r := range w.b.feedOf(s.ID) {
			f.record(r)
		}
		f.compare()
	}
}

// shown are the turns that a session remembers.
func shown(s model.Session) []model.Turn {
	list := slices.Clone(s.Past)
	if s.Turn != nil {
		list = append(list, *s.Turn)
	}
	return list
}

// received waits until the feed has the messages of a session: the office writes them a moment after they are durable.
func (w *world) received(s model.Session) {
	var keys []string
	for _, turn := range shown(s) {
		for _, m := range turn.Messages {
			if key := "received/" + m; !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	w.b.eventually("the messages of "+s.ID, func() bool {
		places, err := w.b.feed.Placed(w.b.t.Context(), s.ID, keys)
		w.b.must(err)
		return len(places) == len(keys)
	})
}

// feedRead is what a feed says.
type feedRead struct {
	w *world
	s model.Session
	// at are the turns of messages, as they moved; began and over the turns that did, over with their status.
	at    map[string]string
	began map[string]bool
	over  map[string]string
}

func (f *feedRead) record(r feed.Record) {
	wrong := func(what string) {
		f.w.t.Fatalf("record %d of %s, a %s: %s", r.FeedSeq, f.s.ID, r.Type, what)
	}
	if r.Type == feed.TypeSessionClosed {
		return
	}
	if r.TurnID == nil {
		wrong("it has no turn")
	}
	turn := *r.TurnID
	switch r.Type {
	case feed.TypeMessageReceived:
		if f.at[*r.MessageID] != "" {
			wrong("the message was received before")
		}
		f.at[*r.MessageID] = turn
	case feed.TypeMessageRequeued:
		var moved feed.MessageRequeued
		if err := json.Unmarshal(r.Payload, &moved); err != nil || f.at[*r.MessageID] != moved.TurnID {
			wrong("the message was not in the turn that it leaves")
		}
		f.at[*r.MessageID] = turn
	case feed.TypeTurnStarted:
		if f.began[turn] {
			wrong("the turn began before")
		}
		f.began[turn] = true
	case feed.TypeMessageDelivered:
		if !f.began[turn] || f.at[*r.MessageID] == "" {
			wrong("its turn did not begin, or its message was not received")
		}
	case feed.TypeTurnEnded:
		if f.over[turn] != "" || !f.began[turn] {
			wrong("the turn did not begin, or ended before")
		}
		var end feed.TurnEnded
		if err := json.Unmarshal(r.Payload, &end); err != nil || end.TurnID != turn {
			wrong("it is of another turn")
		}
		f.over[turn] = end.Status
	default:
		if !f.began[turn] || f.over[turn] != "" {
			wrong("its turn did not begin, or is over")
		}
	}
}

// compare holds the feed against the session and the rounds of its item.
func (f *feedRead) compare() {
	t := f.w.t
	if f.s.Pending != nil {
		t.Fatalf("%s has a turn that waits: %+v", f.s.ID, f.s.Pending)
	}
	turns, all := shown(f.s), len(f.s.Past) < model.MaxPast
	byID := map[string]model.Turn{}
	for _, turn := range turns {
		if _, twice := byID[turn.ID]; twice || !turn.Status.Final() {
			t.Fatalf("%s has a turn twice, or one that goes on: %+v", f.s.ID, turn)
		}
		if told, ok := f.over[turn.ID]; ok && told != string(turn.Status) {
			t.Fatalf("turn %s is %s, but ended as %s in the feed", turn.ID, turn.Status, told)
		}
		byID[turn.ID] = turn
	}
	if all && len(turns) < f.s.Turns {
		t.Fatalf("%s had %d turns, and knows %d", f.s.ID, f.s.Turns, len(turns))
	}
	for message, turn := range f.at {
		if last, ok := byID[turn]; all && !ok || ok && !slices.Contains(last.Messages, message) {
			t.Fatalf("message %s is in turn %s, which is %+v", message, turn, last)
		}
	}
	var rounds []model.Round
	if err := f.w.b.store.View(f.w.b.t.Context(), func(r storeReader) (err error) {
		rounds, err = r.Rounds(f.s.ItemID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for _, round := range rounds {
		if !round.Accepted() {
			continue
		}
		accepted++
		if f.s.OfRound(round.Number) == nil && all {
			t.Fatalf("round %d of %s has no turn", round.Number, f.s.ItemID)
		}
	}
	if ran := f.s.Turns - f.unrun(); accepted != ran {
		t.Fatalf("%s has %d turns that ran for %d rounds", f.s.ID, ran, accepted)
	}
}

// unrun is 1 where the last turn got no round.
func (f *feedRead) unrun() int {
	if f.s.Turn != nil && f.s.Turn.Round == 0 {
		return 1
	}
	return 0
}
