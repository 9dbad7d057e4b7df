package apitest_test

// This file tests what becomes of right objects: defaults, server-side apply by several managers, status, and print columns.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

func TestDefaults(t *testing.T) {
	namespace := cluster.Namespace(t)
	for _, test := range []struct{ name, kind, over, want string }{
		{
			"a team without a spec has every policy", "Team", `metadata: {name: empty}`,
			`{usage: {pauseAtPercent: 95}, policies: {attempts: 3, maxLostRounds: 3, heartbeat: 15s,
				lostAfter: 10m, backoff: 10s, rollout: {maxWait: 1h}}}`,
		},
		{
			"a team with a spec has every policy", "Team", `{metadata: {name: some}, spec: {displayName: Core}}`,
			`{displayName: Core, usage: {pauseAtPercent: 95}, policies: {attempts: 3, maxLostRounds: 3, heartbeat: 15s,
				lostAfter: 10m, backoff: 10s, rollout: {maxWait: 1h}}}`,
		},
		{
			"policies that are given stay", "Team", `{metadata: {name: given}, spec: {usage: {pauseAtPercent: 0}, policies: {attempts: 1, rollout: {maxWait: 0s}}}}`,
			`{usage: {pauseAtPercent: 0}, policies: {attempts: 1, maxLostRounds: 3, heartbeat: 15s,
				lostAfter: 10m, backoff: 10s, rollout: {maxWait: 0s}}}`,
		},
		{
			"work is reviewed", "Team", `{metadata: {name: reviewed}, spec: {roles: [{name: dev, work: [{kind: ticket}]}], policies: null, usage: null}}`,
			`{roles: [{name: dev, work: [{kind: ticket, review: Required}]}], usage: {pauseAtPercent: 95}, policies: {attempts: 3,
				maxLostRounds: 3, heartbeat: 15s, lostAfter: 10m, backoff: 10s, rollout: {maxWait: 1h}}}`,
		},
		{
			"a budget warns before it is used up", "Team", `{metadata: {name: warned}, spec: {usage: {budgets: [{scope: Team, tokens: 5}]}, policies: null}}`,
			`{usage: {pauseAtPercent: 95, budgets: [{scope: Team, tokens: 5, warnAtPercent: 80}]}, policies: {attempts: 3, maxLostRounds: 3,
				heartbeat: 15s, lostAfter: 10m, backoff: 10s, rollout: {maxWait: 1h}}}`,
		},
		{"a person has no defaults in its spec", "Person", `{}`, `{team: core}`},
		{
			"an item is a task of a human in the middle of the queue", "WorkItem", `{}`,
			`{team: core, person: ada, title: Fix the login, kind: task, priority: 100, trigger: human}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := manifest(t, test.kind, test.over)
			object.SetNamespace(namespace)
			if err := strict().Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedMap(object.Object, "spec")
			// The test's YAML has float64 numbers, the API server's answer int64.
			if diff := cmp.Diff(fmt.Sprint(parse(t, test.want)), fmt.Sprint(got)); diff != "" {
				t.Errorf("the spec differs (-want +got):\n%s", diff)
			}
		})
	}
}

// Two managers apply parts of one object. Lists with keys merge by their keys, and what one gives up the other keeps.
func TestTwoManagersShareAnObject(t *testing.T) {
	for _, test := range []struct {
		name, kind        string
		first, second     string // what each manager applies
		then              string // what the first applies afterwards
		path, key         string // the list, and the key of its elements; a set has no key
		together, at, end string
	}{
		{
			name: "roles of a team", kind: "Team",
			first:  `spec: {roles: [{name: dev, title: Developer}, {name: lead}]}`,
			second: `spec: {roles: [{name: qa}, {name: dev, summary: Writes code}]}`,
			then:   `spec: {roles: [{name: lead}]}`,
			path:   "spec.roles", key: "name", together: "dev lead qa", end: "dev lead qa",
		},
		{
			name: "humans of a team", kind: "Team",
			first: `spec: {humans: [{name: Grace}]}`, second: `spec: {humans: [{name: Alan}]}`, then: `spec: {humans: []}`,
			path: "spec.humans", key: "name", together: "Alan Grace", end: "Alan",
		},
		{
			name: "repositories of a team", kind: "Team",
			first: `spec: {repositories: [{name: a, url: /srv/a}]}`, second: `spec: {repositories: [{name: b, url: /srv/b}]}`,
			then: `spec: {repositories: []}`,
			path: "spec.repositories", key: "name", together: "a b", end: "b",
		},
		{
			name: "budgets of a team", kind: "Team",
			first:  `spec: {usage: {budgets: [{scope: Team, tokens: 5}]}}`,
			second: `spec: {usage: {budgets: [{scope: Person, tokens: 5}]}}`, then: `spec: {usage: {budgets: []}}`,
			path: "spec.usage.budgets", key: "scope", together: "Person Team", end: "Person",
		},
		{
			name: "prices of a team", kind: "Team",
			first:  `spec: {usage: {prices: [{model: a, inputUSD: "1", outputUSD: "2"}]}}`,
			second: `spec: {usage: {prices: [{model: "b*", inputUSD: "1", outputUSD: "2"}]}}`, then: `spec: {usage: {prices: []}}`,
			path: "spec.usage.prices", key: "model", together: "a b*", end: "b*",
		},
		{
			name: "variables of a person", kind: "Person",
			first: `spec: {team: core, agent: {env: [{name: A, value: a}]}}`, second: `spec: {agent: {env: [{name: B, value: b}]}}`,
			then: `spec: {team: core}`,
			path: "spec.agent.env", key: "name", together: "A B", end: "B",
		},
		{
			name: "secrets of a person", kind: "Person",
			first: `spec: {team: core, agent: {secrets: [{name: a}]}}`, second: `spec: {agent: {secrets: [{name: b, mountPath: /etc/b}]}}`,
			then: `spec: {team: core}`,
			path: "spec.agent.secrets", key: "name", together: "a b", end: "b",
		},
		{
			name: "services of a person", kind: "Person",
			first: `spec: {team: core, services: [{name: a, address: "a:1"}]}`, second: `spec: {services: [{name: b, address: "b:1"}]}`,
			then: `spec: {team: core}`,
			path: "spec.services", key: "name", together: "a b", end: "b",
		},
		{
			name: "tools of a person, which are a set", kind: "Person",
			first: `spec: {team: core, tools: [git, make]}`, second: `spec: {tools: [go, git]}`, then: `spec: {team: core, tools: [make]}`,
			path: "spec.tools", together: "git go make", end: "git go make",
		},
		{
			name: "dependencies of an item, which are a set", kind: "WorkItem",
			first: `spec: {team: core, person: ada, title: t, dependsOn: [a]}`, second: `spec: {dependsOn: [b]}`,
			then: `spec: {team: core, person: ada, title: t}`,
			path: "spec.dependsOn", together: "a b", end: "b",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			apply := func(owner, text string) *unstructured.Unstructured {
				t.Helper()
				object := &unstructured.Unstructured{Object: parse(t, text)}
				object.SetGroupVersionKind(api.GroupVersion.WithKind(test.kind))
				object.SetNamespace(namespace)
				object.SetName("shared")
				if err := strict().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner)); err != nil {
					t.Fatalf("%s: %v", owner, err)
				}
				return object
			}
			check := func(object *unstructured.Unstructured, want string) {
				t.Helper()
				if got := keys(object, test.path, test.key); got != want {
					t.Errorf("%s has %q, not %q", test.path, got, want)
				}
			}
			apply("first", test.first)
			check(apply("second", test.second), test.together)
			check(apply("first", test.then), test.end)
		})
	}
}

func keys(object *unstructured.Unstructured, path, key string) string {
	list, _, _ := unstructured.NestedSlice(object.Object, strings.Split(path, ".")...)
	var found []string
	for _, element := range list {
		if key != "" {
			element = element.(map[string]any)[key]
		}
		found = append(found, fmt.Sprint(element))
	}
	slices.Sort(found)
	return strings.Join(found, " ")
}

// Two managers that want different values of one field hear of each other.
func TestManagersConflictOverAField(t *testing.T) {
	namespace := cluster.Namespace(t)
	apply := func(owner, title string) error {
		object := manifest(t, "WorkItem", `spec: {title: `+title+`}`)
		object.SetNamespace(namespace)
		return strict().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner))
	}
	if err := apply("first", "One"); err != nil {
		t.Fatal(err)
	}
	if err := apply("second", "Two"); err == nil || !strings.Contains(err.Error(), `conflict with "first"`) {
		t.Errorf("the second manager gets %v, not a conflict", err)
	}
}

func TestStatusAndSpecAreWrittenApart(t *testing.T) {
	namespace := cluster.Namespace(t)
	item := &api.WorkItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "apart"},
		Spec:       api.WorkItemSpec{Team: "core", Person: "ada", Title: "One"},
		Status:     api.WorkItemStatus{State: "done", Progress: "made up"},
	}
	if err := strict().Create(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if item.Status.State != "" {
		t.Errorf("a new item has the state %q, which its user made up", item.Status.State)
	}

	item.Status.State = "active"
	item.Spec.Title = "Two"
	if err := strict().Status().Update(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if item.Spec.Title != "One" || item.Status.State != "active" || item.Generation != 1 {
		t.Errorf("after a write of the status: title %q, state %q, generation %d", item.Spec.Title, item.Status.State, item.Generation)
	}

	item.Status.State = "done"
	item.Spec.Title = "Three"
	if err := strict().Update(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if item.Spec.Title != "Three" || item.Status.State != "active" || item.Generation != 2 {
		t.Errorf("after a write of the spec: title %q, state %q, generation %d", item.Spec.Title, item.Status.State, item.Generation)
	}

	item.Status.State = "sleeping"
	checkRefusal(t, strict().Status().Update(t.Context(), item), "status.state", `supported values: "queued", "active"`)
}

// A controller patches what changed in the Go value; counts that are still zero are not in the patch.
func TestACountCanBePatchedIntoAnEmptyStatus(t *testing.T) {
	team := &api.Team{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "core"}}
	if err := strict().Create(t.Context(), team); err != nil {
		t.Fatal(err)
	}
	before := team.DeepCopy()
	team.Status.People.Total, team.Status.People.Idle = 2, 2
	if err := strict().Status().Patch(t.Context(), team, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if want := (api.PeopleCounts{Total: 2, Idle: 2}); team.Status.People != want {
		t.Errorf("the team has the people %+v, not %+v", team.Status.People, want)
	}
}

// A whole object made by a Go client is as right as one in YAML: empty fields, quantities and durations in Go's own form too.
func TestObjectsOfAGoClientAreAccepted(t *testing.T) {
	namespace := cluster.Namespace(t)
	for _, object := range []client.Object{goTeam(), goPerson(), goItem()} {
		object.SetNamespace(namespace)
		if err := strict().Create(t.Context(), object); err != nil {
			t.Errorf("%T: %v", object, err)
			continue
		}
		// What was read can be written again.
		if err := strict().Update(t.Context(), object); err != nil {
			t.Errorf("%T, written as it was read: %v", object, err)
		}
	}
}

func TestPrintColumns(t *testing.T) {
	namespace := cluster.Namespace(t)
	for _, object := range []client.Object{goTeam(), goPerson(), goItem()} {
		object.SetNamespace(namespace)
		if err := strict().Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		fillStatus(object)
		if err := strict().Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ resource, header, row string }{
		{
			"teams", "Name Ready People Queued Active Waiting* Blocked Done Tokens Cost Age Reason*",
			"core True 1/2 3 1 0 0 4 1200 0.42 AGE Ready",
		},
		{
			"people", "Name Team Role State Item Queued Doctor Runtime Tokens Cost Age Reason* Paused-Until*",
			"ada core dev working fix-login 3 ChecksPassed claude 1200 0.42 AGE Ready <nil>",
		},
		{
			"workitems", "Name State Person Kind Prio Tokens Cost Age Progress Rounds* Title* Reason* Order*",
			"fix-login active ada ticket 7 1200 0.42 AGE Running the tests 1 Fix the login Accepted person.ada/1/1000007/ab",
		},
	} {
		t.Run(test.resource, func(t *testing.T) {
			header, row := table(t, namespace, test.resource)
			if diff := cmp.Diff(test.header, header); diff != "" {
				t.Errorf("the columns differ (-want +got), * is for -o wide:\n%s", diff)
			}
			if diff := cmp.Diff(test.row, row); diff != "" {
				t.Errorf("the row differs (-want +got):\n%s", diff)
			}
		})
	}
}

// table asks for the table that kubectl get prints, which must have one row.
func table(t *testing.T, namespace, resource string) (header, row string) {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.GroupVersion, config.APIPath = &api.GroupVersion, "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	rc, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var got metav1.Table
	err = rc.Get().Namespace(namespace).Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(&got)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 1 {
		t.Fatalf("%s: the table has %d rows, not 1", resource, len(got.Rows))
	}
	var names, cells []string
	for i, column := range got.ColumnDefinitions {
		name, cell := column.Name, fmt.Sprint(got.Rows[0].Cells[i])
		if column.Priority > 0 {
			name += "*"
		}
		if name == "Age" {
			cell = "AGE"
		}
		names, cells = append(names, name), append(cells, cell)
	}
	return strings.Join(names, " "), strings.Join(cells, " ")
}
