package storetest

// This file makes text that is distributed as people's: few words often, most of them seldom.

import (
	"math/rand/v2"
	"strings"
)

// vocabulary is made of syllables, the most frequent words first.
var vocabulary = func() (words []string) {
	r := rand.New(rand.NewPCG(1, 1))
	consonants, vowels := "bcdfghjklmnprstvwz", "aeiou"
	seen := map[string]bool{}
	for len(words) < 20_000 {
		var b strings.Builder
		for range 1 + len(words)/400%4 + r.IntN(2) {
			b.WriteByte(consonants[r.IntN(len(consonants))])
			b.WriteByte(vowels[r.IntN(len(vowels))])
		}
		if w := b.String() + []string{"", "n", "s", "r", "ing", "ed"}[r.IntN(6)]; !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	return words
}()

// Word gives a word of the texts that loads write, the most frequent ones first.
func Word(rank int) string { return vocabulary[rank] }

// prose makes sentences, the same ones for the same seed.
type prose struct{ zipf *rand.Zipf }

func newProse(seed uint64) *prose {
	return &prose{rand.NewZipf(rand.New(rand.NewPCG(seed, 2)), 1.1, 5, uint64(len(vocabulary)-1))}
}

// sentence gives words of about that many bytes.
func (p *prose) sentence(bytes int) string {
	var b strings.Builder
	for b.Len() < bytes {
		b.WriteString(vocabulary[p.zipf.Uint64()])
		b.WriteByte(' ')
	}
	return b.String()
}
