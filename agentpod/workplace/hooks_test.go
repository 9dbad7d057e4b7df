package workplace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestHooksRunInOrderAndTellOfEachStep(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	w.hooks = protocol.TeamHooks{
		BuildBase:     `cat ../../items/i1/shop/README > readme; echo built; echo loudly >&2`,
		AfterCheckout: `echo "checkout $(cat "$BULLPEN_BASE_DIR/readme")" >> ../order; pwd`,
		BeforeStart:   `echo before >> ../order`,
	}
	round := w.prepare("i1")
	if got := content(filepath.Join(round.Dir, "order")); got != "checkout hello\nbefore" {
		t.Errorf("they did %q", got)
	}
	want := []string{
		"clone shop started", "clone shop completed",
		"setup build_base started", "setup build_base completed",
		"setup after_checkout started", "setup after_checkout completed",
		"hooks before_start started", "hooks before_start completed",
	}
	if diff := cmp.Diff(want, w.told.phases); diff != "" {
		t.Error(diff)
	}
	if got := strings.Join(w.told.lines(feed.StepBuildBase), " "); got != "built loudly" && got != "loudly built" {
		t.Errorf("build_base said %q", got)
	}
	if got := w.told.lines(feed.StepAfterCheckout); len(got) != 1 || got[0] != round.Workdir {
		t.Errorf("after_checkout ran in %q", got)
	}
	if base, _ := lookup(round.Env, contract.EnvBaseDir); content(filepath.Join(base, "readme")) != "hello" {
		t.Errorf("the round's base is %q", base)
	}

	w.prepare("i1")
	if got := content(filepath.Join(round.Dir, "order")); got != "checkout hello\nbefore\nbefore" {
		t.Errorf("they did %q", got)
	}
	want = []string{
		"restore shop started", "restore shop completed", "restore build_base completed",
		"hooks before_start started", "hooks before_start completed",
	}
	if diff := cmp.Diff(want, w.told.phases); diff != "" {
		t.Error(diff)
	}
}

func TestAHookThatFailsSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		hooks protocol.TeamHooks
		want  string
		phase string
	}{
		"build_base":          {protocol.TeamHooks{BuildBase: "echo no disk; exit 4"}, "the hook build_base failed: exit status 4: no disk", "setup build_base failed"},
		"after_checkout":      {protocol.TeamHooks{AfterCheckout: "echo no disk >&2; exit 4"}, "the hook after_checkout failed: exit status 4: no disk", "setup after_checkout failed"},
		"before_start":        {protocol.TeamHooks{BeforeStart: "exit 4"}, "the hook before_start failed: exit status 4", "hooks before_start failed"},
		"a signal":            {protocol.TeamHooks{BeforeStart: "kill -KILL $$"}, "the hook before_start failed: killed by signal SIGKILL", "hooks before_start failed"},
		"a command not found": {protocol.TeamHooks{BeforeStart: "no-such-command"}, "not found", "hooks before_start failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.hooks = test.hooks
			_, err := w.try(t.Context(), "i1")
			if err == nil || !strings.HasSuffix(err.Error(), test.want) || ReasonOf(err) != ReasonHook {
				t.Errorf("got %v", err)
			}
			if last := w.told.phases[len(w.told.phases)-1]; last != test.phase || len(w.told.ready) > 0 {
				t.Errorf("the last phase was %q; ready: %v", last, w.told.ready)
			}
			if d := w.told.details[test.phase]; err != nil && d["error"] != err.Error() {
				t.Errorf("the phase said %v", d)
			}
		})
	}
}

