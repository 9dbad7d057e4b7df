package workplace

// These tests are about what an earlier life of the agent was killed at, about homes that are moved or lost, and about remotes that do
// not answer: an item's work has to be there afterwards.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// busy is a world whose item i1 has a commit and a file without one.
func busy(t *testing.T) (*world, *host, runtime.Round) {
	t.Helper()
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	w.commit(round, 0, "done.txt", "done\n")
	write(t, filepath.Join(round.Workdir, "open.txt"), "open\n")
	return w, h, round
}

func TestWhatAKilledGitLeavesBehindIsMended(t *testing.T) {
	empty := func(path string) func(*testing.T, string, string) {
		return func(t *testing.T, clone, _ string) { write(t, filepath.Join(clone, path), "") }
	}
	for name, damage := range map[string]func(t *testing.T, clone, checkout string){
		"a lock on the index":             empty("worktrees/shop/index.lock"),
		"a lock on the checkout's HEAD":   empty("worktrees/shop/HEAD.lock"),
		"a lock on the packed references": empty("packed-refs.lock"),
		"a lock on the settings":          empty("config.lock"),
		"a lock on a branch":              empty("refs/heads/main.lock"),
		"a lock on a branch of the remote": func(t *testing.T, clone, _ string) {
			write(t, filepath.Join(clone, "refs/remotes/origin/main.lock"), "")
		},
		"a branch of the remote that is empty": empty("refs/remotes/origin/main"),
		"a clone whose HEAD is empty":          empty("HEAD"),
		"half a pack":                          empty("objects/pack/tmp_pack_Xy1"),
		"settings that are gone": func(t *testing.T, clone, _ string) {
			if err := os.Remove(filepath.Join(clone, "config")); err != nil {
				t.Fatal(err)
			}
		},
		"a clone without HEAD": func(t *testing.T, clone, _ string) {
			if err := os.Remove(filepath.Join(clone, "HEAD")); err != nil {
				t.Fatal(err)
			}
		},
		"a checkout that lost its pointer to the clone": func(t *testing.T, _, checkout string) {
			if err := os.Remove(filepath.Join(checkout, ".git")); err != nil {
				t.Fatal(err)
			}
		},
		"a checkout whose pointer is empty": func(t *testing.T, _, checkout string) {
			write(t, filepath.Join(checkout, ".git"), "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, round := busy(t)
			head := w.git(round, round.Workdir, "rev-parse", "HEAD")
			damage(t, filepath.Join(w.place.repos(), "shop.git"), round.Workdir)
			again := w.prepare("i1")
			if got := w.git(again, again.Workdir, "rev-parse", "HEAD"); got != head {
				t.Errorf("the branch is at %s, not at %s", got, head)
			}
			if got := content(filepath.Join(again.Workdir, "open.txt")); got != "open" {
				t.Errorf("the work without a commit is gone: %q", got)
			}
			w.commit(again, 0, "open.txt", "committed\n")
			w.git(again, again.Workdir, "push", "-q")
			w.prepare("i2")
		})
	}
}

