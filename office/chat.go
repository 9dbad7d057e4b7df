package office

// This file takes what people write in chat: a message begins a chat session of the person who heard it, or is feedback to the one that is
// open in its thread. A session files what it was asked for as work of its own.

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// eventChat is the type of the event that a chat message is.
const eventChat = "chat.message"

func (r request) chatMessage(m protocol.ChatMessage) (protocol.Message, error) {
	if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
		return nil, protocol.Errorf(protocol.CodeInvalid, "the message has neither text nor files")
	}
	if err := fitChat(m); err != nil {
		return nil, err
	}
	return r.reply(func(w *work) (protocol.Message, error) {
		event := model.Event{
			Team: r.p.key.Team, Source: "chat/" + r.p.key.Handle + "/" + m.Channel, ID: m.MessageID, Type: eventChat, At: w.now,
		}
		if frame, err := protocol.Encode(r.f); err == nil {
			event.Data = frame
		}
		if first, err := w.tx.FirstEvent(event); err != nil || !first {
			return protocol.ChatMessageResult{Repeated: true}, err
		}
		what, err := w.chatted(r.p.key, m)
		if err != nil {
			return nil, err
		}
		event.Trace = append(event.Trace, what)
		return protocol.ChatMessageResult{}, w.tx.PutEvent(event)
	})
}

// Limits of one chat message, beside that of a frame.
const (
	maxFiles   = 50
	maxFileURL = 4000
)

// fitChat refuses what no chat has: ids and names go into reports and offers, which have limits of their own.
func fitChat(m protocol.ChatMessage) error {
	if m.MessageID == "" || m.Channel == "" || m.Author.ID == "" {
		return protocol.Errorf(protocol.CodeInvalid, "messageId, channel and author.id must not be empty")
	}
	if len(m.Files) > maxFiles {
		return protocol.Errorf(protocol.CodeInvalid, "at most %d files in a message, not %d", maxFiles, len(m.Files))
	}
	errs := []error{
		short("messageId", m.MessageID, maxWire), short("channel", m.Channel, maxWire), short("thread", m.Thread, maxWire),
		short("author.id", m.Author.ID, maxWire), short("author.name", m.Author.Name, maxWire), short("text", m.Text, maxBody),
		short("author", string(m.Author.Extra), maxFileURL),
	}
	for i, f := range m.Files {
		errs = append(errs, short(fmt.Sprintf("files[%d].id", i), f.ID, maxWire), short(fmt.Sprintf("files[%d].name", i), f.Name, maxText),
			short(fmt.Sprintf("files[%d].mimetype", i), f.MIMEType, maxWire), short(fmt.Sprintf("files[%d].url", i), f.URL, maxFileURL),
			short(fmt.Sprintf("files[%d]", i), string(f.Extra), maxFileURL))
	}
	return errors.Join(errs...)
}

// chatted does what a message that is new means, and says what that was.
func (w *work) chatted(key model.PersonKey, m protocol.ChatMessage) (string, error) {
	// A message outside of threads is answered in the thread that it starts.
	thread := model.Thread{
		Person: key.Handle, Channel: m.Channel, Thread: cmp.Or(m.Thread, m.MessageID), Requester: m.Author, Direct: m.Direct,
		Participant: m.Participant, At: w.now,
	}
	place := model.Place{Type: model.RefThread, Ref: model.ThreadRef(thread.Channel, thread.Thread)}
	author := cmp.Or(m.Author.Name, m.Author.ID)
	err := w.tx.PutRemark(model.Remark{
		Team: key.Team, Place: place, ID: m.MessageID, Kind: eventChat, Author: author, At: w.now, Body: m.Text, Human: true, Files: m.Files,
	})
	if err != nil {
		return "", err
	}
	session, about, err := w.inThread(key, thread)
	if err != nil {
		return "", err
	}
	if session != nil {
		_, err := w.hear(session.ID, model.Feedback{
			Key: "chat/" + place.Ref + "/" + m.MessageID, Place: place,
			Feedback: protocol.Feedback{
				Actor: author, Kind: protocol.FeedbackChat, CommentID: m.MessageID, At: protocol.FormatTime(w.now), Body: withFiles(m),
			},
		}, true)
		return "feedback to " + describe(*session), err
	}
	return w.beginSession(key, m, thread, about)
}

// inThread finds the chat session that is open in a thread, and else the latest work that belongs to it.
func (w *work) inThread(key model.PersonKey, thread model.Thread) (session *model.Item, about *protocol.About, err error) {
	ids, err := w.tx.ItemsInThread(key, thread.Channel, thread.Thread)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		it, err := w.tx.Item(id)
		if err != nil {
			return nil, nil, err
		}
		if it.IsChat() && !it.Finished() && !it.Gone {
			return &it, nil, nil
		}
		if about == nil {
			state := protocol.AboutRunning
			if it.Finished() || it.Gone {
				state = protocol.AboutFinished
			}
			about = &protocol.About{ID: it.ID, Title: it.Spec.Title, State: state}
		}
	}
	return nil, about, nil
}

