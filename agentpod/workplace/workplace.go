// Package workplace prepares the place of a round before its runtime starts, and asks git what became of it afterwards.
//
// A team's repositories are cloned once for the home (repository.go), and each item gets a checkout of each, on a branch of its own, that
// stays over rounds (checkout.go). Then the team's hooks run: build_base for what items share (base.go), after_checkout and before_start.
// Each step is told while it runs (reporter.go, output.go). Credentials are never in a URL, an argument, a file of settings or the
// environment: git asks the agent's own program for them, which reads them anew from the mounted Secret for each use (settings.go,
// credential.go, ssh.go). After the round, facts.go asks git how things stand, and finish.go decides what that means for the hand-back.
//
// Below the agent's folder in the home it keeps:
//
//	repos/<name>.git     the clones
//	git/                 the settings of git, without any secret
//	base/<key>/          what build_base made
package workplace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Place prepares the places of all rounds of one home, one round at a time.
type Place struct {
	// Root is the agent's folder in the home.
	Root string
	// Items is the folder with the folders of the items.
	Items string
	// Credentials is the folder with a folder of credentials for each repository that has some; empty where there is none.
	Credentials string
	// Helper is the program that git is to ask for credentials: the agent's own, which answers CommandCredential and CommandSSH.
	Helper string
	// Namespace and Person say who works.
	Namespace, Person string
	// Grace is how long a hook may take to end after SIGTERM.
	Grace time.Duration
	Log   *slog.Logger

	// pauses are those between the tries to reach a remote, if they are not the usual ones.
	pauses []time.Duration
	// system gives the facts of the system that bases go by, if not toolchain does.
	system func(path, home string) []string
}

// usualPauses are those between the tries to reach a remote.
var usualPauses = []time.Duration{time.Second, 3 * time.Second}

// maxClones is how many repositories are brought at a time.
const maxClones = 2

// Order is what to prepare.
type Order struct {
	Round runtime.Round
	Hooks protocol.TeamHooks
	// Prepared says that after_checkout ran in the item's folder before. OnPrepared is called when it has run now.
	Prepared   bool
	OnPrepared func()
}

// The reasons of failures, in the words of the contract of sessions.
const (
	ReasonHook   = "lifecycle_hook_failed"
	ReasonAccess = "missing_repo_access"
	ReasonError  = "error"
)

// Failure is why a place could not be prepared.
type Failure struct {
	// Reason is that of the turn.
	Reason string
	err    error
}

// Error says what happened, and what to do about it.
func (f *Failure) Error() string { return f.err.Error() }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.err }

func failure(reason string, err error) error {
	var known *Failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &Failure{reason, err}
}

// ReasonOf gives the reason of a failure; ReasonError where it is none of this package.
func ReasonOf(err error) string {
	var f *Failure
	if errors.As(err, &f) {
		return f.Reason
	}
	return ReasonError
}

// Prepare prepares the place of a round, and returns the round with its checkouts and the environment for what runs in it. It ends
// early when ctx does. Its error holds a Failure; see ReasonOf.
func (p *Place) Prepare(ctx context.Context, o Order, report Reporter) (runtime.Round, error) {
	began := time.Now()
	round := o.Round
	names, fresh, err := p.bring(ctx, &round, report)
	if err != nil {
		return o.Round, failure(ReasonError, err)
	}
	round.Workdir = workdirOf(round)
	h := &hooks{place: p, order: o, round: &round, report: report}
	if err := h.prepare(ctx, fresh); err != nil {
		return o.Round, failure(ReasonHook, err)
	}
	report.Ready(names, time.Since(began))
	return round, nil
}

// errCut is why a step did not come to its end when the round was ended.
var errCut = errors.New("the round was cut short")

// bring gives the round its checkouts. It returns the repositories' full names, and whether there is a checkout that after_checkout has
// not run in.
func (p *Place) bring(ctx context.Context, round *runtime.Round, report Reporter) ([]string, bool, error) {
	names := []string{}
	p.tidy(ctx, *round)
	if len(round.Team.Repositories) == 0 {
		return names, false, nil
	}
	env, err := p.writeSettings(round.Team, round.Env)
	if err != nil {
		return nil, false, failure(ReasonError, err)
	}
	round.Env = env
	if err := os.MkdirAll(p.repos(), 0o750); err != nil {
		return nil, false, failure(ReasonError, err)
	}
	all := make([]brought, len(round.Team.Repositories))
	var group errgroup.Group
	group.SetLimit(maxClones)
	for i := range round.Team.Repositories {
		group.Go(func() error {
			all[i] = p.bringOne(ctx, *round, i, report)
			return nil
		})
	}
	_ = group.Wait() // each says in its own place how it went
	fresh := false
	for _, b := range all {
		err = errors.Join(err, b.err)
		names = append(names, b.name)
		round.Worktrees = append(round.Worktrees, b.worktree)
		fresh = fresh || b.fresh
	}
	if err != nil {
		round.Worktrees = nil
	}
	return names, fresh, err
}

