package dispatch

// This file follows an item with its session: what happened to the item in one transaction makes turns and messages, and the records that
// the office itself writes into the session's feed.

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// Happened is what one transaction did to an item, as far as its session goes.
type Happened struct {
	// Item is as the transaction leaves it.
	Item model.Item
	// Life is short for the store's id, and goes into the ids of sessions. OtherLife is that of the store which the item was restored from,
	// empty where it was not.
	Life      string
	OtherLife string
	// NamespaceUID is the UID of the namespace, empty where nobody knows it.
	NamespaceUID string
	// Before is the item's latest session, nil where it has none.
	Before *model.Session
	// Ended are rounds that ended, in order. Heard is new feedback. Noted is the last new line of the journal that somebody else than the
	// item's person wrote: an answer.
	Ended []model.Round
	Heard []model.Feedback
	Noted *model.JournalEntry
	// Once says that the item's kind finishes without a review, so that its session closes when it is done.
	Once bool
}

// Conversation is what follows for the sessions of the item.
type Conversation struct {
	// Sessions to store, messages to store, and records to emit, in order.
	Sessions []model.Session
	Messages []model.Message
	Emitted  []model.Emitted
	// Claimed says that a round took the session's turn: what the session runs with is fixed now, if it was not before.
	Claimed bool

	s   *model.Session
	h   Happened
	now time.Time
}

// Converse decides what happened means for the item's session.
func Converse(h Happened, now time.Time) Conversation {
	c := Conversation{h: h, now: now}
	if h.Before == nil && h.Item.Finished() {
		return c // over before anybody asked for a session: restored, or canceled when it came
	}
	if h.Before != nil {
		before := *h.Before
		c.s = &before
	}
	if c.s == nil {
		c.open()
	}
	for i := range h.Ended {
		c.ended(&h.Ended[i])
	}
	c.open()
	c.hear()
	c.orphan()
	c.wait()
	c.claim()
	c.follow()
	c.close()
	if h.Before == nil || changed(*h.Before, *c.s) {
		c.s.UpdatedAt = now
		c.Sessions = append(c.Sessions, *c.s)
	}
	return c
}

// changed says whether two states of a session differ in anything but when it was changed.
func changed(a, b model.Session) bool {
	b.UpdatedAt = a.UpdatedAt
	return !reflect.DeepEqual(a, b)
}

// open begins a session where the item needs one: it has none, or its last one is closed and it goes on.
func (c *Conversation) open() {
	it := c.h.Item
	goesOn := !it.Gone && it.State != protocol.StateCanceled &&
		(it.State == protocol.StateQueued || it.State == protocol.StateActive || len(c.h.Heard) > 0)
	if c.s != nil && (c.s.ClosedAt.IsZero() || !goesOn) {
		return
	}
	n, parent := 1, ""
	if c.s != nil {
		if _, last, ok := model.ItemOfSession(c.s.ID); ok {
			n = last + 1
		}
		parent = c.s.ID
		c.Sessions = append(c.Sessions, *c.s)
	} else if c.h.OtherLife != "" {
		parent = model.SessionID(c.h.OtherLife, it.ID, 1)
	}
	c.s = &model.Session{
		ID: model.SessionID(c.h.Life, it.ID, n), ItemID: it.ID, Namespace: it.Namespace, NamespaceUID: c.h.NamespaceUID, Team: it.Spec.Team,
		Name: it.Name, ParentID: parent, Source: sourceOf(it), CreatedAt: c.now,
	}
	if n == 1 && c.h.OtherLife == "" {
		c.s.CreatedAt = it.CreatedAt
	}
	if n > 1 {
		c.s.UsageBefore = it.Usage
	}
}

// sourceOf says where a session came from.
func sourceOf(it model.Item) string {
	switch {
	case it.Origin != nil:
		return "mention"
	case it.Spec.Kind == model.KindReviewFeedback:
		return "code_review"
	case it.Spec.Trigger == protocol.TriggerSchedule:
		return "cron"
	case it.Spec.Trigger == protocol.TriggerAutomation || it.Spec.Kind == model.KindAssigned:
		return "react"
	}
	return "api"
}

