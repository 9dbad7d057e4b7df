package workplace

// This file turns what a program writes into lines that are told while it runs: in batches, with lines that a program wrote over
// themselves (as progress is) folded, and with a bound for each step.

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// batchPause is how long lines wait for others, and progressPause the least time between two states of one line of progress.
	batchPause    = 200 * time.Millisecond
	progressPause = time.Second
	// maxBatch is the most lines that are told at once.
	maxBatch = 200
	// maxLine is the most bytes of a line; the rest of it is dropped.
	maxLine = 4 << 10
	// headLines and headBytes bound what is told of a step while it runs. Of the rest its last tailLines lines are told at its end.
	headLines = 1800
	headBytes = 1 << 20
	tailLines = 200
	// lastWords is the most bytes of a failed step's output that go into the reason.
	lastWords = 2000
)

// folder cuts a stream into lines, as a terminal would show them: what ends with a carriage return is written over by what follows.
type folder struct {
	line    []byte
	returns bool
}

// write calls take with each line, without its end: final ones ended with a newline, the others may be written over.
func (f *folder) write(data []byte, take func(text string, final bool)) {
	for len(data) > 0 {
		if f.returns {
			f.returns = false
			final := data[0] == '\n'
			if final {
				data = data[1:]
			}
			f.end(final, take)
			continue
		}
		at := bytes.IndexAny(data, "\r\n")
		if at < 0 {
			f.add(data)
			return
		}
		f.add(data[:at])
		if data[at] == '\n' {
			f.end(true, take)
		} else {
			f.returns = true
		}
		data = data[at+1:]
	}
}

// close gives the line that has no end.
func (f *folder) close(take func(text string, final bool)) {
	f.returns = false
	if len(f.line) > 0 {
		f.end(true, take)
	}
}

func (f *folder) add(data []byte) {
	f.line = append(f.line, data[:min(len(data), max(0, maxLine-len(f.line)))]...)
}

func (f *folder) end(final bool, take func(text string, final bool)) {
	text := strings.ToValidUTF8(string(f.line), "�")
	if len(f.line) == maxLine {
		text = strings.TrimSuffix(text, "�") + "…" // without half of a character
	}
	f.line = f.line[:0]
	take(strings.TrimRight(text, " \t"), final)
}

// output takes what the program of a step writes, on both its streams, and tells it.
type output struct {
	report      Reporter
	phase, step string

	mu      sync.Mutex
	closed  bool
	streams map[string]*stream
	// batch are lines of one stream that are not told yet; timer tells them.
	batch       []string
	batchStream string
	timer       *time.Timer
	// told and bytes count what was told; after the bound only the end is kept.
	told, bytes int
	tail        []said
	left        int
	// words are the end of all that was written.
	words []string
	size  int
}

// said is a line of a stream.
type said struct{ stream, text string }

// stream is one of the two that a program writes to.
type stream struct {
	folder folder
	// progress is the line that may be written over, shown when it was told last.
	progress string
	shown    time.Time
}

func newOutput(report Reporter, phase, step string) *output {
	return &output{
		report: report, phase: phase, step: step,
		streams: map[string]*stream{feed.Stdout: {}, feed.Stderr: {}},
	}
}

// writer is an end of the output that a program writes to.
type writer struct {
	output *output
	name   string
}

// Write never fails.
func (w writer) Write(data []byte) (int, error) {
	w.output.write(w.name, data)
	return len(data), nil
}

// on gives the end for a stream.
func (o *output) on(name string) writer { return writer{o, name} }

// say tells a line of the agent's own.
func (o *output) say(format string, args ...any) {
	o.write(feed.Stderr, fmt.Appendf(nil, format+"\n", args...))
}

func (o *output) write(name string, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	s := o.streams[name]
	s.folder.write(data, func(text string, final bool) { o.take(name, s, text, final) })
}

// take takes a line. The lock is held.
func (o *output) take(name string, s *stream, text string, final bool) {
	if !final {
		s.progress = text
		o.wake()
		return
	}
	s.progress = ""
	if text == "" {
		return
	}
	o.remember(text)
	o.put(name, text)
}

// put adds a line to what is told. The lock is held.
func (o *output) put(name, text string) {
	if o.told >= headLines || o.bytes+len(text) > headBytes {
		o.told = headLines // what is told is one piece: nothing of it comes after a gap
		o.tail = append(o.tail, said{name, text})
		if len(o.tail) > tailLines {
			o.tail = o.tail[1:]
			o.left++
		}
		return
	}
	o.told++
	o.bytes += len(text)
	o.add(name, text)
	if len(o.batch) >= maxBatch {
		o.flush()
	}
	o.wake()
}

// add adds a line to the batch. The lock is held.
func (o *output) add(name, text string) {
	if o.batchStream != name {
		o.flush()
		o.batchStream = name
	}
	o.batch = append(o.batch, text)
}

// remember keeps the end of what was written. The lock is held.
func (o *output) remember(text string) {
	o.words = append(o.words, text)
	o.size += len(text) + 1
	for len(o.words) > 1 && o.size > lastWords {
		o.size -= len(o.words[0]) + 1
		o.words = o.words[1:]
	}
}

// wake has what is not told yet told soon. The lock is held.
func (o *output) wake() {
	if o.timer == nil {
		o.timer = time.AfterFunc(batchPause, o.tick)
	}
}

func (o *output) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = nil
	if o.closed {
		return
	}
	o.flush()
	now := time.Now()
	for _, name := range []string{feed.Stdout, feed.Stderr} {
		s := o.streams[name]
		switch {
		case s.progress == "":
		case now.Sub(s.shown) < progressPause:
			o.wake()
		default:
			o.put(name, s.progress)
			s.progress, s.shown = "", now
		}
	}
	o.flush()
}

// flush tells the batch. The lock is held, so that what is told of a step is in order.
func (o *output) flush() {
	if len(o.batch) > 0 {
		o.report.Output(o.phase, o.step, o.batchStream, o.batch)
	}
	o.batch = nil
}

// close tells the rest. Nothing is told afterwards.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	for _, name := range []string{feed.Stdout, feed.Stderr} {
		s := o.streams[name]
		s.folder.close(func(text string, final bool) { o.take(name, s, text, final) })
		if s.progress != "" {
			o.take(name, s, s.progress, true)
		}
	}
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
	if o.left > 0 {
		o.add(feed.Stderr, fmt.Sprintf("… %d lines left out", o.left))
	}
	for _, line := range o.tail {
		o.add(line.stream, line.text)
	}
	o.flush()
}

// last returns the end of what was written, for a reason.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := strings.Join(o.words, "\n")
	if len(text) > lastWords { // one line: of that its beginning, for in the end of half a word no secret can be found
		text = strings.ToValidUTF8(text[:lastWords-len("…")], "") + "…"
	}
	return strings.TrimSpace(text)
}
