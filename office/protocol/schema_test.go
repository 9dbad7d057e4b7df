package protocol

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// This file makes the JSON Schema from the plans, and sees to it that the file
// that is embedded is the one the types give.

var update = flag.Bool("update", false, "write schema/agent-protocol-3.json")

func TestSchemaIsThatOfTheTypes(t *testing.T) {
	want := makeSchema(t)
	if *update {
		if err := os.WriteFile("schema/agent-protocol-3.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(Schema())); diff != "" {
		t.Errorf("run go generate: the types (-) and the schema (+) differ:\n%s", diff)
	}
}

// object is a JSON object of the schema.
type object = map[string]any

func makeSchema(t *testing.T) []byte {
	t.Helper()
	defs := object{}
	var frames []any
	for _, s := range Specs() {
		p := planOf(reflect.TypeOf(s.zero))
		frame := object{
			"title": string(s.Type),
			"properties": object{
				"id":      object{"type": "string", "minLength": 1},
				"replyTo": object{"type": "string"},
				"type":    object{"const": string(s.Type)},
				"payload": defineObject(defs, p),
			},
			"required": []string{"id", "type"},
		}
		if p.required != 0 {
			frame["required"] = []string{"id", "type", "payload"}
		}
		frames = append(frames, frame)
	}
	team := planOf(reflect.TypeFor[TeamConfig]())
	defs["Welcome"].(object)["properties"].(object)["team"] = defineObject(defs, team)
	out, err := json.MarshalIndent(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "Agent protocol, version 3",
		"type":    "object",
		"oneOf":   frames,
		"$defs":   defs,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// defineObject adds a plan to the definitions and returns a reference to it.
func defineObject(defs object, p *plan) object {
	ref := object{"$ref": "#/$defs/" + p.name}
	if _, known := defs[p.name]; known {
		return ref
	}
	def := object{"type": "object"}
	defs[p.name] = def
	properties, required := object{}, []string{}
	for name, at := range p.byName {
		f := &p.fields[at]
		properties[name] = schemaOf(defs, &f.node)
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

func schemaOf(defs object, n *node) object {
	switch n.shape {
	case shapeAny:
		return object{}
	case shapeRawObject:
		return object{"type": "object"}
	case shapeObject:
		return defineObject(defs, n.object)
	case shapeList:
		return object{"type": "array", "items": schemaOf(defs, n.elem)}
	case shapeMap:
		return object{"type": "object", "additionalProperties": schemaOf(defs, n.elem)}
	case shapeString:
		return schemaOfString(n)
	default:
		return object{"type": typeOf(n)}
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
