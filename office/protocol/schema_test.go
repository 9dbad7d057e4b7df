package protocol

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// This file makes the JSON Schema from the plans and the comments, sees to it
// that the file that is embedded is the one the types give, and has a validator
// that knows nothing of this package agree with Decode.

var update = flag.Bool("update", false, "write the files that are made from the types")

func TestSchemaIsThatOfTheTypes(t *testing.T) {
	want := schemaMaker{t: t, source: readSource(t), defs: object{}}.make()
	if *update {
		writeGenerated(t, "schema/agent-protocol-3.json", want)
		return
	}
	if diff := cmp.Diff(string(want), string(Schema())); diff != "" {
		t.Errorf("run go generate: the types (-) and the schema (+) differ:\n%s", diff)
	}
}

// object is a JSON object of the schema.
type object = map[string]any

// schemaMaker collects the definitions of a schema.
type schemaMaker struct {
	t      *testing.T
	source *source
	defs   object
}

func (m schemaMaker) make() []byte {
	m.t.Helper()
	var frames []any
	for _, s := range Specs() {
		typ := reflect.TypeOf(s.zero)
		frame := object{
			"title": string(s.Type),
			"properties": object{
				"id":      object{"type": "string", "minLength": 1, "maxLength": MaxID},
				"replyTo": object{"type": "string"},
				"type":    object{"const": string(s.Type)},
				"payload": m.define(typ),
			},
			"required": []string{"id", "type"},
		}
		if planOf(typ).required != 0 {
			frame["required"] = []string{"id", "type", "payload"}
		}
		frames = append(frames, frame)
	}
	team := m.define(reflect.TypeFor[TeamConfig]())
	team["description"] = m.defs["Welcome"].(object)["properties"].(object)["team"].(object)["description"]
	m.defs["Welcome"].(object)["properties"].(object)["team"] = team
	out, err := json.MarshalIndent(object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         "urn:bullpen:agent-protocol:3",
		"title":       "Agent protocol, version 3",
		"description": "A frame of the agent protocol: one JSON text of at most 1 MiB that nests at most 64 levels and has no name twice.",
		"type":        "object",
		"oneOf":       frames,
		"$defs":       m.defs,
	}, "", "  ")
	if err != nil {
		m.t.Fatal(err)
	}
	return append(out, '\n')
}

// define adds a struct type to the definitions and returns a reference to it.
func (m schemaMaker) define(typ reflect.Type) object {
	name := typ.Name()
	ref := object{"$ref": "#/$defs/" + name}
	if _, known := m.defs[name]; known {
		return ref
	}
	p, doc := planOf(typ), m.source.types[name]
	def := object{"type": "object", "description": m.source.plainly(m.t, described(name, wireName(typ), doc.doc))}
	m.defs[name] = def
	properties, required := object{}, []string{}
	for name, at := range p.byName {
		f := &p.fields[at]
		goField := typ.Field(f.index)
		s := m.of(&f.node, goField.Type)
		s["description"] = m.source.plainly(m.t, described(goField.Name, name, doc.fields[goField.Name]))
		properties[name] = s
		if !f.optional {
			required = append(required, name)
		}
	}
	if len(properties) > 0 {
		def["properties"] = properties
	}
	if slices.Sort(required); len(required) > 0 {
		def["required"] = required
	}
	return ref
}

// of describes one value, whose Go type is typ or a pointer to it.
func (m schemaMaker) of(n *node, typ reflect.Type) object {
	switch n.shape {
	case shapeAny:
		return object{}
	case shapeRawObject:
		return object{"type": "object"}
	case shapeObject:
		return m.define(inner(typ))
	case shapeList:
		return object{"type": "array", "items": m.of(n.elem, typ.Elem())}
	case shapeMap:
		return object{"type": "object", "additionalProperties": m.of(n.elem, typ.Elem())}
	case shapeString:
		return schemaOfString(n)
	case shapeInteger:
		s := object{"type": "integer", "minimum": -maxInteger, "maximum": maxInteger}
		if n.min != nil {
			s["minimum"] = *n.min
		}
		return s
	default:
		s := object{"type": typeOf(n)}
		if n.min != nil {
			s["minimum"] = *n.min
		}
		return s
	}
}

func schemaOfString(n *node) object {
	s := object{"type": "string"}
	if n.enum != nil {
		s["enum"] = n.enum
	}
	switch n.format {
	case "url":
		s["format"] = "uri"
	case "time":
		s["format"] = "date-time"
	case "date":
		s["anyOf"] = []object{{"format": "date"}, {"format": "date-time"}}
	}
	return s
}