func (w *work) beginSession(key model.PersonKey, m protocol.ChatMessage, thread model.Thread, about *protocol.About) (string, error) {
	it := model.Item{
		ID: bornID(key.Team, model.KindChat, key.Handle, m.Channel, m.MessageID), Namespace: key.Team.Namespace,
		Origin: &protocol.Origin{
			Channel: thread.Channel, Thread: thread.Thread, Requester: m.Author, Direct: m.Direct, Participant: m.Participant,
			Files: m.Files, About: about,
		},
	}
	it.Spec = model.ItemSpec{
		Team: key.Team.Name, Person: key.Handle, Kind: model.KindChat, Title: cmp.Or(firstLine(m.Text), "Files from "+cmp.Or(m.Author.Name, m.Author.ID)),
		Body: withFiles(m), Requester: cmp.Or(m.Author.Name, m.Author.ID), Priority: priorityChat, Trigger: protocol.TriggerHuman,
	}
	it, err := w.bear(it)
	if err != nil {
		return "", err
	}
	thread.ItemID = it.ID
	return "began chat session " + describe(it), w.tx.LinkThread(thread)
}

// withFiles is a message's text, with a line for each file that came with it.
func withFiles(m protocol.ChatMessage) string {
	text := m.Text
	for _, f := range m.Files {
		text += fmt.Sprintf("\n[file %s: %s, %s, %d bytes]", f.ID, f.Name, f.MIMEType, f.Size)
	}
	return strings.TrimPrefix(text, "\n")
}

// session gives the chat session that the person runs now.
func session(r store.Reader, p *peer, id string) (model.Item, error) {
	it, err := running(r, p, id)
	if err != nil {
		return it, err
	}
	if !it.IsChat() {
		return it, protocol.Errorf(protocol.CodeInvalid, "work item %s is no chat session: only a session that a chat message began files requests", it.ID)
	}
	return it, nil
}

// filed finds what the session filed under a request's title, in any case and spacing; nil where nothing was.
func filed(it model.Item, request string) *model.Filed {
	same := func(a, b string) bool { return strings.EqualFold(oneLine(a, maxBody), oneLine(b, maxBody)) }
	for i := range it.Filed {
		if same(it.Filed[i].Request, request) {
			return &it.Filed[i]
		}
	}
	return nil
}

// shortTitle refuses a title that is none.
func shortTitle(request string) error { return short("the title of the request", request, maxText) }

// mayFile refuses a request without a title, and one that was filed already.
func mayFile(it model.Item, request string) error {
	if oneLine(request, maxTitle) == "" {
		return protocol.Errorf(protocol.CodeInvalid, "the request has no title")
	}
	if f := filed(it, request); f != nil {
		as := cmp.Or(f.Ticket, f.ItemID)
		return protocol.Errorf(protocol.CodeInvalid, "%q was filed already from this conversation, as %s: work on that instead of filing it again", cut(request, 100), as)
	}
	return nil
}

func (r request) workCheck(m protocol.WorkCheck) (protocol.Message, error) {
	return r.read(func(tx store.Reader) (protocol.Message, error) {
		it, err := session(tx, r.p, m.WorkItemID)
		if err != nil {
			return nil, err
		}
		return protocol.Ack{}, errors.Join(shortTitle(m.Request), mayFile(it, m.Request))
	})
}

func (r request) workFileFor(m protocol.WorkFileFor) (protocol.Message, error) {
	return nil, r.change(func(w *work) error {
		if err := errors.Join(checkKey("ticket", m.Ticket), short("assignee", m.Assignee, maxName), shortTitle(m.Request)); err != nil {
			return err
		}
		it, err := session(w.tx, r.p, m.WorkItemID)
		if err != nil {
			return err
		}
		if f := filed(it, m.Request); f != nil && f.Ticket == m.Ticket && f.Assignee == m.Assignee {
			return nil // repeated
		}
		if err := mayFile(it, m.Request); err != nil {
			return err
		}
		it.Filed = append(it.Filed, model.Filed{Request: m.Request, Ticket: m.Ticket, Assignee: m.Assignee})
		return w.put(&it)
	})
}

func (r request) workLink(m protocol.WorkLink) (protocol.Message, error) {
	return r.reply(func(w *work) (protocol.Message, error) {
		if err := checkKey("ticket", m.Ticket); err != nil {
			return nil, err
		}
		subject := &protocol.Subject{Type: string(model.RefTicket), Ref: m.Ticket, Title: oneLine(m.Request, maxTitle)}
		if ticket, err := found(w.tx.Ticket(r.p.key.Team, m.Ticket)); err != nil {
			return nil, err
		} else if ticket != nil {
			subject.Title, subject.URL = ticket.Title, ticket.URL
		}
		filed, err := w.file(r.p, m.WorkItemID, model.Filed{Request: m.Request, Ticket: m.Ticket}, model.ItemSpec{
			Kind: model.KindTicket, Title: m.Request, Subject: subject,
		})
		return protocol.WorkLinkResult{URL: subject.URL, Item: filed.item, Waiting: filed.waiting, Work: filed.work}, err
	})
}

