package controllers

// This file has the controller of WorkItem: spec and recorded status go to the office as facts, what the office knows comes
// back as status. The budget of status writes is kept here: what a user waits for is written at once, the rest seldom.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	// progressEvery is how often status may be written for what nobody waits for.
	progressEvery = 30 * time.Second
	// settleTime is how long an item may name what does not exist before its status says so: what is applied together, or found
	// at the manager's start, comes one after another.
	settleTime = 2 * time.Second

	defaultKind      = "task"
	defaultRequester = "requester"
	defaultPriority  = int32(100)

	progressRunes = 1024
	summaryRunes  = 4096
	titleRunes    = 300
	modelRunes    = 256
	maxURL        = 2048
	maxLinks      = 16
	maxModels     = 16
)

// +kubebuilder:rbac:groups=bullpen.dev,resources=workitems,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=bullpen.dev,resources=workitems/status,verbs=patch

// errGone says that there is no such item, neither as an object nor in the office.
var errGone = errors.New("there is no such work item")

type itemReconciler struct {
	reconciler
	graves *graves
}

func setupItems(mgr ctrl.Manager, base reconciler, g *graves, changes *router, o Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("workitem").
		For(&api.WorkItem{}).
		WatchesRawSource(g.source()).
		WatchesRawSource(changes.source(model.ChangedItem)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency}).
		Complete(&itemReconciler{reconciler: base, graves: g})
}

// Reconcile looks at one WorkItem.
func (r *itemReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Wait until the office knows which objects exist.
	if err := r.waitSynced(ctx); err != nil {
		return outcome(err, 0)
	}
	// 2. Deleted items of this name are canceled.
	if err := r.graves.bury(ctx, req.NamespacedName, r.cancel); err != nil {
		return outcome(err, 0)
	}
	// 3. Gather; an item that began in the office gets its object here.
	item, parent, err := r.gather(ctx, req)
	if err != nil {
		r.writes.forget(objectKey{kind: "WorkItem", NamespacedName: req.NamespacedName})
		if errors.Is(err, errGone) {
			return ctrl.Result{}, nil
		}
		return outcome(err, 0)
	}
	// 4. An item that is being deleted is canceled at once; one whose time is over is deleted.
	if item.DeletionTimestamp != nil {
		return outcome(r.cancel(ctx, string(item.UID)), 0)
	}
	left, expires := timeLeft(item, r.now())
	if expires && left <= 0 {
		if err := r.expire(ctx, item); !errors.Is(err, model.ErrUnfinished) {
			return outcome(err, 0)
		}
		left = 0 // it runs again, which its status is about to show
	}
	// 5. Tell the office the facts, and hear what there is to show.
	view, err := r.office.SyncItem(ctx, itemFacts(item, parent))
	// 6. Write status, once, if it changed and it is time.
	wait, writeErr := r.show(ctx, item, view, err)
	if writeErr != nil {
		err = writeErr
	}
	return outcome(err, sooner(left, wait))
}

func (r *itemReconciler) cancel(ctx context.Context, uid string) error {
	return r.office.ForgetItem(ctx, uid, false)
}

// gather reads or makes the item, and reads its parent, which is empty where the item names none that exists.
func (r *itemReconciler) gather(ctx context.Context, req ctrl.Request) (item, parent *api.WorkItem, err error) {
	item, parent = &api.WorkItem{}, &api.WorkItem{}
	err = r.client.Get(ctx, req.NamespacedName, item)
	if apierrors.IsNotFound(err) {
		if item, err = r.bear(ctx, req); err == nil && item == nil {
			err = errGone
		}
	}
	if err != nil || item.Spec.Parent == "" {
		return item, parent, err
	}
	err = r.client.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: item.Spec.Parent}, parent)
	return item, parent, client.IgnoreNotFound(err)
}

