package office

// This file has what a requester is told of an item, by its agent: either the agent asks for leave to tell, or the office keeps a report
// for it until the agent confirms that it was posted.

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

const (
	// reportGrace is how long an agent that has handed back may take to ask for the report itself before it is sent one.
	reportGrace = 30 * time.Second
	// maxBatch bounds the bytes of the reports, and those of the acts, of one frame; the rest comes in a further one.
	maxBatch = 200_000
	// maxDue is how many reports are looked at at once.
	maxDue = 50
	// maxThreads and maxLinks bound the threads and links of one report.
	maxThreads = 50
	maxLinks   = 50
	// maxReport bounds the text of one report, in characters.
	maxReport = 10_000
)

// audience is where an item's requester can be told of it.
type audience struct {
	requester string
	threads   []protocol.Thread
	// direct is the chat id of a requester without a thread.
	direct string
}

func (a audience) empty() bool { return len(a.threads) == 0 && a.direct == "" }

// audienceOf finds whom to tell of an item: all in its threads; of a blocked one without a thread, its requester, if that is a human of the
// team with an identity in chat.
func audienceOf(r store.Reader, it model.Item, kind protocol.ChatReportKind) (audience, error) {
	var a audience
	threads, err := r.Threads(it.ID)
	if err != nil {
		return a, err
	}
	for _, t := range threads[max(0, len(threads)-maxThreads):] {
		a.threads = append(a.threads, protocol.Thread{
			Channel: t.Channel, Thread: t.Thread, Requester: t.Requester, Direct: t.Direct, Participant: t.Participant,
		})
	}
	if it.Origin != nil {
		a.requester = it.Origin.Requester.ID
	} else if len(threads) > 0 {
		a.requester = threads[0].Requester.ID
	}
	if len(threads) > 0 || kind != protocol.TellBlocked {
		return a, nil
	}
	team, err := found(r.Team(it.TeamKey()))
	if err != nil || team == nil {
		return a, err
	}
	for _, h := range team.Config.Humans {
		if h.Name != it.Spec.Requester {
			continue
		}
		if id := chatIdentity(h); id != "" {
			a.direct, a.requester = id, id
		}
	}
	return a, nil
}

// chatIdentity is a human's id in chat: the identity called chat, else slack.
func chatIdentity(h protocol.TeamHuman) string {
	if id := h.Identities["chat"]; id != "" {
		return id
	}
	return h.Identities["slack"]
}

// reportID is the id of the report about an ending of an item; grantKey remembers that the agent was given leave to tell of it itself.
// Endings are told apart by the number of rounds, which only grows with the next accept, and stores by their id: a store that was lost counts
// rounds anew, and agents post an id once.
func (w *work) reportID(it model.Item, kind protocol.ReportKind) string {
	return fmt.Sprintf("%s/%d/%s/%s", it.ID, it.Rounds, kind, w.o.life())
}

func grantKey(it model.Item, kind protocol.ChatReportKind) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "chat_report\x00%s\x00%d", kind, it.Rounds))
}

// report keeps a report about an item that has come to an end, unless its agent asked for leave to tell before it handed back. An agent
// that has just handed back gets a while to ask.
func (w *work) report(it model.Item, ended model.Round) error {
	kind, tell := protocol.ReportResult, protocol.TellResult
	switch {
	case it.State == protocol.StateBlocked:
		kind, tell = protocol.ReportBlocked, protocol.TellBlocked
	case it.State != protocol.StateDone || ended.Outcome == model.OutcomeSilent:
		return nil
	}
	to, err := audienceOf(w.tx, it, tell)
	if err != nil || to.empty() {
		return err
	}
	if first, err := w.tx.FirstTime(it.ID, grantKey(it, tell), w.now); err != nil || !first {
		return err
	}
	report := model.Report{
		ID: w.reportID(it, kind), Person: model.PersonKey{Team: it.TeamKey(), Handle: it.Assignee}, ItemID: it.ID, Kind: kind,
		Text: cut(reportText(it), maxReport), CreatedAt: w.now,
	}
	switch ended.Outcome {
	case model.OutcomeDone, model.OutcomeBlocked:
		report.NotBefore = w.now.Add(reportGrace)
	}
	if err := w.tx.PutReport(report); err != nil {
		return err
	}
	w.touchPerson(report.Person)
	return nil
}

