package v1alpha1

// This file has the kind WorkItem.

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkItemSpec is one piece of work for one person.
//
// +kubebuilder:validation:XValidation:rule="has(self.person) != has(self.role)",message="give exactly one of spec.person and spec.role"
// +kubebuilder:validation:XValidation:rule="has(self.person) == has(oldSelf.person) && has(self.role) == has(oldSelf.role) && (!has(self.person) || !has(oldSelf.person) || self.person == oldSelf.person) && (!has(self.role) || !has(oldSelf.role) || self.role == oldSelf.role)",message="spec.person and spec.role never change: cancel the item and make a new one"
type WorkItemSpec struct {
	// Team is the name of the Team that does the work, in the same namespace. It never changes.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!self.contains('.')",message="team is the name of a Team: at most 63 lower-case letters, digits and '-'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.team never changes: cancel the item and make a new one"
	Team ObjectName `json:"team"`

	// Person is the handle of the person who does the work. It never changes.
	//
	// +optional
	Person Handle `json:"person,omitempty"`

	// Role lets the next idle person of that role take the work; then it stays with that person. It never changes.
	//
	// +optional
	Role RoleName `json:"role,omitempty"`

	// Kind says what the work is, for example task, ticket or review; the role's work lists say whether it ends with a review.
	// A change reaches the next round.
	//
	// +optional
	// +kubebuilder:default=task
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9_-]*[a-z0-9])?$')",message="kind has lower-case letters, digits, '-' and '_', begins with a letter, and ends with a letter or digit"
	Kind string `json:"kind,omitempty"`

	// Title says in a line what is wanted. A change reaches the next round.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="self.trim() != '' && !self.matches('[\\\\r\\\\n]')",message="title is one line, and not blank: details belong into body"
	Title string `json:"title"`

	// Body says in detail what is wanted; it is the first entry of the item's journal, uncut. A change reaches the next round.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 524288",message="body may have 512 KiB: put longer texts into a repository"
	Body string `json:"body,omitempty"`

	// Requester is who asks for the work, as the journal names its author. Default: requester. A change reaches the next round.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	Requester string `json:"requester,omitempty"`

	// Priority orders a person's queue: lower runs first, then older. A change takes effect with the next offer.
	//
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority *int32 `json:"priority,omitempty"`

	// Subject is what the work is about, for example a ticket. A change reaches the next round.
	//
	// +optional
	Subject *Subject `json:"subject,omitempty"`

	// Trigger says what made the item: human, agent, automation or schedule. A change reaches the next round.
	//
	// +optional
	// +kubebuilder:default=human
	// +kubebuilder:validation:Enum=human;agent;automation;schedule
	Trigger string `json:"trigger,omitempty"`

	// Parent is the name of the item that this one was split from. A change reaches the next round.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$')",message="parent is the name of a WorkItem: lower-case letters, digits, '-' and '.'"
	Parent string `json:"parent,omitempty"`

	// DependsOn are names of items in the same namespace that must be done first. A change takes effect as long as the item
	// is queued.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="dependsOn has names of WorkItems: lower-case letters, digits, '-' and '.'"
	DependsOn []string `json:"dependsOn,omitempty"`

	// Attempts is how often the item may fail before it is blocked. Default: the team's policies.attempts. A change takes
	// effect with the next failure.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Attempts *int32 `json:"attempts,omitempty"`

	// Timeout bounds one round, for example 2h; a round that takes longer is ended and counts as failed. A change takes
	// effect at once.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="timeout is a duration between 1s and 720h, for example 2h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// TTLSecondsAfterFinished deletes the object that long after the item is done or canceled. Without it, the object stays.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// Cancel ends the item for good, also in the middle of a round.
	//
	// +optional
	Cancel bool `json:"cancel,omitempty"`

	// Rerun queues a finished or blocked item again when it changes to another non-empty string.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	Rerun string `json:"rerun,omitempty"`
}

