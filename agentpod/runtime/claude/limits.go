package claude

// This file keeps the limits of the subscription, as Claude Code tells of them.

import (
	"math"
	"slices"
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// limitRejected is the status of a limit that is reached.
const limitRejected = "rejected"

// windowRequests is the window of a limit that has no name of its own: too many requests or tokens in a short time.
const windowRequests = "requests"

// window is what a limit says of its window; ok is false where it does not say how full that is.
func window(l rateLimit) (w protocol.UsageWindow, ok bool) {
	if l.Type == "" {
		return w, false
	}
	w.Name = l.Type
	switch {
	case l.Status == limitRejected:
		w.Utilization = 1
	case l.Utilization == nil:
		return w, false
	}
	if l.Utilization != nil {
		w.Utilization = max(w.Utilization, *l.Utilization, 0)
	}
	if l.ResetsAt != nil && *l.ResetsAt > 0 && *l.ResetsAt < math.MaxInt32*10 {
		w.ResetsAt = protocol.FormatTime(time.Unix(int64(*l.ResetsAt), 0))
	}
	return w, true
}

// heard takes a window into those that are known, and gives all: a report to the office replaces the one before. Windows that started
// over since are left out.
func heard(known []protocol.UsageWindow, w protocol.UsageWindow, now time.Time) []protocol.UsageWindow {
	all := slices.DeleteFunc(slices.Clone(known), func(old protocol.UsageWindow) bool {
		if old.Name == w.Name {
			return true
		}
		reset, err := protocol.ParseTime(old.ResetsAt)
		return err != nil || !reset.After(now)
	})
	return append(all, w)
}

// limit takes a window and tells the office.
func (c *Claude) limit(w protocol.UsageWindow, tell func([]protocol.UsageWindow)) {
	c.mu.Lock()
	c.windows = heard(c.windows, w, time.Now())
	all := slices.Clone(c.windows)
	c.mu.Unlock()
	tell(all)
}
