package main

// These tests run whole command lines on objects in memory and compare what they print with files in testdata. With -update they write
// these files instead; read the difference before you commit it.

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

var update = flag.Bool("update", false, "write what is printed into testdata")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// command runs a command line in namespace shop of what objects make a cluster.
func command(t *testing.T, objects []client.Object, line string, wrap ...interceptor.Funcs) (out, errOut string, code int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	k := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, w := range wrap {
		k = k.WithInterceptorFuncs(w)
	}
	var stdout, stderr bytes.Buffer
	c := &cli{out: &stdout, errOut: &stderr, now: func() time.Time { return noon }}
	c.connect = func() (client.Client, string, error) { return k.Build(), "shop", nil }
	code = c.run(t.Context(), strings.Fields(line))
	return stdout.String(), stderr.String(), code
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func conditions(list ...string) (conditions []metav1.Condition) {
	for _, text := range list { // type=status/reason: message
		head, message, _ := strings.Cut(text, ": ")
		kind, rest, _ := strings.Cut(head, "=")
		status, reason, _ := strings.Cut(rest, "/")
		conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message})
	}
	return conditions
}

// used is usage with a cost; an empty one is unknown.
func used(tokens int64, cost string, unpriced int64) api.UsageStatus {
	return api.UsageStatus{InputTokens: tokens - 30, OutputTokens: 20, CacheReadTokens: 7, CacheCreationTokens: 3, Tokens: tokens, CostUSD: cost, UnpricedTokens: unpriced}
}

func person(name, role, state string, edit ...func(*api.Person)) *api.Person {
	p := &api.Person{ObjectMeta: meta("shop", name), Spec: api.PersonSpec{Team: "shop", Role: api.RoleName(role)}}
	p.Status.State, p.Status.Runtime = api.PersonState(state), "claude"
	p.Status.Conditions = conditions("Ready=True/Ready: The agent is connected.", "DoctorOK=True/ChecksPassed: ok")
	for _, e := range edit {
		e(p)
	}
	return p
}

// item is an unfinished one of ada with a place in her queue.
func item(name, state, order string, edit ...func(*api.WorkItem)) *api.WorkItem {
	it := &api.WorkItem{ObjectMeta: meta("shop", name), Spec: api.WorkItemSpec{Team: "shop", Person: "ada", Kind: "task", Title: "Title of " + name}}
	it.Status.State, it.Status.Person, it.Status.Priority = api.WorkItemState(state), "ada", new(int32(100))
	if order != "" {
		it.Status.Order = "person.ada/" + order
	}
	it.Status.Conditions = conditions("Ready=True/Accepted: The item can run.")
	for _, e := range edit {
		e(it)
	}
	return it
}

func says(list ...string) func(*api.WorkItem) {
	return func(it *api.WorkItem) { it.Status.Conditions = conditions(list...) }
}

