package feed

// This file has the event of the session object: what happened outside that started the session.

import (
	"encoding/json"
	"fmt"
)

// Event is an event from outside. Of is one of the structs of this file, or an OtherEvent.
type Event struct {
	Of EventOf
}

// EventOf is one kind of event.
type EventOf interface {
	// EventType is the type that it has on the wire.
	EventType() string
}

// Actor is who caused an event. IsBot is nil where nobody knows.
type Actor struct {
	Name      string  `json:"name"`
	AvatarURL *string `json:"avatar_url"`
	IsBot     *bool   `json:"is_bot"`
}

// GitHubPullRequest is something that happened to a pull request. Action is opened, pushed, merged, closed, review_submitted, commented
// or review_commented.
type GitHubPullRequest struct {
	Action     string `json:"action"`
	Actor      *Actor `json:"actor"`
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Number     int64  `json:"number"`
	Title      string `json:"title"`
	URL        string `json:"url"`
}

// GitHubIssue is something that happened to an issue. Action is opened, closed or commented.
type GitHubIssue struct {
	Action     string `json:"action"`
	Actor      *Actor `json:"actor"`
	Repository string `json:"repository"`
	Number     int64  `json:"number"`
	Title      string `json:"title"`
	URL        string `json:"url"`
}

// GitHubPush is a push. Before and After are commits.
type GitHubPush struct {
	Actor      *Actor `json:"actor"`
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Before     string `json:"before"`
	After      string `json:"after"`
	URL        string `json:"url"`
}

// GitHubCheckRun is a check. Action is failed.
type GitHubCheckRun struct {
	Action            string  `json:"action"`
	Actor             *Actor  `json:"actor"`
	Repository        string  `json:"repository"`
	Branch            *string `json:"branch"`
	HeadSHA           string  `json:"head_sha"`
	Name              string  `json:"name"`
	Conclusion        *string `json:"conclusion"`
	PullRequestNumber *int64  `json:"pull_request_number"`
	URL               string  `json:"url"`
}

// GitHubRelease is a release. Action is published.
type GitHubRelease struct {
	Action     string  `json:"action"`
	Actor      *Actor  `json:"actor"`
	Repository string  `json:"repository"`
	Tag        string  `json:"tag"`
	Name       *string `json:"name"`
	Prerelease bool    `json:"prerelease"`
	URL        string  `json:"url"`
}

// LinearIssue is something that happened to an issue of Linear. Action is opened or commented.
type LinearIssue struct {
	Action     string  `json:"action"`
	Actor      *Actor  `json:"actor"`
	Identifier *string `json:"identifier"`
	Number     int64   `json:"number"`
	Title      string  `json:"title"`
	URL        string  `json:"url"`
}

// SlackMessage is a message in a chat. Action is message or app_mention.
type SlackMessage struct {
	Action      string  `json:"action"`
	Actor       *Actor  `json:"actor"`
	ChannelID   string  `json:"channel_id"`
	ChannelName *string `json:"channel_name"`
	MessageTS   string  `json:"message_ts"`
	ThreadTS    *string `json:"thread_ts"`
	URL         string  `json:"url"`
}

// SlackChannelCreated is a new channel of a chat.
type SlackChannelCreated struct {
	Actor       *Actor  `json:"actor"`
	ChannelID   string  `json:"channel_id"`
	ChannelName *string `json:"channel_name"`
	URL         string  `json:"url"`
}

// SentryAlert is an alert. Action is issue_alert or metric_alert.
type SentryAlert struct {
	Action           string  `json:"action"`
	Actor            *Actor  `json:"actor"`
	OrganizationSlug string  `json:"organization_slug"`
	ProjectSlug      *string `json:"project_slug"`
	Title            *string `json:"title"`
	URL              *string `json:"url"`
}

// OtherEvent is an event of a type that this package does not know, as it came. It is only ever read.
type OtherEvent struct {
	Type string
	Raw  json.RawMessage
}

// EventType of the kind.
func (GitHubPullRequest) EventType() string { return "github.pull_request" }

// EventType of the kind.
func (GitHubIssue) EventType() string { return "github.issue" }

// EventType of the kind.
func (GitHubPush) EventType() string { return "github.push" }

// EventType of the kind.
func (GitHubCheckRun) EventType() string { return "github.check_run" }

// EventType of the kind.
func (GitHubRelease) EventType() string { return "github.release" }

// EventType of the kind.
func (LinearIssue) EventType() string { return "linear.issue" }

// EventType of the kind.
func (SlackMessage) EventType() string { return "slack.message" }

// EventType of the kind.
func (SlackChannelCreated) EventType() string { return "slack.channel_created" }

// EventType of the kind.
func (SentryAlert) EventType() string { return "sentry.alert" }

// EventType of the event as it came.
func (o OtherEvent) EventType() string { return o.Type }

// MarshalJSON writes the event with its type first.
func (e Event) MarshalJSON() ([]byte, error) {
	switch of := e.Of.(type) {
	case nil:
		return nil, fmt.Errorf("an event has no body: fill Of, or leave the event out")
	case OtherEvent:
		return of.Raw, nil
	default:
		return marshalTyped(of.EventType(), of)
	}
}

// UnmarshalJSON reads any event.
func (e *Event) UnmarshalJSON(data []byte) error {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	read, known := eventReaders[head.Type]
	if !known {
		e.Of = OtherEvent{head.Type, append(json.RawMessage(nil), data...)}
		return nil
	}
	of, err := read(data)
	e.Of = of
	return err
}

var eventReaders = map[string]func([]byte) (EventOf, error){
	GitHubPullRequest{}.EventType():   readEvent[GitHubPullRequest],
	GitHubIssue{}.EventType():         readEvent[GitHubIssue],
	GitHubPush{}.EventType():          readEvent[GitHubPush],
	GitHubCheckRun{}.EventType():      readEvent[GitHubCheckRun],
	GitHubRelease{}.EventType():       readEvent[GitHubRelease],
	LinearIssue{}.EventType():         readEvent[LinearIssue],
	SlackMessage{}.EventType():        readEvent[SlackMessage],
	SlackChannelCreated{}.EventType(): readEvent[SlackChannelCreated],
	SentryAlert{}.EventType():         readEvent[SentryAlert],
}

func readEvent[T EventOf](data []byte) (EventOf, error) {
	var t T
	err := json.Unmarshal(data, &t)
	return t, err
}
