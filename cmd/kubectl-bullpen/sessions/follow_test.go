package sessions_test

// This file tests streams, and what becomes of them when connections are lost.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions"
	"github.com/bullpen-dev/bullpen/cmd/kubectl-bullpen/sessions/sessionstest"
	"github.com/bullpen-dev/bullpen/office/feed"
)

// recorder is a watcher that keeps what it gets.
type recorder struct {
	seqs      []int64
	snapshots []string
	deltas    []string
	sessions  int
	cuts      []error
	// on, if set, is called with the place of each record.
	on func(seq int64) error
}

func (r *recorder) Snapshot(s *feed.Snapshot, after int64, again bool) error {
	r.snapshots = append(r.snapshots, fmt.Sprint(after, again))
	return nil
}

func (r *recorder) Record(record *feed.Record, raw []byte) error {
	if got, err := feed.DecodeRecord(raw); err != nil || got.FeedSeq != record.FeedSeq {
		return fmt.Errorf("the record and its bytes differ: %s", raw)
	}
	r.seqs = append(r.seqs, record.FeedSeq)
	if r.on != nil {
		return r.on(record.FeedSeq)
	}
	return nil
}

func (r *recorder) Session(*feed.Session) error { r.sessions++; return nil }

func (r *recorder) Delta(turn string, d feed.Delta) error {
	r.deltas = append(r.deltas, turn+":"+d.Kind)
	return nil
}

func (r *recorder) Cut(why error, _ time.Duration) error { r.cuts = append(r.cuts, why); return nil }

// gapless checks that every record from one place to another came once, in order.
func (r *recorder) gapless(t *testing.T, from, to int64) {
	t.Helper()
	for i, seq := range r.seqs {
		if seq != from+int64(i) {
			t.Fatalf("record %d came at place %d, not %d", seq, i, from+int64(i))
		}
	}
	if got := int64(len(r.seqs)); got != to-from+1 {
		t.Fatalf("%d records came, not %d", got, to-from+1)
	}
}

func fill(o *sessionstest.Office, n int) {
	for i := range n {
		o.Add(feed.SourceCommand, feed.FormatCommand, "stdout", fmt.Sprintf(`{"lines":["line %d"]}`, i))
	}
}

func closed(o *sessionstest.Office) { o.Session.Conversation.State = feed.ConversationClosed }

func TestAStreamIsFollowedToItsEnd(t *testing.T) {
	o := sessionstest.New(t)
	fill(o, 250)
	o.Change(func(o *sessionstest.Office) {
		o.Stream = func(_ int, s *sessionstest.Stream) {
			s.Greet()
			s.Deliver(100)
			text := "hello"
			s.Send(feed.AppendDelta(nil, "t1", feed.Delta{Kind: feed.DeltaText, Text: &text}))
			s.Send(feed.AppendDelta(nil, "", feed.Delta{Kind: feed.DeltaThinking, Text: &text}))
			s.Send(feed.AppendHeartbeat(nil, time.Now()))
			s.Send([]byte(`{"type":"news","of":"tomorrow"}`))
			encoded, _ := feed.MarshalSession(&feed.Session{Source: feed.OriginAPI})
			s.Send(feed.AppendSession(nil, encoded))
			s.Done()
		}
	})
	r := &recorder{}
	if err := dial(t, o, good()).Follow(t.Context(), "s1-item-1", 100, r); err != nil {
		t.Fatal(err)
	}
	r.gapless(t, 101, 250)
	if want := []string{"t1:text", ":thinking"}; !slices.Equal(r.deltas, want) || r.sessions != 1 || !slices.Equal(r.snapshots, []string{"100 false"}) {
		t.Errorf("deltas %v, sessions %d, snapshots %v", r.deltas, r.sessions, r.snapshots)
	}
}

