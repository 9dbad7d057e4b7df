package workplace

// This file chooses names: of folders, branches and references. All of it is pure.

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// folderName is the folder of a repository: its name, where that is plain. The office chose it, so it may be anything.
func folderName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return "_" + digest(name)[:16]
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// itemKey names an item in references; its folder's name is what is known of it also when it is gone.
func itemKey(folder string) string { return digest(folder)[:16] }

// shortKey ends the names of an item's own branches.
func shortKey(key string) string { return key[:8] }

// branchRoot begins the names of all branches that agents are given.
const branchRoot = "bullpen"

// maxSlug is the most characters of a title in a branch's name.
const maxSlug = 40

// branchName is the branch that an item's work begins on.
func branchName(handle, title, key string) string {
	name := slug(handle, maxSlug)
	if name == "" {
		name = "agent"
	}
	if words := slug(title, maxSlug); words != "" {
		return branchRoot + "/" + name + "/" + words + "-" + shortKey(key)
	}
	return branchRoot + "/" + name + "/" + shortKey(key)
}

// isBranchOf says whether a branch is one that an item was given, whatever its title was then.
func isBranchOf(branch, key string) bool {
	last := branch[strings.LastIndexByte(branch, '/')+1:]
	return strings.HasPrefix(branch, branchRoot+"/") && (last == shortKey(key) || strings.HasSuffix(last, "-"+shortKey(key)))
}

// endsInKey fits the last part of the name of a branch that an item was given.
var endsInKey = regexp.MustCompile(`(^|-)[0-9a-f]{8}$`)

// slug makes letters, digits and dashes of a text, at most so many, and no more of a word than fits.
func slug(text string, most int) string {
	var b strings.Builder
	dash := false
	for _, c := range strings.ToLower(text) {
		if c < 'a' || c > 'z' {
			if c < '0' || c > '9' {
				dash = b.Len() > 0
				continue
			}
		}
		if dash {
			b.WriteByte('-')
			dash = false
		}
		b.WriteRune(c)
	}
	s := b.String()
	if len(s) > most {
		s = s[:most]
		if at := strings.LastIndexByte(s, '-'); at > most/2 {
			s = s[:at]
		}
		s = strings.TrimRight(s, "-")
	}
	return s
}

// The references that the agent keeps for an item, below refs/bullpen/<key>/: where its branch began, which is also the mark that its
// checkout is whole; that after_checkout ran in it; and what is known to have been pushed, also when the branch is gone at the remote.
const (
	refRoot   = "refs/bullpen/"
	refBase   = "base"
	refReady  = "ready"
	refPushed = "pushed"
	// trackRoot is where the remote's branches are known by.
	trackRoot = "refs/remotes/origin/"
	headRoot  = "refs/heads/"
)

func itemRef(key, name string) string { return refRoot + key + "/" + name }
