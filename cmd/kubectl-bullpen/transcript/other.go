package transcript

// This file shows what has no typed schema: what a program of the command runtime says, and what nobody knows. And rate limits, which every
// runtime tells of in its own way.

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// other shows a record of a format that has no schema. What has lines is output.
func (p *Printer) other(r *feed.Record) []entry {
	if r.Source == feed.SourceCommand && r.Type == "result" {
		return read(p, r, p.commandResult)
	}
	said, err := feed.Decode[struct {
		Lines   []string `json:"lines"`
		Count   int64    `json:"count"`
		Omitted int64    `json:"omitted_bytes"`
	}](r.Payload)
	switch {
	case err != nil:
		return p.unknown(r)
	case len(said.Lines) > 0:
		s := plainStyle
		if r.Type == feed.Stderr {
			s = yellow
		}
		var lines []line
		for _, text := range said.Lines {
			for _, l := range wrap(clean(text), p.textColumns()) {
				lines = append(lines, line{{s, l}})
			}
		}
		return []entry{{partOutput, lines}}
	case r.Type == "records_dropped":
		return p.note(yellow, count(said.Count)+" records are missing here: the agent's disk was full.")
	case said.Omitted > 0:
		return p.note(yellow, "A record of "+count(said.Omitted)+" bytes is missing here ("+oneLine(r.Source+": "+r.Type)+"): it was too large.")
	}
	return p.unknown(r)
}

// commandOutcome is how a program of the command runtime ended, and what it says of its work.
type commandOutcome struct {
	Exit   string `json:"exit"`
	Result *struct {
		Status  string `json:"status"`
		Summary string `json:"summary"`
	} `json:"result"`
	Unusable *string `json:"unusable"`
}

func (p *Printer) commandResult(_ *feed.Record, m commandOutcome) []entry {
	words := []string{"The program ended: " + cmp.Or(m.Exit, "?")}
	if m.Result != nil {
		words = append(words, m.Result.Status, m.Result.Summary)
	}
	entries := p.note(dim, joined(words))
	if m.Unusable != nil {
		entries = append(entries, p.note(yellow, "What it left as its result cannot be read: "+oneLine(*m.Unusable))...)
	}
	return entries
}

// quiet shows something that says little to people, only where all is to be shown.
func (p *Printer) quiet(r *feed.Record, what string) []entry {
	if !p.o.Full {
		return nil
	}
	return p.note(dim, clean(oneLine(r.Source+": "+what)))
}

// unknown shows that there is a record that nobody can read, and what text it has.
func (p *Printer) unknown(r *feed.Record) []entry {
	words := []string{oneLine(r.Source + ": " + r.Type)}
	if said, err := feed.Decode[struct{ Text, Line, Message string }](r.Payload); err == nil {
		words = append(words, oneLine(cmp.Or(said.Text, said.Line, said.Message)))
	}
	return []entry{{partNote, []line{{{dim, cut(clean("· "+joined(words)), p.textColumns())}}}}}
}

// limit is how much of a rate limit is used. Used is a part of 1, resets are seconds since 1970.
type limit struct {
	name, status string
	used         *float64
	resets       *int64
}

// closeBy is from which use on a rate limit is worth a line.
const closeBy = 0.8

// limit shows a rate limit that refuses or is nearly used up, and when it no longer does; not each time that it is told.
func (p *Printer) limit(l limit) []entry {
	near := l.used != nil && *l.used >= closeBy
	allowed := strings.HasPrefix(l.status, "allowed") || l.status == ""
	state := "fine"
	switch {
	case !allowed:
		state = "refused"
	case near:
		state = "near"
	}
	before, known := p.limits[l.name]
	p.limits[l.name] = state
	if before == state || (!known && state == "fine") {
		if !p.o.Full {
			return nil
		}
	}
	text := "rate limit " + l.name
	if l.used != nil {
		text += fmt.Sprintf(": %.0f %% used", *l.used*100)
	}
	s := dim
	switch state {
	case "refused":
		text, s = text+", no more is allowed", red
	case "near":
		s = yellow
	}
	if l.resets != nil {
		text += ", resets at " + time.Unix(*l.resets, 0).In(p.o.Zone).Format("2006-01-02 15:04")
	}
	return p.note(s, text)
}
