package protocol

// This file holds the messages that a connection itself needs: who is there,
// whether the other side lives, and the empty answer.

// Hello opens every connection and says who connects. Sent by the agent;
// answered by [Welcome] or [Error]. Anything else as the first message ends
// the connection.
type Hello struct {
	// Person is the handle of the person that the agent is.
	Person string `json:"person"`
	// Token proves it. It is never logged.
	Token string `json:"token"`
	// ProtocolVersion is the version of the protocol that the agent speaks.
	ProtocolVersion int `json:"protocolVersion"`
	// AgentVersion is the release of the agent, for logs and status.
	AgentVersion string `json:"agentVersion"`
}

// Welcome accepts a connection. Sent by the office; it takes no answer. What
// it lists beside the team is everything the person missed while offline.
type Welcome struct {
	// ProtocolVersion is the version of the protocol that the office speaks.
	ProtocolVersion int `json:"protocolVersion"`
	// HeartbeatMs is the longest time, in milliseconds, that may pass between
	// two heartbeats.
	HeartbeatMs int `json:"heartbeatMs" wire:"min=1"`
	// Team is the team config. It is passed on byte for byte, so that a changed
	// one is noticed; an agent checks it before it uses it.
	Team Raw `json:"team" wire:"object"`
	// Resume has the ids of accepted items that are not finished. The agent
	// goes on with these and ends every other run.
	Resume []string `json:"resume"`
	// Reports are still to be posted; see [Reports].
	Reports []Report `json:"reports,omitzero"`
	// Acts are still to be made; see [Act].
	Acts []Act `json:"acts,omitzero"`
}

// Heartbeat tells that the agent lives and, if an item is named, that its run
// does. Sent by the agent; answered by [Ack] or [Error]. One is due at least
// every [Welcome.HeartbeatMs].
type Heartbeat struct {
	// WorkItemID is the item that is running, if one is.
	WorkItemID string `json:"workItemId,omitzero"`
}

// Ack says that a request succeeded and has no result. Sent by the office; it
// takes no answer. It leaves only after what it acknowledges is durable.
type Ack struct{}

// Ping asks whether the other side still answers. Sent by either side; answered
// by [Pong].
type Ping struct{}

// Pong answers a [Ping]. Sent by either side; it takes no answer.
type Pong struct{}

// Type returns TypeHello.
func (Hello) Type() Type { return TypeHello }

// Type returns TypeWelcome.
func (Welcome) Type() Type { return TypeWelcome }

// Type returns TypeHeartbeat.
func (Heartbeat) Type() Type { return TypeHeartbeat }

// Type returns TypeAck.
func (Ack) Type() Type { return TypeAck }

// Type returns TypePing.
func (Ping) Type() Type { return TypePing }

// Type returns TypePong.
func (Pong) Type() Type { return TypePong }
