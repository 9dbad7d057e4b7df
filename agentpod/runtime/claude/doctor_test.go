package claude

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestTheDoctorLooksAtTheProgram(t *testing.T) {
	says := func(text string) string { return fake(t, "echo '"+text+"'") }
	for name, test := range map[string]struct {
		program, detail, fix string
	}{
		"is there":         {says(minVersion.String() + " (Claude Code)"), "is version " + minVersion.String(), ""},
		"is newer":         {says("3.0.0-beta.1 (Claude Code)"), "is version 3.0.0", ""},
		"is too old":       {says("2.0.99 (Claude Code)"), "is version 2.0.99; at least " + minVersion.String() + " is needed", "npm install"},
		"is another":       {says("hello"), `said "hello", which is no version`, "npm install"},
		"says a bad one":   {says("2.-1.0"), `which is no version`, "npm install"},
		"does not run":     {fake(t, "exit 3"), "--version failed: exit status 3", "npm install"},
		"is not installed": {"/no/such/claude", "/no/such/claude cannot be run", "npm install"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Claude{Program: test.program, Env: []string{"PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=k"}, Log: logTo(t)}
			checks := c.Doctor(t.Context())
			if len(checks) != 2 || checks[1].Status != protocol.CheckOK {
				t.Fatalf("%+v", checks)
			}
			check := checks[0]
			if !strings.Contains(check.Detail, test.detail) || (check.Status == protocol.CheckOK) != (test.fix == "") || !strings.Contains(check.Fix, test.fix) {
				t.Errorf("%+v", check)
			}
		})
	}
}

func TestTheDoctorLooksForCredentials(t *testing.T) {
	write := func(path, text string) string {
		home := t.TempDir()
		file := filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return home
	}
	other := write("other/.credentials.json", `{"claudeAiOauth":{}}`)
	for name, test := range map[string]struct {
		home   string
		env    []string
		detail string
	}{
		"a key":                         {"/none", []string{"ANTHROPIC_API_KEY=k"}, "it uses ANTHROPIC_API_KEY"},
		"a token":                       {"/none", []string{"A=b", "CLAUDE_CODE_OAUTH_TOKEN=t"}, "it uses CLAUDE_CODE_OAUTH_TOKEN"},
		"a login":                       {write(".claude/.credentials.json", `{"claudeAiOauth":{}}`), nil, "it uses the login in"},
		"a login elsewhere":             {"/none", []string{"CLAUDE_CONFIG_DIR=" + filepath.Join(other, "other")}, "it uses the login in"},
		"a helper":                      {write(".claude/settings.json", `{"apiKeyHelper":"x"}`), nil, "it uses the apiKeyHelper"},
		"a key that is empty":           {"/none", []string{"ANTHROPIC_API_KEY="}, ""},
		"a login of something else":     {write(".claude/.credentials.json", `{"mcpOAuth":{}}`), nil, ""},
		"a file that cannot be read":    {write(".claude/.credentials.json", `nonsense`), nil, ""},
		"a variable that begins so too": {"/none", []string{"ANTHROPIC_API_KEY_FILE=k"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			check := (&Claude{Home: test.home, Env: test.env}).checkCredentials()
			if test.detail == "" {
				if check.Status != protocol.CheckFail || check.Fix == "" {
					t.Errorf("%+v", check)
				}
			} else if check.Status != protocol.CheckOK || !strings.HasPrefix(check.Detail, test.detail) {
				t.Errorf("%+v", check)
			}
		})
	}
}
