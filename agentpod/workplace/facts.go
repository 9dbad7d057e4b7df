package workplace

// This file asks git how the checkouts of a round stand: what was committed, what was pushed, and what was not.

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	// maxCommits is the most commits of a repository that are listed, and maxCounted the most that are counted.
	maxCommits = 50
	maxCounted = 10_000
	// maxSubject is the most bytes of a commit's subject.
	maxSubject = 300
	// remoteWait is how long a remote may take to say where its branches are, or to hand over what they have.
	remoteWait = 15 * time.Second
)

// Facts are how the checkouts of a round stand.
type Facts struct {
	// Git is what the session shows of them.
	Git feed.Git
	// Repositories has the same for decisions, in the same order.
	Repositories []RepositoryFacts
}

// RepositoryFacts are how one checkout stands.
type RepositoryFacts struct {
	// Name is the repository's in the team, URL where it is.
	Name, URL string
	// Branch is the one that the checkout is on, empty if it is on none. Default is the remote's.
	Branch, Default string
	// RemoteBranch is where its commits were pushed to; empty if nothing of it was.
	RemoteBranch string
	// Commits are those that it has beyond its beginning, Unpushed those that no remote has.
	Commits, Unpushed int
	// Changed counts files that git knows and that have changes without a commit, Untracked those that it does not know. Files that are
	// ignored count as neither.
	Changed, Untracked int
	// Elsewhere are other branches that the item's programs left commits on, with how many of them no remote has.
	Elsewhere []BranchFacts
	// Trouble is why git could not be asked; nothing else is known then.
	Trouble string
}

// BranchFacts are how a branch stands that the checkout is not on.
type BranchFacts struct {
	Name     string
	Unpushed int
}

// Inspect asks git how the checkouts of a round stand. Where remote is set it asks the remotes too, for a bounded time; if one does not
// answer, what was last known of it counts. A checkout that git cannot be asked about says so.
func (p *Place) Inspect(ctx context.Context, round runtime.Round, remote bool) Facts {
	all := make([]inspection, len(round.Worktrees))
	var group errgroup.Group
	group.SetLimit(maxClones)
	for i, w := range round.Worktrees {
		n := slices.IndexFunc(round.Team.Repositories, func(r protocol.TeamRepository) bool { return r.Name == w.Name })
		if n < 0 {
			all[i] = inspection{facts: RepositoryFacts{Name: w.Name, URL: w.URL, Trouble: "the team does not have it"}}
			continue
		}
		group.Go(func() error {
			all[i] = p.inspectOne(ctx, round, w, n, remote)
			return nil
		})
	}
	_ = group.Wait() // each says in its own place how it went
	facts := Facts{Git: feed.Git{Repos: []feed.GitRepo{}}}
	for _, one := range all {
		facts.Git.Repos = append(facts.Git.Repos, one.shown)
		facts.Repositories = append(facts.Repositories, one.facts)
	}
	return facts
}

// inspection is what was found out about one checkout.
type inspection struct {
	shown feed.GitRepo
	facts RepositoryFacts
}

func (p *Place) inspectOne(ctx context.Context, round runtime.Round, w runtime.Worktree, n int, remote bool) inspection {
	r := p.repository(round, n)
	i := inspection{
		shown: feed.GitRepo{
			FullName: r.Name, LocalUncommittedFiles: []feed.GitFile{}, Commits: []feed.GitCommit{}, PRs: []feed.GitPR{},
		},
		facts: RepositoryFacts{Name: w.Name, URL: w.URL},
	}
	at, err := parseRemote(r.URL)
	if err == nil {
		r.at = at
		i.shown.FullName = r.fullName()
		err = r.inspect(ctx, w, remote, &i)
	}
	if err != nil {
		p.Log.Warn("git cannot be asked about a checkout", "repository", w.Name, "error", err)
		i.facts.Trouble = err.Error()
	}
	return i
}