func TestACheckoutThatIsGoneIsMadeAgainWithItsCommits(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(t *testing.T, w *world, round runtime.Round)
		// aside says that the work without a commit is beside the new checkout.
		aside  bool
		branch string
	}{
		"a program removed it": {lose: func(t *testing.T, _ *world, round runtime.Round) {
			if err := os.RemoveAll(round.Workdir); err != nil {
				t.Fatal(err)
			}
		}},
		"it was on another branch": {branch: "other", lose: func(t *testing.T, w *world, round runtime.Round) {
			w.git(round, round.Workdir, "checkout", "-q", "-b", "other")
			if err := os.RemoveAll(round.Workdir); err != nil {
				t.Fatal(err)
			}
		}},
		"it was on no branch": {branch: "HEAD", lose: func(t *testing.T, w *world, round runtime.Round) {
			w.git(round, round.Workdir, "checkout", "-q", "--detach")
			if err := os.RemoveAll(round.Workdir); err != nil {
				t.Fatal(err)
			}
		}},
		"git forgot it": {lose: func(t *testing.T, w *world, round runtime.Round) {
			if err := os.RemoveAll(round.Workdir); err != nil {
				t.Fatal(err)
			}
			w.git(round, filepath.Join(w.place.repos(), "shop.git"), "worktree", "prune", "--expire=now")
		}},
		"the clone lost track of it": {aside: true, lose: func(t *testing.T, w *world, _ runtime.Round) {
			if err := os.RemoveAll(filepath.Join(w.place.repos(), "shop.git", "worktrees")); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, round := busy(t)
			head := w.git(round, round.Workdir, "rev-parse", "HEAD")
			w.hooks.AfterCheckout = "echo checkout >> ../checkouts"
			w.prepare("i1")
			test.lose(t, w, round)
			again := w.prepare("i1")
			if got := w.git(again, again.Workdir, "rev-parse", "HEAD"); got != head {
				t.Errorf("the checkout is at %s, not at %s", got, head)
			}
			want := test.branch
			if want == "" {
				want = round.Worktrees[0].Branch
			}
			if got := w.git(again, again.Workdir, "rev-parse", "--abbrev-ref", "HEAD"); got != want {
				t.Errorf("it is on %s, not on %s", got, want)
			}
			if again.Worktrees[0].Base != round.Worktrees[0].Base {
				t.Errorf("its beginning changed: %+v", again.Worktrees[0])
			}
			if got := content(filepath.Join(again.Dir, "checkouts")); got != "checkout\ncheckout" {
				t.Errorf("after_checkout has to run again in a new checkout, and only there: %q", got)
			}
			if got := content(filepath.Join(again.Dir, "shop.aside-1", "open.txt")) == "open"; got != test.aside {
				t.Errorf("the work without a commit was set aside: %v", got)
			}
			w.prepare("i1")
			if got := content(filepath.Join(again.Dir, "checkouts")); got != "checkout\ncheckout" {
				t.Errorf("after_checkout ran once more: %q", got)
			}
		})
	}
}

func TestACheckoutThatWasHalfMadeIsMadeAgain(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	clone := filepath.Join(w.place.repos(), "shop.git")
	// As a git leaves it that is killed in the middle, before the agent could note that the checkout is whole.
	w.git(round, clone, "update-ref", "-d", itemRef(itemKey("i1"), refBase))
	write(t, filepath.Join(clone, "worktrees/shop/locked"), "initializing\n")
	if err := os.Remove(filepath.Join(round.Workdir, "README")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(round.Workdir, "half"), "x")
	again := w.prepare("i1")
	if diff := cmp.Diff(round.Worktrees, again.Worktrees); diff != "" {
		t.Error(diff)
	}
	if content(filepath.Join(again.Workdir, "README")) != "hello" || w.git(again, again.Workdir, "status", "--porcelain") != "" {
		t.Error("it is not whole")
	}
	aside := again.Workdir + ".aside-1"
	if content(filepath.Join(aside, "half")) != "x" || exists(filepath.Join(aside, ".git")) {
		t.Error("what was there is gone, or is still connected with the clone")
	}
	if trees := w.git(again, clone, "worktree", "list"); strings.Count(trees, "\n") != 1 {
		t.Errorf("git knows the checkouts %s", trees)
	}
}

func TestAHomeThatMovedKeepsItsWork(t *testing.T) {
	w, h, round := busy(t)
	w.moveHome("elsewhere")
	again := w.prepare("i1")
	if again.Workdir == round.Workdir || content(filepath.Join(again.Workdir, "open.txt")) != "open" || content(filepath.Join(again.Workdir, "done.txt")) != "done" {
		t.Errorf("the work is not in %s", again.Workdir)
	}
	w.git(again, again.Workdir, "push", "-q")
	if h.at(again.Worktrees[0].Branch) == "" {
		t.Error("nothing was pushed")
	}
}

func TestAHomeMayBeReachedByALink(t *testing.T) {
	w, _, _ := busy(t)
	link := filepath.Join(w.dir, "link")
	if err := os.Symlink(filepath.Join(w.dir, "home"), link); err != nil {
		t.Fatal(err)
	}
	w.place.Root = filepath.Join(link, ".bullpen")
	w.place.Items = filepath.Join(w.place.Root, "items")
	round := w.prepare("i1")
	if content(filepath.Join(round.Workdir, "open.txt")) != "open" || len(must(filepath.Glob(filepath.Join(round.Dir, "*")))) != 1 {
		t.Error("the checkout was not found")
	}
	w.git(round, round.Workdir, "checkout", "-q", "-b", "other")
	w.commit(round, 0, "open.txt", "open\n")
	if err := os.RemoveAll(round.Workdir); err != nil {
		t.Fatal(err)
	}
	if again := w.prepare("i1"); again.Worktrees[0].Branch != "other" {
		t.Errorf("it goes on with branch %s", again.Worktrees[0].Branch)
	}
}

