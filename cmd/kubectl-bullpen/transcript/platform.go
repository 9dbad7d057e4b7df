package transcript

// This file shows the platform's own events: messages, the environment's preparation, turns.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// platform shows an event of the platform. Where its payload does not fit, it is shown as something unknown.
func (p *Printer) platform(r *feed.Record) []entry {
	switch r.Type {
	case feed.TypeMessageReceived:
		return read(p, r, p.received)
	case feed.TypeMessageDelivered:
		return nil
	case feed.TypeMessageRequeued:
		return read(p, r, p.requeued)
	case feed.TypeEnvironmentPhase:
		return read(p, r, p.phase)
	case feed.TypeEnvironmentOutput:
		return read(p, r, p.output)
	case feed.TypeEnvironmentReady:
		return read(p, r, func(_ *feed.Record, m feed.EnvironmentReady) []entry {
			words := []string{"ready"}
			if took := ms(m.DurationMS); took != "" {
				words = append(words, "in "+took)
			}
			if len(m.Repositories) > 0 {
				words = append(words, "with "+strings.Join(m.Repositories, ", "))
			}
			return append(p.closeStep(false), entry{partEnvironment, p.wrapped(dim, "  ", "  ", clean(strings.Join(words, " ")))})
		})
	case feed.TypeTurnStarted:
		return read(p, r, p.turnStarted)
	case feed.TypeTurnEnded:
		return read(p, r, p.turnEnded)
	case feed.TypeSessionClosed:
		return append(p.closeStep(false), p.note(dim, "The session was closed.")...)
	}
	return p.other(r)
}

// read shows a record by what its payload says, or as something unknown where that cannot be read.
func read[T any](p *Printer, r *feed.Record, show func(*feed.Record, T) []entry) []entry {
	payload, err := feed.Decode[T](r.Payload)
	if err != nil {
		return p.unknown(r)
	}
	return show(r, payload)
}

// note is a line about what happens.
func (p *Printer) note(s style, text string) []entry {
	return []entry{{partNote, p.wrapped(s, "· ", "  ", clean(text))}}
}

// received shows a message. Runtimes repeat it later, which is not shown again.
func (p *Printer) received(r *feed.Record, m feed.MessageReceived) []entry {
	author := cmp.Or(clean(oneLine(deref(m.Author))), "somebody")
	p.told[m.MessageID] = author
	if m.TurnID != nil {
		p.askers[*m.TurnID] = append(p.askers[*m.TurnID], author)
	}
	suffix := ""
	if m.ClosesSession {
		suffix = ", as the last message"
	}
	return []entry{{partMessage, p.message(author+suffix, m.Body, r.CreatedAt)}}
}

// message is what somebody says.
func (p *Printer) message(who, body string, at time.Time) []line {
	return append([]line{{{cyan, "▷ "}, {bold, who}, {dim, " " + p.at(at)}}}, p.prose(body)...)
}

// prose is what people wrote, or wrote for people, a little to the right.
func (p *Printer) prose(body string) []line {
	var lines []line
	rows := wrap(strings.TrimSpace(clean(body)), p.inside(2))
	more := 0
	if !p.o.Full && len(rows) > messageLines+1 {
		rows, more = rows[:messageLines], len(rows)-messageLines
	}
	for _, row := range rows {
		lines = append(lines, line{{plainStyle, strings.TrimRight("  "+row, " ")}})
	}
	if more > 0 {
		lines = append(lines, line{{dim, "  " + moreLines(more)}})
	}
	return lines
}

// requeued says that a message waits for another turn.
func (p *Printer) requeued(_ *feed.Record, m feed.MessageRequeued) []entry {
	whose := "a message"
	if author, ok := p.told[m.MessageID]; ok {
		whose = "the message of " + author
		if m.RequeuedTurnID != nil {
			p.askers[*m.RequeuedTurnID] = append(p.askers[*m.RequeuedTurnID], author)
		}
	}
	return p.note(yellow, "The turn ended before "+whose+" was answered; it waits for the next turn.")
}

func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// turnStarted draws a line above the turn.
func (p *Printer) turnStarted(r *feed.Record, m feed.TurnStarted) []entry {
	title := "Turn " + count(m.TurnIndex+1)
	if names := p.askers[m.TurnID]; len(names) > 0 {
		title += ", asked by " + strings.Join(unique(names), ", ")
	}
	return append(p.closeStep(false), entry{partRule, []line{p.rule(title, p.at(r.CreatedAt))}})
}

// rule is a line across the transcript with a title.
func (p *Printer) rule(title, at string) line {
	title = cut(title, max(0, p.inside(12)))
	rest := 3
	if p.o.Width > 0 {
		rest = max(rest, min(p.textColumns(), 100)-columns(title)-columns(at)-6)
	}
	return line{{dim, "── "}, {bold, title}, {dim, " " + at + " " + strings.Repeat("─", rest)}}
}

