package sqlite

// This file brings a file's schema up to date. Steps are SQL files, numbered from 1 without a gap; a step that was
// released never changes. The number of the last one is the file's user_version.

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/ncruces/go-sqlite3"
)

//go:embed migrations/*.sql feed/*.sql
var migrationFiles embed.FS

// migrations reads the steps in a folder, in order.
func migrations(files fs.FS, folder string) ([]string, error) {
	names, err := fs.Glob(files, folder+"/*.sql") // sorted
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

// newStore begins a store: it gets its id.
func newStore(c *conn) error {
	return c.db.Exec(fmt.Sprintf("INSERT INTO store (only, id, revision) VALUES (1, '%s', 0)", uuid.NewString()))
}

// preparation is how a file is made ready for writing.
type preparation struct {
	// search says that the file is searched for damage.
	search bool
	// accept, if set, looks further at a file that is of its kind, without changing it.
	accept func(*conn) error
	// begin has settings that only an empty file takes, and first runs after the steps of an empty file.
	begin []string
	first func(*conn) error
	// settings are those of the writer.
	settings []string
}

// prepare looks at a file and, if it is of its kind or empty, makes it one of this release that c may write to.
func (p preparation) prepare(c *conn, f file) error {
	// Until the file has been accepted, closing it must not touch it.
	if _, err := c.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return err
	}
	steps, err := migrations(migrationFiles, f.steps)
	if err != nil {
		return err
	}
	version, err := f.inspect(c, p.search)
	if err != nil {
		return err
	}
	if version > int64(len(steps)) {
		return fmt.Errorf("%s has schema version %d, written by a newer release of Bullpen; this one knows versions up "+
			"to %d. Nothing was changed: run that release or a newer one, or restore a backup from before the upgrade",
			f, version, len(steps))
	}
	settings := slices.Concat([]string{"journal_mode = WAL"}, p.settings)
	if version == 0 {
		settings = slices.Concat(p.begin, settings)
	} else if p.accept != nil {
		if err := p.accept(c); err != nil {
			return err
		}
	}
	if _, err := c.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, false); err != nil {
		return err
	}
	for _, setting := range settings {
		if err := c.db.Exec("PRAGMA " + setting); err != nil {
			return fmt.Errorf("prepare %s: set %s: %w", f, setting, err)
		}
	}
	if err := migrate(c, f.application, steps, version, p.first); err != nil {
		return fmt.Errorf("bring %s from schema version %d to %d (nothing was changed): %w", f, version, len(steps), err)
	}
	return nil
}

// migrate takes the steps after version, all or none.
func migrate(c *conn, application int64, steps []string, version int64, first func(*conn) error) (err error) {
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
		if err := first(c); err != nil {
			return err
		}
	}
	if err := c.db.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, len(steps))); err != nil {
		return err
	}
	return c.run(commit, nil)
}
