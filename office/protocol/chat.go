package protocol

// This file holds what an agent hears in chat.

// ChatMessage brings a message that a trusted human wrote. Sent by the agent;
// answered by [ChatMessageResult] or [Error]. It may come twice: a message is
// the same if person, channel and message id are.
type ChatMessage struct {
	// MessageID is the chat system's id of the message.
	MessageID string `json:"messageId"`
	// Channel is the chat system's id of the channel it was written in.
	Channel string `json:"channel"`
	// Thread is the thread it was written in; absent outside of threads.
	Thread string `json:"thread,omitzero"`
	// Text is what was written; empty when only files were shared.
	Text string `json:"text"`
	// Author is the human who wrote it.
	Author Requester `json:"author"`
	// Direct is true in a direct message between the author and the person.
	Direct bool `json:"direct"`
	// Participant is true when the author opened the thread or wrote in it
	// before.
	Participant bool `json:"participant"`
	// Files were shared in the message. They are described, not sent.
	Files []File `json:"files,omitzero"`
}

// ChatMessageResult says that the office has the message. Sent by the office;
// it takes no answer. The agent writes nothing in chat for now; that is for
// the work that the message starts.
type ChatMessageResult struct {
	// Repeated is true when the office had the message before.
	Repeated bool `json:"repeated"`
}

// Type returns TypeChatMessage.
func (ChatMessage) Type() Type { return TypeChatMessage }

// Type returns TypeChatMessageResult.
func (ChatMessageResult) Type() Type { return TypeChatMessageResult }