// expire lets the office keep a tombstone and deletes the object, if it is still the same one. It does not where the office knows that the
// item runs again, and gives model.ErrUnfinished: the cache is behind.
func (r *itemReconciler) expire(ctx context.Context, item *api.WorkItem) error {
	if err := r.office.ForgetItem(ctx, string(item.UID), true); err != nil {
		return err
	}
	err := r.client.Delete(ctx, item, client.Preconditions{UID: &item.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

// timeLeft says how long a finished item stays, and whether it has a limit at all. An item that is to run again stays.
func timeLeft(item *api.WorkItem, now time.Time) (left time.Duration, expires bool) {
	ttl, status := item.Spec.TTLSecondsAfterFinished, &item.Status
	finished := status.State == api.WorkItemState(protocol.StateDone) || status.State == api.WorkItemState(protocol.StateCanceled)
	again := item.Spec.Rerun != "" && item.Spec.Rerun != status.Rerun
	if ttl == nil || !finished || again || status.FinishedAt == nil {
		return 0, false
	}
	return status.FinishedAt.Add(time.Duration(*ttl) * time.Second).Sub(now), true
}

// show writes the status if it changed. A wait is how long to hold a change back that nobody waits for.
func (r *itemReconciler) show(ctx context.Context, item *api.WorkItem, view model.ItemView, err error) (time.Duration, error) {
	now := r.now()
	changed := item.DeepCopy()
	if err == nil {
		changed.Status = itemStatus(item, view, now)
	} else {
		changed.Status = untakenStatus(item, now)
	}
	switch weigh(item.Status, changed.Status) {
	case sameStatus:
		return 0, nil
	case laterStatus:
		if wait := r.writes.wait(keyOf(item), now, progressEvery); wait > 0 {
			return wait, nil
		}
	case urgentStatus:
		if wait := r.settling(item, view, now); err == nil && wait > 0 {
			return wait, nil
		}
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err := r.writeStatus(ctx, item, changed); err != nil {
		return 0, err
	}
	r.tell(item, changed)
	r.tellBudget(changed, item.Status.Conditions, changed.Status.Conditions)
	if left, expires := timeLeft(changed, now); expires {
		return max(left, time.Millisecond), nil
	}
	return 0, nil
}

// settling is how much longer what the item lacks may still come by itself.
func (r *itemReconciler) settling(item *api.WorkItem, view model.ItemView, now time.Time) time.Duration {
	switch view.Hold.Reason {
	case api.ReasonTeamNotFound, api.ReasonPersonNotFound, api.ReasonRoleNotFound, api.ReasonNobodyInRole, api.ReasonDependencyNotFound:
		since := item.CreationTimestamp.Time
		if since.Before(r.started) {
			since = r.started
		}
		return max(0, since.Add(settleTime).Sub(now))
	}
	return 0
}

// tell reports the ends of an item as events.
func (r *itemReconciler) tell(old, item *api.WorkItem) {
	if old.Status.State == item.Status.State {
		return
	}
	ready := apimeta.FindStatusCondition(item.Status.Conditions, api.ConditionReady)
	switch protocol.WorkItemState(item.Status.State) {
	case protocol.StateDone:
		r.events.Eventf(item, nil, corev1.EventTypeNormal, ready.Reason, "Finish", "%s finished it after %d round(s)",
			item.Status.Person, item.Status.Rounds)
	case protocol.StateBlocked:
		r.events.Eventf(item, nil, corev1.EventTypeWarning, ready.Reason, "Block", "%s", ready.Message)
	case protocol.StateCanceled:
		r.events.Eventf(item, nil, corev1.EventTypeNormal, ready.Reason, "Cancel", "%s", ready.Message)
	case protocol.StateQueued, protocol.StateActive, protocol.StateWaiting:
	}
}

// weight says whether, and how soon, a changed status is written.
type weight int

const (
	sameStatus weight = iota
	laterStatus
	urgentStatus
)

// weigh compares two statuses. A new revision alone shows nothing. State, conditions and counts of rounds are what users and
// tools wait for; progress, session, usage, the place in the queue and who gets an offer of a queued item can wait.
func weigh(old, changed api.WorkItemStatus) weight {
	old.Store.Revision = changed.Store.Revision
	if apiequality.Semantic.DeepEqual(old, changed) {
		return sameStatus
	}
	key := func(s api.WorkItemStatus) api.WorkItemStatus {
		return api.WorkItemStatus{
			ObservedGeneration: s.ObservedGeneration,
			Conditions:         s.Conditions,
			State:              s.State,
			Rounds:             s.Rounds,
			Failures:           s.Failures,
			LostRounds:         s.LostRounds,
			FinishedAt:         s.FinishedAt,
			Rerun:              s.Rerun,
			Store:              api.StoreRef{ID: s.Store.ID},
		}
	}
	if apiequality.Semantic.DeepEqual(key(old), key(changed)) {
		return laterStatus
	}
	return urgentStatus
}

// itemFacts is what the office hears of an item. parent is empty where there is none.
func itemFacts(item, parent *api.WorkItem) model.ItemFacts {
	spec := item.Spec.DeepCopy()
	spec.Kind = cmp.Or(spec.Kind, defaultKind)
	spec.Requester = cmp.Or(spec.Requester, defaultRequester)
	spec.Trigger = cmp.Or(spec.Trigger, string(protocol.TriggerHuman))
	spec.Priority = cmp.Or(spec.Priority, ptr.To(defaultPriority))
	facts := model.ItemFacts{
		ID:           string(item.UID),
		BornID:       bornID(item),
		ParentBornID: bornID(parent),
		Origin:       bornOrigin(item),
		Namespace:    item.Namespace,
		Name:         item.Name,
		CreatedAt:    item.CreationTimestamp.UTC(),
		Spec: model.ItemSpec{
			Generation: item.Generation,
			Hash:       specHash(spec),
			Team:       string(spec.Team),
			Person:     string(spec.Person),
			Role:       string(spec.Role),
			Kind:       spec.Kind,
			Title:      spec.Title,
			Body:       spec.Body,
			Requester:  spec.Requester,
			Priority:   *spec.Priority,
			Trigger:    protocol.Trigger(spec.Trigger),
			Parent:     spec.Parent,
			ParentID:   string(parent.UID),
			DependsOn:  spec.DependsOn,
			Attempts:   int(ptr.Deref(spec.Attempts, 0)),
			Timeout:    duration(spec.Timeout, 0),
			Cancel:     spec.Cancel,
			Rerun:      spec.Rerun,
		},
		Recorded: recorded(&item.Status),
	}
	if s := spec.Subject; s != nil {
		facts.Spec.Subject = &protocol.Subject{Type: s.Type, Ref: s.Ref, Title: s.Title, URL: s.URL}
	}
	return facts
}

// specHash identifies a spec by its JSON, in which fields that are not given do not stand: a new optional field changes no hash.
func specHash(spec *api.WorkItemSpec) string {
	text, _ := json.Marshal(spec) // strings, numbers and lists of them always have a JSON form
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// recorded is what a status says of the item's past, for a store that does not know it.
func recorded(status *api.WorkItemStatus) model.Recorded {
	r := model.Recorded{
		StoreID:    status.Store.ID,
		Revision:   status.Store.Revision,
		State:      protocol.WorkItemState(status.State),
		Assignee:   status.Person,
		Rounds:     int(status.Rounds),
		Failures:   int(status.Failures),
		LostRounds: int(status.LostRounds),
		SessionID:  status.SessionID,
		Summary:    status.Summary,
		Usage:      usageOf(status.Usage),
		StartedAt:  utcOf(status.StartedAt),
		FinishedAt: utcOf(status.FinishedAt),
		Rerun:      status.Rerun,
	}
	for _, l := range status.Links {
		r.Links = append(r.Links, protocol.Link{URL: l.URL, Title: l.Title})
	}
	for _, m := range status.Models {
		r.Models = append(r.Models, model.ModelUsage{Model: m.Model, Usage: usageOf(m.UsageStatus)})
	}
	ready := apimeta.FindStatusCondition(status.Conditions, api.ConditionReady)
	if ready != nil && r.State != protocol.StateQueued && r.State != protocol.StateActive {
		r.End = model.Why{Reason: ready.Reason, Message: ready.Message}
	}
	return r
}

// itemStatus is the status that shows the view.
func itemStatus(item *api.WorkItem, view model.ItemView, now time.Time) api.WorkItemStatus {
	status := api.WorkItemStatus{
		ObservedGeneration: item.Generation,
		State:              api.WorkItemState(view.State),
		Conditions:         setConditions(item.Status.Conditions, item.Generation, now, append(itemConditions(view), budgetCondition(view.BudgetWarning)...)...),
		Person:             view.Assignee,
		Priority:           ptr.To(view.Rank().Priority),
		Order:              order(&view.Item),
		Progress:           progress(view),
		Rounds:             int32(view.Rounds),
		Failures:           int32(view.Failures),
		LostRounds:         int32(view.LostRounds),
		SessionID:          view.SessionID,
		Summary:            cut(view.Summary, summaryRunes),
		Links:              links(view.Links),
		Usage:              usageStatus(view.Usage),
		StartedAt:          stampOf(view.StartedAt),
		FinishedAt:         stampOf(view.FinishedAt),
		Rerun:              view.Spec.Rerun,
		Store:              api.StoreRef{ID: view.StoreID, Revision: view.Revision},
	}
	for _, m := range view.Models[:min(len(view.Models), maxModels)] {
		status.Models = append(status.Models, api.ModelUsageStatus{Model: cut(m.Model, modelRunes), UsageStatus: usageStatus(m.Usage)})
	}
	return status
}

// untakenStatus tells that the office could not take the item's facts, of an item whose present spec it never took. Of others
// the status stays what it is.
func untakenStatus(item *api.WorkItem, now time.Time) api.WorkItemStatus {
	status := *item.Status.DeepCopy()
	if status.ObservedGeneration != item.Generation {
		ready := condition(api.ConditionReady, false, api.ReasonOfficeUnavailable, officeMessage)
		others := slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool { return c.Type == ready.Type })
		status.Conditions = setConditions(status.Conditions, item.Generation, now, append(others, ready)...)
	}
	return status
}

// itemConditions says where an item stands. An item that somebody canceled is as it was asked to be, so it is Ready as kstatus
// means it.
func itemConditions(view model.ItemView) []metav1.Condition {
	end := view.End
	switch view.State {
	case protocol.StateDone:
		return []metav1.Condition{
			condition(api.ConditionReady, true, cmp.Or(end.Reason, api.ReasonDone), cmp.Or(end.Message, "The item is done.")),
			condition(api.ConditionComplete, true, cmp.Or(end.Reason, api.ReasonDone), cmp.Or(end.Message, "The item is done.")),
		}
	case protocol.StateCanceled:
		return []metav1.Condition{
			condition(api.ConditionReady, true, cmp.Or(end.Reason, api.ReasonCanceled), cmp.Or(end.Message, "The item is canceled.")),
			condition(api.ConditionFailed, true, cmp.Or(end.Reason, api.ReasonCanceled), cmp.Or(end.Message, "The item is canceled.")),
		}
	case protocol.StateBlocked:
		reason, message := cmp.Or(end.Reason, api.ReasonBlocked), cmp.Or(end.Message, "The item needs a human.")
		return []metav1.Condition{
			condition(api.ConditionReady, false, reason, message),
			condition(api.ConditionFailed, true, reason, message),
			condition(api.ConditionStalled, true, reason, message),
		}
	case protocol.StateWaiting:
		return []metav1.Condition{condition(api.ConditionReady, true,
			cmp.Or(end.Reason, api.ReasonWaiting), cmp.Or(end.Message, "The item waits for something outside."))}
	case protocol.StateQueued, protocol.StateActive:
	}
	if hold := view.Hold; view.State == protocol.StateQueued && hold.Reason != "" {
		held := []metav1.Condition{condition(api.ConditionReady, false, hold.Reason, hold.Message)}
		if mustMend(hold.Reason) {
			held = append(held, condition(api.ConditionStalled, true, hold.Reason, hold.Message))
		}
		return held
	}
	return []metav1.Condition{condition(api.ConditionReady, true, api.ReasonAccepted, "The item can run.")}
}

// mustMend says whether what holds a queued item needs a change of its spec or of another item's.
func mustMend(reason string) bool {
	return reason == api.ReasonDependencyFailed || reason == api.ReasonDependencyCycle
}

// progress is the line that the list shows: what the agent said last, or how the item ended.
func progress(view model.ItemView) string {
	switch view.State {
	case protocol.StateDone:
		return line(cmp.Or(view.Summary, view.End.Message, view.Progress), progressRunes)
	case protocol.StateBlocked, protocol.StateCanceled, protocol.StateWaiting:
		return line(cmp.Or(view.End.Message, view.Progress), progressRunes)
	case protocol.StateQueued, protocol.StateActive:
	}
	return line(cmp.Or(view.Progress, view.Hold.Message), progressRunes)
}

func links(list []protocol.Link) []api.Link {
	var out []api.Link
	for _, l := range list {
		if len(out) < maxLinks && len(l.URL) <= maxURL {
			out = append(out, api.Link{URL: l.URL, Title: cut(l.Title, titleRunes)})
		}
	}
	return out
}
