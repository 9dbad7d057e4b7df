package agent

// This file has a round's place prepared, and what git says about it afterwards put into the hand-back.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/workplace"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	// inspectWait is how long git may take to say how the checkouts stand, and hurriedWait how long when the round was cut short.
	inspectWait = 45 * time.Second
	hurriedWait = 2 * time.Second
)

// newPlace gives what prepares the places of this home's rounds.
func (a *Agent) newPlace() *workplace.Place {
	helper, err := os.Executable()
	if err != nil {
		a.log.Error("the agent cannot find its own program, so git cannot ask it for credentials", "error", err)
	}
	p := &workplace.Place{
		Root: a.home.root, Items: filepath.Join(a.home.root, "items"), Helper: helper,
		Namespace: a.cfg.Namespace, Person: a.cfg.Person, Grace: a.cfg.ProgramGrace(), Log: a.log,
	}
	for _, entry := range a.cfg.Env {
		if folder, ok := strings.CutPrefix(entry, contract.EnvGitCredentials+"="); ok {
			p.Credentials = folder
		}
	}
	return p
}

// work prepares the round's place, runs the runtime, and asks git how the place was left. It runs on its own goroutine.
func (a *Agent) work(ctx context.Context, order workplace.Order, to sink) (runtime.Result, workplace.Facts, error) {
	dir, scratch := order.Round.Dir, order.Round.Scratch
	if err := errors.Join(os.MkdirAll(dir, 0o750), disk.RemoveTree(scratch), os.MkdirAll(scratch, 0o750)); err != nil {
		return runtime.Result{}, workplace.Facts{}, fmt.Errorf("the item's folders cannot be made: %w", err)
	}
	defer func() {
		if err := disk.RemoveTree(scratch); err != nil {
			a.log.Warn("a scratch folder cannot be removed", "folder", scratch, "error", err)
		}
	}()
	round, err := a.place.Prepare(ctx, order, to)
	if ctx.Err() != nil {
		return runtime.Result{
			Status: protocol.HandbackInterrupted, Summary: "The round was cut short while its place was prepared.",
		}, workplace.Facts{}, nil
	}
	if err != nil {
		return runtime.Result{}, workplace.Facts{}, err
	}
	result, err := a.cfg.Runtime.Run(ctx, round, to)
	facts := a.inspect(ctx, round)
	if len(round.Worktrees) > 0 {
		to.git(facts.Git)
	}
	return result, facts, err
}

// inspect asks git how the checkouts stand, and the remotes too where there is time for it.
func (a *Agent) inspect(ctx context.Context, round runtime.Round) workplace.Facts {
	if len(round.Worktrees) == 0 {
		return workplace.Facts{}
	}
	if ctx.Err() == nil {
		calm, cancel := context.WithTimeout(ctx, inspectWait)
		facts := a.place.Inspect(calm, round, true)
		cancel()
		if ctx.Err() == nil {
			return facts
		}
	}
	hurried, cancel := context.WithTimeout(context.WithoutCancel(ctx), hurriedWait)
	defer cancel()
	return a.place.Inspect(hurried, round, false)
}

// The kinds of work that finish without a review whatever a role says: an answer is all there is to them.
const (
	kindQuestion = "question"
	kindChat     = "chat"
)

// endingOf puts a result into the message that ends the round. made is what the program announced through ost; where its result names
// nothing to review, that is it, or else what it pushed. A round that says it is done while work of it is only in this home is blocked,
// unless its kind of work needs no review: nobody else could see that work.
func endingOf(round runtime.Round, result runtime.Result, made []string, noReview bool, left workplace.Finish) protocol.Message {
	item := round.Offer.WorkItem
	if result.Failed != "" {
		return protocol.Fail{WorkItemID: item.ID, Reason: result.Failed, Usage: result.Usage}
	}
	h := protocol.Handback{
		WorkItemID: item.ID, Summary: result.Summary, Links: result.Links, Status: result.Status,
		ToReview: result.ToReview, Usage: result.Usage,
	}
	for _, link := range left.Links {
		if !slices.ContainsFunc(h.Links, func(l protocol.Link) bool { return l.URL == link.URL }) {
			h.Links = append(h.Links[:len(h.Links):len(h.Links)], link)
		}
	}
	if h.Status == "" {
		h.Status = protocol.HandbackDone
	}
	if h.Status != protocol.HandbackDone {
		return h
	}
	if len(h.ToReview) == 0 {
		switch {
		case len(made) > 0:
			h.ToReview = slices.Clone(made)
		case len(left.Review) > 0:
			h.ToReview = left.Review
		case noReview:
			h.ToReview = []string{item.Kind + " needs no review"}
		}
	}
	words := append(slices.Clone(left.Notes), left.Unfinished...)
	if len(left.Unfinished) > 0 && !noReview && item.Kind != kindQuestion && item.Kind != kindChat {
		h.Status = protocol.HandbackBlocked
		words = append(slices.Clone(left.Unfinished), left.Notes...)
		words = append(words, "That is only in the agent's home: let the item go on to have it committed and pushed.")
	}
	if len(words) > 0 {
		h.Summary = strings.TrimSpace(strings.Join(words, " ") + "\n\n" + h.Summary)
	}
	return h
}
