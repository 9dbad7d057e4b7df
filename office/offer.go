package office

// This file builds an offer: the item with its context, within the limit of a frame.

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// offer encodes the offer of an item. Where the journal makes it too large, its oldest entries are left out, but never the first one,
// which is the request itself.
func (w *work) offer(it model.Item) ([]byte, error) {
	entries, err := w.tx.Journal(it.ID)
	if err != nil {
		return nil, err
	}
	offer := protocol.Offer{
		WorkItem: protocol.WorkItem{
			ID: it.ID, Kind: it.Spec.Kind, Title: it.Spec.Title, Priority: float64(it.Spec.Priority),
			Trigger: it.Spec.Trigger, ParentID: it.Spec.ParentID,
		},
		Context:   protocol.Context{Subjects: []protocol.Subject{}, Links: []protocol.Link{}},
		SessionID: it.SessionID,
	}
	if it.Interrupted {
		offer.Interrupted = new(true)
	}
	if s := it.Spec.Subject; s != nil {
		offer.WorkItem.Subject = &protocol.SubjectRef{Type: s.Type, Ref: s.Ref}
		offer.Context.Subjects = append(offer.Context.Subjects, *s)
	}
	offer.Context.Links = append(offer.Context.Links, it.Links...)
	request := protocol.JournalEntry{
		At: protocol.FormatTime(it.CreatedAt), Author: cmp.Or(it.Spec.Requester, "requester"), Text: cmp.Or(it.Spec.Body, it.Spec.Title),
	}
	for skip := 0; ; skip += 1 + (len(entries)-skip)/4 {
		offer.Context.Journal = []protocol.JournalEntry{request}
		if skip > 0 {
			offer.Context.Journal = append(offer.Context.Journal, protocol.JournalEntry{
				At: request.At, Author: "office", Text: fmt.Sprintf("%d earlier entries of the journal are left out here: they do not fit.", min(skip, len(entries))),
			})
		}
		for _, e := range entries[min(skip, len(entries)):] {
			offer.Context.Journal = append(offer.Context.Journal, protocol.JournalEntry{At: protocol.FormatTime(e.At), Author: e.Author, Text: e.Text})
		}
		// The id is the round's, so that an offer that arrives twice is the same frame.
		frame, err := protocol.Encode(protocol.Frame{ID: fmt.Sprintf("offer-%s-%d", it.ID, it.Round.Number), Message: offer})
		if err == nil || !errors.Is(err, protocol.ErrTooLarge) || skip > len(entries) {
			return frame, err
		}
	}
}
