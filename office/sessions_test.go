package office_test

// These tests use the session endpoints over HTTP, as clients do.

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// sessionsPage is an answer of the list.
type sessionsPage struct {
	Sessions   []feed.Session `json:"sessions"`
	NextCursor *string        `json:"next_cursor"`
}

func (b *bench) list(token, query string) sessionsPage {
	b.t.Helper()
	a := b.ask(token, http.MethodGet, "/v1/sessions?"+query, "")
	if a.StatusCode != http.StatusOK {
		b.t.Fatalf("the list was answered with %d %s", a.StatusCode, a.body)
	}
	var page sessionsPage
	a.into(b.t, &page)
	return page
}

// items are the names of the items of sessions.
func (p sessionsPage) items() string {
	names := make([]string, 0, len(p.Sessions))
	for _, s := range p.Sessions {
		names = append(names, s.Metadata["work_item"])
	}
	return strings.Join(names, " ")
}

func TestSessionsAreListedByWhatTheyAreAbout(t *testing.T) {
	b, g := openSessions(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made := func(day int) func(*model.ItemFacts) {
		return func(f *model.ItemFacts) { f.CreatedAt = at.AddDate(0, 0, day) }
	}
	b.apply("one", made(0))
	b.apply("two", made(1), func(f *model.ItemFacts) { f.Spec.Person = "bob" })
	b.apply("three", made(2), func(f *model.ItemFacts) { f.Namespace = "other"; f.Spec.Team = "elsewhere" })
	b.apply("four", made(3), func(f *model.ItemFacts) { f.Spec.Cancel = true })
	b.apply("five", made(4))
	b.apply("five", made(4), func(f *model.ItemFacts) { f.Spec.Cancel = true; f.Spec.Generation = 2 })
	for query, want := range map[string]string{
		"":                                   "five three two one",
		"namespace=ns":                       "five two one",
		"namespace=other":                    "three",
		"namespace=ns&team=shop":             "five two one",
		"namespace=ns&team=none":             "",
		"namespace=ns&person=bob":            "two",
		"item=one":                           "one",
		"item=uid-one":                       "one",
		"state=canceled":                     "five",
		"open=true":                          "three two one",
		"open=false":                         "five",
		"since=2026-03-02":                   "five three two",
		"until=2026-03-02":                   "one",
		"since=2026-03-02T12:00:00Z&limit=5": "five three two",
		"since=2026-03-02&until=2026-03-05T00:00:00%2B02:00": "three two",
	} {
		t.Run("with "+query, func(t *testing.T) {
			if got := b.list(tokenAll, query); got.items() != want || got.NextCursor != nil {
				t.Errorf("the list has %q, not %q, and goes on at %v", got.items(), want, got.NextCursor)
			}
		})
	}
	t.Run("page by page", func(t *testing.T) {
		var pages []string
		query := "limit=3"
		for range 3 {
			page := b.list(tokenAll, query)
			pages = append(pages, page.items())
			if page.NextCursor == nil {
				break
			}
			query = "limit=3&cursor=" + url.QueryEscape(*page.NextCursor)
		}
		if got := strings.Join(pages, " | "); got != "five three two | one" {
			t.Errorf("the pages are %s", got)
		}
	})
	t.Run("without those of a namespace that was made again", func(t *testing.T) {
		b.editSession(b.sessionOf("uid-two").ID, func(s *model.Session) { s.NamespaceUID = "old" })
		b.editSession(b.sessionOf("uid-one").ID, func(s *model.Session) { s.NamespaceUID = "new" })
		g.change(func(g *guard) { g.uids["ns"] = "new" })
		if got := b.list(tokenAll, "namespace=ns&limit=2"); got.items() != "five one" || got.NextCursor != nil {
			t.Errorf("the list has %q and goes on at %v", got.items(), got.NextCursor)
		}
		b.refuses(http.StatusNotFound, tokenAll, http.MethodGet, "/v1/sessions/uid-two", "")
	})
	t.Run("to nobody who may not", func(t *testing.T) {
		p := b.refuses(http.StatusForbidden, tokenTalker, http.MethodGet, "/v1/sessions?namespace=ns", "")
		if !strings.Contains(p.Detail, "list workitems/session") || !strings.Contains(p.Detail, "no role of talker says so") {
			t.Errorf("the problem is %+v", p)
		}
	})
}

func TestWhatAListIsNotAskedFor(t *testing.T) {
	b, _ := openSessions(t)
	for query, names := range map[string]string{
		"colour=red":           "known are: namespace, team, person, item, state, open, since, until, limit, cursor",
		"limit=0":              "limit",
		"limit=many":           "limit",
		"limit=1&limit=2":      "limit comes 2 times",
		"state=asleep":         "state",
		"open=maybe":           "open",
		"since=yesterday":      "since",
		"until=12:00":          "until",
		"cursor=x":             "cursor",
		"cursor=" + "MTIzNDU2": "cursor",
	} {
		t.Run(query, func(t *testing.T) {
			if p := b.refuses(http.StatusBadRequest, tokenAll, http.MethodGet, "/v1/sessions?"+query, ""); !strings.Contains(p.Detail, names) {
				t.Errorf("the problem is %q", p.Detail)
			}
		})
	}
}

func TestASessionIsReadByItsIDAndByItsItems(t *testing.T) {
	b, _ := openSessions(t)
	s, _, _ := b.working("i1")
	for _, id := range []string{s.ID, "uid-i1"} {
		a := b.ask(tokenReader, http.MethodGet, "/v1/sessions/"+id, "")
		var got feed.Session
		a.into(t, &got)
		if a.StatusCode != http.StatusOK || got.ID != s.ID || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s was answered with %d %s", id, a.StatusCode, a.body)
		}
	}
	if a := b.ask(tokenReader, http.MethodHead, "/v1/sessions/"+s.ID, ""); a.StatusCode != http.StatusOK || len(a.body) > 0 {
		t.Errorf("HEAD was answered with %d %s", a.StatusCode, a.body)
	}
}

