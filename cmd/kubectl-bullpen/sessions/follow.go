package sessions

// This file follows the stream of a session. Its place in the feed is the cursor: a stream that was cut is dialed again from there, so that
// every record is seen once and in order, however often that happens.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// mostFrame bounds a frame. One with a single record of the largest size is a little larger than that.
	mostFrame = 2 * feed.MaxRecord
	// longestWait is the longest pause before a lost stream is dialed again; capacityWait the shortest where the office has no room.
	longestWait  = 30 * time.Second
	capacityWait = 5 * time.Second
	// steady is how long a stream has to last for its loss to count as the first one again, if it delivered nothing.
	steady = 10 * time.Second
)

// Watcher takes what a stream delivers, in order, from one goroutine. An error of a method ends the stream, and Follow returns it.
type Watcher interface {
	// Snapshot comes first, and again after each cut. After is the place of the last record that was delivered, or at first the cursor.
	Snapshot(s *feed.Snapshot, after int64, again bool) error
	// Record delivers a record, and its bytes as they came.
	Record(r *feed.Record, raw []byte) error
	// Session delivers a changed session object.
	Session(s *feed.Session) error
	// Delta delivers a piece of what the runtime is writing; the turn is empty where it is not known.
	Delta(turn string, d feed.Delta) error
	// Cut says that the connection was lost, and why; it is dialed again after the pause.
	Cut(why error, pause time.Duration) error
}

// ClosedError is how the office ended a stream that it does not go on with.
type ClosedError struct {
	// Code is a WebSocket close code; see feed.CloseIsTerminal.
	Code int
	// Reason is what the office says about it.
	Reason string
}

// Error is the reason.
func (e *ClosedError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("the office ended the stream with code %d", e.Code)
	}
	return e.Reason
}

// Follow watches a session from the record after a place until its conversation is closed, which gives nil, the watcher ends it, ctx ends,
// or the office refuses to go on. Where the very first connection cannot be made, that is an error at once; later ones are tried again
// without an end.
func (c *Client) Follow(ctx context.Context, id string, after int64, w Watcher) error {
	f := &following{client: c, session: id, cursor: after, watcher: w}
	for pause := c.wait; ; pause = min(2*pause, longestWait) {
		began, from := time.Now(), f.cursor
		err := f.once(ctx)
		var stopped *stoppedError
		switch {
		case err == nil, ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &stopped):
			return stopped.err
		case !f.greeted:
			return err
		case terminal(err, f.welcome):
			return err
		}
		if f.cursor > from || time.Since(began) >= steady {
			pause = c.wait
		}
		wait := pause/2 + rand.N(pause/2+1)
		var closed *ClosedError
		if errors.As(err, &closed) && closed.Code == feed.CloseOverCapacity {
			wait = max(wait, capacityWait)
		}
		if err := w.Cut(err, wait); err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// terminal says whether it makes no sense to dial again in the same way. A stream that was open and ended because its credentials did
// is dialed again once, with those that there are now.
func terminal(err error, welcome bool) bool {
	if errors.Is(err, errNoStream) {
		return true
	}
	var closed *ClosedError
	if errors.As(err, &closed) {
		return feed.CloseIsTerminal(closed.Code) && (closed.Code != feed.CloseNotAuthorized || !welcome)
	}
	var p *Problem
	if errors.As(err, &p) {
		return p.Status >= 400 && p.Status < 500 && p.Status != http.StatusTooManyRequests && p.Status != http.StatusRequestTimeout
	}
	return false
}

// errNoStream says that what the office sends cannot be read.
var errNoStream = errors.New("the office sent something that this plugin cannot read: is it of the manager's release?")

// stoppedError is what the watcher ended a stream with.
type stoppedError struct{ err error }

func (e *stoppedError) Error() string { return e.err.Error() }
func (e *stoppedError) Unwrap() error { return e.err }

// following is a stream across its connections.
type following struct {
	client  *Client
	session string
	cursor  int64
	watcher Watcher
	// greeted says that a snapshot came once, welcome that one came on this connection.
	greeted, welcome bool
	// told is what the last error frame said.
	told string
}

// once dials, and delivers until the connection ends. It gives nil after done.
func (f *following) once(ctx context.Context) error {
	f.welcome = false
	conn, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it is over either way
	stop := context.AfterFunc(ctx, func() {
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
		_ = conn.Close()
	})
	defer stop()
	conn.SetReadLimit(mostFrame)
	answerPing := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		_ = conn.SetReadDeadline(time.Now().Add(f.client.quiet))
		return answerPing(data)
	})
	f.told = ""
	for first := true; ; first = false {
		_ = conn.SetReadDeadline(time.Now().Add(f.client.quiet))
		_, data, err := conn.ReadMessage()
		if err != nil {
			return f.ended(err)
		}
		frame, err := feed.DecodeFrame(data)
		if err != nil {
			return fmt.Errorf("%w (%w)", errNoStream, err)
		}
		if _, ok := frame.(feed.Snapshot); first && !ok {
			if e, isError := frame.(feed.ErrorFrame); isError {
				f.told = e.Message
				continue
			}
			return fmt.Errorf("%w (the stream begins with %s)", errNoStream, frame.FrameType())
		}
		if over, err := f.deliver(frame); over || err != nil {
			return err
		}
	}
}

