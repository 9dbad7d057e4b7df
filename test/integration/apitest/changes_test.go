package apitest_test

// This file tests changes of objects that exist: what never changes is refused, all else is accepted.

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

type change struct {
	name, kind, before, after string
	field, refusedWith        string // empty where the change is accepted
}

var changes = []change{
	{"a person's team", "Person", `{}`, `spec: {team: other}`,
		"spec.team", "spec.team never changes: delete the person and make a new one"},
	{"a person's handle", "Person", `spec: {handle: ada}`, `spec: {handle: grace}`,
		"spec.handle", "spec.handle never changes: delete the person and make a new one"},
	{"a handle that replaces the name", "Person", `{}`, `spec: {handle: grace}`,
		"spec.handle", "spec.handle never changes: delete the person and make a new one"},
	{"a handle that was not the name taken away", "Person", `spec: {handle: grace}`, `spec: {handle: null}`,
		"spec.handle", "spec.handle never changes: delete the person and make a new one"},
	{"a handle that says the name", "Person", `{}`, `spec: {handle: ada}`, "", ""},
	{"a home that shrinks", "Person", `spec: {agent: {home: {size: 10Gi}}}`, `spec: {agent: {home: {size: 9Gi}}}`,
		"spec.agent.home.size", "home.size never shrinks: a volume can only grow"},
	{"a home that grows, in another unit", "Person", `spec: {agent: {home: {size: 10Gi}}}`, `spec: {agent: {home: {size: 21474836480}}}`, "", ""},
	{"a home that is left to the team", "Person", `spec: {agent: {home: {size: 10Gi}}}`, `spec: {agent: {home: null}}`, "", ""},
	{"the size that a team gives to new homes", "Team", `spec: {agent: {home: {size: 10Gi}}}`, `spec: {agent: {home: {size: 5Gi}}}`, "", ""},
	{"a person's role, image and suspension", "Person", `spec: {role: dev}`, `spec: {role: lead, suspend: true, agent: {image: agent:2}}`, "", ""},
	{"an item's team", "WorkItem", `{}`, `spec: {team: other}`,
		"spec.team", "spec.team never changes: cancel the item and make a new one"},
	{"an item's person", "WorkItem", `{}`, `spec: {person: grace}`,
		"spec", "spec.person and spec.role never change: cancel the item and make a new one"},
	{"an item's role", "WorkItem", `spec: {person: null, role: dev}`, `spec: {role: lead}`,
		"spec", "spec.person and spec.role never change: cancel the item and make a new one"},
	{"an item's person for a role", "WorkItem", `{}`, `spec: {person: null, role: dev}`,
		"spec", "spec.person and spec.role never change: cancel the item and make a new one"},
	{"an item that begins to wait for itself", "WorkItem", `{}`, `spec: {dependsOn: [fix-login]}`,
		"spec.dependsOn", "spec.dependsOn must not have the item itself"},
	{"all else of an item", "WorkItem", `spec: {dependsOn: [design], timeout: 1h}`,
		`spec: {title: Mend the login, body: See the ticket, kind: ticket, priority: -5, dependsOn: null, attempts: 2, timeout: 2h,
			ttlSecondsAfterFinished: 60, cancel: true, rerun: again, requester: grace, trigger: automation, parent: login,
			subject: {type: ticket, ref: "7"}}`, "", ""},
}

func TestChanges(t *testing.T) {
	for _, test := range changes {
		t.Run(test.name, func(t *testing.T) {
			object := manifest(t, test.kind, test.before)
			object.SetNamespace(cluster.Namespace(t))
			if err := strict().Create(t.Context(), object); err != nil {
				t.Fatalf("before the change: %v", err)
			}
			overlay(object.Object, parse(t, test.after))
			err := strict().Update(t.Context(), object)
			if test.refusedWith != "" {
				checkRefusal(t, err, test.field, test.refusedWith)
			} else if err != nil {
				t.Errorf("the change was refused: %v", err)
			}
		})
	}
}

// A rule looks only at the spec: whoever writes status or labels is never stopped by it.
func TestStatusAndLabelsOfAnUnchangedSpecCanAlwaysBeWritten(t *testing.T) {
	for kind := range bases {
		t.Run(kind, func(t *testing.T) {
			object := manifest(t, kind, `{}`)
			object.SetNamespace(cluster.Namespace(t))
			if err := strict().Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			labels := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
			if err := strict().Patch(t.Context(), object, labels); err != nil {
				t.Errorf("a label: %v", err)
			}
			status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":1}}`))
			if err := strict().Status().Patch(t.Context(), object, status); err != nil {
				t.Errorf("status: %v", err)
			}
		})
	}
}
