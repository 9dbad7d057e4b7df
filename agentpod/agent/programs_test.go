package agent

// These tests have programs speak to the office through a real agent, with ost itself: in this process, or run by the round.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/ost"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// socket is where the agent of a place listens.
func (p *place) socket() string { return socketPlaces(filepath.Join(p.home, ".bullpen"), p.tmp)[0] }

// ran is a run of ost.
type ran struct {
	exit        int
	out, errOut string
}

// ost runs ost as a program of the round of item "i".
func (p *place) ost(args ...string) ran { return p.ostWith("", args...) }

// ostWith gives it standard input.
func (p *place) ostWith(input string, args ...string) ran {
	env := map[string]string{contract.EnvSocket: p.socket(), contract.EnvItemID: "i"}
	var out, errOut bytes.Buffer
	exit := ost.Main(context.Background(), args, ost.Streams{In: strings.NewReader(input), Out: &out, Err: &errOut},
		func(name string) string { return env[name] }, "test")
	return ran{exit, strings.TrimSpace(out.String()), strings.TrimSpace(errOut.String())}
}

// behind runs ost beside the test, which plays the office meanwhile.
func (p *place) behind(args ...string) <-chan ran {
	done := make(chan ran, 1)
	go func() { done <- p.ost(args...) }()
	return done
}

// soon waits for a run of ost to end.
func soon(t *testing.T, done <-chan ran) ran {
	t.Helper()
	select {
	case r := <-done:
		return r
	case <-time.After(patience):
		t.Fatal("ost did not end")
		return ran{}
	}
}

