package feed

// This file has the triggers of an agent: when it starts sessions by itself.

import (
	"encoding/json"
	"fmt"
)

// Trigger starts sessions: on a schedule, or on events. One of both is filled.
type Trigger struct {
	Cron  *CronTrigger
	React *ReactTrigger
}

// CronTrigger starts sessions on a schedule in cron's notation.
type CronTrigger struct {
	Schedule string `json:"schedule"`
}

// ReactTrigger starts sessions on events. Nil kinds of events start none.
type ReactTrigger struct {
	CheckRun     *CheckRunWatch    `json:"check_run"`
	Issue        *IssueWatch       `json:"issue"`
	LinearIssue  *LinearIssueWatch `json:"linear_issue"`
	PullRequest  *PullRequestWatch `json:"pull_request"`
	Push         *PushWatch        `json:"push"`
	Release      *ReleaseWatch     `json:"release"`
	Sentry       *SentryWatch      `json:"sentry"`
	SlackChannel *struct{}         `json:"slack_channel"`
}

// MarshalJSON writes the trigger that is filled, with its type first.
func (t Trigger) MarshalJSON() ([]byte, error) {
	switch {
	case t.Cron != nil:
		return marshalTyped("cron", t.Cron)
	case t.React != nil:
		return marshalTyped("react", t.React)
	}
	return nil, fmt.Errorf("a trigger has neither a schedule nor events: fill Cron or React")
}

// UnmarshalJSON reads either trigger.
func (t *Trigger) UnmarshalJSON(data []byte) error {
	*t = Trigger{}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	switch head.Type {
	case "cron":
		return json.Unmarshal(data, &t.Cron)
	case "react":
		return json.Unmarshal(data, &t.React)
	}
	return fmt.Errorf("a trigger's type is cron or react, not %q", head.Type)
}

// CheckRunWatch watches checks that fail.
type CheckRunWatch struct {
	Names        List[string] `json:"names"`
	Branch       List[string] `json:"branch"`
	On           List[string] `json:"on"`
	Repositories WatchScope   `json:"repositories"`
	For          WatchedBy    `json:"for"`
}

// IssueWatch watches issues that are opened, closed or commented.
type IssueWatch struct {
	Labels       List[string] `json:"labels"`
	On           List[string] `json:"on"`
	Repositories WatchScope   `json:"repositories"`
	For          WatchedBy    `json:"for"`
}

// LinearIssueWatch watches issues of Linear that are opened.
type LinearIssueWatch struct {
	On  List[string] `json:"on"`
	For WatchedBy    `json:"for"`
}

// PullRequestWatch watches pull requests that are opened, pushed, merged, closed, review_submitted or commented.
type PullRequestWatch struct {
	Base         List[string] `json:"base"`
	Head         List[string] `json:"head"`
	Draft        *bool        `json:"draft"`
	Labels       List[string] `json:"labels"`
	Paths        List[string] `json:"paths"`
	On           List[string] `json:"on"`
	Repositories WatchScope   `json:"repositories"`
	For          WatchedBy    `json:"for"`
}

// PushWatch watches pushes to branches.
type PushWatch struct {
	Branch       List[string] `json:"branch"`
	Paths        List[string] `json:"paths"`
	Repositories WatchScope   `json:"repositories"`
	For          WatchedBy    `json:"for"`
}

// ReleaseWatch watches releases that are published.
type ReleaseWatch struct {
	Tag          List[string] `json:"tag"`
	Prerelease   *bool        `json:"prerelease"`
	On           List[string] `json:"on"`
	Repositories WatchScope   `json:"repositories"`
	For          WatchedBy    `json:"for"`
}

// SentryWatch watches alerts: issue_alert, metric_alert.
type SentryWatch struct {
	Projects List[string] `json:"projects"`
	On       List[string] `json:"on"`
}

// WatchedBy says whose deeds count.
type WatchedBy struct {
	Users Accounts     `json:"users"`
	Bots  Accounts     `json:"bots"`
	Teams List[string] `json:"teams"`
}

// Accounts is a set of accounts: those of Include but not of Exclude. With Short, Include alone is written.
type Accounts struct {
	Include Included
	Exclude List[string]
	Short   bool
}

// Included is everybody, nobody, or a list of names where All is nil.
type Included struct {
	All   *bool
	Names List[string]
}

type accountsWhole struct {
	Include Included     `json:"include"`
	Exclude List[string] `json:"exclude"`
}

// MarshalJSON writes the set.
func (a Accounts) MarshalJSON() ([]byte, error) {
	if a.Short {
		return marshal(a.Include)
	}
	return marshal(accountsWhole{a.Include, a.Exclude})
}

// UnmarshalJSON reads the set in full or in short.
func (a *Accounts) UnmarshalJSON(data []byte) error {
	*a = Accounts{}
	if len(data) > 0 && data[0] != '{' {
		a.Short = true
		return json.Unmarshal(data, &a.Include)
	}
	var whole accountsWhole
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	a.Include, a.Exclude = whole.Include, whole.Exclude
	return nil
}

// MarshalJSON writes true, false or the names.
func (i Included) MarshalJSON() ([]byte, error) {
	if i.All != nil {
		return marshal(*i.All)
	}
	return marshal(i.Names)
}

// UnmarshalJSON reads true, false or names.
func (i *Included) UnmarshalJSON(data []byte) error {
	*i = Included{}
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, &i.Names)
	}
	return json.Unmarshal(data, &i.All)
}

// WatchScope is a set of repositories by name: those of Include, or all where it is empty, but not those of Exclude. With Short, Include
// alone is written.
type WatchScope struct {
	Include List[string]
	Exclude List[string]
	Short   bool
}

type scopeWhole struct {
	Include List[string] `json:"include"`
	Exclude List[string] `json:"exclude"`
}

// MarshalJSON writes the set.
func (w WatchScope) MarshalJSON() ([]byte, error) {
	if w.Short {
		return marshal(w.Include)
	}
	return marshal(scopeWhole{w.Include, w.Exclude})
}

// UnmarshalJSON reads the set in full or in short.
func (w *WatchScope) UnmarshalJSON(data []byte) error {
	*w = WatchScope{}
	if len(data) > 0 && data[0] == '[' {
		w.Short = true
		return json.Unmarshal(data, &w.Include)
	}
	var whole scopeWhole
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	w.Include, w.Exclude = whole.Include, whole.Exclude
	return nil
}
