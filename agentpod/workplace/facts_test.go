package workplace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// branchOf1 is the branch that the item i1 is given.
var branchOf1 = branchName("ada", "Make it i1", itemKey("i1"))

func TestGitSaysHowARoundLeftItsCheckout(t *testing.T) {
	push := func(w *world, round runtime.Round, args ...string) {
		w.git(round, round.Workdir, append([]string{"push", "-q"}, args...)...)
	}
	in := func(w *world, round runtime.Round, args ...string) { w.git(round, round.Workdir, args...) }
	for name, test := range map[string]struct {
		do   func(w *world, h *host, round runtime.Round)
		want RepositoryFacts
	}{
		"nothing was done": {func(*world, *host, runtime.Round) {}, RepositoryFacts{Branch: branchOf1}},
		"a commit is only here": {func(w *world, _ *host, round runtime.Round) { w.commit(round, 0, "a", "a") },
			RepositoryFacts{Branch: branchOf1, Commits: 1, Unpushed: 1}},
		"a commit was pushed": {func(w *world, _ *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round)
		}, RepositoryFacts{Branch: branchOf1, Commits: 1, RemoteBranch: branchOf1}},
		"one of two was": {func(w *world, _ *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round)
			w.commit(round, 0, "b", "b")
		}, RepositoryFacts{Branch: branchOf1, Commits: 2, Unpushed: 1, RemoteBranch: branchOf1}},
		"it was pushed under another name": {func(w *world, _ *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round, "origin", "HEAD:refs/heads/topic")
		}, RepositoryFacts{Branch: branchOf1, Commits: 1, RemoteBranch: "topic"}},
		"it was pushed under another name, and is set to go there": {func(w *world, _ *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round, "--set-upstream", "origin", "HEAD:refs/heads/topic")
			w.commit(round, 0, "b", "b")
		}, RepositoryFacts{Branch: branchOf1, Commits: 2, Unpushed: 1, RemoteBranch: "topic"}},
		"it was pushed to the default branch": {func(w *world, _ *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round, "origin", "HEAD:main")
		}, RepositoryFacts{Branch: branchOf1, Commits: 1, RemoteBranch: "main"}},
		"it was pushed to the URL": {func(w *world, h *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round, h.dir, "HEAD:refs/heads/"+branchOf1)
		}, RepositoryFacts{Branch: branchOf1, Commits: 1, RemoteBranch: branchOf1}},
		"it was pushed and changed after that": {func(w *world, _ *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round)
			in(w, round, "commit", "-q", "--amend", "-m", "Better")
		}, RepositoryFacts{Branch: branchOf1, Commits: 1, Unpushed: 1, RemoteBranch: branchOf1}},
		"the push was undone by others": {func(w *world, h *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round)
			gitIn(w.t, h.env, h.dir, "update-ref", "-d", "refs/heads/"+branchOf1)
		}, RepositoryFacts{Branch: branchOf1, Commits: 1}},
		"it is behind what others pushed to its branch": {func(w *world, h *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round)
			h.push(branchOf1, "theirs", "x")
		}, RepositoryFacts{Branch: branchOf1, Commits: 1, RemoteBranch: branchOf1}},
		"others' work was merged": {func(w *world, h *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			h.push("main", "theirs", "x")
			in(w, round, "fetch", "-q")
			in(w, round, "merge", "-q", "-m", "Merge", "origin/main")
		}, RepositoryFacts{Branch: branchOf1, Commits: 2, Unpushed: 2}},
		"it was put onto others' work": {func(w *world, h *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			h.push("main", "theirs", "x")
			in(w, round, "pull", "-q", "--rebase", "origin", "main")
		}, RepositoryFacts{Branch: branchOf1, Commits: 1, Unpushed: 1}},
		"only others' work was brought": {func(w *world, h *host, round runtime.Round) {
			h.push("main", "theirs", "x")
			in(w, round, "pull", "-q", "origin", "main")
		}, RepositoryFacts{Branch: branchOf1}},
		"it was merged at the remote, and its branch is gone": {func(w *world, h *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			push(w, round)
			h.git("fetch", "-q")
			h.git("checkout", "-q", "-B", "main", "origin/main")
			h.git("merge", "-q", "--no-ff", "-m", "Merge", "origin/"+branchOf1)
			h.git("push", "-q", "origin", "main", ":"+branchOf1)
		}, RepositoryFacts{Branch: branchOf1, Commits: 1}},
		"the branch has another name": {func(w *world, _ *host, round runtime.Round) {
			in(w, round, "checkout", "-q", "-b", "fix")
			w.commit(round, 0, "a", "a")
			push(w, round)
		}, RepositoryFacts{Branch: "fix", Commits: 1, RemoteBranch: "fix"}},
		"the branch follows the default branch": {func(w *world, _ *host, round runtime.Round) {
			in(w, round, "checkout", "-q", "--track", "-b", "fix", "origin/main")
			w.commit(round, 0, "a", "a")
		}, RepositoryFacts{Branch: "fix", Commits: 1, Unpushed: 1}},
		"it is on no branch": {func(w *world, _ *host, round runtime.Round) {
			in(w, round, "checkout", "-q", "--detach")
			w.commit(round, 0, "a", "a")
		}, RepositoryFacts{Commits: 1, Unpushed: 1}},
		"work was left on another branch": {func(w *world, _ *host, round runtime.Round) {
			in(w, round, "checkout", "-q", "-b", "forgotten")
			w.commit(round, 0, "a", "a")
			w.commit(round, 0, "b", "b")
			in(w, round, "checkout", "-q", branchOf1)
		}, RepositoryFacts{Branch: branchOf1, Elsewhere: []BranchFacts{{"forgotten", 2}}}},
		"such work was pushed": {func(w *world, _ *host, round runtime.Round) {
			in(w, round, "checkout", "-q", "-b", "other")
			w.commit(round, 0, "a", "a")
			push(w, round)
			in(w, round, "checkout", "-q", branchOf1)
		}, RepositoryFacts{Branch: branchOf1}},
		"such work was merged": {func(w *world, _ *host, round runtime.Round) {
			in(w, round, "checkout", "-q", "-b", "other")
			w.commit(round, 0, "a", "a")
			in(w, round, "checkout", "-q", branchOf1)
			in(w, round, "merge", "-q", "other")
		}, RepositoryFacts{Branch: branchOf1, Commits: 1, Unpushed: 1}},
		"another item has work on a branch": {func(w *world, _ *host, round runtime.Round) {
			other := w.prepare("i2")
			w.git(other, other.Workdir, "checkout", "-q", "-b", "theirs")
			w.commit(other, 0, "a", "a")
		}, RepositoryFacts{Branch: branchOf1}},
		"files were changed and made": {func(w *world, _ *host, round runtime.Round) {
			write(w.t, filepath.Join(round.Workdir, "README"), "changed")
			write(w.t, filepath.Join(round.Workdir, "new/file"), "new")
			write(w.t, filepath.Join(round.Workdir, ".gitignore"), "ignored\n")
			write(w.t, filepath.Join(round.Workdir, "ignored"), "x")
		}, RepositoryFacts{Branch: branchOf1, Changed: 1, Untracked: 2}},
		"changes are in the index": {func(w *world, _ *host, round runtime.Round) {
			write(w.t, filepath.Join(round.Workdir, "a"), "a")
			in(w, round, "add", "a")
		}, RepositoryFacts{Branch: branchOf1, Changed: 1}},
		"changes are set aside by git": {func(w *world, _ *host, round runtime.Round) {
			write(w.t, filepath.Join(round.Workdir, "README"), "changed")
			in(w, round, "stash", "-q")
		}, RepositoryFacts{Branch: branchOf1}},
		"it was pushed to a remote of the program's own": {func(w *world, _ *host, round runtime.Round) {
			w.commit(round, 0, "a", "a")
			in(w, round, "remote", "add", "fork", fullHost(w.t).dir)
			push(w, round, "fork", "HEAD:refs/heads/x")
		}, RepositoryFacts{Branch: branchOf1, Commits: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, h := newWorld(t), fullHost(t)
			w.repository("shop", h.dir)
			round := w.prepare("i1")
			test.do(w, h, round)
			test.want.Name, test.want.URL, test.want.Default = "shop", h.dir, "main"
			got := w.inspect(round)
			if diff := cmp.Diff(test.want, got.Repositories[0], cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			shown := got.Git.Repos[0]
			if head := w.git(round, round.Workdir, "rev-parse", "HEAD"); shown.LocalCommit == nil || *shown.LocalCommit != head {
				t.Errorf("the session shows the commit %v", shown.LocalCommit)
			}
			if (shown.RemoteBranch == nil) != (test.want.RemoteBranch == "") || shown.CommitsTotal != test.want.Commits {
				t.Errorf("the session shows %+v", shown)
			}
			open := 0
			for _, c := range shown.Commits {
				if !c.Pushed {
					open++
				}
			}
			if open != test.want.Unpushed || len(shown.Commits) != test.want.Commits {
				t.Errorf("the session shows %+v", shown.Commits)
			}
			if shown.RemoteBranch != nil && h.at(*shown.RemoteBranch) != *shown.RemoteCommit {
				t.Errorf("the remote has %s elsewhere than at %s", *shown.RemoteBranch, *shown.RemoteCommit)
			}
			// And what is there lasts: the next preparation changes nothing of it.
			again := w.prepare("i1")
			if diff := cmp.Diff(test.want, w.inspect(again).Repositories[0], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("in the next round: %s", diff)
			}
		})
	}
}

