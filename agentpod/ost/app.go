package ost

// This file is the command's frame: where it reads and writes, how a message is sent and its outcome printed, and the exit
// code. The commands themselves are in the files beside it.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Streams are the command's standard files.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// maxText is the most bytes of a text that is read from standard input; a message has to fit a frame.
const maxText = protocol.MaxFrame

// app is one run of the command.
type app struct {
	Streams
	env    func(string) string
	client *client
	json   bool
	// run runs a program and returns what it printed on its standard output and error.
	run func(cmd *exec.Cmd) (out, err []byte, failed error)
}

// Main runs the command with its arguments, and returns the exit code. env looks up an environment variable.
func Main(ctx context.Context, args []string, std Streams, env func(string) string, version string) int {
	a := &app{Streams: std, env: env, client: newClient(env(contract.EnvSocket)), run: runCommand}
	root := a.command()
	root.Version = version
	root.SetArgs(args)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	cmd, err := root.ExecuteContextC(ctx)
	return a.end(cmd, err, slices.Contains(args, "--json"))
}

// Command returns the command with all that is below it, to be looked at.
func Command() *cobra.Command { return (&app{}).command() }

const rootLong = `ost speaks to your team: it asks teammates, keeps the queue, records what you made, remembers, and looks up.
It works inside an agent's pod, through the agent, which carries each message to the office.

Where a command takes a text, "-" reads it from standard input. Commands about a work item take the one you are
working on ($BULLPEN_ITEM_ID) unless --item names another.

While the office cannot be reached, what must not be lost is kept by the agent and delivered later; ost then says
that it is queued and ends with 0. What asks for something ends with 75.

Exit codes:
   0  done, or queued
   1  refused, with the reason
   2  the command or its message was not understood
  69  there is no agent to speak to
  75  no answer came and nothing was queued; try again later`

// command makes the tree of commands.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "ost",
		Short:         "Speak to your team from an agent's pod",
		Long:          rootLong,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          takes(0, 0),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	// A command with others below it does nothing by itself, so its own line of usage would mislead.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if not .HasAvailableSubCommands}}", 1))
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print the answer as JSON")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v", err) })
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"team", "Your team:", []*cobra.Command{a.ask(), a.answer(), a.roster(), a.chat(), a.reports(), a.report()}},
		{"work", "Your work:", []*cobra.Command{a.work(), a.journal(), a.progress(), a.ticket(), a.pr(), a.ci(), a.doc(), a.usage()}},
		{"memory", "Your memory:", []*cobra.Command{a.note(), a.recall()}},
		{"other", "Other:", []*cobra.Command{a.raw()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("other")
	return root
}

// group is a command that only has commands below it.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: takes(0, 0), RunE: needsCommand}
	c.AddCommand(commands...)
	return c
}

// needsCommand answers a group that is run by itself.
func needsCommand(c *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			names = append(names, sub.Name())
		}
	}
	return usage("%s needs one of %s", c.CommandPath(), strings.Join(names, ", "))
}

// takes has a command take so many arguments. Without a command of that name below it, the first one is taken for that.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, given []string) error {
		switch {
		case c.HasSubCommands() && len(given) > 0:
			return usage("%s has no command %q", c.CommandPath(), given[0])
		case len(given) < least || len(given) > most:
			return usage("that makes %s; the command is: %s", count(len(given), "argument", "arguments"), synopsis(c))
		}
		return nil
	}
}

// synopsis is a command with its arguments.
func synopsis(c *cobra.Command) string {
	_, arguments, _ := strings.Cut(c.Use, " ")
	return strings.TrimSpace(c.CommandPath() + " " + arguments)
}

// end prints why a command failed, and returns the exit code.
func (a *app) end(cmd *cobra.Command, err error, asJSON bool) int {
	if err == nil {
		return ExitOK
	}
	var f *failure
	if !errors.As(err, &f) { // cobra's own, about the command line
		f = &failure{exit: ExitUsage, code: protocol.CodeInvalidMessage, message: err.Error()}
	}
	code := ""
	if f.exit == ExitRefused && f.code != "" {
		code = " (" + string(f.code) + ")"
	}
	_, _ = fmt.Fprintf(a.Err, "ost: %s%s\n", f.message, code)
	if f.exit == ExitUsage {
		_, _ = fmt.Fprintf(a.Err, "See \"%s --help\".\n", cmd.CommandPath())
	}
	if asJSON && !f.shown {
		_ = a.writeJSON(map[string]problem{"error": {f.exit, f.code, f.message}})
	}
	return f.exit
}

// problem is what --json prints of a failure.
type problem struct {
	Exit    int           `json:"exit"`
	Code    protocol.Code `json:"code,omitempty"`
	Message string        `json:"message"`
}

// itemFlag adds the flag for a command about a work item.
func itemFlag(c *cobra.Command) *cobra.Command {
	c.Flags().String("item", "", "the work item's `ID` (default $"+contract.EnvItemID+")")
	return c
}

// item is the work item that a command is about; empty where there is none.
func (a *app) item(c *cobra.Command) string {
	if f := c.Flags().Lookup("item"); f != nil && f.Changed {
		return f.Value.String()
	}
	return a.env(contract.EnvItemID)
}

// needItem is like item, and fails where there is none.
func (a *app) needItem(c *cobra.Command) (string, error) {
	if id := a.item(c); id != "" {
		return id, nil
	}
	return "", usage("which work item? Name it with --item, or set %s", contract.EnvItemID)
}

// text returns a text argument, or standard input for "-".
func (a *app) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.In, maxText+1))
	if err != nil {
		return "", usage("standard input cannot be read: %v", err)
	}
	if len(data) > maxText {
		return "", usage("standard input has more than %d bytes, which no message may have", maxText)
	}
	return strings.TrimRight(string(data), "\n"), nil
}

// show sends a message and prints its result, for people by human. That the message is queued is said instead.
func show[T any](ctx context.Context, a *app, m protocol.Message, human func(T)) error {
	ans, err := a.client.send(ctx, m.Type(), m)
	if err != nil {
		return err
	}
	return present(a, ans, human)
}

// present prints an answer.
func present[T any](a *app, ans answer, human func(T)) error {
	switch {
	case ans.Queued && a.json:
		return a.writeJSON(map[string]bool{"queued": true})
	case ans.Queued:
		a.say("queued: the office cannot be reached now; the agent delivers this when it can")
		return nil
	case a.json:
		return a.writeJSON(ans.Payload)
	}
	var result T
	if err := json.Unmarshal(ans.Payload, &result); err != nil {
		return fail(ExitAway, protocol.CodeFailed, "the office's answer cannot be read: %v", err)
	}
	human(result)
	return nil
}

// done is what there is to print of an acknowledgement.
func (a *app) done(format string, args ...any) func(protocol.Ack) {
	return func(protocol.Ack) { a.say(format, args...) }
}

// say prints a line.
func (a *app) say(format string, args ...any) { _, _ = fmt.Fprintf(a.Out, format+"\n", args...) }

// hint prints a line that is not part of the result.
func (a *app) hint(format string, args ...any) { _, _ = fmt.Fprintf(a.Err, format+"\n", args...) }

func (a *app) writeJSON(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fail(ExitAway, protocol.CodeFailed, "the answer has no JSON form: %v", err)
	}
	_, _ = fmt.Fprintf(a.Out, "%s\n", data)
	return nil
}

// oneOf checks a word against those that are allowed.
func oneOf(what, word string, allowed ...string) error {
	if slices.Contains(allowed, word) {
		return nil
	}
	return usage("%s must be one of %s, not %q", what, strings.Join(allowed, ", "), word)
}