// dial makes the connection. An answer that is none is a *Problem.
func (f *following) dial(ctx context.Context) (*websocket.Conn, error) {
	c := f.client
	q := url.Values{"protocol": {strconv.Itoa(feed.StreamProtocol)}, "after_seq": {strconv.FormatInt(f.cursor, 10)}}
	request, err := c.request(ctx, http.MethodGet, "/v1/sessions/"+url.PathEscape(f.session)+"/stream", q, nil)
	if err != nil {
		return nil, err
	}
	headers, err := sign(c.signs, request)
	if err != nil {
		return nil, fmt.Errorf("read the credentials: %w", err)
	}
	headers.Del("Accept")
	where := *request.URL
	where.Scheme = "wss"
	conn, response, err := c.dialer.DialContext(ctx, where.String(), headers) //nolint:bodyclose // the dialer has read it
	if errors.Is(err, websocket.ErrBadHandshake) && response != nil {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // what cannot be read leaves the status
		return nil, problemOf(response.StatusCode, text)
	}
	if err != nil {
		return nil, fmt.Errorf("reach the office: %w", unwrapURL(err))
	}
	return conn, nil
}

// ended makes an error of the end of a connection.
func (f *following) ended(err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) || closed.Code == websocket.CloseAbnormalClosure {
		return fmt.Errorf("the connection was lost: %w", err)
	}
	reason := f.told
	if reason == "" {
		reason = closed.Text
	}
	return &ClosedError{Code: closed.Code, Reason: reason}
}

// deliver gives a frame to the watcher; over says that it was the last one.
func (f *following) deliver(frame feed.Frame) (over bool, err error) {
	switch frame := frame.(type) {
	case feed.Snapshot:
		again := f.greeted
		f.greeted, f.welcome = true, true
		err = f.watcher.Snapshot(&frame, f.cursor, again)
	case feed.RecordsAppend:
		for i := range frame.Records {
			r := &frame.Records[i]
			if r.FeedSeq <= f.cursor {
				continue // seen before the cut
			}
			f.cursor = r.FeedSeq
			if err = f.watcher.Record(r, frame.Raw[i]); err != nil {
				break
			}
		}
	case feed.SessionFrame:
		err = f.watcher.Session(&frame.Session)
	case feed.DeltaFrame:
		turn := ""
		if frame.TurnID != nil {
			turn = *frame.TurnID
		}
		err = f.watcher.Delta(turn, frame.Delta)
	case feed.ErrorFrame:
		f.told = frame.Message
	case feed.Done:
		return true, nil
	}
	if err != nil {
		return true, &stoppedError{err}
	}
	return false, nil
}
