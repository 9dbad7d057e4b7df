package workplace

// This file runs ssh for git, with the key of the repository in question. Git runs the agent's program as if it were ssh; that finds out
// which repository is meant, reads the mounted Secret anew, and runs the real ssh with what belongs to it. So each repository can have a
// key of its own, at one host too.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// sshFailed is the exit code of ssh for errors of its own.
const sshFailed = 255

// SSH runs ssh: args are the folder of the settings, and the arguments that git gives ssh. It returns the exit code.
func SSH(args []string, errs io.Writer) int {
	if len(args) < 2 {
		_, _ = fmt.Fprintf(errs, "usage: bullpen-agent %s FOLDER [OPTION...] HOST COMMAND; git runs it by itself\n", CommandSSH)
		return 2
	}
	code, err := runSSH(args[0], args[1:])
	if err != nil {
		_, _ = fmt.Fprintf(errs, "bullpen-agent: %v\n", err)
	}
	return code
}

func runSSH(dir string, args []string) (int, error) {
	program, err := exec.LookPath("ssh")
	if err != nil {
		return sshFailed, errors.New("ssh is not in PATH: a repository of the team is reached by it, so use an image that has it")
	}
	config, err := readHelperConfig(dir)
	if err != nil {
		return sshFailed, err
	}
	// Nobody can be asked anything, and a connection that is dead is given up.
	options := []string{"-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"}
	asked, ok := parseSSH(args)
	if !ok {
		return execSSH(program, append(options, args...))
	}
	found, err := config.find(asked)
	if err != nil {
		return execSSH(program, append(options, args...)) // none of ours: ssh has its own ways
	}
	key, done, err := found.keyFile()
	if err != nil {
		return sshFailed, err
	}
	defer done()
	options = append(options, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-i", key)
	hosts, checking := filepath.Join(string(found), keyKnownHosts), "yes"
	if exists(hosts) {
		options = append(options, "-o", "GlobalKnownHostsFile=/dev/null")
	} else {
		hosts, checking = filepath.Join(dir, knownHostsFile), "accept-new"
	}
	options = append(options, "-o", "StrictHostKeyChecking="+checking, "-o", "UserKnownHostsFile="+quoteOption(hosts))
	return waitSSH(program, append(options, args...))
}

// parseSSH finds out which repository ssh is run for; false if it is for something else.
func parseSSH(args []string) (remote, bool) {
	asked := remote{scheme: "ssh"}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch option := args[0]; {
		case option == "--":
		case option == "-p" && len(args) > 1:
			asked.port = args[1]
			args = args[1:]
		case option == "-o" && len(args) > 1:
			args = args[1:]
		case option != "-4" && option != "-6":
			return asked, false
		}
		args = args[1:]
	}
	if len(args) < 2 {
		return asked, false
	}
	host := args[0]
	host = host[strings.LastIndexByte(host, '@')+1:]
	asked.host = strings.ToLower(strings.Trim(host, "[]"))
	if asked.port == usualPorts["ssh"] {
		asked.port = ""
	}
	// git-upload-pack '/owner/name.git', or git-lfs-authenticate owner/name.git download
	words := shellWords(strings.Join(args[1:], " "))
	if len(words) < 2 {
		return asked, false
	}
	asked.path = cleanPath(words[1])
	return asked, true
}

// shellWords takes a command apart as git wrote it: words with single quotes, and \' and \! between them.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'':
			quoted, begun = !quoted, true
		case !quoted && c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			begun = true
		case !quoted && c == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// quoteOption makes one word of a path in an option of ssh, where % begins something.
func quoteOption(path string) string {
	return `"` + strings.NewReplacer("%", "%%", `"`, `\"`, `\`, `\\`).Replace(path) + `"`
}

// keyFile gives a file with the key that ssh takes, and what to call when it is not needed any more. The file of the Secret is used as it
// is, where it can be; ssh refuses one of its own user that others may read, and one that an editor saved with other ends of lines or
// without the last.
func (s secret) keyFile() (string, func(), error) {
	path := filepath.Join(string(s), keySSH)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, fmt.Errorf("the credentials %s are none for ssh: their Secret has to have the key %s", s, keySSH)
	}
	if err != nil {
		return "", nil, fmt.Errorf("the credentials %s cannot be read: %w", s, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, fmt.Errorf("the credentials %s cannot be read: %w", s, err)
	}
	text := bytes.TrimRight(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), " \t\n")
	text = append(bytes.TrimLeft(text, " \t\n"), '\n')
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && (int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o077 == 0) && bytes.Equal(text, data) {
		return path, func() {}, nil
	}
	// In a folder of its own, where what need not last belongs: only this user can look into it.
	dir, err := os.MkdirTemp("", "bullpen-ssh-")
	if err != nil {
		return "", nil, fmt.Errorf("a key cannot be prepared for ssh: %w", err)
	}
	done := func() { _ = os.RemoveAll(dir) } // nothing is left to do about it; the folder goes with the pod
	own := filepath.Join(dir, "key")
	if err := os.WriteFile(own, text, 0o600); err != nil {
		done()
		return "", nil, fmt.Errorf("a key cannot be prepared for ssh: %w", err)
	}
	return own, done, nil
}

// execSSH becomes ssh.
func execSSH(program string, args []string) (int, error) {
	err := syscall.Exec(program, append([]string{"ssh"}, args...), os.Environ())
	return sshFailed, fmt.Errorf("ssh cannot be run: %w", err)
}

// waitSSH runs ssh and waits for its end, passing signals on.
func waitSSH(program string, args []string) (int, error) {
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return sshFailed, fmt.Errorf("ssh cannot be run: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended meanwhile
		case err := <-ended:
			var failed *exec.ExitError
			switch {
			case err == nil:
				return 0, nil
			case errors.As(err, &failed) && failed.ExitCode() >= 0:
				return failed.ExitCode(), nil
			}
			return sshFailed, fmt.Errorf("ssh ended: %w", err)
		}
	}
}
