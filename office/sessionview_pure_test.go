package office

// This file tests the decisions of session objects and streams that need no office: what an event is called, who owns a repository, what is
// kept secret, how deltas are merged.

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

func TestWhichEventsTheContractHasAWordFor(t *testing.T) {
	said := func(kind protocol.FeedbackKind, url string) model.Feedback {
		return model.Feedback{Feedback: protocol.Feedback{Kind: kind, Actor: "noor", URL: url}}
	}
	pull := model.Pull{Repo: "harbour/lights", Number: 12, Title: "A lamp", Head: "lamp", URL: "https://github.com/harbour/lights/pull/12"}
	elsewhere := pull
	elsewhere.URL = "https://git.example.com/harbour/lights/pulls/12"
	issue := model.Ticket{Key: "harbour/lights#7", Title: "Dark", URL: "https://github.example.com/harbour/lights/issues/7"}
	linear := model.Ticket{Key: "LIT-4", Title: "Dark", URL: "https://linear.app/harbour/issue/LIT-4/dark"}
	tracker := model.Ticket{Key: "LIT-4", Title: "Dark", URL: "https://tracker.example.com/browse/LIT-4"}
	inThread := protocol.Origin{Channel: "C1", Thread: "1.1", Requester: protocol.Requester{ID: "U1"}}
	actor := &feed.Actor{Name: "noor"}
	for name, test := range map[string]struct {
		got  *feed.Event
		want feed.EventOf
	}{
		"a comment on a pull request of GitHub": {pullEvent(said(protocol.FeedbackComment, "https://github.com/c"), pull), feed.GitHubPullRequest{
			Action: "commented", Actor: actor, Repository: "harbour/lights", Branch: "lamp", Number: 12, Title: "A lamp", URL: "https://github.com/c",
		}},
		"a comment on a line without a page of its own": {pullEvent(said(protocol.FeedbackInlineComment, ""), pull), feed.GitHubPullRequest{
			Action: "review_commented", Actor: actor, Repository: "harbour/lights", Branch: "lamp", Number: 12, Title: "A lamp", URL: pull.URL,
		}},
		"failing checks, of which too little is known": {pullEvent(said(protocol.FeedbackCIFailure, ""), pull), nil},
		"a review at another code host":                {pullEvent(said(protocol.FeedbackReview, ""), elsewhere), nil},
		"a comment on an issue of GitHub": {ticketEvent(said(protocol.FeedbackTicketComment, ""), issue), feed.GitHubIssue{
			Action: "commented", Actor: actor, Repository: "harbour/lights", Number: 7, Title: "Dark", URL: issue.URL,
		}},
		"a comment on an issue of Linear": {ticketEvent(said(protocol.FeedbackTicketComment, ""), linear), feed.LinearIssue{
			Action: "commented", Actor: actor, Identifier: &linear.Key, Number: 4, Title: "Dark", URL: linear.URL,
		}},
		"a comment in another tracker": {ticketEvent(said(protocol.FeedbackTicketComment, ""), tracker), nil},
		"a message of Slack in a thread": {slackEvent(inThread, "1.2"), feed.SlackMessage{
			Action: "app_mention", Actor: &feed.Actor{Name: "U1"}, ChannelID: "C1", MessageTS: "1.2", ThreadTS: new("1.1"),
			URL: "https://slack.com/app_redirect?channel=C1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got feed.EventOf
			if test.got != nil {
				got = test.got.Of
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("it is another event: %s", diff)
			}
		})
	}
}

func TestWhoOwnsARepository(t *testing.T) {
	for address, want := range map[string][2]string{
		"https://github.com/harbour/lights.git": {"harbour", "lights"}, "https://git.example.com/deep/group/lights/": {"deep/group", "lights"},
		"git@github.com:harbour/lights.git": {"harbour", "lights"}, "ssh://git@git.example.com:2222/harbour/lights": {"harbour", "lights"},
		"file:///srv/git/lights.git": {"", "named"}, "/srv/git/lights": {"", "named"}, "https://git.example.com/lights.git": {"", "named"},
		"": {"", "named"},
	} {
		t.Run(address, func(t *testing.T) {
			owner, name := ownerOf(protocol.TeamRepository{Name: "named", URL: address})
			if owner != want[0] || name != want[1] {
				t.Errorf("it is %q of %q", name, owner)
			}
		})
	}
}