// shop is a team in the middle of its work, with another team in another namespace.
func shop() []client.Object {
	usd := resource.MustParse("20")
	team := &api.Team{ObjectMeta: meta("shop", "shop")}
	team.Spec.Usage.Budgets = []api.Budget{
		{Scope: "Team", CostUSD: &usd, WarnAtPercent: new(int32(80)), StopAtPercent: new(int32(120))},
		{Scope: "Person", Tokens: new(int64(7_000_000)), CostUSD: &usd},
		{Scope: "WorkItem", Tokens: new(int64(1_000_000))},
	}
	team.Status = api.TeamStatus{
		Conditions: conditions("Ready=True/Ready: The team takes work.", "BudgetWarning=True/BudgetUsedUp: The budget of scope Team is used up: 25.10 of 20.00 USD (125 %)."),
		People:     api.PeopleCounts{Total: 4, Working: 1, Summary: "1/4"},
		WorkItems:  api.ItemCounts{Queued: 4, Active: 1, Waiting: 1, Blocked: 1, Done: 17},
		Usage:      used(8_423_110, "25.10", 1000),
	}
	other := &api.Team{ObjectMeta: meta("lab", "research")}
	other.Status = api.TeamStatus{Conditions: conditions("Ready=False/OfficeUnavailable: The office cannot use its store right now."), People: api.PeopleCounts{Total: 1, Summary: "0/1"}}
	paused := metav1.NewTime(noon.Add(150 * time.Minute))
	return []client.Object{
		team, other,
		person("ada", "developer", "working", func(p *api.Person) {
			p.Status.CurrentItem, p.Status.Queued, p.Status.Usage, p.Status.Model = "fix-login", 3, used(6_120_442, "16.87", 0), "opus"
		}),
		person("shop-bob", "developer", "paused", func(p *api.Person) {
			p.Spec.Handle, p.Status.PausedUntil, p.Status.Usage = "bob", &paused, used(2_302_668, "8.23", 1000)
			p.Status.Doctor = []api.DoctorCheck{{Name: "Home has room", Status: "warn", Detail: "8 % of the home is free", Fix: "Ask for a larger home in spec.agent.home.size."}}
		}),
		person("cyd", "", "offline", func(p *api.Person) {
			p.Status.Conditions = conditions("Ready=False/ImagePullFailed: The image cannot be pulled.", "Stalled=True/ImagePullFailed: The image cannot be pulled.")
		}),
		person("dan", "writer", "idle", func(p *api.Person) {
			p.Status.Conditions = conditions("Ready=True/Ready: The agent is connected.", "DoctorOK=False/ChecksFailed: Failed: Tools install. See status.doctor.")
			p.Status.Doctor = []api.DoctorCheck{{Name: "Tools install", Status: "fail", Detail: "make is not in PATH", Fix: "Put make into the agent's image."}}
			p.Status.Usage = used(100, "", 100)
		}),
		&api.Person{ObjectMeta: meta("lab", "eve"), Spec: api.PersonSpec{Team: "research"}},

		item("fix-login", "active", "1/1000100/ab", func(it *api.WorkItem) {
			it.Status.Usage = used(900_000, "4.123456", 0)
			it.Status.Models = []api.ModelUsageStatus{{Model: "opus", UsageStatus: used(800_000, "4.003456", 0)}, {Model: "haiku", UsageStatus: used(100_000, "0.12", 0)}}
		}),
		item("urgent", "queued", "1/1000001/ab", func(it *api.WorkItem) { *it.Status.Priority = 1 }),
		item("interrupted", "queued", "0/1000100/zz", func(it *api.WorkItem) {
			it.Status.Usage = used(50_000, "0.10", 2_000)
			it.Status.Models = []api.ModelUsageStatus{{Model: "opus", UsageStatus: used(48_000, "0.10", 0)}, {Model: "house", UsageStatus: used(2_000, "", 2_000)}}
		}),
		item("late", "queued", "1/1000100/ac", says(`Ready=False/DependencyPending: Waits for "fix-login", which is active.`)),
		item("unseen", "", "", func(it *api.WorkItem) { it.Status = api.WorkItemStatus{}; it.Spec.Priority = new(int32(7)) }),
		item("stuck", "blocked", "1/1000100/aa", says("Ready=False/Blocked: I have no key to the gateway.", "Stalled=True/Blocked: I have no key to the gateway.")),
		item("asked", "waiting", "1/1000100/aa", says("Ready=True/Waiting: Waits for an answer.")),
		item("finished", "done", "", func(it *api.WorkItem) {
			it.Status.Usage = used(2_000_000, "9.00", 0)
			it.Status.Models = []api.ModelUsageStatus{{Model: "opus", UsageStatus: used(2_000_000, "9.00", 0)}}
		}),
		item("for-anyone", "queued", "", func(it *api.WorkItem) {
			it.Spec.Person, it.Spec.Role, it.Status.Person, it.Status.Order = "", "developer", "", "role.developer/1/1000100/aa"
		}),
		item("for-writers", "queued", "", func(it *api.WorkItem) {
			it.Spec.Person, it.Spec.Role, it.Status.Person, it.Status.Order = "", "writer", "", "role.writer/1/1000100/aa"
			it.Status.Conditions = conditions("Ready=False/BudgetExhausted: The budget of scope Team, 20.00 USD, is used up.")
		}),
	}
}

func healthy() []client.Object {
	return []client.Object{person("ada", "developer", "idle"), &api.Team{ObjectMeta: meta("shop", "shop")}}
}

