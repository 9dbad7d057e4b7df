package agent

// This file starts the runtime on a round and takes what it tells.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// start runs a round beside the loop.
func (a *Agent) start(s start) {
	ctx, cancel := context.WithCancel(context.Background())
	id := s.item.id
	a.run = &run{seq: s.seq, id: id, cancel: cancel, record: a.home.processRecord(id)}
	round := runtime.Round{
		Offer: s.item.offer, Payload: s.item.payload, Number: s.item.round,
		Dir: a.home.itemDir(id), Scratch: a.home.scratchDir(id), ProcessRecord: a.run.record,
		SessionID: s.item.session, Resumed: s.resumed,
		Model: a.model(), Team: a.team.config,
	}
	round.Env = a.environment(round)
	hooks := hooks{
		scripts: hooksOf(a.team.config, a.cfg.Person), base: a.home.basesDir(), grace: a.cfg.ProgramGrace(), log: a.log,
	}
	_, err := os.Stat(round.Dir)
	prepared := s.item.prepared && err == nil
	a.log.Info("working", "item", id, "round", round.Number, "resumed", round.Resumed)
	go func() {
		defer cancel()
		result, err := a.work(ctx, round, hooks, prepared, s.seq)
		if err != nil {
			result.Failed = err.Error()
		}
		a.do(func() { a.onEnd(s.seq, round, result) })
	}()
}

// environment is what the round's programs see.
func (a *Agent) environment(round runtime.Round) []string {
	env := append(a.cfg.Env[:len(a.cfg.Env):len(a.cfg.Env)],
		contract.EnvItemID+"="+round.Offer.WorkItem.ID,
		contract.EnvItemDir+"="+round.Dir,
		contract.EnvRound+"="+strconv.Itoa(round.Number),
		contract.EnvTeamFile+"="+a.home.teamFile(),
		contract.EnvTeamPage+"="+a.home.teamPage(),
	)
	if round.Model != "" {
		env = append(env, contract.EnvModel+"="+round.Model)
	}
	if round.SessionID != "" {
		env = append(env, contract.EnvSession+"="+round.SessionID)
	}
	if round.Resumed {
		env = append(env, contract.EnvResumed+"=true")
	}
	return env
}

// work prepares the round's place and runs the runtime. It runs on its own goroutine.
func (a *Agent) work(ctx context.Context, round runtime.Round, hooks hooks, prepared bool, seq int) (runtime.Result, error) {
	if err := errors.Join(
		os.MkdirAll(round.Dir, 0o750), removeTree(round.Scratch), os.MkdirAll(round.Scratch, 0o750),
	); err != nil {
		return runtime.Result{}, fmt.Errorf("the item's folders cannot be made: %w", err)
	}
	defer func() {
		if err := removeTree(round.Scratch); err != nil {
			a.log.Warn("a scratch folder cannot be removed", "folder", round.Scratch, "error", err)
		}
	}()
	env, err := hooks.prepare(ctx, round, prepared, func() { a.do(func() { a.onPrepared(round.Offer.WorkItem.ID) }) })
	if ctx.Err() != nil {
		return runtime.Result{
			Status: protocol.HandbackInterrupted, Summary: "The round was cut short while its place was prepared.",
		}, nil
	}
	if err != nil {
		return runtime.Result{}, err
	}
	round.Env = env
	return a.cfg.Runtime.Run(ctx, round, sink{a, seq, round.Offer.WorkItem.ID})
}

func (a *Agent) onPrepared(id string) {
	if it := a.machine.items[id]; it != nil {
		it.prepared = true
		a.perform([]action{save{*it}})
	}
}

// onEnd takes how a round ended.
func (a *Agent) onEnd(seq int, round runtime.Round, result runtime.Result) {
	a.run = nil
	var made []string
	if it := a.machine.items[round.Offer.WorkItem.ID]; it != nil {
		made = it.made
	}
	ending := endingOf(round, result, made, needsNoReview(round.Team, a.cfg.Person, round.Offer.WorkItem.Kind))
	a.log.Info("the round ended", "item", round.Offer.WorkItem.ID, "round", round.Number,
		"status", result.Status, "failed", result.Failed)
	a.takeTeam()
	a.runErrands()
	delete(a.latest, protocol.TypeProgress) // the hand-back says it better
	a.perform(a.machine.ended(seq, ending, result.Usage))
	a.askAbout()
}

