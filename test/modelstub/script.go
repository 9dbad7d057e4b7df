// Package modelstub is a stand-in for the APIs of models, for tests with the real runtimes: the test writes a script of what the model
// says, and reads afterwards what it was asked. It speaks Anthropic's Messages API (anthropic.go) and OpenAI's Responses API (openai.go)
// as far as the runtimes use them, always as a stream of server-sent events.
//
// One server plays one model for one runtime: each request for an answer takes the next step of the script that matches it. What a
// runtime asks beside its conversation, such as a title or a count of tokens, takes none.
package modelstub

import (
	"encoding/json"
	"time"
)

// Step is what the model answers to one request.
type Step struct {
	// Match says which requests the step is for, by their bodies; nil is all. A request takes the first step that is left for it. It is for
	// runtimes with several conversations at a time.
	Match func(body []byte) bool
	// Thinking, Text and Tools are what the answer consists of, in this order; all may be empty.
	Thinking string
	Text     string
	Tools    []ToolCall
	// Usage is what the answer says it used.
	Usage Usage
	// Model overrides the model that the answer names; empty is the one that was asked for.
	Model string
	// Refusal answers with an HTTP error in place of an answer.
	Refusal *Refusal
	// Header is sent along, with an answer or a refusal.
	Header map[string]string
	// Fragment is how many characters a piece of streamed text has; 0 is 16.
	Fragment int
	// Pause is how long the server waits between two pieces of the stream.
	Pause time.Duration
	// Gate, where it is set, holds the answer after the first piece of its text (or at its end, where it has none) until the test opens it.
	Gate *Gate
	// Cut breaks the connection after the first piece of text.
	Cut bool
	// Raw are further events for the stream, as they are, before the one that ends it: for what the other fields cannot say.
	Raw []Event
}

// Event is a server-sent event.
type Event struct {
	Name string
	Data string
}

// ToolCall is a call of a tool by the model.
type ToolCall struct {
	// ID is the call's; empty has the server make one.
	ID   string
	Name string
	// Input is the call's arguments; for a tool of OpenAI that takes free text it is a JSON string.
	Input json.RawMessage
}

// Usage is what an answer used. The counts do not overlap, also where an API's own do: the server adds up as its API has it.
type Usage struct {
	Input         int64
	CacheRead     int64
	CacheCreation int64
	Output        int64
	// Reasoning is the part of Output that was thought and not said.
	Reasoning int64
}

// Refusal is an HTTP error.
type Refusal struct {
	// Status is that of HTTP, such as 429.
	Status int
	// Type and Message are those of the API's error object. Type may be empty: the usual one of the status.
	Type    string
	Message string
	// Body, where it is set, is sent as it is in place of an error object.
	Body string
}

// Gate holds an answer in its middle until a test has done what it wants to do there. Use each for one step.
type Gate struct {
	reached chan struct{}
	open    chan struct{}
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{reached: make(chan struct{}), open: make(chan struct{})} }

// Reached is closed when the answer waits at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Open lets the answer go on. Call it once.
func (g *Gate) Open() { close(g.open) }
