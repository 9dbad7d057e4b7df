package agent

// These tests are about rounds with repositories: what the office is told of what git says.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/workplace"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// codeHost makes a repository with one commit on the branch main, somewhere else.
func codeHost(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := exec.CommandContext(t.Context(), "/bin/sh", "-ec", `
		git init -q --bare --template= --initial-branch=main shop.git
		git clone -q --template= shop.git work 2>/dev/null; cd work
		echo hello > README; git add README
		git -c user.name=Bo -c user.email=bo@example.com commit -q -m Begin; git push -q origin HEAD:main`)
	script.Dir, script.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "shop.git")
}

// withRepository is the team with a repository.
func withRepository(url string) protocol.Raw {
	return protocol.Raw(strings.TrimSuffix(teamJSON, "}") + fmt.Sprintf(`,"repositories":[{"name":"shop","url":%q}]}`, url))
}

// inShop begins a program in the item's checkout.
const inShop = `cd "$BULLPEN_ITEM_DIR/shop"; echo work >> work.txt; commit() { git add -A && git commit -q -m "Do some work"; }; `

func TestAHandBackSaysWhatGitSays(t *testing.T) {
	for name, test := range map[string]struct {
		program, kind string
		want          protocol.Handback
		// begins has the summary only begin so.
		begins bool
	}{
		"what was pushed is there to look at": {inShop + `commit; git push -q 2>/dev/null; echo made it`, "task", protocol.Handback{
			Status: "done", Summary: "made it", ToReview: []string{"1 commit on branch BRANCH of shop"},
		}, false},
		"what the program names counts": {inShop + `commit; git push -q 2>/dev/null; echo '{"summary":"s","toReview":["this"]}' > "$BULLPEN_RESULT_FILE"`, "task",
			protocol.Handback{Status: "done", Summary: "s", ToReview: []string{"this"}}, false},
		"what was not pushed blocks": {inShop + `commit; echo '{"summary":"s","toReview":["this"]}' > "$BULLPEN_RESULT_FILE"`, "task", protocol.Handback{
			Status: "blocked", Summary: "Repository shop, branch BRANCH: 1 commit is not pushed. That is only in the agent's home", ToReview: []string{"this"},
		}, true},
		"what was not committed blocks": {inShop + `echo changed > README; echo made it`, "task", protocol.Handback{
			Status: "blocked", Summary: "Repository shop, branch BRANCH: 1 file has changes that are not committed, 1 file is not known to git. That is",
		}, true},
		"who blocks says why": {inShop + `commit; echo '{"summary":"no access","status":"blocked"}' > "$BULLPEN_RESULT_FILE"`, "task",
			protocol.Handback{Status: "blocked", Summary: "no access"}, false},
		"a kind of work without a review is done": {inShop + `commit; echo made it`, "chore", protocol.Handback{
			Status: "done", Summary: "Repository shop, branch BRANCH: 1 commit is not pushed.\n\nmade it", ToReview: []string{"chore needs no review"},
		}, false},
		"nothing was done": {`echo looked`, "task", protocol.Handback{Status: "done", Summary: "looked"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.team = withRepository(codeHost(t))
			p := newPlace(t, o, test.program)
			p.start()
			office := o.welcome()
			office.accepted("i", func(o *protocol.Offer) { o.WorkItem.Kind = test.kind })
			got := expect[protocol.Handback](office).message
			branch := strings.TrimPrefix(content(filepath.Join(p.home, ".bullpen/repos/shop.git/worktrees/shop/HEAD")), "ref: refs/heads/")
			if !strings.HasPrefix(branch, "bullpen/ada/do-i-") {
				t.Errorf("the branch is %q", branch)
			}
			test.want.WorkItemID = "i"
			test.want.Summary = strings.ReplaceAll(test.want.Summary, "BRANCH", branch)
			for n := range test.want.ToReview {
				test.want.ToReview[n] = strings.ReplaceAll(test.want.ToReview[n], "BRANCH", branch)
			}
			if test.begins && strings.HasPrefix(got.Summary, test.want.Summary) {
				test.want.Summary = got.Summary
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARoundThatIsCutShortIsInterruptedHoweverItsCheckoutLooks(t *testing.T) {
	o := newOffice(t)
	o.team = withRepository(codeHost(t))
	p := newPlace(t, o, inShop+`[ "$BULLPEN_ROUND" = 1 ] || { commit; git push -q 2>/dev/null; exit; }
		echo changed > README; touch "$HOME/started"; while :; do sleep 0.01; done`)
	a := p.start()
	office := o.welcome()
	office.accepted("i")
	eventually(t, "the program works", func() bool { _, err := os.Stat(filepath.Join(p.home, "started")); return err == nil })
	a.stop()
	h := expect[protocol.Handback](office)
	if h.message.Status != protocol.HandbackInterrupted || strings.Contains(h.message.Summary, "only in the agent's home") {
		t.Errorf("handed back %+v", h.message)
	}
	office.ack(h.id)
	a.wait()

	p.start() // the next pod goes on where this one was
	office = o.welcome()
	office.accepted("i")
	next := expect[protocol.Handback](office).message
	if next.Status != protocol.HandbackDone || len(next.ToReview) != 1 {
		t.Errorf("handed back %+v", next)
	}
	if got := content(p.file("i", "shop/work.txt")); got != "work\nwork" {
		t.Errorf("the work is %q", got)
	}
}

func TestARepositoryThatCannotBeClonedFailsTheRound(t *testing.T) {
	o := newOffice(t)
	o.team = withRepository("/no/such/repository")
	p := newPlace(t, o, `echo run > "$BULLPEN_ITEM_DIR/ran"`)
	p.start()
	office := o.welcome()
	office.accepted("i")
	fail := expect[protocol.Fail](office).message
	if !strings.Contains(fail.Reason, "the repository shop cannot be brought") || !strings.Contains(fail.Reason, "/no/such/repository") {
		t.Errorf("failed with %q", fail.Reason)
	}
	if content(p.file("i", "ran")) != "" {
		t.Error("the program ran all the same")
	}
}

func TestWithoutWhatRepositoriesNeedOffersAreDeclined(t *testing.T) {
	o := newOffice(t)
	o.team = protocol.Raw(strings.Replace(string(withRepository(codeHost(t))), `"name":"shop"`, `"name":"shop","credentials":"deploy"`, 1))
	p := newPlace(t, o, `echo made it`)
	p.env["BULLPEN_GIT_CREDENTIALS"] = filepath.Join(p.home, "credentials")
	p.start(func(c *Config) { c.recheck = 5 * time.Millisecond })
	office := o.welcome()
	expectWhere(office, func(r protocol.DoctorReport) bool {
		for _, c := range r.Checks {
			if c.Name == "Repositories have credentials" && c.Status == protocol.CheckFail && c.Fix != "" {
				return true
			}
		}
		return false
	})
	office.offer("i")
	decline := expect[protocol.Decline](office)
	if !strings.HasPrefix(decline.message.Reason, "Repositories have credentials: shop: ") {
		t.Errorf("declined with %q", decline.message.Reason)
	}
	office.ack(decline.id)
	// A team that is corrected needs no restart.
	if err := os.MkdirAll(filepath.Join(p.home, "credentials"), 0o750); err != nil {
		t.Fatal(err)
	}
	office.close(1012)
	o.team = protocol.Raw(strings.Replace(string(o.team), `,"credentials":"deploy"`, "", 1))
	office = o.welcome()
	expectWhere(office, func(r protocol.DoctorReport) bool {
		for _, c := range r.Checks {
			if c.Status == protocol.CheckFail {
				return false
			}
		}
		return true
	})
	office.accepted("i")
	expect[protocol.Handback](office)
}

func TestTheEndOfARoundIsWhatItSaysUnlessItsWorkIsHidden(t *testing.T) {
	unfinished := workplace.Finish{Unfinished: []string{"U."}, Notes: []string{"N."}}
	pushed := workplace.Finish{
		Review: []string{"1 commit"}, Links: []protocol.Link{{URL: "https://x/1", Title: "branch"}},
	}
	const hint = "That is only in the agent's home: let the item go on to have it committed and pushed."
	for name, test := range map[string]struct {
		kind   string
		result runtime.Result
		made   []string
		none   bool
		left   workplace.Finish
		want   protocol.Message
	}{
		"a failure stays one": {"task", runtime.Result{Failed: "no"}, nil, false, unfinished, protocol.Fail{WorkItemID: "i", Reason: "no"}},
		"done":                {"task", runtime.Result{Summary: "s"}, nil, false, workplace.Finish{}, protocol.Handback{Status: "done", Summary: "s"}},
		"done with a note":    {"task", runtime.Result{Summary: "s"}, []string{"PR"}, false, workplace.Finish{Notes: []string{"N."}}, protocol.Handback{Status: "done", Summary: "N.\n\ns", ToReview: []string{"PR"}}},
		"pushed":              {"task", runtime.Result{}, nil, false, pushed, protocol.Handback{Status: "done", ToReview: []string{"1 commit"}, Links: pushed.Links}},
		"pushed, and a pull request made": {"task", runtime.Result{}, []string{"PR"}, false, pushed,
			protocol.Handback{Status: "done", ToReview: []string{"PR"}, Links: pushed.Links}},
		"the page is linked once": {"task", runtime.Result{Links: []protocol.Link{{URL: "https://x/1", Title: "mine"}}}, nil, false, pushed,
			protocol.Handback{Status: "done", ToReview: []string{"1 commit"}, Links: []protocol.Link{{URL: "https://x/1", Title: "mine"}}}},
		"hidden work":                     {"task", runtime.Result{Summary: "s"}, nil, false, unfinished, protocol.Handback{Status: "blocked", Summary: "U. N. " + hint + "\n\ns"}},
		"hidden work without a summary":   {"task", runtime.Result{}, nil, false, unfinished, protocol.Handback{Status: "blocked", Summary: "U. N. " + hint}},
		"hidden work that nobody reviews": {"chore", runtime.Result{}, nil, true, unfinished, protocol.Handback{Status: "done", Summary: "N. U.", ToReview: []string{"chore needs no review"}}},
		"an answer":                       {"question", runtime.Result{}, nil, false, unfinished, protocol.Handback{Status: "done", Summary: "N. U."}},
		"a chat":                          {"chat", runtime.Result{}, nil, false, unfinished, protocol.Handback{Status: "done", Summary: "N. U."}},
		"a round that waits":              {"task", runtime.Result{Status: "waiting", Summary: "s"}, nil, false, unfinished, protocol.Handback{Status: "waiting", Summary: "s"}},
		"a round that was interrupted":    {"task", runtime.Result{Status: "interrupted", Summary: "s"}, nil, false, unfinished, protocol.Handback{Status: "interrupted", Summary: "s"}},
	} {
		t.Run(name, func(t *testing.T) {
			round := runtime.Round{Offer: protocol.Offer{WorkItem: protocol.WorkItem{ID: "i", Kind: test.kind}}}
			if h, ok := test.want.(protocol.Handback); ok {
				h.WorkItemID = "i"
				test.want = h
			}
			if diff := cmp.Diff(test.want, endingOf(round, test.result, test.made, test.none, test.left), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheSessionShowsThePreparationAndWhatGitSays(t *testing.T) {
	o := newOffice(t)
	o.team = withRepository(codeHost(t))
	p := newPlace(t, o, inShop+`commit; git push -q 2>/dev/null; echo open > open.txt`)
	p.start()
	office := o.welcome()
	office.accepted("i")
	office.ack(expect[protocol.Handback](office).id)
	list := o.whole("i", 1)
	var phases []string
	var git feed.Git
	for _, e := range list {
		switch e.Type {
		case feed.TypeEnvironmentPhase:
			var phase feed.EnvironmentPhase
			if err := json.Unmarshal(e.Payload, &phase); err != nil {
				t.Fatal(err)
			}
			phases = append(phases, phase.Phase+" "+*phase.Step+" "+phase.Status)
		case feed.StateGit:
			if err := json.Unmarshal(e.Payload, &git); err != nil || e.Format != feed.FormatState {
				t.Fatalf("%v: %+v", err, e)
			}
		}
	}
	if diff := cmp.Diff([]string{"clone shop started", "clone shop completed"}, phases); diff != "" {
		t.Error(diff)
	}
	if list[len(list)-1].Type != feed.TypeTurnEnded {
		t.Error("the turn's end is not the last record")
	}
	if len(git.Repos) != 1 {
		t.Fatalf("git says %+v", git)
	}
	repo := git.Repos[0]
	if repo.FullName != "shop" || repo.LocalCommit == nil || repo.RemoteCommit == nil || *repo.LocalCommit != *repo.RemoteCommit ||
		repo.CommitsTotal != 1 || len(repo.Commits) != 1 || !repo.Commits[0].Pushed || repo.Commits[0].Subject != "Do some work" ||
		len(repo.LocalUncommittedFiles) != 1 || repo.LocalUncommittedFiles[0] != (feed.GitFile{Path: "open.txt", Status: "untracked", Additions: 1}) {
		t.Errorf("git says %+v", repo)
	}
}

func TestATurnSaysWhyItsPlaceCouldNotBePrepared(t *testing.T) {
	for name, test := range map[string]struct {
		team   protocol.Raw
		reason string
	}{
		"a repository": {withRepository("/no/such/repository"), "missing_repo_access"},
		"a hook":       {preparing(t, "exit 3"), "lifecycle_hook_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.team = test.team
			newPlace(t, o, "echo bye").start()
			office := o.welcome()
			office.accepted("i")
			office.ack(expect[protocol.Fail](office).id)
			list := o.whole("i", 1)
			if end := ended(t, list[len(list)-1]); end.Status != "failed" || end.Reason == nil || *end.Reason != test.reason {
				t.Errorf("the turn ended with %+v", end)
			}
		})
	}
}
