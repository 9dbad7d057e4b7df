package agent

// This file does errands: it keeps what was begun and done in the home, runs the hooks beside the rounds, and answers the
// office.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	// maxResults is how many lines of a hook's output become results of an act, and maxResultBytes how many bytes of it are
	// read.
	maxResults     = 1000
	maxResultBytes = 256 << 10
)

// errandHook is the hook that does a kind of errand, and the variables that tell it which.
type errandHook struct {
	name            string
	script          func(protocol.TeamHooks) string
	idVar, againVar string
}

var errandHooks = map[errandKind]errandHook{
	kindAct: {"on_act", func(h protocol.TeamHooks) string { return h.OnAct },
		contract.EnvActID, contract.EnvActRetry},
	kindReport: {"on_report", func(h protocol.TeamHooks) string { return h.OnReport },
		contract.EnvReportID, contract.EnvReportRetry},
}

// onActs takes acts to make.
func (a *Agent) onActs(acts []protocol.Act) {
	for _, act := range acts {
		a.onErrand(a.acts, act.ID, act)
	}
	a.runErrands()
}

// onReports takes reports to post.
func (a *Agent) onReports(reports []protocol.Report) {
	for _, report := range reports {
		a.onErrand(a.reports, report.ID, report)
	}
	a.runErrands()
}

func (a *Agent) onErrand(e *errands, id string, task any) {
	switch e.take(id, task) {
	case verdictAnswer:
		a.answerErrand(e.deeds[id].answer)
	case verdictNew:
		a.log.Info("the office has an errand", "kind", e.kind, "id", id)
	case verdictKnown:
	}
}

// runErrands begins what can begin. A shutdown begins nothing: what is not done comes again in the agent's next life.
func (a *Agent) runErrands() {
	if a.draining || a.replaced || a.team.problem != "" {
		return
	}
	for _, e := range []*errands{a.acts, a.reports} {
		for a.runErrand(e) {
		}
	}
}

// runErrand begins the next errand of a kind. It returns true if that one is over already.
func (a *Agent) runErrand(e *errands) bool {
	x, ok := e.next(time.Now())
	if !ok {
		return false
	}
	hook := errandHooks[e.kind]
	text := hook.script(a.hooksNow())
	if text == "" {
		return a.withoutHook(e, x)
	}
	d := &deed{kind: e.kind, id: x.id}
	if err := a.home.saveDeed(d); err != nil {
		wait := e.pause(x.id, time.Now())
		a.log.Error("an errand is not begun, for that cannot be kept on disk", "kind", e.kind, "id", x.id, "error", err, "retryIn", wait.String())
		return false
	}
	e.begin(x, d)
	ctx, cancel := context.WithTimeout(context.Background(), a.cfg.hookWait)
	a.errandCancel[e.kind] = cancel
	s := a.errandScript(hook, x, text)
	a.log.Info("running a hook", "hook", hook.name, "id", x.id, "again", x.again)
	go func() {
		defer cancel()
		end := runErrandHook(ctx, s, x.task)
		a.do(func() { a.onErrandEnd(e, x, end) })
	}()
	return false
}

const noActHook = "This agent has no adapter for the tracker or the knowledge base. Give the team a hook on_act " +
	"(spec.agent.hooks.onAct of the Team), a shell script that gets the act as JSON on its standard input and makes its changes."

// withoutHook does what can be done about an errand that there is no hook for. It returns true if the next one can begin.
func (a *Agent) withoutHook(e *errands, x errand) bool {
	if e.kind == kindReport {
		if !a.saidNoHook {
			a.log.Warn("the office has reports to post, and the team has no hook on_report; they wait for a program that posts them "+
				"(ost reports, ost report posted)", "reports", len(e.waiting))
			a.saidNoHook = true
		}
		return false
	}
	// This is not remembered as done: when the office asks again, there may be a hook.
	e.drop(x.id)
	delete(e.deeds, x.id)
	if err := a.home.forgetDeed(e.kind, x.id); err != nil {
		a.log.Warn("a file of an errand cannot be removed", "kind", e.kind, "id", x.id, "error", err)
	}
	a.log.Info("an act is refused, for the team has no hook on_act", "id", x.id)
	a.answerErrand(protocol.ActResult{ID: x.id, Results: []string{}, Error: noActHook})
	return true
}

