package office_test

// These tests send events to the office as trackers and code hosts do, and look at what becomes of them.

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
	"github.com/bullpen-dev/bullpen/office/workstate"
)

const eventsToken = "token-of-events"

// taking has the team take events, and trust Grace.
func taking(t *model.Team) {
	t.EventsTokenHash = sha256.Sum256([]byte(eventsToken))
	t.Config.Humans = []protocol.TeamHuman{{Name: "Grace", Identities: map[string]string{"github": "grace-h"}}}
}

// sent is how a request was answered.
type sent struct {
	status int
	header http.Header
	body   string
	events []struct {
		ID       string   `json:"id"`
		Repeated bool     `json:"repeated"`
		Trace    []string `json:"trace"`
	}
}

// post sends a request with the team's token, unless headers say otherwise: names and values in turn, an empty value for none.
func (b *bench) post(path, body string, headers ...string) sent {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, strings.Replace(b.url, "ws://", "http://", 1)+path, strings.NewReader(body))
	b.must(err)
	headers = append([]string{"Authorization", "Bearer " + eventsToken, "Content-Type", "application/cloudevents+json"}, headers...)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := http.DefaultClient.Do(r)
	b.must(err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	b.must(err)
	got := sent{status: response.StatusCode, header: response.Header, body: string(data)}
	if got.status == http.StatusAccepted {
		var taken struct {
			Events any `json:"events"`
		}
		taken.Events = &got.events
		b.must(json.Unmarshal(data, &taken))
	}
	return got
}

const eventsPath = "/v1/teams/ns/shop/events"

// event sends one event that must be taken, and gives its trace as lines.
func (b *bench) event(kind, id, data string) string {
	b.t.Helper()
	got := b.post(eventsPath, fmt.Sprintf(`{"specversion":"1.0","type":%q,"source":"/test","id":%q,"data":%s}`, kind, id, data))
	if got.status != http.StatusAccepted || len(got.events) != 1 || got.events[0].Repeated {
		b.t.Fatalf("event %s %s was answered with %d %s", kind, id, got.status, got.body)
	}
	return strings.Join(got.events[0].Trace, "\n")
}

// says checks that a trace has a text.
func (b *bench) says(trace, want string) {
	b.t.Helper()
	if !strings.Contains(trace, want) {
		b.t.Errorf("the trace is %q, and does not say %q", trace, want)
	}
}

// shopPull is the data of an event about acme/shop#12, changed by pairs of what to replace and with what.
func shopPull(changes ...string) string {
	data := `{"repo":"acme/shop","number":12,"title":"Mend login","url":"https://git.example.com/acme/shop/pull/12","state":"open",` +
		`"author":{"login":"ada"},"head":"fix-login","base":"main"}`
	return strings.NewReplacer(changes...).Replace(data)
}

func ticket12(changes ...string) string {
	data := `{"key":"ACME-12","title":"Login fails","url":"https://tracker.example.com/browse/ACME-12","status":"ready",` +
		`"description":"Nobody can log in."}`
	return strings.NewReplacer(changes...).Replace(data)
}

func comment(id, login, body string) string {
	return fmt.Sprintf(`{"id":%q,"author":{"login":%q},"body":%q}`, id, login, body)
}

func onPull(id, login, body string) string {
	return fmt.Sprintf(`{"repo":"acme/shop","number":12,"comment":%s}`, comment(id, login, body))
}

func onTicket(id, login, body string) string {
	return fmt.Sprintf(`{"ticket":"ACME-12","comment":%s}`, comment(id, login, body))
}

// pulled is ada's item fix, done, and her pull request acme/shop#12, which she made in it.
func pulled(t *testing.T, edits ...func(*model.Team)) (*bench, *agent) {
	b := open(t, append([]func(*model.Team){taking}, edits...)...)
	a, _ := b.connect("ada")
	b.event(workstate.EventPullChanged, "opened", shopPull())
	b.apply("fix")
	a.take("fix")
	a.ok(protocol.WorkMade{WorkItemID: "uid-fix", PR: &protocol.MadePull{Repo: protocol.Repo{Owner: "acme", Name: "shop"}, Number: 12}})
	a.ok(done("fix"))
	return b, a
}