// reportText is what there is to say about the end of an item.
func reportText(it model.Item) string {
	if it.Summary != "" && it.End.Reason != model.ReasonNothingToReview {
		return it.Summary
	}
	return it.End.Message
}

// deliverReports sends a connected person the reports whose time has come, and looks again when the next one's comes.
func (w *work) deliverReports(p *peer) error {
	for {
		reports, err := w.tx.DueReports(p.key, maxDue)
		if err != nil || len(reports) == 0 {
			return err
		}
		if wait := reports[0].NotBefore.Sub(w.now); wait > 0 {
			w.after = append(w.after, func() { w.o.due.AddAfter(p.key, wait) })
			return nil
		}
		later := slices.IndexFunc(reports, func(r model.Report) bool { return r.NotBefore.After(w.now) })
		if later > 0 {
			reports = reports[:later]
		}
		batch, err := w.sending(reports)
		if err != nil {
			return err
		}
		w.leave(p, protocol.Reports{Reports: batch})
	}
}

// leave has a message leave for a person once the transaction is durable. One that cannot be sent is a fault, but no reason to refuse the
// person everything.
func (w *work) leave(p *peer, m protocol.Message) {
	frame, err := protocol.Encode(protocol.Frame{ID: p.nextID(), Message: m})
	if err != nil {
		w.o.log.Error("A message cannot be sent", "person", p.key.String(), "type", string(m.Type()), "error", err)
		return
	}
	w.after = append(w.after, func() { p.conn.Send(frame) })
}

// openReports lists the reports that the person has not confirmed, for its welcome. What a frame does not take follows the welcome.
func (w *work) openReports(p *peer) (first []protocol.Report, err error) {
	reports, err := w.tx.OpenReports(p.key)
	if err != nil {
		return nil, err
	}
	for len(reports) > 0 {
		batch, err := w.sending(reports)
		if err != nil {
			return nil, err
		}
		reports = reports[max(1, len(batch)):]
		if first == nil {
			first = batch
			continue
		}
		w.leave(p, protocol.Reports{Reports: batch})
	}
	return first, nil
}