// listening waits until the agent's socket is there.
func (p *place) listening() {
	p.t.Helper()
	eventually(p.t, "the socket is there", func() bool {
		conn, err := net.Dial("unix", p.socket())
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// atWork starts an agent whose round of item "i" runs until the file go is there.
func atWork(t *testing.T, change ...func(*Config)) (*place, *office, *peer) {
	t.Helper()
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	p.agent = p.start(change...)
	office, _ := o.arrive()
	office.welcome(o.team, time.Minute)
	office.accepted("i")
	eventually(t, "the program runs", func() bool { return content(p.file("i", "starts")) == "start" })
	return p, o, office
}

// next waits for the next message that is not of the agent's own.
func (p *peer) next() got[protocol.Message] {
	p.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case f := <-p.frames:
			p.seen = append(p.seen, f.Message)
			if _, ok := routes[f.Message.Type()]; ok {
				return got[protocol.Message]{f.ID, f.ReplyTo, f.Message}
			}
			p.answer(f)
		case <-p.ended:
			p.t.Fatalf("the connection ended: %v", p.err)
		case <-limit:
			p.t.Fatalf("nothing came; seen: %v", p.types())
		}
	}
}

// spoken is a command, what the office gets by it, what it answers, and what is printed.
type spoken struct {
	args   string // split at |
	want   protocol.Message
	answer protocol.Message
	prints string
}

func ref(id, title string) protocol.WorkRef {
	return protocol.WorkRef{ID: id, Title: title, Status: protocol.StateQueued, Kind: "ticket", TicketKey: "SHOP-1"}
}

var conversation = []spoken{
	{"ask|bob|Which port?", protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: "i"},
		protocol.AskResult{ID: "q1", To: "bob", Status: protocol.AskPending}, "pending: question q1 is with bob"},
	{"ask|bob|Which port?", protocol.Ask{To: "bob", Question: "Which port?", WorkItemID: "i"},
		protocol.AskResult{ID: "q1", To: "bob", Status: protocol.AskAnswered, Answer: "8443"}, "8443"},
	{"answer|It is 8443.", protocol.Answer{QuestionID: "i", Answer: "It is 8443."}, protocol.Ack{}, "answered i"},
	{"roster", protocol.Roster{}, protocol.RosterResult{
		Members: []protocol.Member{
			{Handle: "ada", Name: "Ada", Role: "dev", Status: protocol.MemberWorking, Current: "SHOP-1",
				Usage: &protocol.MemberUsage{Window: "five_hour", Utilization: 0.5}},
			{Handle: "bob", Name: "Bob", Role: "dev", Status: protocol.MemberIdle},
		}, Humans: []protocol.RosterHuman{{Name: "Grace"}},
	}, `
HANDLE  NAME  ROLE  STATUS   USAGE             WORKS ON
ada     Ada   dev   working  50% of five_hour  SHOP-1
bob     Bob   dev   idle                       
human: Grace`},
	{"work|list", protocol.WorkList{WorkItemID: "i"}, protocol.WorkListResult{Items: []protocol.WorkRef{
		{ID: "i", Title: "Do i", Status: protocol.StateActive, Kind: "task", Current: new(true)}, ref("j", "Do j"),
	}}, `
   ID  STATE   KIND    TICKET  TITLE
*  i   active  task            Do i
   j   queued  ticket  SHOP-1  Do j`},
	{"work|current", protocol.CurrentWork{}, protocol.CurrentWorkResult{Text: "SHOP-1 is in review."}, "SHOP-1 is in review."},
	{"work|status", protocol.WorkStatus{WorkItemIDs: []string{"i"}},
		protocol.WorkStatusResult{Items: []protocol.ItemStatus{{WorkItemID: "i", State: "active"}}}, "ID  STATE\ni   active"},
	{"work|status|a|b", protocol.WorkStatus{WorkItemIDs: []string{"a", "b"}}, protocol.WorkStatusResult{
		Items: []protocol.ItemStatus{{WorkItemID: "a", State: protocol.ItemNotYours}, {WorkItemID: "b", State: protocol.ItemUnknown}},
	}, "ID  STATE\na   not_yours\nb   unknown"},
	{"work|move|j|canceled", protocol.WorkMove{WorkItemID: "j", Status: protocol.MoveCanceled},
		protocol.WorkMoveResult{Item: ref("j", "Do j")}, "ID  STATE   KIND    TICKET  TITLE\nj   queued  ticket  SHOP-1  Do j"},
	{"work|place|j|after|k", protocol.WorkPlace{WorkItemID: "j", Position: protocol.PositionAfter, RelativeTo: "k"},
		protocol.WorkMoveResult{Item: ref("j", "Do j")}, "ID  STATE   KIND    TICKET  TITLE\nj   queued  ticket  SHOP-1  Do j"},
	{"work|check|Fix it", protocol.WorkCheck{WorkItemID: "i", Request: "Fix it"}, protocol.Ack{}, "this may be filed"},
	{"work|link|SHOP-1|Fix it", protocol.WorkLink{WorkItemID: "i", Ticket: "SHOP-1", Request: "Fix it"},
		protocol.WorkLinkResult{Item: ref("n", "Fix it"), URL: "https://t.example.com/SHOP-1", Work: []protocol.WorkRef{}}, `
ID  STATE   KIND    TICKET  TITLE
n   queued  ticket  SHOP-1  Fix it
https://t.example.com/SHOP-1`},
	{"work|queue|Fix it|Because it is broken.", protocol.WorkQueue{WorkItemID: "i", Title: "Fix it", Body: "Because it is broken."},
		protocol.WorkQueueResult{Item: ref("n", "Fix it"), Waiting: true, Work: []protocol.WorkRef{ref("j", "Do j")}}, `
ID  STATE   KIND    TICKET  TITLE
n   queued  ticket  SHOP-1  Fix it

It waits behind other work. Ask the requester where it belongs, then: ost work place n next|last|before|after [OTHER]

ID  STATE   KIND    TICKET  TITLE
j   queued  ticket  SHOP-1  Do j`},
	{"work|attach|#12|--confirmed|--request|Also this", protocol.WorkAttach{WorkItemID: "i", Target: "#12", Confirmed: new(true), Request: "Also this"},
		protocol.WorkAttachResult{Item: ref("j", "Do j"), Work: []protocol.WorkRef{},
			Attached: protocol.Attached{PR: &protocol.Subject{Type: "pull_request", Ref: "acme/shop#12"}}}, `
ID  STATE   KIND    TICKET  TITLE
j   queued  ticket  SHOP-1  Do j
attached to pull_request acme/shop#12`},
	{"work|file-for|bob|SHOP-2|Fix it", protocol.WorkFileFor{WorkItemID: "i", Assignee: "bob", Ticket: "SHOP-2", Request: "Fix it"},
		protocol.Ack{}, "recorded SHOP-2 for bob"},
	{"journal|Looked around.|--item|j", protocol.Journal{WorkItemID: "j", Text: "Looked around."}, protocol.Ack{}, "written"},
	{"progress|Half way", protocol.Progress{WorkItemID: "i", Text: "Half way"}, protocol.Ack{}, "shown"},
	{"ticket|made|SHOP-3", protocol.WorkMade{WorkItemID: "i", Ticket: "SHOP-3"}, protocol.Ack{}, "recorded SHOP-3"},
	{"pr|made|acme/shop|#12|--ticket|SHOP-1|--url|https://git.example.com/12|--host|git.example.com", protocol.WorkMade{
		WorkItemID: "i", Ticket: "SHOP-1", PR: &protocol.MadePull{
			Repo: protocol.Repo{Owner: "acme", Name: "shop", Host: "git.example.com"}, Number: 12, URL: "https://git.example.com/12",
		}}, protocol.Ack{}, "recorded acme/shop#12"},
	{"pr|check|--branch|SHOP-1-fix|--title|Fix it", protocol.TicketPrs{HeadRef: "SHOP-1-fix", Title: "Fix it"},
		protocol.TicketPrsResult{Ticket: "SHOP-1", Status: protocol.TicketStatusActive, PRs: []protocol.TicketPull{
			{Ref: "acme/shop#9", Number: 9, Title: "Try", State: protocol.PullClosed, AuthorKind: protocol.AuthorAgent},
		}}, "ticket SHOP-1, active\nPR           STATE   AUTHOR  TITLE\nacme/shop#9  closed  agent   Try"},
	{"pr|list|--state|all|--author|ada|--ticket|SHOP-1|--repo|acme/shop|--limit|1", protocol.PrList{
		State: protocol.ListAll, Author: "ada", Ticket: "SHOP-1", Repo: "acme/shop", Limit: 1,
	}, protocol.PrListResult{More: 2, PRs: []protocol.ListedPull{{
		Ref: "acme/shop#12", Number: 12, Title: "Fix it", State: protocol.PullOpen, Draft: true, Author: "ada",
		CI: protocol.ChecksSuccess, Mergeable: protocol.MergeableClean, UnresolvedThreads: 3, UpdatedAt: "2026-01-02T03:04:05Z",
	}}}, `
PR            STATE        AUTHOR  CI       MERGE  THREADS  TITLE
acme/shop#12  open, draft  ada     success  clean  3        Fix it
and 2 more: raise --limit`},
	{"ci|log|https://ci.example.com/1|--lines|2", protocol.CiLog{URL: "https://ci.example.com/1", Lines: 2},
		protocol.CiLogResult{Repo: "acme/shop", Steps: []protocol.LogStep{{Name: "test", Lines: []string{"FAIL", "exit 1"}, Omitted: 7}}},
		"== test (7 lines before)\nFAIL\nexit 1"},
	{"doc|link|d1|The plan|https://docs.example.com/d1|--ticket|SHOP-1", protocol.DocLink{
		WorkItemID: "i", Ticket: "SHOP-1", Doc: protocol.Doc{ID: "d1", Title: "The plan", URL: "https://docs.example.com/d1"},
	}, protocol.Ack{}, "linked"},
	{"usage|SHOP-1", protocol.TicketUsage{Ticket: "SHOP-1"}, protocol.TicketUsageResult{
		Ticket: "SHOP-1", Own: protocol.UsageTotals{InputTokens: 5, OutputTokens: 2, Tokens: 7, CostUSD: 0.125, Runs: 1},
		SubTickets: []protocol.SubTicketUsage{},
		ByPerson:   []protocol.UsageShare{{Key: "ada", Totals: protocol.UsageTotals{Tokens: 7, Runs: 1}}},
		ByModel:    []protocol.UsageShare{}, ByKind: []protocol.UsageShare{},
	}, `
        TOKENS  INPUT  OUTPUT  CACHE READ  CACHE MADE  COST   ROUNDS
SHOP-1  7       5      2       0           0           $0.12  1
by ada  7       0      0       0           0           $0.00  1`},
	{"note|add|Mondays are bad.", protocol.NotesChanged{Change: protocol.NoteAdded, Note: "Mondays are bad.", WorkItemID: "i"}, protocol.Ack{}, "added note 1"},
	{"note|update|1|Mondays are good.", protocol.NotesChanged{Change: protocol.NoteUpdated, Note: "Mondays are good.", WorkItemID: "i"}, protocol.Ack{}, "updated note 1"},
	{"note|remove|1", protocol.NotesChanged{Change: protocol.NoteRemoved, Note: "Mondays are good.", WorkItemID: "i"}, protocol.Ack{}, "removed note 1"},
	{"note|migrated|--count|3|--doc-id|d|--doc-title|Notes|--doc-url|https://docs.example.com/d", protocol.NotesChanged{
		Change: protocol.NoteMigrated, Count: new(3), WorkItemID: "i", Doc: &protocol.Doc{ID: "d", Title: "Notes", URL: "https://docs.example.com/d"},
	}, protocol.Ack{}, "told"},
	{"note|edit-ignored|mallory|yesterday|v7", protocol.NotesChanged{
		Change: protocol.NoteEditIgnored, WorkItemID: "i", Edit: &protocol.NoteEdit{Author: "mallory", At: "yesterday", Version: "v7"},
	}, protocol.Ack{}, "told"},
	{"recall|invoice -test|--with|grace|--about|SHOP-1|--since|2026-01-01|--limit|5", protocol.Recall{
		Query: "invoice -test", With: "grace", About: "SHOP-1", Since: "2026-01-01", Limit: 5,
	}, protocol.RecallResult{More: true, Moments: []protocol.Moment{{
		At: "2026-01-02T03:04:05Z", Kind: "journal", Where: &protocol.Place{Type: "ticket", Ref: "SHOP-1"}, Who: "ada", Excerpt: "the invoice\nis rounded",
	}}}, `
2026-01-02T03:04:05Z  journal  ticket SHOP-1  ada
  the invoice
  is rounded
there is more: raise --limit, or narrow the query`},
	{`chat|receive|m1|C1|U1|Hello|--thread|m0|--name|Grace|--direct|--participant|--file|{"id":"F","name":"a","mimetype":"t","size":1,"url":"u"}`,
		protocol.ChatMessage{
			MessageID: "m1", Channel: "C1", Thread: "m0", Text: "Hello", Author: protocol.Requester{ID: "U1", Name: "Grace"},
			Direct: true, Participant: true, Files: []protocol.File{{ID: "F", Name: "a", MIMEType: "t", Size: 1, URL: "u"}},
		}, protocol.ChatMessageResult{Repeated: true}, "taken before"},
	{"chat|report|blocked", protocol.ChatReport{WorkItemID: "i", Kind: protocol.TellBlocked}, protocol.ChatReportResult{
		Post: true, Requester: "U1", Links: []protocol.Link{{URL: "https://t.example.com/SHOP-1", Title: "SHOP-1"}},
		Threads: []protocol.Thread{{Channel: "C1", Thread: "m0", Requester: protocol.Requester{ID: "U1"}}},
	}, `
for U1
post in C1, thread m0
  https://t.example.com/SHOP-1  SHOP-1`},
	{"report|posted|r1|--item|j", protocol.ReportPosted{WorkItemID: "j", ID: "r1"}, protocol.Ack{}, "confirmed"},
	{`send|roster|{}`, protocol.Roster{}, protocol.RosterResult{Members: []protocol.Member{}}, `{"members":[]}`},
}

