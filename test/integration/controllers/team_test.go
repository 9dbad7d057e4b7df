package controllers_test

// This file tests the Team controller, and the office's certificate.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/controllers"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/pki"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestATeamIsToldWithItsDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	costs, reserve := resource.MustParse("12.50"), resource.MustParse("0.5")
	team := w.team("core", func(team *api.Team) {
		team.Spec.Roles = []api.Role{{Name: "developer", Title: "Developer", Work: []api.WorkKind{{Kind: "task", Review: api.ReviewNone}, {Kind: "ticket"}}}}
		team.Spec.Humans = []api.Human{{Name: "Grace", Identities: map[string]string{"github": "grace"}}}
		team.Spec.Repositories = []api.Repository{{Name: "app", URL: "https://example.com/app.git"}}
		team.Spec.Usage.Budgets = []api.Budget{{Scope: "Team", CostUSD: &costs, ReserveUSD: &reserve}}
		team.Spec.Agent.Hooks = &api.EnvironmentHooks{BeforeStart: "true"}
	})
	key := model.TeamKey{Namespace: w.namespace, Name: "core"}
	config := protocol.DefaultTeamConfig()
	config.Name, config.DisplayName = "core", "core"
	config.Usage.TrackCost = false
	config.Roles = []protocol.TeamRole{{Name: "developer", Title: "Developer", Work: []protocol.TeamWork{
		{Kind: "task", Review: protocol.ReviewNone}, {Kind: "ticket", Review: protocol.ReviewRequired}}}}
	config.Humans = []protocol.TeamHuman{{Name: "Grace", Identities: map[string]string{"github": "grace"}}}
	config.Repositories = []protocol.TeamRepository{{Name: "app", URL: "https://example.com/app.git"}}
	config.Environment.Hooks.BeforeStart = "true"
	want := model.Team{
		UID: string(team.UID), Key: key, Config: config,
		Policy: model.Policy{
			Heartbeat: 15 * time.Second, Attempts: 3, MaxLostRounds: 3, LostAfter: 10 * time.Minute,
			BackoffInitial: 10 * time.Second, BackoffMax: 1000 * time.Second,
		},
		Usage: model.UsagePolicy{PauseAt: 0.95, Budgets: []model.Budget{{Scope: model.BudgetTeam, CostMicroUSD: 12_500_000, ReserveMicroUSD: 500_000}}},
	}
	w.eventually("the office hears of the team", func() error {
		var got model.Team
		w.office.with(func() { got = w.office.teams[key] })
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	if err := config.Validate(); err != nil {
		t.Errorf("agents would refuse the config: %v", err)
	}
}

func TestATeamCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.office.with(func() {
		w.office.team = model.TeamView{
			Items: map[protocol.WorkItemState]int{protocol.StateQueued: 4, protocol.StateDone: 2},
			Usage: model.Usage{OutputTokens: 9},
		}
	})
	w.team("core")
	for name, state := range map[string]model.PersonState{"ada": model.PersonWorking, "bob": model.PersonIdle, "cyd": model.PersonPaused, "dan": model.PersonOffline} {
		w.person(name)
		w.office.showPerson(w.namespace, name, func(v *model.PersonView) { v.State = state })
	}
	w.person("eve", func(p *api.Person) { p.Spec.Team = "other" })
	w.eventually("the team's status", func() error {
		team := &api.Team{}
		w.mustGet("core", team)
		want := api.TeamStatus{
			People:    api.PeopleCounts{Total: 4, Idle: 1, Working: 1, Paused: 1, Offline: 1, Summary: "1/4"},
			WorkItems: api.ItemCounts{Queued: 4, Done: 2},
		}
		got := api.TeamStatus{People: team.Status.People, WorkItems: team.Status.WorkItems}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		if team.Status.Usage.Tokens != 9 || team.Status.Store.ID != storeID {
			return fmt.Errorf("it is %+v", team.Status)
		}
		return has(team.Status.Conditions, api.ConditionReady, metav1.ConditionTrue, api.ReasonReady)
	})
}

func TestTheOfficesCertificate(t *testing.T) {
	t.Parallel()
	w := &world{t: t, namespace: cluster.Namespace(t), clock: &clock{}}
	names := []string{"bullpen-office.bullpen.svc", "127.0.0.1"}
	office := controllers.NewOfficeTLS(cluster.Client, w.namespace, names, w.clock.now)
	if _, err := office.CABundle(); err == nil {
		t.Error("there is a bundle before the first Ensure")
	}
	if err := office.EnsureSoon(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := office.CABundle()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := office.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first)
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: names[0]}); err != nil {
		t.Errorf("an agent refuses the certificate: %v", err)
	}
	<-office.BundleChanged()

	// Another manager, or the same after a restart, goes on with the same.
	again := controllers.NewOfficeTLS(cluster.Client, w.namespace, names, w.clock.now)
	if _, err := again.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if same, err := again.CABundle(); err != nil || !slices.Equal(same, first) {
		t.Errorf("the bundle is another one (%v)", err)
	}
	if writes := w.writes("secrets"); writes != 1 {
		t.Errorf("%d writes", writes)
	}

	// Years later a new CA is announced before it signs.
	w.clock.advance(pki.CALife * 3 / 4)
	if _, err := office.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-office.BundleChanged()
	both, err := office.CABundle()
	if err != nil || strings.Count(string(both), "BEGIN CERTIFICATE") != 2 || !strings.HasPrefix(string(both), string(first)) {
		t.Errorf("the bundle does not have the old and the new CA (%v):\n%s", err, both)
	}
}

func TestAForeignSecretIsNotTakenForTheOfficesCertificate(t *testing.T) {
	t.Parallel()
	w := &world{t: t, namespace: cluster.Namespace(t), clock: &clock{}}
	w.create(&corev1.Secret{ObjectMeta: w.meta(controllers.TLSSecretName)})
	office := controllers.NewOfficeTLS(cluster.Client, w.namespace, []string{"x"}, w.clock.now)
	_, err := office.Ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--office-cert-dir") {
		t.Errorf("the error is %v", err)
	}
	if writes := w.writes("secrets"); writes != 1 {
		t.Errorf("the Secret was written: %d writes", writes)
	}
}