// sending gives the first reports, as many as a frame takes, as they go over the wire, and notes that they went.
func (w *work) sending(reports []model.Report) ([]protocol.Report, error) {
	var list []protocol.Report
	size := 0
	for _, r := range reports {
		it, err := w.tx.Item(r.ItemID)
		if err != nil {
			return nil, err
		}
		to, err := audienceOf(w.tx, it, protocol.ChatReportKind(r.Kind))
		if err != nil {
			return nil, err
		}
		links, err := reportLinks(w.tx, it)
		if err != nil {
			return nil, err
		}
		report := protocol.Report{
			ID: r.ID, WorkItemID: r.ItemID, Kind: r.Kind, Text: r.Text, Requester: to.requester, Links: links, Threads: to.threads, Direct: to.direct,
		}
		text, err := json.Marshal(report)
		if err != nil {
			return nil, err
		}
		if size += len(text); size > maxBatch && len(list) > 0 {
			break
		}
		list = append(list, report)
		if r.SentAt.IsZero() {
			r.SentAt = w.now
			if err := w.tx.PutReport(r); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// reportLinks are the pages of the tickets and pull requests of an item.
func reportLinks(r store.Reader, it model.Item) ([]protocol.Link, error) {
	links := []protocol.Link{}
	places, err := placesOf(r, it)
	if err != nil {
		return nil, err
	}
	for _, place := range places {
		link, err := pageOf(r, it, place)
		if err != nil {
			return nil, err
		}
		known := func(l protocol.Link) bool { return l.URL == link.URL }
		if place.Type != model.RefDoc && absolute(link.URL) && !slices.ContainsFunc(links, known) && len(links) < maxLinks {
			links = append(links, link)
		}
	}
	return links, nil
}

// pageOf is the page of a ticket, pull request or document, with an empty URL where none is known.
func pageOf(r store.Reader, it model.Item, place model.Place) (protocol.Link, error) {
	var link protocol.Link
	var err error
	switch place.Type {
	case model.RefTicket:
		var t *model.Ticket
		if t, err = found(r.Ticket(it.TeamKey(), place.Ref)); t != nil {
			link = protocol.Link{URL: t.URL, Title: t.Title}
		}
	case model.RefPull:
		var p *model.Pull
		if p, err = found(r.Pull(it.TeamKey(), place.Ref)); p != nil {
			link = protocol.Link{URL: p.URL, Title: p.Title}
		}
	case model.RefDoc:
		var d *model.Doc
		if d, err = found(r.Doc(it.TeamKey(), place.Ref)); d != nil {
			link = protocol.Link{URL: d.URL, Title: d.Title}
		}
	case model.RefThread:
	}
	if s := it.Spec.Subject; link.URL == "" && s != nil && s.Ref == place.Ref {
		link = protocol.Link{URL: s.URL, Title: s.Title}
	}
	return link, err
}

// chatReport gives leave to tell the requester, once for each ending and kind.
func (r request) chatReport(m protocol.ChatReport) (protocol.Message, error) {
	return r.reply(func(w *work) (protocol.Message, error) {
		it, err := itemOf(w.tx, r.p, m.WorkItemID)
		if err != nil {
			return nil, err
		}
		if it.Assignee != r.p.key.Handle {
			return nil, protocol.Errorf(protocol.CodeUnknownItem, "you have no work item %s", it.ID)
		}
		result := protocol.ChatReportResult{Links: []protocol.Link{}}
		to, err := audienceOf(w.tx, it, m.Kind)
		if err != nil || to.empty() || it.State == protocol.StateCanceled || it.Rounds == 0 {
			return result, err
		}
		if granted, err := w.grantOnce(it, m.Kind, r.f); err != nil || !granted {
			return result, err
		}
		result.Post, result.Requester, result.Threads, result.Direct = true, to.requester, to.threads, to.direct
		result.Links, err = reportLinks(w.tx, it)
		return result, err
	})
}

// grantOnce says whether the agent may tell now. The same request again gets the same answer: the first one may have been lost.
func (w *work) grantOnce(it model.Item, kind protocol.ChatReportKind, f protocol.Frame) (bool, error) {
	granted := sha256.Sum256(fmt.Appendf(nil, "granted\x00%s\x00%d\x00%s", kind, it.Rounds, f.ID))
	if again, err := w.tx.Seen(it.ID, granted); err != nil || again {
		return again, err
	}
	may, err := w.grant(it, kind)
	if err != nil || !may {
		return false, err
	}
	_, err = w.tx.FirstTime(it.ID, granted, w.now)
	return true, err
}

// grant says whether the agent may tell now. A report of the office's that has not left is the agent's to post then.
func (w *work) grant(it model.Item, kind protocol.ChatReportKind) (bool, error) {
	first, err := w.tx.FirstTime(it.ID, grantKey(it, kind), w.now)
	if err != nil || first {
		return first, err
	}
	kept, err := found(w.tx.Report(w.reportID(it, protocol.ReportKind(kind))))
	if err != nil || kept == nil || !kept.SentAt.IsZero() || !kept.PostedAt.IsZero() {
		return false, err
	}
	kept.PostedAt = w.now
	return true, w.tx.PutReport(*kept)
}

func (r request) reportPosted(m protocol.ReportPosted) (protocol.Message, error) {
	return nil, r.change(func(w *work) error {
		report, err := found(w.tx.Report(m.ID))
		if err != nil {
			return err
		}
		if report == nil || report.Person != r.p.key || report.ItemID != m.WorkItemID {
			return protocol.Errorf(protocol.CodeNotFound, "you have no report %q about this work item", cut(m.ID, 100))
		}
		if report.PostedAt.IsZero() {
			report.PostedAt = w.now
			return w.tx.PutReport(*report)
		}
		return nil
	})
}
