package agent

// These tests are about secrets in what is cut, in what is too large, and in what the doctor says.

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bullpen-dev/bullpen/agentpod/contract"
	"github.com/bullpen-dev/bullpen/agentpod/mask"
	"github.com/bullpen-dev/bullpen/agentpod/spool"
	"github.com/bullpen-dev/bullpen/office/feed"
	"github.com/bullpen-dev/bullpen/office/protocol"
)

// sick is a runtime whose doctor has a word to say.
type sick struct {
	scripted
	words string
}

func (s sick) Doctor(context.Context) []protocol.DoctorCheck {
	return []protocol.DoctorCheck{{Name: "It works", Status: protocol.CheckWarn, Detail: "it said " + s.words, Fix: "take away " + s.words}}
}

func TestTheDoctorTellsNoSecret(t *testing.T) {
	o := newOffice(t)
	p := newPlace(t, o, "")
	p.env["API_TOKEN"], p.env[contract.EnvSecretVars] = "hunter2-hunter2", "API_TOKEN"
	p.start(func(c *Config) { c.Runtime = sick{words: "hunter2-hunter2"} })
	report := expect[protocol.DoctorReport](o.welcome()).message
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "it said ***") {
		t.Errorf("the doctor says %s", text)
	}
}

func TestTheEndOfATurnHasNoSecretThatWasCut(t *testing.T) {
	for name, ending := range map[string]protocol.Message{
		"at the bound of the detail": protocol.Fail{Reason: strings.Repeat("x", maxDetail-11) + " hunter2-hunter2 was it"},
		"by the runtime":             protocol.Fail{Reason: "it was hunter2-hun…"},
	} {
		t.Run(name, func(t *testing.T) {
			turn, dir := turnFor(t, "hunter2-hunter2")
			turn.end(endOfTurn(ending, ""))
			files, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
			if err != nil || len(files) != 1 {
				t.Fatalf("the spool has %v, %v", files, err)
			}
			text, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), feed.TypeTurnEnded) {
				t.Errorf("the record has the secret's beginning, or is none: …%s", text[max(0, len(text)-200):])
			}
		})
	}
}

func TestWhatIsTooLargeIsNotMaskedInMemory(t *testing.T) {
	turn, _ := turnFor(t, "hunter2-hunter2")
	payload := json.RawMessage(`{"text":"` + strings.Repeat(`line\n`, 4<<20) + `"}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e := turn.entry("x", "x@1", "x", nil, payload)
	runtime.ReadMemStats(&after)
	if e.Format != spool.FormatSpool || len(e.Payload) > 1000 {
		t.Errorf("it became %d bytes of %s", len(e.Payload), e.Format)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 4*uint64(len(payload)) {
		t.Errorf("%d bytes took %d", len(payload), used)
	}
}

// turnFor is a turn with a secret, and a spool of its own in a folder.
func turnFor(t *testing.T, secret string) (*turn, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := spool.Open(dir, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	m := mask.New(nil, []string{secret}, nil)
	return &turn{mask: m, queue: s.Begin("item", "offer"), chunks: map[[2]string]int64{}, text: m.Stream()}, dir
}
