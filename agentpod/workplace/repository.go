package workplace

// This file keeps a clone of each repository of the team in the home, without a checkout of its own. The remote's branches are below
// refs/remotes/origin there, so that to fetch moves nobody's work; items have branches and checkouts of their own, see checkout.go.
//
// Whatever an earlier life of the agent was killed at is mended when the clone is opened: its programs are gone by then, and no other
// agent uses this home, so every lock is a dead one's.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// repository is a repository of the team on its way to the checkout of one item.
type repository struct {
	protocol.TeamRepository
	at remote
	// clone is its clone in the home, checkout where the item's checkout is to be.
	clone, checkout string
	// key names the item in references, branch is the one that its work begins on.
	key, branch string
	// credentials is the file that the clone's settings refer to.
	credentials string
	// pauses are those before the tries to reach the remote again.
	pauses []time.Duration
	git    git
	out    *output
}

// fullName is how the repository is called where people read it.
func (r *repository) fullName() string { return r.at.fullName(r.Name) }

// open makes the clone usable: without anything of the remote in it, if it is new.
func (r *repository) open(ctx context.Context) error {
	if _, err := os.Lstat(r.clone); errors.Is(err, fs.ErrNotExist) {
		// It appears whole or not at all.
		fresh := r.clone + ".new"
		if err := disk.RemoveTree(fresh); err != nil {
			return err
		}
		if err := r.git.do(ctx, filepath.Dir(r.clone), "init", "--quiet", "--bare", "--template=", fresh); err != nil {
			return err
		}
		if err := os.Rename(fresh, r.clone); err != nil {
			return err
		}
	} else if err := mend(r.clone); err != nil {
		return fmt.Errorf("the clone %s cannot be mended: %w", r.clone, err)
	}
	err := r.configure(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	// What is missing in it is made again; what is there, stays.
	if again := r.git.do(ctx, filepath.Dir(r.clone), "init", "--quiet", "--bare", "--template=", r.clone); again != nil {
		return r.broken(err)
	}
	if err := r.configure(ctx); err != nil {
		return r.broken(err)
	}
	return nil
}

// broken says what to do about a clone that cannot be used.
func (r *repository) broken(err error) error {
	return fmt.Errorf("the clone %s is broken (%w): it may hold commits that are nowhere else, so it stays; "+
		"save those, then remove the folder to have it cloned anew", r.clone, err)
}

// configure gives the clone its settings.
func (r *repository) configure(ctx context.Context) error {
	text, err := r.git.ask(ctx, r.clone, "config", "--local", "--no-includes", "--null", "--list")
	if err != nil {
		return err
	}
	have := map[string][]string{}
	for entry := range strings.SplitSeq(text, "\x00") {
		name, value, _ := strings.Cut(entry, "\n")
		have[name] = append(have[name], value)
	}
	for _, want := range [][2]string{
		{"remote.origin.url", r.URL},
		{"remote.origin.fetch", trackAll},
		{"include.path", r.credentials},
		// A branch that was lost by mistake can be found again.
		{"core.logallrefupdates", "true"},
		// Nothing that was committed is lost with the machine.
		{"core.fsync", "all"},
		{"core.fsyncmethod", "batch"},
	} {
		if values := have[want[0]]; len(values) == 1 && values[0] == want[1] {
			continue
		}
		if err := r.git.do(ctx, r.clone, "config", "--local", "--replace-all", want[0], want[1]); err != nil {
			return err
		}
	}
	return nil
}

// trackAll brings all branches of the remote, wherever they were moved to.
const trackAll = "+" + headRoot + "*:" + trackRoot + "*"

// fetch brings what the remote has, and forgets the branches that it has no more. It tries again when that fails.
func (r *repository) fetch(ctx context.Context) error {
	var err error
	for try := 0; ; try++ {
		err = r.git.tell(ctx, r.clone, r.out,
			"fetch", "--progress", "--prune", "--no-recurse-submodules", "--no-write-fetch-head", "origin", trackAll)
		var failed *gitError
		if !errors.As(err, &failed) || try >= len(r.pauses) {
			return err
		}
		r.out.say("trying again in %s", r.pauses[try])
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.pauses[try]):
		}
	}
}

