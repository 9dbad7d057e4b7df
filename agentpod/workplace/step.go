package workplace

// This file tells of one step of a preparation.

import (
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// step is a step that runs.
type step struct {
	report      Reporter
	phase, name string
	began       time.Time
	out         *output
}

// begin tells that a step started.
func begin(report Reporter, phase, name string) *step {
	report.Phase(phase, feed.PhaseStarted, name, 0, nil)
	return &step{report: report, phase: phase, name: name, began: time.Now(), out: newOutput(report, phase, name)}
}

// complete tells that the step went well.
func (s *step) complete(detail map[string]any) {
	s.out.close()
	s.report.Phase(s.phase, feed.PhaseCompleted, s.name, time.Since(s.began), detail)
}

// fail tells that it did not.
func (s *step) fail(err error) {
	s.out.close()
	s.report.Phase(s.phase, feed.PhaseFailed, s.name, time.Since(s.began), map[string]any{"error": err.Error()})
}
