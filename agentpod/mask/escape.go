package mask

// This file reads the escapes of JSON strings.

import (
	"unicode/utf16"
	"unicode/utf8"
)

var plainEscapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f'}

// unescape reads the escape that data begins with: its text, the text's size, and how many bytes of data it takes. A size of 0 says that it
// is none.
func unescape(data []byte) (text [4]byte, size, taken int) {
	if len(data) < 2 {
		return text, 0, 0
	}
	if plain, ok := plainEscapes[data[1]]; ok {
		text[0] = plain
		return text, 1, 2
	}
	r, ok := unicodeEscape(data)
	if !ok {
		return text, 0, 0
	}
	taken = 6
	if utf16.IsSurrogate(r) {
		second, ok := unicodeEscape(data[6:])
		if pair := utf16.DecodeRune(r, second); ok && pair != utf8.RuneError {
			r, taken = pair, 12
		}
	}
	return text, utf8.EncodeRune(text[:], r), taken
}

// unicodeEscape reads \u and four hexadecimal digits.
func unicodeEscape(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range data[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// openEscape returns where an escape begins that the data's end may have cut, or the data's length.
func openEscape(data []byte) int {
	for i := max(0, len(data)-12); i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		_, size, taken := unescape(data[i:])
		switch rest := data[i:]; {
		case size > 0 && taken == 6 && len(rest) < 12 && rest[2]|0x20 == 'd':
			return i // the first half of a pair, whose other half may come
		case size > 0:
			i += taken - 1
		case len(rest) == 1 || len(rest) < 6 && rest[1] == 'u':
			return i
		}
	}
	return len(data)
}
