package claude

// This file runs one process of Claude Code: it carries lines both ways, and ends the process when the round is over, or is to be.

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/prompt"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	// maxLine is the most bytes of a line that are kept. A record may have less; it is for the spool to cut it.
	maxLine = 64 << 20
	// maxErrorLine is the most bytes of a line on standard error that are kept.
	maxErrorLine = 16 << 10
	// lastWords is how long output may still come after the process has ended. Only one that hid from the agent could hold the pipes longer.
	lastWords = 2 * time.Second
	// lingerWait is how long the process may be quiet once it has answered, and leavingWait how long if nothing runs beside the conversation
	// any more but commands, which may be servers that never end. It waits for both by itself, for longer or shorter in other versions.
	lingerWait  = 10 * time.Minute
	leavingWait = time.Minute
)

// attempt runs one process on the round.
func (c *Claude) attempt(ctx context.Context, round runtime.Round, sink runtime.Sink, l ledger) (ending, error) {
	f := filesOf(round)
	asks := prompt.Compose(round, prompt.Options{Resumes: round.SessionID != "", ResultFile: f.result, OfferFile: f.offer})
	if err := writeFiles(round, f, asks.System); err != nil {
		return ending{}, err
	}
	full := false
	s := &session{
		sink: sink, log: c.Log.With("item", round.Offer.WorkItem.ID), ledger: l,
		policy:     policy{deny: round.Person.Approvals == deny},
		resultFile: f.result, sent: map[string]*int{}, agents: map[string]bool{}, meter: newMeter(round.SessionID != ""),
		live: live{show: sink.Delta},
		limit: func(w protocol.UsageWindow) {
			full = full || w.Utilization >= 1
			c.limit(w, sink.Usage)
		},
	}
	if round.SessionID != "" {
		asks.Messages = append([]prompt.Message{{Text: opening}}, asks.Messages...)
	}
	s.say(asks.Messages)
	p, err := start(ctx, process.Options{
		Args: append([]string{c.program()}, arguments(round, f)...), Dir: round.Workdir, Env: environment(round, f),
		Record: round.ProcessRecord, Grace: round.Grace / 2,
	}, s.log)
	if err != nil {
		return ending{}, err
	}
	if c.linger > 0 {
		p.linger, p.leaving = c.linger, c.linger
	}
	exit, err := p.follow(ctx, s, round.Grace/2)
	if err != nil {
		return ending{}, err
	}
	s.keep()
	end := s.conclude(exit, ctx.Err() != nil, p.lastError)
	if end.limited && !full {
		s.limit(protocol.UsageWindow{Name: windowRequests, Utilization: 1})
	}
	return end, nil
}

// writeFiles writes what the process reads.
func writeFiles(round runtime.Round, f files, system string) error {
	contents := map[string][]byte{f.offer: round.Payload, f.system: []byte(system)}
	if servers := round.Person.MCPServers; len(servers) > 0 {
		mcp, err := mcpConfig(servers)
		if err != nil {
			return err
		}
		contents[f.mcp] = mcp
	}
	for path, data := range contents {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("a file of the round cannot be written: %w", err)
		}
	}
	if err := os.Remove(f.result); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// running is a process with its pipes.
type running struct {
	// stop asks the process to end: SIGTERM, and SIGKILL after the grace.
	stop context.CancelFunc
	// ours are this side's ends of the pipes, theirs the process's.
	stdin, stdout, stderr *os.File
	theirs                []*os.File
	lines                 chan outputLine
	exited                chan exitOf
	// written tells of each line that was written. One at a time is on its way.
	write   chan []byte
	written chan error
	// linger and leaving are lingerWait and leavingWait, but in tests.
	linger, leaving time.Duration
	// writing says that a line is on its way, closed that no further one will be.
	writing, closed bool

	readers sync.WaitGroup
	// lastError is the last line on standard error. It may be read when the readers are done.
	lastError string
}

// outputLine is a line, cut to maxLine, with its length as it was.
type outputLine struct {
	text  []byte
	whole int
}

type exitOf struct {
	exit process.Exit
	err  error
}