func TestEveryMessageOfAProgramReachesTheOfficeAndItsAnswerComesBack(t *testing.T) {
	p, _, office := atWork(t)
	spoken := map[protocol.Type]bool{}
	for _, test := range conversation {
		spoken[test.want.Type()] = true
		for _, asJSON := range []bool{false, true} {
			if asJSON && test.want.Type() == protocol.TypeNotesChanged {
				continue // its own form; see below
			}
			args := strings.Split(test.args, "|")
			if asJSON {
				args = append(args, "--json")
			}
			done := p.behind(args...)
			asked := office.next()
			if diff := cmp.Diff(test.want, asked.message); diff != "" {
				t.Errorf("%s: the office was sent something else:\n%s", test.args, diff)
			}
			office.send(asked.id, test.answer)
			r := soon(t, done)
			if r.exit != ost.ExitOK || r.errOut != "" {
				t.Errorf("%s: exit code %d: %s", test.args, r.exit, r.errOut)
			}
			want := strings.TrimSpace(test.prints)
			if asJSON {
				want = payloadText(t, test.answer)
			}
			if diff := cmp.Diff(want, r.out); diff != "" {
				t.Errorf("%s prints something else:\n%s", strings.Join(args, " "), diff)
			}
		}
	}
	for typ := range routes {
		if !spoken[typ] {
			t.Errorf("no command sends %s", typ)
		}
	}
}

