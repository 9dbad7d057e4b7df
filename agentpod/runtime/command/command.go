// Package command is the runtime that runs any program: the work comes on its standard input, what it prints is progress,
// and its exit status and result file say how the round ended. docs/agent.md describes it for those who write programs.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/result"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Name of the runtime.
const Name = "command"

// Command is the runtime.
type Command struct {
	// Args is the program and its arguments.
	Args []string
	// Grace is how long the program may take to end after SIGTERM.
	Grace time.Duration
	// Log gets what the program writes to its standard error.
	Log *slog.Logger
}

var _ runtime.Runtime = (*Command)(nil)

// Name returns the runtime's name.
func (c *Command) Name() string { return Name }

// Doctor checks that the program is there.
func (c *Command) Doctor(context.Context) []protocol.DoctorCheck {
	check := protocol.DoctorCheck{Name: "Command runs", Status: protocol.CheckOK}
	program := c.Args[0]
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		check.Detail = program + " is looked for in each item's folder"
		return []protocol.DoctorCheck{check}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		check.Status = protocol.CheckFail
		check.Detail = fmt.Sprintf("the program %s cannot be run: %v", program, errors.Unwrap(err))
		check.Fix = "use an image that has it, or name another program in " + contract.EnvCommand
		return []protocol.DoctorCheck{check}
	}
	check.Detail = path + " is there"
	return []protocol.DoctorCheck{check}
}

// Run runs the program once.
func (c *Command) Run(ctx context.Context, round runtime.Round, sink runtime.Sink) (runtime.Result, error) {
	offer, err := offerFile(round)
	if err != nil {
		return runtime.Result{}, err
	}
	defer offer.Close() //nolint:errcheck // only read from
	out, err := listen(sink, c.Log.With("item", round.Offer.WorkItem.ID))
	if err != nil {
		return runtime.Result{}, err
	}
	resultFile := filepath.Join(round.Scratch, "result.json")
	exit, err := process.Run(ctx, process.Options{
		Args:   c.Args,
		Dir:    cmp.Or(round.Workdir, round.Dir),
		Env:    append(round.Env[:len(round.Env):len(round.Env)], contract.EnvResultFile+"="+resultFile),
		Stdin:  offer,
		Stdout: out.stdout,
		Stderr: out.stderr,
		Record: round.ProcessRecord,
		Grace:  c.Grace,
		Begun:  sink.Started,
	})
	said := out.close()
	if err != nil {
		return runtime.Result{}, err
	}
	if r, err := resultOf(exit, resultFile); err != nil {
		c.Log.Warn("the result of a program cannot be recorded", "error", err)
	} else {
		sink.Record(r)
	}
	end, session := conclude(exit, ctx.Err() != nil, said, resultFile)
	if session != "" {
		sink.Session(session, "")
	}
	return end, nil
}

// offerFile gives the program's standard input: a file holds any size and cannot block anyone.
func offerFile(round runtime.Round) (*os.File, error) {
	path := filepath.Join(round.Scratch, "offer.json")
	if err := os.WriteFile(path, round.Payload, 0o600); err != nil {
		return nil, fmt.Errorf("the offer cannot be written for the program: %w", err)
	}
	return os.Open(path)
}

// conclude says how the round ended, and which session the program named in its result.
func conclude(exit process.Exit, stopped bool, said said, resultFile string) (runtime.Result, string) {
	found, err := result.Read(resultFile)
	usage := merge(said.usage, found.Usage)
	summary := cmp.Or(found.Summary, said.lastLine)
	switch {
	case stopped && (!exit.OK() || err != nil || found.Status == ""):
		return runtime.Result{
			Status: protocol.HandbackInterrupted, Usage: usage, Links: found.Links,
			Summary: cmp.Or(summary, "The round was cut short before the program said anything."),
		}, found.Session
	case !exit.OK():
		reason := exit.String()
		if said.lastError != "" {
			reason += ": " + said.lastError
		}
		return runtime.Result{Failed: reason, Usage: usage}, found.Session
	case err != nil:
		return runtime.Result{Failed: "the program ended well, but its result cannot be used: " + err.Error(), Usage: usage}, ""
	}
	status := found.Status
	if status == "" {
		status = protocol.HandbackDone
	}
	return runtime.Result{
		Status: status, Links: found.Links, ToReview: found.ToReview, Usage: usage,
		Summary: cmp.Or(summary, "The program ended without saying anything."),
	}, found.Session
}

// merge gives the latest figures of each session.
func merge(earlier, later []protocol.SessionUsage) []protocol.SessionUsage {
	merged := earlier[:len(earlier):len(earlier)]
next:
	for _, usage := range later {
		for i := range merged {
			if merged[i].Session == usage.Session {
				merged[i] = usage
				continue next
			}
		}
		merged = append(merged, usage)
	}
	return merged
}
