package office

// This file answers what agents send: each request gets exactly one response, after what it asks for is durable.

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/bullpen-dev/bullpen/office/dispatch"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// Limits of what one message may leave behind.
const (
	maxProgress  = 1000
	maxSessionID = 1000
	maxWindows   = 16
	maxName      = 200
	maxWorkList  = 200
)

// receive handles one frame.
func (o *Office) receive(ctx context.Context, p *peer, data []byte) {
	frame, werr := protocol.Decode(data)
	if werr != nil {
		o.metrics.messages.WithLabelValues("", string(werr.Code)).Inc()
		o.answer(p, werr.RequestID, werr)
		return
	}
	kind := string(frame.Message.Type())
	r := request{o: o, ctx: ctx, p: p, f: frame}
	reply, err := r.handle()
	if err != nil {
		werr := o.wireError(p, kind, err)
		o.metrics.messages.WithLabelValues(kind, string(werr.Code)).Inc()
		o.answer(p, frame.ID, werr)
		return
	}
	o.metrics.messages.WithLabelValues(kind, "ok").Inc()
	if reply != nil {
		o.respond(p, frame.ID, reply)
	}
}

// wireError is what an agent is told of an error: its own doing as it is, the office's trouble without its details.
func (o *Office) wireError(p *peer, kind string, err error) *protocol.WireError {
	var werr *protocol.WireError
	if errors.As(err, &werr) {
		return werr
	}
	o.log.Error("A message could not be stored", "person", p.key.String(), "type", kind, "error", err)
	return protocol.Errorf(protocol.CodeFailed, "the office cannot store this now, nothing of it was kept: send it again later")
}

// request is one message being answered.
type request struct {
	o   *Office
	ctx context.Context
	p   *peer
	f   protocol.Frame
}

// change runs a transaction and acknowledges the request once that is durable, before anything that follows from it leaves: the ack of
// a hand-back comes before the next offer.
func (r request) change(fn func(w *work) error) error {
	return r.o.change(r.ctx, fn, func() { r.o.respond(r.p, r.f.ID, protocol.Ack{}) })
}

// handle gives the response to one message; nil where it takes none, or has it already.
func (r request) handle() (protocol.Message, error) {
	switch m := r.f.Message.(type) {
	case protocol.Ping:
		return protocol.Pong{}, nil
	case protocol.Pong, protocol.Error:
		return nil, nil // an error is never answered with an error
	case protocol.Hello:
		return nil, protocol.Errorf(protocol.CodeInvalid, "hello was said already on this connection")
	case protocol.Heartbeat:
		return ack(r.heartbeat(m))
	case protocol.Accept:
		return nil, r.onItem(m.WorkItemID, func(w *work, it model.Item) (dispatch.Outcome, error) {
			return outcome(dispatch.Accept(it, r.p.key.Handle, m, w.now))
		})
	case protocol.Decline:
		return nil, r.onItem(m.WorkItemID, func(w *work, it model.Item) (dispatch.Outcome, error) {
			policy, err := w.policy(it)
			if err != nil {
				return dispatch.Outcome{}, err
			}
			return outcome(dispatch.Decline(it, r.p.key.Handle, m.Reason, policy, w.now))
		})
	case protocol.Progress:
		return nil, r.onRun(m.WorkItemID, func(w *work, it *model.Item) error {
			it.Progress, it.ProgressAt = cut(m.Text, maxProgress), w.now
			return nil
		})
	case protocol.Session:
		if len(m.SessionID) > maxSessionID {
			return nil, protocol.Errorf(protocol.CodeInvalid, "sessionId has at most %d bytes, not %d", maxSessionID, len(m.SessionID))
		}
		return nil, r.onRun(m.WorkItemID, func(_ *work, it *model.Item) error {
			it.SessionID, it.SessionModel = m.SessionID, m.Model
			return nil
		})
	case protocol.Journal:
		return nil, r.journal(m)
	case protocol.Handback:
		return nil, r.handback(m)
	case protocol.Fail:
		return nil, r.fail(m)
	}
	return r.handleRest()
}

// handleRest has the messages that are not about a round.
func (r request) handleRest() (protocol.Message, error) {
	switch m := r.f.Message.(type) {
	case protocol.Usage:
		return nil, r.usage(m)
	case protocol.DoctorReport:
		return nil, r.doctor(m)
	case protocol.Roster:
		return r.o.roster(r.ctx, r.p)
	case protocol.WorkList:
		return r.o.workList(r.ctx, r.p, m)
	case protocol.WorkStatus:
		return r.o.workStatus(r.ctx, r.p, m)
	}
	kind := r.f.Message.Type()
	if spec, ok := protocol.SpecOf(kind); ok && spec.SentBy == protocol.Office {
		return nil, protocol.Errorf(protocol.CodeInvalidMessage, "%s is sent by the office, never by an agent", kind)
	}
	return nil, protocol.Errorf(protocol.CodeUnsupported, "this office does not do %s yet", kind)
}