func TestWhatCommandsPrint(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		line    string
		code    int
	}{
		"status":                {shop(), "status", 0},
		"status-wide":           {shop(), "status -o wide", 0},
		"status-all":            {shop(), "status -A", 0},
		"status-json":           {shop(), "status -o json", 0},
		"queue":                 {shop(), "queue", 0},
		"queue-person":          {shop(), "queue ada -o wide", 0},
		"queue-handle":          {shop(), "queue bob", 0},
		"queue-all":             {shop(), "queue -A", 0},
		"queue-json":            {shop(), "queue ada -o json", 0},
		"usage":                 {shop(), "usage", 0},
		"usage-wide":            {shop(), "usage -o wide", 0},
		"usage-item":            {shop(), "usage --by item", 0},
		"usage-model":           {shop(), "usage --by=model", 0},
		"usage-all":             {shop(), "usage -A", 0},
		"usage-json":            {shop(), "usage --by model -o json", 0},
		"doctor":                {shop(), "doctor", 1},
		"doctor-person":         {shop(), "doctor bob", 0},
		"doctor-all":            {shop(), "doctor -A", 1},
		"doctor-json":           {shop(), "doctor dan -o json", 1},
		"doctor-ok":             {healthy(), "doctor", 0},
		"status-nothing":        {nil, "status", 0},
		"status-nothing-at-all": {nil, "status -A", 0},
		"no-such-person":        {shop(), "queue zoe", 2},
		"no-such-person-at-all": {shop(), "doctor zoe -A", 2},
		"no-such-form":          {shop(), "doctor -o wide", 2},
		"no-such-sum":           {shop(), "usage --by day", 2},
		"no-such-command":       {shop(), "dance", 2},
		"help":                  {nil, "--help", 0},
		"help-usage":            {nil, "usage --help", 0},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := command(t, tc.objects, tc.line)
			if code != tc.code {
				t.Errorf("it exits with %d, not %d", code, tc.code)
			}
			got := fmt.Sprintf("$ kubectl bullpen %s\n%s%s", tc.line, out, errOut)
			golden(t, name, got)
		})
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("want -, got + (go test ./cmd/kubectl-bullpen -update writes it):\n%s", diff)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	teams := schema.GroupResource{Group: "bullpen.dev", Resource: "teams"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"the kinds are not installed": {&apimeta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "bullpen.dev", Kind: "Team"}}, "not installed"},
		"the kinds are gone again":    {apierrors.NewNotFound(teams, ""), "not installed"},
		"one may not":                 {apierrors.NewForbidden(teams, "", errors.New("no role")), "your role needs get and list of teams"},
		"one is not known":            {apierrors.NewUnauthorized("who are you"), "log in anew"},
		"the cluster is away":         {errors.New("dial tcp 127.0.0.1:6443: connection refused"), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errOut, code := command(t, nil, "status", interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tc.err },
			})
			if code != exitError || !strings.HasPrefix(errOut, "error: ") || !strings.Contains(errOut, tc.want) {
				t.Errorf("it exits with %d and says %q, without %q", code, errOut, tc.want)
			}
		})
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1_000: "1k", 999_999: "999k", 1_000_000: "1.0M", 8_423_110: "8.4M", 999_999_999: "999.9M", 12_340_000_000: "12.3G"} {
		if got := short(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}

// The page has every command and flag, and no other.
func TestThePageIsAboutTheseCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubectl-bullpen.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	c := &cli{}
	root := c.root()
	var names, flags []string
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		flags = append(flags, regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(cmd.LocalFlags().FlagUsages(), -1)...)
		for _, sub := range cmd.Commands() {
			names = append(names, sub.Name())
			if !strings.Contains(page, "\n## "+sub.Name()+"\n") {
				t.Errorf("the page has no section about %s", sub.Name())
			}
			visit(sub)
		}
	}
	visit(root)
	for _, flag := range flags {
		if !regexp.MustCompile(regexp.QuoteMeta(flag) + `\b`).MatchString(page) {
			t.Errorf("the page does not name %s", flag)
		}
	}
	for _, m := range regexp.MustCompile(`kubectl bullpen ([a-z]+)`).FindAllStringSubmatch(page, -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("the page names kubectl bullpen %s, which does not exist", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(page, -1) {
		if !slices.Contains(flags, m[1]) {
			t.Errorf("the page names %s, which does not exist", m[1])
		}
	}
	if len(names) < 4 || len(flags) < 15 {
		t.Errorf("only %v and %v were found", names, flags)
	}
}
