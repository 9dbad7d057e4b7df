// Package prices knows what a million tokens of a model cost, for usage whose cost the runtime does not tell.
//
// It has one table of list prices, which a team's own prices go before. A model that neither has is unknown: nothing is guessed from a
// model's family or from the price of its predecessor.
package prices

import (
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
)

// For gives the price of a model: the team's own one, else the built-in one. It says false where neither is known.
func For(id string, own []model.Price) (model.Price, bool) {
	if p, ok := find(id, own); ok {
		return p, true
	}
	return find(id, builtIn)
}

// find prefers the model's own id to a beginning, and a longer beginning to a shorter one.
func find(id string, list []model.Price) (best model.Price, ok bool) {
	longest := -1
	for _, p := range list {
		beginning, many := strings.CutSuffix(p.Model, "*")
		switch {
		case !many && p.Model == id:
			return p, true
		case many && strings.HasPrefix(id, beginning) && len(beginning) > longest:
			best, ok, longest = p, true, len(beginning)
		}
	}
	return best, ok
}

// builtIn are list prices in US dollars per million tokens, as Anthropic (platform.claude.com/docs/en/about-claude/pricing) and OpenAI
// (developers.openai.com/api/docs/pricing) had published them by the end of October 2026: standard service tier, and for Anthropic cache
// writes that last five minutes. OpenAI's are those of requests below the long-context threshold, within which Codex stays.
//
// Not here, because totals of tokens do not tell it: Claude Haiku 5.5, whose price depends fivefold on the length of each prompt, and the
// long-context variants of Claude Sonnet 4 and 4.5. Claude Code reports the cost of all of them itself.
var builtIn = table([]list{
	// Models, then input, output, cache read, cache creation.
	{"claude-fable-5-1 claude-mythos-5-1", flat, 10, 50, 0.25, 12.50},
	{"claude-fable-5 claude-mythos-5", flat, 10, 50, 1, 12.50},
	{"claude-opus-5-5", flat, 4, 20, 0.20, 5},
	{"claude-opus-5 claude-opus-4-8 claude-opus-4-7 claude-opus-4-6 claude-opus-4-5", flat, 5, 25, 0.50, 6.25},
	{"claude-opus-4-1 claude-opus-4 claude-opus-4-0", dated, 15, 75, 1.50, 18.75},
	{"claude-sonnet-5-5", flat, 2, 10, 0.10, 2.50},
	{"claude-sonnet-5", flat, 2, 10, 0.20, 2.50},
	{"claude-sonnet-4-6", flat, 3, 15, 0.30, 3.75},
	{"claude-sonnet-4-5 claude-sonnet-4 claude-sonnet-4-0", dated, 3, 15, 0.30, 3.75},
	{"claude-haiku-4-5", dated, 1, 5, 0.10, 1.25},

	{"gpt-6-astra", dated, 10, 50, 1, 12.50},
	{"gpt-6.1-sol", dated, 2, 10, 0.10, 2.50},
	{"gpt-6.1-terra", dated, 1, 5, 0.05, 1.25},
	{"gpt-6-sol", dated, 2, 10, 0.20, 2.50},
	{"gpt-6-luna", dated, 0.10, 0.50, 0.01, 0.125},
	{"gpt-5.6-sol", dated, 4, 20, 0.40, 5},
	{"gpt-5.6-terra", dated, 2, 12, 0.20, 2.50},
	{"gpt-5.6-luna", dated, 0.20, 1.20, 0.02, 0.25},
	// Earlier ones write to the cache for nothing more than the input.
	{"gpt-5.5", dated, 5, 30, 0.50, 5},
	{"gpt-5.4", dated, 2.50, 15, 0.25, 2.50},
	{"gpt-5.4-mini", dated, 0.75, 4.50, 0.075, 0.75},
	{"gpt-5.3-codex gpt-5.2-codex gpt-5.2", dated, 1.75, 14, 0.175, 1.75},
	{"gpt-5.1-codex-max gpt-5.1-codex gpt-5.1 gpt-5-codex gpt-5", dated, 1.25, 10, 0.125, 1.25},
	{"gpt-5.1-codex-mini gpt-5-mini", dated, 0.25, 2, 0.025, 0.25},
})

// list is a line of the built-in table: models of one price.
type list struct {
	models                                 string
	forms                                  []string
	input, output, cacheRead, cacheCreated float64
}

// The forms that ids of a model come in.
var (
	// dated: as it is, or followed by the date of its release.
	dated = []string{"", "-20*"}
	// flat: also with a mark such as [1m], where a long context costs the same.
	flat = append([]string{"[*"}, dated...)
)

func table(lists []list) []model.Price {
	var prices []model.Price
	for _, l := range lists {
		for _, id := range strings.Fields(l.models) {
			for _, form := range l.forms {
				prices = append(prices, model.Price{
					Model: id + form, Input: model.MicroUSD(l.input), Output: model.MicroUSD(l.output),
					CacheRead: model.MicroUSD(l.cacheRead), CacheCreation: model.MicroUSD(l.cacheCreated),
				})
			}
		}
	}
	return prices
}
