package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mount is a path as the pod sees it and the folder or file it stands for.
type mount struct {
	path, target string
}

// A translator turns paths of a container into paths of the machine.
type translator struct {
	mounts []mount
	// image is the image's folder.
	image string
}

// newTranslator makes a translator. Of nested mounts, the inner one counts.
func newTranslator(image string, mounts []mount) translator {
	t := translator{image: image}
	for _, m := range mounts {
		t.mounts = append(t.mounts, mount{path: filepath.Clean(m.path), target: m.target})
	}
	slices.SortStableFunc(t.mounts, func(a, b mount) int { return len(b.path) - len(a.path) })
	return t
}

// text replaces mount paths wherever they start a path in s. What was replaced
// is not looked at again.
func (t translator) text(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		if m, ok := t.at(s, i); ok {
			out.WriteString(m.target)
			i += len(m.path)
			continue
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}

// at finds the mount whose path starts at s[i].
func (t translator) at(s string, i int) (mount, bool) {
	if s[i] != '/' || !startsPath(s[:i]) {
		return mount{}, false
	}
	for _, m := range t.mounts {
		rest, found := strings.CutPrefix(s[i:], m.path)
		if found && m.path != "/" && (rest == "" || rest[0] == '/' || !inPath(rest[0])) {
			return m, true
		}
	}
	return mount{}, false
}

// startsPath reports whether a slash after before begins a path. It does not
// within a word or another path; in a URL without a host it does.
func startsPath(before string) bool {
	return before == "" || !inPath(before[len(before)-1]) || strings.HasSuffix(before, "://")
}

// inPath reports whether a byte is one that file names are usually made of.
func inPath(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
		b >= 0x80 || strings.IndexByte("._-/~+@%", b) >= 0
}

// argument translates one word of a command: mounts anywhere in it, or as a
// whole an absolute path that exists in the image.
func (t translator) argument(word string) string {
	if translated := t.text(word); translated != word {
		return translated
	}
	if filepath.IsAbs(word) && t.image != "" {
		if path := filepath.Join(t.image, word); exists(path) {
			return path
		}
	}
	return word
}

// arguments translates the words of a command.
func (t translator) arguments(words []string) []string {
	translated := make([]string, len(words))
	for i, word := range words {
		translated[i] = t.argument(word)
	}
	return translated
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
