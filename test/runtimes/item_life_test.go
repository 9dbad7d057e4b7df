package runtimes

// This file ends agents and conversations in the middle of an item: nothing may be lost, or counted twice, and the item goes on.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

func isTerminatedAndGoesOn(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	began := modelstub.Usage{Input: 500, CacheCreation: 30, Output: 20}
	cut := modelstub.Usage{Input: 90, CacheRead: 5, Output: 60}
	ended := modelstub.Usage{Input: 33, CacheRead: 600, Output: 6}
	w := newWorld(t, k,
		modelstub.Step{Text: "First I paint it.", Tools: []modelstub.ToolCall{k.command(t, paint)}, Usage: began},
		modelstub.Step{Text: "Now comes a long story that is not told to its end.", Gate: gate, Usage: cut},
		modelstub.Step{Text: "The shed is red.", Usage: ended},
	)
	w.ask()
	v := w.watch()
	w.startAgent()
	w.reached(gate)
	v.await("the story's beginning", func(frames []feed.Frame) bool { return delta(frames, feed.DeltaText, "Now comes") >= 0 })
	w.terminate()
	v.await("the end of the turn", func(frames []feed.Frame) bool {
		return sessionFrame(frames, func(s feed.Session) bool { return s.Turn != nil && s.Turn.Index == 1 }) >= 0 ||
			sessionFrame(frames, turnEnded(0, feed.TurnStatusCancelled)) >= 0
	})
	if it := w.item(); it.State != protocol.StateQueued || it.Failures != 0 || it.LostRounds != 0 {
		t.Errorf("after the interruption the item is %+v", it)
	}

	w.reincarnate()
	w.startAgent()
	w.until("the item is done", func() bool { return w.item().State == protocol.StateDone })
	records := w.records()
	want := slices.Concat(first, []string{"turn_ended cancelled interrupted", "message_requeued"}, later, []string{"turn_ended completed"})
	if diff := cmp.Diff(want, w.shape(records)); diff != "" {
		t.Error(diff)
	}
	if rounds := w.item().Rounds; rounds != 2 {
		t.Errorf("the item had %d rounds", rounds)
	}
	w.wentOn(records)
	w.queuedAgain(records)
	w.usedExactly(began, k.cut(cut), ended)
	w.kept(records, v)
}

// wentOn checks that the item's work went on where it was cut short.
func (w *world) wentOn(records []feed.Record) {
	w.t.Helper()
	if it := w.item(); it.Failures != 0 || it.Summary != "The shed is red." {
		w.t.Errorf("the item is %+v", it)
	}
	for _, text := range []string{"First I paint it.", "The shed is red."} {
		if n := w.times(records, text); n != 1 {
			w.t.Errorf("%d records say %q", n, text)
		}
	}
	asked := string(w.model.Answered()[2].Body)
	for _, words := range []string{itemBody, "First I paint it.", "cut short"} {
		if !strings.Contains(asked, words) {
			w.t.Errorf("the model was not told: %s", words)
		}
	}
	w.pushed()
}

// queuedAgain checks that the item's message went from the first turn, which was cut short, to the second one.
func (w *world) queuedAgain(records []feed.Record) {
	w.t.Helper()
	at, end := slices.IndexFunc(records, ofType(feed.TypeMessageRequeued)), slices.IndexFunc(records, ofType(feed.TypeTurnEnded))
	if at < 0 || end < 0 {
		w.t.Fatal("no turn ended, or no message was queued again")
	}
	requeued, err := feed.Decode[feed.MessageRequeued](records[at].Payload)
	must(w.t, err)
	turn := w.session().Turn
	if requeued.MessageID != *records[0].MessageID || requeued.TurnID != *records[end].TurnID || requeued.RequeuedTurnID == nil ||
		*requeued.RequeuedTurnID != turn.ID || *records[at].TurnID != turn.ID || turn.Index != 1 {
		w.t.Errorf("queued again: %+v, in the turn %s", requeued, *records[at].TurnID)
	}
}

func isKilledAndGoesOn(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	began := modelstub.Usage{Input: 500, CacheCreation: 30, Output: 20}
	cut := modelstub.Usage{Input: 90, CacheRead: 5, Output: 60}
	ended := modelstub.Usage{Input: 33, CacheRead: 600, Output: 6}
	w := newWorld(t, k,
		modelstub.Step{Text: "First I paint it.", Tools: []modelstub.ToolCall{k.command(t, paint)}, Usage: began},
		modelstub.Step{Text: "Now comes a long story that is not told to its end.", Gate: gate, Usage: cut},
		modelstub.Step{Text: "The shed is red.", Usage: ended},
	)
	w.ask()
	v := w.watch()
	w.startAgent()
	w.reached(gate)
	v.await("the story's beginning", func(frames []feed.Frame) bool { return delta(frames, feed.DeltaText, "Now comes") >= 0 })
	w.kill()
	w.reincarnate()
	w.startAgent()
	w.until("the item is done", func() bool { return w.item().State == protocol.StateDone })
	records := w.records()
	// The round goes on in its turn: the office counts that its program died, and gives it up when that happens too often.
	again := slices.DeleteFunc(slices.Clone(later), func(word string) bool {
		return word == feed.TypeTurnStarted || word == feed.TypeMessageDelivered
	})
	if diff := cmp.Diff(slices.Concat(first, again, []string{"turn_ended completed"}), w.shape(records)); diff != "" {
		t.Error(diff)
	}
	if it := w.item(); it.Rounds != 1 || it.LostRounds != 1 {
		t.Errorf("the item is %+v", it)
	}
	w.wentOn(records)
	w.usedExactly(began, k.cut(cut), ended)
	w.kept(records, v)
}

