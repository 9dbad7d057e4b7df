package hub

// This file has how much a peer may send: a pure account of it. Connections do the waiting, in conn.go.
//
// An agent in the middle of a round sends a few frames a second, one that comes back after a while away has thousands to deliver. Both
// are to pass; a program that is stuck in a loop is not to take the office's time from others. So everybody may send burst units at
// once, and rate units a second in the long run. Whoever sends faster is read no faster: its own network buffers fill up and it waits.
//
// The office cannot see how much a peer still has to deliver, but a backlog has an end. Who has been slowed for patience without a
// single pause (so after 61,000 frames in a row) has none and is cut. An agent that really had so much to say loses nothing: it
// connects again, with a new allowance, and repeats only what was not acknowledged.

import "time"

const (
	// rate is how many units a second a peer may send in the long run; burst how many it may have sent before that counts.
	rate  = 200
	burst = 1000
	// unit is how many bytes count as one: a frame is one unit for each that it begins, and so is a ping or a pong.
	unit = 16 << 10
	// patience is how long a peer may keep on sending faster than it is read.
	patience = 5 * time.Minute
)

// pace is the account of one peer. Its zero value is that of a peer that never sent anything.
type pace struct {
	// paid is when all that was sent is paid for, at rate; until then it is owed.
	paid time.Time
	// pressed is since when every frame had to wait; zero while none does.
	pressed time.Time
}

// take accounts for something of that size which came now. It says how long to wait before anything more is read, and whether the
// peer's time is up.
func (p *pace) take(now time.Time, size int) (wait time.Duration, cut bool) {
	if p.paid.Before(now) {
		p.paid = now
	}
	units := max(1, (size+unit-1)/unit)
	p.paid = p.paid.Add(time.Duration(units) * time.Second / rate)
	wait = p.paid.Sub(now) - burst*time.Second/rate
	if wait <= 0 {
		p.pressed = time.Time{}
		return 0, false
	}
	if p.pressed.IsZero() {
		p.pressed = now
	}
	return wait, now.Sub(p.pressed) >= patience
}