func TestNobodyLearnsOfSessionsThatTheyMayNotRead(t *testing.T) {
	b, _ := openSessions(t)
	s, _, _ := b.working("i1")
	for _, at := range []struct{ method, path, body string }{
		{http.MethodGet, "", ""}, {http.MethodGet, "/records", ""}, {http.MethodPost, "/messages", `{"body":"x"}`}, {http.MethodPost, "/stop", ""},
	} {
		t.Run(at.method+at.path, func(t *testing.T) {
			there := b.refuses(http.StatusNotFound, tokenNobody, at.method, "/v1/sessions/"+s.ID+at.path, at.body)
			none := b.refuses(http.StatusNotFound, tokenNobody, at.method, "/v1/sessions/s9-none"+at.path, at.body)
			there.Instance, none.Instance = "", ""
			if there != none {
				t.Errorf("a session that is there is answered with %+v, one that is not with %+v", there, none)
			}
		})
	}
	for _, path := range []string{"messages", "stop"} {
		p := b.refuses(http.StatusForbidden, tokenReader, http.MethodPost, "/v1/sessions/"+s.ID+"/"+path, "")
		if !strings.Contains(p.Detail, "create workitems/"+strings.TrimSuffix(path, "s")) || !strings.Contains(p.Detail, "no role of reader says so") {
			t.Errorf("the problem is %+v", p)
		}
	}
}

func TestWhoIsNotLetIn(t *testing.T) {
	b, g := openSessions(t)
	for _, token := range []string{"", "wrong"} {
		a := b.ask(token, http.MethodGet, "/v1/sessions", "")
		if a.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("token %q was answered with %d %v", token, a.StatusCode, a.Header)
		}
		b.refuses(http.StatusUnauthorized, token, http.MethodGet, "/v1/sessions", "")
	}
	g.change(func(g *guard) { g.down = true })
	p := b.refuses(http.StatusServiceUnavailable, tokenAll, http.MethodGet, "/v1/sessions", "")
	if !strings.Contains(p.Detail, "the API server does not answer") {
		t.Errorf("the problem is %+v", p)
	}
}

func TestAnOfficeThatCannotServeSessionsSaysWhy(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*office.Options)
		says string
	}{
		"without access": {func(o *office.Options) { o.Access = nil }, "cannot ask Kubernetes"},
		"without a feed": {func(o *office.Options) { o.Feed = nil }, "keeps no sessions"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := openSessions(t, test.edit)
			if p := b.refuses(http.StatusServiceUnavailable, tokenAll, http.MethodGet, "/v1/sessions", ""); !strings.Contains(p.Detail, test.says) {
				t.Errorf("the problem is %+v", p)
			}
		})
	}
}

