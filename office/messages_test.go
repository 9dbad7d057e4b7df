package office_test

// This file holds the office to the whole contract: every message that an agent may send has a case with its proper answer, and every
// error code has one in which it comes.

import (
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// scene is a world in which every message makes sense: ada runs "fix", about ticket ACME-1 with a pull request, and chats with grace.
type scene struct {
	*bench
	ada *agent
	// session is the chat session that ada runs in its place, where a case asks for it; question is one that ada runs.
	session, question string
}

func newScene(t *testing.T) *scene {
	b := open(t, func(team *model.Team) {
		team.Usage.TrackCost = true
		team.Config.Humans = []protocol.TeamHuman{{Name: "grace", Identities: map[string]string{"chat": "U1"}}}
	})
	b.ticket(model.Ticket{Key: "ACME-1", Title: "Login fails", URL: "https://tickets.example/ACME-1", Status: protocol.TicketStatusActive, Assignee: "ada"})
	b.must(b.store.Update(t.Context(), func(tx storeTx) error {
		return tx.PutPull(model.Pull{
			Team: shop, Ref: "acme/shop#12", Repo: "acme/shop", Number: 12, Title: "Fix the login", URL: "https://code.example/12",
			State: protocol.PullOpen, Author: "ada", AuthorKind: protocol.AuthorAgent, Head: "acme-1-login", Base: "main",
			CI: protocol.ChecksSuccess, Mergeable: protocol.MergeableClean, Ticket: "ACME-1", OpenedAt: time.Now(), UpdatedAt: time.Now(),
		})
	}))
	s := &scene{bench: b}
	s.ada, _ = b.connect("ada")
	return s
}

// work has ada run "fix".
func (s *scene) work() *scene {
	s.t.Helper()
	s.apply("fix", aboutTicket("ACME-1"))
	s.ada.take("fix")
	return s
}

// chat has ada run a chat session.
func (s *scene) chat() *scene {
	s.t.Helper()
	_, offer := s.converseAs(s.ada)
	s.session = offer.WorkItem.ID
	return s
}

// asked has ada run a question of bob's.
func (s *scene) asked() *scene {
	s.t.Helper()
	bob, _ := s.connect("bob")
	answered[protocol.AskResult](bob, protocol.Ask{To: "ada", Question: "Which port?"})
	s.question = s.ada.takeNext().WorkItem.ID
	return s
}

// gives checks that a message gets an answer of type M that fits.
func gives[M protocol.Message](compose func(*scene) protocol.Message, fits func(M) bool) func(*scene) {
	return func(s *scene) {
		s.t.Helper()
		m := compose(s)
		if got := answered[M](s.ada, m); !fits(got) {
			s.t.Errorf("%s was answered with %+v", m.Type(), got)
		}
	}
}

func always[M protocol.Message](M) bool { return true }

func acked(compose func(*scene) protocol.Message) func(*scene) {
	return gives(compose, always[protocol.Ack])
}

// plain makes a message that needs nothing of the scene but its item.
func plain(m protocol.Message) func(*scene) protocol.Message {
	return func(s *scene) protocol.Message { s.work(); return m }
}

const fixID = "uid-fix"

// proper has a case for every message that an agent may send.
var proper = map[protocol.Type]func(*scene){
	protocol.TypeHello: func(s *scene) { s.connect("bob") },
	protocol.TypePing:  gives(plain(protocol.Ping{}), always[protocol.Pong]),
	protocol.TypePong: func(s *scene) {
		s.ada.send(protocol.Pong{})
		s.ada.quiet()
	},
	protocol.TypeError: func(s *scene) {
		s.ada.send(protocol.Error{Code: protocol.CodeFailed, Message: "no"})
		s.ada.quiet()
	},
	protocol.TypeAccept: acked(func(s *scene) protocol.Message {
		s.apply("fix")
		return protocol.Accept{WorkItemID: s.ada.offer().WorkItem.ID, Runtime: "command", Model: "m"}
	}),
	protocol.TypeDecline: acked(func(s *scene) protocol.Message {
		s.apply("fix")
		return protocol.Decline{WorkItemID: s.ada.offer().WorkItem.ID, Reason: "no disk"}
	}),
	protocol.TypeHeartbeat: acked(plain(protocol.Heartbeat{WorkItemID: fixID})),
	protocol.TypeProgress:  acked(plain(protocol.Progress{WorkItemID: fixID, Text: "reading"})),
	protocol.TypeSession:   acked(plain(protocol.Session{WorkItemID: fixID, SessionID: "s1", Model: "m"})),
	protocol.TypeJournal:   acked(plain(protocol.Journal{WorkItemID: fixID, Text: "the cause is a race"})),
	protocol.TypeHandback:  acked(plain(done("fix"))),
	protocol.TypeFail:      acked(plain(protocol.Fail{WorkItemID: fixID, Reason: "no disk"})),
	protocol.TypeUsage:     acked(plain(protocol.Usage{Windows: []protocol.UsageWindow{{Name: "five_hour", Utilization: 0.5}}})),
	protocol.TypeAsk: gives(plain(protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: fixID}), func(r protocol.AskResult) bool {
		return r.Status == protocol.AskPending && r.ID != ""
	}),
	protocol.TypeAnswer: acked(func(s *scene) protocol.Message {
		return protocol.Answer{QuestionID: s.asked().question, Answer: "8443"}
	}),
	protocol.TypeRoster: gives(plain(protocol.Roster{}), func(r protocol.RosterResult) bool {
		return len(r.Members) == 2 && r.Members[0].Status == "working" && r.Members[0].Current == "Title of fix" && r.Humans[0].Name == "grace"
	}),
	protocol.TypeWorkMade: acked(plain(protocol.WorkMade{WorkItemID: fixID, Ticket: "ACME-7"})),
	protocol.TypeWorkList: gives(plain(protocol.WorkList{WorkItemID: fixID}), func(r protocol.WorkListResult) bool {
		return len(r.Items) == 1 && *r.Items[0].Current && r.Items[0].TicketKey == "ACME-1" && r.Items[0].TicketTitle == "Login fails"
	}),
	protocol.TypeWorkStatus: gives(plain(protocol.WorkStatus{WorkItemIDs: []string{"x", fixID}}), func(r protocol.WorkStatusResult) bool {
		return len(r.Items) == 2 && r.Items[0].State == protocol.ItemUnknown && r.Items[1].State == "active"
	}),
	protocol.TypeWorkMove: gives(func(s *scene) protocol.Message {
		s.work().apply("later")
		return protocol.WorkMove{WorkItemID: "uid-later", Status: protocol.MoveBlocked}
	}, func(r protocol.WorkMoveResult) bool { return r.Item.Status == protocol.StateBlocked }),
	protocol.TypeWorkPlace: gives(func(s *scene) protocol.Message {
		s.work().apply("later")
		return protocol.WorkPlace{WorkItemID: "uid-later", Position: protocol.PositionNext}
	}, func(r protocol.WorkMoveResult) bool { return r.Item.Status == protocol.StateQueued }),
	protocol.TypeWorkLink: gives(func(s *scene) protocol.Message {
		return protocol.WorkLink{WorkItemID: s.chat().session, Ticket: "ACME-1", Request: "Fix it"}
	}, func(r protocol.WorkLinkResult) bool {
		return r.URL == "https://tickets.example/ACME-1" && r.Item.TicketKey == "ACME-1"
	}),
	protocol.TypeWorkFileFor: acked(func(s *scene) protocol.Message {
		return protocol.WorkFileFor{WorkItemID: s.chat().session, Ticket: "OPS-1", Request: "The disk", Assignee: "ops"}
	}),
	protocol.TypeWorkCheck: acked(func(s *scene) protocol.Message {
		return protocol.WorkCheck{WorkItemID: s.chat().session, Request: "Fix it"}
	}),
	protocol.TypeWorkQueue: gives(func(s *scene) protocol.Message {
		return protocol.WorkQueue{WorkItemID: s.chat().session, Title: "Fix it"}
	}, func(r protocol.WorkQueueResult) bool { return r.Item.Title == "Fix it" && !r.Waiting }),
	protocol.TypeWorkAttach: gives(func(s *scene) protocol.Message {
		return protocol.WorkAttach{WorkItemID: s.chat().session, Target: "#12"}
	}, func(r protocol.WorkAttachResult) bool {
		return r.Attached.PR != nil && r.Attached.PR.Ref == "acme/shop#12"
	}),
	protocol.TypeChatMessage: gives(plain(said("m1", "", "Hello")), func(r protocol.ChatMessageResult) bool { return !r.Repeated }),
	protocol.TypeChatReport: gives(func(s *scene) protocol.Message {
		return protocol.ChatReport{WorkItemID: s.chat().session, Kind: protocol.TellAck}
	}, func(r protocol.ChatReportResult) bool { return r.Post && r.Requester == "U1" }),
	protocol.TypeReportPosted: func(s *scene) {
		s.chat().ada.ok(handedBack(s.session, protocol.HandbackDone))
		_ = s.ada.ws.Close()
		a, welcome := s.connect("ada")
		a.ok(protocol.ReportPosted{WorkItemID: s.session, ID: welcome.Reports[0].ID})
	},
	protocol.TypeActResult: func(s *scene) {
		s.work().ada.ok(protocol.DocLink{WorkItemID: fixID, Doc: protocol.Doc{ID: "d1", Title: "Notes", URL: "https://docs.example/d1"}})
		act := s.ada.wait(func(f protocol.Frame) bool { return f.Message.Type() == protocol.TypeAct }).Message.(protocol.Act)
		s.ada.ok(protocol.ActResult{ID: act.ID, OK: true, Results: []string{"linked"}})
	},
	protocol.TypeDocLink:      acked(plain(protocol.DocLink{WorkItemID: fixID, Doc: protocol.Doc{ID: "d1", Title: "Notes", URL: "https://docs.example/d1"}})),
	protocol.TypeNotesChanged: acked(plain(protocol.NotesChanged{Change: protocol.NoteAdded, Note: "use tabs"})),
	protocol.TypeDoctorReport: acked(plain(protocol.DoctorReport{Checks: []protocol.DoctorCheck{{Name: "git", Status: protocol.CheckOK, Detail: "2.39"}}})),
	protocol.TypeCurrentWork:  gives(plain(protocol.CurrentWork{}), func(r protocol.CurrentWorkResult) bool { return r.Text != "" }),
	protocol.TypeTicketPrs: gives(plain(protocol.TicketPrs{HeadRef: "acme-1-again", Title: "x", Body: "y"}), func(r protocol.TicketPrsResult) bool {
		return r.Ticket == "ACME-1" && r.Status == protocol.TicketStatusActive && len(r.PRs) == 1
	}),
	protocol.TypePrList: gives(plain(protocol.PrList{State: protocol.ListOpen, Limit: 10}), func(r protocol.PrListResult) bool {
		return len(r.PRs) == 1 && r.PRs[0].Ref == "acme/shop#12" && r.More == 0
	}),
	protocol.TypeCiLog: func(s *scene) {
		s.ada.refused(protocol.CiLog{URL: "https://ci.example/1", Lines: 10}, protocol.CodeUnsupported)
	},
	protocol.TypeRecall: gives(plain(protocol.Recall{Query: "title", Limit: 5}), func(r protocol.RecallResult) bool {
		return len(r.Moments) == 1 && r.Moments[0].Kind == "item"
	}),
	protocol.TypeTicketUsage: gives(func(s *scene) protocol.Message {
		m := done("fix")
		m.Usage = []protocol.SessionUsage{{Session: "s1", Models: map[string]protocol.ModelUsage{"m": {InputTokens: 7}}}}
		s.work().ada.ok(m)
		return protocol.TicketUsage{Ticket: "ACME-1"}
	}, func(r protocol.TicketUsageResult) bool {
		return r.Own.Tokens == 7 && r.Total.Tokens == 7 && r.Own.Runs == 1
	}),
}

