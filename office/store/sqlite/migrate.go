package sqlite

// This file brings a store's schema up to date. Steps are SQL files, numbered from 1 without a gap; a step that was
// released never changes. The number of the last one is the file's user_version.

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/ncruces/go-sqlite3"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations reads the steps, in order.
func migrations(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var steps []string
	for i, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("migration %s should have the number %04d", name, i+1)
		}
		step, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, string(step))
	}
	return steps, nil
}

// prepare looks at the file and, if it is a store or empty, makes it a store of this release that c may write to. An untouched file is
// looked at less.
func prepare(c *conn, path string, untouched bool) error {
	// Until the file has been accepted, closing it must not touch it.
	if _, err := c.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return err
	}
	steps, err := migrations(migrationFiles)
	if err != nil {
		return err
	}
	version, err := inspect(c, path, untouched)
	if err != nil {
		return err
	}
	if version > int64(len(steps)) {
		return fmt.Errorf("the store %s has schema version %d, written by a newer release of Bullpen; this one knows versions up "+
			"to %d. Nothing was changed: run that release or a newer one, or restore a backup from before the upgrade",
			path, version, len(steps))
	}
	if _, err := c.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, false); err != nil {
		return err
	}
	for _, p := range append([]string{"journal_mode = WAL"}, writing...) {
		if err := c.db.Exec("PRAGMA " + p); err != nil {
			return fmt.Errorf("prepare the store %s: set %s: %w", path, p, err)
		}
	}
	if err := migrate(c, steps, version); err != nil {
		return fmt.Errorf("bring the store %s from schema version %d to %d (nothing was changed): %w", path, version, len(steps), err)
	}
	return nil
}

// migrate takes the steps after version, all or none.
func migrate(c *conn, steps []string, version int64) (err error) {
	if version == int64(len(steps)) {
		return nil
	}
	if err := c.run(begin, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.undo()) }()
	for i := version; i < int64(len(steps)); i++ {
		if err := c.db.Exec(steps[i]); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if version == 0 {
		if err := c.db.Exec(fmt.Sprintf("INSERT INTO store (only, id, revision) VALUES (1, '%s', 0)", uuid.NewString())); err != nil {
			return err
		}
	}
	if err := c.db.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps))); err != nil {
		return err
	}
	return c.run(commit, nil)
}
