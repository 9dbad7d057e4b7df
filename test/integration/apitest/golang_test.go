package apitest_test

// This file has whole objects as a Go client builds them.

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

func ptr[T any](value T) *T { return &value }

func quantity(text string) *resource.Quantity { return ptr(resource.MustParse(text)) }

func lasts(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func goTeam() *api.Team {
	return &api.Team{
		ObjectMeta: metav1.ObjectMeta{Name: "core"},
		Spec: api.TeamSpec{
			Roles:        []api.Role{{Name: "dev", Work: []api.WorkKind{{Kind: "ticket", Review: api.ReviewNone}}}},
			Humans:       []api.Human{{Name: "Grace Hopper", Identities: map[string]string{"github": "grace"}}},
			Repositories: []api.Repository{{Name: "shop", URL: "git@example.com:shop.git", DefaultBranch: "release/1.x"}},
			Agent: api.AgentSettings{
				Image:     "registry.example.com:5000/team/agent:1.2@sha256:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
				Model:     "claude-opus[1m]",
				Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("1.5Gi")}},
				Home:      &api.HomeSettings{Size: quantity("1.5Gi"), StorageClassName: ptr("")},
				Tolerations: []corev1.Toleration{
					{Operator: corev1.TolerationOpExists},
					{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr(int64(5))},
				},
			},
			Usage: api.UsagePolicy{
				Budgets: []api.Budget{{Scope: "Team", CostUSD: quantity("12.50"), ReserveUSD: quantity("0.333"), StopAtPercent: ptr(int32(150))}},
				Prices:  []api.Price{{Model: "house-*", InputUSD: "0.25", OutputUSD: "2", CacheReadUSD: "0.025"}},
			},
			Pipeline: api.Pipeline{Context: api.ContextLimits{Comments: ptr(int32(0))}},
			Events:   &api.Events{TokenSecret: api.SecretKey{Name: "events", Key: "token"}},
			Policies: api.Policies{
				Attempts: 1, Heartbeat: lasts(200 * time.Millisecond), LostAfter: lasts(90 * time.Second), Backoff: lasts(1500 * time.Millisecond),
				Rollout: api.RolloutPolicy{MaxWait: lasts(0)},
			},
		},
	}
}

func goPerson() *api.Person {
	return &api.Person{
		ObjectMeta: metav1.ObjectMeta{Name: "ada"},
		Spec: api.PersonSpec{
			Team: "core", Role: "dev", Subscription: "max@example.com",
			Agent: api.AgentSettings{
				Runtime:      api.RuntimeClaude,
				NodeSelector: map[string]string{"topology.kubernetes.io/zone": "eu-1a", "empty": ""},
				Secrets:      []api.SecretUse{{Name: "a.b", MountPath: "/etc/git"}, {Name: "plain"}, {Name: "env", EnvPrefix: "GIT_"}},
			},
			Tools:    []string{"git", "g++"},
			Services: []api.Service{{Name: "db", Address: "[::1]:5432"}, {Name: "web", Address: "10.0.0.1:80"}},
		},
	}
}

func goItem() *api.WorkItem {
	return &api.WorkItem{
		ObjectMeta: metav1.ObjectMeta{Name: "fix-login"},
		Spec: api.WorkItemSpec{
			Team: "core", Role: "dev", Kind: "ticket", Title: "Fix the login", DependsOn: []string{"design.v2"},
			Timeout: lasts(90 * time.Minute), TTLSecondsAfterFinished: ptr(int32(0)),
			Subject: &api.Subject{Type: "ticket", Ref: "7", URL: "https://example.com/7?a=b#c"},
		},
	}
}

// fillStatus gives an object the status that it has in the middle of its life.
func fillStatus(object client.Object) {
	ready := func(reason string) []metav1.Condition {
		return []metav1.Condition{{
			Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(),
		}}
	}
	usage := api.UsageStatus{InputTokens: 1000, OutputTokens: 200, Tokens: 1200, CostUSD: "0.42"}
	switch o := object.(type) {
	case *api.Team:
		o.Status = api.TeamStatus{
			Conditions: ready(api.ReasonReady), Usage: usage,
			People:    api.PeopleCounts{Total: 2, Working: 1, Idle: 1, Summary: "1/2"},
			WorkItems: api.ItemCounts{Queued: 3, Active: 1, Done: 4},
		}
	case *api.Person:
		o.Status = api.PersonStatus{
			Conditions: append(ready(api.ReasonReady), metav1.Condition{
				Type: api.ConditionDoctor, Status: metav1.ConditionTrue, Reason: api.ReasonDoctorChecksPassed, LastTransitionTime: metav1.Now(),
			}),
			State: "working", CurrentItem: "fix-login", Queued: 3, Runtime: api.RuntimeClaude, Usage: usage,
		}
	case *api.WorkItem:
		o.Status = api.WorkItemStatus{
			Conditions: ready(api.ReasonAccepted), State: "active", Person: "ada", Progress: "Running the tests", Rounds: 1, Usage: usage,
			Priority: ptr(int32(7)), Order: "person.ada/1/1000007/ab",
		}
	}
}