// ended gives the turn of a round its end, and where the item goes on by itself, its messages a new turn.
func (c *Conversation) ended(r *model.Round) {
	t := c.s.Turn
	if t == nil || t.Round != r.Number {
		return // the offer was not taken, or an older release ran the round
	}
	turn := *t
	if !turn.Status.Final() {
		end := endOf(*r, c.h.Item)
		if turn.Told != nil {
			end = *turn.Told // the feed says so already, whatever became of the round after that
		}
		turn.Status, turn.Reason, turn.Detail, turn.EndedAt = end.Status, end.Reason, end.Detail, end.At
		if turn.StartedAt.IsZero() {
			turn.StartedAt = r.AcceptedAt
		}
		if end.Status == model.TurnStopped && turn.StoppedAt.IsZero() {
			turn.StoppedAt, turn.StoppedBy = r.EndedAt, r.StoppedBy
		}
	}
	if r.Summary != "" { // the item's progress begins anew with each round
		c.s.Summary, c.s.SummaryAt = r.Summary, r.EndedAt
	}
	turn.Usage, turn.Model = r.Usage, cmp.Or(r.Model, c.h.Item.SessionModel, turn.Model)
	c.s.Turn = &turn
	if c.again(*r) {
		c.requeue(turn.ID, turn.Messages)
	}
}

// requeue puts messages of a turn that did not answer them first into the turn that waits.
func (c *Conversation) requeue(from string, messages []string) {
	next := c.pending()
	for _, id := range messages {
		c.emit("requeued/"+from+"/"+id, feed.TypeMessageRequeued, next.ID, id, feed.MessageRequeued{
			MessageID: id, TurnID: from, RequeuedTurnID: &next.ID,
		})
	}
	next.Messages = append(slices.Clone(messages), next.Messages...)
}

// orphan ends a turn whose round is gone without a trace: the item was restored from its status.
func (c *Conversation) orphan() {
	t, r := c.s.Turn, c.h.Item.Round
	if t == nil || t.Status.Final() || r != nil && r.Number == t.Round || c.h.Item.State == protocol.StateActive && r == nil {
		return
	}
	turn := *t
	end := model.TurnEnd{Status: model.TurnFailed, Reason: model.TurnReasonError, Detail: "The round was lost.", At: c.now}
	if turn.Told != nil {
		end = *turn.Told
	}
	turn.Status, turn.Reason, turn.Detail, turn.EndedAt = end.Status, end.Reason, end.Detail, end.At
	c.s.Turn = &turn
	if c.h.Item.State == protocol.StateQueued {
		c.requeue(turn.ID, turn.Messages)
	}
}

// again says whether the messages of a round that ended are to be answered by another one, without anybody saying anything.
func (c *Conversation) again(r model.Round) bool {
	if c.h.Item.State != protocol.StateQueued && c.h.Item.State != protocol.StateActive {
		return false
	}
	switch r.Outcome {
	case model.OutcomeInterrupted, model.OutcomeFailed, model.OutcomeLost, model.OutcomeTimeout:
		return true
	}
	return false
}

// endOf is how a turn ended whose round ended so.
func endOf(r model.Round, it model.Item) model.TurnEnd {
	end := model.TurnEnd{Status: model.TurnFailed, Reason: model.TurnReasonError, Detail: r.Summary, At: r.EndedAt}
	switch r.Outcome {
	case model.OutcomeDone, model.OutcomeSilent, model.OutcomeWaiting:
		end.Status, end.Reason, end.Detail = model.TurnCompleted, "", ""
	case model.OutcomeBlocked:
		if it.End.Reason == model.ReasonNothingToReview { // the agent said that it is done
			end.Status, end.Reason, end.Detail = model.TurnCompleted, "", ""
			return end
		}
		end.Reason = model.TurnReasonBlocked
	case model.OutcomeInterrupted:
		end.Status, end.Reason = model.TurnCancelled, model.TurnReasonInterrupted
	case model.OutcomeCanceled:
		end.Status, end.Reason = model.TurnStopped, ""
	case model.OutcomeStopped:
		if it.End.Reason == model.ReasonBudgetStopped {
			end.Reason = model.TurnReasonBudget
			return end
		}
		end.Status, end.Reason = model.TurnStopped, ""
	}
	return end
}

