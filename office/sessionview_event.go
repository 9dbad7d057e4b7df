package office

// This file finds out which event outside began a session. The contract has words for some only, and they are used where all that they take
// is known.

import (
	"cmp"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/model"
	"github.com/bullpen-dev/bullpen/office/protocol"
	"github.com/bullpen-dev/bullpen/office/store"
)

// eventOf gives the event that an item began with; nil for an item that somebody made, and for events that the contract has no word for.
func eventOf(r store.Reader, it model.Item) (*feed.Event, error) {
	switch {
	case it.Birth == nil:
		return nil, nil
	case it.IsChat():
		return chatEvent(r, it)
	case it.Spec.Subject == nil || it.Spec.Kind != model.KindAssigned && it.Spec.Kind != model.KindReviewFeedback:
		return nil, nil
	}
	said, err := bornOf(r, it)
	if err != nil || said == nil {
		return nil, err
	}
	switch said.Place.Type {
	case model.RefPull:
		pull, err := found(r.Pull(it.TeamKey(), said.Place.Ref))
		if err != nil || pull == nil {
			return nil, err
		}
		return pullEvent(*said, *pull), nil
	case model.RefTicket:
		ticket, err := found(r.Ticket(it.TeamKey(), said.Place.Ref))
		if err != nil || ticket == nil {
			return nil, err
		}
		return ticketEvent(*said, *ticket), nil
	}
	return nil, nil
}

// bornOf gives the feedback with which an item began, in one transaction; nil where it began with something else.
func bornOf(r store.Reader, it model.Item) (*model.Feedback, error) {
	feedback, err := r.Feedback(it.ID, 0)
	if err != nil || len(feedback) == 0 || !feedback[0].At.Equal(it.CreatedAt) {
		return nil, err
	}
	return &feedback[0], nil
}

// pullActions are the contract's words for what was said at a pull request.
var pullActions = map[protocol.FeedbackKind]string{
	protocol.FeedbackComment: "commented", protocol.FeedbackReview: "review_submitted", protocol.FeedbackInlineComment: "review_commented",
}

// pullEvent is something said at a pull request of GitHub.
func pullEvent(said model.Feedback, p model.Pull) *feed.Event {
	action := pullActions[said.Feedback.Kind]
	if action == "" || !onGitHub(p.URL) || p.Head == "" {
		return nil
	}
	return &feed.Event{Of: feed.GitHubPullRequest{
		Action: action, Actor: actorOf(said.Feedback.Actor), Repository: p.Repo, Branch: p.Head, Number: int64(p.Number), Title: p.Title,
		URL: cmp.Or(said.Feedback.URL, p.URL),
	}}
}

// ticketEvent is a comment on an issue of GitHub or Linear.
func ticketEvent(said model.Feedback, t model.Ticket) *feed.Event {
	if said.Feedback.Kind != protocol.FeedbackTicketComment {
		return nil
	}
	actor, page := actorOf(said.Feedback.Actor), cmp.Or(said.Feedback.URL, t.URL)
	switch {
	case onGitHub(t.URL):
		repo, number, ok := splitKey(t.Key, "#")
		if ok && strings.Contains(repo, "/") {
			return &feed.Event{Of: feed.GitHubIssue{
				Action: "commented", Actor: actor, Repository: repo, Number: number, Title: t.Title, URL: page,
			}}
		}
	case hostOf(t.URL) == "linear.app":
		if _, number, ok := splitKey(t.Key, "-"); ok {
			return &feed.Event{Of: feed.LinearIssue{
				Action: "commented", Actor: actor, Identifier: &t.Key, Number: number, Title: t.Title, URL: page,
			}}
		}
	}
	return nil
}

// Ids of channels and messages in Slack, by which its messages are told from those of other chats.
var (
	slackChannel = regexp.MustCompile(`^[CDG][A-Z0-9]{8,20}$`)
	slackMessage = regexp.MustCompile(`^[0-9]{10}\.[0-9]{6}$`)
)

// chatEvent is the message of Slack that began a chat session.
func chatEvent(r store.Reader, it model.Item) (*feed.Event, error) {
	origin := *it.Origin
	if !slackChannel.MatchString(origin.Channel) || !slackMessage.MatchString(origin.Thread) {
		return nil, nil
	}
	remarks, _, err := r.Remarks(it.TeamKey(), model.Place{Type: model.RefThread, Ref: model.ThreadRef(origin.Channel, origin.Thread)}, 0)
	if err != nil {
		return nil, err
	}
	for _, said := range remarks {
		if said.At.Equal(it.CreatedAt) && slackMessage.MatchString(said.ID) {
			return slackEvent(origin, said.ID), nil
		}
	}
	return nil, nil
}

func slackEvent(origin protocol.Origin, message string) *feed.Event {
	e := feed.SlackMessage{
		Action: "app_mention", Actor: actorOf(cmp.Or(origin.Requester.Name, origin.Requester.ID)), ChannelID: origin.Channel, MessageTS: message,
		// The link that leads to a channel whatever the workspace; where the message is in it, nobody told.
		URL: "https://slack.com/app_redirect?" + url.Values{"channel": {origin.Channel}}.Encode(),
	}
	if origin.Direct || origin.Participant {
		e.Action = "message"
	}
	if origin.Thread != message {
		e.ThreadTS = &origin.Thread
	}
	return &feed.Event{Of: e}
}

func actorOf(name string) *feed.Actor {
	if name == "" {
		return nil
	}
	return &feed.Actor{Name: name}
}

// onGitHub says whether a page is one of GitHub's, or of an installation of it that is named so.
func onGitHub(page string) bool {
	host := hostOf(page)
	return host == "github.com" || strings.HasPrefix(host, "github.")
}

func hostOf(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// splitKey takes the number at the end of a ticket's key off.
func splitKey(key, separator string) (before string, number int64, ok bool) {
	at := strings.LastIndex(key, separator)
	if at < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseInt(key[at+len(separator):], 10, 64)
	return key[:at], number, err == nil && number > 0
}
