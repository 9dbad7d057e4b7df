package workplace

// This file understands the URLs of repositories: what they are called, where people look at them, and whether a request of git or of
// ssh is about one of them. All of it is pure.

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// remote is a repository's URL, taken apart.
type remote struct {
	// scheme is http, https, ssh, git or file. The form user@host:path is ssh, an absolute path is file.
	scheme string
	// host is in lower case, port is empty where it is the scheme's own.
	host, port string
	// path has neither a slash at its ends nor .git.
	path string
}

// scpForm is user@host:path, which git takes for ssh.
var scpForm = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\]):(.+)$`)

var usualPorts = map[string]string{"http": "80", "https": "443", "ssh": "22", "git": "9418"}

// parseRemote takes the URL of a repository apart. Its error says what is wrong with it, without the URL.
func parseRemote(text string) (remote, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return remote{}, errors.New("its URL has blanks or control characters")
	}
	if strings.HasPrefix(text, "/") {
		return remote{scheme: "file", path: cleanPath(text)}, nil
	}
	if !strings.Contains(text, "://") {
		m := scpForm.FindStringSubmatch(text)
		if m == nil || strings.HasPrefix(text, "-") || strings.HasPrefix(m[2], ":") { // the last would run a helper of that name
			return remote{}, errors.New("its URL is none that git clones: " +
				"use https://, ssh://, git:// or file://, user@host:path, or an absolute path")
		}
		return remote{scheme: "ssh", host: strings.ToLower(strings.Trim(m[1], "[]")), path: cleanPath(m[2])}, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return remote{}, errors.New("its URL cannot be read")
	}
	if _, has := u.User.Password(); has || u.User != nil && strings.HasPrefix(u.Scheme, "http") {
		return remote{}, errors.New("its URL holds a user or a password: put them into a Secret, and name that as the repository's credentials")
	}
	r := remote{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), port: u.Port(), path: cleanPath(u.Path)}
	if r.port == usualPorts[r.scheme] {
		r.port = ""
	}
	switch {
	case r.scheme == "file":
		return remote{scheme: "file", path: r.path}, nil
	case usualPorts[r.scheme] == "":
		return remote{}, fmt.Errorf("its URL has the scheme %s: use https, http, ssh, git or file", r.scheme)
	case r.host == "" || strings.HasPrefix(r.host, "-") || r.path == "":
		return remote{}, errors.New("its URL names no host, or no repository there")
	}
	return r, nil
}

// cleanPath gives the path of a repository as it is compared.
func cleanPath(p string) string {
	p = strings.Trim(path.Clean("/"+p), "/")
	return strings.TrimSuffix(p, ".git")
}

// same says whether a request for a path at a host is about the repository, or about something below it, as that for its large files is.
func (r remote) same(other remote) bool {
	if r.scheme != other.scheme || r.host != other.host || r.port != other.port {
		return false
	}
	if r.path == other.path {
		return true
	}
	below, ok := strings.CutPrefix(other.path, r.path)
	return ok && (strings.HasPrefix(below, "/") || strings.HasPrefix(below, ".git/"))
}

// web says whether the repository is reached by HTTP.
func (r remote) web() bool { return r.scheme == "http" || r.scheme == "https" }

// fullName is owner/name where the URL has an owner, else the given name. Groups within groups belong to the owner.
func (r remote) fullName(name string) string {
	if r.scheme == "file" || !strings.Contains(r.path, "/") {
		return name
	}
	return r.path
}

// branchPage is the page on which people see what a branch has beyond another one; empty where that is not known. Hosts are known by
// their names.
func (r remote) branchPage(base, branch string) string {
	if r.host == "" || r.scheme == "git" || !strings.Contains(r.path, "/") || base == "" || branch == "" || base == branch {
		return ""
	}
	host := "https://" + r.host
	if r.web() && r.port != "" { // the port of ssh says nothing about pages
		host = r.scheme + "://" + r.host + ":" + r.port
	}
	compare := ""
	switch words := strings.FieldsFunc(r.host, func(c rune) bool { return c == '.' || c == '-' }); {
	case contains(words, "gitlab"):
		compare = "/-/compare/"
	case contains(words, "github"), contains(words, "gitea"), contains(words, "forgejo"), contains(words, "codeberg"):
		compare = "/compare/"
	default:
		return ""
	}
	return host + "/" + escape(r.path) + compare + escape(base) + "..." + escape(branch)
}

// contains says whether one of the words begins with another: github1 is one of a company's hosts of GitHub.
func contains(words []string, beginning string) bool {
	for _, w := range words {
		if strings.HasPrefix(w, beginning) {
			return true
		}
	}
	return false
}

// escape escapes each part of a path.
func escape(p string) string {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}
