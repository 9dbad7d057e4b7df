package office

// This file has a watcher: what is sent on one stream, in which order, and when it is cut.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// pingEvery is how often a watcher is asked whether it is there, and silence how long it may leave that unanswered.
	pingEvery = 30 * time.Second
	silence   = 2 * time.Minute
	// farewell is how long a watcher has to answer a close.
	farewell = 5 * time.Second
	// perSecond is how many bytes of a frame make its deadline a second later.
	perSecond = 64 << 10
	// A watcher has nothing to say: mostHeard bytes in a frame, and so many frames and pings in hearing.
	mostHeard    = 4096
	mostHearings = 200
	hearing      = 10 * time.Second
	// recheckTime is how long a check may take, and recheckGrace for how long none may succeed.
	recheckTime  = 10 * time.Second
	recheckGrace = 5 * time.Minute
)

// watcher is one stream. But for woken and gone it belongs to the goroutine that sends; its topic reads some under its lock.
type watcher struct {
	o       *Office
	opts    StreamOptions
	metrics *streamMetrics
	ws      *websocket.Conn
	asked   watching
	user    User
	session sessionKey
	topic   *topic

	// woken says that there may be something to send, gone is closed when the connection is not read any more.
	woken chan struct{}
	gone  chan struct{}

	// cursor is the place of the last record that was sent, begun says that any was; earliest is the first place that the snapshot told of.
	cursor   int64
	earliest int64
	begun    bool
	// object and delta are the numbers of the last ones that were sent or left out.
	object int64
	delta  int64

	// sent is when the last frame was, pinged the last ping.
	sent, pinged time.Time
	// check is when access is checked next, proof the credentials; sure is when a check last succeeded.
	check, proof, sure time.Time
}

// begin sends the snapshot.
func (w *watcher) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, admissionTime)
	defer cancel()
	frame, err := w.topic.snapshot(ctx, w)
	if err != nil {
		return err
	}
	now := time.Now()
	w.sure, w.pinged = now, now
	w.check, w.proof = now.Add(around(w.opts.Recheck)), now.Add(around(w.opts.Reauthenticate))
	return w.write(outgoingFrame{kind: feed.FrameSnapshot, size: len(frame), raw: frame})
}

// around spreads what many do at once: a time up to a tenth shorter.
func around(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/10+1))
}

// run sends what there is until the stream ends, and says how.
func (w *watcher) run(ctx context.Context) error {
	timer := time.NewTimer(w.quiet(time.Now()))
	defer timer.Stop()
	for {
		select {
		case <-w.gone:
			return &ending{cut: cutGone}
		case <-ctx.Done():
			return restarting()
		default:
		}
		if err := w.due(ctx); err != nil {
			return err
		}
		s := w.topic.next(w)
		for _, f := range s.frames {
			if err := w.write(f); err != nil {
				return err
			}
		}
		switch {
		case s.read:
			if err := w.catchUp(ctx); err != nil {
				return err
			}
		case s.done:
			return &ending{code: feed.CloseNormal, reason: "the session is closed"}
		case len(s.frames) == 0:
			timer.Reset(w.quiet(time.Now()))
			select {
			case <-w.woken:
			case <-timer.C:
			case <-w.gone:
			case <-ctx.Done():
			}
		}
	}
}

// restarting ends a stream because the office does.
func restarting() *ending {
	return ends(websocket.CloseServiceRestart, "the office restarts: connect again with after_seq, the place of your last record")
}

