package transcript

// This file has what the runtime is writing right now. Deltas come at once, records through the agent's disk and the office's: the record of
// a text often comes when the next text has begun, and a watcher who came late knows the end of a text without its beginning.

import (
	"strings"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// writing is what deltas told that no record has yet.
type writing struct {
	// text is the answer so far. late says that its beginning is not known.
	text string
	late bool
	// thought is the first line of what the runtime thinks.
	thought string
	// tokens that the answer has so far, 0 where they are not known.
	tokens int64
	// turn is whose deltas these are.
	turn string
	// running is the turn that ran already when the watcher came, until a text of it is complete: its first delta may be the middle of a text.
	running string
}

// mostLive bounds the text that is kept without a record: one that never comes may not fill the memory.
const mostLive = 1 << 20

// write takes a delta.
func (p *Printer) write(turn string, d feed.Delta) {
	w := &p.writing
	if turn != w.turn {
		*w = writing{turn: turn, running: w.running}
	}
	if d.OutputTokens != nil {
		w.tokens = *d.OutputTokens
	}
	if d.Text == nil {
		return
	}
	switch d.Kind {
	case feed.DeltaText:
		w.late = w.late || (w.text == "" && turn != "" && turn == w.running)
		w.text += *d.Text
		if len(w.text) > mostLive {
			w.text, w.late = w.text[len(w.text)-mostLive/2:], true
		}
		w.thought = ""
	case feed.DeltaThinking:
		w.thought = *d.Text
	}
}

// joins forgets what was being written, where a watcher comes while the session's turn may run already.
func (w *writing) joins(s *feed.Session) {
	*w = writing{}
	if s.Turn != nil && s.Turn.Status == feed.TurnStatusRunning {
		w.running = s.Turn.ID
	}
}

// wrote takes the text of a record out of what is live: it is final. What goes on behind it stays.
func (w *writing) wrote(text string) {
	w.thought, w.tokens = "", 0
	switch {
	case strings.HasPrefix(w.text, text):
		w.text = w.text[len(text):]
	case strings.HasPrefix(text, w.text):
		w.text = ""
	default:
		// The beginning was missed, or something in between: what is live goes on where the record's text ends.
		w.text = w.text[overlap(text, w.text):]
		if !w.late {
			w.text = ""
		}
	}
	w.late, w.running = false, ""
	w.text = strings.TrimLeft(w.text, "\n")
}

// overlap is the length of the longest end of before that next begins with.
func overlap(before, next string) int {
	for n := min(len(before), len(next)); n > 0; n-- {
		if before[len(before)-n:] == next[:n] {
			return n
		}
	}
	return 0
}

// liveEntries are the lines of what is being written.
func (p *Printer) liveEntries() []entry {
	var entries []entry
	if text := strings.TrimLeft(p.text, "\n"); strings.TrimSpace(text) != "" {
		if p.late {
			text = "… " + text
		}
		entries = append(entries, entry{partText, p.proseOf(text)})
	}
	if p.thought != "" {
		entries = append(entries, entry{partThinking, p.thoughtOf(p.thought)})
	}
	if l := p.waiting(); l != nil {
		entries = append(entries, entry{partEnvironment, []line{l}})
	}
	if p.tokens > 0 && len(entries) > 0 {
		entries = append(entries, entry{partNote, []line{{{dim, "(" + count(p.tokens) + " tokens)"}}}})
	}
	return entries
}

// proseOf is a text of the runtime.
func (p *Printer) proseOf(text string) []line {
	text = strings.TrimRight(clean(text), "\n ")
	var lines []line
	for _, l := range wrap(text, p.textColumns()) {
		lines = append(lines, line{{plainStyle, l}})
	}
	return lines
}

// thoughtOf is a thought: one line of it, without the marks that make it a heading.
func (p *Printer) thoughtOf(text string) []line {
	first, _, _ := strings.Cut(strings.TrimSpace(clean(text)), "\n")
	if first = strings.Trim(first, "* "); first == "" {
		return nil
	}
	return []line{{{dim, cut("∴ "+first, p.textColumns())}}}
}