// endingOf puts a result into the message that ends the round. made is what the program announced through ost; where its
// result names nothing to review, that is it.
func endingOf(round runtime.Round, result runtime.Result, made []string, noReview bool) protocol.Message {
	item := round.Offer.WorkItem
	if result.Failed != "" {
		return protocol.Fail{WorkItemID: item.ID, Reason: result.Failed, Usage: result.Usage}
	}
	h := protocol.Handback{
		WorkItemID: item.ID, Summary: result.Summary, Links: result.Links, Status: result.Status,
		ToReview: result.ToReview, Usage: result.Usage,
	}
	if h.Status == "" {
		h.Status = protocol.HandbackDone
	}
	if h.Status == protocol.HandbackDone && len(h.ToReview) == 0 {
		h.ToReview = slices.Clone(made)
		if len(made) == 0 && noReview {
			h.ToReview = []string{item.Kind + " needs no review"}
		}
	}
	return h
}

// sink takes what the runtime tells about one round.
type sink struct {
	agent *Agent
	seq   int
	id    string
}

// working has the loop do something if the round is still what the office waits for.
func (s sink) working(f func(it *item)) {
	s.agent.do(func() {
		c := s.agent.machine.current
		if c != nil && c.seq == s.seq && c.stopped != dropped && c.stopped != replaced {
			f(s.agent.machine.items[s.id])
		}
	})
}

// Progress keeps the line until it can be sent; a later one takes its place.
func (s sink) Progress(text string) {
	s.working(func(*item) { s.agent.keep(protocol.Progress{WorkItemID: s.id, Text: text}, s.seq) })
}

// Journal puts the line into the outbox.
func (s sink) Journal(text string) {
	s.working(func(*item) {
		s.agent.perform(s.agent.machine.post(protocol.Journal{WorkItemID: s.id, Text: text}, s.seq))
	})
}

// Session remembers the session and tells the office.
func (s sink) Session(id, model string) {
	s.working(func(it *item) {
		if it.session == id && model == "" {
			return // known
		}
		it.session = id
		s.agent.perform(append(
			[]action{save{*it}},
			s.agent.machine.post(protocol.Session{WorkItemID: s.id, SessionID: id, Model: model}, s.seq)...,
		))
	})
}

// Usage keeps the windows until they can be sent.
func (s sink) Usage(windows []protocol.UsageWindow) {
	s.agent.do(func() { s.agent.keep(protocol.Usage{Windows: windows}, 0) })
}

// examine makes the doctor's checks beside the loop and reports them.
func (a *Agent) examine() {
	me := person(a.team.config, a.cfg.Person)
	doorChecks := checkDoor(a.doorProblem)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		runtimeChecks := a.cfg.Runtime.Doctor(ctx)
		checks := append(examine(ctx, me, a.cfg.Home), runtimeChecks...)
		checks = append(checks, doorChecks...)
		a.do(func() {
			a.runtimeProblem = unfitBecause(runtimeChecks)
			a.judge()
			a.keep(protocol.DoctorReport{Checks: checks}, 0)
		})
	}()
}

// askAbout asks what became of items whose folders have not been touched for a while.
func (a *Agent) askAbout() {
	const most = 1000
	if a.link == nil || a.waitsFor(protocol.TypeWorkStatus) {
		return
	}
	before := time.Now().Add(-a.cfg.keep).Unix()
	var ids []string
	for id, it := range a.machine.items {
		if a.forgettable(it) && it.touched <= before && len(ids) < most {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		a.ask(protocol.WorkStatus{WorkItemIDs: ids}, 0)
	}
}

// forgettable says whether the agent itself needs an item no more.
func (a *Agent) forgettable(it *item) bool {
	n := a.machine.next
	return it != nil && it.phase != phaseStarted && a.machine.endings[it.id] == 0 && !a.machine.has(it.id) &&
		(n == nil || n.offer.WorkItem.ID != it.id)
}

// forget removes the items that no further round can come for.
func (a *Agent) forget(result protocol.WorkStatusResult) {
	for _, status := range result.Items {
		it := a.machine.items[status.WorkItemID]
		if !a.forgettable(it) || !over(status.State) {
			continue
		}
		delete(a.machine.items, it.id)
		if err := a.home.forgetItem(it.id); err != nil {
			a.log.Warn("the folder of a finished item cannot be removed", "item", it.id, "error", err)
			continue
		}
		a.log.Info("removed the folder of an item", "item", it.id, "state", status.State)
	}
	go a.home.emptyTrash()
}

// over says whether no further round of an item can come to this home, or none that its folder would help.
func over(state protocol.ItemState) bool {
	switch state {
	case protocol.ItemState(protocol.StateDone), protocol.ItemState(protocol.StateCanceled),
		protocol.ItemUnknown, protocol.ItemNotYours:
		return true
	}
	return false
}

// Record, Delta and Started belong to the session's feed.
func (s sink) Record(runtime.Record) {}

// Delta shows what the runtime is writing.
func (s sink) Delta(feed.Delta) {}

// Started says that the turn runs.
func (s sink) Started() {}
