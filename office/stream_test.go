package office_test

// These tests watch sessions as clients do, over real connections, while agents upload records.

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

func TestAWatcherSeesASessionFromItsBeginningToItsEnd(t *testing.T) {
	b, _ := openSessions(t)
	s, ada, u := b.working("i1", chore)
	b.records("uid-i1", 1)
	v := b.watch("uid-i1", "protocol=6")
	first := v.snapshot()
	if first.Protocol != 6 || first.EarliestFeedSeq == nil || *first.EarliestFeedSeq != 1 || first.Session.ID != s.ID {
		t.Errorf("the snapshot is %+v", first)
	}
	if len(first.Messages) != 1 || first.Messages[0].Status != feed.InboxPending || first.Messages[0].FeedSeq == nil || *first.Messages[0].FeedSeq != 1 {
		t.Errorf("the pending messages are %+v", first.Messages)
	}
	v.records(1)
	u.upload(u.lifecycle("turn_started", map[string]any{}), u.lifecycle("message_delivered", map[string]any{}))
	until(v, func(f feed.SessionFrame) bool { return f.Session.Turn.Status == feed.TurnStatusRunning })
	u.upload(u.output(3)...)
	u.finish(ada, "i1")
	final, before := until(v, func(f feed.SessionFrame) bool { return f.Session.Turn.Status == feed.TurnStatusCompleted })
	if !has(before, feed.TypeTurnEnded) && v.last < 7 {
		t.Errorf("the turn is completed before its end is in the feed: %v", v.last)
	}
	if final.Session.Turn.EndedAt == nil {
		t.Errorf("the turn is %+v", final.Session.Turn)
	}
	code, _, last := v.ended()
	if _, done := last.(feed.Done); code != feed.CloseNormal || !done {
		t.Errorf("it ends with %d after %+v", code, last)
	}
}

// has says whether a record of a type is among frames.
func has(frames []feed.Frame, kind string) bool {
	for _, f := range frames {
		if list, ok := f.(feed.RecordsAppend); ok {
			for _, r := range list.Records {
				if r.Type == kind {
					return true
				}
			}
		}
	}
	return false
}

func TestAStreamGoesOnAfterAnyCursor(t *testing.T) {
	b, _ := openSessions(t)
	s, _, u := b.working("i1")
	u.upload(u.output(40)...)
	all := b.feedOf(s.ID)
	n := int64(len(all))
	for _, after := range []int64{0, 1, 17, n - 1, n} {
		t.Run(fmt.Sprintf("after %d of %d", after, n), func(t *testing.T) {
			v := b.watch(s.ID, fmt.Sprintf("protocol=6&after_seq=%d", after))
			v.snapshot()
			v.last = after
			v.records(n)
			u.upload(u.output(1)...)
			n++
			v.records(n)
		})
	}
}

func TestRecordsReachAWatcherAsTheyAreKept(t *testing.T) {
	b, _ := openSessions(t)
	s, _, u := b.working("i1")
	payload := `{"b":1,"a":123456789012345678901234567890,"text":"<&>\u00e9"}`
	u.upload(u.entry(feed.SourceCommand, feed.FormatCommand, "stdout", payload))
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	early := v.records(2)
	u.upload(u.entry(feed.SourceCommand, feed.FormatCommand, "stdout", payload))
	live := v.records(3)
	for i, raw := range []string{string(early[1]), string(live[0])} {
		if !strings.Contains(raw, `"payload":`+payload) {
			t.Errorf("record %d is %s", i, raw)
		}
	}
}

