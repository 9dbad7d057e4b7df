// Package transcript shows a session to people: events go in, lines for a terminal or a file come out.
//
// A Printer is given what a watcher of the session's stream receives, in the order in which it comes: records, deltas, session objects. It
// gives back what to write. Records are what stays. On a terminal, what the runtime is writing right now stands below them and is replaced
// when its record comes; elsewhere deltas show nothing, so that a file has everything once. The package reads no clock, no terminal and no
// network, and all text that it is given is cleaned of what a terminal would obey.
package transcript

import (
	"cmp"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// Options are how a transcript looks.
type Options struct {
	// Width and Height are the terminal's, in columns and rows. A Width of 0 breaks no lines.
	Width, Height int
	// Live shows what is being written, and replaces it: only where a terminal takes the output.
	Live bool
	// Color marks by colors, too.
	Color bool
	// Full shows results, outputs and messages whole, and events that say little.
	Full bool
	// Zone is that in which times are written; nil is UTC.
	Zone *time.Location
}

// How many lines of something are shown before the others are counted.
const (
	resultLines  = 5
	messageLines = 20
)

// Printer makes a transcript. It belongs to one goroutine.
type Printer struct {
	o      Options
	screen screen
	// last is what stands above: what comes next leaves a line empty, or not.
	last part
	// told are the messages that were shown, with their authors; askers have who asked for what a turn answers.
	told   map[string]string
	askers map[string][]string
	// calls are tools that run, by their id; lastCall is the one whose lines stand above.
	calls    map[string]call
	lastCall string
	preparing
	writing
	// limits have what was last said about each rate limit.
	limits  map[string]string
	session *feed.Session
	// turns and worked count those whose end was shown, and how long they ran.
	turns  int
	worked time.Duration
	// whole says that the transcript begins with the session.
	whole bool
}

// part is what kind of thing some lines are.
type part int

const (
	partNone part = iota
	partRule
	partMessage
	partEnvironment
	partText
	partThinking
	partTool
	partResult
	partOutput
	partNote
)

// entry is lines that belong together.
type entry struct {
	part  part
	lines []line
}

// New makes a printer of an empty transcript.
func New(o Options) *Printer {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	p := &Printer{
		o: o, told: map[string]string{}, askers: map[string][]string{}, calls: map[string]call{}, limits: map[string]string{},
	}
	p.Resize(o.Width, o.Height)
	return p
}

// Resize tells of the terminal's new size.
func (p *Printer) Resize(width, height int) {
	p.o.Width, p.o.Height = width, height
	p.screen.can = p.o.Live && width > 0
	p.screen.width, p.screen.height = width, height
	p.screen.note = p.paint(line{{dim, "(once more, whole)"}}).text
}

// Begin shows which session it is. After is the place after which records follow, 0 for the first; earliest is the first place that the
// feed still has, 0 where it has none.
func (p *Printer) Begin(s *feed.Session, earliest, after int64) string {
	p.session, p.whole = s, after == 0 && earliest <= 1
	p.joins(s)
	entries := []entry{{partNote, p.about(s)}}
	if earliest > after+1 {
		entries = append(entries, entry{partNote, []line{{{yellow, "! The records from " + count(after+1) + " to " + count(earliest-1) +
			" are not kept any more; what follows is not the whole session."}}}})
	}
	return p.keep(entries)
}

// Resumed tells that the stream was cut and goes on: what was being written is not known any more. What is missing by then is said, as in
// Begin.
func (p *Printer) Resumed(s *feed.Session, earliest, after int64) string {
	p.session = s
	p.joins(s)
	if earliest > after+1 {
		p.whole = false
		return p.keep([]entry{{partNote, []line{{{yellow, "! The records from " + count(after+1) + " to " + count(earliest-1) +
			" were removed while the connection was cut."}}}}})
	}
	return p.show()
}

// Record shows a record.
func (p *Printer) Record(r *feed.Record) string {
	entries := p.entriesOf(r)
	if len(entries) == 0 {
		return p.show()
	}
	return p.keep(entries)
}

// Session takes a new session object.
func (p *Printer) Session(s *feed.Session) string {
	p.session = s
	return ""
}

// Delta shows what the runtime is writing.
func (p *Printer) Delta(turn string, d feed.Delta) string {
	p.write(turn, d)
	return p.show()
}

// Note shows something about the transcript itself.
func (p *Printer) Note(text string) string {
	return p.keep([]entry{{partNote, []line{{{yellow, "! " + clean(text)}}}}})
}

// End takes away what is live, and shows what the session has come to: its state, cost, tokens and duration.
func (p *Printer) End() string {
	p.writing = writing{}
	entries := p.closeStep(false)
	if p.session != nil {
		entries = append(entries, entry{partRule, p.sum(p.session)})
	}
	return p.keep(entries)
}

// keep writes lines that stay, and what is live below them.
func (p *Printer) keep(entries []entry) string {
	var lines []shown
	for _, e := range entries {
		if p.gap(e.part) {
			lines = append(lines, shown{})
		}
		p.last = e.part
		for _, l := range e.lines {
			lines = append(lines, p.paint(l))
		}
	}
	if n := len(entries); n > 0 && entries[n-1].part != partTool && entries[n-1].part != partResult {
		p.lastCall = ""
	}
	return p.screen.keep(lines) + p.show()
}

// show writes what is live.
func (p *Printer) show() string {
	if !p.screen.can {
		return ""
	}
	var lines []shown
	for _, e := range p.liveEntries() {
		if len(lines) == 0 && p.gap(e.part) {
			lines = append(lines, shown{})
		}
		for _, l := range e.lines {
			lines = append(lines, p.paint(l))
		}
	}
	return p.screen.show(lines)
}

// gap says whether an empty line stands between what is above and what comes.
func (p *Printer) gap(next part) bool {
	switch {
	case p.last == partNone, next == partResult:
		return false
	case next == partRule, next == partMessage, next == partText, p.last == partText, p.last == partMessage, p.last == partRule:
		return true
	case (p.last == partTool || p.last == partResult) && next == partTool:
		return false
	}
	return p.last != next
}

// textColumns is how wide text may be: one column is left free, so that no terminal breaks a line by itself.
func (p *Printer) textColumns() int { return max(0, p.o.Width-1) }

// inside is how wide text may be that stands so many columns to the right.
func (p *Printer) inside(indent int) int {
	if p.o.Width == 0 {
		return 0
	}
	return max(10, p.textColumns()-indent)
}

// at writes a time of day.
func (p *Printer) at(t time.Time) string { return t.In(p.o.Zone).Format("15:04:05") }

// entriesOf are the lines of a record.
func (p *Printer) entriesOf(r *feed.Record) []entry {
	switch r.Format {
	case feed.FormatLifecycle:
		return p.platform(r)
	case feed.FormatClaudeJSONL, feed.FormatClaudeSDK:
		return p.claude(r)
	case feed.FormatCodexAppServer, feed.FormatCodexJSONL:
		return p.codex(r)
	}
	return p.other(r)
}

// about says whose session it is.
func (p *Printer) about(s *feed.Session) []line {
	who := s.Metadata["person"]
	if s.Agent != nil {
		who = cmp.Or(deref(s.Agent.Config.About.Name), who)
	}
	words := []string{clean(s.Metadata["work_item"]), clean(who), clean(modelOf(s)), "since " + s.CreatedAt.In(p.o.Zone).Format("2006-01-02 15:04:05"),
		"session " + clean(s.ID)}
	if s.Parent != nil && s.Parent.SessionID != nil {
		words = append(words, "continues "+clean(*s.Parent.SessionID))
	}
	return p.wrapped(dim, "", "  ", joined(words))
}

// modelOf is the runtime and the model of a session, as far as they are known.
func modelOf(s *feed.Session) string {
	switch {
	case s.ClaudeCode != nil:
		return strings.TrimSpace("claude " + cmp.Or(s.Tokens.Model, s.ClaudeCode.Model))
	case s.Codex != nil:
		return strings.TrimSpace("codex " + cmp.Or(s.Tokens.Model, s.Codex.Model))
	}
	return s.Tokens.Model
}

// sum says what a session has come to.
func (p *Printer) sum(s *feed.Session) []line {
	state := "The session is " + cmp.Or(s.Conversation.State, "open") + "."
	switch {
	case s.Conversation.State == feed.ConversationClosed:
	case s.Turn != nil && s.Turn.Status == feed.TurnStatusRunning:
		state = "Turn " + count(s.Turn.Index+1) + " is running."
	case s.Turn != nil && s.Turn.Status == feed.TurnStatusPending:
		state = "Turn " + count(s.Turn.Index+1) + " waits for its round."
	}
	words := []string{usd(s.Cost.Total), tokensOf(s.Tokens)}
	if p.whole && p.turns > 0 {
		words = append(words, number(p.turns, "turn"))
		if p.worked > 0 {
			words = append(words, lasting(p.worked))
		}
	}
	lines := p.wrapped(dim, "", "", state)
	if text := joined(words); text != "" {
		lines = append(lines, p.wrapped(bold, "", "", text)...)
	}
	return lines
}

// joined puts what there is side by side.
func joined(words []string) string {
	var out []string
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, " · ")
}
