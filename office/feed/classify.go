package feed

// This file tells which kind a record has.

// Classify gives the kind of a record: the one that the schema has for its source, format and type, if the payload fits what the schema
// says of it, else KindUnknown. So a record of another kind can be read as what the schema promises, and one that cannot is kept all the
// same. A payload in which a member that the schema names comes twice fits nothing, because readers differ in which of both counts.
func Classify(source, format, recordType string, payload []byte) Kind {
	v, modeled := variants()[variantKey{source, format, recordType}]
	if !modeled {
		return KindUnknown
	}
	end, ok := v.payload.match(payload, skipSpace(payload, 0), 0)
	if !ok || skipSpace(payload, end) != len(payload) {
		return KindUnknown
	}
	return v.kind
}

// match reads a value and says whether it has the shape.
func (s *shape) match(data []byte, i, depth int) (end int, ok bool) {
	if i >= len(data) {
		return i, false
	}
	switch data[i] {
	case '{':
		if s.types&isObject == 0 {
			return i, false
		}
		return s.matchObject(data, i, depth)
	case '[':
		if s.types&isArray == 0 {
			return i, false
		}
		return s.matchArray(data, i, depth)
	case '"':
		t, end, ok := scanString(data, i)
		return end, ok && s.types&isString != 0 && s.allows(t)
	}
	end, ok = skipValue(data, i, depth)
	return end, ok && s.types&scalarType(data[i:end]) != 0
}

// scalarType is the type of a value that is neither string nor array nor object.
func scalarType(lit []byte) jsonType {
	switch {
	case len(lit) == 0:
		return 0
	case lit[0] == 'n':
		return isNull
	case lit[0] == 't', lit[0] == 'f':
		return isBool
	case integral(lit):
		return isInteger
	}
	return isFraction
}

func (s *shape) allows(t token) bool {
	if s.values == nil {
		return true
	}
	for _, v := range s.values {
		if t.is(v) {
			return true
		}
	}
	return false
}

func (s *shape) matchArray(data []byte, i, depth int) (end int, ok bool) {
	if s.items == nil {
		return skipValue(data, i, depth)
	}
	e := elements{data: data, pos: i, depth: depth}
	for e.next() {
		if e.pos, ok = s.items.match(data, e.pos, depth+1); !ok {
			return e.pos, false
		}
	}
	return e.pos, e.ok()
}

func (s *shape) matchObject(data []byte, i, depth int) (end int, ok bool) {
	if s.variants != nil {
		v := s.variants[discriminator(data, i, depth, s.by)]
		if v == nil {
			return i, false
		}
		s = v
	}
	if s.fields == nil && !s.closed {
		return skipValue(data, i, depth)
	}
	m := members{data: data, pos: i, depth: depth}
	var seen uint64
	for m.next() {
		n := s.field(m.key)
		if n < 0 {
			if s.closed || !m.skip() {
				return m.pos, false
			}
			continue
		}
		if seen&(1<<n) != 0 {
			return m.pos, false
		}
		seen |= 1 << n
		if m.pos, ok = s.fields[n].shape.match(data, m.pos, depth+1); !ok {
			return m.pos, false
		}
	}
	return m.pos, m.ok() && seen&s.required == s.required
}

func (s *shape) field(key token) int {
	for i := range s.fields {
		if key.is(s.fields[i].name) {
			return i
		}
	}
	return -1
}

// discriminator is the string that a member of an object has, empty where there is none. It is first, mostly.
func discriminator(data []byte, i, depth int, member string) string {
	m := members{data: data, pos: i, depth: depth}
	for m.next() {
		if m.key.is(member) {
			t, _, _ := scanString(data, m.pos)
			s, _ := t.text()
			return s
		}
		if !m.skip() {
			break
		}
	}
	return ""
}
