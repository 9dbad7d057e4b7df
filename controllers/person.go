package controllers

// This file has the controller of Person. What it decides is in person_objects.go (Secret, ServiceAccount, home),
// person_pod.go (the pod's life), person_trouble.go (what is wrong, in words) and person_status.go.

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/bullpen-dev/bullpen/agentpod/podspec"
	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/office/model"
)

// +kubebuilder:rbac:groups=bullpen.dev,resources=people,verbs=get;list;watch
// +kubebuilder:rbac:groups=bullpen.dev,resources=people/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims;secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create

type personReconciler struct {
	reconciler
	graves   *graves
	operator podspec.Operator
	ca       CASource
}

func setupPeople(mgr ctrl.Manager, base reconciler, g *graves, changes *router, o Options) error {
	r := &personReconciler{reconciler: base, graves: g, operator: o.Operator, ca: o.CA}
	return ctrl.NewControllerManagedBy(mgr).
		Named("person").
		For(&api.Person{}).
		Owns(&corev1.Pod{}).
		Owns(&corev1.Secret{}).
		Owns(&corev1.ServiceAccount{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(personOfHome)).
		Watches(&api.Team{}, handler.EnqueueRequestsFromMapFunc(r.peopleOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&api.Person{}, handler.EnqueueRequestsFromMapFunc(r.sameHandle), builder.WithPredicates(comeOrGone)).
		WatchesRawSource(r.bundleSource()).
		WatchesRawSource(g.source()).
		WatchesRawSource(changes.source(model.ChangedPerson)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency}).
		Complete(r)
}

// comeOrGone lets creations and deletions through.
var comeOrGone = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// personOfHome finds the person of a home, which may have no owner.
func personOfHome(_ context.Context, home client.Object) []reconcile.Request {
	name := types.NamespacedName{Namespace: home.GetNamespace(), Name: home.GetLabels()[api.LabelPerson]}
	return []reconcile.Request{{NamespacedName: name}}
}

// peopleOf lists the people of a team.
func (r *personReconciler) peopleOf(ctx context.Context, team client.Object) []reconcile.Request {
	return r.list(ctx, client.InNamespace(team.GetNamespace()), client.MatchingFields{indexTeam: team.GetName()})
}

// sameHandle lists the people who may have waited for a handle, or must give it up.
func (r *personReconciler) sameHandle(ctx context.Context, o client.Object) []reconcile.Request {
	person := o.(*api.Person)
	return r.list(ctx, client.InNamespace(person.Namespace), client.MatchingFields{indexHandle: handleKey(person)})
}

func (r *personReconciler) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	var people api.PersonList
	if err := r.client.List(ctx, &people, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "People could not be listed")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(people.Items))
	for i := range people.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&people.Items[i])})
	}
	return requests
}

// bundleSource makes the controller look at everybody when the CA bundle changed.
func (r *personReconciler) bundleSource() source.Source {
	return source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-r.ca.BundleChanged():
					for _, request := range r.list(ctx) {
						q.Add(request)
					}
				}
			}
		}()
		return nil
	})
}

// Reconcile looks at one Person.
func (r *personReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// 1. Wait until the office knows which objects exist.
	if err := r.waitSynced(ctx); err != nil {
		return outcome(err, 0)
	}
	// 2. Deleted people of this name are forgotten; their objects go with them.
	if err := r.graves.bury(ctx, req.NamespacedName, r.office.ForgetPerson); err != nil {
		return outcome(err, 0)
	}
	// 3. Gather.
	s, err := r.gather(ctx, req.NamespacedName)
	if err != nil {
		r.writes.forget(objectKey{kind: "Person", NamespacedName: req.NamespacedName})
		return outcome(client.IgnoreNotFound(err), 0)
	}
	if s.person.DeletionTimestamp != nil {
		return outcome(r.office.ForgetPerson(ctx, string(s.person.UID)), 0)
	}
	// 4. Decide which objects there must be, and make them.
	want := planObjects(s, r.operator)
	made := r.applyObjects(ctx, s, want)
	// 5. Tell the office, and hear what there is to show.
	view, officeErr := r.exchange(ctx, s, want)
	// 6. Decide what becomes of the pod, and do it.
	pod := planPod(s, want, view, made, r.now())
	errs := personErrors{objects: errors.Join(made, r.applyPod(ctx, s, pod)), office: officeErr}
	// 7. Write status, once, if it changed.
	wait, writeErr := r.show(ctx, s, want, view, pod, errs)
	return outcome(firstError(writeErr, errs.objects, errs.office), sooner(pod.wait, wait))
}

// firstError prefers an error that is not told in conditions, because it is tried again sooner.
func firstError(errs ...error) error {
	var told error
	for _, err := range errs {
		var p *problem
		switch {
		case err == nil:
		case errors.As(err, &p):
			told = err
		default:
			return err
		}
	}
	return told
}

