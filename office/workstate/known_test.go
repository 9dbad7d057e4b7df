package workstate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

var (
	shop = model.TeamKey{Namespace: "ns", Name: "shop"}
	noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
)

func TestATicketFollowsItsEvents(t *testing.T) {
	first, fresh := NextTicket(nil, TicketChanged{Key: "ACME-1", Title: "a", Status: protocol.TicketStatusReady, Parent: "ACME-9"}, "ada", shop, noon)
	want := model.Ticket{Team: shop, Key: "ACME-1", Title: "a", Status: protocol.TicketStatusReady, Assignee: "ada", Parent: "ACME-9", UpdatedAt: noon, AsOf: noon}
	if diff := cmp.Diff(want, first); diff != "" || !fresh {
		t.Errorf("fresh %v; want -, got +:\n%s", fresh, diff)
	}
	second, _ := NextTicket(&first, TicketChanged{Key: "ACME-1", Title: "b", Status: protocol.TicketStatusDone}, "", shop, noon.Add(time.Hour))
	if second.Title != "b" || second.Assignee != "" || second.Parent != "" || second.Open() {
		t.Errorf("the ticket is %+v", second)
	}
	if late, fresh := NextTicket(&second, TicketChanged{Key: "ACME-1", Title: "a"}, "ada", shop, noon.Add(time.Minute)); fresh || late.Title != "b" {
		t.Errorf("an older event that came late made it %+v", late)
	}
}

// opened is an event about a pull request as it was opened, changed by edits.
func opened(edits ...func(*PullChanged)) PullChanged {
	d := PullChanged{
		Repo: "acme/shop", Number: 12, Title: "Mend login", State: protocol.PullOpen, Author: Actor{Login: "acme-bot"}, Head: "acme-1-login", Base: "main",
	}
	for _, edit := range edits {
		edit(&d)
	}
	return d
}

