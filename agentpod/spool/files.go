package spool

// This file writes and removes files so that a crash leaves the old or the new one.

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

const tmpPrefix = ".tmp-"

// newID is an id that no other home makes.
func newID() string { return strings.ToLower(rand.Text()) }

// writeFile replaces a file, whole and on the disk.
func writeFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	tmp := filepath.Join(dir, tmpPrefix+filepath.Base(path))
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, removeFile(tmp))
	}
	return syncPath(dir)
}

// syncPath brings a file or folder to the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
