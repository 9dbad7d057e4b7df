package office

// This file takes the records that agents upload, on a connection of its own, so that a flood of them never delays a heartbeat.
// See feed.Ready for the frames.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/store"
)

const (
	// maxUpload is the most bytes of one frame of an upload: one entry of the largest size, with room for its envelope.
	maxUpload = feed.MaxRecord + 1<<20
	// maxEntries is the most entries of one frame.
	maxEntries = 1000
	// uploadQuiet is how long an upload may be silent, pings aside; uploadPing how often it is pinged.
	uploadQuiet = 75 * time.Second
	uploadPing  = 25 * time.Second
	// uploadWrite is how long a frame may take to be written.
	uploadWrite = 10 * time.Second
)

// uploads knows who uploads records now.
type uploads struct {
	mu sync.Mutex
	// open counts the connections of each item; seen are the items for which there was any in this life of the office.
	open map[string]int
	seen map[string]bool
	// moved has, for items that somebody waits for, what is closed when something was stored or a connection ended.
	moved map[string]chan struct{}
}

func newUploads() *uploads {
	return &uploads{open: map[string]int{}, seen: map[string]bool{}, moved: map[string]chan struct{}{}}
}

func (u *uploads) enter(item string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[item]++
	u.seen[item] = true
}

func (u *uploads) leave(item string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open[item]--; u.open[item] == 0 {
		delete(u.open, item)
	}
	u.tell(item)
}

// tell wakes whoever waits for an item. Its caller holds mu.
func (u *uploads) tell(item string) {
	if moved, waited := u.moved[item]; waited {
		close(moved)
		delete(u.moved, item)
	}
}

// stored says that records of an item were stored.
func (u *uploads) stored(item string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tell(item)
}

// connected says whether somebody uploads the item's records now, and gives what is closed when that may have changed.
func (u *uploads) connected(item string) (bool, <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open[item] == 0 {
		return false, nil
	}
	if u.moved[item] == nil {
		u.moved[item] = make(chan struct{})
	}
	return true, u.moved[item]
}

// known says whether anybody uploads records of the item, or did in this life of the office.
func (u *uploads) known(item string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.seen[item] || u.open[item] > 0
}

// forget drops what is known of an item whose conversation is over.
func (u *uploads) forget(item string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.seen, item)
}

// uploading says whether an agent uploads records of the session now.
func (o *Office) uploading(sessionID string) bool {
	item, _, ok := model.ItemOfSession(sessionID)
	connected, _ := o.uploads.connected(item)
	return ok && connected
}

// recordsWait is how long the end of a round waits for the records before it.
const recordsWait = 5 * time.Second