// validators gives the schema, or the part of it at a JSON pointer, in a library
// of somebody else's, with the formats checked, too.
func validators(t *testing.T) func(pointer string) (validate func(frame []byte) error) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const url = "urn:bullpen:agent-protocol:3"
	if err := c.AddResource(url, parsed(t, Schema())); err != nil {
		t.Fatal(err)
	}
	return func(pointer string) func([]byte) error {
		s, err := c.Compile(url + "#" + pointer)
		if err != nil {
			t.Fatalf("the schema is not valid: %v", err)
		}
		if s.DraftVersion != 2020 {
			t.Fatalf("the schema is of draft %d", s.DraftVersion)
		}
		return func(frame []byte) error { return s.Validate(parsed(t, frame)) }
	}
}

// parsed is JSON as the validator wants it, with its numbers as they are.
func parsed(t *testing.T, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func TestTheSchemaTakesEverySample(t *testing.T) {
	validate := validators(t)("")
	for _, f := range samples {
		data, err := Encode(f)
		if err != nil {
			t.Errorf("%s: %v", f.Message.Type(), err)
			continue
		}
		if err := validate(data); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestThereIsASampleOfEveryMessage(t *testing.T) {
	var want, got []Type
	for _, s := range Specs() {
		want = append(want, s.Type)
	}
	for _, f := range samples {
		got = append(got, f.Message.Type())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the messages (-) and the samples (+) differ:\n%s", diff)
	}
}

// Whatever is done to one field of a message, the schema and Decode agree about
// it. Only two things are outside of a schema's reach: a null for a field that
// is optional, which Decode takes for an absent one, and what a team config is,
// which Decode leaves to its reader.
func TestTheSchemaAgreesWithTheDecoder(t *testing.T) {
	rowsOf, validatorOf, tried := rowsByMessage(t), validators(t), 0
	for i, s := range Specs() {
		rows, validate := rowsOf[string(s.Type)], validatorOf(fmt.Sprintf("/oneOf/%d", i))
		agree := func(what string, doc object) {
			t.Helper()
			if team, ok := doc["team"].(object); ok {
				team["name"] = "shop"
			}
			frame := frameOf(t, string(s.Type), doc)
			_, werr := Decode(frame)
			if err := validate(frame); (err == nil) != (werr == nil) {
				t.Errorf("%s %s: the schema says %v, the decoder %v", s.Type, what, err, werr)
			}
			tried++
		}
		agree("with every field", document(rows, true))
		agree("with its required fields only", document(rows, false))
		for _, r := range rows {
			for _, b := range breakages(r) {
				if r.field == "-" || b.name == "as null" && !r.isRequired() {
					continue
				}
				doc := document(rows, true)
				put(doc, r.field, b.value)
				agree("with "+r.field+" "+b.name, doc)
			}
		}
	}
	if tried < 3000 {
		t.Errorf("only %d frames were tried", tried)
	}
}

func TestTheSchemaKnowsWhatAFrameIs(t *testing.T) {
	validate := validators(t)("")
	for name, tc := range map[string]struct {
		frame string
		taken bool
	}{
		"an unknown member":    {`{"id":"m1","type":"ping","v":4,"payload":{"x":1}}`, true},
		"no payload":           {`{"id":"m1","type":"ping"}`, true},
		"a payload is missing": {`{"id":"m1","type":"progress"}`, false},
		"no id":                {`{"type":"ping"}`, false},
		"an empty id":          {`{"id":"","type":"ping"}`, false},
		"an unknown type":      {`{"id":"m1","type":"dance"}`, false},
		"a list":               {`[]`, false},
		"usage by other names": {usageFrame(`{"cacheReadInputTokens":3,"costUSD":0.5}`), true},
		"usage below zero":     {usageFrame(`{"cacheReadInputTokens":-3}`), false},
		"a member of a file that is not known": {
			`{"id":"m1","type":"chat_message","payload":{"messageId":"1","channel":"C","text":"","direct":false,"participant":false,` +
				`"author":{"id":"U","x":1},"files":[{"id":"F","name":"a","mimetype":"b","size":0,"url":"","y":{}}]}}`, true,
		},
	} {
		if err := validate([]byte(tc.frame)); (err == nil) != tc.taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}
