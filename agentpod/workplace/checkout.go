package workplace

// This file gives an item its checkout of a repository: a worktree of the clone, on a branch of the item's own. It stays over rounds as
// the item's programs left it. Nothing that may be work is ever removed here: what stands in the way of a checkout is set aside.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// standing is how an item's checkout of a repository is found.
type standing struct {
	// made says that it was whole once; base is the commit where its branch began.
	made bool
	base string
	// there says that something is in its place, and whole that this is the checkout.
	there, whole bool
}

// look finds out how the checkout stands.
func (r *repository) look(ctx context.Context) (standing, error) {
	var s standing
	var err error
	if s.base, err = r.git.ref(ctx, r.clone, itemRef(r.key, refBase)); err != nil {
		return s, err
	}
	s.made = s.base != ""
	if !exists(r.checkout) {
		return s, nil
	}
	if entries, err := os.ReadDir(r.checkout); err == nil && len(entries) == 0 {
		return s, os.Remove(r.checkout)
	}
	s.there = true
	s.whole, err = r.whole(ctx)
	return s, err
}

// whole says whether the folder is a checkout of the clone.
func (r *repository) whole(ctx context.Context) (bool, error) {
	text, err := r.git.ask(ctx, r.checkout, "rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel")
	if err != nil {
		return false, ctx.Err() // git says no in many ways
	}
	common, top, _ := strings.Cut(text, "\n")
	return sameFile(common, r.clone) && sameFile(top, r.checkout), nil
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// keep says whether the checkout can be used as it is. One that git lost track of, because the home was moved or a file of it was
// damaged, is connected again.
func (r *repository) keep(ctx context.Context, s standing) (bool, error) {
	if !s.made || !s.there {
		return false, nil
	}
	if s.whole {
		return true, nil
	}
	if err := r.git.do(ctx, r.clone, "worktree", "repair", r.checkout); err != nil && ctx.Err() != nil {
		return false, err
	}
	return r.whole(ctx)
}

// restart makes the checkout, of which there is none that can be used.
func (r *repository) restart(ctx context.Context, s standing) error {
	head, err := r.lastHead()
	if err != nil {
		return err
	}
	if s.there {
		if err := r.setAside(); err != nil {
			return fmt.Errorf("what is in the place of the checkout cannot be set aside: %w", err)
		}
	}
	// Only what was whole can be reused in the next round; and after_checkout has to run in it again.
	if err := r.git.do(ctx, r.clone, "update-ref", "-d", itemRef(r.key, refReady)); err != nil {
		return err
	}
	if err := r.git.do(ctx, r.clone, "worktree", "prune", "--expire=now"); err != nil {
		return err
	}
	from, err := r.beginning(ctx)
	if err != nil {
		return failure(ReasonAccess, err)
	}
	base, err := r.add(ctx, from, head)
	if err != nil {
		return err
	}
	if s.base != "" {
		base = s.base
	}
	return r.git.do(ctx, r.clone, "update-ref", itemRef(r.key, refBase), base)
}

// add makes the checkout: where an earlier one of the item was, else on the branch that the item was given before, in this home or
// in one that was lost, else on a new branch. It returns where the branch began.
func (r *repository) add(ctx context.Context, from beginning, head string) (string, error) {
	if head != "" {
		target, err := r.git.ref(ctx, r.clone, head)
		if err != nil {
			return "", err
		}
		if target != "" {
			place := []string{"worktree", "add", "--quiet", r.checkout, strings.TrimPrefix(head, headRoot)}
			if !strings.HasPrefix(head, headRoot) {
				place = []string{"worktree", "add", "--quiet", "--detach", r.checkout, target}
			}
			return r.baseOf(ctx, from, target, place...)
		}
	}
	for _, root := range []string{headRoot, trackRoot} {
		branches, err := r.git.refs(ctx, r.clone, root+branchRoot+"/")
		if err != nil {
			return "", err
		}
		for _, b := range branches {
			name := strings.TrimPrefix(b.name, root)
			switch {
			case !isBranchOf(name, r.key):
			case root == headRoot:
				return r.baseOf(ctx, from, b.sha, "worktree", "add", "--quiet", r.checkout, name)
			default:
				r.out.say("going on with branch %s of the remote", name)
				return r.baseOf(ctx, from, b.sha, "worktree", "add", "--quiet", "--track", "-b", name, r.checkout, "origin/"+name)
			}
		}
	}
	if from.commit == "" {
		return r.addUnborn(ctx)
	}
	return from.commit, r.git.tell(ctx, r.clone, r.out, "worktree", "add", "--quiet", "--no-track", "-b", r.branch, r.checkout, from.commit)
}

// baseOf adds a checkout at a commit, and returns where that commit's line left the default branch.
func (r *repository) baseOf(ctx context.Context, from beginning, commit string, add ...string) (string, error) {
	if err := r.git.tell(ctx, r.clone, r.out, add...); err != nil {
		return "", err
	}
	if from.commit == "" {
		return commit, nil
	}
	base, err := r.git.ask(ctx, r.clone, "merge-base", from.commit, commit)
	if saidNo(err) {
		return commit, nil // they have nothing in common
	}
	return base, err
}

// addUnborn makes a checkout of a remote that has no branch yet: empty, on a branch that begins with its first commit. Git cannot
// make such a worktree before its version 2.42, so a commit of nothing stands in for the moment.
func (r *repository) addUnborn(ctx context.Context) (string, error) {
	nothing, err := r.emptyCommit(ctx)
	if err != nil {
		return "", err
	}
	if err := r.git.tell(ctx, r.clone, r.out, "worktree", "add", "--quiet", "--detach", r.checkout, nothing); err != nil {
		return "", err
	}
	r.out.say("the remote has no branch yet; %s begins with its first commit", r.branch)
	return nothing, r.git.do(ctx, r.checkout, "symbolic-ref", "HEAD", headRoot+r.branch)
}

// nobody is who makes the commit of nothing; it is known by that.
const nobody = "nobody@bullpen.invalid"

// emptyCommit makes the commit of nothing, which is always the same.
func (r *repository) emptyCommit(ctx context.Context) (string, error) {
	tree, err := r.git.ask(ctx, r.clone, "hash-object", "-t", "tree", "-w", "/dev/null")
	if err != nil {
		return "", err
	}
	g := r.git
	// Of a variable that is there twice, the last counts.
	g.env = append(g.env[:len(g.env):len(g.env)],
		"GIT_AUTHOR_NAME=nobody", "GIT_AUTHOR_EMAIL="+nobody, "GIT_AUTHOR_DATE=@0 +0000",
		"GIT_COMMITTER_NAME=nobody", "GIT_COMMITTER_EMAIL="+nobody, "GIT_COMMITTER_DATE=@0 +0000")
	return g.ask(ctx, r.clone, "commit-tree", "-m", "nothing", tree)
}

// lastHead is where an earlier checkout in this place was, as the clone remembers it: refs/heads/NAME, a commit, or empty.
func (r *repository) lastHead() (string, error) {
	admin, err := adminOf(r.clone, r.checkout)
	if err != nil || admin == "" {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(admin, "HEAD"))
	if err != nil {
		return "", nil //nolint:nilerr // without it, the item's branch is looked for by its name
	}
	head := strings.TrimSpace(string(data))
	if !looksLikeHead.MatchString(head) || strings.Trim(head, "0") == "" {
		return "", nil
	}
	head = strings.TrimPrefix(head, "ref: ")
	if strings.HasPrefix(head, "refs/") && !strings.HasPrefix(head, headRoot) {
		return "", nil
	}
	return head, nil
}

// adminOf is the folder in which a clone keeps what it knows of a checkout; empty if it knows none there.
func adminOf(clone, checkout string) (string, error) {
	pointers, err := filepath.Glob(filepath.Join(clone, "worktrees", "*", "gitdir"))
	if err != nil {
		return "", err
	}
	for _, pointer := range pointers {
		if data, err := os.ReadFile(pointer); err == nil && samePlace(filepath.Dir(strings.TrimSpace(string(data))), checkout) {
			return filepath.Dir(pointer), nil
		}
	}
	return "", nil
}

// samePlace says whether two paths lead to the same place, whether there is something or not. Git follows links in those that it keeps.
func samePlace(a, b string) bool {
	if a == b {
		return true
	}
	one, err := filepath.EvalSymlinks(filepath.Dir(a))
	if err != nil || filepath.Base(a) != filepath.Base(b) {
		return false
	}
	other, err := filepath.EvalSymlinks(filepath.Dir(b))
	return err == nil && one == other
}

// maxAside bounds the search for a free name.
const maxAside = 1000

// setAside moves what is in the place of the checkout beside it. A file that would connect it with the new checkout goes.
func (r *repository) setAside() error {
	for n := 1; n <= maxAside; n++ {
		aside := fmt.Sprintf("%s.aside-%d", r.checkout, n)
		if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		pointer := filepath.Join(r.checkout, ".git")
		if info, err := os.Lstat(pointer); err == nil && info.Mode().IsRegular() {
			if err := os.Remove(pointer); err != nil {
				return err
			}
		}
		if err := os.Rename(r.checkout, aside); err != nil {
			return err
		}
		r.out.say("%s is in the way of the checkout and was moved to %s", r.checkout, aside)
		return nil
	}
	return fmt.Errorf("remove the folders %s.aside-*", r.checkout)
}
