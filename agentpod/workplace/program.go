package workplace

// This file runs programs: git, and the team's hooks. Nothing that they start outlives them; see package process.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
)

// pipeWait is how long output may still come after a program's end. Only a process that hid from the agent could hold its pipes longer.
const pipeWait = 2 * time.Second

// execute runs a program and copies what it writes while it runs.
func execute(ctx context.Context, o process.Options, stdout, stderr io.Writer) (process.Exit, error) {
	var ours, theirs []*os.File
	defer func() {
		for _, f := range append(ours, theirs...) {
			_ = f.Close() // again, where it is closed already
		}
	}()
	var copying sync.WaitGroup
	for _, end := range []struct {
		file **os.File
		to   io.Writer
	}{{&o.Stdout, stdout}, {&o.Stderr, stderr}} {
		read, write, err := os.Pipe()
		if err != nil {
			return process.Exit{}, err
		}
		ours, theirs = append(ours, read), append(theirs, write)
		*end.file = write
		// A copy ends with the pipe, or at the deadline below: there is nobody to tell of the latter.
		copying.Go(func() { _, _ = io.Copy(end.to, read) })
	}
	exit, err := process.Run(ctx, o)
	for _, f := range theirs {
		err = errors.Join(err, f.Close())
	}
	for _, f := range ours {
		err = errors.Join(err, f.SetReadDeadline(time.Now().Add(pipeWait)))
	}
	copying.Wait()
	return exit, err
}

// capture keeps the beginning of what is written to it.
type capture struct {
	buf  bytes.Buffer
	most int
}

// Write never fails.
func (c *capture) Write(data []byte) (int, error) {
	c.buf.Write(data[:min(len(data), max(0, c.most-c.buf.Len()))])
	return len(data), nil
}
