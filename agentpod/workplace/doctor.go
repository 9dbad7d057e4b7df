package workplace

// This file checks that rounds can have the team's repositories.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// minGit is the oldest version of git that the agent can work with: it takes the system's settings from where GIT_CONFIG_SYSTEM says.
var minGit = [2]int{2, 32}

// Doctor checks what a team's repositories need: git, ssh where one is reached by it, and the credentials that they name. A team without
// repositories needs nothing. It asks no remote.
func (p *Place) Doctor(ctx context.Context, repositories []protocol.TeamRepository) []protocol.DoctorCheck {
	if len(repositories) == 0 {
		return nil
	}
	checks := []protocol.DoctorCheck{checkGit(ctx, usesSSH(repositories))}
	if check, needed := p.checkCredentials(repositories); needed {
		checks = append(checks, check)
	}
	return checks
}

func usesSSH(repositories []protocol.TeamRepository) bool {
	for _, r := range repositories {
		if at, err := parseRemote(r.URL); err == nil && at.scheme == "ssh" {
			return true
		}
	}
	return false
}

// checkGit looks for the programs.
func checkGit(ctx context.Context, ssh bool) protocol.DoctorCheck {
	check := protocol.DoctorCheck{
		Name: "Git runs", Status: protocol.CheckFail,
		Fix: "Use an image for the agent that has git, and ssh where a repository is reached by it.",
	}
	program, err := exec.LookPath("git")
	if err != nil {
		check.Detail = "The team has repositories, and git is not in PATH."
		return check
	}
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Dir = "/"
	said, err := cmd.Output()
	text := strings.TrimSpace(string(said))
	switch {
	case err != nil:
		check.Detail = fmt.Sprintf("%s cannot be run: %v.", program, err)
		return check
	case !newEnough(text):
		check.Detail = fmt.Sprintf("%s is %s; the agent needs %d.%d or newer.", program, text, minGit[0], minGit[1])
		return check
	}
	if ssh {
		if _, err := exec.LookPath("ssh"); err != nil {
			check.Detail = "A repository is reached by ssh, and ssh is not in PATH."
			return check
		}
	}
	return protocol.DoctorCheck{Name: check.Name, Status: protocol.CheckOK, Detail: text + "."}
}

var versionOfGit = regexp.MustCompile(`(\d+)\.(\d+)`)

// newEnough reads what git --version says.
func newEnough(text string) bool {
	m := versionOfGit.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	return err1 == nil && err2 == nil && (major > minGit[0] || major == minGit[0] && minor >= minGit[1])
}

// checkCredentials looks at the Secrets that are mounted; false if no repository names one.
func (p *Place) checkCredentials(repositories []protocol.TeamRepository) (protocol.DoctorCheck, bool) {
	var troubles, fine []string
	for _, r := range repositories {
		at, err := parseRemote(r.URL)
		if err == nil && r.Credentials != "" {
			err = p.usable(r, at)
		}
		switch {
		case err != nil:
			troubles = append(troubles, r.Name+": "+err.Error())
		case r.Credentials != "":
			fine = append(fine, r.Name)
		}
	}
	check := protocol.DoctorCheck{
		Name: "Repositories have credentials", Status: protocol.CheckOK, Detail: "There for: " + strings.Join(fine, ", ") + ".",
	}
	if len(troubles) > 0 {
		check.Status = protocol.CheckFail
		check.Detail = strings.Join(troubles, "; ") + "."
		check.Fix = "Correct the repository in the Team, or the Secret that it names; a Secret is read anew for each use."
	}
	return check, len(troubles) > 0 || len(fine) > 0
}

// usable says what is wrong with the credentials of a repository.
func (p *Place) usable(r protocol.TeamRepository, at remote) error {
	s, err := helperConfig{Folder: p.Credentials}.secret(r.Credentials)
	if err != nil {
		return err
	}
	switch {
	case at.web():
		_, _, err = s.login()
	case at.scheme == "ssh":
		_, err = os.Stat(filepath.Join(string(s), keySSH))
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("the credentials %s are none for ssh: their Secret has to have the key %s", s, keySSH)
		}
	default:
		err = fmt.Errorf("it names the credentials %s, which are of no use for a URL of its kind", s)
	}
	return err
}
