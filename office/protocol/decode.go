package protocol

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/bits"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// This file reads frames, strictly. JSON itself is the library's work; here the
// values are held against the plans of the messages.
//
// A member that the plan does not know is ignored, so that either side may be
// ahead of the other; in objects that the office passes on, it is kept. A null
// stands for an absent member where the member is optional, and is an error
// where it is required.

// Decode reads one frame. It returns a *WireError, ready to be answered, with
// CodeMalformed when the frame is no envelope, CodeUnknownType when its type is
// not in the protocol, and CodeInvalidMessage when its payload does not fit the
// type. The frame's memory is not kept.
func Decode(frame []byte) (Frame, *WireError) {
	if len(frame) > MaxFrame {
		return Frame{}, Errorf(CodeMalformed, "a frame may have %d bytes; this one has %d", MaxFrame, len(frame))
	}
	if tooDeep(frame) {
		return Frame{}, Errorf(CodeMalformed, "a frame may nest %d levels; this one is deeper", MaxDepth)
	}
	env, werr := decodeEnvelope(frame)
	if werr == nil {
		var m Message
		if m, werr = decodePayload(env); werr == nil {
			return Frame{ID: env.ID, ReplyTo: env.ReplyTo, Message: m}, nil
		}
	}
	werr.RequestID = env.ID
	return Frame{}, werr
}

// decodeEnvelope returns what it could read of the envelope, also beside an
// error. All of the frame's JSON has been checked when there is none.
func decodeEnvelope(frame []byte) (envelope, *WireError) {
	var env envelope
	werr := decodeValue(frame, "", &env)
	if werr != nil && werr.Path != "payload" {
		werr.Code = CodeMalformed
	}
	if n := len(env.ID); werr == nil && n == 0 || n > MaxID {
		werr = Errorf(CodeMalformed, "id must have 1 to %d bytes, not %d", MaxID, n)
		werr.Path, env.ID = "id", ""
	}
	return env, werr
}

func decodePayload(env envelope) (Message, *WireError) {
	spec, ok := specByType[Type(env.Type)]
	if !ok {
		werr := Errorf(CodeUnknownType, "type %q is not in version %d of the protocol", shorten(env.Type), Version)
		werr.Path = "type"
		return nil, werr
	}
	payload := env.Payload
	if payload == nil {
		payload = Raw("{}")
	}
	v := reflect.New(reflect.TypeOf(spec.zero))
	// The envelope's pass found no name twice; there is no need to look again.
	if werr := decodeReflect(payload, "payload", v, jsontext.AllowDuplicateNames(true)); werr != nil {
		werr.Message = env.Type + ": " + werr.Message
		return nil, werr
	}
	return v.Elem().Interface().(Message), nil
}

// decodeValue reads data, which must be one object, into the struct that into
// points to. Paths in errors begin with base.
func decodeValue(data []byte, base string, into any) *WireError {
	return decodeReflect(data, base, reflect.ValueOf(into))
}

func decodeReflect(data []byte, base string, into reflect.Value, opts ...jsontext.Options) *WireError {
	r := readers.Get().(*reader)
	defer r.release()
	r.reset(data, base, opts...)
	v := into.Elem()
	werr := r.object(planOf(v.Type()), v)
	if werr == nil {
		werr = r.end()
	}
	return werr
}

// DecodeObject reads data, which must be one JSON object, into the struct that
// into points to, as strictly as the payload of a message: its fields have the
// same tags. The error names the offending field by a path that begins with
// base. It is for objects that reach the office other than in a frame.
func DecodeObject(data []byte, base string, into any) *WireError {
	if tooDeep(data) {
		return Errorf(CodeInvalidMessage, "%s may nest %d levels; this one is deeper", base, MaxDepth)
	}
	return decodeValue(data, base, into)
}

