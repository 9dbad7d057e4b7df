package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTranslateText(t *testing.T) {
	paths := newTranslator("", []mount{
		{"/home/agent", "/state/home"},
		{"/home/agent/cache/", "/state/cache"},
		{"/etc/bullpen", "/state/secret"},
		{"/", "/state/root"},
	})
	for name, test := range map[string]struct{ in, want string }{
		"the path itself":                               {"/home/agent", "/state/home"},
		"a path below it":                               {"/home/agent/work/1", "/state/home/work/1"},
		"the inner one of nested mounts":                {"/home/agent/cache/go", "/state/cache/go"},
		"a list of paths":                               {"/home/agent/bin:/usr/bin:/etc/bullpen/bin", "/state/home/bin:/usr/bin:/state/secret/bin"},
		"the value of a flag":                           {"--ca=/etc/bullpen/ca.crt", "--ca=/state/secret/ca.crt"},
		"within a shell's command":                      {`cat "/etc/bullpen/token" > /home/agent/t; ls`, `cat "/state/secret/token" > /state/home/t; ls`},
		"a URL without a host":                          {"unix:///home/agent/ost.sock", "unix:///state/home/ost.sock"},
		"not a URL's path":                              {"https://example.com/etc/bullpen/x", "https://example.com/etc/bullpen/x"},
		"not a longer name":                             {"/home/agent2 /home/agent.old /etc/bullpen-x", "/home/agent2 /home/agent.old /etc/bullpen-x"},
		"not the end of another path":                   {"/mnt/home/agent", "/mnt/home/agent"},
		"not a relative path":                           {"./home/agent etc/bullpen", "./home/agent etc/bullpen"},
		"a mount of the root is left alone":             {"/usr", "/usr"},
		"what was put in is not translated once more":   {"/etc/bullpen:/etc/bullpen", "/state/secret:/state/secret"},
		"text of other alphabets is part of file names": {"/home/agenté", "/home/agenté"},
		"nothing": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := paths.text(test.in); got != test.want {
				t.Errorf("text(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func TestTranslateTextDoesNotTranslateItsOwnResult(t *testing.T) {
	paths := newTranslator("", []mount{{"/a", "/b/x"}, {"/b", "/a/y"}})
	if got, want := paths.text("/a /b"), "/b/x /a/y"; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}

func TestTranslateArguments(t *testing.T) {
	image := t.TempDir()
	for _, file := range []string{"usr/local/bin/agent", "home/agent/skel"} {
		path := filepath.Join(image, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	paths := newTranslator(image, []mount{{"/home/agent", "/state/home"}})
	got := paths.arguments([]string{
		"/usr/local/bin/agent", "/bin/sh", "agent", "--program=/usr/local/bin/agent", "/home/agent/skel",
	})
	want := []string{
		image + "/usr/local/bin/agent", // It exists in the image.
		"/bin/sh",                      // It does not: the machine's is meant.
		"agent",                        // It is looked up in PATH later.
		"--program=/usr/local/bin/agent",
		"/state/home/skel", // A mount hides the image's folder.
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}
