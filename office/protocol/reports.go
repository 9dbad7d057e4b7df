package protocol

// This file holds what the office lets an agent say and do in its own name in
// other systems: reports to those who asked for work, and acts in the tracker
// and the knowledge base. Both come back until they are confirmed.

// ReportKind is how the item of a queued report ended.
type ReportKind string

// The kinds of queued reports.
const (
	// ReportResult tells of a round that finished.
	ReportResult ReportKind = "result"
	// ReportBlocked tells of an item that needs a human.
	ReportBlocked ReportKind = "blocked"
)

func (ReportKind) values() []string { return []string{string(ReportResult), string(ReportBlocked)} }

// ChatReportKind is what an agent wants to tell a requester.
type ChatReportKind string

// The kinds of chat reports.
const (
	// TellAck says that the request is being worked on.
	TellAck ChatReportKind = "ack"
	// TellResult says what came of it.
	TellResult ChatReportKind = "result"
	// TellBlocked says what a human has to do.
	TellBlocked ChatReportKind = "blocked"
	// TellFailed says that it could not be worked.
	TellFailed ChatReportKind = "failed"
)

func (ChatReportKind) values() []string {
	return []string{
		string(TellAck), string(TellResult),
		string(TellBlocked), string(TellFailed),
	}
}

// Thread is a thread in chat to post in.
type Thread struct {
	// Channel is the chat system's id of the channel.
	Channel string `json:"channel"`
	// Thread is the chat system's id of the thread.
	Thread string `json:"thread"`
	// Requester is who asked there.
	Requester Requester `json:"requester"`
	// Direct is true in a direct message with the requester.
	Direct bool `json:"direct"`
	// Participant is true when the requester wrote in the thread, and so gets
	// the chat's own notices about it.
	Participant bool `json:"participant"`
}

// ChatReport asks leave to post how an item ended. Sent by the agent; answered
// by [ChatReportResult] or [Error]. The office says yes once for each ending,
// so nothing is posted twice.
type ChatReport struct {
	// WorkItemID is the item to report on.
	WorkItemID string `json:"workItemId"`
	// Kind is what the agent is about to tell.
	Kind ChatReportKind `json:"kind"`
}

// ChatReportResult says whether and where to post. Sent by the office; it takes
// no answer.
type ChatReportResult struct {
	// Post is false when there is nobody to tell, or it was told before.
	Post bool `json:"post"`
	// Requester is the chat id of the human to mention.
	Requester string `json:"requester,omitzero"`
	// Links are the item's ticket and pull requests.
	Links []Link `json:"links"`
	// Threads are all that belong to the item, each to be posted in; absent
	// when the report goes into a direct message.
	Threads []Thread `json:"threads,omitzero"`
	// Direct is the chat id of the human to open a direct message with, for a
	// blocked item that has no thread.
	Direct string `json:"direct,omitzero"`
}

// Reports has reports for the agent to post in its own name. Sent by the
// office; it takes no answer. Each report is confirmed by [ReportPosted], and
// comes again until then, also in [Welcome.Reports].
type Reports struct {
	// Reports are all that are not confirmed.
	Reports []Report `json:"reports"`
}

// Report tells a requester how an item ended while nobody could post it.
type Report struct {
	// ID is the same each time it is sent; post each id once.
	ID string `json:"id"`
	// WorkItemID is the item that ended.
	WorkItemID string `json:"workItemId"`
	// Kind is how it ended.
	Kind ReportKind `json:"kind"`
	// Text is the summary that was handed back.
	Text string `json:"text"`
	// Requester is the chat id of the human to mention.
	Requester string `json:"requester,omitzero"`
	// Links are the item's ticket and pull requests.
	Links []Link `json:"links"`
	// Threads are all that belong to the item, each to be posted in; absent
	// when the report goes into a direct message.
	Threads []Thread `json:"threads,omitzero"`
	// Direct is the chat id of the human to open a direct message with, for a
	// blocked item that has no thread.
	Direct string `json:"direct,omitzero"`
}

// ReportPosted confirms that a report was posted. Sent by the agent; answered
// by [Ack] or [Error].
type ReportPosted struct {
	// WorkItemID is the item of the report.
	WorkItemID string `json:"workItemId"`
	// ID is that of the report.
	ID string `json:"id"`
}

// Act has changes for the agent to make in the tracker and the knowledge base
// with its own credentials, without a run of the model. Sent by the office; it
// takes no answer. It may come during a round, is confirmed by [ActResult], and
// comes again in [Welcome.Acts] until then.
type Act struct {
	// ID is the same each time it is sent; make each id's changes once, and
	// repeat only the answer.
	ID string `json:"id"`
	// Ops are the changes, in the order to make them. Each is an object whose
	// member op names the change; the rest is the adapter's.
	Ops []Raw `json:"ops"`
}

// ActResult tells what became of an act. Sent by the agent; answered by [Ack]
// or [Error].
type ActResult struct {
	// ID is that of the act.
	ID string `json:"id"`
	// OK is true when all of it is done.
	OK bool `json:"ok"`
	// Results has a line for each change that was made, in order.
	Results []string `json:"results"`
	// Error names the change at which the agent stopped, with the reason. What
	// was done before it stays; what comes after it was not tried.
	Error string `json:"error,omitzero"`
}

// Type returns TypeChatReport.
func (ChatReport) Type() Type { return TypeChatReport }

// Type returns TypeChatReportResult.
func (ChatReportResult) Type() Type { return TypeChatReportResult }

// Type returns TypeReports.
func (Reports) Type() Type { return TypeReports }

// Type returns TypeReportPosted.
func (ReportPosted) Type() Type { return TypeReportPosted }

// Type returns TypeAct.
func (Act) Type() Type { return TypeAct }

// Type returns TypeActResult.
func (ActResult) Type() Type { return TypeActResult }