func (r request) workQueue(m protocol.WorkQueue) (protocol.Message, error) {
	return r.reply(func(w *work) (protocol.Message, error) {
		filed, err := w.file(r.p, m.WorkItemID, model.Filed{Request: m.Title}, model.ItemSpec{
			Kind: model.KindTask, Title: m.Title, Body: m.Body,
		})
		return protocol.WorkQueueResult{Item: filed.item, Waiting: filed.waiting, Work: filed.work}, err
	})
}

// filing is what a session is told of the work that it filed.
type filing struct {
	item    protocol.WorkRef
	waiting bool
	work    []protocol.WorkRef
}

// file makes work of a request, in the session's thread. Filing the same again gives the same.
func (w *work) file(p *peer, sessionID string, what model.Filed, spec model.ItemSpec) (filing, error) {
	at, err := session(w.tx, p, sessionID)
	if err != nil {
		return filing{}, err
	}
	if known := filed(at, what.Request); known != nil && known.ItemID != "" && known.Ticket == what.Ticket {
		it, err := w.tx.Item(known.ItemID)
		if err != nil {
			return filing{}, err
		}
		return w.filing(at, it)
	}
	if err := errors.Join(shortTitle(what.Request), mayFile(at, what.Request)); err != nil {
		return filing{}, err
	}
	origin := *at.Origin
	origin.Files, origin.About = nil, nil
	spec.Team, spec.Person, spec.Requester, spec.Trigger = at.Spec.Team, p.key.Handle, at.Spec.Requester, protocol.TriggerHuman
	it := model.Item{
		ID: bornID(p.key.Team, "filed", at.ID, oneLine(what.Request, maxBody), what.Ticket), Namespace: at.Namespace, Spec: spec, Origin: &origin,
	}
	if it, err = w.bearFiled(at, it); err != nil {
		return filing{}, err
	}
	if err := w.shareThreads(at, it); err != nil {
		return filing{}, err
	}
	what.ItemID = it.ID
	at.Filed = append(at.Filed, what)
	if err := w.put(&at); err != nil {
		return filing{}, err
	}
	return w.filing(at, it)
}

// bearFiled stores an item that a session files: last, if the person has other work. A ticket that the person has open work on already, for
// example because it was assigned to it, gets no second item.
func (w *work) bearFiled(at, it model.Item) (model.Item, error) {
	if s := it.Spec.Subject; s != nil {
		ids, err := w.tx.ItemsAbout(it.TeamKey(), model.Place{Type: model.RefType(s.Type), Ref: s.Ref})
		if err != nil {
			return it, err
		}
		for _, id := range ids {
			known, err := w.tx.Item(id)
			if err != nil {
				return it, err
			}
			if known.Assignee == at.Assignee && known.Spec.Subject != nil && known.Spec.Subject.Ref == s.Ref && !known.Finished() {
				return known, nil
			}
		}
	}
	others, err := w.otherWork(at, it.ID)
	if err != nil {
		return it, err
	}
	if len(others) > 0 {
		it.Assignee, it.CreatedAt, it.Spec.Priority = at.Assignee, w.now, priorityDefault
		if err := w.place(&it, protocol.PositionLast, ""); err != nil {
			return it, err
		}
	}
	it, err = w.bear(it)
	return it, err
}

// filing tells of an item that a session filed, among the person's other work.
func (w *work) filing(session, it model.Item) (filing, error) {
	others, err := w.otherWork(session, it.ID)
	if err != nil {
		return filing{}, err
	}
	refs, err := workRefs(w.tx, append([]model.Item{it}, others...), "")
	if err != nil {
		return filing{}, err
	}
	return filing{item: refs[0], waiting: len(others) > 0, work: refs[1:]}, nil
}

// otherWork lists the person's open items besides a session and one more, in the order in which they run.
func (w *work) otherWork(session model.Item, id string) ([]model.Item, error) {
	items, err := w.tx.ItemsOf(model.PersonKey{Team: session.TeamKey(), Handle: session.Assignee}, false, maxWorkList)
	var others []model.Item
	for _, it := range items {
		if it.ID != session.ID && it.ID != id && (it.State == protocol.StateQueued || it.State == protocol.StateActive) {
			others = append(others, it)
		}
	}
	return others, err
}

// shareThreads has an item report to the threads of a session too.
func (w *work) shareThreads(from, to model.Item) error {
	threads, err := w.tx.Threads(from.ID)
	if err != nil {
		return err
	}
	for _, t := range threads {
		t.ItemID, t.At = to.ID, w.now
		if err := w.tx.LinkThread(t); err != nil {
			return err
		}
	}
	return nil
}