func ack(err error) (protocol.Message, error) {
	if err != nil {
		return nil, err
	}
	return protocol.Ack{}, nil
}

// outcome makes a plain error of a wire error, which is never a non-nil interface around nil.
func outcome(out dispatch.Outcome, werr *protocol.WireError) (dispatch.Outcome, error) {
	if werr != nil {
		return out, werr
	}
	return out, nil
}

// onItem changes an item by a pure decision.
func (r request) onItem(id string, decide func(*work, model.Item) (dispatch.Outcome, error)) error {
	return r.change(func(w *work) error {
		it, err := itemOf(w.tx, r.p, id)
		if err != nil {
			return err
		}
		out, err := decide(w, it)
		if err != nil {
			return err
		}
		if out.Changed && out.Item.Round.Accepted() {
			if err := w.tx.PutRound(*out.Item.Round); err != nil {
				return err
			}
		}
		return w.apply(it.State, out)
	})
}

// onRun changes an item that the person runs now.
func (r request) onRun(id string, edit func(*work, *model.Item) error) error {
	err := r.change(func(w *work) error {
		it, err := running(w.tx, r.p, id)
		if err != nil {
			return err
		}
		if err := edit(w, &it); err != nil {
			return err
		}
		w.changed[model.Change{Kind: model.ChangedItem, Namespace: it.Namespace, Name: it.Name}] = struct{}{}
		return w.tx.PutItem(&it)
	})
	if err == nil {
		r.p.beat.Store(time.Now().UnixNano())
	}
	return err
}

// itemOf gives the item, or unknown_item where there is none or it is another team's: handles are unique within a team only.
func itemOf(r store.Reader, p *peer, id string) (model.Item, error) {
	it, err := found(r.Item(id))
	if err != nil {
		return model.Item{}, err
	}
	if it == nil || it.TeamKey() != p.key.Team {
		return model.Item{}, protocol.Errorf(protocol.CodeUnknownItem, "there is no work item %q", cut(id, 100))
	}
	return *it, nil
}

// running gives the item if the person runs it now.
func running(r store.Reader, p *peer, id string) (model.Item, error) {
	it, err := itemOf(r, p, id)
	if err != nil {
		return it, err
	}
	if werr := dispatch.Running(it, p.key.Handle); werr != nil {
		return it, werr
	}
	return it, nil
}

// policy is that of the item's team, or the defaults where it is gone.
func (w *work) policy(it model.Item) (model.Policy, error) {
	team, err := found(w.tx.Team(it.TeamKey()))
	if err != nil || team == nil {
		return dispatch.DefaultPolicy(), err
	}
	return team.Policy, nil
}

func (r request) heartbeat(m protocol.Heartbeat) error {
	if m.WorkItemID == "" {
		return nil
	}
	if !r.p.isRunning(m.WorkItemID) {
		return r.o.store.View(r.ctx, func(tx store.Reader) error {
			_, err := running(tx, r.p, m.WorkItemID)
			return err
		})
	}
	r.p.beat.Store(time.Now().UnixNano())
	return nil
}

func (r request) journal(m protocol.Journal) error {
	return r.change(func(w *work) error {
		it, err := itemOf(w.tx, r.p, m.WorkItemID)
		if err != nil {
			return err
		}
		if first, err := w.first(r.p, it, r.f); err != nil || !first {
			return err
		}
		if _, err := running(w.tx, r.p, m.WorkItemID); err != nil {
			return err
		}
		r.p.beat.Store(time.Now().UnixNano())
		return w.tx.AppendJournal(model.JournalEntry{ItemID: it.ID, At: w.now, Author: r.p.key.Handle, Text: m.Text})
	})
}

// first says whether the message comes for the first time: the same id and payload from the same person is a repeat. Somebody
// else's item is refused before anything of it is remembered.
func (w *work) first(p *peer, it model.Item, f protocol.Frame) (bool, error) {
	if it.Assignee != p.key.Handle {
		return false, protocol.Errorf(protocol.CodeUnknownItem, "you have no work item %s", it.ID)
	}
	data, err := protocol.Encode(protocol.Frame{ID: f.ID, Message: f.Message})
	if err != nil {
		return false, err
	}
	return w.tx.FirstTime(it.ID, sha256.Sum256(append([]byte(p.key.String()+"\x00"), data...)), w.now)
}

