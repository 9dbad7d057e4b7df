package workstate

// This file has the keys of tickets and pull requests: how they are read in a text, and which ticket a pull request belongs to.

import (
	"fmt"
	"regexp"
	"strings"
)

// Keys is what the office knows of the keys of a team's tickets.
type Keys struct {
	// Prefixes are what stands before the number: ACME of ACME-12, acme/shop of acme/shop#12.
	Prefixes []string
	// Known says whether there is such a ticket; it is asked only about tickets of code hosts, whose numbers could be anything.
	Known func(key string) bool
}

// PullText is what a pull request says of itself. Repo is empty where it is not known yet.
type PullText struct {
	Repo  string
	Head  string
	Title string
	Body  string
}

var (
	// trackerKey is a key such as ACME-12, in any case.
	trackerKey = regexp.MustCompile(`(?i)([a-z][a-z0-9_]*)-([1-9][0-9]{0,8})`)
	// hostKey is a key such as acme/shop#12, or #12 alone.
	hostKey = regexp.MustCompile(`((?:[\w.-]+/)+[\w.-]+)?#([1-9][0-9]{0,8})`)
	// closing is a word that closes a ticket; what it closes follows.
	closing = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b:?[ \t]+`)
)

// TicketOf gives the key of the ticket that a pull request belongs to: the one in its branch, else in its title, else after a closing
// word in its body. It is empty where there is none: that a ticket is mentioned links nothing.
//
// A key of a tracker counts if tickets with its prefix are known, or if none are known at all; a key of a code host, such as
// acme/shop#12, if that very ticket is known.
func TicketOf(p PullText, keys Keys) string {
	if key := keys.inBranch(p.Head); key != "" {
		return key
	}
	if key := keys.first(p.Title, p.Repo); key != "" {
		return key
	}
	for _, at := range closing.FindAllStringIndex(p.Body, -1) {
		if key := keys.closed(p.Body[at[1]:], p.Repo); key != "" {
			return key
		}
	}
	return ""
}

// inBranch finds the first key of a tracker in the name of a branch, where keys are often written small.
func (k Keys) inBranch(branch string) string {
	if len(k.Prefixes) > 0 {
		return k.tracker(branch)
	}
	// Nothing is known, so only a part of the branch's path that begins with a key is taken for one: bump-lib-2 is none.
	for part := range strings.SplitSeq(branch, "/") {
		if at := trackerKey.FindStringIndex(part); at != nil && at[0] == 0 && ends(part, at[1]) {
			return strings.ToUpper(part[:at[1]])
		}
	}
	return ""
}

// first finds the first key in a text.
func (k Keys) first(text, repo string) string {
	if key := k.tracker(text); key != "" {
		return key
	}
	for _, m := range hostKey.FindAllStringSubmatchIndex(text, -1) {
		if key := k.host(text, m, repo); key != "" {
			return key
		}
	}
	return ""
}

// closed reads the key that follows a closing word, which may be written as a link.
func (k Keys) closed(text, repo string) string {
	what, _, _ := strings.Cut(text, "\n")
	what = strings.TrimLeft(what, "[*_`<(")
	if fields := strings.Fields(what); len(fields) > 0 {
		what = fields[0]
	}
	if at := trackerKey.FindStringIndex(what); at != nil && at[0] == 0 {
		return k.tracker(what)
	}
	if m := hostKey.FindStringSubmatchIndex(what); m != nil && m[0] == 0 {
		return k.host(what, m, repo)
	}
	if !strings.Contains(what, "://") {
		return ""
	}
	target, err := ParseTarget(strings.TrimRight(what, ".,;:!)]>*_`"))
	switch {
	case err != nil:
	case target.Ticket != "":
		return k.tracker(target.Ticket)
	case target.Repo != "" && target.Issue:
		return k.known(PullRef(target.Repo, target.Number))
	}
	return ""
}

// tracker finds the first key of a tracker whose prefix is known; where none is known at all, the first that is written in capitals.
func (k Keys) tracker(text string) string {
	for _, m := range trackerKey.FindAllStringSubmatchIndex(text, -1) {
		if !begins(text, m[0]) || !ends(text, m[1]) {
			continue
		}
		prefix, number := text[m[2]:m[3]], text[m[4]:m[5]]
		if len(k.Prefixes) == 0 && prefix == strings.ToUpper(prefix) {
			return prefix + "-" + number
		}
		for _, known := range k.Prefixes {
			if strings.EqualFold(prefix, known) {
				return known + "-" + number
			}
		}
	}
	return ""
}

// host reads a match of hostKey in a text; a number alone is of the repository, or of the only one whose tickets are known.
func (k Keys) host(text string, m []int, repo string) string {
	if m[2] >= 0 {
		repo = text[m[2]:m[3]]
	}
	if repo == "" {
		for _, known := range k.Prefixes {
			if !strings.Contains(known, "/") {
				continue
			}
			if repo != "" {
				return ""
			}
			repo = known
		}
	}
	if repo == "" || !ends(text, m[1]) {
		return ""
	}
	return k.known(repo + "#" + text[m[4]:m[5]])
}

func (k Keys) known(key string) string {
	if k.Known != nil && k.Known(key) {
		return key
	}
	return ""
}

// begins and ends say whether a key that begins or ends there is no part of a longer word.
func begins(s string, at int) bool { return at == 0 || !wordy(s[at-1]) }
func ends(s string, at int) bool   { return at == len(s) || !wordy(s[at]) }

func wordy(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// PullRef is the office's key of a pull request, such as acme/shop#12.
func PullRef(repo string, number int) string { return fmt.Sprintf("%s#%d", repo, number) }
