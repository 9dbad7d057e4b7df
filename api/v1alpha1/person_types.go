package v1alpha1

// This file has the kind Person.

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PersonSpec is one agent with a handle.
type PersonSpec struct {
	// Team is the name of the person's Team, in the same namespace. It never changes.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!self.contains('.')",message="team is the name of a Team: at most 63 lower-case letters, digits and '-'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.team never changes: delete the person and make a new one"
	Team ObjectName `json:"team"`

	// Handle names the person within its team. Default: the object's name. It never changes.
	//
	// +optional
	Handle Handle `json:"handle,omitempty"`

	// DisplayName is what people call the person. Default: the handle. Agents hear of a change at their next welcome.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=100
	DisplayName string `json:"displayName,omitempty"`

	// Role is the name of one of the team's roles. A change takes effect with the next offer.
	//
	// +optional
	Role RoleName `json:"role,omitempty"`

	// Subscription names the account that the person's model usage counts against; people with the same one share its
	// usage windows and pause together. Default: one of the person's own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([A-Za-z0-9@._-]*[A-Za-z0-9])?)?$')",message="subscription has letters, digits, '@', '.', '-' and '_', and begins and ends with a letter or digit"
	Subscription string `json:"subscription,omitempty"`

	// Agent overrides the team's agent settings.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.home) || !has(self.home.size) || !has(oldSelf.home) || !has(oldSelf.home.size) || !isQuantity(string(self.home.size)) || !quantity(string(self.home.size)).isLessThan(quantity(string(oldSelf.home.size)))",message="home.size never shrinks: a volume can only grow",fieldPath=".home.size"
	Agent AgentSettings `json:"agent,omitempty"`

	// Tools are programs that the doctor must find on the agent's PATH. A change takes effect with the agent's next start.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.+-]*$')",message="a tool is the name of a program without its folder, for example git"
	Tools []string `json:"tools,omitempty"`

	// Services are what the doctor must be able to reach. A change takes effect with the agent's next start.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Services []Service `json:"services,omitempty"`

	// Suspend stops new offers to this person; a round that runs goes on.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Service is something that an agent must reach over the network.
type Service struct {
	// Name of the service.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.trim() != '' && !self.matches('[\\\\r\\\\n]')",message="the name of a service is one line, and not blank"
	Name string `json:"name"`

	// Address as host:port.
	//
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_.-]+|[[][0-9A-Fa-f:.]+[]]):[0-9]{1,5}$') && int(self.substring(self.lastIndexOf(':') + 1)) >= 1 && int(self.substring(self.lastIndexOf(':') + 1)) <= 65535",message="address is host:port, for example db.example.com:5432"
	Address string `json:"address"`
}

// PersonState is the state of a person.
//
// +kubebuilder:validation:Enum=idle;working;paused;offline
type PersonState string

// PersonStatus is what there is to see of a person.
type PersonStatus struct {
	// ObservedGeneration is the generation of the spec that the status tells of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, Stalled, RolloutPending, DoctorOK, BudgetWarning.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// State: idle, working, paused or offline.
	//
	// +optional
	State PersonState `json:"state,omitempty"`

	// CurrentItem is the name of the WorkItem that the person works on.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CurrentItem string `json:"currentItem,omitempty"`

	// Queued counts the items that wait for this person.
	//
	// +optional
	Queued int32 `json:"queued,omitempty"`

	// PausedUntil is when the usage window that holds the person back resets.
	//
	// +optional
	PausedUntil *metav1.Time `json:"pausedUntil,omitempty"`

	// AgentVersion that is connected, or was last.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AgentVersion string `json:"agentVersion,omitempty"`

	// Runtime that the agent runs.
	//
	// +optional
	Runtime RuntimeName `json:"runtime,omitempty"`

	// Model that the agent's runtime is told to use.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Model string `json:"model,omitempty"`

	// Windows are the runtime's usage windows, as last reported.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Windows []UsageWindow `json:"windows,omitempty"`

	// Doctor has the agent's own checks that are not ok, each with its fix.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Doctor []DoctorCheck `json:"doctor,omitempty"`

	// Usage of all the person's rounds.
	//
	// +optional
	Usage UsageStatus `json:"usage,omitempty"`

	// Store that the status was read from.
	//
	// +optional
	Store StoreRef `json:"store,omitempty"`
}

// UsageWindow is one usage window of a runtime.
type UsageWindow struct {
	// Name of the limit, for example five_hour.
	//
	// +kubebuilder:validation:MaxLength=200
	Name string `json:"name"`
	// UsedPercent of the limit, which can be above 100.
	UsedPercent int32 `json:"usedPercent"`
	// ResetsAt is when the window starts anew.
	//
	// +optional
	ResetsAt *metav1.Time `json:"resetsAt,omitempty"`
}

// DoctorCheck is one check that the agent made.
type DoctorCheck struct {
	// Name of the check.
	//
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// Status: warn or fail.
	//
	// +kubebuilder:validation:Enum=warn;fail
	Status string `json:"status"`
	// Detail says what was found.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`
	// Fix says what to change.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Fix string `json:"fix,omitempty"`
}

// Person is one long-lived agent of a team.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=people,singular=person,scope=Namespaced,categories=bullpen
// +kubebuilder:printcolumn:name="Team",type=string,JSONPath=`.spec.team`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Item",type=string,JSONPath=`.status.currentItem`
// +kubebuilder:printcolumn:name="Queued",type=integer,JSONPath=`.status.queued`
// +kubebuilder:printcolumn:name="Doctor",type=string,JSONPath=`.status.conditions[?(@.type=="DoctorOK")].reason`
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.status.runtime`
// +kubebuilder:printcolumn:name="Tokens",type=integer,JSONPath=`.status.usage.tokens`
// +kubebuilder:printcolumn:name="Cost",type=string,JSONPath=`.status.usage.costUSD`,description="US dollars at list prices"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Paused-Until",type=string,JSONPath=`.status.pausedUntil`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 57 && self.metadata.name.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="metadata.name of a Person has at most 57 lower-case letters, digits and '-', and begins and ends with a letter or digit, because its pod is called <name>-agent"
// +kubebuilder:validation:XValidation:rule="has(self.spec.handle) || size(self.metadata.name) <= 40",message="spec.handle is needed where metadata.name is longer than 40 characters",fieldPath=".spec.handle"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.handle) ? self.spec.handle : self.metadata.name) == (has(oldSelf.spec.handle) ? oldSelf.spec.handle : oldSelf.metadata.name)",message="spec.handle never changes: delete the person and make a new one",fieldPath=".spec.handle"
type Person struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	Spec PersonSpec `json:"spec"`
	// Status is what there is.
	//
	// +optional
	Status PersonStatus `json:"status,omitempty"`
}

// HandleOrName is the person's handle: the one given, else the object's name.
func (p *Person) HandleOrName() string {
	if p.Spec.Handle != "" {
		return string(p.Spec.Handle)
	}
	return p.Name
}

// PersonList is a list of people.
//
// +kubebuilder:object:root=true
type PersonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Person `json:"items"`
}
