package protocol

// This file holds the messages between people of the team: questions, answers
// and the roster. teamconfig.go has the config that Welcome carries.

// AnswerStatus is where a question stands.
type AnswerStatus string

// The states of a question.
const (
	AskAnswered AnswerStatus = "answered"
	AskPending  AnswerStatus = "pending"
)

func (AnswerStatus) values() []string { return []string{string(AskAnswered), string(AskPending)} }

// MemberStatus is what a person is doing.
type MemberStatus string

// The states of a person.
const (
	// MemberIdle is connected and has nothing to do.
	MemberIdle MemberStatus = "idle"
	// MemberWorking has an active item.
	MemberWorking MemberStatus = "working"
	// MemberPaused gets no offers, by a usage limit or because someone said so.
	MemberPaused MemberStatus = "paused"
	// MemberOffline is not connected.
	MemberOffline MemberStatus = "offline"
)

func (MemberStatus) values() []string {
	return []string{string(MemberIdle), string(MemberWorking), string(MemberPaused), string(MemberOffline)}
}

// Ask puts a question to a teammate. Sent by the agent; answered by AskResult
// or Error. The same question again, from the same item in the same words, is
// no new question: it fetches the answer.
type Ask struct {
	// To is a handle.
	To       string `json:"to"`
	Question string `json:"question"`
	// WorkItemID is the item the asker is working on.
	WorkItemID string `json:"workItemId,omitzero"`
}

// AskResult tells where a question stands. Sent by the office.
type AskResult struct {
	// ID of the question, which is the id of its work item.
	ID     string       `json:"id"`
	To     string       `json:"to"`
	Status AnswerStatus `json:"status"`
	// Answer is there once Status is AskAnswered.
	Answer string `json:"answer,omitzero"`
}

// Answer answers a question that came as a work item. Sent by the agent;
// answered by Ack or Error.
type Answer struct {
	QuestionID string `json:"questionId"`
	Answer     string `json:"answer"`
}

// Roster asks who is on the team and what they do. Sent by the agent; answered
// by RosterResult or Error.
type Roster struct{}

// RosterResult is the team. Sent by the office.
type RosterResult struct {
	Members []Member `json:"members"`
	// Humans are those the team trusts.
	Humans []RosterHuman `json:"humans,omitzero"`
}

// Member is a person of the team.
type Member struct {
	Handle string `json:"handle"`
	Name   string `json:"name"`
	// Role is the role's name; Title and Summary are how to show it.
	Role    string       `json:"role"`
	Title   string       `json:"title,omitzero"`
	Summary string       `json:"summary,omitzero"`
	Status  MemberStatus `json:"status"`
	// Current is what the person works on, in words.
	Current string `json:"current,omitzero"`
	// Usage is the fullest usage window, if one was reported lately.
	Usage *MemberUsage `json:"usage,omitzero"`
}

// MemberUsage is a person's fullest usage window.
type MemberUsage struct {
	// Window is the window's name.
	Window string `json:"window"`
	// Utilization is the part that is used: 0 none, 1 all of it.
	Utilization float64 `json:"utilization"`
	ResetsAt    string  `json:"resetsAt,omitzero" wire:"time"`
}

// RosterHuman is a trusted human of the team.
type RosterHuman struct {
	Name string `json:"name"`
}

// Type returns TypeAsk.
func (Ask) Type() Type { return TypeAsk }

// Type returns TypeAskResult.
func (AskResult) Type() Type { return TypeAskResult }

// Type returns TypeAnswer.
func (Answer) Type() Type { return TypeAnswer }

// Type returns TypeRoster.
func (Roster) Type() Type { return TypeRoster }

// Type returns TypeRosterResult.
func (RosterResult) Type() Type { return TypeRosterResult }
