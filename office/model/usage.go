package model

// This file has the arithmetic of usage: tokens and cost as running totals per session and model.

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
	// are any, the cost is a lower bound.
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

// MicroUSD converts US dollars to millionths, rounded to the nearest.
func MicroUSD(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

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
