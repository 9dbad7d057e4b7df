package controllers

// This file tests the pure parts of the WorkItem controller.

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestWeigh(t *testing.T) {
	base := api.WorkItemStatus{
		ObservedGeneration: 1, State: "active", Person: "ada", Progress: "step 1", Rounds: 1, Store: api.StoreRef{ID: "s", Revision: 4},
		Conditions: []metav1.Condition{condition(api.ConditionReady, true, api.ReasonAccepted, "m")},
	}
	tests := map[string]struct {
		change func(*api.WorkItemStatus)
		want   weight
	}{
		"nothing":              {func(*api.WorkItemStatus) {}, sameStatus},
		"a revision alone":     {func(s *api.WorkItemStatus) { s.Store.Revision = 9 }, sameStatus},
		"progress":             {func(s *api.WorkItemStatus) { s.Progress = "step 2" }, laterStatus},
		"a session":            {func(s *api.WorkItemStatus) { s.SessionID = "x" }, laterStatus},
		"usage":                {func(s *api.WorkItemStatus) { s.Usage.Tokens = 1 }, laterStatus},
		"a place in the queue": {func(s *api.WorkItemStatus) { s.Order, s.Priority = "x", new(int32) }, laterStatus},
		"who gets the offer":   {func(s *api.WorkItemStatus) { s.Person = "bob" }, laterStatus},
		"a state":              {func(s *api.WorkItemStatus) { s.State = "done" }, urgentStatus},
		"a round":              {func(s *api.WorkItemStatus) { s.Rounds = 2 }, urgentStatus},
		"a failure":            {func(s *api.WorkItemStatus) { s.Failures = 1 }, urgentStatus},
		"a condition":          {func(s *api.WorkItemStatus) { s.Conditions = nil }, urgentStatus},
		"an observed spec":     {func(s *api.WorkItemStatus) { s.ObservedGeneration = 2 }, urgentStatus},
		"a rerun acted on":     {func(s *api.WorkItemStatus) { s.Rerun = "x" }, urgentStatus},
		"another store's life": {func(s *api.WorkItemStatus) { s.Store = api.StoreRef{ID: "t"} }, urgentStatus},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := *base.DeepCopy()
			test.change(&changed)
			if got := weigh(base, changed); got != test.want {
				t.Errorf("it weighs %d", got)
			}
		})
	}
}

func TestTimeLeft(t *testing.T) {
	ttl := int32(60)
	at := metav1.NewTime(noon.Add(-20 * time.Second))
	tests := map[string]struct {
		edit    func(*api.WorkItem)
		left    time.Duration
		expires bool
	}{
		"done":                      {edit: func(*api.WorkItem) {}, left: 40 * time.Second, expires: true},
		"canceled":                  {edit: func(i *api.WorkItem) { i.Status.State = "canceled" }, left: 40 * time.Second, expires: true},
		"over":                      {edit: func(i *api.WorkItem) { i.Status.FinishedAt = &metav1.Time{Time: noon.Add(-time.Hour)} }, left: -59 * time.Minute, expires: true},
		"without a limit":           {edit: func(i *api.WorkItem) { i.Spec.TTLSecondsAfterFinished = nil }},
		"blocked":                   {edit: func(i *api.WorkItem) { i.Status.State = "blocked" }},
		"active":                    {edit: func(i *api.WorkItem) { i.Status.State = "active" }},
		"about to run again":        {edit: func(i *api.WorkItem) { i.Spec.Rerun = "2" }},
		"rerun and done again":      {edit: func(i *api.WorkItem) { i.Spec.Rerun, i.Status.Rerun = "2", "2" }, left: 40 * time.Second, expires: true},
		"without a time of its end": {edit: func(i *api.WorkItem) { i.Status.FinishedAt = nil }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			item := &api.WorkItem{Spec: api.WorkItemSpec{TTLSecondsAfterFinished: &ttl}, Status: api.WorkItemStatus{State: "done", FinishedAt: &at}}
			test.edit(item)
			if left, expires := timeLeft(item, noon); left != test.left || expires != test.expires {
				t.Errorf("%s, %v", left, expires)
			}
		})
	}
}

func TestSpecHash(t *testing.T) {
	hash := func(edit func(*api.WorkItemSpec)) string {
		item := &api.WorkItem{Spec: api.WorkItemSpec{Team: "core", Person: "ada", Title: "T"}}
		edit(&item.Spec)
		return itemFacts(item, &api.WorkItem{}).Spec.Hash
	}
	base := hash(func(*api.WorkItemSpec) {})
	priority := int32(100)
	if hash(func(s *api.WorkItemSpec) {
		s.Kind, s.Trigger, s.Priority, s.Requester = "task", "human", &priority, "requester"
	}) != base {
		t.Error("a default that is written out makes another hash")
	}
	if hash(func(s *api.WorkItemSpec) { s.Body = "more" }) == base {
		t.Error("another body makes no other hash")
	}
}

func TestProgress(t *testing.T) {
	tests := map[string]struct {
		item model.Item
		want string
	}{
		"what the agent said last": {model.Item{State: protocol.StateActive, Progress: "step\n 1"}, "step 1"},
		"why it cannot run yet":    {model.Item{State: protocol.StateQueued, Hold: model.Why{Reason: "x", Message: "waits for b"}}, "waits for b"},
		"how it ended":             {model.Item{State: protocol.StateDone, Progress: "step 9", Summary: "It works."}, "It works."},
		"why it is blocked":        {model.Item{State: protocol.StateBlocked, Progress: "step 9", End: model.Why{Message: "no key"}}, "no key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := progress(model.ItemView{Item: test.item}); got != test.want {
				t.Errorf("it is %q", got)
			}
		})
	}
}

func TestItemStatusIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 100_000)
	view := model.ItemView{Item: model.Item{State: protocol.StateBlocked, Summary: long, Progress: long, End: model.Why{Reason: "Blocked", Message: long}}}
	for range 1000 {
		view.Links = append(view.Links, protocol.Link{URL: "https://example.com", Title: long})
		view.Models = append(view.Models, model.ModelUsage{Model: "m"})
	}
	view.Links = append(view.Links, protocol.Link{URL: "https://example.com/" + long})
	status := itemStatus(&api.WorkItem{}, view, noon)
	if len([]rune(status.Summary)) != 4096 || len([]rune(status.Progress)) != 1024 || len(status.Links) != 16 || len(status.Models) != 16 ||
		len([]rune(status.Links[0].Title)) != 300 || len([]rune(status.Conditions[0].Message)) != 1024 {
		t.Error("something in the status is not bounded")
	}
}
