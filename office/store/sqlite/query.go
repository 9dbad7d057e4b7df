package sqlite

// This file understands what people search for, and cuts excerpts. It is pure.
//
// A query is words, "phrases in quotes", alternatives with or between them, and -words or -"phrases" to leave out:
//
//	deploy "release notes" or changelog -draft
//
// looks for deploy, and for one of "release notes" and changelog, where there is no draft.

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bullpen-dev/bullpen/office/store"
)

// maxQuery bounds a query, in bytes: each of its words takes the index some time.
const maxQuery = 1000

// query is what a search looks for: a text that has at least one of each list in all, and nothing in none.
type query struct {
	all  [][]string
	none []string
}

// term is a word or phrase of a query.
type term struct {
	text string
	// out says that it is to be left out, bare that it was not in quotes.
	out, bare bool
}

// or says whether the term can stand for "one of both".
func (t term) or() bool { return t.bare && !t.out && strings.EqualFold(t.text, "or") }

// parseQuery understands a query. Its error wraps store.ErrQuery and says what is wrong.
func parseQuery(s string) (q query, err error) {
	if len(s) > maxQuery {
		return query{}, fmt.Errorf("%w: it has more than %d bytes; a few words are enough", store.ErrQuery, maxQuery)
	}
	terms := terms(s)
	for i := 0; i < len(terms); i++ {
		t, between := terms[i], i > 0 && i+1 < len(terms)
		switch {
		case t.or() && between && (terms[i-1].out || terms[i+1].out):
			return query{}, fmt.Errorf("%w: or stands between two things to look for, not beside one to leave out", store.ErrQuery)
		case t.or() && between:
			last := len(q.all) - 1
			q.all[last] = append(q.all[last], terms[i+1].text)
			i++
		case t.out:
			q.none = append(q.none, t.text)
		default:
			q.all = append(q.all, []string{t.text})
		}
	}
	if len(q.all) == 0 && len(q.none) > 0 {
		return query{}, fmt.Errorf("%w: it only says what to leave out; add a word to look for", store.ErrQuery)
	}
	if len(q.all) == 0 {
		return query{}, fmt.Errorf("%w: it has no word; give one to look for, or a \"phrase in quotes\"", store.ErrQuery)
	}
	return q, nil
}

// quotes begin and end a phrase. Chats and word processors make the other ones of the first.
const quotes = "\"\u201c\u201d\u201e"

// terms splits a query. What has neither a letter nor a digit is none.
func terms(s string) (all []term) {
	for s = plain(s); ; {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if s == "" {
			return all
		}
		t := term{}
		s, t.out = strings.CutPrefix(s, "-")
		if first, size := utf8.DecodeRuneInString(s); strings.ContainsRune(quotes, first) && size > 0 {
			s = s[size:]
			t.text, s = cutAt(s, func(r rune) bool { return strings.ContainsRune(quotes, r) })
			_, size = utf8.DecodeRuneInString(s)
			s = s[size:]
		} else {
			t.bare = true
			t.text, s = cutAt(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(quotes, r) })
		}
		if strings.ContainsFunc(t.text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			all = append(all, t)
		}
	}
}

// cutAt splits s before the first rune that is an end.
func cutAt(s string, end func(rune) bool) (before, rest string) {
	if i := strings.IndexFunc(s, end); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// The first runes of marks: words that no text has, by which the index knows whose past a moment is in, who has to do with it, and what
// it is about. They are private ones of Unicode, which the tokenizer takes for letters.
const (
	markOwner = '\ue000'
	markName  = '\ue001'
	markScope = '\ue002'
)

// plain is text as the index takes it and as a query may have it: without marks, and without what ends a query early.
func plain(s string) string {
	if !strings.Contains(s, "\xee\x80") && !strings.Contains(s, "\x00") && utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r == 0 || r == utf8.RuneError || r >= markOwner && r <= markScope {
			return ' '
		}
		return r
	}, s)
}

// expression says the query to FTS5. Every word of the user's is in quotes, where FTS5 has no syntax. One of each of marks must be there
// too.
func (q query) expression(marks ...[]string) string {
	var parts []string
	for _, one := range append(marks, q.all...) {
		parts = append(parts, anyOf(one))
	}
	e := strings.Join(parts, " AND ")
	if len(q.none) > 0 {
		e = "(" + e + ") NOT " + anyOf(q.none)
	}
	return e
}

func anyOf(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = `"` + strings.ReplaceAll(t, `"`, `""`) + `"`
	}
	return "(" + strings.Join(quoted, " OR ") + ")"
}

// An excerpt has about so many runes, and so many of them before the match.
const (
	excerptRunes = 200
	beforeMatch  = 60
)

// excerpt cuts text around the byte at, where a match begins: whole words on one line, with an ellipsis where something is left out.
func excerpt(text string, at int) string {
	start := at
	for n := 0; start > 0 && n < beforeMatch; n++ {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	if before, _ := utf8.DecodeLastRuneInString(text[:start]); start > 0 && !unicode.IsSpace(before) {
		// within a word: begin with the next, if there is one before the match
		if space := strings.IndexFunc(text[start:at], unicode.IsSpace); space >= 0 {
			start += space
		}
	}
	end := start
	for n := 0; end < len(text) && n < excerptRunes; n++ {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	if after, _ := utf8.DecodeRuneInString(text[end:]); end < len(text) && end > at && !unicode.IsSpace(after) {
		if space := strings.LastIndexFunc(text[at:end], unicode.IsSpace); space > 0 {
			end = at + space
		}
	}
	cut := strings.Join(strings.Fields(text[start:end]), " ")
	if strings.TrimSpace(text[:start]) != "" {
		cut = "…" + cut
	}
	if strings.TrimSpace(text[end:]) != "" {
		cut += "…"
	}
	return strings.ToValidUTF8(cut, string(utf8.RuneError))
}
