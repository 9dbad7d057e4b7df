package protocol

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// These tests hold the package against testdata/contract.tsv: the facts of the
// protocol, one field a line, written down apart from the Go types. A dash
// stands for nothing.

// row is a line of the contract. A message without fields has one row whose
// field is a dash.
type row struct{ message, sender, answeredBy, field, typ, required, enum, format, atLeast string }

func (r row) isRequired() bool { return r.required == "yes" }

func readContract(t testing.TB) []row {
	t.Helper()
	data, err := os.ReadFile("testdata/contract.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		c := strings.Split(line, "\t")
		if len(c) != 9 {
			t.Fatalf("line %d has %d columns, not 9", i+1, len(c))
		}
		if i > 0 {
			rows = append(rows, row{c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8]})
		}
	}
	return rows
}

// rowsByMessage keeps the order of the fields.
func rowsByMessage(t testing.TB) map[string][]row {
	t.Helper()
	m := map[string][]row{}
	for _, r := range readContract(t) {
		m[r.message] = append(m[r.message], r)
	}
	return m
}

func TestTypesAreExactlyTheContract(t *testing.T) {
	var got []row
	for _, s := range Specs() {
		head := row{message: string(s.Type), sender: string(s.SentBy), answeredBy: orDash(s.AnsweredBy)}
		fields := rowsOf(head, "", planOf(reflect.TypeOf(s.zero)))
		if len(fields) == 0 {
			head.field, head.typ, head.required, head.enum, head.format, head.atLeast = "-", "-", "-", "-", "-", "-"
			fields = []row{head}
		}
		got = append(got, fields...)
	}
	if diff := cmp.Diff(readContract(t), got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("the contract (-) and the Go types (+) differ:\n%s", diff)
	}
}

func TestContractHasItsSize(t *testing.T) {
	fields := 0
	for _, r := range readContract(t) {
		if r.field != "-" {
			fields++
		}
	}
	if len(Specs()) != 60 || fields != 644 {
		t.Errorf("got %d messages with %d fields, want 60 with 644", len(Specs()), fields)
	}
}

func TestSpecOfKnowsEveryMessageAndNoOther(t *testing.T) {
	for _, want := range Specs() {
		got, ok := SpecOf(want.Type)
		if !ok || got.Type != want.Type || got.zero.Type() != want.Type {
			t.Errorf("SpecOf(%q) = %v, %v; its message says %q", want.Type, got, ok, want.zero.Type())
		}
		for _, a := range want.AnsweredBy {
			if _, ok := SpecOf(a); !ok {
				t.Errorf("%s is answered by %q, which is no message", want.Type, a)
			}
		}
	}
	if s, ok := SpecOf("no_such"); ok {
		t.Errorf("SpecOf(no_such) = %v, want none", s)
	}
}

// rowsOf describes the fields of a plan the way the contract does.
func rowsOf(head row, prefix string, p *plan) []row {
	var rows []row
	for _, f := range p.fields {
		r, n, path := head, &f.node, prefix+f.name
		r.field, r.enum, r.format, r.required, r.atLeast = path, orDash(n.enum), n.format, "yes", "-"
		if f.optional {
			r.required = "no"
		}
		if r.format == "" {
			r.format = "-"
		}
		if n.min != nil {
			r.atLeast = strconv.Itoa(*n.min)
		}
		r.typ = typeOf(n)
		if n.shape == shapeList {
			n, path = n.elem, path+"[]"
			r.enum = orDash(n.enum)
		}
		rows = append(rows, r)
		if n.shape == shapeObject {
			rows = append(rows, rowsOf(head, path+".", n.object)...)
		}
	}
	return rows
}

func typeOf(n *node) string {
	switch n.shape {
	case shapeString:
		return "string"
	case shapeInteger:
		return "integer"
	case shapeNumber:
		return "number"
	case shapeBoolean:
		return "boolean"
	case shapeObject, shapeRawObject, shapeMap:
		return "object"
	case shapeList:
		if n.elem.shape == shapeObject {
			return "list of objects"
		}
		return "list of " + typeOf(n.elem)
	default:
		return "any"
	}
}

func orDash[T ~string](values []T) string {
	if len(values) == 0 {
		return "-"
	}
	var s []string
	for _, v := range values {
		s = append(s, string(v))
	}
	return strings.Join(s, " ")
}

// document builds a payload from the rows of one message: with every field, or
// with the required ones only. It knows nothing of the Go types.
func document(rows []row, full bool) map[string]any {
	doc := map[string]any{}
	for _, r := range rows {
		if r.field == "-" {
			continue
		}
		parent, key := find(doc, r.field)
		if parent == nil || !full && !r.isRequired() {
			continue
		}
		parent[key] = r.sample()
	}
	return doc
}

func (r row) sample() any {
	switch r.typ {
	case "integer":
		return 7
	case "number":
		return 0.5
	case "boolean":
		return true
	case "object":
		return map[string]any{}
	case "list of objects":
		return []any{map[string]any{}}
	case "list of any":
		return []any{map[string]any{"op": "move"}, 1.5, nil, "text"}
	case "list of string":
		return []any{r.text()}
	default:
		return r.text()
	}
}

func (r row) text() string {
	switch {
	case r.enum != "-":
		return strings.Fields(r.enum)[0]
	case r.format == "url":
		return "https://example.com/shop?q=1#top"
	case r.format == "time":
		return "2026-01-31T09:30:00.123Z"
	case r.format == "date":
		return "2026-01-31"
	default:
		return "text of " + r.field
	}
}

