package workplace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestURLsOfRepositoriesAreUnderstood(t *testing.T) {
	for name, test := range map[string]struct {
		url      string
		want     remote
		fullName string
		problem  string
	}{
		"https":                     {"https://Git.Example.com/shop/api.git", remote{"https", "git.example.com", "", "shop/api"}, "shop/api", ""},
		"https without .git":        {"https://git.example.com/shop/api/", remote{"https", "git.example.com", "", "shop/api"}, "shop/api", ""},
		"groups within groups":      {"https://git.example.com/a/b/c.git", remote{"https", "git.example.com", "", "a/b/c"}, "a/b/c", ""},
		"a port":                    {"http://git.example.com:3000/shop/api", remote{"http", "git.example.com", "3000", "shop/api"}, "shop/api", ""},
		"the usual port":            {"https://git.example.com:443/shop/api", remote{"https", "git.example.com", "", "shop/api"}, "shop/api", ""},
		"ssh":                       {"ssh://git@git.example.com:2222/shop/api.git", remote{"ssh", "git.example.com", "2222", "shop/api"}, "shop/api", ""},
		"ssh in the short form":     {"git@git.example.com:shop/api.git", remote{"ssh", "git.example.com", "", "shop/api"}, "shop/api", ""},
		"the short form, no user":   {"git.example.com:shop/api.git", remote{"ssh", "git.example.com", "", "shop/api"}, "shop/api", ""},
		"the short form, full path": {"git@git.example.com:/srv/api.git", remote{"ssh", "git.example.com", "", "srv/api"}, "srv/api", ""},
		"an address":                {"ssh://[2001:db8::1]/a/b", remote{"ssh", "2001:db8::1", "", "a/b"}, "a/b", ""},
		"no owner":                  {"https://git.example.com/api.git", remote{"https", "git.example.com", "", "api"}, "name", ""},
		"a path":                    {"/srv/git/api.git", remote{"file", "", "", "srv/git/api"}, "name", ""},
		"a file":                    {"file:///srv/git/api.git", remote{"file", "", "", "srv/git/api"}, "name", ""},
		"a password":                {"https://bo:secret@git.example.com/a/b", remote{}, "", "holds a user or a password"},
		"a token":                   {"https://secret@git.example.com/a/b", remote{}, "", "holds a user or a password"},
		"a password for ssh":        {"ssh://git:secret@git.example.com/a/b", remote{}, "", "holds a user or a password"},
		"another scheme":            {"ext::sh -c true", remote{}, "", "blanks"},
		"a helper of git's":         {"ext::sh", remote{}, "", "none that git clones"},
		"yet another":               {"ftp://git.example.com/a/b", remote{}, "", "scheme ftp"},
		"an option":                 {"-oProxyCommand=x:y", remote{}, "", "none that git clones"},
		"an option as a host":       {"ssh://-oProxyCommand=x/y", remote{}, "", "names no host"},
		"a line end":                {"https://git.example.com/a/b\n", remote{}, "", "blanks or control characters"},
		"nothing":                   {"", remote{}, "", "none that git clones"},
		"no repository":             {"https://git.example.com/", remote{}, "", "no repository there"},
		"broken":                    {"https://git.example.com:x/a", remote{}, "", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseRemote(test.url)
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(remote{})); diff != "" {
				t.Error(diff)
			}
			if got := got.fullName("name"); got != test.fullName {
				t.Errorf("it is called %s", got)
			}
		})
	}
}

func TestARequestIsAboutARepositoryOrNot(t *testing.T) {
	for name, test := range map[string]struct {
		repository, request string
		want                bool
	}{
		"the same":                    {"https://h.example/a/b.git", "https://h.example/a/b.git", true},
		"without .git":                {"https://h.example/a/b.git", "https://h.example/a/b", true},
		"with .git":                   {"https://h.example/a/b", "https://h.example/a/b.git", true},
		"its large files":             {"https://h.example/a/b", "https://h.example/a/b.git/info/lfs", true},
		"below it":                    {"https://h.example/a/b", "https://h.example/a/b/info/lfs", true},
		"another of its owner":        {"https://h.example/a/b", "https://h.example/a/bc", false},
		"its owner":                   {"https://h.example/a/b", "https://h.example/a", false},
		"another host":                {"https://h.example/a/b", "https://h.example.org/a/b", false},
		"another port":                {"https://h.example/a/b", "https://h.example:8443/a/b", false},
		"without encryption":          {"https://h.example/a/b", "http://h.example/a/b", false},
		"a path that leads elsewhere": {"https://h.example/a/b", "https://h.example/a/b/../c", false},
		"a name of a host in capital": {"https://h.example/a/b", "https://H.Example/a/b", true},
		"a path in capital letters":   {"https://h.example/a/b", "https://h.example/A/b", false},
	} {
		t.Run(name, func(t *testing.T) {
			one, err1 := parseRemote(test.repository)
			other, err2 := parseRemote(test.request)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if got := one.same(other); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestBranchesHavePagesWhereTheHostIsKnown(t *testing.T) {
	for name, test := range map[string]struct{ url, base, branch, want string }{
		"GitHub":              {"https://github.com/shop/api.git", "main", "bullpen/ada/x", "https://github.com/shop/api/compare/main...bullpen/ada/x"},
		"GitHub by ssh":       {"git@github.com:shop/api.git", "main", "x", "https://github.com/shop/api/compare/main...x"},
		"a company's GitHub":  {"https://github.example.com/shop/api", "main", "x", "https://github.example.com/shop/api/compare/main...x"},
		"GitLab":              {"https://gitlab.com/a/b/c.git", "main", "x", "https://gitlab.com/a/b/c/-/compare/main...x"},
		"a company's GitLab":  {"ssh://git@gitlab.example.com:2222/a/b", "main", "x", "https://gitlab.example.com/a/b/-/compare/main...x"},
		"Gitea":               {"https://gitea.example.com:3000/a/b", "main", "x", "https://gitea.example.com:3000/a/b/compare/main...x"},
		"Codeberg":            {"https://codeberg.org/a/b", "main", "x", "https://codeberg.org/a/b/compare/main...x"},
		"what URLs escape":    {"https://github.com/a/b", "main", "fix #1?", "https://github.com/a/b/compare/main...fix%20%231%3F"},
		"another host":        {"https://git.example.com/a/b", "main", "x", ""},
		"a name like GitHub":  {"https://notgithub.com/a/b", "main", "x", ""},
		"a folder":            {"/srv/github/a/b", "main", "x", ""},
		"no default branch":   {"https://github.com/a/b", "", "x", ""},
		"the default branch":  {"https://github.com/a/b", "main", "main", ""},
		"a repository's root": {"https://github.com/b", "main", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := parseRemote(test.url)
			if err != nil {
				t.Fatal(err)
			}
			if got := at.branchPage(test.base, test.branch); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
