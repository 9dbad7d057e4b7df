package stage

// This file is an agent on the stage: it takes what it is offered, uploads records and tells deltas, and hands back.

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/feed/feedtest"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func decoded(token string) string {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return ""
	}
	return string(raw)
}

// Agent is a person's side of a connection, and of the upload of a session's records.
type Agent struct {
	s      *Stage
	handle string
	ws     *websocket.Conn
	next   int
	inbox  []protocol.Frame

	upload *websocket.Conn
	item   string
	offer  string
	seq    int64
	begun  time.Time
	// At is the time of the next record; zero is now. Each record moves it on by Step.
	At   time.Time
	Step time.Duration
}

// Connect says hello as a person.
func (s *Stage) Connect(handle string) *Agent {
	s.t.Helper()
	a := &Agent{s: s, handle: handle}
	a.ws = s.dial("/v1/teams/"+Team.String()+"/agent", nil)
	answer := a.request(protocol.Hello{Person: handle, Token: "token-" + handle, ProtocolVersion: protocol.Version, AgentVersion: "stage"})
	if _, ok := answer.(protocol.Welcome); !ok {
		s.t.Fatal("no welcome but", answer)
	}
	return a
}

func (s *Stage) dial(path string, header http.Header) *websocket.Conn {
	s.t.Helper()
	ws, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.URL(), "http")+path, header)
	s.must(err)
	_ = response.Body.Close() // it has none
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = append(s.sockets, ws)
	return ws
}

// request sends a message and waits for the answer.
func (a *Agent) request(m protocol.Message) protocol.Message {
	a.s.t.Helper()
	a.next++
	id := fmt.Sprintf("m%d", a.next)
	data, err := protocol.Encode(protocol.Frame{ID: id, Message: m})
	a.s.must(err)
	a.s.must(a.ws.WriteMessage(websocket.TextMessage, data))
	return a.wait(func(f protocol.Frame) bool { return f.ReplyTo == id }).Message
}

// wait gives the first frame, read or yet to come, that fits.
func (a *Agent) wait(fits func(protocol.Frame) bool) protocol.Frame {
	a.s.t.Helper()
	for i, f := range a.inbox {
		if fits(f) {
			a.inbox = append(a.inbox[:i], a.inbox[i+1:]...)
			return f
		}
	}
	for {
		a.s.must(a.ws.SetReadDeadline(time.Now().Add(patience)))
		_, data, err := a.ws.ReadMessage()
		a.s.must(err)
		f, werr := protocol.Decode(data)
		if werr != nil {
			a.s.t.Fatal("the office sent what it must not:", werr.Message)
		}
		if fits(f) {
			return f
		}
		a.inbox = append(a.inbox, f)
	}
}

func (a *Agent) ok(m protocol.Message) {
	a.s.t.Helper()
	if answer := a.request(m); answer.Type() != protocol.TypeAck {
		a.s.t.Fatal(m.Type(), "was answered with", answer)
	}
}

// Take accepts the next offer and opens the upload of its records.
func (a *Agent) Take() protocol.Offer {
	a.s.t.Helper()
	f := a.wait(func(f protocol.Frame) bool { return f.Message.Type() == protocol.TypeOffer })
	offer := f.Message.(protocol.Offer)
	a.ok(protocol.Accept{WorkItemID: offer.WorkItem.ID, Runtime: "claude"})
	a.offer = f.ID
	a.Upload(offer.WorkItem.ID)
	return offer
}

// Upload opens the upload of an item's records, again where it was open before.
func (a *Agent) Upload(item string) {
	a.s.t.Helper()
	a.item = item
	a.upload = a.s.dial("/v1/sessions/"+item+"/ingest?person="+a.handle+"&spool=spool-"+item, http.Header{"Authorization": {"Bearer token-" + a.handle}})
	var ready feed.Ready
	a.s.must(a.upload.ReadJSON(&ready))
	a.seq = ready.Seq
}

// Resume connects again after the office was away, and goes on with the item that runs.
func (a *Agent) Resume() {
	a.s.t.Helper()
	again := a.s.Connect(a.handle)
	a.ws, a.next, a.inbox = again.ws, again.next, again.inbox
	a.Upload(a.item)
}

