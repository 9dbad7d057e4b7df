package agent

// This file decides about errands: what the office asks of the agent itself, outside of rounds and without a model. An act is
// changes to make in the tracker and the knowledge base, a report is a text to post for a requester. Each comes until it is
// answered, and is done once for its id by a hook of the team; errand_run.go runs those. Nothing here has a clock, a disk or a
// network.
//
// Once is what can be promised while the agent lives. One that is killed in the middle cannot know how far the hook came, and
// nobody but the hook can look: so it is run again, and told so (at least once). A hook for which that is no good looks first,
// or refuses to go on.

import (
	"slices"
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// errandKind is what sort of errand one is; each sort has a line of its own.
type errandKind string

const (
	kindAct    errandKind = "act"
	kindReport errandKind = "report"
)

// errand is one thing to do.
type errand struct {
	kind errandKind
	id   string
	// task is the protocol.Act or the protocol.Report; the hook gets it as JSON.
	task any
	// again says that an earlier run of the hook may have done some of it.
	again bool
}

// deed is what the home remembers of an errand that was begun.
type deed struct {
	kind errandKind
	id   string
	// answer is what the office is told; nil while the errand is not done.
	answer protocol.Message
	// at is the Unix time in nanoseconds of the last change; the oldest are forgotten first.
	at int64
}

// maxDeeds is how many errands of a kind that are done are remembered. One that the office asks for again after that many
// others, although it was answered, is done again.
const maxDeeds = 1000

// errands are those of one kind: they are done in the order in which they came, one at a time.
type errands struct {
	kind    errandKind
	waiting []errand
	running *errand
	deeds   map[string]*deed
	// pauses are how long errands that failed wait until they are tried again, by id.
	pauses map[string]pause
}

// pause is the time before another try.
type pause struct {
	failures int
	until    time.Time
}

func newErrands(kind errandKind) *errands {
	return &errands{kind: kind, deeds: map[string]*deed{}, pauses: map[string]pause{}}
}

// verdict is what to do about an errand that the office asks for.
type verdict int

const (
	// verdictKnown: it waits or runs already.
	verdictKnown verdict = iota
	// verdictAnswer: it is done; the office only has to hear of it again.
	verdictAnswer
	// verdictNew: it was put in line.
	verdictNew
)

// take takes an errand that the office asks for, perhaps not for the first time.
func (e *errands) take(id string, task any) verdict {
	if e.running != nil && e.running.id == id || slices.ContainsFunc(e.waiting, func(w errand) bool { return w.id == id }) {
		return verdictKnown
	}
	d := e.deeds[id]
	if d != nil && d.answer != nil {
		return verdictAnswer
	}
	e.waiting = append(e.waiting, errand{kind: e.kind, id: id, task: task, again: d != nil})
	return verdictNew
}

// next gives the errand to do now, which stays in line; false if there is none. Acts keep their order, for one may build on
// another; a report that cannot be posted now holds no other up.
func (e *errands) next(now time.Time) (errand, bool) {
	if e.running != nil {
		return errand{}, false
	}
	for _, w := range e.waiting {
		if !now.Before(e.pauses[w.id].until) {
			return w, true
		}
		if e.kind == kindAct {
			break
		}
	}
	return errand{}, false
}

// begin takes an errand out of the line and makes it the one that runs. That it was begun is on disk by then.
func (e *errands) begin(x errand, d *deed) {
	e.drop(x.id)
	e.running = &x
	e.deeds[x.id] = d
}

// drop takes an errand out of the line.
func (e *errands) drop(id string) {
	e.waiting = slices.DeleteFunc(e.waiting, func(w errand) bool { return w.id == id })
}

// finish notes what the office is told about an errand.
func (e *errands) finish(id string, answer protocol.Message) *deed {
	e.drop(id)
	delete(e.pauses, id)
	d := &deed{kind: e.kind, id: id, answer: answer}
	e.deeds[id] = d
	return d
}

// pause has an errand wait, each time twice as long, and returns how long.
func (e *errands) pause(id string, now time.Time) time.Duration {
	p := e.pauses[id]
	wait := min(time.Minute<<min(p.failures, 10), time.Hour)
	e.pauses[id] = pause{p.failures + 1, now.Add(wait)}
	return wait
}

// putBack puts an errand whose hook failed in line again, behind the others.
func (e *errands) putBack(x errand) {
	x.again = true
	e.waiting = append(e.waiting, x)
}

// old returns the ids of the deeds that are remembered beyond most, oldest first, without those that are not done.
func (e *errands) old(most int) []string {
	var done []*deed
	for _, d := range e.deeds {
		if d.answer != nil {
			done = append(done, d)
		}
	}
	if len(done) <= most {
		return nil
	}
	slices.SortFunc(done, func(a, b *deed) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return 0
	})
	var ids []string
	for _, d := range done[:len(done)-most] {
		ids = append(ids, d.id)
	}
	return ids
}
