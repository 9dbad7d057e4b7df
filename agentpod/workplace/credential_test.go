package workplace

// These tests are about credentials: a host that asks for them by HTTP, with git's own server behind it.

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// webHost serves repositories below shop/ to those who know a password.
type webHost struct {
	*httptest.Server
	mu sync.Mutex
	// password is what counts now, seen are the logins that came.
	password string
	seen     []string
}

func newWebHost(t *testing.T, h *host, password string) *webHost {
	t.Helper()
	backend := strings.TrimSpace(gitIn(t, h.env, h.dir, "--exec-path")) + "/git-http-backend"
	serve := &cgi.Handler{
		Path: backend, Root: "/shop",
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(h.dir), "GIT_HTTP_EXPORT_ALL=1", "HOME=" + filepath.Dir(h.dir), "REMOTE_USER=somebody"},
	}
	w := &webHost{password: password}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		w.mu.Lock()
		if ok {
			w.seen = append(w.seen, user+":"+password)
		}
		right := ok && password == w.password
		w.mu.Unlock()
		if !right {
			rw.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
			http.Error(rw, "who are you?", http.StatusUnauthorized)
			return
		}
		serve.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

// logins are those that came since the last call.
func (w *webHost) logins() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]bool{}
	for _, s := range w.seen {
		all[s] = true
	}
	w.seen = nil
	return all
}

func (w *webHost) setPassword(password string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.password = password
}

// secret mounts a Secret as the kubelet does: its keys are links into a folder that is replaced as a whole.
func (w *world) secret(name string, keys map[string]string) {
	w.t.Helper()
	dir := filepath.Join(w.place.Credentials, name)
	data, err := os.MkdirTemp(w.dir, "data-")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		w.t.Fatal(err)
	}
	for key, value := range keys {
		write(w.t, filepath.Join(data, key), value)
		if !exists(filepath.Join(dir, key)) {
			if err := os.Symlink(filepath.Join("..data", key), filepath.Join(dir, key)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	link := filepath.Join(dir, "..data")
	if err := os.Symlink(data, link+".new"); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		w.t.Fatal(err)
	}
}

func withCredentials(name string) func(*protocol.TeamRepository) {
	return func(r *protocol.TeamRepository) { r.Credentials = name }
}

func TestCredentialsOpenARepository(t *testing.T) {
	for name, test := range map[string]struct {
		keys  map[string]string
		login string
	}{
		"user and password":     {map[string]string{"username": "bo", "password": "s3cret-one"}, "bo:s3cret-one"},
		"a token":               {map[string]string{"token": "s3cret-one"}, "x-access-token:s3cret-one"},
		"a token of a user":     {map[string]string{"username": "bo", "token": "s3cret-one"}, "bo:s3cret-one"},
		"with the editor's \\n": {map[string]string{"username": "bo\n", "password": "s3cret-one\r\n"}, "bo:s3cret-one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, h := newWorld(t), fullHost(t)
			web := newWebHost(t, h, "s3cret-one")
			w.secret("shop-git", test.keys)
			w.repository("shop", web.URL+"/shop/shop.git", withCredentials("shop-git"))
			round := w.prepare("i1")
			w.commit(round, 0, "mine.txt", "mine\n")
			w.git(round, round.Workdir, "push", "-q")
			if h.at(round.Worktrees[0].Branch) == "" {
				t.Error("nothing was pushed")
			}
			if diff := cmp.Diff(map[string]bool{test.login: true}, web.logins()); diff != "" {
				t.Error(diff)
			}
			if facts := w.inspect(round).Repositories[0]; facts.Unpushed != 0 || facts.RemoteBranch != round.Worktrees[0].Branch {
				t.Errorf("git says %+v", facts)
			}
		})
	}
}

func TestARotatedTokenIsThereForTheNextPush(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	web := newWebHost(t, h, "token-one")
	w.secret("shop-git", map[string]string{"token": "token-one"})
	w.repository("shop", web.URL+"/shop/shop.git", withCredentials("shop-git"))
	round := w.prepare("i1")
	w.commit(round, 0, "mine.txt", "mine\n")

	web.setPassword("token-two")
	w.secret("shop-git", map[string]string{"token": "token-two"})
	web.logins()
	w.git(round, round.Workdir, "push", "-q") // in the middle of the round, in its environment
	if diff := cmp.Diff(map[string]bool{"x-access-token:token-two": true}, web.logins()); diff != "" {
		t.Error(diff)
	}
	w.prepare("i2")
}

