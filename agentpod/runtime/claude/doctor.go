package claude

// This file checks that Claude Code can work here, without a call of the model.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/runtime/version"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// minVersion is the oldest version of Claude Code that the runtime is tested with.
var minVersion = version.Version{2, 1, 197}

// versionWait is how long the program may take to say its version.
const versionWait = 30 * time.Second

// Doctor checks that the program is there and not too old, and that it has something to sign in with.
func (c *Claude) Doctor(ctx context.Context) []protocol.DoctorCheck {
	return []protocol.DoctorCheck{c.checkProgram(ctx), c.checkCredentials()}
}

// checkProgram checks the program and its version.
func (c *Claude) checkProgram(ctx context.Context) protocol.DoctorCheck {
	check := protocol.DoctorCheck{Name: "Claude Code runs", Status: protocol.CheckFail}
	path, err := exec.LookPath(c.program())
	if err != nil {
		check.Detail = fmt.Sprintf("%s cannot be run: %v", c.program(), errors.Unwrap(err))
		check.Fix = "use an image that has it on the PATH: npm install -g @anthropic-ai/claude-code"
		return check
	}
	out, err := version.Said(ctx, path, append(c.Env[:len(c.Env):len(c.Env)], "DISABLE_AUTOUPDATER=1"), versionWait)
	if err != nil {
		check.Detail = fmt.Sprintf("%s --version failed: %v", path, err)
		check.Fix = "install it again: npm install -g @anthropic-ai/claude-code"
		return check
	}
	said := firstLine(out)
	found, ok := parseVersion(said)
	switch {
	case !ok:
		check.Detail = fmt.Sprintf("%s --version said %q, which is no version", path, shorten(said))
		check.Fix = "install it again: npm install -g @anthropic-ai/claude-code"
	case found.Before(minVersion):
		check.Detail = fmt.Sprintf("%s is version %s; at least %s is needed", path, found, minVersion)
		check.Fix = "update it in the image: npm install -g @anthropic-ai/claude-code"
	default:
		check.Status = protocol.CheckOK
		check.Detail = fmt.Sprintf("%s is version %s", path, found)
	}
	return check
}

// credentials are the variables by which Claude Code signs in, or reaches a provider that signs in its own way.
var credentials = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
	"CLAUDE_CODE_USE_FOUNDRY",
}

// checkCredentials checks that there is something to sign in with. Whether it is good only a call of the model would tell.
func (c *Claude) checkCredentials() protocol.DoctorCheck {
	check := protocol.DoctorCheck{Name: "Claude Code can sign in", Status: protocol.CheckOK}
	config := filepath.Join(c.Home, ".claude")
	for _, entry := range c.Env {
		name, value, _ := strings.Cut(entry, "=")
		if name == "CLAUDE_CONFIG_DIR" {
			config = value
		}
		for _, known := range credentials {
			if name == known && value != "" && check.Detail == "" {
				check.Detail = "it uses " + name
			}
		}
	}
	switch {
	case check.Detail != "":
	case hasMember(filepath.Join(config, ".credentials.json"), "claudeAiOauth"):
		check.Detail = "it uses the login in " + config
	case hasMember(filepath.Join(config, "settings.json"), "apiKeyHelper"):
		check.Detail = "it uses the apiKeyHelper of " + config
	default:
		check.Status = protocol.CheckFail
		check.Detail = "there is neither a key nor a login"
		check.Fix = "give the person a Secret with ANTHROPIC_API_KEY, or with CLAUDE_CODE_OAUTH_TOKEN as claude setup-token prints it"
	}
	return check
}

// hasMember says whether a file has a JSON object with something under a name.
func hasMember(path, name string) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	var members map[string]json.RawMessage
	return json.Unmarshal(data, &members) == nil && len(members[name]) > 0
}

// parseVersion reads the version at the beginning of what --version says.
func parseVersion(said string) (version.Version, bool) {
	word, _, _ := strings.Cut(said, " ")
	word, _, _ = strings.Cut(word, "-")
	return version.Parse(word)
}
