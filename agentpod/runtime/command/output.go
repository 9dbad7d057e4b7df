package command

// This file listens to what a program prints: lines of progress and marked lines on its standard output, and its log on
// standard error.

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/result"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	// maxLine is the most bytes of a line that are read; the rest of it is dropped.
	maxLine = 256 << 10
	// maxProgress is the most characters of a line of progress and of the last line in a fail.
	maxProgress = 500
	// progressPause is the least time between two lines of progress. Of those in between the last is kept.
	progressPause = 200 * time.Millisecond
	// lastWords is how long output may still come after the program's end. Only a process that hid from the agent could
	// hold the pipes longer.
	lastWords = 2 * time.Second
)

// The marks of lines that are more than progress.
const (
	markJournal = "::journal "
	markSession = "::session "
	markUsage   = "::usage "
)

// said is what a program printed that matters at its end.
type said struct {
	lastLine  string
	lastError string
	usage     []protocol.SessionUsage
}

// output reads a program's standard output and error. close has to be called after the program's end.
type output struct {
	stdout, stderr *os.File // the program's ends
	ours           [2]*os.File
	readers        sync.WaitGroup
	said           said
	sink           runtime.Sink
	log            *slog.Logger
	progress       *throttle
	lines          *lines
}

func listen(sink runtime.Sink, log *slog.Logger) (*output, error) {
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, outRead.Close(), outWrite.Close())
	}
	o := &output{
		stdout: outWrite, stderr: errWrite, ours: [2]*os.File{outRead, errRead}, sink: sink, log: log,
		progress: newThrottle(progressPause, sink.Progress), lines: newLines(sink.Record),
	}
	o.readers.Go(func() { eachLine(outRead, o.line) })
	o.readers.Go(func() { eachLine(errRead, o.errorLine) })
	return o, nil
}

// close waits for what is still in the pipes.
func (o *output) close() said {
	_ = o.stdout.Close()
	_ = o.stderr.Close()
	for _, f := range o.ours {
		_ = f.SetReadDeadline(time.Now().Add(lastWords))
	}
	o.readers.Wait()
	o.lines.close()
	o.progress.close()
	return o.said
}

// line takes a line of standard output. Only one goroutine calls it.
func (o *output) line(text string) {
	o.lines.add(typeStdout, text)
	mark, rest := "", text
	for _, m := range []string{markJournal, markSession, markUsage} {
		if after, ok := strings.CutPrefix(text, m); ok {
			mark, rest = m, strings.TrimSpace(after)
		}
	}
	switch mark {
	case markJournal:
		if rest != "" {
			o.sink.Journal(rest)
		}
	case markSession:
		id, model, _ := strings.Cut(rest, " ")
		if id != "" {
			o.sink.Session(id, strings.TrimSpace(model))
		}
	case markUsage:
		usage, err := result.ParseUsage(rest)
		if err != nil {
			o.log.Warn("a usage line of the program cannot be used", "error", err)
			return
		}
		o.said.usage = merge(o.said.usage, []protocol.SessionUsage{usage})
	default:
		if text = clip(strings.TrimSpace(text)); text != "" {
			o.said.lastLine = text
			o.progress.put(text)
		}
	}
}

// errorLine takes a line of standard error. Only one goroutine calls it.
func (o *output) errorLine(text string) {
	o.lines.add(typeStderr, text)
	if strings.TrimSpace(text) == "" {
		return
	}
	o.log.Info("program", "stderr", text)
	o.said.lastError = clip(strings.TrimSpace(text))
}

// clip cuts a text to maxProgress characters, and makes it text if it was not.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "�")
	count := 0
	for i := range text {
		if count++; count > maxProgress {
			return text[:i] + "…"
		}
	}
	return text
}

// eachLine calls take with every line, without its end and with at most maxLine bytes, until r ends.
func eachLine(r io.ReadCloser, take func(string)) {
	defer r.Close() //nolint:errcheck // only read from
	lines := bufio.NewReaderSize(r, 16<<10)
	var line []byte
	for {
		part, err := lines.ReadSlice('\n')
		if room := maxLine - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil || len(line) > 0 {
			take(strings.TrimRight(string(line), "\r\n"))
		}
		line = line[:0]
		if err != nil {
			return
		}
	}
}

// throttle passes texts on with a pause between them, and always the last one.
type throttle struct {
	mu     sync.Mutex
	latest string
	wake   chan struct{}
	stop   chan struct{}
	done   chan struct{}
}

func newThrottle(pause time.Duration, pass func(string)) *throttle {
	t := &throttle{wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for {
			select {
			case <-t.wake:
			case <-t.stop:
				t.pass(pass)
				return
			}
			t.pass(pass)
			select {
			case <-time.After(pause):
			case <-t.stop:
			}
		}
	}()
	return t
}

func (t *throttle) pass(to func(string)) {
	t.mu.Lock()
	text := t.latest
	t.latest = ""
	t.mu.Unlock()
	if text != "" {
		to(text)
	}
}

func (t *throttle) put(text string) {
	t.mu.Lock()
	t.latest = text
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// close passes the last text on and ends.
func (t *throttle) close() {
	close(t.stop)
	<-t.done
}
