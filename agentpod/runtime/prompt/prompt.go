// Package prompt composes what a runtime tells its model: who it is and how a round goes, and what this round is about.
//
// Everything in it is a function of the round, so that the same round gives the same words. What other people wrote stands in it as a
// quotation, except for what the round has to answer: what the item asks, and the feedback on it.
package prompt

import (
	"github.com/bullpen-dev/bullpen/agentpod/runtime"
)

// Options are what composing needs to know beside the round.
type Options struct {
	// Resumes says that the model goes on in a session that has seen the item's earlier rounds. Without it the messages tell all, also
	// what earlier rounds wrote down.
	Resumes bool
	// ResultFile is where the model may leave how the round ended; package result reads it. Empty: it is told of none.
	ResultFile string
	// OfferFile has the whole offer as JSON, for what is cut here. Empty: it is told of none.
	OfferFile string
}

// Prompt is what the model is told.
type Prompt struct {
	// System is for the system prompt, behind the runtime's own. It is the same in every round of an item as long as team, role and
	// checkouts are.
	System string
	// Messages are the user messages of the round in their order: one at least, and one for each message that the round answers.
	Messages []Message
}

// Message is one user message.
type Message struct {
	Text string
	// Echo says which message of the offer it repeats, as runtime.Record.Echo does: 0 is what the item asks, n its n-th feedback; nil
	// where it repeats none, such as one that only asks to go on.
	Echo *int
}

// Compose composes the prompt of a round.
func Compose(round runtime.Round, o Options) Prompt {
	return Prompt{System: system(round, o), Messages: messages(round, o)}
}

// messages are the user messages of the round.
func messages(round runtime.Round, o Options) []Message {
	offer := round.Offer
	var list []Message
	add := func(echo int, text string) { list = append(list, Message{Text: text, Echo: &echo}) }
	if !o.Resumes {
		add(0, asked(round, o))
	}
	for i, f := range offer.Context.Feedback {
		add(i+1, feedback(f))
	}
	if len(list) == 0 {
		list = append(list, Message{Text: goOn(round)})
	} else if text := beginning(round, o); text != "" {
		list[0].Text = text + "\n\n" + list[0].Text
	}
	// What is around the work comes behind what is said, in the message that begins the round.
	if text := around(round, o); text != "" {
		list[0].Text += "\n\n" + text
	}
	return list
}
