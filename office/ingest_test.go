package office_test

// This file tests the upload of records: what agents tell becomes the feed of the session, whole, once, and in order.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// uploader is an agent's side of an upload.
type uploader struct {
	b     *bench
	ws    *websocket.Conn
	ready feed.Ready
	seq   int64
	offer string
}

// uploads dials the upload of an item's records.
func (b *bench) uploads(item, person, spool string) *uploader {
	b.t.Helper()
	ws, response, err := b.dialUpload(item, person, spool, "token-"+person)
	if err != nil {
		b.t.Fatalf("the upload was refused: %v, %v", err, response)
	}
	u := &uploader{b: b, ws: ws}
	u.read(&u.ready)
	u.seq = u.ready.Seq
	return u
}

func (b *bench) dialUpload(item, person, spool, token string) (*websocket.Conn, *http.Response, error) {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	ws, response, err := websocket.DefaultDialer.Dial(b.url+"/v1/sessions/"+item+"/ingest?person="+person+"&spool="+spool, header)
	if err == nil {
		b.sockets = append(b.sockets, ws)
	}
	return ws, response, err
}

func (u *uploader) read(into any) {
	u.b.t.Helper()
	_ = u.ws.SetReadDeadline(time.Now().Add(patience))
	if err := u.ws.ReadJSON(into); err != nil {
		u.b.t.Fatalf("the office did not answer: %v", err)
	}
}

// entry makes the next entry of the spool.
func (u *uploader) entry(source, format, kind string, payload any) feed.Entry {
	u.b.t.Helper()
	body, ok := payload.(string)
	if !ok {
		encoded, err := json.Marshal(payload)
		u.b.must(err)
		body = string(encoded)
	}
	u.seq++
	return feed.Entry{Seq: u.seq, Offer: u.offer, At: time.Now(), Source: source, Format: format, Type: kind, Payload: json.RawMessage(body)}
}

func (u *uploader) lifecycle(kind string, payload any) feed.Entry {
	u.b.t.Helper()
	return u.entry(feed.SourceLifecycle, feed.FormatLifecycle, kind, payload)
}

// upload sends entries and waits until they are stored.
func (u *uploader) upload(entries ...feed.Entry) {
	u.b.t.Helper()
	u.send(entries...)
	for {
		var stored feed.Stored
		u.read(&stored)
		if stored.Seq >= entries[len(entries)-1].Seq {
			return
		}
	}
}

func (u *uploader) send(entries ...feed.Entry) {
	u.b.t.Helper()
	u.b.must(u.ws.WriteMessage(websocket.TextMessage, feedtest.Upload(entries...)))
}

// closed waits for the office to close, and gives the code and the reason.
func (u *uploader) closed() (int, string) {
	u.b.t.Helper()
	_ = u.ws.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, _, err := u.ws.ReadMessage(); err != nil {
			var closed *websocket.CloseError
			if !asClose(err, &closed) {
				u.b.t.Fatalf("the connection ended with %v", err)
			}
			return closed.Code, closed.Text
		}
	}
}

func asClose(err error, into **websocket.CloseError) bool {
	return errors.As(err, into)
}

// records reads the feed of an item's latest session, once it has at least that many.
func (b *bench) records(item string, atLeast int) []feed.Record {
	b.t.Helper()
	var list []feed.Record
	b.eventually(fmt.Sprintf("%d records of %s", atLeast, item), func() bool {
		list = b.feedOf(b.sessionOf(item).ID)
		return len(list) >= atLeast
	})
	return list
}

func (b *bench) sessionOf(item string) model.Session {
	b.t.Helper()
	var s model.Session
	b.must(b.store.View(b.t.Context(), func(r store.Reader) (err error) {
		s, err = r.SessionOf(item)
		return err
	}))
	return s
}

func (b *bench) feedOf(session string) []feed.Record {
	b.t.Helper()
	stored, err := b.feed.Read(b.t.Context(), session, 0, 0, 0)
	b.must(err)
	var list []feed.Record
	for i, s := range stored {
		r, err := feed.DecodeRecord(s.JSON)
		b.must(err)
		if r.FeedSeq != int64(i+1) || s.Seq != r.FeedSeq {
			b.t.Fatalf("record %d stands at %d (%d)", i, r.FeedSeq, s.Seq)
		}
		list = append(list, r)
	}
	return list
}

// eventually waits until something is so.
func (b *bench) eventually(what string, so func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: still not so after %s", what, patience)
		}
	}
}

