// Package mask takes secrets out of what an agent tells: it puts *** in the place of their values and of what has the shape of a well-known
// token, in texts, in raw JSON and in texts that come in pieces.
//
// A value is found as it is and in the forms that programs give it: escaped in a JSON string, also in JSON inside of JSON, with unicode
// escapes of any kind, as base64 of itself or of a text around it, as hexadecimal digits, and escaped for a URL. A secret of many lines is
// found line by line too. Values of fewer than MinValue bytes are not masked: they would be found in everything. In JSON, strings are
// masked, names and values; a secret of digits that stands as a JSON number is not found.
//
// Values come from files, which are looked at again whenever something is masked, and a value that was ever seen stays masked for the life
// of the process: what was rotated may still be in what a program says.
package mask

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MinValue is the least bytes of a value that is masked.
	MinValue = 6
	// minLine is the least bytes of a line of a secret, or of a value in it, that is masked by itself.
	minLine, minDerived = 16, 8
	// Replacement stands where a secret was.
	Replacement = "***"
	// fresh is how old what is known of the files may be.
	fresh = 20 * time.Millisecond
)

// Masker masks. All its methods may be called from any goroutine.
type Masker struct {
	files []string
	log   *slog.Logger

	now atomic.Pointer[finder]
	// looked is when the files were last looked at, in nanoseconds since the Unix epoch.
	looked atomic.Int64
	mu     sync.Mutex
	// seen has the files as they were found, and values all that were ever found.
	seen   map[string]fileMark
	values map[string]struct{}
}

// New makes a masker of values, and of the files that are, or are below, the given paths. A path that is not there (yet) is no error. The
// log is told of what cannot be read, never of a value; nil tells nobody.
func New(paths, values []string, log *slog.Logger) *Masker {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m := &Masker{files: slices.Clone(paths), log: log, seen: map[string]fileMark{}, values: map[string]struct{}{}}
	for _, v := range values {
		m.values[v] = struct{}{}
	}
	m.now.Store(newFinder(m.values))
	m.look()
	return m
}

// current looks at the files, if that was not just done, and returns what there is to find.
func (m *Masker) current() *finder {
	if last := m.looked.Load(); time.Now().UnixNano()-last >= int64(fresh) {
		m.look()
	}
	return m.now.Load()
}

// look reads the files that changed.
func (m *Masker) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().UnixNano()-m.looked.Load() < int64(fresh) {
		return // another goroutine just did
	}
	more := false
	for _, value := range m.changed() {
		if _, known := m.values[value]; !known {
			m.values[value] = struct{}{}
			more = true
		}
	}
	if more {
		m.now.Store(newFinder(m.values))
	}
	m.looked.Store(time.Now().UnixNano())
}

// Text masks a text.
func (m *Masker) Text(text string) string {
	data := []byte(text)
	spans := m.current().spans(data, 0)
	if len(spans) == 0 {
		return text
	}
	return string(replace(data, merged(spans)))
}

// JSON masks the strings of a JSON value. Everything else stays as it is, byte for byte; a value without a secret comes back itself.
func (m *Masker) JSON(value []byte) []byte {
	f := m.current()
	var found []span
	for at := 0; ; {
		start, end, ok := nextString(value, at)
		if !ok {
			break
		}
		for _, s := range f.spans(value[start:end], 0) {
			found = append(found, span{s.start + start, s.end + start})
		}
		at = end + 1
	}
	if len(found) == 0 {
		return value
	}
	return replace(value, merged(found))
}

// Writer gives a writer that passes on to w what is written to it, masked. Each write is one line: JSON, or text.
func (m *Masker) Writer(w io.Writer) io.Writer { return writer{m, w} }

type writer struct {
	m *Masker
	w io.Writer
}

// Write says that all was written if what is left of it was.
func (w writer) Write(line []byte) (int, error) {
	var masked []byte
	if bytes.HasPrefix(line, []byte("{")) {
		masked = w.m.JSON(line)
	} else {
		masked = []byte(w.m.Text(string(line)))
	}
	if _, err := w.w.Write(masked); err != nil {
		return 0, err
	}
	return len(line), nil
}

// nextString finds the content of the next JSON string. One that is not closed ends with the data.
func nextString(data []byte, at int) (start, end int, ok bool) {
	if at >= len(data) {
		return 0, 0, false
	}
	open := bytes.IndexByte(data[at:], '"')
	if open < 0 {
		return 0, 0, false
	}
	start = at + open + 1
	for end = start; end < len(data); end++ {
		switch data[end] {
		case '"':
			return start, end, true
		case '\\':
			end++
		}
	}
	return start, len(data), true
}

// span is a range of bytes.
type span struct{ start, end int }

// merged sorts spans and joins those that overlap.
func merged(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	joined := spans[:0]
	for _, s := range spans {
		if n := len(joined); n > 0 && s.start < joined[n-1].end {
			joined[n-1].end = max(joined[n-1].end, s.end)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// replace puts the replacement in the place of spans, which are in order and apart.
func replace(data []byte, spans []span) []byte {
	out := make([]byte, 0, len(data))
	at := 0
	for _, s := range spans {
		out = append(append(out, data[at:s.start]...), Replacement...)
		at = s.end
	}
	return append(out, data[at:]...)
}

// Count says how many values are masked, and how many are too short for that.
func (m *Masker) Count() (masked, short int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for v := range m.values {
		if len(strings.TrimSpace(v)) < MinValue {
			short++
		}
	}
	return len(m.values) - short, short
}