// inspect fills in what there is to say.
func (r *repository) inspect(ctx context.Context, w runtime.Worktree, remote bool, i *inspection) error {
	if whole, err := r.whole(ctx); err != nil || !whole {
		return fmt.Errorf("its folder %s is no checkout any more", r.checkout)
	}
	head, err := r.git.ref(ctx, r.checkout, "HEAD")
	if err != nil {
		return err
	}
	branch, err := r.git.ask(ctx, r.checkout, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil && !saidNo(err) {
		return err
	}
	i.facts.Branch = branch
	if i.facts.Default, err = r.defaultBranch(ctx); err != nil {
		return err
	}
	if err := r.files(ctx, head, i); err != nil {
		return err
	}
	if head == "" {
		return nil
	}
	i.shown.LocalCommit = &head
	if err := r.refresh(ctx, head, i, remote); err != nil {
		return err
	}
	if err := r.commits(ctx, head, w.Base, i); err != nil {
		return err
	}
	if i.facts.Commits == 0 && i.facts.RemoteBranch != branch { // it is only where another branch is
		i.facts.RemoteBranch, i.shown.RemoteBranch, i.shown.RemoteCommit = "", nil, nil
	}
	return r.elsewhere(ctx, head, w.Base, i)
}

// refresh finds the branch of the remote that the commits were pushed to, and if it may, asks the remote how that and its default branch
// stand now. What was pushed once is remembered: it is no lost work when its branch was merged and removed.
func (r *repository) refresh(ctx context.Context, head string, i *inspection, remote bool) error {
	known, candidates, err := r.tracked(ctx, head, i.facts)
	if err != nil {
		return err
	}
	if name := first(candidates, known); name != "" && name != i.facts.Default {
		if err := r.rememberPushed(ctx, known[name]); err != nil {
			return err
		}
	}
	if remote {
		if now, answers := r.askRemote(ctx, append(slices.Clone(candidates), i.facts.Default)); answers {
			known = now
		}
	}
	name := first(candidates, known)
	if name == "" {
		return nil
	}
	commit := known[name]
	i.facts.RemoteBranch = name
	i.shown.RemoteBranch, i.shown.RemoteCommit = &name, &commit
	if name == i.facts.Default {
		return nil
	}
	return r.rememberPushed(ctx, commit)
}

// first is the first of some branches that is somewhere; empty if none is.
func first(names []string, commits map[string]string) string {
	for _, name := range names {
		if commits[name] != "" {
			return name
		}
	}
	return ""
}

// rememberPushed remembers that a commit is at the remote, with all before it.
func (r *repository) rememberPushed(ctx context.Context, commit string) error {
	if have, err := r.git.ref(ctx, r.clone, commit); err != nil || have == "" {
		return err // it could not be fetched, so it is none of the item's
	}
	return r.git.do(ctx, r.clone, "update-ref", itemRef(r.key, refPushed), commit)
}

// tracked gives where the remote's branches were last, and the names under which the commits may be there, the likeliest first: that of
// the branch itself, that which it was told to go to, and those that are where the checkout is. The default branch comes last, for every
// branch begins there.
func (r *repository) tracked(ctx context.Context, head string, facts RepositoryFacts) (map[string]string, []string, error) {
	refs, err := r.git.refs(ctx, r.clone, trackRoot)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]string{}
	var candidates, here []string
	for _, ref := range refs {
		name := strings.TrimPrefix(ref.name, trackRoot)
		if name == "HEAD" {
			continue
		}
		known[name] = ref.sha
		if ref.sha == head && name != facts.Default {
			here = append(here, name)
		}
	}
	if facts.Branch != "" {
		candidates = append(candidates, facts.Branch)
		upstream, err := r.git.ask(ctx, r.clone, "for-each-ref", "--format=%(upstream)", "--", headRoot+facts.Branch)
		if err != nil {
			return nil, nil, err
		}
		if name, ok := strings.CutPrefix(upstream, trackRoot); ok && name != facts.Default {
			candidates = append(candidates, name)
		}
	}
	const most = 5
	candidates = append(candidates, here[:min(len(here), most)]...)
	if facts.Default != "" && known[facts.Default] == head {
		candidates = append(candidates, facts.Default)
	}
	seen := map[string]bool{}
	return known, slices.DeleteFunc(candidates, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	}), nil
}

// askRemote asks the remote where branches of it are, and fetches what is new there. It returns false if the remote does not answer.
func (r *repository) askRemote(ctx context.Context, names []string) (map[string]string, bool) {
	ctx, cancel := context.WithTimeout(ctx, remoteWait)
	defer cancel()
	args := []string{"ls-remote", "origin"}
	for _, name := range names {
		if name != "" {
			args = append(args, headRoot+name)
		}
	}
	text, err := r.git.ask(ctx, r.clone, args...)
	if err != nil {
		return nil, false
	}
	now := map[string]string{}
	fetch := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "origin"}
	for line := range strings.Lines(text) {
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		name, ok := strings.CutPrefix(ref, headRoot)
		if !ok || !slices.Contains(names, name) {
			continue // a pattern fits the ends of other names too
		}
		now[name] = commit
		if have, err := r.git.ref(ctx, r.clone, trackRoot+name); err != nil || have != commit {
			fetch = append(fetch, "+"+headRoot+name+":"+trackRoot+name)
		}
	}
	if fetch[len(fetch)-1] != "origin" {
		if err := r.git.do(ctx, r.clone, fetch...); err != nil {
			return nil, false
		}
	}
	return now, true
}