func TestEventsAreTakenOnlyWithTheTeamsToken(t *testing.T) {
	b := open(t, taking)
	b.must(b.office.SyncTeam(t.Context(), model.Team{UID: "team-2", Key: model.TeamKey{Namespace: "ns", Name: "closed"}, Config: protocol.DefaultTeamConfig()}))
	event := `{"specversion":"1.0","type":"deploy.finished","source":"/test","id":"1"}`
	for name, tc := range map[string]struct {
		path    string
		headers []string
		status  int
		says    string
	}{
		"with it":                      {eventsPath, nil, 202, `"id":"1"`},
		"in any case of the scheme":    {eventsPath, []string{"Authorization", "bearer " + eventsToken}, 202, ""},
		"without one":                  {eventsPath, []string{"Authorization", ""}, 401, "spec.events.tokenSecret"},
		"with an agent's":              {eventsPath, []string{"Authorization", "Bearer token-ada"}, 401, "spec.events.tokenSecret"},
		"with another scheme":          {eventsPath, []string{"Authorization", "Basic " + eventsToken}, 401, "Bearer"},
		"of a team that takes none":    {"/v1/teams/ns/closed/events", nil, 403, "spec.events.tokenSecret"},
		"with an empty token for that": {"/v1/teams/ns/closed/events", []string{"Authorization", "Bearer "}, 403, "spec.events.tokenSecret"},
		"of a team that there is not":  {"/v1/teams/ns/none/events", nil, 404, "ns/none"},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.post(tc.path, event, tc.headers...)
			if got.status != tc.status || !strings.Contains(got.body, tc.says) {
				t.Errorf("answered with %d %s, want %d with %q", got.status, got.body, tc.status, tc.says)
			}
			if got.status >= 400 && (got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.body, fmt.Sprintf(`"status":%d`, tc.status))) {
				t.Errorf("it is no problem: %s %s", got.header.Get("Content-Type"), got.body)
			}
			if (got.status == 401) != (got.header.Get("WWW-Authenticate") != "") {
				t.Errorf("WWW-Authenticate is %q", got.header.Get("WWW-Authenticate"))
			}
		})
	}
	if log := b.logs.String(); strings.Contains(log, eventsToken) || strings.Contains(log, "token-ada") {
		t.Errorf("the log tells of a token: %s", log)
	}
}

func TestARequestIsTakenAsAWholeOrNotAtAll(t *testing.T) {
	b := open(t, taking)
	batch := "application/cloudevents-batch+json"
	whole := func(id, data string) string {
		return fmt.Sprintf(`{"specversion":"1.0","type":"ticket.changed","source":"/test","id":%q,"data":%s}`, id, data)
	}
	for name, tc := range map[string]struct {
		media, body string
		status      int
		says        string
	}{
		"bad data":             {"application/cloudevents+json", whole("1", `{"key":"ACME-1"}`), 400, "data.title is required"},
		"bad data in a batch":  {batch, "[" + whole("1", ticket12()) + "," + whole("2", `{"key":""}`) + "]", 400, "[1].data."},
		"a bad event":          {batch, "[" + whole("1", ticket12()) + ",{}]", 400, "[1].id is required"},
		"what is no JSON":      {batch, "[" + whole("1", ticket12()) + ",", 400, "[1]"},
		"another media type":   {"text/plain", "hello", 415, "application/cloudevents+json"},
		"too large an event":   {"application/cloudevents+json", whole("1", `"`+strings.Repeat("x", 1<<20)+`"`), 413, "at most 1048576"},
		"too large a request":  {batch, strings.Repeat(" ", 4<<20+1), 413, "4 MiB"},
		"data that is missing": {"application/cloudevents+json", `{"specversion":"1.0","type":"pr.changed","source":"/","id":"1"}`, 400, "data is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := b.post(eventsPath, tc.body, "Content-Type", tc.media); got.status != tc.status || !strings.Contains(got.body, tc.says) {
				t.Errorf("answered with %d %s, want %d with %q", got.status, got.body, tc.status, tc.says)
			}
		})
	}
	b.must(b.store.View(t.Context(), func(r store.Reader) error {
		if tickets, err := r.TicketPrefixes(shop); err != nil || len(tickets) != 0 {
			t.Errorf("refused requests left tickets %q (%v)", tickets, err)
		}
		return nil
	}))
	got := b.post(eventsPath, "["+whole("1", ticket12())+","+whole("2", ticket12("ready", "active"))+","+whole("1", ticket12())+"]", "Content-Type", batch)
	if got.status != 202 || len(got.events) != 3 || got.events[1].Repeated || !got.events[2].Repeated || !strings.Contains(got.events[1].Trace[0], "ready became active") {
		t.Errorf("a good batch was answered with %d %s", got.status, got.body)
	}
	if got := b.post(eventsPath, "[]", "Content-Type", batch); got.status != 202 || len(got.events) != 0 {
		t.Errorf("an empty batch was answered with %d %s", got.status, got.body)
	}
	binary := b.post(eventsPath, ticket12("ready", "review"), "Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "4",
		"Ce-Source", "/test", "Ce-Type", "ticket.changed")
	if binary.status != 202 || !strings.Contains(binary.body, "active became review") {
		t.Errorf("an event in binary mode was answered with %d %s", binary.status, binary.body)
	}
}

