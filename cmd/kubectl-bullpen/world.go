package main

// This file has what there is to show, and what goes wrong on the way to it, in words.

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions"
)

// world is what there is in one namespace, or in all.
type world struct {
	// namespace is empty for all.
	namespace string
	teams     api.TeamList
	people    api.PersonList
	items     api.WorkItemList
}

// sort orders everything by namespace and name.
func (w *world) sort() {
	byName := func(a, b metav1.ObjectMeta) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(w.teams.Items, func(a, b api.Team) int { return byName(a.ObjectMeta, b.ObjectMeta) })
	slices.SortFunc(w.people.Items, func(a, b api.Person) int { return byName(a.ObjectMeta, b.ObjectMeta) })
	slices.SortFunc(w.items.Items, func(a, b api.WorkItem) int { return byName(a.ObjectMeta, b.ObjectMeta) })
}

// only keeps the people of that name or handle; an empty one is everybody.
func (w *world) only(person string) ([]api.Person, error) {
	if person == "" {
		return w.people.Items, nil
	}
	var found []api.Person
	for _, p := range w.people.Items {
		if p.Name == person || p.HandleOrName() == person {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		where := "in namespace " + w.namespace
		if w.namespace == "" {
			where = "in any namespace"
		}
		return nil, fmt.Errorf("there is no person %q %s: kubectl get people lists those that there are", person, where)
	}
	return found, nil
}

// is says whether a condition is true.
func is(conditions []metav1.Condition, kind string) bool {
	return apimeta.IsStatusConditionTrue(conditions, kind)
}

// explain adds to an error what can be done about it.
func explain(err error) string {
	var noKind *apimeta.NoKindMatchError
	var noResource *apimeta.NoResourceMatchError
	var problem *sessions.Problem
	var hint *hintError
	switch {
	case errors.As(err, &problem) && problem.Status == http.StatusUnauthorized:
		return "the office does not know you: log in anew, or choose another user with --user or --context, one with a token or a client " +
			"certificate of the cluster"
	case errors.As(err, &hint), errors.As(err, &problem):
		return err.Error()
	case errors.As(err, &noKind), errors.As(err, &noResource), apierrors.IsNotFound(err):
		return "Bullpen's kinds are not installed in this cluster: kubectl apply --server-side -k config/crd of its repository installs them, " +
			"or look into another cluster with --context"
	case apierrors.IsForbidden(err):
		return strings.TrimSuffix(err.Error(), ".") + ": your role needs get and list of teams, people and workitems of bullpen.dev"
	case apierrors.IsUnauthorized(err):
		return "the cluster does not know you: log in anew, or choose another user with --user or --context"
	}
	return err.Error()
}
