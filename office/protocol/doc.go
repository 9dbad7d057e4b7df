// Package protocol is the agent protocol: what an agent and the office say to
// each other over a WebSocket. Both sides import it, and neither imports the
// other.
//
// # Frames
//
// A message is one text frame with one JSON object:
//
//	{"id": "m7", "replyTo": "m6", "type": "heartbeat", "payload": {"workItemId": "w1"}}
//
// The id is the sender's own and unique among all it sent. An answer names the
// request's id in replyTo. Most messages are requests, and a request gets one
// answer: the result that belongs to it, or ack, or error; Specs has the table.
// An answer to nothing that is known is ignored, and an error is never
// answered.
//
// A frame has at most MaxFrame bytes, in both directions, and nests at most
// MaxDepth levels. Decode is strict about what it knows: JSON in UTF-8, no name
// twice, every required field, the right types, known values, numbers in their
// range, absolute URLs and ISO-8601 times where the contract wants them. It is
// lenient about what it does not know: unknown members are ignored, so that a
// field can be added without a new version, and kept in what the office passes
// on (links, chat users, files). A null means absent where a field is optional. A
// frame that cannot be read is answered with an error, and the connection goes
// on. Rules across fields, such as the neighbour that some positions need, are
// the office's; it answers those with CodeInvalid. Encode makes nothing that
// Decode would refuse.
//
// # Flow
//
//	agent                                office
//	hello                ────────────>
//	                     <────────────   welcome (team config; resume, reports, acts)
//	                     <────────────   offer
//	accept               ────────────>   ack
//	session, usage,
//	journal, progress,
//	heartbeat            ────────────>   ack, each
//	ask, roster, work_*, …  ─────────>   a result, each
//	                     <────────────   act, reports (at any time)
//	act_result, report_posted  ──────>   ack
//	handback or fail     ────────────>   ack
//	                     <────────────   the next offer
//
// The agent always dials. Hello is its first message, and a person has one
// connection: a newer one takes over. After a loss the agent dials again and
// says hello; welcome.resume lists the accepted items that go on, and every run
// it does not list is over. What was offered and not accepted is offered again,
// and so is every report and act that was not confirmed.
//
// Everything is delivered at least once. Messages about an item may be
// repeated; the office knows a repeat by person, id and payload. An ack leaves
// after its cause is durable.
//
// docs/protocol.md tells all of this to those who write an agent; its tables are
// made from the types and comments of this package.
//
// # Closing
//
// The protocol's own close codes are all terminal; see CloseAuthFailed,
// CloseReplaced and CloseVersionMismatch. After any other close, and after a
// connection that just breaks, reconnect with backoff and jitter.
//
// # Versions
//
//	3  The first that Bullpen speaks: 60 messages.
//
// A version is raised when an old side would misunderstand a new one; hello and
// welcome compare it, and only equal versions talk. New optional fields and new
// messages do not raise it: an unknown message is answered with
// CodeUnknownType, one that an office does not offer with CodeUnsupported.
package protocol