func TestHowAStreamIsRefused(t *testing.T) {
	b, g := openSessions(t)
	s, _, u := b.working("i1")
	u.upload(u.output(1)...)
	for name, test := range map[string]struct {
		token, session, query string
		code                  int
		reason                string
	}{
		"no protocol":                   {tokenAll, s.ID, "", feed.CloseNoProtocol, "supported: 6"},
		"an unknown protocol":           {tokenAll, s.ID, "protocol=5", feed.CloseUnknownProtocol, "supported: 6"},
		"a protocol that is no number":  {tokenAll, s.ID, "protocol=six", feed.CloseUnknownProtocol, "supported: 6"},
		"no credentials":                {"", s.ID, "protocol=6", feed.CloseNotAuthorized, "token"},
		"credentials that nobody knows": {"wrong", s.ID, "protocol=6", feed.CloseNotAuthorized, "token"},
		"a user who may not read it":    {tokenNobody, s.ID, "protocol=6", feed.CloseNotAuthorized, "no such session, or you may not"},
		"a session that there is not":   {tokenAll, "s1-x-y", "protocol=6", feed.CloseNotAuthorized, "no such session, or you may not"},
		"a cursor that is no number":    {tokenAll, s.ID, "protocol=6&after_seq=x", feed.CloseNotAuthorized, "after_seq must be"},
		"a cursor below zero":           {tokenAll, s.ID, "protocol=6&after_seq=-1", feed.CloseNotAuthorized, "after_seq must be"},
		"a cursor that was never given": {tokenAll, s.ID, "protocol=6&after_seq=3", feed.CloseNotAuthorized, "beyond"},
		"a parameter that nobody knows": {tokenAll, s.ID, "protocol=6&since=1", feed.CloseNotAuthorized, "known are: protocol, after_seq"},
		"a parameter that comes twice":  {tokenAll, s.ID, "protocol=6&after_seq=1&after_seq=2", feed.CloseNotAuthorized, "comes 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			code, reason, last := b.watchAs(test.token, test.session, test.query).ended()
			failure, ok := last.(feed.ErrorFrame)
			if code != test.code || !strings.Contains(reason, test.reason) || !ok || failure.Message == "" {
				t.Errorf("it ends with %d %q after %+v, not with %d %q", code, reason, last, test.code, test.reason)
			}
		})
	}
	t.Run("a namespace that was made again", func(t *testing.T) {
		b.editSession(s.ID, func(s *model.Session) { s.NamespaceUID = "old" })
		g.change(func(g *guard) { g.uids["ns"] = "new" })
		if code, _, last := b.watch(s.ID, "protocol=6").ended(); code != feed.CloseNotAuthorized {
			t.Errorf("it ends with %d after %+v", code, last)
		}
	})
	t.Run("Kubernetes that does not answer", func(t *testing.T) {
		g.change(func(g *guard) { g.down = true })
		code, _, last := b.watch(s.ID, "protocol=6").ended()
		if _, ok := last.(feed.ErrorFrame); code != feed.CloseServerError || !ok {
			t.Errorf("it ends with %d after %+v", code, last)
		}
	})
}

// editSession changes a session in the store, behind the office's back.
func (b *bench) editSession(id string, edit func(*model.Session)) {
	b.t.Helper()
	b.must(b.store.Update(b.t.Context(), func(tx store.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		edit(&s)
		return tx.PutSession(s)
	}))
}

func TestAnOfficeWithoutAccessOrFeedSaysSoOnAStream(t *testing.T) {
	for name, edit := range map[string]func(*office.Options){
		"without access":          func(o *office.Options) { o.Access = nil },
		"without a feed to watch": func(o *office.Options) { o.Feed = nil },
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := openSessions(t, edit)
			if code, _, last := b.watch("uid-i1", "protocol=6").ended(); code != feed.CloseServerError {
				t.Errorf("it ends with %d after %+v", code, last)
			}
		})
	}
}

func TestWhichPagesMayOpenAStream(t *testing.T) {
	b, _ := openSessions(t, func(o *office.Options) { o.AllowedOrigins = []string{"https://board.example.com"} })
	s, _, _ := b.working("i1")
	host := strings.TrimPrefix(b.url, "ws://")
	for origin, allowed := range map[string]bool{
		"http://" + host: true, "https://board.example.com": true, "https://evil.example.com": false, "http://board.example.com": false,
		"null": false, "https://board.example.com.evil.example.com": false, "http://" + host + ".example.com": false,
	} {
		t.Run(origin, func(t *testing.T) {
			dialer := websocket.Dialer{Subprotocols: []string{"base64url.bearer.authorization.k8s.io." + tokenAll, "v6.stream.bullpen.dev"}}
			ws, response, err := dialer.Dial(b.streamURL(s.ID, "protocol=6"), http.Header{"Origin": {origin}})
			if !allowed {
				if err == nil || response == nil || response.StatusCode != http.StatusForbidden {
					t.Errorf("it was answered with %v, %v", response, err)
				}
				return
			}
			b.must(err)
			defer ws.Close()
			if ws.Subprotocol() != "v6.stream.bullpen.dev" {
				t.Errorf("the subprotocol is %q", ws.Subprotocol())
			}
			(&viewer{b: b, ws: ws}).snapshot()
		})
	}
}

