package transcript

// This file shows the messages of Claude Code.

import (
	"cmp"
	"strings"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// claude shows a message of Claude Code, of today or of older sessions.
func (p *Printer) claude(r *feed.Record) []entry {
	var (
		m   feed.ClaudeMessage
		err error
	)
	if r.Format == feed.FormatClaudeSDK {
		m, err = feed.SDKMessage(r.Payload)
	} else {
		m, err = feed.Decode[feed.ClaudeMessage](r.Payload)
	}
	if err != nil {
		return p.unknown(r)
	}
	switch m.Type {
	case feed.ClaudeAssistant:
		return p.claudeAssistant(m)
	case feed.ClaudeUser:
		return p.claudeUser(r, m)
	case feed.ClaudeResult:
		return p.claudeResult(m)
	case feed.ClaudeRateLimitEvent:
		l := m.RateLimit
		return p.limit(limit{name: cmp.Or(l.RateLimitType, "usage"), status: l.Status, used: l.Utilization, resets: l.ResetsAt})
	case feed.ClaudeSystem:
		return p.claudeSystem(r, m)
	case feed.ClaudeConversationReset:
		return p.note(dim, "Claude began a new conversation of its own.")
	}
	return p.unknown(r)
}

// within is how far to the right a message stands: those of subagents do a little.
func within(m feed.ClaudeMessage) string {
	if m.ParentToolUseID != nil {
		return "  ╎ "
	}
	return ""
}

func (p *Printer) claudeAssistant(m feed.ClaudeMessage) []entry {
	var entries []entry
	indent := within(m)
	for _, b := range m.Message.Content {
		switch b.Type {
		case feed.BlockText:
			entries = append(entries, p.said(b.Text, indent)...)
		case feed.BlockThinking:
			entries = append(entries, p.thinks(b.Thinking, indent)...)
		case feed.BlockToolUse, feed.BlockServerToolUse:
			entries = append(entries, p.used(b.ID, call{clean(b.Name), argumentOf(b.Input)}, indent))
		case feed.BlockToolResult, feed.BlockServerToolResult:
			entries = append(entries, p.came(b.ToolUseID, result{text: b.ResultText(), failed: b.IsError}, indent)...)
		}
	}
	if problem := deref(m.Error); problem != "" {
		entries = append(entries, p.note(red, "Claude: "+problem)...)
	}
	return entries
}

// said shows a text of the runtime, which takes the place of what was shown of it while it was written.
func (p *Printer) said(text, indent string) []entry {
	if indent == "" {
		p.wrote(text)
	}
	if strings.TrimSpace(clean(text)) == "" {
		return nil
	}
	return []entry{{partText, indented(p.proseOf(strings.TrimLeft(text, "\n")), indent)}}
}

// thinks shows a line of what the runtime thought.
func (p *Printer) thinks(text, indent string) []entry {
	if indent == "" {
		p.thought = ""
	}
	lines := p.thoughtOf(text)
	if p.o.Full && strings.TrimSpace(text) != "" {
		lines = p.wrapped(dim, "∴ ", "  ", strings.TrimSpace(clean(text)))
	}
	if lines == nil {
		return nil
	}
	return []entry{{partThinking, indented(lines, indent)}}
}

func (p *Printer) claudeUser(r *feed.Record, m feed.ClaudeMessage) []entry {
	var entries []entry
	var texts []string
	for _, b := range m.Message.Content {
		switch b.Type {
		case feed.BlockToolResult, feed.BlockServerToolResult:
			entries = append(entries, p.came(b.ToolUseID, result{text: b.ResultText(), failed: b.IsError}, within(m))...)
		case feed.BlockText:
			texts = append(texts, b.Text)
		}
	}
	return append(entries, p.echo(r, strings.Join(texts, "\n"), within(m))...)
}

// echo shows what a runtime was told, unless it repeats a message that stands above.
func (p *Printer) echo(r *feed.Record, text, indent string) []entry {
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case r.MessageID == nil:
	case p.told[*r.MessageID] != "":
		return nil
	default:
		p.told[*r.MessageID] = "somebody"
		return []entry{{partMessage, p.message("somebody", text, r.CreatedAt)}}
	}
	return []entry{{partThinking, indented(p.folded(dim, "▷ ", text, 1, false), indent)}}
}

func (p *Printer) claudeResult(m feed.ClaudeMessage) []entry {
	if !m.IsError && m.Subtype == "success" {
		return nil // its text was the last message, its cost comes with the session
	}
	text := "Claude ended with " + cmp.Or(m.Subtype, "an error")
	details := m.Errors
	if m.IsError && m.Result != nil {
		details = append([]string{*m.Result}, details...)
	}
	entries := p.note(red, text)
	if len(details) > 0 {
		entries = append(entries, entry{partResult, p.folded(red, "  ✗ ", strings.Join(details, "\n"), resultLines, true)})
	}
	return entries
}

func (p *Printer) claudeSystem(r *feed.Record, m feed.ClaudeMessage) []entry {
	extra, err := feed.Decode[struct {
		Model, CWD, Kind string
		Tools            []string
		Description      string
		Status           string
		Data             struct{ Model string }
	}](r.Payload)
	if err != nil {
		return p.unknown(r)
	}
	switch m.Subtype {
	case "init":
		words := []string{"Claude starts", cmp.Or(extra.Model, extra.Data.Model)}
		if extra.CWD != "" {
			words = append(words, "in "+extra.CWD)
		}
		return p.note(dim, joined(words))
	case "compact_boundary":
		return p.note(dim, "The conversation was shortened to its essence.")
	case "vcs_state_changed":
		return p.note(dim, strings.TrimSpace("git "+extra.Kind))
	case "task_started":
		return p.note(dim, strings.TrimSpace("A task began in the background: "+extra.Description))
	}
	return p.quiet(r, m.Subtype)
}
