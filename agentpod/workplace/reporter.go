package workplace

// This file is what is told of the preparation of a place, step by step, to whoever watches the session.
//
// Its words are those of package feed. clone brings a repository, and restore finds what an earlier round made: an item's checkout, or the
// base; setup runs build_base and after_checkout, hooks runs before_start. The contract of sessions also knows image and snapshot. They do
// not occur: the image is the pod's, which is there before the agent is, and nothing is saved apart, for the home itself lasts.

import "time"

// Reporter takes what is told. Its methods do not block for the network, and may be called from several goroutines at once, for
// repositories are brought side by side; what is told of one step comes in its order.
type Reporter interface {
	// Phase says that a step started, completed or failed, and for the latter two how long it took. detail may be nil.
	Phase(phase, status, step string, took time.Duration, detail map[string]any)
	// Output has lines that a step printed, without their ends, in their order.
	Output(phase, step, stream string, lines []string)
	// Ready says that the place is prepared, with the full names of its repositories, and how long all of it took.
	Ready(repositories []string, took time.Duration)
}

// silent is a Reporter that tells nobody.
type silent struct{}

func (silent) Phase(string, string, string, time.Duration, map[string]any) {}
func (silent) Output(string, string, string, []string)                     {}
func (silent) Ready([]string, time.Duration)                               {}
