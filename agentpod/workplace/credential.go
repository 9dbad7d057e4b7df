package workplace

// This file is the credential helper: the agent's own program, which git runs and asks for the password of a URL. It reads the mounted
// Secret anew for each question, so a token that was rotated in the middle of a round is there for the last push. It answers only for
// the repositories of the team, and writes nothing down.

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The keys of a Secret with credentials, those that Kubernetes' own types of Secrets have among them.
const (
	keyUsername   = "username"
	keyPassword   = "password"
	keyToken      = "token"
	keySSH        = "ssh-privatekey"
	keyKnownHosts = "known_hosts"
)

// tokenUser is the user that goes with a token, where the Secret names none. Code hosts that take tokens ignore it, or want this one.
const tokenUser = "x-access-token"

// maxQuestion is the most bytes of a question of git's that are read.
const maxQuestion = 64 << 10

// Credential answers git as a credential helper does: args are the folder of the settings, and what git wants (get; everything else is
// nothing to this helper). What keeps it from answering it says on errs, for people. It returns the exit code.
func Credential(args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) != 2 {
		_, _ = fmt.Fprintf(errs, "usage: bullpen-agent %s FOLDER get; git runs it by itself\n", CommandCredential)
		return 2
	}
	question := parseQuestion(io.LimitReader(in, maxQuestion))
	if args[1] != "get" {
		return 0
	}
	answer, err := answerTo(question, args[0])
	if err != nil {
		_, _ = fmt.Fprintf(errs, "bullpen-agent: %v\n", err)
		return 1
	}
	if _, err := io.WriteString(out, answer); err != nil {
		return 1
	}
	return 0
}

// parseQuestion reads what git says: name=value lines.
func parseQuestion(in io.Reader) map[string]string {
	question := map[string]string{}
	lines := bufio.NewScanner(in)
	for lines.Scan() && lines.Text() != "" {
		name, value, _ := strings.Cut(lines.Text(), "=")
		question[name] = value
	}
	return question
}

// answerTo gives the answer in git's form.
func answerTo(question map[string]string, dir string) (string, error) {
	config, err := readHelperConfig(dir)
	if err != nil {
		return "", err
	}
	scheme, host, path := question["protocol"], question["host"], question["path"]
	asked, err := parseRemote(scheme + "://" + host + "/" + path)
	if err != nil || !asked.web() || strings.ContainsAny(host, `/?#@\%`) { // a host with such would be taken for another one
		// Without a path it cannot be known which repository it is about.
		return "", fmt.Errorf("there are no credentials for %s://%s without the path of a repository", scheme, host)
	}
	secret, err := config.find(asked)
	if err != nil {
		return "", err
	}
	user, password, err := secret.login()
	if err != nil {
		return "", err
	}
	if wanted := question["username"]; wanted != "" && wanted != user && user != tokenUser {
		return "", fmt.Errorf("the credentials %s are those of another user than %s", secret, wanted)
	}
	return "username=" + user + "\npassword=" + password + "\n", nil
}

func readHelperConfig(dir string) (helperConfig, error) {
	var config helperConfig
	data, err := os.ReadFile(filepath.Join(dir, helperFile))
	if err == nil {
		err = json.Unmarshal(data, &config)
	}
	if err != nil {
		return config, fmt.Errorf("what the agent wrote for git cannot be read: %w", err)
	}
	return config, nil
}

// find gives the credentials for a request, those of the repository that fits it best.
func (c helperConfig) find(asked remote) (secret, error) {
	best, length := helperRepository{}, -1
	for _, r := range c.Repositories {
		if at, err := parseRemote(r.URL); err == nil && at.same(asked) && len(at.path) > length {
			best, length = r, len(at.path)
		}
	}
	if length < 0 {
		return "", fmt.Errorf("there are no credentials for %s at %s: no repository of the team that has some is there", asked.path, asked.host)
	}
	return c.secret(best.Credentials)
}

// secret is a folder with the keys of a Secret.
type secret string

// secret gives the folder of some credentials.
func (c helperConfig) secret(name string) (secret, error) {
	if c.Folder == "" {
		return "", fmt.Errorf("the credentials %s cannot be found: the pod has no folder of credentials", name)
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("the credentials %q have a name that is none of a folder", name)
	}
	return secret(filepath.Join(c.Folder, name)), nil
}

// String names the credentials for people.
func (s secret) String() string { return filepath.Base(string(s)) }

// value reads a key; false if there is none. Blanks at its end are of the editor that wrote it.
func (s secret) value(key string) (string, bool, error) {
	data, err := os.ReadFile(filepath.Join(string(s), key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("the credentials %s cannot be read: %w", s, err)
	}
	return strings.TrimRight(string(data), " \t\r\n"), true, nil
}

// login gives user and password for HTTP.
func (s secret) login() (user, password string, err error) {
	user, hasUser, err1 := s.value(keyUsername)
	password, hasPassword, err2 := s.value(keyPassword)
	token, hasToken, err3 := s.value(keyToken)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", "", err
	}
	switch {
	case hasToken && token != "":
		password = token
		if !hasUser || user == "" {
			user = tokenUser
		}
	case !hasUser || user == "" || !hasPassword || password == "":
		return "", "", fmt.Errorf("the credentials %s are none for https: their Secret has to have the key %s, or %s and %s",
			s, keyToken, keyUsername, keyPassword)
	}
	if strings.ContainsAny(user+password, "\n\x00") {
		return "", "", fmt.Errorf("the credentials %s hold more than one line", s)
	}
	return user, password, nil
}
