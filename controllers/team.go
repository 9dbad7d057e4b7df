package controllers

// This file has the controller of Team: the team's settings go to the office, its people and items are counted.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// rosterEvery is how often the status of a Team or a Person may be written.
const rosterEvery = time.Second

// Defaults of policies, as the API server fills them in.
const (
	defaultHeartbeat = 15 * time.Second
	defaultLostAfter = 10 * time.Minute
	defaultBackoff   = 10 * time.Second
	defaultMaxWait   = time.Hour
	defaultPauseAt   = int32(95)
	defaultWarnAt    = int32(80)
	// backoffSpan is how much longer than the first one a backoff becomes.
	backoffSpan = 100
)

// +kubebuilder:rbac:groups=bullpen.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups=bullpen.dev,resources=teams/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=bullpen,resources=leases,verbs=get;create;update

type teamReconciler struct {
	reconciler
	tokens     eventsTokens
	namespaces namespaceUIDs
}

func setupTeams(mgr ctrl.Manager, base reconciler, changes *router, o Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("team").
		For(&api.Team{}).
		Watches(&api.Person{}, handler.EnqueueRequestsFromMapFunc(teamOf)).
		WatchesRawSource(changes.source(model.ChangedTeam)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency}).
		Complete(&teamReconciler{
			reconciler: base, tokens: eventsTokens{read: make(map[types.NamespacedName]readToken)},
			namespaces: namespaceUIDs{byID: make(map[types.UID]types.UID)},
		})
}

func teamOf(_ context.Context, o client.Object) []reconcile.Request {
	person := o.(*api.Person)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: person.Namespace, Name: string(person.Spec.Team)}}}
}

// Reconcile looks at one Team.
func (r *teamReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Wait until the office knows which objects exist.
	if err := r.waitSynced(ctx); err != nil {
		return outcome(err, 0)
	}
	// 2. A team that is gone is forgotten.
	team := &api.Team{}
	if err := r.client.Get(ctx, req.NamespacedName, team); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return outcome(err, 0)
		}
		r.writes.forget(teamKey(req.NamespacedName))
		r.tokens.forget(req.NamespacedName)
		r.namespaces.forget()
		return outcome(r.office.ForgetTeam(ctx, model.TeamKey{Namespace: req.Namespace, Name: req.Name}), 0)
	}
	// 3. Read the token of its events, and tell the office the team as declared.
	token, err := r.tokens.of(ctx, r.live, team, r.now())
	if err != nil {
		return outcome(err, 0)
	}
	var again time.Duration
	if token.ready != nil {
		again = tokenEvery
	}
	namespace, err := r.namespaces.of(ctx, r.live, team)
	if err != nil {
		return outcome(err, 0)
	}
	facts := teamFacts(team, token.hash)
	facts.NamespaceUID = string(namespace)
	syncErr := r.office.SyncTeam(ctx, facts)
	// 4. Status may wait for its turn; people change often. A spec that was not seen yet goes first.
	seen := team.Status.ObservedGeneration == team.Generation
	if wait := r.writes.wait(keyOf(team), r.now(), rosterEvery); wait > 0 && seen {
		return outcome(syncErr, wait)
	}
	// 5. Gather what there is to show.
	view, people, err := r.gather(ctx, team)
	if syncErr != nil {
		err = syncErr
	}
	// 6. Write status, once, if it changed.
	changed := team.DeepCopy()
	changed.Status = teamStatus(team, view, people, token.ready, err, r.now())
	if !apiequality.Semantic.DeepEqual(team.Status, changed.Status) && ctx.Err() == nil {
		if writeErr := r.writeStatus(ctx, team, changed); writeErr != nil {
			return outcome(writeErr, 0)
		}
		r.tellBudget(changed, team.Status.Conditions, changed.Status.Conditions)
	}
	return outcome(err, again)
}

func keyOf(o client.Object) objectKey {
	kind := "Person"
	switch o.(type) {
	case *api.Team:
		kind = "Team"
	case *api.WorkItem:
		kind = "WorkItem"
	}
	return objectKey{kind: kind, NamespacedName: client.ObjectKeyFromObject(o)}
}

func teamKey(name types.NamespacedName) objectKey {
	return objectKey{kind: "Team", NamespacedName: name}
}