// brought is a checkout that was made or found, or why there is none.
type brought struct {
	name     string
	worktree runtime.Worktree
	fresh    bool
	err      error
}

func (p *Place) repos() string { return filepath.Join(p.Root, "repos") }

// repository puts together what is known of the n-th repository for a round.
func (p *Place) repository(round runtime.Round, n int) *repository {
	config := round.Team.Repositories[n]
	key := itemKey(filepath.Base(round.Dir))
	r := &repository{
		TeamRepository: config,
		clone:          filepath.Join(p.repos(), folderName(config.Name)+".git"),
		checkout:       filepath.Join(round.Dir, folderName(config.Name)),
		key:            key,
		branch:         branchName(p.Person, round.Offer.WorkItem.Title, key),
		credentials:    filepath.Join(p.settings(), credentialsFile),
		pauses:         p.pauses,
		git:            newGit(round.Env, gitRecord(round.ProcessRecord, n)),
	}
	if r.pauses == nil {
		r.pauses = usualPauses
	}
	return r
}

// gitRecord is where the git of the n-th repository is noted while it runs; see process.Options.
func gitRecord(record string, n int) string {
	if record == "" {
		return ""
	}
	return record + ".git" + strconv.Itoa(n)
}

// bringOne brings the n-th repository, and tells of it.
func (p *Place) bringOne(ctx context.Context, round runtime.Round, n int, report Reporter) brought {
	r := p.repository(round, n)
	b := brought{name: r.Name}
	var err error
	if r.at, err = parseRemote(r.URL); err == nil {
		b.name = r.fullName()
	}
	phase := feed.PhaseClone
	if ref, err := r.git.ref(ctx, r.clone, itemRef(r.key, refBase)); err == nil && ref != "" && exists(r.checkout) {
		phase = feed.PhaseRestore
	}
	s := begin(report, phase, b.name)
	r.out = s.out
	fetched := false
	if err != nil {
		err = failure(ReasonAccess, err)
	} else {
		fetched, err = r.bring(ctx, &b)
	}
	if ctx.Err() != nil {
		err = errCut
	}
	if err != nil {
		s.fail(err)
		b.err = fmt.Errorf("the repository %s cannot be brought: %w", r.Name, err)
		return b
	}
	s.complete(map[string]any{"branch": b.worktree.Branch, "base": b.worktree.Base, "fetched": fetched})
	return b
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// bring makes or finds the checkout. It says whether the remote could be reached: an item whose checkout is there goes on without it.
func (r *repository) bring(ctx context.Context, b *brought) (bool, error) {
	if err := r.open(ctx); err != nil {
		return false, err
	}
	s, err := r.look(ctx)
	if err != nil {
		return false, err
	}
	kept, err := r.keep(ctx, s)
	if err != nil {
		return false, err
	}
	fetchErr := r.fetch(ctx)
	if fetchErr != nil && (ctx.Err() != nil || !kept) {
		return false, failure(ReasonAccess, fmt.Errorf("%w\nLook at the repository's URL and its credentials", fetchErr))
	}
	if fetchErr != nil {
		r.out.say("the remote cannot be reached; the work goes on with what was fetched before")
	}
	if !kept {
		if err := r.restart(ctx, s); err != nil {
			return false, err
		}
	}
	if b.worktree, err = r.worktree(ctx); err != nil {
		return false, err
	}
	ready, err := r.git.ref(ctx, r.clone, itemRef(r.key, refReady))
	b.fresh = ready == ""
	return fetchErr == nil, err
}

// worktree says where the checkout is now.
func (r *repository) worktree(ctx context.Context) (runtime.Worktree, error) {
	w := runtime.Worktree{Name: r.Name, URL: r.URL, Dir: r.checkout}
	branch, err := r.git.ask(ctx, r.checkout, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil && !saidNo(err) {
		return w, err
	}
	w.Branch = branch // none while the program has it somewhere else
	text, err := r.git.ask(ctx, r.clone, "log", "-1", "--format=%H %ce", itemRef(r.key, refBase), "--")
	if err != nil {
		return w, err
	}
	if base, by, _ := strings.Cut(text, " "); by != nobody {
		w.Base = base
	}
	return w, nil
}

// ready remembers that after_checkout ran in all checkouts of a round.
func (p *Place) ready(ctx context.Context, round runtime.Round) error {
	for n := range round.Worktrees {
		r := p.repository(round, n)
		if err := r.git.do(ctx, r.clone, "update-ref", itemRef(r.key, refReady), itemRef(r.key, refBase)); err != nil {
			return err
		}
	}
	return nil
}