func (r request) handback(m protocol.Handback) error {
	return r.endOfRound(m.WorkItemID, m.Usage, func(w *work, it model.Item) (dispatch.Outcome, error) {
		noReview, err := w.noReview(r.p, it)
		if err != nil {
			return dispatch.Outcome{}, err
		}
		return outcome(dispatch.HandBack(it, r.p.key.Handle, m, noReview, false, w.now))
	})
}

func (r request) fail(m protocol.Fail) error {
	return r.endOfRound(m.WorkItemID, m.Usage, func(w *work, it model.Item) (dispatch.Outcome, error) {
		policy, err := w.policy(it)
		if err != nil {
			return dispatch.Outcome{}, err
		}
		return outcome(dispatch.Fail(it, r.p.key.Handle, m.Reason, policy, w.now))
	})
}

// endOfRound takes a hand-back or a fail: its usage counts also when it comes late, itself only once.
func (r request) endOfRound(id string, usage []protocol.SessionUsage,
	decide func(*work, model.Item) (dispatch.Outcome, error)) error {
	return r.change(func(w *work) error {
		it, err := itemOf(w.tx, r.p, id)
		if err != nil {
			return err
		}
		if first, err := w.first(r.p, it, r.f); err != nil || !first {
			return err
		}
		out, err := decide(w, it)
		if err != nil {
			return err
		}
		used, err := w.count(it, r.p.key, usage)
		if err != nil {
			return err
		}
		out.Item.Usage = out.Item.Usage.Add(used)
		if out.Ended != nil {
			out.Ended.Usage = out.Ended.Usage.Add(used)
		}
		if !out.Changed && used != (model.Usage{}) { // late, but its usage counts
			return w.put(&out.Item)
		}
		return w.apply(it.State, out)
	})
}

// count adds to the ledger what is new in the running totals of each session and model.
func (w *work) count(it model.Item, key model.PersonKey, sessions []protocol.SessionUsage) (model.Usage, error) {
	var sum model.Usage
	for _, s := range sessions {
		for name, reported := range s.Models {
			totals := model.Usage{
				InputTokens: reported.InputTokens, OutputTokens: reported.OutputTokens,
				CacheReadTokens: reported.CacheReadTokens, CacheCreationTokens: reported.CacheCreationTokens,
			}
			if reported.CostUSD != nil {
				totals.CostMicroUSD, totals.CostKnown = model.MicroUSD(*reported.CostUSD), true
			}
			last, err := w.tx.SessionTotals(it.ID, s.Session, name)
			if err != nil {
				return sum, err
			}
			fresh := totals.Since(last)
			if fresh == (model.Usage{}) {
				continue
			}
			entry := model.LedgerEntry{
				ItemID: it.ID, Round: it.Offers, Team: key.Team, Person: key.Handle, Kind: it.Spec.Kind,
				Session: s.Session, Model: name, Usage: fresh,
			}
			if err := w.tx.AddUsage(entry, totals.Max(last), w.now); err != nil {
				return sum, err
			}
			sum = sum.Add(fresh)
		}
	}
	return sum, nil
}

// noReview says whether the person's role declares the item's kind to finish without a review.
func (w *work) noReview(p *peer, it model.Item) (bool, error) {
	team, err := found(w.tx.Team(p.key.Team))
	if err != nil || team == nil {
		return false, err
	}
	person, err := found(w.tx.PersonByKey(p.key))
	if err != nil || person == nil {
		return false, err
	}
	for _, role := range team.Config.Roles {
		for _, kind := range role.Work {
			if role.Name == person.Role && kind.Kind == it.Spec.Kind {
				return kind.Review == protocol.ReviewNone, nil
			}
		}
	}
	return false, nil
}

