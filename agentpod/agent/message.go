package agent

// This file gives messages their ids and keeps them within a frame.

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// ids makes ids that no other process of this person makes.
type ids struct {
	prefix string
	count  uint64
}

func newIDs() *ids { return &ids{prefix: rand.Text()[:13]} }

func (i *ids) next() string {
	i.count++
	return fmt.Sprintf("%s-%d", i.prefix, i.count)
}

// encode returns a message's frame. What does not fit is cut, and says so.
func encode(id string, message protocol.Message) ([]byte, error) {
	for {
		frame, err := protocol.Encode(protocol.Frame{ID: id, Message: message})
		if !errors.Is(err, protocol.ErrTooLarge) {
			return frame, err
		}
		shorter, ok := shorten(message)
		if !ok {
			return nil, err
		}
		message = shorter
	}
}

// shorten returns a message with about half of its largest part; false if there is nothing to leave out.
func shorten(message protocol.Message) (protocol.Message, bool) {
	switch m := message.(type) {
	case protocol.Progress:
		ok := halve(&m.Text)
		return m, ok
	case protocol.Journal:
		ok := halve(&m.Text)
		return m, ok
	case protocol.Fail:
		ok := halve(&m.Reason)
		return m, ok
	case protocol.Decline:
		ok := halve(&m.Reason)
		return m, ok
	case protocol.Handback:
		ok := halve(&m.Summary) || halveList(&m.Links) || halveList(&m.ToReview) || halveList(&m.Usage)
		return m, ok
	case protocol.DoctorReport:
		ok := halveList(&m.Checks)
		return m, ok
	case protocol.ActResult:
		ok := halve(&m.Error) || halveList(&m.Results)
		return m, ok
	}
	return message, false
}

// cutNote stands at the end of a text that was cut.
const cutNote = " … [cut: too long for one message]"

// halve cuts a text; false if it is too short to be what makes a frame too large.
func halve(text *string) bool {
	const least = 4 << 10
	if len(*text) <= least {
		return false
	}
	*text = cutText(strings.TrimSuffix(*text, cutNote), len(*text)/2)
	return true
}

// cutText cuts a text to about most bytes, between characters.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cutNote
}

func halveList[T any](list *[]T) bool {
	if len(*list) < 2 {
		return false
	}
	*list = (*list)[:len(*list)/2]
	return true
}