func TestAHostThatMergesAsOneCommitLosesNobodysWork(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	w.commit(round, 0, "a", "a")
	w.git(round, round.Workdir, "push", "-q")
	w.inspect(round) // at the end of the round
	h.push("main", "a", "a")
	gitIn(t, h.env, h.dir, "update-ref", "-d", "refs/heads/"+branchOf1)
	again := w.prepare("i1") // which forgets the branch
	if facts := w.inspect(again).Repositories[0]; facts.Unpushed != 0 || facts.RemoteBranch != "" {
		t.Errorf("git says %+v", facts)
	}
	w.commit(again, 0, "b", "b")
	if facts := w.inspect(again).Repositories[0]; facts.Unpushed != 1 {
		t.Errorf("git says %+v", facts)
	}
}

func TestFilesWithChangesAreListedWithTheirLines(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	for name, text := range map[string]string{"keep": "1\n2\n3\n", "drop": "to be dropped\nsoon\n", "move me": "1\n2\n3\n4\n", "bin": "\x00\x01", "both": "1\n"} {
		h.push("main", name, text)
	}
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	dir := round.Workdir
	write(t, filepath.Join(dir, "keep"), "1\nzwei\n3\n4\n")
	w.git(round, dir, "rm", "-q", "drop")
	w.git(round, dir, "mv", "move me", "moved\tto ü")
	write(t, filepath.Join(dir, "bin"), "\x00\x02")
	write(t, filepath.Join(dir, "both"), "1\n2\n")
	w.git(round, dir, "add", "both")
	write(t, filepath.Join(dir, "both"), "1\n2\n3\n")
	write(t, filepath.Join(dir, "added"), "1\n2\n")
	w.git(round, dir, "add", "added")
	write(t, filepath.Join(dir, "new\nline"), "1\n2\n3")
	write(t, filepath.Join(dir, "new.bin"), "\x00")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	want := []feed.GitFile{
		{Path: "added", Status: "added", Additions: 2},
		{Path: "bin", Status: "modified"},
		{Path: "both", Status: "modified", Additions: 2},
		{Path: "drop", Status: "deleted", Deletions: 2},
		{Path: "keep", Status: "modified", Additions: 2, Deletions: 1},
		{Path: "link", Status: "untracked"},
		{Path: "moved\tto ü", Status: "renamed"},
		{Path: "new\nline", Status: "untracked", Additions: 3},
		{Path: "new.bin", Status: "untracked"},
	}
	facts := w.inspect(round)
	got := []feed.GitFile(facts.Git.Repos[0].LocalUncommittedFiles)
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b feed.GitFile) bool { return a.Path < b.Path })); diff != "" {
		t.Error(diff)
	}
	if f := facts.Repositories[0]; f.Changed != 6 || f.Untracked != 3 {
		t.Errorf("got %+v", f)
	}
}