// personSnapshot is all that decisions about a person are made from.
type personSnapshot struct {
	person *api.Person
	// team is nil where there is none of that name.
	team *api.Team
	// rival is the older person who has the handle, if there is one.
	rival string
	// secret, account, home and pod are nil where they are missing, or not marked as the operator's.
	secret    *corev1.Secret
	secretErr error
	account   *corev1.ServiceAccount
	home      *corev1.PersistentVolumeClaim
	pod       *corev1.Pod
	caBundle  []byte
	caErr     error
}

// gather reads everything from the cache.
func (r *personReconciler) gather(ctx context.Context, name types.NamespacedName) (*personSnapshot, error) {
	s := &personSnapshot{person: &api.Person{}}
	if err := r.client.Get(ctx, name, s.person); err != nil {
		return nil, err
	}
	agent := client.ObjectKey{Namespace: name.Namespace, Name: podspec.AgentName(name.Name)}
	home := client.ObjectKey{Namespace: name.Namespace, Name: podspec.HomeName(name.Name)}
	team := client.ObjectKey{Namespace: name.Namespace, Name: string(s.person.Spec.Team)}
	var errs [4]error
	s.team, errs[0] = find(ctx, r.client, team, &api.Team{})
	s.account, errs[1] = find(ctx, r.client, agent, &corev1.ServiceAccount{})
	s.home, errs[2] = find(ctx, r.client, home, &corev1.PersistentVolumeClaim{})
	s.pod, errs[3] = find(ctx, r.client, agent, &corev1.Pod{})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	s.secret, s.secretErr = find(ctx, r.client, agent, &corev1.Secret{})
	s.caBundle, s.caErr = r.ca.CABundle()
	var rivals api.PersonList
	err := r.client.List(ctx, &rivals, client.InNamespace(name.Namespace), client.MatchingFields{indexHandle: handleKey(s.person)},
		client.UnsafeDisableDeepCopy)
	s.rival = olderRival(s.person, rivals.Items)
	return s, err
}

// find gives nil where there is no such object.
func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, c client.Client, key client.ObjectKey, into P) (P, error) {
	if err := c.Get(ctx, key, into); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return into, nil
}

// olderRival names the first person with the same handle, if it is another one: the oldest, and of equally old ones that with
// the lower UID.
func olderRival(person *api.Person, same []api.Person) string {
	first := person
	for i := range same {
		p := &same[i]
		if p.CreationTimestamp.Before(&first.CreationTimestamp) ||
			p.CreationTimestamp.Equal(&first.CreationTimestamp) && p.UID < first.UID {
			first = p
		}
	}
	if first.UID == person.UID {
		return ""
	}
	return first.Name
}

// exchange tells the office of the person and asks what there is to show. It gives nil where the office has no such person.
func (r *personReconciler) exchange(ctx context.Context, s *personSnapshot, want *wanted) (*model.PersonView, error) {
	if s.rival != "" {
		return nil, r.office.ForgetPerson(ctx, string(s.person.UID))
	}
	if want.token == "" {
		return nil, nil
	}
	facts := personFacts(s, want)
	if err := r.office.SyncPerson(ctx, facts); err != nil {
		return nil, err
	}
	if s.team == nil {
		return nil, nil
	}
	// Asked after the office has heard that no offer may leave any more, Busy cannot become true behind our back.
	view, err := r.office.Person(ctx, facts.Key)
	if err != nil {
		return nil, err
	}
	return &view, nil
}

// show writes the status if it changed and it is time.
func (r *personReconciler) show(ctx context.Context, s *personSnapshot, want *wanted, view *model.PersonView, pod podPlan, errs personErrors) (time.Duration, error) {
	now := r.now()
	if passing(errs.objects) {
		return 0, nil
	}
	changed := s.person.DeepCopy()
	changed.Status = personStatus(s, want, view, pod, errs, now)
	if apiequality.Semantic.DeepEqual(s.person.Status, changed.Status) {
		return 0, nil
	}
	if wait := r.writes.wait(keyOf(s.person), now, rosterEvery); wait > 0 {
		return wait, nil
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err := r.writeStatus(ctx, s.person, changed); err != nil {
		return 0, err
	}
	r.tellBudget(changed, s.person.Status.Conditions, changed.Status.Conditions)
	before := apimeta.IsStatusConditionTrue(s.person.Status.Conditions, api.ConditionStalled)
	stalled := apimeta.FindStatusCondition(changed.Status.Conditions, api.ConditionStalled)
	if stalled != nil && !before {
		r.events.Eventf(changed, nil, corev1.EventTypeWarning, stalled.Reason, "Stall", "%s", stalled.Message)
	}
	return 0, nil
}
