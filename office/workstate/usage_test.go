package workstate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestTheUsageOfATicketAddsUp(t *testing.T) {
	use := func(tokens, cost int64) model.Usage {
		return model.Usage{InputTokens: tokens, OutputTokens: 1, CacheReadTokens: 2, CacheCreationTokens: 3, CostMicroUSD: cost, CostKnown: cost > 0}
	}
	part := TicketWork{
		Key: "ACME-2", Shares: []model.TicketShare{{Person: "bob", Model: "large", Kind: "ticket", Usage: use(100, 3_000_000), Runs: 1}},
		Runs:  []model.TicketRuns{{Person: "bob", Kind: "ticket", Runs: 1}},
		Parts: []TicketWork{{Key: "ACME-3", Shares: []model.TicketShare{{Person: "bob", Model: "large", Kind: "ticket", Usage: use(1000, 0), Runs: 1}}}},
	}
	work := TicketWork{
		Key: "ACME-1", Parts: []TicketWork{part},
		Shares: []model.TicketShare{
			{Person: "ada", Model: "small", Kind: "ticket", Usage: use(10, 500_000), Runs: 2},
			{Person: "ada", Model: "large", Kind: "ticket", Usage: use(20, 2_000_000), Runs: 1},
			{Person: "bob", Model: "local", Kind: "review_feedback", Usage: use(900, 0), Runs: 1},
		},
		Runs: []model.TicketRuns{
			{Person: "ada", Kind: "ticket", Runs: 2}, {Person: "bob", Kind: "review_feedback", Runs: 1}, {Person: "cleo", Kind: "ticket", Runs: 1},
		},
	}
	r := work.Report()
	own := protocol.UsageTotals{InputTokens: 930, OutputTokens: 3, CacheReadTokens: 6, CacheCreationTokens: 9, Tokens: 948, CostUSD: 2.5, Runs: 4}
	if r.Ticket != "ACME-1" || r.Own != own {
		t.Errorf("its own is %+v, want %+v", r.Own, own)
	}
	total := protocol.UsageTotals{InputTokens: 2030, OutputTokens: 5, CacheReadTokens: 10, CacheCreationTokens: 15, Tokens: 2060, CostUSD: 5.5, Runs: 5}
	if r.Total != total {
		t.Errorf("the total is %+v, want %+v", r.Total, total)
	}
	if len(r.SubTickets) != 1 || r.SubTickets[0].Ticket != "ACME-2" || r.SubTickets[0].Total.InputTokens != 1100 || r.SubTickets[0].Total.Runs != 1 {
		t.Errorf("the sub-tickets are %+v", r.SubTickets)
	}
	split := func(shares []protocol.UsageShare) string {
		var list []string
		for _, s := range shares {
			list = append(list, fmt.Sprintf("%s %g %d %d", s.Key, s.Totals.CostUSD, s.Totals.InputTokens, s.Totals.Runs))
		}
		return strings.Join(list, ", ")
	}
	for name, tc := range map[string]struct{ got, want string }{
		"person": {split(r.ByPerson), "ada 2.5 30 2, bob 0 900 1, cleo 0 0 1"},
		"model":  {split(r.ByModel), "large 2 20 1, small 0.5 10 2, local 0 900 1"},
		"kind":   {split(r.ByKind), "ticket 2.5 30 3, review_feedback 0 900 1"},
	} {
		if tc.got != tc.want {
			t.Errorf("by %s: %s, want %s", name, tc.got, tc.want)
		}
	}
	if empty := (TicketWork{Key: "ACME-9"}).Report(); empty.SubTickets == nil || empty.ByPerson == nil || empty.Own != (protocol.UsageTotals{}) {
		t.Errorf("of nothing: %+v", empty)
	}
}