func TestWhatIsNotThereAndWhatIsNotPossibleIsAProblem(t *testing.T) {
	b, _ := openSessions(t)
	for path, allowed := range map[string]string{
		"/v1/sessions": "GET, HEAD", "/v1/sessions/x": "GET, HEAD", "/v1/sessions/x/records": "GET, HEAD",
		"/v1/sessions/x/messages": "POST", "/v1/sessions/x/stop": "POST",
	} {
		a := b.ask(tokenAll, http.MethodDelete, path, "")
		if a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != allowed {
			t.Errorf("DELETE %s was answered with %d, allowed is %q", path, a.StatusCode, a.Header.Get("Allow"))
		}
		b.refuses(http.StatusMethodNotAllowed, tokenAll, http.MethodDelete, path, "")
	}
	b.refuses(http.StatusNotFound, tokenAll, http.MethodGet, "/v1/sessions/x/y", "")
	b.refuses(http.StatusBadRequest, tokenAll, http.MethodGet, "/v1/sessions/x?verbose=1", "")
	b.refuses(http.StatusBadRequest, tokenAll, http.MethodGet, "/v1/sessions/x/records?after=1", "")
	b.refuses(http.StatusBadRequest, tokenAll, http.MethodGet, "/v1/sessions/x/records?cursor=-1", "")
	b.refuses(http.StatusBadRequest, tokenAll, http.MethodGet, "/v1/sessions/x/records?limit=1001", "")
}

func TestRecordsAreReadPageByPage(t *testing.T) {
	b, _ := openSessions(t)
	s, _, u := b.working("i1")
	payload := `{"b":1,"a":123456789012345678901234567890,"text":"<&>"}`
	u.upload(u.entry(feed.SourceCommand, feed.FormatCommand, "stdout", payload))
	u.upload(u.output(8)...)
	type page struct {
		Records  []feed.Record `json:"records"`
		Next     *int64        `json:"next_cursor"`
		Earliest *int64        `json:"earliest_feed_seq"`
	}
	places, cursor := []int64{}, int64(0)
	for {
		a := b.ask(tokenReader, http.MethodGet, fmt.Sprintf("/v1/sessions/%s/records?limit=4&cursor=%d", s.ID, cursor), "")
		var p page
		a.into(t, &p)
		if a.StatusCode != http.StatusOK || p.Earliest == nil || *p.Earliest != 1 {
			t.Fatalf("the page is %d %s", a.StatusCode, a.body)
		}
		if cursor == 0 && !strings.Contains(string(a.body), `"payload":`+payload) {
			t.Errorf("the payload is not as it came: %s", a.body)
		}
		for _, r := range p.Records {
			places = append(places, r.FeedSeq)
		}
		if p.Next == nil {
			break
		}
		cursor = *p.Next
	}
	if got := fmt.Sprint(places); got != "[1 2 3 4 5 6 7 8 9 10]" {
		t.Errorf("the places are %s", got)
	}
	if a := b.ask(tokenReader, http.MethodGet, "/v1/sessions/"+s.ID+"/records?cursor=99", ""); string(a.body) !=
		`{"records":[],"next_cursor":null,"earliest_feed_seq":1}` {
		t.Errorf("beyond the end is %s", a.body)
	}
	b.apply("quiet")
	a := b.ask(tokenReader, http.MethodGet, "/v1/sessions/uid-quiet/records?cursor=1", "")
	if !strings.HasPrefix(string(a.body), `{"records":[],"next_cursor":null`) {
		t.Errorf("a session without further records is %s", a.body)
	}
}

func TestAHumanSpeaksIntoASession(t *testing.T) {
	b, _ := openSessions(t)
	s, ada, u := b.working("i1")
	u.upload(u.lifecycle("turn_started", map[string]any{}))
	v := b.watch(s.ID, "protocol=6")
	v.snapshot()
	a := b.ask(tokenTalker, http.MethodPost, "/v1/sessions/uid-i1/messages", `{"body": "Please add <a> test."}`)
	var m feed.InboxMessage
	a.into(t, &m)
	if a.StatusCode != http.StatusCreated || m.SessionID != s.ID || m.TurnID == nil || m.Status != feed.InboxPending || *m.Author != "talker" ||
		!strings.Contains(string(a.body), "Please add <a> test.") {
		t.Fatalf("it was answered with %d %s", a.StatusCode, a.body)
	}
	u.finish(ada, "i1")
	if offer := ada.takeNext(); len(offer.Context.Feedback) != 1 || offer.Context.Feedback[0].Body != "Please add <a> test." {
		t.Errorf("the next round has %+v", offer.Context.Feedback)
	}
	u.offer = model.OfferID("uid-i1", 2)
	u.upload(u.lifecycle("turn_started", map[string]any{}))
	u.finish(ada, "i1")
	until(v, func(f feed.SessionFrame) bool {
		return f.Session.Turn.ID == *m.TurnID && f.Session.Turn.Status == feed.TurnStatusCompleted
	})
}

