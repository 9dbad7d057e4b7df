package prices

// These tests hold which price a model gets, and that what is unknown stays unknown.

import (
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
)

func TestFor(t *testing.T) {
	own := []model.Price{
		{Model: "claude-opus-5-5", Input: 1},
		{Model: "house-*", Input: 2},
		{Model: "house-large-*", Input: 3},
		{Model: "house-large-1", Input: 4},
	}
	for name, tc := range map[string]struct {
		id   string
		own  []model.Price
		want int64 // the price of input; 0 is unknown
	}{
		"a built-in model":                              {"claude-opus-5-5", nil, 4_000_000},
		"a built-in model with its date":                {"claude-haiku-4-5-20251001", nil, 1_000_000},
		"a built-in model with a date of another kind":  {"gpt-5-2025-08-07", nil, 1_250_000},
		"a long context that costs the same":            {"claude-opus-4-6[1m]", nil, 5_000_000},
		"the team's price goes before":                  {"claude-opus-5-5", own, 1},
		"the team's price is for what it names":         {"claude-opus-5-5-20260922", own, 4_000_000},
		"a beginning":                                   {"house-small", own, 2},
		"a longer beginning":                            {"house-large-2", own, 3},
		"a whole id goes before every beginning":        {"house-large-1", own, 4},
		"a model nobody knows":                          {"llama-9", own, 0},
		"an empty id":                                   {"", own, 0},
		"a successor is not its predecessor":            {"claude-opus-5-6", nil, 0},
		"a variant is not the model":                    {"gpt-5-nano", nil, 0},
		"a price that depends on the prompt is unknown": {"claude-haiku-5-5", nil, 0},
		"a long context of another price is unknown":    {"claude-sonnet-4-5[1m]", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := For(tc.id, tc.own)
			if known != (tc.want != 0) || got.Input != tc.want {
				t.Errorf("%q costs %d (known %v), want %d", tc.id, got.Input, known, tc.want)
			}
		})
	}
}

func TestEveryBuiltInPriceIsWholeAndNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range builtIn {
		if seen[p.Model] {
			t.Errorf("%s has two prices", p.Model)
		}
		seen[p.Model] = true
		if p.CacheRead <= 0 || p.CacheRead >= p.Input || p.CacheCreation < p.Input || p.Output <= p.Input {
			t.Errorf("%s: %+v: reading a cache is the cheapest, output the dearest", p.Model, p)
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d models are priced", len(seen))
	}
}
