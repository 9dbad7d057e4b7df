package workplace

// This file reads what git says about files that have changes without a commit.

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// maxFiles is the most files with changes of a repository that are listed.
	maxFiles = 500
	// maxLines is how much of a file that git does not know is read to count its lines.
	maxLines = 1 << 20
)

// The statuses of files.
const (
	fileAdded     = "added"
	fileModified  = "modified"
	fileDeleted   = "deleted"
	fileRenamed   = "renamed"
	fileUntracked = "untracked"
)

// files fills in the files that have changes which no commit has.
func (r *repository) files(ctx context.Context, head string, i *inspection) error {
	status, err := r.git.ask(ctx, r.checkout, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--renames")
	if err != nil {
		return err
	}
	if head == "" {
		if head, err = r.git.ask(ctx, r.clone, "hash-object", "-t", "tree", "/dev/null"); err != nil {
			return err
		}
	}
	lines, err := r.git.ask(ctx, r.checkout, "diff", "--numstat", "-z", "--find-renames", "--no-ext-diff", "--no-textconv", head, "--")
	if err != nil {
		return err
	}
	counts := parseNumstat(lines)
	for _, f := range parseStatus(status) {
		if f.Status == fileUntracked {
			i.facts.Untracked++
		} else {
			i.facts.Changed++
		}
		if len(i.shown.LocalUncommittedFiles) >= maxFiles {
			continue
		}
		if f.Status == fileUntracked {
			f.Additions = countLines(filepath.Join(r.checkout, f.Path))
		} else {
			f.Additions, f.Deletions = counts[f.Path].added, counts[f.Path].deleted
		}
		f.Path = strings.ToValidUTF8(f.Path, "�")
		i.shown.LocalUncommittedFiles = append(i.shown.LocalUncommittedFiles, f)
	}
	return nil
}

// parseStatus reads the output of git status --porcelain=v2 -z. A last entry that was cut is left out.
func parseStatus(text string) []feed.GitFile {
	var files []feed.GitFile
	entries := strings.Split(text, "\x00")
	entries = entries[:len(entries)-1] // each has its end
	for n := 0; n < len(entries); n++ {
		entry := entries[n]
		if len(entry) < 2 {
			continue
		}
		fields := map[byte]int{'1': 9, '2': 10, 'u': 11, '?': 2}[entry[0]]
		parts := strings.SplitN(entry, " ", fields)
		if fields == 0 || len(parts) < fields {
			continue
		}
		f := feed.GitFile{Path: parts[fields-1], Status: fileModified}
		switch entry[0] {
		case '?':
			f.Status = fileUntracked
		case '1':
			f.Status = statusOf(parts[1])
		case '2':
			if f.Status = fileRenamed; strings.HasPrefix(parts[8], "C") {
				f.Status = fileAdded
			}
			n++ // the old name is an entry of its own
		}
		files = append(files, f)
	}
	return files
}

// statusOf reads the two letters for the index and the folder.
func statusOf(letters string) string {
	switch {
	case strings.Contains(letters, "D"):
		return fileDeleted
	case strings.Contains(letters, "A"):
		return fileAdded
	}
	return fileModified
}

// lineCount are the lines of a file that were added and deleted.
type lineCount struct{ added, deleted int }

// parseNumstat reads the output of git diff --numstat -z, by the names that files have now. Those that are no text have no lines.
func parseNumstat(text string) map[string]lineCount {
	counts := map[string]lineCount{}
	entries := strings.Split(text, "\x00")
	for n := 0; n < len(entries); n++ {
		parts := strings.SplitN(entries[n], "\t", 3)
		if len(parts) < 3 {
			continue
		}
		var c lineCount
		c.added, _ = strconv.Atoi(parts[0]) // "-" is none
		c.deleted, _ = strconv.Atoi(parts[1])
		path := parts[2]
		if path == "" && n+2 < len(entries) { // a renamed file: its old name and its new one follow
			path = entries[n+2]
			n += 2
		}
		counts[path] = c
	}
	return counts
}

// countLines counts the lines of a file that git does not know; none of what is no text, or is too long.
func countLines(path string) int {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxLines {
		return 0
	}
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxLines))
	if err != nil || bytes.IndexByte(data, 0) >= 0 || len(data) == 0 {
		return 0
	}
	count := bytes.Count(data, []byte{'\n'})
	if data[len(data)-1] != '\n' {
		count++
	}
	return count
}