func TestEveryMessageHasItsProperAnswer(t *testing.T) {
	for _, spec := range protocol.Specs() {
		if spec.SentBy == protocol.Office {
			continue
		}
		t.Run(string(spec.Type), func(t *testing.T) {
			play, ok := proper[spec.Type]
			if !ok {
				t.Fatalf("no case for %s", spec.Type)
			}
			play(newScene(t))
		})
	}
}

// codes has a case for every error code.
var codes = map[protocol.Code]func(*scene){
	protocol.CodeMalformed: func(s *scene) {
		s.ada.raw(`{"id": `)
		s.ada.failedWith("", protocol.CodeMalformed)
	},
	protocol.CodeUnknownType: func(s *scene) {
		s.ada.raw(`{"id": "m1", "type": "dance", "payload": {}}`)
		s.ada.failedWith("m1", protocol.CodeUnknownType)
	},
	protocol.CodeInvalidMessage: func(s *scene) {
		s.ada.raw(`{"id": "m1", "type": "progress", "payload": {"workItemId": 7}}`)
		s.ada.failedWith("m1", protocol.CodeInvalidMessage)
	},
	protocol.CodeUnauthenticated: func(s *scene) { s.dial().refused(protocol.Ping{}, protocol.CodeUnauthenticated) },
	protocol.CodeAuthFailed: func(s *scene) {
		s.dial().refused(protocol.Hello{Person: "ada", Token: "x", ProtocolVersion: 3, AgentVersion: "x"}, protocol.CodeAuthFailed)
	},
	protocol.CodeVersionMismatch: func(s *scene) {
		s.dial().refused(protocol.Hello{Person: "ada", Token: "token-ada", ProtocolVersion: 2, AgentVersion: "x"}, protocol.CodeVersionMismatch)
	},
	protocol.CodeReplaced: func(s *scene) {
		s.connect("ada")
		s.ada.failedWith("", protocol.CodeReplaced)
	},
	protocol.CodeUnknownItem: func(s *scene) { s.ada.refused(protocol.Progress{WorkItemID: "x", Text: "y"}, protocol.CodeUnknownItem) },
	protocol.CodeNotFound:    func(s *scene) { s.ada.refused(protocol.Ask{To: "eve", Question: "x"}, protocol.CodeNotFound) },
	protocol.CodeInvalid: func(s *scene) {
		s.work().ada.ok(done("fix"))
		s.ada.refused(protocol.Heartbeat{WorkItemID: fixID}, protocol.CodeInvalid)
	},
	protocol.CodeUnsupported: func(s *scene) { s.ada.refused(protocol.CiLog{URL: "https://ci.example/1"}, protocol.CodeUnsupported) },
	protocol.CodeFailed: func(s *scene) {
		s.must(s.store.Close()) // as if the disk was gone
		s.ada.refused(protocol.Usage{Windows: []protocol.UsageWindow{}}, protocol.CodeFailed)
	},
}

