package main

// This file shows how the work goes, and checks how it ended.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/bullpen-dev/bullpen/api/v1alpha1"
)

// The annotations of the sample say how an item must end.
const (
	expectState    = "demo.bullpen.dev/expect"
	expectFailures = "demo.bullpen.dev/expect-failures"
	cancelActive   = "demo.bullpen.dev/cancel-when-active"
)

// connect makes the client.
func (d *demo) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig())
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return err
	}
	d.api, err = client.New(config, client.Options{Scheme: scheme})
	return err
}

// watch shows the items until each has come to its end.
func (d *demo) watch(ctx context.Context) error {
	screen := screen{live: isTerminal(), seen: map[string]string{}, begun: time.Now()}
	for {
		var items api.WorkItemList
		if err := d.api.List(ctx, &items, client.InNamespace("demo")); err != nil {
			return err
		}
		slices.SortFunc(items.Items, func(a, b api.WorkItem) int { return int(*a.Spec.Priority - *b.Spec.Priority) })
		screen.show(items.Items)
		open := false
		for i := range items.Items {
			it := &items.Items[i]
			if it.Annotations[cancelActive] != "" && it.Status.State == "active" && !it.Spec.Cancel {
				if err := d.cancel(ctx, &screen, it); err != nil {
					return err
				}
			}
			open = open || !ended(it) && !stuck(it, items.Items)
		}
		if !open && d.thinker != "" {
			return nil // something may wait for what a model left undone
		}
		if !open {
			done, err := d.settled(ctx)
			if done || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the work is not done: %w; see %s", context.Cause(ctx), d.dir+"/manager.log")
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// settled says whether the team's status has caught up: it is written once a second at most.
func (d *demo) settled(ctx context.Context) (bool, error) {
	var teams api.TeamList
	err := d.api.List(ctx, &teams, client.InNamespace("demo"))
	for _, team := range teams.Items {
		if people, work := team.Status.People, team.Status.WorkItems; people.Working > 0 || work.Active > 0 || work.Queued > 0 {
			return false, err
		}
	}
	return true, err
}

// cancel cancels an item as a user would.
func (d *demo) cancel(ctx context.Context, s *screen, it *api.WorkItem) error {
	s.say("kubectl patch workitem %s --type merge -p '{\"spec\":{\"cancel\":true}}'", it.Name)
	return d.kube(ctx, "-n", it.Namespace, "patch", "workitem", it.Name, "--type", "merge", "-p", `{"spec":{"cancel":true}}`)
}

func ended(it *api.WorkItem) bool {
	return it.Status.State == "done" || it.Status.State == "canceled" || it.Status.State == "blocked"
}

// stuck says whether an item waits for one that is blocked: nobody mends that here.
func stuck(it *api.WorkItem, items []api.WorkItem) bool {
	return slices.ContainsFunc(items, func(o api.WorkItem) bool {
		return slices.Contains(it.Spec.DependsOn, o.Name) && o.Status.State == "blocked"
	})
}

// screen shows items: as a table that is drawn again in place on a terminal, else a line for each change.
type screen struct {
	live  bool
	drawn int
	seen  map[string]string
	begun time.Time
}

func (s *screen) show(items []api.WorkItem) {
	if !s.live {
		for _, it := range items {
			now := fmt.Sprintf("%-9s %-6s %s", it.Status.State, it.Status.Person, it.Status.Progress)
			if s.seen[it.Name] != now {
				s.seen[it.Name] = now
				fmt.Printf("%6.1f s  %-20s %s\n", time.Since(s.begun).Seconds(), it.Name, strings.TrimSpace(now))
			}
		}
		return
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, it := range items {
		fmt.Fprintf(&b, "\x1b[2K  %s %-20s %-9s %-6s %.60s\n", mark(it.Status.State), it.Name, it.Status.State, it.Status.Person, it.Status.Progress)
	}
	s.drawn = len(items)
	fmt.Print(b.String())
}

// say prints a line that stays.
func (s *screen) say(format string, args ...any) {
	s.drawn = 0
	fmt.Printf("\n  $ "+format+"\n\n", args...)
}

func mark(state api.WorkItemState) string {
	switch state {
	case "done":
		return "\x1b[32m✔\x1b[0m"
	case "active":
		return "\x1b[33m●\x1b[0m"
	case "blocked":
		return "\x1b[31m✘\x1b[0m"
	case "canceled":
		return "\x1b[90m−\x1b[0m"
	}
	return "○"
}

func isTerminal() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// shown is the item whose session is shown: its kind needs no review, so its session is closed when it is done.
const shown = "benchmark"

// logs shows how an agent worked, as a user would look at it.
func (d *demo) logs(ctx context.Context) error {
	args := []string{"logs", "-f", shown, "-n", "demo"}
	fmt.Printf("\n  $ kubectl bullpen %s\n\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, "kubectl-bullpen"),
		append(args, "--kubeconfig", d.kubeconfig(), "--office-namespace", "bullpen-system", "--office-url", d.office)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// report shows what is there at the end, and fails where an item did not end as the sample says.
func (d *demo) report(ctx context.Context) error {
	for _, args := range [][]string{
		{d.kubectl(), "--kubeconfig", d.kubeconfig(), "-n", "demo", "get", "teams,people,workitems"},
		{"git", "-C", d.repository(), "log", "--all", "--format=%h %<(12,trunc)%an %<(40,trunc)%D %s"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		fmt.Println()
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	var items api.WorkItemList
	if err := d.api.List(ctx, &items, client.InNamespace("demo")); err != nil {
		return err
	}
	wrong := check(items.Items)
	if d.thinker != "" { // a model does what it does: nothing is promised of it
		wrong = nil
	}
	for _, w := range wrong {
		fmt.Println("✘", w)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d items ended otherwise than the sample says", len(wrong), len(items.Items))
	}
	outcome := "Every item ended as the sample says"
	if d.thinker != "" {
		outcome = "The work has ended, with " + d.thinker + " as it thought right"
	}
	fmt.Printf(`
%s, %.0f s after the start. Look around:

  export KUBECONFIG=%s
  %s -n demo describe workitem flaky-fixture
  %s -n demo logs ada-agent
  git -C %s log -p item/add-french

Stop it all with: make demo-down
`, outcome, time.Since(d.started).Seconds(), d.kubeconfig(), d.kubectl(), d.kubectl(), d.repository())
	return nil
}

// check says which items did not end as their annotations say.
func check(items []api.WorkItem) []string {
	var wrong []string
	if len(items) == 0 {
		wrong = append(wrong, "there are no items")
	}
	for _, it := range items {
		if want := it.Annotations[expectState]; string(it.Status.State) != want {
			wrong = append(wrong, fmt.Sprintf("%s is %s, not %s: %s", it.Name, it.Status.State, want, it.Status.Progress))
		}
		if want, ok := it.Annotations[expectFailures]; ok && strconv.Itoa(int(it.Status.Failures)) != want {
			wrong = append(wrong, fmt.Sprintf("%s failed %d times, not %s", it.Name, it.Status.Failures, want))
		}
	}
	return wrong
}