// pending gives the turn that waits for its round, and makes it where there is none.
func (c *Conversation) pending() *model.Turn {
	if c.s.Pending == nil {
		c.s.Pending = &model.Turn{ID: model.TurnID(c.s.ID, c.s.Turns), Index: c.s.Turns, Status: model.TurnPending, CreatedAt: c.now}
		c.s.Turns++
		return c.s.Pending
	}
	turn := *c.s.Pending
	c.s.Pending = &turn
	return &turn
}

// receive puts a message into the turn that waits.
func (c *Conversation) receive(m model.Message) {
	t := c.pending()
	m.SessionID, m.TurnID, m.CreatedAt = c.s.ID, t.ID, c.now
	m.Body, m.Author, m.AttributionID = atMost(m.Body, maxBody), atMost(m.Author, maxAuthor), atMost(m.AttributionID, maxAuthor)
	t.Messages = append(slices.Clone(t.Messages), m.ID)
	c.Messages = append(c.Messages, m)
	payload := feed.MessageReceived{MessageID: m.ID, TurnID: &t.ID, Body: m.Body, ClosesSession: m.ClosesSession}
	for value, field := range map[*string]**string{
		&m.Author: &payload.Author, &m.AttributionType: &payload.SenderAttributionType, &m.AttributionID: &payload.SenderAttributionID,
	} {
		if *value != "" {
			*field = value
		}
	}
	c.emit("received/"+m.ID, feed.TypeMessageReceived, t.ID, m.ID, payload)
}

// maxBody and maxAuthor are the most bytes of a message and of who sent it: however they are escaped, the record stays below feed.MaxRecord.
const (
	maxBody   = 1 << 20
	maxAuthor = 1000
)