// gather reads what the status of a team shows.
func (r *teamReconciler) gather(ctx context.Context, team *api.Team) (model.TeamView, []api.Person, error) {
	var people api.PersonList
	err := r.client.List(ctx, &people, client.InNamespace(team.Namespace), client.MatchingFields{indexTeam: team.Name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return model.TeamView{}, nil, err
	}
	view, err := r.office.Team(ctx, model.TeamKey{Namespace: team.Namespace, Name: team.Name})
	return view, people.Items, err
}

// teamFacts is the team as the office knows it, with every default filled in. token is the hash of its events' token.
func teamFacts(team *api.Team, token [sha256.Size]byte) model.Team {
	spec := &team.Spec
	policy := policyOf(spec.Policies)
	config := protocol.DefaultTeamConfig()
	config.Name = team.Name
	config.DisplayName = cmp.Or(spec.DisplayName, team.Name)
	for _, role := range spec.Roles {
		config.Roles = append(config.Roles, teamRole(role))
	}
	for _, human := range spec.Humans {
		config.Humans = append(config.Humans, protocol.TeamHuman{Name: human.Name, Identities: human.Identities})
	}
	for _, repo := range spec.Repositories {
		config.Repositories = append(config.Repositories,
			protocol.TeamRepository{
				Name: string(repo.Name), URL: repo.URL, DefaultBranch: repo.DefaultBranch, Credentials: string(repo.CredentialsSecret),
			})
	}
	pauseAt := float64(ptr.Deref(spec.Usage.PauseAtPercent, defaultPauseAt)) / 100
	config.Usage.TrackCost = spec.Usage.TrackCost
	config.Usage.PauseAt = pauseAt
	config.Policies.Attempts = policy.Attempts
	config.Policies.HeartbeatMs = int(policy.Heartbeat.Milliseconds())
	config.Policies.MaxLostRounds = policy.MaxLostRounds
	config.Pipeline.Context = contextLimits(spec.Pipeline.Context, config.Pipeline.Context)
	config.Environment.Hooks = teamHooks(spec.Agent.Hooks)
	return model.Team{
		UID:       string(team.UID),
		Key:       model.TeamKey{Namespace: team.Namespace, Name: team.Name},
		Config:    config,
		Suspended: spec.Suspend,
		Policy:    policy,
		Usage: model.UsagePolicy{
			TrackCost: spec.Usage.TrackCost, PauseAt: pauseAt, Budgets: budgetsOf(spec.Usage.Budgets), Prices: pricesOf(spec.Usage.Prices),
		},
		Retention:       retentionOf(spec.Sessions.Retention),
		EventsTokenHash: token,
	}
}

func retentionOf(r api.SessionRetention) model.Retention {
	var bytes int64
	if r.MaxSize != nil {
		bytes = r.MaxSize.Value()
	}
	return model.Retention{MaxAge: duration(r.MaxAge, 0), MaxBytes: bytes}
}

// contextLimits takes the limits that are given, and the others from the defaults.
func contextLimits(given api.ContextLimits, defaults protocol.TeamContext) protocol.TeamContext {
	or := func(n *int32, otherwise int) int {
		if n == nil {
			return otherwise
		}
		return int(*n)
	}
	return protocol.TeamContext{
		BodyChars: or(given.BodyChars, defaults.BodyChars),
		Comments:  or(given.Comments, defaults.Comments),
		Reviews:   or(given.Reviews, defaults.Reviews),
		Threads:   or(given.Threads, defaults.Threads),
		Messages:  or(given.Messages, defaults.Messages),
		Items:     or(given.Items, defaults.Items),
	}
}

func teamHooks(hooks *api.EnvironmentHooks) protocol.TeamHooks {
	if hooks == nil {
		return protocol.TeamHooks{}
	}
	return protocol.TeamHooks{
		BuildBase: hooks.BuildBase, BuildBaseInputs: hooks.BuildBaseInputs, AfterCheckout: hooks.AfterCheckout, BeforeStart: hooks.BeforeStart, OnAct: hooks.OnAct, OnReport: hooks.OnReport,
	}
}

func teamRole(role api.Role) protocol.TeamRole {
	out := protocol.TeamRole{
		Name: string(role.Name), Title: role.Title, Summary: role.Summary, Instructions: role.Instructions,
	}
	for _, work := range role.Work {
		review := protocol.ReviewRequired
		if work.Review == api.ReviewNone {
			review = protocol.ReviewNone
		}
		out.Work = append(out.Work, protocol.TeamWork{Kind: work.Kind, Review: review})
	}
	return out
}

func policyOf(p api.Policies) model.Policy {
	initial := duration(p.Backoff, defaultBackoff)
	return model.Policy{
		Heartbeat:      duration(p.Heartbeat, defaultHeartbeat),
		Attempts:       cmp.Or(int(p.Attempts), 3),
		MaxLostRounds:  cmp.Or(int(p.MaxLostRounds), 3),
		LostAfter:      duration(p.LostAfter, defaultLostAfter),
		BackoffInitial: initial,
		BackoffMax:     initial * backoffSpan,
	}
}

func budgetsOf(list []api.Budget) []model.Budget {
	budgets := make([]model.Budget, 0, len(list))
	for _, b := range list {
		budget := model.Budget{
			Scope:         model.BudgetScope(b.Scope),
			Tokens:        ptr.Deref(b.Tokens, 0),
			ReserveTokens: b.ReserveTokens,
			WarnAt:        float64(ptr.Deref(b.WarnAtPercent, defaultWarnAt)) / 100,
			StopAt:        float64(ptr.Deref(b.StopAtPercent, 0)) / 100,
		}
		if b.CostUSD != nil {
			budget.CostMicroUSD = model.MicroUSD(b.CostUSD.AsApproximateFloat64())
		}
		if b.ReserveUSD != nil {
			budget.ReserveMicroUSD = model.MicroUSD(b.ReserveUSD.AsApproximateFloat64())
		}
		budgets = append(budgets, budget)
	}
	if len(budgets) == 0 {
		return nil
	}
	return budgets
}

func pricesOf(list []api.Price) []model.Price {
	var prices []model.Price
	for _, p := range list {
		price := model.Price{Model: p.Model, Input: microDollars(p.InputUSD), Output: microDollars(p.OutputUSD)}
		price.CacheRead = microDollars(cmp.Or(p.CacheReadUSD, p.InputUSD))
		price.CacheCreation = microDollars(cmp.Or(p.CacheCreationUSD, p.InputUSD))
		prices = append(prices, price)
	}
	return prices
}

// microDollars is an amount in millionths, which the API server has checked.
func microDollars(d api.Dollars) int64 {
	micro, _ := microUSD(string(d))
	return micro
}

// teamStatus is the status of a team. events is the condition of its events, nil where it takes none. With an error, what was known
// before stays and the condition tells.
func teamStatus(team *api.Team, view model.TeamView, people []api.Person, events *metav1.Condition, err error, now time.Time) api.TeamStatus {
	status := *team.Status.DeepCopy()
	ready := condition(api.ConditionReady, true, api.ReasonReady, "The team takes work.")
	switch {
	case err != nil:
		ready = condition(api.ConditionReady, false, api.ReasonOfficeUnavailable, officeMessage)
	case team.Spec.Suspend:
		ready = condition(api.ConditionReady, true, api.ReasonSuspended, "No new rounds start while spec.suspend is true.")
	}
	wanted := []metav1.Condition{ready}
	if events != nil {
		wanted = append(wanted, *events)
	}
	if err != nil {
		if warning := apimeta.FindStatusCondition(status.Conditions, api.ConditionBudgetWarning); warning != nil {
			wanted = append(wanted, *warning)
		}
		status.Conditions = setConditions(status.Conditions, team.Generation, now, wanted...)
		return status
	}
	status.Conditions = setConditions(status.Conditions, team.Generation, now, append(wanted, budgetCondition(view.BudgetWarning)...)...)
	status.ObservedGeneration = team.Generation
	status.People = countPeople(people)
	status.WorkItems = countItems(view.Items)
	status.Usage = usageStatus(view.Usage)
	status.Store = api.StoreRef{ID: view.StoreID}
	return status
}

// officeMessage stands in conditions while the office cannot take or give facts; the manager's log has the error.
const officeMessage = "The office cannot use its store right now; it tries again. The manager's log says why."

func countPeople(people []api.Person) api.PeopleCounts {
	counts := api.PeopleCounts{Total: int32(len(people))}
	for i := range people {
		switch model.PersonState(people[i].Status.State) {
		case model.PersonIdle:
			counts.Idle++
		case model.PersonWorking:
			counts.Working++
		case model.PersonPaused:
			counts.Paused++
		default:
			counts.Offline++
		}
	}
	counts.Summary = fmt.Sprintf("%d/%d", counts.Working, counts.Total)
	return counts
}

func countItems(items map[protocol.WorkItemState]int) api.ItemCounts {
	n := func(state protocol.WorkItemState) int32 { return int32(items[state]) }
	return api.ItemCounts{
		Queued:   n(protocol.StateQueued),
		Active:   n(protocol.StateActive),
		Waiting:  n(protocol.StateWaiting),
		Blocked:  n(protocol.StateBlocked),
		Done:     n(protocol.StateDone),
		Canceled: n(protocol.StateCanceled),
	}
}

func duration(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}
