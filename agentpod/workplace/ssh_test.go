package workplace

// These tests are about ssh. They run the real git against an ssh that is a program of the test: it checks what it is given as ssh does,
// and serves the repository on this machine.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sshRun is what the ssh of a test was given.
type sshRun struct {
	Key     string
	Mode    os.FileMode
	Options map[string]string
	Host    string
	Port    string
	Command string
}

// playSSH is the ssh of the tests: it notes what it was given in the file SSH_SEEN, refuses a key that is not that in SSH_KEY, and runs the
// command.
func playSSH(args []string) int {
	run := sshRun{Options: map[string]string{}}
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		switch value := args[1]; args[0] {
		case "-o":
			name, value, _ := strings.Cut(value, "=")
			run.Options[name] = value
		case "-p":
			run.Port = value
		case "-i":
			run.Key = value
		default:
			fmt.Fprintln(os.Stderr, "unknown option", args[0])
			return 255
		}
		args = args[2:]
	}
	run.Host, run.Command = args[0], strings.Join(args[1:], " ")
	key := ""
	if run.Key != "" {
		info, err := os.Stat(run.Key)
		data, err2 := os.ReadFile(run.Key)
		if err != nil || err2 != nil {
			fmt.Fprintln(os.Stderr, err, err2)
			return 255
		}
		key, run.Mode = string(data), info.Mode().Perm()
		if int(info.Sys().(*syscall.Stat_t).Uid) == os.Getuid() && run.Mode&0o077 != 0 {
			fmt.Fprintln(os.Stderr, "UNPROTECTED PRIVATE KEY FILE")
			return 255
		}
	}
	seen, err := json.Marshal(run)
	if err == nil {
		err = os.WriteFile(os.Getenv("SSH_SEEN"), seen, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	if want, err := os.ReadFile(os.Getenv("SSH_KEY")); err != nil || string(want) != key {
		fmt.Fprintf(os.Stderr, "%s: Permission denied (publickey).\n", run.Host)
		return 255
	}
	cmd := exec.Command("/bin/sh", "-c", run.Command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return 1
	}
	return 0
}

// sshWorld is a world whose ssh is that of the tests.
type sshWorld struct {
	*world
	h         *host
	key, seen string
}

const aKey = "-----BEGIN OPENSSH PRIVATE KEY-----\none\n-----END OPENSSH PRIVATE KEY-----\n"

func newSSHWorld(t *testing.T) *sshWorld {
	t.Helper()
	s := &sshWorld{world: newWorld(t), h: fullHost(t)}
	s.key, s.seen = filepath.Join(s.dir, "key"), filepath.Join(s.dir, "seen")
	bin := filepath.Join(s.dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.place.Helper, filepath.Join(bin, "ssh")); err != nil {
		t.Fatal(err)
	}
	s.env[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	s.env = append(s.env, "SSH_SEEN="+s.seen, "SSH_KEY="+s.key, "TMPDIR="+s.dir)
	write(t, s.key, aKey)
	return s
}

// run is what ssh was given last.
func (s *sshWorld) run() sshRun {
	s.t.Helper()
	var run sshRun
	if err := json.Unmarshal([]byte(content(s.seen)), &run); err != nil {
		s.t.Fatal(err)
	}
	return run
}

// keyCopies are the keys that were copied and are still there.
func (s *sshWorld) keyCopies() []string {
	return must(filepath.Glob(filepath.Join(s.dir, "bullpen-ssh-*")))
}

func TestSSHGetsTheKeyOfTheRepository(t *testing.T) {
	for name, test := range map[string]struct {
		url        string
		keys       map[string]string
		mode       os.FileMode
		host, port string
		copied     bool
		checking   string
	}{
		"a Secret that only the user may read": {
			"ssh://git@git.example.com%s", map[string]string{"ssh-privatekey": aKey}, 0o400, "git@git.example.com", "", false, "accept-new",
		},
		"a Secret that others may read": {
			"ssh://git@git.example.com%s", map[string]string{"ssh-privatekey": aKey}, 0o444, "git@git.example.com", "", true, "accept-new",
		},
		"a key without the end of its last line": {
			"git@git.example.com:%s", map[string]string{"ssh-privatekey": strings.TrimSpace(aKey)}, 0o400, "git@git.example.com", "", true, "accept-new",
		},
		"a key from another system": {
			"git@git.example.com:%s", map[string]string{"ssh-privatekey": strings.ReplaceAll(aKey, "\n", "\r\n")}, 0o400, "git@git.example.com", "", true, "accept-new",
		},
		"known hosts and a port": {
			"ssh://git@git.example.com:2222%s", map[string]string{"ssh-privatekey": aKey, "known_hosts": "git.example.com ssh-ed25519 AAAA\n"}, 0o400,
			"git@git.example.com", "2222", false, "yes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSSHWorld(t)
			s.secret("deploy", test.keys)
			if err := os.Chmod(filepath.Join(s.place.Credentials, "deploy", "ssh-privatekey"), test.mode); err != nil {
				t.Fatal(err)
			}
			s.repository("shop", fmt.Sprintf(test.url, s.h.dir), withCredentials("deploy"))
			round := s.prepare("i1")
			s.commit(round, 0, "mine.txt", "mine\n")
			s.git(round, round.Workdir, "push", "-q")
			run := s.run()
			if run.Host != test.host || run.Port != test.port || !strings.HasPrefix(run.Command, "git-receive-pack ") {
				t.Errorf("ssh was given %+v", run)
			}
			if copied := !strings.HasPrefix(run.Key, s.place.Credentials); copied != test.copied {
				t.Errorf("the key was %s", run.Key)
			}
			if len(s.keyCopies()) > 0 {
				t.Errorf("copies are left: %v", s.keyCopies())
			}
			hosts := filepath.Join(s.place.settings(), "known_hosts")
			if test.checking == "yes" {
				hosts = filepath.Join(s.place.Credentials, "deploy", "known_hosts")
			}
			want := map[string]string{
				"StrictHostKeyChecking": test.checking, "UserKnownHostsFile": `"` + hosts + `"`, "IdentitiesOnly": "yes", "BatchMode": "yes", "IdentityAgent": "none",
			}
			for option, value := range want {
				if run.Options[option] != value {
					t.Errorf("%s is %q, not %q", option, run.Options[option], value)
				}
			}
		})
	}
}

func TestEachRepositoryHasItsOwnKey(t *testing.T) {
	s := newSSHWorld(t)
	other := strings.Replace(aKey, "one", "two", 1)
	s.secret("one", map[string]string{"ssh-privatekey": aKey})
	s.secret("two", map[string]string{"ssh-privatekey": other})
	second := fullHost(t)
	s.repository("shop", "git@git.example.com:"+s.h.dir, withCredentials("one"))
	s.prepare("i1")
	s.repository("docs", "git@git.example.com:"+second.dir, withCredentials("two"))
	round, err := s.try(t.Context(), "i1")
	if err == nil || !strings.Contains(err.Error(), "the repository docs ") || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("got %v, %v", round.Worktrees, err)
	}
	write(t, s.key, other)
	if round := s.prepare("i1"); content(filepath.Join(round.Dir, "docs", "README")) != "hello" {
		t.Error("the second repository was not opened by its key")
	}
}

