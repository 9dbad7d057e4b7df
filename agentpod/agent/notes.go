package agent

// This file keeps the person's notes: what is worth knowing in every later round, whatever its item. They are in the home, as
// data and as a page that programs read, and the office hears of each change.

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/bullpen-dev/bullpen/agentpod/disk"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

const (
	// maxNotes and maxNote bound the notes: they are read at the start of a round, whole.
	maxNotes = 500
	maxNote  = 8 << 10
)

// note is one note.
type note struct {
	// ID is the note's number, which no other note of this home gets.
	ID   int    `json:"id"`
	Text string `json:"text"`
	// At is when the note was written or last changed, an RFC 3339 time.
	At string `json:"at"`
}

// notebook has the notes, oldest first.
type notebook struct {
	// Last is the number that was given last.
	Last  int    `json:"last"`
	Notes []note `json:"notes"`
}

// noteError is a change that cannot be.
type noteError struct {
	code protocol.Code
	text string
}

func (e *noteError) Error() string { return e.text }

func refuseNote(code protocol.Code, format string, args ...any) error {
	return &noteError{code, fmt.Sprintf(format, args...)}
}

// add returns the notebook with a further note.
func (b notebook) add(text string, now time.Time) (notebook, note, error) {
	if err := b.check(0, text); err != nil {
		return b, note{}, err
	}
	if len(b.Notes) >= maxNotes {
		return b, note{}, refuseNote(protocol.CodeInvalid, "there are %d notes, and no more may be: remove what is no longer true", maxNotes)
	}
	n := note{ID: b.Last + 1, Text: text, At: protocol.FormatTime(now)}
	return notebook{n.ID, append(slices.Clone(b.Notes), n)}, n, nil
}

// update returns the notebook with another text of a note.
func (b notebook) update(id int, text string, now time.Time) (notebook, note, error) {
	at, err := b.find(id)
	if err == nil {
		err = b.check(id, text)
	}
	if err != nil {
		return b, note{}, err
	}
	changed := notebook{b.Last, slices.Clone(b.Notes)}
	changed.Notes[at].Text, changed.Notes[at].At = text, protocol.FormatTime(now)
	return changed, changed.Notes[at], nil
}

// remove returns the notebook without a note.
func (b notebook) remove(id int) (notebook, note, error) {
	at, err := b.find(id)
	if err != nil {
		return b, note{}, err
	}
	return notebook{b.Last, slices.Concat(b.Notes[:at], b.Notes[at+1:])}, b.Notes[at], nil
}

func (b notebook) find(id int) (int, error) {
	at := slices.IndexFunc(b.Notes, func(n note) bool { return n.ID == id })
	if at < 0 {
		return 0, refuseNote(protocol.CodeNotFound, "there is no note %d", id)
	}
	return at, nil
}

// check says what is wrong with a text for note id, or for a new one.
func (b notebook) check(id int, text string) error {
	switch {
	case text == "":
		return refuseNote(protocol.CodeInvalidMessage, "a note needs a text")
	case len(text) > maxNote:
		return refuseNote(protocol.CodeInvalidMessage, "a note may have %d bytes, and this one has %d", maxNote, len(text))
	}
	for _, n := range b.Notes {
		if n.ID != id && n.Text == text {
			return refuseNote(protocol.CodeInvalid, "note %d says just that already", n.ID)
		}
	}
	return nil
}

// page writes the notes for those who read.
func (b notebook) page() []byte {
	var page bytes.Buffer
	page.WriteString("# Notes\n\nWritten with `ost note`, which numbers them.\n")
	for _, n := range b.Notes {
		_, _ = fmt.Fprintf(&page, "\n%d. %s\n", n.ID, strings.ReplaceAll(n.Text, "\n", "\n   "))
	}
	return page.Bytes()
}

func (h *home) notesFile() string { return filepath.Join(h.root, "notes.json") }
func (h *home) notesPage() string { return filepath.Join(h.root, "NOTES.md") }

func (h *home) saveNotes(b notebook) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return errors.Join(disk.Write(h.notesFile(), data), disk.Write(h.notesPage(), b.page()))
}

// loadNotes reads the notes, and writes their page where it is missing or of another state. A file that is none of ours is set
// aside.
func (h *home) loadNotes() (notebook, error) {
	b := notebook{Notes: []note{}}
	data, err := os.ReadFile(h.notesFile())
	if err == nil {
		if bad := json.Unmarshal(data, &b); bad != nil {
			h.log.Error("the notes cannot be read and are set aside", "file", h.notesFile(), "error", bad)
			b, err = notebook{Notes: []note{}}, os.Rename(h.notesFile(), h.notesFile()+".bad")
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	return b, disk.Write(h.notesPage(), b.page())
}

// noteChanged is the outcome of a change: the note, and what became of telling the office.
type noteChanged struct {
	Note   note    `json:"note"`
	Office outcome `json:"office"`
}

// onNotes changes the notes for a program, and tells the office. The notes are this person's own, so the change stands
// whatever the office says about it.
func (a *Agent) onNotes(kind protocol.NoteChange, item string, w *waiter, change func(notebook) (notebook, note, error)) {
	changed, n, err := change(a.notes)
	var refused *noteError
	if errors.As(err, &refused) {
		w.answer(trouble(http.StatusUnprocessableEntity, refused.code, "%s", refused.text))
		return
	}
	if err = errors.Join(err, a.home.saveNotes(changed)); err != nil {
		w.answer(away("the notes cannot be written: %v", err))
		return
	}
	a.notes = changed
	w.wrap = func(office outcome) outcome { return result("", noteChanged{n, office}) }
	a.onProgram(protocol.NotesChanged{Change: kind, Note: n.Text, WorkItemID: item}, w)
}
