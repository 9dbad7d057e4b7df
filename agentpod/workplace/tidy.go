package workplace

// This file removes what items that ended left in the clones, and clones that nobody needs. It goes by what there is: an item whose
// folder is gone has ended for good, however that came about.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
)

// tidy removes what items whose folders are gone left in the clones: what git knows of their checkouts, and their branches. The clones of
// repositories that the team has no more go too, once no item has a checkout of them.
func (p *Place) tidy(ctx context.Context, round runtime.Round) {
	clones, err := p.clones()
	if err == nil && len(clones) > 0 {
		err = p.tidyClones(ctx, newGit(round.Env, gitRecord(round.ProcessRecord, 0)), clones)
	}
	team := map[string]bool{}
	for _, r := range round.Team.Repositories {
		team[folderName(r.Name)+".git"] = true
	}
	for _, clone := range clones {
		if !team[filepath.Base(clone)] && ctx.Err() == nil {
			err = errors.Join(err, p.dropClone(clone))
		}
	}
	if err != nil {
		p.Log.Warn("what ended items left in the clones cannot be removed", "error", err)
	}
}

func (p *Place) clones() ([]string, error) { return filepath.Glob(filepath.Join(p.repos(), "*.git")) }

func (p *Place) tidyClones(ctx context.Context, g git, clones []string) error {
	entries, err := os.ReadDir(p.Items)
	if err != nil {
		return err
	}
	live := map[string]bool{}
	for _, e := range entries {
		live[itemKey(e.Name())] = true
	}
	for _, clone := range clones {
		if one := tidyClone(ctx, g, clone, live); one != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", clone, one))
		}
	}
	return err
}

// tidyClone tidies one clone. live are the keys of the items that have folders.
func tidyClone(ctx context.Context, g git, clone string, live map[string]bool) error {
	kept, err := g.refs(ctx, clone, refRoot)
	if err != nil {
		return err
	}
	var gone []string
	var ended = map[string]bool{}
	for _, r := range kept {
		key, _, _ := strings.Cut(strings.TrimPrefix(r.name, refRoot), "/")
		if !live[key] && len(key) >= 8 {
			gone, ended[key] = append(gone, r.name), true
		}
	}
	if len(gone) == 0 {
		return nil
	}
	others, err := lostHeads(clone)
	if err != nil {
		return err
	}
	if err := g.do(ctx, clone, "worktree", "prune", "--expire=now"); err != nil {
		return err
	}
	branches, err := g.refs(ctx, clone, headRoot)
	if err != nil {
		return err
	}
	for _, b := range branches {
		over := false
		for key := range ended {
			over = over || isBranchOf(strings.TrimPrefix(b.name, headRoot), key)
		}
		if !over && others[b.name] {
			// One that a program of the item made, by a name that says nothing: what is nowhere else stays.
			if over, err = pushed(ctx, g, clone, b.sha); err != nil {
				return err
			}
		}
		if over {
			gone = append(gone, b.name)
		}
	}
	for _, name := range gone {
		err = errors.Join(err, g.do(ctx, clone, "update-ref", "-d", name))
	}
	return err
}

// pushed says whether a commit is at a remote, as far as is known.
func pushed(ctx context.Context, g git, clone, commit string) (bool, error) {
	left, err := g.ask(ctx, clone, "rev-list", "--max-count=1", commit, "--not", "--remotes")
	return left == "", err
}

// lostHeads are the branches that checkouts which are gone were on, if no other checkout is on them.
func lostHeads(clone string) (map[string]bool, error) {
	pointers, err := filepath.Glob(filepath.Join(clone, "worktrees", "*", "gitdir"))
	if err != nil {
		return nil, err
	}
	lost, held := map[string]bool{}, map[string]bool{}
	for _, pointer := range pointers {
		where, err1 := os.ReadFile(pointer)
		head, err2 := os.ReadFile(filepath.Join(filepath.Dir(pointer), "HEAD"))
		if err1 != nil || err2 != nil {
			continue // half made
		}
		branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
		if !ok {
			continue
		}
		if _, err := os.Lstat(strings.TrimSpace(string(where))); errors.Is(err, fs.ErrNotExist) {
			lost[branch] = true
		} else {
			held[branch] = true
		}
	}
	for branch := range held {
		delete(lost, branch)
	}
	return lost, nil
}

// dropClone removes a clone that has no checkout. It goes as a whole, whenever that is interrupted.
func (p *Place) dropClone(clone string) error {
	checkouts, err := filepath.Glob(filepath.Join(clone, "worktrees", "*"))
	if err != nil || len(checkouts) > 0 {
		return err
	}
	trash := filepath.Join(p.Root, "trash", rand.Text())
	if err := errors.Join(os.MkdirAll(filepath.Dir(trash), 0o750), os.Rename(clone, trash)); err != nil {
		return err
	}
	p.Log.Info("removed the clone of a repository that the team has no more", "clone", filepath.Base(clone))
	return disk.RemoveTree(trash)
}