// tooDeep looks at brackets outside of strings only; whether the frame is JSON
// comes later. It keeps the recursion of everything after it bounded.
func tooDeep(frame []byte) bool {
	depth, inString := 0, false
	for i := 0; i < len(frame); i++ {
		switch c := frame[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// reader walks over one JSON value.
type reader struct {
	dec  *jsontext.Decoder
	src  bytes.Buffer
	base string
}

var readers = sync.Pool{New: func() any { return &reader{dec: new(jsontext.Decoder)} }}

func (r *reader) reset(data []byte, base string, opts ...jsontext.Options) {
	r.src, r.base = *bytes.NewBuffer(data), base
	r.dec.Reset(&r.src, opts...)
}

// release lets go of the frame and puts the reader back.
func (r *reader) release() {
	r.reset(nil, "")
	readers.Put(r)
}

// value reads what n says into v.
func (r *reader) value(n *node, v reflect.Value) *WireError {
	switch n.shape {
	case shapeString:
		return r.string(n, v)
	case shapeInteger:
		return r.integer(n, v)
	case shapeNumber:
		return r.number(n, v)
	case shapeBoolean:
		return r.boolean(v)
	case shapeObject:
		return r.object(n.object, v)
	case shapeList:
		return r.list(n.elem, v)
	case shapeMap:
		return r.mapping(n.elem, v)
	default:
		return r.raw(n, v)
	}
}

func (r *reader) object(p *plan, v reflect.Value) *WireError {
	if werr := r.open(jsontext.KindBeginObject, "an object"); werr != nil {
		return werr
	}
	var seen uint64
	for r.dec.PeekKind() != jsontext.KindEndObject {
		name, werr := r.name()
		if werr != nil {
			return werr
		}
		at, known := p.byName[string(name)]
		switch {
		case !known && p.extra >= 0:
			if werr := r.keep(name, v.Field(p.extra)); werr != nil {
				return werr
			}
			continue
		case !known || p.fields[at].optional && r.dec.PeekKind() == jsontext.KindNull:
			if err := r.dec.SkipValue(); err != nil {
				return r.syntax(err)
			}
			continue
		}
		f := &p.fields[at]
		if seen&(1<<at) != 0 {
			return r.fail("is %s under a second name", f.name)
		}
		seen |= 1 << at
		if werr := r.field(f, v.Field(f.index)); werr != nil {
			return werr
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(err)
	}
	if missing := p.required &^ seen; missing != 0 {
		return r.failAt(join(r.path(), p.fields[bits.TrailingZeros64(missing)].name), "is required")
	}
	return nil
}

// keep adds a member that the plan does not know to the others of its object,
// which v, a Raw, has as one object.
func (r *reader) keep(name []byte, v reflect.Value) *WireError {
	// The name's bytes last only until the value is read.
	member, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		return r.syntax(err)
	}
	value, err := r.dec.ReadValue()
	if err != nil {
		return r.syntax(err)
	}
	object := v.Bytes()
	if len(object) == 0 {
		object = []byte{'{'}
	} else {
		object[len(object)-1] = ','
	}
	object = append(object, member...)
	object = append(object, ':')
	object = append(object, value...)
	v.SetBytes(append(object, '}'))
	return nil
}

func (r *reader) field(f *field, v reflect.Value) *WireError {
	if f.pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	return r.value(&f.node, v)
}

func (r *reader) list(elem *node, v reflect.Value) *WireError {
	if werr := r.open(jsontext.KindBeginArray, "a list"); werr != nil {
		return werr
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for n := 0; r.dec.PeekKind() != jsontext.KindEndArray; n++ {
		v.Grow(1)
		v.SetLen(n + 1)
		if werr := r.value(elem, v.Index(n)); werr != nil {
			return werr
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(err)
	}
	return nil
}

func (r *reader) mapping(elem *node, v reflect.Value) *WireError {
	if werr := r.open(jsontext.KindBeginObject, "an object"); werr != nil {
		return werr
	}
	v.Set(reflect.MakeMap(v.Type()))
	for r.dec.PeekKind() != jsontext.KindEndObject {
		name, werr := r.name()
		if werr != nil {
			return werr
		}
		key := reflect.ValueOf(string(name))
		value := reflect.New(v.Type().Elem()).Elem()
		if werr := r.value(elem, value); werr != nil {
			return werr
		}
		v.SetMapIndex(key, value)
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(err)
	}
	return nil
}

func (r *reader) string(n *node, v reflect.Value) *WireError {
	raw, werr := r.scalar(jsontext.KindString, "a string")
	if werr != nil {
		return werr
	}
	s, werr := r.unquote(raw)
	if werr != nil {
		return werr
	}
	if n.enum != nil {
		for _, e := range n.enum {
			if string(s) == e {
				v.SetString(e)
				return nil
			}
		}
		return r.fail("must be %s, not %q", oneOf(n.enum), shorten(string(s)))
	}
	text := string(s)
	if complaint := checkFormat(n.format, text); complaint != "" {
		return r.fail("%s", complaint)
	}
	v.SetString(text)
	return nil
}

// maxInteger is the largest integer that every JSON reader keeps exact: those
// that know only double precision, too.
const maxInteger = 1<<53 - 1

// integer takes every number without a fraction, however it is written.
func (r *reader) integer(n *node, v reflect.Value) *WireError {
	raw, werr := r.scalar(jsontext.KindNumber, "an integer")
	if werr != nil {
		return werr
	}
	i, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(raw), 64)
		if ferr != nil && !errors.Is(ferr, strconv.ErrRange) || f != math.Trunc(f) {
			return r.fail("must be an integer, not %s", shorten(string(raw)))
		}
		i = int64(max(-maxInteger-1, min(f, maxInteger+1)))
	}
	switch {
	case n.min != nil && i < int64(*n.min):
		return r.fail("must be at least %d, not %s", *n.min, shorten(string(raw)))
	case i < -maxInteger || i > maxInteger || v.OverflowInt(i):
		return r.fail("must be an integer of at most 53 bits, not %s", shorten(string(raw)))
	}
	v.SetInt(i)
	return nil
}

func (r *reader) number(n *node, v reflect.Value) *WireError {
	raw, werr := r.scalar(jsontext.KindNumber, "a number")
	if werr != nil {
		return werr
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return r.fail("must be a number that fits 64 bits, not %s", shorten(string(raw)))
	}
	if n.min != nil && f < float64(*n.min) {
		return r.fail("must be at least %d, not %s", *n.min, shorten(string(raw)))
	}
	v.SetFloat(f)
	return nil
}

func (r *reader) boolean(v reflect.Value) *WireError {
	t, err := r.dec.ReadToken()
	if err != nil {
		return r.syntax(err)
	}
	if k := t.Kind(); k != jsontext.KindTrue && k != jsontext.KindFalse {
		return r.fail("must be true or false, not %s", kindName(k))
	}
	v.SetBool(t.Kind() == jsontext.KindTrue)
	return nil
}

func (r *reader) raw(n *node, v reflect.Value) *WireError {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return r.syntax(err)
	}
	if k := raw.Kind(); n.shape == shapeRawObject && k != jsontext.KindBeginObject {
		return r.fail("must be an object, not %s", kindName(k))
	}
	if !n.borrow {
		raw = bytes.Clone(raw)
	}
	v.SetBytes(raw)
	return nil
}

// open reads the token that begins an object or a list.
func (r *reader) open(want jsontext.Kind, what string) *WireError {
	t, err := r.dec.ReadToken()
	if err != nil {
		return r.syntax(err)
	}
	if t.Kind() != want {
		return r.fail("must be %s, not %s", what, kindName(t.Kind()))
	}
	return nil
}

// scalar reads a value of the wanted kind. Its bytes last until the next read.
func (r *reader) scalar(want jsontext.Kind, what string) (Raw, *WireError) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, r.syntax(err)
	}
	if k := raw.Kind(); k != want {
		return nil, r.fail("must be %s, not %s", what, kindName(k))
	}
	return raw, nil
}