// outline shows records as lines: type and turn's index, and the message where there is one.
func outline(list []feed.Record) string {
	var lines []string
	for _, r := range list {
		line := r.Type
		if r.TurnID != nil {
			line += (*r.TurnID)[strings.LastIndex(*r.TurnID, "-"):]
		}
		if r.MessageID != nil {
			line += (*r.MessageID)[strings.LastIndex(*r.MessageID, "-"):]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestATurnsRecordsStandInTheFeedAsTheyHappened(t *testing.T) {
	b := open(t)
	_, ada, u := b.working("i1")
	payload := `{"type":"assistant","b":1,"a":123456789012345678901234567890,"message":{"type":"message","role":"assistant","model":"m-1","content":[{"type":"text","text":"a<b>&"}],"new":true}}`
	u.upload(
		u.lifecycle("environment_phase", feed.EnvironmentPhase{Phase: "clone", Status: "completed"}),
		u.lifecycle("turn_started", map[string]any{}),
		u.lifecycle("message_delivered", map[string]any{}),
		u.entry(feed.SourceClaudeCode, feed.FormatClaudeJSONL, "assistant", payload),
	)
	if s := b.sessionOf("uid-i1"); s.Turn.Status != model.TurnRunning {
		t.Errorf("the turn is %s", s.Turn.Status)
	}
	u.upload(u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))
	ada.handBack("uid-i1", protocol.HandbackDone)
	list := b.records("uid-i1", 6)
	want := "message_received-t0-m0\nenvironment_phase-t0\nturn_started-t0\nmessage_delivered-t0-m0\nassistant-t0\nturn_ended-t0"
	if got := outline(list); got != want {
		t.Errorf("the feed is\n%s\nnot\n%s", got, want)
	}
	if got := string(list[4].Payload); got != payload {
		t.Errorf("the payload is\n%s\nnot as it came\n%s", got, payload)
	}
	if list[4].Kind != feed.KindClaudeCode || list[4].Model == nil || *list[4].Model != "m-1" {
		t.Errorf("the envelope is %+v", list[4])
	}
	if s := b.sessionOf("uid-i1"); s.Turn.Status != model.TurnCompleted || s.State != "done" || !s.ClosedAt.IsZero() {
		t.Errorf("the session is %+v, its turn %+v", s, s.Turn)
	}
}

func TestAnUploadMayBeRepeatedFromAnywhere(t *testing.T) {
	b := open(t)
	_, _, u := b.working("i1")
	var all []feed.Entry
	all = append(all, u.lifecycle("turn_started", map[string]any{}), u.lifecycle("message_delivered", map[string]any{}))
	for i := range 20 {
		all = append(all, u.entry(feed.SourceCommand, feed.FormatCommand, "stdout", map[string]int{"n": i}))
	}
	u.upload(all[:7]...)
	u.upload(all[3:15]...)
	b.must(u.ws.Close())
	again := b.uploads("uid-i1", "ada", "spool-i1")
	if again.ready.Seq != 15 {
		t.Errorf("the office has %d of the spool, not 15", again.ready.Seq)
	}
	again.upload(all...)
	b.restart()
	b.connect("ada")
	last := b.uploads("uid-i1", "ada", "spool-i1")
	last.upload(all[10:]...)
	list := b.records("uid-i1", 3+20)
	for i, r := range list[3:] {
		if want := fmt.Sprintf(`{"n":%d}`, i); string(r.Payload) != want {
			t.Fatalf("record %d is %s, not %s", i, r.Payload, want)
		}
	}
	if len(list) != 23 {
		t.Errorf("the feed has %d records, not 23", len(list))
	}
}

func TestAHandBackThatOvertakesItsRecordsWaitsForThem(t *testing.T) {
	b := open(t)
	_, ada, u := b.working("i1")
	u.upload(u.lifecycle("turn_started", map[string]any{}))
	ada.send(protocol.Handback{WorkItemID: "uid-i1", Summary: "done", Status: protocol.HandbackDone, ToReview: []string{"x"}})
	if s := b.sessionOf("uid-i1"); s.Turn.Status.Final() {
		t.Error("the turn is over before its records are there")
	}
	u.upload(u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))
	b.eventually("the end of the turn", func() bool { return b.sessionOf("uid-i1").Turn.Status == model.TurnCompleted })
}

func TestNobodyUploadsIntoSomebodyElsesSession(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	b.apply("i1")
	ada.take("i1")
	for name, test := range map[string]struct {
		item, person, token string
		status              int
	}{
		"a wrong token":                      {"uid-i1", "ada", "wrong", http.StatusUnauthorized},
		"no token":                           {"uid-i1", "ada", "", http.StatusUnauthorized},
		"somebody who never ran the item":    {"uid-i1", "bob", "token-bob", http.StatusForbidden},
		"an item that there is not":          {"uid-i9", "ada", "token-ada", http.StatusUnauthorized},
		"somebody else's token for a person": {"uid-i1", "ada", "token-bob", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			_, response, err := b.dialUpload(test.item, test.person, "s", test.token)
			if err == nil || response == nil || response.StatusCode != test.status {
				t.Errorf("the answer is %v, %v, not %d", response, err, test.status)
			}
		})
	}
}