// atMost cuts a text to so many bytes, between two characters.
func atMost(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// ask has the item's own request be a message.
func (c *Conversation) ask() {
	it := c.h.Item
	body := it.Spec.Title
	if it.Spec.Body != "" {
		body += "\n\n" + it.Spec.Body
	}
	m := model.Message{ID: model.AskedMessageID(c.s.ID, c.s.Turns), Body: body, Author: cmp.Or(it.Spec.Requester, model.DefaultRequester)}
	if o := it.Origin; o != nil {
		m.AttributionType, m.AttributionID = "slack_user", o.Requester.ID
		m.Author = cmp.Or(o.Requester.Name, m.Author)
	}
	c.receive(m)
}

// hear makes messages of feedback.
func (c *Conversation) hear() {
	if c.s.Turns == 0 && len(c.h.Heard) > 0 {
		c.ask() // what the item asks comes first, whatever was said since
	}
	for _, f := range c.h.Heard {
		m := model.Message{ID: model.FeedbackMessageID(c.s.ID, f.N), Body: f.Feedback.Body, Author: f.Feedback.Actor, ClosesSession: f.ClosesSession}
		c.receive(m)
		c.s.Closing = c.s.Closing || f.ClosesSession
	}
}

// wait makes a turn for an item that goes on though nobody said anything: it is new, it starts over, or it was answered.
func (c *Conversation) wait() {
	it := c.h.Item
	if c.s.Pending != nil || it.State != protocol.StateQueued {
		return
	}
	if n := c.h.Noted; n != nil && c.s.Turn != nil {
		c.receive(model.Message{ID: model.AskedMessageID(c.s.ID, c.s.Turns), Body: n.Text, Author: n.Author})
		return
	}
	c.ask()
}

// claim gives an accepted round the turn that waits. What was said after the round was offered waits for the next one.
func (c *Conversation) claim() {
	r := c.h.Item.Round
	if !r.Accepted() || c.s.Turn != nil && c.s.Turn.Round == r.Number {
		return
	}
	c.unanswered(r)
	turn := *c.pending()
	c.s.Pending = nil
	turn.Round, turn.Model = r.Number, cmp.Or(r.Model, c.h.Item.SessionModel)
	late := func(id string) bool {
		n, ok := model.FeedbackOfMessage(id)
		return ok && n > r.FeedbackUpTo
	}
	rest := slices.DeleteFunc(slices.Clone(turn.Messages), func(id string) bool { return !late(id) })
	turn.Messages = slices.DeleteFunc(slices.Clone(turn.Messages), late)
	c.retire()
	c.s.Turn, c.Claimed = &turn, true
	if len(rest) > 0 {
		c.requeue(turn.ID, rest)
	}
}

// unanswered puts feedback into the turn that waits which an earlier one had and did not answer: the round's offer has it again.
func (c *Conversation) unanswered(r *model.Round) {
	turns := slices.Clone(c.s.Past)
	if c.s.Turn != nil {
		turns = append(turns, *c.s.Turn)
	}
	taken := slices.Clone(c.pending().Messages)
	for _, turn := range slices.Backward(turns) {
		var again []string
		for _, id := range turn.Messages {
			n, ok := model.FeedbackOfMessage(id)
			if ok && n > c.h.Item.FeedbackSeen && n <= r.FeedbackUpTo && !slices.Contains(taken, id) {
				again = append(again, id)
			}
		}
		if len(again) > 0 {
			c.requeue(turn.ID, again)
			taken = append(taken, again...)
		}
	}
}

// retire puts the turn that was shown among the past ones, if a round ran it: records of it may still come.
func (c *Conversation) retire() {
	if old := c.s.Turn; old != nil && old.Round > 0 {
		c.s.Past = append(slices.Clone(c.s.Past[max(0, len(c.s.Past)-model.MaxPast+1):]), *old)
	}
}

// follow keeps what the session shows of its item in line with it.
func (c *Conversation) follow() {
	it := c.h.Item
	c.s.State, c.s.Person = string(it.State), it.Assignee
	c.s.Model = cmp.Or(it.SessionModel, turnModel(c.s.Turn), c.s.Model)
	c.s.Usage = it.Usage.Since(c.s.UsageBefore)
	if !it.Gone { // the namespace of an item that is gone may be another one by now
		c.s.NamespaceUID = cmp.Or(c.s.NamespaceUID, c.h.NamespaceUID)
	}
	c.s.Interactive = !c.h.Once
}

func turnModel(t *model.Turn) string {
	if t == nil {
		return ""
	}
	return t.Model
}

// close ends the conversation when no further round can come.
func (c *Conversation) close() {
	it := c.h.Item
	over := it.State == protocol.StateCanceled || it.Gone || it.State == protocol.StateDone && c.h.Once ||
		c.s.Closing && c.s.Pending == nil && c.s.Turn != nil && c.s.Turn.Status.Final()
	if !over || !c.s.ClosedAt.IsZero() {
		return
	}
	c.s.ClosedAt = c.now
	if p := c.s.Pending; p != nil { // nobody will answer it
		turn := *p
		turn.Status, turn.EndedAt, turn.Detail = model.TurnStopped, c.now, cmp.Or(it.End.Message, "The work item was removed.")
		turn.StoppedAt = c.now
		c.retire()
		c.s.Turn, c.s.Pending = &turn, nil
	}
	c.emit("closed", feed.TypeSessionClosed, "", "", struct{}{})
}

// emit has the office write a record of its own.
func (c *Conversation) emit(key, kind, turn, message string, payload any) {
	body, err := feed.MarshalPayload(payload)
	if err != nil {
		panic(fmt.Sprintf("a payload of plain data does not encode: %v", err))
	}
	r := feed.Record{
		Kind: feed.KindPlatform, Source: feed.SourceLifecycle, Format: feed.FormatLifecycle, Type: kind,
		SessionID: c.s.ID, Payload: body, CreatedAt: c.now,
	}
	if turn != "" {
		r.TurnID = &turn
	}
	if message != "" {
		r.MessageID = &message
	}
	c.Emitted = append(c.Emitted, model.Emitted{
		Key: key, Ref: feed.SessionRef{ID: c.s.ID, Namespace: c.s.Namespace, Team: c.s.Team}, Record: r,
	})
}
