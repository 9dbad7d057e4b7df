package workstate

// This file adds up what the work on a ticket used, with its sub-tickets.

import (
	"cmp"
	"slices"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// TicketWork is what the rounds about a ticket used, and those about its sub-tickets.
type TicketWork struct {
	Key    string
	Shares []model.TicketShare
	Runs   []model.TicketRuns
	Parts  []TicketWork
}

// amount is usage with the runs that it was used in.
type amount struct {
	model.Usage
	runs int
}

func (a amount) add(b amount) amount { return amount{a.Add(b.Usage), a.runs + b.runs} }

// totals are an amount as the protocol shows it. Of a cost that is known in part only, that part is shown.
func (a amount) totals() protocol.UsageTotals {
	return protocol.UsageTotals{
		InputTokens: a.InputTokens, OutputTokens: a.OutputTokens, CacheReadTokens: a.CacheReadTokens, CacheCreationTokens: a.CacheCreationTokens,
		Tokens: a.Tokens(), CostUSD: float64(a.CostMicroUSD) / 1e6, Runs: a.runs,
	}
}

func (t TicketWork) own() amount {
	var sum amount
	for _, s := range t.Shares {
		sum.Usage = sum.Add(s.Usage)
	}
	for _, r := range t.Runs {
		sum.runs += r.Runs
	}
	return sum
}

func (t TicketWork) total() amount {
	sum := t.own()
	for _, part := range t.Parts {
		sum = sum.add(part.total())
	}
	return sum
}

// Report tells what the work on a ticket used: its own, split by person, model and kind, and in total with its sub-tickets.
func (t TicketWork) Report() protocol.TicketUsageResult {
	byPerson, byModel, byKind := map[string]amount{}, map[string]amount{}, map[string]amount{}
	for _, s := range t.Shares {
		byPerson[s.Person] = byPerson[s.Person].add(amount{Usage: s.Usage})
		byKind[s.Kind] = byKind[s.Kind].add(amount{Usage: s.Usage})
		byModel[s.Model] = byModel[s.Model].add(amount{s.Usage, s.Runs})
	}
	for _, r := range t.Runs {
		byPerson[r.Person] = byPerson[r.Person].add(amount{runs: r.Runs})
		byKind[r.Kind] = byKind[r.Kind].add(amount{runs: r.Runs})
	}
	result := protocol.TicketUsageResult{
		Ticket: t.Key, Own: t.own().totals(), Total: t.total().totals(), SubTickets: []protocol.SubTicketUsage{},
		ByPerson: shares(byPerson), ByModel: shares(byModel), ByKind: shares(byKind),
	}
	for _, part := range t.Parts {
		result.SubTickets = append(result.SubTickets, protocol.SubTicketUsage{Ticket: part.Key, Total: part.total().totals()})
	}
	return result
}

// shares lists the parts of a split: the largest cost first, then the most tokens.
func shares(by map[string]amount) []protocol.UsageShare {
	list := make([]protocol.UsageShare, 0, len(by))
	for key, a := range by {
		list = append(list, protocol.UsageShare{Key: key, Totals: a.totals()})
	}
	slices.SortFunc(list, func(a, b protocol.UsageShare) int {
		return cmp.Or(cmp.Compare(b.Totals.CostUSD, a.Totals.CostUSD), cmp.Compare(b.Totals.Tokens, a.Totals.Tokens), cmp.Compare(a.Key, b.Key))
	})
	return list
}
