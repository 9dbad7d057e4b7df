package feed

// This file turns the JSON Schema of the session events into what Classify checks payloads with, so that there is one place that says
// what a payload has to look like.

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

//go:embed schema/session-events-6.json
var schemaJSON []byte

// Schema is the JSON Schema (draft 2020-12) of records, the session object and the stream's frames. Its $defs record, session and frame
// are the ones to hold documents against.
func Schema() []byte { return schemaJSON }

// jsonType is a set of the types of JSON values.
type jsonType uint8

const (
	isNull jsonType = 1 << iota
	isBool
	isInteger
	isFraction
	isString
	isArray
	isObject
	isAnything jsonType = 1<<iota - 1
)

var schemaTypes = map[string]jsonType{
	"null": isNull, "boolean": isBool, "integer": isInteger, "number": isInteger | isFraction,
	"string": isString, "array": isArray, "object": isObject,
}

// shape is what a value has to look like.
type shape struct {
	types jsonType
	// values are the strings that it may be, if it is a string; nil allows all.
	values []string
	// items is the shape of an array's elements; nil allows all.
	items *shape
	// fields are the members of an object that have a shape. Those with a bit in required have to be there; with closed, no others may.
	fields   []field
	required uint64
	closed   bool
	// by is the member that tells which of variants an object is; empty where there are none.
	by       string
	variants map[string]*shape
}

type field struct {
	name  string
	shape *shape
}

// variantKey is how the variant of a record is found.
type variantKey struct{ source, format, recordType string }

type variant struct {
	kind    Kind
	payload *shape
}

// variants of records, but for the unknown ones.
var variants = sync.OnceValue(func() map[variantKey]variant {
	v, err := compileVariants(schemaJSON)
	if err != nil {
		panic("the schema of the session events: " + err.Error()) // the schema is a part of this package, and a test compiles it
	}
	return v
})

// schemaNode is the part of JSON Schema that the shapes of payloads are written in.
type schemaNode struct {
	Ref                  string                     `json:"$ref"`
	Type                 json.RawMessage            `json:"type"`
	Const                *string                    `json:"const"`
	Enum                 []*string                  `json:"enum"`
	Items                json.RawMessage            `json:"items"`
	Properties           map[string]json.RawMessage `json:"properties"`
	Required             []string                   `json:"required"`
	AdditionalProperties *bool                      `json:"additionalProperties"`
	OneOf                []json.RawMessage          `json:"oneOf"`
	Title                string                     `json:"title"`
	Description          string                     `json:"description"`
}

type compiler struct {
	defs map[string]json.RawMessage
	done map[string]*shape
}

func compileVariants(schema []byte) (map[variantKey]variant, error) {
	var root struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, err
	}
	c := compiler{defs: root.Defs, done: map[string]*shape{}}
	record, err := readNode(root.Defs["record"])
	if err != nil {
		return nil, err
	}
	out := map[variantKey]variant{}
	for _, raw := range record.OneOf {
		var v struct {
			Properties struct {
				Kind    schemaNode      `json:"kind"`
				Source  schemaNode      `json:"source"`
				Format  schemaNode      `json:"record_format"`
				Type    schemaNode      `json:"record_type"`
				Payload json.RawMessage `json:"payload"`
			} `json:"properties"`
		}
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
		p := v.Properties
		if Kind(*p.Kind.Const) == KindUnknown {
			continue
		}
		payload, err := c.compile(p.Payload)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", *p.Format.Const, *p.Type.Const, err)
		}
		out[variantKey{*p.Source.Const, *p.Format.Const, *p.Type.Const}] = variant{Kind(*p.Kind.Const), payload}
	}
	return out, nil
}

// readNode reads a part of the schema. A keyword that shapes do not know is an error: it would not be checked.
func readNode(raw json.RawMessage) (schemaNode, error) {
	var n schemaNode
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	return n, dec.Decode(&n)
}

func (c *compiler) compile(raw json.RawMessage) (*shape, error) {
	n, err := readNode(raw)
	if err != nil {
		return nil, err
	}
	if n.Ref != "" {
		return c.ref(strings.TrimPrefix(n.Ref, "#/$defs/"))
	}
	if n.OneOf != nil {
		return c.union(n.OneOf)
	}
	s := &shape{types: isAnything}
	if err := s.setTypes(n); err != nil {
		return nil, err
	}
	if n.Items != nil {
		if s.items, err = c.compile(n.Items); err != nil {
			return nil, err
		}
	}
	s.closed = n.AdditionalProperties != nil && !*n.AdditionalProperties
	return s, c.setFields(s, n)
}

// ref compiles a definition once.
func (c *compiler) ref(name string) (*shape, error) {
	if s := c.done[name]; s != nil {
		return s, nil
	}
	if c.defs[name] == nil {
		return nil, fmt.Errorf("there is no definition %q", name)
	}
	s, err := c.compile(c.defs[name])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.done[name] = s
	return s, nil
}

func (s *shape) setTypes(n schemaNode) error {
	if n.Type != nil {
		var names []string
		if n.Type[0] != '[' {
			names = make([]string, 1)
			if err := json.Unmarshal(n.Type, &names[0]); err != nil {
				return err
			}
		} else if err := json.Unmarshal(n.Type, &names); err != nil {
			return err
		}
		s.types = 0
		for _, name := range names {
			s.types |= schemaTypes[name]
		}
	}
	allowed := n.Enum
	if n.Const != nil {
		allowed = []*string{n.Const}
	}
	if allowed == nil {
		return nil
	}
	types := jsonType(0)
	for _, v := range allowed {
		if v == nil {
			types |= isNull
			continue
		}
		types |= isString
		s.values = append(s.values, *v)
	}
	s.types &= types
	return nil
}

// setFields takes the members of an object, the required ones first: they come first in payloads too, mostly.
func (c *compiler) setFields(s *shape, n schemaNode) error {
	rest := map[string]bool{}
	for name := range n.Properties {
		rest[name] = true
	}
	for _, name := range n.Required {
		if !rest[name] {
			return fmt.Errorf("the required member %q has no shape", name)
		}
		delete(rest, name)
	}
	names := append([]string(nil), n.Required...)
	for name := range rest {
		names = append(names, name)
	}
	if len(names) > 64 {
		return fmt.Errorf("an object has %d members, 64 are the most", len(names))
	}
	for i, name := range names {
		member, err := c.compile(n.Properties[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.fields = append(s.fields, field{name, member})
		if i < len(n.Required) {
			s.required |= 1 << i
		}
	}
	return nil
}

// union compiles variants of an object that a constant member tells apart.
func (c *compiler) union(nodes []json.RawMessage) (*shape, error) {
	s := &shape{types: isObject, by: "type", variants: map[string]*shape{}}
	for _, raw := range nodes {
		v, err := c.compile(raw)
		if err != nil {
			return nil, err
		}
		name := v.constant(s.by)
		if name == "" || s.variants[name] != nil || v.types != isObject {
			return nil, fmt.Errorf("the variants of an object need different constants in their required member %q", s.by)
		}
		s.variants[name] = v
	}
	return s, nil
}

// constant is the one string that a required member can be.
func (s *shape) constant(member string) string {
	for i, f := range s.fields {
		if f.name == member && s.required&(1<<i) != 0 && f.shape.types == isString && len(f.shape.values) == 1 {
			return f.shape.values[0]
		}
	}
	return ""
}
