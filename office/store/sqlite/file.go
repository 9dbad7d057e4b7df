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

// kind is what sort of file an office keeps. Its words are for messages.
type kind struct {
	noun string
	// application marks a SQLite file as one of this kind, and steps is the folder of its schema.
	application int64
	steps       string
	// remedy is what to do about a damaged file.
	remedy string
}

var (
	storeKind = kind{
		noun: "store", application: 0x424C504E, steps: "migrations", // "BLPN"
		remedy: "restore the file from a backup",
	}
	feedKind = kind{
		noun: "feed", application: 0x424C5046, steps: "feed", // "BLPF"
		remedy: "restore the file from a backup, or move it away to go on with an empty feed",
	}
)

// file is a file of some kind.
type file struct {
	kind
	path string
}

func (f file) String() string { return "the " + f.noun + " " + f.path }

func (f file) makeFolder() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("make the %s's folder (give a path on a volume that the office may write to): %w", f.noun, err)
	}
	return nil
}

// make makes the file, empty, if it is missing: SQLite itself would let others read it.
func (f file) make() error {
	o, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the %s (its file must be readable and writable by the office): %w", f.noun, err)
	}
	return o.Close()
}

// settleFiles closes the files beside a database to others, and makes the names of all in its folder durable.
func settleFiles(path string, beside ...string) error {
	for _, name := range beside {
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

// lock is the right to be the one office of a file. The kernel takes it back when the process ends, however it ends.
type lock struct {
	file *os.File
	// last is what the last office left in it: its signature, or what it wrote when it closed the store.
	last string
}

// takeLock takes the lock of the file, or says who has it.
func (f file) takeLock() (*lock, error) {
	name := f.path + ".lock"
	l, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the %s: %w", f.noun, err)
	}
	err = unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(l, 256)) // who has it is a courtesy: without it the message is still right
		err = fmt.Errorf("%s is in use by %s (it holds %s); a %s has one office: stop that one, or give this "+
			"one a %s of its own", f, orUnknown(strings.TrimSpace(string(holder))), name, f.noun, f.noun)
	} else if err != nil {
		err = fmt.Errorf("lock the %s with %s (its file system must support flock): %w", f.noun, name, err)
	}
	var last []byte
	if err == nil {
		last, err = io.ReadAll(io.LimitReader(l, 256))
	}
	if err == nil {
		err = signLock(l)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &lock{file: l, last: string(last)}, nil
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
		return fmt.Errorf("sign the lock %s: %w", f.Name(), err)
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("sign the lock %s: %w", f.Name(), err)
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
func (f file) damaged(err error) error {
	return fmt.Errorf("%s is damaged or no SQLite database: %w; nothing was changed. Restore it from a backup, "+
		"or move it away to begin with an empty %s", f, err, f.noun)
}

// inspect reads what the file is, without changing it: the version of its schema, 0 for an empty file. If it is to be searched, all of it
// is read in search of damage, which takes some seconds for a gigabyte.
func (f file) inspect(c *conn, search bool) (version int64, err error) {
	verdict := "ok"
	var application, objects int64
	if search {
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
		return 0, f.damaged(err)
	}
	if application == 0 && version == 0 && objects == 0 {
		return 0, nil
	}
	if application != f.application || version == 0 {
		return 0, fmt.Errorf("the file %s is the database of another program (application id %#x); nothing was changed. "+
			"Give the office's %s a path of its own", f.path, application, f.noun)
	}
	return version, nil
}