// commits lists those that the checkout has beyond its beginning: what the default branch has too only if it was made here, for merges
// and rebases bring what others made.
func (r *repository) commits(ctx context.Context, head, base string, i *inspection) error {
	beyond := []string{head}
	if base != "" {
		beyond = append(beyond, "^"+base)
	}
	outside := slices.Clone(beyond)
	if main, err := r.git.ref(ctx, r.clone, trackRoot+i.facts.Default); err != nil {
		return err
	} else if main != "" && i.facts.Default != "" {
		outside = append(outside, "^"+main)
	}
	all, err := r.list(ctx, outside)
	if err != nil {
		return err
	}
	me, err := r.committer(ctx)
	if err != nil {
		return err
	}
	if me != "" && len(outside) > len(beyond) {
		own, err := r.list(ctx, append([]string{"--fixed-strings", "--committer=<" + me + ">"}, beyond...))
		if err != nil {
			return err
		}
		have := map[string]bool{}
		for _, sha := range all {
			have[sha] = true
		}
		all = append(all, slices.DeleteFunc(own, func(sha string) bool { return have[sha] })...)
	}
	open, err := r.unpushed(ctx, beyond)
	if err != nil {
		return err
	}
	i.facts.Commits, i.facts.Unpushed, i.shown.CommitsTotal = len(all), len(open), len(all)
	return r.describe(ctx, all[:min(len(all), maxCommits)], open, i)
}

// unpushed lists the commits that no remote has and none had.
func (r *repository) unpushed(ctx context.Context, beyond []string) ([]string, error) {
	args := slices.Clone(beyond)
	once, err := r.git.ref(ctx, r.clone, itemRef(r.key, refPushed))
	if err != nil {
		return nil, err
	}
	if once != "" {
		args = append(args, "^"+once)
	}
	return r.list(ctx, append(args, "--not", "--remotes"))
}

// list lists commits, the latest first.
func (r *repository) list(ctx context.Context, what []string) ([]string, error) {
	text, err := r.git.ask(ctx, r.clone, append([]string{"rev-list", "--max-count=" + strconv.Itoa(maxCounted)}, what...)...)
	return strings.Fields(text), err
}

// committer is the address that commits are made with here; empty if there is none.
func (r *repository) committer(ctx context.Context) (string, error) {
	text, err := r.git.ask(ctx, r.checkout, "var", "GIT_COMMITTER_IDENT")
	if err != nil {
		return "", ctx.Err() // git says no where it knows nobody
	}
	_, after, _ := strings.Cut(text, "<")
	address, _, _ := strings.Cut(after, ">")
	return address, nil
}

// describe tells of commits. open are those that are not pushed.
func (r *repository) describe(ctx context.Context, commits, open []string, i *inspection) error {
	if len(commits) == 0 {
		return nil
	}
	text, err := r.git.ask(ctx, r.clone, append([]string{"log", "--no-walk=unsorted", "-z", "--format=%H%n%ct%n%s"}, commits...)...)
	if err != nil {
		return err
	}
	waiting := map[string]bool{}
	for _, sha := range open {
		waiting[sha] = true
	}
	for entry := range strings.SplitSeq(strings.Trim(text, "\x00"), "\x00") {
		parts := strings.SplitN(entry, "\n", 3)
		if len(parts) < 3 {
			continue
		}
		seconds, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return fmt.Errorf("git gives a commit the time %q", parts[1])
		}
		i.shown.Commits = append(i.shown.Commits, feed.GitCommit{
			SHA: parts[0], Subject: cut(parts[2], maxSubject), CommittedAt: time.Unix(seconds, 0).UTC(), Pushed: !waiting[parts[0]],
		})
	}
	return nil
}

// elsewhere finds the branches that the checkout was on and that have commits which no remote has: work that was left behind.
func (r *repository) elsewhere(ctx context.Context, head, base string, i *inspection) error {
	admin, err := adminOf(r.clone, r.checkout)
	if err != nil || admin == "" {
		return err
	}
	branches, err := r.git.refs(ctx, r.clone, headRoot)
	if err != nil || len(branches) < 2 {
		return err
	}
	text, err := r.git.ask(ctx, r.checkout, "log", "--walk-reflogs", "--max-count="+strconv.Itoa(maxCounted), "--format=%H", "HEAD", "--")
	if err != nil {
		return err
	}
	visited := map[string]bool{}
	for sha := range strings.FieldsSeq(text) {
		visited[sha] = true
	}
	for _, b := range branches {
		name := strings.TrimPrefix(b.name, headRoot)
		if !visited[b.sha] || b.sha == head || b.sha == base || name == i.facts.Branch || isOthers(name, r.key) {
			continue
		}
		beyond := []string{b.sha, "^" + head}
		if base != "" {
			beyond = append(beyond, "^"+base)
		}
		open, err := r.unpushed(ctx, beyond)
		if err != nil {
			return err
		}
		if len(open) > 0 {
			i.facts.Elsewhere = append(i.facts.Elsewhere, BranchFacts{name, len(open)})
		}
	}
	return nil
}

// isOthers says whether a branch was given to another item.
func isOthers(branch, key string) bool {
	last := filepath.Base(branch)
	return strings.HasPrefix(branch, branchRoot+"/") && endsInKey.MatchString(last) && !isBranchOf(branch, key)
}

// cut makes text of at most so many bytes.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
