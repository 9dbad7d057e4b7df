package claude

// This file makes what watchers see of an answer while it is written.

import (
	"strings"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// live follows the stream of the conversation's own messages.
type live struct {
	show func(feed.Delta)
	// thought is the thinking of the current block, shown the preview that watchers have of it, empty for none.
	thought strings.Builder
	shown   string
	// section is where the current section begins in it.
	section int
}

// event takes an event of the stream.
func (l *live) event(e *streamEvent) {
	switch e.Type {
	case "content_block_start":
		l.forget()
		if e.Block != nil && e.Block.Type != "thinking" {
			l.clear()
		}
	case "content_block_delta":
		switch {
		case e.Delta == nil:
		case e.Delta.Type == "text_delta" && e.Delta.Text != "":
			l.show(feed.Delta{Kind: feed.DeltaText, Text: &e.Delta.Text})
		case e.Delta.Type == "thinking_delta":
			l.thinks(e.Delta.Thinking)
		}
	case "message_delta":
		if e.Usage != nil && e.Usage.Output != nil {
			l.tokens(*e.Usage.Output)
		}
	case "message_stop":
		l.clear()
	}
}

// tokens shows how many tokens the answer has.
func (l *live) tokens(n int64) { l.show(feed.Delta{Kind: feed.DeltaText, OutputTokens: &n}) }

// thinks takes a piece of thinking. The preview is the first line of its current section: of the block, or of its last part that begins
// with a heading.
func (l *live) thinks(piece string) {
	if l.thought.Len() > maxThought {
		return // the preview is from its beginning
	}
	from := max(l.section, l.thought.Len()-len(heading))
	l.thought.WriteString(piece)
	text := l.thought.String()
	if i := strings.LastIndex(text[from:], heading); i >= 0 {
		l.section = from + i
	}
	if preview := feed.CutThinking(text[l.section:]); preview != "" && preview != l.shown {
		l.shown = preview
		l.show(feed.Delta{Kind: feed.DeltaThinking, Text: &preview})
	}
}

// heading is how a section begins within a block.
const heading = "\n\n**"

// forget begins with no thinking.
func (l *live) forget() {
	l.thought.Reset()
	l.section = 0
}

// maxThought is how much of one block's thinking is kept for its preview, in bytes.
const maxThought = 256 << 10

// clear takes the preview away.
func (l *live) clear() {
	l.forget()
	if l.shown != "" {
		l.shown = ""
		empty := ""
		l.show(feed.Delta{Kind: feed.DeltaThinking, Text: &empty})
	}
}
