package sqlite

// This file tests how queries are understood and excerpts are cut, without a store but for the fuzz target.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

func TestQueries(t *testing.T) {
	for _, test := range []struct{ query, want string }{
		{"deploy", `("deploy")`},
		{"  two\twords\n", `("two") AND ("words")`},
		{`"a phrase" word`, `("a phrase") AND ("word")`},
		{"one or two three", `("one" OR "two") AND ("three")`},
		{"three one OR two", `("three") AND ("one" OR "two")`},
		{`one or "a phrase" Or three`, `("one" OR "a phrase" OR "three")`},
		{"-out in", `(("in")) NOT ("out")`},
		{`in -out -"a phrase"`, `(("in")) NOT ("out" OR "a phrase")`},
		{"or", `("or")`},
		{"or this", `("or") AND ("this")`},
		{"this or", `("this") AND ("or")`},
		{`this "or" that`, `("this") AND ("or") AND ("that")`},
		{"this or or that", `("this" OR "or") AND ("that")`},
		{`word"glued phrase"more`, `("word") AND ("glued phrase") AND ("more")`},
		{`“curly” „low”`, `("curly") AND ("low")`},
		{`"never closed`, `("never closed")`},
		{`- -- ! word`, `("word")`},
		{"one or ! two", `("one" OR "two")`},
		{"co-operate --force", `(("co-operate")) NOT ("-force")`},
		{`NEAR(a b) col:x ^y z*`, `("NEAR(a") AND ("b)") AND ("col:x") AND ("^y") AND ("z*")`},
		{"nul\x00byte", `("nul") AND ("byte")`},
		{"\ue000123 word", `("123") AND ("word")`},
	} {
		q, err := parseQuery(test.query)
		if err != nil {
			t.Errorf("%q: %v", test.query, err)
		} else if got := q.expression(); got != test.want {
			t.Errorf("%q is understood as %s, want %s", test.query, got, test.want)
		}
	}
	q, err := parseQuery("word -out")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := q.expression([]string{"m1"}, []string{"m2", "m3"}), `(("m1") AND ("m2" OR "m3") AND ("word")) NOT ("out")`; got != want {
		t.Errorf("with marks it is %s, want %s", got, want)
	}
}

func TestExcerpts(t *testing.T) {
	words := strings.Repeat("words and ", 60)
	for _, test := range []struct {
		name, text, at, want string
	}{
		{"a short text is whole", "a short  text,\n on one line", "short", "a short text, on one line"},
		{"nothing", "", "", ""},
		{"the beginning of a long text", "first " + words, "first", "first " + strings.Repeat("words and ", 19) + "…"},
		{"the end of a long text", words + "last", "last", "…" + strings.Repeat("words and ", 6) + "last"},
		{"the middle of a long text", words + "here " + words, "here", "…" + strings.Repeat("words and ", 6) + "here " + strings.Repeat("words and ", 13) + "words…"},
		{"what is left out is no space", words + "last \n\t ", "last", "…" + strings.Repeat("words and ", 6) + "last"},
		{"a word that is longer than an excerpt", strings.Repeat("x", 1000), "x", strings.Repeat("x", 200) + "…"},
		{"letters without spaces between them", strings.Repeat("字", 300) + "中" + strings.Repeat("字", 300), "中",
			"…" + strings.Repeat("字", 60) + "中" + strings.Repeat("字", 139) + "…"},
		{"bytes that are no text", "half \xe2\x82 a rune", "half", "half \ufffd a rune"},
	} {
		got := excerpt(test.text, strings.Index(test.text, test.at))
		if got = strings.ReplaceAll(got, " …", "…"); got != strings.ReplaceAll(test.want, " …", "…") {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// FuzzQuery has no query that FTS5 refuses, and no text whose excerpt is not of it.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{`a "b c" or d -e`, `"" "`, "-", "a or", "NEAR(a, 2) {b}: c*", "\x00\xff\ue000", "日本 🙂 -É", `a"b`, "or or or"} {
		f.Add(seed, len(seed)/2)
	}
	c, err := connectIndex(":memory:")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.close() })
	if err := c.db.Exec(indexSchema); err != nil {
		f.Fatal(err)
	}
	if err := c.run(writePast, nil, int64(1), plain("a b c d e or near 日本 É")+" "+ownerMark(somebody)); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string, at int) {
		if at >= 0 && at <= len(s) {
			if e := excerpt(s, at); !utf8.ValidString(e) || utf8.RuneCountInString(e) > excerptRunes+2 {
				t.Errorf("the excerpt of %q at %d is %q", s, at, e)
			}
		}
		q, err := parseQuery(s)
		if err != nil {
			if !errors.Is(err, store.ErrQuery) {
				t.Errorf("%q is refused with %v", s, err)
			}
			return
		}
		for _, e := range []string{q.expression(), q.expression([]string{ownerMark(somebody)})} {
			if err := c.run(searchPast, func(row *sqlite3.Stmt) error {
				return c.run(cutExcerpt, func(*sqlite3.Stmt) error { return nil }, s, row.ColumnInt64(1), row.ColumnInt64(0))
			}, e, int64(0)); err != nil {
				t.Errorf("%q as %s: %v", s, e, err)
			}
		}
		if strings.Contains(q.expression(), string(markOwner)) {
			t.Errorf("%q has the mark of an owner in it", s)
		}
	})
}

// TestMarksAreWords holds marks to what the index takes for one word, as it is.
func TestMarksAreWords(t *testing.T) {
	c, err := connectIndex(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := c.db.Exec(indexSchema + "CREATE VIRTUAL TABLE words USING fts5vocab (past, row)"); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for n := range 200 {
		m := []string{nameMark(fmt.Sprint(n)), itemMark(fmt.Sprint(n)), ownerMark(model.PersonKey{Handle: fmt.Sprint(n)})}[n%3]
		want[m] = true
		if err := c.run(writePast, nil, int64(n), "word "+m); err != nil {
			t.Fatal(err)
		}
	}
	want["word"] = true
	got := map[string]bool{}
	if err := c.query("SELECT term FROM words", func(row *sqlite3.Stmt) { got[row.ColumnText(0)] = true }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the words of the index (-want +got):\n%s", diff)
	}
}

// somebody is whose past is searched.
var somebody = model.PersonKey{Team: model.TeamKey{Namespace: "office", Name: "core"}, Handle: "ada"}