func TestEveryErrorCodeComesWhereItShould(t *testing.T) {
	for _, code := range protocol.Codes() {
		t.Run(string(code), func(t *testing.T) {
			play, ok := codes[code]
			if !ok {
				t.Fatalf("no case for %s", code)
			}
			play(newScene(t))
		})
	}
}

// TestAMessageThatOnlyTheOfficeSendsIsRefused holds the office to each of them.
func TestAMessageThatOnlyTheOfficeSendsIsRefused(t *testing.T) {
	s := newScene(t)
	for _, m := range []protocol.Message{
		protocol.Welcome{HeartbeatMs: 1, Team: protocol.Raw(`{}`)}, protocol.Offer{WorkItem: protocol.WorkItem{Trigger: protocol.TriggerHuman}}, protocol.AskResult{Status: protocol.AskPending},
		protocol.RosterResult{}, protocol.WorkListResult{}, protocol.WorkStatusResult{}, protocol.Reports{}, protocol.Act{ID: "a"}, protocol.Ack{},
		protocol.ChatMessageResult{}, protocol.ChatReportResult{}, protocol.CurrentWorkResult{}, protocol.TicketPrsResult{}, protocol.PrListResult{},
		protocol.CiLogResult{}, protocol.RecallResult{},
	} {
		t.Run(string(m.Type()), func(t *testing.T) { s.ada.refused(m, protocol.CodeInvalidMessage) })
	}
}
