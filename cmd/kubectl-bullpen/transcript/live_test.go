package transcript

// This file tests what a terminal shows while the runtime writes. A small terminal stands in for a real one.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// terminal knows what a printer writes: text, line breaks, the cursor's way up and to a column, and erasing to the end.
type terminal struct {
	width, height int
	// rows are all that was ever written, those that left the top of the screen too; the cursor stands in row y, column x.
	rows [][]rune
	x, y int
}

func newTerminal(width, height int) *terminal {
	return &terminal{width: width, height: height, rows: [][]rune{nil}}
}

func (t *terminal) write(out string) {
	for out != "" {
		switch r, size := utf8.DecodeRuneInString(out); r {
		case '\n':
			t.x = 0
			if t.y++; t.y == len(t.rows) {
				t.rows = append(t.rows, nil)
			}
			out = out[size:]
		case '\r':
			t.x = 0
			out = out[size:]
		case '\x1b':
			end := strings.IndexFunc(out, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
			n, _ := strconv.Atoi(strings.TrimPrefix(out[1:end], "["))
			switch out[end] {
			case 'A':
				// A cursor does not leave the screen.
				t.y = max(t.y-max(n, 1), len(t.rows)-t.height, 0)
			case 'G':
				t.x = n - 1
			case 'J':
				t.rows = t.rows[:t.y+1]
				t.rows[t.y] = t.rows[t.y][:min(t.x, len(t.rows[t.y]))]
			case 'm':
			default:
				panic(fmt.Sprintf("the terminal does not know %q", out[:end+1]))
			}
			out = out[end+1:]
		default:
			row := t.rows[t.y]
			for len(row) <= t.x {
				row = append(row, ' ')
			}
			row[t.x] = r
			if columnsOf(r) == 1 {
				t.x++
			} else { // a wide letter fills two cells here, so that columns are as they are on a real one
				t.x += 2
				row = append(row[:min(len(row), t.x-1)], 0)
			}
			if t.x >= t.width {
				panic("a line breaks by itself")
			}
			t.rows[t.y] = row
			out = out[size:]
		}
	}
}

// lines are what was written, as it can be read.
func (t *terminal) lines() []string {
	var lines []string
	for _, row := range t.rows {
		lines = append(lines, strings.TrimRight(strings.ReplaceAll(string(row), "\x00", ""), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func (t *terminal) String() string { return strings.Join(t.lines(), "\n") }

// liveStory is a turn in which the runtime writes these texts.
func liveStory(texts ...string) *story {
	s := newStory(feed.Session{ID: "s1-live"})
	s.life("turn_started", `{"turn_id":"t1","turn_index":0}`)
	for i, said := range texts {
		s.assistant(text(said))
		s.assistant(use(fmt.Sprint("u", i), "Bash", map[string]any{"command": "true"}))
		s.user(toolResult(fmt.Sprint("u", i), "ok", false))
	}
	s.life("turn_ended", `{"turn_id":"t1","turn_index":0,"status":"completed","duration_ms":1}`)
	s.session.Turn = &feed.Turn{ID: "t1", Status: feed.TurnStatusCompleted}
	return s
}

func delta(kind, text string) feed.Delta { return feed.Delta{Kind: kind, Text: &text} }

func TestTextStandsThereAsItComesAndIsNotRepeated(t *testing.T) {
	said := "The quick brown fox jumps over the lazy dog, and then it sleeps in the sun."
	s := liveStory(said)
	screen := newTerminal(30, 20)
	p := New(Options{Width: 30, Height: 20, Live: true})
	screen.write(p.Begin(&s.session, 1, 0))
	screen.write(p.Record(&s.records[0]))
	screen.write(p.Delta("t1", delta(feed.DeltaThinking, "**Foxes**")))
	if got := screen.String(); !strings.HasSuffix(got, "\n\n∴ Foxes") {
		t.Errorf("while it thinks, the screen has\n%s", got)
	}
	for _, word := range strings.SplitAfter(said, " ")[:10] {
		screen.write(p.Delta("t1", delta(feed.DeltaText, word)))
	}
	screen.write(p.Delta("t1", feed.Delta{Kind: feed.DeltaText, OutputTokens: new(int64(1234))}))
	if got := screen.String(); !strings.HasSuffix(got, "\n\nThe quick brown fox jumps\nover the lazy dog, and\n(1,234 tokens)") {
		t.Errorf("while it writes, the screen has\n%s", got)
	}
	screen.write(p.Delta("t1", delta("smell", "burnt"))) // of a kind that nobody knows
	screen.write(p.Record(&s.records[1]))
	if got := screen.String(); !strings.HasSuffix(got, "\n\nThe quick brown fox jumps\nover the lazy dog, and then it\nsleeps in the sun.") && strings.Count(got, "quick") != 1 {
		t.Errorf("when it has written, the screen has\n%s", got)
	}
	for i := range s.records[2:] {
		screen.write(p.Record(&s.records[2+i]))
	}
	screen.write(p.End())
	if got, want := screen.String(), strings.TrimRight(tell(New(Options{Width: 30}), s), "\n"); got != want {
		t.Errorf("in the end, the screen has\n%s\nnot\n%s", got, want)
	}
}

// However deltas are cut, lost, late or of other turns: what stays is what the records say, each once and in their order.
func TestInTheEndThereIsWhatTheRecordsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width, height := rapid.IntRange(24, 60).Draw(t, "width"), 1000
		var texts []string
		for i := range rapid.IntRange(1, 4).Draw(t, "texts") {
			texts = append(texts, "x"+someText(t, fmt.Sprint("text ", i))+"y")
		}
		s := liveStory(texts...)
		all := strings.Join(texts, "")
		screen := newTerminal(width, height)
		p := New(Options{Width: width, Height: height, Live: true, Color: rapid.Bool().Draw(t, "color")})
		if rapid.Bool().Draw(t, "came late") {
			s.session.Turn = &feed.Turn{ID: "t1", Status: feed.TurnStatusRunning}
			runes := []rune(all)
			all = string(runes[rapid.IntRange(0, len(runes)).Draw(t, "from"):])
		}
		screen.write(p.Begin(&s.session, 1, 0))
		s.session.Turn = &feed.Turn{ID: "t1", Status: feed.TurnStatusCompleted}
		next := 0
		for next < len(s.records) {
			switch rapid.IntRange(0, 9).Draw(t, "what comes") {
			case 0, 1, 2:
				screen.write(p.Record(&s.records[next]))
				next++
			case 3:
				screen.write(p.Delta("t1", delta(feed.DeltaThinking, rapid.SampledFrom([]string{"", "**A**", "B"}).Draw(t, "thought"))))
			case 4:
				screen.write(p.Delta("t1", feed.Delta{Kind: feed.DeltaText, OutputTokens: new(int64(7))}))
			case 5:
				screen.write(p.Session(&s.session))
			case 6:
				if rapid.IntRange(0, 5).Draw(t, "cut") == 0 {
					screen.write(p.Resumed(&s.session, 1, int64(next)))
				}
			default:
				runes := []rune(all)
				n := min(len(runes), rapid.IntRange(1, 30).Draw(t, "letters"))
				if rapid.IntRange(0, 9).Draw(t, "lost") > 0 {
					screen.write(p.Delta("t1", delta(feed.DeltaText, string(runes[:n]))))
				}
				all = string(runes[n:])
			}
		}
		screen.write(p.End())
		want := strings.TrimRight(tell(New(Options{Width: width}), s), "\n")
		if got := screen.String(); got != want {
			t.Fatalf("the screen has\n%s\nnot\n%s", got, want)
		}
	})
}

// A text that is longer than the screen has left it at the top when its record comes: where that says the same, nothing is repeated.
func TestALongTextIsNotRepeated(t *testing.T) {
	said := strings.Repeat("one two three four five six seven eight nine ten eleven twelve ", 40)
	s := liveStory(said)
	screen := newTerminal(40, 10)
	p := New(Options{Width: 40, Height: 10, Live: true})
	screen.write(p.Begin(&s.session, 1, 0))
	screen.write(p.Record(&s.records[0]))
	for chunk := range slices.Chunk([]byte(said), 17) {
		screen.write(p.Delta("t1", delta(feed.DeltaText, string(chunk))))
	}
	for i := range s.records[1:] {
		screen.write(p.Record(&s.records[1+i]))
	}
	screen.write(p.End())
	if got, want := screen.String(), strings.TrimRight(tell(New(Options{Width: 40}), s), "\n"); got != want {
		t.Errorf("the screen has\n%s\nnot\n%s", got, want)
	}
}

// Where the record says something else than what was seen, and what was seen cannot be taken back, all of it is written, and that is said.
func TestALongTextThatWasOtherwiseIsWrittenWhole(t *testing.T) {
	said := strings.Repeat("one two three four five six seven eight nine ten eleven twelve ", 40)
	s := liveStory(said)
	screen := newTerminal(40, 10)
	p := New(Options{Width: 40, Height: 10, Live: true})
	screen.write(p.Begin(&s.session, 1, 0))
	screen.write(p.Record(&s.records[0]))
	screen.write(p.Delta("t1", delta(feed.DeltaText, "zero "+said)))
	screen.write(p.Record(&s.records[1]))
	screen.write(p.End())
	got := screen.String()
	if _, after, ok := strings.Cut(got, "(once more, whole)"); !ok || strings.Count(strings.Join(strings.Fields(after), " "), "one two three") != 40 {
		t.Errorf("the screen has\n%s", got)
	}
}

func TestAPipeHasEverythingOnce(t *testing.T) {
	s := liveStory("first", "second")
	p := New(Options{Live: true}) // no width: no terminal
	var out strings.Builder
	out.WriteString(p.Begin(&s.session, 1, 0))
	for i := range s.records {
		out.WriteString(p.Delta("t1", delta(feed.DeltaText, "first")))
		out.WriteString(p.Record(&s.records[i]))
	}
	out.WriteString(p.End())
	if got, want := out.String(), tell(New(Options{}), s); got != want {
		t.Errorf("the pipe has\n%s\nnot\n%s", got, want)
	}
}

func TestAStepThatRunsIsShown(t *testing.T) {
	s := claudeStory()
	for i, ends := range map[int]string{1: "clone harbour/tides …", 4: "setup build_base …", 6: "  … built 90"} {
		screen, p := newTerminal(60, 30), New(Options{Width: 60, Height: 30, Live: true})
		for n := range i + 1 {
			screen.write(p.Record(&s.records[n]))
		}
		if got := screen.String(); !strings.HasSuffix(got, "\n"+ends) {
			t.Errorf("after record %d, the screen has\n%s\nwithout %q at its end", i, got, ends)
		}
	}
}

func TestANarrowerTerminalLosesNothing(t *testing.T) {
	said := "The quick brown fox jumps over the lazy dog, and then it sleeps in the sun."
	s := liveStory(said)
	p := New(Options{Width: 60, Height: 30, Live: true})
	var out strings.Builder
	out.WriteString(p.Begin(&s.session, 1, 0))
	out.WriteString(p.Record(&s.records[0]))
	out.WriteString(p.Delta("t1", delta(feed.DeltaText, said)))
	p.Resize(30, 30)
	// The first of the two lines takes two rows now; all three are erased.
	if got := p.Record(&s.records[1]); !strings.HasPrefix(got, "\r\x1b[2A\x1b[J") || !strings.Contains(got, "jumps\nover the lazy dog") {
		t.Errorf("it writes %q", got)
	}
}
