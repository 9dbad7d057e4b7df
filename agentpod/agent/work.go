package agent

// This file starts the runtime on a round and takes what it tells.

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/workplace"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// start runs a round beside the loop.
func (a *Agent) start(s start) {
	ctx, cancel := context.WithCancel(context.Background())
	id := s.item.id
	t := a.newTurn(s.item)
	a.run = &run{seq: s.seq, id: id, cancel: cancel, record: a.home.processRecord(id), turn: t}
	round := runtime.Round{
		Offer: s.item.offer, Payload: s.item.payload, Number: s.item.round,
		Dir: a.home.itemDir(id), Scratch: a.home.scratchDir(id), ProcessRecord: a.run.record,
		SessionID: s.item.session, Resumed: s.resumed,
		Model: a.model(), Team: a.team.config, Person: person(a.team.config, a.cfg.Person), Grace: a.cfg.ProgramGrace(),
	}
	if role := roleOf(a.team.config, a.cfg.Person); role.Name != "" {
		round.Role = &role
	}
	round.Env = a.environment(round)
	_, err := os.Stat(round.Dir)
	order := workplace.Order{
		Round: round, Hooks: hooksOf(a.team.config, a.cfg.Person),
		Prepared: s.item.prepared && err == nil, OnPrepared: func() { a.do(func() { a.onPrepared(id) }) },
	}
	a.log.Info("working", "item", id, "round", round.Number, "resumed", round.Resumed)
	go func() {
		defer cancel()
		result, facts, err := a.work(ctx, order, sink{t, a, s.seq, id})
		failure := ""
		if err != nil {
			result.Failed, failure = err.Error(), workplace.ReasonOf(err)
		}
		a.do(func() { a.onEnd(s.seq, round, result, facts, failure) })
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

func (a *Agent) onPrepared(id string) {
	if it := a.machine.items[id]; it != nil {
		it.prepared = true
		a.perform([]action{save{*it}})
	}
}

// onEnd takes how a round ended, and for one that failed the reason in the words of the session events, if it is known.
func (a *Agent) onEnd(seq int, round runtime.Round, result runtime.Result, facts workplace.Facts, failure string) {
	t, stopped := a.run.turn, a.machine.stoppedWhy(seq)
	a.run = nil
	var made []string
	if it := a.machine.items[round.Offer.WorkItem.ID]; it != nil {
		made = it.made
	}
	ending := endingOf(round, result, made, needsNoReview(round.Team, a.cfg.Person, round.Offer.WorkItem.Kind), facts.Finish())
	a.log.Info("the round ended", "item", round.Offer.WorkItem.ID, "round", round.Number,
		"status", result.Status, "failed", result.Failed)
	a.takeTeam()
	a.runErrands()
	delete(a.latest, protocol.TypeProgress) // the hand-back says it better
	a.perform(a.machine.ended(seq, ending, result.Usage))
	// After the outbox has it: a turn that has ended here is one whose end the office will hear of.
	switch stopped {
	case replaced:
		t.leave()
	case dropped:
		t.end(endOfTurn(nil, ""))
	case goesOn, shutdown:
		t.end(endOfTurn(ending, failure))
	}
	a.askAbout()
}

// sink takes what the runtime tells about one round. What belongs to the session's feed is the turn's.
type sink struct {
	*turn
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
	me, repositories := person(a.team.config, a.cfg.Person), a.team.config.Repositories
	doorChecks := checkDoor(a.doorProblem)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		runtimeChecks := append(a.cfg.Runtime.Doctor(ctx), a.place.Doctor(ctx, repositories)...)
		checks := append(examine(ctx, me, a.cfg.Home), runtimeChecks...)
		checks = append(checks, doorChecks...)
		a.maskChecks(runtimeChecks)
		a.maskChecks(checks)
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
