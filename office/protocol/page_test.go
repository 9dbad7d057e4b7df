package protocol

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// This file makes the parts of docs/protocol.md that follow from the types, and
// holds the rest of the page to what the package does.

const pagePath = "../../docs/protocol.md"

// region is a part of the page between its two marks.
var region = regexp.MustCompile(`(?s)(<!-- begin ([a-z]+): made by make generate, do not edit -->\n).*?(<!-- end ([a-z]+) -->)`)

func TestPageIsThatOfTheTypes(t *testing.T) {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	p := pageMaker{t: t, source: readSource(t)}
	parts := map[string]func() string{"codes": p.codes, "messages": p.messages, "objects": p.objects, "values": p.values, "team": p.team}
	made := region.ReplaceAllStringFunc(string(page), func(old string) string {
		m := region.FindStringSubmatch(old)
		part := parts[m[2]]
		if part == nil || m[2] != m[4] {
			t.Fatalf("the page has a part %q that ends with %q", m[2], m[4])
		}
		delete(parts, m[2])
		return m[1] + "\n" + part() + "\n" + m[3]
	})
	if len(parts) > 0 {
		t.Fatalf("the page does not have the marks of %d parts", len(parts))
	}
	if *update {
		writeGenerated(t, pagePath, []byte(made))
		return
	}
	if diff := cmp.Diff(made, string(page)); diff != "" {
		t.Errorf("run go generate: the types (-) and the page (+) differ:\n%s", diff)
	}
}

// pageMaker writes Markdown.
type pageMaker struct {
	t      *testing.T
	source *source
}

// chapters are the groups of messages: the files that they are in, with titles.
var chapters = []struct{ title, file string }{
	{"Connection", "connection.go"},
	{"Errors", "errors.go"},
	{"Offers", "offer.go"},
	{"A round", "round.go"},
	{"Between people", "team.go"},
	{"Queue", "queue.go"},
	{"Chat", "chat.go"},
	{"Reports and acts", "reports.go"},
	{"Memory and the world outside", "memory.go"},
	{"Doctor", "doctor.go"},
}

