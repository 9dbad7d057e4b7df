package command

// This file makes records of what a program says: the lines of its standard output and error as they come, and how it ended with the result
// that it left.

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/result"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// The types of the records.
const (
	typeStdout = "stdout"
	typeStderr = "stderr"
	typeResult = "result"
)

const (
	// gather is how long lines may wait to share a record with others; maxLines and maxBytes how many they may be.
	gather   = 100 * time.Millisecond
	maxLines = 500
	maxBytes = 64 << 10
)

// linesRecord is the payload of stdout and stderr.
type linesRecord struct {
	Lines []string `json:"lines"`
}

// resultRecord is the payload of result.
type resultRecord struct {
	// Exit says how the program ended, for people.
	Exit string `json:"exit"`
	// Result is the result file, nil where the program left none; Unusable its text where it is no JSON object.
	Result   json.RawMessage `json:"result"`
	Unusable *string         `json:"unusable,omitempty"`
}

// record makes a record of a payload.
func record(kind string, payload any) (runtime.Record, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(payload); err != nil {
		return runtime.Record{}, err
	}
	return runtime.Record{
		Source: feed.SourceCommand, Format: feed.FormatCommand, Type: kind, Payload: json.RawMessage(strings.TrimSuffix(b.String(), "\n")),
	}, nil
}

// lines gathers the lines of both streams into records. A line of the other stream ends a record, so the order of lines is kept as well as
// two pipes keep it.
type lines struct {
	tell func(runtime.Record)

	mu    sync.Mutex
	kind  string
	list  []string
	bytes int
	timer *time.Timer
	ended bool
}

func newLines(tell func(runtime.Record)) *lines { return &lines{tell: tell} }

// add takes a line of a stream.
func (l *lines) add(kind, text string) {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "�")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.kind != kind || len(l.list) >= maxLines || l.bytes+len(text) > maxBytes {
		l.flush()
	}
	l.kind = kind
	l.list = append(l.list, text)
	l.bytes += len(text)
	if l.timer == nil {
		l.timer = time.AfterFunc(gather, l.late)
	}
}

// late ends a record that nothing else ended.
func (l *lines) late() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

// flush tells what was gathered. Its caller holds mu.
func (l *lines) flush() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if len(l.list) == 0 {
		return
	}
	if r, err := record(l.kind, linesRecord{l.list}); err == nil {
		l.tell(r)
	}
	l.list, l.bytes = nil, 0
}

// close tells what is left. No line is taken after it.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	l.ended = true
}

// resultOf makes the record of a program's end.
func resultOf(exit process.Exit, path string) (runtime.Record, error) {
	said := resultRecord{Exit: exit.String()}
	data, err := head(path, result.MaxFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return runtime.Record{}, err
	case json.Valid(data) && strings.HasPrefix(strings.TrimSpace(string(data)), "{"):
		said.Result = data
	default:
		const most = 4 << 10
		text := strings.ToValidUTF8(string(data[:min(len(data), most)]), "�")
		if len(data) > most {
			text += "…"
		}
		said.Unusable = &text
	}
	return record(typeResult, said)
}

// head reads the beginning of a file.
func head(path string, most int64) ([]byte, error) {
	f, err := result.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	return io.ReadAll(io.LimitReader(f, most))
}
