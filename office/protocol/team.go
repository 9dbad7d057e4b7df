package protocol

// This file holds the messages between people of the team: questions, answers
// and the roster. teamconfig.go has the config that Welcome carries.

// AnswerStatus is where a question stands.
type AnswerStatus string

// The states of a question.
const (
	// AskAnswered has its answer beside it.
	AskAnswered AnswerStatus = "answered"
	// AskPending waits for the other person.
	AskPending AnswerStatus = "pending"
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

// Ask puts a question to a teammate. Sent by the agent; answered by [AskResult]
// or [Error]. The same question again, from the same item in the same words,
// is no new question: it fetches the answer.
type Ask struct {
	// To is the handle of a person, or the name of a role.
	To string `json:"to"`
	// Question is what is asked, with all that is needed to answer it.
	Question string `json:"question"`
	// WorkItemID is the item that the asker is working on.
	WorkItemID string `json:"workItemId,omitzero"`
}

// AskResult tells where a question stands. Sent by the office; it takes no
// answer.
type AskResult struct {
	// ID names the question; it is the id of its work item.
	ID string `json:"id"`
	// To is whom the question went to.
	To string `json:"to"`
	// Status is where it stands.
	Status AnswerStatus `json:"status"`
	// Answer is there once the question is answered.
	Answer string `json:"answer,omitzero"`
}

// Answer answers a question that came as a work item. Sent by the agent;
// answered by [Ack] or [Error].
type Answer struct {
	// QuestionID is the id of the question's work item.
	QuestionID string `json:"questionId"`
	// Answer is what the asker is told.
	Answer string `json:"answer"`
}

// Roster asks who is on the team and what they do. Sent by the agent; answered
// by [RosterResult] or [Error].
type Roster struct{}

// RosterResult is the team. Sent by the office; it takes no answer.
type RosterResult struct {
	// Members are the team's people.
	Members []Member `json:"members"`
	// Humans are those the team trusts.
	Humans []RosterHuman `json:"humans,omitzero"`
}

// Member is a person of the team.
type Member struct {
	// Handle is the person's name on the wire.
	Handle string `json:"handle"`
	// Name is the person's name for people.
	Name string `json:"name"`
	// Role is the name of the person's role.
	Role string `json:"role"`
	// Title is how the role is shown, such as Developer.
	Title string `json:"title,omitzero"`
	// Summary is a line about what the role does.
	Summary string `json:"summary,omitzero"`
	// Status is what the person is doing.
	Status MemberStatus `json:"status"`
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
	Utilization float64 `json:"utilization" wire:"min=0"`
	// ResetsAt is when the window starts over.
	ResetsAt string `json:"resetsAt,omitzero" wire:"time"`
}

// RosterHuman is a trusted human of the team.
type RosterHuman struct {
	// Name is the human's name.
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