func TestFilesInConflictCount(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	w.commit(round, 0, "README", "mine\n")
	h.push("main", "README", "theirs\n")
	g := newGit(round.Env, "")
	if err := g.do(t.Context(), round.Workdir, "pull", "--no-rebase", "origin", "main"); err == nil {
		t.Fatal("there is no conflict")
	}
	if f := w.inspect(round).Repositories[0]; f.Changed != 1 || f.Trouble != "" {
		t.Errorf("got %+v", f)
	}
}

func TestListsAreBounded(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	for n := range maxCommits + 5 {
		w.git(round, round.Workdir, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("%d %s", n, strings.Repeat("x", 2*maxSubject)))
	}
	for n := range maxFiles + 5 {
		write(t, filepath.Join(round.Workdir, fmt.Sprintf("f%d", n)), "x")
	}
	facts := w.inspect(round)
	shown := facts.Git.Repos[0]
	if len(shown.Commits) != maxCommits || shown.CommitsTotal != maxCommits+5 || len(shown.LocalUncommittedFiles) != maxFiles || facts.Repositories[0].Untracked != maxFiles+5 {
		t.Errorf("%d commits of %d, %d files of %d", len(shown.Commits), shown.CommitsTotal, len(shown.LocalUncommittedFiles), facts.Repositories[0].Untracked)
	}
	if first := shown.Commits[0]; !strings.HasPrefix(first.Subject, fmt.Sprint(maxCommits+4)) || len(first.Subject) > maxSubject+len("…") || first.CommittedAt.IsZero() {
		t.Errorf("the latest commit is %+v", first)
	}
}