func TestALostHomeGoesOnWithWhatWasPushed(t *testing.T) {
	w, h, round := busy(t)
	w.git(round, round.Workdir, "push", "-q")
	h.push("main", "later.txt", "later\n")
	if err := os.RemoveAll(filepath.Dir(w.place.Root)); err != nil {
		t.Fatal(err)
	}
	w.place.Root = ""
	w.moveHome("new")
	again := w.prepare("i1")
	if content(filepath.Join(again.Workdir, "done.txt")) != "done" {
		t.Error("the pushed work is not there")
	}
	if again.Worktrees[0].Branch != round.Worktrees[0].Branch || again.Worktrees[0].Base != round.Worktrees[0].Base {
		t.Errorf("got %+v, before it was %+v", again.Worktrees[0], round.Worktrees[0])
	}
	if facts := w.inspect(again).Repositories[0]; facts.Commits != 1 || facts.Unpushed != 0 {
		t.Errorf("git says %+v", facts)
	}
}

func TestARemoteThatCannotBeReachedStopsOnlyNewWork(t *testing.T) {
	w, h, _ := busy(t)
	w.place.pauses = []time.Duration{time.Millisecond, time.Millisecond}
	gone := h.dir + ".gone"
	if err := os.Rename(h.dir, gone); err != nil {
		t.Fatal(err)
	}
	again := w.prepare("i1")
	if content(filepath.Join(again.Workdir, "open.txt")) != "open" {
		t.Error("the item's work is gone")
	}
	if d := w.told.details["restore shop completed"]; d["fetched"] != false {
		t.Errorf("the phase ended with %v", d)
	}
	if said := strings.Join(w.told.lines("shop"), "\n"); strings.Count(said, "trying again") != 2 || !strings.Contains(said, "goes on with what was fetched before") {
		t.Errorf("it said %s", said)
	}
	_, err := w.try(t.Context(), "i2")
	if err == nil || ReasonOf(err) != ReasonAccess || !strings.Contains(err.Error(), "does not appear to be a git repository") ||
		!strings.Contains(err.Error(), "Look at the repository's URL") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"clone shop started", "clone shop failed"}, w.told.phases); diff != "" {
		t.Error(diff)
	}
	if len(w.told.ready) > 0 {
		t.Error("the place was told to be ready")
	}
	if err := os.Rename(gone, h.dir); err != nil {
		t.Fatal(err)
	}
	w.prepare("i2")
}

func TestEveryRepositoryThatCannotBeBroughtIsNamed(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("one", filepath.Join(w.dir, "nothing"))
	w.repository("shop", h.dir)
	w.repository("two", "ftp://example.com/x")
	_, err := w.try(t.Context(), "i1")
	if err == nil || !strings.Contains(err.Error(), "the repository one ") || !strings.Contains(err.Error(), "the repository two ") ||
		strings.Contains(err.Error(), "the repository shop ") || ReasonOf(err) != ReasonAccess {
		t.Errorf("got %v", err)
	}
	want := []string{"clone one failed", "clone one started", "clone shop completed", "clone shop started", "clone two failed", "clone two started"}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(w.told.phases))); diff != "" {
		t.Error(diff)
	}
}

func TestARoundThatIsCutShortEndsThePreparationAtOnce(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", "git://"+silent.Addr().String()+"/shop.git")
	ctx, cut := context.WithCancel(t.Context())
	go func() {
		if conn, err := silent.Accept(); err == nil {
			cut()
			_, _ = io.Copy(io.Discard, conn) // until git is gone
		}
	}()
	_, err = w.try(ctx, "i1")
	if !errors.Is(err, errCut) {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.place.Root, "state/run/*")); len(left) > 0 {
		t.Errorf("these programs run: %v", left)
	}
	w.team.Repositories[0].URL = h.dir
	w.prepare("i1")
}

