package office

// This file tells those who watch sessions what happens, as it happens.

import (
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/store"
)

// live is where what happens meets who watches. None of its methods waits for a watcher.
type live struct{}

// appended tells of records that are durable. Calls about one session can come out of the order of the records' places.
func (l *live) appended(session string, records []store.Stored) {}

// delta passes on a piece of what the runtime is writing.
func (l *live) delta(session, turn string, d feed.Delta) {}

// changed says that the session object may look different now.
func (l *live) changed(session string) {}
