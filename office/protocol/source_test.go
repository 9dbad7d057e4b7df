package protocol

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file reads the package's own comments. The JSON Schema and the page of
// the protocol are made of them and of the plans, so every message and every
// field must have one.

// source is what the Go files of the package say.
type source struct {
	types  map[string]goType
	consts []goConst
}

// goType is a type's comment, those of its fields by their Go names, and the
// file it is in.
type goType struct {
	doc, file string
	fields    map[string]string
}

// goConst is a constant that is written down: of a string type, or a number.
type goConst struct{ typ, name, value, doc string }

func readSource(t testing.TB) *source {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	s := &source{types: map[string]goType{}}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				s.add(name, g)
			}
		}
	}
	s.resolve()
	return s
}

func (s *source) add(file string, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			t := goType{doc: oneLine(g.Doc.Text()), file: file, fields: map[string]string{}}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, n := range f.Names {
						t.fields[n.Name] = oneLine(f.Doc.Text())
					}
				}
			}
			s.types[spec.Name.Name] = t
		case *ast.ValueSpec:
			if g.Tok != token.CONST || len(spec.Values) != 1 {
				continue
			}
			c := goConst{name: spec.Names[0].Name, doc: oneLine(spec.Doc.Text())}
			if typ, ok := spec.Type.(*ast.Ident); ok {
				c.typ = typ.Name
			}
			switch v := spec.Values[0].(type) {
			case *ast.BasicLit:
				c.value = strings.Trim(v.Value, `"`)
			case *ast.CallExpr: // another constant, converted
				c.value = "=" + v.Args[0].(*ast.Ident).Name
			}
			if c.doc == "" && len(g.Specs) == 1 {
				c.doc = oneLine(g.Doc.Text())
			}
			s.consts = append(s.consts, c)
		}
	}
}

