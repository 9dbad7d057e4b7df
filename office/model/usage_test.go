package model

// These tests hold the running totals of usage against what users of comparable systems report.

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tokens is a report of input and output alone.
func tokens(in, out int64) Usage { return Usage{InputTokens: in, OutputTokens: out} }

// costing adds a cost that the runtime tells.
func costing(u Usage, micro int64) Usage {
	u.CostMicroUSD, u.CostKnown = micro, true
	return u
}

// count adds reports of one session and model up, in the order in which they come.
func count(price *Price, reports ...Usage) Usage {
	var sum, last Usage
	for _, r := range reports {
		var fresh Usage
		fresh, last = Count(r, last, price)
		sum = sum.Add(fresh)
	}
	return sum
}

func TestRunningTotals(t *testing.T) {
	cheap := &Price{Input: 1_000_000, Output: 5_000_000, CacheRead: 100_000, CacheCreation: 1_250_000} // a dollar for a million
	unpriced := func(u Usage) Usage { u.UnpricedTokens = u.Tokens(); return u }
	for name, tc := range map[string]struct {
		price   *Price
		reports []Usage
		want    Usage
	}{
		"a line for each block repeats the usage, and it counts once": {nil,
			[]Usage{costing(tokens(100, 10), 50), costing(tokens(100, 10), 50), costing(tokens(100, 10), 50), costing(tokens(100, 10), 50)},
			costing(tokens(100, 10), 50)},
		"of duplicates that grow the last counts, not the first": {nil,
			[]Usage{costing(tokens(100, 1), 40), costing(tokens(100, 8), 47), costing(tokens(100, 10), 50)}, costing(tokens(100, 10), 50)},
		"totals that Codex emits again count once, priced by the table": {cheap,
			[]Usage{tokens(1000, 100), tokens(1000, 100), tokens(1500, 200), tokens(1500, 200)}, costing(tokens(1500, 200), 2500)},
		"a resumed session includes its earlier rounds": {nil,
			[]Usage{costing(tokens(100, 10), 50), costing(tokens(300, 30), 150)}, costing(tokens(300, 30), 150)},
		"an older report after a newer one counts nothing": {nil,
			[]Usage{costing(tokens(300, 30), 150), costing(tokens(100, 10), 50), costing(tokens(310, 30), 160)}, costing(tokens(310, 30), 160)},
		"a runtime that starts over under its old session counts from its last total on": {nil,
			[]Usage{costing(tokens(300, 30), 150), costing(tokens(20, 2), 10), costing(tokens(320, 32), 170)}, costing(tokens(320, 32), 170)},
		"a runtime's own cost goes before the price": {cheap,
			[]Usage{costing(tokens(1000, 0), 777)}, costing(tokens(1000, 0), 777)},
		"all four kinds of tokens have their price": {cheap,
			[]Usage{{InputTokens: 1000, OutputTokens: 1000, CacheReadTokens: 1000, CacheCreationTokens: 1000}},
			costing(Usage{InputTokens: 1000, OutputTokens: 1000, CacheReadTokens: 1000, CacheCreationTokens: 1000}, 7350)},
		"unknown is not zero":                               {nil, []Usage{tokens(1000, 100)}, unpriced(tokens(1000, 100))},
		"a cost of nothing is known":                        {nil, []Usage{costing(tokens(1000, 100), 0)}, costing(tokens(1000, 100), 0)},
		"no usage at all knows no cost, whatever the price": {cheap, []Usage{{}, {}}, Usage{}},
		"a cost told in the end covers what was unknown before": {nil,
			[]Usage{tokens(1000, 100), costing(tokens(2000, 200), 900)}, costing(tokens(2000, 200), 900)},
		"a cost told in the end takes the place of estimates": {cheap,
			[]Usage{tokens(1000, 0), costing(tokens(2000, 0), 2200)}, costing(tokens(2000, 0), 2200)},
		"a cost that is told only sometimes leaves the rest unknown": {nil,
			[]Usage{costing(tokens(1000, 0), 900), tokens(1500, 0)},
			func() Usage { u := costing(tokens(1500, 0), 900); u.UnpricedTokens = 500; return u }()},
		"an older report with its cost does not cover newer tokens": {nil,
			[]Usage{costing(tokens(1000, 0), 900), tokens(1500, 0), costing(tokens(1000, 0), 900)},
			func() Usage { u := costing(tokens(1500, 0), 900); u.UnpricedTokens = 500; return u }()},
		"less than nothing is nothing": {cheap, []Usage{costing(tokens(-5, -5), -5), {CacheReadTokens: -1}}, costing(Usage{}, 0)},
		"a number that cannot be is bounded, so that it spoils no sum": {cheap,
			[]Usage{tokens(math.MaxInt64, math.MaxInt64)}, costing(tokens(MostReported, MostReported), MostReported)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, count(tc.price, tc.reports...)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestTheSameReportAgainLeavesTheTotalsAsTheyAre(t *testing.T) {
	for name, report := range map[string]Usage{"told": costing(tokens(7, 3), 5), "not told": tokens(7, 3)} {
		for kind, price := range map[string]*Price{"a price": {Input: 9}, "none": nil} {
			_, totals := Count(report, Usage{}, price)
			if _, again := Count(report, totals, price); again != totals {
				t.Errorf("%s, %s: %+v became %+v", name, kind, totals, again)
			}
		}
	}
}

func TestMicroUSD(t *testing.T) {
	for usd, want := range map[float64]int64{0: 0, 1.25: 1_250_000, 0.0000004: 0, 0.0000006: 1, -2: -2_000_000, 1e300: MostReported * 1_000_000} {
		if got := MicroUSD(usd); got != want {
			t.Errorf("%g USD are %d, want %d", usd, got, want)
		}
	}
}

func TestMean(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds       Rounds
		tokens, cost int64
	}{
		"rounded up":                         {Rounds{Rounds: 3, Priced: 3, Tokens: 10, CostMicroUSD: 7}, 4, 3},
		"of those alone whose cost is known": {Rounds{Rounds: 4, Priced: 2, Tokens: 40, CostMicroUSD: 10}, 10, 5},
		"of no rounds":                       {Rounds{}, 0, 0},
		"of rounds whose cost nobody knows":  {Rounds{Rounds: 2, Tokens: 6}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if tokens, cost := tc.rounds.Mean(); tokens != tc.tokens || cost != tc.cost {
				t.Errorf("a round used %d tokens and %d, want %d and %d", tokens, cost, tc.tokens, tc.cost)
			}
		})
	}
}
