package runtimes

// This file drives whole work items with the real Claude Code.

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

// claudeBlock gives a text that a completed message of the model has in a block of a type.
func claudeBlock(payload []byte, blockType, member string) string {
	var m struct {
		Type    string `json:"type"`
		Message struct {
			Content []map[string]any `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(payload, &m) != nil || m.Type != "assistant" {
		return ""
	}
	for _, block := range m.Message.Content {
		if text, ok := block[member].(string); ok && block["type"] == blockType {
			return text
		}
	}
	return ""
}

var claudeKit = kit{
	name: "claude", model: sonnet, source: feed.SourceClaudeCode, format: feed.FormatClaudeJSONL,
	setUp: func(_ *testing.T, model *modelstub.Server, _ string) []string {
		return []string{"ANTHROPIC_BASE_URL=" + model.URL, "CLAUDE_CODE_OAUTH_TOKEN=made-up", "CLAUDE_CODE_MAX_RETRIES=1"}
	},
	command: bash,
	// The API tells what was read, and of what was written the first token, when an answer begins.
	cut: func(u modelstub.Usage) modelstub.Usage { u.Output = min(u.Output, 1); return u },
	microUSD: func(u modelstub.Usage) float64 {
		return 3*float64(u.Input) + 15*float64(u.Output) + 0.30*float64(u.CacheRead) + 3.75*float64(u.CacheCreation)
	},
	conversations: ".claude/projects",
	limit: func(resets time.Time) modelstub.Step {
		return modelstub.Step{
			Refusal: &modelstub.Refusal{Status: http.StatusTooManyRequests, Message: "This request would exceed a limit."},
			Header:  limitHeaders("rejected", 1, resets),
		}
	},
	said:    func(payload []byte) string { return claudeBlock(payload, "text", "text") },
	thought: func(payload []byte) string { return claudeBlock(payload, "thinking", "thinking") },
}

func TestClaudeWorksAWholeItem(t *testing.T) {
	t.Parallel()
	worksAnItem(t, claudeKit)
}

func TestAnItemGoesOnWhenClaudesAgentIsTerminated(t *testing.T) {
	t.Parallel()
	isTerminatedAndGoesOn(t, claudeKit)
}

func TestAnItemGoesOnWhenClaudesAgentIsKilled(t *testing.T) {
	t.Parallel()
	isKilledAndGoesOn(t, claudeKit)
}

func TestAnItemGoesOnWhenClaudesSessionIsLost(t *testing.T) {
	t.Parallel()
	startsALostSessionAnew(t, claudeKit)
}

func TestALimitOfClaudePausesThePerson(t *testing.T) {
	t.Parallel()
	pausesAtALimit(t, claudeKit)
}

func TestNoSecretLeavesClaudesPod(t *testing.T) {
	t.Parallel()
	keepsASecret(t, claudeKit)
}

func TestPeopleAnswerAndStopClaude(t *testing.T) {
	t.Parallel()
	answersAndStops(t, claudeKit)
}
