package spool

// This file is one connection of an upload: a goroutine reads what the office says, another one sends.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
)

const (
	// maxUnderWay is about how many bytes may be sent and not stored.
	maxUnderWay = 4 << 20
	// maxFromOffice is the most bytes of a frame of the office.
	maxFromOffice = 64 << 10
)

// connection uploads one queue. Its fields belong to the goroutine that sends.
type connection struct {
	w     *worker
	q     *Queue
	ws    *websocket.Conn
	times Times

	cursor cursor
	// sent is the last entry that was sent, and underWay what is sent and not stored.
	sent     int64
	underWay []sentBatch
	bytes    int
	// storedAt is when the office last stored something, or had nothing to.
	storedAt time.Time
	// deltaAt is when the next delta may be sent.
	deltaAt time.Time
}

type sentBatch struct {
	last  int64
	bytes int
}

// heard is what the reader has for the sender: how far the office has the spool, or why the connection ended.
type heard struct {
	seq int64
	err error
}

// run uploads until there is no more, or the connection ends. nil is the former.
func (c *connection) run(ctx context.Context) error {
	defer c.ws.Close() //nolint:errcheck // it is over either way
	defer c.cursor.close()
	stop := context.AfterFunc(ctx, func() {
		_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""), time.Now().Add(time.Second))
		_ = c.ws.Close()
	})
	defer stop()
	if err := c.greet(); err != nil {
		return err
	}
	c.q.watch(c.sent, true)
	defer c.q.watch(0, false)
	gone := make(chan struct{})
	defer close(gone)
	news := make(chan heard, 64)
	go c.listen(news, gone)
	return c.upload(ctx, news)
}

// greet reads how far the office has the spool.
func (c *connection) greet() error {
	c.ws.SetReadLimit(maxFromOffice)
	_ = c.ws.SetReadDeadline(time.Now().Add(c.times.Answer))
	_, data, err := c.ws.ReadMessage()
	if err != nil {
		return fmt.Errorf("the office did not say how far it has the records: %w", err)
	}
	var ready feed.Ready
	if err := json.Unmarshal(data, &ready); err != nil || ready.Type != feed.IngestReady {
		return errors.New("the office's first frame is not ready")
	}
	had, ok := c.q.resume(ready.Seq)
	if !ok {
		c.q.renew()
		return errRenewed
	}
	c.sent, c.storedAt = had, time.Now()
	c.w.setFailing(false) // the pauses start over only when something is stored
	return nil
}

// resume takes how far the office has the queue, by its own count, and returns the last entry that need not be sent. ok is false if the
// office wants entries that are gone.
func (q *Queue) resume(seq int64) (had int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	had = seq + q.meta.Base
	if had < q.first-1 {
		return 0, false
	}
	return min(had, q.next-1), true
}