// start starts the process. It does not end with ctx, but by stop.
func start(ctx context.Context, o process.Options, log *slog.Logger) (*running, error) {
	p := &running{
		lines: make(chan outputLine), exited: make(chan exitOf, 1), write: make(chan []byte), written: make(chan error, 1),
		linger: lingerWait, leaving: leavingWait,
	}
	var err error
	if o.Stdin, p.stdin, err = p.pipe(); err != nil {
		return nil, err
	}
	if p.stdout, o.Stdout, err = p.pipe(); err != nil {
		return nil, err
	}
	if p.stderr, o.Stderr, err = p.pipe(); err != nil {
		return nil, err
	}
	p.theirs = []*os.File{o.Stdin, o.Stdout, o.Stderr}
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.stop = stop
	p.readers.Go(func() {
		eachLine(p.stdout, maxLine, func(l outputLine) { p.lines <- l })
		close(p.lines)
	})
	p.readers.Go(func() {
		eachLine(p.stderr, maxErrorLine, func(l outputLine) {
			if text := strings.TrimSpace(strings.ToValidUTF8(string(l.text), "�")); text != "" {
				log.Info("claude", "stderr", text)
				p.lastError = shorten(text)
			}
		})
	})
	go p.writes()
	go func() {
		exit, err := process.Run(own, o)
		p.exited <- exitOf{exit, err}
	}()
	return p, nil
}

// pipe makes a pipe. What was opened before is closed when it cannot.
func (p *running) pipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		for _, f := range p.theirs {
			_ = f.Close()
		}
		return nil, nil, fmt.Errorf("claude cannot be spoken to: %w", err)
	}
	p.theirs = append(p.theirs, r, w)
	return r, w, nil
}

// writes writes what comes to the process, until there is no more.
func (p *running) writes() {
	for data := range p.write {
		_, err := p.stdin.Write(data)
		p.written <- err
	}
	_ = p.stdin.Close() // the process reads the end of its input
}

// follow carries lines between the process and the session until the process has ended and all that it said was taken. When ctx ends, it
// asks for an interruption first, so that the conversation and its usage are whole, and ends the process after the patience.
func (p *running) follow(ctx context.Context, s *session, patience time.Duration) (process.Exit, error) {
	quiet, late := stoppedTimer(), stoppedTimer()
	defer func() {
		p.stop()
		p.close()
		quiet.Stop()
		late.Stop()
	}()
	var end *exitOf
	stopped := ctx.Done()
	for p.lines != nil || end == nil {
		// The input is closed when everything is said and answered.
		if !p.writing && s.complete && (len(s.out) == 0 || stopped == nil) {
			p.close()
			s.corrected = true // nothing more can be said
		}
		write, next := p.next(s.out)
		select {
		case l, more := <-p.lines:
			if !more {
				p.lines = nil // the process has ended: until then this side holds its ends of the pipes open too
				continue
			}
			s.line(l.text, l.whole)
			if s.last != nil {
				quiet.Reset(p.patience(s))
			}
		case write <- next:
			p.writing, s.out = true, s.out[1:]
		case err := <-p.written:
			p.writing = false
			if err != nil {
				s.out = nil // it has ended, or is about to
			}
		case <-stopped:
			stopped = nil
			s.interrupt()
			if p.closed {
				p.stop()
			}
			late.Reset(patience)
		case <-quiet.C:
			// It answered, and waits for more, or for something that does not come.
			if p.closed {
				p.stop()
			}
			s.complete, s.out = true, nil
			quiet.Reset(p.leaving)
		case <-late.C:
			p.stop()
		case e := <-p.exited:
			end = &e
			p.exits()
		}
	}
	p.readers.Wait()
	return end.exit, end.err
}

// patience is how long the process may be quiet.
func (p *running) patience(s *session) time.Duration {
	if s.complete && len(s.agents) == 0 {
		return p.leaving
	}
	return p.linger
}

// stoppedTimer returns a timer that does not run.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// next is the line to write now; nothing where there is none, or one is on its way.
func (p *running) next(out [][]byte) (chan<- []byte, []byte) {
	if p.closed || p.writing || len(out) == 0 {
		return nil, nil
	}
	return p.write, out[0]
}

// close ends the process's input, behind what is on its way.
func (p *running) close() {
	if !p.closed {
		p.closed = true
		close(p.write)
	}
}

// exits closes the process's ends of the pipes, so that the readers come to the end.
func (p *running) exits() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	deadline := time.Now().Add(lastWords)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
}

// eachLine calls take with every line that is not empty, without its end, until r ends. The bytes are take's.
func eachLine(r io.ReadCloser, most int, take func(outputLine)) {
	defer r.Close() //nolint:errcheck // only read from
	input := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	whole := 0
	for {
		part, err := input.ReadSlice('\n')
		whole += len(part)
		if room := most - len(line); room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		text := bytes.TrimRight(line, "\r\n")
		if cut := whole - len(line); len(text) > 0 || cut > 0 {
			take(outputLine{text: bytes.Clone(text), whole: len(text) + cut})
		}
		line, whole = line[:0], 0
		if cap(line) > 1<<20 {
			line = nil
		}
		if err != nil {
			return
		}
	}
}
