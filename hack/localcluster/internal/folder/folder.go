// Package folder removes folders that programs have filled.
package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll removes a tree like os.RemoveAll, and also where its owner took away
// his own permission to write, as Go's module cache does.
func RemoveAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			return errors.Join(err, os.Chmod(path, 0o700))
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // Somebody else removes as well.
	}
	return errors.Join(err, os.RemoveAll(path))
}
