package feed

// This file reads JSON in place, without building values: what every record goes through must be fast, and payloads must stay as they are.
// It accepts exactly what JSON allows, nested at most maxDepth deep. Functions take the data and a position, and give the position behind
// what they read; ok is false where the data is no JSON.

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep JSON may be nested, which is what the standard library allows as well.
const maxDepth = 10000

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

// token is a string of the data without its quotes.
type token struct {
	raw     []byte
	escaped bool
}

// is compares without building a string where it can.
func (t token) is(s string) bool {
	if !t.escaped {
		return string(t.raw) == s
	}
	text, ok := t.text()
	return ok && text == s
}

// text gives the string; ok is false where it is no Unicode, such as half of a surrogate pair, and could not be written again.
func (t token) text() (s string, ok bool) {
	if !t.escaped {
		return string(t.raw), utf8.Valid(t.raw)
	}
	var b strings.Builder
	for i := 0; i < len(t.raw); i++ {
		if t.raw[i] != '\\' {
			b.WriteByte(t.raw[i])
			continue
		}
		i++
		if t.raw[i] != 'u' {
			b.WriteByte(unescape(t.raw[i]))
			continue
		}
		r := hex4(t.raw[i+1:])
		i += 4
		if utf16.IsSurrogate(r) {
			if i+7 > len(t.raw) || t.raw[i+1] != '\\' || t.raw[i+2] != 'u' {
				return "", false
			}
			if r = utf16.DecodeRune(r, hex4(t.raw[i+3:])); r == utf8.RuneError {
				return "", false
			}
			i += 6
		}
		b.WriteRune(r)
	}
	return b.String(), utf8.ValidString(b.String())
}

// unescape gives what a letter behind a backslash stands for.
func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hex4 reads four hexadecimal digits that scanString has seen.
func hex4(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 32)
	return rune(n)
}

// plain marks the bytes that stand for themselves in a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// skipPlain skips bytes of a string that stand for themselves, eight at a time while none of them is special: below 0x20 (the first term),
// a quote or a backslash (a byte that is zero after the xor makes a borrow that its top bit shows).
func skipPlain(data []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for i+8 <= len(data) {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if ((w-ones*' ')&^w|(quote-ones)&^quote|(slash-ones)&^slash)&tops != 0 {
			break
		}
		i += 8
	}
	for i < len(data) && plain[data[i]] {
		i++
	}
	return i
}

// scanString reads a string.
func scanString(data []byte, i int) (t token, end int, ok bool) {
	if i >= len(data) || data[i] != '"' {
		return t, i, false
	}
	i++
	start := i
	for {
		i = skipPlain(data, i)
		if i >= len(data) || data[i] < ' ' {
			return t, i, false
		}
		if data[i] == '"' {
			return token{data[start:i], t.escaped}, i + 1, true
		}
		t.escaped = true
		n := escapeLen(data[i:])
		if n == 0 {
			return t, i, false
		}
		i += n
	}
}

// escapeLen is the length of the escape sequence that b begins with, 0 where it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func skipDigits(data []byte, i int) (end int, ok bool) {
	start := i
	for i < len(data) && isDigit(data[i]) {
		i++
	}
	return i, i > start
}

// scanNumber reads a number.
func scanNumber(data []byte, i int) (end int, ok bool) {
	if i < len(data) && data[i] == '-' {
		i++
	}
	first := i
	if i, ok = skipDigits(data, i); !ok || data[first] == '0' && i > first+1 {
		return i, false
	}
	if i < len(data) && data[i] == '.' {
		if i, ok = skipDigits(data, i+1); !ok {
			return i, false
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		return skipDigits(data, i)
	}
	return i, true
}

// scanWord reads true, false or null.
func scanWord(data []byte, i int, word string) (end int, ok bool) {
	if len(data)-i < len(word) || string(data[i:i+len(word)]) != word {
		return i, false
	}
	return i + len(word), true
}

// skipValue reads any value, which begins at i. depth is how deep it is nested.
func skipValue(data []byte, i, depth int) (end int, ok bool) {
	if i >= len(data) {
		return i, false
	}
	switch data[i] {
	case '"':
		_, end, ok = scanString(data, i)
		return end, ok
	case '{':
		m := members{data: data, pos: i, depth: depth}
		for m.next() {
			if !m.skip() {
				return m.pos, false
			}
		}
		return m.pos, m.ok()
	case '[':
		e := elements{data: data, pos: i, depth: depth}
		for e.next() {
			if !e.skip() {
				return e.pos, false
			}
		}
		return e.pos, e.ok()
	case 't':
		return scanWord(data, i, "true")
	case 'f':
		return scanWord(data, i, "false")
	case 'n':
		return scanWord(data, i, "null")
	}
	return scanNumber(data, i)
}

// members walks over an object. After each next, key is the member's name and pos where its value begins; whoever reads the value sets pos
// behind it. After the last one pos is behind the object.
type members struct {
	data   []byte
	pos    int
	depth  int
	key    token
	begun  bool
	failed bool
}

func (m *members) next() bool {
	i := skipSpace(m.data, m.pos)
	if i >= len(m.data) || m.depth >= maxDepth {
		m.failed = true
		return false
	}
	switch c := m.data[i]; {
	case !m.begun && c == '{':
		m.begun = true
		i = skipSpace(m.data, i+1)
		if i < len(m.data) && m.data[i] == '}' {
			m.pos = i + 1
			return false
		}
	case m.begun && c == ',':
		i = skipSpace(m.data, i+1)
	case m.begun && c == '}':
		m.pos = i + 1
		return false
	default:
		m.failed = true
		return false
	}
	var ok bool
	if m.key, i, ok = scanString(m.data, i); !ok {
		m.failed = true
		return false
	}
	if i = skipSpace(m.data, i); i >= len(m.data) || m.data[i] != ':' {
		m.failed = true
		return false
	}
	m.pos = skipSpace(m.data, i+1)
	return true
}

func (m *members) skip() bool {
	end, ok := skipValue(m.data, m.pos, m.depth+1)
	m.pos, m.failed = end, !ok
	return ok
}

func (m *members) ok() bool { return !m.failed }

// elements walks over an array as members does over an object.
type elements struct {
	data   []byte
	pos    int
	depth  int
	begun  bool
	failed bool
}

func (e *elements) next() bool {
	i := skipSpace(e.data, e.pos)
	if i >= len(e.data) || e.depth >= maxDepth {
		e.failed = true
		return false
	}
	switch c := e.data[i]; {
	case !e.begun && c == '[':
		e.begun = true
		i = skipSpace(e.data, i+1)
		if i < len(e.data) && e.data[i] == ']' {
			e.pos = i + 1
			return false
		}
		e.pos = i
	case e.begun && c == ',':
		e.pos = skipSpace(e.data, i+1)
	case e.begun && c == ']':
		e.pos = i + 1
		return false
	default:
		e.failed = true
		return false
	}
	return true
}

func (e *elements) skip() bool {
	end, ok := skipValue(e.data, e.pos, e.depth+1)
	e.pos, e.failed = end, !ok
	return ok
}

func (e *elements) ok() bool { return !e.failed }

// whole says whether the data is one JSON value and nothing else.
func whole(data []byte) bool {
	end, ok := skipValue(data, skipSpace(data, 0), 0)
	return ok && skipSpace(data, end) == len(data)
}