func TestARotatedKeyIsThereForTheNextPush(t *testing.T) {
	s := newSSHWorld(t)
	s.secret("deploy", map[string]string{"ssh-privatekey": aKey})
	s.repository("shop", "git@git.example.com:"+s.h.dir, withCredentials("deploy"))
	round := s.prepare("i1")
	s.commit(round, 0, "mine.txt", "mine\n")
	next := strings.Replace(aKey, "one", "two", 1)
	write(t, s.key, next)
	s.secret("deploy", map[string]string{"ssh-privatekey": next})
	s.git(round, round.Workdir, "push", "-q")
	if s.h.at(round.Worktrees[0].Branch) == "" {
		t.Error("nothing was pushed")
	}
}

func TestSSHOfOthersStaysTheirs(t *testing.T) {
	s := newSSHWorld(t)
	s.secret("deploy", map[string]string{"ssh-privatekey": aKey})
	s.repository("shop", "git@git.example.com:"+s.h.dir, withCredentials("deploy"))
	round := s.prepare("i1")
	foreign := fullHost(t)
	write(t, s.key, "") // a host that asks for no key of ours
	s.git(round, round.Workdir, "ls-remote", "git@git.example.com:"+foreign.dir)
	if run := s.run(); run.Key != "" || run.Options["StrictHostKeyChecking"] != "" {
		t.Errorf("ssh was given %+v", run)
	}
	s.git(round, round.Workdir, "ls-remote", "git@elsewhere.example.com:"+s.h.dir)
	if run := s.run(); run.Key != "" {
		t.Errorf("the key went to another host: %+v", run)
	}
	if run := s.run(); run.Options["ConnectTimeout"] != "30" {
		t.Errorf("a host that is silent keeps git waiting: %+v", run)
	}
	// And who has an ssh command of his own keeps it.
	s.env = append(s.env, "GIT_SSH_COMMAND=ssh -o Own=yes")
	s.prepare("i1")
	if run := s.run(); run.Options["Own"] != "yes" {
		t.Errorf("ssh was given %+v", run)
	}
}

