package workplace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestWorkThatIsOnlyInTheHomeIsUnfinished(t *testing.T) {
	const page = "https://github.com/shop/api/compare/main...fix"
	for name, test := range map[string]struct {
		facts RepositoryFacts
		want  Finish
	}{
		"nothing": {RepositoryFacts{}, Finish{}},
		"all is pushed": {RepositoryFacts{Commits: 2, RemoteBranch: "fix"},
			Finish{Review: []string{"2 commits on branch fix of api"}, Links: []protocol.Link{{URL: page, Title: "branch fix of api"}}}},
		"a commit is not": {RepositoryFacts{Commits: 2, Unpushed: 1, RemoteBranch: "fix"}, Finish{
			Unfinished: []string{"Repository api, branch fix: 1 commit is not pushed."},
			Review:     []string{"1 commit on branch fix of api"}, Links: []protocol.Link{{URL: page, Title: "branch fix of api"}},
		}},
		"nothing is": {RepositoryFacts{Commits: 2, Unpushed: 2},
			Finish{Unfinished: []string{"Repository api, branch fix: 2 commits are not pushed."}}},
		"a file has changes": {RepositoryFacts{Changed: 1, Untracked: 2},
			Finish{Unfinished: []string{"Repository api, branch fix: 1 file has changes that are not committed, 2 files are not known to git."}}},
		"files are all there is": {RepositoryFacts{Untracked: 1},
			Finish{Unfinished: []string{"Repository api, branch fix: 1 file is not known to git."}}},
		"files are beside what is pushed": {RepositoryFacts{Commits: 1, Untracked: 3, RemoteBranch: "main"}, Finish{
			Notes:  []string{"Repository api, branch fix: 3 files are not known to git."},
			Review: []string{"1 commit on branch main of api"},
		}},
		"work is on another branch": {RepositoryFacts{Elsewhere: []BranchFacts{{"other", 2}}},
			Finish{Unfinished: []string{"Repository api, branch fix: 2 commits on branch other not pushed."}}},
		"git said nothing": {RepositoryFacts{Trouble: "the disk is gone", Unpushed: 1},
			Finish{Notes: []string{"Git could not be asked about the repository api: the disk is gone."}}},
		"others' work was brought": {RepositoryFacts{RemoteBranch: "main"}, Finish{}},
	} {
		t.Run(name, func(t *testing.T) {
			test.facts.Name, test.facts.URL, test.facts.Branch, test.facts.Default = "api", "git@github.com:shop/api.git", "fix", "main"
			got := Facts{Repositories: []RepositoryFacts{test.facts}}.Finish()
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
	got := Facts{Repositories: []RepositoryFacts{{Name: "a", Unpushed: 1, Commits: 1}, {Name: "b", Branch: "x", Changed: 2}}}.Finish()
	want := []string{
		"Repository a, on no branch: 1 commit is not pushed.", "Repository b, branch x: 2 files have changes that are not committed.",
	}
	if diff := cmp.Diff(want, got.Unfinished); diff != "" {
		t.Error(diff)
	}
}
