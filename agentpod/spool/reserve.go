package spool

// This file keeps room on the disk for what must get through when it is full.

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
)

// reserve makes the reserve, if it is not there and there is plenty of room for it. It says whether the reserve is there.
func (s *Spool) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserved {
		return true
	}
	path := filepath.Join(s.dir, reserveName)
	if info, err := os.Stat(path); err == nil && info.Size() == reserveSize {
		s.reserved = true
		return true
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(s.dir, &stat); err == nil && stat.Bavail*uint64(max(stat.Bsize, 0)) < 2*reserveSize {
		return false
	}
	// Bytes that no file system makes fewer.
	data := make([]byte, reserveSize)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	if err := disk.Write(path, data); err != nil {
		s.log.Warn("the spool has no reserve for a full disk", "error", errors.Join(err, disk.Remove(path)))
		return false
	}
	s.reserved = true
	return true
}

// release removes the reserve. It says whether there was one.
func (s *Spool) release() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reserved {
		return false
	}
	s.reserved = false
	if err := disk.Remove(filepath.Join(s.dir, reserveName)); err != nil {
		s.log.Error("the spool's reserve cannot be removed", "error", err)
		return false
	}
	return true
}
