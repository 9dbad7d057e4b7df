package workplace

// This file runs the team's hooks that prepare a place.

import (
	"context"
	"fmt"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// hooks runs the hooks of one round.
type hooks struct {
	place  *Place
	order  Order
	round  *runtime.Round
	report Reporter
}

// prepare runs what has to run. fresh says that there is a checkout that after_checkout has not run in.
func (h *hooks) prepare(ctx context.Context, fresh bool) error {
	scripts := h.order.Hooks
	if scripts.BuildBase != "" {
		if err := h.base(ctx); err != nil {
			return err
		}
	}
	if scripts.AfterCheckout != "" && (fresh || !h.order.Prepared) {
		if err := h.run(ctx, feed.PhaseSetup, feed.StepAfterCheckout, scripts.AfterCheckout, h.round.Workdir); err != nil {
			return err
		}
		if err := h.place.ready(ctx, *h.round); err != nil {
			return failure(ReasonError, err)
		}
		h.order.OnPrepared()
	}
	return h.run(ctx, feed.PhaseHooks, feed.StepBeforeStart, scripts.BeforeStart, h.round.Workdir)
}

// run runs one script with sh in a folder, if there is one, and tells of it.
func (h *hooks) run(ctx context.Context, phase, name, text, dir string) error {
	if text == "" {
		return nil
	}
	h.place.Log.Info("running a hook", "hook", name, "item", h.round.Offer.WorkItem.ID)
	s := begin(h.report, phase, name)
	exit, err := execute(ctx, process.Options{
		Args: []string{"/bin/sh", "-c", text}, Dir: dir, Env: h.round.Env, Record: h.round.ProcessRecord, Grace: h.place.Grace,
	}, s.out.on(feed.Stdout), s.out.on(feed.Stderr))
	s.out.close()
	switch {
	case err != nil:
		err = fmt.Errorf("the hook %s cannot be run: %w", name, err)
	case !exit.OK() && s.out.last() == "":
		err = fmt.Errorf("the hook %s failed: %s", name, exit)
	case !exit.OK():
		err = fmt.Errorf("the hook %s failed: %s: %s", name, exit, s.out.last())
	}
	if err != nil {
		s.fail(err)
		return err
	}
	s.complete(nil)
	return nil
}

// withBase gives the round's programs the base.
func (h *hooks) withBase(dir string) {
	env := h.round.Env
	h.round.Env = append(env[:len(env):len(env)], contract.EnvBaseDir+"="+dir)
}
