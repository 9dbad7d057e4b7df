package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/workplace"
)

func TestGitRunsTheAgentForItsCredentials(t *testing.T) {
	// Neither finds what an agent writes for git, and says so: that is the rest of it, package workplace tests.
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for command, args := range map[string]string{
		workplace.CommandCredential: nowhere + " get",
		workplace.CommandSSH:        nowhere + " git@git.example.com git-upload-pack",
	} {
		cmd := again(t, envRole+"=agent", "ARGS="+command+" "+args)
		cmd.Stdin = strings.NewReader("protocol=https\nhost=git.example.com\npath=a/b\n\n")
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); err == nil || code == contract.ExitConfig || !strings.HasPrefix(string(out), "bullpen-agent: ") {
			t.Errorf("%s: exit code %d, %s", command, code, out)
		}
	}
}
