package agent

// These tests are about what a runtime is told of its round, and what the office hears of it first.

import (
	"context"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestARuntimeIsToldWhoWorksAndHowLongItMayTakeToEnd(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "")
	rounds := make(chan runtime.Round, 1)
	var grace time.Duration
	p.start(func(c *Config) {
		grace = c.ProgramGrace()
		c.Runtime = scripted{func(_ context.Context, round runtime.Round, _ runtime.Sink) (runtime.Result, error) {
			rounds <- round
			return runtime.Result{Status: protocol.HandbackDone}, nil
		}}
	})
	office := o.welcome()
	office.accepted("i")
	office.ack(expect[protocol.Handback](office).id)
	got := <-rounds
	if got.Person.Handle != "ada" || got.Person.Model != "small" || got.Role == nil || got.Role.Instructions != "Be kind." {
		t.Errorf("the round is that of %+v with the role %+v", got.Person, got.Role)
	}
	if got.Grace <= 0 || got.Grace != grace || got.Workdir != got.Dir {
		t.Errorf("the round has the grace %s and runs in %s", got.Grace, got.Workdir)
	}
}

func TestWindowsThatEndARoundComeBeforeItsEnd(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "")
	p.start(func(c *Config) {
		c.Runtime = scripted{func(_ context.Context, _ runtime.Round, sink runtime.Sink) (runtime.Result, error) {
			sink.Usage([]protocol.UsageWindow{{Name: "five_hour", Utilization: 0.5}})
			sink.Usage([]protocol.UsageWindow{{Name: "five_hour", Utilization: 1}})
			return runtime.Result{Status: protocol.HandbackInterrupted, Summary: "A limit was reached."}, nil
		}}
	})
	office := o.welcome()
	office.accepted("i")
	first := expect[protocol.Usage](office)
	o.whole("i", 1) // the round is over, and only the answer to the first windows is missing
	office.ack(first.id)
	second := expect[protocol.Usage](office)
	if early := all[protocol.Handback](office); len(early) > 0 {
		t.Errorf("the hand-back came before the windows that it is because of: %+v", early)
	}
	if second.message.Windows[0].Utilization != 1 {
		t.Errorf("the last windows are %+v", second.message)
	}
	office.ack(second.id)
	office.ack(expect[protocol.Handback](office).id)
}
