package workplace

// These tests are about clones and checkouts in fair weather: what an item is given, and what stays over rounds.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestAnItemGetsACheckoutOnABranchOfItsOwn(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", "file://"+h.dir)
	round := w.prepare("i1")

	key := itemKey("i1")
	dir := filepath.Join(w.place.Items, "i1", "shop")
	want := []runtime.Worktree{{
		Name: "shop", URL: "file://" + h.dir, Dir: dir, Branch: "bullpen/ada/make-it-i1-" + shortKey(key), Base: h.at("main"),
	}}
	if diff := cmp.Diff(want, round.Worktrees); diff != "" {
		t.Error(diff)
	}
	if round.Workdir != dir {
		t.Errorf("programs run in %s", round.Workdir)
	}
	if got := content(filepath.Join(dir, "README")); got != "hello" {
		t.Errorf("README is %q", got)
	}
	if diff := cmp.Diff([]string{"clone shop started", "clone shop completed"}, w.told.phases); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"shop"}, w.told.ready); diff != "" {
		t.Error(diff)
	}
	detail := w.told.details["clone shop completed"]
	if detail["branch"] != want[0].Branch || detail["base"] != want[0].Base || detail["fetched"] != true {
		t.Errorf("the phase ended with %v", detail)
	}
}

func TestTheNextRoundFindsTheCheckoutAsItWasLeft(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", "file://"+h.dir)
	first := w.prepare("i1")
	w.commit(first, 0, "done.txt", "done\n")
	dir := first.Worktrees[0].Dir
	write(t, filepath.Join(dir, "README"), "changed\n")
	write(t, filepath.Join(dir, "new.txt"), "new\n")
	head := w.git(first, dir, "rev-parse", "HEAD")

	moved := h.push("main", "README", "the others' work\n")
	second := w.prepare("i1")
	if diff := cmp.Diff(first.Worktrees, second.Worktrees); diff != "" {
		t.Error(diff)
	}
	if got := w.git(second, dir, "rev-parse", "HEAD"); got != head {
		t.Errorf("the branch moved from %s to %s", head, got)
	}
	if content(filepath.Join(dir, "README")) != "changed" || content(filepath.Join(dir, "new.txt")) != "new" {
		t.Error("work without a commit is gone")
	}
	if got := w.git(second, dir, "rev-parse", "origin/main"); got != moved {
		t.Errorf("origin/main is %s, not %s: it was not fetched", got, moved)
	}
	if diff := cmp.Diff([]string{"restore shop started", "restore shop completed"}, w.told.phases); diff != "" {
		t.Error(diff)
	}
}

func TestItemsShareOneCloneAndNothingElse(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", "file://"+h.dir)
	one := w.prepare("i1")
	w.commit(one, 0, "one.txt", "1\n")
	moved := h.push("main", "later.txt", "later\n")
	other := w.prepare("i2")
	if got := other.Worktrees[0].Base; got != moved {
		t.Errorf("the second item begins at %s, not where main is now, %s", got, moved)
	}
	if content(filepath.Join(other.Worktrees[0].Dir, "one.txt")) != "" || content(filepath.Join(one.Worktrees[0].Dir, "later.txt")) != "" {
		t.Error("the items see each other's work")
	}
	if clones, _ := filepath.Glob(filepath.Join(w.place.repos(), "*")); len(clones) != 1 {
		t.Errorf("there are the clones %v", clones)
	}
}

func TestSeveralRepositoriesComeSideBySide(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"api", "shop", "docs"} {
		w.repository(name, "file://"+fullHost(t).dir)
	}
	round := w.prepare("i1")
	var names []string
	for _, tree := range round.Worktrees {
		names = append(names, tree.Name)
		if content(filepath.Join(round.Dir, tree.Name, "README")) != "hello" {
			t.Errorf("%s is not checked out", tree.Name)
		}
	}
	if diff := cmp.Diff([]string{"api", "shop", "docs"}, names); diff != "" {
		t.Error(diff)
	}
	if round.Workdir != round.Dir {
		t.Errorf("programs run in %s", round.Workdir)
	}
	if diff := cmp.Diff([]string{"api shop docs"}, w.told.ready); diff != "" {
		t.Error(diff)
	}
}