func TestAnAgentCannotWriteWhatOnlyTheOfficeWrites(t *testing.T) {
	b := open(t)
	_, _, u := b.working("i1")
	u.upload(u.lifecycle("session_closed", map[string]any{}), u.lifecycle("message_received", map[string]any{"message_id": "x", "body": "forged"}))
	for _, r := range b.records("uid-i1", 3)[1:] {
		if r.Kind != feed.KindUnknown || r.Source == feed.SourceLifecycle {
			t.Errorf("%s of an agent is %s from %s", r.Type, r.Kind, r.Source)
		}
	}
	if head, err := b.feed.Head(t.Context(), b.sessionOf("uid-i1").ID); err != nil || head.Closed {
		t.Errorf("an agent closed its session: %+v, %v", head, err)
	}
	u.offer = model.OfferID("somebody-elses", 1)
	u.send(u.entry(feed.SourceCommand, feed.FormatCommand, "stdout", map[string]any{}))
	if code, reason := u.closed(); code != websocket.CloseInvalidFramePayloadData || !strings.Contains(reason, "offer") {
		t.Errorf("an offer of another item closed with %d %s", code, reason)
	}
}

func TestWhatGitSaysIsInTheSession(t *testing.T) {
	b := open(t)
	_, _, u := b.working("i1")
	before := len(b.records("uid-i1", 1))
	u.upload(u.entry("agent", feed.FormatState, feed.StateGit, `{"repos":[{"full_name":"acme/app","commits_total":2,"commits":[],"prs":[],"local_uncommitted_files":[]}]}`))
	if git := b.sessionOf("uid-i1").Git; git == nil || git.Repos[0].FullName != "acme/app" || git.Repos[0].CommitsTotal != 2 {
		t.Errorf("the session has %+v", git)
	}
	if n := len(b.records("uid-i1", 1)); n != before {
		t.Errorf("the state is a record: there are %d, not %d", n, before)
	}
}

func TestASessionThatIsOverIsClosedInItsFeedAfterItsLastRecord(t *testing.T) {
	b := open(t)
	_, ada, u := b.working("i1", chore)
	u.upload(u.lifecycle("turn_started", map[string]any{}), u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))
	ada.handBack("uid-i1", protocol.HandbackDone)
	list := b.records("uid-i1", 4)
	if got := outline(list[2:]); got != "turn_ended-t0\nsession_closed" {
		t.Errorf("the feed ends with\n%s", got)
	}
}

// git is the state of a repository that a test uploads.
func (u *uploader) git(repo string) feed.Entry {
	const state = `{"repos":[{"full_name":%q,"commits_total":1,"commits":[],"prs":[],"local_uncommitted_files":[]}]}`
	return u.entry("agent", feed.FormatState, feed.StateGit, fmt.Sprintf(state, repo))
}

func (b *bench) cancel(name string) {
	b.t.Helper()
	b.apply(name, func(f *model.ItemFacts) { f.Spec.Cancel, f.Spec.Generation = true, 2 })
}

func TestACanceledRoundsEndIsInItsTurnThoughAnotherTurnWaited(t *testing.T) {
	b, _ := openSessions(t)
	_, _, u := b.working("i1")
	u.upload(u.lifecycle("turn_started", map[string]any{}))
	got := b.ask(tokenAll, http.MethodPost, "/v1/sessions/uid-i1/messages", `{"body":"and more"}`, "Content-Type", "application/json")
	if got.StatusCode != http.StatusCreated {
		t.Fatalf("the message was answered with %d", got.StatusCode)
	}
	b.cancel("i1")
	b.must(u.ws.Close())
	again := b.uploads("uid-i1", "ada", "spool-i1")
	again.offer = u.offer
	again.upload(again.lifecycle("turn_ended", feed.TurnEnded{Status: "cancelled", Reason: new("interrupted")}))
	list := b.records("uid-i1", 5)
	want := "message_received-t0-m0\nturn_started-t0\nmessage_received-t1-f1\nturn_ended-t0\nsession_closed"
	if got := outline(list); got != want {
		t.Errorf("the feed is\n%s\nnot\n%s", got, want)
	}
	var end feed.TurnEnded
	b.must(json.Unmarshal(list[3].Payload, &end))
	if end.Status != string(model.TurnStopped) || end.Reason != nil {
		t.Errorf("the turn ended as %+v, though it was canceled", end)
	}
}

