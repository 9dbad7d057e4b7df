package codex

// This file makes live deltas of streaming fragments, and lines of progress of items. Neither is kept.

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bullpen-dev/bullpen/office/feed"
)

// fragments are the methods of notifications that are pieces of what an item tells whole when it is completed, and do not say so in
// their name.
var fragments = map[string]bool{
	"item/reasoning/summaryPartAdded": true,
	"item/fileChange/patchUpdated":    true,
}

// isFragment says whether a notification is a piece of something that is streamed.
func isFragment(method string) bool {
	last := method[strings.LastIndexByte(method, '/')+1:]
	return last == "delta" || strings.HasSuffix(last, "Delta") || fragments[method]
}

// muted are fragments that the app-server need not send. They can be many.
var muted = []string{
	"item/commandExecution/outputDelta", "item/fileChange/outputDelta", "item/fileChange/patchUpdated", "item/plan/delta",
	"item/reasoning/textDelta",
}

// fragmentView is what the runtime reads of fragments.
type fragmentView struct {
	ThreadID string `json:"threadId"`
	ItemID   string `json:"itemId"`
	Delta    string `json:"delta"`
	Section  int    `json:"summaryIndex"`
}

// fragment shows watchers what the agent of the round's own thread writes and thinks.
func (t *talk) fragment(m *message) {
	if !t.started {
		return
	}
	var f fragmentView
	if err := json.Unmarshal(m.Params, &f); err != nil || f.ThreadID != t.thread {
		return
	}
	switch m.Method {
	case "item/agentMessage/delta":
		if f.Delta != "" {
			t.sink.Delta(feed.Delta{Kind: feed.DeltaText, Text: &f.Delta})
		}
	case "item/reasoning/summaryPartAdded":
		t.thinking.begin(f)
	case "item/reasoning/summaryTextDelta":
		if text, changed := t.thinking.add(f); changed {
			t.sink.Delta(feed.Delta{Kind: feed.DeltaThinking, Text: &text})
		}
	}
}

// thinking is the section of a readable summary that is being written.
type thinking struct {
	item    string
	section int
	text    string
	shown   string
}

// maxSection is the most bytes of a section that are kept; its first line is in them.
const maxSection = 8 * feed.MaxThinking

func (t *thinking) begin(f fragmentView) { *t = thinking{item: f.ItemID, section: f.Section} }

// add appends a fragment. It returns the preview, and whether that is another one than before.
func (t *thinking) add(f fragmentView) (string, bool) {
	if f.ItemID != t.item || f.Section != t.section {
		t.begin(f)
	}
	if len(t.text) < maxSection {
		t.text += f.Delta
	}
	preview := feed.CutThinking(t.text)
	if preview == t.shown {
		return "", false
	}
	t.shown = preview
	return preview, true
}

// maxProgress is the most characters of a line of progress.
const maxProgress = 500

// shellCall is how Codex writes the call of a shell around a command.
var shellCall = regexp.MustCompile(`(?s)^\S*sh -l?c (.*)$`)

// progressOf is the line that people see of an item, empty for none.
func progressOf(i item) string {
	var text string
	switch i.Type {
	case "commandExecution":
		text = i.Command
		if len(i.Actions) == 1 {
			text = i.Actions[0].Command
		} else if m := shellCall.FindStringSubmatch(text); m != nil {
			text = strings.Trim(m[1], `'"`)
		}
		text = "$ " + text
	case "fileChange":
		var names []string
		for _, c := range i.Changes {
			names = append(names, filepath.Base(c.Path))
		}
		text = "changing " + strings.Join(names, ", ")
	case "mcpToolCall":
		text = "using " + i.Tool + " of " + i.Server
	case "webSearch":
		text = "searching the web"
		if i.Query != "" {
			text += ": " + i.Query
		}
	case "collabAgentToolCall":
		text = "working with another agent"
	case "contextCompaction":
		text = "summing up the conversation, to have room for more"
	case "agentMessage":
		text = i.Text
	}
	return clip(strings.Join(strings.Fields(text), " "), maxProgress)
}

// clip cuts a text to so many characters.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "�")
	count := 0
	for i := range text {
		if count++; count > most {
			return text[:i] + "…"
		}
	}
	return text
}
