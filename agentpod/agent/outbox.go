package agent

// This file keeps the messages that must not be lost: they are on disk before they are sent, and leave when the office
// answered them. They go one after another, so that the office sees them in order whatever it answers.

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bullpen-dev/bullpen/office/protocol"
)

// letter is one message of the outbox.
type letter struct {
	number uint64
	id     string
	// seq is the round it was written in; 0 if that was another process.
	seq     int
	message protocol.Message
	frame   []byte
	// waiter is the program that waits for the answer, if one does.
	waiter *waiter
}

// outbox is a queue whose head may be under way.
type outbox struct {
	home    *home
	log     *slog.Logger
	letters []letter
	number  uint64
	// underWay says that the head was sent and not answered.
	underWay bool
	// failures counts answers in a row that asked to try again; retryAt is when.
	failures int
	retryAt  time.Time
}

// load reads what an earlier process left.
func (o *outbox) load() error {
	return o.home.loadLetters(func(number uint64, f protocol.Frame, frame []byte) {
		o.letters = append(o.letters, letter{number: number, id: f.ID, message: f.Message, frame: frame})
		o.number = max(o.number, number)
	})
}

// put adds a message. If the disk does not take it, it is kept in memory only: better than not to send it at all.
func (o *outbox) put(id string, message protocol.Message, seq int) error {
	frame, err := encode(id, message)
	if err != nil {
		return err
	}
	o.number++
	if err := o.home.saveLetter(o.number, frame); err != nil {
		o.log.Error("a message cannot be kept on disk; it is lost if the agent is killed before it is acknowledged",
			"type", message.Type(), "error", err)
	}
	o.letters = append(o.letters, letter{number: o.number, id: id, seq: seq, message: message, frame: frame})
	return nil
}

// entrust adds a message of a program, unless the disk does not take it: the program is there to be told.
func (o *outbox) entrust(id string, message protocol.Message, w *waiter) error {
	frame, err := protocol.Encode(protocol.Frame{ID: id, Message: message})
	if err != nil {
		return err
	}
	if err := o.home.saveLetter(o.number+1, frame); err != nil {
		return err
	}
	o.number++
	o.letters = append(o.letters, letter{number: o.number, id: id, message: message, frame: frame, waiter: w})
	return nil
}

// holds says whether a letter up to a number is still to be delivered. One that the office asked to send again later holds
// nothing up.
func (o *outbox) holds(number uint64) bool {
	return len(o.letters) > 0 && o.letters[0].number <= number && o.failures == 0
}

// has says whether a letter that fits is to be delivered.
func (o *outbox) has(fits func(protocol.Message) bool) bool {
	return slices.ContainsFunc(o.letters, func(l letter) bool { return fits(l.message) })
}

// head returns the message that is next, if it was not sent.
func (o *outbox) head() (letter, bool) {
	if len(o.letters) == 0 || o.underWay {
		return letter{}, false
	}
	return o.letters[0], true
}

// endingOf returns the last message that ends a round of an item, if one is to be delivered.
func (o *outbox) endingOf(item string) protocol.Message {
	for _, l := range slices.Backward(o.letters) {
		if id, ends := endedItem(l.message); ends && id == item {
			return l.message
		}
	}
	return nil
}

// next returns the message to send now, if there is one, and takes it as sent.
func (o *outbox) next(now time.Time) (letter, bool) {
	if len(o.letters) == 0 || o.underWay || now.Before(o.retryAt) {
		return letter{}, false
	}
	o.underWay = true
	return o.letters[0], true
}

// answered takes the answer to the head: it leaves, or with again it stays and is sent after a pause.
func (o *outbox) answered(again bool, now time.Time) {
	o.underWay = false
	if again {
		o.retryAt = now.Add(backoff(o.failures, 250*time.Millisecond, 30*time.Second, rand.Float64()))
		o.failures++
		return
	}
	o.failures, o.retryAt = 0, time.Time{}
	if err := o.home.removeLetter(o.letters[0].number); err != nil {
		o.log.Error("a delivered message cannot be removed from the disk; it will be sent again after a restart", "error", err)
	}
	o.letters = o.letters[1:]
}

// offline forgets what was under way: it is sent again on the next connection.
func (o *outbox) offline() {
	o.underWay, o.failures, o.retryAt = false, 0, time.Time{}
}

// empty says whether everything was delivered.
func (o *outbox) empty() bool { return len(o.letters) == 0 }

// backoff is the pause before try n, counted from 0: anything up to a bound that doubles, so that many agents do not come
// at once. random is in [0, 1).
func backoff(n int, first, most time.Duration, random float64) time.Duration {
	bound := most
	if n < 30 {
		bound = min(first<<n, most)
	}
	return time.Duration(float64(bound) * random)
}