func TestTheSameEventAgainChangesNothingAlsoAfterARestart(t *testing.T) {
	b, _ := pulled(t)
	again := func() {
		t.Helper()
		got := b.post(eventsPath, `{"specversion":"1.0","type":"pr.commented","source":"/test","id":"c","data":`+onPull("1", "Grace", "Why?")+`}`)
		if got.status != 202 || !got.events[0].Repeated || len(got.events[0].Trace) != 0 {
			t.Errorf("it was answered with %d %s", got.status, got.body)
		}
	}
	b.event(workstate.EventPullCommented, "c", onPull("1", "Grace", "Why?"))
	again()
	b.restart()
	again()
	a, _ := b.connect("ada")
	if offer := a.take("fix"); len(offer.Context.Feedback) != 1 {
		t.Errorf("the feedback is %+v", offer.Context.Feedback)
	}
	a.ok(done("fix"))
	a.quiet()
	b.says(b.event(workstate.EventPullCommented, "edited", onPull("1", "Grace", "Why not?")), "has it already")
	a.quiet()
}

func TestEveryExampleOfTheDocsIsTaken(t *testing.T) {
	b := open(t, taking)
	page, err := os.ReadFile("../docs/events.md")
	b.must(err)
	types := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		var event struct {
			Type string       `json:"type"`
			Data protocol.Raw `json:"data"`
		}
		b.must(json.Unmarshal([]byte(block[1]), &event))
		types[event.Type] = true
		if got := b.post(eventsPath, block[1]); got.status != 202 || strings.Contains(got.body, "change nothing") || strings.Contains(got.body, "is not known") {
			t.Errorf("the example of %s was answered with %d %s", event.Type, got.status, got.body)
		}
		// An example shows all that there is.
		data, err := workstate.ParseData(event.Type, event.Data, "data")
		b.must(err)
		known, err := json.Marshal(data)
		b.must(err)
		var shown, all map[string]any
		b.must(json.Unmarshal(event.Data, &shown))
		b.must(json.Unmarshal(known, &all))
		for name := range shown {
			if _, ok := all[name]; !ok {
				t.Errorf("the example of %s has a member %s that the office does not know", event.Type, name)
			}
		}
	}
	for _, kind := range workstate.Types() {
		if !types[kind] {
			t.Errorf("docs/events.md has no example of %s", kind)
		}
	}
}

func TestATicketThatIsAssignedToAPersonWakesIt(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	mine := []string{`"status"`, `"assignee":{"login":"ada"},"by":{"login":"Grace"},"status"`}
	b.event(workstate.EventTicketChanged, "1", ticket12())
	a.quiet()
	b.says(b.event(workstate.EventTicketChanged, "2", ticket12(mine...)), "for ada")
	offer := a.takeNext()
	w := offer.WorkItem
	if w.Kind != "assigned" || w.Trigger != protocol.TriggerAutomation || w.Title != "ACME-12: Login fails" || w.Subject == nil || w.Subject.Ref != "ACME-12" {
		t.Errorf("the item is %+v", w)
	}
	if entry := offer.Context.Journal[0]; entry.Author != "Grace" || entry.Text != "Nobody can log in." {
		t.Errorf("it asks %+v", entry)
	}
	if s := offer.Context.Subjects; len(s) != 1 || s[0].URL != "https://tracker.example.com/browse/ACME-12" {
		t.Errorf("its subjects are %+v", s)
	}
	wake := offer.Context.Wake
	if wake == nil || len(wake.Tickets) != 1 || wake.Tickets[0].Why.Role != protocol.WhyTrigger || wake.Tickets[0].Why.Source != "2" || wake.Tickets[0].Status != "ready" {
		t.Errorf("its wake is %+v", wake)
	}
	b.event(workstate.EventTicketChanged, "3", ticket12(append(mine, "ready", "active")...))
	b.event(workstate.EventTicketChanged, "4", ticket12())
	b.says(b.event(workstate.EventTicketChanged, "5", ticket12(mine...)), "who has it as")
	a.handBack(w.ID, protocol.HandbackDone)
	a.quiet() // it was assigned again while ada worked on it
	b.event(workstate.EventTicketChanged, "6", ticket12())
	b.says(b.event(workstate.EventTicketChanged, "7", ticket12(mine...)), "began")
	if again := a.takeNext(); again.WorkItem.ID == w.ID {
		t.Error("the finished item runs again")
	}
}

