package controllers_test

// This file tests the Team controller, and the office's certificate.

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/controllers"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/pki"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// namespaceUID reads the UID of the world's namespace.
func (w *world) namespaceUID() string {
	w.t.Helper()
	var namespace corev1.Namespace
	if err := cluster.Client.Get(w.t.Context(), client.ObjectKey{Name: w.namespace}, &namespace); err != nil {
		w.t.Fatal(err)
	}
	return string(namespace.UID)
}

func TestATeamIsToldWithItsDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	costs, reserve := resource.MustParse("12.50"), resource.MustParse("0.5")
	team := w.team("core", func(team *api.Team) {
		team.Spec.Roles = []api.Role{{Name: "developer", Title: "Developer", Work: []api.WorkKind{{Kind: "task", Review: api.ReviewNone}, {Kind: "ticket"}}}}
		team.Spec.Humans = []api.Human{{Name: "Grace", Identities: map[string]string{"github": "grace"}}}
		team.Spec.Repositories = []api.Repository{{Name: "app", URL: "https://example.com/app.git", CredentialsSecret: "app-git"}}
		size := resource.MustParse("20Gi")
		team.Spec.Sessions.Retention = api.SessionRetention{MaxAge: &metav1.Duration{Duration: 720 * time.Hour}, MaxSize: &size}
		team.Spec.Usage.Budgets = []api.Budget{
			{Scope: "Team", CostUSD: &costs, ReserveUSD: &reserve},
			{Scope: "Person", Tokens: new(int64(500)), WarnAtPercent: new(int32(0)), StopAtPercent: new(int32(150))},
		}
		team.Spec.Usage.Prices = []api.Price{
			{Model: "house", InputUSD: "0.25", OutputUSD: "2", CacheReadUSD: "0.025"},
		}
		team.Spec.Pipeline.Context = api.ContextLimits{BodyChars: new(int32(100)), Comments: new(int32(0))}
		team.Spec.Agent.Hooks = &api.EnvironmentHooks{BeforeStart: "true", OnAct: "act", OnReport: "report"}
	})
	key := model.TeamKey{Namespace: w.namespace, Name: "core"}
	config := protocol.DefaultTeamConfig()
	config.Name, config.DisplayName = "core", "core"
	config.Usage.TrackCost = false
	config.Roles = []protocol.TeamRole{{Name: "developer", Title: "Developer", Work: []protocol.TeamWork{
		{Kind: "task", Review: protocol.ReviewNone}, {Kind: "ticket", Review: protocol.ReviewRequired}}}}
	config.Humans = []protocol.TeamHuman{{Name: "Grace", Identities: map[string]string{"github": "grace"}}}
	config.Repositories = []protocol.TeamRepository{{Name: "app", URL: "https://example.com/app.git", Credentials: "app-git"}}
	config.Environment.Hooks.BeforeStart, config.Environment.Hooks.OnAct, config.Environment.Hooks.OnReport = "true", "act", "report"
	config.Pipeline.Context.BodyChars, config.Pipeline.Context.Comments = 100, 0
	want := model.Team{
		UID: string(team.UID), NamespaceUID: w.namespaceUID(), Key: key, Config: config,
		Retention: model.Retention{MaxAge: 720 * time.Hour, MaxBytes: 20 << 30},
		Policy: model.Policy{
			Heartbeat: 15 * time.Second, Attempts: 3, MaxLostRounds: 3, LostAfter: 10 * time.Minute,
			BackoffInitial: 10 * time.Second, BackoffMax: 1000 * time.Second,
		},
		Usage: model.UsagePolicy{
			PauseAt: 0.95,
			Budgets: []model.Budget{
				{Scope: model.BudgetTeam, CostMicroUSD: 12_500_000, ReserveMicroUSD: 500_000, WarnAt: 0.8},
				{Scope: model.BudgetPerson, Tokens: 500, StopAt: 1.5},
			},
			Prices: []model.Price{{Model: "house", Input: 250_000, Output: 2_000_000, CacheRead: 25_000, CacheCreation: 250_000}},
		},
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

// look has the Team controller look at the team now.
func (w *world) look(name string) {
	w.office.changes <- model.Change{Kind: model.ChangedTeam, Namespace: w.namespace, Name: name}
}

func TestTheTokenOfATeamsEventsIsReadFromItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := model.TeamKey{Namespace: w.namespace, Name: "core"}
	w.team("core", func(team *api.Team) {
		team.Spec.Events = &api.Events{TokenSecret: api.SecretKey{Name: "events", Key: "token"}}
	})
	shows := func(what string, status metav1.ConditionStatus, reason string, hash [32]byte) {
		t.Helper()
		w.eventually(what, func() error {
			team := &api.Team{}
			w.mustGet("core", team)
			var got model.Team
			w.office.with(func() { got = w.office.teams[key] })
			if got.EventsTokenHash != hash {
				return fmt.Errorf("the office knows the hash %x", got.EventsTokenHash)
			}
			text, err := json.Marshal(team)
			if err != nil {
				return err
			}
			if strings.Contains(string(text), "s3cret") {
				return fmt.Errorf("the token stands in the object: %s", text)
			}
			return has(team.Status.Conditions, api.ConditionEvents, status, reason)
		})
	}
	shows("without a Secret", metav1.ConditionFalse, api.ReasonTokenMissing, [32]byte{})

	secret := &corev1.Secret{ObjectMeta: w.meta("events"), StringData: map[string]string{"other": "s3cret"}}
	w.create(secret)
	w.clock.advance(time.Minute)
	w.look("core")
	shows("with a Secret that has another key", metav1.ConditionFalse, api.ReasonTokenMissing, [32]byte{})

	w.change("events", secret, func() { secret.StringData = map[string]string{"token": " s3cret-1\n"} })
	w.clock.advance(time.Minute)
	w.look("core")
	shows("with the token", metav1.ConditionTrue, api.ReasonEventsAccepted, sha256.Sum256([]byte("s3cret-1")))

	// A team that is looked at all the time does not ask for its Secret all the time.
	reads := func() int {
		return len(cluster.AuditEvents(t, func(e *auditv1.Event) bool {
			return e.Verb == "get" && e.ObjectRef != nil && e.ObjectRef.Namespace == w.namespace && e.ObjectRef.Name == "events" && e.User.Username == "bullpen-manager"
		}))
	}
	before, told := reads(), w.office.count("SyncTeam core")
	for n := range 5 {
		w.look("core")
		w.eventually("a look", func() error {
			if got := w.office.count("SyncTeam core"); got <= told+n {
				return fmt.Errorf("%d looks", got-told)
			}
			return nil
		})
	}
	if n := reads() - before; n != 0 {
		t.Errorf("five looks at once read the Secret %d times", n)
	}

	w.change("events", secret, func() { secret.StringData = map[string]string{"token": "s3cret-2"} })
	w.clock.advance(time.Minute)
	w.look("core")
	shows("with another token", metav1.ConditionTrue, api.ReasonEventsAccepted, sha256.Sum256([]byte("s3cret-2")))

	w.delete(secret)
	w.clock.advance(time.Minute)
	w.look("core")
	shows("after the Secret is gone", metav1.ConditionFalse, api.ReasonTokenMissing, [32]byte{})

	team := &api.Team{}
	w.change("core", team, func() { team.Spec.Events = nil })
	shows("without events", "", "", [32]byte{})
}

func TestABudgetWarningIsAConditionThatGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.team("core")
	w.person("ada")
	w.runningPod("ada-agent")
	item := w.item("one")
	w.itemHas("one", inState(protocol.StateQueued))
	warning := model.Why{Reason: model.ReasonBudgetNearlyUsed, Message: "The budget is nearly used up: 85 of 100 tokens (85 %)."}
	show := func(why model.Why) {
		w.office.with(func() { w.office.team.BudgetWarning = why })
		w.look("core")
		w.office.showPerson(w.namespace, "ada", func(v *model.PersonView) { connected(v); v.BudgetWarning = why })
		w.office.showItem(string(item.UID), func(v *model.ItemView) { v.BudgetWarning = why })
	}
	shown := func(what string, status metav1.ConditionStatus, reason string) {
		t.Helper()
		w.eventually(what, func() error {
			team, ada, one := &api.Team{}, &api.Person{}, &api.WorkItem{}
			w.mustGet("core", team)
			w.mustGet("ada", ada)
			w.mustGet("one", one)
			return errors.Join(
				has(team.Status.Conditions, api.ConditionBudgetWarning, status, reason),
				has(ada.Status.Conditions, api.ConditionBudgetWarning, status, reason),
				has(one.Status.Conditions, api.ConditionBudgetWarning, status, reason))
		})
	}
	shown("no warning", "", "")
	show(warning)
	shown("a warning", metav1.ConditionTrue, api.ReasonBudgetNearlyUsed)
	warning.Message = "The budget is nearly used up: 95 of 100 tokens (95 %)."
	show(warning)
	show(model.Why{})
	shown("no warning any more", "", "")
	w.eventually("one event for each", func() error {
		var list eventsv1.EventList
		if err := cluster.Client.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		told := map[string]int{}
		for _, e := range list.Items {
			if e.Reason == api.ReasonBudgetNearlyUsed {
				told[e.Regarding.Kind] += 1
			}
		}
		if diff := cmp.Diff(map[string]int{"Team": 1, "Person": 1, "WorkItem": 1}, told); diff != "" {
			return errors.New(diff)
		}
		return nil
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
