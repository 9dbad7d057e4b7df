package mask

// This file finds secrets in bytes: values by a table of their first three bytes, which is fast whatever their number, and shapes of tokens
// by the words that they begin with. What is escaped is looked at once more without its escapes, and again while there are any.

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

const (
	// keyLen is how many bytes of a pattern are in the table.
	keyLen = 3
	// maxEscapes is how many times escapes are taken off: JSON in JSON in JSON, and one more.
	maxEscapes = 4
	// maxTries is how often tokens of one kind are looked for in one run of characters without a break. No run of honest text has more of
	// their beginnings, and one that has would be read over and over.
	maxTries = 32
	// ellipsis is what a text ends with that was cut, and cutToken the least that is masked of a token beyond its word that was.
	ellipsis = "…"
	cutToken = 8
)

// pattern is something to find: the bytes of a value, or with a shape the word that it begins with.
type pattern struct {
	text  string
	shape *shape
}

// startKind says what begins with some bytes.
type startKind int

const (
	// startValue: something that may begin anywhere; startWord: something that begins where a word does.
	startValue startKind = 1 << iota
	startWord
)

// finder finds the patterns of one state of the secrets. It does not change.
type finder struct {
	// maybe has a bit for each hash of a first key; table the patterns by their first bytes, the longest first.
	maybe [1 << 16 / 64]uint64
	table map[[keyLen]byte][]pattern
	// short has what patterns begin with, for tails that are shorter than a key, and by which kind of pattern.
	short map[string]startKind
}

// newFinder makes the patterns of values, beside the shapes.
func newFinder(values map[string]struct{}) *finder {
	f := &finder{table: map[[keyLen]byte][]pattern{}, short: map[string]startKind{}}
	texts := map[string]struct{}{}
	for value := range values {
		for _, piece := range piecesOf(value) {
			for _, form := range formsOf(piece) {
				texts[form] = struct{}{}
			}
		}
		for _, line := range wrapped(value) {
			texts[line] = struct{}{}
		}
	}
	for text := range texts {
		f.add(pattern{text: text})
	}
	for i := range shapes {
		for _, word := range shapes[i].words {
			f.add(pattern{text: word, shape: &shapes[i]})
		}
	}
	for _, list := range f.table {
		slices.SortFunc(list, func(a, b pattern) int { return cmp.Or(len(b.text)-len(a.text), strings.Compare(a.text, b.text)) })
	}
	return f
}

func (f *finder) add(p pattern) {
	key := [keyLen]byte([]byte(p.text[:keyLen]))
	f.table[key] = append(f.table[key], p)
	h := hash(key[0], key[1], key[2])
	f.maybe[h/64] |= 1 << (h % 64)
	kind := startValue
	if p.shape != nil && !p.shape.inner {
		kind = startWord
	}
	f.short[p.text[:1]] |= kind
	f.short[p.text[:2]] |= kind
}

func hash(a, b, c byte) uint16 {
	return uint16((uint32(a)<<16 | uint32(b)<<8 | uint32(c)) * 0x9E3779B1 >> 16)
}

// at returns the patterns that may begin at a place.
func (f *finder) at(data []byte, i int) []pattern {
	h := hash(data[i], data[i+1], data[i+2])
	if f.maybe[h/64]&(1<<(h%64)) == 0 {
		return nil
	}
	return f.table[[keyLen]byte(data[i:i+keyLen])]
}

// find returns what there is in data as it stands. before is the byte in front of it, 0 for none.
func (f *finder) find(data []byte, before byte) []span {
	var spans []span
	tries := map[*shape]int{}
	for i := 0; i+keyLen <= len(data); i++ {
		if len(tries) > 0 && !tokenByte(data[i]) {
			clear(tries)
		}
		for _, p := range f.at(data, i) {
			if end := i + len(p.text); end > len(data) || string(data[i:end]) != p.text {
				continue
			}
			if p.shape == nil {
				spans = append(spans, span{i, i + len(p.text)})
				continue
			}
			if !p.shape.begins(data, i, before) || tries[p.shape] == maxTries {
				continue
			}
			tries[p.shape]++
			if s, ok := p.shape.match(data, i); ok {
				spans = append(spans, s)
			}
		}
	}
	return spans
}

// spans returns what there is in data, also behind escapes.
func (f *finder) spans(data []byte, before byte) []span {
	spans := append(f.find(data, before), f.findCut(data, before)...)
	eachView(data, func(v view) {
		for _, s := range append(f.find(v.data, before), f.findCut(v.data, before)...) {
			spans = append(spans, v.source(s))
		}
	})
	return spans
}

// findCut returns the beginning of a secret that the end of a text cut off, where the text says that it was cut.
func (f *finder) findCut(data []byte, before byte) []span {
	text, cut := bytes.CutSuffix(data, []byte(ellipsis))
	if !cut {
		return nil
	}
	run := lastRun(text)
	for i := 0; i+keyLen <= len(text); i++ {
		tail := text[i:]
		for _, p := range f.at(text, i) {
			whole := len(tail) >= len(p.text)
			switch {
			case p.shape == nil && !whole && p.text[:len(tail)] == string(tail),
				p.shape != nil && p.shape.open == nil && len(tail) >= len(p.text)+cutToken && string(tail[:len(p.text)]) == p.text &&
					p.shape.unfinished(text, i, before, run):
				return []span{{i, len(text)}}
			}
		}
	}
	return nil
}

// view is a text without some of its escapes.
type view struct {
	data []byte
	// from is where each byte comes from in the source, and with one more element where the source ends. All bytes of one escape come from
	// its beginning.
	from []int32
}

// source returns where a span comes from. What is found consists of whole characters, so these are whole escapes.
func (v view) source(s span) span { return span{int(v.from[s.start]), int(v.from[s.end])} }

// eachView calls take with the text without escapes, without those that are left then, and so on while there are any.
func eachView(data []byte, take func(view)) {
	if bytes.IndexByte(data, '\\') < 0 {
		return
	}
	v := view{data: data, from: make([]int32, len(data)+1)}
	for i := range v.from {
		v.from[i] = int32(i)
	}
	for range maxEscapes {
		v = v.unescaped()
		take(v)
		if bytes.IndexByte(v.data, '\\') < 0 {
			return
		}
	}
}

// unescaped takes the escapes of a JSON string off. What is no such escape stays.
func (v view) unescaped() view {
	out := view{data: make([]byte, 0, len(v.data)), from: make([]int32, 0, len(v.data)+1)}
	for i := 0; i < len(v.data); {
		n := 1
		if v.data[i] == '\\' {
			var text [4]byte
			var size int
			if text, size, n = unescape(v.data[i:]); size > 0 {
				out.data = append(out.data, text[:size]...)
				for range size {
					out.from = append(out.from, v.from[i])
				}
				i += n
				continue
			}
			n = 1
		}
		out.data = append(out.data, v.data[i])
		out.from = append(out.from, v.from[i])
		i += n
	}
	out.from = append(out.from, v.from[len(v.data)])
	return out
}