func TestAStreamThatIsNoWebSocketIsAProblem(t *testing.T) {
	b, _ := openSessions(t)
	p := b.refuses(http.StatusUpgradeRequired, tokenAll, http.MethodGet, "/v1/sessions/x/stream?protocol=6", "")
	if !strings.Contains(p.Detail, "WebSocket") {
		t.Errorf("the problem is %+v", p)
	}
	b.refuses(http.StatusMethodNotAllowed, tokenAll, http.MethodPost, "/v1/sessions/x/stream", "{}")
	b.refuses(http.StatusBadRequest, tokenAll, http.MethodGet, "/v1/sessions/x/stream", "", "Connection", "Upgrade", "Upgrade", "websocket")
}

func TestAQuietStreamHasAHeartbeat(t *testing.T) {
	b, _ := openSessions(t, func(o *office.Options) { o.Streams.Heartbeat = 30 * time.Millisecond })
	s, _, _ := b.working("i1")
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	v.records(1)
	for range 3 {
		beat, _ := until(v, anyOf[feed.Heartbeat])
		if time.Since(beat.TS).Abs() > time.Minute {
			t.Errorf("the server's time is %v", beat.TS)
		}
	}
}

func TestAStreamEndsWhenTheRightToReadIsTakenAway(t *testing.T) {
	b, g := openSessions(t, func(o *office.Options) { o.Streams.Recheck = 20 * time.Millisecond })
	s, _, _ := b.working("i1")
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	asked := 0
	b.eventually("access is checked again", func() bool { g.change(func(g *guard) { asked = g.asked }); return asked > 3 })
	g.change(func(g *guard) { g.down = true }) // which alone ends nothing
	b.eventually("access is checked in vain", func() bool {
		var now int
		g.change(func(g *guard) { now = g.asked })
		return now > asked+3
	})
	g.change(func(g *guard) { g.down, g.rights["all"] = false, nil })
	code, reason, last := v.ended()
	if failure, ok := last.(feed.ErrorFrame); code != feed.CloseNotAuthorized || !ok || !strings.Contains(failure.Message, "any more") {
		t.Errorf("it ends with %d %q after %+v", code, reason, last)
	}
}

func TestAStreamEndsWhenItsCredentialsAreNotValidAnyMore(t *testing.T) {
	b, g := openSessions(t, func(o *office.Options) { o.Streams.Reauthenticate = 20 * time.Millisecond })
	s, _, _ := b.working("i1")
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	g.change(func(g *guard) { g.invalid[tokenAll] = true })
	if code, _, last := v.ended(); code != feed.CloseNotAuthorized {
		t.Errorf("it ends with %d after %+v", code, last)
	}
}

func TestTooManyStreamsAreRefusedAndMakeRoomAgain(t *testing.T) {
	b, _ := openSessions(t, func(o *office.Options) { o.Streams.MaxWatchers = 2 })
	s, _, _ := b.working("i1")
	one, two := b.watch(s.ID, "protocol=6"), b.watch(s.ID, "protocol=6")
	one.snapshot()
	two.snapshot()
	if code, _, last := b.watch(s.ID, "protocol=6").ended(); code != feed.CloseOverCapacity {
		t.Errorf("the third ends with %d after %+v", code, last)
	}
	b.must(one.ws.Close())
	b.eventually("a place is free", func() bool { return b.gauge("bullpen_office_watchers") == 1 })
	b.watch(s.ID, "protocol=6").snapshot()
}