func TestAMessageThatClosesTheSessionIsTheLastOne(t *testing.T) {
	b, _ := openSessions(t)
	s, ada, u := b.working("i1")
	a := b.ask(tokenAll, http.MethodPost, "/v1/sessions/uid-i1/messages", `{"body": "Thanks.", "closes_session": true}`)
	if a.StatusCode != http.StatusCreated {
		t.Fatalf("it was answered with %d %s", a.StatusCode, a.body)
	}
	p := b.refuses(http.StatusConflict, tokenAll, http.MethodPost, "/v1/sessions/uid-i1/messages", `{"body": "One more thing."}`)
	if p.BlockedReason != feed.BlockedClosed {
		t.Errorf("the problem is %+v", p)
	}
	v := b.watch(s.ID, "protocol=6")
	u.finish(ada, "i1")
	ada.takeNext()
	u.offer = model.OfferID("uid-i1", 2)
	u.finish(ada, "i1")
	if code, _, last := v.ended(); code != feed.CloseNormal || last.FrameType() != feed.FrameDone {
		t.Errorf("it ends with %d after %+v", code, last)
	}
}

func TestWhyASessionTakesNoMessage(t *testing.T) {
	budgets := func(team *model.Team) {
		team.Usage.Budgets = []model.Budget{{Scope: model.BudgetItem, Tokens: 10}}
	}
	g := newGuard()
	b := openWith(t, func(o *office.Options) { o.Access = g }, budgets)
	b.apply("closed")
	b.apply("closed", func(f *model.ItemFacts) { f.Spec.Cancel = true; f.Spec.Generation = 2 })
	ada, _ := b.connect("ada")
	b.apply("once", chore, func(f *model.ItemFacts) { f.Spec.Person = "bob" })
	b.apply("spent")
	ada.take("spent")
	b.must(b.store.Update(t.Context(), func(tx storeTx) error {
		it, err := tx.Item("uid-spent")
		it.Usage.InputTokens = 10
		if err == nil {
			err = tx.PutItem(&it)
		}
		return err
	}))
	bob, _ := b.connect("bob")
	bob.request(protocol.ChatMessage{MessageID: "m-1", Channel: "c-1", Text: "Hello", Author: protocol.Requester{ID: "U1", Name: "Grace"}})
	chat := b.list(tokenAll, "namespace=ns&person=bob&limit=1").Sessions[0]
	for item, reason := range map[string]string{
		"uid-closed": feed.BlockedClosed, "uid-once": feed.BlockedNonInteractive, "uid-spent": feed.BlockedBudgetExhausted,
		chat.ID: feed.BlockedMentionSurface,
	} {
		t.Run(reason, func(t *testing.T) {
			p := b.refuses(http.StatusConflict, tokenAll, http.MethodPost, "/v1/sessions/"+item+"/messages", `{"body": "Hi."}`)
			var s feed.Session
			b.ask(tokenAll, http.MethodGet, "/v1/sessions/"+item, "").into(t, &s)
			says := s.Conversation.Prompting
			if p.BlockedReason != reason || says.Enabled || says.BlockedReason == nil || *says.BlockedReason != reason || *says.Detail != p.Detail {
				t.Errorf("the problem is %+v, the session says %+v", p, says)
			}
		})
	}
}