// listen reads until the connection ends.
func (c *connection) listen(news chan<- heard, gone <-chan struct{}) {
	alive := func() { _ = c.ws.SetReadDeadline(time.Now().Add(c.times.Silence)) }
	c.ws.SetPongHandler(func(string) error { alive(); return nil })
	c.ws.SetPingHandler(func(data string) error {
		alive()
		err := c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(c.times.Write))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	for {
		alive()
		_, data, err := c.ws.ReadMessage()
		var stored feed.Stored
		switch {
		case err != nil:
		case json.Unmarshal(data, &stored) != nil:
			err = errors.New("a frame of the office is no JSON object")
		case stored.Type != feed.IngestStored:
			continue // of a newer office
		}
		select {
		case news <- heard{stored.Seq, err}:
		case <-gone:
			return
		}
		if err != nil {
			return
		}
	}
}

// upload sends until there is no more.
func (c *connection) upload(ctx context.Context, news <-chan heard) error {
	ping := time.NewTicker(c.times.Ping)
	defer ping.Stop()
	timer := time.NewTimer(c.times.Delta)
	defer timer.Stop()
	if c.stored(c.sent) {
		return c.bye()
	}
	for {
		deltaWaits, err := c.send()
		if err != nil {
			return err
		}
		if c.q.left() && len(c.underWay) == 0 {
			return c.bye()
		}
		if deltaWaits {
			timer.Reset(time.Until(c.deltaAt))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case h := <-news:
			if h.err != nil {
				return h.err
			}
			if c.stored(c.q.own(h.seq)) {
				return c.bye()
			}
		case <-c.w.wake:
		case <-timer.C:
		case now := <-ping.C:
			if len(c.underWay) > 0 && now.Sub(c.storedAt) > c.times.Stall {
				return errors.New("the office stores nothing of what it is sent")
			}
			if err := c.ws.WriteControl(websocket.PingMessage, nil, now.Add(c.times.Write)); err != nil {
				return err
			}
		}
	}
}

// own is a sequence of the office's count in the queue's own.
func (q *Queue) own(seq int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return seq + q.meta.Base
}

// left says whether nobody adds to the queue though its turn is open, and the office has what there is.
func (q *Queue) left() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.removed || !q.live && q.acked == q.next-1 && len(q.pending) == 0 && !q.drained()
}

// stored takes that the office has entries. It says whether that was the end of the queue.
func (c *connection) stored(seq int64) bool {
	for len(c.underWay) > 0 && c.underWay[0].last <= seq {
		c.bytes -= c.underWay[0].bytes
		c.underWay = c.underWay[1:]
		c.w.worked()
	}
	c.storedAt = time.Now()
	return c.q.acknowledge(seq)
}

// send sends what can be sent now, entries and deltas in the order in which they came. It says whether a delta waits for its time.
func (c *connection) send() (deltaWaits bool, err error) {
	for {
		last, after := c.q.ahead()
		switch {
		case after <= c.sent && after == last && time.Now().Before(c.deltaAt):
			return true, nil // nothing waits behind it: it may grow
		case after <= c.sent:
			if d, ok := c.q.takeDelta(c.sent); ok {
				err = c.write(feed.LiveDelta{Type: feed.IngestDelta, Offer: c.q.meta.Offer, Delta: d})
				c.deltaAt = time.Now().Add(c.times.Delta)
			}
		case c.sent == last || c.bytes >= maxUnderWay:
			return false, nil
		default:
			err = c.sendBatch(min(last, after))
		}
		if err != nil {
			return false, err
		}
	}
}

// sendBatch sends the next entries, up to one.
func (c *connection) sendBatch(to int64) error {
	entries, err := c.cursor.read(c.sent+1, to, maxBatch, maxBatchBytes)
	if err != nil {
		return fmt.Errorf("spooled records cannot be read: %w", err)
	}
	if len(entries) == 0 {
		return fmt.Errorf("the spool has no record %d, though it should", c.sent+1)
	}
	frame := []byte(`{"type":"` + feed.IngestUpload + `","entries":[`)
	base := c.sent - c.q.own(0)
	for i, entry := range entries {
		if i > 0 {
			frame = append(frame, ',')
		}
		frame = wire(frame, base+int64(i)+1, c.q.meta.Offer, entry)
	}
	frame = append(frame, "]}"...)
	if len(c.underWay) == 0 {
		c.storedAt = time.Now()
	}
	c.sent += int64(len(entries))
	c.q.sent(c.sent)
	c.bytes += len(frame)
	c.underWay = append(c.underWay, sentBatch{last: c.sent, bytes: len(frame)})
	return c.writeFrame(frame)
}

func (c *connection) write(frame any) error {
	data, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return c.writeFrame(data)
}

func (c *connection) writeFrame(data []byte) error {
	_ = c.ws.SetWriteDeadline(time.Now().Add(c.times.Write))
	return c.ws.WriteMessage(websocket.TextMessage, data)
}

// bye closes the connection in order.
func (c *connection) bye() error {
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	return nil
}
