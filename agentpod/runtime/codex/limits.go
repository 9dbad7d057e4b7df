package codex

// This file keeps the usage windows of the account.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// limitsView is an account's limits as the app-server tells them. An update has what changed: what is null in it stays as it was.
type limitsView struct {
	ID        string      `json:"limitId"`
	Name      string      `json:"limitName"`
	Primary   *windowView `json:"primary"`
	Secondary *windowView `json:"secondary"`
}

// windowView is one window.
type windowView struct {
	UsedPercent float64 `json:"usedPercent"`
	Minutes     *int64  `json:"windowDurationMins"`
	// ResetsAt is in seconds since 1970.
	ResetsAt *int64 `json:"resetsAt"`
}

// limits are the windows that are known, by name.
type limits map[string]protocol.UsageWindow

// merge takes an update. It returns whether that had any window.
func (l limits) merge(v limitsView) bool {
	had := false
	for i, w := range []*windowView{v.Primary, v.Secondary} {
		if w == nil {
			continue
		}
		had = true
		window := protocol.UsageWindow{Name: windowName(v, w, i), Utilization: max(0, w.UsedPercent/100)}
		if w.ResetsAt != nil && *w.ResetsAt > 0 {
			window.ResetsAt = protocol.FormatTime(time.Unix(*w.ResetsAt, 0))
		}
		l[window.Name] = window
	}
	if had {
		l.unmake() // real ones say it better
	}
	return had
}

// Windows that the runtime makes up for limits whose windows nobody tells: of use, and of requests or tokens in a short time.
const (
	windowUsage    = "usage_limit"
	windowRequests = "requests"
)

// unmake removes the windows that were made up. It returns the name of one, empty if there was none.
func (l limits) unmake() string {
	name := ""
	for _, made := range []string{windowUsage, windowRequests} {
		if _, ok := l[made]; ok {
			name = made
			delete(l, made)
		}
	}
	return name
}

// windowLengths are the names of windows by their length in minutes.
var windowLengths = map[int64]string{60: "hourly", 300: "five_hour", 1440: "daily", 10080: "weekly", 43200: "monthly"}

// maxWindowName is the most characters of a window's name; the office takes 200 bytes.
const maxWindowName = 48

// codexLimit is the id of the limit that is meant where nothing else is said.
const codexLimit = "codex"

func windowName(v limitsView, w *windowView, place int) string {
	name := []string{"primary", "secondary"}[place]
	if w.Minutes != nil {
		if name = windowLengths[*w.Minutes]; name == "" {
			name = fmt.Sprintf("%d_minutes", *w.Minutes)
		}
	}
	if v.ID != "" && v.ID != codexLimit {
		name = cmp.Or(v.Name, v.ID) + "_" + name
	}
	return clip(name, maxWindowName)
}

// list gives the windows in the order of their names, without those that have started over since.
func (l limits) list(now time.Time) []protocol.UsageWindow {
	maps.DeleteFunc(l, func(_ string, w protocol.UsageWindow) bool {
		reset, err := protocol.ParseTime(w.ResetsAt)
		return err == nil && !reset.After(now)
	})
	return slices.SortedFunc(maps.Values(l), func(a, b protocol.UsageWindow) int { return cmp.Compare(a.Name, b.Name) })
}

// full says whether a window is used up.
func (l limits) full(now time.Time) bool {
	for _, w := range l.list(now) {
		if w.Utilization >= 1 {
			return true
		}
	}
	return false
}
