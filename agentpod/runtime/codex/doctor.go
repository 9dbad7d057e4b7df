package codex

// This file checks that Codex can work here: that it is there, new enough, understands its configuration, and has something to sign in
// with. It starts the app-server, which makes no call to a model.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/version"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// minVersion is the oldest Codex whose app-server has what the runtime uses.
var minVersion = version.Version{0, 160, 0}

// examineWait is how long each of the doctor's steps may take.
const examineWait = 20 * time.Second

// The names of the doctor's checks.
const (
	checkRuns   = "Codex runs"
	checkSignIn = "Codex can sign in"
)

// Doctor checks that Codex is there and could sign in.
func (c *Codex) Doctor(ctx context.Context) []protocol.DoctorCheck {
	there := c.checkThere(ctx)
	if there.Status != protocol.CheckOK {
		return []protocol.DoctorCheck{there}
	}
	problem, signIn := c.checkServer(ctx)
	if problem != "" {
		there.Status, there.Detail = protocol.CheckFail, there.Detail+", but its app-server does not work: "+problem
		there.Fix = "run codex app-server in the agent's pod to see why; often " + filepath.Join(homeOf(c.Env), "config.toml") + " is wrong"
		return []protocol.DoctorCheck{there}
	}
	return []protocol.DoctorCheck{there, signIn}
}

// checkThere looks for the program and its version.
func (c *Codex) checkThere(ctx context.Context) protocol.DoctorCheck {
	check := protocol.DoctorCheck{Name: checkRuns, Status: protocol.CheckFail}
	install := fmt.Sprintf("use an image of the agent that has Codex %s or newer on its PATH, such as by npm install --global @openai/codex",
		minVersion)
	path, err := exec.LookPath(c.program())
	if err != nil {
		check.Detail, check.Fix = fmt.Sprintf("%s was not found on the agent's PATH", c.program()), install
		return check
	}
	said, err := version.Said(ctx, path, c.Env, examineWait)
	if err != nil {
		check.Detail, check.Fix = fmt.Sprintf("%s --version fails: %v", path, err), install
		return check
	}
	found, ok := parseVersion(said)
	switch {
	case !ok:
		words := clip(strings.TrimSpace(said), 100)
		check.Detail, check.Fix = fmt.Sprintf("%s --version says %q, which names no version", path, words), install
	case found.Before(minVersion):
		check.Detail, check.Fix = fmt.Sprintf("%s is version %s, and the least is %s", path, found, minVersion), install
	default:
		check.Status, check.Detail = protocol.CheckOK, fmt.Sprintf("%s is version %s", path, found)
	}
	return check
}

var versionPattern = regexp.MustCompile(`\d+\.\d+\.\d+`)

// parseVersion finds the version in what a program says about itself.
func parseVersion(text string) (version.Version, bool) {
	return version.Parse(versionPattern.FindString(text))
}

// checkServer starts the app-server and asks it who is signed in. It returns why it does not work, or the check of the login.
func (c *Codex) checkServer(ctx context.Context) (problem string, signIn protocol.DoctorCheck) {
	ctx, cancel := context.WithTimeout(ctx, examineWait)
	defer cancel()
	dir, err := os.MkdirTemp("", "bullpen-codex-")
	if err != nil {
		return err.Error(), signIn
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder for what need not last
	round := runtime.Round{Env: c.Env, Workdir: dir, Grace: time.Second}
	t := &talk{codex: c, round: round, log: c.Log, sink: silent{}, memory: &memory{}, windows: limits{}}
	if t.server, err = c.serve(round, c.Log); err != nil {
		return err.Error(), signIn
	}
	defer t.server.stop(true, func(*message) {})
	var who account
	for _, step := range []func(context.Context) error{t.initialize, t.readConfig, func(ctx context.Context) error {
		return t.call(ctx, "account/read", map[string]bool{"refreshToken": false}, &who)
	}} {
		if err := step(ctx); err != nil {
			return t.notBegun(context.Background(), err).words, signIn
		}
	}
	return "", t.checkLogin(who)
}

// checkLogin says whether Codex has something to sign in with.
func (t *talk) checkLogin(who account) protocol.DoctorCheck {
	check := protocol.DoctorCheck{Name: checkSignIn, Status: protocol.CheckOK}
	_, from := keyOf(t.round.Env)
	provider := t.config.provider()
	switch {
	case provider != nil && provider.EnvKey != "" && lookup(t.round.Env, provider.EnvKey) == "":
		check.Status = protocol.CheckFail
		check.Detail = fmt.Sprintf("the model provider %s wants its key in %s, which is not in the agent's environment",
			t.config.Config.Provider, provider.EnvKey)
		check.Fix = "give the person a Secret with " + provider.EnvKey + " (spec.agent.secrets)"
	case !who.Needed:
		check.Detail = "the model provider " + t.config.Config.Provider + " needs no login of OpenAI"
	case from != "":
		check.Detail = "with the key in " + from
	case who.Account != nil:
		check.Detail = "with " + t.credential()
	default:
		check.Status = protocol.CheckFail
		check.Detail = "there is neither a key in CODEX_API_KEY or OPENAI_API_KEY nor a login in " + loginOf(t.round.Env)
		check.Fix = "give the person a Secret with CODEX_API_KEY or OPENAI_API_KEY (spec.agent.secrets), or sign in once in the agent's pod " +
			"with codex login --device-auth"
	}
	return check
}

// silent is a sink for a conversation that is no round.
type silent struct{ runtime.Sink }

// Progress drops the line.
func (silent) Progress(string) {}

// Usage drops the windows.
func (silent) Usage([]protocol.UsageWindow) {}