func TestARepositoryNeedsNoKeyOfItsOwn(t *testing.T) {
	s := newSSHWorld(t)
	write(t, s.key, "")
	s.repository("shop", "git@git.example.com:"+s.h.dir)
	s.prepare("i1")
	if run := s.run(); run.Key != "" || run.Options["ConnectTimeout"] != "30" || run.Options["BatchMode"] != "yes" {
		t.Errorf("ssh was given %+v", run)
	}
}

func TestASecretWithoutAKeySaysSo(t *testing.T) {
	s := newSSHWorld(t)
	s.secret("deploy", map[string]string{"token": "x"})
	s.repository("shop", "git@git.example.com:"+s.h.dir, withCredentials("deploy"))
	if _, err := s.try(t.Context(), "i1"); err == nil || !strings.Contains(err.Error(), "has to have the key ssh-privatekey") {
		t.Errorf("got %v", err)
	}
}

func TestTheArgumentsOfSSHNameTheRepository(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want remote
		ok   bool
	}{
		"as git runs it": {[]string{"-o", "SendEnv=GIT_PROTOCOL", "git@H.example", "git-upload-pack '/a/b.git'"}, remote{"ssh", "h.example", "", "a/b"}, true},
		"with a port":    {[]string{"-p", "2222", "h.example", "git-receive-pack 'a/b.git'"}, remote{"ssh", "h.example", "2222", "a/b"}, true},
		"with the usual": {[]string{"-p", "22", "-4", "h.example", "git-receive-pack 'a/b'"}, remote{"ssh", "h.example", "", "a/b"}, true},
		"quotes in it":   {[]string{"h.example", `git-upload-pack 'a/b'\''c'\!''`}, remote{"ssh", "h.example", "", "a/b'c!"}, true},
		"large files":    {[]string{"--", "git@h.example", "git-lfs-authenticate a/b.git download"}, remote{"ssh", "h.example", "", "a/b"}, true},
		"an address":     {[]string{"git@[2001:db8::1]", "git-upload-pack '/a/b'"}, remote{"ssh", "2001:db8::1", "", "a/b"}, true},
		"a question":     {[]string{"-G", "h.example"}, remote{scheme: "ssh"}, false},
		"a shell":        {[]string{"h.example"}, remote{scheme: "ssh"}, false},
		"no path":        {[]string{"h.example", "true"}, remote{scheme: "ssh", host: "h.example"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseSSH(test.args)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(remote{})); diff != "" || ok != test.ok {
				t.Errorf("%v: %s", ok, diff)
			}
		})
	}
	var errs bytes.Buffer
	if code := SSH(nil, &errs); code != 2 || !strings.Contains(errs.String(), "usage") {
		t.Errorf("without arguments: %d, %q", code, errs.String())
	}
}
