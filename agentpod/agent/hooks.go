package agent

// This file runs the team's hooks: those that prepare the place of a round, and with errand_run.go those that do errands.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// hookTail is how many bytes of a failed hook's output go into the reason.
const hookTail = 2000

// hooks runs the hooks of one round.
type hooks struct {
	scripts protocol.TeamHooks
	// base is the folder of all bases.
	base  string
	grace time.Duration
	log   *slog.Logger
}

// prepare runs what has to run before the runtime, and returns the environment with the hooks' own variables. prepared says
// that after_checkout ran for this item before; done is called when it has run now.
func (h hooks) prepare(ctx context.Context, round runtime.Round, prepared bool, done func()) ([]string, error) {
	env := round.Env
	if h.scripts.BuildBase != "" {
		dir := filepath.Join(h.base, baseName(h.scripts.BuildBase))
		env = append(env[:len(env):len(env)], contract.EnvBaseDir+"="+dir)
		if err := h.buildBase(ctx, round, dir, env); err != nil {
			return nil, err
		}
	}
	if !prepared && h.scripts.AfterCheckout != "" {
		if err := h.run(ctx, "after_checkout", h.scripts.AfterCheckout, round, round.Dir, env); err != nil {
			return nil, err
		}
		done()
	}
	return env, h.run(ctx, "before_start", h.scripts.BeforeStart, round, round.Dir, env)
}

// baseName is the name of a base's folder: the same script, the same base.
func baseName(script string) string {
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:8])
}

// builtMark is in the folder of a base that is whole.
const builtMark = ".bullpen-built"

// buildBase builds the base if it is not there, and removes the bases of other scripts: one round runs at a time.
func (h hooks) buildBase(ctx context.Context, round runtime.Round, dir string, env []string) error {
	if _, err := os.Stat(filepath.Join(dir, builtMark)); err == nil {
		return nil
	}
	if err := errors.Join(removeTree(dir), os.MkdirAll(dir, 0o750)); err != nil {
		return err
	}
	if err := h.run(ctx, "build_base", h.scripts.BuildBase, round, dir, env); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, builtMark), nil); err != nil {
		return err
	}
	others, err := os.ReadDir(h.base)
	if err != nil {
		return err
	}
	for _, other := range others {
		if path := filepath.Join(h.base, other.Name()); path != dir {
			if err := removeTree(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs one script of a round with sh in a folder.
func (h hooks) run(ctx context.Context, name, text string, round runtime.Round, dir string, env []string) error {
	if text == "" {
		return nil
	}
	h.log.Info("running a hook", "hook", name, "item", round.Offer.WorkItem.ID)
	s := script{
		name: name, text: text, dir: dir, scratch: round.Scratch, env: env, record: round.ProcessRecord, grace: h.grace, together: true,
	}
	said, exit, err := s.run(ctx, nil)
	if err != nil {
		return fmt.Errorf("the hook %s cannot be run: %w", name, err)
	}
	if !exit.OK() {
		return fmt.Errorf("the hook %s failed: %s: %s", name, exit, said.err)
	}
	h.log.Debug("a hook ended", "hook", name, "item", round.Offer.WorkItem.ID, "output", said.err)
	return nil
}

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
	// together has standard output go where standard error does.
	together bool
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
	options.Stdout = options.Stderr
	if !s.together {
		if options.Stdout, err = temp("hook-*.out"); err != nil {
			return said, exit, err
		}
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
