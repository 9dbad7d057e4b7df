package agent

// This file keeps the agent's memory in its home: the items it knows, the messages that are on their way, and folders.
//
//	.bullpen/lock             held while an agent runs
//	.bullpen/items/<id>/      the item's work folder
//	.bullpen/scratch/<id>/    what a round needs only while it runs
//	.bullpen/state/items/     a file for each item
//	.bullpen/state/outbox/    a file for each message that is not acknowledged, in order
//	.bullpen/state/errands/   a file for each act and report that was begun
//	.bullpen/state/run/       a note of each program that runs
//	.bullpen/spool/           records that the office does not have yet; see package spool
//	.bullpen/run/             the socket for programs
//	.bullpen/base/, .bullpen/repos/, .bullpen/git/   those of package workplace
//	.bullpen/trash/           what is being removed
//	.bullpen/team.json, .bullpen/TEAM.md, .bullpen/notes.json, .bullpen/NOTES.md

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/agentpod/runtime/process"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// home is the agent's folder.
type home struct {
	root string
	log  *slog.Logger
	lock *os.File
}

// openHome makes the folders, waits until no other agent uses them, and ends the programs of an earlier life.
func openHome(ctx context.Context, dir string, log *slog.Logger) (*home, error) {
	h := &home{root: filepath.Join(dir, ".bullpen"), log: log}
	for _, folder := range []string{"items", "scratch", "state/items", "state/outbox", "state/errands", "state/run", "base", "trash"} {
		if err := os.MkdirAll(filepath.Join(h.root, folder), 0o750); err != nil {
			return nil, fmt.Errorf("the home cannot be used: %w", err)
		}
	}
	if err := h.acquire(ctx); err != nil {
		return nil, err
	}
	if err := h.endPrograms(); err != nil {
		return nil, errors.Join(fmt.Errorf("a program of an earlier agent cannot be ended: %w", err), h.close())
	}
	go h.emptyTrash()
	return h, nil
}

