// Package disk writes and removes files in an agent's home so that a crash leaves the old or the new one.
package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// TmpPrefix begins the names of files that are not whole: a crash in the middle of Write or Swap leaves one. Readers of a folder pass
// over them.
const TmpPrefix = ".tmp-"

// Write replaces a file so that after a crash of the machine the old or the new content is there, whole. When it returns nil, the new one
// is on the disk.
func Write(path string, data []byte) error {
	if err := swap(path, data, (*os.File).Sync); err != nil {
		return err
	}
	return Sync(filepath.Dir(path))
}

// Swap replaces a file so that readers see the old content or the new one. It does not wait for the disk: what a crash of the machine may
// take back.
func Swap(path string, data []byte) error {
	return swap(path, data, func(*os.File) error { return nil })
}

func swap(path string, data []byte, settle func(*os.File) error) error {
	tmp := filepath.Join(filepath.Dir(path), TmpPrefix+filepath.Base(path))
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, settle(f), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, Remove(tmp))
	}
	return nil
}

// Sync brings a file or folder to the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Remove removes a file, if it is there.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveTree removes a folder, also one with folders that may not be written, as those of package caches are.
func RemoveTree(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) // what cannot be removed even so, the next line says
		}
		return nil
	})
	return os.RemoveAll(path)
}