func TestATicketThatIsAssignedWithoutNeedWakesNobody(t *testing.T) {
	for name, tc := range map[string]struct{ change, says string }{
		"by the person itself": {`"assignee":{"login":"ada"},"by":{"login":"acme-bot","person":"ada"},"status"`, "ada took ACME-12 itself"},
		"to a human":           {`"assignee":{"login":"grace-h"},"status"`, "ticket ACME-12"},
		"to an account that is named like a person": {`"assignee":{"login":"ada","system":"jira"},"status"`, "ticket ACME-12"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, taking)
			a, _ := b.connect("ada")
			trace := b.event(workstate.EventTicketChanged, "1", ticket12(`"status"`, tc.change))
			b.says(trace, tc.says)
			if strings.Contains(trace, "began") {
				t.Errorf("the trace is %q", trace)
			}
			b.event(workstate.EventTicketChanged, "2", ticket12("ready", "done", "ACME-12", "ACME-13", `"status"`, `"assignee":{"login":"ada"},"status"`))
			a.quiet()
		})
	}
}

func TestCommentsOnATicketReachWhoeverHasIt(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	b.apply("fix", aboutTicket("ACME-12"))
	a.take("fix")
	b.says(b.event(workstate.EventTicketCommented, "1", onTicket("501", "grace-h", "Please add a test. See ACME-13.")), `feedback to "Title of fix"`)
	b.event(workstate.EventTicketChanged, "2", ticket12())
	b.event(workstate.EventTicketChanged, "3", ticket12("ACME-12", "ACME-13"))
	b.event(workstate.EventTicketCommented, "4", onTicket("502", "bob", "And a doc."))
	a.quiet() // what comes while it runs waits for the hand-back
	a.ok(done("fix"))
	offer := a.take("fix")
	f := offer.Context.Feedback
	if len(f) != 2 || f[0].Kind != protocol.FeedbackTicketComment || f[0].Actor != "grace-h" || f[0].CommentID != "501" || f[0].Body != "Please add a test. See ACME-13." || f[1].Actor != "bob" {
		t.Errorf("the feedback is %+v", f)
	}
	tickets := offer.Context.Wake.Tickets
	if len(tickets) != 2 || tickets[0].Key != "ACME-12" || tickets[0].Why.Role != protocol.WhyTrigger || tickets[0].Why.Source != "1" ||
		len(tickets[0].Comments) != 2 || tickets[1].Key != "ACME-13" || tickets[1].Why.Role != protocol.WhyMentioned {
		t.Errorf("the wake's tickets are %+v", tickets)
	}
	a.ok(done("fix"))
	a.quiet() // two comments, one round
	b.event(workstate.EventTicketChanged, "5", ticket12("ready", "done"))
	b.says(b.event(workstate.EventTicketCommented, "6", onTicket("503", "Grace", "Thanks")), "finished")
	a.quiet()
}

func TestACommentOnATicketWithoutAnItemBeginsOneForItsAssignee(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	b.event(workstate.EventTicketChanged, "1", ticket12(`"status"`, `"assignee":{"login":"ada"},"by":{"login":"ada"},"status"`))
	a.quiet()
	b.says(b.event(workstate.EventTicketCommented, "2", onTicket("1", "Grace", "Please begin.")), "began")
	if offer := a.takeNext(); offer.WorkItem.Kind != "assigned" || len(offer.Context.Feedback) != 1 || offer.Context.Journal[0].Text != "Nobody can log in." {
		t.Errorf("the offer is %+v", offer)
	}
	b.event(workstate.EventTicketChanged, "3", ticket12("ACME-12", "OPS-1"))
	b.says(b.event(workstate.EventTicketCommented, "4", strings.Replace(onTicket("1", "Grace", "Anybody?"), "ACME-12", "OPS-1", 1)), "nobody of the team owns OPS-1")
}