func TestWhatASessionIsStartedWithHoldsNoSecret(t *testing.T) {
	const secret = "hunter2"
	repository := protocol.TeamRepository{Name: "a", URL: "https://u:" + secret + "@git.example.com/o/a"}
	team := model.Team{Config: protocol.TeamConfig{Repositories: []protocol.TeamRepository{repository}}}
	person := model.Person{
		Command: []string{"run", "--key=" + secret},
		MCPServers: []protocol.TeamMCPServer{
			{Name: "p", Command: "p", Env: map[string]string{"A": secret, "B": "x ${FIRST} ${SECOND}"}},
			{Name: "r", URL: "https://u:" + secret + "@r.example/mcp?key=" + secret + "#" + secret, Headers: map[string]string{"X": "${FIRST}" + secret}},
			{Name: "w", URL: "://" + secret},
		},
	}
	f := freeze(team, person, model.Item{})
	body, err := json.Marshal(f)
	if err != nil || strings.Contains(string(body), secret) {
		t.Errorf("%v: %s", err, body)
	}
	var read frozen
	if err := json.Unmarshal(body, &read); err != nil || cmp.Diff(f, read) != "" {
		t.Errorf("it is not read as it was written: %v %s", err, cmp.Diff(f, read))
	}
	if diff := cmp.Diff([]string{"FIRST", "SECOND"}, f.Variables); diff != "" {
		t.Errorf("the variables are %s", diff)
	}
}

func TestHowDeltasAreMerged(t *testing.T) {
	text := func(kind, s string) feed.Delta { return feed.Delta{Kind: kind, Text: &s} }
	count := func(n int64) feed.Delta { return feed.Delta{Kind: feed.DeltaText, OutputTokens: &n} }
	for name, test := range map[string]struct {
		in, want []feed.Delta
	}{
		"texts go on":                   {[]feed.Delta{text("text", "a"), text("text", "b")}, []feed.Delta{text("text", "ab")}},
		"thinking replaces":             {[]feed.Delta{text("thinking", "a"), text("thinking", "")}, []feed.Delta{text("thinking", "")}},
		"null leaves thinking as it is": {[]feed.Delta{text("thinking", "a"), {Kind: "thinking"}}, []feed.Delta{text("thinking", "a")}},
		"counts alone keep the last":    {[]feed.Delta{count(1), count(2)}, []feed.Delta{count(2)}},
		"a count joins a text": {[]feed.Delta{text("text", "a"), count(3)},
			[]feed.Delta{{Kind: "text", Text: new("a"), OutputTokens: new(int64(3))}}},
		"kinds keep their order": {[]feed.Delta{text("thinking", "a"), text("text", "b"), text("thinking", "c")},
			[]feed.Delta{text("thinking", "a"), text("text", "b"), text("thinking", "c")}},
		"unknown kinds are left alone": {[]feed.Delta{text("mood", "a"), text("mood", "b")}, []feed.Delta{text("mood", "a"), text("mood", "b")}},
	} {
		t.Run(name, func(t *testing.T) {
			var d deltas
			for _, next := range test.in {
				d.merge("t", next)
			}
			var got []feed.Delta
			for _, w := range d.waiting {
				got = append(got, w.delta)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("they are merged otherwise: %s", diff)
			}
		})
	}
	var d deltas
	d.merge("t0", text("text", "a"))
	d.merge("t1", text("text", "b"))
	if len(d.waiting) != 2 {
		t.Error("deltas of two turns became one")
	}
}

func TestAReasonFitsIntoAClose(t *testing.T) {
	for _, reason := range []string{"short", strings.Repeat("x", 123), strings.Repeat("x", 124), strings.Repeat("ü", 100)} {
		got := cutReason(reason)
		if len(got) > 123 || !utf8.ValidString(got) || len(reason) <= 123 && got != reason {
			t.Errorf("%q becomes %q", reason, got)
		}
	}
}

func TestWhoWaitsForAPageGivesUpWithTheRequest(t *testing.T) {
	l := live{readers: make(chan struct{}, 1)}
	free, err := l.reader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.reader(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it waits on: %v", err)
	}
	free()
	if free, err = l.reader(t.Context()); err != nil {
		t.Errorf("there is no room again: %v", err)
	}
	free()
}
