package agent

// This file says what is secret in an agent's pod, and takes it out of the messages that people read.

import (
	"net/url"
	"strings"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/mask"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// masked is a message without secrets in what it says to people.
func (a *Agent) masked(message protocol.Message) protocol.Message {
	switch m := message.(type) {
	case protocol.Progress:
		m.Text = a.mask.Text(m.Text)
		return m
	case protocol.Journal:
		m.Text = a.mask.Text(m.Text)
		return m
	case protocol.Fail:
		m.Reason = a.mask.Text(m.Reason)
		return m
	case protocol.Handback:
		m.Summary = a.mask.Text(m.Summary)
		links := make([]protocol.Link, len(m.Links))
		for i, link := range m.Links {
			links[i] = protocol.Link{URL: a.mask.Text(link.URL), Title: a.mask.Text(link.Title)}
		}
		if m.Links != nil {
			m.Links = links
		}
		review := make([]string, len(m.ToReview))
		for i, text := range m.ToReview {
			review[i] = a.mask.Text(text)
		}
		if m.ToReview != nil {
			m.ToReview = review
		}
		return m
	}
	return message
}

// maskChecks takes secrets out of what the doctor's checks say.
func (a *Agent) maskChecks(checks []protocol.DoctorCheck) {
	for i, c := range checks {
		checks[i].Detail, checks[i].Fix = a.mask.Text(c.Detail), a.mask.Text(c.Fix)
	}
}

// Secrets are what is masked in all that an agent tells.
type Secrets struct {
	// Paths are files with secrets, and folders of such files. Values are secrets themselves.
	Paths, Values []string
}

// ordinary are variables that every process has, or that images set, and so are no secrets where all variables are said to be some.
var ordinary = map[string]bool{
	"PATH": true, "HOME": true, "HOSTNAME": true, "TERM": true, "LANG": true, "LANGUAGE": true, "PWD": true, "OLDPWD": true, "SHLVL": true,
	"TMPDIR": true, "TZ": true, "USER": true, "LOGNAME": true, "SHELL": true, "EDITOR": true, "PAGER": true, "_": true,
}

// secretsFrom reads which files and variables are secrets.
func secretsFrom(env map[string]string) Secrets {
	var s Secrets
	for path := range strings.SplitSeq(env[contract.EnvSecretFiles], ":") {
		if path != "" {
			s.Paths = append(s.Paths, path)
		}
	}
	if folder := env[contract.EnvGitCredentials]; folder != "" {
		s.Paths = append(s.Paths, folder)
	}
	patterns := strings.Split(env[contract.EnvSecretVars], ",")
	for name, value := range env {
		if value != "" && isSecretVar(name, value, patterns) {
			s.Values = append(s.Values, value)
		}
	}
	return s
}

// isSecretVar says whether a variable is one of those that the patterns name.
func isSecretVar(name, value string, patterns []string) bool {
	if ordinary[name] || strings.HasPrefix(name, "BULLPEN_") || strings.HasPrefix(name, "LC_") || publicVar(name) {
		return false
	}
	secret := false
	for _, pattern := range patterns {
		if pattern == "!"+name {
			return false
		}
		beginning, many := strings.CutSuffix(pattern, "*")
		switch {
		case pattern == name, many && beginning != "" && strings.HasPrefix(name, beginning):
			secret = true
		case many && beginning == "":
			secret = secret || !plainValue(name, value)
		}
	}
	return secret
}

// publicVar says whether a variable's name is that of something that stands beside secrets and is none.
func publicVar(name string) bool {
	lower := strings.ToLower(name)
	return mask.Public(lower) || strings.HasSuffix(lower, "_username")
}

// plainValue says whether a variable among all those of the process is more likely the image's or the cluster's than a Secret's: a path, a
// version, the address of a service.
func plainValue(name, value string) bool {
	for _, end := range []string{"_VERSION", "_HOME", "_DIR", "_PORT", "_HOST", "_PROTO", "_ADDR"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	if strings.HasPrefix(name, "KUBERNETES_") || strings.HasPrefix(value, "/") {
		return true
	}
	u, err := url.Parse(value)
	if err == nil && u.Host != "" && u.User == nil {
		return u.RawQuery == ""
	}
	return strings.Trim(value, "0123456789.") == "" && strings.Contains(value, ".")
}
