// Package v1alpha1 holds the kinds of Bullpen's API: Team, Person and WorkItem, in group bullpen.dev.
//
// The spec of every object belongs to its user: no controller writes a spec, a label or an annotation. Status is a
// projection of what the office knows; see the conditions and reasons in conditions.go. Whether and when a changed spec
// field takes effect stands in the field's comment; where it says nothing, it can change at any time and takes effect at
// once.
//
// +kubebuilder:object:generate=true
// +groupName=bullpen.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind here.
var GroupVersion = schema.GroupVersion{Group: "bullpen.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Team{}, &TeamList{}, &Person{}, &PersonList{}, &WorkItem{}, &WorkItemList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
