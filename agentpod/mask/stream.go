package mask

// This file masks a text that comes in pieces. What could be the beginning of a secret waits until it is known not to be one.

import "bytes"

// maxHeld is the most bytes that wait. What is longer is no text for people, and is left out with all that belongs to it.
const maxHeld = 64 << 10

// Stream masks one text that comes in pieces. It is for one goroutine at a time.
type Stream struct {
	m *Masker
	// held waits, before is the last byte that went out, and skipping leaves out the rest of something that was too long.
	held     []byte
	before   byte
	skipping bool
}

// Stream begins a text.
func (m *Masker) Stream() *Stream { return &Stream{m: m} }

// Write takes the next piece and returns what can be shown of the text so far, beyond what was returned before.
func (s *Stream) Write(piece string) string {
	data := append(s.held, piece...)
	if s.skipping {
		end := bytes.IndexAny(data, " \t\r\n")
		if end < 0 {
			s.held = nil
			return ""
		}
		data, s.skipping = data[end:], false
	}
	f := s.m.current()
	cut := f.unfinished(data, s.before)
	var spans []span
	if cut > 0 { // else all of it waits, and is not looked through again and again
		spans = merged(f.spans(data, s.before))
	}
	for i := len(spans) - 1; i >= 0 && spans[i].end > cut; i-- {
		cut = min(cut, spans[i].start) // a secret that ends in what waits waits as a whole
		spans = spans[:i]
	}
	out := string(replace(data[:cut], spans))
	if cut > 0 {
		s.before = data[cut-1]
	}
	s.held = bytes.Clone(data[cut:])
	if len(s.held) > maxHeld {
		s.held, s.before, s.skipping = nil, 0, true
	}
	return out
}

// Reset ends the text: the next piece begins another one. What waits is left out, and so is the beginning of the next piece up to a space,
// because it may be the rest of it after all.
func (s *Stream) Reset() {
	s.skipping = s.skipping || len(s.held) > 0
	s.held, s.before = nil, 0
}

// unfinished returns where something begins that more text could make a secret, or the length of data.
func (f *finder) unfinished(data []byte, before byte) int {
	cut := f.openView(data, before)
	eachView(data, func(v view) {
		if at := f.openView(v.data, before); at < len(v.data) {
			cut = min(cut, int(v.from[at]))
		}
	})
	return cut
}

// openView is unfinished without a look behind escapes. Half of an escape at the end may become any character, so what is before it counts
// by itself too.
func (f *finder) openView(data []byte, before byte) int {
	cut, end := f.openAt(data, before), openEscape(data)
	if end < len(data) {
		cut = min(cut, end, f.openAt(data[:end], before))
	}
	return cut
}

func (f *finder) openAt(data []byte, before byte) int {
	run := lastRun(data)
	for i := range data {
		if f.opens(data, i, before, run) {
			return i
		}
	}
	return len(data)
}

// opens says whether something unfinished begins at i.
func (f *finder) opens(data []byte, i int, before byte, run int) bool {
	tail := data[i:]
	if len(tail) < keyLen {
		kind := f.short[string(tail)]
		if i > 0 {
			before = data[i-1]
		}
		return kind&startValue != 0 || kind&startWord != 0 && !wordByte(before)
	}
	for _, p := range f.at(data, i) {
		switch whole := len(tail) >= len(p.text); {
		case !whole && p.text[:len(tail)] == string(tail):
			if p.shape == nil || p.shape.begins(data, i, before) {
				return true
			}
		case whole && p.shape != nil && string(tail[:len(p.text)]) == p.text:
			if p.shape.unfinished(data, i, before, run) {
				return true
			}
		}
	}
	return false
}
