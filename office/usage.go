package office

// This file keeps the usage that agents report: what rounds used, in the ledger, and how full the windows of their subscriptions are.

import (
	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/prices"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// endOfRound takes a hand-back or a fail: its usage counts also when it comes late, itself only once.
func (r request) endOfRound(id string, usage []protocol.SessionUsage,
	decide func(*work, model.Item) (dispatch.Outcome, error)) error {
	return r.change(func(w *work) error {
		it, err := itemOf(w.tx, r.p, id)
		if err != nil {
			return err
		}
		if first, err := w.first(r.p, it, r.f); err != nil || !first {
			return err
		}
		out, err := decide(w, it)
		if err != nil {
			return err
		}
		used, err := w.count(it, r.p.key, usage)
		if err != nil {
			return err
		}
		out.Item.Usage = out.Item.Usage.Add(used)
		if out.Ended != nil {
			out.Ended.Usage = out.Ended.Usage.Add(used)
		}
		if !out.Changed && used != (model.Usage{}) { // late, but its usage counts
			return w.put(&out.Item)
		}
		return w.apply(it.State, out)
	})
}

// Limits of the usage that one message reports.
const (
	maxTotals = 200
	maxModel  = 200
)

// count adds to the ledger what is new in the running totals of each session and model.
func (w *work) count(it model.Item, key model.PersonKey, sessions []protocol.SessionUsage) (model.Usage, error) {
	var sum model.Usage
	if err := withinLimits(sessions); err != nil {
		return sum, err
	}
	team, err := found(w.tx.Team(key.Team))
	if err != nil {
		return sum, err
	}
	for _, s := range sessions {
		for name, reported := range s.Models {
			last, err := w.tx.SessionTotals(it.ID, s.Session, name)
			if err != nil {
				return sum, err
			}
			fresh, totals := model.Count(totalsOf(reported), last, priceOf(team, name))
			if totals == last {
				continue
			}
			entry := model.LedgerEntry{
				ItemID: it.ID, Round: it.Offers, Team: key.Team, Person: key.Handle, Kind: it.Spec.Kind,
				Session: s.Session, Model: name, Usage: fresh,
			}
			if err := w.tx.AddUsage(entry, totals, w.now); err != nil {
				return sum, err
			}
			sum = sum.Add(fresh)
		}
	}
	if sum == (model.Usage{}) || team == nil {
		return sum, nil
	}
	return sum, w.stopRounds(*team, key)
}

// withinLimits refuses a report that would leave more behind than any round has.
func withinLimits(sessions []protocol.SessionUsage) error {
	n := 0
	for _, s := range sessions {
		if len(s.Session) > maxSessionID {
			return protocol.Errorf(protocol.CodeInvalid, "usage: the id of a session has at most %d bytes, not %d", maxSessionID, len(s.Session))
		}
		for name := range s.Models {
			if len(name) > maxModel {
				return protocol.Errorf(protocol.CodeInvalid, "usage: the id of a model has at most %d bytes, not %d", maxModel, len(name))
			}
			n++
		}
	}
	if n > maxTotals {
		return protocol.Errorf(protocol.CodeInvalid, "usage: a round reports at most %d totals of a session and model, not %d", maxTotals, n)
	}
	return nil
}

func totalsOf(m protocol.ModelUsage) model.Usage {
	u := model.Usage{
		InputTokens: m.InputTokens, OutputTokens: m.OutputTokens, CacheReadTokens: m.CacheReadTokens, CacheCreationTokens: m.CacheCreationTokens,
	}
	if m.CostUSD != nil {
		u.CostMicroUSD, u.CostKnown = model.MicroUSD(*m.CostUSD), true
	}
	return u
}

// priceOf is the price of a model, nil where nobody knows one. The team's prices go before.
func priceOf(team *model.Team, id string) *model.Price {
	var own []model.Price
	if team != nil {
		own = team.Usage.Prices
	}
	if price, known := prices.For(id, own); known {
		return &price
	}
	return nil
}

// stopRounds looks at those whose running rounds budgets may end for what a person used: the person, and where it is the team's own budget,
// all who have a round.
func (w *work) stopRounds(team model.Team, key model.PersonKey) error {
	if !dispatch.Stops(team.Usage.Budgets) {
		return nil
	}
	w.touchPerson(key)
	used, err := w.tx.TeamUsage(team.Key)
	if err != nil || !(dispatch.Spent{Team: used}).TeamStops(team.Usage.Budgets) {
		return err
	}
	busy, err := w.tx.Busy(team.Key)
	for _, handle := range busy {
		w.touchPerson(model.PersonKey{Team: team.Key, Handle: handle})
	}
	return err
}

// reprice counts the cost of usage for which there was no price when it was counted, where there is one now.
func (w *work) reprice(team model.Team) error {
	entries, err := w.tx.Unpriced(team.Key)
	if err != nil {
		return err
	}
	for _, e := range entries {
		price := priceOf(&team, e.Model)
		if price == nil {
			continue
		}
		unpriced := e.Usage.UnpricedTokens
		part := float64(unpriced) / float64(e.Usage.Tokens()) // less than 1 where the cost of some was told later
		e.Usage = model.Usage{CostMicroUSD: int64(float64(price.Cost(e.Usage)) * part), CostKnown: true, UnpricedTokens: -unpriced}
		last, err := w.tx.SessionTotals(e.ItemID, e.Session, e.Model)
		if err != nil {
			return err
		}
		if err := w.tx.AddUsage(e, last.Add(e.Usage), w.now); err != nil {
			return err
		}
		it, err := w.tx.Item(e.ItemID)
		if err != nil {
			return err
		}
		it.Usage = it.Usage.Add(e.Usage)
		if err := w.put(&it); err != nil {
			return err
		}
	}
	return nil
}

// usage takes the usage windows of the person's runtime.
func (r request) usage(m protocol.Usage) (protocol.Message, error) {
	if len(m.Windows) > maxWindows {
		return nil, protocol.Errorf(protocol.CodeInvalid, "at most %d usage windows, not %d", maxWindows, len(m.Windows))
	}
	return nil, r.change(func(w *work) error {
		person, err := w.tx.PersonByKey(r.p.key)
		if err != nil {
			return err
		}
		report := model.Windows{Team: r.p.key.Team, Subscription: subscription(person), At: w.now, By: r.p.key.Handle}
		named := map[string]bool{}
		for _, reported := range m.Windows {
			if len(reported.Name) > maxName || named[reported.Name] {
				return protocol.Errorf(protocol.CodeInvalid, "each usage window has a name of its own of at most %d bytes, not %q", maxName, cut(reported.Name, 40))
			}
			named[reported.Name] = true
			window := model.Window{Name: reported.Name, Utilization: reported.Utilization}
			if reported.ResetsAt != "" {
				if window.ResetsAt, err = protocol.ParseTime(reported.ResetsAt); err != nil {
					return protocol.Errorf(protocol.CodeInvalid, "windows: %v", err)
				}
			}
			report.Windows = append(report.Windows, window)
		}
		if err := w.tx.PutWindows(report); err != nil {
			return err
		}
		people, err := w.tx.People(r.p.key.Team)
		for _, other := range people {
			if subscription(other) == report.Subscription {
				w.touchPerson(other.Key)
			}
		}
		return err
	})
}