func (p pageMaker) messages() string {
	var b strings.Builder
	written := 0
	for _, c := range chapters {
		fmt.Fprintf(&b, "### %s\n\n", c.title)
		for i, s := range Specs() {
			typ := reflect.TypeOf(s.zero)
			if p.source.types[typ.Name()].file != c.file {
				continue
			}
			written++
			fmt.Fprintf(&b, "#### %s\n\n%s\n\n", s.Type, p.about(typ))
			b.WriteString(p.fields(typ))
			frame, err := Encode(samples[i])
			if err != nil {
				p.t.Fatal(err)
			}
			fmt.Fprintf(&b, "```json\n%s\n```\n\n", layout(p.t, frame, "", 0))
		}
	}
	if written != len(specs) {
		p.t.Errorf("the chapters have %d messages of %d", written, len(specs))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// objects are what messages hold, without the team config.
func (p pageMaker) objects() string {
	return p.structs(func(name string) bool { return !ofTeam(name) })
}

func (p pageMaker) team() string { return p.structs(ofTeam) }

func ofTeam(name string) bool { return strings.HasPrefix(name, "Team") }

func (p pageMaker) structs(want func(name string) bool) string {
	var b strings.Builder
	for _, typ := range reachable() {
		if _, message := reflect.Zero(typ).Interface().(Message); !message && want(typ.Name()) {
			fmt.Fprintf(&b, "#### %s\n\n%s\n\n%s", typ.Name(), p.about(typ), p.fields(typ))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// values are the words that only some fields may hold.
func (p pageMaker) values() string {
	var b strings.Builder
	all := append(enums(), reflect.TypeFor[WorkItemState]())
	slices.SortFunc(all, func(a, b reflect.Type) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range slices.Compact(all) {
		if e == reflect.TypeFor[Code]() {
			continue // has a table of its own
		}
		fmt.Fprintf(&b, "#### %s\n\n%s\n\n| value | meaning |\n|---|---|\n", e.Name(), p.text(described(e.Name(), e.Name(), p.source.types[e.Name()].doc)))
		for _, v := range valuesOf(e, p.source) {
			fmt.Fprintf(&b, "| `%s` | %s |\n", v, p.text(p.source.meaning(e.Name(), v)))
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// valuesOf lists the values of a type: all that the decoder takes, or, of a type
// that takes any, those that have a constant.
func valuesOf(e reflect.Type, s *source) []string {
	if e.Implements(enumeratedType) {
		return reflect.Zero(e).Interface().(enumerated).values()
	}
	var all []string
	for _, c := range s.consts {
		if c.typ == e.Name() {
			all = append(all, c.value)
		}
	}
	return all
}

func (p pageMaker) codes() string {
	var b strings.Builder
	b.WriteString("| code | meaning |\n|---|---|\n")
	for _, c := range Codes() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c, p.text(p.source.meaning("Code", string(c))))
	}
	return b.String()
}

// about is the comment of a type, in the words of the wire.
func (p pageMaker) about(typ reflect.Type) string {
	doc := p.source.types[typ.Name()].doc
	if m, ok := reflect.Zero(typ).Interface().(Message); ok {
		return p.text("`" + string(m.Type()) + "` " + strings.TrimPrefix(doc, typ.Name()+" "))
	}
	return p.text(described(typ.Name(), "It", doc))
}

// fields is the table of an object's members.
func (p pageMaker) fields(typ reflect.Type) string {
	plan := planOf(typ)
	if len(plan.fields) == 0 {
		return "It has no fields.\n\n"
	}
	var b strings.Builder
	b.WriteString("| field | type | | meaning |\n|---|---|---|---|\n")
	for i, f := range plan.fields {
		goField := typ.Field(f.index)
		required := "required"
		if f.optional {
			required = ""
		}
		doc := described(goField.Name, "`"+f.name+"`", p.source.types[typ.Name()].fields[goField.Name])
		for _, name := range slices.Sorted(maps.Keys(plan.byName)) {
			if name != f.name && plan.byName[name] == i {
				doc += " Read as `" + name + "`, too."
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, p.kind(&f.node, goField.Type), required, p.text(doc))
	}
	if plan.extra >= 0 {
		b.WriteString("| any other | | | What a newer version may add. It is passed on. |\n")
	}
	return b.String() + "\n"
}

// kind is the type of a value, with links to what it is made of.
func (p pageMaker) kind(n *node, typ reflect.Type) string {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch n.shape {
	case shapeObject:
		return p.link(typ)
	case shapeList:
		return "list of " + p.kind(n.elem, typ.Elem())
	case shapeMap:
		return "object of " + p.kind(n.elem, typ.Elem()) + " by name"
	case shapeRawObject:
		return "object"
	case shapeInteger, shapeNumber:
		if n.min != nil {
			return fmt.Sprintf("%s ≥ %d", typeOf(n), *n.min)
		}
		return typeOf(n)
	case shapeString:
		switch {
		case typ == reflect.TypeFor[Code]():
			return "[code](#error-codes)"
		case n.enum != nil || typ == reflect.TypeFor[WorkItemState]():
			return p.link(typ)
		case n.format == "url":
			return "absolute URL"
		case n.format == "time":
			return "time"
		case n.format == "date":
			return "time or day"
		}
		return "string"
	default:
		return typeOf(n)
	}
}

// link names a type, and leads to it.
func (p pageMaker) link(typ reflect.Type) string {
	if m, ok := reflect.Zero(typ).Interface().(Message); ok {
		return fmt.Sprintf("[`%s`](#%s)", m.Type(), m.Type())
	}
	return fmt.Sprintf("[%s](#%s)", typ.Name(), strings.ToLower(typ.Name()))
}

// text translates a comment into Markdown that also fits into a table.
func (p pageMaker) text(doc string) string {
	doc = strings.ReplaceAll(doc, "|", `\|`)
	return p.source.translate(p.t, doc, func(typ reflect.Type, field, value string) string {
		switch {
		case value != "":
			return "`" + value + "`"
		case field != "":
			return fmt.Sprintf("[`%s.%s`](#%s)", wireName(typ), field, strings.ToLower(wireName(typ)))
		default:
			return p.link(typ)
		}
	})
}

// layout writes JSON with as many values to a line as fit, behind what is used
// of its first line already.
func layout(t *testing.T, v jsontext.Value, indent string, used int) string {
	t.Helper()
	const width = 140
	one, err := jsontext.AppendFormat(nil, v, jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	if err != nil {
		t.Fatal(err)
	}
	kind := v.Kind()
	if used+len(one) <= width || kind != jsontext.KindBeginObject && kind != jsontext.KindBeginArray {
		return string(one)
	}
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	open, err := dec.ReadToken()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for dec.PeekKind() != jsontext.KindEndObject && dec.PeekKind() != jsontext.KindEndArray {
		line := indent + "  "
		if kind == jsontext.KindBeginObject {
			name, err := dec.ReadValue()
			if err != nil {
				t.Fatal(err)
			}
			line += string(name) + ": "
		}
		value, err := dec.ReadValue()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line+layout(t, value.Clone(), indent+"  ", len(line)))
	}
	closing := map[jsontext.Kind]string{jsontext.KindBeginObject: "}", jsontext.KindBeginArray: "]"}[kind]
	return open.String() + "\n" + strings.Join(lines, ",\n") + "\n" + indent + closing
}

func TestEveryFrameOnThePageCanBeDecoded(t *testing.T) {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Type]bool{}
	decode := func(frame string) {
		t.Helper()
		f, werr := Decode([]byte(frame))
		if werr != nil {
			t.Errorf("%v in %s", werr, frame)
			return
		}
		seen[f.Message.Type()] = true
	}
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(m[1], `"payload"`) {
			decode(m[1])
		}
	}
	// A line of a transcript is an arrow and a frame.
	transcript := regexp.MustCompile(`(?m)^(?:agent|office) +[─<>]+ +(\{.*\})$`).FindAllStringSubmatch(string(page), -1)
	for _, m := range transcript {
		decode(m[1])
	}
	if len(seen) != len(specs) || len(transcript) < 15 {
		t.Errorf("the page shows %d messages of %d, and a transcript of %d frames", len(seen), len(specs), len(transcript))
	}
}

func TestLinksWithinThePageLeadSomewhere(t *testing.T) {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^#+ (.*)$").FindAllStringSubmatch(string(page), -1) {
		anchor := strings.ToLower(strings.ReplaceAll(regexp.MustCompile("[^A-Za-z0-9_ -]").ReplaceAllString(m[1], ""), " ", "-"))
		if anchors[anchor]++; anchors[anchor] > 1 {
			t.Errorf("two headings are #%s", anchor)
		}
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(string(page), -1) {
		if anchors[m[1]] == 0 {
			t.Errorf("a link leads to #%s, which is no heading", m[1])
		}
	}
}

func TestThePageNamesTheLimitsThatAre(t *testing.T) {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]any{
		"the version": Version, "the largest frame": MaxFrame, "the depth": MaxDepth, "the longest id": MaxID,
		"a close": CloseAuthFailed, "a close of the replaced": CloseReplaced, "a close of another version": CloseVersionMismatch,
	} {
		digits := fmt.Sprint(want)
		grouped := regexp.MustCompile(`(\d)(\d{3})$`).ReplaceAllString(regexp.MustCompile(`(\d)(\d{3})(\d{3})$`).ReplaceAllString(digits, "$1,$2,$3"), "$1,$2")
		if !strings.Contains(string(page), digits) && !strings.Contains(string(page), grouped) {
			t.Errorf("%s, %v, is nowhere on the page", what, want)
		}
	}
}
