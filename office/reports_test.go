package office_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func handedBack(id string, status protocol.HandbackStatus) protocol.Handback {
	return protocol.Handback{WorkItemID: id, Status: status, Summary: "It was the cache.", Links: []protocol.Link{}}
}

func TestLeaveToTellTheRequesterIsGivenOnceForEachEnding(t *testing.T) {
	b := open(t)
	a, offer := b.converse("Why is it slow?")
	id := offer.WorkItem.ID
	tell := func(kind protocol.ChatReportKind) protocol.ChatReportResult {
		t.Helper()
		return answered[protocol.ChatReportResult](a, protocol.ChatReport{WorkItemID: id, Kind: kind})
	}
	if got := tell(protocol.TellAck); !got.Post || got.Requester != "U1" || len(got.Threads) != 1 || got.Threads[0].Thread != "m1" || got.Direct != "" {
		t.Errorf("leave to acknowledge: %+v", got)
	}
	if got := tell(protocol.TellAck); got.Post {
		t.Error("leave to acknowledge was given twice")
	}
	a.ok(handedBack(id, protocol.HandbackDone))
	if got := tell(protocol.TellResult); !got.Post {
		t.Error("no leave to tell the result after the hand-back")
	}
	if got := tell(protocol.TellResult); got.Post {
		t.Error("leave to tell the result was given twice, so that a retried hand-back posts twice")
	}
	b.restart()
	a, welcome := b.connect("ada")
	if len(welcome.Reports) != 0 {
		t.Errorf("what the agent took upon itself to post comes again: %+v", welcome.Reports)
	}
	if got := tell(protocol.TellResult); got.Post {
		t.Error("leave was given again after a restart")
	}
	answered[protocol.ChatMessageResult](a, said("m2", "", "And now?"))
	second := a.takeNext().WorkItem.ID
	if got := answered[protocol.ChatReportResult](a, protocol.ChatReport{WorkItemID: second, Kind: protocol.TellResult}); !got.Post {
		t.Error("no leave for another item, before its hand-back")
	}
	a.ok(handedBack(second, protocol.HandbackDone))
	_ = a.ws.Close()
	if _, welcome = b.connect("ada"); len(welcome.Reports) != 0 {
		t.Errorf("told before the hand-back, and reported after it: %+v", welcome.Reports)
	}
}

func TestAReportComesAgainUntilItWasPosted(t *testing.T) {
	b := open(t)
	a, offer := b.converse("Why is it slow?")
	id := offer.WorkItem.ID
	a.ok(handedBack(id, protocol.HandbackDone))
	_ = a.ws.Close() // it goes away without asking for leave
	for range 2 {
		var welcome protocol.Welcome
		if a, welcome = b.connect("ada"); len(welcome.Reports) != 1 {
			t.Fatalf("welcome has the reports %+v, want one", welcome.Reports)
		}
		r := welcome.Reports[0]
		if r.WorkItemID != id || r.Kind != protocol.ReportResult || r.Text != "It was the cache." || r.Requester != "U1" || len(r.Threads) != 1 {
			t.Errorf("the report is %+v", r)
		}
		if got := answered[protocol.ChatReportResult](a, protocol.ChatReport{WorkItemID: id, Kind: protocol.TellResult}); got.Post {
			t.Error("leave to post what the office has sent as a report: it would be posted twice")
		}
		b.restart()
	}
	a, welcome := b.connect("ada")
	a.refused(protocol.ReportPosted{WorkItemID: id, ID: "nothing"}, protocol.CodeNotFound)
	bob, _ := b.connect("bob")
	bob.refused(protocol.ReportPosted{WorkItemID: id, ID: welcome.Reports[0].ID}, protocol.CodeNotFound)
	a.ok(protocol.ReportPosted{WorkItemID: id, ID: welcome.Reports[0].ID})
	a.ok(protocol.ReportPosted{WorkItemID: id, ID: welcome.Reports[0].ID})
	if _, welcome = b.connect("ada"); len(welcome.Reports) != 0 {
		t.Errorf("posted, but it comes again: %+v", welcome.Reports)
	}
}

func TestTheRequesterIsToldAtOnceOfAnItemThatTheOfficeBlocked(t *testing.T) {
	b := open(t, func(team *model.Team) {
		team.Policy.Attempts = 1
		team.Config.Humans = []protocol.TeamHuman{{Name: "grace", Identities: map[string]string{"chat": "U1"}}}
	})
	a, _ := b.connect("ada")
	b.apply("fix") // applied by grace, in no thread
	a.take("fix")
	a.ok(protocol.Fail{WorkItemID: "uid-fix", Reason: "no disk"})
	f := a.wait(func(f protocol.Frame) bool { return f.Message.Type() == protocol.TypeReports })
	reports := f.Message.(protocol.Reports).Reports
	if len(reports) != 1 || reports[0].Kind != protocol.ReportBlocked || reports[0].Direct != "U1" || len(reports[0].Threads) != 0 || !strings.Contains(reports[0].Text, "no disk") {
		t.Errorf("reported: %+v", reports)
	}
}

