package workplace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestTheDoctorLooksForWhatRepositoriesNeed(t *testing.T) {
	// programs gives a PATH with a git of a version, and perhaps with ssh.
	programs := func(version string, ssh bool) func(*testing.T) string {
		return func(t *testing.T) string {
			dir := t.TempDir()
			if version != "" {
				write(t, filepath.Join(dir, "git"), "#!/bin/sh\necho '"+version+"'\n")
			}
			if ssh {
				write(t, filepath.Join(dir, "ssh"), "#!/bin/sh\n")
			}
			for _, name := range []string{"git", "ssh"} {
				if path := filepath.Join(dir, name); exists(path) {
					if err := os.Chmod(path, 0o700); err != nil {
						t.Fatal(err)
					}
				}
			}
			return dir
		}
	}
	const https, ssh = "https://git.example.com/a/b", "git@git.example.com:a/b"
	good := programs("git version 2.39.5 (Debian)", true)
	for name, test := range map[string]struct {
		path              func(*testing.T) string
		url, credentials  string
		keys              map[string]string
		git, secret, says string
	}{
		"all is there":                 {good, https, "", nil, "ok", "", "2.39.5"},
		"no git":                       {programs("", true), https, "", nil, "fail", "", "git is not in PATH"},
		"an old git":                   {programs("git version 2.30.2", true), https, "", nil, "fail", "", "2.32 or newer"},
		"a git of later times":         {programs("git version 3.0.0", true), https, "", nil, "ok", "", "3.0.0"},
		"what is no git":               {programs("hello", true), https, "", nil, "fail", "", "2.32 or newer"},
		"no ssh that nobody needs":     {programs("git version 2.40.0", false), https, "", nil, "ok", "", ""},
		"no ssh":                       {programs("git version 2.40.0", false), ssh, "", nil, "fail", "", "ssh is not in PATH"},
		"a token":                      {good, https, "deploy", map[string]string{"token": "x"}, "ok", "ok", "There for: shop"},
		"no Secret":                    {good, https, "deploy", nil, "ok", "fail", "the key token, or username and password"},
		"a Secret for something else":  {good, ssh, "deploy", map[string]string{"token": "x"}, "ok", "fail", "the key ssh-privatekey"},
		"a key":                        {good, ssh, "deploy", map[string]string{"ssh-privatekey": "x"}, "ok", "ok", ""},
		"credentials of no use":        {good, "/srv/a", "deploy", map[string]string{"token": "x"}, "ok", "fail", "of no use"},
		"a URL that cannot be cloned":  {good, "ftp://x/y", "", nil, "ok", "fail", "scheme ftp"},
		"credentials of another place": {good, https, "..", nil, "ok", "fail", "none of a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.keys != nil {
				w.secret("deploy", test.keys)
			}
			t.Setenv("PATH", test.path(t)+":/bin:/nowhere")
			if strings.Contains(name, "no git") || strings.Contains(name, "no ssh") {
				t.Setenv("PATH", test.path(t))
			}
			checks := map[string]protocol.DoctorCheck{}
			for _, c := range w.place.Doctor(t.Context(), []protocol.TeamRepository{{Name: "shop", URL: test.url, Credentials: test.credentials}}) {
				checks[c.Name] = c
			}
			git, secret := checks["Git runs"], checks["Repositories have credentials"]
			if string(git.Status) != test.git || string(secret.Status) != test.secret {
				t.Errorf("got %+v", checks)
			}
			if !strings.Contains(git.Detail+secret.Detail, test.says) {
				t.Errorf("it says %q, %q", git.Detail, secret.Detail)
			}
			for _, c := range checks {
				if (c.Status == protocol.CheckFail) != (c.Fix != "") {
					t.Errorf("the fix is %q", c.Fix)
				}
			}
		})
	}
}

func TestATeamWithoutRepositoriesIsNotExamined(t *testing.T) {
	t.Setenv("PATH", "")
	if got := newWorld(t).place.Doctor(t.Context(), nil); got != nil {
		t.Errorf("got %+v", got)
	}
}
