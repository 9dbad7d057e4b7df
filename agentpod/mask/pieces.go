package mask

// This file says what of a secret is to be found, and in which forms.

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"
)

const (
	// maxWhole is the most bytes of a value that is found as a whole; a larger one is found line by line.
	maxWhole = 64 << 10
	// maxPieces bounds what one value gives.
	maxPieces = 4000
	// minEncoded is the least characters of a form that only an encoding has.
	minEncoded = 8
)

// piecesOf returns what of a value is secret by itself: all of it, each of its lines, and the values that are in it where it is settings of
// some kind: JSON, NAME=VALUE, "name: value", or the password of a URL.
func piecesOf(value string) []string {
	whole := strings.TrimSpace(value)
	if len(whole) < MinValue {
		return nil
	}
	var pieces []string
	add := func(piece string, least int) {
		if piece = strings.TrimSpace(piece); len(piece) >= least && len(piece) <= maxWhole && len(pieces) < maxPieces {
			pieces = append(pieces, piece)
		}
	}
	add(whole, MinValue)
	add(passwordOf(whole), MinValue)
	for _, leaf := range leavesOf(whole) {
		add(leaf, minDerived)
	}
	if !strings.Contains(whole, "\n") {
		add(assigned(whole), minDerived)
		return pieces
	}
	for line := range strings.Lines(whole) {
		line = strings.TrimSpace(line)
		if armor(line) || strings.HasPrefix(line, "#") {
			continue
		}
		add(line, minLine)
		add(assigned(line), minDerived)
		add(passwordOf(assigned(line)), MinValue)
	}
	return pieces
}

// armor says whether a line is the beginning or end of a PEM block, which is no secret.
func armor(line string) bool {
	return strings.HasPrefix(line, "-----") && strings.HasSuffix(line, "-----")
}

// assigned returns the value of a line NAME=VALUE, "name: value" or "password value"; empty if it is none.
func assigned(line string) string {
	line = strings.TrimPrefix(line, "export ")
	if name, value, ok := strings.Cut(line, "="); ok && isName(name) {
		return unquoted(value)
	}
	if name, value, ok := strings.Cut(line, ": "); ok && isName(name) {
		return unquoted(value)
	}
	name, value, _ := strings.Cut(line, " ")
	switch strings.ToLower(name) {
	case "password", "token", "secret":
		return unquoted(value)
	}
	return ""
}

func isName(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && !strings.ContainsAny(text, " \t\"'(){}<>,;")
}

func unquoted(value string) string {
	return strings.Trim(strings.TrimSuffix(strings.TrimSpace(value), ","), `"'`)
}

// passwordOf returns the password in a URL; empty if it has none.
func passwordOf(text string) string {
	if !strings.Contains(text, "://") || strings.ContainsAny(text, " \n") {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// leavesOf returns the strings that are values in a JSON object or list.
func leavesOf(text string) []string {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return nil
	}
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return nil
	}
	var leaves []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			leaves = append(leaves, v)
			if strings.Contains(v, "\n") {
				leaves = append(leaves, longLines(v)...)
			}
		case []any:
			for _, element := range v {
				walk(element)
			}
		case map[string]any:
			for _, member := range v {
				walk(member)
			}
		}
	}
	walk(value)
	return leaves
}

// longLines returns the lines of a text that are secret by themselves.
func longLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= minLine && !armor(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// formsOf returns the forms in which a piece appears.
func formsOf(piece string) []string {
	var forms []string
	if utf8.ValidString(piece) {
		forms = append(forms, piece)
		for _, form := range []string{url.QueryEscape(piece), url.PathEscape(piece), url.UserPassword("", piece).String()[1:]} {
			if form != piece {
				forms = append(forms, form)
			}
		}
	}
	if len(piece) >= minEncoded {
		digits := hex.EncodeToString([]byte(piece))
		forms = append(forms, digits, strings.ToUpper(digits))
	}
	for shift := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if form := inBase64(encoding, piece, shift); len(form) >= minEncoded {
				forms = append(forms, form)
			}
		}
	}
	return forms
}

// inBase64 returns the characters that a piece has in the base64 of any text around it, when so many bytes modulo 3 are before it.
func inBase64(encoding *base64.Encoding, piece string, shift int) string {
	all := encoding.EncodeToString(append(make([]byte, shift), piece...))
	first := (shift*8 + 5) / 6 // the first character that has no bit of what is before
	last := (shift + len(piece)) * 8 / 6
	return all[first:last]
}

// wrapped returns the lines that programs break the base64 of a value into.
func wrapped(value string) []string {
	whole := strings.TrimSpace(value)
	if len(whole) < 48 || len(whole) > maxWhole {
		return nil
	}
	var lines []string
	for _, text := range []string{whole, whole + "\n"} {
		all := base64.StdEncoding.EncodeToString([]byte(text))
		for _, width := range []int{64, 76} {
			for rest := all; len(rest) >= minLine; rest = rest[min(width, len(rest)):] {
				lines = append(lines, rest[:min(width, len(rest))])
			}
		}
	}
	return lines
}
