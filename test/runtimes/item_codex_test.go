package runtimes

// This file drives whole work items with the real Codex.

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/test/modelstub"
)

// codexItem reads a completed item of a type.
func codexItem(payload []byte, itemType string) (text string, summary []string) {
	var m struct {
		Method string `json:"method"`
		Params struct {
			Item struct {
				Type    string   `json:"type"`
				Text    string   `json:"text"`
				Summary []string `json:"summary"`
			} `json:"item"`
		} `json:"params"`
	}
	if json.Unmarshal(payload, &m) != nil || m.Method != "item/completed" || m.Params.Item.Type != itemType {
		return "", nil
	}
	return m.Params.Item.Text, m.Params.Item.Summary
}

var codexKit = kit{
	name: "codex", model: plainModel, source: feed.SourceCodex, format: feed.FormatCodexAppServer,
	setUp: func(t *testing.T, model *modelstub.Server, home string) []string {
		(&bench{home: home}).configure(t, model, "")
		return []string{codexKey + "=made-up"}
	},
	command:       shell,
	cut:           func(modelstub.Usage) modelstub.Usage { return modelstub.Usage{} }, // nobody tells
	microUSD:      func(modelstub.Usage) float64 { return 0 },
	conversations: ".codex/sessions",
	limit: func(resets time.Time) modelstub.Step {
		body := fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"full","resets_at":%d}}`, resets.Unix())
		return modelstub.Step{Refusal: &modelstub.Refusal{Status: 429, Body: body}, Header: codexLimits(100, 8, resets)}
	},
	said: func(payload []byte) string {
		text, _ := codexItem(payload, "agentMessage")
		return text
	},
	thought: func(payload []byte) string {
		if _, summary := codexItem(payload, "reasoning"); len(summary) > 0 {
			return summary[0]
		}
		return ""
	},
}

func TestCodexWorksAWholeItem(t *testing.T) {
	t.Parallel()
	worksAnItem(t, codexKit)
}

func TestAnItemGoesOnWhenCodexsAgentIsTerminated(t *testing.T) {
	t.Parallel()
	isTerminatedAndGoesOn(t, codexKit)
}

func TestAnItemGoesOnWhenCodexsAgentIsKilled(t *testing.T) {
	t.Parallel()
	isKilledAndGoesOn(t, codexKit)
}

func TestAnItemGoesOnWhenCodexsSessionIsLost(t *testing.T) {
	t.Parallel()
	startsALostSessionAnew(t, codexKit)
}

func TestALimitOfCodexPausesThePerson(t *testing.T) {
	t.Parallel()
	pausesAtALimit(t, codexKit)
}

func TestNoSecretLeavesCodexsPod(t *testing.T) {
	t.Parallel()
	keepsASecret(t, codexKit)
}

func TestPeopleAnswerAndStopCodex(t *testing.T) {
	t.Parallel()
	answersAndStops(t, codexKit)
}
