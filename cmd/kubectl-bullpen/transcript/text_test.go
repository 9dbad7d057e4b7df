package transcript

// This file tests how text is made fit for a terminal.

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"plain text":                       {"two\nlines", "two\nlines"},
		"letters of all kinds":             {"Grüße 世界 👩‍🚀 e\u0301", "Grüße 世界 👩‍🚀 e\u0301"},
		"tabulators":                       {"a\tb", "a    b"},
		"colors":                           {"\x1b[1;31mred\x1b[0m", "red"},
		"a sequence that moves the cursor": {"a\x1b[2J\x1b[Hb", "ab"},
		"a title with a bell":              {"a\x1b]0;title\x07b", "ab"},
		"a title with an end of its own":   {"a\x1b]0;title\x1b\\b", "ab"},
		"a link":                           {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"a device control string":          {"\x1bPq#0\x1b\\x", "x"},
		"a sequence that does not end":     {"a\x1b[12;", "a"},
		"a string that does not end":       {"a\x1b]0;title\nb", "a\nb"},
		"an escape alone":                  {"a\x1b", "a"},
		"a short sequence":                 {"a\x1b7b\x1b(0c", "abc"},
		"an eight bit sequence":            {"a\u009b31mb", "a31mb"},
		"a bell and backspaces":            {"a\a\b\x00\x7fb", "ab"},
		"writing that turns":               {"a\u202eb\u2066c\u200f", "abc"},
		"line breaks of other systems":     {"a\r\nb\r\n", "a\nb\n"},
		"what was overwritten":             {"10%\r20%\rdone\nnext", "done\nnext"},
		"a carriage return at the end":     {"50%\r", "50%"},
		"bytes that are no text":           {"a\xff\xfeb", "a\ufffd\ufffdb"},
		"a line separator":                 {"a\u2028b", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clean(test.text); got != test.want {
				t.Errorf("it is %q, not %q", got, test.want)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		most int
		want []string
	}{
		"short":                     {"a b", 10, []string{"a b"}},
		"nothing":                   {"", 10, []string{""}},
		"between words":             {"one two three four", 9, []string{"one two", "three", "four"}},
		"to the last column":        {"four five", 9, []string{"four five"}},
		"a long word":               {"a abcdefghijklm b", 5, []string{"a", "abcde", "fghij", "klm b"}},
		"empty lines stay":          {"a\n\nb", 5, []string{"a", "", "b"}},
		"indentation stays":         {"  - one two", 8, []string{"  - one", "two"}},
		"wide letters":              {"世界世界", 5, []string{"世界", "世界"}},
		"without a bound":           {"one two three  ", 0, []string{"one two three"}},
		"spaces at the break go":    {"abcde   fgh", 5, []string{"abcde", "fgh"}},
		"nothing but spaces":        {"          ", 5, []string{""}},
		"a letter that is too wide": {"世界", 1, []string{"世", "界"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wrap(test.text, test.most); !slices.Equal(got, test.want) {
				t.Errorf("it is %q, not %q", got, test.want)
			}
		})
	}
}

func someText(t *rapid.T, label string) string {
	return rapid.StringOfN(rapid.SampledFrom([]rune("ab cd  e\n世é-")), 0, 120, -1).Draw(t, label)
}

// When a text goes on, no line changes but the last: what is live is never written again for that.
func TestLinesStayWhenATextGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, more, most := someText(t, "text"), someText(t, "more"), rapid.IntRange(2, 20).Draw(t, "columns")
		before, after := wrap(text, most), wrap(text+more, most)
		if n := len(before) - 1; !slices.Equal(before[:n], after[:min(n, len(after))]) {
			t.Fatalf("%q became %q", before, after)
		}
		for _, l := range after {
			if columns(l) > most {
				t.Fatalf("%q takes %d columns of %d", l, columns(l), most)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got := squeeze(strings.Join(after, "\n")); got != squeeze(text+more) {
			t.Fatalf("%q has lost something of %q", after, text+more)
		}
	})
}

func TestCut(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		most int
		want string
	}{
		"fits":          {"abc", 3, "abc"},
		"does not fit":  {"abcd", 3, "ab…"},
		"wide letters":  {"世界世", 4, "世…"},
		"a space":       {"ab cd", 4, "ab…"},
		"without bound": {"abcd", 0, "abcd"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cut(test.text, test.most); got != test.want {
				t.Errorf("it is %q, not %q", got, test.want)
			}
		})
	}
}

func TestFold(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		most  int
		lines int
		more  int
	}{
		"few":                {"a\nb", 3, 2, 0},
		"one more is shown":  {"a\nb\nc\nd", 3, 4, 0},
		"many":               {"a\nb\nc\nd\ne", 3, 3, 2},
		"empty lines around": {"\n\na\nb\n\n", 3, 2, 0},
		"without a bound":    {strings.Repeat("x\n", 50), 0, 50, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if lines, more := fold(test.text, test.most, false); len(lines) != test.lines || more != test.more {
				t.Errorf("it is %q and %d more", lines, more)
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	for n, want := range map[int64]string{0: "", 1: "0.00001 USD", 730: "0.0073 USD", 9_999: "0.1000 USD", 42_110: "0.42 USD", 123_456_789: "1234.57 USD"} {
		if got := usd(n); got != want {
			t.Errorf("%d millicents are %q, not %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1_000: "1,000", 1_234_567: "1,234,567", -1_000: "-1,000"} {
		if got := count(n); got != want {
			t.Errorf("%d is %q, not %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{12: "12 ms", 4_250: "4.2 s", 61_000: "1 min 1 s", 3_700_000: "1 h 1 min"} {
		if got := ms(&n); got != want {
			t.Errorf("%d ms are %q, not %q", n, got, want)
		}
	}
}
