package protocol

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// This file holds the envelope of every message, the table of messages, and
// Encode. decode.go has the way back.

// Version is the protocol version of this package. Both sides must have the
// same.
const Version = 3

// MaxFrame is the most bytes that a frame may have, in either direction.
const MaxFrame = 1 << 20

// MaxDepth is how deep objects and lists may nest in a frame.
const MaxDepth = 64

// MaxID is the most bytes that a frame's id may have, so that there is always
// room for it in the answer.
const MaxID = 1024

// The close codes of the protocol's own. Any other close is a lost connection:
// reconnect, with backoff.
const (
	// CloseAuthFailed follows CodeAuthFailed. Terminal: the same token will not
	// do better; try again only once there is another one.
	CloseAuthFailed = 4401
	// CloseReplaced follows CodeReplaced. Terminal: the person is served by
	// another connection, and a reconnect would throw that one out.
	CloseReplaced = 4409
	// CloseVersionMismatch follows CodeVersionMismatch. Terminal: only another
	// release of the agent or of the office helps.
	CloseVersionMismatch = 4426
)

// Raw is a JSON value that is passed on as it came.
type Raw = jsontext.Value

// Type is the name of a message on the wire.
type Type string

// The messages.
const (
	TypeHello             Type = "hello"
	TypeWelcome           Type = "welcome"
	TypeOffer             Type = "offer"
	TypeAccept            Type = "accept"
	TypeDecline           Type = "decline"
	TypeHeartbeat         Type = "heartbeat"
	TypeProgress          Type = "progress"
	TypeSession           Type = "session"
	TypeUsage             Type = "usage"
	TypeJournal           Type = "journal"
	TypeHandback          Type = "handback"
	TypeFail              Type = "fail"
	TypeAsk               Type = "ask"
	TypeAskResult         Type = "ask_result"
	TypeAnswer            Type = "answer"
	TypeRoster            Type = "roster"
	TypeRosterResult      Type = "roster_result"
	TypeWorkMade          Type = "work_made"
	TypeWorkList          Type = "work_list"
	TypeWorkListResult    Type = "work_list_result"
	TypeWorkStatus        Type = "work_status"
	TypeWorkStatusResult  Type = "work_status_result"
	TypeWorkMove          Type = "work_move"
	TypeWorkMoveResult    Type = "work_move_result"
	TypeWorkPlace         Type = "work_place"
	TypeWorkLink          Type = "work_link"
	TypeWorkFileFor       Type = "work_file_for"
	TypeWorkCheck         Type = "work_check"
	TypeWorkLinkResult    Type = "work_link_result"
	TypeWorkQueue         Type = "work_queue"
	TypeWorkQueueResult   Type = "work_queue_result"
	TypeWorkAttach        Type = "work_attach"
	TypeWorkAttachResult  Type = "work_attach_result"
	TypeChatMessage       Type = "chat_message"
	TypeChatMessageResult Type = "chat_message_result"
	TypeChatReport        Type = "chat_report"
	TypeChatReportResult  Type = "chat_report_result"
	TypeReports           Type = "reports"
	TypeReportPosted      Type = "report_posted"
	TypeAct               Type = "act"
	TypeActResult         Type = "act_result"
	TypeDocLink           Type = "doc_link"
	TypeNotesChanged      Type = "notes_changed"
	TypeDoctorReport      Type = "doctor_report"
	TypeCurrentWork       Type = "current_work"
	TypeCurrentWorkResult Type = "current_work_result"
	TypeTicketPrs         Type = "ticket_prs"
	TypeTicketPrsResult   Type = "ticket_prs_result"
	TypePrList            Type = "pr_list"
	TypePrListResult      Type = "pr_list_result"
	TypeCiLog             Type = "ci_log"
	TypeCiLogResult       Type = "ci_log_result"
	TypeRecall            Type = "recall"
	TypeRecallResult      Type = "recall_result"
	TypeTicketUsage       Type = "ticket_usage"
	TypeTicketUsageResult Type = "ticket_usage_result"
	TypeAck               Type = "ack"
	TypeError             Type = "error"
	TypePing              Type = "ping"
	TypePong              Type = "pong"
)

// Message is the payload of a frame. Every message type implements it by value,
// and Decode returns values.
type Message interface{ Type() Type }

// Frame is one message in its envelope.
type Frame struct {
	// ID names the frame among all that its sender sent on the connection; 1 to
	// MaxID bytes.
	ID string
	// ReplyTo is the id of the request that this frame answers; empty when it
	// answers none.
	ReplyTo string
	Message Message
}

// Sender is a side of the protocol.
type Sender string

// The senders.
const (
	Agent  Sender = "agent"
	Office Sender = "office"
	Either Sender = "either"
)

// Spec says who sends a message and what answers it.
type Spec struct {
	Type   Type
	SentBy Sender
	// AnsweredBy has the answers of which exactly one comes; none when the
	// message takes no answer.
	AnsweredBy []Type

	zero Message
}

var acked = []Type{TypeAck, TypeError}

