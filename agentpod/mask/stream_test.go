package mask

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// inPieces gives what a stream shows of a text that comes in pieces of up to n bytes, with a line break at its end.
func inPieces(m *Masker, text string, size func() int) string {
	s := m.Stream()
	var shown strings.Builder
	text += "\n"
	for len(text) > 0 {
		n := min(max(1, size()), len(text))
		shown.WriteString(s.Write(text[:n]))
		text = text[n:]
	}
	return strings.TrimSuffix(shown.String(), "\n")
}

func TestASecretInPiecesIsMasked(t *testing.T) {
	m := of("hunter2-hunter2", hard, "multi\nline secret of two lines")
	random := rand.New(rand.NewPCG(7, 8))
	texts := map[string]string{
		"a value":          "it is hunter2-hunter2, and again hunter2-hunter2hunter2-hunter2.",
		"a hard value":     "key: " + hard + ". The end.",
		"an escaped value": "json: " + string(asText(t, "a "+hard+" b")) + ".",
		"two lines":        "so multi\nline secret of two lines it is",
	}
	for name, token := range tokens() {
		texts[name] = "the token is " + token + " and so on"
	}
	for name, text := range texts {
		want := m.Text(text)
		if !strings.Contains(want, Replacement) {
			t.Fatalf("%s: the test's text has no secret: %q", name, want)
		}
		for _, size := range []int{1, 2, 3, 7, 16, 1000} {
			if got := inPieces(m, text, func() int { return size }); got != want {
				t.Errorf("%s, in pieces of %d: %q, want %q", name, size, got, want)
			}
		}
		for range 20 {
			if got := inPieces(m, text, func() int { return 1 + random.IntN(9) }); got != want {
				t.Errorf("%s, in random pieces: %q, want %q", name, got, want)
			}
		}
	}
}

func TestWhatIsShownNeverHasTheBeginningOfASecret(t *testing.T) {
	m := of("hunter2-hunter2")
	s := m.Stream()
	shown := ""
	for _, piece := range []string{"it is h", "unt", "er2-", "hunter", "3 and hunter2-hunt"} {
		shown += s.Write(piece)
		if strings.HasSuffix(shown, "hunter2-") {
			t.Errorf("a half is shown: %q", shown)
		}
	}
	if shown != "it is hunter2-hunter3 and " {
		t.Errorf("shown: %q", shown)
	}
	// What follows a text that ended so is cut until something else begins.
	s.Reset()
	if got := s.Write("er2 next words."); got != " next words." {
		t.Errorf("after the end: %q", got)
	}
}

func TestOrdinaryTextIsShownSoon(t *testing.T) {
	m := of("hunter2-hunter2", pem(20))
	s := m.Stream()
	shown := ""
	for _, word := range strings.SplitAfter("The agent reads the files, asks git, runs the tests: all is well. See https://example.com/a/b/c for more. ", " ") {
		shown += s.Write(word)
	}
	if !strings.HasSuffix(shown, "for more. ") {
		t.Errorf("held back: %q", shown)
	}
}

func TestWhatNeverEndsIsLeftOut(t *testing.T) {
	s := of().Stream()
	shown := s.Write("x eyJ")
	for range maxHeld/1000 + 2 {
		shown += s.Write(strings.Repeat("a", 1000))
	}
	shown += s.Write("aaa. aaa and then")
	shown += s.Write(" more")
	if shown != "x  aaa and then more" {
		t.Errorf("shown: %.100q", shown)
	}
}

func TestASecretWhoseLinesComeOneByOne(t *testing.T) {
	key := pem(30)
	m := of(key)
	got := inPieces(m, "cat key\n"+key+"done", func() int { return 11 })
	for line := range strings.Lines(key) {
		if line = strings.TrimSpace(line); !armor(line) && strings.Contains(got, line[:minLine]) {
			t.Fatalf("a line is left: %q in %q", line, got)
		}
	}
	if !strings.HasPrefix(got, "cat key\n") || !strings.HasSuffix(got, "done") {
		t.Errorf("the rest is gone: %q", got)
	}
}

func BenchmarkStream(b *testing.B) {
	var values []string
	for i := range 40 {
		values = append(values, fmt.Sprintf("secret-%d-%x", i, rand.Uint64()))
	}
	s := of(append(values, pem(40))...).Stream()
	for b.Loop() {
		s.Write("some words of ")
	}
}
