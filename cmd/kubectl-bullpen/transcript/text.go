package transcript

// This file makes text that agents and programs wrote fit for a terminal: without what would act on it, in lines of the right width.

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// tab is what a tabulator becomes: where it would lead to depends on what stands before it.
const tab = "    "

// clean takes out of a text what a terminal or an eye would not take for text: control characters and escape sequences, which move the
// cursor, hide what was written or type for the user, and characters that turn the direction of writing. Line breaks of every kind become
// "\n". What a program overwrote by a carriage return, such as the steps of a progress bar, is left out.
func clean(text string) string {
	if plain(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	for i, l := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		l = strings.TrimRight(l, "\r")
		cleanLine(&out, l[strings.LastIndexByte(l, '\r')+1:])
	}
	return out.String()
}

// plain says whether a text has nothing to take out, which is how most are.
func plain(text string) bool {
	for i := range len(text) {
		if b := text[i]; (b < ' ' && b != '\n') || b >= 0x7f {
			return false
		}
	}
	return true
}

func cleanLine(out *strings.Builder, l string) {
	for l != "" {
		if rest, ok := afterEscape(l); ok {
			l = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(l)
		l = l[size:]
		switch {
		case r == '\t':
			out.WriteString(tab)
		case !unicode.IsControl(r) && !turns(r):
			out.WriteRune(r) // a byte that is no UTF-8 is U+FFFD by now
		}
	}
}

// turns says whether a character changes the direction in which others are written, so that a line could look like another one.
func turns(r rune) bool {
	return (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) || r == 0x200e || r == 0x200f || r == 0x061c || r == 0x2028 || r == 0x2029
}

// afterEscape gives what comes after the escape sequence that the text begins with: one of control (CSI), one with a string (OSC, DCS and
// their like), or a short one. A sequence that does not end takes the rest of the line with it.
func afterEscape(l string) (rest string, ok bool) {
	if len(l) < 2 || l[0] != 0x1b {
		return "", false
	}
	body := l[2:]
	switch l[1] {
	case '[':
		for i := range len(body) {
			if body[i] >= 0x40 && body[i] <= 0x7e {
				return body[i+1:], true
			}
		}
		return "", true
	case ']', 'P', 'X', '^', '_':
		bell, end := strings.IndexByte(body, 0x07), strings.Index(body, "\x1b\\")
		switch {
		case bell >= 0 && (end < 0 || bell < end):
			return body[bell+1:], true
		case end >= 0:
			return body[end+2:], true
		}
		return "", true
	case '(', ')', '*', '+', '#', '%', ' ':
		return body[min(1, len(body)):], true
	}
	return body, true
}

// columns is how many columns a text takes that is one line and clean.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || (r >= 0xfe00 && r <= 0xfe0f):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut gives as much of a line as fits into so many columns, the last of which says that there is more. Less than one is no bound.
func cut(l string, most int) string {
	if most < 1 || columns(l) <= most {
		return l
	}
	n := 0
	for i, r := range l {
		if n += columnsOf(r); n > most-1 {
			return strings.TrimRight(l[:i], " ") + "…"
		}
	}
	return l
}

// wrap breaks a clean text into lines of at most so many columns, between words where it can. Less than one breaks at line breaks alone. All
// lines but the last stay as they are when the text goes on.
func wrap(text string, most int) []string {
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		if most < 1 {
			lines = append(lines, strings.TrimRight(l, " "))
			continue
		}
		lines = append(lines, wrapLine(l, most)...)
	}
	return lines
}

// wrapLine breaks one line. Spaces at its beginning stay, since they say how a list or a piece of code is nested; spaces at a break go.
func wrapLine(l string, most int) []string {
	var lines []string
	var now strings.Builder
	used := 0
	end := func() {
		lines = append(lines, strings.TrimRight(now.String(), " "))
		now.Reset()
		used = 0
	}
	for l != "" {
		word := nextWord(l)
		l = l[len(word):]
		text := strings.TrimRight(word, " ")
		spaces := len(word) - len(text)
		n := columns(text)
		if used > 0 && used+n > most && text != "" {
			end()
		}
		for n > most { // longer than a line: broken where it must be
			head := prefix(text, most)
			now.WriteString(head)
			end()
			text = text[len(head):]
			n = columns(text)
		}
		now.WriteString(text)
		used += n
		if room := min(spaces, max(0, most-used)); room > 0 {
			now.WriteString(strings.Repeat(" ", room))
			used += room
		}
		if spaces > 0 && used >= most && l != "" {
			end()
		}
	}
	if now.Len() > 0 || len(lines) == 0 {
		end()
	}
	return lines
}

// nextWord is the first word of a line with the spaces after it, or the spaces that the line begins with.
func nextWord(l string) string {
	i := strings.IndexByte(l, ' ')
	if i < 0 {
		return l
	}
	for i < len(l) && l[i] == ' ' {
		i++
	}
	return l[:i]
}

// prefix is as much of a text as fits into so many columns, and one character at least.
func prefix(text string, most int) string {
	n := 0
	for i, r := range text {
		if n += columnsOf(r); n > most && i > 0 {
			return text[:i]
		}
	}
	return text
}

// fold keeps the first lines of a text and counts the others. Empty lines around the text do not count; where only one line more is left,
// it is shown instead of being counted. Less than one keeps all. With end it keeps the last lines.
func fold(text string, most int, end bool) (lines []string, more int) {
	lines = strings.Split(strings.Trim(text, "\n"), "\n")
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	if most < 1 || len(lines) <= most+1 {
		return lines, 0
	}
	more = len(lines) - most
	if end {
		return lines[more:], more
	}
	return lines[:most], more
}

// oneLine makes one line of a text: its first one that says something, with a mark where there are more.
func oneLine(text string) string {
	text = strings.TrimSpace(text)
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimSpace(rest) != "" {
		return strings.TrimRight(first, " ") + " …"
	}
	return first
}