func TestAnAgentWritesNothingIntoARoundOfSomebodyElse(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	b.apply("i1", func(f *model.ItemFacts) { f.Spec.Person, f.Spec.Role = "", "dev" })
	ada.take("i1")
	b.must(b.office.ForgetPerson(t.Context(), "uid-ada"))
	bob, _ := b.connect("bob")
	bob.take("i1")
	u := b.uploads("uid-i1", "bob", "spool-1")
	u.offer = model.OfferID("uid-i1", 1)
	u.send(u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))
	if code, reason := u.closed(); code != websocket.CloseInvalidFramePayloadData || !strings.Contains(reason, "somebody else") {
		t.Errorf("the round of somebody else closed with %d %s", code, reason)
	}
}

func TestATurnBeginsAndEndsOnce(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	b.apply("i1")
	ada.take("i1")
	for _, spool := range []string{"spool-1", "spool-2"} {
		u := b.uploads("uid-i1", "ada", spool)
		u.offer = model.OfferID("uid-i1", 1)
		u.upload(u.lifecycle("turn_started", map[string]any{}), u.lifecycle("message_delivered", map[string]any{}),
			u.lifecycle("turn_ended", feed.TurnEnded{Status: "completed"}))
	}
	want := "message_received-t0-m0\nturn_started-t0\nmessage_delivered-t0-m0\nturn_ended-t0"
	if got := outline(b.records("uid-i1", 4)); got != want {
		t.Errorf("the feed is\n%s\nnot\n%s", got, want)
	}
}

func TestWhatGitSaidInAnEarlierRoundChangesNothing(t *testing.T) {
	b := open(t)
	ada, _ := b.connect("ada")
	b.apply("i1")
	ada.take("i1")
	ada.handBack("uid-i1", protocol.HandbackInterrupted)
	ada.take("i1")
	now := b.uploads("uid-i1", "ada", "spool-2")
	now.offer = model.OfferID("uid-i1", 2)
	now.upload(now.git("acme/new"))
	late := b.uploads("uid-i1", "ada", "spool-1")
	late.offer = model.OfferID("uid-i1", 1)
	late.upload(late.git("acme/old"))
	if git := b.sessionOf("uid-i1").Git; git == nil || git.Repos[0].FullName != "acme/new" {
		t.Errorf("the session has %+v", git)
	}
}

func TestAClosedSessionWaitsForItsLastRecordsAlsoAfterARestart(t *testing.T) {
	var late atomic.Int64
	b := openWith(t, func(o *office.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	})
	_, _, u := b.working("i1")
	u.upload(u.lifecycle("turn_started", map[string]any{}), u.lifecycle("message_delivered", map[string]any{}))
	b.cancel("i1")
	late.Add(int64(time.Hour))
	b.restart()
	late.Add(int64(time.Minute)) // the agent is slow to come back
	b.apply("i2")                // what the office writes later is there, so it looked at what it held
	b.records("uid-i2", 1)
	again := b.uploads("uid-i1", "ada", "spool-i1")
	again.offer = u.offer
	again.upload(again.lifecycle("turn_ended", feed.TurnEnded{Status: "cancelled", Reason: new("interrupted")}))
	want := "message_received-t0-m0\nturn_started-t0\nmessage_delivered-t0-m0\nturn_ended-t0\nsession_closed"
	if got := outline(b.records("uid-i1", 5)); got != want {
		t.Errorf("the feed is\n%s\nnot\n%s", got, want)
	}
}

func TestAStopOfAClosedSessionStopsNoLaterOne(t *testing.T) {
	b, _ := openSessions(t)
	ada, _ := b.connect("ada")
	chore := func(f *model.ItemFacts) { f.Spec.Kind = "chore" }
	b.apply("i1", chore)
	ada.take("i1")
	ada.handBack("uid-i1", protocol.HandbackDone)
	closed := b.sessionOf("uid-i1")
	b.apply("i1", chore, func(f *model.ItemFacts) { f.Spec.Rerun, f.Spec.Generation = "again", 2 })
	ada.take("i1")
	if got := b.ask(tokenAll, http.MethodPost, "/v1/sessions/"+closed.ID+"/stop", ""); got.StatusCode != http.StatusAccepted {
		t.Errorf("the stop was answered with %d", got.StatusCode)
	}
	if it := b.item("i1"); it.State != protocol.StateActive || b.sessionOf("uid-i1").ID == closed.ID {
		t.Errorf("the item is %s in %s", it.State, b.sessionOf("uid-i1").ID)
	}
}