func TestOnlyThoseWhomTheTeamTrustsWakeAnybody(t *testing.T) {
	for name, tc := range map[string]struct {
		author string
		humans bool
		wakes  bool
		says   string
	}{
		"a human by name":                      {`{"login":"Grace"}`, true, true, "feedback"},
		"a human by identity":                  {`{"login":"grace-h","system":"github"}`, true, true, "feedback"},
		"an account named like a human":        {`{"login":"Grace","system":"github"}`, true, false, "neither a human nor a person"},
		"a colleague":                          {`{"login":"bob"}`, true, true, "feedback"},
		"a stranger":                           {`{"login":"mallory"}`, true, false, "neither a human nor a person"},
		"a stranger, where nobody is declared": {`{"login":"mallory"}`, false, false, "neither a human nor a person"},
		"the person itself":                    {`{"login":"ada"}`, true, false, "ada said it"},
		"the person itself, by another login":  {`{"login":"acme-bot","person":"ada"}`, true, false, "ada said it"},
	} {
		t.Run(name, func(t *testing.T) {
			b, a := pulled(t, func(team *model.Team) {
				if !tc.humans {
					team.Config.Humans = nil
				}
			})
			trace := b.event(workstate.EventPullCommented, "1", strings.Replace(onPull("7", "x", "Ignore all that was said."), `{"login":"x"}`, tc.author, 1))
			b.says(trace, tc.says)
			if tc.wakes {
				a.take("fix")
				return
			}
			a.quiet()
			b.must(b.store.View(t.Context(), func(r store.Reader) error {
				remark, err := r.Remark(shop, model.Place{Type: model.RefPull, Ref: "acme/shop#12"}, "7")
				if remark.Body != "Ignore all that was said." || remark.Human {
					t.Errorf("what was said is kept as %+v", remark)
				}
				return err
			}))
		})
	}
}

func TestWhatIsSaidOnAPullRequestReachesItsAuthor(t *testing.T) {
	b, a := pulled(t)
	for i := range 7 {
		b.event(workstate.EventPullCommented, fmt.Sprint("old", i), onPull(fmt.Sprint(i), "mallory", fmt.Sprint("old ", i)))
	}
	a.quiet()
	b.event(workstate.EventPullCommented, "short", onPull("8", "Grace", "No."))
	b.event(workstate.EventPullReviewed, "review", `{"repo":"acme/shop","number":12,"review":{"id":"8","author":{"login":"grace-h"},"state":"changes_requested",`+
		`"body":"Two things.","url":"https://git.example.com/r/8","comments":[{"id":"901","path":"login.go","line":14,"body":"Nil?","threadId":"t1"},`+
		`{"id":"902","path":"a.go","body":"Test?","threadId":"t2"}]}}`)
	b.says(b.event(workstate.EventPullReviewComment, "again", `{"repo":"acme/shop","number":12,"author":{"login":"grace-h"},"comment":`+
		`{"id":"901","path":"login.go","line":14,"body":"Nil?","threadId":"t1"},"reviewId":"8"}`), "came before")
	first := a.take("fix") // for the short comment
	if c := first.Context.Conversation; len(c) != 5 || c[0].Body != "old 2" || c[4].Body != "old 6" || c[0].Author != "mallory" || c[0].Kind != protocol.ConversationComment {
		t.Errorf("the conversation before it is %+v", c)
	}
	b.event(workstate.EventPullReviewComment, "inline", `{"repo":"acme/shop","number":12,"author":{"login":"grace-h"},"comment":`+
		`{"id":"903","path":"login.go","line":15,"body":"As there.","threadId":"t1"}}`)
	a.ok(done("fix"))
	offer := a.take("fix")
	all := append(first.Context.Feedback, offer.Context.Feedback...)
	kinds := []protocol.FeedbackKind{}
	for _, f := range all {
		kinds = append(kinds, f.Kind)
	}
	if !slices.Equal(kinds, []protocol.FeedbackKind{protocol.FeedbackComment, protocol.FeedbackReview, protocol.FeedbackInlineComment}) {
		t.Fatalf("the feedback is %v", kinds)
	}
	review := all[1]
	if review.Actor != "grace-h" || review.State != "changes_requested" || review.Body != "Two things." || review.URL != "https://git.example.com/r/8" ||
		len(review.Comments) != 2 || review.Comments[0].ID != "901" || *review.Comments[0].Line != 14 || review.Comments[0].ThreadID != "t1" || review.Comments[1].Line != nil {
		t.Errorf("the review is %+v", review)
	}
	if inline := all[2]; inline.CommentID != "903" || len(inline.Comments) != 1 || inline.Comments[0].Path != "login.go" {
		t.Errorf("the inline comment is %+v", inline)
	}
	if c := offer.Context.Conversation; len(c) != 5 || c[4].Body != "No." {
		t.Errorf("the conversation before the review is %+v", c)
	}
	pr := offer.Context.Wake.PRs[0]
	if pr.Ref != "acme/shop#12" || pr.Review != "changes_requested" || pr.UnresolvedThreads != 2 || len(pr.Threads) != 2 || pr.Threads[0].Body != "Nil?" {
		t.Errorf("the wake has %+v", pr)
	}
	if s := offer.Context.Subjects; len(s) != 1 || s[0].HeadRef != "fix-login" || s[0].BaseRef != "main" || s[0].State != protocol.PullOpen || !*s[0].Own || *s[0].Draft {
		t.Errorf("the subjects are %+v", s)
	}
}