// payloadText is the JSON of a message's payload.
func payloadText(t *testing.T, m protocol.Message) string {
	t.Helper()
	frame, err := protocol.Encode(protocol.Frame{ID: "x", Message: m})
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct {
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(frame, &envelope); err != nil {
		t.Fatal(err)
	}
	return string(envelope.Payload)
}

func TestWhatANewerOfficeAddsToAnAnswerIsPassedOn(t *testing.T) {
	p, _, office := atWork(t)
	done := p.behind("work", "current", "--json")
	asked := office.next()
	office.write(fmt.Appendf(nil, `{"id":"x","replyTo":%q,"type":"current_work_result","payload":{"text":"<&>","mood":1.50}}`, asked.id))
	if r := soon(t, done); r.out != `{"text":"<&>","mood":1.50}` {
		t.Errorf("got %s (%s)", r.out, r.errOut)
	}
}

func TestARefusalOfTheOfficeEndsTheCommandWith1AndNotTheRound(t *testing.T) {
	p, _, office := atWork(t)
	for _, test := range conversation {
		for _, code := range []protocol.Code{protocol.CodeInvalid, protocol.CodeUnknownItem, protocol.CodeNotFound, protocol.CodeUnsupported} {
			done := p.behind(append(strings.Split(test.args, "|"), "--json")...)
			asked := office.next()
			office.refuse(asked.id, code)
			r := soon(t, done)
			if test.want.Type() == protocol.TypeNotesChanged && !strings.Contains(test.args, "migrated") && !strings.Contains(test.args, "ignored") {
				break // notes are the person's own: see TestNotesStandWhateverTheOfficeSays
			}
			want := fmt.Sprintf(`{"error":{"exit":1,"code":%q,"message":"because the test says so"}}`, code)
			if r.exit != ost.ExitRefused || r.out != want || !strings.Contains(r.errOut, "because the test says so") {
				t.Errorf("%s refused as %s: exit code %d, %s, %s", test.args, code, r.exit, r.out, r.errOut)
			}
		}
	}
	p.write(p.file("i", "go"), "")
	if h := expect[protocol.Handback](office).message; h.Status != protocol.HandbackDone || len(h.ToReview) > 0 {
		t.Errorf("handed back %+v; what was refused is nothing to review", h)
	}
}

func TestWhatMayNotBeSentIsNotSent(t *testing.T) {
	p, _, office := atWork(t)
	for _, spec := range protocol.Specs() {
		if _, ok := routes[spec.Type]; ok {
			if spec.SentBy != protocol.Agent {
				t.Errorf("programs may send %s, which is not an agent's", spec.Type)
			}
			continue
		}
		if r := p.ost("send", string(spec.Type), "{}"); r.exit != ost.ExitUsage || !strings.Contains(r.errOut, "not for programs to send") {
			t.Errorf("%s: exit code %d, %s", spec.Type, r.exit, r.errOut)
		}
	}
	for name, test := range map[string]struct {
		path, body string
		status     int
		code       protocol.Code
	}{
		"an unknown message":           {"/v1/messages/dance", "{}", 404, protocol.CodeUnknownType},
		"a payload that is no JSON":    {"/v1/messages/roster", "{", 400, protocol.CodeMalformed},
		"a payload that is a list":     {"/v1/messages/roster", "[]", 400, protocol.CodeInvalidMessage},
		"a payload without its fields": {"/v1/messages/ask", `{"to":"bob"}`, 400, protocol.CodeInvalidMessage},
		"a payload that leaves its envelope": {"/v1/messages/journal",
			`{"workItemId":"i","text":"x"},"type":"fail","payload":{"workItemId":"i","reason":"x"}`, 400, protocol.CodeMalformed},
		"a payload with more of the envelope": {"/v1/messages/roster", `{},"replyTo":"x"`, 400, protocol.CodeMalformed},
		"a payload that ends the envelope": {"/v1/messages/journal",
			`{"workItemId":"i","text":"x"}} {"id":"y","type":"fail","payload":{}`, 400, protocol.CodeMalformed},
		"a name twice": {"/v1/messages/journal", `{"workItemId":"i","text":"x","text":"y"}`, 400, protocol.CodeMalformed},
		"too large a payload": {"/v1/messages/journal", `{"workItemId":"i","text":"` + strings.Repeat("x", maxBody) + `"}`, 413,
			protocol.CodeMalformed},
	} {
		status, body := p.post(t, test.path, test.body)
		if status != test.status || !strings.Contains(body, `"code":"`+string(test.code)+`"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	p.write(p.file("i", "go"), "")
	expect[protocol.Handback](office)
	for _, m := range office.seen {
		if _, ok := routes[m.Type()]; ok && m.Type() != protocol.TypeProgress { // the round's own last line
			t.Errorf("the office was sent %s", m.Type())
		}
		if _, ok := m.(protocol.Fail); ok {
			t.Error("a program failed the round through the socket")
		}
	}
}

// post makes a request of the socket by hand.
func (p *place) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket())
	}}}
	resp, err := c.Post("http://agent"+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	var text bytes.Buffer
	_, _ = text.ReadFrom(resp.Body)
	return resp.StatusCode, text.String()
}

// commands of every route, for the tests of an office that is away.
var (
	mailed = []string{
		"journal|one", "answer|yes", "pr|made|acme/shop|1", "ticket|made|SHOP-1", "doc|link|d|T|https://docs.example.com/d",
		"work|file-for|bob|SHOP-2|Fix", "note|add|N", "report|posted|r|--item|j", "chat|receive|m|C|U|Hi",
	}
	asking = []string{
		"ask|bob|Why?", "roster", "work|list", "work|current", "work|status", "work|move|j|queued", "work|place|j|next", "work|check|R",
		"work|link|T|R", "work|queue|T", "work|attach|12", "pr|check|--branch|b|--title|t", "pr|list", "ci|log|https://ci.example.com",
		"usage|T", "recall|x", "chat|report|ack",
	}
)

func TestWhileTheOfficeIsAwayWhatMustNotBeLostIsQueuedAndTheRestEndsWith75(t *testing.T) {
	p, o, office := atWork(t, func(c *Config) { c.timing.away = 10 * time.Millisecond })
	routed := map[route]int{}
	for _, way := range routes {
		routed[way]++
	}
	if len(asking) != routed[routeAsk] || len(mailed) != routed[routeMail]+routed[routeMailInRound]+1 {
		t.Error("the lists of commands do not have each message; work_made has two commands")
	}
	o.setDown(true)
	_ = office.ws.Close()
	eventually(t, "the agent noticed", func() bool { return p.ost("roster").exit == ost.ExitAway })
	for _, args := range asking {
		r := p.ost(strings.Split(args, "|")...)
		if r.exit != ost.ExitAway || !strings.Contains(r.errOut, "cannot be reached") {
			t.Errorf("%s: exit code %d, %s%s", args, r.exit, r.out, r.errOut)
		}
	}
	for i, args := range mailed {
		r := p.ost(append(strings.Split(args, "|"), "--json")...)
		if r.exit != ost.ExitOK || !strings.Contains(r.out, `"queued":true`) {
			t.Errorf("%s: exit code %d, %s%s", args, r.exit, r.out, r.errOut)
		}
		files, _ := filepath.Glob(filepath.Join(p.home, ".bullpen/state/outbox/*.json"))
		if len(files) != i+1 {
			t.Errorf("%s: %d messages are on disk, not %d", args, len(files), i+1)
		}
	}
	if r := p.ost("progress", "the last line"); r.exit != ost.ExitOK || !strings.Contains(r.out, "queued") {
		t.Errorf("progress: exit code %d, %s%s", r.exit, r.out, r.errOut)
	}
	// The hand-back comes after all of it, whatever became of the connection meanwhile.
	p.write(p.file("i", "go"), "")
	eventually(t, "the hand-back waits too", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.home, ".bullpen/state/outbox/*.json"))
		return len(files) == len(mailed)+1
	})
	o.setDown(false)
	office = o.welcome("i")
	var first []string
	for range 3 {
		first = append(first, office.next().id) // and no answer to the last
		if len(first) < 3 {
			office.ack(first[len(first)-1])
		}
	}
	_ = office.ws.Close()
	office = o.welcome("i")
	again := office.next()
	if again.id != first[2] {
		t.Errorf("the repeat has the id %s, not %s: the office could not know it", again.id, first[2])
	}
	office.ack(again.id)
	office.ack(expect[protocol.Handback](office).id)
	var types []protocol.Type
	for _, m := range office.seen {
		if _, ok := routes[m.Type()]; ok || m.Type() == protocol.TypeHandback {
			types = append(types, m.Type())
		}
	}
	want := []protocol.Type{"work_made", "work_made", "doc_link", "work_file_for", "notes_changed", "report_posted", "chat_message", "handback"}
	if diff := cmp.Diff(want, slices.DeleteFunc(types, func(t protocol.Type) bool { return t == protocol.TypeProgress })); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsQueuedOutlivesTheAgent(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, untilGo)
	o.setDown(true)
	agent := p.spawn()
	p.listening()
	for _, text := range []string{"one", "two"} {
		if r := p.ost("chat", "receive", text, "C1", "U1", "Hi"); r.exit != ost.ExitOK || !strings.Contains(r.out, "queued") {
			t.Fatalf("exit code %d, %s%s", r.exit, r.out, r.errOut)
		}
	}
	kill9(t, agent)
	if r := p.ost("roster"); r.exit != ost.ExitNoAgent {
		t.Errorf("without an agent: exit code %d, %s", r.exit, r.errOut)
	}
	o.setDown(false)
	p.spawn() // in place of the socket that the killed one left
	office := o.welcome()
	for _, want := range []string{"one", "two"} {
		m := expect[protocol.ChatMessage](office)
		if m.message.MessageID != want {
			t.Errorf("got %q, want %q", m.message.MessageID, want)
		}
		office.send(m.id, protocol.ChatMessageResult{})
	}
	done := p.behind("work", "current")
	office.send(expect[protocol.CurrentWork](office).id, protocol.CurrentWorkResult{Text: "nothing"})
	if r := soon(t, done); r.out != "nothing" {
		t.Errorf("the new agent's socket: %+v", r)
	}
}

func TestWhatTheOfficeTakesOnlyInItsRoundIsNotQueuedOutsideOfIt(t *testing.T) {
	p, o, office := atWork(t, func(c *Config) { c.timing.away = 10 * time.Millisecond })
	o.setDown(true)
	_ = office.ws.Close()
	eventually(t, "the agent noticed", func() bool { return p.ost("roster").exit == ost.ExitAway })
	for args, want := range map[string]string{"journal|x|--item|other": "journal", "pr|made|acme/shop|1|--item|other": "work_made", "answer|x|--item|other": "answer"} {
		r := p.ost(strings.Split(args, "|")...)
		if r.exit != ost.ExitAway || !strings.Contains(r.errOut, want+" is kept for it only while the agent works on the item") {
			t.Errorf("%s: exit code %d, %s%s", args, r.exit, r.out, r.errOut)
		}
	}
}

func TestAProgramOfTheRoundFindsOstAndWhatItMadeIsHandedBackForReview(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `
		if [ "$BULLPEN_ROUND" = 2 ]; then echo "nothing new"; exit; fi
		ost journal "looked around" > log 2>&1 &&
		ost pr made acme/shop 12 --url https://git.example.com/12 >> log 2>&1 &&
		ost doc link d1 "The  plan" https://docs.example.com/d1 >> log 2>&1 &&
		ost doc link d1 "The  plan" https://docs.example.com/d1 >> log 2>&1
		echo "exit $?" >> log
		echo "Mondays are bad." | ost note add - >> log 2>&1
		cat "$BULLPEN_NOTES_FILE" > notes; cp "$BULLPEN_TEAM_PAGE" page
		echo finished`)
	p.withOst()
	p.start(func(c *Config) { c.CLIDir = p.cli })
	office := o.welcome()
	office.accepted("i")
	handback := expect[protocol.Handback](office)
	want := []string{"pull request acme/shop#12, https://git.example.com/12", "document The plan, https://docs.example.com/d1"}
	if diff := cmp.Diff(want, handback.message.ToReview); diff != "" {
		t.Errorf("%s\nlog: %s", diff, content(p.file("i", "log")))
	}
	if got, want := content(p.file("i", "log")), "written\nrecorded acme/shop#12\nlinked\nlinked\nexit 0\nadded note 1"; got != want {
		t.Errorf("the program's log: %s", got)
	}
	if got := content(p.file("i", "notes")); !strings.Contains(got, "1. Mondays are bad.") {
		t.Errorf("the page of notes: %s", got)
	}
	if got := content(p.file("i", "page")); !strings.Contains(got, "see ost help") {
		t.Errorf("TEAM.md does not name ost: %s", got)
	}
	if got := all[protocol.Journal](office); len(got) != 1 || got[0].Text != "looked around" {
		t.Errorf("journal: %v", got)
	}
	office.ack(handback.id)

	// The next round made nothing, and what the last one made does not count again.
	office.accepted("i")
	if again := expect[protocol.Handback](office).message; again.Summary != "nothing new" || len(again.ToReview) > 0 {
		t.Errorf("the second round handed back %+v", again)
	}
}

func TestWhatAProgramNamesForReviewItselfIsLeftAlone(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `ost ticket made SHOP-1 && echo '{"toReview":["my own"]}' > "$BULLPEN_RESULT_FILE"`)
	p.withOst()
	p.start(func(c *Config) { c.CLIDir = p.cli })
	office := o.welcome()
	office.accepted("i")
	if diff := cmp.Diff([]string{"my own"}, expect[protocol.Handback](office).message.ToReview); diff != "" {
		t.Error(diff)
	}
}

func TestWhatARoundMadeBeforeItsAgentWasKilledIsHandedBackToo(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, `[ -n "$BULLPEN_RESUMED" ] || ost ticket made SHOP-1 > log 2>&1`+untilGo)
	p.withOst()
	p.env["PATH"] = p.cli + ":" + p.env["PATH"]
	agent := p.spawn()
	office := o.welcome()
	office.accepted("i")
	office.ack(expect[protocol.WorkMade](office).id)
	eventually(t, "the program goes on", func() bool { return content(p.file("i", "starts")) == "start" })
	kill9(t, agent)
	p.spawn()
	office = o.welcome("i")
	p.write(p.file("i", "go"), "")
	if diff := cmp.Diff([]string{"ticket SHOP-1"}, expect[protocol.Handback](office).message.ToReview); diff != "" {
		t.Errorf("%s\nlog: %s", diff, content(p.file("i", "log")))
	}
}

// withOst gives the place a folder with ost, which is this test's program under that name.
func (p *place) withOst() {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cli = p.t.TempDir()
	if err := os.Symlink(self, filepath.Join(p.cli, contract.CLIName)); err != nil {
		p.t.Fatal(err)
	}
}

func TestNotesStandWhateverTheOfficeSays(t *testing.T) {
	p, _, office := atWork(t)
	done := p.behind("note", "add", "Mondays are bad.", "--json")
	office.refuse(office.next().id, protocol.CodeUnsupported)
	r := soon(t, done)
	var got struct {
		Note   note
		Office struct {
			Type    string
			Payload protocol.Error
		}
	}
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.exit != ost.ExitOK || got.Note.ID != 1 ||
		got.Note.Text != "Mondays are bad." || got.Office.Type != "error" || got.Office.Payload.Code != protocol.CodeUnsupported {
		t.Fatalf("exit code %d, %s (%v)", r.exit, r.out, err)
	}
	for args, want := range map[string]ran{
		"note|add|Mondays are bad.":  {ost.ExitRefused, "", "ost: note 1 says just that already (invalid)"},
		"note|remove|7":              {ost.ExitRefused, "", "ost: there is no note 7 (not_found)"},
		"note|update|7|x":            {ost.ExitRefused, "", "ost: there is no note 7 (not_found)"},
		"note|add| ":                 {ost.ExitRefused, "", "ost: a note needs a text (invalid_message)"},
		"note|remove|the first":      {ost.ExitUsage, "", "ost: notes are named by their number\nSee \"ost note remove --help\"."},
		"note|list":                  {ost.ExitOK, "1. Mondays are bad.", ""},
		"note|list|--json|--item|no": {ost.ExitUsage, `{"error":{"exit":2,"code":"invalid_message","message":"unknown flag: --item"}}`, "ost: unknown flag: --item\nSee \"ost note list --help\"."},
	} {
		if diff := cmp.Diff(want, p.ost(strings.Split(args, "|")...), cmp.AllowUnexported(ran{})); diff != "" {
			t.Errorf("%s: %s", args, diff)
		}
	}
	page := filepath.Join(p.home, ".bullpen/NOTES.md")
	if got := content(page); !strings.HasSuffix(got, "1. Mondays are bad.") {
		t.Errorf("the page: %s", got)
	}
}

// bench is an agent's loop without its goroutines: the test is the connection.
type bench struct {
	t     *testing.T
	agent *Agent
}

func newBench(t *testing.T) *bench {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	h, err := openHome(t.Context(), t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.close() })
	return &bench{t, &Agent{
		cfg: Config{Log: log, timing: testTiming}.fill(), log: log, home: h, ids: newIDs(), machine: newMachine(map[string]*item{}),
		outbox: outbox{home: h, log: log}, asked: map[string]request{}, latest: map[protocol.Type]request{},
		waiting: map[*waiter]struct{}{}, acts: newErrands(kindAct), reports: newErrands(kindReport),
		errandCancel: map[errandKind]context.CancelFunc{}, heartbeat: time.Minute,
		link: &link{out: make(chan []byte, queueSize), stopped: make(chan struct{})}, lost: make(chan struct{}),
	}}
}

// program has a program send a message, and returns where its outcome will be.
func (b *bench) program(m protocol.Message) <-chan outcome {
	reply := make(chan outcome, 1)
	b.agent.onProgram(m, &waiter{reply: reply})
	return reply
}

// sent lists what the office would have got since the last call.
func (b *bench) sent(now time.Time) []protocol.Frame {
	b.t.Helper()
	b.agent.flush(now)
	var frames []protocol.Frame
	for {
		select {
		case data := <-b.agent.link.out:
			f, werr := protocol.Decode(data)
			if werr != nil {
				b.t.Fatal(werr)
			}
			frames = append(frames, f)
		default:
			return frames
		}
	}
}

// answer is the office's answer to a frame.
func (b *bench) answer(f protocol.Frame, m protocol.Message) {
	b.agent.onFrame(b.agent.link, protocol.Frame{ID: "o", ReplyTo: f.ID, Message: m}, nil)
}

func types(frames []protocol.Frame) []protocol.Type {
	var list []protocol.Type
	for _, f := range frames {
		list = append(list, f.Message.Type())
	}
	return list
}

func TestAQuestionComesAfterWhatTheProgramSaidBefore(t *testing.T) {
	for name, test := range map[string]struct {
		answer protocol.Message
		after  []protocol.Type
	}{
		"it comes once that is delivered": {protocol.Ack{}, []protocol.Type{protocol.TypeWorkList}},
		"it comes once that is refused": {protocol.Error{Code: protocol.CodeInvalid, Message: "x"},
			[]protocol.Type{protocol.TypeWorkList}},
		"it does not wait for what the office cannot take now": {protocol.Error{Code: protocol.CodeFailed, Message: "x"},
			[]protocol.Type{protocol.TypeWorkList}},
		"what was said later holds nothing up": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b, now := newBench(t), time.Now()
			b.program(protocol.WorkMade{WorkItemID: "i", Ticket: "SHOP-1"})
			b.program(protocol.WorkList{})
			first := b.sent(now)
			if diff := cmp.Diff([]protocol.Type{protocol.TypeWorkMade}, types(first)); diff != "" {
				t.Fatal(diff)
			}
			if test.answer != nil {
				b.answer(first[0], test.answer)
			} else {
				b.answer(first[0], protocol.Ack{})
				first = b.sent(now)
				b.program(protocol.WorkMade{WorkItemID: "i", Ticket: "SHOP-2"})
				b.answer(first[0], protocol.WorkListResult{Items: []protocol.WorkRef{}})
				if diff := cmp.Diff([]protocol.Type{protocol.TypeWorkMade}, types(b.sent(now))); diff != "" {
					t.Error(diff)
				}
			}
			if diff := cmp.Diff(test.after, types(b.sent(now))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatAProgramIsToldWhenTheOfficeSaysNothing(t *testing.T) {
	for name, test := range map[string]struct {
		message protocol.Message
		lose    bool
		later   time.Duration
		status  int
		queued  bool
	}{
		"a question without an answer":         {protocol.Roster{}, false, testTiming.answer, 503, false},
		"a question whose connection was lost": {protocol.Roster{}, true, 0, 503, false},
		"mail without an answer":               {protocol.Answer{QuestionID: "q", Answer: "a"}, false, testTiming.deliver, 202, true},
		"mail whose connection was lost":       {protocol.Answer{QuestionID: "q", Answer: "a"}, true, time.Second, 202, true},
	} {
		t.Run(name, func(t *testing.T) {
			b, now := newBench(t), time.Now()
			b.agent.cfg.timing.away = time.Second // less than the others
			reply := b.program(test.message)
			frames := b.sent(now)
			if len(frames) != 1 {
				t.Fatalf("%d frames were sent", len(frames))
			}
			if test.lose {
				b.agent.onLost(b.agent.link)
			}
			b.agent.flush(now.Add(test.later + time.Second))
			select {
			case out := <-reply:
				if out.status != test.status || out.Queued != test.queued {
					t.Errorf("told %+v", out)
				}
			default:
				t.Fatal("it waits for ever")
			}
			if !test.lose {
				if test.status == 503 && len(b.agent.asked) > 0 {
					t.Error("the question is remembered for ever")
				}
				b.answer(frames[0], protocol.Ack{}) // late, and harmless
			}
			if left := len(b.agent.waiting); left != 0 {
				t.Errorf("%d programs wait still", left)
			}
		})
	}
}

func TestAnOfficeThatDoesNotAnswerAProgramKeepsItsConnection(t *testing.T) {
	b := newBench(t)
	b.program(protocol.CiLog{URL: "https://ci.example.com", Lines: 1})
	b.sent(time.Now())
	for id, r := range b.agent.asked {
		r.at = time.Now().Add(-24 * time.Hour)
		b.agent.asked[id] = r
	}
	b.agent.onBeat()
	select {
	case <-b.agent.link.stopped:
		t.Error("the agent connects anew")
	default:
	}
}

func TestAnAnswerOfAnotherKindIsNoAnswer(t *testing.T) {
	b := newBench(t)
	reply := b.program(protocol.Roster{})
	b.answer(b.sent(time.Now())[0], protocol.Ack{})
	if out := <-reply; out.status != http.StatusBadGateway || !strings.Contains(string(out.Payload), "answered roster with ack") {
		t.Errorf("told %d %s", out.status, out.Payload)
	}
}

func TestAnAgentThatWasReplacedSendsNothingForPrograms(t *testing.T) {
	b := newBench(t)
	b.agent.onReplaced()
	for _, m := range []protocol.Message{protocol.Roster{}, protocol.Answer{QuestionID: "q", Answer: "a"}} {
		if out := <-b.program(m); out.status != 503 || !strings.Contains(string(out.Payload), "another agent of this person") {
			t.Errorf("%s: told %d %s", m.Type(), out.status, out.Payload)
		}
	}
	if sent := b.sent(time.Now()); len(sent) > 0 || !b.agent.outbox.empty() {
		t.Errorf("%v", types(sent))
	}
}

func TestMailThatTheDiskDoesNotTakeIsRefused(t *testing.T) {
	b := newBench(t)
	outbox := filepath.Join(b.agent.home.root, "state/outbox")
	if err := os.Remove(outbox); err != nil {
		t.Fatal(err)
	}
	if out := <-b.program(protocol.Answer{QuestionID: "q", Answer: "a"}); out.status != 503 || !strings.Contains(string(out.Payload), "cannot be kept on disk") {
		t.Errorf("told %d %s", out.status, out.Payload)
	}
	if sent := b.sent(time.Now()); len(sent) > 0 {
		t.Errorf("it was sent all the same: %v", types(sent))
	}
}

func TestTheEndOfTheAgentEndsEveryWait(t *testing.T) {
	p, _, office := atWork(t)
	done := p.behind("roster")
	office.next()
	mail := p.behind("answer", "yes", "--item", "q")
	office.next()
	p.agent.now()
	if r := soon(t, done); r.exit != ost.ExitAway {
		t.Errorf("the question: %+v", r)
	}
	if r := soon(t, mail); r.exit != ost.ExitOK || !strings.Contains(r.out, "queued") {
		t.Errorf("the mail: %+v", r)
	}
	p.agent.wait()
	if _, err := os.Lstat(p.socket()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if r := p.ost("roster"); r.exit != ost.ExitNoAgent {
		t.Errorf("after the end: %+v", r)
	}
}
