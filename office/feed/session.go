package feed

// This file has what is said of sessions outside the session object: whose records they are, and what they did to git.

import "time"

// SessionRef names a session and the team whose retention its records obey.
type SessionRef struct {
	ID        string
	Namespace string
	Team      string
}

// Git is what a session did to git, an entry for each repository in its workspace.
type Git struct {
	Repos List[GitRepo] `json:"repos"`
}

// GitRepo is one repository of a workspace.
type GitRepo struct {
	// FullName is owner/name where the repository's URL has an owner, else its name.
	FullName string `json:"full_name"`
	// LocalCommit is the commit that the worktree is at.
	LocalCommit *string `json:"local_commit"`
	// LocalUncommittedFiles have changes that no commit has.
	LocalUncommittedFiles List[GitFile] `json:"local_uncommitted_files"`
	// RemoteBranch is the branch's name at the remote and RemoteCommit where it is there, as far as was pushed.
	RemoteBranch *string `json:"remote_branch"`
	RemoteCommit *string `json:"remote_commit"`
	// Commits are those that the branch has beyond where it began, the latest first, of which there may be more than are listed.
	Commits      List[GitCommit] `json:"commits"`
	CommitsTotal int             `json:"commits_total"`
	PRs          List[GitPR]     `json:"prs"`
}

// GitFile is a file with uncommitted changes. Status is added, modified, deleted, renamed or untracked.
type GitFile struct {
	Path      string `json:"path"`
	Status    string `json:"status"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
}

// GitCommit is one commit of a session.
type GitCommit struct {
	SHA         string    `json:"sha"`
	Subject     string    `json:"subject"`
	CommittedAt time.Time `json:"committed_at"`
	Pushed      bool      `json:"pushed"`
}

// GitPR is a pull request that the session opened.
type GitPR struct {
	GHPRID *int64  `json:"gh_pr_id"`
	Number int     `json:"number"`
	Title  *string `json:"title"`
	URL    string  `json:"url"`
}