// gauge reads a metric without labels.
func (b *bench) gauge(name string) float64 {
	b.t.Helper()
	families, err := b.metrics.Gather()
	b.must(err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	b.t.Fatalf("there is no metric %s", name)
	return 0
}

func TestDeltasComeBetweenTheRecordsAroundThem(t *testing.T) {
	b, _ := openSessions(t)
	s, _, u := b.working("i1")
	v := b.watch(s.ID, "protocol=6&after_seq=1")
	v.snapshot()
	u.says(feed.Delta{Kind: feed.DeltaThinking, Text: new("**Looking**\nat it")})
	u.says(feed.Delta{Kind: feed.DeltaThinking, Text: new(strings.Repeat("x", 600))})
	u.says(feed.Delta{Kind: feed.DeltaText, Text: new("All ")})
	u.says(feed.Delta{Kind: feed.DeltaText, Text: new("tests "), OutputTokens: new(int64(3))})
	u.says(feed.Delta{Kind: feed.DeltaText, Text: new("pass.")})
	u.says(feed.Delta{Kind: feed.DeltaText, OutputTokens: new(int64(4))})
	u.says(feed.Delta{Kind: "mood", Text: new("good")})
	u.upload(u.output(1)...)
	record, before := until(v, anyOf[feed.RecordsAppend])
	var text, thinking string
	var tokens int64
	var kinds []string
	for _, f := range before {
		d, ok := f.(feed.DeltaFrame)
		if !ok {
			continue
		}
		if d.TurnID == nil || *d.TurnID != s.Turn.ID {
			t.Errorf("a delta is of turn %v", d.TurnID)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != d.Kind {
			kinds = append(kinds, d.Kind)
		}
		switch {
		case d.Kind == feed.DeltaText && d.Text != nil:
			text += *d.Text
		case d.Kind == feed.DeltaThinking:
			thinking = *d.Text
		}
		if d.OutputTokens != nil {
			tokens = *d.OutputTokens
		}
	}
	if text != "All tests pass." || thinking != strings.Repeat("x", 512) || tokens != 4 || strings.Join(kinds, " ") != "thinking text mood" {
		t.Errorf("before record %d came %q, %q, %d tokens, %v", record.Records[0].FeedSeq, text, thinking, tokens, kinds)
	}
	u.says(feed.Delta{Kind: feed.DeltaText, Text: new("More")})
	if d, _ := until(v, anyOf[feed.DeltaFrame]); *d.Text != "More" {
		t.Errorf("the delta after the record is %+v", d)
	}
}

func TestWhoJoinsInTheMiddleGetsDeltasFromThenOn(t *testing.T) {
	b, _ := openSessions(t)
	s, _, u := b.working("i1")
	early := b.watch(s.ID, "protocol=6")
	early.snapshot()
	early.records(1)
	u.says(feed.Delta{Kind: feed.DeltaText, Text: new("before")})
	until(early, anyOf[feed.DeltaFrame])
	late := b.watch(s.ID, "protocol=6")
	late.snapshot()
	late.records(1)
	u.says(feed.Delta{Kind: feed.DeltaText, Text: new("after")})
	for _, v := range []*viewer{early, late} {
		if d, _ := until(v, anyOf[feed.DeltaFrame]); *d.Text != "after" {
			t.Errorf("the delta is %q", *d.Text)
		}
	}
}

func TestTheEndOfATurnIsShownAfterItsRecords(t *testing.T) {
	b, _ := openSessions(t, func(o *office.Options) { o.Streams.HoldEnds = patience })
	s, _, u := b.working("i1")
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	u.upload(u.lifecycle("turn_started", map[string]any{}))
	// The office ends the turn itself: nothing of the agent's is awaited.
	if a := b.ask(tokenAll, http.MethodPost, "/v1/sessions/"+s.ID+"/stop", ""); a.StatusCode != http.StatusAccepted {
		t.Fatalf("the stop was answered with %d %s", a.StatusCode, a.body)
	}
	b.eventually("the turn is over", func() bool { return b.sessionOf("uid-i1").Turn.Status.Final() })
	u.upload(append(u.output(5), u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))...)
	final, before := until(v, func(f feed.SessionFrame) bool { return f.Session.Turn.Status == feed.TurnStatusStopped })
	if !has(before, feed.TypeTurnEnded) {
		t.Errorf("the session shows its turn %s before the feed does; before it came %d frames", final.Session.Turn.Status, len(before))
	}
	if final.Session.Turn.Stopped == nil || final.Session.Metadata["stopped_by"] != "all" {
		t.Errorf("who stopped it is not told: %+v, %v", final.Session.Turn.Stopped, final.Session.Metadata)
	}
}

func TestTheEndOfATurnIsShownThoughItsRecordsNeverCome(t *testing.T) {
	for name, test := range map[string]struct {
		hold time.Duration
		gone bool
	}{
		"because the agent is gone":           {patience, true},
		"because the agent keeps them for it": {50 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := openSessions(t, func(o *office.Options) { o.Streams.HoldEnds = test.hold })
			s, ada, u := b.working("i1")
			v := b.watch(s.ID, "protocol=6")
			v.snapshot()
			u.upload(u.lifecycle("turn_started", map[string]any{}))
			if test.gone {
				b.must(u.ws.Close())
			}
			ada.handBack("uid-i1", protocol.HandbackBlocked)
			until(v, func(f feed.SessionFrame) bool { return f.Session.Turn.Status == feed.TurnStatusFailed })
		})
	}
}

