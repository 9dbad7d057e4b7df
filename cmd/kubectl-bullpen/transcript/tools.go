package transcript

// This file shows tools that a runtime uses, and what came of it.

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// call is a use of a tool.
type call struct{ name, argument string }

// arguments name the argument that says most about a use of a tool, in the order in which they are looked for.
var arguments = []string{
	"command", "file_path", "notebook_path", "pattern", "url", "query", "description", "prompt", "path", "name", "subject", "skill", "title", "id",
}

// argumentOf says in a line what a tool is used for: its main argument, or all of them.
func argumentOf(input json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil || len(fields) == 0 {
		return ""
	}
	for _, name := range arguments {
		var text string
		if json.Unmarshal(fields[name], &text) == nil && strings.TrimSpace(text) != "" {
			return oneLine(clean(text))
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, input) != nil {
		return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
	}
	return oneLine(clean(compact.String()))
}

// widest is how much of an argument is shown where lines are not bounded.
const widest = 200

// used shows that a tool is used. What is shown stands to the right by indent where a subagent uses it.
func (p *Printer) used(id string, c call, indent string) entry {
	if id != "" {
		p.calls[id] = c
	}
	p.lastCall = id
	return entry{partTool, indented([]line{p.callLine(c, false, indent)}, indent)}
}

// callLine is the line of a use of a tool, or of its result, where that comes after something else.
func (p *Printer) callLine(c call, again bool, indent string) line {
	mark, name := dim, bold
	if again {
		name = dim
	}
	room := widest
	if p.o.Width > 0 {
		room = p.inside(columns(c.name) + 4 + columns(indent))
	}
	l := line{{mark, "▸ "}, {name, c.name}}
	if c.argument != "" {
		s := plainStyle
		if again {
			s = dim
		}
		l = append(l, span{s, "  " + cut(c.argument, room)})
	}
	return l
}

// result is what came of a use of a tool.
type result struct {
	text string
	// failed says that it did not work, and why why, beside the text.
	failed bool
	why    string
}

// came shows a result, below the tool where that stands above, else with the tool once more.
func (p *Printer) came(id string, r result, indent string) []entry {
	c, known := p.calls[id]
	delete(p.calls, id)
	direct := id != "" && p.lastCall == id
	lead, s := "  │ ", dim
	if r.failed {
		lead, s = "  ✗ ", red
	}
	var lines []line
	if strings.TrimSpace(r.text) != "" {
		lines = p.folded(s, lead, r.text, resultLines, r.failed)
	}
	if r.why != "" {
		lines = append(lines, p.wrapped(s, lead, lead, clean(r.why))...)
	}
	if r.failed && len(lines) == 0 {
		lines = []line{{{red, "  ✗ failed"}}}
	}
	if len(lines) == 0 {
		return nil
	}
	if direct {
		return []entry{{partResult, indented(lines, indent)}}
	}
	if known {
		lines = append([]line{p.callLine(c, true, indent)}, lines...)
	}
	p.lastCall = id
	return []entry{{partTool, indented(lines, indent)}}
}

// shortPath is the end of a path that says which file it is.
func shortPath(file string) string {
	dir, name := path.Split(file)
	if dir == "" {
		return name
	}
	return path.Join(path.Base(dir), name)
}