func TestATeamWithoutRepositoriesNeedsNoGit(t *testing.T) {
	w := newWorld(t)
	t.Setenv("PATH", t.TempDir())
	round := w.prepare("i1")
	if round.Workdir != round.Dir || round.Worktrees != nil {
		t.Errorf("got %+v", round)
	}
	if diff := cmp.Diff(w.env, round.Env); diff != "" {
		t.Errorf("its environment changed: %s", diff)
	}
	if diff := cmp.Diff([]string{""}, w.told.ready); diff != "" {
		t.Error(diff)
	}
}

func TestTheDefaultBranchIsWhereWorkBegins(t *testing.T) {
	branch := func(name string) func(*protocol.TeamRepository) {
		return func(r *protocol.TeamRepository) { r.DefaultBranch = name }
	}
	for name, test := range map[string]struct {
		head     string
		branches []string
		set      string
		want     string
		problem  string
	}{
		"the remote's HEAD":                            {"trunk", []string{"main", "trunk"}, "", "trunk", ""},
		"the team's word counts":                       {"main", []string{"main", "next"}, "next", "next", ""},
		"the only branch where HEAD names none":        {"main", []string{"work"}, "", "work", ""},
		"several branches where HEAD names none":       {"main", []string{"one", "two"}, "", "", "set the repository's default branch"},
		"a branch with slashes":                        {"release/1", []string{"main", "release/1"}, "", "release/1", ""},
		"the team names a branch that is not there":    {"main", []string{"main"}, "gone", "", "no branch gone: correct the repository's default branch"},
		"a branch whose name ends in that of another":  {"main", []string{"x/main", "main"}, "", "main", ""},
		"a branch named as the agent's own are":        {"bullpen/x", []string{"bullpen/x"}, "", "bullpen/x", ""},
		"a branch that looks like an option of git's ": {"main", []string{"main", "x--upload-pack"}, "x--upload-pack", "x--upload-pack", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, h := newWorld(t), newHost(t, test.head)
			commits := map[string]string{}
			for _, b := range test.branches {
				commits[b] = h.push(b, "file", b+"\n")
			}
			w.repository("shop", h.dir, branch(test.set))
			round, err := w.try(t.Context(), "i1")
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || ReasonOf(err) != ReasonAccess {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := round.Worktrees[0].Base; got != commits[test.want] {
				t.Errorf("it begins at %s, not at %s of %s", got, commits[test.want], test.want)
			}
		})
	}
}

func TestAnEmptyRemoteGetsItsFirstCommit(t *testing.T) {
	w, h := newWorld(t), newHost(t, "main")
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	tree := round.Worktrees[0]
	if tree.Base != "" || tree.Branch != branchName("ada", "Make it i1", itemKey("i1")) {
		t.Errorf("got %+v", tree)
	}
	if facts := w.inspect(round).Repositories[0]; facts.Trouble != "" || facts.Commits != 0 || facts.Unpushed != 0 {
		t.Errorf("git says %+v", facts)
	}
	write(t, filepath.Join(tree.Dir, "a.txt"), "one\ntwo\n")
	w.git(round, tree.Dir, "add", ".")
	facts := w.inspect(round)
	if got := facts.Git.Repos[0].LocalUncommittedFiles; len(got) != 1 || got[0].Additions != 2 || got[0].Status != fileAdded {
		t.Errorf("git says %+v", got)
	}
	w.git(round, tree.Dir, "commit", "-q", "-m", "Begin")
	if got := w.git(round, tree.Dir, "rev-list", "--count", "HEAD"); got != "1" {
		t.Errorf("the branch has %s commits", got)
	}
	again := w.prepare("i1")
	if diff := cmp.Diff(round.Worktrees, again.Worktrees); diff != "" {
		t.Error(diff)
	}
	if facts := w.inspect(again).Repositories[0]; facts.Commits != 1 || facts.Unpushed != 1 {
		t.Errorf("git says %+v", facts)
	}
	w.git(again, tree.Dir, "push", "-q", "origin", "HEAD:main")
	if facts := w.inspect(again).Repositories[0]; facts.Commits != 1 || facts.Unpushed != 0 || facts.RemoteBranch != "main" {
		t.Errorf("git says %+v", facts)
	}
	if other := w.prepare("i2"); other.Worktrees[0].Base != h.at("main") || h.at("main") == "" {
		t.Errorf("the next item begins at %q", other.Worktrees[0].Base)
	}
}