// specs is in the order of the contract.
var specs = []Spec{
	{Type: TypeHello, SentBy: Agent, AnsweredBy: []Type{TypeWelcome, TypeError}, zero: Hello{}},
	{Type: TypeWelcome, SentBy: Office, zero: Welcome{}},
	{Type: TypeOffer, SentBy: Office, zero: Offer{}},
	{Type: TypeAccept, SentBy: Agent, AnsweredBy: acked, zero: Accept{}},
	{Type: TypeDecline, SentBy: Agent, AnsweredBy: acked, zero: Decline{}},
	{Type: TypeHeartbeat, SentBy: Agent, AnsweredBy: acked, zero: Heartbeat{}},
	{Type: TypeProgress, SentBy: Agent, AnsweredBy: acked, zero: Progress{}},
	{Type: TypeSession, SentBy: Agent, AnsweredBy: acked, zero: Session{}},
	{Type: TypeUsage, SentBy: Agent, AnsweredBy: acked, zero: Usage{}},
	{Type: TypeJournal, SentBy: Agent, AnsweredBy: acked, zero: Journal{}},
	{Type: TypeHandback, SentBy: Agent, AnsweredBy: acked, zero: Handback{}},
	{Type: TypeFail, SentBy: Agent, AnsweredBy: acked, zero: Fail{}},
	{Type: TypeAsk, SentBy: Agent, AnsweredBy: []Type{TypeAskResult, TypeError}, zero: Ask{}},
	{Type: TypeAskResult, SentBy: Office, zero: AskResult{}},
	{Type: TypeAnswer, SentBy: Agent, AnsweredBy: acked, zero: Answer{}},
	{Type: TypeRoster, SentBy: Agent, AnsweredBy: []Type{TypeRosterResult, TypeError}, zero: Roster{}},
	{Type: TypeRosterResult, SentBy: Office, zero: RosterResult{}},
	{Type: TypeWorkMade, SentBy: Agent, AnsweredBy: acked, zero: WorkMade{}},
	{Type: TypeWorkList, SentBy: Agent, AnsweredBy: []Type{TypeWorkListResult, TypeError}, zero: WorkList{}},
	{Type: TypeWorkListResult, SentBy: Office, zero: WorkListResult{}},
	{Type: TypeWorkStatus, SentBy: Agent, AnsweredBy: []Type{TypeWorkStatusResult, TypeError}, zero: WorkStatus{}},
	{Type: TypeWorkStatusResult, SentBy: Office, zero: WorkStatusResult{}},
	{Type: TypeWorkMove, SentBy: Agent, AnsweredBy: []Type{TypeWorkMoveResult, TypeError}, zero: WorkMove{}},
	{Type: TypeWorkMoveResult, SentBy: Office, zero: WorkMoveResult{}},
	{Type: TypeWorkPlace, SentBy: Agent, AnsweredBy: []Type{TypeWorkMoveResult, TypeError}, zero: WorkPlace{}},
	{Type: TypeWorkLink, SentBy: Agent, AnsweredBy: []Type{TypeWorkLinkResult, TypeError}, zero: WorkLink{}},
	{Type: TypeWorkFileFor, SentBy: Agent, AnsweredBy: acked, zero: WorkFileFor{}},
	{Type: TypeWorkCheck, SentBy: Agent, AnsweredBy: acked, zero: WorkCheck{}},
	{Type: TypeWorkLinkResult, SentBy: Office, zero: WorkLinkResult{}},
	{Type: TypeWorkQueue, SentBy: Agent, AnsweredBy: []Type{TypeWorkQueueResult, TypeError}, zero: WorkQueue{}},
	{Type: TypeWorkQueueResult, SentBy: Office, zero: WorkQueueResult{}},
	{Type: TypeWorkAttach, SentBy: Agent, AnsweredBy: []Type{TypeWorkAttachResult, TypeError}, zero: WorkAttach{}},
	{Type: TypeWorkAttachResult, SentBy: Office, zero: WorkAttachResult{}},
	{Type: TypeChatMessage, SentBy: Agent, AnsweredBy: []Type{TypeChatMessageResult, TypeError}, zero: ChatMessage{}},
	{Type: TypeChatMessageResult, SentBy: Office, zero: ChatMessageResult{}},
	{Type: TypeChatReport, SentBy: Agent, AnsweredBy: []Type{TypeChatReportResult, TypeError}, zero: ChatReport{}},
	{Type: TypeChatReportResult, SentBy: Office, zero: ChatReportResult{}},
	{Type: TypeReports, SentBy: Office, zero: Reports{}},
	{Type: TypeReportPosted, SentBy: Agent, AnsweredBy: acked, zero: ReportPosted{}},
	{Type: TypeAct, SentBy: Office, zero: Act{}},
	{Type: TypeActResult, SentBy: Agent, AnsweredBy: acked, zero: ActResult{}},
	{Type: TypeDocLink, SentBy: Agent, AnsweredBy: acked, zero: DocLink{}},
	{Type: TypeNotesChanged, SentBy: Agent, AnsweredBy: acked, zero: NotesChanged{}},
	{Type: TypeDoctorReport, SentBy: Agent, AnsweredBy: acked, zero: DoctorReport{}},
	{Type: TypeCurrentWork, SentBy: Agent, AnsweredBy: []Type{TypeCurrentWorkResult, TypeError}, zero: CurrentWork{}},
	{Type: TypeCurrentWorkResult, SentBy: Office, zero: CurrentWorkResult{}},
	{Type: TypeTicketPrs, SentBy: Agent, AnsweredBy: []Type{TypeTicketPrsResult, TypeError}, zero: TicketPrs{}},
	{Type: TypeTicketPrsResult, SentBy: Office, zero: TicketPrsResult{}},
	{Type: TypePrList, SentBy: Agent, AnsweredBy: []Type{TypePrListResult, TypeError}, zero: PrList{}},
	{Type: TypePrListResult, SentBy: Office, zero: PrListResult{}},
	{Type: TypeCiLog, SentBy: Agent, AnsweredBy: []Type{TypeCiLogResult, TypeError}, zero: CiLog{}},
	{Type: TypeCiLogResult, SentBy: Office, zero: CiLogResult{}},
	{Type: TypeRecall, SentBy: Agent, AnsweredBy: []Type{TypeRecallResult, TypeError}, zero: Recall{}},
	{Type: TypeRecallResult, SentBy: Office, zero: RecallResult{}},
	{Type: TypeTicketUsage, SentBy: Agent, AnsweredBy: []Type{TypeTicketUsageResult, TypeError}, zero: TicketUsage{}},
	{Type: TypeTicketUsageResult, SentBy: Office, zero: TicketUsageResult{}},
	{Type: TypeAck, SentBy: Office, zero: Ack{}},
	{Type: TypeError, SentBy: Either, zero: Error{}},
	{Type: TypePing, SentBy: Either, AnsweredBy: []Type{TypePong}, zero: Ping{}},
	{Type: TypePong, SentBy: Either, zero: Pong{}},
}

