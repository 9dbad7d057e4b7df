package agent

// This file has the agent's records uploaded: how the office's ingest endpoint is reached, which turns of earlier lives are to be ended,
// and how long the end of a round waits for the records before it.

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/agentpod/mask"
	"github.com/bullpen-dev/bullpen/agentpod/spool"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// openSpool opens what records go through. An agent without it works all the same.
func (a *Agent) openSpool() {
	a.mask = mask.New(append(a.cfg.Secrets.Paths, a.cfg.TokenFile), a.cfg.Secrets.Values, a.log)
	masked, short := a.mask.Count()
	a.log.Info("values are masked in what this agent tells", "count", masked, "tooShort", short)
	var err error
	a.spool, err = spool.Open(filepath.Join(a.home.root, "spool"), spool.Options{Room: a.cfg.SpoolRoom, Log: a.log})
	if err != nil {
		a.log.Error("sessions of this agent will have no records", "error", err)
		return
	}
	a.uploads = spool.NewUploader(a.spool, a.dialIngest, a.cfg.uploadTimes, func() { a.do(func() {}) }, a.log)
	a.endLeftTurns()
}

// runUploads uploads until the function that it returns is called, which closes the spool too.
func (a *Agent) runUploads() func() {
	if a.spool == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.uploads.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
		a.spool.Close()
	}
}

// online tells the uploads whether the agent is connected.
func (a *Agent) online(online bool) {
	if a.uploads != nil {
		a.uploads.Online(online)
	}
}

// ingestURL is where the records of an item are uploaded.
func ingestURL(base, person, item, spool, offer string) (string, error) {
	u, err := officeURL(base, "v1", "sessions", item, "ingest")
	if err != nil {
		return "", err
	}
	u.RawQuery = url.Values{"person": {person}, "spool": {spool}, "offer": {offer}}.Encode()
	return u.String(), nil
}

// dialIngest opens a connection for the records of an item. What the office answers with 401, 403, 404 or another status of the client's
// trouble is a refusal.
func (a *Agent) dialIngest(ctx context.Context, item, spoolID, offer string) (*websocket.Conn, error) {
	address, err := ingestURL(a.cfg.OfficeURL, a.cfg.Person, item, spoolID, offer)
	if err != nil {
		return nil, err
	}
	d := a.dialer()
	token, err := d.token()
	if err != nil {
		return nil, err
	}
	ws, status, err := d.dial(ctx, address, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil && status >= 400 && status < 500 && status != http.StatusTooManyRequests {
		return nil, &spool.RefusedError{Status: status, Err: err}
	}
	return ws, err
}

// endLeftTurns ends the turns that an earlier life, or an agent that took this one's place, left open, unless their rounds go on.
func (a *Agent) endLeftTurns() {
	if a.spool == nil {
		return
	}
	for _, left := range a.spool.Left() {
		it := a.machine.items[left.Item]
		same := it != nil && it.offerID == left.Offer
		ending := a.outbox.endingOf(left.Item)
		switch {
		case same && it.phase != phaseEnded && ending == nil:
			continue // the welcome says whether it goes on
		case same && it.phase == phaseEnded && it.ending != nil:
			ending = it.ending
		case !same:
			ending = nil
		}
		a.log.Info("ending the records of a round that was left", "item", left.Item, "offer", left.Offer)
		t := &turn{mask: a.mask, queue: a.spool.Begin(left.Item, left.Offer)}
		t.end(endOfTurn(ending, ""))
	}
}

// endUnstarted writes the end of a turn whose round is handed back before it was begun.
func (a *Agent) endUnstarted(act unstarted) {
	if a.spool == nil || act.item.offerID == "" {
		return
	}
	t := &turn{mask: a.mask, queue: a.spool.Begin(act.item.id, act.item.offerID)}
	t.end(endOfTurn(act.ending, ""))
}

// holdBack says how long the outbox's first letter still waits for records that it must not overtake: a message that ends a round comes
// after them, as long as they are on their way, and not for ever.
func (a *Agent) holdBack(now time.Time) time.Duration {
	l, ok := a.outbox.head()
	if !ok || a.spool == nil {
		return 0
	}
	id, ends := endedItem(l.message)
	if !ends {
		return 0
	}
	if waits, soon := a.uploads.Waits(id); !waits || !soon {
		return 0
	}
	if a.heldBack != l.number {
		a.heldBack, a.heldSince = l.number, now
	}
	most := a.cfg.timing.records
	if a.draining {
		most = min(most, a.cfg.Grace/5)
	}
	return max(0, most-now.Sub(a.heldSince))
}

// holdsWindows says whether the outbox's first letter ends a round while usage windows still wait for the answer to earlier ones. A round
// that a limit ended must not come before the windows that say so: the office would offer the item again at once.
func (a *Agent) holdsWindows() bool {
	l, ok := a.outbox.head()
	if !ok {
		return false
	}
	_, ends := endedItem(l.message)
	_, untold := a.latest[protocol.TypeUsage]
	return ends && untold
}