func TestAForcePushMovesNobodysWork(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	h.push("main", "bad.txt", "bad\n")
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	w.commit(round, 0, "mine.txt", "mine\n")
	head := w.git(round, round.Workdir, "rev-parse", "HEAD")

	h.git("reset", "-q", "--hard", "HEAD~1")
	h.git("commit", "-q", "--allow-empty", "-m", "Another history")
	h.git("push", "-q", "--force", "origin", "main")
	again := w.prepare("i1")
	if got := w.git(again, again.Workdir, "rev-parse", "HEAD"); got != head {
		t.Errorf("the branch moved to %s", got)
	}
	if facts := w.inspect(again).Repositories[0]; facts.Commits != 1 || facts.Unpushed != 1 {
		t.Errorf("what is no more in the default branch counts as the item's work: %+v", facts)
	}
	if other := w.prepare("i2"); other.Worktrees[0].Base != h.at("main") {
		t.Errorf("the next item begins at %s, and main is at %s", other.Worktrees[0].Base, h.at("main"))
	}
}

func TestAChangedURLCountsFromTheNextRound(t *testing.T) {
	w, old, moved := newWorld(t), fullHost(t), fullHost(t)
	w.repository("shop", old.dir)
	round := w.prepare("i1")
	w.commit(round, 0, "mine.txt", "mine\n")
	only := moved.push("main", "moved.txt", "moved\n")

	w.team.Repositories[0].URL = moved.dir
	again := w.prepare("i1")
	if content(filepath.Join(again.Workdir, "mine.txt")) != "mine" {
		t.Error("the item's work is gone")
	}
	w.git(again, again.Workdir, "push", "-q")
	branch := again.Worktrees[0].Branch
	if old.at(branch) != "" || moved.at(branch) == "" {
		t.Error("the push went to the old place")
	}
	if other := w.prepare("i2"); other.Worktrees[0].Base != only {
		t.Errorf("the next item begins at %s, not at %s", other.Worktrees[0].Base, only)
	}
}

func TestARemovedRepositoryLeavesTheItemsThatHaveIt(t *testing.T) {
	w, h, other := newWorld(t), fullHost(t), fullHost(t)
	w.repository("shop", h.dir)
	w.repository("docs", other.dir)
	round := w.prepare("i1")
	write(t, filepath.Join(round.Dir, "shop", "work.txt"), "work\n")

	w.team.Repositories = w.team.Repositories[1:]
	again := w.prepare("i1")
	if len(again.Worktrees) != 1 || again.Worktrees[0].Name != "docs" || again.Workdir != again.Worktrees[0].Dir {
		t.Errorf("got %+v", again.Worktrees)
	}
	if content(filepath.Join(round.Dir, "shop", "work.txt")) != "work" {
		t.Error("the item's work is gone")
	}
	w.git(again, filepath.Join(round.Dir, "shop"), "status") // and is still a checkout

	// Once no item has it, the clone goes too.
	if err := os.RemoveAll(round.Dir); err != nil {
		t.Fatal(err)
	}
	w.prepare("i2")
	w.prepare("i3")
	if clones, _ := filepath.Glob(filepath.Join(w.place.repos(), "*")); len(clones) != 1 || filepath.Base(clones[0]) != "docs.git" {
		t.Errorf("there are the clones %v", clones)
	}
}

func TestARenamedRepositoryIsAnother(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	w.commit(round, 0, "mine.txt", "mine\n")
	w.git(round, round.Workdir, "push", "-q")

	w.team.Repositories[0].Name = "store"
	again := w.prepare("i1")
	if again.Workdir != filepath.Join(round.Dir, "store") || content(filepath.Join(again.Workdir, "mine.txt")) != "mine" {
		t.Errorf("the checkout %s does not go on with what was pushed", again.Workdir)
	}
	if content(filepath.Join(round.Dir, "shop", "mine.txt")) != "mine" {
		t.Error("the old checkout is gone")
	}
}

func TestWhatIsInTheWayIsSetAside(t *testing.T) {
	for name, there := range map[string]func(*world, string){
		"a folder":          func(w *world, dir string) { write(w.t, filepath.Join(dir, "notes.txt"), "notes") },
		"a clone":           func(w *world, dir string) { gitIn(w.t, w.env, w.dir, "init", "-q", dir) },
		"a file":            func(w *world, dir string) { write(w.t, dir, "notes") },
		"a dangling link":   func(w *world, dir string) { _ = os.Symlink("nowhere", dir) },
		"a folder and more": func(w *world, dir string) { write(w.t, dir+".aside-1", "x"); write(w.t, filepath.Join(dir, "y"), "y") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, h := newWorld(t), fullHost(t)
			w.repository("shop", h.dir)
			there(w, filepath.Join(w.round("i1").Dir, "shop"))
			round := w.prepare("i1")
			if content(filepath.Join(round.Workdir, "README")) != "hello" {
				t.Error("there is no checkout")
			}
			aside, _ := filepath.Glob(filepath.Join(round.Dir, "shop.aside-*"))
			if len(aside) == 0 {
				t.Error("what was in the way is gone")
			}
			if !slices.ContainsFunc(w.told.lines("shop"), func(l string) bool { return strings.Contains(l, "was moved to") }) {
				t.Errorf("nothing was said: %v", w.told.lines("shop"))
			}
		})
	}
}