func (r request) usage(m protocol.Usage) error {
	if len(m.Windows) > maxWindows {
		return protocol.Errorf(protocol.CodeInvalid, "at most %d usage windows, not %d", maxWindows, len(m.Windows))
	}
	return r.change(func(w *work) error {
		person, err := w.tx.PersonByKey(r.p.key)
		if err != nil {
			return err
		}
		report := model.Windows{Team: r.p.key.Team, Subscription: subscription(person), At: w.now, By: r.p.key.Handle}
		named := map[string]bool{}
		for _, reported := range m.Windows {
			if len(reported.Name) > maxName || named[reported.Name] {
				return protocol.Errorf(protocol.CodeInvalid, "each usage window has a name of its own of at most %d bytes, not %q", maxName, cut(reported.Name, 40))
			}
			named[reported.Name] = true
			window := model.Window{Name: reported.Name, Utilization: reported.Utilization}
			if reported.ResetsAt != "" {
				if window.ResetsAt, err = protocol.ParseTime(reported.ResetsAt); err != nil {
					return protocol.Errorf(protocol.CodeInvalid, "windows: %v", err)
				}
			}
			report.Windows = append(report.Windows, window)
		}
		if err := w.tx.PutWindows(report); err != nil {
			return err
		}
		people, err := w.tx.People(r.p.key.Team)
		for _, other := range people {
			if subscription(other) == report.Subscription {
				w.touchPerson(other.Key)
			}
		}
		return err
	})
}

func (r request) doctor(m protocol.DoctorReport) error {
	return r.change(func(w *work) error {
		person, err := w.tx.PersonByKey(r.p.key)
		if err != nil {
			return err
		}
		w.showPerson(person)
		return w.tx.PutDoctor(person.UID, model.Doctor{At: w.now, Checks: m.Checks})
	})
}

func (o *Office) workList(ctx context.Context, p *peer, m protocol.WorkList) (protocol.Message, error) {
	result := protocol.WorkListResult{Items: []protocol.WorkRef{}}
	err := o.store.View(ctx, func(r store.Reader) error {
		items, err := r.ItemsOf(p.key, false, maxWorkList)
		for _, it := range items {
			ref := protocol.WorkRef{ID: it.ID, Title: it.Spec.Title, Status: it.State, Kind: it.Spec.Kind}
			if it.ID == m.WorkItemID {
				ref.Current = new(true)
			}
			if s := it.Spec.Subject; s != nil && s.Type == "ticket" {
				ref.TicketKey, ref.TicketTitle = s.Ref, s.Title
			}
			result.Items = append(result.Items, ref)
		}
		return err
	})
	return result, err
}

func (o *Office) workStatus(ctx context.Context, p *peer, m protocol.WorkStatus) (protocol.Message, error) {
	result := protocol.WorkStatusResult{}
	err := o.store.View(ctx, func(r store.Reader) error {
		for _, id := range m.WorkItemIDs {
			it, err := found(r.Item(id))
			if err != nil {
				return err
			}
			status := protocol.ItemStatus{WorkItemID: id, State: protocol.ItemUnknown}
			switch {
			case it == nil:
			case it.Assignee != p.key.Handle || it.TeamKey() != p.key.Team:
				status.State = protocol.ItemNotYours
			default:
				status.State = protocol.ItemState(it.State)
			}
			result.Items = append(result.Items, status)
		}
		return nil
	})
	return result, err
}

func (o *Office) roster(ctx context.Context, p *peer) (protocol.Message, error) {
	result := protocol.RosterResult{Members: []protocol.Member{}}
	now := o.now()
	err := o.store.View(ctx, func(r store.Reader) error {
		team, err := r.Team(p.key.Team)
		if err != nil {
			return err
		}
		people, err := r.People(p.key.Team)
		if err != nil {
			return err
		}
		roles := map[string]protocol.TeamRole{}
		for _, role := range team.Config.Roles {
			roles[role.Name] = role
		}
		for _, person := range people {
			view, current, err := o.view(r, person, now)
			if err != nil {
				return err
			}
			member := protocol.Member{
				Handle: person.Key.Handle, Name: person.DisplayName, Role: person.Role,
				Title: roles[person.Role].Title, Summary: roles[person.Role].Summary,
				Status: protocol.MemberStatus(view.State), Usage: busiest(view.Windows),
			}
			if current != nil {
				member.Current = current.Spec.Title
			}
			result.Members = append(result.Members, member)
		}
		for _, h := range team.Config.Humans {
			result.Humans = append(result.Humans, protocol.RosterHuman{Name: h.Name})
		}
		return nil
	})
	return result, err
}

// busiest is the fullest usage window; nil where none was reported.
func busiest(windows []model.Window) *protocol.MemberUsage {
	var most *protocol.MemberUsage
	for _, w := range windows {
		if most != nil && w.Utilization <= most.Utilization {
			continue
		}
		most = &protocol.MemberUsage{Window: w.Name, Utilization: w.Utilization}
		if !w.ResetsAt.IsZero() {
			most.ResetsAt = protocol.FormatTime(w.ResetsAt)
		}
	}
	return most
}

// cut shortens a text to at most limit characters.
func cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
