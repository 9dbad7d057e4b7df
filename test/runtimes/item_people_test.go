package runtimes

// This file is about people: what they say into a session, what they stop, and what they must not see.

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

// say speaks into the session, and gives the message's id.
func (w *world) say(body string) string {
	w.t.Helper()
	var m feed.InboxMessage
	must(w.t, json.Unmarshal(w.http(201, "POST", "/messages", map[string]string{"body": body}), &m))
	return m.ID
}

func keepsASecret(t *testing.T, k kit) {
	const secret = "sw0rdf1sh-and-9-lives"
	w := newWorld(t, k)
	file := filepath.Join(w.secrets, "password")
	write(t, file, secret+"\n")
	tell := fmt.Sprintf(`cat %[1]s; ost journal "It is $(cat %[1]s)."; ost progress "Is it $(cat %[1]s)?"`, file)
	w.model.Add(
		modelstub.Step{Thinking: "Is it " + secret + " or not?", Text: "I look whether it is " + secret + " indeed, or not.",
			Tools: []modelstub.ToolCall{k.command(t, tell)}},
		modelstub.Step{Text: "The password is " + secret + ", so remember " + secret + "."},
	)
	w.ask()
	v := w.watch()
	w.startAgent()
	frames := v.await("the end of the turn", func(frames []feed.Frame) bool {
		return sessionFrame(frames, turnEnded(0, feed.TurnStatusCompleted)) >= 0
	})

	if asked := string(w.model.Answered()[1].Body); !strings.Contains(asked, secret) {
		t.Errorf("the tool did not print the secret: %s", tail(asked, 2000))
	}
	if journal := w.journal(); len(journal) == 0 || !strings.HasPrefix(journal[0], "ada: It is ") {
		t.Errorf("the journal says %q", journal)
	}
	if !strings.HasPrefix(w.item().Summary, "The password is ") && !strings.Contains(w.item().Summary, "\nThe password is ") {
		t.Errorf("the hand-back says %q", w.item().Summary)
	}
	if at := delta(frames, feed.DeltaText, "I look whether it is "); at < 0 {
		t.Error("people did not see the text around the secret while it was written")
	}
	// A part of it would do to find out that it got out.
	part := secret[:7]
	var shown strings.Builder
	for _, f := range frames {
		if d, ok := f.(feed.DeltaFrame); ok && d.Text != nil {
			shown.WriteString(*d.Text)
		}
	}
	v.mu.Lock()
	texts := map[string]string{
		"frames of the stream": strings.Join(v.raw, "\n"), "deltas": shown.String(),
		"the agent's log": w.agentLogs.String(), "the office's log": w.officeLog.String(),
		"the records": string(w.http(200, "GET", "/records?limit=1000", nil)), "the session object": string(w.http(200, "GET", "", nil)),
	}
	v.mu.Unlock()
	must(t, filepath.WalkDir(w.folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			data, err := os.ReadFile(path)
			texts[path] = string(data)
			return err
		}
		return err
	}))
	for where, text := range texts {
		if at := strings.Index(text, part); at >= 0 {
			t.Errorf("%s: the secret is in it: %q", where, text[max(0, at-200):min(len(text), at+60)])
		}
	}
}

func answersAndStops(t *testing.T, k kit) {
	gate := modelstub.NewGate()
	asks := `printf '{"status":"waiting","summary":"Which colour?"}' > "$BULLPEN_RESULT_FILE"`
	one, cut, last := modelstub.Usage{Input: 70, Output: 9}, modelstub.Usage{Input: 90, Output: 40}, modelstub.Usage{Input: 5, Output: 2}
	w := newWorld(t, k,
		modelstub.Step{Text: "I have to ask.", Tools: []modelstub.ToolCall{k.command(t, asks)}, Usage: one},
		modelstub.Step{Text: "I wait."},
		modelstub.Step{Text: "So be it.", Tools: []modelstub.ToolCall{k.command(t, paint)}},
		modelstub.Step{Text: "The shed is red."},
		modelstub.Step{Text: "Once upon a time there was a shed that nobody painted.", Gate: gate, Usage: cut},
		modelstub.Step{Text: "Fine, no story.", Usage: last},
	)
	w.ask()
	v := w.watch()
	w.startAgent()
	w.until("the item waits", func() bool { return w.item().State == protocol.StateWaiting })
	if it := w.item(); it.Summary != "Which colour?" {
		t.Errorf("the hand-back says %q", it.Summary)
	}

	answer := w.say("Red, please.")
	w.until("the answer was worked", func() bool { return w.item().State == protocol.StateDone })
	if echoes := w.echoes(w.records(), w.session().Turn.ID); !slices.Equal(echoes, []string{answer}) {
		t.Errorf("the second turn repeats %q, not %s", echoes, answer)
	}
	if asked := string(w.model.Answered()[2].Body); !strings.Contains(asked, "Red, please.") || !strings.Contains(asked, "I wait.") {
		t.Errorf("the model was not told the answer, or has forgotten the question: %s", tail(asked, 3000))
	}

	w.say("Now tell me a story.")
	w.reached(gate)
	v.await("the story's beginning", func(frames []feed.Frame) bool { return delta(frames, feed.DeltaText, "Once upon") >= 0 })
	w.http(202, "POST", "/stop", nil)
	w.stopped(v)

	w.say("No story, please.")
	w.until("the last turn's end", func() bool { it := w.item(); return it.State == protocol.StateDone && it.Rounds == 4 })
	if asked := string(w.model.Answered()[5].Body); !strings.Contains(asked, "No story, please.") || !strings.Contains(asked, "I wait.") {
		t.Errorf("the model was not told, or has forgotten: %s", tail(asked, 3000))
	}
	records := w.records()
	var ends []string
	for _, word := range w.shape(records) {
		if strings.HasPrefix(word, "turn_ended") {
			ends = append(ends, word)
		}
	}
	want := []string{"turn_ended completed", "turn_ended completed", "turn_ended stopped", "turn_ended completed"}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Error(diff)
	}
	w.kept(records, v)
	w.usedExactly(one, k.cut(cut), last)
}

// stopped waits for what a stop of the third turn does.
func (w *world) stopped(v *watcher) {
	w.t.Helper()
	frames := v.await("the stop", func(frames []feed.Frame) bool { return sessionFrame(frames, turnEnded(2, feed.TurnStatusStopped)) >= 0 })
	stop := sessionFrame(frames, turnEnded(2, feed.TurnStatusStopped))
	if s := frames[stop].(feed.SessionFrame).Session; s.Turn.Stopped == nil || s.Turn.Reason != nil || s.Metadata["stopped_by"] != "grace" {
		w.t.Errorf("the stopped turn is %+v", s.Turn)
	}
	told := record(frames, func(r feed.Record) bool {
		return r.Type == feed.TypeTurnEnded && strings.Contains(string(r.Payload), `"stopped"`)
	})
	if told < 0 || told > stop {
		w.t.Error("the session showed the stop before its records")
	}
	w.until("the runtime's end", func() bool { return len(processesIn(w.t, w.home)) == 1 })
	if state := w.item().State; state != protocol.StateWaiting {
		w.t.Errorf("the item is %s after the stop", state)
	}
}