// name reads the name of an object's next member.
func (r *reader) name() ([]byte, *WireError) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, r.syntax(err)
	}
	return r.unquote(raw)
}

// unquote returns the text of a JSON string, without a copy if it can.
func (r *reader) unquote(raw Raw) ([]byte, *WireError) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	s, err := jsontext.AppendUnquote(nil, []byte(raw))
	if err != nil {
		return nil, r.syntax(err)
	}
	return s, nil
}

// end makes sure that nothing follows.
func (r *reader) end() *WireError {
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return Errorf(CodeMalformed, "something follows the JSON object")
	}
	return nil
}

// syntax reports what the library refused, without the bytes that it quotes:
// they could be part of a token.
func (r *reader) syntax(err error) *WireError {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Errorf(CodeMalformed, "the frame is not JSON: it ends too early")
	}
	path := join(r.base, dotted(s.JSONPointer))
	werr := Errorf(CodeMalformed, "the frame is not JSON in UTF-8 at byte %d", s.ByteOffset)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		werr = Errorf(CodeMalformed, "%s is there twice", path)
	}
	werr.Path = path
	return werr
}

// fail reports the value that was read last.
func (r *reader) fail(format string, args ...any) *WireError {
	return r.failAt(r.path(), format, args...)
}

func (r *reader) failAt(path, format string, args ...any) *WireError {
	subject := path
	if subject == "" {
		subject = "the frame"
	}
	werr := Errorf(CodeInvalidMessage, subject+" "+format, args...)
	werr.Path = path
	return werr
}

func (r *reader) path() string { return join(r.base, dotted(r.dec.StackPointer())) }

func join(base, rest string) string {
	if base == "" || rest == "" || rest[0] == '[' {
		return base + rest
	}
	return base + "." + rest
}

// dotted writes a JSON pointer the way the contract writes paths.
func dotted(p jsontext.Pointer) string {
	var s string
	for token := range p.Tokens() {
		token = shorten(token)
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			token = "[" + token + "]"
		}
		s = join(s, token)
	}
	return s
}

// checkFormat returns what is wrong with a string, if anything is.
func checkFormat(format, s string) string {
	switch format {
	case "url":
		if u, err := url.Parse(s); err != nil || !u.IsAbs() || u.Host == "" {
			return "must be an absolute URL such as https://example.com/page"
		}
	case "time":
		if _, ok := parseTime(s, timeLayouts); !ok {
			return "must be an ISO-8601 time with a zone, such as 2026-01-31T09:30:00Z"
		}
	case "date":
		if _, err := ParseTime(s); err != nil {
			return "must be an ISO-8601 date or time, such as 2026-01-31 or 2026-01-31T09:30:00Z"
		}
	}
	return ""
}

func oneOf(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// shorten keeps what a stranger sent from filling the log.
func shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	default:
		return "a list"
	}
}
