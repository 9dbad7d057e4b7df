package workstate

import (
	"testing"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestCurrentWorkReadsWell(t *testing.T) {
	got := CurrentWork(
		[]model.Ticket{{Key: "ACME-1", Title: "Login", Status: protocol.TicketStatusActive, URL: "https://t.example/ACME-1"}, {Key: "ACME-2", Title: "Logout", Status: protocol.TicketStatusReady}},
		[]model.Pull{{Ref: "acme/shop#7", Title: "Mend login", Draft: true, CI: protocol.ChecksFailure, Review: ReviewApproved, UnresolvedThreads: 2, Ticket: "ACME-1"}},
		[]model.Item{{Name: "fix", State: protocol.StateQueued, Spec: model.ItemSpec{Kind: "ticket", Title: "Mend it"}}},
	)
	want := `Tickets assigned to you:
- ACME-1 (active): Login <https://t.example/ACME-1>
- ACME-2 (ready): Logout

Your open pull requests:
- acme/shop#7 (draft, checks failure, review approved, 2 unresolved threads, for ACME-1): Mend login

Your work items, in the order in which they run:
- fix (ticket, queued): Mend it
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := CurrentWork(nil, nil, nil); got != "You have no open tickets, pull requests or work items." {
		t.Errorf("of nothing: %q", got)
	}
}
