package office

// This file brings an offer within the limit of a frame: what is farthest from the work is left out first, and counted. An item is
// offered whatever its context weighs.

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

// draft is an offer that may be too large yet.
type draft struct {
	id    string
	offer protocol.Offer
	// request is what is asked, the first entry of the journal; earlier is the journal of earlier work in the thread, journal the item's
	// own.
	request protocol.JournalEntry
	earlier []protocol.JournalEntry
	journal []protocol.JournalEntry
	wake    wake
	// left counts what was left out, by its name.
	left map[string]int
}

// fit encodes the offer, with as little left out as it takes.
func (d *draft) fit() ([]byte, error) {
	// What is certainly too large is not encoded first: an agent that fills its journal must not keep the office busy.
	for d.weight() > protocol.MaxFrame {
		if !d.shrink() {
			break
		}
	}
	for {
		d.render()
		frame, err := protocol.Encode(protocol.Frame{ID: d.id, Message: d.offer})
		if err == nil || !errors.Is(err, protocol.ErrTooLarge) || !d.shrink() {
			return frame, err
		}
	}
}

// weight is how many bytes the texts of the offer have at least once they are encoded, without the wake.
func (d *draft) weight() int {
	const least = 20 // of the names and signs around the texts of one entry
	sum := len(d.request.Text)
	for _, list := range [][]protocol.JournalEntry{d.earlier, d.journal} {
		for _, e := range list {
			sum += least + len(e.Text)
		}
	}
	for _, f := range d.offer.Context.Feedback {
		sum += least + len(f.Body) + len(f.AnchorText)
		for _, c := range f.Comments {
			sum += least + len(c.Body)
		}
	}
	for _, l := range d.offer.Context.Links {
		sum += least + len(l.URL) + len(l.Title)
	}
	for _, s := range d.offer.Context.Subjects {
		sum += least + len(s.Title) + len(s.URL)
	}
	if o := d.offer.WorkItem.Origin; o != nil {
		for _, f := range o.Files {
			sum += least + len(f.URL) + len(f.Name)
		}
	}
	return sum
}

// names of what is left out, in the order in which it is told.
const (
	leftEarlier      = "entries of the journal of earlier work"
	leftJournal      = "earlier entries of the journal"
	leftConversation = "earlier entries of the conversation"
	leftLinks        = "links"
	leftSubjects     = "subjects"
	leftFiles        = "files"
	leftFeedback     = "older pieces of feedback"
	leftComments     = "inline comments"
	leftTexts        = "texts, cut"
)

var leftNames = []string{
	leftEarlier, leftJournal, leftConversation, leftLinks, leftSubjects, leftFiles, leftFeedback, leftComments, leftTexts,
}

// render writes the parts of the context that shrink.
func (d *draft) render() {
	c := &d.offer.Context
	c.Wake = workstate.Bundle(d.wake.Snapshot, d.wake.limits)
	c.Journal = append([]protocol.JournalEntry{}, d.request)
	var left []string
	for _, name := range leftNames {
		if n := d.left[name]; n > 0 {
			left = append(left, fmt.Sprintf("%d %s", n, name))
		}
	}
	if len(left) > 0 {
		c.Journal = append(c.Journal, protocol.JournalEntry{
			At: d.request.At, Author: "office", Text: strings.Join(left, ", ") + " are left out here: they do not fit.",
		})
	}
	c.Journal = append(append(c.Journal, d.earlier...), d.journal...)
}

// shrink leaves out a quarter of what is farthest from the work and still there. It says false where nothing is left to leave out.
func (d *draft) shrink() bool {
	if d.left == nil {
		d.left = map[string]int{}
	}
	c := &d.offer.Context
	if n := len(d.wake.Nodes); n > 0 {
		kept := n - quarter(n)
		d.wake.Nodes, d.wake.Omitted = d.wake.Nodes[:kept], d.wake.Omitted+n-kept
		return true
	}
	return dropFirst(d, &d.earlier, leftEarlier, 0) || dropFirst(d, &c.Conversation, leftConversation, 0) ||
		dropFirst(d, &d.journal, leftJournal, 0) || dropLast(d, &c.Links, leftLinks, 0) || dropLast(d, &c.Subjects, leftSubjects, 1) ||
		d.dropFiles() || dropFirst(d, &c.Feedback, leftFeedback, 1) || d.dropComments() || d.cutTexts()
}

func quarter(n int) int { return 1 + (n-1)/4 }

// dropFirst and dropLast leave out a quarter of a list, from its beginning or its end, but for the few that are kept.
func dropFirst[T any](d *draft, list *[]T, name string, keep int) bool {
	n := len(*list) - keep
	if n <= 0 {
		return false
	}
	d.left[name] += quarter(n)
	*list = (*list)[quarter(n):]
	return true
}

func dropLast[T any](d *draft, list *[]T, name string, keep int) bool {
	n := len(*list) - keep
	if n <= 0 {
		return false
	}
	d.left[name] += quarter(n)
	*list = (*list)[:len(*list)-quarter(n)]
	return true
}

func (d *draft) dropFiles() bool {
	if d.offer.WorkItem.Origin == nil {
		return false
	}
	origin := *d.offer.WorkItem.Origin
	d.offer.WorkItem.Origin = &origin
	return dropLast(d, &origin.Files, leftFiles, 0)
}

// dropComments leaves out the older inline comments of the feedback that is left.
func (d *draft) dropComments() bool {
	feedback := d.offer.Context.Feedback
	return len(feedback) > 0 && dropFirst(d, &feedback[0].Comments, leftComments, 1)
}

// cutTexts halves the longest of the texts that are left: a piece of feedback, one of its comments, and in the end the request.
func (d *draft) cutTexts() bool {
	texts := []*string{}
	for i := range d.offer.Context.Feedback {
		f := &d.offer.Context.Feedback[i]
		texts = append(texts, &f.Body, &f.AnchorText)
		for j := range f.Comments {
			texts = append(texts, &f.Comments[j].Body)
		}
	}
	texts = append(texts, &d.request.Text)
	for _, text := range texts {
		if len(*text) > shortText {
			d.left[leftTexts]++
			*text = workstate.Cut(*text, len([]rune(*text))/2)
			return true
		}
	}
	return false
}

// shortText is how many bytes of a text are never cut.
const shortText = 4000