func TestNobodyIsToldWhereNobodyAskedInChat(t *testing.T) {
	b := open(t)
	a, _ := b.connect("ada")
	b.apply("fix")
	b.apply("of-bob", func(f *model.ItemFacts) { f.Spec.Person = "bob" })
	a.take("fix")
	for _, kind := range []protocol.ChatReportKind{protocol.TellAck, protocol.TellResult, protocol.TellBlocked, protocol.TellFailed} {
		if got := answered[protocol.ChatReportResult](a, protocol.ChatReport{WorkItemID: "uid-fix", Kind: kind}); got.Post || len(got.Threads) != 0 {
			t.Errorf("leave to tell %s: %+v", kind, got)
		}
	}
	a.refused(protocol.ChatReport{WorkItemID: "uid-of-bob", Kind: protocol.TellResult}, protocol.CodeUnknownItem)
	a.refused(protocol.ChatReport{WorkItemID: "nothing", Kind: protocol.TellResult}, protocol.CodeUnknownItem)
	a.handBack("uid-fix", protocol.HandbackSilent)
	a.quiet()
}

// ticket lets the store have a ticket, as events bring it.
func (b *bench) ticket(t model.Ticket) {
	b.t.Helper()
	t.Team = shop
	b.must(b.store.Update(b.t.Context(), func(tx storeTx) error { return tx.PutTicket(t) }))
}

func aboutTicket(key string) func(*model.ItemFacts) {
	return func(f *model.ItemFacts) { f.Spec.Subject = &protocol.Subject{Type: "ticket", Ref: key} }
}

func TestASilentRoundPutsItsTicketBackByAnActThatComesUntilAnswered(t *testing.T) {
	b := open(t)
	b.ticket(model.Ticket{Key: "ACME-1", Status: protocol.TicketStatusReady})
	a, _ := b.connect("ada")
	b.apply("fix", aboutTicket("ACME-1"))
	a.take("fix")
	b.ticket(model.Ticket{Key: "ACME-1", Status: protocol.TicketStatusActive})
	a.handBack("uid-fix", protocol.HandbackSilent)
	act := a.wait(func(f protocol.Frame) bool { return f.Message.Type() == protocol.TypeAct }).Message.(protocol.Act)
	if len(act.Ops) != 1 || !strings.Contains(string(act.Ops[0]), `"op":"move"`) || !strings.Contains(string(act.Ops[0]), `"status":"ready"`) {
		t.Errorf("the act is %s", act.Ops)
	}
	b.restart()
	a, welcome := b.connect("ada")
	if len(welcome.Acts) != 1 || welcome.Acts[0].ID != act.ID || string(welcome.Acts[0].Ops[0]) != string(act.Ops[0]) {
		t.Errorf("unanswered, but the welcome has %+v", welcome.Acts)
	}
	a.refused(protocol.ActResult{ID: "nothing", OK: true, Results: []string{}}, protocol.CodeNotFound)
	bob, _ := b.connect("bob")
	bob.refused(protocol.ActResult{ID: act.ID, OK: true, Results: []string{}}, protocol.CodeNotFound)
	a.ok(protocol.ActResult{ID: act.ID, OK: false, Results: []string{}, Error: "the tracker is away"})
	a.ok(protocol.ActResult{ID: act.ID, OK: true, Results: []string{"moved"}})
	if _, welcome = b.connect("ada"); len(welcome.Acts) != 0 {
		t.Errorf("answered, but the welcome has %+v", welcome.Acts)
	}
	var kept model.Act
	b.must(b.store.View(t.Context(), func(r storeReader) (err error) {
		kept, err = r.Act(shop, act.ID)
		return err
	}))
	if kept.OK || kept.Error != "the tracker is away" {
		t.Errorf("the first answer stays, but there is %+v", kept)
	}
}