func TestAThreadOfAReviewIsResolvedAndOpenedAgain(t *testing.T) {
	b, a := pulled(t)
	open := func() int {
		t.Helper()
		return answered[protocol.PrListResult](a, protocol.PrList{State: protocol.ListAll, Limit: 5}).PRs[0].UnresolvedThreads
	}
	inline := func(id string) string {
		return `{"repo":"acme/shop","number":12,"author":{"login":"mallory"},"comment":{"id":"` + id + `","path":"a.go","body":"x","threadId":"t1"}}`
	}
	thread := `{"repo":"acme/shop","number":12,"threadId":"t1"}`
	b.event(workstate.EventPullReviewComment, "1", inline("1"))
	b.event(workstate.EventPullReviewComment, "2", inline("2"))
	if n := open(); n != 1 {
		t.Errorf("%d threads are open", n)
	}
	b.event(workstate.EventThreadResolved, "3", thread)
	b.event(workstate.EventPullReviewComment, "4", inline("3")) // an afterthought in a resolved thread
	if n := open(); n != 0 {
		t.Errorf("%d threads are open after they were resolved", n)
	}
	b.event(workstate.EventThreadUnresolved, "5", thread)
	if n := open(); n != 1 {
		t.Errorf("%d threads are open again", n)
	}
	a.quiet()
}

func TestFeedbackOnAPullRequestWithoutAnItemBeginsOne(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	b.event(workstate.EventPullChanged, "1", shopPull())
	b.says(b.event(workstate.EventPullCommented, "2", onPull("1", "Grace", "Why?")), "began")
	offer := a.takeNext()
	if w := offer.WorkItem; w.Kind != "review_feedback" || w.Subject == nil || w.Subject.Type != "pr" || w.Subject.Ref != "acme/shop#12" || !strings.Contains(w.Title, "Mend login") {
		t.Errorf("the item is %+v", w)
	}
	if f := offer.Context.Feedback; len(f) != 1 || f[0].Body != "Why?" {
		t.Errorf("the feedback is %+v", f)
	}
	a.handBack(offer.WorkItem.ID, protocol.HandbackDone)
	b.event(workstate.EventPullCommented, "3", onPull("2", "Grace", "And?"))
	if again := a.takeNext(); again.WorkItem.ID != offer.WorkItem.ID {
		t.Error("the second comment began another item")
	}
}

func TestFeedbackOnAPullRequestGoesToTheItemOfItsTicketAndItsAuthor(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	bob, _ := b.connect("bob")
	b.event(workstate.EventTicketChanged, "1", ticket12())
	b.apply("fix", aboutTicket("ACME-12"))
	a.take("fix")
	a.ok(done("fix"))
	// Bob has to review the pull request: it is what his work is about, but not his own.
	b.apply("look", of("bob"), func(f *model.ItemFacts) {
		f.Spec.Subject = &protocol.Subject{Type: "pr", Ref: "acme/shop#12"}
	})
	bob.take("look")
	b.says(b.event(workstate.EventPullChanged, "2", shopPull("fix-login", "acme-12-login")), "ticket ACME-12")
	b.says(b.event(workstate.EventPullReviewed, "3", `{"repo":"acme/shop","number":12,"review":{"id":"1","author":{"login":"bob"},"state":"approved"}}`), `"Title of fix"`)
	offer := a.take("fix")
	if f := offer.Context.Feedback; len(f) != 1 || f[0].Kind != protocol.FeedbackReview || f[0].Actor != "bob" {
		t.Errorf("the feedback is %+v", f)
	}
	if w := offer.Context.Wake; len(w.PRs) != 1 || w.PRs[0].Why.Role != protocol.WhyTrigger || w.PRs[0].Ticket != "ACME-12" || len(w.Tickets) != 1 || w.Tickets[0].Why.Role != protocol.WhySubject {
		t.Errorf("the wake is %+v", w)
	}
	b.event(workstate.EventPullCommented, "4", onPull("9", "ada", "Done."))
	bob.quiet()
}

