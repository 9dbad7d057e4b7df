// Command demo-worker is the program that the demo's agents run in place of a model: it does what a work item's sh block says, in a
// clone of the demo's repository, runs the tests, and commits and pushes a branch.
//
// It is also an example of a program for the command runtime: the offer comes as JSON on standard input, each line of standard
// output is progress, and the result goes to the file named in BULLPEN_RESULT_FILE.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
)

// offer is the part of an offer that the worker needs.
type offer struct {
	WorkItem struct {
		Title string `json:"title"`
	} `json:"workItem"`
	Context struct {
		Journal []struct {
			Text string `json:"text"`
		} `json:"journal"`
	} `json:"context"`
}

// result is what the worker leaves for the hand-back.
type result struct {
	Summary  string   `json:"summary"`
	Status   string   `json:"status"`
	ToReview []string `json:"toReview"`
}

func main() {
	if err := work(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(stdin io.Reader) error {
	var o offer
	if err := json.NewDecoder(stdin).Decode(&o); err != nil {
		return fmt.Errorf("the offer on standard input is not JSON: %w", err)
	}
	if len(o.Context.Journal) == 0 {
		return errors.New("the offer has no journal, so it asks for nothing")
	}
	script, err := block(o.Context.Journal[0].Text)
	if err != nil {
		return err
	}
	clone := filepath.Join(os.Getenv(contract.EnvItemDir), "repository")
	branch := "item/" + slug(o.WorkItem.Title)
	fmt.Println("cloning")
	if err := checkout(clone, branch); err != nil {
		return err
	}
	fmt.Println("working on", branch)
	if err := run(clone, "sh", "-euc", script); err != nil {
		return fmt.Errorf("the item's sh block failed: %w", err)
	}
	fmt.Println("running the tests")
	if err := run(clone, "go", "test", "./..."); err != nil {
		return fmt.Errorf("the tests fail: %w", err)
	}
	return handOver(clone, branch, o.WorkItem.Title)
}

// checkout makes a fresh clone with the branch; what an earlier round left is thrown away.
func checkout(clone, branch string) error {
	if err := os.RemoveAll(clone); err != nil {
		return err
	}
	repository := os.Getenv("DEMO_REPOSITORY")
	if repository == "" {
		return errors.New("DEMO_REPOSITORY is not set: it is the path or URL of the repository to work on")
	}
	if err := run(".", "git", "clone", "-q", repository, clone); err != nil {
		return err
	}
	return run(clone, "git", "checkout", "-q", "-B", branch, "origin/main")
}

// handOver commits, pushes, and writes the result.
func handOver(clone, branch, title string) error {
	if err := run(clone, "git", "add", "-A"); err != nil {
		return err
	}
	person := os.Getenv(contract.EnvPerson)
	if err := run(clone, "git", "-c", "user.name="+person, "-c", "user.email="+person+"@demo.invalid", "commit", "-qm", title); err != nil {
		return err
	}
	fmt.Println("pushing", branch)
	if err := run(clone, "git", "push", "-q", "-f", "origin", "HEAD:"+branch); err != nil {
		return err
	}
	commit, err := output(clone, "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return err
	}
	stat, err := output(clone, "git", "diff", "--shortstat", "origin/main", "HEAD")
	if err != nil {
		return err
	}
	data, err := json.Marshal(result{
		Summary:  fmt.Sprintf("Branch %s at %s:%s; the tests pass.", branch, commit, " "+stat),
		Status:   "done",
		ToReview: []string{"branch " + branch + " at " + commit},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(os.Getenv(contract.EnvResultFile), data, 0o600)
}

// run runs a program in a folder; its output goes to the agent's log, and the last line of it into the error.
func run(dir, name string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, io.MultiWriter(os.Stderr, &said)
	err := cmd.Run()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Errorf("%s (%w)", last, err)
	}
	return fmt.Errorf("%s %s: %w", name, args[0], err)
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	return string(bytes.TrimSpace(out)), err
}

var shBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// block finds the sh block of a body.
func block(body string) (string, error) {
	found := shBlock.FindStringSubmatch(body)
	if found == nil {
		return "", errors.New("the item's body has no ```sh block; the demo's worker knows nothing else")
	}
	return found[1], nil
}

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// slug makes a branch name of a title.
func slug(title string) string {
	return strings.Trim(notWord.ReplaceAllString(strings.ToLower(title), "-"), "-")
}
