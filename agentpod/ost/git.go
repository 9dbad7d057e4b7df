package ost

// This file opens pull requests, as far as that goes without a code host: it checks the ticket's rules and pushes the branch.

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// runCommand runs a program to its end.
func runCommand(cmd *exec.Cmd) (out, errOut []byte, err error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.Bytes(), stderr.Bytes(), err
}

// git runs git here and returns what it printed. It never asks anybody for a password.
func (a *app) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	out, errOut, err := a.run(cmd)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fail(ExitRefused, "", "git is not installed here")
	case err != nil:
		return "", fail(ExitRefused, "", "git %s failed: %v: %s", args[0], err, strings.TrimSpace(string(errOut)))
	}
	return strings.TrimSpace(string(out)), nil
}

// unpack reads an answer's payload.
func unpack(ans answer, into any) error {
	if err := json.Unmarshal(ans.Payload, into); err != nil {
		return fail(ExitAway, protocol.CodeFailed, "the office's answer cannot be read: %v", err)
	}
	return nil
}

// opened is what "ost pr open --json" prints.
type opened struct {
	Pushed struct {
		Remote string `json:"remote"`
		Branch string `json:"branch"`
		Commit string `json:"commit"`
	} `json:"pushed"`
	// Ticket is the one that the pull request belongs to, if any.
	Ticket string `json:"ticket,omitempty"`
	// PullRequest is null as long as the team has no code host that opens one.
	PullRequest *protocol.MadePull `json:"pullRequest"`
}

func (a *app) prOpen() *cobra.Command {
	c := pullFlags(&cobra.Command{
		Use:   "open",
		Short: "Check the ticket's rules and push the branch of a pull request",
		Long: `Push the branch that a pull request is to be opened from.

This office has no code host yet, so nothing is opened: ost makes sure that the ticket may get a pull request (see ost
pr check), pushes the branch, and tells what to do next. Open the pull request where the branch is, with the host's own
tool, and record it with "ost pr made". With an office that keeps no tickets, only the push is left.

The branch must not be the remote's default one. What is not committed is not pushed.`,
		Example: `  ost pr open
  ost pr open --title "Round invoices once" --body - < description.md`,
		Args: takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := a.pull(c)
			if err != nil {
				return err
			}
			remote, _ := c.Flags().GetString("remote")
			var result opened
			result.Pushed.Remote, result.Pushed.Branch = remote, m.HeadRef
			if result.Ticket, err = a.checkTicket(c.Context(), m); err != nil {
				return err
			}
			if result.Pushed.Commit, err = a.push(c.Context(), remote, m.HeadRef); err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(result)
			}
			a.sayPushed(result)
			return nil
		},
	})
	c.Flags().String("remote", "origin", "the `REMOTE` to push to")
	return c
}

// checkTicket returns the ticket that a pull request belongs to, or why it may not be opened.
func (a *app) checkTicket(ctx context.Context, m protocol.TicketPrs) (string, error) {
	ans, err := a.client.send(ctx, m.Type(), m)
	var f *failure
	if errors.As(err, &f) && f.exit == ExitRefused && f.code == protocol.CodeUnsupported {
		a.hint("the office keeps no tickets, so their rules were not checked")
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var found protocol.TicketPrsResult
	if err := unpack(ans, &found); err != nil {
		return "", err
	}
	if why := mayNotOpen(found); why != "" {
		return "", fail(ExitRefused, protocol.CodeInvalid, "%s", why)
	}
	return found.Ticket, nil
}

// push pushes a branch and returns its commit.
func (a *app) push(ctx context.Context, remote, branch string) (string, error) {
	// Where it is not known which branch is the default one, there is nothing to compare with.
	if head, err := a.git(ctx, "symbolic-ref", "--quiet", "--short", "refs/remotes/"+remote+"/HEAD"); err == nil && head == remote+"/"+branch {
		return "", fail(ExitRefused, protocol.CodeInvalid, "%s is the default branch of %s: make a branch of your own (git switch -c NAME)", branch, remote)
	}
	commit, err := a.git(ctx, "rev-parse", "--short", "refs/heads/"+branch)
	if err != nil {
		return "", err
	}
	if changes, err := a.git(ctx, "status", "--porcelain"); err == nil && changes != "" {
		a.hint("%s not committed, and so not pushed", count(strings.Count(changes, "\n")+1, "change is", "changes are"))
	}
	_, err = a.git(ctx, "push", "--quiet", "--set-upstream", remote, "refs/heads/"+branch+":refs/heads/"+branch)
	return commit, err
}

func (a *app) sayPushed(o opened) {
	forTicket := ""
	if o.Ticket != "" {
		forTicket = " --ticket " + o.Ticket
	}
	a.say("pushed %s (%s) to %s", o.Pushed.Branch, o.Pushed.Commit, o.Pushed.Remote)
	a.say("No pull request was opened: this office has no code host. Open it there, then record it:")
	a.say("  ost pr made OWNER/REPO NUMBER%s", forTicket)
}