// awaitRecords lets the records of the round that an item runs come in before the round is ended: a hand-back may overtake them. It waits
// only while the agent uploads, and not for ever.
func (o *Office) awaitRecords(ctx context.Context, itemID string) {
	if o.opts.Feed == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordsWait)
	defer cancel()
	for {
		connected, moved := o.uploads.connected(itemID)
		if !connected {
			return
		}
		s, err := view(ctx, o.store, func(r store.Reader) (model.Session, error) { return r.SessionOf(itemID) })
		if err != nil || s == nil || s.Turn == nil || s.Turn.Status.Final() {
			return
		}
		if ended, err := o.opts.Feed.Ended(ctx, s.ID, s.Turn.ID); err != nil || ended {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// serveIngest lets an agent upload the records of a session.
func (o *Office) serveIngest(w http.ResponseWriter, r *http.Request) {
	if o.opts.Feed == nil {
		http.Error(w, "this office keeps no records", http.StatusNotFound)
		return
	}
	spool, handle := r.URL.Query().Get("spool"), r.URL.Query().Get("person")
	if spool == "" || len(spool) > maxName || handle == "" {
		http.Error(w, "give the query parameters person (the handle) and spool (the id of the item's spool)", http.StatusBadRequest)
		return
	}
	s, status, err := o.uploader(r, handle)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader answered
	}
	up := &upload{o: o, ws: ws, item: s.ItemID, person: handle, session: *s, spool: spool, offer: r.URL.Query().Get("offer")}
	go up.serve(enteringOf(r.Context()))
}

// uploader finds the session whose records an agent wants to upload, and checks that it may: it has the person's token, and the person has
// run a round of the item.
func (o *Office) uploader(r *http.Request, handle string) (s *model.Session, status int, err error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	var mine bool
	viewErr := o.store.View(r.Context(), func(tx store.Reader) error {
		if s, err = findSession(tx, r.PathValue("id")); err != nil || s == nil {
			return err
		}
		mine, err = ran(tx, s.ItemID, handle)
		return err
	})
	switch {
	case viewErr != nil:
		o.log.Error("The store could not be read for an upload", "error", viewErr)
		return nil, http.StatusServiceUnavailable, errors.New("the office cannot read its store now: try again later")
	case s == nil || token == "":
		return nil, http.StatusUnauthorized, errNotYours
	}
	key := model.PersonKey{Team: model.TeamKey{Namespace: s.Namespace, Name: s.Team}, Handle: handle}
	if _, werr := o.authenticate(r.Context(), key, token); werr != nil {
		return nil, http.StatusUnauthorized, errNotYours
	}
	if !mine {
		return nil, http.StatusForbidden, errNotYours
	}
	return s, 0, nil
}

// errNotYours is one answer for a session that is not there, a wrong token, and somebody else's session, so that nobody learns which.
var errNotYours = errors.New("no such session of this person, or a wrong token: the token is in the Secret of the person's agent")

// ran says whether the person has, or had, a round of the item.
func ran(r store.Reader, itemID, handle string) (bool, error) {
	rounds, err := r.Rounds(itemID)
	for _, round := range rounds {
		if round.Person == handle && round.Accepted() {
			return true, nil
		}
	}
	return false, err
}

// upload is one connection of an agent that uploads records.
type upload struct {
	o       *Office
	ws      *websocket.Conn
	item    string
	person  string
	session model.Session
	spool   string
	// offer is the id of the offer whose round the spool is of, empty where the agent does not say.
	offer string
	// turns are the rounds whose turns are known, by the ids of their offers; nil stands, for a frame, for a round that nobody remembers.
	turns map[string]*roundTurn
}

// serve takes what comes until the connection ends.
func (u *upload) serve(through *entering) {
	defer u.ws.Close() //nolint:errcheck // it is over either way
	u.turns = map[string]*roundTurn{}
	ctx, cancel := context.WithCancel(u.o.lifetime)
	defer cancel()
	u.o.uploads.enter(u.item)
	defer u.o.uploads.leave(u.item)
	err := u.ready(ctx)
	through.entered()
	if err != nil {
		u.fail(err)
		return
	}
	go u.ping(ctx)
	u.ws.SetReadLimit(maxUpload)
	u.ws.SetPongHandler(func(string) error { return u.ws.SetReadDeadline(time.Now().Add(uploadQuiet)) })
	for {
		if err := u.ws.SetReadDeadline(time.Now().Add(uploadQuiet)); err != nil {
			return
		}
		kind, data, err := u.ws.ReadMessage()
		if err != nil {
			return // the agent closed, or comes again
		}
		if kind != websocket.TextMessage {
			u.fail(&uploadError{"frames are JSON text"})
			return
		}
		if err := u.take(ctx, data); err != nil {
			u.fail(err)
			return
		}
	}
}

// ping keeps the connection from being cut for silence, and closes it when the office ends.
func (u *upload) ping(ctx context.Context) {
	tick := time.NewTicker(uploadPing)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			_ = u.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseServiceRestart, "reconnect"), time.Now().Add(time.Second))
			_ = u.ws.SetReadDeadline(time.Now())
			return
		case <-tick.C:
			if err := u.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(uploadWrite)); err != nil {
				return
			}
		}
	}
}

// uploadError is what an agent did wrong.
type uploadError struct{ what string }

func (e *uploadError) Error() string { return e.what }

// fail closes the connection with the reason: 1007 for what the agent did wrong, 1013 for the office's trouble.
func (u *upload) fail(err error) {
	code, reason := websocket.CloseTryAgainLater, "the office cannot store this now: try again later"
	var wrong *uploadError
	if errors.As(err, &wrong) {
		code, reason = websocket.CloseInvalidFramePayloadData, wrong.what
	}
	u.o.log.Warn("An upload of records was cut", "item", u.item, "error", err)
	_ = u.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason[:min(len(reason), 120)]), time.Now().Add(time.Second))
}

func (u *upload) send(frame any) error {
	if err := u.ws.SetWriteDeadline(time.Now().Add(uploadWrite)); err != nil {
		return err
	}
	return u.ws.WriteJSON(frame)
}

// ready says how far the office has the spool. It is that of a round, whose session may be an earlier one of the item.
func (u *upload) ready(ctx context.Context) error {
	if u.offer != "" {
		t, err := u.turn(ctx, u.offer)
		if err != nil {
			return err
		}
		if t != nil {
			u.session = t.session
		}
	}
	seq, err := u.o.opts.Feed.Uploaded(ctx, u.session.ID, u.spool)
	if err != nil {
		return err
	}
	return u.send(feed.Ready{Type: feed.IngestReady, SessionID: u.session.ID, Seq: seq})
}

// take handles one frame.
func (u *upload) take(ctx context.Context, data []byte) error {
	var frame struct {
		Type    string       `json:"type"`
		Entries []feed.Entry `json:"entries"`
		Offer   string       `json:"offer"`
		Delta   feed.Delta   `json:"delta"`
	}
	if err := json.Unmarshal(data, &frame); err != nil {
		return &uploadError{"a frame is not what it should be: " + err.Error()}
	}
	maps.DeleteFunc(u.turns, func(_ string, t *roundTurn) bool { return t == nil })
	switch frame.Type {
	case feed.IngestUpload:
		if len(frame.Entries) == 0 || len(frame.Entries) > maxEntries {
			return &uploadError{fmt.Sprintf("an upload has 1 to %d entries", maxEntries)}
		}
		return u.store(ctx, frame.Entries)
	case feed.IngestDelta:
		t, err := u.turn(ctx, frame.Offer)
		if err == nil && t != nil {
			u.o.live.delta(t.session.ID, t.turn, frame.Delta)
		}
		return err
	}
	return nil // of a newer release
}
