package claude

// This file makes lines of progress for people: what the model says, and which tools it uses for what.

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxProgress is the most characters of a line.
const maxProgress = 200

// telling are the arguments of tools that tell most of what a call is for, the best first.
var telling = []string{"description", "command", "file_path", "notebook_path", "path", "pattern", "query", "url", "skill", "prompt"}

// progress is the line about a part of a message; empty for none.
func progress(b block) string {
	switch b.Type {
	case "text":
		return shorten(firstLine(b.Text))
	case "tool_use":
		return shorten(strings.TrimSuffix(b.Name+": "+purpose(b.Input), ": "))
	}
	return ""
}

// retry is the line about a call of the model that is tried again.
func retry(m message) string {
	why := "cannot be reached"
	if m.ErrorStatus != 0 {
		why = fmt.Sprintf("answered with status %d", m.ErrorStatus)
	}
	return fmt.Sprintf("The model's API %s; try %d of %d follows in %.0f s", why, m.Attempt, m.MaxRetries, m.RetryDelay/1000)
}

// purpose is what a call of a tool is for, as far as its arguments tell.
func purpose(input json.RawMessage) string {
	var arguments map[string]json.RawMessage
	if json.Unmarshal(input, &arguments) != nil {
		return ""
	}
	for _, name := range telling {
		var text string
		if json.Unmarshal(arguments[name], &text) == nil && strings.TrimSpace(text) != "" {
			return firstLine(text)
		}
	}
	return ""
}

// firstLine is the first line with something on it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// shorten cuts a line to maxProgress characters.
func shorten(line string) string {
	if runes := []rune(line); len(runes) > maxProgress {
		return string(runes[:maxProgress-1]) + "…"
	}
	return line
}