func TestAnEmptyFolderIsNotInTheWay(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	if err := os.Mkdir(filepath.Join(w.round("i1").Dir, "shop"), 0o750); err != nil {
		t.Fatal(err)
	}
	w.prepare("i1")
	if aside, _ := filepath.Glob(filepath.Join(w.place.Items, "i1", "*")); len(aside) != 1 {
		t.Errorf("the item's folder has %v", aside)
	}
}

func TestWhatAnEndedItemLeftInTheCloneGoesWithItsFolder(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	w.prepare("i2")
	round := w.prepare("i1")
	w.commit(round, 0, "mine.txt", "mine\n")
	w.git(round, round.Workdir, "checkout", "-q", "-b", "pushed-elsewhere")
	w.git(round, round.Workdir, "push", "-q")
	stays := w.prepare("i3")
	w.git(stays, stays.Workdir, "checkout", "-q", "-b", "only-here")
	w.commit(stays, 0, "other.txt", "other\n")
	for _, gone := range []string{"i1", "i3"} {
		if err := os.Rename(filepath.Join(w.place.Items, gone), filepath.Join(w.dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	w.prepare("i2")
	clone := filepath.Join(w.place.repos(), "shop.git")
	left := gitIn(t, w.env, clone, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/bullpen")
	key := itemKey("i2")
	want := []string{
		"refs/bullpen/" + key + "/base",
		"refs/heads/" + branchName("ada", "Make it i2", key),
		"refs/heads/only-here", // nobody else has its commits, and its name does not say that they were the item's
	}
	if diff := cmp.Diff(want, strings.Fields(left)); diff != "" {
		t.Error(diff)
	}
	if trees, _ := filepath.Glob(filepath.Join(clone, "worktrees", "*")); len(trees) != 1 {
		t.Errorf("git knows the checkouts %v", trees)
	}
}

func TestCommitsAreThePersonsUnlessSomebodySaysOtherwise(t *testing.T) {
	for name, test := range map[string]struct {
		home string
		env  []string
		want string
	}{
		"nobody says otherwise":   {want: "Ada Lovelace <ada@web.demo.bullpen.invalid>"},
		"the home's own settings": {home: "[user]\nname = Home\nemail = home@example.com\n", want: "Home <home@example.com>"},
		"the environment": {
			env:  []string{"GIT_AUTHOR_NAME=Env", "GIT_AUTHOR_EMAIL=env@example.com"},
			want: "Env <env@example.com>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, h := newWorld(t), fullHost(t)
			w.env = append(w.env, test.env...)
			if test.home != "" {
				write(t, filepath.Join(w.dir, "home", ".gitconfig"), test.home)
			}
			w.repository("shop", h.dir)
			round := w.prepare("i1")
			w.commit(round, 0, "a", "a")
			if got := w.git(round, round.Workdir, "log", "-1", "--format=%an <%ae>"); got != test.want {
				t.Errorf("the author is %s", got)
			}
		})
	}
}

func TestAPlainPushPushesTheItemsBranch(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	w.commit(round, 0, "a", "a")
	w.git(round, round.Workdir, "push", "-q")
	if got := h.at(round.Worktrees[0].Branch); got != w.git(round, round.Workdir, "rev-parse", "HEAD") {
		t.Errorf("the remote has it at %q", got)
	}
}

func TestSettingsOfTheSystemStay(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	earlier := filepath.Join(w.dir, "system")
	write(t, earlier, "[alias]\nhi = rev-parse HEAD\n[user]\nname = Image\n")
	w.env = append(w.env, "GIT_CONFIG_SYSTEM="+earlier)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	if got := w.git(round, round.Workdir, "hi"); got != h.at("main") {
		t.Errorf("the system's alias says %q", got)
	}
	if got := w.git(round, round.Workdir, "config", "user.name"); got != "Ada Lovelace" {
		t.Errorf("the author is %q", got)
	}
}
