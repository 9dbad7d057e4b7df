package transcript

// This file shows the notifications of Codex.

import (
	"fmt"
	"strings"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// codex shows a notification of Codex, of today or of older sessions.
func (p *Printer) codex(r *feed.Record) []entry {
	var (
		n   feed.CodexNotification
		err error
	)
	if r.Format == feed.FormatCodexJSONL {
		n, err = feed.JSONLNotification(r.Payload)
	} else {
		n, err = feed.Decode[feed.CodexNotification](r.Payload)
	}
	if err != nil || n.Method == "" {
		return p.unknown(r)
	}
	switch n.Method {
	case feed.CodexThreadStarted:
		words := []string{"Codex starts"}
		if t := n.Params.Thread; t != nil {
			words = append(words, t.CLIVersion, t.CWD)
		}
		return p.note(dim, joined(words))
	case feed.CodexItemStarted:
		return p.itemStarted(n.Params.Item)
	case feed.CodexItemCompleted:
		return p.itemCompleted(r, n.Params.Item)
	case feed.CodexError:
		return p.codexError(n.Params)
	case feed.CodexTurnCompleted:
		if t := n.Params.Turn; t != nil && t.Error != nil {
			return p.note(red, "Codex failed: "+t.Error.Message)
		}
		return nil
	case feed.CodexTurnStarted, feed.CodexTokenUsage, feed.CodexItemUpdated:
		return nil
	case "account/rateLimits/updated":
		return p.codexLimits(r)
	}
	return p.quiet(r, n.Method)
}

func (p *Printer) codexError(params feed.CodexParams) []entry {
	if params.Error == nil {
		return nil
	}
	text := "Codex: " + params.Error.Message
	if more := deref(params.Error.AdditionalDetails); more != "" {
		text += " (" + more + ")"
	}
	if params.WillRetry {
		return p.note(yellow, text+"; it tries again")
	}
	return p.note(red, text)
}

// callOf is the use of a tool that an item is; ok is false where it is none.
func callOf(i *feed.CodexItem) (c call, ok bool) {
	switch i.Type {
	case feed.ItemCommandExecution:
		return call{"Bash", oneLine(clean(i.Command))}, true
	case feed.ItemFileChange:
		var files []string
		for _, change := range i.Changes {
			files = append(files, shortPath(change.Path))
		}
		return call{"Edit", oneLine(clean(strings.Join(files, ", ")))}, true
	case feed.ItemWebSearch:
		return call{"WebSearch", oneLine(clean(i.Query))}, true
	case feed.ItemMCPToolCall:
		return call{clean(oneLine(i.Server + "." + i.Tool)), argumentOf(i.Arguments)}, true
	}
	return call{}, false
}

func (p *Printer) itemStarted(i *feed.CodexItem) []entry {
	if i == nil {
		return nil
	}
	if c, ok := callOf(i); ok && c.argument != "" {
		return []entry{p.used(i.ID, c, "")}
	}
	return nil
}

func (p *Printer) itemCompleted(r *feed.Record, i *feed.CodexItem) []entry {
	if i == nil {
		return nil
	}
	if c, ok := callOf(i); ok {
		var entries []entry
		if _, running := p.calls[i.ID]; !running || i.ID == "" {
			entries = append(entries, p.used(i.ID, c, ""))
		}
		return append(entries, p.came(i.ID, resultOf(i), "")...)
	}
	switch i.Type {
	case feed.ItemAgentMessage:
		return p.said(i.Text, "")
	case feed.ItemUserMessage:
		var texts []string
		for _, input := range i.Input() {
			texts = append(texts, input.Text)
		}
		return p.echo(r, strings.Join(texts, "\n"), "")
	case feed.ItemReasoning:
		p.thought = ""
		var entries []entry
		for _, section := range i.Summary {
			entries = append(entries, p.thinks(section, "")...)
		}
		return entries
	case feed.ItemPlan:
		return append(p.note(dim, "Codex plans:"), entry{partResult, p.folded(dim, "  │ ", i.Text, resultLines, false)})
	case feed.ItemContextCompaction:
		return p.note(dim, "The conversation was shortened to its essence.")
	case feed.ItemError:
		return p.note(red, "Codex: "+i.Text)
	}
	return p.quiet(r, i.Type)
}

// resultOf is what came of an item that is the use of a tool.
func resultOf(i *feed.CodexItem) result {
	res := result{text: deref(i.AggregatedOutput), failed: i.Status == "failed"}
	switch {
	case i.Status == "declined":
		res.failed, res.why = true, "It was not allowed."
	case i.ExitCode != nil && *i.ExitCode != 0:
		res.failed, res.why = true, fmt.Sprintf("exit code %d", *i.ExitCode)
	case i.Error != nil:
		res.failed, res.why = true, i.Error.Message
	}
	for _, change := range i.Changes {
		if change.Diff != "" {
			res.text += strings.TrimRight(change.Diff, "\n") + "\n"
		}
	}
	if i.Result != nil {
		for _, raw := range i.Result.Content {
			if part, err := feed.Decode[feed.CodexInput](raw); err == nil && part.Text != "" {
				res.text += part.Text + "\n"
			}
		}
	}
	return res
}

func (p *Printer) codexLimits(r *feed.Record) []entry {
	type window struct {
		UsedPercent        *float64
		ResetsAt           *int64
		WindowDurationMins *int64
	}
	said, err := feed.Decode[struct {
		Params struct {
			RateLimits struct{ Primary, Secondary *window }
		}
	}](r.Payload)
	if err != nil {
		return p.unknown(r)
	}
	var entries []entry
	for i, w := range []*window{said.Params.RateLimits.Primary, said.Params.RateLimits.Secondary} {
		if w == nil || w.UsedPercent == nil {
			continue
		}
		name := []string{"primary", "secondary"}[i]
		if w.WindowDurationMins != nil {
			name = fmt.Sprintf("%d h", *w.WindowDurationMins/60)
		}
		status := "allowed"
		if *w.UsedPercent >= 100 {
			status = "rejected"
		}
		used := *w.UsedPercent / 100
		entries = append(entries, p.limit(limit{name: name, status: status, used: &used, resets: w.ResetsAt})...)
	}
	return entries
}
