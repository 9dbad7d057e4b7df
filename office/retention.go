package office

// This file forgets the records of old sessions, as far as their team wants that.

import (
	"context"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

// retentionEvery is how often the teams' retention is looked at.
const retentionEvery = 5 * time.Minute

// runRetention trims the feeds now and then, until ctx ends.
func (o *Office) runRetention(ctx context.Context) {
	tick := time.NewTicker(retentionEvery)
	defer tick.Stop()
	for {
		o.trim(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// trim removes the records that the teams' retention does not keep.
func (o *Office) trim(ctx context.Context) {
	var teams []model.Team
	if err := o.store.View(ctx, func(r store.Reader) (err error) {
		teams, err = r.Teams()
		return err
	}); err != nil {
		o.log.Error("The teams' retention could not be read", "error", err)
		return
	}
	for _, team := range teams {
		limits := limitsOf(team, o.now())
		if limits.ClosedBefore.IsZero() && limits.Bytes == 0 {
			continue
		}
		trimmed, err := o.opts.Feed.Trim(ctx, limits)
		if err != nil {
			if ctx.Err() == nil {
				o.log.Error("Old records could not be removed", "team", team.Key.String(), "error", err)
			}
			continue
		}
		if trimmed.Sessions > 0 {
			o.log.Info("Old records were removed", "team", team.Key.String(), "sessions", trimmed.Sessions, "records", trimmed.Records, "bytes", trimmed.Bytes)
		}
	}
}

// limitsOf is what a team keeps.
func limitsOf(team model.Team, now time.Time) store.Limits {
	limits := store.Limits{Namespace: team.Key.Namespace, Team: team.Key.Name, Bytes: team.Retention.MaxBytes}
	if age := team.Retention.MaxAge; age > 0 {
		limits.ClosedBefore = now.Add(-age)
	}
	return limits
}