func TestUsageFieldsFollowARoundWhereTheTeamTracksCost(t *testing.T) {
	usage := []protocol.SessionUsage{{Session: "s1", Models: map[string]protocol.ModelUsage{"m": {InputTokens: 100, OutputTokens: 20, CostUSD: new(0.25)}}}}
	for name, track := range map[string]bool{"tracked": true, "not tracked": false} {
		t.Run(name, func(t *testing.T) {
			b := open(t, func(team *model.Team) { team.Usage.TrackCost = track })
			b.ticket(model.Ticket{Key: "ACME-1", Status: protocol.TicketStatusReady})
			a, _ := b.connect("ada")
			b.apply("fix", aboutTicket("ACME-1"))
			a.take("fix")
			m := done("fix")
			m.Usage = usage
			a.ok(m)
			if !track {
				a.quiet()
				return
			}
			act := a.wait(func(f protocol.Frame) bool { return f.Message.Type() == protocol.TypeAct }).Message.(protocol.Act)
			if len(act.Ops) != 2 || !strings.Contains(string(act.Ops[0]), `"value":120`) || !strings.Contains(string(act.Ops[1]), `"value":0.25`) {
				t.Errorf("the act is %s", act.Ops)
			}
		})
	}
}

func TestLeaveToTellIsAboutTheRoundThatEndedThoughTheNextOneIsOffered(t *testing.T) {
	b := open(t)
	a, offer := b.converse("Why is it slow?")
	id := offer.WorkItem.ID
	answered[protocol.ChatMessageResult](a, said("m2", "m1", "And when?")) // feedback: the hand-back brings the next offer
	a.ok(handedBack(id, protocol.HandbackDone))
	a.offer()
	tell := protocol.ChatReport{WorkItemID: id, Kind: protocol.TellResult}
	if got := answered[protocol.ChatReportResult](a, tell); !got.Post {
		t.Error("no leave to tell how the first round ended")
	}
	a.ok(protocol.Accept{WorkItemID: id, Runtime: "command"})
	a.ok(handedBack(id, protocol.HandbackDone))
	if got := answered[protocol.ChatReportResult](a, tell); !got.Post {
		t.Error("no leave to tell how the second round ended")
	}
	_ = a.ws.Close()
	if _, welcome := b.connect("ada"); len(welcome.Reports) != 0 {
		t.Errorf("the agent tells it itself, but is sent %+v", welcome.Reports)
	}
}

func TestAnAnswerToARequestForLeaveThatWasLostIsGivenAgain(t *testing.T) {
	b := open(t)
	a, offer := b.converse("Why is it slow?")
	tell := protocol.ChatReport{WorkItemID: offer.WorkItem.ID, Kind: protocol.TellAck}
	a.sendAs("tell-1", tell)
	_ = a.ws.Close() // before the answer
	a, _ = b.connect("ada")
	a.sendAs("tell-1", tell)
	if got, ok := a.reply("tell-1").(protocol.ChatReportResult); !ok || !got.Post {
		t.Errorf("the same request again was answered with %+v", got)
	}
	if got := answered[protocol.ChatReportResult](a, tell); got.Post {
		t.Error("another request got leave too")
	}
}

func TestManyReportsAndActsComeWithoutAReconnect(t *testing.T) {
	const reports, acts = 60, 520
	b := open(t)
	b.apply("fix", func(f *model.ItemFacts) { f.Spec.Person = "bob" })
	key := model.PersonKey{Team: shop, Handle: "ada"}
	b.must(b.store.Update(t.Context(), func(tx storeTx) error {
		for i := range reports {
			r := model.Report{ID: fmt.Sprintf("r%d", i), Person: key, ItemID: fixID, Kind: protocol.ReportResult, Text: strings.Repeat("long ", 2000)}
			if err := tx.PutReport(r); err != nil {
				return err
			}
		}
		for i := range acts {
			a := model.Act{ID: fmt.Sprintf("a%d", i), Person: key, Ops: []protocol.Raw{protocol.Raw(`{"op":"comment"}`)}, CreatedAt: time.Unix(int64(i), 0)}
			if err := tx.PutAct(a); err != nil {
				return err
			}
		}
		return nil
	}))
	a, welcome := b.connect("ada")
	seenReports, seenActs := map[string]bool{}, map[string]bool{}
	for _, r := range welcome.Reports {
		seenReports[r.ID] = true
	}
	var todo []string
	act := func(id string) {
		if seenActs[id] {
			t.Fatalf("act %s came twice", id)
		}
		seenActs[id] = true
		todo = append(todo, id)
	}
	for _, w := range welcome.Acts {
		act(w.ID)
	}
	for len(seenReports) < reports || len(seenActs) < acts {
		if len(todo) > 0 {
			a.ok(protocol.ActResult{ID: todo[0], OK: true, Results: []string{}})
			todo = todo[1:]
		} else {
			a.inbox = append(a.inbox, a.read())
		}
		for _, f := range a.inbox {
			switch m := f.Message.(type) {
			case protocol.Reports:
				for _, r := range m.Reports {
					seenReports[r.ID] = true
				}
			case protocol.Act:
				act(m.ID)
			}
		}
		a.inbox = nil
	}
}
