package protocol

// This file holds what an agent hears in chat.

// ChatMessage brings a message that a trusted human wrote. Sent by the agent;
// answered by ChatMessageResult or Error. It may come twice; a message is the
// same if person, channel and message id are.
type ChatMessage struct {
	// MessageID is the chat system's id.
	MessageID string `json:"messageId"`
	Channel   string `json:"channel"`
	// Thread is absent for a message outside of threads.
	Thread string `json:"thread,omitzero"`
	// Text is empty when only files were shared.
	Text   string    `json:"text"`
	Author Requester `json:"author"`
	// Direct is true in a direct message.
	Direct bool `json:"direct"`
	// Participant is true when the author wrote in the thread before.
	Participant bool   `json:"participant"`
	Files       []File `json:"files,omitzero"`
}

// ChatMessageResult says that the office has the message. Sent by the office.
// The agent replies nothing in chat for now; that is for the work it starts.
type ChatMessageResult struct {
	// Repeated is true when the office had it before.
	Repeated bool `json:"repeated"`
}

// Type returns TypeChatMessage.
func (ChatMessage) Type() Type { return TypeChatMessage }

// Type returns TypeChatMessageResult.
func (ChatMessageResult) Type() Type { return TypeChatMessageResult }