// Record makes an entry. A payload that is a string is JSON as it is.
func (a *Agent) Record(source, format, kind string, payload any) feed.Entry {
	a.s.t.Helper()
	body, isText := payload.(string)
	if !isText {
		encoded, err := json.Marshal(payload)
		a.s.must(err)
		body = string(encoded)
	}
	a.seq++
	at := a.At
	if at.IsZero() {
		at = time.Now()
	} else {
		a.At = at.Add(a.Step)
	}
	return feed.Entry{Seq: a.seq, Offer: a.offer, At: at, Source: source, Format: format, Type: kind, Payload: json.RawMessage(body)}
}

// Send uploads entries and waits until they are durable.
func (a *Agent) Send(entries ...feed.Entry) {
	a.s.t.Helper()
	a.s.must(a.upload.WriteMessage(websocket.TextMessage, feedtest.Upload(entries...)))
	for {
		var stored feed.Stored
		a.s.must(a.upload.SetReadDeadline(time.Now().Add(patience)))
		a.s.must(a.upload.ReadJSON(&stored))
		if stored.Seq >= entries[len(entries)-1].Seq {
			return
		}
	}
}

// Lifecycle uploads one of the platform's records.
func (a *Agent) Lifecycle(kind string, payload any) {
	a.s.t.Helper()
	a.Send(a.Record(feed.SourceLifecycle, feed.FormatLifecycle, kind, payload))
}

// Begin uploads what starts a turn.
func (a *Agent) Begin() {
	a.s.t.Helper()
	a.begun = a.At
	a.Lifecycle(feed.TypeTurnStarted, map[string]any{})
	a.Lifecycle(feed.TypeMessageDelivered, map[string]any{})
}

// Claude uploads a message of Claude Code.
func (a *Agent) Claude(kind string, payload any) {
	a.s.t.Helper()
	a.Send(a.Record(feed.SourceClaudeCode, feed.FormatClaudeJSONL, kind, payload))
}

// Says uploads a message of the model that has these blocks of content.
func (a *Agent) Says(blocks ...map[string]any) {
	a.s.t.Helper()
	a.Claude(feed.ClaudeAssistant, map[string]any{"type": "assistant", "message": map[string]any{
		"type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": blocks,
	}})
}

// Gives uploads the result of a tool.
func (a *Agent) Gives(tool, text string, failed bool) {
	a.s.t.Helper()
	a.Claude(feed.ClaudeUser, map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": tool, "content": text, "is_error": failed},
	}}})
}

// Text is a block of text, Thinking one of thought, Tool one of the use of a tool.
func Text(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// Thinking is a block of what the model thought.
func Thinking(text string) map[string]any {
	return map[string]any{"type": "thinking", "thinking": text}
}

// Tool is a block of the use of a tool.
func Tool(id, name string, input map[string]any) map[string]any {
	return map[string]any{"type": "tool_use", "id": id, "name": name, "input": input}
}

// Delta tells of what is being written.
func (a *Agent) Delta(kind, text string) {
	a.s.t.Helper()
	a.s.must(a.upload.WriteJSON(feed.LiveDelta{Type: feed.IngestDelta, Offer: a.offer, Delta: feed.Delta{Kind: kind, Text: &text}}))
}

// Progress tells a line of progress.
func (a *Agent) Progress(text string) {
	a.s.t.Helper()
	a.ok(protocol.Progress{WorkItemID: a.item, Text: text})
}

// Git tells what is in the repositories.
func (a *Agent) Git(git feed.Git) {
	a.s.t.Helper()
	a.Send(a.Record("agent", feed.FormatState, feed.StateGit, git))
}

// End uploads the end of the turn and hands the item back.
func (a *Agent) End(status protocol.HandbackStatus, turn model.TurnStatus, usage ...protocol.SessionUsage) {
	a.s.t.Helper()
	took := a.At.Sub(a.begun).Milliseconds()
	a.Lifecycle(feed.TypeTurnEnded, feed.TurnEnded{Status: string(turn), DurationMS: &took})
	a.ok(protocol.Handback{WorkItemID: a.item, Status: status, Summary: "Handed back as " + string(status) + ".", Links: []protocol.Link{}, ToReview: []string{"a branch"}, Usage: usage})
	a.s.must(a.upload.Close())
}