func TestABrokenCloneIsNotThrownAway(t *testing.T) {
	w, _, round := busy(t)
	clone := filepath.Join(w.place.repos(), "shop.git")
	if err := errors.Join(os.RemoveAll(filepath.Join(clone, "objects")), os.WriteFile(filepath.Join(clone, "objects"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, err := w.try(t.Context(), "i1")
	if err == nil || !strings.Contains(err.Error(), "remove the folder") || ReasonOf(err) != ReasonError {
		t.Errorf("got %v", err)
	}
	if content(filepath.Join(round.Workdir, "open.txt")) != "open" {
		t.Error("the work is gone")
	}
}

// envKilled makes this test binary an agent that prepares a round of i1 and dies after so many runs of git.
const envKilled = "BULLPEN_TEST_KILLED"

// killer is a git that kills the agent after its n-th run, the agent being whoever started the test binary.
const killer = `#!/bin/sh
"$REAL_GIT" "$@"
code=$?
echo x >> "$COUNT"
if [ "$(wc -l < "$COUNT")" -eq "$AFTER" ]; then kill -9 "$AGENT"; fi
exit $code
`

// prepareToBeKilled is the agent that dies.
func prepareToBeKilled() int {
	place := &Place{
		Root: os.Getenv("ROOT"), Items: filepath.Join(os.Getenv("ROOT"), "items"), Helper: "/bin/false", Person: "ada",
		pauses: []time.Duration{}, Log: discard(),
	}
	if err := os.Setenv("AGENT", strconv.Itoa(os.Getpid())); err != nil {
		return 1
	}
	round := runtime.Round{
		Offer: protocol.Offer{WorkItem: protocol.WorkItem{ID: "i1", Title: "Make it i1"}}, Dir: filepath.Join(place.Items, "i1"),
		ProcessRecord: filepath.Join(place.Root, "state/run/i1"), Env: os.Environ(),
		Team: protocol.TeamConfig{Name: "web", Repositories: []protocol.TeamRepository{{Name: "shop", URL: os.Getenv("REMOTE")}}},
	}
	_, err := place.Prepare(context.Background(), Order{Round: round, Hooks: protocol.TeamHooks{}}, silent{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestAnAgentMayBeKilledAfterEachOfItsSteps(t *testing.T) {
	for name, old := range map[string]bool{"in an item's first round": false, "when the work of a round is there": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := fullHost(t)
			const fewest, most = 8, 60
			after := 1
			for killed(t, h, old, after) && after < most {
				after++
			}
			if after < fewest || after == most {
				t.Errorf("the agent was killed %d times", after-1)
			}
		})
	}
}

// killed has an agent killed after so many runs of git, and looks at what the next one makes of it. It returns false if the agent was
// done by then.
func killed(t *testing.T, h *host, old bool, after int) bool {
	t.Helper()
	w := newWorld(t)
	w.repository("shop", h.dir)
	w.round("i1")
	if old {
		round := w.prepare("i1")
		w.commit(round, 0, "done.txt", "done\n")
		write(t, filepath.Join(round.Workdir, "open.txt"), "open\n")
	}
	bin := filepath.Join(w.dir, "bin")
	write(t, filepath.Join(bin, "git"), killer)
	if err := os.Chmod(filepath.Join(bin, "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	agent := exec.CommandContext(t.Context(), w.place.Helper)
	agent.Env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.dir, "home"), envKilled + "=1", "ROOT=" + w.place.Root,
		"REMOTE=" + h.dir, "REAL_GIT=" + must(exec.LookPath("git")), "COUNT=" + filepath.Join(w.dir, "count"), "AFTER=" + strconv.Itoa(after),
	}
	said, err := agent.CombinedOutput()
	if err != nil && agent.ProcessState.ExitCode() >= 0 {
		t.Fatalf("the agent was not killed: %v: %s", err, said)
	}
	for _, note := range must(filepath.Glob(filepath.Join(w.place.Root, "state/run/*"))) {
		if err := process.EndRecorded(note); err != nil {
			t.Fatal(err)
		}
	}
	round := w.prepare("i1")
	if content(filepath.Join(round.Workdir, "README")) != "hello" {
		t.Errorf("killed after run %d of git, there is no checkout", after)
	}
	if old && (content(filepath.Join(round.Workdir, "open.txt")) != "open" || content(filepath.Join(round.Workdir, "done.txt")) != "done") {
		t.Errorf("killed after run %d of git, the work is gone", after)
	}
	w.commit(round, 0, "more.txt", "more\n")
	w.git(round, round.Workdir, "status")
	return err != nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