// However often and wherever a stream is cut, and although the office sends again what it cannot know to have arrived.
func TestEveryRecordComesOnceThoughTheStreamIsCut(t *testing.T) {
	const records, cuts = 6_000, 200
	o := sessionstest.New(t)
	fill(o, records)
	seed := rand.Uint64()
	o.Change(func(o *sessionstest.Office) {
		o.Stream = func(n int, s *sessionstest.Stream) {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			s.After = max(0, s.After-int64(random.IntN(20))) // as one that repeats what was on its way
			s.Greet()
			if n < cuts {
				// Cut in the middle of what is sent: a frame can be lost as a whole or in part.
				after := time.Duration(random.IntN(2000)) * time.Microsecond
				cut := time.AfterFunc(after, func() { _ = s.NetConn().Close() })
				defer cut.Stop()
			}
			if n >= cuts {
				s.Deliver(100)
				s.Done()
				return
			}
			s.DeliverSome(1+random.IntN(50), records/cuts)
			<-s.Gone
		}
	})
	r := &recorder{}
	if err := dial(t, o, good()).Follow(t.Context(), "s1-item-1", 0, r); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	r.gapless(t, 1, records)
	if n := o.Streams(); n != cuts+1 {
		t.Errorf("seed %d: there were %d streams, not %d", seed, n, cuts+1)
	}
	if len(r.cuts) < cuts/2 {
		t.Errorf("seed %d: only %d cuts were noticed", seed, len(r.cuts))
	}
}