func TestAfterCheckoutRunsOncePerCheckout(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.hooks.AfterCheckout = `[ ! -e "$HOME/broken" ] && echo x >> "$BULLPEN_ITEM_DIR/runs"`
	w.env = append(w.env, contract.EnvItemDir+"="+filepath.Join(w.place.Items, "i1"))
	runs := func() int { return strings.Count(content(filepath.Join(w.place.Items, "i1", "runs")), "x") }
	broken := filepath.Join(w.dir, "home", "broken")
	write(t, broken, "")
	if _, err := w.try(t.Context(), "i1"); err == nil {
		t.Fatal("it did not fail")
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	for n, step := range []struct {
		what   string
		change func()
		runs   int
	}{
		{"after it failed", func() {}, 1},
		{"again", func() {}, 1},
		{"with a repository that the team has now", func() { w.repository("shop", h.dir) }, 2},
		{"again", func() {}, 2},
		{"with another", func() { w.repository("docs", h.dir) }, 3},
		{"with other words", func() { w.hooks.AfterCheckout += "; true" }, 3},
		{"with the state of a home that forgot it", func() { w.prepared = map[string]bool{} }, 4},
	} {
		step.change()
		w.prepare("i1")
		if got := runs(); got != step.runs {
			t.Errorf("round %d, %s: it ran %d times, not %d", n+2, step.what, got, step.runs)
		}
	}
}

func TestABaseIsBuiltForWhatItIsMadeOf(t *testing.T) {
	const lock, other = "shop/lock.json", "shop/other.txt"
	type step struct {
		what   string
		change func(w *world, h *host, round runtime.Round)
		item   string
		built  bool
	}
	edit := func(file, text string) func(*world, *host, runtime.Round) {
		return func(w *world, _ *host, round runtime.Round) { write(w.t, filepath.Join(round.Dir, file), text) }
	}
	nothing := func(*world, *host, runtime.Round) {}
	commit := func(w *world, _ *host, round runtime.Round) { w.commit(round, 0, "work.txt", "x") }
	upstream := func(_ *world, h *host, _ runtime.Round) { h.push("main", "lock.json", "newer") }
	script := func(w *world, _ *host, _ runtime.Round) { w.hooks.BuildBase += "; true" }
	for name, test := range map[string]struct {
		inputs []string
		steps  []step
	}{
		"every source change": {nil, []step{
			{"another item of the same sources", nothing, "i2", false},
			{"a commit of the item's own", commit, "i1", false},
			{"an edit", edit(lock, "edited"), "i1", false},
			{"a change of the sources, for an item that has begun", upstream, "i1", false},
			{"and for one that begins now", nothing, "i3", true},
			{"the item before, whose base is kept", nothing, "i2", false},
			{"another script", script, "i2", true},
		}},
		"nothing but the script": {[]string{}, []step{
			{"a change of the sources", upstream, "i2", false},
			{"another script", script, "i2", true},
		}},
		"exact files": {[]string{lock}, []step{
			{"a change of another file", edit(other, "x"), "i1", false},
			{"a change of the file", edit(lock, "edited"), "i1", true},
			{"an item with the file as it was", nothing, "i2", false},
			{"the file may be run now", func(w *world, _ *host, round runtime.Round) {
				if err := os.Chmod(filepath.Join(round.Dir, lock), 0o755); err != nil {
					w.t.Fatal(err)
				}
			}, "i1", true},
			{"what git does not keep of its mode", func(w *world, _ *host, round runtime.Round) {
				if err := os.Chmod(filepath.Join(round.Dir, lock), 0o750); err != nil {
					w.t.Fatal(err)
				}
			}, "i1", false},
			{"the file is gone", func(w *world, _ *host, round runtime.Round) {
				if err := os.Remove(filepath.Join(round.Dir, lock)); err != nil {
					w.t.Fatal(err)
				}
			}, "i1", true},
			{"a change of the sources, in an item that begins now", upstream, "i3", true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, h := newWorld(t), fullHost(t)
			h.push("main", "lock.json", "first")
			w.repository("shop", h.dir)
			w.hooks = protocol.TeamHooks{BuildBase: "true", BuildBaseInputs: test.inputs}
			round := w.prepare("i1")
			for _, s := range test.steps {
				s.change(w, h, round)
				w.prepare(s.item)
				built := false
				for _, p := range w.told.phases {
					built = built || p == "setup build_base completed"
				}
				if built != s.built {
					t.Errorf("%s: built is %v", s.what, built)
				}
			}
		})
	}
}

func TestInputsThatAreNoFilesAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ input, want string }{
		"a folder":                   {"shop/src", "name each file"},
		"no repository of the team":  {"store/lock.json", "no file of a repository of the team"},
		"a repository alone":         {"shop", "no file of a repository of the team"},
		"a way out of the checkout":  {"shop/../../../secret", "escapes"},
		"a link out of the checkout": {"shop/link", "escapes"},
	} {
		t.Run(name, func(t *testing.T) {
			w, h := newWorld(t), fullHost(t)
			h.push("main", "src/a.txt", "a")
			if err := os.Symlink("/etc/passwd", filepath.Join(h.other, "link")); err != nil {
				t.Fatal(err)
			}
			h.git("add", "link")
			h.git("commit", "-q", "-m", "Link")
			h.git("push", "-q", "origin", "main")
			w.repository("shop", h.dir)
			w.hooks = protocol.TeamHooks{BuildBase: "true", BuildBaseInputs: []string{test.input}}
			if _, err := w.try(t.Context(), "i1"); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.input) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestABaseThatWasNotFinishedIsBuiltAnew(t *testing.T) {
	w := newWorld(t)
	flag := filepath.Join(w.dir, "flag")
	w.hooks.BuildBase = fmt.Sprintf("[ ! -e half ] || exit 9; touch half; [ -e %s ]", flag)
	if _, err := w.try(t.Context(), "i1"); err == nil {
		t.Fatal("it did not fail")
	}
	write(t, flag, "")
	w.prepare("i1")
}

func TestOnlyTheLastBasesAreKept(t *testing.T) {
	w := newWorld(t)
	bases := func() int { return len(must(os.ReadDir(filepath.Join(w.place.Root, "base")))) }
	for n := range maxBases + 2 {
		w.hooks.BuildBase = fmt.Sprintf("echo %d", n)
		w.prepare("i1")
		if n > 0 { // the first stays in use
			w.hooks.BuildBase = "echo 0"
			w.prepare("i1")
			if w.told.phases[0] != "restore build_base completed" {
				t.Fatalf("the base that was used last but one is gone after %d others", n)
			}
		}
	}
	if got := bases(); got != maxBases {
		t.Errorf("%d bases are kept, not %d", got, maxBases)
	}
}

func TestABaseGoesByTheSystemItWasBuiltOn(t *testing.T) {
	image, home := t.TempDir(), t.TempDir()
	path := image + ":" + filepath.Join(home, "bin") + ":relative:/nowhere"
	before := toolchain(path, home)
	write(t, filepath.Join(home, "bin", "own"), "x")
	if diff := cmp.Diff(before, toolchain(path, home)); diff != "" {
		t.Errorf("what the agent installs in its home changes it: %s", diff)
	}
	write(t, filepath.Join(image, "compiler"), "x")
	after := toolchain(path, home)
	if cmp.Equal(before, after) {
		t.Error("another compiler in the image changes nothing")
	}
	w := newWorld(t)
	w.hooks.BuildBase = "true"
	for _, facts := range [][]string{before, after} {
		w.place.system = func(string, string) []string { return facts }
		w.prepare("i1")
		if got := w.told.phases[len(w.told.phases)-1]; got != "setup build_base completed" {
			t.Errorf("on another system it says %s", got)
		}
	}
}

func TestAHookEndsWithItsRound(t *testing.T) {
	w := newWorld(t)
	ctx, cut := context.WithCancel(t.Context())
	started := filepath.Join(w.dir, "started")
	w.hooks.BeforeStart = fmt.Sprintf("echo waiting; touch %s; while :; do sleep 0.01; done", started)
	go func() {
		for !exists(started) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cut()
	}()
	_, err := w.try(ctx, "i1")
	if err == nil || !strings.Contains(err.Error(), "SIGTERM") {
		t.Errorf("got %v", err)
	}
	if got := w.told.lines(feed.StepBeforeStart); len(got) != 1 || got[0] != "waiting" {
		t.Errorf("told %q", got)
	}
}