// hooksNow are the hooks of the newest config that can be used. Errands need not wait for the end of a round, as the rest of
// the config does.
func (a *Agent) hooksNow() protocol.TeamHooks {
	config := a.team.config
	if a.team.pending != nil {
		if newer, err := protocol.ParseTeamConfig(a.team.pending); err == nil {
			config = newer
		}
	}
	return hooksOf(config, a.cfg.Person)
}

// errandScript puts a hook's run together.
func (a *Agent) errandScript(hook errandHook, x errand, text string) script {
	place := "_" + string(x.kind)
	env := append(a.cfg.Env[:len(a.cfg.Env):len(a.cfg.Env)],
		hook.idVar+"="+x.id,
		contract.EnvTeamFile+"="+a.home.teamFile(),
		contract.EnvTeamPage+"="+a.home.teamPage(),
	)
	if x.again {
		env = append(env, hook.againVar+"=true")
	}
	return script{
		name: hook.name, text: text, dir: filepath.Join(a.home.root, "scratch", place),
		scratch: filepath.Join(a.home.root, "scratch", place), env: env,
		record: filepath.Join(a.home.root, "state/run", place), grace: min(soonest, a.cfg.hookWait),
	}
}

// errandEnd is how the run of a hook ended.
type errandEnd struct {
	// lines are what it printed.
	lines []string
	// problem is why the errand is not done; empty if it is.
	problem string
	// stopped says that the agent ended it, because it shuts down.
	stopped bool
}

// runErrandHook runs a hook on an errand. It runs on a goroutine of its own.
func runErrandHook(ctx context.Context, s script, task any) errandEnd {
	broken := func(err error) errandEnd {
		return errandEnd{lines: []string{}, problem: fmt.Sprintf("the hook %s cannot be run: %v", s.name, err)}
	}
	input, err := json.Marshal(task)
	if err != nil {
		return broken(err)
	}
	if err := errors.Join(disk.RemoveTree(s.dir), os.MkdirAll(s.dir, 0o750)); err != nil {
		return broken(err)
	}
	said, exit, err := s.run(ctx, input)
	if err != nil {
		return broken(err)
	}
	end := errandEnd{lines: resultLines(said.out)}
	switch {
	case exit.OK():
	case errors.Is(ctx.Err(), context.Canceled):
		end.stopped = true
	case ctx.Err() != nil:
		end.problem = fmt.Sprintf("the hook %s took too long and was ended: %s", s.name, said.err)
	case said.err != "":
		end.problem = said.err
	default:
		end.problem = fmt.Sprintf("the hook %s ended with %s and said nothing on its standard error", s.name, exit)
	}
	return end
}

// resultLines are the lines of a hook's output that say something.
func resultLines(text string) []string {
	lines := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && len(lines) < maxResults {
			lines = append(lines, line)
		}
	}
	return lines
}

// onErrandEnd takes how a hook's run ended.
func (a *Agent) onErrandEnd(e *errands, x errand, end errandEnd) {
	e.running = nil
	delete(a.errandCancel, e.kind)
	switch {
	case end.stopped:
		a.log.Info("an errand was cut short; it is done again at the next start", "kind", e.kind, "id", x.id)
		return
	case e.kind == kindAct:
		if end.problem != "" {
			a.log.Warn("an act failed", "id", x.id, "made", len(end.lines), "error", end.problem)
		}
		a.finishErrand(e, x.id, protocol.ActResult{ID: x.id, OK: end.problem == "", Results: end.lines, Error: end.problem})
	case e.deeds[x.id] != nil && e.deeds[x.id].answer != nil:
		// A program confirmed the report meanwhile.
	case end.problem != "":
		wait := e.pause(x.id, time.Now())
		e.putBack(x)
		a.log.Warn("a report could not be posted", "id", x.id, "error", end.problem, "retryIn", wait.String())
	default:
		if report, ok := x.task.(protocol.Report); ok {
			a.finishErrand(e, x.id, protocol.ReportPosted{WorkItemID: report.WorkItemID, ID: x.id})
		}
	}
	a.runErrands()
}

// finishErrand remembers that an errand is done, and tells the office.
func (a *Agent) finishErrand(e *errands, id string, answer protocol.Message) {
	a.rememberDone(e, id, answer)
	a.answerErrand(answer)
}