var specByType = func() map[Type]Spec {
	m := make(map[Type]Spec, len(specs))
	for _, s := range specs {
		m[s.Type] = s
	}
	return m
}()

// Specs returns every message, in the order of the contract.
func Specs() []Spec { return slices.Clone(specs) }

// SpecOf returns the spec of one message; false when the type is unknown.
func SpecOf(t Type) (Spec, bool) {
	s, ok := specByType[t]
	return s, ok
}

// envelope is a frame's form on the wire. An absent payload is read as an empty
// object, so it is an error only where a field is required.
type envelope struct {
	ID      string `json:"id"`
	ReplyTo string `json:"replyTo,omitzero"`
	Type    string `json:"type"`
	Payload Raw    `json:"payload,omitzero" wire:"object,borrow"`
}

// Encode returns the JSON of a frame. Bytes of a string that are not UTF-8
// become U+FFFD, a nil list becomes an empty one, and the same frame always
// gives the same bytes. It fails with ErrTooLarge over MaxFrame, and with a
// *WireError on a frame that Decode would refuse, so that a mistake shows where
// it is made and not as a message that never arrives.
func Encode(f Frame) ([]byte, error) {
	if f.Message == nil {
		return nil, errors.New("protocol: a frame needs a message")
	}
	wire := struct {
		ID      string  `json:"id"`
		ReplyTo string  `json:"replyTo,omitzero"`
		Type    Type    `json:"type"`
		Payload Message `json:"payload"`
	}{f.ID, f.ReplyTo, f.Message.Type(), f.Message}
	b, err := json.Marshal(wire, encodeOptions)
	if err != nil {
		return nil, fmt.Errorf("protocol: %s cannot be encoded: %w", wire.Type, err)
	}
	if len(b) > MaxFrame {
		return nil, fmt.Errorf("protocol: %s of %d bytes: %w (%d)", wire.Type, len(b), ErrTooLarge, MaxFrame)
	}
	if _, werr := Decode(b); werr != nil {
		return nil, fmt.Errorf("protocol: %s would be refused: %w", wire.Type, werr)
	}
	return b, nil
}

var encodeOptions = json.JoinOptions(json.Deterministic(true), jsontext.AllowInvalidUTF8(true))

// timeLayouts are the forms of a timestamp; each has a zone. A fraction of the
// second may follow in any of them.
var timeLayouts = []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00"}

// dateLayouts are the further forms where a day is allowed too; they mean UTC.
var dateLayouts = []string{time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04"}

// FormatTime returns t as the protocol writes timestamps: UTC, milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// ParseTime reads a timestamp of a decoded message, or a day, which stands for
// its start in UTC.
func ParseTime(s string) (time.Time, error) {
	if t, ok := parseTime(s, timeLayouts); ok {
		return t, nil
	}
	if t, ok := parseTime(s, dateLayouts); ok {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is not an ISO-8601 date or time such as %s", s, "2026-01-31T09:30:00Z")
}

func parseTime(s string, layouts []string) (time.Time, bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
