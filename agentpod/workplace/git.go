package workplace

// This file runs git.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// gitGrace is how long git may take to end when it is told to. It cleans up behind itself meanwhile.
	gitGrace = 2 * time.Second
	// maxAnswer is the most bytes of an answer of git's that are read.
	maxAnswer = 8 << 20
)

// localEnv are the variables that point git to some repository; none of them may reach the agent's own git. Settings given by
// GIT_CONFIG_COUNT stay: such as a proxy or a company's certificates come that way.
var localEnv = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_NAMESPACE", "GIT_PREFIX", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_REPLACE_REF_BASE", "GIT_NO_REPLACE_OBJECTS",
	"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CONFIG", "GIT_EXTERNAL_DIFF",
}

// ownSettings are those of the agent's own git. Hooks and monitors that a program set up are for the program; a transfer that stands
// still for two minutes is given up.
var ownSettings = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false",
	"-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=120", "-c", "color.ui=false", "-c", "core.quotePath=false",
	"-c", "i18n.logOutputEncoding=UTF-8", "-c", "log.showSignature=false",
}

// git runs git with an environment; one at a time, for there is one record of what runs.
type git struct {
	env    []string
	record string
}

func newGit(env []string, record string) git {
	env = append(without(env, localEnv...), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	return git{env: env, record: record}
}

// gitError says that git ended badly.
type gitError struct {
	command string
	exit    process.Exit
	// words are the end of what it said.
	words string
}

// Error has git's own words.
func (e *gitError) Error() string {
	if e.words == "" {
		return fmt.Sprintf("git %s failed: %s", e.command, e.exit)
	}
	return fmt.Sprintf("git %s failed: %s: %s", e.command, e.exit, e.words)
}

// saidNo returns true if git ran and said no, with an exit status of its own: 1 means "not so" to many of its commands.
func saidNo(err error) bool {
	var failed *gitError
	return errors.As(err, &failed) && failed.exit.Code == 1
}

// options put a run of git together.
func (g git) options(dir string, args []string) (process.Options, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return process.Options{}, errors.New("git is not in PATH: the team has repositories, so use an image that has it")
	}
	all := append([]string{program}, ownSettings...)
	return process.Options{Args: append(all, args...), Dir: dir, Env: g.env, Record: g.record, Grace: gitGrace}, nil
}

// ask runs git in a folder, and returns what it answers, without the end of its last line.
func (g git) ask(ctx context.Context, dir string, args ...string) (string, error) {
	answer := &capture{most: maxAnswer}
	if err := g.run(ctx, dir, args, answer, io.Discard); err != nil {
		return "", err
	}
	return strings.TrimRight(answer.buf.String(), "\n"), nil
}

// do runs git in a folder for what it does.
func (g git) do(ctx context.Context, dir string, args ...string) error {
	return g.run(ctx, dir, args, io.Discard, io.Discard)
}

// tell runs git in a folder, and tells all that it says.
func (g git) tell(ctx context.Context, dir string, out *output, args ...string) error {
	return g.run(ctx, dir, args, out.on(feed.Stdout), out.on(feed.Stderr))
}

func (g git) run(ctx context.Context, dir string, args []string, stdout, stderr io.Writer) error {
	o, err := g.options(dir, args)
	if err != nil {
		return err
	}
	words := newOutput(silent{}, "", "")
	exit, err := execute(ctx, o, stdout, io.MultiWriter(stderr, words.on(feed.Stderr)))
	words.close()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("git %s cannot be run: %w", args[0], err)
	case !exit.OK():
		return &gitError{command: args[0], exit: exit, words: words.last()}
	}
	return nil
}

// ref returns the commit that a reference names; empty if there is none.
func (g git) ref(ctx context.Context, dir, name string) (string, error) {
	sha, err := g.ask(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if saidNo(err) {
		return "", nil
	}
	return sha, err
}

// refs returns the references that fit a pattern of for-each-ref, with their commits.
func (g git) refs(ctx context.Context, dir string, patterns ...string) ([]reference, error) {
	text, err := g.ask(ctx, dir, append([]string{"for-each-ref", "--format=%(objectname) %(refname)", "--"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var found []reference
	for line := range strings.Lines(text) {
		if sha, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			found = append(found, reference{name, sha})
		}
	}
	return found, nil
}

// reference is a name of a commit.
type reference struct{ name, sha string }