// find returns the object that holds a field, and the field's name in it; nil
// where a list or object above it is absent. Of a list it takes the first.
func find(doc map[string]any, path string) (map[string]any, string) {
	for {
		name, rest, nested := strings.Cut(path, ".")
		if !nested {
			return doc, name
		}
		switch v := doc[strings.TrimSuffix(name, "[]")].(type) {
		case map[string]any:
			doc = v
		case []any:
			doc = v[0].(map[string]any)
		default:
			return nil, ""
		}
		path = rest
	}
}

// frameOf wraps a payload.
func frameOf(t testing.TB, message string, payload any) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"id": "m7", "replyTo": "m6", "type": message, "payload": payload})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func plain(t testing.TB, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func TestEveryMessageComesBackAsItWas(t *testing.T) {
	for message, rows := range rowsByMessage(t) {
		for name, full := range map[string]bool{"with every field": true, "with its required fields only": false} {
			t.Run(message+" "+name, func(t *testing.T) {
				sent := frameOf(t, message, document(rows, full))
				f, werr := Decode(sent)
				if werr != nil {
					t.Fatalf("Decode: %v in %s", werr, sent)
				}
				if f.ID != "m7" || f.ReplyTo != "m6" || f.Message.Type() != Type(message) {
					t.Errorf("got %q answering %q of type %q", f.ID, f.ReplyTo, f.Message.Type())
				}
				again, err := Encode(f)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(plain(t, sent), plain(t, again)); diff != "" {
					t.Errorf("sent (-) and encoded again (+) differ:\n%s", diff)
				}
			})
		}
	}
}

func TestEveryFieldIsChecked(t *testing.T) {
	for message, rows := range rowsByMessage(t) {
		t.Run(message, func(t *testing.T) {
			for _, r := range rows {
				if r.field != "-" {
					checkField(t, rows, r)
				}
			}
		})
	}
}

// checkField breaks one field of a complete message in every way it can be
// broken, and wants each error to name the field.
func checkField(t *testing.T, rows []row, r row) {
	t.Helper()
	for _, what := range breakages(r) {
		werr := decodeWith(t, rows, r, what.value)
		switch {
		case what.path == "" && werr != nil:
			t.Errorf("%s %s is refused: %v", r.field, what.name, werr)
		case what.path == "" && werr == nil:
		case werr == nil:
			t.Errorf("%s %s is taken", r.field, what.name)
		case werr.Code != CodeInvalidMessage || werr.Path != what.path || werr.RequestID != "m7":
			t.Errorf("%s %s gives %q at %q for %q, want invalid_message at %q for m7",
				r.field, what.name, werr.Code, werr.Path, werr.RequestID, what.path)
		case !strings.HasPrefix(werr.Message, r.message+": "+what.path+" "):
			t.Errorf("%s %s: the sentence does not begin with the message and the path: %s", r.field, what.name, werr.Message)
		}
	}
}

// breakage is a value to put into a field, and the path that the error has to
// name; none if the value is allowed.
type breakage struct {
	name  string
	value any
	path  string
}

func breakages(r row) []breakage {
	path := "payload." + strings.ReplaceAll(r.field, "[]", "[0]")
	ifRequired := ""
	if r.isRequired() {
		ifRequired = path
	}
	all := []breakage{{"absent", absent, ifRequired}, {"as null", nil, ifRequired}}
	for kind, value := range map[string]any{
		"string": "word", "number": 1.5, "boolean": true, "list": []any{}, "object": map[string]any{},
	} {
		if !strings.HasPrefix(r.typ, kind) {
			all = append(all, breakage{"as a " + kind, value, path})
		}
	}
	if of, list := strings.CutPrefix(r.typ, "list of "); list && of != "any" {
		all = append(all,
			breakage{"with a list inside", []any{[]any{}}, path + "[0]"},
			breakage{"with a null inside", []any{nil}, path + "[0]"})
	}
	switch {
	case r.enum != "-" && r.typ == "string":
		all = append(all, breakage{"with an unknown value", "no_such", path})
	case r.enum != "-":
		all = append(all, breakage{"with an unknown value", []any{"no_such"}, path + "[0]"})
	case r.format != "-":
		all = append(all, breakage{"in another form", "tomorrow", path})
	case r.atLeast != "-":
		least, _ := strconv.Atoi(r.atLeast)
		all = append(all, breakage{"at its least", least, ""}, breakage{"below its least", least - 1, path})
	case r.typ == "integer" || r.typ == "number":
		all = append(all, breakage{"below zero", -3, ""})
	}
	if r.typ == "integer" {
		all = append(all, breakage{"beyond what every JSON reader keeps", 1 << 53, path})
	}
	return all
}

// decodeWith decodes a complete message in which one field has another value.
func decodeWith(t *testing.T, rows []row, r row, value any) *WireError {
	t.Helper()
	doc := document(rows, true)
	put(doc, r.field, value)
	_, werr := Decode(frameOf(t, r.message, doc))
	return werr
}

// put gives a field of a document another value, or takes it out.
func put(doc map[string]any, field string, value any) {
	parent, key := find(doc, field)
	if parent[key] = value; value == absent {
		delete(parent, key)
	}
}

// absent stands for a field that is not there.
var absent = new(int)