func (a *Agent) rememberDone(e *errands, id string, answer protocol.Message) {
	if err := a.home.saveDeed(e.finish(id, answer)); err != nil {
		a.log.Error("that an errand is done cannot be kept on disk; it may be done again after a restart", "kind", e.kind, "id", id, "error", err)
	}
	for _, old := range e.old(maxDeeds) {
		delete(e.deeds, old)
		if err := a.home.forgetDeed(e.kind, old); err != nil {
			a.log.Warn("a file of an errand cannot be removed", "kind", e.kind, "id", old, "error", err)
		}
	}
}

// answerErrand tells the office what became of an errand, unless that is on its way already.
func (a *Agent) answerErrand(answer protocol.Message) {
	same := func(m protocol.Message) bool {
		switch m := m.(type) {
		case protocol.ActResult:
			other, ok := answer.(protocol.ActResult)
			return ok && other.ID == m.ID
		case protocol.ReportPosted:
			other, ok := answer.(protocol.ReportPosted)
			return ok && other.ID == m.ID
		}
		return false
	}
	if a.outbox.has(same) {
		return
	}
	if err := a.outbox.put(a.ids.next(), answer, 0); err != nil {
		a.log.Error("a message cannot be sent", "type", answer.Type(), "error", err)
	}
}

// reportPosted takes a program's word that it posted a report.
func (a *Agent) reportPosted(m protocol.ReportPosted) {
	a.rememberDone(a.reports, m.ID, m)
}

// openReports are the reports that nobody has posted yet.
func (a *Agent) openReports() []protocol.Report {
	open := []protocol.Report{}
	list := a.reports.waiting
	if a.reports.running != nil {
		list = append([]errand{*a.reports.running}, list...)
	}
	for _, x := range list {
		report, ok := x.task.(protocol.Report)
		if d := a.reports.deeds[x.id]; ok && (d == nil || d.answer == nil) {
			open = append(open, report)
		}
	}
	return open
}

// errandsRunning says whether a hook is at work on an errand.
func (a *Agent) errandsRunning() bool { return a.acts.running != nil || a.reports.running != nil }

// stopErrands has the hooks that are at work end.
func (a *Agent) stopErrands() {
	for _, cancel := range a.errandCancel {
		cancel()
	}
}

// killErrands ends the hooks that are at work at once.
func (a *Agent) killErrands() {
	a.stopErrands()
	for _, e := range []*errands{a.acts, a.reports} {
		if e.running == nil {
			continue
		}
		if err := process.EndRecorded(filepath.Join(a.home.root, "state/run", "_"+string(e.kind))); err != nil {
			a.log.Error("a hook cannot be ended", "kind", e.kind, "id", e.running.id, "error", err)
		}
	}
}

// deedRecord is a deed on disk.
type deedRecord struct {
	Kind   errandKind     `json:"kind"`
	ID     string         `json:"id"`
	Answer jsontext.Value `json:"answer,omitempty"`
	At     int64          `json:"at"`
}

func (h *home) deedFile(kind errandKind, id string) string {
	return filepath.Join(h.root, "state/errands", string(kind)+"-"+fileName(id)+".json")
}

func (h *home) saveDeed(d *deed) error {
	d.at = time.Now().UnixNano()
	r := deedRecord{Kind: d.kind, ID: d.id, At: d.at}
	if d.answer != nil {
		frame, err := encode(frameID, d.answer)
		if err != nil {
			return err
		}
		r.Answer = frame
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return disk.Write(h.deedFile(d.kind, d.id), data)
}

func (h *home) forgetDeed(kind errandKind, id string) error { return disk.Remove(h.deedFile(kind, id)) }

// loadDeeds reads what is remembered of each kind of errand.
func (h *home) loadDeeds(kinds ...*errands) error {
	return h.eachFile("state/errands", func(_ string, data []byte) error {
		d, err := parseDeed(data)
		if err != nil {
			return err
		}
		for _, e := range kinds {
			if e.kind == d.kind {
				e.deeds[d.id] = d
			}
		}
		return nil
	})
}

func parseDeed(data []byte) (*deed, error) {
	var r deedRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	d := &deed{kind: r.Kind, id: r.ID, at: r.At}
	if r.Answer != nil {
		frame, werr := protocol.Decode(r.Answer)
		if werr != nil {
			return nil, werr
		}
		d.answer = frame.Message
	}
	return d, nil
}
