package codex

// This file runs the app-server's process.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
)

const (
	// goodbye is how long the app-server may take to end when its input has ended.
	goodbye = 5 * time.Second
	// lastOutput is how long output may still come after the process's end. Only a process that hid from the agent could hold the pipes
	// longer.
	lastOutput = 2 * time.Second
	// maxWaiting is how many messages may wait to be taken. Each may be as large as maxLine.
	maxWaiting = 16
	// maxStderr is the most bytes of a line of its log that are kept.
	maxStderr = 16 << 10
)

// server is a running app-server.
type server struct {
	peer
	// end ends the process.
	end   context.CancelFunc
	ended chan struct{}
	exit  process.Exit
	err   error

	ours []*os.File
	// logged is closed when its log has ended.
	logged   chan struct{}
	readers  sync.WaitGroup
	mu       sync.Mutex
	lastLine string
}

// homeOf is where Codex keeps its configuration, its login and its threads.
func homeOf(env []string) string {
	if home := lookup(env, "CODEX_HOME"); home != "" {
		return home
	}
	return filepath.Join(lookup(env, "HOME"), ".codex")
}

// lookup gives a variable of an environment; of several the last one counts.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// arguments of the app-server. What stands here every process of the pod can read, so it holds no secret.
func arguments(env []string) []string {
	// A goal would have Codex begin turns by itself, which no round can wait for.
	args := []string{"app-server", "-c", "features.goals=false"}
	if _, from := keyOf(env); from != "" {
		// The key is given over the pipe and stays in memory.
		args = append(args, "-c", `cli_auth_credentials_store="ephemeral"`)
	}
	return args
}

// serve starts an app-server.
func (c *Codex) serve(round runtime.Round, log *slog.Logger) (*server, error) {
	// A folder that CODEX_HOME names has to be there; the default one Codex makes itself.
	if err := os.MkdirAll(homeOf(round.Env), 0o700); err != nil {
		return nil, fmt.Errorf("the folder of Codex cannot be made; set CODEX_HOME to one that can be written: %w", err)
	}
	s := &server{ended: make(chan struct{}), logged: make(chan struct{})}
	var theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(theirs, s.ours...))
			return nil, err
		}
		theirs, s.ours = append(theirs, w), append(s.ours, r)
	}
	theirs[0], s.ours[0] = s.ours[0], theirs[0] // its input is read by it and written by us
	s.peer = peer{in: s.ours[0], messages: make(chan *message, maxWaiting), quit: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	go func() {
		defer close(s.ended)
		s.exit, s.err = process.Run(ctx, process.Options{
			Args: append([]string{c.program()}, arguments(round.Env)...), Dir: round.Workdir, Env: round.Env,
			Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2], Record: round.ProcessRecord, Grace: round.Grace / 2,
		})
		closeAll(theirs)
		for _, f := range s.ours[1:] {
			_ = f.SetReadDeadline(time.Now().Add(lastOutput))
		}
	}()
	s.readers.Go(func() { s.listen(s.ours[1]) })
	s.readers.Go(func() { s.readLog(s.ours[2], log) })
	return s, nil
}

// readLog passes the app-server's log on and keeps its last line.
func (s *server) readLog(from *os.File, log *slog.Logger) {
	defer close(s.logged)
	eachLine(from, maxStderr, func(line []byte, _ int) bool {
		text := plain(string(line))
		if text != "" {
			log.Info("codex", "stderr", text)
			s.mu.Lock()
			s.lastLine = text
			s.mu.Unlock()
		}
		return true
	})
}

// plain removes the colors of a terminal.
func plain(text string) string {
	var b strings.Builder
	for text != "" {
		before, after, found := strings.Cut(text, "\x1b[")
		b.WriteString(before)
		if !found {
			break
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			break
		}
		text = after[end+1:]
	}
	return strings.TrimSpace(strings.ToValidUTF8(b.String(), "�"))
}

// stop ends the app-server: in a hurry at once, else when it has taken the end of its input. What it still says goes to take. When stop
// returns, no process of it is left.
func (s *server) stop(hurry bool, take func(*message)) {
	_ = s.in.Close()
	timer := time.NewTimer(goodbye)
	defer timer.Stop()
	if hurry {
		s.end()
	}
	messages := s.messages
	for ended := s.ended; ended != nil || messages != nil; {
		select {
		case m, ok := <-messages:
			if !ok {
				messages = nil
				continue
			}
			take(m)
		case <-ended:
			ended = nil
		case <-timer.C:
			s.end()
		}
	}
	s.end()
	close(s.quit)
	s.readers.Wait()
	for _, f := range s.ours[1:] {
		_ = f.Close()
	}
}

// whyGone says why an app-server that sends no more has ended, for people. It waits for the end.
func (s *server) whyGone() string {
	late := time.NewTimer(goodbye)
	defer late.Stop()
	for _, over := range []chan struct{}{s.ended, s.logged} {
		select {
		case <-over:
		case <-late.C:
			return "it closed its output"
		}
	}
	if s.err != nil {
		return s.err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastLine != "" {
		return s.exit.String() + ": " + s.lastLine
	}
	return s.exit.String()
}

// errGone is what a call gives when the app-server has ended.
var errGone = errors.New("codex app-server ended")
