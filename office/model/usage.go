package model

// This file has the arithmetic of usage: tokens and cost as running totals per session and model, and what tokens cost where nobody
// told.

import "math"

// Usage is an amount of tokens and what they cost. Costs are in millionths of a US dollar, at list prices.
type Usage struct {
	InputTokens         int64 `json:",omitempty"`
	OutputTokens        int64 `json:",omitempty"`
	CacheReadTokens     int64 `json:",omitempty"`
	CacheCreationTokens int64 `json:",omitempty"`
	CostMicroUSD        int64 `json:",omitempty"`
	// CostKnown is false where no cost is known at all: unknown is not zero.
	CostKnown bool `json:",omitempty"`
	// UnpricedTokens are those of the tokens whose cost nobody knows: neither the runtime told it, nor is there a price. Where there
	// are any, the cost is a lower bound. In what a report adds, a negative number takes back tokens whose cost was told later.
	UnpricedTokens int64 `json:",omitempty"`
}

// Tokens adds the four counts up.
func (u Usage) Tokens() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheCreationTokens
}

// Add gives the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:         u.InputTokens + v.InputTokens,
		OutputTokens:        u.OutputTokens + v.OutputTokens,
		CacheReadTokens:     u.CacheReadTokens + v.CacheReadTokens,
		CacheCreationTokens: u.CacheCreationTokens + v.CacheCreationTokens,
		CostMicroUSD:        u.CostMicroUSD + v.CostMicroUSD,
		CostKnown:           u.CostKnown || v.CostKnown,
		UnpricedTokens:      u.UnpricedTokens + v.UnpricedTokens,
	}
}

// Since gives what is new in running totals u since the earlier totals last: never below zero, field by field, so that a
// repeated or an older report counts nothing.
func (u Usage) Since(last Usage) Usage {
	return Usage{
		InputTokens:         max(0, u.InputTokens-last.InputTokens),
		OutputTokens:        max(0, u.OutputTokens-last.OutputTokens),
		CacheReadTokens:     max(0, u.CacheReadTokens-last.CacheReadTokens),
		CacheCreationTokens: max(0, u.CacheCreationTokens-last.CacheCreationTokens),
		CostMicroUSD:        max(0, u.CostMicroUSD-last.CostMicroUSD),
		CostKnown:           u.CostKnown,
		UnpricedTokens:      max(0, u.UnpricedTokens-last.UnpricedTokens),
	}
}

// Max gives the larger of both, field by field: the totals to remember after a report.
func (u Usage) Max(v Usage) Usage {
	return Usage{
		InputTokens:         max(u.InputTokens, v.InputTokens),
		OutputTokens:        max(u.OutputTokens, v.OutputTokens),
		CacheReadTokens:     max(u.CacheReadTokens, v.CacheReadTokens),
		CacheCreationTokens: max(u.CacheCreationTokens, v.CacheCreationTokens),
		CostMicroUSD:        max(u.CostMicroUSD, v.CostMicroUSD),
		CostKnown:           u.CostKnown || v.CostKnown,
		UnpricedTokens:      max(u.UnpricedTokens, v.UnpricedTokens),
	}
}

// MostReported bounds each number of one session's report: a number beyond it is a fault, and would spoil every sum that it goes into.
const MostReported = 1_000_000_000_000

// Count takes a report of the running totals of one session and model. last are the totals that were counted so far. It gives what is
// new, and the totals to hold the next report against.
//
// A cost that the runtime reports counts, for all tokens of its report; it takes the place of what was estimated or unknown before. Where
// it reports none, price tells what the new tokens cost; where that is nil too, they are unpriced. What was counted never shrinks, but for
// unpriced tokens whose cost is told in the end.
func Count(reported, last Usage, price *Price) (fresh, totals Usage) {
	reported = reported.within()
	totals = reported.Max(last)
	fresh = totals.Since(last)
	tokens := fresh.Tokens()
	switch {
	case reported.CostKnown:
		untold := totals.Tokens() - reported.Tokens() // more than zero where an older report comes late
		totals.UnpricedTokens = min(last.UnpricedTokens, untold)
	case price != nil:
		fresh.CostMicroUSD = price.Cost(fresh)
		totals.CostMicroUSD = last.CostMicroUSD + fresh.CostMicroUSD
		totals.CostKnown = last.CostKnown || tokens > 0
	default:
		totals.UnpricedTokens = last.UnpricedTokens + tokens
	}
	fresh.CostKnown = totals.CostKnown
	fresh.UnpricedTokens = totals.UnpricedTokens - last.UnpricedTokens
	return fresh, totals
}

// within brings the numbers of a report within what can be.
func (u Usage) within() Usage {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheCreationTokens, &u.CostMicroUSD} {
		*n = min(max(*n, 0), MostReported)
	}
	u.UnpricedTokens = 0
	return u
}

// Cost is what the tokens of u cost, in millionths of a US dollar.
func (p Price) Cost(u Usage) int64 {
	sum := float64(u.InputTokens)*float64(p.Input) + float64(u.OutputTokens)*float64(p.Output) +
		float64(u.CacheReadTokens)*float64(p.CacheRead) + float64(u.CacheCreationTokens)*float64(p.CacheCreation)
	return int64(min(math.Round(sum/1e6), MostReported))
}

// MicroUSD converts US dollars to millionths, rounded to the nearest.
func MicroUSD(usd float64) int64 {
	return int64(math.Round(min(max(usd, -MostReported), MostReported) * 1e6))
}

// ModelUsage is the usage of one model.
type ModelUsage struct {
	Model string
	Usage Usage
}

// LedgerEntry is usage that one hand-back added: what was new in one session and model.
type LedgerEntry struct {
	ItemID  string
	Round   int
	Team    TeamKey
	Person  string
	Kind    string
	Session string
	Model   string
	Usage   Usage
}

// Rounds is what some rounds used together.
type Rounds struct {
	// Rounds counts them, Priced those of them whose cost is known.
	Rounds int64
	Priced int64
	Tokens int64
	// CostMicroUSD is what the priced ones cost.
	CostMicroUSD int64
}

// Mean is what one of the rounds used on average, rounded up; zero where nothing is known.
func (r Rounds) Mean() (tokens, microUSD int64) {
	mean := func(sum, n int64) int64 {
		if n <= 0 {
			return 0
		}
		return (sum + n - 1) / n
	}
	return mean(r.Tokens, r.Rounds), mean(r.CostMicroUSD, r.Priced)
}