func startsALostSessionAnew(t *testing.T, k kit) {
	one := modelstub.Usage{Input: 70, Output: 9}
	two := modelstub.Usage{Input: 80, Output: 4}
	w := newWorld(t, k,
		modelstub.Step{Text: "It is red.", Usage: one,
			Tools: []modelstub.ToolCall{k.command(t, paint+` && ost journal "Painted it with two coats."`)}},
		modelstub.Step{Text: "The shed is red."},
		modelstub.Step{Text: "It stays red.", Usage: two},
	)
	w.ask()
	w.startAgent()
	w.until("the first round's end", func() bool { return w.item().State == protocol.StateDone })
	before := w.item().SessionID
	kept := filepath.Join(w.home, k.conversations)
	if entries, err := os.ReadDir(kept); err != nil || len(entries) == 0 {
		t.Fatalf("the runtime keeps no conversations in %s: %v", kept, err)
	}
	must(t, os.RemoveAll(kept))
	said := w.say("Which colour does it have now?")
	w.until("the second round's end", func() bool { it := w.item(); return it.State == protocol.StateDone && it.Rounds == 2 })

	it := w.item()
	if it.SessionID == before || it.Summary != "It stays red." || it.Failures != 0 {
		t.Errorf("the runtime's session was %s, and the item is %+v", before, it)
	}
	if !slices.ContainsFunc(w.journal(), func(s string) bool { return strings.Contains(s, "is lost") && strings.Contains(s, before) }) {
		t.Errorf("the journal does not say that the session was lost: %q", w.journal())
	}
	asked := string(w.model.Answered()[2].Body)
	for _, words := range []string{itemBody, "Painted it with two coats.", "Which colour does it have now?"} {
		if !strings.Contains(asked, words) {
			t.Errorf("the model was not told: %s", words)
		}
	}
	if echoes := w.echoes(w.records(), w.session().Turn.ID); !slices.Contains(echoes, said) {
		t.Errorf("the runtime's echoes are of %q, not of %s", echoes, said)
	}
	w.usedExactly(one, two)
}

func pausesAtALimit(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	one := modelstub.Usage{Input: 70, Output: 9}
	two := modelstub.Usage{Input: 80, Output: 4}
	w := newWorld(t, k, modelstub.Step{Text: "First I look at it.", Gate: gate, Usage: one, Tools: []modelstub.ToolCall{k.command(t, "true")}})
	w.ask()
	w.startAgent()
	w.reached(gate)
	resets := time.Now().Add(10 * time.Second).Truncate(time.Second)
	w.model.Add(
		k.limit(resets),
		modelstub.Step{Text: "On it goes.", Tools: []modelstub.ToolCall{k.command(t, paint)}},
		modelstub.Step{Text: "The shed is red.", Usage: two},
	)
	gate.Open()

	w.until("the person is paused", func() bool {
		p, err := w.office.Person(t.Context(), thePerson)
		must(t, err)
		return p.State == model.PersonPaused
	})
	p, err := w.office.Person(t.Context(), thePerson)
	must(t, err)
	w.until("the round's end", func() bool { return w.item().State == protocol.StateQueued })
	it := w.item()
	if !p.PausedUntil.Equal(resets) || p.PausedBy != "five_hour" {
		t.Errorf("the person is paused by %s until %s, not until %s", p.PausedBy, p.PausedUntil, resets)
	}
	if it.Failures != 0 || it.LostRounds != 0 || it.Rounds != 1 {
		t.Errorf("the item is %+v", it)
	}
	w.until("the item is done", func() bool { return w.item().State == protocol.StateDone })
	records := w.records()
	want := slices.Concat(first, []string{"turn_ended cancelled interrupted", "message_requeued"}, later, []string{"turn_ended completed"})
	if diff := cmp.Diff(want, w.shape(records)); diff != "" {
		t.Error(diff)
	}
	second := slices.IndexFunc(records, func(r feed.Record) bool { return r.Type == feed.TypeTurnStarted && *r.TurnID == w.session().Turn.ID })
	if second < 0 || records[second].CreatedAt.Before(resets) {
		t.Errorf("the second turn began before %s", resets)
	}
	if it := w.item(); it.Offers != 2 || it.Failures != 0 || it.Summary != "The shed is red." {
		t.Errorf("the item is %+v", it)
	}
	w.usedExactly(one, two)
}