func TestAProgramsOwnCloneGetsTheCredentialsToo(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	web := newWebHost(t, h, "s3cret")
	w.secret("shop-git", map[string]string{"token": "s3cret"})
	w.repository("shop", web.URL+"/shop/shop", withCredentials("shop-git"))
	round := w.prepare("i1")
	w.git(round, round.Dir, "clone", "-q", web.URL+"/shop/shop.git", "own")
	if content(filepath.Join(round.Dir, "own", "README")) != "hello" {
		t.Error("it has no checkout")
	}
	// Submodules are cloned by a git that has lost most settings of the one that asked for it.
	w.git(round, round.Workdir, "submodule", "--quiet", "add", web.URL+"/shop/shop.git", "sub")
	if content(filepath.Join(round.Workdir, "sub", "README")) != "hello" {
		t.Error("the submodule has no checkout")
	}
}

func TestCredentialsAreForTheirRepositoryOnly(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	web, foreign := newWebHost(t, h, "s3cret"), newWebHost(t, h, "s3cret")
	if err := os.Symlink(h.dir, filepath.Join(filepath.Dir(h.dir), "other.git")); err != nil {
		t.Fatal(err)
	}
	w.secret("shop-git", map[string]string{"token": "s3cret"})
	w.repository("shop", web.URL+"/shop/shop.git", withCredentials("shop-git"))
	round := w.prepare("i1")
	web.logins()
	for _, url := range []string{
		foreign.URL + "/shop/shop.git", web.URL + "/shop/other.git", web.URL + "/shop", strings.Replace(web.URL, "127.0.0.1", "localhost", 1) + "/shop/shop.git",
	} {
		cmd := exec.CommandContext(t.Context(), "git", "ls-remote", url)
		cmd.Dir, cmd.Env = round.Workdir, round.Env
		if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "s3cret") {
			t.Errorf("%s was opened: %s", url, out)
		}
	}
	if len(web.logins())+len(foreign.logins()) > 0 {
		t.Error("the token was sent to another place")
	}
}

func TestWithoutCredentialsNobodyIsAsked(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	web := newWebHost(t, h, "s3cret")
	w.repository("shop", web.URL+"/shop/shop.git")
	if _, err := w.try(t.Context(), "i1"); err == nil || !strings.Contains(err.Error(), "terminal prompts disabled") || ReasonOf(err) != ReasonAccess {
		t.Errorf("got %v", err)
	}
	for name, test := range map[string]struct {
		keys map[string]string
		want string
	}{
		"a Secret that is not there":      {nil, "has to have the key token, or username and password"},
		"a password without a user":       {map[string]string{"password": "x"}, "has to have the key token, or username and password"},
		"a key for ssh":                   {map[string]string{"ssh-privatekey": "x"}, "has to have the key token, or username and password"},
		"a token of more than one line":   {map[string]string{"token": "a\nhost=b"}, "hold more than one line"},
		"a token that is empty":           {map[string]string{"token": "\n"}, "has to have the key token, or username and password"},
		"a token that the host refuses":   {map[string]string{"token": "old"}, "Authentication failed"},
		"a password that the host denies": {map[string]string{"username": "bo", "password": "old"}, "Authentication failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if test.keys != nil {
				w.secret("shop-git", test.keys)
			}
			w.repository("shop", web.URL+"/shop/shop.git", withCredentials("shop-git"))
			_, err := w.try(t.Context(), "i1")
			said := strings.Join(w.told.lines("shop/shop"), "\n")
			if err == nil || !strings.Contains(said, test.want) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; it said:\n%s", err, said)
			}
		})
	}
}

