package mask

// This file looks at the files that hold secrets.

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// maxFile is the most bytes of a file that are read; a Secret has no more.
	maxFile = 1 << 20
	// maxFiles and maxDepth bound a walk through folders.
	maxFiles = 2000
	maxDepth = 4
)

// public are the names of files that stand beside secrets and are none: what Kubernetes calls the user's name, a certificate, the keys of
// hosts.
var public = map[string]bool{"username": true, "known_hosts": true, "ca.crt": true, "tls.crt": true}

// Public says whether a key of that name in a Secret holds nothing that has to be hidden.
func Public(name string) bool { return public[strings.ToLower(name)] }

// fileMark tells one state of a file from another.
type fileMark struct {
	size    int64
	changed time.Time
	inode   uint64
}

// changed returns the values of the files that are new or changed. Its caller holds mu.
func (m *Masker) changed() []string {
	var values []string
	left := maxFiles
	for _, path := range m.files {
		values = append(values, m.walk(path, 0, &left)...)
	}
	return values
}

// walk looks at a file, or at the files of a folder. Links are followed, for the files of a mounted Secret are links; the folders that they
// lead to begin with two dots and are left out.
func (m *Masker) walk(path string, depth int, left *int) []string {
	info, err := os.Stat(path)
	if err != nil {
		m.complain(path, err)
		return nil
	}
	if !info.IsDir() {
		*left--
		return m.read(path, info)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		m.complain(path, err)
		return nil
	}
	var values []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "..") || Public(entry.Name()) || depth == maxDepth || *left <= 0 {
			continue
		}
		values = append(values, m.walk(filepath.Join(path, entry.Name()), depth+1, left)...)
	}
	return values
}

// read reads a file that changed.
func (m *Masker) read(path string, info fs.FileInfo) []string {
	mark := fileMark{size: info.Size(), changed: info.ModTime()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		mark.inode = stat.Ino
	}
	if m.seen[path] == mark || !info.Mode().IsRegular() {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		m.complain(path, err)
		return nil
	}
	defer file.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		m.complain(path, err)
		return nil
	}
	m.seen[path] = mark
	return []string{string(data)}
}

// complain says once that a file cannot be read, and again when it could be in between.
func (m *Masker) complain(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		delete(m.seen, path)
		return
	}
	unreadable := fileMark{size: -1}
	if m.seen[path] != unreadable {
		m.seen[path] = unreadable
		m.log.Error("a file with a secret cannot be read, so its value cannot be masked in records", "file", path, "error", err)
	}
}