// acquire takes the home's lock. The kernel frees it when its holder dies, however that happens.
func (h *home) acquire(ctx context.Context) error {
	lock, err := os.OpenFile(filepath.Join(h.root, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("the home cannot be used: %w", err)
	}
	for told := false; ; {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			h.lock = lock
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return errors.Join(fmt.Errorf("the home cannot be locked: %w", err), lock.Close())
		}
		if !told {
			h.log.Warn("another agent uses this home; waiting until it ends", "home", h.root)
			told = true
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("another agent uses this home"), lock.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (h *home) close() error { return h.lock.Close() }

// endPrograms ends what the notes in state/run name.
func (h *home) endPrograms() error {
	notes, err := filepath.Glob(filepath.Join(h.root, "state/run", "*"))
	if err != nil {
		return err
	}
	for _, note := range notes {
		if err := process.EndRecorded(note); err != nil {
			return err
		}
	}
	return nil
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// fileName turns an id, which the office chose, into one that is safe as the name of a file.
func fileName(id string) string {
	if plainName.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "_" + hex.EncodeToString(sum[:16])
}

func (h *home) itemDir(id string) string    { return filepath.Join(h.root, "items", fileName(id)) }
func (h *home) scratchDir(id string) string { return filepath.Join(h.root, "scratch", fileName(id)) }
func (h *home) processRecord(id string) string {
	return filepath.Join(h.root, "state/run", fileName(id))
}
func (h *home) itemFile(id string) string {
	return filepath.Join(h.root, "state/items", fileName(id)+".json")
}

// itemRecord is an item on disk.
type itemRecord struct {
	ID       string          `json:"id"`
	Phase    phase           `json:"phase"`
	Round    int             `json:"round"`
	Session  string          `json:"session,omitempty"`
	OfferID  string          `json:"offerId,omitempty"`
	Offer    json.RawMessage `json:"offer"`
	Ending   json.RawMessage `json:"ending,omitempty"`
	Prepared bool            `json:"prepared,omitempty"`
	Made     []string        `json:"made,omitempty"`
	Touched  int64           `json:"touched"`
}

// frameID is the id of frames that are only kept, never sent.
const frameID = "-"

func (h *home) saveItem(it item) error {
	r := itemRecord{
		ID: it.id, Phase: it.phase, Round: it.round, Session: it.session, OfferID: it.offerID, Offer: it.payload,
		Prepared: it.prepared, Made: it.made, Touched: it.touched,
	}
	if it.ending != nil {
		frame, err := protocol.Encode(protocol.Frame{ID: frameID, Message: it.ending})
		if err != nil {
			return err
		}
		r.Ending = frame
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return disk.Write(h.itemFile(it.id), data)
}

// loadItems reads what is remembered. A file that is none of ours is set aside, so that one bad file cannot keep an agent
// from starting.
func (h *home) loadItems() (map[string]*item, error) {
	items := map[string]*item{}
	err := h.eachFile("state/items", func(_ string, data []byte) error {
		it, err := parseItem(data)
		if err == nil {
			items[it.id] = it
		}
		return err
	})
	return items, err
}

func parseItem(data []byte) (*item, error) {
	var r itemRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	it := &item{
		id: r.ID, phase: r.Phase, round: r.Round, session: r.Session, offerID: r.OfferID, payload: r.Offer,
		prepared: r.Prepared, made: r.Made, touched: r.Touched,
	}
	frame := slices.Concat([]byte(`{"id":"-","type":"offer","payload":`), r.Offer, []byte("}"))
	decoded, werr := protocol.Decode(frame)
	if werr != nil {
		return nil, werr
	}
	offer, ok := decoded.Message.(protocol.Offer)
	if !ok || offer.WorkItem.ID != r.ID {
		return nil, errors.New("the offer is not that of the item")
	}
	it.offer = offer
	if r.Ending != nil {
		decoded, werr := protocol.Decode(r.Ending)
		if werr != nil {
			return nil, werr
		}
		it.ending = decoded.Message
	}
	return it, nil
}

// forgetItem removes all that the home has of an item. Folders only move out of the way at once, for they may be large.
func (h *home) forgetItem(id string) error {
	return errors.Join(disk.Remove(h.itemFile(id)), h.discard(h.itemDir(id)), h.discard(h.scratchDir(id)))
}

// discard moves a folder into the trash.
func (h *home) discard(path string) error {
	err := os.Rename(path, filepath.Join(h.root, "trash", rand.Text()))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// emptyTrash removes what was discarded. It may run beside everything else.
func (h *home) emptyTrash() {
	paths, err := filepath.Glob(filepath.Join(h.root, "trash", "*"))
	for _, path := range paths {
		err = errors.Join(err, disk.RemoveTree(path))
	}
	if err != nil {
		h.log.Warn("discarded folders cannot be removed", "error", err)
	}
}

// letterName is the name of a message's file; names sort as the messages were posted.
func letterName(number uint64) string { return fmt.Sprintf("%020d.json", number) }

func (h *home) letterFile(number uint64) string {
	return filepath.Join(h.root, "state/outbox", letterName(number))
}

// saveLetter keeps a message until removeLetter.
func (h *home) saveLetter(number uint64, frame []byte) error {
	return disk.Write(h.letterFile(number), frame)
}

func (h *home) removeLetter(number uint64) error { return disk.Remove(h.letterFile(number)) }

// loadLetters calls take with the messages that are kept, in order.
func (h *home) loadLetters(take func(number uint64, f protocol.Frame, frame []byte)) error {
	return h.eachFile("state/outbox", func(name string, data []byte) error {
		number, err := strconv.ParseUint(strings.TrimSuffix(name, ".json"), 10, 64)
		if err != nil {
			return err
		}
		frame, werr := protocol.Decode(data)
		if werr != nil {
			return werr
		}
		take(number, frame, data)
		return nil
	})
}

// eachFile calls take for every .json file of a folder, by name, and renames the files it refuses.
func (h *home) eachFile(folder string, take func(name string, data []byte) error) error {
	dir := filepath.Join(h.root, folder)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(dir, name)
		if strings.HasPrefix(name, disk.TmpPrefix) {
			_ = disk.Remove(path) // a crash in the middle of a write
			continue
		}
		if filepath.Ext(name) != ".json" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := take(name, data); err != nil {
			h.log.Error("a file in the home cannot be read and is set aside", "file", path, "error", err)
			if err := os.Rename(path, path+".bad"); err != nil {
				return err
			}
		}
	}
	return nil
}