// quiet is how long there is nothing to do, if nothing happens.
func (w *watcher) quiet(now time.Time) time.Duration {
	next := w.sent.Add(w.opts.Heartbeat)
	for _, at := range []time.Time{w.pinged.Add(pingEvery), w.check, w.proof} {
		if at.Before(next) {
			next = at
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// due does what the time has come for.
func (w *watcher) due(ctx context.Context) error {
	now := time.Now()
	if now.Sub(w.sent) >= w.opts.Heartbeat {
		frame := feed.AppendHeartbeat(nil, w.o.now())
		if err := w.write(outgoingFrame{kind: feed.FrameHeartbeat, size: len(frame), raw: frame}); err != nil {
			return err
		}
	}
	if now.Sub(w.pinged) >= pingEvery {
		w.pinged = now
		if err := w.ws.WriteControl(websocket.PingMessage, nil, now.Add(w.opts.Stall)); err != nil {
			return w.failed(err)
		}
	}
	if now.Before(w.check) && now.Before(w.proof) {
		return nil
	}
	return w.again(ctx, now)
}

// again checks whether the watcher may still watch. Where that cannot be found out, it goes on for a while.
func (w *watcher) again(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, recheckTime)
	defer cancel()
	var err error
	if !now.Before(w.proof) {
		w.proof = now.Add(around(w.opts.Reauthenticate))
		var user User
		if user, err = w.o.authenticateUser(w.asked.copyOf(ctx)); err == nil && !sameUser(user, w.user) {
			return ends(feed.CloseNotAuthorized, "the credentials are another user's now: connect again")
		}
	}
	if err == nil {
		w.check = now.Add(around(w.opts.Recheck))
		err = w.mayWatch(ctx)
	}
	var p *httpProblem
	switch {
	case err == nil:
		w.sure = now
		return nil
	case errors.As(err, &p) && p.Status == 401:
		return ends(feed.CloseNotAuthorized, "the credentials are not valid any more: connect again with new ones, and after_seq")
	case errors.As(err, &p) && p.Status == 404:
		e := ends(feed.CloseNotAuthorized, "you may not read this session any more: that takes the right to get workitems/session of "+
			"bullpen.dev in its namespace")
		e.reason = "not allowed any more"
		return e
	case now.Sub(w.sure) >= recheckGrace:
		return ends(feed.CloseServerError, "it cannot be found out whether you may still read this session: connect again later")
	}
	return nil
}

// catchUp sends records from the feed.
func (w *watcher) catchUp(ctx context.Context) error {
	f, err := w.topic.read(ctx, w.cursor)
	if err != nil {
		if ctx.Err() != nil {
			return restarting()
		}
		w.o.log.Warn("A stream ends because its records could not be read", "error", err)
		return ends(feed.CloseServerError, "the records could not be read: connect again with after_seq")
	}
	if f == nil {
		return w.missing(ctx)
	}
	if want := max(w.cursor+1, w.earliest); f.first != want && (w.begun || w.earliest != 0) {
		return removed()
	}
	w.o.live.loaded.Add(int64(f.size))
	err = w.write(f.outgoing())
	w.o.live.loaded.Add(-int64(f.size))
	w.cursor, w.begun = f.last, true
	return err
}

// missing is for records that there were and that the feed has no more.
func (w *watcher) missing(ctx context.Context) error {
	if w.begun || w.earliest != 0 {
		return removed() // after the snapshot said that they are there
	}
	head, err := w.o.opts.Feed.Head(ctx, w.session.ID)
	if err != nil {
		return err
	}
	w.cursor = head.Latest
	return nil
}

// removed ends a stream whose records were removed while it was read, so that its next snapshot tells of the gap.
func removed() *ending {
	return ends(feed.CloseServerError, "older records were removed meanwhile: connect again, and see earliest_feed_seq")
}

// write sends a frame. A watcher that does not take it in time is cut.
func (w *watcher) write(f outgoingFrame) error {
	now := time.Now()
	_ = w.ws.SetWriteDeadline(now.Add(w.opts.Stall + time.Duration(f.size/perSecond)*time.Second))
	var err error
	if f.shared != nil {
		err = w.ws.WritePreparedMessage(f.shared)
	} else {
		err = w.ws.WriteMessage(websocket.TextMessage, f.raw)
	}
	if err != nil {
		return w.failed(err)
	}
	w.sent = now
	w.metrics.frames.WithLabelValues(f.kind).Inc()
	return nil
}

// failed says how a stream ends that could not be written to.
func (w *watcher) failed(err error) *ending {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		w.o.log.Info("A stream was cut because its watcher does not read", "session", w.session.ID)
		return &ending{cut: cutSlow, message: err.Error()}
	}
	return &ending{cut: cutGone, message: err.Error()}
}

// end tells the watcher how its stream ends, and closes the connection.
func (w *watcher) end(e *ending) {
	if e.cut != "" {
		w.metrics.ends.WithLabelValues(e.cut).Inc()
		_ = w.ws.Close()
		<-w.gone
		return
	}
	w.metrics.ends.WithLabelValues(fmt.Sprint(e.code)).Inc()
	last := outgoingFrame{kind: feed.FrameError, raw: feed.AppendError(nil, e.message)}
	if e.code == feed.CloseNormal {
		last = outgoingFrame{kind: feed.FrameDone, raw: feed.AppendDone(nil)}
	}
	deadline := time.Now().Add(farewell)
	_ = w.ws.SetReadDeadline(deadline)
	if w.write(last) == nil {
		_ = w.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(e.code, cutReason(e.reason)), deadline)
		timer := time.NewTimer(farewell)
		defer timer.Stop()
		select {
		case <-w.gone: // the watcher closed too
		case <-timer.C:
		}
	}
	_ = w.ws.Close()
	<-w.gone
}

// cutReason keeps a reason within the 123 bytes that a close has for it.
func cutReason(s string) string {
	const limit = 123
	if len(s) <= limit {
		return s
	}
	at := limit - len("...")
	for at > 0 && s[at]&0xC0 == 0x80 {
		at--
	}
	return s[:at] + "..."
}

// listen reads what the watcher sends, which is nothing but answers to pings, until the connection ends.
func (w *watcher) listen() {
	defer close(w.gone)
	count, since := 0, time.Now()
	heard := func() error {
		now := time.Now()
		if now.Sub(since) > hearing {
			count, since = 0, now
		}
		if count++; count > mostHearings {
			return errors.New("the watcher sends too much")
		}
		return nil
	}
	answer := w.ws.PingHandler()
	w.ws.SetReadLimit(mostHeard)
	w.ws.SetPingHandler(func(data string) error { return errors.Join(heard(), answer(data)) })
	w.ws.SetPongHandler(func(string) error { return errors.Join(heard(), w.ws.SetReadDeadline(time.Now().Add(silence))) })
	_ = w.ws.SetReadDeadline(time.Now().Add(silence))
	for {
		if _, _, err := w.ws.NextReader(); err != nil {
			return
		}
		if heard() != nil {
			message := websocket.FormatCloseMessage(websocket.ClosePolicyViolation, "a watcher has nothing to say here")
			_ = w.ws.WriteControl(websocket.CloseMessage, message, time.Now().Add(farewell))
			return
		}
	}
}
