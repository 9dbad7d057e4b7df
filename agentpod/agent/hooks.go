package agent

// This file runs a hook that does an errand; see errand_run.go. Those that prepare the place of a round are in package workplace.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// hookTail is how many bytes of a failed hook's output go into the reason.
const hookTail = 2000

// hooksOf gives the hooks that count for a person.
func hooksOf(config protocol.TeamConfig, handle string) protocol.TeamHooks {
	if own := person(config, handle).Environment; own != nil {
		return own.Hooks
	}
	return config.Environment.Hooks
}

// script is one run of a hook.
type script struct {
	name, text string
	// dir is the working directory, scratch where the files of the run are.
	dir, scratch string
	env          []string
	// record and grace are those of process.Options.
	record string
	grace  time.Duration
}

// hookWords are what a hook said: the beginning of its standard output, and the end of its standard error.
type hookWords struct{ out, err string }

// run runs the script with sh, the input on its standard input. Files take what it says, so that no pipe can block it or keep
// the agent waiting.
func (s script) run(ctx context.Context, input []byte) (said hookWords, exit process.Exit, err error) {
	options := process.Options{
		Args: []string{"/bin/sh", "-c", s.text}, Dir: s.dir, Env: s.env, Record: s.record, Grace: s.grace,
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = errors.Join(f.Close(), os.Remove(f.Name())) // the folder is emptied anyway
		}
	}()
	temp := func(pattern string) (*os.File, error) {
		f, err := os.CreateTemp(s.scratch, pattern)
		if err == nil {
			files = append(files, f)
		}
		return f, err
	}
	if options.Stderr, err = temp("hook-*.log"); err != nil {
		return said, exit, err
	}
	if options.Stdout, err = temp("hook-*.out"); err != nil {
		return said, exit, err
	}
	if input != nil {
		if options.Stdin, err = temp("hook-*.json"); err != nil {
			return said, exit, err
		}
		if _, err := options.Stdin.WriteAt(input, 0); err != nil { // its position stays at the beginning
			return said, exit, err
		}
	}
	if exit, err = process.Run(ctx, options); err != nil {
		return said, exit, err
	}
	return hookWords{out: head(options.Stdout, maxResultBytes), err: tail(options.Stderr, hookTail)}, exit, nil
}

// head returns the first bytes of a file as text.
func head(f *os.File, most int64) string {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, most))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(data), "�")
}

// tail returns the last bytes of a file as text.
func tail(f *os.File, most int64) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(0, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return ""
	}
	if from > 0 {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			data = data[i+1:]
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(data), "�"))
}