// beginning is where the work of an item begins.
type beginning struct {
	// branch is the remote's default branch, commit where it is; both are empty where the remote has no branch at all.
	branch, commit string
}

// beginning finds where new work begins, after a fetch.
func (r *repository) beginning(ctx context.Context) (beginning, error) {
	branches, err := r.git.refs(ctx, r.clone, trackRoot)
	if err != nil {
		return beginning{}, err
	}
	commits := map[string]string{}
	for _, b := range branches {
		if name := strings.TrimPrefix(b.name, trackRoot); name != "HEAD" {
			commits[name] = b.sha
		}
	}
	if len(commits) == 0 {
		return beginning{branch: r.DefaultBranch}, nil
	}
	name := r.DefaultBranch
	if name == "" {
		if name, err = r.remoteHead(ctx); err != nil {
			return beginning{}, err
		}
		if commits[name] == "" && len(commits) == 1 {
			for only := range commits {
				name = only
			}
		}
	}
	switch commit := commits[name]; {
	case commit != "":
		return beginning{name, commit}, r.git.do(ctx, r.clone, "symbolic-ref", trackRoot+"HEAD", trackRoot+name)
	case r.DefaultBranch != "":
		return beginning{}, fmt.Errorf("the remote has no branch %s: correct the repository's default branch", r.DefaultBranch)
	}
	return beginning{}, errors.New("the remote does not say which branch is its default: set the repository's default branch")
}

var symref = regexp.MustCompile(`(?m)^ref: refs/heads/(\S+)\tHEAD$`)

// remoteHead asks the remote for its default branch; empty if it names none.
func (r *repository) remoteHead(ctx context.Context) (string, error) {
	text, err := r.git.ask(ctx, r.clone, "ls-remote", "--symref", "origin", "HEAD")
	if err != nil {
		return "", err
	}
	if m := symref.FindStringSubmatch(text); m != nil {
		return m[1], nil
	}
	return "", nil
}

// defaultBranch is the default branch as far as is known; empty if it is not.
func (r *repository) defaultBranch(ctx context.Context) (string, error) {
	if r.DefaultBranch != "" {
		return r.DefaultBranch, nil
	}
	name, err := r.git.ask(ctx, r.clone, "symbolic-ref", "--quiet", trackRoot+"HEAD")
	if saidNo(err) {
		return "", nil
	}
	return strings.TrimPrefix(name, trackRoot), err
}

var looksLikeHead = regexp.MustCompile(`^(ref: refs/\S+|[0-9a-f]{40}|[0-9a-f]{64})\s*$`)

// mend removes what a git that was killed leaves behind in a clone: locks, halves of packs, and names of the remote's branches that a
// crash of the machine emptied, which the next fetch makes again.
func mend(clone string) error {
	head := filepath.Join(clone, "HEAD")
	if data, err := os.ReadFile(head); err == nil && !looksLikeHead.Match(data) {
		if err := os.WriteFile(head, []byte("ref: refs/heads/main\n"), 0o600); err != nil {
			return err
		}
	}
	objects, tracked := filepath.Join(clone, "objects"), filepath.Join(clone, filepath.FromSlash(trackRoot))
	return filepath.WalkDir(clone, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		dir := filepath.Dir(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone meanwhile
		case err != nil:
			return err
		case d.IsDir():
			if dir == objects && len(name) == 2 {
				return fs.SkipDir // one of its 256 drawers
			}
			return nil
		case strings.HasSuffix(name, ".lock"), path == filepath.Join(clone, "gc.pid"), strings.HasPrefix(name, "tmp_") && isBelow(path, objects):
			return disk.Remove(path)
		case name == "locked" && filepath.Dir(dir) == filepath.Join(clone, "worktrees"):
			return unlock(path)
		case isBelow(path, tracked):
			if data, err := os.ReadFile(path); err == nil && !looksLikeHead.Match(data) {
				return disk.Remove(path)
			}
		}
		return nil
	})
}

// unlock frees a checkout that git was killed at in the middle of making it. One that somebody locked on purpose stays so.
func unlock(path string) error {
	data, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(data)) != "initializing" {
		return err
	}
	return disk.Remove(path)
}

func isBelow(path, dir string) bool { return strings.HasPrefix(path, dir+string(filepath.Separator)) }
