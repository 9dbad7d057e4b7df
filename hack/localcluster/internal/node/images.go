package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// entrypointFile holds an image's default command, a JSON array of strings.
const entrypointFile = ".entrypoint"

// Images maps references to folders.
type Images map[string]string

// ParseImages reads REF=DIR flags. The folders need not exist yet.
func ParseImages(flags []string) (Images, error) {
	images := Images{}
	for _, flag := range flags {
		ref, dir, found := strings.Cut(flag, "=")
		if !found || ref == "" || dir == "" {
			return nil, fmt.Errorf("--image %q is not REF=DIR", flag)
		}
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		images[ref] = absolute
	}
	return images, nil
}

// find returns the folder of a reference: that of the whole reference if there
// is one, else that of the name without tag and digest.
func (i Images) find(ref string) (string, bool) {
	if dir, ok := i[ref]; ok {
		return dir, true
	}
	name, _, _ := strings.Cut(ref, "@")
	if dir, ok := i[name]; ok {
		return dir, true
	}
	// A colon before the last slash belongs to a registry's port.
	slash := strings.LastIndex(name, "/")
	if colon := strings.LastIndex(name, ":"); colon > slash {
		name = name[:colon]
	} else if dir, ok := i[name+":latest"]; ok {
		return dir, true
	}
	dir, ok := i[name]
	return dir, ok
}

// pull is what pulling an image comes to: finding its folder.
func (i Images) pull(ref string) (string, error) {
	dir, ok := i.find(ref)
	if !ok {
		return "", fmt.Errorf("failed to pull image %q: not found: no folder was given for it; start localcluster with --image %s=DIR", ref, ref)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("failed to pull image %q: %w", ref, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("failed to pull image %q: %s is not a folder", ref, dir)
	}
	return dir, nil
}

// entrypoint reads an image's default command; an image may have none.
func entrypoint(image string) ([]string, error) {
	path := filepath.Join(image, entrypointFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var command []string
	if err := json.Unmarshal(data, &command); err != nil {
		return nil, fmt.Errorf("%s is not a JSON array of strings: %w", path, err)
	}
	return command, nil
}
