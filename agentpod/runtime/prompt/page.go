package prompt

// This file writes Markdown in which nobody's words can pass for structure.

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// page collects sections of a text.
type page struct{ text strings.Builder }

// line adds a line.
func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// section begins a section.
func (p *page) section(title string) {
	if p.text.Len() > 0 {
		p.text.WriteString("\n")
	}
	p.line("## %s\n", title)
}

// String is the page without the line breaks around it.
func (p *page) String() string { return strings.Trim(p.text.String(), "\n") }

// each is a section with what show writes of each of a list; nothing for an empty one.
func each[T any](title string, list []T, show func(p *page, one T)) string {
	if len(list) == 0 {
		return ""
	}
	var p page
	p.section(title)
	for _, one := range list {
		show(&p, one)
	}
	return p.String()
}

// oneLine keeps a name from becoming structure.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// quote makes a text a quotation.
func quote(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ">"
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// cut cuts a text to so many bytes, at a character, and says where the rest is.
func cut(text string, most int, rest string) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	text = text[:most] + "\n\n(cut here"
	if rest != "" {
		text += "; the rest is in " + rest
	}
	return text + ")"
}

// join puts those of the parts that are not empty together.
func join(separator string, parts ...string) string {
	var there []string
	for _, part := range parts {
		if part != "" {
			there = append(there, part)
		}
	}
	return strings.Join(there, separator)
}

// when gives text if there is a condition for it.
func when(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}