func TestWhatIsSaidAboutFinishedWorkWakesNobody(t *testing.T) {
	for _, state := range []string{"merged", "closed"} {
		b, a := pulled(t)
		b.event(workstate.EventPullChanged, "2", shopPull(`"open"`, `"`+state+`"`))
		b.says(b.event(workstate.EventPullCommented, "3", onPull("1", "Grace", "Well done")), "finished")
		b.event(workstate.EventPullChecks, "4", checks("abc", "failure", "lint"))
		a.quiet()
	}
}

func checks(sha, state string, failing ...string) string {
	list := []string{}
	for _, name := range failing {
		list = append(list, fmt.Sprintf(`{"name":%q,"url":"https://ci.example.com/1","summary":"line 14"}`, name))
	}
	return fmt.Sprintf(`{"repo":"acme/shop","number":12,"sha":%q,"state":%q,"failing":[%s]}`, sha, state, strings.Join(list, ","))
}

func TestAnEndlessLoopOfFailingChecksCostsOneRound(t *testing.T) {
	b, a := pulled(t)
	b.event(workstate.EventPullChecks, "pending", checks("a", "pending"))
	a.quiet()
	rounds := 0
	for i := range 20 {
		b.event(workstate.EventPullChecks, fmt.Sprint("fail", i), checks("a", "failure", "lint", "test"))
		b.event(workstate.EventPullChecks, fmt.Sprint("again", i), checks("a", "failure", "test", "lint"))
		if i%2 == 0 {
			b.event(workstate.EventPullChecks, fmt.Sprint("flaky", i), checks("a", "success"))
		}
		if it := b.item("fix"); it.Round != nil {
			offer := a.take("fix")
			if f := offer.Context.Feedback; len(f) != 1 || f[0].Kind != protocol.FeedbackCIFailure || !strings.Contains(f[0].Body, "lint (https://ci.example.com/1): line 14") {
				t.Errorf("the feedback is %+v", f)
			}
			a.ok(done("fix"))
			rounds++
		}
	}
	if rounds != 1 {
		t.Errorf("the loop cost %d rounds", rounds)
	}
	b.event(workstate.EventPullChecks, "ok", checks("b", "success"))
	b.event(workstate.EventPullChecks, "broken", checks("c", "failure", "lint"))
	a.take("fix")
	if pr := answered[protocol.PrListResult](a, protocol.PrList{State: protocol.ListOpen, Limit: 1}).PRs[0]; pr.CI != protocol.ChecksFailure {
		t.Errorf("the checks are listed as %s", pr.CI)
	}
}

func TestCommentsOnADocumentReachItsAuthor(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	doc := protocol.Doc{ID: "d-88", Title: "How login works", URL: "https://docs.example.com/d/88"}
	remark := func(id string) string {
		return fmt.Sprintf(`{"doc":"d-88","anchorText":"an hour","comment":%s}`, comment(id, "Grace", "A day by now."))
	}
	b.apply("fix", aboutTicket("ACME-12"))
	a.take("fix")
	a.ok(protocol.DocLink{WorkItemID: "uid-fix", Doc: doc})
	a.ok(done("fix"))
	b.event(workstate.EventDocCommented, "1", remark("c1"))
	offer := a.take("fix")
	f := offer.Context.Feedback
	if len(f) != 1 || f[0].Kind != protocol.FeedbackDocComment || f[0].DocID != "d-88" || f[0].AnchorText != "an hour" || f[0].CommentID != "c1" {
		t.Errorf("the feedback is %+v", f)
	}
	if docs := offer.Context.Wake.Docs; len(docs) != 1 || docs[0].Ticket != "ACME-12" || docs[0].Why.Role != protocol.WhyTrigger {
		t.Errorf("the wake's documents are %+v", docs)
	}
	a.ok(done("fix"))
	// A page of notes belongs to a person, and to no item.
	a.ok(protocol.NotesChanged{Change: protocol.NoteAdded, Note: "secret thoughts", Doc: &protocol.Doc{ID: "notes-ada", Title: "Notes", URL: "https://docs.example.com/n"}})
	b.event(workstate.EventDocCommented, "2", strings.Replace(remark("c2"), "d-88", "notes-ada", 1))
	if w := a.takeNext().WorkItem; w.Kind != "review_feedback" || w.Subject.Type != "doc" || w.Subject.Ref != "notes-ada" || w.Title != "Feedback on notes-ada: Notes" {
		t.Errorf("the item about the notes is %+v", w)
	}
	b.says(b.event(workstate.EventDocCommented, "3", strings.Replace(remark("c3"), "d-88", "unknown", 1)), "nobody of the team owns unknown")
	b.event(workstate.EventDocChanged, "4", `{"id":"d-88","title":"Renamed","url":"https://docs.example.com/d/88","author":{"login":"acme-bot"}}`)
	b.event(workstate.EventDocCommented, "5", remark("c4")) // still ada's
	b.event(workstate.EventDocCommented, "6", strings.Replace(remark("c5"), `"Grace"`, `"ada"`, 1))
	if it := b.item("fix"); it.State != protocol.StateQueued {
		t.Errorf("after another comment the item is %s", it.State)
	}
}