// turnEnded says how the turn ended.
func (p *Printer) turnEnded(_ *feed.Record, m feed.TurnEnded) []entry {
	if p.turn == m.TurnID {
		p.writing = writing{}
	}
	delete(p.askers, m.TurnID)
	p.turns++
	text, s := "Turn "+count(m.TurnIndex+1)+" "+clean(m.Status), red
	switch m.Status {
	case feed.TurnStatusCompleted:
		s = green
	case feed.TurnStatusStopped, feed.TurnStatusCancelled:
		s = yellow
	}
	if reason := deref(m.Reason); reason != "" {
		text += " (" + clean(reason) + ")"
	}
	if m.DurationMS != nil {
		p.worked += time.Duration(*m.DurationMS) * time.Millisecond
		text += " after " + ms(m.DurationMS)
	}
	entries := append(p.closeStep(false), entry{partRule, p.wrapped(s, "", "", text)})
	if detail := deref(m.Detail); detail != "" {
		entries = append(entries, entry{partResult, p.prose(detail)})
	}
	return entries
}

// preparing is the step of the environment's preparation that runs.
type preparing struct {
	// title names the step; empty while none runs. told says that the title was written.
	title string
	told  bool
	// written counts the lines of its output that were shown, more those that were not, of which tail has the last.
	written, more int
	tail          []string
}

// titleOf names a step.
func titleOf(phase string, step *string) string {
	return clean(oneLine(strings.TrimSpace(phase + " " + deref(step))))
}

// phase shows a step that started or ended. One without output is one line.
func (p *Printer) phase(_ *feed.Record, m feed.EnvironmentPhase) []entry {
	title := titleOf(m.Phase, m.Step)
	var entries []entry
	if title != p.title {
		entries = p.closeStep(false)
		p.preparing = preparing{title: title}
	}
	if m.Status == feed.PhaseStarted {
		return entries
	}
	failed := m.Status == feed.PhaseFailed
	told := p.preparing.told
	entries = append(entries, p.closeStep(failed)...)
	words := []string{clean(m.Status)}
	if m.Status == feed.PhaseCompleted {
		words = nil
	}
	words = append(words, ms(m.DurationMS), p.detail(m.Detail))
	text := joined(words)
	s := dim
	if failed {
		s = red
	}
	switch {
	case !told:
		entries = append(entries, entry{partEnvironment, []line{{{plainStyle, cut(title, p.textColumns())}, {s, spaced(text)}}}})
	case text != "":
		entries = append(entries, entry{partEnvironment, p.wrapped(s, "  ", "  ", text)})
	}
	return entries
}

func spaced(text string) string {
	if text == "" {
		return ""
	}
	return "  " + text
}

// detail shows what a step says of itself: a text, or names and values.
func (p *Printer) detail(detail map[string]any) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(detail)) {
		value, ok := detail[key].(string)
		if !ok {
			text, err := json.Marshal(detail[key])
			if err != nil {
				continue
			}
			value = string(text)
		}
		if value = oneLine(clean(value)); value != "" && value != "null" {
			words = append(words, clean(key)+": "+cut(value, 120))
		}
	}
	return strings.Join(words, ", ")
}

// output shows the first lines that a step prints.
func (p *Printer) output(_ *feed.Record, m feed.EnvironmentOutput) []entry {
	title := titleOf(m.Phase, m.Step)
	var entries []entry
	if title != p.title {
		entries = p.closeStep(false)
		p.preparing = preparing{title: title}
	}
	e := &p.preparing
	var lines []line
	for _, text := range m.Lines {
		for l := range strings.SplitSeq(clean(text), "\n") {
			if p.o.Full || e.written < resultLines {
				e.written++
				lines = append(lines, p.outputLine(l))
				continue
			}
			e.more++
			e.tail = append(e.tail, l)
			e.tail = e.tail[max(0, len(e.tail)-resultLines):]
		}
	}
	if len(lines) == 0 {
		return entries
	}
	if !e.told {
		e.told = true
		lines = append([]line{{{plainStyle, cut(title, p.textColumns())}}}, lines...)
	}
	return append(entries, entry{partEnvironment, lines})
}

func (p *Printer) outputLine(l string) line { return line{{dim, "  │ "}, {dim, cut(l, p.inside(4))}} }

// closeStep ends the step that runs: the lines that were not shown are counted, or where it failed, the last of them are shown.
func (p *Printer) closeStep(failed bool) []entry {
	e := p.preparing
	p.preparing = preparing{}
	if e.title == "" || e.more == 0 {
		return nil
	}
	var lines []line
	if failed {
		e.more -= len(e.tail)
	}
	if e.more > 0 {
		lines = append(lines, line{{dim, "  " + moreLines(e.more)}})
	}
	if failed {
		for _, l := range e.tail {
			lines = append(lines, p.outputLine(l))
		}
	}
	return []entry{{partEnvironment, lines}}
}

// waiting is the step that runs, as long as nothing stands there of it.
func (p *Printer) waiting() line {
	switch e := p.preparing; {
	case e.title == "":
		return nil
	case len(e.tail) > 0:
		return line{{dim, cut(fmt.Sprintf("  … %s", e.tail[len(e.tail)-1]), p.textColumns())}}
	case !e.told:
		return line{{dim, cut(e.title+" …", p.textColumns())}}
	}
	return nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