func TestWhatIsNoMessage(t *testing.T) {
	b, _ := openSessions(t)
	b.apply("i1")
	const path = "/v1/sessions/uid-i1/messages"
	for name, test := range map[string]struct {
		status  int
		body    string
		headers []string
	}{
		"no JSON":                  {http.StatusBadRequest, `{"body": `, nil},
		"two values":               {http.StatusBadRequest, `{"body": "a"} {"body": "b"}`, nil},
		"a body that comes twice":  {http.StatusBadRequest, `{"body": "a", "body": "b"}`, nil},
		"a member nobody knows":    {http.StatusUnprocessableEntity, `{"body": "a", "urgent": true}`, nil},
		"a body that is no text":   {http.StatusUnprocessableEntity, `{"body": 7}`, nil},
		"an empty body":            {http.StatusUnprocessableEntity, `{"body": " \n"}`, nil},
		"no object":                {http.StatusUnprocessableEntity, `["a"]`, nil},
		"a body that is too long":  {http.StatusUnprocessableEntity, `{"body": "` + strings.Repeat("x", 100_001) + `"}`, nil},
		"a request that is larger": {http.StatusRequestEntityTooLarge, `{"body": "` + strings.Repeat("x", 600<<10) + `"}`, nil},
		"a form":                   {http.StatusUnsupportedMediaType, `body=a`, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"plain text":               {http.StatusUnsupportedMediaType, `{"body": "a"}`, []string{"Content-Type", "text/plain"}},
		"a foreign page":           {http.StatusForbidden, `{"body": "a"}`, []string{"Origin", "https://evil.example.com"}},
		"a page without an origin": {http.StatusForbidden, `{"body": "a"}`, []string{"Origin", "null"}},
	} {
		t.Run(name, func(t *testing.T) {
			b.refuses(test.status, tokenAll, http.MethodPost, path, test.body, test.headers...)
		})
	}
	b.refuses(http.StatusUnprocessableEntity, tokenAll, http.MethodPost, "/v1/sessions/uid-i1/stop", `{"now": true}`)
	b.refuses(http.StatusForbidden, tokenAll, http.MethodPost, "/v1/sessions/uid-i1/stop", "", "Origin", "https://evil.example.com")
}

func TestAPageOfAnAllowedOriginMayAsk(t *testing.T) {
	b, _ := openSessions(t, func(o *office.Options) { o.AllowedOrigins = []string{"https://board.example.com"} })
	s, _, _ := b.working("i1")
	a := b.ask("", http.MethodOptions, "/v1/sessions/"+s.ID+"/messages", "", "Origin", "https://board.example.com")
	if a.StatusCode != http.StatusNoContent || a.Header.Get("Access-Control-Allow-Origin") != "https://board.example.com" ||
		a.Header.Get("Access-Control-Allow-Methods") != "POST" || !strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("the preflight was answered with %d %v", a.StatusCode, a.Header)
	}
	a = b.ask(tokenAll, http.MethodPost, "/v1/sessions/"+s.ID+"/messages", `{"body":"Hi."}`, "Origin", "https://board.example.com")
	if a.StatusCode != http.StatusCreated || a.Header.Get("Access-Control-Allow-Origin") != "https://board.example.com" {
		t.Errorf("the message was answered with %d %v", a.StatusCode, a.Header)
	}
	a = b.ask("", http.MethodOptions, "/v1/sessions", "", "Origin", "https://evil.example.com")
	if a.StatusCode != http.StatusForbidden || a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the preflight of another page was answered with %d %v", a.StatusCode, a.Header)
	}
}

func TestAHumanStopsWhatASessionRuns(t *testing.T) {
	b, _ := openSessions(t)
	s, ada, u := b.working("i1")
	u.upload(u.lifecycle("turn_started", map[string]any{}))
	a := b.ask(tokenAll, http.MethodPost, "/v1/sessions/"+s.ID+"/stop", "")
	var got feed.Session
	a.into(t, &got)
	if a.StatusCode != http.StatusAccepted || got.Turn.Status != feed.TurnStatusStopped || got.Turn.Stopped == nil {
		t.Fatalf("it was answered with %d %s", a.StatusCode, a.body)
	}
	if code := ada.closed(); code == 0 {
		t.Error("the agent still runs")
	}
	again := b.ask(tokenAll, http.MethodPost, "/v1/sessions/"+s.ID+"/stop", "")
	if again.StatusCode != http.StatusAccepted {
		t.Errorf("a second stop was answered with %d %s", again.StatusCode, again.body)
	}
}

func TestAnItemThatRunsAgainHasASessionThatGoesOnFromTheOneBefore(t *testing.T) {
	b, _ := openSessions(t)
	first, ada, u := b.working("i1", chore)
	u.finish(ada, "i1")
	b.records("uid-i1", 3)
	b.apply("i1", chore, func(f *model.ItemFacts) { f.Spec.Rerun, f.Spec.Generation = "again", 2 })
	s := b.object("uid-i1")
	if s.ID == first.ID || s.Parent == nil || *s.Parent.SessionID != first.ID || s.Conversation.State != feed.ConversationOpen {
		t.Errorf("after %s comes %s, of parent %+v, which is %s", first.ID, s.ID, s.Parent, s.Conversation.State)
	}
	if before := b.object(first.ID); before.Conversation.State != feed.ConversationClosed || before.Turn.Status != feed.TurnStatusCompleted {
		t.Errorf("the one before is %+v, its turn %+v", before.Conversation, before.Turn)
	}
	if got := b.list(tokenAll, "item=i1"); len(got.Sessions) != 2 || got.Sessions[0].ID != s.ID {
		t.Errorf("the list has %d sessions", len(got.Sessions))
	}
}
