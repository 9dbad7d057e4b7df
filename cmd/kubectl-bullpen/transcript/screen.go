package transcript

// This file writes lines, and lines that are not final yet, which a terminal shows and then replaces.

import (
	"fmt"
	"strings"
)

// screen is the end of what was written. Its last lines may be live: they are replaced by what comes next. The cursor stands at the end of
// the last live line, or at the beginning of a line where there is none.
type screen struct {
	// can says that there is a terminal that moves its cursor back. Without it there are no live lines.
	can bool
	// width and height are the terminal's, in columns and rows.
	width, height int
	live          []string
	// note is written where live lines are written again, because they cannot be replaced any more.
	note string
	// columns has the width of each live line.
	columns []int
}

// shown is a line as it is written, and how many columns it takes.
type shown struct {
	text    string
	columns int
}

// show replaces the live lines by others, and gives what to write for that.
func (s *screen) show(lines []shown) string {
	if !s.can {
		return ""
	}
	return s.replace(lines)
}

// keep replaces the live lines by lines that stay.
func (s *screen) keep(lines []shown) string {
	if !s.can {
		var out strings.Builder
		for _, l := range lines {
			out.WriteString(l.text)
			out.WriteByte('\n')
		}
		return out.String()
	}
	out := s.replace(lines)
	if len(s.live) > 0 {
		out += "\n"
	}
	s.live, s.columns = nil, nil
	return out
}

// replace writes over the live lines from the first that differs. Lines that have left the top of the screen cannot be written over: then
// all is written anew below them, after the note.
func (s *screen) replace(lines []shown) string {
	same := 0
	for same < len(lines) && same < len(s.live) && lines[same].text == s.live[same] {
		same++
	}
	var text strings.Builder
	switch back := s.rows(same); {
	case same == len(s.live):
		if same > 0 && same < len(lines) {
			text.WriteByte('\n')
		}
	case back > s.height-1:
		text.WriteByte('\n')
		if len(lines) > 0 {
			text.WriteString(s.note + "\n")
		}
		same = 0
	default:
		text.WriteByte('\r')
		if back > 1 {
			fmt.Fprintf(&text, "\x1b[%dA", back-1)
		}
		text.WriteString("\x1b[J")
		// The cursor stands where the first line goes that differs; without one, behind the last that stays.
		if same == len(lines) && same > 0 {
			fmt.Fprintf(&text, "\x1b[A\x1b[%dG", s.columns[same-1]%max(s.width, 1)+1)
		}
	}
	for i, l := range lines[same:] {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(l.text)
	}
	s.live, s.columns = s.live[:0], s.columns[:0]
	for _, l := range lines {
		s.live, s.columns = append(s.live, l.text), append(s.columns, l.columns)
	}
	return text.String()
}

// rows is how many rows the live lines take from that one on. Where the terminal became narrower, a line takes more than one.
func (s *screen) rows(from int) int {
	n := 0
	for _, c := range s.columns[min(from, len(s.columns)):] {
		n += max(1, (c+s.width-1)/max(s.width, 1))
	}
	return n
}