func TestWhatTheOfficeEndsAStreamWith(t *testing.T) {
	for name, test := range map[string]struct {
		code  int
		again bool
		says  string
	}{
		"a protocol that it does not know": {feed.CloseUnknownProtocol, false, "supported: 7"},
		"no protocol":                      {feed.CloseNoProtocol, false, "give a protocol"},
		"an error of its own":              {feed.CloseServerError, true, ""},
		"no room":                          {feed.CloseOverCapacity, true, ""},
		"a restart":                        {1012, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := sessionstest.New(t)
			fill(o, 3)
			o.Change(func(o *sessionstest.Office) {
				closed(o)
				o.Stream = func(n int, s *sessionstest.Stream) {
					if n > 0 {
						s.Serve()
						return
					}
					s.Greet()
					s.Deliver(2)
					s.Fail(test.code, test.says)
				}
			})
			r := &recorder{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.code == feed.CloseOverCapacity {
				// It waits for seconds; that it waits is enough here.
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			err := dial(t, o, good()).Follow(ctx, "s1-item-1", 0, r)
			var end *sessions.ClosedError
			switch {
			case test.code == feed.CloseOverCapacity:
				if !errors.Is(err, context.Canceled) || len(r.cuts) != 1 || o.Streams() != 1 {
					t.Errorf("it ends with %v after %d cuts and %d streams", err, len(r.cuts), o.Streams())
				}
			case test.again && (err != nil || len(r.cuts) != 1):
				t.Errorf("it ends with %v after %d cuts", err, len(r.cuts))
			case !test.again && (!errors.As(err, &end) || end.Code != test.code || end.Error() != test.says):
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// A token that ends while a stream is open ends the stream; there may be a new one by then.
func TestAStreamWhoseTokenEndedIsDialedOnceMore(t *testing.T) {
	for name, test := range map[string]struct {
		token string
		ok    bool
	}{"with a new token": {"second", true}, "with the same token": {"first", false}} {
		t.Run(name, func(t *testing.T) {
			token := filepath.Join(t.TempDir(), "token")
			write := func(text string) {
				if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("first")
			o := sessionstest.New(t)
			fill(o, 3)
			o.Change(func(o *sessionstest.Office) {
				closed(o)
				o.Users = []string{"Bearer first"}
				o.Stream = func(n int, s *sessionstest.Stream) {
					if n > 0 {
						s.Serve()
						return
					}
					s.Greet()
					s.Deliver(2)
					o.Change(func(o *sessionstest.Office) { o.Users = []string{"Bearer second"} })
					write(test.token)
					s.Fail(feed.CloseNotAuthorized, "who are you")
				}
			})
			r := &recorder{}
			err := dial(t, o, execConfig(t, token)).Follow(t.Context(), "s1-item-1", 0, r)
			var end *sessions.ClosedError
			switch {
			case test.ok && err != nil:
				t.Errorf("it ends with %v", err)
			case test.ok:
				r.gapless(t, 1, 3)
			case !errors.As(err, &end) || end.Code != feed.CloseNotAuthorized || o.Streams() != 2:
				t.Errorf("it ends with %v after %d streams", err, o.Streams())
			}
		})
	}
}

func TestTheFirstConnectionHasToBeMade(t *testing.T) {
	o := sessionstest.New(t)
	c := dial(t, o, &rest.Config{Host: "https://api.example.com", BearerToken: "bad"})
	var end *sessions.ClosedError
	if err := c.Follow(t.Context(), "s1-item-1", 0, &recorder{}); !errors.As(err, &end) || end.Code != feed.CloseNotAuthorized || !strings.Contains(end.Reason, "send a token") {
		t.Errorf("somebody unknown gets %v", err)
	}
	o.Close()
	if err := dial(t, o, good()).Follow(t.Context(), "s1-item-1", 0, &recorder{}); err == nil || !strings.Contains(err.Error(), "reach the office") {
		t.Errorf("without an office, it ends with %v", err)
	}
}

func TestASilentStreamIsDialedAgain(t *testing.T) {
	o := sessionstest.New(t)
	fill(o, 3)
	o.Change(func(o *sessionstest.Office) {
		closed(o)
		o.Stream = func(n int, s *sessionstest.Stream) {
			if n > 0 {
				s.Serve()
				return
			}
			s.Greet()
			<-s.Gone // and says nothing any more
		}
	})
	r := &recorder{}
	c := dial(t, o, good(), func(o *sessions.Options) { o.Quiet = 100 * time.Millisecond })
	if err := c.Follow(t.Context(), "s1-item-1", 0, r); err != nil {
		t.Fatal(err)
	}
	r.gapless(t, 1, 3)
}

func TestAWatcherEndsAStream(t *testing.T) {
	o := sessionstest.New(t)
	fill(o, 300)
	enough := errors.New("enough")
	r := &recorder{on: func(seq int64) error {
		if seq == 150 {
			return enough
		}
		return nil
	}}
	if err := dial(t, o, good()).Follow(t.Context(), "s1-item-1", 0, r); !errors.Is(err, enough) {
		t.Errorf("it ends with %v", err)
	}
	r.gapless(t, 1, 150)
	ctx, cancel := context.WithCancel(t.Context())
	r = &recorder{on: func(seq int64) error {
		if seq == 300 {
			cancel()
		}
		return nil
	}}
	if err := dial(t, o, good()).Follow(ctx, "s1-item-1", 0, r); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	r.gapless(t, 1, 300)
}

func TestWhatIsNoStream(t *testing.T) {
	for name, frame := range map[string]string{
		"no JSON":               `hello`,
		"another beginning":     `{"type":"records_append","records":[]}`,
		"a record that is none": "",
	} {
		t.Run(name, func(t *testing.T) {
			o := sessionstest.New(t)
			o.Change(func(o *sessionstest.Office) {
				o.Stream = func(_ int, s *sessionstest.Stream) {
					if frame == "" {
						s.Greet()
						s.Send([]byte(`{"type":"records_append","records":[{"kind":"unknown"}]}`))
					} else {
						s.Send([]byte(frame))
					}
					s.End(feed.CloseUnknownProtocol, "that was all")
				}
			})
			r := &recorder{}
			if err := dial(t, o, good()).Follow(t.Context(), "s1-item-1", 0, r); err == nil || len(r.seqs) > 0 {
				t.Errorf("it ends with %v after %v", err, r.seqs)
			}
		})
	}
}
