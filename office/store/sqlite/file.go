package sqlite

// This file has what a store is on disk: folder, lock, permissions, and whether a file is one.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sys/unix"
)

// applicationID marks a SQLite file as a store of ours: "BLPN".
const applicationID = 0x424C504E

func makeFolder(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the store's folder (give a path on a volume that the office may write to): %w", err)
	}
	return nil
}

// makeFile makes the file, empty, if it is missing: SQLite itself would let others read it.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the store (its file must be readable and writable by the office): %w", err)
	}
	return f.Close()
}

// settleFiles closes the files beside the database to others, and makes the names of all of them durable.
func settleFiles(path string) error {
	for _, name := range []string{path + "-wal", path + "-shm", pathOfPast(path) + "-wal", pathOfPast(path) + "-shm"} {
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// lock is the right to be the store's one office. The kernel takes it back when the process ends, however it ends.
type lock struct {
	file *os.File
	// last is what the last office left in it: its signature, or what it wrote when it closed the store.
	last string
}

// takeLock takes the lock of the store at path, or says who has it.
func takeLock(path string) (*lock, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the store: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 256)) // who has it is a courtesy: without it the message is still right
		err = fmt.Errorf("the store %s is in use by %s (it holds %s); a store has one office: stop that one, or give this "+
			"one a store of its own", path, orUnknown(strings.TrimSpace(string(holder))), name)
	} else if err != nil {
		err = fmt.Errorf("lock the store with %s (its file system must support flock): %w", name, err)
	}
	var last []byte
	if err == nil {
		last, err = io.ReadAll(io.LimitReader(f, 256))
	}
	if err == nil {
		err = signLock(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lock{file: f, last: string(last)}, nil
}

func orUnknown(holder string) string {
	if holder == "" {
		return "another process"
	}
	return holder
}

// signLock writes into the lock who has it.
func signLock(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return writeLock(f, fmt.Sprintf("process %d on %s\n", os.Getpid(), host))
}

func writeLock(f *os.File, text string) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("sign the store's lock: %w", err)
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("sign the store's lock: %w", err)
	}
	return nil
}

// closed describes the file of a store that was closed well; nobody has touched one that it still describes.
func closed(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("closed with %d bytes at %d\n", info.Size(), info.ModTime().UnixNano()), nil
}

// signOff writes into the lock that the store was closed well.
func (l *lock) signOff(path string) error {
	text, err := closed(path)
	if err != nil {
		return err
	}
	return writeLock(l.file, text)
}

// untouched says whether the store is as the last office left it, which closed it well.
func (l *lock) untouched(path string) bool {
	text, err := closed(path)
	return err == nil && text == l.last
}

// release gives the lock back. The file stays: removing it would let two processes lock two files of one name.
func (l *lock) release() error { return l.file.Close() }

// damaged says that SQLite cannot read the file.
func damaged(path string, err error) error {
	return fmt.Errorf("the store %s is damaged or no SQLite database: %w; nothing was changed. Restore it from a backup, "+
		"or move it away to begin with an empty store", path, err)
}

// inspect reads what the file is, without changing it: the version of its schema, 0 for an empty file. Unless the file is untouched since
// it was closed well, all of it is read in search of damage, which takes some seconds for a gigabyte.
func inspect(c *conn, path string, untouched bool) (version int64, err error) {
	verdict := "ok"
	var application, objects int64
	if !untouched {
		err = c.query("PRAGMA quick_check(1)", func(row *sqlite3.Stmt) { verdict = row.ColumnText(0) })
	}
	if err == nil {
		application, err = c.integer("PRAGMA application_id")
	}
	if err == nil {
		version, err = c.integer("PRAGMA user_version")
	}
	if err == nil {
		objects, err = c.integer("SELECT count(*) FROM sqlite_schema")
	}
	if err == nil && verdict != "ok" {
		err = errors.New(verdict)
	}
	if err != nil {
		return 0, damaged(path, err)
	}
	if application == 0 && version == 0 && objects == 0 {
		return 0, nil
	}
	if application != applicationID || version == 0 {
		return 0, fmt.Errorf("the file %s is the database of another program (application id %#x); nothing was changed. "+
			"Give the office a path of its own", path, application)
	}
	return version, nil
}
