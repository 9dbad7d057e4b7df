package workplace

// This file keeps bases: what the hook build_base made for items to share. A base goes by what it was made of: the hook's text, the
// system that it ran on, and the sources. The team says which sources count (build_base_inputs): exact files, as the item's checkouts
// have them; or none; or, if it says nothing, the commits that the item's branches began at, so that an item keeps its base over its
// rounds, and one that begins later gets one of its own time.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// builtMark is in the folder of a base that is whole. Its time is that of the base's last use.
	builtMark = ".bullpen-built"
	// maxBases is how many bases are kept, those that were used last.
	maxBases = 3
)

// base finds the base of the round, or builds it.
func (h *hooks) base(ctx context.Context) error {
	key, err := h.baseKey()
	if err != nil {
		return err
	}
	bases := filepath.Join(h.place.Root, "base")
	dir := filepath.Join(bases, key)
	h.withBase(dir)
	if used(dir) {
		h.report.Phase(feed.PhaseRestore, feed.PhaseCompleted, feed.StepBuildBase, 0, map[string]any{"key": key})
		return nil
	}
	if err := errors.Join(disk.RemoveTree(dir), os.MkdirAll(dir, 0o750)); err != nil {
		return failure(ReasonError, fmt.Errorf("the folder of the base cannot be made: %w", err))
	}
	if err := h.run(ctx, feed.PhaseSetup, feed.StepBuildBase, h.order.Hooks.BuildBase, dir); err != nil {
		return err
	}
	if err := markBuilt(dir); err != nil {
		return failure(ReasonError, fmt.Errorf("the base cannot be kept: %w", err))
	}
	if err := dropBases(bases, key); err != nil {
		h.place.Log.Warn("an old base cannot be removed", "error", err)
	}
	return nil
}

// used says whether a base is whole, and notes that it is used now.
func used(dir string) bool {
	now := time.Now()
	return os.Chtimes(filepath.Join(dir, builtMark), now, now) == nil
}

// markBuilt says that a base is whole. What the hook wrote is on disk before that.
func markBuilt(dir string) error {
	if err := syncDisk(dir); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, builtMark), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// syncDisk waits until all that was written to the file system of a folder is on disk.
func syncDisk(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
}

// dropBases removes the bases beyond those that are kept, the one that was used longest ago first, and what is none.
func dropBases(bases, current string) error {
	entries, err := os.ReadDir(bases)
	if err != nil {
		return err
	}
	type old struct {
		path string
		at   time.Time
	}
	var others []old
	for _, e := range entries {
		if e.Name() == current {
			continue
		}
		o := old{path: filepath.Join(bases, e.Name())}
		if info, err := os.Stat(filepath.Join(o.path, builtMark)); err == nil {
			o.at = info.ModTime()
		}
		others = append(others, o)
	}
	slices.SortFunc(others, func(a, b old) int { return b.at.Compare(a.at) })
	for i, o := range others {
		if i >= maxBases-1 || o.at.IsZero() {
			err = errors.Join(err, disk.RemoveTree(o.path))
		}
	}
	return err
}

// baseKey names the base of the round.
func (h *hooks) baseKey() (string, error) {
	sum := sha256.New()
	fact := func(parts ...string) {
		for _, part := range parts {
			_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
		}
		_, _ = sum.Write([]byte{'\n'}) // a hash takes everything
	}
	fact("script", h.order.Hooks.BuildBase)
	path, _ := lookup(h.round.Env, "PATH")
	system := h.place.system
	if system == nil {
		system = toolchain
	}
	fact(system(path, filepath.Dir(h.place.Root))...)
	inputs := h.order.Hooks.BuildBaseInputs
	if inputs == nil {
		for _, w := range h.round.Worktrees {
			fact("base", w.Name, w.Base)
		}
	}
	for _, input := range slices.Compact(slices.Sorted(slices.Values(inputs))) {
		if err := hashInput(fact, h.round.Worktrees, input); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// hashInput adds a file's content and mode. One that is not there is a fact too.
func hashInput(fact func(...string), worktrees []runtime.Worktree, input string) error {
	name, file, _ := strings.Cut(input, "/")
	at := slices.IndexFunc(worktrees, func(w runtime.Worktree) bool { return w.Name == name })
	if at < 0 || file == "" {
		return fmt.Errorf("the inputs of build_base name %q, which is no file of a repository of the team: write it as repository/path", input)
	}
	root, err := os.OpenRoot(worktrees[at].Dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only read from
	info, err := root.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		fact("missing", input)
		return nil
	}
	if err != nil {
		return fmt.Errorf("the input %s of build_base cannot be read: %w", input, err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("the input %s of build_base is no file: name each file that the base is made of", input)
	}
	f, err := root.Open(file)
	if err != nil {
		return fmt.Errorf("the input %s of build_base cannot be read: %w", input, err)
	}
	defer f.Close() //nolint:errcheck // only read from
	content := sha256.New()
	if _, err := io.Copy(content, f); err != nil {
		return fmt.Errorf("the input %s of build_base cannot be read: %w", input, err)
	}
	// Of the mode only what git keeps: the rest depends on who made the checkout.
	fact("file", input, fmt.Sprint(info.Mode()&0o100 != 0), hex.EncodeToString(content.Sum(nil)))
	return nil
}

// toolchain are facts of the system that change with the agent's image: what it is, and when the folders of its programs were changed
// last. Those in the home change with the agent's own work, and say nothing about the image.
func toolchain(path, home string) []string {
	facts := []string{"system", goruntime.GOOS, goruntime.GOARCH}
	if release, err := os.ReadFile("/etc/os-release"); err == nil {
		facts = append(facts, string(release))
	}
	for _, dir := range filepath.SplitList(path) {
		info, err := os.Stat(dir)
		if err != nil || !filepath.IsAbs(dir) || dir == home || isBelow(filepath.Clean(dir), home) {
			continue
		}
		facts = append(facts, dir, info.ModTime().UTC().Format(time.RFC3339Nano))
	}
	return facts
}