func TestARemoteThatDoesNotAnswerCountsAsItWasLast(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	w.commit(round, 0, "a", "a")
	w.git(round, round.Workdir, "push", "-q")
	w.commit(round, 0, "b", "b")
	want := w.inspect(round)
	if err := os.Rename(h.dir, h.dir+".gone"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.inspect(round)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, w.place.Inspect(t.Context(), round, false)); diff != "" {
		t.Error(diff)
	}
}

func TestACheckoutThatIsGoneIsSaidSo(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	if err := os.RemoveAll(round.Workdir); err != nil {
		t.Fatal(err)
	}
	facts := w.inspect(round)
	if got := facts.Repositories[0].Trouble; !strings.Contains(got, "no checkout any more") {
		t.Errorf("got %q", got)
	}
	if len(facts.Git.Repos) != 1 || facts.Git.Repos[0].LocalCommit != nil || facts.Git.Repos[0].Commits == nil {
		t.Errorf("the session shows %+v", facts.Git.Repos)
	}
}

func TestToAskGitEndsWithItsTime(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	w.repository("shop", h.dir)
	round := w.prepare("i1")
	ctx, cut := context.WithCancel(t.Context())
	cut()
	if got := w.place.Inspect(ctx, round, true).Repositories[0].Trouble; got == "" {
		t.Error("it was asked all the same")
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("the time is not over")
	}
}