// resolve gives converted constants the value of the one they are made of.
func (s *source) resolve() {
	for i, c := range s.consts {
		if of, ok := strings.CutPrefix(c.value, "="); ok {
			at := slices.IndexFunc(s.consts, func(o goConst) bool { return o.name == of })
			s.consts[i].value = s.consts[at].value
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// reachable gives the struct types of the messages and of the team config, each
// once: the messages first, then what they hold, as it comes.
func reachable() []reflect.Type {
	var all []reflect.Type
	add := func(t reflect.Type) {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	for _, s := range specs {
		add(reflect.TypeOf(s.zero))
	}
	add(reflect.TypeFor[TeamConfig]())
	for i := 0; i < len(all); i++ {
		for n := range all[i].NumField() {
			if t := inner(all[i].Field(n).Type); t.Kind() == reflect.Struct {
				add(t)
			}
		}
	}
	return all
}

// inner is the type inside of pointers, lists and maps.
func inner(t reflect.Type) reflect.Type {
	for t != rawType && slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	return t
}

// enums gives the string types of which only some values are allowed, as they
// come in the reachable types.
func enums() []reflect.Type {
	var all []reflect.Type
	for _, t := range reachable() {
		for n := range t.NumField() {
			if e := inner(t.Field(n).Type); e.Implements(enumeratedType) && !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	return all
}

func TestEveryMessageAndEveryFieldSaysWhatItMeans(t *testing.T) {
	s := readSource(t)
	fields := 0
	for _, typ := range reachable() {
		doc := s.types[typ.Name()]
		if !strings.HasPrefix(doc.doc, typ.Name()+" ") {
			t.Errorf("the comment of %s must begin with its name, not %q", typ.Name(), doc.doc)
		}
		for n := range typ.NumField() {
			name := typ.Field(n).Name
			if fields++; !strings.HasPrefix(doc.fields[name], name+" ") {
				t.Errorf("the comment of %s.%s must begin with its name, not %q", typ.Name(), name, doc.fields[name])
			}
		}
	}
	if fields < 200 {
		t.Errorf("only %d fields were looked at", fields)
	}
}

func TestEveryMessageSaysWhoSendsItAndWhatAnswersIt(t *testing.T) {
	s := readSource(t)
	for _, spec := range Specs() {
		sender := map[Sender]string{Agent: "the agent", Office: "the office", Either: "either side"}[spec.SentBy]
		want := "Sent by " + sender + "; it takes no answer"
		if len(spec.AnsweredBy) > 0 {
			var answers []string
			for _, a := range spec.AnsweredBy {
				answers = append(answers, "["+reflect.TypeOf(specByType[a].zero).Name()+"]")
			}
			want = "Sent by " + sender + "; answered by " + strings.Join(answers, " or ")
		}
		if name := reflect.TypeOf(spec.zero).Name(); !regexp.MustCompile(regexp.QuoteMeta(want) + `[.,]`).MatchString(s.types[name].doc) {
			t.Errorf("the comment of %s must say %q; it is %q", name, want, s.types[name].doc)
		}
	}
}

func TestEveryValueSaysWhatItMeans(t *testing.T) {
	s := readSource(t)
	for _, e := range enums() {
		if doc := s.types[e.Name()].doc; !strings.HasPrefix(doc, e.Name()+" ") {
			t.Errorf("the comment of %s must begin with its name, not %q", e.Name(), doc)
		}
		for _, v := range reflect.Zero(e).Interface().(enumerated).values() {
			if s.meaning(e.Name(), v) == "" {
				t.Errorf("no constant says what %q means as a %s", v, e.Name())
			}
		}
	}
}

// meaning is the comment of a value, without the constant's name. A type that
// takes another type's values takes their comments, too.
func (s *source) meaning(typ, value string) string {
	other := ""
	for _, c := range s.consts {
		rest, ok := strings.CutPrefix(c.doc, c.name+" ")
		if !ok || c.value != value {
			continue
		}
		if c.typ == typ {
			return rest
		}
		if strings.Contains(s.types[typ].doc, "["+c.typ+"]") {
			other = rest
		}
	}
	return other
}

// reference is [Name] or [Name.Field] in a comment.
var reference = regexp.MustCompile(`\[([A-Z]\w*)(?:\.(\w+))?\]`)

// translate replaces the references of a comment, which are Go's, by the words
// of the wire. refer makes one: of a type, with or without the name of a field,
// or of a value.
func (s *source) translate(t testing.TB, doc string, refer func(typ reflect.Type, field, value string) string) string {
	t.Helper()
	types := append(reachable(), enums()...)
	types = append(types, reflect.TypeFor[WorkItemState]())
	return reference.ReplaceAllStringFunc(doc, func(match string) string {
		m := reference.FindStringSubmatch(match)
		for _, typ := range types {
			if typ.Name() != m[1] {
				continue
			}
			if m[2] == "" {
				return refer(typ, "", "")
			}
			if f, ok := typ.FieldByName(m[2]); ok {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				return refer(typ, name, "")
			}
		}
		for _, c := range s.consts {
			if c.name == m[1] {
				return refer(nil, "", c.value)
			}
		}
		t.Errorf("%s in a comment refers to nothing: %s", match, doc)
		return match
	})
}

// wireName is the word for a type: a message's on the wire, else the Go type's.
func wireName(typ reflect.Type) string {
	if m, ok := reflect.Zero(typ).Interface().(Message); ok {
		return string(m.Type())
	}
	return typ.Name()
}

// plainly translates a comment into plain text, for the schema.
func (s *source) plainly(t testing.TB, doc string) string {
	t.Helper()
	return s.translate(t, doc, func(typ reflect.Type, field, value string) string {
		switch {
		case value != "":
			return value
		case field != "":
			return wireName(typ) + "." + field
		default:
			return wireName(typ)
		}
	})
}

// described is a comment of a field or a message as a sentence that does not
// need its Go name: "Person is the handle" becomes "The handle".
func described(name, wire, doc string) string {
	rest := strings.TrimPrefix(doc, name+" ")
	for _, verb := range []string{"is ", "are "} {
		if after, ok := strings.CutPrefix(rest, verb); ok {
			return strings.ToUpper(after[:1]) + after[1:]
		}
	}
	return wire + " " + rest
}

func TestCommentsBecomeSentencesOfTheWire(t *testing.T) {
	s := readSource(t)
	for _, test := range []struct{ name, wire, doc, want string }{
		{"Person", "person", "Person is the handle.", "The handle."},
		{"Windows", "windows", "Windows are all.", "All."},
		{"Waiting", "waiting", "Waiting tells that.", "waiting tells that."},
		{"X", "x", "X is as [Welcome.HeartbeatMs], [Ack], [Link] or [CodeInvalid].", "As welcome.heartbeatMs, ack, Link or invalid."},
	} {
		if got := s.plainly(t, described(test.name, test.wire, test.doc)); got != test.want {
			t.Errorf("%q became %q, not %q", test.doc, got, test.want)
		}
	}
}

func writeGenerated(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
