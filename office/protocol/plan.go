package protocol

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// This file turns the Go types into plans: what may stand where in a message.
// A plan is made once for each type, from the types and tags of its fields;
// Decode, the JSON Schema and the test against the contract all read it.
//
// A field is required unless its json tag says omitzero. The wire tag adds:
//
//	optional   may be absent although it is always written
//	alias=x    is read under the name x too
//	url        an absolute URL
//	time       an ISO-8601 timestamp
//	date       a timestamp or a day
//	min=x      a number that is at least x
//	object     of a Raw: a JSON object
//	borrow     of a Raw: shares the frame's memory
//
// A field of type Raw whose json tag says embed keeps the members that the
// plan does not know, where the office passes them on.

// shape is what kind of JSON value a node takes.
type shape int

const (
	shapeAny shape = iota
	shapeRawObject
	shapeString
	shapeInteger
	shapeNumber
	shapeBoolean
	shapeObject
	shapeList
	shapeMap
)

// node is one value of a message.
type node struct {
	shape  shape
	enum   []string
	format string // "", "url", "time" or "date"
	min    *int   // of a number
	borrow bool
	elem   *node // of a list or a map
	object *plan // of an object
}

// plan is what an object holds.
type plan struct {
	name     string // of the Go type
	fields   []field
	byName   map[string]int
	required uint64 // a bit for each of fields
	extra    int    // the index of the Go field for unknown members; -1 if there is none
}

// field is one member of an object.
type field struct {
	name     string
	index    int
	optional bool
	pointer  bool
	node     node
}

// enumerated is a string type of which only some values are allowed.
type enumerated interface{ values() []string }

var (
	rawType        = reflect.TypeFor[Raw]()
	enumeratedType = reflect.TypeFor[enumerated]()
	plans          sync.Map // of reflect.Type to *plan
)

// planOf returns the plan of a struct type.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{name: t.Name(), byName: make(map[string]int, t.NumField()), extra: -1}
	for i := range t.NumField() {
		p.add(i, t.Field(i))
	}
	actual, _ := plans.LoadOrStore(t, p)
	return actual.(*plan)
}

func (p *plan) add(index int, sf reflect.StructField) {
	name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if options == "embed" {
		p.extra = index
		return
	}
	f := field{name: name, index: index, optional: options == "omitzero"}
	t := sf.Type
	if t.Kind() == reflect.Pointer {
		f.pointer, t = true, t.Elem()
	}
	f.node = nodeOf(t)
	at := len(p.fields)
	p.byName[name] = at
	for tag := range strings.SplitSeq(sf.Tag.Get("wire"), ",") {
		switch key, value, _ := strings.Cut(tag, "="); key {
		case "optional":
			f.optional = true
		case "alias":
			p.byName[value] = at
		case "url", "time", "date":
			f.node.format = key
		case "min":
			f.node.min = new(mustInt(value))
		case "object":
			f.node.shape = shapeRawObject
		case "borrow":
			f.node.borrow = true
		}
	}
	if !f.optional {
		p.required |= 1 << at
	}
	p.fields = append(p.fields, f)
}

// mustInt reads a number of a tag, which is our own.
func mustInt(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(fmt.Sprintf("protocol: a tag has %q for a number", s))
	}
	return n
}

// nodeOf returns the node of a Go type. The types are our own, so one that has
// no place on the wire is a mistake in this package.
func nodeOf(t reflect.Type) node {
	if t == rawType {
		return node{shape: shapeAny}
	}
	switch t.Kind() {
	case reflect.String:
		n := node{shape: shapeString}
		if t.Implements(enumeratedType) {
			n.enum = reflect.Zero(t).Interface().(enumerated).values()
		}
		return n
	case reflect.Int, reflect.Int64:
		return node{shape: shapeInteger}
	case reflect.Float64:
		return node{shape: shapeNumber}
	case reflect.Bool:
		return node{shape: shapeBoolean}
	case reflect.Struct:
		return node{shape: shapeObject, object: planOf(t)}
	case reflect.Slice:
		elem := nodeOf(t.Elem())
		return node{shape: shapeList, elem: &elem}
	case reflect.Map:
		elem := nodeOf(t.Elem())
		return node{shape: shapeMap, elem: &elem}
	default:
		panic(fmt.Sprintf("protocol: type %s has no place on the wire", t))
	}
}