func TestAPullRequestFollowsItsEvents(t *testing.T) {
	keys := Keys{Prefixes: []string{"ACME"}}
	made := MadePull(shop, "acme/shop", 12, "https://x.example/12", "ada", noon)
	stranger, ada, grace := Who{Name: "acme-bot"}, Who{Name: "ada", Person: "ada"}, Who{Name: "grace-h", Human: true}
	for name, tc := range map[string]struct {
		known *model.Pull
		event PullChanged
		who   Who
		at    time.Time
		want  func(model.Pull) bool
	}{
		"a new one has its ticket by the rule": {nil, opened(), stranger, noon, func(p model.Pull) bool {
			return p.Ticket == "ACME-1" && p.Author == "acme-bot" && p.AuthorKind == protocol.AuthorHuman && p.CI == protocol.ChecksNone &&
				p.Mergeable == protocol.MergeableUnknown && p.OpenedAt.Equal(noon) && p.Ref == "acme/shop#12"
		}},
		"the ticket that the sender names goes first": {nil, opened(func(d *PullChanged) { d.Ticket = "OPS-5" }), stranger, noon,
			func(p model.Pull) bool { return p.Ticket == "OPS-5" }},
		"a bot is one": {nil, opened(func(d *PullChanged) { d.Bot = true }), stranger, noon,
			func(p model.Pull) bool { return p.AuthorKind == protocol.AuthorBot }},
		"a person of the team is an agent": {nil, opened(), ada, noon,
			func(p model.Pull) bool { return p.AuthorKind == protocol.AuthorAgent && p.Author == "ada" }},
		"who told that it opened it stays its author under a login that nobody knows": {&made, opened(), stranger, noon.Add(-time.Minute),
			func(p model.Pull) bool {
				return p.Author == "ada" && p.AuthorKind == protocol.AuthorAgent && p.Title == "Mend login" && p.Ticket == "ACME-1"
			}},
		"who told that it opened what a human did, did not": {&made, opened(), grace, noon,
			func(p model.Pull) bool { return p.Author == "grace-h" && p.AuthorKind == protocol.AuthorHuman }},
		"when it was opened is what the event says": {nil, opened(func(d *PullChanged) { d.OpenedAt = "2026-01-01T00:00:00Z" }), stranger, noon,
			func(p model.Pull) bool { return p.OpenedAt.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) }},
		"checks, review, threads and ticket stay": {
			&model.Pull{Ref: "acme/shop#12", Title: "Mend login", Head: "acme-1-login", CI: protocol.ChecksFailure, Failing: []string{"lint"},
				Review: ReviewApproved, UnresolvedThreads: 2, Ticket: "ACME-7", OpenedAt: noon.Add(-time.Hour)},
			opened(), stranger, noon, func(p model.Pull) bool {
				return p.CI == protocol.ChecksFailure && p.Review == ReviewApproved && p.UnresolvedThreads == 2 && p.Ticket == "ACME-7" && p.OpenedAt.Before(noon)
			}},
		"a new title moves it to the ticket that it names": {
			&model.Pull{Ref: "acme/shop#12", Title: "ACME-7: x", Head: "fix", Ticket: "ACME-7"},
			opened(func(d *PullChanged) { d.Head, d.Title = "fix", "ACME-8: x" }), stranger, noon, func(p model.Pull) bool { return p.Ticket == "ACME-8" }},
		"an older event that comes late changes nothing": {
			&model.Pull{Ref: "acme/shop#12", State: protocol.PullMerged, AsOf: noon}, opened(), stranger, noon.Add(-time.Second),
			func(p model.Pull) bool { return p.State == protocol.PullMerged }},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := NextPull(tc.known, tc.event, tc.who, keys, shop, tc.at, noon); !tc.want(got) {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

func TestFailingChecksWakeOnceForWhatFails(t *testing.T) {
	type step struct {
		sha     string
		state   protocol.CheckState
		failing string
		wake    bool
	}
	const fail, ok, runs = protocol.ChecksFailure, protocol.ChecksSuccess, protocol.ChecksPending
	for name, steps := range map[string][]step{
		"checks that turn to failure wake":                  {{"a", runs, "", false}, {"a", fail, "lint", true}},
		"the same failure again and again does not":         {{"a", fail, "lint", true}, {"a", fail, "lint", false}, {"a", fail, "lint", false}},
		"nor in another order":                              {{"a", fail, "lint test", true}, {"a", fail, "test lint", false}},
		"nor after the checks ran again":                    {{"a", fail, "lint", true}, {"a", runs, "", false}, {"a", fail, "lint", false}},
		"nor when they fail and pass in turn at one commit": {{"a", fail, "lint", true}, {"a", ok, "", false}, {"a", fail, "lint", false}, {"a", ok, "", false}, {"a", fail, "lint", false}},
		"nor at a new commit that does not mend it":         {{"a", fail, "lint", true}, {"b", runs, "", false}, {"b", fail, "lint", false}, {"c", fail, "lint", false}},
		"another check that fails does":                     {{"a", fail, "lint", true}, {"b", fail, "test", true}, {"c", fail, "lint test", true}},
		"nor what failed before, in turn":                   {{"a", fail, "lint", true}, {"b", fail, "test", true}, {"c", fail, "lint", false}, {"d", fail, "test", false}},
		"after they went well at a newer commit, it does":   {{"a", fail, "lint", true}, {"b", ok, "", false}, {"c", fail, "lint", true}},
		"a failure without names is one too":                {{"a", fail, "", true}, {"b", fail, "", false}},
	} {
		t.Run(name, func(t *testing.T) {
			p, at := model.Pull{Ref: "acme/shop#12", State: protocol.PullOpen}, noon
			for i, s := range steps {
				d := PullChecks{SHA: s.sha, State: s.state}
				for _, check := range strings.Fields(s.failing) {
					d.Failing = append(d.Failing, FailingCheck{Name: check})
				}
				at = at.Add(time.Minute)
				next, fresh, wake := NextChecks(p, d, at, at)
				if !fresh || wake != s.wake || next.CI != s.state {
					t.Errorf("step %d: fresh %v, wakes %v, checks %s", i, fresh, wake, next.CI)
				}
				p = next
			}
		})
	}
}

func TestFailingChecksDoNotCostRoundsForEver(t *testing.T) {
	p, woken := model.Pull{State: protocol.PullOpen}, 0
	for i := range 1000 { // an agent that pushes again and again, and each time breaks something new
		d := PullChecks{SHA: string(rune('a' + i)), State: protocol.ChecksFailure, Failing: []FailingCheck{{Name: strings.Repeat("x", i+1)}}}
		next, _, wake := NextChecks(p, d, noon, noon)
		if p = next; wake {
			woken++
		}
	}
	if woken != mostTold {
		t.Errorf("1000 failures woke %d times, want %d", woken, mostTold)
	}
	merged, _, wake := NextChecks(model.Pull{State: protocol.PullMerged}, PullChecks{State: protocol.ChecksFailure}, noon, noon)
	if wake || merged.CI != protocol.ChecksFailure {
		t.Errorf("checks of a merged one wake: %v", wake)
	}
	if _, fresh, _ := NextChecks(model.Pull{ChecksAsOf: noon}, PullChecks{State: protocol.ChecksFailure}, noon.Add(-1), noon); fresh {
		t.Error("older checks that came late count")
	}
}

func TestFailuresNameTheChecks(t *testing.T) {
	got := Failures("acme/shop#12", PullChecks{SHA: "abc", Failing: []FailingCheck{{"lint", "https://ci.example/1", "unused variable"}, {Name: "test"}}})
	want := "Checks of acme/shop#12 fail at abc.\n- lint (https://ci.example/1): unused variable\n- test"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