func TestNoEndOfATurnIsLostWhereTurnsFollowEachOther(t *testing.T) {
	b, _ := openSessions(t, func(o *office.Options) { o.Streams.SessionEvery = time.Hour })
	s, ada, u := b.working("i1")
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	const turns = 20
	for i := range turns {
		if i > 0 {
			b.say(s.ID, fmt.Sprintf("and %d", i))
			offer := ada.takeNext()
			_ = offer
			u.offer = model.OfferID("uid-i1", i+1)
		}
		u.upload(u.lifecycle("turn_started", map[string]any{}), u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))
		ada.handBack("uid-i1", protocol.HandbackDone)
	}
	for i := range turns {
		final, before := until(v, func(f feed.SessionFrame) bool {
			return f.Session.Turn.Index == int64(i) && f.Session.Turn.Status == feed.TurnStatusCompleted
		})
		for _, f := range before {
			if s, ok := f.(feed.SessionFrame); ok && s.Session.Turn.Index > final.Session.Turn.Index {
				t.Fatalf("turn %d is shown before the end of turn %d", s.Session.Turn.Index, i)
			}
		}
	}
}

// say speaks into a session.
func (b *bench) say(session, body string) feed.InboxMessage {
	b.t.Helper()
	a := b.ask(tokenAll, http.MethodPost, "/v1/sessions/"+session+"/messages", fmt.Sprintf(`{"body": %q}`, body))
	if a.StatusCode != http.StatusCreated {
		b.t.Fatalf("the message was answered with %d %s", a.StatusCode, a.body)
	}
	var m feed.InboxMessage
	a.into(b.t, &m)
	return m
}

func TestSessionFramesComeTogetherButTheLastOneComes(t *testing.T) {
	const every = 50 * time.Millisecond
	b, _ := openSessions(t, func(o *office.Options) { o.Streams.SessionEvery = every })
	s, _, u := b.working("i1")
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	start := time.Now()
	for i := range 200 {
		git := feed.Git{Repos: feed.List[feed.GitRepo]{{FullName: "acme/shop", CommitsTotal: i}}}
		u.upload(u.entry("agent", feed.FormatState, feed.StateGit, git))
	}
	_, before := until(v, func(f feed.SessionFrame) bool {
		return f.Session.Git != nil && f.Session.Git.Repos[0].CommitsTotal == 199
	})
	frames := 0
	for _, f := range before {
		if _, ok := f.(feed.SessionFrame); ok {
			frames++
		}
	}
	if most := int(time.Since(start)/every) + 3; frames > most {
		t.Errorf("%d session frames came, more than %d", frames, most)
	}
}

func TestAWatcherOfAClosedSessionReadsItToItsEnd(t *testing.T) {
	b, _ := openSessions(t)
	s, ada, u := b.working("i1", chore)
	u.upload(u.output(10)...)
	u.finish(ada, "i1")
	b.records("uid-i1", 13)
	v := b.watch(s.ID, "protocol=6")
	if first := v.snapshot(); first.Session.Conversation.State != feed.ConversationClosed {
		t.Errorf("the conversation is %s", first.Session.Conversation.State)
	}
	v.records(13)
	if code, _, last := v.ended(); code != feed.CloseNormal || last.FrameType() != feed.FrameDone {
		t.Errorf("it ends with %d after %+v", code, last)
	}
}

func TestAWatcherThatDoesNotReadIsCutAndSlowsNobody(t *testing.T) {
	b, _ := openSessions(t, func(o *office.Options) { o.Streams.Stall = 200 * time.Millisecond })
	s, _, u := b.working("i1")
	slow, quick := b.watch(s.ID, "protocol=6"), b.watch(s.ID, "protocol=6")
	quick.snapshot()
	slow.snapshot()
	big := strings.Repeat("x", 200<<10)
	const n = 150 // more than the network keeps for somebody who does not read
	for place := int64(2); place <= n; place++ {
		u.upload(u.entry(feed.SourceCommand, feed.FormatCommand, "stdout", map[string]string{"line": big}))
		quick.records(place)
	}
	b.eventually("the slow one is cut", func() bool { return b.counted("bullpen_office_stream_ends_total", "code", "slow") == 1 })
	again := b.watch(s.ID, "protocol=6&after_seq=1")
	again.snapshot()
	again.last = 1
	again.records(n)
}

func TestWatchersAreToldThatTheOfficeRestarts(t *testing.T) {
	b, _ := openSessions(t)
	s, _, _ := b.working("i1")
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	told := make(chan string, 1)
	go func() {
		code, _, last := v.ended()
		told <- fmt.Sprintf("%d %s", code, last.FrameType())
	}()
	b.stop()
	if got := <-told; got != fmt.Sprintf("%d %s", websocket.CloseServiceRestart, feed.FrameError) {
		t.Errorf("it ends with %s", got)
	}
}