// Subject is what work is about.
type Subject struct {
	// Type of the subject, for example ticket or pr.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`
	// Ref is its reference in its system.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	Ref string `json:"ref"`
	// Title for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Title string `json:"title,omitempty"`
	// URL of the subject.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == '' || isURL(self) && url(self).getScheme() in ['https', 'http']",message="url is an absolute https or http URL, for example https://example.com/tickets/1"
	URL string `json:"url,omitempty"`
}

// WorkItemState is the state of a work item, in the agent protocol's words.
//
// +kubebuilder:validation:Enum=queued;active;waiting;blocked;done;canceled
type WorkItemState string

// WorkItemStatus is what there is to see of a work item.
type WorkItemStatus struct {
	// ObservedGeneration is the generation of the spec that the status tells of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Complete, Failed, Stalled, BudgetWarning.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// State: queued, active, waiting, blocked, done or canceled.
	//
	// +optional
	State WorkItemState `json:"state,omitempty"`

	// Person is the handle of who has the item.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Person string `json:"person,omitempty"`

	// Priority by which the item runs: that of the spec, unless its agent put it elsewhere in its queue.
	//
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Order sorts unfinished items as they run: first by person, or role where nobody has the item, then as in that queue.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Order string `json:"order,omitempty"`

	// Progress is the last line that the agent said, or how the item ended.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Progress string `json:"progress,omitempty"`

	// Rounds that were accepted.
	//
	// +optional
	Rounds int32 `json:"rounds,omitempty"`

	// Failures of the item since it was queued by its user.
	//
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// LostRounds are the rounds that ended without a hand-back since the item was queued by its user.
	//
	// +optional
	LostRounds int32 `json:"lostRounds,omitempty"`

	// SessionID is the runtime session that a next round resumes.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	SessionID string `json:"sessionID,omitempty"`

	// Summary is what the last hand-back said, cut.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Summary string `json:"summary,omitempty"`

	// Links are the pull requests, documents and tickets that the last hand-back named, the first ones.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Links []Link `json:"links,omitempty"`

	// Usage of all the item's rounds.
	//
	// +optional
	Usage UsageStatus `json:"usage,omitempty"`

	// Models is the usage by model, the largest ones.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Models []ModelUsageStatus `json:"models,omitempty"`

	// StartedAt is when the first round was accepted.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when the item became done, blocked or canceled.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// Rerun is the value of spec.rerun that was last acted on.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	Rerun string `json:"rerun,omitempty"`

	// Store that the status was read from.
	//
	// +optional
	Store StoreRef `json:"store,omitempty"`
}

// Link is a link with an optional label.
type Link struct {
	// URL, absolute.
	//
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// Title of the link.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Title string `json:"title,omitempty"`
}

// WorkItem is one piece of work of one person.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=workitems,scope=Namespaced,shortName=wi,categories=bullpen
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Person",type=string,JSONPath=`.status.person`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Prio",type=integer,JSONPath=`.status.priority`
// +kubebuilder:printcolumn:name="Tokens",type=integer,JSONPath=`.status.usage.tokens`
// +kubebuilder:printcolumn:name="Cost",type=string,JSONPath=`.status.usage.costUSD`,description="US dollars at list prices"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Rounds",type=integer,JSONPath=`.status.rounds`,priority=1
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Order",type=string,JSONPath=`.status.order`,priority=1
// +kubebuilder:validation:XValidation:rule="!has(self.spec.parent) || self.spec.parent != self.metadata.name",message="spec.parent must not be the item itself",fieldPath=".spec.parent"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || !(self.metadata.name in self.spec.dependsOn)",message="spec.dependsOn must not have the item itself",fieldPath=".spec.dependsOn"
type WorkItem struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	Spec WorkItemSpec `json:"spec"`
	// Status is what there is.
	//
	// +optional
	Status WorkItemStatus `json:"status,omitempty"`
}

// WorkItemList is a list of work items.
//
// +kubebuilder:object:root=true
type WorkItemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkItem `json:"items"`
}