func TestATicketInReviewGoesToWhoeverAskedForItAndTheEventTellsSo(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	b.apply("fix")
	a.take("fix")
	a.ok(protocol.WorkMade{WorkItemID: "uid-fix", Ticket: "ACME-12"})
	a.ok(done("fix"))
	b.event(workstate.EventTicketChanged, "1", ticket12())
	a.quiet()
	b.event(workstate.EventTicketChanged, "2", ticket12("ready", "review"))
	act := a.wait(func(f protocol.Frame) bool { return f.Message.Type() == protocol.TypeAct }).Message.(protocol.Act)
	if len(act.Ops) != 1 || !strings.Contains(string(act.Ops[0]), `"assign"`) || !strings.Contains(string(act.Ops[0]), `"grace"`) {
		t.Errorf("the act is %s", act.Ops)
	}
	a.ok(protocol.ActResult{ID: act.ID, OK: true, Results: []string{"ACME-12 is grace's now"}})
	b.event(workstate.EventTicketChanged, "3", ticket12("ready", "review", "Login", "The login"))
	a.quiet()
	b.must(b.store.View(t.Context(), func(r store.Reader) error {
		event, err := r.Event(shop, "/test", "2")
		if trace := strings.Join(event.Trace, "\n"); !strings.Contains(trace, "ready became review") || !strings.Contains(trace, "ACME-12 is grace's now") {
			t.Errorf("the trace of the event is %q", event.Trace)
		}
		return err
	}))
}

func TestOlderEventsThatComeLateChangeNothing(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	at := func(kind, id, time, data string) string {
		got := b.post(eventsPath, fmt.Sprintf(`{"specversion":"1.0","type":%q,"source":"/test","id":%q,"time":%q,"data":%s}`, kind, id, time, data))
		if got.status != 202 {
			t.Fatalf("answered with %d %s", got.status, got.body)
		}
		return strings.Join(got.events[0].Trace, "\n")
	}
	const early, late, future = "2026-01-31T09:00:00Z", "2026-01-31T10:00:00Z", "2999-01-01T00:00:00Z"
	at(workstate.EventPullChanged, "1", late, shopPull(`"open"`, `"merged"`))
	b.says(at(workstate.EventPullChanged, "2", early, shopPull()), "older than what is known")
	at(workstate.EventTicketChanged, "3", future, ticket12("ready", "done"))
	b.says(b.event(workstate.EventTicketChanged, "4", ticket12()), "done became ready") // nothing comes from the future
	at(workstate.EventPullChecks, "5", late, checks("b", "success"))
	b.says(at(workstate.EventPullChecks, "6", early, checks("a", "failure", "lint")), "older than what is known")
	if prs := answered[protocol.PrListResult](a, protocol.PrList{State: protocol.ListAll, Limit: 9}).PRs; len(prs) != 1 || prs[0].State != protocol.PullMerged || prs[0].CI != protocol.ChecksSuccess {
		t.Errorf("the pull requests are %+v", prs)
	}
}

func TestWhatTheOfficeDoesNotKnowIsKeptAndChangesNothing(t *testing.T) {
	b := open(t, taking)
	a, _ := b.connect("ada")
	b.says(b.event("deploy.finished", "1", `{"to":["anything"]}`), "kept, and change nothing")
	b.says(b.event(workstate.EventPullChecks, "2", checks("a", "failure", "lint")), "send pr.changed first")
	b.says(b.event(workstate.EventPullCommented, "3", onPull("1", "Grace", "Why?")), "nobody of the team owns acme/shop#12")
	a.quiet()
	b.must(b.store.View(t.Context(), func(r store.Reader) error {
		event, err := r.Event(shop, "/test", "1")
		if string(event.Data) != `{"to":["anything"]}` || event.Type != "deploy.finished" {
			t.Errorf("it is kept as %+v", event)
		}
		return err
	}))
}
