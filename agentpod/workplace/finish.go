package workplace

// This file decides what the state of the checkouts means for the hand-back of a round. All of it is pure.

import (
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Finish is what the state of the checkouts means for a hand-back.
type Finish struct {
	// Unfinished has a sentence for each repository with work that is only in the agent's home. Work that is done has none.
	Unfinished []string
	// Notes has a sentence for what is worth telling, but keeps nothing from being done.
	Notes []string
	// Links are pages that show what was pushed.
	Links []protocol.Link
	// Review names what was pushed, for others to look at.
	Review []string
}

// Finish decides.
//
// Commits that no remote has are unfinished work, on the branch of the checkout or on another that the round was on, and so are changes
// without a commit to files that git knows. Files that git does not know are unfinished work only where nothing was committed at all, for
// then they are all that was made; beside commits they are more often what a build leaves behind, and worth a note. What is ignored does
// not count.
func (f Facts) Finish() Finish {
	var out Finish
	for _, r := range f.Repositories {
		if r.Trouble != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("Git could not be asked about the repository %s: %s.", r.Name, r.Trouble))
			continue
		}
		if open := r.unfinished(); len(open) > 0 {
			out.Unfinished = append(out.Unfinished, fmt.Sprintf("Repository %s%s: %s.", r.Name, onBranch(r.Branch), strings.Join(open, ", ")))
		} else if r.Untracked > 0 {
			out.Notes = append(out.Notes,
				fmt.Sprintf("Repository %s%s: %s.", r.Name, onBranch(r.Branch), count(r.Untracked, "file is", "files are")+" not known to git"))
		}
		if r.RemoteBranch == "" || r.Commits == r.Unpushed {
			continue
		}
		out.Review = append(out.Review,
			fmt.Sprintf("%s on branch %s of %s", count(r.Commits-r.Unpushed, "commit", "commits"), r.RemoteBranch, r.Name))
		if at, err := parseRemote(r.URL); err == nil {
			if page := at.branchPage(r.Default, r.RemoteBranch); page != "" {
				out.Links = append(out.Links, protocol.Link{URL: page, Title: "branch " + r.RemoteBranch + " of " + r.Name})
			}
		}
	}
	return out
}

// unfinished says what of the work is only here.
func (r RepositoryFacts) unfinished() []string {
	var open []string
	if r.Unpushed > 0 {
		open = append(open, count(r.Unpushed, "commit is", "commits are")+" not pushed")
	}
	if r.Changed > 0 {
		open = append(open, count(r.Changed, "file has", "files have")+" changes that are not committed")
	}
	if r.Untracked > 0 && (len(open) > 0 || r.Commits == 0) {
		open = append(open, count(r.Untracked, "file is", "files are")+" not known to git")
	}
	for _, b := range r.Elsewhere {
		open = append(open, count(b.Unpushed, "commit", "commits")+" on branch "+b.Name+" not pushed")
	}
	return open
}

func onBranch(name string) string {
	if name == "" {
		return ", on no branch"
	}
	return ", branch " + name
}

// count says how many there are of something.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