// The home may have a helper of the user's own, which must not keep what it was never meant to see.
func TestNoSecretIsWrittenDownOrShown(t *testing.T) {
	w, h := newWorld(t), fullHost(t)
	web := newWebHost(t, h, "very-s3cret")
	home := filepath.Join(w.dir, "home")
	write(t, filepath.Join(home, ".gitconfig"), "[credential]\nhelper = store\n")
	w.secret("shop-git", map[string]string{"token": "very-s3cret"})
	w.repository("shop", web.URL+"/shop/shop.git", withCredentials("shop-git"))

	// A git that notes its arguments and its environment, and those of what it runs.
	program := must(exec.LookPath("git"))
	seen := filepath.Join(w.dir, "seen")
	bin := filepath.Join(w.dir, "bin")
	write(t, filepath.Join(bin, "git"), "#!/bin/sh\nprintf '%s\\n' \"$@\" >> "+seen+"\nenv >> "+seen+"\nexec "+program+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(bin, "git"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	w.env[0] = "PATH=" + os.Getenv("PATH")
	round := w.prepare("i1")
	w.commit(round, 0, "mine.txt", "mine\n")
	w.git(round, round.Workdir, "push", "-q")
	w.inspect(round)
	if !web.logins()["x-access-token:very-s3cret"] {
		t.Fatal("the token was not used")
	}
	if content(seen) == "" {
		t.Fatal("the git of the test did not run")
	}
	if strings.Contains(content(seen)+w.told.text()+strings.Join(round.Env, "\n"), "very-s3cret") {
		t.Error("the token was in an argument, in the environment, or shown")
	}
	for _, root := range []string{home, round.Dir} {
		walked := 0
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			walked++
			if data, err := os.ReadFile(path); err != nil || bytes.Contains(data, []byte("very-s3cret")) {
				t.Errorf("the token is in %s (%v)", path, err)
			}
			return nil
		})
		if err != nil || walked == 0 {
			t.Errorf("%v; %d files", err, walked)
		}
	}
}

func TestTheHelperAnswersOnlyWhatItShould(t *testing.T) {
	w := newWorld(t)
	w.secret("one", map[string]string{"token": "t1"})
	w.secret("two", map[string]string{"username": "bo", "password": "p2"})
	w.repository("api", "https://git.example.com/shop/api.git", withCredentials("one"))
	w.repository("deep", "https://git.example.com/shop/api/deep.git", withCredentials("two"))
	w.repository("open", "https://git.example.com/shop/open.git")
	w.repository("odd", "https://git.example.com/shop/odd.git", withCredentials("../one"))
	if _, err := w.place.writeSettings(w.team, w.env); err != nil {
		t.Fatal(err)
	}
	const host = "protocol=https\nhost=git.example.com\n"
	for name, test := range map[string]struct {
		op, question, answer, trouble string
	}{
		"a question":                {"get", host + "path=shop/api.git\n\n", "username=x-access-token\npassword=t1\n", ""},
		"one about the inner one":   {"get", host + "path=shop/api/deep.git\n", "username=bo\npassword=p2\n", ""},
		"the right user":            {"get", host + "path=shop/api/deep\nusername=bo\n", "username=bo\npassword=p2\n", ""},
		"another user":              {"get", host + "path=shop/api/deep\nusername=al\n", "", "another user than al"},
		"a token is for any user":   {"get", host + "path=shop/api\nusername=al\n", "username=x-access-token\npassword=t1\n", ""},
		"no path":                   {"get", host, "", "without the path"},
		"one that has none":         {"get", host + "path=shop/open.git\n", "", "no repository of the team that has some"},
		"a name that leads outside": {"get", host + "path=shop/odd.git\n", "", "none of a folder"},
		"a host in disguise":        {"get", "protocol=https\nhost=git.example.com/shop/api.git?.evil.example\npath=x\n", "", "there are no credentials"},
		"nothing":                   {"get", "", "", "without the path"},
		"a request to keep one":     {"store", host + "path=shop/api.git\npassword=x\n", "", ""},
		"a request to forget one":   {"erase", host + "path=shop/api.git\n", "", ""},
		"something newer":           {"capability", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := Credential([]string{w.place.settings(), test.op}, strings.NewReader(test.question), &out, &errs)
			if out.String() != test.answer || !strings.Contains(errs.String(), test.trouble) || (errs.Len() > 0) != (test.trouble != "") {
				t.Errorf("got %q, %q", out.String(), errs.String())
			}
			if (code == 0) != (test.trouble == "") {
				t.Errorf("exit code %d", code)
			}
		})
	}
	var out, errs bytes.Buffer
	if code := Credential(nil, strings.NewReader(""), &out, &errs); code != 2 || !strings.Contains(errs.String(), "usage") {
		t.Errorf("without arguments: %d, %q", code, errs.String())
	}
}
