package transcript

// This file has lines with marks, and writes amounts for people.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// style marks a piece of a line.
type style int

const (
	plainStyle style = iota
	bold
	dim
	red
	green
	yellow
	cyan
)

// codes begin a style on a terminal.
var codes = [...]string{plainStyle: "", bold: "\x1b[1m", dim: "\x1b[2m", red: "\x1b[31m", green: "\x1b[32m", yellow: "\x1b[33m", cyan: "\x1b[36m"}

// span is a piece of a line in one style. Its text is clean.
type span struct {
	style style
	text  string
}

// line is one line.
type line []span

// paint writes a line for the output.
func (p *Printer) paint(l line) shown {
	var out strings.Builder
	n := 0
	for i, s := range l {
		// Whoever made the line has bounded it; in a very narrow terminal, marks and times may not fit all the same.
		if most := p.textColumns(); most > 0 && n+columns(s.text) > most {
			s.text = cut(s.text, max(1, most-n))
			l = l[:i+1]
		}
		if i == len(l)-1 {
			s.text = strings.TrimRight(s.text, " ")
		}
		n += columns(s.text)
		if !p.o.Color || s.style == plainStyle || s.text == "" {
			out.WriteString(s.text)
			continue
		}
		out.WriteString(codes[s.style] + s.text + "\x1b[0m")
		if i == len(l)-1 {
			break
		}
	}
	return shown{out.String(), n}
}

// wrapped breaks a clean text into lines of a style: the first begins with first, the others with rest.
func (p *Printer) wrapped(s style, first, rest, text string) []line {
	var lines []line
	for i, l := range wrap(text, p.inside(max(columns(first), columns(rest)))) {
		lead := rest
		if i == 0 {
			lead = first
		}
		lines = append(lines, line{{dim, lead}, {s, l}})
	}
	return lines
}

// folded shows the first lines of a text, each in one row, and counts the others. Of what failed it shows the last ones, which say why.
func (p *Printer) folded(s style, lead, text string, most int, failed bool) []line {
	if p.o.Full {
		most = 0
	}
	shownLines, more := fold(clean(text), most, failed)
	counted := line{{dim, strings.Repeat(" ", columns(lead)-columns(strings.TrimLeft(lead, " "))) + moreLines(more)}}
	var lines []line
	if failed && more > 0 {
		lines = append(lines, counted)
	}
	for _, l := range shownLines {
		if p.o.Full {
			lines = append(lines, p.wrapped(s, lead, lead, l)...)
		} else {
			lines = append(lines, line{{dim, lead}, {s, cut(l, p.inside(columns(lead)))}})
		}
	}
	if !failed && more > 0 {
		lines = append(lines, counted)
	}
	return lines
}

func moreLines(n int) string {
	if n == 1 {
		return "… 1 more line"
	}
	return "… " + count(int64(n)) + " more lines"
}

// indented moves lines to the right.
func indented(lines []line, by string) []line {
	if by == "" {
		return lines
	}
	moved := make([]line, len(lines))
	for i, l := range lines {
		moved[i] = append(line{{dim, by}}, l...)
	}
	return moved
}

// count writes a number with its thousands apart.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

func number(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(int64(n)) + " " + one + "s"
}

// usd writes millicents as US dollars: to the cent, and what is less than ten cents to the hundredth of one. Nothing costs nothing, and is
// not written.
func usd(millicents int64) string {
	switch {
	case millicents == 0:
		return ""
	case millicents < 10:
		return fmt.Sprintf("%.5f USD", float64(millicents)/100_000)
	case millicents < 10_000:
		return fmt.Sprintf("%.4f USD", float64(millicents)/100_000)
	}
	return fmt.Sprintf("%.2f USD", float64(millicents)/100_000)
}

// tokensOf writes how many tokens were used.
func tokensOf(t feed.Tokens) string {
	if t.Total == 0 {
		return ""
	}
	parts := []string{count(t.Input) + " in", count(t.Output) + " out"}
	if t.CacheRead > 0 {
		parts = append(parts, count(t.CacheRead)+" cache read")
	}
	if t.CacheCreation > 0 {
		parts = append(parts, count(t.CacheCreation)+" cache written")
	}
	return count(t.Total) + " tokens (" + strings.Join(parts, ", ") + ")"
}

// lasting writes a duration to what matters of it.
func lasting(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// ms writes milliseconds, and nothing where they are not known.
func ms(n *int64) string {
	if n == nil {
		return ""
	}
	return lasting(time.Duration(*n) * time.Millisecond)
}
